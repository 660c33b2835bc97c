# linnet transcribe --diarize: who speaks in one channel, in every format; names; files that are missing or do not fit. linnet
# listen --diarize: the same live. The program is a copy beside a network of voices that is made here, whose weights are random.
. tests/app/common.sh

use_model
here=$(pwd) share=$tmp/copy/share/linnet
mkdir -p "$share" "$tmp/copy/bin"
ln -s "$here/share/linnet/en" "$share/en"
cp "$PROGRAM" "$tmp/copy/bin/linnet"
LINNET=$tmp/copy/bin/linnet
VOICES=$here/$(dirname "$ROWS")/voices
case $ROWS in /*) VOICES=$(dirname "$ROWS")/voices ;; esac

# Two sounds, one behind the other.
"$SOUND" "$tmp/a.raw" format=raw seconds=4 seed=5
"$SOUND" "$tmp/b.raw" format=raw seconds=4 kind=white level=-20
cat "$tmp/a.raw" "$tmp/b.raw" > "$tmp/talk.raw"
t() { "$LINNET" transcribe -q --raw --reset never "$@" "$tmp/talk.raw" 2> "$tmp/.err"; }

if ! (cd "$tmp" && t --diarize > /dev/null); then # else the folder that the program was built for has one
    has "without the file of voices: a message" "$(cat "$tmp/.err")" "voices.safetensors"
fi
"$VOICES" "$share/voices.safetensors" 13
t --diarize > /dev/null
has "voices of other features" "$(cat "$tmp/.err")" "have different features"
live() { "$LINNET" listen -q --raw --no-paced --from "$tmp/talk.raw" "$@" 2> "$tmp/.err"; }
live --diarize > /dev/null
has "live: voices of other features" "$(cat "$tmp/.err")" "have different features"
"$VOICES" "$share/voices.safetensors"

for f in text json srt vtt csv audacity nemo rttm ctm trn textgrid; do
    t --diarize=2 --speakers "Anna B" -f $f > "$tmp/turns.$f"
    status=$?
    is "$f: status: $(cat "$tmp/.err")" 0 $status
    case $f in
    ctm | trn) name=talk-Anna_B-0001 other=talk-S2-0002 ;;
    rttm) name=Anna_B other=' S2 ' ;;
    *) name='Anna B' other=S2 ;;
    esac
    has "$f: the first speaker has the name" "$(cat "$tmp/turns.$f")" "$name"
    has "$f: the second has a number" "$(cat "$tmp/turns.$f")" "$other"
done
is "text: a line a turn" "" "$(grep -v '^Anna B: \|^S2: ' "$tmp/turns.text")"
is "nothing is lost" "$(t | tr ' ' '\n')" "$(sed 's/^[^:]*: //' "$tmp/turns.text" | tr ' ' '\n')"
is "rttm: ten fields a line" "" "$(awk 'NF != 10 || $1 != "SPEAKER" || $2 != "talk" || $5 <= 0' "$tmp/turns.rttm")"
is "json: a vector for each speaker, in the first turn" 2 "$(grep -c '"voices":\[\[[-0-9.,]*\]\]' "$tmp/turns.json")"
head -n 1 "$tmp/turns.json" > "$tmp/first.json"
! command -v python3 > /dev/null || ok "json: valid" python3 -m json.tool "$tmp/first.json"
is "one speaker is one turn, with a number" "S1: $(t)" "$(t --diarize=1 | tr '\n' ' ' | sed 's/ $//; s/ S1: / /g')"
t --diarize > "$tmp/unknown"
is "an unknown number: status" 0 $?
is "an unknown number: a line a turn" "" "$(grep -v '^S[0-9]*: ' "$tmp/unknown")"
t --diarize --start 4 -f rttm > "$tmp/part.rttm"
is "a part: its times are the sound's" "" "$(awk '$4 < 3.9 || $4 + $5 > 8.2' "$tmp/part.rttm")"
ok "a part: it has some" test -s "$tmp/part.rttm"
run transcribe -q --raw --diarize -f srt,json --output-dir "$tmp/out" "$tmp/talk.raw"
is "a folder" "talk.jsonl talk.srt " "$(ls "$tmp/out" | tr '\n' ' ')"

words_of() { sed 's/^S[0-9]: //' | tr '\n' ' '; }
live --diarize > "$tmp/live.text"
status=$?
is "live: status: $(cat "$tmp/.err")" 0 $status
is "live: each line is somebody's" "" "$(grep -v '^S[0-9]: ' "$tmp/live.text")"
is "live: the first speaker is S1" S1 "$(head -n 1 "$tmp/live.text" | cut -c 1-2)"
is "live: nothing is lost" "$(live | words_of)" "$(words_of < "$tmp/live.text")"
live --diarize --tune longest=1 > "$tmp/cut.text"
ok "live: several utterances" test "$(wc -l < "$tmp/cut.text")" -gt 4
is "live: each line of each of them is somebody's" "" "$(grep -v '^S[0-9]: ' "$tmp/cut.text")"
is "live: no more speakers than are said" "" "$(live --diarize=1 | grep -v '^S1: ')"
live --diarize --json > "$tmp/live.json"
grep '"type":"final"' "$tmp/live.json" > "$tmp/final.json"
is "live json: each phone is somebody's" "$(grep -o '"phone":' "$tmp/final.json")" \
    "$(grep -o '"confidence":[0-9.]*,"speaker":"S[0-9]"' "$tmp/final.json" | sed 's/.*/"phone":/')"
is "live json: speakers as in the lines" "$(cut -c 1-2 "$tmp/live.text")" \
    "$(grep -o '"speaker":"S[0-9]"' "$tmp/final.json" | cut -c 12-13 | uniq)"
is "live json: not while it grows" "" "$(grep '"type":"partial"' "$tmp/live.json" | grep speaker)"
live --diarize --json --n-best 2 > /dev/null
has "live: alternatives have no turns" "$(cat "$tmp/.err")" "--diarize and --n-best exclude each other"

refused() { run transcribe "$@"; is "$1 $2 $3: status" 2 "$status"; has "$1 $2 $3: a message" "$err" "$want"; }
want="--diarize is for one channel" && refused --diarize --channel each "$tmp/talk.raw"
want="not with --save-state" && refused --diarize --save-state "$tmp/s" "$tmp/talk.raw"
want="--diarize and --n-best exclude each other" && refused --diarize --n-best 2 "$tmp/talk.raw"
want="--speakers needs --channel each or --diarize" && refused --speakers Anna "$tmp/talk.raw"
want="--speakers has 3 names, but --diarize=2; each name is for a speaker" && refused --diarize=2 --speakers A,B,C "$tmp/talk.raw"
want="--diarize must be between 1 and 10" && refused --diarize=11 "$tmp/talk.raw"

# A server gives streams what listen writes.
built=$(dirname "$PROGRAM")
case $built in /*) ;; *) built=$here/$built ;; esac
[ ! -f "$built/liblinnet_web.so" ] || cp "$built/liblinnet_web.so" "$tmp/copy/bin/"
ln -s "$built/tests" "$tmp/copy/bin/tests"
. tests/app/serving.sh
phones_of() { sed -n '/"type":"final"/s/.*"phones"://p' "$1"; }
start diarize --diarize=2 --no-words --silence-after 0
talk stream /v1/stream raw="$tmp/talk.raw" config='{"type":"config","rate_hz":16000}' end='{"type":"end"}' > "$tmp/stream.json"
live --diarize=2 --json --silence-after 0 > "$tmp/live.json"
is "serve: the same phones, speakers and voices" "$(phones_of "$tmp/live.json")" "$(phones_of "$tmp/stream.json")"
has "serve: a speaker" "$(phones_of "$tmp/stream.json")" '"speaker":"S1"'
has "serve: a voice" "$(phones_of "$tmp/stream.json")" '"voices":[['
"$SOUND" "$tmp/a.wav" seconds=4 seed=5
upload() { talk post /v1/audio/transcriptions file=@"$tmp/a.wav" "$@"; }
has "an upload: a speaker" "$(upload response_format=verbose_json)" '"speaker":"S1"'
upload response_format=full_json > "$tmp/full.json"
has "an upload: a voice" "$(cat "$tmp/full.json")" '"voices":[['
has "an upload: the speaker of each phoneme" "$(cat "$tmp/full.json")" '"speaker":"S1"'
# Of the whole talk, as linnet transcribe --diarize writes it in each format.
"$SOUND" "$tmp/talk.wav" seconds=8
{ head -c 44 "$tmp/talk.wav"; cat "$tmp/talk.raw"; } > "$tmp/sound.wav"
for f in text srt vtt ctm trn textgrid csv audacity; do
    "$LINNET" transcribe -q --diarize=2 --reset never -f $f "$tmp/sound.wav" | tr -d '\r' > "$tmp/want"
    talk post /v1/audio/transcriptions file=@"$tmp/sound.wav" response_format=$f | tr -d '\r' | sed '1,/^$/d' > "$tmp/got"
    ok "an upload as $f: what linnet transcribe writes" cmp "$tmp/want" "$tmp/got"
    has "an upload as $f: a second speaker" "$(cat "$tmp/got")" S2
done
has "an upload: events" "$(upload stream=true)" 'transcript.text.done'
stop diarize
warns "serve: alternatives have no turns" "--diarize and --n-best exclude each other" serve --diarize --n-best 2
finish
