#!/usr/bin/env bash
# second_pass.sh - word error rate of live text, without and with a second pass over each utterance that has ended, with the sound of both
# models (--combine) and with the installed network of words.
#
#   bench/second_pass.sh --corpus DIR [--set dev_native] [--every 1] [--second offline] [--work exp/second]
#                        [--linnet build/release/linnet]
#
# Each utterance of the set (or every --every-th) is a stream of its own, as fast as it is computed: where it has pauses it ends
# in several utterances, whose final texts are joined. DIR is a folder of Kaldi-style data directories (see recipes/open/run.sh);
# never use a test set. Texts are written to the folder --work, and existing ones are kept. Prints lines with the options of
# listen, the WER in per cent and its 95 % interval over utterances, between |.
. "$(dirname "$0")/../recipes/common.sh"
corpus= set=dev_native every=1 second=offline work=exp/second
flags=" " values=" corpus set every second work linnet "
options "$@"
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
case $set in test*) die "$set: use a development set, not a test set" ;; esac
awk -v every="$every" 'NR % every == 1 % every' "$corpus/$set/wav.scp" > "$work/wav.scp"
awk 'NR == FNR { wanted[$1]; next } $1 in wanted { id = $1; $1 = ""; print tolower($0) " (" id ")" }' "$work/wav.scp" \
    "$corpus/$set/text" > "$work/ref.trn"
models=$({ "$linnet" info; "$linnet" info "$second"; } | sed -n 's/^fingerprint: *//p')
hear() { # NAME OPTIONS...: NAME.trn, and the line
    made_with "$work/$1.trn" "$(realpath "$corpus")" "$set" "$every" "$models" "${@:2}"
    [ -f "$work/$1.trn" ] || while read -r id path; do
        echo "$("$linnet" listen -q --plain --words --no-readable --no-paced "${@:2}" --from "$corpus/$path" | paste -s -d ' ' -) ($id)"
    done < "$work/wav.scp" > "$work/part"
    [ -f "$work/$1.trn" ] || mv "$work/part" "$work/$1.trn"
    "$linnet" score "$work/ref.trn" "$work/$1.trn" | tr -d ',[]%:' | awk -v options="${*:2}" '
        /^95 +interval/ { low = $3; high = $4 } END { printf "%s | %s | %s to %s\n", options == "" ? "no other option" : "`" options "`", $2, low, high }'
}
hear first
hear second --second-pass "$second"
hear network --second-pass "$second" --rescore words
hear combined --second-pass "$second" --combine default
hear both --second-pass "$second" --combine default --rescore words
