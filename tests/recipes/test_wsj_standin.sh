# [native] recipes/wsj/standin.sh: a tree of discs from known sounds and texts, and back through data.sh: the same words, the same
# samples.
. tests/app/common.sh
[ "${CONFIG:-release}" = release ] || finish
if ! command -v ffmpeg > /dev/null; then
    echo "skipped: the sound is compressed with shorten (no ffmpeg)"
    finish
fi
unset LINNET_FFMPEG

tools=$(dirname "$LINNET")/tests/recipes
recipe() { script wsj/standin --tools "$tools" "$@"; }

# Five speakers with two or three utterances each, in a folder with a blank in its name.
src="$tmp/the source"
mkdir "$src"
n=0
for s in s1 s2 s3 s4 s5; do
    for u in 1 2 3; do
        [ "$s$u" != s23 ] || continue
        n=$((n + 1))
        "$SOUND" "$src/$s $u.wav" seconds=0.3 seed=$n
        echo "$s-$u $s $u.wav" >> "$src/wav.scp"
        echo "$s-$u $s" >> "$src/utt2spk"
        case $n in
        1) echo "$s-$u Six-Day'S WORDS" ;;
        2) echo "$s-$u A. B.'S MR. X-RAY 'CAUSE DOGS' LIFE" ;;
        *) echo "$s-$u UTTERANCE NUMBER $(echo ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE TEN ELEVEN TWELVE THIRTEEN FOURTEEN | cut -d ' ' -f $n) OF $s" ;;
        esac >> "$src/text"
    done
done
sed 's/ s\([1-5]\)$/ SPEAKER/' "$src/text" > "$src/t" && mv "$src/t" "$src/text"

# features FILE: a checksum of its filterbank
features() { "$LINNET" features "$1" -o "$tmp/.npy" 2> "$tmp/.err" && cksum < "$tmp/.npy"; }
for layout in discs flat upper; do
    recipe --data "$src" --audio-root "$src" --output "$tmp/$layout" --layout $layout --jobs 2
    is "$layout: status" "0 " "$status $err"
    script wsj/data --wsj0 "$tmp/$layout" --wsj1 "$tmp/$layout" --output "$tmp/data $layout" $([ $layout = flat ] || echo --no-lm)
    is "$layout: data.sh: status" 0 "$status"
    hasnt "$layout: nothing is missing" "$err" "missing"
    hasnt "$layout: no odd token" "$err" "tokens of"
    hasnt "$layout: every model can be read" "$err" "left out"
    is "$layout: sets" "test_dev93 3 test_dev93_5k 2 test_eval92 3 test_eval92_5k 2 test_eval93 1 test_eval93_5k 1 train_si284 11 train_si84 8" \
        "$(cd "$tmp/data $layout" && for set in te* tr*; do printf '%s %s\n' $set $(wc -l < $set/text); done | paste -s -d ' ' -)"
done
is "all layouts have the same words" "$(cat "$tmp/data discs/"*/text)" "$(cat "$tmp/data flat/"*/text)"
is "all layouts have the same words, in upper case too" "$(cat "$tmp/data discs/"*/text)" "$(cat "$tmp/data upper/"*/text)"
is "words: what went in comes out" "$(cut -d ' ' -f 2- "$src/text" | tr 'a-z' 'A-Z' | LC_ALL=C sort -u)" \
    "$(cut -d ' ' -f 2- "$tmp/data discs/"*/text | LC_ALL=C sort -u)"
# The words of every utterance are those of its sound.
k=0
cat "$tmp/data discs/"*/wav.scp | LC_ALL=C sort -u > "$tmp/sounds"
for wav in "$src"/*.wav; do features "$wav"; done > "$tmp/sums"
while read -r u path; do
    sum=$(features "$path")
    i=$(grep -n "^$sum\$" "$tmp/sums" | cut -d : -f 1)
    want=$(sed -n "${i:-99}p" "$src/text" | cut -d ' ' -f 2- | tr 'a-z' 'A-Z')
    is "$u: the words of the sound with the same samples" "$want" "$(cat "$tmp/data discs/"*/text | sed -n "s/^$u //p" | head -n 1)"
    k=$((k + 1))
done < "$tmp/sounds"
is "utterances compared" 23 "$k"
path=$(sed -n "1s/^[^ ]* //p" "$tmp/sounds")
is "shorten'd SPHERE" "NIST_1A" "$(head -n 1 "$path")"
has "shorten'd SPHERE: coding" "$(head -c 1024 "$path")" "embedded-shorten"
for lm in bg_5k tg_5k tgpr_5k bg_20k tg_20k tgpr_20k; do
    exits "lm/$lm reads" 0 run ngram perplexity "$tmp/data flat/lm/$lm.arpa.gz" --ids first "$tmp/data flat/train_si284/text"
done
has "every convention of transcripts is used" "$(cat "$tmp/data discs/report.txt")" "verbally deleted words"

# ---- interruptions and bad input -------------------------------------------------------------------------------------------------

one_line "the tree is there" "exists" --data "$src" --output "$tmp/discs"
one_line "no speech" "from which speech" --output "$tmp/x"
one_line "no output" "--output TREE" --data "$src"
one_line "another layout" "--layout is discs, flat or upper, not 'x'" --data "$src" --output "$tmp/x" --layout x
one_line "no data directory" "is not a data directory" --data "$tmp" --output "$tmp/x1"
one_line "no tools" "run make" --data "$src" --output "$tmp/x2" --tools "$tmp"
mkdir "$tmp/two"
head -n 5 "$src/wav.scp" > "$tmp/two/wav.scp"
cp "$src/text" "$src/utt2spk" "$tmp/two"
one_line "two speakers" "three are needed" --data "$tmp/two" --audio-root "$src" --output "$tmp/x3"

# Stopped in the middle: the next run goes on, and has the same tree as one that was not stopped.
mkdir "$tmp/tools"
cat > "$tmp/tools/sphere" <<END
#!/bin/sh
[ ! -f "$tmp/full" ] || { echo "sphere: cannot write \$2"; exit 3; }
case \$2 in */502c0101.wv1.part) touch "$tmp/full" ;; esac
exec "$tools/sphere" "\$@"
END
chmod +x "$tmp/tools/sphere"
for set in train dev test; do
    mkdir "$tmp/$set"
    case $set in train) s=[123] ;; dev) s=4 ;; *) s=5 ;; esac
    grep "^s$s" "$src/wav.scp" > "$tmp/$set/wav.scp"
    cp "$src/text" "$src/utt2spk" "$tmp/$set"
done
split() {
    script wsj/standin --train "$tmp/train" --dev "$tmp/dev" --test "$tmp/test" --audio-root "$src" --output "$tmp/again" --jobs 1 --tools "$@"
}
split "$tmp/tools"
is "a full disk: status" 1 "$status"
has "a full disk: message" "$err" "is the disk full?"
has "a full disk: how to go on" "$err" "run the same command again to go on"
ok "a full disk: no tree" test ! -e "$tmp/again"
before=$(cd "$tmp/again.new" && find . -name '*.wv1' | wc -l)
ok "a full disk: some sounds are there" test "$before" -ge 1
recipe --data "$src" --audio-root "$src" --output "$tmp/again"
has "a full disk: not with other options" "$err" "of an interrupted run with other options"
split "$tools"
is "continued: status" 0 "$status"
ok "continued: the same as with --data, whole" diff -r "$tmp/discs" "$tmp/again"
exec 9> "$tmp/busy.lock"
flock 9
one_line "two runs" "another run" --data "$src" --output "$tmp/busy"
exec 9>&-

# A sound that cannot be read and a text that is none: left out, named, the rest is whole.
mkdir "$tmp/bad"
cp "$src"/*.wav "$src/wav.scp" "$src/utt2spk" "$tmp/bad"
sed 's/NUMBER FIVE/NUMBER 5/' "$src/text" > "$tmp/bad/text"
echo nonsense > "$tmp/bad/s1 3.wav"
exits "bad input" 0 recipe --data "$tmp/bad" --audio-root "$tmp/bad" --output "$tmp/tree bad"
has "bad input: the text is named" "$err" "UTTERANCE NUMBER 5"
has "bad input: the sound is named" "$err" "2 sounds cannot be read and are left out"
script wsj/data --wsj0 "$tmp/tree bad" --wsj1 "$tmp/tree bad" --output "$tmp/data bad" --no-lm
is "bad input: the rest is whole" "0 5" "$status $(wc -l < "$tmp/data bad/train_si84/text" | tr -d ' ')"

finish
