// The table of mapped files.
#include "base/mapped.h"
#include "tests/support.h"

static char bytes[4 * 4096];

START_TEST(an_address_has_a_file)
{
    ck_assert_ptr_null(lin_mapped_find(bytes));
    lin_mapped_add(bytes, 5000, "a");
    lin_mapped_add(bytes + 8192, 1, "b");
    ck_assert_str_eq(lin_mapped_find(bytes), "a");
    ck_assert_str_eq(lin_mapped_find(bytes + 8191), "a"); // the rest of its last page
    ck_assert_str_eq(lin_mapped_find(bytes + 8192), "b");
    ck_assert_ptr_null(lin_mapped_find(bytes + 3 * 4096));
    lin_mapped_remove(bytes);
    ck_assert_ptr_null(lin_mapped_find(bytes));
    ck_assert_str_eq(lin_mapped_find(bytes + 8192), "b");
    lin_mapped_remove(bytes);
    lin_mapped_remove(NULL);
    lin_mapped_remove(bytes + 8192);
    ck_assert_ptr_null(lin_mapped_find(bytes + 8192));
}
END_TEST

START_TEST(long_paths_and_many_files)
{
    char path[2 * LIN_MAPPED_PATH];
    memset(path, 'x', sizeof path);
    strcpy(path + sizeof path - 5, ".lfc");
    lin_mapped_add(bytes, 1, path);
    ck_assert_str_eq(lin_mapped_find(bytes), path + sizeof path - LIN_MAPPED_PATH);
    for (int i = 1; i < LIN_MAPPED_FILES + 9; i++) lin_mapped_add(bytes + 4096, 1, "y");
    for (int i = 1; i < LIN_MAPPED_FILES + 9; i++) lin_mapped_remove(bytes + 4096);
    ck_assert_ptr_null(lin_mapped_find(bytes + 4096));
    lin_mapped_remove(bytes);
    lin_mapped_add(bytes + 4096, 1, "z");
    ck_assert_str_eq(lin_mapped_find(bytes + 4096), "z");
    lin_mapped_remove(bytes + 4096);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base/mapped");
    TCase *tests = tcase_create("mapped");
    tcase_add_test(tests, an_address_has_a_file);
    tcase_add_test(tests, long_paths_and_many_files);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
