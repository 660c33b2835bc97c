# Output files: their names, that no other file is touched, and what remains when the program is stopped.
. tests/app/common.sh

use_model
m=$LINNET_MODEL
wav=$tmp/data/u1.wav

# files FOLDER: all files below it, sorted, separated by '|'
files() { (cd "$1" && find . -type f | LC_ALL=C sort | sed 's/^..//' | tr '\n' '|'); }

# ---- names ----------------------------------------------------------------------------------------------------------------------

mkdir -p "$tmp/in/x/deep" "$tmp/in/y"
for f in "x/my talk" y/talk x/talk x/deep/a.b; do cp "$wav" "$tmp/in/$f.wav"; done
run transcribe -q -f srt,textgrid --output-dir "$tmp/o2/new" "$tmp/in/x/talk.wav" "$tmp/in/y/talk.wav" "$tmp/in/x/deep/a.b.wav"
is "folders are mirrored" "x/deep/a.b.TextGrid|x/deep/a.b.srt|x/talk.TextGrid|x/talk.srt|y/talk.TextGrid|y/talk.srt|" \
    "$(files "$tmp/o2/new")"
(cd "$tmp/in/x" && printf 'talk.wav\n../y/talk.wav\n' > ../list && "$LINNET" transcribe -q --output-dir "$tmp/o4" --files-from ../list) ||
    fail "a list of relative paths"
is "relative paths, of a list" "x/talk.txt|y/talk.txt|" "$(files "$tmp/o4")"
run transcribe -q "$tmp/in/x/talk.wav"
is "a .txt of its own has no name in it" "$out" "$(cat "$tmp/o4/x/talk.txt")"
run transcribe -q --ids --output-dir "$tmp/o4" "$tmp/in/x/my talk.wav"
is "--ids puts it there, without blanks" "my_talk $(cat "$tmp/o4/x/talk.txt")" "$(cat "$tmp/o4/my talk.txt")"
long=$tmp/in/$(printf '%0250d' 0).wav # 254 bytes: with .jsonl too many
ln -s "$wav" "$long"
refused "a name too long for the file system" 1 "is too long" transcribe -q -f text,json --output-dir "$tmp/o5" "$wav" "$long"
ok "a name too long for the file system: nothing is begun" test ! -e "$tmp/o5"
rm "$long"

# Ids with folders: a list as --data and a wav.scp with ids that are paths; no result may be written outside the output folder.
printf 'x/talk.wav\tONE TWO\ny/talk.wav\tONE\n' > "$tmp/in/pairs"
run transcribe -q --data "$tmp/in/pairs" -f ctm --output-dir "$tmp/o6"
is "--data LIST" "x/talk.ctm|y/talk.ctm|" "$(files "$tmp/o6")"
run align -q --data "$tmp/in/pairs" --lexicon "$tmp/dict" -f textgrid --output-dir "$tmp/o7"
is "align --data LIST" "x/talk.TextGrid|y/talk.TextGrid|" "$(files "$tmp/o7")"
mkdir "$tmp/scp"
printf 's1/u1 data/u1.wav\ns2/u2 data/u2.wav\n' > "$tmp/scp/wav.scp"
run transcribe -q --data "$tmp/scp" -f srt --output-dir "$tmp/o8"
is "--data, ids with folders" "s1/u1.srt|s2/u2.srt|" "$(files "$tmp/o8")"
printf '../../u1 data/u1.wav\n/etc/u2 data/u2.wav\n' > "$tmp/scp/wav.scp"
exits "--data, ids that would leave the folder" 0 run transcribe -q --data "$tmp/scp" -f srt --output-dir "$tmp/o9"
is "--data, ids that would leave the folder" 2 "$(find "$tmp/o9" -name 'u?.srt' | wc -l | tr -d ' ')"

# ---- an output that is an input -------------------------------------------------------------------------------------------------

cp "$wav" "$tmp/talk.wav"
ln "$tmp/talk.wav" "$tmp/hard.srt"
ln -s talk.wav "$tmp/soft.srt"
sum=$(cksum < "$tmp/talk.wav")
for o in talk.wav hard.srt soft.srt; do
    refused "$o is the sound" 2 "is an input and would be overwritten" transcribe -q -f text -o "$tmp/$o" "$tmp/talk.wav"
done
refused "the dictionary that rules are learnt from" 2 "is an input" g2p "$tmp/dict" -o "$tmp/dict"
cp share/linnet/en/words.dict.gz "$tmp/default.gz"
LINNET_LEXICON="$tmp/default.gz" LINNET_G2P="$tmp/rules.g2p"
export LINNET_LEXICON LINNET_G2P
refused "the default lexicon" 1 "is an input" g2p -o "$tmp/default.gz"
is "the file is unchanged" "$(cksum < share/linnet/en/words.dict.gz)" "$(cksum < "$tmp/default.gz")"
cp share/linnet/en/words.g2p "$tmp/rules.g2p"
refused "the default rules" 2 "is an input" phonemize -q "$tmp/dict" -o "$tmp/rules.g2p"
unset LINNET_LEXICON LINNET_G2P
printf '%s\n' "$tmp/talk.wav" > "$tmp/list.txt"
refused "the sound is in a list" 1 "is an input" transcribe -q -f ctm -o "$tmp/hard.srt" --files-from "$tmp/list.txt"
refused "the list itself" 2 "is an input" transcribe -q -o "$tmp/list.txt" --files-from "$tmp/list.txt"
refused "the list itself, below a folder" 1 "is an input" transcribe -q --output-dir "$tmp" --files-from "$tmp/list.txt" "$tmp/list.wav"
printf 'u1 %s\n' "$tmp/talk.wav" > "$tmp/scp/wav.scp"
refused "the sound is in a wav.scp" 1 "is an input" transcribe -q -f ctm -o "$tmp/hard.srt" --data "$tmp/scp"
refused "a list of --data" 2 "is an input" transcribe -q -o "$tmp/scp/wav.scp" --data "$tmp/scp"
echo one two > "$tmp/talk.txt"
refused "the text, below a folder" 1 "talk.txt is an input" align -q --lexicon "$tmp/dict" -f text --output-dir "$tmp" "$tmp/talk.wav" "$tmp/talk.txt"
refused "the text" 2 "is an input" align -q --lexicon "$tmp/dict" -o "$tmp/talk.txt" "$tmp/talk.wav" "$tmp/talk.txt"
cp "$m" "$tmp/model.txt"
refused "the model" 2 "is an input" transcribe -q -m "$tmp/model.txt" -o "$tmp/model.txt" "$wav"
LINNET_MODEL=$tmp/model.txt refused "the model of the environment" 2 "is an input" transcribe -q -o "$tmp/model.txt" "$wav"
cp "$tmp/dict" "$tmp/dict.trn"
refused "the lexicon" 2 "is an input" align -q --text one --lexicon "$tmp/dict.trn" -o "$tmp/dict.trn" "$wav"
refused "the words to phonemize" 2 "is an input" phonemize -q --lexicon "$tmp/dict" "$tmp/talk.txt" -o "$tmp/talk.txt"
refused "features" 2 "is an input" features "$tmp/talk.wav" -o "$tmp/talk.wav"
refused "posteriors" 2 "is an input" posteriors "$tmp/talk.wav" -o "$tmp/hard.srt"
refused "a cache in place of its text" 2 "is an input" prepare "$tmp/data" --lexicon "$tmp/dict" -o "$tmp/data/text"
refused "a cache in place of a sound" 1 "is an input" prepare -q "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" -o "$tmp/data/u1.wav"
refused "a recording in place of its source" 2 "is an input" listen -q --from "$tmp/talk.wav" --save "$tmp/hard.srt"
printf 'a b (u1)\n' > "$tmp/ref.trn"
refused "a report in place of the reference" 2 "is an input" score "$tmp/ref.trn" "$tmp/ref.trn" -o "$tmp/ref.trn"
refused "two reports in one file" 2 "are both" score "$tmp/ref.trn" "$tmp/ref.trn" -o "$tmp/report" --html "$tmp/./report"
is "the sound is unchanged" "$sum" "$(cksum < "$tmp/talk.wav")"
is "the text is unchanged" "one two" "$(cat "$tmp/talk.txt")"
is "the model is unchanged" "$(cksum < "$m")" "$(cksum < "$tmp/model.txt")"

mkdir "$tmp/exp"
cp "$tmp/train.conf" "$tmp/exp/train.conf"
refused "a run in place of its own options" 1 "train.conf is an input" train "$tmp/exp/train.conf" --train "$tmp/set.lfc" --folder "$tmp/exp" -q
ok "they are as they were" cmp "$tmp/train.conf" "$tmp/exp/train.conf"
cp "$m" "$tmp/exp/best.safetensors"
refused "a run in place of what it begins with" 1 "best.safetensors is an input" \
    train "$tmp/train.conf" --init "$tmp/exp/best.safetensors" --train "$tmp/set.lfc" --folder "$tmp/exp" -q

# ---- not a regular file ---------------------------------------------------------------------------------------------------------

plain=$("$LINNET" transcribe -q "$wav")
ln -s nothing.txt "$tmp/dangling.txt"
run transcribe -q -o "$tmp/dangling.txt" "$wav"
is "a link to nothing makes what it points to" "$plain" "$(cat "$tmp/nothing.txt")"
ok "and stays" test -h "$tmp/dangling.txt"
mkfifo "$tmp/pipe"
timeout 600 cat "$tmp/pipe" > "$tmp/read" &
run transcribe -q -o "$tmp/pipe" "$wav"
wait $!
is "a FIFO is written" "$plain" "$(cat "$tmp/read")"
ok "a FIFO stays" test -p "$tmp/pipe"
# To standard output, or refused: never a file with the name -.
cd "$tmp" || exit 1
gives "-o -: standard output" "$plain" transcribe -q -o - "$wav"
refused "-o -: features" 1 "cannot be written to standard output (-): name a file" features -o - "$wav"
ok "-o -: no file of that name" test ! -e ./-
cd - > /dev/null || exit 1
# Links and devices made by this test: a faulty program must not replace those of the machine.
ln -s /proc/self/fd/1 "$tmp/stdout"
is "a link to standard output is written in place" "before|$plain|after|" \
    "$({ echo before; "$LINNET" transcribe -q -o "$tmp/stdout" "$wav"; echo after; } | tr '\n' '|')"
{ echo before; "$LINNET" transcribe -q -o "$tmp/stdout" "$wav"; echo after; } > "$tmp/all"
is "and where that is a file, too" "before|$plain|after|" "$(tr '\n' '|' < "$tmp/all")"
ok "the link stays" test -h "$tmp/stdout"
null=/dev/null full=/dev/full
[ -w /dev ] && { mknod "$tmp/null" c 1 3 2> /dev/null && null=$tmp/null || null=; mknod "$tmp/full" c 1 7 2> /dev/null && full=$tmp/full || full=; }
ok "/dev/fd" test "$plain" = "$("$LINNET" transcribe -q -o /dev/fd/5 "$wav" 5>&1)"
printf '\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<s>\n-0.5\ta\n-0.5\t</s>\n\n\\end\\\n' > "$tmp/w.arpa"
exits "pack" 0 run ngram pack "$tmp/w.arpa" -o "$tmp/w.lm"
timeout 600 cat "$tmp/pipe" > "$tmp/read" &
run ngram pack "$tmp/w.arpa" -o "$tmp/pipe"
wait $!
ok "a packed model into a FIFO" cmp "$tmp/read" "$tmp/w.lm"
ok "which stays" test -p "$tmp/pipe"
if [ -w "$null" ]; then
    exits "a packed model into a device" 0 run ngram pack "$tmp/w.arpa" -o "$null"
    ok "which stays a device" test -c "$null"
    refused "a cache cannot go into a device" 1 "it is not a regular file" \
        prepare -q "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" -o "$null"
fi
timeout 600 cat "$tmp/pipe" > "$tmp/read" &
reader=$!
refused "a matrix cannot go into a FIFO" 1 "it is a pipe, and the header of a matrix is written last" features "$wav" -o "$tmp/pipe"
wait $reader
if [ -w "$full" ]; then
    refused "a full device" 1 "No space left on device; free some space" transcribe -q -o "$full" "$wav"
    refused "a full device, packed" 1 "No space left on device; free some space" ngram pack "$tmp/w.arpa" -o "$full"
    ok "it stays a device" test -c "$full"
fi
echo old > "$tmp/closed.txt"
chmod 444 "$tmp/closed.txt"
if [ ! -w "$tmp/closed.txt" ]; then
    refused "a protected file is not replaced" 1 "Permission denied" transcribe -q -o "$tmp/closed.txt" "$wav"
    is "the file is unchanged" old "$(cat "$tmp/closed.txt")"
fi

# ---- failures keep the old file -------------------------------------------------------------------------------------------------

# left FOLDER: there is no temporary file in it
left() { is "$1: nothing is left beside it" "" "$(find "$2" -name '*.tmp')"; }

mkdir "$tmp/keep"
o=$tmp/keep/old.srt
echo precious > "$o"
refused "a missing sound" 1 "No such file" transcribe -q -o "$o" "$tmp/missing.wav"
refused "a bad sound" 1 "" transcribe -q -o "$o" "$tmp/list.txt"
refused "a text that cannot be said" 1 "" align -q --lexicon "$tmp/dict" --text "one two three four one two three four one two three four
one two three four one two three four one two three four one two three four one two three four one two three four" -f srt -o "$o" "$wav"
refused "a missing matrix" 1 "No such file" decode -q -o "$o" "$tmp/missing.npy"
refused "no words at all" 1 "" phonemize -q --lexicon "$tmp/dict" --ids last -o "$o" "$tmp/talk.txt"
refused "a bad model" 1 "" ngram pack "$tmp/talk.txt" -o "$o"
refused "no reference" 1 "No such file" score "$tmp/missing.trn" "$tmp/ref.trn" -o "$o"
refused "features of nothing" 1 "No such file" features "$tmp/missing.wav" -o "$o"
refused "posteriors of nothing" 1 "No such file" posteriors "$tmp/missing.wav" -o "$o"
cp "$o" "$tmp/keep/old.wav"
refused "a recording of nothing" 1 "" listen -q --from "$tmp/missing.wav" --save "$tmp/keep/old.wav"
is "the old files are unchanged" "precious precious" "$(paste -d ' ' "$o" "$tmp/keep/old.wav")"
left "failures" "$tmp/keep"
exits "one of two failed" 1 run transcribe -q -f trn -o "$o" "$tmp/missing.wav" "$wav"
is "one of two failed: the other is written" "$plain (u1)" "$(cat "$o")"

# What a killed process left, as base/file.h says of either kind.
echo stale > "$o.linnet-0.tmp"
exits "a stale name" 0 run transcribe -q -f trn -o "$o" "$wav"
is "what a killed transcription left is not thrown away" stale "$(cat "$o.linnet-0.tmp")"
run ngram pack "$tmp/w.arpa" -o "$o"
is "a stale name of what can be made again is taken over" "no" "$(test -e "$o.linnet-0.tmp" && echo yes || echo no)"

# A full file system, in every command that writes large files.
echo precious > "$o"
limited() { (ulimit -f 1; "$LINNET" "$@" > "$tmp/.out" 2> "$tmp/.err"); status=$?; err=$(cat "$tmp/.err"); }
full() {
    what=$1
    shift
    limited "$@"
    is "$what, no room: status" 1 "$status"
    has "$what, no room: reported" "$err" "cannot write"
    has "$what, no room: the file is named" "$err" "$tmp/keep/"
    is "$what, no room: the old file" precious "$(cat "$o")"
    left "$what, no room" "$tmp/keep"
}
printf '%s\n' "$wav" "$wav" "$wav" "$wav" "$wav" "$wav" > "$tmp/six"
full "transcribe" transcribe -q -f json -o "$o" --files-from "$tmp/six"
full "transcribe --output-dir" transcribe -q -f json,srt --output-dir "$tmp/keep" "$wav"
full "features" features "$wav" -o "$o"
full "posteriors" posteriors "$wav" -o "$o"
full "prepare" prepare -q "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" -o "$o"
full "html" score "$tmp/ref.trn" "$tmp/ref.trn" --html "$o"
full "ngram generate" ngram generate "$tmp/w.arpa" --count 5000 -o "$o"
limited listen -q --no-paced --from "$wav" --save "$tmp/keep/heard.wav"
is "a recording, no room: status" 1 "$status"
ok "a recording, no room: none under its name" test ! -e "$tmp/keep/heard.wav"
has "a recording, no room: the sound before is kept" "$err" "heard.wav.part"
ok "a recording, no room: it is there" test -s "$tmp/keep/heard.wav.part"
if [ "$(id -u)" = 0 ] && mkdir "$tmp/small" && mount -t tmpfs -o size=16k none "$tmp/small" 2> /dev/null; then
    echo precious > "$tmp/small/old.npy"
    refused "a full disk" 1 "No space left on device; free some space and try again" features "$wav" -o "$tmp/small/old.npy"
    is "a full disk: the old file" precious "$(cat "$tmp/small/old.npy")"
    is "a full disk: nothing else" "old.npy" "$(ls -A "$tmp/small")"
    umount "$tmp/small"
fi

# ---- signals --------------------------------------------------------------------------------------------------------------------

# struck SIGNAL SECONDS ARGS...: runs linnet and sends it a signal after that time; $status, $err
struck() {
    signal=$1 after=$2
    shift 2
    "$LINNET" "$@" > "$tmp/.out" 2> "$tmp/.err" &
    running=$!
    sleep "$after"
    kill -"$signal" $running 2> /dev/null
    wait $running 2> /dev/null
    status=$?
    err=$(cat "$tmp/.err")
}

# One long sound: the old file or the complete new one, and the finished part beside it.
rm -rf "$tmp/keep"
mkdir "$tmp/keep"
"$SOUND" "$tmp/long.wav" seconds=150 seed=7
"$LINNET" transcribe -q -j 1 -o "$tmp/whole.srt" "$tmp/long.wav"
n=0
for after in 0.03 0.1; do
    for signal in INT KILL; do
        echo precious > "$o"
        rm -f "$tmp/keep"/*.part*
        struck $signal $after transcribe -q -j 1 -o "$o" "$tmp/long.wav"
        if [ "$(cat "$o")" != precious ]; then ok "SIG$signal after $after s: the whole result" cmp "$o" "$tmp/whole.srt"; fi
        [ $signal = KILL ] && continue
        left "SIG$signal after $after s" "$tmp/keep"
        [ -e "$o.part" ] || continue
        n=$((n + 1))
        is "an old file beside its part" precious "$(cat "$o")"
        has "the part's name is reported" "$err" "the results so far are in $o.part"
        is "the status of what was interrupted" 130 "$status"
        is "a part holds complete subtitles" "" "$(awk 'BEGIN { RS = "" } !/^[0-9]+\n[0-9:,]+ --> [0-9:,]+\n./' "$o.part")"
    done
    rm -f "$tmp/keep"/*.tmp
done
[ $n -gt 0 ] || echo "note: no signal came while the sound was heard"

# A matrix, and a list of results: the finished part can be read.
"$LINNET" transcribe -q -f trn "$tmp"/data/u?.wav > "$tmp/whole.trn"
for after in 0.03 0.08; do
    rm -rf "$tmp/keep"
    mkdir "$tmp/keep"
    struck INT $after posteriors -j 1 "$tmp/long.wav" -o "$tmp/keep/p.npy"
    for f in "$tmp/keep"/p.npy*; do
        [ -e "$f" ] || continue
        run decode -q "$f"
        is "a matrix that was stopped: $(basename "$f")" 0 "$status"
    done
    struck TERM $after transcribe -q -j 1 -f trn -o "$tmp/keep/hyp.trn" "$tmp"/data/u?.wav
    for f in "$tmp/keep"/hyp.trn*; do
        [ -e "$f" ] && is "results that were stopped are the first of all: $(basename "$f")" "$(head -n "$(wc -l < "$f")" "$tmp/whole.trn")" "$(cat "$f")"
    done
done

# Many sounds, one file each: every file that exists is complete. Then --skip-done does the rest.
mkdir "$tmp/many"
for i in 1 2 3 4 5 6 7 8; do ln -s "$tmp/data/u$((i % 4 + 1)).wav" "$tmp/many/t$i.wav"; done
run transcribe -q -f json,srt --output-dir "$tmp/want" "$tmp"/many/*.wav
for signal in INT KILL; do
    for after in 0.01 0.03; do
        rm -rf "$tmp/got"
        struck $signal $after transcribe -q -j 1 -f json,srt --output-dir "$tmp/got" "$tmp"/many/*.wav
        [ -d "$tmp/got" ] || continue
        bad=
        for f in $(cd "$tmp/got" && ls | grep -v '\.tmp$' | grep -v '\.part$'); do cmp -s "$tmp/got/$f" "$tmp/want/$f" || bad="$bad $f"; done
        is "SIG$signal after $after s: no damaged result" "" "$bad"
        run transcribe -q --skip-done -f json,srt --output-dir "$tmp/got" "$tmp"/many/*.wav
        ok "SIG$signal after $after s: --skip-done completes it" diff -r -x '*.tmp' -x '*.part' "$tmp/want" "$tmp/got"
    done
done

# A recording holds the sound up to the signal, and its header is correct.
"$LINNET" listen -q --from "$tmp/long.wav" --save "$tmp/keep/heard.wav" > /dev/null 2> "$tmp/.err" &
running=$!
ok "a recording grows beside its place" await sh -c '[ "$(wc -c < "$1")" -gt 1000 ]' - "$tmp/keep/heard.wav.linnet-0.tmp"
kill -INT $running
wait $running
is "a recording, ended by SIGINT" 0 $?
ok "a recording, under its name" test -s "$tmp/keep/heard.wav"
exits "a recording, readable" 0 run transcribe -q "$tmp/keep/heard.wav"

# ---- --skip-done ----------------------------------------------------------------------------------------------------------------

run transcribe --skip-done -f srt --output-dir "$tmp/want" "$tmp"/many/*.wav
has "--skip-done: all are skipped" "$err" "0 files, 8 skipped (done before)"
hasnt "--skip-done: no speed of nothing" "$err" "real time"
is "--skip-done: status" 0 "$status"
sum=$(cksum < "$tmp/want/t3.srt")
rm "$tmp/want/t1.srt"
: > "$tmp/want/t2.srt"
echo mine > "$tmp/want/t3.srt"
touch "$tmp/want/t3.srt"
run transcribe --skip-done -f srt,json --output-dir "$tmp/want" "$tmp"/many/*.wav
has "--skip-done: a missing and an empty one are made" "$err" "2 files, 6 skipped"
is "--skip-done: existing results are not touched" mine "$(cat "$tmp/want/t3.srt")"
touch -d '2 hours ago' "$tmp/want/t3.srt"
run transcribe --skip-done -f srt,json --output-dir "$tmp/want" "$tmp"/many/*.wav
has "--skip-done: what is older than the sound is made again" "$err" "1 file, 7 skipped"
is "--skip-done: unchanged" "$sum" "$(cksum < "$tmp/want/t3.srt")"
run transcribe --skip-done -f srt,json,vtt --output-dir "$tmp/want" "$tmp"/many/*.wav
has "--skip-done: a format that is missing" "$err" "8 files, "
hasnt "--skip-done: a format that is missing, for all" "$err" "skipped"
run transcribe --skip-done -f srt --output-dir "$tmp/want" "$tmp/many/t1.wav" "$tmp/many/t9.wav"
is "--skip-done: what is missing still fails" 1 "$status"
has "--skip-done: the summary" "$err" "0 files, 1 failed, 1 skipped (done before)"
"$SOUND" "$tmp/stereo.wav" seconds=2 channels=2 seed=4
run transcribe -q --channel each -f srt,json --output-dir "$tmp/lanes" "$tmp/stereo.wav"
is "channels: a file each" "stereo-1.srt|stereo-2.srt|stereo.jsonl|" "$(files "$tmp/lanes")"
cp "$wav" "$tmp/stereo-2.wav"
refused "a channel's file is that of another input" 1 "stereo-2.srt is an input or the result of another one; rename one of them" \
    transcribe -q --channel each -f srt --output-dir "$tmp/both" "$tmp/stereo.wav" "$tmp/stereo-2.wav"
is "which is not written over it" "$(cat "$tmp/lanes/stereo-2.srt")" "$(cat "$tmp/both/stereo-2.srt")"
cp "$wav" "$tmp/stereo.labels.wav"
refused "a format's file is that of another input" 1 "stereo.labels.txt is an input or the result of another one" \
    transcribe -q -f text,audacity --output-dir "$tmp/both" "$tmp/stereo.wav" "$tmp/stereo.labels.wav"
warns "one id twice in a stream" "two results are called stereo-2; scoring tools will reject them" \
    transcribe -q --channel each -f trn "$tmp/stereo.wav" "$tmp/stereo-2.wav"
run transcribe --skip-done --channel each -f srt,json --output-dir "$tmp/lanes" "$tmp/stereo.wav"
has "--skip-done: channels" "$err" "1 skipped"
rm "$tmp/lanes/stereo-2.srt"
warns "--skip-done: a channel that is missing" "1 file, " transcribe --skip-done --channel each -f srt --output-dir "$tmp/lanes" "$tmp/stereo.wav"
run transcribe -q -f srt --output-dir "$tmp/mixed" "$tmp/stereo.wav" "$wav"
warns "--skip-done: the result of the mix is none of channels" "1 file, 1 skipped" \
    transcribe --skip-done --channel each -f srt --output-dir "$tmp/mixed" "$tmp/stereo.wav" "$wav"
warns "--skip-done: the file of another input does not count" "1 failed, 1 skipped" \
    transcribe --skip-done --channel each -f srt --output-dir "$tmp/both" "$tmp/stereo.wav" "$tmp/stereo-2.wav"
run transcribe -f trn -o "$tmp/one.trn" "$wav" "$tmp/data/u2.wav"
run transcribe --skip-done -f trn -o "$tmp/one.trn" "$wav" "$tmp/data/u2.wav"
has "--skip-done with --output: nothing is done" "$err" "0 files, 2 skipped"
touch -d '2 hours ago' "$tmp/one.trn"
run transcribe --skip-done -f trn -o "$tmp/one.trn" "$wav" "$tmp/data/u2.wav"
has "--skip-done with --output: all or nothing" "$err" "2 files, "
refused "--skip-done on standard output" 2 "needs --output-dir or --output" transcribe --skip-done "$wav"
printf 'u1 data/u1.wav\nu2 data/u2.wav\n' > "$tmp/scp/wav.scp"
printf 'u1 ONE TWO\nu2 TWO THREE\n' > "$tmp/scp/text"
run align --data "$tmp/scp" --lexicon "$tmp/dict" -f json --output-dir "$tmp/aligned"
run align --skip-done --data "$tmp/scp" --lexicon "$tmp/dict" -f json --output-dir "$tmp/aligned"
has "align --skip-done" "$err" "0 utterances, 2 skipped"
rm "$tmp/aligned/u1.jsonl"
run align --skip-done --data "$tmp/scp" --lexicon "$tmp/dict" -f json --output-dir "$tmp/aligned"
has "align --skip-done: the missing one" "$err" "1 utterance, 1 skipped"
has "align --skip-done: with its own text" "$(cat "$tmp/aligned/u1.jsonl")" "ONE"
touch -d '2 hours ago' "$tmp/aligned"/*
run align --skip-done --data "$tmp/scp" --lexicon "$tmp/dict" -f json --output-dir "$tmp/aligned"
has "align --skip-done: what is older than the text is made again" "$err" "2 utterances, "
mkdir -p "$tmp/corpus/anna"
cp "$wav" "$tmp/corpus/anna/a.wav"
cp "$wav" "$tmp/corpus/anna/b.wav"
touch -d '4 hours ago' "$tmp/corpus/anna"/*.wav
echo one two | tee "$tmp/corpus/anna/a.lab" > "$tmp/corpus/anna/b.txt"
run align --lexicon "$tmp/dict" --output-dir "$tmp/grids" "$tmp/corpus"
warns "align FOLDER --skip-done" "2 skipped" align --skip-done --lexicon "$tmp/dict" --output-dir "$tmp/grids" "$tmp/corpus"
touch -d '2 hours ago' "$tmp/grids/anna"/*
touch -d '3 hours ago' "$tmp/corpus/anna/a.lab"
run align --skip-done --lexicon "$tmp/dict" --output-dir "$tmp/grids" "$tmp/corpus"
has "align FOLDER --skip-done: the one whose text is newer" "$err" "1 utterance, 1 skipped"
refused "a text beside its sound is not an output" 1 "b.txt is an input" align -q --lexicon "$tmp/dict" -f text --output-dir "$tmp/corpus" "$tmp/corpus/anna/a.wav" "$tmp/corpus/anna/b.wav" --output-dir "$tmp/corpus/anna"
run posteriors "$wav" -o "$tmp/u1.npy"
run decode --output-dir "$tmp/decoded" "$tmp/u1.npy"
warns "decode --skip-done" "1 skipped" decode --skip-done --output-dir "$tmp/decoded" "$tmp/u1.npy"

# ---- formats by extension -------------------------------------------------------------------------------------------------------

for pair in subrip=srt praat=textgrid jsn=json docx=text; do
    refused "-f ${pair%=*}" 2 "did you mean ${pair#*=}?" transcribe -f "${pair%=*}" "$wav"
done
run transcribe -f nonsense "$wav"
hasnt "nothing near" "$err" "did you mean"
for pair in txt=text TextGrid=textgrid jsonl=json; do
    is "-f ${pair%=*}" "$("$LINNET" transcribe -q -f "${pair#*=}" "$wav")" "$("$LINNET" transcribe -q -f "${pair%=*}" "$wav")"
done
refused "-o talk.docx" 2 "no format has the extension .docx; did you mean text?" transcribe -o "$tmp/talk.docx" "$wav"
refused "-o talk.str" 2 "did you mean srt" transcribe -o "$tmp/talk.srtt" "$wav"
refused "-o of a format" 2 "--output (-o) names the file; for the format use --format srt" transcribe -osrt "$wav"
ok "none is written" test ! -e srt -a ! -e "$tmp/talk.docx"
refused "-o of a sound" 2 "has the extension of a sound file" transcribe -o "$tmp/other.WAV" "$wav"
run transcribe -q -f text -o "$tmp/talk.docx" "$wav"
is "-f says it" "$plain" "$(cat "$tmp/talk.docx")"
is "for an extension that is no format's" "" "$err"
run transcribe -q -f srt -o "$tmp/x.vtt" "$wav"
is "-f and -o of two formats" "linnet: $tmp/x.vtt gets the format srt, which --format names, not that of its extension" "$err"
run transcribe -q -o "$tmp/talk.phn" "$wav"
is "an unknown extension is text" "$plain" "$(cat "$tmp/talk.phn")"

# ---- byte order marks -----------------------------------------------------------------------------------------------------------

# What begins a text that lin_lines_begin reads: tests/lexicon/test_phones.c. Here: those who look for it themselves.
bom() { printf '\357\273\277'; cat; }
phones=$(echo one two | "$LINNET" phonemize -q --lexicon "$tmp/dict")
is "a text of two lines" "$phones|$phones" "$(printf 'one two\none two\n' | bom | "$LINNET" phonemize -q --lexicon "$tmp/dict" | tr '\n' '|' | sed 's/|$//')"
bom < "$tmp/scp/wav.scp" > "$tmp/scp/w" && mv "$tmp/scp/w" "$tmp/scp/wav.scp"
shows "a wav.scp" "(u1)" transcribe -q --data "$tmp/scp" -f trn

finish
