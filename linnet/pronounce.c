// pronounce.c - keywords and grammars with the pronunciations of their words; see pronounce.h.

#include "linnet/pronounce.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "linnet/wording.h"

/* ---- single words ---------------------------------------------------------------------------------------------------------- */

typedef struct pronouncer {
    lin_wording wording;
    int labels[LIN_PRONUNCIATION_MAX]; // of the last word by rule
} pronouncer;

// Opens the lexicon of the options; `what` needs it. numbers: as in lin_wording_files.
static lin_status open_pronouncer(pronouncer *p, const lin_decoding_values *v, const lin_phones *phones, const char *what,
                                  const char *numbers, const lin_warnings *warnings, lin_error *err)
{
    const lin_wording_files files = {.dictionary = v->lexicon, .added = v->add_lexicon, .g2p = v->g2p, .numbers = numbers};
    return lin_wording_open_for(&p->wording, &files, phones, what, "", warnings, err);
}

// Pronunciation number `which`, from 0 on, of a word in lower case; *n_labels 0: there are no more. Labels are valid until the
// next call.
static lin_status find_pronunciation(pronouncer *p, const lin_spelling *word, int which, const int **labels, int *n_labels,
                                     lin_error *err)
{
    lin_g2p_how how;
    *n_labels = lin_dictionary_find(p->wording.dictionary, word->word, word->n, which, labels);
    if (*n_labels || which > 0) return LIN_OK;
    *labels = p->labels;
    return lin_wording_pronounce(&p->wording, word->word, word->n, p->labels, LIN_PRONUNCIATION_MAX, n_labels, &how, err);
}

/* ---- keywords -------------------------------------------------------------------------------------------------------------- */

enum { MOST_WAYS = 16 };

// No word of a keyword follows the one before it after a longer pause.
#define LONGEST_PAUSE_S 0.5

// Pronunciations of a keyword, as lin_keyword has them.
typedef struct ways {
    int labels[MOST_WAYS][LIN_KEYWORD_PHONES_MAX], n_labels[MOST_WAYS];
    int n;
} ways;

typedef struct opening {
    pronouncer pronouncer;
    lin_keyword *list;
    int n, capacity;
} opening;

// The word after each way so far: w becomes all pairs, or the first ones of too many.
static lin_status add_ways(opening *o, const lin_spelling *word, ways *w, lin_error *err)
{
    const ways before = *w;
    w->n = 0;
    for (int which = 0; w->n < MOST_WAYS; which++) {
        const int *labels;
        int n;
        LIN_TRY(find_pronunciation(&o->pronouncer, word, which, &labels, &n, err));
        if (n == 0) break;
        for (int i = 0; i < before.n && w->n < MOST_WAYS; i++, w->n++) {
            const int old = before.n_labels[i];
            if (old + n > LIN_KEYWORD_PHONES_MAX)
                return lin_fail(err, LIN_INVALID, "it has more than %d phones", LIN_KEYWORD_PHONES_MAX);
            memcpy(w->labels[w->n], before.labels[i], (size_t)old * sizeof(int));
            memcpy(w->labels[w->n] + old, labels, (size_t)n * sizeof(int));
            w->n_labels[w->n] = old + n;
        }
    }
    return LIN_OK;
}

static lin_status pronounce(opening *o, const char *text, size_t n, ways *w, lin_error *err)
{
    lin_spelling word = {0};
    size_t at = 0;
    int words = 0;
    w->n = 1;
    w->n_labels[0] = 0;
    for (;; words++) {
        LIN_TRY(lin_spelling_next(text, n, &at, &word, err));
        if (!word.n) break;
        lin_spelling_settle(&word, o->pronouncer.wording.dictionary);
        LIN_TRY(add_ways(o, &word, w, err));
    }
    return words ? LIN_OK : lin_fail(err, LIN_INVALID, "it has no word");
}

static lin_status keep(opening *o, const char *text, size_t n, double threshold, const ways *w, lin_error *err)
{
    int n_labels = w->n - 1;
    for (int i = 0; i < w->n; i++) n_labels += w->n_labels[i];
    LIN_TRY(lin_grow_int(&o->list, &o->capacity, (int64_t)o->n + 1, sizeof *o->list, "keywords", err));
    char *copy = lin_text_copy(text, n);
    int *labels = lin_calloc((size_t)n_labels, sizeof *labels); // 0 between two
    o->list[o->n++] = (lin_keyword){copy, threshold, labels, n_labels};
    if (!copy || !labels) return lin_no_memory(err, "a keyword", n);
    for (int i = 0; i < w->n; labels += w->n_labels[i++] + 1)
        memcpy(labels, w->labels[i], (size_t)w->n_labels[i] * sizeof *labels);
    return LIN_OK;
}

// "text", or "text=threshold".
static lin_status add(opening *o, const char *text, size_t n, lin_error *err)
{
    char quoted[LIN_QUOTE];
    double threshold = NAN;
    ways w;
    size_t equals = n;
    while (equals > 0 && text[equals - 1] != '=') equals--;
    if (equals > 0) {
        const char *at = text + equals, *number;
        size_t digits;
        if (!lin_field_next(&at, text + n, &number, &digits) || !lin_text_number(number, digits, &threshold) ||
            !(threshold > 0 && threshold <= 1) || lin_field_next(&at, text + n, &number, &digits))
            return lin_fail(err, LIN_INVALID, "the keyword '%s': its threshold must be a number above 0, at most 1, such as =0.3",
                            lin_quote(quoted, text, n));
    }
    size_t length = equals ? equals - 1 : n;
    while (length > 0 && lin_is_space(text[length - 1])) length--;
    while (length > 0 && lin_is_space(*text)) text++, length--;
    if (o->n == LIN_KEYWORDS_MAX) return lin_fail(err, LIN_INVALID, "there are more than %d keywords", LIN_KEYWORDS_MAX);
    lin_status status = pronounce(o, text, length, &w, err);
    if (status == LIN_OK) status = keep(o, text, length, threshold, &w, err);
    return status == LIN_OK ? status : lin_fail_at(err, status, "the keyword '%s'", lin_quote(quoted, text, length));
}

static lin_status add_given(opening *o, const char *text, lin_error *err)
{
    char *own;
    size_t n;
    LIN_TRY(lin_unicode_clean(text, strlen(text), NULL, LIN_UNICODE_ANY, &own, &text, &n, err));
    const lin_status status = add(o, text, n, err);
    lin_free(own);
    return status;
}

static lin_status add_line(void *context, const char *text, size_t n, int line, lin_error *err)
{
    (void)line;
    return add(context, text, n, err);
}

static lin_status add_lines(opening *o, const char *path, lin_error *err)
{
    const int before = o->n;
    LIN_TRY(lin_entries_read(path, add_line, o, err));
    return o->n > before ? LIN_OK : lin_fail(err, LIN_FORMAT, "%s has no keyword; write one per line", path);
}

static lin_status open_all(opening *o, const lin_decoding_values *v, const lin_phones *phones, double row_seconds,
                           const lin_warnings *warnings, lin_keywords **keywords, lin_error *err)
{
    // A search for words has already warned of the lines that the lexicon leaves out. Keywords have no digits to read.
    LIN_TRY(open_pronouncer(&o->pronouncer, v, phones, "keywords", "none", v->words ? NULL : warnings, err));
    for (int i = 0; i < v->keywords.count; i++) LIN_TRY(add_given(o, v->keywords.items[i], err));
    if (v->keywords_file) LIN_TRY(add_lines(o, v->keywords_file, err));
    const int pause = (int)lround(LONGEST_PAUSE_S / row_seconds);
    return lin_keywords_create(o->list, o->n, lin_phones_count(phones), pause, keywords, err);
}

lin_status lin_keywords_open(const lin_decoding_values *values, const lin_phones *phones, double row_seconds,
                             const lin_warnings *warnings, lin_keywords **keywords, lin_error *err)
{
    opening o = {0};
    *keywords = NULL;
    if (values->keywords.count == 0 && !values->keywords_file) return LIN_OK;
    const lin_status status = open_all(&o, values, phones, row_seconds, warnings, keywords, err);
    for (int i = 0; i < o.n; i++) {
        lin_free((char *)o.list[i].text);
        lin_free((int *)o.list[i].labels);
    }
    lin_free(o.list);
    lin_wording_close(&o.pronouncer.wording);
    return status;
}

/* ---- a grammar ------------------------------------------------------------------------------------------------------------- */

typedef struct entries {
    lin_tree_entry *items;
    int n, capacity;
    int *labels; // of all entries, one after the other
    size_t n_labels, labels_capacity;
} entries;

static lin_status add_word(pronouncer *p, const char *text, entries *e, lin_error *err)
{
    lin_spelling word = {.n = strlen(text)};
    const int *labels;
    int n;
    memcpy(word.word, text, word.n);
    lin_spelling_settle(&word, p->wording.dictionary);
    for (int which = 0;; which++) {
        const lin_status status = find_pronunciation(p, &word, which, &labels, &n, err);
        if (status != LIN_OK) return lin_fail_at(err, status, "the grammar's word '%.100s'", text);
        if (n == 0) return LIN_OK;
        LIN_TRY(lin_grow_int(&e->items, &e->capacity, (int64_t)e->n + 1, sizeof *e->items, "a grammar", err));
        LIN_TRY(lin_grow(&e->labels, &e->labels_capacity, e->n_labels + (size_t)n, sizeof *e->labels, "a grammar", err));
        memcpy(e->labels + e->n_labels, labels, (size_t)n * sizeof *labels);
        e->n_labels += (size_t)n;
        e->items[e->n++] = (lin_tree_entry){.word = text, .n_labels = n};
    }
}

static lin_status make_tree(const lin_grammar *g, pronouncer *p, lin_tree **tree, lin_error *err)
{
    entries e = {0};
    lin_status status = LIN_OK;
    for (int i = 0; i < lin_grammar_words(g) && status == LIN_OK; i++) status = add_word(p, lin_grammar_word(g, i), &e, err);
    const int *labels = e.labels;
    for (int i = 0; i < e.n; labels += e.items[i++].n_labels) e.items[i].labels = labels;
    if (status == LIN_OK) status = lin_tree_create_list(e.items, e.n, lin_phones_count(p->wording.phones), NULL, 0, tree, err);
    lin_free(e.items);
    lin_free(e.labels);
    return status;
}

// Whether a word of a list of phrases has a pronunciation.
static lin_status say(void *context, const char *text, size_t n, lin_error *err)
{
    pronouncer *p = context;
    lin_spelling word = {.n = n};
    const int *labels;
    int n_labels;
    memcpy(word.word, text, n);
    lin_spelling_settle(&word, p->wording.dictionary);
    const lin_status status = find_pronunciation(p, &word, 0, &labels, &n_labels, err);
    if (status == LIN_OK) return status;
    return lin_fail_at(err, status == LIN_UNSUPPORTED ? LIN_INVALID : status, "the word '%.*s'", (int)n, text);
}

static lin_status read_grammar(const char *given, int repeats, pronouncer *p, const lin_warnings *warnings, lin_buffer *files,
                               lin_grammar **grammar, lin_error *err)
{
    lin_grammar_list list = {.say = say, .context = p};
    const lin_written *numbers = p->wording.written;
    const int is_text = !*given || strchr(given, '\n');
    const lin_status status = is_text ? lin_grammar_parse(given, strlen(given), "the grammar", numbers, repeats ? &list : NULL,
                                                          grammar, err)
                                      : lin_grammar_open(given, numbers, files, grammar, err);
    if (status == LIN_OK && list.left_out)
        lin_warn(warnings, "%d phrase%s left out of a list: %s%s", list.left_out, list.left_out == 1 ? " is" : "s are",
                 list.first.message, list.left_out == 1 ? "" : ", ...");
    return status;
}

lin_status lin_grammar_tree_open(const char *given, int repeats, const lin_decoding_values *values, const lin_phones *phones,
                                 const lin_warnings *warnings, lin_buffer *files, lin_grammar **grammar, lin_tree **tree,
                                 lin_error *err)
{
    pronouncer p = {0};
    *grammar = NULL;
    *tree = NULL;
    lin_status status = open_pronouncer(&p, values, phones, "grammars", NULL, repeats ? NULL : warnings, err);
    if (status == LIN_OK) status = read_grammar(given, repeats, &p, warnings, files, grammar, err);
    if (status == LIN_OK) status = make_tree(*grammar, &p, tree, err);
    if (status == LIN_OK) status = lin_grammar_bind(*grammar, *tree, err);
    lin_wording_close(&p.wording);
    if (status == LIN_OK) return LIN_OK;
    lin_grammar_destroy(*grammar);
    lin_tree_destroy(*tree);
    *grammar = NULL;
    *tree = NULL;
    return status;
}
