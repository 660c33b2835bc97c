# [native] recipes/batch: the results of parts are those of one command; restarting; what fails.
. tests/app/common.sh
[ "${CONFIG:-release}" = release ] || finish

recipe() { script batch/run "$@"; }
same() { ok "$1" diff -r -x .batch -x failed.txt "$tmp/whole" "$tmp/$2"; }

use_model
d="$tmp/my sounds"
mkdir -p "$d/a/b" "$d/c"
for i in 1 2 3; do "$SOUND" "$d/a/b/x $i.wav" seconds=0.$((i + 3)) seed=$i; done
for i in 4 5 6; do "$SOUND" "$d/c/#$i.wav" seconds=0.$i seed=$i; done
echo "no sound" > "$d/c/notes.txt"
exits "one command" 0 run transcribe -q --output-dir "$tmp/whole" --input-root "$d" "$d"/a/b/*.wav "$d"/c/*.wav

exits "parts" 0 recipe --input "$d" --output "$tmp/parts" --parts 4
has "parts: report" "$out" "6 files in 4 parts: 4 done, 0 with files that failed, 0 not done"
same "parts: the same results" parts
before=$(ls -l --time-style=full-iso "$tmp/parts/a/b")
recipe --input "$d" --output "$tmp/parts" --parts 4
is "again: nothing is done" "$before" "$(ls -l --time-style=full-iso "$tmp/parts/a/b")"
rm "$tmp/parts/c/#5.txt" "$tmp/parts/.batch/done/"*
exits "interrupted" 0 recipe --input "$d" --output "$tmp/parts" --parts 4 --jobs 2
same "interrupted: the missing one is made, two parts at a time" parts
is "interrupted: the others stay" "$before" "$(ls -l --time-style=full-iso "$tmp/parts/a/b")"
"$SOUND" "$d/c/7.wav" seconds=0.5 seed=7
recipe --input "$d" --output "$tmp/parts" --parts 4
has "a new file" "$out" "7 files in 4 parts: 4 done"
ok "a new file is done" test -s "$tmp/parts/c/7.txt"
rm "$d/c/7.wav"

mkdir "$tmp/many"
for i in $(seq 40); do cp "$d/c/#4.wav" "$tmp/many/$i.wav"; done
has "more parts than a process may open files" "$(ulimit -n 32; script batch/run --input "$tmp/many" --output "$tmp/many-parts" --parts 40; echo "$out")" \
    "40 files in 40 parts: 40 done"

# as the jobs of an array, in any order, the first of which cuts; with options of linnet
for k in 3 1 2; do recipe --input "$d" --output "$tmp/array" --parts 3 --part $k -- --format json; is "part $k" 0 "$status"; done
is "array: results" 6 "$(find "$tmp/array" -name '*.jsonl' | wc -l | tr -d ' ')"
recipe --output "$tmp/array" --report
is "array: report" "0 6 files in 3 parts: 3 done, 0 with files that failed, 0 not done" "$status $out"
ok "array: more jobs than parts" bash recipes/batch/run.sh --linnet "$LINNET" --input "$d" --output "$tmp/few" --parts 9 --part 9
(cd "$d" && printf '# a list\nc/#4.wav\n' > "$tmp/list" && find a -name '*.wav' >> "$tmp/list")
(cd "$d" && bash "$OLDPWD/recipes/batch/run.sh" --linnet "$LINNET" --list "$tmp/list" --output "$tmp/listed" --parts 2 > "$tmp/.out" 2>&1)
has "a list" "$(cat "$tmp/.out")" "4 files in 2 parts: 2 done"
ok "a list: folders below the deepest common one" test -s "$tmp/listed/a/b/x 1.txt"

# ---- what fails ------------------------------------------------------------------------------------------------------------------

echo "no sound" > "$d/c/#4.wav"
touch "$d/c/#4.wav"
exits "a file that fails" 1 recipe --input "$d" --output "$tmp/bad" --parts 2
has "a file that fails: report" "$out" "6 files in 2 parts: 1 done, 1 with files that failed, 0 not done"
has "a file that fails is named" "$(cat "$tmp/bad/failed.txt")" "#4.wav"
is "a file that fails: the others are done" 5 "$(find "$tmp/bad" -name '*.txt' ! -name failed.txt | wc -l | tr -d ' ')"
"$SOUND" "$d/c/#4.wav" seconds=0.4 seed=4
recipe --input "$d" --output "$tmp/bad" --parts 2
is "a file that fails is tried again" "0 no" "$status $([ -e "$tmp/bad/failed.txt" ] && echo yes || echo no)"
same "a file that fails: in the end all results" bad
declines "no files" "which files? give --input DIR or --list FILE" --output "$tmp/x"
declines "no output" "where do the results go" --input "$d"
declines "no such folder" "is not a folder" --input "$d/none" --output "$tmp/x"
declines "no sounds" "there is no sound file in" --input "$tmp/whole" --output "$tmp/x"
declines "no part" "--part is a number from 1 up" --input "$d" --output "$tmp/x" --part 0
declines "no batch" "has no batch" --output "$tmp/x" --report
cp "$d/c/#5.wav" "$d/c/#5.flac"
declines "one result for two files" "#5.flac and " --input "$d" --output "$tmp/x"
rm "$d/c/#5.flac"
command -v parallel > /dev/null || declines "no GNU parallel" "apt-get install parallel" --input "$d" --output "$tmp/x" --hosts :
if command -v parallel > /dev/null; then
    exits "GNU parallel" 0 recipe --input "$d" --output "$tmp/hosts" --parts 3 --hosts : --jobs 2 -- --format text
    same "GNU parallel: the same results" hosts
fi
refused "--input-root: outside" 1 "is outside the --input-root" transcribe -q --output-dir "$tmp/x" --input-root "$d/a" "$d/c/#5.wav"
refused "--input-root: without folder" 2 "--input-root needs --output-dir" transcribe -q --input-root "$d/a" "$d/c/#5.wav"

finish
