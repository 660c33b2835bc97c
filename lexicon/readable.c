// readable.c - marks and capitals by a log-linear model in a file, and words to text with them and digits; see readable.h.

#include "lexicon/readable.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"

_Static_assert(sizeof(lin_punctuation_header) == 56, "the header has no holes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "models are read from little-endian files");

/* ---- features -------------------------------------------------------------------------------------------------------------- */

uint64_t lin_punctuation_word(const char *word)
{
    const uint64_t id = lin_mix64(lin_fnv(LIN_FNV_START, word, strlen(word)));
    return id ? id : 1;
}

void lin_gap_move(lin_gap *g, int mark, uint64_t word)
{
    if (mark == LIN_MARK_STOP || mark == LIN_MARK_QUESTION) g->sentence_words = 0;
    if (mark != LIN_MARK_NONE) g->clause_words = 0;
    for (int i = 0; i < 2; i++) {
        if (g->sentence_words <= i) g->sentence[i] = g->sentence_words == i ? word : 0;
        if (g->clause_words <= i) g->clause[i] = g->clause_words == i ? word : 0;
    }
    g->sentence_words++;
    g->clause_words++;
    g->before[2] = g->before[1];
    g->before[1] = g->before[0];
    g->before[0] = word;
}

static uint32_t key(unsigned feature, uint64_t a, uint64_t b, uint64_t c, unsigned bits)
{
    const uint64_t h = lin_mix64(a + feature) ^ (b * UINT64_C(0x9E3779B97F4A7C15)) ^ (c * UINT64_C(0xC2B2AE3D27D4EB4F) >> 7);
    return (uint32_t)(lin_mix64(h) >> (64 - bits));
}

static uint64_t length_class(int words)
{
    return (uint64_t)(words < 8 ? words : words < 12 ? 8 : words < 16 ? 9 : words < 24 ? 10 : words < 32 ? 11 : 12) + 1;
}

void lin_punctuation_mark_keys(const lin_gap *g, unsigned bits, uint32_t keys[LIN_PUNCTUATION_MARK_FEATURES])
{
    const uint64_t *b = g->before, *a = g->after, *s = g->sentence, *c = g->clause;
    const uint64_t long_s = length_class(g->sentence_words), long_c = length_class(g->clause_words);
    keys[0] = key(0, b[0], 0, 0, bits);
    keys[1] = key(1, a[0], 0, 0, bits);
    keys[2] = key(2, b[0], a[0], 0, bits);
    keys[3] = key(3, b[1], b[0], 0, bits);
    keys[4] = key(4, a[0], a[1], 0, bits);
    keys[5] = key(5, b[1], b[0], a[0], bits);
    keys[6] = key(6, b[0], a[0], a[1], bits);
    keys[7] = key(7, a[0], a[1], a[2], bits);
    keys[8] = key(8, b[2], b[1], b[0], bits);
    keys[9] = key(9, long_s, long_c, 0, bits);
    keys[10] = key(10, s[0], a[0], 0, bits);
    keys[11] = key(11, s[0], s[1], 0, bits);
    keys[12] = key(12, c[0], c[1], 0, bits);
    keys[13] = key(13, c[0], a[0], 0, bits);
    keys[14] = key(14, long_c, a[0], 0, bits);
    keys[15] = key(15, long_c, b[0], a[0] == 0, bits);
}

void lin_punctuation_capital_keys(uint64_t before, int capital, uint64_t word, uint64_t after, unsigned bits,
                                  uint32_t keys[LIN_PUNCTUATION_CAPITAL_FEATURES])
{
    const uint64_t cap = capital ? 2 : 1;
    keys[0] = key(32, word, 0, 0, bits);
    keys[1] = key(33, before, word, 0, bits);
    keys[2] = key(34, word, after, 0, bits);
    keys[3] = key(35, word, cap, 0, bits);
    keys[4] = key(36, before, word, after, bits);
    keys[5] = key(37, before, 0, 0, bits);
    keys[6] = key(38, before, cap, 0, bits);
    keys[7] = key(39, after, 0, 0, bits);
    keys[8] = key(40, after, cap, 0, bits);
}

/* ---- scores ---------------------------------------------------------------------------------------------------------------- */

// Natural logarithms but for a constant: scores[LIN_MARK_NONE] is 0.
static void score_marks(const lin_punctuation *p, const lin_gap *gap, float scores[LIN_MARKS])
{
    const uint32_t n = p->header.n_marks;
    uint32_t keys[LIN_PUNCTUATION_MARK_FEATURES];
    int sums[LIN_MARKS] = {0};
    lin_punctuation_mark_keys(gap, p->header.bits, keys);
    for (int i = 0; i < LIN_PUNCTUATION_MARK_FEATURES; i++) {
        const unsigned char *slot = p->slots + (size_t)(keys[i] % n) * LIN_PUNCTUATION_MARK_SLOT;
        if (slot[0] != keys[i] / n) continue;
        for (int m = 1; m < LIN_MARKS; m++) sums[m] += (signed char)slot[m];
    }
    scores[0] = 0;
    for (int m = 1; m < LIN_MARKS; m++) scores[m] = p->header.mark_bias[m - 1] + p->header.mark_scale * (float)sums[m];
}

// Above 0: the word has a capital inside a sentence. before: the word before it, 0: none; capital: it has one.
static float score_capital(const lin_punctuation *p, uint64_t before, int capital, uint64_t word, uint64_t after)
{
    const uint32_t n = p->header.n_capitals;
    const unsigned char *slots = p->slots + (size_t)p->header.n_marks * LIN_PUNCTUATION_MARK_SLOT;
    uint32_t keys[LIN_PUNCTUATION_CAPITAL_FEATURES];
    int sum = 0;
    lin_punctuation_capital_keys(before, capital, word, after, p->header.bits, keys);
    for (int i = 0; i < LIN_PUNCTUATION_CAPITAL_FEATURES; i++) {
        const unsigned char *slot = slots + (size_t)(keys[i] % n) * LIN_PUNCTUATION_CAPITAL_SLOT;
        if (slot[0] == keys[i] / n) sum += (signed char)slot[1];
    }
    return p->header.capital_bias + p->header.capital_scale * (float)sum;
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static uint64_t checksum(const lin_punctuation *p)
{
    lin_punctuation_header h = p->header;
    h.checksum = 0;
    return lin_hash(p->slots, p->n, lin_hash(&h, sizeof h, 0));
}

static int good_number(float x) { return isfinite(x) && fabsf(x) < 1e4F; }

static lin_status check_header(const lin_punctuation_header *h, size_t n, const char *name, lin_error *err)
{
    if (h->version != LIN_PUNCTUATION_VERSION)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: a punctuation model of version %u; this program reads version %d", name,
                        (unsigned)h->version, LIN_PUNCTUATION_VERSION);
    int good = h->bits >= 8 && h->bits <= LIN_PUNCTUATION_MAX_BITS && h->n_marks > 0 && h->n_capitals > 0;
    // what is left of a key fits a byte
    good = good && ((uint64_t)1 << h->bits) <= (uint64_t)h->n_marks * 256 &&
           ((uint64_t)1 << h->bits) <= (uint64_t)h->n_capitals * 256;
    good = good && good_number(h->mark_scale) && good_number(h->capital_scale) && good_number(h->capital_bias);
    for (int m = 0; m < LIN_MARKS - 1; m++) good = good && good_number(h->mark_bias[m]);
    if (!good) return lin_fail(err, LIN_FORMAT, "%s: a number of its header is out of range; the file is damaged", name);
    if (n - sizeof *h != lin_punctuation_bytes(h))
        return lin_fail(err, LIN_FORMAT, "%s: %zu bytes, but its header gives %zu; the file is truncated or damaged", name, n,
                        sizeof *h + lin_punctuation_bytes(h));
    return LIN_OK;
}

lin_status lin_punctuation_parse(const void *bytes, size_t n, const char *name, lin_punctuation **out, lin_error *err)
{
    lin_punctuation_header h;
    *out = NULL;
    if (n < sizeof h || memcmp(bytes, LIN_PUNCTUATION_MAGIC, sizeof h.magic) != 0)
        return lin_fail(err, LIN_FORMAT, "%s is not a punctuation model; linnet readable learn makes one", name);
    memcpy(&h, bytes, sizeof h);
    LIN_TRY(check_header(&h, n, name, err));
    lin_punctuation *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, name, sizeof *p);
    p->header = h;
    p->n = n - sizeof h;
    p->slots = lin_alloc(p->n, 1);
    if (!p->slots) {
        lin_free(p);
        return lin_no_memory(err, name, n);
    }
    memcpy(p->slots, (const char *)bytes + sizeof h, p->n);
    if (checksum(p) != h.checksum) {
        lin_punctuation_destroy(p);
        return lin_fail(err, LIN_FORMAT, "%s: its checksum is wrong; the file is damaged", name);
    }
    *out = p;
    return LIN_OK;
}

lin_status lin_punctuation_open(const char *path, lin_punctuation **p, lin_error *err)
{
    char *bytes;
    size_t n;
    *p = NULL;
    LIN_TRY(lin_text_read(path, &bytes, &n, err));
    const lin_status status = lin_punctuation_parse(bytes, n, path, p, err);
    lin_free(bytes);
    return status;
}

lin_status lin_punctuation_write(const lin_punctuation *p, const char *path, lin_error *err)
{
    lin_punctuation_header h = p->header;
    lin_file_writer *w;
    h.checksum = checksum(p);
    LIN_TRY(lin_file_open(path, 0, &w, err));
    lin_status status = lin_file_write(w, &h, sizeof h, err);
    if (status == LIN_OK) status = lin_file_write(w, p->slots, p->n, err);
    if (status == LIN_OK) return lin_file_commit(w, err);
    lin_file_abort(w);
    return status;
}

void lin_punctuation_destroy(lin_punctuation *p)
{
    if (!p) return;
    lin_written_destroy(p->numbers);
    lin_free(p->slots);
    lin_free(p);
}

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

enum { AHEAD = 3, LONGEST_NUMBER = 32 };

static const char nothing[] = "[...]"; // a word without a spelling
static const double apart_s = 0.3; // the longest pause between the words of a number

struct lin_readable_pending {
    size_t text; // in the spellings
    uint64_t id;
    double start_s, end_s;
    int known;
};

// ln P(pause | mark) / P(pause | no mark): comma, full stop and question mark. Counted in 13,128 words of books that were read
// aloud (docs/readable.md).
static const double pause_least_s[LIN_PAUSES] = {-INFINITY, -INFINITY, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9};
static const float pause_scores[LIN_PAUSES][LIN_MARKS] = {
    {0, 0, 0, 0},          {0, -1.6F, -4.6F, -4.6F}, {0, 0.5F, -1.6F, -1.6F}, {0, 1.5F, -0.5F, -0.5F},
    {0, 2.4F, 0.9F, 0.9F}, {0, 2.9F, 1.8F, 1.8F},    {0, 3.3F, 2.6F, 2.6F},   {0, 4.0F, 3.7F, 3.7F},
    {0, 4.4F, 4.6F, 4.6F}, {0, 4.4F, 5.5F, 5.5F},    {0, 3.7F, 6.4F, 6.4F},
};

static const double silence_s = 2;

// Added to each mark where the pause is not known, because the weights alone give too few marks. The best of 0.6 to 1.4 on books
// for tuning.
static const float mark_bonus = 0.8F;

// A word that had a capital with a score above sure_name is a name: from then on its score is higher by name_bonus. Best on books
// for tuning.
static const float sure_name = 1, name_bonus = 1.5F;

int lin_readable_pause(double seconds)
{
    int class = LIN_PAUSES - 1;
    if (isnan(seconds)) return 0;
    while (class > 1 && seconds < pause_least_s[class]) class--;
    return class;
}

void lin_readable_begin(lin_readable *r, const lin_punctuation *model)
{
    *r = (lin_readable){.model = model, .mark = LIN_MARK_STOP};
}

static const char *spelling(const lin_readable *r, int i) { return r->spellings.data + r->words[i].text; }

static double pause_before(const lin_readable *r, int i)
{
    return i > 0 && i < r->n_words ? r->words[i].start_s - r->words[i - 1].end_s : NAN;
}

/* ---- one token ------------------------------------------------------------------------------------------------------------- */

// The mark in the gap before word `next`, which is the end if there is no such word.
static int choose_mark(lin_readable *r, int next)
{
    float scores[LIN_MARKS];
    int best = LIN_MARK_NONE;
    for (int k = 0; k < 3; k++) r->gap.after[k] = next + k < r->n_words ? r->words[next + k].id : 0;
    score_marks(r->model, &r->gap, scores);
    if (next == r->n_words) return scores[LIN_MARK_QUESTION] > scores[LIN_MARK_STOP] ? LIN_MARK_QUESTION : LIN_MARK_STOP;
    const double pause_s = pause_before(r, next);
    const int pause = lin_readable_pause(pause_s);
    // A pause alone does not make a sentence of one or two words, but silence ends one.
    const int is_short = (r->gap.sentence_words <= 2 || !r->gap.after[2]) && pause_s < silence_s;
    for (int m = 1; m < LIN_MARKS; m++) {
        const float said = pause_scores[pause][m];
        scores[m] += pause == 0 ? mark_bonus : is_short && m != LIN_MARK_COMMA ? fminf(said, 0) : said;
        if (scores[m] > scores[best]) best = m;
    }
    return best;
}

static int begins(const lin_readable *r) { return r->mark == LIN_MARK_STOP || r->mark == LIN_MARK_QUESTION; }

// A name that was capitalised once stays so, unless what is around it says otherwise.
static int is_capital(lin_readable *r, int i, uint64_t before, int capital)
{
    const uint64_t after = i + 1 < r->n_words ? r->words[i + 1].id : 0, word = r->words[i].id;
    uint64_t *name = &r->names[word % LIN_READABLE_NAMES];
    if (!r->words[i].known) return 0;
    const float score = score_capital(r->model, before, capital, word, after);
    if (score > sure_name && !begins(r)) *name = word;
    return score + (*name == word ? name_bonus : 0) > 0;
}

// "mister" before a name.
static const char *title(lin_readable *r, int i, int mark)
{
    if (r->words_only || mark != LIN_MARK_NONE || i + 1 >= r->n_words || !is_capital(r, i + 1, r->words[i].id, 1)) return NULL;
    return lin_number_title(r->model->numbers, spelling(r, i));
}

static void put_capital(lin_buffer *out, const char *word)
{
    char first[4];
    unsigned code = 0;
    const size_t n = lin_utf8_decode(word, strlen(word), &code);
    if (n) lin_buffer_bytes(out, first, lin_utf8_encode(lin_unicode_title(code), first));
    lin_buffer_text(out, word + n);
}

// Words first .. first + n-1 as one token; digits: what they are written as, or NULL for one word.
static lin_status put_token(lin_readable *r, int first, int n, const char *digits, lin_error *err)
{
    static const char *const marks[LIN_MARKS] = {"", ",", ".", "?"};
    LIN_TRY(lin_grow_int(&r->tokens, &r->capacity, (int64_t)r->n + 1, sizeof *r->tokens, "text", err));
    const int inside = !begins(r), capital = !digits && is_capital(r, first, r->gap.before[0], r->capital);
    int mark = r->mark;
    for (int i = first; i < first + n; i++) {
        lin_gap_move(&r->gap, mark, r->words[i].id);
        mark = LIN_MARK_NONE;
    }
    mark = choose_mark(r, first + n);
    const char *word = digits ? digits : spelling(r, first), *full = digits ? NULL : title(r, first, mark);
    r->tokens[r->n++] = (lin_readable_token){r->text.n, r->words[first].start_s, r->words[first + n - 1].end_s};
    if (full) lin_buffer_text(&r->text, full);
    else if (!digits && (capital || !inside)) put_capital(&r->text, word);
    else lin_buffer_text(&r->text, word);
    // The point of a German ordinal ends a sentence too: "am 20."
    if (mark != LIN_MARK_STOP || !r->text.n || r->text.data[r->text.n - 1] != '.') lin_buffer_text(&r->text, marks[mark]);
    lin_buffer_char(&r->text, '\0');
    r->mark = mark;
    r->capital = capital && inside;
    return lin_buffer_status(&r->text, err);
}

/* ---- what waits ------------------------------------------------------------------------------------------------------------ */

// Where the words end that could be a number from word i on.
static int number_end(const lin_readable *r, int i)
{
    const lin_written *rules = r->model->numbers;
    int end = i;
    while (end < r->n_words && end < i + LONGEST_NUMBER && r->words[end].known && lin_number_word(rules, spelling(r, end)) &&
           (end == i || !(pause_before(r, end) >= apart_s)))
        end++;
    return end;
}

// The words of the number at word i, with its digits in r->digits; 0: none, and then *keep words stay as they are.
static int read_number(lin_readable *r, int i, int end, int *keep)
{
    const char *words[LONGEST_NUMBER + 1];
    int n = 0;
    for (; i + n < end; n++) words[n] = spelling(r, i + n);
    if (end < r->n_words && !(pause_before(r, end) >= apart_s)) words[n++] = spelling(r, end);
    lin_buffer_clear(&r->digits);
    const int used = lin_number_read(r->model->numbers, words, n, r->before, &r->digits, keep);
    if (used > end - i || *keep > end - i) *keep = 1;
    return used > end - i ? 0 : used;
}

// Drops the first n words that wait.
static void drop(lin_readable *r, int n)
{
    if (n == 0) return;
    const size_t bytes = n < r->n_words ? r->words[n].text : r->spellings.n;
    r->n_words -= n;
    memmove(r->words, r->words + n, (size_t)r->n_words * sizeof *r->words);
    memmove(r->spellings.data, r->spellings.data + bytes, r->spellings.n - bytes);
    r->spellings.n -= bytes;
    for (int i = 0; i < r->n_words; i++) r->words[i].text -= bytes;
}

// The words that are certain become tokens.
static lin_status settle(lin_readable *r, int is_end, lin_error *err)
{
    int i = 0;
    while (i < r->n_words) {
        const int numbers = !r->words_only && r->keep == 0 ? number_end(r, i) : i;
        const int end = numbers > i ? numbers : i + 1;
        if (!is_end && r->n_words < end + AHEAD) break;
        int used = 0;
        if (numbers > i) used = read_number(r, i, end, &r->keep);
        if (r->digits.failed) return lin_buffer_status(&r->digits, err);
        LIN_TRY(put_token(r, i, used ? used : 1, used ? r->digits.data : NULL, err));
        i += used ? used : 1;
        if (used) r->keep = 0;
        else if (r->keep) r->keep--;
        snprintf(r->before, sizeof r->before, "%s", spelling(r, i - 1));
    }
    drop(r, i);
    return LIN_OK;
}

lin_status lin_readable_push(lin_readable *r, const char *word, double start_s, double end_s, int known, lin_error *err)
{
    const double pause = start_s - r->end_s;
    if (r->paragraph_s > 0 && pause > r->paragraph_s) LIN_TRY(lin_readable_finish(r, err));
    r->end_s = end_s;
    if (!*word && r->n_words && !strcmp(spelling(r, r->n_words - 1), nothing) && !(pause >= apart_s)) {
        r->words[r->n_words - 1].end_s = end_s;
        return LIN_OK;
    }
    if (!*word) word = nothing;
    LIN_TRY(lin_grow_int(&r->words, &r->words_capacity, (int64_t)r->n_words + 1, sizeof *r->words, "text", err));
    const size_t at = r->spellings.n;
    lin_buffer_text(&r->spellings, word);
    lin_buffer_char(&r->spellings, '\0');
    LIN_TRY(lin_buffer_status(&r->spellings, err));
    r->words[r->n_words++] = (lin_readable_pending){at, lin_punctuation_word(word), start_s, end_s, known};
    return settle(r, 0, err);
}

lin_status lin_readable_finish(lin_readable *r, lin_error *err)
{
    lin_status status = settle(r, 1, err);
    r->gap = (lin_gap){0};
    r->mark = LIN_MARK_STOP;
    r->capital = r->keep = 0;
    r->before[0] = '\0';
    return status;
}

void lin_readable_clear(lin_readable *r)
{
    r->n = 0;
    lin_buffer_clear(&r->text);
}

const char *lin_readable_token_text(const lin_readable *r, int i) { return r->text.data + r->tokens[i].text; }

void lin_readable_free(lin_readable *r)
{
    lin_buffer_free(&r->text);
    lin_buffer_free(&r->spellings);
    lin_buffer_free(&r->digits);
    lin_free(r->tokens);
    lin_free(r->words);
    *r = (lin_readable){0};
}
