#!/bin/sh
# man3.sh HEADER VERSION: the manual page linnet(3) from the comments of linnet.h, in roff. A paragraph of the header is a comment and
# the declarations after it.
cat <<END
.TH LINNET 3 "" "linnet $2" "Library"
.SH NAME
linnet \\- streaming speech recognition: phonemes and words, alignment, many streams at once
.SH SYNOPSIS
.nf
.B #include <linnet.h>
.P
.B cc program.c \$(pkg\\-config \\-\\-cflags \\-\\-libs linnet)
.fi
END
awk '
function plain(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); if (s ~ /^[.\047]/) s = "\\&" s; return s }
function heading(s) { printf ".SH %s\n", plain(toupper(s)) }
# The comment that the header begins with: indented lines are an example, lines without indent that end no sentence are headings.
FNR == 1 { top = 1; printf ".SH DESCRIPTION\n"; next }
top && /^ \*\// { if (example) print ".EE"; top = example = 0; next }
top {
    line = substr($0, 4)
    if (line == "") { if (!example) print ".PP"; else print ""; next }
    if (line ~ /^  /) { if (!example) print ".EX"; example = 1; print plain(line); next }
    if (example) print ".EE\n.PP"
    example = 0
    sub(/^linnet.h - /, "", line)
    print plain(line)
    next
}
/^#ifndef LINNET_H|^#define LINNET_H|^#include|^#ifdef __cplusplus|^extern "C"|^#if defined|^#else|^#endif|^#define LINNET_API|^}$/ { next }
/^\/\* ---- .*- \*\/$/ { s = $0; gsub(/^\/\* -* | -* \*\/$/, "", s); heading(s); next }
/^\/\*/ { comment = 1; text = "" }
comment {
    line = $0
    done = line ~ /\*\/[ ]*$/
    sub(/ ?\*\/[ ]*$/, "", line); sub(/^\/\* ?/, "", line); sub(/^ \* ?/, "", line)
    if (line ~ /^  /) text = text ".br\n" plain(substr(line, 3)) "\n"
    else if (line != "") text = text plain(line) "\n"
    if (done) comment = 0
    next
}
/^$/ { if (code != "") { printf ".PP\n.EX\n%s.EE\n", code; if (text != "") printf ".PP\n%s", text } code = text = ""; next }
{ s = $0; if (sub(/^LINNET_API /, "", s)) prototype = 1; else if (prototype) sub(/^ +/, "    ", s); if (s ~ /;$/) prototype = 0; code = code plain(s) "\n" }
' "$1"
cat <<'END'
.SH ENVIRONMENT
LINNET_MODEL, LINNET_LEXICON, LINNET_LM and LINNET_G2P name files that are used instead of the installed ones.
.SH SEE ALSO
.BR linnet (1),
.BR linnet\-transcribe (1),
.BR linnet\-align (1)
END
