#!/usr/bin/env bash
# Makes the default files of linnet transcribe --words and --lm phones: a word 4-gram, its lexicon, letter-to-sound rules, a phone
# 6-gram.
#
#   recipes/open/lm.sh --corpus DIR --text FILE --modern FILE [--work exp/lm] [--words ARPA] [--lexicon FILE] [--stress FILE]
#                      [--lines 1200000] [--stage N] [--stop-stage N] [--linnet PROGRAM]
#
# Stages: 1 the vocabulary and its pronunciations   2 the word model   3 the phone model   4 probabilities of the pronunciations, by the
# installed acoustic model   5 perplexities on dev_native
# Each FILE is text with one sentence per line, lower case: books, and modern English (README.md beside this script says which, and how
# they are made). A model is counted from each; the word model is their mean. ARPA is a word model of modern English
# (DIR/lm/en-us.arpa.gz, that of Debian's pocketsphinx-en-us): sentences drawn from it give the words that old books lack. The lexicon
# is cmudict-en-us.dict of the same package, which has no stress: --stress names CMUdict as published, whose stress words.dict.gz
# gets in stage 4 (cmudict.dict of the Python package cmudict 1.1.3; stress.awk). The texts of the training sets are counted several times, for their style; dev_* and
# test_* are not used. Run from the root of the source tree. Needs 7 GB of memory. Results: words.lm, words.dict.gz, words.g2p and
# phones.lm in WORK, the same bytes every time.
here=$(dirname "$0")
. "$here/../common.sh"

corpus= text= modern= work=exp/lm words= lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict stress= lines=1200000 stage=1 stop_stage=5
flags=" " values=" corpus text modern work words lexicon stress lines stage stop-stage linnet "
train_sets="train_native train_read train_games train_pseudo train_nonnative train_cv train_stories"
read_sets="train_native train_read train_cv train_stories" # spoken as written
options "$@"
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
[ -f "$text" ] || die "where is the text? give --text FILE; $here/README.md says how it is made"
[ -f "$modern" ] || die "where is the modern text? give --modern FILE; $here/README.md says how it is made"
words=${words:-$corpus/lm/en-us.arpa.gz}
added=$here/words-added.dict
[ -f "$words" ] || die "$words does not exist; give --words ARPA"
[ -f "$lexicon" ] || die "$lexicon does not exist; apt-get install pocketsphinx-en-us, or give --lexicon FILE"
export LC_ALL=C

# all_of FILE N: the file N times
all_of() { local i; for ((i = 0; i < $2; i++)); do cat "$1"; done; }

if wanted 1; then
  echo "== stage 1: vocabulary and pronunciations"
  for set in $train_sets; do cut -d ' ' -f 2- "$corpus/$set/text"; done | tr 'A-Z' 'a-z' > "$work/train.txt"
  "$linnet" ngram pack "$words" -o "$work/general.lm"
  "$linnet" ngram arpa "$work/general.lm" |
    awk '/^\\1-grams:/ { on = 1; next } /^\\/ { on = 0 } on && NF > 1 { print $1, $2 }' > "$work/general.txt"
  # Words of the lexicon that occur 20 times in the texts, or once in the training sets, or are common today; and the added ones.
  awk -v general="$work/general.txt" -v train="$work/train.txt" -v text="$text" -v modern="$modern" '
    FILENAME == general { if ($1 > -6.25) take[$2] = 1; next }
    FILENAME == train { for (i = 1; i <= NF; i++) take[$i] = 1; next }
    FILENAME == text || FILENAME == modern { for (i = 1; i <= NF; i++) if (++n[$i] == 20) take[$i] = 1; next }
    /^;;;/ { next }
    { word = $1; sub(/\([0-9]+\)$/, "", word); if (word in take || FILENAME ~ /words-added/) print }
    ' "$work/general.txt" "$work/train.txt" "$text" "$modern" "$lexicon" "$added" > "$work/words.dict"
  awk '{ sub(/\([0-9]+\)$/, "", $1) } !seen[$1]++ { print $1 }' "$work/words.dict" > "$work/words.txt"
  # The result begins with the licence of the dictionary.
  { sed -n "/^;;;/s/The words of linnet's demonstration/The words of words.lm/; /^;;;/p" examples/demo/words.dict
    cat "$work/words.dict"
  } | gzip -9n > "$work/words.dict.gz"
  "$linnet" g2p "$lexicon" -o "$work/words.g2p"
fi

if wanted 2; then
  echo "== stage 2: words"
  "$linnet" ngram generate --count "$lines" --seed 1 "$work/general.lm" -o "$work/drawn.txt"
  count() { # OUTPUT TEXT...
    "$linnet" ngram count --order 4 --set min-count=1,1,2,3 --vocabulary "$work/words.txt" --set smoothing=absolute --entropy 1e-9 \
      --packed -o "$@"
  }
  all_of "$work/train.txt" 15 | count "$work/books.lm" "$text" "$work/drawn.txt" -
  count "$work/modern.lm" "$modern"
  "$linnet" ngram mix "$work/books.lm" "$work/modern.lm" --weights 0.8,0.2 --entropy 2e-8 --set bits=8 --packed \
    -o "$work/words.lm"
fi

if wanted 3; then
  echo "== stage 3: phones"
  # Every eighth sentence of the text. A sentence with a word that cannot be pronounced is reported and left out.
  { awk 'NR % 8 == 0' "$text"; all_of "$work/train.txt" 9; } |
    { "$linnet" phonemize -q --lexicon "$lexicon" -o "$work/phones.txt" 2> "$work/phones.log" || true; }
  "$linnet" ngram count --no-unknown --order 6 --set min-count=1,1,1,2,3,5,smoothing=absolute --entropy 1e-8 --packed \
    -o "$work/phones-large.lm" "$work/phones.txt"
  "$linnet" ngram prune "$work/phones-large.lm" --entropy 1.5e-7 --set bits=8 --packed -o "$work/phones.lm"
fi

if wanted 4; then
  echo "== stage 4: probabilities of the pronunciations"
  mkdir -p "$work/read"
  for file in wav.scp text utt2spk; do
    for set in $read_sets; do cat "$corpus/$set/$file"; done | sort > "$work/read/$file"
  done
  rm -f "$work/learnt.dict"
  "$linnet" align -q --data "$work/read" --audio-root "$corpus" -l "$work/words.dict" --learn-lexicon "$work/learnt.dict" \
    -f ctm -o "$work/read.ctm" || [ -s "$work/learnt.dict" ] # some texts do not fit
  # The lines stay in their order: the first pronunciation is the reference of phonemes.
  { zcat "$work/words.dict.gz" | sed -n '/^;;;/p'
    awk -F'\t' 'NR == FNR { said[$1, $3] = $2; next }
      { word = phones = $0; sub(/[ \t].*/, "", word); sub(/^[^ \t]+[ \t]+/, "", phones); name = word; sub(/\([0-9]+\)$/, "", name)
        p = said[name, phones]; print p == "" || p == 1 ? $0 : word " " p " " phones }' "$work/learnt.dict" "$work/words.dict"
  } | if [ -n "$stress" ]; then awk -f "$here/stress.awk" "$stress" -; else cat; fi | gzip -9n > "$work/words.new"
  mv "$work/words.new" "$work/words.dict.gz"
fi

if wanted 5; then
  echo "== stage 5: perplexities on dev_native"
  "$linnet" ngram perplexity "$work/words.lm" --ids first --lower "$corpus/dev_native/text"
  "$linnet" phonemize -q --ids first --lexicon "$lexicon" "$corpus/dev_native/text" |
    "$linnet" ngram perplexity "$work/phones.lm" --ids first
  ls -l "$work"/words.lm "$work"/words.dict.gz "$work"/words.g2p "$work"/phones.lm
fi
