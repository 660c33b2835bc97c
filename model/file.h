/*
 * file.h - files mapped for reading. They are written by kernels/file.h.
 */
#ifndef LIN_MODEL_FILE_H
#define LIN_MODEL_FILE_H

#include <stddef.h>

#include "kernels/file.h"
#include "kernels/status.h"

/* A regular file in memory, read-only. size 0: bytes is a valid pointer to nothing. */
typedef struct lin_file_map {
    const unsigned char *bytes;
    size_t size;
} lin_file_map;

lin_status lin_file_map_open(const char *path, lin_file_map *map, lin_error *err);
void lin_file_map_close(lin_file_map *map);

#endif
