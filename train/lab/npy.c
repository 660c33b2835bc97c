// npy.c - writing and reading .npy files; see npy.h.

#include "train/lab/npy.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/textfile.h"

enum {
    HEADER_BYTES = 128, // of the files written here
    MAX_HEADER = 65535  // of those read: the most that version 1 can have
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

// Makes JSON of a Python dictionary of strings, truth values and tuples, byte by byte, so that places in it stay the same.
// Strings stay as they are; escapes, and quotes of the other kind, become '?'.
static void make_json(char *text, size_t n)
{
    char *comma = NULL; // if nothing but blanks is behind it
    char quote = 0;     // that ends the present string
    for (char *c = text; c < text + n; c++) {
        if (quote) {
            if (*c == quote) {
                *c = '"';
                quote = 0;
            } else if (*c == '\\' || *c == '"') {
                const int escapes = *c == '\\' && c + 1 < text + n;
                *c = '?';
                if (escapes) *++c = '?';
            }
            continue;
        }
        if (*c == '\'' || *c == '"') quote = *c;
        if (quote) *c = '"';
        else if (*c == '(') *c = '[';
        else if (*c == ')') *c = ']';
        else if (*c == 'T' || *c == 'F') *c = lin_lower(*c);
        if (comma && (*c == ']' || *c == '}')) *comma = ' ';
        if (!lin_is_blank(*c)) comma = *c == ',' ? c : NULL;
    }
}

// n_data: bytes behind the header.
static lin_status read_header(const char *name, const cJSON *header, size_t place, size_t n_data, size_t *T, int *D,
                              lin_error *err)
{
    const cJSON *descr = cJSON_GetObjectItemCaseSensitive(header, "descr"),
                *fortran = cJSON_GetObjectItemCaseSensitive(header, "fortran_order"),
                *shape = cJSON_GetObjectItemCaseSensitive(header, "shape");
    size_t size[2] = {0, 1};
    const int rank = cJSON_GetArraySize(shape);
    if (cJSON_IsArray(descr)) return lin_fail(err, LIN_UNSUPPORTED, "%s: a structured type; must be 32-bit floats", name);
    int good = cJSON_GetArraySize(header) == 3 && cJSON_IsString(descr) && cJSON_IsBool(fortran) && cJSON_IsArray(shape);
    for (int i = 0; i < rank && i < 2 && good; i++) good = lin_json_size(cJSON_GetArrayItem(shape, i), &size[i]);
    if (!good) return lin_fail(err, LIN_FORMAT, "%s: its .npy header is damaged near byte %zu", name, place);
    if (strcmp(descr->valuestring, "<f4") != 0) {
        for (char *c = descr->valuestring; *c; c++)
            if (*c < ' ' || *c > '~') *c = '?';
        return lin_fail(err, LIN_UNSUPPORTED, "%s has numbers of type '%.15s'; must be 32-bit floats: x.astype('<f4')", name,
                        descr->valuestring);
    }
    if (cJSON_IsTrue(fortran))
        return lin_fail(err, LIN_UNSUPPORTED, "%s is in Fortran order; must be C order: numpy.ascontiguousarray(x)", name);
    if (rank < 1 || rank > 2) return lin_fail(err, LIN_UNSUPPORTED, "%s has %d dimensions; must be 1 or 2", name, rank);
    if (size[1] < 1 || size[1] > INT_MAX) return lin_fail(err, LIN_FORMAT, "%s: a matrix of %zu columns", name, size[1]);
    if (size[0] > n_data / sizeof(float) / size[1])
        return lin_fail(err, LIN_FORMAT, "%s is truncated: its header gives %zu x %zu numbers; the file has %zu", name, size[0],
                        size[1], n_data / sizeof(float));
    *T = size[0];
    *D = (int)size[1];
    return LIN_OK;
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
    if (length > MAX_HEADER)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: an .npy header of %zu bytes, as of a structured type; must be 32-bit floats",
                        name, length);
    char *text = lin_text_copy((const char *)bytes + start, length);
    if (!text) return lin_no_memory(err, name, length);
    cJSON *header;
    size_t end;
    make_json(text, length);
    lin_status status = lin_json_parse_value(text, length, &header, &end);
    if (status == LIN_NO_MEMORY) lin_no_memory(err, name, length);
    else status = read_header(name, header, start + end, n_bytes - start - length, T, D, err);
    *offset = start + length;
    cJSON_Delete(header);
    lin_free(text);
    return status;
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
