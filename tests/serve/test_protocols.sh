# linnet serve: the protocols of WebSockets, each at its address, one of them at / too: sherpa-onnx's, OpenAI's realtime protocol,
# and that all of them hear the same. Over the loopback interface.
. tests/app/common.sh
. tests/app/serving.sh

# The same as floats of 32 bits: the sign, the power of two, and the digits of each sample.
od -An -v -td2 -w2 "$tmp/twice.raw" | awk '{
    v = $1 + 0; s = v < 0 ? 128 : 0; if (v < 0) v = -v; e = 0; m = 0
    if (v) { k = 0; while (2 ^ (k + 1) <= v) k++; e = 127 + k - 15; m = (v / 2 ^ k - 1) * 2 ^ 23 }
    printf "\\%03o\\%03o\\%03o\\%03o", m % 256, int(m / 256) % 256, (e % 2) * 128 + int(m / 65536), s + int(e / 2)
    if (NR % 1000 == 0) print "" } END { print "" }' | while read -r line; do printf "$line"; done > "$tmp/twice.f32"
is "twice as many bytes" $(($(wc -c < "$tmp/twice.raw") * 2)) "$(wc -c < "$tmp/twice.f32" | tr -d ' ')"
both=$("$LINNET" listen --words --no-readable -q --no-paced --raw --from "$tmp/twice.raw")

start words --tune context-bonus=12
for path in / /vosk; do
    is "vosk at $path" "$both" "$(talk stream $path raw="$tmp/twice.raw" wait end='{"eof" : 1}' | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')"
done
# A list of phrases excludes all other words.
said() { sed -n 's/.*"text":"\([^"]*\)".*/\1/p'; }
first=$(printf '%s\n' "$both" | head -n 1)
is "vosk: phrases are a grammar" "$both" \
    "$(talk stream /vosk config='{"config":{"phrase_list":["'"$first"'","nothing else"]}}' raw="$tmp/twice.raw" wait end='{"eof" : 1}' | said)"
is "vosk: other speech is nothing" "" \
    "$(talk stream /vosk config='{"config":{"phrase_list":["nothing else"]}}' raw="$tmp/twice.raw" wait end='{"eof" : 1}' | said | tr -d '\n')"
has "vosk: a list that is wrong" "$(talk stream /vosk config='{"config":{"phrase_list":["(nothing"]}}' raw="$tmp/twice.raw" wait end='{"eof" : 1}')" \
    "{\"error\":\"the grammar:1: a ')' is missing\"}"
is "vosk: of a list what can be said remains" "$both" "$(talk stream /vosk raw="$tmp/twice.raw" wait end='{"eof" : 1}' \
    config='{"config":{"phrase_list":["(nothing","你好","'"$first"'","go to 你好"]}}' | said)"
has "vosk: the rest of it is in the log" "$(cat "$log")" "3 phrases are left out of a list: the grammar:1: a ')' is missing"
lines=$(talk stream /sherpa-onnx raw="$tmp/twice.f32" chunk=32000 end=Done)
finals() { printf '%s\n' "$1" | grep '"is_final":true'; }
is "sherpa-onnx: the texts" "$both" "$(finals "$lines" | sed 's/^{"text":"\([^"]*\)".*/\1/')"
is "sherpa-onnx: the end" "Done!
closed 1000 " "$(printf '%s\n' "$lines" | tail -n 2)"
is "sherpa-onnx: segments are counted" '"segment":0 "segment":1' "$(finals "$lines" | grep -o '"segment":[0-9]*' | paste -s -d ' ' -)"
is "sherpa-onnx: tokens make the text" "$(printf '%s\n' "$both" | head -n 1)" \
    "$(finals "$lines" | head -n 1 | sed 's/.*"tokens":\[\([^]]*\)\].*/\1/; s/","//g; s/"//g')"
is "sherpa-onnx: a time for each" "$(printf '%s\n' "$both" | head -n 1 | wc -w | tr -d ' ')" \
    "$(finals "$lines" | head -n 1 | sed 's/.*"timestamps":\[\([^]]*\)\].*/\1/' | tr ',' '\n' | wc -l | tr -d ' ')"
has "sherpa-onnx: results on the way" "$lines" '"is_final":false,"is_eof":false}'
has "sherpa-onnx: the last one" "$(finals "$lines" | tail -n 1)" '"is_eof":true}'
is "sherpa-onnx: no sound" "Done!" "$(talk stream /sherpa-onnx end=Done | head -n 1)"
is "sherpa-onnx: other texts mean nothing" "$both" "$(finals "$(talk stream /sherpa-onnx config=hello middle='{}' raw="$tmp/twice.f32" chunk=9999 end=Done)" | sed 's/^{"text":"\([^"]*\)".*/\1/')"

# ---- OpenAI's realtime protocol

session() { printf '{"type":"session.update","session":{"type":"transcription","audio":{"input":{"format":{"type":"audio/pcm","rate":16000},%s"turn_detection":%s}}}}' "$2" "$1"; }
commit='{"type":"input_audio_buffer.commit"}'
readable=$("$LINNET" listen --words -q --no-paced --raw --from "$tmp/twice.raw")
transcripts() { printf '%s\n' "$1" | sed -n 's/.*transcription.completed".*"transcript":"\([^"]*\)".*/\1/p'; }
talk stream /v1/realtime config="$(session '{"type":"server_vad"}' '')" append raw="$tmp/twice.raw" end="$commit" leave='item_2","content_index":0,"transcript' > "$tmp/vad"
is "realtime: it begins" '"type":"session.created"' "$(head -n 1 "$tmp/vad" | grep -o '"type":"session.created"')"
has "realtime: the session" "$(sed -n 2p "$tmp/vad" | sed 's/"event_id":"event_[0-9]*",//; s/sess_[0-9]*/sess_N/')" '"type":"session.updated","session":{"id":"sess_N","object":"realtime.transcription_session","type":"transcription","audio":{"input":{"format":{"type":"audio/pcm","rate":16000}'
is "realtime: one session has one id" 1 "$(grep -o '"id":"sess_[0-9]*"' "$tmp/vad" | sort -u | wc -l | tr -d ' ')"
is "realtime: an item for each utterance" "$readable" "$(transcripts "$(cat "$tmp/vad")")"
is "realtime: the pieces are the texts" "$(printf '%s\n' "$readable" | tr -d '\n')" "$(sed -n 's/.*transcription.delta".*"delta":"\([^"]*\)".*/\1/p' "$tmp/vad" | tr -d '\n')"
is "realtime: events of the first item" "speech_started speech_stopped committed" \
    "$(sed -n 's/.*"type":"input_audio_buffer.\([a-z_]*\)".*"item_1".*/\1/p' "$tmp/vad" | head -n 3 | paste -s -d ' ' -)"
is "realtime: no two events have one id" "$(grep -c '"event_id"' "$tmp/vad")" "$(grep -o '"event_id":"[^"]*"' "$tmp/vad" | sort -u | wc -l | tr -d ' ')"
# An item begins 300 ms before the first phoneme, but not before the end of the one before; its length is that of its words.
moments() { sed -n "s/.*\"audio_$1_ms\":\([0-9]*\).*/\1/p" "$2" | paste -s -d ' ' -; }
"$LINNET" listen --words -q --no-paced --json --raw --from "$tmp/twice.raw" | grep '"type":"final"' > "$tmp/finals"
starts=$(sed 's/^[^}]*"start":\([0-9.]*\),.*/\1/' "$tmp/finals" | awk '{ print int($1 * 1000 + 0.5) }' | paste -s -d ' ' -)
near() { awk "BEGIN { n = split(\"$1\", a, \" \"); m = split(\"$2\", b, \" \"); d = $3; if (n != m || !n) exit 1
    for (i = 1; i <= n; i++) { w = a[i] - d; if (w < 0) w = 0; if (w - b[i] > 100 || b[i] - w > 100) exit 1 } }"; }
ok "realtime: items begin at $starts, less the padding: $(moments start "$tmp/vad")" near "$starts" "$(moments start "$tmp/vad")" 300
talk stream /v1/realtime config="$(session '{"type":"server_vad","prefix_padding_ms":0}' '')" append raw="$tmp/twice.raw" end="$commit" leave='item_2","content_index":0,"transcript' > "$tmp/exact"
ok "realtime: without padding: $(moments start "$tmp/exact")" near "$starts" "$(moments start "$tmp/exact")" 0
talk stream /v1/realtime config="$(session '{"type":"server_vad","prefix_padding_ms":60000}' '')" append raw="$tmp/twice.raw" end="$commit" leave='item_2","content_index":0,"transcript' > "$tmp/wide"
is "realtime: no sound is of two items" "0 $(moments end "$tmp/wide" | cut -d' ' -f1)" "$(moments start "$tmp/wide")"
talk stream /v1/realtime config="$(session null '')" append raw="$tmp/twice.raw" end="$commit" leave='transcription.completed' > "$tmp/manual"
is "realtime: without turns a commit makes the item" "$(printf '%s\n' "$readable" | paste -s -d ' ' -)" "$(transcripts "$(cat "$tmp/manual")")"
is "realtime: what is cleared is forgotten" "$(printf '%s\n' "$readable" | head -n 1)" \
    "$(transcripts "$(talk stream /v1/realtime config="$(session null '')" append middle='{"type":"input_audio_buffer.clear"}' at="$(wc -c < "$tmp/speech.raw")" raw="$tmp/twice.raw" end="$commit" leave=transcription.completed)")"
has "realtime: a commit of nothing" "$(talk stream /v1/realtime end='{"type":"input_audio_buffer.commit","event_id":"my-0"}' leave='"type":"error"')" \
    '"message":"the buffer that was committed has no sound","code":null,"param":null,"event_id":"my-0"}}'
has "realtime: another language" "$(talk stream /v1/realtime end="$(session null '"transcription":{"language":"de"},')" leave='"type":"error"')" '"message":"the model has another language'
has "realtime: which changes nothing else" "$(talk stream /v1/realtime config="$(session null '"transcription":{"language":"de"},')" end="$(printf '{"type":"session.update","session":{}}')" leave='session.updated' | grep session.updated)" '"format":{"type":"audio/pcm","rate":24000}'
has "realtime: other languages" "$(talk stream /v1/realtime end="$(session null '"transcription":{"languages":["de","fr"]},')" leave='"type":"error"')" '"message":"the model has another language'
has "realtime: one of several languages" "$(talk stream /v1/realtime end="$(session null '"transcription":{"languages":["de","en"]},')" leave='session.updated')" 'session.updated'
has "realtime: turns that come after the first sound" "$(talk stream /v1/realtime config="$(session null '')" append middle="$(session '{"type":"server_vad"}' '')" at=64000 raw="$tmp/twice.raw" end="$commit" leave='"type":"error"')" 'cannot change after its first sound'
"$LINNET" listen --words -q --no-paced --raw --from "$tmp/twice.raw" --phrase "young men" --tune context-bonus=12 > "$tmp/likely"
[ ! -f "$real" ] || hasnt "realtime: a prompt changes the second sentence" "$readable" "$(tail -n 1 "$tmp/likely")"
talk stream /v1/realtime config="$(session '{"type":"server_vad"}' '')" append middle='{"type":"session.update","session":{"audio":{"input":{"transcription":{"prompt":"young men"}}}}}' \
    until=transcription.completed at=$(($(wc -c < "$tmp/speech.raw") + 38400)) raw="$tmp/twice.raw" end="$commit" leave='item_2","content_index":0,"transcript' > "$tmp/prompted"
is "realtime: a prompt after the first sound" "$(printf '%s\n' "$readable" | head -n 1; tail -n 1 "$tmp/likely")" "$(transcripts "$(cat "$tmp/prompted")")"
for i in 1 2 3 4; do cat "$tmp/twice.raw"; done > "$tmp/half-a-minute.raw"
has "realtime: half a minute of sound in one event" "$(talk stream /v1/realtime config="$(session null '')" append chunk=2000000 raw="$tmp/half-a-minute.raw" end="$commit" leave=transcription.completed)" 'transcription.completed'
has "realtime: an error names the event" "$(talk stream /v1/realtime end='{"type":"nope","event_id":"my-\"1"}' leave='"type":"error"')" '"event_id":"my-\"1"}}'
has "realtime: another language, and the event" "$(talk stream /v1/realtime end="$(session null '"transcription":{"language":"de"},' | sed 's/^{/{"event_id":"my-2",/')" leave='"type":"error"')" '"event_id":"my-2"}}'
has "realtime: binary messages" "$(talk stream /v1/realtime raw="$tmp/pause" leave='"type":"error"')" '"message":"this protocol has no binary messages'
has "realtime: what is no event" "$(talk stream /v1/realtime end=hello leave='"type":"error"')" '"type":"invalid_request_error"'
is "realtime: after mistakes it goes on" "$(printf '%s\n' "$readable" | paste -s -d ' ' -)" \
    "$(transcripts "$(talk stream /v1/realtime config="$(session null '"transcription":{"prompt":"Mr. Dashwood; GPT-4"},')" middle='{"type":"response.create"}' append raw="$tmp/twice.raw" end="$commit" leave=transcription.completed)")"
is "realtime: and after a commit of nothing" "$(printf '%s\n' "$readable" | paste -s -d ' ' -)" \
    "$(transcripts "$(talk stream /v1/realtime config="$(session null '')" middle="$commit" at=1 append raw="$tmp/twice.raw" end="$commit" leave=transcription.completed)")"
for path in /vosk /sherpa-onnx /v1/realtime /v1/stream; do has "docs: $path" "$(talk get /docs)" "<code>$path</code>"; done
stop "words"

start sherpa --websocket sherpa-onnx --no-words
is "sherpa-onnx at /: phonemes" "$("$LINNET" listen -q --no-paced --raw --from "$tmp/twice.raw")" \
    "$(finals "$(talk stream / raw="$tmp/twice.f32" chunk=32000 end=Done)" | sed 's/^{"text":"\([^"]*\)".*/\1/')"
kill "$server"
wait "$server"
refused "a protocol that there is not" 2 "websocket" serve --websocket x

# ---- a second pass

start second --second-pass offline
both=$("$LINNET" listen --words --no-readable -q --no-paced --second-pass offline --raw --from "$tmp/twice.raw")
better=$("$LINNET" listen --words -q --no-paced --second-pass offline --raw --from "$tmp/twice.raw")
ok "a second pass: another text" [ "$better" != "$readable" ]
is "a second pass: vosk" "$both" "$(talk stream / raw="$tmp/twice.raw" wait end='{"eof" : 1}' | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')"
talk stream /v1/stream raw="$tmp/twice.raw" end='{"type":"end"}' > "$tmp/second"
is "a second pass: linnet" "$both" "$(texts "$tmp/second")"
talk stream /v1/realtime config="$(session '{"type":"server_vad"}' '')" append raw="$tmp/twice.raw" end="$commit" leave='item_2","content_index":0,"transcript' > "$tmp/vad"
is "a second pass: realtime: the items" "$better" "$(transcripts "$(cat "$tmp/vad")")"
deltas=$(sed -n 's/.*transcription.delta".*"delta":"\([^"]*\)".*/\1/p' "$tmp/vad" | tr -d '\n')
ok "a second pass: realtime: what was said before is of the first one" [ -n "$deltas" ]
talk stream /v1/realtime config="$(session null '')" append raw="$tmp/twice.raw" end="$commit" leave='transcription.completed' > "$tmp/manual"
is "a second pass: realtime: one item of several utterances" "$(printf '%s\n' "$better" | paste -s -d ' ' -)" "$(transcripts "$(cat "$tmp/manual")")"
stop "second"
finish
