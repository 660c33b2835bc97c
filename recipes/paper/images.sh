#!/usr/bin/env bash
# Tables 1 and 2 of Katharopoulos et al. 2020: autoregressive image generation on MNIST and CIFAR-10 with softmax, Reformer and linear
# attention: bits per dimension, and their curves against epochs and time; samples, completions, images per second.
#
#   recipes/paper/images.sh [--work exp/paper/images] [--mnist TRAIN] [--mnist-test TEST] [--split N] [--cifar DIR]
#                           [--variants softmax,lsh-1,lsh-4,linear] [--epochs N] [--lr 1e-4] [--batch N] [--seed 1] [--precision tf32]
#                           [--reduced] [--quick] [--device auto|cpu|cuda[:N]] [--threads N] [--linnet PROGRAM]
#
# --mnist: IDX files of images, plain or gzip'd. Without --mnist-test the first N images of TRAIN are for training (default: 9,000
# of the 10,000 in t10k-images-idx3-ubyte) and the others for measuring. --cifar: the folder cifar-10-batches-bin.
# Full: 8 layers (CIFAR-10: 16), 8 heads of 32, feed-forward 1024, a mixture of 10 logistics, 10 images a step (CIFAR-10: 4), RAdam at 1e-4,
# 250 epochs of MNIST (CIFAR-10: 50); LSH in 27 chunks of 29, or 83 of 37. --reduced, for two cores: 4 layers, 4 heads of 32, 1e-3, 3 epochs.
# --quick: small images that are made here, to test the recipe. Images per second need no training: they have the paper's sizes in every
# form but --quick.
# Writes WORK/sets, WORK/DATA-VARIANT, the training runs, bits.tsv, epochs-DATA.svg, time-DATA.svg, samples-DATA.png, completions-DATA.png,
# generate-VARIANTS.tsv and RESULTS.md. A run that was interrupted continues, and existing results are not computed again.
. "$(dirname "$0")/../common.sh"

work=exp/paper/images mnist= mnist_test= split= cifar= variants=softmax,lsh-1,lsh-4,linear epochs= lr= batch= seed=1 precision=tf32 reduced=
flags=" quick reduced "
values=" work mnist mnist-test split cifar variants epochs lr batch seed precision device threads linnet "
options "$@"
layers_mnist=8 layers_cifar=16 heads=8 head_width=32 lstm_width= rounds=250 rounds_cifar=50 rate=1e-4 size=28x28 examples=12 generate=()
[ -z "$reduced" ] || { layers_mnist=4 layers_cifar=4 heads=4 rounds=3 rounds_cifar=1 rate=1e-3; }
[ -z "$quick" ] || { layers_mnist=1 layers_cifar=1 heads=2 head_width=8 rounds=2 rounds_cifar=1 rate=1e-3 examples=1
  generate=(--quick --set layers=1,heads=2,head-width=8); }
layers=$layers_mnist
feedforward=$((4 * heads * head_width))
chunk=29
for variant in ${variants//,/ }; do tokens_network "$variant"; done # before anything is computed: are all known?
case $precision in fp32|tf32|bf16) ;; *) die "--precision is fp32, tf32 or bf16, not '$precision'" ;; esac
for o in epochs batch split; do [ -z "${!o}" ] || is_count "${!o}" "--$o"; done
mkdir -p "$work/sets"
lock_work
speed=$work/generate-$variants.tsv
generate+=(--device "$device" --threads "$threads")
made_with "$speed" "${generate[@]}"

# ---- data ------------------------------------------------------------------------------------------------------------------------

if [ -n "$quick" ] && [ -z "$mnist$cifar" ]; then # 20 images of 6 x 6, of bytes above 32 and below 127
  mnist=$work/sets/quick-idx split=16 size=6x6
  { printf '\0\0\10\3\0\0\0\24\0\0\0\6\0\0\0\6'; LC_ALL=C awk 'BEGIN { srand(1); for (i = 0; i < 720; i++) printf "%c", 33 + int(90 * rand()) }'; } > "$mnist"
fi
[ -n "$mnist$cifar" ] || die "where are the images? give --mnist FILE or --cifar DIR"
data=()
if [ -n "$mnist" ]; then
  [ -f "$mnist" ] || die "$mnist does not exist"
  data+=(mnist)
  if [ -n "$mnist_test" ]; then
    tokens_set "$work/sets/mnist-train.lfc" images "$mnist"
    tokens_set "$work/sets/mnist-dev.lfc" images "$mnist_test"
  else
    split=${split:-9000}
    tokens_set "$work/sets/mnist-train.lfc" images "$mnist" --range 1:"$split"
    tokens_set "$work/sets/mnist-dev.lfc" images "$mnist" --range $((split + 1)):
  fi
fi
if [ -n "$cifar" ]; then
  [ -f "$cifar/test_batch.bin" ] || die "--cifar DIR needs data_batch_1.bin to data_batch_5.bin and test_batch.bin"
  data+=(cifar)
  tokens_set "$work/sets/cifar-train.lfc" images "$cifar"/data_batch_*.bin
  tokens_set "$work/sets/cifar-dev.lfc" images "$cifar/test_batch.bin"
fi

# ---- training --------------------------------------------------------------------------------------------------------------------

printf 'data\tvariant\tepoch\tbits\tseconds\n' > "$work/bits.tsv"
for set in "${data[@]}"; do
  case $set in
    mnist) layers=$layers_mnist chunk=29 images=${batch:-10} passes=${epochs:-$rounds} ;;
    cifar) layers=$layers_cifar chunk=37 images=${batch:-4} passes=${epochs:-$rounds_cifar} ;;
  esac
  for variant in ${variants//,/ }; do
    tokens_network "$variant"
    train_tokens "$work/$set-$variant" --train "$work/sets/$set-train.lfc" --dev "$work/sets/$set-dev.lfc" "${network[@]}" \
      --set "norm=post,mixture=10,dropout=0,batch-sequences=$images,max-frames=4096" --batch-frames $((4096 * images)) --epochs "$passes" \
      --schedule constant --lr "${lr:-$rate}" --seed "$seed" --precision "$precision"
    LC_ALL=C awk -F'\t' -v set="$set" -v variant="$variant" 'FNR > 1 { printf "%s\t%s\t%s\t%.5f\t%s\n", set, variant, $1, $4 / log(2), $9 }' \
      "$work/$set-$variant/log.tsv" >> "$work/bits.tsv"
  done
done

# ---- samples, completions, images per second -------------------------------------------------------------------------------------

for set in "${data[@]}"; do
  [ "$set" = mnist ] || size=32x32x3
  model=$work/$set-linear/best.safetensors
  [ -f "$model" ] || continue # as in the paper, of the linear network
  [ -s "$work/samples-$set.png" ] || "$linnet" generate "$model" --image $size -n 36 --seed "$seed" --device "$device" --threads "$threads" -q \
    -o "$work/samples-$set.png"
  [ -s "$work/completions-$set.png" ] || "$linnet" generate "$model" --image $size -n "$examples" --data "$work/sets/$set-dev.lfc" \
    --seed "$seed" --device "$device" --threads "$threads" -q -o "$work/completions-$set.png"
done
[ -s "$speed" ] || "$linnet" bench generate --variants "$variants" "${generate[@]}" -o "$speed"

# ---- results ---------------------------------------------------------------------------------------------------------------------

form="$heads heads of $head_width, feed-forward $feedforward, 10 logistics, RAdam at ${lr:-$rate}; layers: $layers_mnist (CIFAR-10: $layers_cifar)"
for set in "${data[@]}"; do
  awk -F'\t' -v set="$set" 'NR == 1 || $1 == set' "$work/bits.tsv" > "$work/bits-$set.tsv"
  "$linnet" plot "$work/bits-$set.tsv" --x epoch --y "bits:bits per dimension" --by variant \
    --title "$set: equal epochs" --note "$form" -o "$work/epochs-$set.svg"
  "$linnet" plot "$work/bits-$set.tsv" --x "seconds*0.016666667:training time (min)" --y "bits:bits per dimension" --by variant \
    --title "$set: equal time" --note "$form" -o "$work/time-$set.svg"
done
{
  head_of_results "Autoregressive images (tables 1 and 2)"
  echo "$form. Post-norm, sinusoids, no dropout."
  for set in "${data[@]}"; do
    section "$set"
    LC_ALL=C awk -F'\t' -v set="$set" '
      BEGIN { split("softmax 0.621 lsh-1 0.745 lsh-4 0.676 linear 0.644", m, " "); split("softmax 3.47 lsh-1 3.39 lsh-4 3.51 linear 3.40", c, " ")
        for (i = 1; i <= 8; i += 2) paper[set == "mnist" ? m[i] : c[i]] = set == "mnist" ? m[i + 1] : c[i + 1] }
      NR == 1 { next }
      { v = $2; if (!(v in last)) order[++n] = v; last[v] = $3; time[v] = $5; bits[v, $3] = $4; at[v, $3] = $5
        if (!(v in low) || $4 < low[v]) low[v] = $4 }
      END {
        for (i = 1; i <= n; i++) { v = order[i]; if (!epochs || last[v] < epochs) epochs = last[v]; if (!limit || time[v] < limit) limit = time[v] }
        printf "| variant | epochs | minutes | bits per dimension | after epoch %d | within %.1f min | paper |\n|---|---|---|---|---|---|---|\n", epochs, limit / 60
        for (i = 1; i <= n; i++) {
          v = order[i]; within = "-"
          for (e = 1; e <= last[v]; e++) if (at[v, e] <= limit && (within == "-" || bits[v, e] < within)) within = sprintf("%.4f", bits[v, e])
          printf "| %s | %d | %.1f | %.4f | %.4f | %s | %s |\n", v, last[v], time[v] / 60, low[v], bits[v, epochs], within, v in paper ? paper[v] : "-"
        }
      }' "$work/bits-$set.tsv"
    echo
    echo "![equal epochs](epochs-$set.svg)"
    echo
    echo "![equal time](time-$set.svg)"
    [ ! -f "$work/samples-$set.png" ] || printf '\nSamples of the linear network, and completions: the given half, what it made of it, the original.\n\n![samples](%s)\n\n![completions](%s)\n' \
      "samples-$set.png" "completions-$set.png"
  done
  echo
  echo "Bits per dimension: the loss of the images for measuring by ln 2, the lowest of all epochs, at the same epoch, and by the time that the"
  echo "fastest network took for all. The first value of an image is given and not counted."
  section "Images per second"
  sed -n 's/^# device: //p' "$speed"
  echo
  columns "| variant | computed | values | images at once | images per second | ratio to softmax, all again |"
  LC_ALL=C awk -F'\t' '!/^#/ && $1 != "variant" { printf "| %s | %s | %s | %s | %s | %s |\n", $1, $2 == "state" ? "with a state" : "all again", $3, $4, $6, $7 }' \
    "$speed"
  echo
  echo "The paper, on a GPU: linear against softmax 142.8 to 0.45 images of 784 values per second (317 times), 17.85 to 0.004 of 3,072 (4,462 times)."
} > "$work/RESULTS.md"

echo "$work/RESULTS.md"
