// Small networks of tokens: one of each kind of layer, with random weights.
#ifndef LINNET_TESTS_MODEL_TOKEN_NETWORKS_H
#define LINNET_TESTS_MODEL_TOKEN_NETWORKS_H

#include "tests/model/golden.h"
#include "tests/model/networks.h"

typedef enum token_kind { LINEAR, GATED, SINUSOID, SOFTMAX, LSTM, LSH, TOKEN_KINDS } token_kind;

static lin_config token_config(token_kind k, int tokens, int outputs)
{
    static const network_kind kinds[] = {OF_LINEAR, OF_GATED, OF_SINUSOID, OF_SOFTMAX, OF_LSTM, OF_LSH};
    lin_config c = sized_config(2, 2, 8, 24, 2, outputs);
    c.tokens = tokens;
    if (k == GATED) c.norm = LIN_NORM_PRE;
    if (k == SOFTMAX || k == LSH) c = of_kind(c, OF_SINUSOID);
    return of_kind(c, kinds[k]);
}

// The weights are multiplied by scale: with 2, tokens differ in probability.
static void make_network(const lin_config *config, float scale, lin_model **model, lin_encoder **encoder)
{
    *model = model_of(config, NULL, 5);
    for (size_t i = 0; i < (*model)->params.n_elements; i++) (*model)->values[i] *= scale;
    lin_model_seal(*model);
    OK(lin_encoder_create(*model, lin_ops_cpu(), encoder, &err));
}

#endif
