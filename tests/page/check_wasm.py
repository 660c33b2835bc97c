#!/usr/bin/env python3
"""make check-wasm: build/wasm gives the results of the native program, in node, and its page works in a real browser.

check_wasm.py LINNET FOLDER. Needs node, a Chromium and Python, nothing else.
"""
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import wave

import check_page
from browser import Browser, find
from check_page import SPEECH, check

NODE = os.path.join(os.path.dirname(__file__), "wasm.mjs")
OTHER = SPEECH.replace("0870", "0930")
MODEL = "share/linnet/en/default.safetensors"


def joined(paths, path, rate):
    """Recordings one after the other with a pause of a second, so that there are several utterances; every n-th sample repeated."""
    with wave.open(path, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        for one in paths:
            with wave.open(one) as w:
                samples = memoryview(w.readframes(w.getnframes())).cast("h")
                times = rate // w.getframerate()
                out.writeframes(b"".join(bytes(samples[i:i + 1]) * times for i in range(len(samples))) + bytes(2 * rate))


def native(linnet, folder, wav, words, precision, model):
    command = [linnet, "listen", "--json", "--no-paced", "--model", model, "--precision", precision, "--from", wav,
               *(["--words", "--readable", "--lm", os.path.join(folder, "data/en/words.lm")] if words else [])]
    lines = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.splitlines()
    return [m for m in map(json.loads, lines) if m["type"] == "final"]


def differs(a, b, near):
    """The first difference of two values of JSON, or ""; confidences may differ by `near`."""
    if isinstance(b, list) and isinstance(a, list) and len(a) == len(b):
        return next(filter(None, (differs(x, y, near) for x, y in zip(a, b))), "")
    if isinstance(b, dict):
        close = abs(a.get("confidence", 0) - b.get("confidence", 0)) <= near + 1e-9
        return next(filter(None, (differs(a.get(k), b[k], near) for k in b if k != "confidence")), "" if close else f"{a}, native: {b}")
    return "" if a == b else f"{a}, native: {b}"


def same(linnet, folder, wav, words, precision, model, near):
    command = ["node", NODE, folder, wav, model, *([] if words else ["--phonemes"])]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        return f"node: {run.stderr[-500:]}"
    print(f"       {run.stderr.strip()}")
    ours, theirs = [json.loads(line) for line in run.stdout.splitlines()], native(linnet, folder, wav, words, precision, model)
    for m in theirs:
        del m["revision"], m["latency_ms"]
    return differs(ours, theirs, near) if len(theirs) == 2 else f"native: {len(theirs)} utterances"


class Quiet(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a page that goes away before it has everything


class Server:
    """A plain server of static files; what was asked for is in `asked`."""

    def __init__(self, folder):
        asked = self.asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_request(self, code="-", size="-"):
                asked.append((self.path, int(code)))

            def log_message(self, *_):
                pass

        self.http = Quiet(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
        self.address = f"http://127.0.0.1:{self.http.server_address[1]}/"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


def without(browser, folder, name):
    """The page of a folder that lacks a file says so."""
    with tempfile.TemporaryDirectory() as broken:
        shutil.copytree(folder, broken, dirs_exist_ok=True)
        os.remove(os.path.join(broken, name))
        page = browser.page(Server(broken).address)
        page.drop(SPEECH, 400, 300)
        page.wait("the failure", "document.getElementById('status').className === 'error'")
        check(f"without {name}: the page says so", "does not run" in check_page.status(page), check_page.status(page))


def main():
    linnet, folder = sys.argv[1:3]
    program = find()
    missing = [name for name, there in (("node", shutil.which("node")), ("a Chromium", program), (SPEECH, os.path.exists(SPEECH))) if not there]
    if missing:
        sys.exit(f"make check-wasm needs {', '.join(missing)}: tools/deps.sh build demo page wasm")
    with tempfile.TemporaryDirectory() as temporary:
        wav, half = os.path.join(temporary, "two.wav"), os.path.join(temporary, "half.safetensors")
        subprocess.run([linnet, "average", "--half", MODEL, "-o", half], check=True)
        # The soxr of the system has other vectors than that of build/wasm: what is resampled differs in the last bits.
        for what, rate, near in (("16 kHz", 16000, 0.0002), ("48 kHz", 48000, 0.001)):
            joined([SPEECH, OTHER], wav, rate)
            # What is not a product of eight bits differs in its last bits, too, and then some operands round to others.
            for words, precision in ((False, "fp32"), (True, "fp32"), (False, "int8"), (True, "int8")):
                wrong = same(linnet, os.path.abspath(folder), wav, words, precision, *((half, near) if precision == "fp32" else (MODEL, 0.1)))
                check(f"node, {what}, {precision}: {'words' if words else 'phonemes'} as the native program's", not wrong, wrong)
    server = Server(folder)
    with Browser(program, SPEECH) as browser:
        page = check_page.microphone(browser, server)
        check("the microphone: no console error", not page.problems, page.problems)
        page = check_page.dropped(browser, server)
        check("a dropped file: no console error", not page.problems, page.problems)
        with tempfile.TemporaryDirectory() as described:
            check_page.described(page, described, 9)  # no settings of a server
        page.drop(SPEECH, 400, 300)
        page.wait("a second file is read", "document.getElementById('status').textContent === 'Done.'", 40)
        check("a second file", page.run("document.querySelectorAll('#text li').length") == 2, check_page.text(page))
        wrong = [f"{path}: {code}" for path, code in server.asked if code >= 400 or re.search("v1|token", path)]
        check("it asks a server for static files only", server.asked and not wrong, wrong)
        without(browser, folder, "data/en/words.lm")
    if check_page.failed:
        sys.exit(f"{len(check_page.failed)} checks FAILED")


if __name__ == "__main__":
    main()
