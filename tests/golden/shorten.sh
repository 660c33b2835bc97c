#!/bin/bash
# shorten.sh [FOLDER]: makes the golden files of shorten. tests/recipes/sphere encodes, ffmpeg decodes; FOLDER/samples.txt has, for each
# file, the channels, the frames and the CRC-32 of the s16le samples that ffmpeg gave. Needs ffmpeg.
#
#   make build/release/tests/recipes/sphere build/release/tests/app/sound && tests/golden/shorten.sh
set -euo pipefail
to=${1:-tests/golden/shorten}
tools=build/release/tests
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$to"
: > "$to/samples.txt"

# Speech-like sound with silence before and after it, so that ZERO is used.
"$tools/app/sound" "$tmp/mono.wav" seconds=0.08 seed=3
"$tools/app/sound" "$tmp/stereo.wav" seconds=0.06 seed=4 channels=2
for name in mono stereo; do
    { head -c 1400 /dev/zero; tail -c +45 "$tmp/$name.wav"; head -c 600 /dev/zero; } > "$tmp/$name.raw"
done

crc() { gzip -c | tail -c 8 | od -An -tx1 -N 4 | awk '{ print $4 $3 $2 $1 }'; }

# golden NAME SOUND CHANNELS OPTIONS...
golden() {
    local name=$1 sound=$2 channels=$3
    shift 3
    "$tools/recipes/sphere" "$tmp/$sound.raw" "$to/$name.sph" channels="$channels" "$@"
    ffmpeg -v error -y -i "$to/$name.sph" -f s16le -c:a pcm_s16le "$tmp/out.raw" < /dev/null
    echo "$name.sph $channels $(($(stat -c %s "$tmp/out.raw") / 2 / channels)) $(crc < "$tmp/out.raw")" >> "$to/samples.txt"
}

for function in diff0 diff1 diff2 diff3 qlpc; do golden "v2-$function" mono 1 function=$function lpc=4; done
golden v1-diff0 mono 1 version=1 function=diff0 lpc=4
golden v1-qlpc mono 1 version=1 function=qlpc
golden v1 mono 1 version=1 order=01 lpc=4
golden v3 mono 1 version=3 lpc=4
golden v2-stereo stereo 2 mean=7 lpc=4
golden v1-stereo stereo 2 version=1 lpc=4
golden v2-order20 mono 1 function=qlpc lpc=20 block=600
golden v2-nomean mono 1 mean=0 lpc=0 block=100
golden v2-shift mono 1 drop_bits=3 lpc=4
golden v1-shift-diff0 mono 1 drop_bits=5 version=1 function=diff0 lpc=4
golden v2-verbatim mono 1 lpc=4 verbatim="a header of another format"
