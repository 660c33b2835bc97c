// capture.js - an AudioWorklet: the mean of all channels, in pieces of 1024 samples, to the page.
class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.piece = new Float32Array(1024);
    this.n = 0;
  }
  process(inputs) {
    const channels = inputs[0];
    if (!channels.length) return true;
    for (let i = 0; i < channels[0].length; i++) {
      let sum = 0;
      for (const channel of channels) sum += channel[i];
      this.piece[this.n++] = sum / channels.length;
      if (this.n === this.piece.length) {
        this.port.postMessage(this.piece.slice());
        this.n = 0;
      }
    }
    return true;
  }
}
registerProcessor("capture", Capture);
