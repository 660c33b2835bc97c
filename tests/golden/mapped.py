#!/usr/bin/python3
"""Golden values of linear attention with other feature maps: the explicit N x N sums and their gradients, by torch in float64.

    python3 mapped.py             writes mapped_*.npy beside this file (needs numpy and torch; 2.15 was used)

Two utterances of 5 and 37 frames, 2 heads of width 3. A row of mapped_MAP_DIRECTION.npy: q, k, v, dy, y, dq, dk, dv of one frame, each
[H, E]; q, k, v and dy are exactly float32. mapped_omega.npy: omega [H D, E] of the random features, D = 7.
"""
import os

import numpy as np
import torch

LENGTHS, H, E, D = (5, 37), 2, 3, 7


def poly2(q, k, omega):
    return (q @ k.transpose(1, 2) / E ** 0.5 + 1) ** 2


def random(q, k, omega):
    def phi(x):
        x = x / E ** 0.25
        return torch.exp(x @ omega.transpose(1, 2) - (x * x).sum(2, keepdim=True) / 2) / D ** 0.5
    return phi(q) @ phi(k).transpose(1, 2)


def case(weights, omega, causal):
    generator = torch.Generator().manual_seed(20)
    rows = []
    for T in LENGTHS:
        q, k, v, dy = ((torch.randn(H, T, E, generator=generator) / 2).double() for _ in range(4))
        for x in (q, k, v):
            x.requires_grad_()
        a = weights(q, k, omega)
        if causal:
            a = torch.tril(a)
        y = a @ v / (a.sum(2, keepdim=True) + 1e-6)
        y.backward(dy)
        parts = [x.detach().transpose(0, 1).reshape(T, H * E) for x in (q, k, v, dy, y, q.grad, k.grad, v.grad)]
        rows.append(torch.cat(parts, 1))
    return torch.cat(rows).numpy().astype("<f4")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    omega = torch.randn(H, D, E, generator=torch.Generator().manual_seed(21))
    np.save(os.path.join(here, "mapped_omega.npy"), omega.reshape(H * D, E).numpy().astype("<f4"))
    for weights in (poly2, random):
        for causal, name in enumerate(("full", "causal")):
            path = os.path.join(here, "mapped_%s_%s.npy" % (weights.__name__, name))
            np.save(path, case(weights, omega.double(), causal))


if __name__ == "__main__":
    main()
