#!/usr/bin/env python3
"""Measures the numbers of docs/alignment.md on real speech: fit of right and wrong texts, goodness of replaced phonemes, a long
recording, texts that are part of the sound. Prints rows of tables, each behind the name of its table.

    bench/align.py build/release/linnet cmudict.dict corpus/dev_native [fit|goodness|long|part]...

The set is a Kaldi-style data directory whose audio paths are relative to its parent. Needs only the program and Python's standard
library.
"""
import bisect
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LINNET, LEXICON, FOLDER = sys.argv[1:4]
NAME = os.path.basename(os.path.abspath(FOLDER))
WHAT = sys.argv[4:] or ["fit", "goodness", "long", "part"]


def table(name):
    with open(os.path.join(FOLDER, name)) as lines:
        return dict(line.rstrip("\n").split(" ", 1) for line in lines)


def run(*args):
    return subprocess.run([LINNET, *args], capture_output=True, text=True, check=False)


def posteriors(folder):
    """Writes a matrix of each utterance to a file."""
    root = os.path.dirname(os.path.abspath(FOLDER))
    files = {}
    for name, path in table("wav.scp").items():
        files[name] = os.path.join(folder, name + ".npy")
        done = run("posteriors", os.path.join(root, path), "-o", files[name])
        assert done.returncode == 0, done.stderr
    return files


def all_of(work, items):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


def fit(files, text):
    """How many texts, its own or another utterance's, are reported as not matching a sound or as too long for it."""
    names = sorted(files)
    chance = random.Random(1)

    def one(pair):
        done = run("align", "--posteriors", files[pair[0]], "--text", text[pair[1]], "-l", LEXICON, "-f", "json", "-q")
        share = [math.exp(json.loads(done.stdout)["goodness"])] if done.returncode == 0 else []
        return "does not seem to match" in done.stderr, "longer than the sound" in done.stderr, share

    own = all_of(one, [(n, n) for n in names])
    others = all_of(one, [(n, chance.choice([o for o in names if o != n])) for n in names])
    for what, results in (("that was read", own), ("of another random utterance", others)):
        shares = sorted(s for _, _, share in results for s in share)
        print(f"fit: | {NAME}, the text {what} | {len(results)} | {shares[0]:.2f} | {shares[len(shares) // 2]:.2f} | {shares[-1]:.2f} | "
              f"{sum(s < 0.3 for s in shares)} | {sum(t for t, _, _ in results)} | {sum(l for _, l, _ in results)} |")


def area(right, wrong):
    wrong = sorted(wrong)
    return sum((bisect.bisect_left(wrong, x) + bisect.bisect_right(wrong, x)) / 2 for x in right) / len(right) / len(wrong)


def goodness(files, text):
    """Replaces one phoneme of each text at random, three times."""
    lines = "\n".join(text[n] for n in sorted(files)) + "\n"
    done = subprocess.run([LINNET, "phonemize", "-l", LEXICON, "-q"], input=lines, capture_output=True, text=True, check=True)
    phones = dict(zip(sorted(files), (line.split() for line in done.stdout.splitlines())))
    inventory = sorted({p for line in phones.values() for p in line})
    chance = random.Random(1)
    cases = []
    for name in sorted(files):
        for _ in range(3):
            changed = list(phones[name])
            at = chance.randrange(len(changed))
            changed[at] = chance.choice([p for p in inventory if p != changed[at]])
            cases.append((name, changed, at))

    def one(case):
        done = run("align", "--posteriors", files[case[0]], "--phones", " ".join(case[1]), "-f", "json", "-q")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["phones"]

    right, wrong = {}, {}
    for (_, _, at), judged in zip(cases, all_of(one, cases)):
        for i, phone in enumerate(judged):
            for key in ("goodness", "confidence"):
                (wrong if i == at else right).setdefault(key, []).append(phone[key])
    below = [100 * sum(g < -3 for g in kind["goodness"]) / len(kind["goodness"]) for kind in (wrong, right)]
    areas = {key: area(right[key], wrong[key]) for key in right}
    print(f"goodness: | {NAME} | {len(wrong['goodness'])} | {len(right['goodness'])} | {areas['goodness']:.3f} | {below[0]:.1f} | {below[1]:.1f} | "
          f"{areas['confidence']:.3f} |")


def join(files, text, names, said):
    """The utterances as one recording with the texts of `said`: its seconds, the differences of the beginnings of words from those
    of each utterance alone, and what the program told."""
    alone, rows, words, header = [], b"", [], b""
    for name in names:
        with open(files[name], "rb") as matrix:
            content = matrix.read()
        before = len(rows) / 160 * 0.03
        header, rows = content[:128], rows + content[128:]
        if name not in said:
            continue
        done = run("align", "--posteriors", files[name], "--text", text[name], "-l", LEXICON, "-f", "json", "-q")
        alone += [before + w["start"] for w in json.loads(done.stdout)["words"]]
        words.append(text[name])
    path = os.path.join(os.path.dirname(next(iter(files.values()))), "all.npy")
    shape = re.sub(rb"\((\d+), 40\)", b"(%d, 40)" % (len(rows) // 160), header.rstrip()).ljust(127) + b"\n"
    with open(path, "wb") as out:
        out.write(shape + rows)
    with open(path + ".txt", "w") as out:
        out.write("\n".join(words))
    done = run("align", "--posteriors", path, "--text-file", path + ".txt", "-l", LEXICON, "-f", "json")
    together = [w["start"] for w in json.loads(done.stdout)["words"]]
    return len(rows) / 160 * 0.03, sorted(abs(a - b) for a, b in zip(alone, together, strict=True)), done.stderr


def part(files, text):
    """Three utterances as one recording, with the text of the second only, or of the first and the third, 40 times."""
    chance = random.Random(1)
    triples = [chance.sample(sorted(files), 3) for _ in range(40)]
    for what, said in (("the second", slice(1, 2)), ("the first and the third", slice(0, 3, 2))):
        apart = sorted(d for names in triples for d in join(files, text, names, names[said])[1])
        print(f"part: | of {what} | {len(apart)} | {1000 * sum(apart) / len(apart):.1f} | {sum(d > 0.1 for d in apart)} |")


def long(files, text):
    """All utterances as one recording, compared with each alone."""
    seconds, apart, told = join(files, text, list(files), list(files))
    print(f"long: {seconds:.0f} s, {len(apart)} words; beginnings differ by at most "
          f"{apart[int(.99 * len(apart))]:.3f} s in 99 of 100, {apart[-1]:.3f} s in all; {told.strip().splitlines()[-1]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        files, text = posteriors(folder), table("text")
        for what in WHAT:
            {"fit": fit, "goodness": goodness, "long": long, "part": part}[what](files, text)


main()
