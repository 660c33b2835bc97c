#!/usr/bin/env python3
"""How far the confidences of words can be trusted, and the fit of their function (lin_words_options' `sure`).

    bench/confidence.py [--fit | --table] REF.text HYP.jsonl [REF.text HYP.jsonl ...]

REF.text is Kaldi text; HYP.jsonl comes from `linnet transcribe --words --no-readable -f json`. Words are aligned with sclite's
costs. Of each pair: the share of words that are right, the normalised cross entropy of the confidences (NIST: 1 - H(confidences) /
H(share); 0 is what the share alone gives, 1 is perfect), the area under the curve of right and wrong words, and how many are right
among those of a confidence. --fit: the same with other numbers for `sure`, fitted to all pairs but the speaker in question (the part
of an utterance's name before the first '-'; of more than ten speakers a tenth at a time), and those fitted to all. --table: one
table of all pairs instead, as markdown; the name of a pair is the folder of its text.
"""
import json
import math
import os
import sys

SURE = (-0.564, 0.346, 0.585)  # linnet/decoding.c
LEAST = 1e-4


def logit(p):
    p = min(max(p, LEAST), 1 - LEAST)
    return math.log(p / (1 - p))


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def right_words(ref, hyp):
    """For each word of hyp, whether it is right."""
    cost = [[3 * j for j in range(len(hyp) + 1)]]
    for i, word in enumerate(ref, 1):
        row = [3 * i]
        for j, heard in enumerate(hyp, 1):
            row.append(min(cost[i - 1][j - 1] + 4 * (word != heard), cost[i - 1][j] + 3, row[j - 1] + 3))
        cost.append(row)
    right, i, j = [False] * len(hyp), len(ref), len(hyp)
    while i or j:
        if i and j and cost[i][j] == cost[i - 1][j - 1] + 4 * (ref[i - 1] != hyp[j - 1]):
            i, j = i - 1, j - 1
            right[j] = ref[i] == hyp[j]
        elif i and cost[i][j] == cost[i - 1][j] + 3:
            i -= 1
        else:
            j -= 1
    return right


def read(text, results):
    """A list of (speaker, right, confidence, geometric mean of the phones' confidences)."""
    with open(text, encoding="utf-8") as lines:
        refs = {line.split()[0]: line.lower().split()[1:] for line in lines if line.strip()}
    words = []
    with open(results, encoding="utf-8") as lines:
        for line in lines:
            result = json.loads(line)
            heard = result["words"]
            right = right_words(refs[result["id"]], [word["word"].lower() for word in heard])
            for word, is_right in zip(heard, right):
                first = word["first_phone"]
                phones = result["phones"][first:first + len(word["phones"])]
                mean = sum(math.log(max(phone["confidence"], LEAST)) for phone in phones) / len(phones)
                words.append((result["id"].split("-")[0], is_right, word["confidence"], math.exp(mean)))
    return words


def nce(right, p):
    share = sum(right) / len(p)
    bits = [-math.log(min(max(q if r else 1 - q, 1e-6), 1)) for r, q in zip(right, p)]
    return 1 - sum(bits) / len(p) / -(share * math.log(share) + (1 - share) * math.log(1 - share))


def report(name, right, p):
    n, share = len(p), sum(right) / len(p)
    order = sorted(range(n), key=lambda i: p[i])
    ranks = sum(rank for rank, i in enumerate(order) if right[i])
    good = sum(right)
    area = (ranks - good * (good - 1) / 2) / (good * (n - good))
    print(f"{name}: {n} words, {100 * share:.1f} % right, NCE {nce(right, p):.3f}, area {area:.3f}")
    for low in range(0, 100, 10):
        inside = [i for i in range(n) if low <= 100 * p[i] < low + 10 + (low == 90)]
        if inside:
            print(f"  {low / 100:.1f} to {low / 100 + 0.1:.1f}: {len(inside):5d} words, mean {sum(p[i] for i in inside) / len(inside):.2f}, "
                  f"right {sum(right[i] for i in inside) / len(inside):.2f}")


def table(sets):
    print("| confidence |" + "".join(f" {name}: words | right, % |" for name, _ in sets))
    print("|---|" + "---|---|" * len(sets))
    for title, low, high in (("below 0.3", 0, 0.3), ("0.3 to 0.5", 0.3, 0.5), ("0.5 to 0.7", 0.5, 0.7), ("0.7 to 0.9", 0.7, 0.9),
                             ("0.9 and more", 0.9, 2)):
        cells = ([w[1] for w in words if low <= w[2] < high] for _, words in sets)
        print(f"| {title} |" + "".join(f" {len(c)} | {100 * sum(c) / max(len(c), 1):.0f} |" for c in cells))
    print("| normalised cross entropy |" + "".join(f" {nce([w[1] for w in words], [w[2] for w in words]):.3f} | - |" for _, words in sets))


def measures(confidence, mean):
    """What `sure` weighs: 1, the logit of the word's share, and that times the mean of its phones."""
    share = (logit(confidence) - SURE[0]) / (SURE[1] + SURE[2] * mean)
    return 1.0, share, share * mean


def fit(words):
    """`sure`, by Newton's method."""
    b = list(SURE)
    for _ in range(30):
        gradient, hessian = [0.0] * 3, [[1e-9 * (i == j) for j in range(3)] for i in range(3)]
        for _, right, confidence, mean in words:
            x = measures(confidence, mean)
            p = sigmoid(sum(u * v for u, v in zip(b, x)))
            for i in range(3):
                gradient[i] += (right - p) * x[i]
                for j in range(3):
                    hessian[i][j] += p * (1 - p) * x[i] * x[j]
        for i in range(3):  # Gauss and Jordan
            pivot = hessian[i][i]
            hessian[i], gradient[i] = [v / pivot for v in hessian[i]], gradient[i] / pivot
            for k in range(3):
                if k != i:
                    factor = hessian[k][i]
                    hessian[k] = [u - factor * v for u, v in zip(hessian[k], hessian[i])]
                    gradient[k] -= factor * gradient[i]
        b = [u + v for u, v in zip(b, gradient)]
    return b


def main():
    arguments = [a for a in sys.argv[1:] if a not in ("--fit", "--table")]
    if not arguments or len(arguments) % 2 or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__)
    sets = [(arguments[i + 1], read(arguments[i], arguments[i + 1])) for i in range(0, len(arguments), 2)]
    if "--table" in sys.argv:
        table([(os.path.basename(os.path.dirname(os.path.abspath(text))), words) for text, (_, words) in zip(arguments[::2], sets)])
        return
    for name, words in sets:
        report(name, [w[1] for w in words], [w[2] for w in words])
    if len(arguments) == len(sys.argv) - 1:
        return
    fold = {}
    for _, words in sets:
        speakers = sorted({w[0] for w in words})
        for i, speaker in enumerate(speakers):
            fold[speaker] = (id(words), i if len(speakers) <= 10 else i % 10)
    everything = [w for _, words in sets for w in words]
    fits = {f: fit([w for w in everything if fold[w[0]] != f]) for f in set(fold.values())}
    for name, words in sets:
        p = [sigmoid(sum(u * v for u, v in zip(fits[fold[w[0]]], measures(w[2], w[3])))) for w in words]
        report(name + ", fitted to the other speakers", [w[1] for w in words], p)
    print("sure = {%.4g, %.4g, %.4g}" % tuple(fit(everything)))


main()
