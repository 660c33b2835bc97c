# [native] recipes/wsj/run.sh on a tiny stand-in: every stage, an interruption, and what is wrong with the discs or an option.
. tests/app/common.sh
# Not under a sanitizer: tests of linnet's commands run the same code there.
[ "${CONFIG:-release}" = release ] || finish
if ! command -v ffmpeg > /dev/null; then
    echo "skipped: the sound is compressed with shorten (no ffmpeg)"
    finish
fi
unset LINNET_FFMPEG

recipe() { script wsj/run "$@"; }
ends_with() { declines "$@"; has "$1: in the last two lines" "$(tail -n 2 "$tmp/.err")" "$2"; }

# ten speakers, two utterances each
src="$tmp/src"
mkdir "$src"
printf 'one W AH N\none(2) HH W AH N\ntwo T UW\nthree TH R IY\nfour F AO R\n' > "$tmp/dict"
n=0
for s in s0 s1 s2 s3 s4 s5 s6 s7 s8 s9; do
    for u in 1 2; do
        n=$((n + 1))
        "$SOUND" "$src/$s$u.wav" seconds=0.9 seed=$n
        echo "$s-$u $s$u.wav" >> "$src/wav.scp"
        echo "$s-$u $s" >> "$src/utt2spk"
        case $n in 3) echo "$s-$u FIVE TWO" ;; *) echo "$s-$u $(echo ONE TWO THREE FOUR | cut -d ' ' -f $((n % 4 + 1))) TWO ONE" ;; esac >> "$src/text"
    done
done
d="$tmp/the discs"
bash recipes/wsj/standin.sh --linnet "$LINNET" --tools "$(dirname "$LINNET")/tests/recipes" --data "$src" --audio-root "$src" --output "$d" --jobs 2 \
    > "$tmp/.out" 2> "$tmp/.err" || { fail "the stand-in" "$(cat "$tmp/.err")"; finish; }
w="$tmp/the work"
tiny() { recipe --wsj0 "$d" --wsj1 "$d" --work "$w" --lexicon "$tmp/dict" --quick --device cpu --shards 3 "$@"; }
run_wsj() { tiny --causal "$@"; }

run_wsj --dry-run
is "dry run: status" 0 "$status"
has "dry run: disk and memory" "$out" "MB needed in $w"
has "dry run: times" "$out" "lsh-4: 1 run(s) of at most 1 epochs; on a CPU about"
has "dry run: commands" "$out" "table3.sh"
has "dry run: the sets" "$out" "test_eval92: "
ok "dry run writes nothing" test ! -e "$w"

# ---- an interruption in the middle of training -----------------------------------------------------------------------------------

setsid bash recipes/wsj/run.sh --linnet "$LINNET" --wsj0 "$d" --wsj1 "$d" --work "$w" --model linear --lexicon "$tmp/dict" --quick \
    --device cpu --shards 3 --epochs 100000 --patience 1000 > "$tmp/.log" 2>&1 &
pid=$!
folder="$w/train/linear/lr-1e-4-seed-1"
ok "training has begun" await test -f "$folder/checkpoint.safetensors"
run_wsj
is "two runs in one folder: status" 1 "$status"
has "two runs in one folder" "$err" "another run works in $w"
kill -s KILL -- -$pid
wait $pid 2> /dev/null
epoch=$(tail -n 1 "$folder/log.tsv" | cut -f1)
tiny --model linear --stop-stage 4 --launch "env LAUNCHED=1" --epochs $((epoch + 2))
is "after a kill: status" 0 "$status"
has "after a kill: it goes on where it was" "$err" "epoch $((epoch + 2))/$((epoch + 2))"
hasnt "after a kill: not from the start" "$err" "epoch 1/"
hasnt "after a kill: features are there" "$err" "utterances, "

# ---- all of it -------------------------------------------------------------------------------------------------------------------

run_wsj --test test_eval92,test_eval93 --words-weights 0.5,0.65
is "all stages: status" 0 "$status"
n_train=$(wc -l < "$w/data/train_si284/text" | tr -d ' ')
is "features are in shards of whole speakers" "3 $n_train" "$(cat "$w/features/train_si284.shards") $(for f in "$w"/features/train_si284.0*.lfc; do
    "$LINNET" info --json "$f" | sed -n 's/.*"utterances": *\([0-9]*\).*/\1/p'; done | awk '{ n += $1 } END { print n }')"
results=$(cat "$w/RESULTS.md")
has "results: they say what they are" "$results" "A STAND-IN, not the Wall Street Journal corpus"
for row in bilstm softmax lsh-4 linear; do has "results: $row" "$results" "| $row | "; done
has "results: the paper's numbers" "$results" "| 8.08 | 824 |"
ok "results: every row has both error rates and seconds" awk -F ' *[|] *' '$2 ~ /^(bilstm|softmax|lsh-4|linear|causal-[038]|lstm)$/ && NF == 13 {
    n++; if ($6 !~ /^[0-9]/ || $7 !~ /^[0-9]/ || $9 !~ /^[0-9]/) bad = 1 } END { exit bad || n != 8 }' "$w/RESULTS.md"
has "results: normalisation" "$results" "normalised by speaker; with the mean and deviation of the training set where a network reads forwards"
has "results: words" "$results" "| linear | 1 | test_dev93 |"
has "results: another set" "$results" "| lstm | 1 | test_eval93 | "
hasnt "results: no yardstick for a stand-in" "$results" "EESEN"
speaker() { "$LINNET" info "$w/train/$1/"*/best.safetensors | grep -c "normalised: *by speaker"; }
is "a row of the table is normalised by speaker" 1 "$(speaker bilstm)"
is "a row that streams is not" 0 "$(speaker lstm)"
has "dictionary: counts" "$(cat "$w/dict/report.tsv")" "$(printf 'train_si284\t')"
has "dictionary: words that it lacks" "$(cat "$w"/dict/*.oov)" "five"
has "words: pronunciations" "$(cat "$w/words/lexicon.dict")" "one(2) HH W AH N"
before=$(cd "$w" && cksum RESULTS.md train/*/*/best.safetensors | sed 's/RESULTS.md//')
run_wsj --test test_eval92,test_eval93 --words-weights 0.5,0.65
is "again: status" 0 "$status"
hasnt "again: nothing is trained" "$out" "rate 1e-4"
is "again: the same" "$before" "$(cd "$w" && cksum RESULTS.md train/*/*/best.safetensors | sed 's/RESULTS.md//')"

# ---- what is wrong ---------------------------------------------------------------------------------------------------------------

ends_with "no discs" "where are the discs" --work "$tmp/x"
ends_with "no such folder" "$tmp/none is not a folder" --wsj0 "$tmp/none" --wsj1 "$d" --work "$tmp/x"
ends_with "no such model" "there is no model 'gru'" --model gru --work "$tmp/x"
ends_with "no model" "--model none needs --causal" --model none --work "$tmp/x"
ends_with "seeds" "--seeds is a number from 1 up, not '0'" --seeds 0 --work "$tmp/x"
ends_with "stage 2 without stage 1" "train_si284/wav.scp does not exist; run stage 1" --stage 2 --work "$tmp/x"
ends_with "memory" "training needs " --batch-frames 2000000000 --model linear --work "$tmp/x"
cp "$tmp/dict" "$tmp/odd"
echo "five F AY V" >> "$tmp/odd"
ends_with "no dictionary" "$tmp/none does not exist" --stage 2 --work "$w" --lexicon "$tmp/none"
ends_with "another dictionary" "was begun with another dictionary" --stage 2 --work "$w" --lexicon "$tmp/odd" --quick
ends_with "a row that cannot be trained" "these were not trained: linear at rate 5" --stage 4 --work "$w" --quick --model linear --grid 5 --lexicon "$tmp/dict"
ends_with "other features" "were made with other options" --stage 3 --work "$w" --quick --shards 2
# a damaged sound: in a set that is scored, it stops before the training
f=$(head -n 1 "$w/data/test_eval92/wav.scp" | cut -d ' ' -f 2-)
head -c 10000 "$f" > "$tmp/cut" && cp "$tmp/cut" "$f"
ends_with "a truncated .wv1" "too many utterances of test_eval92 failed or are incomplete" --wsj0 "$d" --wsj1 "$d" --work "$tmp/y" --lexicon "$tmp/dict" --quick --model linear
has "a truncated .wv1: where it stopped" "$err" "run.sh: stopped in stage 3 for the reason above"
has "a truncated .wv1 is named" "$err" "$(head -n 1 "$w/data/test_eval92/wav.scp" | cut -d ' ' -f 1)"
ok "a truncated .wv1: nothing was trained" test ! -e "$tmp/y/train/linear"
rm "$f"
ends_with "a missing .wv1" "stopped: " --wsj0 "$d" --wsj1 "$d" --work "$tmp/z" --lexicon "$tmp/dict" --quick --model linear
has "a missing .wv1: the set" "$err" "test_eval92 has "

finish
