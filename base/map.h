/*
 * file.h - files mapped for reading. They are written by base/file.h.
 */
#ifndef LIN_BASE_MAP_H
#define LIN_BASE_MAP_H

#include <stddef.h>

#include "base/file.h"
#include "base/status.h"

/* A regular file in memory, read-only. size 0: bytes is a valid pointer to nothing. */
typedef struct lin_file_map {
    const unsigned char *bytes;
    size_t size;
} lin_file_map;

lin_status lin_file_map_open(const char *path, lin_file_map *map, lin_error *err);
void lin_file_map_close(lin_file_map *map);

#endif
