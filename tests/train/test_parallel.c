// Training on several processes, here threads: the same run as one process, the same bits each time, and what happens when one
// fails.
#include "tests/comm_threads.h"
#include "tests/train/train_support.h"
#include "train/train_internal.h"

enum { MOST = 8 };

// One run on several ranks; what differs from rank to rank is in arrays.
typedef struct team {
    lin_config config;
    lin_train_options options;
    int other_rank; // with other_seed, or another set; -1: none
    unsigned long long other_seed;
    double other_gain_db;
    int nan;        // the weights begin with a NaN
    int spoils;     // a weight of other_rank changes by itself, as in faulty memory
    int loses;      // the folder of the run is gone after the first step
    watch watches[MOST];
    float *values[MOST];
    size_t n;
    lin_status status[MOST];
    lin_error errors[MOST];
} team;

static int spoil(void *context)
{
    ((lin_model *)context)->values[0] += 1e-6F;
    return 0;
}

static int lose(void *context)
{
    rename(context, test_path("lost"));
    return 0;
}

static void one_rank(lin_comm *comm, void *context)
{
    team *m = context;
    const int r = comm->rank;
    lin_model *model = new_network(&m->config);
    lin_train_options o = m->options;
    o.comm = comm;
    comm->patience_s = 50;
    if (r == m->other_rank && m->other_seed) o.seed = m->other_seed;
    if (r == m->other_rank) o.augment.gain_db += m->other_gain_db;
    if (m->nan) model->values[model->params.table[model->params.output[0]].offset] = NAN;
    const int other_set = r == m->other_rank && !m->other_seed && m->other_gain_db <= 0 && !m->spoils;
    lin_train_hooks hooks = {&m->watches[r], on_progress, on_note, on_stop};
    if (m->spoils && r == m->other_rank) hooks = (lin_train_hooks){.context = model, .stop = spoil};
    if (m->loses && r == 0) hooks = (lin_train_hooks){.context = (void *)(uintptr_t)o.folder, .stop = lose};
    m->status[r] = train_model(model, other_set ? dev_path : train_path, &o, &hooks, &m->values[r], r == 0 ? &m->n : NULL,
                               &m->errors[r]);
}

static void clear(team *m)
{
    for (int r = 0; r < MOST; r++) free(m->values[r]), m->values[r] = NULL;
    memset(m->watches, 0, sizeof m->watches);
}

// Runs it on `size` ranks. All must return `want`, with the same weights and, unless the run goes well, the same message.
static void run_team(team *m, int size, lin_status want)
{
    test_world *world = test_world_create(size);
    test_world_run(world, one_rank, m);
    for (int r = 0; r < size; r++) {
        ck_assert_msg(m->status[r] == want, "rank %d of %d: %s: %s", r, size, lin_status_name(m->status[r]),
                      m->errors[r].message);
        if (want == LIN_OK || want == LIN_STOPPED) test_same_f32("on another rank", m->values[r], m->values[0], m->n);
        if (want != LIN_OK) ck_assert_str_eq(m->errors[r].message, m->errors[0].message);
        if (r) ck_assert(m->watches[r].left_out == 0 && m->watches[r].last.n_batches == 0); // rank 0 alone reports
    }
    test_world_free(world);
}

static team new_team(const char *name)
{
    team m = {.config = quick_config(), .options = quick_run(name), .other_rank = -1};
    m.config.head_width = 7; // rows of 14 and of 33 values: parts of a batch begin anywhere in the random numbers of dropout
    m.config.feedforward = 33;
    m.config.dropout = 0.2;
    m.options.checkpoint_s = 1e9;
    m.options.threads = 1;
    m.options.epochs = 3;
    return m;
}

static lin_config variant(int i)
{
    static const network_kind kinds[] = {OF_LINEAR, OF_SOFTMAX, OF_LSH, OF_RANDOM, OF_LSTM, OF_LSTM, OF_GATED};
    lin_config c = quick_config();
    c.head_width = 7;
    c.feedforward = 33;
    c = of_kind(c, kinds[i]);
    if (i == 1) c.causal = 0, c.norm = LIN_NORM_POST;
    if (i == 4 || i == 5) c.causal = i == 4, c.width = 21;
    c.dropout = 0.2;
    return c;
}
enum { N_VARIANTS = 7 };

// The last two cases have the training methods together, and augmented utterances. The sums differ from those of one process in
// their rounding only. With SGD with momentum (the first steps of RAdam) weights differ as little as gradients; a wrong mask, a
// lost utterance or a wrong scale shows in the second digit.
START_TEST(several_processes_train_as_one)
{
    team m = new_team("whole");
    if (_i == N_VARIANTS + 1) m.options.augment = some_acoustics(0.2);
    m.config = variant(_i % N_VARIANTS);
    if (TEST_LACKS(&m.config)) return;
    // the sums of the output's gradients begin only after the inner layer's loss, and after the last batch
    if (_i == N_VARIANTS) {
        m.config.layers = 3;
        m.options.accumulate = 2;
        m.options.join_part = 0.6;
        m.options.n_inner = 1, m.options.inner_layers[0] = 1;
        m.options.optimizer.average = 0.5;
    }
    m.options.optimizer.kind = LIN_RADAM;
    m.options.epochs = 1;
    m.options.batch_frames = 700;
    m.options.warmup_steps = 0;
    m.options.lr = 0.05;
    m.options.schedule = LIN_SCHEDULE_CONSTANT;
    float *one;
    watch w = {0};
    lin_error err = {0};
    size_t n;
    ck_assert_msg(train_network(m.config, &m.options, &w, &one, &n, &err) == LIN_OK, "%s", err.message);
    ck_assert_int_le(w.last.step, 5);
    lin_model *start = new_network(&m.config);
    double moved = 0;
    for (size_t i = 0; i < n; i++) moved = fmax(moved, fabs((double)one[i] - (double)start->values[i]));
    lin_model_destroy(start);
    ck_assert_msg(moved > 0.01, "the weights moved by %g only", moved);
    for (int size = 1; size <= MOST; size += size < 3 ? 1 : 5) {
        char name[32];
        snprintf(name, sizeof name, "on-%d", size);
        m.options.folder = run_folder(name);
        run_team(&m, size, LIN_OK);
        snprintf(name, sizeof name, "variant %d on %d", _i, size);
        weights_close(name, m.values[0], one, n, 2e-5 * moved);
        ck_assert_msg(fabs(m.watches[0].last.loss - w.last.loss) < 1e-5 * w.last.loss, "loss %.9g, of one process %.9g",
                      m.watches[0].last.loss, w.last.loss);
        ck_assert_msg(fabs(m.watches[0].last.dev_loss - w.last.dev_loss) < 1e-3 * w.last.dev_loss,
                      "dev loss %.9g, of one process %.9g", m.watches[0].last.dev_loss, w.last.dev_loss);
        ck_assert(m.watches[0].left_out == 1);
        clear(&m);
    }
    free(one);
}
END_TEST

START_TEST(the_same_number_gives_the_same_bits)
{
    team m = new_team("first"), again = new_team("second");
    again.options.threads = 2;
    run_team(&m, 3, LIN_OK);
    run_team(&again, 3, LIN_OK);
    test_same_f32("the second time", again.values[0], m.values[0], m.n);
    ck_assert(again.watches[0].last.dev_loss == m.watches[0].last.dev_loss);
    clear(&again);
    // stopped by any rank, and resumed on as many: the bits of a run that was not
    again.options.folder = run_folder("stopped");
    again.watches[0].stop_after = 7;
    run_team(&again, 3, LIN_STOPPED);
    HAS(again.errors[2].message, "stopped after step 8");
    clear(&again);
    again.options.resume = 1;
    run_team(&again, 3, LIN_OK);
    test_same_f32("after resuming", again.values[0], m.values[0], m.n);
    clear(&again);
    clear(&m);
}
END_TEST

// Learns on two, is stopped, and continues on one, then on four.
START_TEST(resumed_on_another_number)
{
    team m = new_team("moved");
    watch w = {.stop_after = 60};
    float *values;
    m.options.epochs = EPOCHS;
    m.config.dropout = 0.05;
    m.watches[0].stop_after = 30;
    run_team(&m, 2, LIN_STOPPED);
    clear(&m);
    m.options.resume = 1;
    FAILS(train_network(m.config, &m.options, &w, &values, NULL, &err), LIN_STOPPED, "");
    ck_assert_int_eq(w.last.step, 61);
    free(values);
    run_team(&m, 4, LIN_OK);
    ck_assert_msg(m.watches[0].last.dev_per < FEW_WRONG, "PER %g after %lld steps", m.watches[0].last.dev_per,
                  m.watches[0].last.step);
    ck_assert_int_eq(m.watches[0].last.epoch, EPOCHS - 1);
    clear(&m);
}
END_TEST

START_TEST(what_differs_is_refused)
{
    team m = new_team("mismatch");
    m.other_rank = 2;
    m.other_seed = 9;
    run_team(&m, 3, LIN_MISMATCH);
    HAS(m.errors[0].message, "process 2, on ", "other training options");
    clear(&m);
    m.other_seed = 0;
    m.other_gain_db = 1;
    run_team(&m, 3, LIN_MISMATCH);
    HAS(m.errors[0].message, "other training options");
    clear(&m);
    m.other_gain_db = 0;
    m.other_rank = 1;
    run_team(&m, 3, LIN_MISMATCH);
    HAS(m.errors[0].message, "process 1, on ", "other training data");
    clear(&m);
    // an error that only rank 0 can have
    m.other_rank = -1;
    m.options.resume = 1;
    run_team(&m, 3, LIN_IO);
    HAS(m.errors[2].message, "checkpoint.safetensors");
    clear(&m);
    // a loss that is not finite is found by all, and its utterance named
    m.options.resume = 0;
    m.nan = 1;
    run_team(&m, 3, LIN_NUMERIC);
    HAS(m.errors[1].message, "spk", "step 0");
    clear(&m);
    // weights that are not those of rank 0
    m.nan = 0;
    m.spoils = 1;
    m.other_rank = 2;
    run_team(&m, 3, LIN_NUMERIC);
    HAS(m.errors[0].message, "after epoch 1 the weights of process 2");
    clear(&m);
    // a checkpoint that cannot be written, within an epoch
    m.spoils = 0;
    m.other_rank = -1;
    m.loses = 1;
    m.options.checkpoint_s = 0;
    run_team(&m, 3, LIN_IO);
    HAS(m.errors[2].message, "checkpoint.safetensors");
    clear(&m);
}
END_TEST

// A rank ends in the middle of a step, at any of its messages. The others end, and rank 0's state after the last complete step is
// saved: resumed, it gives the bits of a run that was not disturbed.
START_TEST(a_process_ends)
{
    team whole = new_team("undisturbed");
    run_team(&whole, 2, LIN_OK);
    team m = new_team("disturbed");
    const char *checkpoint = test_path("disturbed/checkpoint.safetensors");
    m.options.resume = 0;
    int saved = 0;
    for (int at = 30 + _i; at < 80; at += 7) {
        remove(checkpoint);
        m.options.resume = 0;
        m.options.checkpoint_s = 1e9;
        test_world *world = test_world_create(2);
        test_world_fail(world, 1, at);
        test_world_run(world, one_rank, &m);
        ck_assert_msg(m.status[0] != LIN_OK && m.status[1] != LIN_OK, "at %d: %s", at, m.errors[0].message);
        ck_assert_msg(strstr(m.errors[0].message, "a test ended rank 1"), "at %d: %s", at, m.errors[0].message);
        test_world_free(world);
        clear(&m);
        if (access(checkpoint, F_OK) != 0) continue; // before the first step
        if (strstr(m.errors[0].message, "is saved: continue")) saved++;
        m.options.resume = 1;
        run_team(&m, 2, LIN_OK);
        test_same_f32("after a process has ended", m.values[0], whole.values[0], whole.n);
        clear(&m);
    }
    ck_assert_int_gt(saved, 2);
    clear(&whole);
}
END_TEST

// The parts of a batch: each utterance once, in order, and about equally many frames.
START_TEST(parts_of_a_batch)
{
    int frames[100], picked[100];
    for (int round = 0; round < 2000; round++) {
        const int n = 1 + (int)lin_random_below((uint64_t)round, 0, 40), ranks = 1 + (int)lin_random_below((uint64_t)round, 1, 9);
        int total = 0, longest = 0, next = 0;
        for (int i = 0; i < n; i++) {
            picked[i] = n - 1 - i;
            frames[picked[i]] = 1 + (int)lin_random_below((uint64_t)round, (uint64_t)i + 2, 1000);
            total += frames[picked[i]];
            if (frames[picked[i]] > longest) longest = frames[picked[i]];
        }
        const lin_train_options options = {.seed = 3, .join_part = round % 2 ? 0.5 : 0};
        const lin_train_data data = {.options = &options, .train = {.frames = frames, .n = n}};
        for (int r = 0; r < ranks; r++) {
            const lin_train_part part = lin_train_cut(&data, picked, n, r, ranks);
            int own = 0;
            for (int i = part.from; i < part.to; i++) own += frames[picked[i]];
            ck_assert_int_eq(part.from, next);
            ck_assert_int_ge(part.to, part.from);
            if (part.from > 0 && part.from < n) ck_assert(!lin_train_continues(&data, picked[part.from]));
            const int most = options.join_part > 0 ? total : total / ranks + longest;
            ck_assert_msg(own <= most, "%d of %d frames for rank %d of %d", own, total, r, ranks);
            next = part.to;
        }
        ck_assert_int_eq(next, n);
    }
}
END_TEST

TEST_MAIN_WITH(set_up, NULL, "model/parallel", TEST(parts_of_a_batch),
               TESTS(several_processes_train_as_one, 0, N_VARIANTS + 2), TEST(the_same_number_gives_the_same_bits),
               TEST(resumed_on_another_number), TEST(what_differs_is_refused), TESTS(a_process_ends, 0, 3))
