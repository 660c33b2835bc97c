// Many streams in random order and amounts, on any backend, against whole utterances on the CPU.
#include "tests/model/streams_cases.h"

static lin_model *streams_model(int stack, int ahead, int conv_layers, streams_kind kind)
{
    static const network_kind kinds[] = {OF_LINEAR, OF_GATED, OF_SINUSOID, OF_POLY2, OF_LSTM, OF_SOFTMAX};
    lin_config config = sized_config(3, 2, 8, 24, STREAMS_D, STREAMS_V);
    config.stack = stack;
    config.ahead = ahead;
    if (conv_layers && kind != STREAMS_LSTM && kind != STREAMS_SINUSOID) config = with_conv(config, 4, conv_layers);
    if (conv_layers || kind == STREAMS_SINUSOID) config.norm = LIN_NORM_PRE;
    config = of_kind(config, kinds[kind]);
    lin_model *model = model_of(&config, NULL, 5);
    test_fill_f32(model->values, model->params.n_elements, 6, -0.4, 0.4);
    const lin_param *output = &model->params.table[model->params.output[0]]; // so that labels change from row to row
    test_fill_f32(model->values + output->offset, (size_t)(output->n * output->k), 7, -3, 3);
    lin_model_seal(model);
    return model;
}

void streams_begin(streams_world *w, const lin_ops *ops, int stack, int ahead, int conv_layers, streams_kind kind)
{
    w->bits = ops->on_host;
    w->model = streams_model(stack, ahead, conv_layers, kind);
    OK(lin_encoder_create(w->model, ops->on_host ? ops : lin_ops_cpu(), &w->cpu, &err));
    OK(lin_encoder_create(w->model, ops, &w->encoder, &err));
    lin_worker *worker;
    OK(lin_worker_create(w->cpu, 1, &worker, &err));
    for (int i = 0; i < STREAMS_N; i++) {
        test_fill_f32(w->features[i], STREAMS_FRAMES * STREAMS_D, 100 + (uint64_t)i, -2, 2);
        w->rows[i] = lin_config_frames_out(&w->model->config, STREAMS_FRAMES);
        OK(lin_encoder_run(worker, w->features[i], (const int[]){0, STREAMS_FRAMES}, 1, w->want[i], &err));
    }
    lin_worker_destroy(worker);
}

void streams_end(streams_world *w)
{
    lin_encoder_destroy(w->cpu);
    lin_encoder_destroy(w->encoder);
    lin_model_destroy(w->model);
}

void streams_judge(const streams_world *w, const char *what, const float *got, const float *want, int n)
{
    if (w->bits) {
        test_same_f32(what, got, want, (size_t)n);
        return;
    }
    for (int i = 0; i < n; i++)
        test_require(fabs((double)got[i] - (double)want[i]) <= 1e-4, "%s: number %d is %g, expected %g", what, i, (double)got[i],
                     (double)want[i]);
}

void streams_random_tick(streams_world *w, lin_streams *streams, streams_speaker *speakers, int n_speakers,
                         uint64_t key)
{
    int slots[STREAMS_N], counts[STREAMS_N], who[STREAMS_N], n = 0, total = 0;
    unsigned char last[STREAMS_N];
    float *input = lin_streams_input(streams);
    for (int i = 0; i < n_speakers; i++) {
        streams_speaker *sp = &speakers[i];
        if (sp->done || lin_random_below(key, 2 * (uint64_t)i, 3) == 0) continue;
        int count = (int)lin_random_below(key, 2 * (uint64_t)i + 1, STREAMS_LONGEST + 1);
        if (count > STREAMS_FRAMES - sp->fed) count = STREAMS_FRAMES - sp->fed;
        slots[n] = sp->slot;
        counts[n] = count;
        last[n] = sp->fed + count == STREAMS_FRAMES;
        memcpy(input + total * STREAMS_D, w->features[i] + sp->fed * STREAMS_D, (size_t)(count * STREAMS_D) * sizeof *input);
        total += count;
        sp->fed += count;
        sp->done = last[n];
        who[n++] = i;
    }
    lin_tick_results results;
    OK(lin_streams_tick(streams, &(lin_tick){n, slots, counts, last, input}, &results, &err));
    for (int b = 0; b < n; b++) {
        streams_speaker *sp = &speakers[who[b]];
        const int rows = results.offsets[b + 1] - results.offsets[b];
        if (results.logp)
            streams_judge(w, "log-probabilities of a tick", results.logp + results.offsets[b] * STREAMS_V,
                          w->want[who[b]] + sp->rows * STREAMS_V, rows * STREAMS_V);
        sp->rows += rows;
        if (!results.phones) continue;
        ck_assert_int_ge(results.n_phones[b], 0);
        for (int p = 0; p < results.n_phones[b]; p++) sp->phones[sp->n_phones++] = results.phones[results.offsets[b] + p];
    }
}

void streams_case_company(const lin_ops *ops, int stack, int ahead, int conv_layers, streams_kind kind, int batch)
{
    static streams_world w;
    streams_begin(&w, ops, stack, ahead, conv_layers, kind);
    lin_streams *streams;
    const lin_streams_options o = {.capacity = STREAMS_N, .batch = batch, .longest = STREAMS_LONGEST, .exact = 1};
    OK(lin_streams_create(w.encoder, &o, &streams, &err));
    streams_speaker speakers[STREAMS_N] = {0};
    for (int i = 0; i < STREAMS_N; i++) speakers[i].slot = i;
    for (uint64_t t = 0; t < 60; t++) {
        streams_random_tick(&w, streams, speakers, STREAMS_N, 1000 + t);
        if (t == 7) {
            OK(lin_streams_reset(streams, speakers[4].slot, &err));
            speakers[4] = (streams_speaker){.slot = speakers[4].slot};
        }
    }
    for (int i = 0; i < STREAMS_N; i++) ck_assert_int_eq(speakers[i].rows, w.rows[i]);
    lin_streams_destroy(streams);
    streams_end(&w);
}

void streams_case_phones(const lin_ops *ops, streams_kind kind)
{
    static streams_world w;
    streams_begin(&w, ops, 2, 1, 1, kind);
    lin_streams *streams;
    const lin_streams_options o = {.capacity = STREAMS_N, .longest = STREAMS_LONGEST, .decodes = 1, .exact = 1};
    OK(lin_streams_create(w.encoder, &o, &streams, &err));
    static streams_speaker speakers[STREAMS_N];
    memset(speakers, 0, sizeof speakers);
    for (int i = 0; i < STREAMS_N; i++) speakers[i].slot = i;
    for (uint64_t t = 0; t < 60; t++) streams_random_tick(&w, streams, speakers, STREAMS_N, 2000 + t);
    int all = 0;
    for (int i = 0; i < STREAMS_N; i++) {
        lin_greedy greedy;
        lin_path want = {0};
        int pending;
        lin_greedy_reset(&greedy, STREAMS_V, 0, 0);
        OK(lin_greedy_push(&greedy, w.want[i], w.rows[i], &want, &err));
        const int n = want.n_phones;
        OK(lin_greedy_finish(&greedy, &want, &err));
        OK(lin_streams_pending(streams, speakers[i].slot, &speakers[i].phones[speakers[i].n_phones], &pending, &err));
        ck_assert_int_eq(pending, want.n_phones - n);
        ck_assert_int_eq(speakers[i].n_phones, n);
        for (int p = 0; p < want.n_phones; p++) {
            const lin_phone *got = &speakers[i].phones[p];
            const lin_path_phone *wanted = &want.phones[p];
            ck_assert_msg(got->label == wanted->label && got->start == wanted->start && got->end == wanted->end &&
                              fabsf(got->confidence - wanted->confidence) < 1e-4f,
                          "phone %d of speaker %d", p, i);
        }
        lin_path_free(&want);
        all += n;
    }
    ck_assert_int_gt(all, 2 * STREAMS_N); // not blanks only
    lin_streams_destroy(streams);
    streams_end(&w);
}

void streams_case_moved(const lin_ops *ops, streams_kind kind)
{
    static streams_world w;
    streams_begin(&w, ops, 3, 2, 2, kind);
    lin_streams *streams;
    const lin_streams_options o = {.capacity = 4, .longest = STREAMS_LONGEST, .exact = 1};
    OK(lin_streams_create(w.encoder, &o, &streams, &err));
    const int slot = 0, twin = 1, back = 2;
    int n;
    lin_tick_results results;
    for (int i = 0; i < 3; i++) {
        const lin_tick tick = {1, &slot, (const int[]){4}, NULL, w.features[0] + 4 * i * STREAMS_D};
        OK(lin_streams_tick(streams, &tick, &results, &err));
    }
    const int done = (12 - 2) / 3; // rows so far; 3 frames wait
    lin_streams *moved = one_stream(w.cpu, 1, 0); // onto the CPU, and into another slot
    const size_t size = lin_streams_image_bytes(streams, slot);
    void *image = test_buffer(size, 1);
    OK(lin_streams_save(streams, slot, image, &err));
    OK(lin_streams_load(moved, 0, image, size, &err));
    OK(lin_streams_load(streams, twin, image, size, &err));
    float logp[STREAMS_FRAMES * STREAMS_V];
    n = one_stream_feed(moved, STREAMS_D, STREAMS_V, w.features[0] + 12 * STREAMS_D, 10, 0, logp);
    ck_assert_int_eq(n, (22 - 2) / 3 - done);
    streams_judge(&w, "a stream moved to the CPU", logp, w.want[0] + done * STREAMS_V, n * STREAMS_V);
    const int later = done + n;
    OK(lin_streams_save(moved, 0, image, &err)); // and back from there
    OK(lin_streams_load(streams, back, image, size, &err));
    const lin_tick go_on = {1, &back, (const int[]){5}, NULL, w.features[0] + 22 * STREAMS_D};
    OK(lin_streams_tick(streams, &go_on, &results, &err));
    ck_assert_int_eq(results.offsets[1], (27 - 2) / 3 - later);
    streams_judge(&w, "a stream moved back", results.logp, w.want[0] + later * STREAMS_V, results.offsets[1] * STREAMS_V);

    const int both[] = {twin, slot};
    float twice[10 * STREAMS_D];
    for (int i = 0; i < 2; i++) memcpy(twice + i * 5 * STREAMS_D, w.features[0] + 12 * STREAMS_D, 5 * STREAMS_D * sizeof *twice);
    OK(lin_streams_tick(streams, &(lin_tick){2, both, (const int[]){5, 5}, NULL, twice}, &results, &err));
    for (int i = 0; i < 2; i++)
        streams_judge(&w, "a stream in two slots", results.logp + results.offsets[i] * STREAMS_V, w.want[0] + done * STREAMS_V,
                      (results.offsets[i + 1] - results.offsets[i]) * STREAMS_V);

    ck_assert_int_eq(lin_streams_save(streams, 4, image, NULL), LIN_INVALID);
    ck_assert_int_eq(lin_streams_load(streams, -1, image, size, NULL), LIN_INVALID);
    test_buffer_free(image);
    lin_streams_destroy(moved);
    lin_streams_destroy(streams);
    streams_end(&w);
}
