# [native] recipes/wsj: the data directories, from tiny trees of discs in every layout and with every kind of mistake; the rules
# of transcripts.
. tests/app/common.sh
[ "${CONFIG:-release}" = release ] || finish
export LINNET_FFMPEG=true # no sound is read

recipe() { script wsj/data "$@"; }

# ---- the rules of transcripts ----------------------------------------------------------------------------------------------------

# words "what" TRANSCRIPT WORDS
words() { is "text: $1" "u1${3:+ $3}" "$(printf 'u1 %s\n' "$2" | awk -f recipes/wsj/text.awk)"; }
words "upper case" 'The nineteen Ninety' 'THE NINETEEN NINETY'
words "escaped characters" 'mid\-size Dole\'"'"'s' "MID-SIZE DOLE'S"
words "%PERCENT and .POINT" '%PERCENT .POINT %percent .point' 'PERCENT POINT PERCENT POINT'
words "a noise during a word" 'a [<door_slam] b [cough>] c' 'A B C'
words "the span of a noise" '[phone_ring/] a b [/phone_ring]' 'A B'
words "pauses and cut-off sound" '~ a . b .. c ~' 'A B C'
words "other noises" '[loud_breath] a [tongue click] b[cough]c' 'A'
words "marks of noises at a word" 'a[<door_slam] [cough>]b [phone_ring/]c[/phone_ring]' 'A B C'
is "text: other noises, named" 'u1 <NOISE> A B <NOISE> C' "$(printf 'u1 [loud_breath] a [<x] b comp[misc_noise]any c\n' | awk -v noise='<NOISE>' -f recipes/wsj/text.awk)"
words "verbally deleted" '<and> the <<I>> <mean> <two words>' 'AND THE I MEAN TWO WORDS'
words "--DASH and its like" '\-\-DASH --dash ,COMMA \.PERIOD -HYPHEN :COLON &AMPERSAND %PERCENT /SLASH' \
    '-DASH -DASH COMMA PERIOD HYPHEN COLON AMPERSAND PERCENT SLASH'
words "punctuation of several words" '"DOUBLE-QUOTE ;SEMI\-COLON ?QUESTION-MARK (LEFT-PAREN )RIGHT-PAREN !EXCLAMATION-POINT "END-QUOTE' \
    'DOUBLE-QUOTE SEMI-COLON QUESTION-MARK LEFT-PAREN RIGHT-PAREN EXCLAMATION-POINT END-QUOTE'
words "punctuation at a word" 'Incorporated\-\-DASH incorporated-DASH U.S.\-\-DASH end\.PERIOD and,COMMA' \
    'INCORPORATED--DASH INCORPORATED-DASH U.S.--DASH END.PERIOD AND,COMMA'
words "misprints" 'Corp; `tis and, wh!y' "CORP 'TIS AND WHY"
words "noises with hyphens, before and after" '[loud-breath] [<microphone_mvt>] a' 'A'
words "apostrophes" "'cause 'SINGLE-QUOTE 'em dogs' 'quote" "'CAUSE SINGLE-QUOTE 'EM DOGS' QUOTE"
words "partial words" 'fl- revo(lutionary)- -tion <th->' 'FL- REVO- -TION TH-'
words "emphasis and mispronunciation" '!mid-size !really *nuculear* <*foo*> *mis*-' 'MID-SIZE REALLY NUCULEAR FOO MIS-'
words "lengthened sounds" 'a:nd !s:o' 'AND SO'
words "cut-off words" '~llo hel~' 'LLO HEL'
words "spelled letters" 'a. b.\'"'"'s i. b. m. mr.' "A. B.'S I. B. M. MR."
words "and" 'AT\&T S&L' 'AT&T S&L'
words "hyphens stay" 'thirty-nine' 'THIRTY-NINE'
words "nothing but noise" '[cough] ~' ''
words "bytes that are no text" "$(printf 'a\001b \351 c')" 'A B C'
words "white space, line ends of DOS" "$(printf '  a\t b\r')" 'A B'
printf 'u1 ~ a 1993 ** b- [x]\nu2 .\n' | awk -v report="$tmp/tokens" -f recipes/wsj/text.awk > "$tmp/text"
is "text: odd tokens are named" "odd	u1	1993
odd	u1	**" "$(grep '^odd' "$tmp/tokens")"
is "text: so are utterances without words" "empty	u2	u2 ." "$(grep '^empty' "$tmp/tokens")"
is "text: counts" "1	cut-off sounds (~)
1	noises
1	partial words
1	pauses (.)
1	utterances without words
2	odd tokens
3	words" "$(grep '^[0-9]' "$tmp/tokens" | LC_ALL=C sort)"

# ---- trees of discs --------------------------------------------------------------------------------------------------------------

# put DISC PATH [TEXT]: a file of the corpus, where $layout has it under $tree
put() {
    case $layout in
    discs) at=$tree/$1/$2 ;;
    flat) at=$tree/$2 ;;
    web) at="$tree/wsj1/csr ${1%%-*}/$(echo "$1" | tr - _)/$2" ;; # LDC94S13B, in a folder that somebody named wsj1
    upper) at=$tree/$(echo "$1/$2" | tr 'a-z' 'A-Z') ;; # whole trees: test_wsj_standin.sh
    own) at=$tree/$2 at=$tree/$(echo "$2" | sed 's|^wsj0/|first/wsj0/|; s|^wsj1/|second/|') ;;
    esac
    mkdir -p "${at%/*}"
    printf "${3-}" > "$at"
}
# corpus LAYOUT TREE: 5 utterances for training in WSJ0, 2 in WSJ1, and the test sets
corpus() {
    layout=$1 tree=$2
    for u in 01ga0101 01ga0102 01gb0301; do put 11-1.1 "wsj0/si_tr_s/01g/$u.wv1"; done
    put 11-1.1 wsj0/si_tr_s/01g/01ga0100.dot 'The first mid\\-size (01ga0101)\r\n<the> second [cough] (01GA0102)\n'
    put 11-1.1 wsj0/si_tr_s/01g/01gb0300.dot '\nThird ,COMMA (01gb0301)  \n'
    put 11-3.1 wsj0/si_tr_s/401/401c0202.wv1 # indexed on 11_2_1 too
    put 11-3.1 wsj0/si_tr_s/401/401c0200.dot 'four o one (401c0202)\n'
    put 11-3.1 wsj0/si_tr_s/40a/40aa0101.wv1
    put 11-3.1 wsj0/si_tr_s/40a/40aa0100.dot 'fourth (40aa0101)\n'
    put 11-13.1 wsj0/doc/indices/train/tr_s_wv1.ndx '; a comment: 11_1_1:wsj0/none.wv1\r\n;\n\n 11_1_1:wsj0/si_tr_s/01g/01ga0101.wv1 \n11_1_1: /wsj0/si_tr_s/01g/01ga0102.wv1/\n11_1_1:wsj0//si_tr_s/01g/01gb0301\r\n11_2_1:wsj0/si_tr_s/401/401c0202.wv1\n11_3_1:wsj0/si_tr_s/401/401c0202.wv1\n11_3_1:WSJ0/SI_TR_S/40A/40AA0101.WV1\n'
    put 11-14.1 wsj0/si_et_20/440/440c0201.wv1
    put 11-14.1 wsj0/si_et_20/440/440c0200.dot 'eval %%PERCENT (440C0201)\n'
    put 11-14.1 wsj0/si_et_05/440/440c0401.wv1
    put 11-14.1 wsj0/si_et_05/440/440c0400.dot 'small (440c0401)\n'
    put 11-13.1 wsj0/doc/indices/test/nvp/si_et_20.ndx '11_14_1:wsj0/si_et_20/440/440c0201\n'
    put 11-13.1 wsj0/doc/indices/test/nvp/si_et_05.ndx '11_14_1:wsj0/si_et_05/440/440c0401\n'
    put 13-1.1 wsj1/si_tr_s/46n/46na0101.wv1
    put 13-2.1 wsj1/si_tr_s/46o/46oa0101.wv1
    put 13-34.1 wsj1/trans/wsj1/si_tr_s/46n/46na0100.dot 'one of wsj one (46na0101)\n'
    put 13-34.1 wsj1/trans/wsj1/si_tr_s/46o/46oa0100.dot 'two (46oa0101)\n'
    put 13-34.1 wsj1/doc/indices/si_tr_s.ndx '13_1_1:wsj1/si_tr_s/46n/46na0101.wv1\n13_2_1:wsj1/si_tr_s/46o/46oa0101.wv1\n'
    put 13-34.1 wsj1/doc/indices/h1_p0.ndx '13_16_1:wsj1/si_dt_20/4k0/4k0c0301.wv1\n'
    put 13-34.1 wsj1/doc/indices/h2_p0.ndx '13_16_1:wsj1/si_dt_05/4k0/4k0a0301.wv1\n'
    put 13-32.1 wsj1/doc/indices/wsj1/eval/h1_p0.ndx '13_32_1:wsj1/si_et_h1/wsj64k/4oa/4oac0201.wv1\n'
    put 13-33.1 wsj1/si_et_h1/wsj64k/4oa/4oac0201.wv1
    put 13-33.1 wsj1/si_et_h1/wsj64k/4oa/4oac0200.dot 'ninety three (4oac0201)\n'
    put 13-32.1 wsj1/doc/indices/wsj1/eval/h2_p0.ndx '13_32_1:wsj1/si_et_h2/wsj5k/4oa/4oaa0201.wv1\n'
    put 13-33.1 wsj1/si_et_h2/wsj5k/4oa/4oaa0201.wv1
    put 13-33.1 wsj1/si_et_h2/wsj5k/4oa/4oaa0200.dot 'ninety\\-three (4oaa0201)\n'
    keep=$layout
    [ "$layout" != discs ] || layout=upper # disc 13-16.1 is met in upper case beside others
    put 13-16.1 wsj1/si_dt_20/4k0/4k0c0301.wv1
    put 13-16.1 wsj1/si_dt_20/4k0/4k0c0302.wv1
    put 13-16.1 wsj1/si_dt_20/4k0/4k0c0300.dot 'dev one (4K0C0301)\ndev two (4K0C0302)\n'
    put 13-16.1 wsj1/si_dt_05/4k0/4k0a0301.wv1
    put 13-16.1 wsj1/si_dt_05/4k0/4k0a0300.dot 'dev five (4K0A0301)\n'
    layout=$keep
}
all="train_si84 train_si284 test_dev93 test_dev93_5k test_eval92 test_eval92_5k test_eval93 test_eval93_5k dev_dt_20 dev_dt_05"
cat > "$tmp/want" <<'END'
train_si84 01ga0101 THE FIRST MID-SIZE
train_si84 01ga0102 THE SECOND
train_si84 01gb0301 THIRD COMMA
train_si84 401c0202 FOUR O ONE
train_si84 40aa0101 FOURTH
train_si284 01ga0101 THE FIRST MID-SIZE
train_si284 01ga0102 THE SECOND
train_si284 01gb0301 THIRD COMMA
train_si284 401c0202 FOUR O ONE
train_si284 40aa0101 FOURTH
train_si284 46na0101 ONE OF WSJ ONE
train_si284 46oa0101 TWO
test_dev93 4k0c0301 DEV ONE
test_dev93_5k 4k0a0301 DEV FIVE
test_eval92 440c0201 EVAL PERCENT
test_eval92_5k 440c0401 SMALL
test_eval93 4oac0201 NINETY THREE
test_eval93_5k 4oaa0201 NINETY-THREE
dev_dt_20 4k0c0301 DEV ONE
dev_dt_20 4k0c0302 DEV TWO
dev_dt_05 4k0a0301 DEV FIVE
END
# whole "what" DATA: its sets have the right words, and files that exist
whole() {
    for set in $all; do sed "s/^/$set /" "$2/$set/text"; done > "$tmp/got"
    is "$1: words" "$(cat "$tmp/want")" "$(cat "$tmp/got")"
    for set in $all; do
        while read -r u path; do
            case $(echo "$path" | tr 'A-Z' 'a-z') in */$u.wv1) ok "$1: $u" test -f "$path" ;; *) fail "$1: the sound of $u" "$path" ;; esac
        done < "$2/$set/wav.scp"
    done
    is "$1: speakers" "01ga0101 01g 01ga0102 01g 01gb0301 01g 401c0202 401 40aa0101 40a" "$(paste -s -d ' ' "$2/train_si84/utt2spk")"
}
for l in discs flat web own; do
    corpus $l "$tmp/corpus $l"
    wsj0="$tmp/corpus $l" wsj1="$tmp/corpus $l"
    [ $l != own ] || wsj0="$tmp/corpus own/first" wsj1="$tmp/corpus own/second/"
    exits "$l" 0 recipe --wsj0 "$wsj0" --wsj1 "$wsj1" --output "$tmp/data $l" --stand-in --no-lm
    has "$l: a stand-in is named" "$err" "THIS IS A STAND-IN"
    whole "$l" "$tmp/data $l"
done
recipe --wsj0 "$tmp/corpus own/first/wsj0" --sets train_si84,test_eval92 --output "$tmp/data0" --stand-in
is "WSJ0 alone, the folder wsj0 itself: status" 0 "$status"
is "WSJ0 alone: words" "$(sed -n 's/^train_si84 //p' "$tmp/want")" "$(cat "$tmp/data0/train_si84/text")"
is "WSJ0 alone: its sets" "test_eval92 train_si84" "$(cd "$tmp/data0" && echo te* tr*)"

# ---- mistakes --------------------------------------------------------------------------------------------------------------------

c="$tmp/corpus discs"
# with ARGS...: data.sh on the corpus in discs
with() { recipe --wsj0 "$c" --wsj1 "$c" --output "$tmp/d" --sets train_si84,train_si284,test_eval93 --stand-in --no-lm "$@"; }
# broken "what" "part of the message" ARGS...: it stops, and nothing is in place; then it goes on with what is there
broken() {
    what=$1 part=$2
    shift 2
    rm -rf "$tmp/d"
    exits "$what" 1 with "$@"
    has "$what: message" "$err" "$part"
    has "$what: how to go on" "$err" "--allow-missing goes on"
    ok "$what: no data" test ! -e "$tmp/d"
    exits "$what: --allow-missing" 0 with --allow-missing "$@"
}
again() { rm -rf "$c"; corpus discs "$c"; }

exits "the corpus's own numbers" 1 recipe --wsj0 "$c" --wsj1 "$c" --output "$tmp/d" --no-lm
has "the corpus's own numbers" "$err" "train_si84 has 5 utterances instead of 7138"
has "the corpus's own numbers: dev" "$err" "dev_dt_05 has 1 utterances instead of 913"
printf 'train_si84 5\ntrain_si284 7\ntest_dev93 1\ntest_dev93_5k 1\ntest_eval92 1\ntest_eval92_5k 1\ntest_eval93 1\ntest_eval93_5k 1\ndev_dt_20 2\ndev_dt_05 2\n' > "$c/STANDIN"
exits "a stand-in's own numbers" 1 recipe --wsj0 "$c" --wsj1 "$c" --output "$tmp/d" --no-lm
has "a stand-in's own numbers" "$err" "dev_dt_05 has 1 utterances instead of 2"
hasnt "a stand-in's own numbers: the others are right" "$err" "train_"
sed 's/dt_05 2/dt_05 1/' "$c/STANDIN" > "$tmp/s" && cp "$tmp/s" "$c/STANDIN"
exits "a stand-in's right numbers" 0 recipe --wsj0 "$c" --wsj1 "$c" --output "$tmp/d" --no-lm
rm "$c/STANDIN"

mv "$c/11-3.1" "$tmp/hidden"
printf 'train_si84 5\ntrain_si284 7\n' > "$c/STANDIN"
recipe --wsj0 "$c" --wsj1 "$c" --output "$tmp/d2" --no-lm --sets train_si84,train_si284
has "a missing disc: its files" "$err" "train_si84: lines of the index without a .wv1 file: 2 (disc 11-3.1: 2)"
has "a missing disc: the file" "$err" "11_3_1:wsj0/si_tr_s/40a/40aa0101.wv1"
has "a missing disc: the list" "$(cat "$tmp/d2.new/work/train_si84.problems")" "missing	11_3_1:wsj0/si_tr_s/40a/40aa0101.wv1"
mv "$tmp/hidden" "$c/11-3.1"
exits "the disc is back" 0 recipe --wsj0 "$c" --wsj1 "$c" --output "$tmp/d2" --no-lm --sets train_si84,train_si284
again

rm -r "$c/13-32.1"
broken "a missing index" "test_eval93: the index file wsj1/doc/indices/wsj1/eval/h1_p0.ndx of disc 13-32.1 is not under"
again
rm "$c/11-1.1/wsj0/si_tr_s/01g/01gb0300.dot"
broken "no transcript" "utterances without a transcript in a .dot file: 1
    01gb0301"
is "no transcript: the others" "01ga0101 01ga0102 401c0202 40aa0101" "$(cut -d ' ' -f 1 "$tmp/d/train_si84/text" | paste -s -d ' ' -)"
is "no transcript: not in wav.scp either" 4 "$(wc -l < "$tmp/d/train_si84/wav.scp" | tr -d ' ')"
again
# Mistakes that do not stop: they are named.
put 11-1.1 wsj0/si_tr_s/01g/01gb0300.dot 'third ,COMMA (01gb0301)\nno name here\nnobody heard (01gb0302)\n'
layout=discs tree=$c put 11-9.1 wsj0/si_tr_s/01g/01ga0100.dot 'Another first (01ga0101)\n'
put 13-16.1 'wsj1/si_dt_20/4k0/copy of 4k0c0301.wv1'
mkdir "$c/elsewhere"
mv "$c/11-3.1/wsj0/si_tr_s/40a/40aa0101.wv1" "$c/elsewhere"
echo '11_1_1:wsj0/si_tr_s/01g/01ga0102.wv1' >> "$c/11-13.1/wsj0/doc/indices/train/tr_s_wv1.ndx"
printf 'nonsense\n' >> "$c/11-13.1/wsj0/doc/indices/train/tr_s_wv1.ndx"
rm -rf "$tmp/d"
exits "mistakes" 0 with --sets train_si84,dev_dt_20
has "mistakes: a line without a name" "$err" "01gb0300.dot:2: no name here"
has "mistakes: a transcript without sound" "$err" "transcripts without sound: 1
    01gb0302"
has "mistakes: two transcripts" "$err" "utterances with another transcript in another file; the first is used: 1
    01ga0101"
has "mistakes: a file elsewhere" "$err" "found by their names: 1
    wsj0/si_tr_s/40a/40aa0101.wv1"
has "mistakes: twice" "$err" "train_si84: utterances listed twice, of which the first is used: 1
    01ga0102"
has "mistakes: a bad line" "$err" "tr_s_wv1.ndx: nonsense"
is "mistakes: the words are right" "$(sed -n 's/^train_si84 //p' "$tmp/want")" "$(cat "$tmp/d/train_si84/text")"
has "mistakes: a file that is no utterance" "$err" "si_dt_20/4k0/copy of 4k0c0301.wv1"
is "mistakes: dev" "4k0c0301 4k0c0302" "$(cut -d ' ' -f 1 "$tmp/d/dev_dt_20/wav.scp" | paste -s -d ' ' -)"
has "mistakes: the report" "$(cat "$tmp/d/report.txt")" "1	train_si84: left-out"
again

# ---- options, interruptions, two runs --------------------------------------------------------------------------------------------

declines "no corpus" "give --wsj0 DIR and --wsj1 DIR" --output "$tmp/x"
declines "no output" "give --output DATA" --wsj0 "$c"
declines "WSJ1 is missing" "these sets need WSJ1" --wsj0 "$c" --output "$tmp/x"
declines "WSJ0 is missing" "these sets need WSJ0" --wsj1 "$c" --output "$tmp/x"
declines "no folder" "$tmp/none is not a folder" --wsj0 "$tmp/none" --wsj1 "$c" --output "$tmp/x"
declines "an unknown set" "there is no set 'x'" --wsj0 "$c" --sets x --output "$tmp/x"
mkdir "$tmp/empty"
export LINNET_FFMPEG=
declines "no ffmpeg" "shorten, which the program ffmpeg decodes: install it" --wsj0 "$tmp/empty" --sets train_si84 --output "$tmp/x"
export LINNET_FFMPEG=true
declines "an empty folder" "no .wv1 file lies under $tmp/empty" --wsj0 "$tmp/empty" --sets train_si84 --output "$tmp/x"
ok "nothing was written" test ! -e "$tmp/x"
rm -rf "$tmp/d" "$tmp/d.new"
exits "--dry-run" 0 with --dry-run
has "--dry-run: sets" "$out" "train_si284: 7 utterances"
ok "--dry-run: nothing is written" test ! -e "$tmp/d" -a ! -e "$tmp/d.new" -a ! -e "$tmp/d.lock"
with
before=$(cd "$tmp/d" && find . -type f -exec cksum {} + | LC_ALL=C sort)
exits "a second run" 0 with
has "a second run does nothing" "$out" "is complete"
exits "other options" 1 with --noise NOISE
has "other options: refused" "$err" "was made with other options"
is "other options: the data are as they were" "$before" "$(cd "$tmp/d" && find . -type f -exec cksum {} + | LC_ALL=C sort)"
mkdir "$tmp/mine"
declines "a folder of the user" "exists and was not written by this script" --wsj0 "$c" --wsj1 "$c" --output "$tmp/mine"
mkdir "$tmp/e.new"
declines "a folder of the user beside it" "e.new exists and was not written" --wsj0 "$c" --wsj1 "$c" --output "$tmp/e" --stand-in --no-lm
ok "which is kept" rmdir "$tmp/e.new"
rm -rf "$tmp/d"
mkdir -p "$tmp/d.new/work"
touch "$tmp/d.new/.asked" "$tmp/d.new/work/rest"
touch "$tmp/d.lock"
exits "after an interruption" 0 with
is "after an interruption: the words" "$(sed -n 's/^train_si84 //p' "$tmp/want")" "$(cat "$tmp/d/train_si84/text")"
ok "after an interruption: nothing is left" test ! -e "$tmp/d.new" -a ! -e "$tmp/d.lock"
rm -rf "$tmp/d"
exec 9> "$tmp/d.lock"
flock 9
exits "two runs" 1 with
has "two runs" "$err" "another run is writing $tmp/d;"
exec 9>&-

# ---- language models -------------------------------------------------------------------------------------------------------------

printf 'A B A\nB A\nA\n' > "$tmp/lm.txt"
run ngram count -q --order 3 "$tmp/lm.txt" -o "$tmp/lm.arpa"
base() { layout=discs tree=$c put 13-32.1 "wsj1/doc/lng_modl/base_lm/$1" ''; }
base tcb20onp.z
{ printf 'comment \001\n\\dat\n\n'; cat "$tmp/lm.arpa"; printf 'more\n'; } > "$at"
base bcb20onp.z
gzip -c "$tmp/lm.arpa" > "$at"
base bcb05onp.z # written by compress (ncompress 4.2)
{
    printf '\037\235\220\134\310\204\241\023\206\213\002\067\147\344\204\151\003\042\106\017\032\007\023\056\004\041\243\207\014\005'
    printf '\012\270\304\150\041\261\315\034\035\012\132\304\110\300\343\305\034\037\041\163\344\040\171\062\101\013\030\056\142\204'
    printf '\204\131\043\101\020\227\060\145\212\044\131\305\311\022\224\031\145\160\124\350\021\344\113\027\062\130\372\000\021\144'
    printf '\246\213\031\066\101\224\074\211\221\113\031\067\144\014\002'
} > "$at"
base TCB05CNP.Z
printf 'no model\n' > "$at"
rm -rf "$tmp/d"
exits "models" 0 recipe --wsj0 "$c" --wsj1 "$c" --output "$tmp/d" --stand-in --sets train_si84
for lm in bg_5k bg_20k tg_20k tgpr_20k; do ok "models: $lm" gzip -t "$tmp/d/lm/$lm.arpa.gz"; done
is "models: comments are left out" "$(cat "$tmp/lm.arpa")" "$(gzip -dc "$tmp/d/lm/tg_20k.arpa.gz")"
is "models: compress" "ngram 1=4 ngram 2=2" "$(gzip -dc "$tmp/d/lm/bg_5k.arpa.gz" | grep ^ngram | paste -s -d ' ' -)"
has "models: one that is none" "$err" "TCB05CNP.Z cannot be read and is left out"
ok "models: it is not there" test ! -e "$tmp/d/lm/tg_5k.arpa.gz" -a ! -e "$tmp/d/lm/tgpr_5k.arpa.gz"

finish
