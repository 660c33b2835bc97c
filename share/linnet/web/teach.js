// teach.js - a sentence to read: a stream says which of its words have begun, and the aligner of the server (v1/align) judges their
// phonemes in the sound so far. The end of that is the middle of a word, whose other phonemes have no room there and push those
// before. So a phoneme judged clear is shown when the next one has been heard; any other after SURE more phonemes or a pause.
import { openMicrophone } from "./sound.js";
import { symbol } from "./formats.js";
import { openStream } from "./stream.js";
import { reached, wordsOf } from "./reading.js";
import { $, REFUSED, say, showRecording, onKeys } from "./controls.js";

const FAIR = -0.7, POOR = -3, ANOTHER = Math.log(0.3); // of the goodness of a phoneme, and of a sentence: docs/alignment.md
const SPIKE_S = 0.05; // a stream hears a phoneme somewhere in it, the aligner ends the one before where it begins
const SURE = 4;
const PAUSE_MS = 400; // nothing new for so long: what has been said is over
const QUIET_S = 2; // nothing new for so long after an utterance: the reader has ended, wherever that is
let run = null;
let shown = null; // the last recording, or null where it was of another sentence; judged: its words so far

/* ---- what is shown ---- */

const grade = (p) => (p.open ? "" : p.goodness >= FAIR ? "good" : p.goodness >= POOR ? "fair" : "poor");
const names = { good: "clear", fair: "unclear", poor: "another sound" };
const share = (goodness) => Math.round(100 * Math.exp(goodness));
const symbolOf = (phone) => symbol(phone, $("ipa").checked);

function span(className, text) {
  const item = document.createElement("span");
  item.className = className;
  item.textContent = text;
  return item;
}

function phoneOf(p) {
  const item = span(`phone ${grade(p)}`, symbolOf(p.phone)), heard = p.heard ? `, like ${symbolOf(p.heard)}` : p.heard === null ? ", left out" : "";
  item.title = p.open ? "not heard yet" : `${names[grade(p)]}${grade(p) === "poor" ? heard : ""} (${share(p.goodness ?? -Infinity)} %)`;
  item.setAttribute("aria-label", `${item.textContent}: ${item.title}`);
  item.setAttribute("role", "img");
  return item;
}

function wordOf(word) {
  const item = document.createElement("li"), phones = span("phones", "");
  item.className = shown?.score !== undefined && !word.phones.length ? "unread" : "";
  phones.append(...word.phones.map(phoneOf));
  item.append(span("", word.text), phones);
  if (word.score !== undefined) item.append(span("score", `${word.score} %`));
  return item;
}

// The words that were judged, then the others.
function paint() {
  const words = shown?.words ?? wordsOf($("read").value), judged = shown?.judged ?? [];
  $("sentence").replaceChildren(...judged.map(wordOf), ...words.slice(shown?.n ?? 0).map((text) => wordOf({ text, phones: [] })));
}

// What of a grade was heard, by how often.
function list(name, kind) {
  const counts = new Map();
  for (const p of shown.judged.flatMap((w) => w.phones)) if (grade(p) === kind) counts.set(p.phone, (counts.get(p.phone) || 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1]).map(([phone, n]) => symbolOf(phone) + (n > 1 ? ` (${n} times)` : ""));
  return most.length ? [`${name}: ${most.join(", ")}.`] : [];
}

function advise() {
  const whole = shown?.score !== undefined;
  const lists = whole ? [...list("To practise", "poor"), ...list("Unclear", "fair")] : [];
  $("score").textContent = whole ? `Score: ${shown.score} %` : "";
  $("practise").textContent = whole ? lists.join(" ") || "All that was read was clear." : "";
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

// What the aligner says of the first n words in the sound so far; null if these are longer than the sound.
async function align(r, n) {
  const form = new FormData(), token = $("token").value;
  form.append("file", wav(r.pieces, r.rate), "sound.wav");
  form.append("text", r.words.slice(0, n).join(" "));
  const answer = await fetch("v1/align", { method: "POST", body: form, headers: token ? { authorization: `Bearer ${token}` } : {} });
  const result = await answer.json();
  if (answer.ok) return result;
  if (/longer than the sound/.test(result.error.message)) return null;
  throw new Error(result.error.message);
}

// sure(phone): its judgement can be shown. The words as the text has them, if the server divides it into the same.
function take(r, n, result, sure) {
  const same = result.words.length === n;
  r.n = n;
  r.judged = result.words.map((w, i) => ({
    text: same ? r.words[i] : w.word,
    phones: result.phones.slice(w.first_phone, w.first_phone + w.phones.length).map((p) => (sure(p) ? p : { phone: p.phone, open: true })),
    score: r.ended && w.goodness !== undefined ? share(w.goodness) : undefined,
  }));
}

// The first n words, of which the phonemes up to the time `until` count if they are clear, and up to `sure` if they are not. One
// request at a time: of what has come meanwhile the last is judged behind it.
async function judge(r, n, until, sure) {
  r.wanted = { n, until, sure };
  if (r.asking) return;
  r.asking = true;
  while (r.wanted && !r.ended) {
    const w = r.wanted;
    r.wanted = null;
    const result = await align(r, w.n).catch((error) => say(error.message, true));
    if (!result || r.ended || shown !== r) continue;
    take(r, w.n, result, (p) => p.end <= (grade(p) === "good" ? w.until : w.sure));
    paint();
  }
  r.asking = false;
}

// As much of it as was read.
async function judgeAll(r) {
  let n = r.plain.some((h) => h) && Math.max(1, reached(r.words, [r.plain.join(" "), r.readable.join(" ")])), result = null;
  if (!n) return say("No words were heard. Read the sentence again.", true);
  say("Judging what was read.");
  try {
    while (n && !(result = await align(r, n))) n--;
  } catch (error) {
    return shown === r && say(error.message, true);
  }
  if (shown !== r) return;
  const another = !result || (result.goodness ?? -Infinity) < ANOTHER;
  if (another) shown = null;
  else {
    take(r, n, result, () => true);
    r.score = share(result.goodness);
  }
  paint();
  advise();
  if (another) say("That was another sentence. Read the one that is written here.", true);
  else say(n < r.words.length ? `Read: ${n} of ${r.words.length} words. The others are not judged.` : "Read it again, or another sentence.");
}

/* ---- the stream ---- */

const last = (list, n = 1) => list[list.length - n];

function hear(r, m) {
  clearTimeout(r.pause);
  if (m.type === "partial") {
    if (!m.new_words) return;
    r.starts.push(...m.new_phones.map((p) => p.start));
    r.words_so_far.push(...m.new_words);
    if (m.new_words.length || m.partial_words.length) r.quiet_from = Infinity;
    const complete = m.partial_words.filter((w) => w.complete), open = complete.length < m.partial_words.length;
    const text = [...r.words_so_far, ...complete].map((w) => w.word || w.phones.join("")).join(" ");
    const n = Math.min(r.words.length, reached(r.words, [[...r.plain, text].join(" ")]) + open);
    const starts = [...r.earlier, ...r.starts, ...m.partial_phones.map((p) => p.start)], sure = SPIKE_S + (last(starts, 1 + SURE) ?? -Infinity);
    if (!n || !starts.length) return;
    judge(r, n, SPIKE_S + last(starts), sure);
    r.pause = setTimeout(() => run === r && judge(r, n, Infinity, open ? sure : Infinity), PAUSE_MS);
  } else if (m.type === "final") {
    r.plain.push(m.text);
    r.readable.push(m.readable ?? m.text);
    r.words_so_far = [];
    r.earlier.push(...(m.phones || []).map((p) => p.start));
    r.starts = [];
    if (run !== r || !m.text) return;
    r.quiet_from = r.taken;
    if (reached(r.words, [r.plain.join(" "), r.readable.join(" ")]) === r.words.length) stop();
  } else if (m.type === "error" || m.reason === "failed") say(m.message, true);
}

// Closes the microphone, which may not be open yet.
function close(r) {
  run = null;
  r.microphone?.stop();
  showRecording(false);
  $("read").readOnly = false;
  if (r.stream?.isOpen) r.stream.end();
}

// What was read is judged when the stream has ended, with all that was heard.
function stop() {
  const r = run;
  if (!r) return;
  close(r);
  r.ended = true;
  if (!r.stream || !r.pieces.length) return say("Stopped.");
  say("Listening to the end.");
  $("sound").src = URL.createObjectURL(wav(r.pieces, r.rate));
  $("hear").hidden = false;
}

function fail(r, message) {
  if (run !== r && shown !== r) return;
  if (run === r) close(r);
  say(message, true);
}

async function record() {
  if (run) return stop();
  const words = wordsOf($("read").value);
  if (!words.length) return say("Write a sentence first.", true);
  // plain, readable: the text of each utterance. starts: of the phonemes since the last of them, earlier: of those before.
  const r = run = shown = { words, pieces: [], taken: 0, n: 0, judged: [], plain: [], readable: [], words_so_far: [], earlier: [], starts: [],
                            wanted: null, quiet_from: Infinity };
  URL.revokeObjectURL($("sound").src);
  $("hear").hidden = $("read").readOnly = true;
  paint();
  advise();
  showRecording(true);
  say("Opening the microphone.");
  const give = (samples) => {
    if (run !== r) return;
    r.pieces.push(samples);
    r.taken += samples.length;
    if (r.stream.isOpen) r.stream.push(samples);
    if (r.taken - r.quiet_from > QUIET_S * r.rate) stop();
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
    opened() {
      if (run === r) say("Read the sentence.");
      for (const samples of r.pieces) r.stream.push(samples);
      if (run !== r) r.stream.end();
    },
    message: (m) => hear(r, m),
    note: say,
    closed: (good) => (good && r.ended ? judgeAll(r) : fail(r, REFUSED)),
  });
}

$("record").onclick = record;
$("ipa").onchange = () => { paint(); advise(); };
$("read").oninput = () => { shown = null; paint(); advise(); };
onKeys({ r: record });
paint();
