# linnet serve: slow readers, uploads that are too long or pause, more connections than it can hold, who may use it from where.
# Over the loopback interface.
. tests/app/common.sh
. tests/app/serving.sh

# ---- readers that are slow: no final result is lost

# Bursts of noise with pauses between, for many utterances; their alternatives fill the connection.
i=0
while [ $((i += 1)) -le 12 ]; do
    "$SOUND" "$tmp/burst.raw" format=raw seconds=1.5 seed=$((i % 4))
    cat "$tmp/burst.raw"
    head -c 32000 /dev/zero
done > "$tmp/bursts.raw"
for i in 1 2 3; do cat "$tmp/bursts.raw"; done > "$tmp/many.raw"
end='{"type":"end"}'


start slow --no-words --n-best 500 --beam 500 -j 1
finals() { grep '"final"' "$1" | sed 's/"latency_ms":[0-9]*//'; }
talk stream /v1/stream raw="$tmp/many.raw" end="$end" > "$tmp/fast"
talk stream / config='{"config":{"max_alternatives":500}}' raw="$tmp/many.raw" end='{"eof":1}' > "$tmp/fast-vosk"
is "a reader that is fast: its stream ends" "closed 1000 " "$(tail -n 1 "$tmp/fast")"
is "a reader that is fast: no results wait" 0 "$(metric finals_unread_total)"
talk stream /v1/stream raw="$tmp/many.raw" end="$end" hold="$tmp/go" > "$tmp/late" &
late=$!
talk stream / config='{"config":{"max_alternatives":500}}' raw="$tmp/many.raw" end='{"eof":1}' hold="$tmp/go" > "$tmp/late-vosk" &
vosk=$!
await "who reads nothing: its sound waits" metric_is streams_held 2
: > "$tmp/go"
wait $late
wait $vosk
is "then it reads: its stream ends" "closed 1000 " "$(tail -n 1 "$tmp/late")"
finals "$tmp/fast" > "$tmp/fast-finals"
finals "$tmp/late" > "$tmp/late-finals"
ok "then it reads: every final result is there" cmp "$tmp/fast-finals" "$tmp/late-finals"
is "no sound is lost" "$(grep '"type":"end"' "$tmp/fast")" "$(grep '"type":"end"' "$tmp/late")"
ok "provisional results are left out, and counted" metric_over partials_dropped_total 0
grep '"alternatives"' "$tmp/fast-vosk" > "$tmp/fast-finals"
grep '"alternatives"' "$tmp/late-vosk" > "$tmp/late-finals"
is "Vosk: an answer to each message" "$(grep -c '^{' "$tmp/fast-vosk")" "$(grep -c '^{' "$tmp/late-vosk")"
ok "Vosk: every final result is there" cmp "$tmp/fast-finals" "$tmp/late-finals"
is "final results are not left out" 0 "$(metric finals_unread_total)"
stop "slow"

# Who does not read for too long is told why the stream ends, behind all results; who does not read that either is dropped.
start unread --no-words --n-best 500 --beam 500 -j 1 --max-unread 1
talk stream /v1/stream raw="$tmp/many.raw" end="$end" hold="$tmp/told" > "$tmp/slow" &
slow=$!
await "a result has waited too long" metric_is 'errors_total{cause="slow"}' 1
: > "$tmp/told"
wait $slow
has "the client is told" "$(tail -n 2 "$tmp/slow")" '{"type":"error","message":"the results are read too slowly: one has waited for 1 s"}'
is "and left" "closed 1008 the results are read too slowly: one has waited for 1 s" "$(tail -n 1 "$tmp/slow")"
is "nothing of what was decided before is lost" 0 "$(metric finals_unread_total)"
finals "$tmp/fast" > "$tmp/fast-finals"
finals "$tmp/slow" > "$tmp/slow-finals"
ok "the results before are those of a fast reader" sh -c 'head -n $(wc -l < "$2") "$1" | cmp - "$2"' - "$tmp/fast-finals" "$tmp/slow-finals"
talk stream /v1/stream raw="$tmp/many.raw" end="$end" hold="$tmp/never" > "$tmp/slow" &
slow=$!
await "who never reads is dropped" metric_over finals_unread_total 0
await "its place is free" metric_is streams 0
kill $slow
stop "unread"
finish
