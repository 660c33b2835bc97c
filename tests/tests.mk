# tests.mk - the test programs, the fuzz targets, and the targets that run them; included by the Makefile.
#
# The first line of a test says what it tests. Tags in brackets may begin it:
#   [cuda]      needs the emulated GPU, or tests the tools of a real one       make check-cuda
#   [variants]  networks that no shipped model uses, and the paper's recipes   make check-variants
#   [slow]      not in make check-quick
#   [release]   not under AddressSanitizer: it tests the kernels, which make asan instruments, or hardly runs the program
#   [native]    not in make check-arm64: needs a sound device, a build, or programs of this machine
# All without cuda and variants are make check.

# What needs paper/, beside the tests with the tag variants. The documents describe the whole program.
PAPER_TESTS := tests/paper/% tests/app/test_docs.sh
TEST_SRC := $(filter-out $(if $(NO_PAPER),$(PAPER_TESTS)),$(wildcard tests/*/test_*.c tests/train/*/test_*.c))
TEST_SH := $(filter-out $(if $(NO_PAPER),$(PAPER_TESTS)),$(wildcard tests/*/test_*.sh))
# A fuzz target for each folder of seeds; all are one program under different names.
FUZZ := $(addprefix tests/fuzz/fuzz_,$(filter-out $(if $(NO_PAPER),images),$(notdir $(wildcard tests/fuzz/corpus/*))))
FUZZ_SRC := $(filter-out $(if $(NO_PAPER),tests/fuzz/fuzz_images.c) $(if $(filter fuzz,$(CONFIG)),tests/fuzz/driver.c),$(wildcard tests/fuzz/*.c))
ifeq ($(CONFIG),tsan)
TEST_SRC := $(filter-out tests/cuda/%,$(TEST_SRC)) # ThreadSanitizer does not support the emulation's fibres
endif
SUPPORT_SRC := $(filter-out $(wildcard tests/*/test_*.c tests/train/*/test_*.c) $(if $(NO_PAPER),tests/paper/%) tests/app/% tests/recipes/% tests/emulation/% tests/fuzz/%,\
	$(wildcard tests/*.c tests/*/*.c tests/*/ref/*.c))
TEST_TOOLS := $(addprefix $B/tests/,app/sound app/language app/container app/rows app/tokens app/voices app/talk app/intruder app/crowd app/gpu_cases recipes/sphere)

# ---- groups --------------------------------------------------------------------------------------------------------------------

# GROUP: core, cuda, variants, all.
GROUP ?= core
TEST_ALL := $(TEST_SRC) $(TEST_SH)
tagged = $(shell tests/tagged.sh '$1' $(TEST_ALL))
IN_all = $(TEST_ALL) $(FUZZ)
IN_cuda = $(call tagged,cuda)
IN_variants = $(call tagged,variants)
IN_core = $(filter-out $(call tagged,cuda variants),$(TEST_ALL)) $(FUZZ)
# The paths in the build folder: build/CONFIG/tests/x/test_y, and test_y.sh for a script.
run = $(patsubst %.c,%,$(addprefix $B/,$1))
RUN = $(call run,$(IN_$(GROUP)))
RUN_ASAN = $(subst $B,build/asan$(NO_PAPER),$(call run,$(filter-out $(call tagged,release),$(IN_$(GROUP)))))

# The scripts begin, because some of them mostly wait, and before them those that wait for minutes.
WAITING := %/test_serve.sh %/test_mpi.sh
scripts_first = $(filter $(WAITING),$1) $(filter-out $(WAITING),$(filter %.sh,$1)) $(filter-out %.sh,$1)

# Everything twice: in release, then under AddressSanitizer (not with CHECK_ASAN=no). A real GPU is not used: see check-gpu.
CHECK_ASAN ?= yes
check asan ubsan tsan check-cuda check-variants check-all check-quick: export LINNET_CUDA_DRIVER ?= none
check-cuda: GROUP := cuda
check-variants: GROUP := variants
check-all asan ubsan tsan: GROUP := all
check check-cuda check-variants check-all:
	@tools/deps.sh build check
	@mkdir -p $B && $(if $(filter core,$(GROUP)),:,tests/groups.sh lines $(GROUP) > $B/groups-$(GROUP))
	+@$(MAKE) --no-print-directory $(JOBS) GROUP=$(GROUP) WERROR=-Werror test-programs
	+@[ '$(CHECK_ASAN)' != yes ] || $(MAKE) --no-print-directory $(JOBS) GROUP=$(GROUP) CONFIG=asan test-programs
	@tests/run.sh '$(TEST_JOBS)' $(call scripts_first,$(RUN) $(if $(filter yes,$(CHECK_ASAN)),$(RUN_ASAN)))
	@[ $(GROUP) = core ] || [ '$(CHECK_ASAN)' != yes ] || tests/groups.sh passed $B/groups-$(GROUP)

# For one architecture, nvcc compiles the backend where it is installed.
test-programs: $(filter-out %.sh,$(if $(filter asan,$(CONFIG)),$(RUN_ASAN),$(RUN))) $(TEST_TOOLS) $B/linnet $(MPI_SO) $(WEB_SO) \
	$(if $(filter release,$(CONFIG)),$(LIBRARY))
	+@[ $(CONFIG) != release ] || [ -z '$(NVCC)' ] || [ -z '$(filter cuda all,$(GROUP))' ] || \
		$(MAKE) --no-print-directory $(JOBS) CUDA_ARCHS=90 cuda-compiles

# Release only, without fuzz targets and the slowest tests.
QUICK = $(call run,$(filter-out $(FUZZ) $(call tagged,slow),$(IN_core)))
check-quick:
	@tools/deps.sh build check
	+@$(MAKE) --no-print-directory $(JOBS) WERROR=-Werror quick-programs
	@tests/run.sh '$(TEST_JOBS)' $(QUICK)

quick-programs: $(filter-out %.sh,$(QUICK)) $(TEST_TOOLS) $B/linnet $(MPI_SO) $(WEB_SO)

# Builds and tests a configuration in its own folder; for AddressSanitizer the kernels once more, instrumented.
asan ubsan tsan:
	@tools/deps.sh build check
	+@$(MAKE) --no-print-directory $(JOBS) GROUP=all CONFIG=$@ test-programs
	+@[ $@ != asan ] || $(MAKE) --no-print-directory $(JOBS) CONFIG=asan-kernels kernel-programs
	@tests/run.sh '$(TEST_JOBS)' $(if $(filter asan,$@),$(RUN_ASAN),$(subst $B,build/$@$(NO_PAPER),$(RUN))) $(if $(filter asan,$@),$(subst $B,build/asan-kernels,$(KERNEL_TESTS)))

KERNEL_TESTS = $(call run,$(filter-out $(call tagged,cuda),$(wildcard tests/kernels/test_*.c tests/paper/test_lstm.c)))
kernel-programs: $(KERNEL_TESTS)

# The same program and its tests in conditions where programs often fail: unusual paths, another locale, a read-only home.
check-places:
	@tools/deps.sh build check
	@tests/places.sh '$(NPROC)'

# The server's page in a real browser. Installs nothing: tools/deps.sh build demo page does.
check-page:
	+@$(MAKE) --no-print-directory $(JOBS) $B/linnet $(WEB_SO)
	@command -v python3 > /dev/null || { echo 'check-page needs python3: tools/deps.sh build demo page' >&2; exit 1; }
	@PYTHONDONTWRITEBYTECODE=1 python3 tests/page/check_page.py $B/linnet build/page

# clang's libFuzzer, FUZZ_SECONDS for each target; findings are stored in build/fuzz/findings.
FUZZ_SECONDS ?= 60
fuzz:
	@tools/deps.sh build fuzz
	+@$(MAKE) --no-print-directory $(JOBS) CONFIG=fuzz CC=clang fuzz-programs
	@tests/fuzz/run.sh '$(FUZZ_SECONDS)' $(addprefix build/fuzz/,$(FUZZ))

fuzz-programs: $(call run,$(FUZZ))

# ---- compiling and linking ----------------------------------------------------------------------------------------------------

# Tests are compiled fast; make ubsan finds what is undefined in them.
CFLAGS_tests := $(if $(filter fuzz emscripten,$(CONFIG)),,-Og -g1) $(if $(filter asan asan-kernels,$(CONFIG)),-fno-sanitize=undefined)
$O/tests/%.o: PLAIN := $(CFLAGS_tests)
$O/tests/kernels/ref/%.o $O/tests/paper/ref/%.o: PLAIN :=

# Of an archive a program takes what it uses.
$B/libsupport.a: $(SUPPORT_SRC:%.c=$O/%.o) $B/link
	$(archive)

$B/tests/%: $O/tests/%.o $B/libsupport.a $B/libapp.a $B/liblinnet.a
	$(call link,$(CC) $(CFLAGS),$(CHECK_LIBS) $(APP_LIBS))

# clang's libFuzzer has a main function; elsewhere tests/fuzz/driver.c.
$B/tests/fuzz/fuzz: $(FUZZ_SRC:%.c=$O/%.o) $B/libapp.a $B/liblinnet.a
	$(call link,$(CC) $(CFLAGS) $(if $(filter fuzz,$(CONFIG)),-fsanitize=fuzzer),$(APP_LIBS))

$(call run,$(FUZZ)): $B/tests/fuzz/fuzz
	@ln -sf fuzz $@

.PHONY: check check-cuda check-variants check-all check-quick test-programs quick-programs asan ubsan tsan kernel-programs check-places \
	check-page fuzz fuzz-programs
