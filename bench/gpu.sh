#!/bin/sh
# gpu.sh - builds the GPU kit for the GPU of this machine, and runs it: tests, measurements, tables.
#
#   bench/gpu.sh [options of run.sh: --seconds N, --stage LIST, --out DIR, --quick, --device cpu, ...]
#
# bench/gpu/run.sh has the stages. Needs the CUDA toolkit, a C compiler, make and the libraries of the program (tools/bundle.sh collects
# them). A machine without these gets the archive of make gpu-kit. --out: bench/results/DATE-GPU.
set -u
cd "$(dirname "$0")/.." || exit 1
out=yes archs=${CUDA_ARCHS:-} nvcc=
for option; do
    case $option in
    --help) sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    --out) out=no ;;
    cpu) nvcc=NVCC= ;; # --device cpu
    esac
done
if [ -z "$archs" ] && [ -z "$nvcc" ]; then
    archs=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -n 1 | tr -d .)
    [ -n "$archs" ] || { echo "gpu.sh: nvidia-smi finds no GPU; --device cpu --quick runs the script without one" >&2; exit 1; }
fi
make -j"$(nproc)" ${archs:+CUDA_ARCHS="$archs"} $nvcc kit-files || exit 1
kit=$PWD/build/kit/linnet-gpu-kit
if [ $out = yes ]; then
    name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -n 1 | tr 'A-Z ' 'a-z-')
    set -- "$@" --out "$PWD/bench/results/$(date +%F)-${name:-cpu}"
fi
exec "$kit/run.sh" "$@"
