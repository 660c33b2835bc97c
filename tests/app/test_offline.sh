# The installed model that reads whole utterances: --offline, models by name, the sound of another one too (--combine), and what such a
# model cannot do.
. tests/app/common.sh

speech=/usr/share/pocketsphinx/test/data/goforward.raw
offline=share/linnet/en/offline.safetensors
"$SOUND" "$tmp/x.wav" seconds=3 seed=2
[ ! -f $speech ] || cp $speech "$tmp/s.raw"

exits "info" 0 run info offline
has "info" "$out" "bidirectional"
is "a model by its name, and by its path" "$("$LINNET" info --json $offline | grep fingerprint)" "$("$LINNET" info --json offline | grep fingerprint)"
is "default is the model without a name" "$("$LINNET" info --json | grep fingerprint)" "$("$LINNET" info --json default | grep fingerprint)"
(cd "$tmp" && cp "$OLDPWD/share/linnet/en/default.safetensors" offline && "$LINNET" info --json offline) > "$tmp/here" 2> "$tmp/.err"
is "a file of that name comes first" "$("$LINNET" info --json default | grep fingerprint)" "$(grep fingerprint "$tmp/here")"

if [ -f $speech ]; then
    by_flag=$("$LINNET" transcribe -q --raw --offline - < "$tmp/s.raw")
    is "--offline and --model offline" "$by_flag" "$("$LINNET" transcribe -q --raw --model offline - < "$tmp/s.raw")"
    is "--offline and its file" "$by_flag" "$("$LINNET" transcribe -q --raw --model $offline - < "$tmp/s.raw")"
    has "real speech" "$by_flag" "OW F AO R W ER"
    "$LINNET" transcribe -q --raw --offline --start 1.8 -f ctm "$tmp/s.raw" > "$tmp/ctm"
    is "sound that begins inside a phone: lengths" "1 0" "$(awk '{ zero += $4 <= 0 } END { print (NR > 2), zero + 0 }' "$tmp/ctm")"
    echo "go forward ten meters" > "$tmp/said"
    "$LINNET" align -q --raw --offline -f ctm "$tmp/s.raw" "$tmp/said" > "$tmp/ctm" 2> "$tmp/.err" || fail "align" "$(cat "$tmp/.err")"
    has "align" "$(cat "$tmp/ctm")" "meters"

    # Acoustic scores by the weight of the second model: those of 0.25 lie between those of 0 and 1.
    for w in 0 0.25 1; do
        "$LINNET" transcribe -q --raw --offline --words -n 20 -f json --combine default --tune combine-weight=$w "$tmp/s.raw" > "$tmp/$w.json"
        sed 's/.*"alternatives"://; s/{"phones":/\n&/g' "$tmp/$w.json" |
            sed -n 's/.*"text":"\([^"]*\)".*"score":\([-0-9.]*\),"acoustic":\([-0-9.]*\),.*/\1\t\2\t\3/p' > "$tmp/$w.tsv"
    done
    ok "best first" sh -c "cut -f 2 '$tmp/0.25.tsv' | sort -g -r -c"
    is "the mean of both models' sums" "20 0" "$(awk -F '\t' 'FILENAME ~ /\/0.tsv/ { own[$1] = $3; score[$1] = $2; next } FILENAME ~ /\/1.tsv/ { other[$1] = $3; next }
        { n++; want = 0.75 * own[$1] + 0.25 * other[$1]; d = $3 - want; e = $2 - score[$1] - ($3 - own[$1])
          wrong += d * d > 1e-5 || e * e > 1e-5 || other[$1] == own[$1] } END { print n, wrong }' "$tmp/0.tsv" "$tmp/1.tsv" "$tmp/0.25.tsv")"
    is "a weight of 0" "$("$LINNET" transcribe -q --raw --offline --words -n 20 -f json "$tmp/s.raw")" "$(cat "$tmp/0.json")"
    has "words" "$("$LINNET" transcribe -q --raw --offline --words --combine default "$tmp/s.raw")" "Go forward 10 met"
    # Longer than an utterance: both models hear the same pieces, and threads change nothing.
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cat "$tmp/s.raw"; done > "$tmp/long.raw"
    "$LINNET" transcribe -q --raw --offline --words --no-readable --combine default "$tmp/long.raw" > "$tmp/long"
    is "a long sound" 16 "$(grep -o "go forward ten met" "$tmp/long" | wc -l)"
    is "one thread" "$(cat "$tmp/long")" "$("$LINNET" transcribe -q --raw --offline --words --no-readable --combine default -j 1 "$tmp/long.raw")"
    is "sentences of a grammar end at pauses" 16 "$("$LINNET" transcribe -q --raw --offline --grammar "$tmp/said" -f ctm "$tmp/long.raw" | grep -c meters)"
    has "a live stream's second pass" "$("$LINNET" listen -q --plain --words --no-paced --second-pass offline --combine default --from "$tmp/s.raw" --raw)" "forward 10 met"
fi

refused "a stream has no whole utterances" 1 "--best and --combine need whole utterances; use --offline, without --model" \
    transcribe -q --best -m small "$tmp/x.wav"
refused "listen: likewise" 2 "add --second-pass offline" listen -q --combine default --from "$tmp/x.wav"
refused "a weight of nothing" 2 "combine-weight needs --combine" transcribe -q --offline --tune combine-weight=0.3 "$tmp/x.wav"
refused "no such model" 1 "$tmp/none" transcribe -q --offline --combine "$tmp/none" "$tmp/x.wav"
refused "fewer hypotheses than are compared" 2 "needs a --beam" transcribe -q --offline --words --combine default --beam 10 "$tmp/x.wav"

refused "two models" 1 "--offline and --model name two models" transcribe -q --offline -m default "$tmp/x.wav"
refused "a stream" 1 "needs whole utterances" transcribe -q --offline --save-state "$tmp/state" "$tmp/x.wav"
refused "resets" 1 "needs whole utterances" transcribe -q --offline --reset endpoint "$tmp/x.wav"
refused "the microphone" 1 "needs whole utterances" listen -q --from "$tmp/x.wav" --model offline
cp $offline "$tmp/copy.safetensors"
refused "the model as output" 2 "is an input and would be overwritten" transcribe -q --offline "$tmp/x.wav" -o $offline
ok "the model is still there" cmp $offline "$tmp/copy.safetensors"
finish
