#!/usr/bin/env python3
"""Attention in PyTorch for lengths 2^9 .. 2^16, forward and forward + backward: time and peak memory. For bench/gpu.sh.

    gpu_attention.py [--device cuda] [--rows 65536] [--seconds 60] [--quick] [--library FOLDER]

Forms: softmax as N x N matrices ("softmax"), softmax by scaled_dot_product_attention ("softmax fused"), elu + 1 linear attention from
plain operators ("linear": two products; causal: chunks with running sums, the fastest of three chunk lengths), the same compiled, and,
where they can be imported, fast-transformers' causal product and flash-linear-attention's chunked kernel. fast-transformers is also built
from FOLDER/causal_product_cuda.cu where that is there, because the package itself does not build with present-day compilers.
A form is left alone from the length on at which it has no memory or takes more than two seconds.
"""
import os

import torch
import torch.nn.functional as F

import gpu_common as common
from gpu_common import say

H, E, EPS = 6, 32, 1e-6
CHUNKS = (64, 128, 256)


def phi(x):
    return F.elu(x) + 1


def softmax(q, k, v, causal):
    s = q @ k.transpose(-1, -2) * E**-0.5
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1), float("-inf"))
    return s.softmax(-1) @ v


def softmax_fused(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def linear(q, k, v, causal, chunk=128):
    """q, k, v [B, H, N, E]; a column of ones beside the values carries the normaliser."""
    q, k, v = phi(q), phi(k), F.pad(v, (0, 1), value=1.0)
    if not causal:
        y = q @ (k.transpose(-1, -2) @ v)
    else:
        b, h, n, _ = q.shape
        chunk = min(chunk, n)
        q, k, v = (x.reshape(b, h, n // chunk, chunk, -1) for x in (q, k, v))
        sums = (k.transpose(-1, -2) @ v).float().cumsum(2)[:, :, :-1].to(v.dtype)
        y = torch.tril(q @ k.transpose(-1, -2)) @ v + q @ F.pad(sums, (0, 0, 0, 0, 1, 0))
        y = y.reshape(b, h, n, -1)
    return y[..., :-1] / (y[..., -1:] + EPS)


def explicit(q, k, v, causal):
    """Katharopoulos et al. 2020, eq. 4 and 8, as the matrix of similarities, in double precision."""
    q, k, v = q.double(), k.double(), v.double()
    s = phi(q) @ phi(k).transpose(-1, -2)
    if causal:
        s = s.tril()
    return s @ v / (s.sum(-1, keepdim=True) + EPS)


def fast_transformers(folder):
    """Their causal product with the normaliser around it, as their CausalLinearAttention does it; q, k, v [B, H, N, E], fp32."""
    try:
        from fast_transformers.causal_product import causal_dot_product as product
    except ImportError:
        source = os.path.join(folder or "", "causal_product_cuda.cu")
        if not os.path.exists(source) or not torch.cuda.is_available():
            raise
        from torch.utils.cpp_extension import load
        theirs = load("causal_product_cuda", [source], verbose=False)

        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, q, k, v):
                ctx.save_for_backward(q, k, v)
                y = torch.zeros_like(v)
                theirs.causal_dot_product(q, k, v, y)
                return y

            @staticmethod
            def backward(ctx, dy):
                q, k, v = ctx.saved_tensors
                dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
                theirs.causal_dot_backward(q, k, v, dy.contiguous(), dq, dk, dv)
                return dq, dk, dv

        product = Product.apply

    def attend(q, k, v, causal):
        q, k = phi(q), phi(k)
        z = 1 / ((q * k.cumsum(2)).sum(-1, keepdim=True) + EPS)
        return product(q.contiguous(), k.contiguous(), v.contiguous()) * z

    return attend


def flash_linear_attention():
    """Their layout is [B, N, H, E]: the caller's tensors are views of it, so nothing is copied."""
    from fla.ops.linear_attn import chunk_linear_attn

    def attend(q, k, v, causal):
        q, k, v = (x.transpose(1, 2) for x in (phi(q), phi(k), v))
        return chunk_linear_attn(q.contiguous(), k.contiguous(), v.contiguous(), scale=1.0, normalize=True)[0].transpose(1, 2)

    return attend


def make(o, B, N, dtype, like_fla):
    shape = (B, N, H, E) if like_fla else (B, H, N, E)
    tensors = [torch.randn(shape, device=o.device).to(dtype) for _ in range(4)]
    return [(x.transpose(1, 2) if like_fla else x) for x in tensors]


def check(o, name, attend, dtype, causal):
    """None, or why this form is not the function it should be."""
    q, k, v, _ = make(o, 2, 512, dtype, name == "flash-linear-attention")
    got, want = attend(q, k, v, causal).double(), explicit(q, k, v, causal)
    if name.startswith("softmax"):
        want = softmax(q.double(), k.double(), v.double(), causal)
    error = ((got - want).norm() / want.norm()).item()
    return None if error < (2e-2 if dtype == torch.bfloat16 else 2e-3) else f"relative error {error:.2g}"


def measure(o, name, attend, dtype, causal, B, N):
    """Says both passes; False: this length is beyond this form."""
    base = dict(part="attention", who=name, precision=common.precision_of(dtype, True), causal=int(causal), B=B, N=N)
    q, k, v, dy = make(o, B, N, dtype, name == "flash-linear-attention")
    if name == "softmax" and o.cuda:
        need = 4 * B * H * N * N * q.element_size()
        if need > 0.8 * torch.cuda.get_device_properties(0).total_memory:
            return False
    common.memory_from_here(o)
    with torch.no_grad():
        seconds = common.clock(o, lambda: attend(q, k, v, causal))
    if seconds is None:
        return False
    say(**base, **{"pass": "forward"}, us=1e6 * seconds, mib=common.memory_mib(o))
    for x in (q, k, v):
        x.requires_grad_(True)
    common.memory_from_here(o)
    seconds = common.clock(o, lambda: torch.autograd.grad(attend(q, k, v, causal), (q, k, v), dy))
    if seconds is None:
        return False
    say(**base, **{"pass": "both"}, us=1e6 * seconds, mib=common.memory_mib(o))
    return True


def best_chunk(o, rows, dtype):
    if o.quick or not o.cuda:
        return 64
    q, k, v, _ = make(o, rows // 1024, 1024, dtype, False)
    with torch.no_grad():
        times = {c: common.clock(o, lambda c=c: linear(q, k, v, True, c)) or 1e9 for c in CHUNKS}
    return min(times, key=times.get)


def main():
    o = common.options(__doc__.split("\n")[0], rows=65536, library="")
    common.allow_tf32(True)
    if o.quick:
        o.rows = 2048
    lengths = [2**i for i in range(9, 17) if 2**i <= o.rows]
    chunk = {t: best_chunk(o, o.rows, t) for t in (torch.float32, torch.bfloat16)}
    both, fp32, half = (False, True), (torch.float32,), (torch.float32, torch.bfloat16)

    def chunked(q, k, v, causal):
        return linear(q, k, v, causal, chunk[q.dtype])

    forms = [("softmax", lambda: softmax, half, both), ("linear", lambda: chunked, half, both)]
    if hasattr(F, "scaled_dot_product_attention"):
        forms.insert(1, ("softmax fused", lambda: softmax_fused, half, both))
    if o.cuda and hasattr(torch, "compile"):
        from torch import _dynamo
        _dynamo.config.cache_size_limit = 64
        forms.append(("linear compiled", lambda: torch.compile(chunked, dynamic=True), half, both))
    # Last what may leave the device in a bad state.
    forms.append(("fast-transformers", lambda: fast_transformers(o.library), fp32, (True,)))
    forms.append(("flash-linear-attention", flash_linear_attention, half, (True,)))
    for name, get, dtypes, directions in forms:
        try:
            attend = get()
        except Exception as e:
            say(part="attention", who=name, left_out=f"{type(e).__name__}: {e}".split("\n")[0])
            continue
        for dtype in dtypes:
            for causal in directions:
                try:
                    why = check(o, name, attend, dtype, causal)
                    if why:
                        say(part="attention", who=name, precision=common.precision_of(dtype, True), causal=int(causal), left_out=why)
                        continue
                    for N in lengths:
                        if common.late(o):
                            say(part="attention", who=name, left_out="the time was up")
                            return
                        if not measure(o, name, attend, dtype, causal, o.rows // N, N):
                            break
                except torch.cuda.OutOfMemoryError:
                    continue
                except Exception as e:
                    say(part="attention", who=name, precision=common.precision_of(dtype, True), causal=int(causal),
                        left_out=f"{type(e).__name__}: {e}".split("\n")[0])


if __name__ == "__main__":
    main()
