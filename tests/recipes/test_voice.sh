# [native] recipes/open/voice.sh: every stage on a tiny corpus of synthetic sounds, and what the program says of the model.
. tests/app/common.sh
# Not under a sanitizer: tests of linnet's commands run the same code there.
[ "${CONFIG:-release}" = release ] || finish
python3 -c 'import numpy' 2> /dev/null || finish

c="$tmp/a corpus" w="$tmp/work" k=0
voices() { # FOLDER NAME...: two sounds of 3 s of each voice
    local to=$1 name i
    mkdir -p "$to"
    shift
    for name in "$@"; do
        for i in 1 2; do
            k=$((k + 1))
            "$SOUND" "$to/$name$i.wav" seconds=3.2 seed=$k
            echo "$name-$i $to/$name$i.wav" >> "$to/wav.scp"
            echo "$name-$i $name" >> "$to/utt2spk"
        done
    done
}
for set in native pseudo cv nonnative read games; do voices "$c/train_$set" anna "$set"; done
voices "$tmp/more" bert native
for set in dev_native dev_nonnative test_native; do voices "$c/$set" "$set-a" "$set-b"; done
echo "cv-3 none.wav" >> "$c/train_cv/wav.scp" # reported and left out
echo "cv-3 cv" >> "$c/train_cv/utt2spk"
printf '%s\n' 'voice = 6' 'layers = 1' 'heads = 1' 'head-width = 8' 'feedforward = 8' 'stack = 3' 'direction = bidirectional' 'epochs = 2' \
    'lr = 1e-3' > "$tmp/tiny.conf"
recipe() { script open/voice "$@"; }

exits "it runs" 0 recipe --corpus "$c" --more "$tmp/more" --work "$w" --conf "$tmp/tiny.conf" --threads 1
has "the dev sets are measured" "$err" "dev EER"
is "an epoch's error is in the log" yes "$(awk -F'\t' 'NR > 1 { print ($5 >= 0 && $5 <= 100 ? "yes" : "no") }' "$w/run/log.tsv" | sort -u)"
info=$("$LINNET" info "$w/run/best.safetensors")
has "equal names are one voice" "$info" "a vector of 6 elements for a voice; trained on 8 voices"
hasnt "it has no phones" "$info" "phones:"
has "in JSON" "$("$LINNET" info --json "$w/run/best.safetensors")" '"voice": 6'
is "a row for each set and length, and for all together" 8 "$(tail -n +2 "$w/voices.tsv" | wc -l | tr -d ' ')"
before=$(cksum < "$w/run/best.safetensors")
recipe --corpus "$c" --more "$tmp/more" --work "$w" --conf "$tmp/tiny.conf" --threads 1 --stage 2 --stop-stage 2
is "it goes on" "0 $before" "$status $(cksum < "$w/run/best.safetensors")"
has "and is complete" "$err" "nothing to do"

refused "it recognises nothing" 1 "is a network of voices: it has no phones" transcribe --model "$w/run/best.safetensors" "$c/dev_native/dev_native-a1.wav"
"$LINNET" average --half "$w/run/best.safetensors" -o "$tmp/half.safetensors" 2> /dev/null
is "half: the rows of its 8 voices are those of nobody" "8 of 3c00, 40 of 0000" "$(tail -c 96 "$tmp/half.safetensors" | od -An -v -tx2 |
    awk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { print n["3c00"] " of 3c00, " n["0000"] " of 0000" }')"
refused "it has no blank" 1 "a network of voices has no blank" average --blank-bias 1 "$w/run/best.safetensors" -o "$tmp/x.safetensors"
refused "tempo" 1 "this is a network of voices" train "$tmp/tiny.conf" --train "$w/more.lfc" --folder "$tmp/x" --set tempo=0.1 --device cpu
grep -v '^native' "$tmp/more/utt2spk" > "$tmp/one" && mv "$tmp/one" "$tmp/more/utt2spk"
grep -v '^native' "$tmp/more/wav.scp" > "$tmp/one" && mv "$tmp/one" "$tmp/more/wav.scp"
"$LINNET" prepare "$tmp/more" --no-speech -q -o "$tmp/one.lfc"
refused "one voice" 1 "the sets have 1 voice" train "$tmp/tiny.conf" --train "$tmp/one.lfc" --folder "$tmp/x"
mkdir -p "$tmp/two/more"
: > "$tmp/two/more/utt2spk"
exits "two folders of one name" 1 recipe --corpus "$c" --more "$tmp/more" --more "$tmp/two/more" --work "$tmp/x"
has "two folders of one name" "$err" "--more $tmp/two/more: another set is called more too, and its cache would be taken; rename one"
exits "no corpus" 1 recipe --corpus "$tmp" --work "$tmp/x"
has "no corpus" "$err" "dev_native/wav.scp does not exist; give --corpus DIR"
finish
