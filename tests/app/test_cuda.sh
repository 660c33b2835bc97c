# [cuda] The program on the emulated GPU: devices found, the same phonemes and losses as on the CPU, and every kind of failure.
. tests/app/common.sh

use_emulated_gpu
make_model || { fail "make a model"; finish; }
export LINNET_CUDA_LIBRARY="$emulated/liblinnet_cuda.so" LINNET_CUDA_DRIVER="$emulated/libcuda.so.1"

# ---- what is found ------------------------------------------------------------------------------------------------------------

shows "the GPU is listed" "Emulated GPU 0" info --devices
has "and the processor" "$out" "instructions"
shows "in JSON too" '"name": "Emulated GPU 0"' info --devices --json
LINNET_CUDA_DRIVER=$tmp/nothing run info --devices
has "no driver is one sentence" "$out$err" "no NVIDIA driver"
export LINNET_EMULATION_DRIVER=12040
refused "an old driver" 1 "supports CUDA 12.4" transcribe --device cuda --model "$tmp/model.safetensors" "$tmp/data/u1.wav"
LINNET_EMULATION_DRIVER=
export LINNET_EMULATION_CAPABILITY=75
refused "an old GPU" 1 "compute capability 7.5" transcribe --device cuda --model "$tmp/model.safetensors" "$tmp/data/u1.wav"
LINNET_EMULATION_CAPABILITY=
refused "a GPU that does not exist" 1 "there is no GPU 3" transcribe --device cuda:3 --model "$tmp/model.safetensors" "$tmp/data/u1.wav"
LINNET_CUDA_LIBRARY=$tmp/nothing.so
refused "no backend" 1 "liblinnet_cuda.so" transcribe --device cuda --model "$tmp/model.safetensors" "$tmp/data/u1.wav"
LINNET_CUDA_LIBRARY=$emulated/liblinnet_cuda.so

# ---- transcription: the phonemes of the CPU -----------------------------------------------------------------------------------------

run transcribe --device cpu --model "$tmp/model.safetensors" --format ctm "$tmp"/data/u?.wav
want=$out
exits "transcribe --device cuda" 0 run transcribe --device cuda --model "$tmp/model.safetensors" --format ctm "$tmp"/data/u?.wav
columns() { echo "$1" | awk '{ print $1, $3, $4, $5 }'; } # without the confidence
is "phonemes and times are the CPU's" "$(columns "$want")" "$(columns "$out")"
exits "--device auto" 0 run transcribe --device auto --model "$tmp/model.safetensors" "$tmp/data/u1.wav"
LINNET_CUDA_DRIVER=$tmp/nothing run transcribe --device auto --model "$tmp/model.safetensors" "$tmp/data/u1.wav"
is "--device auto without a driver" 0 "$status"
export LINNET_EMULATION_LOSE_AFTER=30
run transcribe --device cuda --model "$tmp/model.safetensors" "$tmp/data/u1.wav" "$tmp/data/u2.wav"
LINNET_EMULATION_LOSE_AFTER=
is "a lost GPU: exit status" 1 "$status"
has "a lost GPU: which" "$err" "GPU 0"
export LINNET_EMULATION_MEMORY=100000
refused "out of GPU memory" 1 "out of memory" transcribe --device cuda --model "$tmp/model.safetensors" "$tmp/data/u1.wav"
LINNET_EMULATION_MEMORY=

# ---- training ---------------------------------------------------------------------------------------------------------------------

near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b != "" && d <= t * b) }'; }
train --folder "$tmp/cpu" --epochs 3 --device cpu 2> "$tmp/.log" || fail "train on the CPU" "$(cat "$tmp/.log")"
for precision in fp32 tf32 bf16; do
    train --device cuda --folder "$tmp/$precision" --epochs 3 --precision $precision 2> "$tmp/.log" ||
        fail "train in $precision" "$(cat "$tmp/.log")"
done
ok "the loss in fp32 is the CPU's" near "$(loss "$tmp/fp32")" "$(loss "$tmp/cpu")" 0.0002
ok "in tf32 nearly" near "$(loss "$tmp/tf32")" "$(loss "$tmp/cpu")" 0.005
ok "in bf16 roughly" near "$(loss "$tmp/bf16")" "$(loss "$tmp/cpu")" 0.03
ok "a model trained on the GPU runs on the CPU" "$LINNET" transcribe --device cpu --model "$tmp/bf16/best.safetensors" "$tmp/data/u1.wav"

# mmi, with the trigrams of the language's phones
for device in cpu cuda; do
    train --folder "$tmp/mmi-$device" --device $device --set mmi=0.9,mmi-lm=share/linnet/en/phones.lm 2> "$tmp/.log" ||
        fail "train with mmi on $device" "$(cat "$tmp/.log")"
done
ok "mmi: the loss is the CPU's" near "$(loss "$tmp/mmi-cuda")" "$(loss "$tmp/mmi-cpu")" 0.0002
! near "$(loss "$tmp/mmi-cuda")" "$(loss "$tmp/cpu")" 0.002 || fail "mmi: not the loss of CTC alone"

# If the GPU is lost, only the steps since the last checkpoint are lost.
export LINNET_EMULATION_LOSE_AFTER=300
train --device cuda --folder "$tmp/lost" --epochs 3 --precision fp32 2> "$tmp/.log"
is "training on a GPU that is lost: exit status" 1 $?
LINNET_EMULATION_LOSE_AFTER=
has "and why" "$(cat "$tmp/.log")" "GPU 0"
ok "a checkpoint is there" test -s "$tmp/lost/checkpoint.safetensors"
# LeakSanitizer misreads the thread-local memory of libraries that dlopen has loaded ("Tracer caught signal 11").
export LSAN_OPTIONS=use_tls=0
train --device cuda --folder "$tmp/lost" --epochs 3 --precision fp32 --resume 2> "$tmp/.log" || fail "resume" "$(cat "$tmp/.log")"
unset LSAN_OPTIONS
is "resumed, the weights are those of an undisturbed run" "$(weights "$tmp/fp32/checkpoint.safetensors")" \
    "$(weights "$tmp/lost/checkpoint.safetensors")"
export LINNET_EMULATION_MEMORY=200000
train --device cuda --folder "$tmp/small" 2> "$tmp/.log"
is "training without memory: exit status" 1 $?
has "and what to do" "$(cat "$tmp/.log")" "smaller batches"
finish
