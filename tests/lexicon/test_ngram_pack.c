// lexicon/ngram_pack.c and ngram_build.c: files written and mapped, damage refused, forged files harmless, code books that round.
#include <sys/stat.h>
#include <zlib.h>

#include "base/file.h"
#include "train/learn/ngram_draft.h"
#include "lexicon/ngram_block.h"
#include "tests/lexicon/random_model.h"

static char folder[256], path[300];

static void setup(void)
{
    test_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/x.lm", folder);
}

static void teardown(void)
{
    test_folder_remove(folder);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

START_TEST(written_and_mapped)
{
    for (int order = 1; order <= 5; order++) {
        model *m = random_model(40 + (uint64_t)order, order, 10, 2.5, order == 2, 7);
        lin_ngram *lm = model_parse(m), *mapped, *copied;
        OK(lin_ngram_write(lm, path, &err)); // replaces the previous file
        ck_assert_int_eq(test_folder_entries(folder), 1);
        lin_ngram_most_copied = 0;
        OK(lin_ngram_open(path, &mapped, &err));
        lin_ngram_most_copied = lm->size;
        OK(lin_ngram_open(path, &copied, &err));
        ck_assert(mapped->mapped && !copied->mapped);
        ck_assert_str_eq(lin_file_map_find(mapped->bytes), path);
        ck_assert_uint_eq(lin_ngram_fingerprint(mapped), lin_ngram_fingerprint(lm));
        ck_assert_uint_eq(lin_ngram_states(mapped), lin_ngram_states(lm));
        ck_assert_int_eq(lin_ngram_words(copied), lin_ngram_words(lm));
        for (int k = 1; k <= order; k++) ck_assert_int_eq(lin_ngram_count(mapped, k), m->counts[k]);
        ck_assert_int_eq(truncate(path, 0), 0); // the copy does not see it
        walk_compare(copied, m, 300, 2e-5);
        test_write_file(path, lm->bytes, lm->size); // write it back, or the mapped model cannot be read
        walk_compare(mapped, m, 300, 2e-5);
        lin_ngram_destroy(lm);
        lin_ngram_destroy(mapped);
        lin_ngram_destroy(copied);
        lin_free(m);
    }
}
END_TEST

START_TEST(permissions_are_those_of_a_new_file)
{
    struct stat info;
    model *m = random_model(1, 2, 5, 2, 0, 0);
    lin_ngram *lm = model_parse(m);
    mode_t before = umask(027);
    OK(lin_ngram_write(lm, path, &err));
    umask(before);
    ck_assert(!stat(path, &info));
    ck_assert_int_eq(info.st_mode & 0777, 0640);
    lin_ngram_destroy(lm);
    lin_free(m);
}
END_TEST

START_TEST(files_that_cannot_be_written)
{
    model *m = random_model(1, 2, 5, 2, 0, 0);
    lin_ngram *lm = model_parse(m), *other;
    char inside[400];
    FAILS(lin_ngram_write(lm, "/nonexistent/x.lm", &err), LIN_IO, "cannot write /nonexistent/x.lm");
    snprintf(inside, sizeof inside, "%s/folder", folder);
    ck_assert(!mkdir(inside, 0777));
    FAILS(lin_ngram_write(lm, inside, &err), LIN_IO, "cannot write"); // renaming onto a folder
    ck_assert_int_eq(test_folder_entries(folder), 1);
    FAIL_EVERY_ALLOCATION(lin_ngram_write(lm, path, NULL), (void)0);
    FAIL_EVERY_ALLOCATION(lin_ngram_open(path, &other, NULL), lin_ngram_destroy(other));
    FAIL_EVERY_ALLOCATION(lin_ngram_unpack(lm->bytes, lm->size, "x", &other, NULL), lin_ngram_destroy(other));
    lin_ngram_destroy(lm);
    lin_free(m);
}
END_TEST

// Compressed text, compressed packed models and models from a pipe can be opened.
START_TEST(every_wrapping)
{
    model *m = random_model(6, 3, 8, 2, 0, 3);
    lin_ngram *lm = model_parse(m), *other;
    size_t n;
    char *text = model_text(m, &n);
    const struct {
        const void *bytes;
        size_t n;
    } contents[] = {{text, n}, {lm->bytes, lm->size}};
    for (int i = 0; i < 2; i++) {
        gzFile file = gzopen(path, "wb");
        ck_assert(file && gzwrite(file, contents[i].bytes, (unsigned)contents[i].n) == (int)contents[i].n &&
                  gzclose(file) == Z_OK);
        OK(lin_ngram_open(path, &other, &err));
        ck_assert_uint_eq(lin_ngram_fingerprint(other), lin_ngram_fingerprint(lm));
        lin_ngram_destroy(other);
    }
    int ends[2]; // a shell's <(...)
    ck_assert(!pipe(ends) && n < 60000 && write(ends[1], text, n) == (ssize_t)n);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    OK(lin_ngram_open(path, &other, &err));
    close(ends[0]);
    ck_assert_uint_eq(lin_ngram_fingerprint(other), lin_ngram_fingerprint(lm));
    lin_ngram_destroy(other);
    free(text);
    lin_ngram_destroy(lm);
    lin_free(m);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------------------------------------- */

START_TEST(cut_and_flipped)
{
    lin_ngram *lm, *other;
    static const char text[] =
        "\\data\\\nngram 1=3\nngram 2=2\n\\1-grams:\n-1 a -0.5\n-2 b\n-1.5 </s>\n\\2-grams:\n-0.25 a b\n-1 b a\n\\end\\\n";
    OK(lin_ngram_parse(text, sizeof text - 1, "x", &lm, &err));
    unsigned char *bytes = lin_alloc(lm->size + 1, 1);
    memcpy(bytes, lm->bytes, lm->size);
    bytes[lm->size] = 0;
    unsigned long live = lin_memory_live();
    for (size_t n = 0; n <= lm->size + 1; n++) {
        if (n == lm->size) continue;
        ck_assert_msg(lin_ngram_unpack(bytes, n, "x", &other, NULL) == LIN_FORMAT && !other, "cut after %zu bytes", n);
    }
    for (size_t bit = 0; bit < 8 * lm->size; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        lin_status status = lin_ngram_unpack(bytes, lm->size, "x", &other, NULL);
        int version = bit / 8 >= LIN_NGRAM_AT_VERSION && bit / 8 < LIN_NGRAM_AT_ORDER;
        ck_assert_msg(status == (version ? LIN_UNSUPPORTED : LIN_FORMAT) && !other, "bit %zu: %s", bit, lin_status_name(status));
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    ck_assert_uint_eq(lin_memory_live(), live);
    FAILS(lin_ngram_unpack("", 0, "x.lm", &other, &err), LIN_FORMAT, "x.lm: not a packed language model");
    FAILS(lin_ngram_unpack(bytes, lm->size - 1, "x.lm", &other, &err), LIN_FORMAT, "the file is cut or damaged");
    bytes[LIN_NGRAM_AT_LEVELS]++;
    FAILS(lin_ngram_unpack(bytes, lm->size, "x.lm", &other, &err), LIN_FORMAT, "x.lm: the checksum of its header is wrong");
    bytes[LIN_NGRAM_AT_LEVELS]--;
    bytes[lm->text_at + lm->text_bytes - 1] = 'x';
    lin_ngram_put_checksums(bytes, lm->size);
    FAILS(lin_ngram_unpack(bytes, lm->size, "x.lm", &other, &err), LIN_FORMAT, "x.lm: its last word has no end");
    memcpy(bytes, lm->bytes, lm->size);
    bytes[lm->text_at] ^= 1;
    FAILS(lin_ngram_unpack(bytes, lm->size, "x.lm", &other, &err), LIN_FORMAT, "x.lm: its checksum is wrong");
    test_write_file(path, bytes, lm->size);
    FAILS(lin_ngram_open(path, &other, &err), LIN_FORMAT, "its checksum is wrong; the file is damaged, make it again");
    test_write_file(path, bytes, LIN_NGRAM_HEADER - 1);
    FAILS(lin_ngram_open(path, &other, &err), LIN_FORMAT, "not a packed language model");
    bytes[LIN_NGRAM_AT_VERSION] = 2;
    FAILS(lin_ngram_unpack(bytes, lm->size, "x.lm", &other, &err), LIN_UNSUPPORTED, "of version 2; this program reads version 1");
    lin_free(bytes);
    lin_ngram_destroy(lm);
}
END_TEST

// Every query on a forged block: reads stay within it (AddressSanitizer checks), results are in range, and every call returns.
static void ask(const lin_ngram *lm, uint64_t key)
{
    lin_ngram_state state = lin_ngram_begin(lm), next;
    for (uint64_t i = 0; i < 60; i++) {
        int word = (int)lin_random_below(key, 2 * i, (uint32_t)lin_ngram_words(lm) + 2) - 1;
        float logp = lin_ngram_score(lm, state, word, &next);
        ck_assert(!isnan(logp) && next < lin_ngram_states(lm));
        ck_assert(!isnan(lin_ngram_end(lm, state)) && !isnan(lin_ngram_unigram(lm, word)));
        state = i % 5 ? next : lin_random_below(key, 2 * i + 1, lin_ngram_states(lm));
        const char *text = lin_ngram_word(lm, word);
        if (text) lin_ngram_find(lm, text, strlen(text));
    }
}

START_TEST(deceit)
{
    int opened = 0;
    for (uint64_t seed = 0; seed < 6; seed++) {
        model *m = random_model(500 + seed, 1 + (int)seed, 7, 2, 0, 7);
        lin_ngram *lm = model_parse(m), *other;
        unsigned char *bytes = lin_alloc(lm->size, 1);
        for (uint64_t trial = 0; trial < 400; trial++) {
            memcpy(bytes, lm->bytes, lm->size);
            uint64_t key = lin_random_key(seed, trial);
            size_t begin = trial % 4 ? LIN_NGRAM_HEADER : LIN_NGRAM_AT_ORDER;
            for (uint64_t i = 0; i < 1 + trial % 40; i++) {
                size_t at = begin + lin_random_below(key, 2 * i, (uint32_t)(lm->size - begin));
                bytes[at] = trial % 3 ? (unsigned char)lin_random_bits(key, 2 * i + 1) : 0xFF;
            }
            if (trial % 5 == 0 && lm->order > 2) { // links to anywhere
                const lin_ngram_level *level = &lm->levels[2 + trial / 5 % (uint64_t)(lm->order - 2)];
                memset(bytes + level->inner_at, trial % 2 ? 0xFF : 0x5A, ((size_t)level->inner * level->inner_bits + 7) / 8);
            }
            lin_ngram_put_checksums(bytes, lm->size);
            lin_error err = {0};
            if (lin_ngram_unpack(bytes, lm->size, "x.lm", &other, &err)) {
                ck_assert(err.status == LIN_FORMAT && err.message[0]);
                continue;
            }
            opened++;
            ask(other, key);
            FILE *null = fopen("/dev/null", "w");
            ck_assert(!lin_ngram_write_arpa(other, null, "null", NULL));
            fclose(null);
            lin_ngram_destroy(other);
        }
        lin_free(bytes);
        lin_ngram_destroy(lm);
        lin_free(m);
    }
    ck_assert_int_gt(opened, 300);
}
END_TEST

/* ---- code books ------------------------------------------------------------------------------------------------------------ */

static float unigram_of(int w) { return (float)((w ? -2.5 - w * 0.001 : LIN_NGRAM_NEVER) * log(10)); }

// Fewer bits: at most 2^bits values, each of them near the number that it replaces.
START_TEST(fewer_bits)
{
    enum { WORDS = 200, PAIRS = 100 * WORDS };
    lin_ngram_draft draft = {.order = 2, .unknown = -1, .begin = -1, .end = -1, .code_bits = 8};
    OK(lin_ngram_draft_level_create(&draft.level[0], 1, WORDS, 1, &err));
    OK(lin_ngram_draft_level_create(&draft.level[1], 2, PAIRS, 0, &err));
    double *want = lin_alloc(PAIRS, sizeof *want);
    for (int w = 0; w < WORDS; w++) {
        char word[16];
        int index;
        snprintf(word, sizeof word, "w%03d", w);
        OK(lin_symbols_add(&draft.words, word, 4, &index, &err));
        draft.level[0].words[w] = (uint32_t)w;
        draft.level[0].logp[w] = (double)unigram_of(w) / log(10);
        draft.level[0].backoff[w] = -3 * lin_random_uniform(5, (uint64_t)w);
    }
    for (int i = 0; i < PAIRS; i++) {
        draft.level[1].words[2 * i] = (uint32_t)(i / 100);
        draft.level[1].words[2 * i + 1] = (uint32_t)(i % 100);
        draft.level[1].logp[i] = want[i] = -7 * lin_random_uniform(3, (uint64_t)i) * lin_random_uniform(4, (uint64_t)i);
    }
    lin_ngram *lm;
    OK(lin_ngram_draft_finish(&draft, "x", &lm, &err));
    ck_assert_uint_eq(lm->levels[2].logp_bits, 8);
    for (int w = 0; w < WORDS; w++) ck_assert_float_eq_tol(lin_ngram_unigram(lm, w), unigram_of(w), 1e-6f); // exact
    double mean = 0;
    for (int i = 0; i < PAIRS; i++) {
        lin_ngram_state state, next;
        lin_ngram_score(lm, 0, i / 100, &state);
        double error = (double)lin_ngram_score(lm, state, i % 100, &next) / log(10) - want[i];
        ck_assert_double_le(fabs(error), 7.0 / 127); // no bin is wider
        mean += error;
    }
    ck_assert_double_le(fabs(mean / PAIRS), 1e-6);
    lin_free(want);
    lin_ngram_destroy(lm);
}
END_TEST

// 150,000 bigrams with as many distinct probabilities, more than there are codes: the rounding error is small.
START_TEST(more_numbers_than_codes)
{
    enum { WORDS = 400, PAIRS = 375 * WORDS };
    char *text = NULL;
    size_t n;
    FILE *file = open_memstream(&text, &n);
    double *want = lin_alloc(PAIRS, sizeof *want);
    fprintf(file, "\\data\\\nngram 1=%d\nngram 2=%d\n\\1-grams:\n", WORDS, PAIRS);
    for (int w = 0; w < WORDS; w++) fprintf(file, "-2.5 w%03d -0.5\n", w);
    fprintf(file, "\\2-grams:\n");
    for (int i = 0; i < PAIRS; i++) {
        want[i] = -7 * lin_random_uniform(3, (uint64_t)i) * lin_random_uniform(4, (uint64_t)i);
        fprintf(file, "%.9f w%03d w%03d\n", want[i], i % WORDS, i / WORDS);
    }
    fprintf(file, "\\end\\\n");
    fclose(file);
    lin_ngram *lm;
    OK(lin_ngram_parse(text, n, "x.arpa", &lm, &err));
    ck_assert_uint_eq(lm->levels[2].logp_bits, LIN_NGRAM_CODE_BITS);
    double largest = 0, sum = 0, mean = 0;
    for (int i = 0; i < PAIRS; i++) {
        lin_ngram_state state, next;
        lin_ngram_score(lm, 0, i % WORDS, &state);
        double error = (double)lin_ngram_score(lm, state, i / WORDS, &next) / log(10) - want[i];
        largest = fmax(largest, fabs(error));
        sum += fabs(error);
        mean += error;
    }
    ck_assert_double_le(largest, 7.0 / 32767); // no bin is wider
    ck_assert_double_le(sum / PAIRS, 4e-5);
    ck_assert_double_le(fabs(mean / PAIRS), 1e-6); // the perplexity changes by a millionth
    lin_ngram *again;
    free(text);
    file = open_memstream(&text, &n);
    OK(lin_ngram_write_arpa(lm, file, "x", &err));
    fclose(file);
    OK(lin_ngram_parse(text, n, "x.arpa", &again, &err));
    ck_assert_uint_eq(lin_ngram_fingerprint(again), lin_ngram_fingerprint(lm)); // rounded once, and not again
    free(text);
    lin_free(want);
    lin_ngram_destroy(lm);
    lin_ngram_destroy(again);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "ngram_pack", TEST(written_and_mapped), TEST(permissions_are_those_of_a_new_file),
               TEST(files_that_cannot_be_written), TEST(every_wrapping), TEST(cut_and_flipped), TEST(deceit), TEST(fewer_bits),
               TEST(more_numbers_than_codes))
