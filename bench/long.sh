#!/usr/bin/env bash
# long.sh - long streams: one stream of a day, and the phoneme error rate against the time since the last reset.
#
#   bench/long.sh --corpus DIR [--set dev_native] [--hours 24] [--part all|drift|day] [--work exp/long] [--model FILE]
#                 [--lexicon FILE] [--linnet build/release/linnet]
#
# drift: the utterances of the set end to end, twice, as one stream; per ten minutes the error rate of the files alone (a reset at
#        every true boundary), with resets at the endpoints that linnet finds, and without any reset. The second half repeats the
#        utterances of the first, so that only its past differs. Once speaker after speaker, and once shuffled.
# day:   the same sound repeated through one process for --hours of sound, without resets and with resets at endpoints: after each
#        round its resident memory, its processor time per frame, its phonemes, and their error rate.
#
# DIR is a folder of Kaldi-style data directories (see recipes/open/run.sh); never use a test set. Needs
# cmudict-en-us.dict (Debian: pocketsphinx-en-us). All files are written to the folder --work; existing ones are kept.
. "$(dirname "$0")/../recipes/common.sh"
corpus= set=dev_native hours=24 part=all work=exp/long model=share/linnet/en/default.safetensors
lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict
flags=" " values=" corpus set hours part work model lexicon linnet "
options "$@"
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
case $set in test*) die "$set: use a development set, not a test set" ;; esac
case $part in all | drift | day) ;; *) die "--part is all, drift or day, not '$part'" ;; esac
export LINNET_MODEL=$model
linnet=$(realpath "$linnet")
transcribe=("$linnet" transcribe -q -j 1 -f ctm --reset never --encoding f32le -)
listen=("$linnet" listen -q --json --raw --encoding f32le --no-paced --from -)

# ---- the sound and its reference -----------------------------------------------------------------------------------------------

# all.f32: every utterance end to end, 16 kHz. ends: id, end sample (exclusive), first sample, number of samples. ref: id,
# phonemes. alone: id, phonemes recognised in the file alone.
made_with "$work/alone" "$(realpath "$corpus")" "$set" "$("$linnet" info | sed -n 's/^fingerprint: *//p')" "$(cksum < "$lexicon")"
if ! [ -f "$work/alone" ]; then
    rm -f "$work/all.f32"
    while read -r id path; do
        "$linnet" listen -q --from "$corpus/$path" --no-paced --save "$work/one.wav" > /dev/null
        begin=$(($(grep -abom1 data "$work/one.wav" | head -n 1 | cut -d: -f1) + 8))
        tail -c +$((begin + 1)) "$work/one.wav" >> "$work/all.f32"
        echo "$id $(($(stat -c %s "$work/all.f32") / 4))"
    done < "$corpus/$set/wav.scp" | awk '{ print $1, $2, before + 0, $2 - before; before = $2 }' > "$work/ends"
    rm -f "$work/one.wav"
    # A whole number of network steps, so that every round is cut into the same windows.
    number() { "$linnet" info --json | sed "s/.*\"$1\": \([0-9]*\).*/\1/"; }
    step=$((16 * $(number stack) * $(number hop_ms)))
    odd=$(($(stat -c %s "$work/all.f32") / 4 % step))
    [ $odd = 0 ] || head -c $((4 * (step - odd))) /dev/zero >> "$work/all.f32"
    "$linnet" phonemize --ids first --trn --lexicon "$lexicon" --oov "$work/oov" "$corpus/$set/text" |
        sed 's/^\(.*\) *(\(.*\))$/\2 \1/' > "$work/ref"
    "$linnet" transcribe -q --data "$corpus/$set" --audio-root "$corpus" -f text -o "$work/alone.tmp"
    mv "$work/alone.tmp" "$work/alone"
fi
samples=$(($(stat -c %s "$work/all.f32") / 4))

# phones: a CTM or JSON lines of linnet listen, as lines: second, phoneme
phones() {
    case $1 in
    *.ctm) awk '!/^;;/ { print $3, $5 }' "$1" ;;
    *) { grep '"type":"final"' "$1" || true; } | { grep -o '"phone":"[A-Z]*","start":[0-9.]*' || true; } | sed 's/"phone":"\(.*\)","start":\(.*\)/\2 \1/' ;;
    esac
}

# per REF HYP: TRN with the same names; lines: name, errors, tokens, rate in per cent
per() {
    "$linnet" score --json --utterances "$1" "$2" | grep -o '{"id":"[^"]*"[^}]*}' |
        awk -F '[:,{}]' '{ for (i = 2; i < NF; i += 2) { gsub(/"/, "", $i); of[$i] = $(i + 1) } id = of["id"]; gsub(/"/, "", id)
            e = of["substitutions"] + of["deletions"] + of["insertions"] }
            id ~ /-/ && of["tokens"] { printf "%s %d %d %.2f\n", id, e, of["tokens"], 100 * e / of["tokens"] }'
}

# ---- drift -----------------------------------------------------------------------------------------------------------------------

# Lines of "ends" in another order: computes their end samples in that order.
layout() { awk '{ n += $4; print $1, n, $3, $4 }'; }

# drift ENDS WHAT: the sound in the order of ENDS
drift() {
    ends=$1 all=$(tail -n 1 "$1" | cut -d' ' -f2)
    echo "== phoneme error rate against elapsed time: $set twice, $2, $((2 * all / 16000)) s as one stream"
    while read -r _ _ from n; do
        dd if="$work/all.f32" bs=64K iflag=skip_bytes,count_bytes skip=$((4 * from)) count=$((4 * n)) status=none
    done < "$ends" > "$work/once.f32"
    cat "$work/once.f32" "$work/once.f32" > "$work/twice.f32"
    "${transcribe[@]}" < "$work/twice.f32" > "$work/never.ctm"
    "${listen[@]}" --reset endpoint < "$work/twice.f32" > "$work/endpoint.jsonl"
    "${listen[@]}" --reset never < "$work/twice.f32" > "$work/marked.jsonl"
    # Windows of ten minutes, each ending with an utterance: name, second.
    awk -v all="$all" '{ id[NR] = $1; end[NR] = $2 }
        END { for (p = 0; p < 2; p++) for (i = 1; i <= NR; i++) { t = (end[i] + p * all) / 16000; w = int(t / 600)
            if (w != last) { print "w" last + 100, before; last = w } before = t } print "w" last + 100, before }' \
        "$ends" > "$work/windows"
    # Utterances by window, in the reference and recognised alone.
    for what in ref alone; do
        awk -v all="$all" -v text="$work/$what" 'BEGIN { while ((getline line < text) > 0) { k = index(line " ", " ")
                said[substr(line, 1, k - 1)] = substr(line, k + 1) } }
            { id[NR] = $1; end[NR] = $2 }
            END { for (p = 0; p < 2; p++) for (i = 1; i <= NR; i++) { t = (end[i] + p * all) / 16000; w = int(t / 600)
                    out[w] = out[w] " " said[id[i]] } for (w = 0; w in out; w++) print out[w] " (w-" w + 100 ")" }' "$ends" |
            sed 's/^ *//' > "$work/$what.trn"
    done
    for what in never.ctm endpoint.jsonl marked.jsonl; do
        phones "$work/$what" | awk -v windows="$work/windows" 'BEGIN { while ((getline line < windows) > 0) { split(line, f, " ")
                end[n++] = f[2] } }
            { w += 0; while (w < n - 1 && $1 >= end[w]) w++; out[w] = out[w] " " $2 }
            END { for (i = 0; i < n; i++) print out[i] " (w-" i + 100 ")" }' | sed 's/^ *//' > "$work/${what%.*}.trn"
    done
    for what in alone endpoint never; do per "$work/ref.trn" "$work/$what.trn" | sort > "$work/$what.per"; done
    echo "minutes  phonemes  files alone %  reset at endpoints %  never reset %"
    paste "$work/alone.per" "$work/endpoint.per" "$work/never.per" |
        awk '{ w = substr($1, 3) - 100; printf "%3d-%-3d  %8d  %13.2f  %20.2f  %13.2f\n", 10 * w, 10 * w + 10, $3, $4, $8, $12
               e += $2; f += $6; g += $10; n += $3 }
            END { printf "%-7s  %8d  %13.2f  %20.2f  %13.2f\n", "all", n, 100 * e / n, 100 * f / n, 100 * g / n }'
    same=differ
    cmp -s <(phones "$work/never.ctm" | cut -d' ' -f2) <(phones "$work/marked.jsonl" | cut -d' ' -f2) && same="are equal"
    echo "utterances found: $(grep -c '"type":"final"' "$work/endpoint.jsonl") of $((2 * $(wc -l < "$ends")))," \
        "at endpoints without a reset $(grep -c '"type":"final"' "$work/marked.jsonl"); the latter's phonemes and those of" \
        "linnet transcribe $same"
}

# ---- a day -----------------------------------------------------------------------------------------------------------------------

# day NAME COMMAND...: the sound on its standard input, round after round
day() {
    name=$1
    shift
    rounds=$(awk -v h="$hours" -v n="$samples" 'BEGIN { r = h * 57600000 / n; print int(r) + (r > int(r)) }')
    rm -f "$work/pipe"
    mkfifo "$work/pipe"
    "$@" < "$work/pipe" > >(grep -v '"type":"partial"' > "$work/day.$name") &
    pid=$!
    exec 3> "$work/pipe"
    hertz=$(getconf CLK_TCK)
    : > "$work/day.$name.tsv"
    used=0
    begun=$(date +%s)
    for round in $(seq "$rounds"); do
        cat "$work/all.f32" >&3
        # The process lags by the content of the pipe, 64 KB, and by its current block.
        now=$(sed 's/.*) //' "/proc/$pid/stat" | awk '{ print $12 + $13 }')
        rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")
        echo "$round $rss $(((now - used) * 1000000 / hertz)) $samples" >> "$work/day.$name.tsv"
        used=$now
    done
    exec 3>&-
    wait "$pid"
    sleep 1 # the filter ends too
    rm -f "$work/pipe"
    all=$((rounds * (samples / 16000)))
    took=$(($(date +%s) - begun))
    echo "== $name: $rounds rounds of $((samples / 16000)) s, $(awk "BEGIN { printf \"%.3g\", $all / 3600 }") h of sound through one stream in $took s"
    # Rounds by time, each against the reference, and against the result of the second round.
    phones "$work/day.$name" | awk -v round="$samples" -v n="$rounds" '
        { r = int($1 * 16000 / round); if (r >= n) r = n - 1; out[r] = out[r] " " $2 }
        END { for (r = 0; r < n; r++) print out[r] " (r-" r + 1000 ")" }' | sed 's/^ *//' > "$work/day.trn"
    said=$(cut -s -d' ' -f2- "$work/ref" | tr '\n' ' ')
    heard=$(sed -n '2s/ (.*//p' "$work/day.trn")
    awk -v n="$rounds" -v said="$said" 'BEGIN { for (r = 0; r < n; r++) print said " (r-" r + 1000 ")" }' > "$work/day.ref.trn"
    awk -v n="$rounds" -v said="$heard" 'BEGIN { for (r = 0; r < n; r++) print said " (r-" r + 1000 ")" }' > "$work/day.second.trn"
    per "$work/day.ref.trn" "$work/day.trn" | sort > "$work/day.per"
    per "$work/day.second.trn" "$work/day.trn" | sort > "$work/day.changed"
    awk '{ printf "%d %d\n", substr($NF, 4) - 999, NF - 1 }' "$work/day.trn" > "$work/day.n"
    echo "round  from h  resident KB  us of processor a frame  phonemes  PER %  unlike the second round %"
    paste "$work/day.$name.tsv" "$work/day.n" "$work/day.per" "$work/day.changed" |
        awk '{ printf "%5d  %6.2f  %11d  %23.2f  %8d  %5.2f  %25.2f\n",
               $1, ($1 - 1) * $4 / 57600000, $2, $3 / ($4 / 160), $6, $10, $14 }'
}

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "$cpu, $(nproc) cores, $(date +%Y-%m-%d), load before: $(cut -d' ' -f1 /proc/loadavg)"
"$linnet" info | sed -n 's/^name: *//p; s/^network: *//p; s/^fingerprint: */fingerprint /p' | paste -sd' '
case $part in all | drift)
    drift "$work/ends" "speaker after speaker"
    shuf --random-source=<(yes) "$work/ends" | layout > "$work/shuffled"
    drift "$work/shuffled" "shuffled" ;;
esac
case $part in all | day)
    day never.ctm "${transcribe[@]}"
    day endpoint.jsonl "${listen[@]}" --reset endpoint ;;
esac
