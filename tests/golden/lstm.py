#!/usr/bin/python3
"""Golden values of LSTM layers: torch.nn.LSTM in float64, forward and gradients.

    python3 lstm.py               rewrites lstm/ beside this file (needs numpy and torch; 2.15 was used)

Each folder of lstm/ is a layer in one or both directions, over utterances of unequal lengths, each alone. It holds sizes.txt, lines
of `key value...` (directions, inputs, units, frames), and little-endian float64 blocks without header. Inputs are exactly float32s:
    x [sum of frames, inputs]   w [directions, 4, units, inputs]   bias [directions, 4, units]   R [directions, 4, units, units]
    start [utterances, 2, units]   h and c before the first frame (directions 1, else zeros)
    dh [sum of frames, directions, units]   the gradient of h
Outputs:
    h [sum of frames, directions, units]   end [utterances, 2, units], directions 1: h and c after the last frame
    dx, dw, dbias, dR   gradients of sum(dh * h), with zeros in place of `start`
"""
import os

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = {"one": dict(directions=1, inputs=3, units=7, frames=[5, 1, 9]),
         "both": dict(directions=2, inputs=4, units=9, frames=[6, 2, 1, 8])}


def layer(directions, inputs, units, w, bias, R):
    net = torch.nn.LSTM(inputs, units, bidirectional=directions == 2).double()
    with torch.no_grad():
        for d, suffix in enumerate(("", "_reverse")[:directions]):
            getattr(net, "weight_ih_l0" + suffix).copy_(w[d].reshape(4 * units, inputs))
            getattr(net, "weight_hh_l0" + suffix).copy_(R[d].reshape(4 * units, units))
            getattr(net, "bias_ih_l0" + suffix).copy_(bias[d].reshape(4 * units))
            getattr(net, "bias_hh_l0" + suffix).zero_()
    return net


def gradient(net, name, directions):
    return torch.stack([getattr(net, name + suffix).grad for suffix in ("", "_reverse")[:directions]])


def write_case(name, index, directions, inputs, units, frames):
    rng = np.random.default_rng(2000 + index)
    normal = lambda scale, *shape: torch.from_numpy((scale * rng.standard_normal(shape)).astype(np.float32).astype(np.float64))
    w, bias = normal(0.7, directions, 4, units, inputs), normal(0.5, directions, 4, units)
    R = normal(0.4, directions, 4, units, units)
    x, dh = normal(1.5, sum(frames), inputs), normal(1, sum(frames), directions, units)
    start = normal(0.5, len(frames), 2, units) * (directions == 1)
    net = layer(directions, inputs, units, w, bias, R)
    blocks = dict(x=x, w=w, bias=bias, R=R, start=start, dh=dh)
    hs, ends, dxs, at = [], [], [], 0
    for b, n in enumerate(frames):
        own = x[at:at + n].clone().requires_grad_()
        state = tuple(start[b, i].reshape(1, 1, units).repeat(directions, 1, 1) for i in range(2))
        with torch.no_grad():
            h, end = net(own[:, None], state)
        hs.append(h.reshape(n, directions, units))
        ends.append(torch.stack([e[0, 0] for e in end]))
        net(own[:, None])[0].backward(dh[at:at + n].reshape(n, 1, directions * units))
        dxs.append(own.grad)
        at += n
    blocks.update(h=torch.cat(hs), dx=torch.cat(dxs), dw=gradient(net, "weight_ih_l0", directions),
                  dbias=gradient(net, "bias_ih_l0", directions), dR=gradient(net, "weight_hh_l0", directions))
    if directions == 1:
        blocks["end"] = torch.stack(ends)
    folder = os.path.join(HERE, "lstm", name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "sizes.txt"), "w") as f:
        f.write(f"directions {directions}\ninputs {inputs}\nunits {units}\nframes {' '.join(map(str, frames))}\n")
    for key, values in blocks.items():
        values.detach().numpy().astype("<f8").tofile(os.path.join(folder, key + ".f64"))


if __name__ == "__main__":
    for number, (case, sizes) in enumerate(CASES.items()):
        write_case(case, number, **sizes)
