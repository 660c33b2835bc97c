#!/usr/bin/env python3
"""Modern English under free licences as text for lm.sh, without what held-out speech says.

usage: modern.py [--leave-out TEXT]... [--marks [--hold-out PART]...] [--jobs N] -o OUT FOLDER...

FOLDER  a git folder or a work tree of transcripts, articles (*.md, *.txt) or dialogues (*.json, each "utterance" of them)
--leave-out  a Kaldi text ("ID WORDS") of a dev or test set: a sentence of five words or more that is one of its lines, or that has
             seven words in a row in common with one, is left out
OUT     one sentence a line, as books.py writes it. README.md beside this script has the rules.
--marks  OUT is text for readable.sh instead: paragraphs with their marks and capitals, an empty line between two
--hold-out  with --marks: texts with this in their path go to OUT.held-out, and what their speakers say elsewhere is left out
A sentence (with --marks, a paragraph) of seven words or more is written once. How many are left out, and how many words each folder
gives, goes to stderr.
"""
import argparse
import collections
import html
import json
import multiprocessing
import re
import sys

import books

SHORTEST = 5  # of sentences that are left out whole

ORDINALS = dict(one="first", two="second", three="third", five="fifth", eight="eighth", nine="ninth", twelve="twelfth")
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
CURRENCIES = {"$": "dollars", "\u00a3": "pounds", "\u20ac": "euros"}

held_out_parts, held_out_speakers = [], frozenset()
held_out = frozenset()  # whole sentences, and sequences of books.RUN words


def ordinal(n):
    head, _, last = books.number(n).rpartition(" ")
    return f"{head} {ORDINALS.get(last) or re.sub('y$', 'ie', last) + 'th'}".strip()


def decade(m):
    tens = {"0": "hundreds", "1": "tens"}.get(m[2]) or re.sub("y$", "ies", books.TENS[int(m[2]) - 2])
    return f"{books.number(int(m[1]))} {tens}" if m[1] else tens


def clock(m):
    minutes = int(m[2])
    return books.number(int(m[1])) + (" oh" if 0 < minutes < 10 else "") + (" " + books.number(minutes) if minutes else "")


# What a reader says for digits and signs; books.py reads the numbers that are left.
DIGITS = [(re.compile(pattern), spoken) for pattern, spoken in (
    (r"(\d) ?([ap])\.?m\b\.?", r"\1 \2 m"),
    (r"\b(\d{1,2}) (" + MONTHS + r")\b", lambda m: f"{ordinal(int(m[1]))} of {m[2]}"),
    (r"\b(" + MONTHS + r") (\d{1,2})\b(?![:.]\d)", lambda m: f"{m[1]} {ordinal(int(m[2]))}"),
    (r"\b(\d{1,3})(?:st|nd|rd|th)\b", lambda m: ordinal(int(m[1]))),
    (r"\b(1[1-9])?'?([2-9])0s\b", decade),
    (r"\b(1[1-9])(0)0s\b", decade),
    (r"\b(\d{1,2}):(\d\d)\b(?!:)", clock),
    (r"([$\u00a3\u20ac])(\d[\d,]*(?:\.\d+)?)((?: |-)(?:thousand|million|billion|trillion))?",
     lambda m: f"{m[2]}{m[3] or ''} {CURRENCIES[m[1]]}"),
    (r"(\d) ?%", r"\1 percent"), (r"(\d) ?km\b", r"\1 kilometers"),
    (r"(?<=\d),(?=\d{3})", ""),
    (r"(\d)\.(\d{1,3})\b(?!\.)", lambda m: f"{m[1]} point {' '.join(books.ONES[int(d)] for d in m[2])}"),
    (r"(\d)\s?[-\u2013]\s?(?=\d)", r"\1 to "),
    (r"\b20([1-9]\d)\b", lambda m: f"twenty {books.number(int(m[1]))}"),
    (r"\bNo\. ?(?=\d)", "number "))]
SHORT = {"e.g.": "for example", "i.e.": "that is", "vs.": "versus", "a.m.": "a m", "p.m.": "p m", "Prof.": "professor",
         "Sen.": "senator", "Gov.": "governor", "Lt.": "lieutenant", "Sgt.": "sergeant", "Jr.": "junior", "Sr.": "senior",
         "Inc.": "inc", "Co.": "co", "Corp.": "corp", "Ltd.": "limited", "US ": "U S ", "OK": "okay",
         "World War II": "World War Two", "World War I": "World War One"}
SHORTENED = re.compile(r"\b(?:" + "|".join(map(re.escape, SHORT)) + ")")
LETTER = re.compile(r"\b([A-Z])\.(?=[A-Z]\b)")
ENTRY = re.compile(r"\[\d+\]\s|[|+^-]|\*(?!\*)|Category:")  # begins a note, a part of a table, the end of an article
SPEAKER = re.compile(r"^\**[A-Z][^*\n]{0,60}:\*\*|^(?:[A-Z][A-Z'.-]+ ?){1,5}: |^Q:? +", re.M)
ASIDE = re.compile(r"\\?\[[^\]\n]{0,60}\\?\](?!\()|\((?:[Aa]pplause|[Ll]aughter|[Cc]heers)[^)]*\)")
DIGIT = re.compile(r"\d")
WHOLE = re.compile(r"[.!?][\"')\]\u201d\u2019\s]*$")


def speaker(paragraph):
    """Who begins to speak here, or None."""
    found = SPEAKER.match(paragraph)
    return found and found[0].strip("*: ").lower()


def plain(text, without=frozenset()):
    """The paragraphs that are sentences, without notes and names of speakers, numbers as they are spoken; without some speakers."""
    kept, who = [], None
    for paragraph in re.split(r"\n\s*\n", html.unescape(text)):
        paragraph = paragraph.strip()
        who = speaker(paragraph) or who
        if ENTRY.match(paragraph) or who in without:
            continue
        paragraph = ASIDE.sub(" ", SPEAKER.sub("", paragraph))
        paragraph = re.sub(r"\([^a-zA-Z0-9()]*\)", " ", paragraph.replace("*", ""))
        if not WHOLE.search(paragraph):
            continue
        if DIGIT.search(paragraph):
            for pattern, spoken in DIGITS:
                paragraph = pattern.sub(spoken, paragraph)
        kept.append(LETTER.sub(r"\1 ", SHORTENED.sub(lambda m: SHORT[m[0]], paragraph)))
    return "\n\n".join(kept)


def turns_of(name, text):
    """The text; of dialogues, a paragraph for each turn."""
    if not name.endswith(".json"):
        return text
    turns = re.findall(r'"utterance": ("(?:[^"\\]|\\.)*")', text)
    return "\n\n".join(turn if turn[-1:] in ".!?" else turn + "." for turn in map(json.loads, turns))


def is_said(words):
    return any(" ".join(words[i:i + books.RUN]) in held_out for i in range(len(words) - books.RUN + 1))


def paragraphs(item):
    """(whether it is held out, paragraphs with marks, how many were left out)"""
    name, text = item
    part = any(part in name for part in held_out_parts)
    kept, held = [], 0
    for paragraph in plain(turns_of(name, text), frozenset() if part else held_out_speakers).split("\n\n"):
        paragraph = re.sub(r"(?:\.\.+|\u2026)\s*(?=[A-Z]|$)", ". ", re.sub(r"\s+", " ", paragraph).strip())
        paragraph = re.sub(r"(?:\.\.+|\u2026)\s*(?=[a-z])", ", ", paragraph)
        paragraph = re.sub(r"\d+", lambda m: f" {books.number(int(m[0]))} " if len(m[0]) < 7 else m[0], paragraph)
        if is_said(re.findall(r"[a-z']+", paragraph.lower())):
            held += 1
        else:
            kept.append(paragraph)
    words = " ".join(kept).lower().split()
    return part, kept if sum(w in books.FREQUENT for w in words) >= books.ENGLISH * len(words) else [], held


def write_paragraphs(o, pool):
    seen = set()
    with open(o.output, "w") as out, open(o.output + ".held-out", "w") as other:
        for folder in o.folders:
            count, left_out = collections.Counter(), 0
            for part, kept, held in pool.imap(paragraphs, books.books(folder, (".txt", ".md", ".json")), 16):
                left_out += held
                for paragraph in kept:
                    if paragraph.count(" ") >= books.RUN - 1:
                        if hash(paragraph) in seen:
                            continue
                        seen.add(hash(paragraph))
                    (other if part else out).write(paragraph + "\n\n")
                    count[part] += paragraph.count(" ") + 1
            print(f"{folder}: {count[False]} words, {count[True]} held out, {left_out} paragraphs left out", file=sys.stderr)


def take(item):
    """(sentences as lines, how many were left out)"""
    name, text = item
    text = turns_of(name, text)
    kept = books.sentences(plain(text))
    if sum(w in books.FREQUENT for s in kept for w in s) < books.ENGLISH * sum(map(len, kept)):
        return [], 0
    lines, held = [], 0
    for words in kept:
        line = " ".join(words)
        if len(words) >= SHORTEST and line in held_out or is_said(words):
            held += 1
        else:
            lines.append(line)
    return lines, held


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--leave-out", action="append", default=[])
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--hold-out", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", required=True)
    o = parser.parse_args()
    global held_out, held_out_parts, held_out_speakers
    phrases = set()
    for path in o.leave_out:
        for line in open(path, encoding="utf8"):
            words = line.lower().split()[1:]
            phrases.update([" ".join(words)], (" ".join(words[i:i + books.RUN]) for i in range(len(words) - books.RUN + 1)))
    held_out = frozenset(phrases)
    held_out_parts = o.hold_out
    held_out_speakers = frozenset(
        speaker(paragraph.strip()) for folder in o.folders if held_out_parts for name, text in books.books(folder)
        if any(part in name for part in held_out_parts) for paragraph in re.split(r"\n\s*\n", text)) - {None, "q"}
    if o.marks:
        with multiprocessing.get_context("fork").Pool(o.jobs) as pool:
            write_paragraphs(o, pool)
        return
    seen = set()
    # fork: the processes have what is held out
    with open(o.output, "w") as out, multiprocessing.get_context("fork").Pool(o.jobs) as pool:
        for folder in o.folders:
            texts = n = count = left_out = 0
            for lines, held in pool.imap(take, books.books(folder, (".txt", ".md", ".json")), 16):
                texts += 1
                left_out += held
                for s in lines:
                    if s.count(" ") >= books.RUN - 1:
                        if hash(s) in seen:
                            continue
                        seen.add(hash(s))
                    out.write(s + "\n")
                    n += 1
                    count += s.count(" ") + 1
            print(f"{folder}: {texts} texts, {n} sentences, {count} words, {left_out} sentences left out", file=sys.stderr)


if __name__ == "__main__":
    main()
