#!/usr/bin/env bash
# Makes the default files of linnet transcribe --words and --lm phones: a word 4-gram, its lexicon, letter-to-sound rules, a phone
# 6-gram.
#
#   recipes/open/lm.sh --corpus DIR --text FILE --modern FILE [--work exp/lm] [--words ARPA] [--lexicon FILE] [--stress FILE]
#                      [--lines 1200000] [--stage N] [--stop-stage N] [--linnet PROGRAM]
#
# Stages: 1 the vocabulary and its pronunciations   2 the word model   3 the phone model   4 probabilities of the pronunciations, by the
# installed acoustic model   5 words of the modern text that the dictionary lacks   6 perplexities on dev_native
# Each FILE is text with one sentence per line, lower case: books, and modern English (README.md beside this script says which, and how
# they are made). A model is counted from each, and from the sentences of the modern text that have a word of stage 5; the word model is
# their mean. ARPA is a word model of modern English (DIR/lm/en-us.arpa.gz, that of Debian's pocketsphinx-en-us): sentences drawn from
# it give the words that old books lack. The lexicon is cmudict-en-us.dict of the same package, which has no stress: --stress names
# CMUdict as published, whose stress words.dict.gz gets (cmudict.dict of the Python package cmudict 1.1.3; stress.awk). The texts of the
# training sets are counted several times, for their style; dev_* and test_* are not used. Run from the root of the source tree. Needs
# 7 GB of memory. Results: words.lm, words.dict.gz, words.g2p and phones.lm in WORK, the same bytes every time.
here=$(dirname "$0")
. "$here/../common.sh"

corpus= text= modern= work=exp/lm words= lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict stress= lines=1200000 stage=1 stop_stage=6
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

# count OUTPUT VOCABULARY TEXT...
count() {
  "$linnet" ngram count --order 4 --set min-count=1,1,2,3,smoothing=absolute --vocabulary "$2" --entropy 1e-9 --packed -o "$1" "${@:3}"
}

# stressed: a lexicon with the stress of $stress, if given
stressed() { if [ -n "$stress" ]; then awk -f "$here/stress.awk" "$stress" -; else cat; fi; }

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
  "$linnet" g2p "$lexicon" -o "$work/words.g2p"
fi

if wanted 2; then
  echo "== stage 2: words"
  "$linnet" ngram generate --count "$lines" --seed 1 "$work/general.lm" -o "$work/drawn.txt"
  all_of "$work/train.txt" 15 | count "$work/books.lm" "$work/words.txt" "$text" "$work/drawn.txt" -
  count "$work/modern.lm" "$work/words.txt" "$modern"
  "$linnet" ngram mix "$work/books.lm" "$work/modern.lm" --weights 0.8,0.2 --entropy 2e-8 --set bits=8 --packed \
    -o "$work/mean.lm"
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
  # The result begins with the licence of the dictionary.
  { sed -n "/^;;;/s/The words of linnet's demonstration/The words of words.lm/; /^;;;/p" examples/demo/words.dict
    awk -F'\t' 'NR == FNR { said[$1, $3] = $2; next }
      { word = phones = $0; sub(/[ \t].*/, "", word); sub(/^[^ \t]+[ \t]+/, "", phones); name = word; sub(/\([0-9]+\)$/, "", name)
        p = said[name, phones]; print p == "" || p == 1 ? $0 : word " " p " " phones }' "$work/learnt.dict" "$work/words.dict"
  } | stressed > "$work/said.dict"
fi

if wanted 5; then
  echo "== stage 5: more words"
  # What the modern text has 15 times, or 4 times if the lexicon has it; no words of two letters, without a vowel, or Roman numerals.
  awk -v said="$work/said.dict" -v lexicon="$lexicon" '
    { word = $1; sub(/\([0-9]+\)$/, "", word) }
    FILENAME == said { have[word]; next }
    FILENAME == lexicon { spelt[word]; next }
    { for (i = 1; i <= NF; i++) if (!($i in have)) n[$i]++ }
    END {
      for (word in n)
        if (length(word) > 2 && word ~ /^[a-z]+(\047[a-z]+)?$/ && word ~ /[aeiouy]/ && word !~ /^[ivxlcdm]+$/ &&
            n[word] >= (word in spelt ? 4 : 15)) print word
    }' "$work/said.dict" "$lexicon" "$modern" | sort > "$work/more.txt"
  awk '{ word = $1; sub(/\([0-9]+\)$/, "", word) } NR == FNR { more[word]; next } word in more' "$work/more.txt" "$lexicon" \
    > "$work/more.dict"
  awk 'NR == FNR { sub(/\([0-9]+\)$/, "", $1); spelt[$1]; next } !($1 in spelt) { print $1, $1 }' "$work/more.dict" "$work/more.txt" |
    "$linnet" phonemize -q --ids first --lexicon "$lexicon" >> "$work/more.dict"
  stressed < "$work/more.dict" | cat "$work/said.dict" - | gzip -9n > "$work/words.dict.gz"
  # Counted from the sentences that have one of them, which are more than their share of the mean.
  awk 'NR == FNR { more[$1]; next } { for (i = 1; i <= NF; i++) if ($i in more) { print; next } }' "$work/more.txt" "$modern" \
    > "$work/more-sentences.txt"
  { sed '/^;;;/d; s/[ \t].*//; s/([0-9]*)$//' "$work/said.dict"; cat "$work/more.txt"; } | sort -u > "$work/all-words.txt"
  count "$work/more.lm" "$work/all-words.txt" "$work/more-sentences.txt"
  "$linnet" ngram mix "$work/mean.lm" "$work/more.lm" --weights 0.9,0.1 --entropy 1e-8 --set bits=8 --packed -o "$work/words.lm"
fi

if wanted 6; then
  echo "== stage 6: perplexities on dev_native"
  "$linnet" ngram perplexity "$work/words.lm" --ids first --lower "$corpus/dev_native/text"
  "$linnet" phonemize -q --ids first --lexicon "$lexicon" "$corpus/dev_native/text" |
    "$linnet" ngram perplexity "$work/phones.lm" --ids first
  ls -l "$work"/words.lm "$work"/words.dict.gz "$work"/words.g2p "$work"/phones.lm
fi
