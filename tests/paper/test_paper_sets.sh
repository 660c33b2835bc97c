# [variants] linnet paper: what it writes of files made here, as the trainer sees it, and what it refuses.
. tests/app/common.sh

# idx COUNT BYTE...: an IDX file of COUNT images of 2 x 2
byte() { printf "\\$(printf %03o "$1")"; }
idx() { printf '\0\0\10\3\0\0\0'; byte "$1"; printf '\0\0\0\2\0\0\0\2'; shift; for b; do byte "$b"; done; }
idx 3 0 1 2 3 10 20 30 40 255 254 253 252 > "$tmp/images"
printf '1\tabc\n0\tno\n2\tlonger\n' > "$tmp/text"

exits "images" 0 run paper images "$tmp/images" -o "$tmp/a.lfc"
has "images: 3 of 4 values have a next one" "$err" "a.lfc: 3 sequences, 9 tokens"
run paper images "$tmp/images" "$tmp/images" --range 3:5 -o "$tmp/b.lfc"
has "images: a range over two files" "$err" "b.lfc: 3 sequences, 9 tokens"
warns "images: a range to the end" "b.lfc: 2 sequences, 6 tokens" paper images "$tmp/images" --range 2: -o "$tmp/b.lfc"
gzip -c "$tmp/images" > "$tmp/images.gz"
run paper images "$tmp/images.gz" -o "$tmp/d.lfc" -q
is "images: gzip: the same set, and --quiet" "$(cksum < "$tmp/a.lfc")" "$(cksum < "$tmp/d.lfc")$err"
{ byte 7; head -c 3072 /dev/zero; } > "$tmp/batch"
warns "CIFAR-10" "e.lfc: 1 sequences, 3071 tokens" paper images "$tmp/batch" -o "$tmp/e.lfc"
warns "CIFAR-10 as in the arena" "e.lfc: 1 sequences, 1024 tokens" paper images "$tmp/batch" --labels --grey -o "$tmp/e.lfc"
warns "text: at most so many bytes" "f.lfc: 3 sequences, 9 tokens" paper text "$tmp/text" --most 4 -o "$tmp/f.lfc"
for kind in copy listops pathfinder; do
    exits "$kind" 0 run paper $kind --count 5 --seed 3 -q -o "$tmp/$kind.lfc"
    run paper $kind --count 5 --seed 3 -q -o "$tmp/again.lfc"
    is "$kind: the same seed" "$(cksum < "$tmp/$kind.lfc")" "$(cksum < "$tmp/again.lfc")"
    run paper $kind --count 5 --seed 4 -q -o "$tmp/again.lfc"
    ok "$kind: another seed" test "$(cksum < "$tmp/$kind.lfc")" != "$(cksum < "$tmp/again.lfc")"
done

shows "info: what it is" "set of tokens" info "$tmp/listops.lfc"
has "info: one target each" "$(printf '%s\n' "$out" | tr -s ' ')" "targets: 5"
json "info --json" info --json "$tmp/copy.lfc"

# The trainer takes them: targets of every value, and of the last one alone. It learns what a key says.
small="--layers 1 --set heads=2,head-width=8,feedforward=32 --positions sinusoid --device cpu --epochs 2"
for set in a f; do
    run train --train "$tmp/$set.lfc" --dev "$tmp/$set.lfc" --folder "$tmp/run-$set" $small -q
    is "a set of $set is trained on: status" 0 "$status"
done
refused "a set of another kind" 1 "other features or phones" train --train "$tmp/a.lfc" --dev "$tmp/f.lfc" --folder "$tmp/y" $small
run paper copy --count 640 --length 8 --symbols 2 -q -o "$tmp/copy.lfc"
run train --train "$tmp/copy.lfc" --folder "$tmp/copy" --layers 2 --set heads=2,head-width=16,feedforward=64,dropout=0,weight-decay=0 \
    --positions sinusoid --device cpu --epochs 30 --set batch-sequences=16 --lr 3e-3 --schedule constant -q
ok "copy is learnt: a guess has a loss of ln 2" awk -F'\t' 'END { exit !($3 < 0.15) }' "$tmp/copy/log.tsv"

awk 'BEGIN { srand(1); for (i = 0; i < 120; i++) { s = ""; for (t = 0; t < 9; t++) s = s sprintf("%c", 99 + int(20 * rand()))
    print i % 2 "\t" substr(s, 1, i % 7) (i % 2 ? "a" : "b") substr(s, i % 7 + 1) } }' > "$tmp/letters"
head -n 100 "$tmp/letters" > "$tmp/train"
tail -n 20 "$tmp/letters" > "$tmp/dev"
for set in train dev; do run paper text "$tmp/$set" -q -o "$tmp/$set.lfc"; done
for direction in causal bidirectional; do
    run train --train "$tmp/train.lfc" --dev "$tmp/dev.lfc" --folder "$tmp/$direction" --direction $direction --layers 1 --epochs 20 --positions sinusoid \
        --set heads=2,head-width=16,feedforward=64,dropout=0,norm=pre,batch-sequences=10 --lr 3e-3 --schedule constant --device cpu -q
    ok "$direction: the class of a text by one of its letters, in any place" awk -F'\t' 'END { exit !($5 <= 10) }' "$tmp/$direction/log.tsv"
done

refused "no kind" 2 "'nonsense' is none of images, text, copy" paper nonsense -o "$tmp/x"
refused "no output" 2 "--output" paper copy
refused "no file" 2 "images: the FILE is missing" paper images -o "$tmp/x"
refused "a file where there is none" 2 "unexpected argument" paper copy "$tmp/text" -o "$tmp/x"
refused "an option of another kind" 2 "--least does not apply to copy" paper copy --least 4 -o "$tmp/x"
for range in 0:3 3 :3 4:3 a:b 3:b 3:4:5 1:99999999999999999999; do
    refused "--range $range" 2 "--range is FIRST:LAST" paper images "$tmp/images" --range $range -o "$tmp/x"
done
refused "a range that is not there" 1 "--range 2:4: there are 3 images" paper images "$tmp/images" --range 2:4 -o "$tmp/x"
refused "a range behind the end" 1 "--range 4:: there are 3 images" paper images "$tmp/images" --range 4: -o "$tmp/x"
refused "no text" 1 "has no line" paper text /dev/null -o "$tmp/x"
refused "no images" 1 "neither an IDX file of images" paper images "$tmp/text" -o "$tmp/x"
refused "images of two sizes" 1 "images of 32 x 32 with 3 colour(s), but those of" paper images "$tmp/images" "$tmp/batch" -o "$tmp/x"
refused "labels that IDX lacks" 1 "has no labels; CIFAR-10's batches have" paper images "$tmp/images" --labels -o "$tmp/x"
printf '1\tabc\nno class\n' > "$tmp/bad"
refused "a line without a class" 1 "bad:2: a line is a class from 0 to 999, a tab and a text" paper text "$tmp/bad" -o "$tmp/x"
refused "copy: too short" 1 "--length is 4 or more" paper copy --length 3 -o "$tmp/x"
refused "listops: bounds" 1 "--least is 30 and --most 20" paper listops --least 30 --most 20 -o "$tmp/x"
is "nothing is written" "" "$(ls "$tmp" | grep '^x')"
finish
