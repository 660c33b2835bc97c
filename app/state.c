// state.c - a stream put away; see state.h.

#include "app/state.h"

#include <math.h>
#include <string.h>

#include "frontend/source.h"
#include "kernels/memory.h"
#include "model/file.h"
#include "model/hash.h"

typedef struct state_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t total_bytes, model;
    int32_t rate_hz, channels, channel, lanes;
    int64_t samples, frames, rows;
    double row_seconds;
    int32_t past, n_last;
    uint64_t last, front_bytes, image_bytes;
    uint64_t checksum; // of all bytes, this one being 0
} state_header;

static const char magic[8] = {'L', 'I', 'N', 'S', 'T', 'A', 'T', 'E'};

_Static_assert(sizeof(state_header) == 120, "the header has no gaps");
_Static_assert(sizeof(lin_greedy) == 40, "the decoder's state has no gaps");

static size_t padded(size_t n) { return (n + 7) / 8 * 8; }

static size_t lane_bytes(const lin_state *s) { return sizeof(lin_greedy) + padded(s->image_bytes); }

static unsigned char *lane_at(const lin_state *s, int lane)
{
    return s->bytes + sizeof(state_header) + padded(s->front_bytes) + (size_t)lane * lane_bytes(s);
}

static lin_status reserve(lin_state *s, size_t n, lin_error *err)
{
    if (n > s->capacity) {
        lin_free(s->bytes);
        s->capacity = s->n = 0;
        s->bytes = lin_alloc(n, 1);
        if (!s->bytes) return lin_no_memory(err, "the state of a stream", n);
        s->capacity = n;
    }
    s->n = n;
    return LIN_OK;
}

lin_status lin_state_begin(lin_state *s, const lin_state_about *about, size_t front_bytes, size_t image_bytes, lin_error *err)
{
    s->about = *about;
    s->front_bytes = front_bytes;
    s->image_bytes = image_bytes;
    lin_status status = reserve(s, sizeof(state_header) + padded(front_bytes) + (size_t)about->lanes * lane_bytes(s), err);
    if (status == LIN_OK) memset(s->bytes, 0, s->n);
    return status;
}

void *lin_state_front(const lin_state *s) { return s->bytes + sizeof(state_header); }

void *lin_state_image(const lin_state *s, int lane) { return lane_at(s, lane) + sizeof(lin_greedy); }

void lin_state_set_decoder(lin_state *s, int lane, const lin_greedy *greedy) { memcpy(lane_at(s, lane), greedy, sizeof *greedy); }

lin_status lin_state_get_decoder(const lin_state *s, int lane, int V, lin_greedy *greedy, lin_error *err)
{
    lin_greedy g;
    memcpy(&g, lane_at(s, lane), sizeof g);
    if (g.n_outputs != V || g.label < -1 || g.label >= V || g.emitted < 0 || g.emitted > 1 || g.start < 0 || g.frame < g.start ||
        g.frame != s->about.rows || !isfinite(g.sum_logp))
        return lin_fail(err, LIN_FORMAT, "the state of a decoder contradicts itself");
    *greedy = g;
    return LIN_OK;
}

void lin_state_seal(lin_state *s)
{
    const lin_state_about *a = &s->about;
    state_header h = {.version = LIN_STATE_VERSION,
                      .header_bytes = sizeof h,
                      .total_bytes = s->n,
                      .model = a->model,
                      .rate_hz = a->rate_hz,
                      .channels = a->channels,
                      .channel = a->channel,
                      .lanes = a->lanes,
                      .samples = a->samples,
                      .frames = a->frames,
                      .rows = a->rows,
                      .row_seconds = a->row_seconds,
                      .past = a->past,
                      .n_last = a->n_last,
                      .last = a->last,
                      .front_bytes = s->front_bytes,
                      .image_bytes = s->image_bytes};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(s->bytes, &h, sizeof h);
    h.checksum = lin_hash(s->bytes, s->n, 0);
    memcpy(s->bytes, &h, sizeof h);
}

int lin_state_is(const void *bytes, size_t n) { return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0; }

lin_status lin_state_parse(const void *bytes, size_t n, const char *name, lin_state *s, lin_error *err)
{
    state_header h;
    if (!lin_state_is(bytes, n)) return lin_fail(err, LIN_FORMAT, "%s is not the state of a stream", name);
    if (n < sizeof h) return lin_fail(err, LIN_FORMAT, "%s is damaged: it is cut short", name);
    memcpy(&h, bytes, sizeof h);
    if (h.version != LIN_STATE_VERSION)
        return lin_fail(err, LIN_FORMAT, "%s is a state of version %u, this program reads version %d", name, h.version,
                        (int)LIN_STATE_VERSION);
    if (h.header_bytes != sizeof h || h.total_bytes != n)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: it has %zu bytes, %llu were written", name, n,
                        (unsigned long long)h.total_bytes);
    lin_status status = reserve(s, n, err);
    if (status != LIN_OK) return status;
    const int64_t longest = INT64_C(1) << 53; // whole numbers that a double holds
    const uint64_t checksum = h.checksum;
    h.checksum = 0;
    memcpy(s->bytes, bytes, n);
    memcpy(s->bytes, &h, sizeof h);
    if (lin_hash(s->bytes, n, 0) != checksum) return lin_fail(err, LIN_FORMAT, "%s is damaged: its checksum does not fit", name);
    s->about = (lin_state_about){.model = h.model,
                                 .rate_hz = h.rate_hz,
                                 .channels = h.channels,
                                 .channel = h.channel,
                                 .lanes = h.lanes,
                                 .samples = h.samples,
                                 .frames = h.frames,
                                 .rows = h.rows,
                                 .row_seconds = h.row_seconds,
                                 .past = h.past,
                                 .n_last = h.n_last,
                                 .last = h.last};
    s->front_bytes = (size_t)h.front_bytes;
    s->image_bytes = (size_t)h.image_bytes;
    if (h.lanes < 1 || h.lanes > LIN_AUDIO_MAX_CHANNELS || h.front_bytes > n || h.image_bytes > n ||
        sizeof h + padded(s->front_bytes) + (size_t)h.lanes * lane_bytes(s) != n ||
        lin_audio_check_format(name, h.rate_hz, h.channels, NULL) != LIN_OK || h.channel < LIN_CHANNEL_EACH ||
        h.channel >= h.channels || h.lanes != (h.channel == LIN_CHANNEL_EACH ? h.channels : 1) || h.samples < 0 ||
        h.samples > longest || h.frames < 0 || h.frames > longest || h.rows < 0 || h.rows > longest || !(h.row_seconds > 0) ||
        h.n_last < 0 || h.n_last > LIN_SOURCE_BLOCK)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: its parts contradict each other", name);
    return LIN_OK;
}

lin_status lin_state_write(lin_state *s, const char *path, lin_error *err)
{
    lin_state_seal(s);
    return lin_file_write_all(path, s->bytes, s->n, err);
}

lin_status lin_state_read(const char *path, lin_state *s, lin_error *err)
{
    lin_file_map map;
    lin_status status = lin_file_map_open(path, &map, err);
    if (status != LIN_OK) return status;
    status = lin_state_parse(map.bytes, map.size, path, s, err);
    lin_file_map_close(&map);
    return status;
}

void lin_state_free(lin_state *s)
{
    lin_free(s->bytes);
    *s = (lin_state){0};
}

uint64_t lin_state_sound(const float *samples, size_t n) { return lin_hash(samples, n * sizeof *samples, 0); }
