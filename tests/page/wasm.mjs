// wasm.mjs FOLDER WAV MODEL [--phonemes]: the final messages of build/wasm for a 16-bit WAV file of one channel, as lines of JSON, in
// node, with MODEL as the installed one. The sound is pushed in pieces of different sizes. Fails if what had settled before is not the beginning of a final message.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, file, model, option] = process.argv.slice(2);
const { Linnet } = await import(pathToFileURL(`${folder}/linnet.js`));
const path = (name) => name === Linnet.files[0] ? model : `${folder}/data/${name}`;
const linnet = await Linnet.open(async (name) => readFileSync(path(name)),
                                 { words: option !== "--phonemes", engine: { wasmBinary: readFileSync(`${folder}/engine.wasm`) } });
const wav = readFileSync(file), rate = wav.readUInt32LE(24), begin = wav.indexOf("data") + 8;
const samples = Float32Array.from({ length: (wav.length - begin) >> 1 }, (_, i) => wav.readInt16LE(begin + 2 * i) / 32768);
let settled = {};
function show(messages) {
  for (const m of messages) {
    const before = settled.utterance === m.utterance ? settled : { utterance: m.utterance, words: [], phones: [], stable: "" };
    if (m.type === "partial") {
      settled = { ...before, words: [...before.words, ...(m.new_words || [])], phones: [...before.phones, ...m.new_phones], stable: m.stable };
      continue;
    }
    for (const [one, all] of [[before.words, m.words || []], [before.phones, m.phones]])
      if (JSON.stringify(one) !== JSON.stringify(all.slice(0, one.length))) throw new Error("what had settled has changed");
    if (!m.text.startsWith(before.stable)) throw new Error(`"${m.text}" does not begin with "${before.stable}"`);
    console.log(JSON.stringify(m));
  }
}
const start = process.cpuUsage().user;
linnet.begin(rate);
for (let at = 0, n = 1; at < samples.length; at += n, n = n * 7 % 4099 + 1) show(linnet.push(samples.subarray(at, at + n)));
show(linnet.finish());
const spent = (process.cpuUsage().user - start) / 1e6, seconds = samples.length / rate;
console.error(`${seconds.toFixed(1)} s of sound in ${spent.toFixed(2)} s of processor time: ${(seconds / spent).toFixed(1)} x real time`);
