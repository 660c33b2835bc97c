#!/usr/bin/env python3
"""Makes the reference data of tests/train/score/test_score.c with NIST's sclite and sc_stats (Debian package sctk):

score_{ref,hyp}.trn, score_counts.txt    random pairs of token sequences and sclite's counts for them
score_align.txt                          the first of them as "sclite -o pralign" prints them
score_pairs_{ref,a,b}.trn, score_pairs.txt   two systems and the matched-pairs test of sc_stats
score_real_{ref,hyp}.trn, score_real_counts.txt   with --real REF HYP: every n-th utterance of real output, and its counts

    python3 tests/golden/score.py [--pairs N] [--seed S] [--out FOLDER] [--real REF HYP [--every N]]

Alphabets from one token to 2,000, lengths 0 to 200, hypotheses that are edits of the reference or unrelated to it.
More pairs than are stored here: score.py --pairs 20000 --out DIR; build/release/tests/train/score/test_score DIR
"""
import argparse
import os
import random
import re
import subprocess

PHONES = ("AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH").split()


WORDS = ["%s%d" % (p.lower(), i) for i in range(52) for p in PHONES][:2000]
LENGTHS = [0, 1, 2, 3, 5, 8, 12, 20, 40] * 4 + [100, 200]


def pair(rng):
    size = rng.choice([1, 2, 2, 3, 3, 4, 6, 10, 39, 39, 2000])
    alphabet = rng.sample(PHONES, size) if size <= len(PHONES) else WORDS
    ref = [rng.choice(alphabet) for _ in range(rng.choice(LENGTHS))]
    if rng.random() < 0.3:
        return ref, [rng.choice(alphabet) for _ in range(rng.choice(LENGTHS))]
    return ref, edited(rng, ref, alphabet, rng.choice([0.05, 0.2, 0.5]))


def edited(rng, ref, alphabet, rate):
    hyp = []
    for token in ref:
        r = rng.random()
        if r < rate / 3:
            continue
        hyp.append(rng.choice(alphabet) if r < 2 * rate / 3 else token)
        if rng.random() < rate / 3:
            hyp.append(rng.choice(alphabet))
    return [t.lower() if rng.random() < 0.1 else t for t in hyp]


def substitutions(ref, hyp, deletion_first):
    """Substitutions of the alignment with the smallest weight; ties between deletion and insertion are decided either way."""
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
    """A pair for which that decision changes the count, about one in several hundred."""
    while True:
        alphabet = rng.sample(PHONES, rng.choice([2, 3, 4]))
        ref = [rng.choice(alphabet) for _ in range(rng.randrange(4, 12))]
        hyp = [rng.choice(alphabet) for _ in range(rng.randrange(4, 12))]
        if substitutions(ref, hyp, True) != substitutions(ref, hyp, False):
            return ref, hyp


def write(path, lines):
    """lines: (id, tokens)"""
    with open(path, "w") as out:
        for name, tokens in lines:
            out.write(" ".join(tokens + ["(%s)" % name]) + "\n")


def sclite(ref, hyps, *options):
    command = ["sctk", "sclite", "-r", ref, "trn", "-i", "spu_id"]
    for hyp in hyps:
        command += ["-h", hyp, "trn", os.path.basename(hyp)]
    return subprocess.run(command + list(options), check=True, capture_output=True, text=True).stdout


def counts(ref, hyp, n, out_path):
    """Writes sclite's counts per utterance and speaker. Returns the alignments."""
    alignments = sclite(ref, [hyp], "-o", "pra", "stdout")
    sums = sclite(ref, [hyp], "-o", "rsum", "stdout")
    found = re.findall(r"id: \((\S+)\)\s*\n(?:.*\n)*?Scores: \(#C #S #D #I\) (\d+) (\d+) (\d+) (\d+)", alignments)
    assert len(found) == n, (len(found), n)
    with open(out_path, "w") as out:
        out.write("# utt|spk id correct substitutions deletions insertions, by sclite (tests/golden/score.py)\n")
        for row in found:
            out.write("utt " + " ".join(row) + "\n")
        for row in re.findall(r"^\s*\|\s*(\S+)\s*\|\s*\d+\s+\d+\s*\|\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+\d+", sums, re.M):
            if row[0] != "Sum":
                out.write("spk " + " ".join(row) + "\n")
    return alignments


def matched_pairs(rng, folder):
    """Two systems and the result of sc_stats. Every utterance ends with tokens that both have right: sc_stats ignores insertions
    of the second system after the last reference token."""
    path = {k: os.path.join(folder, "score_pairs_%s.trn" % k) for k in ("ref", "a", "b")}
    lines = {k: [] for k in path}
    for i in range(60):
        ref = [rng.choice(PHONES[:12]) for _ in range(rng.randrange(30))]
        name, end = "s%d-%03d" % (i % 7, i), ["END", "OF"]
        lines["ref"].append((name, ref + end))
        lines["a"].append((name, edited(rng, ref, PHONES[:12], 0.25) + end))
        lines["b"].append((name, edited(rng, ref, PHONES[:12], 0.4) + end))
    for k in path:
        write(path[k], lines[k])
    piped = sclite(path["ref"], [path["a"], path["b"]], "-p")
    # Some builds of sclite write line breaks for the separators "," and ":"; sc_stats does not read them.
    def mend(m):
        rows = m.group(2).split("\n")
        rows += [""] * (-len(rows) % 3)
        return m.group(1) + ":".join(",".join(rows[i:i + 3]) for i in range(0, len(rows), 3)) + "\n</PATH>"
    piped = re.sub(r"(<PATH[^>]*>\n)((?:[CSDI]\n.*?))\n</PATH>", mend, piped, flags=re.S)
    stats = subprocess.run(["sctk", "sc_stats", "-p", "-t", "mapsswe", "-v", "-n", "-"], input=piped, check=True, capture_output=True,
                           text=True).stdout
    found = re.search(r"# segs: (\d+)\).*mean: (\S+)\) \(std dev: (\S+)\) \(Z Stat: (\S+)\)", stats)
    with open(os.path.join(folder, "score_pairs.txt"), "w") as out:
        out.write("# segments, mean difference, deviation, z of the matched-pairs test, by sc_stats (tests/golden/score.py)\n")
        out.write(" ".join(found.groups()) + "\n")


def real(args):
    lines = [[l for l in open(f) if l.strip()] for f in args.real]
    hyp = {l[l.rindex("("):].strip(): l for l in lines[1]}
    ref = lines[0][::args.every]
    path = [os.path.join(args.out, "score_real_%s.trn" % k) for k in ("ref", "hyp")]
    open(path[0], "w").writelines(ref)
    open(path[1], "w").writelines(hyp[l[l.rindex("("):].strip()] for l in ref)
    counts(path[0], path[1], len(ref), os.path.join(args.out, "score_real_counts.txt"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--real", nargs=2)
    parser.add_argument("--every", type=int, default=7)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    speakers = ["s1-%05d", "S2-a-%05d", "b_%05d", "x_y-%05d", "long-name_%05d"]
    ref, hyp = os.path.join(args.out, "score_ref.trn"), os.path.join(args.out, "score_hyp.trn")
    pairs = [(rng.choice(speakers) % i, *(delicate_pair if i % 10 == 0 else pair)(rng)) for i in range(args.pairs)]
    write(ref, [(name, r) for name, r, _ in pairs])
    write(hyp, [(name, h) for name, _, h in sorted(pairs, key=lambda p: p[1:])])
    alignments = counts(ref, hyp, args.pairs, os.path.join(args.out, "score_counts.txt"))
    with open(os.path.join(args.out, "score_align.txt"), "w") as out:
        for block in [b for b in re.findall(r"^id: .*?\n\n", alignments, re.M | re.S) if "REF:" in b][:30]:
            out.write(block)
    matched_pairs(rng, args.out)
    if args.real:
        real(args)


main()
