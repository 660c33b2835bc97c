# linnet decode: phonemes with known times in every format, one stream or a folder, beams, language models of phonemes, phrases,
# alternatives; wrong matrices and options.
. tests/app/common.sh

d() { "$LINNET" decode -q "$@"; }

# ---- known times, in every format ------------------------------------------------------------------------------------------------

# 10 rows of silence, HH 2, AH 1, blank 1, L 3, OW 4, 5 of silence: 26 rows of 30 ms.
echo "- 10 HH 2 AH 1 - 1 L 3 OW 4 - 5" | "$ROWS" "$tmp/hello.npy"
is "text" "HH AH L OW" "$(d "$tmp/hello.npy")"
is "text with ids" "hello HH AH L OW" "$(d --ids "$tmp/hello.npy")"
is "IPA" "h ʌ l oʊ" "$(d --ipa "$tmp/hello.npy")"
is "ctm" "hello 1 0.300 0.060 HH 0.9000
hello 1 0.360 0.030 AH 0.9000
hello 1 0.420 0.090 L 0.9000
hello 1 0.510 0.120 OW 0.9000" "$(d -f ctm "$tmp/hello.npy")"
is "ctm at 20 ms" "hello 1 0.200 0.040 HH 0.9000" "$(d -f ctm --row-ms 20 "$tmp/hello.npy" | head -n 1)"
is "with an emission delay, but not before 0" "hello 1 0.000 0.050 HH 0.9000
hello 1 0.050 0.030 AH 0.9000
hello 1 0.110 0.090 L 0.9000
hello 1 0.200 0.120 OW 0.9000" "$(d -f ctm --delay-ms 310 "$tmp/hello.npy")"
is "trn" "HH AH L OW (hello)" "$(d -f trn "$tmp/hello.npy")"
shows "json: the whole output" '{"id":"hello","channel":1,"seconds":0.780,' decode -q -f json "$tmp/hello.npy"
has "json: the last" "$out" '{"phone":"OW","start":0.510,"end":0.630,"confidence":0.9000}'

# The extension of --output chooses the format. --output-dir writes a file for each input and format, the same as with one format.
d -o "$tmp/x.srt" "$tmp/hello.npy"
has "-o x.srt" "$(cat "$tmp/x.srt")" "-->"
echo "- 3 Z 2 - 2 UW 3 - 1" | "$ROWS" "$tmp/zoo.npy"
all=text,json,ctm,trn,srt,vtt,textgrid,csv,audacity,nemo,rttm
d --ids -f $all --output-dir "$tmp/all" "$tmp/hello.npy" "$tmp/zoo.npy"
is "two files in eleven formats" 22 "$(ls "$tmp/all" | wc -l | tr -d ' ')"
for f in $(echo $all | tr , ' '); do
    d --ids -f $f --output-dir "$tmp/$f" "$tmp/zoo.npy"
    ok "$f: the same alone and with other formats" cmp "$tmp/$f"/* "$tmp/all/$(basename "$tmp/$f"/*)"
done
is "in one stream" "hello HH AH L OW
zoo Z UW" "$(d "$tmp/hello.npy" "$tmp/zoo.npy")"
is "CSV has one header" 1 "$(d -f csv "$tmp/hello.npy" "$tmp/zoo.npy" | grep -c '^id,')"
refused "standard input" 2 "a MATRIX must be a file, not standard input (-)" decode -
refused "a sound" 2 "talk.wav is a sound; linnet transcribe reads sound" decode talk.wav
refused "several formats in one stream" 2 "several formats (text,json) need --output-dir" decode -f text,json "$tmp/zoo.npy"
refused "two recordings in one SRT" 1 "a file of srt holds one recording: use --output-dir" \
    decode -f srt "$tmp/hello.npy" "$tmp/zoo.npy"
refused "two recordings in one TextGrid" 1 "use --output-dir" decode -o "$tmp/x.TextGrid" "$tmp/hello.npy" "$tmp/zoo.npy"
refused "a format that does not exist" 2 "--format must be one of text|json|ctm|trn|srt|vtt|textgrid|csv|audacity|nemo|rttm, not 'xml'" \
    decode -f json,xml "$tmp/zoo.npy"
refused "an empty format" 2 "not ''" decode -f json, "$tmp/zoo.npy"
refused "words that were not looked for" 2 "--unit words needs --words" decode --unit words "$tmp/zoo.npy"

# The same order for any number of threads.
for i in 1 2 3 4 5 6 7 8 9; do cp "$tmp/hello.npy" "$tmp/n$i.npy"; done
is "a list, in order" "n1 n2 n3 n4 n5 n6 n7 n8 n9" "$(d -j 3 "$tmp"/n?.npy | cut -d' ' -f1 | xargs)"

# ---- beams -----------------------------------------------------------------------------------------------------------------------

for b in 1 4 16; do is "a beam of $b where all is clear" "$(d -f ctm "$tmp/hello.npy")" "$(d -b $b -f ctm "$tmp/hello.npy")"; done
is "options of a beam" "HH AH L OW" "$(d -b 8 --tune beam-score=20,beam-labels=5,skip-blank=0.8 "$tmp/hello.npy")"

# B or P: the matrix prefers P; a language model without P EH prefers B.
echo "- 3 P:0.5+B:0.45 1 - 2 EH 3 - 2 D 2 - 2" | "$ROWS" "$tmp/bed.npy"
cat > "$tmp/phones.arpa" << 'END'
\data\
ngram 1=6
ngram 2=4

\1-grams:
-99 <s> 0
-1 </s>
-1 B 0
-1 P -2
-1 EH 0
-1 D 0

\2-grams:
-0.1 <s> B
-0.1 B EH
-0.1 EH D
-0.1 D </s>

\end\
END
is "without a language model" "P EH D" "$(d -b 8 "$tmp/bed.npy")"
is "with one" "B EH D" "$(d --lm "$tmp/phones.arpa" "$tmp/bed.npy" 2> /dev/null)"
is "with one of no weight" "P EH D" "$(d --lm "$tmp/phones.arpa" --tune lm-weight=0 "$tmp/bed.npy" 2> /dev/null)"
gzip -c "$tmp/phones.arpa" > "$tmp/phones.arpa.gz"
is "gzip'd" "B EH D" "$(d --lm "$tmp/phones.arpa.gz" "$tmp/bed.npy" 2> /dev/null)"
tr 'A-Z' 'a-z' < "$tmp/phones.arpa" > "$tmp/small.arpa"
is "in small letters" "B EH D" "$(d --lm "$tmp/small.arpa" "$tmp/bed.npy" 2> /dev/null)"
run decode -q --lm "$tmp/phones.arpa" "$tmp/bed.npy"
has "phones that it lacks are reported" "$err" "phones.arpa lacks 35 of the 39 phones, such as AA"
if [ -f share/linnet/en/phones.lm ]; then
    cp share/linnet/en/phones.lm "$tmp/here.lm"
    is "a model that is installed, by its name" "$(d --lm "$tmp/here.lm" -f json "$tmp/bed.npy")" \
        "$(d --lm phones.lm -f json "$tmp/bed.npy")"
fi
if [ -f share/linnet/en/phones.lm ]; then
    printf 'ah AH\nah(2) AA\nhello HH AH L OW\n' > "$tmp/ah.dict"
    refused "a model of phones for words" 1 "phones.lm is a model of phones; omit --words" \
        decode --words --lm phones.lm -l "$tmp/ah.dict" "$tmp/bed.npy"
fi
shows "alternatives" '"alternatives":[{"phones":[{"phone":"P"' decode -q -b 8 -n 3 -f json "$tmp/bed.npy"
has "the second" "$out" '{"phones":[{"phone":"B"'
is "three" 3 "$(printf "%s" "$out" | grep -o "{\"phones\":" | wc -l | tr -d " ")"

# ---- phrases ---------------------------------------------------------------------------------------------------------------------

printf 'bed B EH D\nhead HH EH D\n' > "$tmp/dict"
is "a phrase" "B EH D" "$(d --phrase bed -l "$tmp/dict" "$tmp/bed.npy")"
is "of no bonus" "P EH D" "$(d --phrase bed -l "$tmp/dict" --tune context-bonus=0 "$tmp/bed.npy")"
printf '# what is likely here\n\nhead\nbed\t5.5\n' > "$tmp/context"
is "a list of them" "B EH D" "$(d --context "$tmp/context" -l "$tmp/dict" "$tmp/bed.npy")"
printf 'bed\t0.001\n' > "$tmp/context"
is "whose own bonus counts" "P EH D" "$(d --context "$tmp/context" -l "$tmp/dict" "$tmp/bed.npy")"
is "LINNET_LEXICON" "B EH D" "$(LINNET_LEXICON=$tmp/dict d --phrase bed "$tmp/bed.npy")"
printf '\n# nothing\n' > "$tmp/context"
refused "an empty list" 1 "context has no phrase; write one per line" decode --context "$tmp/context" -l "$tmp/dict" "$tmp/bed.npy"
printf 'head\nbed\tmuch\n' > "$tmp/context"
refused "a bonus that is none" 1 "context:2: 'much' after the tab is not a bonus between -100 and 100" \
    decode --context "$tmp/context" -l "$tmp/dict" "$tmp/bed.npy"
refused "a phrase of digits" 1 "the phrase '911'" decode --phrase 911 -l "$tmp/dict" "$tmp/bed.npy"
printf '# names\n\nhead\nGr\303\266\303\237e\t2\n' > "$tmp/context"
refused "a phrase of the list that is none: where it stands" 1 "context:4: the phrase 'Gr" \
    decode --context "$tmp/context" -l "$tmp/dict" "$tmp/bed.npy"
printf '\t2\n' > "$tmp/context"
refused "a bonus of nothing" 1 "context:1: the phrase '': it has no word" \
    decode --context "$tmp/context" -l "$tmp/dict" "$tmp/bed.npy"
printf '# %064d\nhead\0bed\n' 0 > "$tmp/context"
refused "a phrase with a NUL byte" 1 "context:2: a line with a NUL byte" decode --context "$tmp/context" -l "$tmp/dict" "$tmp/bed.npy"
refused "no such list" 1 "cannot open $tmp/none: No such file" decode --context "$tmp/none" -l "$tmp/dict" "$tmp/bed.npy"

# ---- outputs of another model ----------------------------------------------------------------------------------------------------

echo "- 2 AA 2 - 1 AE 3" | "$ROWS" "$tmp/other.npy" V=4
refused "columns without names" 1 "the matrix has 4 columns, but there are 40 names" decode "$tmp/other.npy"
is "--phones" "one two" "$(d --phones '<blank> one two three' "$tmp/other.npy")"
printf '<blank> 0\none 1\ntwo 2\nthree 3\n' > "$tmp/names"
is "--phones of a file" "one two" "$(d --phones "$tmp/names" "$tmp/other.npy")"
refused "a list without the blank" 1 "$tmp/list: " decode --phones "$tmp/list" "$tmp/other.npy"

# ---- bad matrices: reported with file and row, the others are done ---------------------------------------------------------------

ipa='<blank> ɑ æ ʌ ɔ aʊ aɪ b tʃ d ð ɛ ɝ eɪ f ɡ h ɪ i dʒ k l m n ŋ oʊ ɔɪ p ɹ s ʃ t θ ʊ u v w j z ʒ'
gives "a set named in the IPA" "h ʌ l oʊ" decode -q --phones "$ipa" "$tmp/hello.npy"
printf 'hello HH AH L OW\n' > "$tmp/hello.dict"
run decode -q --phones "$ipa" --words --no-readable --no-lm -l "$tmp/hello.dict" "$tmp/hello.npy"
is "a set named in the IPA finds the words of a lexicon" hello "$out"
echo "- 4 nan 1 - 3" | "$ROWS" "$tmp/nan.npy"
echo "- 4 half 1 - 3" | "$ROWS" "$tmp/half.npy"
echo "logits 4" | "$ROWS" "$tmp/logits.npy"
head -c 400 "$tmp/hello.npy" > "$tmp/cut.npy"
echo "this is no matrix" > "$tmp/text.npy"
: > "$tmp/void.npy"
: | "$ROWS" "$tmp/empty.npy"
run decode "$tmp/hello.npy" "$tmp/nan.npy" "$tmp/half.npy" "$tmp/logits.npy" "$tmp/cut.npy" "$tmp/text.npy" "$tmp/void.npy" \
    "$tmp/none.npy" "$tmp/empty.npy" "$tmp/zoo.npy"
is "bad ones among good ones: status" 1 "$status"
is "bad ones among good ones: the good are done" "hello HH AH L OW
empty
zoo Z UW" "$out"
has "NaN" "$err" "$tmp/nan.npy: row 4: column 39 is not a number (NaN)"
has "a sum of a half" "$err" "$tmp/half.npy: row 4: exp of its numbers sums to 0.5, not 1"
has "logits" "$err" "$tmp/logits.npy: row 0: exp of its numbers sums to 20.0855, not 1; they are not log-probabilities"
for f in cut text void none; do has "$f" "$err" "$tmp/$f.npy"; done
has "counted" "$err" "3 files, 7 failed"
exits "--unchecked" 0 run decode -q --unchecked "$tmp/half.npy"
printf 'he{llo HH AH L OW\nz}oo Z UW\n' > "$tmp/signs"
run decode -f trn --words --no-lm -l "$tmp/signs" "$tmp/hello.npy" "$tmp/zoo.npy"
has "each result that a format cannot hold is reported" "$err" "0 files, 2 failed"

# ---- options that do not go together ---------------------------------------------------------------------------------------------

m=$tmp/zoo.npy
refused "nothing to do" 2 "no MATRIX is given" decode
refused "output and folder" 2 "exclude each other" decode -o "$tmp/a" --output-dir "$tmp/b" "$m"
refused "a lexicon for nothing" 2 "--lexicon needs --words" decode -l "$tmp/dict" "$m"
refused "rules for nothing" 2 "--g2p needs --words" decode --g2p "$tmp/dict" "$m"
refused "readable phonemes" 2 "--readable needs --words" decode --readable "$m"
refused "confidences of no words" 2 "--min-confidence needs --words" decode --min-confidence 0.5 "$m"
refused "unknown words without words" 2 "--tune unknown needs --words" decode --tune unknown=-3 "$m"
refused "no unknown words without words" 2 "--no-unknown needs --words" decode --no-unknown "$m"
refused "a beam of 0 with a model" 2 "--beam 0 excludes" decode -b 0 --lm "$tmp/phones.arpa" "$m"
refused "a score without a beam" 2 "--tune beam-score needs --beam or --words" decode --tune beam-score=9 "$m"
refused "a bonus without a beam" 2 "--tune bonus needs --beam or --words" decode --tune bonus=1 "$m"
refused "a weight of nothing" 2 "--tune lm-weight needs --lm" decode -b 3 --tune lm-weight=2 "$m"
refused "a bonus of no phrase" 2 "--tune context-bonus needs --context or --phrase" decode --tune context-bonus=2 "$m"
refused "a bonus that no phrase may have" 2 "context-bonus" decode --phrase bed --tune context-bonus=101 "$m"
refused "more alternatives than hypotheses" 2 "--n-best 9 needs a --beam of 9 or more" decode -b 3 -n 9 "$m"
refused "alternatives in a format that has none" 2 "--n-best needs --format json" decode -n 3 "$m"
refused "alternatives in formats that have none" 2 "--n-best needs --format json" \
    decode -n 3 -f srt,csv --output-dir "$tmp/b" "$m"
refused "a beam too wide" 2 "--beam must be at most 1024 without --words" decode -b 2000 "$m"
refused "no such model" 1 "cannot open $tmp/none.arpa" decode --lm "$tmp/none.arpa" "$m"
sed 's/^ngram 2=4/ngram 2=9/' "$tmp/phones.arpa" > "$tmp/bad.arpa"
refused "a malformed model" 1 "$tmp/bad.arpa:" decode --lm "$tmp/bad.arpa" "$m"
sed 's/\(\<[BPD]\>\|EH\)/x\1/g' "$tmp/phones.arpa" > "$tmp/strange.arpa"
refused "a model of other words" 1 "lacks 39 of the 39 phones, such as AA; if it is a model of words, add --words" \
    decode --lm "$tmp/strange.arpa" "$m"
finish
