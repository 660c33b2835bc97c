// The block of a model as a file: layout, checksums, writing, mapping.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/ngram_block.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "models are mapped from little-endian files");

/* ---- layout ---------------------------------------------------------------------------------------------------------------- */

enum { LINE = 64, ROOM = 8 }; // sections begin at multiples of LINE; the last field of one may be read as part of 8 bytes

static size_t section(size_t *used, size_t bytes)
{
    size_t at = *used;
    *used = (at + bytes + LINE - 1) / LINE * LINE;
    return at;
}

static size_t bits_section(size_t *used, uint64_t n, unsigned width)
{
    return section(used, (size_t)((n * width + 7) / 8) + ROOM);
}

void lin_ngram_lay_out(lin_ngram *lm)
{
    size_t used = LIN_NGRAM_HEADER;
    uint32_t states = 1;
    lm->n_words = lm->levels[1].count;
    lm->offsets_at = section(&used, 4 * (size_t)lm->n_words);
    lm->text_at = section(&used, lm->text_bytes);
    for (int k = 1; k <= lm->order; k++) {
        lin_ngram_level *level = &lm->levels[k];
        int last = k == lm->order;
        level->first_state = states;
        level->word_bits = k > 1 ? lin_ngram_width(lm->n_words - 1) : 0;
        level->gram_bits = level->word_bits + level->logp_bits;
        level->first_bits = last ? 0 : lin_ngram_width(lm->levels[k + 1].count);
        level->link_bits = last ? 0 : lin_ngram_width(states - 1);
        level->inner_bits = level->first_bits + level->backoff_bits + level->link_bits;
        level->logp_at = section(&used, (size_t)4 << level->logp_bits);
        level->grams_at = bits_section(&used, level->count, level->gram_bits);
        if (last) continue;
        level->rank_at = section(&used, ((size_t)level->count + 63) / 64 * 12);
        level->backoff_at = section(&used, (size_t)4 << level->backoff_bits);
        level->inner_at = bits_section(&used, (uint64_t)level->inner + 1, level->inner_bits);
        states += level->inner;
    }
    lm->n_states = states;
    lm->size = used;
}

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

static lin_status read_header(lin_ngram *lm, const char *name, lin_error *err)
{
    const unsigned char *bytes = lm->bytes;
    size_t size = lm->size;
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
    if (lm->size != size || word_of(bytes + LIN_NGRAM_AT_SIZE) != size)
        return lin_fail(err, LIN_FORMAT,
                        "%s: %zu bytes long, but its header requires %zu; the file is cut or damaged, make it again", name, size,
                        lm->size);
    return LIN_OK;
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
    lin_status status = read_header(lm, name, err);
    if (status != LIN_OK) return status;
    if (hash_of(lm->bytes + LIN_NGRAM_HEADER, lm->size - LIN_NGRAM_HEADER) != word_of(lm->bytes + LIN_NGRAM_AT_DATA_HASH))
        return damaged(name, "its checksum is wrong", err);
    if (lm->bytes[lm->text_at + lm->text_bytes - 1]) return damaged(name, "its last word has no end", err);
    for (int k = 1; k <= lm->order; k++) {
        const lin_ngram_level *level = &lm->levels[k];
        if (!good_numbers(lm->bytes + level->logp_at, level->logp_bits, 0) ||
            (k < lm->order && !good_numbers(lm->bytes + level->backoff_at, level->backoff_bits, LIN_NGRAM_LARGEST)))
            return damaged(name, "a probability or back-off weight is out of range", err);
    }
    lin_ngram_find_special(lm);
    return LIN_OK;
}

// The model of a block, which it owns; on failure the block is freed.
static lin_status adopt(unsigned char *block, size_t n, const char *name, lin_ngram **out, lin_error *err)
{
    lin_ngram *lm = lin_calloc(1, sizeof *lm);
    if (!lm) {
        lin_free(block);
        return lin_no_memory(err, name, sizeof *lm);
    }
    lm->bytes = block;
    lm->size = n;
    lin_status status = attach(lm, name, err);
    if (status != LIN_OK) {
        lin_ngram_destroy(lm);
        return status;
    }
    *out = lm;
    return LIN_OK;
}

lin_status lin_ngram_unpack(const void *bytes, size_t n, const char *name, lin_ngram **out, lin_error *err)
{
    *out = NULL;
    unsigned char *block = lin_alloc(n, 1);
    if (!block) return lin_no_memory(err, name, n);
    if (n) memcpy(block, bytes, n);
    return adopt(block, n, name, out, err);
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

size_t lin_ngram_most_copied = (size_t)4 << 20;

static lin_status read_file(int file, size_t size, const char *path, lin_ngram **out, lin_error *err)
{
    unsigned char *block = lin_alloc(size, 1);
    if (!block) return lin_no_memory(err, path, size);
    size_t at = 0;
    while (at < size) {
        const ssize_t n = pread(file, block + at, size - at, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            lin_free(block);
            return lin_fail(err, LIN_IO, "cannot read %s: %s", path, n < 0 ? strerror(errno) : "it became shorter");
        }
        at += (size_t)n;
    }
    return adopt(block, size, path, out, err);
}

static lin_status map_file(int file, size_t size, const char *path, lin_ngram **out, lin_error *err)
{
    lin_ngram *lm = lin_calloc(1, sizeof *lm);
    if (!lm) return lin_no_memory(err, path, sizeof *lm);
    lin_file_map map;
    lin_status status = lin_file_map_descriptor(file, size, path, &map, err);
    if (status != LIN_OK) {
        lin_free(lm);
        return status;
    }
    lm->bytes = map.bytes;
    lm->mapped = 1;
    lm->size = size;
    status = attach(lm, path, err);
    if (status != LIN_OK) {
        lm->size = size;
        lin_ngram_destroy(lm);
        return status;
    }
    *out = lm;
    return LIN_OK;
}

lin_status lin_ngram_open(const char *path, lin_ngram **lm, lin_error *err)
{
    char magic[8];
    struct stat info;
    *lm = NULL;
    int file;
    lin_status opened = lin_file_open_input(path, &file, err);
    if (opened != LIN_OK) return opened;
    if (!fstat(file, &info) && S_ISREG(info.st_mode) && pread(file, magic, 8, 0) == 8 && !memcmp(magic, LIN_NGRAM_MAGIC, 8)) {
        const size_t size = (size_t)info.st_size;
        lin_status status =
            size <= lin_ngram_most_copied ? read_file(file, size, path, lm, err) : map_file(file, size, path, lm, err);
        close(file);
        return status;
    }
    close(file);
    char *text;
    size_t n;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status != LIN_OK) return status;
    int packed = n >= 8 && !memcmp(text, LIN_NGRAM_MAGIC, 8); // from a pipe, or compressed
    status = packed ? lin_ngram_unpack(text, n, path, lm, err) : lin_ngram_parse(text, n, path, lm, err);
    lin_free(text);
    return status;
}

lin_status lin_ngram_write(const lin_ngram *lm, const char *path, lin_error *err)
{
    lin_file_writer *file;
    lin_status status = lin_file_open(path, LIN_FILE_STREAM, &file, err);
    if (status != LIN_OK) return status;
    status = lin_file_write(file, lm->bytes, lm->size, err);
    if (status == LIN_OK) return lin_file_commit(file, err);
    lin_file_abort(file);
    return status;
}
