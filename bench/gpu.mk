# gpu.mk - the GPU benchmark (bench/gpu/, a program of its own: it needs no CUDA header) and the limits of
# the device. Part of the Makefile; bench/gpu.sh asks for these.

GPU_BENCH_OBJ := $(patsubst %.c,$O/%.o,$(wildcard bench/gpu/*.c))

# Beside liblinnet_cuda.so, where the loader looks first.
$B/bench_gpu: $(GPU_BENCH_OBJ) $B/liblinnet.a
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$B/gpu_limits: bench/gpu_limits.c $(CUDA_DIR)/flags
	@mkdir -p $(@D)
	$(SAY) "  NVCC  $<"
	$(Q)$(NVCC) -O2 $< -L$(CUDA_LIB) -lcublasLt -Xlinker -rpath,$(CUDA_LIB) -o $@

bench-gpu:
	@bench/gpu.sh

bundle:
	@tools/bundle.sh

.PHONY: bench-gpu bundle
