#!/usr/bin/env bash
# Recorded speech for trying another language: the prompts of Asterisk, a telephone exchange, from Debian (packages
# asterisk-core-sounds-LANGUAGE, CC BY-SA 3.0, one speaker per language, 15 to 30 minutes), and a pronouncing dictionary of their
# words by espeak-ng. Needs apt-get, dpkg-deb, ffmpeg and espeak-ng.
#
#   recipes/language/prompts.sh --language ru --out ru
#
# Writes OUT/train and OUT/dev (every tenth prompt), OUT/wav and OUT/words.dict. --language: ru, it, es or fr.
here=$(dirname "$0")
. "$here/../common.sh"
flags=" " values=" language out linnet "
language=ru out='' work=.
options "$@"
[ -n "$out" ] || out=$language
for tool in apt-get dpkg-deb ffmpeg espeak-ng; do command -v $tool > /dev/null || die "$tool is missing"; done
export LC_ALL=C.UTF-8
mkdir -p "$out/wav" "$out/packages" "$out/train" "$out/dev"
(cd "$out/packages" && apt-get -q download "asterisk-core-sounds-$language" "asterisk-core-sounds-$language-g722" &&
  for package in *.deb; do dpkg-deb -x "$package" .; done)
sounds=$(echo "$out"/packages/usr/share/asterisk/sounds/"$language"*)
# Lines "name: text"; texts with digits, Latin letters in another script, or remarks in brackets are left out.
foreign='[0-9\[]'; [ "$language" != ru ] || foreign='[0-9\[A-Za-z]'
zcat "$out/packages/usr/share/doc/asterisk-core-sounds-$language/core-sounds-$language.txt.gz" | tr -d '\r' |
  awk -v foreign="$foreign" '/^;/ || !/: / { next } { id = $1; sub(/:$/, "", id); text = $0; sub(/^[^:]*: */, "", text)
    if (text == "" || text ~ foreign) next; name = id; gsub("/", "-", name); print name "\t" id "\t" text }' > "$out/list"
rm -f "$out"/train/* "$out"/dev/*
n=0
while IFS=$'\t' read -r name id text; do
  [ -f "$sounds/$id.g722" ] || continue
  ffmpeg -nostdin -loglevel error -y -f g722 -i "$sounds/$id.g722" "$out/wav/$name.wav"
  n=$((n + 1)) set=train
  [ $((n % 10)) != 0 ] || set=dev
  echo "$name wav/$name.wav" >> "$out/$set/wav.scp"
  echo "$name $text" >> "$out/$set/text"
  echo "$name $language" >> "$out/$set/utt2spk"
done < "$out/list"
# Its symbols u" and ɪ^ are not of the IPA; marks between words and languages are dropped.
cut -f3 "$out/list" | grep -oE "[[:alpha:]]+(['’-][[:alpha:]]+)*" | sed 's/.*/\L&/' | sort -u | while read -r word; do
  echo "$word $(espeak-ng -v "$language" -q --ipa --sep=' ' "$word" < /dev/null | tr '\n' ' ')"
done | sed 's/([a-z-]*)//g; s/u"/ʉ/g; s/ɪ^/ɪ/g; s/[-_]\+\( \|$\)/ /g; s/  */ /g; s/ $//' > "$out/words.dict"
echo "$out: $(wc -l < "$out/train/text") and $(wc -l < "$out/dev/text") prompts, $(wc -l < "$out/words.dict") words"
