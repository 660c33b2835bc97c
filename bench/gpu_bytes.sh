#!/bin/sh
# gpu_bytes.sh - counts bytes, operations and launches of the GPU backend without a GPU, and estimates their least time.
#
#   bench/gpu_bytes.sh [--kernels] [--precision fp32,tf32,bf16] [--part train,streams] [--model FILE]
#
# The trainer and the streams run on the emulated device (tests/emulation/traffic.cpp), which writes down what each launch moves and
# multiplies. Each part runs at two sizes; from these every launch's bytes are a constant and a part for each row, and so its time at
# the size that counts. A launch takes no less than its bytes at 90 % of the memory's rate and its products at 80 % of the tensor
# cores' dense rate, which large copies and products reach; gaps between launches are not counted. Products are tiles of 128 x 128,
# and the multiprocessor that has the most of them decides: so a few tiles are as slow as a whole wave.
#   train    one step of the paper's network, bidirectional, dropout 0.1, batches of 64,000 frames: an epoch of 80 hours, in
#            utterances as a mean one of WSJ: 780 frames, 97 phonemes
#   streams  one tick of 50,000 streams of the paper's network, or of that of --model, 40 ms each
# --kernels: also the bytes of a row, or of a stream, by kernel, and its time on an H200. Writes Markdown. Some minutes of one core.
set -eu
cd "$(dirname "$0")/.."
parts=train,streams precisions=fp32,tf32,bf16 kernels=0 model=
usage() { sed -n '2,14p' "$0" | sed 's/^# \{0,1\}//'; exit "$1"; }
while [ $# -gt 0 ]; do
    case $1 in
    --help) usage 0 ;;
    --kernels) kernels=1; shift ;;
    --precision|--part|--model)
        [ $# -ge 2 ] || usage 2
        case $1 in --part) parts=$2 ;; --model) model=$2 ;; *) precisions=$2 ;; esac
        shift 2 ;;
    *) echo "gpu_bytes.sh: unknown option $1" >&2; usage 2 ;;
    esac
done
B=$PWD/build/release
make -s "NVCC=${NVCC-}" build/release/bench_gpu build/release/emulated/liblinnet_cuda.so build/release/emulated/libcuda.so.1 >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work" LINNET_CUDA_LIBRARY="$B/emulated/liblinnet_cuda.so" LINNET_CUDA_DRIVER="$B/emulated/libcuda.so.1"
export LINNET_CUDA_SLICE_ROWS="${LINNET_CUDA_SLICE_ROWS-1}" # gradients of weights have as many slices as at full size
export LINNET_EMULATION_MULTIPROCESSORS=1 # as many utterances for each as at full size, where attention is not divided

# count FILE COMMAND...
count() {
    file=$1; shift
    rm -f "$file"
    LINNET_EMULATION_TRAFFIC=$file "$@" >"$file.log" || { cat "$file.log" >&2; exit 1; }
}

# The last step of a training run: from the gathering of its features to the packing of its weights; and its rows.
step() { awk -F'\t' '/gather_rows/ { n = 0; on = 1 } on { line[n++] = $0 } /pack</ { if (on) m = n; on = 0 } END { for (i = 0; i < m; i++) print line[i] }' "$1"; }
# The last tick: from its upload to the last download of its results.
tick() { awk -F'\t' '$1 == "upload" && before == "download" { n = 0 } { line[n++] = $0; before = $1 } before == "download" { m = n } END { for (i = 0; i < m; i++) print line[i] }' "$1"; }

# table SMALL ROWS LARGE ROWS SIZE TIMES UNIT: two counts of the same launches; SIZE rows at once, TIMES of them in all.
table() {
    awk -F'\t' -v r1="$2" -v r2="$4" -v size="$5" -v times="$6" -v kernels="$kernels" -v label="$7" -v unit="$8" '
        BEGIN {
            # TB/s; dense TFLOP/s of tf32, bf16, fp32; multiprocessors
            n_gpus = split("A100:2.039:156:312:19.5:108 H100:3.35:495:989:67:132 H200:4.8:495:989:67:132 4090:1.008:82.6:165:82.6:128", gpus, " ")
        }
        # The rows of a launch: the slices of a gradient of a weight leave some to add_slices, which depends on nothing else of them.
        function rows_of(x, i, all) { return x[i, 8] > 1 ? x[i, 4] / (2 * x[i, 6] * x[i, 7]) : all }
        function at(i, k) {
            if (name[i] ~ /^add_slices/) return x2[i, k]
            from = rows_of(x1, i, r1)
            slope = (x2[i, k] - x1[i, k]) / (rows_of(x2, i, r2) - from); c = x1[i, k] - slope * from
            return (c > 0 ? c : 0) + slope * size
        }
        function more(a, b) { return a > b ? a : b }
        function bytes_of(i) { return at(i, 2) + at(i, 3) }
        function up(x) { return x > int(x) ? int(x) + 1 : int(x) }
        # How much longer the multiprocessor with the most blocks works than the mean of all.
        function uneven(blocks, multiprocessors) { return blocks > 0 ? up(blocks / multiprocessors - 1e-9) * multiprocessors / blocks : 1 }
        # The products of a launch of cublasLt as tiles of 128 x 128: those beyond the matrix too.
        function product(i, multiprocessors,    tiles) {
            if (!at(i, 6)) return at(i, 4)
            tiles = up(at(i, 6) / 128 - 1e-9) * up(at(i, 7) / 128 - 1e-9) * at(i, 8)
            return at(i, 4) * tiles * 16384 / (at(i, 6) * at(i, 7) * at(i, 8)) * uneven(tiles, multiprocessors)
        }
        function ms(i, gpu,    g) {
            split(gpus[gpu], g, ":")
            return 1e-9 * more(bytes_of(i) / (0.9 * g[2]), product(i, g[6]) / (0.8 * (kind[i] == "bf16" ? g[4] : kind[i] == "tf32" ? g[3] : g[5])))
        }
        function shape(line, x, i,    part) { # of a product: fields 6 to 8
            if (line !~ /^cublasLtMatmul</) return
            split(line, part, /[<,>]/)
            x[i, 6] = part[2] + 0; x[i, 7] = part[3] + 0; x[i, 8] = part[4] + 0
        }
        function base(kernel) { sub(/<.*/, "", kernel); return kernel } # template arguments may depend on lengths
        NR == FNR { n++; name[n] = $1; kind[n] = $5; for (k = 2; k <= 4; k++) x1[n, k] = $k; shape($1, x1, n); next }
        { m++; if (base($1) != base(name[m])) { print "gpu_bytes.sh: the launches differ at " m ": " name[m] ", " $1 > "/dev/stderr"; exit 1 }
          for (k = 2; k <= 4; k++) x2[m, k] = $k; shape($1, x2, m) }
        END {
            if (n != m || !n) { print "gpu_bytes.sh: " n " and " m " launches" > "/dev/stderr"; exit 1 }
            for (i = 1; i <= n; i++) {
                if (at(i, 6)) name[i] = sprintf("cublasLtMatmul<%d, %s, %d>", at(i, 6), x1[i, 7] == x2[i, 7] ? x1[i, 7] : "rows", at(i, 8))
                bytes += bytes_of(i); operations += at(i, 4)
                for (g = 1; g <= n_gpus; g++) total[g] += ms(i, g)
                by[name[i]] += bytes_of(i) / size; launches[name[i]]++
                most[name[i]] += ms(i, 3)
            }
            scale = unit == "s" ? 1e-3 * times : times
            printf "| %s | %d | %.0f | %.1f |", label, n, bytes / size, operations / size * 1e-6
            for (g = 1; g <= n_gpus; g++) printf " %.2f %s |", total[g] * scale, unit
            print ""
            if (kernels)
                for (k in by) printf "    %8.0f bytes, %7.3f ms in %3d launches of %s\n", by[k], most[k], launches[k], k | "sort -k 5rn"
            close("sort -k 5rn")
        }' "$1" "$3"
}

wanted() { case ,$parts, in *,"$1",*) return 0 ;; esac; return 1; }
if wanted train; then
    echo "| an epoch of 80 hours | launches of a step | bytes of a frame | MFLOP of a frame | A100 | H100 | H200 | 4090 |"
    echo "|---|---|---|---|---|---|---|---|"
    for p in $(echo "$precisions" | tr , ' '); do
        for i in 1 2; do
            [ -f "$work/$i.lfc" ] || "$B/bench_gpu" cache --rows 780 --hours "0.00$((i * 2 + 1))" --file "$work/$i.lfc" # i utterances
            count "$work/all" "$B/bench_gpu" epoch --device cuda --precision "$p" --batch-frames 3000 --quick --file "$work/$i.lfc"
            step "$work/all" >"$work/$i"
            rows=$(awk -F'\t' '/stack_rows/ { print int($3 / 160) }' "$work/$i")
            eval "rows$i=$rows"
        done
        table "$work/1" "$rows1" "$work/2" "$rows2" 64000 450 "$p" s
    done
fi
if wanted streams; then
    wanted train && echo
    echo "| a tick of 50,000 streams, 40 ms | launches of a tick | bytes of a stream | MFLOP of a stream | A100 | H100 | H200 | 4090 |"
    echo "|---|---|---|---|---|---|---|---|"
    for p in $(echo "$precisions" | tr , ' '); do
        for i in 1 2; do
            count "$work/all" "$B/bench_gpu" streams --device cuda --precision "$p" --quick --rows $((i * 32)) ${model:+--file "$model"}
            tick "$work/all" >"$work/$i"
        done
        table "$work/1" 32 "$work/2" 64 50000 1 "$p" ms
    done
fi
