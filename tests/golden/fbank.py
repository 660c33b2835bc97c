#!/usr/bin/env python3
"""Golden log-mel filterbanks, in double precision, written directly from Kaldi's definition; needs only NumPy.

    python3 tests/golden/fbank.py        # writes fbank_{signal,default,5500,wide,level,dereverb}.npy into its folder

The signal is 0.6 s at 16 kHz: a gliding pulse train through three resonators, a burst of noise, a loud low tone under a
faint high one, a constant offset, and digital silence, rounded to 16 bits, so that every float holds it exactly.
"""
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = 16000


def resonator(x, hz, width):
    r = np.exp(-np.pi * width / RATE)
    a1, a2 = 2 * r * np.cos(2 * np.pi * hz / RATE), -r * r
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] + (a1 * y[i - 1] if i > 0 else 0) + (a2 * y[i - 2] if i > 1 else 0)
    return y


def signal():
    n = int(0.6 * RATE)
    t = np.arange(n) / RATE
    phase = np.cumsum((110 + 60 * t) / RATE)
    voiced = np.diff(np.floor(phase), prepend=0.0)
    for hz, width in ((700, 80), (1220, 90), (2600, 140)):
        voiced = resonator(voiced, hz, width)
    voiced *= 0.4 / np.abs(voiced).max()
    state, noise = 12345, np.empty(n)
    for i in range(n):
        state = (state * 1664525 + 1013904223) % 2**32
        noise[i] = state / 2**31 - 1
    x = np.where(t < 0.25, voiced, 0)
    x = np.where((t >= 0.25) & (t < 0.35), 0.2 * noise, x)
    x = np.where((t >= 0.35) & (t < 0.5), 0.7 * np.sin(2 * np.pi * 150 * t) + 0.002 * np.sin(2 * np.pi * 5200 * t), x)
    x = np.where(t < 0.45, x + 0.05, x)
    x = np.where(t >= 0.55, 0, x)
    return np.round(np.clip(x, -1, 1) * 32767).astype(np.int16)


def mel(hz):
    return 1127.0 * np.log(1.0 + hz / 700.0)


def dereverbed(X, taps=10, delay=3, block=5, forget=0.9995, ridge=0.2, quietest=0.03, first=60, sure=200, seldom=8):
    """spectra [T, lines] -> the same without the room (frontend/dereverb.h)."""
    T, lines = X.shape
    past = np.concatenate((np.zeros((block + delay + taps, lines)), X))
    frame = lambda t: past[t + block + delay + taps]
    tapped = lambda t: np.array([frame(t - delay - k) for k in range(taps)]).T  # x(t): [lines, taps]
    power = lambda t: np.abs(frame(t)) ** 2
    R, p, g = np.zeros((lines, taps, taps), complex), np.zeros((lines, taps), complex), np.zeros((lines, taps), complex)
    loud, loudest, learned, room, blocks = [], 0.0, 0.0, 0.0, 1
    Y = np.empty_like(X)
    for t in range(T):
        Y[t] = X[t] - room * np.sum(g.conj() * tapped(t), 1)
        loudest = max(power(t).sum(), 0.9988 * loudest)
        loud.append(power(t).sum() > 1e-3 * loudest)
        if (t + 1) % block:
            continue
        new = [u for u in range(max(t - block, 0), t) if loud[u]]
        if new and learned >= first:
            blocks -= 1
        solves = new and learned >= first and blocks == 0
        if not solves and learned >= sure and room == 0:
            continue
        for u in new:
            x = tapped(u)
            v = np.maximum((power(u - 1) + power(u) + power(u + 1)) / 3, quietest * np.mean(np.abs(x) ** 2, 1)) + 1e-20
            R = forget * R + x[:, :, None] * x[:, None, :].conj() / v[:, None, None]
            p = forget * p + x * frame(u).conj()[:, None] / v[:, None]
            learned = forget * learned + 1
        if not solves:
            continue
        more = ridge * np.einsum("fkk->f", R).real / taps + 1e-20
        g = np.linalg.solve(R + more[:, None, None] * np.eye(taps), p[:, :, None])[:, :, 0]
        explained = np.sum(p.conj() * g).real / lines
        part = (explained - 7) / learned
        room = min(max((part - 0.03) / 0.02, 0), 1)
        blocks = 1 if room > 0 else seldom
        if part > 0.6:  # tones
            R, p, learned, room = 0 * R, 0 * p, 0.0, 0.0
    return Y


def energies(x, bins=40, low=20.0, high=0.0, window_ms=25.0, hop_ms=10.0, preemphasis=0.97, dereverb=False):
    """x: samples in the range of 16-bit integers -> [T, bins] in double."""
    length, hop = int(RATE * 0.001 * window_ms), int(RATE * 0.001 * hop_ms)
    size = 1
    while size < length:
        size *= 2
    if high <= 0:
        high += RATE / 2
    k = np.arange(length)
    povey = (0.5 - 0.5 * np.cos(2 * np.pi * k / (length - 1))) ** 0.85
    edges = mel(low) + (mel(high) - mel(low)) / (bins + 1) * np.arange(bins + 2)
    lines = mel(np.arange(size // 2) * RATE / size)
    triangles = np.zeros((bins, size // 2 + 1))
    for b in range(bins):
        left, centre, right = edges[b : b + 3]
        rising, falling = (lines - left) / (centre - left), (right - lines) / (right - centre)
        weight = np.where(lines <= centre, rising, falling)
        triangles[b, : size // 2] = np.where((lines > left) & (lines < right), weight, 0)
    spectra = []
    for start in range(0, len(x) - length + 1, hop):
        s = x[start : start + length].astype(np.float64)
        s = s - s.mean()
        emphasised = np.concatenate(([s[0] - preemphasis * s[0]], s[1:] - preemphasis * s[:-1]))
        spectra.append(np.fft.rfft(emphasised * povey, size))
    spectra = np.array(spectra)
    return np.abs(dereverbed(spectra) if dereverb else spectra) ** 2 @ triangles.T


def logarithm(x):
    return np.log(np.maximum(x, np.finfo(np.float32).eps))


def fbank(x, **options):
    return logarithm(energies(x, **options))


def levelled(frames, level_db):
    """energies [T, bins] -> the same with a running level (frontend/fbank.h), in double."""
    out, speech, lowest, drop = [], level_db - 10.0, None, 5.0
    for frame in frames:
        db = max(10 * np.log10(frame.sum() + 1e-30), level_db - 75)
        lowest = db if lowest is None else min(db, lowest + 0.02)
        if db > lowest + 15:
            speech = speech + (db - speech) / 20 if db > speech else max(db, speech - 0.01 - drop)
            drop /= 2
        away = level_db - speech
        gain = np.sign(away) * min(max(abs(away) - 4, 0), 40)
        out.append(frame * 10 ** (gain / 10))
    return np.array(out)


def save(name, x):
    np.save(os.path.join(HERE, name), np.ascontiguousarray(x, dtype="<f4"))


if __name__ == "__main__":
    x = signal()
    save("fbank_signal.npy", x / 32768.0)
    save("fbank_default.npy", fbank(x))
    save("fbank_5500.npy", fbank(x, high=5500.0))
    three = np.concatenate((x / 20, x, x / 3))  # a quiet speaker, a loud one, another
    save("fbank_level.npy", logarithm(levelled(energies(three), 130.0)))
    echoes = three.astype(np.float64)
    for i in range(960, len(echoes)):
        echoes[i] += 0.7 * echoes[i - 960]
    save("fbank_dereverb.npy", fbank(echoes, high=5500.0, dereverb=True))
    save("fbank_wide.npy", fbank(x, bins=23, low=64.0, high=-400.0, window_ms=40.0, hop_ms=12.5, preemphasis=0.9))
