// Searches over any rows, and their states with bytes changed.
#include "tests/fuzz/fuzz.h"

#include "decoder/beam.h"
#include "decoder/words.h"
#include "lexicon/ngram.h"

/* ---- beam ------------------------------------------------------------------------------------------------------------------ */

// Beam search of any rows with any options: two states get the same rows, one of them row by row, and stay equal bit for bit; the
// state passes its check; a damaged copy is refused or continues within its memory.
//
// Bytes: outputs, width, score, labels, blank, longest, flags; then commands, each followed by its arguments.
enum { MOST_V = 9, MOST_ROWS = 16, HEADER = 7 };

static const char phones_arpa[] =
    "\\data\\\nngram 1=5\nngram 2=4\n\n\\1-grams:\n-0.7 </s>\n-99 <s> -0.3\n-0.5 A -0.2\n-0.6 B -0.4\n"
    "-0.9 C -0.1\n\n\\2-grams:\n-0.3 <s> A\n-0.4 A B\n-1.1 A A\n-0.2 C </s>\n\n\\end\\\n";

typedef struct feed {
    const uint8_t *at, *end;
} feed;

static int next(feed *f) { return f->at < f->end ? *f->at++ : 0; }

static float number(int byte)
{
    switch (byte) {
    case 255: return NAN;
    case 254: return INFINITY;
    case 253: return -INFINITY;
    case 252: return 3e38f;
    case 251: return -3e38f;
    case 250: return -1e-40f;
    case 249: return 100;
    default: return byte == 1 ? -0.0005f : -(float)byte / 8;
    }
}

static void try_damage(const lin_beam *beam, const void *state, feed *f, const lin_context *context, const float *rows)
{
    const size_t bytes = lin_beam_bytes(beam);
    lin_path path = {0};
    unsigned char *copy = lin_alloc(bytes, 1);
    must(copy != NULL);
    memcpy(copy, state, bytes);
    for (int n = 1 + next(f) % 4; n; n--) {
        size_t at = ((size_t)next(f) << 16 | (size_t)next(f) << 8 | (size_t)next(f)) % bytes;
        copy[at] = (unsigned char)next(f);
    }
    if (lin_beam_check(beam, copy, bytes, NULL) == LIN_OK) {
        if (lin_beam_push(beam, copy, context, rows, MOST_ROWS, &path, NULL) == LIN_OK) {
            for (int i = 0; i < lin_beam_hypotheses(beam, copy); i++) lin_beam_nbest(beam, copy, i, &path, NULL);
        }
        lin_beam_finish(beam, copy, &path, NULL);
    }
    lin_path_free(&path);
    lin_free(copy);
}

static void look(const lin_beam *beam, const void *state, int finite)
{
    lin_path tail = {0};
    double last = INFINITY;
    for (int i = 0; i < lin_beam_hypotheses(beam, state); i++) {
        must(lin_beam_nbest(beam, state, i, &tail, NULL) == LIN_OK);
        must(!isnan(tail.score) && (!finite || tail.score <= last + 1e-6));
        last = tail.score;
        for (int k = 0; k < tail.n_phones; k++) {
            must(tail.phones[k].start < tail.phones[k].end && tail.phones[k].confidence >= 0 &&
                    tail.phones[k].confidence <= 1);
            must(!k || tail.phones[k].start >= tail.phones[k - 1].end);
        }
    }
    lin_path_free(&tail);
}

static void try_search(const lin_beam *beam, int V, feed f, const lin_context *const contexts[3])
{
    static float rows[MOST_ROWS * MOST_V];
    const size_t bytes = lin_beam_bytes(beam);
    void *a = lin_alloc(bytes, 1), *b = lin_alloc(bytes, 1);
    lin_path of_a = {0}, of_b = {0};
    const lin_context *context = NULL;
    must(a && b);
    memset(rows, 0, sizeof rows);
    lin_beam_reset(beam, a, 5);
    lin_beam_reset(beam, b, 5);
    while (f.at < f.end) {
        const int command = next(&f), n = 1 + (command >> 2) % MOST_ROWS;
        if (command % 4 == 3) {
            context = contexts[(command >> 2) % 3];
        } else if (command % 4 == 2) {
            try_damage(beam, a, &f, context, rows);
        } else {
            for (int i = 0; i < n * V; i++) rows[i] = number(next(&f));
            memcpy(b, a, bytes);
            lin_status status = lin_beam_push(beam, a, context, rows, n, &of_a, NULL);
            must(status == LIN_OK || status == LIN_NUMERIC);
            if (status != LIN_OK) must(memcmp(a, b, bytes) == 0);
            for (int i = 0; status == LIN_OK && i < n; i++)
                must(lin_beam_push(beam, b, context, rows + i * V, 1, &of_b, NULL) == LIN_OK);
        }
        must(memcmp(a, b, bytes) == 0 && lin_beam_check(beam, a, bytes, NULL) == LIN_OK);
        look(beam, a, command % 2);
    }
    must(lin_beam_finish(beam, a, &of_a, NULL) == LIN_OK && lin_beam_finish(beam, b, &of_b, NULL) == LIN_OK);
    must(of_a.n_phones == of_b.n_phones && of_a.score == of_b.score && memcmp(a, b, bytes) == 0);
    for (int i = 0; i < of_a.n_phones; i++) {
        must(memcmp(&of_a.phones[i], &of_b.phones[i], sizeof of_a.phones[i]) == 0);
        must(!i || of_a.phones[i].start >= of_a.phones[i - 1].end);
    }
    look(beam, a, 1);
    lin_path_free(&of_a);
    lin_path_free(&of_b);
    lin_free(a);
    lin_free(b);
}

void fuzz_beam(const uint8_t *data, size_t size)
{
    static const int words[MOST_V] = {-1, 2, 3, 4, -1, 2, 3, 4, 2}, one[] = {1, 2}, two[] = {2, 2, 3}, three[] = {1};
    static const lin_context_phrase phrases[] = {{one, 2, 3}, {two, 3, -2}, {three, 1, 100}};
    if (size < HEADER) return;
    const int V = 1 + data[0] % MOST_V, flags = data[6];
    const lin_beam_options options = {.width = 1 + data[1] % 12,
                                      .score = data[2] / 8.0,
                                      .labels = data[3] % MOST_V,
                                      .blank = data[4] / 255.0,
                                      .longest = 1 + data[5] % 20,
                                      .lm_weight = (flags >> 2 & 3) * 0.7,
                                      .bonus = (flags >> 4) - 8};
    lin_ngram *lm = NULL;
    lin_context *context[2];
    lin_beam *beam;
    if (flags & 1) must(lin_ngram_parse(phones_arpa, sizeof phones_arpa - 1, "small.phones_arpa", &lm, NULL) == LIN_OK);
    must(lin_context_create(phrases, 2, &context[0], NULL) == LIN_OK);
    must(lin_context_create(phrases + 1, 2, &context[1], NULL) == LIN_OK);
    must(lin_beam_create(V, lm, words, &options, &beam, NULL) == LIN_OK);
    const lin_context *const contexts[] = {NULL, context[0], context[1]};
    try_search(beam, V, (feed){data + HEADER, data + size}, contexts);
    lin_beam_destroy(beam);
    lin_context_destroy(context[0]);
    lin_context_destroy(context[1]);
    lin_ngram_destroy(lm);
}

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

// Damaged states of the word search: a state after some rows, with some bytes changed, is either refused or accepts more rows and
// gives all its hypotheses. The first byte chooses options and language model, the second the number of rows before the change;
// then triples: two bytes of position (every eighth byte, or the first 64 KB), one byte of value.
enum { V = 4, ROWS = 64 };

static const int labels[][3] = {{1, 2, 0}, {2, 3, 0}, {2, 2, 0}, {1, 2, 0}, {3, 0, 0}, {1, 2, 3}};
static const lin_tree_entry entries[] = {{"ab", labels[0], 2, 0, 0}, {"bc", labels[1], 2, 0, 0}, {"bb", labels[2], 2, 0, 0},
                                         {"ba", labels[3], 2, 0, 0}, {"c", labels[4], 1, 0, 0},  {"abc", labels[5], 3, 0, 0}};
static const char words_arpa[] =
    "\\data\\\nngram 1=7\nngram 2=3\n\n\\1-grams:\n-1.0 <s> -0.3\n-1.0 </s>\n-1.2 ab -0.2\n-1.0 ba -0.2\n"
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

void fuzz_words(const uint8_t *data, size_t size)
{
    if (size < 2) return;
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
    if (data[0] & 64 && lin_ngram_parse(words_arpa, sizeof words_arpa - 1, "fuzz", &lm, NULL) != LIN_OK) return;
    if (lin_tree_create_list(entries, 6, V, lm, 0, &tree, NULL) != LIN_OK) return;
    if (lin_words_create(tree, lm, &o, &words, NULL) != LIN_OK) return;
    if (lin_word_context_create(tree, &(lin_word_phrase){"ab bc", 2}, 1, NULL, &context, NULL) != LIN_OK) return;
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
}
