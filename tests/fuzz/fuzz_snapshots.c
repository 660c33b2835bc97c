// Indexes of snapshots from any bytes: unchanged, and with the correct checksum of header and table.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "linnet/snapshots.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 64, N_AT = 40, TABLE_AT = 48, SUM_AT = 56, ENTRY = 32 };

static char path[64];

static void remove_file(void) { remove(path); }

static void try_index(const uint8_t *data, size_t size)
{
    // one file for all inputs: creating or truncating a file for each would wait for the disk
    static int file = -1;
    if (file < 0) file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || pwrite(file, data, size, 0) != (ssize_t)size || ftruncate(file, (off_t)size) != 0) abort();
    lin_snapshots s;
    lin_state state = {0};
    lin_error err = {0};
    const lin_status status = lin_snapshots_open(path, &s, &err);
    if (status != LIN_OK) {
        if (err.status != status || !strstr(err.message, path)) abort();
        return;
    }
    for (int i = 0; i < s.n && i < 100; i++) (void)lin_snapshots_get(&s, i, &state, &err);
    const int before = lin_snapshots_before(&s, 1.5);
    if (before < -1 || before >= s.n) abort();
    lin_state_free(&state);
    lin_snapshots_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned long live = lin_memory_live();
    if (!*path) {
        snprintf(path, sizeof path, "/tmp/fuzz-snapshots-%ld", (long)getpid());
        atexit(remove_file);
    }
    try_index(data, size);
    if (size >= HEADER) {
        uint8_t *sealed = malloc(size);
        if (!sealed) return 0;
        uint64_t n, table, sum = 0;
        memcpy(sealed, data, size);
        memcpy(&n, sealed + N_AT, sizeof n);
        memcpy(&table, sealed + TABLE_AT, sizeof table);
        memcpy(sealed + SUM_AT, &sum, sizeof sum);
        sum = lin_hash(sealed, HEADER, 0);
        if (table <= size && n <= (size - table) / ENTRY) sum = lin_hash(sealed + table, (size_t)n * ENTRY, sum);
        memcpy(sealed + SUM_AT, &sum, sizeof sum);
        try_index(sealed, size);
        free(sealed);
    }
    if (lin_memory_live() != live) abort();
    return 0;
}
