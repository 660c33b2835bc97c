# The installed model that reads whole utterances: --offline, models by name, and what such a model cannot do.
. tests/app/common.sh

speech=/usr/share/pocketsphinx/test/data/goforward.raw
offline=share/linnet/en/offline.safetensors
"$SOUND" "$tmp/x.wav" seconds=3 seed=2
[ ! -f $speech ] || cp $speech "$tmp/s.raw"

run info offline
is "info: status" 0 "$status"
has "info" "$out" "bidirectional"
is "a model by its name, and by its path" "$("$LINNET" info --json $offline | grep fingerprint)" "$("$LINNET" info --json offline | grep fingerprint)"
is "default is the model without a name" "$("$LINNET" info --json | grep fingerprint)" "$("$LINNET" info --json default | grep fingerprint)"
(cd "$tmp" && cp "$OLDPWD/share/linnet/en/default.safetensors" offline && "$LINNET" info --json offline) > "$tmp/here" 2> "$tmp/.err"
is "a file of that name comes first" "$("$LINNET" info --json default | grep fingerprint)" "$(grep fingerprint "$tmp/here")"

if [ -f $speech ]; then
    by_flag=$("$LINNET" transcribe -q --raw --offline - < "$tmp/s.raw")
    is "--offline and --model offline" "$by_flag" "$("$LINNET" transcribe -q --raw --model offline - < "$tmp/s.raw")"
    is "--offline and its file" "$by_flag" "$("$LINNET" transcribe -q --raw --model $offline - < "$tmp/s.raw")"
    has "real speech" "$by_flag" "OW F AO R W ER K"
    echo "go forward ten meters" > "$tmp/said"
    "$LINNET" align -q --raw --offline -f ctm "$tmp/s.raw" "$tmp/said" > "$tmp/ctm" 2> "$tmp/.err" || fail "align" "$(cat "$tmp/.err")"
    has "align" "$(cat "$tmp/ctm")" "meters"
fi

refused "two models" 1 "--offline and --model name two models" transcribe -q --offline -m default "$tmp/x.wav"
refused "a stream" 1 "needs whole utterances" transcribe -q --offline --save-state "$tmp/state" "$tmp/x.wav"
refused "resets" 1 "needs whole utterances" transcribe -q --offline --reset endpoint "$tmp/x.wav"
refused "the microphone" 1 "needs whole utterances" listen -q --from "$tmp/x.wav" --model offline
cp $offline "$tmp/copy.safetensors"
refused "the model as output" 2 "is an input and would be overwritten" transcribe -q --offline "$tmp/x.wav" -o $offline
ok "the model is still there" cmp $offline "$tmp/copy.safetensors"
finish
