#!/bin/sh
# registers.sh FOLDER [KERNEL...]: a table in Markdown of what ptxas makes of the kernels that nvcc compiled (make ptx-files): registers
# of a thread and, behind a +, bytes of it that are spilled, by architecture. FOLDER/80 serves the architectures before 9.0. KERNEL is
# the name as in C++, 'norm_rows<16, 3>'; without any: those of training and of streams. Needs ptxas.
set -eu
folder=${1:?registers.sh: which folder? make ptx-files writes build/ptx}
shift
[ $# -gt 0 ] || set -- 'forward_rows<32, 0, 0>' 'backward_queries<32, 0, 0>' 'backward_keys<32, 0, 0>' 'forward_rows<32, 0, 1>' \
    'backward_queries<32, 0, 1>' 'backward_keys<32, 0, 1>' forward_step 'decayed_forward<40>' 'decayed_queries<40>' 'decayed_keys<40>' \
    'decayed_step<40>' 'norm_rows<16, 3>' 'norm_rows<32, 2>' 'gradient_rows<16, 3, 3>' 'gradient_rows<32, 2, 3>' activate \
    'pass_and_sum<unsigned short, unsigned short, 1>' sum_narrow 'add_slices<unsigned short>' fold 'ctc_paths<2, 0>' 'ctc_paths<2, 1>' \
    ctc_gradient conv_rows fbank_frames adam_spans
PATH=$PATH:/usr/local/cuda/bin
command -v ptxas >/dev/null || { echo 'registers.sh needs ptxas, on the PATH or in /usr/local/cuda/bin' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for from in 80 90; do
    grep -Ho '\.entry [A-Za-z0-9_]*' "$folder/$from"/*.ptx | sed "s|:.entry | |" | while read -r file entry; do
        echo "$file $entry $(echo "$entry" | c++filt | sed 's/^void //; s/(.*//')"
    done >"$work/$from"
done
echo '| kernel | most threads of a block | 8.0 | 8.6 | 8.9 | 9.0 | 10.0 | 12.0 |'
echo '|---|---|---|---|---|---|---|---|'
for kernel; do
    line= threads=
    for arch in 80 86 89 90 100 120; do
        [ $arch -lt 90 ] && from=80 || from=90
        found=$(awk -v kernel="$kernel" '{ name = $3; for (i = 4; i <= NF; i++) name = name " " $i } name == kernel { print $1, $2; exit }' "$work/$from")
        [ "$found" ] || { echo "registers.sh: no kernel $kernel in $folder/$from" >&2; exit 1; }
        file=${found% *} entry=${found#* }
        [ "$threads" ] || threads=$(awk -v entry="$entry" '/\.entry / { on = index($0, ".entry " entry "(") } on && /\.maxntid/ { print $2 + 0; exit }' "$file")
        ptxas -v -arch=sm_$arch -e "$entry" -o "$work/cubin" "$file" 2>"$work/said" || { cat "$work/said" >&2; exit 1; }
        line="$line $(sed -n 's/.* \([0-9]*\) bytes spill stores.*/\1/p; s/.*Used \([0-9]*\) registers.*/\1/p' "$work/said" | tr '\n' ' ' |
            awk '{ print $1 ? $2 " + " $1 : $2 }') |"
    done
    echo "| \`$kernel\` | ${threads:-any} |$line"
done
