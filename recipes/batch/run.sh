#!/usr/bin/env bash
# Transcribes many sound files in parts: on this machine, on several, or as an array of Slurm jobs. Run it again to continue.
#
#   recipes/batch/run.sh --input DIR|--list FILE --output DIR [--parts 16] [--jobs 1] [--threads 0] [--hosts HOST,...] [-- OPTIONS]
#   recipes/batch/run.sh --input DIR|--list FILE --output DIR [--parts 16] --part K [--threads 0] [-- OPTIONS]         one part
#   recipes/batch/run.sh --output DIR --report                                                                       what is left
#                        [--linnet PROGRAM]
#
# DIR is searched for sound files (wav, flac, ogg, opus, mp3, sph, wv1, ...); FILE names one on each line. OPTIONS are those of linnet
# transcribe (--model, --words, --format json, ...). The results are those of one `linnet transcribe --output-dir DIR` with all files.
# The files are cut into --parts of about the same number of bytes; --jobs of them run at a time on each machine, each with --threads
# (0: all cores). --hosts: with GNU parallel on these machines by ssh (":" is this one), which need the same folders and program at
# the same places. recipes/batch/slurm.sh is an example for sbatch.
# DIR/.batch has the parts, their messages (logs/K) and statuses (done/K). A part that runs again skips files whose result is newer than
# the sound (linnet transcribe --skip-done). A file that fails is reported, and the others are transcribed.
extra=()
for ((i = 1; i <= $#; i++)); do
  if [ "${!i}" = -- ]; then extra=("${@:i+1}"); set -- "${@:1:i-1}"; break; fi
done
. "$(dirname "$0")/../common.sh"

input= list= output= parts=16 jobs=1 hosts= part= report= work=.
flags=" report "
values=" input list output parts jobs threads hosts part linnet "
options "$@"
for o in parts jobs; do is_count "${!o}" "--$o"; done
[[ $threads =~ ^[0-9]+$ ]] || die "--threads is a number, not '$threads'"
[ -n "$output" ] || die "where do the results go? give --output DIR"
batch=$output/.batch

# ---- parts -----------------------------------------------------------------------------------------------------------------------

# sizes: "BYTES<tab>PATH" of every file
sizes() {
  if [ -n "$list" ]; then
    tr '\n' '\0' < "$list" | xargs -0 -r stat -L -c $'%s\t%n' -- 2> "$new/absent" || true
  else
    find -L "$input" -type f ! -path $'*\n*' ! -path "$output_full/*" -printf '%s\t%p\n' | LC_ALL=C awk -F'\t' '
      BEGIN { n = split("wav flac ogg oga opus mp3 aiff aif au snd caf w64 rf64 sph wv1 wv2 nist m4a mp4 webm mkv aac wma amr 3gp", x, " ")
        for (i = 1; i <= n; i++) sound[x[i]] = 1 }
      { e = tolower($0); if (sub(/.*\./, "", e) && (e in sound)) print }'
  fi
}

# cut: makes .batch/{root,parts/K}. The same files give the same parts, so several machines may do it at once: the first one wins.
cut_parts() {
  local k
  [ -n "$input$list" ] || die "which files? give --input DIR or --list FILE"
  [ -z "$input" ] || [ -d "$input" ] || die "$input is not a folder"
  [ -z "$list" ] || [ -f "$list" ] || die "$list does not exist"
  [ -z "$input" ] || input=$(cd "$input" && pwd)
  mkdir -p "$output"
  output_full=$(cd "$output" && pwd)
  new=$(mktemp -d "$output/.batch-XXXXXX")
  trap 'rm -rf "$new"' EXIT
  mkdir "$new/parts" "$new/logs" "$new/done"
  if [ -n "$list" ]; then # absolute paths, in which no "#" begins a line
    HERE=$PWD LC_ALL=C awk 'NF && !/^#/ { print /^\// ? $0 : ENVIRON["HERE"] "/" $0 }' "$list" > "$new/list"
    list=$new/list
  fi
  sizes | LC_ALL=C sort -t $'\t' -k1,1nr -k2 > "$new/sizes"
  if [ -s "$new/absent" ]; then
    echo "run.sh: $(wc -l < "$new/absent") files of the list cannot be read; the first: $(head -n 1 "$new/absent")" >&2
  fi
  [ -s "$new/sizes" ] || die "there is no sound file in ${input:-the list}"
  # the folder that all have in common
  if [ -n "$input" ]; then echo "$input" > "$new/root"; else
    cut -f2- "$new/sizes" | LC_ALL=C awk '
      { sub(/[^\/]*$/, ""); if (NR == 1) { c = $0; next } while (substr($0, 1, length(c)) != c) sub(/[^\/]*\/$/, "", c) }
      END { print c }' > "$new/root"
  fi
  cut -f2- "$new/sizes" | LC_ALL=C awk '{ name = $0; sub(/\.[^.\/]*$/, "", name); if (name in first) { print first[name]; print; exit } first[name] = $0 }' > "$new/twice"
  if [ -s "$new/twice" ]; then
    k="$(sed -n 1p "$new/twice") and $(sed -n 2p "$new/twice")"
    die "$k would have the same result: rename one of them, or use another --output for each"
  fi
  # the largest first, forwards and backwards over the parts
  cut -f2- "$new/sizes" | LC_ALL=C awk -v n="$parts" -v out="$new/parts" '{
    k = (NR - 1) % (2 * n); k = k < n ? k + 1 : 2 * n - k
    print >> (out "/" k); close(out "/" k) }'
  find "$new/parts" -type f | wc -l > "$new/n"
  rm -f "$new/list" "$new/absent" "$new/twice"
  # The same files and parts as before: keep what is done.
  if [ -d "$batch" ]; then
    if cmp -s "$new/sizes" "$batch/sizes" && cmp -s "$new/n" "$batch/n"; then return; fi
    if [ -n "$part" ]; then
      echo "run.sh: the files are others than those of $batch, which remains; run without --part to cut them again" >&2
      return
    fi
    rm -rf "$batch.old"
    mv "$batch" "$batch.old"
  fi
  mv -T "$new" "$batch" 2> /dev/null || [ -d "$batch" ] || die "cannot write in $output"
  rm -rf "$batch.old"
}

# ---- one part --------------------------------------------------------------------------------------------------------------------

# run_part K: exit status of linnet; the lock ends with the process that calls it
run_part() {
  local k=$1 status=0 fd
  [ -f "$batch/parts/$k" ] || { [ "$k" -le "$parts" ] 2> /dev/null && return 0; die "there is no part $k of $(cat "$batch/n")"; }
  if command -v flock > /dev/null; then
    exec {fd}> "$batch/parts/.lock-$k"
    flock -n "$fd" || { echo "run.sh: part $k is running already" >&2; return 0; }
  fi
  "$linnet" transcribe -q --files-from "$batch/parts/$k" --input-root "$(cat "$batch/root")" --output-dir "$output" --skip-done --jobs "$threads" \
    "${extra[@]}" > "$batch/logs/$k" 2>&1 || status=$?
  [ "$status" = 0 ] || cat "$batch/logs/$k" >&2
  case $status in
    0|1) echo "$status" > "$batch/done/$k.new" && mv "$batch/done/$k.new" "$batch/done/$k" ;;
    *) rm -f "$batch/done/$k" ;;
  esac
  return "$status"
}

# ---- what is left ----------------------------------------------------------------------------------------------------------------

report_all() {
  local k n ok=0 bad=0 left=0
  [ -f "$batch/n" ] || die "$output has no batch; give --input DIR or --list FILE"
  n=$(cat "$batch/n")
  for ((k = 1; k <= n; k++)); do
    case $(cat "$batch/done/$k" 2> /dev/null) in
      0) ok=$((ok + 1)) ;;
      1) bad=$((bad + 1)) ;;
      *) left=$((left + 1)) ;;
    esac
  done
  echo "$(wc -l < "$batch/sizes") files in $n parts: $ok done, $bad with files that failed, $left not done"
  if [ "$bad" -gt 0 ]; then
    for ((k = 1; k <= n; k++)); do case $(cat "$batch/done/$k" 2> /dev/null) in 1) cat "$batch/logs/$k" ;; esac; done > "$output/failed.txt"
    echo "the messages are in $output/failed.txt; run again to try these files again"
  else
    rm -f "$output/failed.txt"
  fi
  [ $((bad + left)) = 0 ]
}

if [ -n "$report" ]; then report_all; exit; fi
if [ -n "$part" ]; then
  is_count "$part" --part
  [ -d "$batch" ] || cut_parts
  run_part "$part"
  exit
fi

cut_parts
n=$(cat "$batch/n")
each=(bash "$0" --output "$output" --parts "$parts" --threads "$threads" --linnet "$linnet")
if [ -n "$hosts" ]; then
  command -v parallel > /dev/null || die "--hosts needs GNU parallel: apt-get install parallel"
  seq "$n" | parallel --no-notice --sshlogin "$hosts" --jobs "$jobs" --workdir "$PWD" "$(printf '%q ' "${each[@]}") --part {} -- $(printf '%q ' "${extra[@]}")" || true
elif [ "$jobs" = 1 ]; then
  for ((k = 1; k <= n; k++)); do (run_part "$k") || { [ $? -ne 130 ] || exit 130; }; done
else
  seq "$n" | xargs -P "$jobs" -I '{}' "${each[@]}" --part '{}' -- "${extra[@]}" || true
fi
report_all
