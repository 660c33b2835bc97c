// linnet.js - the recogniser as a class, for pages, workers and node.
//
//   const linnet = await Linnet.open(read);           read(name): a promise of the bytes of one of Linnet.files
//   linnet.begin(48000);                              a new sound, of one channel
//   for (const m of linnet.push(samples)) show(m);    Float32Array, in pieces of any size
//   for (const m of linnet.finish()) show(m);
//
// The model, the first file, may be in half precision or in eight bits (linnet quantise), and then runs in eight bits. Messages are
// those of linnet serve's /v1/stream (docs/live.md), "partial" and "final", without revision and latency_ms. Errors are thrown. One
// sound at a time; a page computes in a worker (worker.js), because push takes as long as it takes.
import load from "./engine.js";

const ends = ["", "before", "after", "longest", "asked", "stopped"];
const unknown = (word, goesOn) => `[${word.phones.join("_").toLowerCase()}${goesOn ? "-" : ""}]`;
const spell = (result, goesOn) => result.words
  ? result.words.map((w, i) => w.word || unknown(w, goesOn && i + 1 === result.words.length)).join(" ")
  : result.phones.map((p) => p.phone).join(" ");

export class Linnet {
  static files = ["default.safetensors", "words.dict.gz", "words.lm", "words.punctuation", "numbers.txt"].map((name) => `en/${name}`);

  // words: false: phonemes only, for which the first of the files is enough. engine: options of the engine, such as wasmBinary.
  static async open(read, { words = true, engine = {} } = {}) {
    const bytes = Promise.all((words ? Linnet.files : Linnet.files.slice(0, 1)).map(async (name) => [name, await read(name)]));
    const [c, contents] = await Promise.all([load(engine), bytes]);
    for (const folder of ["/data", "/data/en"]) c.FS.mkdir(folder);
    for (const [name, content] of contents) c.FS.writeFile(`/data/${name}`, content, { canOwn: true });
    const linnet = new Linnet(c);
    linnet.check(c.ccall("linnet_wasm_open", "number", ["string", "number"], ["/data", words ? 1 : 0]));
    return linnet;
  }

  constructor(c) {
    this.c = c;
    this.at = this.room = 0; // memory for so many samples
  }

  begin(rate) {
    this.utterance = 0;
    this.check(this.c._linnet_wasm_begin(rate));
  }

  push(samples) {
    if (samples.length > this.room) {
      this.c._free(this.at);
      this.at = this.c._malloc(4 * samples.length);
      this.room = samples.length;
    }
    this.c.HEAPF32.set(samples, this.at / 4);
    this.check(this.c._linnet_wasm_push(this.at, samples.length));
    return this.changes();
  }

  finish() {
    this.check(this.c._linnet_wasm_finish());
    return this.changes();
  }

  /* ---- inside ---- */

  text() { return this.c.UTF8ToString(this.c._linnet_wasm_text()); }

  check(status) {
    if (status < 0) throw new Error(this.text());
    return status;
  }

  changes() {
    const list = [];
    while (this.check(this.c._linnet_wasm_next())) list.push(this.message(JSON.parse(this.text())));
    return list;
  }

  message({ utterance, ended, incomplete, start, end, heard, settled, provisional }) {
    const type = ended ? "final" : "partial", text = spell(settled, false), { words, phones, readable } = settled;
    if (ended) return { type, utterance, start, end, heard, ended_by: ends[ended], text, readable, phones, words };
    if (utterance !== this.utterance) Object.assign(this, { utterance, words: 0, phones: 0 });
    const place = (w, i, all) => ({ ...w, first_phone: phones.length + w.first_phone, complete: !incomplete || i + 1 < all.length });
    const m = { type, utterance, start, end, heard, stable: text, unstable: spell(provisional, incomplete),
                new_words: words?.slice(this.words), partial_words: provisional.words?.map(place),
                new_phones: phones.slice(this.phones), partial_phones: provisional.phones };
    Object.assign(this, { words: words?.length, phones: phones.length });
    return m;
  }
}
