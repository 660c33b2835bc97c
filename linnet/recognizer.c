// recognizer.c - what all sessions of a model share; see recognizer.h.

#include "linnet/recognizer.h"

#include <string.h>

#include "linnet/find.h"
#include "model/model.h"

// Of LIN_PRECISION_AUTO, once the model is known.
static const lin_ops *suited(const lin_ops *ops, lin_precision precision, const lin_model *model)
{
    return precision == LIN_PRECISION_AUTO && ops == lin_ops_cpu() && model->eight_bits ? lin_ops_cpu_int8() : ops;
}

// With the model that is loaded, from `name`; the status is that of loading it.
static lin_status set_up(lin_recognizer *recognizer, const char *name, lin_status status, const char *device,
                         lin_precision precision, const lin_warnings *warnings, lin_error *err)
{
    const lin_ops *ops;
    if (status == LIN_OK) status = lin_model_check_sound(recognizer->model, name, err);
    if (status == LIN_OK) status = lin_backend_open(device, precision, &ops, err);
    if (status == LIN_OK) ops = suited(ops, precision, recognizer->model);
    if (status == LIN_OK) status = lin_encoder_create(recognizer->model, ops, &recognizer->encoder, err);
    if (status == LIN_OK) status = lin_phones_create(recognizer->model->phones, &recognizer->phones, err);
    if (status != LIN_OK) {
        lin_recognizer_close(recognizer);
        return status;
    }
    const lin_model *m = recognizer->model;
    if (warnings) recognizer->warnings = *warnings;
    recognizer->fbank = lin_fbank_from_model(&m->features, m->config.mel_bins);
    recognizer->forgets = m->config.decay != LIN_DECAY_NONE;
    recognizer->streams = !lin_config_why_not_stream(&m->config) && !m->speaker_norm;
    recognizer->row_seconds = m->config.stack * m->features.hop_ms / 1000;
    recognizer->delay_s = m->delay_ms / 1000.0;
    recognizer->V = m->config.outputs;
    return LIN_OK;
}

lin_status lin_recognizer_open(lin_recognizer *recognizer, const char *path, const char *device, lin_precision precision,
                               const lin_warnings *warnings, lin_error *err)
{
    char found[4096];
    const lin_ops *ops;
    memset(recognizer, 0, sizeof *recognizer);
    lin_status status = lin_find_model(path, found, sizeof found, err);
    if (status == LIN_OK) status = lin_backend_open(device, precision, &ops, err); // its errors first
    if (status == LIN_OK)
        status = ops->packs_halves ? lin_model_open(found, precision >= LIN_PRECISION_INT8, &recognizer->model, err)
                                   : lin_model_load(found, &recognizer->model, err);
    return set_up(recognizer, found, status, device, precision, warnings, err);
}

lin_status lin_recognizer_open_memory(lin_recognizer *recognizer, const void *bytes, size_t n, const char *device,
                                      lin_precision precision, const lin_warnings *warnings, lin_error *err)
{
    static const char memory[] = "model in memory";
    memset(recognizer, 0, sizeof *recognizer);
    const lin_status status = lin_model_load_memory(bytes, n, memory, &recognizer->model, err);
    return set_up(recognizer, memory, status, device, precision, warnings, err);
}

void lin_recognizer_close(lin_recognizer *recognizer)
{
    lin_phones_destroy(recognizer->phones);
    lin_encoder_destroy(recognizer->encoder);
    lin_model_destroy(recognizer->model);
    memset(recognizer, 0, sizeof *recognizer);
}

lin_status lin_recognizer_open_decoding(const lin_recognizer *r, const lin_decoding_values *values, const lin_warnings *warnings,
                                        lin_decoding *d, lin_error *err)
{
    const lin_status status = lin_decoding_open(d, values, r->phones, r->row_seconds, r->delay_s, warnings, err);
    if (status == LIN_OK && !r->streams) d->search = d->whole;
    return status;
}
