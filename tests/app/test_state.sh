# Saved and resumed streams: any cut of any sound gives the result of the uncut sound; damaged and foreign states; a process
# that is killed while it writes.
. tests/app/common.sh

use_model
t() { "$LINNET" transcribe -q "$@"; }

# ---- cuts ------------------------------------------------------------------------------------------------------------------------

# cuts "what" SAMPLES "CUTS" OPTIONS...: $tmp/x.raw in pieces, each in a process of its own, gives the result of the whole
cuts() {
    what=$1 n=$2 places=$3
    shift 3
    t -f ctm "$@" - < "$tmp/x.raw" | tokens > "$tmp/whole"
    in_pieces "$tmp/x.raw" "$n" "$places" t -f ctm "$@"
    # Channels are processed at the same time, so their lines are written piece by piece.
    sort "$tmp/whole" > "$tmp/whole.sorted"
    sort "$tmp/cut" > "$tmp/cut.sorted"
    ok "$what: there are phonemes" test "$(wc -l < "$tmp/whole")" -gt 9
    ok "$what: the same" cmp "$tmp/whole.sorted" "$tmp/cut.sorted"
}

frame=2
"$SOUND" "$tmp/x.raw" seconds=6 seed=3 format=raw
cuts "within a window, a step, a second" 96000 "100 401 1001 50000"
cuts "at the very end" 96000 "48000 96000"
cuts "with the room" 96000 "401 9601 50000" --no-dereverb
# With resets: every 0.6 s, and from the first endpoint on. A cut does not move the resets.
cuts "resets" 96000 "100 9001 9601 50000 96000" --reset endpoint --tune longest=0.6
resets=$(cat "$tmp/whole")
ok "resets change what is recognised" test "$resets" != "$(t -f ctm --reset never - < "$tmp/x.raw" | tokens)"
cuts "no resets" 96000 "50000" --reset never
ok "in order" cmp "$tmp/whole" "$tmp/cut"
"$SOUND" "$tmp/x.raw" seconds=3 rate=8000 channels=2 seed=5 format=raw
frame=4
cuts "8 kHz, two channels each" 24000 "7 9001 9002" --rate 8000 --channels 2 --channel each
cuts "8 kHz, two channels each, resets" 24000 "9001 9002" --rate 8000 --channels 2 --channel each --reset endpoint --tune longest=0.6

# Files, JSON: times and the length continue; the state may be written where it was read.
"$SOUND" "$tmp/x.wav" seconds=6 seed=3
"$SOUND" "$tmp/x.raw" seconds=6 seed=3 format=raw
frame=2
part "$tmp/x.raw" 0 70001 > "$tmp/one.raw"
part "$tmp/x.raw" 70001 96000 > "$tmp/two.raw"
is "CTM of a pipe, at once, is that of the file" "$(t -f ctm "$tmp/x.wav" | tokens)" "$(cat "$tmp/x.raw" | t -f ctm - | tokens)"
head -c 200 /dev/zero > "$tmp/silence.raw"
is "CTM of a pipe without phonemes" ";; stdin has no phones" "$(t -f ctm - < "$tmp/silence.raw" 2> /dev/null)"
json() { sed 's/^.*"phones":\[//; s/\]}$//' | tr '\n' ',' | sed 's/,$//'; }
t -f json "$tmp/x.wav" > "$tmp/whole.json"
t -f json --raw --save-state "$tmp/s.bin" "$tmp/one.raw" > "$tmp/one.json"
t --beam 4 --raw --save-state "$tmp/b.bin" "$tmp/one.raw" > /dev/null
is "a part has no score" 0 "$(t -f json --beam 4 --load-state "$tmp/b.bin" | grep -c '"score"')"
exits "info" 0 run info "$tmp/s.bin"
has "info: what it is" "$out" "a saved stream"
has "info: the seconds processed" "$out" "heard:            4.375 s"
has "info: of which model" "$out" "$("$LINNET" info "$LINNET_MODEL" | sed -n 's/^fingerprint: *//p')"
shows "info --json" '"samples": 70001, "rate_hz": 16000, "channels": 1, "lanes": 1}' info --json "$tmp/s.bin"
cp "$tmp/s.bin" "$tmp/first.bin"
t -f json --raw --load-state "$tmp/s.bin" --save-state "$tmp/s.bin" "$tmp/two.raw" > "$tmp/two.json"
t -f json --load-state "$tmp/s.bin" > "$tmp/three.json"
is "JSON: the phonemes, times and confidences" "$(json < "$tmp/whole.json")" \
    "$(cat "$tmp/one.json" "$tmp/two.json" "$tmp/three.json" | json | sed 's/,,*/,/g')"
has "JSON: seconds of the first part" "$(cat "$tmp/one.json")" '"seconds":4.375,'
has "JSON: seconds of the whole sound" "$(cat "$tmp/two.json")" '"seconds":6.000,'
# An interrupted process saves the state of the sound processed so far.
mkfifo "$tmp/fifo"
"$LINNET" transcribe -q -f ctm --save-state "$tmp/live.bin" - < "$tmp/fifo" > "$tmp/live.ctm" 2> "$tmp/.err" &
pid=$!
exec 9> "$tmp/fifo"
cat "$tmp/one.raw" >&9
await test -s "$tmp/live.ctm"
kill -TERM $pid
wait $pid
is "interrupted: status" 130 "$?"
exec 9>&-
heard=$("$LINNET" info --json "$tmp/live.bin" | sed -n 's/.*"samples": \([0-9]*\),.*/\1/p')
cat "$tmp/one.raw" "$tmp/two.raw" | tail -c +$((2 * heard + 1)) > "$tmp/rest.raw"
t -f ctm --raw --load-state "$tmp/live.bin" "$tmp/rest.raw" >> "$tmp/live.ctm"
is "interrupted: nothing is lost" "$(t -f ctm "$tmp/x.wav" | tokens)" "$(tokens < "$tmp/live.ctm")"

# ---- states that are refused -----------------------------------------------------------------------------------------------------

"$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --folder "$tmp/other" --seed 9 --epochs 1 -q 2> "$tmp/.log" ||
    fail "another model" "$(cat "$tmp/.log")"
other=$tmp/other/checkpoint.safetensors
s=$tmp/first.bin
refused "a state of another model" 1 "$s belongs to another model" transcribe -q -m "$other" --raw --load-state "$s" "$tmp/two.raw"
refused "another rate" 1 "$s continues with sound at 16000 Hz" transcribe -q --raw --rate 8000 --load-state "$s" "$tmp/two.raw"
refused "another channel" 1 "$s was saved with --channel mix" transcribe -q --raw --channel 1 --load-state "$s" "$tmp/two.raw"
refused "other resets" 1 "$s: it was saved with --reset auto; use the same options" \
    transcribe -q --raw --reset never --load-state "$s" "$tmp/two.raw"
refused "other endpoints" 1 "$s: it was saved with other endpoint rules" \
    transcribe -q --raw --silence-after 0.7 --load-state "$s" "$tmp/two.raw"
refused "with the room" 1 "one with and one without dereverberation" \
    transcribe -q --raw --no-dereverb --load-state "$s" "$tmp/two.raw"
refused "a rate whose state cannot be saved" 1 "bring it to 16000 Hz first" \
    transcribe -q --raw --rate 15999 --save-state "$tmp/n.bin" "$tmp/one.raw"
refused "no state at all" 1 "cannot open $tmp/none.bin: No such file or directory" \
    transcribe -q --raw --load-state "$tmp/none.bin" "$tmp/two.raw"
refused "a model as a state" 1 "is not the state of a stream" transcribe -q --raw --load-state "$LINNET_MODEL" "$tmp/two.raw"
refused "two files" 2 "are for one FILE" transcribe -q --save-state "$tmp/n.bin" "$tmp/x.wav" "$tmp/x.wav"
exits "a state that cannot be written" 1 run transcribe -q --save-state "$tmp/none/n.bin" "$tmp/x.wav"
has "a state that cannot be written: reported" "$err" "$tmp/none/n.bin"
head -c 50 "$s" > "$tmp/short.bin"
refused "a state of 50 bytes" 1 "is damaged: it is truncated" transcribe -q --raw --load-state "$tmp/short.bin" "$tmp/two.raw"
{ cat "$s"; echo; } > "$tmp/long.bin"
refused "a state followed by other bytes" 1 "is damaged" transcribe -q --raw --load-state "$tmp/long.bin" "$tmp/two.raw"

# A process that is killed while it writes, or that cannot write, leaves the old state intact; it can be resumed.
cp "$s" "$tmp/kept.bin"
for how in "killed by a signal" "the disk is full"; do
    ( [ "$how" = "the disk is full" ] && trap '' XFSZ; ulimit -c 0; ulimit -f 2
      exec "$LINNET" transcribe -q --raw --load-state "$tmp/kept.bin" --save-state "$tmp/kept.bin" "$tmp/two.raw" ) 2>&1 |
        cat > "$tmp/full"
    ok "$how: the old state is intact" cmp "$s" "$tmp/kept.bin"
done
has "the disk is full: reported" "$(cat "$tmp/full")" "cannot write $tmp/kept.bin: File too large"
t --raw --load-state "$tmp/kept.bin" --save-state "$tmp/kept.bin" "$tmp/two.raw" > /dev/null
ok "then it is written again" sh -c '! cmp -s "$1" "$2"' - "$s" "$tmp/kept.bin"
is "and nothing is left beside it" "$tmp/kept.bin" "$(ls "$tmp"/kept.bin*)"
finish
