#!/bin/sh
# run.sh - the GPU kit: tests, measures and trains on the GPU of this machine. Nothing is compiled or installed; no network is used.
#
#   ./run.sh [--seconds 560] [--stage LIST] [--out DIR] [--hours N] [--device cuda] [--quick]
#
# Stages, the ones that tell the worst news first:
#   smoke       opens the GPU; one product in each precision, one attention, one graph
#   check       every case of every kernel, each in a process of its own with its own time limit
#   limits      the device's copy and multiplication rates
#   ops         every operation of a training step, as shares of the limits
#   epoch       80 hours at WSJ's lengths, extrapolated from --hours (20) of synthetic features, compared with PyTorch
#   streams     live streams at once, chunks of 1 to 16 frames
#   attention   N = 2^9..2^16, linear, softmax and LSH, forward and forward + backward, time and memory, compared with PyTorch
#   sanitizer   the operations under compute-sanitizer's memcheck and racecheck, where it is installed
#   train       the same run twice, bit for bit; then the shipped streaming model from the caches of the kit, as recipes/open/run.sh
#               trains it, as long as there is time
#   table3      the rows of the paper's table 3 on the caches; only if it is named: it takes hours
#
# --seconds: time limit for everything. What does not fit is left out and reported; the same command with the same --out continues
# there: what is complete is not run again, unless its stage is named. --quick: small shapes. --device cpu --quick: without a GPU.
# DIR (results/DATE-GPU): README.md (tables), results.json and raw/, the output of every part, written after every part.
# PATIENCE (1): a factor for the time limits of parts, for devices that are emulated.
# PYTHON (python3): an interpreter with PyTorch, to compare with. CUBLASLT: the folder of libcublasLt.so, if it is not found.
set -u
start=$(pwd)
cd "$(dirname "$0")" || exit 1
here=$(pwd)
PYTHON=${PYTHON:-python3}
command="run.sh${*:+ $*}"
out= stages= seconds=560 hours=20 device=cuda quick=
every=smoke,check,limits,ops,epoch,streams,attention,sanitizer,train
usage() { sed -n '2,/^[^#]/s/^#$\|^# \{0,1\}//p' "$here/run.sh"; exit "$1"; }
die() { echo "run.sh: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
    case $1 in
    --help) usage 0 ;;
    --quick) quick=--quick; shift ;;
    --out|--stage|--seconds|--hours|--device)
        [ $# -ge 2 ] || usage 2
        case $1 in
        --out) out=$2 ;;
        --stage) stages=$2 ;;
        --seconds) seconds=$2 ;;
        --hours) hours=$2 ;;
        --device) device=$2 ;;
        esac
        shift 2 ;;
    *) echo "run.sh: unknown option $1" >&2; usage 2 ;;
    esac
done
case $seconds in ''|*[!0-9]*) die "--seconds is a number of seconds, not '$seconds'" ;; esac
patience=${PATIENCE:-1} again=no
[ -z "$stages" ] || again=yes
stages=${stages:-$every}
for stage in $(echo "$stages" | tr , ' '); do
    case ,$every,table3, in *,"$stage",*) ;; *) die "there is no stage '$stage'; --help lists them" ;; esac
done
begin=$(date +%s)
left() { echo $((begin + seconds - $(date +%s))); }

# ---- where things are -----------------------------------------------------------------------------------------------------------

linnet=$here/bin/linnet bench=$here/bin/bench_gpu
[ -x "$linnet" ] && [ -x "$bench" ] || die "$here/bin has no programs: unpack the whole archive"
export LINNET_CUDA_LIBRARY="${LINNET_CUDA_LIBRARY:-$here/lib/linnet/liblinnet_cuda.so}"

# cublasLt is not in the kit (600 MB): the toolkit, the system or a Python environment has it.
version=$(cat "$here/cublaslt-version" 2> /dev/null)
cublaslt() {
    for folder in ${CUBLASLT:-} /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib /usr/local/cuda-*/lib64 /usr/local/cuda*/lib \
        /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64 /opt/cuda/lib64; do
        [ -e "$folder/libcublasLt.so.${version:-13}" ] && echo "$folder" && return
    done
    "$PYTHON" - "${version:-13}" 2> /dev/null << 'END'
import glob, os, site, sys
places = site.getsitepackages() + [site.getusersitepackages()] + sys.path
for place in places:
    for found in glob.glob(os.path.join(place or ".", "nvidia", "*", "lib", "libcublasLt.so." + sys.argv[1])):
        print(os.path.dirname(found))
        sys.exit(0)
END
}
where=$(cublaslt)
[ -z "$where" ] || export LD_LIBRARY_PATH="$where${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

gpu=CPU driver=none arch=
if [ "${device#cuda}" != "$device" ]; then
    found=$("$linnet" info --devices 2>&1)
    number=${device#cuda}
    number=${number#:}
    number=${number:-0}
    gpu=$(echo "$found" | sed -n "s/^cuda:$number: *\\([^,]*\\),.*/\\1/p")
    arch=$(echo "$found" | sed -n "s/^cuda:$number:.*compute capability \\([0-9.]*\\).*/\\1/p")
    if [ -z "$gpu" ]; then
        echo "$found" | grep -E '^(no GPU|cuda)' >&2
        [ -n "$where" ] || echo "run.sh: no folder with libcublasLt.so.${version:-13} was found; CUBLASLT=FOLDER names it" >&2
        die "there is no usable GPU $number; --device cpu --quick runs the script without one"
    fi
    driver=$(nvidia-smi -i "$number" --query-gpu=driver_version --format=csv,noheader 2> /dev/null | head -n 1)
    [ -n "$driver" ] || driver="CUDA $(echo "$found" | sed -n "s/^driver's CUDA: *//p")"
fi
case $out in
'') out=$here/results/$(date +%F)-$(echo "$gpu" | tr 'A-Z ' 'a-z-') ;;
/*) ;;
*) out=$start/$out ;;
esac
raw=$out/raw
mkdir -p "$raw" || exit 1
work=$(mktemp -d) || exit 1
background=
trap 'for p in $background; do kill "$p" 2> /dev/null; done; rm -rf "$work"' EXIT
trap 'tables; exit 130' INT TERM
# files that packages build at run time are kept out of the user's folders and shared by the parts
export TORCHINDUCTOR_CACHE_DIR="$work/inductor" TRITON_CACHE_DIR="$work/triton" TORCH_EXTENSIONS_DIR="$work/extensions"
export TMPDIR="$work"
[ ! -d "$here/python" ] || export PYTHONPATH="$here/python${PYTHONPATH:+:$PYTHONPATH}"
[ -z "$arch" ] || export TORCH_CUDA_ARCH_LIST="$arch"

# ---- parts ------------------------------------------------------------------------------------------------------------------------

quoted() { printf '%s' "$1" | tr '\n\t' '  ' | sed 's/\\/\\\\/g; s/"/\\"/g'; }
about() { printf '{"part": "about", "what": "%s", "value": "%s"}\n' "$1" "$(quoted "$2")"; }
leave_out() { printf '{"part": "%s", "who": "", "left_out": "%s"}\n' "$1" "$(quoted "$2")" > "$raw/99-left-out-$1.jsonl"; echo "   $1: $2" >&2; }
checked() { printf '{"part": "check", "what": "%s", "result": "%s", "seconds": %s}\n' "$(quoted "$2")" "$(quoted "$3")" "$4" >> "$raw/$1.jsonl"; }
tables() {
    {
        echo '['
        cat "$raw"/*.jsonl 2> /dev/null | grep '^{.*}$' | sed '$!s/$/,/'
        echo ']'
    } > "$out/results.json"
    "$bench" table "$raw" > "$out/README.md"
}

# due NAME SECONDS: whether a part is to be run; sets `limit` to the seconds it may take: SECONDS, or what is left.
due() {
    [ "$again" = yes ] || [ ! -f "$raw/$1.done" ] || return 1
    limit=$(($(left) - 8))
    [ $(($2 * patience)) -ge "$limit" ] || limit=$(($2 * patience))
    rm -f "$raw/99-left-out-$1.jsonl" "$raw/$1.done"
    [ "$limit" -ge 6 ] && return
    leave_out "$1" "not run: the time was over"
    return 1
}
# measure NAME SECONDS COMMAND...: writes the command's lines to raw/NAME.jsonl.
measure() {
    name=$1
    due "$1" "$2" || return
    shift 2
    from=$(date +%s)
    timeout -k 5 "$limit" "$@" > "$raw/$name.jsonl" 2> "$raw/$name.log"
    status=$? took=$(($(date +%s) - from))
    case $status in
    0) : > "$raw/$name.done" ;;
    124|137) leave_out "$name" "stopped after $took s; what it had measured by then is in the tables" ;;
    *) leave_out "$name" "ended with status $status after $took s: $(tail -n 1 "$raw/$name.log" | cut -c 1-300)" ;;
    esac
    [ -s "$raw/$name.log" ] || rm -f "$raw/$name.log"
    echo "   $name: $took s, $(grep -c . "$raw/$name.jsonl") lines" >&2
    tables
}
linnet() { name=$1 limit=$2; shift 2; part=$1; shift; measure "$name" "$limit" "$bench" "$part" --device "$device" $quick "$@"; }
# peer NAME SECONDS SCRIPT...: a script of the PyTorch side
peer() { [ $torch = no ] || { name=$1 limit=$2 script=$3; shift 3; measure "$name" "$limit" "$PYTHON" "$here/peers/$script" --device "$device" $quick "$@"; }; }
wanted() { case ,$stages, in *,"$1",*) return 0 ;; esac; return 1; }
stage() { wanted "$1" && { echo "== $1; $(left) s are left" >&2; return 0; }; }
on_gpu() { [ "$device" != cpu ] || { leave_out "$1" "needs a GPU"; return 1; }; }

torch=no
if "$PYTHON" -c "import sys, torch; sys.exit(not ('$device' == 'cpu' or torch.cuda.is_available()))" 2> /dev/null; then torch=yes; fi
{
    about date "$(date '+%F %H:%M')"
    about GPU "$gpu"
    about driver "$driver"
    about cublasLt "${where:-not found}"
    about PyTorch "$([ $torch = yes ] && "$PYTHON" -c 'import torch; print(torch.__version__)' || echo none)"
    about host "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
    about kit "$(cat "$here/about" 2> /dev/null || echo unknown)"
    about command "$command"
} > "$raw/00-about.jsonl"

# ---- smoke and check ----------------------------------------------------------------------------------------------------------------

# cases NAME SECONDS WHAT...: tools/check-gpu.sh on test programs; one line of the table for the result, one for each failure
cases() {
    name=$1
    due "$1" "$2" || return
    shift 2
    from=$(date +%s)
    rm -f "$raw/$name.jsonl"
    # Inner limits come first: a test that hangs must not take the GPU into the next stage.
    inner=$(((limit - 3) / 2))
    [ "${SANITIZER_SECONDS:-0}" -le $inner ] || SANITIZER_SECONDS=$inner
    PROGRAM_SECONDS=$((limit - 3)) timeout -k 5 "$limit" sh "$here/check-gpu.sh" "$@" 2>&1 | tee "$raw/$name.log" >&2
    took=$(($(date +%s) - from)) result=$(sed -n 's/^\(compute-sanitizer: \)\{0,1\}\([0-9]* passed, [0-9]* failed.*\)/\2/p' "$raw/$name.log" | tail -n 1)
    if grep -q 'is not installed: not run' "$raw/$name.log" && [ "$name" = 90-sanitizer ]; then result="compute-sanitizer is not installed"; fi
    if [ -n "$result" ]; then
        grep -q 'did not reach its end' "$raw/$name.log" || : > "$raw/$name.done"
    else result="stopped after $took s: $(grep -c '^ok' "$raw/$name.log") passed, $(grep -c '^FAILED' "$raw/$name.log") failed until then"
    fi
    checked "$name" "${name#*-}" "$result" $took
    grep -A 1 '^FAILED' "$raw/$name.log" | grep -v '^--' | tr -s ' ' | paste -d ' ' - - | while read -r line; do
        checked "$name" "${name#*-}" "$line" 0
    done
    tables
}

if stage smoke && on_gpu smoke; then
    from=$(date +%s)
    echo "$found" > "$raw/01-open.log"
    for case in linear attention graph; do
        # the case in each precision that it has, with small shapes
        (
            export LINNET_TEST_CASE=$case LINNET_TEST_QUICK=1 SANITIZER_SECONDS=0
            cases "01-smoke-$case" 30 "$here/tests/test_cuda_ops"
        )
    done
    echo "   smoke: $(($(date +%s) - from)) s" >&2
fi

# PyTorch compiles its kernels while the cases run, in which nothing is measured; only its caches are kept.
if [ $torch = yes ] && [ "$device" != cpu ] && wanted check; then
    printf '780:97 771:96 640:80\n1210:151 1180:147\n' > "$work/plan-warm"
    warm() { log=$1; shift; "$PYTHON" "$@" > "$raw/$log.log" 2>&1 & background="$background $!"; }
    if wanted epoch; then
        for causal in 0 1; do
            for kind in compiled shape; do
                plan=$work/plan-warm
                [ $kind = compiled ] || plan=
                warm warm-$kind-$causal "$here/peers/gpu_model.py" --device "$device" --precision bf16 --kind $kind --causal $causal \
                    --seconds 1 --quick --plan "$plan"
            done
        done
    fi
    ! wanted attention || warm warm-attention "$here/peers/gpu_attention.py" --device "$device" --quick --seconds 150
fi
# All programs at once: a case takes longer to start CUDA than to compute.
if stage check && on_gpu check; then
    programs=
    rm -f "$raw/held"
    if mkfifo "$raw/held"; then # the device stays in use until descriptor 9 is closed
        "$bench" hold --device "$device" < "$raw/held" > /dev/null 2>&1 &
        exec 9> "$raw/held"
    fi
    for test in "$here"/tests/test_cuda_*; do
        (
            export SANITIZER_SECONDS=0
            [ -z "$quick" ] || export LINNET_TEST_QUICK=1
            cases "02-check-$(basename "$test")" "${PROGRAM_SECONDS:-150}" "$test"
        ) &
        programs="$programs $!"
    done
    # shellcheck disable=SC2086 # numbers
    wait $programs
    exec 9>&-
    rm -f "$raw/held"
    tables
fi
# Measurements need a quiet machine: compilations that still run get half a minute more.
waited=0
for p in $background; do
    while kill -0 "$p" 2> /dev/null; do
        [ $waited -lt 30 ] || { kill "$p" 2> /dev/null; leave_out warm-up "PyTorch was still compiling after half a minute, stopped"; break; }
        sleep 1
        waited=$((waited + 1))
    done
done
background=

# ---- measuring ------------------------------------------------------------------------------------------------------------------------

if stage limits; then
    if [ "$device" = cpu ]; then leave_out limits "the GPU's limits need a GPU"
    elif [ ! -x "$here/bin/gpu_limits" ]; then leave_out limits "the kit was built without nvcc: no gpu_limits"
    elif [ -z "$where" ]; then leave_out limits "no libcublasLt.so.${version:-13} was found; CUBLASLT=FOLDER names its folder"
    else measure 10-limits 30 "$here/bin/gpu_limits"
    fi
    linnet 11-limits-linnet 30 peak
fi
if stage ops; then
    for precision in bf16 tf32; do linnet 60-ops-$precision-0 25 ops --precision $precision --seconds 15; done
    if [ -z "$quick" ]; then
        linnet 60-ops-bf16-1 25 ops --precision bf16 --causal 1 --seconds 15
        linnet 60-ops-fp32-0 25 ops --precision fp32 --seconds 15
    fi
fi
epoch_linnet() { # precision causal batch-frames
    linnet "20-epoch-linnet-$1-$2-$3${LINNET_CUDA_SLICE_ROWS:+-slices-$LINNET_CUDA_SLICE_ROWS}" 30 epoch --file "$work/cache" --precision "$1" --causal "$2" --batch-frames "$3" --seconds 7
}
epoch_torch() { # kind precision causal batch-frames seconds limit
    peer "21-epoch-torch-$1-$2-$3-$4" "$6" gpu_model.py --kind "$1" --precision "$2" --causal "$3" --batch-frames "$4" \
        --plan "$work/plan-$4" --seconds "$5"
}
if stage epoch; then
    "$bench" plan --hours "$hours" --batch-frames 16000 > "$work/plan-16000"
    "$bench" plan --hours "$hours" --batch-frames 64000 > "$work/plan-64000"
    if timeout 60 "$bench" cache --hours "$hours" --file "$work/cache" 2> "$raw/cache.log"; then
        rm -f "$raw/cache.log"
        epoch_linnet tf32 1 16000
        if [ -z "$quick" ]; then
            for causal in 0 1; do epoch_linnet bf16 $causal 16000; done
            epoch_linnet tf32 0 16000
            epoch_linnet bf16 0 64000
            # Gradients of weights as cublasLt divides them, and in fewer and more slices than by default.
            for rows in 0 256 4096; do (export LINNET_CUDA_SLICE_ROWS=$rows; epoch_linnet bf16 0 64000); done
            (export LINNET_CUDA_SLICE_ROWS=0; epoch_linnet bf16 0 16000)
        fi
        for causal in 0 1; do
            epoch_torch eager bf16 $causal 16000 10 40
            [ "$device" = cpu ] || epoch_torch compiled bf16 $causal 16000 25 60
            [ "$device" = cpu ] || epoch_torch shape bf16 $causal 16000 25 60
        done
        if [ -z "$quick" ]; then
            epoch_linnet fp32 0 16000
            epoch_torch eager tf32 0 16000 8 40
        fi
    else
        leave_out epoch "no synthetic cache: $(tail -n 1 "$raw/cache.log")"
    fi
fi
if stage streams; then
    linnet 40-streams-tf32 60 streams --precision tf32 --seconds 36
    linnet 41-streams-shipped 60 streams --precision tf32 --seconds 36 --file "$here/share/linnet/en/default.safetensors"
    [ -n "$quick" ] || linnet 40-streams-bf16 60 streams --precision bf16 --seconds 36
    for n in 2048 4096 8192 16384; do
        [ -n "$quick" ] || linnet 42-streams-pass-$n 20 streams --precision tf32 --seconds 8 --rows 49152 --pass-streams $n
    done
fi
if stage attention; then
    linnet 30-attention-linnet-tf32 40 attention --precision tf32 --seconds 30
    peer 31-attention-torch 75 gpu_attention.py --seconds 60 --library ""
    linnet 32-rivals-linnet-tf32 60 rivals --precision tf32 --seconds 50
    [ -n "$quick" ] || linnet 30-attention-linnet-fp32 40 attention --precision fp32 --seconds 30
fi
if stage sanitizer && on_gpu sanitizer; then
    (
        export CASES=no SANITIZER_SECONDS="${SANITIZER_SECONDS:-60}"
        cases 90-sanitizer $((2 * SANITIZER_SECONDS + 10)) "$here/tests/test_cuda_ops"
    )
fi

# ---- training -------------------------------------------------------------------------------------------------------------------------

train() { # folder options...
    folder=$1
    shift
    timeout -k 20 -s INT "$limit" "$linnet" train "$here/stream.conf" --device "$device" --folder "$folder" "$@"
}
# The shipped streaming model on the kit's caches, as recipes/open/run.sh trains it, resumed where it was cut.
model() { # epochs
    folder=$out/train
    if [ ! -f "$raw/71-train.done" ]; then
        due 71-train 100000 || return
        from=$(date +%s) resume=
        [ ! -f "$folder/checkpoint.safetensors" ] || resume=--resume
        # shellcheck disable=SC2086 # options
        { train "$folder" $sets $dev $small $resume --precision bf16 --epochs "$1" 2>&1; echo $? > "$work/status"; } | tee "$raw/71-train.log" >&2
        rm -f "$raw/71-train.jsonl"
        case $(cat "$work/status") in
        0) : > "$raw/71-train.done" ;;
        124|130) leave_out 71-train "the time was over; the same command goes on there" ;;
        *) leave_out 71-train "ended with status $(cat "$work/status"): $(tail -n 1 "$raw/71-train.log" | cut -c 1-300)" ;;
        esac
        checked 71-train "training: epochs, dev error rate of the last" \
            "$(awk -F '\t' 'NR > 1 { n = $1; e = $5 } END { print n + 0, e }' "$folder/log.tsv" 2> /dev/null)" $(($(date +%s) - from))
        tables
        [ -f "$raw/71-train.done" ] || return
    fi
    rm -f "$raw/74-train-average.done" "$raw/99-left-out-74-train-average.jsonl"
    if "$linnet" average --ema "$folder/checkpoint.safetensors" --level-db 103 --half --delay-ms 109 --blank-bias 1 -o "$out/stream.safetensors" \
        > "$raw/74-train-average.log" 2>&1; then
        : > "$raw/74-train-average.done"
        echo "   train: $out/stream.safetensors" >&2
    else leave_out 74-train-average "$(tail -n 1 "$raw/74-train-average.log" | cut -c 1-300)"
    fi
}
if stage train; then
    sets= dev=
    for cache in "$here"/caches/train_*.lfc; do [ ! -f "$cache" ] || sets="$sets --train $cache"; done
    for cache in "$here"/caches/dev_*.lfc; do [ ! -f "$cache" ] || dev="--dev $cache"; done
    some=0.5
    [ -z "$quick" ] || some=0.001
    timeout 60 "$bench" cache --hours $some --file "$work/some.lfc" 2> /dev/null
    small= epochs=60
    [ -z "$quick" ] || small="--layers 4 --set heads=2,head-width=8,feedforward=16,conv-layers=4" epochs=1
    # The same run twice: the same bytes. In synthetic features there is nothing to learn.
    for run in 1 2; do
        due 70-train-same-$run 60 || continue
        from=$(date +%s)
        rm -rf "$work/same-$run"
        # shellcheck disable=SC2086 # options
        if train "$work/same-$run" --train "$work/some.lfc" --dev "$work/some.lfc" --epochs 1 --seed 1 --set search=0,mmi=0 $small > "$raw/70-train-same-$run.log" 2>&1; then
            : > "$raw/70-train-same-$run.done"
        else
            leave_out 70-train-same-$run "ended with status $?: $(tail -n 1 "$raw/70-train-same-$run.log" | cut -c 1-300)"
        fi
    done
    if [ -f "$work/same-1/best.safetensors" ] && [ -f "$work/same-2/best.safetensors" ]; then
        rm -f "$raw/70-train-same.jsonl"
        if cmp -s "$work/same-1/best.safetensors" "$work/same-2/best.safetensors"; then same=passed; else same="FAILED: the models differ"; fi
        checked 70-train-same "one seed, two runs, the same model" "$same" $(($(date +%s) - from))
        tables
    fi
    if [ -z "$sets" ] || [ -z "$dev" ]; then
        leave_out 71-train "no model: the kit has no caches of speech (make gpu-kit CACHES=DIR)"
    else
        model $epochs
    fi
fi
if stage table3; then
    if [ ! -f "$here/caches/train_native.lfc" ] || [ ! -f "$here/caches/dev_native.lfc" ]; then
        leave_out table3 "needs the caches train_native.lfc and dev_native.lfc (make gpu-kit CACHES=DIR)"
    elif ! command -v bash > /dev/null; then
        leave_out table3 "needs bash"
    elif due 80-table3 100000; then
        mkdir -p "$out/table3/features"
        for set in train_native dev_native; do ln -sf "$here/caches/$set.lfc" "$out/table3/features/"; done
        {
            timeout -k 20 -s INT "$limit" bash "$here/recipes/paper/table3.sh" --work "$out/table3" --stage 2 --stop-stage 2 \
                --device "$device" --linnet "$linnet" --rows "${ROWS:-linear,softmax,lsh-4,bilstm}" ${quick:+--quick} 2>&1
            echo $? > "$work/status"
        } | tee "$raw/80-table3.log" >&2
        if [ "$(cat "$work/status")" = 0 ]; then : > "$raw/80-table3.done"
        else leave_out 80-table3 "ended with status $(cat "$work/status"), or was cut: the same command goes on there: $(tail -n 1 "$raw/80-table3.log" | cut -c 1-300)"
        fi
    fi
fi

printf '%s\n' "$(about "seconds in all" $(($(date +%s) - begin)))" > "$raw/00-about-time.jsonl"
tables
cat "$out/README.md"
echo "run.sh: $out/README.md, $out/results.json; $(($(date +%s) - begin)) s" >&2
! grep -q '"result": "\(FAILED\|[0-9]* passed, [1-9]\)' "$raw"/*.jsonl
