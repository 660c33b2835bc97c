// States and models from any bytes.
#include "tests/fuzz/fuzz.h"

#include "base/hash.h"
#include "decoder/search.h"
#include "frontend/source.h"
#include "linnet/stream.h"
#include "model/model.h"

/* ---- state ----------------------------------------------------------------------------------------------------------------- */

// States of streams from any bytes: unchanged; with the correct checksum, so that the code after the check is reached; and only
// the front end's part, which then processes more sound.
enum { HEADER = 144, SUM_AT = 24, SIZE_AT = 16 };

static void try_state(const uint8_t *data, size_t size)
{
    lin_state state = {0};
    lin_error err = {0};
    const lin_status status = lin_state_parse(data, size, "fuzz", &state, &err);
    if (status != LIN_OK && (err.status != status || !strstr(err.message, "fuzz") || strchr(err.message, '\n'))) abort();
    for (int l = 0; status == LIN_OK && l < state.about.lanes; l++) {
        lin_greedy greedy;
        const lin_search search = lin_search_greedy(40);
        const uint64_t sum = lin_hash(lin_state_front(&state), (size_t)state.sizes.front, 0) +
                             lin_hash(lin_state_decoder(&state, l), (size_t)state.sizes.decoder, 0) +
                             lin_hash(lin_state_image(&state, l), (size_t)state.sizes.image, 0) +
                             lin_hash(lin_state_frames(&state, l), (size_t)state.sizes.frames, 0);
        if (lin_state_get_decoder(&state, l, &search, &greedy, &err) == LIN_OK && (greedy.label >= 40 || sum == 0)) abort();
    }
    lin_state_free(&state);
}

static void try_front(const uint8_t *data, size_t size)
{
    lin_feature_options o = lin_feature_options_default();
    lin_extractor *f;
    static float sound[2 * 4000], frames[2 * 100 * 40];
    const int rate = size && data[0] & 1 ? 16000 : 8000;
    int n;
    if (size && data[0] & 2) o.channel = LIN_CHANNEL_EACH;
    o.fbank.dereverb = size && data[0] & 4;
    if (lin_extractor_create(rate, 2, &o, &f, NULL) != LIN_OK) return;
    if (size && lin_extractor_load(f, data + 1, size - 1, NULL) == LIN_OK) {
        if (lin_extractor_most_out(f, 100) <= 100) (void)lin_extractor_push(f, sound, 100, frames, 100, &n, NULL);
    }
    lin_extractor_destroy(f);
}

void fuzz_state(const uint8_t *data, size_t size)
{
    try_state(data, size);
    if (size >= HEADER) {
        uint8_t *sealed = malloc(size);
        if (!sealed) return;
        const uint64_t bytes = size, none = 0;
        memcpy(sealed, data, size);
        memcpy(sealed + SIZE_AT, &bytes, sizeof bytes);
        memcpy(sealed + SUM_AT, &none, sizeof none);
        const uint64_t sum = lin_hash(sealed, size, 0);
        memcpy(sealed + SUM_AT, &sum, sizeof sum);
        try_state(sealed, size);
        free(sealed);
    }
    try_front(data, size);
}

/* ---- model ----------------------------------------------------------------------------------------------------------------- */

// The model reader on any bytes: it accepts them or reports what is wrong; an accepted model is consistent.
void fuzz_model(const uint8_t *data, size_t size)
{
    lin_model *model;
    lin_error err = {0};
    const lin_status status = lin_model_load_memory(data, size, "fuzz", &model, &err);
    if ((status == LIN_OK) != (model != NULL)) abort();
    if (status != LIN_OK && (err.status != status || !strstr(err.message, "fuzz") || strchr(err.message, '\n'))) abort();
    if (model) {
        for (size_t i = 0; i < model->params.n_elements; i++)
            if (!isfinite(model->values[i])) abort();
        if (model->phone.n != lin_config_symbols(&model->config)) abort();
        lin_model_destroy(model);
    }
}
