# common.sh - sourced by the scripts of recipes/*/ and bench/: options, messages, tables, the head of a page of results.
#
#   flags=" quick causal " values=" work device threads linnet ... "    which options a script has; its defaults are variables
#   options "$@"                                                        --quick sets quick=yes, --work DIR sets work=DIR
#   wanted 2 && ...                                                    is stage 2 among --stage to --stop-stage?
# The script's opening comment is its --help.
set -euo pipefail

device=auto threads=0 linnet=build/release/linnet quick=
command="$0${*:+ $*}"
trap 'exit 130' INT TERM # after the command that is running, which ends by itself
die() { died=yes; echo "$(basename "$0"): $*" >&2; exit 1; }

options() {
  local name
  while [ $# -gt 0 ]; do
    name=${1#--}
    case $1 in
      --help) sed -n '2,/^[^#]/p' "$0" | sed '/^[^#]/d; s/^# \{0,1\}//'; exit 0 ;;
      --?*) ;;
      *) die "unexpected argument '$1'; --help lists the options" ;;
    esac
    if [[ $flags == *" $name "* ]]; then declare -g "${name//-/_}=yes"; shift
    elif [[ $values == *" $name "* ]]; then
      [ $# -ge 2 ] || die "$1 needs a value"
      declare -g "${name//-/_}=$2"; shift 2
    elif [[ ${lists:-} == *" $name "* ]]; then
      [ $# -ge 2 ] || die "$1 needs a value"
      eval "${name//-/_}+=(\"\$2\")"; shift 2
    else die "unknown option $1; --help lists them"; fi
  done
  [ -x "$linnet" ] || die "$linnet does not exist; run make first, or give --linnet PROGRAM"
  [ -n "${dry_run:-}" ] || mkdir -p "$work"
}

# The sound of the Wall Street Journal's discs is compressed with shorten.
needs_ffmpeg() {
  command -v "${LINNET_FFMPEG-ffmpeg}" > /dev/null ||
    die "the sound of the discs is compressed with shorten, which the program ffmpeg decodes: install it (apt install ffmpeg)"
}

# different_names OPTION TAKEN DATA...: stops if two data directories, or one and a word of TAKEN, would have the same cache
different_names() {
  local option=$1 taken=" $2 " data name
  shift 2
  for data; do
    name=$(basename "$data")
    [[ $taken != *" $name "* ]] || die "$option $data: another set is called $name too, and its cache would be taken; rename one"
    taken+="$name "
  done
}

wanted() { [ "$stage" -le "$1" ] && [ "$stop_stage" -ge "$1" ]; }

# hold FILE MESSAGE: locks the file, or dies with the message if another run holds the lock. The lock ends with the last process of the
# run, so a run that was killed leaves none.
hold() {
  command -v flock > /dev/null || return 0
  exec {lock_fd}> "$1" || die "cannot write $1"
  flock -n "$lock_fd" || die "$2"
}
lock_work() { hold "$work/lock" "another run works in $work; wait for it to end, or give another --work"; }
# only_run PATH: holds PATH.lock, and removes it at the end
only_run() {
  hold "$1.lock" "another run is writing $1; wait for it to end"
  locked=$1.lock
  trap 'rm -f "$locked"' EXIT
}

# ---- feature caches --------------------------------------------------------------------------------------------------------------

# caches_of FEATURES SET: sets `caches` to the files of a set, one cache or its shards in order
caches_of() {
  local k n
  caches=("$1/$2.lfc")
  [ ! -f "$1/$2.shards" ] || {
    n=$(cat "$1/$2.shards") caches=()
    for ((k = 1; k <= n; k++)); do caches+=("$1/$2.$(printf %03d "$k").lfc"); done
  }
  for k in "${caches[@]}"; do [ -f "$k" ] || return 1; done
}

# cut_set DIR N OUT: OUT/001, OUT/002, ... at most N data directories with whole speakers, of about the same number of utterances
cut_set() {
  local speakers=$1/utt2spk file k
  [ -f "$speakers" ] || speakers=/dev/null
  rm -rf "$3"
  for ((k = 1; k <= $2; k++)); do mkdir -p "$3/$(printf %03d "$k")"; done
  # the shard of every utterance
  LC_ALL=C awk -v n="$2" -v speakers="$speakers" '
    FILENAME == speakers { speaker[$1] = $2; next }
    { s = $1 in speaker ? speaker[$1] : $1; if (!(s in size)) order[++m] = s; size[s]++; utterance[++all] = $1; of[all] = s }
    END {
      for (i = 1; i <= m; i++) { # the shard in which the middle of a speaker lies; shards are numbered without gaps
        k = int((before + size[order[i]] / 2) * n / all)
        if (i == 1 || k != last) used++
        last = k; shard[order[i]] = used; before += size[order[i]]
      }
      for (i = 1; i <= all; i++) print utterance[i], shard[of[i]]
    }' "$speakers" "$1/wav.scp" > "$3/shards" || die "$3 could not be written"
  for file in wav.scp text utt2spk; do
    [ ! -f "$1/$file" ] || LC_ALL=C awk -v out="$3" -v name="$file" 'NR == FNR { shard[$1] = $2; next }
      $1 in shard { print > sprintf("%s/%03d/%s", out, shard[$1], name) }' "$3/shards" "$1/$file" || die "$3 could not be written"
  done
  for k in "$3"/*/; do [ -f "$k/wav.scp" ] || rmdir "$k"; done
  # awk does not notice a full disk
  for file in wav.scp text; do
    [ "$(cat "$3"/*/"$file" | wc -c)" = "$(wc -c < "$1/$file")" ] || die "the parts of $1/$file in $3 are not complete; is the disk full?"
  done
}

# prepare_set DATA FEATURES SET SHARDS ARGS...: the features of a data directory or list, by linnet prepare ARGS, as SET.lfc; or in shards
# of a directory as SET.001.lfc, ... and their number in SET.shards, so that an interruption loses only one of them. Existing files are
# kept; files that were made with other ARGS or of other DATA are refused.
prepare_set() {
  local data=$1 features=$2 set=$3 shards=$4 made n k fd
  shift 4
  exec {fd}> "$features/.lock-$set"
  ! command -v flock > /dev/null || flock "$fd"
  made="shards $shards $(options_made "$@") data $({ cat "$data"/{wav.scp,text} "$data" 2> /dev/null || true; } | cksum)"
  if [ -f "$features/$set.made" ] && [ "$made" != "$(cat "$features/$set.made")" ]; then
    die "$features/$set*.lfc were made with other options or of another $data; remove $features/$set.*, or give another --work"
  fi
  if ! caches_of "$features" "$set"; then
    echo "$made" > "$features/$set.made"
    if [ "$shards" = 1 ]; then prepare_shard "$data" "$features/$set" "$@"; else
      cut_set "$data" "$shards" "$features/.cut-$set"
      n=$(find "$features/.cut-$set" -mindepth 1 -maxdepth 1 -type d | wc -l)
      for ((k = 1; k <= n; k++)); do
        prepare_shard "$features/.cut-$set/$(printf %03d "$k")" "$features/$set.$(printf %03d "$k")" "$@"
      done
      echo "$n" > "$features/.shards-$set" && mv "$features/.shards-$set" "$features/$set.shards"
      rm -r "$features/.cut-$set"
    fi
  fi
  exec {fd}>&-
}

# options_made ARGS...: options of linnet prepare, for comparison: the dictionary by its content, without folders
options_made() {
  while [ $# -gt 0 ]; do
    case $1 in
      --audio-root | --oov) shift ;;
      --lexicon) shift; printf 'lexicon %s ' "$(cksum < "$1")" ;;
      *) printf '%q ' "$1" ;;
    esac
    shift
  done
}

prepare_shard() { # DATA CACHE ARGS...: CACHE.lfc, and the messages in CACHE.log
  local data=$1 cache=$2 status=0
  shift 2
  if [ ! -f "$cache.lfc" ]; then
    "$linnet" prepare "$data" "$@" --jobs "$threads" --output "$cache.lfc" 2>&1 | tee "$cache.log.new" >&2 || status=${PIPESTATUS[0]}
    [ "$status" != 130 ] || exit 130
    # exit status 1: some utterances were reported and left out, and the cache was written
    [ -f "$cache.lfc" ] || die "$cache.lfc could not be prepared"
  fi
  [ ! -f "$cache.log.new" ] || mv "$cache.log.new" "$cache.log"
}

# check_set FEATURES SET PART: one line about the features of a set; dies if more than a PART of the utterances failed or are
# incomplete, before a training run wastes hours on the rest.
check_set() {
  local caches k
  caches_of "$1" "$2" || die "the features of $2 are not complete; run the stage before"
  for k in "${caches[@]}"; do [ ! -f "${k%.lfc}.log" ] || cat "${k%.lfc}.log"; done > "$1/.log-$2"
  [ -s "$1/.log-$2" ] || { rm "$1/.log-$2"; return 0; }
  # linnet: x.lfc: 10 utterances, 0.01 hours, 90 phones; 0 left out, 0 failed, 0 incomplete; 2 of 30 words (6.67 %, 1 distinct) are ...
  LC_ALL=C awk -v set="$2" -v part="$3" '
    /: [0-9]+ utterances, .* left out, .* failed, / {
      sub(/.*\.lfc: /, ""); utterances += $1; hours += $3; left += $7; failed += $10; cut += $12; unknown += $14; words += $16 }
    END {
      printf "%s: %d utterances, %.2f hours; %d left out, %d failed, %d incomplete; %d of %d words are not in the dictionary\n", set,
        utterances, hours, left, failed, cut, unknown, words
      exit failed + cut > part * (utterances + failed) }' "$1/.log-$2" | tee "$1/$2.sum" ||
    die "too many utterances of $2 failed or are incomplete; $1/.log-$2 says why. Correct that, remove $1/$2.*, and run again"
  rm "$1/.log-$2"
}

# 1..9 and whole: is_count VALUE OPTION
is_count() { [[ $1 =~ ^[1-9][0-9]*$ ]] || die "$2 is a number from 1 up, not '$1'"; }

commit() {
  local id
  id=$(git rev-parse --short HEAD 2> /dev/null) || { echo unknown; return; }
  git diff --quiet HEAD 2> /dev/null || id="$id with changes"
  echo "$id"
}

# section TITLE: a heading of a page, with the blank lines around it
section() { printf '\n## %s\n\n' "$1"; }

# columns "| NAME | NAME |": the first two lines of a table
columns() { printf '%s\n%s\n' "$1" "$(sed 's/[^|]\{1,\}/---/g' <<< "$1")"; }

# head_of_results TITLE: the beginning of every page of results
head_of_results() {
  local cpu
  cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2> /dev/null | head -n 1)
  echo "# $1"
  echo
  echo "    $command"
  echo
  columns "| | |"
  echo "| date | $(date -u +%F) |"
  echo "| program | $("$linnet" --version | head -n 1), commit $(commit) |"
  echo "| processor | ${cpu:-unknown}, $(nproc) cores |"
  echo "| device | $device |"
  echo "| form | $([ -n "$quick" ] && echo 'quick: a small form that tests the recipe' || { [ -n "${reduced:-}" ] && echo reduced || echo full; }) |"
  echo
}

# pivot TABLE ROW COLUMN VALUE FACTOR FORMAT: a markdown table of a column of a table, one row for each ROW, one column for each COLUMN.
# A cell with several values gets their mean. Comment lines begin with #.
pivot() {
  LC_ALL=C awk -F'\t' -v row="$2" -v column="$3" -v value="$4" -v factor="$5" -v format="$6" '
    /^#/ || !NF { next }
    !headed { for (i = 1; i <= NF; i++) at[$i] = i; headed = 1; next }
    { r = $at[row]; c = $at[column]
      if (!(r in rows)) { rows[r] = 1; row_names[++R] = r }
      if (!(c in columns)) { columns[c] = 1; column_names[++C] = c }
      if ($at[value] != "-" && $at[value] != "") { sum[r, c] += $at[value]; n[r, c]++ } }
    END {
      printf "| %s |", row; for (j = 1; j <= C; j++) printf " %s |", column_names[j]; print ""
      printf "|---|"; for (j = 1; j <= C; j++) printf "---|"; print ""
      for (i = 1; i <= R; i++) {
        printf "| %s |", row_names[i]
        for (j = 1; j <= C; j++) {
          k = row_names[i] SUBSEP column_names[j]
          if (n[k]) printf " " format " |", sum[k] / n[k] * factor; else printf " - |"
        }
        print ""
      }
    }' "$1"
}

# made_with PATH ARGS...: keeps ARGS in PATH.made, and dies if PATH was made with others: its results would be taken for those of ARGS.
# ARGS are all that the content depends on: the options and data of the command that makes it, the fingerprint of an installed model, and
# of what is timed also device and threads. The work folder may have moved.
made_with() {
  local args="${*:2}"
  args=${args//"$work/"/}
  if [ -e "$1" ] && [ -s "$1.made" ] && [ "$args" != "$(cat "$1.made")" ]; then
    die "$1 was made with other options or data; remove it, or give another --work"
  fi
  mkdir -p "$(dirname "$1")"
  echo "$args" > "$1.made" || die "cannot write $1.made"
}

# ---- networks of tokens (recipes/paper) ------------------------------------------------------------------------------------------

# tokens_network VARIANT: sets `network` to the options of linnet train for a variant of bench_variants.c or bilstm, of $layers, $heads of
# $head_width and $feedforward; lsh in chunks of $chunk, a Bi-LSTM of as many layers of $lstm_width
tokens_network() {
  network=(--layers "$layers" --set "heads=$heads,head-width=$head_width,feedforward=$feedforward" --positions sinusoid)
  case $1 in
    linear) ;;
    softmax|softmax-naive) network+=(--attention "$1") ;;
    lsh-[1-9]|lsh-1[0-6]) network+=(--attention lsh --set "lsh-rounds=${1#lsh-},lsh-chunk=$chunk") ;;
    poly2) network+=(--set feature-map=poly2) ;;
    random-[1-9]*) network+=(--set "feature-map=random,features=${1#random-}") ;;
    bilstm|lstm) network=(--network lstm --layers "$layers" --set "width=$lstm_width") ;;
    *) die "there is no variant '$1'; use linear, softmax, softmax-naive, lsh-N, poly2, random-N${lstm_width:+ or bilstm}" ;;
  esac
  [ -n "$lstm_width" ] || [[ $1 != *lstm ]] || die "there is no variant '$1' in this experiment"
}

# train_tokens FOLDER ARGS...: linnet train ARGS into FOLDER, from its checkpoint if it was interrupted; nothing if it is done
train_tokens() {
  local folder=$1 resume=()
  shift
  made_with "$folder" "$@"
  [ ! -f "$folder/done" ] || return 0
  [ ! -f "$folder/checkpoint.safetensors" ] || resume=(--resume)
  echo "== $folder"
  "$linnet" train --folder "$folder" "$@" --device "$device" --threads "$threads" ${resume[@]+"${resume[@]}"} || exit $?
  touch "$folder/done"
}

# tokens_set FILE ARGS...: linnet paper ARGS -o FILE, unless it is there
tokens_set() { made_with "$@"; [ -s "$1" ] || "$linnet" paper "${@:2}" -q -o "$1"; }
