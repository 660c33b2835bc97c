// Training: it learns, repeats bit for bit, and resumes after being stopped or killed.
#include <signal.h>
#include <sys/wait.h>

#include "base/textfile.h"
#include "model/streams.h"
#include "tests/train/train_support.h"
#include "train/train_internal.h"

// The same utterances, one code of the first one changed, with correct checksums; hop_ms: of another filterbank, 0: of the same.
static void change_features(const char *path, double hop_ms)
{
    lin_dataset *set;
    lin_dataset_writer *writer;
    OK(lin_dataset_open(path, &set, &err));
    lin_features features = set->features;
    if (hop_ms > 0) features.hop_ms = hop_ms;
    OK(lin_dataset_create(path, D, &features, set->phones, "other", &writer, &err));
    for (int i = 0; i < set->count; i++) {
        float x[80 * D];
        const lin_dataset_utterance *u = &set->utterances[i];
        lin_dataset_features(set, i, x);
        if (i == 0) x[0] += 1;
        OK(lin_dataset_add(writer, u->id, lin_dataset_speaker_name(set, u->speaker), x, u->frames, u->labels, u->n_labels, &err));
    }
    OK(lin_dataset_finish(writer, &err));
    lin_dataset_close(set);
}

START_TEST(it_learns_and_repeats_itself)
{
    float *whole, *again;
    watch w = {0};
    lin_train_options o = quick_run("whole");
    o.epochs = EPOCHS;
    o.checkpoint_s = 1e9;
    OK(train(&o, &w, &whole, &err));
    ck_assert_int_eq(w.left_out, 1);
    ck_assert_int_eq(w.last.epoch, EPOCHS - 1);
    ck_assert_int_eq(w.last.batch, w.last.n_batches);
    ck_assert_msg(w.last.dev_per >= 0 && w.last.dev_per < FEW_WRONG, "PER %g after %lld steps", w.last.dev_per, w.last.step);
    ck_assert(w.last.dev_loss < 0.05 && w.last.best_per <= w.last.dev_per); // 0.006 nats a label measured; 0.8 after 10 epochs
    const size_t n = n_elements();

    // another number of threads: the same bits
    o = quick_run("threads");
    o.epochs = EPOCHS;
    o.checkpoint_s = 1e9;
    o.threads = 1;
    OK(train(&o, &(watch){0}, &again, &err));
    test_same_f32("with one thread", again, whole, n);
    free(again);

    // another seed: other bits
    o = quick_run("seed");
    o.epochs = 1;
    o.seed = 2;
    OK(train(&o, &(watch){0}, &again, &err));
    ck_assert(memcmp(again, whole, n * sizeof *whole) != 0);
    free(again);
    free(whole);

    // the log has a header and one line per epoch
    char line[256];
    FILE *log = fopen(test_path("whole/log.tsv"), "r");
    ck_assert(log != NULL);
    int lines = 0;
    while (fgets(line, sizeof line, log)) ck_assert(lines++ == 0 ? strncmp(line, "epoch\t", 6) == 0 : atoi(line) == lines - 1);
    fclose(log);
    ck_assert_int_eq(lines, EPOCHS + 1);
}
END_TEST

// Augmented utterances, and noise without labels: the same bits on any number of threads and after a stop; the task is learnt.
START_TEST(acoustics_repeat_and_resume)
{
    float *plain;
    watch w = {0};
    lin_train_options o = quick_run("plain");
    OK(train(&o, &(watch){0}, &plain, &err));
    o.augment = some_acoustics(0.2);
    float *whole = same_in_parts(quick_config(), &o, (const int[]){6, 0}, &w);
    ck_assert(memcmp(plain, whole, n_elements() * sizeof *whole) != 0);
    free(whole);
    free(plain);
    o = quick_run("learnt");
    o.augment = some_acoustics(0.2);
    o.epochs = 2 * EPOCHS;
    o.checkpoint_s = 1e9;
    OK(train(&o, &w, NULL, &err));
    ck_assert_msg(w.last.dev_per < FEW_WRONG, "PER %g after %lld steps", w.last.dev_per, w.last.step);
}
END_TEST

// Noise alone, and the labels of no utterance: the outputs become blanks. The loss is that of empty sequences, and no error.
START_TEST(nothing_but_silence)
{
    watch w = {0};
    lin_train_options o = quick_run("silence");
    o.augment = some_acoustics(1);
    o.epochs = 10;
    o.checkpoint_s = 1e9;
    OK(train(&o, &w, NULL, &err));
    ck_assert_msg(w.last.dev_per > 0.99 && w.last.loss == 0, "PER %g, loss %g", w.last.dev_per, w.last.loss);
}
END_TEST

// Utterances without labels teach that nothing is to be put out in sounds like theirs; a set of nothing else is refused.
START_TEST(sounds_without_speech)
{
    double per[2];
    for (int taught = 0; taught < 2; taught++) {
        watch w = {0};
        write_set(train_path, UTTERANCES, taught ? UTTERANCES : 0, 100, 0);
        write_set(dev_path, 10, 10, 200, 0);
        lin_train_options o = quick_run(taught ? "taught" : "untaught");
        o.epochs = EPOCHS;
        o.checkpoint_s = 1e9;
        OK(train(&o, &w, NULL, &err));
        per[taught] = w.last.dev_per;
    }
    // Untaught, the network puts out what the utterances without labels sound like: about as many labels as the others have (1.0
    // measured). The loud last bin, which is new to it, may hide a third.
    ck_assert_msg(per[0] > 0.67 && per[1] < FEW_WRONG, "PER %g untaught, %g taught", per[0], per[1]);
    write_set(train_path, 0, 5, 100, 0);
    const lin_train_options o = quick_run("wordless");
    FAILS(train(&o, &(watch){0}, NULL, &err), LIN_INVALID, "nobody speaks");
}
END_TEST

static lin_config variant(int i)
{
    static const network_kind kinds[] = {OF_SOFTMAX, OF_SOFTMAX, OF_NAIVE, OF_LSH, OF_LSH, OF_POLY2, OF_RANDOM, OF_LSTM, OF_LSTM,
                                         OF_FIXED, OF_GATED};
    lin_config c = of_kind(quick_config(), kinds[i]);
    if (i < 6 || i == 8) c.causal = i % 2;
    c.dropout = 0.1;
    return c;
}
enum { N_VARIANTS = 11 };

// Learns the task, with the same bits if it is stopped, and on any number of threads. *o: for resuming it.
static void learn_and_resume(lin_config config, int i, lin_precision precision, lin_train_options *o)
{
    watch w = {0};
    *o = quick_options("");
    o->epochs = EPOCHS;
    o->checkpoint_s = 1e9;
    o->precision = precision;
    free(same_in_parts(config, o, (const int[]){30, 0}, &w));
    ck_assert_msg(w.last.dev_per < FEW_WRONG, "variant %d: PER %g after %lld steps", i, w.last.dev_per, w.last.step);
}

// Every variant; and none resumes another's run.
START_TEST(variants_learn_and_resume)
{
    lin_train_options o;
    const lin_config own = variant(_i), other = variant(_i + 1 < N_VARIANTS ? _i + 1 : _i - 1);
    if (TEST_LACKS(&own)) return;
    learn_and_resume(own, _i, LIN_PRECISION_TF32, &o);
    FAILS(train_network(other, &o, &(watch){0}, NULL, NULL, &err), LIN_MISMATCH, "checkpoint.safetensors holds");
}
END_TEST

// The same in bf16, the default network last.
START_TEST(bf16_learns_and_resumes)
{
    lin_error err = {0};
    const lin_ops *ops;
    lin_train_options o;
    if (lin_ops_cpu_bf16(&ops, &err) != LIN_OK) return; // tests/kernels/test_bf16.c checks the refusal
    const lin_config config = _i < N_VARIANTS ? variant(_i) : quick_config();
    if (!TEST_LACKS(&config)) learn_and_resume(config, _i, LIN_PRECISION_BF16, &o);
}
END_TEST

// Options that change from one part of a run to the next.
START_TEST(resumed_with_other_options)
{
    lin_train_options o = quick_run("changed");
    o.checkpoint_s = 1e9;
    o.batch_frames = 60;
    o.epochs = 2;
    FAILS(train(&o, &(watch){.stop_after = 20}, NULL, &err), LIN_STOPPED, "");
    o.resume = 1;
    // the epoch has fewer batches than are done already: it starts again
    o.batch_frames = 1000;
    watch w = {0};
    OK(train(&o, &w, NULL, &err));
    HAS(w.note, "epoch 1 with other batches");
    ck_assert_int_eq(w.last.epoch, 1);
    ck_assert_int_eq(w.last.batch, w.last.n_batches);
    const int done = (int)w.last.step;
    ck_assert_int_gt(done, 20);
    ck_assert_int_lt(done, 30);
    // nothing is left to do
    o.epochs = 1;
    w = (watch){0};
    OK(train(&o, &w, NULL, &err));
    HAS(w.note, "nothing to do");
    // more batches than before, in the middle of an epoch
    o.epochs = 4;
    o.batch_frames = 200;
    FAILS(train(&o, &(watch){.stop_after = done + 1}, NULL, &err), LIN_STOPPED, "");
    o.batch_frames = 60;
    w = (watch){0};
    OK(train(&o, &w, NULL, &err));
    HAS(w.note, "starts again");
    ck_assert_int_eq(w.last.epoch, 3);
    // the same options: no note
    o = quick_run("same");
    o.checkpoint_s = 1e9;
    o.batch_frames = 60;
    FAILS(train(&o, &(watch){.stop_after = 20}, NULL, &err), LIN_STOPPED, "");
    o.resume = 1;
    w = (watch){0};
    OK(train(&o, &w, NULL, &err));
    ck_assert_str_eq(w.note, "");
    // another development set: its numbers are not compared with those of the old one
    o.epochs = 5;
    write_set(dev_path, 7, 0, 300, 0);
    OK(train(&o, &w, NULL, &err));
    HAS(w.note, "determined again");
    ck_assert(w.last.best_per == w.last.dev_per);
    // utterances of the same lengths and other features
    o.epochs = 6;
    write_set(train_path, UTTERANCES, 0, 100, 1);
    OK(train(&o, &w, NULL, &err));
    change_features(train_path, 0);
    FAILS(train(&o, &w, NULL, &err), LIN_MISMATCH, "other features");
    write_set(train_path, UTTERANCES + 5, 0, 100, 1);
    FAILS(train(&o, &w, NULL, &err), LIN_MISMATCH, "(40 of ", ", now 45 of ");
    o.seed = 2;
    FAILS(train(&o, &w, NULL, &err), LIN_MISMATCH, "--seed 1, not 2");
}
END_TEST

// Caches of two filterbanks in one run; and a run that goes on with another one, on purpose or not.
START_TEST(one_filterbank)
{
    lin_train_options o = quick_run("filterbank");
    o.epochs = 1;
    write_set(dev_path, 7, 0, 300, 0);
    change_features(dev_path, 8);
    FAILS(train(&o, &(watch){0}, NULL, &err), LIN_MISMATCH, dev_path, "hop-ms 8, not 10");
    write_set(dev_path, 7, 0, 300, 0);
    OK(train(&o, &(watch){0}, NULL, &err));
    // a model for caches of 8 ms, and the checkpoint of 10 ms
    lin_model *model = model_of_run(o.folder, "checkpoint");
    lin_optimizer optimizer;
    lin_train_counters counters;
    const lin_optimizer_options adam = lin_optimizer_default();
    lin_exec *exec;
    OK(lin_ops_cpu()->exec_create(lin_ops_cpu(), 1, &exec, &err));
    OK(lin_optimizer_init(&optimizer, lin_ops_cpu(), exec, &model->params, &adam, &err));
    OK(lin_train_load(&o, model, &optimizer, &counters, &err));
    model->features.hop_ms = 8;
    FAILS(lin_train_load(&o, model, &optimizer, &counters, &err), LIN_MISMATCH, "filterbank/checkpoint.safetensors",
          "hop-ms 8, not 10");
    lin_optimizer_free(&optimizer);
    lin_ops_cpu()->exec_destroy(exec);
    lin_model_destroy(model);
    write_set(train_path, UTTERANCES, 0, 100, 1);
    write_set(dev_path, 10, 0, 200, 0);
}
END_TEST

// Two runs in one folder at once.
START_TEST(one_trainer_a_folder)
{
    char pid[32];
    lin_error why = {0};
    int lock, second, pipes[2];
    const char *run = run_folder("locked");
    ck_assert(pipe(pipes) == 0);
    const pid_t child = fork();
    ck_assert(child >= 0);
    if (child == 0) {
        if (lin_train_lock(run, &lock, NULL) != LIN_OK || write(pipes[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    ck_assert(read(pipes[0], pid, 1) == 1);
    ck_assert_int_eq(lin_train_lock(run, &second, &why), LIN_IO);
    snprintf(pid, sizeof pid, "process %ld on ", (long)child);
    HAS(why.message, pid, run);
    kill(child, SIGKILL);
    ck_assert(waitpid(child, NULL, 0) == child);
    // the lock ended with its holder
    OK(lin_train_lock(run, &lock, &err));
    FAILS(lin_train_lock(run, &second, &err), LIN_IO, "");
    lin_train_unlock(lock);
    OK(lin_train_lock(run, &lock, &err));
    lin_train_unlock(lock);
    close(pipes[0]);
    close(pipes[1]);
}
END_TEST

START_TEST(killed_at_random_moments_gives_the_same_bits)
{
    lin_error why = {0};
    float *whole, *resumed;
    const char *asked = getenv("LINNET_KILLS"); // more than a quick test has time for
    const int kills = asked ? atoi(asked) : 8;
    lin_train_options o = quick_run("whole");
    o.epochs = kills; // enough epochs for that number of kills
    OK(train(&o, &(watch){0}, &whole, &err));
    const size_t n = n_elements();
    o.folder = quick_run("killed").folder;
    char checkpoint[400];
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.safetensors", o.folder);
    for (int i = 0; i < kills; i++) {
        o.resume = access(checkpoint, F_OK) == 0;
        const pid_t child = fork();
        ck_assert(child >= 0);
        if (child == 0) {
            train(&o, &(watch){0}, NULL, &why);
            _exit(0);
        }
        usleep(5000 + lin_random_below(11, (uint64_t)i, 40000));
        kill(child, SIGKILL);
        ck_assert(waitpid(child, NULL, 0) == child);
    }
    o.resume = access(checkpoint, F_OK) == 0;
    OK(train(&o, &(watch){0}, &resumed, &err));
    test_same_f32("after being killed", resumed, whole, n);
    free(resumed);
    free(whole);
}
END_TEST

START_TEST(nan_stops_with_the_name_of_an_utterance)
{
    lin_train_options o = quick_run("nan");
    lin_config config = lin_config_default(V);
    config.layers = 1;
    config.mel_bins = D;
    lin_model *model = new_network(&config);
    model->values[model->params.table[model->params.output[0]].offset] = NAN;
    FAILS(train_model(model, train_path, &o, NULL, NULL, NULL, &err), LIN_NUMERIC, "spk", "train.lfc");
}
END_TEST

START_TEST(the_plateau_schedule_ends)
{
    lin_train_options o = quick_run("plateau");
    o.schedule = LIN_SCHEDULE_PLATEAU;
    o.patience = 1;
    o.epochs = 200;
    o.lr = 1e-5; // so small that nothing improves for long
    o.min_lr = 4e-6;
    o.checkpoint_s = 1e9;
    watch w = {0};
    OK(train(&o, &w, NULL, &err));
    ck_assert_int_lt(w.last.epoch, 199);
    // Nothing is recognised at this rate: each of the two halvings takes five epochs without progress, not one.
    ck_assert_double_ge(w.last.dev_per, 0.95);
    ck_assert_int_ge(w.last.epoch, 10);
    o.resume = 1;
    w = (watch){0};
    OK(train(&o, &w, NULL, &err));
    HAS(w.note, "nothing to do");
    o.resume = 0;
    o.lr = 0.99 * o.min_lr; // no epoch at all: no model
    FAILS(train(&o, &w, NULL, &err), LIN_INVALID, "min-lr");
}
END_TEST

START_TEST(normalised_by_speaker)
{
    lin_train_options o = quick_run("speaker");
    o.speaker_norm = 1;
    o.epochs = 1;
    float *by_speaker, *global;
    OK(train(&o, &(watch){0}, &by_speaker, &err));
    lin_model *model = model_of_run(o.folder, "best");
    ck_assert_int_eq(model->speaker_norm, 1);
    const size_t n = model->params.n_elements;
    for (int d = 0; d < D; d++) ck_assert(model->mean[d] == 0 && model->istd[d] == 1);
    lin_encoder *encoder;
    lin_streams *stream;
    OK(lin_encoder_create(model, lin_ops_cpu(), &encoder, &err));
    FAILS(lin_streams_create(encoder, &(lin_streams_options){.capacity = 1}, &stream, &err), LIN_UNSUPPORTED, "speaker");
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
    o.resume = 1;
    o.speaker_norm = 0;
    FAILS(train(&o, &(watch){0}, NULL, &err), LIN_MISMATCH, "");
    o = quick_run("global");
    o.epochs = 1;
    OK(train(&o, &(watch){0}, &global, &err));
    ck_assert(memcmp(by_speaker, global, n * sizeof *global) != 0);
    free(by_speaker);
    free(global);
}
END_TEST

// Counters and moments that no run can write, with correct checksums.
START_TEST(absurd_checkpoints_are_refused)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
#define WRONG "no training run writes the counters"
        {"3 2 9 0x1p-1 0x1p-2 1 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", NULL},
        {"3 2 9 0x1p-1 0x1p-2 1 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30", WRONG}, // one is missing
        {"-3 2 9 0x1p-1 0x1p-2 1 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG},
        {"3 2000000000000 9 0x1p-1 0x1p-2 1 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG},
        {"3 2 0 0x1p-1 0x1p-2 1 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG}, // batches without a step
        {"3 2 9 1e30 0x1p-2 1 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG},
        {"3 2 9 0 0x1p-2 1 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG},
        {"3 2 9 nan 0x1p-2 1 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG},
        {"3 2 9 0x1p-1 inf 1 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG},
        {"3 2 9 0x1p-1 0x1p-2 9 0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG}, // more since the best than there were
        {"3 2 9 0x1p-1 0x1p-2 1 -0x1p+3 40 500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG},
        {"3 2 9 0x1p-1 0x1p-2 1 0x1p+3 40 -500 0x1p+0 0x1p+1 1 77 5 6 0 4 30 900", WRONG},
        {"3 2 9 0x1p-1 0x1p-2 1 0x1p+3 40 500 0x1p+0 nan 1 77 5 6 0 4 30 900", WRONG}};
#undef WRONG
    lin_error why = {0};
    lin_config config = lin_config_default(V);
    config.layers = 1;
    config.mel_bins = D;
    const lin_ops *ops = lin_ops_cpu();
    const lin_optimizer_options adam = lin_optimizer_default();
    lin_exec *exec;
    lin_optimizer optimizer;
    lin_train_counters counters;
    const char *run = run_folder("absurd"), *path = test_path("absurd/checkpoint.safetensors");
    const lin_train_options o = quick_options(run);
    lin_model *model = new_network(&config);
    OK(ops->exec_create(ops, 1, &exec, &err));
    OK(lin_optimizer_init(&optimizer, ops, exec, &model->params, &adam, &err));
    const size_t n = optimizer.n_elements;
    float *m = calloc(n, sizeof *m), *v = calloc(n, sizeof *v);
    ck_assert(m && v);
    lin_tensor tensors[] = {{.name = "train.m", .dtype = LIN_F32, .n_dims = 1, .shape = {n}, .data = m},
                            {.name = "train.v", .dtype = LIN_F32, .n_dims = 1, .shape = {n}, .data = v}};
    lin_text text = {"train.counters", NULL};
    const size_t n_cases = sizeof cases / sizeof *cases;
    for (size_t i = 0; i < n_cases + 4; i++) {
        const char *message = i < n_cases ? cases[i].message : "moments";
        text.value = cases[i < n_cases ? i : 0].text;
        m[7] = i == n_cases ? NAN : i == n_cases + 3 ? -1e30F : 0;
        v[3] = i == n_cases + 1 ? -1.0F : i == n_cases + 2 ? INFINITY : 0;
        OK(lin_model_save_checkpoint(model, path, tensors, 2, &text, 1, &err));
        const lin_status status = lin_train_load(&o, model, &optimizer, &counters, &why);
        ck_assert_msg(status == (message ? LIN_FORMAT : LIN_OK), "case %zu: %s", i, why.message);
        if (message)
            HAS(why.message, message, path, "use an older copy");
        else ck_assert(counters.epoch == 3 && counters.batch == 2 && counters.lr_factor == 0.5 && counters.dev == 6);
    }
    free(m);
    free(v);
    lin_optimizer_free(&optimizer);
    ops->exec_destroy(exec);
    lin_model_destroy(model);
}
END_TEST

// The plot shows the right values, for any contents of the log and any name of the folder.
START_TEST(curves)
{
    static const char head[] = "epoch\tstep\ttrain_loss\tdev_loss\tdev_per_percent\tlr\tgradient_norm\tframes_per_s\tseconds\n";
    char log[1024];
    snprintf(log, sizeof log,
             "%s1\t5\t3\t3.5\t90\t0.001\t1\t1\t1\n2\t10\t2\t2.5\t25\t0.0005\t1\t1\t2\n"
             "3\t15\t1\t2.4\t31\t0.0002\t1\t1\t3\nbroken\n2\t1\t1\t1\t1\t1\n9\tnan\n",
             head);
    const unsigned long live = lin_memory_live();
    char *svg = lin_curves_svg(log, "exp/<a> & b", 0);
    HAS(svg, "Training of exp/&lt;a&gt; &amp; b</text>", ">loss (nats per phoneme)<", ">dev PER (%)<", ">learning rate<",
        ">epoch<", "3 epochs; best dev PER 25.00 %, epoch 2", "</svg>");
    int circles = 0;
    for (const char *at = svg; (at = strstr(at, "<circle")) != NULL; at++) circles++;
    ck_assert_int_eq(circles, 4 + 1 + 3 * 4); // the key, the best, and a point for each value
    ck_assert(strstr(svg, "nan") == NULL && strstr(svg, "inf") == NULL);
    lin_free(svg);
    svg = lin_curves_svg(log, "x", 1); // of tokens the loss decides
    ck_assert_ptr_nonnull(strstr(svg, "3 epochs; best dev loss 2.4000, epoch 3"));
    lin_free(svg);
    // the model that the run began with is drawn, but is no epoch, and not the best one
    snprintf(log, sizeof log, "%s0\t0\t-1\t3.5\t20\t0\t0\t0\t0\n1\t5\t3\t3.4\t30\t0.001\t1\t1\t1\n", head);
    svg = lin_curves_svg(log, "x", 0);
    ck_assert(strstr(svg, "1 epoch; best dev PER 30.00 %, epoch 1") != NULL && strstr(svg, "nan") == NULL);
    lin_free(svg);
    log[strlen(head) + strlen("0\t0\t-1\t3.5\t20\t0\t0\t0\t0\n")] = 0;
    svg = lin_curves_svg(log, "x", 0);
    ck_assert(strstr(svg, "best") == NULL && strstr(svg, "dev PER") != NULL && strstr(svg, "nan") == NULL);
    lin_free(svg);
    // without a development set, without an epoch
    snprintf(log, sizeof log, "%s1\t5\t3\t-1\t-1\t0.001\t1\t1\t1\n", head);
    svg = lin_curves_svg(log, "x", 0);
    ck_assert(strstr(svg, "1 epoch; best training loss 3.0000, epoch 1") != NULL && strstr(svg, "dev") == NULL &&
              strstr(svg, "nan") == NULL);
    lin_free(svg);
    svg = lin_curves_svg(head, "\xFF", 0);
    ck_assert(strstr(svg, "Training of \xEF\xBF\xBD</text>") != NULL && strstr(svg, "best") == NULL &&
              strstr(svg, "nan") == NULL);
    lin_free(svg);
    // numbers that no run writes
    snprintf(log, sizeof log, "%s1e300\t5\t3\t-1\t-1\t0.001\n1\t5\t1e-320\t-1\t-1\t1e-310\n2\t5\t1e300\t1\t1\t1\n", head);
    svg = lin_curves_svg(log, "x", 0);
    ck_assert(strstr(svg, "1 epoch; best") != NULL && strstr(svg, "nan") == NULL);
    lin_free(svg);
    for (unsigned long k = 1; k < 4; k++) {
        lin_memory_fail_at(k);
        lin_free(lin_curves_svg(log, "x", 0));
    }
    lin_memory_fail_at(0);
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

// The model that a run begins with has a line of its own, and keeps its emission delay, also when the run is resumed; a warm-up
// that is longer than half of the run is noted; a log of linnet 0.2 becomes one in per cent.
static int delay_of(const char *run, const char *name)
{
    lin_model *model = model_of_run(run, name);
    const int delay_ms = model->delay_ms;
    lin_model_destroy(model);
    return delay_ms;
}

START_TEST(from_a_model)
{
    char path[400], *text;
    size_t n;
    watch w = {.delay_ms = 98};
    lin_train_options o = quick_run("from");
    o.measures_first = 1;
    o.epochs = 2;
    o.schedule = LIN_SCHEDULE_CONSTANT;
    o.warmup_steps = 7;
    OK(train(&o, &w, NULL, &err));
    HAS(w.note, "rises for 7 steps");
    ck_assert_int_eq(delay_of(o.folder, "best"), 98);
    ck_assert_int_eq(delay_of(o.folder, "checkpoint"), 98);
    snprintf(path, sizeof path, "%s/log.tsv", o.folder);
    OK(lin_text_read(path, &text, &n, &err));
    int epoch[3] = {-1, -1, -1};
    double loss[3], per[3];
    const char *line = text;
    for (int i = 0; i < 3; i++) {
        line = strchr(line, '\n') + 1;
        ck_assert_int_eq(sscanf(line, "%d %*d %lf %*f %lf", &epoch[i], &loss[i], &per[i]), 3);
        ck_assert(epoch[i] == i && per[i] > 1);
    }
    ck_assert(loss[0] == -1 && loss[1] > 0);
    ck_assert_double_eq_tol(per[2], 100 * w.last.dev_per, 1e-3);
    lin_free(text);

    // resumed: from the checkpoint, whatever the caller's model has
    o.resume = 1;
    o.epochs = 3;
    o.warmup_steps = 1;
    w = (watch){0};
    OK(train(&o, &w, NULL, &err));
    ck_assert_str_eq(w.note, "");
    ck_assert_int_eq(delay_of(o.folder, "checkpoint"), 98);
    OK(lin_text_read(path, &text, &n, &err));
    HAS(text, "\n2\t", "\n3\t");
    lin_free(text);
}
END_TEST

START_TEST(bad_options_are_refused)
{
    lin_train_options o = quick_options("");
    FAILS(train(&o, &(watch){0}, NULL, &err), LIN_INVALID, "");
    o = quick_options(test_path(""));
    o.lr = -1;
    FAILS(train(&o, &(watch){0}, NULL, &err), LIN_INVALID, "");
    o = quick_options("no/such/folder");
    o.epochs = 1;
    FAILS(train(&o, &(watch){0}, NULL, &err), LIN_IO, "");
    o = quick_run("empty"); // nothing to resume
    o.resume = 1;
    FAILS(train(&o, &(watch){0}, NULL, &err), LIN_IO, "checkpoint.safetensors");
}
END_TEST

TEST_MAIN_WITH(set_up, NULL, "train/train", TEST(it_learns_and_repeats_itself),
               TEST(acoustics_repeat_and_resume), TEST(nothing_but_silence),
               TEST(sounds_without_speech), TESTS(variants_learn_and_resume, 0, N_VARIANTS),
               TESTS(bf16_learns_and_resumes, 0, N_VARIANTS + 1), TEST(resumed_with_other_options), TEST(one_filterbank),
               TEST(one_trainer_a_folder), TEST(killed_at_random_moments_gives_the_same_bits),
               TEST(nan_stops_with_the_name_of_an_utterance), TEST(the_plateau_schedule_ends), TEST(normalised_by_speaker),
               TEST(absurd_checkpoints_are_refused), TEST(curves), TEST(from_a_model), TEST(bad_options_are_refused))
