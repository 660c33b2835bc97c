// app/corpus.c: which text belongs to which sound, in folders and beside files; every allocation failing.
#include "app/corpus.h"

#include <sys/stat.h>

#include "tests/lexicon/support.h"

static char folder[128];

static void touch(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_write_file(path, "x", 1);
}

static const char *below(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

// The gathered utterances: "id<text>speaker" of each, without the folder.
static const char *gathered(const lin_inputs *in, const lin_corpus *c)
{
    static char out[1024];
    out[0] = 0;
    ck_assert_int_eq(in->n, c->n);
    for (int i = 0; i < in->n; i++) {
        const size_t used = strlen(out);
        ck_assert_int_eq(strncmp(c->texts[i], folder, strlen(folder)), 0);
        snprintf(out + used, sizeof out - used, "%s%s<%s>%s", i ? " " : "", in->items[i].id, c->texts[i] + strlen(folder) + 1,
                 in->items[i].speaker);
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
    test_folder(folder, sizeof folder);
    mkdir(below("s"), 0777);
    static const char *const files[] = {"s/a.wav",    "s/a.txt",   "s/a.TextGrid", "s/a-b.wav", "s/a-b.LAB",
                                        "s/a.b.flac", "s/a.b.txt", "s/a.b.lab",    "s/aa.mp3",  "s/lost.txt",
                                        "s/mute.ogg", "s/a.html",  "b.wav",        "b.TEXTGRID"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) touch(files[i]);
    const char *operands[] = {folder, NULL, NULL};
    lin_inputs in = {0};
    lin_corpus c = {0};
    OK(lin_corpus_gather(&c, &in, &(lin_list){operands, 1}, NULL, &err));
    ck_assert_str_eq(gathered(&in, &c), "b<b.TEXTGRID> s/a-b<s/a-b.LAB>s s/a.b<s/a.b.lab>s s/a<s/a.txt>s");
    ck_assert(c.without_text == 2 && c.without_sound == 1); // aa, mute; lost
    ck_assert_str_eq(c.no_text.data, below("s/aa.mp3"));
    ck_assert_str_eq(c.no_text.data + strlen(c.no_text.data) + 1, below("s/mute.ogg"));
    lin_corpus_free(&c);
    lin_inputs_free(&in);
    OK(lin_corpus_gather(&c, &in, &(lin_list){operands, 1}, below("s"), &err));
    ck_assert_str_eq(gathered(&in, &c), "b<b.TEXTGRID>");
    lin_corpus_free(&c);
    lin_inputs_free(&in);
    operands[0] = below("s/a.wav"), operands[1] = below("s/a.txt"), operands[2] = below("s/mute.ogg");
    OK(lin_corpus_gather(&c, &in, &(lin_list){operands, 3}, NULL, &err));
    ck_assert_str_eq(gathered(&in, &c), "a<s/a.txt>");
    ck_assert(c.without_text == 1 && c.without_sound == 0);
    lin_corpus_free(&c);
    lin_inputs_free(&in);
    operands[0] = folder;
    FAIL_EVERY_ALLOCATION(gather_once(operands), (void)0);
    ck_assert(lin_corpus_is_textgrid("x.textgrid") && !lin_corpus_is_textgrid("x.lab") && !lin_corpus_is_sound(".wav"));
    ck_assert(lin_corpus_is_sound("a/b.M4A") && !lin_corpus_is_sound("wav") && lin_corpus_is_text("x.Lab"));
    test_folder_remove(folder);
}
END_TEST

TEST_MAIN("corpus", TEST(names_tell_what_belongs_together))
