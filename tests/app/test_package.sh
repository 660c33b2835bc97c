# [native release] What tools/package.sh demands of a package: every file of an installation, and no newer glibc. The files are those
# that make install-files installs from what is built.
. tests/app/common.sh

if [ "$CONFIG" != release ] || ! command -v make > /dev/null || ! command -v objdump > /dev/null; then
    pass # the library is built in release only
    finish
fi
unset MAKEFLAGS MAKELEVEL PREFIX DESTDIR # of a make that runs this test
make -s NVCC= MPICC= CONFIG=release PREFIX="$tmp/usr" install-files > "$tmp/log" 2>&1 || fail "make install-files" "$(tail -n 5 "$tmp/log")"
ok "an installation is complete" tools/package.sh check "$tmp/usr"
gzip "$tmp/usr/share/man/man1/linnet.1"
ok "with pages that are packed" tools/package.sh check "$tmp/usr"
for f in share/linnet/en/words.lm share/man/man1/linnet-align.1 lib/liblinnet.so.1; do
    mv "$tmp/usr/$f" "$tmp/kept"
    is "without $f it is not" "$tmp/usr lacks $f" "$(tools/package.sh check "$tmp/usr" 2>&1)"
    mv "$tmp/kept" "$tmp/usr/$f"
done
case $(getconf GNU_LIBC_VERSION 2> /dev/null) in
glibc*)
    ok "no file needs a newer glibc than this" tools/package.sh check "$tmp/usr" "$(getconf GNU_LIBC_VERSION | sed 's/.* //')"
    has "each needs a newer one than 2.1" "$(tools/package.sh check "$tmp/usr" 2.1 2>&1)" "lib/liblinnet.so.1.0.0 needs glibc 2."
    if tools/package.sh check "$tmp/usr" 2.1 2> /dev/null; then fail "which is an error"; else pass; fi ;;
esac
finish
