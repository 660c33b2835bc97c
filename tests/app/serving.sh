# serving.sh - what the tests of linnet serve share; sourced after common.sh. Where there is no server to test, it ends the test, or
# leaves $has_server empty if the test has set $serverless.
#
#   start NAME OPTIONS...     a server on any free port: $port, $server, $log
#   talk ARGS...              a client of it (talk.c)
#   metric NAME               a value of /metrics; NAME may have labels, errors_total{cause="slow"}
#   metric_is NAME VALUE, metric_over NAME VALUE   what await can wait for
#   stop NAME                 ends the last server with SIGTERM
#   texts FILE                the final texts of a stream in linnet's protocol
#   $real, $speech            a recorded sentence, which may not exist, and it or sounds of its length: speech.wav, speech.raw,
#                             and twice.raw, with a pause between

TALK=$(dirname "$LINNET")/tests/app/talk
CROWD=$(dirname "$LINNET")/tests/app/crowd
has_server=1
[ -f "$(dirname "$LINNET")/liblinnet_web.so" ] || has_server=
if [ -z "$has_server$serverless" ]; then
    echo "skipped: linnet was built without libwebsockets (Debian: libwebsockets-dev)"
    finish
fi
real=/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav
speech=$tmp/speech.wav
if [ -f "$real" ]; then cp "$real" "$speech"; else "$SOUND" "$speech" seconds=3 seed=2; fi
tail -c +45 "$speech" > "$tmp/speech.raw"
head -c 38400 /dev/zero > "$tmp/pause"
cat "$tmp/speech.raw" "$tmp/pause" "$tmp/speech.raw" > "$tmp/twice.raw"
servers=
trap 'kill -9 $servers 2> /dev/null; chmod -R u+w "$tmp" 2>/dev/null; rm -rf "$tmp"' EXIT

# A busy machine is slow: a client may be idle, or not read, for longer than any test takes, unless that is what is tested.
start() {
    log=$tmp/$1.log
    shift
    : > "$log"
    "$LINNET" serve --listen 127.0.0.1:0 --limits max-lag-ms=0,max-unread=86400,idle=3600 "$@" > "$log" 2>&1 &
    server=$!
    servers="$servers $server"
    await listens_or_ended
    [ -z "$port" ] || return 0
    fail "the server starts" "$(cat "$log")"
    finish
}
listens_or_ended() {
    port=$(sed -n 's,.*http[s]*://127.0.0.1:\([0-9]*\)/.*,\1,p' "$log")
    [ -n "$port" ] || runs_no_more "$server"
}
talk() { "$TALK" "$port" "$@" 2>&1; }
metric() { talk get /metrics | sed -n "s/^linnet_$1 \([0-9.]*\)\$/\1/p"; }
metric_is() { [ "$(metric "$1")" = "$2" ]; }
metric_over() { [ "$(metric "$1" | cut -d. -f1)" -gt "$2" ]; }
stop() {
    kill "$server"
    wait "$server"
    is "$1: it ends well" 0 $?
    hasnt "$1: no sanitizer report" "$(cat "$log")" "Sanitizer"
    hasnt "$1: no error at run time" "$(cat "$log")" "runtime error"
}
texts() { sed -n 's/^{"type":"final".*"text":"\([^"]*\)".*/\1/p' "$1"; }
