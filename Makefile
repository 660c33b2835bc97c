# linnet: build, test, install. `make help` says what can be made.
#
# CONFIG chooses the build folder and flags: release (default), asan, ubsan, tsan, fuzz. Sources are found by their place:
#   kernels/ frontend/ model/ lexicon/ decoder/      -> the library of the project, build/CONFIG/liblinnet.a
#   app/*.c                                          -> the program, build/CONFIG/linnet
#   tests/<folder>/test_*.c                          -> one Check program each
# A source whose name ends in _avx512.c or _avx2.c is compiled for that instruction set, on x86-64 only, and reached by run-time dispatch.

MAKEFLAGS += --no-builtin-rules
CC ?= gcc
CONFIG ?= release
B := build/$(CONFIG)
ARCH := $(shell uname -m)
PREFIX ?= /usr/local

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
CPPFLAGS += -I. -D_GNU_SOURCE
CFLAGS_release := -O3 -g
CFLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
CFLAGS_ubsan := -O1 -g -fsanitize=undefined -fno-sanitize-recover=undefined
CFLAGS_tsan := -O1 -g -fsanitize=thread
CFLAGS := -std=c11 $(WARN) -fno-math-errno $(CFLAGS_$(CONFIG)) $(EXTRA_CFLAGS)

PKGS := sndfile soxr kissfft-float libcjson
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null | sed 's/-I/-isystem /g')
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
CHECK_LIBS := $(shell pkg-config --libs check 2>/dev/null)
LDLIBS := $(PKG_LIBS) -lz -ldl -lpthread -lm

LIB_SRC := $(wildcard kernels/*.c kernels/ref/*.c kernels/cpu/*.c frontend/*.c model/*.c lexicon/*.c decoder/*.c)
ifneq ($(ARCH),x86_64)
LIB_SRC := $(filter-out %_avx2.c %_avx512.c,$(LIB_SRC))
endif
APP_SRC := $(wildcard app/*.c)
TEST_SRC := $(wildcard tests/*/test_*.c)
LIB_OBJ := $(LIB_SRC:%.c=$B/%.o)
APP_OBJ := $(APP_SRC:%.c=$B/%.o)
TESTS := $(TEST_SRC:%.c=$B/%)

all: $B/linnet
lib: $B/liblinnet.a
tests: $(TESTS)

# Fused multiply-adds there: these instruction sets have them, and -std=c11 alone forbids the compiler to form them.
$B/%_avx512.o: ISA := -march=x86-64-v4 -ffp-contract=fast
$B/%_avx2.o: ISA := -mavx2 -mfma -mf16c -ffp-contract=fast

$B/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(ISA) $(PKG_CFLAGS) -MMD -MP -c $< -o $@

$B/liblinnet.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$B/linnet: $(APP_OBJ) $B/liblinnet.a
	$(CC) $(CFLAGS) $^ $(LDLIBS) -o $@

$B/tests/%: $B/tests/%.o $B/liblinnet.a
	$(CC) $(CFLAGS) $^ $(CHECK_LIBS) $(LDLIBS) -o $@

check: $(TESTS) $B/linnet
	@fail=0; for t in $(TESTS); do $$t || fail=1; done; exit $$fail

clean:
	rm -rf build

.PHONY: all lib tests check clean
.SECONDARY:
-include $(shell find build/$(CONFIG) -name '*.d' 2>/dev/null)
