#!/usr/bin/env python3
"""Reads the golden files of the writers with other libraries and compares them with tests/golden/writers/*.tsv.

    python3 -m venv venv && venv/bin/pip install praatio TextGrid praat-parselmouth webvtt-py srt pysrt
    venv/bin/python -P tests/golden/writers.py

linnet writes the files themselves: WRITE_GOLDEN=1 build/release/tests/decoder/test_writers. Run from the root.
"""
import csv
import datetime
import html
import json
import math
import os
import re
import sys
import tempfile

import parselmouth
import pysrt
import srt
import textgrid
import webvtt
from praatio import textgrid as praatio

FOLDER = "tests/golden/writers/"
IPA = dict(zip("AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH".split(),
               "ɑ æ ʌ ɔ aʊ aɪ b tʃ d ð ɛ ɝ eɪ f ɡ h ɪ i dʒ k l m n ŋ oʊ ɔɪ p ɹ s ʃ t θ ʊ u v w j z ʒ".split()))
IDS = {"hostile": (b'a,"b"\n\tc\xff (d)', ' anna "the first" ')}
failures = 0


def check(what, got, want):
    global failures
    if got != want:
        failures += 1
        print(f"{what}:\n  got  {got!r}\n  want {want!r}")


def clean(raw):
    """Decodes UTF-8; each byte that is not UTF-8 becomes U+FFFD."""
    out = ""
    while raw:
        for n in range(min(4, len(raw)), 0, -1):
            try:
                char = raw[:n].decode()
            except UnicodeDecodeError:
                continue
            if len(char) == 1:
                break
        else:
            char, n = "\ufffd", 1
        out, raw = out + char, raw[n:]
    return out


def mean(phones):
    """Goodness of a word or of all: the logarithm of the mean of the probabilities of its phones, without those that have none."""
    measured = [math.exp(p["goodness"]) for p in phones if p["goodness"] is not None]
    return math.log(sum(measured) / len(measured)) if measured else None


class Story:
    def __init__(self, name, shift=0.0):
        self.id, self.speaker = IDS.get(name, (name.encode(), "anna"))
        self.id = clean(self.id)
        self.words, self.phones, self.seconds = [], [], 0.0
        for line in open(FOLDER + name + ".tsv", "rb").read().split(b"\n"):
            field = line.split(b"\t")
            if field[0] == b"utterance":
                self.seconds = float(field[1]) + shift
            elif field[0] in (b"word", b"phone"):
                token = dict(text=clean(field[1]), start=int(field[2]) / 100 + shift, end=int(field[3]) / 100 + shift,
                             confidence=float(field[4]))
                if field[0] == b"word":
                    token["first"], token["phones"] = len(self.phones), []
                    self.words.append(token)
                else:
                    token["goodness"] = None if field[5] == b"-" else float(field[5])
                    self.phones.append(token)
                    self.words[-1]["phones"].append(token["text"])
        for w in self.words:
            w["goodness"] = mean(self.phones[w["first"]:w["first"] + len(w["phones"])])
        self.goodness = mean(self.phones)

    def spelled(self, words=True, ipa=False):
        """(text, start, end, confidence, goodness) of each token."""
        out = []
        for t in self.words if words else self.phones:
            text = t["text"]
            if not words and ipa:
                text = IPA[text]
            elif words and not text:
                text = "[" + ("".join(IPA[p] for p in t["phones"]) if ipa else "_".join(p.lower() for p in t["phones"])) + "]"
            out.append((text, round(t["start"], 3), round(t["end"], 3), t["confidence"], t.get("goodness")))
        return out


def read(name):
    return open(FOLDER + name, encoding="utf-8", newline="").read()


def check_cues(name, cues, tokens, seconds):
    """cues: (start, end, lines) in ms. Checks the usual rules for subtitles, and that every token appears once, in order,
        while it is spoken."""
    at = 0
    text = "".join(re.sub(r"\s", "", "".join(lines)) for _, _, lines in cues)
    check(name + " text", text, "".join(re.sub(r"\s", "", t[0]) for t in tokens))
    for i, (start, end, lines) in enumerate(cues):
        check(f"{name} cue {i} lines", (1 <= len(lines) <= 2, max(map(len, lines)) <= 42), (True, True))
        check(f"{name} cue {i} lasts", 0 < end - start <= 7000, True)
        n = len(re.sub(r"\s", "", "".join(lines)))
        begin = at
        while at < len(tokens) and n > 0:
            n -= len(re.sub(r"\s", "", tokens[at][0]))
            at += 1
        if n < 0 or not begin < at:
            continue  # parts of a token longer than a line
        said = tokens[begin:at]
        check(f"{name} cue {i} start", start, round(said[0][1] * 1000))
        check(f"{name} cue {i} covers", end >= min(round(said[-1][2] * 1000), start + 7000), True)
        free = cues[i + 1][0] if i + 1 < len(cues) else max(seconds * 1000, said[-1][2] * 1000)
        check(f"{name} cue {i} no overlap", end <= free, True)
        check(f"{name} cue {i} is long enough", end - start >= 1000 or end >= free, True)
        for a, b in zip(said, said[1:]):
            check(f"{name} cue {i} pause", b[1] - a[2] < 0.4999, True)
    check(name + " all tokens", at, len(tokens))


def ms(delta):
    return round(delta / datetime.timedelta(milliseconds=1))


def check_srt(name, tokens, seconds):
    subs = list(srt.parse(read(name)))
    check(name + " numbers", [s.index for s in subs], list(range(1, len(subs) + 1)))
    check_cues(name, [(ms(s.start), ms(s.end), s.content.split("\n")) for s in subs], tokens, seconds)
    check(name + " composed again", srt.compose(subs, reindex=False), read(name))
    other = pysrt.open(FOLDER + name, encoding="utf-8", error_handling=pysrt.ERROR_RAISE)
    check(name + " by pysrt", [(s.start.ordinal, s.end.ordinal, s.text) for s in other],
          [(ms(s.start), ms(s.end), s.content) for s in subs])


def check_vtt(name, tokens, seconds, times=False):
    def parse(stamp):
        h, m, s = stamp.split(":")
        return round((int(h) * 60 + int(m)) * 60000 + float(s) * 1000)

    check(name + " header", read(name).startswith("WEBVTT\n\n"), True)
    subs, cues = webvtt.read(FOLDER + name).captions, []
    stamp = r"<(\d\d:\d\d:\d\d\.\d\d\d)>"
    starts = {round(t[1] * 1000) for t in tokens}
    for s in subs:
        lines = s.raw_text.split("\n")
        cues.append((parse(s.start), parse(s.end), [html.unescape(re.sub(stamp, "", line)) for line in lines]))
        check(name + " escaped", re.search(r"[<>]|&(?!amp;|lt;|gt;)", re.sub(stamp, "", s.raw_text)), None)
        inside = [parse(t) for t in re.findall(stamp, s.raw_text)]
        check(name + " times inside", inside, sorted(t for t in starts if times and cues[-1][0] < t < cues[-1][1]))
    check_cues(name, cues, tokens, seconds)


def intervals(tokens, seconds):
    out, at = [], 0.0
    for text, start, end, _, _ in tokens:
        if start > at:
            out.append((at, start, ""))
        out.append((start, end, text))
        at = end
    if at < seconds:
        out.append((at, seconds, ""))
    return out


def check_textgrid(name, seconds, tiers):
    path = FOLDER + name
    want = [(tier, intervals(tokens, seconds)) for tier, tokens in tiers]
    grid = textgrid.TextGrid.fromFile(path)
    check(name + " by textgrid", [(t.name, [(i.minTime, i.maxTime, i.mark) for i in t]) for t in grid], want)
    check(name + " length", (grid.minTime, grid.maxTime), (0, seconds))
    grid = praatio.openTextgrid(path, includeEmptyIntervals=True)
    check(name + " by praatio", [(t.name, [(i.start, i.end, i.label) for i in t.entries]) for t in grid.tiers], want)
    grid = parselmouth.read(path)  # Praat itself
    call = parselmouth.praat.call
    got = []
    for tier in range(1, call(grid, "Get number of tiers") + 1):
        n = call(grid, "Get number of intervals", tier)
        got.append((call(grid, "Get tier name", tier),
                    [(round(call(grid, "Get start time of interval", tier, i), 6), round(call(grid, "Get end time of interval", tier, i), 6),
                      call(grid, "Get label of interval", tier, i)) for i in range(1, n + 1)]))
    check(name + " by Praat", got, want)
    with tempfile.TemporaryDirectory() as folder:
        again = os.path.join(folder, "again.TextGrid")
        call(grid, "Save as text file", again)
        saved = open(again, "rb").read()
    saved = saved.decode("utf-16" if saved[:1] in b"\xfe\xff" else "utf-8")
    same = lambda text: re.sub(r"(\d+\.\d*?)0*(?= \n)", lambda m: m.group(1).rstrip("."), text)  # without trailing zeros
    check(name + " as Praat saves it", same(read(name)), same(saved))


def check_csv(name, rows):
    text = read(name)
    got = list(csv.DictReader(text.splitlines(keepends=True), strict=True))
    want = [dict(id=s.id, channel="2", speaker=s.speaker, kind=kind, text=t[0], start=f"{t[1]:.3f}", end=f"{t[2]:.3f}",
                 confidence="" if t[3] is None else f"{t[3]:.4f}", goodness="" if t[4] is None else f"{t[4]:.4f}") for s, kind, t in rows]
    check(name, got, want)
    check(name + " lines", re.sub('"[^"]*"', "", text).count("\n"), re.sub('"[^"]*"', "", text).count("\r\n"))


def both(story, ipa=False):
    words, phones, out = story.spelled(True, ipa), story.spelled(False, ipa), []
    out.append((story, "utterance", (" ".join(t[0] for t in words), words[0][1], words[-1][2], None, story.goodness)))
    for w, t in zip(story.words, words):
        out.append((story, "word", t))
        out += [(story, "phone", p) for p in phones[w["first"]:w["first"] + len(w["phones"])]]
    return out


def check_json(name, stories):
    lines = read(name).split("\n")
    check(name + " lines", (len(lines), lines[-1]), (len(stories) + 1, ""))
    for s, line in zip(stories, lines):
        got = json.loads(line)
        phones = []
        for p in s.phones:
            phones.append(dict(phone=p["text"], start=round(p["start"], 3), end=round(p["end"], 3), confidence=p["confidence"]))
            if p["goodness"] is not None:
                phones[-1]["goodness"] = p["goodness"]
        goodness = lambda value: {} if value is None else {"goodness": round(value, 4)}
        words = [dict(word=w["text"], known=w["text"] != "", start=round(w["start"], 3), end=round(w["end"], 3),
                      confidence=w["confidence"], first_phone=w["first"], phones=w["phones"], **goodness(w["goodness"])) for w in s.words]
        parts = segments(s)
        for part, mine in zip(got["segments"], parts):  # a rounded mean of numbers that are rounded
            if abs(part["confidence"] - mine["confidence"]) < 1e-4:
                mine["confidence"] = part["confidence"]
        check(name, got, dict(id=s.id, channel=2, speaker=s.speaker, seconds=round(s.seconds, 3), phones=phones, **goodness(s.goodness),
                              text=" ".join(t[0] for t in s.spelled()), words=words, segments=parts))


def segments(s):
    """What stands between pauses of 0.8 s, and of at most 30 s."""
    spelled, parts = s.spelled(), []
    for i, w in enumerate(s.words):
        if not parts or w["start"] - s.words[i - 1]["end"] >= 0.8 or w["end"] - s.words[parts[-1][0]]["start"] > 30:
            parts.append([])
        parts[-1].append(i)
    return [dict(start=round(s.words[p[0]]["start"], 3), end=round(s.words[p[-1]]["end"], 3),
                 confidence=sum(s.words[i]["confidence"] for i in p) / len(p), text=" ".join(spelled[i][0] for i in p)) for p in parts]


def check_lines(name, lines):
    check(name, read(name), "".join(line + "\n" for line in lines))


def labels(tokens):
    return [f"{t[1]:.3f}\t{t[2]:.3f}\t{t[0]}" for t in tokens]


story, hostile, nothing = Story("story"), Story("hostile"), Story("nothing")
for s, name in ((story, "story"), (hostile, "hostile"), (nothing, "nothing")):
    tokens = s.spelled()
    check_json(name + ".jsonl", [s])
    check_srt(name + ".srt", tokens, s.seconds)
    check_vtt(name + ".vtt", tokens, s.seconds, times=name == "hostile")
    if name != "story":
        check_textgrid(name + ".TextGrid", s.seconds, [("words", tokens), ("phones", s.spelled(False))])
    check_lines(name + ".labels.txt", labels(tokens))
    check_csv(name + ".csv", both(s) if name == "hostile" else [(s, "word", t) for t in tokens])
    if name != "hostile":
        check_lines(name + ".txt", [" ".join([s.id] + [t[0] for t in tokens])])
        check_lines(name + ".trn", [" ".join([t[0] for t in tokens] + [f"({s.id})"])])
        check_lines(name + ".ctm", [f"{s.id} 2 {t[1]:.3f} {t[2] - t[1]:.3f} {t[0]} {t[3]:.4f}" for t in tokens] or
                    [";; nothing has no words"])
ipa = story.spelled(False, True)
check_vtt("times.vtt", story.spelled(True, True), story.seconds, times=True)
check_textgrid("words.TextGrid", hostile.seconds, [("words", hostile.spelled())])
check_lines("phones.txt", [" ".join(t[0] for t in ipa)])
check_srt("phones.srt", ipa, story.seconds)
check_textgrid("phones.TextGrid", hostile.seconds, [("phones", hostile.spelled(False, True))])
check_csv("phones.csv", [(hostile, "phone", t) for t in hostile.spelled(False, True)])
later = Story("story", 30.0)
check_json("many.jsonl", [nothing, hostile, nothing, later])
check_csv("many.csv", [(s, "word", t) for s in (hostile, later) for t in s.spelled()])
check_srt("many.srt", hostile.spelled() + later.spelled(), later.seconds)
check_vtt("many.vtt", hostile.spelled() + later.spelled(), later.seconds)
print(f"{failures} differences" if failures else "all golden files read back as written")
sys.exit(failures != 0)
