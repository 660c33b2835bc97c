# linnet serve: the calls of OpenAI and whisper.cpp over HTTP as their clients make them: bodies in chunks, text that is sent as it
# settles, phrases, languages, fields that have no effect, pages of other servers, and what describes the calls.
# Over the loopback interface.
. tests/app/common.sh
. tests/app/serving.sh

says=$("$LINNET" transcribe --words -q "$speech")
call=/v1/audio/transcriptions
body() { printf '%s' "$1" | tr -d '\r' | sed '1,/^$/d'; }
header() { printf '%s\n' "$1" | tr -d '\r' | sed -n "s/^$2: //p"; }

start words --tune context-bonus=12 --origin https://page.example

# ---- bodies in chunks

whole=$(talk post $call file=@"$speech")
is "a body with a length" "{\"text\":\"$says\"}" "$(body "$whole")"
is "the same in chunks" "$(body "$whole")" "$(body "$(talk post $call chunked file=@"$speech")")"
post="POST $call HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
printf "${post}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" > "$tmp/form"
has "chunks that are no form" "$(talk send "$tmp/form")" "HTTP/1.1 400"
printf "${post}Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n" > "$tmp/damaged"
has "damaged chunks" "$(talk send "$tmp/damaged")" '"message":"the chunks of the body are damaged"'
printf "${post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" > "$tmp/both"
has "two lengths" "$(talk send "$tmp/both")" "HTTP/1.1 400"
printf "${post}Transfer-Encoding: gzip\r\n\r\nx" > "$tmp/gzip"
has "another encoding" "$(talk send "$tmp/gzip")" "HTTP/1.1 501"
printf "${post}Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n" > "$tmp/asks"
printf "0\r\n\r\n" > "$tmp/then"
answer=$(talk send "$tmp/asks" rest="$tmp/then" pause=0.1)
has "who asks before the body is told to go on" "$answer" "HTTP/1.1 100 Continue"
has "and answered then" "$answer" "HTTP/1.1 400"
printf "${post}\r\n" > "$tmp/none"
has "no length at all" "$(talk send "$tmp/none")" "HTTP/1.1 411"

for length in abc -1 '5, 5' 0x5; do
    printf "${post}Content-Length: $length\r\n\r\nhello" > "$tmp/wrong"
    has "a length of $length" "$(talk send "$tmp/wrong")" '"message":"Content-Length is not a number"'
done
printf "${post}Content-Length: 0\r\n\r\n" > "$tmp/zero"
has "an empty body" "$(talk send "$tmp/zero")" '"message":"the body is empty"'
: > "$tmp/nothing"
has "an empty file" "$(talk post $call file=@"$tmp/nothing")" '"message":"file is empty"'
printf 'POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: audio/wav\r\nContent-Length: 4\r\n\r\nRIFF' $call > "$tmp/bare"
has "sound without a form: what to do" "$(talk send "$tmp/bare")" 'as curl -F file=@sound.wav sends it'
printf 'HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n' > "$tmp/head"
answer=$(talk send "$tmp/head")
is "HEAD: the length" 3 "$(header "$answer" content-length)"
is "HEAD: no body" "" "$(body "$answer")"
printf 'GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n' "$(head -c 5000 /dev/zero | tr '\000' a)" > "$tmp/long-path"
has "a path that is too long" "$(talk send "$tmp/long-path")" '"message":"the address or a header is too long"'

# What libwebsockets cannot read does not reach it: names that begin one that it knows, as the last field and before others.
ask() { printf "$@" > "$tmp/ask"; talk send "$tmp/ask"; }
for name in X-Auth X-Forwarded X-Real Cache A; do
    has "the field $name" "$(ask "GET /healthz HTTP/1.1\r\nHost: localhost\r\n$name: 1\r\n\r\n")" "HTTP/1.1 200"
done
has "the field behind X-Auth" "$(ask 'GET /healthz HTTP/1.1\r\nX-Auth: 1\r\nHost: evil.example\r\n\r\n')" "HTTP/1.1 421"
(printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n'; for i in 1 2 3; do printf 'Cookie: %s\r\n' "$(head -c 4000 /dev/zero | tr '\000' a)"; done; printf '\r\n') > "$tmp/long-head"
has "headers of 12 KB that nobody reads" "$(talk send "$tmp/long-head")" "HTTP/1.1 200"
(printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nCookie: '; head -c 20000 /dev/zero | tr '\000' a; printf '\r\n\r\n') > "$tmp/long-head"
has "headers of 20 KB" "$(talk send "$tmp/long-head")" "HTTP/1.1 431"
has "headers of 20 KB: why" "$(talk send "$tmp/long-head")" '"message":"the headers are too long"'
has "an address in absolute form" "$(ask 'GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n')" "HTTP/1.1 200"
has "an address in absolute form: its host counts" "$(ask 'GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')" "HTTP/1.1 421"
has "an address of another form" "$(ask 'GET healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')" '"message":"the address does not begin with /"'
has "a method that there is not" "$(ask 'BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n')" "HTTP/1.1 501"
printf 'GET /healthz HTTP/1.1\r\nHost: local' > "$tmp/begun"
printf 'host\r\nX-Auth: 1\r\n\r\n' > "$tmp/rest"
has "a head in two pieces" "$(talk send "$tmp/begun" rest="$tmp/rest" pause=0.1)" "HTTP/1.1 200"

# ---- text that is sent as it settles

for i in 1 2 3 4; do tail -c +45 "$speech"; head -c 32000 /dev/zero; done > "$tmp/long.raw"
if command -v ffmpeg > /dev/null; then ffmpeg -v error -f s16le -ar 16000 -i "$tmp/long.raw" "$tmp/long.wav"; else cp "$speech" "$tmp/long.wav"; fi
all=$(body "$(talk post $call file=@"$tmp/long.wav" response_format=text)")
answer=$(talk post $call file=@"$tmp/long.wav" stream=true)
is "stream: the type" "text/event-stream" "$(header "$answer" content-type)"
hasnt "stream: no length" "$answer" "content-length"
is "stream: all of the text in the end" "data: {\"type\":\"transcript.text.done\",\"text\":\"$all\"}" "$(body "$answer" | grep done)"
is "stream: the pieces are the text" "$all" "$(body "$answer" | sed -n 's/^data: {"type":"transcript.text.delta","delta":"\([^"]*\)"}$/\1/p' | tr -d '\n')"
[ ! -f "$real" ] || ! command -v ffmpeg > /dev/null || ok "stream: several pieces" [ "$(body "$answer" | grep -c delta)" -gt 2 ]
has "stream: false" "$(talk post $call file=@"$speech" stream=false)" '{"text":"'
has "stream: not of subtitles" "$(talk post $call file=@"$speech" stream=true response_format=srt)" "HTTP/1.1 400"
answer=$(talk post $call file=@"$tmp/none" stream=true)
has "stream: no sound: a status" "$answer" "HTTP/1.1 400"
is "stream: no sound: no event" "application/json" "$(header "$answer" content-type)"

# ---- sound that ends early: the client is told, whatever the form of the answer

size=$(wc -c < "$speech" | tr -d ' ')
head -c $((size * 2 / 3)) "$speech" > "$tmp/cut.wav"
why="the file is truncated: it ends after"
has "cut: json" "$(body "$(talk post $call file=@"$tmp/cut.wav")")" "\"warning\":\"$why"
for format in text srt vtt ctm; do
    has "cut: $format" "$(header "$(talk post $call file=@"$tmp/cut.wav" response_format=$format)" linnet-warning)" "$why"
done
has "cut: stream" "$(body "$(talk post $call file=@"$tmp/cut.wav" stream=true)" | grep done)" "\"warning\":\"$why"
has "cut: inference" "$(header "$(talk post /inference file=@"$tmp/cut.wav" response_format=text)" linnet-warning)" "$why"
has "cut: alignment" "$(header "$(talk post /v1/align file=@"$tmp/cut.wav" text="he was" response_format=ctm)" linnet-warning)" "$why"
if command -v ffmpeg > /dev/null && ffmpeg -v error -i "$tmp/long.wav" "$tmp/long.flac"; then
    half=$(($(wc -c < "$tmp/long.flac") * 2 / 3))
    (head -c $half "$tmp/long.flac"; head -c 400 /dev/zero; tail -c +$((half + 401)) "$tmp/long.flac") > "$tmp/damaged.flac"
    lines=$("$LINNET" transcribe --words -q "$tmp/damaged.flac" 2> /dev/null | paste -s -d ' ' -)
    is "damaged in the middle: the text of linnet transcribe" "$lines" \
        "$(body "$(talk post $call file=@"$tmp/damaged.flac" response_format=text)")"
fi
is "whole: no warning" "" "$(header "$whole" linnet-warning)"

# A client that leaves while it is answered.
if [ -f "$real" ] && command -v ffmpeg > /dev/null; then
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat "$tmp/long.raw"; done > "$tmp/minutes.raw"
    ffmpeg -v error -f s16le -ar 16000 -i "$tmp/minutes.raw" "$tmp/minutes.wav"
    "$TALK" "$port" post $call file=@"$tmp/minutes.wav" stream=true > "$tmp/leaves" &
    leaver=$!
    ok "stream: it is answered while the sound is read" await test -s "$tmp/leaves"
    kill $leaver
    ok "stream: who leaves has no upload any more" await metric_is uploads 0
fi

# ---- fields

hasnt "without phrases: another word" "$says" "young men"
has "phrases" "$(talk post $call file=@"$speech" phrases="young men")" "young men"
has "phrases: several" "$(talk post $call file=@"$speech" 'phrases[]=mister dashwood' 'phrases[]=young men')" "young men"
has "phrases: streamed" "$(talk post $call file=@"$speech" stream=1 phrases="young men")" "young men"
has "phrases: one that cannot be" "$(talk post $call file=@"$speech" phrases='!!')" "HTTP/1.1 400"
answer=$(talk post $call file=@"$speech" prompt="About Mister Dashwood, 'Young Men'; GPT-4, (etc.)")
has "prompt: its parts are likely" "$answer" "young men"
is "prompt: it counts" "" "$(header "$answer" linnet-ignored)"
has "keywords" "$(talk post $call file=@"$speech" 'keywords[]=GPT-4' 'keywords[]=young men')" "young men"
answer=$(talk post $call file=@"$speech" prompt="Ÿoung men")
has "letters with marks" "$answer" "young men"
is "letters with marks: they count" "" "$(header "$answer" linnet-ignored)"
answer=$(talk post $call file=@"$speech" 'keywords[]=Дашвуд' 'keywords[]=young men')
has "letters that the language does not have: the others count" "$answer" "young men"
is "letters that the language does not have are not silently left out" "keywords" "$(header "$answer" linnet-ignored)"
many=$(seq 1000 1999 | tr 0-9 a-j | paste -s -d , -)
answer=$(talk post $call file=@"$speech" prompt="$many" 'keywords[]=young men')
hasnt "more than 1,000 likely phrases" "$(body "$answer")" "young men"
is "more than 1,000 likely phrases: it says so" keywords "$(header "$answer" linnet-ignored)"
has "a phrase that is too long" "$(talk post $call file=@"$speech" phrases="$(head -c 66000 /dev/zero | tr '\000' a)")" "at most 1000 lines and 65536 bytes"
is "the next one has none of it" "{\"text\":\"$says\"}" "$(body "$(talk post $call file=@"$speech")")"
for language in en EN en-GB english ''; do
    is "language: $language" "{\"text\":\"$says\"}" "$(body "$(talk post $call file=@"$speech" language=$language)")"
done
answer=$(talk post $call file=@"$speech" language=de)
has "language: another" "$answer" "HTTP/1.1 400"
has "language: which" "$answer" 'the model'"'"'s language is en (english), not de'
has "languages: one of them" "$(talk post $call file=@"$speech" 'languages[]=de' 'languages[]=en')" "HTTP/1.1 200"
has "languages: none of them" "$(talk post $call file=@"$speech" 'languages[]=de' 'languages[]=fr')" "HTTP/1.1 400"
has "verbose_json names it as OpenAI does" "$(talk post $call file=@"$speech" response_format=verbose_json)" '"language":"english"'
is "fields without effect are named" "model, temperature, include[], x_y?z" "$(header "$(talk post $call file=@"$speech" model=whisper-1 temperature=0.2 'include[]=logprobs' 'x_y:z=1')" linnet-ignored)"
is "lists of a format that has none" "timestamp_granularities" "$(header "$(talk post $call file=@"$speech" 'timestamp_granularities[]=word')" linnet-ignored)"
is "empty values are absent" "{\"text\":\"$says\"}" "$(body "$(talk post $call file=@"$speech" response_format= temperature= stream= 'timestamp_granularities[]=')")"
answer=$(body "$(talk post $call file=@"$speech" response_format=verbose_json 'timestamp_granularities[]=word')")
has "lists: words" "$answer" '"words":[{'
hasnt "lists: no segments" "$answer" '"segments"'

# ---- whisper.cpp's call

answer=$(talk post /inference file=@"$speech" stream=true response_format=text)
is "inference: it has no stream" "$says" "$(body "$answer")"
is "inference: it says so" stream "$(header "$answer" linnet-ignored)"
answer=$(talk post /inference file=@"$speech" temperature=0.0 temperature_inc=0.2 response_format=json)
has "inference: json" "$(body "$answer")" "{\"text\":\"$says\\u000a\"}"
is "inference: text" "$says" "$(body "$(talk post /inference file=@"$speech" response_format=text)")"
answer=$(body "$(talk post /inference file=@"$speech" response_format=verbose_json)")
has "inference: words in the segments" "$answer" '"no_speech_prob":0.0,"words":[{"word":"'
has "inference: with probabilities" "$answer" '"t_dtw":-1,"probability":0.'
has "inference: no translation" "$(talk post /inference file=@"$speech" translate=true)" '{"error":"this server does not translate'
is "inference: health" '{"status":"ok"}' "$(body "$(talk get /health)")"

# ---- models, and what describes the calls

answer=$(body "$(talk get /v1/models)")
has "models" "$answer" '{"object":"list","data":[{"id":"linnet","object":"model","created":1'
is "models: one of them" "${answer#*\[}" "$(body "$(talk get /v1/models/linnet)")]}"
answer=$(talk get /openapi.json)
has "openapi: what is checked" "$answer" '"timestamp_granularities":{"description":"The lists in verbose_json","type":"array","items":{"type":"string","enum":["word","segment"]}}'
if command -v python3 > /dev/null; then ok "openapi is JSON" sh -c 'printf %s "$1" | python3 -m json.tool' - "$(body "$answer")"; fi
for path in $(body "$answer" | grep -o '"/[^"]*":{"get"' | cut -d '"' -f 2); do
    has "openapi: $path is there" "$(talk get "$path")" "HTTP/1.1 200"
done
has "docs: for people" "$(talk get /docs)" '<code>POST /v1/audio/transcriptions</code>'
has "docs: nothing from elsewhere" "$(talk get /docs)" "content-security-policy: default-src 'self'"

# ---- pages of other servers

answer=$(talk options $call header='Origin: https://page.example' header='Access-Control-Request-Method: POST')
has "asked before: allowed" "$answer" "HTTP/1.1 204"
is "asked before: by whom" "https://page.example" "$(header "$answer" access-control-allow-origin)"
is "asked before: which headers" "authorization, content-type, *" "$(header "$answer" access-control-allow-headers)"
has "asked before: another page" "$(talk options $call header='Origin: https://evil.example')" "HTTP/1.1 403"
answer=$(talk post $call header='Origin: https://page.example' file=@"$speech")
is "an upload: by whom it may be read" "https://page.example" "$(header "$answer" access-control-allow-origin)"
is "an upload: its text" "{\"text\":\"$says\"}" "$(body "$answer")"
is "a mistake may be read too" "https://page.example" "$(header "$(talk post $call header='Origin: https://page.example' x=1)" access-control-allow-origin)"
answer=$(talk post $call header='Origin: https://evil.example' file=@"$speech")
has "an upload of another page" "$answer" "HTTP/1.1 403"
is "which may not read why" "" "$(header "$answer" access-control-allow-origin)"
is "no page: no such header" "" "$(header "$whole" access-control-allow-origin)"
stop "words"

# ---- phonemes; what is too large

start phones --no-words
want=$("$LINNET" transcribe -q "$speech")
answer=$(talk post $call file=@"$speech" stream=true prompt="mister dashwood")
is "phonemes: streamed" "data: {\"type\":\"transcript.text.done\",\"text\":\"$want\"}" "$(body "$answer" | grep done)"
is "phonemes: a prompt has no effect" "prompt" "$(header "$answer" linnet-ignored)"
# A commit, and a prompt, or other members of transcription, before it that come after the first sound.
prompted() {
    talk stream /v1/realtime append raw="$tmp/pause" end='{"type":"input_audio_buffer.commit"}' leave=transcription.completed \
        middle='{"type":"session.update","session":{"audio":{"input":{"transcription":{'"${1:-\"prompt\":\"young men\"}"'}}}}}'
}
hasnt "phonemes: nor has one after the first sound" "$(prompted)" '"type":"error"'
stop "phones"
start several --n-best 3
answer=$(talk post $call file=@"$speech" stream=true)
is "with alternatives: streamed" "data: {\"type\":\"transcript.text.done\",\"text\":\"$says\"}" "$(body "$answer" | grep done)"
hasnt "with alternatives: no prompt before or after the first sound" "$(prompted '"model":"x"')" '"type":"error"'
has "with alternatives: a prompt after the first sound" "$(prompted)" \
    '"message":"phrases of a stream with alternatives (n_best over 1) cannot be changed"'
stop "several"
start large --no-words --limits max-upload=1
head -c 2000000 /dev/zero > "$tmp/large"
has "chunks that are too many" "$(talk post $call chunked file=@"$tmp/large")" "HTTP/1.1 413"
is "which are no upload any more" 0 "$(metric uploads)"
stop "large"
finish
