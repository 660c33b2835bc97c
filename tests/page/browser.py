"""A headless Chromium over the DevTools protocol, through a pipe: Python's standard library is enough.

    with Browser(chromium, microphone="speech.wav") as b:
        page = b.page("http://127.0.0.1:8090/")
        page.run("document.title")
        page.wait("done", "document.querySelectorAll('li').length > 0", seconds=20)
        page.problems  # console errors and exceptions so far

Protocol: https://chromedevtools.github.io/devtools-protocol/; messages are JSON, each ended by a NUL.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# What the browsers that docs/serve.md names first do not have yet: a page that needs it has an error.
NEWER = """for (const [of, names] of [[Array, "at findLast findLastIndex toReversed toSorted toSpliced with"], [String, "at isWellFormed toWellFormed"],
    [Object.getPrototypeOf(Int8Array), "at findLast findLastIndex toReversed toSorted with"]]) for (const n of names.split(" ")) delete of.prototype[n];
for (const [of, names] of [[Object, "hasOwn groupBy"], [Map, "groupBy"], [Array, "fromAsync"], [Promise, "withResolvers try"], [AbortSignal, "timeout any"],
    [window, "structuredClone"]]) for (const n of names.split(" ")) delete of[n];
"""
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The path of a Chromium, $CHROMIUM first, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """microphone: what it hears; allowed: whether pages get it."""

    def __init__(self, program, microphone, allowed=True):
        self.profile = tempfile.mkdtemp(prefix="linnet-page-")
        ours, theirs = os.pipe(), os.pipe()  # read by the browser, written by it
        options = ["--headless", "--disable-gpu", "--mute-audio", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage",
                   "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--use-fake-device-for-media-stream",
                   f"--use-fake-ui-for-media-stream{'' if allowed else '=deny'}",
                   f"--use-file-for-fake-audio-capture={os.path.abspath(microphone)}%noloop", "about:blank"]
        if os.geteuid() == 0:
            options.insert(0, "--no-sandbox")
        # The browser reads from 3 and writes to 4.
        self.process = subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}', "sh", program, *options],
                                        pass_fds=(ours[0], theirs[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self.input, self.output = ours[1], theirs[0]
        self.bytes, self.number, self.answers, self.pages = b"", 0, {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.input)  # it ends with its pipe
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.output)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.input, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 60
        while self.number not in self.answers:
            if time.monotonic() > end:
                raise RuntimeError(f"{method}: no answer")
            self.listen(1)
        answer = self.answers.pop(self.number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def listen(self, seconds):
        """Takes what the browser says; returns after that time at the latest."""
        if not select.select([self.output], [], [], seconds)[0]:
            return
        got = os.read(self.output, 1 << 20)
        if not got:
            raise RuntimeError("the browser is gone")
        *messages, self.bytes = (self.bytes + got).split(b"\0")
        for m in map(json.loads, messages):
            if "id" in m:
                self.answers[m["id"]] = m
            elif m.get("sessionId") in self.pages:
                self.pages[m["sessionId"]].take(m["method"], m["params"])

    def page(self, address, before=""):
        return Page(self, address, before)


class Page:
    """before: a script that runs before those of the page."""

    def __init__(self, browser, address, before=""):
        self.browser, self.problems = browser, []
        target = browser.call("Target.createTarget", url="about:blank", width=1100, height=720)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Runtime", "Log", "Page", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=NEWER + before)
        self.call("Page.navigate", url=address)
        self.wait("the page is loaded", "document.readyState === 'complete' && location.href !== 'about:blank'")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def take(self, event, p):
        if event == "Runtime.exceptionThrown":
            details = p["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(a.get("value", a.get("description", ""))) for a in p["args"]))
        elif event == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.problems.append(f'{p["entry"]["text"]} {p["entry"].get("url", "")}')

    def run(self, script):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", script))
        return answer["result"].get("value")

    def wait(self, what, condition, seconds=20):
        end = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {seconds} s")
            self.browser.listen(0.05)

    def key(self, letter):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=letter, text=letter if kind == "keyDown" else "", code=f"Key{letter.upper()}")

    def drop(self, path, x, y):
        data = {"items": [], "files": [os.path.abspath(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def look(self, width, height, dark, ratio=1):
        """The size of the window and the colour scheme that the system asks for."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))")

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
