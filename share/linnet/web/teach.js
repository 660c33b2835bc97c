// teach.js - a sentence to read: a stream says how many of its words have begun, and the aligner of the server (v1/align) judges
// their phonemes in the sound so far. The end of that is the middle of a word, whose other phonemes have no room there and push
// those before: what is clear all the same is clear, so it is shown once the next phoneme has been heard, and what is not once
// SURE more have been, or after a pause.
import { openMicrophone } from "./sound.js";
import { symbol } from "./formats.js";
import { openStream } from "./stream.js";
import { $, REFUSED, say, showRecording, onKeys } from "./controls.js";

const FAIR = -0.7, POOR = -3; // of the goodness: docs/alignment.md
const SPIKE_S = 0.05; // a stream hears a phoneme somewhere in it, the aligner ends the one before where it begins
const SURE = 4;
const PAUSE_MS = 400; // nothing new for so long: what has been said is over
let run = null, judged = [];

const wordsOf = (text) => text.split(/\s+/).filter((w) => /[a-z0-9]/i.test(w));

/* ---- what is shown ---- */

const grade = (p) => (p.goodness === undefined ? "" : p.goodness < POOR ? "poor" : p.goodness < FAIR ? "fair" : "good");
const names = { "": "not heard yet", good: "clear", fair: "unclear", poor: "another sound" };

function phoneOf(p) {
  const item = document.createElement("span"), heard = p.heard ? `, like ${symbol(p.heard, $("ipa").checked)}` : p.heard === null ? ", left out" : "";
  item.className = `phone ${grade(p)}`;
  item.textContent = symbol(p.phone, $("ipa").checked);
  item.title = `${names[grade(p)]}${grade(p) === "poor" ? heard : ""}${p.goodness === undefined ? "" : ` (${p.goodness.toFixed(1)})`}`;
  item.setAttribute("aria-label", `${item.textContent}: ${item.title}`);
  item.setAttribute("role", "img");
  return item;
}

function paint() {
  const items = wordsOf($("read").value).map((word, i) => {
    const item = document.createElement("li"), name = document.createElement("span"), phones = document.createElement("span");
    name.textContent = word;
    phones.className = "phones";
    phones.append(...(judged[i] || []).map(phoneOf));
    item.append(name, phones);
    return item;
  });
  $("sentence").replaceChildren(...items);
}

// The phonemes that were another sound, by how often.
function advise() {
  const counts = new Map();
  for (const p of judged.flat()) if (grade(p) === "poor") counts.set(p.phone, (counts.get(p.phone) || 0) + 1);
  const worst = [...counts].sort((a, b) => b[1] - a[1]).map(([phone, n]) => symbol(phone, $("ipa").checked) + (n > 1 ? ` (${n} times)` : ""));
  $("practise").textContent = worst.length ? `To practise: ${worst.join(", ")}.` : judged.length ? "All of it was clear." : "";
}

/* ---- judging ---- */

// Sound as a WAV file of 16 bits.
function wav(pieces, rate) {
  const n = pieces.reduce((sum, p) => sum + p.length, 0), view = new DataView(new ArrayBuffer(44 + 2 * n));
  const text = (at, s) => [...s].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF"); view.setUint32(4, 36 + 2 * n, true); text(8, "WAVEfmt ");
  view.setUint32(16, 16, true); view.setUint16(20, 1, true); view.setUint16(22, 1, true); view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true); view.setUint16(32, 2, true); view.setUint16(34, 16, true); text(36, "data"); view.setUint32(40, 2 * n, true);
  let at = 44;
  for (const p of pieces) for (const x of p) { view.setInt16(at, Math.max(-32768, Math.min(32767, Math.round(32768 * x))), true); at += 2; }
  return new Blob([view], { type: "audio/wav" });
}

// The first n words of the sentence in the sound so far, of which the phonemes up to the time `until` count if they are clear, and
// up to `sure` if they are not. One request at a time: what has come meanwhile is judged behind it.
async function judge(r, n, until, sure) {
  if (n) r.wanted = { n, until, sure };
  if (r.asking) return;
  r.asking = true;
  try {
    await judgeAll(r);
  } catch (error) {
    say(`The server does not answer: ${error.message}`, true);
  }
  r.asking = false;
}

async function judgeAll(r) {
  while (r.wanted || (r.ended && !r.whole)) {
    const { n, until, sure } = r.ended ? { n: r.words.length, until: Infinity, sure: Infinity } : r.wanted, form = new FormData();
    r.whole = r.ended;
    r.wanted = null;
    form.append("file", wav(r.pieces, r.rate), "sound.wav");
    form.append("text", r.words.slice(0, n).join(" "));
    const token = $("token").value, answer = await fetch("v1/align", { method: "POST", body: form, headers: token ? { authorization: `Bearer ${token}` } : {} });
    const result = await answer.json();
    if (!answer.ok) return say(result.error.message, true);
    judged = result.words.map((w) => result.phones.slice(w.first_phone, w.first_phone + w.phones.length)
      .map((p) => (p.end > (grade(p) === "good" ? until : sure) ? { phone: p.phone } : p)));
    paint();
    if (r.whole) {
      advise();
      say(result.warning || "Read it again, or another sentence.", !!result.warning);
    }
  }
}

/* ---- the stream ---- */

function take(r, m) {
  clearTimeout(r.pause);
  if (m.type === "partial") {
    if (!m.new_words) return;
    r.settled += m.new_words.length;
    r.starts.push(...m.new_phones.map((p) => p.start));
    const n = Math.min(r.words.length, r.before + r.settled + m.partial_words.length), missed = r.missed / r.rate + SPIKE_S;
    const starts = [...r.earlier, ...r.starts, ...m.partial_phones.map((p) => p.start)];
    const sure = missed + (starts[starts.length - 1 - SURE] ?? -Infinity), all = (m.partial_words[m.partial_words.length - 1]?.complete ?? true) ? Infinity : sure;
    if (starts.length) judge(r, n, missed + starts[starts.length - 1], sure);
    r.pause = setTimeout(() => run === r && judge(r, n, Infinity, all), PAUSE_MS);
  } else if (m.type === "final") {
    r.before += (m.words || []).length;
    r.settled = 0;
    r.earlier.push(...(m.phones || []).map((p) => p.start));
    r.starts = [];
    if (r.before >= r.words.length && run === r) stop();
  } else if (m.type === "error" || m.reason === "failed") say(m.message, true);
}

// Closes the microphone, which may not be open yet.
function close(r) {
  run = null;
  r.microphone?.stop();
  if (r.stream?.isOpen) r.stream.end();
  showRecording(false);
}

function stop() {
  const r = run;
  if (!r) return;
  close(r);
  if (!r.stream) return say("Stopped.");
  r.ended = true;
  say("Judging the whole sentence.");
  judge(r, r.words.length, Infinity, Infinity);
}

function fail(r, message) {
  if (run !== r) return;
  close(r);
  say(message, true);
}

async function record() {
  if (run) return stop();
  const words = wordsOf($("read").value);
  if (!words.length) return say("Write a sentence first.", true);
  judged = [];
  paint();
  $("practise").textContent = "";
  const r = run = { words, pieces: [], missed: 0, before: 0, settled: 0, earlier: [], starts: [], wanted: null }; // missed: samples before the stream began
  showRecording(true);
  say("Opening the microphone.");
  const give = (samples) => {
    if (run !== r) return;
    r.pieces.push(samples);
    if (r.stream.isOpen) r.stream.push(samples);
    else r.missed += samples.length;
  };
  try {
    r.microphone = await openMicrophone("", give, () => run === r);
    if (!r.microphone) return;
  } catch (error) {
    return fail(r, error.message);
  }
  r.rate = Math.round(r.microphone.rate);
  $("phrases").value = ""; // it hears what is said, not what is expected
  r.stream = openStream(r.rate, {
    opened: () => (run === r ? say("Read the sentence.") : r.stream.end()),
    message: (m) => take(r, m),
    note: say,
    closed: () => fail(r, REFUSED),
  });
}

$("record").onclick = record;
$("ipa").onchange = () => { paint(); advise(); };
$("read").oninput = () => { judged = []; paint(); };
onKeys({ r: record });
paint();
