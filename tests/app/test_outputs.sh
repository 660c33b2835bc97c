# Files that are written: what they are called, that nothing else is touched, and what stays when the program is stopped.
. tests/app/common.sh

make_model || { fail "a model for the test"; finish; }
m=$tmp/model.safetensors
export LINNET_MODEL="$m"
wav=$tmp/data/u1.wav

# files FOLDER: all files below it, sorted, separated by '|'
files() { (cd "$1" && find . -type f | LC_ALL=C sort | sed 's/^..//' | tr '\n' '|'); }

# ---- names ----------------------------------------------------------------------------------------------------------------------

mkdir -p "$tmp/in/x/deep" "$tmp/in/y"
for f in "x/my talk" y/talk x/talk x/deep/a.b; do cp "$wav" "$tmp/in/$f.wav"; done
run transcribe -q -f srt --output-dir "$tmp/o1" "$tmp/in/x/my talk.wav"
is "a blank in a name stays" "my talk.srt|" "$(files "$tmp/o1")"
run transcribe -q -f srt,textgrid --output-dir "$tmp/o2/new" "$tmp/in/x/talk.wav" "$tmp/in/y/talk.wav" "$tmp/in/x/deep/a.b.wav"
is "folders are mirrored" "x/deep/a.b.TextGrid|x/deep/a.b.srt|x/talk.TextGrid|x/talk.srt|y/talk.TextGrid|y/talk.srt|" \
    "$(files "$tmp/o2/new")"
run transcribe -q --output-dir "$tmp/o3" "$tmp/in/x/talk.wav" "$tmp/in/x/../x/./deep/a.b.wav"
is "from the deepest folder that holds all" "deep/a.b.txt|talk.txt|" "$(files "$tmp/o3")"
(cd "$tmp/in/x" && printf 'talk.wav\n../y/talk.wav\n' > ../list && "$LINNET" transcribe -q --output-dir "$tmp/o4" --files-from ../list) ||
    fail "a list of relative paths"
is "relative paths, of a list" "x/talk.txt|y/talk.txt|" "$(files "$tmp/o4")"
run transcribe -q "$tmp/in/x/talk.wav"
is "a .txt of its own has no name in it" "$out" "$(cat "$tmp/o4/x/talk.txt")"
run transcribe -q --ids --output-dir "$tmp/o4" "$tmp/in/x/my talk.wav"
is "--ids puts it there, without blanks" "my_talk $(cat "$tmp/o4/x/talk.txt")" "$(cat "$tmp/o4/my talk.txt")"
refused "two of one name: the remedy" 1 "rename one of them" transcribe -q --output-dir "$tmp/o5" "$wav" "$tmp/data/./u1.wav"
refused "one file twice" 1 "u1.wav is given twice; name it once" transcribe -q --output-dir "$tmp/o5" "$wav" "$wav"
ok "nothing was made" test ! -e "$tmp/o5"

# Ids with folders: a list as --data, a wav.scp with ids that are paths, and none of them leaves the output folder.
printf 'x/talk.wav\tONE TWO\ny/talk.wav\tONE\n' > "$tmp/in/pairs"
run transcribe -q --data "$tmp/in/pairs" -f ctm --output-dir "$tmp/o6"
is "--data LIST" "x/talk.ctm|y/talk.ctm|" "$(files "$tmp/o6")"
run align -q --data "$tmp/in/pairs" --lexicon "$tmp/dict" -f textgrid --output-dir "$tmp/o7"
is "align --data LIST" "x/talk.TextGrid|y/talk.TextGrid|" "$(files "$tmp/o7")"
mkdir "$tmp/scp"
printf 's1/u1 data/u1.wav\ns2/u2 data/u2.wav\n' > "$tmp/scp/wav.scp"
run transcribe -q --data "$tmp/scp" -f srt --output-dir "$tmp/o8"
is "--data, ids with folders" "s1/u1.srt|s2/u2.srt|" "$(files "$tmp/o8")"
printf '../../u1 data/u1.wav\n/etc/u2 data/u2.wav\n' > "$tmp/scp/wav.scp"
run transcribe -q --data "$tmp/scp" -f srt --output-dir "$tmp/o9"
is "--data, ids that would leave the folder: status" 0 "$status"
is "--data, ids that would leave the folder" 2 "$(find "$tmp/o9" -name 'u?.srt' | wc -l | tr -d ' ')"

finish
