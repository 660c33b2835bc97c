# linnet serve: the protocols of WebSockets, each at its address, one of them at / too: sherpa-onnx's, and that all of them hear the
# same. Over the loopback interface.
. tests/app/common.sh
. tests/app/serving.sh

real=/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav
speech=$tmp/speech.wav
if [ -f "$real" ]; then cp "$real" "$speech"; else "$SOUND" "$speech" seconds=3 seed=2; fi
tail -c +45 "$speech" > "$tmp/speech.raw"
head -c 38400 /dev/zero > "$tmp/pause"
cat "$tmp/speech.raw" "$tmp/pause" "$tmp/speech.raw" > "$tmp/twice.raw"
# The same as floats of 32 bits: the sign, the power of two, and the digits of each sample.
"$SOUND" "$tmp/x.wav" seconds=0.1
od -An -v -td2 -w2 "$tmp/twice.raw" | awk '{
    v = $1 + 0; s = v < 0 ? 128 : 0; if (v < 0) v = -v; e = 0; m = 0
    if (v) { k = 0; while (2 ^ (k + 1) <= v) k++; e = 127 + k - 15; m = (v / 2 ^ k - 1) * 2 ^ 23 }
    printf "\\%03o\\%03o\\%03o\\%03o", m % 256, int(m / 256) % 256, (e % 2) * 128 + int(m / 65536), s + int(e / 2)
    if (NR % 1000 == 0) print "" } END { print "" }' | while read -r line; do printf "$line"; done > "$tmp/twice.f32"
is "twice as many bytes" $(($(wc -c < "$tmp/twice.raw") * 2)) "$(wc -c < "$tmp/twice.f32" | tr -d ' ')"
both=$("$LINNET" listen --words --no-readable -q --no-paced --raw --from "$tmp/twice.raw")

start words
for path in / /vosk; do
    is "vosk at $path" "$both" "$(talk stream $path raw="$tmp/twice.raw" wait end='{"eof" : 1}' | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')"
done
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
for path in /vosk /sherpa-onnx /v1/stream; do has "docs: $path" "$(talk get /docs)" "<code>$path</code>"; done
stop "words"

start sherpa --websocket sherpa-onnx --no-words
is "sherpa-onnx at /: phonemes" "$("$LINNET" listen -q --no-paced --raw --from "$tmp/twice.raw")" \
    "$(finals "$(talk stream / raw="$tmp/twice.f32" chunk=32000 end=Done)" | sed 's/^{"text":"\([^"]*\)".*/\1/')"
kill "$server"
wait "$server"
refused "a protocol that there is not" 2 "websocket" serve --websocket x
finish
