# corpus.sh - stages shared by the recipes of corpora, from data directories to the page of results; sourced after common.sh.
#
#   corpus_values=...                    the values of options that corpus_options understands
#   corpus_options                       checks them and sets `epochs`, `decoded` and `table`
#   plan HOURS; room; lock_work          what a run needs, and whether it is available
#   corpus_stages                        the requested ones of stages 2 to 5: dictionary, features, training, scores
#   stage 6: corpus_words LM   7: corpus_results TITLE NOTE
#
# Variables of the recipe: data (folder of data directories), work, train, dev, test (sets separated by commas), rows (of
# recipes/paper/table3.sh), the options of corpus_values, dry_run, force, quick. The stages call table3.sh.

corpus_flags=" dry-run force quick augment "
corpus_values=" work seeds lexicon test grid grid-lstm epochs patience stack batch-frames shards launch precision words-weights stage stop-stage device threads linnet "
work= seeds=1 lexicon= test= grid=1e-4 grid_lstm=1e-3 epochs= patience=3 stack=1 batch_frames=16000 shards=32 launch= precision=tf32
words_weights=0.5,0.65,0.8,1 augment=
dry_run= force= stage=1 stop_stage=7
recipes=$(dirname "${BASH_SOURCE[0]}")

# corpus_options EPOCHS: EPOCHS if --epochs is not given
corpus_options() {
  epochs=${epochs:-$([ -n "$quick" ] && echo 1 || echo "$1")}
  for o in seeds epochs patience stack batch_frames shards stage stop_stage; do is_count "${!o}" "--${o//_/-}"; done
  [[ $threads =~ ^[0-9]+$ ]] || die "--threads is a number, not '$threads'"
  decoded="$dev ${test//,/ }"
  table=("$recipes/paper/table3.sh" --corpus "$data" --work "$work" --train "$train" --dev "$dev" --test "$test" --lexicon "$work/dict/lexicon.dict"
    --high-hz 0 --shards "$shards" --rows "$rows" --seeds "$seeds" --stack "$stack" --epochs "$epochs" --grid "$grid" --grid-lstm "$grid_lstm"
    --batch-frames "$batch_frames" --patience "$patience" --normalize-forwards global --device "$device" --threads "$threads" --linnet "$linnet"
    --precision "$precision" ${augment:+--augment} ${launch:+--launch "$launch"} ${quick:+--quick})
}

# run COMMAND...: prints it with --dry-run, else runs it
run() {
  if [ -n "$dry_run" ]; then printf '    '; printf '%q ' "$@"; echo; else "$@"; fi
}
say() { at="$*"; echo "== $* ($(date +%T))"; }

# A command that failed inside a stage has printed the reason; this prints where it was and what to do.
stopped() {
  local status=$?
  [ "$status" = 0 ] || [ "$status" = 130 ] || [ -z "$at" ] || [ -n "$died" ] ||
    echo "$(basename "$0"): stopped in ${at%%:*} for the reason above; correct it and run again: what is done is kept" >&2
}
at= died=
trap stopped EXIT

# ---- what a run needs ------------------------------------------------------------------------------------------------------------

# The full networks on a CPU, batches of 16,000 frames, utterances of 830 frames on average, one step per frame: frames per second of
# processor time of training with evaluation, on an AMD EPYC (Zen 5); GB of memory; MB of files of a run. wsj/README.md has the command.
measured() {
  case $1 in
    linear) echo 5500 2 70 ;;
    softmax*) echo 2600 2 70 ;;
    lsh-*) echo 4200 2 70 ;;
    bilstm) echo 4000 2 100 ;;
    lstm) echo 10900 1 50 ;;
    *) echo 5400 2 70 ;;
  esac
}
count_of() { echo "$1" | tr ',' '\n' | grep -c . || true; }

# plan HOURS: what a run with so many hours of training data needs, in `need_mb` of disk and `need_gb` of memory
plan() {
  local n row fps gb mb rates cores=$threads hours=$1
  [ "$cores" != 0 ] || cores=$(nproc)
  need_gb=0 need_mb=$(LC_ALL=C awk -v h="$hours" 'BEGIN { printf "%d", 300 + h * 14.4 + 60 }')
  echo "Expected of a run with all stages, $hours hours of training data (estimates; GPUs are not included):"
  LC_ALL=C awk -v h="$hours" -v cores="$cores" 'BEGIN {
    printf "  features: %.1f GB, %.0f min on %d core(s)\n", h * 0.0144, h * 3600 / 1000 / 60 / cores, cores }'
  for row in ${rows//,/ }; do
    read -r fps gb mb <<< "$(measured "$row")"
    rates=$(count_of "$grid"); case $row in *lstm) rates=$(count_of "$grid_lstm") ;; esac
    n=$((rates + seeds - 1))
    need_mb=$((need_mb + n * mb))
    [ "$gb" -le "$need_gb" ] || need_gb=$gb
    LC_ALL=C awk -v row="$row" -v n="$n" -v h="$hours" -v fps="$fps" -v cores="$cores" -v epochs="$epochs" -v mb="$mb" -v stack="$stack" 'BEGIN {
      s = h * 360000 / fps / cores / stack
      printf "  %s: %d run(s) of at most %d epochs; on a CPU about %.1f h per epoch with %d core(s); %d MB of files\n", row, n, epochs, s / 3600, cores, n * mb }'
  done
  [ "$batch_frames" -le 16000 ] || need_gb=$((need_gb * batch_frames / 16000 + 1))
}

# room: is there enough disk and memory?
room() {
  local place=$work have_mb have_gb
  while [ ! -d "$place" ]; do place=$(dirname "$place"); done
  have_mb=$(df -Pm "$place" | awk 'NR == 2 { print $4 }')
  have_gb=$(awk '/^MemAvailable:/ { printf "%d", $2 / 1048576 }' /proc/meminfo 2> /dev/null)
  echo "Disk: $need_mb MB needed in $work, $have_mb MB free. Memory: $need_gb GB needed on a CPU, ${have_gb:-unknown} GB free."
  [ -z "$dry_run$force$quick" ] || return 0
  # files that exist already need no more space
  [ ! -d "$work" ] || need_mb=$((need_mb - $(du -sm "$work" | cut -f1)))
  [ "$have_mb" -ge "$need_mb" ] || die "$work has $have_mb MB of free disk; the run needs $need_mb MB more. Use another --work, or --force"
  case $device in cuda*) return 0 ;; esac
  [ -z "$have_gb" ] || [ "$have_gb" -ge "$need_gb" ] ||
    die "$have_gb GB of memory are free; training needs $need_gb GB. Use a smaller --batch-frames, or --force"
}

need_data() {
  local set
  [ -z "$dry_run" ] || return 0
  for set in ${train//,/ } $decoded; do [ -s "$data/$set/wav.scp" ] || die "$data/$set/wav.scp does not exist; run stage 1"; done
}

# ---- 2: dictionary and phonemes ----------------------------------------------------------------------------------------------------

phones39="AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH"

# CMUdict: from --lexicon, an earlier run, the environment, a package, or the installation of the program (72,000 words)
find_lexicon() {
  local f
  for f in "${LINNET_LEXICON:-}" /usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict /usr/share/cmudict/cmudict.dict \
    "$(dirname "$linnet")/../share/linnet/en/words.dict.gz" share/linnet/en/words.dict.gz; do
    if [ -n "$f" ] && [ -f "$f" ]; then lexicon=$f; return; fi
  done
  die "no pronunciation dictionary was found; apt-get install pocketsphinx-en-us, or give --lexicon FILE"
}

corpus_dictionary() {
  local dict set
  [ -z "$lexicon" ] || [ -f "$lexicon" ] || die "$lexicon does not exist"
  need_data
  dict=$work/dict/lexicon.dict
  [ -n "$lexicon" ] || [ -f "$dict" ] || find_lexicon
  run mkdir -p "$work/dict"
  if [ -n "$dry_run" ]; then
    echo "    dictionary: ${lexicon:-$dict}"
  else
    if [ -n "$lexicon" ]; then
      gzip -dcf < "$lexicon" > "$dict.new" || die "$lexicon cannot be read"
      if [ -f "$dict" ] && ! cmp -s "$dict" "$dict.new"; then
        rm "$dict.new"
        die "$work was begun with another dictionary than $lexicon; give another --work"
      fi
      mv "$dict.new" "$dict"
      echo "$lexicon" > "$work/dict/source"
    fi
    echo "$(LC_ALL=C awk '!/^;;;/ && NF > 1 { w = $1; sub(/\([0-9]+\)$/, "", w); if (!(w in seen)) { seen[w] = 1; n++ } } END { print n + 0 }' "$dict") words in $(cat "$work/dict/source")"
    printf 'set\twords\tdistinct\tnot in the dictionary\tdistinct\tphonemes\tkinds\n' > "$work/dict/report.new"
    for set in ${train//,/ } $decoded; do
      # exit status 1: lines that cannot be pronounced were reported and left out
      rm -f "$work/dict/$set.trn"
      "$linnet" phonemize -q --ids first --trn --lexicon "$dict" --oov "$work/dict/$set.oov" "$data/$set/text" -o "$work/dict/$set.trn" ||
        [ -s "$work/dict/$set.trn" ] || die "the phonemes of $set could not be written"
      {
        LC_ALL=C awk '{ for (i = 2; i <= NF; i++) { n++; if (!($i in seen)) { seen[$i] = 1; d++ } } } END { printf "%d\t%d\t", n, d }' "$data/$set/text"
        LC_ALL=C awk '!/^#|^;/ && $2 + 0 > 0 { n += $2; d++ } END { printf "%d\t%d\t", n, d }' "$work/dict/$set.oov"
        LC_ALL=C awk -v known="$phones39" -v set="$set" '
          BEGIN { n = split(known, k, " "); for (i = 1; i <= n; i++) is[k[i]] = 1 }
          { for (i = 1; i < NF; i++) { count++; if (!($i in is)) odd = $i; if (!($i in seen)) { seen[$i] = 1; kinds++ } } }
          END { printf "%d\t%d\n", count, kinds; if (odd != "") { print set ": " odd " is not among the 39 phones" > "/dev/stderr"; exit 1 } }' "$work/dict/$set.trn"
      } > "$work/dict/.line" || die "the dictionary has other phones than CMUdict's 39"
      printf '%s\t%s\n' "$set" "$(cat "$work/dict/.line")" >> "$work/dict/report.new"
    done
    mv "$work/dict/report.new" "$work/dict/report.tsv"
    cat "$work/dict/report.tsv"
    echo "words that are not in the dictionary, with their phonemes by letter-to-sound rules: $work/dict/*.oov"
  fi
}

# ---- 3, 4, 5: features, training, scores -------------------------------------------------------------------------------------------

need_dict() { [ -n "$dry_run" ] || [ -f "$work/dict/lexicon.dict" ] || die "$work/dict/lexicon.dict does not exist; run stage 2"; }

corpus_stages() {
  if wanted 2; then
    say "stage 2: dictionary and phonemes"
    corpus_dictionary
  fi
  if wanted 3; then
    say "stage 3: features"
    need_data
    need_dict
    run bash "${table[@]}" --stage 1 --stop-stage 1
  fi
  if wanted 4; then
    say "stage 4: training"
    run bash "${table[@]}" --stage 2 --stop-stage 2
  fi
  if wanted 5; then
    say "stage 5: decoding and scoring"
    need_data
    run bash "${table[@]}" --stage 3 --stop-stage 3
  fi
}

# ---- 6: words --------------------------------------------------------------------------------------------------------------------

# words_lexicon LM: pronunciations of the words of the language model: those of the dictionary, else one by letter-to-sound rules.
words_lexicon() {
  local lm=$1 words=$work/words
  [ ! -s "$words/lexicon.dict" ] || return 0
  mkdir -p "$words"
  gzip -dcf < "$lm" | LC_ALL=C awk '/^\\1-grams:/ { on = 1; next } /^\\/ { on = 0 } on && NF > 1 && $2 !~ /^<.*>$/ { print $2 }' > "$words/words"
  LC_ALL=C awk -v rest="$words/rest" '
    NR == FNR { wanted[tolower($1)] = 1; next }
    /^;;;/ { next }
    { w = tolower($1); sub(/\([0-9]+\)$/, "", w); if (w in wanted) { print; found[w] = 1 } }
    END { for (w in wanted) if (!(w in found)) print w > rest }' "$words/words" "$work/dict/lexicon.dict" > "$words/found"
  touch "$words/rest"
  LC_ALL=C sort "$words/rest" | LC_ALL=C awk '{ print "w" NR, $1 }' > "$words/names"
  { "$linnet" phonemize -q --ids first --lexicon "$work/dict/lexicon.dict" "$words/names" 2> "$words/log" || true; } |
    LC_ALL=C awk 'NR == FNR { word[$1] = $2; next } NF > 1 { $1 = word[$1]; print }' "$words/names" - > "$words/guessed"
  echo "$(wc -l < "$words/words") words of $lm: $(($(wc -l < "$words/words") - $(wc -l < "$words/names"))) are in the dictionary, $(wc -l < "$words/guessed")" \
    "have phonemes by letter-to-sound rules, $(($(wc -l < "$words/names") - $(wc -l < "$words/guessed"))) have none" | tee "$words/counts"
  cat "$words/found" "$words/guessed" > "$words/lexicon.new"
  mv "$words/lexicon.new" "$words/lexicon.dict"
}

# corpus_words LM: word error rates with an ARPA language model
corpus_words() {
  local lm=$1 words
  words=(bash "${table[@]}" --stage 3 --stop-stage 3 --words "$work/words/words.lm" --words-lexicon "$work/words/lexicon.dict" --words-weights "$words_weights")
  if [ -n "$dry_run" ]; then
    run "${words[@]}"
  elif [ ! -f "$lm" ]; then
    echo "${lm:-a language model} does not exist: no words"
  else
    need_data
    need_dict
    words_lexicon "$lm"
    [ -s "$work/words/words.lm" ] || "$linnet" ngram pack -q "$lm" -o "$work/words/words.lm"
    "${words[@]}"
  fi
}

# ---- 7: results --------------------------------------------------------------------------------------------------------------------

count_words() { LC_ALL=C awk '{ n += NF - 1 } END { print n + 0 }' "$data/$1/text"; }
tsv_table() { LC_ALL=C awk -F'\t' '{ printf "|"; for (i = 1; i <= NF; i++) printf " %s |", $i; print ""; if (NR == 1) { printf "|"; for (i = 1; i <= NF; i++) printf "---|"; print "" } }' "$1"; }

data_results() {
  section "Data"
  [ ! -f "$work/dict/report.tsv" ] || { tsv_table "$work/dict/report.tsv"; echo; }
  echo "Dictionary: $(cat "$work/dict/source" 2> /dev/null || echo unknown), first pronunciations, 39 phones without stress; other words by letter-to-sound rules."
  for set in ${train//,/ } $decoded; do [ ! -f "$work/features/$set.sum" ] || { echo; cat "$work/features/$set.sum"; }; done
  if [ -f "$work/words/counts" ]; then
    echo
    echo "Words: $(cat "$work/words/counts")"
  fi
}

# corpus_results TITLE NOTE: WORK/RESULTS.md; the function more_results of the recipe, if there is one, writes its end
corpus_results() {
  run bash "${table[@]}" --stage 4 --stop-stage 4 --title "$1" --note "$2"
  [ -z "$dry_run" ] || return 0
  {
    COMMAND=$command LC_ALL=C awk '/^    .*table3\.sh / && !done { print "    " ENVIRON["COMMAND"]; done = 1; next } { print }' "$work/RESULTS.md"
    data_results
    ! declare -F more_results > /dev/null || more_results
  } > "$work/RESULTS.new"
  mv "$work/RESULTS.new" "$work/RESULTS.md"
}
