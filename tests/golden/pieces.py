#!/usr/bin/env python3
"""Makes tests/golden/pieces.txt for tests/lexicon/test_pieces.c: byte pair encoding of random words, without lexicon/pieces.c.

    python3 tests/golden/pieces.py > tests/golden/pieces.txt

The first line is the list of pieces; each other one a word, how often it occurs (0: not learnt from), and its pieces.
"""
import collections
import random


def merge(seq, names):
    while True:
        known = [names.index(a + b) for a, b in zip(seq, seq[1:]) if a + b in names]
        if not known:
            return seq
        new, out, i = names[min(known)], [], 0
        while i < len(seq):
            both = "".join(seq[i:i + 2]) == new and i + 1 < len(seq)
            out.append(new if both else seq[i])
            i += 2 if both else 1
        seq = out


rng = random.Random(36)
names = ["<s>", "_", "'"] + [chr(c) for c in range(97, 123)]
syllables = ["ba", "na", "aa", "the", "in", "g", "er", "s", "'s", "qu", "st", "o", "u", "and"]
counts = collections.Counter("".join(rng.choice(syllables) for _ in range(rng.randint(1, 4))) for _ in range(400))
words = {w: ["_"] + list(w) for w in counts}
for _ in range(60):
    pairs = collections.Counter()
    for w, seq in words.items():
        for pair in zip(seq, seq[1:]):
            pairs[pair] += counts[w]
    best = max(pairs, key=lambda p: (pairs[p], -names.index(p[0]), -names.index(p[1])))
    names.append(best[0] + best[1])
    words = {w: merge(seq, names) for w, seq in words.items()}
print(*names)
for w in sorted(counts):
    print(w, counts[w], *words[w])
for w in ("a", "'", "z", "banana", "anding", "thethethe", "aaaaaaa", "xylophone", "questions"):
    if w not in counts:
        print(w, 0, *merge(["_"] + list(w), names))
