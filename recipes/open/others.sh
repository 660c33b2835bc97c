#!/usr/bin/env bash
# Data directories of speechocean762 and of one speaker of VCTK, as the shipped models had them (README.md, "Other speech").
#
#   recipes/open/others.sh [--speechocean DIR] [--vctk DIR] [--speaker p239] --corpus DIR --output DIR
#
# --speechocean: the folder with train/ and WAVE/. OUTPUT/train_speechocean gets its training half without train_nonnative and without
# the speakers of dev_nonnative of --corpus. --vctk: the folder with txt/ and wav48/. OUTPUT/train_vctk gets the sentences of --speaker
# without abbreviations. The sound stays where it is.
. "$(dirname "$0")/../common.sh"

speechocean= vctk= speaker=p239 corpus= output= work=.
flags=" " values=" speechocean vctk speaker corpus output linnet "
options "$@"
export LC_ALL=C
[ -n "$output" ] || die "where to? give --output DIR"
[ -n "$speechocean$vctk" ] || die "which speech? give --speechocean DIR or --vctk DIR"

# directory NAME: lines NAME<tab>SPEAKER<tab>FILE<tab>WORDS on standard input, as a data directory
directory() {
  mkdir -p "$output/$1"
  sort | awk -F'\t' -v out="$output/$1" '{ print $1, $2 > (out "/utt2spk"); print $1, $3 > (out "/wav.scp"); print $1, $4 > (out "/text") }'
  [ -s "$output/$1/text" ] || die "no utterance of $1 is left: is the sound there?"
  echo "others.sh: $(wc -l < "$output/$1/text") utterances in $output/$1"
}

if [ -n "$speechocean" ]; then
  for file in "$speechocean"/train/{text,utt2spk,wav.scp} "$corpus"/{train,dev}_nonnative/utt2spk; do [ -f "$file" ] || die "$file does not exist"; done
  # utterance 000050003 of speaker 0005 is so0005-000050003 in the corpus
  awk -v OFS='\t' -v root="$(cd "$speechocean" && pwd)" '
    FILENAME ~ /train_nonnative\/utt2spk$/ { used[$1] = 1; next }
    FILENAME ~ /dev_nonnative\/utt2spk$/ { held[$2] = 1; next }
    FILENAME ~ /utt2spk$/ { speaker[$1] = "so" $2; next }
    FILENAME ~ /wav.scp$/ { file[$1] = root "/" $2; next }
    { id = $1; name = speaker[id] "-" id; sub(/^[^ \t]+[ \t]+/, "")
      if (!(name in used) && !(speaker[id] in held)) print name, speaker[id], file[id], $0 }' \
    "$corpus"/{train,dev}_nonnative/utt2spk "$speechocean"/train/{utt2spk,wav.scp,text} | directory train_speechocean
fi

if [ -n "$vctk" ]; then
  root=$(cd "$vctk" && pwd)
  for file in "$root/txt/$speaker"/*.txt; do
    name=$(basename "$file" .txt)
    [ -f "$root/wav48/$speaker/$name.wav" ] || continue
    printf '%s\t%s\t%s\t%s\n' "vctk_$name" "vctk_$speaker" "$root/wav48/$speaker/$name.wav" "$(tr -s '\r\n' ' ' < "$file")"
  done | awk -F'\t' -v OFS='\t' '
    { n = split($4, words, /[^A-Za-z\x27]+/); line = ""; short = 0
      for (i = 1; i <= n; i++) {
        if (words[i] ~ /^(Mr|Mrs|Dr|St)$/ || line != "" && words[i] ~ /^[A-Z][A-Z][A-Z]?$/) short = 1
        if (words[i] != "") line = line (line == "" ? "" : " ") toupper(words[i])
      }
      if (!short && line != "") print $1, $2, $3, line }' | directory train_vctk
fi
