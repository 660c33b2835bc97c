# [cuda] tools/check-gpu.sh with the fake driver, with programs that fail, crash and hang, and with a fake compute-sanitizer.
. tests/app/common.sh

use_emulated_gpu
script=$PWD/tools/check-gpu.sh
programs=build/gpu/tests/cuda
mkdir -p "$tmp/bin" "$tmp/tree/build/release" "$tmp/tree/$programs"
cp "$(dirname "$LINNET")/tests/app/gpu_cases" "$tmp/tree/$programs/test_gpu_cases"
cp "$emulated/liblinnet_cuda.so" "$tmp/tree/build/release"
pretend() { printf '#!/bin/sh\n%s\n' "$2" > "$1"; chmod 755 "$1"; }
unset LINNET_CUDA_LIBRARY CASE_PATIENCE PROGRAM_SECONDS SANITIZER_SECONDS
export LINNET_CUDA_DRIVER="$emulated/libcuda.so.1"
check() { out=$(cd "$tmp/tree" && PATH="$tmp/bin:$PATH" "$script" "$@" 2>&1); status=$?; }
lines() { echo "$out" | grep -c "$1"; }

# ---- the tests --------------------------------------------------------------------------------------------------------------

pretend "$tmp/bin/compute-sanitizer" 'exit 0'
pretend "$tmp/tree/$programs/test_dies" 'echo "ok 1 - a.c:group:first: Passed"; echo "# the second"; '"$over"'; exec sleep 60'
pretend "$tmp/tree/$programs/test_silent" 'exit 1'
pretend "$tmp/tree/$programs/test_passes" 'echo "ok 1 - a.c:group:last: Passed"; echo "1..1"'
export CASE_PATIENCE=0.1
exits "a failure" 1 check $programs/test_gpu_cases
is "each case opens the backend, found where make puts it" 2 "$(lines '^ok  *test_gpu_cases opens ')"
is "one failure does not hide the others" 2 "$(lines '^ok  *test_gpu_cases fails ')"
has "what failed says why" "$out" "number 1 differs"
is "a crash is one failure" 1 "$(lines '^FAILED  *test_gpu_cases crashes ')"
is "a case that hangs is one failure" 1 "$(lines '^FAILED  *test_gpu_cases hangs (endless kernel) ')"
is "and the next one runs" 1 "$(lines '^ok  *test_gpu_cases passes ')"
has "the summary" "$out" "5 passed, 3 failed"

check $programs/test_dies $programs/test_silent $programs/test_passes
is "a program that is cut: what it had done" 1 "$(lines '^ok  *test_dies first ')"
is "and which case was running" 1 "$(lines '^FAILED  *test_dies (the second): did not reach its end')"
is "a program that does not start" 1 "$(lines '^FAILED  *test_silent: did not reach its end')"
is "the next program runs" 1 "$(lines '^ok  *test_passes last ')"
is "exit status" 1 "$status"
exits "all passes" 0 check $programs/test_passes
# The device is in use from before the first case until the script ends, even by a signal.
held() { i=0; while [ $i -lt 600 ] && ! grep -q "$1" "$tmp/held"; do i=$((i + 1)); sleep 0.1; done; grep -c "$1" "$tmp/held"; }
: > "$tmp/held"
pretend "$tmp/tree/build/release/bench_gpu" "echo \"begins \$*\" >> $tmp/held; cat; echo ends >> $tmp/held"
wait_for_it="until grep -q begins $tmp/held; do sleep 0.1; done"
pretend "$tmp/tree/$programs/test_waits" "$wait_for_it; echo 'ok 1 - a.c:g:this: Passed'; echo 1..1"
PROGRAM_SECONDS=60 check $programs/test_waits
is "the device is held" "begins hold" "$(head -n 1 "$tmp/held")"
is "all passes" 0 "$status"
is "and given back" 1 "$(held ends)"
: > "$tmp/held"
pretend "$tmp/tree/$programs/test_kills" "$wait_for_it; kill -9 \$(cat $tmp/script)"
(cd "$tmp/tree" && TMPDIR=$tmp PROGRAM_SECONDS=60 sh -c 'echo $$ > "$1"; exec "$2" "$3"' - "$tmp/script" "$script" \
    $programs/test_kills) > /dev/null 2>&1 &
wait $! 2> /dev/null
is "also by a script that is killed" 1 "$(held ends)"
rm "$tmp/tree/build/release/bench_gpu"
is "the tests of graphs, fences and errors run on a GPU too" 0 "$(grep -c '#include "tests/emulation/' tests/cuda/test_cuda_backend.c)"

# ---- compute-sanitizer ------------------------------------------------------------------------------------------------------

# sanitized "what" STATUS "part of the output" 'script of the fake tool'
sanitized() {
    pretend "$tmp/bin/compute-sanitizer" "$4"
    check $programs/test_passes
    is "$1: exit status" "$2" "$status"
    has "$1" "$out" "$3"
}
sanitized "the allocation that has to fail is no error" 0 "2 passed, 0 failed, 0 skipped" '
case "$*" in *"--report-api-errors no"*) exit 0 ;; esac
echo "========= Program hit cudaErrorMemoryAllocation (error 2) due to \"out of memory\" on CUDA API call to cudaMalloc."
echo "========= ERROR SUMMARY: 1 error"
exit 99'
sanitized "an invalid access" 1 "Invalid __global__ write of size 4 bytes" '
echo "========= Invalid __global__ write of size 4 bytes"
echo "========= ERROR SUMMARY: 1 error"
exit 99'
sanitized "the tests fail" 1 "0 passed, 2 failed" 'echo "50%: Checks: 2, Failures: 1"; exit 1'
sanitized "no tool can attach" 0 "0 passed, 0 failed, 2 skipped" '
echo "========= COMPUTE-SANITIZER"
echo "========= Error: No attachable process found. compute-sanitizer timed-out."
exit 1'
export CASES=no
sanitized "the sanitizers alone" 0 "2 passed, 0 failed, 0 skipped" 'exit 0'
is "without the cases" 0 "$(lines '^ok  *test_passes')"
unset CASES
SANITIZER_SECONDS=0 check $programs/test_passes
hasnt "no sanitizer" "$out" "compute-sanitizer:"
pretend "$tmp/bin/compute-sanitizer" 'for last; do :; done; echo "on ${last##*/}"; exit 1'
cp "$tmp/tree/$programs/test_passes" "$tmp/tree/test_cuda_ops"
check ./test_cuda_ops
has "the operations that were named" "$out" "on test_cuda_ops"
pretend "$tmp/tree/$programs/test_picks" 'echo "ok 1 - a.c:g:other: Passed"; echo "# asked"; echo "ok 2 - a.c:g:this: Passed"; echo "1..2"'
LINNET_TEST_CASE=asked check $programs/test_picks
has "one case: what the program passed over is not counted" "$out" "1 passed, 0 failed"
sanitized "cut by its time" 0 "nothing found until then" '
trap "echo ========= Error: process did not terminate successfully; exit 1" TERM
echo "========= COMPUTE-SANITIZER"
sleep 60 & '"$over"'; wait'
sanitized "cut after it found something" 1 "Invalid __shared__ read" '
echo "========= Invalid __shared__ read of size 4 bytes"
'"$over"'
exec sleep 60'
finish
