#!/usr/bin/env bash
# Makes and measures the model of readable text, share/linnet/en/words.punctuation: full stops, commas, question marks, capitals.
#
#   recipes/open/readable.sh --corpus DIR --books FOLDER [--books FOLDER]... [--modern TEXT] [--other LABELS] [--work exp/readable]
#                            [--model FILE] [--every N] [--stage N] [--stop-stage N] [--linnet PROGRAM]
#
# Stages: 1 books to count, to tune and to hold out   2 the model   3 its scores on what was held out   4 its scores on read books,
# with pauses: words and times of dev_native and train_native, and words that were recognised
# FOLDER holds books as *.txt or *.md, one book a file (README.md beside this script says which). A book that shares a sequence of
# seven words with a transcript of dev_native, dev_nonnative or test_native in DIR is left out, and so are those of LibriSpeech's test
# sets and those that stage 4 measures: three utterances of train_native are in them. Of the others every 20th, by a checksum of its name, is held out, and another 20th is for tuning. TEXT is
# modern text, made by modern.py --marks; TEXT.held-out is beside it. LABELS are those of dev_native by another recogniser, as
# label.py writes them. --every N learns from every N-th paragraph of the books. --model FILE measures another model. Run from the
# root of the source tree. Needs 1 GB of memory and 9 bytes a word. Result: words.punctuation in WORK, the same bytes every time.
here=$(dirname "$0")
. "$here/../common.sh"

corpus= work=exp/readable stage=1 stop_stage=4 every=1 modern= other= model=
declare -a books=()
flags=" " values=" corpus work every modern other model stage stop-stage linnet " lists=" books "
options "$@"
model=${model:-$work/words.punctuation}
export LC_ALL=C

# words_of FILE: its words in small letters, on one line
words_of() { sed "s/’/'/g" "$1" | tr 'A-Z\n' 'a-z ' | tr -cs "a-z'" ' '; }

if wanted 1; then
  [ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
  [ ${#books[@]} -gt 0 ] || die "where are the books? give --books FOLDER; $here/README.md says which"
  echo "== stage 1: books"
  for set in dev_native dev_nonnative test_native; do cat "$corpus/$set/text"; done | tr 'A-Z' 'a-z' |
    awk '{ for (i = 2; i + 6 <= NF; i++) print $i, $(i+1), $(i+2), $(i+3), $(i+4), $(i+5), $(i+6) }' | sort -u > "$work/sevens.txt"
  cat "$corpus"/{dev,train}_native/text > "$work/read.text"
  [ -s "$work/marked.books" ] || python3 "$here/marks.py" find --text "$work/read.text" -o "$work/marked" "${books[@]}"
  awk '$1 >= 3 { sub(/^[0-9]* /, ""); print }' "$work/marked.books" > "$work/read.list"
  rm -f "$work"/{count,tune,held-out}.txt "$work/left-out.list"
  touch "$work"/{count,tune,held-out}.txt "$work/left-out.list"
  find "${books[@]}" -type f \( -name '*.txt' -o -name '*.md' \) ! -name 'README*' | sort > "$work/books.list"
  while IFS= read -r book; do
    name=$(basename "$book")
    case $name in
      *"North and South"* | *"Thus Spoke Zarathustra"* | *"An Old-Fashioned Girl"* | *"Huckleberry Finn"*) part=left-out ;;
      *)
        number=$(printf %s "$name" | cksum | cut -d ' ' -f 1)
        case $((number % 20)) in 0) part=held-out ;; 1) part=tune ;; *) part=count ;; esac
        if grep -qxF "$book" "$work/read.list" || grep -qFf "$work/sevens.txt" <(words_of "$book"); then part=left-out; fi ;;
    esac
    if [ $part = left-out ]; then echo "$book" >> "$work/left-out.list"; else { cat "$book"; echo; echo; } >> "$work/$part.txt"; fi
  done < "$work/books.list"
  wc "$work"/{count,tune,held-out}.txt
  wc -l "$work/books.list" "$work/left-out.list"
fi

if wanted 2; then
  echo "== stage 2: the model"
  { [ -z "$modern" ] || cat "$modern"
    awk -v every="$every" 'BEGIN { RS = ""; ORS = "\n\n" } NR % every == 1 % every' "$work/count.txt"; } > "$work/learn.txt"
  "$linnet" readable learn "$work/learn.txt" -o "$work/words.punctuation"
  ls -l "$work/words.punctuation"
fi

if wanted 3; then
  echo "== stage 3: books that were held out"
  "$linnet" readable score --model "$model" "$work/held-out.txt"
  [ -z "$modern" ] || { echo "== modern text that was held out"; "$linnet" readable score --model "$model" "$modern.held-out"; }
fi

# times SET: the marks of what SET has read of the books, its words' times, and both for whole chapters
times() {
  local d="$work/$1" f
  mkdir -p "$d/found"
  awk 'NR == FNR { has[$1]; next } $1 in has' "$corpus/$1/text" "$work/marked" > "$d/marked"
  for f in text wav.scp utt2spk utt2dur; do
    awk 'NR == FNR { has[$1]; next } $1 in has' "$d/marked" "$corpus/$1/$f" > "$d/found/$f"
  done
  "$linnet" align -q --data "$d/found" --audio-root "$corpus" -f ctm -o "$d/upper.ctm"
  tr 'A-Z' 'a-z' < "$d/upper.ctm" > "$d/ctm"
  python3 "$here/marks.py" join "$d/marked" "$d/ctm" "$corpus/$1/utt2dur" "$d"
}

if wanted 4; then
  echo "== stage 4: books that were read aloud"
  for set in dev_native train_native; do
    [ -s "$work/$set/joined.ctm" ] || times $set
    echo "= $set, utterances: their words and times"
    "$linnet" readable score --model "$model" --ids --ctm "$work/$set/ctm" "$work/$set/marked"
    echo "= $set, chapters: their words and times"
    "$linnet" readable score --model "$model" --ids --ctm "$work/$set/joined.ctm" "$work/$set/joined.marked"
  done
  d="$work/dev_native"
  echo "= dev_native: recognised words"
  mapfile -t sounds < <(awk -v root="$corpus" '{ print root "/" $2 }' "$d/found/wav.scp")
  rm -rf "$d/recognised"
  LINNET_PUNCTUATION=$model "$linnet" transcribe -q --words --layout columns=0,no-paragraphs -f text \
    --output-dir "$d/recognised" "${sounds[@]}"
  find "$d/recognised" -name '*.txt' | while IFS= read -r f; do echo "$(basename "$f" .txt) $(cat "$f")"; done > "$d/recognised.text"
  python3 "$here/marks.py" score "$d/marked" "$d/recognised.text"
  [ -z "$other" ] || { echo "= dev_native: $other"; awk -F '\t' '{ print $1, $NF }' "$other" > "$d/other.text"
    python3 "$here/marks.py" score "$d/marked" "$d/other.text"; }
fi
