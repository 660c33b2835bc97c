#!/usr/bin/env bash
# The cost of a live stream as it gets longer: linear attention, softmax attention that keeps keys and values, LSTM (the counterpart of
# supplement tables 4 and 5 of Katharopoulos et al. 2020).
#
#   recipes/paper/latency.sh [--work exp/paper/latency] [--variants linear,softmax,lstm] [--at 1,10,60,600,3600,36000] [--stack 1]
#                            [--limit-gb GB] [--device auto|cpu|cuda[:N]] [--threads 1] [--quick] [--linnet PROGRAM]
#
# The cost of one more chunk of 4 rows (--stack frames of 10 ms each) after so many seconds of sound, network only. Softmax needs a row of
# keys and values for each earlier row: points that do not fit into --limit-gb (default: half of what is free, on a GPU nine tenths)
# are left out and named.
# Writes WORK/latency.tsv, cost.svg, bytes.svg and RESULTS.md.
. "$(dirname "$0")/../common.sh"

work=exp/paper/latency variants=linear,softmax,lstm at= stack=1 limit_gb=0 threads=1
flags=" quick " values=" work variants at stack limit-gb device threads linnet "
options "$@"
is_count "$stack" --stack

t=$work/latency.tsv
"$linnet" bench latency --variants "$variants" ${at:+--set at="$at"} --set stack="$stack",limit-gb="$limit_gb" --device "$device" \
  --threads "$threads" ${quick:+--quick} -o "$t"

note="$(sed -n 's/^# device: //p' "$t"); $(sed -n 's/^# networks/networks/p' "$t")"
axes=(--x "elapsed_s:sound so far (s)" --by variant --axes x-scale=log,y-scale=log --note "$note")
"$linnet" plot "$t" "${axes[@]}" --y "ms_per_s:computing time for 1 s of sound (ms)" --title "Cost of a live stream" \
  -o "$work/cost.svg"
"$linnet" plot "$t" "${axes[@]}" --y "bytes*1e-6:memory of a stream (MB)" --title "Memory of a live stream" \
  -o "$work/bytes.svg"

{
  head_of_results "Cost of a live stream against its age"
  echo "$note. Only the network; random weights. Keys and values of a softmax stream are random numbers instead of the result of so much"
  echo "sound. Where they would not fit, and a layer has more than 100 MB of them, they are the same memory for all layers, which changes nothing"
  echo "that is computed or read; times: $(LC_ALL=C awk -F'\t' '!/^#/ && $10 == 1 { printf "%s%s s", s, $2; s = ", " } END { if (!s) printf "none" }' "$t")."
  echo
  echo "![cost](cost.svg)"
  echo
  echo "![memory](bytes.svg)"
  section "Time of one chunk, ms (median)"
  pivot "$t" elapsed_s variant ms 1 %.4g
  section "Processor time of one chunk, ms (median): without what else the machine did; of a GPU, only the host's part"
  pivot "$t" elapsed_s variant cpu_ms 1 %.4g
  section "Computing time for one second of sound, ms; above 1,000 a stream is slower than real time (processor time on one CPU thread, else elapsed)"
  pivot "$t" elapsed_s variant ms_per_s 1 %.4g
  section "Memory of one stream, MB"
  pivot "$t" elapsed_s variant bytes 1e-6 %.4g
  section "First time at which softmax costs more than linear"
  LC_ALL=C awk -F'\t' '!/^#/ && $8 + 0 > 0 { if ($1 == "linear") linear[$2] = $8; if ($1 == "softmax" && $8 > linear[$2] && at == "") at = $2 }
    END { print at == "" ? "None of these." : at " s." }' "$t"
} > "$work/RESULTS.md"
echo "$work/RESULTS.md"
