/*
 * inherit.h - what a model takes from the one that its training begins with: weights, and the names of the sets that those were
 * trained on.
 */
#ifndef LIN_TRAIN_INHERIT_H
#define LIN_TRAIN_INHERIT_H

#include <cjson/cJSON.h>

#include "model/model.h"

/*
 * Copies the weights of `from`, and seals `to`. Both have the same parameters; they may differ in direction and in the taps of
 * their convolutions: a tap keeps its distance in time from the frame, and the taps that only `to` has become 0. `from` may have
 * no decays where `to` has some, or fixed ones where `to` has gated ones: the tensors that it lacks keep their values. Its
 * feed-forward may be narrower: the units that it lacks keep the values of their inputs, and their outputs become 0, so that they
 * change nothing. So may its heads, in a pre-norm network of linear attention (elu + 1) without sinusoids: new channels begin as
 * 0, the norms' weights make up for their number, and new elements of keys begin near 0, so that the function is nearly the same
 * (the mean over the channels counts less). LIN_MISMATCH, with nothing changed, if the networks differ otherwise, `from` has taps
 * that `to` has not, or the phones differ.
 */
lin_status lin_inherit_weights(lin_model *to, const lin_model *from, lin_error *err);

/* Provenance is JSON in the model's file: trained_on, the sets of its last training, and also_trained_on, those that only the
 * weights it began with, or others in a mean of models, were trained on. Adds to also_trained_on what another model was trained
 * on, but for sets whose names `json` has. 0: no memory. */
int lin_inherit_provenance(cJSON *json, const char *other);

#endif
