// view.js - draws the last seconds: words above, the spectrogram, phonemes below, the ends of utterances as lines.
import { symbol } from "./formats.js";

const FRAME_S = 0.01, KEPT = 6000, PIXELS_A_SECOND = 150;

// From silence, the colour of the page, to loud: red, green and blue of 256 levels.
function scale(stops) {
  return Array.from({ length: 256 }, (_, level) => {
    const at = level / 255 * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
    return stops[i].map((from, c) => from + (stops[i + 1][c] - from) * (at - i));
  });
}
const LIGHT = scale([[251, 250, 248], [205, 172, 186], [128, 74, 122], [38, 18, 62]]);
const DARK = scale([[22, 24, 27], [78, 44, 74], [190, 86, 70], [255, 224, 170]]);

export class View {
  constructor(canvas) {
    this.canvas = canvas;
    this.image = document.createElement("canvas"); // a ring of KEPT columns
    this.image.width = KEPT;
    this.image.height = 64;
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.onchange = () => this.repaint();
    this.ipa = false;
    this.shows = "both"; // or "words", "phones"
    this.clear();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }
  clear() {
    this.columns = [];
    this.dropped = 0; // columns that are not kept any more
    this.words = [];
    this.phones = [];
    this.open = { words: [], phones: [] };
    this.ends = [];
    this.draw();
  }
  add(columns) {
    columns.forEach((column, i) => this.paintColumn(column, this.dropped + this.columns.length + i));
    this.columns.push(...columns);
    if (this.columns.length > KEPT) this.dropped += this.columns.splice(0, this.columns.length - KEPT).length;
    this.draw();
  }
  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }
  paint() {
    const { canvas } = this, ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const g = canvas.getContext("2d"), style = getComputedStyle(canvas), ink = style.getPropertyValue("--ink"), row = 20;
    g.scale(ratio, ratio);
    const seconds = width / PIXELS_A_SECOND, now = (this.dropped + this.columns.length) * FRAME_S, from = Math.max(0, now - seconds);
    const x = (t) => (t - from) * PIXELS_A_SECOND;
    this.paintSound(g, from, x, 2 * row, height - 4 * row);
    g.font = "14px system-ui, sans-serif";
    g.textBaseline = "middle";
    g.textAlign = "center";
    g.fillStyle = ink;
    // In two rows, where one has no room; farther right, where neither has.
    const put = (units, open, y) => {
      const full = [-Infinity, -Infinity];
      for (const u of [...units, ...open]) {
        if (u.end < from - 2) continue;
        const text = u.phone ? symbol(u.phone, this.ipa) : u.text, half = g.measureText(text).width / 2;
        const wanted = x((u.start + u.end) / 2), line = wanted - half >= full[0] || full[0] <= full[1] ? 0 : 1;
        const middle = Math.max(wanted, full[line] + half);
        full[line] = middle + half + 4;
        g.globalAlpha = (open.includes(u) ? 0.5 : 1) * (0.35 + 0.65 * Math.min(1, u.confidence ?? 1));
        g.fillText(text, middle, y + line * row);
      }
    };
    if (this.shows !== "phones") put(this.words, this.open.words, row / 2);
    if (this.shows !== "words") put(this.phones, this.open.phones, height - 1.5 * row);
    g.globalAlpha = 0.6;
    for (const end of this.ends) if (end >= from) g.fillRect(x(end), 0, 1, height);
    g.globalAlpha = 1;
  }
  paintColumn(column, number) {
    const bins = column.length, data = new ImageData(1, bins), colours = this.scheme.matches ? DARK : LIGHT;
    for (let b = 0; b < bins; b++) data.data.set([...colours[column[b]], 255], 4 * (bins - 1 - b));
    this.image.getContext("2d").putImageData(data, number % KEPT, 0);
  }
  repaint() {
    this.columns.forEach((column, i) => this.paintColumn(column, this.dropped + i));
    this.draw();
  }
  paintSound(g, from, x, top, height) {
    const end = this.dropped + this.columns.length;
    let first = Math.max(this.dropped, Math.floor(from / FRAME_S));
    while (first < end) { // the ring has one seam
      const n = Math.min(end - first, KEPT - first % KEPT);
      g.drawImage(this.image, first % KEPT, 0, n, this.image.height, x(first * FRAME_S), top, n * FRAME_S * PIXELS_A_SECOND, height);
      first += n;
    }
  }
}
