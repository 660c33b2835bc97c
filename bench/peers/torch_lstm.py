#!/usr/bin/python3
"""The stacks of LSTM layers of bench_lstm.c in PyTorch, one line per figure: `torch NAME VALUE`. lstm.sh runs both.

torch.nn.LSTM with oneDNN, and without it under the name torch-native. A training step is forward, and backward to the weights.
"""
import argparse
import time

import torch
import torch.nn as nn

from timing import clock

B, D, U, LAYERS, STREAM_FRAMES = 16, 40, 320, 3, 4


def say(who, name, value):
    print(f"{who} {name} {value:.4g}", flush=True)


def time_batch(who, directions, frames, repeats, now):
    net = nn.LSTM(D, U, LAYERS, batch_first=True, bidirectional=directions == 2)
    name = "bidirectional" if directions == 2 else "causal"
    x, dy = torch.randn(B, frames, D), torch.randn(B, frames, directions * U)
    with torch.inference_mode():
        for seconds in clock(lambda: net(x), repeats, now):
            say(who, f"forward_{name}_ms", 1000 * seconds)

    def step():
        net.zero_grad(set_to_none=True)
        net(x)[0].backward(dy)

    for seconds in clock(step, repeats, now):
        say(who, f"train_{name}_ms", 1000 * seconds)


def time_stream(who, chunks, now):
    """One stream, one thread, four frames at a time."""
    torch.set_num_threads(1)
    net = nn.LSTM(D, U, LAYERS, batch_first=True)
    x, state = torch.randn(1, STREAM_FRAMES, D), [(torch.zeros(LAYERS, 1, U), torch.zeros(LAYERS, 1, U))]

    def feed():
        state[0] = net(x, state[0])[1]

    with torch.inference_mode():
        times = sorted(clock(feed, chunks, now))
    say(who, "chunk_p50_ms", 1000 * times[len(times) // 2])
    say(who, "chunk_p99_ms", 1000 * times[len(times) * 99 // 100])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--frames", type=int, default=800)
    parser.add_argument("--cpu-time", action="store_true", help="one thread, in processor time")
    parser.add_argument("--native", action="store_true", help="without oneDNN")
    options = parser.parse_args()
    now = time.thread_time if options.cpu_time else time.perf_counter
    torch.set_num_threads(1 if options.cpu_time else options.threads)
    torch.manual_seed(1)
    torch.backends.mkldnn.set_flags(not options.native)
    who = "torch-native" if options.native else "torch"
    for directions in (2, 1):
        time_batch(who, directions, options.frames, options.repeats, now)
    time_stream(who, 300, now)


if __name__ == "__main__":
    main()
