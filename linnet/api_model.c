// api_model.c - linnet.h: versions, errors, options, and models. See linnet.h and api.h.

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "linnet/api.h"
#include "linnet/find.h"
#include "linnet/session.h"

/* ---- errors and options ---------------------------------------------------------------------------------------------------- */

_Static_assert((int)LINNET_FP32 == (int)LIN_PRECISION_FP32 && (int)LINNET_TF32 == (int)LIN_PRECISION_TF32 &&
                   (int)LINNET_BF16 == (int)LIN_PRECISION_BF16 && (int)LINNET_INT8 == (int)LIN_PRECISION_INT8 &&
                   (int)LINNET_AUTO == (int)LIN_PRECISION_AUTO,
               "the public precisions are the internal ones");

const char *linnet_version(void) { return LINNET_VERSION; }

const char *linnet_status_name(linnet_status status) { return lin_status_name(status); }

linnet_status linnet_set_data_folder(const char *folder, linnet_error *err)
{
    return lin_find_in(folder, err);
}

linnet_status linnet_set_language(const char *language, linnet_error *err)
{
    return lin_find_language(language, err);
}

void linnet_free(void *block) { lin_free(block); }

void lin_api_init(void *options, size_t size, const void *defaults, size_t full)
{
    if (!options || size < sizeof(size_t)) return;
    memset(options, 0, size);
    memcpy(options, defaults, size < full ? size : full);
    memcpy(options, &size, sizeof size);
}

lin_status lin_api_take(void *options, size_t full, const void *given, const char *name, lin_error *err)
{
    size_t size;
    if (!given) return LIN_OK;
    memcpy(&size, given, sizeof size);
    if (size <= sizeof size || size > 1 << 16)
        return lin_fail(err, LIN_INVALID, "the %s were not initialised: call linnet_%s_init first", name, name);
    for (size_t i = full; i < size; i++) {
        if (((const unsigned char *)given)[i])
            return lin_fail(err, LIN_UNSUPPORTED, "the %s ask for something that version %s of the library does not have", name,
                            LINNET_VERSION);
    }
    memcpy(options, given, size < full ? size : full);
    return LIN_OK;
}

/* ---- models ---------------------------------------------------------------------------------------------------------------- */

static const linnet_model_options defaults = {.device = "cpu", .precision = LINNET_AUTO};

void linnet_model_options_init(linnet_model_options *options, size_t size)
{
    lin_api_init(options, size, &defaults, sizeof defaults);
}

static lin_status describe(linnet_model *m, lin_error *err)
{
    const lin_model *own = m->r.model;
    const int V = m->r.V;
    m->ipa = lin_calloc((size_t)V, sizeof *m->ipa);
    if (!m->ipa) return lin_no_memory(err, "a model", (size_t)V * sizeof *m->ipa);
    for (int i = 0; i < V; i++) m->ipa[i] = lin_phones_ipa(m->r.phones, i);
    m->info = (linnet_model_info){.name = own->name,
                                  .license = own->license,
                                  .provenance = own->provenance,
                                  .sample_hz = own->features.sample_hz,
                                  .n_features = own->config.mel_bins,
                                  .frame_s = own->features.hop_ms / 1000,
                                  .row_s = m->r.row_seconds,
                                  .delay_s = lin_session_construction(&m->r).total_s,
                                  .n_labels = V,
                                  .phones = (const char *const *)own->phone,
                                  .ipa = m->ipa,
                                  .streams = m->r.streams,
                                  .fingerprint = own->fingerprint,
                                  .language = lin_phones_language(m->r.phones)};
    return LIN_OK;
}

// bytes NULL: the file `path`.
static lin_status load(const char *path, const void *bytes, size_t n, const linnet_model_options *given, linnet_model **model,
                       lin_error *err)
{
    linnet_model_options o = defaults;
    *model = NULL;
    lin_status status = lin_api_take(&o, sizeof o, given, "model_options", err);
    if (status != LIN_OK) return status;
    if (path && !*path) return lin_fail(err, LIN_INVALID, "the path of the model is empty; NULL is the default one");
    if (!o.device) o.device = "auto";
    if ((int)o.precision < LINNET_FP32 || (int)o.precision > LINNET_AUTO)
        return lin_fail(err, LIN_INVALID, "precision is %d: LINNET_FP32, LINNET_TF32, LINNET_BF16, LINNET_INT8 or LINNET_AUTO",
                        (int)o.precision);
    const lin_warnings warnings = {.tell = o.warning, .context = o.warning_context};
    linnet_model *m = lin_calloc(1, sizeof *m);
    if (!m) return lin_no_memory(err, "a model", sizeof *m);
    atomic_init(&m->owners, 1);
    if (bytes) status = lin_recognizer_open_memory(&m->r, bytes, n, o.device, (lin_precision)o.precision, &warnings, err);
    else status = lin_recognizer_open(&m->r, path, o.device, (lin_precision)o.precision, &warnings, err);
    if (status != LIN_OK) {
        lin_free(m);
        return status;
    }
    status = describe(m, err);
    if (status == LIN_OK) *model = m;
    else linnet_model_destroy(m);
    return status;
}

linnet_status linnet_model_load(const char *path, const linnet_model_options *options, linnet_model **model, linnet_error *err)
{
    return load(path, NULL, 0, options, model, err);
}

linnet_status linnet_model_load_memory(const void *bytes, size_t n, const linnet_model_options *options, linnet_model **model,
                                       linnet_error *err)
{
    return load(NULL, bytes ? bytes : "", bytes ? n : 0, options, model, err);
}

const lin_punctuation *lin_api_punctuation(linnet_model *m)
{
    lin_punctuation *none = NULL, *opened;
    if (atomic_load(&m->punctuation)) return atomic_load(&m->punctuation);
    if (lin_find_open_punctuation(m->r.phones, &opened, NULL) != LIN_OK || !opened) return NULL;
    if (atomic_compare_exchange_strong(&m->punctuation, &none, opened)) return opened;
    lin_punctuation_destroy(opened); // another thread was faster
    return none;
}

const lin_g2p_rules *lin_api_speller(linnet_model *m)
{
    lin_g2p_rules *none = NULL, *opened;
    if (atomic_load(&m->speller)) return atomic_load(&m->speller);
    opened = lin_find_speller(m->r.phones);
    if (!opened || atomic_compare_exchange_strong(&m->speller, &none, opened)) return opened;
    lin_g2p_rules_destroy(opened); // another thread was faster
    return none;
}

linnet_model *lin_api_keep_model(linnet_model *model)
{
    atomic_fetch_add(&model->owners, 1);
    return model;
}

void linnet_model_destroy(linnet_model *model)
{
    if (!model || atomic_fetch_sub(&model->owners, 1) > 1) return;
    lin_recognizer_close(&model->r);
    lin_free(model->ipa);
    lin_punctuation_destroy(atomic_load(&model->punctuation));
    lin_g2p_rules_destroy(atomic_load(&model->speller));
    lin_free(model);
}

const linnet_model_info *linnet_model_describe(const linnet_model *model) { return &model->info; }
