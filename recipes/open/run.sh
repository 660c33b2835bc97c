#!/usr/bin/env bash
# The shipped streaming model, from sound to score, on the open corpus: staged like a Kaldi recipe.
#
#   recipes/open/run.sh --corpus DIR [--work exp/open] [--lexicon FILE] [--conf recipes/open/causal.conf]
#                       [--stage N] [--stop-stage N] [--threads N] [--device auto|cpu|cuda[:N]] [--linnet PROGRAM]
#
# Stages: 1 features and labels   2 training   3 decoding and scoring of the dev sets   4 the test set, once   5 the table of results
# DIR holds Kaldi-style data directories (train_native, ..., dev_native, test_native) whose wav.scp paths are relative to DIR.
# Needs cmudict-en-us.dict (Debian: pocketsphinx-en-us). Run from the root of the source tree.
# If run again, training continues where it stopped. Training sets are never decoded; test sets are never used for training or
# tuning. Stage 2 alone (--stage 2 --stop-stage 2) needs no corpus, only WORK/features/*.lfc: on a GPU machine
#   make && recipes/open/run.sh --work exp/open --stage 2 --stop-stage 2 --device cuda
set -euo pipefail

corpus= work=exp/open lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict conf=recipes/open/causal.conf
stage=1 stop_stage=5 threads=0 device=auto linnet=build/release/linnet
train_sets="train_native train_read train_games train_pseudo train_nonnative"
dev_sets="dev_native dev_nonnative"
test_sets="test_native"

usage() { sed -n '2,12p' "$0" | sed 's/^# \{0,1\}//'; exit "$1"; }
die() { echo "run.sh: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage 0 ;;
    --corpus|--work|--lexicon|--conf|--stage|--stop-stage|--threads|--device|--linnet)
      [ $# -ge 2 ] || die "$1 needs a value"
      name=${1#--}; declare "${name//-/_}=$2"; shift 2 ;;
    *) die "unknown option $1; --help lists them" ;;
  esac
done
[ -x "$linnet" ] || die "$linnet does not exist; run make first, or give --linnet PROGRAM"
wanted() { [ "$stage" -le "$1" ] && [ "$stop_stage" -ge "$1" ]; }
if wanted 1 || wanted 3 || wanted 4; then
  [ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
  [ -f "$lexicon" ] || die "$lexicon does not exist; apt-get install pocketsphinx-en-us, or give --lexicon FILE"
  for set in $train_sets $dev_sets $test_sets; do [ -f "$corpus/$set/wav.scp" ] || die "$corpus/$set/wav.scp does not exist"; done
fi
mkdir -p "$work"/{features,text,decode}

# Frequencies above 5.5 kHz are not used: parts of the corpus have no sound there, and a model would learn that.
prepare() { # prepare SET SPEEDS CACHE
  [ -f "$work/features/$3.lfc" ] && return
  # exit status 1: some utterances were reported and left out, and the cache was written
  "$linnet" prepare "$corpus/$1" --audio-root "$corpus" --lexicon "$lexicon" --high-hz 5500 --stack 3 --speed "$2" \
    --oov "$work/text/$3.oov" --jobs "$threads" --output "$work/features/$3.lfc" || [ -f "$work/features/$3.lfc" ]
}

if wanted 1; then
  echo "== stage 1: features and labels"
  for set in $dev_sets $train_sets; do prepare "$set" 1 "$set"; done
  for set in $train_sets; do prepare "$set" 0.9,1.1 "${set}_sp"; done
  for set in $dev_sets $test_sets; do
    "$linnet" phonemize --ids first --trn --lexicon "$lexicon" --oov "$work/text/$set.oov" "$corpus/$set/text" > "$work/text/$set.trn"
  done
fi

if wanted 2; then
  echo "== stage 2: training"
  resume=; [ -f "$work/train/checkpoint.safetensors" ] && resume=--resume
  sets=(); for set in $train_sets; do sets+=(--train "$work/features/$set.lfc"); done
  for set in $train_sets; do sets+=(--train "$work/features/${set}_sp.lfc"); done
  "$linnet" train "$conf" "${sets[@]}" --dev "$work/features/dev_native.lfc" --folder "$work/train" --threads "$threads" \
    --device "$device" $resume
fi

score() { # score SET
  "$linnet" transcribe --data "$corpus/$1" --audio-root "$corpus" --model "$work/train/best.safetensors" --jobs "$threads" --format trn \
    --device "$device" --output "$work/decode/$1.trn"
  "$linnet" score "$work/text/$1.trn" "$work/decode/$1.trn" | tee "$work/decode/$1.score"
}

if wanted 3; then
  echo "== stage 3: the dev sets"
  for set in $dev_sets; do score "$set"; done
fi

if wanted 4; then
  echo "== stage 4: the test set"
  for set in $test_sets; do score "$set"; done
fi

if wanted 5; then
  echo "== stage 5: results"
  {
    echo "| set | utterances | phonemes | substitutions | deletions | insertions | PER % |"
    echo "|---|---|---|---|---|---|---|"
    for set in $dev_sets $test_sets; do
      # the last line: PER 37.50 %: 1 substitutions, 1 deletions, 1 insertions in 8 tokens of 2 utterances
      tail -n 1 "$work/decode/$set.score" | tr -d ,: |
        awk -v set="$set" '{ printf "| %s | %s | %s | %s | %s | %s | %s |\n", set, $14, $11, $4, $6, $8, $2 }'
    done
  } | tee "$work/RESULTS.md"
fi
