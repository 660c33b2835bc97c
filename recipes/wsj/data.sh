#!/usr/bin/env bash
# Data directories and language models from the discs of the Wall Street Journal corpus (LDC93S6A or B: WSJ0, LDC94S13A or B: WSJ1).
#
#   recipes/wsj/data.sh --wsj0 DIR --wsj1 DIR --output DATA [--sets SET,...] [--no-lm] [--allow-missing] [--stand-in] [--dry-run]
#                       [--noise WORD] [--linnet PROGRAM]
#
# DIR: a folder of numbered discs (11-13.1, 13-34.1), a tree with wsj0/ and wsj1/, or wsj0 or wsj1 itself, in upper or lower case; one
# folder may hold both. They are only read.
# Writes DATA/SET/{wav.scp,text,utt2spk} for train_si84, train_si284, test_dev93, test_dev93_5k, test_eval92, test_eval92_5k,
# test_eval93, test_eval93_5k, dev_dt_20 and dev_dt_05; DATA/lm/{bg,tgpr,tg}_{5k,20k}.arpa.gz; DATA/report.txt. DATA appears when it is complete.
#
# The numbers of utterances must be those of the corpus; otherwise it stops and names the files. --allow-missing continues with what is
# there. A tree that recipes/wsj/standin.sh built has its own numbers, in a file STANDIN; --stand-in: any number is accepted.
# --sets: only these. --no-lm: no language models. --noise WORD: noises such as [loud_breath] are written as WORD; default: left out.
# --dry-run: prints what would be done and what is missing; writes nothing.
. "$(dirname "$0")/../common.sh"

wsj0= wsj1= output= work=. noise= sets= no_lm= allow_missing= stand_in= dry_run=
flags=" no-lm allow-missing stand-in dry-run "
values=" wsj0 wsj1 output sets noise linnet "
options "$@"
needs_ffmpeg
here=$(cd "$(dirname "$0")" && pwd)
all_sets=train_si84,train_si284,test_dev93,test_dev93_5k,test_eval92,test_eval92_5k,test_eval93,test_eval93_5k,dev_dt_20,dev_dt_05
say() { echo "data.sh: $*"; }
warn() { echo "data.sh: $*" >&2; }
export LC_ALL=C

# ---- what is asked for -----------------------------------------------------------------------------------------------------------

# set_source SET: its index files, "DISC:PATH ..." (the disc is where it lies, if discs have names), or a folder; and the number of
# utterances that the corpus has.
set_source() {
  ndx=() folder=
  case $1 in
    train_si84) ndx=(11_13_1:wsj0/doc/indices/train/tr_s_wv1.ndx) expected=7138 ;;
    train_si284) ndx=(11_13_1:wsj0/doc/indices/train/tr_s_wv1.ndx 13_34_1:wsj1/doc/indices/si_tr_s.ndx) expected=37416 ;;
    test_dev93) ndx=(13_34_1:wsj1/doc/indices/h1_p0.ndx) expected=503 ;;
    test_dev93_5k) ndx=(13_34_1:wsj1/doc/indices/h2_p0.ndx) expected=513 ;;
    test_eval92) ndx=(11_13_1:wsj0/doc/indices/test/nvp/si_et_20.ndx) expected=333 ;;
    test_eval92_5k) ndx=(11_13_1:wsj0/doc/indices/test/nvp/si_et_05.ndx) expected=330 ;;
    test_eval93) ndx=(13_32_1:wsj1/doc/indices/wsj1/eval/h1_p0.ndx) expected=213 ;;
    test_eval93_5k) ndx=(13_32_1:wsj1/doc/indices/wsj1/eval/h2_p0.ndx) expected=215 ;;
    dev_dt_20) folder=wsj1/si_dt_20/ expected=503 ;;
    dev_dt_05) folder=wsj1/si_dt_05/ expected=913 ;;
    *) die "there is no set '$1'; the sets are ${all_sets//,/ }" ;;
  esac
}
sets=${sets:-$all_sets}
needs=
for set in ${sets//,/ }; do
  set_source "$set"
  needs="$needs ${ndx[*]:-} $folder"
done
[ -n "$output" ] || die "where do the data directories go? give --output DATA"
[ -n "$wsj0$wsj1" ] || die "where is the corpus? give --wsj0 DIR and --wsj1 DIR"
[[ -n $wsj0 || $needs != *wsj0/* ]] || die "these sets need WSJ0: give --wsj0 DIR, or fewer --sets"
[[ -n $wsj1 || $needs != *wsj1/* ]] || die "these sets need WSJ1: give --wsj1 DIR, or --sets train_si84,test_eval92,test_eval92_5k"
for dir in "$wsj0" "$wsj1"; do
  [ -z "$dir" ] || [ -d "$dir" ] || die "$dir is not a folder"
  case $dir in *$'\n'*|*$'\t'*) die "the name of $dir has a line end or a tab in it, which wav.scp cannot hold" ;; esac
done
[ -z "$wsj0" ] || wsj0=$(cd "$wsj0" && pwd)
[ -z "$wsj1" ] || wsj1=$(cd "$wsj1" && pwd)
[[ $noise != *[[:space:]]* ]] || die "--noise is one word, not '$noise'"
output=${output%/}
[[ $linnet != */* ]] || linnet=$(cd "$(dirname "$linnet")" && pwd)/$(basename "$linnet")
if [ -z "$dry_run" ]; then
  mkdir -p "$(dirname "$output")" || die "the folder $(dirname "$output") cannot be made"
  output=$(cd "$(dirname "$output")" && pwd)/$(basename "$output")
fi

# What was asked for, to know whether DATA is its result.
asked() { printf '%s\n' "wsj0 $wsj0" "wsj1 $wsj1" "sets $sets" "noise $noise" "lm ${no_lm:-wanted}" "missing ${allow_missing:-no}" "stand-in ${stand_in:-no}"; }
if [ -z "$dry_run" ] && [ -e "$output" ]; then
  [ -f "$output/.asked" ] || die "$output exists and was not written by this script; give another --output"
  if [ "$(asked)" = "$(cat "$output/.asked")" ]; then say "$output is complete"; exit 0; fi
  die "$output was made with other options: give another --output, or remove it first"
fi

# ---- one run at a time, in a folder beside DATA ----------------------------------------------------------------------------------

if [ -n "$dry_run" ]; then
  new=$(mktemp -d)
  trap 'rm -rf "$new"' EXIT
else
  only_run "$output"
  new=$output.new
  [ ! -e "$new" ] || [ -f "$new/.asked" ] || die "$new exists and was not written by this script; remove it or give another --output"
  rm -rf "$new"
  mkdir "$new"
  asked > "$new/.asked"
fi
mkdir "$new/work"
cd "$new/work"
set -E
trap 'warn "stopped: the command in line $LINENO failed; its message is above. $output was not made"' ERR

# ---- the files of the discs ------------------------------------------------------------------------------------------------------

list_files() { # ROOT CORPUS
  find -L "$1" -type f ! -path $'*\n*' ! -path $'*\t*' \( -iname '*.wv1' -o -iname '*.dot' -o -iname '*.ndx' -o -ipath '*/base_lm/*' -o -name STANDIN \) \
    2>> find.err | ROOT=$1 awk -v corpus="$2" -f "$here/index.awk"
}
{
  [ -z "$wsj0" ] || list_files "$wsj0" wsj0 || true
  [ -z "$wsj1" ] || [ "$wsj1" = "$wsj0" ] || list_files "$wsj1" wsj1 || true
} | sort -u > index
if [ -s find.err ]; then
  warn "$(wc -l < find.err | tr -d ' ') folders could not be read; the first: $(head -n 1 find.err)"
fi
n_sounds=$(awk -F'\t' '$1 ~ /\.wv1$/ { n++ } END { print n + 0 }' index)
roots="${wsj0:-}${wsj0:+${wsj1:+ and }}${wsj1:-}"
[ "$n_sounds" -gt 0 ] || die "no .wv1 file lies under $roots; a folder with discs such as 11-1.1, or with wsj0/ and wsj1/, is wanted"
discs=$(awk -F'\t' '$2 != "-" { print $2 }' index | sort -u -t_ -k1,1n -k2,2n | sed 's/_/-/; s/_/./' | paste -s -d ' ' -)
say "$n_sounds .wv1 files; discs: ${discs:-without names}"

# A stand-in has its own numbers of utterances: lines "SET NUMBER".
standin_files=$(awk -F'\t' '$1 ~ /(^|\/)standin$/ { print $3 }' index)
if [ -n "$standin_files" ]; then
  : > standin
  while IFS= read -r file; do cat "$file" >> standin; done <<< "$standin_files"
fi
if [ -n "$stand_in" ] || [ -n "$standin_files" ]; then
  warn "**** THIS IS A STAND-IN, NOT THE WALL STREET JOURNAL CORPUS: results on it say nothing about that corpus ****"
fi
# expect SET: sets `expected`; - if any number will do
expect() {
  set_source "$1"
  if [ -n "$standin_files" ]; then expected=$(awk -v set="$1" '$1 == set { n = $2 } END { print (n == "" ? "-" : n) }' standin)
  elif [ -n "$stand_in" ]; then expected=-; fi
}

# ---- sets ------------------------------------------------------------------------------------------------------------------------

disc_name() { local name=${1/_/-}; echo "${name/_/.}"; } # 11_13_1: 11-13.1

# find_index DISC:KEY: the index file, on its disc, else on any
find_index() {
  awk -F'\t' -v disc="${1%%:*}" -v key="${1#*:}" '
    $1 == key { if ($2 == disc) { print $3; found = 1; exit } if (any == "") any = $3 }
    END { if (!found && any != "") print any }' index
}

# select_set SET: SET.list, utterance<tab>path, sorted; problems in SET.problems
select_set() {
  local files=() source file
  expect "$1"
  : > "$1.problems"
  : > "$1.list"
  for source in ${ndx[@]+"${ndx[@]}"}; do
    file=$(find_index "$source")
    if [ -z "$file" ]; then
      warn "$1: the index file ${source#*:} of disc $(disc_name "${source%%:*}") is not under $roots; is that disc there?"
      failed=1
      return
    fi
    files+=("$file")
  done
  awk -v problems="$1.problems" -v wrong=11_2_1:wsj0/si_tr_s/401/ -v folder="$folder" -f "$here/select.awk" index ${files[@]+"${files[@]}"} |
    sort > "$1.list"
}

# first_of FILE KIND: the first ten of a kind of problem, on one line each, and how many more there are
first_of() {
  awk -F'\t' -v kind="$2" -v list="${dry_run:+run without --dry-run to get the whole list}" -v file="$new/work/$1" '
    $1 == kind { if (++n <= 10) { sub(/^[^\t]*\t/, ""); print "    " $0 } }
    END { if (n > 10) print "    and " n - 10 " more: " (list == "" ? file : list) }' "$1"
}
n_of() { awk -F'\t' -v kind="$2" '$1 == kind { n++ } END { print n + 0 }' "$1"; }
# note FILE KIND WHAT [REMARK]: the problems of a kind, if there are any
note() {
  local n
  [ -s "$1" ] || return 0
  n=$(n_of "$1" "$2")
  [ "$n" -gt 0 ] || return 0
  warn "$3: $n${4-}"
  first_of "$1" "$2" >&2
}
# discs_of FILE: on which discs the missing files are, " (11-1.1: 2380, 11-2.1: 2400)"
discs_of() {
  awk -F'\t' '
    $1 == "missing" { d = $2; if (sub(/[ \t]*:.*/, "", d)) { gsub(/[-.]/, "_", d); sub(/_/, "-", d); sub(/_/, ".", d) } else d = "no disc"
      if (!n[d]++) name[++k] = d }
    END { for (i = 1; i <= k; i++) printf "%s %s: %d", (i == 1 ? " (disc" : ","), name[i], n[name[i]]; if (k) printf ")" }' "$1"
}

failed=
for set in ${sets//,/ }; do
  select_set "$set"
  found=$(wc -l < "$set.list" | tr -d ' ')
  say "$set: $found utterances"
  p=$set.problems
  [ ! -s "$p" ] || note "$p" missing "$set: lines of the index without a .wv1 file" "$(discs_of "$p")"
  note "$p" bad "$set: lines of the index, or files, that are no utterance"
  note "$p" twice "$set: utterances listed twice, of which the first is used"
  note "$p" by-name "$set: files in another folder than the index says, found by their names"
  if [ "$expected" != - ] && [ "$found" != "$expected" ]; then
    warn "$set has $found utterances instead of $expected"
    failed=1
  elif [ "$found" = 0 ]; then
    warn "$set has no utterances"
    failed=1
  fi
done

# ---- transcripts -----------------------------------------------------------------------------------------------------------------

for set in ${sets//,/ }; do cut -f1 "$set.list"; done | sort -u > utterances
awk -v problems=transcripts.problems -f "$here/transcripts.awk" index utterances > raw
touch transcripts.problems
awk -v noise="$noise" -v report=tokens -f "$here/text.awk" raw > text
touch tokens
note transcripts.problems none "utterances without a transcript in a .dot file"
note transcripts.problems silent "transcripts without sound"
note transcripts.problems differs "utterances with another transcript in another file; the first is used"
note transcripts.problems line "lines of .dot files without an utterance's name in parentheses"
note transcripts.problems unreadable ".dot files that cannot be read"
note tokens odd "tokens of transcripts with characters that no word has"
note tokens empty "utterances without words, which have an empty transcript"
[ "$(n_of transcripts.problems none)" = 0 ] || failed=1

if [ -n "$failed" ] && [ -z "$allow_missing" ]; then
  [ -n "$dry_run" ] || warn "the lists lie in $new/work"
  die "stopped: a model trained on this would not be one of the Wall Street Journal corpus. --allow-missing goes on with what is there"
fi

# The words that others count in these sets: a difference means that the transcripts are read in another way.
others_count() { case $1 in test_dev93) echo 8234 ;; test_eval92) echo 5643 ;; esac; }

# write_set SET: its data directory
write_set() {
  local dir=$new/$1 words others
  mkdir "$dir"
  cut -d ' ' -f1 text | join -t $'\t' - "$1.list" > list # those with a transcript
  tr '\t' ' ' < list > "$dir/wav.scp"
  cut -f1 list | join - text > "$dir/text"
  awk '{ print $1, substr($1, 1, 3) }' list > "$dir/utt2spk"
  words=$(awk '{ n += NF - 1 } END { print n + 0 }' "$dir/text")
  others=$(others_count "$1")
  [ -z "$others" ] || [ -n "$standin_files$stand_in$allow_missing" ] || [ "$words" = "$others" ] ||
    warn "$1 has $words words; published results count $others: are these its transcripts?"
  printf '%s\t%s\t%s\t%s\n' "$1" "$(wc -l < list | tr -d ' ')" "$(cut -c1-3 list | sort -u | wc -l | tr -d ' ')" "$words" >> sets
}
printf 'set\tutterances\tspeakers\twords\n' > sets
if [ -z "$dry_run" ]; then
  for set in ${sets//,/ }; do
    expect "$set"
    write_set "$set"
  done
fi

# ---- language models -------------------------------------------------------------------------------------------------------------

# Of the files of base_lm some are compress'd, some gzip'd and some plain, and some begin with comments: what counts is \data\ to \end\.
# lm_file NAME: where it lies
lm_file() {
  awk -F'\t' -v name="$1" '{ key = $1; sub(/.*\//, "", key); sub(/\.(z|gz|arpa)$/, "", key) }
    $1 ~ /\/base_lm\// && key == name { if ($1 ~ /^wsj1/) { print $3; found = 1; exit } if (any == "") any = $3 }
    END { if (!found && any != "") print any }' index
}
# copy_lm NAME MODEL: lm/MODEL.arpa.gz
copy_lm() {
  local file
  file=$(lm_file "$1")
  if [ -z "$file" ]; then warn "the language model $1 is not on the discs (13-32.1/wsj1/doc/lng_modl/base_lm): no lm/$2.arpa.gz"; return; fi
  if [ -n "$dry_run" ]; then say "lm/$2.arpa.gz: from $file"; return; fi
  gzip -dcf < "$file" 2> lm.err | tr -d '\r' | sed -n '/^\\data\\/,/^\\end\\/p' | gzip -n > "$new/lm/$2.arpa.gz" || true
  if ! "$linnet" ngram info "$new/lm/$2.arpa.gz" > lm.log 2>> lm.err; then
    rm "$new/lm/$2.arpa.gz"
    warn "the language model $file cannot be read and is left out: $(head -n 1 lm.err)"
    return
  fi
  say "lm/$2.arpa.gz"
}
# prune_lm FROM TO: the trigrams without which the perplexity rises by less than 1e-7
prune_lm() {
  [ -f "$new/lm/$1.arpa.gz" ] || return 0
  "$linnet" ngram prune -q "$new/lm/$1.arpa.gz" --entropy 1e-7 | gzip -n > "$new/lm/$2.arpa.gz"
  say "lm/$2.arpa.gz"
}
if [ -z "$no_lm" ] && [ -n "$wsj1$(lm_file bcb20onp)" ]; then
  mkdir "$new/lm"
  copy_lm bcb05onp bg_5k
  copy_lm tcb05cnp tg_5k
  copy_lm bcb20onp bg_20k
  copy_lm tcb20onp tg_20k
  prune_lm tg_5k tgpr_5k
  prune_lm tg_20k tgpr_20k
fi

# ---- DATA ------------------------------------------------------------------------------------------------------------------------

[ -z "$dry_run" ] || { say "dry run: nothing was written"; exit 0; }
{
  asked
  [ -z "$standin_files$stand_in" ] || echo "THIS IS A STAND-IN, NOT THE WALL STREET JOURNAL CORPUS"
  echo
  cat sets
  echo
  echo "tokens of all transcripts:"
  awk -F'\t' '$1 ~ /^[0-9]+$/' tokens | sort -k2
  echo
  echo "problems:"
  for set in ${sets//,/ }; do cut -f1 "$set.problems" | sort | uniq -c | awk -v set="$set" '{ print $1 "\t" set ": " $2 }'; done
  cut -f1 transcripts.problems | sort | uniq -c | awk '{ print $1 "\ttranscripts: " $2 }'
} > "$new/report.txt"
cat sets
cd "$new"
rm -r work
mv "$new" "$output"
say "$output is complete; report.txt has the numbers"
