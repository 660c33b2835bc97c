// Reads ARPA text into tables of n-grams, and writes it.
//
//   any text, \data\, "ngram 1=72547" for each order, then for each order "\1-grams:" and lines "log10(p) words
//   [log10(back-off)]", \end\. Fields are separated by blanks and tabs; a missing back-off weight is 0 (SRILM leaves them out),
//   and those of the highest order may be written if they are 0.

#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/ngram_block.h"

static const double ln10 = 2.302585092994045684;

// As in SRILM, a probability of 0 is written as -99. Rounding may make a logarithm slightly larger than 0.
static const double log10_zero = -99, log10_tolerance = 1e-3;

typedef struct remembered {
    const char *text;
    size_t n;
    uint32_t word;
} remembered;

typedef struct reader {
    lin_lines lines;
    const char *name;
    lin_ngram_tables tables;
    uint64_t announced[LIN_NGRAM_MAX_ORDER + 1];
    lin_lines begins[LIN_NGRAM_MAX_ORDER + 1]; // beginning of each section, to find the line of an n-gram
    remembered before[LIN_NGRAM_MAX_ORDER];    // the words of the last line: the next line often has some of them
} reader;

// An error at the current line; the arguments follow "%s:%d: ".
#define FAIL_HERE(r, fmt, ...) lin_fail(err, LIN_FORMAT, "%s:%d: " fmt, (r)->name, (r)->lines.number, __VA_ARGS__)

/* ---- numbers --------------------------------------------------------------------------------------------------------------- */

// "-1.2345", the usual form: an integer below 2^53 and a power of ten below 10^23, whose quotient is the nearest double.
static int read_number(const char *text, size_t n, double *value)
{
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    size_t sign = n && text[0] == '-', decimals = 0;
    uint64_t digits = 0;
    int point = 0;
    if (n - sign < 2 || n - sign > 16) return lin_text_number(text, n, value);
    for (size_t i = sign; i < n; i++) {
        if (text[i] == '.' && !point) {
            point = 1;
            decimals = n - i - 1;
        } else if (lin_is_digit(text[i])) {
            digits = digits * 10 + (uint64_t)(text[i] - '0');
        } else {
            return lin_text_number(text, n, value);
        }
    }
    *value = (double)digits / powers[decimals];
    if (sign) *value = -*value;
    return 1;
}

static float to_natural(double log10_value)
{
    return (float)((log10_value < log10_zero ? log10_zero : log10_value) * ln10) + 0.0f; // never -0
}

static lin_status read_logp(const reader *r, const char *text, size_t n, float *logp, lin_error *err)
{
    char quote[LIN_QUOTE];
    double value;
    if (!read_number(text, n, &value))
        return FAIL_HERE(r, "'%s' is not a number; a line begins with the logarithm to base 10 of a probability, -99 for 0",
                         lin_quote(quote, text, n));
    if (value > log10_tolerance) return FAIL_HERE(r, "'%s' is the logarithm of a probability over 1", lin_quote(quote, text, n));
    *logp = to_natural(value < 0 ? value : 0);
    return LIN_OK;
}

static lin_status read_backoff(const reader *r, const char *text, size_t n, float *backoff, lin_error *err)
{
    char quote[LIN_QUOTE];
    double value;
    if (!read_number(text, n, &value) || value > -log10_zero)
        return FAIL_HERE(r, "'%s' is not a back-off weight (a logarithm to base 10); is there a blank in a word?",
                         lin_quote(quote, text, n));
    *backoff = to_natural(value);
    return LIN_OK;
}

/* ---- the head -------------------------------------------------------------------------------------------------------------- */

// The current line is this word and blanks.
static int line_is(const lin_lines *lines, const char *want)
{
    const char *at = lines->text, *field;
    size_t n, rest;
    return lin_field_next(&at, lines->text + lines->n, &field, &n) && n == strlen(want) && !memcmp(field, want, n) &&
           !lin_field_next(&at, lines->text + lines->n, &field, &rest);
}

static int is_blank(const lin_lines *lines)
{
    const char *at = lines->text, *field;
    size_t n;
    return !lin_field_next(&at, lines->text + lines->n, &field, &n);
}

static int next_line(reader *r) // the next line that is not blank
{
    while (lin_lines_next(&r->lines))
        if (!is_blank(&r->lines)) return 1;
    return 0;
}

static int read_char(const char **at, const char *end, char want)
{
    while (*at < end && (**at == ' ' || **at == '\t')) ++*at;
    if (*at == end || **at != want) return 0;
    ++*at;
    return 1;
}

// Reads digits, at most up to 10^18; 0: there are none.
static int read_count(const char **at, const char *end, uint64_t *count)
{
    const char *begin;
    while (*at < end && (**at == ' ' || **at == '\t')) ++*at;
    *count = 0;
    for (begin = *at; *at < end && lin_is_digit(**at); ++*at)
        if (*count < (uint64_t)1000000000000000000) *count = *count * 10 + (uint64_t)(**at - '0');
    return *at > begin;
}

// "ngram 2=314"
static lin_status read_announcement(reader *r, lin_error *err)
{
    char quote[LIN_QUOTE];
    const char *at = r->lines.text, *end = at + r->lines.n, *field;
    size_t n;
    uint64_t order, count;
    if (!lin_field_next(&at, end, &field, &n) || n != 5 || memcmp(field, "ngram", 5) != 0 || !read_count(&at, end, &order) ||
        !read_char(&at, end, '=') || !read_count(&at, end, &count) || lin_field_next(&at, end, &field, &n))
        return FAIL_HERE(r, "'%s' is not like 'ngram 1=5000'", lin_quote(quote, r->lines.text, r->lines.n));
    if (order != (uint64_t)r->tables.order + 1)
        return FAIL_HERE(r, "the count of %llu-grams in place of %d-grams", (unsigned long long)order, r->tables.order + 1);
    if (order > LIN_NGRAM_MAX_ORDER)
        return lin_fail(err, LIN_UNSUPPORTED, "%s:%d: n-grams of more than %d words", r->name, r->lines.number,
                        LIN_NGRAM_MAX_ORDER);
    uint64_t left = (uint64_t)(r->lines.end - r->lines.text), shortest = 2 * order + 2; // "0 a b\n"
    if (count > left / shortest + 1 || count > LIN_NGRAM_MAX_COUNT)
        return FAIL_HERE(r, "%llu %llu-grams are announced, but the rest of the file can hold only %llu; is it cut?",
                         (unsigned long long)count, (unsigned long long)order, (unsigned long long)(left / shortest));
    r->tables.order = (int)order;
    r->announced[order] = count;
    return LIN_OK;
}

static lin_status read_head(reader *r, lin_error *err)
{
    do {
        if (!next_line(r))
            return lin_fail(err, LIN_FORMAT, "%s: no line '\\data\\': neither an ARPA language model nor a packed one", r->name);
    } while (!line_is(&r->lines, "\\data\\"));
    for (;;) {
        if (!next_line(r)) return FAIL_HERE(r, "the file ends after %d counts; it is cut", r->tables.order);
        if (r->lines.text[0] == '\\') break;
        lin_status status = read_announcement(r, err);
        if (status != LIN_OK) return status;
    }
    if (!r->tables.order) return FAIL_HERE(r, "%s", "no counts of n-grams ('ngram 1=5000') after \\data\\");
    if (!r->announced[1]) return FAIL_HERE(r, "%s", "a model without words");
    return LIN_OK;
}

/* ---- n-grams --------------------------------------------------------------------------------------------------------------- */

static lin_status make_table(reader *r, int k, lin_error *err)
{
    lin_ngram_table *table = &r->tables.tables[k];
    size_t n = (size_t)r->announced[k];
    table->logp = lin_alloc(n, sizeof *table->logp);
    if (k < r->tables.order) table->backoff = lin_alloc(n, sizeof *table->backoff);
    if (k > 1) table->words = lin_alloc(n * (size_t)k, sizeof *table->words);
    if (!table->logp || (k < r->tables.order && !table->backoff) || (k > 1 && !table->words))
        return lin_no_memory(err, r->name, n * (size_t)(k + 2) * 4);
    return LIN_OK;
}

static lin_status add_word(reader *r, const char *text, size_t n, lin_error *err)
{
    char quote[LIN_QUOTE];
    int count = r->tables.words.n, word;
    if (lin_text_find_control(text, n) < n)
        return FAIL_HERE(r, "the word '%s' contains control characters", lin_quote(quote, text, n));
    lin_status status = lin_symbols_add(&r->tables.words, text, n, &word, err);
    if (status == LIN_OK && word < count) return FAIL_HERE(r, "the word '%s' appears twice", lin_quote(quote, text, n));
    return status;
}

static lin_status find_word(reader *r, const char *text, size_t n, int place, uint32_t *word, lin_error *err)
{
    char quote[LIN_QUOTE];
    remembered *before = &r->before[place];
    if (n != before->n || memcmp(text, before->text, n) != 0) {
        int found = lin_symbols_find(&r->tables.words, text, n);
        if (found < 0) return FAIL_HERE(r, "the word '%s' is not among the 1-grams", lin_quote(quote, text, n));
        *before = (remembered){text, n, (uint32_t)found};
    }
    *word = before->word;
    return LIN_OK;
}

static lin_status read_gram(reader *r, int k, lin_error *err)
{
    lin_ngram_table *table = &r->tables.tables[k];
    const char *at = r->lines.text, *end = at + r->lines.n, *field;
    size_t n, i = table->count;
    lin_field_next(&at, end, &field, &n); // the line is not blank
    lin_status status = read_logp(r, field, n, &table->logp[i], err);
    for (int place = 0; place < k && status == LIN_OK; place++) {
        if (!lin_field_next(&at, end, &field, &n)) return FAIL_HERE(r, "%d of the %d words of a %d-gram", place, k, k);
        status = k == 1 ? add_word(r, field, n, err)
                        : find_word(r, field, n, place, &table->words[i * (size_t)k + (size_t)place], err);
    }
    if (status != LIN_OK) return status;
    const int more = lin_field_next(&at, end, &field, &n), is_highest = k == r->tables.order;
    float backoff = 0;
    if (more) status = read_backoff(r, field, n, &backoff, err);
    if (status != LIN_OK) return status;
    if (!is_highest) table->backoff[i] = backoff;
    // Some programs write a weight of 0, which says nothing, there too.
    if (is_highest && (backoff < 0 || backoff > 0))
        return FAIL_HERE(r, "a back-off weight of a %d-gram; those of the highest order have none, or 0", k);
    if (lin_field_next(&at, end, &field, &n)) return FAIL_HERE(r, "text after the back-off weight of a %d-gram", k);
    table->count++;
    return LIN_OK;
}

// Reads a section, from its heading, which is the current line, to the next heading.
static lin_status read_section(reader *r, int k, lin_error *err)
{
    char heading[32], quote[LIN_QUOTE];
    snprintf(heading, sizeof heading, "\\%d-grams:", k);
    if (!line_is(&r->lines, heading))
        return FAIL_HERE(r, "'%s', but '%s' was expected", lin_quote(quote, r->lines.text, r->lines.n), heading);
    lin_status status = make_table(r, k, err);
    lin_ngram_table *table = &r->tables.tables[k];
    r->begins[k] = r->lines;
    while (status == LIN_OK) {
        if (!next_line(r))
            return FAIL_HERE(r, "the file ends after %u of %llu %d-grams and without \\end\\; it is cut", (unsigned)table->count,
                             (unsigned long long)r->announced[k], k);
        if (r->lines.text[0] == '\\') break;
        if (table->count == r->announced[k])
            return FAIL_HERE(r, "more %d-grams than the %llu that were announced", k, (unsigned long long)r->announced[k]);
        status = read_gram(r, k, err);
    }
    if (status == LIN_OK && table->count < r->announced[k])
        return FAIL_HERE(r, "%llu %d-grams were announced, but there are %u", (unsigned long long)r->announced[k], k,
                         (unsigned)table->count);
    return status;
}

// An error found while sorting: finds the line of the n-gram.
static lin_status tell_fault(reader *r, const lin_ngram_fault *fault, lin_error *err)
{
    char quote[LIN_QUOTE];
    const char *at, *field, *begin = NULL;
    size_t n = 0;
    r->lines = r->begins[fault->order];
    for (uint32_t i = 0; i <= fault->index && next_line(r); i++) continue;
    at = r->lines.text;
    for (int i = 0; i <= fault->order && lin_field_next(&at, r->lines.text + r->lines.n, &field, &n); i++)
        if (i == 1) begin = field;
    lin_quote(quote, begin, (size_t)(at - begin));
    if (fault->twice) return FAIL_HERE(r, "the %d-gram '%s' appears twice", fault->order, quote);
    return FAIL_HERE(r, "the %d-gram '%s' has no context: its first %d words are not among the %d-grams", fault->order, quote,
                     fault->order - 1, fault->order - 1);
}

static lin_status read_all(reader *r, lin_ngram **lm, lin_error *err)
{
    char quote[LIN_QUOTE];
    lin_ngram_fault fault;
    lin_status status = read_head(r, err);
    for (int k = 1; k <= r->tables.order && status == LIN_OK; k++) status = read_section(r, k, err);
    if (status != LIN_OK) return status;
    if (!line_is(&r->lines, "\\end\\"))
        return FAIL_HERE(r, "'%s', but '\\end\\' was expected", lin_quote(quote, r->lines.text, r->lines.n));
    status = lin_ngram_build(&r->tables, r->name, lm, &fault, err);
    return fault.order ? tell_fault(r, &fault, err) : status;
}

lin_status lin_ngram_parse(const char *text, size_t n, const char *name, lin_ngram **lm, lin_error *err)
{
    reader r = {.name = name};
    *lm = NULL;
    lin_lines_begin(&r.lines, text, n);
    lin_status status = read_all(&r, lm, err);
    lin_ngram_tables_free(&r.tables);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

typedef struct writer {
    const lin_ngram *lm;
    FILE *file;
    int order; // of the n-grams being written
    uint32_t words[LIN_NGRAM_MAX_ORDER];
} writer;

// With the fewest digits that read back as the same float; the decimal comma of some locales becomes a point.
static void write_number(FILE *file, float natural)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        double value;
        int n = snprintf(text, sizeof text, "%.*g", digits, (double)natural / ln10);
        char *comma = strchr(text, ',');
        if (comma) *comma = '.';
        if (read_number(text, (size_t)n, &value) && to_natural(value) == natural) break;
    }
    fputs(text, file);
}

static void write_gram(const writer *w, uint32_t place)
{
    const lin_ngram *lm = w->lm;
    int k = w->order;
    lin_ngram_state state;
    write_number(w->file, lin_ngram_gram_logp(lm, k, place));
    for (int i = 0; i < k; i++) {
        putc(i ? ' ' : '\t', w->file);
        fputs(lin_ngram_word(lm, (int)w->words[i]), w->file);
    }
    if (k < lm->order && lin_ngram_is_inner(lm, k, place, &state)) {
        putc('\t', w->file);
        write_number(w->file, lin_ngram_backoff(lm, k, state));
    }
    putc('\n', w->file);
}

// The grams of the order below a context of `length` words.
static void write_below(writer *w, int length, lin_ngram_state context)
{
    const lin_ngram *lm = w->lm;
    uint32_t first = 0, end = lm->n_words;
    if (length) lin_ngram_children(lm, length, context, &first, &end);
    for (uint32_t place = first; place < end; place++) {
        lin_ngram_state state;
        w->words[length] = lin_ngram_gram_word(lm, length + 1, place);
        if (length + 1 == w->order) {
            write_gram(w, place);
        } else if (lin_ngram_is_inner(lm, length + 1, place, &state)) {
            write_below(w, length + 1, state);
        }
    }
}

lin_status lin_ngram_write_arpa(const lin_ngram *lm, FILE *file, const char *name, lin_error *err)
{
    writer w = {.lm = lm, .file = file};
    fputs("\\data\\\n", file);
    for (int k = 1; k <= lm->order; k++) fprintf(file, "ngram %d=%u\n", k, (unsigned)lm->levels[k].count);
    for (w.order = 1; w.order <= lm->order; w.order++) {
        fprintf(file, "\n\\%d-grams:\n", w.order);
        write_below(&w, 0, 0);
    }
    fputs("\n\\end\\\n", file);
    if (fflush(file) || ferror(file)) return lin_fail(err, LIN_IO, "cannot write %s", name);
    return LIN_OK;
}
