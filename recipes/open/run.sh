#!/usr/bin/env bash
# Trains the shipped models on the open corpus, from sound to scores: one training of each, from random weights.
#
#   recipes/open/run.sh --corpus DIR [--librispeech DIR] [--common-voice FILE ...] [--more DATA ...] [--quiet exp/quiet] [--lexicon FILE]
#                       [--work exp/open] [--models stream,offline] [--conf-folder recipes/open] [--epochs N] [--precision fp32|tf32|bf16]
#                       [--stage features|train|score|test] [--threads N] [--device auto|cpu|cuda[:N]] [--linnet PROGRAM]
#
# Stages, all of them if none is named: features, the features and labels of all speech that is given; train, WORK/MODEL/ and the model to
# ship, WORK/MODEL.safetensors; score, the dev sets; test, the test set, once, and the table WORK/RESULTS.md.
# --corpus: Kaldi-style data directories (train_native, ..., dev_native, test_native) whose wav.scp paths are relative to DIR.
# --librispeech: the folder that LibriSpeech's train-clean-5 extracts to (recipes/librispeech/README.md). --common-voice: lists that
# common_voice.sh takes. --more: other speech (README.md says which), data directories with absolute paths in wav.scp. --quiet: what
# quiet.sh made. Speech that is not given is left out.
# --models: stream.conf and offline.conf of --conf-folder, or one of them. --epochs: fewer than they say, for a machine without a GPU.
# Needs cmudict-en-us.dict (Debian: pocketsphinx-en-us). Run from the root of the source tree.
# If run again, training continues where it stopped, with the same bits. The stage train needs only WORK/features/*.lfc: on a GPU machine
#   make && recipes/open/run.sh --work exp/open --stage train --device cuda --precision bf16
here=$(dirname "$0")
. "$here/../common.sh"

lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict
corpus= librispeech= common_voice=() more=() quiet=exp/quiet work=exp/open models=stream,offline conf_folder=$here epochs= precision=tf32 stage=
flags=" " lists=" common-voice more "
values=" corpus librispeech quiet work lexicon models conf-folder epochs precision stage threads device linnet "
train_sets="train_native train_read train_games train_pseudo train_nonnative train_cv train_stories"
dev_sets="dev_native dev_nonnative"
options "$@"
case $stage in ''|features|train|score|test) ;; *) die "there is no stage '$stage'; --help lists them" ;; esac
[ -z "$epochs" ] || is_count "$epochs" --epochs

# need_corpus SET...: stops if the lexicon or one of the corpus's sets is missing
need_corpus() {
  local set
  [ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
  [ -f "$lexicon" ] || die "$lexicon does not exist; apt-get install pocketsphinx-en-us, or give --lexicon FILE"
  for set in "$@"; do [ -f "$corpus/$set/wav.scp" ] || die "$corpus/$set/wav.scp does not exist"; done
  for set in "${more[@]}"; do
    [ -f "$set/wav.scp" ] || die "$set/wav.scp does not exist; --more takes data directories"
    [[ $(basename "$set") == train_* ]] || die "--more $set: rename it, as the training takes caches named train_* only"
  done
  different_names --more "$train_sets train_librispeech train_common_voice" "${more[@]}"
}

# Frequencies above 5.5 kHz are not used: parts of the corpus have no sound there, and a model would learn that.
prepare() { prepare_set "$1" "$work/features" "$3" 1 --audio-root "$2" --fbank high-hz=5500 --stack 3 "${@:4}"; } # DATA ROOT SET OPTIONS...
prepare_speech() { prepare "$1" "$2" "$3" --lexicon "$lexicon" --oov "$work/text/$3.oov"; } # DATA ROOT SET

# WORK/features/SET.lfc; existing files are kept
open_features() {
  local set file from=()
  mkdir -p "$work"/{features,text}
  for set in $dev_sets $train_sets; do prepare_speech "$corpus/$set" "$corpus" "$set"; done
  if [ -n "$librispeech" ]; then
    bash "$here/../librispeech/data.sh" --corpus "$librispeech" --output "$work/data" --sets train-clean-5 --linnet "$linnet"
    prepare_speech "$work/data/train-clean-5" / train_librispeech
  fi
  if [ ${#common_voice[@]} -gt 0 ]; then
    for file in "${common_voice[@]}"; do from+=(--list "$file"); done
    bash "$here/common_voice.sh" "${from[@]}" --output "$work/data/common-voice" --linnet "$linnet"
    prepare_speech "$work/data/common-voice" / train_common_voice
  fi
  for set in "${more[@]}"; do prepare_speech "$set" / "$(basename "$set")"; done
  [ ! -f "$quiet/list" ] || prepare "$quiet/list" "$quiet" quiet --no-speech
}

due() { [ -z "$stage" ] || [ "$stage" = "$1" ]; }
[ "$stage" = train ] || need_corpus $train_sets $dev_sets test_native
mkdir -p "$work"/{features,text,decode}

if due features; then
  open_features
  for set in $dev_sets test_native; do
    "$linnet" phonemize -q --ids first --trn --lexicon "$lexicon" --oov "$work/text/$set.oov" "$corpus/$set/text" > "$work/text/$set.trn"
  done
fi

if due train; then
  caches=(--dev "$work/features/dev_native.lfc")
  for cache in "$work"/features/{quiet,train_*}.lfc; do [ ! -f "$cache" ] || caches+=(--train "$cache"); done
  for model in ${models//,/ }; do
    folder=$work/$model resume=()
    # Emission delays (bench/boundaries.py --transcribe) and blank biases (dev_native) of the shipped models. All speech is a twentieth
    # slower to the offline one.
    case $model in stream) ship=(--delay-ms 109 --blank-bias 1) ;; *) ship=(--hop-ms 9.5 --delay-ms 88 --blank-bias 1.5) ;; esac
    [ ! -f "$folder/checkpoint.safetensors" ] || resume=(--resume)
    "$linnet" train "$conf_folder/$model.conf" "${caches[@]}" --folder "$folder" --threads "$threads" --device "$device" \
      --precision "$precision" --name "linnet-open-$model" --license "CC BY-SA 4.0; see NOTICE" ${epochs:+--epochs "$epochs"} "${resume[@]}" || exit $?
    "$linnet" average --ema "$folder/checkpoint.safetensors" --level-db 103 --half "${ship[@]}" -o "$folder/half.safetensors"
    "$linnet" quantise "$folder/half.safetensors" -o "$work/$model.safetensors"
  done
fi

score() { # score SET
  local model
  for model in ${models//,/ }; do
    "$linnet" transcribe --data "$corpus/$1" --audio-root "$corpus" --model "$work/$model.safetensors" --jobs "$threads" \
      --format trn --device "$device" --output "$work/decode/$1.$model.trn"
    "$linnet" score "$work/text/$1.trn" "$work/decode/$1.$model.trn" | tee "$work/decode/$1.$model.score"
  done
}

if due score; then for set in $dev_sets; do score "$set"; done; fi

if due test; then
  score test_native
  {
    columns "| set | model | utterances | phonemes | substitutions | deletions | insertions | PER % |"
    for set in $dev_sets test_native; do
      for model in ${models//,/ }; do
        # the last line: PER 37.50 %: 1 substitutions, 1 deletions, 1 insertions in 8 tokens of 2 utterances
        tail -n 1 "$work/decode/$set.$model.score" | tr -d ,: |
          awk -v set="$set" -v model="$model" '{ printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", set, model, $14, $11, $4, $6, $8, $2 }'
      done
    done
  } | tee "$work/RESULTS.md"
fi
