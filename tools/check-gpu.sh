#!/bin/sh
# check-gpu.sh TEST...: runs the backend's tests on the GPU, and the operations once more under compute-sanitizer's memcheck and
# racecheck, if it is installed, with small shapes. Prints a line for each case as it ends, then the summaries.
#
# A CUDA context does not survive a fork, and a device fault lasts until its process ends. So each case runs in its own process
# (Check forks before CUDA starts) with its own time limit: a case that hangs does not affect the others.
#
#   CASE_PATIENCE=0.25      factor for the limit of a case, 300 s: 75 s
#   PROGRAM_SECONDS=300     limit of a whole test program
#   SANITIZER_SECONDS=120   limit of each sanitizer; reaching it without a finding is not a failure; 0: they do not run
#   CASES=no                only the sanitizers
#   LINNET_TEST_CASE=NAME   only this case of the operations
#   BENCH_GPU=PROGRAM       bench_gpu (build/release/bench_gpu): keeps the device in use, which each case else initialises
#   LINNET_CUDA_LIBRARY     the backend (build/release/liblinnet_cuda.so): it is not in the folder of the test programs
export LINNET_CUDA_LIBRARY="${LINNET_CUDA_LIBRARY:-$PWD/build/release/liblinnet_cuda.so}"
export CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent CK_TIMEOUT_MULTIPLIER="${CASE_PATIENCE:-0.25}"
operations=build/gpu/tests/cuda/test_cuda_ops
for test; do [ "$(basename "$test")" != test_cuda_ops ] || operations=$test; done

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
: > "$work/results"
# Runs until the last copy of descriptor 9 is closed, even if this script is killed.
holder=${BENCH_GPU:-build/release/bench_gpu}
if [ -x "$holder" ] && mkfifo "$work/held"; then
    "$holder" hold < "$work/held" > /dev/null 2>&1 &
    exec 9> "$work/held"
fi
now() { date +%s%N; }
seconds() { echo $((($(now) - $1) / 100000000)) | sed 's/^.$/0&/; s/.$/.& s/'; }

# cases PROGRAM: reads its results as they arrive: "ok N - FILE:GROUP:CASE: MESSAGE" or "not ok ...", "# DETAIL" of the running
# case, and at the end "1..N".
cases() {
    begin=$(now) detail= ended=no
    while IFS= read -r line; do
        case $line in
        "# "*) detail=" (${line#\# })" ;;
        1..*) ended=yes ;;
        "ok "* | "not ok "*)
            message=${line#*ok * - *:*:}
            name="$(basename "$1") ${message%%:*}$detail"
            case $line in
            ok*)
                # the programs skip cases that were not requested
                [ -z "${LINNET_TEST_CASE:-}" ] || [ -n "$detail" ] || continue
                printf 'ok      %-60s %8s\n' "$name" "$(seconds $begin)"
                echo passed >> "$work/results" ;;
            *)
                printf 'FAILED  %-60s %8s\n        %s\n' "$name" "$(seconds $begin)" "${message#*: }"
                echo failed >> "$work/results" ;;
            esac
            begin=$(now) detail= ;;
        *) printf '        %s\n' "$line" ;;
        esac
    done
    if [ $ended = no ]; then
        printf 'FAILED  %-60s %8s\n' "$(basename "$1")$detail: did not reach its end" "$(seconds $begin)"
        echo failed >> "$work/results"
    fi
}

for test; do
    [ "${CASES:-yes}" = yes ] || break
    CK_FORK=yes timeout -k 5 "${PROGRAM_SECONDS:-300}" "$test" 2>&1 9>&- | cases "$test"
done
passed=$(grep -c passed "$work/results")
failed=$(grep -c failed "$work/results")
status=0
if [ "${CASES:-yes}" = yes ]; then
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ] && [ "$passed" != 0 ] || status=1
fi
[ "${SANITIZER_SECONDS:-}" != 0 ] || exit $status

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -z "$sanitizer" ]; then
    echo "compute-sanitizer is not installed: not run"
    exit $status
fi
passed=0 failed=0 skipped=0
log=$work/log
found='^========= *(Invalid|Misaligned|Out-of-range|Uninitialized|Barrier error|Error: .*[Rr]ace|(ERROR|RACECHECK) SUMMARY: [1-9])'
no_start='^========= .*(No attachable process|before first instrumented API call|[Uu]nable to|[Nn]ot supported|Internal Sanitizer Error)'
for tool in memcheck racecheck; do
    begin=$(now)
    name="test_cuda_ops under $tool"
    # Small shapes: the tools make everything a hundred times slower. One process: each start of CUDA under a tool takes seconds.
    # The case "memory" deliberately requests more memory than exists: an API error, not a fault.
    CK_FORK=no LINNET_TEST_QUICK=1 timeout -k 5 "${SANITIZER_SECONDS:-120}" "$sanitizer" --tool "$tool" --report-api-errors no \
        --error-exitcode 99 "$operations" > "$log" 2>&1 9>&-
    result=$?
    if [ $result = 0 ]; then
        passed=$((passed + 1))
        printf 'ok      %-60s %8s\n' "$name" "$(seconds $begin)"
    elif grep -qE "$found" "$log" || [ $result = 99 ]; then
        failed=$((failed + 1))
        printf 'FAILED  %-60s %8s\n' "$name" "$(seconds $begin)"
        grep -E -A 12 "$found" "$log" | head -n 200 | sed 's/^/        /'
    elif [ $result = 124 ] || [ $result = 137 ]; then
        printf 'stopped %-60s %8s, nothing found until then\n' "$name" "$(seconds $begin)"
    elif grep -qE "$no_start" "$log"; then
        skipped=$((skipped + 1))
        printf 'skipped %-60s %8s\n        %s\n' "$name" "$(seconds $begin)" "$(grep -E "$no_start" "$log" | head -n 1)"
    else
        failed=$((failed + 1))
        printf 'FAILED  %s, exit status %d\n' "$name" $result
        tail -n 200 "$log" | sed 's/^/        /'
    fi
done
echo "compute-sanitizer: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && exit $status
exit 1
