# recipes/open/sweep.sh: a run for each line and seed, one table, going on after an interruption, what it refuses.
. tests/app/common.sh
[ "${CONFIG:-release}" = release ] || finish

make_model || { fail "data"; finish; }
sweep() { # ARGS...: $status, $out, $err
    bash recipes/open/sweep.sh --conf "$tmp/train.conf" --work "$tmp/sweep" --linnet "$LINNET" "$@" > "$tmp/.out" 2> "$tmp/.err"
    status=$? out=$(cat "$tmp/.out") err=$(cat "$tmp/.err")
}
data="--train $tmp/set.lfc --dev $tmp/set.lfc -q"
printf 'base\n\nema --ema 0.9 # averaged\n # nothing\ndrop  --layer-drop 0.3 --lr 2e-3\n' > "$tmp/table"

sweep "$tmp/table" --seeds 1,2 -- $data --epochs 1
is "status" 0 "$status"
is "a line for each run" "base 1|base 2|ema 1|ema 2|drop 1|drop 2|" "$(cut -f1,2 "$tmp/sweep/results.tsv" | sed 1d | tr '\t\n' ' |')"
is "it is printed" "$out" "$(cat "$tmp/sweep/results.tsv")"
is "the values are those of the log" "$(sed 1d "$tmp/sweep/ema.2/log.tsv" | cut -f5,1,4,3)" \
    "$(awk -F'\t' '$1 == "ema" && $2 == 2 { print $5 "\t" $7 "\t" $6 "\t" $4 }' "$tmp/sweep/results.tsv")"
has "options of a run" "$(cat "$tmp/sweep/drop.1/train.conf")" "layer-drop = 0.3"
has "seed of a run" "$(cat "$tmp/sweep/drop.2/train.conf")" "seed = 2"
ok "a comment is no option" grep -q '	--ema 0.9$' "$tmp/sweep/results.tsv"

# finished runs stay, an unfinished one is resumed, a new line is run
cp "$tmp/sweep/results.tsv" "$tmp/first.tsv"
before=$(ls -l --time-style=full-iso "$tmp/sweep/base.1")
rm "$tmp/sweep/ema.1/finished"
echo 'more --dropout 0' >> "$tmp/table"
sweep "$tmp/table" --seeds 1,2 -- $data --epochs 1
is "again: status" 0 "$status"
is "again: finished runs stay" "$before" "$(ls -l --time-style=full-iso "$tmp/sweep/base.1")"
has "again: the unfinished one goes on" "$err" "== ema, seed 1"
hasnt "again: only that one" "$err" "== ema, seed 2"
is "again: the same results, and the new run" "$(cut -f1-7,9 "$tmp/first.tsv")" "$(head -n 7 "$tmp/sweep/results.tsv" | cut -f1-7,9)"
is "again: the new run" "more 1|more 2|" "$(sed 1,7d "$tmp/sweep/results.tsv" | cut -f1,2 | tr '\t\n' ' |')"

declines() { what=$1 part=$2; shift 2; sweep "$@"; is "$what: status" 1 "$status"; has "$what" "$err" "$part"; }
declines "other options under the same name" "base.1 was run with other options" "$tmp/table" -- $data --epochs 2
declines "no data" "which data?" "$tmp/table"
declines "no table" "which table of runs?" -- $data
echo 'base --lr 1' >> "$tmp/table"
declines "a name twice" "two runs named base" "$tmp/table" -- $data
echo '../x --lr 1' > "$tmp/table"
declines "a bad name" "'../x' cannot be the name" "$tmp/table" -- $data
echo 'wrong --no-such-option' > "$tmp/table"
declines "a run that fails" "wrong.1 stopped" "$tmp/table" -- $data
finish
