#!/usr/bin/python3
"""linnet's network (the paper's: 9 layers, 6 heads, width 192, feed-forward 768) in PyTorch as fast as plain operators make it.

    torch_model.py                times it, one line per figure: `torch NAME VALUE`
    torch_model.py --export DIR   writes causal.onnx, bidirectional.onnx and stream.onnx for onnx_model.py, with the data it needs

Causal attention is chunked: masked products inside a chunk, running sums between chunks; a column of ones beside the values carries
the normaliser. The result is checked against tests/golden/network.py before anything is timed. peers.sh sets the environment.
"""
import argparse
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from timing import clock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden"))
import network  # noqa: E402

B, T, LABELS, STREAM_FRAMES = 16, 800, 80, 4
CHUNK = 80


def phi(x):
    return F.elu(x).add_(1)


def with_ones(v):
    return F.pad(v, (0, 1), value=1.0)


def ratio(y):
    return y[..., :-1] / (y[..., -1:] + 1e-6)


def attend_all(q, k, v):
    return ratio(q @ (k.transpose(-1, -2) @ with_ones(v)))


def attend_causal(q, k, v, chunk):
    """q, k, v [B, H, T, E], T a multiple of chunk."""
    b, h, t, e = q.shape
    q, k, v = (x.reshape(b, h, t // chunk, chunk, e) for x in (q, k, v))
    v = with_ones(v)
    own = torch.tril(q @ k.transpose(-1, -2)) @ v
    sums = (k.transpose(-1, -2) @ v)[:, :, :-1].cumsum(2)
    before = F.pad(sums, (0, 0, 0, 0, 1, 0))
    return ratio(own + q @ before).reshape(b, h, t, e)


def attend_step(q, k, v, state):
    """A few frames after `state` [B, H, E, E+1], the sums of φ(k) vᵀ and of φ(k)."""
    v = with_ones(v)
    y = torch.tril(q @ k.transpose(-1, -2)) @ v + q @ state
    return ratio(y), state + k.transpose(-1, -2) @ v


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        C, Fw = network.width(c), c["feedforward"]
        self.heads = c["heads"]
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.ff1, self.ff2 = nn.Linear(C, Fw), nn.Linear(Fw, C)
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)

    def heads_of(self, x):
        b, t, C = x.shape
        return self.qkv(x).view(b, t, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)

    def rest(self, x, y, dropout):
        y = self.out(y.transpose(1, 2).reshape(x.shape))
        x = self.norm1(x + F.dropout(y, dropout, dropout > 0))
        y = F.dropout(self.ff1(x).relu_(), dropout, dropout > 0)
        return self.norm2(x + F.dropout(self.ff2(y), dropout, dropout > 0))


class Network(nn.Module):
    """x [B, T, 40] -> log-probabilities [B, T, V]; with state [L, B, H, E, E+1]: also the state after the last frame."""

    def __init__(self, c, mode, dropout=0.0):
        super().__init__()
        C = network.width(c)
        self.mode, self.dropout = mode, dropout
        self.input, self.output, self.norm = nn.Linear(c["mel_bins"], C), nn.Linear(C, c["outputs"]), nn.LayerNorm(C)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["layers"]))

    def forward(self, x, state=None):
        x = self.input(x)
        states = []
        for i, layer in enumerate(self.layers):
            q, k, v = layer.heads_of(x)
            q, k = phi(q), phi(k)
            if state is not None:
                y, after = attend_step(q, k, v, state[i])
                states.append(after)
            elif self.mode == "causal":
                y = attend_causal(q, k, v, min(CHUNK, x.shape[1]))
            else:
                y = attend_all(q, k, v)
            x = layer.rest(x, y, self.dropout)
        logp = F.log_softmax(self.output(self.norm(x)), -1)
        return logp if state is None else (logp, torch.stack(states))


def build(mode, dropout=0.0):
    """The network with the weights of lin_params_init, seed 1."""
    c = network.config(causal=int(mode == "causal"))
    net = Network(c, mode, dropout)
    tensors = network.split(c, torch.from_numpy(network.initial(c, 1)))
    net.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return c, net, tensors


def check(mode):
    """The fast forms against the explicit N x N one in float64; streams against the causal form."""
    c, net, tensors = build(mode)
    x = torch.randn(1, 2 * CHUNK, c["mel_bins"], generator=torch.Generator().manual_seed(1))
    D = c["mel_bins"]
    want = network.forward(c, tensors, x[0].double(), torch.zeros(D).double(), torch.ones(D).double())
    got = net(x)[0]
    assert (got - want).abs().max() < 1e-4, "the fast form disagrees with tests/golden/network.py"
    if mode == "causal":
        state, rows = new_state(c), []
        for t in range(0, x.shape[1], STREAM_FRAMES):
            logp, state = net(x[:, t:t + STREAM_FRAMES], state)
            rows.append(logp[0])
        assert (torch.cat(rows) - want).abs().max() < 1e-4, "the stream disagrees with the causal form"


def new_state(c):
    return torch.zeros(c["layers"], 1, c["heads"], c["head_width"], c["head_width"] + 1)


def say(name, value):
    print(f"torch {name} {value:.4g}", flush=True)


def faster(net, x):
    """The network, or what torch.compile makes of it where that is faster."""
    try:
        compiled = torch.compile(net)
        compiled(x)
    except Exception as error:  # no compiler, or a version without it
        print(f"torch.compile: {type(error).__name__}", file=sys.stderr)
        return net
    times = [min(clock(lambda: n(x), 3)) for n in (net, compiled)]
    print(f"torch.compile: {times[1]:.3f} s, without: {times[0]:.3f} s", file=sys.stderr)
    return compiled if times[1] < times[0] else net


def time_forward(mode, repeats):
    c, net, _ = build(mode)
    x = torch.randn(B, T, c["mel_bins"])
    with torch.inference_mode():
        net = faster(net, x)
        for seconds in clock(lambda: net(x), repeats):
            say(f"forward_{mode}_frames_per_s", B * T / seconds)


def quantised(net):
    """Its linear layers with weights in eight bits, and inputs rounded as they come; None where this PyTorch has no such thing."""
    try:
        from torch.ao.quantization import quantize_dynamic
    except ImportError:
        try:
            from torch.quantization import quantize_dynamic
        except ImportError as error:
            print(f"torch_model.py: no eight bits: {error}", file=sys.stderr)
            return None
    return quantize_dynamic(net.eval(), {nn.Linear}, dtype=torch.qint8)


def time_int8(repeats, chunks):
    for mode in ("causal", "bidirectional"):
        c, net, _ = build(mode)
        x = torch.randn(B, T, c["mel_bins"])
        with torch.inference_mode():
            want, eight = net(x[:1]), quantised(net)
            if eight is None:
                return
            assert (eight(x[:1]) - want).abs().max() < 1, "eight bits give another result"
            for seconds in clock(lambda: eight(x), repeats):
                say(f"int8_forward_{mode}_frames_per_s", B * T / seconds)
    time_stream(chunks, "int8_", quantised)


def time_training(mode, repeats):
    c, net, _ = build(mode, 0.1)
    x = torch.randn(B, T, c["mel_bins"])
    labels = torch.randint(1, c["outputs"], (B, LABELS))
    frames, counts = torch.full((B,), T), torch.full((B,), LABELS)
    optimiser = torch.optim.Adam(net.parameters(), 1e-4, foreach=True)

    def step():
        optimiser.zero_grad(set_to_none=True)
        F.ctc_loss(net(x).transpose(0, 1), labels, frames, counts, reduction="sum").div(B).backward()
        optimiser.step()

    for seconds in clock(step, repeats):
        say(f"train_{mode}_ms", 1000 * seconds)


def time_stream(chunks, prefix="", made=lambda net: net):
    """One stream, one thread, 40 ms at a time."""
    torch.set_num_threads(1)
    c, net, _ = build("causal")
    net = made(net)
    x, state = torch.randn(1, STREAM_FRAMES, c["mel_bins"]), [new_state(c)]

    def feed():
        state[0] = net(x, state[0])[1]

    with torch.inference_mode():
        times = sorted(clock(feed, chunks))
    say(prefix + "chunk_p50_ms", 1000 * times[len(times) // 2])
    say(prefix + "chunk_p99_ms", 1000 * times[len(times) * 99 // 100])


def write_graph(net, inputs, path, **names):
    """With the version of ONNX's operations that this PyTorch writes by itself, by the exporter that traces: newer versions have
    another one too, and call this one dynamo=False."""
    try:
        torch.onnx.export(net, inputs, path, dynamo=False, **names)
    except TypeError:
        torch.onnx.export(net, inputs, path, **names)


def export(folder):
    os.makedirs(folder, exist_ok=True)
    D = network.DEFAULTS["mel_bins"]
    for mode in ("causal", "bidirectional"):
        net = build(mode)[1]
        x = torch.randn(B, T, D)
        write_graph(net.eval(), (x,), os.path.join(folder, mode + ".onnx"), input_names=["x"], output_names=["logp"])
        np.save(os.path.join(folder, mode + "_x.npy"), x.numpy())
        with torch.inference_mode():
            np.save(os.path.join(folder, mode + "_logp.npy"), net(x)[:1].numpy())
    c, net, _ = build("causal")
    write_graph(net.eval(), (torch.randn(1, STREAM_FRAMES, D), new_state(c)), os.path.join(folder, "stream.onnx"),
                input_names=["x", "state"], output_names=["logp", "next"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export", metavar="DIR")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    with torch.inference_mode():
        check("causal")
        check("bidirectional")
    if options.export:
        return export(options.export)
    for mode in ("causal", "bidirectional"):
        time_forward(mode, options.repeats)
        time_training(mode, options.repeats)
    time_int8(options.repeats, 500)
    time_stream(500)


if __name__ == "__main__":
    main()
