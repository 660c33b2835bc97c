# [native] recipes/open: every stage of run.sh and lm.sh, and cheap ones of results.sh, on a tiny corpus of synthetic sounds.
. tests/app/common.sh
# Not under a sanitizer: tests of linnet's commands run the same code there.
[ "${CONFIG:-release}" = release ] || finish

recipe() { script "open/$@"; }

c="$tmp/a corpus" w="$tmp/a work" k=0
printf 'one W AH N\none(2) HH W AH N\ntwo T UW\nthree TH R IY\nfour F AO R\n' > "$tmp/dict"
for word in a the in is it of he mister tis "one's" nato number missing list exceptions; do echo "$word AH"; done >> "$tmp/dict"
for set in train_native train_read train_games train_pseudo train_nonnative train_cv train_stories dev_native dev_nonnative test_native; do
    mkdir -p "$c/$set"
    for i in 1 2; do
        k=$((k + 1))
        "$SOUND" "$c/$set/u$i.wav" seconds=1.5 seed=$k
        echo "$set-u$i $set/u$i.wav" >> "$c/$set/wav.scp"
        echo "$set-u$i $set" >> "$c/$set/utt2spk"
    done
    printf '%s-u1 ONE TWO THREE\n%s-u2 TWO FOUR ONE\n' $set $set > "$c/$set/text"
done
mkdir -p "$tmp/LibriSpeech/train-clean-5/7/1" "$tmp/quiet"
for i in 0 1; do "$SOUND" "$tmp/LibriSpeech/train-clean-5/7/1/7-1-000$i.wav" seconds=1.5 seed=9$i; done
printf '7-1-0000 FOUR TWO\n7-1-0001 ONE ONE THREE\n' > "$tmp/LibriSpeech/train-clean-5/7/1/7-1.trans.txt"
mkdir -p "$tmp/voice/cv-valid-dev" "$tmp/voice/clips"
"$SOUND" "$tmp/voice/sound.wav" seconds=1.5 seed=8
for clip in cv-valid-dev/sample-000000 cv-valid-dev/sample-000001 cv-valid-dev/sample-000002 clips/common_voice_en_7 clips/common_voice_en_8 clips/common_voice_en_9 clips/common_voice_en_10; do cp "$tmp/voice/sound.wav" "$tmp/voice/$clip.mp3"; done
head -c 999 "$tmp/voice/sound.wav" > "$tmp/voice/clips/common_voice_en_11.mp3"
cat > "$tmp/voice/cv-valid-dev.csv" <<END
filename,text,up_votes,down_votes,age,gender,accent,duration
cv-valid-dev/sample-000000.mp3,one two,1,0,,,,
cv-valid-dev/sample-000001.mp3,a number is  missing,1,0,,,,
cv-valid-dev/sample-000002.mp3,in the list of exceptions,1,0,,,,
cv-valid-dev/sample-000003.mp3,the clip is not there,1,0,,,,
END
printf 'client_id\tpath\tsentence\tup_votes\tdown_votes\n' > "$tmp/voice/validated.tsv"
printf '0123456789abcdef\tcommon_voice_en_%s.mp3\t%s\t%s\t%s\n' 7 'Mr. Four, “three” – ’tis one’s.' 2 0 8 'It is 4' 2 0 9 'He disagrees' 2 2 10 'The NATO' 2 0 11 'Too short' 2 0 >> "$tmp/voice/validated.tsv"
echo cv1-dev-000002 > "$tmp/voice/except"
echo cv0123456789ab-7 > "$tmp/voice/except-7"
"$SOUND" "$tmp/quiet/one.wav" seconds=2 kind=pink level=-30 && echo one.wav > "$tmp/quiet/list"
mkdir -p "$tmp/train_more"
for name in wav.scp text utt2spk; do sed 's/train_cv/train_more/' "$c/train_cv/$name" > "$tmp/train_more/$name"; done
sed -i "s| train_cv/| $c/train_cv/|" "$tmp/train_more/wav.scp"
cat > "$tmp/tiny.conf" <<END
norm = pre
layers = 1
heads = 2
head-width = 8
feedforward = 16
stack = 3
ahead = 2
positions = conv
conv-kernel = 5
conv-layers = 1
epochs = 1
ema = 0.9
lr = 1e-3
END
sed 's/^conv-kernel.*/conv-kernel = 11/; s/^positions.*/positions = centred-conv/' "$tmp/tiny.conf" > "$tmp/offline.conf"
echo direction = bidirectional >> "$tmp/offline.conf"
{ cat "$tmp/tiny.conf"; echo decay = gated; } > "$tmp/stream.conf"


# ---- run.sh ----------------------------------------------------------------------------------------------------------------------

run() { recipe run --corpus "$c" --librispeech "$tmp" --common-voice "$tmp/voice/cv-valid-dev.csv" --common-voice "$tmp/voice/validated.tsv" --more "$tmp/train_more" --quiet "$tmp/quiet" --work "$w" --lexicon "$tmp/dict" --conf-folder "$tmp" --precision fp32 --device cpu --threads 1 "$@"; }
exits "run" 0 run
is "run: a row for each set and model" "dev_native|dev_native|dev_nonnative|dev_nonnative|test_native|test_native|" "$(sed 1,2d "$w/RESULTS.md" | awk '{ printf "%s|", $2 }')"
is "run: the counts of a row" "2 16" "$(awk '$2 == "test_native" && $4 == "offline" { print $6, $8 }' "$w/RESULTS.md")"
for model in stream offline; do
    about=$("$LINNET" info --json "$w/$model.safetensors")
    for set in train_more train-clean-5 common-voice train_stories; do has "run: the $model model was trained on $set" "$about" "\"set\":\"$set\""; done
    has "run: the $model model has its name" "$about" "linnet-open-$model"
done
model=$(cksum < "$w/stream.safetensors")
rm "$w/stream.safetensors" "$w/decode/test_native.stream.score"
exits "run: a stage again" 0 run --stage train --models stream
is "run: a stage again: the same model" "$model" "$(cksum < "$w/stream.safetensors")"
ok "run: a stage alone" test ! -f "$w/decode/test_native.stream.score"
printf 'one AH\ntwo T UW\n' > "$tmp/other-dict"
exits "run: another lexicon" 1 run --stage features --lexicon "$tmp/other-dict"
has "run: another lexicon" "$err" "dev_native*.lfc were made with other options or of another $c/dev_native; remove"
declines "run: no corpus" "where is the corpus" run --work "$tmp/x"
declines "run: no such stage" "there is no stage '2'" run --stage 2 --work "$tmp/x"
mkdir -p "$tmp/other/train_cv" "$tmp/other/more"
: > "$tmp/other/train_cv/wav.scp" && : > "$tmp/other/more/wav.scp"
declines "run: a set with the name of another" "another set is called train_cv too" \
    run --corpus "$c" --more "$tmp/other/train_cv" --lexicon "$tmp/dict" --work "$tmp/x"
declines "run: a set that the training would not find" "rename it, as the training takes caches named train_* only" \
    run --corpus "$c" --more "$tmp/other/more" --lexicon "$tmp/dict" --work "$tmp/x"
declines "run: a set of --more is missing" "$tmp/none/wav.scp does not exist" run --corpus "$c" --more "$tmp/none" --lexicon "$tmp/dict" --work "$tmp/x"
declines "run: a set is missing" "train_native/wav.scp does not exist" run --corpus "$tmp" --lexicon "$tmp/dict" --work "$tmp/x"

# ---- others.sh -------------------------------------------------------------------------------------------------------------------

mkdir "$tmp/train_other"
for name in wav.scp text utt2spk; do sed 's/^train_more/train_other/' "$tmp/train_more/$name" > "$tmp/train_other/$name"; done
o="$tmp/others"
mkdir -p "$o/so/train" "$o/corpus/train_nonnative" "$o/corpus/dev_nonnative" "$o/vctk/txt/p1" "$o/vctk/wav48/p1"
for k in 1 2 3; do echo "00$k A WORD" >> "$o/so/train/text"; echo "00$k 000$k" >> "$o/so/train/utt2spk"; echo "00$k WAVE/$k.WAV" >> "$o/so/train/wav.scp"; done
echo so0001-001 so0001 > "$o/corpus/train_nonnative/utt2spk"
echo so0002-900 so0002 > "$o/corpus/dev_nonnative/utt2spk"
for k in 1 2 3 4 5; do : > "$o/vctk/wav48/p1/p1_$k.wav"; done
echo "ADVENTURE, it's his." > "$o/vctk/txt/p1/p1_1.txt"
echo "The TV is on." > "$o/vctk/txt/p1/p1_2.txt"
echo "Ask Mr Dick." > "$o/vctk/txt/p1/p1_3.txt"
exits "others" 0 recipe others --speechocean "$o/so" --vctk "$o/vctk" --speaker p1 --corpus "$o/corpus" --output "$o/data"
is "others: neither what is used nor a speaker of dev" "so0003-003 A WORD" "$(cat "$o/data/train_speechocean/text")"
is "others: the sound" "so0003-003 $o/so/WAVE/3.WAV" "$(cat "$o/data/train_speechocean/wav.scp")"
is "others: no abbreviations" "vctk_p1_1 ADVENTURE IT'S HIS" "$(cat "$o/data/train_vctk/text")"
declines "others: no speech" "which speech" others --output "$tmp/x"
declines "others: no sound" "is the sound there" others --vctk "$o/vctk" --speaker p2 --corpus "$o/corpus" --output "$tmp/x"

# ---- labelled.sh -----------------------------------------------------------------------------------------------------------------

mkdir "$tmp/unlabelled"
for k in 1 2 3 4 5 6 7 8 9; do echo "u$k u$k.mp3" >> "$tmp/unlabelled/wav.scp"; echo "u$k s$k" >> "$tmp/unlabelled/utt2spk"; done
{
    printf 'u1\t2\t-0.2\t0\tMr. Dick, \342\200\230tis one\342\200\231s.\n'
    printf 'u2\t2\t-0.31\t0\tNot certain of it.\n'
    printf 'u3\t2\t-0.2\t0\tThere are 4 of them.\n'
    printf 'u4\t2\t-0.2\t0\tThe NATO is it.\n'
    printf 'u5\t2\t-0.2\t0\tAlone.\n'
    printf 'u6\t20\t-0.2\t0\tSlow and few.\n'
    printf 'u7\t1\t-0.2\t0\tMore of them than one can say.\n'
    printf 'v1\t2\t-0.2\t0\tAn unknown name.\n'
} > "$tmp/labels.tsv"
exits "labelled" 0 recipe labelled --data "$tmp/unlabelled" --labels "$tmp/labels.tsv" --output "$tmp/labelled"
is "labelled: what is left" "u1 MISTER DICK TIS ONE'S" "$(cat "$tmp/labelled/text")"
is "labelled: its sound and speaker" "u1 u1.mp3|u1 s1" "$(cat "$tmp/labelled/wav.scp")|$(cat "$tmp/labelled/utt2spk")"
recipe labelled --data "$tmp/unlabelled" --labels "$tmp/labels.tsv" --output "$tmp/labelled" --above -0.4
is "labelled: a lower limit" "u1 u2 " "$(cut -d ' ' -f 1 "$tmp/labelled/text" | tr '\n' ' ')"
echo u1 > "$tmp/except"
recipe labelled --data "$tmp/unlabelled" --labels "$tmp/labels.tsv" --output "$tmp/labelled" --above -0.4 --except "$tmp/except"
is "labelled: but for those" "u2 " "$(cut -d ' ' -f 1 "$tmp/labelled/text" | tr '\n' ' ')"
declines "labelled: nothing is left" "no utterance is left" labelled --data "$tmp/unlabelled" --labels "$tmp/labels.tsv" --output "$tmp/labelled" --above -0.1

# ---- coded.sh ------------------------------------------------------------------------------------------------------------------------

if command -v ffmpeg > /dev/null; then
    recipe coded --data "$c/train_cv" --data "$c/train_read" --audio-root "$c" --every 2 --codecs phone --output "$tmp/train_coded"
    is "coded: status" 0 "$status"
    is "coded: each second one" "coded-train_cv-u2 TWO FOUR ONE|coded-train_read-u2 TWO FOUR ONE|" "$(tr '\n' '|' < "$tmp/train_coded/text")"
    is "coded: speakers" "coded-train_cv-u2 train_cv|coded-train_read-u2 train_read|" "$(tr '\n' '|' < "$tmp/train_coded/utt2spk")"
    ok "coded: linnet reads it" "$LINNET" prepare "$tmp/train_coded" --lexicon "$tmp/dict" -q -o "$tmp/coded.lfc"
    declines "coded: no such codec" "no codec is called worse" coded --data "$c/train_cv" --audio-root "$c" --every 1 --codecs worse --output "$tmp/coded2"
    declines "coded: no speech" "which speech" coded --output "$tmp/coded2"
fi

# ---- common_voice.sh -------------------------------------------------------------------------------------------------------------

recipe common_voice --list "$tmp/voice/cv-valid-dev.csv" --list "$tmp/voice/validated.tsv" --output "$tmp/voice/data" --except "$tmp/voice/except"
is "common_voice: status" 0 "$status"
is "common_voice: what is left" "cv0123456789ab-7 MISTER FOUR THREE TIS ONE'S|cv1-dev-000000 ONE TWO|" "$(tr '\n' '|' < "$tmp/voice/data/text")"
is "common_voice: speakers" "cv0123456789ab|cv1-dev-000000|" "$(awk '{ printf "%s|", $2 }' "$tmp/voice/data/utt2spk")"
is "common_voice: the clips" 2 "$(cut -d ' ' -f 2- "$tmp/voice/data/wav.scp" | xargs ls | wc -l | tr -d ' ')"
declines "common_voice: no list" "give --list" common_voice --output "$tmp/x"
declines "common_voice: another file" "neither cv-valid-" common_voice --list "$tmp/voice/except" --output "$tmp/x"
declines "common_voice: no clips" "are the clips there" common_voice --list "$tmp/voice/validated.tsv" --output "$tmp/x" --except "$tmp/voice/except-7"

# ---- lm.sh -----------------------------------------------------------------------------------------------------------------------

for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do printf 'one two three four\nfour two one\n'; done > "$tmp/books.txt"
{ printf 'three four one\nfour three\none three\nnato nato\nnato nato\nthe list\n'; for i in 1 2 3 4 5; do printf 'fours two\nthree fours\none fours xvi\n'; done; } > "$tmp/modern.txt"
"$LINNET" ngram count -q --order 3 "$tmp/books.txt" -o "$tmp/general.arpa" 2> "$tmp/.log"
lm() { recipe lm --corpus "$c" --text "$tmp/books.txt" --modern "$tmp/modern.txt" --words "$tmp/general.arpa" --lexicon "$tmp/dict" --lines 500 "$@"; }
lm --work "$tmp/an lm"
is "lm: status" 0 "$status"
for file in words.lm words.dict.gz words.g2p phones.lm; do ok "lm: $file" test -s "$tmp/an lm/$file"; done
has "lm: words of the text and added ones" "$(gzip -dc "$tmp/an lm/words.dict.gz")" "four F AO R"
is "lm: words of the modern text, of the lexicon and by rules" "nato AH|fours F AO R Z|" \
    "$(gzip -dc "$tmp/an lm/words.dict.gz" | tail -n 2 | tr '\n' '|')"
has "lm: a model with them" "$("$LINNET" ngram arpa "$tmp/an lm/words.lm")" "fours"
has "lm: perplexity" "$out" "ppl"
lm --work "$tmp/lm2"
for file in words.lm words.dict.gz words.g2p phones.lm; do ok "lm again: the same $file" cmp "$tmp/an lm/$file" "$tmp/lm2/$file"; done
printf ';;; x\nthe DH AH0 # x\nadd AE1 D\nadd(2) AH0 D\nabout AH0 B AW1 T\n' > "$tmp/stressed"
printf ';;; y\nthe(2) 0.5 DH IY\nadd AH D\nabout EH B AW T\nhat HH AE T\nbanana B AH N AE N AH\n' > "$tmp/plain"
is "lm: stress" ";;; y|the(2) 0.5 DH IY0|add AH0 D|about EH0 B AW1 T|hat HH AE1 T|banana B AH N AE N AH|" \
    "$(awk -f recipes/open/stress.awk "$tmp/stressed" "$tmp/plain" | tr '\n' '|')"
declines "lm: no text" "where is the text" lm --corpus "$c" --work "$tmp/x"
declines "lm: no modern text" "where is the modern text" lm --corpus "$c" --text "$tmp/books.txt" --work "$tmp/x"

# ---- books.py ------------------------------------------------------------------------------------------------------------------

if command -v python3 > /dev/null; then
    b=$tmp/shelf
    mkdir -p "$b"
    printf 'Title: One\n*** START OF THIS PROJECT GUTENBERG EBOOK ONE ***\n\nCHAPTER I\n\nMr. Hale was in the house to-day; it was\n1,815 miles. "It is the\n_caf\303\251_," he said.\n\n[12] and of it in 1907\n\n*** END OF THIS\nof the and it\n' > "$b/One.txt"
    printf 'It was the best of all the long days that he had.\n\nOf that I was sure.\n' > "$b/The Turn of the Screw: a Tale.txt"
    printf 'It was the best of all the long days that he had.\nShe was in it.\nAnd he had a dog in the house.\nAnd he had a dog in the house.\n' > "$b/Works.md"
    printf 'and so he saw that the old man was not in the room and it was late\n' > "$b/Read.txt"
    printf 'Es war einmal ein Mann und eine Frau die hatten nichts\n' > "$b/Maerchen.txt"
    printf ';\n1 | 2 | 3 | test-other | 4 | 5 | I | Turn of the Screw (version 2)\n2 | 2 | 3 | train-clean-100 | 4 | 5 | I | One\n' > "$tmp/CHAPTERS.TXT"
    echo 'x-1 SO HE SAW THAT THE OLD MAN WAS NOT IN THE ROOM' > "$tmp/read"
    python3 recipes/open/books.py --leave-out "$tmp/CHAPTERS.TXT" --transcripts "$tmp/read" -o "$tmp/shelf.txt" "$b" 2> "$tmp/.err"
    is "books: status" 0 $?
    is "books: the text" "mister hale was in the house today it was eighteen fifteen miles|it is the cafe he said|she was in it|and he had a dog in the house|" \
        "$(tr '\n' '|' < "$tmp/shelf.txt")"
    has "books: one of a test set" "$(cat "$tmp/.err")" "is in a test set"
    has "books: one that was read" "$(cat "$tmp/.err")" "Read.txt': 6 sequences in common"
    has "books: another language" "$(cat "$tmp/.err")" "not English"
    has "books: the sum" "$(cat "$tmp/.err")" "2 of 5 books, 4 sentences, 30 words"

    n=$tmp/new
    mkdir -p "$n"
    printf '**Ann Lee:** \\[00:04.1\\] It&#39;s the 2nd of the 1990s, at 2:05 p.m. in the US [for](https://a.b) it.\n\n**Bo:** OK, it cost $3.5 million.\n\nThe\n' > "$n/talk.md"
    printf 'The year of it\n\nIt was on 4 May 2015 that he left.[3] Prof. A. Hale of the U.S. (  ) was 5 km in World War II.\n\n[3] The Times. 2015.\n\n| it was the table.\n' > "$n/article.md"
    printf 'THE PRESIDENT:  In the end it was 12%%.  (Applause.)\n\nQ   And of that he had so much to say to you as he had.\n' > "$n/speech.txt"
    printf '[{"speaker": "USER", "utterance": "Is it in the \\"house\\"?"}, {"utterance": "He was so late"}]' > "$n/dialogue.json"
    printf 'x-1 HE WAS SO LATE\nx-2 SAID OF THAT HE HAD SO MUCH TO SAY\nx-3 IN THE END IT WAS TWELVE PERCENT\n' > "$tmp/read"
    git init -q "$n" && git -C "$n" add . && git -C "$n" -c user.name=a -c user.email=a@b commit -q -m a
    for folder in "$n" "$n/.git"; do
        python3 recipes/open/modern.py --leave-out "$tmp/read" -o "$tmp/new.txt" "$folder" 2> "$tmp/.err"
        is "modern: status" 0 $?
        is "modern: the text" "it was on fourth of may twenty fifteen that he left|professor a hale of the u s was five kilometers in world war two|is it in the house|he was so late|$(
            )it's the second of the nineteen nineties at two oh five p m in the u s for it|okay it cost three point five million dollars|" \
            "$(tr '\n' '|' < "$tmp/new.txt")"
        has "modern: the sum" "$(cat "$tmp/.err")" "4 texts, 6 sentences, 61 words, 2 sentences left out"
    done
    mkdir -p "$tmp/shows/held" "$tmp/shows/other"
    printf '**Bo:** So it was of the... And that he had 12?\n\nThe\n' > "$tmp/shows/held/1.md"
    printf '**Ann:** Of the house, and the dog... to you.\n\n**Bo:** In the house.\n\nAnd it was.\n\n**Ann:** He said OF that he had so much to say.\n' \
        > "$tmp/shows/other/1.md"
    python3 recipes/open/modern.py --marks --hold-out held/ --leave-out "$tmp/read" -o "$tmp/turns.txt" "$tmp/shows" 2> "$tmp/.err"
    is "modern: marks, without speakers who are held out" "Of the house, and the dog, to you.||" "$(tr '\n' '|' < "$tmp/turns.txt")"
    is "modern: what is held out" "So it was of the. And that he had  twelve ?||" "$(tr '\n' '|' < "$tmp/turns.txt.held-out")"

    mkdir -p "$tmp/read-books"
    printf 'Of it. "Was it you?" said Mr. Hale; "I saw--the old dog, at home." And then\n' > "$tmp/read-books/A.txt"
    printf 'c-1 WAS IT YOU SAID MISTER HALE I SAW THE\nc-2 OLD DOG AT HOME AND THEN\nc-3 WAS IT ONE TWO THREE FOUR FIVE\n' > "$tmp/read"
    python3 recipes/open/marks.py find --text "$tmp/read" -o "$tmp/marked" "$tmp/read-books" 2> "$tmp/.err"
    is "marks: found" 'c-1 "Was it you? said Mister Hale. "I saw, the|c-2 old dog, at home. And then|' "$(tr '\n' '|' < "$tmp/marked")"
    is "marks: the books" "2 $tmp/read-books/A.txt" "$(cat "$tmp/marked.books")"
    has "marks: one is in no book" "$(cat "$tmp/.err")" "2 of 3 utterances"
    printf 'c-1 1 0.5 0.2 WAS\nc-2 1 0.1 0.3 OLD\n' > "$tmp/marked.ctm"
    printf 'c-1 4\nc-2 3\n' > "$tmp/utt2dur"
    python3 recipes/open/marks.py join "$tmp/marked" "$tmp/marked.ctm" "$tmp/utt2dur" "$tmp"
    is "marks: a chapter" 'c "Was it you? said Mister Hale. "I saw, the old dog, at home. And then' "$(cat "$tmp/joined.marked")"
    is "marks: its times" "c 1 0.500 0.2 was|c 1 4.100 0.3 old|" "$(tr '\n' '|' < "$tmp/joined.ctm")"
    printf 'c-1 Was it you? Said Mr. Hale, I saw the\nc-2 Old cat. At home. And then.\n' > "$tmp/written"
    is "marks: scored" "15 words|in text precision recall F|full stops 2 33.3 % 50.0 % 40.0 %|commas 2 0.0 % 0.0 % 0.0 %|$(
        )question marks 1 100.0 % 100.0 % 100.0 %|capitals 5 83.3 % 100.0 % 90.9 %|" \
        "$(python3 recipes/open/marks.py score "$tmp/marked" "$tmp/written" | tr -s ' ' | sed 's/^ //' | tr '\n' '|')"
fi

# ---- readable.sh -----------------------------------------------------------------------------------------------------------------

mkdir "$tmp/books"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40; do
    printf 'He went to London, and she stayed at home.\nWhat did he want? He saw the dog %s.\n\nIt ran away.\n' "$i" > "$tmp/books/book $i.txt"
done
echo "one two three four two four one one two three" >> "$tmp/books/book 7.txt"
printf 'dev_native-u1 ONE TWO THREE FOUR TWO FOUR ONE\n' > "$tmp/seven"
mkdir -p "$tmp/held/dev_native" && cp -r "$c/dev_nonnative" "$c/test_native" "$c/train_native" "$tmp/held" && cp "$tmp/seven" "$tmp/held/dev_native/text"
printf 'She saw him, and he said so.\n' > "$tmp/talks" && cp "$tmp/talks" "$tmp/talks.held-out"
mkdir "$tmp/readable" && printf '3 %s\n2 %s\n' "$tmp/books/book 9.txt" "$tmp/books/book 10.txt" > "$tmp/readable/marked.books"
recipe readable --corpus "$tmp/held" --books "$tmp/books" --modern "$tmp/talks" --work "$tmp/readable" --stop-stage 3
is "readable: status" 0 "$status"
ok "readable: a model" test -s "$tmp/readable/words.punctuation"
is "readable: a book of the dev set is left out, and one that was read" "$tmp/books/book 7.txt
$tmp/books/book 9.txt" "$(cat "$tmp/readable/left-out.list")"
has "readable: its scores" "$out" "capitals"
has "readable: those of modern text" "$out" "== modern text that was held out
7 words"

# ---- results.sh ------------------------------------------------------------------------------------------------------------------

results() { recipe results --corpus "$c" --work "$tmp/results" --lexicon "$tmp/dict" --quick --hours 0.002 --threads 1 --device cpu "$@"; }
pages() { cat README.md RESULTS.md docs/*.md recipes/open/*.md recipes/open/*.tsv | cksum; }
before=$(pages)
cheap="errors int8 live silence long"
results --stages "$cheap"
is "results: status" 0 "$status"
is "results: its stages" "errors int8 live silence long " "$(sed -n 's/^== //p' "$tmp/.out" | tr '\n' ' ')"
tables=$(echo "$tmp"/results/*-quick/tables)
for table in words phones models rescored int8 live silence long day; do
    ok "results: table $table" test -s "$tables/$table.md"
    is "results: table $table, its rows have as many cells" 1 "$(awk -F'|' '{ print NF }' "$tables/$table.md" | sort -u | wc -l | tr -d ' ')"
done
is "results: a cell for each set" "dev_native: WER %|dev_nonnative: WER %|test_native: WER %" \
    "$(head -n 1 "$tables/words.md" | grep -o '[a-z_]*: WER %' | paste -s -d '|' -)"
hasnt "results: the test set is not touched" "$(ls "$tmp"/results/*-quick/errors)" "test_native"
fingerprint=$("$LINNET" info --json default | sed 's/.*"fingerprint": "\([0-9a-f]*\)".*/\1/')
has "results: which model" "$(cat "$tables/words.mark")" "<!-- measured: words; default $fingerprint, offline "
results --stages "$cheap"
is "results again: nothing is measured twice" 5 "$(grep -c 'done before' "$tmp/.out")"
rm "$tmp"/results/*-quick/errors.done "$tmp"/results/*-quick/errors/small.dev_native.words.jsonl
results --stages errors
is "results, interrupted: status" 0 "$status"
ok "results, interrupted: it goes on" test -s "$(echo "$tmp"/results/*-quick/errors)/small.dev_native.words.jsonl"
mkdir "$tmp/bin" && printf '#!/bin/sh\necho "| a part |"\nexit 1\n' > "$tmp/bin/python3" && chmod +x "$tmp/bin/python3"
PATH=$tmp/bin:$PATH results --stages confidence
is "results, failed: no part of a table" "1 no" "$status $([ -f "$tables/confidence.md" ] && echo yes || echo no)"
is "results: nothing is published" "$before" "$(pages)"
declines "results: a small form is not published" "not published" results --corpus "$c" --lexicon "$tmp/dict" --work "$tmp/x" --quick --publish
declines "results: no corpus" "where is the corpus" results --work "$tmp/x"
declines "results: no such stage" "no stage 'words'" results --corpus "$c" --lexicon "$tmp/dict" --work "$tmp/x" --stages words

# Results of another set, or with other options, are not taken for those that are asked for.
ran=$(echo "$tmp"/results/*-quick)
declines "second_pass: another model" "first.trn was made with other options or data" \
    ../../bench/second_pass --corpus "$c" --every 20 --second small --work "$ran/live/dev_native"
declines "long: another set" "alone was made with other options or data" \
    ../../bench/long --corpus "$c" --set dev_nonnative --part drift --lexicon "$tmp/dict" --work "$ran/long"
declines "long: no such part" "--part is all, drift or day, not 'week'" ../../bench/long --corpus "$c" --part week --work "$tmp/x"

# ---- bench/robust.sh -------------------------------------------------------------------------------------------------------------

if command -v ffmpeg > /dev/null; then
    mkdir -p "$tmp/robust"
    "$SOUND" "$tmp/robust/babble.wav" seconds=1 # of another set
    cp "$tmp/robust/babble.wav" "$tmp/babble.wav"
    LINNET_LEXICON=$tmp/dict bash bench/robust.sh --linnet "$LINNET" --data "$c/train_cv" --model "$w/stream.safetensors" --work "$tmp/robust" \
        --conditions "clean level:-30 noise:10 babble:5 room:0.3 phone tempo:0.8" > "$tmp/robust.md" 2> "$tmp/.err"
    is "robust: a row for each condition" "clean level:-30 noise:10 babble:5 room:0.3 phone tempo:0.8 " "$(sed 1,2d "$tmp/robust.md" | awk '{ printf "%s ", $2 }')"
    is "robust: voices of this set" 1 "$(cmp -s "$tmp/babble.wav" "$tmp/robust/babble.wav"; echo $?)"
    is "robust: two rates and their intervals" 7 "$(grep -cE '^[|] [^ ]+( [|] [0-9.]+ [|] [0-9.]+ to [0-9.]+){2} [|]$' "$tmp/robust.md")"
    LINNET_LEXICON=$tmp/dict bash bench/robust.sh --linnet "$LINNET" --data "$c/train_cv" --model "$w/stream.safetensors" --work "$tmp/robust" \
        --conditions clean --output "$tmp/robust.md"
    is "robust: what is there is not measured again" 1 "$(grep -c '^| clean' "$tmp/robust.md")"
    bash bench/robust.sh --linnet "$LINNET" --data "$c/train_cv" --model "$w/stream.safetensors" --work "$tmp/robust" --conditions "worse" > "$tmp/robust.md" 2> "$tmp/.err"
    has "robust: no such condition" "$(cat "$tmp/.err")" "no condition is called worse"
fi

# ---- bench/sure.awk --------------------------------------------------------------------------------------------------------------

cat > "$tmp/sure" <<END
{"text":"one two","phones":[{"phone":"W","start":0.1,"confidence":0.9},{"phone":"AH","confidence":0.2}],"words":[{"word":"one","confidence":0.1},{"word":"two","phones":["W"]}]}
{"text":"three","phones":[{"phone":"TH","confidence":0.4},{"phone":"R","confidence":0.5}],"words":[{"word":"three","confidence":0.9}]}
{"text":"","phones":[],"words":[]}
END
is "sure: a mean of 0.55 and one of 0.45" "4 3 2" "$(awk -f bench/sure.awk "$tmp/sure")"
is "sure: another limit" "4 3 3" "$(awk -v least=0.4 -f bench/sure.awk "$tmp/sure")"
finish
