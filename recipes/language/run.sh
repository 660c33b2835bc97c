#!/usr/bin/env bash
# A streaming recogniser and an aligner in a new language, from sounds, texts and a pronouncing dictionary (docs/languages.md). It makes
# the folder of the language, WORK/CODE, for --language of every command of linnet: model, dictionary, rules, language model.
#
#   recipes/language/run.sh --language de --lexicon de.dict --common-voice cv-corpus-13.0/de --work exp/de
#   recipes/language/run.sh --language ru --lexicon ru.dict --data ru --work exp/ru
#   linnet transcribe --words --language exp/ru/ru talk.flac
#
#   --language CODE       its code, which is stored in the model; without one the folder is WORK/language
#   --lexicon DICT        a word and its phones, with blanks between them, on each line; the phone set comes from it
#   --data DIR            DIR/train and DIR/dev, and DIR/test if there is one: wav.scp, text, and utt2spk if speakers are known
#   --common-voice DIR    instead: train.tsv, dev.tsv and test.tsv of Common Voice, with the sounds in DIR/clips
#   --audio-root DIR      folder that the paths in wav.scp are relative to (the folder of --data)
#   --phones FILE         the phone set, if it is not that of the lexicon
#   --numbers RULES       how digits in texts are read: de, es, en, a file; none: they are reported as errors. If not given, the
#                         rules installed for the language, if any
#   --conf FILE           network and training (recipes/language/small.conf)
#   --speed N,N,...       speeds at which the training speech is used (0.9,1,1.1)
#   --go-on               train even if linnet validate finds errors
#   --stage N, --stop-stage N   1 data, 2 rules and validation, 3 features, 4 training, 5 alignment, 6 words and error rates
#   --device cpu|cuda, --threads N, --linnet PROGRAM
here=$(dirname "$0")
. "$here/../common.sh"
flags=" go-on " values=" language lexicon data common-voice audio-root phones numbers conf speed stage stop-stage work device threads linnet "
work=exp/language conf=$here/small.conf speed=0.9,1,1.1 stage=1 stop_stage=6
language='' lexicon='' data='' common_voice='' audio_root='' phones='' numbers='' go_on=''
options "$@"
[ -n "$lexicon" ] || die "--lexicon names the pronouncing dictionary"
[ -n "$data$common_voice" ] || die "--data or --common-voice names the speech"
[ -n "$data" ] || data=$work/data
if [ -z "$audio_root" ]; then audio_root=$data; [ -z "$common_voice" ] || audio_root=$common_voice/clips; fi
[[ ${language:-aa} =~ ^[a-z]{2,3}(-[A-Za-z0-9-]+)?$ ]] || die "--language is a code of two or three letters, such as de, not '$language'"
set_of=(); [ -z "$phones" ] || set_of=(--phones "$phones")
numbers_of=(); [ -z "$numbers" ] || numbers_of=(--numbers "$numbers")
stack=$(sed -n 's/^stack *= *//p' "$conf")
folder=$work/${language:-language}
case $folder in */*) ;; *) folder=./$folder ;; esac
of=(--audio-root "$audio_root" --language "$folder")
unset LINNET_MODEL LINNET_LEXICON LINNET_LM LINNET_G2P LINNET_NUMBERS # the files of the folder are used

if wanted 1 && [ -n "$common_voice" ]; then
  for set in train dev test; do
    [ -f "$common_voice/$set.tsv" ] || continue
    mkdir -p "$data/$set"
    # Columns by their names: client_id, path, sentence. A client may be an empty field; then the clip is its own speaker.
    LC_ALL=C awk -F'\t' -v out="$data/$set" '
      NR == 1 { sub(/\r$/, ""); for (i = 1; i <= NF; i++) at[$i] = i; if (!at["path"] || !at["sentence"]) exit 1; next }
      { sub(/\r$/, ""); id = $at["path"]; sub(/\.[a-z0-9]*$/, "", id); text = $at["sentence"]
        speaker = substr($at["client_id"], 1, 16); if (speaker == "") speaker = id
        print id, $at["path"] > (out "/wav.scp"); print id, text > (out "/text"); print id, speaker > (out "/utt2spk") }' \
      "$common_voice/$set.tsv" || die "$common_voice/$set.tsv has no columns path and sentence"
  done
fi
sets=()
for set in train dev test; do [ ! -f "$data/$set/wav.scp" ] || sets+=("$set"); done
[ "${sets[*]:0:2}" = "train dev" ] || die "$data needs train/wav.scp and dev/wav.scp"

if wanted 2; then
  for file in "$lexicon" "$phones" "$numbers"; do
    [ ! -f "$file" ] || [ ! "$(dirname "$file")" -ef "$folder" ] || die "$file is in $folder, which is made anew; move it elsewhere"
  done
  mkdir -p "$folder" && rm -f "$folder"/{words.dict,words.dict.gz,added.dict,phones.txt,numbers.txt}
  packed=; ! gzip -t "$lexicon" 2> /dev/null || packed=.gz
  cp "$lexicon" "$folder/words.dict$packed"
  [ ! -f "$phones" ] || [[ $phones = *.safetensors ]] || cp "$phones" "$folder/phones.txt"
  for file in "$numbers" "$here/../../share/linnet/$numbers/numbers.txt"; do
    [ ! -f "$file" ] || { cp "$file" "$folder/numbers.txt" && break; }
  done
  "$linnet" g2p "${set_of[@]}" "$lexicon" -o "$folder/words.g2p"
  for set in "${sets[@]}"; do
    "$linnet" validate "$data/$set" "${of[@]}" "${set_of[@]}" "${numbers_of[@]}" --stack "$stack" ||
      [ -n "$go_on" ] || die "correct that, or give --go-on; nothing was trained"
  done
fi

if wanted 3; then
  for set in "${sets[@]}"; do
    speeds=1; [ "$set" != train ] || speeds=$speed
    rm -f "$work/$set.lfc" # exit status 1: some utterances were reported and left out
    "$linnet" prepare "$data/$set" "${of[@]}" "${set_of[@]}" "${numbers_of[@]}" --stack "$stack" --speed "$speeds" --jobs "$threads" \
      --oov "$work/$set.oov" -o "$work/$set.lfc" || [ -f "$work/$set.lfc" ] || die "no features of $set"
  done
fi

if wanted 4; then
  resume=(); [ ! -f "$work/run/checkpoint.safetensors" ] || resume=(--resume)
  "$linnet" train "$conf" --train "$work/train.lfc" --dev "$work/dev.lfc" --folder "$work/run" --device "$device" --threads "$threads" \
    "${resume[@]}"
  cp "$work/run/best.safetensors" "$folder/default.safetensors"
fi

if wanted 5; then
  # Check texts that the model does not find in their sounds before the next training.
  "$linnet" validate "$data/train" "${of[@]}" -m default "${numbers_of[@]}" --device "$device" -o "$work/train.fit" || true
  for set in "${sets[@]}"; do
    "$linnet" align --data "$data/$set" "${of[@]}" "${numbers_of[@]}" --device "$device" -f textgrid --output-dir "$work/aligned/$set" -q ||
      echo "run.sh: some texts of $set cannot be those of their sounds; the others are in $work/aligned/$set" >&2
  done
fi

if wanted 6; then
  # plain SET: its texts without names and punctuation. In some locales, bracket expressions cannot hold characters outside ASCII.
  plain() {
    sed 's/^[^ \t]*//; s/[.,;:!?"()]/ /g; s/«/ /g; s/»/ /g; s/„/ /g; s/“/ /g; s/”/ /g; s/…/ /g; s/ - / /g; s/ – / /g; s/ — / /g' \
      "$data/$1/text"
  }
  # Words of the texts that the lexicon lacks are recognised too, with the rules' pronunciations.
  [ ! -s "$work/train.oov" ] || cut -f1,4 "$work/train.oov" > "$folder/added.dict"
  plain train | "$linnet" ngram count --order 3 --lower -q - -o "$folder/words.lm"
  for set in "${sets[@]:1}"; do
    "$linnet" transcribe --data "$data/$set" "${of[@]}" --device "$device" -f trn -q -o "$work/$set.phones.trn"
    "$linnet" phonemize --language "$folder" "${set_of[@]}" "${numbers_of[@]}" --ids first --trn "$data/$set/text" -q -o "$work/$set.ref.trn"
    "$linnet" transcribe --data "$data/$set" "${of[@]}" --device "$device" --words -f trn -q -o "$work/$set.words.trn"
    paste -d ' ' <(awk '{ print $1 }' "$data/$set/text") <(plain "$set") > "$work/$set.text"
    for unit in phones words; do
      ref=$work/$set.ref.trn; [ $unit = phones ] || ref=$work/$set.text
      options=(--unit "$unit"); [ $unit = words ] || options+=(--language "$folder")
      "$linnet" score "${options[@]}" "$ref" "$work/$set.$unit.trn" > "$work/$set.$unit.txt"
      echo "$set: $(tail -n 1 "$work/$set.$unit.txt")"
    done
  done
  echo "the language is in $folder: $linnet transcribe --words --language $folder FILE"
fi
