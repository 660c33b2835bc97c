# The recogniser in a browser without a server, included by the Makefile: make wasm, one folder of static files. Debian only.
#
# CONFIG=emscripten compiles the library with emcc, and the libraries that it needs from their sources (tools/wasm.sh). The kernels are
# the portable ones, whose vectors of four become WebAssembly's.

WASM := build/wasm
WASM_ROOT := build/emscripten/root
# The model: the installed small one, in eight bits, or any other, WASM_MODEL=FILE.
WASM_MODEL := share/linnet/en/small.safetensors
# The word model is the installed one made smaller: 5.1 instead of 35.1 MB (docs/browser.md).
WASM_ENTROPY := 2.5e-7
WASM_INSTALLED := $(WASM)/data/en/default.safetensors
# emscripten's optimiser is a script of Debian's node, which other builds of node do not find.
EMSCRIPTEN := NODE_PATH=/usr/share/nodejs $(MAKE) --no-print-directory CONFIG=emscripten ARCH=wasm32 CC=emcc AR=emar NVCC= MPICC= WEB= OPUS= \
	WERROR=$(WERROR) PKG_CFLAGS='-isystem $(WASM_ROOT)/include -Dkiss_fft_scalar=float' PKG_LIBS=-lm

wasm:
	@tools/deps.sh build wasm
	@tools/wasm.sh $(WASM_ROOT)
	+@$(EMSCRIPTEN) $(JOBS) wasm-folder
	@mkdir -p $(WASM)/data/en
	+@$(MAKE) --no-print-directory $(JOBS) $B/linnet
	@cp $(WASM_MODEL) $(WASM_INSTALLED)
	@$B/linnet ngram prune -q share/linnet/en/words.lm --entropy $(WASM_ENTROPY) --set bits=8 --packed -o $(WASM)/data/en/words.lm
	@echo "built $(WASM): copy it to any server of static files, or: python3 -m http.server -d $(WASM)"

WASM_LIB := $(addprefix kissfft/,kiss_fft kiss_fftr) cjson/cJSON utf8proc/utf8proc \
	$(addprefix zlib/,adler32 crc32 inffast inflate inftrees zutil) \
	$(addprefix libsoxr/src/,soxr cr cr32 cr64 data-io dbesi0 fft4g32 fft4g64 filter)
WASM_LIB_OBJ := $(WASM_LIB:%=build/emscripten/src/%.o)
WASM_PAGE := $(filter-out teach.% reading.js,$(notdir $(wildcard share/linnet/web/*))) $(filter-out stream.js,$(notdir $(wildcard bindings/wasm/*.js*)))
WASM_DATA := $(addprefix en/,words.dict.gz words.punctuation numbers.txt)

build/emscripten/src/%.o: $(WASM_ROOT)/src/%.c $B/flags
	@mkdir -p $(@D)
	$(SAY) "  CC    $*.c"
	$(Q)$(CC) $(CFLAGS_emscripten) -w -Dkiss_fft_scalar=float -DSOXR_LIB -DUTF8PROC_STATIC -I$(WASM_ROOT)/include -c $< -o $@

# soxr calls functions through pointers to functions with other arguments, which WebAssembly refuses: hence the emulation, which costs
# no time that can be measured. It must know the most arguments that a function of a table has (kernels/ops.h).
$(WASM)/engine.js: $O/bindings/wasm/linnet_wasm.o $B/liblinnet.a $(WASM_LIB_OBJ)
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_emscripten) $(filter-out %.a,$^) $(filter %.a,$^) -s MODULARIZE=1 -s EXPORT_ES6=1 -s ENVIRONMENT=web,worker \
		-s ALLOW_MEMORY_GROWTH=1 -s INITIAL_MEMORY=67108864 -s EMULATE_FUNCTION_POINTER_CASTS=1 \
		-s BINARYEN_EXTRA_PASSES=--pass-arg=max-func-params@20 -s EXPORTED_RUNTIME_METHODS=FS,ccall,UTF8ToString \
		-s EXPORTED_FUNCTIONS=_malloc,_free -o $@

$(WASM)/data/%: share/linnet/%
	@mkdir -p $(@D)
	@cp $< $@
$(WASM)/%: bindings/wasm/%
	@mkdir -p $(@D)
	@cp $< $@
$(WASM)/%: share/linnet/web/%
	@mkdir -p $(@D)
	@cp $< $@

wasm-folder: $(WASM)/engine.js $(WASM_PAGE:%=$(WASM)/%) $(WASM_DATA:%=$(WASM)/data/%)

build/emscripten/products.js: $O/tests/app/products.o $B/liblinnet.a
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_emscripten) $^ -s ALLOW_MEMORY_GROWTH=1 -s ENVIRONMENT=node -s SINGLE_FILE=1 -o $@

wasm-products: build/emscripten/products.js

# The same results as the native program's in node, and the page from a plain server in a headless Chromium.
check-wasm: wasm
	+@$(EMSCRIPTEN) $(JOBS) wasm-products
	+@$(MAKE) --no-print-directory $(JOBS) $B/linnet $B/tests/app/products
	@$B/tests/app/products > build/emscripten/products.native && node build/emscripten/products.js | cmp - build/emscripten/products.native
	@PYTHONDONTWRITEBYTECODE=1 python3 tests/page/check_wasm.py $B/linnet $(WASM)

.PHONY: wasm wasm-folder wasm-products check-wasm
