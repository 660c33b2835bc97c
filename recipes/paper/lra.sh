#!/usr/bin/env bash
# Long Range Arena (Tay et al. 2021): accuracy of linear, softmax, LSH and random-feature attention and of a Bi-LSTM on long sequences, and
# their steps per second and peak memory in training at 1K to 4K tokens.
#
#   recipes/paper/lra.sh [--work exp/paper/lra] [--tasks listops,pathfinder,speed] [--variants softmax,lsh-4,linear,random-128,bilstm]
#                        [--text DIR] [--retrieval DIR] [--cifar DIR] [--epochs N] [--lr 1e-3] [--seed 1] [--reduced] [--quick]
#                        [--device auto|cpu|cuda[:N]] [--threads N] [--linnet PROGRAM]
#
# ListOps (500 to 2,000 tokens, 10 classes) and Pathfinder (32 x 32 pixels, 2 classes) are made by linnet paper. With their files: --text
# and --retrieval, folders with train.tsv and dev.tsv, lines of a class, a tab and a text, of which the first 4,000 bytes count; --cifar,
# the folder cifar-10-batches-bin, as 1,024 grey values with 10 classes.
# Full: 4 layers, 4 heads of 64, feed-forward 1024, 96,000 lists and 160,000 images, 32 sequences a step, for a GPU. --reduced, for two
# cores: 2 layers, 2 heads of 32, feed-forward 128, 2,000 sequences of 500 to 1,000 tokens, and 3,000 images. --quick: some seconds.
# Speed and memory also of softmax-naive, which stores all scores as the arena's Transformer does.
# Writes WORK/sets, WORK/TASK-VARIANT, the training runs, accuracy.tsv, speed.tsv and RESULTS.md. Existing results are not computed again.
. "$(dirname "$0")/../common.sh"

work=exp/paper/lra tasks=listops,pathfinder,speed variants=softmax,lsh-4,linear,random-128,bilstm text= retrieval= cifar= epochs= lr=1e-3 seed=1
reduced=
flags=" quick reduced " values=" work tasks variants text retrieval cifar epochs lr seed device threads linnet "
options "$@"
layers=4 heads=4 head_width=64 feedforward=1024 chunk=64 lstm_width=256
lists=(96000 2000 500 2000) images=(160000 2000) rounds=30 batch=32 lengths="1024 2048 3072 4096" speed_batch=32 speed_steps=8
[ -n "$reduced" ] && {
  layers=2 heads=2 head_width=32 feedforward=128 lstm_width=64
  lists=(2000 500 500 1000) images=(3000 500) rounds=8 batch=8 speed_batch=4 speed_steps=4
}
[ -n "$quick" ] && {
  layers=1 heads=2 head_width=8 feedforward=32 chunk=16 lstm_width=8
  lists=(24 8 10 40) images=(16 8) rounds=1 batch=8 lengths="64 128" speed_batch=2 speed_steps=2
}
epochs=${epochs:-$rounds}
is_count "$epochs" --epochs
for variant in ${variants//,/ }; do tokens_network "$variant"; done # before anything is computed: are all known?
[ -z "$text" ] || tasks+=,text
[ -z "$retrieval" ] || tasks+=,retrieval
[ -z "$cifar" ] || tasks+=,image
for task in ${tasks//,/ }; do
  case $task in
    listops|pathfinder|speed) ;;
    text|retrieval) [ -f "${!task}/train.tsv" ] && [ -f "${!task}/dev.tsv" ] || die "--$task DIR needs train.tsv and dev.tsv" ;;
    image) [ -f "$cifar/test_batch.bin" ] || die "--cifar DIR needs data_batch_1.bin to data_batch_5.bin and test_batch.bin" ;;
    *) die "there is no task '$task'; use listops, pathfinder, speed, and text, retrieval, image with their files" ;;
  esac
done
mkdir -p "$work/sets"
lock_work

# ---- accuracy --------------------------------------------------------------------------------------------------------------------

# sets_of TASK: WORK/sets/TASK-train.lfc and -dev.lfc
sets_of() {
  local part k=0
  for part in train dev; do
    local to=$work/sets/$1-$part.lfc
    case $1 in
      listops) tokens_set "$to" listops --count "${lists[$k]}" --least "${lists[2]}" --most "${lists[3]}" --seed $((2 * seed + k)) ;;
      pathfinder) tokens_set "$to" pathfinder --count "${images[$k]}" --seed $((2 * seed + k)) ;;
      image) if [ $part = train ]; then tokens_set "$to" images "$cifar"/data_batch_*.bin --labels --grey
        else tokens_set "$to" images "$cifar/test_batch.bin" --labels --grey; fi ;;
      *) tokens_set "$to" text "${!1}/$part.tsv" ;;
    esac
    k=$((k + 1))
  done
}

printf 'task\tvariant\taccuracy\tdev_loss\tepoch\tepochs\tseconds\n' > "$work/accuracy.tsv"
for task in ${tasks//,/ }; do
  [ "$task" != speed ] || continue
  sets_of "$task"
  for variant in ${variants//,/ }; do
    tokens_network "$variant"
    train_tokens "$work/$task-$variant" --train "$work/sets/$task-train.lfc" --dev "$work/sets/$task-dev.lfc" --direction bidirectional \
      "${network[@]}" --set "$([[ $variant = *lstm ]] || echo norm=pre,)dropout=0.1,batch-sequences=$batch,max-frames=4096" \
      --batch-frames $((batch * 4096)) --epochs "$epochs" --schedule cosine --lr "$lr" --seed "$seed"
    LC_ALL=C awk -F'\t' -v task="$task" -v variant="$variant" '
      FNR > 1 && (!n++ || $4 < low) { low = $4; at = $1; wrong = $5 } { epochs = $1; seconds = $9 }
      END { printf "%s\t%s\t%.2f\t%s\t%s\t%s\t%.0f\n", task, variant, 100 - wrong, low, at, epochs, seconds }' "$work/$task-$variant/log.tsv" \
      >> "$work/accuracy.tsv"
  done
done

# ---- steps per second and memory -------------------------------------------------------------------------------------------------

# most_memory COMMAND...: runs it; the most bytes that it had at once in `most`: resident, or of the GPU; - if unknown
most_memory() {
  local pid now
  most=-
  "$@" &
  pid=$!
  while kill -0 $pid 2> /dev/null; do
    case $device in
      cuda*) now=$(nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits 2> /dev/null |
        awk -F', *' -v pid=$pid '$1 == pid { print $2 * 1048576 }') || now= ;;
      *) now=$(awk '/^VmHWM/ { print $2 * 1024 }' /proc/$pid/status 2> /dev/null) || now= ;;
    esac
    [ -z "$now" ] || { [ "$most" != - ] && [ "$now" -le "$most" ]; } || most=$now
    sleep 0.05
  done
  wait $pid
}

# random_text LENGTH N: N lines of a class and so many bytes
random_text() {
  LC_ALL=C awk -v length_of="$1" -v n="$2" 'BEGIN { srand(1); for (i = 0; i < n; i++) { s = ""; for (t = 0; t < length_of; t++) s = s sprintf("%c", 97 + int(26 * rand()))
    print i % 2 "\t" s } }'
}

if [[ ,$tasks, = *,speed,* ]]; then
  timed=${variants//,/ }
  [[ " $timed " != *" softmax "* || " $timed " = *" softmax-naive "* ]] || timed="softmax-naive $timed"
  for length in $lengths; do
    made_with "$work/sets/$length.tsv" $((speed_batch * speed_steps))
    [ -s "$work/sets/$length.tsv" ] || random_text "$length" $((speed_batch * speed_steps)) > "$work/sets/$length.tsv"
    tokens_set "$work/sets/$length.lfc" text "$work/sets/$length.tsv" --most 65536
    for variant in $timed; do
      run=$work/speed/$variant-$length
      tokens_network "$variant"
      args=(--train "$work/sets/$length.lfc" --direction bidirectional "${network[@]}" --epochs 1 --schedule constant
        --set "batch-sequences=$speed_batch,max-frames=$length" --batch-frames $((speed_batch * length)) --device "$device" --threads "$threads")
      made_with "$run.tsv" "${args[@]}"
      [ ! -s "$run.tsv" ] || continue
      rm -rf "$run" # of a run that was interrupted
      echo "== $run"
      most_memory "$linnet" train "${args[@]}" --folder "$run" -q || {
        [ $? != 130 ] || exit 130
        printf '%s\t%s\t-\t-\n' "$variant" "$length" > "$run.tsv" # too little memory
        continue
      }
      LC_ALL=C awk -F'\t' -v variant="$variant" -v n="$length" -v rows=$((speed_batch * length)) -v bytes="$most" '
        { rate = $8 } END { printf "%s\t%s\t%.4g\t%s\n", variant, n, rate / rows, bytes }' "$run/log.tsv" > "$run.new"
      mv "$run.new" "$run.tsv"
    done
  done
  {
    printf 'variant\ttokens\tsteps_per_s\tbytes\n'
    for variant in $timed; do for length in $lengths; do cat "$work/speed/$variant-$length.tsv"; done; done
  } > "$work/speed.tsv"
fi

# ---- results ---------------------------------------------------------------------------------------------------------------------

# The arena's own numbers for these systems, as the talk shows them.
arena_accuracy='| *arena: Transformer* | 36.37 | 71.40 | 64.27 | 57.46 | 42.44 |
| *arena: Reformer* | 37.27 | 68.50 | 56.10 | 53.40 | 38.07 |
| *arena: Linear Trans.* | 16.13 | 75.30 | 65.90 | 53.09 | 42.34 |
| *arena: Performer* | 18.01 | 77.05 | 65.40 | 53.82 | 42.77 |'
arena_speed='| *arena: Transformer* | 8.1 | 4.9 | 2.3 | 1.4 | 0.85 | 2.65 | 5.51 | 9.48 |
| *arena: Reformer* | 4.4 (0.5x) | 2.2 (0.4x) | 1.5 (0.7x) | 1.1 (0.8x) | 0.48 | 0.99 | 1.53 | 2.28 |
| *arena: Linear Trans.* | 9.1 (1.1x) | 9.3 (1.9x) | 8.6 (3.7x) | 7.8 (5.6x) | 0.37 | 0.57 | 0.80 | 1.03 |
| *arena: Performer* | 9.5 (1.2x) | 9.4 (1.9x) | 8.7 (3.8x) | 8.0 (5.7x) | 0.37 | 0.59 | 0.82 | 1.06 |'
{
  head_of_results "Long Range Arena"
  echo "$layers layers, $heads heads of $head_width, feed-forward width $feedforward, pre-norm, sinusoids; Bi-LSTM: $layers layers of $lstm_width units."
  section "Accuracy, per cent"
  LC_ALL=C awk -F'\t' '
    NR > 1 { v[$2, $1] = $3; if (!($2 in seen)) { seen[$2] = 1; order[++n] = $2 } }
    END {
      split("listops pathfinder text retrieval image", tasks, " ")
      print "| variant | ListOps | Pathfinder | Text | Retrieval | Image |"; print "|---|---|---|---|---|---|"
      for (i = 1; i <= n; i++) {
        printf "| %s |", order[i]
        for (t = 1; t <= 5; t++) printf " %s |", (order[i], tasks[t]) in v ? v[order[i], tasks[t]] : "-"
        print ""
      }
    }' "$work/accuracy.tsv"
  echo "$arena_accuracy"
  echo
  echo "Of the dev set, at the epoch of its lowest loss; at most $epochs epoch(s), $batch sequences a step, RAdam at $lr. Chance: 10, 50, -, -, 10."
  if [ -s "$work/speed.tsv" ]; then
    section "Training: steps per second and peak memory"
    LC_ALL=C awk -F'\t' '
      NR == 1 { next }
      { if (!($1 in seen)) { seen[$1] = 1; order[++n] = $1 } if (!($2 in known)) { known[$2] = 1; at[++m] = $2 } s[$1, $2] = $3; b[$1, $2] = $4 }
      END {
        printf "| variant |"; for (j = 1; j <= m; j++) printf " %d: steps/s |", at[j]; for (j = 1; j <= m; j++) printf " %d: GB |", at[j]; print ""
        printf "|---|"; for (j = 1; j <= 2 * m; j++) printf "---|"; print ""
        for (i = 1; i <= n; i++) {
          printf "| %s |", order[i]
          for (j = 1; j <= m; j++) {
            base = s["softmax", at[j]]
            ratio = base > 0 && s[order[i], at[j]] > 0 && order[i] != "softmax" ? sprintf(" (%.1fx)", s[order[i], at[j]] / base) : ""
            printf " %s%s |", s[order[i], at[j]], ratio
          }
          for (j = 1; j <= m; j++) if (b[order[i], at[j]] == "-") printf " - |"; else printf " %.3g |", b[order[i], at[j]] / 1e9
          print ""
        }
      }' "$work/speed.tsv"
    [ "$lengths" != "1024 2048 3072 4096" ] || echo "$arena_speed"
    echo
    echo "$speed_batch sequences of random bytes a step, of all the same length, as a classification; one epoch of $speed_steps steps. Memory: the most"
    echo "that the process had at once. softmax is computed in tiles; softmax-naive stores all scores, as the"
    echo "arena's Transformer. The arena's numbers: 32 sequences, on 16 TPU v3 chips, memory of one of them. (x): ratio to softmax."
  fi
} > "$work/RESULTS.md"
echo "$work/RESULTS.md"
