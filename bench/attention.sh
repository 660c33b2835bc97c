#!/bin/sh
# attention.sh - attention of one layer (6 heads of width 32) compared with PyTorch: softmax in tiles against
# scaled_dot_product_attention, softmax with all scores in memory against two products and torch.softmax. Each round runs both
# programs one after the other. The table shows the best of all runs, then the median; ratios compare best with best.
#
#   bench/attention.sh [--rounds N] [--repeats N] [--threads N] [T ...]
#
# T: frames, 800 and 2400 unless given. --repeats: PyTorch's; `linnet bench attention` gives the best of its own. Without PyTorch
# in PYTHON (/usr/bin/python3) the table has linnet's column only. linear: the paper's linear attention, for comparison.
set -u
cd "$(dirname "$0")/.." || exit 1
PYTHON=${PYTHON:-/usr/bin/python3}
rounds=3 repeats=9 threads=1 lengths=
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=$2; shift 2 ;;
    --repeats) repeats=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    [0-9]*) lengths="$lengths $1"; shift ;;
    *) sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit 2 ;;
    esac
done

make -s build/release/linnet || exit 1
results=$(mktemp) || exit 1
trap 'rm -f "$results"' EXIT
torch=yes
"$PYTHON" -c 'import torch' 2>/dev/null || { torch=no; echo "attention.sh: $PYTHON has no PyTorch" >&2; }

load=$(cut -d' ' -f1 /proc/loadavg)
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    echo "round $round of $rounds" >&2
    for length in ${lengths:-800 2400}; do
        for causal in causal ''; do
            build/release/linnet bench attention --threads "$threads" --set heads=6,head-width=32,lengths="$length",rows="$length" \
                --variants linear,softmax,softmax-naive ${causal:+--causal} |
                awk -v of="${causal:-full}_${length}_ms" '/^(linear|softmax)/ {
                    sub("softmax-naive", "naive", $1)
                    print "linnet", $1 "_forward_" of, $6
                    print "linnet", $1 "_backward_" of, $5 - $6
                }' >>"$results" || exit 1
        done
    done
    # Memory is kept between calls instead of being returned to the system and faulted in again.
    # shellcheck disable=SC2086 # a list of numbers
    [ $torch = no ] || MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=17179869184 \
        "$PYTHON" bench/peers/torch_attention.py --threads "$threads" --repeats "$repeats" $lengths >>"$results" || exit 1
done

machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "$machine, $threads threads, $(date +%F), best (median) of $rounds rounds of $repeats runs, ms; load before: $load"
[ $torch = no ] || "$PYTHON" -c 'import torch; print("PyTorch", torch.__version__)'
sort -k1,2 -k3,3g "$results" | awk '
    function done() {
        if (!n) return
        cell[who, name] = sprintf("%.4g (%.4g)", v[1], n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2)
        best[who, name] = v[1]
        n = 0
    }
    { if ($1 != who || $2 != name) { done(); who = $1; name = $2; if (who == "linnet") names[++count] = name } v[++n] = $3 }
    END {
        done()
        printf "%-32s %20s %20s %8s\n", "", "linnet", "PyTorch", "linnet"
        for (i = 1; i <= count; i++) {
            name = names[i]
            printf "%-32s %20s", name, cell["linnet", name]
            if (("torch", name) in best) printf " %20s %6.2f x", cell["torch", name], best["torch", name] / best["linnet", name]
            printf "\n"
        }
    }'
