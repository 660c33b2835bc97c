#!/usr/bin/env python3
"""Word error rates of a set by speaking rate.

    bench/speaking_rate.py [--parts N] PHONES.jsonl REF.trn HYP.trn...

PHONES.jsonl comes from `linnet transcribe -f json`, REF.trn and HYP.trn have words. The rate of an utterance is the number of its
phonemes per second from the first to the last one; of a pause of more than 0.25 s only 0.1 s count. For each part of the
utterances, in the order of their rates: the rates, the number of words, and the WER in % of each HYP.trn. Words are compared as
they are, without a map (linnet score --glm). Utterances of fewer than three phonemes are left out.
"""
import argparse
import json
import re

PAUSE_S, COUNTED_S = 0.25, 0.1


def transcripts(path):
    lines = (re.match(r"(.*)\((\S+)\)\s*$", line) for line in open(path, encoding="utf-8"))
    return {m[2]: m[1].split() for m in lines if m}


def rate(phones):
    gaps = (b["start"] - a["end"] for a, b in zip(phones, phones[1:]))
    pauses = sum(gap - COUNTED_S for gap in gaps if gap > PAUSE_S)
    return len(phones) / (phones[-1]["end"] - phones[0]["start"] - pauses)


def errors(ref, hyp):
    """The Levenshtein distance."""
    row = list(range(len(hyp) + 1))
    for i, word in enumerate(ref, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(hyp, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("phones")
    parser.add_argument("ref")
    parser.add_argument("hyp", nargs="+")
    a = parser.parse_args()
    ref, hyps = transcripts(a.ref), [transcripts(path) for path in a.hyp]
    utterances = [json.loads(line) for line in open(a.phones, encoding="utf-8")]
    rated = sorted((rate(u["phones"]), u["id"]) for u in utterances if u["id"] in ref and len(u["phones"]) >= 3)
    print("phonemes/s", "words", *a.hyp, sep="\t")
    for k in range(a.parts):
        part = rated[k * len(rated) // a.parts:(k + 1) * len(rated) // a.parts]
        words = sum(len(ref[i]) for _, i in part)
        if not words:
            continue
        wers = (100 * sum(errors(ref[i], hyp.get(i, [])) for _, i in part) / words for hyp in hyps)
        print(f"{part[0][0]:.1f}-{part[-1][0]:.1f}", words, *(f"{wer:.1f}" for wer in wers), sep="\t")


if __name__ == "__main__":
    main()
