#!/usr/bin/env python3
"""Writes tests/golden/numbers.txt: numbers in words, as ICU spells them (RuleBasedNumberFormat; PyICU, Debian's python3-icu).

In small letters, without hyphens, commas and soft hyphens, which mean nothing for what is said. Lines "LANGUAGE SET NUMBER WORDS" for a selection,
and "LANGUAGE SET from..to/step crc32 HEX": the checksum of the words of all these numbers, each ended by a line feed.

    python3 tests/golden/icu_numbers.py > tests/golden/numbers.txt
"""
import zlib

import icu

SETS = [  # language, our set, ICU's, selection, range of the checksum
    ("en", "cardinal", "%spellout-numbering-verbose", None, (0, 1000000, 37)),
    ("en", "ordinal", "%spellout-ordinal-verbose", None, (1, 20000, 3)),
    ("de", "cardinal", "%spellout-numbering", None, (0, 1000000, 37)),
    ("de", "ordinal", "%spellout-ordinal", None, (1, 20000, 3)),
    ("es", "cardinal", "%spellout-numbering", None, (0, 1000000, 37)),
    ("es", "ordinal", "%spellout-ordinal-masculine", [*range(1, 101, 3), 18, 20, 21, 100], (1, 100, 1)),
]
SOME = [*range(0, 32), *range(40, 100, 7), 100, 101, 110, 111, 121, 199, 200, 201, 342, 500, 700, 999, 1000, 1001, 1100, 1984, 2000,
        2021, 9999, 10000, 21000, 21001, 31031, 100000, 101000, 121121, 200001, 999999, 1000000, 1000001, 2000000, 21000000,
        123456789, 1000000000, 2147483647]


def main():
    for language, ours, theirs, some, (low, high, step) in SETS:
        spell = icu.RuleBasedNumberFormat(icu.URBNFRuleSetTag.SPELLOUT, icu.Locale(language))

        def words(n):
            return spell.format(n, theirs).replace("\xad", "").replace("-", " ").replace(",", "").lower()

        for n in some or SOME:
            if ours == "cardinal" or 0 < n < 1000000:
                print(language, ours, n, words(n))
        crc = 0
        for n in range(low, high + 1, step):
            crc = zlib.crc32((words(n) + "\n").encode(), crc)
        print(f"{language} {ours} {low}..{high}/{step} crc32 {crc:08x}")


main()
