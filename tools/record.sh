#!/bin/sh
# record.sh FILE TEXT: writes TEXT to FILE only if FILE holds something else, so that FILE's modification time is that of a
# change.
mkdir -p "$(dirname "$1")"
[ -f "$1" ] && [ "$(cat "$1")" = "$2" ] || printf '%s\n' "$2" > "$1"
