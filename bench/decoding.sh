#!/usr/bin/env bash
# Every search on one set: error rates and processor time; the same words by pocketsphinx.
#
#   bench/decoding.sh --corpus DIR [--set dev_native] [--lexicon DICT] [--lm ARPA] [--pocketsphinx N] [--linnet PROGRAM]
#
# linnet posteriors writes the rows once, so the times are of decoding only: opening lexicon and language model, reading rows,
# writing results. DICT and ARPA: Debian's cmudict-en-us.dict and the corpus' lm/en-us.arpa.gz, besides the models installed with
# the program. --pocketsphinx N: every N-th utterance also by pocketsphinx_batch (packages pocketsphinx, pocketsphinx-en-us, sox)
# with that dictionary and the same 3-gram, from sound to words in both; 0: not. The machine should be idle otherwise.
set -euo pipefail

corpus= set=dev_native lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict lm= pocketsphinx=0 linnet=build/release/linnet
usage() { sed -n '2,10p' "$0" | sed 's/^# \{0,1\}//'; exit "$1"; }
die() { echo "decoding.sh: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage 0 ;;
    --corpus|--set|--lexicon|--lm|--pocketsphinx|--linnet) [ $# -ge 2 ] || die "$1 needs a value"; declare "${1#--}=$2"; shift 2 ;;
    *) die "unknown option $1; --help lists them" ;;
  esac
done
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
[ -x "$linnet" ] || die "$linnet does not exist; run make first"
lm=${lm:-$corpus/lm/en-us.arpa.gz}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

while read -r id path; do "$linnet" posteriors --search "$corpus/$path" -o "$tmp/$id.npy" < /dev/null; done < "$corpus/$set/wav.scp"
"$linnet" phonemize -q --ids first --trn --lexicon "$lexicon" "$corpus/$set/text" > "$tmp/phones.trn"
"$linnet" ngram pack "$lm" -o "$tmp/words.lm"
seconds=$("$linnet" decode "$tmp"/*.npy -f trn -o "$tmp/hyp.trn" 2>&1 | sed 's/.* files, \([0-9.]*\) s of sound in.*/\1/')

TIMEFORMAT=%U
timed() { { time "$@" 2> /dev/null > /dev/null; } 2>&1; }
rate() { "$linnet" score --name "$1" --bootstrap 0 --ref-format "$2" "$3" "$4" | tail -n 1 | sed 's/ in .*//'; }
line() { # line WHAT NAME FORMAT REFERENCE OPTIONS...: decodes, scores
  what=$1 name=$2 format=$3 reference=$4
  shift 4
  used=$(timed "$linnet" decode "$tmp"/*.npy -q -j 1 -f trn -o "$tmp/hyp.trn" "$@")
  awk -v w="$what" -v u="$used" -v s="$seconds" -v r="$(rate "$name" "$format" "$reference" "$tmp/hyp.trn")" \
    'BEGIN { printf "%-44s %8.2f s %7.3f %% of real time   %s\n", w, u, 100 * u / s, r }'
}
echo "$set: $seconds s of sound; processor time of decoding on one core"
phones="PER trn $tmp/phones.trn" text="WER kaldi $corpus/$set/text"
line "greedy" $phones
line "beam of 16" $phones --beam 16
for n in 16 64; do line "beam of $n, phones.lm" $phones --beam $n --lm phones.lm; done
line "words, words.lm" $text --words
for n in 64 256 1024; do line "words, beam of $n, $(basename "$lm")" $text --words --beam $n --lexicon "$lexicon" --lm "$tmp/words.lm"; done
line "phones of these words" $phones --words --unit phones --lexicon "$lexicon" --lm "$tmp/words.lm"

[ "$pocketsphinx" -gt 0 ] || exit 0
awk -v n="$pocketsphinx" 'NR % n == 1 || n == 1' "$corpus/$set/wav.scp" > "$tmp/scp"
mkdir "$tmp/wav"
while read -r id path; do
  "$linnet" listen --from "$corpus/$path" --no-paced -q --save "$tmp/float.wav" < /dev/null > /dev/null
  sox "$tmp/float.wav" -r 16000 -c 1 -b 16 "$tmp/wav/$id.wav" 2> /dev/null
done < "$tmp/scp"
cut -d ' ' -f 1 "$tmp/scp" > "$tmp/ids"
awk 'NR == FNR { known[$1] = 1; next } $1 in known' "$tmp/ids" "$corpus/$set/text" > "$tmp/text"
gunzip -c "$lm" > "$tmp/words.arpa" 2> /dev/null || cp "$lm" "$tmp/words.arpa"
seconds=$(soxi -D "$tmp"/wav/*.wav | awk '{ s += $1 } END { print s }')
echo "$(wc -l < "$tmp/ids") of these utterances, $seconds s, from sound to words"
used=$(timed "$linnet" transcribe -q -j 1 -f trn -o "$tmp/hyp.trn" --words --lexicon "$lexicon" --lm "$tmp/words.lm" "$tmp"/wav/*.wav)
echo "linnet        $used s   $(rate WER kaldi "$tmp/text" "$tmp/hyp.trn")"
used=$(timed pocketsphinx_batch -hmm "$(dirname "$lexicon")/en-us" -lm "$tmp/words.arpa" -dict "$lexicon" -adcin yes -adchdr 44 \
  -cepdir "$tmp/wav" -cepext .wav -ctl "$tmp/ids" -hyp "$tmp/hyp.txt")
sed 's/ *(\([^ ]*\) [-0-9]*)$/ (\1)/; s/([0-9]*)//g' "$tmp/hyp.txt" > "$tmp/hyp.trn"
echo "pocketsphinx  $used s   $(rate WER kaldi "$tmp/text" "$tmp/hyp.trn")"
