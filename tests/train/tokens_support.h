/*
 * tokens_support.h - sets of tokens that a small network learns in seconds, and runs on them, for any device.
 */
#ifndef LIN_TESTS_TOKENS_SUPPORT_H
#define LIN_TESTS_TOKENS_SUPPORT_H

#include "tests/train/train_support.h"

/* A network of tokens and what it learns: the next of `values` numbers, one after the other in steps of `step`. */
typedef struct token_task {
    lin_config config;
    int step;
} token_task;

enum { TOKEN_LINEAR, TOKEN_SOFTMAX, TOKEN_LSTM, TOKEN_MIXTURE, TOKEN_KINDS };

static inline token_task token_task_of(int kind)
{
    token_task t = {of_kind(sized_config(2, 2, 8, 32, 1, 7), OF_SINUSOID), 3};
    lin_config *c = &t.config;
    c->tokens = 7;
    c->dropout = 0;
    c->norm = LIN_NORM_PRE;
    if (kind == TOKEN_SOFTMAX) *c = of_kind(*c, OF_SOFTMAX), c->tokens = 300, c->mel_bins = 2;
    if (kind == TOKEN_MIXTURE) c->mixture = 2, c->outputs = 6, c->tokens = 256, t.step = 64;
    if (kind == TOKEN_LSTM) *c = of_kind(*c, OF_LSTM);
    return t;
}

/* n sequences of 5 to 24 tokens; each fifth target is missing, and all of every fourth sequence. With `noise` a part of the
 * tokens is any, so that their targets cannot be learnt. */
static inline void write_tokens(const char *path, const token_task *task, int n, uint64_t key, double noise)
{
    lin_dataset_writer *writer;
    lin_model *model = new_network(&task->config); // its names
    const int symbols = lin_config_symbols(&task->config);
    OK(lin_dataset_create_tokens(path, task->config.tokens, model->phones, "made by a test", &writer, &err));
    lin_model_destroy(model);
    for (int u = 0; u < n; u++) {
        int tokens[25], targets[24], T = 5 + (int)lin_random_below(key, (uint64_t)u, 20);
        char id[16];
        tokens[0] = (int)lin_random_below(key + 1, (uint64_t)u, (uint32_t)symbols) / task->step * task->step;
        for (int t = 0; t < T; t++) {
            const uint64_t place = (uint64_t)(u * 100 + t);
            tokens[t + 1] = (tokens[t] + task->step) % symbols;
            if (lin_random_uniform(key + 2, place) < noise)
                tokens[t + 1] = (int)lin_random_below(key + 3, place, (uint32_t)symbols);
            targets[t] = t % 5 == 3 || u % 4 == 1 ? -1 : tokens[t + 1];
        }
        snprintf(id, sizeof id, "s%03d", u);
        OK(lin_dataset_add_tokens(writer, id, tokens, targets, T, &err));
    }
    OK(lin_dataset_finish(writer, &err));
}

static inline lin_train_options token_run(const char *name)
{
    lin_train_options o = quick_run(name);
    o.augment = (lin_augment_options){0};
    o.batch_frames = 100;
    return o;
}

#endif
