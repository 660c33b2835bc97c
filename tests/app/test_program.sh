# The program in general: help, version, command-line mistakes, manual page, completion, finding the model, configuration files.
. tests/app/common.sh

commands='transcribe listen train score features posteriors prepare phonemize info plot devices completion'

exits "no command" 2 run
has "no command: usage" "$err" "linnet COMMAND [arguments] [options]"
exits "--version" 0 run --version
has "--version" "$out" "linnet 0."
exits "--help" 0 run --help
help=$out
gives "help is --help" "$help" help
for c in $commands; do
    has "--help lists $c" "$help" "  $c "
    exits "$c --help" 0 run "$c" --help
    has "$c --help" "$out" "usage: linnet $c "
    is "$c --help: no word or phrase twice in a row" "" \
        "$({ echo "$help"; echo "$out" | sed '/^Examples:/,$d' | tr -s ' \n' '  '; } | grep -oE ' ([a-z]{2,}|[A-Z][a-z ]+;) \1[ .,;]')"
    first=$out
    gives "help $c is $c --help" "$first" help "$c"
    exits "$c --help wins over a mistake" 0 run "$c" --help --nonsense
    exits "$c: unknown option" 2 run "$c" --hepl
    has "$c: unknown option" "$err" "linnet: $c: unknown option --hepl; did you mean --help?"
    has "$c: points at --help" "$err" "Try 'linnet $c --help'."
done
refused "unknown command" 2 "unknown command 'transcrib'; did you mean transcribe?" transcrib
refused "a folder of two letters" 2 "./ is a folder; name the files in it" ./
refused "a FILE that is missing" 2 "there is no file missing.mp3, and no command of this name" missing.mp3
has "it leads to the commands" "$err" "Try 'linnet --help', which lists the commands."
is "in two lines" 2 "$(echo "$err" | wc -l)"
refused "a folder is no file" 2 "is a folder; name the files in it" "$tmp"
refused "an address is no file" 1 "cannot open http://a.b/c.wav: it is an address, not a file; download it first" http://a.b/c.wav
refused "unknown option" 2 "unknown option --verbose" --verbose
refused "--help with a value" 2 "transcribe: --help takes no value" transcribe --help=man
refused "the nearest option" 2 "unknown option --word; did you mean --words?" transcribe --word x.wav
refused "the nearest setting" 2 "unknown option --word-time; did you mean --cues word-times?" transcribe --word-time x.wav
refused "a setting of another option" 2 "--layout has no 'word-times'; it is a value of --cues" transcribe --layout word-times x.wav
refused "a setting that is none" 2 "--layout has no 'xyzzy'; --layout help lists its names" transcribe --layout xyzzy x.wav
# Names of other programs lead to an option that the command has, or to a sentence.
# Installed files are found by their names wherever a file of their kind is read, and are not overwritten.
for c in "info small" "ngram info words.lm" "ngram info words.g2p" "ngram generate phones.lm --count 1" "lm sample words --count 1" \
    "lm prepare --like words $tmp/one.txt -o $tmp/one.lfc" "average small small -o $tmp/mean.safetensors"; do
    echo 'how are you' > "$tmp/one.txt"
    exits "an installed file: $c" 0 run $c
done
refused "an installed file: train --init" 1 "cannot open $tmp/none.lfc" train --init small --train "$tmp/none.lfc" --folder "$tmp/none"
run info words.lm
has "info of an installed file that it does not describe" "$err" "words.lm is a language model; use 'linnet ngram info'"
run info words.punctuation
has "info of a model of punctuation" "$err" "words.punctuation is a model of punctuation; use 'linnet readable'"
if ln share/linnet/en/phones.lm "$tmp/phones.lm" 2> /dev/null; then # on one file system
    refused "an installed file as output" 1 "is an input and would be overwritten" \
        ngram prune phones.lm --entropy 1e-3 --packed -o "$tmp/phones.lm"
fi
for hint in "transcribe --json:did you mean --format json?" "transcribe --srt:did you mean --format srt?" \
    "transcribe --vtt:did you mean --format vtt?" "transcribe --threads=2:did you mean --jobs?" "lm --jobs:did you mean --threads?" \
    "transcribe --timestamps:did you mean --layout times?" "listen --timestamps:did you mean --json?" \
    "transcribe --word_timestamps:did you mean --format json?" "transcribe --lang:did you mean --language?" \
    "transcribe --Output_Format:did you mean --format?" "transcribe --diarise:did you mean --diarize?" \
    "align --diarize:transcribe, listen and serve tell speakers apart" "listen --translate:linnet does not translate" \
    "serve --port:did you mean --listen HOST:PORT?" "align --version:linnet --version prints it" "devices --gpu:unknown option --gpu" \
    "listen:unexpected argument 'x'; --from FILE hears a file as a microphone; linnet transcribe FILE is faster" \
    "listen --silence-after:--silence-after needs a number of seconds, not 'x'" "devices:unexpected argument 'x'"; do
    refused "hint: ${hint%%:*}" 2 "${hint#*:}" ${hint%%:*} x
done
hasnt "no hint to an option that the command lacks" "$err" "; "
for c in align features posteriors listen; do hasnt "$c takes one channel, and its help says so" "$("$LINNET" $c --help-all)" "mix|each"; done
hasnt "help names no option that the command lacks" "$("$LINNET" transcribe --help-all; "$LINNET" decode --help-all)" "--second-pass"
# Every option that a hint names exists, in a command that has what the hint needs.
sed -n 's/^ *{"[a-z0-9-]*", \("[a-z-]*"\|NULL\), "--\([a-z-]*\).*/\2/p' app/options.c | sort -u > "$tmp/hinted"
for c in $("$LINNET" --help | sed -n 's/^  \([a-z0-9]*\)  .*/\1/p'); do "$LINNET" $c --help-all; done | sed -nE 's/^ {2,6}(-[a-zA-Z], )?--([a-z-]+).*/\2/p' | sort -u > "$tmp/there"
ok "there are hints" test "$(wc -l < "$tmp/hinted")" -ge 10
is "hints name options that exist" "" "$(comm -23 "$tmp/hinted" "$tmp/there" | xargs)"
refused "a setting with a value" 2 "unknown option --lm-weigth; did you mean --tune lm-weight=...?" transcribe --lm-weigth 1 x.wav
refused "one file that is missing" 1 "no-such.wav" transcribe "$tmp/no-such.wav"
hasnt "no summary of nothing" "$err" "0 files"
"$SOUND" "$tmp/one.wav" seconds=2
run "$tmp/one.wav" -q -f json
is "linnet FILE is linnet transcribe --words FILE" "$("$LINNET" transcribe -q --words -f json "$tmp/one.wav")" "$out"
is "linnet - is standard input" "$out" "$("$LINNET" - -q -f json < "$tmp/one.wav" 2> /dev/null | sed 's/"id":"stdin"/"id":"one"/')"
gives "linnet -- FILE is linnet FILE" "$("$LINNET" "$tmp/one.wav" -q)" -- "$tmp/one.wav"
refused "an option first" 2 "unknown option --best; a command or a file comes first: linnet FILE --best" --best "$tmp/one.wav"
# --best is the options that it stands for.
run transcribe -q -f json --words --best "$tmp/one.wav"
is "--best of files" "$("$LINNET" transcribe -q -f json --words --offline --combine default --rescore words "$tmp/one.wav")" "$out"
hasnt "--best is not the default" "$out" "$("$LINNET" transcribe -q -f json --words "$tmp/one.wav" | cut -c1-200)"
run transcribe -q -f json --best "$tmp/one.wav"
is "--best of phonemes" "$("$LINNET" transcribe -q -f json --offline --combine default "$tmp/one.wav")" "$out"
refused "--best with a streaming model" 1 "--best and --combine need whole utterances" transcribe --best --model default "$tmp/one.wav"
warns "listen --best: when words settle" "and settled with its utterance" listen --from "$tmp/one.wav" --no-paced --words --best
is "--best of live sound" \
    "$("$LINNET" listen -q --from "$tmp/one.wav" --no-paced --words --second-pass offline --combine default --rescore words)" "$out"
# The short help has what people use, --help-all everything.
for c in transcribe listen serve; do
    "$LINNET" $c --help | sed -nE 's/^ {2,6}(-[a-zA-Z], )?--([a-z-]+).*/\2/p' | sort -u > "$tmp/short"
    "$LINNET" $c --help-all | sed -nE 's/^ {2,6}(-[a-zA-Z], )?--([a-z-]+).*/\2/p' | sort -u > "$tmp/long"
    is "$c --help-all has all of --help" help-all "$(comm -23 "$tmp/short" "$tmp/long" | xargs)"
    ok "$c --help-all has more" test "$(wc -l < "$tmp/long")" -gt "$(wc -l < "$tmp/short")"
    has "$c names the installed models" "$("$LINNET" $c --help)" small
    hasnt "$c --help is short" "$(cat "$tmp/short")" rescore
    has "$c: the manual page has all" "$("$LINNET" man $c)" 'rescore'
done
refused "unknown help" 2 "unknown command 'xyzzy'" help xyzzy
refused "no FILE" 2 "transcribe: no FILE is given" transcribe
refused "too many operands" 2 "score: unexpected argument 'c'" score a b c
refused "missing operand" 2 "score: REF HYP is missing" score a
refused "bad channel" 2 "--channel must be mix, each or the number of a channel, from 1 (the left one) to 64, not 'left'" \
    transcribe --channel left x.wav
for c in "align x.wav" "listen --from x.wav" "features x.wav -o $tmp/x.npy" "posteriors x.wav -o $tmp/x.npy"; do
    for channel in each 0; do
        refused "bad channel: ${c%% *}" 2 "--channel must be mix or the number of a channel, from 1 (the left one) to 64, not '$channel'" \
            $c --channel $channel
    done
done
refused "both outputs" 2 "exclude each other" transcribe -o a --output-dir b x.wav
refused "standard input twice" 2 "only once" transcribe - -

# Generated texts are well-formed.
mkdir "$tmp/man"
run man --output-dir "$tmp/man" --doc-dir /usr/share/doc/linnet
is "man --output-dir: status" "0 " "$status $err"
for c in $commands; do
    has "the page of the program has $c" "$(cat "$tmp/man/linnet.1")" "linnet\\-$c (1)"
    has "a page of $c" "$(head -n 1 "$tmp/man/linnet-$c.1")" ".TH LINNET\\-$(echo "$c" | tr a-z A-Z) 1"
done
if command -v groff > /dev/null; then
    is "groff takes the manual pages without a word" "" "$(for f in "$tmp"/man/*; do groff -man -Tutf8 -ww -z "$f" 2>&1; done)"
fi
if command -v mandoc > /dev/null; then
    is "mandoc takes the manual pages" "" "$(mandoc -T lint -W error "$tmp"/man/* 2>&1)"
fi
has "documentation in the pages" "$(cat "$tmp/man/linnet-align.1")" "/usr/share/doc/linnet/alignment.md"
exits "man" 0 run man
has "man: the page of the program" "$out" ".TH LINNET 1"
shows "man of a command" ".TH LINNET\\-TRANSCRIBE 1" man transcribe
refused "man of no command" 2 "there is no command 'xyzzy'" man xyzzy
refused "man into no folder" 1 "$tmp/none/linnet.1" man --output-dir "$tmp/none"
for shell in bash zsh fish; do
    exits "completion $shell" 0 run completion $shell
    has "completion $shell asks the program" "$out" "completion words -- "
    printf '%s\n' "$out" > "$tmp/completion.$shell"
    if command -v $shell > /dev/null; then ok "$shell parses its completion" $shell -n "$tmp/completion.$shell"; fi
done
refused "completion of two shells" 2 "unexpected argument 'zsh'" completion bash zsh
asking=$(dirname "$LINNET"):$PATH # the scripts call linnet
if command -v bash > /dev/null; then
    # completes WANT WORD...: the words as bash splits them; the last is completed
    completes() {
        want=$1
        shift
        is "bash completes $*" "$want" "$(PATH=$asking bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _linnet; echo "${COMPREPLY[*]}"' \
            - "$tmp/completion.bash" "$@")"
    }
    completes json linnet transcribe --format j
    completes json linnet transcribe -f j
    completes transcribe linnet transc
    completes --version linnet --v
    completes listen linnet help lis
    completes listen linnet man lis
    completes zsh linnet completion z
    completes "prune pack perplexity" linnet ngram p
    completes "$tmp/completion.bash" linnet "$tmp/completion.b"
    : > "$tmp/of two words.wav"
    is "bash completes a name with blanks as one word" 1 "$(PATH=$asking bash -c '. "$1"; COMP_WORDS=(linnet "$2") COMP_CWORD=1; _linnet; echo ${#COMPREPLY[@]}' \
        - "$tmp/completion.bash" "$tmp/of")"
    completes --format linnet "$tmp/one.wav" --form
    completes small linnet transcribe --model sm
    completes offline linnet listen --second-pass off
    completes "--help --help-all" linnet serve --help
    completes "srt,text srt,json srt,ctm srt,trn srt,vtt srt,textgrid srt,csv srt,audacity srt,nemo srt,rttm" linnet transcribe --format srt,
    completes "srt,json,text srt,json,trn srt,json,textgrid" linnet transcribe --format srt,json,t
    completes "auto phones words both" linnet transcribe --unit =
    completes json linnet transcribe --format = j
    completes srt,json linnet transcribe --format = srt,j
    completes --format=srt,json linnet transcribe --format=srt,j # where "=" does not separate words
    completes "$tmp/completion.bash" linnet transcribe --model = "$tmp/completion.b"
    completes "" linnet transcribe --unit words,
    completes "--output --output-dir" linnet align --out
    completes -f linnet transcribe -f
    completes "" linnet transcribe -fj
fi
if command -v fish > /dev/null; then
    is "fish completes a list" srt,json \
        "$(PATH=$asking HOME=$tmp fish -c 'source $argv[1]; complete -C "linnet transcribe --format srt,j"' "$tmp/completion.fish" 2> /dev/null | cut -f1)"
    is "fish completes after =" --format=json \
        "$(PATH=$asking HOME=$tmp fish -c 'source $argv[1]; complete -C "linnet transcribe --format=j"' "$tmp/completion.fish" 2> /dev/null | cut -f1)"
fi

# Configuration files: file and line of each mistake.
printf '# nothing\n\nlayrs = 2\n' > "$tmp/b.conf"
refused "conf: unknown name" 2 "b.conf:3: unknown name 'layrs'; did you mean layers?" train "$tmp/b.conf" --train x --folder y
: > "$tmp/f.conf"
refused "train: a missing cache" 1 "cannot open $tmp/none.lfc: No such file or directory" train "$tmp/f.conf" --train "$tmp/none.lfc" --folder "$tmp/run"

# The model: --model, LINNET_MODEL, beside the program.
"$SOUND" "$tmp/x.wav"
refused "--model" 1 "cannot open $tmp/none.safetensors: No such file or directory" transcribe --model "$tmp/none.safetensors" "$tmp/x.wav"
LINNET_MODEL=$tmp/other.safetensors
export LINNET_MODEL
refused "LINNET_MODEL" 1 "cannot open $tmp/other.safetensors" transcribe "$tmp/x.wav"
unset LINNET_MODEL
if ! emulated; then
    mkdir -p "$tmp/prefix/bin" "$tmp/prefix/share/linnet/en"
    cp "$PROGRAM" "$tmp/prefix/bin/linnet"
    echo damaged > "$tmp/prefix/share/linnet/en/default.safetensors"
    real=$LINNET LINNET=$tmp/prefix/bin/linnet
    refused "the model beside the program" 1 "share/linnet/en/default.safetensors" transcribe "$tmp/x.wav"
    LINNET=$real
fi
LINNET_CUDA_DRIVER=none refused "--device" 1 "no NVIDIA driver" transcribe --device cuda --model "$tmp/any" "$tmp/x.wav"

# A full disk, and a reader that closes the pipe.
if [ -w /dev/full ]; then
    "$LINNET" --help > /dev/full 2> "$tmp/.err"
    is "standard output is full: status" 1 "$?"
    has "standard output is full" "$(cat "$tmp/.err")" "cannot write standard output: No space left on device; free some space and try again"
    printf 'a (u1)\n' > "$tmp/full.trn"
    "$LINNET" score "$tmp/full.trn" "$tmp/full.trn" > /dev/full 2> "$tmp/.err"
    is "a command with a full output reports it once" "linnet: cannot write standard output: No space left on device; free some space and try again" \
        "$(cat "$tmp/.err")"
fi
finish
