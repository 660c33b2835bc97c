# [native release] tools/deps.sh on a fake Debian: it installs only what is missing, as root or through sudo, or prints what to do.
. tests/app/common.sh

deps=$PWD/tools/deps.sh
fake=$tmp/bin
mkdir "$fake"
for t in env cat sh echo uname install rm; do ln -s "$(command -v $t)" "$fake/$t"; done
pretend() { printf '#!/bin/sh\n%s\n' "$2" > "$fake/$1"; chmod 755 "$fake/$1"; }
# $tmp/installed lists the packages that count as installed.
pretend dpkg-query 'for p; do :; done; grep -qx "$p" "'"$tmp"'/installed" && echo "install ok installed"'
sed -i 's|^#!/bin/sh$|#!/bin/sh\nPATH=/usr/bin:/bin|' "$fake/dpkg-query"
pretend apt-get 'echo "apt-get $*" >> "'"$tmp"'/calls"; exit ${APT_STATUS:-0}'
pretend id 'echo "$FAKE_UID"'
try() { : > "$tmp/calls"; out=$(PATH=$fake "$fake/sh" "$deps" "$@" 2>&1); status=$?; calls=$("$fake/cat" "$tmp/calls"); }

all='gcc g++ make pkg-config libsndfile1-dev libkissfft-dev libsoxr-dev libcjson-dev libutf8proc-dev zlib1g-dev portaudio19-dev libwebsockets-dev libopus-dev libogg-dev check libopenmpi-dev openmpi-bin pocketsphinx-testdata nginx ffmpeg pulseaudio pulseaudio-utils libasound2-plugins'
echo $all | tr ' ' '\n' > "$tmp/installed"
FAKE_UID=0
export FAKE_UID
exits "nothing is missing" 0 try build check
is "nothing is missing: apt does not run" "" "$calls"
is "nothing is missing: not a word" "" "$out"

grep -vE '^(check|libsoxr-dev)$' "$tmp/installed" > "$tmp/some" && mv "$tmp/some" "$tmp/installed"
exits "as root" 0 try build check
has "as root: says what it installs" "$out" "installing: libsoxr-dev check"
has "as root: says how" "$out" "running:    apt-get"
has "as root: installs just that" "$calls" " libsoxr-dev check"
has "as root: waits for apt's lock" "$calls" "DPkg::Lock::Timeout"
hasnt "as root: not what is there" "$calls" libsndfile1-dev
try build
hasnt "only the requested groups" "$calls" " check"
try standin
has "the stand-in's programs" "$calls" " flite ncompress"
try page
has "a browser for check-page" "$calls" " chromium-headless-shell"
try wasm
has "the compiler for WebAssembly" "$calls" " emscripten"

grep -v '^pulseaudio$' "$tmp/installed" > "$tmp/some" && mv "$tmp/some" "$tmp/installed"
try check
has "no sound server: one for the tests" "$calls" " pulseaudio"
pretend pipewire ''
try check
hasnt "beside PipeWire no PulseAudio" "$calls" pulseaudio
rm "$fake/pipewire"
echo pulseaudio >> "$tmp/installed"

# nginx is for a test, which starts it: not its service.
grep -v '^nginx$' "$tmp/installed" > "$tmp/some" && mv "$tmp/some" "$tmp/installed"
pretend apt-get 'echo "apt-get $*" >> "'"$tmp"'/calls"; "'"$tmp"'/policy-rc.d" nginx start || echo "services: $?" >> "'"$tmp"'/calls"'
pretend systemctl 'echo "systemctl $*" >> "'"$tmp"'/calls"'
export DEPS_POLICY=$tmp/policy-rc.d
try check
has "nginx is installed" "$calls" " nginx"
has "nginx: no service is started meanwhile" "$(printf '%s' "$calls" | tail -n 2)" "services: 101"
has "nginx: nor with the system" "$calls" "systemctl disable --quiet nginx"
ok "nginx: other services are as before" test ! -e "$tmp/policy-rc.d"
rm "$fake/systemctl"
echo nginx >> "$tmp/installed"
pretend apt-get 'echo "apt-get $*" >> "'"$tmp"'/calls"; exit ${APT_STATUS:-0}'

FAKE_UID=1000
exits "neither root nor sudo" 1 try build check
has "neither root nor sudo: what to do" "$out" "libsoxr-dev check
This needs root"
is "neither root nor sudo: apt does not run" "" "$calls"
pretend sudo 'echo "sudo $*" >> "'"$tmp"'/calls"; exec "$@"'
exits "through sudo" 0 try build check
has "through sudo" "$calls" "sudo env DEBIAN_FRONTEND=noninteractive apt-get"

APT_STATUS=100
export APT_STATUS
exits "apt fails" 1 try build check
has "apt fails: reported" "$out" "could not install: libsoxr-dev check"
unset APT_STATUS

rm "$fake/dpkg-query"
pretend pkg-config 'exit 1'
exits "not Debian" 1 try build check
has "not Debian: what to do" "$out" "This system's package manager is not known"
is "not Debian: apt does not run" "" "$calls"
pretend pkg-config 'exit 0'
exits "not Debian, all there" 0 try build check

# Other systems: their names, without installing.
for s in fedora:dnf:kiss-fft-devel arch:pacman:kissfft homebrew:brew:libsndfile; do
    names=${s#*:}
    export DEPS_SYSTEM=${s%%:*}
    exits "$DEPS_SYSTEM" 0 try --dry-run build check
    has "$DEPS_SYSTEM: its package manager" "$out" "${names%:*}"
    has "$DEPS_SYSTEM: its names" "$out" " ${names#*:} "
done
unset DEPS_SYSTEM

# record.sh: a file's modification time changes only when its content changes.
"tools/record.sh" "$tmp/flags" "gcc -O2"
touch -d '2001-01-01' "$tmp/flags"
"tools/record.sh" "$tmp/flags" "gcc -O2"
is "the same flags do not touch the record" 2001 "$(date -r "$tmp/flags" +%Y)"
"tools/record.sh" "$tmp/flags" "gcc -O3"
is "other flags renew it" "gcc -O3" "$(cat "$tmp/flags")"
finish
