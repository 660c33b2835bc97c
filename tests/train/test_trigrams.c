// lin_trigrams_open: every table against the scores of the n-gram model; models that do not fit; failing allocations.
#include <math.h>

#include "base/memory.h"
#include "lexicon/ngram.h"
#include "tests/support.h"
#include "train/train_internal.h"

static const char arpa[] =
    "\\data\\\nngram 1=6\nngram 2=6\nngram 3=4\n\n\\1-grams:\n-0.8 </s>\n-99 <s> -0.3\n-0.5 B -0.2\n-0.7 A -0.4\n-0.9 C -0.1\n"
    "-2.0 <unk>\n\n\\2-grams:\n-0.2 <s> A -0.15\n-0.6 A B -0.25\n-0.4 B B -0.05\n-0.3 B A -0.35\n-0.45 A A -0.3\n"
    "-0.55 B </s>\n\n\\3-grams:\n-0.1 <s> A B\n-0.12 A B A\n-0.14 B A B\n-0.16 A B </s>\n\n\\end\\\n";
static const char *path;

static void set_up(void)
{
    path = test_file("x.arpa", arpa, strlen(arpa));
}

// After a and b, 0 being nothing; a = 0 and b not: after the beginning and b.
static lin_ngram_state after(const lin_ngram *lm, const int *words, int a, int b)
{
    lin_ngram_state s = a ? LIN_NGRAM_EMPTY : lin_ngram_begin(lm);
    if (a) lin_ngram_score(lm, s, words[a], &s);
    if (b) lin_ngram_score(lm, s, words[b], &s);
    return s;
}

START_TEST(tables)
{
    enum { V = 4, S = V * V };
    lin_ngram *lm;
    lin_ngram_state unused;
    float *block;
    OK(lin_ngram_open(path, &lm, &err));
    OK(lin_trigrams_open(path, "<blank> A B C", V, &block, &err));
    const lin_trigrams q = lin_trigrams_at(block, V);
    const int words[V] = {-1, lin_ngram_find(lm, "A", 1), lin_ngram_find(lm, "B", 1), lin_ngram_find(lm, "C", 1)};
    for (int b = 0; b < V; b++)
        for (int a = 0; a < (b ? V : 1); a++) {
            const lin_ngram_state s = after(lm, words, a, b);
            ck_assert(fabs((double)q.end[b * V + a] - exp((double)lin_ngram_end(lm, s))) < 1e-6);
            for (int c = 1; c < V; c++) {
                const double want = exp((double)lin_ngram_score(lm, s, words[c], &unused));
                const double again = (double)q.again[b * V + a], next = (double)q.next[b * S + a * V + c];
                const double got = c == b ? again : next;
                ck_assert_msg(fabs(got - want) < 1e-6, "P(%d | %d %d) is %g, expected %g", c, a, b, got, want);
                ck_assert((double)q.back[b * S + c * V + a] == next);
                ck_assert(c != b || next == 0);
            }
        }
    const double known = (double)q.next[1 * S + 0 * V + 2]; // B after <s> A: the trigram itself
    ck_assert(fabs(known - pow(10, -0.1)) < 1e-6);
    lin_free(block);
    lin_ngram_destroy(lm);
}
END_TEST

START_TEST(an_installed_model)
{
    float *block;
    OK(lin_trigrams_open("phones.lm", "<blank> AA AE", 3, &block, &err));
    lin_free(block);
}
END_TEST

START_TEST(refused)
{
    float *block;
    FAILS(lin_trigrams_open(path, "<blank> A B D", 4, &block, &err), LIN_MISMATCH, "no phone D");
    ck_assert_ptr_null(block);
    FAILS(lin_trigrams_open(path, "<blank> A B C", 257, &block, &err), LIN_UNSUPPORTED, "");
    FAILS(lin_trigrams_open("/nowhere.lm", "<blank> A", 2, &block, &err), LIN_IO, "");
    const char *const zeros[][2] = {{"-0.8 </s>", "-99 </s>"}, {"-0.9 C", "-40 C"}, {"-0.14 B A B", "-99 B A B"}};
    for (int i = 0; i < 3; i++) {
        char text[sizeof arpa + 8];
        const char *at = strstr(arpa, zeros[i][0]);
        const int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - arpa), arpa, zeros[i][1], at + strlen(zeros[i][0]));
        test_write_file(path, text, (size_t)n);
        FAILS(lin_trigrams_open(path, "<blank> A B C", 4, &block, &err), LIN_UNSUPPORTED, "probability 0");
        ck_assert_ptr_null(block);
    }
    test_write_file(path, arpa, strlen(arpa));
    FAIL_EVERY_ALLOCATION_OF(block, lin_trigrams_open(path, "<blank> A B C", 4, &block, NULL), lin_free(block));
}
END_TEST

TEST_MAIN_WITH(set_up, NULL, "train/trigrams", TEST(tables), TEST(an_installed_model), TEST(refused))
