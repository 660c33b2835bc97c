# [cuda native] linnet train on several GPUs: the emulated one; MPI adds the gradients up on the hosts.
. tests/app/common.sh
[ "${CONFIG:-release}" = release ] || finish
. tests/app/mpi.sh

emulated=$(dirname "$LINNET")/emulated
run train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" -o "$tmp/one"
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b > 0 && d <= 1e-3 * b) }'; }
export LINNET_CUDA_LIBRARY="$emulated/liblinnet_cuda.so" LINNET_CUDA_DRIVER="$emulated/libcuda.so.1" LINNET_EMULATION_DEVICES=2
exits "one GPU" 0 with 1 -o "$tmp/gpu-one" -q --device cuda
for n in 2 3; do
    exits "$n GPUs" 0 with $n -o "$tmp/gpu-$n" -q --device cuda
    ok "$n GPUs: the loss of one" near "$(loss "$tmp/gpu-$n")" "$(loss "$tmp/gpu-one")"
    ok "$n GPUs: the loss of CPUs" near "$(loss "$tmp/gpu-$n")" "$(loss "$tmp/one")"
done
with 2 -o "$tmp/gpu-again" -q --device cuda
same_model "two GPUs again: the same bits" "$tmp/gpu-2" "$tmp/gpu-again"
with 2 -o "$tmp/gpu-again" -q --device cuda --resume --epochs 5
with 2 -o "$tmp/gpu-five" -q --device cuda --epochs 5
same_model "two GPUs, resumed: the bits of a whole run" "$tmp/gpu-five" "$tmp/gpu-again"
finish
