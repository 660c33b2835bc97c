#!/usr/bin/env python3
"""Labels for labelled.sh: what Whisper, a teacher, hears in the utterances of a data directory; goes on where it was stopped.

usage: label.py --model FOLDER --data DIR --output FILE [--threads 1]

FOLDER  a Whisper model as CTranslate2 has it (base was used); needs the Python package faster-whisper
DIR     wav.scp has lines "NAME PATH"; utterances of up to 30 s
FILE    lines of the utterance's name, seconds, the mean log-probability of a token, the probability that nobody speaks, and the text

The encoder sees the sound and 2 s of silence, at least 12 s, instead of 30: a third of the time. So short it repeats itself, hence no
three tokens come twice. LOG.md has the error rates.
"""
import argparse
import os

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.audio import decode_audio
from faster_whisper.tokenizer import Tokenizer

RATE, SHORTEST, PAUSE, LONGEST, FRAMES = 16000, 12, 2, 30, 100  # Hz, seconds, frames a second


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("model", "data", "output"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--threads", type=int, default=1)
    o = parser.parse_args()
    whisper = WhisperModel(o.model, device="cpu", compute_type="int8", cpu_threads=o.threads)
    tokens = Tokenizer(whisper.hf_tokenizer, True, task="transcribe", language="en")
    prompt = [tokens.sot, tokens.language, tokens.transcribe, tokens.no_timestamps]
    done = set()
    if os.path.exists(o.output):
        done = {line.split("\t")[0] for line in open(o.output, encoding="utf8")}
    with open(o.output, "a", encoding="utf8") as out:
        for line in open(os.path.join(o.data, "wav.scp"), encoding="utf8"):
            name, path = line.split(None, 1)
            if name in done:
                continue
            sound = decode_audio(path.strip())
            seconds = len(sound) / RATE
            if seconds == 0 or seconds > LONGEST:
                continue
            context = max(SHORTEST, min(LONGEST, int(np.ceil(seconds + PAUSE))))
            padded = np.pad(sound, (0, context * RATE - len(sound)))
            features = whisper.feature_extractor(padded)[None, :, :context * FRAMES]
            heard = whisper.model.generate(ctranslate2.StorageView.from_array(np.ascontiguousarray(features, dtype=np.float32)), [prompt],
                                           beam_size=1, no_repeat_ngram_size=3, suppress_blank=True, max_length=224,
                                           return_scores=True, return_no_speech_prob=True)[0]
            n = len(heard.sequences_ids[0])
            text = tokens.decode([t for t in heard.sequences_ids[0] if t < tokens.eot]).strip()
            out.write(f"{name}\t{seconds:.2f}\t{heard.scores[0] * n / (n + 1):.3f}\t{heard.no_speech_prob:.2f}\t{text}\n")
            out.flush()


if __name__ == "__main__":
    main()
