# Writes a lexicon with the stress of another: awk -f stress.awk cmudict.dict words.dict
# A pronunciation takes the digits of the same phonemes of its word; else of a pronunciation of its word with as many vowels; a
# single vowel is stressed. All others stay as they are.
{
    if (/^;;;/) { if (NR != FNR) print; next }
    sub(/[ \t]*#.*/, "")
    first = $2 ~ /^[0-9]/ ? 3 : 2 # behind a probability
    word = $1
    sub(/\([0-9]+\)$/, "", word)
    plain = digits = ""
    vowels = 0
    for (i = first; i <= NF; i++) {
        phone = $i
        sub(/[0-2]$/, "", phone)
        plain = plain " " phone
        if (phone ~ /^[AEIOU]/) { vowels++; digits = digits substr($i, length($i)) }
    }
    if (NR == FNR) {
        if (!((word, plain) in exact)) exact[word, plain] = digits
        if (!((word, vowels) in like)) like[word, vowels] = digits
        next
    }
    digits = (word, plain) in exact ? exact[word, plain] : (word, vowels) in like ? like[word, vowels] : vowels == 1 ? "1" : ""
    for (i = first; i <= NF && digits != ""; i++) if ($i ~ /^[AEIOU]/) { $i = $i substr(digits, 1, 1); digits = substr(digits, 2) }
    print
}
