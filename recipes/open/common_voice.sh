#!/usr/bin/env bash
# Makes a data directory from lists of Common Voice (https://commonvoice.mozilla.org, English, CC0) and their clips.
#
#   recipes/open/common_voice.sh --list FILE [--list FILE ...] --output DIR [--except recipes/open/common-voice.except]
#
# FILE is a list of the first release (cv-valid-dev.csv, its clips in cv-valid-dev/ beside it) or of a later one (validated.tsv, its clips
# in clips/ beside it). Writes DIR/{wav.scp,text,utt2spk}; the clips stay where they are.
# Left out: the utterances whose names --except has, one per line; clips that are missing, or not 1 to 20 seconds long by their size;
# sentences with digits or letters other than A to Z, or with words in capitals, which may be read as letters; sentences with more than
# half as many votes against as for.
# common-voice.except names utterances more than half of whose phonemes differ from those that the offline model of that time recognised.
. "$(dirname "$0")/../common.sh"

list=() output= except=$(dirname "$0")/common-voice.except work=.
flags=" " values=" output except linnet " lists=" list "
options "$@"
export LC_ALL=C
[ ${#list[@]} -gt 0 ] || die "which list? give --list cv-valid-dev.csv or --list validated.tsv"
[ -n "$output" ] || die "where to? give --output DIR"
[ -f "$except" ] || die "$except does not exist"

# Lines on standard input: clip, votes for, votes against, name, sentence, separated by tabs. Lines of text on standard output, and of
# wav.scp, with a tab between.
utterances() { # utterances FOLDER BYTES: the clips' folder, and the bytes of a second
  awk -F'\t' -v except="$except" '
    BEGIN { while ((getline name < except) > 0) drop[name] = 1 }
    {
      text = $5; gsub(/\xe2\x80[\x98\x99]/, "\x27", text); gsub(/\xe2\x80[\x90-\x95\x9c\x9d\xa6]/, " ", text)
      gsub(/[-.,;:!?"()\/]/, " ", text); gsub(/&/, " and ", text)
      if ($4 in drop || text !~ /^[A-Za-z\x27 ]+$/ || 2 * $3 > $2) next
      n = split(text, words, " "); line = ""
      for (i = 1; i <= n; i++) {
        word = words[i]; sub(/^\x27+/, "", word); sub(/\x27+$/, "", word)
        if (word ~ /[A-Z][A-Z]/ || word ~ /^[B-HJ-Z]$/ || word ~ /^(St|vs|etc|No|Jr|Sr|Co|Ltd|Inc)$/ && i > 1) next
        word = toupper(word)
        if (word == "MR") word = "MISTER"
        if (word == "MRS") word = "MISSUS"
        if (word == "DR") word = "DOCTOR"
        if (word != "") line = line " " word
      }
      if (line != "") print $1 "\t" $4 line
    }' | while IFS=$'\t' read -r clip line; do
    bytes=$(stat -c %s "$1/$clip" 2> /dev/null) || continue
    [ "$bytes" -ge "$2" ] && [ "$bytes" -le $((20 * $2)) ] || continue
    printf '%s\t%s %s\n' "$line" "${line%% *}" "$1/$clip"
  done
}

# The first release: sentences in small letters without punctuation; speakers are not known, so each clip is its own.
first() {
  local set
  set=$(basename "$1" .csv)
  tail -n +2 "$1" | awk -F, -v OFS='\t' -v set="${set#cv-valid-}" '
    { clip = $1; sub(/.*\//, "", clip); number = clip; gsub(/.*-|[.]mp3$/, "", number)
      if ($2 !~ /  /) print clip, $3, 0, "cv1-" set "-" number, $2 }' | utterances "$(dirname "$1")/$set" 8000
}
later() { # speakers by the first 12 digits of the client's identity
  tail -n +2 "$1" | awk -F'\t' -v OFS='\t' '
    { number = $2; gsub(/.*_|[.]mp3$/, "", number); print $2, $4, $5, "cv" substr($1, 1, 12) "-" number, $3 }' |
    utterances "$(dirname "$1")/clips" 6000
}

mkdir -p "$output"
for file in "${list[@]}"; do
  [ -f "$file" ] || die "$file does not exist"
  file=$(cd "$(dirname "$file")" && pwd)/$(basename "$file")
  case $file in
    */cv-valid-*.csv) first "$file" ;;
    *.tsv) later "$file" ;;
    *) die "$file is neither cv-valid-*.csv nor *.tsv" ;;
  esac
done | sort -u -t $'\t' -k 1,1 > "$output/all"
[ -s "$output/all" ] || die "no utterance is left: are the clips there?"
cut -f 1 "$output/all" > "$output/text"
cut -f 2 "$output/all" > "$output/wav.scp"
awk '{ speaker = $1; if (speaker !~ /^cv1-/) sub(/-.*/, "", speaker); print $1, speaker }' "$output/text" > "$output/utt2spk"
rm "$output/all"
echo "common_voice.sh: $(wc -l < "$output/text") utterances in $output"
