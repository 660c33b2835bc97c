#!/usr/bin/env python3
"""One layer of a bidirectional LSTM in PyTorch, which is cuDNN on a GPU. For bench/gpu.sh.

    gpu_lstm.py [--device cuda] [--seconds 20] [--quick]

320 units a direction on 640 inputs; B utterances of 800 frames. "layer, forward" without gradients; "layer, both passes": to the gradients of
the inputs and of all weights.
"""
import torch

import gpu_common as common
from gpu_common import say

U, K, T = 320, 640, 800


def measure(o, B, t, dtype, tf32):
    precision = common.precision_of(dtype, tf32)
    common.allow_tf32(tf32)
    net = torch.nn.LSTM(K, U, bidirectional=True).to(o.device, dtype)
    x = torch.randn(t, B, K, device=o.device, dtype=dtype, requires_grad=True)
    dy = torch.randn(t, B, 2 * U, device=o.device, dtype=dtype)

    def forward():
        with torch.inference_mode():
            net(x)

    def both():
        torch.autograd.grad(net(x)[0], [x, *net.parameters()], dy)

    for what, run in (("layer, forward", forward), ("layer, both passes", both)):
        common.memory_from_here(o)
        seconds = common.clock(o, run)
        if seconds is not None:
            say(part="lstm", who="PyTorch", precision=precision, what=what, B=B, T=t, us=1e6 * seconds, us_per_step=1e6 * seconds / t,
                mib=common.memory_mib(o))


def main():
    o = common.options(__doc__.split("\n")[0])
    for B in (2,) if o.quick else (16, 48, 1):
        for dtype, tf32 in ((torch.float32, True), (torch.float32, False), (torch.bfloat16, False)):
            if common.late(o):
                return
            try:
                measure(o, B, 12 if o.quick else T, dtype, tf32)
            except Exception as e:
                say(part="lstm", who="PyTorch", precision=common.precision_of(dtype, tf32), left_out=f"{type(e).__name__}: {e}".split("\n")[0])


if __name__ == "__main__":
    main()
