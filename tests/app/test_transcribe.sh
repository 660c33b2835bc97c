# [slow] linnet transcribe and posteriors: order, many files at once, formats, raw sound, channels, a bad file among good ones.
. tests/app/common.sh

use_model
d=$tmp/sounds
mkdir "$d"
for i in 1 2 3 4 5 6 7 8 9; do "$SOUND" "$d/s$i.wav" seconds=0.$((10 - i))5 seed=$i; done

# The same order for any number of threads; the shortest file is last in the list and finishes first.
exits "one thread" 0 run transcribe -j 1 -q "$d"/s?.wav
is "--quiet is quiet" "" "$err"
one=$out
is "nine lines" 9 "$(printf '%s\n' "$one" | wc -l | tr -d ' ')"
is "in order" "s1 s2 s3 s4 s5 s6 s7 s8 s9" "$(printf '%s\n' "$one" | cut -d' ' -f1 | xargs)"
for j in 2 3 16 0; do
    gives "$j threads: the same" "$one" transcribe -j $j -q "$d"/s?.wav
done
warns "a summary with the real-time factor" "2 files, 1.8 s of sound" transcribe "$d/s1.wav" "$d/s2.wav"
has "a summary with the real-time factor" "$err" "real-time factor"
alone=$("$LINNET" transcribe -q "$d/s3.wav")
is "the same alone and with others" "$(printf '%s\n' "$one" | sed -n 's/^s3 //p')" "$alone"
gives "--ids" "s3 $alone" transcribe -q --ids "$d/s3.wav"

# A list, and a data directory.
{ echo "# a list"; echo; ls "$d"/s?.wav; } > "$tmp/list"
run transcribe -q --files-from "$tmp/list"
is "--files-from" "$one" "$out"
out=$(ls "$d"/s?.wav | "$LINNET" transcribe -q --files-from -)
is "--files-from -" "$one" "$out"
exits "--data" 0 run transcribe -q --data "$tmp/data" --audio-root "$tmp/data" --format trn
is "--data: four lines of TRN" "(u1) (u2) (u3) (u4)" "$(printf '%s\n' "$out" | sed 's/.*(/(/' | xargs)"

# Formats: the same phones in each.
gives "trn" "$alone (s3)" transcribe -q -f trn "$d/s3.wav"
run transcribe -q -f ctm "$d/s3.wav"
is "ctm: the phones" "$alone" "$(printf '%s\n' "$out" | grep -v '^;;' | cut -d' ' -f5 | xargs)"
is "ctm: six fields" "" "$(printf '%s\n' "$out" | grep -v '^;;' | awk 'NF != 6 || $1 != "s3" || $2 != 1')"
is "ctm: times rise and stay within" "" "$(printf '%s\n' "$out" | awk '!/^;;/ { if ($3 < last || $3 + $4 > 0.76 || $4 <= 0) print; last = $3 }')"
shows "json: the file" '{"id":"s3","channel":1,"seconds":0.75' transcribe -q -f json "$d/s3.wav"
if command -v python3 > /dev/null; then
    is "json: the phones" "$alone" "$(printf '%s' "$out" | python3 -c 'import json,sys; print(" ".join(p["phone"] for p in json.load(sys.stdin)["phones"]))')"
fi
run transcribe -q --ipa "$d/s3.wav"
words() { set -f; set -- $1; echo $#; } # in some locales wc -w does not count IPA letters
is "ipa: as many phones" "$(words "$alone")" "$(words "$out")"
run transcribe -q -o "$tmp/out.trn" "$d/s3.wav"
is "-o x.trn is TRN" "$alone (s3)" "$(cat "$tmp/out.trn")"
run transcribe -q --output-dir "$tmp/results" -f ctm "$d"/s?.wav
is "--output-dir: nine files" 9 "$(ls "$tmp/results"/*.ctm | wc -l | tr -d ' ')"
mkdir "$tmp/twin"
cp "$d/s1.wav" "$tmp/twin/s1.wav"
cp "$d/s1.wav" "$tmp/twin/s1.x.wav"
cp "$d/s1.wav" "$tmp/twin/s1.x.flac"
refused "two of one name" 1 "would have the same result s1.x" transcribe -q --output-dir "$tmp/results" "$tmp/twin/s1.x.wav" "$tmp/twin/s1.x.flac"
cp "$d/s1.wav" "$tmp/twin/a (b) c.wav"
shows "a name that TRN cannot hold" "(a__b__c)" transcribe -q -f trn "$tmp/twin/a (b) c.wav"

# One bad file among good ones.
echo "this is no sound" > "$d/text.wav"
exits "one bad file" 1 run transcribe -j 2 "$d/s1.wav" "$d/text.wav" "$d/none.wav" "$d/s2.wav"
is "one bad file: the others are done" "$(printf '%s\n' "$one" | head -n 2)" "$out"
has "one bad file: reported" "$err" "text.wav"
has "one missing file: reported" "$err" "cannot open $d/none.wav: No such file or directory"
has "the summary counts them" "$err" "2 files, 2 failed"

t() { "$LINNET" transcribe -q "$@"; }

# Raw PCM on standard input gives the result of the file.
tail -c +45 "$d/s3.wav" > "$tmp/s3.raw"
is "--raw" "$alone" "$("$LINNET" transcribe -q --raw "$tmp/s3.raw")"
slow() { head -c 7001 "$tmp/s3.raw"; sleep 0.2; tail -c +7002 "$tmp/s3.raw"; }
is "- in two pieces, cut within a sample" "$alone" "$(slow | "$LINNET" transcribe -q -)"
"$SOUND" "$tmp/f.wav" seconds=0.75 seed=3 format=f32
"$SOUND" "$tmp/tiny.wav" seconds=0.005
run transcribe -q "$tmp/f.wav" "$tmp/tiny.wav"
has "sound shorter than a window: which" "$err" "$tmp/tiny.wav: 0.005 s of sound are less than a window"
is "and an empty result" 0 "$status"
warns "a part shorter than a window" ": 0.010 s of sound are less than a window" transcribe -q --start 0.5 --end 0.51 "$tmp/f.wav"
"$SOUND" "$tmp/stereo.raw" seconds=0.5 channels=2 rate=8000 format=raw
"$SOUND" "$tmp/stereo.wav" seconds=0.5 channels=2 rate=8000
is "- with rate and channels" "$("$LINNET" transcribe -q "$tmp/stereo.wav")" "$("$LINNET" transcribe -q --rate 8000 --channels 2 - < "$tmp/stereo.raw")"
tail -c 48000 "$tmp/f.wav" > "$tmp/f.raw"
is "- in float" "$("$LINNET" transcribe -q "$tmp/f.wav")" "$("$LINNET" transcribe -q --encoding f32le - < "$tmp/f.raw")"
mkfifo "$tmp/slow.raw"
# Results of one sound file on standard output are written while it is read, in line formats; a pipe's: test_inputs.sh.
for how in text ctm; do
    rm -f "$tmp/partial"
    t -f $how --raw "$tmp/slow.raw" > "$tmp/partial" &
    reader=$!
    exec 9> "$tmp/slow.raw"
    cat "$tmp/s3.raw" "$tmp/s3.raw" >&9
    ok "$how of a file appears while it is read" await test -s "$tmp/partial"
    exec 9>&-
    wait $reader
done

# Resets at endpoints, as in linnet listen: at the same places in files and pipes; none if the sound is too short.
"$SOUND" "$tmp/long.wav" seconds=70 seed=4
tail -c +45 "$tmp/long.wav" > "$tmp/long.raw"
utterances() { sed 's/^\[[^]]*\]  *//' | xargs; }
anew=$(t --reset endpoint --tune longest=0.9 "$tmp/long.wav")
is "--reset endpoint is linnet listen" "$("$LINNET" listen -q --plain --no-paced --tune longest=0.9 --from "$tmp/long.wav" | utterances)" "$anew"
is "in a pipe" "$anew" "$(cat "$tmp/long.raw" | t --reset endpoint --tune longest=0.9 -)"
t -f ctm --tune longest=0.9 "$tmp/long.wav" | grep -v '^;;' > "$tmp/auto"
t -f ctm --reset never "$tmp/long.wav" | grep -v '^;;' > "$tmp/never"
for j in 1 2 3; do
    is "one file by $j threads: the same" "$anew" "$(t -j $j --reset endpoint --tune longest=0.9 "$tmp/long.wav")"
done
before() { awk '$3 + $4 < 60' "$1"; }
ok "many phones in a minute" test "$(before "$tmp/never" | wc -l)" -gt 50
is "for a minute without resets" "$(before "$tmp/never")" "$(before "$tmp/auto")"
ok "then with resets" sh -c '! cmp -s "$1" "$2"' - "$tmp/auto" "$tmp/never"
cat "$tmp/long.raw" | t -f ctm --tune longest=0.9 - | grep -v '^;;' | sed 's/^stdin/long/' > "$tmp/piped"
ok "in a pipe from the same place on" cmp "$tmp/auto" "$tmp/piped"
is "a beam is reset too" "$("$LINNET" listen -q --beam 4 --plain --no-paced --tune longest=5 --from "$tmp/long.wav" | utterances)" \
    "$(t --reset endpoint --beam 4 --tune longest=5 "$tmp/long.wav")"
run transcribe -q -f json --n-best 3 --reset endpoint --tune longest=0.9 "$d/s1.wav"
is "alternatives of all segments" 4 "$(printf '%s' "$out" | grep -o '"phones":' | wc -l | tr -d ' ')"
# A model that forgets goes on behind endpoints unless it is told not to; the search begins anew there all the same.
run train "$tmp/train.conf" --train "$tmp/set.lfc" --folder "$tmp/forgets" --decay gated --set decay-half-life-s=0.3,2 -q
is "a model that forgets" 0 "$status"
m=$tmp/forgets/best.safetensors
on=$(t -m "$m" --reset never "$tmp/long.wav")
is "goes on" "$on" "$(t -m "$m" --tune longest=0.9 "$tmp/long.wav")"
is "in linnet listen" "$on" "$("$LINNET" listen -q -m "$m" --plain --no-paced --tune longest=0.9 --from "$tmp/long.wav" | utterances)"
anew=$(t -m "$m" --reset endpoint --tune longest=0.9 "$tmp/long.wav")
ok "unless it is told not to" test "$anew" != "$on"
is "in linnet listen" "$anew" \
    "$("$LINNET" listen -q -m "$m" --reset endpoint --plain --no-paced --tune longest=0.9 --from "$tmp/long.wav" | utterances)"
ok "a search begins anew" test "$(t -m "$m" -f json --n-best 2 --tune longest=0.9 "$tmp/long.wav")" != \
    "$(t -m "$m" -f json --n-best 2 --reset never "$tmp/long.wav")"
refused "an endpoint that is none" 2 "endpoints: the probability of a blank" transcribe --tune blank=0 "$d/s1.wav"

# Channels.
"$LINNET" transcribe -q --channel each --ids --reset endpoint --tune longest=0.2 "$tmp/stereo.wav" > "$tmp/each"
for i in 1 2; do
    is "channel $i alone, with resets" "$(sed -n "s/^stereo-$i //p" "$tmp/each")" \
        "$(t --channel $i --reset endpoint --tune longest=0.2 "$tmp/stereo.wav")"
done
"$LINNET" transcribe -q --channel each --ids "$tmp/stereo.wav" > "$tmp/each"
is "each channel is a line" 2 "$(wc -l < "$tmp/each" | tr -d ' ')"
is "channel 1 alone" "$(sed -n 's/^stereo-1 //p' "$tmp/each")" "$("$LINNET" transcribe -q --channel 1 "$tmp/stereo.wav")"
is "channel 2 alone" "$(sed -n 's/^stereo-2 //p' "$tmp/each")" "$("$LINNET" transcribe -q --channel 2 "$tmp/stereo.wav")"
refused "no such channel" 1 "stereo.wav" transcribe -q --channel 3 "$tmp/stereo.wav"

# Posteriors: the same matrix for any number of threads; one row per step.
exits "posteriors" 0 run posteriors -j 1 "$d/s1.wav" -o "$tmp/a.npy"
run posteriors -j 3 "$d/s1.wav" -o "$tmp/b.npy"
ok "posteriors: the same bits with three threads" cmp "$tmp/a.npy" "$tmp/b.npy"
has "posteriors: shape" "$(head -c 128 "$tmp/a.npy" | tr -d '\000')" "'shape': (31, 40)" # 93 frames of 0.95 s, stacked by 3
is "posteriors: size" $((128 + 31 * 40 * 4)) "$(wc -c < "$tmp/a.npy" | tr -d ' ')"
# Two speakers on two channels: one transcript, their turns in the order of time, each with its name.
"$SOUND" "$tmp/call.wav" seconds=3 channels=2 seed=5
for f in text srt vtt csv audacity json ctm trn nemo rttm textgrid; do
    exits "--speakers, $f" 0 run transcribe -q --channel each --speakers "Anna B,Ben" --reset never -f $f "$tmp/call.wav"
    case $f in ctm | trn) name=call-Anna_B-0001 ;; rttm) name=Anna_B ;; *) name='Anna B' ;; esac
    has "--speakers, $f: who speaks" "$out" "$name"
    has "--speakers, $f: who else" "$out" Ben
    printf '%s\n' "$out" > "$tmp/turns.$f"
done
is "text: a line a turn" "" "$(grep -v '^Anna B: \|^Ben: ' "$tmp/turns.text")"
starts() { grep -o '"phones":\[{"phone":"[A-Z]*","start":[0-9.]*' "$1" | sed 's/.*://'; }
is "turns are in the order of time" "$(starts "$tmp/turns.json")" "$(starts "$tmp/turns.json" | sort -n)"
"$LINNET" transcribe -q --channel each --ids --reset never "$tmp/call.wav" | tr ' ' '\n' | grep -v call | sort > "$tmp/apart"
cut -d: -f2 "$tmp/turns.text" | tr ' ' '\n' | grep . | sort > "$tmp/together"
ok "nothing is lost, nothing is said twice" cmp "$tmp/apart" "$tmp/together"
run transcribe -q --channel each --speakers Anna,Ben "$tmp/call.wav"
is "--speakers: blanks around names" "$out" "$("$LINNET" transcribe -q --channel each --speakers ' Anna , Ben ' "$tmp/call.wav")"
refused "--speakers: more names than channels" 1 "--speakers has 3 names, but the sound has 2 channels" \
    transcribe -q --channel each --speakers Anna,Ben,Cora "$tmp/call.wav"
run transcribe -q --channel each --speakers Anna --reset never -f srt,textgrid --output-dir "$tmp/calls" "$tmp/call.wav"
is "--speakers: one file a format" "call.TextGrid call.srt " "$(ls "$tmp/calls" | tr '\n' ' ')"
has "a channel without a name has its number" "$(cat "$tmp/calls/call.TextGrid")" '"channel 2 - phones"'
# Two channels with the same sound are one speaker; without --speakers both are written.
"$SOUND" "$tmp/one.raw" format=raw seconds=3 seed=5
"$SOUND" "$tmp/equal.wav" kind=babble voices=1 "from=$tmp/one.raw" channels=2 seconds=3
run transcribe -q --channel each --ids --reset never "$tmp/equal.wav"
has "equal channels: a message" "$err" "all phonemes of channel 2 are those of channel 1, which is heard in it; --speakers"
first=$(printf '%s\n' "$out" | sed -n 's/^equal-1 //p')
is "equal channels: both are written" "equal-1 $first/equal-2 $first/" "$(printf '%s\n' "$out" | tr '\n' /)"
run transcribe -q --channel each --speakers Anna,Ben --reset never "$tmp/equal.wav"
is "equal channels of speakers: written once" "$first" "$(printf '%s\n' "$out" | sed 's/^Anna: //' | xargs)"
has "equal channels of speakers: a message" "$err" "those of channel 1, which is heard in it: they are written once"
refused "--speakers: one name twice" 2 "--speakers: two speakers would be called Anna; give each another name" \
    transcribe --channel each --speakers 'Anna,Ben, Anna' "$tmp/call.wav"
refused "--speakers: the name of a channel without one" 2 "two speakers would be called channel 2" \
    transcribe --channel each --speakers 'channel 2' "$tmp/call.wav"
refused "--speakers: one name twice, diarized" 2 "two speakers would be called S2" transcribe --diarize --speakers S2 "$tmp/call.wav"
refused "--speakers of a mix" 2 "--speakers needs --channel each" transcribe --speakers a,b "$tmp/call.wav"
refused "channels as subtitles: advice" 1 "use --output-dir, or --speakers for one transcript" \
    transcribe -q --channel each -f srt "$tmp/call.wav"

# bf16: refused with one message where it is not supported; otherwise a matrix near that of fp32, not equal to it.
if ! emulated; then # its processor has bf16, and has no lesser instruction set than portable
export LINNET_ISA=portable
refused "bf16 without its instruction" 1 "use --precision fp32" transcribe -q --device cpu --precision bf16 "$d/s3.wav"
refused "posteriors in bf16 without it" 1 "use --precision fp32" posteriors --device cpu --precision bf16 "$d/s3.wav" -o "$tmp/h.npy"
refused "training in bf16 without it" 1 "use --precision fp32" train "$tmp/train.conf" --train "$tmp/set.lfc" --device cpu --precision bf16 \
    --folder "$tmp/half"
unset LINNET_ISA
fi
refused "a precision that does not exist" 2 "fp32" transcribe --precision fp8 "$d/s3.wav"
run posteriors --device cpu --precision fp32 -j 1 "$d/s1.wav" -o "$tmp/f.npy"
ok "fp32 is the default" cmp "$tmp/a.npy" "$tmp/f.npy"
if grep -qw avx512_bf16 /proc/cpuinfo 2> /dev/null; then
    exits "bf16" 0 run posteriors --device cpu --precision bf16 -j 1 "$d/s1.wav" -o "$tmp/h.npy"
    is "bf16: the same size" "$(wc -c < "$tmp/a.npy")" "$(wc -c < "$tmp/h.npy")"
    ok "bf16: other numbers" sh -c '! cmp -s "$1" "$2"' - "$tmp/a.npy" "$tmp/h.npy"
    run posteriors --device cpu --precision bf16 -j 3 "$d/s1.wav" -o "$tmp/i.npy"
    ok "bf16: the same bits with three threads" cmp "$tmp/h.npy" "$tmp/i.npy"
    run transcribe -q --device cpu --precision bf16 "$d"/s?.wav
    is "bf16: nine lines" 9 "$(printf '%s\n' "$out" | wc -l | tr -d ' ')"
fi

# A longer sound does not need more memory (the limit holds for both).
"$SOUND" "$tmp/long.wav" seconds=120
if [ "$CONFIG" = release ] && (ulimit -v 400000) 2> /dev/null; then
    ok "two minutes within the memory of one second" sh -c 'ulimit -v 400000; "$1" transcribe -q -j 1 "$2"' - "$LINNET" "$tmp/long.wav"
fi

# An interrupt: exit status 130, and no result of the unfinished file.
mkfifo "$tmp/fifo"
"$LINNET" transcribe -q - < "$tmp/fifo" > "$tmp/struck" 2> "$tmp/.err" &
pid=$!
exec 9> "$tmp/fifo"
cat "$tmp/s3.raw" >&9
await test -s "$tmp/struck"
kill -TERM $pid
wait $pid
is "SIGTERM: status" 130 "$?"
exec 9>&-
has "the result so far is written" "$alone" "$(cut -d ' ' -f 1-3 "$tmp/struck")"
finish
