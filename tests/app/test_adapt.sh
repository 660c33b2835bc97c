# linnet adapt: speakers held out, words and text, what is no better is not kept, the folder's files, bad input.
. tests/app/common.sh

use_model
export LINNET_LEXICON="$tmp/dict"
data=$tmp/speech
mkdir "$data"
i=0
for speaker in ann bea cy dan; do
    for n in 1 2 3; do
        i=$((i + 1))
        "$SOUND" "$data/$speaker-$n.wav" seconds=1.5 seed=$i
        echo "$speaker-$n $speaker-$n.wav" >> "$data/wav.scp"
        echo "$speaker-$n $speaker" >> "$data/utt2spk"
        echo "$speaker-$n $(echo 'One, two! TWO THREE three FOUR' | cut -d' ' -f$n-$((n + 1)))" >> "$data/text"
    done
done
printf 'one two three\nfour zebra one\nthree four\n' > "$tmp/text"
printf 'yak Y AE K\n' > "$tmp/words"
printf 'one two\nthree four\n' | "$LINNET" ngram count -q -o "$tmp/small.lm" --packed
a() { run adapt --data "$data" --audio-root "$data" --lm "$tmp/small.lm" --threads 1 "$@"; }
rate() { awk -v what="$1," -v column="$2" '$1 == what { print $(NF - 2 + column) }' "$3/results.txt"; }
no_worse() {
    ok "$2: no more phonemes are wrong" awk -v x="$(rate phonemes 1 "$1")" -v y="$(rate phonemes 2 "$1")" 'BEGIN { exit !(x != "" && y <= x) }'
    ok "$2: no more words are wrong" awk -v x="$(rate words 1 "$1")" -v y="$(rate words 2 "$1")" 'BEGIN { exit !(x != "" && y <= x) }'
}

# ---- all of it -------------------------------------------------------------------------------------------------------------------

to=$tmp/all
a --text "$tmp/text" --words "$tmp/words" --keep-data "$tmp/data" --epochs 2 --lr 1e-3 -o "$to"
is "status" 1 "$status" # of the data to keep, whose sounds are beside the directory
has "the data to keep are missing" "$err" "none of its 4 sound files exists"
has "says what remains" "$err" "what was made so far is in $to/work; adapt does not resume it: remove it, or name another folder"
rm -r "$to"
mkdir "$tmp/kept"
(cd "$tmp/data" && sed "s, , $tmp/data/," wav.scp > "$tmp/kept/wav.scp" && cp text utt2spk "$tmp/kept")
a --text "$tmp/text" --words "$tmp/words" --keep-data "$tmp/kept" --epochs 2 --lr 1e-3 -o "$to"
is "status" 0 "$status"
has "says what is held out" "$err" "held out: 3 of 12 utterances, 1 of 4 speakers, "
has "and that it is little" "$err" "differences of a few per cent are chance"
has "prints the commands" "$err" "$ linnet train --init $tmp/model.safetensors --train $to/work/train.lfc"
has "with the model's filterbank and steps" "$err" "--fbank dereverb,mel-bins=40,sample-hz=16000,window-ms=25,hop-ms=10,low-hz=20,high-hz=0,preemphasis=0.97 --stack 3"
has "results: a table" "$out" "before       after"
is "and a file of it" "$out" "$(cat "$to/results.txt")"
no_worse "$to" "all"
is "no speaker is in both parts" "" "$(cut -d' ' -f2 "$to/work/train/utt2spk" | sort -u > "$tmp/1"; cut -d' ' -f2 "$to/work/heldout/utt2spk" | sort -u > "$tmp/2"; comm -12 "$tmp/1" "$tmp/2")"
is "all utterances are in one" 12 "$(cat "$to/work/train/text" "$to/work/heldout/text" | wc -l | tr -d ' ')"
has "texts are words" "$(cat "$to/work/train/text" "$to/work/heldout/text")" "ann-1 one two"
is "the words that were given" "yak Y AE K" "$(head -n 1 "$to/added.dict")"
has "the words of the text that the lexicon lacks" "$(cat "$to/added.dict")" "zebra Z "
has "are reported" "$err" "1 words of $tmp/text are not in the lexicon: they are in $to/added.dict as rules pronounce them"
exits "a model" 0 run info "$to/default.safetensors"
has "the command that uses it" "$(cat "$to/results.txt")" "linnet transcribe --words --language "

# ---- the folder is one of a language ---------------------------------------------------------------------------------------------

ok "the lexicon is in it" cmp "$tmp/dict" "$to/words.dict"
for file in words.g2p words.punctuation numbers.txt words.lm; do ok "$file is in it" test -s "$to/$file"; done
model=$LINNET_MODEL lexicon=$LINNET_LEXICON
unset LINNET_MODEL LINNET_LEXICON
is "its model is used" "$("$LINNET" info "$to/default.safetensors" | grep ^fingerprint)" "$("$LINNET" info --language "$to" | grep ^fingerprint)"
exits "it recognises" 0 run transcribe --words --language "$to" "$data/ann-1.wav"
is "with its words" "$("$LINNET" transcribe -v --words -m "$to/default.safetensors" -l "$to/words.dict" --lm "$to/words.lm" --add-lexicon "$to/added.dict" "$data/ann-1.wav" 2>&1)" \
    "$("$LINNET" transcribe -v --words --language "$to" "$data/ann-1.wav" 2>&1)"
gives "an added word" "Y AE K" phonemize --language "$to" -q --oov "$tmp/oov" yak
is "is one of the lexicon" "" "$(cat "$tmp/oov")"
run phonemize --language "$to" -l "$lexicon" -q --oov "$tmp/oov" yak
has "is not in another lexicon" "$(cat "$tmp/oov")" "yak"
refused "an input is no output" 2 "added.dict" phonemize --language "$to" -o "$to/added.dict" yak
printf 'gnu N UW\n' > "$tmp/more"
run adapt --language "$to" --data "$data" --audio-root "$data" --threads 1 --lr 0 --words "$tmp/more" -o "$tmp/again"
is "adapted again: status" 0 "$status"
is "each command names the language" "" "$(echo "$err" | grep '^\$ linnet [pt]' | grep -v -e "--language $to")"
is "words of both" "$(cat "$to/added.dict" "$tmp/more")" "$(cat "$tmp/again/added.dict")"
ok "the same language model" cmp "$to/words.lm" "$tmp/again/words.lm"

# ---- names of utterances that a TRN file would take for comments --------------------------------------------------------------------

mkdir "$tmp/marked"
for file in wav.scp text utt2spk; do sed 's/^/;;/' "$data/$file" > "$tmp/marked/$file"; done
LINNET_LEXICON=$lexicon run adapt -m "$model" --data "$tmp/marked" --audio-root "$data" --lm "$tmp/small.lm" --threads 1 --lr 0 -o "$tmp/marked-result"
is "marked names: status" 0 "$status"
has "a result" "$out" "before       after"
export LINNET_MODEL="$model" LINNET_LEXICON="$lexicon"

# ---- parts of it -----------------------------------------------------------------------------------------------------------------

export LINNET_NUMBERS=es
a --epochs 1 --lr 1e-9 -q -o "$tmp/worse" # such steps change nothing
unset LINNET_NUMBERS
ok "the rules for numbers that the environment names" cmp share/linnet/es/numbers.txt "$tmp/worse/numbers.txt"
is "no better: status" 0 "$status"
has "says that the model is the one that was given" "$out" "training made it no better on the held-out utterances"
ok "which is copied" cmp "$tmp/model.safetensors" "$tmp/worse/default.safetensors"
is "with the same rates" "$(rate phonemes 1 "$tmp/worse")" "$(rate phonemes 2 "$tmp/worse")"
hasnt "--quiet: no commands" "$err" "$ linnet"
"$LINNET" quantise "$tmp/model.safetensors" -o "$tmp/eight.safetensors"
LINNET_MODEL=$tmp/eight.safetensors a --epochs 1 -q -o "$tmp/eight"
is "a model in eight bits: status" 0 "$status"
shows "stays one" "in eight bits" info "$tmp/eight/work/run/eight-bits.safetensors"
hasnt "one output is trained by CTC" "$(cat "$tmp/eight/work/run/train.conf")" "mmi = 0.9"
"$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --init "$tmp/model.safetensors" --folder "$tmp/search" -q --epochs 1 --set search=1
LINNET_MODEL=$tmp/search/best.safetensors a --epochs 1 -o "$tmp/two"
is "a model with two outputs: status" 0 "$status"
has "the second one by what it was" "$err" "mmi=0.9,mmi-lm="
has "in the run" "$(cat "$tmp/two/work/run/train.conf")" "mmi = 0.9"
long=$(yes é | head -n 60 | tr -d '\n') # 120 bytes
"$LINNET" average "$tmp/model.safetensors" -o "$tmp/long.safetensors" --name "x$long"
LINNET_MODEL=$tmp/long.safetensors a --epochs 1 -q -o "$tmp/long"
is "a long name, cut between two letters: status" 0 "$status"
only="$tmp/the words' own \$HOME"
a --lr 0 --words "$tmp/words" -o "$only"
is "words alone: status" 0 "$status"
ok "the model is not trained" test ! -e "$only/work/run"
ok "it is copied" cmp "$tmp/model.safetensors" "$only/default.safetensors"
ok "so is the language model" cmp "$tmp/small.lm" "$only/words.lm"
is "the folder is quoted in the command that uses it" "$("$LINNET" transcribe --words --language "$only" "$data/ann-1.wav")" \
    "$(eval "$(sed -n 's/^linnet \(.*\) FILE$/"$LINNET" \1 "$data\/ann-1.wav"/p' "$only/results.txt")")"
is "and in those that were run" "$only/work/heldout/text" \
    "$(eval "set -- $(echo "$err" | sed -n 's/^\$ linnet phonemize //p' | head -n 1)"; echo "$1")"
mkdir "$tmp/cuts"
cp "$data/wav.scp" "$data/utt2spk" "$data/text" "$tmp/cuts"
awk '{ print $1, $1, 0.25, 1.25 }' "$data/wav.scp" > "$tmp/cuts/segments"
run adapt --data "$tmp/cuts" --audio-root "$data" --lm "$tmp/small.lm" --threads 1 --lr 0 --words "$tmp/words" -o "$tmp/of-cuts"
is "parts of sounds: status" 0 "$status"
is "stay parts" "12 0.25 1.25" "$(cat "$tmp/of-cuts"/work/*/segments | awk '{ print $3, $4 }' | sort | uniq -c | tr -s ' ' | sed 's/^ //')"
{ yes 'three three three three' | head -n 50; echo 'Three of 3.'; echo '100 %'; } > "$tmp/odd"
a --lr 0 --text "$tmp/odd" -o "$tmp/odd-only"
is "another text: status" 0 "$status"
has "lines that are not words are counted, and the first named" "$err" "odd: 2 lines are left out, which are not words: line 51: '3' at byte 10"
no_worse "$tmp/odd-only" "another text"
if grep -q 'mixed with the text' "$tmp/odd-only/results.txt"; then ok "a mixed model is there" test -s "$tmp/odd-only/words.lm"
else ok "one that is no better is not" cmp "$tmp/small.lm" "$tmp/odd-only/words.lm"; fi

# ---- texts in UTF-16, as Windows saves them ----------------------------------------------------------------------------------------

wide() { printf '\377\376'; printf "$(od -An -v -t o1 "$1" | tr -d '\n' | sed 's/ \([0-7]*\)/\\\1\\000/g')"; }
wide "$tmp/text" > "$tmp/text.wide"
wide "$tmp/words" > "$tmp/words.wide"
a --lr 0 --text "$tmp/text.wide" --words "$tmp/words.wide" -o "$tmp/from-wide"
is "texts in UTF-16: status" 0 "$status"
is "all words are in one encoding" "yak zebra" "$(cut -d' ' -f1 "$tmp/from-wide/added.dict" | tr -d '\r' | tr '\n' ' ' | sed 's/ $//')"

# ---- bad input -------------------------------------------------------------------------------------------------------------------

refused "a folder that has results" 1 "$to already has a file default.safetensors" adapt --data "$data" --audio-root "$data" -o "$to"
refused "no data" 2 "data" adapt -o "$tmp/x"
refused "no folder" 2 "folder" adapt --data "$data"
refused "data that are not there" 1 "nowhere" adapt --data "$tmp/nowhere" -o "$tmp/x1"
refused "two models" 1 "name two models" adapt --offline -m "$tmp/model.safetensors" --data "$data" -o "$tmp/x2"
refused "the same data to keep" 1 "is held out of --data, so it cannot be trained on" \
    adapt --data "$data" --audio-root "$data" --keep-data "$data" -o "$tmp/x5"
printf 'x' > "$tmp/is-a-file"
refused "a file as folder" 1 "cannot create the folder" adapt --data "$data" --audio-root "$data" -o "$tmp/is-a-file"
hasnt "of which nothing remains" "$err" "what was made so far"
refused "no list of words" 1 "cannot open $tmp/nowhere: No such file" \
    adapt --data "$data" --audio-root "$data" --words "$tmp/nowhere" -o "$tmp/x7"
refused "no rules" 1 "cannot open $tmp/nowhere: No such file" \
    adapt --data "$data" --audio-root "$data" --g2p "$tmp/nowhere" --text "$tmp/text" -o "$tmp/x8"
refused "no language model" 1 "cannot open $tmp/nowhere: No such file" \
    adapt --data "$data" --audio-root "$data" --lm "$tmp/nowhere" -o "$tmp/x9"
for unused in x1 x2 x5 x7 x8 x9; do ok "data that cannot be used: nothing is written ($unused)" test ! -e "$tmp/$unused"; done
a --lr 0 --keep-data "$to/work/train" -o "$tmp/x6"
is "what is not held out may be kept: status" 0 "$status"
mkdir "$tmp/numbers"
sed 's/ .*/ 4 5/' "$data/text" > "$tmp/numbers/text"
cp "$data/wav.scp" "$data/utt2spk" "$tmp/numbers"
sed -i.bak "1s/ .*/ one/" "$tmp/numbers/text" && rm "$tmp/numbers/text.bak"
refused "one text of words" 1 "1 utterances have a text of words, too few to train on some and to hold out others; left out, for example, ann-2" \
    adapt --data "$tmp/numbers" --audio-root "$data" -o "$tmp/x3"
printf "1 2\n3\n" > "$tmp/empty"
refused "a text of no words" 1 "no line of it is a sentence of words" \
    adapt --data "$data" --audio-root "$data" --text "$tmp/empty" -o "$tmp/x4"
finish
