// stream.c - one stream on the host, frame by frame; see stream.h.

#include "model/stream.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "model/encoder_internal.h"

/* A stream is one flat block: this header, then the network's state, then the waiting frames. Only the keys and values of softmax
 * attention, whose number grows, have a block of their own, in the backend's memory. */
struct lin_stream {
    const lin_encoder *encoder;
    lin_stream_place at;
    float *state, *frames;
    lin_cache cache;
};

enum { FIRST_CACHE_ROWS = 256 };

size_t lin_stream_attention_bytes(const lin_encoder *e)
{
    const lin_config *c = &e->model->config;
    return (size_t)c->layers * (size_t)c->heads * (size_t)(c->head_width + 1) * (size_t)c->head_width * sizeof(float);
}

size_t lin_stream_state_bytes(const lin_encoder *e)
{
    const size_t cache = lin_config_cache_count(&e->model->config) * FIRST_CACHE_ROWS;
    return sizeof(lin_stream) + (lin_stream_floats(e) + cache) * sizeof(float);
}

lin_status lin_stream_check(const lin_encoder *e, lin_error *err)
{
    const lin_config *c = &e->model->config;
    const char *why = lin_config_why_not_stream(c);
    if (why) return lin_fail(err, LIN_UNSUPPORTED, "this model %s", why);
    if (e->model->speaker_norm)
        return lin_fail(err, LIN_UNSUPPORTED,
                        "this model normalises by speaker: it needs all of a speaker's sound first and cannot stream");
    return LIN_OK;
}

// Copies the rows in use between two caches, which may lie in different places: `copy` is the backend's upload, download or copy.
static void copy_rows(const lin_encoder *e, void (*copy)(lin_exec *exec, void *to, const void *from, size_t bytes), float *to,
                      size_t to_rows, const float *from, size_t from_rows, size_t n)
{
    const lin_config *c = &e->model->config;
    const size_t row = lin_config_cache_count(c) / (size_t)c->layers;
    for (size_t l = 0; l < (size_t)c->layers; l++)
        copy(e->exec, to + l * to_rows * row, from + l * from_rows * row, n * row * sizeof *to);
}

// Room for so many rows in the cache of softmax attention: at least doubled, so that growing costs little in the long run.
static lin_status reserve(lin_stream *s, int rows, lin_error *err)
{
    const lin_encoder *e = s->encoder;
    const size_t count = lin_config_cache_count(&e->model->config);
    if (count == 0 || rows <= s->cache.capacity) return LIN_OK;
    const int capacity = rows > 2 * s->cache.capacity ? rows : 2 * s->cache.capacity;
    void *kv;
    lin_status status = e->ops->memory_create(e->exec, count * (size_t)capacity * sizeof(float), &kv, err);
    if (status != LIN_OK) return status;
    copy_rows(e, e->ops->copy, kv, (size_t)capacity, s->cache.kv, (size_t)s->cache.capacity, (size_t)s->cache.n);
    status = e->ops->finish(e->exec, err);
    e->ops->memory_destroy(e->exec, status == LIN_OK ? s->cache.kv : kv);
    if (status != LIN_OK) return status;
    s->cache.kv = kv;
    s->cache.capacity = capacity;
    return LIN_OK;
}

lin_status lin_stream_create(const lin_encoder *e, lin_stream **out, lin_error *err)
{
    *out = NULL;
    lin_status status = lin_stream_check(e, err);
    if (status != LIN_OK) return status;
    const size_t header = (sizeof(lin_stream) + 63) / 64 * 64;
    lin_stream *s = lin_calloc(1, header + lin_stream_floats(e) * sizeof(float));
    if (!s) return lin_no_memory(err, "a stream", header + lin_stream_floats(e) * sizeof(float));
    s->encoder = e;
    s->state = (float *)(void *)((unsigned char *)s + header);
    s->frames = s->state + e->state_count;
    status = reserve(s, FIRST_CACHE_ROWS, err);
    if (status != LIN_OK) {
        lin_stream_destroy(s);
        return status;
    }
    *out = s;
    return LIN_OK;
}

lin_stream_place *lin_stream_inside(lin_stream *s, float **floats)
{
    *floats = s->state;
    return &s->at;
}

void lin_stream_destroy(lin_stream *s)
{
    if (!s) return;
    if (s->cache.kv) s->encoder->ops->memory_destroy(s->encoder->exec, s->cache.kv);
    lin_free(s);
}

void lin_stream_reset(lin_stream *s)
{
    memset(s->state, 0, lin_stream_floats(s->encoder) * sizeof(float));
    s->at = (lin_stream_place){0};
    s->cache.n = 0;
}

long long lin_stream_frames_in(const lin_stream *s) { return s->at.frames_in; }

const float *lin_stream_waiting(const lin_stream *s, int *n)
{
    *n = s->at.waiting;
    return s->frames;
}

int lin_stream_frames_out(const lin_stream *s, int n_frames)
{
    const lin_config *c = &s->encoder->model->config;
    const int usable = s->at.waiting + n_frames - c->ahead;
    return usable > 0 ? usable / c->stack : 0;
}

int lin_stream_frames_left(const lin_stream *s)
{
    return s->at.finished ? 0 : lin_config_frames_out(&s->encoder->model->config, s->at.waiting);
}

// Computes `rows` outputs from a window of frames that begins with the first waiting one. If the worker runs on a device, the
// state is uploaded and downloaded.
static lin_status run_window(lin_stream *s, lin_worker *w, const float *frames, int n_frames, int rows, float *logp,
                             lin_error *err)
{
    const lin_ops *ops = s->encoder->ops;
    const size_t bytes = s->encoder->state_count * sizeof *s->state;
    lin_status status = reserve(s, s->cache.n + rows, err);
    if (status != LIN_OK) return status;
    const lin_cache *caches = s->cache.kv ? &s->cache : NULL;
    if (!ops->on_host) ops->upload(w->exec, w->state, s->state, bytes);
    if (!ops->on_host && caches) {
        ops->upload(w->exec, w->caches, caches, sizeof *caches);
        caches = w->caches;
    }
    status = lin_worker_pass(w, frames, (const int[]){0, n_frames}, (const int[]){0, rows}, 1,
                             ops->on_host ? &s->state : w->states, caches, logp, err);
    if (status == LIN_OK && s->cache.kv) s->cache.n += rows;
    if (status != LIN_OK || ops->on_host) return status;
    ops->download(w->exec, s->state, w->state, bytes);
    return ops->finish(w->exec, err);
}

// The waiting frames and n new ones, in the worker's window.
static void gather(const lin_stream *s, lin_worker *w, const float *fbank, int n)
{
    const size_t D = (size_t)s->encoder->model->config.mel_bins, waiting = (size_t)s->at.waiting * D;
    memcpy(w->window, s->frames, waiting * sizeof(float));
    memcpy(w->window + waiting, fbank, (size_t)n * D * sizeof(float));
}

lin_status lin_stream_feed(lin_stream *s, lin_worker *w, const float *fbank, int n_frames, float *logp, int capacity, int *n_out,
                           lin_error *err)
{
    const lin_config *c = &s->encoder->model->config;
    const size_t D = (size_t)c->mel_bins;
    *n_out = 0;
    if (s->at.finished) return lin_fail(err, LIN_INVALID, "the stream is finished; reset it before feeding it again");
    if (n_frames < 0) return lin_fail(err, LIN_INVALID, "cannot feed %d frames", n_frames);
    const int total = lin_stream_frames_out(s, n_frames);
    if (capacity < total)
        return lin_fail(err, LIN_TOO_SMALL, "%d output frames do not fit; there is room for %d", total, capacity);
    s->at.frames_in += n_frames;

    int done = 0;
    for (;;) {
        // A pass runs on a window: the waiting frames, then enough new frames to complete the last output of the pass.
        int rows = lin_stream_frames_out(s, n_frames);
        if (rows > s->encoder->pass_rows) rows = s->encoder->pass_rows;
        if (rows == 0) break;
        const int window = rows * c->stack + c->ahead, take = window - s->at.waiting;
        gather(s, w, fbank, take);
        lin_status status = run_window(s, w, w->window, window, rows, logp + (size_t)done * (size_t)c->outputs, err);
        if (status != LIN_OK) return status;
        memcpy(s->frames, w->window + (size_t)(rows * c->stack) * D, (size_t)c->ahead * D * sizeof(float));
        s->at.waiting = c->ahead;
        fbank += (size_t)take * D;
        n_frames -= take;
        done += rows;
    }
    if (n_frames > 0) memcpy(s->frames + (size_t)s->at.waiting * D, fbank, (size_t)n_frames * D * sizeof(float));
    s->at.waiting += n_frames;
    *n_out = done;
    return LIN_OK;
}

lin_status lin_stream_finish(lin_stream *s, lin_worker *w, float *logp, int capacity, int *n_out, lin_error *err)
{
    *n_out = 0;
    const int rows = lin_stream_frames_left(s);
    if (capacity < rows) return lin_fail(err, LIN_TOO_SMALL, "%d output frames do not fit; there is room for %d", rows, capacity);
    lin_status status = rows > 0 ? run_window(s, w, s->frames, s->at.waiting, rows, logp, err) : LIN_OK;
    if (status != LIN_OK) return status;
    s->at.waiting = 0;
    s->at.finished = 1;
    *n_out = rows;
    return LIN_OK;
}

lin_status lin_stream_feed_last(lin_stream *s, lin_worker *w, const float *fbank, int n_frames, float *logp, int capacity,
                                int *n_out, lin_error *err)
{
    const lin_config *c = &s->encoder->model->config;
    const size_t V = (size_t)c->outputs;
    const int frames = s->at.waiting + (n_frames > 0 ? n_frames : 0), most = s->encoder->pass_rows;
    const int rows = lin_config_frames_out(c, frames);
    int fed = 0, left = 0;
    *n_out = 0;
    if (!s->at.finished && capacity < rows)
        return lin_fail(err, LIN_TOO_SMALL, "%d output frames do not fit; there is room for %d", rows, capacity);
    if (s->at.finished || n_frames <= 0 || rows > most || frames > most * c->stack + c->ahead) {
        lin_status status = lin_stream_feed(s, w, fbank, n_frames, logp, capacity, &fed, err);
        if (status == LIN_OK) status = lin_stream_finish(s, w, logp + (size_t)fed * V, capacity - fed, &left, err);
        *n_out = fed + left;
        return status;
    }
    gather(s, w, fbank, n_frames);
    s->at.frames_in += n_frames;
    const lin_status status = rows > 0 ? run_window(s, w, w->window, frames, rows, logp, err) : LIN_OK;
    if (status != LIN_OK) return status;
    s->at.waiting = 0;
    s->at.finished = 1;
    *n_out = rows;
    return LIN_OK;
}

/* ---- images ---------------------------------------------------------------------------------------------------------------- */

/* Little-endian, like all machines that this program runs on. */
typedef struct image_header {
    char magic[8];
    uint64_t model;    // fingerprint of its weights and configuration
    uint64_t n_floats; // the number of floats after this header
    int64_t frames_in;
    int32_t waiting, finished;
    uint64_t checksum; // of all fields above and of the floats
} image_header;

static const char image_magic[8] = {'L', 'I', 'N', 'S', 'T', 'R', 'M', '1'};

static uint64_t checksum(const image_header *header, const void *floats)
{
    uint64_t sum = lin_mix64(header->model + header->n_floats);
    sum = lin_mix64(sum + (uint64_t)header->frames_in);
    sum = lin_mix64(sum + ((uint64_t)(uint32_t)header->waiting << 32) + (uint32_t)header->finished);
    for (size_t i = 0; i < header->n_floats; i++) {
        uint32_t bits;
        memcpy(&bits, (const unsigned char *)floats + i * sizeof bits, sizeof bits);
        sum = lin_mix64(sum + bits);
    }
    return sum;
}

// With the n rows of a cache behind the floats, layer by layer.
static size_t image_bytes(const lin_encoder *e, size_t n)
{
    return sizeof(image_header) + (lin_stream_floats(e) + n * lin_config_cache_count(&e->model->config)) * sizeof(float);
}

static void seal(const lin_encoder *e, const lin_stream_place *at, size_t bytes, void *image)
{
    unsigned char *floats = (unsigned char *)image + sizeof(image_header);
    image_header header = {.model = e->model->fingerprint,
                           .n_floats = (bytes - sizeof header) / sizeof(float),
                           .frames_in = at->frames_in,
                           .waiting = at->waiting,
                           .finished = at->finished};
    memcpy(header.magic, image_magic, sizeof header.magic);
    header.checksum = checksum(&header, floats);
    memcpy(image, &header, sizeof header);
}

// Checks an image, and finds how many rows of a cache it has.
static lin_status check_image(const lin_encoder *e, const void *image, size_t size, image_header *header, size_t *rows,
                              lin_error *err)
{
    const size_t each = lin_config_cache_count(&e->model->config) * sizeof(float), plain = image_bytes(e, 0);
    if (size < sizeof *header) return lin_fail(err, LIN_FORMAT, "a stream's image of %zu bytes is truncated", size);
    memcpy(header, image, sizeof *header);
    if (memcmp(header->magic, image_magic, sizeof header->magic) != 0)
        return lin_fail(err, LIN_FORMAT, "this is not an image of a stream");
    if (header->model != e->model->fingerprint)
        return lin_fail(err, LIN_MISMATCH, "this image is of another model; load it with the model that made it");
    *rows = each && size > plain ? (size - plain) / each : 0;
    if (size != image_bytes(e, *rows) || header->n_floats != (size - sizeof *header) / sizeof(float) || *rows > INT32_MAX)
        return lin_fail(err, LIN_FORMAT, "this image has %zu bytes; an image of this model's streams has %zu%s", size, plain,
                        each ? " and those of its keys and values" : "");
    if (checksum(header, (const unsigned char *)image + sizeof *header) != header->checksum || header->frames_in < 0 ||
        header->waiting < 0 || header->waiting > lin_stream_most_waiting(&e->model->config))
        return lin_fail(err, LIN_FORMAT, "this image of a stream is damaged: its checksum is wrong");
    return LIN_OK;
}

size_t lin_stream_image_bytes(const lin_stream *s) { return image_bytes(s->encoder, (size_t)s->cache.n); }

lin_status lin_stream_save(const lin_stream *s, void *image, size_t capacity, lin_error *err)
{
    const lin_encoder *e = s->encoder;
    const size_t bytes = lin_stream_image_bytes(s), n = (size_t)s->cache.n;
    if (capacity < bytes)
        return lin_fail(err, LIN_TOO_SMALL, "a stream's image takes %zu bytes; there is room for %zu", bytes, capacity);
    float *floats = (float *)(void *)((unsigned char *)image + sizeof(image_header));
    memcpy(floats, s->state, lin_stream_floats(e) * sizeof *floats);
    if (n) copy_rows(e, e->ops->download, floats + lin_stream_floats(e), n, s->cache.kv, (size_t)s->cache.capacity, n);
    lin_status status = e->ops->finish(e->exec, err);
    if (status == LIN_OK) seal(e, &s->at, bytes, image);
    return status;
}

lin_status lin_stream_load(lin_stream *s, const void *image, size_t size, lin_error *err)
{
    const lin_encoder *e = s->encoder;
    image_header header;
    size_t rows = 0;
    lin_status status = check_image(e, image, size, &header, &rows, err);
    if (status == LIN_OK) status = reserve(s, (int)rows, err);
    if (status != LIN_OK) return status;
    const float *floats = (const float *)(const void *)((const unsigned char *)image + sizeof header);
    memcpy(s->state, floats, lin_stream_floats(e) * sizeof *floats);
    if (rows) copy_rows(e, e->ops->upload, s->cache.kv, (size_t)s->cache.capacity, floats + lin_stream_floats(e), rows, rows);
    s->cache.n = (int)rows;
    s->at = (lin_stream_place){.frames_in = header.frames_in, .waiting = header.waiting, .finished = header.finished != 0};
    return e->ops->finish(e->exec, err);
}
