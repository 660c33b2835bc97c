#!/usr/bin/env python3
"""Linnet's times of words against those that RoboTutor's children's stories come with, in ms.

    git clone https://github.com/XPRIZE/GLEXP-Team-RoboTutor-EnglishAssets
    bench/story_times.py build/release/linnet GLEXP-Team-RoboTutor-EnglishAssets [--every 10]

The reference was made by another aligner, in steps of 10 ms, and looked over by its authors: it is no truth (bench/boundaries.py
has one), but its speech is natural. Many of these readings are in train_stories of the open corpus. Every N-th reading is used.
"""
import argparse
import glob
import json
import os
import re
import tempfile

from boundaries import compare_recognised, recognise


def readings(value):
    """Every narration in a storydata.json."""
    if isinstance(value, dict):
        yield from value.get("narration", [])
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from readings(inner)


def letters(word):
    return re.sub(r"[^a-z']", "", word.lower())


def make(folder, assets, every):
    """A data directory, and the words of each of its sounds."""
    sounds = {os.path.basename(p): p for p in glob.glob(os.path.join(assets, "**", "*.mp3"), recursive=True)}
    known, truth = {}, {}
    for path in sorted(glob.glob(os.path.join(assets, "**", "storydata.json"), recursive=True)):
        with open(path) as story:
            for r in readings(json.load(story)):
                words = [(letters(w["word"]), w["start"] / 100, w["end"] / 100) for w in r.get("segmentation") or []]
                if len(words) > 1 and all(w for w, *_ in words) and r["audio"] in sounds:
                    known[r["audio"]] = words
    chosen = sorted(known)[::every]
    with open(os.path.join(folder, "text"), "w") as texts, open(os.path.join(folder, "wav.scp"), "w") as scp:
        for i, audio in enumerate(chosen):
            name = f"r{i:05}"
            truth[name] = {"words": known[audio]}
            print(name, *(w for w, *_ in known[audio]), file=texts)
            print(name, os.path.abspath(sounds[audio]), file=scp)
    return truth


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linnet")
    parser.add_argument("assets")
    parser.add_argument("--every", type=int, default=10)
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        truth = make(folder, o.assets, o.every)
        compare_recognised("align", truth, recognise(o.linnet, folder, "align"), "word")
        compare_recognised("transcribe --words", truth, recognise(o.linnet, folder, "transcribe", "--words"), "word")


if __name__ == "__main__":
    main()
