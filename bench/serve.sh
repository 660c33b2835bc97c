#!/bin/sh
# bench/serve.sh [STREAMS] [SECONDS] [SERVE OPTIONS...]: linnet serve under load: so many clients at once send speech as fast as it is
# spoken, over the loopback interface, all from one process (tests/app/crowd.c). Prints how late they sent, the reported latency (from
# the end of a result's sound until it was sent), the lag of the engine (from the arrival of a row's sound until its results, over the
# last 10 s), lost samples, and the memory and processor time of the server; of runs over a minute also each minute's.
# IDLE=200: number of additional silent connections; HOSTILE=0: of misbehaving ones; FIRST: the first message of each stream.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release}
streams=${1:-50} seconds=${2:-30}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
IDLE=${IDLE:-200} HOSTILE=${HOSTILE:-0} FIRST=${FIRST:-}
talk=$B/tests/app/talk crowd=$B/tests/app/crowd
make -s NVCC= "$B/linnet" "$B/liblinnet_web.so" "$talk" "$crowd" "$B/tests/app/sound"
tmp=$(mktemp -d)
server= clients=
trap 'kill $server $clients 2> /dev/null || true; rm -rf "$tmp"' EXIT
speech=/usr/share/pocketsphinx/test/data/librivox
: > "$tmp/speech.raw"
for f in "$speech"/*.wav; do [ ! -f "$f" ] || tail -c +45 "$f" >> "$tmp/speech.raw"; done
[ -s "$tmp/speech.raw" ] || "$B/tests/app/sound" "$tmp/speech.raw" format=raw seconds=20
: > "$tmp/log"

"$B/linnet" serve --listen 127.0.0.1:0 --max-streams $((streams + IDLE + HOSTILE)) --limits max-lag-ms=0,idle=$((seconds + 600)) "$@" 2> "$tmp/log" &
server=$!
port=
while [ -z "$port" ]; do
    sleep 0.2
    kill -0 $server
    port=$(sed -n 's,.*http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$tmp/log")
done
memory() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$server/status; }
used() { awk '{ print ($14 + $15) / 100 }' /proc/$server/stat; }
of() { sed -n "s/^linnet_$1 //p" "$tmp/metrics"; }
begun=$(memory)
for kind in idle hostile; do
    n=$IDLE
    [ $kind = idle ] || n=$HOSTILE
    [ "$n" -gt 0 ] || continue
    "$crowd" "$port" $kind "$n" $((seconds + 5)) > "$tmp/$kind" &
    clients="$clients $!"
    while ! grep -qs open "$tmp/$kind"; do sleep 0.1; done
done
before=$(used) memory=$(memory) most=0
"$crowd" "$port" speak "$streams" "$seconds" "$tmp/speech.raw" ${FIRST:+"$FIRST"} > "$tmp/speak" &
speakers=$!
clients="$clients $speakers"
echo "streams          $streams; $seconds s each${FIRST:+, $FIRST}; linnet serve $*"
s=0
while s=$((s + 1)) && [ $s -lt "$seconds" ]; do
    sleep 1
    if [ $((s % 60)) = 0 ] || [ $s = $((seconds - 1)) ]; then
        "$talk" "$port" get /metrics > "$tmp/metrics"
        now=$(memory)
        [ "$now" -lt "$most" ] || most=$now
        echo "second $s: $(of streams) streams, lag p50/p95/p99 $(of 'lag_seconds{quantile="0.5"}')/$(of 'lag_seconds{quantile="0.95"}')/$(of 'lag_seconds{quantile="0.99"}') s, lost $(of lost_samples_total), $now KB resident, $(awk "BEGIN { print $(used) - $before }") s of processor time"
    fi
done
wait $speakers || true
for p in $clients; do wait "$p" || true; done
for kind in idle hostile; do [ ! -f "$tmp/$kind" ] || sed "s/^/$kind /" "$tmp/$kind"; done
grep -v '^open' "$tmp/speak"
echo "memory           $((begun / 1024)) MB at the start, $((memory / 1024)) MB with the other connections, $((most / 1024)) MB at most during; $(of stream_bytes) bytes a stream in the engine"
sed -n 's/^linnet_errors_total{cause="\([a-z]*\)"} \(.*\)/errors           \2 (\1)/p' "$tmp/metrics"
echo "processor time   $(awk "BEGIN { print $(used) - $before }") s, after $before s for the start and the other connections"
