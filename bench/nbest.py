#!/usr/bin/env python3
"""Compares the alternatives of linnet with an exact rescoring of their words.

    linnet posteriors --search a.wav -o a.npy; linnet decode --words --n-best 20 -f json a.npy > a.json
    bench/nbest.py a.json a.npy [--lm-weight W --bonus B --unknown U --unknown-phone P]

For each alternative: the logarithm of the sum over all CTC alignments of its phones with all rows (Graves et al. 2006, eq. 6-8), in
float64 with numpy, from the phone list of the JSON; and score = acoustic + W * language + B * words + U * unknown words + P * their
phones. Prints how many alternatives score better than that, and the largest differences. Exit status 1 if one differs by 0.001 or
more.
"""
import argparse
import json
import sys

import numpy as np

PHONES = ("<blank> AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH").split()


def exact(logp, labels):
    states = [0] + [x for label in labels for x in (label, 0)]
    alpha = np.full(len(states), -np.inf)
    alpha[0] = logp[0, 0]
    if labels:
        alpha[1] = logp[0, labels[0]]
    skip = np.array([i > 1 and s and s != states[i - 2] for i, s in enumerate(states)])
    for row in logp[1:]:
        one = np.concatenate(([-np.inf], alpha[:-1]))
        two = np.where(skip, np.concatenate(([-np.inf, -np.inf], alpha[:-2]))[: len(states)], -np.inf)
        alpha = np.logaddexp(np.logaddexp(alpha, one), two) + row[states]
    return np.logaddexp(alpha[-1], alpha[-2]) if labels else alpha[0]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("json")
    p.add_argument("npy", nargs="+", help="in the order of the JSON's lines")
    p.add_argument("--lm-weight", type=float, default=0.8)
    p.add_argument("--bonus", type=float, default=-0.4)
    p.add_argument("--unknown", type=float, default=-6)
    p.add_argument("--unknown-phone", type=float, default=-3)
    o = p.parse_args()
    n = better = 0
    off_acoustic = off_score = 0.0
    with open(o.json) as lines:
        for line, path in zip(lines, o.npy, strict=True):
            result = json.loads(line)
            logp = np.load(path).astype(np.float64)
            for a in result.get("alternatives", [result]):
                acoustic = exact(logp, [PHONES.index(x["phone"]) for x in a["phones"]])
                unknown = [w for w in a["words"] if not w["known"]]
                score = (acoustic + o.lm_weight * a["language"] + o.bonus * len(a["words"]) + o.unknown * len(unknown)
                         + o.unknown_phone * sum(len(w["phones"]) for w in unknown))
                n += 1
                better += a["score"] > score + 1e-3
                off_acoustic = max(off_acoustic, abs(a["acoustic"] - acoustic))
                off_score = max(off_score, abs(a["score"] - score))
    print(f"{n} alternatives, {better} better than exact; off by {off_acoustic:.4f} (acoustic), {off_score:.4f} (score) at most")
    return int(better > 0 or off_score >= 1e-3)


if __name__ == "__main__":
    sys.exit(main())
