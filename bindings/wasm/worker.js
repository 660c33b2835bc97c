// worker.js - the recogniser in a worker: takes { number, kind: "begin" | "sound" | "end", rate, samples } from stream.js, gives it
// { loaded } bytes, { failed } if it cannot run, and for the stream of that number { opened }, { message }, { taken } bytes, { closed }.
import { Linnet } from "./linnet.js";

let loaded = 0, current = 0, last = Promise.resolve();

async function read(name) {
  const answer = await fetch(new URL(`data/${name}`, import.meta.url));
  if (!answer.ok) throw new Error(`data/${name} cannot be fetched: ${answer.status} ${answer.statusText}`);
  const parts = [], reader = answer.body.getReader();
  for (let part; !(part = await reader.read()).done; ) {
    parts.push(part.value);
    postMessage({ loaded: (loaded += part.value.length) });
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

const opening = Linnet.open(read).catch((error) => {
  postMessage({ failed: error.message });
  throw error;
});

async function take({ number, kind, rate, samples }) {
  const linnet = await opening;
  const give = (what) => postMessage({ number, ...what });
  if (kind === "begin") {
    current = number;
    linnet.begin(rate);
    give({ opened: true });
  } else if (number === current) {
    for (const message of kind === "end" ? linnet.finish() : linnet.push(samples)) give({ message });
    give(kind === "end" ? { closed: true } : { taken: samples.byteLength });
  }
}

onmessage = ({ data }) => {
  last = last.then(() => take(data)).catch((error) => postMessage({ failed: error.message }));
};
