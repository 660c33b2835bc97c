#!/usr/bin/env bash
# The models of this folder, which tests of recognition read in place of the installed ones: a fortieth of their weights, three
# times their errors. Ten minutes on two cores.
#
#   tests/golden/en/models.sh --features DIR --output DIR [--linnet build/release/linnet]
#
# --features: what recipes/open/run.sh makes (recipes/open/README.md). The models come to OUTPUT/default.safetensors and
# offline.safetensors. They have what the installed ones have: steps of 3 frames, gates or both directions, convolutions, two outputs,
# a level, an emission delay, weights in eight bits.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../recipes/common.sh"

features= output= work=.
flags=" " values=" features output linnet "
options "$@"
[ -f "$features/dev_native.lfc" ] || die "where are the features? give --features DIR"
[ -n "$output" ] || die "where to? give --output DIR"

sets=()
for set in train_native train_read train_librispeech train_common_voice train_cv quiet; do sets+=(--train "$features/$set.lfc"); done
# model NAME OPTIONS...
model() {
  local name=$1 run=$output/$1
  shift
  "$linnet" train "$here/models.conf" "$@" "${sets[@]}" --dev "$features/dev_native.lfc" --lr 4e-3 --epochs 3 --seed 1 --folder "$run"
  "$linnet" train "$here/models.conf" --init "$run/best.safetensors" "${sets[@]}" --dev "$features/dev_native.lfc" --lr 1e-3 --epochs 1 \
    --set "search=1,mmi=0.9,mmi-lm=$here/../../../share/linnet/en/phones.lm,epoch-parts=3" --seed 2 --folder "$run.search"
  "$linnet" average --ema "$run.search/checkpoint.safetensors" --name "linnet-test-$name" --license "CC BY-SA 4.0; see NOTICE" \
    --level-db 103 --delay-ms 100 -o "$run.float.safetensors"
  "$linnet" quantise "$run.float.safetensors" -o "$output/$name.safetensors"
}
mkdir -p "$output"
model default --positions conv --decay gated --ahead 12 --join-part 0.5 --set conv-kernel=5,condition-every=2
model offline --positions centred-conv --direction bidirectional --set conv-kernel=9
