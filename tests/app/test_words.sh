# linnet transcribe and decode with words: lexicon and language model, words outside them, formats, phrases, alternatives; streams
# that are cut, saved, resumed and shown while they run, with beams and with words; wrong files.
. tests/app/common.sh

use_model
d() { "$LINNET" decode -q "$@" 2> "$tmp/.err"; }

cat > "$tmp/words.dict" << 'END'
hello HH AH L OW
hello(2) HH EH L OW
hollow HH AA L OW
world W ER L D
two T UW
too T UW
END
cat > "$tmp/words.arpa" << 'END'
\data\
ngram 1=7
ngram 2=6

\1-grams:
-99 <s> -0.3
-1 </s>
-1 hello -0.3
-1.5 hollow -0.3
-1 world -0.3
-1 two -0.3
-1.1 too -0.3

\2-grams:
-0.5 <s> hello
-0.2 hello world
-0.3 world </s>
-0.2 two hello
-2 two two
-0.2 world too

\end\
END
lm="--words --no-readable --tune settle=0 -l $tmp/words.dict --lm $tmp/words.arpa" # exact times: see docs/decoding.md
echo "- 10 HH 2 AH 1 L 2 OW 3 - 2 W 2 ER 3 L 1 D 2 - 5" | "$ROWS" "$tmp/hw.npy"
echo "- 3 T 2 UW 2 - 2 HH 2 EH 2 L 2 OW 2 - 3" | "$ROWS" "$tmp/th.npy"

# ---- a grammar -------------------------------------------------------------------------------------------------------------------

printf '# greetings\n(hello | two) $whom\n$whom = world | you\nhello $number 1..3\n' > "$tmp/grammar"
echo 'hello $whom' > "$tmp/bad-grammar"
g() { d -l "$tmp/words.dict" --no-readable --grammar "$@"; }
is "a sentence" "hello world" "$(g "$tmp/grammar" "$tmp/hw.npy")"
is "no sentence" "" "$(g "$tmp/grammar" "$tmp/th.npy")"
is "a number of the language, the homophone of a word" "hello two" "$(echo "- 3 HH 2 EH 2 L 2 OW 2 - 2 T 2 UW 2 - 3" | "$ROWS" "$tmp/ht.npy" &&
    g "$tmp/grammar" "$tmp/ht.npy")"
printf 'two [unk]\n' > "$tmp/other"
is "any other word is its phonemes" "two [hh_eh_l_ow]" "$(g "$tmp/other" "$tmp/th.npy")"
has "the confidence of the sentence" "$(g "$tmp/grammar" -f json "$tmp/hw.npy" | grep -o '"confidence":[0-9.]*' | tail -n 1)" 0.99
is "a word of the rules of letters" 0 "$(printf 'zorblatt\n' > "$tmp/made"; g "$tmp/made" -l "$tmp/words.dict" "$tmp/hw.npy" > /dev/null; echo $?)"
refused "no rule of the name" 1 "grammar:1: \$whom is not defined" decode -l "$tmp/words.dict" --grammar "$tmp/bad-grammar" "$tmp/hw.npy"
printf 'hello 你好\n' > "$tmp/bad-grammar"
refused "a word that nothing pronounces" 1 "the grammar's word '你好'" decode -l "$tmp/words.dict" --grammar "$tmp/bad-grammar" "$tmp/hw.npy"
refused "no words by a grammar" 2 "--grammar and --no-words exclude each other" decode --no-words --grammar "$tmp/grammar" "$tmp/hw.npy"
refused "phrases beside a grammar" 2 "--grammar excludes --context, --phrase" decode -l "$tmp/words.dict" --grammar "$tmp/grammar" --phrase hello "$tmp/hw.npy"
refused "no unknown words beside a grammar" 2 "--no-unknown needs a search without --grammar" decode --no-unknown --grammar "$tmp/grammar" "$tmp/hw.npy"

# ---- words -----------------------------------------------------------------------------------------------------------------------

is "words" "hello world" "$(d $lm "$tmp/hw.npy")"
is "no message" "" "$(cat "$tmp/.err")"
is "homophones by the language model, a second pronunciation" "two hello" "$(d $lm "$tmp/th.npy")"
is "in one stream" "hw hello world
th two hello" "$(d $lm "$tmp/hw.npy" "$tmp/th.npy")"
# The end of "world" is told with the word, which is settled in its first row of D: all other hypotheses are too bad.
is "their times" "hw 1 0.300 0.240 hello
hw 1 0.600 0.210 world" "$(d $lm -f ctm "$tmp/hw.npy" | cut -d' ' -f1-5)"
is "the phones, if requested" "HH AH L OW W ER L D" "$(d $lm --unit phones "$tmp/hw.npy")"
# Keywords need neither a search for words nor a language model.
printf '# said to the program\nhello world=0.3\ntwo hello\n' > "$tmp/keywords"
keywords() { d -l "$tmp/words.dict" -f json --keywords "$tmp/keywords" "$@" | grep -o '"keywords".*}]'; }
is "a keyword" '"keywords":[{"keyword":"hello world","start":0.300,"end":0.810,"confidence":1.0000}]' "$(keywords "$tmp/hw.npy")"
is "by its other pronunciation" '"keywords":[{"keyword":"two hello","start":0.090,"end":0.480,"confidence":1.0000}]' \
    "$(keywords "$tmp/th.npy")"
is "beside words" '"text":"hello world"' \
    "$(d $lm -f json --keyword "hello world" "$tmp/hw.npy" | grep '"keyword":"hello world"' | grep -o '"text":"[a-z ]*"' | head -1)"
refused "keywords in text" 2 "need --format json" decode -l "$tmp/words.dict" --keyword "hello world" "$tmp/hw.npy"
printf 'hello world =0.3  \r\n' > "$tmp/keywords"
is "blanks around a keyword" '"keyword":"hello world"' "$(keywords "$tmp/hw.npy" | grep -o '"keyword":"[^"]*"')"
is "no rules for numbers are read" '"keyword":"hello world"' \
    "$(export LINNET_NUMBERS=none.txt; keywords "$tmp/hw.npy" | grep -o '"keyword":"[^"]*"')"
# Letters and marks apart, as macOS writes them, and UTF-16.
printf 'grün W ER1 L D\n' > "$tmp/green.dict"
printf 'gru\314\210n' > "$tmp/green"
printf '\377\376g\0r\0\374\0n\0' > "$tmp/green16"
for k in "--keyword $(cat "$tmp/green")" "--keywords $tmp/green" "--keywords $tmp/green16"; do
    has "a letter and its mark: ${k%% *}" "$(d -l "$tmp/green.dict" -f json $k "$tmp/hw.npy")" '"keyword":"grün","start":0.600'
done
refused "more than a threshold" 1 "its threshold must be" decode -l "$tmp/words.dict" -f json --keyword "hello=0.5 world" "$tmp/hw.npy"
printf 'hello\nworld=7\n' > "$tmp/keywords"
refused "a threshold that is none" 1 "keywords:2: the keyword 'world=7': its threshold" \
    decode -l "$tmp/words.dict" -f json --keywords "$tmp/keywords" "$tmp/hw.npy"
# A packed lexicon: the same words, until the lexicon changes; a damaged one is reported, and the lexicon read.
cp "$tmp/words.dict" "$tmp/packed.dict"
p="--words --no-readable -l $tmp/packed.dict --lm $tmp/words.arpa"
warns "linnet lexicon says what it wrote" "packed.dict.tree: 5 words" lexicon --lm "$tmp/words.arpa" "$tmp/packed.dict"
is "a packed lexicon" "hello world" "$(d $p "$tmp/hw.npy")"
flip "$tmp/packed.dict.tree" 600 0
is "a damaged one" "hello world" "$("$LINNET" decode $p "$tmp/hw.npy" 2> "$tmp/.err")"
has "is reported" "$(cat "$tmp/.err")" "packed.dict.tree is damaged"
run lexicon -q --lm "$tmp/words.arpa" "$tmp/packed.dict"
sed 's/^world W ER/world V ER/' "$tmp/words.dict" > "$tmp/packed.dict"
is "a lexicon that has changed since" "$(d --words --no-readable -l "$tmp/packed.dict" --lm "$tmp/words.arpa" -f json "$tmp/hw.npy" | sed 's/.*"text":"\([^"]*\)".*/\1/')" \
    "$(rm "$tmp/packed.dict.tree"; d $p -f json "$tmp/hw.npy" | sed 's/.*"text":"\([^"]*\)".*/\1/')"
echo "bad" >> "$tmp/packed.dict"
refused "a lexicon with a bad line is not packed" 1 "packed.dict cannot be packed: it has lines that are left out" \
    lexicon -q --lm "$tmp/words.arpa" "$tmp/packed.dict"
# Probabilities of pronunciations count as the language model does: they decide between homophones; a packed lexicon has them.
# "two" and "too" are 0.23 apart in the natural logarithm.
sed 's/^too /too 1 /; s/^two /two 0.5 /' "$tmp/words.dict" > "$tmp/prob.dict"
p="--words --no-readable --tune settle=0 -l $tmp/prob.dict --lm $tmp/words.arpa"
# Six words with two likely pronunciations have 64 of the best text; the alternatives are other texts, each once.
printf 'one W AH\none(2) W AA\ntwo W IY\nthree W OW\n' > "$tmp/ways.dict"
w='W 2 AH:0.5+AA:0.45 2 - 3'
echo "- 3 $w $w $w $w $w $w" | "$ROWS" "$tmp/ways.npy"
is "alternatives of words with several pronunciations" "10 10" "$(d --words --no-lm --no-readable -l "$tmp/ways.dict" -n 10 -f json \
    "$tmp/ways.npy" | sed 's/.*"alternatives"//' | grep -o '"text":"[a-z ]*"' | sort | uniq -c | awk '{ n += $1; m++ } END { print n, m }')"
echo "- 3 T 2 UW 2 - 9" | "$ROWS" "$tmp/two.npy"
is "homophones without probabilities" "two" "$(d $lm "$tmp/two.npy")"
is "homophones with probabilities" "too" "$(d $p "$tmp/two.npy")"
is "their logarithm times lm-weight is in the score" "0.589" "$(d -n 2 $p -f json "$tmp/two.npy" | tr ',{' '\n\n' | awk -F: '
    /"text"/ { word = $2 } /"score"/ { score[word] = $2 } /"language"/ { language[word] = $2 }
    END { t = "\"two\""; o = "\"too\""; printf "%.3f", (score[o] - score[t]) - 0.85 * (language[o] - language[t]) }')"
gzip -c "$tmp/words.dict" > "$tmp/words.dict.gz"
gzip -c "$tmp/words.arpa" > "$tmp/words.arpa.gz"
is "both gzip'd" "hello world" "$(d --words --no-readable -l "$tmp/words.dict.gz" --lm "$tmp/words.arpa.gz" "$tmp/hw.npy")"
is "from the environment" "hello world" "$(LINNET_LEXICON=$tmp/words.dict LINNET_LM=$tmp/words.arpa d --words --no-readable "$tmp/hw.npy")"
is "a wide beam" "hello world" "$(d $lm -b 4000 --tune beam-score=0 "$tmp/hw.npy")"
shows "alternatives: the best" '"alternatives":[{"phones":[{"phone":"T"' decode -q $lm -n 20 -f json "$tmp/th.npy"
has "alternatives: another word that sounds so" "$out" '"text":"too hello"'

# A word outside the lexicon: its phonemes, marked; with --no-unknown only words of the lexicon.
echo "- 3 HH 2 AH 2 L 2 OW 2 - 3 Z 2 IY 2 B 2 AH 2 - 4" | "$ROWS" "$tmp/zebra.npy"
is "a word outside the lexicon" "hello [z_iy_b_ah]" "$(d $lm --tune unknown=-6 "$tmp/zebra.npy")"
hasnt "--no-unknown" "$(d $lm --no-unknown "$tmp/zebra.npy")" "["
shows "json says so" '"known":false' decode -q $lm --tune unknown=-6 -f json "$tmp/zebra.npy"

# Phrases: words of the lexicon, and new words given with their pronunciation.
echo "- 3 HH 2 AH:0.55+AA:0.4 2 L 2 OW 2 - 3" | "$ROWS" "$tmp/doubt.npy"
is "in doubt" "hello" "$(d $lm "$tmp/doubt.npy")"
is "a phrase" "hollow" "$(d $lm --phrase hollow --tune context-bonus=6 "$tmp/doubt.npy")"
printf 'hollow\t6\nhello world\t1\n' > "$tmp/context"
is "a list of them" "hollow" "$(d $lm --context "$tmp/context" "$tmp/doubt.npy")"
is "a phrase with accents and punctuation" "hollow" "$(d $lm --phrase "Hóllow," --tune context-bonus=6 "$tmp/doubt.npy")"

# ---- what is missing or wrong ----------------------------------------------------------------------------------------------------

exits "without a language model" 0 run decode -q --words --no-readable --no-lm -l "$tmp/words.dict" "$tmp/hw.npy"
is "without a language model" "hello world" "$out"
is "without a language model: status" "" "$err"
if [ ! -e share/linnet/en/words.lm ]; then
    run decode -q --words --no-readable -l "$tmp/words.dict" "$tmp/hw.npy"
    has "none is installed: reported" "$err" "words without a language model are poor"
    is "once" 1 "$(printf '%s\n' "$err" | wc -l | tr -d ' ')"
fi
refused "a model and none" 2 "--lm and --no-lm exclude each other" decode -q $lm --no-lm "$tmp/hw.npy"
refused "none for phonemes" 2 "--no-lm needs --words" decode -q --no-lm "$tmp/hw.npy"
refused "a weight of none" 2 "--tune lm-weight needs --lm" decode -q --words --no-lm -l "$tmp/words.dict" --tune lm-weight=1 "$tmp/hw.npy"
refused "no such lexicon" 1 "cannot open $tmp/none.dict" decode -q --words -l "$tmp/none.dict" "$tmp/hw.npy"
if [ ! -e /usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict ] && [ ! -e share/linnet/en/words.dict.gz ]; then
    refused "no lexicon at all" 1 "--words needs a lexicon, and none is installed; name one with --lexicon" \
        decode -q --words "$tmp/hw.npy"
fi
{ cat "$tmp/words.dict"; echo "void"; echo "odd QQ"; } > "$tmp/bad.dict"
run decode -q --words --no-readable -l "$tmp/bad.dict" --lm "$tmp/words.arpa" "$tmp/hw.npy"
is "bad lines of a lexicon: the others are used" "hello world" "$out"
has "bad lines of a lexicon: reported" "$err" "bad.dict:7: "
has "bad lines of a lexicon: counted" "$err" "2 such lines left out"
printf 'odd QQ\nvoid\n' > "$tmp/none.dict"
refused "no good line" 1 "none.dict" decode -q --words -l "$tmp/none.dict" --lm "$tmp/words.arpa" "$tmp/hw.npy"
printf 'one W AH N\n' > "$tmp/one.dict"
refused "no word of the lexicon in the model" 1 "$tmp/words.arpa has no word of $tmp/one.dict" \
    decode -q --words -l "$tmp/one.dict" --lm "$tmp/words.arpa" "$tmp/hw.npy"
{ cat "$tmp/words.dict"; echo "one W AH N"; } > "$tmp/more.dict"
run decode --words --no-readable -l "$tmp/more.dict" --lm "$tmp/words.arpa" "$tmp/hw.npy"
has "words that the model lacks are reported" "$err" "1 of the 6 words of $tmp/more.dict are not in the language model, such as one"
echo "- 3 W 2 AH 2 N 2 - 2" | "$ROWS" "$tmp/one.npy"
is "and let in" "one" "$(d --words --no-readable -l "$tmp/more.dict" --lm "$tmp/words.arpa" --tune all-words "$tmp/one.npy")"
printf 'One W AH N\nworlds\n' > "$tmp/names.txt"
is "words added to the lexicon are let in" "one" \
    "$(d --words --no-readable -l "$tmp/words.dict" --add-lexicon "$tmp/names.txt" --lm "$tmp/words.arpa" "$tmp/one.npy")"
is "the others stay" "hello world" \
    "$(d --words --no-readable -l "$tmp/words.dict" --add-lexicon "$tmp/names.txt" --lm "$tmp/words.arpa" "$tmp/hw.npy")"
refused "added words without words" 2 "--add-lexicon needs --words" decode -q --add-lexicon "$tmp/names.txt" "$tmp/hw.npy"
refused "no such file of words" 1 "cannot open $tmp/nowhere" \
    decode -q --words -l "$tmp/words.dict" --add-lexicon "$tmp/nowhere" --lm "$tmp/words.arpa" "$tmp/hw.npy"
printf 'one W AH N\n42\n' > "$tmp/bad.txt"
run decode -q --words --no-readable -l "$tmp/words.dict" --add-lexicon "$tmp/bad.txt" --lm "$tmp/words.arpa" "$tmp/one.npy"
has "a word that nothing pronounces is reported" "$err" "$tmp/bad.txt:2: '42' has no phones; 1 such line left out"
is "the others are added" "one" "$out"
is "phonemize reads them" "W AH N Z IY B R AH" \
    "$(printf 'one W AH N\nzebra Z IY B R AH\n' > "$tmp/z.txt"; echo "one zebra" | "$LINNET" phonemize -q -l "$tmp/words.dict" --add-lexicon "$tmp/z.txt")"
refused "--tune unknown and --no-unknown" 2 "exclude each other" decode -q $lm --tune unknown=-3 --no-unknown "$tmp/hw.npy"
refused "--words with --beam 0" 2 "--beam 0 excludes words" decode -q $lm --beam 0 "$tmp/hw.npy"

# ---- sound: cuts, states, and results while it runs ------------------------------------------------------------------------------

# One word for each phoneme, so that any sound gives words.
for p in AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH; do
    echo "x$p $p" | tr 'A-Z' 'a-z' | sed "s/ .*/ $p/"
done > "$tmp/x.dict"
t() { "$LINNET" transcribe -q "$@" 2> "$tmp/.err"; }
"$SOUND" "$tmp/s.raw" seconds=6 seed=3 format=raw
"$SOUND" "$tmp/s.wav" seconds=6 seed=3
words="--words --no-readable --no-lm -l $tmp/x.dict --tune unknown=-4"
for how in "--beam 8" "$words --phrase xiy"; do
    t -f ctm $how "$tmp/s.wav" | tokens > "$tmp/whole"
    ok "$how: there are results" test "$(wc -l < "$tmp/whole")" -gt 5
    t -f ctm $how - < "$tmp/s.raw" | tokens > "$tmp/flowed"
    ok "$how: while it runs" cmp "$tmp/whole" "$tmp/flowed"
    is "$how: text while it runs" "$(t $how "$tmp/s.wav")" "$(cat "$tmp/s.raw" | t $how -)"
    in_pieces "$tmp/s.raw" 96000 "100 401 1001 50000" t -f ctm $how
    ok "$how: in pieces" cmp "$tmp/whole" "$tmp/cut"
done
frames="--raw --load-state $tmp/s.bin"
refused "a state of words for phonemes" 1 "s.bin: it was saved by words search, this is greedy search" \
    transcribe -q $frames "$tmp/s.raw"
refused "a state of other words" 1 "s.bin: it was saved by another words search" \
    transcribe -q $frames --words -l "$tmp/words.dict" --lm "$tmp/words.arpa" "$tmp/s.raw"
refused "a state of another beam" 1 "s.bin: it was saved by another words search" \
    transcribe -q $frames $words -b 100 --tune bonus=3 "$tmp/s.raw"
refused "alternatives of a piece" 2 "--n-best needs a whole FILE" transcribe -q $frames $words -n 3 "$tmp/s.raw"
shows "info says by what" "by:               words" info "$tmp/s.bin"
is "CTM of a piece without words" ";; stdin has no words" "$(head -c 200 /dev/zero | t $words -f ctm --raw --save-state "$tmp/none.bin" -)"
t --words --no-readable --no-lm -l "$tmp/x.dict" --no-unknown --channel each --ids "$tmp/s.wav" > "$tmp/each"
is "each channel" "s $(t --words --no-readable --no-lm -l "$tmp/x.dict" --no-unknown "$tmp/s.wav")" "$(cat "$tmp/each")"
for how in "--words --no-lm -l $tmp/x.dict" ""; do
    t $how --layout paragraphs,columns=20 "$tmp/s.wav" > "$tmp/pieces"
    t $how --layout paragraphs,columns=20 --output-dir "$tmp/in-lines" "$tmp/s.wav"
    ok "lines and paragraphs, written in pieces and at once" cmp "$tmp/pieces" "$tmp/in-lines/s.txt"
    ok "several lines, none too long" awk 'length > 20 { bad = 1 } END { exit bad || NR < 2 }' "$tmp/pieces"
done
"$SOUND" "$tmp/stereo.wav" seconds=2 channels=2 seed=4
is "two channels have names of their own" "stereo-1 stereo-2" "$(t $words --channel each "$tmp/stereo.wav" | cut -d' ' -f1 | xargs)"
t $words --channel each -f text,textgrid,srt --output-dir "$tmp/lanes" "$tmp/stereo.wav"
is "formats of one utterance: a file each" "stereo-1.TextGrid stereo-1.srt stereo-2.TextGrid stereo-2.srt stereo.txt" \
    "$(LC_ALL=C ls "$tmp/lanes" | xargs)"
for i in 1 2; do
    is "channel $i: one header" 1 "$(grep -c '^File type' "$tmp/lanes/stereo-$i.TextGrid")"
    t $words --channel $i -f textgrid -o "$tmp/lane" "$tmp/stereo.wav"
    ok "channel $i alone" cmp "$tmp/lane" "$tmp/lanes/stereo-$i.TextGrid"
done
refused "two channels in one SRT" 1 "a file of srt holds one channel: use --output-dir" \
    transcribe -q $words --channel each -f srt "$tmp/stereo.wav"
# Words are written while sound still arrives.
mkfifo "$tmp/open"
t $words - < "$tmp/open" > "$tmp/partial" &
reader=$!
exec 9> "$tmp/open"
cat "$tmp/s.raw" "$tmp/s.raw" >&9
ok "words appear while the input is open" await test -s "$tmp/partial"
exec 9>&-
wait $reader
is "posteriors and decode are transcribe" "$(t $words "$tmp/s.wav")" \
    "$("$LINNET" posteriors --search "$tmp/s.wav" -o "$tmp/s.npy" && d $words "$tmp/s.npy")"

# ---- nobody speaks: a search over minutes of noise does not end in the most probable word ----------------------------------------

if [ -f share/linnet/en/default.safetensors ] && [ -f share/linnet/en/words.lm ]; then
    "$SOUND" "$tmp/noise.wav" kind=white level=-40 seconds=20
    is "no words in noise" "" "$(t -m share/linnet/en/default.safetensors --words -l share/linnet/en/words.dict.gz \
        --lm share/linnet/en/words.lm "$tmp/noise.wav")"
fi

# ---- real speech: silence before it moves all times by its length ----------------------------------------------------------------

speech=/usr/share/pocketsphinx/test/data/goforward.raw
if [ -f $speech ] && [ -f share/linnet/en/default.safetensors ]; then
    printf 'go G OW\nforward F AO R W ER D\nforty F AO R T IY\nten T EH N\nmeters M IY T ER Z\n' > "$tmp/go.dict"
    go="-m share/linnet/en/default.safetensors --words --no-readable -l $tmp/go.dict --tune lm-weight=1 -f ctm"
    cat > "$tmp/go.arpa" << 'END'
\data\
ngram 1=7

\1-grams:
-99 <s>
-1 </s>
-0.7 go
-0.7 forward
-0.7 forty
-0.7 ten
-0.7 meters

\end\
END
    t $go --lm "$tmp/go.arpa" - < $speech > "$tmp/now"
    { head -c 38400 /dev/zero; cat $speech; } | t $go --lm "$tmp/go.arpa" - > "$tmp/later"
    is "real speech" "go forward ten meters" "$(cut -d' ' -f5 "$tmp/now" | xargs)"
    is "after 1.2 s of silence" "go forward ten meters" "$(cut -d' ' -f5 "$tmp/later" | xargs)"
    is "1.2 s later, to two steps" "" \
        "$(paste -d' ' "$tmp/now" "$tmp/later" | awk '{ x = $9 - $3 - 1.2; if (x > 0.0605 || x < -0.0605) print }')"
fi
finish
