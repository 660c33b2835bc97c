#!/bin/sh
# check.sh FOLDER ARCH...: every case of tests/kernels/ops_cases* on the kernels as nvcc compiled them: FOLDER/ARCH/*.ptx, on the
# machine of tests/ptx, which also checks every access. One process for each architecture. Run by make check-ptx.
cd "$(dirname "$0")/../.." || exit 2
folder=$1
shift
test=build/release/tests/cuda/test_cuda_ops
export CK_DEFAULT_TIMEOUT="${CK_DEFAULT_TIMEOUT:-240}" CK_TIMEOUT_MULTIPLIER="${CK_TIMEOUT_MULTIPLIER:-10}"
pids=
for arch; do
    case $arch in 9?|10?) shared=227 ;; 80) shared=163 ;; *) shared=99 ;; esac
    LINNET_EMULATION_PTX=$folder/$arch LINNET_EMULATION_CAPABILITY=$arch LINNET_EMULATION_SHARED=$shared \
        "$test" > "$folder/$arch.log" 2>&1 &
    pids="$pids $!"
done
failed=0
for arch; do
    # shellcheck disable=SC2086 # a list
    set -- $pids
    wait "$1" || failed=$((failed + 1))
    shift
    pids=$*
    echo "compute_$arch: $(grep -a '^[0-9]*%' "$folder/$arch.log" || echo 'did not run to its end')"
    grep -aE '^ptx: error|^emulation:|:[EF]:' "$folder/$arch.log"
done
[ $failed = 0 ]
