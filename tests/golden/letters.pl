#!/usr/bin/env perl
# Makes tests/golden/letters.txt for tests/base/test_unicode.c with Perl's Unicode tables: lines "CODE KIND SMALL", in hexadecimal,
# of random characters: KIND is L (a letter or a mark), P (punctuation or a space) or - (any other), SMALL its small letter.
#
#     perl tests/golden/letters.pl > tests/golden/letters.txt
use strict;
use warnings;
use feature 'unicode_strings';

my $state = 1;
for (1 .. 700) {
    $state = ($state * 1103515245 + 12345) % 2147483648;
    my $random = $state >> 8;
    # Mostly of the scripts with few letters.
    my $code = $_ % 4 ? 0x80 + $random % 0x2680 : 0x2700 + $random % 0x1D900;
    next if $code >= 0xD800 && $code < 0xF900;
    my $c = chr $code;
    next if $c !~ /\p{Assigned}/;
    my $small = lc $c;
    # Only where one small letter has no more bytes.
    my ($from, $to) = ($c, $small);
    utf8::encode($from);
    utf8::encode($to);
    $small = $c if length $small != 1 || length $to > length $from;
    printf "%x %s %x\n", $code, $c =~ /[\p{L}\p{M}]/ ? "L" : $c =~ /[\p{P}\p{Z}]/ ? "P" : "-", ord $small;
}
