// npy.c - writing and reading .npy files; see npy.h.

#include "train/lab/npy.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum {
    HEADER_BYTES = 128, // of the files written here
    MAX_DIMENSIONS = 2
};

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written and read as they are");

struct lin_npy_writer {
    lin_file_writer *file;
    int D;
    size_t T;
};

static void make_header(const lin_npy_writer *w, unsigned char header[HEADER_BYTES])
{
    memset(header, ' ', HEADER_BYTES);
    memcpy(header, magic, sizeof magic);
    header[6] = 1;
    header[7] = 0;
    header[8] = (HEADER_BYTES - 10) & 0xff;
    header[9] = (HEADER_BYTES - 10) >> 8;
    int n = snprintf((char *)header + 10, HEADER_BYTES - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %d), }",
                     w->T, w->D);
    header[10 + n] = ' '; // replaces snprintf's terminator
    header[HEADER_BYTES - 1] = '\n';
}

void lin_npy_abandon(lin_npy_writer *w)
{
    if (!w) return;
    lin_file_abort(w->file);
    lin_free(w);
}

lin_status lin_npy_create(const char *path, int D, lin_npy_writer **out, lin_error *err)
{
    unsigned char header[HEADER_BYTES];
    *out = NULL;
    if (D < 1) return lin_fail(err, LIN_INVALID, "cannot write %s: a matrix of %d columns", path, D);
    lin_npy_writer *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, path, sizeof *w);
    w->D = D;
    lin_status status = lin_file_open(path, LIN_FILE_STREAM, &w->file, err);
    if (status == LIN_OK && !lin_file_can_seek(w->file))
        status =
            lin_fail(err, LIN_IO, "cannot write %s: it is a pipe, and the header of a matrix is written last; give a file", path);
    make_header(w, header);
    if (status == LIN_OK) status = lin_file_write(w->file, header, sizeof header, err);
    if (status != LIN_OK) {
        lin_npy_abandon(w);
        return status;
    }
    *out = w;
    return LIN_OK;
}

lin_status lin_npy_append(lin_npy_writer *w, const float *rows, size_t n, lin_error *err)
{
    LIN_TRY(lin_file_write(w->file, rows, n * (size_t)w->D * sizeof *rows, err));
    w->T += n;
    return LIN_OK;
}

static lin_status complete(lin_npy_writer *w, lin_error *err)
{
    unsigned char header[HEADER_BYTES];
    make_header(w, header);
    return lin_file_patch(w->file, 0, header, sizeof header, err);
}

lin_status lin_npy_close(lin_npy_writer *w, lin_error *err)
{
    lin_status status = complete(w, err);
    if (status == LIN_OK) {
        status = lin_file_commit(w->file, err);
        w->file = NULL;
    }
    lin_npy_abandon(w);
    return status;
}

lin_status lin_npy_keep(lin_npy_writer *w, char *name, size_t capacity, lin_error *err)
{
    *name = 0;
    lin_status status = w->T ? complete(w, err) : LIN_OK;
    if (status == LIN_OK && w->T) {
        status = lin_file_keep(w->file, name, capacity, err);
        w->file = NULL;
    }
    lin_npy_abandon(w);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

// The header is a Python dictionary literal of three entries. `at` never passes `end`.
typedef struct cursor {
    const unsigned char *at, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) c->at++;
}

static int take_char(cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != (unsigned char)wanted) return 0;
    c->at++;
    return 1;
}

// A quoted string without escapes into text (truncated without an error: then it matches nothing). Returns 0 if there is none.
static int take_string(cursor *c, char *text, size_t size)
{
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return 0;
    unsigned char quote = *c->at++;
    size_t n = 0;
    for (; c->at < c->end && *c->at != quote; c->at++)
        if (n + 1 < size) text[n++] = (char)*c->at;
    text[n] = 0;
    if (c->at == c->end) return 0;
    c->at++;
    return 1;
}

static int take_word(cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return 0;
    c->at += n;
    return 1;
}

static int take_number(cursor *c, size_t *value)
{
    skip_space(c);
    const unsigned char *start = c->at;
    size_t v = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        size_t digit = (size_t)(*c->at - '0');
        if (v > (SIZE_MAX - digit) / 10) return 0;
        v = v * 10 + digit;
    }
    *value = v;
    return c->at > start;
}

// (), (5,), (5, 6): sizes into shape, their number into *rank; more than MAX_DIMENSIONS are counted but not stored.
static int take_shape(cursor *c, size_t *shape, int *rank)
{
    *rank = 0;
    if (!take_char(c, '(')) return 0;
    while (!take_char(c, ')')) {
        size_t size;
        if (!take_number(c, &size)) return 0;
        if (*rank < MAX_DIMENSIONS) shape[*rank] = size;
        if (*rank < 100) ++*rank;
        if (take_char(c, ',')) continue;
        if (!take_char(c, ')')) return 0;
        break;
    }
    return 1;
}

lin_status lin_npy_parse(const char *name, const unsigned char *bytes, size_t n_bytes, size_t *offset, size_t *T, int *D,
                         lin_error *err)
{
    if (n_bytes < 10 || memcmp(bytes, magic, sizeof magic) != 0)
        return lin_fail(err, LIN_FORMAT, "%s is not a NumPy .npy file: its first bytes are not \\x93NUMPY", name);
    int version = bytes[6];
    if (version < 1 || version > 3)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: .npy version %d.%d is unknown", name, version, bytes[7]);
    size_t start = version == 1 ? 10 : 12, length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1) {
        if (n_bytes < 12) return lin_fail(err, LIN_FORMAT, "%s ends inside its .npy header", name);
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (length > n_bytes - start)
        return lin_fail(err, LIN_FORMAT, "%s: its .npy header of %zu bytes is longer than the file", name, length);
    cursor c = {bytes + start, bytes + start + length};
    char descr[16] = "", key[32];
    size_t shape[MAX_DIMENSIONS] = {0};
    int rank = -1, fortran = -1, ok = take_char(&c, '{');
    while (ok && !take_char(&c, '}')) {
        ok = take_string(&c, key, sizeof key) && take_char(&c, ':');
        if (!ok) break;
        if (strcmp(key, "descr") == 0) {
            skip_space(&c);
            if (c.at < c.end && *c.at == '[')
                return lin_fail(err, LIN_UNSUPPORTED, "%s: a structured type; must be 32-bit floats", name);
            ok = take_string(&c, descr, sizeof descr);
        } else if (strcmp(key, "fortran_order") == 0) {
            fortran = take_word(&c, "True") ? 1 : take_word(&c, "False") ? 0 : -1;
            ok = fortran >= 0;
        } else if (strcmp(key, "shape") == 0) {
            ok = take_shape(&c, shape, &rank);
        } else {
            ok = 0;
        }
        if (ok && take_char(&c, ',')) continue;
        ok = ok && take_char(&c, '}');
        break;
    }
    if (!ok || !descr[0] || fortran < 0 || rank < 0)
        return lin_fail(err, LIN_FORMAT, "%s: its .npy header is damaged near byte %zu", name, (size_t)(c.at - bytes));
    for (char *p = descr; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
    if (strcmp(descr, "<f4") != 0)
        return lin_fail(err, LIN_UNSUPPORTED, "%s has numbers of type '%s'; must be 32-bit floats: x.astype('<f4')", name, descr);
    if (fortran)
        return lin_fail(err, LIN_UNSUPPORTED, "%s is in Fortran order; must be C order: numpy.ascontiguousarray(x)", name);
    if (rank < 1 || rank > 2) return lin_fail(err, LIN_UNSUPPORTED, "%s has %d dimensions; must be 1 or 2", name, rank);
    size_t columns = rank == 2 ? shape[1] : 1;
    if (columns < 1 || columns > INT_MAX) return lin_fail(err, LIN_FORMAT, "%s: a matrix of %zu columns", name, columns);
    size_t held = (n_bytes - start - length) / sizeof(float);
    if (shape[0] > held / columns)
        return lin_fail(err, LIN_FORMAT, "%s is truncated: its header gives %zu x %zu numbers; the file has %zu", name,
                        shape[0], columns, held);
    *offset = start + length;
    *T = shape[0];
    *D = (int)columns;
    return LIN_OK;
}

static lin_status read_map(const lin_file_map *map, const char *path, float **rows, size_t *T, int *D, lin_error *err)
{
    size_t offset;
    LIN_TRY(lin_npy_parse(path, map->bytes, map->size, &offset, T, D, err));
    const size_t count = *T * (size_t)*D;
    *rows = lin_alloc(count, sizeof **rows);
    if (!*rows) return lin_no_memory(err, path, count * sizeof **rows);
    if (count) memcpy(*rows, map->bytes + offset, count * sizeof **rows);
    return LIN_OK;
}

lin_status lin_npy_read(const char *path, float **rows, size_t *T, int *D, lin_error *err)
{
    lin_file_map map;
    *rows = NULL;
    LIN_TRY(lin_file_map_open(path, &map, err));
    const lin_status status = read_map(&map, path, rows, T, D, err);
    lin_file_map_close(&map);
    return status;
}
