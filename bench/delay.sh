#!/usr/bin/env bash
# delay.sh - the time from the end of a sound until its phoneme is settled: the part due to the model's structure and the part due
# to CTC.
#
#   bench/delay.sh --text FILE [--sentences 100] [--voices "slt rms awb"] [--work exp/delay] [--model FILE]
#                  [--linnet build/release/linnet]
#
# FILE has one sentence per line, after an id (Kaldi's text). flite speaks them and reports when each of its phonemes ends; this
# is exact within a frame of 5 ms for its voices slt, rms and awb (not for the others). linnet's phonemes are aligned with flite's
# by the smallest number of errors. Where both are the same phoneme, two times are measured:
#
#   shown    from the end of the sound until the phoneme first appears as provisional: the first step with it is computed
#   settled  until it is settled: the first step with another phoneme is computed
#
# Both are measured in seconds of sound that must have arrived; computing time is added to them. A step needs its own frames, the
# look-ahead, and the end of the last window: this part is the model's structure. The rest is CTC: where the network puts a
# phoneme.
. "$(dirname "$0")/../recipes/common.sh"
text= sentences=100 voices="slt rms awb" work=exp/delay model=share/linnet/en/default.safetensors
flags=" " values=" text sentences voices work model linnet "
options "$@"
[ -n "$text" ] || die "which sentences? give --text FILE"
export LINNET_MODEL=$model

# The spoken phonemes: id, second at which it ends, phoneme.
: > "$work/truth"
: > "$work/list"
for voice in $voices; do
    n=0
    head -n "$sentences" "$text" | cut -s -d' ' -f2- | while read -r line; do
        n=$((n + 1)) id=$voice-$n
        said=$(flite -voice "$voice" -t "$(echo "$line" | tr '[:upper:]' '[:lower:]')" -psdur -o "$work/$id.wav")
        echo "$work/$id.wav" >> "$work/list"
        echo "$said" | tr ' ' '\n' | awk -F: -v id="$id" 'NF == 2 && $1 != "pau" { p = toupper($1); if (p == "AX") p = "AH"
            print id, $2, p }' >> "$work/truth"
    done
done
info=$("$linnet" info --json)
number() { echo "$info" | sed "s/.*\"$1\": \([0-9.]*\).*/\1/"; }
# at the times of the network's steps, without the emission delay
"$linnet" transcribe -q -f ctm --files-from "$work/list" | grep -v '^;;' |
    awk -v late="$(number emission_delay_ms)" '{ $3 = sprintf("%.3f", $3 + late / 1000) } 1' > "$work/heard.ctm"
calculate() { awk "BEGIN { print $1 }"; }
hop=$(number hop_ms)
step=$(calculate "$(number stack) * $hop")
ahead=$(calculate "$(number ahead) * $hop")
window=$(calculate "$(number window_ms) - $hop")
waits=$(calculate "$step + $ahead + $window")

# Checks that a phoneme is settled at this sample and not one sample before: the sound is cut there, and the settled part is
# written.
first=$(head -n 1 "$work/list")
tail -c +$(($(grep -abom1 data "$first" | cut -d: -f1) + 9)) "$first" > "$work/first.raw"
tried=0
for k in 5 10 15 20; do
    need=$(awk -v id="$(basename "$first" .wav)" -v k="$k" -v w="$waits" \
        '$1 == id && ++n == k { printf "%d", ($3 + $4 + w / 1000) * 16000 + 0.5 }' "$work/heard.ctm")
    [ -n "$need" ] || continue
    for cut in "$need" $((need - 1)); do
        head -c $((2 * cut)) "$work/first.raw" > "$work/cut.raw"
        got=$("$linnet" transcribe -q --raw --save-state "$work/state.bin" - < "$work/cut.raw" | wc -w)
        [ "$got" = $((cut == need ? k : k - 1)) ] || die "phoneme $k is not settled when it should be"
        tried=$((tried + 1))
    done
done

# Lines of recognised phonemes: voice, recognised start, recognised end, spoken end. And the number of spoken phonemes.
awk -v heard="$work/heard.ctm" '
    function align(id, n, m,    i, j, d, best, from) {
        for (i = 0; i <= n; i++) for (j = 0; j <= m; j++) {
            if (!i && !j) { cost[0, 0] = 0; continue }
            best = 1e9
            if (i && cost[i - 1, j] + 1 < best) { best = cost[i - 1, j] + 1; from = 1 }
            if (j && cost[i, j - 1] + 1 < best) { best = cost[i, j - 1] + 1; from = 2 }
            if (i && j) { # of equal costs, the nearer in time
                d = hs[j] - te[i]; if (d < 0) d = -d
                d = cost[i - 1, j - 1] + (tp[i] == hp[j] ? 0 : 1) + 1e-4 * d
                if (d < best) { best = d; from = 3 }
            }
            cost[i, j] = best; back[i, j] = from
        }
        i = n; j = m
        while (i || j) {
            if (back[i, j] == 1) i--
            else if (back[i, j] == 2) j--
            else { if (tp[i] == hp[j]) print substr(id, 1, index(id, "-") - 1), hs[j], he[j], te[i]; i--; j-- }
        }
    }
    function finish(   m, k, f) {
        m = split(lines[last], f, "\n") - 1
        for (k = 1; k <= m; k++) { split(f[k], g, " "); hs[k] = g[1]; he[k] = g[1] + g[2]; hp[k] = g[3] }
        if (last != "") align(last, n, m)
        n = 0
    }
    BEGIN { while ((getline line < heard) > 0) { split(line, g, " "); lines[g[1]] = lines[g[1]] g[3] " " g[4] " " g[5] "\n" } }
    $1 != last { finish(); last = $1 }
    { n++; te[n] = $2; tp[n] = $3 }
    END { finish() }' "$work/truth" > "$work/pairs"

model=$("$linnet" info | sed -n 's/^name: *//p; s/^fingerprint: *//p' | paste -sd' ')
echo "$model, $(flite --version | sed -n 's/.*version: *\([^ ]*\).*/\1/p'), $(date +%Y-%m-%d)"
echo "construction: step $step ms + look-ahead $ahead ms + window beyond its hop $window ms = $waits ms ($tried cuts agree)"
echo "voice      said  recognised   CTC: p50   p95   p99   shown: p50   p95   p99   settled: p50   p95   p99   ms"
row() { # NAME: pairs on standard input
    awk -v w="$waits" '{ print ($3 - $4) * 1000, ($2 - $4) * 1000 + w, ($3 - $4) * 1000 + w }' > "$work/ms"
    n=$(wc -l < "$work/ms")
    printf '%-6s %8d %11d' "$1" "$2" "$n"
    for column in 1 2 3; do
        for q in 50 95 99; do
            value=$(cut -d' ' -f$column "$work/ms" | sort -n | awk -v at=$(((n * q + 99) / 100)) 'NR == at { printf "%.0f", $1 }')
            case $column$q in 150) width=11 ;; 250) width=13 ;; 350) width=15 ;; *) width=6 ;; esac
            printf "%${width}s" "$value"
        done
    done
    echo
}
for voice in $voices; do grep "^$voice " "$work/pairs" | row "$voice" "$(grep -c "^$voice-" "$work/truth")"; done
row all "$(wc -l < "$work/truth")" < "$work/pairs"
