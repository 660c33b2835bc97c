// snapshots.c - an index of a long recording; see snapshots.h.

#include "linnet/snapshots.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

typedef struct index_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t model;
    double every_s, row_seconds;
    uint64_t n, table;
    uint64_t checksum; // of this header, with 0 here, and of the table
} index_header;

static const char magic[8] = {'L', 'I', 'N', 'S', 'N', 'A', 'P', 'S'};

_Static_assert(sizeof(index_header) == 64 && sizeof(lin_snapshot) == 32, "no gaps");

struct lin_snapshots_writer {
    lin_file_writer *file;
    index_header header;
    lin_snapshot *table;
    size_t capacity;
    uint64_t at;
};

lin_status lin_snapshots_create(const char *path, double every_s, lin_snapshots_writer **out, lin_error *err)
{
    *out = NULL;
    lin_snapshots_writer *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, path, sizeof *w);
    memcpy(w->header.magic, magic, sizeof magic);
    w->header.version = LIN_SNAPSHOTS_VERSION;
    w->header.header_bytes = sizeof w->header;
    w->header.every_s = every_s;
    w->at = sizeof w->header;
    lin_status status = lin_file_create(path, &w->file, err);
    if (status == LIN_OK) status = lin_file_write(w->file, &w->header, sizeof w->header, err); // completed at the end
    if (status != LIN_OK) {
        lin_snapshots_abort(w);
        return status;
    }
    *out = w;
    return LIN_OK;
}

lin_status lin_snapshots_add(lin_snapshots_writer *w, lin_state *s, lin_error *err)
{
    lin_status status = lin_grow(&w->table, &w->capacity, w->header.n + 1, sizeof *w->table, "the table of snapshots", err);
    if (status != LIN_OK) return status;
    lin_state_seal(s);
    status = lin_file_write(w->file, s->bytes, s->n, err);
    if (status != LIN_OK) return status;
    w->table[w->header.n++] = (lin_snapshot){(int64_t)w->at, (int64_t)s->n, s->about.samples, s->about.rows};
    w->at += s->n;
    w->header.model = s->about.model;
    w->header.row_seconds = s->about.row_seconds;
    return LIN_OK;
}

static uint64_t sum_of(const index_header *header, const lin_snapshot *table)
{
    index_header h = *header;
    h.checksum = 0;
    return lin_hash(table, (size_t)h.n * sizeof *table, lin_hash(&h, sizeof h, 0));
}

static void release(lin_snapshots_writer *w)
{
    lin_free(w->table);
    lin_free(w);
}

lin_status lin_snapshots_commit(lin_snapshots_writer *w, lin_error *err)
{
    w->header.table = w->at;
    w->header.checksum = sum_of(&w->header, w->table);
    lin_status status = lin_file_write(w->file, w->table, (size_t)w->header.n * sizeof *w->table, err);
    if (status == LIN_OK) status = lin_file_patch(w->file, 0, &w->header, sizeof w->header, err);
    if (status == LIN_OK) {
        status = lin_file_commit(w->file, err);
    } else {
        lin_file_abort(w->file);
    }
    release(w);
    return status;
}

void lin_snapshots_abort(lin_snapshots_writer *w)
{
    if (!w) return;
    lin_file_abort(w->file);
    release(w);
}

int lin_snapshots_are(const void *bytes, size_t n) { return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0; }

lin_status lin_snapshots_open(const char *path, lin_snapshots *s, lin_error *err)
{
    memset(s, 0, sizeof *s);
    lin_status status = lin_file_map_open(path, &s->map, err);
    if (status != LIN_OK) return status;
    const size_t size = s->map.size;
    index_header h = {.n = 0};
    if (size >= sizeof h) memcpy(&h, s->map.bytes, sizeof h);
    if (!lin_snapshots_are(s->map.bytes, size)) {
        status = lin_fail(err, LIN_FORMAT, "%s is not an index of snapshots", path);
    } else if (size >= sizeof h && h.version != LIN_SNAPSHOTS_VERSION) {
        status = lin_fail(err, LIN_FORMAT, "%s is an index of version %u, this program reads version %d", path, h.version,
                          (int)LIN_SNAPSHOTS_VERSION);
    } else if (h.header_bytes != sizeof h || h.table > size || h.table % 8 != 0 ||
               h.n > (size - h.table) / sizeof(lin_snapshot) || h.n > INT32_MAX || h.table + h.n * sizeof(lin_snapshot) != size ||
               sum_of(&h, (const void *)(s->map.bytes + h.table)) != h.checksum) {
        status = lin_fail(err, LIN_FORMAT, "%s is damaged, or was not finished; make it again with --snapshots", path);
    }
    if (status != LIN_OK) {
        lin_snapshots_close(s);
        return status;
    }
    s->path = path;
    s->table = (const void *)(s->map.bytes + h.table);
    s->n = (int)h.n;
    s->every_s = h.every_s;
    s->row_seconds = h.row_seconds;
    s->model = h.model;
    return LIN_OK;
}

void lin_snapshots_close(lin_snapshots *s)
{
    if (s->map.bytes) lin_file_map_close(&s->map);
    memset(s, 0, sizeof *s);
}

int lin_snapshots_before(const lin_snapshots *s, double seconds)
{
    int from = 0, to = s->n; // end: the first that is too late
    while (from < to) {
        const int middle = from + (to - from) / 2;
        if ((double)s->table[middle].rows * s->row_seconds <= seconds) from = middle + 1;
        else to = middle;
    }
    return from - 1;
}

lin_status lin_snapshots_get(const lin_snapshots *s, int i, lin_state *state, lin_error *err)
{
    const lin_snapshot *entry = &s->table[i];
    char name[512];
    snprintf(name, sizeof name, "snapshot %d of %s", i + 1, s->path);
    if (entry->offset < 0 || entry->bytes < 0 || (uint64_t)entry->offset > s->map.size ||
        (uint64_t)entry->bytes > s->map.size - (uint64_t)entry->offset)
        return lin_fail(err, LIN_FORMAT, "%s lies outside the file; make the index again with --snapshots", name);
    return lin_state_parse(s->map.bytes + entry->offset, (size_t)entry->bytes, name, state, err);
}
