# select.awk - the utterances of a set, from an index file of the corpus or from a folder.
#
#   LC_ALL=C awk -v problems=FILE [-v wrong=11_2_1:wsj0/si_tr_s/401/] -f select.awk INDEX NDX... > LIST
#   LC_ALL=C awk -v problems=FILE -v folder=wsj1/si_dt_20/ -f select.awk INDEX > LIST
#
# INDEX: the table of index.awk. NDX: lines "11_13_1:wsj0/si_tr_s/01g/01ga0101.wv1"; ".wv1" may be missing; ";" begins a comment.
# LIST: lines "utterance<tab>path", sorted by neither. wrong: lines that begin so are left out. FILE gets lines
# "KIND<tab>WHAT": missing (an index line without a file), twice (an utterance listed again), bad (a line that is none), by-name (a
# file found by its base name only), left-out (a line that `wrong` names).

function base(path) { sub(/.*\//, "", path); sub(/\.[^.]*$/, "", path); return path }
function problem(kind, what) { print kind "\t" what > problems }
function take(path,   utterance) {
  utterance = tolower(base(path))
  if (utterance !~ /^[a-z0-9]+$/) { problem("bad", path); return }
  if (utterance in taken) { problem("twice", utterance); return }
  taken[utterance] = 1
  print utterance "\t" path
}

# A line without its disc; disc is set, "" if the line has none.
function without_disc(line) {
  disc = ""
  if (match(line, /^[0-9]+[-_.][0-9]+[-_.][0-9]+[ \t]*:/)) {
    disc = substr(line, 1, RLENGTH - 1)
    gsub(/[-.]/, "_", disc)
    gsub(/[ \t]/, "", disc)
    line = substr(line, RLENGTH + 1)
  }
  gsub(/^[ \t\/]+|[ \t\/]+$/, "", line)
  gsub(/\/\/+/, "/", line)
  return line
}

# The file of an index line: on its disc, on any disc, or anywhere under its name.
function find(key,   name) {
  if ((disc, key) in on_disc) return on_disc[disc, key]
  if (key in anywhere) return anywhere[key]
  name = base(key)
  if (!(name in by_name)) return ""
  problem("by-name", key)
  return by_name[name]
}

NR == FNR {
  split($0, field, "\t")
  key = field[1]
  if (key !~ /\.wv1$/) next
  if (folder != "") {
    if (index(key, folder) == 1) { in_folder[++n_folder] = field[3]; folder_disc[n_folder] = field[2]; if (field[2] == "13_16_1") numbered = 1 }
    next
  }
  if (!((field[2], key) in on_disc)) on_disc[field[2], key] = field[3]
  if (!(key in anywhere)) anywhere[key] = field[3]
  name = base(key)
  if (!(name in by_name)) by_name[name] = field[3]
  next
}

{
  sub(/\r$/, "")
  line = tolower($0)
  gsub(/^[ \t]+|[ \t]+$/, "", line)
  if (line == "" || line ~ /^;/) next
  key = without_disc(line)
  if (wrong != "" && index(disc ":" key, wrong) == 1) { problem("left-out", line); next }
  if (disc == "13_32_1") disc = "13_33_1" # a known error of the index of November 1993
  if (key !~ /\.wv[12]$/) key = key ".wv1"
  if (key !~ /^[a-z0-9_.\/-]+\/[a-z0-9]+\.wv1$/) { problem("bad", FILENAME ": " $0); next }
  path = find(key)
  if (path == "") problem("missing", line)
  else take(path)
}

END { for (i = 1; i <= n_folder; i++) if (!numbered || folder_disc[i] == "13_16_1") take(in_folder[i]) }
