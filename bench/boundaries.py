#!/usr/bin/env python3
"""Errors of linnet's boundaries against known onsets, in ms: speech by flite, which reports when each phone begins.

    bench/boundaries.py build/release/linnet corpus/dev_native [--texts 60] [--snr DB] [--pocketsphinx] [--transcribe]

Every text is spoken by one of flite's voices (Debian's flite: kal16 is made of diphones, the others are statistical), at three
tempi; --snr adds noise that falls by about 3 dB per octave. linnet aligns the phones that flite spoke, once with each --times.
--transcribe: also the times that linnet transcribe gives, of the phonemes and words that it recognises where flite spoke them.
Needs flite's libraries and Python's standard library; --pocketsphinx needs the package of that name.
"""
import argparse
import array
import ctypes
import json
import os
import random
import subprocess
import tempfile
import wave

VOICES = ("kal16", "awb", "rms", "slt")
TEMPI = (0.85, 1.0, 1.2)  # flite's duration_stretch
LABELS = {"ax": "AH", "axr": "ER"}  # flite's phones that have another name in the model


class Flite:
    """libflite through ctypes: sound, and its segments with the words they belong to."""

    def __init__(self):
        load = lambda name: ctypes.CDLL(f"lib{name}.so.1", mode=ctypes.RTLD_GLOBAL)
        self.lib = load("flite")
        load("flite_usenglish")
        load("flite_cmulex")
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        for name, result, arguments in (
                ("flite_synth_text", pointer, [text, pointer]), ("utt_relation", pointer, [pointer, text]),
                ("relation_head", pointer, [pointer]), ("item_next", pointer, [pointer]),
                ("item_feat_string", text, [pointer, text]),
                ("item_feat_float", ctypes.c_float, [pointer, text]), ("path_to_item", pointer, [pointer, text]),
                ("flite_feat_set_float", None, [pointer, text, ctypes.c_float]), ("utt_wave", pointer, [pointer]),
                ("cst_wave_save_riff", ctypes.c_int, [pointer, text]), ("delete_utterance", None, [pointer])):
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.voices = {}
        for name in VOICES:
            register = getattr(load("flite_cmu_us_" + name), "register_cmu_us_" + name)
            register.restype, register.argtypes = pointer, [pointer]
            self.voices[name] = register(None)

    def features(self, voice):
        return ctypes.cast(voice + ctypes.sizeof(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p))[0]  # cst_voice: name, features

    def say(self, text, voice, stretch, path):
        """[(phone, start, end, number of its word or None)], [word]"""
        self.lib.flite_feat_set_float(self.features(self.voices[voice]), b"duration_stretch", stretch)
        utterance = self.lib.flite_synth_text(text.encode(), self.voices[voice])
        assert self.lib.cst_wave_save_riff(self.lib.utt_wave(utterance), path.encode()) == 0
        item = self.lib.relation_head(self.lib.utt_relation(utterance, b"Segment"))
        segments, words, names, at = [], [], [], 0.0
        while item:
            end = self.lib.item_feat_float(item, b"end")
            word = self.lib.path_to_item(item, b"R:SylStructure.parent.parent")
            name = self.lib.item_feat_string(item, b"name").decode()
            if word and word not in words:
                words.append(word)
                names.append(self.lib.item_feat_string(word, b"name").decode())
            segments.append((name, at, end, words.index(word) if word else None))
            at, item = end, self.lib.item_next(item)
        self.lib.delete_utterance(utterance)
        return segments, names


def letters(number):
    return chr(97 + number // 676 % 26) + chr(97 + number // 26 % 26) + chr(97 + number % 26)


def add_noise(path, snr_db, seed):
    """White noise plus the same noise smoothed, at the given signal-to-noise ratio in dB."""
    with wave.open(path) as sound:
        parameters, samples = sound.getparams(), array.array("h", sound.readframes(sound.getnframes()))
    chance, slow, noise = random.Random(seed), 0.0, []
    for _ in samples:
        white = chance.gauss(0, 1)
        slow = 0.9 * slow + white
        noise.append(slow + white)
    power = sum(s * s for s in samples) / sum(n * n for n in noise)
    gain = (power * 10 ** (-snr_db / 10)) ** 0.5
    mixed = array.array("h", (max(-32768, min(32767, round(0.9 * (s + gain * n)))) for s, n in zip(samples, noise)))
    with wave.open(path, "wb") as sound:
        sound.setparams(parameters)
        sound.writeframes(mixed.tobytes())


def words_of(phones, spoken):
    """[(word, start, end)]; flite's word 's belongs to the one before."""
    words = []
    for number, word in enumerate(spoken):
        times = [(a, b) for _, a, b, w in phones if w == number]
        if times and word.startswith("'") and words:
            words[-1] = (words[-1][0] + word, words[-1][1], times[-1][1])
        elif times:
            words.append((word, times[0][0], times[-1][1]))
    return words


def make(folder, texts, snr_db):
    """A data directory, its lexicon, in which every word has only the pronunciation that flite chose, and the true times."""
    flite, truth, names = Flite(), {}, {}
    with open(os.path.join(folder, "text"), "w") as text_file, open(os.path.join(folder, "wav.scp"), "w") as sounds:
        for i, text in enumerate(texts):
            name = f"{VOICES[i % len(VOICES)]}-{i:03}"
            path = os.path.join(folder, name + ".wav")
            segments, spoken = flite.say(text, VOICES[i % len(VOICES)], TEMPI[i // len(VOICES) % len(TEMPI)], path)
            if snr_db is not None:
                add_noise(path, snr_db, i)
            phones = [(LABELS.get(p, p.upper()), a, b, w) for p, a, b, w in segments if p != "pau"]
            words = []
            for number in sorted({w for *_, w in phones}):
                said = " ".join(p for p, _, _, w in phones if w == number)
                words.append(names.setdefault(said, letters(len(names))))
            truth[name] = {"phones": phones, "words": words_of(phones, spoken), "text": text,
                           "pauses": [(a, b) for p, a, b, _ in segments if p == "pau"]}
            print(name, *words, file=text_file)
            print(name, name + ".wav", file=sounds)
    with open(os.path.join(folder, "lexicon"), "w") as lexicon:
        for said, name in names.items():
            print(name, said, file=lexicon)
    return truth


def recognise(linnet, folder, command, *options):
    done = subprocess.run([linnet, command, "--data", folder, "--audio-root", folder, "-f", "json", "-q", *options],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {r["id"]: r for r in map(json.loads, done.stdout.splitlines())}


def pocketsphinx(folder):
    """The result of its two passes of alignment with default options; utterances that it does not align are missing."""
    from pocketsphinx import Decoder
    with open(os.path.join(folder, "lexicon")) as lexicon:
        names = dict(line.rstrip("\n").split(" ", 1) for line in lexicon)
    decoder, results = Decoder(lm=None, dict=os.path.join(folder, "lexicon"), loglevel="FATAL"), {}
    with open(os.path.join(folder, "text")) as texts:
        for name, text in (line.rstrip("\n").split(" ", 1) for line in texts):
            with wave.open(os.path.join(folder, name + ".wav")) as sound:
                seconds, samples = sound.getnframes() / sound.getframerate(), sound.readframes(sound.getnframes())
            try:
                for begin in (lambda: decoder.set_align_text(text), decoder.set_alignment):
                    begin()
                    decoder.start_utt()
                    decoder.process_raw(samples, full_utt=True)
                    decoder.end_utt()
            except RuntimeError:
                continue
            found = [{"phone": p.name, "start": p.start / 100, "end": (p.start + p.duration) / 100}
                     for w in decoder.get_alignment() for p in w if p.name not in ("SIL", "+NSN+", "+SPN+")]
            if sum(len(names[w].split()) for w in text.split()) == len(found):  # otherwise it ended too early
                results[name] = {"phones": found, "seconds": seconds}
    return results


def row(name, errors):
    size = sorted(abs(e) for e in errors)
    n = len(size)
    within = sum(e <= 20 for e in size) / n * 100
    print(f"| {name} | {n} | {sum(size) / n:.1f} | {size[n // 2]:.1f} | {size[int(.9 * n)]:.1f} | {within:.0f} % | "
          f"{sum(errors) / n:+.1f} |")


def compare(title, truth, found):
    errors = {k: [] for k in ("phone starts", "phone ends", "word starts", "word ends", "phone durations")}
    voices = {v: [] for v in VOICES}
    silence, pauses, speech = 0.0, 0.0, 0.0
    for name, result in found.items():
        known = truth[name]
        phones = known["phones"]
        assert [p for p, *_ in phones] == [p["phone"] for p in result["phones"]], name
        for i, ((_, start, end, word), p) in enumerate(zip(phones, result["phones"])):
            first = i == 0 or phones[i - 1][3] != word
            last = i + 1 == len(phones) or phones[i + 1][3] != word
            a, b = 1000 * (p["start"] - start), 1000 * (p["end"] - end)
            errors["phone starts"].append(a)
            errors["phone ends"].append(b)
            voices[name.split("-")[0]] += [a, b]
            errors["phone durations"].append(b - a)
            if first:
                errors["word starts"].append(a)
            if last:
                errors["word ends"].append(b)
        total = result["seconds"]
        pauses += sum(b - a for a, b in known["pauses"])
        silence += total - sum(p["end"] - p["start"] for p in result["phones"])
        speech += sum(p["end"] - p["start"] for p in result["phones"])
    print(f"\n{title}, {len(found)} of {len(truth)} utterances: {speech:.1f} s in phones, {silence:.1f} s between them "
          f"(flite paused for {pauses:.1f} s)\n")
    print("| ms | n | mean | median | 90th percentile | within 20 | bias |\n|---|---|---|---|---|---|---|")
    for kind, values in errors.items():
        row(kind, values)
    for voice, values in voices.items():
        if values:
            row("phones of " + voice, values)


def matches(said, heard):
    """Pairs of indices of equal items, along an alignment with the fewest errors."""
    n, m = len(said), len(heard)
    cost = [[max(i, j) if not i or not j else 0 for j in range(m + 1)] for i in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost[i][j] = min(cost[i - 1][j - 1] + (said[i - 1] != heard[j - 1]), cost[i - 1][j] + 1, cost[i][j - 1] + 1)
    pairs, i, j = [], n, m
    while i and j:
        if cost[i][j] == cost[i - 1][j - 1] + (said[i - 1] != heard[j - 1]):
            i, j = i - 1, j - 1
            if said[i] == heard[j]:
                pairs.append((i, j))
        elif cost[i][j] == cost[i - 1][j] + 1:
            i -= 1
        else:
            j -= 1
    return pairs


def compare_recognised(title, truth, found, unit):
    """The times of what was recognised as it was spoken; and what a constant, the median of all errors, would leave of them."""
    starts, ends, spoken = [], [], 0
    for name, result in found.items():
        said, heard = truth[name][unit + "s"], result[unit + "s"]
        spoken += len(said)
        for i, j in matches([s[0] for s in said], [h[unit] for h in heard]):
            starts.append(1000 * (heard[j]["start"] - said[i][1]))
            ends.append(1000 * (heard[j]["end"] - said[i][2]))
    offset = sorted(starts + ends)[len(starts)]
    print(f"\n{title}, {len(starts)} of {spoken} {unit}s recognised\n")
    print("| ms | n | mean | median | 90th percentile | within 20 | bias |\n|---|---|---|---|---|---|---|")
    row(unit + " starts", starts)
    row(unit + " ends", ends)
    row(f"{unit} starts, all times {offset:.0f} ms earlier", [e - offset for e in starts])
    row(f"{unit} ends, all times {offset:.0f} ms earlier", [e - offset for e in ends])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linnet")
    parser.add_argument("set", help="a Kaldi-style data directory, whose texts are used")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--snr", type=float)
    parser.add_argument("--pocketsphinx", action="store_true")
    parser.add_argument("--transcribe", action="store_true")
    options = parser.parse_args()
    with open(os.path.join(options.set, "text")) as lines:
        texts = [line.rstrip("\n").split(" ", 1)[1].lower() for line in lines]
    random.Random(1).shuffle(texts)
    with tempfile.TemporaryDirectory() as folder:
        truth = make(folder, texts[:options.texts], options.snr)
        for times in ("path", "sound"):
            compare(f"align --times {times}", truth,
                    recognise(options.linnet, folder, "align", "-l", os.path.join(folder, "lexicon"), "--times", times))
        if options.transcribe:
            compare_recognised("transcribe", truth, recognise(options.linnet, folder, "transcribe"), "phone")
            compare_recognised("transcribe --words", truth, recognise(options.linnet, folder, "transcribe", "--words"), "word")
        if options.pocketsphinx:
            compare("pocketsphinx", truth, pocketsphinx(folder))


if __name__ == "__main__":
    main()
