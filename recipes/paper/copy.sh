#!/usr/bin/env bash
# Figure 2 of Katharopoulos et al. 2020: loss against steps on the copy task, for softmax, Reformer and linear attention.
#
#   recipes/paper/copy.sh [--work exp/paper/copy] [--variants softmax,lsh-1,lsh-4,linear] [--seeds N] [--steps N] [--length N] [--batch N]
#                         [--drop-step N] [--precision fp32|bf16] [--reduced] [--quick] [--device auto|cpu|cuda[:N]] [--threads N] [--linnet PROGRAM]
#
# 10 symbols, sequences of at most 128, 4 layers, 8 heads of 32, 64 sequences a step, RAdam at 1e-3 and 1e-4 after 3,000 of 10,000 steps.
# --reduced, for CPUs: sequences of at most 32, 32 a step, 1e-4 after 1,500 of 2,000 steps. --quick: 20 steps, to test the recipe.
# --length, --batch, --steps, --drop-step: other sizes, also of the reduced form.
# Writes WORK/copy-VARIANT-SEED.tsv, copy.tsv, loss.svg and RESULTS.md. What is there already is not computed again.
. "$(dirname "$0")/../common.sh"

work=exp/paper/copy variants=softmax,lsh-1,lsh-4,linear seeds=1 steps= length= batch= drop_step= precision=auto reduced=
flags=" quick reduced " values=" work variants seeds steps length batch drop-step precision device threads linnet "
options "$@"
is_count "$seeds" --seeds
how=()
[ -n "$reduced" ] && how=(--set length=32,batch=32,steps=2000,drop-step=1500,log-every=20)
[ -n "$quick" ] && how=(--quick)
for o in steps length batch drop_step; do
  [ -z "${!o}" ] || { is_count "${!o}" "--${o//_/-}"; how+=(--set "${o//_/-}=${!o}"); }
done
case $precision in auto|fp32|bf16) ;; *) die "--precision is auto, fp32 or bf16, not '$precision'" ;; esac
[ "$precision" = auto ] || how+=(--precision "$precision")

tables=()
for variant in ${variants//,/ }; do
  for seed in $(seq "$seeds"); do
    t=$work/copy-$variant-$seed.tsv
    [ -s "$t" ] || "$linnet" bench copy --variants "$variant" --seed "$seed" "${how[@]}" --device "$device" --threads "$threads" -o "$t"
    [ "$(grep -vc '^#' "$t")" -gt 1 ] && tables+=("$t")
  done
done
[ "${#tables[@]}" -gt 0 ] || die "no variant could be trained"
LC_ALL=C awk '/^#/ { if (NR == FNR) print; next } FNR < 5 && $1 == "variant" { if (headed++) next } { print }' "${tables[@]}" > "$work/copy.tsv"

note=$(sed -n 's/^# copy task: //p' "${tables[0]}")
"$linnet" plot "$work/copy.tsv" --x step --y loss --by variant --axes y-scale=log --x-label "step" --y-label "loss (nats per symbol)" \
  --title "Copy task" --note "$note$([ "$seeds" -gt 1 ] && echo "; mean and range of $seeds seeds")" -o "$work/loss.svg"

{
  head_of_results "Convergence on the copy task (figure 2)"
  echo "$note."
  echo
  echo "Loss: cross entropy of the symbols that are copied, nats per symbol; a network that guesses has ln 10 = 2.303."
  echo
  echo "![loss](loss.svg)"
  echo
  echo "| variant | seeds | loss of the last tenth of the steps: mean | lowest | highest | first step with a loss below 0.1 | seconds |"
  echo "|---|---|---|---|---|---|---|"
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
