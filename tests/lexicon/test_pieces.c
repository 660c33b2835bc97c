// Words as pieces: against tests/golden/pieces.py, there and back, and what is refused.

#include "lexicon/pieces.h"

#include <string.h>

#include "base/hash.h"
#include "base/textfile.h"
#include "train/learn/pieces_learn.h"
#include "tests/lexicon/support.h"

static lin_pieces *pieces_of(const char *names)
{
    lin_pieces *p;
    OK(lin_pieces_create(names, &p, &err));
    return p;
}

// "_th e" of a word
static const char *spelled(const lin_pieces *p, const char *word)
{
    static lin_buffer text;
    int at[LIN_WORD_MAX + 1], n;
    OK(lin_pieces_encode(p, word, strlen(word), at, LIN_WORD_MAX + 1, &n, &err));
    lin_buffer_clear(&text);
    for (int i = 0; i < n; i++) {
        if (i) lin_buffer_char(&text, ' ');
        lin_buffer_text(&text, lin_symbols_text(&p->names, at[i]));
    }
    return text.data;
}

START_TEST(golden)
{
    char *text, *line, *next;
    size_t n;
    int words_learnt = 0;
    uint64_t counts[1000];
    lin_symbols words = {0};
    lin_pieces *learnt, *again;
    lin_buffer list = {0};
    OK(lin_text_read("tests/golden/pieces.txt", &text, &n, &err));
    char *const names = text;
    *(line = strchr(text, '\n')) = 0;
    for (line++; *line; line = next) {
        char *const count = strchr(line, ' ');
        next = strchr(line, '\n') + 1;
        int index;
        const uint64_t times = (uint64_t)strtoul(count, NULL, 10);
        if (!times) continue;
        OK(lin_symbols_add(&words, line, (size_t)(count - line), &index, &err));
        counts[words_learnt++] = times;
    }
    ck_assert_int_gt(words_learnt, 100);
    OK(lin_pieces_learn(&words, counts, 89, &learnt, &err));
    lin_pieces_list(learnt, &list);
    ck_assert_str_eq(list.data, names);
    again = pieces_of(names);
    for (line = names + strlen(names) + 1; *line; line = next) {
        char word[64];
        next = strchr(line, '\n') + 1;
        next[-1] = 0;
        ck_assert_int_eq(sscanf(line, "%63s", word), 1);
        ck_assert_str_eq(spelled(again, word), strchr(strchr(line, ' ') + 1, ' ') + 1);
        ck_assert_str_eq(spelled(learnt, word), strchr(strchr(line, ' ') + 1, ' ') + 1);
    }
    lin_pieces_destroy(learnt);
    lin_pieces_destroy(again);
    lin_symbols_free(&words);
    lin_buffer_free(&list);
    lin_free(text);
}
END_TEST

// Any words of letters and apostrophes are spelled and read back, with any list.
START_TEST(there_and_back)
{
    static const char *const lists[] = {"", " th _th he", " aa aaa aaaa _a _aa 'a a'"};
    enum { WORDS = 50, ROOM = 12 };
    for (int k = 0; k < 3; k++) {
        lin_buffer names = {0}, want = {0}, got = {0};
        lin_buffer_text(&names, lin_pieces_characters);
        lin_buffer_text(&names, lists[k]);
        lin_pieces *p = pieces_of(names.data);
        int at[WORDS * ROOM], used = 0, n;
        for (int w = 0; w < WORDS; w++) {
            char word[ROOM];
            const uint64_t key = lin_random_key(7, (uint64_t)w);
            const size_t letters = 1 + (size_t)(lin_random_uniform(key, 0) * 9);
            for (size_t i = 0; i < letters; i++) word[i] = "aaath'ez"[(int)(lin_random_uniform(key, i + 1) * 8)];
            ck_assert(lin_pieces_encode(p, word, letters, at + used, ROOM, &n, NULL) == LIN_OK);
            used += n;
            if (w) lin_buffer_char(&want, ' ');
            lin_buffer_bytes(&want, word, letters);
        }
        lin_pieces_words(p, at, used, &got);
        ck_assert_str_eq(got.data, want.data);
        lin_buffer_free(&names);
        lin_buffer_free(&want);
        lin_buffer_free(&got);
        lin_pieces_destroy(p);
    }
}
END_TEST

START_TEST(sentences_end_words)
{
    lin_pieces *p = pieces_of(lin_pieces_characters);
    lin_buffer text = {0};
    lin_pieces_words(p, (const int[]){0, 1, 3, 4, 0, 5, 1, 1, 6, 0}, 10, &text);
    ck_assert_str_eq(text.data, "ab c d");
    lin_buffer_free(&text);
    lin_pieces_destroy(p);
}
END_TEST

START_TEST(refused)
{
    lin_pieces *p;
    lin_error why = {0};
    lin_buffer names = {0};
    int at[LIN_WORD_MAX + 1], n;
    char longest[LIN_WORD_MAX + 1];
    ck_assert(lin_pieces_create("<blank> AA AE", &p, &why) == LIN_MISMATCH);
    ck_assert_ptr_null(p);
    static const char *const wrong[] = {"z", " a", " th th", "  th", " t-h", " <s>"};
    for (int i = 0; i < 6; i++) {
        lin_buffer_clear(&names);
        lin_buffer_text(&names, lin_pieces_characters);
        lin_buffer_text(&names, wrong[i]);
        ck_assert_msg(lin_pieces_create(names.data, &p, &why) == LIN_MISMATCH, "%s", wrong[i]);
    }
    lin_buffer_free(&names);
    p = pieces_of(lin_pieces_characters);
    ck_assert(lin_pieces_encode(p, "", 0, at, 10, &n, &why) == LIN_FORMAT);
    ck_assert(lin_pieces_encode(p, "The", 3, at, 10, &n, &why) == LIN_FORMAT);
    ck_assert(lin_pieces_encode(p, "a_b", 3, at, 10, &n, &why) == LIN_FORMAT);
    ck_assert(lin_pieces_encode(p, "the", 3, at, 3, &n, &why) == LIN_TOO_SMALL);
    OK(lin_pieces_encode(p, "the", 3, at, 4, &n, &err));
    memset(longest, 'a', sizeof longest);
    OK(lin_pieces_encode(p, longest, LIN_WORD_MAX, at, LIN_WORD_MAX + 1, &n, &err));
    ck_assert(lin_pieces_encode(p, longest, LIN_WORD_MAX + 1, at, LIN_WORD_MAX + 1, &n, &why) == LIN_FORMAT);
    lin_pieces_destroy(p);
}
END_TEST

// Learning ends where nothing occurs twice, and no piece is longer than a name may be.
START_TEST(few_and_long)
{
    lin_symbols words = {0};
    lin_pieces *p;
    lin_error why = {0};
    char word[200];
    int index;
    memset(word, 'a', sizeof word);
    OK(lin_symbols_add(&words, word, sizeof word, &index, &err));
    OK(lin_pieces_learn(&words, (const uint64_t[]){1000}, 200, &p, &err));
    ck_assert_int_lt(p->names.n, 200);
    for (int i = 0; i < p->names.n; i++) ck_assert_uint_le(p->names.items[i].n, LIN_PIECE_BYTES);
    lin_pieces_destroy(p);
    ck_assert(lin_pieces_learn(&words, (const uint64_t[]){1000}, 28, &p, &why) == LIN_INVALID);
    OK(lin_symbols_add(&words, "b.", 2, &index, &err));
    ck_assert(lin_pieces_learn(&words, (const uint64_t[]){1000, 1}, 200, &p, &why) == LIN_FORMAT);
    lin_symbols_free(&words);
}
END_TEST

START_TEST(memory)
{
    lin_symbols words = {0};
    lin_pieces *p = NULL;
    int index;
    OK(lin_symbols_add(&words, "banana", 6, &index, &err));
    OK(lin_symbols_add(&words, "bandana", 7, &index, &err));
    FAIL_EVERY_ALLOCATION(lin_pieces_create(lin_pieces_characters, &p, NULL), lin_pieces_destroy(p));
    FAIL_EVERY_ALLOCATION(lin_pieces_learn(&words, (const uint64_t[]){3, 2}, 40, &p, NULL), lin_pieces_destroy(p));
    lin_symbols_free(&words);
}
END_TEST

TEST_MAIN("lexicon/pieces", TEST(golden), TEST(there_and_back), TEST(sentences_end_words), TEST(refused), TEST(few_and_long),
          TEST(memory))
