#!/bin/sh
# check-gpu.sh TEST...: runs the backend's tests on the GPU, one at a time, and the operations once more under compute-sanitizer's
# memcheck and racecheck, where that is installed, with small shapes. The last line is the summary.
#
# A CUDA context does not survive a fork, so all tests of a program run in one process.
export CK_FORK=no
tests/run.sh 1 "$@"
status=$?

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -z "$sanitizer" ]; then
    echo "compute-sanitizer is not installed: not run"
    exit $status
fi
passed=0 failed=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
for tool in memcheck racecheck; do
    begin=$(date +%s)
    # Small shapes: the tools make everything slower a hundredfold.
    LINNET_TEST_QUICK=1 timeout "${SANITIZER_SECONDS:-120}" "$sanitizer" --tool "$tool" --error-exitcode 99 \
        build/gpu/tests/cuda/test_cuda_ops > "$log" 2>&1
    result=$?
    took=$(($(date +%s) - begin))
    if [ $result = 0 ]; then
        passed=$((passed + 1))
        printf 'ok      %-44s %21d s\n' "test_cuda_ops under $tool" $took
    elif [ $result = 124 ]; then
        printf 'stopped %-44s %21d s, nothing found until then\n' "test_cuda_ops under $tool" $took
        grep -q '^========= .*\(Invalid\|Error\|Race\)' "$log" && { failed=$((failed + 1)); tail -n 100 "$log"; }
    else
        failed=$((failed + 1))
        printf 'FAILED  %s, exit status %d\n' "test_cuda_ops under $tool" $result
        tail -n 200 "$log" | sed 's/^/        /'
    fi
done
echo "compute-sanitizer: $passed passed, $failed failed"
[ $failed = 0 ] && exit $status
exit 1
