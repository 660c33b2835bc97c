#!/usr/bin/env bash
# Accuracy of bf16 and int8 compared with fp32 on this CPU: error rates and log-probabilities on development sets.
#
#   bench/precision.sh --corpus DIR [--sets "dev_native dev_nonnative"] [--work DIR] [--model FILE] [--lexicon FILE]
#                      [--linnet PROGRAM] [--precisions "bf16 int8"]
#
# Phonemes greedily, words with the installed lexicon and language model; each beside fp32, with a paired test.
# DIR as for recipes/open/run.sh. Needs cmudict-en-us.dict (Debian: pocketsphinx-en-us) and python3. Run from the root of the
# source tree.
set -euo pipefail

corpus= sets="dev_native dev_nonnative" precisions="bf16 int8" work= model=share/linnet/en/default.safetensors linnet=build/release/linnet
lexicon=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict
die() { echo "precision.sh: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --help) sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit ;;
    --corpus|--sets|--precisions|--work|--model|--lexicon|--linnet) [ $# -ge 2 ] || die "$1 needs a value"; declare "${1#--}=$2"; shift 2 ;;
    *) die "unknown option $1; --help lists them" ;;
  esac
done
[ -n "$corpus" ] || die "where is the corpus? give --corpus DIR"
[ -x "$linnet" ] || die "$linnet does not exist; run make first, or give --linnet PROGRAM"
[ -f "$lexicon" ] || die "$lexicon does not exist; apt-get install pocketsphinx-en-us, or give --lexicon FILE"
if [ -z "$work" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi

for set in $sets; do
  mkdir -p "$work/$set"
  "$linnet" phonemize --ids first --trn --lexicon "$lexicon" --oov "$work/$set/oov" "$corpus/$set/text" \
    > "$work/$set/ref.trn" 2> /dev/null
  for p in fp32 $precisions; do
    "$linnet" transcribe --data "$corpus/$set" --audio-root "$corpus" --model "$model" --device cpu --precision $p --quiet \
      --format trn -o "$work/$set/$p.trn"
    "$linnet" transcribe --words --data "$corpus/$set" --audio-root "$corpus" --model "$model" --device cpu --precision $p --quiet \
      --format json -o "$work/$set/$p.jsonl"
    echo "$set $p: $("$linnet" score "$work/$set/ref.trn" "$work/$set/$p.trn" | tail -n 1)"
    echo "$set $p: $("$linnet" score --unit words --ref-format kaldi "$corpus/$set/text" "$work/$set/$p.jsonl" | tail -n 1)"
    while read -r id path; do
      "$linnet" posteriors --model "$model" --device cpu --precision $p --jobs 1 "$corpus/$path" -o "$work/$set/$id.$p.npy" \
        < /dev/null
    done < "$corpus/$set/wav.scp"
  done
  for p in $precisions; do
  echo "$set $p scored against fp32: $("$linnet" score "$work/$set/fp32.trn" "$work/$set/$p.trn" | tail -n 1)"
  "$linnet" score "$work/$set/ref.trn" "$work/$set/$p.trn" --against "$work/$set/fp32.trn" | grep -E '^(difference|matched)'
  "$linnet" score --unit words --ref-format kaldi "$corpus/$set/text" "$work/$set/$p.jsonl" --against "$work/$set/fp32.jsonl" |
    grep -E '^(difference|matched)'
  python3 - "$work/$set" "$p" <<'END'
import array, ast, glob, math, sys

def load(path):
    with open(path, "rb") as file:
        data = file.read()
    end = 10 + int.from_bytes(data[8:10], "little")
    values = array.array("f")
    values.frombytes(data[end:])
    return values, ast.literal_eval(data[10:end].decode())["shape"]

rows = count = other = 0
total = worst = worst_p = 0.0
row_worst = []
for path in sorted(glob.glob(sys.argv[1] + "/*.fp32.npy")):
    a, (T, V) = load(path)
    b, shape = load(path[:-8] + sys.argv[2] + ".npy")
    assert shape == (T, V), path
    for t in range(0, T * V, V):
        x, y = a[t:t + V], b[t:t + V]
        differences = [abs(u - v) for u, v in zip(x, y)]
        row_worst.append(max(differences))
        total += sum(differences)
        worst_p = max(worst_p, max(abs(math.exp(u) - math.exp(v)) for u, v in zip(x, y)))
        other += max(range(V), key=x.__getitem__) != max(range(V), key=y.__getitem__)
    rows += T
    count += T * V
row_worst.sort()
print("%s %s: log-probabilities of %d rows differ by %.4f on average"
      % (sys.argv[1].rsplit("/", 1)[1], sys.argv[2], rows, total / count))
print("    the largest difference in a row: median %.3f, 99 %% below %.3f, at most %.2f"
      % (row_worst[rows // 2], row_worst[rows * 99 // 100], row_worst[-1]))
print("    the most likely output differs in %d rows (%.3f %%)" % (other, 100 * other / rows))
print("    a probability differs by at most %.2f" % worst_p)
END
  done
done
