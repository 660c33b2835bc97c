#!/usr/bin/env python3
"""The paper's network trained by PyTorch at the lengths of WSJ: frames a second, and what 80 hours would take. For bench/gpu.sh.

    gpu_model.py [--device cuda] [--plan FILE] [--precision tf32] [--causal 0] [--kind eager] [--batch-frames 16000] [--seconds 20]

The network and its attention are those of torch_model.py, here with a mask for padded frames; a step is forward, CTC, backward, clipping
to a norm and one fused AdamW step. FILE holds linnet's own batches, a line each, "frames:labels" for every utterance, so that both train on
the same ones; here they are padded to the longest utterance of the batch. Features lie on the device already and are not copied at all.
Kinds: eager; compiled (every layer by torch.compile, dynamic shapes); shape (compiled for utterances of 832 frames alone, nothing padded,
forward and backward replayed as CUDA graphs: the most PyTorch could give if every batch were alike).
"""
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpu_common as common  # noqa: E402
from gpu_common import say  # noqa: E402
import torch_model as plain  # noqa: E402

CHUNK, DROPOUT, V, D = 64, 0.1, 40, 40


class Block(nn.Module):
    """A layer of torch_model.Network; mask [B, 1, T, 1] is 0 for padded frames (φ(0) is 1, so keys are masked after φ), or None."""

    def __init__(self, layer, causal, dropout):
        super().__init__()
        self.layer, self.causal, self.dropout = layer, causal, dropout

    def forward(self, x, mask):
        q, k, v = self.layer.heads_of(x)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        if mask is not None:
            k = k * mask
        y = plain.attend_causal(q, k, v, CHUNK) if self.causal else plain.attend_all(q, k, v)
        return self.layer.rest(x, y.to(x.dtype), self.dropout)


class Trained(nn.Module):
    def __init__(self, causal, dropout):
        super().__init__()
        self.net = plain.build("causal" if causal else "bidirectional", dropout)[1]
        self.blocks = nn.ModuleList(Block(layer, causal, dropout) for layer in self.net.layers)

    def forward(self, x, mask=None):
        x = self.net.input(x)
        for block in self.blocks:
            x = block(x, mask)
        return F.log_softmax(self.net.output(self.net.norm(x)).float(), -1)


def check(causal):
    """Against torch_model.py's own network, with padding behind the shorter utterance."""
    net = Trained(causal, 0.0)
    x = torch.randn(2, 2 * CHUNK, D)
    mask = torch.ones(2, 1, 2 * CHUNK, 1)
    mask[1, :, CHUNK:] = 0
    with torch.no_grad():
        got = net(x, mask)
        plain.CHUNK = CHUNK
        assert (got[0] - net.net(x[:1])[0]).abs().max() < 1e-4, "the network disagrees with torch_model.py"
        assert (got[1, :CHUNK] - net.net(x[1:, :CHUNK])[0]).abs().max() < 1e-4, "padded frames are not masked"


def read_plan(path):
    with open(path) as lines:
        return [[tuple(map(int, word.split(":"))) for word in line.split()] for line in lines if line.strip()]


class Trainer:
    def __init__(self, o):
        self.o = o
        self.net = Trained(o.causal == 1, DROPOUT).to(o.device)
        self.parameters = list(self.net.parameters())
        self.optimiser = torch.optim.AdamW(self.parameters, 1e-4, weight_decay=0.01, **({"fused": True} if o.cuda else {}))
        self.half = o.precision == "bf16"
        self.run = self.net

    def autocast(self):
        return torch.autocast("cuda" if self.o.cuda else "cpu", torch.bfloat16, enabled=self.half, cache_enabled=self.o.kind != "shape")

    def compile(self):
        for i, block in enumerate(self.net.blocks):
            self.net.blocks[i] = torch.compile(block, dynamic=self.o.kind == "compiled")

    def graph(self, x):
        """Forward and backward of one shape as CUDA graphs."""
        with self.autocast():
            self.run = torch.cuda.make_graphed_callables(self.net, (x,))

    def step(self, x, mask, targets, frames, labels):
        with self.autocast():
            logp = self.run(x) if mask is None else self.run(x, mask)
        loss = F.ctc_loss(logp.transpose(0, 1), targets, frames, labels, reduction="sum") / int(frames.sum())
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return loss


def padded_length(o, utterances):
    """Frames of the longest, rounded up to whole chunks where attention needs them, else to what matrix products like."""
    unit = CHUNK if o.causal else 8
    return -(-max(t for t, _ in utterances) // unit) * unit


def batch_of(o, utterances, pool):
    """Padded to the longest utterance; x is a view of random numbers, so it costs nothing."""
    frames = torch.tensor([t for t, _ in utterances])
    labels = torch.tensor([u for _, u in utterances])
    B, T = len(utterances), padded_length(o, utterances)
    x = pool[:B * T * D].view(B, T, D)
    mask = None
    if o.kind != "shape":
        mask = (torch.arange(T)[None] < frames[:, None]).view(B, 1, T, 1).float().to(o.device)
    targets = torch.randint(1, V, (B, int(labels.max()))).to(o.device)
    return x, mask, targets, frames, labels


def train(o, batches, name):
    """Frames a second over the batches, as many as fit into the time."""
    most = max(len(b) * padded_length(o, b) for b in batches)
    pool = torch.randn(most * D, device=o.device)
    trainer = Trainer(o)
    begin = time.perf_counter()
    if o.kind != "eager":
        trainer.compile()
    made = [batch_of(o, b, pool) for b in batches]
    if o.kind == "shape" and o.cuda:
        for _ in range(2):
            trainer.step(*made[0])
        try:
            trainer.graph(made[0][0])
        except Exception as e:
            name = f"PyTorch compiled, one shape (no graphs: {type(e).__name__})"
    common.memory_from_here(o)
    for i in range(min(8, len(made))):
        trainer.step(*made[i])
    common.finish(o)
    prepared = time.perf_counter() - begin
    # the largest batch too, before the clock runs: the allocator keeps what it needs
    trainer.step(*made[max(range(len(made)), key=lambda i: made[i][0].numel())])
    common.finish(o)
    start, done, steps, loss = time.perf_counter(), 0, 0, None
    while steps < len(made) or steps < 20:
        if o.quick and steps == 3:
            break
        loss = trainer.step(*made[steps % len(made)])
        done += int(made[steps % len(made)][3].sum())
        steps += 1
        if steps % 32 == 0:
            common.finish(o)
            if common.late(o):
                break
    common.finish(o)
    seconds = time.perf_counter() - start
    assert torch.isfinite(loss).item(), "the loss is not finite"
    rate = done / seconds
    padded = sum(b[0].shape[0] * b[0].shape[1] for b in made) / sum(int(b[3].sum()) for b in made)
    say(part="epoch", who=name, precision=o.precision, causal=o.causal, batch_frames=o.batch_frames, frames_per_s=rate,
        epoch_s=common.EPOCH_FRAMES / rate, measured_s=seconds, steps=steps, prepared_s=prepared, padded=padded,
        mib=common.memory_mib(o))


NAMES = {"eager": "PyTorch", "compiled": "PyTorch compiled", "shape": "PyTorch compiled, one shape, graphs"}


def main():
    o = common.options(__doc__.split("\n")[0], plan="", precision="tf32", causal=0, kind="eager", batch_frames=16000)
    common.allow_tf32(o.precision != "fp32")
    name = NAMES[o.kind]
    try:
        check(o.causal == 1)
        if o.kind != "eager":
            from torch import _dynamo
            _dynamo.config.cache_size_limit = 64
        if o.kind == "shape" or not o.plan:
            t = 128 if o.quick else 832
            batches = [[(t, t // 8)] * max(1, o.batch_frames // t)] * 20
        else:
            batches = read_plan(o.plan)
        train(o, batches, name)
    except Exception as e:
        say(part="epoch", who=name, precision=o.precision, causal=o.causal, batch_frames=o.batch_frames,
            left_out=f"{type(e).__name__}: {e}".split("\n")[0])
        if os.environ.get("LINNET_BENCH_TRACE"):
            raise


if __name__ == "__main__":
    main()
