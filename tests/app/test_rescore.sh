# linnet decode, transcribe and listen with --rescore: the best hypotheses are scored again by networks of tokens that are trained
# here, of words and of phonemes; scores, times, order, states, threads; what is refused.
. tests/app/common.sh

# ---- a lexicon, an n-gram model, and a network that prefers other words ----------------------------------------------------------

cat > "$tmp/words.dict" << 'END'
hello HH AH L OW
hollow HH AA L OW
world W ER L D
two T UW
too T UW
END
cat > "$tmp/words.arpa" << 'END'
\data\
ngram 1=8
ngram 2=4

\1-grams:
-99 <s> -0.3
-1 </s>
-3 <unk>
-1 hello -0.3
-1.5 hollow -0.3
-1 world -0.3
-1 two -0.3
-1.3 too -0.3

\2-grams:
-0.5 <s> hello
-0.2 hello world
-0.3 world </s>
-0.2 two hello

\end\
END
awk 'BEGIN { for (i = 0; i < 300; i++) print i % 3 == 0 ? "too hello" : i % 3 == 1 ? "too hollow world" : "hello world too" }' < /dev/null > "$tmp/text"
"$LINNET" lm prepare -q "$tmp/text" --pieces 40 --longest 64 -o "$tmp/text.lfc"
"$LINNET" train -q --train "$tmp/text.lfc" --dev "$tmp/text.lfc" --folder "$tmp/lm" --layers 1 --decay gated --epochs 15 --lr 1e-2 \
    --batch-frames 512 --set heads=2,head-width=16,feedforward=32 > "$tmp/.log" 2>&1 || fail "a network of words" "$(cat "$tmp/.log")"
network=$tmp/lm/best.safetensors

echo "- 3 T 2 UW 2 - 2 HH 2 AH:0.7+AA:0.25 2 L 2 OW 2 - 3" | "$ROWS" "$tmp/th.npy"
echo "- 3 HH 2 AH 1 L 2 OW 3 - 2 W 2 ER 3 L 1 D 2 - 3 T 2 UW 2 - 4" | "$ROWS" "$tmp/hwt.npy"
echo "- 3 HH 2 AH 2 L 2 OW 2 - 3 Z 2 IY 2 B 2 AH 2 - 4" | "$ROWS" "$tmp/zebra.npy"
echo "- 3 HH 2 AH:0.6+AA:0.35 2 L 2 OW 2 - 3" | "$ROWS" "$tmp/hollow.npy"
echo "- 30" | "$ROWS" "$tmp/silence.npy"
lm="--words --no-readable -l $tmp/words.dict --lm $tmp/words.arpa"
d() { "$LINNET" decode -q $lm "$@" 2> "$tmp/.err"; }
# Alternatives of the last JSON, one per line: score acoustic language text
alternatives() { sed 's/.*"alternatives"://; s/{"phones":/\n&/g' | sed -n 's/.*"text":"\([^"]*\)".*"score":\([-0-9.]*\),"acoustic":\([-0-9.]*\),"language":\([-0-9.]*\).*/\2 \3 \4 \1/p'; }

is "the n-gram model" "two hello" "$(d "$tmp/th.npy")"
is "rescored" "too hello" "$(d --rescore "$network" --tune rescore-weight=0.9 "$tmp/th.npy")"
is "no message" "" "$(cat "$tmp/.err")"

# ---- scores: those of the formula, with what linnet lm score says of each text ---------------------------------------------------

for f in th hwt; do
    d -n 20 -f json "$tmp/$f.npy" | alternatives > "$tmp/plain"
    d -n 20 -f json --rescore "$network" --tune rescore-weight=0.4,rescore-n=20 "$tmp/$f.npy" | alternatives > "$tmp/passed"
    is "$f: as many alternatives" "$(wc -l < "$tmp/plain")" "$(wc -l < "$tmp/passed")"
    ok "$f: several" test "$(wc -l < "$tmp/plain")" -gt 2
    n=0
    while read -r score acoustic language text; do
        echo "$text" > "$tmp/line"
        case $text in *"["*) continue ;; esac
        logp=$("$LINNET" lm score "$network" "$tmp/line" --json | sed 's/.*"log10": \([-0-9.]*\).*/\1/')
        grep -F " $text" "$tmp/plain" | awk -v t="$text" '{ x = $0; sub(/^[^ ]* [^ ]* [^ ]* /, "", x) } x == t' > "$tmp/before"
        awk -v s="$score" -v a="$acoustic" -v g="$language" -v l="$logp" '
            { want = 0.6 * $3 + 0.4 * l * log(10); d = g - want; e = s - ($1 + 0.85 * (want - $3)); n++ }
            END { exit !(n == 1 && $2 == a && d * d < 1e-6 && e * e < 1e-6) }' "$tmp/before" && n=$((n + 1)) ||
            fail "$f: the scores of '$text'" "$score $acoustic $language" "network $logp" "$(cat "$tmp/before")"
    done < "$tmp/passed"
    ok "$f: all of them" test $n -ge 2
    ok "$f: the best first" awk 'NR > 1 && $1 > last { exit 1 } { last = $1 }' "$tmp/passed"
    is "$f: the first is the result" "$(sed -n '1s/^[^ ]* [^ ]* [^ ]* //p' "$tmp/passed")" \
        "$(d --rescore "$network" --tune rescore-weight=0.4,rescore-n=20 "$tmp/$f.npy")"
done
run decode -q $lm --rescore "$network" -f json "$tmp/th.npy"
hasnt "alternatives only where they are asked for" "$out" '"alternatives"'
run decode -q $lm --rescore "$network" -n 2 -f json "$tmp/th.npy"
is "and so many" 2 "$(echo "$out" | alternatives | wc -l | tr -d ' ')"

# ---- nothing changes where nothing should ----------------------------------------------------------------------------------------

for f in th hwt zebra silence; do
    for how in "" "-n 10"; do
        d $how -f json "$tmp/$f.npy" > "$tmp/a"
        d $how --rescore "$network" --tune rescore-weight=0 -f json "$tmp/$f.npy" > "$tmp/b"
        ok "$f $how: a weight of 0 changes nothing" cmp "$tmp/a" "$tmp/b"
    done
    d -n 10 -f json --rescore "$network" --tune rescore-weight=1e-12,rescore-n=10 "$tmp/$f.npy" > "$tmp/b"
    ok "$f: nor does one near 0" cmp "$tmp/a" "$tmp/b"
done
is "silence stays silence" "" "$(d --rescore "$network" --tune rescore-weight=1 "$tmp/silence.npy")"
has "a word outside the lexicon" "$(d --rescore "$network" --tune unknown=-4 "$tmp/zebra.npy")" "[z_iy_b_ah]"
d -j 1 -f json --rescore "$network" "$tmp/th.npy" "$tmp/hwt.npy" "$tmp/zebra.npy" "$tmp/silence.npy" > "$tmp/a"
d -j 3 -f json --rescore "$network" "$tmp/th.npy" "$tmp/hwt.npy" "$tmp/zebra.npy" "$tmp/silence.npy" > "$tmp/b"
ok "any number of threads" cmp "$tmp/a" "$tmp/b"
mkdir "$tmp/language" && cp "$network" "$tmp/language/mine.safetensors"
for name in mine mine.safetensors; do
    is "$name, of the language" "too hello" "$(d --language "$tmp/language" --rescore $name --tune rescore-weight=0.9 "$tmp/th.npy")"
    refused "$name is an input" 2 "is an input and would be overwritten" \
        decode -q $lm --language "$tmp/language" --rescore $name "$tmp/th.npy" -o "$tmp/language/mine.safetensors"
done
"$LINNET" quantise "$network" -o "$tmp/eight.safetensors" 2> /dev/null
is "a network in eight bits" "too hello" "$(d --rescore "$tmp/eight.safetensors" --tune rescore-weight=0.9 "$tmp/th.npy")"

# ---- phonemes ----------------------------------------------------------------------------------------------------------------

cat > "$tmp/phones.arpa" << 'END'
\data\
ngram 1=9

\1-grams:
-99 <s>
-1 </s>
-1 T
-1 UW
-1.3 HH
-1 AH
-1.4 AA
-1 L
-1.1 OW

\end\
END
awk 'BEGIN { for (i = 0; i < 300; i++) print i % 3 ? "HH AA L OW" : "T UW HH AA L OW T" }
    END { for (i = 0; i < 2; i++) print "B CH D DH EH ER EY F G IH IY JH K M N NG AE AO AW AY AH OY P R S SH TH UH V W Y Z ZH" }' < /dev/null > "$tmp/phones"
"$LINNET" lm prepare -q --lower "$tmp/phones" --pieces 200 --longest 64 -o "$tmp/phones.lfc"
"$LINNET" train -q --train "$tmp/phones.lfc" --dev "$tmp/phones.lfc" --folder "$tmp/plm" --layers 1 --decay gated --epochs 12 --lr 1e-2 \
    --batch-frames 512 --set heads=2,head-width=16,feedforward=32 > "$tmp/.log" 2>&1 || fail "a network of phonemes" "$(cat "$tmp/.log")"
of_phones=$tmp/plm/best.safetensors
p() { "$LINNET" decode -q "$@" 2> "$tmp/.err"; }
is "phonemes that are not rescored" "HH AH L OW" "$(p --lm "$tmp/phones.arpa" "$tmp/hollow.npy")"
is "and with one" "HH AA L OW" "$(p --lm "$tmp/phones.arpa" --rescore "$of_phones" --tune rescore-weight=0.9 "$tmp/hollow.npy")"
is "without an n-gram model" "HH AA L OW" "$(p --rescore "$of_phones" --tune rescore-weight=1 "$tmp/hollow.npy")"
is "silence stays silence" "" "$(p --rescore "$of_phones" --tune rescore-weight=1 "$tmp/silence.npy")"
p --lm "$tmp/phones.arpa" -n 20 -f json "$tmp/hollow.npy" > "$tmp/a"
p --lm "$tmp/phones.arpa" -n 20 -f json --rescore "$of_phones" --tune rescore-weight=0 "$tmp/hollow.npy" > "$tmp/b"
ok "a weight of 0 changes nothing" cmp "$tmp/a" "$tmp/b"
p --lm "$tmp/phones.arpa" -n 20 -f json --rescore "$of_phones" --tune rescore-weight=0.4 "$tmp/hollow.npy" > "$tmp/b"
logp=$(echo "HH AA L OW" | "$LINNET" lm score "$of_phones" --lower --json | sed 's/.*"log10": \([-0-9.]*\).*/\1/')
hollow='{"phones":\[{"phone":"HH"[^}]*},{"phone":"AA"[^}]*},{"phone":"L"[^}]*},{"phone":"OW"[^}]*}\]'
scores_of() { sed 's/.*"alternatives"://; s/{"phones":/\n&/g' "$1" | sed -n "s/^$hollow,\"score\":\([-0-9.]*\),\"acoustic\":\([-0-9.]*\),\"language\":\([-0-9.]*\).*/\1 \2 \3/p"; }
ok "the score of the formula" awk -v a="$(scores_of "$tmp/a")" -v b="$(scores_of "$tmp/b")" -v l="$logp" 'BEGIN {
    if (split(a, x) != 3 || split(b, y) != 3) exit 1
    want = 0.6 * x[3] + 0.4 * l * log(10); d = y[3] - want; e = y[1] - x[1] - 0.7 * (want - x[3])
    exit !(x[2] == y[2] && d * d < 1e-6 && e * e < 1e-6) }'
refused "a network of words" 1 "$network is not a model of these phonemes: it has no piece for" decode -q --rescore "$network" "$tmp/th.npy"
refused "a network of phonemes" 1 "$of_phones is a model of phonemes; leave out --words" decode -q $lm --rescore "$of_phones" "$tmp/th.npy"

# ---- sound: pipes, states, a stream ----------------------------------------------------------------------------------------------

use_model
# Two words for each phoneme, so that any sound gives words in doubt.
for p in AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH; do
    printf 'x%s %s\nq%s %s\n' $p $p $p $p | tr 'A-Z' 'a-z' | awk -v p=$p '{ print $1, p }'
done > "$tmp/x.dict"
"$SOUND" "$tmp/s.raw" seconds=6 seed=3 format=raw
"$SOUND" "$tmp/s.wav" seconds=6 seed=3
t() { "$LINNET" transcribe -q --words --no-readable --no-lm -l "$tmp/x.dict" --tune unknown=-4 "$@" 2> "$tmp/.err"; }
how="--rescore $network --tune rescore-weight=1,rescore-n=12"
t -f ctm "$tmp/s.wav" | tokens > "$tmp/without"
t -f ctm $how "$tmp/s.wav" | tokens > "$tmp/whole"
ok "transcribe: there are results" test "$(wc -l < "$tmp/whole")" -gt 5
cmp -s "$tmp/without" "$tmp/whole" && fail "and others than without" "$(cat "$tmp/whole")" || pass
t -f ctm $how - < "$tmp/s.raw" | tokens > "$tmp/flowed"
ok "while it runs" cmp "$tmp/whole" "$tmp/flowed"
t -f ctm $how -j 1 "$tmp/s.wav" | tokens > "$tmp/one"
ok "with one thread" cmp "$tmp/whole" "$tmp/one"
in_pieces "$tmp/s.raw" 96000 "100 401 30001 61234" t -f ctm $how
ok "saved and loaded on the way" cmp "$tmp/whole" "$tmp/cut"

pt() { "$LINNET" transcribe -q --rescore "$of_phones" --tune rescore-weight=1,rescore-n=12 -f ctm "$@" 2> "$tmp/.err"; }
pt "$tmp/s.wav" | tokens > "$tmp/whole"
ok "phonemes of a sound" test -s "$tmp/whole"
pt - < "$tmp/s.raw" | tokens > "$tmp/flowed"
ok "while it runs" cmp "$tmp/whole" "$tmp/flowed"
in_pieces "$tmp/s.raw" 96000 30001 pt
ok "saved and loaded on the way" cmp "$tmp/whole" "$tmp/cut"

listen() { "$LINNET" listen -q --no-paced --reset endpoint --words --no-readable --no-lm -l "$tmp/x.dict" --tune unknown=-4 "$@"; }
is "listen, whose utterances are passed one by one" \
    "$(t --reset endpoint --tune longest=1 $how "$tmp/s.wav")" "$(listen --tune longest=1 $how --from "$tmp/s.wav" 2> "$tmp/.err" | xargs)"

# ---- what is refused -------------------------------------------------------------------------------------------------------------

refused "a model of sound" 1 "$tmp/model.safetensors is not a network of words: it is a model of sound" \
    decode -q $lm --rescore "$tmp/model.safetensors" "$tmp/th.npy"
refused "no such name" 1 "cannot open none" decode -q $lm --rescore none "$tmp/th.npy"
refused "its options alone" 2 "--tune rescore-n needs --rescore" decode -q $lm --tune rescore-n=5 "$tmp/th.npy"
refused "another one" 2 "--tune rescore-weight needs --rescore" decode -q $lm --tune rescore-weight=0.1 "$tmp/th.npy"
refused "a weight above 1" 2 "rescore-weight" decode -q $lm --rescore "$network" --tune rescore-weight=1.1 "$tmp/th.npy"
refused "one hypothesis" 2 "rescore-n" decode -q $lm --rescore "$network" --tune rescore-n=1 "$tmp/th.npy"
refused "a beam that has not so many" 2 "--tune rescore-n 20 needs a --beam of 20 or more" \
    decode -q $lm --rescore "$network" -b 10 "$tmp/th.npy"

# ---- a long sound that the offline model divides: its beginning is rescored too --------------------------------------------------

speech=/usr/share/pocketsphinx/test/data/goforward.raw
if [ -f $speech ]; then
    printf '%s\n' "two G OW F AO R W ER D" "too G OW F AO R W ER D" > "$tmp/long.dict"
    for i in $(seq 40); do cat $speech; done > "$tmp/long.raw"
    long() { "$LINNET" transcribe -q --raw --offline --words --no-readable -l "$tmp/long.dict" --lm "$tmp/words.arpa" "$@" "$tmp/long.raw" |
        tr ' ' '\n' | grep -E '^(two|too)$'; }
    is "not rescored" "two" "$(long | sort -u)"
    long --rescore "$network" --tune rescore-weight=0.9 > "$tmp/long"
    ok "with it: in the first third" sh -c "head -n 13 '$tmp/long' | grep -q too"
    ok "and in the last" sh -c "tail -n 13 '$tmp/long' | grep -q too"
fi
finish
