# linnet readable, and readable words in the formats of transcribe and decode.
. tests/app/common.sh

# ---- a small model ----
for i in $(seq 200); do
    printf 'He went to London, and she stayed at home. What did he want? He saw the dog.\n\n'
    printf 'What did she say? She saw London. The dog stayed, and he went home.\n\n'
done > "$tmp/book.txt"
exits "learn" 0 run readable learn --slots 3000 "$tmp/book.txt" -o "$tmp/small.punctuation"
has "learn: what was read" "$err" "400 paragraphs, 6200 words"
run readable learn -q --slots 3000 "$tmp/book.txt" -o "$tmp/again.punctuation"
is "quiet" "" "$err"
ok "the same bytes again" cmp "$tmp/small.punctuation" "$tmp/again.punctuation"
export LINNET_PUNCTUATION=$tmp/small.punctuation
printf 'HE WENT TO LONDON AND SHE STAYED AT HOME WHAT DID HE WANT\ntwenty three\n\n' > "$tmp/words.txt"
run readable write "$tmp/words.txt"
is "write" "He went to London, and she stayed at home. What did he want?
23." "$out"
is "write with ids" "he Saw the dog." "$(echo 'he saw the dog' | "$LINNET" readable write --ids -)"
run readable write "$tmp/words.txt" -o "$tmp/out.txt"
is "into a file" "23." "$(sed -n 2p "$tmp/out.txt")"
echo 'he saw zweiundvierzig' > "$tmp/de.txt"
is "numbers of the language" "He saw 42." "$("$LINNET" readable write --language de "$tmp/de.txt")"
is "English by default" "He saw zweiundvierzig." "$("$LINNET" readable write "$tmp/de.txt")"
printf 'he saw\nS\374d\n' > "$tmp/windows.txt"
refused "another encoding" 1 "windows.txt:2: byte 0xfc is not UTF-8" readable write "$tmp/windows.txt"
printf '\377\376h\000e\000 \000s\000a\000w\000' > "$tmp/wide.txt"
gives "UTF-16" "He saw." readable write "$tmp/wide.txt"
is "capitals of any script" "He saw côté." "$(echo 'HE SAW CÔTÉ' | "$LINNET" readable write -)"
refused "learn: another encoding" 1 "windows.txt:2: byte 0xfc is not UTF-8" readable learn --slots 3000 "$tmp/windows.txt" -o "$tmp/none"
refused "score: another encoding" 1 "windows.txt:2: byte 0xfc is not UTF-8" readable score --ids "$tmp/windows.txt"
run readable score "$tmp/book.txt"
is "score: the first and the last line" "6200 words
capitals              1600    100.0 %    100.0 %  100.0 %" "$(echo "$out" | sed -n '1p; $p')"

# ---- times ----
printf 'u He saw. The dog\n' > "$tmp/timed.txt"
printf 'u 1 0 0.3 he\nu 1 0.3 0.3 saw\nu 1 1.6 0.3 the\nu 1 1.9 0.3 dog\n' > "$tmp/timed.ctm"
run readable score --ids --ctm "$tmp/timed.ctm" "$tmp/timed.txt"
has "pauses are counted" "$out" "900 ms and more          0          0          1        0"
has "those without one too" "$out" "below 30 ms              2          0          0        0"
printf 'u 1 0 0.3 she\n' > "$tmp/other.ctm"
echo "one two three" > "$tmp/title.txt"
echo u1 > "$tmp/lone.txt"
refused "score: a text without sentences" 1 "no paragraph of sentences" readable score "$tmp/title.txt"
refused "score: names only" 1 "no utterance with words" readable score --ids "$tmp/lone.txt"
refused "another CTM" 1 "word 1 of u is 'he' in the text" readable score --ids --ctm "$tmp/other.ctm" "$tmp/timed.txt"

# ---- what is refused ----
refused "no verb" 2 "'read' is not write, learn or score" readable read "$tmp/book.txt"
refused "no output" 2 "learn needs --output" readable learn "$tmp/book.txt"
refused "names of utterances to learn from" 2 "--ids and --model are for write and score" readable learn --ids "$tmp/book.txt" -o "$tmp/none"
refused "times without ids" 2 "--ctm needs score and --ids" readable score --ctm "$tmp/timed.ctm" "$tmp/book.txt"
refused "no sentences" 1 "no paragraph of sentences" readable learn "$tmp/words.txt" -o "$tmp/none"
refused "no model" 1 "is not a punctuation model" readable write --model "$tmp/book.txt" "$tmp/words.txt"
refused "the text itself as output" 2 "" readable learn --slots 3000 "$tmp/book.txt" -o "$tmp/book.txt"

# ---- recognised words ----
printf 'he HH IY\nsaw S AO\nlondon L AH N D AH N\n' > "$tmp/dict"
words="--words --no-lm --no-unknown -l $tmp/dict"
echo "- 10 HH 2 IY 2 - 2 S 2 AO 2 - 2 L 1 AH 2 N 2 D 1 AH 1 N 2 - 5" | "$ROWS" "$tmp/he.npy"
gives "text" "He saw London." decode -q $words "$tmp/he.npy"
gives "plain text" "he saw london" decode -q $words --no-readable "$tmp/he.npy"
gives "text with ids is Kaldi's, and plain" "he he saw london" decode -q $words --ids "$tmp/he.npy"
gives "TRN is plain" "he saw london (he)" decode -q $words -f trn "$tmp/he.npy"
run decode -q $words -f ctm "$tmp/he.npy"
hasnt "CTM is plain" "$out" "London"
run decode -q $words -f csv "$tmp/he.npy"
hasnt "CSV is plain" "$out" "London"
shows "JSON has both: plain" '"text":"he saw london"' decode -q $words -f json "$tmp/he.npy"
has "JSON has both: readable" "$out" '"readable":"He saw London."'
run decode -q $words --no-readable -f json "$tmp/he.npy"
hasnt "or one" "$out" '"readable"'
shows "subtitles" "He saw London." decode -q $words -f srt "$tmp/he.npy"
shows "subtitles of the web" "He saw London." decode -q $words -f vtt "$tmp/he.npy"
gives "words that are not sure" "[...]." decode -q $words --min-confidence 1 "$tmp/he.npy"
shows "JSON has them plain" '"text":"he saw london"' decode -q $words --min-confidence 1 -f json "$tmp/he.npy"
has "and not readable" "$out" '"readable":"[...]."'
# Words outside the lexicon, paragraphs and lines.
words="--words --no-lm -l $tmp/dict --tune unknown=-6"
echo "- 10 HH 2 IY 2 - 2 S 2 AO 2 - 2 Z 2 UW 2 B 2 - 200 L 1 AH 2 N 2 D 1 AH 1 N 2 - 2 HH 2 IY 2 - 5" | "$ROWS" "$tmp/long.npy"
gives "plain text has the phonemes of an unknown word" "he saw [z_uw_b] london he" decode -q $words --no-readable "$tmp/long.npy"
run decode -q $words "$tmp/long.npy"
if [ -f share/linnet/en/words.g2p ]; then
    ok "readable text spells it" test -n "$(printf '%s\n' "$out" | sed -n '/^He saw z[a-z]*b[a-z]*\.$/p')"
    run decode -q $words -f srt "$tmp/long.npy"
    ok "so have subtitles" test -n "$(printf '%s\n' "$out" | sed -n '/^He saw z[a-z]*b[a-z]*\.$/p')"
fi
refused "--ipa without phonemes" 1 "--ipa has no effect on readable text" decode -q $words --ipa -f srt "$tmp/long.npy"
shows "plain text has the phonemes of an unknown word in IPA" "saw [zub] london" decode -q $words --ipa --ids "$tmp/long.npy"
LINNET_G2P=$tmp/none.g2p
export LINNET_G2P
run decode -q $words "$tmp/long.npy"
is "without rules it is left out, and there are paragraphs" "He saw [...].||London he." "$(printf '%s' "$out" | tr '\n' '|')"
gives "without paragraphs" "He saw [...]. London he." decode -q $words --layout no-paragraphs "$tmp/long.npy"
run decode -q $words --layout times "$tmp/long.npy"
is "their times" "[00:00:00] He saw [...].||[00:00:06] London he." "$(printf '%s' "$out" | tr '\n' '|')"
run decode -q $words --layout times,columns=18 "$tmp/long.npy"
is "which count in a line" "[00:00:00] He saw|[...].||[00:00:06] London|he." "$(printf '%s' "$out" | tr '\n' '|')"
shows "JSON has segments" '"segments":[{"start":0.300,' decode -q $words -f json "$tmp/long.npy"
has "JSON has segments: their texts" "$out" '"text":"he saw [z_uw_b]","readable":"He saw [...]."},{"start":'
has "the last one" "$out" '"text":"london he","readable":"London he."}]'
shows "plain ones" '"text":"london he"}]' decode -q $words --no-readable -f json "$tmp/long.npy"
gives "plain text is a line" "he saw [z_uw_b] london he" decode -q $words --no-readable "$tmp/long.npy"
refused "layout of another format" 2 "--layout times has no effect on srt; it is for text" decode $words --layout times -f srt "$tmp/long.npy"
refused "cues of no subtitles" 2 "--cues word-times has no effect on srt; it is for vtt" decode $words --cues word-times -f srt "$tmp/long.npy"
refused "a unit of json" 2 "--unit has no effect on json" decode $words --unit words -f json "$tmp/long.npy"
refused "both units in a line" 2 "--unit both has no effect on ctm; it is for textgrid csv" decode $words --unit both -f ctm "$tmp/long.npy"
run decode -q $words --layout times -f srt,text --output-dir "$tmp/two" "$tmp/long.npy"
is "for one of two formats" "[00:00:00] He saw [...]." "$(head -n 1 "$tmp/two/long.txt")"
refused "the layout of several files" 1 "a line for each; --layout needs --output-dir" decode $words --layout times "$tmp/long.npy" "$tmp/he.npy"
run decode -q $words --no-readable --layout paragraphs,columns=9 "$tmp/long.npy"
is "plain text in paragraphs and lines" "he saw|[z_uw_b]||london he" "$(printf '%s' "$out" | tr '\n' '|')"
run decode -q $words --layout columns=9 --output-dir "$tmp/lines" "$tmp/long.npy"
is "lines in a folder" "He saw|[...]." "$(head -n 2 "$tmp/lines/long.txt" | paste -s -d '|')"
run decode -q --layout paragraphs,columns=12 "$tmp/long.npy"
is "phonemes in paragraphs" "HH IY S AO Z|UW B||L AH N D AH|N HH IY" "$(printf '%s' "$out" | tr '\n' '|')"
refused "not with ids" 2 "--ids and --layout exclude each other" decode -q $words --ids --layout paragraphs "$tmp/long.npy"
run decode -q -f json "$tmp/he.npy"
hasnt "phonemes are not read" "$out" '"readable"'
finish
