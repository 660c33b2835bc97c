#!/usr/bin/env python3
"""Written text as the words that were spoken, in NIST's TRN, for words_peers.sh.

usage: spoken.py FILE

FILE    lines of an utterance's name, other fields, and its text, with tabs between
Lower case, a to z and the apostrophe. A number is all that its digits may be read as, as alternatives, of which linnet score counts
the best: { nineteen eighty four / one nine eight four / ... }. Dates, amounts and abbreviations are read as modern.py does it.
"""
import os
import re
import sys
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../recipes/open"))
import books
import modern


def readings(digits):
    """All that a row of digits may be read as."""
    single = " ".join(books.ONES[int(d)] for d in digits)
    found = [single, single.replace("zero", "oh")]
    if len(digits) > 6:
        found.append(single.replace(" ", ""))  # one wrong word: Whisper may repeat a digit for ever
    elif digits[0] != "0" or digits == "0":
        found.append(books.number(int(digits)))
        found.append(found[-1].replace(" and ", " "))
    if len(digits) == 4:
        found.append(" ".join(("oh " if half[0] == "0" else "") + books.number(int(half)) for half in (digits[:2], digits[2:])))
    return list(dict.fromkeys(found))


def number(match):
    found = readings(match[0])
    return f" {found[0]} " if len(found) == 1 else " { " + " / ".join(found) + " } "


def words(text):
    text = re.sub(r"[{}/]", " ", text.translate(books.MARKS))
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    text = re.sub(r"\b\d(?:-\d){2,}\b|\b\d(?:[,.] \d)+\b", lambda m: re.sub(r"\D", "", m[0]), text)  # 3-2-2-7
    for pattern, spoken in modern.DIGITS:
        text = pattern.sub(spoken, text)
    text = modern.LETTER.sub(r"\1 ", modern.SHORTENED.sub(lambda m: modern.SHORT[m[0]], text))
    for short, spoken in books.SHORT:
        text = short.sub(spoken, text)
    text = re.sub(r"\d+", number, text.replace("&", " and "))
    text = re.sub(r"[^a-z'{}/]+", " ", text.lower())
    return re.sub(r"(?<![a-z])'+|'+(?![a-z])", " ", text).split()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf8") as lines:
        for line in lines:
            name, *_, text = line.rstrip("\n").split("\t")
            print(" ".join(words(text)), f"({name})")


if __name__ == "__main__":
    main()
