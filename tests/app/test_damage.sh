# linnet's own files: damaged, or changed while in use; two trainers in one folder.
. tests/app/common.sh

make_model || { fail "a small model"; finish; }
sed -i 's/^layers = 2/layers = 1/; s/^conv-layers = 2/conv-layers = 1/' "$tmp/train.conf"
"$LINNET" transcribe -q -m "$tmp/model.safetensors" --save-state "$tmp/stream.state" "$tmp/data/u1.wav" > "$tmp/text"
printf 'one two three\ntwo three four\n' | "$LINNET" ngram count -q -o "$tmp/words.lm" --packed

# ---- every kind of file: what is said, and what to do. That any flipped bit is found is tested in C. -------------------------------

# damaged "what" FILE "remedy" COMMAND...: flips a bit; it is refused, and the message names the file and says what to do
damaged() {
    what=$1 from=$2 part=$3
    shift 3
    cp "$from" "$tmp/bad.${from##*.}"
    flip "$tmp/bad.${from##*.}" $(($(size "$from") * 2 / 3)) 1
    refused "$what" 1 "$part" "$@"
    has "$what: the file is named" "$err" "$tmp/bad.${from##*.}"
}
size() { wc -c < "$1" | tr -d ' '; }

ok "a run" train --folder "$tmp/small"
damaged "a cache" "$tmp/set.lfc" "make it again with linnet prepare" \
    train "$tmp/train.conf" --train "$tmp/bad.lfc" -q --folder "$tmp/none"
ok "no training run was started with it" test ! -e "$tmp/none"
damaged "a model" "$tmp/small/best.safetensors" "the model is damaged; get a new copy" \
    info "$tmp/bad.safetensors"
damaged "a checkpoint" "$tmp/small/checkpoint.safetensors" \
    "the checkpoint is damaged; use an older copy" info "$tmp/bad.safetensors"
damaged "a language model" "$tmp/words.lm" "make it again from its ARPA file" ngram info "$tmp/bad.lm"
damaged "a state" "$tmp/stream.state" "use an older state" info "$tmp/bad.state"
cp -r "$tmp/small" "$tmp/torn"
flip "$tmp/torn/checkpoint.safetensors" $(($(size "$tmp/torn/checkpoint.safetensors") - 9)) 6
refused "--resume from a damaged checkpoint" 1 "the checkpoint is damaged; use an older copy" \
    train "$tmp/train.conf" --train "$tmp/set.lfc" -q --schedule constant --folder "$tmp/torn" --resume --epochs 9

# ---- one folder, one trainer; a cache that is cut while it is in use --------------------------------------------------------------

cp "$tmp/set.lfc" "$tmp/cut.lfc"
"$LINNET" train "$tmp/train.conf" --train "$tmp/cut.lfc" -q --folder "$tmp/busy" --schedule constant --epochs 100000 2> "$tmp/busy.err" &
pid=$!
await test -s "$tmp/busy/log.tsv"
refused "a second trainer" 1 "another trainer is running in $tmp/busy (process $pid on " \
    train "$tmp/train.conf" --train "$tmp/set.lfc" -q --schedule constant --folder "$tmp/busy" --resume
: > "$tmp/cut.lfc"
wait $pid
is "a cache that was cut: status" 1 $?
has "and its message" "$(cat "$tmp/busy.err")" "linnet: $tmp/cut.lfc: another program made the file shorter while it was in use"
ok "what was saved before is whole" "$LINNET" info "$tmp/busy/checkpoint.safetensors"
cp "$tmp/set.lfc" "$tmp/cut.lfc"
"$LINNET" train "$tmp/train.conf" --train "$tmp/cut.lfc" -q --folder "$tmp/over" --schedule constant --epochs 100000 2> "$tmp/busy.err" &
pid=$!
await test -s "$tmp/over/log.tsv"
flip "$tmp/cut.lfc" 200 0
wait $pid
is "a cache that was written over: status" 1 $?
has "and its message" "$(cat "$tmp/busy.err")" "$tmp/cut.lfc: the checksum of its features is wrong"

# A packed language model is mapped, as a cache is.
cp "$tmp/words.lm" "$tmp/cut.lm"
mkfifo "$tmp/fifo"
exec 3<> "$tmp/fifo"
"$LINNET" ngram perplexity "$tmp/cut.lm" /dev/stdin < "$tmp/fifo" > "$tmp/late" 2> "$tmp/late.err" 3>&- &
pid=$!
# The program opens its text when it has opened the model; before it is the program, it is a copy of this shell.
reads() { ! cmp -s /proc/$pid/comm /proc/$$/comm && [ "$(ls -l /proc/$pid/fd | grep -c "$tmp/fifo")" = 2 ] || runs_no_more $pid; }
await reads
: > "$tmp/cut.lm"
printf 'one two\n' >&3
exec 3>&-
wait $pid
is "a language model that was cut: status" 1 $?
has "and its message" "$(cat "$tmp/late.err")" "$tmp/cut.lm: another program made the file shorter while it was in use"

finish
