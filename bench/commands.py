#!/usr/bin/env python3
"""commands.py - sentence errors, rejection and time of `linnet transcribe --grammar`.

    bench/commands.py --corpus DIR [--sets dev_nonnative,dev_native] [--phrases 500] [--voices slt,rms,awb]
                      [--work exp/commands] [--linnet build/release/linnet]

Phrases of 2 to 6 words are cut from the sets at pauses of at least 0.15 s (linnet align finds them); the grammar has exactly these
phrases. Errors are those of sentences: with the grammar, with the same phrases as --context, and with neither. For rejection, one
half of the phrases is recognised with a grammar of the other half. --voices: the phrases of tests/golden/household.txt, said by
these voices of flite (Debian: flite). The last table has the CPU time for grammars of 10 and 10,000 phrases, taken from the texts
of the training sets. Needs ffmpeg.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import random
import re
import resource
import subprocess
import wave

PAUSE_S, PAD_S = 0.15, 0.1


def read_texts(folder):
    return {key: words for key, *words in (line.lower().split() for line in open(folder / "text", encoding="utf-8"))}


def runs_of(words):
    """[[(start, end, word)]] between pauses; words are (start, length, word)."""
    runs = [[]]
    for start, length, word in words:
        if runs[-1] and start - runs[-1][-1][1] >= PAUSE_S:
            runs.append([])
        runs[-1].append((start, start + length, word))
    return runs


def cut(linnet, corpus, name, work):
    """[(phrase, WAV file)] of one set, each phrase once."""
    folder = corpus / name
    command = [linnet, "align", "-q", "--data", folder, "--audio-root", corpus, "--format", "ctm", "--unit", "words"]
    aligned = collections.defaultdict(list)
    for line in subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.splitlines():
        if not line.startswith(";;"):
            key, _, start, length, word, *_ = line.split()
            aligned[key].append((float(start), float(length), word.lower()))
    paths = dict(line.split() for line in open(folder / "wav.scp", encoding="utf-8"))
    found, seen = [], set()
    for key, words in sorted(aligned.items()):
        whole = work / "whole.wav"
        runs, sound = runs_of(words), None
        for i, run in enumerate(runs):
            phrase = " ".join(word for _, _, word in run)
            if not 2 <= len(run) <= 6 or phrase in seen:
                continue
            if sound is None:
                subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", corpus / paths[key], "-ar", "16000", "-ac", "1", whole], check=True)
                with wave.open(str(whole)) as f:
                    sound = f.readframes(f.getnframes())
            before = runs[i - 1][-1][1] if i else 0.0
            after = runs[i + 1][0][0] if i + 1 < len(runs) else len(sound) / 32000
            start, end = max(run[0][0] - PAD_S, (before + run[0][0]) / 2), min(run[-1][1] + PAD_S, (after + run[-1][1]) / 2)
            path = work / f"{name}-{len(found):04d}.wav"
            with wave.open(str(path), "wb") as f:
                f.setparams((1, 2, 16000, 0, "NONE", ""))
                f.writeframes(sound[2 * int(16000 * start):2 * int(16000 * end)])
            seen.add(phrase)
            found.append((phrase, path))
    return found


def speak(phrases, voices, work):
    found = []
    for voice in voices:
        for i, phrase in enumerate(phrases):
            path = work / f"{voice}-{i:03d}.wav"
            if not path.exists():
                subprocess.run(["flite", "-voice", voice, "-t", phrase, "-o", path], check=True)
            found.append((phrase, path))
    return found


def recognise(linnet, sounds, *options):
    """[(text, confidence)]; the CPU time in s for each second of sound."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [linnet, "transcribe", "-q", "--format", "json", *options, *(path for _, path in sounds)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    results = list(map(json.loads, lines))
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = [(r["text"], min((w["confidence"] for w in r["words"]), default=0.0)) for r in results]
    return found, spent / sum(r["seconds"] for r in results)


def write_list(path, phrases):
    path.write_text("".join(f"{phrase}\n" for phrase in phrases), encoding="utf-8")
    return path


def percent(part):
    return f"{100 * part:.1f}"


def errors(sounds, found):
    return sum(text != phrase for (phrase, _), (text, _) in zip(sounds, found)) / len(sounds)


def measure(o, name, sounds, rows, rejection):
    phrases = sorted({phrase for phrase, _ in sounds})
    listed = write_list(o.work / f"{name}.txt", phrases)
    own, _ = recognise(o.linnet, sounds, "--grammar", listed)
    likely, _ = recognise(o.linnet, sounds, "--words", "--context", listed)
    free, _ = recognise(o.linnet, sounds, "--words")
    rows.append(f"| {name} | {len(sounds)} | {percent(errors(sounds, own))} | {percent(errors(sounds, likely))} | "
                f"{percent(errors(sounds, free))} |")
    halves = [set(phrases[0::2]), set(phrases[1::2])]
    inside, outside = [], []
    for i, half in enumerate(halves):
        grammar = write_list(o.work / f"{name}-{i}.txt", sorted(half))
        found, _ = recognise(o.linnet, sounds, "--grammar", grammar, "--min-confidence", "0")
        for (phrase, _), (text, confidence) in zip(sounds, found):
            if phrase not in half:
                outside.append(confidence if text else 0.0)
            elif text == phrase:
                inside.append(confidence)
    inside.sort()
    for threshold in [inside[math.floor(0.05 * len(inside))], *o.thresholds]:
        rejection.append(f"| {name} | {threshold:.2f} | {percent(sum(c < threshold for c in inside) / len(inside))} | "
                         f"{percent(sum(c >= threshold for c in outside) / len(outside))} |")


def times(o, sounds):
    texts = [words for name in ("train_native", "train_read", "train_stories") for words in read_texts(o.corpus / name).values()]
    draw = random.Random(1)
    pieces = set()
    while len(pieces) < 10000:
        words = draw.choice(texts)
        n = draw.randint(2, 6)
        at = draw.randrange(max(1, len(words) - n + 1))
        if len(words) >= n:
            pieces.add(" ".join(words[at:at + n]))
    rows = []
    for n in (10, 10000):
        grammar = write_list(o.work / f"many-{n}.txt", draw.sample(sorted(pieces), n))
        _, all_of_it = recognise(o.linnet, sounds, "--grammar", grammar, "--jobs", "1")
        _, opening = recognise(o.linnet, sounds[:1], "--grammar", grammar, "--jobs", "1")
        seconds = wave_seconds(sounds[0][1])
        rows.append(f"| {n:,} | {1000 * all_of_it:.1f} | {opening * seconds:.2f} |")
    return rows


def wave_seconds(path):
    with wave.open(str(path)) as f:
        return f.getnframes() / f.getframerate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--sets", default="dev_nonnative,dev_native")
    parser.add_argument("--phrases", type=int, default=500)
    parser.add_argument("--voices", default="slt,rms,awb")
    parser.add_argument("--thresholds", type=lambda text: [float(x) for x in text.split(",")], default=[0.1, 0.25, 0.4])
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("exp/commands"))
    parser.add_argument("--linnet", default="build/release/linnet")
    o = parser.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    rows = ["| phrases | sounds | errors with the grammar, % | with `--context`, % | with neither, % |", "|---|---|---|---|---|"]
    rejection = ["| phrases | `--min-confidence` | false rejections, % | false acceptances, % |", "|---|---|---|---|"]
    sets, left = o.sets.split(","), o.phrases
    for i, name in enumerate(sets):
        sounds = cut(o.linnet, o.corpus, name, o.work)
        share = min(len(sounds), left // (len(sets) - i))
        left -= share
        sounds = random.Random(1).sample(sounds, share)
        measure(o, name, sounds, rows, rejection)
    if o.voices:
        household = [line for line in open("tests/golden/household.txt", encoding="utf-8").read().splitlines() if line[0] != "#"]
        measure(o, "household", speak(household, o.voices.split(","), o.work), rows, rejection)
    time_rows = ["| phrases | ms of processor time per second of sound | s to read the grammar |", "|---|---|---|", *times(o, sounds)]
    print("\n".join(rows), "\n".join(rejection), "\n".join(time_rows), sep="\n\n")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    main()
