#!/usr/bin/env python3
"""Makes tests/golden/unicode.txt for tests/base/test_unicode.c with Python's unicodedata: lines "text TAB its NFC", of random Latin,
Greek and Cyrillic letters, composed or not, with combining marks.

    python3 tests/golden/unicode.py [--n N] [--seed S] > tests/golden/unicode.txt
"""
import argparse
import random
import unicodedata

RANGES = [(0x41, 0x5B), (0x61, 0x7B), (0xC0, 0x250), (0x370, 0x378), (0x391, 0x3A2), (0x3A3, 0x3D0), (0x400, 0x482), (0x1E00, 0x1F16),
          (0x1F20, 0x1F46), (0x1F80, 0x1FB5), (0x2126, 0x2127), (0x212A, 0x212C)]
LETTERS = [c for low, high in RANGES for c in range(low, high)]
MARKS = [c for c in range(0x300, 0x370) if c not in (0x344, 0x34F)]
USUAL = [0x300, 0x301, 0x302, 0x303, 0x304, 0x306, 0x307, 0x308, 0x309, 0x30A, 0x30B, 0x30C, 0x313, 0x314, 0x31B, 0x323, 0x327, 0x328,
         0x342, 0x345]


def text(rng):
    out = []
    for _ in range(rng.randint(1, 5)):
        letter = chr(rng.choice(LETTERS))
        out.append(unicodedata.normalize("NFD", letter) if rng.random() < 0.4 else letter)
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
            out.append(chr(rng.choice(USUAL if rng.random() < 0.9 else MARKS)))
    return "".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for _ in range(args.n):
        line = text(rng)
        print(line + "\t" + unicodedata.normalize("NFC", line))


main()
