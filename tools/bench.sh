#!/bin/sh
# bench.sh PROGRAM...: runs the benchmarks one after the other, never two at once; at the end the comparisons with PyTorch and
# ONNX Runtime, where these are installed.
status=0
for b in "$@"; do
    echo "== $(basename "$b")"
    "$b" || { echo "$(basename "$b") failed with exit status $?" >&2; status=1; }
    echo
done
echo '== peers'
bench/peers.sh --rounds 1 --repeats 3 --no-install || status=1
exit $status
