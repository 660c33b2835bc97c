# [native] tests/groups.sh and tests/tagged.sh: which tests have a tag, and when a group of tests has to run again.
. tests/app/common.sh
[ "${CONFIG:-release}" = release ] || finish
command -v git > /dev/null || { echo "skipped: git is not installed"; finish; }

tree=$tmp/tree
mkdir -p "$tree/tests/cuda" "$tree/tests/app" "$tree/kernels" "$tree/app" "$tree/.ci"
cp tests/groups.sh tests/tagged.sh "$tree/tests"
printf '// [cuda slow] One.\n' > "$tree/tests/cuda/test_one.c"
printf '# [slow] Two [cuda].\n' > "$tree/tests/app/test_two.sh"
printf '# Three.\n' > "$tree/tests/app/test_three.sh"
printf 'int x;\n' > "$tree/kernels/x.c"
printf 'int y;\n' > "$tree/app/y.c"
cd "$tree" || exit 1
is "a tag" tests/cuda/test_one.c "$(tests/tagged.sh cuda tests/*/test_*)"
is "either of two tags" "tests/app/test_two.sh tests/cuda/test_one.c" "$(tests/tagged.sh 'slow native' tests/*/test_* | xargs)"
ok "no repository: in doubt, the group runs" tests/groups.sh changed cuda
git init -q . && git add -A
ok "a group that never ran" tests/groups.sh changed cuda
passed() { tests/groups.sh lines "$1" > "$tmp/lines" && tests/groups.sh passed "$tmp/lines"; }
ok "all passed" passed all
is "it is written down" "cuda variants" "$(cut -d ' ' -f 1 .ci/passed | xargs)"
unchanged() { ! tests/groups.sh changed "$1"; }
ok "nothing changed" unchanged cuda
echo 'int z;' >> app/y.c
ok "a file that the group does not cover" unchanged cuda
echo 'int z;' >> kernels/x.c
ok "a file that it covers" tests/groups.sh changed cuda
passed cuda
ok "passed again" unchanged cuda
is "one line for each group" "cuda variants" "$(cut -d ' ' -f 1 .ci/passed | xargs)"
ok "another group knows nothing of it" tests/groups.sh changed variants
echo > kernels/new.c
ok "a new file that git does not know" tests/groups.sh changed cuda
rm kernels/new.c
echo >> tests/cuda/test_one.c
ok "a test of the group" tests/groups.sh changed cuda
groups() { ran tests/groups.sh "$@"; }
exits "a group that does not exist" 2 groups changed nonsense

# make check-cuda writes it down, with stand-ins for everything that builds or runs: MEANWHILE is done during the tests.
mkdir tools
printf '#!/bin/sh\n:\n' | tee tools/deps.sh > tools/record.sh
printf '#!/bin/sh\neval "$MEANWHILE"\n' > tests/run.sh
chmod +x tools/* tests/run.sh
cp "$OLDPWD/tests/tests.mk" tests
printf 'O := build/release/obj\nB := build/release\nCONFIG := release\nTEST_JOBS := 1\nall:\ninclude tests/tests.mk\nbuild/%%:\n\t@:\n' > Makefile
unset CHECK_ASAN
check() { MEANWHILE=$1; shift; export MEANWHILE; MAKEFLAGS='' ${MAKE:-make} -r check-cuda "$@" > "$tmp/.out" 2>&1; }
ok "half of the check" check : CHECK_ASAN=no
ok "is not written down" tests/groups.sh changed cuda
is "a check that fails" 2 "$(check false; echo $?)"
ok "is not written down either" tests/groups.sh changed cuda
ok "a file is edited while the tests run" check 'echo >> kernels/x.c'
ok "the group has to run again" tests/groups.sh changed cuda
ok "both halves of the check" check :
ok "are written down" unchanged cuda
cd "$OLDPWD" || exit 1
finish
