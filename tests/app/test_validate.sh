# linnet validate: a corpus with one fault of every kind, two sets, a model, JSON; and a clean one.
. tests/app/common.sh

make_model || { fail "a small model"; finish; }
d=$tmp/data lex="-l $tmp/dict"
cd "$tmp" || exit 1

# ---- clean -----------------------------------------------------------------------------------------------------------------------

run validate data --audio-root data $lex
is "clean: status" "0 nothing is wrong" "$status $(echo "$out" | tail -n 1)"
has "what there is" "$out" "data: 4 utterances, 6.0 s, 2 speakers"
has "rates" "$out" "16000 Hz, 1 channel: 4"
has "words" "$out" "0 of 8 words (0.00 %) are not in $tmp/dict; its phones: 39"
has "phones that no text has" "$out" "note: phones that no text has: 29 (AA AE AW AY B"
printf 'sound.wav\tone two\n' > list && cp data/u1.wav sound.wav
run validate list $lex -q
is "a list" "0 list: 1 utterance, 1.5 s, speakers unknown" "$status $(echo "$out" | head -n 1)"
printf 'sound.wav\tone two\r\n' > list
run validate list $lex -q
is "a list with CR LF" "0 list: 1 utterance, 1.5 s, speakers unknown" "$status $(echo "$out" | head -n 1)"
mkdir nobody && cp data/text data/wav.scp nobody && cp data/*.wav nobody
run validate nobody --audio-root nobody $lex -q --json
has "no utt2spk" "$out" '"utterances": 4, "seconds": 6.000, "speakers": null}'
printf 'sound.wav\tone yak\n' > yaks && printf 'yak Y AE K\n' > added
shows "a word outside the lexicon" "1 of 2 words (50.00 %) are not in $tmp/dict" validate yaks $lex -q
exits "--add-lexicon" 0 run validate yaks $lex --add-lexicon added -q
has "one of it" "$out" "0 of 2 words (0.00 %) are not in $tmp/dict"
refused "--add-lexicon: no such file" 1 "none.dict" validate yaks $lex --add-lexicon none.dict
printf '{"audio_filepath": "sound.wav", "offset": 0.5, "duration": 9, "text": "one"}\n' > beyond
shows "a part that ends behind its sound" "  sound-0000500  its part ends 8.000 s behind the end of the sound" validate beyond $lex -q

# ---- one fault of every kind -----------------------------------------------------------------------------------------------------

mkdir bad
cp data/u1.wav bad/a.wav
cp data/u1.wav bad/twin.wav
"$SOUND" bad/still.wav kind=silence seconds=1
"$SOUND" bad/fast.wav seconds=0.3 seed=5
"$SOUND" bad/loud.wav kind=hum50 level=6 seconds=1
"$SOUND" bad/low.wav rate=8000 seconds=2 seed=6
head -c 20000 data/u2.wav > bad/cut.wav
printf '%s\n' 'a a.wav' 'twin twin.wav' 'still still.wav' 'fast fast.wav' 'loud loud.wav' 'low low.wav' 'cut cut.wav' 'none none.wav' \
    'mute a2.wav' 'digit a3.wav' 'a a.wav' > bad/wav.scp
cp data/u3.wav bad/a2.wav
cp data/u4.wav bad/a3.wav
printf '%s\n' 'a one two' 'twin ONE' 'still two' 'fast one two three four one two three' 'loud two' 'low three жук' 'cut four' 'none one' \
    'digit ^ two' 'ghost one' > bad/text
printf '%s\n' 'a Ann' 'twin ann' 'still bob' 'fast bob' 'loud bob' 'low bob' 'cut bob' 'none bob' 'mute bob' 'digit bob' > bad/utt2spk
exits "faults" 1 run validate bad --audio-root bad $lex --oov oov
fault() { has "$1" "$(echo "$out" | tr '\n' '|')" "$2"; }
fault "sound without text" "sound without text: 1|  mute|"
fault "text without sound" "text without sound: 1|  ghost  line 10|"
fault "a name twice" "names that are there twice: 1|  a  line 11|"
fault "no such sound" "sound that cannot be read: 1|  none  cannot open bad/none.wav: No such file"
fault "a truncated sound" "sound that is incomplete: 1|  cut  bad/cut.wav"
fault "silence" "empty or silent sound: 1|  still  1.000 s of zeros|"
fault "clipping" "clipped sound: 1|  loud  "
fault "signs" "text that cannot be read as words: 1|  digit  '^' at byte 1"
fault "a word without pronunciation" "words that neither the lexicon nor rules pronounce: 1|  жук  1|"
fault "too short" "sound too short for its text: 1|  fast  19 phones in 0.30 s|"
fault "the same sound" "the same sound twice: 1|  twin  the samples of a|"
fault "a speaker in two spellings" "speakers that are there twice: 1|  ann  also spelled Ann|"
fault "rates" "16000 Hz, 1 channel: 8, 8000 Hz, 1 channel: 1|"
fault "the count" "|12 kinds of problems"
is "--oov" "жук	1	none	" "$(cat oov)"
exits "JSON" 1 run validate bad --audio-root bad $lex --json -o report.json
has "JSON: rates" "$(cat report.json)" '"rates": {"16000 Hz, 1 channel": 8, "8000 Hz, 1 channel": 1}, "words": 16, "unknown": 1'
has "JSON: a fault" "$(cat report.json)" '"clipped": [{"name": "loud", "more": "'
has "JSON: no fault" "$(cat report.json)" '"no_fit": []'
! command -v python3 > /dev/null || ok "it is JSON" python3 -m json.tool report.json
for i in 1 2 3; do echo "m$i a2.wav"; done >> bad/wav.scp && for i in 1 2 3; do echo "m$i bob"; done >> bad/utt2spk
run validate bad --audio-root bad $lex --most 1
has "--most" "$(echo "$out" | tr '\n' '|')" "sound without text: 4|  mute|  and 3 more; --most 0 lists them all|"

# ---- two sets, another language's lexicon, a model -------------------------------------------------------------------------------

cp -r data other
exits "two sets" 1 run validate data other --audio-root data $lex
fault "a speaker in both" "speakers that are there twice: 2|  s1  in data and other|  s2  in data and other|"
fault "a sound in both" "the same sound twice: 4|  other u1  the samples of data u1|"
printf 'ja j a\nnein n a j n\nund u n t\n' > de.dict
exits "a lexicon of another language" 1 run validate data --audio-root data -l de.dict
fault "its share" "too many words outside the lexicon: 1|  100.0 % of the words  is de.dict a lexicon of this language?|"
"$LINNET" train train.conf --train set.lfc --dev set.lfc --folder learnt --epochs 400 --lr 3e-3 --schedule constant -q
run validate data --audio-root data $lex -m learnt/best.safetensors -q
is "a model that has learnt the texts" "0 nothing is wrong" "$status $(echo "$out" | tail -n 1)"
sed 's/^u1 .*/u1 four four four four four four four four four four/' data/text > t && mv t data/text
exits "a text that does not fit" 1 run validate data --audio-root data $lex -m learnt/best.safetensors -q
fault "a text that does not fit" "text that does not fit its sound: 1|  u1  the text does not seem to match the sound"

# 11 phones in half a second: 16 steps of 3 frames of 10 ms, but 10 steps of 2 frames of 25 ms
printf 'half.wav\tone two three four\n' > half && "$SOUND" half.wav seconds=0.5
"$LINNET" prepare data --audio-root data --lexicon dict --stack 2 --fbank hop-ms=25 -q -o slow.lfc
"$LINNET" train train.conf --train slow.lfc --dev slow.lfc --folder slow --epochs 1 --stack 2 -q 2> .log || fail "a model of 25 ms" "$(cat .log)"
run validate half $lex -q
hasnt "long enough for other models" "$out" "too short"
run validate half $lex -m slow/best.safetensors -q
fault "too short for this model" "sound too short for its text: 1|  half  11 phones in 0.50 s|"
run validate half $lex -m slow/best.safetensors --stack 1 -q
hasnt "but not for the stack that is given" "$out" "too short"

# ---- a folder with texts beside its sounds, as linnet align reads it -----------------------------------------------------------------

mkdir -p mfa/anna "mfa/ben b" more/Anna
cp data/u1.wav mfa/anna/one.wav && printf '\357\273\277one\r\ntwo\r\n' > mfa/anna/one.lab
cp data/u2.wav "mfa/ben b/two.wav" && printf 'two' > "mfa/ben b/two.txt"
grid='File type = "ooTextFile" Object class = "TextGrid" 0 1.5 <exists> 2 "IntervalTier" "eve" 0 1.5 2 0 0.7 "three" 0.7 0.8 "[laughs]"
"IntervalTier" "dan" 0 1.5 2 0 0.8 "" 0.8 1.5 "four"'
cp data/u3.wav mfa/call.wav && echo "$grid" > mfa/call.TextGrid
run validate mfa $lex -q
is "texts beside sounds: status" "0 nothing is wrong" "$status $(echo "$out" | tail -n 1)"
fault "an utterance of each interval, speakers of folders and tiers" "mfa: 4 utterances, 4.4 s, 4 speakers|"
fault "all words" "0 of 5 words (0.00 %) are not in "
cp data/u4.wav more/Anna/one.wav && echo 'one two three four' > more/Anna/one.lab && cp more/Anna/one.lab more/lost.txt
cp data/u2.wav more/bad.wav && echo 'no grid' > more/bad.TextGrid && cp data/u4.wav more/mute.wav
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do : > more/none$i.wav; done
exits "faults beside sounds" 1 run validate mfa more $lex -q --most 0
fault "all sounds without text" "sound without text: 22|  more/mute.wav|  more/none1.wav|"
fault "to the last" "|  more/none9.wav|  more bad|"
fault "a text without sound" "text without sound: 1|  more/lost.txt|"
fault "no TextGrid" "text that cannot be read as words: 1|  more bad  more/bad.TextGrid:2: this is not a TextGrid"
fault "a speaker in two sets" "speakers that are there twice: 1|  Anna  in mfa and more|"
cp more/Anna/one.lab before.lab
refused "over a text" 1 "one.lab" validate more $lex --oov more/Anna/one.lab
ok "which is as it was" cmp before.lab more/Anna/one.lab

# ---- names of folders -------------------------------------------------------------------------------------------------------------

two=$(printf 'a\nb') tab=$(printf 'c\td')
mkdir "$two" "$tab"
for i in "$two" "$tab"; do printf 'u1 x.wav\n' > "$i/wav.scp" && printf 'u1 one\n' > "$i/text"; done
run validate "$two" "$tab" $lex -q
fault "a line end in the name of a folder" "sound that cannot be read: 2|  a b u1  cannot open x.wav: No such file or directory|  c d u1  cannot"
run validate "$two" "$tab" $lex -q --json
has "in JSON" "$out" '"unreadable": [{"name": "a\u000ab u1", "more": "cannot open x.wav: No such file or directory"}, {"name": "c\u0009d u1"'
refused "a model and a set" 2 "exclude each other" validate data -m model.safetensors --phones set
cp data/u1.wav before.wav
refused "over a sound" 1 "u1.wav" validate data --audio-root data $lex --oov data/u1.wav
ok "which is as it was" cmp before.wav data/u1.wav
refused "no such folder" 1 "cannot open none" validate none $lex
mkdir empty
refused "a folder without lists" 1 "there is no wav.scp, and no sound with a text beside it" validate empty $lex
printf 'u1 one\n' > empty/text
refused "a folder without wav.scp" 1 "cannot open empty/wav.scp" validate empty $lex
finish
