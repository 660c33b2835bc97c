/* word_networks.h - networks of tokens with random weights, as language models of words. */
#ifndef LIN_TESTS_LINNET_WORD_NETWORKS_H
#define LIN_TESTS_LINNET_WORD_NETWORKS_H

#include "lexicon/pieces.h"
#include "model/model.h"
#include "tests/support.h"

/* Writes one that spells every word by its characters, or has other symbols and tokens. */
static inline void write_word_network(const char *path, const char *symbols, int tokens)
{
    const lin_features made_of = lin_features_default();
    int n = 1;
    for (const char *c = symbols; *c; c++) n += *c == ' ';
    lin_config c = lin_config_default(n);
    lin_model *made;
    lin_error why = {0};
    c.layers = 2;
    c.heads = 2;
    c.head_width = 8;
    c.feedforward = 24;
    c.mel_bins = tokens ? 1 : 4;
    c.tokens = tokens;
    c.decay = LIN_DECAY_GATED;
    c.norm = LIN_NORM_PRE;
    ck_assert_msg(lin_model_create(&c, &made_of, symbols, 7, &made, &why) == LIN_OK, "%s", why.message);
    for (size_t i = 0; i < made->params.n_elements; i++) made->values[i] *= 2; // so that words differ in probability
    lin_model_seal(made);
    ck_assert_msg(lin_model_save(made, path, LIN_F32, &why) == LIN_OK, "%s", why.message);
    lin_model_destroy(made);
}

#endif
