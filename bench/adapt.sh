#!/usr/bin/env bash
# Measures the gain of each way of adapting: names by phrases, by added words and by a mixed language model; a voice by training.
#
#   bench/adapt.sh --corpus DIR [--part all|names|voice] [--work exp/adapt] [--threads 1] [--linnet build/release/linnet]
#
# names   200 surnames, 80 of which neither lexicon nor language model has (bench/adapt/names.txt), each in a sentence of a front
#         desk (test.txt), said by flite's voices; for false ones also dev_native, where nobody says such a name. The language model
#         is mixed with 480 sentences of the same place (text.txt), weighted on 120 others (dev.txt)
# voice   flite's awb, a Scot, reads 163 sentences of train_native; a quarter of them is held out. The second time 118 utterances of
#         train_cv are kept. dev_native says what the models lost
#
# Needs flite (Debian). Rates are those of linnet score. --threads: of training and of transcription. A voice that WORK has is kept.
. "$(dirname "$0")/../recipes/common.sh"
here=$(dirname "$0")/adapt share=$(dirname "$0")/../share/linnet/en
corpus= work=exp/adapt threads=1 part=all
flags=" " values=" corpus work threads part linnet "
options "$@"
[ -d "$corpus/dev_native" ] || die "--corpus DIR names the folder with dev_native"
case $part in all | names | voice) ;; *) die "--part is all, names or voice, not '$part'" ;; esac

# say VOICE TEXT ID FOLDER: adds an utterance to a data directory.
say() {
    mkdir -p "$4/wav"
    [ -s "$4/wav/$3.wav" ] || flite -voice "$1" -t "$2" -o "$4/wav/$3.wav"
    echo "$3 $2" >> "$4/text"
    echo "$3 wav/$3.wav" >> "$4/wav.scp"
    echo "$3 $1" >> "$4/utt2spk"
}
trn() { awk '{ id = $1; $1 = ""; sub(/^ /, ""); print tolower($0) " (" id ")" }' "$1/text"; }
rate() {
    "$linnet" score "$1" "$2" --json --bootstrap 0 | sed -n 's/.*"rate":\([^,]*\),"without.*/\1/p' | awk '{ printf $1 == "null" ? "-" : "%.1f", 100 * $1 }'
}
words() { # words DATA ROOT RESULT OPTIONS...
    data=$1 root=$2 result=$3
    shift 3
    "$linnet" transcribe -q --words --no-readable --jobs "$threads" --data "$data" --audio-root "$root" -f trn -o "$result" "$@"
}

# ---- names -----------------------------------------------------------------------------------------------------------------------

# sentences TEMPLATES N: N sentences of each, with names in turn.
sentences() {
    awk -v n="$2" 'FILENAME == ARGV[1] { name[names++] = $1; next }
        { for (k = 0; k < n; k++) { s = $0; i++; while (s ~ /NAME/) { sub(/NAME/, name[(i * 7 + j++ * 11) % names], s) } print s } }' \
        "$here/names.txt" "$1"
}
names_said() { # names_said RESULT REFERENCE: hits, and names where another or none was said
    awk 'FILENAME == ARGV[1] { is[$1] = 1; next }
        { id = $NF }
        FILENAME == ARGV[2] { for (i = 1; i < NF; i++) if ($i in is) said[id, $i]++; next }
        { for (i = 1; i < NF; i++) if ($i in is) { if (said[id, $i]-- > 0) hits++; else wrong++ } }
        END { printf "%d %d\n", hits, wrong }' "$here/names.txt" "$2" "$1"
}
names() {
    d=$work/names i=0
    rm -f "$d/text" "$d/wav.scp" "$d/utt2spk"
    while read -r name; do
        i=$((i + 1))
        voice=$(echo slt rms awb kal16 | cut -d' ' -f$((i % 4 + 1)))
        say "$voice" "$(sed -n "$((i % 10 + 1))p" "$here/test.txt" | sed "s/NAME/$name/")" "$voice-$i" "$d"
    done < "$here/names.txt"
    trn "$d" > "$d/ref.trn"
    trn "$corpus/dev_native" > "$d/native.trn"
    sentences "$here/text.txt" 20 > "$d/text.txt"
    sentences "$here/dev.txt" 20 > "$d/dev.txt"
    "$linnet" ngram count -q "$d/text.txt" -o "$d/text.arpa"
    "$linnet" ngram mix "$share/words.lm" "$d/text.arpa" --text "$d/dev.txt" --packed -o "$d/mixed.lm"
    echo '| | names heard, of 200 | false names | WER % | false names in dev_native | WER % of dev_native |'
    echo '|---|---|---|---|---|---|'
    while IFS='|' read -r what options; do
        eval "words '$d' '$d' '$d/said.trn' $options"
        eval "words '$corpus/dev_native' '$corpus' '$d/native-said.trn' $options"
        set -- $(names_said "$d/said.trn" "$d/ref.trn") $(names_said "$d/native-said.trn" "$d/native.trn")
        echo "| $what | $1 | $2 | $(rate "$d/ref.trn" "$d/said.trn") | $4 | $(rate "$d/native.trn" "$d/native-said.trn") |"
    done << END
as installed|
\`--context names.txt --tune context-bonus=2\`|--context $here/names.txt --tune context-bonus=2
\`--context names.txt\`|--context $here/names.txt
\`--add-lexicon names.txt\`|--add-lexicon $here/names.txt
both, \`context-bonus=2\`|--add-lexicon $here/names.txt --context $here/names.txt --tune context-bonus=2
\`--lm mixed.lm\`|--lm $d/mixed.lm
\`--add-lexicon names.txt --lm mixed.lm\`|--add-lexicon $here/names.txt --lm $d/mixed.lm
all three, \`context-bonus=2\`|--add-lexicon $here/names.txt --lm $d/mixed.lm --context $here/names.txt --tune context-bonus=2
END
}

# ---- acoustics -------------------------------------------------------------------------------------------------------------------

# rates_of NAME RESULTS COLUMN MODEL: a row; results.txt has the rates before (1) and after (2); dev_native says what was lost
rates_of() {
    words "$corpus/dev_native" "$corpus" "$work/native-said.trn" --model "$4"
    echo "| $1 | $(awk -v what=phonemes, -v column="$3" '$1 == what { print $(NF - 2 + column) }' "$2") |" \
        "$(awk -v what=words, -v column="$3" '$1 == what { print $(NF - 2 + column) }' "$2") |" \
        "$(rate "$work/native.trn" "$work/native-said.trn") |"
}
adapted() { # adapted DATA NAME OPTIONS...: the folder DATA/NAME, unless it is complete
    [ ! -s "$1/$2/results.txt" ] || return 0
    rm -rf "${1:?}/$2"
    data=$1 name=$2
    shift 2
    "$linnet" adapt --data "$data" --audio-root "$data" --held-out 0.25 --threads "$threads" -o "$data/$name" "$@" >&2
}
voice() {
    d=$work/voice
    rm -rf "$d/text" "$d/wav.scp" "$d/utt2spk" "$d/keep"
    awk 'NF > 6 && NF < 16 { k = $1; $1 = ""; print k $0 }' "$corpus/train_native/text" | awk 'NR % 3 == 0' |
        while read -r id text; do say awb "$(echo "$text" | tr A-Z a-z)" "awb-$id" "$d"; done
    mkdir -p "$d/keep"
    for file in text utt2spk wav.scp; do awk 'NR % 6 == 0' "$corpus/train_cv/$file" > "$d/keep/$file"; done
    sed -i "s, , $corpus/," "$d/keep/wav.scp"
    adapted "$d" adapted
    adapted "$d" kept --keep-data "$d/keep"
    trn "$corpus/dev_native" > "$work/native.trn"
    echo '| model | held out: PER % | held out: WER % | dev_native: WER % |'
    echo '|---|---|---|---|'
    rates_of 'as installed' "$d/adapted/results.txt" 1 "$share/default.safetensors"
    rates_of adapted "$d/adapted/results.txt" 2 "$d/adapted/default.safetensors"
    rates_of 'adapted with `--keep-data`' "$d/kept/results.txt" 2 "$d/kept/default.safetensors"
}
[ "$part" = voice ] || names
[ "$part" = names ] || voice
