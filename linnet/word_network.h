/*
 * word_network.h - a network of tokens that is a language model of words: the model, its pieces of words, and its encoder.
 *
 *   lin_word_network m;
 *   lin_word_network_open(path, "cpu", LIN_PRECISION_FP32, &m, &err);
 *   lin_pieces_encode(m.pieces, ...); lin_token_scorer_create(m.encoder, ...);
 *   lin_word_network_close(&m);
 *
 * Threads: immutable once open, shared by all threads.
 */
#ifndef LIN_LINNET_WORD_NETWORK_H
#define LIN_LINNET_WORD_NETWORK_H

#include "kernels/ops.h"
#include "lexicon/pieces.h"
#include "model/encoder.h"

typedef struct lin_word_network {
    lin_model *model;
    lin_pieces *pieces;
    lin_encoder *encoder;
} lin_word_network;

/* device, precision: of lin_backend_open. LIN_IO, LIN_FORMAT; LIN_MISMATCH, naming the file, for a model of sound, one whose
 * symbols are no pieces of words, and one that does not predict each piece from those before it. On failure all is closed. */
lin_status lin_word_network_open(const char *path, const char *device, lin_precision precision, lin_word_network *network,
                                 lin_error *err);
void lin_word_network_close(lin_word_network *network);

/* The pieces that a set or model of so many tokens (0: it is of sound) has as its symbols; `path` is named in messages. */
lin_status lin_word_network_pieces(const char *path, int tokens, const char *names, lin_pieces **pieces, lin_error *err);

#endif
