#!/usr/bin/env bash
# arm64.sh - the instructions that arm64 needs for a second of speech, counted in qemu's emulation, where no such processor is at hand
# to be timed; and those of x86-64 with AVX2, counted by valgrind.
#
#   bench/arm64.sh [--model FILE] [SOUND]
#
# `linnet transcribe` with one thread, of SOUND (10 s of synthetic sound if not given) and of its first half: the difference excludes the
# start of the program. Debian; `make arm64` builds the program.
set -eu -o pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
model=$root/share/linnet/en/default.safetensors
[ "${1:-}" != --model ] || { model=$(realpath "$2"); shift 2; }
case ${1:-} in -*) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
sound=${1:+$(realpath "$1")}
cd "$root"
make -s build/release/linnet build/release/tests/app/sound
make -s arm64
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -std=gnu11 -O2 -fPIC -shared bench/arm64_count.c -o "$work/count.so"
[ -n "$sound" ] || { sound=$work/ten.wav; build/release/tests/app/sound "$sound" seconds=10 seed=2; }
seconds=$(build/release/linnet transcribe -q -f json --model "$model" --device cpu "$sound" | sed -n 's/.*"seconds": *\([0-9.]*\).*/\1/p' | head -n 1)
half=$(awk -v s="$seconds" 'BEGIN { printf "%.2f", s / 2 }')

# count PRECISION END FILE: lines of a count and a function
count() {
    ARM64_COUNTS=$3 qemu-aarch64 -L build/arm64-root -plugin "$work/count.so" build/arm64/linnet transcribe -q -j 1 --device cpu \
        --model "$model" --precision "$1" --end "$2" "$sound" > /dev/null
}
# x86 END FILE
x86() {
    LINNET_ISA=avx2 valgrind -q --tool=callgrind --callgrind-out-file="$work/callgrind" build/release/linnet transcribe -q -j 1 \
        --device cpu --model "$model" --end "$1" "$sound" > /dev/null 2>&1
    callgrind_annotate --auto=no --threshold=100 "$work/callgrind" | sed -n 's/^ *\([0-9,]*\) *([^)]*) *[^:]*:\([^ ]*\).*/\1\t\2/p' | tr -d , > "$2"
}
report() { # NAME HALF WHOLE
    awk -v name="$1" -v seconds="$seconds" -v half="$half" -F'\t' '
        FNR == NR { before[$2] += $1; next }
        { n = $1 - before[$2]; delete before[$2]; all += n
          if ($2 ~ /^block_/) products += n
          else if ($2 ~ /scan|attention|take_decays|lay_out/) attention += n }
        END { s = (seconds - half) * 1e6
              printf "%-12s %8.1f %10.1f %10.1f %8.1f\n", name, all / s, products / s, attention / s, (all - products - attention) / s }' "$2" "$3"
}
echo "million instructions for a second of sound ($seconds s, $(basename "$model")), one thread"
printf '%-12s %8s %10s %10s %8s\n' '' all products attention rest
for precision in fp32 bf16; do
    count $precision "$half" "$work/half"
    count $precision "$seconds" "$work/whole"
    report "arm64, $precision" "$work/half" "$work/whole"
done
if command -v valgrind > /dev/null; then
    x86 "$half" "$work/half"
    x86 "$seconds" "$work/whole"
    report "AVX2, fp32" "$work/half" "$work/whole"
fi
