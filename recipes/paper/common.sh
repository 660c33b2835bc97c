# common.sh - sourced by the experiments of this folder: options, messages, plots, the head of a page of results.
#
#   flags=" quick causal " values=" work device threads linnet ... "    which options a script has; its defaults are variables
#   options "$@"                                                        --quick sets quick=yes, --work DIR sets work=DIR
# The script's opening comment is its --help.
set -euo pipefail

device=auto threads=0 linnet=build/release/linnet quick=
command="$0${*:+ $*}"
trap 'exit 130' INT TERM # after the command that is running, which ends by itself
die() { echo "$(basename "$0"): $*" >&2; exit 1; }

options() {
  local name
  while [ $# -gt 0 ]; do
    name=${1#--}
    case $1 in
      --help) sed -n '2,/^[^#]/p' "$0" | sed '/^[^#]/d; s/^# \{0,1\}//'; exit 0 ;;
      --?*) ;;
      *) die "unexpected argument '$1'; --help lists the options" ;;
    esac
    if [[ $flags == *" $name "* ]]; then declare -g "${name//-/_}=yes"; shift
    elif [[ $values == *" $name "* ]]; then
      [ $# -ge 2 ] || die "$1 needs a value"
      declare -g "${name//-/_}=$2"; shift 2
    elif [[ ${lists:-} == *" $name "* ]]; then
      [ $# -ge 2 ] || die "$1 needs a value"
      eval "${name//-/_}+=(\"\$2\")"; shift 2
    else die "unknown option $1; --help lists them"; fi
  done
  [ -x "$linnet" ] || die "$linnet does not exist; run make first, or give --linnet PROGRAM"
  mkdir -p "$work"
}

# 1..9 and whole: is_count VALUE OPTION
is_count() { [[ $1 =~ ^[1-9][0-9]*$ ]] || die "$2 is a number from 1 up, not '$1'"; }

commit() {
  local id
  id=$(git rev-parse --short HEAD 2> /dev/null) || { echo unknown; return; }
  git diff --quiet HEAD 2> /dev/null || id="$id with changes"
  echo "$id"
}

# head_of_results TITLE: what every page of results begins with
head_of_results() {
  local cpu
  cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2> /dev/null | head -n 1)
  echo "# $1"
  echo
  echo "    $command"
  echo
  echo "| | |"
  echo "|---|---|"
  echo "| date | $(date -u +%F) |"
  echo "| program | $("$linnet" --version | head -n 1), commit $(commit) |"
  echo "| processor | ${cpu:-unknown}, $(nproc) cores |"
  echo "| device | $device |"
  echo "| form | $([ -n "$quick" ] && echo 'quick: a small form that tests the recipe' || { [ -n "${reduced:-}" ] && echo reduced || echo full; }) |"
  echo
}

# pivot TABLE ROW COLUMN VALUE FACTOR FORMAT: a markdown table of a column of a table, one row for each ROW, one column for each COLUMN.
# Of several values in a cell, the mean. Comment lines begin with #.
pivot() {
  LC_ALL=C awk -F'\t' -v row="$2" -v column="$3" -v value="$4" -v factor="$5" -v format="$6" '
    /^#/ || !NF { next }
    !headed { for (i = 1; i <= NF; i++) at[$i] = i; headed = 1; next }
    { r = $at[row]; c = $at[column]
      if (!(r in rows)) { rows[r] = 1; row_names[++R] = r }
      if (!(c in columns)) { columns[c] = 1; column_names[++C] = c }
      if ($at[value] != "-" && $at[value] != "") { sum[r, c] += $at[value]; n[r, c]++ } }
    END {
      printf "| %s |", row; for (j = 1; j <= C; j++) printf " %s |", column_names[j]; print ""
      printf "|---|"; for (j = 1; j <= C; j++) printf "---|"; print ""
      for (i = 1; i <= R; i++) {
        printf "| %s |", row_names[i]
        for (j = 1; j <= C; j++) {
          k = row_names[i] SUBSEP column_names[j]
          if (n[k]) printf " " format " |", sum[k] / n[k] * factor; else printf " - |"
        }
        print ""
      }
    }' "$1"
}
