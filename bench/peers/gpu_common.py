# What PyTorch's side of gpu.sh shares: options, the clock, peak memory, and one JSON object a line on standard output.
import argparse
import json
import statistics
import time

import torch

# 80 hours as WSJ's training set has them: 37,416 utterances of 780 frames on average.
EPOCH_FRAMES = 37416 * 780


def options(description, **more):
    """--device, --seconds (of the whole script), --quick (tiny sizes, one trial: does it run at all?) and what `more` names."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--quick", action="store_true")
    for name, default in more.items():
        parser.add_argument("--" + name.replace("_", "-"), default=default, type=type(default) if default is not None else str)
    o = parser.parse_args()
    o.deadline = time.perf_counter() + o.seconds
    o.cuda = o.device.startswith("cuda")
    torch.manual_seed(1)
    return o


def say(**fields):
    print(json.dumps(fields), flush=True)


def late(o):
    return time.perf_counter() > o.deadline


def finish(o):
    if o.cuda:
        torch.cuda.synchronize()


def clock(o, run, most=2.0):
    """Seconds of one call: median of five batches of calls that last 20 ms each, after two that do not count. None: over `most`."""
    def batch(n):
        finish(o)
        start = time.perf_counter()
        for _ in range(n):
            run()
        finish(o)
        return (time.perf_counter() - start) / n

    if batch(1) > 2 * most:
        return None
    once = batch(1)
    if once > most:
        return None
    if o.quick:
        return once
    n = max(1, int(0.02 / max(once, 1e-6)))
    return statistics.median(batch(n) for _ in range(5))


def memory_from_here(o):
    if o.cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def memory_mib(o):
    """The most that PyTorch's tensors took since memory_from_here, inputs included."""
    return torch.cuda.max_memory_allocated() / 2**20 if o.cuda else None


def allow_tf32(on):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def precision_of(dtype, tf32):
    return "bf16" if dtype == torch.bfloat16 else "tf32" if tf32 else "fp32"
