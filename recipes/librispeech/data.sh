#!/usr/bin/env bash
# Makes data directories from LibriSpeech's extracted archives.
#
#   recipes/librispeech/data.sh --corpus DIR --output DATA --sets SET,... [--allow-missing] [--stand-in]
#
# DIR holds the sets (dev-clean/1272/128104/1272-128104-0000.flac and 1272-128104.trans.txt beside them), or a folder LibriSpeech that does.
# Writes DATA/SET/{wav.scp,text,utt2spk}, with the readers as speakers. A set appears when it is complete; one that is there is kept.
# It stops, with the names, at sounds without transcripts, transcripts without sounds, repeated utterances, or a number of utterances
# that is not the corpus's. --allow-missing: continues with what is there. --stand-in: another corpus in the same layout, of any size.
. "$(dirname "$0")/../common.sh"

corpus= output= sets= allow_missing= stand_in= work=.
flags=" allow-missing stand-in "
values=" corpus output sets linnet "
options "$@"
say() { echo "data.sh: $*"; }
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
[ -d "$corpus" ] || die "$corpus is not a folder"
[ -n "$output" ] && [ -n "$sets" ] || die "--output DATA and --sets SET,... are needed"
[ ! -d "$corpus/LibriSpeech" ] || corpus=$corpus/LibriSpeech
corpus=$(cd "$corpus" && pwd)
case $corpus in *$'\n'*|*$'\t'*) die "the name of $corpus has a line end or a tab, which wav.scp cannot hold" ;; esac

# Utterances of the sets. They add up to the 292,367 of the corpus. The sets of Mini LibriSpeech are not checked.
utterances_of() {
  case $1 in
    dev-clean) echo 2703 ;; dev-other) echo 2864 ;; test-clean) echo 2620 ;; test-other) echo 2939 ;;
    train-clean-100) echo 28539 ;; train-clean-360) echo 104014 ;; train-other-500) echo 148688 ;;
  esac
}

# first_of FILE SENTENCE: how many lines it has, and the first ten
first_of() {
  local n
  n=$(wc -l < "$1")
  [ "$n" -gt 0 ] || return 0
  echo "data.sh: $n $2" >&2
  head -n 10 "$1" | sed 's/^/    /' >&2
  [ "$n" -le 10 ] || echo "    and $((n - 10)) more: $1" >&2
  problems=$((problems + n))
}

# make_set SET: DATA/SET
make_set() {
  local set=$1 new=$output/.new-$1 problems=0 n expected
  [ -d "$corpus/$set" ] || die "$corpus has no folder $set; recipes/librispeech/README.md says how to get it"
  rm -rf "$new"
  mkdir -p "$new/lists"
  (cd "$corpus" && find -L "$set" -type f \( -name '*.flac' -o -name '*.wav' \)) | LC_ALL=C awk -v root="$corpus" '
    { u = $0; sub(/.*\//, "", u); sub(/\.[a-z]*$/, "", u); print u "\t" root "/" $0 }' | LC_ALL=C sort > "$new/lists/sounds"
  find -L "$corpus/$set" -type f -name '*.trans.txt' -exec cat {} + | tr -d '\r' | LC_ALL=C awk 'NF' | LC_ALL=C sort > "$new/lists/texts"
  cut -f 1 "$new/lists/sounds" | uniq -d > "$new/lists/twice"
  cut -d ' ' -f 1 "$new/lists/texts" | uniq -d > "$new/lists/told-twice"
  LC_ALL=C awk 'NF < 2 { print $1 }' "$new/lists/texts" > "$new/lists/empty"
  cut -d ' ' -f 1 "$new/lists/texts" | LC_ALL=C sort -u > "$new/lists/told"
  cut -f 1 "$new/lists/sounds" | LC_ALL=C sort -u > "$new/lists/heard"
  LC_ALL=C comm -23 "$new/lists/heard" "$new/lists/told" > "$new/lists/untold"
  LC_ALL=C comm -13 "$new/lists/heard" "$new/lists/told" > "$new/lists/silent"
  first_of "$new/lists/twice" "sounds of $set are there twice:"
  first_of "$new/lists/told-twice" "transcripts of $set are there twice:"
  first_of "$new/lists/untold" "sounds of $set have no transcript:"
  first_of "$new/lists/silent" "transcripts of $set have no sound:"
  first_of "$new/lists/empty" "transcripts of $set have no words:"
  LC_ALL=C comm -12 "$new/lists/heard" "$new/lists/told" | LC_ALL=C comm -23 - "$new/lists/empty" > "$new/lists/use"
  LC_ALL=C awk -F'\t' 'NR == FNR { use[$1] = 1; next } ($1 in use) && !($1 in done) { done[$1] = 1; print $1 " " $2 }' \
    "$new/lists/use" "$new/lists/sounds" > "$new/wav.scp"
  LC_ALL=C awk 'NR == FNR { use[$1] = 1; next } ($1 in use) && !($1 in done) { done[$1] = 1; print }' "$new/lists/use" "$new/lists/texts" > "$new/text"
  LC_ALL=C awk '{ s = $1; sub(/-.*/, "", s); print $1, s }' "$new/wav.scp" > "$new/utt2spk"
  n=$(wc -l < "$new/wav.scp") expected=$(utterances_of "$set")
  [ "$n" -gt 0 ] || die "$corpus/$set has no utterances; are the archives extracted?"
  if [ -z "$stand_in" ] && [ -n "$expected" ] && [ "$n" != "$expected" ]; then
    echo "data.sh: $set has $n utterances instead of $expected; was its archive extracted completely?" >&2
    problems=$((problems + 1))
  fi
  [ "$problems" = 0 ] || [ -n "$allow_missing" ] || die "stopped; --allow-missing goes on with what is there"
  say "$set: $n utterances, $(cut -d ' ' -f 2 "$new/utt2spk" | sort -u | wc -l) readers, $(LC_ALL=C awk '{ n += NF - 1 } END { print n }' "$new/text") words"
  rm -r "$new/lists"
  mv "$new" "$output/$set"
}

mkdir -p "$output"
for set in ${sets//,/ }; do
  if [ -d "$output/$set" ]; then say "$set is there"; else make_set "$set"; fi
done
