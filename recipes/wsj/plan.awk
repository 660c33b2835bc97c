# plan.awk - where the utterances of a stand-in lie on its discs.
#
#   LC_ALL=C awk -F'\t' -v skipped=FILE -f plan.awk SOURCE > PLAN
#
# SOURCE: lines "ROLE<tab>SPEAKER<tab>SOUND<tab>WORDS", ROLE train, dev or test, in the order of roles and speakers.
# PLAN: lines "DISC<tab>PATH<tab>SOUND<tab>SET<tab>SPEAKER<tab>WORDS"; PATH, without its ending, is that of WSJ: wsj0/si_tr_s/010/010c0101.
# The first half of the training speakers is WSJ0, the others are WSJ1. Dev utterances are si_dt_20, every second one also si_dt_05;
# test utterances are si_et_20, every second one also si_et_05, every third one also November 1993, the next one its set of 5,000 words. Speaker 401 has three utterances
# of the first speaker.
# Utterances with tokens that are not upper-case words go to FILE.

function base36(n, digits,   text) {
  for (; digits > 0; digits--) { text = substr("0123456789abcdefghijklmnopqrstuvwxyz", n % 36 + 1, 1) text; n = int(n / 36) }
  return text
}
# The next name of an utterance of a speaker: 35 a session, from 0101 on.
function next_name(code, type,   k) {
  k = number[code, type]++
  return code type base36(int(k / 35) + 1, 2) base36(k % 35 + 1, 2)
}
function put(disc, folder, code, type, set,   name) {
  name = next_name(code, type)
  print disc, folder "/" code "/" name, $3, set, $2, $4
}

BEGIN { OFS = "\t"; first["wsj0"] = 36; first["wsj1"] = 6480; first["dev"] = 5904; first["test"] = 5328; first["eval93"] = 6048 }

# The first pass counts the training speakers.
NR == FNR { if ($1 == "train" && !(($2) in seen)) { seen[$2] = 1; n_train++ } next }

$4 !~ /^([A-Z']+[A-Z'.-]*)( [A-Z']+[A-Z'.-]*)*$/ || $4 ~ /-( |$)/ { print $3 "\t" $4 > skipped; next }
{
  if (!((role = $1, $2) in order)) order[role, $2] = speakers[role]++
  i = order[role, $2]
}
role == "train" && 2 * i < n_train {
  put("11-" i % 3 + 1 ".1", "wsj0/si_tr_s", base36(first["wsj0"] + i, 3), "c", "train0")
  if (i == 0 && n_401++ < 3) put("11-3.1", "wsj0/si_tr_s", "401", "c", "train0")
  next
}
role == "train" { put("13-" i % 3 + 1 ".1", "wsj1/si_tr_s", base36(first["wsj1"] + i, 3), "c", "train1"); next }
role == "dev" {
  put("13-16.1", "wsj1/si_dt_20", base36(first["dev"] + i, 3), "c", "dev20")
  if (n_dev++ % 2 == 0) put("13-16.1", "wsj1/si_dt_05", base36(first["dev"] + i, 3), "a", "dev05")
  next
}
role == "test" {
  put("11-14.1", "wsj0/si_et_20", base36(first["test"] + i, 3), "c", "eval92")
  if (n_test % 2 == 0) put("11-14.1", "wsj0/si_et_05", base36(first["test"] + i, 3), "a", "eval92_5k")
  if (n_test % 3 == 0) put("13-33.1", "wsj1/si_et_h1/wsj64k", base36(first["eval93"] + i, 3), "c", "eval93")
  if (n_test++ % 3 == 1) put("13-33.1", "wsj1/si_et_h2/wsj5k", base36(first["eval93"] + i, 3), "a", "eval93_5k")
}
