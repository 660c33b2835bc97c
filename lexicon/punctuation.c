// punctuation.c - marks and capitals by a log-linear model in a file; see punctuation.h.

#include "lexicon/punctuation.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/punctuation_model.h"
#include "lexicon/written.h"

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

void lin_punctuation_marks(const lin_punctuation *p, const lin_gap *gap, float scores[LIN_MARKS])
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

float lin_punctuation_capital(const lin_punctuation *p, uint64_t before, int capital, uint64_t word, uint64_t after)
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
        return lin_fail(err, LIN_FORMAT, "%s: %zu bytes long, but its header requires %zu; the file is cut or damaged", name, n,
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
    lin_status status = check_header(&h, n, name, err);
    if (status != LIN_OK) return status;
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
    lin_status status = lin_text_read(path, &bytes, &n, err);
    if (status != LIN_OK) return status;
    status = lin_punctuation_parse(bytes, n, path, p, err);
    lin_free(bytes);
    return status;
}

lin_status lin_punctuation_write(const lin_punctuation *p, const char *path, lin_error *err)
{
    lin_punctuation_header h = p->header;
    lin_file_writer *w;
    h.checksum = checksum(p);
    lin_status status = lin_file_open(path, 0, &w, err);
    if (status != LIN_OK) return status;
    status = lin_file_write(w, &h, sizeof h, err);
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

void lin_punctuation_take_numbers(lin_punctuation *p, struct lin_written *numbers)
{
    lin_written_destroy(p->numbers);
    p->numbers = numbers;
}

const struct lin_written *lin_punctuation_numbers(const lin_punctuation *p) { return p->numbers; }
