# The library for other programs, included by the Makefile: liblinnet.so.1 and liblinnet.a, of which only the names of linnet.h
# are visible, linnet.h, what pkg-config and CMake read, and the manual page linnet(3). All in build/CONFIG/lib.

LIBRARY_VERSION := $(shell sed -n 's/^\#define LINNET_VERSION "\(.*\)"/\1/p' linnet/linnet.h)
LIBRARY_ABI := $(shell sed -n 's/^\#define LINNET_ABI //p' linnet/linnet.h)
OBJCOPY ?= objcopy
API_OBJ := $(filter $O/linnet/api.o $O/linnet/api_%.o $O/align/api_%.o,$(LIB_OBJ))

ifeq ($(shell uname -s),Darwin)
SHARED := liblinnet.$(LIBRARY_ABI).dylib
SHARED_LINKS := liblinnet.dylib
SHARED_FLAGS = -dynamiclib -install_name '$(PREFIX)/lib/$(SHARED)'
HIDE = : # the two-level name space of macOS keeps the others apart
else
SHARED := liblinnet.so.$(LIBRARY_ABI).0.0
SHARED_LINKS := liblinnet.so.$(LIBRARY_ABI) liblinnet.so
SHARED_FLAGS = -shared -Wl,-soname,liblinnet.so.$(LIBRARY_ABI) -Wl,--version-script=linnet/linnet.map
HIDE = $(OBJCOPY) --localize-hidden
endif
LIBRARY := $B/lib/$(SHARED) $B/lib/liblinnet.a $B/lib/linnet.3

$B/lib/$(SHARED): $(API_OBJ) $B/liblinnet.a linnet/linnet.map
	@mkdir -p $(@D)
	$(SAY) "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(SHARED_FLAGS) $(API_OBJ) $B/liblinnet.a $(LDLIBS) -o $@
	@cd $(@D) && for l in $(SHARED_LINKS); do ln -sf $(SHARED) $$l; done

# One object, so that names that are hidden can be made local.
$B/lib/liblinnet.a: $(API_OBJ) $B/liblinnet.a
	@mkdir -p $(@D)
	@rm -f $@
	$(SAY) "  AR    $@"
	$(Q)$(CC) -r -nostdlib $(API_OBJ) $B/liblinnet.a -o $B/lib/linnet.o
	$(Q)$(HIDE) $B/lib/linnet.o
	$(Q)ar rcs $@ $B/lib/linnet.o

$B/lib/linnet.3: linnet/linnet.h tools/man3.sh
	@mkdir -p $(@D)
	$(Q)tools/man3.sh linnet/linnet.h '$(LIBRARY_VERSION)' > $@.part && mv $@.part $@

library: $(LIBRARY)

# Programs find the library in another prefix than the system's without LD_LIBRARY_PATH.
ifeq ($(filter /usr /usr/local,$(PREFIX)),)
RPATH := "-Wl,-rpath,$${libdir}" #
endif
FILL = sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(LIBRARY_VERSION)|; s|@LIBS@|$(LDLIBS)|; s|@RPATH@|$(RPATH)|; s|@SHARED@|$(SHARED)|; s|@SONAME@|$(firstword $(SHARED_LINKS))|'

# TO is set by the Makefile; nothing is built here.
install-library:
	install -d "$$TO/lib/pkgconfig" "$$TO/lib/cmake/linnet" "$$TO/include" "$$TO/share/man/man3" "$$TO/share/doc/linnet/examples"
	install -m 755 $B/lib/$(SHARED) "$$TO/lib"
	for l in $(SHARED_LINKS); do ln -sf $(SHARED) "$$TO/lib/$$l"; done
	install -m 644 $B/lib/liblinnet.a "$$TO/lib"
	install -m 644 linnet/linnet.h "$$TO/include"
	install -m 644 $B/lib/linnet.3 "$$TO/share/man/man3"
	install -m 644 examples/*.c examples/CMakeLists.txt "$$TO/share/doc/linnet/examples"
	$(FILL) linnet/linnet.pc.in > "$$TO/lib/pkgconfig/linnet.pc"
	for f in linnet-config linnet-config-version; do $(FILL) linnet/$$f.cmake.in > "$$TO/lib/cmake/linnet/$$f.cmake"; done
	chmod 644 "$$TO/lib/pkgconfig/linnet.pc" "$$TO/lib/cmake/linnet/"*.cmake

uninstall-library:
	rm -f "$$TO/lib/$(SHARED)" $(patsubst %,"$$TO/lib/%",$(SHARED_LINKS)) "$$TO/lib/liblinnet.a" "$$TO/include/linnet.h" \
		"$$TO/share/man/man3/linnet.3" "$$TO/lib/pkgconfig/linnet.pc" "$$TO/lib/cmake/linnet/"*.cmake

.PHONY: library install-library uninstall-library
