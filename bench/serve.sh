#!/bin/sh
# bench/serve.sh [STREAMS] [SECONDS] [SERVE OPTIONS...]: linnet serve under load: so many clients at once send speech as fast as it is
# spoken, over the loopback interface. Prints the lag of results (from the arrival of a row's sound until its results; of all
# streams, those that misbehave too), the latency that the clients were told, what was lost, and the memory and processor time of the
# server. IDLE=200: so many connections more are open and silent; HOSTILE=0: so many more misbehave (tests/app/crowd.c).
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release}
streams=${1:-50} seconds=${2:-30}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
IDLE=${IDLE:-200} HOSTILE=${HOSTILE:-0}
talk=$B/tests/app/talk crowd=$B/tests/app/crowd
make -s NVCC= "$B/linnet" "$B/liblinnet_web.so" "$talk" "$crowd" "$B/tests/app/sound"
tmp=$(mktemp -d)
server= clients=
trap 'kill $server $clients 2> /dev/null; rm -rf "$tmp"' EXIT
speech=/usr/share/pocketsphinx/test/data/librivox
: > "$tmp/speech.raw"
for f in "$speech"/*.wav; do [ ! -f "$f" ] || tail -c +45 "$f" >> "$tmp/speech.raw"; done
[ -s "$tmp/speech.raw" ] || "$B/tests/app/sound" "$tmp/speech.raw" format=raw seconds=20
while [ "$(wc -c < "$tmp/speech.raw")" -lt $((seconds * 32000)) ]; do cat "$tmp/speech.raw" "$tmp/speech.raw" > "$tmp/x" && mv "$tmp/x" "$tmp/speech.raw"; done
head -c $((seconds * 32000)) "$tmp/speech.raw" > "$tmp/x"

"$B/linnet" serve --listen 127.0.0.1:0 --max-streams $((streams + IDLE + HOSTILE)) --max-lag-ms 0 --idle 600 "$@" 2> "$tmp/log" &
server=$!
port=
while [ -z "$port" ]; do
    sleep 0.2
    kill -0 $server
    port=$(sed -n 's,.*http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$tmp/log")
done
begun=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$server/status)
for kind in idle hostile; do
    n=$IDLE
    [ $kind = idle ] || n=$HOSTILE
    [ "$n" -gt 0 ] || continue
    "$crowd" "$port" $kind "$n" $((seconds + 5)) > "$tmp/$kind" &
    clients="$clients $!"
    while ! grep -qs open "$tmp/$kind"; do sleep 0.1; done
done
used() { awk '{ print ($14 + $15) / 100 }' /proc/$server/stat; }
before=$(used)
memory=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$server/status)
waited= i=0
while [ $i -lt "$streams" ]; do
    "$talk" "$port" stream /v1/stream raw="$tmp/x" chunk=1280 paced end='{"type":"end"}' > "$tmp/out.$i" 2>&1 &
    waited="$waited $!"
    clients="$clients $!"
    i=$((i + 1))
done
sleep $((seconds - 4))
"$talk" "$port" get /metrics > "$tmp/metrics"
used=$(used)
now=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$server/status)
for p in $waited; do wait "$p" || true; done
for p in $clients; do wait "$p" || true; done
echo "streams          $streams; $seconds s each; linnet serve $*"
for kind in idle hostile; do [ ! -f "$tmp/$kind" ] || sed "s/^/$kind /" "$tmp/$kind"; done
sed -n 's/^linnet_lag_seconds{quantile="\([0-9.]*\)"} \(.*\)/lag p\1         \2 s, of the last 10 s/p; s/^linnet_lost_samples_total/lost samples    /p' "$tmp/metrics"
cat "$tmp"/out.* | sed -n 's/.*"type":"partial".*"latency_ms":\([0-9]*\).*/\1/p' | sort -n | awk '{ x[NR] = $1 }
    END { printf "latency          p50 %d, p95 %d, p99 %d ms of %d partial results, from the end of the sound that they tell of\n",
          x[int(NR * 0.5) + 1], x[int(NR * 0.95) + 1], x[int(NR * 0.99) + 1], NR }'
echo "ended well       $(grep -l '"reason":"ended"' "$tmp"/out.* | wc -l) of $streams"
echo "utterances       $(cat "$tmp"/out.* | grep -c '"type":"final"')"
echo "memory           $((begun / 1024)) MB at the start, $((memory / 1024)) MB with the other connections, $((now / 1024)) MB during"
sed -n 's/^linnet_errors_total{cause="\([a-z]*\)"} \(.*\)/errors           \2 (\1)/p' "$tmp/metrics"
echo "processor time   $(awk "BEGIN { print $used - $before }") s, after $before s for the start and the other connections"
