# [cuda] The GPU kit: caches that travel; run.sh with pretended programs: stages, what is left out, going on where a run was cut. make
# check-kit rehearses the whole kit on the emulated device.
. tests/app/common.sh
[ "${CONFIG:-release}" = release ] || finish # no program of this configuration runs

# ---- caches that travel
bench=$(dirname "$LINNET")/bench_gpu
make_model
ok "pack" "$bench" pack --source "$tmp/set.lfc" --file "$tmp/packed"
ok "unpack" "$bench" unpack --source "$tmp/packed" --file "$tmp/unpacked.lfc"
facts() { "$LINNET" info "$1" | grep -E '^(utterances|frames|labels|phones|features|speakers)'; }
is "the same utterances and labels" "$(facts "$tmp/set.lfc")" "$(facts "$tmp/unpacked.lfc")"
ok "pack what was unpacked" "$bench" pack --source "$tmp/unpacked.lfc" --file "$tmp/again"
ok "it has the same values" cmp "$tmp/packed" "$tmp/again"
head -c 2000 "$tmp/packed" > "$tmp/cut"
ok "a packed cache that is cut" sh -c '! "$1" unpack --source "$2" --file "$3"' - "$bench" "$tmp/cut" "$tmp/none.lfc"
ok "leaves no cache" test ! -e "$tmp/none.lfc"

# ---- a device that is kept in use
emulated=$(dirname "$LINNET")/emulated
ok "hold ends with its input" env LINNET_CUDA_DRIVER="$emulated/libcuda.so.1" LINNET_CUDA_LIBRARY="$emulated/liblinnet_cuda.so" \
    "$bench" hold < /dev/null
ok "hold without a backend fails" sh -c '! LINNET_CUDA_DRIVER=/nonexistent "$1" hold < /dev/null' - "$bench"

# ---- run.sh
kit=$tmp/kit
mkdir -p "$kit/bin" "$kit/tests" "$kit/lib/linnet"
cp bench/gpu/run.sh tools/check-gpu.sh recipes/open/*.conf "$kit/"
pretend() { printf '#!/bin/sh\n%s\n' "$2" > "$1"; chmod 755 "$1"; }
pretend "$kit/bin/linnet" 'case $1 in info) echo "cuda:0:           Toy GPU, compute capability 9.0, 8 multiprocessors"; echo "driver'"'"'s CUDA:    13.0" ;; *) exit 1 ;; esac'
pretend "$kit/bin/bench_gpu" 'case $1 in
table) cat "$2"/*.jsonl ;;
peak) echo run >> "$0.runs"; echo "{\"part\": \"peak\", \"who\": \"toy\", \"what\": \"bf16\", \"value\": 1}" ;;
attention) echo "{\"part\": \"attention\"}"; '"$over"'; exec sleep 60 ;;
*) echo "toy error" >&2; exit 3 ;;
esac'
pretend "$kit/bin/gpu_limits" 'echo "{\"part\": \"peak\"}"'
pretend "$kit/tests/test_cuda_ops" 'echo "# asked"; echo "ok 1 - a.c:g:this: Passed"; echo "1..1"'
pretend "$kit/tests/test_cuda_bad" 'echo "not ok 1 - a.c:g:that: a.c:7: row 3 differs"; echo "1..1"'
export PYTHON=/nonexistent
unset LINNET_CUDA_LIBRARY CUBLASLT
kit() { out=$(cd "$tmp" && "$kit/run.sh" --out "$tmp/out" "$@" 2>&1); status=$?; }
runs() { grep -c run "$kit/bin/bench_gpu.runs"; }

mkdir "$tmp/toolkit"
: > "$tmp/toolkit/libcublasLt.so.13"
CUBLASLT=$tmp/toolkit kit --stage smoke,limits
has "cublasLt where it was named" "$(cat "$tmp/out/README.md")" "$tmp/toolkit"
is "smoke and limits: exit status" 0 "$status"
has "the device is named" "$(cat "$tmp/out/README.md")" "Toy GPU"
for case in linear attention graph; do has "smoke $case" "$(cat "$tmp/out/raw/01-smoke-$case.jsonl")" "1 passed, 0 failed"; done
has "the limits" "$(cat "$tmp/out/results.json")" '"value": 1}'
kit --stage limits
is "a stage that is named runs again" 2 "$(runs)"
exits "a case that fails" 1 kit --stage check
has "and which" "$(cat "$tmp/out/results.json")" "row 3 differs"
rm "$kit/tests/test_cuda_bad"
pretend "$kit/tests/test_cuda_hangs" 'echo "# the case"; '"$over"'; exec sleep 1234.'$$
kit --stage check
has "a program that hangs" "$(cat "$tmp/out/results.json")" "test_cuda_hangs (the case): did not reach its end"
is "does not take the GPU into the next stage" 0 "$(pgrep -fc "sleep 1234.$$")"
is "and runs again" 1 "$([ -f "$tmp/out/raw/02-check-test_cuda_hangs.done" ]; echo $?)"
rm "$kit/tests/test_cuda_hangs" "$tmp/out/raw"/02-check-test_cuda_hangs*
kit --stage ops
is "a part that fails: exit status" 1 "$status" # of the failed case above: the tables hold all that is known
has "says why" "$(cat "$tmp/out/results.json")" "ended with status 3"
has "in its last words" "$(cat "$tmp/out/results.json")" "toy error"

rm -rf "$tmp/out" "$kit/bin/bench_gpu.runs"
kit --stage attention
has "a part that is cut" "$(cat "$tmp/out/raw"/99-left-out-30-attention-linnet-tf32.jsonl)" "stopped after"
has "keeps what it had" "$(cat "$tmp/out/results.json")" '"part": "attention"'
kit --seconds 1
has "no time" "$(cat "$tmp/out/raw"/99-left-out-01-smoke-linear.jsonl)" "the time was over"
pretend "$kit/bin/bench_gpu" 'case $1 in table) cat "$2"/*.jsonl ;; peak) echo run >> "$0.runs" ;; *) exit 3 ;; esac'
exits "continued" 0 kit --seconds 100000
kit --seconds 100000
is "what is complete does not run again" 1 "$(runs)"
hasnt "what was left out for want of time has run" "$(cat "$tmp/out/results.json")" "the time was over"
has "no caches, no model" "$(cat "$tmp/out/results.json")" "the kit has no caches of speech"

# The streaming model.
mkdir "$kit/caches"
: > "$kit/caches/train_some.lfc"
: > "$kit/caches/dev_some.lfc"
pretend "$kit/bin/linnet" 'case $1 in
info) echo "cuda:0:           Toy GPU, compute capability 9.0, 8 multiprocessors" ;;
average) echo "average $*" >> "$0.calls" ;;
train)
    echo "$*" >> "$0.calls"
    while [ "$1" != --folder ]; do shift; done
    mkdir -p "$2"
    : > "$2/checkpoint.safetensors"
    ! grep -q stops "$0.stops" 2> /dev/null ;;
esac'
calls() { grep -v 'same-' "$kit/bin/linnet.calls" | sed 's/ --device.*--folder [^ ]*/ to/; s/--train.*--dev [^ ]*//; s/--epochs.*//; s/  */ /g' | tr '\n' ';' | sed "s#$tmp/##g"; }
echo stops > "$kit/bin/linnet.stops"
kit --stage train
is "a training that stops makes no model" "train kit/stream.conf to --precision bf16 ;" "$(calls)"
has "and says so" "$(cat "$tmp/out/results.json")" "71-train"
: > "$kit/bin/linnet.stops"
: > "$kit/bin/linnet.calls"
kit --stage train
is "goes on there" "train kit/stream.conf to --resume --precision bf16 ;\
average average --ema out/train/checkpoint.safetensors --level-db 103 --half --delay-ms 109 --blank-bias 1 -o out/stream.safetensors;" "$(calls)"
rm -r "$kit/caches"

kit --stage nonsense
has "an unknown stage" "$out" "there is no stage 'nonsense'"
kit --seconds soon
has "no number" "$out" "--seconds is a number of seconds"
pretend "$kit/bin/linnet" 'echo "no GPU:           no NVIDIA driver on this machine"'
exits "no GPU" 1 kit
has "no GPU: why" "$out" "no NVIDIA driver"
rm "$kit/bin/bench_gpu"
kit
has "half an archive" "$out" "unpack the whole archive"
finish
