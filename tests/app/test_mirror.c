// Names of results below --output-dir: folders are mirrored, no name leaves the output folder, two results with the same name are
// refused.
#include "app/mirror.h"

#include "base/memory.h"
#include "tests/support.h"

static lin_inputs inputs;

static void teardown(void) { lin_inputs_free(&inputs); }

static void add(const char *const *paths, int n)
{
    lin_error err = {0};
    const lin_list list = {(const char **)(size_t)paths, n};
    ck_assert_msg(lin_inputs_add_paths(&inputs, &list, &err) == LIN_OK, "%s", err.message);
}

static void names_are(const char *const *paths, const char *const *names, int n)
{
    lin_error err = {0};
    add(paths, n);
    ck_assert_msg(lin_mirror_names(&inputs, NULL, &err) == LIN_OK, "%s", err.message);
    for (int i = 0; i < n; i++) {
        ck_assert_msg(strcmp(inputs.items[i].name, names[i]) == 0, "%s is called '%s', not '%s'", paths[i], inputs.items[i].name,
                      names[i]);
    }
    lin_inputs_free(&inputs);
}

START_TEST(folders_are_mirrored)
{
    names_are((const char *[]){"a/my talk.wav"}, (const char *[]){"my talk"}, 1);
    names_are((const char *[]){"x/a.wav", "y/a.wav"}, (const char *[]){"x/a", "y/a"}, 2);
    names_are((const char *[]){"x/a.wav", "x/b.c.wav"}, (const char *[]){"a", "b.c"}, 2);
    names_are((const char *[]){"a.wav", "x/y/b.wav"}, (const char *[]){"a", "x/y/b"}, 2);
    names_are((const char *[]){"/p/x/a", "/p/xx/a", "/p/x/b/c"}, (const char *[]){"x/a", "xx/a", "x/b/c"}, 3);
    names_are((const char *[]){"/x/a.wav", "/y/a.wav"}, (const char *[]){"x/a", "y/a"}, 2);
    names_are((const char *[]){"x/../y/./a.wav", "y//b.wav"}, (const char *[]){"a", "b"}, 2);
    names_are((const char *[]){"/../../a.wav", "/..//b.wav"}, (const char *[]){"a", "b"}, 2);
    names_are((const char *[]){"x/.hidden", "x/.h.wav"}, (const char *[]){".hidden", ".h"}, 2);
    names_are((const char *[]){"-", "x/a.wav"}, (const char *[]){"stdin", "a"}, 2);
    names_are((const char *[]){"-", "/"}, (const char *[]){"stdin", "_"}, 2);
}
END_TEST

// Parts of a list have the names of the whole.
START_TEST(names_below_a_root)
{
    lin_error err = {0};
    add((const char *[]){"/p/x/a.wav", "/p/x/b/c.wav"}, 2);
    ck_assert_msg(lin_mirror_names(&inputs, "/p//y/../", &err) == LIN_OK, "%s", err.message);
    ck_assert_str_eq(inputs.items[0].name, "x/a");
    ck_assert_str_eq(inputs.items[1].name, "x/b/c");
    lin_inputs_free(&inputs);
    add((const char *[]){"/p/x/a.wav"}, 1);
    ck_assert_msg(lin_mirror_names(&inputs, "/", &err) == LIN_OK, "%s", err.message);
    ck_assert_str_eq(inputs.items[0].name, "p/x/a");
    lin_inputs_free(&inputs);
    add((const char *[]){"x/a.wav", "-"}, 2);
    ck_assert_msg(lin_mirror_names(&inputs, ".", &err) == LIN_OK, "%s", err.message);
    ck_assert_str_eq(inputs.items[0].name, "x/a");
    ck_assert_str_eq(inputs.items[1].name, "stdin");
    lin_inputs_free(&inputs);
    add((const char *[]){"/p/x/a.wav", "/pp/b.wav"}, 2);
    ck_assert_int_eq(lin_mirror_names(&inputs, "/p", &err), LIN_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "/pp/b.wav is outside the --input-root /p"));
}
END_TEST

START_TEST(given_names_and_ids)
{
    lin_error err = {0};
    char folder[128], list[256];
    test_folder(folder, sizeof folder);
    snprintf(list, sizeof list, "%s/list", folder);
    const char *text = "x/a.wav\ny/a.wav\n../../etc/b.wav\n";
    test_write_file(list, text, strlen(text));
    ck_assert_int_eq(lin_inputs_add_named(&inputs, "/far/away.wav", "anna/one", &err), LIN_OK);
    const lin_data_values data = {.data = list};
    ck_assert_msg(lin_inputs_add_data(&inputs, &data, &(lin_part){0, INFINITY}, &err) == LIN_OK, "%s", err.message);
    ck_assert_msg(lin_mirror_names(&inputs, NULL, &err) == LIN_OK && lin_mirror_check(&inputs, &err) == LIN_OK, "%s",
                  err.message);
    ck_assert_int_eq(inputs.n, 4);
    ck_assert_str_eq(inputs.items[0].name, "anna/one");
    ck_assert_str_eq(inputs.items[1].name, "x/a");
    ck_assert_str_eq(inputs.items[2].name, "y/a");
    ck_assert_str_eq(inputs.items[3].name, "b");
    test_folder_remove(folder);
}
END_TEST

START_TEST(one_name_twice)
{
    lin_error err = {0};
    add((const char *[]){"x/a.wav", "y/b.wav", "x/a.flac"}, 3);
    ck_assert_int_eq(lin_mirror_names(&inputs, NULL, &err), LIN_OK);
    ck_assert_int_eq(lin_mirror_check(&inputs, &err), LIN_INVALID);
    ck_assert_msg(strstr(err.message, "would have the same result x/a") && strstr(err.message, "x/a.wav and x/a.flac") &&
                      strstr(err.message, "rename one"), "%s", err.message);
    lin_inputs_free(&inputs);
    add((const char *[]){"a.wav", "a.wav"}, 2);
    ck_assert_int_eq(lin_mirror_names(&inputs, NULL, &err), LIN_OK);
    ck_assert_int_eq(lin_mirror_check(&inputs, &err), LIN_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "a.wav is given twice"));
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const unsigned long live = lin_memory_live();
    for (unsigned long k = 1;; k++) {
        add((const char *[]){"x/a.wav", "y/b.wav", "-"}, 3);
        lin_memory_fail_at(k);
        lin_status status = lin_mirror_names(&inputs, NULL, NULL);
        if (status == LIN_OK) status = lin_mirror_check(&inputs, NULL);
        lin_memory_fail_at(0);
        lin_inputs_free(&inputs);
        ck_assert_uint_eq(lin_memory_live(), live);
        if (status == LIN_OK) break;
        ck_assert_int_eq(status, LIN_NO_MEMORY);
    }
}
END_TEST

START_TEST(folders_are_made)
{
    lin_error err = {0};
    char folder[128], path[256];
    test_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/a/b/c.txt", folder);
    ck_assert_msg(lin_mirror_folder(path, &err) == LIN_OK, "%s", err.message);
    test_write_file(path, "x", 1);
    ck_assert_int_eq(lin_mirror_folder(path, &err), LIN_OK);
    ck_assert_int_eq(lin_mirror_folder("c.txt", &err), LIN_OK);
    ck_assert_int_eq(lin_mirror_folder("/c.txt", &err), LIN_OK);
    snprintf(path, sizeof path, "%s/a/b/c.txt/d/e.txt", folder);
    ck_assert_int_eq(lin_mirror_folder(path, &err), LIN_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "cannot create the folder"));
    test_folder_remove(folder);
}
END_TEST

TEST_MAIN_WITH(NULL, teardown, "app/mirror", TEST(folders_are_mirrored), TEST(names_below_a_root), TEST(given_names_and_ids),
               TEST(one_name_twice), TEST(every_allocation_may_fail), TEST(folders_are_made))
