#!/usr/bin/env bash
# The speech experiment of Katharopoulos et al. 2020 (table 3) on the Wall Street Journal corpus, from the LDC's discs to the table.
#
#   recipes/wsj/run.sh --wsj0 DIR --wsj1 DIR [--work exp/wsj] [--stage N] [--stop-stage N] [--dry-run]
#                      [--model ROW,...|all|none] [--causal] [--seeds 1] [--device auto|cpu|cuda[:N]] [--threads N]
#                      [--lexicon FILE] [--train train_si284] [--test test_eval92[,SET...]] [--sets SET,...] [--grid LR,...] [--grid-lstm LR,...]
#                      [--epochs 80] [--patience 3] [--stack 1] [--batch-frames 16000] [--shards 32] [--launch COMMAND] [--augment]
#                      [--precision fp32|tf32|bf16] [--words-weights W,...]
#                      [--stand-in] [--force] [--quick] [--linnet PROGRAM]
#
# Stages: 1 data   2 dictionary and phonemes   3 features   4 training   5 decoding and scoring   6 words   7 the page of results
# --model: rows of the table: linear, softmax, lsh-4, bilstm (all: these four), causal-0 to causal-9, lstm; default: all.
# --causal: also networks that read forwards only, linear attention with 0, 3 and 8 frames of look-ahead and an LSTM, normalised by the
# mean and deviation of the training set. --model none: only those.
# Dev set: test_dev93, which chooses the epoch, the learning rate and the weight of the language model. Test sets are decoded once per model
# and choose nothing.
# Before anything starts, disk and memory are compared with what is needed; --force starts anyway. --dry-run: prints this, the expected
# times and the commands, and does nothing.
# If run again, finished work is skipped and interrupted work continues. One run at a time works in a folder.
# --launch: what runs linnet train, such as "mpirun -np 4". --augment: SpecAugment. --quick: tiny networks and 1 epoch, to test the recipe.
# recipes/wsj/README.md says more.
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../corpus.sh"

here=$(dirname "$0")
wsj0= wsj1= work=exp/wsj model= causal= train=train_si284 dev=test_dev93 test=test_eval92 sets= stand_in=
flags=" causal stand-in $corpus_flags "
values=" wsj0 wsj1 model train sets $corpus_values "
options "$@"
rows=
for m in $(echo "${model:-all}" | tr ',' ' '); do
  case $m in
    all) rows=$rows,bilstm,softmax,lsh-4,linear ;;
    linear|softmax|lsh-[1-9]|bilstm|causal-[0-9]|lstm) rows=$rows,$m ;;
    none) ;;
    *) die "there is no model '$m'; the models are linear, softmax, lsh-4, bilstm, causal-0 to causal-9, lstm, all and none" ;;
  esac
done
[ -z "$causal" ] || rows=$rows,causal-0,causal-3,causal-8,lstm
rows=${rows#,}
[ -n "$rows" ] || die "--model none needs --causal"
data=$work/data
corpus_options 80
if wanted 1 || wanted 3 || wanted 5 || wanted 6; then needs_ffmpeg; fi

# Hours of the training set, 7.84 s an utterance on average: those that are there, else those of the corpus.
hours() {
  local n
  if [ -f "$data/$train/wav.scp" ]; then n=$(wc -l < "$data/$train/wav.scp")
  elif [ -n "$stand_in" ]; then n=0
  elif [ "$train" = train_si84 ]; then n=7138
  else n=37416; fi
  LC_ALL=C awk -v n="$n" 'BEGIN { printf "%.1f", n * 7.84 / 3600 }'
}
plan "$(hours)"
room
[ -n "$dry_run" ] || lock_work

if wanted 1; then
  say "stage 1: data directories"
  [ -n "$wsj0" ] && [ -n "$wsj1" ] || die "where are the discs? give --wsj0 DIR and --wsj1 DIR; $here/README.md says how to get them"
  for d in "$wsj0" "$wsj1"; do [ -d "$d" ] || die "$d is not a folder"; done
  asked=(bash "$here/data.sh" --wsj0 "$wsj0" --wsj1 "$wsj1" --output "$data" --linnet "$linnet" ${sets:+--sets "$sets"} ${stand_in:+--stand-in})
  run "${asked[@]}"
  [ -z "$dry_run" ] || "${asked[@]}" --dry-run
fi
corpus_stages # 2 to 5
is_stand_in() { [ -n "$stand_in" ] || grep -qs "STAND-IN" "$data/report.txt"; }

# If the number of words differs from that of published error rates, the transcripts are read differently.
check_words() {
  local n
  [ -z "$dry_run" ] && [ -f "$data/$1/text" ] && ! is_stand_in || return 0
  n=$(count_words "$1")
  [ "$n" = "$2" ] || echo "run.sh: $1 has $n words; the word error rates that others published are over $2" >&2
}

if wanted 6; then
  say "stage 6: words"
  check_words test_dev93 8234
  check_words test_eval92 5643
  corpus_words "$data/lm/tgpr_20k.arpa.gz"
fi

more_results() {
  [ -f "$work/words/counts" ] && ! is_stand_in || return 0
  echo
  echo "EESEN's CTC on phonemes (4 bidirectional LSTM layers of 320, 8.5 million parameters) with the pruned trigram: 11.39 % of the 8,234 words"
  echo "of test_dev93, 7.87 % of the 5,643 of test_eval92. The references here have $(count_words test_dev93) and $(count_words test_eval92) words."
}

if wanted 7; then
  say "stage 7: results"
  if is_stand_in; then
    corpus_results "A STAND-IN, not the Wall Street Journal corpus: this page says nothing about that corpus" \
      "The paper's numbers are for the Wall Street Journal corpus and cannot be compared with these."
    echo "**** a stand-in, not the Wall Street Journal corpus ****"
  else
    corpus_results "Wall Street Journal: phoneme error rates and time per epoch (table 3 of Katharopoulos et al. 2020)" \
      "The paper's numbers are for the same corpus, on its GPU; recipes/wsj/README.md lists the choices that it leaves open."
  fi
fi
