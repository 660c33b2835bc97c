#!/usr/bin/env bash
# LibriSpeech from the folder that its archives extract to, to a table of phoneme and word error rates.
#
#   recipes/librispeech/run.sh --corpus DIR [--train mini|100|460|960] [--work exp/librispeech-TRAIN] [--stage N] [--stop-stage N] [--dry-run]
#                      [--rows linear,causal-8] [--seeds 1] [--device auto|cpu|cuda[:N]] [--threads N] [--lexicon FILE] [--lm ARPA]
#                      [--test SET,...] [--grid 5e-4] [--grid-lstm 1e-3] [--epochs 40] [--patience 3] [--stack 3] [--batch-frames 16000]
#                      [--shards N] [--launch COMMAND] [--augment] [--precision fp32|tf32|bf16]
#                      [--words-weights W,...] [--allow-missing] [--stand-in] [--force] [--quick] [--linnet PROGRAM]
#
# Stages: 1 data   2 dictionary and phonemes   3 features   4 training   5 decoding and scoring   6 words   7 the page of results
# DIR: recipes/librispeech/README.md says how to get it. mini: train-clean-5 and dev-clean-2. 100, 460, 960: train-clean-100, with
# train-clean-360, with train-other-500; dev set: dev-clean. --test: default test-clean, test-other and dev-other, those that are there.
# Test sets are decoded once per model and choose nothing.
# --rows: those of recipes/paper/table3.sh. Networks that read forwards (causal-R, lstm) are normalised by the mean and deviation of the
# training set, the others by speaker. --lm: a model of words, for stage 6; default: 3-gram.pruned.1e-7.arpa.gz in DIR.
# --stand-in: another corpus in the same layout.
# Before anything starts, disk and memory are compared with what is needed; --force starts anyway. --dry-run: prints this, the expected
# times and the commands, and does nothing.
# If run again, finished work is skipped and interrupted work continues. One run at a time works in a folder.
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../corpus.sh"

here=$(dirname "$0")
corpus= size=100 rows=linear,causal-8 lm= allow_missing= stand_in= stack=3 grid=5e-4 train= shards=
flags=" allow-missing stand-in $corpus_flags "
values=" corpus train rows lm $corpus_values "
# The default of --work depends on --train, and the folder is made when the options are read.
for ((i = 1; i < $#; i++)); do [ "${!i}" != --train ] || { j=$((i + 1)); size=${!j}; }; done
work=exp/librispeech-$size
dev=dev-clean
case $size in
  mini) sets=train-clean-5 dev=dev-clean-2 hours=5.3 ;;
  100) sets=train-clean-100 hours=100.6 ;;
  460) sets=train-clean-100,train-clean-360 hours=464.2 ;;
  960) sets=train-clean-100,train-clean-360,train-other-500 hours=960.9 ;;
  *) die "--train is mini, 100, 460 or 960, not '$size'" ;;
esac
options "$@"
train=$sets
shards=${shards:-$(LC_ALL=C awk -v h="$hours" 'BEGIN { n = int(h / 5); print (n < 1 ? 1 : (n > 96 ? 96 : n)) }')}
data=$work/data
root=$corpus
[ -z "$corpus" ] || [ ! -d "$corpus/LibriSpeech" ] || root=$corpus/LibriSpeech
if [ -z "$test" ]; then
  for set in test-clean test-other dev-other; do
    if [ -d "$data/$set" ] || { [ -n "$corpus" ] && [ -d "$root/$set" ]; }; then test=$test,$set; fi
  done
  test=${test#,}
  [ -n "$test" ] || { test=$dev; echo "run.sh: there is no test set: the table has $dev twice" >&2; }
fi
corpus_options 40
[ -n "$lm" ] || for f in "$corpus/3-gram.pruned.1e-7.arpa.gz" "$root/3-gram.pruned.1e-7.arpa.gz"; do [ ! -f "$f" ] || lm=$f; done

plan "$hours"
room
[ -n "$dry_run" ] || lock_work

if wanted 1; then
  say "stage 1: data directories"
  [ -n "$corpus" ] || die "where is the corpus? give --corpus DIR; $here/README.md says how to get it"
  run bash "$here/data.sh" --corpus "$corpus" --output "$data" --sets "$train,$dev,$test" --linnet "$linnet" ${allow_missing:+--allow-missing} \
    ${stand_in:+--stand-in}
fi
corpus_stages # 2 to 5
if wanted 6; then
  say "stage 6: words"
  corpus_words "$lm"
fi
if wanted 7; then
  say "stage 7: results"
  if [ -n "$stand_in" ]; then title="A STAND-IN, not LibriSpeech: this page says nothing about that corpus"; else title="LibriSpeech, $size"; fi
  corpus_results "$title" "The paper's numbers are for the Wall Street Journal corpus on its GPU and cannot be compared with these."
fi
