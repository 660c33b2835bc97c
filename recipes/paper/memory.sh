#!/usr/bin/env bash
# Bytes of a live stream, and live streams of one machine, by memory and by computing time: linear, stateful softmax, LSTM.
#
#   recipes/paper/memory.sh [--work exp/paper/memory] [--variants linear,softmax,lstm] [--at 1,60,3600] [--stack 1] [--batch 16]
#                           [--memory-gb GB] [--cores N] [--limit-gb GB] [--device auto|cpu|cuda[:N]] [--quick] [--linnet PROGRAM]
#
# By memory: --memory-gb (default: all of this machine) divided by the bytes of a stream. By time: the cores (--cores, default: all; a
# GPU counts as one) divided by the computing time for a second of sound, of one stream alone or of --batch streams that are computed
# together, whichever costs less. Network only. On a CPU linnet bench streams --streams 0 measures a live engine with features and decoding.
# Writes WORK/one.tsv, together.tsv and RESULTS.md.
. "$(dirname "$0")/../common.sh"

work=exp/paper/memory variants=linear,softmax,lstm at=1,60,3600 stack=1 batch=16 memory_gb= cores= limit_gb=0
flags=" quick " values=" work variants at stack batch memory-gb cores limit-gb device linnet "
options "$@"
is_count "$stack" --stack
is_count "$batch" --batch
[ -n "$memory_gb" ] || memory_gb=$(awk '/^MemTotal/ { printf "%.1f", $2 * 1024 / 1e9 }' /proc/meminfo)
[ -n "$cores" ] || cores=$(nproc)
[ -n "$quick" ] && at=1,10

for form in one together; do
  streams=1
  [ "$form" = together ] && streams=$batch
  "$linnet" bench latency --variants "$variants" --set at="$at",stack="$stack",batch="$streams",limit-gb="$limit_gb" --device "$device" \
    --threads 1 -o "$work/$form.tsv"
done
grep -q 'threads*$' "$work/one.tsv" || cores=1

{
  head_of_results "Memory of live streams, and streams of one machine"
  echo "$(sed -n 's/^# device: //p' "$work/one.tsv"); $(sed -n 's/^# \(networks.*\), chunks.*/\1/p' "$work/one.tsv"). Memory: $memory_gb GB; $cores core(s)."
  echo
  columns "| variant | sound so far, s | MB of a stream | streams by memory | ms of a core for 1 s of sound | computed together | streams by time |"
  LC_ALL=C awk -F'\t' -v gb="$memory_gb" -v cores="$cores" '
    /^#/ || $1 == "variant" { next }
    { k = $1 "\t" $2; if (!(k in bytes)) order[++n] = k; bytes[k] = $9
      if ($8 + 0 > 0 && (!(k in cost) || $8 < cost[k])) { cost[k] = $8; together[k] = $3 } }
    END {
      for (i = 1; i <= n; i++) {
        k = order[i]; split(k, at, "\t")
        printf "| %s | %s | %.4g | %d |", at[1], at[2], bytes[k] / 1e6, gb * 1e9 / bytes[k]
        if (k in cost) printf " %.4g | %d | %d |\n", cost[k], together[k], 1000 * cores / cost[k]; else print " - | - | - |"
      }
    }' "$work/one.tsv" "$work/together.tsv"
  echo
  echo "Left out, because they need more memory than --limit-gb:"
  echo
  LC_ALL=C awk -F'\t' '!/^#/ && $1 != "variant" && $NF != "-" { print "- " $1 " after " $2 " s, " $3 " at once: " $NF; n++ } END { if (!n) print "nothing." }' \
    "$work/one.tsv" "$work/together.tsv"
} > "$work/RESULTS.md"
echo "$work/RESULTS.md"
