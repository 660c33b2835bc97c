// app/inputs.c: names of results below --output-dir: folders are mirrored, no name leaves the output folder, two results with the
// same name are refused; which text belongs to which sound, in folders and beside files; every allocation failing.
#include "app/inputs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "app/common.h"
#include "base/memory.h"
#include "tests/lexicon/support.h"

static lin_inputs inputs;

static void teardown(void) { lin_inputs_free(&inputs); }

static void add(const char *const *paths, int n)
{
    const lin_list list = {(const char **)(size_t)paths, n};
    OK(lin_inputs_add_paths(&inputs, &list, &err));
}

static void names_are(const char *const *paths, const char *const *names, int n)
{
    add(paths, n);
    OK(lin_inputs_name_results(&inputs, NULL, &err));
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
    add((const char *[]){"/p/x/a.wav", "/p/x/b/c.wav"}, 2);
    OK(lin_inputs_name_results(&inputs, "/p//y/../", &err));
    ck_assert_str_eq(inputs.items[0].name, "x/a");
    ck_assert_str_eq(inputs.items[1].name, "x/b/c");
    lin_inputs_free(&inputs);
    add((const char *[]){"/p/x/a.wav"}, 1);
    OK(lin_inputs_name_results(&inputs, "/", &err));
    ck_assert_str_eq(inputs.items[0].name, "p/x/a");
    lin_inputs_free(&inputs);
    add((const char *[]){"x/a.wav", "-"}, 2);
    OK(lin_inputs_name_results(&inputs, ".", &err));
    ck_assert_str_eq(inputs.items[0].name, "x/a");
    ck_assert_str_eq(inputs.items[1].name, "stdin");
    lin_inputs_free(&inputs);
    add((const char *[]){"/p/x/a.wav", "/pp/b.wav"}, 2);
    FAILS(lin_inputs_name_results(&inputs, "/p", &err), LIN_INVALID, "/pp/b.wav is outside the --input-root /p");
}
END_TEST

START_TEST(names_of_a_list)
{
    static const char text[] = "x/a.wav\ny/a.wav\n../../etc/b.wav\n";
    const lin_data_values data = {.data = test_file("list", text, strlen(text))};
    OK(lin_inputs_add_data(&inputs, &data, &(lin_part){0, INFINITY}, LIN_CHANNEL_MIX, &err));
    OK(lin_inputs_name_results(&inputs, NULL, &err) == LIN_OK && lin_inputs_check_names(&inputs, &err));
    ck_assert_int_eq(inputs.n, 3);
    ck_assert_str_eq(inputs.items[0].name, "x/a");
    ck_assert_str_eq(inputs.items[1].name, "y/a");
    ck_assert_str_eq(inputs.items[2].name, "b");
}
END_TEST

START_TEST(one_name_twice)
{
    add((const char *[]){"x/a.wav", "y/b.wav", "x/a.flac"}, 3);
    OK(lin_inputs_name_results(&inputs, NULL, &err));
    FAILS(lin_inputs_check_names(&inputs, &err), LIN_INVALID, "would have the same result x/a", "x/a.wav and x/a.flac",
          "rename one");
    lin_inputs_free(&inputs);
    add((const char *[]){"a.wav", "a.wav"}, 2);
    OK(lin_inputs_name_results(&inputs, NULL, &err));
    FAILS(lin_inputs_check_names(&inputs, &err), LIN_INVALID, "a.wav is given twice");
}
END_TEST

static lin_status name_once(void)
{
    const lin_list list = {(const char *[]){"x/a.wav", "y/b.wav", "-"}, 3};
    lin_status status = lin_inputs_add_paths(&inputs, &list, NULL);
    if (status == LIN_OK) status = lin_inputs_name_results(&inputs, NULL, NULL);
    if (status == LIN_OK) status = lin_inputs_check_names(&inputs, NULL);
    lin_inputs_free(&inputs);
    return status;
}

START_TEST(every_allocation_may_fail) { FAIL_EVERY_ALLOCATION(name_once(), (void)0); }
END_TEST

START_TEST(folders_are_made)
{
    const char *path = test_path("a/b/c.txt");
    OK(lin_make_folders_of(path, &err));
    test_write_file(path, "x", 1);
    OK(lin_make_folders_of(path, &err));
    OK(lin_make_folders_of("c.txt", &err));
    OK(lin_make_folders_of("/c.txt", &err));
    path = test_path("a/b/c.txt/d/e.txt");
    FAILS(lin_make_folders_of(path, &err), LIN_IO, "cannot create the folder");
}
END_TEST

/* ---- sounds with texts beside them ----------------------------------------------------------------------------------------- */

// The gathered utterances: "id<text>speaker" of each, without the place.
static const char *gathered(const lin_inputs *in)
{
    static char out[1024];
    out[0] = 0;
    const char *place = test_path("");
    for (int i = 0; i < in->n; i++) {
        const size_t used = strlen(out);
        ck_assert_int_eq(strncmp(in->items[i].text, place, strlen(place)), 0);
        snprintf(out + used, sizeof out - used, "%s%s<%s>%s", i ? " " : "", in->items[i].id,
                 in->items[i].text + strlen(place) + 1, in->items[i].speaker);
    }
    return out;
}

static lin_status gather_once(const char **operands)
{
    lin_inputs in = {0};
    lin_corpus c = {0};
    lin_status status = lin_corpus_gather(&c, &in, &(lin_list){operands, 1}, NULL, NULL);
    lin_corpus_free(&c);
    lin_inputs_free(&in);
    return status;
}

START_TEST(names_tell_what_belongs_together)
{
    mkdir(test_path("s"), 0777);
    static const char *const files[] = {"s/a.wav",    "s/a.txt",   "s/a.TextGrid", "s/a-b.wav", "s/a-b.LAB",
                                        "s/a.b.flac", "s/a.b.txt", "s/a.b.lab",    "s/aa.mp3",  "s/lost.txt",
                                        "s/mute.ogg", "s/a.html",  "b.wav",        "b.TEXTGRID"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) test_file(files[i], "x", 1);
    const char *operands[] = {test_path(""), NULL, NULL};
    lin_inputs in = {0};
    lin_corpus c = {0};
    OK(lin_corpus_gather(&c, &in, &(lin_list){operands, 1}, NULL, &err));
    ck_assert_str_eq(gathered(&in), "b<b.TEXTGRID> s/a-b<s/a-b.LAB>s s/a.b<s/a.b.lab>s s/a<s/a.txt>s");
    ck_assert(c.without_text == 2 && c.without_sound == 1); // aa, mute; lost
    ck_assert_str_eq(c.no_text.data, test_path("s/aa.mp3"));
    ck_assert_str_eq(c.no_text.data + strlen(c.no_text.data) + 1, test_path("s/mute.ogg"));
    lin_corpus_free(&c);
    lin_inputs_free(&in);
    OK(lin_corpus_gather(&c, &in, &(lin_list){operands, 1}, test_path("s"), &err));
    ck_assert_str_eq(gathered(&in), "b<b.TEXTGRID>");
    lin_corpus_free(&c);
    lin_inputs_free(&in);
    operands[0] = test_path("s/a.wav"), operands[1] = test_path("s/a.txt"), operands[2] = test_path("s/mute.ogg");
    OK(lin_corpus_gather(&c, &in, &(lin_list){operands, 3}, NULL, &err));
    ck_assert_str_eq(gathered(&in), "a<s/a.txt>");
    ck_assert(c.without_text == 1 && c.without_sound == 0);
    lin_corpus_free(&c);
    lin_inputs_free(&in);
    operands[0] = test_path("");
    FAIL_EVERY_ALLOCATION(gather_once(operands), (void)0);
    ck_assert(lin_corpus_is_textgrid("x.textgrid") && !lin_corpus_is_textgrid("x.lab") && !lin_corpus_is_sound(".wav"));
    ck_assert(lin_corpus_is_sound("a/b.M4A") && !lin_corpus_is_sound("wav") && lin_corpus_is_text("x.Lab"));
}
END_TEST

// Another run into the same folder replaces results, and the system gives their inodes to other files.
START_TEST(a_replaced_result_may_be_written)
{
    const char *result = test_file("result", "a", 1), *sound = test_file("sound", "b", 1);
    const struct timespec later[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    OK(lin_guard_wrote(result, &err));
    OK(lin_guard_reads(sound, &err));
    FAILS(lin_guard_writes(result, &err), LIN_INVALID, "would be overwritten");
    ck_assert(utimensat(AT_FDCWD, result, later, 0) == 0 && utimensat(AT_FDCWD, sound, later, 0) == 0);
    OK(lin_guard_writes(result, &err));
    FAILS(lin_guard_writes(sound, &err), LIN_INVALID, "would be overwritten");
    lin_guard_free();
}
END_TEST

TEST_MAIN_WITH(NULL, teardown, "app/inputs", TEST(folders_are_mirrored), TEST(names_below_a_root), TEST(names_of_a_list),
               TEST(one_name_twice), TEST(every_allocation_may_fail), TEST(folders_are_made),
               TEST(names_tell_what_belongs_together), TEST(a_replaced_result_may_be_written))
