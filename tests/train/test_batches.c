// The plan of an epoch.
#include "train/batches.h"

#include "base/memory.h"
#include "tests/support.h"

enum { N = 3000, MOST = 8000 };

static int frames[N];

static void draw_lengths(void)
{
    for (int i = 0; i < N; i++) frames[i] = 50 + (int)lin_random_below(3, (uint64_t)i, 1500);
}

static lin_batches plan_of(const int *lengths, int n, int most, uint64_t seed, int epoch)
{
    lin_batches plan;
    OK(lin_batches_plan(lengths, n, most, 0, seed, epoch, &plan, &err));
    return plan;
}

static int total_of(const lin_batches *plan, const int *lengths, int b)
{
    int total = 0;
    for (int j = plan->offsets[b]; j < plan->offsets[b + 1]; j++) total += lengths[plan->items[j]];
    return total;
}

static int same(const lin_batches *a, const lin_batches *b, int n)
{
    return a->n_batches == b->n_batches && memcmp(a->items, b->items, (size_t)n * sizeof *a->items) == 0 &&
           memcmp(a->offsets, b->offsets, ((size_t)a->n_batches + 1) * sizeof *a->offsets) == 0;
}

START_TEST(each_utterance_once_and_no_batch_too_large)
{
    draw_lengths();
    for (int epoch = -1; epoch < 3; epoch++) {
        lin_batches plan = plan_of(frames, N, MOST, 7, epoch);
        unsigned char seen[N] = {0};
        double all = 0;
        ck_assert_int_eq(plan.offsets[0], 0);
        ck_assert_int_eq(plan.offsets[plan.n_batches], N);
        for (int b = 0; b < plan.n_batches; b++) {
            const int total = total_of(&plan, frames, b);
            ck_assert_int_gt(plan.offsets[b + 1], plan.offsets[b]);
            ck_assert_int_le(total, MOST);
            all += total;
        }
        for (int j = 0; j < N; j++) {
            ck_assert_int_eq(seen[plan.items[j]], 0);
            seen[plan.items[j]] = 1;
        }
        ck_assert_msg(all / plan.n_batches > 0.9 * MOST, "batches are only %.0f %% full", 100 * all / plan.n_batches / MOST);
        lin_batches_free(&plan);
    }
}
END_TEST

START_TEST(a_function_of_seed_and_epoch)
{
    draw_lengths();
    lin_batches first = plan_of(frames, N, MOST, 7, 2), again = plan_of(frames, N, MOST, 7, 2);
    lin_batches other_epoch = plan_of(frames, N, MOST, 7, 3), other_seed = plan_of(frames, N, MOST, 8, 2);
    ck_assert(same(&first, &again, N));
    ck_assert(!same(&first, &other_epoch, N));
    ck_assert(!same(&first, &other_seed, N));
    lin_batches_free(&first);
    lin_batches_free(&again);
    lin_batches_free(&other_epoch);
    lin_batches_free(&other_seed);
}
END_TEST

// Each epoch shuffles the utterances again: few of those that shared a batch share one in the next epoch too.
START_TEST(an_epoch_has_batches_of_its_own)
{
    draw_lengths();
    lin_batches first = plan_of(frames, N, MOST, 7, 0), next = plan_of(frames, N, MOST, 7, 1);
    static int batch_of[N];
    for (int b = 0; b < first.n_batches; b++)
        for (int j = first.offsets[b]; j < first.offsets[b + 1]; j++) batch_of[first.items[j]] = b;
    int pairs = 0, again = 0;
    for (int b = 0; b < next.n_batches; b++)
        for (int j = next.offsets[b] + 1; j < next.offsets[b + 1]; j++, pairs++)
            again += batch_of[next.items[j]] == batch_of[next.items[j - 1]];
    ck_assert_msg(again < pairs / 4, "%d of %d neighbours shared the last batch", again, pairs);
    lin_batches_free(&first);
    lin_batches_free(&next);
}
END_TEST

// A batch has utterances of similar length, but the batches of an epoch are not ordered by length.
START_TEST(batches_are_alike_within_and_mixed_among)
{
    draw_lengths();
    lin_batches plan = plan_of(frames, N, MOST, 7, 0);
    double spread = 0;
    int rising = 0;
    for (int b = 0; b < plan.n_batches; b++) {
        int low = MOST, high = 0;
        for (int j = plan.offsets[b]; j < plan.offsets[b + 1]; j++) {
            const int n = frames[plan.items[j]];
            low = n < low ? n : low;
            high = n > high ? n : high;
        }
        spread += high - low;
        if (b) rising += frames[plan.items[plan.offsets[b]]] > frames[plan.items[plan.offsets[b - 1]]];
    }
    ck_assert_msg(spread / plan.n_batches < 150, "lengths in a batch differ by %.0f on average", spread / plan.n_batches);
    ck_assert(rising > plan.n_batches / 3 && rising < plan.n_batches * 2 / 3);
    lin_batches_free(&plan);
}
END_TEST

START_TEST(evaluation_goes_from_long_to_short)
{
    draw_lengths();
    lin_batches plan = plan_of(frames, N, MOST, 7, -1);
    for (int j = 1; j < N; j++) {
        const int a = plan.items[j - 1], b = plan.items[j];
        ck_assert(frames[a] > frames[b] || (frames[a] == frames[b] && a < b));
    }
    lin_batches_free(&plan);
}
END_TEST

START_TEST(too_long_ones_are_alone)
{
    const int lengths[] = {10, 500, 20, 101, 100, 30};
    lin_batches plan = plan_of(lengths, 6, 100, 1, 0);
    for (int b = 0; b < plan.n_batches; b++)
        if (total_of(&plan, lengths, b) > 100) ck_assert_int_eq(plan.offsets[b + 1] - plan.offsets[b], 1);
    lin_batches_free(&plan);

    const int huge[] = {INT32_MAX, INT32_MAX, 1};
    plan = plan_of(huge, 3, INT32_MAX, 1, 0);
    ck_assert_int_eq(plan.n_batches, 3);
    lin_batches_free(&plan);

    const int equal[] = {50, 50, 50, 50}; // two are exactly a batch
    plan = plan_of(equal, 4, 100, 1, 0);
    ck_assert_int_eq(plan.n_batches, 2);
    lin_batches_free(&plan);

    const int one[] = {5};
    plan = plan_of(one, 1, 1, 1, 0);
    ck_assert_int_eq(plan.n_batches, 1);
    ck_assert_int_eq(plan.items[0], 0);
    lin_batches_free(&plan);
}
END_TEST

// So many utterances of any length: as they were shuffled, and the parts of an epoch are all of it.
START_TEST(a_number_of_utterances_and_parts)
{
    enum { ITEMS = 4, PARTS = 7 };
    lin_batches plan, again;
    unsigned char seen[N] = {0};
    int longest_first = 0, n = 0, batches = 0;
    draw_lengths();
    OK(lin_batches_plan(frames, N, 100 * MOST, ITEMS, 5, 1, &plan, &err));
    ck_assert_int_eq(plan.n_batches, N / ITEMS);
    for (int b = 0; b < plan.n_batches; b++) {
        const int *picked = plan.items + plan.offsets[b];
        ck_assert_int_eq(plan.offsets[b + 1] - plan.offsets[b], ITEMS);
        longest_first += frames[picked[0]] >= frames[picked[1]] && frames[picked[1]] >= frames[picked[2]];
    }
    test_require(longest_first < plan.n_batches / 3, "%d batches of %d are in the order of lengths", longest_first,
                 plan.n_batches);
    for (int k = 0; k < PARTS; k++) {
        OK(lin_batches_plan(frames, N, 100 * MOST, ITEMS, 5, 1, &again, &err));
        OK(lin_batches_keep(&again, k, PARTS, &err));
        ck_assert_int_eq(again.offsets[0], 0);
        for (int i = 0; i < again.offsets[again.n_batches]; i++, n++) {
            ck_assert_int_eq(again.items[i], plan.items[n]);
            ck_assert_int_eq(seen[again.items[i]]++, 0);
        }
        batches += again.n_batches;
        lin_batches_free(&again);
    }
    ck_assert(n == N && batches == plan.n_batches);
    FAILS(lin_batches_keep(&plan, 0, plan.n_batches + 1, &err), LIN_INVALID, "");
    lin_batches_free(&plan);
    // no more frames than there is room for
    OK(lin_batches_plan(frames, N, MOST, 1000, 5, 1, &plan, &err));
    for (int b = 0; b < plan.n_batches; b++) ck_assert_int_le(total_of(&plan, frames, b), MOST);
    ck_assert_int_gt(plan.n_batches, N / 1000);
    lin_batches_free(&plan);
}
END_TEST

START_TEST(nonsense_is_refused)
{
    const int lengths[] = {10, 0, 20};
    lin_batches plan;
    FAILS(lin_batches_plan(lengths, 3, 100, 0, 1, 0, &plan, &err), LIN_INVALID, "utterance 1 has 0 frames");
    FAILS(lin_batches_plan(lengths, 0, 100, 0, 1, 0, &plan, &err), LIN_INVALID, "");
    FAILS(lin_batches_plan(lengths, 1, 0, 0, 1, 0, &plan, &err), LIN_INVALID, "");
    lin_batches_free(&plan);
}
END_TEST

START_TEST(ctc_needs_a_blank_between_equals)
{
    const struct {
        int labels[6], U, frames;
    } cases[] = {{{0}, 0, 0}, {{3}, 1, 1}, {{3, 4}, 2, 2}, {{3, 3}, 2, 3}, {{3, 3, 3, 4, 4, 3}, 6, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(lin_ctc_frames_needed(cases[i].labels, cases[i].U), cases[i].frames);
}
END_TEST

START_TEST(a_failed_allocation_is_an_error)
{
    draw_lengths();
    lin_batches plan;
    FAIL_EVERY_ALLOCATION(lin_batches_plan(frames, N, MOST, 0, 1, 0, &plan, NULL), lin_batches_free(&plan));
}
END_TEST

TEST_MAIN("train/batches", TEST(each_utterance_once_and_no_batch_too_large), TEST(a_function_of_seed_and_epoch),
          TEST(an_epoch_has_batches_of_its_own), TEST(batches_are_alike_within_and_mixed_among),
          TEST(evaluation_goes_from_long_to_short), TEST(too_long_ones_are_alone),
          TEST(a_number_of_utterances_and_parts), TEST(nonsense_is_refused), TEST(ctc_needs_a_blank_between_equals),
          TEST(a_failed_allocation_is_an_error))
