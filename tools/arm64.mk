# arm64.mk - a build for arm64 by a cross-compiler, and its tests in qemu's emulation of the instructions; included by the Makefile.
# Debian only. The libraries are unpacked into build/arm64-root. `make arm64` builds the program, `make check-arm64` runs the tests too.

ARM64_LIB := $(CURDIR)/build/arm64-root/usr/lib/aarch64-linux-gnu
check-arm64 arm64:
	@tools/deps.sh build check arm64
	@tools/arm64.sh root build/arm64-root
	+@PKG_CONFIG_LIBDIR='$(ARM64_LIB)/pkgconfig' PKG_CONFIG_SYSROOT_DIR='$(CURDIR)/build/arm64-root' \
		$(MAKE) --no-print-directory $(JOBS) CONFIG=arm64 ARCH=aarch64 CC=aarch64-linux-gnu-gcc NVCC= MPICC= WEB= \
		LDFLAGS='-L$(ARM64_LIB) -Wl,-rpath-link,$(ARM64_LIB)' $(if $(filter check-%,$@),arm64-tests,build/arm64/linnet)

ARM64_RUN = $(call run,$(filter-out $(call tagged,cuda native),$(TEST_ALL)) $(FUZZ))
arm64-tests: $(filter-out %.sh,$(ARM64_RUN)) $(TEST_TOOLS) $B/linnet
	@tools/arm64.sh wrap $(CURDIR)/build/arm64 linnet $(TEST_TOOLS:$B/%=%)
	@tests/run.sh '$(TEST_JOBS)' $(ARM64_RUN)

.PHONY: check-arm64 arm64 arm64-tests
