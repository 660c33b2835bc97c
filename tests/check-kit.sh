#!/bin/sh
# check-kit.sh KIT: rehearses the GPU kit where it will run: in empty roots of Debian 12 and 13, without compilers and network, with the
# emulated backend behind the pretended driver. Every stage runs to its end or says in a sentence what is missing. Caches of speech are
# replaced by small synthetic ones.
#
#   ROOTS=build/kit-roots    the roots, made by debootstrap if they do not exist
#   STAGES=...               the stages, if not all
# As an ordinary user, or without debootstrap and roots: on this system alone, with a PATH without compilers.
set -u
kit=$1
roots=${ROOTS:-build/kit-roots}
emulated=${EMULATED:-build/release/emulated}
work=$(mktemp -d) || exit 1
root=
trap '[ -z "$root" ] || umount "$root/proc" 2> /dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0
good() { passed=$((passed + 1)); echo "ok      $1"; }
bad() { failed=$((failed + 1)); echo "FAILED  $1"; [ -z "${2:-}" ] || echo "$2" | sed 's/^/        /'; }

# judge NAME STATUS OUT: what a run has left
judge() {
    name=$1 status=$2 out=$3
    [ "$status" = 0 ] && good "$name: exit status 0" || bad "$name: exit status $status" "$(tail -n 20 "$out.log")"
    for wanted in README.md results.json raw/00-about.jsonl; do
        [ -s "$out/$wanted" ] && good "$name: $wanted" || bad "$name: no $wanted"
    done
    grep -q 'Emulated GPU 0' "$out/README.md" 2> /dev/null && good "$name: the device" || bad "$name: no device in README.md"
    for stage in 01-smoke-linear 01-smoke-attention 01-smoke-graph 11-limits-linnet 60-ops-tf32-0 20-epoch-linnet-tf32-1-16000 40-streams-tf32 \
        30-attention-linnet-tf32 32-rivals-linnet-tf32 70-train-same-2 71-train 74-train-average 80-table3; do
        case ${STAGES:-all} in
        all) ;;
        *) part=$(echo "$stage" | cut -d - -f 2) && case ,$STAGES, in *",$part,"*) ;; *) continue ;; esac ;;
        esac
        if [ -f "$out/raw/$stage.done" ]; then good "$name: $stage ran to its end"
        elif [ -s "$out/raw/99-left-out-$stage.jsonl" ]; then bad "$name: $stage was left out" "$(cat "$out/raw/99-left-out-$stage.jsonl")"
        else bad "$name: $stage neither ran nor was left out"
        fi
    done
    case ,${STAGES:-check}, in
    *,check,*)
        for test in tests/cuda/test_cuda_*.c; do
            test=$(basename "$test" .c)
            grep -q '"result": "[1-9][0-9]* passed, 0 failed' "$out/raw/02-check-$test.jsonl" 2> /dev/null && good "$name: $test" || bad "$name: $test"
        done
        grep -q 'phonemes in fp32; tf32: ' "$out/raw/02-check-test_cuda_speech.log" || bad "$name: no recorded speech"
        for case in $(grep -oE '\<X\([a-z0-9_]+\)' tests/kernels/ops_cases_internal.h | tr -d 'X()'); do
            grep -q "^ok  *test_cuda_ops [a-z0-9_]* ($case)" "$out/raw/02-check-test_cuda_ops.log" || bad "$name: the operations' case $case did not run"
        done ;;
    esac
    ! grep -h '"result": "[0-9]* passed, [1-9]\|FAILED' "$out"/raw/*.jsonl 2> /dev/null | grep . && good "$name: no case failed" || bad "$name: failed cases"
    missing=$(grep -E 'command not found|: [0-9]+: .*: not found|No such file' "$out.log" | head -n 5)
    [ -z "$missing" ] && good "$name: nothing is missing" || bad "$name: something is missing" "$missing"
}

all=smoke,check,limits,ops,epoch,streams,attention,sanitizer,train,table3
pretended='PATIENCE=10 CASE_PATIENCE=8 LINNET_CUDA_DRIVER=/pretended/libcuda.so.1 LINNET_CUDA_LIBRARY=/pretended/liblinnet_cuda.so'
options="--quick --hours 0.001 --seconds ${SECONDS_EACH:-1500} --stage ${STAGES:-$all}"
caches() { # KIT
    rm -rf "$1/caches"
    mkdir "$1/caches" || exit 1
    for set in train_native dev_native; do "$1/bin/bench_gpu" cache --hours 0.002 --quick --file "$1/caches/$set.lfc" || exit 1; done
}
rehearsed=no
for release in bookworm trixie; do
    root=$roots/$release
    if [ ! -x "$root/bin/sh" ]; then
        [ "$(id -u)" = 0 ] && command -v debootstrap > /dev/null || { echo "skipped $release: no root in $root, and making one needs debootstrap as root"; continue; }
        mkdir -p "$roots" || exit 1
        debootstrap --variant=minbase $release "$root" > "$work/$release.log" 2>&1 || { echo "skipped $release: $(tail -n 1 "$work/$release.log")"; continue; }
    fi
    for tool in gcc cc make nvcc python3; do [ ! -e "$root/usr/bin/$tool" ] || bad "$release: the root is not empty, it has $tool"; done
    rm -rf "$root/kit" "$root/pretended" "$root/out"
    mkdir "$root/pretended" && cp -r "$kit" "$root/kit" && cp "$emulated/libcuda.so.1" "$emulated/liblinnet_cuda.so" "$root/pretended/" || exit 1
    caches "$root/kit"
    mkdir -p "$root/proc" "$root/out"
    mount -t proc proc "$root/proc" 2> /dev/null
    from=$(date +%s)
    # A name space without a network, where the system allows one.
    unshare=
    unshare -n true 2> /dev/null && unshare='unshare -n'
    # shellcheck disable=SC2086 # several words
    $unshare chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp $pretended sh -c "cd /tmp && /kit/run.sh $options --out /out" > "$root/out.log" 2>&1
    status=$?
    umount "$root/proc" 2> /dev/null
    judge "$release" $status "$root/out"
    echo "$release: $(($(date +%s) - from)) s"
    rehearsed=yes
done
if [ $rehearsed = no ]; then
    mkdir "$work/bin" "$work/out"
    cp -r "$kit" "$work/kit" && caches "$work/kit"
    for tool in sh cat cp cut date dirname basename env grep head sed sort tail tee timeout tr awk nproc mktemp mkdir rm ls ln cmp paste seq sleep uname kill bash; do
        found=$(command -v $tool) && ln -s "$found" "$work/bin/"
    done
    # shellcheck disable=SC2086
    env -i PATIENCE=10 CASE_PATIENCE=8 PATH="$work/bin" HOME="$work" LINNET_CUDA_DRIVER="$PWD/$emulated/libcuda.so.1" LINNET_CUDA_LIBRARY="$PWD/$emulated/liblinnet_cuda.so" \
        sh "$work/kit/run.sh" $options --out "$work/out" > "$work/out.log" 2>&1
    judge "this system" $? "$work/out"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
