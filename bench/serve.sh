#!/bin/sh
# bench/serve.sh [STREAMS] [SECONDS] [SERVE OPTIONS...]: linnet serve under load: so many clients at once send speech as fast as it is
# spoken, over the loopback interface. Prints the lag of results (from the arrival of a row's sound until its results), what was lost
# and refused, and the memory and processor time of the server; 200 connections more are open and silent.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release}
streams=${1:-50} seconds=${2:-30}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
talk=$B/tests/app/talk
make -s NVCC= "$B/linnet" "$B/liblinnet_web.so" "$talk" "$B/tests/app/sound"
tmp=$(mktemp -d)
server= clients=
trap 'kill $server $clients 2> /dev/null; rm -rf "$tmp"' EXIT
speech=/usr/share/pocketsphinx/test/data/librivox
: > "$tmp/speech.raw"
for f in "$speech"/*.wav; do [ ! -f "$f" ] || tail -c +45 "$f" >> "$tmp/speech.raw"; done
[ -s "$tmp/speech.raw" ] || "$B/tests/app/sound" "$tmp/speech.raw" format=raw seconds=20
while [ "$(wc -c < "$tmp/speech.raw")" -lt $((seconds * 32000)) ]; do cat "$tmp/speech.raw" "$tmp/speech.raw" > "$tmp/x" && mv "$tmp/x" "$tmp/speech.raw"; done
head -c $((seconds * 32000)) "$tmp/speech.raw" > "$tmp/x"

"$B/linnet" serve --listen 127.0.0.1:0 --max-streams $((streams + 200)) --max-lag-ms 0 --idle 600 "$@" 2> "$tmp/log" &
server=$!
port=
while [ -z "$port" ]; do
    sleep 0.2
    kill -0 $server
    port=$(sed -n 's,.*http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$tmp/log")
done
idle=0
while [ $idle -lt 200 ]; do
    "$talk" "$port" stream /v1/stream > /dev/null 2>&1 &
    clients="$clients $!"
    idle=$((idle + 1))
done
sleep 1
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
used=$(awk '{ print ($14 + $15) / 100 }' /proc/$server/stat)
now=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$server/status)
for p in $waited; do wait "$p" || true; done
echo "streams          $streams, and 200 silent connections; $seconds s each; linnet serve $*"
sed -n 's/^linnet_lag_seconds{quantile="\([0-9.]*\)"} \(.*\)/lag p\1         \2 s, of the last 10 s/p; s/^linnet_lost_samples_total/lost samples    /p' "$tmp/metrics"
echo "ended well       $(grep -l '"reason":"ended"' "$tmp"/out.* | wc -l) of $streams"
echo "utterances       $(cat "$tmp"/out.* | grep -c '"type":"final"')"
echo "memory           $((memory / 1024)) MB before, $((now / 1024)) MB during"
echo "processor time   $used s"
