# linnet serve: slow readers, uploads that are too long or pause, more connections than it can hold, who may use it from where.
# Over the loopback interface.
. tests/app/common.sh
. tests/app/serving.sh

# ---- readers that are slow: no final result is lost

# Two seconds of speech again and again, with pauses between, for many utterances; their alternatives fill the connection.
if [ ! -f "$real" ]; then
    echo "skipped: no recorded speech (Debian: pocketsphinx-testdata)"
    finish
fi
for i in 1 2 3 4 5 6; do
    tail -c +45 "$real" | head -c 64000
    head -c 32000 /dev/zero
done > "$tmp/bursts.raw"
for i in 1 2; do cat "$tmp/bursts.raw"; done > "$tmp/many.raw"
end='{"type":"end"}'
start slow --no-words --n-best 200 --beam 200 -j 1
# Without what depends on how fast sound and results pass: the delay, and how many provisional results came before.
finals() { grep '"final"' "$1" | sed 's/"latency_ms":[0-9]*//; s/"revision":[0-9]*,//'; }
talk stream /v1/stream raw="$tmp/many.raw" end="$end" > "$tmp/fast"
talk stream / config='{"config":{"max_alternatives":200}}' raw="$tmp/many.raw" end='{"eof":1}' > "$tmp/fast-vosk"
is "a reader that is fast: its stream ends" "closed 1000 " "$(tail -n 1 "$tmp/fast")"
is "a reader that is fast: no results wait" 0 "$(metric finals_unread_total)"
"$TALK" "$port" stream /v1/stream raw="$tmp/many.raw" end="$end" hold="$tmp/go" > "$tmp/late" &
late=$!
"$TALK" "$port" stream / config='{"config":{"max_alternatives":200}}' raw="$tmp/many.raw" end='{"eof":1}' hold="$tmp/go" > "$tmp/late-vosk" &
vosk=$!
ok "who reads nothing: its sound waits" await metric_is streams_held 2
: > "$tmp/go"
wait $late
wait $vosk
is "then it reads: its stream ends" "closed 1000 " "$(tail -n 1 "$tmp/late")"
finals "$tmp/fast" > "$tmp/fast-finals"
finals "$tmp/late" > "$tmp/late-finals"
ok "then it reads: every final result is there" cmp "$tmp/fast-finals" "$tmp/late-finals"
is "no sound is lost" "$(grep '"type":"end"' "$tmp/fast")" "$(grep '"type":"end"' "$tmp/late")"
ok "provisional results are left out, and counted" metric_over partials_dropped_total 0
is "Vosk: an answer to each message" "$(grep -c '^{' "$tmp/fast-vosk")" "$(grep -c '^{' "$tmp/late-vosk")"
best() { grep '"alternatives"' "$1" | sed 's/"text":"\([^"]*\)".*/\n\1/' | sed -n '2~2p' | paste -s -d ' ' - | sed 's/  */ /g; s/ $//'; } # several may come as one
is "Vosk: every final result is there" "$(best "$tmp/fast-vosk")" "$(best "$tmp/late-vosk")"
is "final results are not left out" 0 "$(metric finals_unread_total)"
stop "slow"

# Who does not read for too long is told why the stream ends, behind all results; who does not read that either is dropped.
start unread --no-words --n-best 200 --beam 200 -j 1 --limits max-unread=1
"$TALK" "$port" stream /v1/stream raw="$tmp/many.raw" end="$end" hold="$tmp/told" > "$tmp/slow" &
slow=$!
ok "a result has waited too long" await metric_is 'errors_total{cause="slow"}' 1
: > "$tmp/told"
wait $slow
# A result that is decided meanwhile may come behind it.
has "the client is told" "$(grep '"type":"error"' "$tmp/slow")" '{"type":"error","message":"the results are read too slowly: one has waited for 1 s"}'
is "and left" "closed 1008 the results are read too slowly: one has waited for 1 s" "$(tail -n 1 "$tmp/slow")"
is "nothing of what was decided before is lost" 0 "$(metric finals_unread_total)"
finals "$tmp/fast" > "$tmp/fast-finals"
finals "$tmp/slow" > "$tmp/slow-finals"
ok "the results before are those of a fast reader" sh -c 'head -n $(wc -l < "$2") "$1" | cmp - "$2"' - "$tmp/fast-finals" "$tmp/slow-finals"
# Of final results only, so that one of them is what waits.
"$TALK" "$port" stream /v1/stream config='{"type":"config","partials":false}' raw="$tmp/many.raw" end="$end" hold="$tmp/never" > "$tmp/slow" &
slow=$!
ok "who never reads is dropped" await metric_over finals_unread_total 0
ok "its place is free" await metric_is streams 0
kill $slow
stop "unread"

# Push to talk: an utterance ends where that was asked for, also in sound that comes faster than it was spoken and waits for its turn.
for i in 4 5 4 5; do
    "$SOUND" "$tmp/vowels.raw" format=raw seconds=1 seed=$i
    cat "$tmp/vowels.raw"
done > "$tmp/talk.raw"
start talk --no-words -j 1
pushed='{"type":"config","push_to_talk":true,"partials":false}'
asked='{"type":"end_utterance"}'
talk stream /v1/stream config="$pushed" raw="$tmp/talk.raw" middle="$asked" at=48000 end="$end" > "$tmp/fast"
talk stream /v1/stream config="$pushed" raw="$tmp/talk.raw" middle="$asked" at=48000 end="$end" paced > "$tmp/paced"
has "an end of an utterance that is asked for" "$(cat "$tmp/fast")" '"ended_by":"asked"'
is "an end of an utterance is where it was asked for" "$(finals "$tmp/paced")" "$(finals "$tmp/fast")"
stop "talk"

# ---- uploads: their length, their work, their gaps, how many, and how slowly they come

# form FILE: the request of a transcription of this sound
form() {
    printf -- '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' > "$tmp/body"
    cat "$1" >> "$tmp/body"
    printf '\r\n--x--\r\n' >> "$tmp/body"
    printf 'POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: %d\r\n\r\n' \
        $(wc -c < "$tmp/body")
    cat "$tmp/body"
}
"$SOUND" "$tmp/short.wav" seconds=2
"$SOUND" "$tmp/longer.wav" seconds=4
"$SOUND" "$tmp/part.au" format=au seconds=10
tail -c +25 "$tmp/part.au" > "$tmp/part"
i=0
cp "$tmp/part.au" "$tmp/hours.au"
while [ $((i += 1)) -le 100 ]; do cat "$tmp/part"; done >> "$tmp/hours.au"
start uploads --no-words --limits max-sound=3,max-per-address=1 -j 1
has "a sound that is short enough" "$(talk post /v1/audio/transcriptions file=@"$tmp/short.wav")" "HTTP/1.1 200"
answer=$(talk post /v1/audio/transcriptions file=@"$tmp/longer.wav")
has "a sound that is too long" "$answer" "HTTP/1.1 413"
has "a sound that is too long: why" "$answer" '"message":"the sound is longer than 3 s"'
has "a sound that is too long to align" "$(talk post /v1/align file=@"$tmp/longer.wav" phones="AA")" '"message":"the sound is longer than 3 s"'
has "which is counted" "$(talk get /metrics)" 'linnet_refused_total{cause="size"} 2'
form "$tmp/short.wav" > "$tmp/request"
head -c 20000 "$tmp/request" > "$tmp/request-1"
tail -c +20001 "$tmp/request" > "$tmp/request-2"
talk send "$tmp/request-1" rest="$tmp/request-2" pause=5.5 > "$tmp/paused" &
paused=$!
ok "an upload is received" await metric_is uploads 1
is "it counts for its address: no stream" "refused 429
retry-after" "$(talk stream /v1/stream)"
has "it counts for its address: no other upload" "$(talk post /v1/audio/transcriptions file=@"$tmp/short.wav")" "HTTP/1.1 429"
wait $paused
has "an upload that pauses goes on" "$(cat "$tmp/paused")" "HTTP/1.1 200"
"$TALK" "$port" stream /v1/stream hold="$tmp/never" > /dev/null &
holder=$!
ok "a stream is open" await metric_is streams 1
has "a stream counts for its address: no upload" "$(talk post /v1/audio/transcriptions file=@"$tmp/short.wav")" "HTTP/1.1 429"
kill $holder
stop "uploads"
# An answer that has begun ends with the error as its last event, and without the whole text.
start streamed --no-words --limits max-sound=20 -j 1
talk post /v1/audio/transcriptions file=@"$tmp/hours.au" stream=true > "$tmp/streamed"
ok "streamed, then too long: it begins" grep -q '"transcript.text.delta"' "$tmp/streamed"
is "streamed, then too long: it ends with the error" "event: error
data: {\"error\":{\"message\":\"the sound is longer than 20 s\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}" \
    "$(tr -d '\r' < "$tmp/streamed" | grep -v '^$' | tail -n 2)"
is "streamed, then too long: no whole text" 0 "$(grep -c 'transcript.text.done' "$tmp/streamed")"
stop "streamed"
start work --no-words --precision fp32 --limits max-sound=1000000,max-work=1 -j 1
has "a sound that takes too long" "$(talk post /v1/audio/transcriptions file=@"$tmp/hours.au")" '"message":"the sound takes more than 1 s of work"'
stop "work"

# When the time to drain is over, uploads are told so: one that is worked on, and one whose body still comes.
start drained --no-words --limits max-sound=1000000,drain=0 -j 1
talk post /v1/audio/transcriptions file=@"$tmp/hours.au" > "$tmp/cut" &
cut=$!
ok "an upload is worked on" await metric_is uploads 1
talk send "$tmp/request-1" rest=/dev/null > "$tmp/unfinished" &
unfinished=$!
ok "another is received" await metric_is uploads 2
stop "drained"
wait $cut $unfinished
for answer in cut unfinished; do
    has "no time to finish: $answer" "$(cat "$tmp/$answer")" "HTTP/1.1 503"
    has "no time to finish: $answer: why" "$(cat "$tmp/$answer")" '"message":"the server is stopping"'
done

# Hours between two timestamps, or before the first one, are a few bytes: they are not filled with silence.
if command -v ffmpeg > /dev/null; then
    ffmpeg -v error -i "$tmp/longer.wav" -c:a libopus "$tmp/whole.mkv" &&
        ffmpeg -v error -i "$tmp/whole.mkv" -c copy -bsf:a 'setts=ts=if(gt(N\,100)\,TS+39600/TB\,TS)' "$tmp/gap.webm" &&
        ffmpeg -v error -f lavfi -i testsrc=size=32x32:rate=1:duration=3 -itsoffset 39600 -i "$tmp/whole.mkv" -map 0:v -map 1:a -c:v libvpx -c:a copy "$tmp/late.webm"
    LINNET_FFMPEG=ffmpeg start gaps --no-words --limits max-sound=100 -j 1
    if [ -s "$tmp/gap.webm" ]; then
        has "11 hours between two timestamps" "$(talk post /v1/audio/transcriptions file=@"$tmp/gap.webm" response_format=verbose_json)" '"duration":4.'
    fi
    if [ -s "$tmp/late.webm" ]; then
        has "11 hours before the first one" "$(talk post /v1/audio/transcriptions file=@"$tmp/late.webm" response_format=verbose_json)" '"duration":34.'
    fi
    stop "gaps"
fi

# ---- more connections than files may be opened

full() {
    log=$tmp/full.log
    : > "$log"
    (ulimit -n 256; exec "$LINNET" serve --listen 127.0.0.1:0 --no-words --max-streams 400 -j 1 --limits idle=600 > "$log" 2>&1) &
    server=$!
    servers="$servers $server"
    ok "the server starts" await grep -q http "$log"
    port=$(sed -n 's,.*http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$log")
}
full
"$CROWD" "$port" silent 300 600 > "$tmp/silent" &
silent=$!
servers="$servers $silent"
ok "300 silent connections" await grep -q "open             300 of 300" "$tmp/silent"
is "others are served" ok "$(talk get /healthz | tail -n 1)"
is "and nothing was logged of it" 1 "$(wc -l < "$log" | tr -d ' ')"
kill $silent
"$CROWD" "$port" idle 300 600 > "$tmp/idle" &
idle=$!
servers="$servers $idle"
ok "no more can be accepted" await grep -q "no more connections are accepted until one is closed" "$log"
talk get /healthz > "$tmp/waited" &
waiter=$!
kill $idle
wait $waiter
is "who waited is served when others are gone" ok "$(tail -n 1 "$tmp/waited")"
is "it was logged once" 1 "$(grep -c "no more connections" "$log")"
stop "full"

# ---- who may use it, from where

printf '# secrets\nabc\n' > "$tmp/tokens"
start entry --no-words -j 1 --tokens "$tmp/tokens" --host speech.example --limits max-upload=1
end='{"type":"end"}'
is "a token among other parameters" "closed 1000 " "$(talk stream '/v1/stream?x=1&access_token=abc&y=a%26b' end="$end" | tail -n 1)"
is "no token among other parameters" "refused 401" "$(talk stream '/v1/stream?x=1&y=access_token=abc' end="$end" | tail -n 1)"
ask() { printf 'GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n' "$1" "$2" "${3:-}" > "$tmp/ask"; talk send "$tmp/ask"; }
crlf=$(printf '\r\nx')
crlf=${crlf%x}
subprotocols() { talk stream "${2:-/v1/realtime}" header="Sec-WebSocket-Protocol: $1" end='{}' leave=error | tail -n 1; }
key=openai-insecure-api-key.abc
has "OpenAI's clients in browsers: the key is a subprotocol" "$(subprotocols "realtime, $key")" '"type":"error"'
has "as earlier versions of them" "$(subprotocols "realtime,$key,openai-beta.realtime-v1")" '"type":"error"'
is "another key" "refused 401" "$(subprotocols "realtime, ${key}d")"
is "no key" "refused 401" "$(subprotocols realtime)"
is "no subprotocol that there is" "refused 400" "$(subprotocols "chat, $key")"
is "the server's own protocol is nobody's" "refused 400" "$(subprotocols "linnet-listening, realtime, $key")"
is "more of them than can be read" "refused 400" "$(subprotocols "realtime, $key$(head -c 100 /dev/zero | tr '\000' a)")"
upgrade="Upgrade: websocket${crlf}Connection: Upgrade${crlf}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==${crlf}Sec-WebSocket-Version: 13$crlf"
has "the answer selects realtime" "$(ask /v1/realtime localhost "${upgrade}Sec-WebSocket-Protocol: realtime, $key$crlf")" "Sec-WebSocket-Protocol: realtime"
has "an unknown one: why" "$(ask /v1/realtime localhost "${upgrade}Sec-WebSocket-Protocol: chat$crlf")" '"message":"of the subprotocols'
h2c="Connection: Upgrade, HTTP2-Settings${crlf}Upgrade: h2c${crlf}HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA${crlf}"
has "HTTP/2 is offered: the answer is HTTP/1.1's" "$(ask /healthz localhost "$h2c")" "HTTP/1.1 200"
is "HTTP/2 is offered: all of it" ok "$(ask /healthz localhost "$h2c" | tail -n 1)"
for host in "localhost:$port" "127.0.0.1:$port" "[::1]:$port" 10.1.2.3 speech.example SPEECH.example:80; do
    has "asked for as $host" "$(ask /healthz "$host")" "HTTP/1.1 200"
done
for host in evil.example "evil.example:$port" localhost.evil.example 127.0.0.1.evil.example; do
    has "asked for as $host" "$(ask / "$host" "Origin: http://$host$crlf")" "HTTP/1.1 421"
done
has "which is counted" "$(talk get /metrics)" 'linnet_refused_total{cause="host"} 4'
# A refusal is the answer of a client that sends all of its body first: it is read and thrown away.
head -c 20000000 /dev/zero > "$tmp/large"
for chunked in '' chunked; do
    answer=$(talk post /v1/audio/transcriptions $chunked file=@"$tmp/large")
    has "a refusal of a large body $chunked" "$answer" "HTTP/1.1 401"
    hasnt "all of it is taken" "$answer" "the body was not taken"
    answer=$(talk post '/v1/audio/transcriptions?access_token=abc' $chunked file=@"$tmp/large")
    has "a body that is too large $chunked" "$answer" "HTTP/1.1 413"
    hasnt "all of it is taken" "$answer" "the body was not taken"
done
printf 'def\n' > "$tmp/tokens"
kill -HUP "$server"
ok "the tokens are read again" await grep -q "the tokens were read again" "$log"
is "an old token" "refused 401" "$(talk stream '/v1/stream?access_token=abc')"
is "a new token" "closed 1000 " "$(talk stream '/v1/stream?access_token=def' end="$end" | tail -n 1)"
hasnt "no token is in the log" "$(cat "$log")" "def"
has "a token that can be guessed is named" "$(cat "$log")" "tokens:1: a token of less than 16 signs can be guessed"
printf '\n' > "$tmp/tokens"
kill -HUP "$server"
ok "an empty file is not read" await grep -q "the tokens were not read again: .*tokens has no token" "$log"
rm "$tmp/tokens"
kill -HUP "$server"
ok "there are none to be read" await grep -q "the tokens were not read again: cannot open" "$log"
is "those before remain" "closed 1000 " "$(talk stream '/v1/stream?access_token=def' end="$end" | tail -n 1)"
: > "$tmp/nothing"
has "an empty state" "$(talk stream '/v1/stream?access_token=def' config='{"type":"config","resume":true}' resume="$tmp/nothing" raw="$tmp/bursts.raw" end="$end")" "closed 1008 the state to resume is empty"
has "no state" "$(talk stream '/v1/stream?access_token=def' config='{"type":"config","resume":true}' end="$end")" "closed 1008 no state came to resume"
stop "entry"

# A state is of the token of its stream; the file of the tokens may begin with a byte order mark.
printf '\357\273\277ours-0123456789ab\ntheirs-0123456789\n' > "$tmp/tokens"
head -c 16 /dev/urandom > "$tmp/key"
start bound --no-words -j 1 --tokens "$tmp/tokens" --state-key "$tmp/key"
hasnt "tokens that are long enough" "$(cat "$log")" "guessed"
ours='/v1/stream?access_token=ours-0123456789ab'
resume='{"type":"config","resume":true}'
talk stream "$ours" config='{"type":"config","state_s":1}' raw="$tmp/bursts.raw" end="$end" state="$tmp/state" > "$tmp/saved"
is "a stream with states" "closed 1000 " "$(tail -n 1 "$tmp/saved")"
is "a state goes on with its token" "closed 1000 " "$(talk stream "$ours" config="$resume" resume="$tmp/state" end="$end" | tail -n 1)"
has "a state with another token" "$(talk stream '/v1/stream?access_token=theirs-0123456789' config="$resume" resume="$tmp/state" end="$end")" \
    "closed 1008 the state was saved for another token"
stop "bound"
start unbound --no-words -j 1 --state-key "$tmp/key"
has "a state with a token where there are none" "$(talk stream "$ours" config="$resume" resume="$tmp/state" end="$end")" "closed 1008 the state was saved for another token"
stop "unbound"

# ---- who leaves while phrases are looked up, or wait for that, is not waited for

# The lexicon is a pipe that the server is given. It has more than fits into a pipe, so that its writer is there until the server reads.
mkfifo "$tmp/dict"
{ printf 'he HH IY\nwas W AA Z\n'; yes ';;; a comment' | head -n 20000; } > "$tmp/dict" &
exec 9< "$tmp/dict"
start lookup --lexicon /dev/fd/9 --no-words --beam 4 -j 1
exec 8<> "$tmp/dict" # from here on it is not read to its end before this test closes it
for i in 1 2; do
    "$TALK" "$port" stream /v1/stream config='{"type":"config","phrases":["he was"]}' raw="$tmp/bursts.raw" hold="$tmp/never" > /dev/null &
    leavers="${leavers:-} $!"
done
ok "two streams look up phrases" await metric_is streams 2
kill $leavers
ok "they leave: the server goes on" await timeout 60 "$TALK" "$port" get /healthz
ok "they leave: their places are free" await metric_is streams 0
is "another stream" "closed 1000 " "$(talk stream /v1/stream raw="$tmp/bursts.raw" end="$end" | tail -n 1)"
exec 8>&- 9<&-
stop "lookup"

# ---- SIGHUP without tokens: nothing is interrupted, however often it comes

start hangup --no-words -j 1
"$TALK" "$port" stream /v1/stream raw="$tmp/bursts.raw" end="$end" hold="$tmp/hung-up" > "$tmp/held" &
held=$!
ok "a stream is open" await metric_is streams 1
hung_up() { [ "$(grep -c 'no --tokens' "$log")" = "$1" ]; }
for i in 1 2; do
    kill -HUP "$server"
    ok "SIGHUP $i: the server says that it has no tokens" await hung_up $i
    has "SIGHUP $i: an upload" "$(talk post /v1/audio/transcriptions file=@"$tmp/short.wav")" "HTTP/1.1 200"
done
: > "$tmp/hung-up"
wait $held
is "the stream gets its results" "closed 1000 " "$(tail -n 1 "$tmp/held")"
stop "hangup"
finish
