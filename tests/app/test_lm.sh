# linnet lm: prepare, a model that linnet train makes of that, score, sample; what is refused.
. tests/app/common.sh

# sentences N SEED: "the dog sees a bird", of 3 + 1 words that follow a rule
sentences() {
    awk -v n="$1" -v x="$2" 'function draw(words,   w, k) { k = split(words, w, " "); x = (x * 1103 + 12345) % 65537; return w[x % k + 1] }
        BEGIN { for (i = 0; i < n; i++) print draw("the a"), draw("dog cat bird horse farmer"), draw("sees hears follows"), draw("the a"),
                    draw("dog cat bird horse farmer") }' < /dev/null
}
sentences 1500 1 > "$tmp/train.txt"
sentences 60 77 > "$tmp/dev.txt"
# member NAME: of the JSON object on standard output of the last run
member() { echo "$out" | sed -n "s/.*\"$1\": \([-0-9.]*\).*/\1/p"; }
# near WHAT A B: equal to 4 digits
near() { awk -v a="$2" -v b="$3" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d * d <= 1e-7 * a * a) }' < /dev/null && pass || fail "$1" "$2" "$3"; }

# ---- prepare ---------------------------------------------------------------------------------------------------------------------

exits "prepare" 0 run lm prepare "$tmp/train.txt" --pieces 60 --longest 64 -o "$tmp/train.lfc"
has "prepare sums up" "$err" "1500 sentences, 7500 words: 60 pieces, "
run lm prepare -q "$tmp/dev.txt" --like "$tmp/train.lfc" --longest 64 -o "$tmp/dev.lfc"
is "with the pieces of a set, quietly" "0 " "$status $err"
run lm prepare -q --pieces 60 --longest 64 -o "$tmp/again.lfc" < "$tmp/train.txt"
run lm prepare -q - --like "$tmp/again.lfc" --longest 64 -o "$tmp/again2.lfc" < "$tmp/train.txt"
ok "the same from standard input and from the list" cmp "$tmp/again.lfc" "$tmp/again2.lfc"
tr a-z A-Z < "$tmp/train.txt" | awk '{ print "u" NR, $0 }' > "$tmp/kaldi"
run lm prepare -q --ids first --lower --pieces 60 --longest 64 -o "$tmp/again2.lfc" - < "$tmp/kaldi"
ok "Kaldi text in capitals" cmp "$tmp/again.lfc" "$tmp/again2.lfc"
printf 'the dog\na dog-cat sees\nA cat\n' > "$tmp/odd.txt"
exits "lines that cannot be spelled" 1 run lm prepare "$tmp/odd.txt" --pieces 30 -o "$tmp/odd.lfc"
has "they are reported" "$err" "odd.txt:2: 'dog-cat' has a character that is neither a-z nor an apostrophe; left out"
has "and left out" "$err" "1 sentences, 2 words"

# ---- train and score -------------------------------------------------------------------------------------------------------------

run train --train "$tmp/train.lfc" --dev "$tmp/dev.lfc" --folder "$tmp/lm" --layers 1 --positions sinusoid --epochs 12 --lr 1e-2 \
    --batch-frames 1024 --set heads=2,head-width=16,feedforward=32 -q
is "train: status" 0 "$status"
model=$tmp/lm/best.safetensors
loss=$(awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "dev_loss") at = i; next } best == "" || $at < best { best = $at } END { printf "%.9f", exp(best) }' "$tmp/lm/log.tsv")
run lm score "$model" "$tmp/dev.txt" --joined --longest 64 --json
near "joined as in the set: the loss that the training had" "$loss" "$(member perplexity_of_pieces)"
exits "score" 0 run lm score "$model" "$tmp/dev.txt" --json
is "all words are counted" "60 300" "$(member sentences) $(member words)"
whole=$(member log10) score=$(member perplexity)
near "perplexity: with the ends of sentences" "$score" "$(awk -v l="$whole" 'BEGIN { printf "%.9f", exp(-l * log(10) / 360) }' < /dev/null)"
near "and of pieces" "$(member perplexity_of_pieces)" \
    "$(awk -v l="$whole" -v n="$(member pieces)" 'BEGIN { printf "%.9f", exp(-l * log(10) / n) }' < /dev/null)"
json "score writes JSON" lm score "$model" "$tmp/dev.txt" --json
sum=0
while read -r line; do
    echo "$line" > "$tmp/line"
    run lm score "$model" "$tmp/line" --json
    sum=$(awk -v a="$sum" -v b="$(member log10)" 'BEGIN { printf "%.9f", a + b }' < /dev/null)
done < "$tmp/dev.txt"
near "a text is the sum of its sentences" "$whole" "$sum"
run lm score "$model" -t 1 < "$tmp/dev.txt"
has "as text, of standard input" "$out" "standard input: 60 sentences, 300 words, 0 OOVs"
has "with the perplexity of pieces" "$out" " pieces with ends, ppl= "
run ngram count -q --order 1 "$tmp/train.txt" -o "$tmp/1.arpa"
run ngram perplexity "$tmp/1.arpa" "$tmp/dev.txt" --json
awk -v a="$score" -v b="$(member perplexity)" 'BEGIN { exit !(a > 1 && a < b) }' < /dev/null && pass ||
    fail "it predicts better than single words" "$score" "$(member perplexity)"
run lm prepare -q "$tmp/dev.txt" --like "$model" --longest 64 -o "$tmp/dev2.lfc"
ok "the pieces of a model are those of its set" cmp "$tmp/dev.lfc" "$tmp/dev2.lfc"

shows "info: a network of tokens" "60 different, each a row of the embedding table" info "$model"
has "its symbols are the pieces" "$out" "<s> _ ' a b c"
shows "info: a set of tokens" "set of tokens" info "$tmp/dev.lfc"
has "with its length" "$out" " tokens"
json "info of a set writes JSON" info --json "$tmp/dev.lfc"
json "info of a model writes JSON" info --json "$model"

# ---- sample ----------------------------------------------------------------------------------------------------------------------

exits "sample" 0 run lm sample "$model" -n 20 --seed 3 --longest 40
is "so many lines" 20 "$(echo "$out" | wc -l | tr -d ' ')"
first=$out
gives "the same seed gives the same sentences" "$first" lm sample "$model" -n 20 --seed 3 --longest 40 -t 1
gives "any number of them" "$(echo "$first" | head -n 7)" lm sample "$model" -n 7 --seed 3 --longest 40
run lm sample "$model" -n 20 --seed 4 --longest 40
[ "$out" != "$first" ] && pass || fail "another seed gives others" "$out"
run lm sample "$model" -n 5 --prompt "the dog sees" -o "$tmp/sample.txt"
is "--prompt begins each" 5 "$(grep -c '^the dog sees' "$tmp/sample.txt")"

# ---- what is refused -------------------------------------------------------------------------------------------------------------

make_model || fail "a model of sound"
refused "a model of sound" 1 "is not a network of words: it is a model of sound" lm score "$tmp/model.safetensors" "$tmp/dev.txt"
refused "words as an image" 1 "has tokens that are not the values of pixels" generate "$model" --image 8x8 -o "$tmp/x.png"
refused "its set" 1 "is not a network of words: it is a model of sound" lm prepare "$tmp/dev.txt" --like "$tmp/set.lfc" -o "$tmp/x.lfc"
refused "two lists of pieces" 2 "leave out one" lm prepare "$tmp/dev.txt" --like "$tmp/train.lfc" --pieces 60 -o "$tmp/x.lfc"
refused "something else" 1 "$tmp/dev.txt" lm prepare "$tmp/dev.txt" --like "$tmp/dev.txt" -o "$tmp/x.lfc"
: > "$tmp/empty"
refused "an empty text" 1 "the text has no sentence" lm prepare "$tmp/empty" -o "$tmp/x.lfc"
refused "nothing to score" 1 "the text has no sentence" lm score "$model" "$tmp/empty"
refused "a missing text" 1 "$tmp/none" lm prepare "$tmp/none" -o "$tmp/x.lfc"
[ ! -e "$tmp/x.lfc" ] && pass || fail "nothing was written" "$tmp/x.lfc"
refused "a prompt of other characters" 1 "--prompt: 'Dog' has a character" lm sample "$model" --prompt Dog
refused "a prompt that is too long" 1 "--prompt has 8 pieces or more; --longest is 8" lm sample "$model" --prompt "zzz zzz" --longest 8
refused "no output" 2 "prepare needs --output FILE" lm prepare "$tmp/dev.txt"
refused "an option of another verb" 2 "--prompt does not apply to score" lm score "$model" --prompt a
refused "no model" 2 "sample: the MODEL is missing" lm sample
refused "two models" 2 "unexpected argument '$tmp/dev.txt'" lm sample "$model" "$tmp/dev.txt"
refused "no such verb" 2 "'train' is none of prepare, score, sample" lm train
finish
