#!/usr/bin/env python3
"""keywords.py - misses against false alarms of `linnet transcribe --keywords`, and of pocketsphinx's keyword search.

    bench/keywords.py --corpus DIR [--sets dev_native,dev_nonnative] [--model default,small] [--quiet FOLDER] [--work exp/keywords]
                      [--peer] [--linnet build/release/linnet]

60 keywords of 4 to 12 phonemes are chosen from the texts of each set by a seed: words and phrases of two or three words that occur
at least twice. A keyword that is found in an utterance whose text has it counts as a hit, as often as the text has it; every other
one is a false alarm. The table has, for each number of phonemes, the misses where the most certain false alarms are one per
keyword and hour of sound, and misses and false alarms at linnet's own threshold. --quiet: sounds without speech (WAV files), in
which the default thresholds give false alarms. --peer: pocketsphinx (Debian: pocketsphinx, pocketsphinx-en-us) on the same
utterances and keywords, at the thresholds 1e-10 to 1e-50; needs ffmpeg and an hour.
Needs cmudict-en-us.dict (Debian: pocketsphinx-en-us).
"""
import argparse
import collections
import json
import math
import os
import pathlib
import random
import re
import subprocess

DICTIONARY = "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict"
LOWEST = 0.05  # confidence from which keywords are collected for the curve
GROUPS = ((4, 5), (6, 7), (8, 12))
RATES = (0.25, 0.5, 1, 2, 5)


def read_dictionary():
    phones = collections.defaultdict(list)
    for line in open(DICTIONARY, encoding="utf-8"):
        word, *labels = line.split()
        phones[re.sub(r"\(\d+\)$", "", word).upper()].append(len(labels))
    return phones


def read_texts(folder):
    return {key: words for key, *words in (line.split() for line in open(folder / "text", encoding="utf-8"))}


def choose(texts, dictionary, count=60, seed=1):
    """{keyword: phonemes of its first pronunciation}: as many of each length as there are, up to an equal share."""
    seen = collections.Counter()
    for words in texts.values():
        for n in (1, 2, 3):
            seen.update(" ".join(words[i:i + n]) for i in range(len(words) - n + 1))
    lengths = collections.defaultdict(list)
    for text, times in sorted(seen.items()):
        if times >= 2 and all(word in dictionary for word in text.split()):
            lengths[sum(dictionary[word][0] for word in text.split())].append(text)
    chosen, left = {}, list(range(4, 13))
    for i, n in enumerate(left):
        share = math.ceil((count - len(chosen)) / (len(left) - i))
        for text in random.Random(seed + n).sample(lengths[n], min(share, len(lengths[n]))):
            chosen[text] = n
    return chosen


def occurrences(words, keyword):
    parts = keyword.split()
    return sum(words[i:i + len(parts)] == parts for i in range(len(words) - len(parts) + 1))


def spot(linnet, model, arguments, keywords, work, least):
    """[(id, seconds, [(keyword, confidence)])]"""
    listed = work / "keywords.txt"
    listed.write_text("".join(f"{text.lower()}={least}\n" if least else f"{text.lower()}\n" for text in keywords), encoding="utf-8")
    command = [linnet, "transcribe", "-q", "--format", "json", "--model", model, "--keywords", listed, *arguments]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [(r["id"], r["seconds"], [(k["keyword"].upper(), k["confidence"]) for k in r.get("keywords", ())])
            for r in map(json.loads, lines)]


def spot_peer(folder, root, texts, keywords, work, threshold):
    """The same with pocketsphinx, whose hypotheses have no confidences: 1 for all."""
    sounds, listed = work / "wav", work / "peer.txt"
    sounds.mkdir(exist_ok=True)
    listed.write_text("".join(f"{text.lower()} /{threshold}/\n" for text in keywords), encoding="utf-8")
    for line in open(folder / "wav.scp", encoding="utf-8"):
        key, path = line.split()
        if not (sounds / f"{key}.wav").exists():
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", root / path, "-ar", "16000", "-ac", "1", sounds / f"{key}.wav"], check=True)
    (work / "peer.ctl").write_text("".join(f"{key}\n" for key in texts), encoding="utf-8")
    model = "/usr/share/pocketsphinx/model/en-us"
    subprocess.run(["pocketsphinx_batch", "-hmm", f"{model}/en-us", "-dict", DICTIONARY, "-kws", listed, "-adcin", "yes", "-adchdr", "44",
                    "-cepext", ".wav", "-cepdir", sounds, "-ctl", work / "peer.ctl", "-hyp", work / "peer.hyp"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = []
    for line in open(work / "peer.hyp", encoding="utf-8"):
        text, key = re.match(r"(.*?)\s*\((\S+) -?\d+\)$", line).groups()
        found.append((key, 0, [(k, 1.0) for k in keywords for _ in range(text.upper().split("  ").count(k))]))
    return found


def count(found, texts, keywords):
    """Confidences of hits and of false alarms, each with the keyword's phonemes; occurrences for each number of phonemes."""
    hits, alarms, total = [], [], collections.Counter()
    for key, _, spotted in found:
        best = collections.defaultdict(list)
        for text, confidence in spotted:
            best[text].append(confidence)
        for text, n in keywords.items():
            said = occurrences(texts[key], text) if key in texts else 0
            total[n] += said
            for i, confidence in enumerate(sorted(best[text], reverse=True)):
                (hits if i < said else alarms).append((confidence, n))
    return hits, alarms, total


def of_group(values, group):
    return sorted((confidence for confidence, n in values if group[0] <= n <= group[1]), reverse=True)


def row(name, group, hits, alarms, total, keywords, hours):
    """Misses at so many false alarms per keyword and hour."""
    said = sum(times for n, times in total.items() if group[0] <= n <= group[1])
    spoken = hours * sum(group[0] <= n <= group[1] for n in keywords.values())
    h, a = of_group(hits, group), of_group(alarms, group)
    cells = []
    for rate in RATES:
        least = a[int(rate * spoken)] if int(rate * spoken) < len(a) else LOWEST
        cells.append(f"{100 * (1 - sum(c > least for c in h) / said):.1f}" if said else "-")
    return f"| {name} | {group[0]} to {group[1]} | {said} | " + " | ".join(cells) + " |"


def at_threshold(name, group, hits, alarms, total, keywords, hours):
    said = sum(times for n, times in total.items() if group[0] <= n <= group[1])
    spoken = hours * sum(group[0] <= n <= group[1] for n in keywords.values())
    missed = f"{100 * (1 - len(of_group(hits, group)) / said):.1f}" if said else "-"
    return f"| {name} | {group[0]} to {group[1]} | {missed} | {len(of_group(alarms, group)) / spoken:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--sets", default="dev_native,dev_nonnative")
    parser.add_argument("--model", default="default,small")
    parser.add_argument("--quiet", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("exp/keywords"))
    parser.add_argument("--linnet", default="build/release/linnet")
    parser.add_argument("--peer", action="store_true")
    o = parser.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    dictionary = read_dictionary()
    curve = ["| system, set | phonemes | said | " + " | ".join(f"missed %, {rate} an hour" for rate in RATES) + " |",
             "|" + "---|" * (3 + len(RATES))]
    own = ["| system, set | phonemes | missed % | false alarms per keyword and hour |", "|---|---|---|---|"]
    for name in o.sets.split(","):
        folder = o.corpus / name
        texts = read_texts(folder)
        keywords = choose(texts, dictionary)
        data = ["--data", folder, "--audio-root", o.corpus]
        for model in o.model.split(","):
            found = spot(o.linnet, model, data, keywords, o.work, LOWEST)
            hours = sum(seconds for _, seconds, _ in found) / 3600
            counted = count(found, texts, keywords)
            curve += [row(f"{model}, {name}", group, *counted, keywords, hours) for group in GROUPS]
            counted = count(spot(o.linnet, model, data, keywords, o.work, None), texts, keywords)
            own += [at_threshold(f"{model}, {name}", group, *counted, keywords, hours) for group in GROUPS]
            if o.quiet:
                found = spot(o.linnet, model, sorted(o.quiet.glob("*.wav")), keywords, o.work, None)
                hours_quiet = sum(seconds for _, seconds, _ in found) / 3600
                counted = count(found, {}, keywords)
                own += [at_threshold(f"{model}, no speech", group, *counted, keywords, hours_quiet) for group in GROUPS]
        for threshold in ("1e-10", "1e-20", "1e-30", "1e-40", "1e-50") if o.peer else ():
            counted = count(spot_peer(folder, o.corpus, texts, keywords, o.work, threshold), texts, keywords)
            own += [at_threshold(f"pocketsphinx {threshold}, {name}", group, *counted, keywords, hours) for group in GROUPS]
    print("\n".join(curve), "\n".join(own), sep="\n\n")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    main()
