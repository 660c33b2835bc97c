# index.awk - one table of all files of the corpus, whatever the layout of the folders.
#
#   find ROOT -type f | ROOT=ROOT LC_ALL=C awk -v corpus=wsj0|wsj1 -f index.awk > INDEX
#
# Lines "KEY<tab>DISC<tab>PATH". KEY: the path from wsj0/ or wsj1/ on, in lower case. DISC: 11_13_1, as index files write it, or "-".
# Met: ROOT/11-13.1/wsj0/..., 13_34.1 (LDC94S13B), csr_1/11-13.1/wsj0/... and csr_senn_d1/13_1.1/wsj1/... (packages from the web),
# ROOT/wsj0/... (no discs), ROOT = .../wsj0 itself or .../11-13.1, folders and files in upper case (13-16.1/WSJ1/SI_DT_20).

function is_disc(name) { return name ~ /^[0-9]+[-_.][0-9]+[-_.][0-9]+$/ }
function is_inner(name) { return name ~ /^(doc|trans|transcrp|s[id]_.*)$/ } # doc/indices/wsj1 is not wsj1
function disc_of(name) { gsub(/[-.]/, "_", name); return name }

BEGIN {
  OFS = "\t"
  root = ENVIRON["ROOT"] # -v would read backslashes as escapes
  n_root = split(root, part, "/")
  for (i = 1; i <= n_root; i++) if (is_disc(part[i])) root_disc = disc_of(part[i])
}

{
  n = split(tolower(substr($0, length(root) + 2)), part, "/")
  disc = root_disc == "" ? "-" : root_disc
  from = 0
  # The last wsj0 or wsj1 above the corpus's own folders: wsj0/11-13.1/wsj0/doc, csr_1_senn_d1/11-1.1/wsj0/si_tr_s.
  for (i = 1; i < n && !is_inner(part[i]); i++) {
    if (is_disc(part[i])) disc = disc_of(part[i])
    if (part[i] ~ /^wsj[01]$/) from = i
  }
  key = ""
  if (!from) { # ROOT is wsj0 itself: what follows the disc, if there is one
    key = corpus
    from = 1
    for (i = 1; i < n && !is_inner(part[i]); i++) if (is_disc(part[i])) from = i + 1
  }
  for (i = from; i <= n; i++) key = key (key == "" ? "" : "/") part[i]
  print key, disc, $0
}
