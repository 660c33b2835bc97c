#!/bin/sh
# deps.sh [--dry-run] GROUP...: installs the packages of these groups that are missing: build, check, demo, fuzz, page (make
# check-page), arm64 (make check-arm64), wasm (make wasm), package (make package), standin (of recipes/wsj). Prints what it does.
# Knows the package names of Debian, Ubuntu, Fedora, Arch and Homebrew. Elsewhere it only checks that the libraries are there.
# --dry-run: prints the command and installs nothing.
dry=no
[ "${1:-}" != --dry-run ] || { dry=yes; shift; }

# ---- which system ----------------------------------------------------------------------------------------------------------------

# DEPS_SYSTEM=fedora: for tests
system=${DEPS_SYSTEM:-}
if [ -z "$system" ]; then
    if [ "$(uname -s)" = Darwin ]; then system=homebrew
    elif command -v dpkg-query > /dev/null 2>&1; then system=debian
    elif command -v dnf > /dev/null 2>&1; then system=fedora
    elif command -v pacman > /dev/null 2>&1; then system=arch
    elif command -v brew > /dev/null 2>&1; then system=homebrew
    else system=other
    fi
fi
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
# The compiler may have another name (clang-14) or source: it only has to run.
runs() {
    case $1 in
    gcc-c++) command -v g++ > /dev/null 2>&1 ;;
    gcc|g++|make|clang) command -v "$1" > /dev/null 2>&1 ;;
    pkg-config|pkgconf|pkgconf-pkg-config) command -v pkg-config > /dev/null 2>&1 ;;
    *) false ;;
    esac
}
build= check= demo= fuzz= page= arm64= wasm= package= standin=
case $system in
debian)
    build='gcc g++ make pkg-config libsndfile1-dev libkissfft-dev libsoxr-dev libcjson-dev libutf8proc-dev zlib1g-dev portaudio19-dev libwebsockets-dev libopus-dev libogg-dev'
    check='check libopenmpi-dev openmpi-bin pocketsphinx-testdata nginx ffmpeg'
    # For the virtual microphone of the tests. Not installed beside PipeWire, which it could replace: then those tests are
    # skipped.
    command -v pipewire > /dev/null 2>&1 || check="$check pulseaudio pulseaudio-utils libasound2-plugins"
    demo=pocketsphinx-testdata
    page='chromium-headless-shell python3'
    arm64='gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user'
    wasm='emscripten dpkg-dev'
    package='dpkg-dev cmake lintian python3-venv'
    standin='flite ncompress'
    fuzz=clang
    has() { case $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) in *'ok installed') ;; *) false ;; esac; }
    install="$as_root${as_root:+ env DEBIAN_FRONTEND=noninteractive} apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends" ;;
fedora)
    build='gcc gcc-c++ make pkgconf-pkg-config libsndfile-devel kiss-fft-devel soxr-devel cjson-devel utf8proc-devel zlib-devel portaudio-devel libwebsockets-devel opus-devel libogg-devel'
    check='check-devel ffmpeg-free'
    fuzz=clang
    page='chromium-headless python3'
    has() { rpm -q --whatprovides "$1" > /dev/null 2>&1; }
    install="$as_root dnf install -y" ;;
arch)
    build='gcc make pkgconf libsndfile kissfft libsoxr cjson libutf8proc zlib portaudio libwebsockets opus libogg'
    check='check openmpi ffmpeg'
    fuzz=clang
    page='chromium python'
    has() { pacman -Q "$1" > /dev/null 2>&1; }
    install="$as_root pacman -S --needed --noconfirm" ;;
homebrew)
    build='make pkgconf libsndfile libsoxr cjson utf8proc portaudio libwebsockets opus libogg'
    check='check ffmpeg'
    has() { brew list --versions "$1" > /dev/null 2>&1; }
    install='brew install' ;;
*)  has() { false; }
    install= ;;
esac
packages=
for group in "$@"; do
    case $group in
    build|check|demo|fuzz|page|arm64|wasm|package|standin) eval "packages=\"\$packages \$$group\"" ;;
    *) echo "deps.sh: unknown group $group" >&2; exit 2 ;;
    esac
done

# ---- what is missing -------------------------------------------------------------------------------------------------------------

# Everything that the build looks up with pkg-config, from any source.
libraries_missing() {
    missing=
    for p in sndfile soxr kissfft-float libcjson libutf8proc zlib portaudio-2.0; do pkg-config --exists "$p" 2> /dev/null || missing="$missing $p"; done
    case " $* " in *" check "*) pkg-config --exists check 2> /dev/null || missing="$missing check" ;; esac
    [ -n "$missing" ]
}
if [ -z "$install" ]; then
    libraries_missing "$@" || exit 0
    cat >&2 <<END
missing:$missing
This system's package manager is not known, so nothing is installed. Install a C compiler, make, pkg-config, libsndfile, libsoxr,
KissFFT (float, with kissfft-float.pc), cJSON, utf8proc, zlib, PortAudio 19, and Check for the tests. Then run make again.
END
    exit 1
fi
wanted=
for p in $packages; do has "$p" || runs "$p" || wanted="$wanted $p"; done

# ---- installation ----------------------------------------------------------------------------------------------------------------

if [ -n "$wanted" ]; then
    echo "installing:$wanted"
    echo "running:    ${install# }$wanted"
    [ $dry = no ] || exit 0
    if [ -n "$as_root" ] && [ $system != homebrew ] && ! command -v sudo > /dev/null 2>&1; then
        echo "This needs root, and sudo is not installed: ask an administrator to run it." >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    if [ $system = debian ]; then
        $as_root apt-get -q -o DPkg::Lock::Timeout=300 update || echo "apt-get update failed; using the existing package lists" >&2
    fi
    # The tests start nginx themselves: its service is not started, now (policy-rc.d) or with the system.
    policy=${DEPS_POLICY:-/usr/sbin/policy-rc.d} # for tests
    case " $wanted " in *" nginx "*) [ -e $policy ] || [ $system != debian ] || without_services=yes ;; esac
    [ "${without_services:-}" != yes ] || printf '#!/bin/sh\nexit 101\n' | $as_root install -m 755 /dev/stdin $policy
    $install $wanted || failed=yes
    if [ "${without_services:-}" = yes ]; then
        $as_root rm -f $policy
        ! command -v systemctl > /dev/null 2>&1 || $as_root systemctl disable --quiet nginx 2> /dev/null
    fi
    [ "${failed:-}" != yes ] || { echo "could not install:$wanted" >&2; exit 1; }
fi
[ $dry = no ] || exit 0
[ $system != debian ] || exit 0 # its packages provide all the pkg-config files
libraries_missing "$@" || exit 0
echo "still missing for pkg-config:$missing" >&2
case $missing in
*kissfft*) echo "KissFFT from source: cmake -DKISSFFT_DATATYPE=float -DKISSFFT_TEST=OFF -DKISSFFT_TOOLS=OFF, then make install." >&2 ;;
esac
exit 1
