#!/usr/bin/env python3
"""A second implementation of the recogniser's front end and network, written from docs/network.md alone (numpy, float64).

    second.py MODEL SPEECH.wav ROWS.npy     compares with the output of `linnet posteriors --model MODEL SPEECH.wav -o ROWS.npy`

SPEECH.wav: mono, 16 bits, at the model's rate, so that nothing is resampled. Prints whether the computed fingerprint equals the
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
        if t["dtype"] in ("F32", "F16"):
            tensors[name] = np.frombuffer(data[begin:end], "<f4" if t["dtype"] == "F32" else "<f2").reshape(t["shape"])
    return texts, json.loads(texts["config"]), json.loads(texts["features"]), tensors


def fbank(x, f, D):
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
        out.append(np.log(np.maximum(weights @ power, 1.1920928955078125e-07)))
    return np.array(out)


def forward(c, w, x):
    C, s, R, H, E, K = c["heads"] * c["head_width"], c["stack"], c["ahead"], c["heads"], c["head_width"], c["conv_kernel"]
    linear = lambda y, name: y @ w[name + ".weight"].astype(float).T + w[name + ".bias"]

    def norm(y, name):
        y = (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5)
        return y * w[name + ".weight"] + w[name + ".bias"]

    def attention(qkv):
        n = len(qkv)
        q, k, v = (qkv[:, i * C:(i + 1) * C].reshape(n, H, E) for i in range(3))
        phi = lambda u: np.where(u > 0, u + 1, np.exp(np.minimum(u, 0)))
        a = np.einsum("ihe,jhe->hij", phi(q), phi(k))
        if c["causal"]:
            a = np.tril(a)
        return (np.einsum("hij,jhe->ihe", a, v) / (a.sum(2).T + 1e-6)[:, :, None]).reshape(n, C)

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
        f = lambda y: linear(attention(linear(y, at + "qkv")), at + "out")
        g = lambda y: linear(np.maximum(linear(y, at + "ff1"), 0), at + "ff2")
        if c["norm"] == "post":
            x = norm(x + f(x), at + "norm1")
            x = norm(x + g(x), at + "norm2")
        else:
            x = x + f(norm(x, at + "norm1"))
            x = x + g(norm(x, at + "norm2"))
    x = linear(norm(x, "norm"), "output")
    x -= x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


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
    if texts.get("normalization") == "speaker":
        h = lin_hash(struct.pack("<i", 1), h)
    names = ["input"]
    for i in range(c["layers"]):
        names += [f"layers.{i}.{n}" for n in ["conv"] * (i < c["conv_layers"]) + ["qkv", "out", "norm1", "ff1", "ff2", "norm2"]]
    names += ["norm", "output"]
    return lin_hash(b"".join(w[f"{n}.{p}"].astype("<f4").tobytes() for n in names for p in ("weight", "bias")), h)


def main():
    texts, c, f, w = load(sys.argv[1])
    with wave.open(sys.argv[2]) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, f["sample_hz"])
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2") / 32768
    x = fbank(samples, f, c["mel_bins"])
    if texts.get("normalization") == "speaker":
        x = (x - x.mean(0)) / np.maximum(x.std(0), 0.01)
    x = (x - w["features.mean"]) * w["features.istd"]
    theirs, ours = np.load(sys.argv[3]), forward(c, w, x)
    same = "%016x" % fingerprint(texts, c, f, w) == texts["fingerprint"]
    off = np.abs(theirs - ours).max() if theirs.shape == ours.shape else np.inf
    print(f"fingerprint {'equal' if same else 'DIFFERENT'}; {ours.shape[0]} rows, largest difference {off:.2g}")
    sys.exit(not same or not off < 1e-3)


if __name__ == "__main__":
    main()
