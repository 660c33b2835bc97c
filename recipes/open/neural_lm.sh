#!/usr/bin/env bash
# A language model of words that is a network (docs/lm.md), of the text of lm.sh: a training in the background, at the lowest priority.
#
#   recipes/open/neural_lm.sh --output DIR --corpus DIR --text FILE [--pieces 1000] [--conf recipes/open/neural_lm.conf] [--epochs N]
#                             [--precision fp32|bf16] [--threads 1] [--device cpu] [--linnet PROGRAM]
#   recipes/open/neural_lm.sh --output DIR           # again: continues from the last checkpoint, with the same bits
#   recipes/open/neural_lm.sh --output DIR --stop    # ends it, with a checkpoint
#   recipes/open/neural_lm.sh --output DIR --score   # perplexity of the best model so far, of dev_native
#
# FILE is the text of lm.sh: one sentence per line, without the books that dev and test sets are read from (README.md beside this
# script). The transcripts of the training sets are added five times, as in lm.sh; dev_native measures, test_* is not used.
#   OUTPUT/train.lfc, dev.lfc, dev.txt    the sets, and the text of dev_native for linnet ngram perplexity
#   OUTPUT/log, pid                       messages and id of the process
#   OUTPUT/train/                         the run (docs/training.md)
# --precision: bf16 if the processor has it. Of 66.9 million words, 1,000 pieces make 115 million tokens (500: 132, 2,000: 99, 4,000: 88 of
# the books alone). A core with AVX512-BF16 trains on about 3,700 tokens a second of its time (2,300 in fp32), so an epoch is 9 hours of it.
here=$(dirname "$0")
. "$here/../common.sh"

corpus= text= output= pieces=1000 conf=$here/neural_lm.conf epochs= precision= stop= score= threads=1 device=cpu work=.
train_sets="train_native train_read train_games train_pseudo train_nonnative train_cv train_stories"
flags=" stop score " values=" output corpus text pieces conf epochs precision threads device linnet "
options "$@"
[ -n "$output" ] || die "where to? give --output DIR"
mkdir -p "$output"
work=$(cd "$output" && pwd) program=$output/program
best=$work/train/best.safetensors

# The process of the pid file, unless it has ended and its id was reused.
running() { [ -f "$work/pid" ] && ps -p "$(cat "$work/pid")" -o args= 2> /dev/null | grep -qF "$work/"; }

if [ -n "$stop" ]; then
  ! running || kill -TERM "$(cat "$work/pid")"
  while running; do sleep 0.2; done
  rm -f "$work/pid"
  exit
fi
if [ -n "$score" ]; then
  [ -f "$best" ] || die "$best does not exist yet"
  exec "$program" lm score "$best" "$work/dev.txt" --threads "$threads" --device "$device"
fi
if [ ! -f "$work/dev.lfc" ]; then
  [ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
  [ -f "$text" ] || die "where is the text? give --text FILE; $here/README.md says how it is made"
  is_count "$pieces" --pieces
  cp "$linnet" "$work/program"
  cp "$conf" "$work/lm.conf"
  [ -z "$epochs" ] || { sed '/^epochs[ =]/d' "$conf"; echo "epochs = $epochs"; } > "$work/lm.conf"
  words_of() { cut -d ' ' -f 2- "$corpus/$1/text" | LC_ALL=C tr 'A-Z' 'a-z'; }
  for set in $train_sets; do words_of "$set"; done > "$work/train.txt"
  words_of dev_native > "$work/dev.txt"
  # Lines with other characters are reported and left out, with status 1.
  "$program" lm prepare "$text" "$work/train.txt"{,,,,} --pieces "$pieces" -o "$work/train.lfc" ||
    [ -s "$work/train.lfc" ] || die "no set was made"
  "$program" lm prepare "$work/dev.txt" --like "$work/train.lfc" -o "$work/dev.lfc" || [ -s "$work/dev.lfc" ] || die "no set was made"
fi
[ -n "$precision" ] || precision=$(grep -qwE 'avx512_bf16|bf16' /proc/cpuinfo && echo bf16 || echo fp32)
if running; then
  echo "neural_lm.sh: process $(cat "$work/pid") is training; messages are in $work/log"
  exit
fi
set --
[ ! -f "$work/train/checkpoint.safetensors" ] || set -- --resume
setsid nohup nice -n 19 "$program" train "$work/lm.conf" --train "$work/train.lfc" --dev "$work/dev.lfc" --folder "$work/train" \
  --threads "$threads" --device "$device" --precision "$precision" "$@" < /dev/null >> "$work/log" 2>&1 &
echo $! > "$work/pid"
echo "neural_lm.sh: process $! trains in $work/train; messages are in $work/log"
