#!/bin/sh
# gpu-kit.sh FOLDER [ARCHIVE]: completes the folder of the GPU kit, to which make has copied programs, tests and backend, or packs it.
#
# Adds the scripts, the recipes, the Python peers, the libraries that the programs need (all but libc's and the driver's) and, from
# CACHES, feature caches: cut so that the archive has at most KIT_MB (55) MB. Checks that no file needs a symbol of a glibc newer than
# 2.36 (Debian 12), and that every library is found in the kit.
set -u
kit=$1
most=${KIT_MB:-55}
[ -n "$most" ] || most=55
die() { echo "gpu-kit.sh: $*" >&2; exit 1; }
megabytes() { du -sm --apparent-size "$@" | awk '{ n += $1 } END { print n + 0 }'; }

if [ $# -gt 1 ]; then
    XZ_OPT=-T0 tar -C "$(dirname "$kit")" -cJf "$2.part" "$(basename "$kit")" && mv "$2.part" "$2" || exit 1
    size=$(megabytes "$2")
    echo "$2: $size MB; unpack it on the machine with the GPU and start linnet-gpu-kit/run.sh"
    [ "$size" -le "$most" ] || die "the archive has more than $most MB: fewer CUDA_ARCHS or no CACHES"
    exit 0
fi

# ---- scripts and data -----------------------------------------------------------------------------------------------------------

mkdir -p "$kit/lib/linnet" "$kit/peers" "$kit/recipes/paper" "$kit/tests/golden" || exit 1
cp bench/gpu/run.sh tools/check-gpu.sh recipes/open/stream.conf LICENSE NOTICE "$kit/" || exit 1
cp bench/GPU-TODO.md "$kit/README.md" || exit 1
cp bench/peers/gpu_*.py bench/peers/torch_model.py bench/peers/timing.py tests/golden/network.py "$kit/peers/" || exit 1
cp -r tests/golden/network tests/golden/training "$kit/tests/golden/" || exit 1 # of the tests
mkdir -p "$kit/share/linnet/en" "$kit/speech" && cp share/linnet/en/default.safetensors share/linnet/en/phones.lm "$kit/share/linnet/en/" || exit 1
speech=${DEMO_AUDIO:-/usr/share/pocketsphinx/test/data/librivox}
[ ! -f "$speech/transcription" ] || cp "$speech"/*.wav "$kit/speech/" || exit 1
cp recipes/common.sh "$kit/recipes/" && cp recipes/paper/table3.sh "$kit/recipes/paper/" || exit 1
[ ! -d build/bundle/python ] || cp -r build/bundle/python "$kit/" # of tools/bundle.sh --peers
changed=
[ -z "$(git status --porcelain --untracked-files=no 2> /dev/null)" ] || changed=" with changes"
echo "$(git rev-parse --short HEAD 2> /dev/null || echo unknown)$changed, sm ${ARCHS:-none}" > "$kit/about"
if [ -n "${CUBLASLT:-}" ]; then
    objdump -p "$kit/lib/linnet/liblinnet_cuda.so" | sed -n 's/.*NEEDED *libcublasLt\.so\.//p' > "$kit/cublaslt-version"
fi

# Registers and stack of each kernel.
if [ -f "$kit/lib/linnet/liblinnet_cuda.so" ] && command -v cuobjdump > /dev/null; then
    cuobjdump -res-usage "$kit/lib/linnet/liblinnet_cuda.so" > "$kit/kernels.txt" || exit 1
fi

# ---- libraries --------------------------------------------------------------------------------------------------------------------

needed() { ldd "$1" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*|libcublasLt|libcublas)\.so'; }
for file in "$kit"/bin/* "$kit"/tests/test_*; do
    for library in $(needed "$file"); do
        case $library in *"/$kit/lib/"*|"$kit"/*|*/../lib/*) ;; *) cp -L "$library" "$kit/lib/" || exit 1 ;; esac
    done
done
# The backend searches its own folder.
if [ -f "$kit/lib/linnet/liblinnet_cuda.so" ]; then
    for library in $(needed "$kit/lib/linnet/liblinnet_cuda.so"); do cp -L "$library" "$kit/lib/linnet/" 2> /dev/null; done
fi

newest() { objdump -T "$1" 2> /dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1; }
find "$kit" -type f \( -perm -100 -o -name '*.so*' \) | while read -r file; do
    version=$(newest "$file")
    [ -z "$version" ] || [ "$(printf '%s\n2.36\n' "$version" | sort -V | tail -n 1)" = 2.36 ] ||
        { echo "gpu-kit.sh: $file needs glibc $version; build the kit on Debian 12 or an older system" >&2; echo bad; }
done | grep -q bad && exit 1

# ---- caches -----------------------------------------------------------------------------------------------------------------------

rm -rf "$kit/caches"
if [ -n "${CACHES:-}" ]; then
    [ -d "$CACHES" ] || die "CACHES=$CACHES is no folder"
    mkdir -p "$kit/caches" || exit 1
    # The space left for caches, which do not compress; the rest compresses a little better in the archive than here.
    left=$((most - $(tar -C "$kit" -c . | xz -1 | wc -c) / 1048576 - 1))
    for name in dev_native train_native train_read train_games train_pseudo train_nonnative; do
        cache=$CACHES/$name.lfc
        [ -f "$cache" ] || continue
        [ $left -ge 2 ] || { echo "gpu-kit.sh: no room for $name" >&2; continue; }
        size=$(megabytes "$cache") share=$left
        # at most a sixth for the dev set
        [ "$name" != dev_native ] || share=$((left / 6))
        if [ "$size" -le "$share" ]; then
            cp -L "$cache" "$kit/caches/" || exit 1
        else
            # 14.4 MB per hour
            "$kit/bin/bench_gpu" cut --source "$cache" --file "$kit/caches/$name.lfc" --hours "$(awk -v mb="$share" 'BEGIN { print mb / 14.8 }')" || exit 1
            size=$(megabytes "$kit/caches/$name.lfc")
            echo "gpu-kit.sh: $name cut to $size MB" >&2
        fi
        left=$((left - size))
    done
    [ -n "$(ls "$kit/caches")" ] || die "$CACHES has no caches: dev_native.lfc, train_native.lfc, ..."
fi
echo "$kit: $(megabytes "$kit") MB"
