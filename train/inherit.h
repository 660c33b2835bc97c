/*
 * inherit.h - initialises a model from another one: the weights, and the names of the sets that they were trained on.
 */
#ifndef LIN_TRAIN_INHERIT_H
#define LIN_TRAIN_INHERIT_H

#include <cjson/cJSON.h>

#include "model/model.h"

/*
 * Copies the weights of `from`, and seals `to`. The networks are equal, except that:
 *   - directions and taps of convolutions may differ: a tap keeps its distance in time from the frame, additional taps are 0;
 *   - `from` may have no decays, or fixed ones where `to` has gated ones: the tensors that it lacks keep their initial values;
 *   - its feed-forward may be narrower: new units keep their initial inputs, and their outputs become 0, so they change nothing;
 *   - so may its heads, in a pre-norm network of linear attention (elu + 1) without sinusoids: new channels are 0, the norms'
 *     weights are rescaled for their number, and new elements of keys begin near 0. The function is then nearly the same (only
 *     the norms' mean is over more channels).
 * LIN_MISMATCH, with nothing changed, if they differ otherwise, `from` has taps that `to` lacks, or the phones differ.
 */
lin_status lin_inherit_weights(lin_model *to, const lin_model *from, lin_error *err);

/* Provenance is JSON in the model's file: trained_on, the sets of its last training, and also_trained_on, other sets that its
 * initial weights, or other models of a mean, were trained on. Adds all sets of another model to also_trained_on, except those
 * that `json` has already. 0: no memory. */
int lin_inherit_provenance(cJSON *json, const char *other);

#endif
