// Utterances at random speaking rates: their lengths in each epoch, and runs with them.
#include "tests/train/train_support.h"
#include "train/batches.h"
#include "train/train_internal.h"

/* ---- lengths --------------------------------------------------------------------------------------------------------------- */

enum { MANY = 400, LABELS = 30, LONGEST = 300 };

static int labels[MANY][LABELS], lengths[MANY];
static lin_train_item items[MANY];
static lin_model model;
static lin_train_options options;

// Utterances of up to 300 frames, a tenth of them with as many labels as their rows can hold.
static lin_train_data many(double tempo, double join_part, int parts)
{
    model.config = quick_config();
    model.config.stack = 3;
    options = (lin_train_options){.seed = 5, .batch_frames = 1000, .max_frames = LONGEST, .epoch_parts = parts,
                                  .join_part = join_part, .augment = {.tempo = tempo}};
    const lin_train_data data = {.options = &options, .model = &model, .train = {.items = items, .frames = lengths, .n = MANY}};
    for (int i = 0; i < MANY; i++) {
        int U = 0, frames = 3 * (1 + (int)lin_random_below(1, (uint64_t)i, LONGEST / 3));
        while (U < (i % 10 ? 2 : LABELS)) {
            labels[i][U] = 1 + (int)lin_random_below(2, (uint64_t)(i * LABELS + U), 2); // equal neighbours in half
            if (lin_ctc_frames_needed(labels[i], U + 1) > frames / 3) break;
            U++;
        }
        if (i % 10 == 0) frames = 3 * lin_ctc_frames_needed(labels[i], U);
        if (join_part <= 0 && frames > 3) frames -= i % 3; // of the last row some
        items[i] = (lin_train_item){.recorded = frames, .frames = frames, .rows = (frames + 2) / 3, .labels = labels[i],
                                    .n_labels = U, .counted = U};
        lengths[i] = frames;
    }
    return data;
}

// Each utterance is in the plan of a pass once, and as long as its rate says: within the ends, no longer than the longest that is
// allowed, with a path for CTC; those that nothing limits reach both ends and have the mean of 1 / rate.
START_TEST(lengths_of_an_epoch)
{
    const double tempo = 0.25, join_part = _i == 1 ? 0.5 : 0;
    const int parts = _i == 2 ? 4 : 1;
    lin_train_data data = many(tempo, join_part, parts);
    static int before[MANY];
    int changed = 0, limited = 0, free_ones = 0;
    double shortest = 9, longest = 0, sum = 0;
    for (int pass = 0; pass < 50; pass++) {
        int seen[MANY] = {0};
        for (int part = 0; part < parts; part++) {
            lin_batches plan;
            OK(lin_train_plan(&data, pass * parts + part, 1, &plan, &err));
            ck_assert(part == 0 || memcmp(before, lengths, sizeof before) == 0); // one rate in a pass
            memcpy(before, lengths, sizeof before);
            for (int b = 0; b < plan.n_batches; b++) {
                int total = 0;
                for (int i = plan.offsets[b]; i < plan.offsets[b + 1]; i++) {
                    seen[plan.items[i]]++;
                    total += items[plan.items[i]].frames;
                }
                ck_assert_int_le(total, options.batch_frames);
            }
            lin_batches_free(&plan);
        }
        for (int i = 0; i < MANY; i++) {
            const lin_train_item *it = &items[i];
            ck_assert_int_eq(seen[i], 1);
            ck_assert(it->frames == lengths[i] && it->rows == (it->frames + 2) / 3);
            ck_assert(it->frames >= 1 && it->frames <= LONGEST && (join_part <= 0 || it->frames % 3 == 0));
            ck_assert_int_ge(it->rows, lin_ctc_frames_needed(it->labels, it->n_labels));
            // rounded to frames, or down to whole rows
            ck_assert_double_ge(it->frames, fmin(it->recorded, it->recorded / (1 + tempo) - (join_part > 0 ? 3 : 0.5)));
            ck_assert_double_le(it->frames, it->recorded / (1 - tempo) + 0.5);
            ck_assert_int_ge(it->frames, lin_train_frames_at(&data, it, 1 + tempo)); // what is reserved
            ck_assert_int_le(it->frames, lin_train_frames_at(&data, it, 1 - tempo));
            changed += it->frames != it->recorded;
            limited += it->frames == it->recorded && i % 10 == 0;
            if (i % 10 == 0 || it->recorded < 100 || it->recorded > 200) continue;
            const double slower = (double)it->frames / it->recorded;
            shortest = fmin(shortest, slower);
            longest = fmax(longest, slower);
            sum += slower;
            free_ones++;
        }
    }
    ck_assert_int_gt(changed, 50 * MANY * 3 / 4);
    ck_assert_int_gt(limited, 50 * MANY / 10 / 4);
    ck_assert(shortest < 0.84 && longest > 1.29 && free_ones > 4000);
    const double mean = log((1 + tempo) / (1 - tempo)) / (2 * tempo) - (join_part > 0 ? 1 / 145.0 : 0);
    ck_assert_double_eq_tol(sum / free_ones, mean, 0.01);
    // without tempo: as they were recorded
    lin_batches plan;
    data = many(0, join_part, parts);
    OK(lin_train_plan(&data, 3, 1, &plan, &err));
    for (int i = 0; i < MANY; i++) ck_assert(items[i].frames == items[i].recorded && lengths[i] == items[i].recorded);
    lin_batches_free(&plan);
}
END_TEST

// Lengths depend on the seed, the pass and the place of the utterance in the list, and on nothing that happened before.
START_TEST(the_same_for_the_same_key)
{
    lin_train_data data = many(0.25, 0, 1);
    static int first[MANY];
    lin_batches plan;
    for (int round = 0; round < 3; round++) {
        for (int epoch = 7; epoch >= 7 - round; epoch--) {
            OK(lin_train_plan(&data, epoch, 1 + round, &plan, &err));
            lin_batches_free(&plan);
        }
        OK(lin_train_plan(&data, 7, 1 + round, &plan, &err));
        lin_batches_free(&plan);
        if (round == 0) memcpy(first, lengths, sizeof first);
        ck_assert_int_eq(memcmp(first, lengths, sizeof first), 0);
    }
    options.seed++;
    OK(lin_train_plan(&data, 7, 1, &plan, &err));
    lin_batches_free(&plan);
    ck_assert_int_ne(memcmp(first, lengths, sizeof first), 0);
}
END_TEST

/* ---- power ----------------------------------------------------------------------------------------------------------------- */

// To which noise is fitted: the mean over an utterance's frames, however many these are.
START_TEST(power_of_utterances)
{
    lin_train_options o = quick_options("");
    watch w = {0};
    const lin_train_hooks hooks = {&w, on_progress, on_note, on_stop};
    const lin_config c = quick_config();
    const lin_ops *ops = lin_ops_cpu();
    lin_model *network = new_network(&c);
    lin_dataset *set;
    lin_exec *exec;
    lin_pool *pool;
    o.augment = some_acoustics(0);
    OK(lin_dataset_open(train_path, &set, &err));
    lin_train_data data = {.options = &o, .model = network, .train = {.sets = (const lin_dataset *const[]){set}, .n_sets = 1}};
    OK(ops->exec_create(ops, 1, &exec, &err));
    OK(lin_pool_create(1, &pool, &err));
    OK(lin_train_data_open(&data, &hooks, &err));
    OK(lin_train_data_place(&data, ops, exec, pool, &err));
    for (int i = 0; i < data.train.n; i++) {
        const lin_train_item *it = &data.train.items[i];
        const float *steps = it->gather.steps;
        double mean = 0;
        for (int k = 0; k < it->recorded * D; k++)
            mean += exp((double)(steps[k % D] + steps[D + k % D] * (float)it->gather.codes[k])) / it->recorded;
        ck_assert_double_eq_tol((double)data.train.powers[i], mean, 1e-4 * mean);
    }
    lin_train_data_free(&data, ops, exec);
    lin_pool_destroy(pool);
    ops->exec_destroy(exec);
    lin_dataset_close(set);
    lin_model_destroy(network);
}
END_TEST

/* ---- runs ------------------------------------------------------------------------------------------------------------------ */

static lin_train_options slower_and_faster(const char *run, int i)
{
    lin_train_options o = quick_options(run);
    o.augment.tempo = 0.4;
    if (i >= 1) o.join_part = 0.5, o.epoch_parts = 2;
    if (i == 2) o.batch_frames = 40, o.max_frames = 80; // batches of one utterance, some longer than any in the set
    return o;
}

// Stopped and resumed, with another number of threads: the same bits, and no epoch starts again. Another tempo is not the same
// epoch.
START_TEST(resumed_gives_the_same_bits)
{
    float *plain;
    const char *run = run_folder("plain");
    lin_train_options o = slower_and_faster(run, _i);
    o.augment.tempo = 0;
    OK(train(&o, &(watch){0}, &plain, &err));
    o = slower_and_faster(run, _i);
    float *whole = same_in_parts(quick_config(), &o, (const int[]){6, 8, 0}, &(watch){0});
    ck_assert(memcmp(plain, whole, n_elements() * sizeof *whole) != 0);
    free(whole);
    free(plain);
    o.resume = 0;
    FAILS(train(&o, &(watch){.stop_after = 7}, NULL, &err), LIN_STOPPED, "");
    o.augment.tempo = 0.1;
    o.resume = 1;
    watch w = {.stop_after = 8};
    FAILS(train(&o, &w, NULL, &err), LIN_STOPPED, "");
    HAS(w.note, "starts again from its first batch");
}
END_TEST

// The task is learnt at all rates.
START_TEST(learnt)
{
    watch w = {0};
    const char *run = run_folder("whole");
    lin_train_options o = quick_options(run);
    o.augment.tempo = 0.3;
    o.epochs = EPOCHS;
    o.checkpoint_s = 1e9;
    OK(train(&o, &w, NULL, &err));
    ck_assert_msg(w.last.dev_per < FEW_WRONG, "PER %g after %lld steps", w.last.dev_per, w.last.step);
}
END_TEST

TEST_MAIN_WITH(set_up, NULL, "train/train_data", TESTS(lengths_of_an_epoch, 0, 3), TEST(the_same_for_the_same_key),
               TEST(power_of_utterances), TESTS(resumed_gives_the_same_bits, 0, 3), TEST(learnt))
