# Input: pipes, containers that ffmpeg reads, parts of files, sound that ends early.
. tests/app/common.sh

use_model
w=$tmp/talk.wav
"$SOUND" "$w" seconds=2 seed=7
phones=$("$LINNET" transcribe -q "$w")
[ -n "$phones" ] || fail "the small model hears something"
tail -c +45 "$w" > "$tmp/talk.raw"

# ---- pipes -----------------------------------------------------------------------------------------------------------------------

is "a WAV file in a pipe" "$phones" "$(cat "$w" | "$LINNET" transcribe -q -)"
is "a WAV file as standard input" "$phones" "$("$LINNET" transcribe -q - < "$w")"
is "/dev/stdin, a pipe" "$phones" "$(cat "$w" | "$LINNET" transcribe -q /dev/stdin)"
is "/dev/stdin, a file" "$phones" "$("$LINNET" transcribe -q /dev/stdin < "$w")"
printf 'one\ntwo\n' > "$tmp/lines"
is "the rest of a text that another program has begun to read" "T UW" \
    "$({ read -r first; "$LINNET" phonemize -q -l "$tmp/dict"; } < "$tmp/lines")"
# A signal while a text is awaited. Before the process is the program, it is a copy of this shell.
mkfifo "$tmp/open"
exec 3<> "$tmp/open"
"$LINNET" ngram count - < "$tmp/open" > /dev/null 2> "$tmp/.err" 3>&- &
pid=$!
waits() {
    ! cmp -s /proc/$pid/comm /proc/$$/comm && [ "$(ls -l /proc/$pid/fd | grep -c "$tmp/open")" = 2 ] &&
        grep -q '^State:.S' /proc/$pid/status
}
await waits
kill $pid
wait $pid
is "a text that is interrupted: status" 130 $?
has "a text that is interrupted" "$(cat "$tmp/.err")" "linnet: interrupted while /dev/stdin is read"
exec 3>&-
mkfifo "$tmp/pipe"
cat "$w" > "$tmp/pipe" &
is "a named pipe" "$phones" "$("$LINNET" transcribe -q "$tmp/pipe")"
is "listen reads it too" "$phones" "$(cat "$w" | "$LINNET" listen -q --reset never --from - 2> /dev/null | tr '\n' ' ' | sed 's/ *$//')"
# Results appear while sound arrives: the header does not give the length, and the pipe stays open.
{ head -c 40 "$w"; printf '\377\377\377\377'; cat "$tmp/talk.raw" "$tmp/talk.raw"; } > "$tmp/piped.wav"
"$LINNET" transcribe -q --reset never - < "$tmp/pipe" > "$tmp/partial" 2> "$tmp/.err" &
pid=$!
exec 9> "$tmp/pipe"
cat "$tmp/piped.wav" >&9
ok "results of a WAV file in a pipe appear while it is open" await test -s "$tmp/partial"
exec 9>&-
wait $pid
is "and it ends well" "0:" "$?:$(cat "$tmp/.err")"
# A header with a length, and more samples after it.
is "samples beyond what the header gives are read" "$("$LINNET" transcribe -q "$tmp/piped.wav")" \
    "$(cat "$w" "$tmp/talk.raw" | "$LINNET" transcribe -q - 2> "$tmp/.err")"
has "and that is said" "$(cat "$tmp/.err")" "the header of standard input gives 2.000 s; all 4.000 s of it are read"

mkfifo "$tmp/silent"
"$LINNET" listen -q --from - < "$tmp/silent" > "$tmp/.out" 2> "$tmp/.err" &
pid=$!
exec 9> "$tmp/silent"
await catches $pid
kill -TERM $pid
wait $pid
is "an interrupt before a pipe has said anything" "0:" "$?:$(cat "$tmp/.out" "$tmp/.err")"
exec 9>&-

run transcribe - < "$tmp/talk.raw"
is "headerless samples as standard input" "$phones" "$out"
has "it is said how they are taken" "$err" "the format of standard input is not recognised: it is read as headerless s16le at 16000 Hz, 1 channel"
cat "$tmp/talk.raw" | "$LINNET" transcribe -q --raw - > "$tmp/.out" 2> "$tmp/.err"
is "--raw: no word about it" "$phones:" "$(cat "$tmp/.out"):$(cat "$tmp/.err")"
cat "$tmp/talk.raw" | "$LINNET" transcribe -q --rate 16000 - > "$tmp/.out" 2> "$tmp/.err"
is "also if the rate is given" "$phones:" "$(cat "$tmp/.out"):$(cat "$tmp/.err")"
is "a rate does not change what a file is" "$phones" "$("$LINNET" transcribe -q --rate 8000 - < "$w" 2> /dev/null)"
for how in rate=8000 channels=2 encoding=mulaw; do
    refused "--$how of a file with a header" 2 "have no effect on a file with a header; add --raw" transcribe --$how "$w"
done

# piped "what" "part of the message" BYTES: refused with that, status 1, from a pipe and as a file on standard input
piped() {
    printf '%s' "$3" > "$tmp/bytes"
    cat "$tmp/bytes" | "$LINNET" transcribe -q - > "$tmp/.out" 2> "$tmp/.err"
    is "$1 in a pipe: status" 1 "$?"
    has "$1 in a pipe" "$(cat "$tmp/.err")" "$2"
    is "$1 in a pipe: no result" "" "$(cat "$tmp/.out")"
    exits "$1 as standard input" 1 run transcribe -q - < "$tmp/bytes"
    has "$1 as standard input" "$err" "$2"
}
piped "a web page" "it is text" '<html><body>Not found</body></html>'
piped "nothing" "standard input" ''

# A format that needs seeking is stored in a temporary file first.
cp "$w" "$tmp/big.wav"
printf 'RIFX' | dd of="$tmp/big.wav" bs=1 conv=notrunc 2> /dev/null # big-endian, and its lengths are now absurd
mkdir "$tmp/spool"
stored() { cat "$tmp/big.wav" | TMPDIR=$1 "$LINNET" transcribe -q - 2>&1 | sed "s,$1,FOLDER,"; }
stored=$(stored "$tmp/spool")
is "nothing of it stays" "" "$(ls -A "$tmp/spool")"
is "no folder to store a pipe: memory" "$stored" "$(stored "$tmp/nowhere")"

# ---- NIST SPHERE -------------------------------------------------------------------------------------------------------------------

# sphere NAME OPTIONS...: the talk as $tmp/NAME.wv1
sphere() {
    name=$1
    shift
    "$(dirname "$LINNET")/tests/recipes/sphere" "$w" "$tmp/$name.wv1" "$@" > "$tmp/.log" 2>&1 || fail "sphere $*" "$(cat "$tmp/.log")"
}
"$LINNET" features "$w" -o "$tmp/f1.npy"
sphere_is() {
    ok "SPHERE, $1: features" "$LINNET" features "$tmp/s.wv1" -o "$tmp/f2.npy"
    ok "SPHERE, $1: the same" cmp "$tmp/f1.npy" "$tmp/f2.npy"
    is "SPHERE, $1: a pipe" "$phones" "$(cat "$tmp/s.wv1" | "$LINNET" transcribe -q -)"
}
for order in 01 10; do
    sphere s coding=pcm order=$order
    sphere_is "$order"
done
sphere bad coding=pcm damage=cut:33024
exits "a truncated SPHERE file" 1 run transcribe "$tmp/bad.wv1"
has "a truncated SPHERE file" "$err" "bad.wv1 is truncated: it ends after 1.000 s; its header gives 2.000 s"
sphere s coding=shorten
exits "shorten without ffmpeg" 1 run transcribe -q "$tmp/s.wv1"
has "shorten without ffmpeg" "$err" "s.wv1 is a NIST SPHERE file compressed with shorten, which needs the program ffmpeg: install it"
if ! command -v ffmpeg > /dev/null; then
    echo "skipped: shorten (no ffmpeg)"
else
    unset LINNET_FFMPEG
    sphere_is shorten
    # One broken file among others: the sound before the fault is used.
    sphere bad damage=cut:20000
    exits "a truncated .wv1" 1 run transcribe "$tmp/s.wv1" "$tmp/bad.wv1" "$w"
    is "a truncated .wv1: the other files are done" "s $phones,talk $phones," "$(printf '%s' "$out" | grep -v ^bad | tr '\n' ,)"
    has "a truncated .wv1" "$err" "bad.wv1 is damaged; 0."
    sphere bad damage=count
    exits "a wrong sample count" 1 run transcribe -q "$tmp/bad.wv1"
    has "a wrong sample count" "$err" "bad.wv1 is truncated"
    export LINNET_FFMPEG=
fi

# ---- a script in place of ffmpeg -------------------------------------------------------------------------------------------------

"$SOUND" "$tmp/talk.au" seconds=2 seed=7 format=au
export LINNET_SANDBOX=off # the script reads and writes files of this test
{ echo "#!/bin/sh"; echo "FAKE=$tmp"; } > "$tmp/fake"
cat >> "$tmp/fake" <<'END'
printf '%s\n' "$@" > "$FAKE/args"
ls /proc/self/fd | tr '\n' ' ' > "$FAKE/fds"
cat /proc/self/fd/0 > "$FAKE/given"
length=02.00 start=0.000000 container=mov,mp4
case $(cat "$FAKE/mode") in
late) length=10.00 start=8.000000 ;;
late-flv) length=10.00 start=8.000000 container=flv ;;
esac
echo "[info] Input #0, $container, from 'file:/proc/self/fd/0':" >&2
echo "[info]   Duration: 00:00:$length, start: $start, bitrate: 64 kb/s" >&2
case $(cat "$FAKE/mode") in
good|late|late-flv) cat "$FAKE/talk.au" ;;
bad) echo '[mov,mp4 @ 0x55] [error] moov atom not found' >&2; echo '[error] file:/proc/self/fd/0: Invalid data found' >&2; exit 1 ;;
silent) echo '[fatal] Stream map 0:a:0 matches no streams.' >&2; exit 1 ;;
half) head -c 64028 "$FAKE/talk.au"; echo '[mov,mp4 @ 0x55] [error] stream 0, offset 0x50c0: partial file' >&2 ;;
short) head -c 64028 "$FAKE/talk.au" ;;
fails) head -c 64028 "$FAKE/talk.au"; echo 'out of luck' >&2; exit 69 ;;
killed) head -c 64028 "$FAKE/talk.au"; kill -9 $$ ;;
other) echo "<html>" ;;
huge) printf '.snd\377\377\377\377\377\377\377\377\000\000\000\006\000\000\076\200\000\000\000\001'; cat "$FAKE/talk.au" ;;
many) printf '.snd\000\000\000\030\377\377\377\377\000\000\000\006\000\000\076\200\000\000\002\000'; cat "$FAKE/talk.au" ;;
talks) cat "$FAKE/talk.au"; i=0; while [ $i -lt 3000 ]; do echo "[info] nothing that matters at all, line after line after line" >&2; i=$((i + 1)); done ;;
hangs) echo $$ > "$FAKE/pid"; head -c 64028 "$FAKE/talk.au"; exec sleep 100 ;;
esac
END
chmod 755 "$tmp/fake"
m=$tmp/talk.m4a
printf '\000\000\000\030ftypM4A \000\000\000\000M4A mp42\001\002\003' > "$m"
exits "without ffmpeg" 1 run transcribe -q "$m"
has "without ffmpeg: what it is" "$err" "talk.m4a is an MPEG-4 file (m4a, mp4, mov), which needs the program ffmpeg"
has "without ffmpeg: what to do" "$err" "apt install ffmpeg"
(unset LINNET_FFMPEG; PATH=$tmp/nowhere "$LINNET" transcribe -q "$m") 2> "$tmp/.err"
emulated && why="exit status 127" || why="No such file or directory" # the emulator's vfork does not share memory
has "ffmpeg is looked for on the PATH" "$(cat "$tmp/.err")" "cannot run ffmpeg: $why"

export LINNET_FFMPEG=$tmp/fake
mode() { echo "$1" > "$tmp/mode"; }
mode good
is "an m4a" "$phones" "$("$LINNET" transcribe -q "$m")"
ok "ffmpeg was given the file itself" cmp "$m" "$tmp/given"
is "it has no other descriptors (ls opens 3)" "0 1 2 3 " "$(cat "$tmp/fds")"
hasnt "and never sees its name" "$(cat "$tmp/args")" "talk.m4a"
is "it may open only files" "file,subfile" "$(sed -n '/^-protocol_whitelist$/{n;p;}' "$tmp/args")"
is "and no format that names other files" "" "$(sed -n '/^-format_whitelist$/{n;p;}' "$tmp/args" | tr , '\n' |
    grep -E "^(dash|hls|applehttp|concat|sdp|rtsp|rtp|imf|image2|image2pipe|.*_pipe|webvtt|srt|ass|lavfi|ffmetadata|tedcaptions)?$")"
cp "$tmp/args" "$tmp/plain_args"
cp "$m" "$tmp/-y.m4a"
cp "$m" "$tmp/concat:a|b.m4a"
is "a file called -y.m4a" "$phones" "$(cd "$tmp" && "$LINNET" transcribe -q -- -y.m4a)"
is "a file called concat:a|b.m4a" "$phones" "$(cd "$tmp" && "$LINNET" transcribe -q "concat:a|b.m4a")"
ok "neither changes the arguments of ffmpeg" cmp "$tmp/plain_args" "$tmp/args"
is "an m4a in a pipe" "$phones" "$(cat "$m" | "$LINNET" transcribe -q -)"
ok "ffmpeg was given all of it" cmp "$m" "$tmp/given"
is "an m4a as standard input" "$phones" "$("$LINNET" transcribe -q - < "$m")"
"$LINNET" features "$w" -o "$tmp/f1.npy" && "$LINNET" features "$m" -o "$tmp/f2.npy"
ok "features" cmp "$tmp/f1.npy" "$tmp/f2.npy"
"$LINNET" posteriors "$w" -o "$tmp/p1.npy" && "$LINNET" posteriors "$m" -o "$tmp/p2.npy"
ok "posteriors" cmp "$tmp/p1.npy" "$tmp/p2.npy"
is "align" "$("$LINNET" align -q --phones "AH N" "$w" 2> /dev/null)" "$("$LINNET" align -q --phones "AH N" "$m" 2> /dev/null)"
is "listen --from" "$("$LINNET" listen -q --no-paced --from "$w")" "$("$LINNET" listen -q --no-paced --from "$m")"
mkdir "$tmp/media"
echo "u1 talk.m4a" > "$tmp/media/wav.scp"
echo "u1 ONE TWO" > "$tmp/media/text"
echo "u1 s1" > "$tmp/media/utt2spk"
exits "prepare" 0 run prepare "$tmp/media" --audio-root "$tmp" --lexicon "$tmp/dict" --stack 3 -o "$tmp/media.lfc"
run transcribe -q -j 4 "$m" "$m" "$m" "$m" "$m"
is "several at once" 5 "$(printf '%s\n' "$out" | grep -c "$phones\$")"
mode late
run transcribe -q "$m"
is "a container that begins at 8 s, as a segment of a recording does" "0:$phones:" "$status:$out:$err"
mode late-flv
run transcribe -q "$m"
is "one whose length does not count the time before" "1:$phones" "$status:$out"
has "one whose length does not count the time before" "$err" "its container gives 10.00 s"
mode talks
is "much on standard error does not stop it" "$phones" "$("$LINNET" transcribe -q "$m")"

mode bad
refused "ffmpeg cannot read it" 1 "talk.m4a cannot be read; ffmpeg says: moov atom not found; Invalid data found" transcribe -q "$m"
mode silent
refused "a video without sound" 1 "it contains no sound" transcribe -q "$m"
mode other
refused "ffmpeg gives no samples" 1 "talk.m4a cannot be read" transcribe -q "$m"
mode huge
refused "an absurd header from ffmpeg" 1 "talk.m4a cannot be read" transcribe -q "$m"
mode many
refused "512 channels" 1 "talk.m4a has 512 channels; 1 to 64 can be read" transcribe -q "$m"
mode good
for n in 4 5 6 7 8 9 10; do
    ! emulated || break # the emulator needs some too
    for sound in "$m" "$w"; do
        (ulimit -n $n; "$LINNET" transcribe -q "$sound") > "$tmp/.out" 2> "$tmp/.err"
        status=$?
        case $status:$(cat "$tmp/.out") in
        "0:$phones"|1:) pass ;;
        *) fail "$n descriptors" "status $status" "$(cat "$tmp/.out" "$tmp/.err")" ;;
        esac
    done
done
"$LINNET" transcribe -q "$w" >&- 2> "$tmp/.err"
is "a closed standard output: status" 1 "$?"
has "a closed standard output" "$(cat "$tmp/.err")" "cannot write standard output"
is "a closed standard output: one message" 1 "$(wc -l < "$tmp/.err" | tr -d ' ')"
broken() {
    mode "$1"
    exits "$2" 1 run transcribe -q "$m"
    has "$2: the samples that exist are used" "$phones" "$out"
    ok "$2: and it is something" test -n "$out"
    has "$2: reported" "$err" "talk.m4a is damaged; 1.000 s of it were read; ffmpeg says: $3"
}
broken half "ffmpeg complains" "stream 0, offset 0x50c0: partial file"
broken short "a container that gives a longer time" "its container gives 2.00 s"
broken fails "ffmpeg fails on the way" "out of luck; exit status 69"
broken killed "ffmpeg is killed" "it ended with signal 9"

mode hangs
"$LINNET" transcribe -q "$m" > "$tmp/.out" 2> "$tmp/.err" &
pid=$!
await test -s "$tmp/pid"
kill -TERM $pid
wait $pid
is "an interrupt while ffmpeg works: status" 130 "$?"
ok "it is ended with us" await runs_no_more "$(cat "$tmp/pid")"
unset LINNET_FFMPEG LINNET_SANDBOX
if command -v ffmpeg > /dev/null; then
    # Lossless formats: the same phones.
    ffmpeg -v error -i "$w" -c:a alac "$tmp/real.m4a" && is "the real ffmpeg: m4a" "$phones" "$("$LINNET" transcribe -q "$tmp/real.m4a")"
    ffmpeg -v error -f lavfi -i testsrc=d=2:s=32x32:r=5 -i "$w" -c:a flac "$tmp/real.mkv" &&
        is "the real ffmpeg: mkv with a picture" "$phones" "$("$LINNET" transcribe -q "$tmp/real.mkv")"
    is "the real ffmpeg: in a pipe" "$phones" "$(cat "$tmp/real.m4a" | "$LINNET" transcribe -q -)"
    head -c $(($(wc -c < "$tmp/real.mkv") / 2)) "$tmp/real.mkv" > "$tmp/cut.mkv"
    exits "the real ffmpeg: half a file" 1 run transcribe -q "$tmp/cut.mkv"
    has "the real ffmpeg: half a file is reported" "$err" "cut.mkv is damaged"
fi
export LINNET_FFMPEG=

# ---- sound that ends early: its result is written, the status is 1 -----------------------------------------------------------------

c=$tmp/cut.wav
head -c 32044 "$w" > "$c" # 1 of 2 seconds
said="cut.wav is truncated: it ends after 1.000 s; its header gives 2.000 s"
incomplete() {
    what=$1
    shift
    exits "$what of sound that ends early" 1 run "$@"
    has "$what of sound that ends early: reported" "$err" "$said"
}
incomplete transcribe transcribe -o "$tmp/cut.txt" "$c" "$w"
has "the summary counts it" "$err" "2 files, 1 incomplete"
is "transcribe: both results are there" 2 "$(wc -l < "$tmp/cut.txt" | tr -d ' ')"
incomplete features features "$c" -o "$tmp/cut.npy"
ok "features are there" test -s "$tmp/cut.npy"
rm "$tmp/cut.npy"
incomplete posteriors posteriors "$c" -o "$tmp/cut.npy"
ok "posteriors are there" test -s "$tmp/cut.npy"
incomplete align align --phones "AH N" -o "$tmp/cut.ctm" "$c"
ok "the alignment is there" test -s "$tmp/cut.ctm"
incomplete listen listen -q --no-paced --from "$c"
echo "u1 cut.wav" > "$tmp/media/wav.scp"
incomplete prepare prepare "$tmp/media" --audio-root "$tmp" --lexicon "$tmp/dict" --stack 3 -o "$tmp/cut.lfc"
has "prepare names the utterance" "$err" "u1: "
ok "the cache is there" test -s "$tmp/cut.lfc"
run transcribe -q - < "$c"
has "standard input that is truncated" "$err" "standard input is truncated: it ends after 1.000 s"
head -c 32044 "$w" | "$LINNET" transcribe -q - > "$tmp/.out" 2> "$tmp/.err"
is "a pipe that is truncated: status" 1 "$?"
has "a pipe that is truncated" "$(cat "$tmp/.err")" "standard input is truncated: it ends after 1.000 s; its header gives 2.000 s"

# ---- a part of a file --------------------------------------------------------------------------------------------------------------

{ head -c 40 "$w"; printf '\000\175\000\000'; tail -c +$((45 + 16000)) "$w" | head -c 32000; } > "$tmp/part.wav" # 0.5 to 1.5 s
"$LINNET" features "$tmp/part.wav" -o "$tmp/a.npy"
"$LINNET" features --start 0.5 --end 1.5s "$w" -o "$tmp/b.npy"
ok "features of a part" cmp "$tmp/a.npy" "$tmp/b.npy"
"$LINNET" posteriors "$tmp/part.wav" -o "$tmp/a.npy"
"$LINNET" posteriors --start 500ms --end 1.5 "$w" -o "$tmp/b.npy"
ok "posteriors of a part" cmp "$tmp/a.npy" "$tmp/b.npy"
cat "$w" | "$LINNET" posteriors --start 500ms --end 1.5 - -o "$tmp/c.npy"
ok "posteriors of a part of a pipe" cmp "$tmp/a.npy" "$tmp/c.npy"
later() { awk '/^;;/ { next } { printf "%.3f %s %s %s\n", $3 + 0.5, $4, $5, $6 }' "$1"; }
plain() { awk '/^;;/ { next } { printf "%.3f %s %s %s\n", $3, $4, $5, $6 }' "$1"; }
"$LINNET" transcribe -q -f ctm "$tmp/part.wav" > "$tmp/a.ctm"
"$LINNET" transcribe -q -f ctm --start 0.5 --end 1.5 "$w" > "$tmp/b.ctm"
is "transcribe: the times of the file" "$(later "$tmp/a.ctm")" "$(plain "$tmp/b.ctm")"
cat "$w" | "$LINNET" transcribe -q -f ctm --start 0.5 --end 1.5 - > "$tmp/c.ctm"
is "transcribe: of a pipe too" "$(plain "$tmp/b.ctm")" "$(plain "$tmp/c.ctm")"
"$LINNET" transcribe -q -f json --beam 8 --n-best 2 --start 0.5 --end 1.5 "$w" > "$tmp/b.json"
hasnt "alternatives have the times of the file" "$(cat "$tmp/b.json")" '"start":0.0'
has "the sound ends where its part does" "$(cat "$tmp/b.json")" '"seconds":1.500'
"$LINNET" align -q -f ctm --phones "AH N" "$tmp/part.wav" > "$tmp/a.ctm" 2> /dev/null
"$LINNET" align -q -f ctm --phones "AH N" --start 0.5 --end 1.5 "$w" > "$tmp/b.ctm" 2> /dev/null
is "align: the times of the file" "$(later "$tmp/a.ctm")" "$(plain "$tmp/b.ctm")"
run transcribe -q --start 0.2 --end 0.9 "$c"
is "sound missing after the requested part is no error" "0:" "$status:$err"
refused "a part after the end" 1 "the sound ends after 2.000 s, before the part from 2.500 s" transcribe -q --start 2.5 "$w"
refused "features of a part after the end" 1 "$w: the sound ends after 2.000 s" features --start 2.5 "$w" -o "$tmp/p.npy"
refused "an end before the start" 2 "--end must be after --start" features --start 2 --end 1 "$w" -o "$tmp/x.npy"
refused "a start that is not a time" 2 "--start needs a time such as" posteriors --start soon "$w" -o "$tmp/x.npy"
refused "parts and streams" 2 "--start and --end exclude --save-state" transcribe --start 1 --save-state "$tmp/s" "$w"
finish
