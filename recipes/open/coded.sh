#!/usr/bin/env bash
# Makes a data directory of utterances coded at low bit rates or for telephones, to train on (bench/robust.sh tests such sound).
#
#   recipes/open/coded.sh --data DIR [--data DIR ...] [--audio-root DIR] [--every 3] [--codecs "mp3:16 mp3:24 opus:8 opus:12 phone"] --output DIR
#
# Each Nth utterance of each --data goes through one of the codecs in turn (kbit/s; phone: 300 to 3,400 Hz, 8 kHz, mu-law). Relative paths in
# wav.scp are below --audio-root. OUTPUT/audio has the coded sounds, which linnet decodes; existing ones are kept. Needs ffmpeg with
# libmp3lame and libopus. Utterances are called coded-NAME.
. "$(dirname "$0")/../common.sh"

data=() audio_root=. every=3 codecs="mp3:16 mp3:24 opus:8 opus:12 phone" output= work=.
flags=" " lists=" data " values=" audio-root every codecs output linnet "
options "$@"
export LC_ALL=C
[ -n "$output" ] || die "where to? give --output DIR"
[ ${#data[@]} -gt 0 ] || die "which speech? give --data DIR"
is_count "$every" --every
command -v ffmpeg > /dev/null || die "ffmpeg is missing: apt-get install ffmpeg"
mkdir -p "$output/audio"
output=$(cd "$output" && pwd)
rm -f "$output"/*.new
read -r -a codec <<< "$codecs"

encode() { # encode IN CODEC OUT
  case $2 in
    mp3:*) set -- "$1" "$3" -ar 16000 -c:a libmp3lame -b:a "${2#*:}k" ;;
    opus:*) set -- "$1" "$3" -ar 16000 -c:a libopus -b:a "${2#*:}k" ;;
    phone) set -- "$1" "$3" -af highpass=300,lowpass=3400 -ar 8000 -c:a pcm_mulaw ;;
    *) die "no codec is called $2" ;;
  esac
  local in=$1 out=$2
  shift 2
  ffmpeg -nostdin -v error -y -i "$in" -ac 1 "$@" "$out.part.${out##*.}" && mv "$out.part.${out##*.}" "$out"
}

for set in "${data[@]}"; do
  for file in wav.scp text utt2spk; do [ -f "$set/$file" ] || die "$set/$file does not exist"; done
  n=0
  while read -r id path; do
    n=$((n + 1))
    [ $((n % every)) = 0 ] || continue
    kind=${codec[n / every % ${#codec[@]}]} file=$output/audio/$id
    case $kind in phone) file=$file.wav ;; *) file=$file.${kind%:*} ;; esac
    case $path in /*) ;; *) path=$audio_root/$path ;; esac
    [ -f "$file" ] || encode "$path" "$kind" "$file" || { echo "coded.sh: $path is left out" >&2; continue; }
    echo "$id $file"
  done < "$set/wav.scp" > "$output/part"
  for file in text utt2spk; do
    awk 'NR == FNR { kept[$1] = 1; next } $1 in kept { print "coded-" $0 }' "$output/part" "$set/$file"  >> "$output/$file.new"
  done
  sed 's/^/coded-/' "$output/part" >> "$output/wav.scp.new"
done
rm "$output/part"
for file in wav.scp text utt2spk; do sort "$output/$file.new" > "$output/$file" && rm "$output/$file.new"; done
echo "coded.sh: $(wc -l < "$output/wav.scp") utterances in $output"
