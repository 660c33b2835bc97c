# [variants] The variants that the paper compares: trained, described, decoded, aligned and streamed by the same commands; and
# what they refuse.
. tests/app/common.sh

make_model || { fail "a small model"; finish; }
mkdir -p "$tmp/v"
printf 'layers = 2\nstack = 3\nepochs = 1\nlr = 1e-3\n' > "$tmp/v/lstm.conf"
cat "$tmp/v/lstm.conf" - > "$tmp/v/transformer.conf" <<END
heads = 2
head-width = 8
feedforward = 32
END
wav=$tmp/data/u1.wav
echo one two > "$tmp/v/said"
"$SOUND" "$tmp/v/x.raw" seconds=6 seed=3 format=raw

# variant NAME CONF DESCRIPTION OPTIONS...: trains it
variant() {
    name=$1 conf=$2 want=$3
    shift 3
    run train "$tmp/v/$conf.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" --folder "$tmp/v/$name" -q "$@"
    is "$name: trained" 0 "$status"
    model=$tmp/v/$name/best.safetensors
    shows "$name: info" "$want" info "$model"
    json "$name: info --json" info --json "$model"
    exits "$name: transcribe" 0 run transcribe -m "$model" -q "$wav" "$tmp/data/u2.wav"
    exits "$name: posteriors" 0 run posteriors -m "$model" "$wav" -o "$tmp/v/$name.npy"
    exits "$name: align" 0 run align -m "$model" -q --lexicon "$tmp/dict" "$wav" "$tmp/v/said"
    # train.conf of the run makes the same run
    exits "$name: trained again from its train.conf" 0 run train "$tmp/v/$name/train.conf" --folder "$tmp/v/$name.again" -q
    ok "$name: the same model" cmp "$model" "$tmp/v/$name.again/best.safetensors"
}

# streams NAME: a sound in two parts, with a saved state between them, gives the result of the whole
streams() {
    model=$tmp/v/$1/best.safetensors
    t() { "$LINNET" transcribe -q --raw -m "$model" -f ctm "$@"; }
    lines() { grep -v '^;;' | cut -d' ' -f2-; }
    t - < "$tmp/v/x.raw" | lines > "$tmp/v/whole"
    head -c 100002 "$tmp/v/x.raw" | t --save-state "$tmp/v/state" - > "$tmp/v/parts"
    tail -c +100003 "$tmp/v/x.raw" | t --load-state "$tmp/v/state" - >> "$tmp/v/parts"
    lines < "$tmp/v/parts" > "$tmp/v/parts.lines"
    ok "$1: two parts with a state between them" cmp "$tmp/v/whole" "$tmp/v/parts.lines"
}

variant softmax transformer "softmax" --attention softmax --direction causal
streams softmax
variant softmax2 transformer "softmax" --attention softmax --direction bidirectional --positions sinusoid
variant naive transformer "softmax-naive" --attention softmax-naive --direction bidirectional
variant lsh transformer "lsh-2" --attention lsh --set lsh-rounds=2,lsh-chunk=8 --direction bidirectional
variant poly2 transformer "linear poly2" --set feature-map=poly2
streams poly2
variant random transformer "linear random-24" --set feature-map=random,features=24
streams random
variant fixed transformer "linear, decay fixed" --decay fixed --set decay-half-life-s=0.1,2
streams fixed
variant gated transformer "linear, decay gated" --decay gated
streams gated
variant plain transformer "2 heads of 8"
variant condition transformer "on its own prediction after every 1 layer" --set condition-every=1 --init "$tmp/v/plain/best.safetensors"
streams condition
variant search transformer "one for searches with a language model" --set search=1 --init "$tmp/v/plain/best.safetensors"
streams search
sed 's/"search":"1"/"search":"7"/' "$tmp/v/search/best.safetensors" > "$tmp/v/damaged.safetensors"
refused "a third output" 1 'search is "7"' info "$tmp/v/damaged.safetensors"
# a run with decays begins with the weights of one without
exits "decays added: trained" 0 run train "$tmp/v/transformer.conf" --train "$tmp/set.lfc" --folder "$tmp/v/tuned" --decay gated \
    --set decay-half-life-s=2,20 --init "$tmp/v/plain/best.safetensors"
has "decays added: said" "$err" "decay gated (the model: none); what that model lacks begins with its initial values"
variant lstm lstm "LSTM, 2 layers of 24 units, causal" --network lstm --set width=24
streams lstm
variant bilstm lstm "LSTM, 2 layers of 24 units in each direction, bidirectional" --network lstm --set width=24 --direction bidirectional
variant centred transformer "centred depthwise convolution of 9 taps in 2 layers" --direction bidirectional --ahead 2 \
    --positions centred-conv --set conv-kernel=9,conv-layers=2 --init "$tmp/model.safetensors"

# A long sound is divided where the model needs whole utterances; no row is lost.
"$SOUND" "$tmp/v/long.wav" seconds=100 seed=4
for name in lstm centred; do
    "$LINNET" posteriors -m "$tmp/v/$name/best.safetensors" "$tmp/v/long.wav" -o "$tmp/v/$name.npy" 2> "$tmp/.err" || fail "$name: 100 s" "$(cat "$tmp/.err")"
done
is "rows of a divided sound" "$(wc -c < "$tmp/v/lstm.npy")" "$(wc -c < "$tmp/v/centred.npy")"

# the network of --init, an LSTM too
printf 'network = lstm\nwidth = 8\n' > "$tmp/v/short.conf"
"$LINNET" train "$tmp/v/short.conf" --train "$tmp/set.lfc" --stack 2 --folder "$tmp/v/first" --epochs 1 -q
run train --train "$tmp/set.lfc" --init "$tmp/v/first/best.safetensors" --folder "$tmp/v/second" --epochs 1 -q
is "an LSTM" "0 network = lstm width = 8 layers = 3 stack = 2" \
    "$status $(echo $(grep -E '^(network|layers|width|stack) ' "$tmp/v/second/train.conf"))"

# ---- refused with one sentence --------------------------------------------------------------------------------------------------

train="--train $tmp/set.lfc --folder $tmp/v/none -q"
refused "an LSTM with heads" 1 "heads belongs to network = transformer" train "$tmp/v/lstm.conf" $train --network lstm --set heads=2
refused "an LSTM with attention" 1 "attention belongs to network = transformer" train "$tmp/v/lstm.conf" $train --network lstm --attention lsh
refused "an LSTM from a transformer" 1 "it has another shape than this network: network lstm (the model: transformer)" \
    train "$tmp/v/short.conf" $train --init "$tmp/model.safetensors"
refused "an LSTM with a second output" 1 "search belongs to network = transformer" train "$tmp/v/lstm.conf" $train --network lstm --set search=1
refused "rounds without lsh" 1 "lsh-rounds belongs to attention = lsh" train "$tmp/v/transformer.conf" $train --set lsh-rounds=2
refused "a feature map of softmax" 1 "feature-map belongs to attention = linear" \
    train "$tmp/v/transformer.conf" $train --attention softmax --set feature-map=poly2
refused "features without random" 1 "features belongs to feature-map = random" train "$tmp/v/transformer.conf" $train --set features=9
refused "decays of softmax" 1 "decay belongs to causal linear attention with feature-map = elu" \
    train "$tmp/v/transformer.conf" $train --attention softmax --decay gated
refused "decays in both directions" 1 "decay belongs to causal linear attention with feature-map = elu" \
    train "$tmp/v/transformer.conf" $train --direction bidirectional --decay fixed
refused "decays of poly2" 1 "decay belongs to causal linear attention with feature-map = elu" \
    train "$tmp/v/transformer.conf" $train --set feature-map=poly2 --decay fixed
refused "half-lives in falling order" 1 "decay-half-life-s must be two numbers, the lower one first" \
    train "$tmp/v/transformer.conf" $train --decay gated --set decay-half-life-s=60,1
refused "one half-life" 1 "decay-half-life-s must be two numbers" \
    train "$tmp/v/transformer.conf" $train --decay gated --set decay-half-life-s=60
refused "half-lives in falling order, of no decay" 1 "decay-half-life-s must be two numbers, the lower one first" \
    train "$tmp/v/transformer.conf" $train --set decay-half-life-s=60,1
refused "weights of another kind of decay" 1 "it has another shape than this network" \
    train "$tmp/v/transformer.conf" $train --init "$tmp/v/gated/best.safetensors" --decay fixed
has "what differs" "$err" "decay fixed (the model: gated)"
refused "a transformer with a width" 1 "width belongs to network = lstm" train "$tmp/v/transformer.conf" $train --set width=9
refused "later frames in a causal network" 1 "reads later frames" \
    train "$tmp/v/transformer.conf" $train --positions centred-conv --set conv-kernel=5,conv-layers=2
refused "weights of another shape" 1 "has another shape than this network: layers 3 (the model: 2)" \
    train "$tmp/v/transformer.conf" $train --init "$tmp/model.safetensors" --layers 3
refused "taps that are too few" 1 "8 taps do not reach" train "$tmp/v/transformer.conf" $train --init "$tmp/model.safetensors" \
    --direction bidirectional --ahead 2 --positions centred-conv --set conv-kernel=8,conv-layers=2
refused "a chunk of 0" 2 "lsh-chunk" train "$tmp/v/transformer.conf" $train --attention lsh --set lsh-chunk=0
refused "too many features" 1 "head_width 60 gives 1891 features" \
    train "$tmp/v/transformer.conf" $train --set feature-map=poly2,head-width=60
refused "another variant's checkpoint" 1 "holds a network of kind softmax, not lsh-4" \
    train "$tmp/v/transformer.conf" --train "$tmp/set.lfc" --folder "$tmp/v/softmax2" -q --resume --attention lsh \
    --direction bidirectional --positions sinusoid
refused "a state of a bidirectional LSTM" 1 "this model needs whole utterances" \
    transcribe -m "$tmp/v/bilstm/best.safetensors" -q --save-state "$tmp/v/s" "$wav"
refused "a state of LSH" 1 "this model needs whole utterances" transcribe -m "$tmp/v/lsh/best.safetensors" -q --save-state "$tmp/v/s" "$wav"
refused "many streams of softmax" 1 "whose streams grow" bench streams -m "$tmp/v/softmax/best.safetensors" -n 2 -s 1

finish
