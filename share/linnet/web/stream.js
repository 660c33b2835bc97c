// stream.js - a stream of linnet serve: sound to /v1/stream over a WebSocket, results back.
//
//   const stream = openStream(rate, { opened(early), message(m), note(text), closed(good) });
//   stream.push(Float32Array), stream.end(), stream.phrases(), if stream.isOpen; stream.waiting: bytes that are on their way
//
// phrases: the phrases in the page's box count from now on. early: samples pushed before it was ready. note: called with what it waits for. This stream keeps nothing: early is 0, note is never called.
export function openStream(rate, on) {
  const token = document.getElementById("token").value, address = new URL("v1/stream", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  address.search = token ? `?access_token=${encodeURIComponent(token)}` : "";
  address.hash = "";
  const socket = new WebSocket(address), lines = () => document.getElementById("phrases").value.split("\n").map((l) => l.trim()).filter((l) => l);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    socket.send(JSON.stringify({ type: "config", rate_hz: rate, format: "f32le", readable: true, phrases: lines() }));
    on.opened(0);
  };
  socket.onmessage = (event) => { if (typeof event.data === "string") on.message(JSON.parse(event.data)); };
  socket.onclose = (event) => on.closed(event.code === 1000);
  return {
    get isOpen() { return socket.readyState === WebSocket.OPEN; },
    get waiting() { return socket.bufferedAmount; },
    push: (samples) => socket.send(samples),
    phrases: () => socket.send(JSON.stringify({ type: "phrases", phrases: lines() })),
    end: () => socket.send('{"type":"end"}'),
  };
}
