// ngram_file.c - ARPA text that is read, and the packed file; see ngram_file.h.

#include "lexicon/ngram_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/textfile.h"

// ARPA text:
//
//   any text, \data\, "ngram 1=72547" for each order, then for each order "\1-grams:" and lines "log10(p) words
//   [log10(back-off)]", \end\. Fields are separated by blanks and tabs; a missing back-off weight is 0 (SRILM leaves them out),
//   and those of the highest order may be written if they are 0.

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

static float to_natural(double log10_value)
{
    return (float)((log10_value < log10_zero ? log10_zero : log10_value) * ln10) + 0.0f; // never -0
}

static lin_status read_logp(const reader *r, const char *text, size_t n, float *logp, lin_error *err)
{
    char quote[LIN_QUOTE];
    double value;
    if (!lin_text_number(text, n, &value))
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
    if (!lin_text_number(text, n, &value) || value > -log10_zero)
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

static int next_line(reader *r) // the next line that is not blank
{
    const char *at, *field;
    size_t n;
    while (lin_lines_next(&r->lines))
        if (at = r->lines.text, lin_field_next(&at, r->lines.text + r->lines.n, &field, &n)) return 1;
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
        return FAIL_HERE(r, "the line counts %llu-grams, but %d-grams were expected",
                         (unsigned long long)order, r->tables.order + 1);
    if (order > LIN_NGRAM_MAX_ORDER)
        return lin_fail(err, LIN_UNSUPPORTED, "%s:%d: the model has n-grams of more than %d words, which this program "
                                              "cannot read", r->name, r->lines.number, LIN_NGRAM_MAX_ORDER);
    uint64_t left = (uint64_t)(r->lines.end - r->lines.text), shortest = 2 * order + 2; // "0 a b\n"
    if (count > left / shortest + 1 || count > LIN_NGRAM_MAX_COUNT)
        return FAIL_HERE(r, "%llu %llu-grams are announced, but the rest of the file can hold only %llu; is it truncated?",
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
        if (!next_line(r)) return FAIL_HERE(r, "the file ends after %d counts; it is truncated", r->tables.order);
        if (r->lines.text[0] == '\\') break;
        LIN_TRY(read_announcement(r, err));
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
    LIN_TRY(lin_symbols_add(&r->tables.words, text, n, &word, err));
    return word < count ? FAIL_HERE(r, "the word '%s' appears twice", lin_quote(quote, text, n)) : LIN_OK;
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
    LIN_TRY(read_logp(r, field, n, &table->logp[i], err));
    for (int place = 0; place < k; place++) {
        if (!lin_field_next(&at, end, &field, &n))
            return FAIL_HERE(r, "the line has %d of the %d words of a %d-gram", place, k, k);
        LIN_TRY(k == 1 ? add_word(r, field, n, err)
                       : find_word(r, field, n, place, &table->words[i * (size_t)k + (size_t)place], err));
    }
    const int is_highest = k == r->tables.order;
    float backoff = 0;
    if (lin_field_next(&at, end, &field, &n)) LIN_TRY(read_backoff(r, field, n, &backoff, err));
    if (!is_highest) table->backoff[i] = backoff;
    // Some programs write a weight of 0, which has no effect, there too.
    if (is_highest && (backoff < 0 || backoff > 0))
        return FAIL_HERE(r, "this %d-gram has a back-off weight; n-grams of the highest order have none, or 0", k);
    if (lin_field_next(&at, end, &field, &n)) return FAIL_HERE(r, "there is text after the back-off weight of a %d-gram", k);
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
    LIN_TRY(make_table(r, k, err));
    lin_ngram_table *table = &r->tables.tables[k];
    r->begins[k] = r->lines;
    for (;;) {
        if (!next_line(r))
            return FAIL_HERE(r, "the file ends after %u of %llu %d-grams and without \\end\\; it is truncated",
                             (unsigned)table->count, (unsigned long long)r->announced[k], k);
        if (r->lines.text[0] == '\\') break;
        if (table->count == r->announced[k])
            return FAIL_HERE(r, "there are more %d-grams than the %llu that were announced",
                             k, (unsigned long long)r->announced[k]);
        LIN_TRY(read_gram(r, k, err));
    }
    if (table->count == r->announced[k]) return LIN_OK;
    return FAIL_HERE(r, "%llu %d-grams were announced, but there are %u", (unsigned long long)r->announced[k], k,
                     (unsigned)table->count);
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
    LIN_TRY(read_head(r, err));
    for (int k = 1; k <= r->tables.order; k++) LIN_TRY(read_section(r, k, err));
    if (!line_is(&r->lines, "\\end\\"))
        return FAIL_HERE(r, "'%s', but '\\end\\' was expected", lin_quote(quote, r->lines.text, r->lines.n));
    const lin_status status = lin_ngram_build(&r->tables, r->name, lm, &fault, err);
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

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "models are mapped from little-endian files");

/* ---- checksums ------------------------------------------------------------------------------------------------------------- */

static uint64_t word_of(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static uint64_t mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    return sum ^ (sum >> 29);
}

// Four independent sums, as fast as memory. n is a multiple of 8.
static uint64_t hash_of(const unsigned char *bytes, size_t n)
{
    uint64_t a = 1, b = 2, c = 3, d = 4;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        a = mix(a, word_of(bytes + i));
        b = mix(b, word_of(bytes + i + 8));
        c = mix(c, word_of(bytes + i + 16));
        d = mix(d, word_of(bytes + i + 24));
    }
    for (; i < n; i += 8) a = mix(a, word_of(bytes + i));
    return mix(mix(mix(mix(n, a), b), c), d);
}

static void put_u32(unsigned char *block, size_t at, uint32_t value) { memcpy(block + at, &value, sizeof value); }
static void put_u64(unsigned char *block, size_t at, uint64_t value) { memcpy(block + at, &value, sizeof value); }

void lin_ngram_seal(const lin_ngram *lm, unsigned char *block)
{
    memset(block, 0, LIN_NGRAM_HEADER);
    memcpy(block, LIN_NGRAM_MAGIC, 8);
    put_u32(block, LIN_NGRAM_AT_VERSION, LIN_NGRAM_VERSION);
    put_u32(block, LIN_NGRAM_AT_ORDER, (uint32_t)lm->order);
    put_u64(block, LIN_NGRAM_AT_SIZE, lm->size);
    put_u64(block, LIN_NGRAM_AT_TEXT, lm->text_bytes);
    for (int k = 1; k <= lm->order; k++) {
        const lin_ngram_level *level = &lm->levels[k];
        size_t at = LIN_NGRAM_AT_LEVELS + 16 * (size_t)(k - 1);
        put_u32(block, at, level->count);
        put_u32(block, at + 4, level->inner);
        put_u32(block, at + 8, level->logp_bits);
        put_u32(block, at + 12, level->backoff_bits);
    }
    lin_ngram_put_checksums(block, lm->size);
}

void lin_ngram_put_checksums(unsigned char *block, size_t size)
{
    put_u64(block, LIN_NGRAM_AT_DATA_HASH, hash_of(block + LIN_NGRAM_HEADER, size - LIN_NGRAM_HEADER));
    put_u64(block, LIN_NGRAM_AT_HEADER_HASH, hash_of(block, LIN_NGRAM_AT_HEADER_HASH));
}

/* ---- checks ---------------------------------------------------------------------------------------------------------------- */

static lin_status damaged(const char *name, const char *what, lin_error *err)
{
    return lin_fail(err, LIN_FORMAT, "%s: %s; the file is damaged, make it again from its ARPA file", name, what);
}

// Its layout must give the size of the block, which lm->size keeps in any case: it is released with it.
static lin_status read_header(lin_ngram *lm, const char *name, lin_error *err)
{
    const unsigned char *bytes = lm->bytes;
    const size_t size = lm->size;
    if (size < LIN_NGRAM_HEADER || memcmp(bytes, LIN_NGRAM_MAGIC, 8) != 0)
        return lin_fail(err, LIN_FORMAT, "%s: not a packed language model", name);
    uint32_t version = lin_ngram_u32(bytes + LIN_NGRAM_AT_VERSION);
    if (version != LIN_NGRAM_VERSION)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: a packed language model of version %u; this program reads version %d", name,
                        (unsigned)version, LIN_NGRAM_VERSION);
    if (hash_of(bytes, LIN_NGRAM_AT_HEADER_HASH) != word_of(bytes + LIN_NGRAM_AT_HEADER_HASH))
        return damaged(name, "the checksum of its header is wrong", err);
    uint32_t order = lin_ngram_u32(bytes + LIN_NGRAM_AT_ORDER);
    uint64_t text = word_of(bytes + LIN_NGRAM_AT_TEXT), states = 1;
    if (order < 1 || order > LIN_NGRAM_MAX_ORDER || text < 1 || text > LIN_NGRAM_MAX_COUNT)
        return damaged(name, "its order or the length of its words is out of range", err);
    for (uint32_t k = 1; k <= order; k++) {
        const unsigned char *at = bytes + LIN_NGRAM_AT_LEVELS + 16 * (size_t)(k - 1);
        lin_ngram_level *level = &lm->levels[k];
        level->count = lin_ngram_u32(at);
        level->inner = lin_ngram_u32(at + 4);
        level->logp_bits = lin_ngram_u32(at + 8);
        level->backoff_bits = lin_ngram_u32(at + 12);
        states += level->inner;
        if (level->count > LIN_NGRAM_MAX_COUNT || level->inner > level->count || (k == 1 && !level->count) ||
            (k == order && (level->inner || level->backoff_bits)) || level->logp_bits > LIN_NGRAM_CODE_BITS ||
            level->backoff_bits > LIN_NGRAM_CODE_BITS || states > LIN_NGRAM_MAX_COUNT)
            return damaged(name, "a number of its n-grams is out of range", err);
    }
    lm->order = (int)order;
    lm->text_bytes = text;
    lin_ngram_lay_out(lm);
    const size_t required = lm->size;
    lm->size = size;
    if (required == size && word_of(bytes + LIN_NGRAM_AT_SIZE) == size) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s: %zu bytes, but its header gives %zu; the file is truncated or damaged, make it again",
                    name, size, required);
}

static int good_numbers(const unsigned char *book, unsigned bits, float most)
{
    for (size_t i = 0; i < (size_t)1 << bits; i++) {
        float value = lin_ngram_float(book, i);
        if (!(value >= -LIN_NGRAM_LARGEST && value <= most)) return 0; // NaN too
    }
    return 1;
}

// The conditions for every block that queries read: the size is that of its header, words end, numbers are finite. All other
// values are limited to their range where they are read.
static lin_status attach(lin_ngram *lm, const char *name, lin_error *err)
{
    LIN_TRY(read_header(lm, name, err));
    if (hash_of(lm->bytes + LIN_NGRAM_HEADER, lm->size - LIN_NGRAM_HEADER) != word_of(lm->bytes + LIN_NGRAM_AT_DATA_HASH))
        return damaged(name, "its checksum is wrong", err);
    if (lm->bytes[lm->text_at + lm->text_bytes - 1]) return damaged(name, "its last word does not end", err);
    for (int k = 1; k <= lm->order; k++) {
        const lin_ngram_level *level = &lm->levels[k];
        if (!good_numbers(lm->bytes + level->logp_at, level->logp_bits, 0) ||
            (k < lm->order && !good_numbers(lm->bytes + level->backoff_at, level->backoff_bits, LIN_NGRAM_LARGEST)))
            return damaged(name, "a probability or back-off weight is out of range", err);
    }
    lin_ngram_find_special(lm);
    return LIN_OK;
}

// The model of a block, which it owns; on failure the block is released.
static lin_status adopt(const unsigned char *block, size_t n, int mapped, const char *name, lin_ngram **out, lin_error *err)
{
    lin_ngram *lm = lin_calloc(1, sizeof *lm);
    if (!lm) {
        if (mapped) lin_file_map_close(&(lin_file_map){block, n});
        else lin_free((void *)(uintptr_t)block);
        return lin_no_memory(err, name, sizeof *lm);
    }
    *lm = (lin_ngram){.bytes = block, .size = n, .mapped = mapped};
    const lin_status status = attach(lm, name, err);
    if (status == LIN_OK) *out = lm;
    else lin_ngram_destroy(lm);
    return status;
}

lin_status lin_ngram_unpack(const void *bytes, size_t n, const char *name, lin_ngram **out, lin_error *err)
{
    *out = NULL;
    unsigned char *block = lin_alloc(n, 1);
    if (!block) return lin_no_memory(err, name, n);
    if (n) memcpy(block, bytes, n);
    return adopt(block, n, 0, name, out, err);
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

lin_status lin_ngram_open(const char *path, lin_ngram **lm, lin_error *err)
{
    char magic[8];
    struct stat info;
    int file;
    *lm = NULL;
    LIN_TRY(lin_file_open_input(path, &file, err));
    if (!fstat(file, &info) && S_ISREG(info.st_mode) && pread(file, magic, 8, 0) == 8 && !memcmp(magic, LIN_NGRAM_MAGIC, 8)) {
        lin_file_map map;
        const lin_status status = lin_file_map_descriptor(file, (size_t)info.st_size, path, &map, err);
        close(file);
        return status == LIN_OK ? adopt(map.bytes, map.size, 1, path, lm, err) : status;
    }
    close(file);
    char *text;
    size_t n;
    LIN_TRY(lin_text_read(path, &text, &n, err));
    if (n >= 8 && !memcmp(text, LIN_NGRAM_MAGIC, 8)) // packed, from a pipe or compressed
        return adopt((unsigned char *)text, n, 0, path, lm, err);
    const lin_status status = lin_ngram_parse(text, n, path, lm, err);
    lin_free(text);
    return status;
}

lin_status lin_ngram_write(const lin_ngram *lm, const char *path, lin_error *err)
{
    lin_file_writer *file;
    LIN_TRY(lin_file_open(path, LIN_FILE_STREAM, &file, err));
    const lin_status status = lin_file_write(file, lm->bytes, lm->size, err);
    if (status == LIN_OK) return lin_file_commit(file, err);
    lin_file_abort(file);
    return status;
}
