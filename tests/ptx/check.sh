#!/bin/sh
# check.sh FOLDER ARCH...: the tests of the operations, of the network and of losses on the kernels as nvcc compiled them:
# FOLDER/ARCH/*.ptx, on the machine of tests/ptx, which also checks every access. One process for each architecture. Run by
# make check-ptx.
cd "$(dirname "$0")/../.." || exit 2
folder=$1
shift
tests='test_cuda_ops test_cuda_model test_cuda_sequence'
export CK_DEFAULT_TIMEOUT="${CK_DEFAULT_TIMEOUT:-240}" CK_TIMEOUT_MULTIPLIER="${CK_TIMEOUT_MULTIPLIER:-20}"

# one ARCH: all tests of it; its output is in FOLDER/ARCH.log.
one() {
    case $1 in 9?|10?) shared=227 ;; 80) shared=163 ;; *) shared=99 ;; esac # KiB, of a block
    export LINNET_EMULATION_PTX="$PWD/$folder/$1" LINNET_EMULATION_CAPABILITY="$1" LINNET_EMULATION_SHARED="$shared"
    result=0
    for t in $tests; do "build/release/tests/cuda/$t" || result=1; done
    return $result
}
pids=
for arch; do
    one "$arch" > "$folder/$arch.log" 2>&1 &
    pids="$pids $!"
done
failed=0
for pid in $pids; do wait "$pid" || failed=$((failed + 1)); done
for arch; do
    sed -n "s/^[0-9]*%: /compute_$arch: /p" "$folder/$arch.log"
    grep -aE '^ptx: error|^emulation:|:[EF]:' "$folder/$arch.log"
done
[ $failed = 0 ]
