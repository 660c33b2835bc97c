#!/bin/sh
# run.sh SECONDS TARGET...: each libFuzzer target for that long, on a copy of its seeds; findings go to build/fuzz/findings.
seconds=$1 status=0
shift
mkdir -p build/fuzz/findings
for t in "$@"; do
    name=$(basename "$t" | sed 's/^fuzz_//')
    mkdir -p "build/fuzz/corpus/$name"
    seeds=tests/fuzz/corpus/$name
    [ -d "$seeds" ] || seeds=
    echo "== $name"
    if ! "$t" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/findings/$name-" "build/fuzz/corpus/$name" $seeds 2> "build/fuzz/$name.log"; then
        tail -n 60 "build/fuzz/$name.log"
        echo "FINDING in $name: see build/fuzz/findings and build/fuzz/$name.log"
        status=1
    else
        grep -E 'number_of_executed_units|new_units_added|DONE' "build/fuzz/$name.log"
    fi
done
exit $status
