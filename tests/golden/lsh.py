#!/usr/bin/python3
"""Writes lsh/NAME.f64: LSH attention (Reformer; Kitaev et al. 2020) and its gradient by PyTorch's autograd, in float64.

    python3 tests/golden/lsh.py        (needs numpy and torch)

A file holds qv, R, dy, y, lse, dqv and the order, in shapes as in kernels/ops.h, all as doubles.

Written as the paper does it, round by round: each round has its own softmax in the sorted order, and rounds are weighted by
exp(logsumexp of the round - logsumexp of all rounds). kernels/ops.h has the definition. Inputs are drawn anew until no two
projections that compete for a bucket are close, so that float arithmetic finds the same order.
"""
import math
import pathlib

import numpy as np
import torch

CASES = [  # name, frames of each utterance, heads, head width, rounds, chunk, rotations, causal
    ("full", [11, 1, 6], 2, 3, 2, 2, 2, False),
    ("causal", [9, 4], 1, 5, 3, 3, 4, True),
]


def head(q, v, R, chunk, causal):
    """q, v [T, E], R [rounds, E, columns] -> y [T, E], logsumexp [T], order [rounds, T]."""
    T, E = q.shape
    k = q / q.norm(dim=1, keepdim=True).clamp(min=1e-6)
    ys, sums, orders = [], [], []
    for r in range(len(R)):
        projections = q.detach() @ R[r]
        bucket = torch.cat([projections, -projections], 1).argmax(1)
        order = torch.argsort(bucket, stable=True)
        y, total = torch.zeros_like(v), torch.zeros(T, dtype=q.dtype)
        for start in range(0, T, chunk):
            mine, seen = order[start:start + chunk], order[max(0, start - chunk):start + chunk]
            score = q[mine] @ k[seen].T / math.sqrt(E)
            if causal:
                score = score.masked_fill(seen[None, :] > mine[:, None], -math.inf)
            score = score.masked_fill(seen[None, :] == mine[:, None], -1e5)
            y = y.index_put((mine,), score.softmax(1) @ v[seen])
            total = total.index_put((mine,), score.logsumexp(1))
        ys.append(y)
        sums.append(total)
        orders.append(order)
    every = torch.stack(sums)
    return (torch.stack(ys) * every.softmax(0)[:, :, None]).sum(0), every.logsumexp(0), torch.stack(orders)


def separated(q, R):
    projections = torch.einsum("te,rec->rtc", q, R)
    top = torch.cat([projections, -projections], 2).topk(2, dim=2).values
    return bool((top[..., 0] - top[..., 1]).min() > 1e-3)


def columns_of(T, chunk, rotations):
    return min(rotations, max(1, -(-T // (2 * chunk))))


def run(rng, frames, H, E, rounds, chunk, rotations, causal):
    rows = sum(frames)
    R = torch.from_numpy(rng.standard_normal((rounds, H, E, rotations)).astype(np.float32).astype(np.float64))
    parts, y, lse, order = [], [], [], []
    for T in frames:
        cut = R[..., :columns_of(T, chunk, rotations)]
        while True:
            x = torch.from_numpy((2 * rng.standard_normal((T, 2, H, E))).astype(np.float32).astype(np.float64)).requires_grad_()
            if all(separated(x[:, 0, h].detach(), cut[:, h]) for h in range(H)):
                break
        heads = [head(x[:, 0, h], x[:, 1, h], cut[:, h], chunk, causal) for h in range(H)]
        parts.append(x)
        y.append(torch.stack([a[0] for a in heads], 1))
        lse.append(torch.stack([a[1] for a in heads], 1))
        order.append(torch.stack([a[2] for a in heads], 1))
    y = torch.cat(y)
    dy = torch.from_numpy(rng.standard_normal((rows, H, E)).astype(np.float32).astype(np.float64))
    dqv = torch.autograd.grad((y * dy).sum(), parts)
    return dict(qv=torch.cat(parts), R=R, dy=dy, y=y, lse=torch.cat(lse), dqv=torch.cat(dqv)), torch.cat(order, 2)


def main():
    folder = pathlib.Path(__file__).parent / "lsh"
    for index, (name, *case) in enumerate(CASES):
        blocks, order = run(np.random.default_rng(3000 + index), *case)
        values = [*blocks.values(), order.double()]
        (folder / f"{name}.f64").write_bytes(b"".join(v.detach().numpy().tobytes() for v in values))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
