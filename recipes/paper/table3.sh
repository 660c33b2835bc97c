#!/usr/bin/env bash
# Table 3 of Katharopoulos et al. 2020: phoneme error rate and time per epoch of Bi-LSTM, softmax, Reformer and linear attention on one corpus.
#
#   recipes/paper/table3.sh --corpus DIR [--audio-root DIR] [--work exp/paper/table3] [--rows bilstm,softmax,lsh-4,linear,...]
#                           [--train SET,...] [--dev SET] [--test SET,...] [--lexicon FILE] [--high-hz HZ] [--shards N]
#                           [--seeds 3] [--stack 1] [--epochs 80] [--grid LR,...] [--grid-lstm LR,...] [--batch-frames N] [--patience 3]
#                           [--schedule plateau|cosine] [--positions sinusoid|conv]
#                           [--normalize-forwards speaker|global] [--max-frames 3600] [--launch COMMAND] [--augment] [--precision fp32|tf32|bf16]
#                           [--words LM --words-lexicon FILE [--words-weights W,...]] [--title TEXT] [--note TEXT]
#                           [--stage N] [--stop-stage N] [--device auto|cpu|cuda[:N]] [--threads N] [--reduced] [--quick] [--linnet PROGRAM]
#
# Stages: 1 features   2 training   3 decoding and scoring   4 results
# DIR holds data directories (wav.scp, text, utt2spk); the paths in wav.scp are relative to --audio-root (default: DIR).
# Rows: bilstm softmax lsh-4 linear (the paper's), lsh-N, poly2, random, softmax-naive, and networks that read forwards only: causal-R
# (linear attention, R frames of look-ahead), softmax-causal, lstm. Default: bilstm,softmax,lsh-4,linear,lsh-1,causal-0,causal-3,
# causal-8,lstm.
# The same for all: data, features (40 mel bins, normalised by speaker), stacking, batches, and the stopping rule: the learning rate is
# halved after --patience epochs without a lower error rate on the dev set; training ends when it is below a twentieth of its start,
# or after --epochs. Each row is trained with seed 1 at every rate of the grid; the other seeds take the rate with the lowest dev
# error rate. --schedule cosine, if time is short: the rate falls to 0 over --epochs, the same number for every row.
# --positions: of the transformers that see whole utterances. With sinusoids, the default, they need far more updates than a few hours of
# speech give before they learn more than single frames; with convolutions of 9 frames (conv), as in all networks that stream, they do not.
# --reduced, for CPUs: 3 frames stacked, at most 40 epochs, batches of 4,000 frames instead of 16,000. --quick: tiny networks, 1 epoch,
# 1 seed and the first 60 utterances of each set, to test the recipe in about two minutes.
# If run again, finished work is skipped and an interrupted run resumes. Test sets are decoded once per model and choose nothing.
# --shards: features are prepared in so many parts, and an interruption loses only one of them. --normalize-forwards: of the networks that
# read forwards. --launch: what runs linnet train, such as "mpirun -np 4". --words: also word error rates; the weight of the language
# model is the best one for the dev set. --title, --note: of the page of results. --augment: SpecAugment for all rows, which the paper
# does not mention; for corpora so small that networks learn them by heart. --precision: of the matrix products of training.
# On a machine without the corpus: --stage 2 --stop-stage 2 needs only WORK/features. Several runs may share WORK if their rows differ.
. "$(dirname "$0")/../common.sh"

corpus= audio_root= work=exp/paper/table3 lexicon= high_hz=5500 train=train_native dev=dev_native test=test_native
rows=bilstm,softmax,lsh-4,linear,lsh-1,causal-0,causal-3,causal-8,lstm
seeds= stack= epochs= grid=1e-4,2e-4,5e-4 grid_lstm=5e-4,1e-3,2e-3 batch_frames= patience=3 stage=1 stop_stage=4 reduced=
shards=1 normalize_forwards=speaker max_frames=3600 launch= words= words_lexicon= words_weights=0.5,0.65,0.8,1 title= note=
augment= precision=tf32 schedule=plateau positions=sinusoid
flags=" quick reduced augment "
values=" corpus audio-root work lexicon high-hz train dev test rows seeds stack epochs grid grid-lstm batch-frames patience stage stop-stage
  schedule positions shards normalize-forwards max-frames launch precision words words-lexicon words-weights title note device threads linnet "
values=${values//$'\n'/}
options "$@"
[ -n "$reduced" ] && stack=${stack:-3} epochs=${epochs:-40} batch_frames=${batch_frames:-4000}
[ -n "$quick" ] && epochs=${epochs:-1} seeds=${seeds:-1}
seeds=${seeds:-3} stack=${stack:-1} epochs=${epochs:-80} batch_frames=${batch_frames:-16000}
for o in seeds stack epochs stage stop_stage batch_frames max_frames patience shards; do is_count "${!o}" "--${o//_/-}"; done
case $normalize_forwards in speaker|global) ;; *) die "--normalize-forwards is speaker or global, not '$normalize_forwards'" ;; esac
case $schedule in plateau|cosine) ;; *) die "--schedule is plateau or cosine, not '$schedule'" ;; esac
case $positions in sinusoid|conv) ;; *) die "--positions is sinusoid or conv, not '$positions'" ;; esac
case $precision in fp32|tf32|bf16) ;; *) die "--precision is fp32, tf32 or bf16, not '$precision'" ;; esac
[ -z "$augment" ] || masks=(--set freq-masks=2,freq-width=7,time-masks=2,time-width=25,time-part=0.05)
[ -z "$words" ] || [ -f "$words" ] || die "$words does not exist"
[ -z "$words" ] || [ -f "$words_lexicon" ] || die "--words needs the pronunciations of its words: --words-lexicon FILE"
all_sets="${train//,/ } $dev ${test//,/ }" decoded="$dev ${test//,/ }" first_test=${test%%,*}

# ---- rows ------------------------------------------------------------------------------------------------------------------------

# Networks that read forwards have convolutions of 9 frames, which work for any length of sound, unlike sinusoids.
whole=(--direction bidirectional --positions sinusoid)
[ "$positions" = sinusoid ] || whole=(--direction bidirectional --positions centred-conv --set conv-kernel=9,conv-layers=9)
forwards=(--direction causal --positions conv --set conv-kernel=9,conv-layers=9)
lstm=(--network lstm --layers 3 --set width=320,optimizer=adam)
transformer=(--layers 9 --set heads=6,head-width=32,feedforward=768,optimizer=radam)
if [ -n "$quick" ]; then
  lstm=(--network lstm --layers 1 --set width=8,optimizer=adam)
  transformer=(--layers 1 --set heads=2,head-width=4,feedforward=8,optimizer=radam)
  forwards=(--direction causal --positions conv --set conv-kernel=3,conv-layers=1)
  [ "$positions" = sinusoid ] || whole=(--direction bidirectional --positions centred-conv --set conv-kernel=3,conv-layers=1)
  grid=${grid%%,*} grid_lstm=${grid_lstm%%,*}
fi

# network ROW: sets `network`, its options of linnet train, `rates` and `normalize`
network() {
  rates=$grid normalize=speaker
  case $1 in
    bilstm) network=("${lstm[@]}" --direction bidirectional) rates=$grid_lstm ;;
    lstm) network=("${lstm[@]}" --direction causal) rates=$grid_lstm ;;
    linear) network=("${transformer[@]}" "${whole[@]}") ;;
    softmax|softmax-naive) network=("${transformer[@]}" "${whole[@]}" --attention "$1") ;;
    lsh-[1-9]|lsh-1[0-6]) network=("${transformer[@]}" "${whole[@]}" --attention lsh --set "lsh-rounds=${1#lsh-}") ;;
    poly2|random) network=("${transformer[@]}" "${whole[@]}" --set feature-map="$1") ;;
    softmax-causal) network=("${transformer[@]}" "${forwards[@]}" --attention softmax) ;;
    causal-[0-9]|causal-[1-5][0-9]|causal-6[0-4]) network=("${transformer[@]}" "${forwards[@]}" --ahead "${1#causal-}") ;;
    *) die "there is no row '$1'; --help lists them" ;;
  esac
  case $1 in lstm|*causal*) normalize=$normalize_forwards ;; esac
}
for row in ${rows//,/ }; do network "$row"; done # before anything is computed: are all known?

# ---- 1: features -----------------------------------------------------------------------------------------------------------------

if wanted 1 || wanted 3; then
  [ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
  for set in $all_sets; do [ -f "$corpus/$set/wav.scp" ] || die "$corpus/$set/wav.scp does not exist"; done
  audio_root=${audio_root:-$corpus}
fi
mkdir -p "$work"/{features,text,train}
if [ -n "$quick" ] && [ -n "$corpus" ]; then
  for set in $all_sets; do
    mkdir -p "$work/corpus/$set"
    for file in wav.scp text utt2spk; do # the same utterances in each file
      [ ! -f "$corpus/$set/$file" ] || head -n 60 "$corpus/$set/wav.scp" | awk 'NR == FNR { wanted[$1]; next } $1 in wanted' - "$corpus/$set/$file" > "$work/corpus/$set/$file"
    done
  done
  corpus=$work/corpus
fi

if wanted 1; then
  for set in $all_sets; do
    n=$shards; [[ " $decoded " == *" $set "* ]] && n=1
    prepare_set "$corpus/$set" "$work/features" "$set" "$n" --audio-root "$audio_root" ${lexicon:+--lexicon "$lexicon"} --fbank high-hz="$high_hz" \
      --stack "$stack"
  done
  # A decoded set without any utterance cannot be scored.
  for set in ${train//,/ }; do check_set "$work/features" "$set" 0.01; done
  for set in $decoded; do
    check_set "$work/features" "$set" 0
    trn=$work/text/$set.trn # another run may be reading it, or making it too
    if [ "$trn" -nt "$corpus/$set/text" ] && { [ -z "$lexicon" ] || [ "$trn" -nt "$lexicon" ]; }; then continue; fi
    "$linnet" phonemize -q --ids first --trn ${lexicon:+--lexicon "$lexicon"} "$corpus/$set/text" -o "$trn.$$" && mv "$trn.$$" "$trn"
  done
fi

# ---- 2: training -----------------------------------------------------------------------------------------------------------------

# data_options: sets `data` to the options that name the caches; 1 if one is missing, its set in `set`
data_options() {
  data=()
  for set in ${train//,/ }; do
    caches_of "$work/features" "$set" || return 1
    for cache in "${caches[@]}"; do data+=(--train "$cache"); done
  done
  set=$dev; caches_of "$work/features" "$set" || return 1
  for cache in "${caches[@]}"; do data+=(--dev "$cache"); done
}

# train_one ROW LR SEED: WORK/train/ROW/lr-LR-seed-SEED, which has a file `done` at the end
train_one() {
  local folder=$work/train/$1/lr-$2-seed-$3 resume=
  network "$1"
  network+=(--stack "$stack" --set normalize="$normalize" --set norm=post,dropout=0.1 --lr "$2"
    --set min-lr="$(LC_ALL=C awk -v lr="$2" 'BEGIN { print lr / 20 }')"
    --batch-frames "$batch_frames" --set max-frames="$max_frames" --seed "$3" --precision "$precision" ${masks[@]+"${masks[@]}"})
  made_with "$folder" "${data[@]}" "${network[@]}" "${schedule/cosine/cosine over $epochs epochs}" # without the rule that ends it
  [ -f "$folder/done" ] && return
  [ -f "$folder/checkpoint.safetensors" ] && resume=--resume
  echo "== $1, rate $2, seed $3"
  # shellcheck disable=SC2086 # a command of several words
  $launch "$linnet" train "${data[@]}" --folder "$folder" "${network[@]}" --schedule "$schedule" --set patience="$patience" --epochs "$epochs" \
    --name "table3 $1" --device "$device" --threads "$threads" $resume ||
    { [ $? -ne 130 ] || exit 130; return 1; }
  touch "$folder/done"
}

# lowest FOLDER: the lowest dev error rate of a run in per cent and its epoch, "12.34 17"; nothing if there is none
lowest() {
  LC_ALL=C awk -F'\t' 'FNR > 1 && $1 >= 1 && $5 >= 0 && (!n++ || $5 < low) { low = $5; at = $1 } END { if (n) print low, at }' "$1/log.tsv" 2> /dev/null || true
}

# best_rate ROW: the rate of the grid with the lowest dev error rate of seed 1
best_rate() {
  local rate low best= lr=
  network "$1"
  for rate in ${rates//,/ }; do
    low=$(lowest "$work/train/$1/lr-$rate-seed-1")
    [ -n "$low" ] || continue
    if [ -z "$best" ] || LC_ALL=C awk -v a="${low% *}" -v b="$best" 'BEGIN { exit !(a < b) }'; then best=${low% *} lr=$rate; fi
  done
  echo "$lr"
}

# chosen: "ROW RATE SEED FOLDER" of each run at the best rate of its row
chosen() {
  local row rate seed
  for row in ${rows//,/ }; do
    rate=$(best_rate "$row")
    [ -n "$rate" ] || continue
    for seed in $(seq "$seeds"); do echo "$row $rate $seed $work/train/$row/lr-$rate-seed-$seed"; done
  done
}

if wanted 2; then
  data_options || die "$work/features/$set.lfc does not exist; run stage 1"
  untrained=
  for row in ${rows//,/ }; do
    network "$row"
    for rate in ${rates//,/ }; do train_one "$row" "$rate" 1 || untrained="$untrained $row at rate $rate;"; done
    rate=$(best_rate "$row")
    [ -n "$rate" ] || continue
    for seed in $(seq 2 "$seeds"); do train_one "$row" "$rate" "$seed" || untrained="$untrained $row, seed $seed;"; done
  done
  if [ -n "$untrained" ]; then
    untrained="these were not trained:${untrained%;}. The messages above say why"
    [ "$stop_stage" != 2 ] || die "$untrained"
    echo "table3.sh: $untrained" >&2
  fi
fi

# ---- 3: scores -------------------------------------------------------------------------------------------------------------------

# speakers_of SET: sets `speakers` to the option that names them, for the intervals over speakers
speakers_of() { speakers=(); [ ! -f "$corpus/$1/utt2spk" ] || speakers=(--utt2spk "$corpus/$1/utt2spk"); }

if wanted 3; then
  while read -r row rate seed folder <&3; do
    [ -f "$folder/done" ] || continue
    for set in $decoded; do
      [ -s "$folder/$set.score" ] && continue
      "$linnet" transcribe -q --data "$corpus/$set" --audio-root "$audio_root" --model "$folder/best.safetensors" --jobs "$threads" \
        --format trn --device "$device" --output "$folder/$set.trn"
      speakers_of "$set"
      "$linnet" score "${speakers[@]}" "$work/text/$set.trn" "$folder/$set.trn" > "$folder/.score" && mv "$folder/.score" "$folder/$set.score"
    done
  done 3< <(chosen)
fi

# ---- 3: words ----------------------------------------------------------------------------------------------------------------------

# rate_of SCORE: its error rate; "PER 20.00 %: ..." or "WER ..." is the last line
rate_of() { LC_ALL=C awk 'END { print $2 }' "$1"; }

# words_of SET WEIGHT FOLDER: FOLDER/SET.words-WEIGHT.{trn,score}
words_of() {
  local name=$3/$1.words-$2
  [ -s "$name.score" ] && return
  "$linnet" transcribe -q --data "$corpus/$1" --audio-root "$audio_root" --model "$3/best.safetensors" --words --lm "$words" \
    --lexicon "$words_lexicon" --no-unknown --tune lm-weight="$2" --jobs "$threads" --format trn --device "$device" --output "$name.trn"
  speakers_of "$1"
  "$linnet" score "${speakers[@]}" --name WER --format kaldi "$corpus/$1/text" "$name.trn" > "$name.new" && mv "$name.new" "$name.score"
}

if wanted 3 && [ -n "$words" ]; then
  while read -r row rate seed folder <&3; do
    [ -f "$folder/done" ] || continue
    best=
    for weight in ${words_weights//,/ }; do
      words_of "$dev" "$weight" "$folder"
      wer=$(rate_of "$folder/$dev.words-$weight.score")
      if [ -z "$best" ] || LC_ALL=C awk -v a="$wer" -v b="$best" 'BEGIN { exit !(a < b) }'; then best=$wer best_weight=$weight; fi
    done
    echo "$best_weight" > "$folder/words.weight" # before the first table of results that names it
    for set in $decoded; do
      words_of "$set" "$best_weight" "$folder"
      cp "$folder/$set.words-$best_weight.score" "$folder/$set.words"
    done
  done 3< <(chosen)
fi

# ---- 4: results ------------------------------------------------------------------------------------------------------------------

# One line per run of the chosen rate: row, seed, rate, dev PER, its bootstrap interval, test PER, its interval, seconds per epoch (median, with
# evaluation), epoch of the lowest dev error rate, epochs, parameters.
runs() {
  local row rate seed folder
  printf 'row\tseed\tlr\tdev_per\tdev_low\tdev_high\ttest_per\ttest_low\ttest_high\tepoch_s\tbest_epoch\tepochs\tparameters\n'
  chosen | while read -r row rate seed folder; do
    [ -f "$folder/done" ] || continue
    printf '%s\t%s\t%s' "$row" "$seed" "$rate"
    for set in "$dev" "$first_test"; do
      # 95 % interval [20.00, 33.33] over 2 utterances, ...   PER 20.00 %: ...
      LC_ALL=C awk '/% interval \[/ { low = $4; high = $5; gsub(/[][,]/, "", low); gsub(/[][,]/, "", high) } $1 == "PER" { per = $2 }
        END { printf "\t%s\t%s\t%s", per == "" ? "-" : per, low == "" ? "-" : low, high == "" ? "-" : high }' "$folder/$set.score" 2> /dev/null ||
        printf '\t-\t-\t-'
    done
    LC_ALL=C awk -F'\t' 'FNR > 1 { print $9 - last; last = $9 }' "$folder/log.tsv" | LC_ALL=C sort -g |
      LC_ALL=C awk '{ v[NR] = $1 } END { printf "\t%.2f", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
    printf '\t%s\t%s' "$(lowest "$folder" | cut -d' ' -f2)" "$(tail -n 1 "$folder/log.tsv" | cut -f1)"
    printf '\t%s\n' "$("$linnet" info --json "$folder/best.safetensors" | sed -n 's/.*"parameters": *\([0-9]*\).*/\1/p' | head -n 1)"
  done
}

# Every run's log with its row and seed, for the plots.
curves() {
  local row rate seed folder
  printf 'row\tseed\tepoch\tdev_per\tseconds\n'
  chosen | while read -r row rate seed folder; do
    [ ! -f "$folder/log.tsv" ] ||
      LC_ALL=C awk -F'\t' -v row="$row" -v seed="$seed" 'FNR > 1 && $1 >= 1 && $5 >= 0 { print row "\t" seed "\t" $1 "\t" $5 "\t" $9 }' "$folder/log.tsv"
  done
}

# The rows of the table: mean over seeds with its 95 % interval (Student's t), the interval over utterances of seed 1.
table() {
  LC_ALL=C awk -F'\t' -v rows="$rows" '
    function mean_of(r, c,   s, k, sum) { for (s in seeds) if ((r, s, c) in v && v[r, s, c] != "-") { sum += v[r, s, c]; k++ } count = k; return k ? sum / k : "-" }
    function spread(r, c, m,   s, sum, k) {
      for (s in seeds) if ((r, s, c) in v && v[r, s, c] != "-") { sum += (v[r, s, c] - m) ^ 2; k++ }
      return k < 2 ? "" : sprintf(" ± %.2f", (k in t ? t[k] : 2) * sqrt(sum / (k - 1) / k))
    }
    BEGIN {
      t[2] = 12.706; t[3] = 4.303; t[4] = 3.182; t[5] = 2.776; t[6] = 2.571; t[7] = 2.447; t[8] = 2.365; t[9] = 2.306; t[10] = 2.262
      split("bilstm 10.94 1047 softmax 5.12 2711 lsh-4 9.33 2250 linear 8.08 824", p, " ")
      for (i = 1; i in p; i += 3) { paper[p[i]] = p[i + 1]; time[p[i]] = p[i + 2] }
      n = split(rows, order, ",")
    }
    FNR > 1 { seeds[$2] = 1; runs[$1]++; rate[$1] = $3; for (i = 4; i <= NF; i++) v[$1, $2, i] = $i }
    END {
      print "| row | parameters | rate | seeds | dev PER % | test PER % | test PER of seed 1: 95 % interval | s per epoch | best epoch | paper: dev PER % | paper: s per epoch |"
      print "|---|---|---|---|---|---|---|---|---|---|---|"
      for (i = 1; i <= n; i++) {
        r = order[i]
        own = r in paper ? sprintf("%s | %s", paper[r], time[r]) : "- | -"
        if (!runs[r]) { printf "| %s | - | - | 0 | - | - | - | - | - | %s |\n", r, own; continue }
        printf "| %s | %s | %s | %d |", r, v[r, 1, 13], rate[r], runs[r]
        for (c = 4; c <= 7; c += 3) { m = mean_of(r, c); if (m == "-") printf " - |"; else printf " %.2f%s |", m, spread(r, c, m) }
        printf " %s to %s |", v[r, 1, 8], v[r, 1, 9]
        printf " %.4g | %.0f | %s |\n", mean_of(r, 10), mean_of(r, 11), own
      }
    }' "$work/runs.tsv"
}

rates_tried() {
  local row rate low
  columns "| row | rate | dev PER % of seed 1 (greedy, during training) | epoch |"
  for row in ${rows//,/ }; do
    network "$row"
    for rate in ${rates//,/ }; do
      low=$(lowest "$work/train/$row/lr-$rate-seed-1")
      if [ -n "$low" ]; then LC_ALL=C awk -v row="$row" -v rate="$rate" -v per="${low% *}" -v at="${low#* }" \
        'BEGIN { printf "| %s | %s | %.2f | %s |\n", row, rate, per, at }'
      else echo "| $row | $rate | - | - |"; fi
    done
  done
}

# The two bar plots of the paper's talk: error and speed of each row, relative to softmax.
bars() {
  LC_ALL=C awk -F'\t' 'FNR == 1 { next }
    NR == FNR { if ($1 == "softmax" && $4 != "-") { per += $4; s += $10; n++ } next }
    FNR == 2 { print "row\terror\tspeed" }
    n && $4 != "-" && $10 > 0 { printf "%s\t%.4f\t%.4f\n", $1, $4 * n / per, s / n / $10 }' "$work/runs.tsv" "$work/runs.tsv" > "$work/bars.tsv"
  [ -s "$work/bars.tsv" ] || return 0
  "$linnet" plot "$work/bars.tsv" --y "error:dev PER relative to softmax" --by row --title "Error relative to softmax" \
    --note "$form; mean and range of the seeds" -o "$work/error.svg"
  "$linnet" plot "$work/bars.tsv" --y "speed:speed relative to softmax" --by row --title "Speed of training relative to softmax" \
    --note "$form; mean and range of the seeds" -o "$work/speed.svg"
}

# every_set KIND: a table of the scores of all sets, of phonemes (score) or of words (words)
every_set() {
  local row rate seed folder set
  echo "| row | seed | set | utterances | ${2} % | 95 % interval |$([ "$1" = score ] || echo " weight |")"
  echo "|---|---|---|---|---|---|$([ "$1" = score ] || echo "---|")"
  chosen | while read -r row rate seed folder; do
    for set in $decoded; do
      [ -s "$folder/$set.$1" ] || continue
      LC_ALL=C awk -v row="$row" -v seed="$seed" -v set="$set" -v weight="$([ "$1" = score ] || echo " $(cat "$folder/words.weight") |")" '
        /% interval \[/ { low = $4; high = $5; gsub(/[][,]/, "", low); gsub(/[][,]/, "", high) }
        END { printf "| %s | %s | %s | %s | %s | %s to %s |%s\n", row, seed, set, $(NF - 1), $2, low == "" ? "-" : low, high == "" ? "-" : high, weight }' \
        "$folder/$set.$1"
    done
  done
}

if wanted 4; then
  runs > "$work/runs.tsv"
  curves > "$work/curves.tsv"
  [ "$(wc -l < "$work/curves.tsv")" -gt 1 ] || die "no row has been trained yet"
  form="$train; $stack frame(s) stacked, batches of $batch_frames frames, at most $epochs epochs, at most $seeds seed(s)${augment:+, SpecAugment}"
  [ "$schedule" = plateau ] || form=${form/at most $epochs epochs/$epochs epochs in which the rate falls to 0}
  [ "$precision" = tf32 ] || form="$form, products in $precision"
  note=${note:-"The paper's numbers are for 80 hours of WSJ on a GPU: other data and another machine, to compare orders and ratios."}
  hz=$high_hz; [ "$hz" != 0 ] || hz=8000
  forwards=; [ "$normalize_forwards" = speaker ] || forwards="; with the mean and deviation of the training set where a network reads forwards"
  "$linnet" plot "$work/curves.tsv" --x epoch --y "dev_per:dev PER (%)" --by row \
    --title "Training of the paper's models" --note "$form; mean and range of the seeds" -o "$work/curves.svg"
  awk -F'\t' 'NR == 1 || $2 == 1' "$work/curves.tsv" > "$work/curves-seed-1.tsv"
  "$linnet" plot "$work/curves-seed-1.tsv" --x "seconds*0.016666667:training time (min)" --y "dev_per:dev PER (%)" --by row \
    --title "Training of the paper's models" --note "$form; seed 1" \
    -o "$work/time.svg"
  bars
  {
    head_of_results "${title:-Phoneme error rate and time per epoch (table 3)}"
    echo "Training data: $form. Dev set: $dev. Test set: $first_test. Greedy decoding. Features up to $hz Hz, normalised by speaker$forwards."
    echo
    table
    echo
    echo "PER: mean over the seeds ± half of its 95 % interval (Student's t over seeds). Seconds: median epoch with the evaluation of the dev"
    echo "set, mean over seeds. $note"
    echo
    if [[ $test == *,* ]]; then echo "## Every set"; echo; every_set score PER; echo; fi
    if ls "$work"/train/*/*/*.words > /dev/null 2>&1; then
      echo "## Words"
      echo
      every_set words WER
      echo
      echo "Weight: that of the language model, the best one for $dev of those tried. Beam search; only words of the language model."
      echo
    fi
    echo "![error rate against epochs](curves.svg)"
    echo
    echo "![error rate against training time](time.svg)"
    echo
    if [ -s "$work/bars.tsv" ]; then echo "![error relative to softmax](error.svg) ![speed relative to softmax](speed.svg)"; echo; fi
    echo "## Rates tried"
    echo
    rates_tried
    section "What favours whom"
    if [ "$schedule" = plateau ]; then
      echo "- All rows have the same data, features, stacking, batches, dropout, stopping rule and number of rates. The rates of the grid lie around"
      echo "  those of the paper: RAdam for transformers, Adam for LSTMs."
    else
      echo "- All rows have the same data, features, stacking, batches, dropout, number of rates and epochs: RAdam for transformers, Adam for LSTMs."
      echo "  No row has converged, so a network that learns fast is favoured."
    fi
    echo "- Transformers have 9 layers, 6 heads of 32 and a feed-forward width of 768; the LSTMs have 3 layers of 320 units, as in the paper."
    if [ "$positions" = sinusoid ]; then
      echo "- Transformers that see whole utterances have sinusoidal positions; causal-R and softmax-causal have convolutions of 9 frames instead,"
      echo "  which know no longest utterance."
    else
      echo "- All transformers have convolutions of 9 frames before each layer instead of sinusoidal positions: centred ones where whole utterances"
      echo "  are seen, of the frames so far in causal-R and softmax-causal. The paper does not name its positions."
    fi
    if [ "$normalize_forwards" = speaker ]; then
      echo "- Normalisation by speaker cannot stream; it is used everywhere so that the features are equal."
    else
      echo "- Rows that read forwards have the mean and deviation of the training set, since those of a speaker are not known in a stream."
    fi
    echo "- softmax is computed in tiles and never stores the matrix of scores, unlike the paper's."
  } > "$work/RESULTS.md"
  echo "$work/RESULTS.md"
fi
