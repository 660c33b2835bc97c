/*
 * memory.h - all allocations of the project, so that tests can count them (nothing is allocated while streaming) and make the
 * k-th one fail.
 *
 * All functions are thread-safe. Memory is 64-byte aligned and released with lin_free.
 */
#ifndef LIN_BASE_MEMORY_H
#define LIN_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* `count` elements of `size` bytes, zeroed. NULL on failure or overflow; a request of 0 bytes gives a valid pointer. */
void *lin_calloc(size_t count, size_t size);

/* lin_calloc without zeroing. */
void *lin_alloc(size_t count, size_t size);

/* lin_calloc for a block of which few parts will be touched: untouched parts take no memory. */
void *lin_alloc_sparse(size_t count, size_t size);

/* Grows or shrinks a block made by these functions (or NULL), keeping min(old, new) bytes. On failure NULL, and the old block is
 * unchanged. */
void *lin_resize(void *block, size_t count, size_t size);

/*
 * Room for `need` elements in a growing array: if *capacity is smaller, the block at `array` (a pointer to the pointer to its
 * elements) is resized to at least twice the need, so that appending one at a time takes linear time. LIN_NO_MEMORY names `what`;
 * the array is then unchanged. The second form is for int counts: LIN_INVALID beyond a quarter of their range.
 */
lin_status lin_grow(void *array, size_t *capacity, size_t need, size_t size, const char *what, lin_error *err);
lin_status lin_grow_int(void *array, int *capacity, int64_t need, size_t size, const char *what, lin_error *err);

/* A copy of a string, released with lin_free. NULL on failure. */
char *lin_strdup(const char *text);

void lin_free(void *block);

/* The status and message of every failed allocation. */
lin_status lin_no_memory(lin_error *err, const char *what, size_t bytes);

/* Test hooks. lin_memory_count: allocations since the program started. lin_memory_fail_at(k): only the k-th allocation from now
 * (1 = next) fails; 0 disables this. lin_memory_live: blocks not yet freed. */
unsigned long lin_memory_count(void);
unsigned long lin_memory_live(void);
void lin_memory_fail_at(unsigned long k);

/*
 * An arena: one block, of the caller's, divided into parts. For scratch whose size is known in advance.
 * lin_arena_take gives 64-byte-aligned memory, or NULL if the block is exhausted; it never allocates.
 */
typedef struct lin_arena {
    unsigned char *base;
    size_t size, used;
} lin_arena;

void *lin_arena_take(lin_arena *arena, size_t count, size_t size);

#endif
