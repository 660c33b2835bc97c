#!/usr/bin/env python3
"""make check-page: the page of linnet serve in a real browser, with a file as its microphone.

check_page.py LINNET FOLDER: pictures of the page, and the tree of a screen reader, are written into the folder. Needs a Chromium and Python, nothing else.
"""
import difflib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import wave

from browser import Browser, find

SPEECH = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav"
SAID = "and mister john dashwood had then leisure to consider how much there might be prudently in his power to do for them"
FORMATS = {
    "txt": lambda text: text.strip(),
    "srt": lambda text: re.match(r"1\n00:00:\d\d,\d{3} --> 00:00:\d\d,\d{3}\n\w", text),
    "vtt": lambda text: re.match(r"WEBVTT\n\n00:00:\d\d\.\d{3} --> ", text),
    "TextGrid": lambda text: text.startswith('File type = "ooTextFile"\n') and 'name = "words"' in text and 'name = "phones"' in text,
    "json": lambda text: json.loads(text)[0]["words"][0]["start"] >= 0,
}
failed = []


def check(what, good, more=""):
    print(f"{'ok    ' if good else 'FAILED'} {what}{'' if good else f': {more}'}", flush=True)
    if not good:
        failed.append(what)


def words(text):
    return re.sub(r"[^a-z' ]", "", text.lower().replace("mr.", "mister")).split()


class Server:
    """linnet serve; start again after stop: at the same port."""

    def __init__(self, linnet, *options):
        self.linnet, self.port, self.options = linnet, 0, options
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.linnet, "serve", "--listen", f"127.0.0.1:{self.port}", "--limits", "max-lag-ms=0", *self.options],
                                        stderr=subprocess.PIPE, text=True)
        lines = (re.search(r"serving at \S*127\.0\.0\.1:(\d+)/", line) for line in self.process.stderr)
        self.port = int(next(line for line in lines if line).group(1))
        self.address = f"http://127.0.0.1:{self.port}/"

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(30)
        self.process.stderr.close()


def status(page):
    return page.run("document.getElementById('status').textContent")


def text(page):
    return page.run("[...document.querySelectorAll('#text li')].map((li) => li.children[1].textContent).join(' ')")


def heard(what, page):
    got = text(page)
    check(f"{what}: the words of the sentence", difflib.SequenceMatcher(None, words(SAID), words(got)).ratio() > 0.8, got)


def microphone(browser, server):
    page = browser.page(server.address)
    page.look(1100, 720, dark=False)
    page.key("r")
    page.wait("the microphone opens", "document.getElementById('record').getAttribute('aria-pressed') === 'true'")
    page.wait("words before the end of the sentence", "document.getElementById('growing').textContent.trim() !== ''")
    check("the microphone: words while the sentence goes on", True)
    page.wait("an utterance", "document.querySelectorAll('#text li').length > 0")
    heard("the microphone", page)
    page.wait("a latency", "/latency \\d+ ms/.test(document.getElementById('latency').textContent)")
    check("the microphone: its latency", True)
    page.key("r")
    page.wait("it stops", "document.getElementById('record').getAttribute('aria-pressed') === 'false'")
    return page


def dropped(browser, server):
    page = browser.page(server.address)
    page.look(1100, 720, dark=False)
    page.drop(SPEECH, 400, 300)
    page.wait("the file is read", "document.getElementById('status').textContent === 'Done.'", 40)
    heard("a dropped file", page)
    arpabet = page.run("document.querySelector('#text .phones').textContent")
    check("phonemes", re.fullmatch(r"[A-Z]+( [A-Z]+)+", arpabet), arpabet)
    page.key("i")
    ipa = page.run("document.querySelector('#text .phones').textContent")
    check("phonemes in the IPA", len(ipa.split()) == len(arpabet.split()) and re.search("[ɪʌæɑ]", ipa), ipa)
    page.key("i")
    painted = page.run("""(() => { const c = document.getElementById('view'), g = c.getContext('2d');
        return new Set(new Uint32Array(g.getImageData(0, 0, c.width, c.height).data.buffer)).size; })()""")
    check("the spectrogram", painted > 100, f"{painted} colours")
    return page


def saved(browser, page):
    with tempfile.TemporaryDirectory() as folder:
        browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        for name, good in FORMATS.items():
            path = os.path.join(folder, f"linnet.{name}")
            page.run(f"document.getElementById('format').value = '{name}'")
            page.run("document.getElementById('save').click()")
            end = time.monotonic() + 10
            while not (os.path.exists(path) and os.path.getsize(path)) and time.monotonic() < end:
                browser.listen(0.05)
            got = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
            check(f"saved as {name}", got and good(got), got[:200])


def switched(page):
    """Words, phonemes, or both; in what is saved too."""
    choose = "(() => {{ const e = document.getElementById('show'); e.value = '{}'; e.onchange(); }})()"
    seen = "[...document.querySelectorAll('#text li')].map((li) => [...li.children].slice(1).map((e) => e.textContent))"
    both = page.run(seen)
    page.run(choose.format("phones"))
    phones = page.run(seen)
    page.run(choose.format("words"))
    only = page.run(seen)
    page.run(choose.format("both"))
    check("phonemes only", phones == [[u[1]] for u in both], phones)
    check("words only", only == [[u[0]] for u in both], only)
    check("both again", page.run(seen) == both)


def first_use(browser, server):
    page = browser.page(server.address)
    shown = "['empty', 'tools'].map((id) => !document.getElementById(id).hidden).join(' ')"
    check("before the first use: it says what to do", page.run(shown) == "true false", page.run(shown))
    page.run("document.getElementById('phrases').value = 'prudently'")
    page.drop(SPEECH, 400, 300)
    page.wait("an utterance", "document.querySelectorAll('#text li').length > 0", 40)
    check("then what can be done with the text", page.run(shown) == "false true", page.run(shown))
    check("phrases are taken", not page.problems and "prudently" in text(page), text(page))
    page.run("document.getElementById('phrases').value = '!!'")
    page.drop(SPEECH, 400, 300)
    page.wait("a phrase that cannot be: it says so", "document.getElementById('status').className === 'error'")
    check("a phrase that cannot be: it says so", "phrase" in status(page), status(page))


def capitals(browser, server):
    page = browser.page(server.address)
    page.key("r")
    page.wait("live text with capitals", "/^And Mr[.] John/.test(document.getElementById('growing').textContent)")
    check("live text with capitals and marks", True)
    page.key("r")


def teacher(browser, server, text):
    page = browser.page(server.address + "teach.html")
    page.run(f"(() => {{ const e = document.getElementById('read'); e.value = {json.dumps(text)}; e.oninput(); }})()")
    return page


GRADES = "['good', 'fair', 'poor'].map((g) => document.querySelectorAll(`#sentence .${g}`).length)"
# The words that have phonemes, those that have a score, and all; whether the first are those before the others.
READ = """(() => {
    const items = [...document.querySelectorAll('#sentence li')], has = items.map((item) => !!item.querySelector('.phone'));
    return [has.filter((h) => h).length, document.querySelectorAll('#sentence .score').length, items.length, has.lastIndexOf(true) < (has + ',false').split(',').indexOf('false')];
})()"""
FAR = [("the quick brown", 3), ("the quick bro", 3), ("the quickly brown", 3), ("the quick brown fox um well i mean", 4), ("", 0),
       ("the quick br the quick brown fox", 4), ("a quick round box jump over a lady doc", 9), ("the quick brown fox jumps over the lazy dock", 9)]


def read_aloud(browser, server):
    page = teacher(browser, server, "Привет, мир! — नमस्ते 你好 ½")
    words = page.run("[...document.querySelectorAll('#sentence li')].map((item) => item.textContent)")
    check("teaching: words of any alphabet", words == ["Привет,", "мир!", "नमस्ते", "你好", "½"], words)
    page.look(1000, 700, dark=False)
    page.run("(() => { const e = document.getElementById('read'); e.value = 'Donaudampfschiff'.repeat(20) + ' ' + '1234567890'.repeat(30); e.oninput(); })()")
    wide = page.run("document.documentElement.scrollWidth")
    check("teaching: a long word and a long number wrap", wide <= 1000, wide)
    for heard, n in FAR:
        got = page.run(f"import('./reading.js').then((m) => m.reached(m.wordsOf('The quick brown fox jumps over the lazy dog.'), ['{heard}']))")
        check(f"teaching: how far is '{heard}'", got == n, got)
    numbers = "import('./reading.js').then((m) => m.reached(m.wordsOf('In 1984 the world had 25 towns'), ['in nineteen eighty four', 'In 1984']))"
    check("teaching: how far, with a number", page.run(numbers) == 2, page.run(numbers))


def cut(folder, seconds):
    """The beginning of the speech, then silence."""
    path = os.path.join(folder, "cut.wav")
    with wave.open(SPEECH) as w, wave.open(path, "wb") as out:
        out.setparams(w.getparams())
        out.writeframes(w.readframes(int(seconds * w.getframerate())) + bytes(2 * w.getframerate()))
    return path


def half_read(program, server, folder):
    """The beginning of a text that is longer than the sound: it ends by itself, and only that is judged."""
    with Browser(program, cut(folder, 3.4)) as browser:
        page = teacher(browser, server, " ".join([SAID] * 5))
        page.key("r")
        page.wait("it ends by itself", f"{PRESSED} === 'false'", 30)
        page.wait("the judgement", "!/Listening|Judging/.test(document.getElementById('status').textContent)", 30)
        read, n = page.run(READ), page.run(GRADES)
        check("teaching: half a sentence is judged as far as it was read", 8 <= read[0] <= 10 and read[1] == read[0] and read[2] == 110 and read[3], read)
        check("teaching: half a sentence: most of it is clear", n[0] > 3 * (n[1] + n[2]) and n[0] > 20, n)
        faint = page.run("document.querySelectorAll('#sentence .unread').length")
        check("teaching: half a sentence: the words that were not read are faint", faint == read[2] - read[0], faint)
        check("teaching: half a sentence: it says so", f"Read: {read[0]} of 110 words" in status(page), status(page))


def stopped(program, server):
    with Browser(program, SPEECH) as browser:
        page = teacher(browser, server, SAID)
        page.key("r")
        page.wait("phonemes", "document.querySelectorAll('#sentence .phone').length > 8")
        page.key("r")
        page.wait("the judgement", "/^Read: /.test(document.getElementById('status').textContent)", 30)
        read, n = page.run(READ), page.run(GRADES)
        check("teaching: stopped, what was read is judged", 2 <= read[0] < 20 and read[2] == 22 and read[3] and n[0] > n[1] + n[2], f"{read} {n}")


def another_read(program, server):
    with Browser(program, SPEECH) as browser:
        page = teacher(browser, server, "The quick brown fox jumps over the lazy dog.")
        page.key("r")
        page.wait("it ends by itself", f"{PRESSED} === 'false'", 30)
        page.wait("the judgement", "/another sentence/.test(document.getElementById('status').textContent)", 30)
        seen = page.run("['score', 'practise'].map((id) => document.getElementById(id).textContent).join('')")
        check("teaching: another sentence was read: it says so in one line", re.fullmatch(r"[A-Za-z ,]+\.( [A-Za-z ,]+\.)?", status(page)) and seen == "",
              f"{status(page)} {seen}")
        check("teaching: another sentence was read: no phoneme is judged", page.run(GRADES) == [0, 0, 0], page.run(GRADES))


def long_word(program, server):
    with Browser(program, SPEECH) as browser:
        words = SAID.split()
        page = teacher(browser, server, " ".join(["-".join(words[:15])] + words[15:]))
        page.key("r")
        page.wait("all of it", "/again/.test(document.getElementById('status').textContent)", 40)
        most = page.run("Math.max(...[...document.querySelectorAll('#sentence li')].map((item) => item.querySelectorAll('.phone').length))")
        page.look(360, 740, False, 2)
        wide = page.run("document.documentElement.scrollWidth")
        check("teaching: the phonemes of a long word wrap", most > 40 and wide <= 360, f"{most} phonemes, {wide} > 360")


def taught(program, server, folder):
    with Browser(program, SPEECH) as browser:
        page = teacher(browser, server, SAID)
        page.run("""new MutationObserver(() => { window.within ||= [...document.querySelectorAll('#sentence li')].some((word) =>
            word.querySelector('.good, .fair, .poor') && [...word.querySelectorAll('.phone')].some((p) => p.className.trim() === 'phone')); })
            .observe(document.getElementById('sentence'), { childList: true })""")
        page.look(1100, 620, dark=False)
        page.key("r")
        page.wait("phonemes while the sentence is read", "document.querySelectorAll('#sentence .phone').length > 8")
        check("teaching: phonemes are judged while the sentence is read",
              page.run("document.getElementById('record').getAttribute('aria-pressed')") == "true")
        page.wait("all of it", "/again/.test(document.getElementById('status').textContent)", 40)
        check("teaching: phonemes of a word that goes on are judged", page.run("window.within === true"))
        n = page.run(GRADES)
        check("teaching: most of a native sentence is clear", n[0] > 3 * (n[1] + n[2]) and sum(n) > 60, n)
        advice = page.run("document.getElementById('practise').textContent")
        check("teaching: what is unclear is not 'all clear'", n[1] and ("Unclear: " in advice) and ("To practise: " in advice) == (n[2] > 0), f"{n} {advice}")
        scores = page.run("[document.getElementById('score'), ...document.querySelectorAll('#sentence .score')].map((e) => parseInt(e.textContent.match(/\\d+/)))")
        check("teaching: a score of the sentence and of each word", len(scores) == 23 and 80 <= scores[0] <= 95 and max(scores) <= 100, scores)
        page.wait("the recording", "document.getElementById('sound').readyState > 0")
        seconds = page.run("document.getElementById('sound').duration")
        check("teaching: the recording can be heard", seconds > 6.5, seconds)
        unnamed = page.run("[...document.querySelectorAll('#sentence .phone')].filter((e) => !e.ariaLabel).length")
        check("teaching: each phoneme has a name for screen readers", unnamed == 0, unnamed)
        for name, width, dark in (("teach", 1100, False), ("teach-dark", 1100, True), ("teach-narrow", 390, False)):
            page.look(width, 740, dark, 2 if width < 500 else 1)
            page.picture(os.path.join(folder, f"{name}.png"))
            wide = page.run("document.documentElement.scrollWidth")
            check(f"{name}: nothing is wider than the window", wide <= width, f"{wide} > {width}")
        check("teaching: no console error", not page.problems, page.problems)


def tree(nodes):
    """What a screen reader finds: a line for each node with a name, an indent for each level."""
    known, lines = {n["nodeId"]: n for n in nodes}, []

    def put(node, depth):
        role, name = node.get("role", {}).get("value", ""), node.get("name", {}).get("value", "")
        shown = not node["ignored"] and (name or role in ("list", "main", "banner", "contentinfo", "status")) and role != "InlineTextBox"
        if shown:
            lines.append(f"{'  ' * depth}{role}: {name}".rstrip(": "))
        for child in node.get("childIds", []):
            if child in known:
                put(known[child], depth + bool(shown))

    put(nodes[0], 0)
    return "\n".join(lines) + "\n"


def described(page, folder, least=10):
    page.run("document.getElementById('settings').open = true")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    with open(os.path.join(folder, "tree.txt"), "w", encoding="utf-8") as f:
        f.write(tree(nodes))
    page.run("document.getElementById('settings').open = false")
    controls = [n for n in nodes if n.get("role", {}).get("value") in ("button", "combobox", "checkbox", "textbox", "img") and not n["ignored"]]
    unnamed = [n["role"]["value"] for n in controls if not n.get("name", {}).get("value")]
    check("screen readers: every control has a name", len(controls) >= least and not unnamed, f"{len(controls)} controls, without a name: {unnamed}")
    live = page.run("[document.getElementById('status').role, document.getElementById('text').ariaLive].join(' ')")
    check("screen readers: what is told", live == "status polite", live)


def pictures(page, folder):
    for name, width, height, dark in (("light", 1100, 720, False), ("dark", 1100, 720, True), ("narrow", 360, 740, False),
                                      ("narrow-dark", 360, 740, True)):
        page.look(width, height, dark, 2 if width < 500 else 1)
        page.picture(os.path.join(folder, f"{name}.png"))
        wide = page.run("document.documentElement.scrollWidth")
        check(f"{name}: nothing is wider than the window", wide <= width, f"{wide} > {width}")
        lines = page.run("new Set([...document.querySelectorAll('#tools select, #tools button')].map((e) => Math.round(e.getBoundingClientRect().bottom / 8))).size")
        check(f"{name}: the tools are in one line", lines == 1, lines)
        back = page.run("getComputedStyle(document.body).backgroundColor")
        is_dark = sum(map(int, re.findall(r"\d+", back)[:3])) < 384
        check(f"{name}: the colours", is_dark == dark, back)


def narrow(browser, server):
    page = browser.page(server.address)
    page.look(390, 740, False, 2)
    lines = page.run("new Set([...document.querySelectorAll('header button, header label')].map((e) => Math.round(e.getBoundingClientRect().bottom / 24))).size")
    check("390 px: the buttons take two lines", lines <= 2, lines)
    page.picture(os.path.join(sys.argv[2], "first.png"))
    page = browser.page(server.address + "docs")
    page.look(360, 740, False, 2)
    hidden = page.run("[...document.querySelectorAll('table')].map((t) => t.scrollWidth - t.clientWidth)")
    check("360 px: the calls' tables are not cut off", hidden and max(hidden) == 0, hidden)


def refused(browser, server):
    page = browser.page(server.address)
    page.key("r")
    page.wait("the refusal", "document.getElementById('status').className === 'error'")
    check("no permission: the page says so", "not allowed to use the microphone" in status(page), status(page))
    check("no permission: no console error", not page.problems, page.problems)


# Microphones that the page has asked for, each given by allow(), and whether each of its audio contexts is closed.
ASKED = """(() => {
    const devices = navigator.mediaDevices, ask = devices.getUserMedia.bind(devices), Context = window.AudioContext;
    let asked = new Promise((go) => { window.allow = go; });
    Object.assign(window, { askedFor: 0, given: [], contexts: [], live: () => window.given.flatMap((s) => s.getTracks()).filter((t) => t.readyState === "live").length });
    devices.getUserMedia = async (how) => {
        window.askedFor++;
        await asked;
        const stream = await ask(how);
        window.given.push(stream);
        return stream;
    };
    window.AudioContext = class extends Context { constructor() { super(); window.contexts.push(this); } };
})();"""
NO_WORKLET = "AudioWorklet.prototype.addModule = () => Promise.reject(new Error('no worklet'));"
# The first stream ends without a final result, as one whose server goes away.
NO_FINAL = """(() => {
    const Real = window.WebSocket;
    window.WebSocket = class extends Real {
        constructor(address) {
            super(address);
            if (!window.first) this.addEventListener("message", (m) => { if (/"type":"final"/.test(m.data)) m.stopImmediatePropagation(); });
            window.first = true;
        }
    };
})();"""
PRESSED = "document.getElementById('record').getAttribute('aria-pressed')"


def microphones(browser, server):
    """A microphone is open exactly while the page records."""
    for path in ("", "teach.html"):
        page, name = browser.page(server.address + path, ASKED), path or "the page"
        for n, pressed in enumerate(("true", "false", "true")):
            page.key("r")
            check(f"{name}: pressed {n + 1} times while the browser asks", page.run(PRESSED) == pressed, page.run(PRESSED))
        page.run("window.allow()")
        page.wait("all microphones were given", "window.given.length === window.askedFor")
        page.wait("the last one records", "/Listening|Read the/.test(document.getElementById('status').textContent)")
        check(f"{name}: pressed three times, one microphone is open", page.run("window.live()") == 1, page.run("window.live()"))
        page.key("r")
        page.wait("it has stopped", f"{PRESSED} === 'false'")
        check(f"{name}: stopped, none is open", page.run("window.live()") == 0, page.run("window.live()"))
        page = browser.page(server.address + path, ASKED + NO_WORKLET)
        page.run("window.allow()")
        page.key("r")
        page.wait("the failure", "document.getElementById('status').className === 'error'")
        left = page.run("[window.live(), window.contexts.filter((c) => c.state !== 'closed').length]")
        check(f"{name}: it cannot record, nothing is left open", left == [0, 0] and "no worklet" in status(page), f"{left} {status(page)}")
        check(f"{name}: it cannot record, the button says so", page.run(PRESSED) == "false")


def interrupted(browser, server):
    """A file that is opened while the microphone records: the recording ends, with its text."""
    page = browser.page(server.address, ASKED + "window.allow();")
    page.key("r")
    page.wait("words that may still change", "document.getElementById('growing').textContent.trim() !== ''")
    page.drop(SPEECH, 400, 300)
    page.wait("the file is read", "document.getElementById('status').textContent === 'Done.'", 40)
    got = page.run("[window.live(), document.getElementById('growing').textContent, document.querySelectorAll('#text li').length]")
    check("a file while it records: no microphone and no growing text are left", got[:2] == [0, ""] and got[2] > 1, got)
    starts = page.run("[...document.querySelectorAll('#text time')].map((t) => t.textContent)")
    check("a file while it records: its text is behind that of the recording", starts == sorted(starts) and len(set(starts)) > 1, starts)
    check("a file while it records: no console error", not page.problems, page.problems)


def cut_short(browser, server):
    page = browser.page(server.address, NO_FINAL)
    page.key("r")
    page.wait("words that may still change", "document.getElementById('growing').textContent.trim() !== ''")
    page.drop(__file__, 400, 300)
    page.wait("no sound", "/is no sound/.test(document.getElementById('status').textContent)")
    got = page.run("document.getElementById('growing').textContent")
    check("a recording without a result, then no sound: no growing text is left", got == "", got)


def gone(browser, server):
    page = browser.page(server.address)
    page.key("r")
    page.wait("it listens", "document.getElementById('status').textContent === 'Listening.'")
    server.stop(signal.SIGKILL)
    page.wait("the server is gone", "document.getElementById('status').className === 'error'")
    check("the server is gone: the page says so", "trying again" in status(page), status(page))
    server.start()
    page.wait("it reconnects", "document.getElementById('status').textContent === 'Listening.'", 30)
    check("the server is there again: the page goes on", True)
    page.key("r")


def tokens(browser, linnet):
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("open sesame\n")
        f.flush()
        server = Server(linnet, "--tokens", f.name)
        page = browser.page(server.address)
        page.drop(SPEECH, 400, 300)
        page.wait("the refusal", "document.getElementById('status').className === 'error'")
        check("a token is needed: the page says so", "token" in status(page), status(page))
        page.run("document.getElementById('token').value = 'open sesame'")
        page.drop(SPEECH, 400, 300)
        page.wait("the file is read", "document.getElementById('status').textContent === 'Done.'", 40)
        heard("with its token", page)
        server.stop()


def main():
    linnet, folder = sys.argv[1:3]
    program = find()
    missing = [] if program else ["Chromium"]
    if not os.path.exists(SPEECH):
        missing.append(f"{SPEECH} (pocketsphinx-testdata)")
    if not os.path.exists(os.path.join(os.path.dirname(linnet), "liblinnet_web.so")):
        missing.append("libwebsockets")
    if missing:
        sys.exit(f"make check-page needs {', '.join(missing)}: tools/deps.sh build demo page")
    os.makedirs(folder, exist_ok=True)
    server = Server(linnet)
    try:
        with Browser(program, SPEECH) as browser:
            page = microphone(browser, server)
            check("the microphone: no console error", not page.problems, page.problems)
            page = dropped(browser, server)
            saved(browser, page)
            switched(page)
            described(page, folder)
            pictures(page, folder)
            narrow(browser, server)
            first_use(browser, server)
            check("a dropped file: no console error", not page.problems, page.problems)
            gone(browser, server)
            microphones(browser, server)
            tokens(browser, linnet)
        with Browser(program, SPEECH) as browser:
            capitals(browser, server)
        with Browser(program, SPEECH) as browser:
            interrupted(browser, server)
        with Browser(program, SPEECH) as browser:
            cut_short(browser, server)
            read_aloud(browser, server)
        taught(program, server, folder)
        half_read(program, server, folder)
        stopped(program, server)
        another_read(program, server)
        long_word(program, server)
        with Browser(program, SPEECH, allowed=False) as browser:
            refused(browser, server)
    finally:
        server.stop()
    print(f"pictures: {folder}")
    if failed:
        sys.exit(f"{len(failed)} checks FAILED")


if __name__ == "__main__":
    main()
