/* networks.h - small networks of every kind, for tests. */
#ifndef LIN_TESTS_MODEL_NETWORKS_H
#define LIN_TESTS_MODEL_NETWORKS_H

#include "model/encoder.h"
#include "model/model.h"
#include "tests/support.h"

/* What a layer of a network is made of, those of paper/ last. */
typedef enum network_kind { OF_LINEAR, OF_FIXED, OF_GATED, OF_CONDITION, OF_SINUSOID, OF_SOFTMAX, OF_NAIVE, OF_LSH, OF_POLY2,
                            OF_RANDOM, OF_LSTM } network_kind;

static inline lin_config sized_config(int layers, int heads, int head_width, int feedforward, int mel_bins, int outputs)
{
    lin_config c = lin_config_default(outputs);
    c.layers = layers;
    c.heads = heads;
    c.head_width = head_width;
    c.feedforward = feedforward;
    c.mel_bins = mel_bins;
    return c;
}

static inline lin_config with_conv(lin_config c, int kernel, int layers)
{
    c.positions = LIN_POSITIONS_CONV;
    c.conv_kernel = kernel;
    c.conv_layers = layers;
    return c;
}

static inline lin_config of_kind(lin_config c, network_kind kind)
{
    if (kind == OF_SOFTMAX) c.attention = LIN_ATTENTION_SOFTMAX;
    if (kind == OF_NAIVE) c.attention = LIN_ATTENTION_SOFTMAX_NAIVE;
    if (kind == OF_LSH) c.attention = LIN_ATTENTION_LSH, c.lsh_rounds = 2, c.lsh_chunk = 8;
    if (kind == OF_POLY2) c.feature_map = LIN_MAP_POLY2;
    if (kind == OF_RANDOM) c.feature_map = LIN_MAP_RANDOM, c.features = 20;
    if (kind == OF_FIXED) c.decay = LIN_DECAY_FIXED;
    if (kind == OF_GATED) c.decay = LIN_DECAY_GATED;
    if (kind == OF_CONDITION) c.condition_every = 1;
    if (kind == OF_SINUSOID) c.positions = LIN_POSITIONS_SINUSOID, c.conv_kernel = c.conv_layers = 0;
    if (kind == OF_LSTM)
        c = (lin_config){.network = LIN_NETWORK_LSTM,
                         .layers = 2,
                         .width = 20,
                         .mel_bins = c.mel_bins,
                         .outputs = c.outputs,
                         .stack = c.stack,
                         .ahead = c.ahead,
                         .causal = c.causal,
                         .tokens = c.tokens,
                         .dropout = c.dropout};
    return c;
}

/* With the default features; phones may be NULL. */
static inline lin_model *model_of(const lin_config *config, const char *phones, uint64_t seed)
{
    const lin_features features = lin_features_default();
    lin_model *model;
    OK(lin_model_create(config, &features, phones, seed, &model, &err));
    return model;
}

/* The rows of one utterance, by a worker of so many threads: of the first output, or of the one for searches. */
static inline void rows_of(const lin_model *m, const lin_ops *ops, int threads, int search, const float *features, int frames,
                           float *logp)
{
    lin_encoder *encoder;
    lin_worker *worker;
    OK(lin_encoder_create(m, ops, &encoder, &err));
    OK(lin_worker_create(encoder, threads, &worker, &err));
    worker->search = search;
    OK(lin_encoder_run(worker, features, (const int[]){0, frames}, 1, logp, &err));
    lin_worker_destroy(worker);
    lin_encoder_destroy(encoder);
}

/* The path of a network of voices of `size` numbers for so many bins, each multiplied by `scale`. */
static inline const char *save_voices(int size, int bins, float scale)
{
    const char *path = test_path("voices.safetensors");
    lin_config c = sized_config(2, 2, 8, 24, bins, 3);
    c.voice = size;
    c.causal = 0;
    c.stack = 3;
    c.ahead = 1;
    lin_model *m = model_of(&c, NULL, 5);
    for (int i = 0; i < bins; i++) m->mean[i] = 0, m->istd[i] = scale;
    lin_model_seal(m);
    ck_assert_int_eq(lin_model_save(m, path, LIN_F32, NULL), LIN_OK);
    lin_model_destroy(m);
    return path;
}

#endif
