#!/bin/sh
# places.sh JOBS: builds and tests a copy of the tree in conditions where programs often fail: a path with blanks, a TMPDIR with a
# quote, a Turkish locale (i is not the lower case of I, the decimal sign is a comma), a read-only home, an unprivileged user.
# Run from the root of the tree; uses the objects of build/release if they exist. A condition that cannot be set up is reported.
jobs=${1:-2}
place=$(mktemp -d) || exit 1
chmod 755 "$place"
trap 'chmod -R u+w "$place"; rm -rf "$place"' EXIT
tree="$place/a tree with blanks"
mkdir -p "$tree" "$place/it's" "$place/home" || exit 1

if git ls-files > "$place/files" 2> /dev/null; then
    tar -cf - -T "$place/files" | tar -xf - -C "$tree"
else # not a clone
    tar -cf - --exclude ./build . | tar -xf - -C "$tree"
fi
[ ! -d build/release ] || { mkdir "$tree/build" && cp -a build/release "$tree/build/"; }
touch "$tree/app/main.c" # so that there is something to compile and link

TMPDIR="$place/it's" HOME="$place/home"
export TMPDIR HOME
unset XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME CCACHE_DIR LANG LANGUAGE
export CCACHE_DISABLE=1 LINNET_CUDA_DRIVER=none
chmod 555 "$place/home"

if localedef -i tr_TR -f UTF-8 "$place/tr_TR.UTF-8" 2> /dev/null; then
    export LOCPATH="$place"
else
    echo 'places: cannot make a Turkish locale (install the package locales): not tested'
fi
export LC_ALL=tr_TR.UTF-8

as=
if [ "$(id -u)" = 0 ]; then
    if setpriv --reuid=65534 --regid=65534 --clear-groups true 2> /dev/null; then
        chown -R 65534:65534 "$tree" "$place/it's"
        as='setpriv --reuid=65534 --regid=65534 --clear-groups'
    else
        echo 'places: setpriv is not installed: tested as root'
    fi
fi

cd "$tree" || exit 1
# All except the numerical tests of kernels and the emulated GPU, which do not depend on these conditions.
sources=$(ls tests/*/test_*.c | grep -v -e /kernels/ -e /paper/ -e /cuda/)
programs=$(echo "$sources" | sed 's,^\(.*\)\.c$,build/release/\1,')
scripts=$(ls tests/app/test_*.sh | sed 's,^,build/release/,')
tools='build/release/tests/app/sound build/release/tests/app/rows build/release/tests/app/gpu_cases build/release/tests/recipes/sphere'
$as make -j"$jobs" build/release/linnet $tools $programs > "$place/log" 2>&1 || {
    grep -v '^  [A-Z]' "$place/log" | tail -n 50
    echo '0 passed, 1 failed'
    exit 1
}
$as tests/run.sh "$jobs" $programs $scripts
