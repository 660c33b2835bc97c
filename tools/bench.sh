#!/bin/sh
# bench.sh PROGRAM...: runs the benchmarks one after the other, never two at once.
status=0
for b in "$@"; do
    echo "== $(basename "$b")"
    "$b" || { echo "$(basename "$b") failed with exit status $?" >&2; status=1; }
    echo
done
exit $status
