#!/usr/bin/env python3
"""diarize.py - diarisation error of `linnet transcribe --diarize`, or with --live of `linnet listen --diarize`, on dialogues
joined from utterances of single speakers.

    bench/diarize.py --corpus DIR [--sets dev_native,dev_nonnative] [--count 20] [--work exp/diarize] [--check MD_EVAL]
                     [--linnet build/release/linnet] [--live] [-- MORE OPTIONS OF TRANSCRIBE OR LISTEN]

Each set gives --count dialogues of two minutes, by a seed: 2 to 8 of its voices, who speak in turns of 1 to 20 s with pauses of
0.2 to 1.5 s; in a second series a tenth of the speech overlaps. The reference is the known text, aligned (`linnet align`): words
with less than 0.3 s between them are one segment (NIST's rule). Errors are counted as NIST's md-eval does: missed speech, false
alarms and speech of another speaker under the mapping of speakers that overlaps most, in parts of the speech, with a collar of
0.25 s around the ends of segments and without. --check: a path of md-eval.pl (Debian: sctk), whose rates must be the same within 0.1 %.
Needs NumPy, SciPy, soundfile.
"""
import argparse
import collections
import itertools
import json
import math
import pathlib
import random
import re
import subprocess

import numpy
import scipy.optimize
import soundfile

RATE = 16000
SECONDS = 120


# ---- dialogues ---------------------------------------------------------------------------------------------------------------

def read_words(linnet, folder, work):
    """{utterance: [(start, end)]} of the words of the known text."""
    table = work / f"{folder.name}.ctm"
    if not table.exists():
        subprocess.run([linnet, "align", "-q", "--data", folder, "--format", "ctm", "--unit", "words", "-o", table], check=False)
    words = collections.defaultdict(list)
    for line in open(table, encoding="utf-8"):
        if not line.startswith(";;"):
            key, _, start, length = line.split()[:4]
            words[key].append((float(start), float(start) + float(length)))
    return words


def read_set(linnet, folder, work):
    """{speaker: [(path, words)]}"""
    words = read_words(linnet, folder, work)
    paths = dict(line.split(maxsplit=1) for line in open(folder / "wav.scp", encoding="utf-8"))
    voices = collections.defaultdict(list)
    for key, speaker in (line.split() for line in open(folder / "utt2spk", encoding="utf-8")):
        if key in words:
            voices[speaker].append((folder.parent / paths[key].strip(), words[key]))
    return voices


def make_turn(utterances, at, seconds):
    """Sound and words of `seconds` or a little more, from utterance number `at` on; the next number."""
    sound, said, length = [], [], 0.0
    while length < seconds:
        path, words = utterances[at % len(utterances)]
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        assert rate == RATE
        at += 1
        last = next((i for i, (_, end) in enumerate(words) if length + end - words[0][0] >= seconds), len(words) - 1)
        first_s = max(0, words[0][0] - 0.05)
        next_s = words[last + 1][0] if last + 1 < len(words) else math.inf
        last_s = (words[last][1] + min(next_s, words[last][1] + 0.1)) / 2
        piece = samples[int(first_s * RATE):int(last_s * RATE), 0]
        said += [(length + start - first_s, length + end - first_s) for start, end in words[:last + 1]]
        sound.append(piece)
        length += len(piece) / RATE
    return numpy.concatenate(sound), said, at


def make_dialogue(voices, seed, overlaps):
    """Samples, and [(start, end, speaker)] of the words."""
    draw = random.Random(seed)
    who = draw.sample(sorted(voices), draw.randint(2, min(8, len(voices))))
    places = {speaker: draw.randrange(len(voices[speaker])) for speaker in who}
    out, words, end, last, spoken = numpy.zeros(0, numpy.float32), [], 0.0, None, 0.0
    while end < SECONDS:
        speaker = draw.choice([name for name in who if name != last])
        sound, said, places[speaker] = make_turn(voices[speaker], places[speaker], math.exp(draw.uniform(0, math.log(20))))
        length = len(sound) / RATE
        pause = draw.uniform(0.2, 1.5)
        if overlaps and last and draw.random() < 0.6:
            pause = -min(0.3 * min(length, spoken), 3)
        start, last, spoken = max(0, end + pause), speaker, length
        from_sample = int(start * RATE)
        out = numpy.pad(out, (0, max(0, from_sample + len(sound) - len(out))))
        out[from_sample:from_sample + len(sound)] += sound
        words += [(start + a, start + b, speaker) for a, b in said]
        end = max(end, start + length)
    noise = numpy.random.default_rng(seed).normal(0, 1e-4, len(out)).astype(numpy.float32)
    return numpy.clip(out + noise, -1, 1), words


def segments_of(words, pause=0.3):
    segments = []
    for speaker in sorted({w[2] for w in words}):
        own = sorted(w for w in words if w[2] == speaker)
        for start, end, _ in own:
            if segments and segments[-1][2] == speaker and start - segments[-1][1] < pause:
                segments[-1] = (segments[-1][0], max(end, segments[-1][1]), speaker)
            else:
                segments.append((start, end, speaker))
    return segments


def write_rttm(path, name, segments):
    lines = (f"SPEAKER {name} 1 {a:.3f} {b - a:.3f} <NA> <NA> {s} <NA> <NA>\n" for a, b, s in sorted(segments))
    path.write_text("".join(lines), encoding="utf-8")


def read_rttm(path):
    fields = [line.split() for line in open(path, encoding="utf-8") if line.startswith("SPEAKER")]
    return [(float(f[3]), float(f[3]) + float(f[4]), f[7]) for f in fields]


# ---- errors ------------------------------------------------------------------------------------------------------------------

def pieces(ref, hyp, collar):
    """(seconds, speakers of ref, speakers of hyp) between all ends, in ms; without what is in a collar."""
    ends = sorted({round(t * 1000) for s in ref + hyp for t in s[:2]} |
                  {round((t + c) * 1000) for s in ref for t in s[:2] for c in (-collar, collar) if collar})
    closed = [(round((t - collar) * 1000), round((t + collar) * 1000)) for s in ref for t in s[:2]] if collar else []
    first, last = min(round(s[0] * 1000) for s in ref + hyp), max(round(s[1] * 1000) for s in ref + hyp)
    for a, b in itertools.pairwise(ends):
        if a < first or b > last or any(c <= a and b <= d for c, d in closed):
            continue
        sides = ({s[2] for s in side if round(s[0] * 1000) <= a and b <= round(s[1] * 1000)} for side in (ref, hyp))
        yield (b - a) / 1000, *sides


def count_errors(ref, hyp, collar):
    """Seconds: speech, missed, false alarms, of another speaker."""
    names = sorted({s[2] for s in ref}), sorted({s[2] for s in hyp})
    both = numpy.zeros([len(n) for n in names])
    for seconds, r, h in pieces(ref, hyp, 0):
        for x, y in itertools.product(r, h):
            both[names[0].index(x), names[1].index(y)] += seconds
    rows, columns = scipy.optimize.linear_sum_assignment(-both)
    same = {names[0][i]: names[1][j] for i, j in zip(rows, columns) if both[i, j] > 0}
    counts = numpy.zeros(4)
    for seconds, r, h in pieces(ref, hyp, collar):
        right = sum(same.get(x) in h for x in r)
        counts += seconds * numpy.array([len(r), max(len(r) - len(h), 0), max(len(h) - len(r), 0), min(len(r), len(h)) - right])
    return counts


def check(md_eval, folder, rates):
    """The same by md-eval."""
    for side in ("ref", "hyp"):
        (folder / f"all.{side}").write_text("".join(p.read_text(encoding="utf-8") for p in sorted(folder.glob(f"*.{side}.rttm"))))
    for collar, rate in rates.items():
        out = subprocess.run(["perl", md_eval, "-c", str(collar), "-r", folder / "all.ref", "-s", folder / "all.hyp"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
        theirs = float(re.search(r"OVERALL SPEAKER DIARIZATION ERROR = ([\d.]+)", out)[1])
        assert abs(theirs - rate) < 0.1, (collar, theirs, rate)


# ---- all of it ---------------------------------------------------------------------------------------------------------------

def make_all(a, name, overlaps, work):
    """The folder with the dialogues of a set: sound, reference, number of speakers."""
    folder = work / f"{name}{'-overlap' if overlaps else ''}"
    folder.mkdir(parents=True, exist_ok=True)
    voices = None
    for i in range(a.count):
        base = folder / f"d{i:03d}"
        if base.with_suffix(".wav").exists():
            continue
        voices = voices or read_set(a.linnet, a.corpus / name, work)
        samples, words = make_dialogue(voices, 1000 * overlaps + i, overlaps)
        write_rttm(folder / f"d{i:03d}.ref.rttm", base.name, segments_of(words))
        soundfile.write(base.with_suffix(".wav"), samples, RATE)
    return folder


def listen(a, path, option):
    """Segments of a dialogue heard live, by the rule of `linnet transcribe -f rttm`."""
    command = [a.linnet, "listen", "-q", "--json", "--no-paced", "--from", path, option, *a.more]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    finals = [v for v in map(json.loads, lines) if v["type"] == "final"]
    items = [(i["start"], i["end"], i["speaker"]) for v in finals for i in v.get("words", v["phones"])]
    speech = []
    for start, end, speaker in items:
        if speech and speech[-1][2] == speaker and start - speech[-1][1] < 0.5:
            speech[-1] = (speech[-1][0], max(end, speech[-1][1]), speaker)
        else:
            speech.append((start, end, speaker))
    segments, until = [], 0
    for n, (start, end, speaker) in enumerate(speech):
        before, until = until, min(end + 0.1, speech[n + 1][0]) if n + 1 < len(speech) else end + 0.1
        segments.append((max(before, start - 0.03), until, speaker))
    return segments


def run(a, folder, known):
    """Counts with each collar; {wrong number of speakers: dialogues}."""
    counts, wrong = {0: numpy.zeros(4), 0.25: numpy.zeros(4)}, collections.Counter()
    names = [f"d{i:03d}" for i in range(a.count)]
    refs = {n: read_rttm(folder / f"{n}.ref.rttm") for n in names}
    groups = collections.defaultdict(list)
    for n in names:
        groups[len({s[2] for s in refs[n]}) if known else 0].append(n)
    for number, group in groups.items():
        out, option = folder / "out", f"--diarize={number}" if known else "--diarize"
        if a.live:
            for n in group:
                write_rttm(folder / f"{n}.hyp.rttm", n, listen(a, folder / f"{n}.wav", option))
            continue
        command = [a.linnet, "transcribe", "-q", option, *a.more, "-f", "rttm",
                   "--output-dir", out, *(folder / f"{n}.wav" for n in group)]
        subprocess.run(command, check=True)
        for n in group:
            (folder / f"{n}.hyp.rttm").write_text((out / f"{n}.rttm").read_text(encoding="utf-8"), encoding="utf-8")
    for n in names:
        hyp = read_rttm(folder / f"{n}.hyp.rttm")
        wrong[len({s[2] for s in hyp}) - len({s[2] for s in refs[n]})] += 1
        for collar in counts:
            counts[collar] += count_errors(refs[n], hyp, collar)
    if a.check:
        check(a.check, folder, {collar: 100 * c[1:].sum() / c[0] for collar, c in counts.items()})
    return counts, wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--corpus", type=pathlib.Path, required=True)
    p.add_argument("--sets", default="dev_native,dev_nonnative")
    p.add_argument("--count", type=int, default=20)
    p.add_argument("--work", type=pathlib.Path, default=pathlib.Path("exp/diarize"))
    p.add_argument("--linnet", default="build/release/linnet")
    p.add_argument("--check")
    p.add_argument("--live", action="store_true")
    p.add_argument("more", nargs="*")
    a = p.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    print("set | speakers | error % without collar (missed, false, other) | with 0.25 s | speakers too many: dialogues")
    for name, overlaps in itertools.product(a.sets.split(","), (0, 1)):
        folder = make_all(a, name, overlaps, a.work)
        for known in (0, 1):
            counts, wrong = run(a, folder, known)
            rates = [[f"{100 * x / c[0]:.1f}" for x in (c[1:].sum(), *c[1:])] for c in counts.values()]
            print(folder.name, "known" if known else "unknown", *("{} ({}, {}, {})".format(*r) for r in rates),
                  json.dumps(dict(sorted(wrong.items()))), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
