#!/usr/bin/env bash
# Makes a data directory of the utterances that a teacher model has labelled with confidence.
#
#   recipes/open/labelled.sh --data DIR --labels FILE --output DIR [--above -0.3] [--except recipes/open/common-voice.held-out]
#
# --labels: lines of the utterance's name, seconds, the mean log-probability of a token, the probability that nobody speaks, and the text as
# written, separated by tabs. Kept are those of --data with more than --above, 2 to 30 words, 5 to 25 characters a second, and without
# digits, letters other than A to Z, or words in capitals, which may be read as letters.
# Left out are those whose names --except has, one per line: the word model was evaluated on them. Writes DIR/{wav.scp,text,utt2spk}.
. "$(dirname "$0")/../common.sh"

data= labels= output= above=-0.3 except=$(dirname "$0")/common-voice.held-out work=.
flags=" " values=" data labels output above except linnet "
options "$@"
export LC_ALL=C
[ -n "$output" ] || die "where to? give --output DIR"
for file in "$data/wav.scp" "$data/utt2spk" "$labels" "$except"; do [ -e "$file" ] || die "$file does not exist"; done

mkdir -p "$output"
sort -u -t $'\t' -k 1,1 "$labels" | awk -F'\t' -v above="$above" -v except="$except" '
  BEGIN { while ((getline name < except) > 0) drop[name] = 1 }
  $3 > above && $2 > 0 && !($1 in drop) {
    text = $5; gsub(/\xe2\x80[\x98\x99]/, "\x27", text); gsub(/\xe2\x80[\x90-\x95\x9c\x9d\xa6]/, " ", text)
    gsub(/[-.,;:!?"()\/]/, " ", text); gsub(/&/, " and ", text)
    if (text !~ /^[A-Za-z\x27 ]+$/) next
    n = split(text, words, " "); line = ""
    for (i = 1; i <= n; i++) {
      word = words[i]; sub(/^\x27+/, "", word); sub(/\x27+$/, "", word)
      if (word ~ /[A-Z][A-Z]/ || word ~ /^[B-HJ-Z]$/) next
      word = toupper(word)
      if (word == "MR") word = "MISTER"
      if (word == "MRS") word = "MISSUS"
      if (word == "DR") word = "DOCTOR"
      if (word != "") line = line " " word
    }
    length_of = length(line) - 1
    if (n >= 2 && n <= 30 && length_of >= 5 * $2 && length_of <= 25 * $2) print $1 line
  }' > "$output/text"
[ -s "$output/text" ] || die "no utterance is left of $labels"
for file in wav.scp utt2spk; do
  awk 'NR == FNR { kept[$1] = 1; next } $1 in kept' "$output/text" "$data/$file" | sort > "$output/$file"
done
awk 'NR == FNR { there[$1] = 1; next } $1 in there' "$output/wav.scp" "$output/text" > "$output/text.new"
mv "$output/text.new" "$output/text"
echo "labelled.sh: $(wc -l < "$output/text") utterances in $output"
