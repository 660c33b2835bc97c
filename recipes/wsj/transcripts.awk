# transcripts.awk - the transcripts of utterances, from the corpus's .dot files.
#
#   LC_ALL=C awk -v problems=FILE -f transcripts.awk INDEX UTTERANCES > LINES
#
# UTTERANCES: one name a line. The transcript of 01ga0101 is in 01ga0100.dot (its first six characters and 00), as "text (01ga0101)".
# LINES: "utterance<tab>text" as it stands. FILE gets "KIND<tab>WHAT": none (an utterance without a transcript), silent (a transcript without
# sound), differs (another transcript in another place; the first one is used), line (a line without a name in parentheses), unreadable.

function problem(kind, what) { print kind "\t" what > problems }

function read_dot(path,   line, id, text, n, got) {
  while ((got = (getline line < path)) > 0) {
    n++
    sub(/\r$/, "", line)
    if (line ~ /^[ \t]*$/) continue
    if (!match(line, /\([A-Za-z0-9]+\)[ \t]*$/)) { problem("line", path ":" n ": " line); continue }
    text = substr(line, 1, RSTART - 1)
    id = tolower(substr(line, RSTART + 1))
    sub(/\).*/, "", id)
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    if (id in transcript) {
      if (transcript[id] != text) problem("differs", id "\t" path)
    } else if (id in wanted || id in sound) transcript[id] = text
    else problem("silent", id "\t" path)
  }
  if (got < 0) problem("unreadable", path)
  close(path)
}

NR == FNR {
  split($0, field, "\t")
  if (field[1] ~ /\.wv1$/) { name = field[1]; sub(/.*\//, "", name); sub(/\.wv1$/, "", name); sound[name] = 1 }
  else if (field[1] ~ /\.dot$/) {
    name = field[1]; sub(/.*\//, "", name); sub(/\.dot$/, "", name)
    dot[name] = dot[name] field[3] "\n"
  }
  next
}
{ wanted[$1] = 1; order[++n_wanted] = $1; name = substr($1, 1, 6) "00"; if (!(name in seen)) { seen[name] = 1; session[++n_sessions] = name } }

END {
  for (s = 1; s <= n_sessions; s++) {
    n_paths = split(dot[session[s]], path, "\n")
    for (i = 1; i < n_paths; i++) read_dot(path[i])
  }
  for (i = 1; i <= n_wanted; i++) {
    id = order[i]
    if (id in transcript) print id "\t" transcript[id]
    else problem("none", id)
  }
}
