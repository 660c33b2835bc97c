# [slow] No sound is lost in silence: what is read is compared with what the container holds, in both directions. All formats x
# {shorter, joined, unknown length} x {file, pipe, upload}, and as they are and longer as files: all of the sound is read, or the
# status is 1 and a warning says what is missing.
. tests/app/common.sh
serverless=1
. tests/app/serving.sh
CONFIG=${CONFIG:-release}

use_model
CONTAINER=$(dirname "$LINNET")/tests/app/container
"$SOUND" "$tmp/two.wav" seconds=2 seed=7
"$SOUND" "$tmp/one.wav" seconds=1 seed=8
! command -v ffmpeg > /dev/null || unset LINNET_FFMPEG

[ -z "$has_server" ] || start lengths --no-words

seconds_of() { sed -n 's/.*"seconds":\([0-9.]*\).*/\1/p' "$1" | head -n 1; }
near() { awk "BEGIN { d = ${1:-0} - ($2); exit !(d < 0.25 && d > -0.12) }"; }

# judge "what" SECONDS WANT STATUS "warnings": all WANT seconds were read. less: fewer, which is said; some: all or fewer.
judge() {
    if [ "$3" = less ] || { [ "$3" = some ] && [ "$4" = 1 ]; }; then
        if [ "$4" = 1 ] && [ -n "$5" ] && awk "BEGIN { exit !(${2:-0} < 2.95) }"; then pass
        else fail "$1: sound is missing, which is said" "$2 s, status $4: $5"; fi
    elif near "$2" "$([ "$3" = some ] && echo 3 || echo "$3")" && [ "$4" = 0 ]; then pass
    else fail "$1: $3 s" "$2 s, status $4: $5"; fi
}
# file "what" FILE WANT
file() {
    run transcribe -q -f json "$2"
    judge "$1: file" "$(seconds_of "$tmp/.out")" "$3" "$status" "$err"
}
# all "what" FILE WANT
all() {
    file "$@"
    cat "$2" | "$LINNET" transcribe -q -f json - > "$tmp/.out" 2> "$tmp/.err"
    status=$?
    judge "$1: pipe" "$(seconds_of "$tmp/.out")" "$3" $status "$(cat "$tmp/.err")"
    [ "$has_server" ] || return 0
    talk post /v1/audio/transcriptions file=@"$2" response_format=full_json > "$tmp/.out"
    warning=$(sed -n 's/.*"warning":"\([^"]*\)".*/\1/p; s/.*"message":"\([^"]*\)".*/\1/p' "$tmp/.out" | head -n 1)
    case $warning in *"all "*" of it are read"|"") status=0 ;; *) status=1 ;; esac
    judge "$1: upload" "$(seconds_of "$tmp/.out")" "$3" $status "$warning"
    hasnt "$1: upload: no path" "$warning" /proc
}
# table FORMAT [JOINED]: the files FORMAT.two and FORMAT.one are there
table() {
    size=$(wc -c < "$tmp/$1.two")
    [ "$CONFIG" = asan ] || file "$1, as it is" "$tmp/$1.two" 2
    # The end is missing. A stream of frames without a length does not tell.
    head -c $((size * 6 / 10)) "$tmp/$1.two" > "$tmp/cut"
    case $1 in mp3-plain|aac|ts|flv-live|webm-live) ;; *) all "$1, shorter" "$tmp/cut" less ;; esac
    cat "$tmp/$1.two" "$tmp/$1.one" > "$tmp/joined"
    all "$1, joined" "$tmp/joined" "${2:-3}"
    [ "$CONFIG" != asan ] || return 0 # the two rows that read most like others
    { cat "$tmp/$1.two"; printf 'TAG%0125d' 0; head -c 3000 /dev/zero; } > "$tmp/tagged"
    file "$1, with a tag and padding after it" "$tmp/tagged" 2
}

for format in wav rifx rf64 w64 aiff au caf flac ogg opus mp3; do
    if ! "$CONTAINER" "$tmp/two.wav" "$tmp/$format.two" $format 2> "$tmp/.log"; then
        echo "skipped: $format ($(cat "$tmp/.log"))"
        continue
    fi
    "$CONTAINER" "$tmp/one.wav" "$tmp/$format.one" $format
    table $format
    for how in half unknown; do
        "$CONTAINER" "$tmp/two.wav" "$tmp/$format.$how" $format $how 2> /dev/null || continue
        # Half of it in the header: only where it is known how the samples go on.
        case $how-$format in half-rifx|half-aiff|half-caf) want=less ;; *) want=2 ;; esac
        all "$format, $how" "$tmp/$format.$how" $want
    done
done
# NIST SPHERE: ffmpeg reads what is compressed with shorten.
for coding in pcm shorten; do
    if [ $coding = shorten ] && ! command -v ffmpeg > /dev/null; then echo "skipped: shorten (no ffmpeg)"; continue; fi
    for n in two one; do
        "$(dirname "$LINNET")/tests/recipes/sphere" "$tmp/$n.wav" "$tmp/sphere-$coding.$n" coding=$coding > "$tmp/.log" 2>&1
    done
    table sphere-$coding
done
# Two kinds in one file, and two rates, which cannot be one sound.
if [ -f "$tmp/flac.two" ]; then
    cat "$tmp/wav.two" "$tmp/flac.one" > "$tmp/joined"
    run transcribe -q -f json "$tmp/joined"
    judge "wav and flac" "$(seconds_of "$tmp/.out")" 3 "$status" "$err"
    cat "$tmp/joined" | "$LINNET" transcribe -q -f json - > "$tmp/.out" 2> "$tmp/.err"
    status=$?
    judge "wav and flac: pipe" "$(seconds_of "$tmp/.out")" less $status "$(cat "$tmp/.err")"
fi
"$SOUND" "$tmp/fast.wav" rate=8000 seconds=1 seed=3
cat "$tmp/two.wav" "$tmp/fast.wav" > "$tmp/joined"
exits "two rates" 1 run transcribe -q "$tmp/joined"
has "two rates" "$err" "consists of several WAV files; the one that begins after 2.000 s is not read"
cat "$tmp/joined" | "$LINNET" transcribe -q - > "$tmp/.out" 2> "$tmp/.err"
is "two rates in a pipe: status" 1 $?
has "two rates in a pipe" "$(cat "$tmp/.err")" "consists of several WAV files; the one that begins after 2.000 s is not read"
# Chunks after the samples are not sound.
{ head -c 4 "$tmp/two.wav"; printf '\377\377\377\377'; tail -c +9 "$tmp/two.wav"; printf 'LIST\020\000\000\000INFOISFT\003\000\000\000ab\000\000'; } > "$tmp/list.wav"
all "chunks after the samples" "$tmp/list.wav" 2
# Neither are zeros of any length, nor a tag before the sound or after it, with a picture in it.
{ printf 'ID3\004\000\000\000\002\000\000APIC'; head -c 32764 /dev/urandom; } > "$tmp/id3"
{ cat "$tmp/two.wav"; head -c 64001 /dev/zero; } > "$tmp/zeros.wav"
cat "$tmp/two.wav" "$tmp/id3" > "$tmp/id3.wav"
{ cat "$tmp/two.wav" "$tmp/id3"; head -c 5000 /dev/zero; cat "$tmp/one.wav"; } > "$tmp/between.wav"
cat "$tmp/id3" "$tmp/two.wav" > "$tmp/before.wav"
all "zeros after the samples" "$tmp/zeros.wav" 2
all "ID3v2 after the samples" "$tmp/id3.wav" 2
all "ID3v2 and zeros between two files" "$tmp/between.wav" 3
all "ID3v2 before a WAV file" "$tmp/before.wav" 2
[ ! -f "$tmp/flac.two" ] || { cat "$tmp/id3" "$tmp/flac.two" > "$tmp/before.flac"; all "ID3v2 before a FLAC file" "$tmp/before.flac" 2; }
# Of two chunks of samples the first is read. One that is empty is none.
{ cat "$tmp/two.wav"; tail -c +37 "$tmp/one.wav"; } > "$tmp/second.wav"
all "two chunks of samples" "$tmp/second.wav" less
has "two chunks of samples: the first is read" "$("$LINNET" transcribe -q -f json "$tmp/second.wav" 2> /dev/null)" '"seconds":2.000'
{ cat "$tmp/two.wav"; printf 'data\000\000\000\000'; } > "$tmp/second.wav"
all "a second chunk without samples" "$tmp/second.wav" 2
# Bytes that are noise are not read as samples.
{ cat "$tmp/two.wav"; printf '\000\001'; head -c 40000 /dev/urandom; } > "$tmp/noise.wav"
exits "noise after the samples" 1 run transcribe -q "$tmp/noise.wav"
has "noise after the samples" "$err" "continues after its sound of 2.000 s: bytes beyond its header's length are not read"
# A joined file is read through for a part of it.
cat "$tmp/two.wav" "$tmp/one.wav" > "$tmp/joined"
"$LINNET" features --start 2 --end 3 "$tmp/joined" -o "$tmp/a.npy" && "$LINNET" features "$tmp/one.wav" -o "$tmp/b.npy"
ok "a part of a joined file" cmp -n 20000 "$tmp/a.npy" "$tmp/b.npy"
# WAV of more than 4 GiB, whose length does not fit: read from its end only, where the sound is. A sparse file.
if truncate -s 4600M "$tmp/huge.wav" 2> /dev/null; then
    { head -c 4 "$tmp/two.wav"; printf '\377\377\377\377'; tail -c +9 "$tmp/two.wav" | head -c 32; printf '\377\377\377\377'; } |
        dd of="$tmp/huge.wav" conv=notrunc 2> /dev/null
    tail -c +45 "$tmp/two.wav" | cat >> "$tmp/huge.wav"
    end=$(awk 'BEGIN { printf "%.3f", (4600 * 1048576 - 44) / 32000 }') # where the samples of two.wav begin
    run transcribe -q -f json --start "$end" "$tmp/huge.wav"
    is "more than 4 GiB: status" "0:" "$status:$err"
    ok "more than 4 GiB: to its end" near "$(seconds_of "$tmp/.out")" "$end + 2"
    rm "$tmp/huge.wav"
fi

run transcribe -q --track 2 "$tmp/two.wav"
is "no second track: status and message" "1:linnet: $tmp/two.wav has no sound track '2' (--track), only one without a language" "$status:$err"
exits "an empty --track" 2 run transcribe --track "" "$tmp/two.wav"
if ! command -v ffmpeg > /dev/null; then
    echo "skipped: formats that ffmpeg reads (no ffmpeg)"
    finish
fi

# ---- with ffmpeg

# Whatever the container, the program reads the samples that ffmpeg writes: test_inputs.sh has a sanitizer look at that.
[ "$CONFIG" != asan ] || { [ -z "$has_server" ] || stop "the server"; finish; }

# media NAME ARGUMENTS...: an encoder that is not there is skipped
media() {
    name=$1
    shift
    for n in two one; do
        # To a pipe where the muxer is to write no length.
        case $name in
        *-live) ffmpeg -v error -i "$tmp/$n.wav" "$@" - 2> "$tmp/.log" | cat > "$tmp/$name.$n" ;;
        *) ffmpeg -v error -y -i "$tmp/$n.wav" "$@" "$tmp/$name.$n" 2> "$tmp/.log" ;;
        esac
    done
    if [ ! -s "$tmp/$name.one" ]; then
        echo "skipped: $name ($(head -n 1 "$tmp/.log"))"
        return
    fi
    case $name in wv) table $name some ;; *) table "$name" ;; esac
}
media chained-opus -c:a libopus -serial_offset 100 -f ogg
media chained-vorbis -c:a libvorbis -serial_offset 100 -f ogg
media mp3-xing -c:a libmp3lame -f mp3
media mp3-plain -c:a libmp3lame -write_xing 0 -id3v2_version 0 -f mp3
media m4a -c:a aac -f ipod
media mov -c:a alac -f mov
media mp4-fragments -c:a aac -movflags frag_keyframe+empty_moov -f mp4
media webm -c:a libopus -f webm
media webm-live -c:a libopus -f webm -live 1
media mka -c:a flac -f matroska
media wma -c:a wmav2 -f asf
media ts -c:a mp2 -f mpegts
media aac -c:a aac -f adts
media avi -c:a pcm_s16le -f avi
media voc -c:a pcm_s16le -f voc # many blocks
for more in 1 2; do # half a sample, or none
    head -c $(($(wc -c < "$tmp/avi.two") / 2 + more)) "$tmp/avi.two" > "$tmp/cut"
    all "avi, shorter, $more more" "$tmp/cut" less
done
media flv -ar 44100 -c:a libmp3lame -f flv
media flv-live -ar 44100 -c:a libmp3lame -f flv
media tta -c:a tta -f tta
media wv -c:a wavpack -f wv
# Telephony without a header: GSM by its frames, G.722 by the name. Neither tells that its end is missing.
ffmpeg -v error -y -i "$tmp/two.wav" -c:a g722 -f g722 "$tmp/two.G722" 2> "$tmp/.log"
run transcribe -q -f json "$tmp/two.G722"
judge "G.722" "$(seconds_of "$tmp/.out")" 2 "$status" "$err"
i=0
while [ $i -lt 100 ]; do printf '\324%032d' 0 | tr 0 '\177'; i=$((i + 1)); done > "$tmp/gsm"
run transcribe -q -f json "$tmp/gsm"
judge "GSM" "$(seconds_of "$tmp/.out")" 2 "$status" "$err"
# A browser's recorder that was started again, without a header: times go back within a file.
if [ -s "$tmp/webm-live.one" ]; then
    at=$(LC_ALL=C grep -abo "$(printf '\037C\266u')" "$tmp/webm-live.one" | head -n 1 | cut -d: -f1)
    { cat "$tmp/webm-live.two"; tail -c +$((at + 1)) "$tmp/webm-live.one"; } > "$tmp/back.webm"
    all "times that go back" "$tmp/back.webm" 3
fi
# Gaps become silence; in an upload, which may be a stranger's, only those of at most 30 s.
for gap in 3 60; do
    ffmpeg -v error -y -i "$tmp/two.wav" -af "asetpts='if(gt(T,1),PTS+$gap/TB,PTS)'" -c:a libopus -f webm "$tmp/gap.webm" 2> "$tmp/.log" || continue
    run transcribe -q -f json "$tmp/gap.webm"
    judge "a gap of $gap s: file" "$(seconds_of "$tmp/.out")" $((gap + 2)) "$status" "$err"
    [ "$has_server" ] || continue
    talk post /v1/audio/transcriptions file=@"$tmp/gap.webm" response_format=full_json > "$tmp/.out"
    judge "a gap of $gap s: upload" "$(seconds_of "$tmp/.out")" $((gap == 3 ? 5 : 2)) 0 ""
done
# Times count from the begin of the picture, as a player shows them.
for format in ts mpg vob mkv mp4; do
    ffmpeg -v error -y -f lavfi -i testsrc=s=64x48:r=25:d=4 -itsoffset 2 -i "$tmp/two.wav" -c:v mpeg2video -c:a mp2 \
        "$tmp/late.$format" 2> "$tmp/.log"
    all "a sound that starts after the picture, $format" "$tmp/late.$format" 4
    "$LINNET" features --end 1.8 "$tmp/late.$format" -o "$tmp/a.npy" 2> /dev/null
    "$SOUND" "$tmp/silent.wav" seconds=1.8 kind=silence
    "$LINNET" features "$tmp/silent.wav" -o "$tmp/b.npy"
    ok "a sound that starts after the picture, $format: silence before it" cmp "$tmp/a.npy" "$tmp/b.npy"
done
# The rate or the channels change within the sound.
ffmpeg -v error -y -i "$tmp/one.wav" -c:a aac -ar 24000 -f adts "$tmp/24000.aac" 2> "$tmp/.log"
ffmpeg -v error -y -i "$tmp/two.wav" -c:a aac -ar 48000 -ac 2 -f adts "$tmp/48000.aac" 2> "$tmp/.log"
cat "$tmp/24000.aac" "$tmp/48000.aac" "$tmp/24000.aac" > "$tmp/rates.aac"
all "AAC with three rates" "$tmp/rates.aac" 4
# Several tracks: the default one, or the one that is wanted.
ffmpeg -v error -y -i "$tmp/one.wav" -i "$tmp/two.wav" -map 0 -map 1 -c:a flac -metadata:s:a:0 language=deu \
    -metadata:s:a:1 language=eng -disposition:a:0 0 -disposition:a:1 default "$tmp/tracks.mka" 2> "$tmp/.log"
all "the default track" "$tmp/tracks.mka" 2
run transcribe "$tmp/tracks.mka"
has "several tracks are listed" "$err" "tracks.mka has several sound tracks: 1 deu, 2 eng (default); track 2 is read (--track"
for track in 1 deu DEU; do
    run transcribe -f json --track $track "$tmp/tracks.mka"
    judge "--track $track" "$(seconds_of "$tmp/.out")" 1 "$status" "$(echo "$err" | grep -v "real-time")"
    hasnt "--track $track: no message" "$err" "several"
done
run transcribe -q --track 3 "$tmp/tracks.mka"
is "--track 3: status and message" "1:linnet: $tmp/tracks.mka: it has no sound track '3' (--track), but 1 deu, 2 eng (default)" "$status:$err"
[ -z "$has_server" ] || stop "the server"
finish
