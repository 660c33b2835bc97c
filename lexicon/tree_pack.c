// tree_pack.c - a tree as a file: writing it, and mapping it after all of it has been checked; see tree.h.

#include <limits.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "lexicon/tree_internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "trees are mapped from little-endian files");
_Static_assert(sizeof(lin_symbol) == 16 && sizeof(lin_tree_node) == 16 && sizeof(lin_tree_end) == 8, "as in the file");

#define LOWEST_AHEAD (-1e4f) // a natural logarithm; those of n-grams are limited to a fraction of it
#define LOWEST_LOGP (-1e4f)  // of a probability above 0 in double precision

static size_t round_up(size_t n) { return (n + 63) / 64 * 64; }

// Offsets of the sections; the last number is the size of the file.
static void lay_out(const lin_tree_header *h, size_t at[LIN_TREE_SECTIONS + 1])
{
    const size_t sizes[LIN_TREE_SECTIONS] = {((size_t)h->n_nodes + 1) * sizeof(lin_tree_node),
                                             (size_t)h->n_ends * sizeof(lin_tree_end), (size_t)h->n_words * sizeof(lin_symbol),
                                             (size_t)h->n_slots * sizeof(int32_t), h->text_used,
                                             (size_t)h->n_pairs * sizeof(uint64_t), h->n_logps * sizeof(float)};
    at[0] = round_up(sizeof *h);
    for (int i = 0; i < LIN_TREE_SECTIONS; i++) at[i + 1] = at[i] + round_up(sizes[i]);
}

uint64_t lin_tree_sum(const unsigned char *bytes, size_t n)
{
    return lin_hash(bytes, offsetof(lin_tree_header, sum),
                    lin_hash(bytes + sizeof(lin_tree_header), n - sizeof(lin_tree_header), 0));
}

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

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
                         .n_pairs = (uint32_t)t->n_pairs,
                         .text_used = t->words.text_used,
                         .lm_fingerprint = t->lm_fingerprint,
                         .n_logps = t->logps ? (uint64_t)t->n_ends : 0,
                         .fingerprint = t->fingerprint,
                         .key = key};
    const void *sections[LIN_TREE_SECTIONS] = {t->nodes, t->ends, t->words.items, t->words.slots, t->words.text, t->pairs,
                                             t->logps};
    const size_t sizes[LIN_TREE_SECTIONS] = {((size_t)t->n_nodes + 1) * sizeof *t->nodes, (size_t)t->n_ends * sizeof *t->ends,
                                             (size_t)t->words.n * sizeof *t->words.items,
                                             t->words.n_slots * sizeof *t->words.slots, t->words.text_used,
                                             t->n_pairs * sizeof *t->pairs, (size_t)h.n_logps * sizeof *t->logps};
    size_t at[LIN_TREE_SECTIONS + 1];
    lay_out(&h, at);
    h.size = at[LIN_TREE_SECTIONS];
    memcpy(h.first_left_out, t->first_left_out, sizeof h.first_left_out);
    unsigned char *block = lin_calloc(h.size, 1);
    if (!block) return lin_no_memory(err, path, h.size);
    memcpy(block, &h, sizeof h);
    for (int i = 0; i < LIN_TREE_SECTIONS; i++)
        if (sizes[i]) memcpy(block + at[i], sections[i], sizes[i]);
    h.sum = lin_tree_sum(block, h.size);
    memcpy(block, &h, sizeof h);
    const lin_status status = lin_file_write_all(path, block, h.size, err);
    lin_free(block);
    return status;
}

/* ---- checks ---------------------------------------------------------------------------------------------------------------- */

// Children and ends of a node follow those of the node before it, and a child comes after its parent: no walk leaves the arrays,
// and every walk ends. No word ends at the root, and none is longer than a pronunciation may be.
static int good_nodes(const lin_tree *t)
{
    const lin_tree_node *nodes = t->nodes;
    int good = nodes[0].child == 1 && nodes[0].end == 0 && nodes[1].end == 0 && nodes[t->n_nodes].child == (uint32_t)t->n_nodes &&
               nodes[t->n_nodes].end == (uint32_t)t->n_ends;
    for (int i = 0; i < t->n_nodes; i++) {
        good &= nodes[i + 1].child >= nodes[i].child && nodes[i + 1].end >= nodes[i].end && nodes[i].child > (uint32_t)i &&
                nodes[i].ahead <= 0 && nodes[i].ahead >= LOWEST_AHEAD &&
                (i ? nodes[i].label >= 1 && nodes[i].label < t->n_outputs : nodes[i].label == 0);
    }
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
    for (int i = 0; t->logps && i < t->n_ends; i++) good &= t->logps[i] <= 0 && t->logps[i] >= LOWEST_LOGP;
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

// 0: not a tree that this program can use with so many outputs and this language model. Whoever changes a number can compute the
// checksum: every number is checked against what it is used with.
static int attach(lin_tree *t, const lin_tree_header *h, int n_outputs, const lin_ngram *lm)
{
    size_t at[LIN_TREE_SECTIONS + 1];
    if (h->n_outputs != (uint32_t)n_outputs || h->lm_fingerprint != (lm ? lin_ngram_fingerprint(lm) : 0) ||
        h->n_pairs != (lm ? lin_ngram_pairs_size(lm) : 0))
        return 0;
    if (h->n_nodes < 1 || h->n_nodes > INT_MAX / 2 || h->n_ends > INT_MAX || h->n_words > INT_MAX / 4 ||
        h->n_outputs < 2 || h->n_left_out > INT_MAX || h->text_used > INT_MAX || h->n_slots > INT_MAX ||
        (h->n_slots & (h->n_slots - 1)) != 0 || (h->n_pairs & (h->n_pairs - 1)) != 0 ||
        (h->n_pairs && h->n_pairs < LIN_NGRAM_PAIRS_LINE) || (h->n_logps && h->n_logps != h->n_ends) ||
        h->first_left_out[LIN_WORD_MAX] || (h->n_left_out > 0) != (h->first_left_out[0] != 0))
        return 0;
    lay_out(h, at);
    if (at[LIN_TREE_SECTIONS] != t->map.size || h->size != t->map.size || lin_tree_sum(t->map.bytes, t->map.size) != h->sum)
        return 0;
    // The arrays are only read.
    unsigned char *base = (unsigned char *)(uintptr_t)t->map.bytes;
    t->nodes = (void *)(base + at[0]);
    t->ends = (void *)(base + at[1]);
    t->words = (lin_symbols){.n = (int)h->n_words, .capacity = (int)h->n_words, .items = (void *)(base + at[2]),
                             .n_slots = h->n_slots,
                             .slots = (void *)(base + at[3]), .text = (char *)base + at[4], .text_used = h->text_used,
                             .text_capacity = h->text_used};
    t->pairs = h->n_pairs ? (void *)(base + at[5]) : NULL;
    t->n_pairs = h->n_pairs;
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

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

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
