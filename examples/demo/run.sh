#!/bin/sh
# run.sh LINNET: five sentences of recorded speech (LibriVox, from Debian's pocketsphinx-testdata), recognised by the model that comes
# with linnet. Prints what was said, the recognised words and phonemes, the phonemes of the dictionary, and the error rates.
linnet=$1
here=$(dirname "$0")
audio=${DEMO_AUDIO:-/usr/share/pocketsphinx/test/data/librivox}
if [ ! -f "$audio/transcription" ]; then
    echo "The recordings are missing: install pocketsphinx-testdata, or set DEMO_AUDIO to a folder with its librivox files." >&2
    exit 1
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

"$linnet" phonemize --lexicon "$here/words.dict" --trn "$audio/transcription" -o "$tmp/ref.trn" || exit 1
begin=$(date +%s%N)
"$linnet" transcribe --quiet --format trn -o "$tmp/hyp.trn" "$audio"/*.wav || exit 1
took=$((($(date +%s%N) - begin) / 1000000))
"$linnet" transcribe --quiet --words --format trn -o "$tmp/words.trn" "$audio"/*.wav || exit 1
sed 's/<[^>]*>//g' "$audio/transcription" > "$tmp/said.trn"

while IFS= read -r line; do
    id=${line##*\(} id=${id%\)}
    said=$(echo "$line" | sed 's/<[^>]*>//g; s/ *([^()]*)$//; s/^ *//')
    reference=$(grep -F "($id)" "$tmp/ref.trn" | sed 's/ *([^()]*)$//')
    phones=$(grep -F "($id)" "$tmp/hyp.trn" | sed 's/ *([^()]*)$//')
    words=$(grep -F "($id)" "$tmp/words.trn" | sed 's/ *([^()]*)$//')
    printf '%s.wav\n  said       %s\n  words      %s\n  phonemes   %s\n  reference  %s\n\n' "$id" "$said" "$words" "$phones" "$reference"
done < "$audio/transcription"

# All five are of one chapter: one speaker.
"$linnet" score "$tmp/ref.trn" "$tmp/hyp.trn" > "$tmp/score" || exit 1
cat "$tmp/score"
"$linnet" score --name WER "$tmp/said.trn" "$tmp/words.trn" > "$tmp/words.score" || exit 1
tail -n 1 "$tmp/words.score"
printf '\nThe phonemes of 24.7 s of speech were recognised in %d.%02d s, including the start of the program.\n' $((took / 1000)) $((took % 1000 / 10))
echo "Try: $linnet transcribe YOUR.wav, and $linnet info to describe the model."
