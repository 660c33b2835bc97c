# sure.awk - JSON results of linnet, one utterance a line: prints the number of phonemes, of words, and of the words in sure
# utterances, whose phonemes have a mean confidence of 0.5 or more (awk -v least=0.6 -f sure.awk: another limit).
BEGIN { if (least == "") least = 0.5 }
{
    n = words = sum = 0
    for (i = split($0, part, "{"); i; i--) {
        if (part[i] ~ /^"word":/) words++
        if (part[i] ~ /^"phone":/ && match(part[i], /"confidence":[0-9.]+/)) {
            n++
            sum += substr(part[i], RSTART + 13, RLENGTH - 13)
        }
    }
    phones += n
    all += words
    if (n && sum >= least * n) sure += words
}
END { print phones + 0, all + 0, sure + 0 }
