#!/bin/sh
# mutate.sh FOLDER [NAME]: leaves out each barrier, wait and syncwarp of the kernels once, and says whether the machine of tests/ptx
# finds it. FOLDER/*.ptx is what make ptx-programs makes (build/ptx/80). NAME: a part of the kernels' names.
#
# Of each kernel that a case of tests/kernels/ops_cases* launches, one instance of its template, with the case in which it does least.
# Writes a Markdown table: kernel, place, what was left out, and what found it: a check of the machine, a wrong result, or nothing.
# About an hour of one core for all of them.
set -u
cd "$(dirname "$0")/../.." || exit 2
folder=$1 wanted=${2-}
test=$PWD/build/release/tests/cuda/test_cuda_ops
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LINNET_EMULATION_PTX="$folder" LINNET_EMULATION_CAPABILITY=80 LINNET_EMULATION_SHARED=163 CK_FORK=no CK_DEFAULT_TIMEOUT=3000

# Kernels by case: name, warp-instructions, case.
cases=$(sed -n 's/^    {"\([a-z_]*\)", ops_case.*/\1/p' tests/kernels/ops_cases.c)
for c in $cases; do
    rm -f "$work/counts"
    LINNET_EMULATION_PTX_COUNTS=$work/counts LINNET_TEST_CASE=$c "$test" > /dev/null 2>&1
    awk -F'\t' -v c="$c" '{ for (i = 2; i <= 13; i++) n[$1] += $i; waits[$1] += $11 } END { for (k in n) if (waits[k]) print k "\t" n[k] "\t" c }' "$work/counts"
done > "$work/all"
# Of each template the instance and case with the least work; of forms for more than 32 threads and the like each its own name.
sort -t "$(printf '\t')" -k 2n "$work/all" | awk -F'\t' -v wanted="$wanted" '
    { base = $1; sub(/^_Z[0-9]*/, "", base); sub(/IL.*/, "", base); if (wanted && index($1, wanted) == 0) next; if (!seen[base]++) print }' > "$work/list"

echo '| kernel | place | left out | found by |'
echo '|---|---|---|---|'
while IFS="$(printf '\t')" read -r kernel _ case; do
    i=0
    while :; do
        LINNET_EMULATION_PTX_WITHOUT=$kernel,$i LINNET_TEST_CASE=$case timeout 900 "$test" > "$work/out" 2>&1 < /dev/null
        status=$?
        grep -aq 'has not as many' "$work/out" && break
        what=$(sed -n 's/^ptx: left out: //p' "$work/out" | head -n 1)
        place=${what%%: *}
        found=$(sed -n 's/^ptx: error: .*lane -*[0-9]*: //p' "$work/out" | head -n 1)
        [ -n "$found" ] || { grep -aq ':F:' "$work/out" && found='a wrong result'; }
        [ -n "$found" ] || { [ $status != 0 ] && found="status $status"; }
        [ -n "$found" ] || { grep -aq 'the place was reached' "$work/out" || found='not reached'; }
        echo "| $kernel | $(basename "$place") | $(echo "${what#*: }" | tr -d '\n' | tr '\t' ' ') | ${found:-**nothing**} |"
        i=$((i + 1))
    done
done < "$work/list"
