# From words and sounds to a cache and a score: phonemize, prepare, info, features, a run in its folder, score.
. tests/app/common.sh

make_model || { fail "a small model"; finish; }
w=$tmp/words

# ---- phonemize -------------------------------------------------------------------------------------------------------------------

printf 'one two\nThree, FOUR!\n\n' > "$w"
exits "phonemize" 0 run phonemize --lexicon "$tmp/dict" "$w"
is "phonemize" "W AH N T UW|TH R IY F AO R||" "$(tr '\n' '|' < "$tmp/.out")"
is "phonemize reads standard input" "T UW" "$(echo two | "$LINNET" phonemize --lexicon "$tmp/dict")"
is "which may be gzip'd" "T UW" "$(echo two | gzip | "$LINNET" phonemize --lexicon "$tmp/dict")"
printf '<s> one two </s> (a-1)\nthree (b_2)\n' > "$w"
is "phonemize words" "T UW W AH N" "$("$LINNET" phonemize --lexicon "$tmp/dict" "two one")"
is "phonemize words, an argument each" "T UW W AH N" "$("$LINNET" phonemize --lexicon "$tmp/dict" two one)"
is "phonemize one word" "T UW" "$("$LINNET" phonemize --lexicon "$tmp/dict" two)"
is "phonemize words with a full stop" "T UW W AH N" "$("$LINNET" phonemize --lexicon "$tmp/dict" "Two one.")"
is "but a file of that name is read" "TH R IY" "$(cd "$tmp" && echo three > two && "$LINNET" phonemize --lexicon dict two)"
is "words with a stroke" "W AH N T UW" "$("$LINNET" phonemize --lexicon "$tmp/dict" "one / two")"
refused "a missing file is no word" 1 "cannot open none.txt: No such file" phonemize --lexicon "$tmp/dict" none.txt
is "phonemize numbers" "T UW W AH N TH R IY" "$("$LINNET" phonemize -q --lexicon "$tmp/dict" "2 1, 3")"
is "phonemize by other rules" "W AH N" "$(printf '[written]\n& = one\n' > "$tmp/rules"; "$LINNET" phonemize -q --lexicon "$tmp/dict" --numbers "$tmp/rules" "&")"
refused "phonemize without rules" 1 "'2' at byte 1: no rule reads it; write numbers and symbols" phonemize -q --lexicon "$tmp/dict" --numbers none 2
printf 'zwei T S W AY\n' > "$tmp/de.dict"
is "phonemize by the rules of a language" "T S W AY" "$("$LINNET" phonemize -q --lexicon "$tmp/de.dict" --numbers de 2)"
is "which the environment may name" "T S W AY" "$(LINNET_NUMBERS=de "$LINNET" phonemize -q --lexicon "$tmp/de.dict" 2)"
is "or a file" "W AH N" "$(LINNET_NUMBERS=$tmp/rules "$LINNET" phonemize -q --lexicon "$tmp/dict" "&")"
has "or none" "$(LINNET_NUMBERS=none "$LINNET" phonemize -q --lexicon "$tmp/dict" 2 2>&1)" "'2' at byte 1: no rule reads it; write numbers and symbols"
has "or nothing that there is" "$(LINNET_NUMBERS=none.txt "$LINNET" phonemize --lexicon "$tmp/dict" one 2>&1)" \
    "LINNET_NUMBERS, a language, a file or none: cannot open none.txt"
is "the option counts before it" "T UW" "$(LINNET_NUMBERS=de "$LINNET" phonemize -q --lexicon "$tmp/dict" --numbers en 2)"
refused "rules that do not exist" 1 "cannot open none.txt" phonemize --lexicon "$tmp/dict" --numbers none.txt one
printf '1: x\n' > "$tmp/rules"
refused "bad rules" 1 "$tmp/rules:1: there is a rule before the first [section]" phonemize --lexicon "$tmp/dict" --numbers "$tmp/rules" one
refused "two files" 2 "names a file: give one FILE, or words" phonemize --lexicon "$tmp/dict" "$w" "$w"
gives "words with a slash and a point" "K AA S T S AH N D AO R T UW P OY N T F AY V" phonemize -q costs and/or 2.5
is "the program's own lexicon and rules" "HH AH L OW Z AO R B L AH T T EH N EY EH M Y UW EH S EY" \
    "$(echo hello zorblatt 10 a.m. U.S.A. | "$LINNET" phonemize -q)"
exits "g2p" 0 run g2p "$tmp/dict" -o "$tmp/own.g2p"
has "g2p: summary" "$err" "4 words, 4 pronunciations"
{ cat "$tmp/dict"; printf 'b\nd ZZ\n'; } > "$tmp/bad.dict"
warns "g2p: bad lines" "'b' has no phones; 2 such lines left out" g2p "$tmp/bad.dict" -o "$tmp/bad.g2p"
printf 'aa AA\nab AA B\nba B AA\nzoo Z UW\nbab B AA B\n' > "$tmp/held.dict"
run g2p -q --held-out 3 "$tmp/held.dict" -o "$tmp/held.g2p"
has "g2p: words held out" "$out" "1 words held out: "
is "g2p: and those that cannot be judged" "linnet: held-out words that are not counted, because the rules lack one of their characters: 1" "$err"
is "own rules" "T UW TH R IY" "$(echo twothree | LINNET_G2P=$tmp/own.g2p "$LINNET" phonemize -q --lexicon "$tmp/dict")"
export LINNET_G2P="$PWD/share/linnet/en/phones.lm"
refused "a model instead of a set of rules" 1 "not a set of letter-to-sound rules" phonemize -q --lexicon "$tmp/dict" "$w"
unset LINNET_G2P
run phonemize --lexicon "$tmp/dict" "$w" --trn
is "TRN in, TRN out" "W AH N T UW (a-1)|TH R IY (b_2)|" "$(tr '\n' '|' < "$tmp/.out")"
run phonemize --lexicon "$tmp/dict" "$w"
is "the name comes first without --trn" "a-1 W AH N T UW|b_2 TH R IY|" "$(tr '\n' '|' < "$tmp/.out")"
run phonemize --lexicon "$tmp/dict" --ids first --trn "$tmp/data/text" -o "$tmp/ref.trn"
is "Kaldi text in, TRN out" "W AH N T UW (u1)" "$(head -n 1 "$tmp/ref.trn")"
printf 'hello HH AH0 L OW1\n' > "$tmp/stress.dict"
is "phonemize --stress, a word of the dictionary" "HH AH0 L OW1" "$(echo hello | "$LINNET" phonemize -q --stress --lexicon "$tmp/stress.dict")"
printf '[laughs] one (coughs)\n' > "$w"
gives "phonemize skips marks" "W AH N" phonemize --lexicon "$tmp/dict" "$w"
has "phonemize counts marks" "$err" "linnet: 2 marks such as [laughs] are not words and were skipped"
printf 'ones threes\n' > "$w"
gives "words derived from the dictionary" "W AH N Z TH R IY Z" phonemize --lexicon "$tmp/dict" --oov "$tmp/oov" "$w"
is "--oov lists them" "ones	1	derived	W AH N Z" "$(head -n 1 "$tmp/oov")"
warns "or standard error does" "ones	1	derived	W AH N Z" phonemize --lexicon "$tmp/dict" "$w"

# ---- prepare and info ------------------------------------------------------------------------------------------------------------

exits "info of a cache" 0 run info "$tmp/set.lfc"
has "info of a cache" "$out" "utterances:       4"
has "info of a cache" "$out" "labels:           22"
has "info of a cache" "$out" "speakers:         2"
hasnt "no path of this machine in it" "$out" "$tmp"
shows "info --json of a cache" '"utterances": 4, "hours": 0.002, "frames": 592' info --json "$tmp/set.lfc"
json "it is JSON" info --json "$tmp/set.lfc"
for j in 1 3; do
    run prepare "$tmp/data/" --audio-root "$tmp/data" --lexicon "$tmp/dict" --stack 3 --speed 0.9,1,1.1 -j $j -o "$tmp/speed$j.lfc"
    is "prepare with $j threads: status" 0 "$status"
    has "prepare sums up" "$err" "12 utterances"
done
ok "the same file with three threads" cmp "$tmp/speed1.lfc" "$tmp/speed3.lfc"
has "copies are named by their speed" "$(strings -n 5 "$tmp/speed1.lfc" 2> /dev/null || tr -c '[:print:]' '\n' < "$tmp/speed1.lfc")" "sp0.9-u1"
# One sound is damaged, one is too short for its words, one transcript has a digit: each is reported, the others are in the cache.
cp -r "$tmp/data" "$tmp/mixed"
echo no sound > "$tmp/mixed/u2.wav"
"$SOUND" "$tmp/mixed/u3.wav" seconds=0.2
printf 'u1 ONE TWO\nu2 TWO THREE\nu3 THREE FOUR THREE FOUR\nu4 ^ ONE\n' > "$tmp/mixed/text"
exits "a set with faults" 1 run prepare "$tmp/mixed" --audio-root "$tmp/mixed" --lexicon "$tmp/dict" --stack 3 -o "$tmp/mixed.lfc"
has "the broken sound is named" "$err" "u2: "
has "the short one is named, and why" "$err" "u3: 18 frames are too few for 12 phones (12 steps of 3 needed); left out"
has "the digit is named" "$err" "u4: "
has "the summary counts them" "$err" "1 utterances, 0.00 hours, 5 phones; 1 left out, 2 failed"
shows "the cache has the rest" "utterances:       1" info "$tmp/mixed.lfc"
printf 'u1 ^\nu2 ^\nu3 ^\nu4 ^\n' > "$tmp/mixed/text"
refused "nothing is left" 1 "no utterance is left" prepare "$tmp/mixed" --audio-root "$tmp/mixed" --lexicon "$tmp/dict" -q -o "$tmp/none.lfc"
ok "then no cache is written" test ! -e "$tmp/none.lfc"
printf '%s\n' u1.wav u2.wav > "$tmp/data/nobody"
exits "sounds without speech" 0 run prepare "$tmp/data/nobody" --no-speech -o "$tmp/nobody.lfc"
has "sounds without speech" "$err" "2 utterances, 0.00 hours, 0 phones; 0 left out, 0 failed"
refused "without --no-speech they need words" 1 "no transcript" prepare "$tmp/data/nobody" --lexicon "$tmp/dict" -o "$tmp/none.lfc"
printf '%s\tone two\n%s\tthree\n' u1.wav u2.wav > "$tmp/data/list"
exits "a plain list" 0 run prepare "$tmp/data/list" --lexicon "$tmp/dict" -o "$tmp/list.lfc"
has "a plain list" "$err" "2 utterances"
shows "info of a model" "2 layers, 2 heads of 8 (width 16), feed-forward 32" info "$tmp/model.safetensors"
has "info of a model" "$out" "attention state:  1152 bytes" # 2 layers x 2 heads x (8 x 8 + 8) x 4
hasnt "no path of this machine in it" "$out" "$tmp"
shows "info --json of a model" '"layers": 2, "heads": 2' info --json "$tmp/model.safetensors"
json "it is JSON too" info --json "$tmp/model.safetensors"

# ---- features --------------------------------------------------------------------------------------------------------------------

"$SOUND" "$tmp/x.wav"
exits "features" 0 run features "$tmp/x.wav" -o "$tmp/x.npy"
has "features: shape" "$(head -c 128 "$tmp/x.npy" | tr -d '\000')" "{'descr': '<f4', 'fortran_order': False, 'shape': (98, 40), }"
is "features: size" $((128 + 98 * 40 * 4)) "$(wc -c < "$tmp/x.npy" | tr -d ' ')"
run features --fbank mel-bins=23,hop-ms=20,high-hz=5500 "$tmp/x.wav" -o "$tmp/y.npy"
has "features with options" "$(head -c 128 "$tmp/y.npy" | tr -d '\000')" "'shape': (49, 23)"
run features --model "$tmp/model.safetensors" "$tmp/x.wav" -o "$tmp/y.npy"
ok "a model's filterbank" cmp "$tmp/x.npy" "$tmp/y.npy"
"$SOUND" "$tmp/echo.wav" kind=music seconds=2 level=-20 # a tone goes on as an echo does
echo "$tmp/echo.wav" > "$tmp/echo"
for form in wet dry; do
    [ $form = wet ] && room=no || room=yes
    run features --fbank "dereverb=$room" "$tmp/echo.wav" -o "$tmp/$form.npy"
    run prepare "$tmp/echo" --no-speech --fbank "dereverb=$room" -q -o "$tmp/$form.lfc"
done
ok "features without the room" test "$(cksum < "$tmp/dry.npy")" != "$(cksum < "$tmp/wet.npy")"
ok "a cache without the room" test "$(cksum < "$tmp/dry.lfc")" != "$(cksum < "$tmp/wet.lfc")"
run features --model "$tmp/model.safetensors" --fbank dereverb,mel-bins=23 "$tmp/echo.wav" -o "$tmp/y.npy"
ok "a model's filterbank without the room" cmp "$tmp/dry.npy" "$tmp/y.npy"
run features --model small "$tmp/x.wav" -o "$tmp/small.npy"
has "that of an installed model" "$(head -c 128 "$tmp/small.npy" | tr -d '\000')" "'shape': (98, 40)"
tail -c +45 "$tmp/x.wav" | "$LINNET" features - -o "$tmp/y.npy"
ok "features of standard input" cmp "$tmp/x.npy" "$tmp/y.npy"
refused "impossible filterbank" 1 "mel" features --fbank mel-bins=512 "$tmp/x.wav" -o "$tmp/z.npy"
ok "nothing is written then" test ! -e "$tmp/z.npy"

# ---- files that do not exist, and a dictionary of another language ---------------------------------------------------------------------

refused "no file exists: one line, with the hint" 1 "none of its 4 sound files exists, the first is $tmp/u1.wav; --audio-root names the folder" \
    prepare "$tmp/data" --lexicon "$tmp/dict" -o "$tmp/z.lfc"
is "no file exists: one line" 1 "$(printf '%s\n' "$err" | grep -c .)"
mkdir "$tmp/part"
for f in u1 u2 u3 u4; do
    case $f in u2 | u3) echo "$f none/$f.wav" ;; *) echo "$f $f.wav" ;; esac
done > "$tmp/part/wav.scp"
cp "$tmp/data/text" "$tmp/data/utt2spk" "$tmp/part"
exits "some files exist" 1 run prepare "$tmp/part" --audio-root "$tmp/data" --lexicon "$tmp/dict" -q -o "$tmp/z.lfc" --speed 0.9,1
is "some files exist: one line" 1 "$(printf '%s\n' "$err" | grep -c .)"
has "some files exist: message" "$err" "2 of 4 sound files do not exist and are left out, the first is $tmp/data/none/u2.wav (u2)"
shows "some files exist: the others are in the cache" "4" info "$tmp/z.lfc"
rm -f "$tmp/z.lfc"
printf 'one W AH N\ntwo T UW\nthree TH R IY\n' > "$tmp/dict3"
refused "a quarter of the words is unknown" 1 "2 of 8 words (25.0 %) are not in the dictionary, among them four; is it one of this language?" \
    prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict3" -o "$tmp/z.lfc" --oov "$tmp/oov"
ok "no cache then" test ! -e "$tmp/z.lfc"
has "the list of them all the same" "$(cat "$tmp/oov")" four
exits "--allow-oov" 0 run prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict3" -o "$tmp/z.lfc" --allow-oov
has "--allow-oov: they are counted" "$err" "2 of 8 words (25.00 %, 1 distinct)"
printf 'four F AO R\n' > "$tmp/four.txt"
run prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict3" --add-lexicon "$tmp/four.txt" -o "$tmp/z.lfc"
is "--add-lexicon: status" 0 "$status"
hasnt "--add-lexicon: it has all words" "$err" "2 of 8 words"
refused "words do not matter without speech" 1 "none of its 4 sound files exists" prepare "$tmp/data" --no-speech -o "$tmp/y.lfc"

# ---- a run in its folder -----------------------------------------------------------------------------------------------------------

train --folder "$tmp/a" --epochs 1 2> "$tmp/.log" || fail "train" "$(cat "$tmp/.log")"
# A new run does not start in a folder that holds a run.
before=$(weights "$tmp/a/checkpoint.safetensors")$(cat "$tmp/a/train.conf")
refused "a folder that holds a run" 1 "$tmp/a already contains a run; resume it with --resume, or name another --folder" \
    train "$tmp/train.conf" --train "$tmp/set.lfc" -q --epochs 9 --folder "$tmp/a"
is "that run is unchanged" "$before" "$(weights "$tmp/a/checkpoint.safetensors")$(cat "$tmp/a/train.conf")"
ok "a log, curves and the configuration are there" test -s "$tmp/a/log.tsv" -a -s "$tmp/a/curves.svg"

# ---- a model normalised by speaker: a single file uses its own mean, a data directory the mean of each speaker ------------------------

train --folder "$tmp/sp" --epochs 1 --set normalize=speaker 2> "$tmp/.log" || fail "train --set normalize=speaker" "$(cat "$tmp/.log")"
shows "info says so" "by speaker" info "$tmp/sp/best.safetensors"
hasnt "such a model cannot stream" "$out" "attention state"
posteriors() { "$LINNET" transcribe -q -f json --model "$tmp/sp/best.safetensors" "$@" | sed -n 's/^{"id":"u1",.*"phones"://p'; }
posteriors "$tmp/data/u1.wav" > "$tmp/alone"
ok "transcribe" test -s "$tmp/alone"
posteriors "$tmp/data/u1.wav" "$tmp/data/u2.wav" > "$tmp/pair"
ok "a file without a known speaker uses its own mean" cmp "$tmp/alone" "$tmp/pair"
posteriors --data "$tmp/data" --audio-root "$tmp/data" > "$tmp/shared"
ok "a data directory" test -s "$tmp/shared"
ok "the speaker's other sound counts" sh -c '! cmp -s "$1" "$2"' - "$tmp/alone" "$tmp/shared"
posteriors --data "$tmp/data" --audio-root "$tmp/data" -j 1 > "$tmp/one"
ok "the number of threads does not" cmp "$tmp/one" "$tmp/shared"

# ---- score -----------------------------------------------------------------------------------------------------------------------

LINNET_MODEL=$tmp/model.safetensors "$LINNET" transcribe -q -f trn --data "$tmp/data" --audio-root "$tmp/data" -o "$tmp/all.trn"
"$LINNET" phonemize --lexicon "$tmp/dict" --ids first --trn "$tmp/data/text" -o "$tmp/all.ref.trn"
exits "from sound to a score" 0 run score "$tmp/all.ref.trn" "$tmp/all.trn"
if command -v sctk > /dev/null; then
    sclite=$(sctk sclite -r "$tmp/all.ref.trn" trn -h "$tmp/all.trn" trn -i spu_id -o rsum stdout 2> /dev/null | sed -n 's/.*| *Sum *|\(.*\)/\1/p' | tr -s ' |' ' ')
    ours=$("$LINNET" score --json "$tmp/all.ref.trn" "$tmp/all.trn" | sed 's/"speakers".*//')
    set -- $sclite # sentences, words, correct, sub, del, ins, errors, sentence errors
    for n in "$4" "$5" "$6"; do has "sclite counts the same ($sclite)" "$ours" ":$n"; done
fi
finish
