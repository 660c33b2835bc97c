#!/usr/bin/env python3
"""What Whisper writes for each utterance of a data directory, for words_peers.sh: faster-whisper as it is used, on one CPU thread.

usage: whisper_words.py --model FOLDER --data DIR --output FILE [--beam 5]

FOLDER  a Whisper model as CTranslate2 has it
DIR     wav.scp has lines "NAME PATH"
FILE    lines of the utterance's name and the text, with a tab between; spoken.py makes words of it
All settings are the package's but the language, English: windows of 30 s, temperatures that rise where a text repeats itself.
"""
import argparse
import os

from faster_whisper import WhisperModel


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("model", "data", "output"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--beam", type=int, default=5)
    o = parser.parse_args()
    whisper = WhisperModel(o.model, device="cpu", compute_type="int8", cpu_threads=1)
    with open(os.path.join(o.data, "wav.scp"), encoding="utf8") as files, open(o.output, "w", encoding="utf8") as out:
        for line in files:
            name, path = line.split(None, 1)
            heard, _ = whisper.transcribe(path.strip(), language="en", beam_size=o.beam)
            out.write(name + "\t" + " ".join(" ".join(part.text for part in heard).split()) + "\n")


if __name__ == "__main__":
    main()
