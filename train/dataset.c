// dataset.c - writing, opening and reading a feature cache; see dataset.h.

#include "train/dataset.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/symbols.h"
#include "base/unicode.h"

enum { ENTRY = sizeof(lin_dataset_entry), HEADER = sizeof(lin_dataset_header), MOST_BINS = 512 };

static size_t label_size(int V, int tokens) { return V + (tokens > 0) <= 256 ? 1 : 2; }
static size_t speaker_size(int D) { return 16 + 16 * (size_t)D; }

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

struct lin_dataset_writer {
    lin_file_writer *file;
    char *path, *phones, *source;
    int D, V, count, tokens;
    lin_features features;
    uint64_t frames, labels, body_hash;
    lin_symbols names;        // of utterances
    lin_symbols speakers;
    lin_buffer index, steps, label_bytes; // parts of the tail
    unsigned char *codes;     // of the present utterance
    double *totals;           // [2 D]: sum, sum of squares of all frames
    double *speaker_totals;   // [n_speakers, 2 D]
    uint64_t *speaker_frames; // [n_speakers]
    size_t room_codes, room_totals, room_frames;
    int failed;
};

static void destroy(lin_dataset_writer *w)
{
    lin_symbols_free(&w->names);
    lin_symbols_free(&w->speakers);
    lin_buffer_free(&w->index);
    lin_buffer_free(&w->steps);
    lin_buffer_free(&w->label_bytes);
    void *blocks[] = {w->path, w->phones, w->source, w->codes, w->totals, w->speaker_totals, w->speaker_frames, w};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}

static lin_status create(const char *path, int mel_bins, int tokens, const lin_features *features, const char *phones,
                         const char *source, lin_dataset_writer **writer, lin_error *err)
{
    static const lin_dataset_header header; // written by finish
    *writer = NULL;
    if (mel_bins < 1 || mel_bins > MOST_BINS)
        return lin_fail(err, LIN_INVALID, "%s: %d mel bins; must be 1 to %d", path, mel_bins, (int)MOST_BINS);
    const size_t length = strlen(source);
    if (lin_utf8_prefix(source, length, "") < length)
        return lin_fail(err, LIN_INVALID, "%s: the name of its source is not UTF-8 text", path);
    lin_symbols names;
    LIN_TRY(lin_features_check(features, err));
    LIN_TRY(lin_phones_split(phones, &names, err));
    const int V = names.n;
    lin_symbols_free(&names);
    lin_status status = LIN_OK;
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
    if (status == LIN_OK) status = lin_file_write(w->file, &header, sizeof header, err);
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
    LIN_TRY(check_name("an utterance", id, err));
    LIN_TRY(check_name("a speaker", speaker, err));
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

// Finds or adds a speaker, with room for its sums; *s: its number.
static lin_status find_speaker(lin_dataset_writer *w, const char *name, int *s, lin_error *err)
{
    const int before = w->speakers.n;
    const size_t n = (size_t)before + 1, row = 2 * (size_t)w->D * sizeof *w->speaker_totals;
    LIN_TRY(lin_grow(&w->speaker_totals, &w->room_totals, n, row, "speakers", err));
    LIN_TRY(lin_grow(&w->speaker_frames, &w->room_frames, n, sizeof *w->speaker_frames, "speakers", err));
    LIN_TRY(lin_symbols_add(&w->speakers, name, strlen(name), s, err));
    if (*s < before) return LIN_OK;
    memset(w->speaker_totals + (size_t)*s * 2 * (size_t)w->D, 0, row);
    w->speaker_frames[*s] = 0;
    return LIN_OK;
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
    LIN_TRY(check_utterance(w, id, speaker, features, tokens, T, labels, U, err));
    const size_t D = (size_t)w->D, frames = (size_t)T, size = label_size(w->V, w->tokens);
    w->failed = 1; // until everything succeeds
    if (w->count == INT_MAX / 4) return lin_no_memory(err, "a data set", frames * D);
    int i, s;
    unsigned char steps[4 * MOST_BINS];
    LIN_TRY(find_speaker(w, speaker, &s, err));
    LIN_TRY(lin_symbols_add(&w->names, id, strlen(id), &i, err));
    LIN_TRY(lin_grow(&w->codes, &w->room_codes, frames * D, 1, "a data set", err));
    if (tokens) put_tokens(tokens, frames, D, w->codes, steps);
    for (size_t d = 0; d < D && !tokens; d++)
        quantise(features + d, frames, D, w->codes + d, steps + 2 * d, steps + 2 * (D + d));
    LIN_TRY(lin_file_write(w->file, w->codes, frames * D, err));
    w->body_hash = lin_hash(w->codes, frames * D, w->body_hash);
    if (!tokens) sum_up(w, s, features, frames);
    const lin_dataset_entry entry = {(uint32_t)T, (uint32_t)U, (uint32_t)s, 0};
    lin_buffer_bytes(&w->index, &entry, ENTRY);
    lin_buffer_bytes(&w->steps, steps, 4 * D);
    for (int u = 0; u < U; u++)
        for (size_t b = 0; b < size; b++) lin_buffer_char(&w->label_bytes, (char)((labels[u] + (tokens != NULL)) >> (8 * b)));
    LIN_TRY(lin_buffer_status(&w->index, err));
    LIN_TRY(lin_buffer_status(&w->steps, err));
    LIN_TRY(lin_buffer_status(&w->label_bytes, err));
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

// The whole tail in one block, so that its hash does not depend on the order of writes.
static void put_tail(lin_dataset_writer *w, lin_buffer *out)
{
    const size_t D = (size_t)w->D, n_speakers = (size_t)w->speakers.n, phones = strlen(w->phones) + 1,
                 source = strlen(w->source) + 1, texts = phones + source, sums = 2 * D * sizeof *w->totals;
    for (int i = 0; i < w->count; i++) {
        const uint32_t name = (uint32_t)(texts + w->names.items[i].offset);
        memcpy(w->index.data + (size_t)i * ENTRY + offsetof(lin_dataset_entry, name), &name, sizeof name);
    }
    lin_buffer_bytes(out, &w->body_hash, 8);
    lin_buffer_bytes(out, w->index.data, w->index.n);
    lin_buffer_bytes(out, w->steps.data, w->steps.n);
    lin_buffer_bytes(out, w->label_bytes.data, w->label_bytes.n);
    lin_buffer_bytes(out, w->totals, sums);
    for (size_t s = 0; s < n_speakers; s++) {
        const uint64_t about[] = {texts + w->names.text_used + w->speakers.items[s].offset, w->speaker_frames[s]};
        lin_buffer_bytes(out, about, sizeof about);
        lin_buffer_bytes(out, w->speaker_totals + s * 2 * D, sums);
    }
    lin_buffer_bytes(out, w->phones, phones);
    lin_buffer_bytes(out, w->source, source);
    lin_buffer_bytes(out, w->names.text, w->names.text_used);
    lin_buffer_bytes(out, w->speakers.text, w->speakers.text_used);
}

lin_status lin_dataset_finish(lin_dataset_writer *w, lin_error *err)
{
    const lin_features *f = &w->features;
    lin_status status = LIN_OK;
    lin_buffer tail = {0};
    if (w->failed) {
        status = lin_fail(err, LIN_INVALID, "%s: not written, because adding to it failed", w->path);
    } else if (w->names.text_used + w->speakers.text_used > UINT32_MAX / 2) {
        status = lin_fail(err, LIN_INVALID, "%s: the names of its utterances exceed 2 GB", w->path);
    } else {
        put_tail(w, &tail);
        status = lin_buffer_status(&tail, err);
    }
    if (status == LIN_OK) {
        lin_dataset_header h = {"", LIN_DATASET_VERSION, (uint32_t)w->D, (uint32_t)w->V, (uint32_t)f->sample_hz,
                                f->window_ms, f->hop_ms, f->low_hz, f->high_hz, f->preemphasis,
                                (uint64_t)w->count, w->frames, w->labels, (uint32_t)w->speakers.n, (uint32_t)w->tokens,
                                HEADER + w->frames * (uint64_t)w->D, tail.n, lin_hash(tail.data, tail.n, 0), 0};
        memcpy(h.magic, LIN_DATASET_MAGIC, sizeof h.magic);
        h.header_hash = lin_hash(&h, offsetof(lin_dataset_header, header_hash), 0);
        status = lin_file_write(w->file, tail.data, tail.n, err);
        if (status == LIN_OK) status = lin_file_patch(w->file, 0, &h, sizeof h, err);
    }
    if (status == LIN_OK) status = lin_file_commit(w->file, err);
    else lin_file_abort(w->file);
    lin_buffer_free(&tail);
    destroy(w);
    return status;
}

void lin_dataset_abort(lin_dataset_writer *w)
{
    if (!w) return;
    lin_file_abort(w->file);
    destroy(w);
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

static lin_status damaged(const lin_dataset *set, const char *what, lin_error *err)
{
    return lin_fail(err, LIN_FORMAT, "%s: %s; the feature cache is damaged; make it again with linnet prepare", set->path, what);
}

static lin_status read_header(lin_dataset *set, const unsigned char *bytes, size_t n, lin_dataset_header *h, lin_error *err)
{
    if (n < HEADER || memcmp(bytes, LIN_DATASET_MAGIC, 8) != 0)
        return lin_fail(err, LIN_FORMAT, "%s: not a feature cache; linnet prepare makes one", set->path);
    memcpy(h, bytes, sizeof *h);
    if (h->version != LIN_DATASET_VERSION)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: feature cache version %u; this program reads version %d", set->path,
                        (unsigned)h->version, (int)LIN_DATASET_VERSION);
    if (lin_hash(bytes, offsetof(lin_dataset_header, header_hash), 0) != h->header_hash)
        return damaged(set, "the checksum of its header is wrong", err);
    if (h->D < 1 || h->D > MOST_BINS || h->V < 2 || h->V > 65536)
        return damaged(set, "the numbers of mel bins and phones are out of range", err);
    if (h->tokens > 65536 || (h->tokens && (h->D != (h->tokens > 256 ? 2 : 1) || h->V > 65535)))
        return damaged(set, "its number of tokens is out of range", err);
    set->D = (int)h->D;
    set->V = (int)h->V;
    set->tokens = (int)h->tokens;
    set->features = (lin_features){h->sample_hz > INT_MAX ? 0 : (int)h->sample_hz, h->window_ms, h->hop_ms, h->low_hz, h->high_hz,
                                   h->preemphasis, 0};
    lin_error inner = {0};
    if (lin_features_check(&set->features, &inner) != LIN_OK) return damaged(set, inner.message, err);
    // counts above the number of bytes are impossible, and with smaller ones no product here can overflow
    if (h->count > INT_MAX / 4 || h->speakers > h->count || h->count > n || h->frames > n || h->labels > n)
        return damaged(set, "its header gives larger counts than the file can hold", err);
    set->count = (int)h->count;
    set->n_speakers = (int)h->speakers;
    set->total_frames = (int64_t)h->frames;
    set->total_labels = (int64_t)h->labels;
    return LIN_OK;
}

// Computes the position of every part from the counts alone: they determine the exact length of the file.
static lin_status read_layout(lin_dataset *set, const unsigned char *bytes, size_t n, const lin_dataset_header *h,
                              const unsigned char **index, lin_error *err)
{
    const size_t D = (size_t)set->D, count = (size_t)set->count;
    if (h->tail != HEADER + h->frames * D || h->tail > n || h->tail_bytes != n - h->tail)
        return lin_fail(err, LIN_FORMAT,
                        "%s: its size of %zu bytes differs from its header; the feature cache is truncated or damaged; make it "
                        "again with linnet prepare",
                        set->path, n);
    const size_t parts[] = {8, count * ENTRY, count * 4 * D, (size_t)h->labels * label_size(set->V, set->tokens), 16 * D,
                            (size_t)set->n_speakers * speaker_size(set->D)};
    size_t fixed = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) fixed += parts[i];
    if (fixed + 2 > h->tail_bytes) return damaged(set, "its index is shorter than its header gives", err);
    const unsigned char *tail = bytes + h->tail;
    if (lin_hash(tail, (size_t)h->tail_bytes, 0) != h->tail_hash) return damaged(set, "the checksum of its index is wrong", err);
    set->body = bytes + HEADER;
    memcpy(&set->body_hash, tail, 8);
    *index = tail + parts[0];
    set->steps = *index + parts[1];
    set->label_bytes = set->steps + parts[2];
    set->sums = set->label_bytes + parts[3];
    set->speakers = set->sums + parts[4];
    set->names = (const char *)set->speakers + parts[5];
    set->n_names = (size_t)h->tail_bytes - fixed;
    return LIN_OK;
}

// A name follows the NUL of another directly, and is not empty.
static int is_name(const lin_dataset *set, uint32_t at)
{
    return at > 0 && at < set->n_names && set->names[at - 1] == '\0' && set->names[at] != '\0';
}

static lin_status check_names(lin_dataset *set, lin_error *err)
{
    if (set->names[set->n_names - 1] != '\0') return damaged(set, "its last name is not terminated", err);
    int strings = 0;
    for (size_t at = 0; at < set->n_names; strings++) {
        const size_t n = strlen(set->names + at);
        if (lin_utf8_prefix(set->names + at, n, at ? "" : "\t") < n) return damaged(set, "its names are not UTF-8 text", err);
        at += n + 1;
    }
    if (strings < 2) return damaged(set, "the names of its phones are missing", err);
    lin_symbols phones;
    lin_error inner = {0};
    lin_status status = lin_phones_split(set->names, &phones, &inner);
    const int V = phones.n;
    lin_symbols_free(&phones);
    if (status == LIN_NO_MEMORY) return lin_fail_as(err, &inner);
    if (status != LIN_OK) return damaged(set, inner.message, err);
    set->phones = set->names;
    set->source = set->names + strlen(set->names) + 1;
    return V == set->V ? LIN_OK : damaged(set, "the number of its phones differs from its header", err);
}

static double f64_at(const unsigned char *p, size_t i)
{
    double value;
    memcpy(&value, p + 8 * i, sizeof value);
    return value;
}

// The writer accepts features up to 60,000, so the sums have a bound too, and their quotients fit a float. False for NaN.
static lin_status check_sums(const lin_dataset *set, const unsigned char *sums, uint64_t frames, lin_error *err)
{
    const size_t D = (size_t)set->D;
    const double most = 1e5 * (double)frames;
    for (size_t d = 0; d < D; d++) {
        const double sum = f64_at(sums, d), squares = f64_at(sums, D + d);
        if (!(fabs(sum) <= most && squares >= 0 && squares <= 1e5 * most)) return damaged(set, "its sums are out of range", err);
    }
    return LIN_OK;
}

static lin_status read_labels(lin_dataset *set, lin_error *err)
{
    const size_t size = label_size(set->V, set->tokens);
    for (size_t i = 0; i < (size_t)set->total_labels; i++) {
        const unsigned char *p = set->label_bytes + i * size;
        set->labels[i] = (size == 1 ? p[0] : p[0] | p[1] << 8) - (set->tokens > 0);
        if (set->labels[i] < (set->tokens ? -1 : 1) || set->labels[i] >= set->V)
            return damaged(set, "a label is out of range", err);
    }
    return LIN_OK;
}

static lin_status read_index(lin_dataset *set, const unsigned char *index, lin_error *err)
{
    const size_t D = (size_t)set->D;
    set->utterances = lin_alloc((size_t)set->count, sizeof *set->utterances);
    set->labels = lin_alloc((size_t)set->total_labels, sizeof *set->labels);
    if (!set->utterances || !set->labels)
        return lin_no_memory(err, "the index of a data set", (size_t)set->total_labels * sizeof(int));
    int64_t frames = 0, labels = 0;
    for (int i = 0; i < set->count; i++, index += ENTRY) {
        lin_dataset_entry e;
        memcpy(&e, index, sizeof e);
        if (e.frames < 1 || e.frames > INT_MAX || e.labels > INT_MAX || e.speaker >= (uint32_t)set->n_speakers ||
            !is_name(set, e.name))
            return damaged(set, "an entry of its index is out of range", err);
        if (set->tokens && e.labels != e.frames)
            return damaged(set, "a sequence has another number of targets than of tokens", err);
        if (e.frames > set->total_frames - frames || e.labels > set->total_labels - labels)
            return damaged(set, "the totals of its index differ from its header", err);
        set->utterances[i] = (lin_dataset_utterance){.id = set->names + e.name,
                                                     .frames = (int)e.frames,
                                                     .speaker = (int)e.speaker,
                                                     .n_labels = (int)e.labels,
                                                     .labels = set->labels + labels,
                                                     .codes = set->body + (size_t)frames * D};
        frames += e.frames;
        labels += e.labels;
    }
    if (frames != set->total_frames || labels != set->total_labels)
        return damaged(set, "the totals of its index differ from its header", err);
    LIN_TRY(read_labels(set, err));
    for (size_t i = 0; i < (size_t)set->count * 2 * D; i++) {
        const unsigned high = set->steps[2 * i + 1];
        if ((high & 0x7C) == 0x7C || (i / D % 2 == 1 && (high & 0x80)))
            return damaged(set, "a step is not a number above 0", err);
    }
    return LIN_OK;
}

// Its frames, its sums, and the offset of its name.
static const unsigned char *speaker_at(const lin_dataset *set, int s, uint64_t *frames, uint32_t *name)
{
    const unsigned char *p = set->speakers + (size_t)s * speaker_size(set->D);
    memcpy(name, p, sizeof *name);
    memcpy(frames, p + 8, sizeof *frames);
    return p + 16;
}

static lin_status check_speakers(const lin_dataset *set, lin_error *err)
{
    const uint64_t most = (uint64_t)set->total_frames;
    uint64_t frames = 0, n;
    uint32_t name;
    LIN_TRY(check_sums(set, set->sums, most, err));
    for (int s = 0; s < set->n_speakers; s++) {
        const unsigned char *sums = speaker_at(set, s, &n, &name);
        if (!is_name(set, name) || n < 1 || n > most) return damaged(set, "a speaker is out of range", err);
        frames += n;
        LIN_TRY(check_sums(set, sums, n, err));
    }
    return frames == most ? LIN_OK : damaged(set, "the totals of its speakers differ from its header", err);
}

static lin_status read_all(lin_dataset *set, const void *bytes, size_t n, lin_error *err)
{
    lin_dataset_header header;
    const unsigned char *index = NULL;
    LIN_TRY(read_header(set, bytes, n, &header, err));
    LIN_TRY(read_layout(set, bytes, n, &header, &index, err));
    LIN_TRY(check_names(set, err));
    LIN_TRY(read_index(set, index, err));
    LIN_TRY(check_speakers(set, err));
    return lin_dataset_verify(set, err);
}

lin_status lin_dataset_open_memory(const void *bytes, size_t n_bytes, const char *name, lin_dataset **out, lin_error *err)
{
    *out = NULL;
    lin_dataset *set = lin_calloc(1, sizeof *set);
    if (set) set->path = lin_strdup(name);
    if (!set || !set->path) {
        lin_free(set);
        return lin_no_memory(err, "a data set", sizeof *set);
    }
    const lin_status status = read_all(set, bytes, n_bytes, err);
    if (status == LIN_OK) *out = set;
    else lin_dataset_close(set);
    return status;
}

lin_status lin_dataset_open(const char *path, lin_dataset **set, lin_error *err)
{
    *set = NULL;
    lin_file_map map;
    LIN_TRY(lin_file_map_open(path, &map, err));
    lin_status status = lin_dataset_open_memory(map.bytes, map.size, path, set, err);
    if (status == LIN_OK) (*set)->map = map;
    else lin_file_map_close(&map);
    return status;
}

void lin_dataset_close(lin_dataset *set)
{
    if (!set) return;
    lin_file_map_close(&set->map);
    lin_free(set->path);
    lin_free(set->utterances);
    lin_free(set->labels);
    lin_free(set);
}

lin_status lin_dataset_verify(const lin_dataset *set, lin_error *err)
{
    uint64_t hash = 0;
    for (int i = 0; i < set->count; i++)
        hash = lin_hash(set->utterances[i].codes, (size_t)set->utterances[i].frames * (size_t)set->D, hash);
    return hash == set->body_hash ? LIN_OK : damaged(set, "the checksum of its features is wrong", err);
}

uint64_t lin_dataset_fingerprint(const lin_dataset *set)
{
    const uint64_t hash = lin_hash(set->steps, (size_t)set->count * 4 * (size_t)set->D, set->body_hash);
    return lin_hash(set->label_bytes, (size_t)set->total_labels * label_size(set->V, set->tokens), hash);
}

void lin_dataset_steps(const lin_dataset *set, int i, float *steps)
{
    lin_half_widen(set->steps + (size_t)i * 4 * (size_t)set->D, 2 * (size_t)set->D, steps);
}

void lin_dataset_features(const lin_dataset *set, int i, float *out)
{
    const size_t D = (size_t)set->D;
    const unsigned char *codes = set->utterances[i].codes;
    float steps[2 * MOST_BINS];
    lin_dataset_steps(set, i, steps);
    for (int t = 0; t < set->utterances[i].frames; t++, codes += D, out += D)
        for (size_t d = 0; d < D; d++) out[d] = steps[d] + steps[D + d] * (float)codes[d];
}

const char *lin_dataset_speaker_name(const lin_dataset *set, int s)
{
    uint64_t frames;
    uint32_t name;
    speaker_at(set, s, &frames, &name);
    return set->names + name;
}

// As in frontend/fbank.h: digital silence would give infinities.
static const double SMALLEST_STD = 1e-2;

static void norm_of(double sum, double squares, double n, float *mean, float *istd)
{
    const double m = sum / n, variance = squares / n - m * m;
    *mean = (float)m;
    *istd = (float)(1 / fmax(sqrt(variance), SMALLEST_STD));
}

void lin_dataset_speaker_norm(const lin_dataset *set, int s, float *mean, float *istd)
{
    const size_t D = (size_t)set->D;
    uint64_t frames;
    uint32_t name;
    const unsigned char *sums = speaker_at(set, s, &frames, &name);
    for (size_t d = 0; d < D; d++) norm_of(f64_at(sums, d), f64_at(sums, D + d), (double)frames, &mean[d], &istd[d]);
}

lin_status lin_dataset_norm(const lin_dataset *const *sets, int n_sets, float *mean, float *istd, lin_error *err)
{
    int64_t frames = 0;
    for (int i = 0; i < n_sets; i++) {
        const char *different = sets[i]->D != sets[0]->D                                             ? "numbers of mel bins"
                                : !lin_features_equal(&sets[i]->features, &sets[0]->features) ? "feature parameters"
                                : strcmp(sets[i]->names, sets[0]->names) != 0                        ? "phones"
                                                                                                     : NULL;
        char how[128] = "";
        if (different && !strcmp(different, "phones")) lin_phones_difference(sets[0]->names, sets[i]->names, how, sizeof how);
        if (different)
            return lin_fail(err, LIN_MISMATCH, "%s and %s have different %s%s%s", sets[0]->path, sets[i]->path, different,
                            *how ? ": " : "", how);
        frames += sets[i]->total_frames;
    }
    if (frames == 0)
        return lin_fail(err, LIN_INVALID, "%s: no frames to normalise by", n_sets > 0 ? sets[0]->path : "no data set");
    const size_t D = (size_t)sets[0]->D;
    for (size_t d = 0; d < D; d++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < n_sets; i++) {
            sum += f64_at(sets[i]->sums, d);
            squares += f64_at(sets[i]->sums, D + d);
        }
        norm_of(sum, squares, (double)frames, &mean[d], &istd[d]);
    }
    return LIN_OK;
}
