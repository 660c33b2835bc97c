#!/usr/bin/env python3
"""Marks and capitals of what was read aloud, from the books that it was read from; and how well other texts give them back.

usage: marks.py find --text TEXT -o MARKED FOLDER...
       marks.py join MARKED CTM UTT2DUR FOLDER
       marks.py score MARKED TEXT

find   finds the utterances of TEXT, Kaldi style ("ID WORDS"), in the books of the FOLDERs (git folders or work trees, as books.py
       reads them) and writes "ID words" with the marks and capitals of the book, the words as TEXT has them. Utterances that no
       book has, or of which more than a tenth of the words differ there, are left out. linnet readable score --ids takes the result.
       MARKED.books has the books, and how many utterances each has.
join   joins the utterances of a chapter, whose names differ in what is behind the last "-": FOLDER/joined.marked and
       FOLDER/joined.ctm, with the times that they have one after the other
score  aligns the words of TEXT ("ID text", as a recogniser wrote it) with those of MARKED and prints precision, recall and F of full
       stops, commas, question marks and capitals. A mark counts where its word is right; a mark behind any other word is wrong.
       The rules are those of linnet readable score.
"""
import argparse
import collections
import difflib
import re
import sys

import books

RUN, SAME = 5, 0.9
TOKEN = re.compile(r"[A-Za-z\u00c0-\u024f]+(?:['\u2019][A-Za-z]+)*|\d+")
SHORT = dict(mr="mister", mrs="missus", dr="doctor", st="saint")
ABBREVIATION = re.compile(
    r"(?:mister|missus|doctor|saint|ms|messrs|esq|hon|rev|capt|col|gen|mme|mlle|prof|etc|viz|vol|[a-hj-z])$")


def tokens(text):
    """(word in small letters, begin, end) of every word."""
    for m in TOKEN.finditer(text):
        word = m[0].lower().replace("\u2019", "'")
        yield SHORT.get(word, word), m.start(), m.end()


def mark(between, word):
    """The mark that stands between two words."""
    if between.startswith(".") and ABBREVIATION.match(word):
        between = between[1:]
    between = re.sub(r"\.( ?\.)+|\u2026", "", between)
    for pattern, sign in ((r"\?", "?"), (r"[.!;]", "."), (r"[,:\u2013\u2014]|--| - ", ",")):
        if re.search(pattern, between):
            return sign
    return ""


def marked(text):
    """(word, mark behind it, has a capital, begins a quotation) of every word."""
    found = list(tokens(text))
    for i, (word, begin, end) in enumerate(found):
        follows = found[i + 1][1] if i + 1 < len(found) else min(len(text), end + 4)
        quoted = re.search(r"(?:^|[\s\u2014(-])[\"'\u201c\u2018]+$", text[max(0, begin - 4):begin]) is not None
        yield word, mark(text[end:follows].replace("_", "").replace("*", ""), word), text[begin].isupper(), quoted


def find(o):
    texts = {}
    for line in open(o.text, encoding="utf8"):
        key, *words = line.lower().split()
        texts[key] = words
    runs = collections.defaultdict(list)
    for key, words in texts.items():
        for i in range(len(words) - RUN + 1):
            runs[" ".join(words[i:i + RUN])].append((key, i))
    best = {}  # utterance: (words that are the same, passage)
    for folder in o.folders:
        for name, text in books.books(folder):
            found = list(tokens(text))
            flat = [word for word, _, _ in found]
            starts = collections.defaultdict(collections.Counter)
            for at in range(len(flat) - RUN + 1):
                for key, i in runs.get(" ".join(flat[at:at + RUN]), ()):
                    starts[key][(at - i) // 8] += 1
            for key, counts in starts.items():
                words = texts[key]
                guess = counts.most_common(1)[0][0] * 8
                first, last = max(0, guess - 8), min(len(found), guess + len(words) + 24)
                passage = text[found[first][1]:found[last - 1][2] + 4]
                if found[first][1] and text[found[first][1] - 1] in "\"'\u201c\u2018":
                    passage = text[found[first][1] - 1] + passage
                there = list(marked(passage))
                blocks = difflib.SequenceMatcher(None, words, [w[0] for w in there], False).get_matching_blocks()
                same = sum(b.size for b in blocks)
                if same > best.get(key, (0,))[0]:
                    best[key] = same, name, blocks, there
    found = collections.Counter(name for key, (same, name, _, _) in best.items() if same >= SAME * len(texts[key]))
    with open(o.output + ".books", "w") as out:
        out.writelines(f"{n} {name}\n" for name, n in found.most_common())
    n = 0
    with open(o.output, "w") as out:
        for key, words in texts.items():
            if key not in best or best[key][0] < SAME * len(words):
                continue
            _, _, blocks, there = best[key]
            at = {b.a + k: b.b + k for b in blocks for k in range(b.size)}
            line = [key]
            for i, word in enumerate(words):
                behind, capital, quoted = "", False, False
                if i in at:
                    _, behind, capital, quoted = there[at[i]]
                elif i - 1 in at:  # other words there: the mark is behind the last of them
                    k = at[i - 1] + 1
                    behind, capital = there[k][1] if k < len(there) else "", k < len(there) and there[k][2]
                line.append(('"' if quoted else "") + (word[0].upper() + word[1:] if capital else word) + behind)
            out.write(" ".join(line) + "\n")
            n += 1
    print(f"{n} of {len(texts)} utterances", file=sys.stderr)


def join(o):
    lengths = {line.split()[0]: float(line.split()[1]) for line in open(o.utt2dur)}
    times = collections.defaultdict(list)
    for line in open(o.ctm):
        key, _, start, length, word = line.split()[:5]
        times[key].append((float(start), length, word.lower()))
    chapters = collections.defaultdict(list)
    for line in open(o.marked, encoding="utf8"):
        chapters[line.split()[0].rpartition("-")[0]].append(line.split(None, 1))
    with open(f"{o.folder}/joined.marked", "w") as marks, open(f"{o.folder}/joined.ctm", "w") as ctm:
        for chapter, lines in chapters.items():
            marks.write(" ".join([chapter] + [text.strip() for _, text in lines]) + "\n")
            at = 0
            for key, _ in lines:
                ctm.writelines(f"{chapter} 1 {at + start:.3f} {length} {word}\n" for start, length, word in times[key])
                at += lengths[key]


def read(path):
    lines = (line.split(None, 1) for line in open(path, encoding="utf8"))
    return {line[0]: list(marked(line[1])) for line in lines if len(line) > 1}


def score(o):
    wanted, written, right = collections.Counter(), collections.Counter(), collections.Counter()
    texts = read(o.text)
    words = 0
    for key, line in read(o.marked).items():
        there = texts.get(key, [])
        words += len(line)
        blocks = difflib.SequenceMatcher(None, [w[0] for w in line], [w[0] for w in there], False).get_matching_blocks()
        at = {b.a + k: b.b + k for b in blocks for k in range(b.size)}
        skipped = {at[i] for i in at if line[i][3]}
        begins = True
        for i, (_, behind, capital, quoted) in enumerate(line):
            other = there[at[i]] if i in at else ("", "", False, False)
            wanted[behind] += 1
            right[behind] += other[1] == behind
            if not quoted:
                wanted["A"] += capital or begins
                right["A"] += (capital or begins) and other[2]
            begins = behind in (".", "?")
        for k, (_, behind, capital, _) in enumerate(there):
            written[behind] += 1
            written["A"] += capital and k not in skipped
    print(f"{words} words\n{'':15} {'in text':>10} {'precision':>10} {'recall':>10} {'F':>8}")
    for name, sign in (("full stops", "."), ("commas", ","), ("question marks", "?"), ("capitals", "A")):
        p, r = right[sign] / max(1, written[sign]), right[sign] / max(1, wanted[sign])
        print(f"{name:15} {wanted[sign]:10} {100 * p:8.1f} % {100 * r:8.1f} % {200 * p * r / max(1e-9, p + r):6.1f} %")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    finds, joins, scores = map(verbs.add_parser, ("find", "join", "score"))
    finds.add_argument("--text", required=True)
    finds.add_argument("-o", "--output", required=True)
    finds.add_argument("folders", nargs="+")
    for name in ("marked", "ctm", "utt2dur", "folder"):
        joins.add_argument(name)
    scores.add_argument("marked")
    scores.add_argument("text")
    o = parser.parse_args()
    dict(find=find, join=join, score=score)[o.verb](o)


if __name__ == "__main__":
    main()
