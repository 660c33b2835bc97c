#!/bin/sh
# groups.sh - the groups of tests that make check leaves out, and whether they have to run: they cover only a part of the sources.
#
#   groups.sh changed GROUP    succeeds if the files that this group covers are not those of .ci/passed, or if in doubt
#   groups.sh lines GROUP      prints the lines of .ci/passed for the group (all: each) with the files as they are now
#   groups.sh passed FILE      writes these lines to .ci/passed; commit it. FILE is from before the run: a file that was edited
#                              meanwhile may not have been tested
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
lines)
    git rev-parse --git-dir > /dev/null 2>&1 || exit 0
    groups=$2
    [ "$2" != all ] || groups='cuda variants'
    for g in $groups; do
        now=$(hash "$g") || exit 2
        echo "$g $now"
    done ;;
passed)
    [ -s "$2" ] || exit 0
    cat "$2" .ci/passed 2> /dev/null | sort -s -u -k 1,1 > .ci/passed.new && mv .ci/passed.new .ci/passed ;;
*) echo 'groups.sh changed|lines GROUP, groups.sh passed FILE' >&2; exit 2 ;;
esac
