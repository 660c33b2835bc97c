#!/bin/bash
# parallel.sh [ROUNDS]: training frames per second of one process with N threads and of N processes with one thread each (mpirun), N = the
# cores of this machine, at most 8, in turn; the best of ROUNDS (3) each. The network of recipes/open/causal.conf on random sound.
set -euo pipefail
rounds=${1:-3}
linnet=${LINNET:-build/release/linnet}
sound=$(dirname "$linnet")/tests/app/sound
command -v mpirun > /dev/null || { echo "parallel.sh: mpirun is not installed" >&2; exit 1; }
[ -x "$sound" ] || { echo "parallel.sh: build $sound first" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=$(nproc)
[ "$n" -le 8 ] || n=8
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

mkdir "$tmp/data"
for i in $(seq 10 $((9 + 16 * n))); do
    "$sound" "$tmp/data/u$i.wav" seconds=6 seed="$i"
    echo "u$i u$i.wav" >> "$tmp/data/wav.scp"
    echo "u$i ONE TWO THREE FOUR ONE TWO THREE FOUR" >> "$tmp/data/text"
    echo "u$i s$((i % 4))" >> "$tmp/data/utt2spk"
done
printf 'one W AH N\ntwo T UW\nthree TH R IY\nfour F AO R\n' > "$tmp/dict"
"$linnet" prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" --stack 3 -q -o "$tmp/set.lfc"

# speed COMMAND...: frames per second of the second epoch, and of the whole run per second of processor time, which other work on the
# machine disturbs less; into $tmp/said
TIMEFORMAT='%U %S'
speed() {
    rm -rf "$tmp/run"
    { time "$@" train recipes/open/causal.conf --train "$tmp/set.lfc" --folder "$tmp/run" --epochs 2 --batch-frames $((2400 * n)) \
        --device cpu -q > "$tmp/out" 2>&1; } 2> "$tmp/time" || { cat "$tmp/out" >&2; exit 1; }
    tail -n 1 "$tmp/run/log.tsv" | cut -f 8 >> "$tmp/$said.wall"
    awk -v frames="$((2 * 16 * n * 600))" '{ printf "%.0f\n", frames / ($1 + $2) }' "$tmp/time" >> "$tmp/$said.processor"
}
best() { sort -n "$1" | tail -n 1; }
for ((i = 0; i < rounds; i++)); do
    said=one speed "$linnet"
    said=many speed mpirun --bind-to none -np "$n" "$linnet"
done
echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
for kind in "one:one process, $n threads" "many:$n processes, 1 thread each"; do
    at=$tmp/${kind%%:*}
    echo "${kind#*:}: $(best "$at.wall") frames/s (of: $(paste -sd ' ' "$at.wall")); per second of processor time $(best "$at.processor") (of: $(paste -sd ' ' "$at.processor"))"
done
