#!/usr/bin/env python3
"""A second implementation of the recogniser's front end and network, written from docs/network.md alone (numpy, float64).

    linnet posteriors --precision fp32 --model MODEL SPEECH.wav -o ROWS.npy
    second.py MODEL SPEECH.wav ROWS.npy     compares with these rows

MODEL: a network of sound with linear attention and elu. SPEECH.wav: mono, 16 bits, at the model's rate, so that nothing is resampled. Prints whether the computed fingerprint equals the
one in the file, and the largest difference of the log-probabilities; exit status 1 if the fingerprint differs or the difference
exceeds 1e-3.
"""
import json
import struct
import sys
import wave

import numpy as np

MASK = (1 << 64) - 1


def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    texts = header.pop("__metadata__")
    tensors = {}
    for name, t in header.items():
        begin, end = (8 + n + o for o in t["data_offsets"])
        kind = {"F32": "<f4", "F16": "<f2", "I8": "i1"}.get(t["dtype"])
        if kind:
            tensors[name] = np.frombuffer(data[begin:end], kind).reshape(t["shape"])
    for name in [n for n in tensors if n + ".scale" in tensors]:
        tensors[name] = tensors[name].astype("<f4") * tensors[name + ".scale"][:, None]
    return texts, json.loads(texts["config"]), json.loads(texts["features"]), tensors


def gains(energies, level):
    """The gain of each frame in dB."""
    S, F, q = level - 10, None, 5.0
    for e in energies:
        L = max(10 * np.log10(max(e.sum(), 1e-300)), level - 75)
        F = L if F is None else min(L, F + 0.02)
        if L > F + 15:
            S = S + (L - S) / 20 if L > S else max(L, S - 0.01 - q)
            q /= 2
        gain = level - S
        yield np.clip(np.sign(gain) * max(abs(gain) - 4, 0), -40, 40)


def fbank(x, f, D, level):
    W, S = (int(f["sample_hz"] * f[k] / 1000) for k in ("window_ms", "hop_ms"))
    N = 1
    while N < W:
        N *= 2
    k = np.arange(W)
    window = (0.5 - 0.5 * np.cos(2 * np.pi * k / (W - 1))) ** 0.85
    mel = lambda hz: 1127 * np.log(1 + hz / 700)
    high = f["high_hz"] if f["high_hz"] > 0 else f["sample_hz"] / 2 + f["high_hz"]
    edges = np.linspace(mel(f["low_hz"]), mel(high), D + 2)
    lines = mel(np.arange(N // 2) * f["sample_hz"] / N)
    rise = (lines[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - lines[None]) / (edges[2:] - edges[1:-1])[:, None]
    weights = np.maximum(0, np.minimum(rise, fall))
    out = []
    for t in range(1 + (len(x) - W) // S if len(x) >= W else 0):
        y = 32768 * x[t * S:t * S + W]
        y = y - y.mean()
        y = (y - f["preemphasis"] * np.concatenate([y[:1], y[:-1]])) * window
        power = np.abs(np.fft.rfft(y, N)[:N // 2]) ** 2
        out.append(weights @ power)
    energies = np.array(out)
    if level:
        energies *= 10 ** (np.array(list(gains(energies, level)))[:, None] / 10)
    return np.log(np.maximum(energies, 1.1920928955078125e-07))


def forward(texts, c, w, x):
    C, s, R, H, E, K = c["heads"] * c["head_width"], c["stack"], c["ahead"], c["heads"], c["head_width"], c["conv_kernel"]
    linear = lambda y, name: y @ w[name + ".weight"].astype(float).T + w[name + ".bias"]

    def norm(y, name):
        y = (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5)
        return y * w[name + ".weight"] + w[name + ".bias"]

    def attention(y, at):
        qkv, n = linear(y, at + "qkv"), len(y)
        q, k, v = (qkv[:, i * C:(i + 1) * C].reshape(n, H, E) for i in range(3))
        phi = lambda u: np.where(u > 0, u + 1, np.exp(np.minimum(u, 0)))
        a = np.einsum("ihe,jhe->hij", phi(q), phi(k))
        if c["causal"]:
            a = np.tril(a)
        if "decay" in texts:
            g = w[at + "decay.bias"].astype(float) + (y @ w[at + "decay.weight"].T if texts["decay"] == "gated" else np.zeros((n, 1)))
            kept = np.cumsum(-np.log1p(np.exp(-np.maximum(g, -80))) / 16, axis=0).T  # [H, n], logarithms
            a *= np.exp(np.minimum(kept[:, :, None] - kept[:, None, :], 0))
        return (np.einsum("hij,jhe->ihe", a, v) / (a.sum(2).T + 1e-6)[:, :, None]).reshape(n, C)

    def rows(y):
        y = linear(norm(y, "norm"), "output")
        y -= y.max(1, keepdims=True)
        return y - np.log(np.exp(y).sum(1, keepdims=True))

    steps = -(-len(x) // s)
    seen = np.minimum(np.arange(steps)[:, None] * s + np.arange(s + R)[None], len(x) - 1)
    x = linear(x[seen].reshape(steps, -1), "input")
    if c["positions"] == "sinusoid":
        for i in range(C // 2):
            angle = np.arange(steps) / 10000 ** (2 * i / C)
            x[:, 2 * i] += np.sin(angle)
            x[:, 2 * i + 1] += np.cos(angle)
    for i in range(c["layers"]):
        at = f"layers.{i}."
        if i < c["conv_layers"]:
            after = K // 2 if c["positions"] == "centred-conv" else 0
            around = np.concatenate([np.zeros((K - 1 - after, C)), x, np.zeros((after, C))])
            x = x + w[at + "conv.bias"] + sum(w[at + "conv.weight"][j].astype(float) * around[j:j + steps] for j in range(K))
        f = lambda y: linear(attention(y, at), at + "out")
        g = lambda y: linear(np.maximum(linear(y, at + "ff1"), 0), at + "ff2")
        if c["norm"] == "post":
            x = norm(x + f(x), at + "norm1")
            x = norm(x + g(x), at + "norm2")
        else:
            x = x + f(norm(x, at + "norm1"))
            x = x + g(norm(x, at + "norm2"))
        every = int(texts.get("condition_every", 0))
        if every and (i + 1) % every == 0 and i + 1 < c["layers"]:
            x = x + linear(np.exp(rows(x)), "condition")
    return rows(x)


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def lin_hash(p, s):
    lane = [mix(s ^ mix(i + 0xD1B54A32D192ED03)) for i in range(4)]
    whole = len(p) // 32 * 32
    words = struct.unpack(f"<{whole // 8}Q", p[:whole])
    for at in range(0, len(words), 4):
        for i in range(4):
            z = (lane[i] ^ words[at + i]) * 0x9E3779B97F4A7C15 & MASK
            lane[i] = (z << 29 | z >> 35) & MASK
    h = mix(s ^ len(p))
    for at in range(whole, len(p), 8):
        h = mix(h ^ int.from_bytes(p[at:at + 8], "little")) + 1 & MASK
    for i in range(4):
        h = mix(h ^ lane[i]) + 1 & MASK
    return h


def fingerprint(texts, c, f, w):
    whole = [c[k] for k in ("layers", "heads", "head_width", "feedforward", "mel_bins", "outputs", "stack", "ahead")]
    whole += [["none", "sinusoid", "conv", "centred-conv"].index(c["positions"]), c["conv_kernel"], c["conv_layers"],
              ["post", "pre"].index(c["norm"]), int(c["causal"]), f["sample_hz"]]
    h = lin_hash(struct.pack("<14i", *whole), 0)
    h = lin_hash(struct.pack("<5d", *(f[k] for k in ("window_ms", "hop_ms", "low_hz", "high_hz", "preemphasis"))), h)
    h = lin_hash(texts["phones"].encode(), h)
    h = lin_hash(w["features.mean"].tobytes(), h)
    h = lin_hash(w["features.istd"].tobytes(), h)
    if "level_db" in texts:
        h = lin_hash(struct.pack("<d", float(texts["level_db"])), h)
    if texts.get("normalization") == "speaker":
        h = lin_hash(struct.pack("<i", 1), h)
    if "variant" in texts:  # of decays alone
        h = lin_hash(struct.pack("<7i", *[0] * 7), h)
    if "decay" in texts:
        h = lin_hash(struct.pack("<i", ["", "fixed", "gated"].index(texts["decay"])), h)
    if "condition_every" in texts:
        h = lin_hash(struct.pack("<2i", int(texts["condition_every"]), 1), h)
    if "search" in texts:
        h = lin_hash(struct.pack("<2i", 1, 2), h)
    names = ["input"]
    for i in range(c["layers"]):
        names += [f"layers.{i}.{n}" for n in ("conv", "qkv", "decay", "out", "norm1", "ff1", "ff2", "norm2")]
    names += ["norm", "condition", "output", "search"]
    weights = [w[at].astype("<f4").tobytes() for n in names for at in (n + ".weight", n + ".bias") if at in w]
    return lin_hash(b"".join(weights), h)


def main():
    texts, c, f, w = load(sys.argv[1])
    with wave.open(sys.argv[2]) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, f["sample_hz"])
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2") / 32768
    x = fbank(samples, f, c["mel_bins"], float(texts.get("level_db", 0)))
    if texts.get("normalization") == "speaker":
        x = (x - x.mean(0)) / np.maximum(x.std(0), 0.01)
    x = (x - w["features.mean"]) * w["features.istd"]
    theirs, ours = np.load(sys.argv[3]), forward(texts, c, w, x)
    same = "%016x" % fingerprint(texts, c, f, w) == texts["fingerprint"]
    off = np.abs(theirs - ours).max() if theirs.shape == ours.shape else np.inf
    print(f"fingerprint {'equal' if same else 'DIFFERENT'}; {ours.shape[0]} rows, largest difference {off:.2g}")
    sys.exit(not same or not off < 1e-3)


if __name__ == "__main__":
    main()
