#!/usr/bin/env python3
"""Makes base/unicode_table.h: the canonical compositions of Latin, Greek and Cyrillic letters with combining marks (Unicode, NFC).

    python3 tools/unicode_table.py > base/unicode_table.h
"""
import unicodedata

RANGES = [(0xC0, 0x250), (0x340, 0x345), (0x370, 0x530), (0x1E00, 0x2000), (0x2120, 0x2130)]
MARKS = (0x300, 0x370)


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
    print("#endif")


main()
