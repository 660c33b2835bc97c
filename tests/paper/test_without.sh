# [variants slow native release] make PAPER=0: the program is built from no file of paper/, recognises with the shipped model, and
# says of the paper's networks and experiments that it lacks them. (Its tests: make PAPER=0 check.)
. tests/app/common.sh

unset MAKEFLAGS MAKELEVEL PREFIX DESTDIR GROUP # of a make that runs this test
make -s PAPER=0 B="$tmp/core" CONFIG=release NVCC= MPICC= WEB= EXTRA_CFLAGS=-O0 "$tmp/core/linnet" > "$tmp/log" 2>&1 ||
    { fail "make PAPER=0" "$(tail -n 5 "$tmp/log")"; finish; }
is "no file of paper/ is in it" "" "$(cd "$tmp/core/obj" && find . -path '*paper*')"
make_model && "$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --folder "$tmp/rival" -q --attention softmax ||
    { fail "small models"; finish; }
full=$LINNET
t() { "$1" transcribe -q -m "$tmp/model.safetensors" -f lab "$tmp/data/u1.wav" 2>&1; }
whole=$(t "$full")
LINNET=$tmp/core/linnet
is "the same transcript" "$whole" "$(t "$LINNET")"
refused() { run "$@"; is "linnet $*: refused" 1 "$((status != 0))"; has "linnet $*" "$err" "without the paper's comparison (PAPER=0)"; }
refused info "$tmp/rival/best.safetensors"
refused transcribe -m "$tmp/rival/best.safetensors" "$tmp/data/u1.wav"
refused train "$tmp/train.conf" --train "$tmp/set.lfc" --folder "$tmp/none" -q --attention lsh
refused bench attention --quick
exits "linnet paper: there is none" 2 run paper copy -o "$tmp/none.lfc"
finish
