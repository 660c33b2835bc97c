#!/usr/bin/env bash
# Makes sounds without speech from Debian packages: music, effects and drums to train on, other music and typing to test with.
#
#   recipes/open/quiet.sh [--work exp/quiet] [--stage N] [--stop-stage N]
#
# Stages: 1 packages   2 sounds to train on: WORK/list and WORK/train/*.wav   3 sounds held out: WORK/held-out/*.wav
# Needs apt-get and sox (apt-get install sox libsox-fmt-all), and downloads 900 MB. Nothing is installed: the packages, mostly of
# games, are unpacked below WORK. No sound is used both for training and for tests. Cuts, levels and pauses come from a seed: the
# same packages make the same sounds (sox's dither is not repeatable, so it is off).
here=$(dirname "$0")
. "$here/../common.sh"

work=exp/quiet stage=1 stop_stage=3
flags=" " values=" work stage stop-stage linnet "
options "$@"
export LC_ALL=C

long="colobot-common-sounds extremetuxracer-data lincity-ng-data singularity-music lmms-common"
short="$long pingus-data hydrogen-data hydrogen-drumkits"
music="alienblaster-data amoebax-data gunroar-data hex-a-hop-data holotz-castle-data lugaru-data mu-cade-data noiz2sa-data
  parsec47-data powermanga-data rrootage-data starfighter-data supertux-data titanion-data torus-trooper-data tumiki-fighters-data
  val-and-rick-data wesnoth-1.16-music"
held_out="frozen-bubble-data xmoto-data bucklespring-data"
for program in sox soxi apt-get dpkg-deb; do
  command -v $program > /dev/null || die "$program is missing: apt-get install sox libsox-fmt-all; apt-get and dpkg-deb are Debian's"
done

# for awk: number(from, to), the same sequence in every awk
random='function number(from, to) { state = state * 16807 % 2147483647; return from + (to - from) * state / 2147483647 }
  BEGIN { state = 20261123 }'
# sounds PACKAGE...: lines SECONDS<tab>FILE
sounds() {
  (cd "$work/packages" && find "$@" -iname '*.ogg' -o -iname '*.wav' -o -iname '*.flac') | sort | while IFS= read -r file; do
    printf '%s\t%s\n' "$(soxi -D "$work/packages/$file" 2> /dev/null || echo 0)" "$file"
  done
}
# pieces NAME LEAST MOST PACKAGE...: of sounds of more than LEAST seconds at most the first MOST, in pieces of 4 to 15 s, at peaks of
# -3 to -38 dB: train/NAME-*.wav
pieces() {
  local name=$1 least=$2 most=$3 n=0 at long_s gain file
  shift 3
  sounds "$@" | awk -F '\t' -v least="$least" -v most="$most" "$random"' $1 > least {
    for (at = 0; $1 - at >= 4 && at < most; at += long) { long = number(4, 15); print at "\t" long "\t" number(-38, -3) "\t" $2 }
  }' > "$work/plan"
  while IFS=$'\t' read -r at long_s gain file; do
    n=$((n + 1))
    convert "$work/packages/$file" "$work/train/$name-$n.wav" trim "$at" "$long_s" gain -n "$gain" || true
  done < "$work/plan"
}
convert() { sox -D -V1 "$1" -r 16000 -b 16 -c 1 "${@:2}" 2> /dev/null; }

if wanted 1; then
  echo "== stage 1: packages"
  mkdir -p "$work/packages"
  (
    cd "$work/packages"
    for package in $short $music $held_out; do
      [ ! -d "$package" ] || continue
      apt-get -q download "$package" > /dev/null || die "apt-get download $package failed"
      dpkg-deb -x "${package}"_*.deb "$package.part" && rm "${package}"_*.deb && mv "$package.part" "$package"
    done
  )
fi

if wanted 2; then
  echo "== stage 2: sounds to train on"
  rm -rf "$work/train" "$work/short"
  mkdir -p "$work/train" "$work/short"
  # shellcheck disable=SC2086 # lists of words
  pieces piece 0 400 $long
  # shellcheck disable=SC2086
  pieces music 20 80 $music
  # short ones, fourteen after each other with pauses
  # shellcheck disable=SC2086
  sounds $short | awk -F '\t' "$random"' $1 > 0.005 && $1 < 4 {
    print number(-21, -1) "\t" (number(0, 1) < 0.7 ? number(0.02, 0.32) : number(0, 2)) "\t" $2
  }' > "$work/plan"
  k=0
  while IFS=$'\t' read -r gain pause file; do
    ! convert "$work/packages/$file" "$work/short/$k.wav" gain -n "$gain" pad 0 "$pause" || k=$((k + 1))
  done < "$work/plan"
  [ "$k" -gt 0 ] || die "$work/packages has no sounds"
  awk -v k="$k" "$random"' BEGIN {
    for (i = 0; i < 400; i++) {
      line = number(-31, -1)
      for (j = 0; j < 14; j++) line = line " " int(number(0, k))
      print line
    }
  }' > "$work/plan"
  n=0
  while read -r gain numbers; do
    n=$((n + 1)) files=()
    for j in $numbers; do files+=("$work/short/$j.wav"); done
    sox -D -V1 "${files[@]}" "$work/train/effects-$n.wav" gain -n "$gain" trim 0 15
  done < "$work/plan"
  rm -rf "$work/short" "$work/plan"
  (cd "$work" && find train -name '*.wav' -size +2k | sort) > "$work/list"
  echo "$work/list: $(wc -l < "$work/list") sounds"
fi

if wanted 3; then
  echo "== stage 3: sounds held out"
  rm -rf "$work/held-out" "$work/cut"
  mkdir -p "$work/held-out" "$work/cut"
  for package in frozen-bubble-data xmoto-data; do
    i=0
    while IFS=$'\t' read -r all file; do # thirty seconds of every piece of music
      [ "${all%.*}" -gt 50 ] || continue
      i=$((i + 1))
      convert "$work/packages/$file" "$work/cut/$package-$i.wav" trim 20 30 gain -n -6
    done < <(sounds $package)
    sox -V1 "$work/cut/$package"-*.wav "$work/held-out/music-${package%-data}.wav"
  done
  # a keyboard, 400 keys: press, hold, release, pause
  (cd "$work/packages" && find bucklespring-data -name '*-1.wav') | sort | sed 's/-1.wav$//' | awk "$random"' { key[NR] = $0 }
    END {
      for (i = 0; i < 400; i++)
        print key[1 + int(number(0, NR))], number(0, 0.03), number(0, 0.1) + (number(0, 1) < 0.06 ? number(0, 2) : 0)
    }' > "$work/plan"
  i=0 files=()
  while read -r key hold pause; do
    i=$((i + 1))
    convert "$work/packages/$key-1.wav" "$work/cut/press-$i.wav" pad 0 "$hold" &&
      convert "$work/packages/$key-0.wav" "$work/cut/release-$i.wav" pad 0 "$pause" || continue
    files+=("$work/cut/press-$i.wav" "$work/cut/release-$i.wav")
  done < "$work/plan"
  sox -D -V1 "${files[@]}" "$work/held-out/typing-near.wav" gain -n -1
  sox -D -V1 "$work/held-out/typing-near.wav" "$work/held-out/typing-far.wav" gain -20
  rm -rf "$work/cut" "$work/plan"
  for file in "$work"/held-out/*.wav; do echo "$file: $(soxi -D "$file") s"; done
fi
