// ngram.c - a model in memory: words, scores and states, the filter of pairs, and making it from n-grams; see ngram.h.

#include "lexicon/ngram.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "lexicon/ngram_file.h"

void lin_ngram_destroy(lin_ngram *lm)
{
    if (!lm) return;
    if (lm->mapped) {
        lin_file_map_close(&(lin_file_map){lm->bytes, lm->size});
    } else {
        lin_free((void *)(uintptr_t)lm->bytes);
    }
    lin_free(lm);
}

int lin_ngram_order(const lin_ngram *lm) { return lm->order; }

int64_t lin_ngram_count(const lin_ngram *lm, int order)
{
    return order >= 1 && order <= lm->order ? (int64_t)lm->levels[order].count : 0;
}

uint32_t lin_ngram_states(const lin_ngram *lm) { return lm->n_states; }

uint64_t lin_ngram_fingerprint(const lin_ngram *lm)
{
    uint64_t hash;
    memcpy(&hash, lm->bytes + LIN_NGRAM_AT_HEADER_HASH, sizeof hash);
    return hash;
}

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

int lin_ngram_words(const lin_ngram *lm) { return (int)lm->n_words; }

// The text ends with a NUL (checked when the file is opened): no offset in it leads out of it.
static const char *word_at(const lin_ngram *lm, uint32_t word)
{
    uint32_t offset = lin_ngram_u32(lm->bytes + lm->offsets_at + 4 * (size_t)word);
    return (const char *)lm->bytes + lm->text_at + (offset < lm->text_bytes ? offset : lm->text_bytes - 1);
}

const char *lin_ngram_word(const lin_ngram *lm, int word)
{
    return word >= 0 && (uint32_t)word < lm->n_words ? word_at(lm, (uint32_t)word) : NULL;
}

int lin_ngram_find(const lin_ngram *lm, const char *text, size_t n)
{
    uint32_t low = 0, high = lm->n_words;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const char *word = word_at(lm, middle);
        size_t n_word = strlen(word);
        int order = memcmp(word, text, n_word < n ? n_word : n);
        if (!order && n_word == n) return (int)middle;
        if (order < 0 || (!order && n_word < n)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return LIN_NGRAM_UNKNOWN;
}

void lin_ngram_find_special(lin_ngram *lm)
{
    int begin = lin_ngram_find(lm, "<s>", 3);
    lm->end_word = lin_ngram_find(lm, "</s>", 4);
    lm->unknown = lin_ngram_find(lm, "<unk>", 5);
    if (lm->unknown < 0) lm->unknown = lin_ngram_find(lm, "<UNK>", 5);
    lm->begin = 0;
    if (begin >= 0 && lm->order > 1) lin_ngram_is_inner(lm, 1, (uint32_t)begin, &lm->begin);
}

/* ---- scores ---------------------------------------------------------------------------------------------------------------- */

lin_ngram_state lin_ngram_begin(const lin_ngram *lm) { return lm->begin; }

int lin_ngram_child(const lin_ngram *lm, int k, lin_ngram_state state, uint32_t word, uint32_t *place)
{
    const lin_ngram_level *level = &lm->levels[k + 1];
    const unsigned char *grams = lm->bytes + level->grams_at;
    uint32_t low, end;
    lin_ngram_children(lm, k, state, &low, &end);
    for (uint32_t n = end - low; n > 0;) {
        uint32_t half = n / 2, middle = low + half;
        uint32_t at = (uint32_t)lin_ngram_bits(grams, (uint64_t)middle * level->gram_bits, level->word_bits);
        if (at == word) {
            *place = middle;
            return 1;
        }
        if (at < word) {
            low = middle + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return 0;
}

// From the longest context to the empty one: the first that has the word gives its probability, the first whose gram is itself a
// context gives the next state, and the contexts before the one with the probability give their back-off weights.
float lin_ngram_score(const lin_ngram *lm, lin_ngram_state state, int word, lin_ngram_state *next)
{
    float backoff = 0, logp = 0;
    int found = 0;
    uint32_t place;
    *next = 0;
    if (word < 0 || (uint32_t)word >= lm->n_words) word = lm->unknown;
    if (word < 0) return -INFINITY;
    if (state >= lm->n_states) state = 0;
    while (state) {
        int k = lin_ngram_state_level(lm, state);
        if (lin_ngram_child(lm, k, state, (uint32_t)word, &place)) {
            if (!found) logp = lin_ngram_gram_logp(lm, k + 1, place);
            found = 1;
            if (k + 1 < lm->order && lin_ngram_is_inner(lm, k + 1, place, next)) return backoff + logp;
        } else if (!found) {
            backoff += lin_ngram_backoff(lm, k, state);
        }
        state = lin_ngram_link(lm, k, state);
    }
    if (!found) logp = lin_ngram_gram_logp(lm, 1, (uint32_t)word);
    if (lm->order > 1) lin_ngram_is_inner(lm, 1, (uint32_t)word, next);
    return backoff + logp;
}

float lin_ngram_end(const lin_ngram *lm, lin_ngram_state state)
{
    lin_ngram_state next;
    return lm->end_word < 0 ? 0 : lin_ngram_score(lm, state, lm->end_word, &next);
}

float lin_ngram_unigram(const lin_ngram *lm, int word)
{
    if (word < 0 || (uint32_t)word >= lm->n_words) word = lm->unknown;
    return word < 0 ? -INFINITY : lin_ngram_gram_logp(lm, 1, (uint32_t)word);
}

/* ---- the filter of pairs --------------------------------------------------------------------------------------------------- */

size_t lin_ngram_pairs_size(const lin_ngram *lm)
{
    if (lm->order < 2) return 0;
    size_t n = LIN_NGRAM_PAIRS_LINE;
    while (64 * n < 4 * (size_t)lm->levels[2].count) n *= 2;
    return n;
}

lin_status lin_ngram_pairs_create(const lin_ngram *lm, lin_ngram_pairs *pairs, lin_error *err)
{
    const size_t n = lin_ngram_pairs_size(lm);
    *pairs = (lin_ngram_pairs){0};
    if (!n) return LIN_OK;
    uint64_t *bits = lin_calloc(n, sizeof *bits);
    if (!bits) return lin_no_memory(err, "a filter of pairs of words", n * sizeof *bits);
    *pairs = (lin_ngram_pairs){bits, n};
    for (int k = 1; k < lm->order; k++) {
        for (uint32_t place = 0; place < lm->levels[k].count; place++) {
            lin_ngram_state state, last;
            uint32_t at, end;
            if (!lin_ngram_is_inner(lm, k, place, &state)) continue;
            if (!lin_ngram_is_inner(lm, 1, lin_ngram_gram_word(lm, k, place), &last)) continue;
            for (lin_ngram_children(lm, k, state, &at, &end); at < end; at++) {
                const uint32_t word = lin_ngram_gram_word(lm, k + 1, at);
                bits[lin_ngram_pairs_at(n, last, word)] |= UINT64_C(1) << (word & 63);
            }
        }
    }
    return LIN_OK;
}

// The weights are added in the order of lin_ngram_score.
lin_ngram_context lin_ngram_context_of(const lin_ngram *lm, lin_ngram_state state)
{
    lin_ngram_context c = {0};
    if (state >= lm->n_states) state = 0;
    while (state) {
        const int k = lin_ngram_state_level(lm, state);
        c.backoffs += lin_ngram_backoff(lm, k, state);
        if (k == 1) c.last = state;
        state = lin_ngram_link(lm, k, state);
    }
    return c;
}

float lin_ngram_unseen(const lin_ngram *lm, const lin_ngram_context *context, int word, lin_ngram_state *next)
{
    if ((uint32_t)word >= lm->n_words) return lin_ngram_score(lm, 0, word, next);
    *next = 0;
    lin_ngram_is_inner(lm, 1, (uint32_t)word, next);
    return context->backoffs + lin_ngram_gram_logp(lm, 1, (uint32_t)word);
}

/* ---- layout ---------------------------------------------------------------------------------------------------------------- */

enum { LINE = 64, ROOM = 8 }; // sections begin at multiples of LINE; the last field of one may be read as part of 8 bytes

static size_t section(size_t *used, size_t bytes)
{
    size_t at = *used;
    *used = (at + bytes + LINE - 1) / LINE * LINE;
    return at;
}

static size_t bits_section(size_t *used, uint64_t n, unsigned width)
{
    return section(used, (size_t)((n * width + 7) / 8) + ROOM);
}

// Number of bits that can hold 0..largest.
static unsigned width_of(uint64_t largest)
{
    unsigned bits = 0;
    while (bits < 64 && largest >> bits) bits++;
    return bits;
}

void lin_ngram_lay_out(lin_ngram *lm)
{
    size_t used = LIN_NGRAM_HEADER;
    uint32_t states = 1;
    lm->n_words = lm->levels[1].count;
    lm->offsets_at = section(&used, 4 * (size_t)lm->n_words);
    lm->text_at = section(&used, lm->text_bytes);
    for (int k = 1; k <= lm->order; k++) {
        lin_ngram_level *level = &lm->levels[k];
        int last = k == lm->order;
        level->first_state = states;
        level->word_bits = k > 1 ? width_of(lm->n_words - 1) : 0;
        level->gram_bits = level->word_bits + level->logp_bits;
        level->first_bits = last ? 0 : width_of(lm->levels[k + 1].count);
        level->link_bits = last ? 0 : width_of(states - 1);
        level->inner_bits = level->first_bits + level->backoff_bits + level->link_bits;
        level->logp_at = section(&used, (size_t)4 << level->logp_bits);
        level->grams_at = bits_section(&used, level->count, level->gram_bits);
        if (last) continue;
        level->rank_at = section(&used, ((size_t)level->count + 63) / 64 * 12);
        level->backoff_at = section(&used, (size_t)4 << level->backoff_bits);
        level->inner_at = bits_section(&used, (uint64_t)level->inner + 1, level->inner_bits);
        states += level->inner;
    }
    lm->n_states = states;
    lm->size = used;
}

/* ---- making a model from its n-grams: sort, find contexts, make code books, number states, set links ----------------------- */

// One order while the block is made: its sorted n-grams, the first child of each, codes.
typedef struct sorted {
    uint32_t count, inner;
    uint32_t *words;   // [count, k]
    uint32_t *source;  // [count] index in the table
    uint32_t *first;   // [count + 1] first child; not for the highest order
    uint16_t *logp;    // [count] codes
    uint16_t *backoff; // [inner] codes
    float *logp_book, *backoff_book;
    unsigned logp_bits, backoff_bits;
} sorted;

typedef struct builder {
    lin_ngram_tables *tables;
    const char *name;
    int order;
    sorted levels[LIN_NGRAM_MAX_ORDER + 1];
    lin_ngram_fault *fault;
} builder;

static void level_free(sorted *s)
{
    lin_free(s->words);
    lin_free(s->source);
    lin_free(s->first);
    lin_free(s->logp);
    lin_free(s->backoff);
    lin_free(s->logp_book);
    lin_free(s->backoff_book);
    *s = (sorted){0};
}

void lin_ngram_tables_free(lin_ngram_tables *tables)
{
    lin_symbols_free(&tables->words);
    for (int k = 0; k <= LIN_NGRAM_MAX_ORDER; k++) {
        lin_free(tables->tables[k].words);
        lin_free(tables->tables[k].logp);
        lin_free(tables->tables[k].backoff);
    }
    *tables = (lin_ngram_tables){0};
}

/* ---- sorting --------------------------------------------------------------------------------------------------------------- */

typedef struct spelling { // of a word
    const char *text;
    uint32_t n, word;
} spelling;

static int by_bytes(const void *a, const void *b)
{
    const spelling *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

// Words are numbered in the order of their bytes, as in the file; they become the "words" of the unigrams.
static lin_status rank_words(builder *b, lin_error *err)
{
    const lin_symbols *words = &b->tables->words;
    size_t n = (size_t)words->n;
    lin_ngram_table *unigrams = &b->tables->tables[1];
    spelling *spellings = lin_alloc(n, sizeof *spellings);
    unigrams->words = lin_alloc(n, sizeof *unigrams->words);
    if (!spellings || !unigrams->words) {
        lin_free(spellings);
        return lin_no_memory(err, b->name, n * sizeof *spellings);
    }
    int in_order = 1;
    for (size_t i = 0; i < n; i++) {
        spellings[i] = (spelling){words->text + words->items[i].offset, words->items[i].n, (uint32_t)i};
        if (i && by_bytes(&spellings[i - 1], &spellings[i]) > 0) in_order = 0;
    }
    if (!in_order) qsort(spellings, n, sizeof *spellings, by_bytes);
    for (size_t i = 0; i < n; i++) unigrams->words[spellings[i].word] = (uint32_t)i;
    lin_free(spellings);
    for (int k = 2; k <= b->order && !in_order; k++) {
        lin_ngram_table *table = &b->tables->tables[k];
        for (size_t i = 0; i < (size_t)table->count * (size_t)k; i++) table->words[i] = unigrams->words[table->words[i]];
    }
    return LIN_OK;
}

static int compare_words(const uint32_t *a, const uint32_t *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

// One stable counting pass by the word in a column: from one order of the rows to another.
static void count_sort(const lin_ngram_table *table, int k, int column, const uint32_t *from, uint32_t *to, uint32_t *places,
                       size_t n_words)
{
    memset(places, 0, (n_words + 1) * sizeof *places);
    for (size_t i = 0; i < table->count; i++) places[table->words[i * (size_t)k + (size_t)column] + 1]++;
    for (size_t w = 1; w <= n_words; w++) places[w] += places[w - 1];
    for (size_t i = 0; i < table->count; i++) {
        uint32_t row = from ? from[i] : (uint32_t)i;
        to[places[table->words[(size_t)row * (size_t)k + (size_t)column]]++] = row;
    }
}

static lin_status sort_level(builder *b, int k, lin_error *err)
{
    lin_ngram_table *table = &b->tables->tables[k];
    sorted *s = &b->levels[k];
    size_t n = table->count, n_words = b->tables->tables[1].count, width = (size_t)k;
    s->count = table->count;
    uint32_t *from = lin_alloc(n, sizeof *from), *to = lin_alloc(n, sizeof *to), *places = lin_alloc(n_words + 1, sizeof *places);
    s->words = lin_alloc(n * width, sizeof *s->words);
    if (k < b->order) s->first = lin_calloc(n + 1, sizeof *s->first);
    int short_of = !from || !to || !places || !s->words || (k < b->order && !s->first);
    int in_order = !short_of;
    for (size_t i = 1; i < n && in_order; i++)
        in_order = compare_words(table->words + (i - 1) * width, table->words + i * width, k) <= 0;
    if (in_order) {
        for (size_t i = 0; i < n; i++) from[i] = (uint32_t)i;
    } else if (!short_of) {
        for (int column = k - 1; column >= 0; column--) {
            count_sort(table, k, column, column == k - 1 ? NULL : from, to, places, n_words);
            uint32_t *swap = from;
            from = to;
            to = swap;
        }
    }
    lin_free(to);
    lin_free(places);
    s->source = from;
    if (short_of) return lin_no_memory(err, b->name, n * width * sizeof *s->words);
    for (size_t i = 0; i < n; i++) memcpy(s->words + i * width, table->words + from[i] * width, width * sizeof *s->words);
    lin_free(table->words);
    table->words = NULL;
    return LIN_OK;
}

static lin_status fault_at(builder *b, int k, size_t i, int twice, lin_error *err)
{
    *b->fault = (lin_ngram_fault){k, b->levels[k].source[i], twice};
    return lin_fail(err, LIN_FORMAT, "%s: an n-gram appears twice or has no context", b->name);
}

// Both orders are sorted, so one pass through them finds every context.
static lin_status find_contexts(builder *b, int k, lin_error *err)
{
    const sorted *s = &b->levels[k];
    sorted *contexts = &b->levels[k - 1];
    size_t width = (size_t)k, j = 0;
    for (size_t i = 0; i < s->count; i++) {
        const uint32_t *words = s->words + i * width;
        if (i && !compare_words(words - width, words, k)) return fault_at(b, k, i, 1, err);
        while (j < contexts->count && compare_words(contexts->words + j * (width - 1), words, k - 1) < 0)
            contexts->first[++j] = (uint32_t)i;
        if (j == contexts->count || compare_words(contexts->words + j * (width - 1), words, k - 1))
            return fault_at(b, k, i, 0, err);
    }
    while (j < contexts->count) contexts->first[++j] = s->count;
    return LIN_OK;
}

/* ---- code books ------------------------------------------------------------------------------------------------------------ */

typedef struct keyed {
    uint32_t key, index;
} keyed;

static uint32_t key_of(float value) // in the order of the numbers
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits ^ (bits >> 31 ? UINT32_MAX : (uint32_t)1 << 31);
}

static void radix_sort(keyed *items, keyed *other, size_t n)
{
    enum { BITS = 11, BUCKETS = 1 << BITS };
    for (unsigned shift = 0; shift < 32; shift += BITS) {
        size_t places[BUCKETS + 1] = {0};
        for (size_t i = 0; i < n; i++) places[(items[i].key >> shift) % BUCKETS + 1]++;
        for (size_t i = 1; i <= BUCKETS; i++) places[i] += places[i - 1];
        for (size_t i = 0; i < n; i++) other[places[(items[i].key >> shift) % BUCKETS]++] = items[i];
        memcpy(items, other, n * sizeof *items);
    }
}

// A code for each value: its index among the distinct values if these are few enough; otherwise the index of a bin of
// neighbouring values, which ends when it holds its share of the values or of their range, and whose value is their mean.
static lin_status make_book(builder *b, unsigned most_bits, const float *values, size_t n, float **book_out, uint16_t **codes_out,
                            unsigned *bits, lin_error *err)
{
    const size_t most = (size_t)1 << most_bits;
    keyed *items = lin_alloc(n, sizeof *items), *other = lin_alloc(n, sizeof *other);
    uint16_t *codes = *codes_out = lin_alloc(n, sizeof *codes);
    size_t distinct = 0, n_bins = 0;
    if (items && other && codes) {
        for (size_t i = 0; i < n; i++) items[i] = (keyed){key_of(values[i]), (uint32_t)i};
        radix_sort(items, other, n);
        for (size_t i = 0; i < n; i++) distinct += !i || items[i].key != items[i - 1].key;
    }
    *bits = distinct > most ? most_bits : width_of(distinct ? distinct - 1 : 0);
    float *book = *book_out = lin_calloc((size_t)1 << *bits, sizeof *book);
    lin_free(other);
    if (!items || !other || !codes || !book) {
        lin_free(items);
        return lin_no_memory(err, b->name, n * sizeof *items);
    }
    size_t share = distinct > most ? n / (most / 2) + 1 : 1;
    float range =
        distinct > most ? (values[items[n - 1].index] - values[items[0].index]) / (float)(most / 2 - 1) : 0;
    for (size_t i = 0; i < n; n_bins++) {
        size_t begin = i;
        double sum = 0, lowest = (double)values[items[i].index];
        for (; i < n; i++) {
            double value = (double)values[items[i].index];
            if (i > begin && items[i].key != items[i - 1].key && (i - begin >= share || value - lowest >= (double)range)) break;
            sum += value;
            codes[items[i].index] = (uint16_t)n_bins;
        }
        book[n_bins] = share == 1 ? values[items[begin].index] : (float)(sum / (double)(i - begin));
    }
    lin_free(items);
    return LIN_OK;
}

static int has_future(const builder *b, int k, size_t i)
{
    const sorted *s = &b->levels[k];
    const float zero = 0;
    return s->first[i + 1] > s->first[i] || b->tables->tables[k].backoff[s->source[i]] < zero ||
           b->tables->tables[k].backoff[s->source[i]] > zero;
}

// Limits a value to the file's range; zero is always positive.
static float within(float value, float most)
{
    if (!(value >= -LIN_NGRAM_LARGEST)) return -LIN_NGRAM_LARGEST;
    return value < most ? value + 0.0f : most;
}

static lin_status make_books(builder *b, int k, lin_error *err)
{
    sorted *s = &b->levels[k];
    const lin_ngram_table *table = &b->tables->tables[k];
    // Unigrams have 4 bits more: they are few, each is used often, and the -99 of <s> makes their bins wide.
    unsigned bits = b->tables->code_bits ? (unsigned)b->tables->code_bits : LIN_NGRAM_CODE_BITS;
    if (k == 1) bits = bits + 4 < LIN_NGRAM_CODE_BITS ? bits + 4 : LIN_NGRAM_CODE_BITS;
    float *values = lin_alloc(s->count, sizeof *values);
    if (!values) return lin_no_memory(err, b->name, s->count * sizeof *values);
    for (size_t i = 0; i < s->count; i++) values[i] = within(table->logp[s->source[i]], 0);
    lin_status status = make_book(b, bits, values, s->count, &s->logp_book, &s->logp, &s->logp_bits, err);
    if (status == LIN_OK && k < b->order) {
        for (size_t i = 0; i < s->count; i++)
            if (has_future(b, k, i)) values[s->inner++] = within(table->backoff[s->source[i]], LIN_NGRAM_LARGEST);
        status = make_book(b, bits, values, s->inner, &s->backoff_book, &s->backoff, &s->backoff_bits, err);
    }
    lin_free(values);
    return status;
}

/* ---- the block ------------------------------------------------------------------------------------------------------------- */

static void put_bits(unsigned char *base, uint64_t at, uint64_t value) // the bits must be 0 before
{
    uint64_t word;
    memcpy(&word, base + (at >> 3), sizeof word);
    word |= value << (at & 7);
    memcpy(base + (at >> 3), &word, sizeof word);
}

static void put_words(const builder *b, const lin_ngram *lm, unsigned char *block)
{
    const lin_symbols *words = &b->tables->words;
    size_t used = 0;
    for (size_t i = 0; i < lm->n_words; i++) {
        const lin_symbol *word = &words->items[b->levels[1].source[i]];
        uint32_t offset = (uint32_t)used;
        memcpy(block + lm->offsets_at + 4 * i, &offset, sizeof offset);
        memcpy(block + lm->text_at + used, words->text + word->offset, (size_t)word->n + 1);
        used += (size_t)word->n + 1;
    }
}

static void put_grams(const builder *b, int k, const lin_ngram *lm, unsigned char *block)
{
    const lin_ngram_level *level = &lm->levels[k];
    const sorted *s = &b->levels[k];
    memcpy(block + level->logp_at, s->logp_book, (size_t)4 << s->logp_bits);
    for (size_t i = 0; i < s->count; i++) {
        uint64_t word = k > 1 ? s->words[i * (size_t)k + (size_t)k - 1] : 0;
        put_bits(block + level->grams_at, i * level->gram_bits, word | (uint64_t)s->logp[i] << level->word_bits);
    }
}

static void put_inner(const builder *b, int k, const lin_ngram *lm, unsigned char *block)
{
    const lin_ngram_level *level = &lm->levels[k];
    const sorted *s = &b->levels[k];
    unsigned char *base = block + level->inner_at;
    uint64_t bits = 0;
    uint32_t inner = 0, before = 0;
    memcpy(block + level->backoff_at, s->backoff_book, (size_t)4 << s->backoff_bits);
    for (size_t i = 0; i < s->count; i++) {
        if (i % 64 == 0) before = inner;
        if (has_future(b, k, i)) {
            put_bits(base, (uint64_t)inner * level->inner_bits,
                               s->first[i] | (uint64_t)s->backoff[inner] << level->first_bits);
            bits |= (uint64_t)1 << (i % 64);
            inner++;
        }
        if (i % 64 == 63 || i + 1 == s->count) {
            memcpy(block + level->rank_at + i / 64 * 12, &before, 4);
            memcpy(block + level->rank_at + i / 64 * 12 + 4, &bits, 8);
            bits = 0;
        }
    }
    put_bits(base, (uint64_t)inner * level->inner_bits, lm->levels[k + 1].count);
}

// The state of the longest proper suffix of (context, word) that has one. It begins with the link of the context: a suffix longer
// than (that link, word) would need a longer context, which has no state and so no children.
static lin_ngram_state find_link(const lin_ngram *lm, int k, lin_ngram_state context, uint32_t word)
{
    lin_ngram_state state = context, found = 0;
    uint32_t place;
    for (int length = k - 1; state;) {
        state = lin_ngram_link(lm, length, state);
        if (!state) break;
        length = lin_ngram_state_level(lm, state);
        if (lin_ngram_child(lm, length, state, word, &place) && lin_ngram_is_inner(lm, length + 1, place, &found)) return found;
    }
    lin_ngram_is_inner(lm, 1, word, &found);
    return found;
}

static void put_links(const builder *b, int k, const lin_ngram *lm, unsigned char *block)
{
    const lin_ngram_level *level = &lm->levels[k];
    const sorted *s = &b->levels[k], *contexts = &b->levels[k - 1];
    lin_ngram_state state, context = 0;
    for (uint32_t j = 0; j < contexts->count; j++) {
        if (contexts->first[j] == contexts->first[j + 1]) continue;
        lin_ngram_is_inner(lm, k - 1, j, &context);
        for (uint32_t i = contexts->first[j]; i < contexts->first[j + 1]; i++) {
            if (!lin_ngram_is_inner(lm, k, i, &state)) continue;
            uint64_t at = (uint64_t)(state - level->first_state) * level->inner_bits + level->first_bits + level->backoff_bits;
            put_bits(block + level->inner_at, at,
                               find_link(lm, k, context, s->words[(size_t)i * (size_t)k + (size_t)k - 1]));
        }
    }
}

static lin_status make_block(builder *b, lin_ngram **out, lin_error *err)
{
    lin_ngram *lm = lin_calloc(1, sizeof *lm);
    if (!lm) return lin_no_memory(err, b->name, sizeof *lm);
    lm->order = b->order;
    const lin_symbols *words = &b->tables->words;
    for (int i = 0; i < words->n; i++) lm->text_bytes += (size_t)words->items[i].n + 1;
    for (int k = 1; k <= b->order; k++) {
        const sorted *s = &b->levels[k];
        lm->levels[k] =
            (lin_ngram_level){.count = s->count, .inner = s->inner, .logp_bits = s->logp_bits, .backoff_bits = s->backoff_bits};
    }
    lin_ngram_lay_out(lm);
    unsigned char *block = lin_calloc(lm->size, 1);
    if (!block) {
        lin_status status = lin_no_memory(err, b->name, lm->size);
        lin_free(lm);
        return status;
    }
    lm->bytes = block;
    put_words(b, lm, block);
    for (int k = 1; k <= b->order; k++) put_grams(b, k, lm, block);
    for (int k = 1; k < b->order; k++) put_inner(b, k, lm, block);
    for (int k = 2; k < b->order; k++) put_links(b, k, lm, block); // each order needs the orders below
    lin_ngram_seal(lm, block);
    lin_ngram_find_special(lm);
    *out = lm;
    return LIN_OK;
}

lin_status lin_ngram_build(lin_ngram_tables *tables, const char *name, lin_ngram **lm, lin_ngram_fault *fault, lin_error *err)
{
    builder b = {.tables = tables, .name = name, .order = tables->order, .fault = fault};
    *lm = NULL;
    *fault = (lin_ngram_fault){0};
    lin_status status = rank_words(&b, err);
    for (int k = 1; k <= b.order && status == LIN_OK; k++) {
        status = sort_level(&b, k, err);
        if (status == LIN_OK && k > 1) status = find_contexts(&b, k, err);
        if (status == LIN_OK && k > 1) status = make_books(&b, k - 1, err);
    }
    if (status == LIN_OK) status = make_books(&b, b.order, err);
    if (status == LIN_OK) status = make_block(&b, lm, err);
    for (int k = 1; k <= b.order; k++) level_free(&b.levels[k]);
    return status;
}
