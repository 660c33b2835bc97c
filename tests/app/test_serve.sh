# linnet serve: files and alignment over HTTP, both protocols of streams, who may use it, limits, hostile and slow clients, stopping.
# Over the loopback interface.
. tests/app/common.sh

. tests/app/serving.sh

named=

# A client that answers no pings, as one whose answers wait behind its sound, is there as long as it sends. Without that it would be
# disconnected after 20 s.
start mute --no-words -j 1 --limits idle=20,max-unread=10
mute_server=$server
for i in 1 2 3 4 5; do cat "$tmp/twice.raw"; done | head -c 768000 > "$tmp/long.raw" # 24 s
talk stream /v1/stream raw="$tmp/long.raw" paced mute end='{"type":"end"}' > "$tmp/mute" &
mute=$!

# ---- files

start words --tune context-bonus=12
says=$("$LINNET" transcribe --words -q "$speech")
is "healthz" ok "$(talk get /healthz | tail -n 1)"
is "readyz" ready "$(talk get /readyz | tail -n 1)"
page=$(talk get /)
has "the page" "$page" "<title>linnet</title>"
has "the page: nothing from elsewhere" "$page" "content-security-policy: default-src 'self'"
for name in $(sed -n 's/.*\(src\|href\)="\([a-z.]*\)".*/\2/p; s,.*from "\./\([a-z.]*\)".*,\1,p; s/.*addModule("\([a-z.]*\)").*/\1/p' share/linnet/web/*); do
    ok "the page: $name" sh -c 'case $1 in "HTTP/1.1 200"*) ;; *) exit 1 ;; esac' - "$(talk get "/$name")"
    named="$named $name"
done
is "the page: every file is used" "$(ls share/linnet/web | grep -v index.html | paste -s -d ' ' -)" "$(printf '%s\n' $named | sort -u | paste -s -d ' ' -)"
is "the page: it names no other server" "" "$(grep -lE '(https?:)?//[a-z]' share/linnet/web/* | xargs -r grep -hoE "(src|href|import|from|fetch)[=( \"']+(https?:)?//[a-z.]*")"
has "another address" "$(talk get /nothing)" "HTTP/1.1 404"
has "a plain request for a WebSocket" "$(talk get /v1/stream)" "HTTP/1.1 426"
has "a plain request for a WebSocket: what it is" "$(talk get /v1/realtime)" "this address is a WebSocket's"
has "another method" "$(talk post /healthz)" "HTTP/1.1 405"
has "with the one that there is" "$(talk post /healthz)" "allow: GET, HEAD, OPTIONS"
has "or" "$(talk get /v1/align)" "allow: POST, OPTIONS"
answer=$(talk post /v1/audio/transcriptions file=@"$speech" model=whisper-1)
has "json: status" "$answer" "HTTP/1.1 200"
is "json: the text of linnet transcribe" "{\"text\":\"$says\"}" "$(printf '%s' "$answer" | tail -n 1)"
for format in srt vtt textgrid ctm csv; do
    "$LINNET" transcribe --words -q -f $format "$speech" | sed 's/^speech /sound /; s/^speech,/sound,/' | tr -d '\r' > "$tmp/want"
    talk post /v1/audio/transcriptions file=@"$speech" response_format=$format | tr -d '\r' | sed '1,/^$/d' > "$tmp/got"
    ok "$format: what linnet transcribe writes" cmp "$tmp/want" "$tmp/got"
done
answer=$(talk post /v1/audio/transcriptions file=@"$speech" response_format=verbose_json 'timestamp_granularities[]=word' 'timestamp_granularities[]=segment' | tail -n 1)
has "verbose_json: duration" "$answer" '"duration":2.9'
has "verbose_json: words" "$answer" '"words":[{"word":"he","start":0.2'
has "verbose_json: segments" "$answer" '"segments":[{"id":0,"seek":0,"start":0.2'
if command -v python3 > /dev/null; then ok "verbose_json is JSON" sh -c 'printf %s "$1" | python3 -m json.tool' - "$answer"; fi
answer=$(talk post /v1/audio/transcriptions file=@"$tmp/want")
has "no sound: status" "$answer" "HTTP/1.1 400"
has "no sound: the message" "$answer" '"message":"the file is not an audio file'
hasnt "no sound: no path of the machine" "$answer" "linnet-"
has "no file" "$(talk post /v1/audio/transcriptions model=x)" '"message":"the form has no file"'
has "an unknown format" "$(talk post /v1/audio/transcriptions file=@"$speech" response_format=x)" "HTTP/1.1 400"
answer=$(talk post /v1/align file=@"$speech" text="$says" response_format=ctm)
is "align: what linnet align writes" "$("$LINNET" align -f ctm --text "$says" "$speech" 2> /dev/null | sed 's/^speech /sound /')" \
    "$(printf '%s\n' "$answer" | tr -d '\r' | sed '1,/^$/d')"
has "align: the type of subtitles" "$(talk post /v1/align file=@"$speech" text="$says" response_format=vtt)" "content-type: text/vtt; charset=utf-8"
has "align: json with goodness" "$(talk post /v1/align file=@"$speech" text="$says")" '"goodness":'
has "align: phonemes" "$(talk post /v1/align file=@"$speech" phones="HH IY W AA Z")" '"phone":"HH"'
has "align: no text" "$(talk post /v1/align file=@"$speech")" "HTTP/1.1 400"
has "align: another text" "$(talk post /v1/align file=@"$speech" text='completely different')" '"warning":"'
is "no temporary file is left" "" "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'linnet-??????' -newer "$tmp/pause" 2> /dev/null)"

# ---- streams

plain=$(printf '%s' "$says" | tr 'A-Z' 'a-z' | tr -d '.,?')
both=$("$LINNET" listen --words --no-readable -q --no-paced --raw --from "$tmp/twice.raw")
is "two sentences" 2 "$(printf '%s\n' "$both" | wc -l | tr -d ' ')"
lines=$(talk stream / config='{"config":{"sample_rate":16000}}' raw="$tmp/twice.raw" wait end='{"eof" : 1}')
is "Vosk: an answer to each message, and to the end" $((($(wc -c < "$tmp/twice.raw") + 3199) / 3200 + 1)) \
    "$(printf '%s\n' "$lines" | grep -c '^{"[prt]')"
is "Vosk: the text" "$both" "$(printf '%s\n' "$lines" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')"
has "Vosk: words with times" "$lines" '{"result":[{"conf":0.9'
has "Vosk: partial results" "$lines" '{"partial":"he was'
is "Vosk: the end" "closed 1000 " "$(printf '%s\n' "$lines" | tail -n 1)"
lines=$(talk stream / config='{"config":{"words":0}}' raw="$tmp/speech.raw" chunk=999999 end='{"eof":1}')
is "Vosk: one message, as fast as it can, without words" "{\"text\":\"$plain\"}" "$(printf '%s\n' "$lines" | tail -n 2 | head -n 1)"
is "Vosk: a rate as text, and a config after sound, which means nothing" "{\"text\":\"$plain\"}" \
    "$(talk stream / config='{"config":{"sample_rate":"16000.0","words":0}}' middle='{"config":{"sample_rate":8000,"words":1}}' raw="$tmp/speech.raw" end='{"eof":1}' | grep '"text"')"
lines=$(talk stream / config='{"config":{"words":0}}' middle='{"reset" : 1}' at="$(wc -c < "$tmp/speech.raw")" wait raw="$tmp/twice.raw" end='{"eof" : 1}')
is "Vosk: a reset: all before it, then anew" "$plain $plain" "$(printf '%s\n' "$lines" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p' | paste -s -d ' ' - | sed 's/  */ /g; s/ $//')"
(cat "$tmp/speech.raw"; printf x; cat "$tmp/speech.raw") > "$tmp/odd.raw"
first=$(($(wc -c < "$tmp/speech.raw") + 1))
is "Vosk: half a sample before a reset does not shift what follows" "$plain $plain" "$(talk stream / config='{"config":{"words":0}}' middle='{"reset" : 1}' \
    chunk=$first at=$((2 * first)) wait raw="$tmp/odd.raw" end='{"eof" : 1}' | sed -n 's/.*"text":"\([^"]*\)".*/\1/p' | paste -s -d ' ' - | sed 's/  */ /g; s/ $//')"
likely() { talk stream / config="{\"config\":{\"words\":0,\"phrase_list\":[$1]}}" raw="$tmp/speech.raw" end='{"eof":1}' | grep '"text"'; }
if [ -f "$real" ]; then
    has "Vosk: phrases and no others, in any order" "$(likely '"young men","old","supposed","!!","he was not an"')" "old supposed young men"
fi
is "Vosk: no sound" '{"text":""}' "$(talk stream / end='{"eof":1}' | head -n 1)"
is "Vosk: alternatives" 1 "$(talk stream / config='{"config":{"max_alternatives":2}}' raw="$tmp/speech.raw" end='{"eof":1}' |
    grep -c '{"alternatives":\[{"confidence":0.[0-9]*,"result":\[{')"
lines=$(talk stream /v1/stream raw="$tmp/twice.raw" chunk=5000 end='{"type":"end"}')
is "stream: the texts" "$both" "$(printf '%s\n' "$lines" | sed -n 's/^{"type":"final".*"text":"\([^"]*\)".*/\1/p')"
has "stream: it begins" "$(printf '%s\n' "$lines" | head -n 1)" '{"type":"begin","source":"stream","rate_hz":16000'
has "stream: settled and provisional" "$lines" '"stable":"he was'
has "stream: phonemes as they settle" "$lines" '"new_phones":[{"phone":"HH","start":0.2'
head -c 6401 "$tmp/speech.raw" > "$tmp/cut.raw"
lines_cut=$(talk stream /v1/stream raw="$tmp/cut.raw" end='{"type":"end"}')
has "stream: a byte too many is reported" "$lines_cut" '"reason":"ended","warning":"the sound breaks off: its last byte is left out","seconds":0.200'
has "stream: to those who do not read JSON, and in the log" "$lines_cut" "closed 1000 the sound breaks off: its last byte is left out"
has "stream: half a frame too" "$(talk stream /v1/stream config='{"type":"config","channels":3}' raw="$tmp/cut.raw" end='{"type":"end"}')" 'its last 5 bytes are left out","seconds":0.067'
has "Vosk: a byte too many" "$(talk stream / raw="$tmp/cut.raw" end='{"eof":1}' | tail -n 1)" "closed 1000 the sound breaks off: its last byte"
has "stream: it ends" "$lines" '{"type":"end","reason":"ended","seconds":7.1'
if command -v python3 > /dev/null; then
    ok "stream: every line is JSON" sh -c 'printf "%s\n" "$1" | sed \$d | while read -r l; do printf %s "$l" | python3 -m json.tool || exit 1; done' - "$(printf '%s\n' "$lines" | tail -n 4)"
fi
has "stream: readable text on the way" "$(talk stream /v1/stream config='{"type":"config","readable":true}' raw="$tmp/twice.raw" end='{"type":"end"}' | grep '"type":"partial"')" '"readable":"He was not'
hasnt "stream: only if it is asked for" "$(printf '%s\n' "$lines" | grep '"type":"partial"')" '"readable"'
is "stream: without partial results" "" "$(talk stream /v1/stream config='{"type":"config","partials":false}' raw="$tmp/speech.raw" end='{"type":"end"}' | grep '"partial"')"
# Sound at another rate.
"$SOUND" "$tmp/vowels.wav" rate=8000 seconds=6 seed=7
tail -c +45 "$tmp/vowels.wav" > "$tmp/vowels.raw"
want=$("$LINNET" listen --words --no-readable -q --no-paced --from "$tmp/vowels.wav")
ok "words at 8 kHz" [ -n "$want" ]
talk stream /v1/stream config='{"type":"config","rate_hz":8000}' raw="$tmp/vowels.raw" end='{"type":"end"}' > "$tmp/8k"
is "stream: at 8 kHz" "$want" "$(texts "$tmp/8k")"
# Opus in Ogg, which libsndfile reads as a file, in pieces that cut pages and packets anywhere.
opus='{"type":"config","format":"ogg_opus"}'
if grep -q 'the bytes are damaged or not Ogg' "$LINNET"; then
    "$SOUND" "$tmp/vowels.opus" format=opus seconds=6 seed=5
    is "stream: Opus" "$("$LINNET" listen --words --no-readable -q --no-paced --from "$tmp/vowels.opus")" \
        "$(talk stream /v1/stream config="$opus" raw="$tmp/vowels.opus" chunk=700 end='{"type":"end"}' | sed -n 's/^{"type":"final".*"text":"\([^"]*\)".*/\1/p')"
    has "stream: Opus: all of it" "$(talk stream /v1/stream config="$opus" raw="$tmp/vowels.opus" chunk=99999 end='{"type":"end"}')" '"reason":"ended","seconds":6.000'
    has "stream: what is not Opus" "$(talk stream /v1/stream config="$opus" raw="$speech" end='{"type":"end"}')" 'closed 1007 the bytes are damaged or not Ogg'
    head -c 9000 "$tmp/vowels.opus" > "$tmp/cut.opus"
    has "stream: Opus that breaks off" "$(talk stream /v1/stream config="$opus" raw="$tmp/cut.opus" end='{"type":"end"}')" 'warning":"the sound breaks off: its last '
    head -c 60 "$tmp/vowels.opus" > "$tmp/cut.opus"
    has "stream: Opus that ends in its headers" "$(talk stream /v1/stream config="$opus" raw="$tmp/cut.opus" end='{"type":"end"}')" 'closed 1007 the sound ends before its headers'
    has "stream: Opus at another rate, before any sound" "$(talk stream /v1/stream config='{"type":"config","format":"ogg_opus","rate_hz":44100}' end='{"type":"end"}')" "not 44100"
    has "stream: Opus of two channels, before any sound" "$(talk stream /v1/stream config='{"type":"config","format":"ogg_opus","channels":2}' end='{"type":"end"}')" "closed 1008 the format ogg_opus"
fi
has "stream: phrases of its own" "$(talk stream /v1/stream config='{"type":"config","phrases":["ill disposed"]}' raw="$tmp/speech.raw" end='{"type":"end"}')" "ill disposed"
has "stream: a phrase that cannot be" "$(talk stream /v1/stream config='{"type":"config","phrases":["!!"]}' raw="$tmp/speech.raw" end='{"type":"end"}')" '"reason":"failed"'
second=$(($(wc -c < "$tmp/speech.raw") + 38400)) # the phrases come when the first sentence is final; the second one is sent when they are there
talk stream /v1/stream middle='{"type":"phrases","phrases":["young men"]}' until='"type":"final"' answer='"type":"context"' at=$second raw="$tmp/twice.raw" end='{"type":"end"}' > "$tmp/on-the-way" &
changed=$!
talk stream /v1/stream middle='{"type":"phrases","phrases":["!!"]}' until='"type":"final"' at=$second raw="$tmp/twice.raw" end='{"type":"end"}' > "$tmp/bad-on-the-way" &
wrong=$!
is "stream: an unknown key" '{"type":"error","message":"a config has no \"x\""}' "$(talk stream /v1/stream config='{"type":"config","x":1}' end='{"type":"end"}' | head -n 1)"
is "stream: not JSON" "closed 1008" "$(talk stream /v1/stream config='hello' | tail -n 1 | cut -c1-11)"
is "stream: a message that is too long" "closed 1009 the message is too long" "$(talk stream /v1/stream config="$(head -c 65537 /dev/zero | tr '\000' ' ')" | tail -n 1)"
is "a WebSocket elsewhere" "refused 404" "$(talk stream /x)"
is "no page of another server" "refused 403" "$(talk stream /v1/stream header='Origin: https://evil.example')"
is "the server's own page" "closed 1000 " "$(talk stream /v1/stream header='Origin: http://localhost' end='{"type":"end"}' | tail -n 1)"

wait $changed $wrong
"$LINNET" listen --words --no-readable -q --no-paced --raw --from "$tmp/twice.raw" --phrase "young men" --tune context-bonus=12 > "$tmp/likely"
[ ! -f "$real" ] || hasnt "the phrase changes the second sentence" "$both" "$(tail -n 1 "$tmp/likely")"
is "stream: phrases that change on the way" "$(printf '%s\n' "$both" | head -n 1; tail -n 1 "$tmp/likely")" "$(texts "$tmp/on-the-way")"
is "stream: the client is told" '{"type":"context","phrases":1}' "$(grep context "$tmp/on-the-way")"
head -c 20 "$tmp/speech.raw" > "$tmp/little.raw"
is "stream: they are answered also if the end comes with them" '{"type":"context","phrases":1}' \
    "$(talk stream /v1/stream middle='{"type":"phrases","phrases":["young men"]}' chunk=10 at=15 raw="$tmp/little.raw" end='{"type":"end"}' | grep context)"
is "stream: phrases on the way that cannot be: those before remain" "$both" "$(texts "$tmp/bad-on-the-way")"
has "stream: why" "$(grep context "$tmp/bad-on-the-way")" '{"type":"context","phrases":0,"message":"'

# ---- hostile clients; other streams are not affected

talk stream /v1/stream raw="$tmp/twice.raw" paced end='{"type":"end"}' > "$tmp/other" &
other=$!
printf 'GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n' > "$tmp/shake"
head -c 3000 /dev/urandom > "$tmp/noise"
for i in 1 2 3 4 5 6 7 8 9 10; do
    head -c 3000 /dev/urandom | cat "$tmp/shake" - > "$tmp/hostile"
    talk send "$tmp/hostile" > /dev/null
done
talk send "$tmp/noise" > /dev/null
(head -c 200 "$tmp/shake"; head -c 100000 /dev/zero | tr '\000' a) > "$tmp/long"
talk send "$tmp/long" > /dev/null
printf 'POST /v1/align HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 500\r\n\r\nabc' > "$tmp/short"
talk send "$tmp/short" > /dev/null
printf 'POST /v1/align HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n' > "$tmp/huge"
sed 's,^GET / ,GET /x ,' "$tmp/shake" > "$tmp/elsewhere"
has "a WebSocket elsewhere: the answer is of HTTP/1.1, as such clients need it" "$(talk send "$tmp/elsewhere")" "HTTP/1.1 404"
has "a huge body" "$(talk send "$tmp/huge")" "HTTP/1.1 413"
talk stream /v1/stream raw="$tmp/speech.raw" stop=32000 > /dev/null
is "after all that: health" ok "$(talk get /healthz | tail -n 1)"
wait $other
is "after all that: the other stream" "$both" "$(sed -n 's/^{"type":"final".*"text":"\([^"]*\)".*/\1/p' "$tmp/other")"
no_stream() { [ "$(metric streams)" = 0 ]; }
ok "no stream is left" await no_stream
is "nothing was lost" 0 "$(metric lost_samples_total)"
has "metrics: refusals by cause" "$(talk get /metrics)" 'linnet_refused_total{cause="origin"} 1'
stop "words"
wait $mute
has "a client that sends and answers no pings stays" "$(tail -n 2 "$tmp/mute")" '{"type":"end","reason":"ended","seconds":24.0'
server=$mute_server log=$tmp/mute.log
stop "mute"

# ---- limits, tokens, stopping

printf '# secrets\nopen sesame\nabc\n' > "$tmp/tokens"
start limits --no-words --tokens "$tmp/tokens" --max-streams 2 --limits max-upload=1,max-files=1,idle=15 -j 1 --limits max-per-address=1
is "without a token" "refused 401" "$(talk stream /)"
is "with a wrong one" "refused 401" "$(talk stream '/?access_token=ab')"
has "files need one too" "$(talk post /v1/audio/transcriptions file=@"$speech")" "HTTP/1.1 401"
has "with a token" "$(talk post /v1/audio/transcriptions header='Authorization: Bearer abc' file=@"$speech")" '"text":"HH IY'
talk stream '/v1/stream?access_token=abc' raw="$tmp/twice.raw" > "$tmp/idle" &
idler=$!
await grep -q '"begin"' "$tmp/idle"
is "more streams of one address than are allowed" "refused 429
retry-after" "$(talk stream '/?access_token=abc')"
wait $idler
is "phonemes" "$("$LINNET" transcribe -q "$speech" | cut -d' ' -f1-6)" "$(sed -n 's/^{"type":"final".*"text":"\([^"]*\)".*/\1/p' "$tmp/idle" | head -n 1 | cut -d' ' -f1-6)"
is "an idle stream is told why it ends" '{"type":"error","message":"nothing has come for 15 s: the stream ends"}
closed 1008 nothing has come for 15 s: the stream ends' "$(tail -n 2 "$tmp/idle")"
has "which is counted" "$(talk get /metrics)" 'linnet_errors_total{cause="idle"} 1'
cat "$tmp/twice.raw" "$tmp/twice.raw" > "$tmp/long.raw"
talk stream '/v1/stream?access_token=abc' raw="$tmp/long.raw" paced > "$tmp/drained" &
drained=$!
await grep -q '"partial"' "$tmp/drained"
kill "$server"
is_busy() { [ "$(talk get /readyz | tail -n 1)" = busy ]; }
ok "while it stops: not ready" await is_busy
is "while it stops: no new streams" "refused 503
retry-after" "$(talk stream '/?access_token=abc')"
wait $drained
has "the utterance ends" "$(grep -v partial "$tmp/drained")" '{"type":"final"'
has "the client is told" "$(grep -v partial "$tmp/drained")" '"reason":"stopping"'
is "and left" "closed 1001 " "$(tail -n 1 "$tmp/drained")"
wait "$server"
is "the server ends well" 0 $?
hasnt "no sanitizer report" "$(cat "$log")" "Sanitizer"

# ---- a stream survives its server: SIGKILL in the middle of a sentence, another server goes on

head -c 32 /dev/urandom > "$tmp/key"
start first --state-key "$tmp/key"
first=$server
states='{"type":"config","state_s":1,"resume":false}'
talk stream /v1/stream config="$states" raw="$tmp/twice.raw" end='{"type":"end"}' > "$tmp/whole"
is "with states: the same text" "$both" "$(texts "$tmp/whole")"
talk stream /v1/stream config="$states" raw="$tmp/twice.raw" paced state="$tmp/state" > "$tmp/before" &
victim=$!
state_seconds() { sed -n 's/^{"type":"state","seconds":\([0-9.]*\).*/\1/p' "$tmp/before" | tail -n 1; }
second_sentence() { awk "BEGIN { exit !($(state_seconds) > 4) }"; }
await second_sentence
kill -9 $first
wait $victim
wait $first 2> /dev/null
seconds=$(state_seconds)
ok "a state of the second sentence was sent ($seconds s)" awk "BEGIN { exit !($seconds > 3.5) }"
# What had settled when the last state came: the sentences that had ended, and the beginning of this one.
sed -n '/"type":"state"/=' "$tmp/before" | tail -n 1 > "$tmp/line"
head -n "$(cat "$tmp/line")" "$tmp/before" > "$tmp/kept"
begun=$(sed -n 's/^{"type":"partial","utterance":2.*"stable":"\([^"]*\)".*/\1/p' "$tmp/kept" | tail -n 1)
skip=$(awk "BEGIN { print int($seconds * 16000 + 0.5) * 2 }")
resume='{"type":"config","resume":true}'
start second --state-key "$tmp/key"
talk stream /v1/stream config="$resume" resume="$tmp/state" raw="$tmp/twice.raw" skip="$skip" end='{"type":"end"}' > "$tmp/after"
is "killed, and gone on with by another server: the same words" "$(printf '%s' "$both" | paste -s -d ' ' -)" \
    "$(echo $(texts "$tmp/kept") $begun $(texts "$tmp/after"))"
ok "times go on" awk "BEGIN { exit !($(sed -n 's/^{"type":"final".*"words":\[{"word":"[^"]*","known":true,"start":\([0-9.]*\).*/\1/p' "$tmp/after" | head -n 1) > $seconds - 1) }"
cp "$tmp/state" "$tmp/changed"
flip "$tmp/changed" 5000 0
has "a state that was changed" "$(talk stream /v1/stream config="$resume" resume="$tmp/changed")" "with another key, or was changed"
has "bytes that are no state" "$(talk stream /v1/stream config="$resume" resume="$speech")" "these bytes are no state"
has "a state of another rate" "$(talk stream /v1/stream config='{"type":"config","resume":true,"rate_hz":8000}' resume="$tmp/state" raw="$tmp/speech.raw" end='{"type":"end"}')" 'closed 1008 the state is of other sound'
has "which is counted" "$(talk get /metrics)" "linnet_resumed_total 2"
stop "second"
# Many at once, by the client of bench/serve.sh.
start many --no-words -j 1
"$CROWD" "$port" speak 8 2 "$tmp/twice.raw" '{"type":"config","state_s":1}' > "$tmp/crowd" &
speakers=$!
lag() { talk get /metrics | sed -n 's/^linnet_lag_seconds{quantile="0.99"} //p'; }
has_lag() { lag=$(lag); [ "$lag" != 0.0000 ]; }
ok "many streams with states: their lag is counted" await has_lag
wait $speakers
is "many streams with states" "ended well       8 of 8; 0 failed" "$(tail -n 1 "$tmp/crowd")"
has "many streams with states: latencies" "$(cat "$tmp/crowd")" "latency          p50 "
stop "many"
start third --n-best 3
is "alternatives" 3 "$(talk stream /v1/stream raw="$tmp/speech.raw" end='{"type":"end"}' | grep '"final"' | sed 's/.*"alternatives"//' | grep -o '"text"' | wc -l)"
has "alternatives: no states" "$(talk stream /v1/stream config='{"type":"config","state_s":2}' raw="$tmp/speech.raw" end='{"type":"end"}')" "closed 1008 this server gives alternatives (--n-best)"
has "alternatives: a state is not gone on with" "$(talk stream /v1/stream config="$resume" end='{"type":"end"}')" "closed 1008 this server gives alternatives (--n-best)"
stop "third"
head -c 16 /dev/urandom > "$tmp/other-key"
start fourth --state-key "$tmp/other-key" --no-words -j 1
has "a server with another key" "$(talk stream /v1/stream config="$resume" resume="$tmp/state")" "with another key, or was changed"
for phrases in '{"type":"config","phrases":["he was"]}' '{"type":"phrases","phrases":["he was"]}'; do
    has "phonemes without a beam: no phrases" "$(talk stream /v1/stream config="$phrases" end='{"type":"end"}')" "closed 1008 this server finds phonemes without a beam"
done
is "phonemes without a beam: no phrases are allowed" "closed 1000 " "$(talk stream /v1/stream config='{"type":"config","phrases":[]}' raw="$tmp/speech.raw" end='{"type":"end"}' | tail -n 1)"
has "a rate at which nothing can be saved" "$(talk stream /v1/stream config='{"type":"config","state_s":1,"rate_hz":4001}' raw="$tmp/speech.raw")" "closed 1008 resampling from 4001"
stop "fourth"

# ---- a socket that systemd opened: whoever comes before the server is there waits

"$TALK" 0 activate "$LINNET" serve --listen systemd -q --limits max-lag-ms=0 > "$tmp/activated" 2> "$tmp/activated.log" &
server=$!
servers="$servers $server"
log=$tmp/activated.log
await test -s "$tmp/activated"
port=$(cat "$tmp/activated")
is "a socket of systemd: health" ok "$(talk get /healthz | tail -n 1)"
is "a socket of systemd: a stream" "$both" "$(talk stream /v1/stream raw="$tmp/twice.raw" end='{"type":"end"}' | sed -n 's/^{"type":"final".*"text":"\([^"]*\)".*/\1/p')"
for i in 1 2 3 4 5 6 7 8; do
    talk get /readyz > "$tmp/ready.$i" &
    readers="${readers:-} $!"
done
wait $readers
is "a socket of systemd: many at once" 8 "$(cat "$tmp"/ready.? | grep -c '^ready')"
stop "a socket of systemd"
if command -v systemd-analyze > /dev/null; then
    sed "s,/usr/local/bin/linnet,$(realpath "$LINNET")," recipes/serve/linnet.service > "$tmp/linnet.service"
    cp recipes/serve/linnet.socket "$tmp"
    is "the units for systemd" "" "$(systemd-analyze verify "$tmp/linnet.socket" "$tmp/linnet.service" 2>&1)"
fi

# ---- a newer program takes the place of the one that runs

mkdir "$tmp/old"
cp "$LINNET" "$(dirname "$LINNET")/liblinnet_web.so" "$tmp/old"
cp "$LINNET" "$tmp/old/newer"
program=$LINNET LINNET=$tmp/old/linnet
start replaced --no-words -j 1
LINNET=$program
mv "$tmp/old/newer" "$tmp/old/linnet"
has "uploads to a program that was replaced" "$(talk post /v1/audio/transcriptions file=@"$speech")" "HTTP/1.1 200"
stop "a program that was replaced"

# ---- mistakes

refused "no socket of systemd" 1 "LISTEN_FDS" serve --listen systemd

for address in nowhere :0 '[]:0' 127.0.0.1:+2 127.0.0.1:65536; do
    refused "the address $address" 2 "--listen must be" serve --listen "$address"
done
refused "a proxy by its name" 2 "--trusted-proxy must be an address, such as 192.0.2.1, not 'nginx'" serve --trusted-proxy nginx
refused "an address in another form" 2 "--trusted-proxy 0:0::1: write it as ::1" serve --trusted-proxy ::2 --trusted-proxy 0:0::1
refused "an origin with a path" 2 "without a path, or *, not 'https://a.org/'" serve --origin null --origin https://a.org:1 --origin https://a.org/
refused "a certificate without its key" 2 "belong together" serve --tls-cert x
refused "a certificate that is not there" 1 "cannot open $tmp/none: No such file or directory" serve --listen 127.0.0.1:0 --tls-cert "$tmp/none" --tls-key "$tmp/none"
refused "a certificate that is none" 1 "$tmp/tokens: this is no certificate in PEM form" serve --listen 127.0.0.1:0 --tls-cert "$tmp/tokens" --tls-key "$tmp/tokens"
if command -v openssl > /dev/null; then
    for i in 1 2; do openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/key$i.pem" -out "$tmp/cert$i.pem" -subj /CN=localhost 2> /dev/null; done
    openssl rsa -aes128 -passout pass:x -in "$tmp/key1.pem" -out "$tmp/locked.pem" 2> /dev/null
    pair() { refused "$1" 1 "$2" serve --listen 127.0.0.1:0 --tls-cert "$tmp/cert1.pem" --tls-key "$3"; }
    pair "another certificate's key" "$tmp/key2.pem: this is not the private key of the certificate in $tmp/cert1.pem" "$tmp/key2.pem"
    pair "a certificate as a key" "$tmp/cert1.pem: this is no private key in PEM form" "$tmp/cert1.pem"
    pair "a key with a passphrase" "$tmp/locked.pem: this private key has a passphrase" "$tmp/locked.pem"
    if command -v curl > /dev/null; then
        start tls --no-words -j 1 --tls-cert "$tmp/cert1.pem" --tls-key "$tmp/key1.pem"
        over_tls() { curl -sSk --max-time 100 "$@" "https://127.0.0.1:$port/healthz"; }
        is "TLS" ok "$(over_tls)"
        is "TLS: a field whose name begins a known one" ok "$(over_tls -H 'X-Auth: 1')"
        has "TLS: a head that is too long" "$(over_tls -i -H "X-Long: $(head -c 20000 /dev/zero | tr '\000' a)")" "431"
        has "TLS: an upload" "$(curl -sSk -F file=@"$speech" -H 'X-Auth: 1' "https://127.0.0.1:$port/v1/audio/transcriptions")" '{"text":"'
        stop "TLS"
    fi
fi
"$LINNET" serve --no-words -j 1 --listen '[::1]:0' > "$tmp/six.log" 2>&1 &
six=$!
servers="$servers $six"
says_where() { grep -q http "$tmp/six.log" || runs_no_more $six; }
await says_where
if ! grep -q "cannot listen" "$tmp/six.log"; then # of a machine without IPv6
    has "an address of IPv6 has its brackets" "$(cat "$tmp/six.log")" "serving at http://[::1]:"
    kill $six
    wait $six
fi
printf short > "$tmp/short.key"
refused "a short secret" 1 "at least 16 bytes" serve --state-key "$tmp/short.key"
refused "no tokens" 1 "none" serve --tokens "$tmp/none"
printf '\n \n# none\n' > "$tmp/blank"
refused "a file of tokens with blank lines" 1 "blank has no token" serve --tokens "$tmp/blank"
finish
