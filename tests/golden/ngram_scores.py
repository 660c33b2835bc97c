#!/usr/bin/env python3
"""Makes ngram3.arpa, ngram5.arpa and ngram_scores.txt in this folder: small back-off models with random numbers, pruned so that the
suffixes of some n-grams are missing, and the scores that KenLM (Python package kenlm) gives to random sentences.
tests/lexicon/test_ngram.c compares lexicon/ngram with these scores.

    python3 tests/golden/ngram_scores.py [--seed S] [--out FOLDER]

ngram_scores.txt: a line "FILE WORD...", below it the log10 probability of each word and of </s>, from <s> on.
"""
import argparse
import os
import random

import kenlm


def make(rng, order, n_words, children, missing):
    """{words: (log10 p, log10 back-off)} by order, n-grams and their contexts"""
    words = ["<s>", "</s>", "<unk>"] + ["w%02d" % i for i in range(n_words)]
    levels = [{}, {(w,): None for w in words}]
    for k in range(2, order + 1):
        level = {}
        for context in levels[k - 1]:
            if context[-1] == "</s>":
                continue
            for word in words[1:]:
                # KenLM has memory for only a few n-grams without their suffix
                if rng.random() < children / len(words) and (context[1:] + (word,) in levels[k - 1] or rng.random() < missing):
                    level[context + (word,)] = None
        levels.append(level)
    for k in range(1, order + 1):
        for gram in levels[k]:
            logp = -99 if gram == ("<s>",) else round(-rng.uniform(0.01, 5), 4)
            levels[k][gram] = (logp, round(rng.uniform(-1.5, 0), 4) if k < order and gram[-1] != "</s>" else None)
    return levels


def write(levels, path):
    order = len(levels) - 1
    with open(path, "w") as f:
        f.write("\\data\\\n" + "".join("ngram %d=%d\n" % (k, len(levels[k])) for k in range(1, order + 1)))
        for k in range(1, order + 1):
            f.write("\n\\%d-grams:\n" % k)
            for gram in sorted(levels[k], key=lambda g: g[::-1]):
                logp, backoff = levels[k][gram]
                f.write("%g\t%s" % (logp, " ".join(gram)) + ("\t%g" % backoff if backoff is not None else "") + "\n")
        f.write("\n\\end\\\n")


def sentence(rng, levels):
    grams = [g for level in levels[2:] for g in level]
    words = []
    while len(words) < 12 and (not words or rng.random() < 0.9):
        if rng.random() < 0.7:
            words += [w for w in rng.choice(grams) if w not in ("<s>", "</s>")]
        else:
            words.append(rng.choice(list(levels[1]))[0])
    return [w for w in words if w not in ("<s>", "</s>", "<unk>")] + (["none"] if rng.random() < 0.2 else [])


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=here)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with open(os.path.join(args.out, "ngram_scores.txt"), "w") as out:
        out.write("# by tests/golden/ngram_scores.py\n")
        for order, n_words, children, missing in ((3, 20, 5.0, 0.1), (5, 12, 5.0, 0.02)):
            levels = make(rng, order, n_words, children, missing)
            name = "ngram%d.arpa" % order
            write(levels, os.path.join(args.out, name))
            model = kenlm.Model(os.path.join(args.out, name))
            for _ in range(60):
                words = sentence(rng, levels)
                scores = [s for s, _, _ in model.full_scores(" ".join(words))]
                out.write("%s %s\n%s\n" % (name, " ".join(words), " ".join("%.5f" % s for s in scores)))


if __name__ == "__main__":
    main()
