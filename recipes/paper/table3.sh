#!/usr/bin/env bash
# Table 3 of Katharopoulos et al. 2020: phoneme error rate and time per epoch of Bi-LSTM, softmax, Reformer and linear attention on one corpus.
#
#   recipes/paper/table3.sh --corpus DIR [--audio-root DIR] [--work exp/paper/table3] [--rows bilstm,softmax,lsh-4,linear,...]
#                           [--train SET,...] [--dev SET] [--test SET] [--lexicon FILE] [--high-hz HZ]
#                           [--seeds 3] [--stack 1] [--epochs 80] [--grid LR,...] [--grid-lstm LR,...] [--batch-frames N] [--patience 3]
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
# error rate.
# --reduced, for CPUs: 3 frames stacked, at most 40 epochs, batches of 4,000 frames instead of 16,000. --quick: tiny networks and
# 1 epoch, to test the recipe.
# If run again, what is done is skipped and a run that was interrupted resumes. Test sets are decoded once per model and choose nothing.
# On a machine without the corpus: --stage 2 --stop-stage 2 needs only WORK/features. Several runs may share WORK if their rows differ.
. "$(dirname "$0")/common.sh"

corpus= audio_root= work=exp/paper/table3 lexicon= high_hz=5500 train=train_native dev=dev_native test=test_native
rows=bilstm,softmax,lsh-4,linear,lsh-1,causal-0,causal-3,causal-8,lstm
seeds=3 stack= epochs= grid=1e-4,2e-4,5e-4 grid_lstm=5e-4,1e-3,2e-3 batch_frames= patience=3 stage=1 stop_stage=4 reduced=
flags=" quick reduced "
values=" corpus audio-root work lexicon high-hz train dev test rows seeds stack epochs grid grid-lstm batch-frames patience stage stop-stage device threads linnet "
options "$@"
[ -n "$reduced" ] && stack=${stack:-3} epochs=${epochs:-40} batch_frames=${batch_frames:-4000}
[ -n "$quick" ] && epochs=${epochs:-1}
stack=${stack:-1} epochs=${epochs:-80} batch_frames=${batch_frames:-16000}
for o in seeds stack epochs stage stop_stage batch_frames patience; do is_count "${!o}" "--${o//_/-}"; done
wanted() { [ "$stage" -le "$1" ] && [ "$stop_stage" -ge "$1" ]; }

# ---- rows ------------------------------------------------------------------------------------------------------------------------

# Sinusoids for networks that see whole utterances; they cannot stream, so networks that read forwards have convolutions of 9 frames.
whole=(--direction bidirectional --positions sinusoid)
forwards=(--direction causal --positions conv --conv-kernel 9 --conv-layers 9)
lstm=(--network lstm --layers 3 --width 320 --optimizer adam)
transformer=(--layers 9 --heads 6 --head-width 32 --feedforward 768 --optimizer radam)
if [ -n "$quick" ]; then
  lstm=(--network lstm --layers 1 --width 8 --optimizer adam)
  transformer=(--layers 1 --heads 2 --head-width 4 --feedforward 8 --optimizer radam)
  forwards=(--direction causal --positions conv --conv-kernel 3 --conv-layers 1)
  grid=${grid%%,*} grid_lstm=${grid_lstm%%,*}
fi

# network ROW: sets `network`, its options of linnet train, and `rates`
network() {
  rates=$grid
  case $1 in
    bilstm) network=("${lstm[@]}" --direction bidirectional) rates=$grid_lstm ;;
    lstm) network=("${lstm[@]}" --direction causal) rates=$grid_lstm ;;
    linear) network=("${transformer[@]}" "${whole[@]}") ;;
    softmax|softmax-naive) network=("${transformer[@]}" "${whole[@]}" --attention "$1") ;;
    lsh-[1-9]|lsh-1[0-6]) network=("${transformer[@]}" "${whole[@]}" --attention lsh --lsh-rounds "${1#lsh-}") ;;
    poly2|random) network=("${transformer[@]}" "${whole[@]}" --feature-map "$1") ;;
    softmax-causal) network=("${transformer[@]}" "${forwards[@]}" --attention softmax) ;;
    causal-[0-9]|causal-[1-5][0-9]|causal-6[0-4]) network=("${transformer[@]}" "${forwards[@]}" --ahead "${1#causal-}") ;;
    *) die "there is no row '$1'; --help lists them" ;;
  esac
}
for row in ${rows//,/ }; do network "$row"; done # before anything is computed: are all known?

# ---- 1: features -----------------------------------------------------------------------------------------------------------------

if wanted 1 || wanted 3; then
  [ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
  for set in ${train//,/ } "$dev" "$test"; do [ -f "$corpus/$set/wav.scp" ] || die "$corpus/$set/wav.scp does not exist"; done
  audio_root=${audio_root:-$corpus}
fi
mkdir -p "$work"/{features,text,train}

if wanted 1; then
  for set in ${train//,/ } "$dev" "$test"; do
    cache=$work/features/$set.lfc
    # exit status 1: some utterances were reported and left out, and the cache was written
    [ -f "$cache" ] || "$linnet" prepare "$corpus/$set" --audio-root "$audio_root" ${lexicon:+--lexicon "$lexicon"} --high-hz "$high_hz" \
      --stack "$stack" --jobs "$threads" --output "$cache" || [ -f "$cache" ] || die "$set could not be prepared"
  done
  for set in "$dev" "$test"; do
    "$linnet" phonemize -q --ids first --trn ${lexicon:+--lexicon "$lexicon"} "$corpus/$set/text" > "$work/text/$set.trn"
  done
fi

# ---- 2: training -----------------------------------------------------------------------------------------------------------------

caches=()
for set in ${train//,/ }; do caches+=(--train "$work/features/$set.lfc"); done

# train_one ROW LR SEED: WORK/train/ROW/lr-LR-seed-SEED, which has a file `done` at the end
train_one() {
  local folder=$work/train/$1/lr-$2-seed-$3 resume=
  [ -f "$folder/done" ] && return
  network "$1"
  [ -f "$folder/checkpoint.safetensors" ] && resume=--resume
  echo "== $1, rate $2, seed $3"
  "$linnet" train "${caches[@]}" --dev "$work/features/$dev.lfc" --folder "$folder" "${network[@]}" --stack "$stack" --normalize speaker \
    --norm post --dropout 0.1 --lr "$2" --min-lr "$(LC_ALL=C awk -v lr="$2" 'BEGIN { print lr / 20 }')" --schedule plateau --patience "$patience" \
    --epochs "$epochs" --batch-frames "$batch_frames" --max-frames 3600 --seed "$3" --name "table3 $1" --device "$device" \
    --threads "$threads" $resume || { [ $? -ne 130 ] || exit 130; return 1; }
  touch "$folder/done"
}

# lowest FOLDER: the lowest dev error rate of a run and its epoch, "0.1234 17"; nothing if there is none
lowest() { LC_ALL=C awk -F'\t' 'FNR > 1 && $5 >= 0 && (!n++ || $5 < low) { low = $5; at = $1 } END { if (n) print low, at }' "$1/log.tsv" 2> /dev/null || true; }

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

if wanted 2; then
  for set in ${train//,/ } "$dev"; do [ -f "$work/features/$set.lfc" ] || die "$work/features/$set.lfc does not exist; run stage 1"; done
  for row in ${rows//,/ }; do
    network "$row"
    for rate in ${rates//,/ }; do train_one "$row" "$rate" 1 || echo "$row at rate $rate was not trained" >&2; done
    rate=$(best_rate "$row")
    [ -n "$rate" ] || continue
    for seed in $(seq 2 "$seeds"); do train_one "$row" "$rate" "$seed" || echo "$row, seed $seed was not trained" >&2; done
  done
fi

# ---- 3: scores -------------------------------------------------------------------------------------------------------------------

if wanted 3; then
  for row in ${rows//,/ }; do
    rate=$(best_rate "$row")
    for seed in $(seq "$seeds"); do
      folder=$work/train/$row/lr-$rate-seed-$seed
      [ -n "$rate" ] && [ -f "$folder/done" ] || continue
      for set in "$dev" "$test"; do
        [ -s "$folder/$set.score" ] && continue
        "$linnet" transcribe -q --data "$corpus/$set" --audio-root "$audio_root" --model "$folder/best.safetensors" --jobs "$threads" \
          --format trn --device "$device" --output "$folder/$set.trn"
        "$linnet" score "$work/text/$set.trn" "$folder/$set.trn" > "$folder/.score" && mv "$folder/.score" "$folder/$set.score"
      done
    done
  done
fi

# ---- 4: results ------------------------------------------------------------------------------------------------------------------

# One line per run of the chosen rate: row, seed, rate, dev PER, its bootstrap interval, test PER, its interval, seconds per epoch (median, with
# evaluation), epoch of the lowest dev error rate, epochs, parameters.
runs() {
  local row rate seed folder
  printf 'row\tseed\tlr\tdev_per\tdev_low\tdev_high\ttest_per\ttest_low\ttest_high\tepoch_s\tbest_epoch\tepochs\tparameters\n'
  for row in ${rows//,/ }; do
    rate=$(best_rate "$row")
    for seed in $(seq "$seeds"); do
      folder=$work/train/$row/lr-$rate-seed-$seed
      [ -n "$rate" ] && [ -f "$folder/done" ] || continue
      printf '%s\t%s\t%s' "$row" "$seed" "$rate"
      for set in "$dev" "$test"; do
        # 95 % interval [20.00, 33.33] over 2 utterances, ...   PER 20.00 %: ...
        LC_ALL=C awk '/% interval \[/ { low = $4; high = $5; gsub(/[][,]/, "", low); gsub(/[][,]/, "", high) } $1 == "PER" { per = $2 }
          END { printf "\t%s\t%s\t%s", per == "" ? "-" : per, low == "" ? "-" : low, high == "" ? "-" : high }' "$folder/$set.score" 2> /dev/null ||
          printf '\t-\t-\t-'
      done
      LC_ALL=C awk -F'\t' 'FNR > 1 { print $9 - last; last = $9 }' "$folder/log.tsv" | sort -g |
        LC_ALL=C awk '{ v[NR] = $1 } END { printf "\t%.2f", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
      printf '\t%s\t%s' "$(lowest "$folder" | cut -d' ' -f2)" "$(tail -n 1 "$folder/log.tsv" | cut -f1)"
      printf '\t%s\n' "$("$linnet" info --json "$folder/best.safetensors" | sed -n 's/.*"parameters": *\([0-9]*\).*/\1/p' | head -n 1)"
    done
  done
}

# Every run's log with its row and seed, for the plots.
curves() {
  local row rate seed folder
  printf 'row\tseed\tepoch\tdev_per\tseconds\n'
  for row in ${rows//,/ }; do
    rate=$(best_rate "$row")
    for seed in $(seq "$seeds"); do
      folder=$work/train/$row/lr-$rate-seed-$seed
      [ -n "$rate" ] && [ -f "$folder/log.tsv" ] &&
        LC_ALL=C awk -F'\t' -v row="$row" -v seed="$seed" 'FNR > 1 && $5 >= 0 { print row "\t" seed "\t" $1 "\t" $5 "\t" $9 }' "$folder/log.tsv"
    done
  done
  return 0
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
  echo "| row | rate | dev PER % of seed 1 (greedy, during training) | epoch |"
  echo "|---|---|---|---|"
  for row in ${rows//,/ }; do
    network "$row"
    for rate in ${rates//,/ }; do
      low=$(lowest "$work/train/$row/lr-$rate-seed-1")
      if [ -n "$low" ]; then LC_ALL=C awk -v row="$row" -v rate="$rate" -v per="${low% *}" -v at="${low#* }" \
        'BEGIN { printf "| %s | %s | %.2f | %s |\n", row, rate, 100 * per, at }'
      else echo "| $row | $rate | - | - |"; fi
    done
  done
}

if wanted 4; then
  runs > "$work/runs.tsv"
  curves > "$work/curves.tsv"
  [ "$(wc -l < "$work/curves.tsv")" -gt 1 ] || die "no row has been trained yet"
  form="$train; $stack frame(s) stacked, batches of $batch_frames frames, at most $epochs epochs, $seeds seed(s)"
  "$linnet" plot "$work/curves.tsv" --x epoch --y dev_per --y-factor 100 --by row --x-label epoch --y-label "dev PER (%)" \
    --title "Training of the paper's models" --note "$form; mean and range of the seeds" -o "$work/curves.svg"
  awk -F'\t' 'NR == 1 || $2 == 1' "$work/curves.tsv" > "$work/curves-seed-1.tsv"
  "$linnet" plot "$work/curves-seed-1.tsv" --x seconds --x-factor 0.016666667 --y dev_per --y-factor 100 --by row \
    --x-label "training time (min)" --y-label "dev PER (%)" --title "Training of the paper's models" --note "$form; seed 1" \
    -o "$work/time.svg"
  {
    head_of_results "Phoneme error rate and time per epoch (table 3)"
    echo "Training data: $form. Dev set: $dev. Test set: $test. Greedy decoding. Features up to $high_hz Hz, normalised by speaker."
    echo
    table
    echo
    echo "PER: mean over the seeds ± half of its 95 % interval (Student's t over seeds). Seconds: median epoch with the evaluation of the dev"
    echo "set, mean over seeds. The paper's numbers are for 80 hours of WSJ on a GPU: other data and another machine, to compare orders and ratios."
    echo
    echo "![error rate against epochs](curves.svg)"
    echo
    echo "![error rate against training time](time.svg)"
    echo
    echo "## Rates tried"
    echo
    rates_tried
    echo
    echo "## What favours whom"
    echo
    echo "- All rows have the same data, features, stacking, batches, dropout, stopping rule and number of rates. The rates of the grid lie around"
    echo "  those of the paper: RAdam for transformers, Adam for LSTMs."
    echo "- Transformers have 9 layers, 6 heads of 32 and a feed-forward width of 768; the LSTMs have 3 layers of 320 units, as in the paper."
    echo "- Rows that see whole utterances have sinusoidal positions; causal-R and softmax-causal have convolutions of 9 frames instead, since"
    echo "  sinusoids cannot stream. Normalisation by speaker cannot stream either; it is used everywhere so that the features are equal."
    echo "- softmax is computed in tiles and never stores the matrix of scores, unlike the paper's."
  } > "$work/RESULTS.md"
  echo "$work/RESULTS.md"
fi
