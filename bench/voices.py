#!/usr/bin/env python3
"""Equal error rates of a network of voices on pieces of held-out voices, beside Resemblyzer's on the same pieces.

    bench/voices.py --corpus DIR --work DIR [--model MODEL]... [--peer] [--frames 300,150] SET...

Each SET is a data directory in --corpus. A piece is 3 s (then 1.5 s) of an utterance, one behind the other. All pairs of pieces of different
utterances of a set are compared by their cosine; `together` has the pairs of all sets with one threshold. --peer also asks Resemblyzer (pip install
resemblyzer; it needs torch), with its own preparation of the sound. Needs build/release/linnet and build/release/bench/voice_vectors, numpy and
soundfile. Caches are kept in --work.
"""
import argparse
import os
import subprocess
import time

import numpy as np

HOP, WINDOW = 160, 400  # samples at 16 kHz


def prepare(corpus, work, name):
    cache = f"{work}/{name}.lfc"
    if not os.path.exists(cache):
        subprocess.run(["build/release/linnet", "prepare", f"{corpus}/{name}", "--audio-root", corpus, "--no-speech", "--fbank",
                        "high-hz=5500", "-q", "-o", cache], check=True)
    return cache


def ours(model, cache, frames):
    """(utterance, speaker, first frame) of each piece, and the vectors."""
    done = subprocess.run(["build/release/bench/voice_vectors", model, cache, str(frames)], check=True, capture_output=True, text=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [(r[0], r[1], int(r[2])) for r in rows], np.array([r[3].split() for r in rows], dtype=np.float32), done.stderr.strip()


def peer(pieces, corpus, name, frames):
    import soundfile
    from resemblyzer import VoiceEncoder, preprocess_wav
    encoder = VoiceEncoder("cpu", verbose=False)
    paths = dict(line.split(None, 1) for line in open(f"{corpus}/{name}/wav.scp"))
    sounds, vectors, seconds = {}, [], 0
    for utterance, _, first in pieces:
        if utterance not in sounds:
            sounds = {utterance: soundfile.read(f"{corpus}/{paths[utterance].strip()}", dtype="float32")}
        x, rate = sounds[utterance]
        assert rate == 16000 and x.ndim == 1
        piece = x[first * HOP:(first + frames - 1) * HOP + WINDOW]
        begin = time.time()
        clean = preprocess_wav(piece)
        vectors.append(encoder.embed_utterance(clean if len(clean) > 1600 else piece))
        seconds += time.time() - begin
    return np.array(vectors), f"{1000 * seconds / (len(pieces) * frames / 100):.3f} ms for a second of sound"


def pairs(pieces, vectors):
    """Cosines of the pairs of one voice, and of two."""
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    number = lambda of: np.unique(of, return_inverse=True)[1]
    utterance, speaker = number([p[0] for p in pieces]), number([p[1] for p in pieces])
    different = np.triu(utterance[:, None] != utterance[None, :], 1)
    same = speaker[:, None] == speaker[None, :]
    return cosines[different & same], cosines[different & ~same]


def equal_error(same, others):
    scores = np.concatenate([same, others])
    order = np.argsort(scores, kind="stable")
    is_same = np.concatenate([np.ones(len(same)), np.zeros(len(others))])[order]
    missed = np.cumsum(is_same) / len(same)
    alarms = 1 - np.cumsum(1 - is_same) / len(others)
    at = np.argmax(missed >= alarms)
    return 100 * (missed[at] + alarms[at]) / 2, scores[order][at]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--frames", default="300,150")
    parser.add_argument("sets", nargs="+")
    a = parser.parse_args()
    os.makedirs(a.work, exist_ok=True)
    systems = a.model + (["Resemblyzer"] if a.peer else [])
    print("seconds\tset\tvoices\tpieces\tpairs of one voice\tof two\tsystem\tequal error %\tat cosine")
    for frames in map(int, a.frames.split(",")):
        together = {s: ([], []) for s in systems}
        for name in a.sets:
            cache = prepare(a.corpus, a.work, name)
            pieces, _, _ = ours(a.model[0], cache, frames)
            for system in systems:
                vectors, speed = peer(pieces, a.corpus, name, frames) if system == "Resemblyzer" else ours(system, cache, frames)[1:]
                same, others = pairs(pieces, vectors)
                rate, at = equal_error(same, others)
                print(f"{frames / 100:g}\t{name}\t{len({p[1] for p in pieces})}\t{len(pieces)}\t{len(same)}\t{len(others)}\t"
                      f"{os.path.basename(system)}\t{rate:.2f}\t{at:.2f}\t{speed}", flush=True)
                together[system][0].append(same)
                together[system][1].append(others)
        for system in systems:
            rate, at = equal_error(*map(np.concatenate, together[system]))
            print(f"{frames / 100:g}\ttogether\t\t\t\t\t{os.path.basename(system)}\t{rate:.2f}\t{at:.2f}", flush=True)


if __name__ == "__main__":
    main()
