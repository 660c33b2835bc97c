// prose.c - natural text as words with marks and capitals; see prose.h.

#include "train/learn/prose.h"

#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"

/* ---- paragraphs ------------------------------------------------------------------------------------------------------------ */

void lin_paragraphs_begin(lin_paragraphs *p, const char *text, size_t n)
{
    *p = (lin_paragraphs){.next = text, .end = text + n};
}

static int is_blank(const char *from, const char *to)
{
    while (from < to && lin_is_space(*from)) from++;
    return from == to;
}

int lin_paragraphs_next(lin_paragraphs *p)
{
    p->text = NULL;
    while (p->next < p->end) {
        const char *line = p->next, *stop = memchr(line, '\n', (size_t)(p->end - line));
        if (!stop) stop = p->end;
        p->next = stop < p->end ? stop + 1 : stop;
        const int blank = is_blank(line, stop);
        if (blank && p->text) return 1;
        if (blank) continue;
        if (!p->text) p->text = line;
        p->n = (size_t)(stop - p->text);
    }
    return p->text != NULL;
}

static int has(const char *text, size_t n, const char *part)
{
    const size_t k = strlen(part);
    for (size_t i = 0; i + k <= n; i++) {
        size_t c = 0;
        while (c < k && lin_lower(text[i + c]) == part[c]) c++;
        if (c == k) return 1;
    }
    return 0;
}

int lin_prose_is_running(const char *text, size_t n)
{
    size_t small = 0, capital = 0, blanks = 0;
    int ends = 0;
    if (n == 0 || text[0] == '#') return 0;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        small += c >= 'a' && c <= 'z';
        capital += c >= 'A' && c <= 'Z';
        blanks += c == ' ' || c == '\n';
        ends |= c == '.' || c == '!' || c == '?';
    }
    const size_t letters = small + capital;
    if (!ends || blanks < 2 || letters * 5 < (n - blanks) * 3 || capital * 10 > letters * 3) return 0;
    return !has(text, n, "gutenberg") && !has(text, n, "http") && !(n > 7 && has(text, 8, "chapter "));
}

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

// What a byte sequence is for the reader: a letter, an apostrophe, a mark, a quotation mark, ...
typedef enum kind { BLANK, LETTER, DIGIT, APOSTROPHE, QUOTE, DASH, HYPHEN, MARK, IGNORED } kind;

typedef struct sign {
    kind kind;
    char letter; // in small
    int capital, mark;
    size_t n; // bytes
} sign;

// Letters of Latin-1 without their accents, from U+00C0 on; '-': none.
static const char latin[] = "AAAAAAACEEEEIIIIDNOOOOO-OUUUUY-saaaaaaaceeeeiiiidnooooo-ouuuuy-y";

static sign letter_of(char c, size_t n)
{
    return (sign){.kind = LETTER, .letter = lin_lower(c), .capital = c >= 'A' && c <= 'Z', .n = n};
}

static sign sign_of_ascii(char c)
{
    if (lin_is_letter(c)) return letter_of(c, 1);
    if (lin_is_digit(c)) return (sign){.kind = DIGIT, .n = 1};
    switch (c) {
    case '\'': return (sign){.kind = APOSTROPHE, .n = 1};
    case '"': return (sign){.kind = QUOTE, .n = 1};
    case '-': return (sign){.kind = HYPHEN, .n = 1};
    case '.':
    case '!':
    case ';': return (sign){.kind = MARK, .mark = LIN_MARK_STOP, .n = 1};
    case '?': return (sign){.kind = MARK, .mark = LIN_MARK_QUESTION, .n = 1};
    case ',':
    case ':': return (sign){.kind = MARK, .mark = LIN_MARK_COMMA, .n = 1};
    case '_':
    case '*': return (sign){.kind = IGNORED, .n = 1};
    default: return (sign){.kind = BLANK, .n = 1};
    }
}

static sign sign_at(const char *text, size_t n)
{
    unsigned code;
    if ((unsigned char)*text < 128) return sign_of_ascii(*text);
    const size_t k = lin_utf8_decode(text, n, &code);
    if (!k) return (sign){.kind = BLANK, .n = 1};
    if (code >= 0xC0 && code <= 0xFF && latin[code - 0xC0] != '-') return letter_of(latin[code - 0xC0], k);
    if (code == 0x2018 || code == 0x2019) return (sign){.kind = APOSTROPHE, .n = k};
    if (code == 0x201C || code == 0x201D) return (sign){.kind = QUOTE, .n = k};
    if (code == 0x2013 || code == 0x2014) return (sign){.kind = DASH, .n = k};
    if (code == 0x2026) return (sign){.kind = BLANK, .n = k};
    return (sign){.kind = code < 0x300 || code > 0x36F ? BLANK : IGNORED, .n = k}; // accents of their own are ignored
}

// Short forms: what they stand for, or NULL where only their period says nothing.
static const struct {
    const char *shorter, *full;
} titles[] = {{"mr", "mister"}, {"mrs", "missus"}, {"dr", "doctor"},  {"st", "saint"}, {"ms", NULL},   {"messrs", NULL},
              {"esq", NULL},    {"hon", NULL},     {"rev", NULL},     {"capt", NULL},  {"col", NULL},  {"gen", NULL},
              {"mme", NULL},    {"mlle", NULL},    {"prof", NULL},    {"etc", NULL},   {"viz", NULL},  {"vol", NULL}};

typedef struct reader {
    lin_prose *prose;
    size_t word;  // where the present word begins in the text
    int in_word, capital, digits, quoted;
    int failed;
} reader;

static const char *last_word(const reader *r) { return r->prose->text.data + r->prose->words[r->prose->n - 1].text; }

static void begin_word(reader *r, int capital)
{
    if (r->in_word) return;
    r->in_word = 1;
    r->word = r->prose->text.n;
    r->capital = capital;
    r->digits = 0;
}

static void end_word(reader *r)
{
    lin_prose *p = r->prose;
    if (!r->in_word || p->text.failed) return;
    r->in_word = 0;
    while (p->text.n > r->word && p->text.data[p->text.n - 1] == '\'') p->text.n--; // the quotation ends
    if (p->text.n == r->word) return;
    p->text.data[p->text.n] = '\0';
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        if (!titles[i].full || strcmp(p->text.data + r->word, titles[i].shorter) != 0) continue;
        p->text.n = r->word;
        lin_buffer_text(&p->text, titles[i].full);
        break;
    }
    if (r->digits) {
        p->text.n = r->word;
        lin_buffer_char(&p->text, '#');
    }
    lin_buffer_char(&p->text, '\0');
    if (p->text.failed || lin_grow_int(&p->words, &p->capacity, (int64_t)p->n + 1, sizeof *p->words, "text", NULL) != LIN_OK) {
        r->failed = 1;
        return;
    }
    p->words[p->n++] = (lin_prose_word){.text = r->word, .capital = r->capital, .quoted = r->quoted};
    r->quoted = 0;
}

static int is_short_form(const char *word)
{
    if (word[0] && !word[1] && word[0] != 'i') return 1; // an initial
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        if (strcmp(word, titles[i].full ? titles[i].full : titles[i].shorter) == 0) return 1;
    }
    return 0;
}

// Of several marks behind a word the strongest stays.
static void put_mark(reader *r, int mark)
{
    end_word(r);
    if (!r->prose->n || r->failed) return;
    lin_prose_word *w = &r->prose->words[r->prose->n - 1];
    if (mark > w->mark) w->mark = mark;
    r->quoted = 0;
}

// Marks that mean nothing: within numbers, of short forms, of an ellipsis. Returns its bytes.
static size_t read_mark(reader *r, const char *text, size_t at, size_t n)
{
    const sign s = sign_at(text + at, n - at);
    const int before = at > 0 && lin_is_digit(text[at - 1]), after = at + 1 < n && lin_is_digit(text[at + 1]);
    if (before && after) return s.n;
    if (text[at] == '.') {
        size_t k = 1, more;
        while (at + k < n && text[at + k] == '.') k++;
        for (more = k; at + more < n && text[at + more] == ' '; more++) continue;
        end_word(r);
        const int behind = at > 1 && text[at - 1] == ' ' && text[at - 2] == '.';
        if (k > 1 || behind || (more > 1 && at + more < n && text[at + more] == '.')) return k;
        if (r->prose->n && !r->failed && r->prose->words[r->prose->n - 1].capital && is_short_form(last_word(r))) return 1;
        if (r->prose->n && !r->failed && strcmp(last_word(r), "etc") == 0) return 1;
    }
    put_mark(r, s.mark);
    return s.n;
}

static void read_sign(reader *r, const char *text, size_t *at, size_t n, kind before)
{
    const sign s = sign_at(text + *at, n - *at);
    const size_t next = *at + s.n;
    const sign after = next < n ? sign_at(text + next, n - next) : (sign){.kind = BLANK, .n = 1};
    *at = next;
    switch (s.kind) {
    case LETTER:
        begin_word(r, s.capital);
        lin_buffer_char(&r->prose->text, s.letter);
        return;
    case DIGIT:
        begin_word(r, 0);
        r->digits = 1;
        lin_buffer_char(&r->prose->text, '0');
        return;
    case APOSTROPHE:
        if (r->in_word && after.kind == LETTER) {
            lin_buffer_char(&r->prose->text, '\'');
        } else {
            end_word(r);
            if (after.kind == LETTER && after.capital) r->quoted = 1;
        }
        return;
    case QUOTE:
        end_word(r);
        if (before != LETTER && before != MARK && (after.kind == LETTER || after.kind == APOSTROPHE)) r->quoted = 1;
        return;
    case DASH: put_mark(r, LIN_MARK_COMMA); return;
    case HYPHEN:
        if (after.kind == HYPHEN || (before == BLANK && after.kind == BLANK)) {
            put_mark(r, LIN_MARK_COMMA);
        } else {
            end_word(r);
        }
        return;
    case MARK: *at = next - s.n + read_mark(r, text, next - s.n, n); return;
    case IGNORED: return;
    default: end_word(r);
    }
}

lin_status lin_prose_read(lin_prose *p, const char *text, size_t n, lin_error *err)
{
    reader r = {.prose = p};
    kind before = BLANK;
    p->n = 0;
    lin_buffer_clear(&p->text);
    for (size_t at = 0; at < n && !r.failed && !p->text.failed;) {
        const kind now = sign_at(text + at, n - at).kind;
        read_sign(&r, text, &at, n, before);
        before = now;
    }
    end_word(&r);
    if (!r.failed && !p->text.failed) return LIN_OK;
    p->n = 0;
    return lin_no_memory(err, "text", p->text.capacity);
}

void lin_prose_free(lin_prose *p)
{
    lin_buffer_free(&p->text);
    lin_free(p->words);
    *p = (lin_prose){0};
}
