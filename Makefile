# linnet: build, test, install. `make help` lists the targets.
#
# CONFIG chooses the build folder and flags: release (default), asan, ubsan, tsan, fuzz, arm64 (make check-arm64), emscripten (make wasm). The folder of a source decides how it is built:
#   base/ kernels/ frontend/ model/ lexicon/ decoder/ linnet/ -> the library of the project, build/CONFIG/liblinnet.a
#   the same                                         -> the library for other programs, build/CONFIG/lib/ (linnet/library.mk)
#   app/*.c                                          -> the program, build/CONFIG/linnet (all but main.c also for tests: libapp.a)
#   kernels/cuda/*.cu                                -> build/release/liblinnet_cuda.so, if nvcc is found (NVCC= : not built)
#   the same and tests/emulation/*.cpp               -> the CUDA backend on the host, for tests: build/CONFIG/emulated/
#   base/mpi/mpi.c                                   -> build/CONFIG/liblinnet_mpi.so, if MPI is found (MPICC= : not built)
#   app/web/*.c                                      -> build/CONFIG/liblinnet_web.so, if libwebsockets is found (WEB= : not built)
#   tests/<folder>/test_*.c                          -> one Check program each; those of tests/cuda with the emulated backend
#   other sources in tests/ and its folders          -> what test programs share: build/CONFIG/libsupport.a
#   tests/<folder>/test_*.sh                         -> shell tests that run the program
#   tests/fuzz/fuzz_*.c                              -> fuzz targets: with clang's libFuzzer (make fuzz), else with tests/fuzz/driver.c
#   bench/*.c                                        -> one benchmark each
# A source whose name ends in _avx512bf16.c, _avx512.c, _avx2.c (x86-64) or _neonbf16.c (arm64) is compiled for that instruction set, on
# that machine only, and called through run-time dispatch.

MAKEFLAGS += --no-builtin-rules
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := $(patsubst cc,c++,$(subst gcc,g++,$(subst clang,clang++,$(CC))))
endif
CONFIG ?= release
DEFAULT_PREFIX := /usr/local
PREFIX ?= $(DEFAULT_PREFIX)
DESTDIR ?=
FUZZ_SECONDS ?= 60
B := build/$(CONFIG)
O := $B/obj
ARCH := $(shell uname -m)
NPROC := $(shell nproc 2>/dev/null || echo 2)
# One test more than there are processors: some mostly wait.
TEST_JOBS ?= $(shell expr $(NPROC) + 1)

ifeq ($(filter $(CONFIG),release asan ubsan tsan fuzz arm64 emscripten),)
$(error CONFIG=$(CONFIG) is none of release, asan, ubsan, tsan, fuzz, arm64, emscripten)
endif

# ---- flags -----------------------------------------------------------------------------------------------------------------------

# Warnings are errors only in checks: a new warning of another compiler must not stop a user's build.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion
WERROR ?= $(if $(filter-out release,$(CONFIG)),-Werror)
CPPFLAGS += -I. -D_GNU_SOURCE
CFLAGS_release := -O3 -g
CFLAGS_arm64 := -O3 -g
# Sizes in files have 64 bits: those of the folder that make wasm builds fit 32.
CFLAGS_emscripten := -O3 -msimd128 -fno-pic -Wno-shorten-64-to-32
CFLAGS_asan := -O1 -g1 -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
CFLAGS_ubsan := -O1 -g -fsanitize=undefined -fno-sanitize-recover=undefined
CFLAGS_tsan := -O1 -g -fsanitize=thread
CFLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
CFLAGS := -std=c11 $(WARN) -fPIC -fvisibility=hidden -fno-math-errno $(CFLAGS_$(CONFIG)) $(EXTRA_CFLAGS)
# For the CUDA sources on the host. Vectors of four cause false warnings about uninitialised values, unrolling pragmas cause them in
# clang.
CXXFLAGS := -std=c++17 -Wall -Wextra -Wno-unknown-pragmas -Wno-uninitialized -Wno-maybe-uninitialized -Wno-pass-failed \
	-fno-math-errno -fno-exceptions -fno-rtti -fno-strict-aliasing -fPIC -fvisibility=hidden $(CFLAGS_$(CONFIG)) $(EXTRA_CFLAGS)

# With fused multiply-adds: these instruction sets have them, and -std=c11 alone does not let the compiler form them.
ISA_avx512 := -march=x86-64-v4 -ffp-contract=fast
ISA_avx512bf16 := $(ISA_avx512) -mavx512bf16
ISA_neonbf16 := -march=armv8.2-a+bf16
ISA_avx2 := -mavx2 -mfma -mf16c -ffp-contract=fast

PKGS := sndfile soxr kissfft-float libcjson zlib
# Loaded when a microphone is opened, and not linked: loading its libraries takes as long as the start of the program.
HEADER_PKGS := portaudio-2.0
PKG_CFLAGS := $(foreach p,$(PKGS) $(HEADER_PKGS),$(shell pkg-config --cflags $p 2>/dev/null | sed 's/-I/-isystem /g'))
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
CHECK_LIBS := $(or $(shell pkg-config --libs check 2>/dev/null),-lcheck)
# Without pkg-config files, as on a bare GPU machine: the compiler's default folders, and those that tools/bundle.sh filled.
ifeq ($(PKG_LIBS),)
PKG_LIBS := -lsndfile -lsoxr -lkissfft-float -lcjson -lz
PKG_CFLAGS += -Dkiss_fft_scalar=float -DKISS_FFT_SHARED
endif
ifneq ($(wildcard build/bundle/include),)
CPPFLAGS += -isystem build/bundle/include
LDFLAGS += -Lbuild/bundle/lib -Wl,-rpath,$(CURDIR)/build/bundle/lib -Wl,-rpath-link,build/bundle/lib
endif
LDLIBS := $(PKG_LIBS) -ldl -lpthread -lm

# ---- CUDA ------------------------------------------------------------------------------------------------------------------------

ifeq ($(origin NVCC),undefined)
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
endif
# Those of data centres and of desktops from Ampere on, the last two where nvcc knows them; PTX of 9.0 for later ones.
CUDA_KNOWN := $(if $(NVCC),$(shell $(NVCC) --list-gpu-code 2>/dev/null))
CUDA_ARCHS ?= 80 86 89 90 $(patsubst sm_%,%,$(filter sm_100 sm_120,$(CUDA_KNOWN)))
CUDA_PTX := $(or $(filter 90,$(CUDA_ARCHS)),$(lastword $(CUDA_ARCHS)))
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(if $(NVCC),$(realpath $(shell command -v $(NVCC) 2>/dev/null))))
CUDA_LIB := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/targets/$(ARCH)-linux/lib $(CUDA_HOME)/lib))
CUDA_VERSION := $(if $(NVCC),$(shell $(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' | awk '{print 1000 * $$1 + 10 * $$2}'))
NVCCFLAGS := -std=c++17 -O3 $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) \
	-gencode arch=compute_$(CUDA_PTX),code=compute_$(CUDA_PTX) -t0 \
	-Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-Wall,-Wextra
# One folder for each choice of architectures: make check compiles for one of them, once, and does not touch the others.
empty :=
comma := ,
CUDA_DIR := build/cuda/sm$(subst $(empty) $(empty),-,$(strip $(CUDA_ARCHS)))
CUDA_SO := $(CUDA_DIR)/liblinnet_cuda.so

# ---- MPI -------------------------------------------------------------------------------------------------------------------------

# For training on several processes: a small library of its own, because MPI libraries have different binary interfaces.
ifeq ($(origin MPICC),undefined)
MPICC := $(shell command -v mpicc 2>/dev/null)
endif
MPI_SO := $(if $(MPICC),$B/liblinnet_mpi.so)

# ---- libwebsockets ----------------------------------------------------------------------------------------------------------------

# For linnet serve: a library of its own, so that no other command loads a network library (WEB= : not built).
ifeq ($(origin WEB),undefined)
WEB := $(shell pkg-config --exists libwebsockets libcrypto 2>/dev/null && echo libwebsockets libcrypto)
endif
WEB_SO := $(if $(WEB),$B/liblinnet_web.so)
# Opus in the streams of linnet serve (OPUS= : not built). libsndfile brings the libraries in any case.
ifeq ($(origin OPUS),undefined)
OPUS := $(shell pkg-config --exists opus ogg 2>/dev/null && echo opus ogg)
endif
APP_LIBS := $(if $(OPUS),$(shell pkg-config --libs $(OPUS)))

# ---- sources ---------------------------------------------------------------------------------------------------------------------

LIB_SRC := $(wildcard base/*.c kernels/*.c kernels/ref/*.c kernels/cpu/*.c frontend/*.c model/*.c lexicon/*.c decoder/*.c linnet/*.c)
ifneq ($(ARCH),x86_64)
LIB_SRC := $(filter-out %_avx2.c %_avx512.c %_avx512bf16.c,$(LIB_SRC))
endif
ifneq ($(filter-out aarch64 arm64,$(ARCH)),)
LIB_SRC := $(filter-out %_neonbf16.c,$(LIB_SRC))
endif
APP_SRC := $(wildcard app/*.c)
CUDA_SRC := $(wildcard kernels/cuda/*.cu)
CUDA_OBJ := $(CUDA_SRC:%.cu=$(CUDA_DIR)/%.o)
# Sources that the backend's library contains too: it must not depend on the symbols of the program.
CUDA_C_SRC := base/clock.c base/memory.c base/status.c
EMULATED_OBJ := $(CUDA_SRC:%.cu=$B/emulated/%.o) $(patsubst %.cpp,$B/emulated/%.o,$(wildcard tests/emulation/*.cpp))
EMULATED := $B/emulated/liblinnet_cuda.so $B/emulated/libcuda.so.1
TEST_SRC := $(wildcard tests/*/test_*.c)
TEST_SH := $(wildcard tests/*/test_*.sh)
ifeq ($(CONFIG),tsan)
TEST_SRC := $(filter-out tests/cuda/%,$(TEST_SRC)) # ThreadSanitizer does not support the emulation's fibres
TEST_SH := $(filter-out tests/cuda/%,$(TEST_SH))
endif
# Tests that also run on a real GPU: all except those of the emulation.
GPU_TEST_SRC := $(shell grep -L 'tests/emulation/' /dev/null $(wildcard tests/cuda/test_*.c) | grep -v '^/dev/null')
GPU_TESTS := $(GPU_TEST_SRC:%.c=build/gpu/%)
TEST_TOOLS := $B/tests/app/sound $B/tests/app/rows $B/tests/app/talk $B/tests/app/crowd $B/tests/app/gpu_cases $B/tests/recipes/sphere $B/tests/recipes/pcm
SUPPORT_SRC := $(filter-out tests/app/% tests/recipes/% tests/emulation/% tests/fuzz/%,$(filter-out $(wildcard tests/*/test_*.c),$(wildcard tests/*.c tests/*/*.c)))
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SRC := $(wildcard bench/bench_*.c)
LIB_OBJ := $(LIB_SRC:%.c=$O/%.o)
APP_OBJ := $(APP_SRC:%.c=$O/%.o)
TESTS := $(TEST_SRC:%.c=$B/%)
FUZZERS := $(FUZZ_SRC:%.c=$B/%)
BENCHES := $(BENCH_SRC:%.c=$B/%)

.DEFAULT_GOAL := all
include linnet/library.mk

# ---- targets for users -----------------------------------------------------------------------------------------------------------

all: found
	+@$(MAKE) --no-print-directory $(JOBS) $B/linnet library $(MPI_SO) $(WEB_SO) $(if $(NVCC),$B/liblinnet_cuda.so) $(PACKED)
	@echo "built $B/linnet, $B/lib/liblinnet.so and .a$(if $(MPI_SO),$(comma) $(MPI_SO))$(if $(WEB_SO),$(comma) $(WEB_SO))$(if $(NVCC), and $B/liblinnet_cuda.so); 'make help' says what else can be made"

# The installed lexicon, packed; the program works without it. It cannot be made where the program cannot run.
PACKED := share/linnet/english.dict.gz.tree
PACKED_FROM := $(addprefix share/linnet/,english.dict.gz english.lm default.safetensors)
$(PACKED): $(PACKED_FROM) lexicon/tree_internal.h lexicon/ngram_pairs.h | $B/linnet
	$(SAY) "  PACK  $@"
	-@$B/linnet lexicon -q -m share/linnet/default.safetensors --lm share/linnet/english.lm share/linnet/english.dict.gz 2> /dev/null

# As many jobs as processors, unless make has a -j. Evaluated in recipes: MAKEFLAGS contains -j only there.
JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(NPROC))

help:
	@tools/help.sh '$(CC)' '$(ARCH)' '$(PKGS) $(HEADER_PKGS)' '$(CONFIG)' '$(PREFIX)' '$(NVCC)' '$(CUDA_ARCHS)'

found:
	@tools/found.sh '$(CC)' '$(ARCH)' '$(PKGS) $(HEADER_PKGS)' '$(CONFIG)' '$(NVCC)' '$(CUDA_ARCHS)'

deps:
	@tools/deps.sh build check demo

tests: $(TESTS) $(FUZZERS) $(TEST_TOOLS)

# Two configurations, one summary: everything in release, then the same programs under AddressSanitizer (not with CHECK_ASAN=no).
# If nvcc is installed, the CUDA backend is compiled for one architecture. A real GPU is not used: see check-gpu.
CHECK_ASAN ?= yes
check asan ubsan tsan: export LINNET_CUDA_DRIVER ?= none
check:
	@tools/deps.sh build check
	+@$(MAKE) --no-print-directory $(JOBS) WERROR=-Werror test-programs
	+@[ -z '$(NVCC)' ] || $(MAKE) --no-print-directory $(JOBS) CUDA_ARCHS=90 cuda-compiles
	+@[ '$(CHECK_ASAN)' != yes ] || $(MAKE) --no-print-directory $(JOBS) CONFIG=asan test-programs
	@tests/run.sh '$(TEST_JOBS)' $(RUN) $(if $(filter yes,$(CHECK_ASAN)),$(subst $B,build/asan,$(RUN)))

RUN = $(TESTS) $(FUZZERS) $(TEST_SH:%=$B/%)
test-programs: $(TESTS) $(FUZZERS) $(TEST_TOOLS) $B/linnet $(MPI_SO) $(WEB_SO) $(if $(filter release,$(CONFIG)),$(LIBRARY)) $(if $(filter tsan,$(CONFIG)),,$(EMULATED))

# Release only, without fuzz targets and the slowest tests: under a minute on two cores. The emulated CUDA backend is left out because
# it takes longer to compile than all of these tests take to run.
SLOW := cuda/% kernels/test_gpu kernels/test_ops_parity frontend/test_save frontend/test_microphone% app/test_cuda.sh app/test_check_gpu.sh \
	app/test_docs.sh app/test_gpu_kit.sh app/test_install.sh linnet/test_install% app/test_listen.sh app/test_listen_pty app/test_transcribe.sh
QUICK = $(filter-out $(SLOW:%=$B/tests/%),$(TESTS) $(TEST_SH:%=$B/%))
check-quick: export LINNET_CUDA_DRIVER ?= none
check-quick:
	@tools/deps.sh build check
	+@$(MAKE) --no-print-directory $(JOBS) WERROR=-Werror quick-programs
	@tests/run.sh '$(TEST_JOBS)' $(QUICK)

quick-programs: $(filter-out %.sh,$(QUICK)) $(TEST_TOOLS) $B/linnet $(MPI_SO) $(WEB_SO)

# The same program and its tests in conditions where programs often fail: unusual paths, another locale, a read-only home.
check-places:
	@tools/deps.sh build check
	@tests/places.sh '$(NPROC)'

# The backend's tests on a real GPU. Needs the CUDA toolkit, a C compiler, Check and the libraries of the program.
check-gpu:
	@[ -n '$(NVCC)' ] || { echo 'check-gpu needs nvcc, on the PATH, in /usr/local/cuda/bin or as NVCC=' >&2; exit 1; }
	+@$(MAKE) --no-print-directory $(JOBS) gpu-programs
	@tools/check-gpu.sh $(GPU_TESTS)

# The server's page in a real browser. Installs nothing: tools/deps.sh build demo page does.
check-page:
	+@$(MAKE) --no-print-directory $(JOBS) $B/linnet $(WEB_SO)
	@command -v python3 > /dev/null || { echo 'check-page needs python3: tools/deps.sh build demo page' >&2; exit 1; }
	@PYTHONDONTWRITEBYTECODE=1 python3 tests/page/check_page.py $B/linnet build/page

gpu-programs: $(GPU_TESTS) $B/liblinnet_cuda.so

# The library links, and exports only its own names.
cuda-compiles: $(CUDA_SO)
	@names=$$(nm -D --defined-only $< | awk '{ print $$3 }' | grep -v '^lin_cuda_'); \
		[ -z "$$names" ] || { echo "$< exports $$names"; exit 1; }

# Builds and tests a configuration in its own folder.
asan ubsan tsan:
	@tools/deps.sh build check
	+@$(MAKE) --no-print-directory $(JOBS) CONFIG=$@ test-programs
	@tests/run.sh '$(TEST_JOBS)' $(subst $B,build/$@,$(RUN))

# Built for arm64 by a cross-compiler, and run by qemu's emulation of its instructions: all but the tests of the CUDA backend, of sound
# devices, and of the build itself; `make arm64` builds the program only. Debian only. The libraries are unpacked into build/arm64-root.
ARM64_LIB := $(CURDIR)/build/arm64-root/usr/lib/aarch64-linux-gnu
NOT_ARM64 := cuda/% kernels/test_gpu frontend/test_microphone_live app/test_devices.sh app/test_cuda.sh app/test_check_gpu.sh app/test_gpu_kit.sh app/test_deps.sh app/test_docs.sh \
	app/test_install.sh app/test_layers.sh app/test_mpi.sh linnet/test_install% recipes/%
ARM64_RUN = $(filter-out $(NOT_ARM64:%=$B/tests/%),$(RUN))
check-arm64 arm64:
	@tools/deps.sh build check arm64
	@tools/arm64.sh root build/arm64-root
	+@PKG_CONFIG_LIBDIR='$(ARM64_LIB)/pkgconfig' PKG_CONFIG_SYSROOT_DIR='$(CURDIR)/build/arm64-root' \
		$(MAKE) --no-print-directory $(JOBS) CONFIG=arm64 ARCH=aarch64 CC=aarch64-linux-gnu-gcc NVCC= MPICC= WEB= \
		LDFLAGS='-L$(ARM64_LIB) -Wl,-rpath-link,$(ARM64_LIB)' $(if $(filter check-%,$@),arm64-tests,build/arm64/linnet)

arm64-tests: $(filter-out %.sh,$(ARM64_RUN)) $(TEST_TOOLS) $B/linnet
	@tools/arm64.sh wrap $(CURDIR)/build/arm64 linnet $(TEST_TOOLS:$B/%=%)
	@tests/run.sh '$(TEST_JOBS)' $(ARM64_RUN)

# clang's libFuzzer, FUZZ_SECONDS for each target; findings are stored in build/fuzz/findings.
fuzz:
	@tools/deps.sh build fuzz
	+@$(MAKE) --no-print-directory $(JOBS) CONFIG=fuzz CC=clang fuzz-programs
	@tests/fuzz/run.sh '$(FUZZ_SECONDS)' $(FUZZ_SRC:%.c=build/fuzz/%)

fuzz-programs: $(FUZZERS)

demo:
	@tools/deps.sh build demo
	+@$(MAKE) --no-print-directory $(JOBS) $B/linnet
	@demo/run.sh $B/linnet

bench:
	@tools/deps.sh build
	+@$(MAKE) --no-print-directory $(JOBS) bench-programs
	@tools/bench.sh $(BENCHES)

bench-programs: $(BENCHES) $B/linnet

clean:
	rm -rf build

# ---- installation ----------------------------------------------------------------------------------------------------------------

# A shell variable, so that the path may contain any character.
install install-files install-library uninstall uninstall-library: export TO = $(DESTDIR)$(PREFIX)

install: all
	+@$(MAKE) --no-print-directory install-files

# Without building anything.
install-files: install-library
	install -d "$$TO/bin" "$$TO/share/linnet/web" "$$TO/share/man/man1" \
		"$$TO/share/doc/linnet" "$$TO/share/bash-completion/completions" \
		"$$TO/share/zsh/site-functions" "$$TO/share/fish/vendor_completions.d"
	install -m 755 $B/linnet "$$TO/bin/linnet"
	[ -z '$(NVCC)' ] || install -D -m 755 $B/liblinnet_cuda.so "$$TO/lib/linnet/liblinnet_cuda.so"
	[ -z '$(WEB_SO)' ] || install -D -m 755 $B/liblinnet_web.so "$$TO/lib/linnet/liblinnet_web.so"
	[ -z '$(MPI_SO)' ] || install -D -m 755 $B/liblinnet_mpi.so "$$TO/lib/linnet/liblinnet_mpi.so"
	install -m 644 share/linnet/default.safetensors "$$TO/share/linnet/linnet.safetensors"
	install -m 644 share/linnet/timit-61-39.map share/linnet/offline.safetensors share/linnet/english.lm share/linnet/english.dict.gz share/linnet/english.g2p share/linnet/phones.lm share/linnet/english.punctuation \
		"$$TO/share/linnet"
	[ ! -f $(PACKED) ] || install -m 644 $(PACKED) "$$TO/share/linnet"
	install -m 644 share/linnet/web/* "$$TO/share/linnet/web"
	install -m 644 LICENSE NOTICE README.md RESULTS.md CHANGELOG.md $(filter-out docs/README.md,$(wildcard docs/*.md)) docs/*.svg docs/*.png \
		"$$TO/share/doc/linnet"
	$B/linnet man --output-dir "$$TO/share/man/man1" --doc-dir '$(PREFIX)/share/doc/linnet'
	$B/linnet completion bash > "$$TO/share/bash-completion/completions/linnet"
	$B/linnet completion zsh > "$$TO/share/zsh/site-functions/_linnet"
	$B/linnet completion fish > "$$TO/share/fish/vendor_completions.d/linnet.fish"

uninstall: uninstall-library
	rm -f "$$TO/bin/linnet" "$$TO/share/man/man1"/linnet.1 \
		"$$TO/share/man/man1"/linnet-*.1 \
		"$$TO/share/bash-completion/completions/linnet" "$$TO/share/zsh/site-functions/_linnet" \
		"$$TO/share/fish/vendor_completions.d/linnet.fish"
	rm -rf "$$TO/share/linnet" "$$TO/share/doc/linnet" "$$TO/lib/linnet"

# One short line for each file; V=1 shows the whole command.
ifeq ($(V),1)
SAY := @:
else
SAY := @echo
Q := @
endif

# ---- compiling -------------------------------------------------------------------------------------------------------------------

# Records of the compiler flags and of the sources in the archives: rewritten only when they change, so that other flags or an added
# or removed source rebuild what depends on them.
$B/flags: FORCE
	@mkdir -p $(@D)
	@tools/record.sh $@ '$(CC) $(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS) avx512: $(ISA_avx512bf16) avx2: $(ISA_avx2) $(DEFAULT_PREFIX) \
		$(CUDA_VERSION) $(CXX) $(CXXFLAGS) $(OPUS)'

# The place of installation, compiled into two objects: another PREFIX compiles only these and links.
$B/prefix: FORCE
	@mkdir -p $(@D)
	@tools/record.sh $@ '$(PREFIX)'

$O/linnet/find.o $O/base/system.o: $B/prefix

$B/link: FORCE
	@mkdir -p $(@D)
	@tools/record.sh $@ '$(CC) $(CFLAGS) $(LDFLAGS) $(LDLIBS) $(APP_LIBS) $(CHECK_LIBS) $(LIB_SRC) $(APP_SRC) $(SUPPORT_SRC) $(EMULATED_OBJ)'

$O/%_avx512.o: ISA := $(ISA_avx512)
$O/%_avx512bf16.o: ISA := $(ISA_avx512bf16)
$O/%_neonbf16.o: ISA := $(ISA_neonbf16)
$O/%_avx2.o: ISA := $(ISA_avx2)
$O/base/system.o: ISA := -DLIN_LIB_DIR='"$(PREFIX)/lib/linnet"'
$O/linnet/find.o: ISA := -DLIN_DATA_DIR='"$(PREFIX)/share/linnet"'
$O/app/ogg_opus.o: ISA := $(if $(OPUS),-DLIN_OPUS $(shell pkg-config --cflags $(OPUS) | sed 's/-I/-isystem /g'))
$O/kernels/gpu.o: ISA := $(if $(CUDA_VERSION),-DLIN_CUDA_VERSION=$(CUDA_VERSION))

# gcc 12 for arm64 ends with an internal error when it vectorises some maxima in tests.
ifneq ($(filter aarch64 arm64,$(ARCH)),)
$O/tests/%.o: PLAIN := -fno-tree-vectorize
endif

# Only parsers are fuzzed, and clang needs minutes to instrument the unrolled register blocks.
ifeq ($(CONFIG),fuzz)
$O/kernels/cpu/%.o: PLAIN := -fno-sanitize=all -Wno-pass-failed # clang unrolls little at -O1
endif
ifeq ($(CONFIG),asan)
$O/kernels/cpu/%.o: PLAIN := -fno-sanitize=all -O3
endif

$O/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(SAY) "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WERROR) $(ISA) $(PLAIN) $(PKG_CFLAGS) -MMD -MP -c $< -o $@

$B/liblinnet.a: $(LIB_OBJ) $B/link
	@rm -f $@
	$(SAY) "  AR    $@"
	$(Q)$(AR) rcs $@ $(LIB_OBJ)

$B/libapp.a: $(APP_OBJ) $B/link
	@rm -f $@
	$(SAY) "  AR    $@"
	$(Q)ar rcs $@ $(filter-out $O/app/main.o,$(APP_OBJ))

$B/linnet: $(APP_OBJ) $B/liblinnet.a
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(APP_OBJ) $B/liblinnet.a $(LDLIBS) $(APP_LIBS) -o $@

# ---- the MPI transport --------------------------------------------------------------------------------------------------------------

# Without the sanitizers, because MPI's own library has none. base/memory.c and status.c are in it, so that it does not depend on the
# program's names.
$B/liblinnet_mpi.so: base/mpi/mpi.c base/memory.c base/status.c base/comm.h base/memory.h base/status.h Makefile
	@mkdir -p $(@D)
	$(SAY) "  MPICC $@"
	$(Q)$(MPICC) $(CPPFLAGS) -std=c11 $(WARN) -O2 -g -fPIC -fvisibility=hidden -shared $(filter %.c,$^) -lpthread -o $@

# ---- the network side of linnet serve -----------------------------------------------------------------------------------------------

# As the transport above.
$B/liblinnet_web.so: app/web/lws.c app/web/seal.c app/web/seal.h base/memory.c base/status.c app/web.h base/memory.h base/status.h Makefile
	@mkdir -p $(@D)
	$(SAY) "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(shell pkg-config --cflags $(WEB) 2>/dev/null | sed 's/-I/-isystem /g') -std=c11 $(WARN) $(WERROR) -O2 -g -fPIC \
		-fvisibility=hidden -shared $(filter %.c,$^) $(shell pkg-config --libs $(WEB) 2>/dev/null) -lpthread -o $@

# ---- the CUDA backend --------------------------------------------------------------------------------------------------------------

$(CUDA_DIR)/flags: FORCE
	@mkdir -p $(@D)
	@tools/record.sh $@ '$(NVCC) $(CUDA_VERSION) $(CPPFLAGS) $(NVCCFLAGS) $(CUDA_SRC)'

$(CUDA_DIR)/%.o: %.cu $(CUDA_DIR)/flags
	@mkdir -p $(@D)
	$(SAY) "  NVCC  $<"
	$(Q)$(or $(NVCC),nvcc) $(CPPFLAGS) $(NVCCFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@

$(CUDA_DIR)/%.o: %.c $(CUDA_DIR)/flags
	@mkdir -p $(@D)
	$(SAY) "  CC    $< (for liblinnet_cuda.so)"
	$(Q)$(CC) $(CPPFLAGS) -std=c11 $(WARN) $(WERROR) -O3 -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@

# cudart is linked statically; cublasLt is large and is loaded from the toolkit or from the library's folder.
$(CUDA_SO): $(CUDA_OBJ) $(CUDA_C_SRC:%.c=$(CUDA_DIR)/%.o)
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(or $(NVCC),nvcc) -shared -cudart static $(filter %.o,$^) -L$(CUDA_LIB) -lcublasLt \
		-Xlinker -rpath,'$$ORIGIN',-rpath,$(CUDA_LIB),--exclude-libs,ALL -o $@

$B/liblinnet_cuda.so: $(CUDA_SO)
	@mkdir -p $(@D)
	@cp -f $< $@

# The same sources compiled for the host, for tests: an archive for test programs, and a library and a driver that the program loads.
$B/emulated/%.o: %.cu $B/flags
	@mkdir -p $(@D)
	$(SAY) "  CXX   $<"
	$(Q)$(CXX) -x c++ $(CPPFLAGS) -Itests/emulation/include $(CXXFLAGS) $(WERROR) -MMD -MP -c $< -o $@

$B/emulated/%.o: %.cpp $B/flags
	@mkdir -p $(@D)
	$(SAY) "  CXX   $<"
	$(Q)$(CXX) $(CPPFLAGS) -Itests/emulation/include $(CXXFLAGS) $(WERROR) -O3 -MMD -MP -c $< -o $@

$B/emulated/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(SAY) "  CC    $< (for liblinnet_cuda.so)"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WERROR) -MMD -MP -c $< -o $@

$B/emulated/libemulated.a: $(EMULATED_OBJ) $B/link
	@rm -f $@
	$(SAY) "  AR    $@"
	$(Q)ar rcs $@ $(EMULATED_OBJ)

$B/emulated/liblinnet_cuda.so: $(EMULATED_OBJ) $(CUDA_C_SRC:%.c=$B/emulated/%.o) $B/link
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CXX) -shared $(CFLAGS_$(CONFIG)) $(EXTRA_CFLAGS) $(LDFLAGS) $(filter %.o,$^) -lpthread -lm -o $@

$B/emulated/libcuda.so.1: tests/emulation/driver.c Makefile $B/flags
	@mkdir -p $(@D)
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WERROR) -fPIC -fvisibility=default -shared $(LDFLAGS) $< -o $@

$B/tests/cuda/test_emulation: $B/emulated/tests/cuda/planted.o
$B/tests/cuda/test_cuda_engine: $O/tests/cuda/test_cuda_engine.o $B/libsupport.a $B/emulated/libemulated.a $B/libapp.a $B/liblinnet.a
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CXX) $(CFLAGS_$(CONFIG)) $(EXTRA_CFLAGS) $(LDFLAGS) $^ $(CHECK_LIBS) $(LDLIBS) $(APP_LIBS) -o $@

$B/tests/cuda/%: $O/tests/cuda/%.o $B/libsupport.a $B/emulated/libemulated.a $B/liblinnet.a
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CXX) $(CFLAGS_$(CONFIG)) $(EXTRA_CFLAGS) $(LDFLAGS) $^ $(CHECK_LIBS) $(LDLIBS) -o $@

# The tests of the backend for a real GPU: they load the backend as the program does.
build/gpu/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(SAY) "  CC    $< (for a GPU)"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WERROR) -DLIN_ON_GPU $(PKG_CFLAGS) -MMD -MP -c $< -o $@

build/gpu/tests/cuda/%: build/gpu/tests/cuda/%.o build/gpu/libsupport.a $B/liblinnet.a
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(CHECK_LIBS) $(LDLIBS) -o $@

ifeq ($(CONFIG),fuzz)
$B/tests/fuzz/fuzz_%: $O/tests/fuzz/fuzz_%.o $B/libapp.a $B/liblinnet.a
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) $(APP_LIBS) -o $@
else
$B/tests/fuzz/fuzz_%: $O/tests/fuzz/fuzz_%.o $O/tests/fuzz/driver.o $B/libapp.a $B/liblinnet.a
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) $(APP_LIBS) -o $@
endif

# Of an archive a program takes what it uses.
$B/libsupport.a: $(SUPPORT_SRC:%.c=$O/%.o) $B/link
	@rm -f $@
	$(SAY) "  AR    $@"
	$(Q)ar rcs $@ $(filter %.o,$^)

build/gpu/libsupport.a: $(SUPPORT_SRC:%.c=build/gpu/%.o) $B/link
	@rm -f $@
	$(SAY) "  AR    $@"
	$(Q)ar rcs $@ $(filter %.o,$^)

$B/tests/%: $O/tests/%.o $B/libsupport.a $B/libapp.a $B/liblinnet.a
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(CHECK_LIBS) $(LDLIBS) $(APP_LIBS) -o $@

$B/bench/%: $O/bench/%.o $B/liblinnet.a
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

include bench/gpu.mk
include bindings/python/python.mk
include bindings/wasm/wasm.mk

FORCE:

.PHONY: all help found deps install-files tests check check-quick quick-programs check-places check-page check-arm64 arm64 arm64-tests check-gpu gpu-programs cuda-compiles test-programs asan ubsan tsan fuzz fuzz-programs demo bench bench-programs clean install \
	uninstall FORCE
.SECONDARY:
-include $(shell find $B build/cuda build/gpu -name '*.d' 2>/dev/null)
