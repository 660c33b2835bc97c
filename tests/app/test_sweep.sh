# linnet train --sweep: a run for each line and seed, one table, going on after an interruption, what it refuses.
. tests/app/common.sh
[ "${CONFIG:-release}" = release ] || finish

make_model || { fail "data"; finish; }
sweep() { # ARGS...: $status, $out, $err
    run train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" --folder "$tmp/sweep" --sweep "$tmp/table" "$@"
}
cat > "$tmp/table" <<'T'
base

ema --ema 0.9 # averaged
 # nothing
drop  --set dropout=0.3 --lr 2e-3
T

exits "it runs" 0 sweep --sweep-seeds 1,2 --epochs 1
is "a line for each run" "base 1|base 2|ema 1|ema 2|drop 1|drop 2|" "$(cut -f1,2 "$tmp/sweep/results.tsv" | sed 1d | tr '\t\n' ' |')"
is "it is printed" "$out" "$(cat "$tmp/sweep/results.tsv")"
is "the values are those of the log" "$(sed 1d "$tmp/sweep/ema.2/log.tsv" | awk '{ print $1, $3, $4, $5, $9 }')" \
    "$(awk -F'\t' '$1 == "ema" && $2 == 2 { print $5, $7, $6, $4, $8 }' "$tmp/sweep/results.tsv")"
has "options of a run" "$(cat "$tmp/sweep/drop.1/train.conf")" "dropout = 0.3"
has "seed of a run" "$(cat "$tmp/sweep/drop.2/train.conf")" "seed = 2"
hasnt "a run is no sweep" "$(cat "$tmp/sweep/drop.2/train.conf")" "sweep ="
ok "a comment is no option" grep -q '	--ema 0.9$' "$tmp/sweep/results.tsv"

# a run is what linnet train makes with the same options
run train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" --folder "$tmp/alone" --epochs 1 --set dropout=0.3 \
    --lr 2e-3 --seed 2 -q
ok "the same model" cmp "$tmp/alone/best.safetensors" "$tmp/sweep/drop.2/best.safetensors"

# without a development set the loss decides, as in a run
echo 'fast --lr 0.3 --schedule constant' > "$tmp/fast"
run train "$tmp/train.conf" --train "$tmp/set.lfc" --folder "$tmp/without" --sweep "$tmp/fast" --epochs 5
log=$tmp/without/fast.1/log.tsv
is "the best epoch" "$(awk -F'\t' 'NR > 1 && (!n || $3 < least) { least = $3; n = $1 } END { print "-", n, "-", least }' "$log")" \
    "$(sed 1d "$tmp/without/results.tsv" | cut -f4-7 | tr '\t' ' ')"

# finished runs stay, an unfinished one is resumed, a new line is run
cp "$tmp/sweep/results.tsv" "$tmp/first.tsv"
before=$(ls -l --time-style=full-iso "$tmp/sweep/base.1")
rm "$tmp/sweep/ema.1/finished"
echo 'more --set dropout=0' >> "$tmp/table"
exits "again" 0 sweep --sweep-seeds 1,2 --epochs 1
is "again: finished runs stay" "$before" "$(ls -l --time-style=full-iso "$tmp/sweep/base.1")"
has "again: the unfinished one goes on" "$err" "== ema, seed 1: --ema 0.9"
hasnt "again: only that one" "$err" "== ema, seed 2"
is "again: the same results, and the new run" "$(cut -f1-7,9 "$tmp/first.tsv")" "$(head -n 7 "$tmp/sweep/results.tsv" | cut -f1-7,9)"
is "again: the new run" "more 1|more 2|" "$(sed 1,7d "$tmp/sweep/results.tsv" | cut -f1,2 | tr '\t\n' ' |')"
sweep --epochs 1
has "without seeds: that of --seed" "$out" "more	1	"
hasnt "without seeds: no other" "$out" "more	2	"

declines() { # WHAT MESSAGE ARGS...
    what=$1 part=$2; shift 2
    exits "$what" 1 sweep "$@"
    has "$what" "$err" "$part"
    hasnt "$what: nothing runs" "$err" "=="
}
declines "other options under the same name" "base.1 was run with other options" --epochs 2
exits "a seed that is none" 2 sweep --sweep-seeds 1.5
has "a seed that is none" "$err" "--sweep-seeds needs a whole number, not '1.5'"
exits "a seed twice" 2 sweep --sweep-seeds 1,2,1
has "a seed twice" "$err" "--sweep-seeds has 1 twice"
exits "seeds without a sweep" 2 run train "$tmp/train.conf" --train "$tmp/set.lfc" --folder "$tmp/x" --sweep-seeds 1
has "seeds without a sweep" "$err" "--sweep-seeds belongs to --sweep"
cp "$tmp/table" "$tmp/good"
echo 'base --lr 1' >> "$tmp/table"
declines "a name twice" "table:7: two runs named base"
table() { echo "$1" > "$tmp/table"; }
table '../x --lr 1'; declines "a bad name" "'../x' cannot be the name"
table 'wrong --no-such-option'; declines "an unknown option" "table:1: unknown option --no-such-option"
table 'wrong --lr'; declines "no value" "table:1: --lr needs a value"
table 'wrong --folder x'; declines "a folder" "table:1: --folder cannot be an option of a run"
table 'wrong --help'; declines "help" "table:1: --help cannot be"
table 'wrong set.lfc'; declines "a word too many" "table:1: 'set.lfc' is not an option"
table '# nothing'; declines "no runs" "has no runs"
rm "$tmp/table"; declines "no table" "table"
table 'later --decay gated --direction bidirectional'
exits "a run that fails" 1 sweep --epochs 1
has "a run that fails" "$err" "later.1 stopped"
hasnt "a run that fails is not finished" "$(ls "$tmp/sweep/later.1" 2>&1)" "finished"
finish
