# [slow native] Runs every command line of README.md, docs/*.md and recipes/paper/README.md in a folder that holds the files they name,
# and compares what it writes with what the page shows below it. Commands that cannot run here, and outputs that differ here, are
# listed with the reason; a reason that no line has is an error.
. tests/app/common.sh
# Not under a sanitizer: this test trains the paper's network, which takes minutes there, and other tests run the same commands.
[ "${CONFIG:-release}" = release ] || finish
top=$PWD

left_out() { # prints why a line does not run; nothing if it runs
    case $1 in
    'make '*) echo 'builds and tests: this is one of them' ;;
    *'linnet listen'*--from*|*'linnet listen --help'*) ;;
    *'linnet listen'*|*'linnet devices'*) echo 'needs a microphone; test_listen.sh has one' ;;
    *'linnet serve'*) echo 'serves until it is stopped; test_serve.sh does' ;;
    *'python3 '*|*'test_score DIR'*) echo 'a comparison made by hand, with Python' ;;
    'curl '*) [ -n "$port" ] || echo "$no_server" ;;
    *' --diarize'*) [ -f "$top/share/linnet/voices.safetensors" ] || echo "$no_voices" ;;
    'cc '*) echo 'needs an installed library; test_installed.sh has one' ;;
    'mpirun '*|'srun '*) echo 'needs MPI or Slurm; test_mpi.sh has MPI' ;;
    'bench/'*|'recipes/open/'*|'recipes/paper/'*) echo 'measures for hours, with the corpus' ;;
    'recipes/language/prompts.sh '*) echo 'fetches packages' ;;
    'recipes/language/run.sh '*) echo 'trains for minutes; test_language.sh runs it' ;;
    'printf '*' > small.conf') echo 'a network whose training takes minutes; small.conf here is smaller' ;;
    esac
}

differs() { # prints why the output of a line that runs is not that of the page; nothing if it is compared
    case $1 in
    *' ru/'*|*/ru/*) echo 'another language than that of the page' ;;
    *--stats*) echo 'latencies are those of one machine' ;;
    'linnet ngram perplexity '*) echo 'another text than that of the page' ;;
    esac
}

# ---- the folder ------------------------------------------------------------------------------------------------------------------

mkdir -p "$tmp/bin" "$tmp/here/build/release" "$tmp/here/recipes" "$tmp/here/share"
cd "$tmp/here" || exit 1
ln -s "$LINNET" build/release/linnet
ln -s "$LINNET" ../bin/linnet
ln -s "$top/recipes/open" recipes/open
ln -s "$top/recipes/language" recipes/language
ln -s "$top/share/linnet" share/linnet
printf '#!/bin/sh\nexec "%s" /dev/stdout seconds=1 format=raw\n' "$SOUND" > ../bin/arecord
printf '#!/bin/sh\nshift\nexec "$@"\n' > ../bin/ssh # "ssh HOST COMMAND" runs the command here
printf '#!/bin/sh\nexec cat > /dev/null\n' > ../bin/program
chmod +x ../bin/*
for name in speech.wav hello.wav monday.wav tuesday.wav a.flac b.flac talk.flac lecture.flac day.flac one.wav two.flac; do
    "$SOUND" "$name" seconds=2.5 seed=${#name}
done
# The pages show what linnet hears in this recording.
real=/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0920.wav
[ ! -f $real ] || cp $real speech.wav
mkdir -p librivox other recordings && cp hello.wav librivox && cp hello.wav speech.wav recordings
echo 'how are you' > talk.txt && cp talk.txt lecture.txt && for to in hello one two; do cp talk.txt $to.txt; done
printf 'one\ntwo three\n' > names.txt
"$LINNET" posteriors hello.wav -o talk.npy
cp talk.npy other/a.npy
printf 'layers = 1\nheads = 1\nhead-width = 8\nfeedforward = 8\nepochs = 1\n' > small.conf
printf 'base\nema --ema 0.99\n' > table.txt
printf 'network = lstm\nlayers = 1\nwidth = 8\nepochs = 1\n' > lstm.conf
printf '%s\n' '<blank>' AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH > phones.txt
for set in corpus/train corpus/dev corpus/test data/train; do
    mkdir -p $set
    for i in 1 2 3; do
        "$SOUND" $set/u$i.wav seconds=1.5 seed=$i
        echo "u$i ${set#*/}/u$i.wav" >> $set/wav.scp
        cp talk.txt $set/u$i.lab
    done
    printf 'u1 ONE TWO\nu2 TWO THREE\nu3 HOW ARE YOU\n' > $set/text
    printf 'u1 s1\nu2 s1\nu3 s2\n' > $set/utt2spk
done
for set in train dev; do "$(dirname "$LINNET")/tests/app/language" $set utterances=6 first=${#set}01 && mkdir -p ru/$set && mv $set/*.wav $set/lexicon.dict ru && mv $set/* ru/$set; done
mv ru/lexicon.dict ru/words.dict
printf '{"audio_filepath": "hello.wav", "text": "how are you"}\n' > dev.jsonl
"$SOUND" call.wav seconds=2 channels=2
mkdir -p cv/clips && cp hello.wav cv/clips/a.mp3 && printf 'client_id\tpath\tsentence\nx\ta.mp3\thow are you\n' > cv/train.tsv
cp "$top/share/linnet/en/default.safetensors" mine.safetensors
mkdir -p exp/quiet && cp hello.wav exp/quiet && echo hello.wav > exp/quiet/list
cp -r corpus/dev dev_native && cp -r corpus/dev dev_nonnative && cp -r corpus/train train_native
# All phonemes, twice, so that each can be a piece of a language model.
for i in 1 2; do echo "two young boys thought of measuring the foggy house while she zipped a vague joyous church and kept her father at home to put cake near them"; done > every.txt
{ cut -d ' ' -f 2- corpus/train/text | tr A-Z a-z; cat every.txt; } > text.txt && cp text.txt heldout.txt
printf "He went to London, and she stayed at home. What did he want? He saw the dog.\n" > novel.txt
gzip -c text.txt > books.txt.gz
"$LINNET" ngram count -q text.txt -o en-us.arpa && gzip -k en-us.arpa
cp "$top/examples/demo/words.dict" cmudict.dict && cp cmudict.dict cmudict-en-us.dict && cp cmudict.dict my.dict
printf 'HH AW AA R Y UW (u1)\nW AH N (u2)\n' > REF && sed 's/AH/AA/' REF > HYP && cp REF NEW && cp HYP OLD
cp REF test.ref.trn && cp HYP test.hyp.trn && cp REF dev.ref.trn
echo 'meeting 1 anna 0 2 how are { you / ya }' > meeting.stm && echo 'meeting 1 0.1 0.2 how' > meeting.ctm
printf '{"id":"u1","phones":[],"words":[{"word":"how"}]}\n{"id":"u2","phones":[],"words":[]}\n' > HYP.jsonl

# ---- the lines -------------------------------------------------------------------------------------------------------------------

# lines PAGE: of indented blocks, "C<tab>COMMAND" for a line that begins with a program and "O<tab>LINE" for what follows it; continued
# lines are joined, trailing comments removed.
lines() {
    awk '/^```/ { code = !code }
        !code && /^    / && (inside || (before == "" && /^    [^ ]/)) {
            inside = 1
            line = line substr($0, 5)
            if (sub(/\\$/, "", line)) next
            if (line ~ /^(\$ )?([A-Z_]+=[^ ]* )*(linnet|make|cut|for|ssh|arecord|cat|python3|gzip|printf|curl|cc|mpirun|srun|(build|bench|recipes|tests|tools)\/[^ ]*) /) {
                print "C\t" line; command = 1; blank = shown = 0
            } else if (command) {
                while (blank) { print "O\t"; blank-- }
                print "O\t" line; shown = 1
            }
            line = ""
            next
        }
        { inside = 0; before = $0; if ($0 != "" || code) command = shown = blank = 0; else if (shown) blank++ }' "$1" |
        sed -e '/^C/{' -e 's/^C\t\$ /C\t/; s/   *#.*//; s/  */ /g' -e "s,127.0.0.1:8090,127.0.0.1:$port," -e '}' \
            -e 's,/usr/share/pocketsphinx/test/data/librivox,librivox,; s,/usr/share/pocketsphinx/model/en-us/,,'
}

# other SHOWN SAID: the first line of SHOWN that is not that line of SAID. "..." at the end of a line stands for anything.
other() {
    awk 'NR == FNR { gsub(/^ +| +$/, ""); want[NR] = $0; n = NR; next }
        FNR <= n {
            gsub(/^ +| +$/, ""); part = want[FNR]; lines = FNR
            if (sub(/ *\.\.\.$/, "", part)) $0 = substr($0, 1, length(part))
            if ($0 != part) { print "line " FNR ", in place of \"" want[FNR] "\": " $0; exit }
        }
        END { if (lines < n && $0 == part) print "nothing in place of " want[lines + 1] }' "$1" "$2"
}
printf 'a b ...\nc\n' > ../shown
printf 'a b c\n  c \nd\n' > ../said
is "equal output is seen" "" "$(other ../shown ../said)"
printf 'a b c\nd\n' > ../said
is "other output is seen" 'line 2, in place of "c": d' "$(other ../shown ../said)"
printf 'a b c\n' > ../said
is "missing output is seen" "nothing in place of c" "$(other ../shown ../said)"

# A server for the lines with curl.
port= server= no_server='needs curl and libwebsockets' no_voices='needs the network of voices'
if [ -f "$(dirname "$LINNET")/liblinnet_web.so" ] && command -v curl > /dev/null; then
    "$LINNET" serve --listen 127.0.0.1:0 > /dev/null 2> ../served &
    server=$!
    trap 'kill $server; chmod -R u+w "$tmp" 2>/dev/null; rm -rf "$tmp"' EXIT
    await grep -q 127.0.0.1: ../served
    port=$(sed -n 's,.*//127.0.0.1:\([0-9]*\)/.*,\1,p' ../served)
fi

used='|'
uses() { case $used in *"|$1|"*) ;; *) used="$used$1|" ;; esac; }
# run_line: runs $line of $page and compares its output with ../shown, unless that is empty
run_line() {
    why=$(left_out "$line")
    if [ -n "$why" ]; then uses "$why"; return; fi
    PATH="$tmp/bin:$PATH" timeout 120 sh -c "$line" > ../said 2> ../complained < /dev/null
    status=$?
    [ $status = 0 ] || { fail "${page##*/}: $line" "exit status $status" "$(tail -n 3 ../complained)"; return; }
    pass
    [ -s ../shown ] || return
    why=$(differs "$line")
    if [ -n "$why" ]; then uses "$why"; return; fi
    case $line in *speech.wav*|'cat results'*) [ -f $real ] || { echo "not compared, no recorded speech: $line"; return; } ;; esac
    is "${page##*/}: $line: the output is that of the page" "" "$(other ../shown ../said)"
}
tab=$(printf '\t')
for page in "$top"/README.md "$top"/docs/*.md "$top"/recipes/paper/README.md; do
    lines "$page" > ../lines
    line=
    : > ../shown
    while IFS= read -r part; do
        case $part in
        O*) printf '%s\n' "${part#O"$tab"}" >> ../shown ;;
        *)
            [ -z "$line" ] || run_line
            : > ../shown
            line=${part#C"$tab"} ;;
        esac
    done < ../lines
    [ -z "$line" ] || run_line
done
sed -n "/^left_out()/,/^}/s/.*echo '\(.*\)' ;;/\1/p; /^differs()/,/^}/s/.*echo '\(.*\)' ;;/\1/p" "$top/tests/app/test_docs.sh" > ../reasons
while IFS= read -r why; do
    case $used in *"|$why|"*) pass ;; *) fail "a line that is left out or not compared because: $why" "there is none any more" ;; esac
done < ../reasons
cd "$top" || exit 1

# ---- what the pages name exists -----------------------------------------------------------------------------------------------------

texts="README.md RESULTS.md CONTRIBUTING.md CHANGELOG.md $(ls docs/*.md)"
folders='base|kernels|frontend|model|lexicon|decoder|align|linnet|app|serve|train|learn|score|paper|lab|examples|recipes|tests|bench|tools|docs'
for page in $texts bench/results/*.md; do
    here=$(dirname "$page")
    missing=
    for name in $(grep -oE "\`($folders)/[A-Za-z0-9_./*-]*\.[a-z]+[\` ]" "$page" | tr -d '\` ' | grep -v NAME | sort -u); do
        ls $name > /dev/null 2>&1 || missing="$missing $name"
    done
    # The results of a month name what was there in that month.
    case $page in bench/results/*) ;; *) is "$page: every source file that it names is there" "" "$missing" ;; esac
    missing=
    for link in $(grep -oE '\]\([^) ]+\)' "$page" | sed 's/^](//; s/)$//' | grep -v '^https*:' | sort -u); do
        file=${link%%#*}
        at=$page
        [ -z "$file" ] || at=$here/$file
        [ -e "$at" ] || missing="$missing $link"
        case $link in
        *'#'*) sed -n 's/^#\{1,\} //p' "$at" | tr 'A-Z ' 'a-z-' | tr -d '`:,.()!?' | grep -qx -e "${link#*#}" || missing="$missing $link" ;;
        esac
    done
    is "$page: every link leads somewhere" "" "$missing"
    is "$page: prose is wrapped at 100 columns" "" \
        "$(awk '/^```/ { code = !code } !code && !/^ *\|/ && !/^    / && !/^!\[/ && !/^ *<!-- measured/ && !/https?:/ { gsub(/[\200-\277]/, ""); if (length($0) > 100) print FNR }' "$page" | head -n 3)"
done

# Every script that a page of today calls by its path can be run.
missing=
for name in $(grep -ohE '(^    |`)(recipes|bench|tools|examples)/[A-Za-z0-9_./-]*\.(sh|py)' $texts recipes/*/*.md bench/*.md | sed 's/^[` ]*//' | sort -u); do
    [ -x "$name" ] || missing="$missing $name"
done
is "scripts that pages name are executable" "" "$missing"

# Each line of docs/contract.md names tests that are there, as `FILE` (CASE, CASE). without_test PAGE: those that are not.
without_test() {
    awk '/^## / { on = 1 } on && /^\| / && !/^\| what holds/ && !/^\|--/' "$1" | while IFS= read -r row; do
        case $row in *'`tests/'*) ;; *) echo "no test: $row" ;; esac
        echo "$row" | grep -oE '`tests/[^`]*`( \([a-z0-9_, ]*\))?' | tr -d '`(),' | while read -r file cases; do
            [ -e "$file" ] || echo "$file"
            for name in $cases; do grep -qE "START_TEST\($name\)" "$file" || echo "$file: $name"; done
        done
    done
}
is "docs/contract.md: every test that it names is there" "" "$(without_test docs/contract.md)"
[ "$(grep -c '^| .*`tests/' docs/contract.md)" -ge 25 ] || fail "docs/contract.md has its lines"
printf '## X\n| what holds | test |\n|--|--|\n| a | `tests/app/none.sh` |\n| b | - |\n| c | `tests/base/test_file.c` (of_old, long_names) |\n' > "$tmp/bad.md"
is "a test that is not there is seen" 3 "$(without_test "$tmp/bad.md" | wc -l | tr -d ' ')"

# The program in README.md compiles.
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md > "$tmp/example.c"
ok "README.md has a program" test -s "$tmp/example.c"
ok "and it compiles" "${CC:-cc}" -std=c99 -Wall -Wextra -Wpedantic -Werror -Ilinnet -fsyntax-only "$tmp/example.c"
finish
