#!/bin/sh
# mutate.sh FOLDER [CASES KERNEL]...: leaves out each barrier, wait and syncwarp of a kernel once, and says what finds it.
#
# FOLDER/*.ptx is what make ptx-programs makes of the kernels (build/ptx/80). CASES are of tests/kernels/ops_cases.c, with commas
# between, each for what those before it do not find; KERNEL is the mangled name. Without them: the kernels of the main path.
# Writes a table in Markdown: kernel, place, what was left out, and what found it: a check of the machine of tests/ptx, a wrong
# result, or nothing. A quarter of an hour of one core.
set -u
cd "$(dirname "$0")/../.." || exit 2
folder=$1
shift
test=${TEST:-build/release/tests/cuda/test_cuda_ops}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LINNET_EMULATION_PTX="$folder" LINNET_EMULATION_CAPABILITY=80 LINNET_EMULATION_SHARED=163 CK_FORK=no
long=attention,attention_long job=EEv13attention_job norm=EEvPfS0_S0_PKfS2_iS2_S2_S2_ii13lin_cuda_mask
[ $# -gt 0 ] || set -- \
    $long "_Z12forward_rowsILi32ELi1ELi0$job" $long "_Z12forward_rowsILi32ELi1ELi1$job" \
    $long "_Z16backward_queriesILi32ELi1ELi0$job" $long "_Z16backward_queriesILi32ELi1ELi1$job" \
    $long "_Z13backward_keysILi32ELi1ELi0$job" $long "_Z13backward_keysILi32ELi1ELi1$job" \
    attention_long "_Z12stretch_sumsILi32ELi1ELi1$job" attention_splits _Z12forward_step13attention_jobj \
    decayed _Z12decayed_scanIL12decayed_pass0ELi8EEv11decayed_job decayed _Z12decayed_scanIL12decayed_pass1ELi8EEv11decayed_job \
    decayed _Z12decayed_scanIL12decayed_pass2ELi8EEv11decayed_job decayed _Z12decayed_scanIL12decayed_pass3ELi8EEv11decayed_job \
    block_end_backward "_Z13gradient_rowsILi16ELi3ELi2$norm" block_end_backward "_Z13gradient_rowsILi16ELi3ELi3$norm" \
    ctc _Z9ctc_pathsILi1ELi0EEv7ctc_job ctc _Z9ctc_pathsILi2ELi1EEv7ctc_job ctc _Z12ctc_gradientPf7ctc_jobiPKd \
    fbank _Z12fbank_frames9fbank_job stack_frames _Z10stack_rowsIfEvPT_PKS0_S3_S3_PKiS5_iiijii \
    carry _Z16carry_utterancesILi32ELi3EEvPfPKiPKfS2_PKS0_mS2_S2_ii feedforward _Z12pass_and_sumIffLi1EEvPT_PKT0_PKS0_Pfiiif \
    feedforward _Z4foldPKfii14lin_cuda_totalS1_S1_ linear _Z4packIfEvPfPKf10pack_items tally_losses _Z8tally_upP9lin_tallyPKdPKiS4_i \
    optimiser _Z9sum_spansPdPKf11tensor_list clip _Z12clip_tensorsPdP9lin_tallyPKdidi

echo '| kernel | place | left out | found by |'
echo '|---|---|---|---|'
while [ $# -ge 2 ]; do
    cases=$(echo "$1" | tr , ' ') kernel=$2 i=0
    shift 2
    while :; do
        for case in $cases; do
            LINNET_EMULATION_PTX_WITHOUT=$kernel,$i LINNET_TEST_CASE=$case timeout 3000 "$test" > "$work/out" 2>&1 < /dev/null
            status=$?
            what=$(sed -n 's/^ptx: left out: //p' "$work/out" | head -n 1)
            place=${what%%: *}
            found=$(sed -n 's/^ptx: error: .*lane -*[0-9]*: //p' "$work/out" | head -n 1)
            [ -n "$found" ] || { grep -aq ':F:' "$work/out" && found='a wrong result'; }
            [ -n "$found" ] || { [ $status != 0 ] && found="status $status"; }
            [ -z "$found" ] || break
        done
        grep -aq 'has not as many' "$work/out" && break
        [ -n "$found" ] || { grep -aq 'the place was reached' "$work/out" || found='not reached'; }
        echo "| $kernel | $(basename "$place") | $(echo "${what#*: }" | tr '\t' ' ') | ${found:-**nothing**} |"
        i=$((i + 1))
        [ -n "$what" ] || break # another case launches it
    done
done
