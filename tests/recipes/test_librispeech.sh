# [native] recipes/librispeech on a folder of the corpus's layout with synthetic sounds: every stage, resuming, and bad input.
. tests/app/common.sh
# Not under a sanitizer: tests of linnet's commands run the same code there.
[ "${CONFIG:-release}" = release ] || finish

recipe() { script librispeech/run --work "$tmp/x" "$@"; }

printf 'one W AH N\none(2) HH W AH N\ntwo T UW\nthree TH R IY\n' > "$tmp/dict"
c="$tmp/the corpus" w="$tmp/work" k=0
for set in train-clean-5 dev-clean-2 test-clean test-other; do
    for chapter in 7$set/77 8$set/77 8$set/78; do
        reader=${chapter%%/*} k=$((k + 1)) reader=$(printf %.1s "$reader")$(echo $set | wc -c)
        d="$c/LibriSpeech/$set/$reader/${chapter#*/}"
        mkdir -p "$d"
        for i in 0 1; do
            u=$reader-${chapter#*/}-000$i
            "$SOUND" "$d/$u.flac" seconds=1.2 seed=$k$i
            echo "$u ONE TWO THREE" >> "$d/$reader-${chapter#*/}.trans.txt"
        done
    done
done
printf 'ONE TWO THREE\nTWO SEVEN ONE\n' | "$LINNET" ngram count -q - 2> /dev/null | gzip > "$c/3-gram.pruned.1e-7.arpa.gz"
run_sh() { recipe --corpus "$c" --train mini --work "$w" --lexicon "$tmp/dict" --quick --device cpu --stand-in --shards 2 --test test-clean,test-other "$@"; }

exits "dry run" 0 run_sh --dry-run
has "dry run: what it needs" "$out" "MB needed"
has "dry run: its commands" "$out" "table3.sh"
ok "dry run writes nothing" test ! -e "$w"

exits "it runs" 0 run_sh
is "the messages are not errors" "" "$(grep -v -e '^linnet: ' -e '^epoch ' "$tmp/.err")"
for set in train-clean-5 dev-clean-2 test-clean test-other; do
    is "$set: utterances" 6 "$(wc -l < "$w/data/$set/wav.scp" | tr -d ' ')"
    is "$set: readers" 2 "$(cut -d' ' -f2 "$w/data/$set/utt2spk" | sort -u | wc -l | tr -d ' ')"
done
ok "features are in shards of whole readers" test -f "$w/features/train-clean-5.002.lfc"
is "of both" "2 4" "$("$LINNET" info --json "$w/features/train-clean-5.001.lfc" | sed -n 's/.*"utterances": *\([0-9]*\).*/\1/p') $("$LINNET" info --json "$w/features/train-clean-5.002.lfc" | sed -n 's/.*"utterances": *\([0-9]*\).*/\1/p')"
results=$(cat "$w/RESULTS.md")
has "results: they say what they are" "$results" "A STAND-IN, not LibriSpeech"
has "results: every set" "$results" "| causal-8 | 1 | test-other | 6 |"
has "results: words" "$results" "| row | seed | set | utterances | WER % |"
has "words: one has no pronunciation in the dictionary" "$results" "3 are in the dictionary, 1 have phonemes by letter-to-sound rules, 0 have none"
has "results: the dictionary" "$results" "| train-clean-5 | 18 | 3 | 0 | 0 | 48 | 8 |"

# ---- again, and after an interruption --------------------------------------------------------------------------------------------

model=$(cksum < "$w/train/linear/lr-5e-4-seed-1/best.safetensors")
rm -f "$w/features/train-clean-5.002.lfc" "$w/features/train-clean-5.shards" "$w/train/linear/lr-5e-4-seed-1/test-clean.score"
exits "again" 0 run_sh
has "again: the lost shard is made" "$err" "train-clean-5.002.lfc: 4 utterances"
hasnt "again: the other one is not" "$err" "train-clean-5.001.lfc"
hasnt "again: nothing is trained" "$out" "rate 5e-4"
is "again: the same model" "$model" "$(cksum < "$w/train/linear/lr-5e-4-seed-1/best.safetensors")"
ok "again: the lost score is there" test -s "$w/train/linear/lr-5e-4-seed-1/test-clean.score"
if command -v flock > /dev/null; then
    (flock 9 && : > "$tmp/locked" && exec sleep 600) 9> "$w/lock" &
    await test -e "$tmp/locked"
    exits "two runs in a folder" 1 run_sh
    has "two runs in a folder" "$err" "another run works in $w"
    kill $! 2> /dev/null
fi
run_sh --lexicon recipes/librispeech/run.sh
has "another dictionary" "$err" "was begun with another dictionary"
mv "$w" "$tmp/moved"
recipe --corpus "$c" --train mini --work "$tmp/../$(basename "$tmp")/moved" --quick --device cpu --stand-in --shards 2 --test test-clean,test-other --stage 3 --stop-stage 3
is "a folder that was moved" "0 " "$status $(grep -v '^epoch' "$tmp/.err")"
mv "$tmp/moved" "$w"
run_sh --stack 2 --stage 3
has "other features" "$err" "were made with other options"

# ---- bad input -------------------------------------------------------------------------------------------------------------------

declines "no corpus" "where is the corpus" --train mini
declines "no such corpus" "is not a folder" --train mini --corpus "$tmp/none"
declines "no such size" "--train is mini, 100, 460 or 960" --train 10 --corpus "$c"
declines "a set is missing" "has no folder train-clean-100" --train 100 --corpus "$c" --force
has "a set is missing: where to get it" "$err" "recipes/librispeech/README.md"
declines "stage 2 first" "run stage 1" --train mini --corpus "$c" --stage 2
mv "$c/LibriSpeech/dev-clean-2" "$c/LibriSpeech/dev-clean"
mv "$c/LibriSpeech/train-clean-5" "$c/LibriSpeech/train-clean-100"
declines "part of a set" "train-clean-100 has 6 utterances instead of 28539" --train 100 --corpus "$c" --force
ok "nothing is left" test ! -e "$tmp/x/data/train-clean-100"
rm "$c/LibriSpeech/train-clean-100/7$(echo train-clean-5 | wc -c)/77/"*0001.flac
declines "a transcript without sound" "1 transcripts of train-clean-100 have no sound" --train 100 --corpus "$c" --stand-in
echo "x-1-1" >> "$(ls "$c"/LibriSpeech/train-clean-100/8*/78/*.trans.txt)"
cp "$(ls "$c"/LibriSpeech/train-clean-100/8*/78/*0000.flac)" "$c/LibriSpeech/train-clean-100/7-7-7.flac"
declines "a sound without transcript" "1 sounds of train-clean-100 have no transcript" --train 100 --corpus "$c" --stand-in
has "an empty transcript" "$err" "1 transcripts of train-clean-100 have no words"
exits "--allow-missing" 0 recipe --corpus "$c" --train 100 --work "$tmp/y" --stand-in --allow-missing --stop-stage 1
is "--allow-missing: what is there" 5 "$(wc -l < "$tmp/y/data/train-clean-100/wav.scp" | tr -d ' ')"
# a damaged sound: training goes on without it if few are damaged, else the run stops before the training
printf 'fLaC no sound' > "$(ls "$c"/LibriSpeech/test-clean/7*/77/*0000.flac)"
declines "a damaged sound of a test set" "too many utterances of test-clean failed" --train 100 --corpus "$c" --stand-in --allow-missing --stop-stage 3 --lexicon "$tmp/dict"

finish
