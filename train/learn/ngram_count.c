// ngram_count.c - counts the n-grams of a text by sorting its positions; see ngram_count.h.

#include "train/learn/ngram_count.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/dictionary.h"

struct lin_ngram_counter {
    lin_ngram_count_options options;
    lin_symbols words; // in order of first appearance, after <s>, </s> and, if there is one, <unk>
    int unknown, closed;
    uint32_t *text; // the sentences in a row, each <s> ... </s>
    size_t n, capacity;
    uint64_t n_lines, n_unknown;
};

enum { BEGIN, END }; // <unk> comes next, if there is one

// Positions are 32 bits wide.
static const size_t most_words = UINT32_MAX - 64;

/* ---- text to numbers ------------------------------------------------------------------------------------------------------- */

static lin_status check_options(const lin_ngram_count_options *o, lin_error *err)
{
    if (o->order < 1 || o->order > LIN_NGRAM_MAX_ORDER) {
        return lin_fail(err, LIN_INVALID, "an order of %d is not in 1 .. %d", o->order, LIN_NGRAM_MAX_ORDER);
    }
    if (!o->unknown && o->minimum[0] > 1) {
        return lin_fail(err, LIN_INVALID, "rare words can only be left out of a model with <unk>");
    }
    for (int k = 3; k <= o->order; k++) {
        if (o->minimum[k - 1] < o->minimum[k - 2] && o->minimum[k - 2] > 1) {
            return lin_fail(err, LIN_INVALID, "the least count of %d-grams, %u, is below that of %d-grams, %u", k,
                            o->minimum[k - 1], k - 1, o->minimum[k - 2]);
        }
    }
    return LIN_OK;
}

lin_status lin_ngram_counter_create(const lin_ngram_count_options *options, lin_ngram_counter **counter, lin_error *err)
{
    *counter = NULL;
    LIN_TRY(check_options(options, err));
    lin_ngram_counter *c = lin_calloc(1, sizeof *c);
    if (!c) return lin_no_memory(err, "n-gram counts", sizeof *c);
    c->options = *options;
    c->unknown = -1;
    int index;
    lin_status status = lin_symbols_add(&c->words, "<s>", 3, &index, err);
    if (status == LIN_OK) status = lin_symbols_add(&c->words, "</s>", 4, &index, err);
    if (status == LIN_OK && options->unknown) status = lin_symbols_add(&c->words, "<unk>", 5, &c->unknown, err);
    if (status != LIN_OK) {
        lin_ngram_counter_destroy(c);
        return status;
    }
    *counter = c;
    return LIN_OK;
}

void lin_ngram_counter_destroy(lin_ngram_counter *counter)
{
    if (!counter) return;
    lin_symbols_free(&counter->words);
    lin_free(counter->text);
    lin_free(counter);
}

static int is_mark(const char *word, size_t n, const char *mark) { return n == strlen(mark) && !memcmp(word, mark, n); }

static int is_end_mark(const char *word, size_t n) { return is_mark(word, n, "<s>") || is_mark(word, n, "</s>"); }

static int is_unknown_mark(const char *word, size_t n) { return is_mark(word, n, "<unk>") || is_mark(word, n, "<UNK>"); }

static lin_status check_length(const char *word, size_t n, lin_error *err)
{
    char quoted[LIN_QUOTE];
    if (n <= LIN_WORD_MAX) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "the word '%s' has %zu bytes, over %d", lin_quote(quoted, word, n), n, LIN_WORD_MAX);
}

lin_status lin_ngram_check_line(const char *line, size_t n, lin_error *err)
{
    const char *at = line, *word;
    size_t n_word, bad = lin_text_find_control(line, n);
    if (n > LIN_NGRAM_LINE_MAX) {
        return lin_fail(err, LIN_FORMAT, "the line has %zu bytes, over %d; write one sentence per line", n, LIN_NGRAM_LINE_MAX);
    }
    if (bad < n)
        return lin_fail(err, LIN_FORMAT, "the line has a control character (%d) at byte %zu", (unsigned char)line[bad], bad + 1);
    while (lin_field_next(&at, line + n, &word, &n_word)) {
        if (is_end_mark(word, n_word)) {
            return lin_fail(err, LIN_FORMAT, "%.*s marks an end of a sentence and cannot be in one", (int)n_word, word);
        }
        LIN_TRY(check_length(word, n_word, err));
    }
    return LIN_OK;
}

lin_status lin_ngram_counter_word(lin_ngram_counter *c, const char *word, size_t n, lin_error *err)
{
    int index;
    char quoted[LIN_QUOTE];
    if (!n || lin_text_find_control(word, n) < n || memchr(word, ' ', n) || memchr(word, '\t', n)) {
        return lin_fail(err, LIN_FORMAT, "'%s' is not a word", lin_quote(quoted, word, n));
    }
    LIN_TRY(check_length(word, n, err));
    c->closed = 1;
    return is_end_mark(word, n) || is_unknown_mark(word, n) ? LIN_OK : lin_symbols_add(&c->words, word, n, &index, err);
}

lin_status lin_ngram_counter_vocabulary(lin_ngram_counter *c, const char *text, size_t n, const char *name, lin_error *err)
{
    lin_lines lines = {0};
    lin_status status = LIN_OK;
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const char *at = lines.text, *word;
        size_t n_word;
        if (!lin_field_next(&at, lines.text + lines.n, &word, &n_word)) continue;
        status = lin_ngram_counter_word(c, word, n_word, err);
        if (status != LIN_OK) lin_fail_at(err, status, "%s:%d", name, lines.number);
    }
    // An empty vocabulary would count as none: every word of the text would be known.
    if (status == LIN_OK && !c->closed) return lin_fail(err, LIN_FORMAT, "%s: the vocabulary has no word", name);
    return status;
}

static lin_status word_number(lin_ngram_counter *c, const char *word, size_t n, int *index, lin_error *err)
{
    char quoted[LIN_QUOTE];
    if (is_unknown_mark(word, n)) {
        *index = c->unknown;
    } else if (!c->closed) {
        return lin_symbols_add(&c->words, word, n, index, err);
    } else {
        *index = lin_symbols_find(&c->words, word, n);
        if (*index < 0) *index = c->unknown;
    }
    if (*index >= 0) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "the word '%s' is not in the vocabulary, and the model has no <unk>",
                    lin_quote(quoted, word, n));
}

static lin_status grow_text(lin_ngram_counter *c, size_t n, lin_error *err)
{
    if (n <= c->capacity) return LIN_OK;
    if (n > most_words) return lin_fail(err, LIN_UNSUPPORTED, "the text has over %zu words", most_words);
    return lin_grow(&c->text, &c->capacity, n, sizeof *c->text, "the words of the text", err);
}

lin_status lin_ngram_counter_line(lin_ngram_counter *c, const char *line, size_t n, lin_error *err)
{
    const char *at = line, *word;
    size_t n_word, old = c->n;
    uint64_t unknown = 0;
    lin_status status = lin_ngram_check_line(line, n, err);
    if (status == LIN_OK) status = grow_text(c, c->n + n / 2 + 3 + LIN_NGRAM_MAX_ORDER, err); // no line adds more words than this
    if (status != LIN_OK) return status;
    if (!c->n) { // padding, so that looking back from the first sentence stays inside the text
        while (c->n < (size_t)c->options.order) c->text[c->n++] = BEGIN;
        old = c->n;
    }
    c->text[c->n++] = BEGIN;
    while (status == LIN_OK && lin_field_next(&at, line + n, &word, &n_word)) {
        int index = 0;
        status = word_number(c, word, n_word, &index, err);
        c->text[c->n++] = (uint32_t)index;
        unknown += index == c->unknown;
    }
    if (status != LIN_OK) {
        c->n = old; // new words of the line stay in the list until they are dropped at the end
        return status;
    }
    c->text[c->n++] = END;
    c->n_lines++;
    c->n_unknown += unknown;
    return LIN_OK;
}

/* ---- numbers in the order of spelling -------------------------------------------------------------------------------------- */

typedef struct spelled {
    const char *text;
    uint32_t old;
} spelled;

static int by_spelling(const void *a, const void *b) { return strcmp(((const spelled *)a)->text, ((const spelled *)b)->text); }

enum { NOWHERE = -1 };

// Lists the words that are frequent enough, or in a closed vocabulary, in the order of their bytes.
static size_t choose_words(const lin_ngram_counter *c, const uint64_t *uses, spelled *list)
{
    uint32_t minimum = c->options.minimum[0] > 1 ? c->options.minimum[0] : 1;
    size_t n = 0;
    for (int i = 0; i < c->words.n; i++) {
        int always = i <= END || i == c->unknown || (c->closed && minimum == 1);
        if (always || uses[i] >= minimum) list[n++] = (spelled){lin_symbols_text(&c->words, i), (uint32_t)i};
    }
    qsort(list, n, sizeof *list, by_spelling);
    return n;
}

// Rewrites the text with the chosen words' numbers; other words become <unk>, or occur only in lines that were left out.
static lin_status change_numbers(lin_ngram_counter *c, const uint64_t *uses, const spelled *list, size_t n, int32_t *number,
                                 lin_ngram_counts *counts, lin_error *err)
{
    int index;
    lin_status status = lin_symbols_reserve(&counts->words, (int)n, c->words.text_used, err);
    for (int i = 0; i < c->words.n; i++) number[i] = NOWHERE;
    for (size_t i = 0; status == LIN_OK && i < n; i++) {
        status = lin_symbols_add(&counts->words, list[i].text, strlen(list[i].text), &index, err);
        number[list[i].old] = (int32_t)i;
    }
    if (status != LIN_OK) return status;
    counts->begin = number[BEGIN];
    counts->end = number[END];
    counts->unknown = c->unknown < 0 ? -1 : number[c->unknown];
    for (int i = 0; i < c->words.n; i++) {
        if (number[i] != NOWHERE) continue;
        counts->n_unknown += uses[i];
        number[i] = counts->unknown;
    }
    for (size_t i = 0; i < c->n; i++) c->text[i] = (uint32_t)number[c->text[i]];
    return LIN_OK;
}

static lin_status renumber(lin_ngram_counter *c, lin_ngram_counts *counts, lin_error *err)
{
    size_t n_old = (size_t)c->words.n;
    uint64_t *uses = lin_calloc(n_old, sizeof *uses);
    int32_t *number = lin_alloc(n_old, sizeof *number);
    spelled *list = lin_alloc(n_old, sizeof *list);
    lin_status status = uses && number && list ? LIN_OK : lin_no_memory(err, "words", n_old * 28);
    if (status == LIN_OK) {
        for (size_t i = 0; i < c->n; i++) uses[c->text[i]]++;
        status = change_numbers(c, uses, list, choose_words(c, uses, list), number, counts, err);
    }
    lin_free(uses);
    lin_free(number);
    lin_free(list);
    return status;
}

/* ---- sorted positions ------------------------------------------------------------------------------------------------------ */

typedef struct counting {
    const uint32_t *text;
    uint32_t *at, *spare; // positions that end an n-gram: all but those of <s>
    uint8_t *shared;      // number of words that position i of the sorted list shares with the one before, `order` at most
    uint32_t *bins;       // [n_words + 1]
    size_t n, n_words;
    int order;
    uint32_t begin;
    int occurrences;
    const uint32_t *minimum;
} counting;

// Sorts items, each a position or where `position` is given the number of one, by the word `back` words before it. Stable.
static void sort_by_word(const counting *c, const uint32_t *position, uint32_t back, const uint32_t *items, uint32_t *sorted,
                         size_t n)
{
    uint32_t *bins = c->bins;
    memset(bins, 0, (c->n_words + 1) * sizeof *bins);
    for (size_t i = 0; i < n; i++) bins[c->text[(position ? position[items[i]] : items[i]) - back] + 1]++;
    for (size_t w = 0; w < c->n_words; w++) bins[w + 1] += bins[w];
    for (size_t i = 0; i < n; i++) sorted[bins[c->text[(position ? position[items[i]] : items[i]) - back]]++] = items[i];
}

static void swap(uint32_t **a, uint32_t **b)
{
    uint32_t *other = *a;
    *a = *b;
    *b = other;
}

// Number of equal words at a and b, looking back, `order` at most. It may look beyond <s>: no n-gram does.
static int in_common(const counting *c, uint32_t a, uint32_t b)
{
    int n = 0;
    while (n < c->order && c->text[a - (uint32_t)n] == c->text[b - (uint32_t)n]) n++;
    return n;
}

// Number of words of the sentence up to the position, <s> included, `order` at most.
static int depth(const counting *c, uint32_t at)
{
    int n = 1;
    while (n < c->order && c->text[at - (uint32_t)(n - 1)] != c->begin) n++;
    return n;
}

// Sorts the positions by their last `order` words, the last word first, and counts the distinct n-grams of each order.
static void sort_positions(counting *c, size_t distinct[LIN_NGRAM_MAX_ORDER])
{
    for (int back = c->order - 1; back >= 0; back--) {
        sort_by_word(c, NULL, (uint32_t)back, c->at, c->spare, c->n);
        swap(&c->at, &c->spare);
    }
    for (size_t i = 0; i < c->n; i++) {
        int same = i ? in_common(c, c->at[i - 1], c->at[i]) : 0;
        c->shared[i] = (uint8_t)same;
        for (int k = same, end = depth(c, c->at[i]); k < end; k++) distinct[k]++;
    }
}

// One pass over the sorted positions fills every order: an n-gram is a run of them, and its extensions to the left are runs
// within that run. Until then words[i] is the position of the last word.
static void walk(const counting *c, lin_ngram_counted *levels)
{
    uint32_t next[LIN_NGRAM_MAX_ORDER] = {0}, now[LIN_NGRAM_MAX_ORDER] = {0}, times[LIN_NGRAM_MAX_ORDER] = {0};
    for (size_t i = 0; i <= c->n; i++) {
        int same = i < c->n ? c->shared[i] : 0, end = i < c->n ? depth(c, c->at[i]) : 0;
        for (int k = same; k < c->order; k++) { // their runs end here
            lin_ngram_counted *level = &levels[k];
            if (!times[k]) continue;
            uint32_t first = c->text[level->words[now[k]] - (uint32_t)k];
            if (c->occurrences || k == c->order - 1 || first == c->begin) level->count[now[k]] = times[k];
            level->kept[now[k]] = times[k] >= c->minimum[k];
            times[k] = 0;
        }
        for (int k = same; k < end; k++) { // new ones begin
            now[k] = k ? next[k]++ : c->text[c->at[i]]; // the index of a unigram is its word's number
            levels[k].words[now[k]] = c->at[i];
            levels[k].suffix[now[k]] = k ? now[k - 1] : 0;
            if (k) levels[k - 1].count[now[k - 1]]++;
        }
        for (int k = 0; k < end; k++) times[k]++;
    }
}

/* ---- n-grams in the order of their first words ----------------------------------------------------------------------------- */

static lin_status create_level(lin_ngram_counted *level, size_t n, int order, lin_error *err)
{
    level->n = n;
    level->words = lin_calloc(n * (size_t)order, sizeof *level->words);
    level->count = lin_calloc(n, sizeof *level->count);
    level->suffix = lin_calloc(n, sizeof *level->suffix);
    level->kept = lin_calloc(n, sizeof *level->kept);
    if (level->words && level->count && level->suffix && level->kept) return LIN_OK;
    return lin_no_memory(err, "n-grams", n * ((size_t)order * 4 + 9));
}

static void free_level(lin_ngram_counted *level)
{
    lin_free(level->words);
    lin_free(level->count);
    lin_free(level->suffix);
    lin_free(level->kept);
    *level = (lin_ngram_counted){0};
}

// Sorts the n-grams by their first words; the pass leaves them sorted by their last. *rank: the new index of each n-gram of the
// order below (NULL: unchanged); on return, of this order.
static lin_status arrange(const counting *c, lin_ngram_counted *level, int order, uint32_t **rank, lin_error *err)
{
    size_t n = level->n;
    lin_ngram_counted old = *level;
    *level = (lin_ngram_counted){0};
    uint32_t *items = lin_alloc(n, sizeof *items), *sorted = lin_alloc(n, sizeof *sorted);
    lin_status status = items && sorted ? LIN_OK : lin_no_memory(err, "n-grams", n * 8);
    if (status == LIN_OK) status = create_level(level, n, order, err);
    for (size_t i = 0; status == LIN_OK && i < n; i++) items[i] = (uint32_t)i;
    for (int back = 1; status == LIN_OK && back < order; back++) {
        sort_by_word(c, old.words, (uint32_t)back, items, sorted, n);
        swap(&items, &sorted);
    }
    for (size_t i = 0; status == LIN_OK && i < n; i++) {
        uint32_t from = items[i];
        memcpy(level->words + i * (size_t)order, c->text + (old.words[from] + 1 - (uint32_t)order),
               (size_t)order * sizeof *c->text);
        level->count[i] = old.count[from];
        level->suffix[i] = *rank ? (*rank)[old.suffix[from]] : old.suffix[from];
        level->kept[i] = old.kept[from];
        sorted[from] = (uint32_t)i;
    }
    free_level(&old);
    lin_free(items);
    lin_free(*rank);
    *rank = sorted;
    return status;
}

static lin_status arrange_all(const counting *c, lin_ngram_counts *counts, lin_error *err)
{
    uint32_t *rank = NULL;
    lin_status status = LIN_OK;
    for (size_t i = 0; i < counts->level[0].n; i++) {
        counts->level[0].words[i] = (uint32_t)i;
        counts->level[0].kept[i] = 1;
    }
    for (int k = 2; status == LIN_OK && k <= counts->order; k++) status = arrange(c, &counts->level[k - 1], k, &rank, err);
    lin_free(rank);
    return status;
}

static lin_status count(lin_ngram_counter *source, counting *c, lin_ngram_counts *counts, lin_error *err)
{
    size_t distinct[LIN_NGRAM_MAX_ORDER] = {0}, n_text = source->n;
    c->at = lin_alloc(n_text, sizeof *c->at);
    c->spare = lin_alloc(n_text, sizeof *c->spare);
    c->shared = lin_alloc(n_text, 1);
    c->bins = lin_alloc(c->n_words + 1, sizeof *c->bins);
    if (!c->at || !c->spare || !c->shared || !c->bins) return lin_no_memory(err, "n-gram counts", n_text * 9 + 4 * c->n_words);
    for (size_t i = (size_t)c->order; i < n_text; i++) {
        if (c->text[i] != c->begin) c->at[c->n++] = (uint32_t)i;
    }
    sort_positions(c, distinct);
    lin_free(c->spare);
    c->spare = NULL;
    counts->order = 1;
    lin_status status = create_level(&counts->level[0], c->n_words, 1, err);
    for (int k = 2; status == LIN_OK && k <= c->order && distinct[k - 1]; k++) {
        status = create_level(&counts->level[k - 1], distinct[k - 1], 1, err);
        counts->order = k;
    }
    if (status != LIN_OK) return status;
    walk(c, counts->level);
    counts->n_words = c->n - counts->n_lines;
    return arrange_all(c, counts, err);
}

lin_status lin_ngram_counter_finish(lin_ngram_counter *counter, lin_ngram_counts *counts, lin_error *err)
{
    *counts = (lin_ngram_counts){.n_lines = counter->n_lines, .n_unknown = counter->n_unknown};
    if (counter->n <= (size_t)counter->options.order + 2 * counter->n_lines) {
        return lin_fail(err, LIN_FORMAT, "the text has no word");
    }
    lin_status status = renumber(counter, counts, err);
    counting c = {.text = counter->text,
                  .n_words = (size_t)counts->words.n,
                  .order = counter->options.order,
                  .begin = (uint32_t)counts->begin,
                  .occurrences = counter->options.occurrences,
                  .minimum = counter->options.minimum};
    if (status == LIN_OK) status = count(counter, &c, counts, err);
    lin_free(c.at);
    lin_free(c.spare);
    lin_free(c.shared);
    lin_free(c.bins);
    if (status != LIN_OK) lin_ngram_counts_free(counts);
    return status;
}

void lin_ngram_counts_free(lin_ngram_counts *counts)
{
    for (int k = 0; k < LIN_NGRAM_MAX_ORDER; k++) free_level(&counts->level[k]);
    lin_symbols_free(&counts->words);
    *counts = (lin_ngram_counts){0};
}
