# Which folder may include which: the calls of "only" below. Also: the library never prints and never exits, all memory is allocated
# through base/memory.h, and no source file is longer than 1,000 lines.
. tests/app/common.sh

# includes FOLDER: "file header" of every project header included there
includes() { grep -rHoE '^ *# *include *"[^"]+"' --include='*.[ch]' --include='*.cu' "$1" 2> /dev/null | sed 's/: *# *include */ /; s/"//g'; }

# only FOLDER PATTERN: every include of the folder matches the pattern
only() {
    bad=$(includes "$1" | awk -v allowed="$2" '$2 !~ allowed')
    n=$(includes "$1" | wc -l | tr -d ' ')
    is "$1/ includes only what it may ($2)" "" "$bad"
    [ "$n" -gt 0 ] || fail "$1/ was looked at" "no include was found: is this the root of the source tree?"
}
only base '^base/'
only kernels '^(kernels|base)/'
only frontend '^(frontend|kernels|base)/'
only model '^(model|kernels|base)/'
only lexicon '^(lexicon|base)/'
only decoder '^(decoder|lexicon|base)/'
only linnet '^(linnet|frontend|model|lexicon|decoder|kernels|base)/'
only app '^(app|linnet|frontend|model|lexicon|decoder|kernels|base)/'

# The check can fail.
mkdir "$tmp/decoder"
printf '#include "kernels/ops.h"\n  # include "model/model.h"\n#include <stdio.h>\n' > "$tmp/decoder/x.c"
is "a forbidden include is seen" 2 "$(includes "$tmp/decoder" | awk '$2 !~ "^(decoder|lexicon)/"' | wc -l | tr -d ' ')"

library=$(ls base/*.c kernels/*.c kernels/*/*.c frontend/*.c model/*.c lexicon/*.c decoder/*.c linnet/*.c)
calls() { grep -nE "(^|[^A-Za-z0-9_>.])($1) *\(" $library | grep -vE ':[0-9]+: *(//|\*|/\*)'; }
is "the library never prints" "" "$(calls 'printf|puts|putchar|perror|fputs *\(.*std(out|err)|fprintf *\( *std(out|err)|vprintf')"
is "the library never exits" "" "$(calls 'exit|_exit|abort|quick_exit')"
is "memory is taken through base/memory.h" "" "$(calls 'malloc|calloc|realloc|strdup|strndup|free' | grep -v '^base/memory.c:')"

sources=$(git ls-files '*.c' '*.h' '*.cu' 2> /dev/null || ls */*.[ch] */*/*.[ch])
long=
for f in $sources; do
    [ -f "$f" ] || continue
    [ "$(wc -l < "$f")" -le 1000 ] || long="$long $f"
done
is "no source is over 1,000 lines" "" "$long"
finish
