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
ok "all passed" tests/groups.sh passed all
is "it is written down" "cuda variants" "$(cut -d ' ' -f 1 .ci/passed | xargs)"
unchanged() { ! tests/groups.sh changed "$1"; }
ok "nothing changed" unchanged cuda
echo 'int z;' >> app/y.c
ok "a file that the group does not cover" unchanged cuda
echo 'int z;' >> kernels/x.c
ok "a file that it covers" tests/groups.sh changed cuda
tests/groups.sh passed cuda
ok "passed again" unchanged cuda
ok "another group knows nothing of it" tests/groups.sh changed variants
echo > kernels/new.c
ok "a new file that git does not know" tests/groups.sh changed cuda
rm kernels/new.c
echo >> tests/cuda/test_one.c
ok "a test of the group" tests/groups.sh changed cuda
run() { tests/groups.sh "$@" > "$tmp/.out" 2> "$tmp/.err"; status=$?; }
run changed nonsense
is "a group that does not exist" 2 "$status"
cd "$OLDPWD" || exit 1
finish
