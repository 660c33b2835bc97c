// reading.js - how far a text was read, from the words that were heard.

// The words of a text: what has letters or digits, of any alphabet, between blanks.
export const wordsOf = (text) => text.split(/\s+/).filter((w) => /[\p{L}\p{N}]/u.test(w));

const lettersOf = (text) => [...text.toLowerCase().normalize("NFC")].filter((c) => /[\p{L}\p{N}\p{M}]/u.test(c));

// Costs of making what was heard from the first 0, 1, 2, ... letters of a text: of a letter too many or too few 2, of another one 3,
// so that what was said besides is rather too much than the words that come next.
function costs(heard, letters) {
  let row = Array.from({ length: letters.length + 1 }, (_, i) => 2 * i);
  for (const h of heard) {
    const next = [row[0] + 2];
    for (let i = 1; i <= letters.length; i++) next.push(Math.min(row[i - 1] + (letters[i - 1] === h ? 0 : 3), row[i] + 2, next[i - 1] + 2));
    row = next;
  }
  return row;
}

// How many of the words were heard. heard: the same in several spellings, such as with numbers in words and in digits; the nearest
// to the text counts.
export function reached(words, heard) {
  const letters = words.map(lettersOf), ends = [0];
  for (const l of letters) ends.push(ends[ends.length - 1] + l.length);
  const rows = heard.map((h) => costs(lettersOf(h), letters.flat())), least = rows.map((row) => Math.min(...row));
  const row = rows[least.indexOf(Math.min(...least))];
  return ends.reduce((best, end, n) => (row[end] < row[ends[best]] ? n : best), 0);
}
