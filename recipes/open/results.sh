#!/usr/bin/env bash
# What a user is told about the installed model, measured: one page of tables.
#
#   recipes/open/results.sh --corpus DIR [--model FILE] [--work exp/results] [--test] [--publish] [--quick] [--hours 2] [--every 7]
#                           [--stage N] [--stop-stage N] [--lexicon FILE] [--sound PROGRAM] [--sounds FOLDER] [--threads N]
#                           [--device auto|cpu|cuda[:N]] [--linnet PROGRAM]
#
# Stages: 1 error rates of the dev sets; with --test of test_native too   2 the same sound in one piece and in odd pieces
#         3 an hour of shuffled speech as one stream   4 --hours as one stream   5 times against known onsets
#         6 pocketsphinx on one of --every utterances of dev_native   7 where nobody speaks; --sounds: also in the WAV files of
#         FOLDER, such as those that quiet.sh holds out   8 latency, size, speed   9 the page
# Each stage writes WORK/N.md; stage 9 joins those that are there to WORK/RESULTS.md, or RESULTS-offline.md for a bidirectional
# model, which has no stages 2, 3, 4 and 7. --publish copies the page to this folder and its first table to docs/models.md. A model is
# scored on the test set once: test-scores.tsv beside this script keeps the scores by the fingerprint of the model and the sum of
# its language models and dictionary, and the page takes them from there. DIR: see run.sh. What a stage needs and cannot find is
# named on the page. Run from the root of the source tree.
# Needs build/release/tests/app/sound (make build/release/tests/app/sound); for stages 5 and 8 flite and python3, for stage 6 pocketsphinx and sox. A quarter of an hour on two cores without other work.
here=$(dirname "$0")
. "$here/../common.sh"

corpus= model=share/linnet/en/default.safetensors work=exp/results test= publish= sounds= hours=2 every=7 stage=1 stop_stage=9
lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict sound=build/release/tests/app/sound
flags=" test publish quick " values=" corpus model work hours every lexicon stage stop-stage threads device linnet sound sounds "
scores=$here/test-scores.tsv card=docs/models.md
options "$@"
given=$model # on the page, if it is not the default
[ "$model" != share/linnet/en/default.safetensors ] || given=
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
[ -f "$lexicon" ] || die "$lexicon does not exist; apt-get install pocketsphinx-en-us, or give --lexicon FILE"
[ -f "$model" ] || die "$model does not exist; give --model FILE"
export LINNET_MODEL=$model LC_ALL=C
size() { [ -z "$quick" ] && echo "$1" || echo "$2"; } # size FULL QUICK
info=$("$linnet" info --json)
number() { sed "s/.*\"$1\": \"\{0,1\}\([^\",]*\).*/\1/" <<< "$info"; }
fingerprint=$(number fingerprint)
scored=$fingerprint-$({ cat share/linnet/en/{phones.lm,words.lm,words.dict.gz,words.safetensors} 2> /dev/null || :; } | cksum | cut -d ' ' -f 1) # with its language models
both=$scored+$("$linnet" info --json default | sed -n 's/.*"fingerprint": "\([^"]*\)".*/\1/p') # with the sound of the streaming model too
page=RESULTS.md kind=streaming
[ "$(number causal)" = true ] || page=RESULTS-offline.md kind=offline
[ "$(cat "$work/model" 2> /dev/null || echo "$fingerprint")" = "$fingerprint" ] || die "$work has results of another model; give another --work"
echo "$fingerprint" > "$work/model"
streams() { wanted "$1" && [ $kind = streaming ]; } # a stage that only a streaming model has
of() { awk "BEGIN { printf \"$1\", $2 }"; } # of FORMAT EXPRESSION
missing() { # missing N "what it would have been" PROGRAM...: says so on the page, if a program is missing
  local n=$1 title=$2 tool
  shift 2
  for tool; do
    command -v "$tool" > /dev/null && continue
    printf '## %s\n\nNot measured: %s is not installed here.\n\n' "$title" "$tool" > "$work/$n.md"
    return 0
  done
  return 1
}

# ---- 1 ---------------------------------------------------------------------------------------------------------------------------

recognised() { # recognised SET NAME OPTIONS...: WORK/SET.NAME.jsonl
  local set=$1 name=$2
  shift 2
  "$linnet" transcribe -q --data "$corpus/$set" --audio-root "$corpus" --jobs "$threads" --device "$device" -f json \
    -o "$work/$set.$name.jsonl" "$@"
}
reference() { # reference SET: WORK/SET.trn, phonemes of the first pronunciations
  [ -f "$work/$1.trn" ] || "$linnet" phonemize -q --ids first --trn --lexicon "$lexicon" "$corpus/$1/text" > "$work/$1.trn"
}
# score REF HYP: rate in per cent, the interval over utterances, the number of utterances
score() {
  local kind=(--ref-format kaldi)
  [[ $2 != *.jsonl ]] || kind+=(--unit words)
  [[ $1 != *.trn ]] || kind=(--ref-format trn)
  "$linnet" score "${kind[@]}" "$1" "$2" | tail -n 2 | tr -d ',[]%:' | awk '
    / % interval|^95 / { low = $3; high = $4; n = $6 } END { print $2, low, high, n }'
}
rows() { # rows SET OPTIONS...: lines of a table, tab separated: set, search, rate, value, low, high, utterances
  local set=$1 name ref value low high n
  shift
  reference "$set"
  recognised "$set" "greedy$*" "$@"
  recognised "$set" "phones$*" --lm phones.lm "$@"
  recognised "$set" "words$*" --words "$@"
  recognised "$set" "rescored$*" --words --rescore words "$@"
  for name in greedy phones words rescored; do
    ref=$work/$set.trn
    case $name in words | rescored) ref=$corpus/$set/text ;; esac
    read -r value low high n <<< "$(score "$ref" "$work/$set.$name$*.jsonl")"
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$set" "$name" "$value" "$low" "$high" "$n"
  done
}
# tested MODEL: its rows of the test set
tested() { awk -F'\t' -v OFS='\t' -v of="$1" '$1 == of { sub(/^[^\t]*\t/, ""); print }' "$scores"; }
table() { # table GREEDY: rows on standard input, as markdown
  awk -F'\t' -v greedy="$1" 'BEGIN {
      print "| set | utterances | sound | PER %, " greedy " | PER %, `--lm phones.lm` | WER %, `--words` | WER %, `--words --rescore words` |"
      print "|---|---|---|---|---|---|---|"
      band["dev_nonnative"] = "full band" }
    { if (!($1 in n)) order[++m] = $1; n[$1] = $6; cell[$1, $2] = $3 " (" $4 " to " $5 ")" }
    END { for (i = 1; i <= m; i++) { s = order[i]
      printf "| %s | %s | %s | %s | %s | %s | %s |\n", s, n[s], s in band ? band[s] : "below 5.5 kHz",
        cell[s, "greedy"], cell[s, "phones"], cell[s, "words"], cell[s, "rescored"] } }'
}

# unsure SET: the share of its words, in per cent, that are in utterances whose phonemes have a mean confidence below 0.5
unsure() { awk -f bench/sure.awk "$work/$1.words.jsonl" | awk '{ printf "%.1f", $2 ? 100 * ($2 - $3) / $2 : 0 }'; }

if wanted 1; then
  echo "== stage 1: error rates"
  { rows dev_native; rows dev_nonnative; } > "$work/scores.tsv"
  if [ -n "$test" ] && ! grep -q "^$scored	" "$scores"; then
    rows test_native | sed "s/^/$scored	/" >> "$scores"
  fi
  if [ $kind = offline ]; then
    { rows dev_native --combine default; rows dev_nonnative --combine default; } > "$work/both.tsv"
    if [ -n "$test" ] && ! grep -qF "$both	" "$scores"; then
      rows test_native --combine default | sed "s/^/$both	/" >> "$scores"
    fi
  fi
  {
    echo "## Error rates"
    echo
    tested "$scored" | cat "$work/scores.tsv" - | table greedy | tee "$work/card.md"
    echo
    if [ $kind = offline ]; then
      echo "With the sound of the streaming model too, \`--combine default\`:"
      echo
      tested "$both" | cat "$work/both.tsv" - | table "20 hypotheses"
      echo
    fi | tee -a "$work/card.md"
    grep -q "^$scored	" "$scores" || printf '%s\n\n' "\`test_native\` has not been scored with this model (\`--test\`)."
    echo "Held-out speakers; 95 % bootstrap intervals over utterances. \`dev_native\` and \`test_native\`: LibriSpeech's"
    echo "read novels, of which only what lies below 5.5 kHz is left; \`dev_nonnative\`: Mandarin speakers, half of them"
    echo "children, full band. Phonemes against the first pronunciation of each word, so an accent counts as an"
    echo "error. Model and weights were chosen on \`dev_native\`; \`test_native\` is scored once with each model."
    echo
  } > "$work/1.md"
fi

# ---- 2 ---------------------------------------------------------------------------------------------------------------------------

# raw PATH FILE: any sound as 16 kHz, 32-bit floats without a header, by the streaming model: listen takes no bidirectional one
raw() {
  "$linnet" listen --model share/linnet/en/default.safetensors -q --from "$1" --no-paced --save "$work/one.wav" > /dev/null < /dev/null
  tail -c +$(($(grep -abom1 data "$work/one.wav" | head -n 1 | cut -d: -f1) + 9)) "$work/one.wav" > "$2"
  rm -f "$work/one.wav"
}
ctm() { "$linnet" transcribe -q -f ctm --reset never "$@" | sed '/^;;/d; s/^[^ ]* //'; } # without the name of the sound
piece() { ctm --raw --encoding f32le - "$@"; }
# pieces FILE: its phonemes, in pieces of 1 to 29,999 samples, each in a process of its own that resumes where the last one ended
pieces() {
  local at=0 length=1 all state=()
  all=$(($(stat -c %s "$1") / 4))
  while [ $at -lt "$all" ]; do
    dd if="$1" bs=64K iflag=skip_bytes,count_bytes skip=$((4 * at)) count=$((4 * length)) status=none |
      piece "${state[@]}" --save-state "$work/state"
    state=(--load-state "$work/state") at=$((at + length)) length=$(((length * 7919 + 4001) % 29999 + 1)) count=$((count + 1))
  done
  ctm --load-state "$work/state"
}

if streams 2; then
  echo "== stage 2: in one piece and in odd pieces"
  same=0 files=0 count=0 phones=0
  while read -r id path; do
    raw "$corpus/$path" "$work/one.f32"
    piece < "$work/one.f32" > "$work/whole.ctm"
    pieces "$work/one.f32" > "$work/cut.ctm"
    files=$((files + 1)) phones=$((phones + $(wc -l < "$work/whole.ctm")))
    ! cmp -s "$work/whole.ctm" "$work/cut.ctm" || same=$((same + 1))
  done < <(awk -v n="$(size 60 2)" 'NR <= n' "$corpus/dev_native/wav.scp")
  rm -f "$work"/{one.f32,state,whole.ctm,cut.ctm}
  {
    echo "## Streaming equals batch"
    echo
    echo "The first $files utterances of \`dev_native\`, each once in one piece and once in pieces of 1 to 29,999 samples ($count in all),"
    echo "every piece by a new process that resumes the saved stream: $same of $files give the same output, that is the same"
    echo "$phones phonemes with the same times and confidences, to the byte."
    echo
  } > "$work/2.md"
fi

# ---- 3, 4 ------------------------------------------------------------------------------------------------------------------------

long() { bench/long.sh --corpus "$corpus" --work "$work/long" --model "$model" --lexicon "$lexicon" --linnet "$linnet" "$@"; }
block() { sed 's/^/    /; s/ *$//'; }

if streams 3; then
  echo "== stage 3: an hour as one stream"
  { long --part drift; long --part file | sed 1,2d; } > "$work/long.txt"
  {
    echo "## An hour as one stream"
    echo
    echo "    bench/long.sh --corpus DIR --part drift"
    echo "    bench/long.sh --corpus DIR --part file"
    echo
    sed 1,2d "$work/long.txt" | block
    echo
    echo "\`linnet\` never resets a model that forgets, and one that does not at pauses (\`--reset\`)."
    echo
  } > "$work/3.md"
fi

if streams 4; then
  echo "== stage 4: $hours hours as one stream"
  long --part day --hours "$hours" > "$work/day.txt"
  {
    echo "## Long streams: memory and time"
    echo
    echo "    bench/long.sh --corpus DIR --part day --hours $hours"
    echo
    sed 1,2d "$work/day.txt" | block
    echo
    echo "A day is \`--hours 24\`."
    echo
  } > "$work/4.md"
fi

# ---- 5 ---------------------------------------------------------------------------------------------------------------------------

if wanted 5 && ! missing 5 "Times" python3 flite; then
  echo "== stage 5: times against known onsets"
  {
    echo "## Times"
    echo
    echo "    bench/boundaries.py build/release/linnet DIR/dev_native --texts $(size 60 2) --times sound --transcribe"
    echo
    echo "Errors in ms against the onsets that flite reports, four of its voices at three tempi. \`transcribe\` puts a phoneme"
    echo "at the network's step that has it, which comes later than the sound by a nearly constant time; \`align\` looks for"
    echo "the boundaries in the sound. The last two rows of a table show what would be left if all times were earlier by a"
    echo "constant."
    python3 bench/boundaries.py "$linnet" "$corpus/dev_native" --texts "$(size 60 2)" --times sound --transcribe
    echo
  } > "$work/5.md"
fi

# ---- 6 ---------------------------------------------------------------------------------------------------------------------------

en=/usr/share/pocketsphinx/model/en-us
sphinx() { # sphinx NAME OPTIONS...: WORK/sphinx/NAME.trn, and prints its processor time in seconds
  local name=$1
  shift
  { TIMEFORMAT=%U; time pocketsphinx_batch -hmm "$en/en-us" -adcin yes -adchdr 44 -cepdir "$work/sphinx" -cepext .wav \
    -ctl "$work/sphinx/ids" -hyp "$work/sphinx/$name" "$@" > "$work/sphinx/$name.log" 2>&1; } 2>&1
  sed 's/ *(\([^ ]*\) [-0-9]*)$/ (\1)/; s/([0-9]*)//g; s/\(SIL\|+[A-Z]*+\)//g' "$work/sphinx/$name" > "$work/sphinx/$name.trn"
}
ours() { # ours NAME OPTIONS...: the same by linnet
  local name=$1
  shift
  { TIMEFORMAT=%U; time "$linnet" transcribe -q -j 1 --device "$device" -f trn -o "$work/sphinx/$name.trn" "$@" "$work"/sphinx/*.wav; } 2>&1
}

if wanted 6 && ! missing 6 "Beside pocketsphinx" pocketsphinx_batch sox; then
  echo "== stage 6: pocketsphinx"
  rm -rf "$work/sphinx"
  mkdir -p "$work/sphinx"
  reference dev_native
  awk -v every="$every" 'NR % every == 1 % every' "$corpus/dev_native/wav.scp" | head -n "$(size 1000 1)" > "$work/sphinx/scp"
  cut -d ' ' -f 1 "$work/sphinx/scp" > "$work/sphinx/ids"
  while read -r id path; do
    raw "$corpus/$path" "$work/one.f32"
    sox -t raw -r 16000 -c 1 -e floating-point -b 32 "$work/one.f32" -b 16 "$work/sphinx/$id.wav" 2> /dev/null
  done < "$work/sphinx/scp"
  awk 'NR == FNR { known[$1] = 1; next } $1 in known' "$work/sphinx/ids" "$corpus/dev_native/text" > "$work/sphinx/text"
  grep -Ff <(sed 's/.*/(&)/' "$work/sphinx/ids") "$work/dev_native.trn" > "$work/sphinx/ref.trn"
  seconds=$(cat "$work"/sphinx/*.wav | wc -c | awk -v n="$(wc -l < "$work/sphinx/ids")" '{ printf "%.1f", ($1 - 44 * n) / 32000 }')
  [ -d "$en/en-us" ] || die "$en does not exist; apt-get install pocketsphinx-en-us"
  line() { # line WHAT SECONDS NAME
    local ref=$work/sphinx/text rate=WER value low high n
    [[ $3 = *words* ]] || ref=$work/sphinx/ref.trn rate=PER
    read -r value low high n <<< "$(score "$ref" "$work/sphinx/$3.trn")"
    echo "| $1 | $rate $value %${low:+ ($low to $high)} | $2 | $(of %.3f "$2 / $seconds") |"
  }
  {
    echo "## Beside pocketsphinx"
    echo
    echo "$(wc -l < "$work/sphinx/ids") utterances of \`dev_native\` (one of $every, $seconds s) by Debian's pocketsphinx with its en-us models;"
    echo "processor time on one core. linnet was trained on other speakers of the same collection."
    echo
    echo "| what | error rate | seconds | of real time |"
    echo "|---|---|---|---|"
    line "linnet, phonemes, greedy" "$(ours greedy)" greedy
    line "linnet, phonemes, \`--lm phones.lm\`" "$(ours phones --lm phones.lm)" phones
    line "pocketsphinx, phoneme loop, \`-allphone en-us-phone.lm.bin -lw 2.0 -beam 1e-20 -pbeam 1e-20\`" \
      "$(sphinx allphone -allphone "$en/en-us-phone.lm.bin" -lw 2.0 -beam 1e-20 -pbeam 1e-20)" allphone
    line "linnet, \`--words\`" "$(ours words --words)" words
    line "pocketsphinx, words, its 3-gram and dictionary" "$(sphinx pswords -lm "$en/en-us.lm.bin" -dict "$en/cmudict-en-us.dict")" pswords
    echo
  } > "$work/6.md"
fi

# ---- 7 ---------------------------------------------------------------------------------------------------------------------------

if streams 7; then
  [ -x "$sound" ] || die "$sound does not exist; run make $sound"
  echo "== stage 7: where nobody speaks"
  seconds=$(size 300 5)
  bench/silence.sh --seconds "$seconds" --work "$work/silence" --model "$model" --linnet "$linnet" --sound "$sound" \
    --kinds "$(size "" "white:-40 keys:-40")" > "$work/silence.txt"
  [ -z "$sounds" ] || bench/silence.sh --sounds "$sounds" --work "$work/silence" --model "$model" --linnet "$linnet" |
    sed '1,/^a minute/d' >> "$work/silence.txt"
  {
    echo "## Where nobody speaks"
    echo
    echo "    bench/silence.sh --seconds $seconds"
    [ -z "$sounds" ] || echo "    bench/silence.sh --sounds SOUNDS"
    echo
    echo "False phonemes and words a minute: \`linnet transcribe\`, \`transcribe --words\`, \`listen --words\`; *sure*: the"
    echo "words of those live utterances whose phonemes have a mean confidence of 0.5 or more."
    echo
    echo "| sound | level, dB | phonemes | words | live: phonemes | words | sure |"
    echo "|---|---|---|---|---|---|---|"
    sed '1,/^a minute/d' "$work/silence.txt" | awk '{ print "| " $1 " | " $2 " | " $4 " | " $5 " | " $6 " | " $7 " | " $8 " |" }'
    echo
    if [ -f "$work/dev_nonnative.words.jsonl" ]; then
      echo "Of speech, a program that keeps only sure utterances loses $(unsure dev_native) % of the words recognised in \`dev_native\` and"
      echo "$(unsure dev_nonnative) % in \`dev_nonnative\`."
      echo
    fi
  } > "$work/7.md"
fi

# ---- 8 ---------------------------------------------------------------------------------------------------------------------------

if wanted 8; then
  echo "== stage 8: latency, size, speed"
  factor() { # factor OPTIONS...: processor time of dev_native on one thread, as a part of its length
    local used
    used=$({ TIMEFORMAT=%U; time "$linnet" transcribe --data "$corpus/dev_native" --audio-root "$corpus" -j 1 --device "$device" \
      -f trn "$@" > /dev/null 2> "$work/said"; } 2>&1)
    of %.4f "$used / $(sed -n 's/.* files, \([0-9.]*\) s of sound.*/\1/p' "$work/said")"
  }
  step=$(of %g "$(number stack) * $(number hop_ms)") ahead=$(of %g "$(number ahead) * $(number hop_ms)")
  {
    echo "## Latency, size, speed"
    echo
    echo "| what | measured |"
    echo "|---|---|"
    echo "| parameters | $(number parameters) |"
    echo "| file | $(of %.1f "$(number file_bytes) / 1e6") MB |"
    [ $kind = offline ] || echo "| attention state of a stream / all of it | $(number attention_state_bytes) / $(number state_bytes) bytes |"
    [ $kind = offline ] || echo "| latency by construction: step + look-ahead + window beyond its hop | $step + $ahead + $(of %g "$(number window_ms) - $(number hop_ms)") ms |"
    echo "| real-time factor, files to phonemes, one thread, processor time | $(factor) |"
    echo "| the same, \`--words\` | $(factor --words) |"
    echo "| the same, \`--words --rescore words\` | $(factor --words --rescore words) |"
    echo
    if [ $kind = offline ]; then
      echo "The model reads whole utterances: results come when they have ended."
    elif command -v flite > /dev/null; then
      echo "    bench/delay.sh --text DIR/dev_native/text --sentences $(size 100 3)"
      echo
      bench/delay.sh --text "$corpus/dev_native/text" --sentences "$(size 100 3)" --work "$work/delay" --model "$model" \
        --linnet "$linnet" 2> /dev/null | sed 1d | block
    else
      echo "Delay until a phoneme is settled: not measured, flite is not installed here."
    fi
    echo
  } > "$work/8.md"
fi

# ---- 9 ---------------------------------------------------------------------------------------------------------------------------

if wanted 9; then
  {
    command="recipes/open/results.sh --corpus DIR${given:+ --model $given} --hours $hours --every $every${quick:+ --quick}"
    head_of_results "The $kind model, measured" | awk -v model="$(number name), fingerprint $fingerprint" '
      { print } /^\| device / { print "| model | " model " |" }
      /^\| device / && (getline load < "/proc/loadavg") > 0 { split(load, f, " "); print "| load average of the machine | " f[3] " |" }'
    for ((k = 1; k <= 8; k++)); do [ ! -f "$work/$k.md" ] || cat "$work/$k.md"; done
  } | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' > "$work/$page"
  if [ -n "$publish" ]; then
    cp "$work/$page" "$here/$page"
    awk -v table="$work/card.md" -v mark="<!-- results.sh --publish: the $kind model" '/^<!-- end of results -->/ { on = 0 } !on
      index($0, mark) == 1 { on = 1; print ""; while ((getline line < table) > 0) print line; print "" }' "$card" > "$work/card.new"
    cat "$work/card.new" > "$card"
  fi
  cat "$work/$page"
fi
