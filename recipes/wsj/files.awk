# files.awk - the text files of a stand-in's discs, from its plan.
#
#   LC_ALL=C awk -F'\t' -f files.awk PLAN > LINES
#
# LINES: "DISC<tab>FILE<tab>LINE", to be sorted by file, stably: .dot transcripts with the conventions of the corpus, .ptx prompts, .ndx
# indices with comments, lists of speakers.

function put(disc, file, line) { print disc "\t" file "\t" line }
function escaped(word) { gsub(/[-.]/, "\\\\&", word); return word }

# The words as a detailed orthographic transcript: marks that change no word, another choice for each utterance.
function transcript(words, k,   n, w, i, text) {
  n = split(words, w, " ")
  i = k % n + 1
  for (j = 1; j <= n; j++) {
    w[j] = escaped(w[j])
    if (k % 2) w[j] = tolower(w[j])
  }
  if (k % 7 == 1) w[i] = "<" w[i] ">"
  if (k % 7 == 2) w[i] = "*" w[i] "*"
  if (k % 7 == 3) w[i] = w[i] " ."
  if (k % 7 == 4) w[i] = "[door_slam>] " w[i]
  if (k % 7 == 5) w[i] = "[paper_rustle/] " w[i] " [/paper_rustle]"
  if (k % 11 == 3) w[n] = w[n] " [loud_breath]"
  if (k % 13 == 5) w[n] = w[n] " ~"
  if (k % 17 == 9 && w[1] ~ /^[A-Za-z]/) w[1] = "!" w[1]
  for (j = 1; j <= n; j++) text = text (j == 1 ? "" : " ") w[j]
  return text
}
function on(disc) { gsub(/[-.]/, "_", disc); return disc }
function heading(disc, file) {
  put(disc, file, ";; " file " of a stand-in, not of the Wall Street Journal corpus")
  put(disc, file, ";;")
}

BEGIN {
  heading("11-13.1", train0 = "wsj0/doc/indices/train/tr_s_wv1.ndx")
  heading("11-13.1", eval92 = "wsj0/doc/indices/test/nvp/si_et_20.ndx")
  heading("11-13.1", eval92_5k = "wsj0/doc/indices/test/nvp/si_et_05.ndx")
  heading("13-34.1", train1 = "wsj1/doc/indices/si_tr_s.ndx")
  heading("13-34.1", dev20 = "wsj1/doc/indices/h1_p0.ndx")
  heading("13-34.1", dev05 = "wsj1/doc/indices/h2_p0.ndx")
  heading("13-32.1", eval93 = "wsj1/doc/indices/wsj1/eval/h1_p0.ndx")
  heading("13-32.1", eval93_5k = "wsj1/doc/indices/wsj1/eval/h2_p0.ndx")
  heading("11-13.1", speakers0 = "wsj0/doc/spkrinfo.txt")
  heading("13-34.1", speakers1 = "wsj1/doc/train/spkrinfo.txt")
}

{
  disc = $1; path = $2; set = $4
  folder = path; sub(/\/[^\/]*$/, "", folder)
  id = path; sub(/.*\//, "", id)
  dots = folder
  if (set == "train1") { sub(/^wsj1/, "wsj1/trans/wsj1", dots); disc_dots = "13-34.1" } else disc_dots = disc
  put(disc_dots, dots "/" substr(id, 1, 6) "00.dot", transcript($6, NR) " (" (NR % 3 ? id : toupper(id)) ")")
  put(disc_dots, dots "/" substr(id, 1, 6) "00.ptx", $6 " (" id ")")
  if (path ~ /\/401\//) put("11-13.1", train0, "11_2_1:" path ".wv1") # the discs' own error: 401 is on 11-3.1, and listed twice
  if (set == "train0") put("11-13.1", train0, on(disc) ":" path ".wv1")
  if (set == "eval92") put("11-13.1", eval92, on(disc) ":/" path)
  if (set == "eval92_5k") put("11-13.1", eval92_5k, on(disc) ":" path " ")
  if (set == "train1") put("13-34.1", train1, on(disc) ": " path ".wv1")
  if (set == "dev20") put("13-34.1", dev20, on(disc) ":" path ".wv1")
  if (set == "dev05") put("13-34.1", dev05, on(disc) ":" path ".wv1")
  if (set == "eval93") put("13-32.1", eval93, "13_32_1:" path ".wv1") # the discs' own error: it is 13_33_1
  if (set == "eval93_5k") put("13-32.1", eval93_5k, "13_32_1:" path ".wv1")
  if (!((code = substr(id, 1, 3)) in listed)) {
    listed[code] = 1
    if (path ~ /^wsj0/) put("11-13.1", speakers0, code "  " $5)
    else put("13-34.1", speakers1, code "  " $5)
  }
}
