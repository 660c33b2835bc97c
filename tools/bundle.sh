#!/bin/sh
# bundle.sh - collects into build/bundle what a bare GPU machine lacks: cJSON, zlib and Check, headers and libraries, about 1 MB. The
# Makefile finds build/bundle/{include,lib} by itself; copy the folder along with the source tree.
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

# header NAME: where the compiler finds it
header() {
    printf '#include <%s>\n' "$1" | $CC -E -x c - 2>/dev/null | sed -n 's,^# [0-9]* "\(/[^"]*/'"$1"'\)".*,\1,p' | head -n 1
}
# library NAME...: the first of these files that the compiler finds
library() {
    for name in "$@"; do
        path=$($CC -print-file-name="$name")
        [ "$path" = "$name" ] || { echo "$path"; return; }
    done
}

rm -rf "$bundle/include" "$bundle/lib"
mkdir -p "$bundle/include/cjson" "$bundle/lib" || exit 1

cjson_h=$(header cjson/cJSON.h)
[ -n "$cjson_h" ] || cjson_h=$(header cJSON.h)
cjson=$(library libcjson.a libcjson.so)
[ -n "$cjson_h" ] && [ -n "$cjson" ] || die "cJSON is not installed (Debian: apt install libcjson-dev)"
cp "$cjson_h" "$bundle/include/cjson/cJSON.h" && cp "$cjson_h" "$bundle/include/cJSON.h" || exit 1
case $cjson in
*.a) cp "$cjson" "$bundle/lib/libcjson.a" || exit 1 ;;
*)  # a copy for the linker and one under the name that programs ask for; no links, which do not survive every way of copying
    soname=$(objdump -p "$cjson" | sed -n 's/.*SONAME *//p')
    cp -L "$cjson" "$bundle/lib/libcjson.so" && cp -L "$cjson" "$bundle/lib/$soname" || exit 1 ;;
esac

zlib_h=$(header zlib.h)
zconf_h=$(header zconf.h)
zlib=$(library libz.a)
[ -n "$zlib_h" ] && [ -n "$zconf_h" ] && [ -n "$zlib" ] || die "zlib is not installed (Debian: apt install zlib1g-dev)"
cp "$zlib_h" "$zconf_h" "$bundle/include/" && cp "$zlib" "$bundle/lib/libz.a" || exit 1

check_h=$(header check.h)
check=$(library libcheck_pic.a libcheck.a)
[ -n "$check_h" ] && [ -n "$check" ] || die "Check is not installed (Debian: apt install check)"
cp "$check_h" "$bundle/include/" || exit 1
[ ! -f "$(dirname "$check_h")/check_stdint.h" ] || cp "$(dirname "$check_h")/check_stdint.h" "$bundle/include/"
# Check with what it needs, in one archive, so that -lcheck is enough
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
    # the package itself does not build with present-day compilers; its one CUDA file does
    url=$("$PYTHON" - <<'END'
import json, urllib.request
files = json.load(urllib.request.urlopen("https://pypi.org/pypi/pytorch-fast-transformers/json"))["urls"]
print(next(f["url"] for f in files if f["packagetype"] == "sdist"))
END
    ) && "$PYTHON" - "$url" "$bundle/peers" <<'END' || echo "bundle.sh: no fast-transformers: its source could not be had" >&2
import io, os, sys, tarfile, urllib.request
archive = tarfile.open(fileobj=io.BytesIO(urllib.request.urlopen(sys.argv[1]).read()))
name = next(n for n in archive.getnames() if n.endswith("causal_product_cuda.cu"))
open(os.path.join(sys.argv[2], "causal_product_cuda.cu"), "wb").write(archive.extractfile(name).read())
END
fi
du -sh "$bundle"
