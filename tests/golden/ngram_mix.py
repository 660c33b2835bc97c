#!/usr/bin/env python3
"""Writes ngram_mix.txt: linear interpolation of two models of ngram_text.txt as a back-off model, and the weight that suits
ngram_heldout.txt. The models are those of ngram.py, from the equations; nothing of linnet is used. tests/train/learn/test_ngram_mix.c
compares train/learn/ngram_mix with it.

    python3 tests/golden/ngram_mix.py [--out FOLDER]
"""
import argparse
import math
import os
import random
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import ngram  # noqa: E402

A, B = (0, 150, 3), (150, 260, 4)  # lines, order


class Mix:
    def __init__(self, a, b, weight):
        self.parts, self.order = ((a, weight), (b, 1 - weight)), max(a.order, b.order)
        self.words = a.words | b.words
        self.p = {g: self.sum(g) for m in (a, b) for g in m.kept if len(g) > 1}
        self.p.update({(w,): self.sum((w,)) for w in self.words})
        self.children = {}
        for g in self.p:
            self.children.setdefault(g[:-1], []).append(g)

    def sum(self, gram):
        return sum(weight * alone(m, gram) for m, weight in self.parts)

    def probability(self, gram):
        gram = gram[-self.order:]
        if gram in self.p:
            return self.p[gram]
        return self.weight(gram[:-1]) * self.probability(gram[1:])

    def weight(self, context):
        children = self.children.get(context)
        if not children:
            return 1.0
        return (1 - sum(self.p[g] for g in children)) / (1 - sum(self.probability(g[1:]) for g in children))


def alone(model, gram):
    """P of the last word by one model: 0 if it lacks the word; unknown words before it are its <unk>."""
    if gram[-1] not in model.words:
        return 0.0
    known = model.words | {"<s>"}
    return model.probability(tuple(w if w in known else "<unk>" for w in gram)[-model.order:])


def events(model, lines, other):
    for line in lines:
        s = ["<s>"] + line + ["</s>"]
        for end in range(1, len(s)):
            if s[end] in model.words or s[end] in other.words:
                yield alone(model, tuple(s[:end + 1])[-model.order:])


def expectation(a, b, lines):
    pairs, weight = list(zip(events(a, lines, b), events(b, lines, a))), 0.5
    for _ in range(100000):
        weight = sum(weight * x / (weight * x + (1 - weight) * y) for x, y in pairs) / len(pairs)
    return weight


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=here)
    args = parser.parse_args()
    text, heldout = (ngram.read(os.path.join(here, "ngram_%s.txt" % n)) for n in ("text", "heldout"))
    a, b = (ngram.Model(text[first:end], order) for first, end, order in (A, B))
    rng = random.Random(4)
    with open(os.path.join(args.out, "ngram_mix.txt"), "w") as out:
        out.write("# by tests/golden/ngram_mix.py\n# weight W: of the first model, by ngram_heldout.txt\n"
                  "# mix W ENTRIES...: of each order\n# p LOG10 WORDS...: of the last word behind the others\n")
        best = expectation(a, b, heldout)
        out.write("weight %.9f\n" % best)
        for weight in (0.25, round(best, 6)):
            m = Mix(a, b, weight)
            counts = [sum(1 for g in m.p if len(g) == n) + (n == 1) for n in range(1, m.order + 1)]  # <s> is a word
            out.write("mix %.6f %s\n" % (weight, " ".join(map(str, counts))))
            grams = rng.sample(sorted(m.p), 40)
            grams += [rng.choice(sorted(m.p))[-m.order:][1:] + (rng.choice(sorted(m.words)),) for _ in range(20)]
            grams += [tuple(rng.choice(sorted(m.words - {"</s>"})) for _ in range(m.order)) for _ in range(10)]
            for g in grams:
                if "</s>" not in g[:-1]:
                    out.write("p %.12f %s\n" % (math.log10(m.probability(g)), " ".join(g)))


main()
