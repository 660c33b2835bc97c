#!/usr/bin/python3
"""Ten-step training traces in float64 on tiny models: Adam and RAdam, with and without clipping of the gradient.

    python3 training.py           rewrites training/<name>/ beside this file (needs numpy and torch; see network.py)

Every step uses one batch of all utterances; the loss is the mean over utterances of -ln p(labels | frames); dropout 0.
config.txt and the blocks params (at the start), features, mean, istd are as in network.py. Each line
    trace NAME OPTIMISER LR WEIGHT_DECAY DECAYED CLIP
of config.txt describes NAME.f64: 11 losses, before each of ten steps and after the last. NAME-params.f64 holds the parameters
after the last step. CLIP is none, global (the whole gradient is scaled to norm CLIP_NORM if it is larger) or tensor (the same for
each tensor, as in the library published with the paper). Betas 0.9 and 0.999, eps 1e-8; weight decay is decoupled (p -= lr wd p
before the step) and applies to all tensors or to matrices only, as DECAYED says.
"""
import os

import numpy as np
import torch

import network
from network import config, ctc, forward, make_data, random_params, shapes, split, write_case

STEPS, CLIP_NORM = 10, 1.0
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8

MODELS = {
    "pre-conv": (dict(layers=2, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6, stack=2, ahead=1, norm="pre",
                      positions="conv", conv_kernel=3, conv_layers=1),
                 [(19, [1, 2, 3, 3]), (12, [5, 4]), (22, [2, 1, 2]), (9, [4]), (15, [3, 5, 1])]),
    "post-sinusoid": (dict(layers=2, heads=2, head_width=4, feedforward=16, mel_bins=5, outputs=6, positions="sinusoid", causal=0),
                      [(11, [5, 5, 2]), (7, [1, 4]), (16, [3, 1, 2, 4]), (9, [2])]),
}
TRACES = {
    "adam": ("adam", 0.005, 0.0, "matrices", "none"),
    "adam-clip": ("adam", 0.005, 0.01, "matrices", "global"),
    "radam": ("radam", 0.01, 0.01, "matrices", "none"),
    "radam-clip": ("radam", 0.01, 0.01, "all", "global"),
    "radam-clip-tensor": ("radam", 0.01, 0.1, "all", "tensor"),
}


class Optimiser:
    """Adam (Kingma & Ba 2015) and RAdam (Liu et al. 2020, Algorithm 2; with 5 in place of 4 in the condition
    rho <= 4, as in its authors' code)."""

    def __init__(self, kind, lr, decay, size):
        self.kind, self.lr, self.decay = kind, lr, decay
        self.m, self.v, self.t = torch.zeros(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64), 0

    def step(self, p, g):
        self.t += 1
        self.m = BETA1 * self.m + (1 - BETA1) * g
        self.v = BETA2 * self.v + (1 - BETA2) * g * g
        p -= self.lr * self.decay * p
        m_hat = self.m / (1 - BETA1 ** self.t)
        v_hat = self.v / (1 - BETA2 ** self.t)
        rectification, adaptive = 1.0, True
        if self.kind == "radam":
            rho_inf = 2 / (1 - BETA2) - 1
            rho = rho_inf - 2 * self.t * BETA2 ** self.t / (1 - BETA2 ** self.t)
            adaptive = rho >= 5
            if adaptive:
                rectification = ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
        p -= self.lr * (rectification * m_hat / (v_hat.sqrt() + EPS) if adaptive else m_hat)


def clipped(g, how, sizes):
    if how == "none":
        return g
    parts = [g] if how == "global" else list(g.split(sizes))
    return torch.cat([x * min(1.0, CLIP_NORM / max(x.norm().item(), 1e-300)) for x in parts])


def run(c, data, utterances, start, trace, reference=False):
    """Losses and final parameters; reference: torch's own Adam instead of this one, for the comparison below."""
    kind, lr, decay, decayed, clip = trace
    sizes = [int(np.prod(shape)) for _, shape, _ in shapes(c)]
    decay = torch.cat([torch.full((n,), decay if decayed == "all" or len(shape) == 2 else 0.0, dtype=torch.float64)
                       for n, (_, shape, _) in zip(sizes, shapes(c))])
    p = torch.from_numpy(start.copy()).requires_grad_()
    optimiser = torch.optim.Adam([p], lr, (BETA1, BETA2), EPS) if reference else Optimiser(kind, lr, decay, len(start))
    features, mean, istd = data
    losses = []
    for step in range(STEPS + 1):
        tensors = split(c, p)
        loss = sum(ctc(forward(c, tensors, *map(torch.from_numpy, (x, mean, istd))), labels)
                   for x, (_, labels) in zip(features, utterances)) / len(utterances)
        losses.append(loss.item())
        if step == STEPS:
            return losses, p.detach().numpy()
        g = clipped(torch.autograd.grad(loss, p)[0], clip, sizes)
        with torch.no_grad():
            if reference:
                p.grad = g
                optimiser.step()
            else:
                optimiser.step(p, g)


def main():
    for index, (name, (options, utterances)) in enumerate(MODELS.items()):
        c = config(**options)
        rng = np.random.default_rng(2000 + index)
        start, data = random_params(c, rng), make_data(c, utterances, rng)
        features, mean, istd = data
        blocks = dict(params=start, features=np.concatenate(features), mean=mean, istd=istd)
        lines = [("n_params", [len(start)])]
        for trace_name, trace in TRACES.items():
            losses, end = run(c, data, utterances, start, trace)
            blocks[trace_name], blocks[trace_name + "-params"] = losses, end
            lines.append(("trace", [trace_name, *trace]))
            print(name, trace_name, np.round(losses, 4))
            if trace[0] == "adam" and trace[2] == 0:
                other = run(c, data, utterances, start, trace, reference=True)[0]
                assert np.allclose(losses, other, rtol=1e-10, atol=0), (losses, other)
        write_case(os.path.join(network.HERE, "training", name), c, utterances, blocks, lines)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
