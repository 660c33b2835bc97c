// sound.js - where sound comes from, and what it looks like: a microphone, a file, and a mel spectrogram of both.

const why = { NotAllowedError: "The browser was not allowed to use the microphone: allow it in the address bar.",
              NotFoundError: "There is no microphone.", NotReadableError: "Another program holds the microphone." };

// Calls give(Float32Array) for each piece of sound; the rate is in the result. Nothing, and no microphone is open, if it is not
// wanted() any more when the browser has opened it. Throws an Error whose message can be shown.
export async function openMicrophone(device, give, wanted) {
  if (!navigator.mediaDevices) throw new Error("Browsers give the microphone only to pages of https:// or of localhost.");
  let stream, context;
  const stop = () => {
    if (stream) for (const track of stream.getTracks()) track.stop();
    if (context && context.state !== "closed") context.close();
  };
  try {
    const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false }; // they are for ears
    stream = await navigator.mediaDevices.getUserMedia({ audio: device ? { ...plain, deviceId: { exact: device } } : plain });
    if (!wanted()) return stop();
    context = new AudioContext();
    await context.audioWorklet.addModule("capture.js");
    if (!wanted()) return stop();
    const node = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
    node.port.onmessage = (event) => give(event.data);
    context.createMediaStreamSource(stream).connect(node);
  } catch (error) {
    stop();
    throw new Error(why[error.name] || `The microphone cannot be opened: ${error.message}`);
  }
  return { rate: context.sampleRate, stop };
}

export async function listMicrophones() {
  if (!navigator.mediaDevices) return [];
  const all = await navigator.mediaDevices.enumerateDevices();
  return all.filter((d) => d.kind === "audioinput" && d.deviceId && d.label);
}

// The mean of all channels of a file, as the browser reads it.
export async function readFile(file) {
  const context = new OfflineAudioContext(1, 1, 16000);
  let buffer;
  try {
    buffer = await context.decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is no sound that this browser can read.`);
  }
  const mean = new Float32Array(buffer.length);
  for (let c = 0; c < buffer.numberOfChannels; c++) {
    const channel = buffer.getChannelData(c);
    for (let i = 0; i < mean.length; i++) mean[i] += channel[i] / buffer.numberOfChannels;
  }
  return { samples: mean, rate: buffer.sampleRate };
}

// The Fourier transform in place, n a power of two (Cooley and Tukey 1965).
function transform(re, im) {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [re[i], re[j]] = [re[j], re[i]];
      [im[i], im[j]] = [im[j], im[i]];
    }
  }
  for (let half = 1; half < n; half *= 2) {
    for (let k = 0; k < half; k++) {
      const c = Math.cos(-Math.PI * k / half), s = Math.sin(-Math.PI * k / half);
      for (let i = k; i < n; i += 2 * half) {
        const x = re[i + half] * c - im[i + half] * s, y = re[i + half] * s + im[i + half] * c;
        re[i + half] = re[i] - x;
        im[i + half] = im[i] - y;
        re[i] += x;
        im[i] += y;
      }
    }
  }
}

const mel = (hz) => 1127 * Math.log(1 + hz / 700), hertz = (m) => 700 * (Math.exp(m / 1127) - 1);

// Columns of a mel spectrogram, one every 10 ms: push(samples) returns those that are complete, Uint8Arrays of `bins` levels.
export class Spectrogram {
  constructor(rate, bins = 64) {
    this.hop = rate / 100;
    this.window = Math.round(rate * 0.025);
    this.size = 2 ** Math.ceil(Math.log2(this.window));
    this.kept = [];
    this.at = 0; // of the next column, in samples of `kept`
    this.edges = Array.from({ length: bins + 1 }, (_, i) => {
      const high = mel(Math.min(8000, rate / 2)), low = mel(60);
      return hertz(low + (high - low) * i / bins) * this.size / rate;
    });
  }
  push(samples) {
    const columns = [], joined = new Float32Array(this.kept.length + samples.length);
    joined.set(this.kept);
    joined.set(samples, this.kept.length);
    let at = this.at;
    for (; Math.round(at) + this.window <= joined.length; at += this.hop) columns.push(this.column(joined, Math.round(at)));
    const from = Math.min(Math.floor(at), joined.length);
    this.kept = joined.slice(from);
    this.at = at - from;
    return columns;
  }
  column(samples, at) {
    const re = new Float32Array(this.size), im = new Float32Array(this.size), levels = new Uint8Array(this.edges.length - 1);
    for (let i = 0; i < this.window; i++) re[i] = samples[at + i] * (0.5 - 0.5 * Math.cos(2 * Math.PI * i / this.window));
    transform(re, im);
    for (let b = 0; b < levels.length; b++) {
      let power = 1e-9;
      const first = Math.round(this.edges[b]), last = Math.max(first, Math.round(this.edges[b + 1]) - 1);
      for (let k = first; k <= last; k++) power += (re[k] * re[k] + im[k] * im[k]) / (last - first + 1);
      levels[b] = Math.max(0, Math.min(255, (10 * Math.log10(power) + 50) * 255 / 80));
    }
    return levels;
  }
}
