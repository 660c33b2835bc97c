#!/usr/bin/env bash
# turns.sh - two or more versions of the source against each other, in one process and in turns: processor time of a tick of live
# streams of the paper's network, or of a model. For machines so busy that two runs cannot be compared.
#
#   bench/turns.sh [--streams 1] [--tick 1] [--rows 4] [--seconds 20] [--model FILE] TREE...
#
# A TREE is a working copy in which `make` has built build/release/liblinnet.a (git worktree add makes another one). In a tick,
# --tick of the --streams bring --rows frames each. Equal checksums: the results are the same bits.
set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
streams=1 tick=1 rows=4 seconds=20 model=
usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
while [ $# -gt 1 ]; do
    case $1 in
    --streams | --tick | --rows | --seconds) declare "${1#--}=$2"; shift 2 ;;
    --model) model=$(realpath "$2"); shift 2 ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] && [ "$1" != --help ] || usage
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libraries=$(pkg-config --libs sndfile soxr kissfft-float libcjson zlib)
cc=${CC:-gcc}
$cc -std=gnu11 -O2 "$here/turns.c" -o "$work/turns" -ldl
sides=()
for tree in "$@"; do
    side=./${#sides[@]}-$(basename "$(cd "$tree" && pwd)").so
    # shellcheck disable=SC2086
    $cc -std=gnu11 -O2 -fPIC -shared -I"$tree" "$here/turns_side.c" -o "$work/$side" "$tree/build/release/liblinnet.a" $libraries \
        -ldl -lpthread -lm -Wl,-Bsymbolic
    sides+=("$side")
done
cd "$work"
./turns "$streams" "$tick" "$rows" "$seconds" "$model" "${sides[@]}"
