// Training on sets of tokens: the next token is learnt; stopped, killed, in parts, on several processes or on equal utterances it
// is the same run; epochs are compared by the dev loss; what belongs to speech is refused.
#include <signal.h>
#include <sys/wait.h>

#include "base/textfile.h"
#include "tests/comm_threads.h"
#include "tests/train/tokens_support.h"

static token_task task;

// 0: this program was built without such networks.
static int begin(int kind, double noise)
{
    task = token_task_of(kind);
    if (TEST_LACKS(&task.config)) return 0;
    write_tokens(train_path, &task, 40, 100, noise);
    write_tokens(dev_path, &task, 9, 200, noise);
    return 1;
}

static lin_status run(const lin_train_options *o, watch *w, float **values, size_t *n, lin_error *err)
{
    const lin_train_hooks hooks = {w, on_progress, on_note, on_stop};
    return train_model(new_network(&task.config), train_path, o, &hooks, values, n, err);
}

static float *must_run(const lin_train_options *o, watch *w, size_t *n)
{
    float *values;
    OK(run(o, w, &values, n, &err));
    return values;
}

static int is_mixture(void) { return task.config.mixture > 0; }

START_TEST(the_next_token_is_learnt)
{
    watch w = {0};
    size_t n;
    if (!begin(_i, 0)) return;
    lin_train_options o = token_run("whole");
    o.epochs = 60;
    o.checkpoint_s = 1e9;
    free(must_run(&o, &w, &n));
    // a softmax is sure of it, a logistic of a width of 2 values at the least
    const double enough = is_mixture() ? 3.5 : 0.1;
    ck_assert_msg(w.last.loss < enough && w.last.dev_loss >= 0 && w.last.dev_loss < enough, "loss %g, dev loss %g", w.last.loss,
                  w.last.dev_loss);
    if (is_mixture()) ck_assert(w.last.dev_per == -1);
    else ck_assert(w.last.dev_per == 0);
    ck_assert_str_eq(w.note, "");
}
END_TEST

/* ---- the same run ---------------------------------------------------------------------------------------------------------- */

static int kill_at;

static int dies(void *context)
{
    const watch *w = context;
    if (w->last.step >= kill_at) raise(SIGKILL);
    return 0;
}

// Stopped, then killed, and resumed after each: the weights of a run without that.
START_TEST(stopped_or_killed_and_resumed_gives_the_same_bits)
{
    float *resumed;
    size_t n;
    if (!begin(_i, 0.2)) return;
    task.config.dropout = 0.2;
    lin_train_options o = token_run("whole");
    watch w = {0};
    float *whole = must_run(&o, &w, &n);
    o.folder = quick_run("stopped").folder;
    FAILS(run(&o, &(watch){.stop_after = 3}, &resumed, &n, &err), LIN_STOPPED, "");
    free(resumed);
    for (kill_at = 5; kill_at < 20; kill_at += 6) {
        const pid_t child = fork();
        ck_assert(child >= 0);
        if (child == 0) {
            watch own = {0};
            const lin_train_hooks hooks = {&own, on_progress, on_note, dies};
            o.resume = 1;
            train_model(new_network(&task.config), train_path, &o, &hooks, NULL, NULL, &(lin_error){0});
            _exit(0);
        }
        int status;
        ck_assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    o.resume = 1;
    watch last = {0};
    resumed = must_run(&o, &last, &n);
    test_same_f32("after being killed", resumed, whole, n);
    ck_assert(last.last.dev_loss == w.last.dev_loss);
    free(resumed);
    free(whole);
}
END_TEST

// Steps whose weights differ as little as gradients (momentum, the first steps of RAdam).
static lin_train_options plain_steps(const char *name)
{
    lin_train_options o = token_run(name);
    o.optimizer.kind = LIN_RADAM;
    o.schedule = LIN_SCHEDULE_CONSTANT;
    o.warmup_steps = 0;
    o.epochs = 2;
    o.lr = 0.05;
    return o;
}

// Sequences differ in length and in how many targets they have: each target weighs the same.
START_TEST(accumulated_batches_are_one_batch)
{
    watch one = {0}, several = {0};
    size_t n;
    if (!begin(_i, 0.2)) return;
    lin_train_options o = plain_steps("whole");
    o.batch_frames = 100000;
    float *want = must_run(&o, &one, &n);
    ck_assert_int_eq(one.last.step, 2);
    o.folder = quick_run("several").folder;
    o.batch_frames = 60;
    o.accumulate = 100;
    float *got = must_run(&o, &several, &n);
    ck_assert_int_eq(several.last.step, 2);
    ck_assert_int_ge(several.last.n_batches, 5);
    ck_assert_double_eq_tol(several.last.loss, one.last.loss, 1e-5);
    weights_close("batches of one step", got, want, n, 5e-6);
    free(got);
    free(want);
}
END_TEST

typedef struct team {
    lin_train_options options;
    float *values[3];
    watch watches[3];
    size_t n;
} team;

static void one_rank(lin_comm *comm, void *context)
{
    team *t = context;
    lin_train_options o = t->options;
    size_t n;
    o.comm = comm;
    comm->patience_s = 50;
    t->values[comm->rank] = must_run(&o, &t->watches[comm->rank], &n);
}

START_TEST(several_processes_train_as_one)
{
    char name[16];
    watch w = {0};
    size_t n;
    if (!begin(_i, 0.2)) return;
    team t = {.options = plain_steps("whole")};
    t.options.threads = 1;
    t.options.accumulate = 2;
    float *want = must_run(&t.options, &w, &n);
    for (int size = 2; size <= 3; size++) {
        snprintf(name, sizeof name, "on-%d", size);
        t.options.folder = quick_run(name).folder;
        test_world *world = test_world_create(size);
        test_world_run(world, one_rank, &t);
        weights_close(name, t.values[0], want, n, 2e-5);
        ck_assert_double_eq_tol(t.watches[0].last.loss, w.last.loss, 1e-5 * w.last.loss);
        ck_assert_double_eq_tol(t.watches[0].last.dev_loss, w.last.dev_loss, 1e-4 * w.last.dev_loss);
        for (int r = 1; r < size; r++) test_same_f32("on another rank", t.values[r], t.values[0], n);
        for (int r = 0; r < size; r++) free(t.values[r]);
        memset(t.watches, 0, sizeof t.watches);
        test_world_free(world);
    }
    free(want);
}
END_TEST

/* ---- epochs are compared by the dev loss ----------------------------------------------------------------------------------- */

enum { MANY_EPOCHS = 12 };

typedef struct epochs {
    double dev_loss[MANY_EPOCHS], dev_per[MANY_EPOCHS], best_per[MANY_EPOCHS];
    int n;
} epochs;

static void on_epoch(void *context, const lin_train_progress *p)
{
    epochs *e = context;
    if (p->batch < p->n_batches || p->epoch < 0) return;
    ck_assert_int_eq(p->epoch, e->n);
    e->dev_loss[e->n] = p->dev_loss;
    e->dev_per[e->n] = p->dev_per;
    e->best_per[e->n++] = p->best_per;
}

// A rate at which the network gets worse on the development set: the best model is that after the epoch with the lowest loss.
START_TEST(the_best_model_has_the_lowest_dev_loss)
{
    size_t n;
    float *values;
    if (!begin(_i ? TOKEN_MIXTURE : TOKEN_LINEAR, 0.6)) return;
    lin_train_options o = token_run("whole");
    o.schedule = LIN_SCHEDULE_CONSTANT;
    o.epochs = MANY_EPOCHS;
    o.lr = 0.05;
    o.checkpoint_s = 1e9;
    epochs e = {0};
    lin_train_hooks hooks = {.context = &e, .progress = on_epoch};
    OK(train_model(new_network(&task.config), train_path, &o, &hooks, &values, &n, &err));
    free(values);
    int lowest = 0, fewest = 0;
    for (int i = 0; i < MANY_EPOCHS; i++) {
        if (e.dev_loss[i] < e.dev_loss[lowest]) lowest = i;
        if (e.dev_per[i] < e.dev_per[fewest]) fewest = i;
        ck_assert(e.best_per[i] == e.dev_loss[lowest] && (e.dev_per[i] >= 0) == !_i);
    }
    ck_assert_msg(lowest < MANY_EPOCHS - 1 && (_i || fewest != lowest), "the epoch %d is the best by either measure", lowest);
    lin_model *best = model_of_run(o.folder, "best");
    o.folder = quick_run("as-long").folder;
    o.epochs = lowest + 1;
    e.n = 0;
    OK(train_model(new_network(&task.config), train_path, &o, &hooks, &values, &n, &err));
    test_same_f32("the best model", best->values, values, n);
    free(values);
    lin_model_destroy(best);
}
END_TEST

// Of tokens a share of errors near 1 says nothing: the rate is halved after `patience` epochs, not after five times as many.
START_TEST(patience)
{
    watch w = {0};
    size_t n;
    task = token_task_of(TOKEN_LINEAR);
    task.config.tokens = task.config.outputs = 200;
    write_tokens(train_path, &task, 40, 100, 1); // nothing can be learnt
    write_tokens(dev_path, &task, 9, 200, 1);
    lin_train_options o = token_run("plateau");
    o.schedule = LIN_SCHEDULE_PLATEAU;
    o.patience = 1;
    o.epochs = 400;
    o.lr = 0.02;
    o.min_lr = 0.006;
    o.checkpoint_s = 1e9;
    free(must_run(&o, &w, &n));
    ck_assert_double_ge(w.last.dev_per, 0.95);
    ck_assert_int_lt(w.last.epoch, 10);
}
END_TEST

/* ---- misuse ---------------------------------------------------------------------------------------------------------------- */

static void refused(lin_train_options o, lin_status want, const char *part)
{
    lin_error err = {0};
    float *values;
    size_t n;
    const lin_status status = run(&o, &(watch){0}, &values, &n, &err);
    ck_assert_msg(status == want && strstr(err.message, part), "%s: \"%s\" lacks \"%s\"", lin_status_name(status), err.message,
                  part);
    free(values);
}

START_TEST(what_belongs_to_speech_is_refused)
{
    begin(TOKEN_LINEAR, 0);
    const lin_train_options plain = token_run("none");
    for (int i = 0; i < 8; i++) {
        lin_train_options o = plain;
        if (i == 0) o.speaker_norm = 1;
        if (i == 1) o.n_inner = 1, o.inner_layers[0] = 1;
        if (i == 2) o.augment = (lin_augment_options){.tempo = 0.1};
        if (i == 3) o.augment = (lin_augment_options){.time_masks = 1, .time_width = 1, .time_part = 1};
        if (i == 4) o.augment = (lin_augment_options){.freq_masks = 1, .freq_width = 1};
        if (i == 5) o.augment = (lin_augment_options){.gain_db = 1};
        if (i == 6) o.augment = (lin_augment_options){.silence_part = 0.1};
        if (i == 7) o.augment = (lin_augment_options){.warp = 0.1};
        refused(o, LIN_INVALID, "these sets hold tokens");
    }
    task.config.tokens++; // another set's
    refused(plain, LIN_MISMATCH, "different tokens");
    task.config.tokens--;
    task.config.outputs++;
    refused(plain, LIN_MISMATCH, "other features or phones");
    task.config.outputs = 6;
    task.config.mixture = 2;
    if (!TEST_LACKS(&task.config)) refused(plain, LIN_MISMATCH, "a mixture is of 256");
    // a network of sound
    float *values;
    FAILS(train(&plain, &(watch){0}, &values, &err), LIN_MISMATCH, "has 7 different tokens, the model 0 (0: features of sound)");
    free(values);
    // and the reverse, for training and for development
    for (int i = 0; i < 2; i++) {
        begin(TOKEN_LINEAR, 0);
        write_set(i ? dev_path : train_path, 5, 0, 100, 0);
        refused(plain, LIN_MISMATCH, "has 0 different tokens, the model 7");
    }
}
END_TEST

static void write_alike(const char *path, int with, int without)
{
    const int tokens[] = {1, 2, 3, 5, 4}, targets[] = {4, -1, 0, 6, 6}, none[] = {-1, -1, -1, -1, -1};
    lin_dataset_writer *writer;
    char id[16];
    OK(lin_dataset_create_tokens(path, 7, "0 1 2 3 4 5 6", "", &writer, &err));
    for (int u = 0; u < with + without; u++) {
        snprintf(id, sizeof id, "s%d", u);
        OK(lin_dataset_add_tokens(writer, id, tokens, u < with ? targets : none, 5, &err));
    }
    OK(lin_dataset_finish(writer, &err));
}

// A batch may hold no target at all, but not all of them. The gradient is that per target: sequences without any weigh nothing.
START_TEST(sequences_without_targets)
{
    watch w = {0}, alike = {0};
    size_t n;
    begin(TOKEN_LINEAR, 0);
    lin_train_options o = token_run("alone");
    o.epochs = 2;
    o.batch_frames = 1; // one sequence a batch
    free(must_run(&o, &w, &n));
    ck_assert_int_eq(w.last.n_batches, 40);
    write_alike(train_path, 3, 0);
    o = plain_steps("all");
    float *want = must_run(&o, &w, &n);
    write_alike(train_path, 3, 4);
    o.folder = quick_run("some").folder;
    float *got = must_run(&o, &alike, &n);
    weights_close("with others", got, want, n, 1e-6);
    ck_assert_double_eq_tol(alike.last.loss, w.last.loss, 1e-6);
    free(want);
    free(got);
    write_alike(train_path, 0, 2);
    refused(token_run("none"), LIN_INVALID, "no token of the sets to train on has a target");
}
END_TEST

TEST_MAIN_WITH(set_up, NULL, "train/tokens", TESTS(the_next_token_is_learnt, 0, TOKEN_KINDS),
               TESTS(stopped_or_killed_and_resumed_gives_the_same_bits, 0, TOKEN_KINDS),
               TESTS(accumulated_batches_are_one_batch, 0, TOKEN_KINDS), TESTS(several_processes_train_as_one, 0, TOKEN_KINDS),
               TESTS(the_best_model_has_the_lowest_dev_loss, 0, 2), TEST(patience), TEST(what_belongs_to_speech_is_refused),
               TEST(sequences_without_targets))
