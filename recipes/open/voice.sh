#!/usr/bin/env bash
# Trains a network of voices on all speech with known speakers.
#
#   recipes/open/voice.sh --corpus DIR [--more DATA ...] [--work exp/voice] [--stage N] [--stop-stage N] [--threads N] [--conf FILE]
#
# --corpus: the open corpus (README.md). --more: further data directories with utt2spk, such as clips of Common Voice with their
# client ids; text is not needed. Equal names of speakers are one voice; no voice of the sets dev_* and test_* may be among them.
# Stages: 1 features (WORK/*.lfc)   2 training on the CPU (WORK/run)   3 equal error rates on voices that are held out (bench/voices.py
# needs numpy)
# Run stage 2 again to continue a training that was stopped.
here=$(dirname "$0")
. "$here/../common.sh"

corpus= more=() work=exp/voice stage=1 stop_stage=3 conf=$here/voice.conf
flags=" " values=" corpus work stage stop-stage threads conf linnet " lists=" more "
options "$@"
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
[ -f "$corpus/dev_native/wav.scp" ] || die "$corpus/dev_native/wav.scp does not exist; give --corpus DIR"
for data in ${more[@]+"${more[@]}"}; do [ -f "$data/utt2spk" ] || die "$data/utt2spk does not exist: it names the speakers"; done

# train_stories is left out: its many names are few readers.
sets="train_native train_pseudo train_cv train_nonnative train_read train_games"
different_names --more "$sets dev_native dev_nonnative" ${more[@]+"${more[@]}"}
train=() all=("${more[@]}")
for set in $sets; do train+=(--train "$work/$set.lfc"); done
for set in $sets dev_native dev_nonnative; do all+=("$corpus/$set"); done
for data in ${more[@]+"${more[@]}"}; do train+=(--train "$work/$(basename "$data").lfc"); done

if wanted 1; then
  echo "== stage 1: features"
  for data in "${all[@]}"; do
    prepare_set "$data" "$work" "$(basename "$data")" 1 --audio-root "$corpus" --no-speech --fbank high-hz=5500 -q
  done
fi

if wanted 2; then
  echo "== stage 2: training"
  [ ! -f "$work/run/checkpoint.safetensors" ] || train+=(--resume)
  "$linnet" train "$conf" "${train[@]}" --dev "$work/dev_native.lfc" --dev "$work/dev_nonnative.lfc" \
    --folder "$work/run" --threads "$threads" --device cpu
fi

if wanted 3; then
  echo "== stage 3: voices that are held out"
  vectors=$(dirname "$linnet")/bench/voice_vectors
  make -s "${vectors#"$PWD/"}"
  python3 "$here/../../bench/voices.py" --corpus "$corpus" --work "$work" --model "$work/run/best.safetensors" \
    dev_native dev_nonnative test_native | tee "$work/voices.tsv"
fi
