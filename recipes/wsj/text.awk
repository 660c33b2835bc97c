# text.awk - detailed orthographic transcripts (.dot) of the CSR corpora (WSJ0, WSJ1) to words.
#
#   LC_ALL=C awk -v report=FILE -f text.awk TRANSCRIPTS > TEXT          lines "utterance transcript" to lines "utterance WORDS"
#
# -v noise=WORD writes WORD for each noise, such as [loud_breath]; the default writes nothing. The number of tokens is that of Kaldi's
# recipe with WORD <NOISE>. FILE gets a line "COUNT<tab>WHAT" for each kind of token, and "odd<tab>utterance<tab>token" for each token
# with characters that are not in words.
#
# Each token, in this order:
#   1. upper case; backslashes, which escape characters of a word, are removed: "mid\-size" is MID-SIZE; "`" is "'"
#   2. [<x] [x>] (a noise during a word) and [x/] [/x] (the span of a noise) are dropped, as are "~" (the sound is cut off) and "."
#      (a pause); any other [x] is a noise, and so is a word that has one in it: COMP[COUGH]ANY
#   3. <word>, verbally deleted, was said: it is the word
#   4. verbalised punctuation is one token, its name: %PERCENT is PERCENT, .POINT is POINT, "DOUBLE-QUOTE is DOUBLE-QUOTE; dashes are
#      -DASH. It stays a part of a word that it was written together with: INCORPORATED--DASH
#   5. marks are removed: *word* (mispronounced, the intended word), !word (emphasis), wo:rd (a lengthened sound), ~ at a word;
#      of a partial word the part that was said is kept, with its hyphen: fl(ight)- is FL-
#   6. "Corp;" is CORP; "&" stays within a word: AT&T; spelled letters keep their period, as in CMUdict: A. B.'S

function count(what) { counts[what]++ }

function is_name(name) { # verbalised punctuation whose mark may also begin or end a word
  return name ~ /^((SINGLE|OPEN|CLOSE|CLOSED|INNER|LEFT|RIGHT|END|BEGIN|DOUBLE)-)*(QUOTE|QUOTES|UNQUOTE|APOSTROPHE|HYPHEN|DASH|MINUS)$/
}

# The name in a token such as ,COMMA or "END-QUOTE; "" for any other token.
function punctuation(w,   name) {
  if (w !~ /^[^A-Z0-9<>*~[]+[A-Z][A-Z-]*$/) return ""
  name = w
  sub(/^[^A-Z]+/, "", name)
  if (w ~ /^['-]/ && !is_name(name)) return "" # 'CAUSE, -TION
  if (w ~ /^!/ && name != "EXCLAMATION-POINT" && name != "EXCLAMATION-MARK") return "" # !REALLY
  if (name ~ /-$/) return ""
  return (w ~ /^-+DASH$/ ? "-" : "") name
}

# The words of a token, or "".
function words(utterance, token,   w, name) {
  w = toupper(token)
  gsub(/\\/, "", w)
  if (gsub(/`/, "'", w)) count("misprints") # `TIS
  if (gsub(/\[[<\/][^][]*\]|\[[^][]*[>\/]\]/, "", w)) {
    count("marks of noises during speech")
    if (w == "") return ""
  }
  if (w ~ /\[[^][]*\]/) { count(w ~ /^\[[^][]*\]$/ ? "noises" : "noises within a word"); return noise }
  if (w ~ /^~+$/) { count("cut-off sounds (~)"); return "" }
  if (w ~ /^\.+$/) { count("pauses (.)"); return "" }
  if (w ~ /^<./ || w ~ /.>$/) {
    count("verbally deleted words")
    sub(/^<+/, "", w)
    sub(/>+$/, "", w)
  }
  if ((name = punctuation(w)) != "") { count("verbalised punctuation"); return name }
  if (w ~ /[A-Z.](-+DASH|,COMMA|\.PERIOD)$/) count("verbalised punctuation")
  return word(utterance, token, w)
}

# A token that is neither noise nor punctuation, in upper case.
function word(utterance, token, w) {
  if (w ~ /[A-Z]/ && gsub(/\*/, "", w)) count("mispronounced words")
  if (gsub(/!+/, "", w)) count("emphasised words")
  if (w ~ /[A-Z]~|~[A-Z]/) { gsub(/~/, "", w); count("cut-off sounds (~)") }
  if (w ~ /[A-Z]:/) { gsub(/:/, "", w); count("lengthened sounds") }
  if (w ~ /[A-Z)]-$/ || w ~ /^-[A-Z(]/) { gsub(/\([A-Z']*\)/, "", w); count("partial words") }
  if (sub(/[;,?]+$/, "", w)) count("misprints") # CORP;
  if (w !~ /[A-Z]/ || w !~ /^[A-Z'.-]+(&[A-Z'.-]+)*(,COMMA)?$/) {
    count("odd tokens")
    if (report != "") print "odd\t" utterance "\t" token > report
    if (w !~ /[A-Z0-9]/) return ""
  }
  return w
}

{
  sub(/\r$/, "")
  utterance = $1
  if (gsub(/[^ -~\t]/, " ")) { count("odd tokens"); if (report != "") print "odd\t" utterance "\tcharacters that are not ASCII, read as blanks" > report }
  rest = $0
  sub(/^[ \t]*[^ \t]+[ \t]*/, "", rest)
  line = "" # with descriptors without blanks
  while (match(rest, /\[[^][]*\]/)) {
    descriptor = substr(rest, RSTART, RLENGTH)
    gsub(/[ \t]+/, "_", descriptor)
    line = line substr(rest, 1, RSTART - 1) descriptor
    rest = substr(rest, RSTART + RLENGTH)
  }
  n = split(line rest, token, /[ \t]+/)
  out = utterance
  for (i = 1; i <= n; i++) if (token[i] != "" && (w = words(utterance, token[i])) != "") { out = out " " w; n_words += split(w, unused, " ") }
  if (out == utterance) { count("utterances without words"); if (report != "") print "empty\t" utterance "\t" $0 > report }
  print out
}

END {
  if (report == "") exit
  print n_words + 0 "\twords" > report
  for (what in counts) print counts[what] "\t" what > report
}
