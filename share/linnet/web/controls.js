// controls.js - what the pages have in common: the line that says how it goes, the button that records, and keys.
export const $ = (id) => document.getElementById(id);
export const REFUSED = "The server does not take this stream: it is gone, full, or needs its token.";

export function say(text, isError = false) {
  $("status").textContent = text;
  $("status").className = isError ? "error" : "";
}

export function showRecording(on) {
  $("record").setAttribute("aria-pressed", String(on));
  $("record").textContent = on ? "Stop" : "Record";
}

// keys: { letter: function }; not while something is written, or with another key.
export function onKeys(keys) {
  document.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    keys[event.key.toLowerCase()]?.();
  };
}
