# Files from strangers that name other files: no transcript of those comes back, by a file, a pipe or an upload; and what the
# server's decoders may do. Needs ffmpeg; uploads need libwebsockets.
. tests/app/common.sh
serverless=1
. tests/app/serving.sh

use_model
cd "$tmp" || exit 1
upload() { talk post /v1/audio/transcriptions file=@"$1"; }

# ---- temporary files, and the process that decodes

"$SOUND" talk.wav seconds=2 seed=7
phones=$("$LINNET" transcribe -q talk.wav)
if [ "$has_server" ]; then
    mkdir spool
    TMPDIR=$tmp/spool start spool --no-words
    has "an upload" "$(upload talk.wav)" "\"text\":\"$phones\""
    # A pipe in place of ffmpeg's sound: the upload waits while its recording is there.
    printf '#!/bin/sh\nsleep 1000\n' > waits
    chmod 755 waits
    printf '\000\000\000\030ftypM4A \000\000\000\000M4A mp42\001\002\003' > talk.m4a
    kill -9 $server
    wait $server 2> /dev/null
    LINNET_FFMPEG=$tmp/waits TMPDIR=$tmp/spool start spool --no-words
    upload talk.m4a > answer &
    uploader=$!
    reader() { child=$(pgrep -P $server); }
    await reader
    ok "a process of its own reads it" test -n "$child"
    kill -9 $server
    wait $uploader
    is "killed: no recording is left" "" "$(ls -A spool)"
    ok "killed: nothing reads it any more" await runs_no_more "$child"
    TMPDIR=$tmp/nowhere start nowhere --no-words
    has "no folder for uploads: memory" "$(upload talk.wav)" "\"text\":\"$phones\""
    has "no folder for uploads: ready" "$(talk get /readyz)" "HTTP/1.1 200"
    kill -9 $server
    # No byte can be kept. The log is a pipe, because files get none.
    log=$tmp/full.log
    : > "$log"
    mkfifo messages
    cat messages > "$log" &
    (trap '' XFSZ; ulimit -f 0; exec "$LINNET" serve --listen 127.0.0.1:0 --no-words > messages 2>&1) &
    server=$!
    servers="$servers $server"
    await listens_or_ended
    answer=$(upload talk.wav)
    has "no room for uploads: status" "$answer" "HTTP/1.1 507"
    has "no room for uploads: why" "$answer" "the sound cannot be kept: File too large"
    answer=$(talk get /readyz)
    has "no room for uploads: not ready" "$answer" "HTTP/1.1 503"
    has "no room for uploads: not ready: why" "$answer" "no room for uploads: set TMPDIR to another folder"
    kill -9 $server
    # A decoder that crashes or takes too much ends alone. 100 uploads leave nothing behind.
    printf '#!/bin/sh\nkill -KILL $PPID\nsleep 1000\n' > crashes
    chmod 755 crashes
    LINNET_SANDBOX=off LINNET_FFMPEG=$tmp/crashes start crashes --no-words
    answer=$(upload talk.m4a)
    has "a decoder that crashes: status" "$answer" "HTTP/1.1 400"
    has "a decoder that crashes: the message" "$answer" "the process that reads it ended with signal 9"
    has "a decoder that crashes: the server goes on" "$(upload talk.wav)" "\"text\":\"$phones\""
    has "no sandbox: the server says so" "$(cat "$log")" "uploads are decoded without: Landlock seccomp"
    kill -9 $server

    # ---- a decoder that was taken over

    mkdir taken
    cp "$(dirname "$LINNET")/tests/app/intruder" taken/
    : > taken/victim
    chmod 600 taken/victim
    about() { stat -c '%a %u %g %Y %s' taken/victim; }
    before=$(about)
    succeeded() { sed -n 's/.*succeeded:\([^"]*\).*/\1/p' | head -n 1; }
    intruders() { ls -l /proc/[0-9]*/exe 2> /dev/null | grep -c "$tmp/taken/intruder"; }
    are() { [ "$(intruders)" = "$1" ]; }
    export LINNET_FFMPEG=$tmp/taken/intruder
    start taken --no-words
    missing=$(sed -n 's/.*uploads are decoded without:\(.*\); see.*/\1/p' "$log")
    upload talk.m4a > answer
    run transcribe talk.m4a
    case $missing in
    ""|" PID namespaces")
        # Where root may not be another user, or without a user namespace, the limit of processes is loose.
        loose=
        [ "$(id -u)" != 0 ] || setpriv --reuid 61184 --clear-groups true 2> /dev/null || loose=" forks"
        [ "$(id -u)" = 0 ] || [ -z "$missing" ] || loose=" forks"
        is "taken over, an upload: what succeeded" " none" "$(succeeded < answer | sed "s/^$loose\$/ none/")"
        # Root's own files are read by root, whose processes have no limit.
        [ "$(id -u)" != 0 ] || loose=" forks"
        is "taken over: what succeeded" " none" "$(echo "$err" | succeeded | sed "s/^$loose\$/ none/")"
        is "what it wanted to change is the same" "$before" "$(about)"
        : > taken/linger
        has "it leaves a process behind: the upload ends" "$(upload talk.m4a)" "ffmpeg says: lingers"
        ok "it leaves a process behind, which ends" are 0
        rm taken/linger
        ;;
    *) echo "skipped: what a decoder that was taken over may do (this kernel has no$missing)" ;;
    esac
    if [ -z "$missing" ]; then
        : > taken/stay
        upload talk.m4a > answer &
        uploader=$!
        ok "both processes are there" await are 2
        kill -9 $server
        wait $uploader
        ok "the server is killed: both end" await are 0
        rm taken/stay
    else
        kill -9 $server
    fi
    unset LINNET_FFMPEG
fi

if ! command -v ffmpeg > /dev/null; then
    echo "skipped: files that name other files (no ffmpeg)"
    finish
fi
unset LINNET_FFMPEG

# ---- the files

ffmpeg -v error -i talk.wav -c:a flac secret.mka && ffmpeg -v error -i talk.wav -c:a aac secret.m4a && ffmpeg -v error -i talk.wav secret.ts
secrets="talk.wav secret.mka secret.m4a secret.ts"
ok "they can be read" test -n "$("$LINNET" transcribe -q secret.m4a)"
# make NAME < text: the text as it is, with a control byte at its end, behind an ID3 tag, and behind junk
make() {
    cat > text
    cp text "$1.plain"
    { cat text; printf '\001\n'; } > "$1.control"
    { printf 'ID3\003\000\000\000\000\000\012\000\000\000\000\000\000\000\000\000\000'; cat text; } > "$1.id3"
    { printf '\001\002\003\377\000\000\000\000'; cat text; } > "$1.junk"
}
for file in secret.m4a secret.mka; do
    make dash-$file <<END
<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2.0S" minBufferTime="PT1S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">
<Period id="0" start="PT0S"><AdaptationSet id="0" contentType="audio" mimeType="audio/mp4"><Representation id="0" mimeType="audio/mp4" codecs="mp4a.40.2" bandwidth="64000" audioSamplingRate="16000">
<BaseURL>file://$tmp/$file</BaseURL></Representation></AdaptationSet></Period></MPD>
END
done
make hls <<END
#EXTM3U
#EXT-X-VERSION:3
#EXT-X-TARGETDURATION:10
#EXTINF:2.0,
file://$tmp/secret.ts
#EXT-X-ENDLIST
END
make concat <<END
ffconcat version 1.0
file 'file:$tmp/talk.wav'
END
make concat-of-itself <<END
ffconcat version 1.0
file 0
END
make sdp <<END
v=0
o=- 0 0 IN IP4 127.0.0.1
s=x
c=IN IP4 127.0.0.1
t=0 0
m=audio 5004 RTP/AVP 97
a=rtpmap:97 L16/16000/1
END
make webvtt <<END
WEBVTT

00:00.000 --> 00:02.000
<img src="file://$tmp/talk.wav">
END
make srt <<END
1
00:00:00,000 --> 00:00:02,000
file://$tmp/talk.wav
END
make ass <<END
[Script Info]
Audio File: $tmp/talk.wav
[Events]
Dialogue: 0,0:00:00.00,0:00:02.00,Default,,0,0,0,,x
END
make imf <<END
<?xml version="1.0"?><CompositionPlaylist xmlns="http://www.smpte-ra.org/schemas/2067-3/2016"><Id>urn:uuid:0</Id></CompositionPlaylist>
END
make pls <<END
[playlist]
File1=file://$tmp/talk.wav
END
make image <<END
%03d.png
END
ffmpeg -v error -f lavfi -i color=d=0.04:s=16x16 -y picture.png && make picture < picture.png
# All of them are refused, or read as noise from a pipe; none opens another one, without the sandbox too.
export LINNET_SANDBOX=off
for file in *.plain *.control *.id3 *.junk; do
    exits "$file" 1 run transcribe -q "$file"
    is "$file: nothing is heard" "" "$out"
    cat "$file" | "$LINNET" transcribe -q - > .out 2> .err
    hasnt "$file in a pipe" "$(cat .out)" "$phones"
done
unset LINNET_SANDBOX
if [ "$has_server" ]; then
    TMPDIR=$tmp/spool start spool --no-words
    for file in *.plain *.control *.id3 *.junk; do
        answer=$(upload "$file")
        has "uploaded: $file: refused" "$answer" "HTTP/1.1 400"
        hasnt "uploaded: $file" "$answer" "$phones"
        hasnt "uploaded: $file: no path" "$answer" "/proc"
    done
    for file in $secrets; do
        has "uploaded: $file" "$(upload "$file")" '"text":"'
    done
    is "nothing is left of the uploads" "" "$(ls -A spool)"
    stop "the server"
fi
finish
