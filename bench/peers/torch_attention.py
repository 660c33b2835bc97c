#!/usr/bin/python3
"""Softmax attention of one layer of the paper's network (6 heads of width 32) in PyTorch, forward and backward, causal and full.

    torch_attention.py [--threads N] [--repeats N] [T ...]        one line per run: `torch NAME VALUE`

softmax: scaled_dot_product_attention, given q, k and v both as views of the projection's output, as a network has them, and as
contiguous copies; the faster of the two counts. naive: two matrix products and torch.softmax, with all scores in memory.
"""
import argparse
import math
import time

import torch
import torch.nn.functional as F

H, E = 6, 32


def tiled(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def naive(q, k, v, causal):
    scores = q @ k.transpose(-1, -2) / math.sqrt(E)
    if causal:
        T = q.shape[2]
        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
    return torch.softmax(scores, -1) @ v


def clock(run, options):
    """Seconds of each repeat, after two that do not count; short runs are repeated within it."""
    now = time.perf_counter
    run()
    start = now()
    run()
    inner = 1 + int(0.002 / (now() - start + 1e-7))
    times = []
    for _ in range(options.repeats):
        start = now()
        for _ in range(inner):
            run()
        times.append((now() - start) / inner)
    return times


def best_of(a, b):
    return a if min(a) <= min(b) else b


def measure(name, attend, T, causal, options):
    forward, backward = [], []
    for copied in (False, True):
        q, k, v = torch.randn(1, T, 3, H, E).permute(2, 0, 3, 1, 4).unbind(0)
        if copied:
            q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        with torch.inference_mode():
            forward.append(clock(lambda: attend(q, k, v, causal), options))
        for x in (q, k, v):
            x.requires_grad_()
        y = attend(q, k, v, causal)
        dy = torch.randn_like(y)
        backward.append(clock(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True), options))
    mode = "causal" if causal else "full"
    for which, times in (("forward", best_of(*forward)), ("backward", best_of(*backward))):
        for seconds in times:
            print(f"torch {name}_{which}_{mode}_{T}_ms {1000 * seconds:.5g}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("T", type=int, nargs="*", default=[800, 2400])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    for T in options.T:
        for causal in (True, False):
            measure("softmax", tiled, T, causal, options)
            measure("naive", naive, T, causal, options)


if __name__ == "__main__":
    main()
