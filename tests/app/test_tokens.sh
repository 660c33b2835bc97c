# Networks of tokens in the program: linnet train, info, average and --init take them, the commands of speech refuse them.
. tests/app/common.sh

"$TOKENS" "$tmp/set.lds" 7 7 20 && "$TOKENS" "$tmp/dev.lds" 7 7 5 && "$TOKENS" "$tmp/other.lds" 9 9 5 || { fail "sets of tokens"; finish; }
small="--layers 1 --set heads=2,head-width=8,feedforward=16 --epochs 3 --lr 0.01 --threads 1"
network="--positions sinusoid $small"

shows "the kind of the set" "set of tokens" info "$tmp/set.lds"
has "its tokens" "$out" "tokens:           400"
shows "in JSON" '"sequences": 20, "tokens": 400, "different_tokens": 7, "targets": ' info --json "$tmp/set.lds"

# ---- training ------------------------------------------------------------------------------------------------------------------

exits "train" 0 run train --train "$tmp/set.lds" --dev "$tmp/dev.lds" --folder "$tmp/trained" $network
has "the loss is printed in bits" "$err" "bits (best)"
has "and the speed in tokens" "$err" "tokens/s"
hasnt "no error rate of phones" "$err" "PER"
model=$tmp/trained/best.safetensors
shows "info: tokens" "tokens:           7 different, each a row of the embedding table; a softmax over 7" info "$model"
has "info: symbols" "$out" "symbols:          0 1 2 3 4 5 6"
hasnt "info: no sound" "$out" "log-mel"
shows "info in JSON" '"outputs": 7, "tokens": 7,' info --json "$model"
exits "resumed" 0 run train --train "$tmp/set.lds" --dev "$tmp/dev.lds" --folder "$tmp/trained" $network --epochs 4 --resume -q
exits "average" 0 run average "$model" "$tmp/trained/checkpoint.safetensors" --half -o "$tmp/mean.safetensors"
run train --train "$tmp/set.lds" --dev "$tmp/dev.lds" --init "$tmp/mean.safetensors" --folder "$tmp/on" --epochs 1 --threads 1
is "from a model: status" 0 "$status"
has "it is measured first" "$err" "before training  dev loss"
hasnt "its network is taken" "$err" "differs"
has "with its positions" "$(cat "$tmp/on/train.conf")" "positions = sinusoid"
refused "from a model of other tokens" 1 "another shape than this network: 9 different tokens in the caches (the model: 7" \
    train --train "$tmp/other.lds" --init "$tmp/mean.safetensors" --folder "$tmp/none"
refused "another development set" 1 "other.lds has 9 different tokens, the model 7" \
    train --train "$tmp/set.lds" --dev "$tmp/other.lds" --folder "$tmp/none" $network
refused "masks" 1 "these sets hold tokens" train --train "$tmp/set.lds" --folder "$tmp/none" $network --set time-masks=1
refused "stacked frames" 1 "tokens come one by one" train --train "$tmp/set.lds" --folder "$tmp/none" $network --stack 2
refused "a mixture of 7 values" 1 "a mixture predicts tokens of 256 values" \
    train --train "$tmp/set.lds" --folder "$tmp/none" $network --set mixture=2

# mixtures need the paper's operations
"$TOKENS" "$tmp/values.lds" 256 256 20
run train --train "$tmp/values.lds" --dev "$tmp/values.lds" --folder "$tmp/values" $network --set mixture=2
if [ "$status" = 0 ]; then
    shows "info: mixture" "a mixture of 2 logistics over 256 values" info "$tmp/values/best.safetensors"
    shows "info: mixture in JSON" '"outputs": 6, "tokens": 256, "mixture": 2,' info --json "$tmp/values/best.safetensors"
    run train --train "$tmp/values.lds" --dev "$tmp/values.lds" --folder "$tmp/values" $network --set mixture=2 --epochs 4 --resume -q
    is "a mixture resumed: status" 0 "$status"
    echo base > "$tmp/table"
    run train --train "$tmp/values.lds" --dev "$tmp/values.lds" --folder "$tmp/sweep" --sweep "$tmp/table" $network --set mixture=2 -q
    is "a sweep: its best epoch has the lowest loss" \
        "$(sed 1d "$tmp/sweep/base.1/log.tsv" | sort -t'	' -g -k4,4 | head -n 1 | cut -f1,4)" "$(sed 1d "$tmp/sweep/results.tsv" | cut -f5,6)"
else
    has "without the paper" "$err" "PAPER=0"
fi

# ---- speech --------------------------------------------------------------------------------------------------------------------

make_model || { fail "a small model"; finish; }
refused "a model of sound for tokens" 1 "7 different tokens in the caches (the model: 0; 0: features)" \
    train --train "$tmp/set.lds" --init "$tmp/model.safetensors" --folder "$tmp/none" --stack 1 --ahead 0
refused "a model of tokens for sound" 1 "0 different tokens in the caches (the model: 7; 0: features)" \
    train --train "$tmp/set.lfc" --init "$model" --folder "$tmp/none"
refused "sound beside tokens" 1 "has 0 different tokens, the model 7" \
    train --train "$tmp/set.lds" --train "$tmp/set.lfc" --folder "$tmp/none" $network
refused "a mixture of sound" 1 "a mixture predicts tokens" train --train "$tmp/set.lfc" --folder "$tmp/none" $network --set mixture=2

sound=$tmp/data/u1.wav
echo "one two" > "$tmp/u1.txt"
why="is a network of tokens: it takes no sound"
refused "transcribe" 1 "best.safetensors $why" transcribe --model "$model" "$sound"
refused "transcribe, in half precision" 1 "mean.safetensors $why" transcribe --model "$tmp/mean.safetensors" "$sound"
LINNET_MODEL=$model; export LINNET_MODEL
refused "transcribe from LINNET_MODEL" 1 "$why" transcribe "$sound"
unset LINNET_MODEL
refused "transcribe words" 1 "$why" transcribe --model "$model" --words "$sound"
refused "align" 1 "$why" align --model "$model" "$sound" "$tmp/u1.txt"
refused "listen" 1 "$why" listen --model "$model" --from "$sound"
[ ! -f "$(dirname "$LINNET")/liblinnet_web.so" ] || refused "serve" 1 "$why" serve --model "$model" --listen 127.0.0.1:0
refused "features" 1 "$why" features --model "$model" "$sound" -o "$tmp/x.npy"
refused "lexicon" 1 "$why" lexicon --model "$model" "$tmp/dict" -o "$tmp/x.lex"
refused "bench" 1 "$why" bench streams --model "$model"
finish
