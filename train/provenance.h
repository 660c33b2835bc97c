/*
 * provenance.h - what a model was trained on, as JSON in its file: trained_on, the sets of its last training, and
 * also_trained_on, those that only the weights it began with, or others in a mean of models, were trained on.
 */
#ifndef LIN_APP_PROVENANCE_H
#define LIN_APP_PROVENANCE_H

#include <cjson/cJSON.h>

/* Adds to also_trained_on what another model was trained on, but for sets whose names `json` has. 0: no memory. */
int lin_provenance_add(cJSON *json, const char *other);

#endif
