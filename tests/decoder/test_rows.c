// decoder/rows.c: rows that are accepted, rows that are refused, and the messages.
#include "decoder/rows.h"

#include "tests/lexicon/support.h"

enum { V = 5 };

static void even(float *row)
{
    for (int v = 0; v < V; v++) row[v] = (float)log(1.0 / V);
}

START_TEST(log_probabilities_pass)
{
    float rows[3 * V];
    for (int t = 0; t < 3; t++) even(rows + t * V);
    OK(lin_rows_check(rows, 3, V, &err));
    OK(lin_rows_check(rows, 0, V, &err));
    for (int v = 0; v < V; v++) rows[v] = v == 2 ? 0 : -INFINITY;
    OK(lin_rows_check(rows, 3, V, &err));
    rows[2] = 0.009f; // rounding of half precision is this large
    OK(lin_rows_check(rows, 3, V, &err));
}
END_TEST

START_TEST(others_are_named_by_row_and_kind)
{
    float rows[3 * V];
    for (int t = 0; t < 3; t++) even(rows + t * V);
    rows[2 * V + 3] = NAN;
    FAILS(lin_rows_check(rows, 3, V, &err), LIN_NUMERIC, "row 2: column 3 is not a number (NaN)");
    even(rows + 2 * V);
    rows[V] = 1;
    FAILS(lin_rows_check(rows, 3, V, &err), LIN_NUMERIC, "row 1: exp of its numbers sums to 3.51828, not 1");
    rows[V] = INFINITY;
    FAILS(lin_rows_check(rows, 3, V, &err), LIN_NUMERIC, "row 1: exp of its numbers sums to inf, not 1");
    for (int v = 0; v < V; v++) rows[V + v] = -INFINITY;
    FAILS(lin_rows_check(rows, 3, V, &err), LIN_NUMERIC, "sums to 0, not 1");
    for (int v = 0; v < V; v++) rows[V + v] = 1.0f / V;
    FAILS(lin_rows_check(rows, 3, V, &err), LIN_NUMERIC, "they look like probabilities");
    for (int v = 0; v < V; v++) rows[V + v] = (float)log10(1.0 / V);
    FAILS(lin_rows_check(rows, 3, V, &err), LIN_NUMERIC, "they look like logarithms to base 10");
    for (int v = 0; v < V; v++) rows[V + v] = 3.0f - (float)v;
    FAILS(lin_rows_check(rows, 3, V, &err), LIN_NUMERIC, "logits need a log-softmax");
}
END_TEST

START_TEST(numbers_for_a_search)
{
    float rows[3 * V] = {0};
    OK(lin_rows_check_numbers(rows, 3, V, 0, &err));
    OK(lin_rows_check_numbers(rows, 0, V, 0, &err));
    for (int v = 0; v < V; v++) rows[V + v] = v ? -INFINITY : 80;
    OK(lin_rows_check_numbers(rows, 3, V, 0, &err));
    for (int v = 0; v < V; v++) {
        const float good = rows[V + v];
        rows[V + v] = NAN;
        FAILS(lin_rows_check_numbers(rows, 3, V, 7, &err), LIN_NUMERIC, "frame 8: the log-probabilities are not numbers");
        rows[V + v] = INFINITY;
        FAILS(lin_rows_check_numbers(rows, 3, V, -1, &err), LIN_NUMERIC, "frame 0:");
        rows[V + v] = good;
    }
    rows[V] = -INFINITY;
    FAILS(lin_rows_check_numbers(rows, 3, V, 7, &err), LIN_NUMERIC, "frame 8:");
}
END_TEST

TEST_MAIN("rows", TEST(log_probabilities_pass), TEST(others_are_named_by_row_and_kind), TEST(numbers_for_a_search))
