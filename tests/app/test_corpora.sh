#!/bin/sh
# Corpora as people have them: Kaldi's segments, channels and commands; manifests of NeMo and Lhotse, tables of Common Voice.
. tests/app/common.sh

use_model
lex="-l $tmp/dict"
a=$tmp/a b=$tmp/b
mkdir -p "$a/set" "$b/set" "$a/audio"

# cut FROM TO START SECONDS: a WAV file of a part of another (16 kHz, mono)
cut_wav() {
    "$SOUND" "$2" seconds=$4
    head -c 44 "$2" > "$tmp/head"
    tail -c +45 "$1" | tail -c +$(($3 * 32 + 1)) | head -c $((${4%.*} * 32000)) > "$tmp/body"
    cat "$tmp/head" "$tmp/body" > "$2"
}

# ---- segments ----------------------------------------------------------------------------------------------------------------

"$SOUND" "$a/audio/long.wav" seconds=5 seed=7
cut_wav "$a/audio/long.wav" "$b/x.wav" 500 1
cut_wav "$a/audio/long.wav" "$b/y.wav" 3000 2
echo 'long audio/long.wav' > "$a/set/wav.scp"
printf 'x long 0.5 1.5\ny long 3 -1\n' > "$a/set/segments"
printf 'x x.wav\ny y.wav\n' > "$b/set/wav.scp"
for d in "$a" "$b"; do printf 'x one\ny two three\n' > "$d/set/text"; done
exits "prepare of segments" 0 run prepare "$a/set" $lex -o "$tmp/a.lfc" -q
run prepare "$b/set" $lex -o "$tmp/b.lfc" -q
ok "segments give the cache of the same sound in files of its own" cmp "$tmp/a.lfc" "$tmp/b.lfc"
exits "transcribe of segments" 0 run transcribe --data "$a/set" -f ctm -q --reset never
run transcribe --data "$a/set" -f json -q
is "an object for each utterance, its end by the clock of the recording" "x 1.500|y 5.000" \
    "$(printf '%s\n' "$out" | sed 's/.*"id":"\([a-z]*\)".*"seconds":\([0-9.]*\).*/\1 \2/' | paste -s -d '|')"
phones() { printf '%s\n' "$1" | grep -o '"phone":"[A-Z]*"' | paste -s -d ' '; }
one=$(phones "$out")
run transcribe --data "$b/set" -f json -q
is "the phones of segments are those of cut files" "$(phones "$out")" "$one"
exits "align of segments" 0 run align --data "$a/set" $lex -f ctm -q
is "align of segments: utterances and their words" "x one|y two|y three" "$(printf '%s\n' "$out" | cut -d' ' -f1,5 | paste -s -d '|')"
ok "times are those of the recording" sh -c 'printf "%s\n" "$1" | awk "{ if (\$1 == \"x\" && (\$3 < 0.5 || \$3 + \$4 > 1.51)) exit 1
    if (\$1 == \"y\" && (\$3 < 3 || \$3 + \$4 > 5.01)) exit 1 }"' - "$out"
run transcribe --data "$a/set" --output-dir "$tmp/out" -f textgrid -q
ok "a file for each utterance" test -s "$tmp/out/x.TextGrid" -a -s "$tmp/out/y.TextGrid"
run transcribe --data "$a/set" --output-dir "$tmp/out" -f textgrid --skip-done
has "segments that are done are skipped" "$err" "2 skipped (done before)"
refused "--start with segments" 1 "the utterances of $a/set are parts of recordings: not with --start and --end" \
    transcribe --data "$a/set" --start 1
shows "validate of segments: their length" "2 utterances, 3.0 s" validate "$a/set" $lex
shows "validate of the same in files of its own" "2 utterances, 3.0 s" validate "$b/set" $lex
printf 'x 1\ny two 3\n' > "$b/set/text"
shows "validate reads numbers" '"words": 3, "unknown": 0' validate "$b/set" $lex --json
printf 'x long 0.5 1.5\nz long 7 8\n' > "$a/set/segments"
printf 'x one\nz two three\n' > "$a/set/text"
exits "a segment behind the end" 1 run transcribe --data "$a/set" -f text -q
has "a segment behind the end: its name and its place" "$err" "linnet: z: $a/audio/long.wav: the sound ends after 5.000 s, before the part from 7.000 s"
is "the other is done" "x" "$(printf '%s\n' "$out" | cut -d' ' -f1)"

# ---- channels ----------------------------------------------------------------------------------------------------------------

"$SOUND" "$a/audio/two.wav" seconds=2 channels=2 seed=3
rm "$a/set/segments"
printf 'l audio/two.wav\nr audio/two.wav\nm audio/long.wav\n' > "$a/set/wav.scp"
printf 'l two A\nr two B\nm long B\n' > "$a/set/reco2file_and_channel"
rm "$a/set/text"
exits "channels" 0 run transcribe --data "$a/set" -f json -q
both=$(printf '%s\n' "$out" | sed 's/.*"phones"/"phones"/')
is "their numbers in results" '"channel":1|"channel":2|"channel":2' "$(printf '%s\n' "$out" | grep -o '"channel":[0-9]*' | paste -s -d '|')"
run transcribe "$a/audio/two.wav" --channel each -f json -q
is "the channels of a file are its utterances" "$(printf '%s\n' "$both" | head -n 2)" "$(printf '%s\n' "$out" | sed 's/.*"phones"/"phones"/')"
run transcribe "$a/audio/long.wav" -f json -q
is "a sound of one channel is that channel" "$(printf '%s\n' "$both" | tail -n 1)" "$(printf '%s\n' "$out" | sed 's/.*"phones"/"phones"/')"
channels() { "$LINNET" transcribe "$@" -f nemo -q 2> /dev/null | grep -o '"channel":[0-9]*' | paste -s -d '|'; }
is "nemo: the channels of a list" '"channel":1|"channel":2|"channel":2' "$(channels --data "$a/set")"
is "nemo: the channels of a file" '"channel":1|"channel":2' "$(channels "$a/audio/two.wav" --channel each)"
is "nemo: one channel" '"channel":1' "$(channels "$a/audio/two.wav" --channel 1)"
is "nemo: no channel of a mix" "" "$(channels "$a/audio/two.wav")"
echo '{"audio_filepath": "audio/two.wav", "duration": 2}' > "$a/two.jsonl"
is "nemo: the channels of a manifest's sound" '"channel":1|"channel":2' "$(channels --data "$a/two.jsonl" --channel each)"
for c in 2 each; do
    refused "--channel $c beside the channels of a list" 1 "a/set names the channel of l: not with --channel" transcribe --data "$a/set" --channel $c
done

# ---- commands ----------------------------------------------------------------------------------------------------------------

rm "$a/set/reco2file_and_channel"
echo "q cat '$a/audio/long.wav' | cat |" > "$a/set/wav.scp"
echo 'q one' > "$a/set/text"
for command in "transcribe --data $a/set" "align $lex --data $a/set" "prepare $lex -o $tmp/c.lfc $a/set"; do
    refused "a command without --allow-commands: ${command%% *}" 1 "the sound of q comes from a command; --allow-commands runs such commands" $command
done
hasnt "the server runs none" "$("$LINNET" serve --help)" "allow-commands"
exits "a command" 0 run transcribe --data "$a/set" --allow-commands -f json -q
is "its sound is that of the file" "$(printf '%s\n' "$both" | tail -n 1)" "$(printf '%s\n' "$out" | sed 's/.*"phones"/"phones"/')"
run align $lex --data "$a/set" --allow-commands -f ctm -q
is "align: the sound of a command" "q one" "$(printf '%s' "$out" | cut -d' ' -f1,5)"
printf 's q 0.5 1.5\n' > "$a/set/segments"
echo 's one' > "$a/set/text"
exits "prepare: a part of the sound of a command" 0 run prepare "$a/set" $lex --allow-commands -o "$tmp/c.lfc" -q
rm "$a/set/segments" "$a/set/text"
printf "q cat '$a/audio/long.wav'; exit 3 |\nw true |\nx cat /dev/null; kill -9 \$\$ |\ny cat audio/none.wav 2> /dev/null |\n" > "$a/set/wav.scp"
exits "bad commands" 1 run transcribe --data "$a/set" --allow-commands -f text
has "a command that fails" "$err" "linnet: the command cat '$a/audio/long.wav'; exit 3 failed with status 3"
has "a command that writes nothing" "$err" "linnet: the command true wrote nothing"
has "a command that is killed" "$err" "ended by signal 9"
has "all are counted" "$err" "4 failed"

# ---- manifests ---------------------------------------------------------------------------------------------------------------

m=$tmp/m
mkdir -p "$m/wavs" "$m/clips"
cp "$b/x.wav" "$b/y.wav" "$m/wavs"
cp "$b/x.wav" "$m/clips/x.wav"
printf '{"audio_filepath": "wavs/x.wav", "duration": 1.0, "text": "one", "lang": "en"}\n{"audio_filepath": "wavs/y.wav", "duration": 2.0, "text": "two three", "speaker": "s"}\n' > "$m/m.jsonl"
printf '{"audio_filepath":"../a/audio/long.wav","offset":0.5,"duration":1,"text":"one"}\n{"audio_filepath":"../a/audio/long.wav","offset":3,"duration":2,"text":"two three"}\n' > "$m/parts.jsonl"
printf '{"id":"x","start":0.5,"duration":1,"channel":0,"supervisions":[{"id":"x","recording_id":"r","start":0,"duration":1,"channel":0,"text":"one"}],"recording":{"id":"r","sources":[{"type":"file","channels":[0],"source":"../a/audio/long.wav"}],"sampling_rate":16000},"type":"MonoCut"}
{"id":"y","start":3,"duration":2,"channel":0,"supervisions":[{"id":"y","recording_id":"r","start":0,"duration":2,"channel":0,"text":"two three"}],"recording":{"id":"r","sources":[{"type":"file","channels":[0],"source":"../a/audio/long.wav"}],"sampling_rate":16000},"type":"MonoCut"}
' | gzip > "$m/cuts.jsonl.gz"
printf 'client_id\tpath\tsentence\nann\tx.wav\tOne!\n' > "$m/train.tsv"
phones_of() { "$LINNET" transcribe -q -f json --data "$1" 2> "$tmp/.err" | sed 's/.*"phones"/"phones"/'; }
want=$(phones_of "$m/m.jsonl")
is "a manifest: its files" "$("$LINNET" transcribe -q -f json "$b/x.wav" "$b/y.wav" | sed 's/.*"phones"/"phones"/')" "$want"
where() { sed 's/"\(start\|end\)":[0-9.]*/"\1":/g'; } # but for the times
is "parts of a recording" "$(printf '%s\n' "$want" | where)" "$(phones_of "$m/parts.jsonl" | where)"
is "Lhotse's cuts, gzip'd" "$(phones_of "$m/parts.jsonl")" "$(phones_of "$m/cuts.jsonl.gz")"
is "a table of Common Voice" "$(printf '%s\n' "$want" | head -n 1)" "$(phones_of "$m/train.tsv")"
for f in m parts; do
    mkdir -p "$tmp/$f"
    cp "$m/$f.jsonl" "$tmp/$f/list"
    ok "prepare of $f.jsonl" "$LINNET" prepare -q $lex --audio-root "$m" -o "$tmp/$f.lfc" "$tmp/$f/list"
done
rows() { "$LINNET" info --json "$1" | grep -o '"frames": [0-9]*'; }
is "parts have the frames of files" "$(rows "$tmp/m.lfc")" "$(rows "$tmp/parts.lfc")"
run align $lex --data "$m/cuts.jsonl.gz" -f ctm -q
is "align of cuts" "x one|y two|y three" "$(printf '%s\n' "$out" | cut -d' ' -f1,5 | paste -s -d '|')"
run align $lex --data "$m/train.tsv" -f ctm -q
is "align of a table" "x One" "$(printf '%s' "$out" | cut -d' ' -f1,5)"

echo '{' > "$m/bad.jsonl"
refused "no JSON" 1 "$m/bad.jsonl:1: the line is not JSON" transcribe --data "$m/bad.jsonl"

# Results as the same manifest, which are scored with it.
exits "nemo" 0 run transcribe --data "$m/m.jsonl" -f nemo -q --unit phones
is "nemo: the lines of the manifest" "$(sed 's/}$//' "$m/m.jsonl")" "$(printf '%s\n' "$out" | sed 's/,"pred_text":.*//')"
has "nemo: what was found" "$out" '"lang": "en","pred_text":"'
printf '%s\n' "$out" | sed 's/"pred_text":"[^"]*"/"pred_text":"ONE three"/' > "$m/hyp.jsonl"
exits "score of manifests" 0 run score "$m/m.jsonl" "$m/hyp.jsonl" --name WER --bootstrap 0
has "score of manifests" "$out" "66.67"
run transcribe --data "$m/hyp.jsonl" -f nemo -q --unit phones
is "an earlier result is replaced" 1 "$(printf '%s\n' "$out" | head -n 1 | grep -o pred_text | grep -c .)"
run transcribe "$m/wavs/x.wav" -f nemo -q
has "nemo of a file" "$out" '{"id":"x","audio_filepath":"'"$m"'/wavs/x.wav","duration":1.000,"pred_text":"'
nemo() { "$LINNET" "$@" -f nemo -q 2> /dev/null | sed 's/.*"offset/"offset/; s/,"pred_text.*//' | paste -s -d '|'; }
is "nemo of a part of a file" '"offset":0.400,"duration":0.300' "$(nemo transcribe "$m/wavs/x.wav" --start 0.4 --end 0.7)"
is "nemo of the beginning of a file" '"offset":0.000,"duration":0.300' "$(nemo transcribe "$m/wavs/x.wav" --end 0.3)"
is "nemo of a part, aligned" '"offset":0.400,"duration":0.600' "$(nemo align $lex "$m/wavs/x.wav" --text one --start 0.4)"
is "nemo of parts of a manifest's sounds" '"offset":0.400,"duration":0.600,"speaker":"wavs/x"|"offset":0.400,"duration":1.600,"speaker":"s"' \
    "$(nemo transcribe --data "$m/m.jsonl" --start 0.4)"
mkdir "$m/late"
echo "x $m/wavs/x.wav" > "$m/late/wav.scp"
echo "y x 0 0.7" > "$m/late/segments"
is "nemo of a segment from the beginning" '"offset":0.000,"duration":0.700,"speaker":"y"' "$(nemo transcribe --data "$m/late")"
echo "y x 0.4 99" > "$m/late/segments"
is "nemo of a segment beyond its sound" '"offset":0.400,"duration":0.600,"speaker":"y"' "$(nemo transcribe --data "$m/late")"
finish
