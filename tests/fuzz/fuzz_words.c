// Damaged states of the word search: a state after some rows, with some bytes changed, is either refused or accepts more rows and
// gives all its hypotheses. The first byte chooses options and language model, the second the number of rows before the change;
// then triples: two bytes of position (every eighth byte, or the first 64 KB), one byte of value.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "decoder/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { V = 4, ROWS = 64 };

static const int labels[][3] = {{1, 2, 0}, {2, 3, 0}, {2, 2, 0}, {1, 2, 0}, {3, 0, 0}, {1, 2, 3}};
static const lin_tree_entry entries[] = {{"ab", labels[0], 2}, {"bc", labels[1], 2}, {"bb", labels[2], 2},
                                         {"ba", labels[3], 2}, {"c", labels[4], 1},  {"abc", labels[5], 3}};
static const char arpa[] = "\\data\\\nngram 1=7\nngram 2=3\n\n\\1-grams:\n-1.0 <s> -0.3\n-1.0 </s>\n-1.2 ab -0.2\n-1.0 ba -0.2\n"
                           "-1.0 bc -0.1\n-1.5 bb 0\n-1.0 c 0\n\n\\2-grams:\n-0.1 ab bc\n-0.1 <s> ab\n-2.0 ba bc\n\n\\end\\\n";

static void make_rows(float logp[ROWS][V])
{
    for (int t = 0; t < ROWS; t++) {
        for (int v = 0; v < V; v++) logp[t][v] = v == (t * 7 / 3 + t / 5) % V ? -0.3f : -1.0f - 0.3f * (float)((t * 5 + v) % 7);
    }
}

static void change(uint8_t *state, size_t bytes, const uint8_t *data, size_t size)
{
    for (; size >= 3; data += 3, size -= 3) {
        const size_t at = (size_t)data[0] << 8 | data[1];
        state[at * (at & 1 ? 1 : 8) % bytes] = data[2];
    }
}

static void go_on(const lin_words *words, void *state, const lin_word_context *context, float logp[ROWS][V])
{
    lin_path path = {0};
    lin_error err = {0};
    if (lin_words_push(words, state, context, logp[0], ROWS, &path, &err) != LIN_OK && !err.message[0]) abort();
    for (int i = lin_words_hypotheses(words, state); i-- > 0;) {
        if (lin_words_nbest(words, state, i, &path, &err) != LIN_OK && !err.message[0]) abort();
    }
    if (lin_words_finish(words, state, context, &path, &err) != LIN_OK && !err.message[0]) abort();
    for (int i = 0; i < path.n_words; i++) {
        if (path.words[i].n_phones < 1 || path.words[i].first_phone + path.words[i].n_phones > path.n_phones) abort();
    }
    lin_path_free(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const unsigned long live = lin_memory_live();
    lin_words_options o = lin_words_options_default();
    lin_ngram *lm = NULL;
    lin_tree *tree;
    lin_words *words;
    lin_word_context *context;
    float logp[ROWS][V];
    lin_path path = {0};
    make_rows(logp);
    o.width = 1 + (data[0] & 7) * 3;
    o.n_best = data[0] & 8 ? 4 : 1;
    o.longest = data[0] & 16 ? 2 : 50;
    o.rivals = data[0] & 32 ? 2 : 1;
    if (data[0] & 64 && lin_ngram_parse(arpa, sizeof arpa - 1, "fuzz", &lm, NULL) != LIN_OK) return 0;
    if (lin_tree_create_list(entries, 6, V, lm, NULL, &tree, NULL) != LIN_OK) return 0;
    if (lin_words_create(tree, lm, &o, &words, NULL) != LIN_OK) return 0;
    if (lin_word_context_create(tree, &(lin_word_phrase){"ab bc", 2}, 1, NULL, &context, NULL) != LIN_OK) return 0;
    const lin_word_context *in_use = data[0] & 128 ? context : NULL;
    const size_t bytes = lin_words_bytes(words);
    uint8_t *state = malloc(bytes);
    if (state) {
        lin_words_reset(words, state, 0);
        if (lin_words_push(words, state, in_use, logp[0], data[1] % ROWS, &path, NULL) != LIN_OK) abort();
        if (lin_words_check(words, state, bytes, NULL) != LIN_OK) abort();
        change(state, bytes, data + 2, size - 2);
        if (lin_words_check(words, state, bytes, NULL) == LIN_OK) go_on(words, state, in_use, logp);
    }
    free(state);
    lin_path_free(&path);
    lin_word_context_destroy(context);
    lin_words_destroy(words);
    lin_tree_destroy(tree);
    lin_ngram_destroy(lm);
    if (lin_memory_live() != live) abort();
    return 0;
}
