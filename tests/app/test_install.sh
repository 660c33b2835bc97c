# [slow native release] make install: the files it installs, and that it does not build again what is built. With a fake compiler, in a
# tree of links.
. tests/app/common.sh

top=$PWD tree=$tmp/tree
mkdir -p "$tree" "$tmp/bin"
for f in "$top"/*; do
    case ${f##*/} in build) ;; *) ln -s "$f" "$tree/" ;; esac
done
# A compiler that records what it is asked to make; as the program it copies the real one.
cat > "$tmp/bin/pretended-cc" <<END
#!/bin/sh
while [ \$# -gt 0 ]; do
    case \$1 in
    -o) out=\$2; shift ;;
    --version) echo pretended; exit 0 ;;
    esac
    shift
done
[ -n "\$out" ] || exit 0
echo "\${out#build/release/}" | sed s,^obj/,, >> "$tmp/made"
case \$out in
*/linnet) printf '#!/bin/sh\nexec "%s" "\$@"\n' '$LINNET' > "\$out" && chmod +x "\$out" ;;
*) echo object > "\$out" ;;
esac
END
chmod +x "$tmp/bin/pretended-cc"
PATH=$tmp/bin:$PATH
unset MAKEFLAGS MAKELEVEL CONFIG PREFIX DESTDIR # set by a make that runs this test
build() {
    : > "$tmp/made"
    make -C "$tree" CC=pretended-cc OBJCOPY=true NVCC= WEB= EXTRA_CFLAGS= ISA_OBJ= LIB_SRC='base/system.c base/status.c linnet/find.c' APP_SRC='app/common.c app/main.c' "$@" \
        > "$tmp/log" 2>&1 || { fail "make $*" "$(tail -n 5 "$tmp/log")"; return; }
    made=$(LC_ALL=C sort "$tmp/made" | xargs)
}
if ! command -v make > /dev/null || ! pkg-config --exists sndfile 2> /dev/null; then
    pass # this machine runs the tests but does not build
    finish
fi
build all
is "make builds all" \
    "app/common.o app/main.o base/status.o base/system.o lib/liblinnet.so.1.0.0 lib/linnet.o linnet linnet/find.o" "$made"
build all
is "make again builds nothing" "" "$made"
build install DESTDIR="$tmp/root"
is "make install after it builds nothing" "" "$made"
build install DESTDIR="$tmp/root" PREFIX=/opt/x
is "another PREFIX compiles the two files that contain it, and links" \
    "base/system.o lib/liblinnet.so.1.0.0 lib/linnet.o linnet linnet/find.o" "$made"
build install DESTDIR="$tmp/root" PREFIX=/opt/x
is "and then nothing" "" "$made"

# Every file that the help and the manual pages name is installed.
root=$tmp/root/opt/x
ok "the program" test -x "$root/bin/linnet"
for f in share/linnet/en/default.safetensors share/linnet/en/words.dict.gz share/doc/linnet/LICENSE share/man/man1/linnet.1 \
    share/man/man1/linnet-align.1 share/man/man3/linnet.3 lib/liblinnet.so lib/liblinnet.so.1 lib/liblinnet.a include/linnet.h \
    lib/pkgconfig/linnet.pc lib/cmake/linnet/linnet-config.cmake lib/cmake/linnet/linnet-config-version.cmake share/doc/linnet/examples/file.c share/bash-completion/completions/linnet share/zsh/site-functions/_linnet; do
    ok "$f" test -s "$root/$f"
done
grep -ho 'docs/[a-z-]*\.md' app/*.c | sort -u > "$tmp/named"
ok "help names documentation" test -s "$tmp/named"
while read -r f; do ok "$f is installed" test -s "$root/share/doc/linnet/$f"; done < "$tmp/named"
for f in README.md docs/README.md docs/live.md; do # as they stand beside each other in the tree
    grep -o '](\(\.\./\)\{0,1\}[A-Za-z/-]*\.md' "$root/share/doc/linnet/$f" | sed 's/^](//; /recipes\|bench\|CONTRIBUTING/d' > "$tmp/links"
    while read -r link; do ok "$f: $link" test -s "$root/share/doc/linnet/$(dirname "$f")/$link"; done < "$tmp/links"
done
has "programs find the library in this prefix" "$(PKG_CONFIG_PATH="$root/lib/pkgconfig" pkg-config --libs linnet)" "-Wl,-rpath,/opt/x/lib"
hasnt "CMake's files are complete" "$(cat "$root/lib/cmake/linnet/"*)" "@"
cp "$LINNET" "$root/bin/linnet"
for name in default small offline words; do
    has "$name, by its name" "$("$root/bin/linnet" info $name)" "licence:          CC BY-SA 4.0"
done
has "help of an installed program names it" "$("$root/bin/linnet" align --help)" "/opt/x/share/doc/linnet/docs/alignment.md"
has "and so does the manual page" "$(cat "$root/share/man/man1/linnet-align.1")" "See /opt/x/share/doc/linnet/docs/alignment.md"
hasnt "without the folder it was staged in" "$(cat "$root/share/man/man1/"*)" "$tmp"
build uninstall DESTDIR="$tmp/root" PREFIX=/opt/x
is "make uninstall leaves nothing" "" "$(find "$root" -type f -o -type l)"
finish
