# linnet train --init: what comes from the model (network, normalisation, emission delay), what the message names, epoch 0 in the log.
. tests/app/common.sh

make_model || { fail "a small model"; finish; }
"$LINNET" average "$tmp/model.safetensors" --delay-ms 98 -o "$tmp/late.safetensors"
from="--train $tmp/set.lfc --dev $tmp/set.lfc --init $tmp/late.safetensors"
delay() { "$LINNET" info --json "$1" | sed -n 's/.*"emission_delay_ms": \([0-9]*\).*/\1/p'; }
network() { grep -E '^(layers|heads|head-width|feedforward|stack|ahead|positions|conv-kernel|conv-layers|direction) ' "$1"; }

# without any option of the network
exits "the network is the model's" 0 run train $from --folder "$tmp/tuned" --epochs 1
hasnt "no difference" "$err" "differs"
hasnt "no warm-up" "$err" "warmup"
has "the model is measured first" "$err" "before training  dev loss"
is "train.conf has it" "$(network "$tmp/run/train.conf")" "$(network "$tmp/tuned/train.conf")"
is "the delay stays" "98 98" "$(delay "$tmp/tuned/best.safetensors") $(delay "$tmp/tuned/checkpoint.safetensors")"
is "its line is epoch 0" "epoch 0 1" "$(cut -f1 "$tmp/tuned/log.tsv" | tr '\n' ' ' | sed 's/ $//')"
is "in per cent" "dev_per_percent" "$(head -n 1 "$tmp/tuned/log.tsv" | cut -f5)"
is "with the error rate that is printed" "$(printf '%s\n' "$err" | sed -n 's/.*before training.*PER \(.*\) %/\1/p')" \
    "$(awk -F'\t' '$1 == "0" { printf "%.2f", $5 }' "$tmp/tuned/log.tsv")"
is "best.safetensors is of an epoch of the run" "$(weights "$tmp/tuned/checkpoint.safetensors")" "$(weights "$tmp/tuned/best.safetensors")"

# resumed, with and without --init, and from a checkpoint alone
run train $from --folder "$tmp/tuned" --epochs 2 --resume -q
is "resumed: status" "0 98" "$status $(delay "$tmp/tuned/best.safetensors")"
mv "$tmp/late.safetensors" "$tmp/moved.safetensors"
run train --train "$tmp/set.lfc" --dev "$tmp/set.lfc" --folder "$tmp/tuned" --epochs 3 --resume -q
is "without the model: status" "0 98" "$status $(delay "$tmp/tuned/checkpoint.safetensors")"
is "the log goes on" "epoch 0 1 2 3" "$(cut -f1 "$tmp/tuned/log.tsv" | tr '\n' ' ' | sed 's/ $//')"
mv "$tmp/moved.safetensors" "$tmp/late.safetensors"
"$LINNET" average "$tmp/tuned/checkpoint.safetensors" -o "$tmp/mean.safetensors"
is "and in a mean" 98 "$(delay "$tmp/mean.safetensors")"

# options that differ
exits "wider" 0 run train $from --folder "$tmp/wide" --epochs 1 --set feedforward=48
has "wider: what differs is named" "$err" \
    "this network differs from that of $tmp/late.safetensors: feedforward 48 (the model: 32); what that model lacks"
is "wider: all else is the model's" "$(network "$tmp/run/train.conf" | sed 's/feedforward = 32/feedforward = 48/')" "$(network "$tmp/wide/train.conf")"
exits "in both directions" 0 run train $from --folder "$tmp/both" --epochs 1 --direction bidirectional -q
refused "another shape" 1 "it has another shape than this network: layers 3 (the model: 2), stack 1 (the model: 3)" \
    train $from --folder "$tmp/none" --layers 3 --stack 1
"$LINNET" prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" --stack 3 --fbank high-hz=5000 -q -o "$tmp/other.lfc"
run train --train "$tmp/other.lfc" --init "$tmp/late.safetensors" --folder "$tmp/filter" --epochs 1
has "another filterbank" "$err" "late.safetensors has another filterbank than $tmp/other.lfc"
"$LINNET" prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" --stack 3 --fbank mel-bins=30 -q -o "$tmp/other.lfc"
refused "other bins" 1 "30 mel bins in the caches (the model: 40)" \
    train --train "$tmp/other.lfc" --init "$tmp/late.safetensors" --folder "$tmp/none"

# a warm-up that is longer than half of the run
run train $from --folder "$tmp/warm" --epochs 2 --set warmup-steps=50
has "a long warm-up" "$err" "the learning rate rises for 50 steps (--set warmup-steps), more than half of the run, which has about 2 in 2 epochs"

# epochs with an equal error rate: only the first was saved
run train $from --folder "$tmp/equal" --epochs 3 --lr 1e-6
is "one error rate" 1 "$(echo "$err" | sed -n 's/^epoch.*dev PER \([0-9.]* %\).*/\1/p' | uniq | wc -l | tr -d ' ')"
is "of three epochs one is (best)" 1 "$(echo "$err" | grep -c '(best)')"

# long utterances
run train $from --folder "$tmp/short" --epochs 1 --set max-frames=10
has "too long an utterance" "$err" " is left out: it is longer than --set max-frames allows"
refused "only such" 1 "no utterance to train on; " train $from --folder "$tmp/short-q" -q --epochs 1 --set max-frames=1
has "and why" "$err" ", for example, is left out: it is longer than --set max-frames allows"

# a rate below the one at which the schedule ends
refused "no epoch" 1 "the learning rate 1e-07 is below 1e-06, at which a run with schedule plateau ends; lower min-lr" \
    train $from --folder "$tmp/slow" --epochs 1 --lr 1e-7
refused "no epoch, by min-lr" 1 "the learning rate 0.0001 is below 0.5" train $from --folder "$tmp/slow" --epochs 1 --set min-lr=0.5
run train $from --folder "$tmp/slow" --epochs 1 --lr 1e-7 --schedule constant -q
is "in the same folder, with another schedule: status" 0 "$status"

# weight decay is that of the optimiser's published code
decays() { to=$tmp/$1; shift; "$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --folder "$to" --epochs 1 -q "$@"; grep '^decay-all' "$to/train.conf"; }
is "RAdam: of all" "decay-all = yes" "$(decays radam)"
is "Adam: of matrices" "decay-all = no" "$(decays adam --set optimizer=adam)"
is "or as it is given" "decay-all = no decay-all = yes" "$(echo $(decays radam-not --set no-decay-all; decays adam-all --set optimizer=adam,decay-all))"
is "which makes a difference" "1" "$(cmp -s "$tmp/radam/best.safetensors" "$tmp/radam-not/best.safetensors"; echo $?)"

# a sweep: options of a line, and those of the model
printf 'base\nwide --set feedforward=48\n' > "$tmp/table"
sweep() { run train $from --folder "$tmp/sweep" --sweep "$tmp/table" --epochs 1 -q; }
exits "a sweep" 0 sweep
is "a sweep: the network is the model's" "$(network "$tmp/run/train.conf")" "$(network "$tmp/sweep/base.1/train.conf")"
is "a sweep: per cent" "$(printf 'name\tseed\tepochs\tbest_dev_per_percent')" "$(head -n 1 "$tmp/sweep/results.tsv" | cut -f1-4)"
is "a sweep: epoch 0 is no epoch" "1 1 1 1" "$(sed 1d "$tmp/sweep/results.tsv" | cut -f3,5 | tr '\t\n' '  ' | sed 's/ $//')"
first=$out
sweep
is "a sweep: finished runs of before" "$first" "$out"

# ---- what is found before the first epoch ----------------------------------------------------------------------------------------

refused "an option that the model's others contradict" 1 "what no option gives is taken from $tmp/late.safetensors: network configuration: conv_" \
    train $from --folder "$tmp/mixed" --positions none
refused "a name that no file can have" 1 "the name of a model must be one line of UTF-8 text" \
    train $from --folder "$tmp/named" --epochs 1 --name "$(printf 'n\377')"
refused "a licence of two lines, which train.conf cannot have" 1 "the licence of a model must be one line of UTF-8 text" \
    train $from --folder "$tmp/named" --epochs 1 --license "$(printf 'one\ntwo')"
ok "nothing was trained" test ! -e "$tmp/named"
mkdir "$tmp/model-only"
cp "$tmp/model.safetensors" "$tmp/model-only/checkpoint.safetensors"
refused "a model as checkpoint" 1 "is a model, not a checkpoint of a training run" train $from --folder "$tmp/model-only" --resume
finish
