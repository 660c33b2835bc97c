#!/usr/bin/env python3
"""Books in the public domain as text for lm.sh, without those that held-out speech was read from.

usage: books.py [--leave-out CHAPTERS.TXT] [--transcripts TEXT]... [--jobs N] -o OUT FOLDER...

FOLDER  a git folder or a work tree of a collection of books: *.txt or *.md, one book a file
--leave-out    LibriSpeech's list of chapters: every book of its dev and test sets is left out, by its title
--transcripts  a Kaldi text ("ID WORDS") of a dev or test set: a book that has three or more sequences of seven words in common with
               them is left out
OUT     one sentence a line, lower case, a to z and the apostrophe, numbers as words. README.md beside this script has the rules.
Sentences of books that are left out for this are not taken from any other book either, as from collected works. Books that are left
out, and why, go to stderr. A sentence of seven words or more is written once.
"""
import argparse
import collections
import multiprocessing
import os
import re
import subprocess
import sys
import unicodedata

ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
        "nineteen").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
FREQUENT = frozenset("the and of to a in that he was it his i with as had you for her".split())  # about 30 % of English
ENGLISH, RUN, MOST_COMMON, LONGEST = 0.2, 7, 3, 5000

held_out = frozenset()  # sequences of RUN words
titles = frozenset()  # of books that are left out


def number(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10 - 2] + (" " + ONES[n % 10] if n % 10 else "")
    if 1100 <= n < 2000 and n % 100:  # a year
        return number(n // 100) + (" oh " if n % 100 < 10 else " ") + number(n % 100)
    if n < 1000:
        return ONES[n // 100] + " hundred" + (" and " + number(n % 100) if n % 100 else "")
    return number(n // 1000) + " thousand" + (" " + number(n % 1000) if n % 1000 else "")


SHORT = [(re.compile(rf"\b{short}\b\.?"), long) for short, long in (("Mr", "mister"), ("Mrs", "missus"), ("Dr", "doctor"), ("St", "saint"))]
MARKS = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00e6": "ae", "\u00c6": "Ae", "\u0153": "oe", "_": "",
                       "\r": None})
NOT_AN_END = re.compile(r"\b(Ms|Messrs|Esq|Hon|Rev|Capt|Col|Gen|Lieut|Sergt|Mme|Mlle|etc|viz|vol|chap|[A-HJ-Z])\.")
END = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
BEGINS = re.compile(r"\*\*\* ?START OF.*?\*\*\*|\*END\*? ?THE SMALL PRINT.*?\*END\*", re.S)
HEADING = re.compile(r"\s*(chapter|book|part|volume|act|scene)\s+[ivxlc\d]+\W*$", re.I)
NOTICE = re.compile(r"gutenberg|https?:|www\.|e-?text|proofread", re.I)
ENDS = re.compile(r"\*\*\* ?END OF|\n *End of (the |this )?Project Gutenberg|\n *END OF (THE|THIS) PROJECT GUTENBERG")


def sentences(text):
    """The sentences of a book, a list of words each."""
    begins = BEGINS.search(text)
    text = text[begins.end() if begins else 0:]
    ends = ENDS.search(text)
    text = text[:ends.start() if ends else len(text)].translate(MARKS)
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    for short, long in SHORT:
        text = short.sub(long, text)
    text = re.sub(r"\b([Tt])o-(day|night|morrow)\b", r"\1o\2", text)
    text = re.sub(r"!?\[([^\]\n]*)\]\([^)\n]*\)", r"\1", text)  # links
    text = re.sub(r"[\[{](\d+|Pg?\.? ?\d+|[Pp]age \d+|[*\u2020]|Illustration[^\]]*|[Ff]ootnote[^\]]*)[\]}]", " ", text)
    kept = []
    ends = r"\n\s*\n" if text.count("\n\n") * LONGEST > len(text) else r"\n"  # of paragraphs: some texts have one in each line
    for paragraph in re.split(ends, NOT_AN_END.sub(r"\1", text)):
        n = paragraph.count(" ") + 1
        if (paragraph.lstrip().startswith("#") or n <= 15 and not re.search(r"[a-z]", paragraph)
                or n <= 12 and re.search(r"\d\s*$", paragraph) or n <= 12 and HEADING.match(paragraph) or NOTICE.search(paragraph)
                or sum(map(paragraph.count, "0123456789")) * 4 > len(paragraph)):
            continue
        kept.append(END.sub("\n\n", paragraph).replace("\n\n", "\x01"))
    text = "\x01".join(kept).replace("&", " and ")
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    text = re.sub(r"\d+", lambda m: f" {number(int(m.group()))} " if len(m.group()) < 7 else " ", text)
    text = re.sub(r"[^a-z'\x01]+", " ", text.lower())
    text = re.sub(r"(?<![a-z])'+|'+(?![a-z])", " ", text)
    return [words for words in map(str.split, text.split("\x01")) if 1 < len(words) < 200]


def title_of(text):
    """A title without article, part, version, accents and punctuation."""
    text = unicodedata.normalize("NFKD", text.replace("&", " and ")).translate(MARKS).lower()
    text = re.sub(r"\(.*?\)|,? *\b(vol(ume)?s?|part|book|tome?|parts|books)\b\.? *([ivxlc\d]+|one|two|three|four)\b.*", "", text)
    words = re.sub(r"[^a-z0-9 ]", "", re.sub(r"[-\u2014]", " ", text)).split()
    return " ".join(words[1:] if words and words[0] in ("the", "a", "an") else words)


def take(book):
    """(why it is left out or None, whether it is held out, its sentences as lines)"""
    name, text = book
    if re.search(r"COPYRIGHTED Project Gutenberg", text[:5000]):
        return "has a licence of its own", False, []
    kept = sentences(text)
    flat = [w for s in kept for w in s]
    lines = [" ".join(s) for s in kept]
    if sum(w in FREQUENT for w in flat) < ENGLISH * len(flat) or not flat:
        return "not English", False, []
    stem = os.path.splitext(os.path.basename(name))[0]
    listed = re.search(r"^Title:\s*(.+)", text[:5000], re.M)
    for full in [stem] + ([listed.group(1)] if listed else []):
        for key in {title_of(full), title_of(re.split(r"[:;\r_]", full)[0])}:
            for title in titles:
                if key == title or title.count(" ") >= 2 and title in key:
                    return f"'{title}' is in a test set", True, lines
    shared = sum(tuple(flat[i:i + RUN]) in held_out for i in range(len(flat) - RUN + 1))
    if shared >= MOST_COMMON:
        return f"{shared} sequences in common with a transcript", True, lines
    return None, False, lines


def books(folder, ends=(".txt", ".md")):
    """(name, text) of every book."""
    if os.path.isfile(os.path.join(folder, "HEAD")):
        git = ["git", "--git-dir", folder]
        rows = subprocess.run(git + ["ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True).stdout.split(b"\0")
        files = [(row.split()[2] + b"\n", row.partition(b"\t")[2].decode("utf8", "replace")) for row in rows if row]
        batch = subprocess.Popen(git + ["cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    else:
        batch = None
        files = [(os.path.join(at, name),) * 2 for at, _, names in sorted(os.walk(folder)) for name in sorted(names)]
    for key, name in files:
        if not name.endswith(ends) or os.path.basename(name).startswith(("README", "LICENSE")):
            continue
        if batch:
            batch.stdin.write(key)
            batch.stdin.flush()
            head = batch.stdout.readline().split()  # name, "blob", size; or name, "missing"
            if len(head) < 3:
                print(f"{name}: not in this copy", file=sys.stderr)
                continue
            raw = batch.stdout.read(int(head[2]))
            batch.stdout.read(1)
        else:
            with open(key, "rb") as f:
                raw = f.read()
        try:
            yield name, raw.decode("utf8")
        except UnicodeDecodeError:
            yield name, raw.decode("cp1252", "replace")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--leave-out")
    parser.add_argument("--transcripts", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", required=True)
    o = parser.parse_args()
    global held_out, titles
    runs = set()
    for path in o.transcripts:
        for line in open(path, encoding="utf8"):
            words = line.lower().split()[1:]
            runs.update(tuple(words[i:i + RUN]) for i in range(len(words) - RUN + 1))
    held_out = frozenset(runs)
    if o.leave_out:
        rows = [line.split("|") for line in open(o.leave_out, encoding="utf8") if not line.startswith(";")]
        titles = frozenset(title_of(row[7]) for row in rows if len(row) > 7 and re.match(r"\s*(dev|test)-", row[3])) - {""}
    seen, banned, kept, texts = set(), set(), 0, 0
    names = collections.deque()

    def each():
        for folder in o.folders:
            for book in books(folder):
                names.append(book[0])
                yield book

    def long(s):
        return s.count(" ") >= RUN - 1
    draft = o.output + ".draft"
    # fork: the processes have what is held out; started in another way they would not, and leave out nothing
    with open(draft, "w") as out, multiprocessing.get_context("fork").Pool(o.jobs) as pool:
        for why, is_held_out, lines in pool.imap(take, each()):
            name = names.popleft()
            texts += 1
            if why:
                print(f"{name!r}: {why}", file=sys.stderr)
                if is_held_out:
                    banned.update(hash(s) for s in lines if long(s))
                continue
            kept += 1
            for s in lines:
                if long(s):
                    if hash(s) in seen:
                        continue
                    seen.add(hash(s))
                out.write(s + "\n")
    n = words = 0
    with open(draft) as f, open(o.output, "w") as out:
        for s in f:
            if not (long(s) and hash(s[:-1]) in banned):
                out.write(s)
                n += 1
                words += s.count(" ") + 1
    os.remove(draft)
    print(f"{kept} of {texts} books, {n} sentences, {words} words", file=sys.stderr)


if __name__ == "__main__":
    main()
