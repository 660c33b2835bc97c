# virtual_mic.sh - a microphone without sound hardware, for tests: PulseAudio with a null sink for each rate. ALSA's default device,
# which PortAudio opens, records the sink's monitor: what is played is recorded bit for bit, in real time. Sourced.
#
#   virtual_mic_start [RATE...] || { echo "skipped: $virtual_mic_why"; finish; exit; }     16000 where no rate is given
#   virtual_mic_use RATE                   programs started from now on record this rate's sink (the first one until then)
#   virtual_mic_play FILE [RATE]           plays a sound file to its end; waits
#   virtual_mic_play_raw FILE RATE         the same for s16le without a header, one channel
#   virtual_mic_stalled                    programs started from now on record a source that never delivers samples
#   virtual_mic_unplug RATE                this sink and its monitor disappear
#   virtual_mic_kill                       kills the sound server
#   virtual_mic_stop                       stops it; it also stops when the process $VIRTUAL_MIC_OWNER (this shell) ends
#
# While it runs, HOME and XDG_RUNTIME_DIR are a temporary folder: it touches no other server and no user settings.

# For programs built with sanitizers: PulseAudio's client and ALSA's plugin for it leak a little at each opening, and pass memory
# between their threads in ways that ThreadSanitizer does not see. FILE: where to note that.
virtual_mic_tolerate() {
    printf 'race:libpulse\nrace:libportaudio\nrace:libasound\nmutex:libpulse\n' > "$1"
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
    export TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}suppressions=$1"
}

virtual_mic_start() {
    virtual_mic_why=
    [ "${CONFIG:-release}" != arm64 ] || { virtual_mic_why="the arm64 libraries have no plugin of ALSA for it"; return 1; }
    for t in pulseaudio pactl paplay pacat; do
        command -v $t > /dev/null 2>&1 || { virtual_mic_why="$t is not installed"; return 1; }
    done
    [ $# -gt 0 ] || set -- 16000
    virtual_mic_home=$(mktemp -d) || { virtual_mic_why="no temporary folder"; return 1; }
    virtual_mic_old_home=$HOME virtual_mic_old_runtime=${XDG_RUNTIME_DIR-}
    unset PULSE_SERVER PULSE_SINK PULSE_SOURCE PULSE_RUNTIME_PATH PULSE_CONFIG_PATH PULSE_STATE_PATH
    unset DISPLAY DBUS_SESSION_BUS_ADDRESS
    export HOME="$virtual_mic_home" XDG_RUNTIME_DIR="$virtual_mic_home"
    virtual_mic_tolerate "$HOME/tsan"
    # A client that finds no server does not start one.
    mkdir -p "$HOME/.config/pulse"
    echo 'autospawn = no' > "$HOME/.config/pulse/client.conf"
    printf 'pcm.!default { type pulse }\nctl.!default { type pulse }\n' > "$HOME/.asoundrc"
    {
        # norewinds: without it the first sound arrives after two seconds.
        for rate; do echo "load-module module-null-sink sink_name=spk$rate format=s16le rate=$rate channels=1 norewinds=1"; done
        printf 'set-default-sink spk%s\nset-default-source spk%s.monitor\n' "$1" "$1"
        echo 'load-module module-native-protocol-unix auth-anonymous=1'
    } > "$HOME/mic.pa"
    pulseaudio -n -F "$HOME/mic.pa" --daemonize=no --exit-idle-time=-1 --disable-shm=yes --use-pid-file=no \
        --log-target=file:"$HOME/log" > /dev/null 2>&1 &
    virtual_mic_pid=$!
    echo "$virtual_mic_pid" > "$HOME/pid"
    (
        # The daemon stops and its folder is removed when the owner process ends.
        exec > /dev/null 2>&1
        owner=${VIRTUAL_MIC_OWNER:-$$}
        while kill -0 "$owner" && kill -0 "$virtual_mic_pid"; do sleep 0.5; done
        kill "$virtual_mic_pid"
        kill -0 "$owner" || rm -rf "$virtual_mic_home"
    ) &
    for i in $(seq 500); do
        pactl info > "$HOME/info" 2>&1 && return 0
        kill -0 "$virtual_mic_pid" 2> /dev/null || break
        sleep 0.25
    done
    virtual_mic_why="PulseAudio does not start: $(tail -n 1 "$HOME/log" "$HOME/info" 2> /dev/null | tr '\n' ' ')"
    virtual_mic_stop
    return 1
}

virtual_mic_use() { pactl set-default-source "spk$1.monitor"; }

virtual_mic_play() { paplay --device="spk${2:-16000}" "$1"; }

virtual_mic_play_raw() { pacat --playback --raw --format=s16le --channels=1 --rate="$2" --device="spk$2" "$1"; }

virtual_mic_stalled() {
    pactl load-module module-pipe-source source_name=dry file="$HOME/dry" format=s16le rate=16000 channels=1 > /dev/null &&
        pactl set-default-source dry
}

virtual_mic_unplug() {
    pactl unload-module "$(pactl list short modules | awk -v sink="sink_name=spk$1 " 'index($0, sink) { print $1 }')"
}

virtual_mic_kill() {
    kill -9 "$(cat "$HOME/pid")"
    while kill -0 "$(cat "$HOME/pid")" 2> /dev/null; do sleep 0.05; done
}

virtual_mic_stop() {
    [ -n "${virtual_mic_home-}" ] || return 0
    virtual_mic_pid=$(cat "$virtual_mic_home/pid" 2> /dev/null)
    if [ -n "$virtual_mic_pid" ] && kill "$virtual_mic_pid" 2> /dev/null; then
        kill -CONT "$virtual_mic_pid" 2> /dev/null
        # Wait for the daemon to end before its folder is removed; it would make the folder again.
        for i in $(seq 100); do
            kill -0 "$virtual_mic_pid" 2> /dev/null || break
            [ $i -lt 100 ] || kill -9 "$virtual_mic_pid" 2> /dev/null
            sleep 0.1
        done
    fi
    export HOME="$virtual_mic_old_home"
    if [ -n "${virtual_mic_old_runtime-}" ]; then XDG_RUNTIME_DIR=$virtual_mic_old_runtime; else unset XDG_RUNTIME_DIR; fi
    rm -rf "$virtual_mic_home"
    virtual_mic_home=
}
