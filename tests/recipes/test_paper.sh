# [variants native] The experiments of recipes/paper in a tiny form, on synthetic data; what is wrong with an option, in one
# sentence.
. tests/app/common.sh
# Not under a sanitizer: tests of the operations and of linnet's commands run the same code there.
[ "${CONFIG:-release}" = release ] || finish

recipe() { script "paper/$@"; }

for f in recipes/paper/*.sh; do
    n=$(basename "$f" .sh)
    exits "$n --help" 0 recipe "$n" --help
    has "$n --help" "$out" "recipes/paper/$n.sh"
    one_line "$n: an unknown option" "unknown option --nonsense" "$n" --nonsense
    one_line "$n: a value is missing" "--work needs a value" "$n" --work
    one_line "$n: an argument" "unexpected argument 'x'" "$n" x
    bash "recipes/paper/$n.sh" --linnet "$tmp/none" > "$tmp/.out" 2> "$tmp/.err"
    has "$n: no program" "$(cat "$tmp/.err")" "run make first"
done

# ---- figure 1 --------------------------------------------------------------------------------------------------------------------

exits "figure1" 0 recipe figure1 --work "$tmp/figure1" --quick --variants linear,softmax-naive --device cpu
for f in attention.tsv time.svg memory.svg RESULTS.md; do ok "figure1 writes $f" test -s "$tmp/figure1/$f"; done
is "figure1: memory of linear attention at 256 frames: queries, keys, values, output and their gradients" "$((8 * 256 * 8 * 32 * 4))" \
    "$(awk -F'\t' '$1 == "linear" && $2 == 256 { print $7 }' "$tmp/figure1/attention.tsv")"
has "figure1: results" "$(cat "$tmp/figure1/RESULTS.md")" "| frames | linear | softmax-naive |"
recipe figure1 --work "$tmp/figure1" --quick --variants linear --limit-gb 0.005 --device cpu
has "figure1: what is left out is named" "$(cat "$tmp/figure1/RESULTS.md")" "- linear, 1024 frames: needs 0.00839 GB"
recipe figure1 --work "$tmp/figure1" --quick --variants linear,nonsense
has "figure1: an unknown variant" "$err" "there is no variant 'nonsense'"

# ---- the copy task ---------------------------------------------------------------------------------------------------------------

exits "copy" 0 recipe copy --work "$tmp/copy" --quick --variants linear --seeds 2 --device cpu
for f in copy.tsv loss.svg RESULTS.md; do ok "copy writes $f" test -s "$tmp/copy/$f"; done
has "copy: results" "$(cat "$tmp/copy/RESULTS.md")" "| linear | 2 |"
is "copy: rows of both seeds, one head" "8 1" "$(awk '$1 == "linear" { n++ } $1 == "variant" { h++ } END { print n, h }' "$tmp/copy/copy.tsv")"
is "copy: a point every five steps, the rate falls after ten" "5 0.001 10 0.001 15 0.0001 20 0.0001" \
    "$(awk -F'\t' '$2 == 1 { printf "%s%s %s", s, $3, $5; s = " " }' "$tmp/copy/copy.tsv")"
before=$(cat "$tmp/copy/copy.tsv")
recipe copy --work "$tmp/copy" --quick --variants linear --seeds 2 --device cpu
is "copy: a second run computes nothing" "$before" "$(cat "$tmp/copy/copy.tsv")"
hasnt "copy: a second run trains nothing" "$out" "=="
rm "$tmp/copy/linear-1/done"
recipe copy --work "$tmp/copy" --quick --variants linear --seeds 2 --device cpu
is "copy: a run that was interrupted goes on" "$before" "$(cat "$tmp/copy/copy.tsv")"
exits "copy: other sizes in the same folder" 1 recipe copy --work "$tmp/copy" --quick --variants linear --length 10
has "copy: they are not taken for each other" "$err" "$tmp/copy/1.lfc was made with other options or data; remove it, or give another --work"
recipe copy --work "$tmp/copy" --quick --variants linear --precision fp32
has "copy: nor is another precision" "$err" "$tmp/copy/linear-1 was made with other options"
recipe copy --work "$tmp/sizes" --quick --variants lsh-2,random-8 --length 10 --batch 3 --steps 9 --drop-step 4 --precision fp32 --device cpu
has "copy: other sizes" "$(cat "$tmp/sizes/RESULTS.md")" "at most 10 long, 3 sequences a step, 1 layers, 2 heads of 8, rate 0.001, a tenth after 4 steps"
one_line "copy: no precision" "--precision is fp32, tf32 or bf16, not 'half'" copy --work "$tmp/copy" --precision half
one_line "copy: no seeds" "--seeds is a number from 1 up, not '0'" copy --work "$tmp/copy" --seeds 0
one_line "copy: no such network" "there is no variant 'lsh-0'" copy --work "$tmp/copy" --variants linear,lsh-0
one_line "copy: networks that it has not" "there is no variant 'bilstm' in this experiment" copy --work "$tmp/copy" --variants bilstm
emulated=$(dirname "$LINNET")/emulated
if [ -f "$emulated/liblinnet_cuda.so" ]; then
    few() { "$LINNET" train --train "$tmp/copy/1.lfc" --folder "$tmp/few-$1" --layers 1 --set heads=2,dropout=0,epoch-parts=3 --batch-frames 60 \
        --positions sinusoid --epochs 3 --device "$1" -q && cut -f1-3 "$tmp/few-$1/log.tsv"; }
    few cpu > "$tmp/cpu.tsv"
    LINNET_CUDA_LIBRARY=$emulated/liblinnet_cuda.so LINNET_CUDA_DRIVER=$emulated/libcuda.so.1 few cuda > "$tmp/cuda.tsv"
    ok "copy: the losses of the CPU on an emulated GPU" awk 'NR == FNR { cpu[FNR] = $3; next } FNR > 1 { d = $3 - cpu[FNR]; if (d * d > 1e-6) bad = 1; n++ }
        END { exit bad || n != 3 }' "$tmp/cpu.tsv" "$tmp/cuda.tsv"
fi

# ---- the Long Range Arena --------------------------------------------------------------------------------------------------------

mkdir "$tmp/documents" "$tmp/cifar"
for part in train dev; do for i in 1 2 3 4; do printf '%s\ttext %s of two kinds\n' $((i % 2)) "$i"; done > "$tmp/documents/$part.tsv"; done
for f in data_batch_1 data_batch_2 test_batch; do { printf '\1'; head -c 3072 "$LINNET"; printf '\7'; head -c 3072 "$LINNET"; } > "$tmp/cifar/$f.bin"; done
recipe lra --work "$tmp/lra" --quick --device cpu --variants softmax,linear,bilstm --text "$tmp/documents" --cifar "$tmp/cifar"
is "lra: status" 0 "$status"
is "lra: an accuracy of each task and variant" 12 "$(awk -F'\t' 'NR > 1 && $3 >= 0 && $3 <= 100 { n++ } END { print n + 0 }' "$tmp/lra/accuracy.tsv")"
is "lra: a speed and a memory of each length and variant, and of the one that stores its scores" 8 "$(awk -F'\t' 'NR > 1 && $3 > 0 && $4 > 0 { n++ } END { print n + 0 }' "$tmp/lra/speed.tsv")"
has "lra: results" "$(cat "$tmp/lra/RESULTS.md")" "| *arena: Linear Trans.* | 16.13 | 75.30 | 65.90 | 53.09 | 42.34 |"
before=$(cat "$tmp/lra/accuracy.tsv" "$tmp/lra/speed.tsv")
recipe lra --work "$tmp/lra" --quick --device cpu --variants softmax,linear,bilstm --text "$tmp/documents" --cifar "$tmp/cifar"
is "lra: a second run computes nothing" "$before" "$(cat "$tmp/lra/accuracy.tsv" "$tmp/lra/speed.tsv")"
exits "lra: with other threads" 1 recipe lra --work "$tmp/lra" --quick --device cpu --threads 2 --tasks speed --variants linear
has "lra: the speed is another one" "$err" "linear-64.tsv was made with other options or data"
one_line "lra: an unknown task" "there is no task 'pathx'" lra --work "$tmp/x" --tasks pathx
one_line "lra: no documents" "--retrieval DIR needs train.tsv and dev.tsv" lra --work "$tmp/x" --retrieval "$tmp/cifar"
one_line "lra: no batches" "--cifar DIR needs data_batch_1.bin" lra --work "$tmp/x" --cifar "$tmp/documents"

# ---- images ----------------------------------------------------------------------------------------------------------------------

exits "images" 0 recipe images --work "$tmp/images" --quick --device cpu --variants linear,lsh-1
for f in bits.tsv epochs-mnist.svg time-mnist.svg samples-mnist.png completions-mnist.png generate-linear,lsh-1.tsv RESULTS.md; do ok "images writes $f" test -s "$tmp/images/$f"; done
is "images: bits are the loss by ln 2" "$(awk -F'\t' 'NR > 1 { printf "%.4f ", $4 / log(2) }' "$tmp/images/mnist-linear/log.tsv")" \
    "$(awk -F'\t' '$2 == "linear" { printf "%.4f ", $4 }' "$tmp/images/bits.tsv")"
has "images: results" "$(cat "$tmp/images/RESULTS.md")" "| linear | 2 |"
has "images: images per second" "$(cat "$tmp/images/RESULTS.md")" "| linear | with a state | 64 | 1 |"
exits "images: CIFAR-10" 0 recipe images --work "$tmp/cifar-images" --quick --device cpu --variants linear --cifar "$tmp/cifar"
has "images: CIFAR-10" "$(cat "$tmp/cifar-images/RESULTS.md")" "| 3.40 |"
one_line "images: none" "where are the images? give --mnist FILE or --cifar DIR" images --work "$tmp/x"
one_line "images: no file" "$tmp/none does not exist" images --work "$tmp/x" --mnist "$tmp/none"

# ---- latency and memory of streams -----------------------------------------------------------------------------------------------

exits "latency" 0 recipe latency --work "$tmp/latency" --quick --stack 3 --device cpu
for f in latency.tsv cost.svg bytes.svg RESULTS.md; do ok "latency writes $f" test -s "$tmp/latency/$f"; done
has "latency: results" "$(cat "$tmp/latency/RESULTS.md")" "| elapsed_s | linear | softmax | lstm |"
is "latency: bytes of linear, softmax and LSTM streams after 10 s" "228096 4617216 7680" \
    "$(awk -F'\t' '$2 == 10 { printf "%s%s", s, $9; s = " " }' "$tmp/latency/latency.tsv")"
run bench latency --variants softmax --set at=1,3600,limit-gb=0.1 --device cpu
has "latency: what does not fit is left out and named" "$err" "softmax after 3600 s is left out: needs "
run bench latency --variants softmax --set at=700,stack=1,limit-gb=0.5 --device cpu
has "latency: a cache that does not fit has all layers in the same memory" "$(tail -n 1 "$tmp/.out" | cut -f 9-11)" "967680000	1	-"
run bench generate --quick --variants softmax,lsh-1,linear,lstm --set heads=2,layers=1,batch=3 --device cpu
is "generate: which ways each network has" \
    "softmax again 1,softmax again 3,softmax state 1,softmax state 3,lsh-1 again 1,lsh-1 again 3,linear state 1,linear state 3,lstm state 1,lstm state 3," \
    "$(grep -v '^#' "$tmp/.out" | awk -F'\t' 'NR > 1 && $5 > 0 && $7 > 0 { printf "%s %s %s,", $1, $2, $4 }')"
refused "generate: half a value" 2 "--set lengths needs a whole number, not '64.5'" bench generate --set lengths=64.5
refused "generate: too short" 2 "an image has 64 values or more" bench generate --set lengths=63
refused "latency: lsh" 2 "lsh-4 has LSH attention" bench latency --variants lsh-4
exits "memory" 0 recipe memory --work "$tmp/memory" --quick --stack 3 --batch 3 --memory-gb 10 --cores 4 --device cpu
has "memory: streams of 10 GB" "$(cat "$tmp/memory/RESULTS.md")" "| linear | 10 | 0.2281 | 43841 |"

# ---- table 3 ---------------------------------------------------------------------------------------------------------------------

make_model || { fail "data"; finish; }
for set in train dev test; do
    mkdir -p "$tmp/corpus/$set"
    cp "$tmp/data/wav.scp" "$tmp/data/text" "$tmp/data/utt2spk" "$tmp/corpus/$set"
done
table3() {
    recipe table3 --corpus "$tmp/corpus" --audio-root "$tmp/data" --lexicon "$tmp/dict" --work "$tmp/table3" --train train --dev dev \
        --test test --quick --stack 2 --device cpu "$@"
}
table3 --rows bilstm,softmax,lsh-4,linear,causal-3 --seeds 2
is "table3: status" 0 "$status"
for f in runs.tsv curves.tsv curves.svg time.svg error.svg speed.svg RESULTS.md; do ok "table3 writes $f" test -s "$tmp/table3/$f"; done
is "table3: runs" "10" "$(tail -n +2 "$tmp/table3/runs.tsv" | wc -l | tr -d ' ')"
ok "table3: every cell of every run is a number" awk -F'\t' 'NR > 1 { for (i = 2; i <= 13; i++) if ($i !~ /^[0-9.e-]+$/ || $i == "-") bad = 1 } END { exit bad || NR < 11 }' \
    "$tmp/table3/runs.tsv"
results=$(cat "$tmp/table3/RESULTS.md")
has "table3: the paper's numbers beside ours" "$results" "| 8.08 | 824 |"
has "table3: rates" "$results" "| bilstm | 5e-4 |"
before=$(cat "$tmp/table3/runs.tsv")
table3 --rows bilstm,softmax,lsh-4,linear,causal-3 --seeds 2
hasnt "table3: what is done is skipped" "$out$err" "seed"
is "table3: the same results" "$before" "$(cat "$tmp/table3/runs.tsv")"
# Another run with the same folder is at the same place; later one finds the references there, and they stay.
only_features() {
    recipe table3 --corpus "$tmp/corpus" --audio-root "$tmp/data" --lexicon "$tmp/dict" --work "$tmp/shared" --train train --dev dev \
        --test test --stop-stage 1
}
mkdir -p "$tmp/shared/text"
exec 5> "$tmp/shared/text/dev.trn.linnet-0.tmp"
! command -v flock > /dev/null || flock 5
exits "table3: a run that shares its folder" 0 only_features
exec 5>&-
ok "table3: a run that shares its folder: the references" test -s "$tmp/shared/text/dev.trn"
before=$(ls -i "$tmp/shared/text/dev.trn")
exits "table3: another one" 0 only_features
is "table3: another one: the references stay" "$before" "$(ls -i "$tmp/shared/text/dev.trn")"
rm "$tmp/table3/train/linear/lr-1e-4-seed-1/done"
table3 --rows linear --seeds 1
has "table3: a run that was interrupted resumes" "$out" "== linear, rate 1e-4, seed 1"
table3 --rows linear --seeds 1 --augment
has "table3: not with other options" "$err" "$tmp/table3/train/linear/lr-1e-4-seed-1 was made with other options"
rm -r "$tmp/table3/train/linear/lr-1e-4-seed-1"
table3 --rows linear --seeds 1 --epochs 2 --augment --precision fp32
is "table3: with its epochs" 2 "$(tail -n 1 "$tmp/table3/train/linear/lr-1e-4-seed-1/log.tsv" | cut -f1)"
has "table3: the page says how it was trained" "$(cat "$tmp/table3/RESULTS.md")" "SpecAugment, products in fp32"
table3 --rows linear,lstm --seeds 1 --epochs 2 --positions conv --schedule cosine --work "$tmp/table3-conv"
is "table3: convolutions instead of sinusoids: status" 0 "$status"
has "table3: the network has them" "$("$LINNET" info --json "$tmp/table3-conv/train/linear/lr-1e-4-seed-1/best.safetensors")" "centred-conv"
results=$(cat "$tmp/table3-conv/RESULTS.md")
has "table3: the page says so" "$results" "convolutions of 9 frames before each layer instead of sinusoidal positions"
has "table3: and how the rate falls" "$results" "2 epochs in which the rate falls to 0"
# --quick takes the first 60 utterances of a set
mkdir -p "$tmp/many/train"
for i in $(seq 70); do
    echo "v$i u1.wav" >> "$tmp/many/train/wav.scp"
    echo "v$i ONE TWO" >> "$tmp/many/train/text"
    echo "v$i s" >> "$tmp/many/train/utt2spk"
done
sort -r "$tmp/many/train/text" -o "$tmp/many/train/text" # in another order
cp -r "$tmp/corpus/dev" "$tmp/corpus/test" "$tmp/many"
table3 --rows linear --corpus "$tmp/many" --work "$tmp/table3-many" --stop-stage 2
is "table3: the first utterances alone: status" 0 "$status"
for f in wav.scp text utt2spk; do
    is "table3: the first utterances in $f" "$(seq -f v%g 60 | sort)" "$(cut -d ' ' -f 1 "$tmp/table3-many/corpus/train/$f" | sort)"
done
is "table3: and one seed" "lr-1e-4-seed-1" "$(basename "$tmp"/table3-many/train/linear/*/)"
one_line "table3: unknown positions" "--positions is sinusoid or conv" table3 --rows linear --positions none --work "$tmp/x"
one_line "table3: an unknown schedule" "--schedule is plateau or cosine" table3 --rows linear --schedule linear --work "$tmp/x"
one_line "table3: an unknown precision" "--precision is fp32, tf32 or bf16" table3 --rows linear --precision half --work "$tmp/x"
one_line "table3: an unknown row" "there is no row 'lsh-0'" table3 --rows linear,lsh-0 --corpus "$tmp/corpus" --work "$tmp/x"
one_line "table3: no corpus" "where is the corpus" table3 --work "$tmp/x"
one_line "table3: another corpus" "train_native/wav.scp does not exist" table3 --corpus "$tmp/corpus" --work "$tmp/x"
one_line "table3: no features" "run stage 1" table3 --stage 2 --stop-stage 2 --work "$tmp/x"

# ---- linnet bench ----------------------------------------------------------------------------------------------------------------

refused "bench: an option of another one" 2 "--streams does not apply to attention" bench attention --streams 2
refused "bench: an unknown one" 2 "there is no benchmark 'nonsense'" bench nonsense
refused "bench attention: lstm" 2 "lstm has no attention" bench attention --variants lstm
refused "bench attention: rounds of lsh" 2 "there is no variant 'lsh-99'" bench attention --variants lsh-99

finish
