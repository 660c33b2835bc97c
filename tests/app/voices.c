// voices.c - a tool for the shell tests: writes a small network of voices with random weights.
//
//   voices OUT [BINS=40]

#include <stdio.h>
#include <stdlib.h>

#include "model/model.h"

int main(int argc, char **argv)
{
    const lin_features features = lin_features_default();
    const int bins = argc > 2 ? atoi(argv[2]) : 40;
    lin_config c = lin_config_default(3);
    lin_error err = {0};
    lin_model *m = NULL;
    c.layers = c.heads = 2;
    c.head_width = 8;
    c.feedforward = 24;
    c.mel_bins = bins;
    c.voice = 16;
    c.causal = 0;
    c.stack = 3;
    c.ahead = 1;
    lin_status status = lin_model_create(&c, &features, NULL, 5, &m, &err);
    for (int i = 0; i < bins && status == LIN_OK; i++) m->mean[i] = 18, m->istd[i] = 0.3F;
    if (status == LIN_OK) lin_model_seal(m);
    if (status == LIN_OK) status = lin_model_save(m, argc > 1 ? argv[1] : "", LIN_F32, &err);
    lin_model_destroy(m);
    if (status == LIN_OK) return 0;
    fprintf(stderr, "voices: %s\n", err.message);
    return 1;
}
