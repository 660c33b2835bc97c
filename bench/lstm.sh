#!/bin/sh
# lstm.sh - stacks of LSTM layers (bench_lstm.c) compared with PyTorch, with oneDNN and without, on the same sizes and threads, in
# one run: each round runs all three one after the other. The table shows the best of all runs, then the median, and how many
# times faster linnet is than the better of the two, best with best.
#
#   bench/lstm.sh [--rounds N] [--repeats N] [--threads N] [--frames N] [--cpu-time]
#
# --cpu-time: one thread, in processor time, for a machine with other load. Needs PyTorch in PYTHON (/usr/bin/python3).
set -u
cd "$(dirname "$0")/.." || exit 1
PYTHON=${PYTHON:-/usr/bin/python3}
rounds=2 repeats=3 threads=2 frames=800 cpu=
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=$2; shift 2 ;;
    --repeats) repeats=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --frames) frames=$2; shift 2 ;;
    --cpu-time) cpu=--cpu-time threads=1; shift ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done
make -s build/release/bench/bench_lstm || exit 1
results=$(mktemp) || exit 1
trap 'rm -f "$results"' EXIT

torch=yes
"$PYTHON" -c 'import torch' 2>/dev/null || { torch=no; echo "lstm.sh: $PYTHON has no PyTorch" >&2; }

# Memory is kept between calls instead of being returned to the system and faulted in again.
peer() (
    export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=17179869184
    exec "$PYTHON" bench/peers/torch_lstm.py "$@"
)

load=$(cut -d' ' -f1 /proc/loadavg)
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    echo "round $round of $rounds" >&2
    set -- --threads "$threads" --repeats "$repeats" --frames "$frames" $cpu
    build/release/bench/bench_lstm --plain "$@" >>"$results" || exit 1
    [ $torch = no ] || peer "$@" >>"$results" || exit 1
    [ $torch = no ] || peer --native "$@" >>"$results" || exit 1
done

machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "$machine, $threads threads${cpu:+, processor time}, $frames frames, $(date +%F), best (median) of $rounds rounds of $repeats" \
    "runs in ms; load before: $load"
[ $torch = no ] || "$PYTHON" -c 'import torch; print("PyTorch", torch.__version__)'
sort -k1,2 -k3,3g "$results" | awk '
    function done() {
        if (!n) return
        median[key] = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        best[key] = key ~ /_ms$/ ? v[1] : v[n]
        n = 0
    }
    { if ($1 SUBSEP $2 != key) { done(); key = $1 SUBSEP $2 } v[++n] = $3 }
    END {
        done()
        count = split("forward_bidirectional_ms train_bidirectional_ms forward_causal_ms train_causal_ms chunk_p50_ms chunk_p99_ms", names, " ")
        printf "%-26s %18s %7s  %18s %18s %7s\n", "", "linnet", "of peak", "PyTorch (oneDNN)", "PyTorch (native)", "linnet"
        for (i = 1; i <= count; i++) {
            name = names[i]
            printf "%-26s %18s %7s", name, field("linnet", name), share(name)
            printf "  %18s %18s %7s\n", field("torch", name), field("torch-native", name), ratio(name)
        }
    }
    function share(name) {
        if (!(("linnet", name ":gflops") in best)) return ""
        return sprintf("%.1f %%", 100 * best["linnet", name ":gflops"] / best["linnet", "peak_gflops"])
    }
    function field(who, name) {
        if (!((who, name) in best)) return "-"
        return sprintf("%.4g (%.4g)", best[who, name], median[who, name])
    }
    function ratio(name, peer) {
        if (!(("torch", name) in best)) return ""
        peer = best["torch", name] < best["torch-native", name] ? best["torch", name] : best["torch-native", name]
        return sprintf("%.2f x", peer / best["linnet", name])
    }'
