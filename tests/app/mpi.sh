# mpi.sh - what the tests of training on several processes share. Sourced after common.sh; ends the test where MPI is not there.

transport=$(dirname "$LINNET")/liblinnet_mpi.so
if ! command -v mpirun > /dev/null || [ ! -f "$transport" ]; then
    echo "skipped: mpirun or $transport is not there (Debian: openmpi-bin, libopenmpi-dev)"
    finish
fi
case $(mpirun --version 2>&1) in # that of version 5 crashes with two programs, and takes other options
*"Open MPI) 4"*) ;;
*) echo "skipped: this mpirun is not Open MPI 4's"; finish ;;
esac
make_model || { echo "no model"; exit 1; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export ASAN_OPTIONS=detect_leaks=0 OMPI_MCA_btl_base_warn_component_unused=0
sed -i '/epochs/d' "$tmp/train.conf"
cat >> "$tmp/train.conf" << END
epochs = 4
batch-frames = 400
threads = 1
device = cpu
dropout = 0.1
time-masks = 1
END

# with N [mpirun options --] ARGS...: linnet train on N processes; $status, $err
with() {
    n=$1 more=
    shift
    case $1 in --mca) while [ "$1" != -- ]; do more="$more $1"; shift; done; shift ;; esac
    timeout 600 mpirun $more -np "$n" "$LINNET" train "$tmp/train.conf" --train "$tmp/set.lfc" --dev "$tmp/set.lfc" "$@" \
        > "$tmp/.out" 2> "$tmp/.err"
    status=$?
    err=$(cat "$tmp/.err")
    case $err in *Sanitizer*|*"runtime error"*) fail "no sanitizer report" "$err" ;; esac
}
# near NAME A B: two runs have the same numbers (epoch, step, losses, PER) but for their last digits, because several processes add
# up gradients in another order.
near() {
    ok "$1" awk 'NR == FNR { for (i = 1; i <= 5; i++) want[FNR, i] = $i; n = FNR; next }
        FNR > 1 { for (i = 1; i <= 5; i++) { d = $i - want[FNR, i]; if (d * d > 1e-10 * $i * $i) bad = 1 } m = FNR }
        END { exit bad || n < 2 || m != n }' "$2/log.tsv" "$3/log.tsv"
}
same_model() { ok "$1" cmp "$2/best.safetensors" "$3/best.safetensors"; }
