#!/usr/bin/env python3
"""Makes base/unicode_table.h: the canonical compositions of Latin, Greek and Cyrillic letters with combining marks (Unicode, NFC);
small letters, letters and punctuation of all scripts.

    python3 tools/unicode_table.py > base/unicode_table.h
"""
import unicodedata

RANGES = [(0xC0, 0x250), (0x340, 0x345), (0x370, 0x530), (0x1E00, 0x2000), (0x2120, 0x2130)]
MARKS = (0x300, 0x370)


END = 0x30000


def ranges(groups):
    """First and last characters outside ASCII of these groups of general categories; unassigned ones between them belong to them."""
    found, last = [], None
    for code in range(0x80, END):
        category = unicodedata.category(chr(code))
        if category[0] in groups:
            if last is None:
                found.append([code, code])
            last = found[-1]
            last[1] = code
        elif category != "Cn":
            last = None
    return found


def small_letters():
    """(first, last, step, difference) of capital letters outside ASCII, where the small letter has no more bytes of UTF-8."""
    pairs = []
    for code in range(0x80, END):
        lower = "" if 0xD800 <= code < 0xE000 else chr(code).lower()
        if len(lower) == 1 and ord(lower) != code and len(lower.encode()) <= len(chr(code).encode()):
            pairs.append((code, ord(lower) - code))
    found, i = [], 0
    while i < len(pairs):
        best = (i, 1)
        for step in (1, 2):
            j = i
            while j + 1 < len(pairs) and pairs[j + 1] == (pairs[j][0] + step, pairs[i][1]):
                j += 1
            if j > best[0]:
                best = (j, step)
        found.append((pairs[i][0], pairs[best[0]][0], best[1], pairs[i][1]))
        i = best[0] + 1
    return found


def main():
    pairs, singletons = [], []
    for low, high in RANGES:
        for code in range(low, high):
            parts = unicodedata.decomposition(chr(code)).split()
            if not parts or parts[0].startswith("<"):
                continue
            codes = [int(p, 16) for p in parts]
            if len(codes) == 1:
                singletons.append((code, ord(unicodedata.normalize("NFC", chr(code)))))
            elif unicodedata.normalize("NFC", chr(code)) == chr(code):
                assert MARKS[0] <= codes[1] < MARKS[1], hex(code)
                pairs.append((codes[0], codes[1], code))
    pairs.sort()
    order = sorted(range(len(pairs)), key=lambda i: pairs[i][2])
    print("/* Made by tools/unicode_table.py from Unicode %s. */" % unicodedata.unidata_version)
    print("#ifndef LIN_BASE_UNICODE_TABLE_H\n#define LIN_BASE_UNICODE_TABLE_H\n")

    def table(head, items):
        print("%s = {" % head)
        line = "   "
        for item in items:
            if len(line) + len(item) + 2 > 128:
                print(line)
                line = "   "
            line += " " + item + ","
        print(line + "\n};\n")

    print("/* Letter, mark, letter with the mark; sorted. */")
    table("static const unsigned short lin_unicode_pairs[][3]", ["{0x%X, 0x%X, 0x%X}" % p for p in pairs])
    print("/* Numbers of pairs, sorted by the letter with the mark. */")
    table("static const unsigned short lin_unicode_order[]", [str(i) for i in order])
    print("/* Characters that are replaced by another. */")
    table("static const unsigned short lin_unicode_singletons[][2]", ["{0x%X, 0x%X}" % p for p in singletons])
    print("/* Canonical combining classes of U+0300 to U+036F. */")
    table("static const unsigned char lin_unicode_classes[]", [str(unicodedata.combining(chr(c))) for c in range(*MARKS)])
    print("/* First, last, step and difference to the small letters, sorted. */")
    table("static const int lin_unicode_capitals[][4]", ["{0x%X, 0x%X, %d, %d}" % c for c in small_letters()])
    print("/* Letters and marks (general categories L, M): first and last, sorted. */")
    table("static const unsigned lin_unicode_letters[][2]", ["{0x%X, 0x%X}" % tuple(r) for r in ranges("LM")])
    print("/* Punctuation and spaces (P, Z): the same. */")
    table("static const unsigned lin_unicode_punctuation[][2]", ["{0x%X, 0x%X}" % tuple(r) for r in ranges("PZ")])
    print("#endif")


main()
