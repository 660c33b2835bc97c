# [native] recipes/language on a language that nobody speaks: data directories, a folder of Common Voice, what is wrong, resuming.
. tests/app/common.sh
# Not under a sanitizer: tests of linnet's commands run the same code there.
[ "${CONFIG:-release}" = release ] || finish

recipe() { script language/run --device cpu --conf "$tmp/conf" --speed 1 "$@"; }

language=$(dirname "$LINNET")/tests/app/language d="$tmp/a corpus" w=$tmp/work
mkdir "$d"
"$language" "$d/train" utterances=12
"$language" "$d/dev" utterances=4 first=501 seed=2
# The sounds of both sets in one folder, as wav.scp of a corpus has them.
mv "$d"/train/*.wav "$d"/dev/*.wav "$d"
# A speaker is in one set only.
sed -i 's/ s/ t/' "$d/dev/utt2spk"
# Names with a full stop, and tabs behind them.
sed -i 's/^s\([01]\)-\(.02\|00.\) /s\1.\2\t/' "$d"/dev/[tuw]* "$d"/train/[tuw]*
cat > "$tmp/conf" << END
layers = 1
heads = 2
head-width = 8
feedforward = 32
stack = 3
positions = conv
conv-kernel = 5
conv-layers = 1
epochs = 2
lr = 1e-3
END

exits "it runs" 0 recipe --language qaa --lexicon "$d/train/lexicon.dict" --data "$d" --work "$w"
has "validated" "$out" "nothing is wrong"
for file in qaa/words.g2p qaa/words.dict qaa/default.safetensors qaa/words.lm train.lfc dev.lfc run/best.safetensors train.fit \
    aligned/train/s1.001.TextGrid aligned/dev/s0-501.TextGrid dev.phones.trn dev.words.trn dev.phones.txt; do
    ok "$file" test -s "$w/$file"
done
has "error rates of phones" "$out" "dev: PER "
has "error rates of words" "$out" "dev: WER "
has "of all words" "$(echo "$out" | grep 'dev: WER')" "in $(awk '{ n += NF - 1 } END { print n }' "$d/dev/text") tokens of 4 utterances"
hasnt "the language model has no names of utterances" "$("$LINNET" ngram arpa "$w/qaa/words.lm")" "s1"
is "the word that the lexicon lacks" "тамико t a m iː k o" "$(tail -n 1 "$w/qaa/added.dict" | tr '\t' ' ')"
is "the language is in the model" "language:         qaa" "$("$LINNET" info --language "$w/qaa" | grep '^language')"
has "says how to use it" "$out" "transcribe --words --language $w/qaa FILE"
run transcribe --words --language "$w/qaa" -f trn -q "$d/s0-501.wav"
is "which works" "0 $(grep '(s0-501)' "$w/dev.words.trn")" "$status $out"
sed -i 's/^epochs = 2/epochs = 3/' "$tmp/conf"
exits "resumed" 0 recipe --language qaa --lexicon "$d/train/lexicon.dict" --data "$d" --work "$w" --stage 4 --stop-stage 4
is "resumed" 4 "$(wc -l < "$w/run/log.tsv" | tr -d ' ')"

recipe --language qaa --lexicon "$w/qaa/words.dict" --data "$d" --work "$w"
is "a dictionary in the folder of the language" \
    "1 run.sh: $w/qaa/words.dict is in $w/qaa, which is made anew; move it elsewhere" "$status $err"
ok "it is still there" test -s "$w/qaa/words.dict"
mv "$d/dev/wav.scp" "$tmp/wav.scp"
sed 's/ .*/ none.wav/; s/\t.*/ none.wav/' "$tmp/wav.scp" > "$d/dev/wav.scp"
recipe --language qaa --lexicon "$d/train/lexicon.dict" --data "$d" --work "$w" --stage 3 --stop-stage 3
is "features are not those of an earlier run" "1 run.sh: no features of dev" "$status $(echo "$err" | tail -n 1)"
mv "$tmp/wav.scp" "$d/dev/wav.scp"

# a folder of Common Voice
sed -i 's/^s\([01]\)[.]\(...\)\t/s\1-\2 /' "$d"/dev/[tuw]* "$d"/train/[tuw]*
cv=$tmp/cv/xx
mkdir -p "$cv/clips" && cp "$d"/*.wav "$cv/clips"
for set in train dev; do
    printf 'client_id\tpath\tsentence\tup_votes\r\n' > "$cv/$set.tsv"
    while read -r id text; do printf '%s%064d\t%s.wav\t%s\t2\r\n' $set 0 "$id" "$text"; done < "$d/$set/text" >> "$cv/$set.tsv"
done
exits "Common Voice" 0 recipe --lexicon "$d/train/lexicon.dict" --common-voice "$cv" --work "$tmp/cv work" --stop-stage 3
is "Common Voice: the text" "$(sort "$d/train/text")" "$(sort "$tmp/cv work/data/train/text")"
is "Common Voice: speakers" "train00000000000" "$(cut -d' ' -f2 "$tmp/cv work/data/train/utt2spk" | sort -u)"
ok "Common Voice: features" test -s "$tmp/cv work/train.lfc"
ok "a folder without a code" test -s "$tmp/cv work/language/words.g2p"
printf 'path\tother\nx.mp3\ty\n' > "$cv/dev.tsv"
recipe --lexicon "$d/train/lexicon.dict" --common-voice "$cv" --work "$tmp/none" --stop-stage 1
is "a table of another kind" "1 run.sh: $cv/dev.tsv has no columns path and sentence" "$status $err"

# what is wrong stops it
echo "ghost ма" >> "$d/train/text"
exits "something is wrong" 1 recipe --lexicon "$d/train/lexicon.dict" --data "$d" --work "$tmp/wrong" --stop-stage 2
has "it is named" "$out" "text without sound: 1"
has "and nothing is trained" "$err" "run.sh: correct that, or give --go-on; nothing was trained"
exits "--go-on" 0 recipe --lexicon "$d/train/lexicon.dict" --data "$d" --work "$tmp/wrong" --stop-stage 2 --go-on
recipe --language german --lexicon "$d/train/lexicon.dict" --data "$d"
is "no code" "1 run.sh: --language is a code of two or three letters, such as de, not 'german'" "$status $err"
recipe --data "$d"
is "no dictionary" "1 run.sh: --lexicon names the pronouncing dictionary" "$status $err"
exits "no data" 1 recipe --lexicon "$d/train/lexicon.dict" --data "$tmp/none"
ok "prompts.sh is a script" bash -n recipes/language/prompts.sh
finish
