#!/usr/bin/env python3
"""Makes align/boundaries.inc: statistics of the sound of each phoneme, from training data. Needs NumPy.

    tools/boundaries_table.py build/release/linnet CORPUS SET:UTTERANCES... > align/boundaries.inc

Each SET is a Kaldi-style data directory in CORPUS, whose audio paths are relative to CORPUS; UTTERANCES of its utterances are
drawn at random. The text of each is aligned (linnet align --times path). Viterbi training near the path then gives diagonal
Gaussians for three states of each phoneme and for silence between words, as align/boundaries.c uses them.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

PHONES = "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH".split()
BINS, CEPSTRA, STATES, SILENCES, PASSES = 40, 12, 3, 4, 8
STATIC, SILENCE = CEPSTRA + 1, len(PHONES) * STATES
HOP, WINDOW = 0.010, 0.025


class Utterance:
    def __init__(self, result, frames):
        self.phones = [PHONES.index(p["phone"]) for p in result["phones"]]
        self.at = np.array([(p["start"] + p["end"]) / 2 for p in result["phones"]])
        self.begins = {w["first_phone"] for w in result["words"]}
        cosines = np.cos(np.pi * np.arange(1, CEPSTRA + 1)[:, None] * (np.arange(BINS) + 0.5) / BINS) * np.sqrt(2 / BINS)
        energy = np.log(np.exp(frames).mean(1) + 1e-7)
        time = np.arange(len(frames)) * HOP + WINDOW / 2
        behind = np.searchsorted(self.at, time, "right")
        after = np.append(self.at, np.inf)[behind] - time
        before = time - np.append(-np.inf, self.at)[behind]
        apart = (after > 0.3) & (before > 0.35)
        level = max(np.percentile(energy[~apart], 95), 4)
        cepstra = frames @ cosines.T
        cepstra -= cepstra[energy > level - 5.756].mean(0)
        self.energy = energy - level
        still = np.column_stack([cepstra, np.clip(self.energy, -9, 1)])
        T = len(still)
        pick = lambda k: still[np.clip(np.arange(T) + k, 0, T - 1)]
        self.x = np.column_stack([still, sum(k * (pick(k) - pick(-k)) for k in (1, 2)) / 10])

    def chain(self):
        """Kind, second predecessor (or itself), first frame, last frame + 1 of each state."""
        T, at = len(self.x), self.at
        frame = lambda s: int(np.clip(np.rint((s - WINDOW / 2) / HOP), 0, T))
        states = []
        for i, phone in enumerate(self.phones + [None]):
            first = frame(at[i - 1] - 0.25) if i else 0
            if i == 0 or phone is None or (i in self.begins and at[i] - at[i - 1] > 0.2):
                end = T if phone is None else frame(at[i] + 0.06)
                states += [(SILENCE, len(states) + k, first, end) for k in range(5)]
                past = 6 if i else 0
            else:
                past = 0
            if phone is not None:
                end = frame(at[i + 1] + 0.06) if i + 1 < len(at) else T
                for k in range(STATES):
                    states.append((phone * STATES + k, len(states) - past if k == 0 else len(states), first, end))
        kind, second, first, end = map(np.array, zip(*states))
        return kind, second, np.minimum(first, T - 1), np.maximum(end, first + 1)


def likelihoods(x, mean, variance):
    scale = 1 / variance
    return -0.5 * ((x * x) @ scale.T - 2 * x @ (mean * scale).T + (mean * mean * scale + np.log(variance)).sum(1))


def best_path(u, model):
    kind, second, first, end = u.chain()
    T, S = len(u.x), len(kind)
    seen = likelihoods(u.x, *model)
    which = seen[:, SILENCE:].argmax(1)
    seen[:, SILENCE] = seen[:, SILENCE:].max(1)
    seen[u.energy > -2, SILENCE] -= 200
    score, came = np.full(S, -1e30), np.zeros((T, S), np.int8)
    score[[0, 5]] = seen[0, kind[[0, 5]]]
    for t in range(1, T):
        one = np.append(-1e30, score[:-1])
        two = score[second]
        best = np.maximum(np.maximum(score, one), two)
        came[t] = np.where(best == score, 0, np.where(best == one, 1, 2))
        score = np.where((t >= first) & (t < end), best + seen[t, kind], -1e30)
    s = S - 1 if score[-1] > score[-6] else S - 6
    if score[s] < -1e29:
        return None, 0
    path, total = np.zeros(T, int), score[s]
    for t in range(T - 1, -1, -1):
        path[t] = kind[s] + which[t] if kind[s] == SILENCE else kind[s]
        s = (s, s - 1, second[s])[came[t, s]]
    return path, total


def first_guess(u):
    """Thirds of the frames between the middles of neighbours, slightly before their rows; silence where the sound
    is faint and the gap long."""
    time, at = np.arange(len(u.x)) * HOP + WINDOW / 2, u.at - 0.09
    edges = np.concatenate([[at[0] - 0.08], (at[1:] + at[:-1]) / 2, [at[-1] + 0.08]])
    i = np.clip(np.searchsorted(edges, time, "right") - 1, 0, len(at) - 1)
    place = np.clip(((time - edges[i]) / (edges[i + 1] - edges[i]) * STATES).astype(int), 0, STATES - 1)
    path = np.array(u.phones)[i] * STATES + place
    far = np.abs(time - at[i]) > 0.12
    path[far] = np.where(u.energy < -3, SILENCE + np.searchsorted([-8, -6.5, -5], u.energy), -1)[far]
    return path


def estimate(paths):
    n, sums = np.zeros(SILENCE + SILENCES), np.zeros((SILENCE + SILENCES, 2 * STATIC))
    squares = np.zeros_like(sums)
    for u, path in paths:
        good = path >= 0
        np.add.at(n, path[good], 1)
        np.add.at(sums, path[good], u.x[good])
        np.add.at(squares, path[good], u.x[good] ** 2)
    mean = sums.sum(0) / n.sum()
    spread = squares.sum(0) / n.sum() - mean**2
    means = (sums + 5 * mean) / (n + 5)[:, None]
    variances = np.maximum((squares + 5 * (spread + mean**2)) / (n + 5)[:, None] - means**2, 0.05 * spread)
    usual = variances[:SILENCE].mean(0)
    variances[SILENCE:, :STATIC] = np.maximum(variances[SILENCE:, :STATIC], 0.25 * usual[:STATIC])
    variances[SILENCE:, STATIC:] = np.maximum(variances[SILENCE:, STATIC:], usual[STATIC:])  # silence has beginnings and ends too
    return means, variances


def gather(linnet, corpus, sets, folder):
    chosen = random.Random(3)
    with open(os.path.join(folder, "text"), "w") as texts, open(os.path.join(folder, "wav.scp"), "w") as sounds:
        for name, count in (s.split(":") for s in sets):
            table = lambda f: dict(line.rstrip("\n").split(" ", 1) for line in open(os.path.join(corpus, name, f)))
            text, sound = table("text"), table("wav.scp")
            names = sorted(text.keys() & sound.keys())
            for key in chosen.sample(names, min(int(count), len(names))):
                print(key, text[key], file=texts)
                print(key, os.path.join(os.path.abspath(corpus), sound[key]), file=sounds)
    done = subprocess.run([linnet, "align", "-q", "--times", "path", "--data", folder, "--audio-root", "/", "-f", "json"],
                          stdout=subprocess.PIPE, text=True, check=False)
    sounds = dict(line.rstrip("\n").split(" ", 1) for line in open(os.path.join(folder, "wav.scp")))
    for result in map(json.loads, done.stdout.splitlines()):
        matrix = os.path.join(folder, "x.npy")
        subprocess.run([linnet, "features", "--fbank", "high-hz=5500", sounds[result["id"]], "-o", matrix], check=True,
                       stderr=subprocess.DEVNULL)
        yield Utterance(result, np.load(matrix).astype(float))


def write(model, sets):
    print(f"// Made by tools/boundaries_table.py from {' '.join(sets)}.")
    for i, (mean, variance) in enumerate(zip(*model)):
        numbers = ["{" + ",".join(str(round(1000 * x)) for x in row) + "}" for row in (mean, 1 / np.sqrt(variance))]
        of = f"{PHONES[i // STATES]}, {i % STATES + 1}" if i < SILENCE else "silence"
        print("{" + ", ".join(numbers) + f"}}, // {of}")


def main():
    linnet, corpus, *sets = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        utterances = [u for u in gather(linnet, corpus, sets, folder) if u.phones]
    model = estimate([(u, first_guess(u)) for u in utterances])
    for number in range(PASSES):
        paths, total, frames = [], 0.0, 0
        for u in utterances:
            path, score = best_path(u, model)
            if path is not None:
                paths.append((u, path))
                total, frames = total + score, frames + len(path)
        model = estimate(paths)
        print(f"pass {number + 1}: {total / frames:.3f} a frame, {len(utterances) - len(paths)} utterances without a path",
              file=sys.stderr)
    write(model, sets)


main()
