#!/bin/sh
# gpu.sh - the whole GPU backend in one command, in less than eight minutes: builds, checks, measures, and writes a table.
#
#   bench/gpu.sh [--out DIR] [--part LIST] [--seconds N] [--hours N] [--device cuda] [--no-check] [--quick]
#
# Parts: limits     the device's maximum copy and multiplication rates
#        attention  N = 2^9..2^16, forward and forward + backward, time and memory, compared with PyTorch and two packages
#        rivals     the same of softmax attention, in tiles and with all scores in memory, and of LSH attention
#        lstm       a layer of the paper's bidirectional LSTM, compared with cuDNN
#        epoch      80 hours at WSJ's lengths, extrapolated from --hours (20) of synthetic features, compared with PyTorch
#        streams    live streams at once, chunks of 1 to 16 frames
#        ctc        the loss alone, compared with PyTorch and cuDNN
#        ops        every operation of a training step, as shares of the limits
# Needs the CUDA toolkit, a C compiler, make and the libraries of the program (tools/bundle.sh collects them), no network; PyTorch
# in PYTHON (python3) if installed. --seconds (465): time limit for everything; parts that do not fit are left out and reported.
# --device cpu --quick runs the script on a machine without a GPU. DIR (bench/results/DATE-GPU): README.md, results.json and raw/,
# the output of every part.
set -u
cd "$(dirname "$0")/.." || exit 1
PYTHON=${PYTHON:-python3}
command="bench/gpu.sh $*"
out= parts=limits,attention,rivals,lstm,epoch,streams,ctc,ops seconds=465 hours=20 device=cuda checks=yes quick=
usage() { sed -n '2,17p' "$0" | sed 's/^# \{0,1\}//'; exit "$1"; }
while [ $# -gt 0 ]; do
    case $1 in
    --help) usage 0 ;;
    --no-check) checks=no; shift ;;
    --quick) quick=--quick; shift ;;
    --out|--part|--seconds|--hours|--device)
        [ $# -ge 2 ] || usage 2
        case $1 in
        --out) out=$2 ;;
        --part) parts=$2 ;;
        --seconds) seconds=$2 ;;
        --hours) hours=$2 ;;
        --device) device=$2 ;;
        esac
        shift 2 ;;
    *) echo "gpu.sh: unknown option $1" >&2; usage 2 ;;
    esac
done
begin=$(date +%s)
left() { echo $((begin + seconds - $(date +%s))); }
wanted() { case ,$parts, in *,"$1",*) return 0 ;; esac; return 1; }

# ---- where things are -----------------------------------------------------------------------------------------------------------

gpu=CPU driver=none arch=
if [ "${device#cuda}" != "$device" ]; then
    number=${device#cuda}
    number=${number#:}
    query() { nvidia-smi -i "${number:-0}" --query-gpu="$1" --format=csv,noheader 2>/dev/null | head -n 1; }
    gpu=$(query name) driver=$(query driver_version) arch=$(query compute_cap | tr -d .)
    [ -n "$gpu" ] || { echo "gpu.sh: nvidia-smi finds no GPU; --device cpu --quick runs the script without one" >&2; exit 1; }
    command -v nvcc >/dev/null 2>&1 || export PATH="$PATH:/usr/local/cuda/bin"
    command -v nvcc >/dev/null 2>&1 || { echo "gpu.sh: nvcc is neither on the PATH nor in /usr/local/cuda/bin" >&2; exit 1; }
fi
[ -n "$out" ] || out=bench/results/$(date +%F)-$(echo "$gpu" | tr 'A-Z ' 'a-z-')
raw=$out/raw
mkdir -p "$raw" || exit 1
rm -f "$raw"/*.jsonl "$raw"/*.log
work=$(mktemp -d) || exit 1
background=
trap 'for p in $background; do kill "$p" 2>/dev/null; done; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# files that packages build at run time are kept out of the user's folders and shared by the parts
export TORCHINDUCTOR_CACHE_DIR="$work/inductor" TRITON_CACHE_DIR="$work/triton" TORCH_EXTENSIONS_DIR="$work/extensions"
export TMPDIR="$work"
[ ! -d build/bundle/python ] || export PYTHONPATH="$PWD/build/bundle/python${PYTHONPATH:+:$PYTHONPATH}"
[ -z "$arch" ] || export TORCH_CUDA_ARCH_LIST="${arch%?}.${arch#"${arch%?}"}"

quoted() { printf '%s' "$1" | tr '\n\t' '  ' | sed 's/\\/\\\\/g; s/"/\\"/g'; }
about() { printf '{"part": "about", "what": "%s", "value": "%s"}\n' "$1" "$(quoted "$2")" >>"$raw/00-about.jsonl"; }
checked() {
    printf '{"part": "check", "what": "%s", "result": "%s", "seconds": %s}\n' "$1" "$(quoted "$2")" "$3" >>"$raw/01-checks.jsonl"
}
leave_out() { printf '{"part": "%s", "who": "%s", "left_out": "%s"}\n' "$1" "$2" "$(quoted "$3")" >>"$raw/99-left-out.jsonl"; }

# measure FILE SECONDS COMMAND...: writes the command's lines to raw/FILE.jsonl; limits: SECONDS and the time left in total.
measure() {
    file=$1 limit=$2
    shift 2
    rest=$(($(left) - 8))
    [ "$limit" -le "$rest" ] || limit=$rest
    if [ "$limit" -lt 6 ]; then
        leave_out "$file" "" "time limit reached"
        return
    fi
    start=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$raw/$file.jsonl" 2>"$raw/$file.log"
    status=$?
    [ $status -eq 0 ] ||
        leave_out "$file" "" "ended with status $status after $(($(date +%s) - start)) s: $(tail -n 1 "$raw/$file.log" | cut -c 1-300)"
    [ -s "$raw/$file.log" ] || rm -f "$raw/$file.log"
    echo "   $file: $(($(date +%s) - start)) s, $(grep -c . "$raw/$file.jsonl") lines" >&2
}

# ---- building and checking ------------------------------------------------------------------------------------------------------

torch=no
if "$PYTHON" -c "import sys, torch; sys.exit(not ('$device' == 'cpu' or torch.cuda.is_available()))" 2>/dev/null; then torch=yes; fi
commit=${COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || commit="$commit with changes"
about date "$(date '+%F %H:%M')"
about GPU "$gpu"
about driver "$driver"
about CUDA "$(nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')"
about PyTorch "$([ $torch = yes ] && "$PYTHON" -c 'import torch; print(torch.__version__)' || echo none)"
about host "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
about commit "$commit"
about command "$command"

# made NAME LOG SECONDS COMMAND...: runs the command and records whether it succeeded.
made() {
    name=$1 log=$2 limit=$3
    shift 3
    [ "$limit" -le $(($(left) - 10)) ] || limit=$(($(left) - 10))
    start=$(date +%s)
    echo "== $name" >&2
    if timeout -k 5 "$limit" "$@" >"$raw/$log.log" 2>&1; then result=passed; else result="failed with status $?"; fi
    checked "$name" "$result" $(($(date +%s) - start))
    [ "$result" = passed ] || tail -n 20 "$raw/$log.log" >&2
    [ "$result" = passed ]
}

jobs=-j$(nproc)
library=build/bundle/peers
bench=build/release/bench_gpu
made "build of the benchmark" build-bench 200 make $jobs $bench || exit 1
# While the kernels compile, PyTorch compiles its own kernels: only the caches are kept, nothing is measured.
printf '780:97 771:96 640:80\n1210:151 1180:147\n' >"$work/plan-warm"
warm_model() { # kind causal plan
    "$PYTHON" bench/peers/gpu_model.py --device $device --precision bf16 --kind "$1" --causal "$2" --seconds 1 --quick --plan "$3" \
        >"$raw/warm-$1-$2.log" 2>&1 &
    background="$background $!"
}
if [ $torch = yes ] && [ "$device" != cpu ]; then
    if wanted epoch; then
        for causal in 0 1; do
            warm_model compiled $causal "$work/plan-warm"
            warm_model shape $causal ""
        done
    fi
    if wanted attention; then
        "$PYTHON" bench/peers/gpu_attention.py --device $device --quick --seconds 150 >"$raw/warm-attention.log" 2>&1 &
        background="$background $!"
        [ ! -f $library/causal_product_cuda.cu ] || {
            PYTHONPATH="$PWD/bench/peers:${PYTHONPATH:-}" "$PYTHON" -c "import gpu_attention as g; g.fast_transformers('$library')" \
                >"$raw/warm-fast-transformers.log" 2>&1 && : >"$work/library-built" &
            background="$background $!"
        }
    fi
fi
if wanted epoch; then
    $bench plan --hours "$hours" --batch-frames 16000 >"$work/plan-16000"
    $bench plan --hours "$hours" --batch-frames 64000 >"$work/plan-64000"
    $bench cache --hours "$hours" --file "$work/cache" 2>"$raw/cache.log" ||
        leave_out epoch linnet "no synthetic cache: $(tail -n 1 "$raw/cache.log")"
    [ -s "$raw/cache.log" ] || rm -f "$raw/cache.log"
fi
if [ "$device" != cpu ]; then
    made "build of the CUDA backend" build-cuda 400 make $jobs CUDA_ARCHS="${arch:-90}" build/release/liblinnet_cuda.so || exit 1
    # a short limit for the sanitizers here; bench/GPU-TODO.md runs them longer
    export SANITIZER_SECONDS="${SANITIZER_SECONDS:-15}"
    [ $checks = no ] || made "make check-gpu" check-gpu 150 make $jobs CUDA_ARCHS="${arch:-90}" check-gpu
fi
# measurements need a quiet machine: compilations that are still running get half a minute more
waited=0
for p in $background; do
    while kill -0 "$p" 2>/dev/null; do
        [ $waited -lt 30 ] || { kill "$p" 2>/dev/null; leave_out warm-up "" "still compiling after half a minute, stopped"; break; }
        sleep 1
        waited=$((waited + 1))
    done
done
background=
[ -f "$work/library-built" ] || library=

# ---- measuring, the most important first ---------------------------------------------------------------------------------------

echo "== measuring; $(left) s are left" >&2
linnet() { name=$1 limit=$2; shift 2; part=$1; shift; measure "$name" "$limit" $bench "$part" --device $device $quick "$@"; }
epoch_linnet() { # precision causal batch-frames
    linnet "20-epoch-linnet-$1-$2-$3" 30 epoch --file "$work/cache" --precision "$1" --causal "$2" --batch-frames "$3" --seconds 7
}
epoch_torch() { # kind precision causal batch-frames seconds limit
    measure "21-epoch-torch-$1-$2-$3-$4" "$6" "$PYTHON" bench/peers/gpu_model.py --device $device $quick --kind "$1" \
        --precision "$2" --causal "$3" --batch-frames "$4" --plan "$work/plan-$4" --seconds "$5"
}

if wanted limits; then
    if [ "$device" != cpu ]; then
        make -s build/release/gpu_limits >"$raw/build-limits.log" 2>&1 && rm -f "$raw/build-limits.log"
        measure 10-limits 30 build/release/gpu_limits
    fi
    linnet 11-limits-linnet 30 peak
fi
if wanted epoch; then
    for precision in bf16 tf32; do for causal in 0 1; do epoch_linnet $precision $causal 16000; done; done
    [ -n "$quick" ] || epoch_linnet bf16 0 64000
    if [ $torch = yes ]; then
        for causal in 0 1; do
            epoch_torch eager bf16 $causal 16000 10 40
            [ "$device" = cpu ] || epoch_torch compiled bf16 $causal 16000 25 60
            [ "$device" = cpu ] || epoch_torch shape bf16 $causal 16000 25 60
        done
    fi
fi
if wanted attention; then
    linnet 30-attention-linnet-tf32 40 attention --precision tf32 --seconds 30
    [ $torch = no ] || measure 31-attention-torch 75 "$PYTHON" bench/peers/gpu_attention.py --device $device $quick --seconds 60 \
        --library "$library"
fi
if wanted rivals; then linnet 32-rivals-linnet-tf32 60 rivals --precision tf32 --seconds 50; fi
if wanted lstm; then
    for precision in tf32 bf16 fp32; do linnet 33-lstm-linnet-$precision 15 lstm --precision $precision --seconds 10; done
    [ $torch = no ] || measure 34-lstm-torch 30 "$PYTHON" bench/peers/gpu_lstm.py --device $device $quick --seconds 20
fi
if wanted streams; then linnet 40-streams-bf16 60 streams --precision bf16 --seconds 36; fi
if wanted ops; then
    for precision in bf16 tf32; do linnet 60-ops-$precision-0 25 ops --precision $precision --seconds 15; done
fi
if wanted ctc; then
    linnet 50-ctc-linnet 20 ctc
    [ $torch = no ] || measure 51-ctc-torch 30 "$PYTHON" bench/peers/gpu_ctc.py --device $device $quick --seconds 20
fi
# Further measurements, while there is time.
if wanted epoch && [ -z "$quick" ]; then
    epoch_linnet fp32 0 16000
    [ $torch = no ] || epoch_torch eager bf16 0 64000 8 40
    [ $torch = no ] || epoch_torch eager tf32 0 16000 8 40
    if [ $torch = yes ] && [ "$device" != cpu ]; then
        epoch_torch compiled bf16 0 64000 25 60
        epoch_torch compiled tf32 0 16000 30 70
    fi
    epoch_linnet bf16 1 64000
    epoch_linnet fp32 1 16000
    [ $torch = no ] || epoch_torch eager tf32 1 16000 8 40
fi
if wanted ops && [ -z "$quick" ]; then
    linnet 60-ops-bf16-1 25 ops --precision bf16 --causal 1 --seconds 15
    linnet 60-ops-fp32-0 25 ops --precision fp32 --seconds 15
    linnet 61-ops-bf16-0-16000 25 ops --precision bf16 --rows 16000 --seconds 15
fi
if wanted attention && [ -z "$quick" ]; then linnet 30-attention-linnet-fp32 40 attention --precision fp32 --seconds 30; fi
if wanted streams && [ -z "$quick" ]; then linnet 40-streams-tf32 60 streams --precision tf32 --seconds 36; fi

# ---- the table ------------------------------------------------------------------------------------------------------------------

about "seconds in all" $(($(date +%s) - begin))
{
    echo '['
    cat "$raw"/*.jsonl | grep '^{.*}$' | sed '$!s/$/,/'
    echo ']'
} >"$out/results.json"
$bench table "$raw" >"$out/README.md" || exit 1
cat "$out/README.md"
echo "gpu.sh: $out/README.md, $out/results.json; $(($(date +%s) - begin)) s" >&2
