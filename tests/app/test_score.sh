# linnet score: formats, options, reports, two systems, maps, refused input. The counts themselves: tests/train/score/test_score.c.
. tests/app/common.sh

cd "$tmp" || exit 1
maps=$OLDPWD/share/linnet/en
printf 'W AH N T UW (s1-1)\nTH R IY (s2-1)\n' > ref.trn
printf 'W AH T UW UW (s1-1)\nTH R AH (s2-1)\n' > hyp.trn
printf 's1-1 w ah n t uw\ns2-1 th r iy\n' > ref.txt
printf 's2-1 1 0.0 0.1 TH\ns2-1 1 0.2 0.1 AH 0.9\ns2-1 1 0.1 0.1 R\ns1-1 1 0 1 W\ns1-1 1 1 1 AH\ns1-1 1 2 1 T\ns1-1 1 3 1 UW\ns1-1 1 4 1 UW\n' > hyp.ctm
cat > hyp.jsonl << 'END'
{"id":"s1-1","phones":[{"phone":"W"},{"phone":"AH"},{"phone":"T"},{"phone":"UW"},{"phone":"UW"}],"words":[{"word":"what"},{"word":"two"}]}
{"id":"s2-1","phones":["TH","R","AH"],"words":["three"]}
END
printf '{"id": "s1-1", "text": "one two"}\n{"id": "s2-1", "text": "three"}\n' > words.jsonl
last() { printf '%s\n' "$out" | tail -n 1; }
# scores "what" PART ARGS...: the last line of linnet score ARGS... contains PART
scores() { scores_what=$1 scores_part=$2; shift 2; run score "$@"; has "$scores_what" "$(last)" "$scores_part"; }

# ---- phones or words ----------------------------------------------------------------------------------------------------------------

printf 'the cat sat on a mat (s1-1)\nhe said so (s1-2)\n' > said.trn
printf 'the cat sat on the mat (s1-1)\nhe said so (s1-2)\n' > heard.trn
scores "words are recognised by their tokens" "WER 11.11 %: 1 substitutions" said.trn heard.trn
scores "--unit phones" "PER 11.11 %" --unit phones said.trn heard.trn
scores "--name" "TER 11.11 %" --name TER said.trn heard.trn
printf 'a b c d e f (s1-1)\n' > letters.trn
scores "single letters may be words or phones" "ER 0.00 %" letters.trn letters.trn
printf 'h ə l oʊ (s1-1)\nt͡ʃ ɪ n (s1-2)\n' > ipa.trn
scores "phones of the IPA" "PER 0.00 %" ipa.trn ipa.trn
printf 'h# dcl d ix (s1-1)\n' > timit.trn
scores "phones of TIMIT" "PER 0.00 %" timit.trn timit.trn
scores "words of JSON" "WER 33.33 %" --unit words words.jsonl hyp.jsonl

# ---- formats -----------------------------------------------------------------------------------------------------------------------

line='PER 37.50 %: 1 substitutions, 1 deletions, 1 insertions in 8 tokens of 2 utterances'
for hyp in hyp.trn hyp.ctm hyp.jsonl; do
    for ref in ref.trn ref.txt; do
        exits "$ref, $hyp" 0 run score $ref $hyp
        is "$ref, $hyp" "$line" "$(last)"
    done
done
cp hyp.ctm unnamed
run score ref.txt unnamed
is "a format recognised by its first line" "$line" "$(last)"
run score --format kaldi,ctm ref.txt unnamed
is "a format that is named" "$line" "$(last)"
refused "no format" 2 "--format is REF or REF,HYP, each one of auto|trn|kaldi|ctm|json|stm" score --format kaldi,ctx ref.txt unnamed
refused "three formats" 2 "--format is REF or REF,HYP" score --format kaldi,ctm,ctm ref.txt unnamed
refused "another format" 1 "" score --format stm ref.txt unnamed
run score --unit words words.jsonl hyp.jsonl
is "words of JSON lines" 'WER 33.33 %: 1 substitutions, 0 deletions, 0 insertions in 3 tokens of 2 utterances' "$(last)"
scores "--case" "PER 100.00 %: 8 substitutions" --case ref.txt hyp.trn

# ---- output ------------------------------------------------------------------------------------------------------------------------

shows "intervals" "95 % interval [" score ref.trn hyp.trn
has "intervals: what was drawn" "$out" "over 2 utterances"
has "intervals: speakers" "$out" "over 2 speakers (bootstrap, 1000 resamples, seed 1)"
again=$out
gives "the same seed, the same numbers" "$again" score ref.trn hyp.trn
printf 'W AH1 N T UW2 (a-1)\nCH IY Z (a-2)\n' > arpa.trn
printf 'w ʌ n t uː (a-1)\nt͡ʃ i s (a-2)\n' > ipa.trn
run score --bootstrap 0 --ipa arpa.trn ipa.trn
is "--ipa: names and symbols are the same phones" 'PER 12.50 %: 1 substitutions, 0 deletions, 0 insertions in 8 tokens of 2 utterances' "$(last)"
printf 'wˈʌn tuː (a-1)\nCH i z ? (a-2)\n' > ipa.trn
run score --bootstrap 0 --ipa arpa.trn ipa.trn
is "--ipa: several symbols together; what is not a phone stays as it is" \
    'PER 12.50 %: 0 substitutions, 0 deletions, 1 insertions in 8 tokens of 2 utterances' "$(last)"
refused "--ipa of words" 2 "--ipa compares phones" score --ipa --unit words ref.trn hyp.trn
run score --bootstrap 0 ref.trn hyp.trn
hasnt "no resamples, no intervals" "$out" "interval"
shows "resamples" "50 resamples, seed 1" score --bootstrap 50 ref.trn hyp.trn
shows "alignments" "REF:  w ah N t ** uw " score --align --utterances --confusions 3 ref.trn hyp.trn
has "alignments: hypothesis" "$out" "HYP:  w ah * t UW uw "
has "utterances" "$out" "s2-1                            1        3    66.67"
has "confusions" "$out" "1    50.00  uw"
has "pairs" "$out" "iy <-> ah"
is "the line that scripts read is still the last" "$line" "$(last)"
gives "--output" "" score --name WER -o out.txt ref.trn hyp.trn
has "--output: the file" "$(cat out.txt)" "WER 37.50 %"
run score --json --utterances --against ref.trn ref.trn hyp.trn
has "json" "$out" '"measure":"PER","utterances":2,"wrong_utterances":2,"tokens":8,"correct":6,"substitutions":1,"deletions":1,"insertions":1,"rate":0.375000'
has "json: against" "$out" '"against":{"name":"ref.trn"'
if command -v python3 > /dev/null; then
    ok "it is JSON" sh -c "'$LINNET' score --json --utterances --against ref.trn ref.trn hyp.trn | python3 -m json.tool"
fi
exits "html" 0 run score --html report.html --against ref.trn ref.trn hyp.trn
has "html beside text" "$out" "$line"
has "html" "$(cat report.html)" "<h1>PER 37.50 %</h1>"
hasnt "html needs nothing else" "$(cat report.html)" "http"
if [ -e /dev/full ]; then refused "a full disk" 1 "cannot write /dev/full" score --html /dev/full -o out.txt ref.trn hyp.trn; fi
refused "no such folder" 1 "cannot write none/x.html" score --html none/x.html -o out.txt ref.trn hyp.trn

# ---- two systems -------------------------------------------------------------------------------------------------------------------

shows "the other's rate" "against ref.trn: PER 0.00 %" score --against ref.trn ref.trn hyp.trn
has "the difference" "$out" "difference 37.50 points, 95 % interval ["
has "probability of improvement" "$out" "probability of improvement 0.0 % over utterances, 0.0 % over speakers; better in 0 utterances, worse in 2"
has "matched pairs" "$out" "matched pairs: 2 segments"
is "the first system's line is the last" "$line" "$(last)"
printf 'a b (s-1)\nc d (s-2)\n' > even.trn && printf 'a (s-1)\nc (s-2)\n' > short.trn
shows "matched pairs: all equal" "mean difference 1.000 errors, p < 0.0001" score --against even.trn even.trn short.trn
shows "matched pairs: without z" '"deviation":0.000000,"p":0.000000}' score --json --against even.trn even.trn short.trn
run score --html even.html --against even.trn even.trn short.trn
has "html: without z" "$(cat even.html)" "mean difference 1.000 errors, p &lt; 0.0001"
refused "resamples are needed" 2 "--against needs resamples" score --bootstrap 0 --against ref.trn ref.trn hyp.trn

# ---- words that count as the same ---------------------------------------------------------------------------------------------------

printf "it's any colour (s1-1)\nhe said so (s1-2)\n" > british.trn
printf "it is any color (s1-1)\nhe said so uh (s1-2)\n" > american.trn
scores "no map" "WER 66.67 %: 2 substitutions, 0 deletions, 2 insertions in 6 tokens" --bootstrap 0 british.trn american.trn
scores "the English map" "WER 0.00 %" --unit words --bootstrap 0 --glm "$maps/words.glm" british.trn american.trn
printf 'so => thus\nso\n' > bad.glm
refused "a map with a bad line" 1 "bad.glm:2: 'so': a rule is 'words => words'" score --glm bad.glm british.trn american.trn
refused "no such map" 1 "none.glm" score --glm none.glm british.trn american.trn

# ---- words without punctuation and numbers ------------------------------------------------------------------------------------------

printf 's1-1 “Well-known,” said Mr. Smith; it’s colour ’cause 105 are 20%% at 10 a.m.\n' > punctuated.txt
printf 's1-1 well known said mister smith it is color because one hundred five are twenty per cent at ten a m\n' > bare.txt
run score --bootstrap 0 --unit words punctuated.txt bare.txt
has "punctuation is mentioned" "$err" "linnet: the reference has punctuation, which counts as a part of its words ('smith;')"
scores "--normalize, with a map" "WER 0.00 %: 0 substitutions, 0 deletions, 0 insertions in 20 tokens" --bootstrap 0 --normalize --glm "$maps/words.glm" punctuated.txt bare.txt
is "and without a word about it" "" "$err"
scores "on both sides" "WER 0.00 %: 0 substitutions, 0 deletions, 0 insertions in 20 tokens" --bootstrap 0 --normalize --glm "$maps/words.glm" bare.txt punctuated.txt
printf 's1-1 Es sind 21 Häuser.\n' > de.txt
printf 's1-1 es sind einundzwanzig häuser\n' > einundzwanzig.txt
scores "numbers of the language" "WER 0.00 %" --bootstrap 0 --normalize --language de de.txt einundzwanzig.txt
refused "phones have no punctuation" 2 "--normalize compares words" score --normalize --ipa ref.trn hyp.trn

# ---- maps and speakers -------------------------------------------------------------------------------------------------------------

printf 'iy ah\nn\n' > small.map
scores "a map" "PER 14.29 %: 0 substitutions, 0 deletions, 1 insertions in 7 tokens" --map small.map ref.trn hyp.trn
has "tokens that were deleted" "$out" "1 tokens were deleted by the map"
has "tokens outside the map" "$out" "not in the map, scored as they are: w, t, uw, th, r"
printf 'h# q ax zh h# (fcjf0_sa1)\n' > timit.ref
printf 'pau ah sh epi (fcjf0_sa1)\n' > timit.hyp
scores "TIMIT's 61 phones as 39" "PER 0.00 %" --map "$maps/timit-61-39.map" timit.ref timit.hyp
has "one utterance has no interval" "$out" "fcjf0"
hasnt "one utterance has no interval" "$out" "interval"
printf 's1-1 tom\ns2-1 tom\n' > utt2spk
shows "speakers from a table" "tom                             2        8" score --utt2spk utt2spk ref.trn hyp.trn
printf 's1-1 tom\n' > utt2spk
refused "a speaker is missing" 1 "utt2spk has no line for utterance 's2-1'" score --utt2spk utt2spk ref.trn hyp.trn

# ---- refused -----------------------------------------------------------------------------------------------------------------------

refused "no such map" 1 "none.map" score --map none.map ref.trn hyp.trn
printf '{"id":"s1-1","phones":["a"]}\n' > bad.jsonl
refused "no words in it" 1 'bad.jsonl:1: the object has neither a list "words" nor a string "text"' score --unit words ref.trn bad.jsonl
refused "an utterance is missing" 1 "hypothesis bad.jsonl lacks 1 (s2-1)" score ref.trn bad.jsonl

printf 'AH T IY (u)\n' > i.trn
printf 'u 1 0 1 \312\214\nu 1 1 1 ti\313\220\n' > i.ctm
shows "the IPA in a CTM" "PER 0.00 %: 0 substitutions, 0 deletions, 0 insertions in 3 tokens" score --ipa i.trn i.ctm

# ---- Unicode -----------------------------------------------------------------------------------------------------------------------

printf 'caf\303\251 the stra\303\237e (u)\n' > u.trn
printf 'cafe\314\201 t\302\255he stra\303\237\342\200\213e (u)\n' > v.trn
shows "letters and accents apart, invisible characters" "WER 0.00 %" score u.trn v.trn

# ---- STM ---------------------------------------------------------------------------------------------------------------------------

printf ';; a comment\nm 1 tom 0 2 <o,f0,male> mary had { a / @ } little lamb\n' > x.stm
printf 'm 1 ann 2 4 IGNORE_TIME_SEGMENT_IN_SCORING\nm 1 tom 4 6 (uh) yes\n' >> x.stm
printf 'm A %s\n' '0.1 .2 mary' '0.5 .2 had' '1 .2 little' '1.8 .3 lamb' '3 .2 never' '4.5 .2 no' > h.ctm
run score --align x.stm h.ctm
has "an STM and a CTM" "$out" "WER 16.67 %: 1 substitutions, 0 deletions, 0 insertions in 6 tokens of 2 utterances"
has "an optional word" "$out" "REF:  uh YES"
shows "an optional word in JSON" '"correct":5' score --json x.stm h.ctm
printf 'm 1 0 1 a\nn 1 0 1 a\n' > h.ctm
refused "a file that the STM lacks" 1 "h.ctm:2: x.stm has no line for this file and channel: 'n 1'" score x.stm h.ctm

# ---- against sclite ----------------------------------------------------------------------------------------------------------------

if command -v sctk > /dev/null; then
    golden=$OLDPWD/tests/golden
    sctk sclite -r "$golden/score_real_ref.trn" trn -h "$golden/score_real_hyp.trn" trn -i spu_id -o pra stdout 2> /dev/null |
        sed -n '/^id:/,$p' | grep -v -e '^Speaker sentences' -e '^$' > theirs
    "$LINNET" score --align --bootstrap 0 "$golden/score_real_ref.trn" "$golden/score_real_hyp.trn" | sed '/^speaker/,$d' | grep -v '^$' > ours
    ok "sclite prints the same alignments" cmp theirs ours
    ok "and prints some" test -s theirs
fi
finish
