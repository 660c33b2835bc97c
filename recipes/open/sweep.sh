#!/usr/bin/env bash
# Short training runs over a table of options, one after the other, and one table of their results.
#
#   recipes/open/sweep.sh TABLE [--conf recipes/open/causal.conf] [--work exp/sweep] [--seeds 1] [--linnet PROGRAM] -- OPTIONS...
#
# Each line of TABLE is a name and the options of that run; OPTIONS are those of all runs, as linnet train takes them:
#
#   base
#   ema       --ema 0.999
#   ema-drop  --ema 0.999 --layer-drop 0.1        # a comment
#
#   recipes/open/sweep.sh table.txt --seeds 1,2,3 -- --train train.lfc --dev dev.lfc --epochs 3
#
# Each run is the folder WORK/NAME.SEED. WORK/results.tsv, also printed, has a line for each finished run, in the order of TABLE: the
# best dev PER and where it was, the losses there, the seconds, the options. If stopped and started again, it goes on where it stopped.
set -euo pipefail

table= conf=recipes/open/causal.conf work=exp/sweep seeds=1 linnet=build/release/linnet
usage() { sed -n '2,15p' "$0" | sed 's/^# \{0,1\}//'; exit "$1"; }
die() { echo "sweep.sh: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage 0 ;;
    --) shift; break ;;
    --conf|--work|--seeds|--linnet)
      [ $# -ge 2 ] || die "$1 needs a value"
      declare "${1#--}=$2"; shift 2 ;;
    -*) die "unknown option $1; --help lists them" ;;
    *) [ -z "$table" ] || die "one table of runs, not also $1"
       table=$1; shift ;;
  esac
done
[ -n "$table" ] || die "which table of runs? --help shows one"
[ -f "$table" ] || die "$table does not exist"
[ -f "$conf" ] || die "$conf does not exist"
[ -x "$linnet" ] || die "$linnet does not exist; run make first, or give --linnet PROGRAM"
[ $# -gt 0 ] || die "which data? give -- --train FILE --dev FILE"
mkdir -p "$work"

rows=$(sed 's/#.*//' "$table" | awk 'NF')
[ -n "$rows" ] || die "$table has no runs"
twice=$(awk '{ print $1 }' <<< "$rows" | sort | uniq -d | head -n 1)
[ -z "$twice" ] || die "$table has two runs named $twice"
bad=$(awk '$1 !~ /^[A-Za-z0-9_.+-]+$/ || $1 ~ /^[-.]/ { print $1; exit }' <<< "$rows")
[ -z "$bad" ] || die "$table: '$bad' cannot be the name of a run: letters, digits and _.+-, beginning with a letter or digit"

results() { # the table, from the logs of the runs that are finished
  local name options seed run
  printf 'name\tseed\tepochs\tbest_dev_per\tat_epoch\tdev_loss\ttrain_loss\tseconds\toptions\n'
  while read -r name options; do
    for seed in ${seeds//,/ }; do
      run=$work/$name.$seed
      [ ! -f "$run/finished" ] || awk -F'\t' -v OFS='\t' -v name="$name" -v seed="$seed" -v options="$options" '
        NR > 1 { n++; t = $9; if (best == "" || $5 < best) { best = $5; at = $1; dev = $4; train = $3 } }
        END { print name, seed, n, best, at, dev, train, t, options }' "$run/log.tsv"
    done
  done <<< "$rows"
}

while read -r name options <&3; do
  for seed in ${seeds//,/ }; do
    run=$work/$name.$seed
    asked="$conf $* $options"
    mkdir -p "$run"
    [ ! -f "$run/asked" ] || [ "$(cat "$run/asked")" = "$asked" ] ||
      die "$run was run with other options: $(cat "$run/asked"); choose another name, or remove the folder"
    [ ! -f "$run/finished" ] || continue
    printf '%s\n' "$asked" > "$run/asked"
    resume=; [ ! -f "$run/checkpoint.safetensors" ] || resume=--resume
    echo "== $name, seed $seed: $options" >&2
    # shellcheck disable=SC2086  # the options of a line are words
    "$linnet" train "$conf" "$@" $options --seed "$seed" --folder "$run" $resume || die "$run stopped; the same command goes on"
    touch "$run/finished"
    results > "$work/results.tsv.new" && mv "$work/results.tsv.new" "$work/results.tsv"
  done
done 3<<< "$rows"
results > "$work/results.tsv.new" && mv "$work/results.tsv.new" "$work/results.tsv"
cat "$work/results.tsv"
