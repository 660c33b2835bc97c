// base/memory.c: alignment, sizes, counting and the failure of the k-th allocation; arenas.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/support.h"

static int aligned(const void *block) { return (uintptr_t)block % 64 == 0; }

START_TEST(blocks_are_aligned_and_whole)
{
    unsigned long live = lin_memory_live();
    unsigned char *blocks[300];
    for (size_t bytes = 0; bytes < 300; bytes++) {
        blocks[bytes] = lin_alloc(bytes, 1);
        ck_assert_ptr_nonnull(blocks[bytes]);
        ck_assert(aligned(blocks[bytes]));
        memset(blocks[bytes], (int)(bytes & 255), bytes); // the address sanitizer watches the end
    }
    for (size_t bytes = 0; bytes < 300; bytes++) {
        for (size_t i = 0; i < bytes; i++) ck_assert_uint_eq(blocks[bytes][i], bytes & 255);
        lin_free(blocks[bytes]);
    }
    lin_free(NULL);
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

START_TEST(calloc_is_zero)
{
    for (size_t n = 1; n < 5000; n = n * 3 + 1) {
        unsigned char *dirty = lin_alloc(n, 4);
        memset(dirty, 0xff, n * 4);
        lin_free(dirty);
        uint32_t *clean = lin_calloc(n, 4);
        for (size_t i = 0; i < n; i++) ck_assert_uint_eq(clean[i], 0);
        lin_free(clean);
    }
}
END_TEST

// Large blocks come from the system, zeroed: no page is touched before it is used.
START_TEST(large_blocks)
{
    const unsigned long live = lin_memory_live();
    const size_t n = (size_t)9 << 20;
    for (int round = 0; round < 3; round++) {
        unsigned char *block = lin_calloc(n, 1);
        ck_assert(aligned(block));
        unsigned all = 0;
        for (size_t i = 0; i < n; i++) all |= block[i];
        ck_assert_uint_eq(all, 0);
        memset(block, 0xff, n);
        block = lin_resize(block, 2 * n, 1); // to another, and to a small one
        for (size_t i = 0; i < n; i += 997) ck_assert_uint_eq(block[i], 0xff);
        block = lin_resize(block, 100, 1);
        for (size_t i = 0; i < 100; i++) ck_assert_uint_eq(block[i], 0xff);
        lin_free(block);
    }
    ck_assert_ptr_null(lin_alloc((size_t)1 << 60, 1));
    lin_memory_fail_at(1);
    ck_assert_ptr_null(lin_calloc(n, 1));
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

START_TEST(overflow_is_refused)
{
    unsigned long live = lin_memory_live();
    ck_assert_ptr_null(lin_alloc(SIZE_MAX, 2));
    ck_assert_ptr_null(lin_alloc(SIZE_MAX / 2 + 2, 2));
    ck_assert_ptr_null(lin_calloc(SIZE_MAX, 1));
    ck_assert_ptr_null(lin_calloc((size_t)1 << 33, (size_t)1 << 33));
    void *block = lin_alloc(10, 1);
    ck_assert_ptr_null(lin_resize(block, SIZE_MAX, 8));
    lin_free(block);
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

START_TEST(arrays_grow)
{
    const unsigned long live = lin_memory_live();
    uint32_t *items = NULL;
    size_t capacity = 0;
    int count = 0, before;
    for (size_t n = 0; n < 1000; n++) {
        const unsigned long made = lin_memory_count();
        const size_t had = capacity;
        OK(lin_grow(&items, &capacity, n + 1, sizeof *items, "items", &err));
        ck_assert_uint_gt(capacity, n);
        if (had > n) ck_assert_uint_eq(lin_memory_count(), made); // there was room
        else ck_assert_uint_ge(capacity, 2 * (n + 1));
        items[n] = (uint32_t)n;
    }
    for (size_t n = 0; n < 1000; n++) ck_assert_uint_eq(items[n], n);
    const uint32_t *old = items;
    const size_t had = capacity;
    FAILS(lin_grow(&items, &capacity, SIZE_MAX / 2, sizeof *items, "items", &err), LIN_NO_MEMORY, "items");
    ck_assert_ptr_eq(items, old);
    ck_assert_uint_eq(capacity, had);
    lin_free(items);
    items = NULL;
    OK(lin_grow_int(&items, &count, 7, sizeof *items, "items", &err));
    before = count;
    ck_assert_int_ge(count, 7);
    FAILS(lin_grow_int(&items, &count, (int64_t)INT32_MAX + 1, sizeof *items, "items", &err), LIN_INVALID,
          "too many elements for items: 2147483648");
    ck_assert_int_eq(count, before);
    lin_free(items);
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

START_TEST(resize_keeps_the_smaller_part)
{
    unsigned long live = lin_memory_live();
    unsigned char *block = lin_resize(NULL, 100, 1);
    for (int i = 0; i < 100; i++) block[i] = (unsigned char)i;
    block = lin_resize(block, 1000, 1);
    ck_assert(aligned(block));
    for (int i = 0; i < 100; i++) ck_assert_int_eq(block[i], i);
    block = lin_resize(block, 10, 1);
    for (int i = 0; i < 10; i++) ck_assert_int_eq(block[i], i);
    lin_memory_fail_at(1);
    ck_assert_ptr_null(lin_resize(block, 2000, 1));
    lin_memory_fail_at(0);
    for (int i = 0; i < 10; i++) ck_assert_int_eq(block[i], i); // the old block lives on
    block = lin_resize(block, 0, 1);
    ck_assert_ptr_nonnull(block);
    lin_free(block);
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

START_TEST(strdup_copies)
{
    char *copy = lin_strdup("linnet");
    ck_assert_str_eq(copy, "linnet");
    lin_free(copy);
    lin_memory_fail_at(1);
    ck_assert_ptr_null(lin_strdup("linnet"));
    lin_memory_fail_at(0);
}
END_TEST

START_TEST(kth_allocation_fails)
{
    unsigned long live = lin_memory_live();
    for (unsigned long k = 1; k <= 5; k++) {
        void *blocks[5];
        unsigned long count = lin_memory_count();
        lin_memory_fail_at(k);
        for (unsigned long i = 0; i < 5; i++) {
            blocks[i] = lin_alloc(8, 1);
            if (i + 1 == k) {
                ck_assert_ptr_null(blocks[i]);
            } else {
                ck_assert_ptr_nonnull(blocks[i]);
            }
        }
        lin_memory_fail_at(0);
        ck_assert_uint_eq(lin_memory_count(), count + 5);
        ck_assert_uint_eq(lin_memory_live(), live + 4);
        for (int i = 0; i < 5; i++) lin_free(blocks[i]);
        ck_assert_uint_eq(lin_memory_live(), live);
    }
}
END_TEST

START_TEST(message_names_size_and_purpose)
{
    lin_error why = {0};
    ck_assert_int_eq(lin_no_memory(&why, "a model", 42), LIN_NO_MEMORY);
    ck_assert_str_eq(why.message, "out of memory: 42 bytes for a model");
    ck_assert_int_eq(lin_no_memory(NULL, "a model", 42), LIN_NO_MEMORY);
}
END_TEST

START_TEST(arena_hands_out_aligned_pieces)
{
    lin_arena arena = {.base = lin_alloc(1024, 1), .size = 1024};
    unsigned long count = lin_memory_count();
    unsigned char *first = lin_arena_take(&arena, 3, 10), *second = lin_arena_take(&arena, 1, 1);
    ck_assert(aligned(first) && aligned(second));
    ck_assert_int_eq((int)(second - first), 64);
    ck_assert_ptr_nonnull(lin_arena_take(&arena, 14, 64));
    ck_assert_ptr_null(lin_arena_take(&arena, 1, 1)); // exhausted
    ck_assert_ptr_nonnull(lin_arena_take(&arena, 0, 1));
    ck_assert_ptr_null(lin_arena_take(&arena, SIZE_MAX, 2));
    ck_assert_ptr_null(lin_arena_take(&arena, SIZE_MAX / 2 - 32, 2));
    ck_assert_ptr_null(lin_arena_take(&arena, SIZE_MAX, 1));
    ck_assert_ptr_null(lin_arena_take(&arena, SIZE_MAX - 62, 1)); // rounding up must not wrap around
    ck_assert_uint_eq(lin_memory_count(), count);
    lin_free(arena.base);
}
END_TEST

TEST_MAIN("base/memory", TEST(blocks_are_aligned_and_whole), TEST(calloc_is_zero), TEST(large_blocks), TEST(overflow_is_refused),
          TEST(arrays_grow), TEST(resize_keeps_the_smaller_part), TEST(strdup_copies), TEST(kth_allocation_fails),
          TEST(message_names_size_and_purpose), TEST(arena_hands_out_aligned_pieces))
