// Small networks of tokens: one of each kind of layer, with random weights.
#ifndef LINNET_TESTS_MODEL_TOKEN_NETWORKS_H
#define LINNET_TESTS_MODEL_TOKEN_NETWORKS_H

#include "tests/model/golden.h"

typedef enum token_kind { LINEAR, GATED, SINUSOID, SOFTMAX, LSTM, LSH, TOKEN_KINDS } token_kind;

static lin_config token_config(token_kind k, int tokens, int outputs)
{
    lin_config c = lin_config_default(outputs);
    c.layers = 2;
    c.heads = 2;
    c.head_width = 8;
    c.feedforward = 24;
    c.mel_bins = 2;
    c.tokens = tokens;
    if (k == GATED) c.decay = LIN_DECAY_GATED, c.norm = LIN_NORM_PRE;
    if (k == SINUSOID || k == SOFTMAX || k == LSH) c.positions = LIN_POSITIONS_SINUSOID;
    if (k == SOFTMAX) c.attention = LIN_ATTENTION_SOFTMAX;
    if (k == LSH) c.attention = LIN_ATTENTION_LSH, c.lsh_rounds = 2, c.lsh_chunk = 8;
    if (k == LSTM) {
        c.network = LIN_NETWORK_LSTM;
        c.heads = c.head_width = c.feedforward = 0;
        c.width = 12;
    }
    return c;
}

// The weights are multiplied by scale: with 2, tokens differ in probability.
static void make_network(const lin_config *config, float scale, lin_model **model, lin_encoder **encoder)
{
    const lin_features features = lin_features_default();
    lin_error err = {0};
    ck_assert_msg(lin_model_create(config, &features, NULL, 5, model, &err) == LIN_OK, "%s", err.message);
    for (size_t i = 0; i < (*model)->params.n_elements; i++) (*model)->values[i] *= scale;
    lin_model_seal(*model);
    ck_assert_msg(lin_encoder_create(*model, lin_ops_cpu(), encoder, &err) == LIN_OK, "%s", err.message);
}

#endif
