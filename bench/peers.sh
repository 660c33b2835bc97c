#!/bin/sh
# peers.sh - linnet compared with PyTorch and ONNX Runtime on the same network, weights, data and threads, in one run: each round
# runs all three one after the other. The table shows the best of all runs, then the median: other work on the machine only makes
# a run slower, and the peak rate is a best value too. Ratios and shares compare best with best. Rows int8_: products of eight bits,
# of the peers those of their dynamic quantisation; shares are of the peak of that instruction.
#
#   bench/peers.sh [--rounds N] [--repeats N] [--threads N] [--pypi] [--no-install]
#
# Needs the following, otherwise the peer is left out with a message: PyTorch in PYTHON (/usr/bin/python3; Debian: python3-torch
# libopenblas0-openmp), and pip for ONNX Runtime, which goes into a virtual environment under PEERS (~/.cache/linnet-peers), as do
# the exported graphs. --pypi: PyTorch of the Python package index, in the same environment (some GB).
set -u
cd "$(dirname "$0")/.." || exit 1
PYTHON=${PYTHON:-/usr/bin/python3}
PEERS=${PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/linnet-peers}
rounds=3 repeats=5 threads=2 install=yes pypi=no
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=$2; shift 2 ;;
    --repeats) repeats=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --pypi) pypi=yes; shift ;;
    --no-install) install=no; shift ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done

make -s build/release/bench/bench_model || exit 1
results=$(mktemp) || exit 1
trap 'rm -f "$results"' EXIT

# The best settings for the peers: OpenBLAS detects the machine, its OpenMP build is used (the threads of the other build compete
# with PyTorch's), and memory is kept between calls instead of being returned to the system and faulted in again (1.6 times
# faster).
peer() (
    unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE OPENBLAS_NUM_THREADS OMP_NUM_THREADS
    for folder in /usr/lib/*/openblas-openmp; do
        [ -d "$folder" ] && export LD_LIBRARY_PATH="$folder"
    done
    export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=17179869184
    exec "$@"
)

if [ $pypi = yes ]; then
    [ -x "$PEERS/venv/bin/python" ] || "$PYTHON" -m venv "$PEERS/venv" || exit 1
    PYTHON=$PEERS/venv/bin/python
    "$PYTHON" -c 'import torch, onnx, onnxruntime' 2>/dev/null || [ $install = no ] || "$PYTHON" -m pip install -q torch onnx onnxruntime || exit 1
fi

torch=no onnx=no
if "$PYTHON" -c 'import torch' 2>/dev/null; then
    torch=yes
    [ $pypi = yes ] || ls -d /usr/lib/*/openblas-openmp >/dev/null 2>&1 ||
        echo "peers.sh: libopenblas0-openmp is not installed; PyTorch may be slower without it" >&2
    graphs=$PEERS/graphs
    if [ ! -x "$PEERS/venv/bin/python" ] || ! "$PEERS/venv/bin/python" -c 'import onnxruntime' 2>/dev/null; then
        [ $install = yes ] && mkdir -p "$PEERS" && "$PYTHON" -m venv "$PEERS/venv" && "$PEERS/venv/bin/pip" install -q onnxruntime onnx ||
            echo "peers.sh: no ONNX Runtime in $PEERS/venv" >&2
    fi
    if "$PEERS/venv/bin/python" -c 'import onnxruntime' 2>/dev/null; then
        peer "$PYTHON" bench/peers/torch_model.py --export "$graphs" >"$PEERS/export.log" 2>&1 && onnx=yes ||
            echo "peers.sh: no ONNX Runtime: the export failed, see $PEERS/export.log" >&2
    fi
else
    echo "peers.sh: no peers: $PYTHON has no PyTorch (Debian: apt install python3-torch libopenblas0-openmp)" >&2
fi

load=$(cut -d' ' -f1 /proc/loadavg)
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    echo "round $round of $rounds" >&2
    set -- --threads "$threads" --repeats "$repeats"
    build/release/bench/bench_model --plain "$@" >>"$results" || exit 1
    build/release/bench/bench_model --plain --precision int8 "$@" >>"$results" || exit 1
    [ $torch = no ] || peer "$PYTHON" bench/peers/torch_model.py "$@" >>"$results" || exit 1
    [ $onnx = no ] || peer "$PEERS/venv/bin/python" bench/peers/onnx_model.py "$graphs" "$@" >>"$results" || exit 1
done

machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "$machine, $threads threads, $(date +%F), best (median) of $rounds rounds of $repeats runs; load before: $load"
[ $torch = no ] || "$PYTHON" -c 'import torch; print("PyTorch", torch.__version__)'
[ $onnx = no ] || "$PEERS/venv/bin/python" -c 'import onnxruntime; print("ONNX Runtime", onnxruntime.__version__)'
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
        count = split("peak_gflops peak_1_gflops forward_causal_frames_per_s forward_bidirectional_frames_per_s train_causal_ms " \
                      "train_bidirectional_ms chunk_p50_ms chunk_p99_ms int8_peak_gflops int8_forward_causal_frames_per_s " \
                      "int8_forward_bidirectional_frames_per_s int8_chunk_p50_ms int8_chunk_p99_ms", names, " ")
        printf "%-39s %17s %7s  %17s %7s  %17s %7s\n", "", "linnet", "of peak", "PyTorch", "linnet", "ONNX RT", "linnet"
        for (i = 1; i <= count; i++) {
            name = names[i]
            if (!(("linnet", name) in best)) continue
            printf "%-39s %17s %7s", name, field("linnet", name), share(name)
            printf "  %17s %7s", field("torch", name), ratio("torch", name)
            printf "  %17s %7s\n", field("onnx", name), ratio("onnx", name)
        }
    }
    function share(name) {
        if (!(("linnet", name ":gflops") in best)) return ""
        return sprintf("%.1f %%", 100 * best["linnet", name ":gflops"] / best["linnet", (name ~ /^int8_/ ? "int8_" : "") "peak_gflops"])
    }
    function field(who, name) {
        if (!((who, name) in best)) return "-"
        return number(best[who, name]) " (" number(median[who, name]) ")"
    }
    function number(x) { return sprintf(x >= 1000 ? "%.0f" : "%.4g", x) }
    function ratio(who, name, own) {
        if (!((who, name) in best)) return ""
        own = best["linnet", name]
        return sprintf("%.2f x", name ~ /_ms$/ ? best[who, name] / own : own / best[who, name])
    }'
