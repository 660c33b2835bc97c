/*
 * count_mallocs.h - counts the C library's allocations, those of other libraries too. If a sanitizer replaces malloc, nothing is
 * counted. For the one source of a program that asks.
 */
#ifndef LIN_TESTS_FRONTEND_COUNT_MALLOCS_H
#define LIN_TESTS_FRONTEND_COUNT_MALLOCS_H

#include <stdatomic.h>
#include <stddef.h>

static atomic_ulong n_mallocs;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
void *__libc_malloc(size_t size);
void *__libc_realloc(void *block, size_t size);

void *malloc(size_t size)
{
    n_mallocs++;
    return __libc_malloc(size);
}

void *realloc(void *block, size_t size)
{
    n_mallocs++;
    return __libc_realloc(block, size);
}
#endif

#endif
