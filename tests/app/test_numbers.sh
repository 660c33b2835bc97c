# [native release] Numbers of README.md, RESULTS.md and docs/*.md. What is checked:
# - Each table of measurements is between marks, <!-- measured: NAME; ... --> and <!-- end -->, or <!-- measured DATE: COMMAND -->
#   and <!-- end --> where recipes/open/results.sh cannot measure it again. A table counts as one of measurements if more than half
#   of its cells, but for the first column and the empty ones, are numbers, with or without a unit.
# - The fingerprints of a mark are those of the installed models, its `lm` the sum of the installed language models.
# - Each NAME is a table of results.sh, or the mark has a date.
# - In the text outside of tables, examples of output and code, each number with a decimal point and a % is in a cell of a marked
#   table of these pages. Not checked: whole numbers and other units, because options have such values too.
. tests/app/common.sh
pages="README.md RESULTS.md $(ls docs/*.md)"

# ---- the installed models --------------------------------------------------------------------------------------------------------

for model in default offline small; do
    echo "$model $("$LINNET" info --json $model | sed 's/.*"fingerprint": "\([0-9a-f]*\)".*/\1/')"
done > "$tmp/known"
echo "lm $(for file in phones.lm words.lm words.dict.gz words.safetensors; do cat share/linnet/en/$file; done |
    cksum | cut -d ' ' -f 1)" >> "$tmp/known"
is "four fingerprints" 4 "$(grep -cE '^[a-z]+ [0-9a-f]{8,}$' "$tmp/known")"
grep -oE 'emit [a-z0-9-]+' recipes/open/results.sh | sed 's/emit //' > "$tmp/tables"

# ---- the checks, as functions of pages -------------------------------------------------------------------------------------------

# wrong_marks PAGE...: marks that are not closed, are empty, or name another model, no table of results.sh, or nothing
wrong_marks() {
    awk -v known="$tmp/known" -v tables="$tmp/tables" '
        BEGIN { while ((getline line < known) > 0) is[line] = 1; while ((getline line < tables) > 0) table[line] = 1 }
        function wrong(what) { print FILENAME ": " FNR ": " what }
        FNR == 1 { if (open) print before ": the last mark has no end"; open = 0; before = FILENAME }
        /<!-- end -->/ { if (!open) wrong("an end without a beginning"); else if (!rows) wrong("no table within the marks"); open = 0 }
        open && /^ *\|/ { rows++ }
        /<!-- measured/ {
            if (open) wrong("a mark within marks")
            open = 1; rows = 0
            if (match($0, /<!-- measured 20[0-9][0-9]-[01][0-9]-[0-3][0-9]: ./)) next
            if (!match($0, /<!-- measured: [a-z0-9-]+; /)) { wrong("neither a name nor a date and a command"); next }
            name = substr($0, RSTART + 15, RLENGTH - 17)
            sub(/-(names|voice)$/, "-", name)
            if (!(name in table)) wrong("results.sh has no table " name)
            n = split($0, part, /[;,] */); named = 0
            for (i = 2; i <= n; i++) if (part[i] ~ /^[a-z]+ [0-9a-f]+$/ && part[i] !~ /^no /) {
                named++
                if (!(part[i] in is)) wrong(part[i] " is not installed")
            }
            if (!named && $0 !~ /; (no model|20[0-9][0-9]-[01][0-9]-[0-3][0-9])/) wrong("neither a fingerprint nor a date")
        }
        END { if (open) print before ": the last mark has no end" }' "$@"
}

# unmarked PAGE...: tables of measurements outside of marks
unmarked() {
    awk 'function over() {
            if (rows && numbers * 2 > cells) print FILENAME ": " first
            rows = cells = numbers = 0
        }
        FNR == 1 { rows = cells = numbers = marked = code = 0 }
        /^```/ { code = !code }
        /<!-- measured/ { marked = 1 }
        /<!-- end -->/ { marked = 0 }
        /^ *\|/ && !marked && !code && !/^    / {
            if (!rows++) { first = FNR ": " $0; next }
            if ($0 ~ /^ *\|[-| :]*$/) next
            n = split($0, cell, "|")
            for (i = 3; i < n; i++) {
                gsub(/^ +| +$/, "", cell[i])
                if (cell[i] == "") continue
                cells++
                if (cell[i] == "-" || cell[i] ~ /^[-+~]?[0-9][0-9.,]*( (%|ms|s|us|GB|MB|KB|M|x|times|bytes))?( \(.*\))?$/) numbers++
            }
            next
        }
        { over() }
        END { over() }' "$@"
}

# loose PAGE...: numbers with a decimal point and a % in the text that no cell of a marked table of $pages has
loose() {
    awk -v pages="$pages" '
        BEGIN {
            n = split(pages, page, " ")
            for (p = 1; p <= n; p++) {
                marked = 0
                while ((getline line < page[p]) > 0) {
                    if (line ~ /<!-- measured/) marked = 1
                    if (line ~ /<!-- end -->/) marked = 0
                    while (marked && match(line, /[0-9]+\.[0-9]+/)) {
                        of[substr(line, RSTART, RLENGTH)] = 1
                        line = substr(line, RSTART + RLENGTH)
                    }
                }
                close(page[p])
            }
        }
        FNR == 1 { code = marked = 0 }
        /^```/ { code = !code }
        /<!-- measured/ { marked = 1 }
        /<!-- end -->/ { marked = 0; next }
        code || marked || /^ *\|/ || /^    / { next }
        {
            line = $0
            while (match(line, /[0-9]+\.[0-9]+ %/)) {
                if (!(substr(line, RSTART, RLENGTH - 2) in of)) print FILENAME ": " FNR ": " substr(line, RSTART, RLENGTH)
                line = substr(line, RSTART + RLENGTH)
            }
        }' "$@"
}

# ---- the pages -------------------------------------------------------------------------------------------------------------------

is "each mark names the installed models, or a date and a command" "" "$(wrong_marks $pages)"
is "each table of measurements is between marks" "" "$(unmarked $pages)"
is "the text quotes numbers of tables" "" "$(loose $pages)"
[ "$(cat $pages | grep -c '<!-- measured: .*default [0-9a-f]\{16\}')" -ge 8 ] || fail "the pages have tables of the default model"

# ---- they can fail ---------------------------------------------------------------------------------------------------------------

sure=$(sed -n 's/^default //p' "$tmp/known")
cat > "$tmp/good.md" << END
<!-- measured: words; default $sure; 2026-11-28 -->
| a | WER % | n |
|---|---|---|
| b | 12.25 | 3 |
<!-- end -->
END
is "a good page" "" "$(wrong_marks "$tmp/good.md"; unmarked "$tmp/good.md")"
bad() { # bad "what" FUNCTION SED: the good page, changed so, is told
    sed "$3" "$tmp/good.md" > "$tmp/bad.md"
    is "$1" 1 "$($2 "$tmp/bad.md" | wc -l | tr -d ' ')"
}
bad "a fingerprint of another model" wrong_marks "s/$sure/0123456789abcdef/"
bad "no such table" wrong_marks 's/words/letters/'
bad "neither a fingerprint nor a date" wrong_marks '1s/;.*-->/; -->/'
bad "no end" wrong_marks '/end/d'
bad "no table" wrong_marks '/^|/d'
bad "a table without a mark" unmarked '/<!--/d'
bad "a number of no table" loose '$aIt makes 71.93 % errors.'
finish
