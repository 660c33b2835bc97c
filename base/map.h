/*
 * map.h - maps files into memory for reading, and finds the file of an address. base/file.h writes files.
 *
 *   lin_file_map_open("model.safetensors", &map, &err);   map.bytes [map.size], read-only
 *   lin_file_map_close(&map);
 *
 * If another program truncates a mapped file, or a disk fails, reading the file raises SIGBUS. Every mapping is registered with
 * its path, so that the program's signal handler can name the file: lin_file_map_find(info->si_addr).
 *
 * Threads: any, one at a time per map. lin_file_map_find is async-signal-safe.
 */
#ifndef LIN_BASE_MAP_H
#define LIN_BASE_MAP_H

#include <stddef.h>

#include "base/status.h"

/* A regular file in memory, read-only. With size 0, bytes is valid but must not be read. */
typedef struct lin_file_map {
    const unsigned char *bytes;
    size_t size;
} lin_file_map;

/* LIN_IO if the file cannot be opened, is not a regular file or cannot be mapped. */
lin_status lin_file_map_open(const char *path, lin_file_map *map, lin_error *err);
/* The first `size` bytes, 1 or more, of an open file, which may be closed afterwards; path is its name. */
lin_status lin_file_map_descriptor(int file, size_t size, const char *path, lin_file_map *map, lin_error *err);
void lin_file_map_close(lin_file_map *map);

/* The last LIN_MAP_PATH - 1 bytes of the path of the mapped file that contains this address, or NULL. At most LIN_MAP_FILES files
 * are registered at once; for others it gives NULL. */
enum { LIN_MAP_FILES = 256, LIN_MAP_PATH = 512 };
const char *lin_file_map_find(const void *address);

#endif
