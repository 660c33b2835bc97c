// marks.c - marks in a transcript that are not words; see marks.h.

#include "lexicon/marks.h"

#include <string.h>

#include "base/textfile.h"

// Without -s, -es, -ed, -ing; a final e falls before -ing and -ed.
static const char *const sounds[] = {
    "applause", "background", "beep",   "bleep",   "breath",  "breathe", "buzz",   "chuckle", "clap",     "clears",
    "click",    "cough",      "clearing", "crosstalk", "cry",    "exhale",  "gasp",    "giggle", "groan",   "grunt",    "gulp",
    "hiccup",   "hum",        "inaudible", "indistinct", "inhale", "laugh", "laughter", "lip",  "moan",    "mumble",   "music",
    "noise",    "pause",      "ringing","sigh",     "silence", "sing",    "smack",   "sneeze", "sniff",   "sniffle",  "snore",
    "snort",    "sob",        "static", "throat",   "unclear", "unintelligible", "whistle", "yawn", "cries", "humming", "sobbing",
    "clapping", "sil",        "spn",    "nsn",      "unk"};

static int is_form_of(const char *stem, const char *word, size_t n)
{
    static const char *const ends[] = {"", "s", "es", "ed", "ing"};
    size_t k = strlen(stem);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t kept = k - (i > 2 && stem[k - 1] == 'e'), end = strlen(ends[i]);
        if (kept + end == n && !memcmp(word, stem, kept) && !memcmp(word + kept, ends[i], end)) return 1;
    }
    return 0;
}

// At most three words, of which the first names a sound.
static int is_of_sounds(const char *text, size_t n)
{
    char word[24];
    size_t n_word = 0, at = 0;
    int words = 0, found = 0;
    while (at < n && lin_is_letter(text[at])) at++;
    if (at == 0 || at >= sizeof word || (at < n && text[at] != ' ' && text[at] != ',' && text[at] != '-')) return 0;
    for (; n_word < at; n_word++) word[n_word] = lin_lower(text[n_word]);
    for (size_t i = 0; i < sizeof sounds / sizeof *sounds && !found; i++) found = is_form_of(sounds[i], word, n_word);
    for (size_t i = 0; i < n; i++) words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
    return found && words <= 3;
}

size_t lin_mark_length(const char *text, size_t n)
{
    static const char opening[] = "[<({*", closing[] = "]>)}*";
    const char *kind = n ? memchr(opening, text[0], sizeof opening - 1) : NULL;
    if (!kind && n > 3 && !memcmp(text, "&=", 2) && lin_is_letter(text[2])) {
        size_t at = 2;
        while (at < n && (lin_is_letter(text[at]) || text[at] == ':' || text[at] == '_')) at++;
        return at <= LIN_MARK_MAX ? at : 0;
    }
    if (!kind) return 0;
    const char close = closing[kind - opening];
    if (n > LIN_MARK_MAX) n = LIN_MARK_MAX;
    size_t at = 1;
    for (; at < n && text[at] != close; at++) {
        if ((unsigned char)text[at] < ' ' || text[at] == 127 || text[at] == *kind) return 0;
    }
    if (at >= n || at == 1) return 0;
    return kind - opening < 2 || is_of_sounds(text + 1, at - 1) ? at + 1 : 0;
}
