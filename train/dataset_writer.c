// dataset_writer.c - writing a feature cache; see dataset.h.

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/symbols.h"
#include "base/unicode.h"
#include "model/model.h"
#include "train/dataset.h"
#include "train/dataset_format.h"

// A growing part of the tail.
typedef struct bytes {
    unsigned char *at;
    size_t used, room;
} bytes;


struct lin_dataset_writer {
    lin_file_writer *file;
    char *path, *phones, *source;
    int D, V, count, tokens;
    lin_features features;
    uint64_t frames, labels, body_hash;
    lin_symbols names;        // of utterances
    lin_symbols speakers;
    bytes index, steps, label_bytes, codes; // codes: of the present utterance
    double *totals;           // [2 D]: sum, sum of squares of all frames
    double *speaker_totals;   // [n_speakers, 2 D]
    uint64_t *speaker_frames; // [n_speakers]
    size_t room_totals, room_frames;
    int failed;
};

static void destroy(lin_dataset_writer *w)
{
    lin_symbols_free(&w->names);
    lin_symbols_free(&w->speakers);
    void *blocks[] = {w->path,           w->phones, w->source, w->index.at,        w->steps.at,       w->label_bytes.at,
                      w->codes.at, w->totals, w->speaker_totals, w->speaker_frames, w};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}

// Reserves room for n more bytes.
static int reserve(bytes *b, size_t n)
{
    return lin_grow(&b->at, &b->room, b->used + n, 1, "a data set", NULL) == LIN_OK;
}

static lin_status create(const char *path, int mel_bins, int tokens, const lin_features *features, const char *phones,
                         const char *source, lin_dataset_writer **writer, lin_error *err)
{
    static const unsigned char header[LIN_DATASET_HEADER]; // written by finish
    *writer = NULL;
    if (mel_bins < 1 || mel_bins > 512) return lin_fail(err, LIN_INVALID, "%s: %d mel bins; must be 1 to 512", path, mel_bins);
    const size_t length = strlen(source);
    if (lin_utf8_prefix(source, length, "") < length)
        return lin_fail(err, LIN_INVALID, "%s: the name of its source is not UTF-8 text", path);
    int V;
    char **names;
    lin_status status = lin_features_check(features, err);
    if (status == LIN_OK) status = lin_phones_split(phones, &V, &names, err);
    if (status != LIN_OK) return status;
    lin_free(names);
    lin_dataset_writer *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "a data set", sizeof *w);
    w->D = mel_bins;
    w->V = V;
    w->tokens = tokens;
    w->features = *features;
    w->path = lin_strdup(path);
    w->phones = lin_strdup(phones);
    w->source = lin_strdup(source);
    w->totals = lin_calloc(2 * (size_t)mel_bins, sizeof *w->totals);
    if (!w->path || !w->phones || !w->source || !w->totals) status = lin_no_memory(err, "a data set", strlen(phones));
    if (status == LIN_OK) status = lin_file_open(path, 0, &w->file, err);
    if (status == LIN_OK) status = lin_file_write(w->file, header, sizeof header, err);
    if (status == LIN_OK) {
        *writer = w;
        return LIN_OK;
    }
    lin_file_abort(w->file);
    destroy(w);
    return status;
}

lin_status lin_dataset_create(const char *path, int mel_bins, const lin_features *features, const char *phones,
                              const char *source, lin_dataset_writer **writer, lin_error *err)
{
    return create(path, mel_bins, 0, features, phones, source, writer, err);
}

lin_status lin_dataset_create_tokens(const char *path, int tokens, const char *symbols, const char *source,
                                     lin_dataset_writer **writer, lin_error *err)
{
    const lin_features unused = lin_features_default();
    *writer = NULL;
    if (tokens < 1 || tokens > 65536)
        return lin_fail(err, LIN_INVALID, "%s: %d different tokens; must be 1 to 65536", path, tokens);
    return create(path, tokens > 256 ? 2 : 1, tokens, &unused, symbols, source, writer, err);
}

/* ---- adding ---------------------------------------------------------------------------------------------------------------- */

static lin_status check_name(const char *what, const char *name, lin_error *err)
{
    const size_t n = strlen(name);
    if (n == 0 || n > LIN_DATASET_NAME)
        return lin_fail(err, LIN_INVALID, "the name of %s has %zu bytes; must have 1 to %d", what, n, (int)LIN_DATASET_NAME);
    if (lin_utf8_prefix(name, n, "") < n) return lin_fail(err, LIN_INVALID, "the name of %s is not UTF-8 text", what);
    return LIN_OK;
}

static lin_status check_utterance(const lin_dataset_writer *w, const char *id, const char *speaker, const float *features,
                                  const int *tokens, int T, const int *labels, int U, lin_error *err)
{
    const int least = tokens ? -1 : 1;
    lin_status status = check_name("an utterance", id, err);
    if (status == LIN_OK) status = check_name("a speaker", speaker, err);
    if (status != LIN_OK) return status;
    if (lin_symbols_find(&w->names, id, strlen(id)) >= 0) return lin_fail(err, LIN_INVALID, "%s is in the data set already", id);
    if (T < 1 || U < 0) return lin_fail(err, LIN_INVALID, "%s: %d frames and %d labels; must have at least 1 frame", id, T, U);
    for (int u = 0; u < U; u++)
        if (labels[u] < least || labels[u] >= w->V)
            return lin_fail(err, LIN_INVALID, "%s: label %d is %d; must be %d to %d", id, u, labels[u], least, w->V - 1);
    for (int t = 0; tokens && t < T; t++)
        if (tokens[t] < 0 || tokens[t] >= w->tokens)
            return lin_fail(err, LIN_INVALID, "%s: token %d is %d; must be 0 to %d", id, t, tokens[t], w->tokens - 1);
    if (tokens) return LIN_OK;
    const size_t D = (size_t)w->D, count = (size_t)T * D;
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(features[i]) <= 60000.0F))
            return lin_fail(err, LIN_NUMERIC, "%s: feature %zu of frame %zu is %g; is the sound damaged?", id, i % D, i / D,
                            (double)features[i]);
    return LIN_OK;
}

static int reserve_speaker(lin_dataset_writer *w)
{
    const size_t n = (size_t)w->speakers.n + 1, row = 2 * (size_t)w->D * sizeof *w->speaker_totals;
    return lin_grow(&w->speaker_totals, &w->room_totals, n, row, "speakers", NULL) == LIN_OK &&
           lin_grow(&w->speaker_frames, &w->room_frames, n, sizeof *w->speaker_frames, "speakers", NULL) == LIN_OK;
}

// The largest half <= x and the smallest half >= x: the codes 0..255 then cover the whole range.
static uint16_t half_down(float x)
{
    const uint16_t h = lin_float_to_half(x);
    if (lin_half_to_float(h) <= x) return h;
    return (h & 0x7FFFu) == 0 ? 0x8001u : (h & 0x8000u) ? (uint16_t)(h + 1) : (uint16_t)(h - 1);
}

static uint16_t half_up(float x)
{
    const uint16_t h = lin_float_to_half(x);
    return lin_half_to_float(h) < x ? (uint16_t)(h + 1) : h; // x >= 0
}

static void put_half(unsigned char *to, uint16_t half)
{
    to[0] = (unsigned char)half;
    to[1] = (unsigned char)(half >> 8);
}

// One bin of one utterance: its codes, minimum and step.
static void quantise(const float *x, size_t T, size_t D, unsigned char *codes, unsigned char *minimum, unsigned char *step)
{
    float low = x[0], high = x[0];
    for (size_t t = 1; t < T; t++) {
        low = fminf(low, x[t * D]);
        high = fmaxf(high, x[t * D]);
    }
    const uint16_t from = half_down(low), by = half_up((high - lin_half_to_float(from)) / 255);
    put_half(minimum, from);
    put_half(step, by);
    const float base = lin_half_to_float(from), scale = by ? 1 / lin_half_to_float(by) : 0;
    for (size_t t = 0; t < T; t++) codes[t * D] = (unsigned char)fminf((x[t * D] - base) * scale + 0.5F, 255.0F);
}

static void sum_up(const lin_dataset_writer *w, int speaker, const float *features, size_t T)
{
    const size_t D = (size_t)w->D;
    double *of_speaker = w->speaker_totals + (size_t)speaker * 2 * D;
    for (size_t d = 0; d < D; d++) {
        double sum = 0, squares = 0;
        for (size_t t = 0; t < T; t++) {
            const double x = features[t * D + d];
            sum += x;
            squares += x * x;
        }
        w->totals[d] += sum;
        w->totals[D + d] += squares;
        of_speaker[d] += sum;
        of_speaker[D + d] += squares;
    }
}

// The codes and steps of a sequence of tokens: nothing is rounded.
static void put_tokens(const int *tokens, size_t T, size_t D, unsigned char *codes, unsigned char *steps)
{
    static const uint16_t step[2] = {0x3C00, 0x5C00}; // 1 and 256
    for (size_t d = 0; d < D; d++) {
        put_half(steps + 2 * d, 0);
        put_half(steps + 2 * (D + d), step[d]);
        for (size_t t = 0; t < T; t++) codes[t * D + d] = (unsigned char)(tokens[t] >> (8 * d));
    }
}

static lin_status add(lin_dataset_writer *w, const char *id, const char *speaker, const float *features, const int *tokens, int T,
                      const int *labels, int U, lin_error *err)
{
    if (w->failed) return lin_fail(err, LIN_INVALID, "%s: nothing can be added after a failure", w->path);
    lin_status status = check_utterance(w, id, speaker, features, tokens, T, labels, U, err);
    if (status != LIN_OK) return status;
    const size_t D = (size_t)w->D, frames = (size_t)T, size = lin_dataset_label_bytes(w->V, w->tokens);
    w->failed = 1; // until everything succeeds
    w->codes.used = 0;
    if (w->count == INT_MAX / 4 || !reserve(&w->index, LIN_DATASET_ENTRY) || !reserve(&w->steps, 4 * D) ||
        !reserve(&w->label_bytes, size * (size_t)U) || !reserve(&w->codes, frames * D) || !reserve_speaker(w))
        return lin_no_memory(err, "a data set", frames * D);
    int i, s, before = w->speakers.n;
    status = lin_symbols_add(&w->speakers, speaker, strlen(speaker), &s, err);
    if (status == LIN_OK) status = lin_symbols_add(&w->names, id, strlen(id), &i, err);
    if (status != LIN_OK) return status;
    if (s == before) {
        memset(w->speaker_totals + (size_t)s * 2 * D, 0, 2 * D * sizeof *w->speaker_totals);
        w->speaker_frames[s] = 0;
    }
    unsigned char *steps = w->steps.at + w->steps.used, *entry = w->index.at + w->index.used;
    if (tokens) put_tokens(tokens, frames, D, w->codes.at, steps);
    for (size_t d = 0; d < D && !tokens; d++)
        quantise(features + d, frames, D, w->codes.at + d, steps + 2 * d, steps + 2 * (D + d));
    status = lin_file_write(w->file, w->codes.at, frames * D, err);
    if (status != LIN_OK) return status;
    w->body_hash = lin_hash(w->codes.at, frames * D, w->body_hash);
    if (!tokens) sum_up(w, s, features, frames);
    for (int u = 0; u < U; u++)
        for (size_t b = 0; b < size; b++)
            w->label_bytes.at[w->label_bytes.used++] = (unsigned char)((labels[u] + (tokens != NULL)) >> (8 * b));
    lin_put_u32(entry, (uint32_t)T);
    lin_put_u32(entry + 4, (uint32_t)U);
    lin_put_u32(entry + 8, (uint32_t)s);
    w->index.used += LIN_DATASET_ENTRY;
    w->steps.used += 4 * D;
    w->speaker_frames[s] += frames;
    w->frames += frames;
    w->labels += (uint64_t)U;
    w->count++;
    w->failed = 0;
    return LIN_OK;
}

lin_status lin_dataset_add(lin_dataset_writer *w, const char *id, const char *speaker, const float *features, int T,
                           const int *labels, int U, lin_error *err)
{
    return add(w, id, speaker, features, NULL, T, labels, U, err);
}

lin_status lin_dataset_add_tokens(lin_dataset_writer *w, const char *id, const int *tokens, const int *targets, int T,
                                  lin_error *err)
{
    return add(w, id, "-", NULL, tokens, T, targets, T, err);
}

/* ---- finishing ------------------------------------------------------------------------------------------------------------- */


static unsigned char *put_doubles(unsigned char *to, const double *from, size_t count)
{
    for (size_t i = 0; i < count; i++, to += 8) lin_put_f64(to, from[i]);
    return to;
}

// The whole tail in one block, so that its hash does not depend on the order of writes.
static unsigned char *make_tail(lin_dataset_writer *w, size_t *size)
{
    const size_t D = (size_t)w->D, n_speakers = (size_t)w->speakers.n, texts = strlen(w->phones) + strlen(w->source) + 2;
    *size = 8 + w->index.used + w->steps.used + w->label_bytes.used + 16 * D + n_speakers * lin_dataset_speaker_bytes(w->D) +
            texts + w->names.text_used + w->speakers.text_used;
    unsigned char *block = lin_alloc(*size, 1), *at = block;
    if (!block) return NULL;
    for (int i = 0; i < w->count; i++)
        lin_put_u32(w->index.at + (size_t)i * LIN_DATASET_ENTRY + 12, (uint32_t)(texts + w->names.items[i].offset));
    lin_put_u64(at, w->body_hash);
    at += 8;
    const struct {
        const void *bytes;
        size_t n;
    } parts[] = {{w->index.at, w->index.used}, {w->steps.at, w->steps.used}, {w->label_bytes.at, w->label_bytes.used}};
    for (size_t i = 0; i < 3; at += parts[i++].n)
        if (parts[i].n) memcpy(at, parts[i].bytes, parts[i].n);
    at = put_doubles(at, w->totals, 2 * D);
    for (size_t s = 0; s < n_speakers; s++) {
        lin_put_u32(at, (uint32_t)(texts + w->names.text_used + w->speakers.items[s].offset));
        lin_put_u32(at + 4, 0);
        lin_put_u64(at + 8, w->speaker_frames[s]);
        at = put_doubles(at + 16, w->speaker_totals + s * 2 * D, 2 * D);
    }
    memcpy(at, w->phones, strlen(w->phones) + 1);
    memcpy(at + strlen(w->phones) + 1, w->source, strlen(w->source) + 1);
    at += texts;
    if (w->names.text_used) memcpy(at, w->names.text, w->names.text_used);
    if (w->speakers.text_used) memcpy(at + w->names.text_used, w->speakers.text, w->speakers.text_used);
    return block;
}

static void make_header(const lin_dataset_writer *w, const unsigned char *block, size_t size,
                        unsigned char header[LIN_DATASET_HEADER])
{
    const lin_features *f = &w->features;
    const double real[] = {f->window_ms, f->hop_ms, f->low_hz, f->high_hz, f->preemphasis};
    memset(header, 0, LIN_DATASET_HEADER);
    memcpy(header, LIN_DATASET_MAGIC, 8);
    lin_put_u32(header + LIN_AT_VERSION, LIN_DATASET_VERSION);
    lin_put_u32(header + LIN_AT_D, (uint32_t)w->D);
    lin_put_u32(header + LIN_AT_V, (uint32_t)w->V);
    lin_put_u32(header + LIN_AT_SAMPLE_HZ, (uint32_t)f->sample_hz);
    put_doubles(header + LIN_AT_FEATURES, real, 5);
    lin_put_u64(header + LIN_AT_COUNT, (uint64_t)w->count);
    lin_put_u64(header + LIN_AT_FRAMES, w->frames);
    lin_put_u64(header + LIN_AT_LABELS, w->labels);
    lin_put_u32(header + LIN_AT_SPEAKERS, (uint32_t)w->speakers.n);
    lin_put_u32(header + LIN_AT_TOKENS, (uint32_t)w->tokens);
    lin_put_u64(header + LIN_AT_TAIL, LIN_DATASET_HEADER + w->frames * (uint64_t)w->D);
    lin_put_u64(header + LIN_AT_TAIL_BYTES, size);
    lin_put_u64(header + LIN_AT_TAIL_HASH, lin_hash(block, size, 0));
    lin_put_u64(header + LIN_AT_HEADER_HASH, lin_hash(header, LIN_AT_HEADER_HASH, 0));
}

lin_status lin_dataset_finish(lin_dataset_writer *w, lin_error *err)
{
    lin_status status = LIN_OK;
    unsigned char header[LIN_DATASET_HEADER], *block = NULL;
    size_t size = 0;
    if (w->failed) {
        status = lin_fail(err, LIN_INVALID, "%s: not written, because adding to it failed", w->path);
    } else if (w->names.text_used + w->speakers.text_used > UINT32_MAX / 2) {
        status = lin_fail(err, LIN_INVALID, "%s: the names of its utterances exceed 2 GB", w->path);
    } else if (!(block = make_tail(w, &size))) {
        status = lin_no_memory(err, "the index of a data set", size);
    } else {
        make_header(w, block, size, header);
        status = lin_file_write(w->file, block, size, err);
        if (status == LIN_OK) status = lin_file_patch(w->file, 0, header, sizeof header, err);
    }
    if (status == LIN_OK) status = lin_file_commit(w->file, err);
    else lin_file_abort(w->file);
    lin_free(block);
    destroy(w);
    return status;
}

void lin_dataset_abort(lin_dataset_writer *w)
{
    if (!w) return;
    lin_file_abort(w->file);
    destroy(w);
}
