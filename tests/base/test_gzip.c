// base/textfile.c: gzip'd text is read; truncated, damaged and endless data are refused.

#include <zlib.h>

#include "base/textfile.h"
#include "lexicon/dictionary.h"
#include "tests/lexicon/support.h"

static void teardown(void) { ck_assert_uint_eq(lin_memory_live(), 0); }

// One member. The caller frees it.
static unsigned char *pack(const void *text, size_t n, int level, size_t *n_packed)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)n};
    ck_assert_int_eq(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t capacity = deflateBound(&z, (uLong)n) + 32;
    unsigned char *packed = malloc(capacity);
    z.next_out = packed;
    z.avail_out = (uInt)capacity;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *n_packed = capacity - z.avail_out;
    deflateEnd(&z);
    return packed;
}

static lin_status expand(const void *bytes, size_t n, size_t most, char **text, size_t *n_text, lin_error *err)
{
    return lin_gzip_expand(bytes, n, most, "x.gz", text, n_text, err);
}

START_TEST(comes_out_as_it_went_in)
{
    static const size_t sizes[] = {0, 1, 2, 3, 1000, 65536, 1000003};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int level = 0; level <= 9; level += 3) {
            size_t n = sizes[i], n_packed, n_text;
            char *text = lin_alloc(n + 1, 1), *out;
            for (size_t k = 0; k < n; k++) text[k] = (char)('a' + lin_random_below(i, k / 3, 20));
            unsigned char *packed = pack(text, n, level, &n_packed);
            ck_assert(lin_gzip_is(packed, n_packed) && !lin_gzip_is(packed, 1));
            OK(expand(packed, n_packed, n, &out, &n_text, &err)); // exactly as much as is allowed
            ck_assert_uint_eq(n_text, n);
            ck_assert(!memcmp(out, text, n) && out[n] == '\0');
            lin_free(out);
            free(packed);
            lin_free(text);
        }
    }
}
END_TEST

START_TEST(members_and_padding)
{
    unsigned char all[4096] = {0};
    size_t used = 0, n, n_text;
    static const char *const parts[] = {"one\n", "", "two and three\n", "four\n"};
    char *out;
    for (int i = 0; i < 4; i++) {
        unsigned char *packed = pack(parts[i], strlen(parts[i]), 6, &n);
        memcpy(all + used, packed, n);
        used += n;
        free(packed);
    }
    for (size_t padding = 0; padding <= 512; padding += 256) { // of zeros, as tapes have it
        OK(expand(all, used + padding, 1000, &out, &n_text, &err));
        ck_assert_str_eq(out, "one\ntwo and three\nfour\n");
        ck_assert_uint_eq(n_text, strlen(out));
        lin_free(out);
    }
    memcpy(all + used, "more", 4);
    FAILS(expand(all, used + 4, 1000, &out, &n_text, &err), LIN_FORMAT, "x.gz: other data follow the gzip'd text at byte ");
    ck_assert(!out && !n_text);
    memcpy(all + used, "\x1f\x8b", 2); // a member begins and is cut
    FAILS(expand(all, used + 2, 1000, &out, &n_text, &err), LIN_FORMAT, "x.gz: the gzip data are truncated after");
}
END_TEST

START_TEST(cut_and_damaged)
{
    char text[3000], *out;
    size_t n, n_text;
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + lin_random_below(1, i / 5, 9));
    unsigned char *packed = pack(text, sizeof text, 6, &n);
    for (size_t cut = 2; cut < n; cut++)
        FAILS(expand(packed, cut, 1 << 20, &out, &n_text, &err), LIN_FORMAT, "x.gz: the gzip data are truncated after");
    int refused = 0;
    for (size_t bit = 16; bit < 8 * n; bit++) {
        packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        lin_status status = expand(packed, n, 1 << 20, &out, &n_text, NULL);
        ck_assert(status == LIN_OK || status == LIN_FORMAT);
        // time, system and hints in the header and the bits after the last code are not checked; any other change is detected
        if (status == LIN_OK) ck_assert(n_text == sizeof text && !memcmp(out, text, n_text));
        refused += status != LIN_OK;
        lin_free(out);
        packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    ck_assert_int_gt(refused, (int)(8 * n) - 100);
    packed[n - 8] ^= 1;
    FAILS(expand(packed, n, 1 << 20, &out, &n_text, &err), LIN_FORMAT, "incorrect data check");
    free(packed);
}
END_TEST

// 8 MB of zeros in 8 KB, with a wrong length at its end: no more memory is used than allowed, nor at first more than needed.
START_TEST(bomb)
{
    size_t n, n_text, size = 8000000;
    char *text = lin_calloc(size, 1), *out;
    unsigned char *packed = pack(text, size, 9, &n);
    lin_free(text);
    FAILS(expand(packed, n, 1 << 20, &out, &n_text, &err), LIN_FORMAT, "x.gz: over 1048576 bytes when expanded");
    FAILS(expand(packed, n, size - 1, &out, &n_text, &err), LIN_FORMAT, "x.gz: over 7999999 bytes when expanded");
    OK(expand(packed, n, size, &out, &n_text, &err));
    ck_assert_uint_eq(n_text, size);
    lin_free(out);
    memset(packed + n - 4, 0xFF, 4);
    FAILS(expand(packed, n, LIN_TEXT_MAX_BYTES, &out, &n_text, &err), LIN_FORMAT, "incorrect length check");
    free(packed);
}
END_TEST

START_TEST(every_allocation_fails)
{
    char text[100000], *out = NULL;
    size_t n, n_text;
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i % 23);
    unsigned char *packed = pack(text, sizeof text, 6, &n);
    memset(packed + n - 4, 0, 4); // no help from the length: it grows
    lin_status status = LIN_NO_MEMORY;
    unsigned long live = lin_memory_live();
    for (unsigned long k = 1; status == LIN_NO_MEMORY; k++) {
        lin_memory_fail_at(k);
        status = expand(packed, n, 1 << 20, &out, &n_text, NULL);
        lin_memory_fail_at(0);
        ck_assert(!out && lin_memory_live() == live);
        ck_assert(k < 100);
    }
    ck_assert_int_eq(status, LIN_FORMAT); // the length was wrong, after all
    free(packed);
}
END_TEST

// Through the readers of text: a dictionary, gzip'd.
START_TEST(readers_of_text)
{
    char *text;
    size_t n;
    unsigned char *packed = pack(small_dictionary, sizeof small_dictionary - 1, 6, &n);
    const char *path = test_file("cmu.dict.gz", packed, n);
    lin_phones *phones;
    lin_dictionary *dictionary;
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_dictionary_load(path, phones, &dictionary, &err));
    ck_assert_int_gt(lin_dictionary_find(dictionary, "hello", 5, 0, NULL), 0);
    lin_dictionary_destroy(dictionary);
    FAIL_EVERY_ALLOCATION(lin_text_read(path, &text, &n, NULL), lin_free(text));
    test_write_file(path, packed, 40);
    FAILS(lin_text_read(path, &text, &n, &err), LIN_FORMAT,
          "cmu.dict.gz: the gzip data are truncated after 40 bytes; get a new copy");
    ck_assert(!text && !n);
    lin_phones_destroy(phones);
    free(packed);
}
END_TEST

TEST_MAIN_WITH(NULL, teardown, "gzip", TEST(comes_out_as_it_went_in), TEST(members_and_padding), TEST(cut_and_damaged),
               TEST(bomb), TEST(every_allocation_fails), TEST(readers_of_text))
