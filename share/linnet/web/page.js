// page.js - the page: sound to a stream, results to the view and the text. stream.js is the server's, or the one of make wasm.
import { openMicrophone, listMicrophones, readFile, Spectrogram } from "./sound.js";
import { formats, symbol, clock } from "./formats.js";
import { View } from "./view.js";
import { openStream } from "./stream.js";
import { $, REFUSED, say, showRecording, onKeys } from "./controls.js";

const view = new View($("view"));
let run = null, next = null, utterances = [], offset = 0; // next: begins when the run has ended

/* ---- results ---- */

const shift = (list, by) => (list || []).map((u) => ({ ...u, start: u.start + by, end: u.end + by }));
const asWords = (list, by) => shift(list, by).map((w) => ({ text: w.word || `[${w.phones.join(" ")}]`, start: w.start, end: w.end, confidence: w.confidence }));
const asPhones = (list, by) => shift(list, by).map((p) => ({ ...p, text: symbol(p.phone, view.ipa) }));

// The last words of `open` are faint: they may change.
function showGrowing(stable, open) {
  const faint = document.createElement("span");
  faint.className = "open";
  faint.textContent = open;
  $("growing").replaceChildren(stable ? stable + " " : "", faint);
}

// With capitals and marks, where the server gives them.
function showPartial(m) {
  if (shown() === "phones") return showGrowing("", view.open.phones.map((p) => symbol(p.phone, view.ipa)).join(" "));
  if (m.readable === undefined) return showGrowing(m.stable, m.unstable);
  const words = m.readable.split(" "), open = Math.min(words.length, m.partial_words.filter((w) => w.complete).length);
  showGrowing(words.slice(0, words.length - open).join(" "), words.slice(words.length - open).join(" "));
}

const shown = () => $("show").value;
// As it is shown: without words where only phonemes are.
const asShown = (u) => (shown() === "phones" && u.words.length ? { ...u, words: [], text: u.phones.map((p) => symbol(p.phone, view.ipa)).join(" ") } : u);

function showUtterance(u) {
  const item = document.createElement("li"), time = document.createElement("time"), text = document.createElement("span");
  time.textContent = clock(u.start).slice(u.start < 3600 ? 3 : 0, -2);
  const words = u.words.length && shown() !== "phones", phones = document.createElement("span");
  phones.className = "phones";
  phones.textContent = u.phones.map((p) => symbol(p.phone, view.ipa)).join(" ");
  text.textContent = words ? u.text : phones.textContent;
  item.append(time, text);
  if (words && shown() === "both") item.append(phones);
  $("text").append(item);
}

function showAll() {
  $("text").replaceChildren();
  utterances.forEach(showUtterance);
  showTools();
  view.draw();
}

// What can be done with text is there once there is some; before, it says how to get it.
function showTools() {
  $("tools").hidden = !utterances.length;
  $("empty").hidden = utterances.length > 0 || run !== null;
}

function take(r, m) {
  const by = r.offset;
  if (m.type === "partial") {
    view.words.push(...asWords(m.new_words, by));
    view.phones.push(...asPhones(m.new_phones, by));
    view.open = { words: asWords(m.partial_words, by), phones: asPhones(m.partial_phones, by) };
    showPartial(m);
    if (r.live) r.delays = [...r.delays, (performance.now() - r.begun) / 1000 - m.end].slice(-50);
    if (r.live) $("latency").textContent = `latency ${Math.round(1000 * [...r.delays].sort((a, b) => a - b)[r.delays.length >> 1])} ms`;
  } else if (m.type === "final") {
    const u = { start: m.start + by, end: m.end + by, text: m.readable || m.text, words: asWords(m.words, by), phones: asPhones(m.phones, by) };
    utterances.push(u);
    // What had settled of this utterance is replaced: a second pass may begin later than it, or have nothing.
    const until = Math.max(by, view.ends[view.ends.length - 1] ?? 0);
    const kept = (list, more) => [...list.filter((x) => x.end <= u.start + 0.001 && x.start < until), ...more];
    view.words = kept(view.words, u.words).slice(-2000);
    view.phones = kept(view.phones, u.phones).slice(-4000);
    view.open = { words: [], phones: [] };
    view.ends.push(m.heard + by);
    showGrowing("", "");
    showUtterance(u);
    showTools();
  } else if (m.type === "context") {
    say(m.message || (m.phrases ? `Phrases that are likely from now on: ${m.phrases}.` : "No likely phrases from now on."), !!m.message);
  } else if (m.type === "error" || m.reason === "failed") {
    r.failure = m.message;
    say(m.message, true);
  }
  view.draw();
}

/* ---- the stream ---- */

function connect(r) {
  r.stream = openStream(Math.round(r.rate), {
    opened(early) {
      if (run !== r) return r.stream.end();
      r.tries = 0;
      r.offset = (r.taken - early) / r.rate + offset;
      r.begun = performance.now() - 1000 * early / r.rate;
      if (!r.ended) say(r.live ? "Listening." : `Reading ${r.file.name}.`);
      if (!r.live) sendFile(r);
    },
    message: (m) => take(r, m),
    note: (text) => run === r && say(text),
    closed(good) {
      if (r.ended || run !== r) finish(r, "");
      else if (good) finish(r, "Done.");
      else if (r.failure) finish(r, r.failure, true);
      else if (r.live && r.tries < 5) {
        r.tries++;
        say("The server does not answer; trying again.", true);
        setTimeout(() => run === r && !r.ended && connect(r), 500 * 2 ** r.tries);
      } else finish(r, REFUSED, true);
    },
  });
}

function give(r, samples) {
  view.add(r.spectrogram.push(samples));
  if (r.stream.isOpen) r.stream.push(samples);
  r.taken += samples.length;
}

async function sendFile(r) {
  const step = Math.round(r.rate / 5);
  for (let at = 0; at < r.samples.length && run === r && !r.ended; at += step) {
    while (r.stream.waiting > 1 << 19) await new Promise((done) => setTimeout(done, 20));
    give(r, r.samples.slice(at, at + step));
    if (at % (5 * step) === 0) await new Promise((done) => setTimeout(done));
  }
  if (run === r && r.stream.isOpen) r.stream.end();
}

/* ---- beginning and ending ---- */

// r: { live: true }, or { live: false, file }. It can be stopped while its sound is opened.
async function begin(r) {
  run = r;
  showRecording(r.live);
  showTools();
  say(r.live ? "Opening the microphone." : `Opening ${r.file.name}.`);
  const wanted = () => run === r && !r.ended;
  try {
    if (r.live) r.microphone = await openMicrophone($("device").value, (samples) => wanted() && give(r, samples), wanted);
    const { samples, rate } = r.live ? r.microphone || {} : await readFile(r.file);
    if (!wanted()) return;
    offset = (view.dropped + view.columns.length) / 100; // behind what was there before
    Object.assign(r, { samples, rate, taken: 0, offset, delays: [], tries: 0, spectrogram: new Spectrogram(rate) });
  } catch (error) {
    return finish(r, error.message, true);
  }
  connect(r);
  if (r.live) fillDevices();
}

function stop() {
  const r = run;
  r.microphone?.stop();
  r.ended = true;
  showRecording(false);
  if (r.stream?.isOpen) r.stream.end();
  else finish(r, "");
}

function finish(r, text, isError = false) {
  if (run !== r) return;
  run = null;
  r.microphone?.stop();
  showRecording(false);
  showGrowing("", "");
  showTools();
  say(text || "Stopped.", isError);
  beginNext();
}

function beginNext() {
  const r = next;
  next = null;
  if (r) begin(r);
}

// Ends what goes on; r begins when the text of that has come.
function replace(r) {
  next = r;
  if (!run) beginNext();
  else if (!run.ended) stop();
}

function record() {
  if (run && !run.ended) stop();
  else replace({ live: true });
}

function openFile(file) {
  if (file) replace({ live: false, file });
}

async function fillDevices() {
  const chosen = $("device").value, list = await listMicrophones();
  $("device").replaceChildren(new Option("default", ""), ...list.map((d) => new Option(d.label, d.deviceId)));
  $("device").value = list.some((d) => d.deviceId === chosen) ? chosen : "";
}

function save() {
  const format = $("format").value, link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([formats[format](utterances.map(asShown))], { type: "text/plain;charset=utf-8" }));
  link.download = `linnet.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function copy() {
  await navigator.clipboard.writeText(formats[$("format").value](utterances.map(asShown)));
  say("Copied.");
}

function clear() {
  utterances = [];
  view.clear();
  offset = 0;
  showAll();
}

function useIpa() {
  view.ipa = $("ipa").checked;
  for (const u of utterances) for (const p of u.phones) p.text = symbol(p.phone, view.ipa);
  showAll();
}

function show() {
  view.shows = shown();
  showAll();
}

$("record").onclick = record;
$("show").onchange = show;
$("phrases").onchange = () => run?.stream?.isOpen && run.stream.phrases();
$("file").onchange = (event) => openFile(event.target.files[0]);
$("ipa").onchange = useIpa;
$("save").onclick = save;
$("copy").onclick = copy;
$("clear").onclick = clear;
onKeys({
  r: record,
  o: () => $("file").click(),
  i: () => $("ipa").click(),
  s: () => utterances.length && save(),
  c: () => utterances.length && copy(),
});
document.ondragover = (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
};
document.ondragleave = () => document.body.classList.remove("dropping");
document.ondrop = (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  openFile(event.dataTransfer.files[0]);
};
fillDevices();
