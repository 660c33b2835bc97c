#!/usr/bin/env bash
# Makes the default files of linnet transcribe --words and --lm phones: a word 3-gram, its lexicon, letter-to-sound rules, a phone
# 6-gram.
#
#   recipes/open/lm.sh --corpus DIR [--work exp/lm] [--words ARPA] [--lexicon FILE] [--stage N] [--stop-stage N] [--linnet PROGRAM]
#
# Stages: 1 the word model, pruned and packed   2 the pronunciations of its words   3 the phone model   4 perplexities on
# dev_native ARPA is a word model as text (DIR/lm/en-us.arpa.gz, that of Debian's pocketsphinx-en-us); FILE is cmudict-en-us.dict
# of the same package. The phone model is trained on sentences drawn from the word model and on the texts of the training sets
# (three times, for their style); dev_* and test_* are not used. Run from the root of the source tree. Results: english.lm,
# english.dict.gz, english.g2p and phones.lm in WORK, the same bytes every time.
set -euo pipefail

corpus= work=exp/lm words= lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict stage=1 stop_stage=4 linnet=build/release/linnet
train_sets="train_native train_read train_games train_pseudo train_nonnative"

usage() { sed -n '2,10p' "$0" | sed 's/^# \{0,1\}//'; exit "$1"; }
die() { echo "lm.sh: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage 0 ;;
    --corpus|--work|--words|--lexicon|--stage|--stop-stage|--linnet)
      [ $# -ge 2 ] || die "$1 needs a value"
      name=${1#--}; declare "${name//-/_}=$2"; shift 2 ;;
    *) die "unknown option $1; --help lists them" ;;
  esac
done
[ -x "$linnet" ] || die "$linnet does not exist; run make first, or give --linnet PROGRAM"
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
words=${words:-$corpus/lm/en-us.arpa.gz}
[ -f "$words" ] || die "$words does not exist; give --words ARPA"
[ -f "$lexicon" ] || die "$lexicon does not exist; apt-get install pocketsphinx-en-us, or give --lexicon FILE"
wanted() { [ "$stage" -le "$1" ] && [ "$stop_stage" -ge "$1" ]; }
mkdir -p "$work"

if wanted 1; then
  echo "== stage 1: words"
  "$linnet" ngram prune "$words" --entropy 1.2e-7 --packed -o "$work/english.lm"
fi

if wanted 2; then
  echo "== stage 2: their pronunciations"
  "$linnet" ngram arpa "$work/english.lm" | awk '/^\\1-grams:/ { on = 1; next } /^\\/ { on = 0 } on && NF > 1 { print $2 }' > "$work/words.txt"
  # The result begins with the licence of the dictionary.
  { sed -n "/^;;;/s/The words of linnet's demonstration/The words of english.lm/; /^;;;/p" demo/words.dict
    awk 'NR == FNR { known[$1] = 1; next } { word = $1; sub(/\([0-9]+\)$/, "", word) } word in known' "$work/words.txt" "$lexicon"
  } | gzip -9n > "$work/english.dict.gz"
  "$linnet" g2p "$lexicon" -o "$work/english.g2p"
fi

if wanted 3; then
  echo "== stage 3: phones"
  "$linnet" ngram pack "$words" -o "$work/words.lm"
  "$linnet" ngram generate --lines 800000 --seed 1 "$work/words.lm" | tr -d '0-9.' > "$work/drawn.txt"
  for set in $train_sets; do cut -d ' ' -f 2- "$corpus/$set/text"; done > "$work/train.txt"
  # A drawn word without a pronunciation is reported, and its sentence is left out.
  cat "$work/drawn.txt" "$work/train.txt" "$work/train.txt" "$work/train.txt" |
    { "$linnet" phonemize -q --lexicon "$lexicon" -o "$work/phones.txt" 2> "$work/phones.log" || true; }
  "$linnet" ngram count --no-unknown --order 6 --min-count 1,1,3,8,20,40 --packed -o "$work/phones.lm" "$work/phones.txt"
fi

if wanted 4; then
  echo "== stage 4: perplexities on dev_native"
  "$linnet" ngram perplexity "$work/english.lm" --ids first --lower "$corpus/dev_native/text"
  "$linnet" phonemize -q --ids first --lexicon "$lexicon" "$corpus/dev_native/text" |
    "$linnet" ngram perplexity "$work/phones.lm" --ids first
  ls -l "$work"/english.lm "$work"/english.dict.gz "$work"/english.g2p "$work"/phones.lm
fi
