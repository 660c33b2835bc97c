#!/usr/bin/env bash
# robust.sh - word and phoneme error rates of one set as it is, at other levels, in noise and rooms, over codecs and a telephone, faster and
# slower.
#
#   bench/robust.sh --data DIR [--audio-root DIR] [--every 1] [--model FILE] [--work exp/robust] [--conditions "clean noise:10 ..."]
#                   [--with "--dereverb ..."] [--output FILE] [--linnet build/release/linnet]
#
# DIR is a data directory (wav.scp, text). --every N: each Nth utterance. Each condition processes the sounds into float samples, without
# clipping, and recognises them with the defaults of `linnet transcribe` and of `--words`. PER is against `linnet phonemize --ids first`
# of the text. --model offline is the installed model of whole utterances. --with: more options of `linnet transcribe`. Conditions, with
# the numbers that may be chosen:
#
#   clean           as it is                               level:DB        that much louder
#   noise:DB        pink noise, DB below the speech        babble:DB       six other utterances at once, DB below the speech, both of
#                                                                          the same root mean square over the whole utterance at 0
#   room:SECONDS[:DB]   decaying white noise as the impulse response, 60 dB in SECONDS; the direct sound has DB (0) more energy
#   ir:FILE         convolved with the impulse response in a file, such as one measured in a room, and quieter
#   phone           300 to 3,400 Hz, 8 kHz, mu-law         mp3:KBITS       opus:KBITS
#   tempo:FACTOR    so many times as fast, the same pitch
#
# The table goes to standard output; --output FILE appends its rows to FILE instead, and leaves out the conditions that FILE has.
#
# Needs ffmpeg, with libmp3lame and libopus for those conditions. Noise and rooms come from fixed seeds.
. "$(dirname "$0")/../recipes/common.sh"
data= audio_root= every=1 model=share/linnet/en/default.safetensors work=exp/robust
output= with=
conditions="clean level:-30 level:-20 level:10 noise:20 noise:10 noise:5 noise:0 babble:10 room:0.3 room:0.6 phone mp3:16 opus:8 tempo:0.8 tempo:1.25"
flags=" " values=" data audio-root every model work conditions with output linnet "
options "$@"
[ -n "$data" ] || die "which set? give --data DIR"
command -v ffmpeg > /dev/null || die "ffmpeg is missing; apt-get install ffmpeg"
for file in wav.scp text; do [ -f "$data/$file" ] || die "$data/$file does not exist"; done
export LINNET_MODEL=$model LC_ALL=C
work=$(cd "$work" && pwd)
awk -v n="$every" 'NR % n == 1 % n' "$data/wav.scp" > "$work/wav.scp"
awk 'NR == FNR { kept[$1]; next } $1 in kept' "$work/wav.scp" "$data/text" > "$work/text"
"$linnet" phonemize --ids first --trn "$work/text" > "$work/phones.trn" 2> /dev/null

sound() { ffmpeg -nostdin -v error -y "$@"; }
whole="-ac 1 -ar 16000"
file_of() { case $1 in /*) echo "$1" ;; *) echo "${audio_root:-$(dirname "$data")}/$1" ;; esac; }
# rms FILE: of its samples, in dB
rms() { ffmpeg -nostdin -i "$1" -af volumedetect -f null - 2>&1 | awk '/mean_volume/ { print $(NF - 1) }'; }
# mix FILE NOISE DB OUT: the noise that far below, from a place that depends on the file
mix() {
    local gain at
    gain=$(awk -v a="$(rms "$1")" -v b="$(cat "$2.rms")" -v snr="$3" 'BEGIN { print a - b - snr }')
    at=$(cksum < "$1" | awk '{ print $1 % 20 }')
    sound -i "$1" -ss "$at" -i "$2" -filter_complex "[1]volume=${gain}dB[n];[0][n]amix=inputs=2:duration=first:normalize=0" \
        -c:a pcm_f32le "$4"
}
# prepares a condition before its first utterance
begin() {
    case $1 in
    noise:*)
        [ -f "$work/pink.wav" ] || sound -f lavfi -i "anoisesrc=color=pink:seed=1:r=16000:d=80" "$work/pink.wav"
        rms "$work/pink.wav" > "$work/pink.wav.rms" ;;
    babble:*)
        while read -r _ path; do sound -i "$(file_of "$path")" $whole -f s16le - ; done < "$work/wav.scp" > "$work/all.raw"
        local seconds=$(($(wc -c < "$work/all.raw") / 32000)) voices=() k
        for k in 0 1 2 3 4 5; do voices+=(-ss $((seconds * k / 6)) -stream_loop -1 -f s16le -ar 16000 -i "$work/all.raw"); done
        sound "${voices[@]}" -filter_complex "amix=inputs=6" -t 80 "$work/babble.wav"
        rms "$work/babble.wav" > "$work/babble.wav.rms" ;;
    room:*) # a sound of samples as text: Gaussian noise that decays behind a 1
        local room=${1#*:} db=0
        [[ $room != *:* ]] || db=${room#*:}
        awk -v T="${room%:*}" -v room="$(awk -v db="$db" 'BEGIN { print 10 ^ (-db / 10) }')" 'BEGIN {
            srand(1); n = int(T * 16000)
            for (i = 1; i < n; i++) {
                x[i] = sqrt(-2 * log(1 - rand())) * cos(6.2831853 * rand()) * exp(-6.9078 * i / n); sum += x[i] * x[i]
            }
            scale = 32767 * 0.25
            for (i = 0; i < n; i++) { v = int(scale * (i ? x[i] * sqrt(room / sum) : 1)); if (v < 0) v += 65536; printf "%c%c", v % 256, int(v / 256) }
        }' > "$work/room.raw"
        # 0.25, and the energy of both together
        sound -f s16le -ar 16000 -i "$work/room.raw" -af "volume=$(awk -v db="$db" 'BEGIN { print 4 / sqrt(1 + 10 ^ (-db / 10)) }')" \
            -c:a pcm_f32le "$work/room.wav" ;;
    esac
}
# change CONDITION IN OUT: WAV files of 16 kHz
change() {
    local value=${1#*:} codec=$work/coded
    case $1 in
    clean) sound -i "$2" -c:a pcm_f32le "$3" ;;
    level:*) sound -i "$2" -af "aformat=sample_fmts=flt,volume=${value}dB" -c:a pcm_f32le "$3" ;;
    noise:*) mix "$2" "$work/pink.wav" "$value" "$3" ;;
    babble:*) mix "$2" "$work/babble.wav" "$value" "$3" ;;
    room:*) sound -i "$2" -i "$work/room.wav" -filter_complex "[0][1]afir=gtype=none:irfmt=input" -c:a pcm_f32le "$3" ;;
    ir:*) sound -i "$2" -i "$value" -filter_complex "[1]aresample=16000[h];[0][h]afir=gtype=gn:irfmt=mono,volume=-10dB" -c:a pcm_f32le "$3" ;;
    tempo:*) sound -i "$2" -af "atempo=$value" -c:a pcm_f32le "$3" ;;
    phone) sound -i "$2" -af "highpass=300,lowpass=3400" -ar 8000 -c:a pcm_mulaw "$codec.wav" && sound -i "$codec.wav" $whole -c:a pcm_f32le "$3" ;;
    mp3:*) sound -i "$2" -c:a libmp3lame -b:a "${value}k" "$codec.mp3" && sound -i "$codec.mp3" $whole -c:a pcm_f32le "$3" ;;
    opus:*) sound -i "$2" -c:a libopus -b:a "${value}k" "$codec.opus" && sound -i "$codec.opus" $whole -c:a pcm_f32le "$3" ;;
    *) die "no condition is called $1" ;;
    esac
}
rate() { # rate REF HYP FORMAT-OF-REF: per cent, and the interval
    "$linnet" score --format "$3" "$1" "$2" | tail -n 2 | tr -d ',[]%:' | awk '
        / interval/ { low = $3; high = $4 } END { printf "%s | %s to %s", $2, low, high }'
}

if [ -z "$output" ]; then
    echo "| sound | WER % | 95 % interval | PER % | 95 % interval |"
    echo "|---|---|---|---|---|"
fi
for condition in $conditions; do
    [ -z "$output" ] || ! grep -qsF "| $condition |" "$output" || continue
    folder=$work/sounds
    rm -rf "$folder" && mkdir "$folder"
    begin "$condition"
    while read -r id path; do
        sound -i "$(file_of "$path")" $whole -c:a pcm_f32le "$work/in.wav"
        change "$condition" "$work/in.wav" "$folder/$id.wav"
        echo "$id $folder/$id.wav"
    done < "$work/wav.scp" > "$folder/wav.scp"
    cp "$work/text" "$folder/text"
    "$linnet" transcribe -q $with --data "$folder" --words --format trn --unit words --output "$work/words.trn"
    "$linnet" transcribe -q $with --data "$folder" --format trn --output "$work/phones.hyp.trn"
    echo "| $condition | $(rate "$work/text" "$work/words.trn" kaldi) | $(rate "$work/phones.trn" "$work/phones.hyp.trn" trn) |" >> "${output:-/dev/stdout}"
done
