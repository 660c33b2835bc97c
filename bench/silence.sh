#!/usr/bin/env bash
# silence.sh - results where nobody speaks: false phonemes and words a minute in silence, noise, hum, music, clicks and babble.
#
#   bench/silence.sh [--seconds 300] [--work exp/silence] [--model FILE] [--linnet build/release/linnet]
#                    [--sound build/release/tests/app/sound] [--kinds "white:-40 keys:-60"]
#
# The sounds come from tests/app/sound.c, each from a seed; its first lines say what they are. `level` is the root mean square of
# the whole sound in dBFS. Babble is many voices made of five sentences by one reader (Debian: pocketsphinx-testdata), each voice
# with its own speed and pitch; without that package it is left out. Its words are speech that nobody can follow, not silence.
# All is done with the options' defaults:
#
#   phonemes   linnet transcribe
#   words      linnet transcribe --words, one result for the whole sound (a search goes on until an endpoint after a minute)
#   live       linnet listen --words: phonemes and words of the utterances that its endpoints find
#   sure       the words of those of these utterances whose phonemes have a mean confidence of 0.5 or more: what is left for a
#              program that reads the final lines of --json and drops the others
#
# Words outside the lexicon count as words. The generator is made by `make build/release/tests/app/sound`.
set -eu -o pipefail
cd "$(dirname "$0")/.."
seconds=300 work=exp/silence model=share/linnet/default.safetensors linnet=build/release/linnet
sound=build/release/tests/app/sound
kinds=
usage() { sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 2; }
while [ $# -gt 1 ]; do
    case $1 in
    --seconds | --work | --model | --linnet | --sound | --kinds) declare "${1#--}=$2"; shift 2 ;;
    *) usage ;;
    esac
done
[ $# = 0 ] || usage
[ -x "$sound" ] || { echo "silence.sh: $sound does not exist; run make $sound" >&2; exit 1; }
export LINNET_MODEL=$model
mkdir -p "$work"

speech=/usr/share/pocketsphinx/test/data/librivox
[ -n "$kinds" ] || kinds="silence:0 white:-20 white:-40 white:-60 pink:-20 pink:-40 pink:-60 brown:-20 brown:-40 brown:-60
       hum50:-20 hum50:-40 hum60:-20 hum60:-40 room:-50 room:-60 keys:-40 keys:-60 music:-20 music:-40
       babble:-20 babble:-40"
if [ -d $speech ]; then
    for f in $speech/*.wav; do tail -c +45 "$f"; done > "$work/speech.raw" # WAV headers of 44 bytes, 16 kHz
fi

per_minute() { awk -v n="$1" -v s="$seconds" 'BEGIN { printf "%.1f", n * 60 / s }'; }
lines() { grep -vc '^;;' || true; }

"$linnet" info | sed -n 's/^name: *//p; s/^fingerprint: */fingerprint /p' | paste -sd' ' | sed "s/\$/, $(date +%Y-%m-%d), $seconds s of each/"
echo "a minute:  sound    level   phonemes  words   live: phonemes  words   sure"
for what in $kinds; do
    kind=${what%:*} level=${what#*:}
    [ "$kind" != babble ] || [ -f "$work/speech.raw" ] || continue
    "$sound" "$work/one.wav" kind="$kind" level="$level" seconds="$seconds" from="$work/speech.raw"
    phonemes=$("$linnet" transcribe -q -f ctm "$work/one.wav" | lines)
    words=$("$linnet" transcribe -q --words -f ctm "$work/one.wav" | lines)
    "$linnet" listen -q --words --json --no-paced --from "$work/one.wav" | grep '"type":"final"' > "$work/live" || true
    read -r live_phonemes live_words sure < <(awk -f bench/sure.awk "$work/live")
    printf '           %-8s %4d dB  %7s  %6s  %14s  %6s  %5s\n' "$kind" "$level" "$(per_minute "$phonemes")" "$(per_minute "$words")" \
        "$(per_minute "$live_phonemes")" "$(per_minute "$live_words")" "$(per_minute "$sure")"
done
rm -f "$work/one.wav" "$work/live" "$work/speech.raw"
