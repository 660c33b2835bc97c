#!/bin/sh
# linnet align: texts from all sources, sounds and matrices, data directories with bad utterances, texts that cannot match.
. tests/app/common.sh

use_model
unset LINNET_LEXICON
d=$tmp/data
lex="-l $tmp/dict"

# matrix FILE PHONE...: row i has the i-th phone (-: the blank) at 0.9; nan: the row holds a NaN.
matrix() {
    file=$1
    shift
    for p; do echo "$p 1"; done | "$ROWS" "$file"
}
matrix "$tmp/m.npy" - - W - AH AH - N - - - T - - UW UW - -

# A matrix with known onsets: the times are exact to the row.
exits "matrix" 0 run align --posteriors "$tmp/m.npy" --text "One, two!" $lex -f ctm --row-ms 100 -q
is "matrix: words as they are written, with their times" "m 1 0.200 0.600 One 0.9000|m 1 1.100 0.500 two 0.9000" \
    "$(printf '%s' "$out" | tr '\n' '|')"
is "a matching text: no message" "" "$err"
run align --posteriors "$tmp/m.npy" --phones "w ah0 N t UW1" -f ctm --row-ms 100 -q
is "matrix: phones and their times" "0.200 0.100 W|0.400 0.200 AH|0.700 0.100 N|1.100 0.100 T|1.400 0.200 UW|" \
    "$(printf '%s\n' "$out" | cut -d' ' -f3-5 | tr '\n' '|')"
arpabet=$out
run align --posteriors "$tmp/m.npy" --text "One, two!" $lex --row-ms 100 -q
is "text: a table with times" "    0.200     0.800  One|    1.100     1.600  two" "$(printf '%s' "$out" | tr '\n' '|')"
run align --posteriors "$tmp/m.npy" --text "One, two!" $lex --row-ms 100 -q --unit both --ids --ipa
is "text: words and phones, with ids" "m     1.100     1.600  two|m     1.100     1.200    t|m     1.400     1.600    u" \
    "$(printf '%s\n' "$out" | tail -n 3 | paste -s -d '|')"
gives "matrix: phones in the IPA" "$arpabet" align --posteriors "$tmp/m.npy" --phones "w ə n ˈt u" -f ctm --row-ms 100 -q
run align --posteriors "$tmp/m.npy" --phones "wʌn ˈtuː" -f ctm --row-ms 100 -q
is "matrix: phones in the IPA, words without blanks" "$arpabet" "$out"
gives "the IPA in and out" "w ʌ n t u (m)" align --posteriors "$tmp/m.npy" --phones "wʌn ˈtuː" -f trn --ipa -q
printf 'one wʌn\ntwo t u\n' > "$tmp/ipa.dict"
run align --posteriors "$tmp/m.npy" --text "One, two!" -l "$tmp/ipa.dict" -f ctm --unit phones --row-ms 100 -q
is "matrix: a lexicon in the IPA" "$arpabet" "$out"
run align --posteriors "$tmp/m.npy" --text "one two" $lex -f ctm --unit phones -q
is "matrix: steps of the model, 30 ms, if nothing is said" "0.060 0.030 W" "$(printf '%s\n' "$out" | head -n 1 | cut -d' ' -f3-5)"
shows "json: goodness" '"goodness":-0.' align --posteriors "$tmp/m.npy" --text "one two" $lex -f json -q
run align --posteriors "$tmp/m.npy" --text "one two" $lex -f json --row-ms 1e-9 -q
is "json: goodness of 5 phonemes, 2 words and all, however short the rows" 8 \
    "$(printf '%s\n' "$out" | grep -o '"goodness":-0\.' | wc -l | tr -d ' ')"
has "json: words" "$out" '"word":"one"'
run align --posteriors "$tmp/m.npy" --text "one two" $lex -f csv --unit both -q
has "csv: the utterance" "$out" "m,1,,utterance,one two,0.060,"
# That of a word, and of all, from those of their phonemes, as docs/alignment.md says.
is "csv: goodness of words and of all" "" "$(printf '%s\n' "$out" | tr -d '\r' | awk -F, '
    NR == 1 { next }
    $4 == "phone" { n++; sum += exp($9); all_n++; all += exp($9); next }
    { if (n && (d = log(sum / n) - want) * d > 1e-7) print "word", want, log(sum / n); n = sum = 0; want = $9; if ($4 == "utterance") whole = $9 }
    END { if (!n || (d = log(sum / n) - want) * d > 1e-7 || (d = log(all / all_n) - whole) * d > 1e-7) print want, whole }')"
warns "a summary" "1 utterance, 0.5 s of sound" align --posteriors "$tmp/m.npy" --text "one two" $lex

# A wrong phone has a lower goodness than the others; a wrong text is reported.
goodness() { printf '%s\n' "$out" | sed 's/.*"phones":\[//; s/\],.*//; s/},{/\n/g' | sed 's/.*goodness":\([-0-9.]*\).*/\1/'; }
shows "a wrong phone: what was said instead" '"heard":"AH"' align --posteriors "$tmp/m.npy" --phones "W IY N T UW" -f json -q
is "a wrong phone: its goodness, and no other's, is below -3" "1 2" "$(goodness | awk '$1 < -3 { n++; at = NR } END { print n, at }')"
exits "a wrong text" 0 run align --posteriors "$tmp/m.npy" --text "four three four" $lex -f ctm
has "a wrong text" "$err" "the text does not seem to match the sound"
is "a wrong text: aligned all the same" 3 "$(printf '%s\n' "$out" | wc -l | tr -d ' ')"

# Marks such as [laughs] are not words.
run align --posteriors "$tmp/m.npy" --text "[laughs] One <noise> two (coughs)." $lex -f trn
is "marks are skipped" "One two (m)" "$out"
has "marks are counted" "$err" "linnet: 3 marks such as [laughs] are not words and were skipped"
warns "only marks" "the text is empty" align --posteriors "$tmp/m.npy" --text "[laughs] <noise>" $lex

# A text in another encoding is refused with its own path.
printf 'one\n\223two\224' > "$tmp/windows.txt"
exits "Windows-1252" 1 run align --posteriors "$tmp/m.npy" --text-file "$tmp/windows.txt" $lex -q -f trn
has "Windows-1252: its own path" "$err" "$tmp/windows.txt:2: byte 0x93 is not UTF-8; convert the text, for example with iconv -f WINDOWS-1252"

# A TextGrid: its intervals are utterances, and no word or phone extends beyond its interval.
grid() { printf '"ooTextFile"\n"TextGrid"\n0\n1.8\n<exists>\n'; printf '%s\n' "$@"; }
grid 1 '"IntervalTier" "anna" 0 1.8 4 0 0.25 "" 0.25 0.55 "one" 0.55 1 "[laughs]" 1 1.45 "Two!"' > "$tmp/one.TextGrid"
exits "a TextGrid" 0 run align --posteriors "$tmp/m.npy" --text-file "$tmp/one.TextGrid" $lex --row-ms 100
is "a TextGrid: utterances within their times" "    0.250     0.550  one|    1.100     1.450  Two" "$(printf '%s' "$out" | tr '\n' '|')"
has "a TextGrid: marks are counted" "$err" "the mark [laughs] is not a word and was skipped"
# The worst 20 s of an utterance have their place in the sound; a shorter utterance is judged by its fit alone.
awk 'BEGIN { print "- 1000"; for (; i < 1300; i++) print substr("W AHN T UW", i % 5 * 2 + 1, 2), 1; print "- 667"
             for (i = 0; i < 10; i++) print "-:0.9+" substr("W AHN T UW", i % 5 * 2 + 1, 2) ":0.05 1" }' | sed 's/ :/:/' | "$ROWS" "$tmp/long.npy"
said() { yes "$1" | head -n "$2" | paste -s -d ' '; }
grid 1 "\"IntervalTier\" \"a\" 0 89.31 2 0 30 \"\" 30 89.01 \"$(said "one two" 260) $(said three 27)\"" > "$tmp/long.TextGrid"
run align --posteriors "$tmp/long.npy" --text-file "$tmp/long.TextGrid" $lex -q
has "a TextGrid: where text and sound do not match" "$err" "text and sound do not match around 51.4 to 71.4 s"
grid 1 "\"IntervalTier\" \"a\" 0 89.31 2 0 89.01 \"\" 89.01 89.31 \"one two one two\"" > "$tmp/long.TextGrid"
gives "a TextGrid: a short utterance" "one two one two (long)" \
    align --posteriors "$tmp/long.npy" --text-file "$tmp/long.TextGrid" $lex -q -f trn
is "a TextGrid: a short utterance that fits badly" "" "$err"
run align --posteriors "$tmp/m.npy" --text-file "$tmp/one.TextGrid" $lex --row-ms 100 -q -f json
has "a TextGrid: goodness of phonemes" "$out" '"phone":"UW","start":1.400,"end":1.450,"confidence":0.9000,"goodness":-0.'
grid 1 '"IntervalTier" "a" 0 1.8 4 -1 1 "one" 1 1.1 "two" 1.1 9 "one ^" 9 10 "one"' > "$tmp/bad.TextGrid"
run align --posteriors "$tmp/m.npy" --text-file "$tmp/bad.TextGrid" $lex --row-ms 100
is "a TextGrid, utterances that cannot be: status" 1 "$status"
is "a TextGrid, utterances that cannot be: the other is done" "    0.200     0.800  one" "$out"
has "a TextGrid, utterances that cannot be: too short" "$err" "bad.TextGrid: 1.000 to 1.100 s: the text is longer than the sound"
has "a TextGrid, utterances that cannot be: a digit" "$err" "bad.TextGrid: 1.100 to 9.000 s: '^' at byte 5"
has "a TextGrid, utterances that cannot be: behind the sound" "$err" "9.000 to 10.000 s: it begins after the end of the sound, at 1.800 s"
grid 2 '"IntervalTier" "anna b" 0 1.8 1 0 0.9 "one"' '"IntervalTier" "ben" 0 1.8 1 0.9 1.8 "two"' > "$tmp/two.TextGrid"
run align --posteriors "$tmp/m.npy" --text-file "$tmp/two.TextGrid" $lex --row-ms 100 -q -f trn
is "a TextGrid of two speakers" "one (m-anna_b)|two (m-ben)" "$(printf '%s' "$out" | tr '\n' '|')"
sed 's/"anna b"/"ben"/' "$tmp/two.TextGrid" > "$tmp/ben.TextGrid"
gives "two tiers of one name" "$(printf 'one (m-ben)\ntwo (m-ben-2)')" align --posteriors "$tmp/m.npy" --text-file "$tmp/ben.TextGrid" $lex --row-ms 100 -q -f trn
grid 0 > "$tmp/none.TextGrid"
run align --posteriors "$tmp/m.npy" --text-file "$tmp/none.TextGrid" $lex
has "a TextGrid without tiers" "$err" "none.TextGrid: no interval has a text"

# Numbers and signs: of their readings the sound chooses; the result has them as they are written.
printf 'one W AH N\ntwo T UW\nsecond W UW\nand AA\n' > "$tmp/numbers.dict"
run align --posteriors "$tmp/m.npy" --text "(1) 2!" -l "$tmp/numbers.dict" -f ctm --row-ms 100 -q
is "numbers as they are written, with their times" "m 1 0.200 0.600 1 0.9000|m 1 1.100 0.500 2 0.9000" "$(printf '%s' "$out" | tr '\n' '|')"
matrix "$tmp/second.npy" - W AH N - - W - UW -
run align --posteriors "$tmp/second.npy" --text "1 2" -l "$tmp/numbers.dict" -f trn --unit phones -q
is "the sound chooses the reading" "W AH N W UW (second)" "$out"
refused "no rules for numbers" 1 "'1' at byte 1: no rule reads it; write numbers and symbols as the words that were said" \
    align --posteriors "$tmp/m.npy" --text "1 two" $lex --numbers none -q
printf 'jambo JH AA M B OW\n' > "$tmp/sw.dict"
refused "a lexicon of another language: numbers are not English" 1 \
    "'1' at byte 7: no rule reads it; write numbers and symbols as the words that were said" \
    align --posteriors "$tmp/m.npy" --text "jambo 12" -l "$tmp/sw.dict" -q
refused "phonemize with a lexicon of another language" 1 "'1' at byte 7" phonemize -q -l "$tmp/sw.dict" "jambo 12"
run phonemize -q -l "$tmp/sw.dict" --numbers en "jambo 12"
is "a lexicon of another language, rules named" "0 JH AA M B OW T W EH L V" "$status $out"
printf '[written]\nxx = one two\n' > "$tmp/rules"
run align --posteriors "$tmp/m.npy" --text xx $lex --numbers "$tmp/rules" -f ctm --row-ms 100 -q
is "rules of one's own" "m 1 0.200 1.400 xx" "$(printf '%s' "$out" | cut -d' ' -f1-5)"
run align --posteriors "$tmp/m.npy" --text "\$1 million" $lex -f ctm -q
is "a form with a blank is one word" '$1_million' "$(printf '%s' "$out" | cut -d' ' -f5)"

# Subtitles of a script have its punctuation and lines.
printf '%s\n' '- "One,"' 'two... [laughs]' > "$tmp/script.txt"
run align --posteriors "$tmp/m.npy" --text-file "$tmp/script.txt" $lex --row-ms 100 -f srt -q
is "a script as subtitles" '1|00:00:00,200 --> 00:00:01,600|- "One," two...||' "$(tr '\n' '|' < "$tmp/.out")"
run align --posteriors "$tmp/m.npy" --text-file "$tmp/script.txt" $lex --row-ms 100 -f srt -q --cues script,gap=80
is "its lines, and a gap" '00:00:00,200 --> 00:00:01,020|- "One,"|00:00:01,100 --> 00:00:01,800|two...' \
    "$(printf '%s\n' "$out" | grep -v '^[0-9]*$' | paste -s -d '|')"
run align --posteriors "$tmp/m.npy" --text-file "$tmp/script.txt" $lex --row-ms 100 -f json -q
has "the same in json" "$out" '"text":"One two"'
has "the text as it is written in json" "$out" '"readable":"- \"One,\"\u000atwo..."'
refused "a channel of a matrix" 2 "--channel applies to a sound, not to --posteriors" \
    align --posteriors "$tmp/m.npy" --text one $lex --channel 2
refused "cues that cannot be" 2 "--cues min=5 must not be above max=3" align --posteriors "$tmp/m.npy" --text one $lex -f srt --cues min=5,max=3

# Words that the lexicon lacks, and those that nothing can pronounce: alignment goes on, all are listed.
printf 'one W AH N\n' > "$tmp/dict1"
exits "--oov" 0 run align --data "$d" --audio-root "$d" -l "$tmp/dict1" -f ctm -q --oov "$tmp/oov.txt"
is "--oov: nothing is said with --quiet" "" "$(printf '%s\n' "$err" | grep lexicon)"
is "--oov: words and counts, the most frequent first" "two 2|three 2|four 2" "$(cut -f1,2 "$tmp/oov.txt" | tr '\t' ' ' | paste -s -d '|')"
is "--oov: as prepare writes it" "rules" "$(cut -f3 "$tmp/oov.txt" | sort -u)"

# Pronunciations that were chosen are counted and written with their probabilities, as a lexicon.
printf 'one HH W AH1 N\none W AH1 N\ntwo T UW1\ntwo T AH0\nsix S IH K S\n' > "$tmp/several.dict"
run align --posteriors "$tmp/m.npy" --text "‘One’ two" -l "$tmp/several.dict" -f trn --learn-lexicon "$tmp/learnt.dict"
is "--learn-lexicon: status" 0 "$status"
has "--learn-lexicon: what it was learnt from" "$err" "learnt.dict has probabilities from 2 words that have several"
is "--learn-lexicon: the most frequent first" \
    "one 1.0000 W AH1 N|one 0.5000 HH W AH1 N|two 1.0000 T UW1|two 0.5000 T AH0|six 1.0000 S IH K S" \
    "$(tr '\t' ' ' < "$tmp/learnt.dict" | paste -s -d '|')"
run align --posteriors "$tmp/m.npy" --text "One two" -l "$tmp/learnt.dict" --unit phones -q -f trn
is "a lexicon with probabilities" "W AH N T UW (m)" "$out"
sed 's/1.0000.T UW1/0.0000001 T UW1/' "$tmp/learnt.dict" > "$tmp/rare.dict"
run align --posteriors "$tmp/m.npy" --text "One two" -l "$tmp/rare.dict" --unit phones -q -f trn
is "a pronunciation that is too rare is not chosen" "W AH N T AH (m)" "$out"
run align --data "$d" --audio-root "$d" $lex -q -f trn -o "$tmp/aligned.trn" --learn-lexicon "$tmp/learnt2.dict"
is "--learn-lexicon of a data directory" "one 1.0000 W AH N" "$(head -n 1 "$tmp/learnt2.dict" | tr '\t' ' ')"
refused "--learn-lexicon of phones" 2 "not with --phones" align --posteriors "$tmp/m.npy" --phones "T UW" --learn-lexicon "$tmp/x"
refused "--learn-lexicon of a part" 2 "not with --skip-done" align --posteriors "$tmp/m.npy" --text one $lex --skip-done \
    -o "$tmp/x.trn" --learn-lexicon "$tmp/x"
refused "--oov of a part" 2 "--oov counts all that is aligned: not with --skip-done" align --posteriors "$tmp/m.npy" --text one \
    $lex --skip-done -o "$tmp/x.trn" --oov "$tmp/x"
refused "--learn-lexicon over the lexicon" 2 "several.dict" align --posteriors "$tmp/m.npy" --text one -l "$tmp/several.dict" \
    --learn-lexicon "$tmp/several.dict"

# Stress is that of the chosen pronunciation, where the lexicon has it.
printf 'one Y UW1\none W AH1 N\ntwo T UW2\n' > "$tmp/stress.dict"
run align --posteriors "$tmp/m.npy" --text "one two" -l "$tmp/stress.dict" --unit phones -q -f trn --stress
is "stress of the chosen pronunciation" "W AH1 N T UW2 (m)" "$out"
run align --posteriors "$tmp/m.npy" --text "one two" -l "$tmp/stress.dict" --unit phones -q -f trn --stress --ipa
is "stress in the IPA" "w ˈʌ n t ˌu (m)" "$out"
run align --posteriors "$tmp/m.npy" --text "one two" -l "$tmp/stress.dict" --unit phones -q -f trn
is "no stress without --stress" "W AH N T UW (m)" "$out"
printf 'one W AH0 N\ntwo T ER0\n' > "$tmp/schwa.dict"
run align --posteriors "$tmp/m.npy" --text "one two" -l "$tmp/schwa.dict" --unit phones -q -f trn --ipa
is "vowels without stress in the IPA" "w ə n t ɚ (m)" "$out"
if [ -f share/linnet/en/words.dict.gz ]; then
    gives "the installed lexicon has stress" "AH0 B AW1 T DH AH0 AE1 N S ER0" phonemize -q --stress about the answer
fi
run align --posteriors "$tmp/m.npy" --text-file "$tmp/one.TextGrid" -l "$tmp/stress.dict" -q -f json --stress --row-ms 100
has "stress in JSON, of a TextGrid" "$out" '"phones":["W","AH1","N"]'
gives "stress of --phones is kept" "W AH1 N T UW0 (m)" align --posteriors "$tmp/m.npy" --phones "wˈʌn T UW0" -q -f trn --stress
run align --posteriors "$tmp/m.npy" --text "one two" $lex -f trn --stress --unit phones
is "a lexicon without stress" "W AH N T UW (m)" "$out"
has "a lexicon without stress: reported" "$err" "has no stress, which --stress needs"

# Bad matrices.
"$LINNET" features "$d/u1.wav" -o "$tmp/f.npy" > /dev/null 2>&1
refused "features instead of log-probabilities" 1 "f.npy" align --posteriors "$tmp/f.npy" --text one $lex
matrix "$tmp/short.npy" - W AH N
refused "a text longer than the sound" 1 "its 5 phones need at least 0.15 s (5 rows), the sound has 0.12 s (4 rows)" \
    align --posteriors "$tmp/short.npy" --text "one two" $lex

# Sounds: the text as operand, option, file; the same result.
exits "a sound" 0 run align -q "$d/u1.wav" --text "one two" $lex -f ctm --unit phones
one=$out
is "a sound: its phones" "W AH N T UW" "$(printf '%s\n' "$out" | cut -d' ' -f5 | xargs)"
is "a sound: times rise and stay within" "" \
    "$(printf '%s\n' "$out" | awk '{ if ($3 < last - 0.001 || $3 + $4 > 1.53 || $4 <= 0) print; last = $3 + $4 }')"
is "a sound: a phone begins where the last one ends, or 50 ms later" "" \
    "$(printf '%s\n' "$out" | awk '{ gap = $3 - last; if (gap > 0.0011 && gap < 0.049) print; last = $3 + $4 }')"
run align -q "$d/u1.wav" --text "one two" $lex -f json
is "a word ends where its last phone does" "1" "$(printf '%s\n' "$out" | sed 's/.*"phones":\[//' | tr '{}' '\n\n' | awk -F '[:,]' '
    /"phone":/ { ends[++n] = $6 } /"word":/ { last = $8 } END { print ends[n] == last }')"
run align -q "$d/u1.wav" --text "one two" $lex -f textgrid --unit phones
is "TextGrid: intervals without a gap, none empty" "" "$(printf '%s\n' "$out" | awk '
    / intervals \[/ { inside = 1 } inside && /xmin/ { if ($3 != last + 0) print } inside && /xmax/ { if ($3 <= last) print; last = $3 }')"
run align -q "$d/u1.wav" --text "one two" $lex -f ctm --unit phones --times path
path=$out
is "--times path: the network's steps" "" \
    "$(printf '%s\n' "$out" | awk '{ s = $3 / 0.03; n = $4 / 0.03; if (s - int(s + 0.5) > 0.01 || n - int(n + 0.5) > 0.01) print }')"
run align -q "$d/u1.wav" --text "one two" $lex -f ctm --unit phones --start 0.1
is "--start: times of the file, within it" "" "$(printf '%s\n' "$out" | awk '{ if ($3 < 0.1 || $3 + $4 > 1.5001) print }')"
printf 'one\r\n  two\n' > "$tmp/text"
gives "TEXTFILE" "$one" align -q "$d/u1.wav" "$tmp/text" $lex -f ctm --unit phones
gives "--text-file" "$one" align -q "$d/u1.wav" --text-file "$tmp/text" $lex -f ctm --unit phones
run align -q "$d/u1.wav" --phones "W AH N T UW" -f ctm
is "--phones" "$one" "$out"
LINNET_LEXICON=$tmp/dict run align -q "$d/u1.wav" --text "one two" -f ctm --unit phones
is "LINNET_LEXICON" "$one" "$out"
if [ -f share/linnet/en/words.dict.gz ]; then
    gives "a lexicon that is installed, by its name" "one two (u1)" align -q "$d/u1.wav" --text "one two" -l words.dict.gz -f trn
fi
ok "posteriors" "$LINNET" posteriors "$d/u1.wav" -o "$tmp/u1.npy"
run align -q --posteriors "$tmp/u1.npy" --phones "W AH N T UW" -f ctm
is "the matrix of a sound gives what the sound's path gives" "$path" "$out"
tail -c +45 "$d/u1.wav" > "$tmp/u1.raw"
out=$("$LINNET" align -q - --phones "W AH N T UW" -f ctm < "$tmp/u1.raw" 2> /dev/null)
is "standard input" "$one" "$(printf '%s\n' "$out" | sed 's/^stdin/u1/')"
run align "$d/u1.wav" --text "ones two" $lex
has "a word that is not in the lexicon is reported" "$err" "'ones' is not in the lexicon; it is pronounced W AH N Z (derived)"
printf 'Ones\n' > "$tmp/ones.txt"
run align "$d/u1.wav" --text "ones two" $lex --add-lexicon "$tmp/ones.txt"
hasnt "one that --add-lexicon adds is in it" "$err" "not in the lexicon"
refused "words of phonemes" 2 "--phones and --unit words exclude each other" \
    align --posteriors "$tmp/m.npy" --phones "T UW" --unit words
refused "--add-lexicon and phonemes" 2 "--phones and --add-lexicon exclude each other" \
    align "$d/u1.wav" --phones "W AH N" --add-lexicon "$tmp/ones.txt"

# A data directory: one utterance has a text too long for its sound, one has no sound, one has no text.
exits "--data" 0 run align -q --data "$d" --audio-root "$d" $lex -f trn
is "--data: the texts in order" "ONE TWO (u1)|TWO THREE (u2)|THREE FOUR (u3)|FOUR ONE (u4)|" "$(printf '%s\n' "$out" | tr '\n' '|')"
run align -q -j 2 --data "$d" --audio-root "$d" $lex -f json
two=$out
run align -q -j 1 --data "$d" --audio-root "$d" $lex -f json
is "one thread or two: the same" "$out" "$two"
run align -q --data "$d" --audio-root "$d" $lex -f textgrid,json --output-dir "$tmp/out"
is "--output-dir: a file for each utterance and format" 8 "$(ls "$tmp/out" | wc -l | tr -d ' ')"
cp -r "$d" "$tmp/bad"
long=$(printf 'THREE %.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20)
printf 'u1 ONE TWO\nu2 %s\nu3 THREE FOUR\nu4 FOUR ^\n' "$long" > "$tmp/bad/text"
rm "$tmp/bad/u3.wav"
exits "bad utterances" 1 run align --data "$tmp/bad" --audio-root "$tmp/bad" $lex -f trn
is "bad utterances: the others are done" "ONE TWO (u1)" "$out"
has "bad utterances: a text that is too long" "$err" "u2.wav: the text is longer than the sound"
has "bad utterances: no sound" "$err" "u3.wav: No such file or directory"
has "bad utterances: no word" "$err" "u4.wav: '^' at byte 6: no rule reads it; write numbers and symbols as the words that were said"
has "bad utterances: counted" "$err" "1 utterance, 3 failed"
printf 'u1 ONE TWO\nu2 TWO THREE\nu4 FOUR ONE\n' > "$tmp/bad/text"
cp "$d/u3.wav" "$tmp/bad/"
run align --data "$tmp/bad" --audio-root "$tmp/bad" $lex
has "a line of the text is missing" "$err" "u3.wav: $tmp/bad/text has no line for u3"
rm "$tmp/bad/text"
refused "no text at all" 1 "write lines 'ID WORDS' into $tmp/bad/text" align --data "$tmp/bad" --audio-root "$tmp/bad" $lex

# A folder of speakers in the layout of the Montreal Forced Aligner: texts beside the sounds, results in folders of the same names.
c=$tmp/corpus
mkdir -p "$c/anna/day 1" "$c/ben" "$c/.hidden"
cp "$d/u1.wav" "$c/anna/one.wav"
cp "$d/u2.wav" "$c/anna/day 1/one.WAV"
cp "$d/u3.wav" "$c/ben/three.four.wav"
cp "$d/u4.wav" "$c/top.wav"
cp "$d/u4.wav" "$c/ben/silent.wav"
cp "$d/u4.wav" "$c/.hidden/x.wav"
printf 'one two' > "$c/anna/one.txt"
printf 'four' > "$c/anna/one.TextGrid"
printf '\357\273\277two three\r\n' > "$c/anna/day 1/one.TXT"
printf 'three four\n' > "$c/ben/three.four.lab"
printf 'nonsense 1 2' > "$c/ben/three.four.txt"
printf 'four one\n' > "$c/top.lab"
printf 'two\n' > "$c/ben/lost.lab"
ln -s .. "$c/ben/loop"
exits "a corpus: a sound has no text" 1 run align "$c" --output-dir "$tmp/grids" $lex
has "a corpus: a sound without text is named" "$err" "$c/ben/silent.wav: no text beside it (the same name with .lab, .txt or .TextGrid); skipped"
has "a corpus: texts without sound are reported in one line" "$err" "1 text has no sound beside it, such as $c/ben/lost.lab"
has "a corpus: counted" "$err" "4 utterances, 1 failed"
is "a corpus: TextGrids in the same folders" "anna/day 1/one.TextGrid|anna/one.TextGrid|ben/three.four.TextGrid|top.TextGrid|" \
    "$(cd "$tmp/grids" && find . -type f | sed 's,^\./,,' | LC_ALL=C sort | tr '\n' '|')"
has "a corpus: they are TextGrids" "$(cat "$tmp/grids/top.TextGrid")" 'text = "four"'
rm "$c/ben/silent.wav" "$c/ben/lost.lab"
exits "a corpus" 0 run align -q "$c/" -f trn $lex
doubts() { printf '%s\n' "$err" | grep -v 'does not seem to match'; } # warnings, except those about a poor match
is "a corpus: no warning" "" "$(doubts)"
is "a corpus: ids are the paths; .lab counts before .txt before .TextGrid" \
    "two three (anna/day_1/one)|one two (anna/one)|three four (ben/three.four)|four one (top)|" "$(printf '%s\n' "$out" | tr '\n' '|')"
run align -q "$c" -f json $lex
is "a corpus: speakers are folders, at the top unknown" '"speaker":"day 1"|"speaker":"anna"|"speaker":"ben"|' \
    "$(printf '%s\n' "$out" | grep -o '"speaker":"[^"]*"' | tr '\n' '|')"
cp -r "$c" "$tmp/again"
run align -q "$tmp/again" --output-dir "$tmp/again/out" $lex
run align -q "$tmp/again" --output-dir "$tmp/again/out" -f textgrid,ctm $lex
is "a corpus: earlier results in a subfolder are not taken as input" "0 8 " "$status $(find "$tmp/again/out" -type f | wc -l | tr -d ' ') $(doubts)"
run align -q "$c/anna/one.wav" "$c/ben/three.four.wav" -f trn $lex
is "files with their texts beside them" "one two (one)|three four (three.four)|" "$(printf '%s\n' "$out" | tr '\n' '|')"
run align -q "$c"/anna/one.* "$c"/top.* -f trn $lex
is "files and their texts" "one two (one)|four one (top)|" "$(printf '%s\n' "$out" | tr '\n' '|')"
gives "one file with its text beside it" "four one (top)" align -q "$c/top.wav" -f trn $lex
exits "files, one without a text" 1 run align -q "$c/top.wav" "$d/u1.wav" -f trn $lex
is "files, one without a text: the other is done" "four one (top)" "$out"
run align -q "$c/top.wav" "$c/anna/day 1" --output-dir "$tmp/mixed" $lex
is "a file and a folder" "one.TextGrid top.TextGrid " "$(ls "$tmp/mixed" | tr '\n' ' ')"
printf 'four ^\n' > "$c/top.lab"
exits "a corpus, one text bad" 1 run align -q "$c" -f trn $lex
has "a corpus, one text bad: it is named" "$err" "$c/top.lab: '^' at byte 6"
mkdir "$tmp/gridded"
cp "$d/u1.wav" "$tmp/gridded/talk.wav"
cp "$tmp/two.TextGrid" "$tmp/gridded/talk.TextGrid"
run align -q "$tmp/gridded" --output-dir "$tmp/gridded/out" $lex
is "a corpus with a TextGrid: tiers of each speaker" "anna b - utterances|anna b - words|anna b - phones|ben - utterances|ben - words|ben - phones|" \
    "$(sed -n 's/^        name = "\(.*\)" $/\1/p' "$tmp/gridded/out/talk.TextGrid" | tr '\n' '|')"
run align -q "$tmp/gridded/talk.wav" "$tmp/gridded/out/talk.TextGrid" -f trn $lex
is "a TextGrid as it was written, read again: words are utterances, phones none" "one (talk-anna_b)|two (talk-ben)" \
    "$(printf '%s' "$out" | tr '\n' '|')"
# What align writes it reads again: TextGrids with each kind of tier, with words and phonemes that touch. (A word that is cut to
# its sound may be shorter than its steps: those are in test_aligner.c.)
for how in "words path" "both path" "phones path" "phones sound"; do
    want="one two (u1)"
    [ "${how% *}" != phones ] || want="W AH N T UW (u1)"
    run align -q "$d/u1.wav" --text "one two" $lex -f textgrid --unit ${how% *} --times ${how#* } -o "$tmp/trip.TextGrid"
    run align -q "$d/u1.wav" "$tmp/trip.TextGrid" $lex -f trn
    is "a TextGrid of $how, read again" "0 $want" "$status $out"
done
run align -q "$d/u1.wav" "$tmp/trip.TextGrid" $lex --times path -f textgrid --unit phones -o "$tmp/trip2.TextGrid"
is "a TextGrid of phonemes, read again: tiers" "phones" "$(sed -n 's/^        name = "\(.*\)" $/\1/p' "$tmp/trip2.TextGrid")"
run align -q "$tmp/gridded" -f srt --output-dir "$tmp/gridded/out" $lex
is "subtitles: a file for each speaker" "talk-1.srt talk-2.srt talk.TextGrid" "$(ls "$tmp/gridded/out" | xargs)"
grid 1 '"IntervalTier" "a" 0 1.8 2 0 0.7 "one" 0.7 1.5 "two"' > "$tmp/gridded/talk.TextGrid"
run align -q "$tmp/gridded/talk.wav" $lex
is "a TextGrid and a sound: words within their utterances" "0 2" \
    "$status $(printf '%s\n' "$out" | awk '$3 == "one" && $1 >= 0 && $2 <= 0.7 || $3 == "two" && $1 >= 0.7 && $2 <= 1.5 { n++ } END { print n }')"
run align -q "$tmp/gridded/talk.wav" $lex --start 0.6
is "a TextGrid and a part of a sound: utterances within it, in times of the file" "0 1 1" \
    "$status $(printf '%s\n' "$out" | awk '{ n++; in_it += $3 == "two" && $1 >= 0.7 && $2 <= 1.5 } END { print n, in_it }')"
mkdir "$tmp/nothing"
refused "an empty folder" 1 "$tmp/nothing: there is no sound with a text beside it" align "$tmp/nothing"
refused "a folder and a text" 2 "the texts of a folder are beside its sounds" align "$c" --text one
refused "standard input and a file" 2 "standard input has no text beside it" align - "$c/top.wav"
refused "no folder" 1 "cannot open $tmp/none.wav" align "$tmp/none.wav" --text one $lex
mkdir -p "$tmp/ids/a b"
cp "$d/u1.wav" "$tmp/ids/a b/u1.wav"
printf 'a/u1 a b/u1.wav\n' > "$tmp/ids/wav.scp"
printf 'a/u1 ONE TWO\n' > "$tmp/ids/text"
run align -q --data "$tmp/ids" --audio-root "$tmp/ids" $lex --output-dir "$tmp/ids/out"
is "--data, ids with folders: status" "0 " "$status $(doubts)"
is "--data, ids with folders" "a/u1.TextGrid" "$(cd "$tmp/ids/out" && find . -type f | sed 's,^\./,,')"

# Input that is refused.
refused "an empty text" 1 "the text is empty" align "$d/u1.wav" --text " - ... " $lex
refused "another script" 1 "no pronunciation for ж: add to the lexicon" align "$d/u1.wav" --text "ж" $lex
refused "no text file" 1 "cannot open $tmp/none" align "$d/u1.wav" "$tmp/none" $lex
refused "no lexicon file" 1 "$tmp/none" align "$d/u1.wav" --text one -l "$tmp/none"
refused "no sound" 2 "exactly one of FILE, FOLDER, --data and --posteriors" align --text one $lex
refused "two sounds" 2 "exactly one of FILE, FOLDER, --data and --posteriors" align "$d/u1.wav" --data "$d"
refused "no text" 1 "u1.wav has no text: there is none beside it" align "$d/u1.wav"
refused "two texts" 2 "exactly one of TEXTFILE, --text, --text-file and --phones" align "$d/u1.wav" "$tmp/text" --text one
refused "a text beside a data directory" 2 "--data reads the texts from the data directory" align --data "$d" --text one
refused "--row-ms with a sound" 2 "--row-ms needs --posteriors" align "$d/u1.wav" --text one --row-ms 10
refused "formats" 2 "need --output-dir" align "$d/u1.wav" --text one $lex -f json,ctm
shows "a word that the lexicon lacks" '"word":"gronalite"' align -q "$d/u1.wav" --text "one gronalite two" $lex -f json

# Real speech: a text that is only part of the sound is where it was said; the rest is other speech.
real=/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb
if [ -f $real-0880.wav ] && [ -f share/linnet/en/default.safetensors ] && [ -f share/linnet/en/words.dict.gz ]; then
    LINNET_MODEL=share/linnet/en/default.safetensors
    said="he was not an ill disposed young man"
    run align -q $real-0880.wav --text "$said"
    alone=$out
    is "a text that is all of the sound: no other speech" "0  8" "$status $err $(printf '%s\n' "$out" | wc -l)"
    for f in 0870 0880 0890; do tail -c +45 $real-$f.wav; done > "$tmp/three.raw"
    bytes=$(tail -c +45 $real-0870.wav | wc -c)
    run align --raw "$tmp/three.raw" --text "$said"
    has "a text that is part of the sound: a warning" "$err" "three.raw: speech that is not in the text, from "
    is "a text that is part of the sound: what is around it" "[other speech]|he|was|not|an|ill|disposed|young|man|[other speech]|" \
        "$(printf '%s\n' "$out" | sed 's/ *[0-9.]* *[0-9.]* *//' | tr '\n' '|')"
    is "a text that is part of the sound: its words are where they are alone" "" \
        "$({ printf '%s\n' "$alone"; printf '%s\n' "$out" | grep -v other; } | awk -v at="$((bytes / 32))" \
            'NR <= 8 { from[NR] = $1; to[NR] = $2; next } { k = NR - 8; a = $1 - at / 1000 - from[k]; b = $2 - at / 1000 - to[k]
             if (a * a > 0.01 || b * b > 0.01) print $3, a, b }')"
    shows "other speech in json" ',"other":[{"start":' align -q --raw "$tmp/three.raw" --text "$said" -f json
    run align -q --raw "$tmp/three.raw" --text "$said" -f textgrid -o "$tmp/three.TextGrid"
    is "other speech in a TextGrid" "2 notes" "$(grep -c '"\[other speech\]"' "$tmp/three.TextGrid") $(
        sed -n 's/^        name = "\(notes\)" $/\1/p' "$tmp/three.TextGrid")"
    gives "other speech in a TextGrid is no text" "$said (three)" align -q --raw "$tmp/three.raw" "$tmp/three.TextGrid" -f trn
    run align --raw "$tmp/three.raw" --text "how are you today" -f ctm
    is "a text that was not said does not spread" 1 "$(printf '%s\n' "$out" |
        awk 'NR == 1 { from = $3 } { to = $3 + $4 } END { print NR == 4 && to - from < 2 }')"
    has "a text that was not said: a warning" "$err" "the text does not seem to match the sound"
fi
finish
