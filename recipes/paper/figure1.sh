#!/usr/bin/env bash
# Figure 1 of Katharopoulos et al. 2020: time and memory of attention, forward and backward, against the length of the sequence.
#
#   recipes/paper/figure1.sh [--work exp/paper/figure1] [--variants LIST] [--causal] [--limit-seconds S] [--limit-gb GB]
#                            [--device auto|cpu|cuda[:N]] [--threads N] [--quick] [--linnet PROGRAM]
#
# Writes WORK/attention.tsv, time.svg, memory.svg and RESULTS.md. Points that would need more time than --limit-seconds for one pass, or
# more memory than --limit-gb (default: half of what is free, on a GPU nine tenths), are left out and named. --quick: sequences of at
# most 1,024 frames.
. "$(dirname "$0")/../common.sh"

work=exp/paper/figure1 variants=linear,softmax,softmax-naive,lsh-1,lsh-4,lsh-8,poly2,random causal= limit_seconds=60 limit_gb=0
flags=" quick causal " values=" work variants limit-seconds limit-gb device threads linnet "
options "$@"

t=$work/attention.tsv
"$linnet" bench attention --variants "$variants" ${causal:+--causal} --set limit-seconds="$limit_seconds",limit-gb="$limit_gb" \
  --device "$device" --threads "$threads" ${quick:+--quick} -o "$t"

note="$(sed -n 's/^# device: //p' "$t"); $(sed -n 's/^# attention, //p' "$t")"
axes=(--x "frames:sequence length (frames)" --by variant --axes x-scale=log2,y-scale=log --note "$note")
"$linnet" plot "$t" "${axes[@]}" --y "ms:time of one sequence (ms)" --title "Attention, forward and backward: time" -o "$work/time.svg"
"$linnet" plot "$t" "${axes[@]}" --y "bytes*1e-6:memory of one sequence (MB)" \
  --title "Attention, forward and backward: memory" -o "$work/memory.svg"

{
  head_of_results "Time and memory of attention against length (figure 1)"
  echo "$note. Queries, keys, values, outputs and all their gradients are in memory; what a variant needs beside them is what differs."
  echo
  echo "![time](time.svg)"
  echo
  echo "![memory](memory.svg)"
  section "Time of one sequence, ms (median)"
  pivot "$t" frames variant ms 1 %.4g
  section "Memory of one sequence, MB (sum of all buffers)"
  pivot "$t" frames variant bytes 1e-6 %.4g
  section "Growth of resident memory of one sequence, MB (measured)"
  pivot "$t" frames variant resident_bytes 1e-6 %.4g
  section "Left out"
  LC_ALL=C awk -F'\t' '!/^#/ && headed++ && $NF != "-" { print "- " $1 ", " $2 " frames: " $NF; n++ } END { if (!n) print "Nothing." }' "$t"
} > "$work/RESULTS.md"
echo "$work/RESULTS.md"
