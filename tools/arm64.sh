#!/bin/sh
# arm64.sh - prepares make check-arm64 on Debian.
#
#   arm64.sh root DIR              unpacks the libraries for arm64 into DIR, without touching the system's packages; once
#   arm64.sh wrap DIR PROGRAM...   writes scripts DIR/run/PROGRAM that run DIR/PROGRAM in qemu-aarch64 with DIR-root
set -eu
command=$1
dir=$2
shift 2

packages='libc6 libsndfile1-dev libkissfft-dev libsoxr-dev libcjson-dev libutf8proc-dev zlib1g-dev portaudio19-dev libopus-dev libogg-dev check'
case $command in
root)
    [ ! -f "$dir/complete" ] || exit 0
    rm -rf "$dir"
    mkdir -p "$dir/apt/state/lists/partial" "$dir/apt/cache/archives/partial"
    apt=$(cd "$dir/apt" && pwd)
    : > "$apt/state/status" # nothing is installed there: apt finds all that the packages need
    get() {
        apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$apt/state" \
            -o "Dir::State::status=$apt/state/status" -o "Dir::Cache=$apt/cache" -o Debug::NoLocking=1 "$@"
    }
    {
        get update
        # shellcheck disable=SC2086
        get -y --no-install-recommends --download-only install $packages
    } > "$apt/log" 2>&1 || { cat "$apt/log" >&2; echo "arm64.sh: the arm64 packages cannot be had; Debian's sources are needed" >&2; exit 1; }
    rm -f "$apt"/cache/archives/libc6-dev_* # the cross-compiler has its own
    for deb in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$dir"; done
    here=$(cd "$dir" && pwd)
    find "$here" -type l | while read -r link; do
        case $(readlink "$link") in /*) ln -sf "$here$(readlink "$link")" "$link" ;; esac
    done
    rm -rf "$apt"
    touch "$dir/complete" ;;
wrap)
    for program in "$@"; do
        mkdir -p "$(dirname "$dir/run/$program")"
        printf '#!/bin/sh\nexec %s -L "%s-root" "%s/%s" "$@"\n' "$(command -v qemu-aarch64)" "$dir" "$dir" "$program" > "$dir/run/$program"
        chmod +x "$dir/run/$program"
    done ;;
*)
    echo "arm64.sh: root or wrap, not $command" >&2
    exit 2 ;;
esac
