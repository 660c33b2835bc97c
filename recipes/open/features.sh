# features.sh - the features of the open corpus and of other speech; sourced after common.sh by run.sh and long.sh, which have the options.
#
#   corpus=DIR librispeech=DIR common_voice=(FILE ...) more=(DATA ...) quiet=FOLDER lexicon=FILE work=FOLDER threads=N    what there is
#   open_features                         WORK/features/SET.lfc, and of speech SET_sp.lfc at 0.9 and 1.1 times the speed
# What is in WORK/features is kept. What is empty, or a folder of quiet sounds without a list, is left out: a script that needs it asks first.

# The second training of run.sh has all of these. The first one had five when the shipped model was made.
first_sets="train_native train_read train_games train_pseudo train_nonnative"
train_sets="$first_sets train_cv train_stories"
dev_sets="dev_native dev_nonnative"
once= # sets that have no other speeds
lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict

# need_corpus SET...: stops if the lexicon or one of the corpus's sets is missing
need_corpus() {
  local set
  [ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
  [ -f "$lexicon" ] || die "$lexicon does not exist; apt-get install pocketsphinx-en-us, or give --lexicon FILE"
  for set in "$@"; do [ -f "$corpus/$set/wav.scp" ] || die "$corpus/$set/wav.scp does not exist"; done
  for set in "${more[@]}"; do [ -f "$set/wav.scp" ] || die "$set/wav.scp does not exist; --more takes data directories"; done
}

# Frequencies above 5.5 kHz are not used: parts of the corpus have no sound there, and a model would learn that.
prepare() { # prepare DATA ROOT CACHE OPTIONS...
  local data=$1 root=$2 cache=$work/features/$3.lfc
  shift 3
  [ ! -f "$cache" ] || return 0
  # exit status 1: some utterances were reported and left out, and the cache was written
  "$linnet" prepare "$data" --audio-root "$root" --fbank high-hz=5500 --stack 3 --jobs "$threads" --output "$cache" "$@" || [ -f "$cache" ]
}
prepare_speech() { # prepare_speech DATA ROOT CACHE: the cache, and another one of the other speeds
  prepare "$1" "$2" "$3" --lexicon "$lexicon" --oov "$work/text/$3.oov"
  [[ " $once " != *" $3 "* ]] || return 0
  prepare "$1" "$2" "${3}_sp" --lexicon "$lexicon" --oov "$work/text/${3}_sp.oov" --speed 0.9,1.1
}

open_features() {
  local set file from=()
  mkdir -p "$work"/{features,text}
  for set in $dev_sets; do prepare "$corpus/$set" "$corpus" "$set" --lexicon "$lexicon" --oov "$work/text/$set.oov"; done
  for set in $train_sets; do prepare_speech "$corpus/$set" "$corpus" "$set"; done
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
