# [native release] Which folder may include which, by the table of docs/architecture.md. Also: the library never prints and never
# exits, all memory is allocated through base/memory.h, one name for one thing, and the form of the sources.
. tests/app/common.sh

# includes FOLDER: "file header" of every project header included there
includes() { grep -rHoE '^ *# *include *"[^"]+"' --include='*.[ch]' --include='*.cu' "$1" 2> /dev/null | sed 's/: *# *include */ /; s/"//g'; }

# The table of docs/architecture.md: lines "folder allowed|allowed|...", the folder itself included.
table=$(awk -F'|' '/^\| folder \| may include/ { on = 1 } on && /^\| `[a-z\/]+\/` \|/ { gsub(/\/`/, " "); gsub(/[`,]/, ""); n = split($3, may, " "); f = $2; gsub(/ /, "", f)
    printf "%s %s", f, f; for (i = 1; i <= n; i++) if (may[i] != "nothing") printf "|%s", may[i]; print "" }' docs/architecture.md)
folders=$(sed -n '/^FOLDERS :=/,/[^\\]$/p' Makefile | tr -c 'a-z/\n' ' ' | tr ' ' '\n' | grep -E '^([a-z]+|train/[a-z]+)$' | sort | paste -s -d ' ' -)
is "the table of docs/architecture.md has every folder of the Makefile" \
    "$folders" "$(echo "$table" | cut -d' ' -f1 | sort | paste -s -d ' ' -)"
is "decoder/ may include base/ and lexicon/" "decoder decoder|base|lexicon" "$(echo "$table" | grep '^decoder')"

while read -r folder may; do
    bad=$(includes "$folder" | grep -v '^[a-z/]*/\(cmd\|bench\)_' | awk -v allowed="^($may)/|^linnet/linnet.h$" '$2 !~ allowed')
    n=$(includes "$folder" | wc -l | tr -d ' ')
    is "$folder/ includes only what it may ($may)" "" "$bad"
    [ "$n" -gt 0 ] || fail "$folder/ was looked at" "no include was found: is this the root of the source tree?"
done << END
$table
END

# loops FOLDER...: what tsort says where headers include each other in a circle
loops() { for d in "$@"; do includes "$d"; done | sed 's|^\./||' | awk '$1 ~ /h$/ && $2 ~ /h$/' | tsort 2>&1 > /dev/null; }
is "no headers include each other in a circle" "" "$(loops $folders)"
mkdir "$tmp/circle"
printf '#include "%s/b.h"\n' "$tmp/circle" > "$tmp/circle/a.h"
printf '#include "%s/a.h"\n' "$tmp/circle" > "$tmp/circle/b.h"
[ -n "$(loops "$tmp/circle")" ] || fail "a circle is seen" "tsort found none"

# The check can fail.
mkdir "$tmp/decoder"
printf '#include "kernels/ops.h"\n  # include "model/model.h"\n#include <stdio.h>\n' > "$tmp/decoder/x.c"
is "a forbidden include is seen" 2 "$(includes "$tmp/decoder" | awk '$2 !~ "^(decoder|lexicon)/"' | wc -l | tr -d ' ')"

library=$(for folder in $folders; do ls "$folder"/*.c "$folder"/*/*.c 2> /dev/null; done | sort -u | grep -vE '^(app|serve)/|/(cmd|bench)_|^train/mpi/')
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
product=$(printf '%s\n' $sources | grep -E "^($(echo "$folders" | tr ' ' '|'))/")

# rule "what" COMMAND "LINES": COMMAND FILES prints what breaks a rule. It prints nothing of the sources, and something of LINES.
rule() {
    printf '%s\n' "$3" > "$tmp/bad.c"
    is "$1" "" "$($2 $sources)"
    [ -n "$($2 "$tmp/bad.c")" ] || fail "$1: what breaks it is seen" "$3"
}

# Types of the product: "lin_x FOLDER" for each file that defines one. FOLDER is that of a backend: others define it too.
types() {
    grep -HoE '^(typedef )?(struct|union|enum) lin_[a-z0-9_]+ *\{|^typedef [a-z].* \*?lin_[a-z0-9_]+;' "$@" |
        sed -nE 's/:(typedef )?(struct|union|enum) (lin_[a-z0-9_]+) *\{/ \3/p
            /:typedef (struct|union|enum) (lin_[a-z0-9_]+) lin_[a-z0-9_]+;/d; s/:typedef .* \*?(lin_[a-z0-9_]+);/ \1/p' |
        sort -u | awk '{ if (!sub(/\/(ref|cpu|cuda)\/[^\/]*$/, "&", $1)) $1 = ""; sub(/\/[^\/]*$/, "", $1); print $2, $1 }'
}
twice() { sort | uniq -d; }
is "no two types of one name" "" "$(types $product | twice)"
printf 'typedef struct lin_a {\n' > "$tmp/a.h"
printf 'struct lin_a {\ntypedef int lin_b;\n' > "$tmp/b.h"
is "two types of one name are seen" "lin_a " "$(types "$tmp/a.h" "$tmp/b.h" | twice)"
[ "$(types $product | wc -l)" -gt 300 ] || fail "types were found" "$(types $product | wc -l)"

# Base names: those of the backends are one operation in several.
bases() { printf '%s\n' "$@" | grep -vE '/(ref|cpu|cuda)/' | sed 's|.*/||'; }
is "no two sources of one name" "" "$(bases $product | twice)"
is "two sources of one name are seen" "x.c" "$(bases app/x.c linnet/x.c kernels/cpu/x.c | twice)"

# foreign: of "file header", the headers for one folder only that a file of another folder includes.
foreign() { awk '$2 ~ /_internal\.h$/ { file = $1; header = $2; sub(/[^\/]*$/, "", file); sub(/[^\/]*$/, "", header); if (file != header) print }'; }
is "no internal header of another folder" "" "$(for folder in $folders; do includes "$folder"; done | foreign)"
is "an internal header of another folder is seen" "app/x.c decoder/y_internal.h" \
    "$(printf 'app/x.c decoder/y_internal.h\ndecoder/x.c decoder/y_internal.h\n' | foreign)"

# Tests of the library do not include what is the program's; those of tests/fuzz are of both.
programs() { grep -HE '^#include "(app|serve)/|^#include "[a-z/]*/(cmd|bench)_' "$@"; }
is "tests of the library do not parse a command line" "" \
    "$(programs $(printf '%s\n' $sources | grep -E "^tests/($(echo "$folders" | tr ' ' '|'))/" | grep -vE '^tests/(app|serve)/'))"
printf '#include "app/options.h"\n' > "$tmp/test_x.c"
[ -n "$(programs "$tmp/test_x.c")" ] || fail "a test that includes app/ is seen" ""

# Characters, not bytes: those that continue one in UTF-8 do not count.
too_wide() { awk '{ gsub(/[\200-\277]/, "") } length > 130 { print FILENAME ":" FNR }' "$@"; }
rule "lines of at most 130 columns" too_wide "// $(printf '%130s' x)"

# /* ---- name ---...--- */, to column 130
marks() {
    awk '/^ *(\/\/|\/\*) ?---/ { gsub(/[\200-\277]/, ""); if (!/^ *\/\* ---- [^-].* -+ \*\/$/ || length != 130) print FILENAME ":" FNR }' "$@"
}
rule "section marks of one form" marks '// ---- a section ----'

forms() { grep -nE '(if|while) \(([a-z]+(->|\.))?status\)|!status\>|&& status\)|\|\| status\)' "$@" /dev/null | grep -v '[!=]= status'; }
rule "a status is compared with LIN_OK" forms 'if (status) return status;'

long() { awk 'FNR == 1001 { print FILENAME }' "$@"; }
rule "no source is over 1,000 lines" long "$(seq 1001)"
finish
