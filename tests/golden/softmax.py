#!/usr/bin/python3
"""Golden values of softmax attention: torch.nn.functional.scaled_dot_product_attention and its gradients, in float64.

    python3 softmax.py            writes softmax_full.npy and softmax_causal.npy beside this file (needs numpy and torch; 2.15 was used)

Two utterances of 5 and 66 frames, 2 heads of width 3. A row of a file: q, k, v, dy, y, dq, dk, dv of one frame, each [H, E]; q, k, v
and dy are exactly float32.
"""
import os

import numpy as np
import torch
import torch.nn.functional as F

LENGTHS, H, E = (5, 66), 2, 3


def case(causal):
    generator = torch.Generator().manual_seed(12)
    rows = []
    for T in LENGTHS:
        q, k, v, dy = (torch.randn(1, H, T, E, generator=generator).double() for _ in range(4))
        for x in (q, k, v):
            x.requires_grad_()
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        y.backward(dy)
        parts = [x.detach()[0].transpose(0, 1).reshape(T, H * E) for x in (q, k, v, dy, y, q.grad, k.grad, v.grad)]
        rows.append(torch.cat(parts, 1))
    return torch.cat(rows).numpy().astype("<f4")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    np.save(os.path.join(here, "softmax_full.npy"), case(False))
    np.save(os.path.join(here, "softmax_causal.npy"), case(True))


if __name__ == "__main__":
    main()
