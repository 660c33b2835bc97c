#!/bin/sh
# found.sh CC ARCH PACKAGES CONFIG NVCC ARCHS: prints what the build will use; fails if something is missing.
cc=$1 arch=$2 packages=$3 config=$4 nvcc=${5:-} archs=${6:-}
missing=
if ! command -v ${cc%% *} > /dev/null 2>&1; then
    echo "compiler:  $cc is not installed"
    missing=$cc
else
    echo "compiler:  $($cc --version | head -n 1)"
fi
if ! command -v pkg-config > /dev/null 2>&1; then
    echo "libraries: pkg-config is not installed"
    missing="$missing pkg-config"
else
    line=
    for p in $packages; do
        if v=$(pkg-config --modversion "$p" 2>/dev/null); then
            line="$line${line:+, }$p $v"
        else
            line="$line${line:+, }$p MISSING"
            missing="$missing $p"
        fi
    done
    echo "libraries: $line"
fi
case $arch in
x86_64)
    best=portable
    grep -qw avx2 /proc/cpuinfo 2>/dev/null && best=AVX2
    grep -qw avx512vl /proc/cpuinfo 2>/dev/null && best=AVX-512
    echo "processor: $arch; kernels for AVX-512, AVX2 and any other, chosen when the program runs (here: $best)" ;;
*) echo "processor: $arch; portable kernels" ;;
esac
if [ -n "$nvcc" ] && [ -z "$archs" ]; then
    echo "CUDA:      $nvcc, but no GPU is here; the program is built without its GPU backend (make cuda builds it)"
elif [ -n "$nvcc" ]; then
    echo "CUDA:      $nvcc $($nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p'), for compute capabilities $(echo "$archs" | sed 's/\([0-9]\)\( \|$\)/.\1\2/g') and newer"
else
    echo "CUDA:      nvcc is not installed; the program is built without its GPU backend"
fi
if command -v mpicc > /dev/null 2>&1; then
    echo "MPI:       $(command -v mpicc), for training on several processes"
else
    echo "MPI:       mpicc is not installed; the program is built without training on several processes"
fi
if pkg-config --exists 'libwebsockets >= 4.1' 2> /dev/null; then
    echo "server:    libwebsockets $(pkg-config --modversion libwebsockets), for linnet serve$(pkg-config --exists opus ogg 2> /dev/null && echo ", with Opus")"
else
    echo "server:    libwebsockets 4.1 or later is not installed; the program is built without linnet serve"
fi
echo "building:  build/$config/linnet"
[ -z "$missing" ] && exit 0
echo "missing: $missing. 'make deps' installs it." >&2
exit 1
