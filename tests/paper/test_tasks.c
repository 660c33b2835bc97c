// [variants] The sequences of paper/tasks.h: the form of the copy task, ListOps against an evaluator of its own, and Pathfinder
// against a flood fill.
#include "paper/tasks.h"
#include "tests/support.h"

START_TEST(copy_repeats_its_symbols)
{
    enum { LENGTH = 14, SYMBOLS = 3, MOST = (LENGTH - 2) / 2 };
    int tokens[LENGTH], targets[LENGTH], lengths[MOST + 1] = {0}, symbols[SYMBOLS + 1] = {0};
    for (uint64_t key = 0; key < 600; key++) {
        memset(tokens, 99, sizeof tokens);
        memset(targets, 99, sizeof targets);
        const int rows = lin_copy_make(LENGTH, SYMBOLS, key, tokens, targets), n = rows / 2;
        ck_assert(rows % 2 == 1 && n >= 1 && n <= MOST && rows < LENGTH);
        lengths[n]++;
        ck_assert(tokens[0] == 0 && tokens[n + 1] == 0);
        for (int i = 1; i <= n; i++) {
            ck_assert(tokens[i] >= 1 && tokens[i] <= SYMBOLS);
            symbols[tokens[i]]++;
            if (i < n) ck_assert_int_eq(tokens[n + 1 + i], tokens[i]);
            ck_assert_int_eq(targets[n + i], tokens[i]);
        }
        for (int i = 0; i <= n; i++) ck_assert_int_eq(targets[i], -1);
    }
    for (int n = 1; n <= MOST; n++) test_require(lengths[n] > 60, "%d of length %d", lengths[n], n);
    for (int s = 1; s <= SYMBOLS; s++) test_require(symbols[s] > 500, "%d of symbol %d", symbols[s], s);
}
END_TEST

// The value of the expression at *at, by counting digits instead of sorting them; -1: it is not one.
static int evaluate(const int *tokens, int T, int *at, int arguments, int depth, int *deepest)
{
    int count[10] = {0}, n = 0, sum = 0, value = 0;
    if (*at >= T) return -1;
    const int op = tokens[(*at)++];
    if (op < 10) return op;
    if (op < LIN_LISTOPS_MIN || op > LIN_LISTOPS_SM) return -1;
    if (depth > *deepest) *deepest = depth;
    while (*at < T && tokens[*at] != LIN_LISTOPS_END) {
        const int v = evaluate(tokens, T, at, arguments, depth + 1, deepest);
        if (v < 0) return -1;
        count[v]++;
        n++;
        sum += v;
    }
    if (*at >= T || n < 2 || n > arguments) return -1;
    ++*at;
    // the k-th smallest, from 0
    int ranks[4] = {0, n - 1, (n - 1) / 2, n / 2}, values[4];
    for (int r = 0; r < 4; r++) {
        int below = 0;
        for (value = 0; below + count[value] <= ranks[r]; value++) below += count[value];
        values[r] = value;
    }
    return op == LIN_LISTOPS_MIN   ? values[0]
           : op == LIN_LISTOPS_MAX ? values[1]
           : op == LIN_LISTOPS_MED ? (values[2] + values[3]) / 2
                                   : sum % 10;
}

START_TEST(the_evaluator_knows_its_operators)
{
    static const struct {
        int value, n, tokens[12];
    } known[] = {{3, 5, {LIN_LISTOPS_MIN, 7, 3, 9, LIN_LISTOPS_END}},
                 {9, 5, {LIN_LISTOPS_MAX, 7, 3, 9, LIN_LISTOPS_END}},
                 {7, 5, {LIN_LISTOPS_MED, 9, 3, 7, LIN_LISTOPS_END}},
                 {5, 6, {LIN_LISTOPS_MED, 9, 3, 8, 2, LIN_LISTOPS_END}},
                 {9, 5, {LIN_LISTOPS_SM, 7, 3, 9, LIN_LISTOPS_END}},
                 {4, 10, {LIN_LISTOPS_MAX, 4, 3, LIN_LISTOPS_MIN, 2, 3, LIN_LISTOPS_END, 1, 0, LIN_LISTOPS_END}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int at = 0, deepest = 0;
        ck_assert_int_eq(evaluate(known[i].tokens, known[i].n, &at, 10, 1, &deepest), known[i].value);
        ck_assert_int_eq(at, known[i].n);
    }
}
END_TEST

START_TEST(listops_have_the_value_they_say)
{
    static const lin_listops forms[] = {{1, 50, 3, 5}, {500, 2000, 10, 10}, {4, 4, 2, 2}, {30, 40, 4, 3}};
    int tokens[2001], values[10] = {0}, deepest_of[4] = {0};
    for (uint64_t key = 0; key < 400; key++) {
        const lin_listops *how = &forms[key % 4];
        int T, value, at = 0;
        OK(lin_listops_make(how, key, tokens, &T, &value, &err));
        ck_assert(T - 1 >= how->least && T - 1 <= how->most);
        ck_assert_int_eq(tokens[T - 1], LIN_LISTOPS_ASK);
        ck_assert_int_ge(tokens[0], LIN_LISTOPS_MIN);
        ck_assert_int_eq(evaluate(tokens, T - 1, &at, how->arguments, 1, &deepest_of[key % 4]), value);
        ck_assert_int_eq(at, T - 1);
        values[value]++;
    }
    for (int i = 0; i < 4; i++) ck_assert_int_le(deepest_of[i], forms[i].depth - 1);
    ck_assert_int_ge(deepest_of[1], 7);
    for (int v = 0; v < 10; v++) ck_assert_int_ge(values[v], 8);
    int T, value;
    const lin_listops never = {2000, 2000, 2, 4};
    FAILS(lin_listops_make(&never, 1, tokens, &T, &value, &err), LIN_INVALID, "had 2000 to 2000 tokens");
}
END_TEST

enum { SIDE = LIN_PATHFINDER_SIDE };

// Marks all lit pixels that a chain of lit pixels, each at most two from the one before, joins to this one.
static void spread_from(const int *pixels, int at, unsigned char *seen)
{
    seen[at] = 1;
    for (int y = at / SIDE - 2; y <= at / SIDE + 2; y++)
        for (int x = at % SIDE - 2; x <= at % SIDE + 2; x++)
            if (x >= 0 && x < SIDE && y >= 0 && y < SIDE && pixels[y * SIDE + x] && !seen[y * SIDE + x])
                spread_from(pixels, y * SIDE + x, seen);
}

static int is_dot(const int *p, int at)
{
    const int x = at % SIDE, y = at / SIDE;
    return x > 0 && x < SIDE - 1 && y > 0 && y < SIDE - 1 && p[at] == 255 && p[at - 1] == 255 && p[at + 1] == 255 &&
           p[at - SIDE] == 255 && p[at + SIDE] == 255;
}

START_TEST(a_path_joins_the_dots_or_not)
{
    int pixels[LIN_PATHFINDER_PIXELS], again[LIN_PATHFINDER_PIXELS], classes[2] = {0}, paths = 0;
    enum { N = 400 };
    for (uint64_t key = 0; key < N; key++) {
        unsigned char seen[LIN_PATHFINDER_PIXELS] = {0};
        const int length = 8 + (int)key % 21, class = lin_pathfinder_make(length, 6, key, pixels);
        int dots[3], n = 0;
        for (int at = 0; at < LIN_PATHFINDER_PIXELS; at++) {
            ck_assert(pixels[at] == 0 || (pixels[at] >= 128 && pixels[at] <= 255));
            if (is_dot(pixels, at)) dots[n++ < 2 ? n - 1 : 2] = at;
        }
        ck_assert_int_eq(n, 2);
        spread_from(pixels, dots[0], seen);
        ck_assert_int_eq(seen[dots[1]], class);
        for (int at = 0; at < LIN_PATHFINDER_PIXELS; at++)
            if (pixels[at] && !seen[at]) spread_from(pixels, at, seen), paths++;
        classes[class]++;
        ck_assert_int_eq(lin_pathfinder_make(length, 6, key, again), class);
        ck_assert(memcmp(pixels, again, sizeof pixels) == 0);
    }
    test_require(classes[0] > N / 3 && classes[1] > N / 3, "%d and %d", classes[0], classes[1]);
    test_require(paths > 4 * N, "%d paths without the first dot", paths);
}
END_TEST

TEST_MAIN("paper/tasks", TEST(copy_repeats_its_symbols), TEST(the_evaluator_knows_its_operators),
          TEST(listops_have_the_value_they_say), TEST(a_path_joins_the_dots_or_not))
