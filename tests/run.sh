#!/bin/sh
# run.sh JOBS TEST...: runs test programs (Check), shell tests and short fuzz runs, JOBS at a time. Prints one line for each, the
# whole output of one that fails, and at the end "N passed, N failed".
#
# A test is named by its path in the build folder: build/CONFIG/tests/x/test_y, build/CONFIG/tests/fuzz/fuzz_y, and for a shell
# test build/CONFIG/tests/x/test_y.sh, which is tests/x/test_y.sh with the program build/CONFIG/linnet in $LINNET.
# A Check program prints "100%: Checks: 13, Failures: 0, Errors: 0"; a shell test ends with "N passed, N failed"; a fuzz run
# counts as one.

if [ "$1" = --one ]; then
    logs=$2 test=$3
    config=${test#build/} config=${config%%/*}
    log=$logs/$(echo "$test" | tr / _)
    export LINNET=build/$config/linnet CONFIG=$config
    export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
    export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
    # No test decides by time: a limit ends what hangs, also on a busy machine.
    export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-120} CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-10}
    name=${test#build/}
    name=${name#release/}
    # ThreadSanitizer does not work with the wide address randomisation of new kernels.
    prefix=
    if [ "$config" = arm64 ]; then
        prefix="qemu-aarch64 -L build/arm64-root"
        LINNET=build/arm64/run/linnet # a script that runs it so
    fi
    [ "$config" = tsan ] && setarch -R true 2>/dev/null && prefix='setarch -R'
    begin=$(date +%s%N)
    case $test in
    */fuzz_*)
        corpus=tests/fuzz/corpus/$(basename "$test" | sed 's/^fuzz_//')
        [ -d "$corpus" ] || corpus=
        $prefix "$test" $corpus > "$log" 2>&1
        status=$? passed=1 failed=0 ;;
    *.sh)
        [ "$config" = arm64 ] && prefix= # the scripts run programs
        $prefix sh "${test#build/"$config"/}" > "$log" 2>&1
        status=$?
        line=$(tail -n 1 "$log")
        passed=$(echo "$line" | sed -n 's/^\([0-9]*\) passed, [0-9]* failed$/\1/p')
        failed=$(echo "$line" | sed -n 's/^[0-9]* passed, \([0-9]*\) failed$/\1/p') ;;
    *)
        $prefix "$test" > "$log" 2>&1
        status=$?
        line=$(grep -a '^[0-9]*%: Checks: ' "$log" | tail -n 1)
        checks=$(echo "$line" | sed 's/.*Checks: \([0-9]*\).*/\1/')
        failed=$(echo "$line" | sed 's/.*Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 + \2/')
        failed=$((${failed:-0}))
        passed=$((${checks:-0} - failed)) ;;
    esac
    passed=${passed:-0} failed=${failed:-0}
    # A failure without a failed check: a crash, a sanitizer's report, a leak at exit.
    if [ "$status" != 0 ] && [ "$failed" = 0 ]; then
        failed=1
        case $test in */fuzz_*) passed=0 ;; esac
    fi
    took=$((($(date +%s%N) - begin) / 1000000))
    echo "$passed $failed" > "$log.count"
    if [ "$failed" = 0 ] && [ "$status" = 0 ]; then
        printf 'ok      %-44s %5d passed  %3d.%01d s\n' "$name" "$passed" $((took / 1000)) $((took % 1000 / 100))
    else
        { printf 'FAILED  %-44s %5d failed, exit status %d\n' "$name" "$failed" "$status"; sed 's/^/        /' "$log" | tail -n 200; }
    fi
    exit 0
fi

jobs=$1
shift
[ $# -gt 0 ] || { echo "no tests"; exit 1; }
logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
printf '%s\n' "$@" | xargs -P "$jobs" -I '{}' sh "$0" --one "$logs" '{}'
n=$(ls "$logs" | grep -c '\.count$')
cat "$logs"/*.count 2>/dev/null | awk -v ran="$n" -v want=$# '
    { passed += $1; failed += $2 }
    END { failed += want - ran; printf "%d passed, %d failed\n", passed, failed; exit failed > 0 }'
