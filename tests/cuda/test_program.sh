# The program with --device cuda, its backend emulated: it finds the GPU, transcribes and trains as on the CPU, a run goes on
# with the same bits, and a small, a lost or an unsuitable GPU is told about.
. tests/app/common.sh

emulated=$(dirname "$LINNET")/emulated
LINNET_CUDA_LIBRARY=$emulated/liblinnet_cuda.so LINNET_CUDA_DRIVER=$emulated/libcuda.so.1
export LINNET_CUDA_LIBRARY LINNET_CUDA_DRIVER
make_model || { fail "a small model"; finish; }
LINNET_MODEL=$tmp/model.safetensors
export LINNET_MODEL
sound=$tmp/data/u1.wav

run info --devices
has "the GPU is listed" "$out" "Emulated GPU 0, compute capability 9.0"

# ---- transcribing ------------------------------------------------------------------------------------------------------------------

for i in 1 2 3; do "$SOUND" "$tmp/s$i.wav" seconds=0.8 seed=$i; done
run transcribe -q --device cpu "$tmp"/s?.wav
on_cpu=$out
run transcribe -q --device cuda "$tmp"/s?.wav
is "cuda: status" 0 "$status"
is "cuda: the CPU's phonemes" "$on_cpu" "$out"
run transcribe -q --device cuda:0 "$tmp"/s?.wav
is "cuda:0 is the same" "$on_cpu" "$out"
refused "a GPU that is not there" 1 "there is no GPU 1" transcribe -q --device cuda:1 "$sound"

# ---- training ----------------------------------------------------------------------------------------------------------------------

train() {
    "$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" -q --schedule constant "$@" 2> "$tmp/.log"
}
weights() { "$LINNET" info --json "$1" | sed 's/.*"fingerprint": "\([0-9a-f]*\)".*/\1/'; }
# A column of the log's last line.
last() { awk -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } END { print $at }' "$1/log.tsv"; }
train --device cpu --folder "$tmp/cpu" --epochs 3 || fail "train on the CPU" "$(cat "$tmp/.log")"
train --device cuda --precision fp32 --folder "$tmp/a" --epochs 3 || fail "train on the GPU" "$(cat "$tmp/.log")"
train --device cuda --precision fp32 --folder "$tmp/b" --epochs 2 || fail "train on the GPU" "$(cat "$tmp/.log")"
train --device cuda --precision fp32 --folder "$tmp/b" --epochs 3 --resume || fail "train --resume on the GPU" "$(cat "$tmp/.log")"
is "resumed: the same bits" "$(weights "$tmp/a/checkpoint.safetensors")" "$(weights "$tmp/b/checkpoint.safetensors")"
near=$(awk -v a="$(last "$tmp/cpu" train_loss)" -v b="$(last "$tmp/a" train_loss)" \
    'BEGIN { d = a - b; if (a > 0 && d * d < 1e-6 * a * a) print "near"; else print a " on the CPU, " b " on the GPU" }')
is "the loss follows the CPU's" near "$near"

# ---- what can go wrong -------------------------------------------------------------------------------------------------------------

LINNET_EMULATION_MEMORY=20000 run transcribe -q --device cuda "$sound"
is "too little memory: status" 1 "$status"
has "too little memory: told" "$err" "GPU 0: out of memory: asked for"
LINNET_EMULATION_LOSE_AFTER=5 run transcribe -q --device cuda "$sound"
is "a lost GPU: status" 1 "$status"
has "a lost GPU: told" "$err" "the GPU was lost or is faulty"
LINNET_EMULATION_CAPABILITY=75 run transcribe -q --device cuda "$sound"
has "an old GPU: told" "$err" "has compute capability 7.5, this build needs 8.0 or newer"
LINNET_EMULATION_CAPABILITY=75 run transcribe -q --device auto "$tmp"/s?.wav
is "an old GPU: auto takes the CPU" "$on_cpu" "$out"
LINNET_EMULATION_DEVICES=0 run transcribe -q --device cuda "$sound"
has "no GPU: told" "$err" "the driver found no GPU"
LINNET_EMULATION_DRIVER=11040 run transcribe -q --device cuda "$sound"
has "an old driver: told" "$err" "the driver supports CUDA 11.4, this build needs"

# A GPU lost in the middle of training: the checkpoint of the epoch before is usable.
cp -r "$tmp/b" "$tmp/c"
LINNET_EMULATION_LOSE_AFTER=400 train --device cuda --precision fp32 --folder "$tmp/c" --epochs 30 --resume
is "a GPU lost while training: status" 1 "$?"
has "a GPU lost while training: told" "$(cat "$tmp/.log")" "the GPU was lost or is faulty"
train --device cpu --folder "$tmp/c" --epochs 31 --resume || fail "goes on from its checkpoint" "$(cat "$tmp/.log")"
finish
