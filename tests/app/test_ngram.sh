# linnet ngram: count, prune, mix, pack, arpa, perplexity, info, generate; pipes, gzip, hostile text.
. tests/app/common.sh

text=tests/golden/ngram_text.txt heldout=tests/golden/ngram_heldout.txt
a=$tmp/a.arpa
# counts_alike "what" FILE ARGS...: linnet ngram count ARGS... makes this model
counts_alike() { alike=$1 want=$2; shift 2; run ngram count -q "$@" -o "$tmp/b"; ok "$alike" cmp "$want" "$tmp/b"; }

# ---- count -----------------------------------------------------------------------------------------------------------------------

exits "count" 0 run ngram count "$text" -o "$a"
has "count sums up" "$err" "260 sentences, 1543 words (0 as <unk>): 73 1-grams, 516 2-grams, 952 3-grams"
is "ARPA text" '\data\' "$(head -n 1 "$a")"
is "its counts are those of its lines" 952 "$(sed -n '/^\\3-grams/,/^$/p' "$a" | grep -c '	')"
is "n-grams are sorted" "" "$(sed -n '/^\\2-grams/,/^$/p' "$a" | grep '	' | cut -f 2 | LC_ALL=C sort -c -t ' ' -k 1,1 -k 2,2 2>&1)"
run ngram count -q "$text"
is "to standard output, the same" "$(cat "$a")" "$out"
is "--quiet says nothing" "" "$err"
"$LINNET" ngram count -q < "$text" > "$tmp/b" 2>&1
ok "from standard input" cmp "$a" "$tmp/b"
"$LINNET" ngram count -q - < "$text" > "$tmp/b" 2>&1
ok "and where it is called -" cmp "$a" "$tmp/b"
gzip -c "$text" > "$tmp/text.gz"
counts_alike "gzip'd" "$a" "$tmp/text.gz"
head -n 100 "$text" > "$tmp/1"
tail -n +101 "$text" > "$tmp/2"
counts_alike "in two files, the other way round" "$a" "$tmp/2" "$tmp/1"
awk '{ printf "u%d\t%s\n", NR, $0 }' "$text" > "$tmp/kaldi"
counts_alike "Kaldi text" "$a" --ids first "$tmp/kaldi"
awk '{ printf "%s (u%d)\n", $0, NR }' "$text" > "$tmp/trn"
counts_alike "TRN" "$a" --ids last "$tmp/trn"
tr a-z A-Z < "$text" > "$tmp/upper"
counts_alike "--lower" "$a" --lower "$tmp/upper"
printf 'caf\303\251 ab\n' > "$tmp/composed"
printf 'cafe\314\201 a\302\255b\n' > "$tmp/apart"
run ngram count -q "$tmp/composed" -o "$tmp/b"
run ngram count -q "$tmp/apart" -o "$tmp/c"
ok "letters and accents apart, a soft hyphen" cmp "$tmp/b" "$tmp/c"
tr " " "\n" < "$tmp/apart" > "$tmp/words"
run ngram count -q --vocabulary "$tmp/words" "$tmp/composed" -o "$tmp/c"
ok "in a vocabulary too" cmp "$tmp/b" "$tmp/c"
printf 'a b\nb a' > "$tmp/unix"
run ngram count -q "$tmp/unix" -o "$tmp/c"

run ngram count "$tmp/unix"
has "discounts that cannot be estimated are reported" "$err" \
    "note: 0, 3, 0 and 0 1-grams with counts 1, 2, 3 and 4 give no discounts; 0.5, 1, 1.5 are used"
run ngram count "$tmp/unix" --order 9
has "an order longer than every sentence is reported" "$err" "note: no n-grams longer than 4 are left; the model has this order"
has "and lowered" "$out" "ngram 4=2"
hasnt "not written" "$out" "ngram 5="
shows "--set min-count=N: pairs and longer" "$(printf 'ngram 1=73\nngram 2=')" ngram count -q --set min-count=2 "$text"
refused "a part of a time" 2 "--set min-count needs a whole number, not '1.5'" ngram count --set min-count=1.5 "$text"
run ngram count --set min-count=3,2 "$text"
has "--set min-count=N,N: rare words are <unk>" "$err" "as <unk>): 50 1-grams, 236 2-grams, 223 3-grams"
printf 'w01 0.3\nw02\n\nnever\n<s>\n' > "$tmp/vocabulary"
warns "--vocabulary" "6 1-grams" ngram count --vocabulary "$tmp/vocabulary" "$text"
has "words of the list that are not in the text" "$out" "	never"
run ngram count -q --no-unknown "$text"
hasnt "--no-unknown" "$out" "<unk>"

# From words to a language model of phones in one line.
printf 'one W AH N\ntwo T UW\n' > "$tmp/dict"
printf 'u1 ONE TWO ONE\nu2 TWO\n' > "$tmp/words"
"$LINNET" phonemize -l "$tmp/dict" --ids first "$tmp/words" | "$LINNET" ngram count -q --ids first --no-unknown -o "$tmp/phones.arpa"
has "phonemize | ngram count" "$(cat "$tmp/phones.arpa")" "	W AH N"
has "has the phones and no more" "$(cat "$tmp/phones.arpa")" "ngram 1=7"

# ---- perplexity ------------------------------------------------------------------------------------------------------------------

golden=$(grep -A 5 '^model trigram' tests/golden/ngram_golden.txt | sed -n 's/^sum //p')
exits "perplexity" 0 run ngram perplexity "$a" "$heldout"
has "counts" "$out" "$heldout: 12 sentences, 78 words, 2 OOVs"
is "the golden logarithm" "$(echo "$golden" | awk '{ printf "%.3f", $2 }')" \
    "$(echo "$out" | sed -n 's/^0 zeroprobs, logprob= \([^ ]*\) .*/\1/p' | awk '{ printf "%.3f", $1 }')"
ppl=$(echo "$golden" | awk '{ printf "%.2f %.2f", 10 ^ (-$2 / (78 - 2 + 12)), 10 ^ (-$2 / (78 - 2)) }')
is "perplexity with and without </s>" "$ppl" \
    "$(echo "$out" | sed -n 's/^0 zeroprobs.* ppl= \([^ ]*\) ppl1= \(.*\)/\1 \2/p' | awk '{ printf "%.2f %.2f", $1, $2 }')"
has "unknown words as <unk>" "$out" "OOVs as <unk>: logprob= -"
run ngram perplexity "$a" "$heldout" --sentences
is "a line for each sentence" 15 "$(echo "$out" | wc -l | tr -d ' ')"
has "with its place" "$out" "$heldout:1	"
run ngram perplexity "$a" "$heldout" --sentences --json
has "--json" "$out" '"sentences": 12, "words": 78, "unknown": 2, "impossible": 0, "log10": '
json "it is JSON" ngram perplexity "$a" "$heldout" --sentences --json
"$LINNET" ngram perplexity "$a" < "$heldout" > "$tmp/b"
has "of standard input" "$(cat "$tmp/b")" "standard input: 12 sentences"
shows "no <unk>: its logarithm is null" '"log10_with_unknown": null' ngram perplexity "$tmp/phones.arpa" "$heldout" --json
printf '\\data\\\nngram 1=3\n\n\\1-grams:\n-99\t<s>\n-99\t</s>\n-0.01\ta\n\n\\end\\\n' > "$tmp/endless.arpa"
printf 'a\n' > "$tmp/b"
shows "an impossible end" "1 zeroprobs, logprob= -0.0100 ppl= 1.0233 ppl1= undefined" ngram perplexity "$tmp/endless.arpa" "$tmp/b"

# ---- pack, arpa, info, prune -----------------------------------------------------------------------------------------------------

run ngram pack "$a" -o "$tmp/a.lm"
refused "linnet info points to linnet ngram info" 1 "$tmp/a.lm is a language model; use 'linnet ngram info'" info "$tmp/a.lm"
exits "pack" 0 run ngram pack "$a" -o "$tmp/a.lm"
exits "arpa" 0 run ngram arpa "$tmp/a.lm" -o "$tmp/b"
run ngram pack "$tmp/b" -o "$tmp/b.lm"
ok "packed, unpacked and packed again it is the same" cmp "$tmp/a.lm" "$tmp/b.lm"
run ngram count -q "$text" --packed -o "$tmp/c.lm"
is "the same perplexity packed" "$("$LINNET" ngram perplexity "$a" "$heldout")" "$("$LINNET" ngram perplexity "$tmp/a.lm" "$heldout")"
is "and by count --packed" "$("$LINNET" ngram perplexity "$a" "$heldout" | cut -c 1-40)" \
    "$("$LINNET" ngram perplexity "$tmp/c.lm" "$heldout" | cut -c 1-40)"
shows "info" "3-grams:     952" ngram info "$tmp/a.lm"
shows "info --json" '{"order": 3, "ngrams": [73, 516, 952], "unknown": true, "fingerprint": "' ngram info --json "$a"
exits "prune" 0 run ngram prune "$a" --entropy 1e-4 -o "$tmp/small.arpa"
has "prune sums up" "$err" ": 73 1-grams, 516 2-grams, 952 3-grams before, 73 1-grams, "
has "the logarithm of 0 is -99, as other programs have it" "$(cat "$tmp/small.arpa")" "-99	<s>"
run ngram prune "$a" --entropy 1e-4 --packed -q -o "$tmp/small.lm"
is "prune --packed" "$("$LINNET" ngram info "$tmp/small.arpa" | head -n 4)" "$("$LINNET" ngram info "$tmp/small.lm" | head -n 4)"
before=$(wc -c < "$a") after=$(wc -c < "$tmp/small.arpa")
ok "it is smaller" test "$after" -lt "$before"
run ngram count -q --entropy 1e-4 "$text" -o "$tmp/b"
run ngram count -q "$text" --packed --set bits=6 -o "$tmp/six.lm"
ok "--bits: smaller" test "$(wc -c < "$tmp/six.lm")" -lt "$(wc -c < "$tmp/c.lm")"
probabilities() { "$LINNET" ngram arpa "$1" | awk '/^.3-grams/ { on = 1; next } on && NF > 3 { print $1 }' | sort -u | wc -l; }
ok "--bits: at most 64 probabilities" test "$(probabilities "$tmp/six.lm")" -le 64
ok "without it more" test "$(probabilities "$tmp/c.lm")" -gt 64
run ngram count -q --set smoothing=absolute "$text" -o "$tmp/absolute"
is "--set smoothing=absolute: the same n-grams" "$("$LINNET" ngram info "$a" | head -n 4)" "$("$LINNET" ngram info "$tmp/absolute" | head -n 4)"
ok "with other probabilities" test "$("$LINNET" ngram perplexity "$a" "$heldout" | tail -n 1)" != \
    "$("$LINNET" ngram perplexity "$tmp/absolute" "$heldout" | tail -n 1)"
is "count --entropy prunes alike" "$("$LINNET" ngram info "$tmp/small.arpa" | head -n 4)" "$("$LINNET" ngram info "$tmp/b" | head -n 4)"

# ---- mix -------------------------------------------------------------------------------------------------------------------------

run ngram count -q --order 2 "$tmp/1" -o "$tmp/one.arpa"
run ngram count -q --order 3 "$tmp/2" --packed -o "$tmp/two.lm"
exits "mix" 0 run ngram mix "$tmp/one.arpa" "$tmp/two.lm" --text "$heldout" -o "$tmp/mix.arpa"
has "the mix of 0 and 0 is 0" "$(cat "$tmp/mix.arpa")" "-99	<s>"
has "mix counts the text's words" "$err" "$heldout: 12 sentences, 78 words: "
has "mix tells the weights" "$err" "linnet: weights 0."
ppl() { "$LINNET" ngram perplexity "$1" "$heldout" --json | sed -n 's/.*"perplexity": \([0-9.]*\).*/\1/p'; }
has "and the perplexities" "$err" " alone, "
weights=$(echo "$err" | sed -n 's/^linnet: weights \([0-9.,]*\):.*/\1/p')
exits "mix --weights" 0 run ngram mix "$tmp/one.arpa" "$tmp/two.lm" --weights "$weights" --packed -q -o "$tmp/mix.lm"
is "its weights given, packed: the same" "$(ppl "$tmp/mix.arpa" | cut -c 1-5)" "$(ppl "$tmp/mix.lm" | cut -c 1-5)"
run ngram mix "$tmp/one.arpa" "$tmp/two.lm" --weights 3,1 --entropy 1e-3
has "weights are divided by their sum" "$err" "weights 0.7500,0.2500: 73 1-grams, "
hasnt "weights for both: no note" "$err" "nearly all the weight"
run ngram mix "$tmp/one.arpa" "$tmp/two.lm" --text "$tmp/1" -o "$tmp/mix.arpa"
has "the text of one model: a note" "$err" "note: $tmp/one.arpa gets nearly all the weight"
refused "mix without a text" 2 "name one with --text, or give --weights" ngram mix "$a" "$a"
refused "both" 2 "leave out one" ngram mix --weights 1,1 --text "$heldout" "$a" "$a"
for bad in 1 1,-1 nan,1; do
    refused "--weights $bad" 2 "is auto or two numbers" ngram mix --weights $bad "$a" "$a"
done
refused "one model" 2 "the second MODEL is missing" ngram mix --text "$heldout" "$a"
refused "three models" 2 "unexpected argument" ngram mix --weights 1,1 "$a" "$a" "$a"
printf 'zz yy\n' > "$tmp/other"
"$LINNET" ngram count -q --no-unknown "$tmp/other" -o "$tmp/no.arpa"
sed '/<\/s>/d; s/^ngram 1=.*/ngram 1=3/; s/^ngram 2=.*/ngram 2=2/; s/^ngram 3=.*/ngram 3=1/' "$tmp/no.arpa" > "$tmp/noend.arpa"
printf 'unheard\n' > "$tmp/unheard"
refused "a text of other words" 1 "neither model has a word of it" ngram mix "$tmp/noend.arpa" "$tmp/noend.arpa" --text "$tmp/unheard"
sed 's/<unk>/<UNK>/' "$a" > "$tmp/upper.arpa"
refused "another <unk>" 1 "unknown words <unk> and the other <UNK>" ngram mix --weights 1,1 "$a" "$tmp/upper.arpa"

# ---- generate --------------------------------------------------------------------------------------------------------------------

exits "generate" 0 run ngram generate --count 200 --seed 5 "$a" -o "$tmp/drawn"
is "as many lines as requested" 200 "$(grep -c . "$tmp/drawn")"
gives "the same seed, the same sentences" "$(cat "$tmp/drawn")" ngram generate --count 200 --seed 5 "$a"
run ngram generate --count 200 --seed 6 "$a"
[ "$out" != "$(cat "$tmp/drawn")" ] && pass || fail "another seed, others"
shows "only words of the model" " 0 OOVs" ngram perplexity "$a" "$tmp/drawn"
has "all of them possible" "$out" "0 zeroprobs"
refused "no sentences" 2 "count" ngram generate --count 0 "$a"
printf '\\data\\\nngram 1=2\n\n\\1-grams:\n-99\t<s>\n-1\t</s>\n\n\\end\\\n' > "$tmp/wordless.arpa"
refused "empty sentences only" 1 "sentences in turn have no word" ngram generate --count 1 "$tmp/wordless.arpa"

# ---- bad input -------------------------------------------------------------------------------------------------------------------

# Bad lines are reported and left out; the model is that of the other lines.
printf 'a b\na <s> b\nb a\n' > "$tmp/bad"
exits "bad lines" 1 run ngram count "$tmp/bad" -o "$tmp/b"
has "<s>" "$err" "$tmp/bad:2: <s> marks an end of a sentence and cannot be in one; left out"
ok "the rest is counted" cmp "$tmp/b" "$tmp/c"
exits "perplexity of bad lines" 1 run ngram perplexity "$a" "$tmp/bad" "$heldout"
has "names them too" "$err" "$tmp/bad:2: <s>"
has "and does the others" "$out" "2 files: 14 sentences"
exits "a missing text" 1 run ngram count -q "$tmp/nowhere" "$tmp/unix" -o "$tmp/b"
has "is named" "$err" "cannot open $tmp/nowhere"
ok "and the others are counted" cmp "$tmp/b" "$tmp/c"
: > "$tmp/empty"
refused "empty text" 1 "the text has no word" ngram count "$tmp/empty"
refused "perplexity of nothing" 1 "no sentence" ngram perplexity "$a" "$tmp/empty"
refused "the only text is missing" 1 "cannot open" ngram count "$tmp/nowhere"
refused "a folder" 1 "it is a directory" ngram count "$tmp"
printf 'w01\nx\001\n' > "$tmp/vocabulary"
: > "$tmp/none"
refused "an empty vocabulary" 1 "none: the vocabulary has no word" ngram count --vocabulary "$tmp/none" "$text"
refused "a bad vocabulary" 1 "vocabulary:2: 'x?' is not a word" ngram count --vocabulary "$tmp/vocabulary" "$text"
printf 'a b\na <unk>\n' > "$tmp/bad"
run ngram count -q --no-unknown "$tmp/bad"
has "<unk> in a model without" "$err" "bad:2: the word '<unk>' is not in the vocabulary, and the model has no <unk>; left out"
printf 'no name\n' > "$tmp/bad"
refused "TRN without a name" 1 "no (name) at the end" ngram count --ids last "$tmp/bad"
refused "no verb" 2 "count|prune" ngram
refused "another verb" 2 "'counts' is none of count, prune, mix, pack, arpa, perplexity, info, generate" ngram counts "$text"
refused "an option of another verb" 2 "--order does not apply to perplexity" ngram perplexity --order 2 "$a" "$heldout"
refused "no model" 2 "MODEL is missing" ngram perplexity
refused "two models" 2 "unexpected argument" ngram info "$a" "$a"
refused "packed to standard output" 2 "needs --output" ngram pack "$a"
refused "prune without a threshold" 2 "prune needs --entropy" ngram prune "$a"
run ngram pack "$a" -o "$tmp/own.lm"
sum=$(cksum < "$tmp/own.lm")
for verb in pack arpa generate info; do
    refused "$verb: the model as its own output" 2 "is an input and would be overwritten" ngram $verb "$tmp/own.lm" -o "$tmp/own.lm"
done
is "the file is unchanged" "$sum" "$(cksum < "$tmp/own.lm")"
refused "text as a model" 1 "ngram_text.txt" ngram info "$text"
refused "a missing folder" 1 "cannot write" ngram count -q "$text" -o "$tmp/nowhere/x.arpa"
if [ -w /dev/full ]; then
    "$LINNET" ngram count -q "$text" > /dev/full 2> "$tmp/.err"
    is "a full disk" 1 $?
    has "is reported" "$(cat "$tmp/.err")" "cannot write"
fi
finish
