// word_network.c - a network of tokens that is a language model of words; see word_network.h.

#include "linnet/word_network.h"

#include "model/model.h"

lin_status lin_word_network_pieces(const char *path, int tokens, const char *names, lin_pieces **pieces, lin_error *err)
{
    lin_error why = {0};
    *pieces = NULL;
    if (!tokens) return lin_fail(err, LIN_MISMATCH, "%s is not one of words: it has sound and no tokens", path);
    const lin_status status = lin_pieces_create(names, pieces, &why);
    return status == LIN_OK ? status : lin_fail(err, status, "%s is not one of words: %s", path, why.message);
}

lin_status lin_word_network_open(const char *path, const char *device, lin_precision precision, lin_word_network *m,
                                 lin_error *err)
{
    const lin_ops *ops;
    *m = (lin_word_network){0};
    lin_status status = lin_backend_open(device, precision, &ops, err);
    if (status == LIN_OK)
        status = ops->packs_halves ? lin_model_open(path, precision == LIN_PRECISION_INT8, &m->model, err)
                                   : lin_model_load(path, &m->model, err);
    const lin_config *c = status == LIN_OK ? &m->model->config : NULL;
    if (status == LIN_OK) status = lin_word_network_pieces(path, c->tokens, m->model->phones, &m->pieces, err);
    if (status == LIN_OK && (!c->causal || c->tokens < m->pieces->names.n || c->mixture))
        status = lin_fail(err, LIN_MISMATCH, "%s does not predict each piece from those before it", path);
    if (status == LIN_OK) status = lin_encoder_create(m->model, ops, &m->encoder, err);
    if (status != LIN_OK) lin_word_network_close(m);
    return status;
}

void lin_word_network_close(lin_word_network *m)
{
    lin_encoder_destroy(m->encoder);
    lin_pieces_destroy(m->pieces);
    lin_model_destroy(m->model);
    *m = (lin_word_network){0};
}
