# A language that nobody speaks, from nothing: its phones from the lexicon, letter-to-sound rules, prepare, train, align with known
# boundaries, transcribe, score; sets from files and models, and what does not fit together.
. tests/app/common.sh

language=$(dirname "$LINNET")/tests/app/language
"$language" "$tmp/train" utterances=80
"$language" "$tmp/dev" utterances=20 first=501 seed=2
lex="-l $tmp/train/lexicon.dict"
cd "$tmp" || exit 1
mkdir qaa # the folder of the language, under a code for private use

# ---- rules and caches ------------------------------------------------------------------------------------------------------------

exits "g2p" 0 run g2p train/lexicon.dict --min-count 1 -o l.g2p
has "g2p: letters of any script" "$err" "24 words, 24 pronunciations (0 left out"
refused "a word without rules" 1 "'тамико' is not in the dictionary, and there are no letter-to-sound rules for these phones" \
    prepare train --audio-root train $lex -q -o x.lfc
exits "prepare" 0 run prepare train --audio-root train --language qaa $lex --g2p l.g2p --stack 3 --oov oov -o train.lfc
has "prepare: the set" "$err" "train.lfc: 14 phones, a set of its own, from $tmp/train/lexicon.dict"
is "--oov: by the rules" "тамико	26	rules	t a m iː k o" "$(cat oov)"
is "the set travels with the cache" "phones:           <blank> a e iː k m n o r s t u x ø ʃ" "$("$LINNET" info train.lfc | grep '^phones')"
"$LINNET" prepare dev --audio-root dev --language ./qaa/ $lex --g2p l.g2p --stack 3 -q -o dev.lfc
is "phonemize, in either case" "m a m a ʃ u" "$(echo '«МАМА» Шу!' | "$LINNET" phonemize $lex -q)"

# ---- training --------------------------------------------------------------------------------------------------------------------

cat > train.conf <<END
layers = 2
heads = 2
head-width = 16
feedforward = 96
stack = 3
ahead = 2
positions = conv
conv-kernel = 5
conv-layers = 2
epochs = 60
schedule = cosine
batch-frames = 1500
lr = 4e-3
warmup-steps = 20
END
exits "train" 0 run train train.conf --train train.lfc --dev dev.lfc --folder run -q
model=run/best.safetensors
is "and its language" "language:         qaa" "$("$LINNET" info $model | grep '^language')"
has "in JSON too" "$("$LINNET" info --json train.lfc)" '"language": "qaa"'
is "the set travels with the model" "phones:           <blank> a e iː k m n o r s t u x ø ʃ" "$("$LINNET" info $model | grep '^phones')"

# ---- alignment: the boundaries are known -----------------------------------------------------------------------------------------

cat > errors.awk <<'END'
NR == FNR { n[$1]++; phone[$1, n[$1]] = $2; from[$1, n[$1]] = $3; to[$1, n[$1]] = $4; next }
{ k = ++m[$1]; if ($5 != phone[$1, k]) wrong++; a = $3 - from[$1, k]; b = $3 + $4 - to[$1, k]; sum += (a < 0 ? -a : a) + (b < 0 ? -b : b); count += 2 }
END { printf "%d %d %d", count, wrong, 1000 * sum / count + 0.5 }
END
exits "align" 0 run align --data dev --audio-root dev -m $model $lex --g2p l.g2p -f ctm --unit phones -o dev.ctm
has "align: a word by the rules" "$err" "'тамико' is not in the lexicon; it is pronounced t a m iː k o (rules)"
set -- $(awk -f errors.awk dev/truth.tsv dev.ctm)
is "align: boundaries, all phones as they were said" "728 0" "$1 $2"
# 9.4 ms when this was written.
[ "${3:-99}" -le 15 ] && pass || fail "align: the mean error of a boundary is at most 15 ms" "$3 ms"
shows "align: goodness of its phones" '"phone":"ø"' align dev/s1-502.wav --text "Нука төха" -m $model $lex -f json --times path -q
refused "align: another language's phones" 1 "'sh' is not a phoneme of the model" align dev/s1-502.wav --phones "n sh" -m $model
refused "align: no lexicon of this language" 1 "words need a lexicon, and none is installed for the phones of this model; name one with --lexicon FILE" \
    align dev/s1-502.wav --text "нука" -m $model
refused "align: neither in the lexicon nor by rules" 1 "no pronunciation for жук: add to the lexicon" \
    align dev/s1-502.wav --text "жук" -m $model $lex -q

# ---- recognition -----------------------------------------------------------------------------------------------------------------

exits "transcribe" 0 run transcribe --data dev --audio-root dev -m $model -f trn -q -o dev.hyp.trn
"$LINNET" phonemize $lex --g2p l.g2p --ids first --trn dev/text -q -o dev.ref.trn
run score --phones $model --bootstrap 0 dev.ref.trn dev.hyp.trn
per=$(echo "$out" | sed -n 's/^PER \([0-9]*\)\..*/\1/p')
[ "${per:-99}" -le 4 ] && pass || fail "transcribe: at most 5 % of the phones are wrong" "$out" # 1.1 % when this was written
cut -d' ' -f2- train/text | tr -d . | "$LINNET" ngram count --order 2 --lower - -o words.lm 2> /dev/null
{ cat train/lexicon.dict; cut -f1,4 oov; } > all.dict # with the word that --oov listed
run transcribe --data dev --audio-root dev -m $model --words -l all.dict --lm words.lm -f trn -q -o words.hyp.trn
is "transcribe --words: status" 0 "$status"
tr -d . < dev/text > words.ref
run score --bootstrap 0 words.ref words.hyp.trn
wer=$(echo "$out" | sed -n 's/^WER \([0-9]*\)\..*/\1/p')
[ "${wer:-99}" -le 4 ] && pass || fail "transcribe --words: at most 5 % of the words are wrong" "$out" # 1.1 % when this was written
gives "listen" "нука төха мөшо ситу мөшо" listen -m $model --words $lex --lm words.lm --from dev/s1-502.wav --no-paced -q
refused "words without a lexicon" 1 "--words needs a lexicon, and none is installed for the phones of this model" \
    transcribe -m $model --words dev/s1-502.wav
is "a phrase by the rules" 0 "$("$LINNET" transcribe -m $model --words $lex --lm words.lm --g2p l.g2p --phrase Тамико -q dev/s1-502.wav > /dev/null; echo $?)"

# ---- the folder of a language -----------------------------------------------------------------------------------------------------

unset LINNET_LEXICON LINNET_LM LINNET_G2P LINNET_NUMBERS LINNET_MODEL
cp train/lexicon.dict qaa/words.dict && cp l.g2p qaa/words.g2p && cp words.lm qaa/ && cp $model qaa/default.safetensors
is "a folder's model, lexicon and language model" "нука төха мөшо ситу мөшо" "$("$LINNET" transcribe --language qaa/ --words -q dev/s1-502.wav)"
is "of its model, too" "$("$LINNET" info $model | grep '^fingerprint')" "$("$LINNET" info --language qaa | grep '^fingerprint')"
is "its rules" "t a m iː k o" "$(cd qaa && echo тамико | "$LINNET" phonemize --language ./ -q)"
printf 'a\ne\niː\nk\nm\nn\no\nr\ns\nt\nu\nx\nz\nø\nʃ\n' > qaa/phones.txt
"$LINNET" prepare dev --audio-root dev --language qaa --stack 3 -q -o more.lfc
is "its phones" "phones:           <blank> a e iː k m n o r s t u x z ø ʃ" "$("$LINNET" info more.lfc | grep '^phones')"
refused "readable: no model of English for it" 1 "no punctuation model is installed" readable write --language qaa dev/text
rm qaa/phones.txt
gives "align" "нука төха (s1-502)" align dev/s1-502.wav --text "нука төха" --language qaa -f trn -q
mkdir bare && cp train/lexicon.dict bare/words.dict # no model: the phones are those of the dictionary
for folder in qaa bare; do
    run score --language ./$folder --bootstrap 0 dev.ref.trn dev.hyp.trn
    is "score: its phones, $folder" "PER" "$(echo "$out" | tail -n 1 | cut -d' ' -f1)"
done
run score --bootstrap 0 dev.ref.trn dev.hyp.trn
hasnt "score: which English has not" "$(echo "$out" | tail -n 1)" "PER"
printf 'нука => төха\n' > qaa/words.glm
printf 'нука (a)\n' > a.ref && printf 'төха (a)\n' > a.hyp
has "score: a map of the language" "$("$LINNET" score --language qaa --glm words.glm --unit words --bootstrap 0 a.ref a.hyp)" "WER 0.00 %"
refused "score: of no other" 1 "words.glm" score --language ./bare --glm words.glm --unit words a.ref a.hyp
refused "score: a map is no output" 1 "is an input" score --language qaa --glm words.glm -o qaa/words.glm a.ref a.hyp
"$LINNET" quantise --language qaa default -o small.safetensors
is "quantise: a model of the language" "$("$LINNET" info $model | grep '^phones')" "$("$LINNET" info small.safetensors | grep '^phones')"
refused "no such language" 2 "--language: there is no language 'qab': installed are de, en and es; name one of these, or a folder" phonemize --language qab ma
refused "the page is no language" 2 "there is no language 'web'" phonemize --language web ma
refused "no model of a language" 1 "there is no model of the language 'de'; name a model file, as with --model" transcribe --language de dev/s1-502.wav
refused "no lexicon of a language" 1 "no lexicon of the language de is installed" phonemize --language de ma
if ! emulated; then
    mkdir -p prefix/bin prefix/share/linnet && cp "$PROGRAM" prefix/bin/linnet && cp -r qaa prefix/share/linnet/
    is "an installed language is the one of its model" "нука төха мөшо ситу мөшо" "$(prefix/bin/linnet transcribe -m $model --words -q dev/s1-502.wav)"
    is "and is chosen by its code" "t a m iː k o" "$(cd prefix && echo тамико | bin/linnet phonemize --language qaa -q)"
fi

# ---- sets ------------------------------------------------------------------------------------------------------------------------

printf 'ma m a\nsa s a\n' > small.dict
printf '# of a model\nsil silence\nspn noise\nm\na ɐ\ns\n' > set
printf 'ma m a\nsa sil s ˈa\n<unk> spn\n<p> sil\n' > marks.dict
is "--phones FILE: silence is passed over" "s a m a" "$(echo sa ma | "$LINNET" phonemize --phones set -l marks.dict -q)"
mkdir one && cp dev/s1-502.wav one/a.wav && echo 'a a.wav' > one/wav.scp && echo 'a ma sa' > one/text && echo 'a a' > one/utt2spk
run prepare one --audio-root one --phones set -l marks.dict -q -o set.lfc
is "the IPA, silence and noise travel" 'phones:           <blank> sil=(silence) spn=(noise) m a=ɐ s' "$("$LINNET" info set.lfc | grep '^phones')"
has "in JSON too" "$("$LINNET" info --json set.lfc)" '"phones": ["<blank>", "sil", "spn", "m", "a", "s"], "ipa": ["", "(silence)", "(noise)", "", "ɐ", ""]'
json "it is JSON" info --json set.lfc
"$LINNET" prepare one --audio-root one -l small.dict -q -o small.lfc
"$LINNET" prepare one --audio-root one -l small.dict --phones $model --stack 3 -q -o of-model.lfc
is "--phones MODEL" "$("$LINNET" info train.lfc | grep '^phones')" "$("$LINNET" info of-model.lfc | grep '^phones')"
refused "caches of two sets" 1 "small.lfc and the model have different phones: 'e' is only in the second; linnet prepare --phones MODEL uses" \
    train train.conf --train train.lfc --dev small.lfc --folder x
refused "a model with other phones" 1 "other phones than this network: 'e' is only in the first" train --train small.lfc --init $model --folder x
refused "a lexicon of another set" 1 "'ə' is not a phone of this set" phonemize --phones set -l /dev/stdin sa << END
sa s ə
END
printf 'haˈlo hælˈo\n' > joined.dict
refused "phones without blanks between them" 1 "joined.dict:1: 'hælˈo' is not one phone" phonemize -l joined.dict halo
refused "no such set" 1 "neither a file with the phones nor a model" phonemize --phones none.phones $lex мама
refused "rules of another language" 1 "the phone set lacks a phone of" phonemize --g2p l.g2p -l small.dict sa
is "English stays English" "HH AH L OW" "$(echo hello | "$LINNET" phonemize -q)"
is "also by the set of a model" "HH AH L OW" "$(echo hello | "$LINNET" phonemize --phones default -q)"
finish
