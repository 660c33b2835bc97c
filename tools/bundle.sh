#!/bin/sh
# bundle.sh - collects into build/bundle what a bare GPU machine lacks: the headers and shared libraries of libsndfile, soxr, KissFFT,
# cJSON, utf8proc, zlib and PortAudio (header), and Check, about 5 MB. The Makefile finds build/bundle/{include,lib}; copy the folder
# together with the source tree. The GPU machine needs a glibc at least as new as these libraries require.
#
#   tools/bundle.sh [--peers]
#
# --peers: also what bench/gpu.sh compares attention with, 5 MB from the Python package index (needs pip and a network):
# flash-linear-attention's kernels and what they import in build/bundle/python, fast-transformers' CUDA source in build/bundle/peers.
set -u
cd "$(dirname "$0")/.." || exit 1
CC=${CC:-gcc}
PYTHON=${PYTHON:-python3}
peers=no
case ${1:-} in
--peers) peers=yes ;;
'') ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
bundle=build/bundle
die() { echo "bundle.sh: $*" >&2; exit 1; }

# header NAME: prints the path where the compiler finds it
header() {
    printf '#include <%s>\n' "$1" | $CC ${PKG:-} -E -x c - 2>/dev/null | sed -n 's,^# [0-9]* "\(/[^"]*/'"$1"'\)".*,\1,p' | head -n 1
}
# library NAME...: prints the path of the first of these files that the compiler finds
library() {
    for name in "$@"; do
        path=$($CC -print-file-name="$name")
        [ "$path" = "$name" ] || { echo "$path"; return; }
    done
}

rm -rf "$bundle/include" "$bundle/lib"
mkdir -p "$bundle/include/cjson" "$bundle/lib" || exit 1

# bring HEADER: copies the file that the compiler finds, under its own name
bring() {
    path=$(header "$1")
    [ -n "$path" ] || die "$1 is not installed; make deps installs it"
    cp "$path" "$bundle/include/" || exit 1
}
PKG=$(pkg-config --cflags kissfft-float sndfile soxr libcjson libutf8proc portaudio-2.0 2> /dev/null)
for h in sndfile.h soxr.h portaudio.h kiss_fft.h kiss_fftr.h utf8proc.h zlib.h zconf.h cjson/cJSON.h; do bring "$h"; done
cp "$bundle/include/cJSON.h" "$bundle/include/cjson/" || exit 1
[ -z "$(header kiss_fft_log.h)" ] || bring kiss_fft_log.h

# Each library twice, under the linker's name and under the name that programs load, and the libraries it needs. No links: some
# ways of copying do not keep them.
keep() {
    soname=$(objdump -p "$1" | sed -n 's/.*SONAME *//p')
    [ -f "$bundle/lib/${soname:-${1##*/}}" ] || cp -L "$1" "$bundle/lib/${soname:-${1##*/}}" || exit 1
}
for l in sndfile soxr kissfft-float cjson utf8proc z; do
    path=$(library "lib$l.so")
    [ -n "$path" ] || die "lib$l is not installed; make deps installs it"
    keep "$path"
    cp -L "$path" "$bundle/lib/lib$l.so" || exit 1
    for needed in $(ldd "$path" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | grep -vE '/(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[^/]*)\.so'); do
        keep "$needed"
    done
done

check_h=$(header check.h)
check=$(library libcheck_pic.a libcheck.a)
[ -n "$check_h" ] && [ -n "$check" ] || die "Check is not installed (Debian: apt install check)"
cp "$check_h" "$bundle/include/" || exit 1
[ ! -f "$(dirname "$check_h")/check_stdint.h" ] || cp "$(dirname "$check_h")/check_stdint.h" "$bundle/include/"
# Check and its dependencies in one archive, so that -lcheck is enough
subunit=$(library libsubunit.a)
{
    echo "create $bundle/lib/libcheck.a"
    echo "addlib $check"
    [ -z "$subunit" ] || echo "addlib $subunit"
    echo save
    echo end
} | ar -M || die "cannot write $bundle/lib/libcheck.a"

if [ $peers = yes ]; then
    rm -rf "$bundle/python" "$bundle/peers"
    mkdir -p "$bundle/peers" || exit 1
    "$PYTHON" -m pip install -q --no-deps --no-compile --target "$bundle/python" --python-version 3.12 --only-binary=:all: \
        fla-core einops packaging || die "no flash-linear-attention: pip failed"
    # the package does not build with current compilers; its one CUDA file does
    url=$("$PYTHON" - <<'END'
import json, urllib.request
files = json.load(urllib.request.urlopen("https://pypi.org/pypi/pytorch-fast-transformers/json"))["urls"]
print(next(f["url"] for f in files if f["packagetype"] == "sdist"))
END
    ) && "$PYTHON" - "$url" "$bundle/peers" <<'END' || echo "bundle.sh: cannot download the source of fast-transformers" >&2
import io, os, sys, tarfile, urllib.request
archive = tarfile.open(fileobj=io.BytesIO(urllib.request.urlopen(sys.argv[1]).read()))
name = next(n for n in archive.getnames() if n.endswith("causal_product_cuda.cu"))
open(os.path.join(sys.argv[2], "causal_product_cuda.cu"), "wb").write(archive.extractfile(name).read())
END
fi
du -sh "$bundle"
