# linnet quantise, and --precision int8: the same results from a model and its file in eight bits, by any number of threads.
. tests/app/common.sh

make_model || { fail "a small model"; finish; }
m=$tmp/model.safetensors q=$tmp/small.safetensors wav=$tmp/data/u1.wav
exits "quantise" 0 run quantise "$m" -o "$q"
is "it says nothing" "" "$out$err"
[ "$(wc -c < "$q")" -lt "$(wc -c < "$m")" ] || fail "the file is smaller"
shows "info tells" "in eight bits" info "$q"
run info "$m"
hasnt "of this model only" "$out" "in eight bits"

post() { "$LINNET" posteriors --device cpu "$@" "$wav"; }
post -m "$m" --precision fp32 -o "$tmp/fp32.npy"
post -m "$m" --precision int8 -j 1 -o "$tmp/a.npy"
post -m "$m" --precision int8 -j 3 -o "$tmp/b.npy"
post -m "$q" --precision int8 -j 1 -o "$tmp/c.npy"
post -m "$q" --precision fp32 -o "$tmp/d.npy"
post -m "$q" -o "$tmp/e.npy"
post -m "$m" -o "$tmp/f.npy"
ok "the same bits with three threads" cmp "$tmp/a.npy" "$tmp/b.npy"
ok "the same bits from the file in eight bits" cmp "$tmp/a.npy" "$tmp/c.npy"
ok "which is read in eight bits by itself" cmp "$tmp/a.npy" "$tmp/e.npy"
ok "a model in fp32 is not" cmp "$tmp/fp32.npy" "$tmp/f.npy"
ok "not those of fp32" sh -c '! cmp -s "$1" "$2"' - "$tmp/a.npy" "$tmp/fp32.npy"
ok "in fp32 the rounded weights" sh -c '! cmp -s "$1" "$2"' - "$tmp/d.npy" "$tmp/fp32.npy"
run quantise "$q" -o "$tmp/again.safetensors"
ok "a second time changes nothing" cmp "$q" "$tmp/again.safetensors"
"$LINNET" average --half "$m" -o "$tmp/half.safetensors" && "$LINNET" quantise "$tmp/half.safetensors" -o "$tmp/small2.safetensors"
post -m "$tmp/half.safetensors" --precision int8 -o "$tmp/a.npy"
post -m "$tmp/small2.safetensors" --precision int8 -o "$tmp/b.npy"
ok "of a model in half precision" cmp "$tmp/a.npy" "$tmp/b.npy"
LINNET_MODEL= run quantise default -o "$tmp/default.safetensors"
is "the installed model: status" 0 "$status"
"$LINNET" average --half "$tmp/default.safetensors" -o "$tmp/half.safetensors"
run quantise "$tmp/half.safetensors" -o "$tmp/small2.safetensors"
ok "it is in eight bits, and in half precision loses nothing" cmp "$tmp/default.safetensors" "$tmp/small2.safetensors"
exits "transcribe with it" 0 run transcribe -q --precision int8 --model "$tmp/half.safetensors" "$wav"
is "which is that of the model" "$out" "$("$LINNET" transcribe -q --precision int8 --model default "$wav")"
for p in int8 auto; do
    is "listen, $p, the same" "$out" "$("$LINNET" listen -q --from "$wav" --no-paced --precision $p --model "$tmp/default.safetensors")"
done

refused "over itself" 2 "small.safetensors" quantise "$q" -o "$q"
refused "no output" 2 "--output" quantise "$q"
refused "no model" 1 "none.safetensors" quantise "$tmp/none.safetensors" -o "$tmp/x.safetensors"
refused "not a model" 1 "u1.wav" quantise "$wav" -o "$tmp/x.safetensors"
ok "nothing was written" test ! -e "$tmp/x.safetensors"
exits "on a GPU" 1 run transcribe -q --device cuda --precision int8 "$wav" # which this build or machine may lack
ok "on a GPU: says why" grep -qE "cuda|CUDA|NVIDIA" "$tmp/.err"
finish
