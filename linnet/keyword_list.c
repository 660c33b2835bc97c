// keyword_list.c - keywords as text; see keyword_list.h.

#include "linnet/keyword_list.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/transcript.h"
#include "linnet/pronounce.h"
#include "linnet/wording.h"

enum { MOST_WAYS = 16 };

// No word of a keyword follows the one before it after a longer pause.
#define LONGEST_PAUSE_S 0.5

// Pronunciations of a keyword, as lin_keyword has them.
typedef struct ways {
    int labels[MOST_WAYS][LIN_KEYWORD_PHONES_MAX], n_labels[MOST_WAYS];
    int n;
} ways;

typedef struct opening {
    const lin_decoding_values *values;
    const lin_phones *phones;
    lin_pronouncer pronouncer;
    lin_keyword *list;
    int n, capacity;
} opening;

// The word after each way so far: w becomes all pairs, or the first ones of too many.
static lin_status add_word(opening *o, const lin_spelling *word, ways *w, lin_error *err)
{
    const ways before = *w;
    w->n = 0;
    for (int which = 0; w->n < MOST_WAYS; which++) {
        const int *labels;
        int n;
        LIN_TRY(lin_pronouncer_find(&o->pronouncer, word->word, word->n, which, &labels, &n, err));
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
        lin_spelling_settle(&word, o->pronouncer.dictionary);
        LIN_TRY(add_word(o, &word, w, err));
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

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

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
    while (length > 0 && is_blank(text[length - 1])) length--;
    while (length > 0 && is_blank(*text)) text++, length--;
    if (o->n == LIN_KEYWORDS_MAX) return lin_fail(err, LIN_INVALID, "there are more than %d keywords", LIN_KEYWORDS_MAX);
    lin_status status = pronounce(o, text, length, &w, err);
    if (status == LIN_OK) status = keep(o, text, length, threshold, &w, err);
    return status == LIN_OK ? status : lin_fail_at(err, status, "the keyword '%s'", lin_quote(quoted, text, length));
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

static lin_status open_all(opening *o, double row_seconds, const lin_warnings *warnings, lin_keywords **keywords, lin_error *err)
{
    const lin_decoding_values *v = o->values;
    // A search for words has told what is left out of the lexicon.
    LIN_TRY(lin_pronouncer_open(&o->pronouncer, v, o->phones, "keywords", v->words ? NULL : warnings, err));
    for (int i = 0; i < v->keywords.count; i++) LIN_TRY(add(o, v->keywords.items[i], strlen(v->keywords.items[i]), err));
    if (v->keywords_file) LIN_TRY(add_lines(o, v->keywords_file, err));
    return lin_keywords_create(o->list, o->n, lin_phones_count(o->phones), (int)lround(LONGEST_PAUSE_S / row_seconds), keywords,
                               err);
}

lin_status lin_keywords_open(const lin_decoding_values *values, const lin_phones *phones, double row_seconds,
                             const lin_warnings *warnings, lin_keywords **keywords, lin_error *err)
{
    opening o = {.values = values, .phones = phones};
    *keywords = NULL;
    if (values->keywords.count == 0 && !values->keywords_file) return LIN_OK;
    const lin_status status = open_all(&o, row_seconds, warnings, keywords, err);
    for (int i = 0; i < o.n; i++) {
        lin_free((char *)o.list[i].text);
        lin_free((int *)o.list[i].labels);
    }
    lin_free(o.list);
    lin_pronouncer_close(&o.pronouncer);
    return status;
}
