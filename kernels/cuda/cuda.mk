# cuda.mk - the CUDA backend, liblinnet_cuda.so, and its emulation on the host for tests; included by the Makefile.
#
# `make` compiles it for the GPU that is here, `make cuda` for those of data centres and of desktops from Ampere on, with PTX for later
# ones. NVCC= : not built. CUDA_ARCHS='80 90': for these.

ifeq ($(origin NVCC),undefined)
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
endif
CUDA_KNOWN := $(if $(NVCC),$(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code 2>/dev/null)))
CUDA_ALL := 80 86 89 90 $(filter 100 120,$(CUDA_KNOWN))
# What `make cuda` has built stays up to date.
CUDA_BUILT := $B/cuda-archs
ifeq ($(origin CUDA_ARCHS),undefined)
CUDA_HERE := $(if $(NVCC),$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d '. ' | \
	grep -x '[0-9]*' | sort -u))
CUDA_ARCHS := $(or $(shell cat $(CUDA_BUILT) 2>/dev/null),$(filter $(CUDA_KNOWN),$(CUDA_HERE)),$(if $(CUDA_HERE),90))
endif
CUDA_PTX := $(or $(filter 90,$(CUDA_ARCHS)),$(lastword $(CUDA_ARCHS)))
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(if $(NVCC),$(realpath $(shell command -v $(NVCC) 2>/dev/null))))
CUDA_LIB := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/targets/$(ARCH)-linux/lib $(CUDA_HOME)/lib))
CUDA_VERSION := $(if $(NVCC),$(shell $(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' | \
	awk '{print 1000 * $$1 + 10 * $$2}'))
NVCCFLAGS := -std=c++17 -O3 $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) \
	-gencode arch=compute_$(CUDA_PTX),code=compute_$(CUDA_PTX) -t0 \
	-Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-Wall,-Wextra \
	-Xcompiler -Wno-missing-field-initializers
# One folder for each choice of architectures.
empty :=
comma := ,
CUDA_DIR := build/cuda/sm$(subst $(empty) $(empty),-,$(strip $(CUDA_ARCHS)))$(NO_PAPER)
CUDA_SO := $(CUDA_DIR)/liblinnet_cuda.so
CUDA_BACKEND := $(if $(NVCC),$(if $(strip $(CUDA_ARCHS)),$B/liblinnet_cuda.so))

CUDA_SRC := $(wildcard kernels/cuda/*.cu $(if $(NO_PAPER),,paper/cuda/*.cu))
# Sources that the backend's library contains too: it must not depend on the symbols of the program.
CUDA_C_SRC := base/memory.c base/status.c
CUDA_OBJ := $(CUDA_SRC:%.cu=$(CUDA_DIR)/%.o) $(CUDA_C_SRC:%.c=$(CUDA_DIR)/%.o)

cuda:
	@[ -n '$(NVCC)' ] || { echo 'make cuda needs nvcc, on the PATH, in /usr/local/cuda/bin or as NVCC=' >&2; exit 1; }
	@mkdir -p $B && echo $(CUDA_ALL) > $(CUDA_BUILT)
	+@$(MAKE) --no-print-directory all

# The library links, and exports only its own names.
cuda-compiles: $(CUDA_SO)
	@names=$$(nm -D --defined-only $< | awk '{ print $$3 }' | grep -v '^lin_cuda_'); \
		[ -z "$$names" ] || { echo "$< exports $$names"; exit 1; }

$(CUDA_DIR)/flags: FORCE
	@tools/record.sh $@ '$(NVCC) $(CUDA_VERSION) $(CPPFLAGS) $(NVCCFLAGS) $(CUDA_SRC)'

$(CUDA_DIR)/%.o: %.cu $(CUDA_DIR)/flags
	$(call compile,NVCC ,$(or $(NVCC),nvcc) $(CPPFLAGS) $(NVCCFLAGS) -MT $@ -MF $(@:.o=.d))

$(CUDA_DIR)/%.o: %.c $(CUDA_DIR)/flags
	$(call compile,CC   ,$(CC) $(CPPFLAGS) -std=c11 $(WARN) $(WERROR) -O3 -fPIC -fvisibility=hidden)

# cudart is linked statically; cublasLt is large and is loaded from the toolkit or from the library's folder.
$(CUDA_SO): $(CUDA_OBJ)
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(or $(NVCC),nvcc) -shared -cudart static $(filter %.o,$^) -L$(CUDA_LIB) -lcublasLt \
		-Xlinker -rpath,'$$ORIGIN',-rpath,$(CUDA_LIB),--exclude-libs,ALL -o $@

$B/liblinnet_cuda.so: $(CUDA_SO)
	@install -D $< $@

# The driver that the messages of the program ask for.
$B/cuda-version: FORCE
	@tools/record.sh $@ '$(CUDA_VERSION)'
$O/kernels/backend.o: $B/cuda-version
$O/kernels/backend.o: ISA := $(if $(CUDA_VERSION),-DLIN_CUDA_VERSION=$(CUDA_VERSION))

# ---- emulated: the same sources compiled as C++, an archive for test programs, and a library and a driver that the program loads 

# Vectors of four cause false warnings about uninitialised values, unrolling pragmas cause them in clang.
CXXFLAGS := -std=c++17 -Wall -Wextra -Wno-missing-field-initializers -Wno-unknown-pragmas -Wno-uninitialized \
	-Wno-maybe-uninitialized -Wno-pass-failed -fno-math-errno -fno-exceptions -fno-rtti -fno-strict-aliasing -fPIC \
	-fvisibility=hidden $(CFLAGS_$(CONFIG)) $(EXTRA_CFLAGS)
EMULATED_OBJ := $(CUDA_SRC:%.cu=$B/emulated/%.o) $(patsubst %.cpp,$B/emulated/%.o,$(wildcard tests/emulation/*.cpp))
EMULATED := $B/emulated/liblinnet_cuda.so $B/emulated/libcuda.so.1
# Tests that load it as the program does; the scripts of their group do too.
$B/tests/kernels/test_gpu $B/tests/cuda/test_cuda_model: | $(if $(filter tsan,$(CONFIG)),,$(EMULATED))
EMULATED_CXX = $(CXX) $(CPPFLAGS) -Itests/emulation/include $(CXXFLAGS) $(WERROR)
CXX_LINK = $(CXX) $(CFLAGS_$(CONFIG)) $(EXTRA_CFLAGS)

$B/emulated/%.o: %.cu $B/flags
	$(call compile,CXX  ,$(EMULATED_CXX) -x c++)

$B/emulated/%.o: %.cpp $B/flags
	$(call compile,CXX  ,$(EMULATED_CXX) -O3)

$B/emulated/%.o: %.c $B/flags
	$(call compile,CC   ,$(CC) $(CPPFLAGS) $(CFLAGS) $(WERROR) $(PLAIN))

$B/emulated/libemulated.a: $(EMULATED_OBJ) $B/link
	$(archive)

$B/emulated/liblinnet_cuda.so: $(EMULATED_OBJ) $(CUDA_C_SRC:%.c=$B/emulated/%.o) $B/link
	$(call link,$(CXX_LINK) -shared)

$B/emulated/libcuda.so.1: $B/emulated/tests/emulation/driver.o $B/link
	$(call link,$(CC) $(CFLAGS) -shared)
$B/emulated/tests/emulation/driver.o: PLAIN := -fvisibility=default

$B/tests/cuda/test_emulation: $B/emulated/tests/cuda/planted.o
$B/tests/cuda/test_cuda_engine: $O/tests/cuda/test_cuda_engine.o $B/libsupport.a $B/emulated/libemulated.a $B/libapp.a $B/liblinnet.a
	$(call link,$(CXX_LINK),$(CHECK_LIBS) $(APP_LIBS))

$B/tests/cuda/%: $O/tests/cuda/%.o $B/libsupport.a $B/emulated/libemulated.a $B/liblinnet.a
	$(call link,$(CXX_LINK),$(CHECK_LIBS))

# ---- on a real GPU: the tests of the backend load it as the program does -------------------------------------------------------

GPU_TEST_SRC := $(shell grep -L 'tests/emulation/' /dev/null $(wildcard tests/cuda/test_*.c) | grep -v '^/dev/null')
GPU_TESTS := $(GPU_TEST_SRC:%.c=build/gpu/%)

check-gpu:
	@[ -n '$(CUDA_BACKEND)' ] || { echo 'check-gpu needs a GPU, and nvcc on the PATH, in /usr/local/cuda/bin or as NVCC=' >&2; exit 1; }
	+@$(MAKE) --no-print-directory $(JOBS) gpu-programs
	@tools/check-gpu.sh $(GPU_TESTS)

gpu-programs: $(GPU_TESTS) $B/bench_gpu $B/liblinnet_cuda.so

build/gpu/%.o: %.c $B/flags
	$(call compile,CC   ,$(CC) $(CPPFLAGS) $(CFLAGS) $(WERROR) -DLIN_ON_GPU $(PKG_CFLAGS))

build/gpu/libsupport.a: $(SUPPORT_SRC:%.c=build/gpu/%.o) $B/link
	$(archive)

build/gpu/tests/cuda/%: build/gpu/tests/cuda/%.o build/gpu/libsupport.a $B/liblinnet.a
	$(call link,$(CC) $(CFLAGS),$(CHECK_LIBS))

.PHONY: cuda cuda-compiles check-gpu gpu-programs
