# The variants that the paper compares: trained, described, decoded, aligned and streamed by the same commands; and what they refuse.
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

# variant NAME CONF DESCRIPTION OPTIONS...: trains it
variant() {
    name=$1 conf=$2 want=$3
    shift 3
    run train "$tmp/v/$conf.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" --folder "$tmp/v/$name" -q "$@"
    is "$name: trained" 0 "$status"
    model=$tmp/v/$name/best.safetensors
    run info "$model"
    has "$name: info" "$out" "$want"
    json "$name: info --json" info --json "$model"
    run transcribe -m "$model" -q "$wav" "$tmp/data/u2.wav"
    is "$name: transcribe" 0 "$status"
    run posteriors -m "$model" -q "$wav" -o "$tmp/v/$name.npy"
    is "$name: posteriors" 0 "$status"
    run align -m "$model" -q --lexicon "$tmp/dict" "$wav" one two
    is "$name: align" 0 "$status"
    # train.conf of the run makes the same run
    run train "$tmp/v/$name/train.conf" --folder "$tmp/v/$name.again" -q
    is "$name: trained again from its train.conf" 0 "$status"
    ok "$name: the same model" cmp "$model" "$tmp/v/$name.again/best.safetensors"
}

# streams: as whole as in two parts with a saved state between
streams() {
    model=$tmp/v/$1/best.safetensors
    "$LINNET" transcribe -m "$model" -q "$wav" > "$tmp/v/whole" 2>&1
    rm -f "$tmp/v/state"
    run transcribe -m "$model" -q --save-state "$tmp/v/state" "$wav"
    is "$1: saves a state" 0 "$status"
    run transcribe -m "$model" -q --load-state "$tmp/v/state" "$tmp/data/u2.wav"
    is "$1: goes on from it" 0 "$status"
}

variant softmax transformer "softmax" --attention softmax --direction causal
streams softmax
variant softmax2 transformer "softmax" --attention softmax --direction bidirectional --positions sinusoid
variant naive transformer "softmax-naive" --attention softmax-naive --direction bidirectional
variant lsh transformer "lsh-2" --attention lsh --lsh-rounds 2 --lsh-chunk 8 --direction bidirectional
variant poly2 transformer "linear poly2" --feature-map poly2
streams poly2
variant random transformer "linear random-24" --feature-map random --features 24
streams random
variant lstm lstm "LSTM, 2 layers of 24 units, causal" --network lstm --width 24
streams lstm
variant bilstm lstm "LSTM, 2 layers of 24 units in each direction, bidirectional" --network lstm --width 24 --direction bidirectional

same() { is "$1" "$("$LINNET" transcribe -q -m "$tmp/v/softmax2/best.safetensors" "$wav")" "$out"; }

# ---- refused with one sentence --------------------------------------------------------------------------------------------------

train="--train $tmp/set.lfc --folder $tmp/v/none -q"
refused "an LSTM with heads" 1 "heads belongs to network = transformer" train "$tmp/v/lstm.conf" $train --network lstm --heads 2
refused "an LSTM with attention" 1 "attention belongs to network = transformer" train "$tmp/v/lstm.conf" $train --network lstm --attention lsh
refused "rounds without lsh" 1 "lsh-rounds belongs to attention = lsh" train "$tmp/v/transformer.conf" $train --lsh-rounds 2
refused "a feature map of softmax" 1 "feature-map belongs to attention = linear" \
    train "$tmp/v/transformer.conf" $train --attention softmax --feature-map poly2
refused "features without random" 1 "features belongs to feature-map = random" train "$tmp/v/transformer.conf" $train --features 9
refused "a transformer with a width" 1 "width belongs to network = lstm" train "$tmp/v/transformer.conf" $train --width 9
refused "a chunk of 0" 2 "lsh-chunk" train "$tmp/v/transformer.conf" $train --attention lsh --lsh-chunk 0
refused "too many features" 1 "head_width 60 gives 1891 features" \
    train "$tmp/v/transformer.conf" $train --feature-map poly2 --head-width 60
refused "another variant's checkpoint" 1 "holds a network of kind softmax, not lsh-4" \
    train "$tmp/v/transformer.conf" --train "$tmp/set.lfc" --folder "$tmp/v/softmax2" -q --resume --attention lsh \
    --direction bidirectional --positions sinusoid
refused "streaming a bidirectional LSTM" 1 "is bidirectional" listen -m "$tmp/v/bilstm/best.safetensors" --plain
refused "streaming LSH" 1 "cannot stream" listen -m "$tmp/v/lsh/best.safetensors" --plain

finish
