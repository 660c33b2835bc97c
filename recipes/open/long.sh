#!/usr/bin/env bash
# One long training that any machine can begin and carry on: features, then a process in the background, one thread, at the lowest priority.
#
#   recipes/open/long.sh --output DIR --corpus DIR [--librispeech DIR] [--common-voice FILE ...] [--more DATA ...] [--quiet exp/quiet]
#                        [--lexicon FILE] [--init share/linnet/en/default.safetensors|none] [--conf recipes/open/long.conf] [--epochs N]
#                        [--precision fp32|tf32|bf16] [--threads 1] [--device cpu] [--linnet PROGRAM]
#   recipes/open/long.sh --output DIR                # again: goes on from the last checkpoint, to the bit
#   recipes/open/long.sh --output DIR --corpus DIR ... --more NEW    # goes on with another set, from the start of the epoch that it is in
#   recipes/open/long.sh --output DIR --stop         # ends it, with a checkpoint
#   recipes/open/long.sh --output DIR --average      # DIR/average.safetensors: the mean of the last ten epochs' models and the last
#                                                    # checkpoint's, each a moving average of the weights
#   recipes/open/long.sh --output DIR --anneal N     # stops it, and begins another training from its checkpoint, whose rate falls to 0 in
#                                                    # N epochs of the speech at its own speed: DIR/anneal-E-N/best.safetensors (E: epochs
#                                                    # so far). Again: goes on
#
# The speech is that of run.sh (see there, and README.md), what of it is given; all of it is heard at 0.9, 1.0 and 1.1 times its speed but
# train_games and train_coded (coded.sh), once. OUTPUT is complete: the program and the configuration are copied there, so that neither a
# new build nor an edit of the tree changes the run; the folder can be moved to another machine and goes on there.
#   OUTPUT/log, pid    what the process says; which it is
#   OUTPUT/train/      the run (docs/training.md): log.tsv, curves.svg, checkpoint.safetensors, best.safetensors, epoch-N.safetensors
# --precision: bf16 if the processor has it. --epochs: of the one cosine.
here=$(dirname "$0")
. "$here/../common.sh"
. "$here/features.sh"

corpus= librispeech= common_voice=() more=() quiet=exp/quiet output= init=$here/../../share/linnet/en/default.safetensors conf=$here/long.conf
once="train_games train_coded" epochs= precision= anneal= stop= average= threads=1 device=cpu work=.
flags=" stop average " lists=" common-voice more "
values=" output corpus librispeech quiet lexicon init conf epochs precision threads device anneal linnet "
options "$@"
[ -n "$output" ] || die "where to? give --output DIR"
mkdir -p "$output"
work=$(cd "$output" && pwd) program=$output/program

# The process of the pid file, unless it has ended and another one has its number.
running() { [ -f "$work/pid" ] && ps -p "$(cat "$work/pid")" -o args= 2> /dev/null | grep -qF "$work/"; }
end() {
  ! running || kill -TERM "$(cat "$work/pid")"
  while running; do sleep 0.2; done
  rm -f "$work/pid"
}
# train FOLDER SETS MODEL OPTIONS...: begins with the model, if there is one, or resumes, in the background
train() {
  local folder=$1 sets=$2 from=$3 set
  shift 3
  if [ -f "$folder/checkpoint.safetensors" ]; then set -- "$@" --resume --new-data
  elif [ -f "$from" ]; then set -- "$@" --init "$from"; fi
  for set in $sets; do set -- "$@" --train "$work/features/$set.lfc"; done
  echo "$(date -u +%FT%TZ) $folder" >> "$work/log"
  setsid nohup nice -n 19 "$work/program" train "$work/long.conf" --folder "$folder" --dev "$work/features/dev_native.lfc" \
    --threads "$threads" --device "$device" --precision "$precision" "$@" < /dev/null >> "$work/log" 2>&1 &
  echo $! > "$work/pid"
  echo "long.sh: process $! trains in $folder; messages are in $work/log"
}

if [ -n "$stop" ]; then end; exit; fi
if [ -n "$average" ]; then
  mapfile -t models < <(find "$work/train" -name 'epoch-*.safetensors' -o -name checkpoint.safetensors)
  [ ${#models[@]} -gt 0 ] || die "$work/train has no checkpoint yet"
  exec "$work/program" average "${models[@]}" --ema --half -o "$work/average.safetensors"
fi

if [ ! -f "$work/sets" ] || [ -n "$corpus" ]; then
  need_corpus $dev_sets $train_sets
  if [ ! -f "$work/sets" ]; then
    cp "$linnet" "$work/program"
    cp "$conf" "$work/long.conf"
    [ -z "$epochs" ] || { sed '/^epochs[ =]/d' "$conf"; echo "epochs = $epochs"; } > "$work/long.conf"
    [ "$init" = none ] || cp "$init" "$work/init.safetensors"
  fi
  threads=0 open_features # on all cores; the training has --threads
  for cache in "$work"/features/{quiet,train_*}.lfc; do
    [ ! -f "$cache" ] || basename "$cache" .lfc
  done > "$work/sets.new"
  cmp -s "$work/sets.new" "$work/sets" || { end; mv "$work/sets.new" "$work/sets"; }
fi
[ -n "$precision" ] || precision=$(grep -qwE 'avx512_bf16|bf16' /proc/cpuinfo && echo bf16 || echo fp32)

if [ -n "$anneal" ]; then
  is_count "$anneal" --anneal
  end
  [ -f "$work/train/checkpoint.safetensors" ] || die "$work/train has no checkpoint yet"
  done=0
  [ ! -f "$work/train/log.tsv" ] || done=$(sed 1d "$work/train/log.tsv" | tail -n 1 | cut -f 1)
  folder=$work/anneal-${done:-0}-$anneal
  [ -f "$folder.safetensors" ] || "$work/program" average "$work/train/checkpoint.safetensors" --ema -o "$folder.safetensors"
  train "$folder" "$(grep -v '_sp$' "$work/sets")" "$folder.safetensors" --epochs "$anneal" --set warmup-steps=0 \
    --lr "$(awk '$1 == "lr" { print $3 / 2 }' "$work/long.conf")"
elif running; then
  echo "long.sh: process $(cat "$work/pid") is training; messages are in $work/log"
else train "$work/train" "$(cat "$work/sets")" "$work/init.safetensors"
fi
