#!/usr/bin/env python3
"""linnet's network in ONNX Runtime: times the graphs that torch_model.py --export DIR wrote.

    python3 -m venv VENV && VENV/bin/pip install onnxruntime onnx
    VENV/bin/python onnx_model.py DIR [--threads N] [--repeats N]

One line per run: `onnx NAME VALUE`. Every graph's output is compared with PyTorch's before it is timed. int8_NAME: the same graph
with the weights of its matrix products in eight bits, for each output of a layer, and inputs rounded as they come
(quantize_dynamic); it needs the package onnx.
"""
import argparse
import logging
import os
import sys

import numpy as np
import onnxruntime as ort

from timing import clock

STREAM_FRAMES, CHUNKS = 4, 500


def quantised(folder, name):
    """The name of the graph in eight bits, or None without the package onnx."""
    here, sys.path[:] = sys.path[:], sys.path[1:]  # it has a module of the name of this one
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        print(f"onnx_model.py: no eight bits: {error}", file=sys.stderr)
        return None
    finally:
        sys.path[:] = here
    logging.getLogger().setLevel(logging.ERROR)  # it warns of every product that is not one of weights
    quantize_dynamic(os.path.join(folder, name + ".onnx"), os.path.join(folder, name + "_int8.onnx"), per_channel=True,
                     weight_type=QuantType.QInt8)
    return name + "_int8"


def session(folder, name, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(os.path.join(folder, name + ".onnx"), options, providers=["CPUExecutionProvider"])


def say(name, value):
    print(f"onnx {name} {value:.6g}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    load = lambda name: np.load(os.path.join(given.folder, name + ".npy"))
    modes = ("causal", "bidirectional", "stream")
    time_graphs(given, load, "", {mode: mode for mode in modes}, 1e-4)
    eight = {mode: quantised(given.folder, mode) for mode in modes}
    if all(eight.values()):
        time_graphs(given, load, "int8_", eight, 1)


def time_graphs(given, load, prefix, names, tolerance):
    """names: of the graphs of the modes; tolerance: of log-probabilities, against PyTorch's."""
    for mode in ("causal", "bidirectional"):
        x, graph = load(mode + "_x"), session(given.folder, names[mode], given.threads)
        logp = graph.run(None, {"x": x})[0]
        assert np.abs(logp[:1] - load(mode + "_logp")).max() < tolerance, "ONNX Runtime disagrees with PyTorch"
        for seconds in clock(lambda: graph.run(None, {"x": x}), given.repeats):
            say(f"{prefix}forward_{mode}_frames_per_s", x.shape[0] * x.shape[1] / seconds)
    graph = session(given.folder, names["stream"], 1)
    x, want = load("causal_x")[:1], load("causal_logp")[0]
    shape = [i.shape for i in graph.get_inputs() if i.name == "state"][0]
    state, rows = np.zeros(shape, np.float32), []
    for t in range(0, x.shape[1], STREAM_FRAMES):
        logp, state = graph.run(None, {"x": x[:, t:t + STREAM_FRAMES], "state": state})
        rows.append(logp[0])
    assert np.abs(np.concatenate(rows) - want).max() < tolerance, "the stream disagrees with the whole utterance"
    feed = {"x": x[:, :STREAM_FRAMES], "state": state}
    times = sorted(clock(lambda: graph.run(None, feed), CHUNKS))
    say(prefix + "chunk_p50_ms", 1000 * times[len(times) // 2])
    say(prefix + "chunk_p99_ms", 1000 * times[len(times) * 99 // 100])


if __name__ == "__main__":
    main()
