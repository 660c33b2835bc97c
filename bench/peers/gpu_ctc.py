#!/usr/bin/env python3
"""CTC in PyTorch, its own kernels and cuDNN's: loss and gradient of 16,000 and 64,000 rows. For bench/gpu.sh.

    gpu_ctc.py [--device cuda] [--seconds 20] [--quick]

Utterances of 800 frames with 100 labels, 40 outputs. "ctc": from log-probabilities to the gradient by them. "ctc, softmax": from logits to
the gradient by the logits, the log-softmax and its backward pass included.
"""
import torch
import torch.nn.functional as F

import gpu_common as common
from gpu_common import say

T, U, V = 800, 100, 40


def measure(o, name, B, t, u, targets, frames, labels):
    logits = torch.randn(t, B, V, device=o.device)
    logp = logits.log_softmax(-1).requires_grad_(True)
    logits.requires_grad_(True)

    def alone():
        return torch.autograd.grad(F.ctc_loss(logp, targets, frames, labels, reduction="sum"), logp)

    def with_softmax():
        return torch.autograd.grad(F.ctc_loss(logits.log_softmax(-1), targets, frames, labels, reduction="sum"), logits)

    for what, run in (("ctc", alone), ("ctc, softmax", with_softmax)):
        common.memory_from_here(o)
        seconds = common.clock(o, run)
        if seconds is None:
            continue
        say(part="ctc", who=name, what=what, rows=B * t, T=t, U=u, us=1e6 * seconds, mib=common.memory_mib(o))


def main():
    o = common.options(__doc__.split("\n")[0])
    t, u = (80, 10) if o.quick else (T, U)
    for rows in (160,) if o.quick else (16000, 64000):
        B = rows // t
        targets = torch.randint(1, V, (B, u))
        frames, labels = torch.full((B,), t, dtype=torch.int32), torch.full((B,), u, dtype=torch.int32)
        try:
            # lengths stay on the host: reading them back would wait for the device
            measure(o, "PyTorch", B, t, u, targets.to(o.device), frames.long(), labels.long())
        except Exception as e:
            say(part="ctc", who="PyTorch", rows=rows, left_out=f"{type(e).__name__}: {e}".split("\n")[0])
        if not o.cuda:
            continue
        # cuDNN is taken for 32-bit labels end to end on the host, all utterances as long as the longest
        try:
            flat = targets.int().reshape(-1)
            if not torch._use_cudnn_ctc_loss(torch.empty(t, B, V, device=o.device), flat, frames.tolist(), labels.tolist(), 0):
                raise RuntimeError("PyTorch does not take cuDNN for these sizes")
            measure(o, "cuDNN", B, t, u, flat, frames, labels)
        except Exception as e:
            say(part="ctc", who="cuDNN", rows=rows, left_out=f"{type(e).__name__}: {e}".split("\n")[0])


if __name__ == "__main__":
    main()
