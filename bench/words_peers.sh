#!/usr/bin/env bash
# words_peers.sh - word error rate, processor time and memory of linnet beside Whisper base and pocketsphinx, on the same files.
#
#   bench/words_peers.sh --data DIR [--data DIR ...] [--audio-root DIR] [--every 1] [--sphinx-every 7]
#                        [--whisper FOLDER] [--python python3] [--hours 51] [--work exp/words-peers] [--linnet build/release/linnet]
#
# Each DIR is a data directory (wav.scp, text); never use a test set. The paths of wav.scp are absolute or begin at --audio-root, which is
# DIR itself if not given. Everything hears the same WAV files of 16 kHz and 16 bit, on one thread: the models that are installed with the
# program, streaming, of whole utterances, all of it together (--combine default --rescore words), and streaming with the second pass (a
# process for each utterance); Whisper with --whisper, a model as CTranslate2 has it, by faster-whisper in eight bits, which --python must
# have; Debian's pocketsphinx (packages pocketsphinx, pocketsphinx-en-us) where it is installed. What is missing is named and left out.
# --every N: each Nth utterance; pocketsphinx hears each Nth of these by --sphinx-every, and the table has the rates of the others on them
# too. --hours: of speech that the model of linnet was trained on.
#
# WER by linnet score --glm words.glm, with 95 % intervals over utterances. Processor time (user and system) and peak memory are those of
# the whole process, including its start and the reading of its models; from the second pass's processes, their time for 0.1 s of silence
# is subtracted. A run of less than a minute is done twice, and the faster one counts. Writes WORK/words-peers.tsv, words-peers.md, and
# SET.svg for each set, WER against seconds of processor time for an hour of sound. Needs ffmpeg and time (/usr/bin/time).
. "$(dirname "$0")/../recipes/common.sh"
data=() audio_root= every=1 sphinx_every=7 whisper= python=python3 hours=51 work=exp/words-peers
flags=" " lists=" data " values=" audio-root every sphinx-every whisper python hours work linnet "
options "$@"
[ ${#data[@]} -gt 0 ] || die "which sets? give --data DIR"
for tool in ffmpeg /usr/bin/time; do command -v $tool > /dev/null || die "$tool is missing; apt-get install ${tool##*/}"; done
for dir in "${data[@]}"; do
    case $(basename "$dir") in test*) die "$dir: use a development set, not a test set" ;; esac
    for file in wav.scp text; do [ -f "$dir/$file" ] || die "$dir/$file does not exist"; done
done
en=/usr/share/pocketsphinx/model/en-us sphinx=yes
command -v pocketsphinx_batch > /dev/null && [ -d $en/en-us ] || sphinx=
[ -n "$sphinx" ] || echo "words_peers.sh: pocketsphinx is left out; apt-get install pocketsphinx pocketsphinx-en-us" >&2
if [ -z "$whisper" ]; then echo "words_peers.sh: Whisper is left out; give --whisper FOLDER" >&2
elif ! "$python" -c 'import faster_whisper' 2> /dev/null; then die "$python has no faster-whisper; pip install it, or give --python PROGRAM"; fi
export LC_ALL=C OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
work=$(cd "$work" && pwd)
table=$work/words-peers.tsv

# files DIR SET: WORK/SET/{wav.scp,text}, and the WAV files where they are not there yet
files() {
    local root=${audio_root:-$1} id path sounds=$work/$2
    mkdir -p "$sounds"
    awk -v n="$every" 'NR % n == 1 % n' "$1/wav.scp" > "$sounds/list"
    while read -r id path; do
        [ "${path#/}" != "$path" ] || path=$root/$path
        [ -f "$sounds/$id.wav" ] || ffmpeg -nostdin -v error -y -i "$path" -ac 1 -ar 16000 -c:a pcm_s16le -bitexact -f wav "$sounds/part"
        [ -f "$sounds/$id.wav" ] || mv "$sounds/part" "$sounds/$id.wav"
        echo "$id $sounds/$id.wav"
    done < "$sounds/list" > "$sounds/wav.scp"
    awk 'NR == FNR { known[$1] = 1; next } $1 in known' "$sounds/wav.scp" "$1/text" > "$sounds/text"
    awk -v n="$sphinx_every" 'NR % n == 1 % n { print $1 }' "$sounds/wav.scp" > "$sounds/ids"
    awk 'NR == FNR { known[$1] = 1; next } $1 in known' "$sounds/ids" "$sounds/text" > "$sounds/text.part"
}
seconds() { while read -r id; do stat -c %s "$work/$1/$id.wav"; done | awk '{ s += ($1 - 44) / 32000 } END { printf "%.1f", s }'; } # of ids
# timed COMMAND...: sets `used`, seconds, and `memory`, MB: of the faster of two runs, if they are short
timed() {
    local try new mb
    used=
    for try in 1 2; do
        /usr/bin/time -o "$work/time" -f '%U %S %M' "$@" > "$work/log" 2>&1 || { cat "$work/log" >&2; die "failed: $*"; }
        read -r new mb <<< "$(tail -n 1 "$work/time" | awk '{ printf "%.2f %.0f", $1 + $2, $3 / 1024 }')"
        if [ -z "$used" ] || awk "BEGIN { exit !($new < $used) }"; then used=$new memory=$mb; fi
        if awk "BEGIN { exit !($used > 60) }"; then break; fi
    done
}
# score REF HYP: WER, low, high
score() {
    "$linnet" score --glm words.glm --format kaldi,trn "$1" "$2" | tail -n 2 | tr -d ',[]%:' |
        awk '/ interval/ { low = $3; high = $4 } END { printf "%s\t%s\t%s", $2, low, high }'
}
# row SET SYSTEM MILLIONS-OF-PARAMETERS HOURS STREAMING HYP: of `used` and `memory`; pocketsphinx hears a part of the set
row() {
    local sounds=$work/$1 ids=$work/$1/all part=$work/$1/$6.part whole="-	-	-" n length
    cut -d ' ' -f 1 "$sounds/wav.scp" > "$sounds/all"
    awk 'NR == FNR { known["(" $1 ")"] = 1; next } $NF in known' "$sounds/ids" "$sounds/$6" > "$part"
    if [ "$2" = pocketsphinx ]; then ids=$sounds/ids; else whole=$(score "$sounds/text" "$sounds/$6"); fi
    n=$(wc -l < "$ids") length=$(seconds "$1" < "$ids")
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" "$n" "$length" "$used" \
        "$(awk "BEGIN { printf \"%.1f\t%.4f\", 3600 * $used / $length, $used / $length }")" "$memory" "$whole" \
        "$(score "$sounds/text.part" "$part")" | tee -a "$table" >&2
}

# live LINNET FOLDER [SOUND]: a process for each utterance of the folder; SOUND instead of each
live='while read -r id path; do
    echo "$("$0" listen -q --plain --words --no-readable --no-paced --device cpu --second-pass offline --from "${2:-$path}" | paste -s -d " " -) ($id)"
done < "$1/wav.scp" > "$1/second.trn"'
ffmpeg -nostdin -v error -y -f lavfi -i anullsrc=r=16000:cl=mono -t 0.1 -c:a pcm_s16le "$work/none.wav"
millions=$("$linnet" info --json | sed 's/.*"parameters": \([0-9]*\).*/\1/' | awk '{ printf "%.1f", $1 / 1e6 }')
all=$(awk "BEGIN { printf \"%.1f\", $millions + $("$linnet" info offline --json | sed 's/.*"parameters": \([0-9]*\).*/\1/') / 1e6 + \
    $("$linnet" info share/linnet/en/words.safetensors --json | sed 's/.*"parameters": \([0-9]*\).*/\1/') / 1e6 }")
second=$(awk "BEGIN { printf \"%.1f\", $millions + $("$linnet" info offline --json | sed 's/.*"parameters": \([0-9]*\).*/\1/') / 1e6 }")
printf '%s\t' set system parameters_m hours streaming utterances sound_s cpu_s cpu_s_an_hour real_time memory_mb \
    wer low high part_wer part_low | sed 's/$/part_high\n/' > "$table"
for dir in "${data[@]}"; do
    set=$(basename "$dir")
    files "$dir" "$set"
    sounds=$work/$set
    ours=("$linnet" transcribe -q -j 1 --device cpu --words --no-readable -f trn --data "$sounds")
    timed "${ours[@]}" -o "$sounds/stream.trn"
    row "$set" "linnet, streaming" "$millions" "$hours" yes stream.trn
    timed "${ours[@]}" --offline -o "$sounds/offline.trn"
    row "$set" "linnet, whole utterances" "$millions" "$hours" no offline.trn
    timed "${ours[@]}" --offline --combine default --rescore words -o "$sounds/most.trn"
    row "$set" "linnet, whole utterances, all it has" "$all" "$hours" no most.trn
    timed bash -c "$live" "$linnet" "$sounds" "$work/none.wav"
    start=$used
    timed bash -c "$live" "$linnet" "$sounds"
    used=$(awk "BEGIN { printf \"%.2f\", $used - $start }")
    row "$set" "linnet, streaming, second pass" "$second" "$hours" yes second.trn
    if [ -n "$whisper" ]; then
        timed bash -c 'rm -f "$2/short.txt"; exec "$0" recipes/open/label.py --model "$1" --data "$2" --output "$2/short.txt"' \
            "$python" "$whisper" "$sounds"
        python3 bench/peers/spoken.py "$sounds/short.txt" > "$sounds/short.trn"
        row "$set" "Whisper base, greedy, short" 74 680000 no short.trn
        timed "$python" bench/peers/whisper_words.py --model "$whisper" --data "$sounds" --output "$sounds/whisper.txt"
        python3 bench/peers/spoken.py "$sounds/whisper.txt" > "$sounds/whisper.trn"
        row "$set" "Whisper base, beam 5" 74 680000 no whisper.trn
    fi
    if [ -n "$sphinx" ]; then
        timed pocketsphinx_batch -hmm $en/en-us -lm $en/en-us.lm.bin -dict $en/cmudict-en-us.dict -adcin yes -adchdr 44 -cepdir "$sounds" \
            -cepext .wav -ctl "$sounds/ids" -hyp "$sounds/sphinx.hyp"
        sed 's/ *(\([^ ]*\) [-0-9]*)$/ (\1)/; s/([0-9]*)//g; s/\(SIL\|+[A-Z]*+\)//g' "$sounds/sphinx.hyp" > "$sounds/sphinx.trn"
        row "$set" pocketsphinx - - yes sphinx.trn
    fi
    # one picture a set: the rates of the part that everything has heard, if pocketsphinx has heard a part
    awk -F'\t' -v set="$set" 'NR == 1 || $1 == set' "$table" > "$sounds/rows.tsv"
    rate=wer of="$(wc -l < "$sounds/all") utterances"
    [ -z "$sphinx" ] || rate=part_wer of="the $(wc -l < "$sounds/ids") utterances that all have heard"
    "$linnet" plot "$sounds/rows.tsv" --x "cpu_s_an_hour:seconds of processor time for an hour of sound" --y "$rate:WER (%)" \
        --by system --axes x-scale=log --title "Words of $set" --note "One CPU thread; $of" -o "$work/$set.svg"
done

awk -F'\t' '
    function spread(a, b, c) { return a == "-" ? "-" : a " (" b " to " c ")" }
    NR == 1 {
        print "| set | system | parameters, M | hours of speech | streaming | utterances | processor time of real time | MB | WER % | of the part that pocketsphinx hears |"
        print "|---|---|---|---|---|---|---|---|---|---|"
        next
    }
    { print "| " $1 " | " $2 " | " $3 " | " $4 " | " $5 " | " $6 " | " $10 " | " $11 " | " spread($12, $13, $14) " | " spread($15, $16, $17) " |" }
    ' "$table" | tee "$work/words-peers.md"
