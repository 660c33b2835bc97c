# Bad input: each gives its message and exit status 1, nothing crashes, and a good file beside it is still processed.
. tests/app/common.sh

make_model || { fail "a small model"; finish; }
m=$tmp/model.safetensors
g=$tmp/good.wav
"$SOUND" "$g"
phones=$("$LINNET" transcribe -q -m "$m" "$g")

# bad_sound "what" FILE "part of the message": refused alone, and skipped beside a good file.
bad_sound() {
    refused "$1" 1 "$3" transcribe -q -m "$m" "$2"
    has "$1: the message names the file" "$err" "$(basename "$2")"
    exits "$1: beside a good file" 1 run transcribe -q -m "$m" --ids "$2" "$g"
    is "$1: the good file is done" "good $phones" "$out"
}

# ---- sound -----------------------------------------------------------------------------------------------------------------------

bad_sound "missing" "$tmp/none.wav" "cannot open $tmp/none.wav: No such file or directory"
: > "$tmp/empty.wav"
bad_sound "empty" "$tmp/empty.wav" "empty"
"$SOUND" "$tmp/nan.wav" format=f32 bad=nan
bad_sound "a NaN sample" "$tmp/nan.wav" "8000" # its number
echo "Dear diary, today I wrote a text and called it a sound." > "$tmp/text.wav"
bad_sound "a text called .wav" "$tmp/text.wav" "text.wav"
mkdir "$tmp/folder.wav"
bad_sound "a folder" "$tmp/folder.wav" "folder.wav"
# Root may read and write everything: if the test runs as root, the program runs as the user "nobody".
humble=no real=$LINNET
if [ "$(id -u)" != 0 ]; then
    humble=$LINNET
elif command -v setpriv > /dev/null && cp "$LINNET" "$tmp/linnet.bin" && chmod 755 "$tmp" "$tmp/linnet.bin"; then
    printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups "%s" "$@"\n' "$tmp/linnet.bin" > "$tmp/humble"
    chmod 755 "$tmp/humble"
    "$tmp/humble" --version > /dev/null 2>&1 && humble=$tmp/humble
fi
if [ "$humble" != no ]; then
    cp "$g" "$tmp/secret.wav"
    chmod 000 "$tmp/secret.wav"
    LINNET=$humble
    bad_sound "no permission" "$tmp/secret.wav" "Permission denied"
    LINNET=$real
fi

# Many channels.
"$SOUND" "$tmp/eight.wav" channels=8
exits "8 channels" 0 run transcribe -q -m "$m" "$tmp/eight.wav"
run transcribe -q -m "$m" --channel each "$tmp/eight.wav"
is "8 channels, each: lines" 8 "$(printf '%s\n' "$out" | wc -l | tr -d ' ')"
exits "empty standard input" 1 run transcribe -q -m "$m" - < /dev/null

# ---- models ----------------------------------------------------------------------------------------------------------------------

refused "a sound as a model" 1 "good.wav" transcribe -q -m "$g" "$g"
refused "a folder as a model" 1 "$tmp/folder.wav" transcribe -q -m "$tmp/folder.wav" "$g"
refused "a cache as a model" 1 "set.lfc" transcribe -q -m "$tmp/set.lfc" "$g"

# ---- lexicon and transcripts -----------------------------------------------------------------------------------------------------

lexicon() { refused "$1" 1 "bad.dict" phonemize --lexicon "$tmp/bad.dict" "$tmp/words"; }
echo "one two" > "$tmp/words"
: > "$tmp/bad.dict"
lexicon "an empty lexicon"
head -c 4096 "$m" > "$tmp/bad.dict"
lexicon "a model as a lexicon"
has "what it is not" "$err" "bad.dict is not a text (byte"
refused "a missing lexicon" 1 "cannot open $tmp/none.dict" phonemize --lexicon "$tmp/none.dict" "$tmp/words"
printf '\377\376o\0n\0e\0\n\0' > "$tmp/words16"
gives "a text in UTF-16" "W AH N" phonemize --lexicon "$tmp/dict" "$tmp/words16"
printf 'one two\none \001 two\n^ apples\nthree\n' > "$tmp/words"
exits "a transcript with control characters" 1 run phonemize --lexicon "$tmp/dict" "$tmp/words"
has "it names line and byte" "$err" "words:2: "
has "signs that are no words are refused" "$err" "words:3: "
is "the other lines are done" "W AH N T UW|TH R IY|" "$(printf '%s\n' "$out" | tr '\n' '|')"
cp -r "$tmp/data" "$tmp/bad_data"
printf 'u1 ONE TWO\nu2 TWO \002 THREE\nu3 THREE FOUR\nu4 FOUR ONE\n' > "$tmp/bad_data/text"
refused "control characters in text" 1 "text:2" prepare "$tmp/bad_data" --audio-root "$tmp/data" --lexicon "$tmp/dict" -o "$tmp/x.lfc"
printf 'u1 ONE TWO\nu3 THREE FOUR\nu4 FOUR ONE\n' > "$tmp/bad_data/text"
refused "a missing transcript" 1 "u2" prepare "$tmp/bad_data" --audio-root "$tmp/data" --lexicon "$tmp/dict" -o "$tmp/x.lfc"
refused "a missing data directory" 1 "$tmp/nowhere" prepare "$tmp/nowhere" --lexicon "$tmp/dict" -o "$tmp/x.lfc"
ok "no cache was written" test ! -e "$tmp/x.lfc"

# ---- places that cannot be written -----------------------------------------------------------------------------------------------

echo > "$tmp/file"
refused "output below a file" 1 "cannot write $tmp/file/x" transcribe -q -m "$m" -o "$tmp/file/x" "$g"
refused "an output folder that is a file" 1 "$tmp/file" transcribe -q -m "$m" --output-dir "$tmp/file" "$g"
refused "an output folder in a file" 1 "cannot create the folder $tmp/file/x" transcribe -q -m "$m" --output-dir "$tmp/file/x" "$g"
refused "features below a file" 1 "$tmp/file/x" features -o "$tmp/file/x" "$g"
refused "a cache below a file" 1 "$tmp/file/x" prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" -q -o "$tmp/file/x"
refused "a run below a file" 1 "$tmp/file/run" train "$tmp/train.conf" --train "$tmp/set.lfc" --folder "$tmp/file/run" -q
if [ "$humble" != no ]; then
    LINNET=$humble
    mkdir "$tmp/closed"
    chmod 555 "$tmp/closed"
    refused "a read-only folder" 1 "Permission denied" transcribe -q -m "$m" -o "$tmp/closed/x" "$g"
    refused "a read-only output folder" 1 "Permission denied" transcribe -q -m "$m" --output-dir "$tmp/closed" "$g"
    refused "features into a read-only folder" 1 "Permission denied" features -o "$tmp/closed/x.npy" "$g"
    LINNET=$real
fi
if [ -w /dev/full ]; then
    exits "a full disk" 1 run transcribe -q -m "$m" -o /dev/full "$g"
    has "a full disk" "$err" "No space left on device"
fi
mkdir "$tmp/xx"
mkfifo "$tmp/xx/words.dict"
refused "a language folder with a named pipe" 1 "words.dict: it is not a regular file" \
    transcribe -q --words -m "$m" --language "$tmp/xx" "$g"
ln -sf /dev/zero "$tmp/zero.dict"
refused "a lexicon that never ends" 1 "zero.dict: it is not a regular file" phonemize --lexicon "$tmp/zero.dict" word
ok "nothing was written where nothing could be" test ! -e "$tmp/file/x"
finish
