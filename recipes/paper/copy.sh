#!/usr/bin/env bash
# Figure 2 of Katharopoulos et al. 2020: loss against steps on the copy task, for softmax, Reformer and linear attention.
#
#   recipes/paper/copy.sh [--work exp/paper/copy] [--variants softmax,lsh-1,lsh-4,linear] [--seeds N] [--steps N] [--length N] [--batch N]
#                         [--drop-step N] [--precision fp32|tf32|bf16] [--reduced] [--quick] [--device auto|cpu|cuda[:N]] [--threads N] [--linnet PROGRAM]
#
# 10 symbols, sequences of at most 128, 4 layers, 8 heads of 32, 64 sequences a step, RAdam at 1e-3 and 1e-4 after 3,000 of 10,000 steps.
# --reduced, for CPUs: sequences of at most 32, 32 a step, 1e-4 after 1,500 of 2,000 steps. --quick: 20 steps, to test the recipe.
# --length, --batch, --steps, --drop-step: other sizes, also of the reduced form.
# Writes WORK/SEED.lfc, the sequences, each for one step; WORK/VARIANT-SEED, the training runs; copy.tsv, loss.svg and RESULTS.md. A run that
# was interrupted continues, and existing results are not computed again.
. "$(dirname "$0")/../common.sh"

work=exp/paper/copy variants=softmax,lsh-1,lsh-4,linear seeds=1 steps= length= batch= drop_step= precision=tf32 reduced=
flags=" quick reduced " values=" work variants seeds steps length batch drop-step precision device threads linnet "
options "$@"
is_count "$seeds" --seeds
sizes=(128 64 10000 3000 50) # length, batch, steps, drop-step, steps of a point
[ -n "$reduced" ] && sizes=(32 32 2000 1500 20)
[ -n "$quick" ] && sizes=(12 4 20 10 5)
length=${length:-${sizes[0]}} batch=${batch:-${sizes[1]}} steps=${steps:-${sizes[2]}} drop_step=${drop_step:-${sizes[3]}}
for o in steps length batch drop_step; do is_count "${!o}" "--${o//_/-}"; done
case $precision in fp32|tf32|bf16) ;; *) die "--precision is fp32, tf32 or bf16, not '$precision'" ;; esac
layers=4 heads=8 head_width=32 feedforward=1024 chunk=32 lstm_width=
[ -z "$quick" ] || { layers=1 heads=2 head_width=8 feedforward=32; }
for variant in ${variants//,/ }; do tokens_network "$variant"; done # before anything is computed: are all known?
parts=$((steps > sizes[4] ? steps / sizes[4] : 1))
lock_work

for variant in ${variants//,/ }; do
  for seed in $(seq "$seeds"); do
    tokens_set "$work/$seed.lfc" copy --length "$length" --count $((steps * batch)) --seed "$seed"
    tokens_network "$variant"
    # the data are seen once; an epoch is a point of the plot
    train_tokens "$work/$variant-$seed" --train "$work/$seed.lfc" "${network[@]}" --set norm=post,dropout=0,weight-decay=0 \
      --set "batch-sequences=$batch,epoch-parts=$parts,drop-step=$drop_step" --batch-frames $((length * batch)) --epochs "$parts" \
      --schedule constant --lr 1e-3 --seed "$seed" --precision "$precision" -q
  done
done

note="10 symbols, at most $length long, $batch sequences a step, $layers layers, $heads heads of $head_width, rate 0.001, a tenth after $drop_step steps"
{
  printf 'variant\tseed\tstep\tloss\tlr\tseconds\n'
  for variant in ${variants//,/ }; do
    for seed in $(seq "$seeds"); do
      LC_ALL=C awk -F'\t' -v variant="$variant" -v seed="$seed" 'FNR > 1 { print variant "\t" seed "\t" $2 "\t" $3 "\t" $6 "\t" $9 }' \
        "$work/$variant-$seed/log.tsv"
    done
  done
} > "$work/copy.tsv"

"$linnet" plot "$work/copy.tsv" --x step --y "loss:loss (nats per symbol)" --by variant --axes y-scale=log \
  --title "Copy task" --note "$note$([ "$seeds" -gt 1 ] && echo "; mean and range of $seeds seeds")" -o "$work/loss.svg"

{
  head_of_results "Convergence on the copy task (figure 2)"
  echo "$note."
  echo
  echo "Loss: cross entropy of the symbols that are copied, nats per symbol; a network that guesses has ln 10 = 2.303."
  echo
  echo "![loss](loss.svg)"
  echo
  columns "| variant | seeds | loss of the last tenth of the steps: mean | lowest | highest | first step with a loss below 0.1 | seconds |"
  for variant in ${variants//,/ }; do
    LC_ALL=C awk -F'\t' -v variant="$variant" '
      /^#/ || $1 != variant { next }
      { if (!($2 in last)) n++; loss[$2, $3] = $4; if ($3 > last[$2]) last[$2] = $3; seconds[$2] = $6
        if ($4 < 0.1 && !($2 in below)) below[$2] = $3 }
      END {
        if (!n) { printf "| %s | 0 | - | - | - | - | - |\n", variant; exit }
        for (s in last) {
          sum = k = 0
          for (i in loss) { split(i, at, SUBSEP); if (at[1] == s && at[2] > 0.9 * last[s]) { sum += loss[i]; k++ } }
          v = sum / k; all += v; time += seconds[s]
          if (low == "" || v < low) low = v
          if (v > high) high = v
          if (s in below) { first += below[s]; found++ }
        }
        printf "| %s | %d | %.5f | %.5f | %.5f | %s | %.0f |\n", variant, n, all / n, low, high, found == n ? sprintf("%.0f", first / n) : "-", time / n
      }' "$work/copy.tsv"
  done
} > "$work/RESULTS.md"
echo "$work/RESULTS.md"
