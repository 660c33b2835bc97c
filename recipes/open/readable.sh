#!/usr/bin/env bash
# Makes the model of readable text, share/linnet/en/words.punctuation: full stops, commas, question marks and capitals.
#
#   recipes/open/readable.sh --corpus DIR --books FOLDER [--books FOLDER]... [--work exp/readable] [--most N] [--every N]
#                            [--stage N] [--stop-stage N] [--linnet PROGRAM]
#
# Stages: 1 books to count, to tune and to hold out   2 the model   3 its scores on the books that were held out
# FOLDER holds books as *.txt or *.md, one book a file (README.md beside this script says which). A book that shares a sequence of
# seven words with a transcript of dev_native, dev_nonnative or test_native in DIR is left out, and so are those of LibriSpeech's
# test sets. Of the others every 20th, by a checksum of its name, is held out, and another 20th is for tuning. Run from the root of
# the source tree. --most N takes only the first N books, --every N learns from every N-th paragraph; the installed model was made
# with --most 521 --every 9. Needs 1 GB of memory and 9 bytes a word. Result: words.punctuation in WORK, the same bytes every time.
here=$(dirname "$0")
. "$here/../common.sh"

corpus= work=exp/readable stage=1 stop_stage=3 most=1000000 every=1
declare -a books=()
flags=" " values=" corpus work most every stage stop-stage linnet " lists=" books "
options "$@"
export LC_ALL=C

# words_of FILE: its words in small letters, on one line
words_of() { sed "s/’/'/g" "$1" | tr 'A-Z\n' 'a-z ' | tr -cs "a-z'" ' '; }

if wanted 1; then
  [ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
  [ ${#books[@]} -gt 0 ] || die "where are the books? give --books FOLDER; $here/README.md says which"
  echo "== stage 1: books"
  for set in dev_native dev_nonnative test_native; do cat "$corpus/$set/text"; done | tr 'A-Z' 'a-z' |
    awk '{ for (i = 2; i + 6 <= NF; i++) print $i, $(i+1), $(i+2), $(i+3), $(i+4), $(i+5), $(i+6) }' | sort -u > "$work/sevens.txt"
  rm -f "$work"/{count,tune,held-out}.txt "$work/left-out.list"
  touch "$work"/{count,tune,held-out}.txt "$work/left-out.list"
  find "${books[@]}" -type f \( -name '*.txt' -o -name '*.md' \) ! -name 'README*' | sort | sed -n "1,${most}p" > "$work/books.list"
  while IFS= read -r book; do
    name=$(basename "$book")
    case $name in
      *"North and South"* | *"Thus Spoke Zarathustra"* | *"An Old-Fashioned Girl"* | *"Huckleberry Finn"*) part=left-out ;;
      *)
        number=$(printf %s "$name" | cksum | cut -d ' ' -f 1)
        case $((number % 20)) in 0) part=held-out ;; 1) part=tune ;; *) part=count ;; esac
        ! grep -qFf "$work/sevens.txt" <(words_of "$book") || part=left-out ;;
    esac
    if [ $part = left-out ]; then echo "$book" >> "$work/left-out.list"; else { cat "$book"; echo; echo; } >> "$work/$part.txt"; fi
  done < "$work/books.list"
  wc "$work"/{count,tune,held-out}.txt
  wc -l "$work/books.list" "$work/left-out.list"
fi

if wanted 2; then
  echo "== stage 2: the model"
  awk -v every="$every" 'BEGIN { RS = ""; ORS = "\n\n" } NR % every == 1 % every' "$work/count.txt" > "$work/learn.txt"
  "$linnet" readable learn "$work/learn.txt" -o "$work/words.punctuation"
fi

if wanted 3; then
  echo "== stage 3: books that were held out"
  "$linnet" readable score --model "$work/words.punctuation" "$work/held-out.txt"
  ls -l "$work/words.punctuation"
fi
