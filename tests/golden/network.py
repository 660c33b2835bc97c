#!/usr/bin/python3
"""Golden values of the network: an independent implementation in PyTorch, float64, written from the equations.

    python3 network.py            rewrites network/<name>/ beside this file (needs numpy and torch; 1.13 was used)
    python3 network.py NAME...    only these

Attention is the explicit N x N masked sum, the convolution a sum over shifted copies, an LSTM a loop, CTC is torch's. Nothing here shares code or
algorithms with the C sources; only the order of the parameters (model/config.h) and the random numbers (base/hash.h) are common.

A folder holds config.txt, lines of `key value...`, and little-endian float64 blocks without header:
    params     [n_params]  in the order of lin_params; every value is exactly a float32
    features   [sum of frames, D]   mean, istd [D]
    logp       [sum of output frames, V]
    losses     [utterances]  -ln p(labels | frames), -1 where no path exists
    gradient   [n_params]  of the sum of the losses, utterances without a path left out; dropout 0
Of a network of tokens features are the numbers of the tokens, as sums over D, and each frame has one label, its target, or -1. logp
of a mixture are its parameters, and its loss is that of PixelCNN++ (Salimans et al. 2017). More blocks and lines of config.txt:
    drawn      tokens drawn one by one after a first one, with the uniform numbers of train/generate.h, seed 11, sequence 2
    drawn_logp [drawn, V]  what the network says before each of them, computed from all tokens before it
The folder default/ is the paper's network with values that both sides compute from a formula (default_case); it holds rows of logp.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))

DEFAULTS = dict(layers=9, heads=6, head_width=32, feedforward=768, mel_bins=40, outputs=40, stack=1, ahead=0, positions="none",
                conv_kernel=0, conv_layers=0, norm="post", causal=1)
# Written to config.txt only where they differ.
VARIANT = dict(network="transformer", attention="linear", feature_map="elu", features=0, lsh_rounds=0, lsh_chunk=0, width=0,
               decay="none", condition_every=0, tokens=0, mixture=0)
LSTM = dict(network="lstm", heads=0, head_width=0, feedforward=0)

# Utterances are (frames, labels): repeats, no label, a single frame, a path that exactly fits, one that does not exist.
CASES = {
    "post-causal": (dict(layers=2, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6),
                    [(9, [1, 2, 2, 5]), (1, [3]), (14, [4, 4, 4, 1]), (6, [])]),
    "post-bidirectional-sinusoid": (dict(layers=2, heads=3, head_width=4, feedforward=24, mel_bins=6, outputs=7, causal=0,
                                         positions="sinusoid"),
                                    [(12, [6, 1, 1, 2]), (5, [3, 3, 4]), (3, [2, 2, 2]), (17, [1, 2, 3, 4, 5, 6])]),
    "pre-causal-conv-stack": (dict(layers=3, heads=2, head_width=8, feedforward=24, mel_bins=8, outputs=7, stack=3, ahead=2,
                                   norm="pre", positions="conv", conv_kernel=4, conv_layers=2),
                              [(31, [1, 5, 5, 2]), (2, [4]), (24, [6, 3, 6]), (10, [2, 2])]),
    "pre-bidirectional-sinusoid": (dict(layers=2, heads=3, head_width=5, feedforward=17, mel_bins=5, outputs=6, stack=2, norm="pre",
                                        causal=0, positions="sinusoid"),
                                   [(15, [5, 1, 1]), (8, [2, 3, 3]), (1, [1])]),
    "post-causal-conv": (dict(layers=2, heads=1, head_width=7, feedforward=20, mel_bins=6, outputs=6, stack=2, ahead=3,
                              positions="conv", conv_kernel=3, conv_layers=1),
                         [(19, [1, 2, 3, 3]), (3, []), (22, [5, 4])]),
    "softmax-causal-conv": (dict(layers=2, heads=2, head_width=5, feedforward=12, mel_bins=5, outputs=6, stack=2, norm="pre",
                                 positions="conv", conv_kernel=3, conv_layers=1, attention="softmax"),
                            [(19, [1, 2, 3, 3]), (1, [2]), (44, [5, 4])]),
    "softmax-bidirectional": (dict(layers=2, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6, causal=0,
                                   positions="sinusoid", attention="softmax"),
                              [(9, [1, 2, 2, 5]), (1, [3]), (37, [4, 4, 4, 1]), (6, [])]),
    "lsh-causal": (dict(layers=2, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6, attention="lsh", lsh_rounds=2,
                        lsh_chunk=3), [(20, [1, 2, 2, 5]), (1, [3]), (31, [4, 4, 4, 1]), (3, [])]),
    "lsh-bidirectional": (dict(layers=2, heads=2, head_width=5, feedforward=16, mel_bins=5, outputs=6, causal=0, norm="pre",
                               positions="sinusoid", attention="lsh", lsh_rounds=3, lsh_chunk=4),
                          [(33, [1, 2, 2, 5]), (1, [3]), (18, [4, 4, 4, 1]), (4, [])]),
    "poly2-causal-conv": (dict(layers=2, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6, norm="pre", positions="conv",
                               conv_kernel=3, conv_layers=2, feature_map="poly2"), [(20, [1, 2, 2, 5]), (1, [3]), (35, [4, 1])]),
    "random-causal": (dict(layers=2, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6, feature_map="random",
                           features=7), [(20, [1, 2, 2, 5]), (1, [3]), (35, [4, 1])]),
    "random-bidirectional": (dict(layers=1, heads=2, head_width=3, feedforward=8, mel_bins=5, outputs=6, feature_map="random",
                                  causal=0, features=9), [(20, [1, 2, 2, 5]), (1, [3]), (5, [4, 1])]),
    "lstm-bidirectional": (dict(LSTM, layers=3, width=5, mel_bins=5, outputs=6, causal=0, stack=2, ahead=1),
                           [(20, [1, 2, 2, 5]), (1, [3]), (35, [4, 1]), (6, [])]),
    "lstm-causal": (dict(LSTM, layers=2, width=7, mel_bins=4, outputs=6), [(11, [1, 2, 2, 5]), (1, [3]), (23, [4, 1])]),
    "pre-centred-conv-stack": (dict(layers=3, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6, stack=2, ahead=1, causal=0,
                                    norm="pre", positions="centred-conv", conv_kernel=5, conv_layers=2),
                               [(31, [1, 5, 5, 2]), (2, [4]), (5, [3, 1]), (10, [2, 2])]),
    "decay-fixed": (dict(layers=2, heads=3, head_width=4, feedforward=16, mel_bins=5, outputs=6, decay="fixed"),
                    [(20, [1, 2, 2, 5]), (1, [3]), (35, [4, 1])]),
    "decay-gated-conv": (dict(layers=2, heads=2, head_width=5, feedforward=12, mel_bins=5, outputs=6, stack=2, ahead=1, norm="pre",
                              positions="conv", conv_kernel=3, conv_layers=1, decay="gated"),
                         [(41, [1, 2, 2, 5]), (2, [3]), (70, [4, 4, 1]), (6, [])]),
    "decay-gated": (dict(layers=2, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6, decay="gated"),
                    [(20, [1, 2, 2, 5]), (1, [3]), (35, [4, 1])]),
    "condition-pre-conv": (dict(layers=4, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6, stack=2, norm="pre",
                                positions="conv", conv_kernel=3, conv_layers=2, condition_every=1),
                           [(21, [1, 2, 2, 5]), (1, [3]), (18, [4, 4, 1]), (6, [])]),
    "condition-post": (dict(layers=5, heads=2, head_width=3, feedforward=12, mel_bins=5, outputs=6, causal=0, condition_every=2),
                       [(9, [1, 2, 2, 5]), (1, [3]), (14, [4, 4, 4, 1]), (6, [])]),
}

# Utterances are (tokens, targets), drawn by token_case: only their lengths are here. The last has no target at all.
TOKENS = dict(layers=2, heads=2, head_width=4, feedforward=16, mel_bins=1, positions="sinusoid")
TOKEN_CASES = {
    "tokens-post": dict(TOKENS, outputs=6, tokens=7),
    "tokens-pre-softmax": dict(TOKENS, outputs=9, tokens=9, mel_bins=2, norm="pre", attention="softmax"),
    "tokens-pre-gated": dict(TOKENS, outputs=7, tokens=7, norm="pre", positions="none", decay="gated"),
    "tokens-mixture-post": dict(TOKENS, outputs=9, tokens=256, mixture=3),
    "tokens-mixture-pre-softmax": dict(TOKENS, outputs=6, tokens=256, mixture=2, mel_bins=2, norm="pre", attention="softmax"),
    "tokens-lstm": dict(LSTM, layers=2, width=6, mel_bins=2, outputs=5, tokens=8),
}
TOKEN_LENGTHS, DRAWN, DRAWN_SEED, DRAWN_SEQUENCE = [12, 1, 23, 4], 20, 11, 2


def config(**options):
    return {**DEFAULTS, **VARIANT, **options}


def directions(c):
    return 1 if c["causal"] else 2


def width(c):
    return directions(c) * c["width"] if c["network"] == "lstm" else c["heads"] * c["head_width"]


def frames_out(c, frames):
    return -(-frames // c["stack"])


def shapes(c):
    """(name, shape, fan_in, kind) of every tensor; fan_in 0 for norms."""
    C, Fw = width(c), c["feedforward"]
    linear = lambda name, n, k: [(name + ".weight", (n, k), k), (name + ".bias", (n,), k)]
    norm = lambda name: [(name + ".weight", (C,), 0), (name + ".bias", (C,), 0)]
    inputs = C if c["tokens"] else (c["stack"] + c["ahead"]) * c["mel_bins"]
    table = [("embedding.weight", (c["tokens"], C), 1)] if c["tokens"] else []
    if c["network"] == "lstm":
        n, U, out = 4 * C, c["width"], table
        for i in range(c["layers"]):
            p = f"layers.{i}."
            out += [(p + "gates.weight", (n, C if i else inputs), U), (p + "gates.bias", (n,), U), (p + "recurrent.weight", (n, U), U)]
        return out + linear("output", c["outputs"], C)
    out = table or linear("input", C, inputs)
    for i in range(c["layers"]):
        p = f"layers.{i}."
        if i < c["conv_layers"]:
            K = c["conv_kernel"]
            out += [(p + "conv.weight", (K, C), K), (p + "conv.bias", (C,), K)]
        out += linear(p + "qv", 2 * C, C) if c["attention"] == "lsh" else linear(p + "qkv", 3 * C, C)
        if c["feature_map"] == "random":
            out += [(p + "omega", (c["heads"] * c["features"], c["head_width"]), 0)]
        if c["decay"] == "gated":
            out += linear(p + "decay", c["heads"], C)
        if c["decay"] == "fixed":
            out += [(p + "decay.bias", (c["heads"],), C)]
        out += linear(p + "out", C, C) + norm(p + "norm1")
        out += linear(p + "ff1", Fw, C) + linear(p + "ff2", C, Fw) + norm(p + "norm2")
    condition = linear("condition", C, c["outputs"]) if c["condition_every"] else []
    return out + norm("norm") + condition + linear("output", c["outputs"], C)


def split(c, flat):
    """The named tensors of the flat block, as views that carry gradients back to it."""
    tensors, at = {}, 0
    for name, shape, _ in shapes(c):
        size = int(np.prod(shape))
        tensors[name] = flat[at:at + size].view(shape)
        at += size
    assert at == flat.numel()
    return tensors


def stacked(c, x, mean, istd):
    """[T, D] -> [ceil(T/s), (s+R) D]."""
    x = (x - mean) * istd
    n = c["stack"] + c["ahead"]
    rows = [torch.cat([x[min(t * c["stack"] + j, len(x) - 1)] for j in range(n)]) for t in range(frames_out(c, len(x)))]
    return torch.stack(rows)


def sinusoid(T, C):
    p = np.zeros((T, C))
    for t in range(T):
        for i in range(C // 2):
            angle = t / 10000.0 ** (2 * i / C)
            p[t, 2 * i], p[t, 2 * i + 1] = np.sin(angle), np.cos(angle)
    return torch.from_numpy(p)


def convolution(x, w, b, centred):
    """Tap j of K reads frame t - (K - 1) + j, or half of K later if centred; frames outside of the utterance are 0."""
    K, T = w.shape[0], len(x)
    after = K // 2 if centred else 0
    padded = torch.cat([x.new_zeros(K - 1 - after, x.shape[1]), x, x.new_zeros(after, x.shape[1])])
    return b + sum(w[j] * padded[j:j + T] for j in range(K))


def mapped(c, omega, u):
    """phi of [H, T, E]: elu + 1; all products of degree 2 at most; positive random features."""
    E = c["head_width"]
    if c["feature_map"] == "elu":
        return F.elu(u) + 1
    u = u / E ** 0.25
    if c["feature_map"] == "random":
        omega = omega.view(c["heads"], c["features"], E).detach()
        return torch.exp(u @ omega.transpose(1, 2) - (u * u).sum(2, keepdim=True) / 2) / c["features"] ** 0.5
    pairs = torch.stack([u[..., i] * u[..., j] * (1 if i == j else 2 ** 0.5) for i in range(E) for j in range(i, E)], -1)
    return torch.cat([pairs, 2 ** 0.5 * u, torch.ones_like(u[..., :1])], -1)


def rotations(c, layer):
    """R [rounds, H, E, 64] of paper/networks.h: Box-Muller on the counters of the layer's key."""
    shape = (c["lsh_rounds"], c["heads"], c["head_width"], 64)
    u = random_uniform(random_key(0, layer), int(np.prod(shape)))
    radius, angle = np.sqrt(-2 * np.log(1 - u[0::2])), 2 * np.pi * u[1::2]
    return torch.from_numpy(as_float32(np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(shape)))


def lsh_counts(c, q, R):
    """[H, T, T]: in how many rounds query i sees key j (Kitaev et al. 2020): same or previous chunk of the frames sorted by bucket."""
    H, T, E = q.shape
    chunk, counts = c["lsh_chunk"], torch.zeros(H, T, T, dtype=q.dtype)
    half = min(64, max(1, -(-T // (2 * chunk))))
    for r in range(c["lsh_rounds"]):
        for h in range(H):
            turned = q[h].detach() @ R[r, h, :, :half]
            bucket = torch.cat([turned, -turned], 1).argmax(1)
            place = torch.empty(T, dtype=torch.long)
            place[torch.sort(bucket, stable=True).indices] = torch.arange(T)
            back = place[:, None] // chunk - place[None, :] // chunk
            counts[h] += (back == 0) | (back == 1)
    return counts


def remaining(c, x, w, b):
    """[H, T, T]: what is left at frame i of what came at frame j <= i, the product of the decays of frames j+1 .. i, each
    sigmoid(gate)^(1/16) with the gate of its frame, or a constant that is not trained; 0 for j > i."""
    gate = x @ w.T + b if c["decay"] == "gated" else b.detach().expand(len(x), -1)
    a = torch.sigmoid(gate) ** (1 / 16)
    T, rows = len(x), []
    for i in range(T):
        left, row = torch.ones(c["heads"], dtype=x.dtype), [None] * T
        for j in range(i, -1, -1):
            row[j] = left
            left = left * a[j]
        rows.append(torch.stack([torch.zeros_like(left) if u is None else u for u in row], 1))
    return torch.stack(rows, 1)


def attention(c, x, w, b, omega, layer, decay):
    """The variants as full matrices of weights: Katharopoulos et al. 2020, eq. 4 (8 when causal); softmax; Reformer."""
    T, H, E = len(x), c["heads"], c["head_width"]
    u = (x @ w.T + b).view(T, -1, H, E).permute(1, 2, 0, 3)
    q, k, v = u if len(u) == 3 else (u[0], u[0] / u[0].norm(dim=2, keepdim=True), u[1])
    seen = torch.ones(H, T, T, dtype=x.dtype)
    if c["attention"] == "lsh":
        seen = lsh_counts(c, q, rotations(c, layer))
    if c["causal"]:
        seen = seen.tril()
    if c["decay"] != "none":
        seen = remaining(c, x, *decay)
    if c["attention"] == "linear":
        weight = (mapped(c, omega, q) @ mapped(c, omega, k).transpose(1, 2)) * seen
        y = (weight @ v) / (weight.sum(2, keepdim=True) + 1e-6)
    else:
        score = q @ k.transpose(1, 2) / E ** 0.5
        if c["attention"] == "lsh":
            score = torch.where(torch.eye(T, dtype=torch.bool), torch.tensor(-1e5, dtype=x.dtype), score)
        score = score + torch.log(seen)
        y = torch.softmax(score, 2) @ v
    return y.permute(1, 0, 2).reshape(T, H * E)


def lstm(c, p, x):
    """One pass over the layers, step by step; gates i, f, g, o."""
    U = c["width"]
    for i in range(c["layers"]):
        name, outputs = f"layers.{i}.", []
        for d in range(directions(c)):
            rows = slice(4 * U * d, 4 * U * (d + 1))
            gates = F.linear(x, p[name + "gates.weight"][rows], p[name + "gates.bias"][rows])
            h = state = x.new_zeros(U)
            steps = {}
            for t in range(len(x)) if d == 0 else reversed(range(len(x))):
                a, f, g, o = (gates[t] + p[name + "recurrent.weight"][rows] @ h).split(U)
                state = torch.sigmoid(f) * state + torch.sigmoid(a) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(state)
                steps[t] = h
            outputs.append(torch.stack([steps[t] for t in range(len(x))]))
        x = torch.cat(outputs, 1)
    return x


def forward(c, p, x, mean, istd):
    """Log-probabilities [ceil(T/s), V] of one utterance x [T, D]; p: dictionary of tensors."""
    C = width(c)
    pair = lambda name: (p[name + ".weight"], p[name + ".bias"])
    norm = lambda name, u: F.layer_norm(u, (C,), *pair(name), eps=1e-5)
    says = (lambda u: u) if c["mixture"] else (lambda u: F.log_softmax(u, dim=1))
    if c["tokens"]:
        x = F.embedding(x.sum(1).long(), p["embedding.weight"])
    else:
        x = stacked(c, x, mean, istd)
    if c["network"] == "lstm":
        return says(F.linear(lstm(c, p, x), *pair("output")))
    if not c["tokens"]:
        x = F.linear(x, *pair("input"))
    if c["positions"] == "sinusoid":
        x = x + sinusoid(len(x), C)
    for i in range(c["layers"]):
        name = f"layers.{i}."
        mixed = pair(name + ("qv" if c["attention"] == "lsh" else "qkv"))
        decay = p.get(name + "decay.weight"), p.get(name + "decay.bias")
        attend = lambda u: F.linear(attention(c, u, *mixed, p.get(name + "omega"), i, decay), *pair(name + "out"))
        feed = lambda u: F.linear(torch.relu(F.linear(u, *pair(name + "ff1"))), *pair(name + "ff2"))
        if i < c["conv_layers"]:
            x = x + convolution(x, *pair(name + "conv"), c["positions"] == "centred-conv")
        for block, ln in ((attend, name + "norm1"), (feed, name + "norm2")):
            x = norm(ln, x + block(x)) if c["norm"] == "post" else x + block(norm(ln, x))
        if c["condition_every"] and (i + 1) % c["condition_every"] == 0 and i + 1 < c["layers"]:
            x = x + F.linear(torch.softmax(F.linear(norm("norm", x), *pair("output")), dim=1), *pair("condition"))
    return says(F.linear(norm("norm", x), *pair("output")))


def ctc(logp, labels):
    """-ln p(labels | frames); infinity where no path exists."""
    return F.ctc_loss(logp[:, None], torch.tensor([labels], dtype=torch.long).view(1, -1), [len(logp)], [len(labels)],
                      reduction="none")[0]


def mixture_loss(c, x, target):
    """discretized_mix_logistic_loss of PixelCNN++ for one channel: x [rows, 3 M], target [rows] in 0..255. Its formulas for small
    probabilities are approximations, which must not be needed here."""
    logits, mean, scale = x.split(c["mixture"], 1)
    scale = torch.clamp(scale, min=-7)
    centred = (target / 127.5 - 1)[:, None] - mean
    plus, minus = torch.exp(-scale) * (centred + 1 / 255), torch.exp(-scale) * (centred - 1 / 255)
    delta = torch.sigmoid(plus) - torch.sigmoid(minus)
    middle = (target > 0) & (target < 255)
    assert (delta[middle] > 1e-5).all()
    inner = torch.log(torch.clamp(delta, min=1e-12))
    logp = torch.where((target == 0)[:, None], plus - F.softplus(plus),
                       torch.where((target == 255)[:, None], -F.softplus(minus), inner))
    return -torch.logsumexp(F.log_softmax(logits, 1) + logp, 1).sum()


def token_loss(c, logp, targets):
    counts = targets >= 0
    if c["mixture"]:
        return mixture_loss(c, logp[counts], targets[counts].double())
    return -logp[counts].gather(1, targets[counts][:, None]).sum()


# base/hash.h on arrays of counters.
MASK = (1 << 64) - 1


def mix64(z):
    z = np.uint64(z)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random_key(key, label):
    with np.errstate(over="ignore"):
        return int(mix64(np.uint64(key) ^ mix64((label + 0xD1B54A32D192ED03) & MASK)))


def random_uniform(key, count):
    with np.errstate(over="ignore"):
        counter = np.arange(1, count + 1, dtype=np.uint64)
        bits = mix64(mix64(np.uint64(key) + np.uint64(0x9E3779B97F4A7C15) * counter) ^ np.uint64(key))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0 ** -53


def initial(c, seed):
    """lin_params_init: uniform in +-1/sqrt(fan_in); 1 and 0 for norms."""
    parts = []
    for i, (name, shape, fan_in) in enumerate(shapes(c)):
        count = int(np.prod(shape))
        if fan_in:
            parts.append((2 * random_uniform(random_key(seed, i), count) - 1) / np.sqrt(fan_in))
        else:
            parts.append(np.full(count, 1.0 if name.endswith("weight") else 0.0))
    return as_float32(np.concatenate(parts))


def as_float32(x):
    return np.asarray(x, dtype=np.float32).astype(np.float64)


def random_params(c, rng):
    """Values larger than at the start of training, so that no part of the network is nearly linear; norms differ from 1 and 0."""
    parts = []
    for name, shape, fan_in in shapes(c):
        value = rng.standard_normal(int(np.prod(shape)))
        if "decay" in name:  # gates from strong to weak decays
            value = 3 * value * np.sqrt(fan_in) if name.endswith("bias") else 2 * value
        parts.append(value if name.endswith("omega") else value / np.sqrt(fan_in) if fan_in else (1.0 if name.endswith("weight") else 0.0) + 0.3 * value)
    return as_float32(np.concatenate(parts))


def write_case(folder, c, utterances, blocks, extra=()):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.txt"), "w") as f:
        for key, value in c.items():
            if key not in VARIANT or value != VARIANT[key]:
                f.write(f"{key} {value}\n")
        for key, values in (("frames", [n for n, _ in utterances]), ("label_counts", [len(l) for _, l in utterances]),
                            ("labels", [x for _, l in utterances for x in l]), *extra):
            f.write(" ".join([key, *map(str, values)]) + "\n")
    for name, values in blocks.items():
        np.asarray(values, dtype="<f8").tofile(os.path.join(folder, name + ".f64"))


def make_data(c, utterances, rng):
    D = c["mel_bins"]
    return [as_float32(3 * rng.standard_normal((n, D)) - 5) for n, _ in utterances], as_float32(rng.standard_normal(D) - 5), \
        as_float32(0.2 + 0.3 * rng.random(D))


def small_case(name, index):
    options, utterances = CASES[name]
    c = config(**options)
    rng = np.random.default_rng(1000 + index)
    params = torch.from_numpy(random_params(c, rng)).requires_grad_()
    features, mean, istd = make_data(c, utterances, rng)
    tensors = split(c, params)
    logps, losses, total = [], [], 0
    for x, (_, labels) in zip(features, utterances):
        logp = forward(c, tensors, *map(torch.from_numpy, (x, mean, istd)))
        loss = ctc(logp, labels)
        possible = bool(torch.isfinite(loss))
        losses.append(loss.item() if possible else -1.0)
        logps.append(logp.detach().numpy())
        total = total + (loss if possible else 0)
    gradient, = torch.autograd.grad(total, params)
    write_case(os.path.join(HERE, "network", name), c, utterances,
               dict(params=params.detach().numpy(), features=np.concatenate(features), mean=mean, istd=istd,
                    logp=np.concatenate(logps), losses=losses, gradient=gradient.numpy()), [("n_params", [params.numel()])])
    print(f"{name}: {params.numel()} parameters, losses {np.round(losses, 4)}, |gradient| {gradient.norm():.4f}")


def spread(c, tokens, rng):
    """[T, D] whose sums are the tokens."""
    x = np.zeros((len(tokens), c["mel_bins"]))
    x[:, 0] = tokens
    for d in range(1, c["mel_bins"]):
        x[:, d] = rng.integers(0, 5, len(tokens))
        x[:, 0] -= x[:, d]
    return x


def draw(c, tensors, first):
    """DRAWN tokens after the first one, and what the network says before each, every time from all tokens."""
    tokens, says = [first], []
    for place in range(1, DRAWN + 1):
        x = torch.tensor(tokens, dtype=torch.double)[:, None]
        with torch.no_grad():
            row = forward(c, tensors, x, None, None)[-1].numpy()
        u, w = random_uniform(random_key(random_key(DRAWN_SEED, DRAWN_SEQUENCE), place), 2)
        p = np.exp(row[:c["mixture"] or None] - row[:c["mixture"] or None].max())
        steps = np.cumsum(p / p.sum())
        chosen = int(np.searchsorted(steps, u, side="right"))
        margin = np.abs(steps - u).min()
        if c["mixture"]:
            at = row[c["mixture"] + chosen] + np.exp(max(row[2 * c["mixture"] + chosen], -7)) * np.log(w / (1 - w))
            value = (min(max(at, -1), 1) + 1) * 127.5
            chosen = int(np.floor(value + 0.5))
            margin = min(margin, abs(value + 0.5 - np.rint(value + 0.5)) / 50 if 0 < value < 255 else 1)
        assert margin > 1e-5, margin  # float32 draws the same
        tokens.append(chosen)
        says.append(row)
    return tokens, np.array(says)


def token_case(name, index):
    c = config(**TOKEN_CASES[name])
    rng = np.random.default_rng(3000 + index)
    values = random_params(c, rng)
    if c["mixture"]:  # wide logistics about the middle
        M, C = c["mixture"], width(c)
        values[-3 * M * (C + 1):-3 * M] *= 0.5
        values[-2 * M:-M] = as_float32(0.3 * rng.standard_normal(M))
        values[-M:] = as_float32(-0.3 + 0.3 * rng.standard_normal(M))
    params = torch.from_numpy(values).requires_grad_()
    tensors = split(c, params)
    symbols = 256 if c["mixture"] else c["outputs"]
    features, logps, losses, utterances, total = [], [], [], [], 0
    for b, n in enumerate(TOKEN_LENGTHS):
        targets = rng.integers(-1, symbols, n)
        if b + 1 == len(TOKEN_LENGTHS):
            targets[:] = -1
        elif n > 3:
            targets[:3] = -1, symbols - 1, 0
        features.append(spread(c, rng.integers(0, c["tokens"], n), rng))
        logp = forward(c, tensors, torch.from_numpy(features[-1]), None, None)
        loss = token_loss(c, logp, torch.from_numpy(targets))
        utterances.append((n, targets.tolist()))
        logps.append(logp.detach().numpy())
        losses.append(loss.item())
        total = total + loss
    gradient, = torch.autograd.grad(total, params)
    drawn, says = draw(c, tensors, 3)
    D = c["mel_bins"]  # a network of tokens ignores the normalisation
    write_case(os.path.join(HERE, "network", name), c, utterances,
               dict(params=values, features=np.concatenate(features), mean=rng.standard_normal(D), istd=rng.standard_normal(D),
                    logp=np.concatenate(logps), losses=losses, gradient=gradient.numpy(), drawn_logp=says),
               [("n_params", [params.numel()]), ("drawn", drawn)])
    print(f"{name}: {params.numel()} parameters, losses {np.round(losses, 4)}, drawn {drawn}")


def default_case():
    """Feature i of frame-major [100, 40] is float(6 u - 3), u = uniform(key(2, 0), i); mean float(u - 0.5), u of key(2, 1); istd
    float(0.5 + u), u of key(2, 2). Parameters: lin_params_init with seed 1."""
    c, T, rows = config(), 100, [0, 1, 50, 99]
    D = c["mel_bins"]
    x = as_float32(6 * random_uniform(random_key(2, 0), T * D) - 3).reshape(T, D)
    mean = as_float32(random_uniform(random_key(2, 1), D) - 0.5)
    istd = as_float32(0.5 + random_uniform(random_key(2, 2), D))
    params = torch.from_numpy(initial(c, 1))
    logp = forward(c, split(c, params), *map(torch.from_numpy, (x, mean, istd))).numpy()
    write_case(os.path.join(HERE, "network", "default"), c, [(T, [])], dict(rows=logp[rows]),
               [("n_params", [params.numel()]), ("rows", rows)])
    print(f"default: {params.numel()} parameters, frame 99 from {logp[99].min():.3f} to {logp[99].max():.3f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for number, case in enumerate(CASES):
        if len(sys.argv) < 2 or case in sys.argv[1:]:
            small_case(case, number)
    for number, case in enumerate(TOKEN_CASES):
        if len(sys.argv) < 2 or case in sys.argv[1:]:
            token_case(case, number)
    if len(sys.argv) < 2:
        default_case()
