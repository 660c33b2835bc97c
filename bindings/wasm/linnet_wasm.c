/*
 * linnet_wasm.c - what linnet.js calls: one model, one decoder and one session over linnet.h, results as JSON.
 *
 *   linnet_wasm_open("/data", words)             once, with the files of the library in that folder
 *   linnet_wasm_begin(rate_hz)                   a new sound
 *   linnet_wasm_push(samples, n)                 samples [n], of one channel
 *   while (linnet_wasm_next() > 0) ...           linnet_wasm_text(): what has changed
 *   linnet_wasm_finish()                         the sound has ended; then next again
 *
 * 0 on success; -1: linnet_wasm_text() is the reason. Built by bindings/wasm/wasm.mk with emscripten.
 */
#include <stdio.h>
#include <stdlib.h>

#include "linnet/linnet.h"

#define EXPORT __attribute__((visibility("default"), used))

static linnet_model *model;
static linnet_decoder *decoder;
static linnet_session *session;
static linnet_error err;
static char *json;
static const char *text = "";

static int end(linnet_status status)
{
    if (status == LINNET_OK) return 0;
    text = err.message;
    return -1;
}

static linnet_status open_all(const char *folder, int words)
{
    linnet_decoder_options o;
    linnet_decoder_options_init(&o, sizeof o);
    o.words = words;
    linnet_status status = linnet_set_data_folder(folder, &err);
    if (status == LINNET_OK) status = linnet_model_load("default", NULL, &model, &err);
    if (status == LINNET_OK) status = linnet_decoder_create(model, &o, &decoder, &err);
    return status;
}

EXPORT const char *linnet_wasm_text(void) { return text; }

EXPORT int linnet_wasm_open(const char *folder, int words) { return end(open_all(folder, words)); }

EXPORT int linnet_wasm_begin(int rate_hz)
{
    linnet_session_options o;
    linnet_session_options_init(&o, sizeof o);
    o.rate_hz = rate_hz;
    o.decoder = decoder;
    linnet_session_destroy(session);
    return end(linnet_session_create(model, &o, &session, &err));
}

EXPORT int linnet_wasm_push(const float *samples, int n) { return end(linnet_session_push(session, samples, (size_t)n, &err)); }

EXPORT int linnet_wasm_finish(void) { return end(linnet_session_finish(session, &err)); }

// {"utterance", "ended" (linnet_end), "incomplete", "start", "end", "heard", "settled", "provisional"}, the last two as
// linnet_result_format's "json".
static int put(const linnet_utterance *u, const char *settled, const char *provisional)
{
    static const char format[] = "{\"utterance\":%d,\"ended\":%d,\"incomplete\":%d,\"start\":%.3f,\"end\":%.3f,\"heard\":%.3f,"
                                 "\"settled\":%s,\"provisional\":%s}";
    for (int n = 0;;) {
        const int needs = snprintf(json, (size_t)n, format, u->number, (int)u->end, u->incomplete, u->start_s, u->end_s,
                                   u->processed_s, settled, provisional);
        if (needs < n) return 1;
        n = needs + 1;
        free(json);
        json = malloc((size_t)n);
        if (json) continue;
        text = "memory is exhausted";
        return -1;
    }
}

// 1: the next change is the text; 0: nothing more has changed.
EXPORT int linnet_wasm_next(void)
{
    const linnet_utterance *u = linnet_session_next(session);
    if (!u) return 0;
    linnet_format_options o;
    linnet_format_options_init(&o, sizeof o);
    o.readable = u->end != LINNET_GROWS;
    char *settled = NULL, *provisional = NULL;
    int done = end(linnet_result_format(u->settled, "json", &o, &settled, NULL, &err));
    if (done == 0) done = end(linnet_result_format(u->provisional, "json", &o, &provisional, NULL, &err));
    if (done == 0) done = put(u, settled, provisional);
    if (done > 0) text = json;
    linnet_free(settled);
    linnet_free(provisional);
    return done;
}
