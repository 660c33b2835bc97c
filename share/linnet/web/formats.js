// formats.js - the utterances as text, SubRip, WebVTT, TextGrid or JSON. An utterance: {start, end, text, words, phones}, words and
// phones with {text, start, end, confidence}; times in seconds.

const ipa = { AA: "ɑ", AE: "æ", AH: "ʌ", AO: "ɔ", AW: "aʊ", AY: "aɪ", B: "b", CH: "tʃ", D: "d", DH: "ð", EH: "ɛ", ER: "ɝ", EY: "eɪ", F: "f",
  G: "ɡ", HH: "h", IH: "ɪ", IY: "i", JH: "dʒ", K: "k", L: "l", M: "m", N: "n", NG: "ŋ", OW: "oʊ", OY: "ɔɪ", P: "p", R: "ɹ", S: "s", SH: "ʃ",
  T: "t", TH: "θ", UH: "ʊ", UW: "u", V: "v", W: "w", Y: "j", Z: "z", ZH: "ʒ" };

export const symbol = (phone, inIpa) => (inIpa && ipa[phone]) || phone;

export function clock(seconds, comma = ".") {
  const ms = Math.round(seconds * 1000), two = (n) => String(Math.floor(n)).padStart(2, "0");
  return `${two(ms / 3600000)}:${two(ms / 60000 % 60)}:${two(ms / 1000 % 60)}${comma}${String(ms % 1000).padStart(3, "0")}`;
}

// Cues of at most 42 characters and 7 seconds, which do not reach over a pause of half a second.
function cues(list) {
  const out = [];
  for (const utterance of list) {
    const units = utterance.words.length ? utterance.words : utterance.phones;
    let cue = null;
    for (const unit of units) {
      const fits = cue && cue.text.length + unit.text.length < 42 && unit.end - cue.start <= 7 && unit.start - cue.end < 0.5;
      if (fits) cue = Object.assign(cue, { text: `${cue.text} ${unit.text}`, end: unit.end });
      else out.push((cue = { text: unit.text, start: unit.start, end: unit.end }));
    }
  }
  return out;
}

function tier(name, units, end, number) {
  const intervals = [];
  let at = 0;
  for (const u of units) {
    const start = Math.max(at, u.start), stop = Math.max(start, u.end);
    if (start > at) intervals.push([at, start, ""]);
    if (stop > start) intervals.push([start, stop, u.text]);
    at = stop;
  }
  if (end > at || !intervals.length) intervals.push([at, end, ""]);
  const lines = [`    item [${number}]:`, `        class = "IntervalTier"`, `        name = "${name}"`, `        xmin = 0`, `        xmax = ${end}`,
    `        intervals: size = ${intervals.length}`];
  intervals.forEach(([from, to, text], i) => lines.push(`        intervals [${i + 1}]:`, `            xmin = ${from}`, `            xmax = ${to}`,
    `            text = "${text.replaceAll('"', '""')}"`));
  return lines;
}

function textgrid(list) {
  const words = list.flatMap((u) => u.words), phones = list.flatMap((u) => u.phones);
  const end = Math.max(0.001, ...[...words, ...phones].map((u) => u.end)), tiers = words.length ? [["words", words]] : [];
  tiers.push(["phones", phones]);
  return [`File type = "ooTextFile"`, `Object class = "TextGrid"`, ``, `xmin = 0`, `xmax = ${end}`, `tiers? <exists>`, `size = ${tiers.length}`,
    `item []:`, ...tiers.flatMap(([name, units], i) => tier(name, units, end, i + 1)), ``].join("\n");
}

export const formats = {
  txt: (list) => list.map((u) => u.text + "\n").join(""),
  srt: (list) => cues(list).map((c, i) => `${i + 1}\n${clock(c.start, ",")} --> ${clock(c.end, ",")}\n${c.text}\n\n`).join(""),
  vtt: (list) => "WEBVTT\n\n" + cues(list).map((c) => `${clock(c.start)} --> ${clock(c.end)}\n${c.text}\n\n`).join(""),
  TextGrid: textgrid,
  json: (list) => JSON.stringify(list, null, 1) + "\n",
};
