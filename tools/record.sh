#!/bin/sh
# record.sh FILE TEXT: writes TEXT to FILE unless FILE holds it already, so that FILE's modification time is that of the last change.
mkdir -p "$(dirname "$1")"
[ -f "$1" ] && [ "$(cat "$1")" = "$2" ] || printf '%s\n' "$2" > "$1"
