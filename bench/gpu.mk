# gpu.mk - the GPU benchmark (bench/gpu/, a program of its own: it needs no CUDA header), the limits of the device, and the kit: one
# archive that tests, measures and trains on a machine with a GPU and nothing else. Part of the Makefile.
#
#   make gpu-kit CUDA_ARCHS='80 90 120' [CACHES=DIR] [KIT_MB=55]   build/linnet-gpu-kit.tar.xz
#   make check-kit                                                 rehearses it in empty roots of Debian 12 and 13 (slow; needs root)

GPU_BENCH_OBJ := $(patsubst %.c,$O/%.o,$(wildcard bench/gpu/*.c))

# Beside liblinnet_cuda.so, where the loader looks first.
$B/bench_gpu: $(GPU_BENCH_OBJ) $B/liblinnet.a
	$(call link,$(CC) $(CFLAGS))

ifneq ($(filter cuda all,$(GROUP)),)
test-programs: $(if $(filter release,$(CONFIG)),$B/bench_gpu)
endif

$B/gpu_limits: bench/gpu_limits.c $(CUDA_DIR)/flags
	@mkdir -p $(@D)
	$(SAY) "  NVCC  $<"
	$(Q)$(NVCC) -O2 $< -L$(CUDA_LIB) -lcublasLt -Xlinker -rpath,$(CUDA_LIB) -o $@

# The programs of the kit, which find their libraries in ../lib, also those that these need (no --enable-new-dtags).
KIT := build/kit/linnet-gpu-kit
KIT_TESTS := $(GPU_TEST_SRC:tests/cuda/%.c=$(KIT)/tests/%)
$(KIT)/bin/linnet $(KIT)/bin/bench_gpu $(KIT_TESTS): private LDFLAGS := -s $(filter-out -Wl$(comma)-rpath$(comma)%,$(LDFLAGS)) \
	-Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib'

$(KIT)/bin/linnet: $(APP_OBJ) $B/liblinnet.a
$(KIT)/bin/bench_gpu: $(GPU_BENCH_OBJ) $B/liblinnet.a
$(KIT)/bin/linnet $(KIT)/bin/bench_gpu:
	$(call link,$(CC) $(CFLAGS),$(APP_LIBS))

$(KIT)/tests/%: build/gpu/tests/cuda/%.o build/gpu/libsupport.a $B/liblinnet.a
	$(call link,$(CC) $(CFLAGS),$(CHECK_LIBS))

$(KIT)/lib/linnet/liblinnet_cuda.so: $(CUDA_SO)
	@install -D $< $@

$(KIT)/bin/gpu_limits: $B/gpu_limits
	@install -D $< $@

kit-files: $(KIT)/bin/linnet $(KIT)/bin/bench_gpu $(KIT_TESTS) $(if $(NVCC),$(KIT)/lib/linnet/liblinnet_cuda.so $(KIT)/bin/gpu_limits)
	@CUBLASLT='$(if $(NVCC),$(CUDA_LIB))' CACHES='$(CACHES)' KIT_MB='$(KIT_MB)' ARCHS='$(CUDA_ARCHS)' tools/gpu-kit.sh $(KIT)

gpu-kit: export CUDA_ARCHS := $(or $(strip $(CUDA_ARCHS)),$(CUDA_ALL))
gpu-kit:
	@[ -n '$(NVCC)' ] || { echo 'gpu-kit needs nvcc, on the PATH, in /usr/local/cuda/bin or as NVCC=' >&2; exit 1; }
	+@$(MAKE) --no-print-directory $(JOBS) kit-files
	@tools/gpu-kit.sh $(KIT) build/linnet-gpu-kit.tar.xz

# With the emulated backend and a fake driver; the kit's own backend only if nvcc has built it.
check-kit: export CUDA_ARCHS := $(CUDA_ARCHS)
check-kit:
	+@$(MAKE) --no-print-directory $(JOBS) NVCC= kit-files $(EMULATED)
	@tests/check-kit.sh $(KIT)

bench-gpu:
	@bench/gpu.sh

bundle:
	@tools/bundle.sh

.PHONY: bench-gpu bundle kit-files gpu-kit check-kit
