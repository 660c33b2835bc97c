// Methods of training: averaged weights, accumulated gradients, losses of inner layers, restarts of the schedule.
#include "kernels/ops.h"
#include "model/encoder.h"
#include "tests/kernels/ref/reference.h"
#include "tests/train/train_support.h"
#include "train/train_internal.h"

// One run from the weights `first` (NULL: random), without augmentation; *values receives the last weights.
static lin_status run_from(const float *first, watch *w, lin_config config, const lin_train_options *o, float **values, size_t *n,
                           lin_error *err)
{
    lin_model *model = new_network(&config);
    const lin_train_hooks hooks = {w, on_progress, on_note, on_stop};
    if (first) memcpy(model->values, first, model->params.n_elements * sizeof(float));
    lin_train_options plain = *o;
    plain.augment = (lin_augment_options){0};
    return train_model(model, train_path, &plain, &hooks, values, n, err);
}

// The weights of a file of the run, or its averaged ones.
static float *read_values(const char *run, const char *name, int average, size_t n)
{
    char path[400];
    lin_model *model;
    lin_checkpoint checkpoint;
    float *values = malloc(n * sizeof *values);
    snprintf(path, sizeof path, "%s/%s", run, name);
    OK(lin_model_load_checkpoint(path, &model, &checkpoint, &err));
    ck_assert(values != NULL && model->params.n_elements == n);
    if (!average) memcpy(values, model->values, n * sizeof *values);
    else OK(lin_checkpoint_read(&checkpoint, "train.average", n, values, &err));
    lin_checkpoint_close(&checkpoint);
    lin_model_destroy(model);
    return values;
}

/* ---- averaged weights ------------------------------------------------------------------------------------------------------ */

// After each step the average is that of the weights so far, computed here in double; 1e-6 is the rounding of weights near 1.
START_TEST(an_average_of_all_steps)
{
    float *values;
    size_t n;
    lin_train_options o = quick_run("average");
    o.optimizer.average = 0.6;
    lin_config config = quick_config();
    lin_model *model = new_network(&config);
    double *want = malloc(model->params.n_elements * sizeof *want);
    for (size_t i = 0; i < model->params.n_elements; i++) want[i] = (double)model->values[i];
    lin_model_destroy(model);
    for (int step = 1; step <= 20; step++, o.resume = 1) {
        watch w = {.stop_after = -1};
        FAILS(run_from(NULL, &w, config, &o, &values, &n, &err), LIN_STOPPED, "");
        const double keeps = step / (9.0 + step) < 0.6 ? step / (9.0 + step) : 0.6; // 0.6 from step 14 on
        float *got = read_values(o.folder, "checkpoint.safetensors", 1, n);
        for (size_t i = 0; i < n; i++) {
            want[i] = keeps * want[i] + (1 - keeps) * (double)values[i];
            ck_assert_msg(fabs(want[i] - (double)got[i]) < 1e-6, "step %d, weight %zu: %.9g, not %.9g", step, i, (double)got[i],
                          want[i]);
        }
        free(got);
        free(values);
    }
    free(want);
}
END_TEST

// best.safetensors holds the average, and the dev loss is its loss: that of a run that begins with it and changes nothing.
START_TEST(the_average_is_measured_and_saved)
{
    float *last, *same;
    size_t n;
    lin_train_options o = quick_run("whole");
    o.epochs = 1;
    o.optimizer.average = 0.9;
    watch w = {0}, again = {0};
    OK(run_from(NULL, &w, quick_config(), &o, &last, &n, &err));
    float *best = read_values(o.folder, "best.safetensors", 0, n),
          *average = read_values(o.folder, "checkpoint.safetensors", 1, n);
    test_same_f32("the best model", best, average, n);
    ck_assert(memcmp(best, last, n * sizeof *best) != 0);
    o = quick_run("again");
    o.epochs = 1;
    o.lr = 1e-30;
    OK(run_from(best, &again, quick_config(), &o, &same, &n, &err));
    test_same_f32("a rate of 1e-30", same, best, n);
    ck_assert_double_eq(again.last.dev_loss, w.last.dev_loss);
    ck_assert_double_eq(again.last.dev_per, w.last.dev_per);
    // a checkpoint without an average: it begins with the weights of the checkpoint
    o.resume = 1;
    o.epochs = 2;
    o.optimizer.average = 0.5;
    free(same);
    OK(run_from(best, &again, quick_config(), &o, &same, &n, &err));
    free(average);
    average = read_values(o.folder, "checkpoint.safetensors", 1, n);
    weights_close("weights that did not change", average, best, n, 1e-6);
    free(average);
    free(best);
    free(last);
    free(same);
}
END_TEST

/* ---- accumulated gradients ------------------------------------------------------------------------------------------------- */

// Equal utterances: a batch of any of them, in any order, is the same batch, so that dropout, whose masks belong to places in the
// batch, is the same too.
static void write_equal_utterances(const char *path, int n)
{
    lin_dataset_writer *writer;
    const lin_features features = lin_features_default();
    float x[23 * D];
    OK(lin_dataset_create(path, D, &features, "<blank> a b c d", "equal", &writer, &err));
    for (int i = 0; i < 23 * D; i++) x[i] = (float)lin_random_uniform(9, (uint64_t)i);
    for (int u = 0; u < n; u++) {
        char id[16];
        snprintf(id, sizeof id, "u%d", u);
        OK(lin_dataset_add(writer, id, "s", x, 23, (const int[]){1, 2, 2, 4}, 4, &err));
    }
    OK(lin_dataset_finish(writer, &err));
}

// Several batches of a step, and one batch of all their utterances: the same step up to rounding. With SGD with momentum (the
// first steps of RAdam) weights differ as little as gradients. _i 1: with dropout, on equal utterances.
START_TEST(accumulated_batches_are_one_batch)
{
    float *one, *several, *fewer;
    size_t n;
    watch w = {0};
    lin_config config = quick_config();
    config.head_width = 7; // rows of 14 and of 33 values: batches begin anywhere in the random numbers of dropout
    config.feedforward = 33;
    config.dropout = _i ? 0.3 : 0;
    if (_i) write_equal_utterances(train_path, 10);
    lin_train_options o = quick_run("whole");
    o.optimizer.kind = LIN_RADAM;
    o.schedule = LIN_SCHEDULE_CONSTANT;
    o.warmup_steps = 0;
    o.epochs = 2;
    o.lr = 0.05;
    o.batch_frames = 100000;
    OK(run_from(NULL, &w, config, &o, &one, &n, &err));
    ck_assert_int_eq(w.last.step, 2);
    const double loss = w.last.loss;
    o.folder = quick_run("several").folder;
    o.batch_frames = _i ? 50 : 200; // of two equal utterances, or about four
    o.accumulate = 100;
    OK(run_from(NULL, &w, config, &o, &several, &n, &err));
    ck_assert_int_eq(w.last.step, 2);
    ck_assert_int_ge(w.last.n_batches, 5);
    ck_assert_double_eq_tol(w.last.loss, loss, 1e-5);
    weights_close("batches of one step", several, one, n, 2e-6);
    // and something else without accumulating
    o.folder = quick_run("steps").folder;
    o.accumulate = 1;
    OK(run_from(NULL, &w, config, &o, &fewer, &n, &err));
    ck_assert_int_eq(w.last.step, 2 * w.last.n_batches);
    free(one);
    free(several);
    free(fewer);
}
END_TEST

// A batch that cannot be trained on is named, in any of the batches of a step.
START_TEST(the_batch_at_fault)
{
    float *values;
    size_t n;
    lin_config config = quick_config();
    lin_model *model = new_network(&config);
    lin_train_options o = quick_run("fault");
    o.accumulate = 3;
    model->values[model->params.table[model->params.output[0]].offset] = NAN;
    watch w = {0};
    FAILS(run_from(model->values, &w, config, &o, &values, &n, &err), LIN_NUMERIC, "step 0: the loss of utterance spk");
    lin_model_destroy(model);
    free(values);
}
END_TEST

/* ---- inner losses ---------------------------------------------------------------------------------------------------------- */

// The loss with weights w and 1 - w of the layers has the gradient of that sum: with a large w the inner layer's outputs become
// good, and the network still learns.
START_TEST(inner_losses)
{
    float *with, *without;
    size_t n;
    watch w = {0};
    lin_train_options o = quick_run("inner");
    o.epochs = EPOCHS;
    o.checkpoint_s = 1e9;
    o.n_inner = 1, o.inner_layers[0] = 1, o.inner_weight = 0.5;
    OK(train_network(quick_config(), &o, &w, &with, &n, &err));
    ck_assert_msg(w.last.dev_per < FEW_WRONG, "PER %g", w.last.dev_per);
    // a weight of 0 trains as no inner loss does, to the bit
    o.folder = quick_run("nothing").folder;
    o.epochs = 1;
    o.inner_weight = 0;
    free(with);
    OK(train_network(quick_config(), &o, &w, &with, &n, &err));
    o.folder = quick_run("none").folder;
    o.n_inner = 0;
    OK(train_network(quick_config(), &o, &w, &without, &n, &err));
    for (size_t i = 0; i < n; i++) ck_assert(with[i] == without[i]); // a gradient of +0 or -0
    free(with);
    free(without);
    o.n_inner = 1;
    if (TEST_PAPER) FAILS(train_network(of_kind(quick_config(), OF_LSTM), &o, &w, NULL, NULL, &err), LIN_INVALID, "transformer");
    o.inner_layers[0] = 2;
    FAILS(train_network(quick_config(), &o, &w, NULL, NULL, &err), LIN_INVALID, "layer 2 of 2");
}
END_TEST

/* ---- maximum mutual information -------------------------------------------------------------------------------------------- */

// A bigram in which a is followed by b, b by c, c by d and d by a, mostly.
static const char cycle[] =
    "\\data\\\nngram 1=6\nngram 2=4\n\n\\1-grams:\n-0.8 </s>\n-99 <s>\n-0.7 a -0.8\n-0.7 b -0.8\n-0.7 c -0.8\n-0.7 d -0.8\n\n"
    "\\2-grams:\n-0.1 a b\n-0.1 b c\n-0.1 c d\n-0.1 d a\n\n\\end\\\n";

// CTC's loss and the sum over all sequences, of the best model of a run on the dev set, its output for searches; nats per
// utterance.
static double information(const char *run, const lin_trigrams *q)
{
    float x[200 * D], logp[100 * V];
    double wide[100 * V], loss, sum, all = 0;
    lin_model *model = model_of_run(run, "best");
    lin_dataset *set;
    lin_exec *exec;
    const lin_ops_f64 *ref = lin_ops_ref();
    OK(lin_dataset_open(dev_path, &set, &err));
    OK(ref->exec_create(ref, 1, &exec, &err));
    for (int u = 0; u < set->count; u++) {
        const int frames = set->utterances[u].frames, T = lin_config_frames_out(&model->config, frames);
        int at[] = {0, 0};
        const int rows[] = {0, T}, *labels = set->utterances[u].labels;
        at[1] = set->utterances[u].n_labels;
        const lin_segments one = {1, T, T, rows};
        lin_dataset_features(set, u, x);
        rows_of(model, lin_ops_cpu(), 1, 1, x, frames, logp);
        for (int i = 0; i < T * V; i++) wide[i] = (double)logp[i];
        ref->ctc(exec, &loss, NULL, wide, &one, labels, at, at[1], V, NULL);
        ref->denominator(exec, &sum, NULL, NULL, wide, &one, at, q, V, 1, NULL);
        all += (loss + sum) / set->count;
    }
    ref->exec_destroy(exec);
    lin_model_destroy(model);
    lin_dataset_close(set);
    return all;
}

// Trained so, a network has less of this loss than after CTC alone, and still knows its labels; so has one with an output of its
// own for this loss.
START_TEST(mutual_information)
{
    float *block;
    double left[3];
    const char *lm = test_file("cycle.arpa", cycle, strlen(cycle));
    OK(lin_trigrams_open(lm, "<blank> a b c d", V, &block, &err));
    const lin_trigrams q = lin_trigrams_at(block, V);
    for (int i = 0; i < 3; i++) {
        watch w = {0};
        lin_config config = quick_config();
        config.search = i == 2;
        lin_train_options o = quick_run(i == 2 ? "search" : i ? "mmi" : "ctc");
        o.epochs = EPOCHS;
        o.checkpoint_s = 1e9;
        o.mmi = i > 0, o.mmi_lm = lm;
        OK(train_network(config, &o, &w, NULL, NULL, &err));
        ck_assert_msg(w.last.dev_per < FEW_WRONG, "%d: PER %g", i, w.last.dev_per);
        left[i] = information(o.folder, &q);
    }
    // 2.6 nats less, by ref/ in double; other instruction sets change the fifth digit.
    for (int i = 1; i < 3; i++)
        ck_assert_msg(left[i] < left[0] - 2, "%g nats after CTC, %g after this", left[0], left[i]);
    lin_free(block);
    lin_train_options o = quick_run("refused");
    o.mmi = 0.5;
    FAILS(train(&o, &(watch){0}, NULL, &err), LIN_INVALID, "mmi-lm");
    o.mmi_lm = "/nowhere.lm";
    FAILS(train_network(quick_config(), &o, &(watch){0}, NULL, NULL, &err), LIN_IO, "");
    // Sequences that may begin (a) may hardly end, and the others hardly begin: the sum is lost in float.
    static const char apart[] =
        "\\data\\\nngram 1=6\nngram 2=3\n\n\\1-grams:\n-37.9 </s>\n-99 <s>\n-0.01 a\n-37.9 b\n-37.9 c\n-37.9 d\n\n\\2-grams:\n"
        "-0.01 b </s>\n-0.01 c </s>\n-0.01 d </s>\n\n\\end\\\n";
    test_write_file(lm, apart, strlen(apart));
    o.mmi_lm = lm;
    FAILS(train_network(quick_config(), &o, &(watch){0}, NULL, NULL, &err), LIN_NUMERIC, "the loss of utterance ",
          "phone sequences (mmi), is not finite");
}
END_TEST

/* ---- joined utterances ----------------------------------------------------------------------------------------------------- */

enum { JOINED = 3 };

// Losses of the utterances in this order, as one sound that the encoder hears, by ref/ in double; nats per label.
static double loss_of_order(const lin_model *model, const lin_dataset *set, const int *order)
{
    float x[200 * D], logp[100 * V];
    double logits[100 * V], sum = 0;
    const double one = 1;
    int frames = 0, rows = 0, n_labels = 0;
    lin_exec *exec;
    const lin_ops_f64 *ref = lin_ops_ref();
    OK(ref->exec_create(ref, 1, &exec, &err));
    for (int i = 0; i < JOINED; i++) {
        lin_dataset_features(set, order[i], x + frames * D);
        frames += set->utterances[order[i]].frames / STACK * STACK; // the next one overwrites the frames that are left
    }
    rows_of(model, lin_ops_cpu(), 1, 0, x, frames, logp);
    for (int i = 0; i < frames / STACK * V; i++) logits[i] = logp[i];
    for (int i = 0; i < JOINED; i++) {
        double loss;
        const int T = set->utterances[order[i]].frames / STACK, U = set->utterances[order[i]].n_labels;
        const int *labels = set->utterances[order[i]].labels;
        const lin_segments segments = {.B = 1, .rows = T, .longest = T, .offsets = (const int[]){0, T}};
        ref->ctc(exec, &loss, NULL, logits + rows * V, &segments, labels, (const int[]){0, U}, U, V, &one);
        sum += loss;
        n_labels += U;
        rows += T;
    }
    ref->exec_destroy(exec);
    return sum / n_labels;
}

// With join_part 1 the network hears all utterances of a batch as one sound, and each has its own loss: in the order of the set,
// or in that of the plan, the longest first.
START_TEST(joined_utterances)
{
    lin_config config = quick_config();
    const lin_features features = lin_features_default();
    lin_dataset_writer *writer;
    lin_dataset *set;
    const int lengths[JOINED] = {31, 40, 37}, orders[2][JOINED] = {{0, 1, 2}, {1, 2, 0}};
    int seen[2] = {0};
    const char *path = test_path("three.lfc");
    OK(lin_dataset_create(path, D, &features, "<blank> a b c d", "made by a test", &writer, &err));
    for (int u = 0; u < JOINED; u++) {
        float x[40 * D];
        char id[16];
        for (int i = 0; i < 40 * D; i++) x[i] = (float)(4 * lin_random_uniform(7, (uint64_t)(u * 1000 + i)));
        snprintf(id, sizeof id, "u%d", u);
        OK(lin_dataset_add(writer, id, "s", x, lengths[u], (const int[]){1 + u, 2, 4}, 3, &err));
    }
    OK(lin_dataset_finish(writer, &err));
    OK(lin_dataset_open(path, &set, &err));
    config.dropout = 0;
    for (int seed = 1; seed <= 12; seed++) {
        char name[32];
        snprintf(name, sizeof name, "joined%d", seed);
        lin_train_options o = quick_run(name);
        watch w = {0};
        const lin_train_hooks hooks = {.context = &w, .progress = on_progress};
        o.epochs = 1;
        o.lr = 1e-12;
        o.seed = (unsigned)seed;
        o.join_part = 1;
        o.augment = (lin_augment_options){0};
        lin_model *model = new_network(&config);
        OK(lin_train(&o, model, (const lin_dataset *const[]){set}, 1, NULL, 0, &hooks, &err));
        int which = 0;
        while (which < 2 && fabs(loss_of_order(model, set, orders[which]) - w.last.loss) > 1e-5) which++;
        ck_assert_msg(which < 2, "a loss of %.7f; in order it is %.7f, by length %.7f", w.last.loss,
                      loss_of_order(model, set, orders[0]), loss_of_order(model, set, orders[1]));
        seen[which]++;
        lin_model_destroy(model);
    }
    ck_assert_msg(seen[0] >= 2 && seen[1] >= 2, "%d times in order, %d times by length", seen[0], seen[1]);
    lin_dataset_close(set);
    // not of a network that hears the whole utterance
    lin_train_options o = quick_run("refused");
    o.join_part = 0.5;
    config.causal = 0;
    FAILS(train_network(config, &o, &(watch){0}, NULL, NULL, &err), LIN_INVALID, "causal");
}
END_TEST

/* ---- all together ---------------------------------------------------------------------------------------------------------- */

static lin_train_options all_options(const char *run)
{
    lin_train_options o = quick_options(run);
    o.mmi = 0.5, o.mmi_lm = test_file("cycle.arpa", cycle, strlen(cycle));
    o.optimizer.average = 0.9;
    o.accumulate = 3;
    o.n_inner = 1, o.inner_layers[0] = 1;
    o.join_part = 0.5;
    o.keep = 2;
    return o;
}

START_TEST(stopped_and_resumed_gives_the_same_bits)
{
    char path[400];
    lin_config config = quick_config();
    config.dropout = 0.1;
    lin_train_options o = all_options("");
    free(same_in_parts(config, &o, (const int[]){1, 3, 5, 0}, &(watch){0}));
    const size_t n = n_elements();
    const char *whole_run = run_folder("whole"), *run = run_folder("parts");
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"best.safetensors", "epoch-3.safetensors", "epoch-4.safetensors"};
        float *got = read_values(run, names[i], 0, n), *want = read_values(whole_run, names[i], 0, n);
        test_same_f32(names[i], got, want, n);
        free(want);
        free(got);
    }
    // of the last two epochs only
    for (int e = 1; e <= 2; e++) {
        snprintf(path, sizeof path, "%s/epoch-%d.safetensors", run, e);
        ck_assert_int_ne(access(path, F_OK), 0);
    }
}
END_TEST

/* ---- a finished run goes on ------------------------------------------------------------------------------------------------ */

START_TEST(the_cosine_starts_again)
{
    float *whole, *parts;
    lin_train_options o = quick_run("whole");
    o.warmup_steps = 0;
    o.epochs = 2;
    watch w = {0};
    OK(train(&o, &w, NULL, &err));
    ck_assert_str_eq(w.note, "");
    o.resume = 1;
    o.epochs = 5;
    OK(train(&o, &w, &whole, &err));
    HAS(w.note, "starts again at the full rate and ends with epoch 5");
    const double done = 2 + (w.last.n_batches - 1.0) / w.last.n_batches; // of three epochs
    ck_assert_double_eq_tol(w.last.lr, o.lr * 0.5 * (1 + cos(acos(-1) * done / 3)), 1e-12);
    // the same, stopped in the third and fourth epoch; it starts again once
    o.folder = quick_run("parts").folder;
    o.resume = 0;
    o.epochs = 2;
    OK(train(&o, &(watch){0}, NULL, &err));
    const int steps = 2 * w.last.n_batches;
    o.resume = 1;
    o.epochs = 5;
    FAILS(train(&o, &(watch){.stop_after = steps + 2}, NULL, &err), LIN_STOPPED, "");
    FAILS(train(&o, &(watch){.stop_after = steps + steps / 2 + 2}, NULL, &err), LIN_STOPPED, "");
    w = (watch){0};
    OK(train(&o, &w, &parts, &err));
    ck_assert_str_eq(w.note, "");
    test_same_f32("in parts", parts, whole, n_elements());
    // a run that was not finished follows the curve of the new number of epochs
    o.folder = quick_run("unfinished").folder;
    o.resume = 0;
    o.epochs = 2;
    FAILS(train(&o, &(watch){.stop_after = 3}, NULL, &err), LIN_STOPPED, "");
    o.resume = 1;
    o.epochs = 4;
    OK(train(&o, &w, NULL, &err));
    ck_assert_str_eq(w.note, "");
    ck_assert_double_eq_tol(w.last.lr, o.lr * 0.5 * (1 + cos(acos(-1) * (3 + (w.last.n_batches - 1.0) / w.last.n_batches) / 4)),
                            1e-12);
    free(whole);
    free(parts);
}
END_TEST

// Two epochs a pass over the data, with batches of two utterances; the rate falls in the third epoch.
START_TEST(parts_of_a_pass_and_a_tenth_of_the_rate)
{
    lin_train_options o = quick_run("first");
    o.warmup_steps = 0;
    o.schedule = LIN_SCHEDULE_CONSTANT;
    o.epochs = 2;
    o.epoch_parts = 2;
    o.batch_frames = 4000;
    o.batch_sequences = 2;
    watch w = {0};
    OK(train(&o, &w, NULL, &err));
    const int steps = (int)w.last.step;
    ck_assert_double_eq(w.last.lr, o.lr);
    o.epoch_parts = 1;
    OK(train(&o, &w, NULL, &err));
    ck_assert_int_eq(w.last.step, 2 * steps);
    o.epoch_parts = 2;
    o.epochs = 4;
    o.drop_step = steps + 1;
    free(same_in_parts(quick_config(), &o, (const int[]){steps + 1, 0}, &w));
    ck_assert_double_eq(w.last.lr, o.lr / 10);
    o.epochs = 5;
    o.epoch_parts = 100000;
    FAILS(train(&o, &w, NULL, &err), LIN_INVALID, "100000 parts of ");
}
END_TEST

TEST_MAIN_WITH(set_up, NULL, "model/train_methods", TEST(an_average_of_all_steps), TEST(the_average_is_measured_and_saved),
               TESTS(accumulated_batches_are_one_batch, 0, 2), TEST(the_batch_at_fault), TEST(inner_losses),
               TEST(mutual_information), TEST(joined_utterances), TEST(stopped_and_resumed_gives_the_same_bits),
               TEST(the_cosine_starts_again), TEST(parts_of_a_pass_and_a_tenth_of_the_rate))
