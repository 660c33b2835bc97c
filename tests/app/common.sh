# common.sh - what the shell tests share. Sourced; a test ends with `finish`.
#
#   ok "what must hold" command...        the command succeeds
#   is "what must hold" WANT GOT          the two texts are equal
#   has "what must hold" TEXT PART        TEXT contains PART
#   run ARGS...                           runs linnet: $status, $out (standard output), $err (standard error)
#   exits "what" STATUS run ARGS...       the exit status of this command is STATUS
#   gives "what" WANT ARGS...             linnet ARGS... writes WANT to standard output
#   shows "what" PART ARGS...             ... writes something that contains PART
#   warns "what" PART ARGS...             the same of standard error
#
# $LINNET is the program (make check-arm64: a script that runs it in an emulator), $PROGRAM its file; $SOUND writes sounds (sound.c),
# $ROWS writes log-probabilities (rows.c); $tmp is a temporary folder of this test, removed at the end.

LINNET=${LINNET:-build/release/linnet}
case $LINNET in /*) ;; *) LINNET=$PWD/$LINNET ;; esac
SOUND=$(dirname "$LINNET")/tests/app/sound
ROWS=$(dirname "$LINNET")/tests/app/rows
TOKENS=$(dirname "$LINNET")/tests/app/tokens
PROGRAM=$LINNET
emulated() { [ "${CONFIG:-release}" = arm64 ]; }
! emulated || PROGRAM=$(dirname "$(dirname "$LINNET")")/linnet
unset LINNET_MODEL LINNET_LEXICON LINNET_LM
export LINNET_FFMPEG= # no test depends on whether ffmpeg is installed
passed=0 failed=0
# The program runs in the caller's locale; the test's own tools write a decimal point, and [a-z] means ASCII.
awk() { LC_ALL=C command awk "$@"; }
grep() { LC_ALL=C command grep "$@"; }
sed() { LC_ALL=C command sed "$@"; }
tr() { LC_ALL=C command tr "$@"; }
tmp=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$tmp" 2>/dev/null; rm -rf "$tmp"' EXIT

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); echo "FAILED: $1"; shift; for line; do echo "    $line"; done; }
ok() { what=$1; shift; if "$@" > "$tmp/.log" 2>&1; then pass; else fail "$what" "$*" "$(head -c 2000 "$tmp/.log")"; fi; }
is() { if [ "$2" = "$3" ]; then pass; else fail "$1" "wanted: $2" "got:    $3"; fi; }
has() { case $2 in *"$3"*) pass ;; *) fail "$1" "wanted a part: $3" "got:           $2" ;; esac; }
# json "what" ARGS...: linnet ARGS... writes valid JSON (checked where a JSON parser is installed)
json() { what=$1; shift; command -v python3 > /dev/null || return 0; "$LINNET" "$@" > "$tmp/.json" 2> /dev/null; ok "$what" python3 -m json.tool "$tmp/.json"; }
hasnt() { case $2 in *"$3"*) fail "$1" "unwanted: $3" "in:       $2" ;; *) pass ;; esac; }

# await COMMAND...: repeats it until it succeeds; 1 after some minutes. What must come is awaited so, however busy the machine is.
await() {
    awaited=0
    until "$@" > /dev/null 2>&1; do
        awaited=$((awaited + 1))
        [ $awaited -lt 3000 ] || return 1
        sleep 0.1
    done
}
# catches PID: this process has installed its handler of SIGTERM. runs_no_more PID: it has ended.
catches() { grep -q '^SigCgt:.*[4-7c-f]...$' "/proc/$1/status"; }
# What a stand-in for a program that hangs does: the time limit of `timeout`, which runs it and waits for it, is over.
over='until grep -q "^State:.S" /proc/$PPID/status; do :; done; kill -ALRM $PPID'
runs_no_more() { ! kill -0 "$1"; }

# ran COMMAND...: $status, $out and $err of a command
ran() {
    "$@" > "$tmp/.out" 2> "$tmp/.err"
    status=$?
    out=$(tr -d '\000' < "$tmp/.out")
    err=$(tr -d '\000' < "$tmp/.err")
    # The program must never end by a signal; a sanitizer's report is a failure.
    if [ $status -ge 128 ] && [ $status != 130 ]; then fail "no crash" "$*" "status $status" "$err"; fi
    case $err in *Sanitizer*|*"runtime error"*) fail "no sanitizer report" "$*" "$err" ;; esac
}
run() { ran "$LINNET" "$@"; }
gives() { gives_what=$1 gives_want=$2; shift 2; run "$@"; is "$gives_what" "$gives_want" "$out"; }
shows() { shows_what=$1 shows_part=$2; shift 2; run "$@"; has "$shows_what" "$out" "$shows_part"; }
warns() { warns_what=$1 warns_part=$2; shift 2; run "$@"; has "$warns_what" "$err" "$warns_part"; }
# script NAME ARGS...: recipes/NAME.sh with this program
script() { script=$1; shift; ran bash "recipes/$script.sh" --linnet "$LINNET" "$@"; }
exits() { exits_what=$1 exits_want=$2; shift 2; "$@"; is "$exits_what: status" "$exits_want" "$status"; }
# declines "what" "part of the message" ARGS...: `recipe ARGS...`, a function of the test, exits with 1 and says so
declines() { what=$1 part=$2; shift 2; exits "$what" 1 recipe "$@"; has "$what" "$err" "$part"; }

# one_line ...: the same, in one line
one_line() { declines "$@"; is "$1: one line" 1 "$(wc -l < "$tmp/.err" | tr -d ' ')"; }

# flip FILE BYTE BIT
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "\\$(printf %03o $((byte ^ (1 << $3))))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2> /dev/null
}

# refused "what" STATUS "part of the message" ARGS...: linnet ARGS... exits with STATUS and prints one line, "linnet: ..."
refused() {
    what=$1 want=$2 part=$3
    shift 3
    run "$@"
    is "$what: exit status" "$want" "$status"
    has "$what: message" "$err" "$part"
    case $err in "linnet: "*) pass ;; *) fail "$what: the message begins with linnet:" "$err" ;; esac
    is "$what: nothing on standard output" "" "$out"
}

# A small causal model and the cache it was trained on: $tmp/model.safetensors, $tmp/set.lfc. Real training on random sounds.
make_model() {
    mkdir -p "$tmp/data"
    printf 'one W AH N\ntwo T UW\nthree TH R IY\nfour F AO R\n' > "$tmp/dict"
    for i in 1 2 3 4; do
        "$SOUND" "$tmp/data/u$i.wav" seconds=1.5 seed=$i
        echo "u$i u$i.wav" >> "$tmp/data/wav.scp"
    done
    printf 'u1 ONE TWO\nu2 TWO THREE\nu3 THREE FOUR\nu4 FOUR ONE\n' > "$tmp/data/text"
    printf 'u1 s1\nu2 s1\nu3 s2\nu4 s2\n' > "$tmp/data/utt2spk"
    "$LINNET" prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" --stack 3 -q -o "$tmp/set.lfc" || return 1
    cat > "$tmp/train.conf" <<END
# a tiny network
layers = 2
heads = 2
head-width = 8
feedforward = 32
stack = 3
ahead = 2
positions = conv
conv-kernel = 5
conv-layers = 2
epochs = 2
lr = 1e-3
END
    "$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" --folder "$tmp/run" -q > "$tmp/.log" 2>&1 || {
        cat "$tmp/.log"
        return 1
    }
    cp "$tmp/run/best.safetensors" "$tmp/model.safetensors"
}

# use_model: make_model, whose model is then the default of every command; without one the test ends
use_model() {
    make_model || { fail "a small model"; finish; }
    export LINNET_MODEL="$tmp/model.safetensors"
}

# train ARGS...: trains on the cache of make_model. loss FOLDER: that of a run's last epoch. weights FILE: their fingerprint.
train() { "$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" -q --schedule constant "$@"; }
loss() { tail -n 1 "$1/log.tsv" | cut -f 3; }
weights() { "$LINNET" info --json "$1" | sed -n 's/.*"fingerprint": "\([0-9a-f]*\)".*/\1/p'; }

# use_emulated_gpu: the folder of the emulated backend, $emulated; without one the test ends
use_emulated_gpu() {
    emulated=$(dirname "$LINNET")/emulated
    [ -f "$emulated/liblinnet_cuda.so" ] || { echo "skipped: no emulated backend in this configuration"; finish; }
}

# part FILE FROM TO: samples FROM .. TO-1 of headerless sound of $frame bytes each (16 bits, one channel)
frame=2
part() { tail -c +$(($2 * frame + 1)) "$1" | head -c $((($3 - $2) * frame)); }
# tokens: a CTM without its names
tokens() { grep -v '^;;' | cut -d' ' -f2-; }
# in_pieces FILE SAMPLES "CUTS" COMMAND...: COMMAND writes the CTM of each piece of FILE, and $tmp/cut has the tokens of all;
# $tmp/s.bin is the state at the last cut
in_pieces() {
    sound=$1 samples=$2 cuts=$3 at=0 load=
    shift 3
    rm -f "$tmp/s.bin" "$tmp/pieces"
    for to in $cuts; do
        part "$sound" $at $to | "$@" $load --save-state "$tmp/s.bin" - >> "$tmp/pieces"
        at=$to load="--load-state $tmp/s.bin"
    done
    if [ $at = "$samples" ]; then "$@" $load; else part "$sound" $at "$samples" | "$@" $load -; fi >> "$tmp/pieces"
    tokens < "$tmp/pieces" > "$tmp/cut"
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
}
