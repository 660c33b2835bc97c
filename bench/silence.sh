#!/usr/bin/env bash
# silence.sh - results where nobody speaks: false phonemes and words a minute in silence, noise, hum, music, clicks and babble.
#
#   bench/silence.sh [--seconds 300] [--work exp/silence] [--model FILE] [--linnet build/release/linnet]
#                    [--sound build/release/tests/app/sound] [--kinds "white:-40 keys:-60" | --sounds FOLDER]
#
# The sounds come from tests/app/sound.c, each from a seed; its first lines describe them. `level` is the root mean square of
# the whole sound in dBFS. Babble is many voices made of five sentences by one reader (Debian: pocketsphinx-testdata), each voice
# with its own speed and pitch; without that package it is left out. Its words are speech that nobody can follow, not silence.
# --sounds: the WAV files of a folder instead, such as the music and the typing that recipes/open/quiet.sh makes (Debian: sox).
# All commands run with default options:
#
#   phonemes   linnet transcribe
#   words      linnet transcribe --words, one result for the whole sound (a search goes on until an endpoint after a minute)
#   live       linnet listen --words: phonemes and words of the utterances that its endpoints find
#              (not of a bidirectional model, which cannot listen: -)
#   sure       the words of those of these utterances whose phonemes have a mean confidence of 0.5 or more: what is left for a
#              program that reads the final lines of --json and drops the others
#
# Words outside the lexicon count as words. The generator is made by `make build/release/tests/app/sound`.
. "$(dirname "$0")/../recipes/common.sh"
seconds=300 work=exp/silence model=share/linnet/en/default.safetensors
sound=build/release/tests/app/sound
kinds= sounds=
flags=" " values=" seconds work model sound kinds sounds linnet "
options "$@"
[ -n "$sounds" ] || [ -x "$sound" ] || die "$sound does not exist; run make $sound"
[ -z "$sounds" ] || command -v soxi > /dev/null || die "soxi is missing; apt-get install sox"
export LINNET_MODEL=$model

speech=/usr/share/pocketsphinx/test/data/librivox
[ -n "$kinds" ] || kinds="silence:0 white:-20 white:-40 white:-60 pink:-20 pink:-40 pink:-60 brown:-20 brown:-40 brown:-60
       hum50:-20 hum50:-40 hum60:-20 hum60:-40 room:-50 room:-60 keys:-40 keys:-60 music:-20 music:-40
       babble:-20 babble:-40"
if [ -z "$sounds" ] && [ -d $speech ]; then
    for f in $speech/*.wav; do tail -c +45 "$f"; done > "$work/speech.raw" # WAV headers of 44 bytes, 16 kHz
fi

lines() { grep -vc '^;;' || true; }
# row FILE SECONDS NAME LEVEL: counts in a file and prints a line of the table
row() {
    phonemes=$("$linnet" transcribe -q -f ctm "$1" | lines)
    words=$("$linnet" transcribe -q --words -f ctm "$1" | lines)
    live="- - -"
    if [ -n "$streams" ]; then
        "$linnet" listen -q --words --json --no-paced --from "$1" | grep '"type":"final"' > "$work/live" || true
        live=$(awk -f bench/sure.awk "$work/live")
    fi
    printf '           %-20s %4s dB' "$3" "$4"
    echo "$phonemes $words $live" |
        awk -v s="$2" '{ for (i = 1; i <= NF; i++) printf "  %8s", $i == "-" ? $i : sprintf("%.1f", $i * 60 / s); print "" }'
}

streams=$("$linnet" info --json | grep '"causal": true' || true)
what=$(basename "$sounds")
[ -n "$sounds" ] || what="$seconds s of each"
"$linnet" info | sed -n 's/^name: *//p; s/^fingerprint: */fingerprint /p' | paste -sd' ' | sed "s/\$/, $(date +%Y-%m-%d), $what/"
echo "a minute:  sound                  level    phonemes     words  live: ph.     words      sure"
if [ -n "$sounds" ]; then
    for file in "$sounds"/*.wav; do
        row "$file" "$(soxi -D "$file")" "$(basename "$file" .wav)" -
    done
else
    for what in $kinds; do
        kind=${what%:*} level=${what#*:}
        [ "$kind" != babble ] || [ -f "$work/speech.raw" ] || continue
        "$sound" "$work/one.wav" kind="$kind" level="$level" seconds="$seconds" from="$work/speech.raw"
        row "$work/one.wav" "$seconds" "$kind" "$level"
    done
fi
rm -f "$work/one.wav" "$work/live" "$work/speech.raw"
