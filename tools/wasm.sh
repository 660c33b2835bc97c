#!/bin/sh
# wasm.sh DIR: fetches what make wasm needs besides emscripten, on Debian, once: the sources of the libraries, from Debian with its
# patches, in DIR/src, and in DIR/include their headers and those of libraries that are used only to compile.
set -eu
dir=$1
[ ! -f "$dir/complete" ] || exit 0
rm -rf "$dir"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/src" "$dir/include"
apt=$(cd "$dir/apt" && pwd)
. /etc/os-release
echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" > "$apt/sources"
get() {
    apt-get -q -o "Dir::Etc::SourceList=$apt/sources" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$apt/lists" \
        -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}
{
    get update
    (cd "$apt" && get --download-only source kissfft libsoxr cjson utf8proc zlib)
    for name in kissfft libsoxr cjson utf8proc zlib; do dpkg-source --no-check -x "$apt/$name"_*.dsc "$dir/src/$name"; done
} > "$apt/log" 2>&1 || { cat "$apt/log" >&2; echo "wasm.sh: the libraries' sources cannot be had; Debian's archive is needed" >&2; exit 1; }
cp "$dir"/src/kissfft/kiss_fft*.h "$dir"/src/kissfft/_kiss_fft_guts.h "$dir"/src/libsoxr/src/soxr.h "$dir"/src/utf8proc/utf8proc.h \
    "$dir"/src/zlib/zlib.h "$dir"/src/zlib/zconf.h "$dir/include"
mkdir "$dir/include/cjson"
cp "$dir/src/cjson/cJSON.h" "$dir/include/cjson"
for package in sndfile portaudio-2.0; do cp "$(pkg-config --variable=includedir "$package")/${package%-2.0}.h" "$dir/include"; done
# What its cmake would find: 32-bit arithmetic, and 64-bit where that is not enough, without vectors.
names='HAVE_STDBOOL_H HAVE_STDINT_H HAVE_LRINT WITH_CR32 WITH_CR64'
sed -n 's/^#cmakedefine01 \(.*\)/\1/p' "$dir/src/libsoxr/soxr-config.h.in" | while read -r name; do
    case " $names " in *" $name "*) value=1 ;; *) value=0 ;; esac
    echo "#define $name $value"
done > "$dir/include/soxr-config.h"
rm -rf "$apt"
touch "$dir/complete"
