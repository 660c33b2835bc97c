#!/bin/sh
# groups.sh - the groups of tests that make check leaves out, and whether they have to run: they cover only a part of the sources.
#
#   groups.sh changed GROUP    succeeds if the files that this group covers are not those of .ci/passed, or if in doubt
#   groups.sh passed GROUP     writes to .ci/passed that the group (all: each) passes with the files as they are; commit it
#
# A line of .ci/passed: the group, a hash of the contents of its files, of the compiler's version and of the machine's kind.
cd "$(dirname "$0")/.." || exit 2

covers() {
    case $1 in
    cuda) echo 'Makefile */*.mk */*/*.mk base kernels model paper train bench/gpu tools/check-gpu.sh tools/gpu-kit.sh tests/*.* tests/cuda tests/emulation tests/kernels tests/paper' ;;
    variants) echo 'Makefile */*.mk base kernels model paper train recipes/common.sh recipes/paper tests/*.* tests/kernels tests/model tests/paper tests/train' ;;
    *) echo "groups.sh: unknown group $1" >&2; exit 2 ;;
    esac
}
hash() {
    files=$(covers "$1") || exit
    {
        # shellcheck disable=SC2086 # patterns of git
        git ls-files -co --exclude-standard -z -- $files $(tests/tagged.sh "$1" tests/*/test_*) 2> /dev/null | LC_ALL=C sort -z | xargs -0 sha256sum
        cc -dumpfullversion
        uname -m
    } 2> /dev/null | sha256sum | cut -c 1-32
}

case $1 in
changed)
    git rev-parse --git-dir > /dev/null 2>&1 || exit 0
    now=$(hash "$2") || exit 2
    ! grep -qF "$2 $now" .ci/passed 2> /dev/null ;;
passed)
    git rev-parse --git-dir > /dev/null 2>&1 || exit 0
    groups=$2
    [ "$2" != all ] || groups='cuda variants'
    for g in $groups; do
        { grep -v "^$g " .ci/passed 2> /dev/null; echo "$g $(hash "$g")"; } | sort > .ci/passed.new && mv .ci/passed.new .ci/passed
    done ;;
*) echo 'groups.sh changed|passed GROUP' >&2; exit 2 ;;
esac
