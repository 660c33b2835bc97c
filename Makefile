# linnet: build, test, install. `make help` lists the targets.
#
# CONFIG chooses the build folder and flags: release (default), asan, asan-kernels, ubsan, tsan, fuzz, arm64, emscripten. The folder of
# a source decides how it is built:
#   app/, serve/, cmd_*.c, bench_*.c   -> the program, build/CONFIG/linnet (all but app/main.c also for tests: libapp.a)
#   other sources of these folders     -> the library of the project, build/CONFIG/liblinnet.a
#   the same                           -> the library for other programs, build/CONFIG/lib/ (linnet/library.mk)
#   kernels/cuda/*.cu, paper/cuda/*.cu -> liblinnet_cuda.so, and its emulation for tests (kernels/cuda/cuda.mk)
#   train/mpi/mpi.c                    -> build/CONFIG/liblinnet_mpi.so, if MPI is found (MPICC= : not built)
#   serve/web/*.c                      -> build/CONFIG/liblinnet_web.so, if libwebsockets is found (WEB= : not built)
#   tests/<folder>/test_*.c, test_*.sh -> Check programs, and shell tests that run the program (tests/tests.mk)
#   tests/fuzz/fuzz_*.c                -> fuzz targets
#   bench/bench_*.c                    -> one benchmark each; bench/gpu.mk: those of a GPU, and the kit
# The sources with the loops of kernels are compiled once more for each instruction set (kernels/cpu/isa.mk), and called through
# run-time dispatch.

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
# PAPER=0 leaves out paper/ and its tests, in a build folder of its own, build/CONFIG-core.
PAPER ?= 1
NO_PAPER := $(if $(filter 0,$(PAPER)),-core)
B := build/$(CONFIG)$(NO_PAPER)
O := $B/obj
ARCH := $(shell uname -m)
NPROC := $(shell nproc 2>/dev/null || echo 2)
# More tests at once than there are processors: some mostly wait.
TEST_JOBS ?= $(shell expr $(NPROC) + 2)

ifeq ($(filter $(CONFIG),release asan asan-kernels ubsan tsan fuzz arm64 emscripten),)
$(error CONFIG=$(CONFIG) is none of release, asan, asan-kernels, ubsan, tsan, fuzz, arm64, emscripten)
endif

# ---- flags ---------------------------------------------------------------------------------------------------------------------

# Warnings are errors only in checks: a new warning of another compiler must not stop a user's build.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion
WERROR ?= $(if $(filter-out release,$(CONFIG)),-Werror)
CPPFLAGS += -I. -D_GNU_SOURCE$(if $(NO_PAPER), -DLIN_NO_PAPER)
CFLAGS_release := -O3 -g1
CFLAGS_arm64 := $(CFLAGS_release)
# Sizes in files have 64 bits: those of the folder that make wasm builds fit 32.
CFLAGS_emscripten := -O3 -msimd128 -fno-pic -Wno-shorten-64-to-32
CFLAGS_asan := -O1 -g1 -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
CFLAGS_asan-kernels := $(CFLAGS_asan)
CFLAGS_ubsan := -O1 -g -fsanitize=undefined -fno-sanitize-recover=undefined
CFLAGS_tsan := -O1 -g -fsanitize=thread
CFLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
# The folder of the tree is in no output: the same sources give the same bytes anywhere.
SAME := "-ffile-prefix-map=$(CURDIR)=."
CFLAGS := -std=c11 $(WARN) -fPIC -fvisibility=hidden -fno-math-errno $(SAME) $(CFLAGS_$(CONFIG)) $(EXTRA_CFLAGS)
include kernels/cpu/isa.mk

PKGS := sndfile soxr kissfft-float libcjson libutf8proc zlib
# Loaded when a microphone is opened, and not linked: loading its libraries takes as long as the start of the program.
HEADER_PKGS := portaudio-2.0
PKG_CFLAGS := $(foreach p,$(PKGS) $(HEADER_PKGS),$(shell pkg-config --cflags $p 2>/dev/null | sed 's/-I/-isystem /g'))
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
CHECK_LIBS := $(or $(shell pkg-config --libs check 2>/dev/null),-lcheck)
# Without pkg-config files, as on a bare GPU machine: the compiler's default folders, and those that tools/bundle.sh filled.
ifeq ($(PKG_LIBS),)
PKG_LIBS := -lsndfile -lsoxr -lkissfft-float -lcjson -lutf8proc -lz
PKG_CFLAGS += -Dkiss_fft_scalar=float -DKISS_FFT_SHARED
endif
ifneq ($(wildcard build/bundle/include),)
CPPFLAGS += -isystem build/bundle/include
LDFLAGS += -Lbuild/bundle/lib -Wl,-rpath,$(CURDIR)/build/bundle/lib -Wl,-rpath-link,build/bundle/lib
endif
LDLIBS := $(PKG_LIBS) -ldl -lpthread -lm

# ---- MPI -----------------------------------------------------------------------------------------------------------------------

# For training on several processes: a small library of its own, because MPI libraries have different binary interfaces.
ifeq ($(origin MPICC),undefined)
MPICC := $(shell command -v mpicc 2>/dev/null)
endif
MPI_SO := $(if $(MPICC),$B/liblinnet_mpi.so)

# ---- libwebsockets -------------------------------------------------------------------------------------------------------------

# For linnet serve: a library of its own, so that no other command loads a network library (WEB= : not built). Version 4.0 reads
# no request whose beginning it is given.
ifeq ($(origin WEB),undefined)
WEB := $(shell pkg-config --exists 'libwebsockets >= 4.1' libssl libcrypto 2>/dev/null && echo libwebsockets libssl libcrypto)
endif
WEB_SO := $(if $(WEB),$B/liblinnet_web.so)
WEB_LIBS := $(if $(WEB),$(shell pkg-config --libs $(WEB)))
# Opus in the streams of linnet serve (OPUS= : not built). libsndfile brings the libraries in any case.
ifeq ($(origin OPUS),undefined)
OPUS := $(shell pkg-config --exists opus ogg 2>/dev/null && echo opus ogg)
endif
APP_LIBS := $(if $(OPUS),$(shell pkg-config --libs $(OPUS)))

# ---- sources -------------------------------------------------------------------------------------------------------------------

# Each is described in docs/architecture.md: those of the recogniser, then those of training and of the paper.
FOLDERS := base kernels kernels/cpu frontend lexicon model decoder align linnet app serve \
	train train/learn train/score train/lab paper paper/cpu
FOLDER_SRC := $(filter-out $(if $(NO_PAPER),paper/%),$(wildcard $(FOLDERS:%=%/*.c)))
APP_SRC := $(sort $(filter app/% serve/%,$(FOLDER_SRC)) $(foreach s,$(FOLDER_SRC),$(if $(filter cmd_% bench_%,$(notdir $s)),$s)))
LIB_SRC := $(filter-out $(APP_SRC) $(ONLY_BY_ISA),$(FOLDER_SRC))
BENCH_SRC := $(wildcard bench/bench_*.c)
LIB_OBJ := $(LIB_SRC:%.c=$O/%.o) $(ISA_OBJ)
APP_OBJ := $(APP_SRC:%.c=$O/%.o)
BENCHES := $(BENCH_SRC:%.c=$B/%)

.DEFAULT_GOAL := all
include linnet/library.mk tests/tests.mk kernels/cuda/cuda.mk tools/arm64.mk bench/gpu.mk bindings/python/python.mk \
	bindings/wasm/wasm.mk

# ---- targets for users ---------------------------------------------------------------------------------------------------------

all: found
	+@$(MAKE) --no-print-directory $(JOBS) $B/linnet library $(MPI_SO) $(WEB_SO) $(CUDA_BACKEND) $(PACKED)
	@echo "built $B/linnet, $B/lib/liblinnet.so and .a$(patsubst %, and %,$(MPI_SO) $(WEB_SO) $(CUDA_BACKEND)); 'make help' says more"

# The installed lexicon, packed; the program works without it. It cannot be made where the program cannot run.
PACKED := share/linnet/en/words.dict.gz.tree
PACKED_FROM := $(addprefix share/linnet/en/,words.dict.gz words.lm default.safetensors)
$(PACKED): $(PACKED_FROM) lexicon/tree.h lexicon/ngram.h | $B/linnet
	$(SAY) "  PACK  $@"
	-@$B/linnet lexicon -q -m share/linnet/en/default.safetensors --lm share/linnet/en/words.lm share/linnet/en/words.dict.gz 2> /dev/null

# As many jobs as processors, unless make has a -j. Evaluated in recipes: MAKEFLAGS contains -j only there.
JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(NPROC))

help:
	@tools/help.sh '$(CC)' '$(ARCH)' '$(PKGS) $(HEADER_PKGS)' '$(CONFIG)' '$(PREFIX)' '$(NVCC)' '$(CUDA_ARCHS)'

found:
	@tools/found.sh '$(CC)' '$(ARCH)' '$(PKGS) $(HEADER_PKGS)' '$(CONFIG)' '$(NVCC)' '$(CUDA_ARCHS)'

deps:
	@tools/deps.sh build check demo

demo:
	@tools/deps.sh build demo
	+@$(MAKE) --no-print-directory $(JOBS) $B/linnet
	@examples/demo/run.sh $B/linnet

package:
	@tools/deps.sh build package
	+@tools/package.sh

bench:
	@tools/deps.sh build
	+@$(MAKE) --no-print-directory $(JOBS) bench-programs
	@tools/bench.sh $(BENCHES)

bench-programs: $(BENCHES) $B/linnet

clean:
	rm -rf build

# ---- installation --------------------------------------------------------------------------------------------------------------

# A shell variable, so that the path may contain any character.
install install-files install-library uninstall uninstall-library: export TO = $(DESTDIR)$(PREFIX)

# The folders of languages in share/linnet.
LANGUAGES := $(patsubst share/linnet/%/numbers.txt,%,$(wildcard share/linnet/*/numbers.txt))

install: all
	+@$(MAKE) --no-print-directory install-files

# Without building anything.
install-files: install-library
	install -d "$$TO/bin" "$$TO/share/linnet/web" "$$TO/share/man/man1" \
		"$$TO/share/doc/linnet/docs" "$$TO/share/bash-completion/completions" \
		"$$TO/share/zsh/site-functions" "$$TO/share/fish/vendor_completions.d"
	install -m 755 $B/linnet "$$TO/bin/linnet"
	[ -z '$(CUDA_BACKEND)' ] || install -D -m 755 $(CUDA_BACKEND) "$$TO/lib/linnet/liblinnet_cuda.so"
	[ -z '$(WEB_SO)' ] || install -D -m 755 $B/liblinnet_web.so "$$TO/lib/linnet/liblinnet_web.so"
	[ -z '$(MPI_SO)' ] || install -D -m 755 $B/liblinnet_mpi.so "$$TO/lib/linnet/liblinnet_mpi.so"
	install -m 644 share/linnet/web/* "$$TO/share/linnet/web"
	[ ! -f share/linnet/voices.safetensors ] || install -m 644 share/linnet/voices.safetensors "$$TO/share/linnet"
	for l in $(LANGUAGES); do install -d "$$TO/share/linnet/$$l" && install -m 644 share/linnet/$$l/* "$$TO/share/linnet/$$l" || exit 1; done
	install -m 644 LICENSE NOTICE README.md RESULTS.md CHANGELOG.md "$$TO/share/doc/linnet"
	install -m 644 docs/*.md docs/*.svg docs/*.png "$$TO/share/doc/linnet/docs"
	$B/linnet man --output-dir "$$TO/share/man/man1" --doc-dir '$(PREFIX)/share/doc/linnet/docs'
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

# ---- compiling -----------------------------------------------------------------------------------------------------------------

# Records of the compiler flags and of the sources in the archives: rewritten only when they change, so that other flags or an added
# or removed source rebuild what depends on them.
$B/flags: FORCE
	@tools/record.sh $@ '$(CC) $(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS) $(foreach i,$(ISA_SETS),$i: $(ISA_$i)) $(DEFAULT_PREFIX) \
		$(CFLAGS_tests) $(CXX) $(CXXFLAGS) $(OPUS)'

# The place of installation, compiled into two objects: another PREFIX compiles only these and links.
$B/prefix: FORCE
	@tools/record.sh $@ '$(PREFIX)'

$O/linnet/find.o $O/base/system.o: $B/prefix

$B/link: FORCE
	@tools/record.sh $@ '$(CC) $(CFLAGS) $(LDFLAGS) $(LDLIBS) $(APP_LIBS) $(WEB_LIBS) $(CHECK_LIBS) $(LIB_OBJ) $(APP_SRC) $(SUPPORT_SRC) \
		$(EMULATED_OBJ)'

$O/base/system.o: ISA := -DLIN_LIB_DIR='"$(PREFIX)/lib/linnet"'
$O/linnet/find.o: ISA := -DLIN_DATA_DIR='"$(PREFIX)/share/linnet"'
$O/serve/ogg_opus.o: ISA := $(if $(OPUS),-DLIN_OPUS $(shell pkg-config --cflags $(OPUS) | sed 's/-I/-isystem /g'))

# The unrolled register blocks take a sanitizer minutes to instrument and tests ten times as long: asan has those of the release.
BLOCKS := $(filter $O/kernels/cpu/% $O/paper/cpu/%,$(LIB_OBJ))
ifeq ($(CONFIG),fuzz)
$(BLOCKS): PLAIN := -fno-sanitize=all -O1 -Wno-pass-failed
else ifeq ($(CONFIG),asan)
LIB_OBJ := $(filter-out $(BLOCKS),$(LIB_OBJ)) $(BLOCKS:$O/%=build/release/obj/%)
$(BLOCKS:$O/%=build/release/obj/%): release-blocks
	@:
release-blocks:
	+@$(MAKE) -s --no-print-directory CONFIG=release $(BLOCKS:$O/%=build/release/obj/%)
endif

# $(call compile,WHAT,COMMAND), $(call link,COMMAND,LIBRARIES), $(archive): the target from its prerequisites.
define compile
@mkdir -p $(@D)
$(SAY) "  $1 $<"
$(Q)$2 -MMD -MP -c $< -o $@
endef
define link
@mkdir -p $(@D)
$(SAY) "  LINK  $@"
$(Q)$1 $(LDFLAGS) $(filter %.o %.a,$^) $2 $(LDLIBS) -o $@
endef
define archive
@rm -f $@
$(SAY) "  AR    $@"
$(Q)$(AR) rcs $@ $(filter %.o,$^)
endef

$O/%.o: %.c $B/flags
	$(call compile,CC   ,$(CC) $(CPPFLAGS) $(CFLAGS) $(WERROR) $(ISA) $(EXACT) $(PLAIN) $(PKG_CFLAGS))
$(foreach i,$(ISA_SETS),$(eval $(call isa_rule,$i)))

# The phones and the spelling of English as lines for C; further symbols in a line of phones are read as that phone.
$O/lexicon/english_phones.inc: share/linnet/en/phones.txt
	@mkdir -p $(@D)
	@awk '/^#/ { next } { printf "PHONE(\"%s\", \"%s\")\n", $$1, $$2; for (i = 3; i <= NF; i++) printf "OTHER(\"%s\", \"%s\")\n", $$i, $$1 }' $< > $@.new
	@mv $@.new $@
$O/lexicon/english_spelling.inc: share/linnet/en/spelling.txt
	@mkdir -p $(@D)
	@awk -F '\t' '/^#/ { next } { printf "{\"%s\", \"%s\", \"%s\", \"%s\"},\n", $$1, $$2, $$3, $$4 }' $< > $@.new
	@mv $@.new $@
$O/lexicon/phones.o: $O/lexicon/english_phones.inc
$O/lexicon/g2p.o: $O/lexicon/english_spelling.inc
$O/lexicon/phones.o $O/lexicon/g2p.o: ISA := -I$O

$B/liblinnet.a: $(LIB_OBJ) $B/link
	$(archive)

$B/libapp.a: $(filter-out $O/app/main.o,$(APP_OBJ)) $B/link
	$(archive)

$B/linnet: $(APP_OBJ) $B/liblinnet.a
	$(call link,$(CC) $(CFLAGS),$(APP_LIBS))

$B/bench/%: $O/bench/%.o $B/liblinnet.a
	$(call link,$(CC) $(CFLAGS))

# ---- the MPI transport ---------------------------------------------------------------------------------------------------------

# Without the sanitizers, because MPI's own library has none. base/memory.c and status.c are in it, so that it does not depend on the
# program's names.
$B/liblinnet_mpi.so: train/mpi/mpi.c base/memory.c base/status.c train/comm.h base/memory.h base/status.h linnet/linnet.h Makefile
	@mkdir -p $(@D)
	$(SAY) "  MPICC $@"
	$(Q)$(MPICC) $(CPPFLAGS) -std=c11 $(WARN) $(SAME) -O2 -g -fPIC -fvisibility=hidden -shared $(filter %.c,$^) -lpthread -o $@

# ---- the network side of linnet serve ------------------------------------------------------------------------------------------

# As the transport above.
$B/liblinnet_web.so: serve/web/lws.c serve/web/tls.c serve/http.c serve/http.h base/memory.c base/status.c \
		serve/web.h base/memory.h base/status.h linnet/linnet.h Makefile $B/link
	@mkdir -p $(@D)
	$(SAY) "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(shell pkg-config --cflags $(WEB) 2>/dev/null | sed 's/-I/-isystem /g') -std=c11 $(WARN) $(WERROR) $(SAME) -O2 -g \
		-fPIC -fvisibility=hidden -shared $(LDFLAGS) $(filter %.c,$^) $(WEB_LIBS) -ldl -lpthread -o $@

FORCE:

.PHONY: release-blocks all help found deps demo package bench bench-programs clean install install-files uninstall FORCE
.SECONDARY:
-include $(shell find $B build/cuda build/gpu -name '*.d' 2>/dev/null)
