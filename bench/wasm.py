#!/usr/bin/env python3
"""Speed of build/wasm in node and in a headless Chromium, with several models in turns: times real time, phonemes and words.

wasm.py [--folder build/wasm] [--runs N] WAV MODEL...     WAV of 16 bits and one channel. Needs make wasm; see make check-wasm.
node: processor time, as tests/page/wasm.mjs counts it; Chromium: the time that a page takes, in pieces of 0.1 s.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "page"))
sys.dont_write_bytecode = True
from browser import Browser, find  # noqa: E402
from check_wasm import NODE, Server  # noqa: E402

PAGE = """(async () => {
  const { Linnet } = await import("./linnet.js");
  const linnet = await Linnet.open(async (name) => new Uint8Array(await (await fetch(`data/${name}`)).arrayBuffer()), { words: WORDS });
  const wav = await (await fetch("sound.wav")).arrayBuffer(), rate = new DataView(wav).getUint32(24, true);
  const samples = Float32Array.from(new Int16Array(wav.slice(44)), (x) => x / 32768), piece = rate / 10;
  const start = performance.now();
  linnet.begin(rate);
  for (let at = 0; at < samples.length; at += piece) linnet.push(samples.subarray(at, at + piece));
  linnet.finish();
  window.speed = samples.length / rate / (performance.now() - start) * 1e3;
})()"""


def in_node(folder, wav, model, words):
    command = ["node", NODE, folder, wav, model, *([] if words else ["--phonemes"])]
    told = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
    return float(re.search(r"([\d.]+) x real time", told).group(1))


def in_chromium(folder, wav, model, words):
    with tempfile.TemporaryDirectory() as temporary:
        shutil.copytree(folder, temporary, dirs_exist_ok=True)
        shutil.copy(wav, os.path.join(temporary, "sound.wav"))
        shutil.copy(model, os.path.join(temporary, "data", "en", "default.safetensors"))
        server = Server(temporary)
        with Browser(find(), wav) as browser:
            page = browser.page(server.address)
            page.run(f"{PAGE.replace('WORDS', str(words).lower())}; 0")
            page.wait("a speed", "window.speed > 0", 120)
            speed = page.run("window.speed")
        server.http.shutdown()
        server.http.server_close()
        return speed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="build/wasm")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("wav")
    parser.add_argument("model", nargs="+")
    o = parser.parse_args()
    speeds = {}
    for _ in range(o.runs):
        for where in (in_node, in_chromium):
            for words in (False, True):
                for model in o.model:
                    speeds.setdefault((where.__name__[3:], "words" if words else "phonemes", model), []).append(
                        where(os.path.abspath(o.folder), o.wav, model, words))
    for (where, what, model), found in speeds.items():
        print(f"{where:8} {what:8} {' '.join(f'{s:5.1f}' for s in sorted(found))}  {model}")


if __name__ == "__main__":
    main()
