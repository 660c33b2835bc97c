# [native] Which folder may include which, by the table of docs/architecture.md. Also: the library never prints and never exits,
# all memory is allocated through base/memory.h, and no source file is longer than 1,000 lines.
. tests/app/common.sh

# includes FOLDER: "file header" of every project header included there
includes() { grep -rHoE '^ *# *include *"[^"]+"' --include='*.[ch]' --include='*.cu' "$1" 2> /dev/null | sed 's/: *# *include */ /; s/"//g'; }

# The table of docs/architecture.md: lines "folder allowed|allowed|...", the folder itself included.
table=$(awk -F'|' '/^\| room \| may include/ { on = 1 } on && /^\| `[a-z]+\/` \|/ { gsub(/[` ]/, ""); gsub(/\/,?/, " "); n = split($3, may, " "); f = $2; sub(/ $/, "", f)
    printf "%s %s", f, f; for (i = 1; i <= n; i++) if (may[i] != "nothing") printf "|%s", may[i]; print "" }' docs/architecture.md)
rooms=$(sed -n '/^ROOMS :=/,/[^\\]$/p' Makefile | tr -c 'a-z/\n' ' ' | tr ' ' '\n' | grep -E '^[a-z]+$' | sort | paste -s -d ' ' -)
is "the table of docs/architecture.md has every room of the Makefile" \
    "$rooms" "$(echo "$table" | cut -d' ' -f1 | sort | paste -s -d ' ' -)"
is "decoder/ may include base/ and lexicon/" "decoder decoder|base|lexicon" "$(echo "$table" | grep '^decoder')"

while read -r folder may; do
    bad=$(includes "$folder" | grep -v '^[a-z]*/\(cmd\|bench\)_' | awk -v allowed="^($may)/" '$2 !~ allowed')
    n=$(includes "$folder" | wc -l | tr -d ' ')
    is "$folder/ includes only what it may ($may)" "" "$bad"
    [ "$n" -gt 0 ] || fail "$folder/ was looked at" "no include was found: is this the root of the source tree?"
done << END
$table
END

# loops FOLDER...: what tsort says where headers include each other in a circle
loops() { for d in "$@"; do includes "$d"; done | sed 's|^\./||' | awk '$1 ~ /h$/ && $2 ~ /h$/' | tsort 2>&1 > /dev/null; }
is "no headers include each other in a circle" "" "$(loops $rooms)"
mkdir "$tmp/circle"
printf '#include "%s/b.h"\n' "$tmp/circle" > "$tmp/circle/a.h"
printf '#include "%s/a.h"\n' "$tmp/circle" > "$tmp/circle/b.h"
[ -n "$(loops "$tmp/circle")" ] || fail "a circle is seen" "tsort found none"

# The check can fail.
mkdir "$tmp/decoder"
printf '#include "kernels/ops.h"\n  # include "model/model.h"\n#include <stdio.h>\n' > "$tmp/decoder/x.c"
is "a forbidden include is seen" 2 "$(includes "$tmp/decoder" | awk '$2 !~ "^(decoder|lexicon)/"' | wc -l | tr -d ' ')"

library=$(for room in $rooms; do ls "$room"/*.c "$room"/*/*.c 2> /dev/null; done | grep -vE '^(app|serve)/|/(cmd|bench)_|^train/mpi/')
calls() { grep -nE "(^|[^A-Za-z0-9_>.])($1) *\(" $library | grep -vE ':[0-9]+: *(//|\*|/\*)'; }
is "the library never prints" "" "$(calls 'printf|puts|putchar|perror|fputs *\(.*std(out|err)|fprintf *\( *std(out|err)|vprintf')"
# A child that could not become another program ends.
is "the library never exits" "" "$(calls 'exit|_exit|abort|quick_exit' | grep -v '^base/child.c:')"
# Assertions state what callers inside the library guarantee (docs/contract.md); they are the exception. With NDEBUG they are gone.
effects() { grep -nE 'assert\(.*(\+\+|--|[^=!<>]=[^=])' "$@" | grep -v 'static_assert\|_Static_assert'; }
is "no assertion has an effect" "" "$(effects $library)"
printf 'assert(n-- > 0);\nassert((x = f()));\nassert(n >= 1 && a == b);\n' > "$tmp/effects.c"
is "an effect is seen" 2 "$(effects "$tmp/effects.c" | wc -l | tr -d ' ')"
is "assertions are on in all builds" "" "$(grep -n 'DNDEBUG' Makefile */*.mk)"
is "memory is taken through base/memory.h" "" "$(calls 'malloc|calloc|realloc|strdup|strndup|free' | grep -v '^base/memory.c:')"

sources=$(git ls-files '*.c' '*.h' '*.cu' 2> /dev/null || ls */*.[ch] */*/*.[ch])
long=
for f in $sources; do
    [ -f "$f" ] || continue
    [ "$(wc -l < "$f")" -le 1000 ] || long="$long $f"
done
is "no source is over 1,000 lines" "" "$long"
finish
