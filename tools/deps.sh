#!/bin/sh
# deps.sh GROUP...: installs the Debian packages of these groups that are missing: build, check, demo, fuzz.
# Nothing is asked of apt when nothing is missing.
packages=
for group in "$@"; do
    case $group in
    build) packages="$packages gcc g++ make pkg-config libsndfile1-dev libkissfft-dev libsoxr-dev libcjson-dev zlib1g-dev portaudio19-dev" ;;
    check)
        packages="$packages check"
        # For the virtual microphone of the tests. Not beside PipeWire, which it could drive out: then those tests are skipped.
        command -v pipewire > /dev/null 2>&1 || packages="$packages pulseaudio pulseaudio-utils libasound2-plugins" ;;
    demo) packages="$packages pocketsphinx-testdata" ;;
    fuzz) packages="$packages clang" ;;
    *) echo "deps.sh: unknown group $group" >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query > /dev/null 2>&1; then
    # Not Debian: content if the compiler and the libraries are there, whoever brought them.
    ok=1
    for p in sndfile soxr kissfft-float libcjson zlib portaudio-2.0; do pkg-config --exists "$p" 2>/dev/null || { ok=0; echo "missing: $p" >&2; }; done
    case " $* " in *" check "*) pkg-config --exists check 2>/dev/null || { ok=0; echo "missing: check" >&2; } ;; esac
    [ $ok = 1 ] && exit 0
    cat >&2 <<END
This is not a Debian system, so nothing is installed for you. Install with its own package manager: a C compiler, make, pkg-config,
libsndfile, libsoxr, KissFFT (float, with kissfft-float.pc), cJSON, zlib, PortAudio 19, and Check for the tests. Then run make again.
END
    exit 1
fi

missing=
for p in $packages; do
    case $(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) in
    *'ok installed') ;;
    *)
        # A compiler may stand there under another name (gcc from elsewhere, clang-14): what counts is that it runs.
        case $p in
        gcc|g++|make|pkg-config|clang) command -v "$p" > /dev/null 2>&1 && continue ;;
        esac
        missing="$missing $p" ;;
    esac
done
[ -z "$missing" ] && exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo > /dev/null 2>&1; then
        echo "missing:$missing" >&2
        echo "Neither root nor sudo: ask an administrator to run: apt-get install$missing" >&2
        exit 1
    fi
    as_root="sudo"
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get -q -o DPkg::Lock::Timeout=300 update || echo "apt-get update failed; trying with the package lists that are there" >&2
if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $missing; then
    echo "apt-get could not install:$missing" >&2
    exit 1
fi
