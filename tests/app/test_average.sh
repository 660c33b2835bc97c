# linnet average: the mean of models, from the epochs that linnet train --keep leaves; what it refuses.
. tests/app/common.sh

make_model || { fail "a small model"; finish; }
conf=$tmp/train.conf set=$tmp/set.lfc wav=$tmp/data/u1.wav
exits "train --keep" 0 run train "$conf" --train "$set" --dev "$set" --folder "$tmp/kept" -q --epochs 5 --keep 3
is "the last three epochs" "epoch-3.safetensors epoch-4.safetensors epoch-5.safetensors" "$(cd "$tmp/kept" && echo epoch-*)"
e() { echo "$tmp/kept/epoch-$1.safetensors"; }

exits "one model" 0 run average "$(e 5)" -o "$tmp/one.safetensors"
"$LINNET" posteriors -m "$(e 5)" "$wav" -o "$tmp/a.npy" && "$LINNET" posteriors -m "$tmp/one.safetensors" "$wav" -o "$tmp/b.npy"
ok "the mean of one model is that model" cmp "$tmp/a.npy" "$tmp/b.npy"
"$LINNET" average --half "$(e 5)" -o "$tmp/half1.safetensors" && "$LINNET" average --half "$tmp/half1.safetensors" -o "$tmp/half2.safetensors"
is "to the sign of a zero" "$("$LINNET" info "$tmp/half1.safetensors" | grep fingerprint)" "$("$LINNET" info "$tmp/half2.safetensors" | grep fingerprint)"
run average "$(e 5)" "$(e 5)" "$(e 5)" "$(e 5)" -o "$tmp/same.safetensors"
"$LINNET" posteriors -m "$tmp/same.safetensors" "$wav" -o "$tmp/b.npy"
ok "the mean of equal models is that model" cmp "$tmp/a.npy" "$tmp/b.npy"
exits "three models" 0 run average "$(e 3)" "$(e 4)" "$(e 5)" -o "$tmp/abc.safetensors" --name mean --license CC0
run average "$(e 5)" "$(e 4)" "$(e 3)" -o "$tmp/cba.safetensors" --name mean --license CC0
for m in abc cba; do "$LINNET" posteriors -m "$tmp/$m.safetensors" "$wav" -o "$tmp/$m.npy"; done
ok "their order does not matter" cmp "$tmp/abc.npy" "$tmp/cba.npy"
ok "the mean is another model" sh -c "! cmp -s '$tmp/a.npy' '$tmp/abc.npy'"
shows "the name" mean info "$tmp/abc.safetensors"
has "the licence" "$out" CC0
run info --json "$tmp/abc.safetensors"
has "the number of models" "$(echo "$out" | tr -d ' \n')" '"averaged":3'
has "the provenance of the first" "$out" '"trained_on"'
exits "in half precision" 0 run average --half "$(e 3)" "$(e 4)" -o "$tmp/half.safetensors"
[ "$(wc -c < "$tmp/half.safetensors")" -lt "$(wc -c < "$tmp/abc.safetensors")" ] || fail "half is smaller"
run average "$tmp/kept/checkpoint.safetensors" "$(e 5)" -o "$tmp/last.safetensors"
"$LINNET" posteriors -m "$tmp/last.safetensors" "$wav" -o "$tmp/b.npy"
ok "a checkpoint is the model of its epoch" cmp "$tmp/a.npy" "$tmp/b.npy"

run train "$conf" --train "$set" --dev "$set" --folder "$tmp/moving" -q --epochs 3 --keep 1 --ema 0.9
for ema in "" --ema; do
    run average $ema "$tmp/moving/checkpoint.safetensors" -o "$tmp/moving$ema.safetensors"
    "$LINNET" posteriors -m "$tmp/moving$ema.safetensors" "$wav" -o "$tmp/moving$ema.npy"
done
"$LINNET" posteriors -m "$tmp/moving/epoch-3.safetensors" "$wav" -o "$tmp/b.npy"
ok "the moving average of a checkpoint is the model of its epoch" cmp "$tmp/moving--ema.npy" "$tmp/b.npy"
ok "its weights are not" sh -c "! cmp -s '$tmp/moving.npy' '$tmp/b.npy'"
run average --ema "$tmp/moving/checkpoint.safetensors" "$tmp/moving/epoch-3.safetensors" -o "$tmp/last.safetensors"
is "with a model that has no moving average: status" 0 "$status"
refused "no moving average" 1 "none of the models is a checkpoint of a run with --ema" average --ema "$(e 5)" -o "$tmp/x.safetensors"
refused "a checkpoint without one" 1 "$tmp/kept/checkpoint.safetensors is a checkpoint of a run without --ema" \
    average --ema "$tmp/moving/checkpoint.safetensors" "$tmp/kept/checkpoint.safetensors" -o "$tmp/x.safetensors"

# A run that begins with a model's weights keeps their normalisation, also on other data: the two can be averaged.
head -n 2 "$tmp/data/wav.scp" > "$tmp/data/two.scp" && mkdir "$tmp/two" && mv "$tmp/data/two.scp" "$tmp/two/wav.scp"
head -n 2 "$tmp/data/text" > "$tmp/two/text" && head -n 2 "$tmp/data/utt2spk" > "$tmp/two/utt2spk"
"$LINNET" prepare "$tmp/two" --audio-root "$tmp/data" --lexicon "$tmp/dict" --stack 3 -q -o "$tmp/two.lfc"
exits "other data" 0 run train "$conf" --train "$tmp/two.lfc" --init "$(e 5)" --folder "$tmp/other" -q --epochs 1 --keep 1
exits "with other data" 0 run average "$(e 5)" "$tmp/other/epoch-1.safetensors" -o "$tmp/both.safetensors"
is "with other data: message" "" "$err"
sets() { "$LINNET" info --json "$1" | tr -d ' \n' | sed 's/"options".*"also/"also/' | grep -o 'trained_on\|also_trained_on\|"set":"[a-z]*"' | tr -d '"\n' | sed 's/set:/ /g; s/also/ also/'; }
is "a model names the sets of the weights that it began with" "trained_on two also_trained_on data" "$(sets "$tmp/other/best.safetensors")"
is "a mean those of all models" "trained_on data also_trained_on two" "$(sets "$tmp/both.safetensors")"
run train "$conf" --train "$tmp/two.lfc" --folder "$tmp/other" -q --epochs 2 --resume
is "a resumed run too" "0 trained_on two also_trained_on data" "$status $(sets "$tmp/other/checkpoint.safetensors")"
is "weights of the same sets name them once" "trained_on data" "$(sets "$(e 5)")"

# ---- the running level ---------------------------------------------------------------------------------------------------------------

exits "--level-db" 0 run average "$(e 5)" -o "$tmp/level.safetensors" --level-db 103
shows "info names the level" '"level_db": 103' info --json "$tmp/level.safetensors"
"$LINNET" average "$tmp/level.safetensors" -o "$tmp/again.safetensors"
shows "it stays" '"level_db": 103' info --json "$tmp/again.safetensors"
"$LINNET" average "$tmp/level.safetensors" --level-db 0 -o "$tmp/none.safetensors"
shows "0: none" '"level_db": 0' info --json "$tmp/none.safetensors"
is "and the model of before" "$(weights "$(e 5)")" "$(weights "$tmp/none.safetensors")"
for db in 0.5 -0.5; do
    refused "--level-db $db: out of range" 2 "--level-db" average "$(e 5)" -o "$tmp/x.safetensors" --level-db $db
done

# ---- the hop -------------------------------------------------------------------------------------------------------------------------

exits "--hop-ms" 0 run average "$(e 5)" -o "$tmp/hop.safetensors" --hop-ms 9.5
shows "info names the hop" '"hop_ms": 9.5' info --json "$tmp/hop.safetensors"
run average "$tmp/hop.safetensors" -o "$tmp/again.safetensors"
shows "it stays" '"hop_ms": 9.5' info --json "$tmp/again.safetensors"
run average "$(e 5)" -o "$tmp/whole.safetensors" --hop-ms 9.6
shows "whole samples" '"hop_ms": 9.56' info --json "$tmp/whole.safetensors"
refused "--hop-ms: less than a sample" 1 "hop_ms is 0" average "$(e 5)" -o "$tmp/x.safetensors" --hop-ms 0.001
refused "--hop-ms: longer than the window" 1 "hop_ms is 40" average "$(e 5)" -o "$tmp/x.safetensors" --hop-ms 40

# ---- the blank's bias ----------------------------------------------------------------------------------------------------------------

phones_of() { "$LINNET" transcribe -q -m "$1" "$wav" | wc -w | tr -d ' '; }
exits "--blank-bias" 0 run average "$(e 5)" -o "$tmp/less.safetensors" --blank-bias 20
run average "$(e 5)" -o "$tmp/more.safetensors" --blank-bias=-20
is "--blank-bias: fewer phonemes" 0 "$(phones_of "$tmp/less.safetensors")"
[ "$(phones_of "$tmp/more.safetensors")" -gt 0 ] || fail "--blank-bias: more phonemes"
run train "$conf" --train "$set" --folder "$tmp/search" -q --epochs 1 --set search=1 --init "$(e 5)"
run average "$tmp/search/best.safetensors" -o "$tmp/search.safetensors"
run average "$tmp/search/best.safetensors" -o "$tmp/searched.safetensors" --blank-bias 20
for o in "" --search; do
    for m in search searched; do "$LINNET" posteriors $o -m "$tmp/$m.safetensors" "$wav" -o "$tmp/$m$o.npy"; done
done
ok "--blank-bias: of the output for searches" sh -c "! cmp -s '$tmp/search--search.npy' '$tmp/searched--search.npy'"
ok "--blank-bias: phonemes alone do not change" cmp "$tmp/search.npy" "$tmp/searched.npy"
refused "--blank-bias: out of range" 2 "--blank-bias" average "$(e 5)" -o "$tmp/x.safetensors" --blank-bias 21

# ---- the emission delay ----------------------------------------------------------------------------------------------------------

exits "--delay-ms" 0 run average "$(e 5)" -o "$tmp/late.safetensors" --delay-ms 70
shows "info names the delay" "70 ms earlier than the network's output (emission delay)" info "$tmp/late.safetensors"
"$LINNET" average "$tmp/late.safetensors" "$(e 4)" -o "$tmp/again.safetensors"
shows "it stays that of the first model" '"emission_delay_ms": 70' info --json "$tmp/again.safetensors"
"$LINNET" average "$(e 4)" "$tmp/late.safetensors" -o "$tmp/again.safetensors"
shows "or of the first that has one" '"emission_delay_ms": 70' info --json "$tmp/again.safetensors"
"$LINNET" average "$(e 4)" --delay-ms 90 -o "$tmp/later.safetensors"
exits "two delays" 0 run average "$tmp/late.safetensors" "$tmp/later.safetensors" -o "$tmp/again.safetensors"
has "two delays: message" "$err" "later.safetensors has an emission delay of 90 ms, a model before it one of 70 ms, which is used"
run average "$tmp/late.safetensors" "$tmp/later.safetensors" -o "$tmp/again.safetensors" --delay-ms 80
is "one that is given: no message" "" "$err"
"$LINNET" average "$tmp/late.safetensors" --delay-ms 0 -o "$tmp/zero.safetensors"
shows "until it is replaced" '"emission_delay_ms": 0' info --json "$tmp/zero.safetensors"
speech=/usr/share/pocketsphinx/test/data/goforward.raw
if [ -f $speech ]; then
    default=share/linnet/en/default.safetensors
    "$LINNET" average $default --delay-ms 0 -o "$tmp/none.safetensors"
    "$LINNET" average $default --delay-ms 70 -o "$tmp/some.safetensors"
    cp $speech "$tmp/s.raw"
    t() { "$LINNET" transcribe -q --raw -f ctm -m "$1" "$tmp/s.raw"; }
    is "times are earlier by the delay" "$(t "$tmp/none.safetensors" | awk '{ printf "%s %.3f %s\n", $5, $3 - 0.07, $4 }')" \
        "$(t "$tmp/some.safetensors" | awk '{ print $5, $3, $4 }')"
    "$LINNET" posteriors -m "$tmp/some.safetensors" - -o "$tmp/s.npy" < "$tmp/s.raw" 2> /dev/null
    is "decode --delay-ms gives the times of transcribe" "$(t "$tmp/some.safetensors")" \
        "$("$LINNET" decode -q -f ctm --delay-ms 70 "$tmp/s.npy")"
fi
sed 's/"emission_delay_ms":"70"/"emission_delay_ms":"7x"/' "$tmp/late.safetensors" > "$tmp/damaged.safetensors"
refused "a delay that is no number" 1 'emission_delay_ms is "7x"' info "$tmp/damaged.safetensors"

# ---- refused ---------------------------------------------------------------------------------------------------------------------

"$LINNET" train "$conf" --train "$set" --folder "$tmp/deep" -q --epochs 1 --layers 3
refused "another network" 1 "deep/best.safetensors has another network than" \
    average "$(e 5)" "$tmp/deep/best.safetensors" -o "$tmp/x.safetensors"
for i in 1 2 3 4; do "$SOUND" "$tmp/data/u$i.wav" seconds=1.5 seed=$((i + 9)); done
"$LINNET" prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" --stack 3 -q -o "$tmp/other.lfc"
"$LINNET" train "$conf" --train "$tmp/other.lfc" --folder "$tmp/norm" -q --epochs 1
refused "another normalisation" 1 "has another normalisation of the features than" \
    average "$(e 5)" "$tmp/norm/best.safetensors" -o "$tmp/x.safetensors"
"$LINNET" prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" --stack 3 --fbank high-hz=5000 -q -o "$tmp/other.lfc"
"$LINNET" train "$conf" --train "$tmp/other.lfc" --folder "$tmp/features" -q --epochs 1
refused "other features" 1 "has another filterbank than" average "$(e 5)" "$tmp/features/best.safetensors" -o "$tmp/x.safetensors"
refused "no such model" 1 "none.safetensors" average "$(e 5)" "$tmp/none.safetensors" -o "$tmp/x.safetensors"
refused "an input as output" 2 "epoch-4" average "$(e 5)" "$(e 4)" -o "$(e 4)"
exits "no model" 2 run average -o "$tmp/x.safetensors"
ok "nothing was written" test ! -e "$tmp/x.safetensors"

# ---- fewer models are kept than before ---------------------------------------------------------------------------------------------

run train "$conf" --train "$set" --dev "$set" --folder "$tmp/fewer" -q --epochs 4 --keep 3
run train "$conf" --train "$set" --dev "$set" --folder "$tmp/fewer" -q --epochs 5 --keep 1 --resume
is "only the last one stays" "epoch-5.safetensors" "$(cd "$tmp/fewer" && echo epoch-*)"
exits "the options of a resumed run, for a new one" 0 run train "$tmp/fewer/train.conf" --folder "$tmp/anew" -q --epochs 1

# ---- the other methods of linnet train ---------------------------------------------------------------------------------------------

all="--ema 0.9 --set accumulate=2,inter-ctc-layers=1,inter-ctc-weight=0.4 --batch-frames 200 --epochs 2"
exits "all methods together" 0 run train "$conf" --train "$set" --dev "$set" --folder "$tmp/all" -q $all
exits "from its train.conf" 0 run train "$tmp/all/train.conf" --folder "$tmp/all2" -q
ok "from its train.conf: the same model" cmp "$tmp/all/best.safetensors" "$tmp/all2/best.safetensors"
run info --json "$tmp/all/best.safetensors"
has "they are in the provenance" "$(echo "$out" | tr -d ' \n')" '"inter-ctc-layers":[1]'
refused "a layer that is not inner" 1 "layer 2 of 2" train "$conf" --train "$set" --folder "$tmp/none" -q --set inter-ctc-layers=1,2
refused "half a layer" 2 "inter-ctc-layers needs a whole number, not '1.5'" train "$conf" --train "$set" --folder "$tmp/none" -q --set inter-ctc-layers=1.5
refused "a layer twice" 1 "inter-ctc-layers has 1 twice" train "$conf" --train "$set" --folder "$tmp/none" -q --set inter-ctc-layers=1,1
refused "a root without eps" 2 "eps must be between 1e-30 and 1, not 0" train "$conf" --train "$set" --folder "$tmp/none" --set eps=0
finish
