#!/usr/bin/env bash
# A stand-in for the discs of the Wall Street Journal corpus: other speech in the same folders and formats, to run and test the recipe.
#
#   recipes/wsj/standin.sh --data DIR,... [--audio-root DIR] --output TREE [--layout discs|flat|upper] [--jobs N]
#   recipes/wsj/standin.sh --train DIR,... --dev DIR,... --test DIR,... [--audio-root DIR] --output TREE ...
#   recipes/wsj/standin.sh --synthesize N [--text FILE] --output TREE ...
#                          [--linnet PROGRAM] [--tools build/release/tests/recipes]
#
# DIR: a data directory (wav.scp, text, utt2spk; upper-case words); paths in wav.scp are relative to --audio-root (default: the parent of
# the DIR). --data: four speakers of five are for training, the others for dev and test. --synthesize: N sentences by the voices of flite
# (tools/deps.sh standin), from FILE, one a line, or drawn from the word model of linnet.
# TREE: shorten'd SPHERE files (.wv1), .dot, .ptx, .ndx, lists of speakers and language models of the training texts, in numbered discs, in one
# tree (flat), or on discs in upper case, and a file STANDIN with the number of utterances of each set.
# If run again after an interruption, existing sounds are kept. Utterances whose sound or text cannot be used are reported and left out.
# --tools: the folder of the program sphere of the tests; `make build/release/tests/recipes/sphere` makes it.
. "$(dirname "$0")/../common.sh"

data= train= dev= test= audio_root= output= layout=discs synthesize= text= jobs= tools=build/release/tests/recipes work=.
flags=" "
values=" data train dev test audio-root output layout synthesize text jobs linnet tools "
options "$@"
export LC_ALL=C
say() { echo "standin.sh: $*"; }
warn() { echo "standin.sh: $*" >&2; }
absolute() { echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"; }
here=$(cd "$(dirname "$0")" && pwd)

[ -n "$output" ] || die "where does the stand-in go? give --output TREE"
[ -n "$data$synthesize" ] || { [ -n "$train" ] && [ -n "$dev" ] && [ -n "$test" ]; } ||
  die "from which speech? give --data DIR, or --train, --dev and --test, or --synthesize N"
case $layout in discs|flat|upper) ;; *) die "--layout is discs, flat or upper, not '$layout'" ;; esac
[ -z "$synthesize" ] || is_count "$synthesize" --synthesize
[ -z "$jobs" ] || is_count "$jobs" --jobs
jobs=${jobs:-$(nproc)}
[ -x "$tools/sphere" ] || die "$tools/sphere does not exist; run make $tools/sphere"
tools=$(cd "$tools" && pwd)
linnet=$(absolute "$linnet")
[ -z "$text" ] || text=$(absolute "$text")
[ -z "$audio_root" ] || audio_root=$(cd "$audio_root" && pwd)
mkdir -p "$(dirname "$output")"
output=$(absolute "$output")
[ ! -e "$output" ] || die "$output exists; give another --output, or remove it"
only_run "$output"
new=$output.new
asked() { printf '%s\n' "data $data" "train $train" "dev $dev" "test $test" "root $audio_root" "layout $layout" "synthesize $synthesize $text"; }
if [ -e "$new" ] && [ "$(asked)" != "$(cat "$new/work/asked" 2> /dev/null)" ]; then
  die "$new is of an interrupted run with other options, or not of this script; remove it, or give another --output"
fi
mkdir -p "$new/work"
asked > "$new/work/asked"
ended() { # also when it is killed: the parts end too
  [ ! -d "$new/work" ] || touch "$new/work/stopped"
  rm -f "$locked"
}
trap ended EXIT
set -E
trap 'warn "stopped: the command in line $LINENO failed; its message is above. Run the same command again to go on"' ERR

# ---- the speech: work/source, "ROLE<tab>SPEAKER<tab>SOUND<tab>WORDS" -----------------------------------------------------------------

# read_data ROLE DIR
read_data() {
  [ -f "$2/wav.scp" ] && [ -f "$2/text" ] || die "$2 is not a data directory: it has no wav.scp or no text"
  local root speakers=$2/utt2spk
  [ -f "$speakers" ] || speakers=/dev/null
  root=${audio_root:-$(cd "$2/.." && pwd)}
  ROOT=$root awk -v role="$1" '
    { rest = $0; if (!sub(/^[^ \t]+[ \t]+/, "", rest)) rest = ""; sub(/[ \t\r]+$/, "", rest) }
    kind == "speakers" { speaker[$1] = rest }
    kind == "text" { gsub(/[ \t]+/, " ", rest); text[$1] = toupper(rest) }
    kind == "sounds" {
      if (rest !~ /^\//) rest = ENVIRON["ROOT"] "/" rest
      print role "\t" ($1 in speaker ? speaker[$1] : $1) "\t" rest "\t" text[$1]
    }' kind=speakers "$speakers" kind=text "$2/text" kind=sounds "$2/wav.scp"
}

# in_parts FUNCTION FILE: runs FUNCTION LINE for each line of a file, a share of them in each of $jobs processes; all end when one fails
in_parts() {
  local part line failed=
  rm -f stopped
  for part in $(seq "$jobs"); do
    awk -v part="$part" -v jobs="$jobs" 'NR % jobs == part - 1' "$2" |
      while IFS= read -r line; do
        [ ! -e stopped ] || exit 1
        "$1" "$line" || { touch stopped; exit 1; }
      done &
    pids[part]=$!
  done
  for part in $(seq "$jobs"); do wait "${pids[part]}" || failed=yes; done
  [ -z "$failed" ] || die "stopped; run the same command again to go on"
}

# The sentences and their voices: work/spoken, "ROLE<tab>SPEAKER<tab>SOUND<tab>WORDS"
synthesise() {
  command -v flite > /dev/null || die "--synthesize needs the program flite: tools/deps.sh standin"
  mkdir -p synthesised
  if [ -z "$text" ]; then model=$(word_model) || exit 1; fi
  if [ -n "$text" ]; then awk -v n="$synthesize" 'NF && k++ < n' "$text"
  else "$linnet" ngram generate --seed 1 --count $((synthesize * 4 + 100)) "$model" | awk -v n="$synthesize" 'NF > 2 && NF < 20 && !/[.<0-9]/ && k++ < n'
  fi > chosen
  awk 'BEGIN { n = split("slt:1.0:1.0 rms:1.0:1.0 awb:1.0:1.0 kal16:1.0:1.0 slt:1.15:0.9 rms:0.85:1.1 awb:1.2:1.05 kal16:1.25:0.95 slt:0.85:1.1 rms:1.2:0.9", voice, " ") }
    { v = voice[(NR - 1) % n + 1]; name = v; gsub(/[:.]/, "", name); printf "split\t%s\tsynthesised/%s-%05d.wav\t%s\n", name, name, NR, toupper($0) > "spoken"
      print v "\t" sprintf("synthesised/%s-%05d.wav", name, NR) "\t" $0 }' chosen > sentences
  in_parts speak sentences
  sed "s|\tsynthesised/|\t$PWD/synthesised/|" spoken
}
# The mean pitch of the voices, in Hz.
pitch_of() { case $1 in slt) echo 170 ;; rms) echo 95 ;; awb) echo 120 ;; *) echo 105 ;; esac; }
speak() {
  local voice sound words name pitch stretch
  IFS=$'\t' read -r voice sound words <<< "$1"
  [ ! -f "$sound" ] || return 0
  IFS=: read -r name pitch stretch <<< "$voice"
  flite -voice "$name" --setf int_f0_target_mean="$(awk -v a="$(pitch_of "$name")" -v b="$pitch" 'BEGIN { print a * b }')" \
    --setf duration_stretch="$stretch" -t "$words" -o "$sound.part" && mv "$sound.part" "$sound"
}
# The word model of the source tree, or the installed one.
word_model() {
  local file
  for file in "$here/../../share/linnet/en/words.lm" "$(dirname "$linnet")/../share/linnet/en/words.lm"; do
    if [ -f "$file" ]; then echo "$file"; return; fi
  done
  die "there is no words.lm to draw sentences from; give --text FILE"
}

list() { # ROLE DIR,...
  local dir dirs
  IFS=, read -r -a dirs <<< "$2"
  for dir in ${dirs[@]+"${dirs[@]}"}; do read_data "$1" "$dir"; done
}
{
  list split "$data"
  list train "$train"
  list dev "$dev"
  list test "$test"
} > "$new/work/all"
cd "$new/work"
[ -z "$synthesize" ] || synthesise >> all
# Of five speakers, the fourth is for dev and the fifth for test; of fewer, the last two.
awk -F'\t' '$1 == "split" { print $2 }' all | sort -u > split
n=$(wc -l < split | tr -d ' ')
[ "$n" = 0 ] || [ "$n" -ge 3 ] || die "$n speakers cannot be shared out between training, dev and test: three are needed"
awk -F'\t' -v n="$n" '
  FILENAME == "split" { i = n < 5 ? NR - n + 4 : (NR - 1) % 5; role[$1] = i == 3 ? "dev" : i == 4 ? "test" : "train"; next }
  { r = $1 == "split" ? role[$2] : $1; sub(/^[^\t]*/, r); print }' split all | sort -s -t $'\t' -k1,1 -k2,2 > source
say "$(awk -F'\t' '{ if (!(($1, $2) in seen)) { seen[$1, $2] = 1; k[$1]++ } n[$1]++ }
  END { print n["train"] + 0 " utterances of " k["train"] + 0 " speakers for training, " n["dev"] + 0 " of " k["dev"] + 0 " for dev, " n["test"] + 0 " of " k["test"] + 0 " for test" }' source)"
for role in train dev test; do grep -q "^$role" source || die "there is no utterance for $role"; done

# ---- sounds ------------------------------------------------------------------------------------------------------------------------

: > skipped
awk -F'\t' -v skipped=skipped -f "$here/plan.awk" source source > plan
[ ! -s skipped ] || warn "$(wc -l < skipped | tr -d ' ') utterances are left out, whose text is not in upper-case words; the first: $(head -n 1 skipped)"
[ -s plan ] || die "no utterance is left"

# place DISC PATH: where the layout has it, from the root of the tree
place() {
  case $layout in
    discs) echo "$1/$2" ;;
    flat) echo "$2" ;;
    upper) echo "$1/$2" | tr 'a-z' 'A-Z' ;;
  esac
}
encode() { # a line of the plan
  local disc path sound rest to id
  IFS=$'\t' read -r disc path sound rest <<< "$1"
  to=$new/$(place "$disc" "$path.wv1")
  id=${path##*/}
  [ ! -f "$to" ] || return 0
  local error status=0
  error=$("$tools/sphere" "$sound" "$to.part" database=STANDIN speaker="${id:0:3}" utterance="$id" 2>&1) || status=$?
  [ "$status" != 0 ] || mv "$to.part" "$to" || status=3
  rm -f "$to.part"
  case $status in
    0) ;;
    1) printf '%s\t%s\n' "$path" "$error" >> failed ;; # this sound cannot be read
    3) warn "$error; is the disk full?"; return 1 ;;
    *) warn "$error"; return 1 ;;
  esac
}
while IFS=$'\t' read -r disc path; do place "$disc" "$path"; done < <(awk -F'\t' '{ sub(/\/[^\/]*$/, "", $2); print $1 "\t" $2 }' plan | sort -u) > folders
(cd "$new" && tr '\n' '\0' < work/folders | xargs -0 mkdir -p)
: > failed
in_parts encode plan
if [ -s failed ]; then
  warn "$(wc -l < failed | tr -d ' ') sounds cannot be read and are left out; the first: $(head -n 1 failed)"
  awk -F'\t' 'NR == FNR { bad[$1] = 1; next } !($2 in bad)' failed plan > kept
  mv kept plan
fi
[ -s plan ] || die "no sound could be read"
# One second-microphone file for each disc: the recipe must not take it.
awk -F'\t' '!seen[$1]++ { print $1 "\t" $2 }' plan | while IFS=$'\t' read -r disc path; do
  cp "$new/$(place "$disc" "$path.wv1")" "$new/$(place "$disc" "$path.wv2")"
done

# ---- texts -------------------------------------------------------------------------------------------------------------------------

# File<tab>line, where the layout has it
awk -F'\t' -f "$here/files.awk" plan | awk -F'\t' -v layout="$layout" '{ at = layout == "flat" ? $2 : $1 "/" $2; if (layout == "upper") at = toupper(at); sub(/^[^\t]*\t[^\t]*\t/, ""); print at "\t" $0 }' | sort -s -t $'\t' -k1,1 > placed
cut -f1 placed | sort -u | sed 's|/[^/]*$||' | sort -u > folders
(cd "$new" && tr '\n' '\0' < work/folders | xargs -0 mkdir -p)
(cd "$new" && awk -F'\t' '$1 != at { if (at != "") close(at); at = $1 } { sub(/^[^\t]*\t/, ""); print > at }' work/placed)

# ---- language models of the training texts -----------------------------------------------------------------------------------------

# As on the discs: some compress'd or gzip'd, some plain, one with comments before \data\.
awk -F'\t' '$4 ~ /^train/ { print $6 }' plan > texts
tr ' ' '\n' < texts | sort | uniq -c | sort -k1,1nr -k2 | awk '{ print $2 }' > words
model() { # ORDER WORDS: ARPA on standard output
  head -n "$2" words > vocabulary
  "$linnet" ngram count -q --order "$1" --vocabulary vocabulary texts | sed 's/<unk>/<UNK>/g'
}
n_words=$(wc -l < words | tr -d ' ')
few=$(((n_words + 1) / 2 < 5000 ? (n_words + 1) / 2 : 5000)) # so that a tiny one also has words outside its vocabulary
lm=$new/$(place 13-32.1 wsj1/doc/lng_modl/base_lm)
mkdir -p "$lm"
to() { echo "$lm/$(if [ "$layout" = upper ]; then echo "$1" | tr 'a-z' 'A-Z'; else echo "$1"; fi)"; }
pack() { if command -v compress > /dev/null; then compress -c; else gzip -n; fi; }
model 2 "$few" | pack > "$(to bcb05onp.z)"
{ printf 'A trigram of a stand-in.\n\0\001\n'; model 3 "$few"; } | gzip -n > "$(to tcb05cnp.z)"
model 2 20000 | pack > "$(to bcb20onp.z)"
{ printf '# A trigram of a stand-in\n\n'; model 3 20000; } > "$(to tcb20onp.z)"

# ---- the tree ----------------------------------------------------------------------------------------------------------------------

awk -F'\t' '
  { n[$4]++ }
  END {
    print "train_si84", n["train0"] + 0
    print "train_si284", n["train0"] + n["train1"]
    print "test_dev93", n["dev20"] + 0
    print "test_dev93_5k", n["dev05"] + 0
    print "test_eval92", n["eval92"] + 0
    print "test_eval92_5k", n["eval92_5k"] + 0
    print "test_eval93", n["eval93"] + 0
    print "test_eval93_5k", n["eval93_5k"] + 0
    print "dev_dt_20", n["dev20"] + 0
    print "dev_dt_05", n["dev05"] + 0
  }' plan > "$new/STANDIN"
cat "$new/STANDIN"
cd "$new"
rm -r work
mv "$new" "$output"
say "$output is complete"
