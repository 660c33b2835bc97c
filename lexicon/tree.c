// tree.c - building the tree, looking words up in it, and its packed file, which is checked whole before it is used; see tree.h.

#include "lexicon/tree.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"

// While a tree is built: lm_word of a word that was added and that the language model lacks.
enum { ADDED = LIN_NGRAM_UNKNOWN - 1 };

// While a tree is built: a pronunciation that is kept, and the range of sorted ones that pass through a node.
typedef struct item {
    const int *labels;
    int n_labels;
    float logp;
    lin_tree_end end;
} item;

typedef struct range {
    int from, to;
} range;

static int compare(const void *a, const void *b)
{
    const item *x = a, *y = b;
    const int n = x->n_labels < y->n_labels ? x->n_labels : y->n_labels;
    for (int i = 0; i < n; i++) {
        if (x->labels[i] != y->labels[i]) return x->labels[i] < y->labels[i] ? -1 : 1;
    }
    if (x->n_labels != y->n_labels) return x->n_labels < y->n_labels ? -1 : 1;
    return (x->end.word > y->end.word) - (x->end.word < y->end.word);
}

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

static size_t folded(char out[LIN_WORD_MAX + 1], const char *word, size_t n, int upper)
{
    if (n > LIN_WORD_MAX) n = LIN_WORD_MAX;
    n = lin_unicode_lower_text(out, word, n);
    for (size_t i = 0; upper && i < n; i++) out[i] = lin_upper(out[i]);
    out[n] = '\0';
    return n;
}

// The language model's word for a spelling, in lower or upper case.
static int find_lm_word(const lin_ngram *lm, const char *lower, size_t n)
{
    char upper[LIN_WORD_MAX + 1];
    if (!lm) return LIN_NGRAM_UNKNOWN;
    const int word = lin_ngram_find(lm, lower, n);
    if (word >= 0) return word;
    n = folded(upper, lower, n, 1);
    return lin_ngram_find(lm, upper, n);
}

static lin_status check_entry(const lin_tree_entry *e, int n_outputs, lin_error *err)
{
    char shown[LIN_QUOTE];
    const size_t n = strlen(e->word);
    if (!n || n > LIN_WORD_MAX || e->n_labels < 1 || e->n_labels > LIN_PRONUNCIATION_MAX)
        return lin_fail(err, LIN_INVALID, "the word '%s' has %d phones and %zu bytes; both from 1 to %d",
                        lin_quote(shown, e->word, n), e->n_labels, n, LIN_WORD_MAX);
    for (int i = 0; i < e->n_labels; i++) {
        if (e->labels[i] >= 1 && e->labels[i] < n_outputs) continue;
        return lin_fail(err, LIN_INVALID, "the word '%s' has phone %d; there are 1 to %d", lin_quote(shown, e->word, n),
                        e->labels[i], n_outputs - 1);
    }
    return LIN_OK;
}

// An added word counts as <unk> if the language model lacks it or finds it rarer than that.
static int counts_as_added(const lin_tree_entry *e, const lin_ngram *lm, int lm_word)
{
    if (!e->added || lm_word < 0) return e->added;
    return lin_ngram_unigram(lm, lm_word) < lin_ngram_unigram(lm, LIN_NGRAM_UNKNOWN);
}

// Makes unsorted items of the entries that are kept.
static lin_status take_entries(lin_tree *t, const lin_tree_entry *entries, int n, const lin_ngram *lm, int all_words, item *items,
                               lin_error *err)
{
    char lower[LIN_WORD_MAX + 1];
    const char *previous = NULL;
    int lm_word = LIN_NGRAM_UNKNOWN;
    for (const lin_tree_entry *e = entries; e < entries + n; e++) {
        LIN_TRY(check_entry(e, t->n_outputs, err));
        const size_t length = folded(lower, e->word, strlen(e->word), 0);
        const int again = previous && !strcmp(previous, e->word);
        if (!again) lm_word = find_lm_word(lm, lower, length);
        previous = e->word;
        if (lm && lm_word < 0 && !all_words && !e->added) {
            if (!again && !t->n_left_out++) memcpy(t->first_left_out, lower, length + 1);
            continue;
        }
        item *to = &items[t->n_ends++];
        *to = (item){e->labels, e->n_labels, e->logp, {0, counts_as_added(e, lm, lm_word) ? ADDED : lm_word}};
        LIN_TRY(lin_symbols_add(&t->words, lower, length, &to->end.word, err));
    }
    if (n && !t->n_ends)
        return lin_fail(err, LIN_MISMATCH, "none of the lexicon's words (for example '%s') is in the language model",
                        t->first_left_out);
    return LIN_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------------------------------------- */

// Breadth first: the children of a node are the runs of one label at its depth among the sorted items that pass through it.
static int build(lin_tree *t, const item *items, range *through, int *next_end)
{
    int n = 1, depth = 0, level_end = 1;
    through[0] = (range){0, t->n_ends};
    *next_end = 0;
    t->nodes[0] = (lin_tree_node){0};
    for (int i = 0; i < n; i++) {
        if (i == level_end) {
            depth++;
            level_end = n;
        }
        int at = through[i].from;
        const int to = through[i].to;
        t->nodes[i].child = (uint32_t)n;
        t->nodes[i].end = (uint32_t)*next_end;
        for (; at < to && items[at].n_labels == depth; at++) {
            if (t->logps) t->logps[*next_end] = items[at].logp;
            t->ends[(*next_end)++] = items[at].end;
        }
        while (at < to) {
            const int from = at, label = items[at].labels[depth];
            while (at < to && items[at].labels[depth] == label) at++;
            through[n] = (range){from, at};
            t->nodes[n++].label = label;
        }
    }
    return n;
}

// Counts the nodes of the tree of sorted items: each item adds its nodes after the prefix shared with the item before.
static size_t count_nodes(const item *items, int n)
{
    size_t nodes = 1;
    for (int i = 0; i < n; i++) {
        int shared = 0;
        while (i && shared < items[i].n_labels && shared < items[i - 1].n_labels &&
               items[i].labels[shared] == items[i - 1].labels[shared])
            shared++;
        nodes += (size_t)(items[i].n_labels - shared);
    }
    return nodes;
}

static lin_status make_nodes(lin_tree *t, item *items, lin_error *err)
{
    qsort(items, (size_t)t->n_ends, sizeof *items, compare);
    const size_t n = count_nodes(items, t->n_ends), bytes = (n + 1) * sizeof *t->nodes + n * sizeof(range);
    if (n >= INT_MAX / 2) return lin_fail(err, LIN_INVALID, "the lexicon has too many phones");
    int n_ends, with_logps = 0;
    for (int i = 0; i < t->n_ends; i++) with_logps |= items[i].logp < 0;
    t->nodes = lin_alloc(n + 1, sizeof *t->nodes);
    t->ends = lin_alloc((size_t)t->n_ends, sizeof *t->ends);
    if (with_logps) t->logps = lin_alloc((size_t)t->n_ends, sizeof *t->logps);
    range *through = lin_alloc(n, sizeof *through);
    if (!t->nodes || !t->ends || !through || (with_logps && !t->logps)) {
        lin_free(through);
        return lin_no_memory(err, "a lexicon's tree", bytes);
    }
    t->n_nodes = build(t, items, through, &n_ends);
    assert((size_t)t->n_nodes == n && n_ends == t->n_ends); // as many as were counted, so the arrays are full
    t->nodes[t->n_nodes] = (lin_tree_node){.child = (uint32_t)t->n_nodes, .end = (uint32_t)n_ends};
    lin_free(through);
    return LIN_OK;
}

// Best unigram at or below each node; children have higher numbers. A word outside the language model counts as its rarest: such
// words may be most of the lexicon, and a search would follow them all. An added word counts as <unk>, as which it is scored at
// its end: otherwise it would be pruned before.
static void look_ahead(lin_tree *t, const lin_ngram *lm)
{
    float rarest = 0;
    const float unknown = lm ? lin_ngram_unigram(lm, LIN_NGRAM_UNKNOWN) : 0;
    for (int i = 0; lm && i < t->n_ends; i++) {
        if (t->ends[i].lm_word < 0) continue;
        const float unigram = lin_ngram_unigram(lm, t->ends[i].lm_word);
        if (unigram < rarest) rarest = unigram;
    }
    for (int i = t->n_nodes; i-- > 0;) {
        const lin_tree_node *node = &t->nodes[i];
        float best = lm ? rarest : 0;
        for (uint32_t e = node->end; lm && e < node[1].end; e++) {
            if (t->ends[e].lm_word == LIN_NGRAM_UNKNOWN) continue;
            const float unigram = t->ends[e].lm_word == ADDED ? unknown : lin_ngram_unigram(lm, t->ends[e].lm_word);
            if (unigram > best) best = unigram;
        }
        for (uint32_t c = node->child; c < node[1].child; c++) {
            if (t->nodes[c].ahead > best) best = t->nodes[c].ahead;
        }
        t->nodes[i].ahead = best;
    }
    for (int i = 0; i < t->n_ends; i++)
        if (t->ends[i].lm_word == ADDED) t->ends[i].lm_word = LIN_NGRAM_UNKNOWN;
}

// Over 32-bit pieces where possible. The pairs depend on the language model only.
static uint64_t fingerprint(const lin_tree *t)
{
    uint64_t h = LIN_FNV_START;
    const uint32_t *piece = (const uint32_t *)(const void *)t->nodes;
    for (size_t i = 0; i < ((size_t)t->n_nodes + 1) * (sizeof *t->nodes / 4); i++) h = lin_fnv_step(h, piece[i]);
    for (int i = 0; i < t->n_ends; i++) {
        h = lin_fnv_step(h, (uint32_t)t->ends[i].word);
        h = lin_fnv_step(h, (uint32_t)t->ends[i].lm_word);
    }
    if (t->logps) h = lin_fnv(h, t->logps, (size_t)t->n_ends * sizeof *t->logps);
    return lin_fnv(h, t->words.text, t->words.text_used) ^ t->lm_fingerprint;
}

static lin_status fill(lin_tree *t, const lin_tree_entry *entries, int n, const lin_ngram *lm, int all_words, lin_error *err)
{
    size_t letters = 0;
    for (int i = 0; i < n; i++) letters += strlen(entries[i].word) + 1;
    item *items = lin_alloc((size_t)n, sizeof *items);
    if (!items) return lin_no_memory(err, "a lexicon's tree", (size_t)n * sizeof *items);
    lin_status status = lin_symbols_reserve(&t->words, n, letters, err);
    if (status == LIN_OK) status = take_entries(t, entries, n, lm, all_words, items, err);
    if (status == LIN_OK) status = make_nodes(t, items, err);
    lin_free(items);
    if (status != LIN_OK) return status;
    look_ahead(t, lm);
    if (lm) LIN_TRY(lin_ngram_pairs_create(lm, &t->pairs, err));
    t->fingerprint = fingerprint(t);
    return LIN_OK;
}

lin_status lin_tree_create_list(const lin_tree_entry *entries, int n, int n_outputs, const lin_ngram *lm, int all_words,
                                lin_tree **tree, lin_error *err)
{
    *tree = NULL;
    if (n < 0 || n_outputs < 2) return lin_fail(err, LIN_INVALID, "a lexicon of %d entries over %d outputs", n, n_outputs);
    lin_tree *t = lin_calloc(1, sizeof *t);
    if (!t) return lin_no_memory(err, "a lexicon's tree", sizeof *t);
    t->n_outputs = n_outputs;
    t->lm_fingerprint = lm ? lin_ngram_fingerprint(lm) : 0;
    lin_status status = fill(t, entries, n, lm, all_words, err);
    if (status != LIN_OK) lin_tree_destroy(t);
    else *tree = t;
    return status;
}

lin_status lin_tree_create(const lin_dictionary *dictionary, const lin_phones *phones, const lin_ngram *lm, int all_words,
                           lin_tree **tree, lin_error *err)
{
    lin_tree_entry *entries = NULL;
    int n = 0, capacity = 0;
    lin_status status = LIN_OK;
    *tree = NULL;
    for (int i = 0; i < lin_dictionary_count(dictionary); i++) {
        const char *word = lin_dictionary_word(dictionary, i);
        lin_tree_entry e = {.word = word, .added = lin_dictionary_is_added(dictionary, i)};
        for (int k = 0; (e.n_labels = lin_dictionary_find(dictionary, word, strlen(word), k, &e.labels)) > 0; k++) {
            e.logp = (float)lin_dictionary_logp(dictionary, word, strlen(word), k);
            if (status == LIN_OK) status = lin_grow_int(&entries, &capacity, (int64_t)n + 1, sizeof *entries, "a lexicon", err);
            if (status == LIN_OK) entries[n++] = e;
        }
    }
    if (status == LIN_OK) status = lin_tree_create_list(entries, n, lin_phones_count(phones), lm, all_words, tree, err);
    lin_free(entries);
    return status;
}

void lin_tree_destroy(lin_tree *t)
{
    if (!t) return;
    if (t->map.bytes) {
        lin_file_map_close(&t->map);
    } else {
        lin_symbols_free(&t->words);
        lin_free(t->nodes);
        lin_free(t->ends);
        lin_free(t->logps);
        lin_free(t->pairs.bits);
    }
    lin_free(t);
}

const char *lin_tree_word(const lin_tree *t, int word)
{
    return word >= 0 && word < t->words.n ? lin_symbols_text(&t->words, word) : NULL;
}

int lin_tree_find(const lin_tree *t, const char *word, size_t n)
{
    char lower[LIN_WORD_MAX + 1];
    if (n > LIN_WORD_MAX) return -1;
    return lin_symbols_find(&t->words, lower, folded(lower, word, n, 0));
}

/* ---- the packed file ------------------------------------------------------------------------------------------------------- */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "trees are mapped from little-endian files");
_Static_assert(sizeof(lin_symbol) == 16 && sizeof(lin_tree_node) == 16 && sizeof(lin_tree_end) == 8, "as in the file");

enum { SECTIONS = 7 };
#define LOWEST (-1e4f) // natural logarithm, below those of n-grams and of probabilities above 0 in double precision

static size_t round_up(size_t n) { return (n + 63) / 64 * 64; }

// Bytes and offsets of the sections; the last offset is the size of the file.
static void lay_out(const lin_tree_header *h, size_t sizes[SECTIONS], size_t at[SECTIONS + 1])
{
    const size_t all[SECTIONS] = {((size_t)h->n_nodes + 1) * sizeof(lin_tree_node), (size_t)h->n_ends * sizeof(lin_tree_end),
                                  (size_t)h->n_words * sizeof(lin_symbol),         (size_t)h->n_slots * sizeof(int32_t),
                                  h->text_used,                                    (size_t)h->n_pairs * sizeof(uint64_t),
                                  h->n_logps * sizeof(float)};
    at[0] = round_up(sizeof *h);
    for (int i = 0; i < SECTIONS; i++) {
        sizes[i] = all[i];
        at[i + 1] = at[i] + round_up(all[i]);
    }
}

uint64_t lin_tree_sum(const unsigned char *bytes, size_t n)
{
    return lin_hash(bytes, offsetof(lin_tree_header, sum),
                    lin_hash(bytes + sizeof(lin_tree_header), n - sizeof(lin_tree_header), 0));
}

lin_status lin_tree_write(const lin_tree *t, uint64_t key, const char *path, lin_error *err)
{
    lin_tree_header h = {.magic = LIN_TREE_MAGIC,
                         .version = LIN_TREE_VERSION,
                         .n_outputs = (uint32_t)t->n_outputs,
                         .n_nodes = (uint32_t)t->n_nodes,
                         .n_ends = (uint32_t)t->n_ends,
                         .n_words = (uint32_t)t->words.n,
                         .n_slots = (uint32_t)t->words.n_slots,
                         .n_left_out = (uint32_t)t->n_left_out,
                         .n_pairs = (uint32_t)t->pairs.n,
                         .text_used = t->words.text_used,
                         .lm_fingerprint = t->lm_fingerprint,
                         .n_logps = t->logps ? (uint64_t)t->n_ends : 0,
                         .fingerprint = t->fingerprint,
                         .key = key};
    const void *sections[SECTIONS] = {t->nodes, t->ends, t->words.items, t->words.slots, t->words.text, t->pairs.bits, t->logps};
    size_t sizes[SECTIONS], at[SECTIONS + 1];
    lay_out(&h, sizes, at);
    h.size = at[SECTIONS];
    memcpy(h.first_left_out, t->first_left_out, sizeof h.first_left_out);
    unsigned char *block = lin_calloc(h.size, 1);
    if (!block) return lin_no_memory(err, path, h.size);
    memcpy(block, &h, sizeof h);
    for (int i = 0; i < SECTIONS; i++)
        if (sizes[i]) memcpy(block + at[i], sections[i], sizes[i]);
    h.sum = lin_tree_sum(block, h.size);
    memcpy(block, &h, sizeof h);
    const lin_status status = lin_file_write_all(path, block, h.size, err);
    lin_free(block);
    return status;
}

// Children and ends of a node follow those of the node before it, and a child comes after its parent: no walk leaves the arrays,
// and every walk ends. No word ends at the root, and none is longer than a pronunciation may be.
static int good_nodes(const lin_tree *t)
{
    const lin_tree_node *nodes = t->nodes;
    int good = nodes[0].child == 1 && nodes[0].end == 0 && nodes[1].end == 0 && nodes[t->n_nodes].child == (uint32_t)t->n_nodes &&
               nodes[t->n_nodes].end == (uint32_t)t->n_ends;
    for (int i = 0; i < t->n_nodes; i++)
        good &= nodes[i + 1].child >= nodes[i].child && nodes[i + 1].end >= nodes[i].end && nodes[i].child > (uint32_t)i &&
                nodes[i].ahead <= 0 && nodes[i].ahead >= LOWEST &&
                (i ? nodes[i].label >= 1 && nodes[i].label < t->n_outputs : nodes[i].label == 0);
    if (!good) return 0;
    for (int i = 0; i < t->n_nodes; i++) // the children of one node have different labels, in order
        for (uint32_t c = nodes[i].child + 1; c < nodes[i + 1].child; c++) good &= nodes[c].label > nodes[c - 1].label;
    uint32_t begin = 0, end = 1, depth = 0;
    while (end < (uint32_t)t->n_nodes && depth <= LIN_PRONUNCIATION_MAX) { // nodes of one depth follow each other
        const uint32_t next = nodes[end].child;
        begin = end;
        end = next;
        depth++;
        if (end <= begin) return 0;
    }
    return good && depth <= LIN_PRONUNCIATION_MAX;
}

static int good_words(const lin_tree *t, int lm_words)
{
    const lin_symbols *s = &t->words;
    int good = 1, empty = 0;
    for (int i = 0; i < t->n_ends; i++)
        good &= t->ends[i].word >= 0 && t->ends[i].word < s->n && t->ends[i].lm_word >= LIN_NGRAM_UNKNOWN &&
                t->ends[i].lm_word < lm_words;
    for (int i = 0; t->logps && i < t->n_ends; i++) good &= t->logps[i] <= 0 && t->logps[i] >= LOWEST;
    for (int i = 0; i < s->n; i++)
        good &= s->items[i].offset < s->text_used && s->items[i].n >= 1 && s->items[i].n <= LIN_WORD_MAX &&
                s->items[i].n < s->text_used - s->items[i].offset;
    for (int i = 0; i < s->n && good; i++) good &= !s->text[s->items[i].offset + s->items[i].n];
    for (size_t i = 0; i < s->n_slots; i++) {
        good &= s->slots[i] >= -1 && s->slots[i] < s->n;
        empty += s->slots[i] < 0;
    }
    return good && (empty > 0 || s->n_slots == 0); // a search in the table ends at an empty slot
}

// 0: not a tree that this program can use with so many outputs and this language model. A forged file can have the right
// checksum, so every number is checked against what it is used with.
static int attach(lin_tree *t, const lin_tree_header *h, int n_outputs, const lin_ngram *lm)
{
    size_t sizes[SECTIONS], at[SECTIONS + 1];
    if (h->n_outputs != (uint32_t)n_outputs || h->lm_fingerprint != (lm ? lin_ngram_fingerprint(lm) : 0) ||
        h->n_pairs != (lm ? lin_ngram_pairs_size(lm) : 0))
        return 0;
    if (h->n_nodes < 1 || h->n_nodes > INT_MAX / 2 || h->n_ends > INT_MAX || h->n_words > INT_MAX / 4 ||
        h->n_outputs < 2 || h->n_left_out > INT_MAX || h->text_used > INT_MAX || h->n_slots > INT_MAX ||
        (h->n_slots & (h->n_slots - 1)) != 0 || (h->n_pairs & (h->n_pairs - 1)) != 0 ||
        (h->n_pairs && h->n_pairs < LIN_NGRAM_PAIRS_LINE) || (h->n_logps && h->n_logps != h->n_ends) ||
        h->first_left_out[LIN_WORD_MAX] || (h->n_left_out > 0) != (h->first_left_out[0] != 0))
        return 0;
    lay_out(h, sizes, at);
    if (at[SECTIONS] != t->map.size || h->size != t->map.size || lin_tree_sum(t->map.bytes, t->map.size) != h->sum)
        return 0;
    // The arrays are only read.
    unsigned char *base = (unsigned char *)(uintptr_t)t->map.bytes;
    t->nodes = (void *)(base + at[0]);
    t->ends = (void *)(base + at[1]);
    t->words = (lin_symbols){.n = (int)h->n_words, .capacity = (int)h->n_words, .items = (void *)(base + at[2]),
                             .n_slots = h->n_slots,
                             .slots = (void *)(base + at[3]), .text = (char *)base + at[4], .text_used = h->text_used,
                             .text_capacity = h->text_used};
    t->pairs = (lin_ngram_pairs){h->n_pairs ? (void *)(base + at[5]) : NULL, h->n_pairs};
    t->logps = h->n_logps ? (void *)(base + at[6]) : NULL;
    t->n_nodes = (int)h->n_nodes;
    t->n_ends = (int)h->n_ends;
    t->n_outputs = (int)h->n_outputs;
    t->n_left_out = (int)h->n_left_out;
    t->lm_fingerprint = h->lm_fingerprint;
    t->fingerprint = h->fingerprint;
    memcpy(t->first_left_out, h->first_left_out, sizeof t->first_left_out);
    return good_nodes(t) && good_words(t, lm ? lin_ngram_words(lm) : 0);
}

static lin_status check(lin_tree *t, uint64_t key, int n_outputs, const lin_ngram *lm, const char *path, lin_error *err)
{
    lin_tree_header h;
    if (t->map.size < sizeof h || memcmp(t->map.bytes, LIN_TREE_MAGIC, sizeof h.magic) != 0)
        return lin_fail(err, LIN_FORMAT, "%s is not a packed lexicon", path);
    memcpy(&h, t->map.bytes, sizeof h);
    if (h.version != LIN_TREE_VERSION)
        return lin_fail(err, LIN_MISMATCH, "%s was packed by another version of this program", path);
    if (h.key != key) return lin_fail(err, LIN_MISMATCH, "%s was packed from another lexicon, or for another model", path);
    if (!attach(t, &h, n_outputs, lm))
        return lin_fail(err, LIN_FORMAT, "%s is damaged; pack the lexicon again (linnet lexicon)", path);
    return LIN_OK;
}

lin_status lin_tree_open(const char *path, uint64_t key, int n_outputs, const lin_ngram *lm, lin_tree **out, lin_error *err)
{
    *out = NULL;
    lin_tree *t = lin_calloc(1, sizeof *t);
    if (!t) return lin_no_memory(err, path, sizeof *t);
    lin_status status = lin_file_map_open(path, &t->map, err);
    if (status == LIN_OK) {
        status = check(t, key, n_outputs, lm, path, err);
        if (status != LIN_OK) lin_file_map_close(&t->map);
    }
    if (status != LIN_OK) lin_free(t);
    else *out = t;
    return status;
}
