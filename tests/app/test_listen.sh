# [slow] linnet listen: files and pipes; a virtual microphone in real time, at 16, 44.1 and 48 kHz; a microphone that stalls, one
# that disappears, a reader that is too slow.
. tests/app/common.sh
. tests/app/virtual_mic.sh

real=/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav
speech=$tmp/speech.wav
if [ -f "$real" ]; then cp "$real" "$speech"; else "$SOUND" "$speech" seconds=3 seed=2; fi
tail -c +45 "$speech" > "$tmp/speech.raw"
head -c 38400 /dev/zero > "$tmp/pause"
cat "$tmp/speech.raw" "$tmp/pause" "$tmp/speech.raw" "$tmp/pause" > "$tmp/twice.raw"
said=$("$LINNET" transcribe -q "$speech")
has "the sound has phonemes" "$said" " "
lines() { printf '%s\n' "$1" | wc -l | tr -d ' '; }

# Milliseconds until the network can give a phoneme: its construction, and the model's emission delay.
soon=$((165 + $("$LINNET" info --json share/linnet/en/default.safetensors | sed 's/.*"emission_delay_ms": \([0-9]*\).*/\1/')))

# ---- files and pipes

exits "a file" 0 run listen -q --no-paced --from "$speech"
is "a file: what transcribe says" "$said" "$out"
is "quiet" "" "$err"
exits "a second pass" 0 run listen -q --no-paced --second-pass offline --from "$speech"
ok "a second pass: another text" [ "$said" != "$out" ]
"$LINNET" average share/linnet/en/offline.safetensors --hop-ms 10 -o "$tmp/offline.safetensors" # the stream's hop
run listen -q --no-paced --second-pass "$tmp/offline.safetensors" --from "$speech"
is "a second pass: the file by the other model" "$("$LINNET" transcribe -q -m "$tmp/offline.safetensors" "$speech")" "$out"
# files_and_mistakes: everything without a microphone. Runs once: under a sanitizer every start of the program is slow.
files_and_mistakes() {
run listen -q --no-paced --raw --from "$tmp/twice.raw"
is "two sentences, two lines" 2 "$(lines "$out")"
two=$out
is "the first is the sentence" "$(echo "$said" | cut -d' ' -f1-8)" "$(echo "$out" | head -n 1 | cut -d' ' -f1-8)"
is "- is a pipe" "$two" "$(cat "$tmp/twice.raw" | "$LINNET" listen -q --from -)"
is "- is a file" "$two" "$("$LINNET" listen -q --no-paced --from - < "$tmp/twice.raw")"
mkfifo "$tmp/fifo"
cat "$tmp/twice.raw" > "$tmp/fifo" &
is "a named pipe" "$two" "$("$LINNET" listen -q --raw --from "$tmp/fifo")"
run listen -q --no-paced --reset never --raw --from "$tmp/twice.raw"
is "no resets: together what transcribe says" "$("$LINNET" transcribe -q --raw "$tmp/twice.raw")" "$(echo "$out" | xargs)"
run listen -q --no-paced --silence-after 0 --tune longest=0 --raw --from "$tmp/twice.raw"
is "no endpoints: one line" "$("$LINNET" transcribe -q --raw "$tmp/twice.raw")" "$out"
gives "--ipa" "$("$LINNET" transcribe -q --ipa "$speech")" listen -q --no-paced --ipa --from "$speech"
partials() { "$LINNET" listen -q --no-paced --json "$@" --raw --from "$tmp/twice.raw" | grep '"partial"' | sed 's/"latency_ms":[0-9-]*//'; }
is "a second pass: until then as without it" "$(partials)" "$(partials --second-pass offline)"
exits "a second pass: no such model" 1 run listen -q --second-pass "$tmp/none" --from "$speech"
has "a second pass: no such model" "$err" "$tmp/none"
"$SOUND" "$tmp/short.wav" seconds=1.5 seed=4
# Both are lower bounds: a busy machine only takes longer.
begin=$(date +%s%N)
run listen --stats --from "$tmp/short.wav"
took=$((($(date +%s%N) - begin) / 1000000))
is "at the pace of speech: the same" "$("$LINNET" transcribe -q "$tmp/short.wav")" "$out"
ok "at the pace of speech: it takes as long ($took ms)" test "$took" -ge 1450
has "--stats" "$err" "a phoneme, from its end to settled"
has "how soon phonemes come" "$err" "a phoneme is settled about $soon ms after its end"
has "with a beam" "$("$LINNET" listen --beam 4 --no-paced --from "$tmp/short.wav" 2>&1)" "a phoneme is shown about $soon ms after its end and settled after a second or two"
has "the model's own latency" "$err" "construction: 165 (look-ahead 120, step 30, window 15)"
p50=$(printf '%s\n' "$err" | sed -n 's/^a phoneme, from its end to settled *\([0-9]*\) .*/\1/p')
ok "the latency is that or more ($p50 ms)" test "${p50:-0}" -ge 165

# ---- JSON

exits "json" 0 run listen -q --no-paced --json --raw --from "$tmp/twice.raw"
json=$out
is "json: begins and ends" '{"type":"begin" {"type":"end"' "$(printf '%s\n' "$json" | sed -n '1p;$p' | grep -o '^{"type":"[a-z]*"' | paste -s -d ' ')"
is "json: the final texts" "$two" "$(printf '%s\n' "$json" | sed -n 's/^{"type":"final".*"text":"\([^"]*\)".*/\1/p')"
is "json: phones with times and confidences" "$(echo "$two" | wc -w | tr -d ' ')" \
    "$(printf '%s\n' "$json" | grep '^{"type":"final"' | grep -o '{"phone":"[A-Z]*","start":[0-9.]*,"end":[0-9.]*,"confidence":[01][.0-9]*}' | wc -l | tr -d ' ')"
# revisions N [file]: within an utterance the revision rises by one, and each settled text begins with the settled text before it.
judge='
    function field(name, text) { if (match($0, "\"" name "\":\"[^\"]*\"") == 0) return ""; text = substr($0, RSTART, RLENGTH); sub(/^"[a-z]*":"/, "", text); sub(/"$/, "", text); return text }
    function number(name, text) { match($0, "\"" name "\":[0-9.]*"); text = substr($0, RSTART, RLENGTH); sub(/^.*:/, "", text); return text + 0 }
    /"type":"(partial|final)"/ {
        if (number("utterance") != utterance + 1) print "utterance", $0
        if (number("revision") != ++revision) print "revision", $0
        now = /"final"/ ? field("text") : field("stable")
        if (index(now, stable) != 1) print "unstable", stable, $0
        stable = now
        n++
        if (/"final"/) { utterance++; revision = 0; stable = "" }
    }
    END { if (n < 20) print n, "revisions" }'
is "json: revisions, and stable text never changes" "" "$(printf '%s\n' "$json" | awk "$judge")"
bad=$(printf '%s\n' "$json" | sed 's/"stable":"\([A-Z]*\) /"stable":"X/' | awk "$judge")
ok "json: that check can fail" test -n "$bad"
has "json: why an utterance ended" "$json" '"ended_by":"after"'
if command -v python3 > /dev/null; then
    ok "json: every line is JSON" sh -c 'printf "%s\n" "$1" | python3 -c "import json,sys; [json.loads(l) for l in sys.stdin]"' - "$json"
fi

# ---- words

# Words of two phones of the sentence each, and one with the same pronunciation as the first.
echo "$said" | awk '{ for (i = 1; i + 1 <= NF; i += 2) print "w" sprintf("%c%c", 97 + i / 2 % 26, 97 + i / 52), $i, $(i + 1); print "other", $1, $2 }' > "$tmp/dict"
cut -d' ' -f1 "$tmp/dict" | awk '
    { word[NR] = $1 }
    END {
        printf "\\data\\\nngram 1=%d\nngram 2=%d\n\n\\1-grams:\n-99 <s> -0.3\n-1 </s>\n", NR + 2, NR - 2
        for (i = 1; i < NR; i++) print "-2", word[i], "-0.3"
        printf "-3 other\n\n\\2-grams:\n"
        for (i = 1; i < NR - 1; i++) print "-0.2", word[i], word[i + 1]
        print "\n\\end\\"
    }' > "$tmp/arpa"
words="--words --no-readable --lexicon $tmp/dict --lm $tmp/arpa"
exits "words" 0 run listen -q --no-paced $words --silence-after 0 --tune longest=0 --from "$speech"
is "words: quiet" "" "$err"
is "words: no endpoints: what transcribe says" "$("$LINNET" transcribe -q $words "$speech")" "$out"
has "words: there are some" "$out" "waa"
hasnt "words: by the language model" "$out" "other"
has "words: phrases" "$("$LINNET" listen -q --no-paced $words --phrase other --tune context-bonus=9 --from "$speech")" "other"
# goforward.raw says "go forward ten meters"; only what follows a keyword is decoded.
forward=/usr/share/pocketsphinx/test/data/goforward.raw
if [ -f $forward ]; then
    after() { "$LINNET" listen -q --no-paced --words --raw --from $forward "$@"; }
    has "after a keyword" "$(after --keyword "go forward" --after-keyword 8s)" "10 met"
    hasnt "not before it" "$(after --keyword "go forward" --after-keyword 8s | grep -v '^\*')" "forward"
    is "never without one" "" "$(after --keyword "zebra crossing" --after-keyword 8)"
    is "a command of a grammar behind it" "10 meters." "$(printf 'ten [inches | meters]\n' > "$tmp/grammar"
        after --grammar "$tmp/grammar" --keyword "go forward" --after-keyword 8 | tail -n 1)"
fi
refused "no keyword" 2 "needs --keyword" listen --after-keyword 8 --from "$speech"
run listen --no-paced $words --stats --raw --from "$tmp/twice.raw"
is "words: two sentences, two lines" 2 "$(lines "$out")"
worded=$out
has "words: how soon they come" "$err" "a phoneme is shown about $soon ms after its end, a word is settled after about a second"
has "words: counted" "$err" " phonemes, $(echo "$out" | wc -w | tr -d ' ') words"
has "words: --stats" "$err" "a word, from its end to settled"
run listen -q --no-paced $words --json --raw --from "$tmp/twice.raw"
json=$out
is "words: json: the final texts" "$worded" "$(printf '%s\n' "$json" | sed -n 's/^{"type":"final".*"text":"\([^"]*\)".*/\1/p')"
is "words: json: revisions, and stable text never changes" "" "$(printf '%s\n' "$json" | awk "$judge")"
has "words: json: words" "$json" '"words":[{"word":"waa","known":true,"start":'
has "words: json: a word that continues" "$json" '"complete":false}]}'
has "words: json: latencies" "$json" '"word":{"count":'
final_words() { "$LINNET" listen -q --no-paced $words --json --tune show=$1 --raw --from "$tmp/twice.raw" | sed -n 's/^{"type":"final".*"words"://p'; }
provisional() { "$LINNET" listen -q --no-paced $words --json --tune show=$1 --raw --from "$tmp/twice.raw" | grep '^{"type":"partial"' | sed 's/.*"partial_words"://'; }
has "words: all provisional words are shown" "$(provisional 0)" '"known":true'
hasnt "words: none is before it is sure" "$(provisional 1)" '"known":true'
is "words: its phonemes are" "$(provisional 0 | grep -o '"phones":[^]]*' | tr -d '"[]' | sed 's/phones://' | tr ',\n' '  ')" \
    "$(provisional 1 | grep -o '"phones":[^]]*' | tr -d '"[]' | sed 's/phones://' | tr ',\n' '  ')"
is "words: what settles does not depend on it" "$(final_words 0)" "$(final_words 1)"
if command -v python3 > /dev/null; then
    ok "words: json: every line is JSON; what settles, line by line, is the end" sh -c 'printf "%s\n" "$1" | python3 -c "
import json, sys
new = []
for line in map(json.loads, sys.stdin):
    if line[\"type\"] == \"partial\":
        new += line[\"new_words\"]
        assert all(w[\"complete\"] for w in line[\"partial_words\"][:-1])
        assert all(w[\"first_phone\"] >= 0 and w[\"phones\"] for w in line[\"partial_words\"])
    if line[\"type\"] == \"final\":
        assert line[\"words\"][:len(new)] == new and len(line[\"words\"]) >= len(new), (new, line[\"words\"])
        assert [p for w in line[\"words\"] for p in w[\"phones\"]] == [p[\"phone\"] for p in line[\"phones\"]]
        new = []
"' - "$json"
fi
# A resampler from a low rate delays its output the most.
for rate in 4000 22254 192000; do
    "$SOUND" "$tmp/rate.wav" seconds=3 rate=$rate seed=5
    run listen -q --no-paced --silence-after 0 --tune longest=0 --from "$tmp/rate.wav"
    is "$rate Hz: status" "0 " "$status $err"
    is "$rate Hz: what transcribe says" "$("$LINNET" transcribe -q "$tmp/rate.wav")" "$out"
done
exits "a beam" 0 run listen -q --no-paced --beam 8 --from "$speech"
is "a beam: what transcribe says" "$("$LINNET" transcribe -q --beam 8 "$speech")" "$out"
is "a beam: revisions, and stable text never changes" "" "$("$LINNET" listen -q --no-paced --beam 8 --json --raw --from "$tmp/twice.raw" | awk "$judge")"
refused "alternatives that nobody would see" 2 "--n-best needs --json" listen --n-best 3 --from "$speech"
run listen -q --no-paced $words --n-best 3 --silence-after 0 --tune longest=0 --json --from "$speech"
best=$(printf '%s\n' "$out" | sed -n 's/^{"type":"final".*,"alternatives":\(.*\)}$/\1/p')
is "alternatives: the best is the result" "$("$LINNET" transcribe -q $words "$speech")" "$(printf '%s\n' "$best" | sed 's/^\[{"text":"\([^"]*\)".*/\1/')"
is "alternatives: as many" 3 "$(printf '%s\n' "$best" | grep -o '"score":' | wc -l | tr -d ' ')"

# A phrase file that changes while listening, between two sentences from a pipe: first to a good file, then to a bad one.
printf 'other\t-9\n' > "$tmp/list"
mkfifo "$tmp/talk"
"$LINNET" listen --json $words --context "$tmp/list" --raw --from "$tmp/talk" > "$tmp/talk.json" 2> "$tmp/talk.err" &
pid=$!
exec 4> "$tmp/talk"
cat "$tmp/speech.raw" "$tmp/pause" >&4
wait_for() { await grep -q "$1" "$tmp/talk.json"; }
wait_for '"type":"final"'
printf 'other\t20\n' > "$tmp/list"
wait_for '"type":"context"'
cat "$tmp/speech.raw" "$tmp/pause" >&4
wait_for '"type":"final","utterance":2'
printf 'other\tmuch\n' > "$tmp/list"
wait_for '"message":'
cat "$tmp/speech.raw" "$tmp/pause" >&4
exec 4>&-
wait "$pid"
is "phrases change: status" 0 "$?"
texts=$(sed -n 's/^{"type":"final".*"text":"\([^"]*\)".*/\1/p' "$tmp/talk.json")
is "phrases change: three sentences" 3 "$(lines "$texts")"
hasnt "phrases change: not before" "$(echo "$texts" | sed -n 1p)" "other"
has "phrases change: then" "$(echo "$texts" | sed -n 2p)" "other"
has "phrases change: what cannot be read leaves them" "$(echo "$texts" | sed -n 3p)" "other"
has "phrases change: reported" "$(cat "$tmp/talk.err")" "linnet: 1 phrase in use from now on"
has "phrases change: why not" "$(cat "$tmp/talk.err")" "$tmp/list:1: 'much' after the tab is not a bonus between -100 and 100, such as 3.5; the previous phrases remain"
has "phrases change: in JSON" "$(cat "$tmp/talk.json")" '{"type":"context","phrases":1}'
has "phrases change: why not, in JSON" "$(cat "$tmp/talk.json")" '{"type":"context","phrases":0,"message":"'

# The same of a grammar, of which only the file beside it changes; then it needs a file that is not there yet.
printf 'waa $names\n' > "$tmp/commands"
printf 'other\n' > "$tmp/names.txt"
"$LINNET" listen --json --lexicon "$tmp/dict" --grammar "$tmp/commands" --raw --from "$tmp/talk" > "$tmp/talk.json" 2> "$tmp/talk.err" &
pid=$!
exec 4> "$tmp/talk"
cat "$tmp/speech.raw" "$tmp/pause" >&4
wait_for '"type":"partial"'
printf 'other\nmore\n' > "$tmp/names.txt"
wait_for '"type":"context","phrases":3'
printf 'waa $others\n' > "$tmp/commands"
wait_for "others.txt"
printf 'other\nwaa\n' > "$tmp/others.txt"
wait_for '"type":"context","phrases":2'
exec 4>&-
wait "$pid"
is "a grammar's file changes: status" 0 "$?"
has "a grammar's file changes: reported" "$(cat "$tmp/talk.err")" "linnet: a grammar of 3 words in use from now on"

# ---- mistakes

refused "--words without a lexicon" 1 "cannot open $tmp/none.dict" listen -q --words --lexicon "$tmp/none.dict" --lm "$tmp/arpa" --from "$speech"
refused "--beam 0" 2 "--beam 0 excludes words" listen --words --beam 0 --from "$speech"

refused "--microphone and --from" 2 "exclude each other" listen --microphone 1 --from x.wav
refused "--device of a microphone" 2 "--microphone 1 chooses a microphone" listen --device 1
refused "--raw alone" 2 "--from is missing" listen --raw
refused "--rate" 2 "--rate must be between 4000 and 192000, not 100" listen --rate 100
refused "--blank" 2 "the probability of a blank is 0" listen --tune blank=0 --from "$speech"
refused "no such file" 1 "cannot open $tmp/none.wav: No such file or directory" listen --from "$tmp/none.wav"
refused "an operand" 2 "unexpected argument" listen "$speech"
refused "--save as another format" 2 "x.flac: the sound is saved as WAV" listen -q --save "$tmp/x.flac" --from "$speech"
refused "--save where it cannot be" 1 "cannot write $tmp/no/x.wav" listen -q --no-paced --save "$tmp/no/x.wav" --from "$speech"
if [ -w /dev/full ]; then
    refused "--save on a full disk" 1 "cannot write /dev/full: No space left on device" listen -q --save /dev/full --from "$speech"
    "$LINNET" listen -q --no-paced --from "$speech" > /dev/full 2> "$tmp/.err"
    is "standard output is full: status" 1 "$?"
    has "standard output is full" "$(cat "$tmp/.err")" "cannot write standard output"
fi
# The disk fills up while listening: listening continues.
out=$(trap '' XFSZ; ulimit -f 100; "$LINNET" listen -q --no-paced --save "$tmp/full.wav" --from "$speech" 2> "$tmp/.err"; echo $?)
is "--save fails on the way: recognised all the same, and the status says so" "$said 1" "$(echo "$out" | xargs)"
has "--save fails on the way: reported" "$(cat "$tmp/.err")" "cannot write $tmp/full.wav: File too large"
"$LINNET" listen --json --from "$speech" 2> "$tmp/.err" | head -n 2 > "$tmp/.out"
is "a reader that goes away" 2 "$(wc -l < "$tmp/.out" | tr -d ' ')"
"$SOUND" "$tmp/two.wav" rate=44100 channels=2 seconds=1
run listen -q --no-paced --save "$tmp/two-heard.wav" --from "$tmp/two.wav"
for file in two two-heard; do "$LINNET" posteriors -o "$tmp/$file.npy" "$tmp/$file.wav" 2> "$tmp/.err" || fail "posteriors" "$(cat "$tmp/.err")"; done
ok "--save keeps rate, channels and bits" cmp "$tmp/two.npy" "$tmp/two-heard.npy"
gives "--channel" "$("$LINNET" transcribe -q --channel 2 "$tmp/two.wav")" listen -q --no-paced --channel 2 --from "$tmp/two.wav"
refused "a channel that the sound lacks" 1 "$tmp/two.wav: channel 3 (from 1) is requested, but the sound has 2" \
    listen --channel 3 --from "$tmp/two.wav"
}
[ "${CONFIG:-release}" != release ] || files_and_mistakes

# ---- a microphone

if ! virtual_mic_start 16000 44100 48000; then
    echo "skipped: the virtual microphone: $virtual_mic_why"
    finish
fi
trap 'virtual_mic_stop; rm -rf "$tmp"' EXIT

opened_or_ended() { grep -qs "listening to" "$tmp/$name.err" || ! kill -0 $pid; }
# hear NAME SOURCE ARGS...: listens to this source in the background, also if the default changes later; $pid. Returns once it is open.
hear() {
    name=$1
    source=$2
    shift 2
    PULSE_SOURCE=$source "$LINNET" listen "$@" > "$tmp/$name.out" 2> "$tmp/$name.err" &
    pid=$!
    await opened_or_ended
}

# They open one after the other; then all three record at the same time, and a fourth records silence. PulseAudio drops sound if the
# machine is busy: one of many attempts must succeed completely.
virtual_mic_stalled
hear stalled dry --rate 16000
stalled=$pid
kept() { wc -c < "$tmp/$rate.wav.linnet-0.tmp"; }
goes_on() { [ "$(kept)" -ge "$enough" ] || runs_no_more "$pid"; }
recorded() {
    for rate in 16000 44100; do
        hear $rate spk$rate.monitor --rate $rate --reset never --save "$tmp/$rate.wav"
        eval "pid$rate=\$pid"
    done
    # By its name, at its own rate, whatever the environment says.
    hear 48000 dry --microphone SPK48000.monitor --reset never --save "$tmp/48000.wav"
    pid48000=$pid
    for rate in 16000 44100 48000; do virtual_mic_play "$speech" $rate & eval "player$rate=\$!"; done
    for rate in 16000 44100 48000; do eval "wait \$player$rate"; done
    # The end of the sound is on its way: it is there when 0.4 s more are recorded.
    for rate in 16000 44100 48000; do
        eval "pid=\$pid$rate"
        enough=$(($(kept) + 8 * rate * 2 / 5))
        await goes_on
    done
    for rate in 16000 44100 48000; do
        eval "pid=\$pid$rate"
        kill -INT "$pid"
        wait "$pid"
        is "$rate Hz: Ctrl-C: status" 0 "$?"
    done
    # The same features bit for bit from the first sample on. The .npy header has 128 bytes, a frame 40 floats.
    "$LINNET" features -o "$tmp/a.npy" "$speech" && "$LINNET" features -o "$tmp/b.npy" "$tmp/16000.wav"
    size=$(($(wc -c < "$tmp/a.npy") - 128))
    tail -c +129 "$tmp/a.npy" > "$tmp/a.frames"
    tail -c +129 "$tmp/b.npy" | head -c "$size" > "$tmp/b.frames"
    cmp "$tmp/a.frames" "$tmp/b.frames" && ! grep -q "lost" "$tmp/16000.err" "$tmp/44100.err" "$tmp/48000.err"
}
for attempt in $(seq 30); do ! recorded > "$tmp/.log" 2>&1 || break; done
ok "there are features" test "$size" -gt 30000
ok "16000 Hz: recorded bit for bit, in $attempt attempts" cmp "$tmp/a.frames" "$tmp/b.frames"
for rate in 16000 44100 48000; do
    err=$(cat "$tmp/$rate.err")
    has "$rate Hz: the device is named" "$err" "at $rate Hz"
    hasnt "$rate Hz: nothing is lost" "$err" "lost"
    run transcribe -q "$tmp/$rate.wav"
    is "$rate Hz: the recording is complete" "" "$err"
    is "$rate Hz: the result of transcribe on the recording" "$out" "$(xargs < "$tmp/$rate.out")"
done
has "48000 Hz: the source is named" "$(cat "$tmp/48000.err")" 'listening to "Monitor of Null Output (spk48000.monitor)" at 48000 Hz'
is "16000 Hz: what transcribe says of what was played" "$said" "$(xargs < "$tmp/16000.out")"

wait "$stalled"
is "stalled: status" 1 "$?"
has "stalled: reported" "$(cat "$tmp/stalled.err")" "no sound from the microphone"
has "stalled: reported" "$(cat "$tmp/stalled.err")" "0.0 s of sound"

# A reader that is too slow: the pipe to it is full before the first word. Samples are dropped and reported.
mkfifo "$tmp/slow"
exec 3<> "$tmp/slow"
head -c 65536 /dev/zero >&3
name=slow
PULSE_SOURCE=spk16000.monitor "$LINNET" listen --json --rate 16000 --buffer 0.1 > "$tmp/slow" 2> "$tmp/slow.err" &
pid=$!
await opened_or_ended
virtual_mic_play_raw "$tmp/speech.raw" 16000 # to its end: then more than a tenth of a second has come
cat <&3 > "$tmp/slow.out" &
cat=$!
await grep -q '"type":"lost"' "$tmp/slow.out"
kill -INT $pid
wait $pid
is "too slow: status" 0 "$?"
await grep -q '"type":"end"' "$tmp/slow.out"
kill $cat
exec 3>&-
has "too slow: reported" "$(cat "$tmp/slow.err")" "s of sound were lost"
has "too slow: counted" "$(cat "$tmp/slow.err")" "were lost because this computer was too slow"
slow=$(tr -d '\000' < "$tmp/slow.out")
has "too slow: reported in JSON" "$slow" '{"type":"lost","dropped_samples":'
hasnt "too slow: counted at the end" "$(printf '%s\n' "$slow" | tail -n 1)" '"dropped_samples":0,'

# The source that was named is removed while there are others, to which the server moves the stream.
name=moved
"$LINNET" listen --json --microphone spk44100.monitor > "$tmp/moved.out" 2> "$tmp/moved.err" &
pid=$!
await opened_or_ended
virtual_mic_play_raw "$tmp/speech.raw" 44100
virtual_mic_unplug 44100
ok "moved: it ends" await runs_no_more $pid
kill -INT $pid 2> /dev/null
wait $pid
is "moved: status" 1 "$?"
has "moved: reported" "$(cat "$tmp/moved.err")" "spk44100.monitor)\" is lost: it was unplugged"
has "moved: in JSON" "$(tail -n 1 "$tmp/moved.out")" '"reason":"failed","message":"the microphone'

# The sound server ends in the middle of a sentence.
hear lost spk16000.monitor --rate 16000 --json --save "$tmp/lost.wav"
virtual_mic_play "$speech" 16000 > /dev/null 2>&1 &
await grep -q "$(echo "$said" | cut -d' ' -f1-4)" "$tmp/lost.out"
virtual_mic_kill
wait "$pid"
is "lost: status" 1 "$?"
has "lost: reported" "$(cat "$tmp/lost.err")" "is lost: it was unplugged, or the sound server stopped"
has "lost: what was recognised is there" "$(grep '"final"' "$tmp/lost.out")" '"text":"'"$(echo "$said" | cut -d' ' -f1-4)"
has "lost: in JSON" "$(tail -n 1 "$tmp/lost.out")" '"reason":"failed","message":"the microphone'
run transcribe -q "$tmp/lost.wav"
is "lost: the recording is complete" "" "$err"
has "lost: the recording is complete" "$out" "$(echo "$said" | cut -d' ' -f1-4)"

exits "no sound server" 1 run listen -q --microphone "no such microphone"
has "no sound server: reported" "$err" "microphone"
virtual_mic_stop
finish
