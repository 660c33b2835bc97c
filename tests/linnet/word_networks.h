/* word_networks.h - networks of tokens with random weights, as language models of words. */
#ifndef LIN_TESTS_LINNET_WORD_NETWORKS_H
#define LIN_TESTS_LINNET_WORD_NETWORKS_H

#include "lexicon/pieces.h"
#include "model/model_file.h"
#include "tests/support.h"

/* Writes one that spells every word by its characters, or has other symbols and tokens. */
static inline void write_word_network(const char *path, const char *symbols, int tokens)
{
    const lin_features made_of = lin_features_default();
    int n = 1;
    for (const char *c = symbols; *c; c++) n += *c == ' ';
    lin_config c = lin_config_default(n);
    lin_model *model;
    lin_error err = {0};
    c.layers = 2;
    c.heads = 2;
    c.head_width = 8;
    c.feedforward = 24;
    c.mel_bins = tokens ? 1 : 4;
    c.tokens = tokens;
    c.decay = LIN_DECAY_GATED;
    c.norm = LIN_NORM_PRE;
    ck_assert_msg(lin_model_create(&c, &made_of, symbols, 7, &model, &err) == LIN_OK, "%s", err.message);
    for (size_t i = 0; i < model->params.n_elements; i++) model->values[i] *= 2; // so that words differ in probability
    lin_model_seal(model);
    ck_assert_msg(lin_model_save(model, path, LIN_F32, &err) == LIN_OK, "%s", err.message);
    lin_model_destroy(model);
}

#endif
