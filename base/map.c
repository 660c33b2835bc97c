// map.c - maps files, and keeps the table of those that are mapped; see map.h.

#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* ---- the table of mapped files: nothing is allocated, and a signal handler may read it ------------------------------------- */

// begin: 0 free, CLAIMED while it is filled in, else the address of the file.
typedef struct slot {
    _Atomic uintptr_t begin;
    _Atomic size_t n;
    char path[LIN_MAP_PATH];
} slot;

enum { CLAIMED = 1 };

static slot slots[LIN_MAP_FILES];

static void enlist(const void *bytes, size_t n, const char *path)
{
    for (int i = 0; i < LIN_MAP_FILES; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&slots[i].begin, &none, CLAIMED)) continue;
        const size_t length = strlen(path), over = length >= LIN_MAP_PATH ? length - (LIN_MAP_PATH - 1) : 0;
        memcpy(slots[i].path, path + over, length - over + 1);
        atomic_store(&slots[i].n, n);
        atomic_store(&slots[i].begin, (uintptr_t)bytes);
        return;
    }
}

static void strike(const void *bytes)
{
    for (int i = 0; i < LIN_MAP_FILES; i++) {
        uintptr_t begin = (uintptr_t)bytes;
        if (atomic_compare_exchange_strong(&slots[i].begin, &begin, 0)) return;
    }
}

const char *lin_file_map_find(const void *address)
{
    for (int i = 0; i < LIN_MAP_FILES; i++) {
        const uintptr_t begin = atomic_load(&slots[i].begin), at = (uintptr_t)address;
        // the address of a fault is within a page of the file, and the last page may reach past its end
        if (begin > CLAIMED && at >= begin && at - begin < (atomic_load(&slots[i].n) + 4095) / 4096 * 4096) return slots[i].path;
    }
    return NULL;
}

/* ---- mapping --------------------------------------------------------------------------------------------------------------- */

lin_status lin_file_map_descriptor(int file, size_t size, const char *path, lin_file_map *map, lin_error *err)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) return lin_fail(err, LIN_IO, "cannot map %s: %s", path, strerror(errno));
    enlist(bytes, size, path);
    *map = (lin_file_map){.bytes = bytes, .size = size};
    return LIN_OK;
}

lin_status lin_file_map_open(const char *path, lin_file_map *map, lin_error *err)
{
    static const unsigned char nothing[1];
    *map = (lin_file_map){.bytes = nothing};
    struct stat st;
    int fd;
    lin_status status = lin_file_open_input(path, &fd, err);
    if (status != LIN_OK) return status;
    if (fstat(fd, &st) != 0) {
        status = lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        status = lin_fail(err, LIN_IO, "cannot open %s: it is not a regular file", path);
    } else if (st.st_size > 0) {
        status = lin_file_map_descriptor(fd, (size_t)st.st_size, path, map, err);
    }
    close(fd);
    return status;
}

void lin_file_map_close(lin_file_map *map)
{
    if (map->size) {
        strike(map->bytes);
        munmap((void *)(uintptr_t)map->bytes, map->size);
    }
    *map = (lin_file_map){0};
}
