#!/usr/bin/env bash
# Measures the installed models and writes every table of the documents that can be measured again.
#
#   recipes/open/results.sh --corpus DIR [--publish] [--stages "errors live"] [--timed | --untimed] [--test] [--quick]
#                           [--work exp/results] [--lexicon FILE] [--sounds FOLDER] [--hours 2] [--threads N] [--linnet PROGRAM]
#
# Stages: errors (error rates)   confidence   int8 (eight bits)   live (listen and its second pass)   silence (nobody speaks)
#         robust (noise, rooms, codecs)   long (long streams)   times (against known onsets)   latency
#         align (texts that fit or do not, goodness)   adapt (names, a voice)   sizes (installation, wheel)
#         and, by --timed, those that need a machine without other work: search (wider beams)   speed   streams   server
# --untimed: all but the timed ones. --stages: only these.
# Each stage writes tables to WORK/KEY/tables; KEY stands for the fingerprints of the models and of their language models. A stage
# whose tables are there is not run again, and a stage that was interrupted goes on: remove WORK/KEY/STAGE.done to repeat it.
# --publish writes the tables into README.md, RESULTS.md and docs/*.md, each between two marks that name it,
#     <!-- measured: TABLE; default aeea443fa6057942, lm 38261902; 2026-11-28 -->
#     <!-- end -->
# tests/app/test_numbers.sh compares the marks with the installed models.
# A model is scored on test_native once, by --test: test-scores.tsv keeps the scores by fingerprint.
# DIR: see run.sh. --sounds: WAV files without speech, such as those that quiet.sh holds out. Run from the root of the source tree
# after make. Needs python3, flite, ffmpeg and time; a stage whose programs are missing is named and left out. Two hours on two
# cores without other work.
here=$(dirname "$0")
. "$here/../common.sh"

still="search speed streams server"
any="errors confidence int8 live silence robust long times latency align adapt sizes"
corpus= work=exp/results stages= publish= test= timed= untimed= sounds= hours=2
lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict
flags=" test publish quick timed untimed " values=" corpus work stages lexicon sounds hours threads device linnet "
scores=$here/test-scores.tsv
options "$@"
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
[ -f "$lexicon" ] || die "$lexicon does not exist; apt-get install pocketsphinx-en-us, or give --lexicon FILE"
[ -z "$quick" ] || [ -z "$publish" ] || die "--quick is a small form that tests this script; its tables are not published"
[ -n "$stages" ] || stages="$([ -n "$timed" ] || echo "$any") $([ -n "$untimed" ] || echo "$still")"
for s in $stages; do [[ " $any $still " == *" $s "* ]] || die "there is no stage '$s'; --help lists them"; done
unset LINNET_MODEL LINNET_LEXICON LINNET_LM
export LC_ALL=C
size() { [ -z "$quick" ] && echo "$1" || echo "$2"; } # size FULL QUICK
number() { "$linnet" info --json "$1" | sed "s/.*\"$2\": \"\{0,1\}\([^\",]*\).*/\1/"; } # number MODEL KEY
of() { awk "BEGIN { printf \"$1\", $2 }"; } # of FORMAT EXPRESSION
declare -A print # fingerprints
for model in default offline small; do print[$model]=$(number $model fingerprint); done
print[lm]=$(cat share/linnet/en/{phones.lm,words.lm,words.dict.gz,words.safetensors} | cksum | cut -d ' ' -f 1)
run=$work/$(echo "${print[default]} ${print[offline]} ${print[small]} ${print[lm]}" | cksum | cut -d ' ' -f 1)${quick:+-quick}
mkdir -p "$run/tables"

# emit TABLE "MODEL ..." [timed]: the table on standard input, measured with these models (lm: the language models); it is among the
# tables when its stage is complete
emit() {
  local model mark=
  cat > "$run/new/$1.md"
  for model in $2; do mark="$mark${mark:+, }$model ${print[$model]}"; done
  [ -z "${3:-}" ] || mark="$mark; $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
  echo "<!-- measured: $1; ${mark:-no model}; $(date -u +%F) -->" > "$run/new/$1.mark"
}

# ---- error rates ---------------------------------------------------------------------------------------------------------------

# Every search that is scored: a system, a name, the options.
searches="default greedy --model default
default beam --model default --beam 16
default phones --model default --lm phones.lm
default words --model default --words
default rescored --model default --words --rescore words
offline greedy --model offline
offline beam --model offline --beam 16
offline phones --model offline --lm phones.lm
offline words --model offline --words
offline rescored --model offline --words --rescore words
both greedy --model offline --combine default
both phones --model offline --combine default --lm phones.lm
both words --model offline --combine default --words
both rescored --model offline --combine default --words --rescore words
small greedy --model small
small phones --model small --lm phones.lm
small words --model small --words
small rescored --model small --words --rescore words"

decode() { # decode SET SYSTEM NAME OPTIONS...: RUN/errors/SYSTEM.SET.NAME.jsonl
  local file=$run/errors/$2.$1.$3.jsonl
  mkdir -p "$run/errors"
  [ ! -f "$file" ] || return 0
  "$linnet" transcribe -q --data "$corpus/$1" --audio-root "$corpus" --jobs "$threads" --device "$device" \
    -f json -o "$file.part" "${@:4}" < /dev/null
  mv "$file.part" "$file"
}
# score SET HYP [HYP2]: the rate in per cent, its interval over utterances, the number of utterances; of two, the interval of the
# difference
score() {
  local ref=(--unit words --format kaldi "$corpus/$1/text")
  case $2 in
    *.words.jsonl | *.rescored.jsonl | *.words-*.jsonl) ;;
    *) ref=(--format trn "$run/$1.trn")
       [ -f "$run/$1.trn" ] || "$linnet" phonemize -q --ids first --trn --lexicon "$lexicon" "$corpus/$1/text" > "$run/$1.trn" ;;
  esac
  "$linnet" score "${ref[@]}" "$2" ${3:+--against "$3"} | tr -d ',[]%:' | awk '
    /^95 +interval/ { low = $3; high = $4; n = $6 } /^difference/ { low = $6; high = $7 } END { print $2, low, high, n }'
}
key_of() { # key_of SYSTEM: its name in test-scores.tsv
  case $1 in
    both) echo "${print[offline]}-${print[lm]}+${print[default]}" ;;
    *) echo "${print[$1]}-${print[lm]}" ;;
  esac
}
# cells SYSTEM NAME [SET ...]: two cells for each set, the rate and its interval
cells() {
  awk -F'\t' -v by="$1" -v name="$2" -v sets="${*:3}" '
    $2 == by && $3 == name { cell[$1] = sprintf("%.2f | %.2f to %.2f", $4, $5, $6) }
    END {
      n = split(sets, set, " ")
      for (i = 1; i <= n; i++) printf " %s |", set[i] in cell ? cell[set[i]] : "- | -"
    }' "$run/scores.tsv"
}
rates() { # rates: of lines "SYSTEM NAME TEXT", a table with every set
  local system name text
  columns "| $1 | dev_native: $2 % | 95 % interval | dev_nonnative: $2 % | 95 % interval | test_native: $2 % | 95 % interval |"
  while read -r system name text; do echo "| $text |$(cells "$system" "$name" dev_native dev_nonnative test_native)"; done
}
measure_errors() {
  local set system name options
  : > "$run/scores.new"
  for set in dev_native dev_nonnative; do
    while read -r system name options; do
      decode $set "$system" "$name" $options
      echo "$set $system $name $(score $set "$run/errors/$system.$set.$name.jsonl")" | tr ' ' '\t' >> "$run/scores.new"
    done <<< "$searches"
  done
  while read -r system name options; do
    key=$(key_of "$system")
    if [ -n "$test" ] && [ "$name" != beam ] && ! grep -qF "$key	test_native	$name	" "$scores"; then
      decode test_native "$system" "$name" $options
      echo "$key test_native $name $(score test_native "$run/errors/$system.test_native.$name.jsonl")" | tr ' ' '\t' >> "$scores"
    fi
    awk -F'\t' -v OFS='\t' -v key="$key" -v by="$system" -v name="$name" '
      $1 == key && $3 == name { print $2, by, name, $4, $5, $6, $7 }' "$scores" >> "$run/scores.new"
  done <<< "$searches"
  mv "$run/scores.new" "$run/scores.tsv"
  rates "\`linnet transcribe --words\` with" WER << END | emit words "default offline small lm"
small words \`--model small\`
small rescored \`--model small --rescore words\`
default words no other option
default rescored \`--rescore words\`
offline words \`--offline\`
offline rescored \`--offline --rescore words\`
both words \`--offline --combine default\`
both rescored \`--offline --combine default --rescore words\`
END
  rates "\`linnet transcribe\` with" PER << END | emit phones "default offline small lm"
small greedy \`--model small\`
small phones \`--model small --lm phones.lm\`
default greedy no other option
default beam \`--beam 16\`
default phones \`--lm phones.lm\`
offline greedy \`--offline\`
offline beam \`--offline --beam 16\`
offline phones \`--offline --lm phones.lm\`
both greedy \`--offline --combine default\`
both phones \`--offline --combine default --lm phones.lm\`
END
  {
    columns "| model | parameters, millions | file, MB | state of a stream, bytes | dev_native: WER % | test_native: WER % |"
    for model in default offline small; do
      echo "| \`$model\` | $(of %.1f "$(number $model parameters) / 1e6") | $(of %.1f "$(number $model file_bytes) / 1e6") |" \
        "$([ "$(number $model causal)" = true ] && number $model state_bytes || echo -) |" \
        "$(cells $model words dev_native | cut -d '|' -f 1) | $(cells $model words test_native | cut -d '|' -f 1) |"
    done | tr -s ' '
  } | emit models "default offline small lm"
  { # one comparison on a row: without and with the network, and the difference
    columns "| set, model | without, WER % | \`--rescore words\`, WER % | difference | 95 % interval |"
    for set in dev_native dev_nonnative; do
      for model in default offline; do
        difference $set "$model" words rescored
      done
    done
  } | emit rescored "default offline lm"
}
difference() { # difference SET MODEL NAME NAME2: a row
  local a b low high rest
  read -r a rest <<< "$(score "$1" "$run/errors/$2.$1.$3.jsonl")"
  read -r b low high rest <<< "$(score "$1" "$run/errors/$2.$1.$4.jsonl" "$run/errors/$2.$1.$3.jsonl")"
  echo "| $1, \`$2\` | $a | $b | $(of %.2f "$b - $a") | $low to $high |"
}
measure_confidence() {
  for set in dev_native dev_nonnative; do decode $set default words --model default --words; done
  python3 bench/confidence.py --table "$corpus/dev_native/text" "$run/errors/default.dev_native.words.jsonl" \
    "$corpus/dev_nonnative/text" "$run/errors/default.dev_nonnative.words.jsonl" | emit confidence "default lm"
}
measure_int8() {
  local set model unit
  {
    columns "| set, model | fp32 | eight bits | difference | 95 % interval |"
    for set in dev_native dev_nonnative; do
      for model in default offline; do
        decode $set $model words --model $model --words
        decode $set $model greedy --model $model
        decode $set $model words-fp32 --model $model --words --precision fp32
        decode $set $model greedy-fp32 --model $model --precision fp32
        difference $set $model greedy-fp32 greedy | sed 's/` |/`, PER % |/'
        difference $set $model words-fp32 words | sed 's/` |/`, WER % |/'
      done
    done
  } | emit int8 "default offline lm"
}

# ---- live text, silence, conditions --------------------------------------------------------------------------------------------

measure_live() {
  for set in dev_native dev_nonnative; do
    bench/second_pass.sh --corpus "$corpus" --set $set --every "$(size 1 20)" --work "$run/live/$set" --linnet "$linnet" > "$run/live.$set"
  done
  {
    columns "| \`linnet listen --words\` with | dev_native: WER % | 95 % interval | dev_nonnative: WER % | 95 % interval |"
    paste -d '|' "$run"/live.dev_native "$run"/live.dev_nonnative |
      awk -F' *[|] *' '{ printf "| %s | %s | %s | %s | %s |\n", $1, $2, $3, $5, $6 }'
  } | emit live "default offline lm"
}
measure_silence() {
  local rows=$run/silence.txt silence=(bench/silence.sh --work "$run/silence" --linnet "$linnet")
  "${silence[@]}" --seconds "$(size 300 5)" --kinds "$(size "" "white:-40 keys:-40")" > "$rows"
  [ -z "$sounds" ] || "${silence[@]}" --sounds "$sounds" | sed '1,/^a minute/d' >> "$rows"
  # Sounds without any result, at every level, share a row.
  sed '1,/^a minute/d' "$rows" | awk '
    BEGIN {
      print "| a minute of | phonemes | words | live: phonemes | live: words | live: words of sure utterances |"
      print "|---|---|---|---|---|---|"
    }
    { what = $2 == "-" ? $1 : $1 " at " $2 " dB"; sum = $4 + $5 + $6 + $7 + $8
      if (sum) row[++n] = sprintf("| %s | %s | %s | %s | %s | %s |", what, $4, $5, $6, $7, $8)
      else { if (!($1 in level)) name[++m] = $1; level[$1] = level[$1] (level[$1] == "" ? "" : ", ") $2 } }
    END {
      for (i = 1; i <= m; i++) {
        at = level[name[i]]
        print "| " name[i] (at == "-" || at == "0" ? "" : " at " at " dB") " | 0 | 0 | 0 | 0 | 0 |"
      }
      for (i = 1; i <= n; i++) print row[i]
    }' | emit silence "default lm"
  for set in dev_native dev_nonnative; do decode $set default words --model default --words; done
  {
    columns "| of the words recognised in | those of utterances with a mean confidence below 0.5, % |"
    for set in dev_native dev_nonnative; do
      awk -f bench/sure.awk "$run/errors/default.$set.words.jsonl" |
        awk -v set=$set '{ printf "| %s | %.1f |\n", set, $2 ? 100 * ($2 - $3) / $2 : 0 }'
    done
  } | emit unsure "default lm"
}
measure_robust() {
  local model
  for model in default offline; do
    bench/robust.sh --data "$corpus/dev_native" --audio-root "$corpus" --every "$(size 4 2)" --model $model --work "$run/robust" \
      --linnet "$linnet" --output "$run/robust.$model" ${quick:+--conditions "clean phone"}
  done
  paste -d '|' "$run/robust.default" "$run/robust.offline" | awk -F' *[|] *' '
    BEGIN {
      text["clean"] = "as recorded"; text["level"] = "N dB louder"; text["noise"] = "pink noise, N dB below the speech"
      text["babble"] = "six voices, N dB below the speech"; text["room"] = "room, RT60 N s"; text["mp3"] = "MP3 at N kbit/s"
      text["phone"] = "telephone (300 to 3,400 Hz, mu-law)"; text["opus"] = "Opus at N kbit/s"; text["tempo"] = "N times as fast"
      print "| sound | default: WER % | 95 % interval | default: PER % | offline: WER % | 95 % interval | offline: PER % |"
      print "|---|---|---|---|---|---|---|"
    }
    {
      split($2, name, ":")
      what = name[1] in text ? text[name[1]] : $2
      if ($2 ~ /^level:-/) { what = "N dB quieter"; sub(/-/, "", name[2]) }
      sub(/N/, name[2], what)
      printf "| %s | %s | %s | %s | %s | %s | %s |\n", what, $3, $4, $5, $10, $11, $12
    }' | emit robust "default offline lm"
}

# ---- long streams, times, latency ----------------------------------------------------------------------------------------------

measure_long() {
  local long=(bench/long.sh --corpus "$corpus" --work "$run/long" --lexicon "$lexicon" --linnet "$linnet")
  keep "$run/long.drift" "${long[@]}" --part drift
  keep "$run/long.day" "${long[@]}" --part day --hours "$hours"
  awk '/^all / { n++; for (i = 3; i <= 5; i++) rate[n, i] = $i }
    END {
      print "| dev_native twice | speaker after speaker: PER % | shuffled: PER % |"
      print "|---|---|---|"
      split("single files|one stream, reset at endpoints|one stream, never reset", what, "|")
      for (i = 3; i <= 5; i++) printf "| %s | %s | %s |\n", what[i - 2], rate[1, i], rate[2, i]
    }' "$run/long.drift" | emit long default
  awk '/^== / { name = $2 ~ /^never/ ? "never reset" : "reset at endpoints" }
    $1 ~ /^[0-9]+$/ && NF == 7 { # a round
      if (!(name in n)) order[++m] = name
      k = ++n[name]
      memory[name, k] = $3; rate[name, k] = $6
    }
    END {
      print "| one stream | KB resident, first half hour | KB resident, last | PER %, first half hour | PER %, last |"
      print "|---|---|---|---|---|"
      for (i = 1; i <= m; i++) {
        w = order[i]
        printf "| %s | %d | %d | %s | %s |\n", w, memory[w, 1], memory[w, n[w]], rate[w, 1], rate[w, n[w]]
      }
    }' "$run/long.day" | emit day default
}
# keep FILE COMMAND...: FILE is what the command writes, unless it is there
keep() {
  [ ! -s "$1" ] || return 0
  "${@:2}" > "$1.part"
  mv "$1.part" "$1"
}
boundaries() { # boundaries NAME OPTIONS...: RUN/times.NAME
  keep "$run/times.$1" python3 bench/boundaries.py "$linnet" "$corpus/dev_native" --texts "$(size 60 2)" "${@:2}"
}
cell() { # cell FILE PART ROW COLUMN: of the tables of boundaries.py; PART is how the line before the table begins
  awk -F' *[|] *' -v part="$2" -v row="$3" -v column="$4" '
    /^[a-z]/ { on = index($0, part) == 1 }
    on && $2 == row { print $column; exit }' "$run/times.$1"
}
measure_times() {
  local row snr k path="align --times path" sound="align --times sound"
  boundaries clean --transcribe
  for snr in 20 10; do boundaries $snr --snr $snr; done
  {
    columns "| ms | n | mean, \`path\` | mean, \`sound\` | median | 90th percentile | within 20 ms | bias |"
    for row in "phone starts" "phone ends" "word starts" "word ends" "phone durations" "phones of "{kal16,awb,rms,slt}; do
      echo -n "| $row | $(cell clean "$sound" "$row" 3) | $(cell clean "$path" "$row" 4) |"
      for k in 4 5 6 7 8; do echo -n " $(cell clean "$sound" "$row" $k) |"; done
      echo
    done
  } | emit boundaries default
  {
    columns "| noise | starts of phones, ms: \`--times path\` | \`--times sound\` |"
    for snr in clean 20 10; do
      [ $snr = clean ] && row=none || row="$snr dB below the speech"
      echo "| $row | $(cell $snr "$path" "phone starts" 4) | $(cell $snr "$sound" "phone starts" 4) |"
    done
  } | emit boundaries-noise default
  {
    columns "| mean error, ms | starts of phonemes | starts of words |"
    echo "| \`linnet align\` | $(cell clean "$sound" "phone starts" 4) | $(cell clean "$sound" "word starts" 4) |"
    row=$(cell clean "transcribe --words" "word starts" 4)
    echo "| \`linnet transcribe\` | $(cell clean "transcribe," "phone starts" 4) | $row |"
  } | emit times "default lm"
}
measure_latency() {
  bench/delay.sh --text "$corpus/dev_native/text" --sentences "$(size 100 3)" --work "$run/delay" --linnet "$linnet" \
    > "$run/delay.txt"
  awk '/^construction/ { by = $(NF - 4); for (i = 1; i < NF; i++) if ($i == "=") by = $(i + 1) }
    /^all/ {
      print "| from the end of a phoneme, ms of sound | median | 95th percentile | 99th percentile |"
      print "|---|---|---|---|"
      printf "| until it can be settled, by construction | %d | %d | %d |\n", by, by, by
      printf "| until it is shown | %s | %s | %s |\n", $7, $8, $9
      printf "| until it is settled | %s | %s | %s |\n", $10, $11, $12
    }' "$run/delay.txt" | emit latency default
}
measure_align() {
  local set kind
  for set in dev_native dev_nonnative; do
    kind=(fit goodness)
    [ $set = dev_nonnative ] || kind+=(part)
    keep "$run/align.$set" python3 bench/align.py "$linnet" "$lexicon" "$corpus/$set" "${kind[@]}"
  done
  table() { # table NAME HEADER: the rows of both sets
    columns "$2"
    sort -u "$run/align.dev_native" "$run/align.dev_nonnative" | sed -n "s/^$1: //p"
  }
  table goodness "| one phoneme of a text replaced | replaced | others | area under the curve | replaced below -3, % |$(
    ) others below -3, % | area by confidence instead |" | emit goodness default
  table fit "| text | utterances | share of the phonemes: least | median | largest | shares below 0.3 |$(
    ) warned: no match | refused: text too long |" | emit fit default
  table part "| text of three utterances in one sound | words | mean difference, ms | words over 100 ms |" | emit part default
}

# ---- adapting, sizes -----------------------------------------------------------------------------------------------------------

measure_adapt() {
  local part
  for part in names voice; do
    keep "$run/adapt.$part" bench/adapt.sh --corpus "$corpus" --work "$run/adapt" --threads "${threads/#0/2}" --part $part --linnet "$linnet"
    sed -n '/^|/p' "$run/adapt.$part" | emit adapt-$part "default lm"
  done
}
measure_sizes() {
  local root=$run/root
  rm -rf "$root"
  make -s install DESTDIR="$(realpath "$run")/root" PREFIX=/usr > "$run/install.log" 2>&1
  tools/package.sh wheel > "$run/wheel.log" 2>&1 || echo "there is no wheel; $run/wheel.log says why" >&2
  bytes() { find "$@" -type f -printf '%s\n' 2> /dev/null | awk '{ s += $1 } END { printf "%.1f", s / 1e6 }'; }
  {
    columns "| what | MB |"
    echo "| all that \`make install\` writes | $(bytes "$root") |"
    echo "| models and language models of English | $(bytes "$root"/usr/share/linnet/en) |"
    echo "| the program, \`linnet\` | $(bytes "$root"/usr/bin) |"
    echo "| the shared library, \`liblinnet.so.1\` | $(bytes "$root"/usr/lib* -name 'liblinnet.so.*') |"
    echo "| the Python wheel | $(bytes build/package -maxdepth 1 -name '*.whl') |"
  } | emit sizes ""
  rm -rf "$root"
}

# ---- what needs a machine without other work -----------------------------------------------------------------------------------

# timed RUNS COMMAND...: of so many runs the median of the seconds, of the processor's seconds, and of the memory in MB
timed() {
  local k runs
  runs=$(size "$1" 1)
  for ((k = 0; k < runs; k++)); do
    /usr/bin/time -o "$run/time" -f '%e %U %S %M' "${@:2}" > /dev/null 2> "$run/time.log" < /dev/null
    tail -n 1 "$run/time" | awk '{ print $1, $2 + $3, $4 / 1024 }'
  done > "$run/times"
  for k in 1 2 3; do cut -d ' ' -f $k "$run/times" | sort -n | sed -n "$(((runs + 1) / 2))p"; done | paste -s -d ' ' -
}
sound_s() { # sound_s SET: seconds of a set
  "$linnet" transcribe --data "$corpus/$1" --audio-root "$corpus" -f trn --jobs "$threads" 2>&1 > /dev/null |
    sed -n 's/.* files, \([0-9.]*\) s of sound.*/\1/p'
}
measure_search() {
  local model beam limit what options seconds wall cpu memory name
  seconds=$(sound_s dev_native)
  {
    columns "| search | dev_native: WER % | dev_nonnative: WER % | CPU-seconds for an hour of sound |"
    while read -r model beam limit what; do
      options=(--model "$model" --words --beam "$beam" --tune "beam-score=$limit") name=words-$beam
      for set in dev_native dev_nonnative; do decode $set "$model" "$name" "${options[@]}"; done
      read -r wall cpu memory <<< "$(transcribed 1 1 "${options[@]}")"
      echo "| $what | $(score dev_native "$run/errors/$model.dev_native.$name.jsonl" | cut -d ' ' -f 1) |" \
        "$(score dev_nonnative "$run/errors/$model.dev_nonnative.$name.jsonl" | cut -d ' ' -f 1) |" \
        "$(of %.1f "$cpu * 3600 / $seconds") |"
    done << END
default 256 12 \`--beam 256 --tune beam-score=12\`
default 512 13 \`--beam 512 --tune beam-score=13\`, the default
default 1024 16 \`--beam 1024 --tune beam-score=16\`
offline 512 13 \`--offline --beam 512 --tune beam-score=13\`
offline 1024 14 \`--offline --beam 1024 --tune beam-score=14\`, the default
offline 2048 18 \`--offline --beam 2048 --tune beam-score=18\`
END
  } | emit search "default offline lm" timed
}
transcribed() { # transcribed RUNS JOBS OPTIONS...: dev_native, timed
  timed "$1" "$linnet" transcribe -q --data "$corpus/dev_native" --audio-root "$corpus" -f trn --jobs "$2" "${@:3}"
}
measure_speed() {
  local options seconds wall cpu memory file
  seconds=$(sound_s dev_native)
  {
    columns "| \`linnet transcribe\`, median of three | times real time, all cores | CPU-seconds an hour of sound | memory, MB |"
    while read -r options; do
      read -r wall cpu memory <<< "$(transcribed 3 "$threads" $options)"
      echo "| \`$options\` | $(of %.0f "$seconds / $wall") | $(of %.1f "$cpu * 3600 / $seconds") | $(of %.0f "$memory") |"
    done << END
--model small
--model small --words
--model default
--model default --words
--model default --words --rescore words
--model default --words --precision fp32
--model offline
--model offline --words
--model offline --words --combine default
--model offline --words --combine default --rescore words
END
  } | emit speed "default offline small lm" timed
  file=$corpus/$(awk 'NR == 1 { print $2 }' "$corpus/dev_native/wav.scp")
  seconds=$("$linnet" transcribe -q -f json "$file" | sed 's/.*"seconds":\([0-9.]*\).*/\1/')
  {
    columns "| one file of $seconds s, the whole program | seconds | memory, MB |"
    for options in "" --words "--words --offline --combine default --rescore words"; do
      read -r wall cpu memory <<< "$(timed 5 "$linnet" transcribe -q $options "$file")"
      echo "| \`linnet transcribe${options:+ }$options\` | $wall | $(of %.0f "$memory") |"
    done
  } | emit one-file "default offline lm" timed
}
first() { ! command -v chrt > /dev/null || echo "chrt $1 1"; } # before others, so that neighbours disturb less
measure_streams() {
  local model
  {
    columns "| model | streams | lag p50, ms | p95, ms | p99, ms | cores |"
    for model in small default; do
      $(first -f) "$linnet" bench streams --model $model $(size "--streams 0 --seconds 8" "--streams 2 --seconds 1") \
        > "$run/streams.txt"
      awk -v model=$model '/holds/ { best = sprintf("| `%s` | %s | %s | %s | %s | %s |", model, $1, $2, $3, $4, $9) }
        END { print best }' "$run/streams.txt"
    done
  } | emit streams "default small" timed
}
measure_server() {
  local streams seconds options
  seconds=$(size 20 3)
  {
    columns "| \`linnet serve\` | streams | lag p50, ms | p95, ms | p99, ms | cores | memory, MB |"
    while read -r streams options; do
      streams=$(size "$streams" 2)
      IDLE=0 $(first -r) bench/serve.sh "$streams" "$seconds" $options > "$run/serve.txt" 2>&1
      awk -v streams="$streams" -v seconds="$seconds" -v options="$options" '
        /^second / { for (i = 1; i < NF; i++) if ($i == "p50/p95/p99") split($(i + 1), lag, "/") }
        /^memory/ { for (i = 1; i < NF; i++) if ($i ~ /^MB/ && $(i + 1) == "at") mb = $(i - 1) }
        /^processor/ { cpu = $3 }
        END {
          printf "| `%s` | %d | %.1f | %.1f | %.1f ", options, streams, 1000 * lag[1], 1000 * lag[2], 1000 * lag[3]
          printf "| %.2f | %s |\n", cpu / seconds, mb
        }' "$run/serve.txt"
    done << END
250 --model small --no-words
100 --model small
150 --model default --no-words
60 --model default
END
  } | emit server "default small lm" timed
}

# ---- all stages, and the pages -------------------------------------------------------------------------------------------------

needs() { # needs STAGE: the programs without which it is left out
  case $1 in
    confidence | align) echo python3 ;;
    robust) echo ffmpeg ;;
    times) echo python3 flite ;;
    latency | adapt) echo flite ;;
    search | speed) echo /usr/bin/time ;;
  esac
}
for s in $stages; do
  if [ -f "$run/$s.done" ]; then echo "== $s: done before"; continue; fi
  absent=
  for tool in $(needs "$s"); do command -v "$tool" > /dev/null || absent="$absent $tool"; done
  if [ -n "$absent" ]; then echo "== $s: left out, these are not installed:$absent"; continue; fi
  echo "== $s"
  rm -rf "$run/new"
  mkdir "$run/new"
  "measure_$s"
  mv "$run"/new/* "$run/tables"
  touch "$run/$s.done"
done

# published PAGE: with the tables that were measured; a mark may be indented, as in a list
published() {
  awk -v tables="$run/tables" '
    /<!-- measured: / && match($0, /measured: [a-z0-9-]+/) {
      name = substr($0, RSTART + 10, RLENGTH - 10); indent = $0; sub(/<.*/, "", indent)
      if ((getline mark < (tables "/" name ".mark")) > 0) {
        print indent mark
        while ((getline line < (tables "/" name ".md")) > 0) print indent line
        close(tables "/" name ".md"); close(tables "/" name ".mark")
        skip = 1
        next
      }
    }
    /<!-- end -->/ { skip = 0 }
    !skip' "$1"
}
if [ -n "$publish" ]; then
  for page in README.md RESULTS.md docs/*.md; do
    published "$page" > "$run/page"
    cmp -s "$run/page" "$page" || { cat "$run/page" > "$page"; echo "$page: written"; }
  done
fi
