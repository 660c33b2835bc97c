#!/usr/bin/env python3
"""Makes score_ref.trn, score_hyp.trn and score_counts.txt in this folder: random pairs of token sequences and what NIST's sclite
(Debian package sctk) counts in them. tests/decoder/test_score.c holds decoder/score against the counts.

    python3 tests/golden/score.py [--pairs N] [--seed S] [--out FOLDER]

Alphabets from one token to the 39 phones, lengths 0 to 40, hypotheses that are edits of the reference or have nothing to do with
it.
"""
import argparse
import os
import random
import re
import subprocess

PHONES = ("AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH").split()


def pair(rng):
    alphabet = rng.sample(PHONES, rng.choice([1, 2, 2, 3, 3, 4, 6, 10, 39]))
    ref = [rng.choice(alphabet) for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 12, 20, 40]))]
    if rng.random() < 0.4:
        return ref, [rng.choice(alphabet) for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 12, 20, 40]))]
    hyp, rate = [], rng.choice([0.05, 0.2, 0.5])
    for token in ref:
        r = rng.random()
        if r < rate / 3:
            continue
        hyp.append(rng.choice(alphabet) if r < 2 * rate / 3 else token)
        if rng.random() < rate / 3:
            hyp.append(rng.choice(alphabet))
    return ref, [t.lower() if rng.random() < 0.1 else t for t in hyp]


def substitutions(ref, hyp, deletion_first):
    """Substitutions of the lightest alignment, with ties between deletion and insertion decided one way or the other."""
    row = [(3 * j, 0) for j in range(len(hyp) + 1)]
    for a in ref:
        diagonal, row[0] = row[0], (row[0][0] + 3, 0)
        for j, b in enumerate(hyp, 1):
            match = (diagonal[0] + 4 * (a != b), diagonal[1] + (a != b))
            above, left, diagonal = row[j][0] + 3, row[j - 1][0] + 3, row[j]
            if match[0] <= above and match[0] <= left:
                row[j] = match
            elif above < left or (deletion_first and above == left):
                row[j] = (above, row[j][1])
            else:
                row[j] = (left, row[j - 1][1])
    return row[-1][1]


def delicate_pair(rng):
    """A pair where that decision shows, which is one in several hundred."""
    while True:
        alphabet = rng.sample(PHONES, rng.choice([2, 3, 4]))
        ref = [rng.choice(alphabet) for _ in range(rng.randrange(4, 12))]
        hyp = [rng.choice(alphabet) for _ in range(rng.randrange(4, 12))]
        if substitutions(ref, hyp, True) != substitutions(ref, hyp, False):
            return ref, hyp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    speakers = ["s1-%04d", "S2-a-%04d", "b_%04d", "x_y-%04d", "long-name_%04d"]
    ref_path, hyp_path = os.path.join(args.out, "score_ref.trn"), os.path.join(args.out, "score_hyp.trn")
    pairs = [(rng.choice(speakers) % i, *(delicate_pair if i % 10 == 0 else pair)(rng)) for i in range(args.pairs)]
    with open(ref_path, "w") as ref, open(hyp_path, "w") as hyp:
        for name, r, _ in pairs:
            ref.write(" ".join(r + ["(%s)" % name]) + "\n")
        for name, _, h in sorted(pairs, key=lambda p: p[1:]):
            hyp.write(" ".join(h + ["(%s)" % name]) + "\n")
    command = ["sctk", "sclite", "-r", ref_path, "trn", "-h", hyp_path, "trn", "-i", "spu_id", "-o"]
    alignments = subprocess.run(command + ["pra", "stdout"], check=True, capture_output=True, text=True).stdout
    sums = subprocess.run(command + ["rsum", "stdout"], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"id: \((\S+)\)\s*\n(?:.*\n)*?Scores: \(#C #S #D #I\) (\d+) (\d+) (\d+) (\d+)", alignments)
    assert len(found) == args.pairs, (len(found), args.pairs)
    with open(os.path.join(args.out, "score_counts.txt"), "w") as out:
        out.write("# utt|spk id correct substitutions deletions insertions, by sclite (tests/golden/score.py)\n")
        for row in found:
            out.write("utt " + " ".join(row) + "\n")
        for row in re.findall(r"^\s*\|\s*(\S+)\s*\|\s*\d+\s+\d+\s*\|\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+\d+", sums, re.M):
            if row[0] != "Sum":
                out.write("spk " + " ".join(row) + "\n")


main()
