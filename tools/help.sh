#!/bin/sh
# help.sh CC ARCH PACKAGES CONFIG PREFIX NVCC ARCHS: prints the targets of the Makefile.
cat <<END
make              build the program build/release/linnet, the library in build/release/lib, and the backend for the GPU that is here
make cuda         the same, with the backend for all GPUs from compute capability 8.0 on (nvcc; minutes)
make library      the library for other programs alone: liblinnet.so, liblinnet.a, linnet(3)
make demo         transcribe recorded speech with the model that comes with linnet, next to what was said
make check        build and run the tests of all that is shipped; the last line is the summary
make check-cuda   those of the GPU backend, on an emulated GPU; make check-variants: of networks that no shipped model uses
make check-all    all of these at once
make check-quick  most of the tests, in release only
make check-places the tests in odd places: a path with blanks, another locale, an unprivileged user, ...
make check-gpu    the GPU backend's tests on a real GPU, and under compute-sanitizer where it is installed
make check-python the Python package and its tests, in an environment of its own (needs Python and its package index)
make check-page   the page of linnet serve in a headless Chromium, with a file as its microphone; its pictures are in build/page
make wasm         the page with the recogniser inside, in build/wasm, for browsers without a server; WASM_MODEL=FILE; make check-wasm (Debian)
make arm64        the program for arm64, by a cross-compiler; make check-arm64: the tests too, in an emulator (Debian)
make package      a .deb, a tarball for any Linux with glibc 2.31 or newer, and a Python wheel, in build/package (Debian 12)
make deps         install the packages that are missing (Debian, Ubuntu, Fedora, Arch, Homebrew)
make bench        build and run the benchmarks, beside PyTorch where it is installed
make bench-gpu    the same on a GPU; make gpu-kit packs all of it for a machine with a GPU and nothing else
make asan         the tests under AddressSanitizer; also: make ubsan, make tsan
make fuzz         fuzz every parser with clang's libFuzzer, FUZZ_SECONDS=60 each
make install      install into PREFIX=$5 (DESTDIR= for packagers); make uninstall
make clean        remove build/

Settings: CC=$1 CONFIG=$4 PREFIX=$5 EXTRA_CFLAGS= LDFLAGS= NVCC=$6 CUDA_ARCHS='$7'
          PAPER=0 leaves out paper/, which only the comparison of the paper needs (build/$4-core)

Found here:
END
dir=$(dirname "$0")
"$dir/found.sh" "$1" "$2" "$3" "$4" "$6" "$7" 2>&1 | grep -v '^building'
exit 0
