#!/usr/bin/env python3
"""keywords.py - misses against false alarms of `linnet transcribe --keywords`, and of pocketsphinx's keyword search.

    bench/keywords.py --corpus DIR [--sets dev_native,dev_nonnative] [--model default,small] [--quiet FOLDER] [--work exp/keywords]
                      [--peer] [--linnet build/release/linnet]

60 keywords of 4 to 12 phonemes are chosen from the texts of each set by a seed: words and phrases of two or three words that occur
at least twice. A keyword that is found in an utterance whose text has it counts as a hit, as often as the text has it; every other
one is a false alarm. The first table has, for each number of phonemes, the fewest misses of a threshold (one run for each) that
gives at most so many false alarms per keyword and hour of sound; the second has linnet's own thresholds. --quiet: sounds without speech (WAV files), in
which the default thresholds give false alarms. --peer: pocketsphinx (Debian: pocketsphinx, pocketsphinx-en-us) on the same
utterances and keywords, at the thresholds 1e-1 to 1e-20; needs ffmpeg and half an hour.
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
THRESHOLDS = (0.97, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.22, 0.16, 0.11)
GROUPS = ((4, 5), (6, 7), (8, 12))
PEER_THRESHOLDS = ("1e-1", "1e-3", "1e-6", "1e-10", "1e-20")
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
    """[(id, seconds, [keyword])]; least None: the default thresholds."""
    listed = work / "keywords.txt"
    listed.write_text("".join(f"{text.lower()}={least}\n" if least else f"{text.lower()}\n" for text in keywords), encoding="utf-8")
    command = [linnet, "transcribe", "-q", "--format", "json", "--model", model, "--keywords", listed, *arguments]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [(r["id"], r["seconds"], [k["keyword"].upper() for k in r.get("keywords", ())])
            for r in map(json.loads, lines)]


def spot_peer(folder, root, texts, keywords, work, threshold):
    """The same with pocketsphinx."""
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
        found.append((key, 0, [k for k in keywords for _ in range(text.upper().split("  ").count(k))]))
    return found


def count(found, texts, keywords):
    """Phonemes of the keyword of each hit and of each false alarm; how often keywords of so many phonemes were said."""
    hits, alarms, total = [], [], collections.Counter()
    for key, _, spotted in found:
        for text, n in keywords.items():
            said, times = occurrences(texts[key], text) if key in texts else 0, spotted.count(text)
            total[n] += said
            hits += [n] * min(said, times)
            alarms += [n] * (times - min(said, times))
    return hits, alarms, total


def in_group(values, group):
    return sum(group[0] <= n <= group[1] for n in values)


def rates(group, hits, alarms, total, keywords, hours):
    """The part that was missed, and false alarms per keyword and hour."""
    said = sum(times for n, times in total.items() if group[0] <= n <= group[1])
    return 1 - in_group(hits, group) / said if said else math.nan, in_group(alarms, group) / (hours * in_group(keywords.values(), group))


def curve_row(name, group, points):
    """points: rates of all thresholds."""
    best = [min((missed for missed, alarms in points if alarms <= rate), default=math.nan) for rate in RATES]
    return f"| {name} | {group[0]} to {group[1]} | " + " | ".join("-" if math.isnan(b) else f"{100 * b:.1f}" for b in best) + " |"


def own_row(name, group, missed, alarms):
    return f"| {name} | {group[0]} to {group[1]} | {'-' if math.isnan(missed) else f'{100 * missed:.1f}'} | {alarms:.2f} |"


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
    curve = ["| system, set | phonemes | " + " | ".join(f"missed %, {rate} an hour" for rate in RATES) + " |",
             "|" + "---|" * (2 + len(RATES))]
    own = ["| system, set | phonemes | missed % | false alarms per keyword and hour |", "|---|---|---|---|"]
    for name in o.sets.split(","):
        folder = o.corpus / name
        texts = read_texts(folder)
        keywords = choose(texts, dictionary)
        data = ["--data", folder, "--audio-root", o.corpus]

        def measure(title, found, texts):
            hours = sum(seconds for _, seconds, _ in found) / 3600
            counted = count(found, texts, keywords)
            own.extend(own_row(title, group, *rates(group, *counted, keywords, hours)) for group in GROUPS)
            return hours

        for model in o.model.split(","):
            found = [spot(o.linnet, model, data, keywords, o.work, least) for least in THRESHOLDS]
            hours = measure(f"{model}, {name}", spot(o.linnet, model, data, keywords, o.work, None), texts)
            counted = [count(f, texts, keywords) for f in found]
            curve += [curve_row(f"{model}, {name}", group, [rates(group, *c, keywords, hours) for c in counted]) for group in GROUPS]
            if o.quiet:
                measure(f"{model}, no speech", spot(o.linnet, model, sorted(o.quiet.glob("*.wav")), keywords, o.work, None), {})
        if o.peer:
            found = [spot_peer(folder, o.corpus, texts, keywords, o.work, least) for least in PEER_THRESHOLDS]
            counted = [count(f, texts, keywords) for f in found]
            curve += [curve_row(f"pocketsphinx, {name}", group, [rates(group, *c, keywords, hours) for c in counted]) for group in GROUPS]
    print("\n".join(curve), "\n".join(own), sep="\n\n")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    main()
