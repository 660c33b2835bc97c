#!/bin/sh
# record.sh FILE TEXT: writes TEXT to FILE if it is not what FILE holds, so that FILE's date tells when it last changed.
[ "$(cat "$1" 2>/dev/null)" = "$2" ] || printf '%s\n' "$2" > "$1"
