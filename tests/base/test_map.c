// Mapped files, and the table that finds them by address.
#include "base/map.h"
#include "base/memory.h"
#include "tests/support.h"

enum { ROOM = 300 };

static char folder[64];
static lin_error err;

static void begin(void) { test_folder(folder, sizeof folder); }
static void end(void) { test_folder_remove(folder); }

// A file of n bytes "0123...".
static void make(char path[ROOM], const char *name, size_t n)
{
    unsigned char *bytes = lin_alloc(n, 1);
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)i;
    snprintf(path, ROOM, "%.200s/%.40s", folder, name);
    test_write_file(path, bytes, n);
    lin_free(bytes);
}

START_TEST(an_address_has_a_file)
{
    char a[ROOM], b[ROOM];
    lin_file_map map, other;
    make(a, "a", 5000);
    make(b, "b", 1);
    ck_assert_int_eq(lin_file_map_open(a, &map, &err), LIN_OK);
    ck_assert_int_eq(lin_file_map_open(b, &other, &err), LIN_OK);
    ck_assert(map.size == 5000 && map.bytes[4999] == (unsigned char)4999 && other.size == 1);
    const unsigned char *was = map.bytes;
    ck_assert_str_eq(lin_file_map_find(was), a);
    ck_assert_str_eq(lin_file_map_find(was + 8191), a); // the rest of its last page
    ck_assert_str_eq(lin_file_map_find(other.bytes), b);
    ck_assert_ptr_null(lin_file_map_find(a));
    ck_assert_ptr_null(lin_file_map_find(NULL));
    lin_file_map_close(&map);
    ck_assert(!map.bytes && !map.size);
    ck_assert_ptr_null(lin_file_map_find(was));
    ck_assert_str_eq(lin_file_map_find(other.bytes), b);
    lin_file_map_close(&map);
    lin_file_map_close(&other);
}
END_TEST

START_TEST(long_paths_and_many_files)
{
    char path[ROOM], longer[ROOM + 2 * LIN_MAP_PATH];
    static lin_file_map maps[LIN_MAP_FILES + 9];
    make(path, "x", 1);
    size_t n = 0;
    for (const char *slash = strrchr(path, '/'), *p = path; *p; p++) {
        longer[n++] = *p;
        for (int i = 0; p == slash && i < LIN_MAP_PATH / 2; i++) n += (size_t)sprintf(longer + n, "./");
    }
    longer[n] = '\0';
    for (int i = 0; i < LIN_MAP_FILES + 9; i++) ck_assert_int_eq(lin_file_map_open(i ? path : longer, &maps[i], &err), LIN_OK);
    ck_assert_str_eq(lin_file_map_find(maps[0].bytes), longer + n - (LIN_MAP_PATH - 1));
    ck_assert_str_eq(lin_file_map_find(maps[LIN_MAP_FILES - 1].bytes), path);
    ck_assert_ptr_null(lin_file_map_find(maps[LIN_MAP_FILES].bytes)); // no room for its name
    for (int i = 0; i < LIN_MAP_FILES + 9; i++) lin_file_map_close(&maps[i]);
    ck_assert_int_eq(lin_file_map_open(path, &maps[0], &err), LIN_OK);
    ck_assert_str_eq(lin_file_map_find(maps[0].bytes), path);
    lin_file_map_close(&maps[0]);
}
END_TEST

START_TEST(what_cannot_be_mapped)
{
    char path[ROOM];
    lin_file_map map;
    make(path, "empty", 0);
    ck_assert_int_eq(lin_file_map_open(path, &map, &err), LIN_OK);
    ck_assert(map.bytes && !map.size);
    lin_file_map_close(&map);
    ck_assert_int_eq(lin_file_map_open(folder, &map, &err), LIN_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "it is a directory"));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(lin_file_map_open(path, &map, &err), LIN_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "No such file"));
}
END_TEST

TEST_MAIN_WITH(begin, end, "base/map", TEST(an_address_has_a_file), TEST(long_paths_and_many_files), TEST(what_cannot_be_mapped))
