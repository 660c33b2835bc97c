// stream.js - a stream of the recogniser in this page (worker.js), with the interface of the file of this name that linnet serve has.
const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
const streams = new Map(); // those that are not closed, by number
let number = 0, failure = "";

// Of a server.
for (const id of ["phrases-hint", "teach"]) document.getElementById(id).remove();
for (const id of ["token", "phrases"]) document.getElementById(id).parentElement.hidden = true;
document.getElementById("private").textContent = "The sound does not leave this page.";

function fail(message) {
  failure = message;
  for (const on of streams.values()) {
    on.message({ type: "error", message });
    on.closed(false);
  }
  streams.clear();
}

worker.onerror = (event) => fail(`The recogniser cannot run in this browser: ${event.message || "it needs modules in workers"}.`);
worker.onmessage = ({ data }) => {
  if (data.failed) return fail(`The recogniser does not run: ${data.failed}.`);
  if (data.loaded) for (const on of streams.values()) on.note(`Loading the recogniser: ${Math.round(data.loaded / 1e6)} MB.`);
  const on = streams.get(data.number);
  if (!on) return;
  if (data.opened) on.opened();
  if (data.message) on.message(data.message);
  if (data.taken) on.stream.waiting -= data.taken;
  if (data.closed) {
    streams.delete(data.number);
    on.closed(true);
  }
};

export function openStream(rate, on) {
  const own = ++number;
  let pushed = 0;
  const stream = {
    isOpen: true, // sound waits in the worker's queue while the recogniser is loaded
    waiting: 0,
    push(samples) {
      pushed += samples.length;
      stream.waiting += samples.byteLength;
      worker.postMessage({ number: own, kind: "sound", samples });
    },
    phrases() {},
    end() { worker.postMessage({ number: own, kind: "end" }); },
  };
  streams.clear(); // one at a time
  streams.set(own, { ...on, stream, opened: () => on.opened(pushed) });
  worker.postMessage({ number: own, kind: "begin", rate });
  if (failure) setTimeout(() => fail(failure));
  return stream;
}
