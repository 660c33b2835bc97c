#!/usr/bin/env python3
"""Makes the reference data of tests/train/score/test_score_choices.c with NIST's sclite (Debian package sctk):

choices_{ref,hyp}.trn, choices_trn_counts.txt   random utterances with alternatives, null words, optional words and stars
choices.stm, choices.ctm, choices_stm_counts.txt   random lines of an STM with comments, labels, times that are not scored, several
                                                files and channels, and a CTM with alternatives

    python3 tests/golden/score_choices.py [--n N] [--seed S] [--out FOLDER]

A case is an utterance; there are N of each kind. More than are stored here:
    python3 tests/golden/score_choices.py --n 5000 --seed 7 --out DIR; build/release/tests/train/score/test_score_choices DIR
"""
import argparse
import os
import random
import re
import subprocess

WORDS = "a b c d e f".split()


def word(rng):
    w = rng.choice(WORDS)
    if rng.random() < 0.1:
        w = w.upper()
    if rng.random() < 0.05:
        w += "*"
    return w


def sequence(rng, most, depth=0):
    """Words of a TRN or STM, at least one."""
    out = []
    for _ in range(rng.randint(1, most)):
        r = rng.random()
        if r < 0.15 and depth < 3:
            out.append(choice(rng, depth))
        elif r < 0.27:
            out.append("(%s)" % rng.choice(WORDS))
        elif r < 0.30:
            out.append("@")
        else:
            out.append(word(rng))
    return " ".join(out)


def choice(rng, depth):
    parts = [sequence(rng, rng.choice([1, 1, 2, 3]), depth + 1) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.3:
        parts.append("@")
    if rng.random() < 0.1:
        parts.insert(rng.randrange(len(parts) + 1), " ")
    rng.shuffle(parts)
    if not "".join(parts).strip():
        parts = ["a"]
    return rng.choice(["{%s}" % "/".join(parts), "{ %s }" % " / ".join(parts)])


def sclite(out, ref, hyp, *options):
    command = ["sctk", "sclite", "-D", "-r", ref] + list(options[:1]) + ["-h", hyp] + list(options[1:]) + ["-o", "pra", "stdout"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout
    found = re.findall(r"id: \((\S+)\)\s*\n(?:.*\n)*?Scores: \(#C #S #D #I\) (\d+) (\d+) (\d+) (\d+)", text)
    with open(out, "w") as file:
        file.write("# id correct substitutions deletions insertions, by sclite -D (tests/golden/score_choices.py)\n")
        for row in found:
            file.write(" ".join(row) + "\n")
    return len(found)


def trn(rng, n, folder):
    ref, hyp = [os.path.join(folder, "choices_%s.trn" % k) for k in ("ref", "hyp")]
    with open(ref, "w") as r, open(hyp, "w") as h:
        for i in range(n):
            name = "s%d-%04d" % (i % 7, i)
            r.write("%s (%s)\n" % (sequence(rng, 9) if rng.random() < 0.95 else "", name))
            h.write("%s (%s)\n" % (sequence(rng, 9) if rng.random() < 0.95 else "", name))
    assert sclite(os.path.join(folder, "choices_trn_counts.txt"), ref, hyp, "trn", "trn", "-i", "spu_id") == n


def ctm_words(rng, out, name, channel, at, end):
    """Words and alternatives from a time on, up to another."""
    while at < end:
        at += rng.choice([0, 0.05, 0.3])
        if rng.random() < 0.12:
            out.append("%s %s * * <ALT_BEGIN>" % (name, channel))
            n, last = rng.randint(1, 3), at
            for k in range(n):
                t = at
                for _ in range(rng.randint(1, 2)):
                    d = rng.choice([0.1, 0.25, 0.4])
                    out.append("%s %s %.3f %.3f %s" % (name, channel, t, d, "@" if rng.random() < 0.15 else word(rng)))
                    t += d
                last = max(last, t)
                if k < n - 1:
                    out.append("%s %s * * %s" % (name, channel, rng.choice(["<ALT>", "<alt>"])))
            if rng.random() < 0.2:
                out.append("%s %s * * <ALT>" % (name, channel))  # an empty alternative at the end
            out.append("%s %s * * <ALT_END>" % (name, channel))
            at = last
        else:
            d = rng.choice([0.1, 0.25, 0.4])
            out.append("%s %s %.3f %.3f %s%s" % (name, channel, at, d, word(rng), rng.choice(["", " 0.5"])))
            at += d
    return at


def stm(rng, n, folder):
    ref, hyp = os.path.join(folder, "choices.stm"), os.path.join(folder, "choices.ctm")
    lines, words, scored, number = [';; CATEGORY "0" "" ""', ';; LABEL "M" "Male" "Male Talkers"'], [], 0, 0
    while scored < n:
        name, channels = "f%03d" % number, rng.choice([["1"], ["1", "2"], ["A", "B"]])
        number += 1
        for channel in channels:
            at = rng.choice([0, 0.7])
            ctm_words(rng, words, name, channel, rng.choice([0, 0.3]), rng.choice([2, 6, 12]))
            for _ in range(rng.randint(1, 6)):
                end = at + rng.choice([0.5, 1.5, 2.5, 4])
                text = sequence(rng, 8) if rng.random() < 0.93 else ""
                if rng.random() < 0.15:
                    text = "IGNORE_TIME_SEGMENT_IN_SCORING"
                else:
                    scored += 1
                label = rng.choice(["", "<o,f0,male> ", "<O> "])
                lines.append("%s %s %s %.2f %.2f %s%s" % (name, channel, rng.choice(["anna", "Ben", "c-1"]), at, end, label, text))
                if rng.random() < 0.05:
                    lines.append(";; a comment")
                at = end + rng.choice([0, 0, 0.4])
    with open(ref, "w") as r, open(hyp, "w") as h:
        r.write("\n".join(lines) + "\n")
        h.write("\n".join(words) + "\n")
    assert sclite(os.path.join(folder, "choices_stm_counts.txt"), ref, hyp, "stm", "ctm") == scored


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    trn(rng, args.n, args.out)
    stm(rng, args.n, args.out)


main()
