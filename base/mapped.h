/*
 * mapped.h - which files are mapped into memory, so that a program can say which one failed.
 *
 * A mapped file that another program cuts short, or a disk that fails, raises SIGBUS where the file is read. Whoever maps a file
 * registers it here; the program's handler asks whose address it was. Nothing is allocated.
 *
 *   lin_mapped_add(bytes, size, path);      after mmap
 *   lin_mapped_remove(bytes);               before munmap
 *   lin_mapped_find(info->si_addr)          in a signal handler
 *
 * Threads: all functions from any. lin_mapped_find is async-signal-safe.
 */
#ifndef LIN_BASE_MAPPED_H
#define LIN_BASE_MAPPED_H

#include <stddef.h>

enum { LIN_MAPPED_FILES = 256, LIN_MAPPED_PATH = 512 };

/* Keeps the last LIN_MAPPED_PATH - 1 bytes of path. Beyond LIN_MAPPED_FILES files at once the others are not known by name. */
void lin_mapped_add(const void *bytes, size_t n, const char *path);
/* Nothing happens where it is not registered. */
void lin_mapped_remove(const void *bytes);
/* The path of the file that holds this address, or NULL. */
const char *lin_mapped_find(const void *address);

#endif
