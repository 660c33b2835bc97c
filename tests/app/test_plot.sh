# linnet plot: tables to charts, and what is wrong with a table or an option in one sentence.
. tests/app/common.sh

t=$tmp/t.tsv
printf 'name\tn\tms\n# a comment\nlinear\t512\t1.5\nlinear\t1024\t3\nlsh-4\t512\t6\nlsh-4\t1024\t-\nlsh-4\t2048\t24\n' > "$t"
exits "a chart" 0 run plot "$t" --x 'n:N (frames)' --y ms --by name --axes x-scale=log2,y-scale=log --title 'Time'
for part in '<svg ' '>Time</text>' '>N (frames)</text>' '>ms</text>' '>linear</text>' '>lsh-4</text>' '>1,024</text>' '</svg>'; do has "a chart" "$out" "$part"; done
is "two curves" 2 "$(grep -c '<polyline' "$tmp/.out")"
if command -v python3 > /dev/null; then
    ok "well-formed XML" python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$tmp/.out"
fi
printf 'n\tms\n1\t10\n1\t20\n2\t30\n' > "$t"
exits "to a file" 0 run plot "$t" --x n --y ms -o "$tmp/t.svg"
has "with a bar" "$(cat "$tmp/t.svg")" "h6m-3 0V"
run plot "$t" --x n --y ms
hasnt "no negative zero" "$out" '>-0<'
has "rows with the same x: their mean" "$out" 'cy="244.0"' # 66 + 356 * (1 - 15 / 30): the mean of 10 and 20

printf 'name\tms\na\t3\nb\t5\na\t4\n' > "$tmp/bars.tsv"
run plot "$tmp/bars.tsv" --y ms --by name --title 'Bars' -o "$tmp/bars.svg"
is "a bar for each name, with its mean" "2 >3.5</text> >5</text>" \
    "$(grep -c '<rect x' "$tmp/bars.svg") $(grep -o '>3.5</text>' "$tmp/bars.svg") $(grep -A 1 '<rect x' "$tmp/bars.svg" | grep -o '>5</text>')"
printf 'n\tms\n60\t10\n120\t20\n180\t30\n' > "$t"
shows "another unit" '>18</text>' plot "$t" --x 'n*0.1:tenths' --y ms
hasnt "not the old one" "$out" '>180</text>'
printf 'n\tms\n0\t1\n1\t-10\n2\t0\n3\t20\n3\t0\n' > "$t"
warns "what a logarithmic axis cannot show" "2 points and 1 error bar are not drawn: a logarithmic axis has no place for 0 and less" \
    plot "$t" --x n --y ms --axes y-scale=log
warns "of the other axis" "1 point and 0 error bars are not drawn" plot "$t" --x n --y ms --axes x-scale=log2
run plot "$t" --x n --y ms
is "a linear axis shows all" "" "$err"
refused "a factor that is none" 2 "--x is COLUMN[*X][:LABEL]" plot "$t" --x 'n*x' --y ms
refused "no column" 2 "--y is COLUMN[*X][:LABEL]" plot "$t" --x n --y ':y'
refused "no such column" 1 "has no column named 'x'" plot "$t" --x x --y ms
refused "no table" 1 "none.tsv" plot "$tmp/none.tsv" --x n --y ms
printf 'n\tms\n1\tten\n' > "$t"
printf 'n\tms\tms\n1\t2\t3\n' > "$tmp/two.tsv"
refused "two columns of a name" 1 "two.tsv has two columns named 'ms'" plot "$tmp/two.tsv" --x n --y ms
printf 'n\tms\n1\t-\n' > "$tmp/head.tsv"
exits "nothing to draw" 0 run plot "$tmp/head.tsv" --x n --y ms
has "nothing to draw: said" "$err" "head.tsv: the chart is empty, as no row has a number for --y and --x"
refused "not a number" 1 "t.tsv:2: 'ten' is not a number" plot "$t" --x n --y ms
: > "$t"
refused "an empty table" 1 "is empty" plot "$t" --x n --y ms
printf 'n\tms\n1\t10\n' > "$t"
refused "the table itself as output" 2 "t.tsv" plot "$t" --x n --y ms -o "$t"
finish
