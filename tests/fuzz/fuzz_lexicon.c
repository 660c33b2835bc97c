// The readers of lexicon/ on any bytes.
#include "tests/fuzz/fuzz.h"

#include "base/hash.h"
#include "base/textfile.h"
#include "lexicon/dictionary.h"
#include "lexicon/g2p.h"
#include "lexicon/grammar.h"
#include "lexicon/phones.h"
#include "lexicon/readable.h"
#include "lexicon/transcript.h"
#include "lexicon/written.h"
#include "linnet/wording.h"
#include "train/learn/g2p_learn.h"
#include "train/learn/punctuation_learn.h"

/* ---- lexicon --------------------------------------------------------------------------------------------------------------- */

// The readers of lexicon/ on any bytes: phone sets, dictionaries (strict, and skipping bad lines), transcripts and their
// pronunciation, words that are added; files of phone sets; a language of its own: the set of a dictionary, the dictionary by it,
// rules learnt from it, and the bytes themselves as a text. The first byte chooses which.
static const char some_words[] =
    "hello HH AH0 L OW1\ncat K AE T\nplay P L EY\nhope HH OW P\ncolor K AH L ER\nhappy HH AE P IY\na AH\na. EY\na.'s EY Z\n";

static void try_phones(const char *text, size_t size)
{
    lin_error err = {0};
    lin_phones *phones;
    char *list = lin_text_copy(text, size);
    if (!list) return;
    lin_status status = lin_phones_create(list, &phones, &err);
    check_status(status, &err);
    if (status == LIN_OK) {
        if (lin_phones_count(phones) < 2 || lin_phones_find(phones, "<blank>", 7) != 0) abort();
        if (strcmp(lin_phones_list(phones), list) != 0) abort();
        for (int i = 0; i < lin_phones_count(phones); i++) {
            const char *name = lin_phones_name(phones, i);
            if (lin_phones_find(phones, name, strlen(name)) != i || !lin_phones_ipa(phones, i)) abort();
            lin_phone_read read[3];
            int mark = 0, n = lin_phones_read(phones, name, strlen(name), read, 1, &mark);
            if (i && (n != 1 || read[0].label != i)) abort();
            n = lin_phones_read(phones, text, size < 40 ? size : 40, read, 3, &mark);
            if (n < 0 || n > 3) abort();
            while (n--)
                if (read[n].label < 1 || read[n].label >= lin_phones_count(phones) || read[n].stress < -1 || read[n].stress > 2)
                    abort();
        }
        lin_phones_destroy(phones);
    }
    lin_free(list);
}

static void try_dictionary(const char *text, size_t size, const lin_phones *phones)
{
    lin_error err = {0};
    lin_dictionary *d;
    lin_status status = lin_dictionary_parse(text, size, "fuzz.dict", phones, &d, &err);
    check_status(status, &err);
    if (status != LIN_OK) return;
    for (int i = 0; i < lin_dictionary_count(d); i++) {
        const char *word = lin_dictionary_word(d, i);
        const int *labels;
        int n = lin_dictionary_find(d, word, strlen(word), 0, &labels);
        if (n < 1 || n > LIN_PRONUNCIATION_MAX) abort();
        for (int k = 0; k < n; k++)
            if (labels[k] < 1 || labels[k] >= lin_phones_count(phones)) abort();
    }
    lin_dictionary_destroy(d);
}

// Words added to a lexicon, some of them alone in their line.
static void try_added(const char *text, size_t size, const lin_phones *phones, const lin_g2p_rules *rules)
{
    lin_error err = {0};
    lin_dictionary *d;
    if (lin_dictionary_parse(some_words, sizeof some_words - 1, "words", phones, &d, &err)) abort();
    const int before = lin_dictionary_count(d);
    check_status(lin_lexicon_extend(d, text, size, "fuzz.txt", phones, rules, &err), &err);
    for (int i = 0; i < lin_dictionary_count(d); i++) {
        const char *word = lin_dictionary_word(d, i);
        if (!lin_dictionary_find(d, word, strlen(word), 0, NULL) || (i >= before && !lin_dictionary_is_added(d, i))) abort();
    }
    lin_dictionary_destroy(d);
}

static void try_transcript(const char *text, size_t size, const lin_phones *phones, const lin_dictionary *d, lin_g2p *g)
{
    lin_error err = {0};
    lin_transcriber *t;
    const int *labels;
    int n;
    if (lin_transcriber_create(d, g, &t, &err)) abort();
    for (int twice = 0; twice < 2; twice++) {
        lin_status status = lin_transcriber_line(t, text, size, &labels, &n, &err);
        check_status(status, &err);
        for (int k = 0; status == LIN_OK && k < n; k++)
            if (labels[k] < 1 || labels[k] >= lin_phones_count(phones)) abort();
    }
    long sum = 0;
    for (int i = 0; i < lin_transcriber_unknown_count(t); i++) sum += lin_transcriber_unknown(t, i).count;
    if (sum != lin_transcriber_unknown_words(t)) abort();
    lin_transcriber_destroy(t);
}

static void try_set_file(const char *text, size_t size, int own)
{
    lin_error err = {0};
    lin_phones *phones, *again;
    const lin_status status = lin_phones_parse(text, size, "fuzz.phones", own, &phones, &err);
    check_status(status, &err);
    if (status != LIN_OK) return;
    if (lin_phones_count(phones) < 2 || (own && lin_phones_count(phones) > LIN_PHONES_OWN_MAX + 1)) abort();
    if (lin_phones_create(lin_phones_list(phones), &again, &err) != LIN_OK) abort();
    if (lin_phones_is_own(again) != lin_phones_is_own(phones)) abort();
    for (int i = 0; i < lin_phones_count(phones); i++) {
        if (strcmp(lin_phones_name(again, i), lin_phones_name(phones, i)) != 0 || !lin_phones_ipa(phones, i)) abort();
        if (lin_phones_kind(again, i) != lin_phones_kind(phones, i)) abort();
        lin_phones_similar(phones, i);
        lin_phones_is_vowel(phones, i);
    }
    lin_phones_destroy(again);
    lin_phones_destroy(phones);
}

static void try_language(const char *text, size_t size)
{
    lin_error err = {0};
    lin_phones *phones = NULL;
    lin_dictionary *d = NULL;
    lin_ngram *lm = NULL;
    lin_g2p_rules *learnt = NULL;
    lin_g2p *g = NULL;
    lin_g2p_learn_options o = lin_g2p_learn_options_default();
    o.iterations = 1;
    o.order = 2;
    lin_status status = lin_dictionary_phones(text, size, "fuzz.dict", &phones, &err);
    check_status(status, &err);
    if (status == LIN_OK) status = lin_dictionary_parse(text, size, "fuzz.dict", phones, &d, &err);
    check_status(status, &err);
    // Rules of a few phones only: tables of all pairs of 255 phones take longer than a run.
    const int learns = status == LIN_OK && lin_phones_count(phones) < 64;
    if (learns && lin_g2p_learn(d, phones, &o, &lm, NULL, &err) == LIN_OK) {
        if (lin_g2p_rules_create(lm, "r", phones, &learnt, &err)) abort();
    }
    if (status == LIN_OK && lin_g2p_create(phones, d, learnt, &g, &err) != LIN_OK) abort();
    if (status == LIN_OK) try_transcript(text, size, phones, d, g);
    lin_g2p_destroy(g);
    lin_g2p_rules_destroy(learnt);
    lin_dictionary_destroy(d);
    lin_phones_destroy(phones);
}

void fuzz_lexicon(const uint8_t *data, size_t size)
{
    static lin_phones *phones;
    static lin_dictionary *dictionary;
    static lin_g2p *bare, *rules;
    static lin_g2p_rules *learnt;
    lin_error err = {0};
    if (!phones) { // only once: learning rules takes longer than a run
        if (lin_phones_create(NULL, &phones, &err)) abort();
        if (lin_dictionary_parse(some_words, sizeof some_words - 1, "words", phones, &dictionary, &err)) abort();
        lin_g2p_learn_options o = lin_g2p_learn_options_default();
        lin_ngram *lm;
        if (lin_g2p_learn(dictionary, phones, &o, &lm, NULL, &err)) abort();
        if (lin_g2p_rules_create(lm, "words", phones, &learnt, &err)) abort();
        if (lin_g2p_create(phones, dictionary, NULL, &bare, &err)) abort();
        if (lin_g2p_create(phones, dictionary, learnt, &rules, &err)) abort();
    }
    if (!size) return;
    const char *text = (const char *)data + 1;
    switch (data[0] % 9) {
    case 0: try_phones(text, size - 1); break;
    case 1: try_transcript(text, size - 1, phones, dictionary, bare); break;
    case 2: try_transcript(text, size - 1, phones, dictionary, rules); break;
    case 4: try_added(text, size - 1, phones, learnt); break;
    case 5: try_set_file(text, size - 1, 1); break;
    case 6: try_language(text, size - 1); break;
    case 7: try_set_file(text, size - 1, 0); break;
    default: try_dictionary(text, size - 1, phones); break;
    }
}

/* ---- punctuation ----------------------------------------------------------------------------------------------------------- */

// Punctuation models from any bytes: unchanged, and once more with the checksum and the length that fit the header, so that the
// code after these checks is reached; and any bytes as prose and as words to be made readable.
static void try_text(const lin_punctuation *p, const uint8_t *data, size_t size)
{
    lin_prose prose = {0};
    lin_readable r;
    lin_error err = {0};
    lin_readable_begin(&r, p);
    if (lin_prose_read(&prose, (const char *)data, size, &err)) abort();
    for (int i = 0; i < prose.n; i++) {
        const char *word = prose.text.data + prose.words[i].text;
        if (!*word || prose.words[i].mark < 0 || prose.words[i].mark >= LIN_MARKS) abort();
        if (lin_readable_push(&r, word, i * 0.1, i * 0.1 + 0.05, 1, &err)) abort();
    }
    if (lin_readable_finish(&r, &err)) abort();
    for (int i = 0; i < r.n; i++)
        if (!*lin_readable_token_text(&r, i)) abort();
    if (r.n > prose.n) abort();
    lin_readable_free(&r);
    lin_prose_free(&prose);
}

static void try_model(const void *bytes, size_t n, const uint8_t *text, size_t n_text)
{
    lin_error err = {0};
    lin_punctuation *p;
    const lin_status status = lin_punctuation_parse(bytes, n, "fuzz", &p, &err);
    if (status != LIN_OK) {
        if ((status != LIN_FORMAT && status != LIN_UNSUPPORTED) || err.status != status || !err.message[0] || p) abort();
        return;
    }
    try_text(p, text, n_text);
    lin_punctuation_destroy(p);
}

void fuzz_punctuation(const uint8_t *data, size_t size)
{
    lin_punctuation_header h;
    try_model(data, size, data, size);
    if (size >= sizeof h) {
        memcpy(&h, data, sizeof h);
        memcpy(h.magic, LIN_PUNCTUATION_MAGIC, sizeof h.magic);
        h.version = LIN_PUNCTUATION_VERSION;
        h.n_marks %= 4096;
        h.n_capitals %= 4096;
        const size_t n = lin_punctuation_bytes(&h);
        unsigned char *block = lin_calloc(sizeof h + n, 1);
        if (!block) return;
        memcpy(block + sizeof h, data + sizeof h, size - sizeof h < n ? size - sizeof h : n);
        h.checksum = 0;
        h.checksum = lin_hash(block + sizeof h, n, lin_hash(&h, sizeof h, 0));
        memcpy(block, &h, sizeof h);
        try_model(block, sizeof h + n, data, size);
        lin_free(block);
    }
}

/* ---- written --------------------------------------------------------------------------------------------------------------- */

// The reader of rules for numbers, its matches and the numbers that it hears, on any bytes: rules, 0xFF, a text.
// The text's words as numbers, from each of the first on.
static void hear(const lin_written *written, const char *text, size_t n)
{
    enum { MOST = 40 };
    char copy[4096];
    const char *words[MOST];
    int n_words = 0;
    lin_buffer out = {0};
    n = n < sizeof copy ? n : sizeof copy - 1;
    memcpy(copy, text, n);
    copy[n] = 0;
    for (char *w = strtok(copy, " \n"); w && n_words < MOST; w = strtok(NULL, " \n")) words[n_words++] = w;
    for (int i = 0; i < n_words && i < 4; i++) {
        int keep;
        lin_buffer_clear(&out);
        const int used = lin_number_read(written, words + i, n_words - i, i ? words[i - 1] : "", &out, &keep);
        must(used >= 0 && used <= n_words - i && keep >= 1 && keep <= n_words - i);
        must(used > 0 || out.n == 0);
        must(!used || lin_number_word(written, words[i]));
    }
    lin_buffer_free(&out);
}

void fuzz_written(const uint8_t *data, size_t size)
{
    const char *rules = (const char *)data, *cut = size ? memchr(rules, 0xFF, size) : NULL;
    const size_t n_rules = cut ? (size_t)(cut - rules) : size, n = cut ? size - n_rules - 1 : 0;
    const char *text = cut ? cut + 1 : "";
    lin_written *written;
    lin_readings r = {0};
    lin_error err = {0};
    const lin_status status = lin_written_parse(rules, n_rules, "n", &written, &err);
    must((status == LIN_OK) == (written != NULL));
    must(status == LIN_OK || (status == LIN_FORMAT && *err.message && !strchr(err.message, '\n')));
    int matches = 0;
    for (size_t at = 0, end; written && at < n && matches < 20; at = end ? end : at + 1) {
        must(lin_written_match(written, text, n, at, &end, &r, &err) == LIN_OK);
        must(end == 0 ? r.n == 0 : end > at && end <= n && r.n > 0 && r.n <= LIN_READINGS_MOST);
        for (int i = 0; i < r.n; i++) must(*r.items[i] && *r.items[i] != ' ' && !strstr(r.items[i], "  "));
        matches += end > 0;
    }
    if (written) hear(written, text, n);
    lin_readings_free(&r);
    lin_written_destroy(written);
}

/* ---- grammar --------------------------------------------------------------------------------------------------------------- */

// A grammar; the first byte tells whether its sentences repeat. From every state only states are reached.
void fuzz_grammar(const uint8_t *data, size_t size)
{
    static const char rules[] = "[cardinal]\n0: zero\n1: one\n2: two\n10: < ten[ >]\n[written]\n{N} = {1:cardinal}\n";
    static lin_written *numbers;
    lin_error err = {0};
    lin_grammar_list list = {0};
    lin_grammar *g;
    if (!numbers) must(lin_written_parse(rules, sizeof rules - 1, "n", &numbers, &err) == LIN_OK);
    if (!size) return;
    lin_grammar_list *repeats = data[0] & 1 ? &list : NULL;
    const lin_status status = lin_grammar_parse((const char *)data + 1, size - 1, "x", numbers, repeats, &g, &err);
    check_status(status, &err);
    must((status == LIN_OK) == (g != NULL));
    if (!g) return;
    const int n = lin_grammar_words(g);
    lin_tree_entry *entries = lin_calloc((size_t)n, sizeof *entries);
    const int label = 1;
    lin_tree *tree;
    for (int i = 0; i < n; i++) entries[i] = (lin_tree_entry){lin_grammar_word(g, i), &label, 1, 0, 0};
    must(lin_tree_create_list(entries, n, 2, NULL, 0, &tree, &err) == LIN_OK && lin_grammar_bind(g, tree, &err) == LIN_OK);
    for (uint32_t state = 0; state < lin_grammar_states(g) && state < 100; state++) {
        uint32_t next = lin_grammar_unknown(g, state);
        must(next == LIN_GRAMMAR_NONE || next < lin_grammar_states(g));
        for (uint32_t e = 0; e < (uint32_t)tree->n_ends && e < 100; e++) {
            next = lin_grammar_step(g, state, e);
            must(next == LIN_GRAMMAR_NONE || (next < lin_grammar_states(g) && lin_grammar_allows(g, state, LIN_TREE_ROOT)));
        }
    }
    lin_free(entries);
    lin_tree_destroy(tree);
    lin_grammar_destroy(g);
}
