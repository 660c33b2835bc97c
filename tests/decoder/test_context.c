// decoder/context.c: against every occurrence of every phrase found by comparison, on random phrases; partial bonuses given and
// taken back; bad arguments; failing allocations.
#include "decoder/context.h"

#include "tests/lexicon/support.h"

enum { MAX_PHRASES = 12, MAX_LENGTH = 6, MAX_TEXT = 60 };

typedef struct phrases {
    int n, tokens[MAX_PHRASES][MAX_LENGTH];
    lin_context_phrase list[MAX_PHRASES];
} phrases;

static void draw(phrases *p, uint64_t seed)
{
    p->n = (int)lin_random_below(seed, 0, MAX_PHRASES + 1);
    for (int i = 0; i < p->n; i++) {
        const int n = 1 + (int)lin_random_below(seed, (uint64_t)i * 10 + 1, MAX_LENGTH);
        for (int k = 0; k < n; k++) {
            p->tokens[i][k] = (int)lin_random_below(seed, (uint64_t)i * 10 + 2 + (uint64_t)k, 3) * (seed % 2 ? 1 : 1000000);
        }
        const double bonus = ((double)lin_random_below(seed, (uint64_t)i * 10 + 9, 200) - (seed % 3 ? 0 : 100)) / 8.0;
        p->list[i] = (lin_context_phrase){p->tokens[i], n, bonus};
    }
}

static int matches(const int *a, const int *b, int n) { return memcmp(a, b, (size_t)n * sizeof *a) == 0; }

// True if an equal phrase has a larger bonus, or the same bonus and an earlier place: only one of them counts.
static int counted(const phrases *p, int i)
{
    const lin_context_phrase *own = &p->list[i];
    for (int k = 0; k < p->n; k++) {
        const lin_context_phrase *other = &p->list[k];
        if (k == i || other->n != own->n || !matches(other->tokens, own->tokens, own->n)) continue;
        if (other->bonus > own->bonus || (other->bonus == own->bonus && k < i)) return 0;
    }
    return 1;
}

// By comparison: occurrences complete within text [n], and the best partial bonus of phrases begun at its end.
static double complete(const phrases *p, const int *text, int n)
{
    double sum = 0;
    for (int i = 0; i < p->n; i++) {
        const lin_context_phrase *own = &p->list[i];
        for (int at = 0; counted(p, i) && at + own->n <= n; at++)
            if (matches(text + at, own->tokens, own->n)) sum += own->bonus;
    }
    return sum;
}

static double pending(const phrases *p, const int *text, int n)
{
    double best = 0;
    for (int i = 0; i < p->n; i++) {
        const lin_context_phrase *own = &p->list[i];
        for (int k = 1; counted(p, i) && k < own->n && k <= n; k++) {
            if (!matches(text + n - k, own->tokens, k)) continue;
            best = fmax(best, fmin(own->bonus * k / own->n, 6));
        }
    }
    return best;
}

START_TEST(every_occurrence_counts)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        phrases p;
        int text[MAX_TEXT], state = 0;
        lin_context *c;
        double sum = 0;
        draw(&p, seed);
        OK(lin_context_create(p.list, p.n, &c, &err));
        unsigned long allocations = lin_memory_count();
        for (int t = 0; t < MAX_TEXT; t++) {
            text[t] = (int)lin_random_below(seed, 1000 + (uint64_t)t, 4) * (seed % 2 ? 1 : 1000000);
            sum += (double)lin_context_next(c, &state, text[t]);
            ck_assert(state >= 0);
            double got = sum, want = complete(&p, text, t + 1) + pending(&p, text, t + 1);
            test_require(fabs(got - want) < 1e-3, "seed %llu, token %d: %g, expected %g", (unsigned long long)seed, t, got, want);
            int end = state;
            ck_assert((double)lin_context_pending(c, state) + (double)lin_context_finish(c, &end) == 0 && end == 0);
        }
        sum += (double)lin_context_finish(c, &state);
        ck_assert(fabs(sum - complete(&p, text, MAX_TEXT)) < 1e-4);
        ck_assert_uint_eq(lin_memory_count(), allocations);
        lin_context_destroy(c);
    }
}
END_TEST

// A phrase that fails is taken back exactly, however often.
START_TEST(taken_back_to_the_bit)
{
    const int a[] = {1, 2, 3, 4, 5, 6, 7}, b[] = {1, 2, 9};
    const int text[] = {1, 2, 3, 8, 1, 1, 2, 3, 4, 5, 6, 8};
    const lin_context_phrase both[] = {{a, 7, 3.3}, {b, 3, 0.7}};
    lin_context *c;
    double sum = 0;
    int state = 0;
    OK(lin_context_create(both, 2, &c, &err));
    for (int i = 0; i < 12000; i++) sum += (double)lin_context_next(c, &state, text[i % 12]);
    ck_assert(sum == 0);
    for (int i = 0; i < 3; i++) sum += (double)lin_context_next(c, &state, b[i]);
    ck_assert(fabs(sum - 0.7) < 1e-6);
    ck_assert(lin_context_finish(c, &state) == 0);
    for (int i = 0; i < 3; i++) sum += (double)lin_context_next(c, &state, a[i]);
    ck_assert(fabs(sum - 0.7 - 3.3 * 3 / 7) < 1e-3);
    ck_assert(fabs((double)lin_context_finish(c, &state) + 3.3 * 3 / 7) < 1e-3);
    lin_context_destroy(c);
}
END_TEST

START_TEST(states_from_elsewhere_are_harmless)
{
    const int a[] = {1, 2};
    lin_context *c;
    OK(lin_context_create(&(lin_context_phrase){a, 2, 4}, 1, &c, &err));
    const int wild[] = {-1, 3, 1 << 30, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        int state = wild[i];
        ck_assert(lin_context_pending(c, state) == 0);
        ck_assert(lin_context_next(c, &state, 1) == 2 && state == 1);
        state = wild[i];
        ck_assert(lin_context_finish(c, &state) == 0 && state == 0);
    }
    lin_context_destroy(c);
}
END_TEST

START_TEST(identity)
{
    const int a[] = {1, 2}, b[] = {1, 3};
    const lin_context_phrase lists[][2] = {{{a, 2, 4}, {b, 2, 5}}, {{b, 2, 5}, {a, 2, 4}}, {{a, 2, 5}, {b, 2, 4}}};
    lin_context *c[4];
    OK(lin_context_create(NULL, 0, &c[0], &err));
    for (int i = 0; i < 3; i++) OK(lin_context_create(lists[i], 2, &c[i + 1], &err));
    ck_assert(lin_context_id(c[1]) == lin_context_id(c[2]));
    ck_assert(lin_context_id(c[0]) != 0 && lin_context_id(c[0]) != lin_context_id(c[1]));
    ck_assert(lin_context_id(c[1]) != lin_context_id(c[3]));
    int state = 0;
    ck_assert(lin_context_next(c[0], &state, 7) == 0 && state == 0);
    for (int i = 0; i < 4; i++) lin_context_destroy(c[i]);
    lin_context_destroy(NULL);
}
END_TEST

START_TEST(bad_phrases)
{
    const int a[] = {1, -2}, b[] = {1, 3};
    const lin_context_phrase fine = {b, 2, 4}, bad[] = {{a, 2, 5}, {b, 0, 5}, {b, 2, (double)NAN}, {b, 2, -1e3}};
    const char *why[] = {"phrase 2 of the context: token -2", "phrase 2 of the context is empty",
                         "phrase 2 of the context: a bonus of nan", "a bonus of -1000"};
    lin_context *c;
    for (int i = 0; i < 4; i++)
        FAILS(lin_context_create((const lin_context_phrase[]){fine, bad[i]}, 2, &c, &err), LIN_INVALID, why[i]);
    FAILS(lin_context_create(&fine, -1, &c, &err), LIN_INVALID, "-1 phrases");
    ck_assert(c == NULL);
    FAIL_EVERY_ALLOCATION(lin_context_create(&fine, 1, &c, NULL), lin_context_destroy(c));
}
END_TEST

TEST_MAIN("context", TEST(every_occurrence_counts), TEST(taken_back_to_the_bit), TEST(states_from_elsewhere_are_harmless),
          TEST(identity), TEST(bad_phrases))
