# [native] linnet devices: its output with a sound server, without one, without PortAudio.
. tests/app/common.sh
. tests/app/virtual_mic.sh
trap 'virtual_mic_stop; chmod -R u+w "$tmp" 2> /dev/null; rm -rf "$tmp"' EXIT

# No PortAudio: a reason and what to do, on standard error and in the JSON object.
LINNET_PORTAUDIO=libnothing.so
export LINNET_PORTAUDIO
refused "no PortAudio" 1 "no microphone without PortAudio: libnothing.so" devices
has "no PortAudio: what to do" "$err" "apt-get install libportaudio2"
exits "no PortAudio" 1 run devices --json
has "no PortAudio: JSON" "$out" '{"devices": [], "why_none": "no microphone without PortAudio: libnothing.so'
is "no PortAudio: one line of JSON" 1 "$(printf '%s\n' "$out" | wc -l | tr -d ' ')"
unset LINNET_PORTAUDIO
refused "an operand" 2 "devices: unexpected argument 'x'" devices x

# Simulates a machine without sound: no server answers in an empty folder, and ALSA is configured with a card that does not exist.
mkdir "$tmp/empty" "$tmp/none"
echo 'pcm.none { type hw card 31 }' > "$tmp/none/asound.conf"
(
    HOME=$tmp/empty XDG_RUNTIME_DIR=$tmp/empty ALSA_CONFIG_PATH=$tmp/none/asound.conf PULSE_SERVER=$tmp/none/socket
    JACK_DEFAULT_SERVER=linnet-test-none
    export HOME XDG_RUNTIME_DIR ALSA_CONFIG_PATH PULSE_SERVER JACK_DEFAULT_SERVER
    "$LINNET" devices > "$tmp/out" 2> "$tmp/err"
    echo $? > "$tmp/status"
)
is "no sound system: status" 1 "$(cat "$tmp/status")"
is "no sound system: nothing on standard output" "" "$(cat "$tmp/out")"
is "no sound system: one line, and none of the libraries'" 1 "$(wc -l < "$tmp/err" | tr -d ' ')"
has "no sound system: said" "$(cat "$tmp/err")" "linnet: no microphone: "

ALSA_CONFIG_PATH=$tmp/nothing "$LINNET" devices > "$tmp/out" 2>&1
status=$?
case $status in 0|1) pass ;; *) fail "ALSA without a configuration" "status $status" ;; esac

# Standard error is restored afterwards, also if it was closed.
"$LINNET" devices > "$tmp/out" 2>&-
case $? in 0|1) pass ;; *) fail "a closed standard error" "status $?" ;; esac
is "a closed standard error: nothing strays into standard output" "" "$(grep -iE 'alsa|jack|expression|linnet:' "$tmp/out")"

if ! virtual_mic_start 16000; then
    echo "skipped: no virtual microphone: $virtual_mic_why"
    finish
    exit
fi
exits "a list" 0 run devices
is "a list: nothing else" "" "$err"
list=$out
is "a list: one default" 1 "$(printf '%s\n' "$list" | grep -c '^\* ')"
has "a list: the default device" "$(printf '%s\n' "$list" | grep '^\* ')" "default"
is "a list: rates, channels and systems" "" \
    "$(printf '%s\n' "$list" | grep -vE '^[* ] [0-9]+ +.* [0-9]+ Hz +[0-9]+ channels? +[A-Za-z]')"
has "a list: a source by its name" "$list" "Monitor of Null Output (spk16000.monitor)   16000 Hz  1 channel     PulseAudio"
is "without libpulse: no source" "$(printf '%s\n' "$list" | grep -v PulseAudio | tr -s ' ')" "$(LINNET_PULSE= "$LINNET" devices | tr -s ' ')"
is "without libpulse: no source" "$(printf '%s\n' "$list" | grep -v PulseAudio | tr -s ' ')" "$(LINNET_PULSE=libnothing.so "$LINNET" devices | tr -s ' ')"
exits "JSON" 0 run devices --json
has "JSON: the default" "$out" '"name": "default", "system": "ALSA", "rate_hz": 44100, "channels": '
is "JSON: as many" "$(printf '%s\n' "$list" | wc -l)" "$(printf '%s' "$out" | grep -o '"index": ' | wc -l)"
is "JSON: one default" 1 "$(printf '%s' "$out" | grep -o '"default": true' | wc -l | tr -d ' ')"
has "JSON: no reason" "$out" '"why_none": ""}'
if command -v python3 > /dev/null; then
    ok "JSON is JSON" sh -c 'printf "%s" "$1" | python3 -m json.tool' - "$out"
fi
virtual_mic_kill
exits "the server died" 1 run devices
has "the server died: said" "$err" "linnet: no microphone: "
is "the server died: one line" 1 "$(printf '%s\n' "$err" | wc -l | tr -d ' ')"
finish
