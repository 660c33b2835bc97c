#!/usr/bin/env bash
# The shipped models, from sound to score, on the open corpus: staged like a Kaldi recipe.
#
#   recipes/open/run.sh --corpus DIR --librispeech DIR --common-voice FILE [--common-voice FILE ...] [--more DATA ...]
#                       [--quiet exp/quiet] [--work exp/open] [--lexicon FILE] [--conf recipes/open/causal.conf] [--stream-conf recipes/open/stream.conf]
#                       [--offline-conf recipes/open/offline.conf] [--last-conf recipes/open/labelled.conf]
#                       [--precision fp32|tf32|bf16] [--stage N] [--stop-stage N] [--threads N] [--device auto|cpu|cuda[:N]]
#                       [--quick] [--linnet PROGRAM]
#
# Stages: 1 features and labels   2 training   3 training again, from the best weights of stage 2; and of the streaming model, from these
#         4 training of the offline model, from the same weights   5 the last trainings of both: a larger network, then maximum
#         mutual information, then a second output   6 decoding and scoring of the dev sets   7 the test set, once
#         8 the table of results
# A model that these stages make today need not equal the shipped one: its data and its program have changed between its stages.
# --quick: one epoch of each training, to test the recipe.
# --corpus: Kaldi-style data directories (train_native, ..., dev_native, test_native) whose wav.scp paths are relative to DIR.
# --librispeech: the folder that LibriSpeech's train-clean-5 extracts to (recipes/librispeech/README.md). --common-voice: lists that
# common_voice.sh takes. --more: other speech for the last trainings (README.md says which), data directories with
# absolute paths in wav.scp. --quiet: what quiet.sh made.
# Needs cmudict-en-us.dict (Debian: pocketsphinx-en-us). Run from the root of the source tree.
# If run again, training continues where it stopped. Training sets are never decoded; test sets are never used for training or
# tuning. Training alone (--stage 2 --stop-stage 5) needs no corpus, only WORK/features/*.lfc: on a GPU machine
#   make && recipes/open/run.sh --work exp/open --stage 2 --stop-stage 5 --device cuda
here=$(dirname "$0")
. "$here/../common.sh"
. "$here/features.sh"

corpus= librispeech= quiet=exp/quiet work=exp/open
conf=$here/causal.conf stream_conf=$here/stream.conf offline_conf=$here/offline.conf last_conf=$here/labelled.conf
precision=tf32 stage=1 stop_stage=8 common_voice=() more=()
flags=" quick " lists=" common-voice more "
values=" corpus librispeech quiet work lexicon conf stream-conf offline-conf last-conf precision stage stop-stage threads device linnet "
# The later trainings: more of LibriSpeech, at all speeds as train_native, and sounds without speech; more of Common Voice too; and a
# tenth of speakers of another language.
last_sets="quiet train_librispeech train_librispeech_sp train_native_sp $train_sets"
more_sets="train_librispeech train_common_voice"
accent_sets="quiet train_native $more_sets train_cv train_stories train_read train_nonnative train_nonnative_sp"
# The last trainings of both models: these, the sets of --more, and in the very last one the guessed ones.
final_sets="quiet train_native train_native_sp train_librispeech train_librispeech_sp train_nonnative train_nonnative_sp train_cv
  train_common_voice train_stories train_read"
warped=(--set warp=0.1,tilt-db=6) wide=(--set head-width=40,feedforward=960) # of the last trainings
# Of the very last ones, on a GPU: everything at once, acoustics as in long.conf.
long_sets="train_native train_read train_pseudo train_nonnative train_cv train_stories train_librispeech train_common_voice"
strong=(--ema 0.999 --set "freq-width=9,time-masks=4,time-width=30,time-part=0.06,gain-db=8,tilt-db=8,warp=0.12,noise-part=0.3,babble-part=0.1"
  --set "snr-low-db=0,room-part=0.3,band-part=0.15,silence-part=0.04,warmup-steps=300")
test_sets="test_native"
options "$@"
if wanted 1 || wanted 6 || wanted 7; then need_corpus $train_sets $dev_sets $test_sets; fi
if wanted 1; then
  [ -d "$librispeech" ] || die "where is LibriSpeech's train-clean-5? give --librispeech DIR; recipes/librispeech/README.md says how to get it"
  [ ${#common_voice[@]} -gt 0 ] || die "where are Common Voice's lists? give --common-voice FILE; recipes/open/README.md says which"
  [ -f "$quiet/list" ] || die "$quiet/list does not exist; run recipes/open/quiet.sh, or give --quiet FOLDER"
fi
for set in "${more[@]}"; do
  set=$(basename "$set")
  [ "$set" = train_coded ] || final_sets="$final_sets $set" long_sets="$long_sets $set"
done
mkdir -p "$work"/{features,text,decode}

if wanted 1; then
  echo "== stage 1: features and labels"
  open_features
  for set in $dev_sets $test_sets; do
    "$linnet" phonemize --ids first --trn --lexicon "$lexicon" --oov "$work/text/$set.oov" "$corpus/$set/text" > "$work/text/$set.trn"
  done
fi

# training CONF FOLDER CACHES OPTIONS...
training() {
  local from=$1 folder=$2 sets=() set
  for set in $3; do sets+=(--train "$work/features/$set.lfc"); done
  [ ! -f "$folder/checkpoint.safetensors" ] || sets+=(--resume)
  shift 3
  "$linnet" train "$from" "${sets[@]}" --dev "$work/features/dev_native.lfc" --folder "$folder" --threads "$threads" --device "$device" \
    --precision "$precision" "$@" ${quick:+--epochs 1}
}

# both SETS: their caches, of all speeds
both() { for set in $1; do echo "$set ${set}_sp"; done; }
sped() { for set in $1; do echo "${set}_sp"; done; } # only 0.9 and 1.1

everything="quiet train_games $(both "$long_sets")"
once="quiet train_games $long_sets" # of the last trainings, which draw a speed for each utterance
[[ " ${more[*]} " != *"/train_coded "* ]] || everything="$everything train_coded" once="$once train_coded"

if wanted 2; then
  echo "== stage 2: training"
  training "$conf" "$work/train" "$(both "$first_sets")"
fi

# The cosine schedule has ended at a rate of 0; it begins again a little lower.
if wanted 3; then
  echo "== stage 3: training again"
  training "$conf" "$work/train-again" "$(both "$train_sets")" --init "$work/train/best.safetensors" --lr 1e-3 --epochs 8
  # One epoch on utterances alone, two with utterances that continue each other; the mean of both is good at either (LOG.md).
  training "$stream_conf" "$work/train-alone" "$train_sets" --init "$work/train-again/best.safetensors" --epochs 1
  training "$stream_conf" "$work/train-joined" "$train_sets" --init "$work/train-alone/best.safetensors" --epochs 2 --join-part 0.75 \
    --lr 4e-4
  "$linnet" average "$work"/train-{alone,joined}/checkpoint.safetensors --half -o "$work/joined.safetensors"
  training "$stream_conf" "$work/train-quiet" "$last_sets" --init "$work/joined.safetensors" --epochs 1 --join-part 0.5 \
    --set silence-part=0.04 --seed 13
  training "$stream_conf" "$work/train-more" "quiet $(both "$train_sets $more_sets")" --init "$work/train-quiet/best.safetensors" \
    --lr 4e-4 --epochs 1 --join-part 0.5 --set silence-part=0.04 --seed 14
  # Two parts of that and one of what these two began with, which hears accents better; then without the acted and guessed sets (LOG.md).
  "$linnet" average "$work/train-more/best.safetensors" "$work/train-more/best.safetensors" "$work/joined.safetensors" --half \
    -o "$work/more.safetensors"
  training "$stream_conf" "$work/train-accents" "$accent_sets" --init "$work/more.safetensors" \
    --lr 2e-4 --epochs 1 --join-part 0.5 --set silence-part=0.04 --seed 15
  training "$stream_conf" "$work/train-final" "$final_sets" --init "$work/train-accents/best.safetensors" \
    --lr 4e-4 --epochs 1 --join-part 0.5 --set silence-part=0.04 --seed 16
  training "$stream_conf" "$work/train-last" "$final_sets train_pseudo" --init "$work/train-final/best.safetensors" \
    --lr 6e-4 --epochs 2 --join-part 0.5 --set silence-part=0.04 --seed 17
  training "$stream_conf" "$work/train-longer" "$final_sets train_pseudo" --init "$work/train-last/best.safetensors" \
    --lr 6e-4 --epochs 3 --join-part 0.5 --set silence-part=0.04 --seed 18
  # Other vocal tracts and microphones; then wider heads, which begin as the same function.
  training "$stream_conf" "$work/train-warped" "$final_sets train_pseudo" --init "$work/train-longer/best.safetensors" \
    --lr 5e-4 --epochs 2 --join-part 0.5 --set silence-part=0.04 --seed 19 "${warped[@]}"
  "$linnet" average "$work"/train-{longer,warped}/best.safetensors --half -o "$work/warped.safetensors"
  training "$stream_conf" "$work/train-wide" "$final_sets train_pseudo" --init "$work/warped.safetensors" \
    --lr 8e-4 --epochs 4 --join-part 0.5 --set silence-part=0.04 --seed 21 "${warped[@]}" "${wide[@]}"
  # Two cosines over everything; the mean of their averages. The emission delay: bench/boundaries.py --transcribe.
  training "$stream_conf" "$work/train-long" "$everything" --init "$work/train-wide/best.safetensors" \
    "${wide[@]}" "${strong[@]}" --join-part 0.5 --batch-frames 48000 --lr 8e-4 --epochs 12 --seed 31
  training "$stream_conf" "$work/train-long-again" "$everything" --init "$work/train-long/best.safetensors" \
    "${wide[@]}" "${strong[@]}" --join-part 0.5 --batch-frames 48000 --lr 5e-4 --set warmup-steps=100 --epochs 4 --seed 32
  "$linnet" average "$work"/train-{long,long-again}/checkpoint.safetensors --ema --level-db 103 --half --delay-ms 101 \
    -o "$work/stream-half.safetensors"
fi

# A network that also reads later steps learns fastest from the one that does not: it begins as the same function but for the attention.
if wanted 4; then
  echo "== stage 4: the offline model"
  training "$offline_conf" "$work/train-offline" "$train_sets" --init "$work/train-again/best.safetensors"
  training "$offline_conf" "$work/train-offline-again" "$(sped "$train_sets")" --init "$work/train-offline/best.safetensors" \
    --lr 6e-4 --set warmup-steps=150 --epochs 2
  training "$offline_conf" "$work/train-offline-third" "$(both "$train_sets")" --init "$work/train-offline-again/best.safetensors" \
    --lr 6e-4 --set warmup-steps=150 --epochs 2 --seed 3
  training "$offline_conf" "$work/train-offline-quiet" "quiet $(both "$train_sets")" --init "$work/train-offline-third/best.safetensors" \
    --lr 4e-4 --epochs 1 --set silence-part=0.04 --seed 13
  training "$offline_conf" "$work/train-offline-last" "$last_sets" --init "$work/train-offline-quiet/best.safetensors" \
    --lr 6e-4 --epochs 1 --set silence-part=0.04 --seed 13
  training "$offline_conf" "$work/train-offline-final" "$final_sets" --init "$work/train-offline-last/best.safetensors" \
    --lr 5e-4 --epochs 1 --set silence-part=0.04 --seed 16
  training "$offline_conf" "$work/train-offline-end" "$final_sets train_pseudo" --init "$work/train-offline-final/best.safetensors" \
    --lr 6e-4 --epochs 2 --set silence-part=0.04 --seed 17
  training "$offline_conf" "$work/train-offline-longer" "$final_sets train_pseudo" --init "$work/train-offline-end/best.safetensors" \
    --lr 6e-4 --epochs 2 --set silence-part=0.04 --seed 18
  training "$offline_conf" "$work/train-offline-wide" "$final_sets train_pseudo" --init "$work/train-offline-longer/best.safetensors" \
    --lr 8e-4 --set warmup-steps=150 --epochs 3 --set silence-part=0.04 --seed 22 "${warped[@]}" "${wide[@]}"
  training "$offline_conf" "$work/train-offline-long" "$everything" --init "$work/train-offline-wide/best.safetensors" \
    "${wide[@]}" "${strong[@]}" --batch-frames 32000 --lr 8e-4 --epochs 17 --keep 6
  "$linnet" average "$work"/train-offline-long/epoch-*.safetensors --level-db 103 --half --delay-ms 92 \
    -o "$work/offline-half.safetensors"
fi

# last FROM TO FRAMES EPOCHS RATE VALUES OPTIONS...: a training from WORK/FROM.safetensors, and WORK/TO.safetensors, the mean of its weights
last() {
  training "$last_conf" "$work/train-$2" "$once" --init "$work/$1.safetensors" --batch-frames "$3" --epochs "$4" --lr "$5" --set "$6" "${@:7}"
  "$linnet" average --ema "$work/train-$2/checkpoint.safetensors" --level-db 103 --half -o "$work/$2.safetensors"
}

if wanted 5; then
  echo "== stage 5: the last trainings"
  wider=head-width=56,feedforward=1344,warmup-steps=300
  mmi=mmi=0.9,mmi-lm=share/linnet/en/phones.lm
  last stream-half stream-wider 48000 18 8e-4 $wider --join-part 0.5 --seed 61
  last stream-wider stream-mmi 16000 1 1.5e-4 $mmi,warmup-steps=30 --join-part 0.5 --ema 0.99 --seed 82
  last stream-mmi stream-search 48000 13 7e-4 $mmi,search=1,warmup-steps=300 --join-part 0.5 --seed 101
  last offline-half offline-wider 40000 36 8e-4 $wider --seed 62
  last offline-wider offline-mmi 16000 1 1.5e-4 $mmi,warmup-steps=30 --ema 0.99 --seed 81
  last offline-mmi offline-search 40000 30 8e-4 $mmi,search=1,warmup-steps=300 --seed 102
  # The emission delays: bench/boundaries.py --transcribe. All speech is a twentieth slower to the offline model.
  "$linnet" average "$work/stream-search.safetensors" --half --delay-ms 109 --blank-bias 1 -o "$work/stream-end.safetensors"
  "$linnet" average "$work/offline-search.safetensors" --half --hop-ms 9.5 --delay-ms 88 --blank-bias 1.5 -o "$work/offline-end.safetensors"
  for model in stream offline; do "$linnet" quantise "$work/$model-end.safetensors" -o "$work/$model.safetensors"; done
fi

score() { # score SET
  local model
  for model in stream offline; do
    "$linnet" transcribe --data "$corpus/$1" --audio-root "$corpus" --model "$work/$model.safetensors" --jobs "$threads" \
      --format trn --device "$device" --output "$work/decode/$1.$model.trn"
    "$linnet" score "$work/text/$1.trn" "$work/decode/$1.$model.trn" | tee "$work/decode/$1.$model.score"
  done
}

if wanted 6; then
  echo "== stage 6: the dev sets"
  for set in $dev_sets; do score "$set"; done
fi

if wanted 7; then
  echo "== stage 7: the test set"
  for set in $test_sets; do score "$set"; done
fi

if wanted 8; then
  echo "== stage 8: results"
  {
    echo "| set | model | utterances | phonemes | substitutions | deletions | insertions | PER % |"
    echo "|---|---|---|---|---|---|---|---|"
    for set in $dev_sets $test_sets; do
      for model in stream offline; do
        # the last line: PER 37.50 %: 1 substitutions, 1 deletions, 1 insertions in 8 tokens of 2 utterances
        tail -n 1 "$work/decode/$set.$model.score" | tr -d ,: |
          awk -v set="$set" -v model="${model/stream/streaming}" \
            '{ printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", set, model, $14, $11, $4, $6, $8, $2 }'
      done
    done
  } | tee "$work/RESULTS.md"
fi
