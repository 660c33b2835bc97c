#!/usr/bin/env python3
"""Makes ngram_text.txt, ngram_heldout.txt and ngram_golden.txt in this folder: a text, probabilities of modified Kneser-Ney
models of it, and their perplexities of other text. tests/train/learn/test_kneser_ney.c compares train/learn/kneser_ney with these,
tests/train/learn/test_ngram_prune.c compares train/learn/ngram_prune.

    python3 tests/golden/ngram.py [--out FOLDER]            # the files
    python3 tests/golden/ngram.py --arpa ORDER TEXT         # a model of any text as ARPA on standard output, for comparisons
    python3 tests/golden/ngram.py --perplexity ORDER TEXT HELDOUT

The explicit recursive form, directly from the equations of Chen & Goodman 1998 (TR-10-98, section 3), with
sets and dictionaries: unlike the C code, nothing is sorted, merged or streamed. Standard library only.

To compare with another program (kenlm 0.3.0 from PyPI, which has the sources of lmplz):

    lmplz -o 3 --discount_fallback < TEXT > theirs.arpa; linnet ngram count TEXT -o ours.arpa
    python3 -c 'import kenlm; m = kenlm.Model("ours.arpa"); print(sum(m.score(l.strip()) for l in open("HELDOUT")))'
"""
import argparse
import collections
import math
import os
import random
import sys

FALLBACK = (0.5, 1.0, 1.5)


class Model:
    """P(w | h) for every word and context, by recursion over shorter contexts."""

    def __init__(self, sentences, order, unknown=True, minimum=(), vocabulary=None, absolute=False):
        self.order = order
        minimum = list(minimum) + [1] * (order - len(minimum))
        raw = collections.Counter(w for s in sentences for w in s)
        if vocabulary is not None:
            sentences = [[w if w in vocabulary else "<unk>" for w in s] for s in sentences]
        elif minimum[0] > 1:
            sentences = [[w if raw[w] >= minimum[0] else "<unk>" for w in s] for s in sentences]
        sentences = [["<s>"] + list(s) + ["</s>"] for s in sentences]
        self.words = set(w for s in sentences for w in s) | set(vocabulary or ()) | ({"<unk>"} if unknown else set())
        self.words.discard("<s>")
        times = collections.Counter()
        before = collections.defaultdict(set)
        for s in sentences:
            for end in range(1, len(s)):
                for n in range(1, order + 1):
                    if end - n + 1 < 0:
                        break
                    gram = tuple(s[end - n + 1:end + 1])
                    times[gram] += 1
                    if end - n >= 0:
                        before[gram].add(s[end - n])
        # a(h w): the count at the highest order and after <s>, else the number of distinct words before it; absolute
        # discounting: the count in every order.
        self.count = {g: c if absolute or len(g) == order or g[0] == "<s>" else len(before[g]) for g, c in times.items()}
        self.kept = {g for g, c in times.items() if c >= minimum[len(g) - 1] or len(g) == 1}
        self.followers = collections.defaultdict(list)
        for g in self.count:
            self.followers[g[:-1]].append(g)
        self.discounts = [self.find_discounts(n) for n in range(1, order + 1)]

    def find_discounts(self, order):
        n = [sum(1 for g, c in self.count.items() if len(g) == order and c == i) for i in range(5)]
        if 0 in n[1:4]:
            return FALLBACK
        y = n[1] / (n[1] + 2 * n[2])
        d = (1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3])
        return d if all(0 < d[i] <= i + 1 for i in range(3)) else FALLBACK

    def discount(self, gram):
        if gram not in self.kept:
            return self.count[gram]
        return self.discounts[len(gram) - 1][min(self.count[gram], 3) - 1]

    def probability(self, gram):
        """P(last | others), interpolated down to the uniform distribution."""
        context = gram[:-1]
        lower = self.probability(gram[1:]) if context else 1 / len(self.words)
        if not self.followers[context]:
            return lower
        total = sum(self.count[g] for g in self.followers[context])
        own = self.count[gram] - self.discount(gram) if gram in self.count else 0
        return own / total + self.weight(context) * lower

    def weight(self, context):
        total = sum(self.count[g] for g in self.followers[context])
        return sum(self.discount(g) for g in self.followers[context]) / total if total else 1.0

    def sentence(self, words):
        """log10 of a sentence from <s> to </s>, known and unknown words separately."""
        known = unknown = 0.0
        s = ["<s>"] + [w if w in self.words else "<unk>" for w in words] + ["</s>"]
        for end in range(1, len(s)):
            p = self.probability(tuple(s[max(0, end - self.order + 1):end + 1]))
            if s[end] == "<unk>":
                unknown += math.log10(p)
            else:
                known += math.log10(p)
        return known, unknown


class Backoff:
    """A back-off model as tables of log10 probabilities and weights, pruned one n-gram at a time (Stolcke 1998): an n-gram is
    removed if the perplexity of the model without it, with its context's weight computed again, is higher by a factor of less
    than
    1 + `threshold`. The divergence is summed over the whole vocabulary, not by the paper's short form."""

    def __init__(self, model):
        self.order, self.words = model.order, sorted(model.words)
        self.p = {g: model.probability(g) for g in model.kept if len(g) > 1}
        self.p.update({(w,): model.probability((w,)) for w in model.words})
        self.weight = {g: model.weight(g) for g in list(self.p) + [("<s>",)] if len(g) < model.order}

    def probability(self, gram):
        if gram in self.p:
            return self.p[gram]
        return self.weight.get(gram[:-1], 1.0) * self.probability(gram[1:])

    def whole(self, gram):
        """P of all its words; <s> has the probability of </s>."""
        p = 1.0
        for n in range(1, len(gram) + 1):
            p *= self.p[("</s>",) if gram[:n] == ("<s>",) else gram[:n]]
        return p

    def new_weight(self, context, explicit):
        left = 1 - sum(self.p[g] for g in explicit)
        other = 1 - sum(self.probability(g[1:]) for g in explicit)
        return left / other if explicit else 1.0

    def prune(self, threshold):
        gone = set()
        for n in range(self.order, 1, -1):
            contexts = set(g[:-1] for g in self.p if len(g) == n)
            for context in contexts:
                explicit = [g for g in self.p if g[:-1] == context]
                before = {w: self.probability(context + (w,)) for w in self.words}
                for g in explicit:
                    if any(len(x) == n + 1 and x[:-1] == g and x not in gone for x in self.p):
                        continue
                    rest = [x for x in explicit if x != g]
                    weight = self.new_weight(context, rest)
                    d = 0.0
                    for w in self.words:
                        x = context + (w,)
                        after = self.p[x] if x in rest else weight * self.probability(x[1:])
                        d += before[w] * (math.log(before[w]) - math.log(after))
                    if math.exp(self.whole(context) * d) - 1 < threshold:
                        gone.add(g)
        for g in gone:
            del self.p[g]
        for n in range(1, self.order):  # contexts of n words, shortest first
            for context in [g for g in self.weight if len(g) == n]:
                self.weight[context] = self.new_weight(context, [g for g in self.p if g[:-1] == context])


def read(path):
    with open(path) as f:
        return [line.split() for line in f if line.strip()]


def arpa(model, out):
    grams = [sorted(g for g in model.kept if len(g) == n) for n in range(1, model.order + 1)]
    grams[0] = sorted([(w,) for w in model.words] + [("<s>",)])
    out.write("\\data\\\n" + "".join("ngram %d=%d\n" % (n, len(g)) for n, g in enumerate(grams, 1)))
    for n, level in enumerate(grams, 1):
        out.write("\n\\%d-grams:\n" % n)
        for g in level:
            logp = -99 if g == ("<s>",) else math.log10(model.probability(g))
            weight = "\t%.7f" % math.log10(model.weight(g)) if n < model.order else ""
            out.write("%.7f\t%s%s\n" % (logp, " ".join(g), weight))
    out.write("\n\\end\\\n")


def make_text(rng, n):
    """Sentences of a random grammar over forty words, sometimes with one of many rare words."""
    words = ["w%02d" % i for i in range(40)]
    follow = {w: rng.sample(words, 6) for w in ["<s>"] + words}
    lines = []
    for _ in range(n):
        at, line = "<s>", []
        while len(line) < 14 and (not line or rng.random() > 0.15):
            at = follow[at][min(int(rng.expovariate(0.7)), 5)] if rng.random() < 0.85 else rng.choice(words)
            line.append("r%02d" % min(int(rng.paretovariate(0.6)), 99) if rng.random() < 0.06 else at)
        lines.append(line)
    return lines


CASES = [  # name, order, <unk>, minimum counts, vocabulary
    ("unigram", 1, True, (), None),
    ("bigram", 2, True, (), None),
    ("trigram", 3, True, (), None),
    ("closed", 3, False, (), None),
    ("five", 5, True, (), None),
    ("minimum", 4, True, (1, 1, 2, 2), None),
    ("rare", 3, True, (3, 2, 2), None),
    ("vocabulary", 3, True, (), ["w%02d" % i for i in range(30)] + ["never", "ever"]),
    ("absolute", 4, True, (1, 1, 2, 2), None),
]


PRUNED = [(2, 1e-3), (3, 1e-5), (3, 1e-4), (3, 1e-3), (3, 1e-2), (3, 1.0)]  # order, threshold; of the first 60 sentences


def make_golden(folder):
    rng = random.Random(7)
    paths = [os.path.join(folder, "ngram_%s.txt" % name) for name in ("text", "heldout", "golden")]
    text, heldout = make_text(rng, 260), make_text(random.Random(8), 12)
    heldout[3][1:2] = ["new", "newer"]
    for path, lines in zip(paths, (text, heldout)):
        with open(path, "w") as f:
            f.writelines(" ".join(line) + "\n" for line in lines)
    with open(paths[2], "w") as out:
        out.write("# by tests/golden/ngram.py\n"
                  "# model NAME ORDER UNKNOWN MINIMUM,... VOCABULARY|-: a model of ngram_text.txt\n"
                  "# order N ENTRIES D1 D2 D3: n-grams of that order, discounts\n"
                  "# sum SENTENCES LOG10: over ngram_heldout.txt, words that are known\n"
                  "# p LOG10 WORDS...: of the last word behind the others\n")
        first = rng
        for name, order, unknown, minimum, vocabulary in CASES:
            if name == "absolute":
                rng = random.Random(9)
            m = Model(text, order, unknown, minimum, vocabulary, name == "absolute")
            mins = ",".join(str(c) for c in minimum) or "1"
            out.write("model %s %d %d %s %s\n" % (name, order, unknown, mins, ",".join(vocabulary) if vocabulary else "-"))
            for n in range(1, order + 1):
                entries = len(m.words) + 1 if n == 1 else sum(1 for g in m.kept if len(g) == n)
                out.write("order %d %d %.12f %.12f %.12f\n" % ((n, entries) + tuple(m.discounts[n - 1])))
            scored = [line for line in heldout if unknown or all(w in m.words for w in line)]
            out.write("sum %d %.9f\n" % (len(scored), sum(m.sentence(line)[0] for line in scored)))
            grams = sorted(m.count)
            picked = [g for g in rng.sample(grams, min(40, len(grams)))]
            for g in rng.sample(grams, min(20, len(grams))):  # contexts with any word, most of them unseen
                picked.append(g[-order:][1:] + (rng.choice(sorted(m.words)),))
            for _ in range(10):
                picked.append(tuple(rng.choice(sorted(m.words - {"</s>"})) for _ in range(order)))
            for g in picked:
                out.write("p %.12f %s\n" % (math.log10(m.probability(g)), " ".join(g)))
        rng = first
        out.write("# pruned ORDER THRESHOLD ENTRIES...: of each order left; then log10 probabilities by the pruned model\n")
        for order, threshold in PRUNED:
            m = Model(text[:60], order)
            b = Backoff(m)
            b.prune(threshold)
            left = [sum(1 for g in b.p if len(g) == n) for n in range(1, order + 1)]
            left[0] += 1  # <s>
            out.write("pruned %d %g %s\n" % (order, threshold, " ".join(str(n) for n in left if n)))
            for g in rng.sample(sorted(m.count), 20) + [tuple(rng.choice(b.words) for _ in range(order)) for _ in range(20)]:
                out.write("p %.12f %s\n" % (math.log10(b.probability(g)), " ".join(g)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--arpa", nargs=2, metavar=("ORDER", "TEXT"))
    parser.add_argument("--perplexity", nargs=3, metavar=("ORDER", "TEXT", "HELDOUT"))
    args = parser.parse_args()
    if args.arpa:
        arpa(Model(read(args.arpa[1]), int(args.arpa[0])), sys.stdout)
    elif args.perplexity:
        m, lines = Model(read(args.perplexity[1]), int(args.perplexity[0])), read(args.perplexity[2])
        oov = sum(1 for line in lines for w in line if w not in m.words)
        words, known = sum(map(len, lines)), sum(m.sentence(line)[0] for line in lines)
        print("%d sentences, %d words, %d OOVs, logprob %.4f, ppl %.4f" %
              (len(lines), words, oov, known, 10 ** (-known / (words - oov + len(lines)))))
    else:
        make_golden(args.out)


if __name__ == "__main__":
    main()
