# [native] linnet train on several processes, started by mpirun: the same run as one process, the same bits each time, the death
# of a process, another number of processes, what is refused; as one machine, as two that are two daemons on the loopback
# interface, and as two network name spaces. Not under a sanitizer: tests/train/test_comm and tests/train/test_parallel run the
# same code there.
. tests/app/common.sh
[ "${CONFIG:-release}" = release ] || finish

. tests/app/mpi.sh

exits "one process" 0 run train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" -o "$tmp/one"
hasnt "one process: no other" "$err" "processes"

exits "two processes" 0 with 2 -o "$tmp/two"
has "two processes: reported" "$err" "2 processes, 2 on this machine, 1 thread each"
is "two processes: one of them reports" 4 "$(echo "$err" | grep -c '^epoch')"
near "two processes: the numbers of one" "$tmp/one" "$tmp/two"
is "two processes: a folder as of one" "$(ls "$tmp/one")" "$(ls "$tmp/two")"
ok "two processes: the model can be used" "$LINNET" info "$tmp/two/best.safetensors"
with 2 -o "$tmp/two-again"
same_model "two processes again: the same bits" "$tmp/two" "$tmp/two-again"
exits "three processes" 0 with 3 -o "$tmp/three" -q
is "three processes: quiet" "" "$err"
near "three processes: the numbers of one" "$tmp/one" "$tmp/three"
with 1 -o "$tmp/mpi-one" -q
same_model "mpirun -np 1: the bits of one process" "$tmp/one" "$tmp/mpi-one"

# As two hosts: two daemons that know each other by address, and TCP between the processes.
cat > "$tmp/agent" << 'END'
#!/bin/sh
shift
exec sh -c "$*"
END
chmod 755 "$tmp/agent"
with 2 --mca plm_rsh_agent "$tmp/agent" --mca btl self,tcp --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo \
    --host localhost:1,127.0.0.2:1 -- -o "$tmp/hosts" -q
is "two hosts on the loopback: status ($err)" 0 "$status"
same_model "two hosts on the loopback: the bits of one machine" "$tmp/two" "$tmp/hosts"

# As two hosts: two network name spaces joined by a virtual cable. Everything is in a name space of the test's own.
if unshare -n true 2> /dev/null && command -v ip > /dev/null && command -v nsenter > /dev/null; then
    cat > "$tmp/hosts.sh" << 'END'
ip link set lo up
unshare -n sleep 600 &
other=$!
trap 'kill $other' EXIT
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
ip link add left type veth peer name right netns $other || exit 77
ip addr add 10.77.0.1/24 dev left && ip link set left up
nsenter -t $other -n sh -c 'ip link set lo up; ip addr add 10.77.0.2/24 dev right; ip link set right up'
printf '#!/bin/sh\nshift\nexec nsenter -t %s -n sh -c "$*"\n' $other > "$1/agent"
shift
"$@"
END
    cp "$tmp/agent" "$tmp/agent.loopback"
    timeout 600 unshare -n sh "$tmp/hosts.sh" "$tmp" mpirun --mca plm_rsh_agent "$tmp/agent" --mca btl self,tcp --mca btl_tcp_if_include 10.77.0.0/24 \
        --mca oob_tcp_if_include 10.77.0.0/24 --host 10.77.0.1:1,10.77.0.2:1 -np 2 "$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" \
        --dev "$tmp/set.lfc" -o "$tmp/spaces" -q > "$tmp/.out" 2> "$tmp/.err"
    status=$?
    if [ $status = 77 ]; then echo "not tested: virtual cables between network name spaces cannot be made here"
    else
        is "two network name spaces: status ($(head -c 600 "$tmp/.err"))" 0 "$status"
        same_model "two network name spaces: the bits of one machine" "$tmp/two" "$tmp/spaces"
    fi
    cp "$tmp/agent.loopback" "$tmp/agent"
else
    echo "not tested: network name spaces cannot be made here"
fi

# A process is killed in a long run: the others end soon, one of them says why, and the state is kept.
has_epochs() { [ "$(grep -c . "$1/log.tsv")" -gt 3 ]; }
kill_rank() {
    rm -rf "$tmp/killed"
    # After the end of one mpirun gives the others a second, too little on a busy machine.
    timeout 600 mpirun --mca odls_base_sigkill_timeout 20 -np 3 "$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" -o "$tmp/killed" \
        --epochs 100000 --schedule constant > "$tmp/.out" 2> "$tmp/.err" &
    launcher=$!
    await has_epochs "$tmp/killed"
    victim=$(for p in /proc/[0-9]*; do
        cat "$p/environ" 2> /dev/null | tr '\000' '\n' | grep -qx "OMPI_COMM_WORLD_RANK=$1" &&
            cat "$p/cmdline" 2> /dev/null | tr '\000' '\n' | grep -qxF "$tmp/killed" && echo "${p#/proc/}" && break; done)
    kill -9 "$victim"
    wait $launcher
    status=$?
    err=$(cat "$tmp/.err")
    ok "rank $1 killed: mpirun fails" [ $status != 0 ]
    is "rank $1 killed: one sentence of linnet" 1 "$(echo "$err" | grep -c '^linnet:')"
    has "rank $1 killed: what happened" "$(echo "$err" | grep '^linnet:')" "process $1 of this run (number $victim on "
    ok "rank $1 killed: the checkpoint is whole" "$LINNET" info "$tmp/killed/checkpoint.safetensors"
}
kill_rank 1
has "rank 1 killed: the last step is saved" "$err" "is saved: continue with --resume, on any number of processes"
epochs=$(($(tail -n 1 "$tmp/killed/log.tsv" | cut -f 1) + 2))
exits "resumed on two" 0 with 2 -o "$tmp/killed" --resume --epochs $epochs --schedule constant
is "resumed on two: the rest" $epochs "$(tail -n 1 "$tmp/killed/log.tsv" | cut -f 1)"
run train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" -o "$tmp/killed" --resume --epochs $((epochs + 1)) --schedule constant
is "resumed alone: status" 0 "$status"
is "resumed alone: the rest" $((epochs + 1)) "$(tail -n 1 "$tmp/killed/log.tsv" | cut -f 1)"
kill_rank 0
has "rank 0 killed: what to do" "$err" "resume from the last checkpoint with --resume"

# Ctrl-C of mpirun: a state that continues with the same bits. --foreground: one signal only; a second one makes mpirun kill at once.
# Messages go to a file of their own, because mpirun loses what is written at the end.
MESSAGES=$tmp/.err timeout --foreground 600 mpirun --mca odls_base_sigkill_timeout 5 -x MESSAGES -np 2 \
    sh -c 'exec "$0" "$@" 2>> "$MESSAGES"' "$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" \
    -o "$tmp/stopped" --epochs 100000 --schedule constant > "$tmp/.out" 2>&1 &
launcher=$!
await has_epochs "$tmp/stopped"
kill -TERM $launcher
wait $launcher
has "stopped: says so" "$(tail -n 3 "$tmp/.err")" "continue with --resume"
epochs=$(($(tail -n 1 "$tmp/stopped/log.tsv" | cut -f 1) + 2))
exits "stopped and resumed" 0 with 2 -o "$tmp/stopped" --resume --epochs $epochs --schedule constant -q
with 2 -o "$tmp/whole" --epochs $epochs --schedule constant -q
is "stopped and resumed: the bits of a run that was not" "$(weights "$tmp/whole/checkpoint.safetensors")" "$(weights "$tmp/stopped/checkpoint.safetensors")"
ok "stopped and resumed: there are bits" [ -n "$(weights "$tmp/whole/checkpoint.safetensors")" ]

# What must be the same on all: other options on one rank, and errors that one rank or all of them have.
both() { # both "OPTIONS OF RANK 0" "OF RANK 1"
    common="train $tmp/train.conf --train $tmp/set.lfc --dev $tmp/set.lfc -o $tmp/refused -q"
    timeout 600 mpirun -np 1 "$LINNET" $common $1 : -np 1 "$LINNET" $common $2 > "$tmp/.out" 2> "$tmp/.err"
    status=$?
    err=$(grep '^linnet:' "$tmp/.err")
}
both "" "--lr 0.5"
is "another option: status" 1 "$status"
is "another option: one sentence" 1 "$(echo "$err" | grep -c .)"
has "another option: which rank, and what" "$err" "has other training options than process 0"
both "" "--layers 1 --set conv-layers=1"
has "another network" "$err" "trains another network than process 0"
cp "$tmp/data/text" "$tmp/text"
sed 's/TWO/ONE/' "$tmp/text" > "$tmp/data/text"
"$LINNET" prepare "$tmp/data" --audio-root "$tmp/data" --lexicon "$tmp/dict" --stack 3 -q -o "$tmp/other.lfc"
both "" "--train $tmp/other.lfc"
has "another cache" "$err" "has other training data than process 0"
both "" "--train $tmp/missing.lfc"
has "a cache that one process lacks" "$err" "process 1, on $(uname -n): "
has "a cache that one process lacks: which" "$err" "missing.lfc"
is "a cache that one process lacks: one sentence" 1 "$(echo "$err" | grep -c .)"
exits "a folder with a run" 1 with 2 -o "$tmp/two"
is "a folder with a run: one sentence" 1 "$(echo "$err" | grep -c '^linnet:')"
has "a folder with a run: what to do" "$err" "--resume"
if "$LINNET" devices 2> /dev/null | grep -q avx2; then
    timeout 600 mpirun -np 1 -x LINNET_ISA=portable "$LINNET" $common : -np 1 -x LINNET_ISA=avx2 "$LINNET" $common > /dev/null 2> "$tmp/.err"
    has "other instructions" "$(cat "$tmp/.err")" "which give other bits"
fi

LINNET_MPI_LIBRARY=$tmp/nowhere.so with 2 -o "$tmp/nolib"
has "without the transport" "$err" "2 processes were started together, but liblinnet_mpi.so cannot be opened"
finish
