// state.c - a saved stream; see state.h.

#include "linnet/state.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "decoder/greedy.h"
#include "frontend/source.h"

typedef struct state_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t total_bytes, model;
    int32_t rate_hz, channels, channel, lanes;
    int64_t samples, frames, rows;
    double row_seconds;
    int32_t complete, unused_count; // complete: 1
    uint64_t unused, front_bytes, image_bytes;
    uint64_t checksum; // of all bytes, this one being 0
    // since version 2
    uint32_t kind, early; // early: 0 in files of earlier programs
    uint64_t search, decoder_bytes;
    // since version 3
    uint64_t endpoint_bytes; // 0: without resets
    double resets_from_s;
    // since version 4
    uint64_t frames_bytes; // 0: without, written as version 3
} state_header;

enum { HEADER_1 = 120, HEADER_2 = 144, HEADER_3 = 160 }; // bytes of earlier versions

static const char magic[8] = {'L', 'I', 'N', 'S', 'T', 'A', 'T', 'E'};

_Static_assert(sizeof(state_header) == 168 && offsetof(state_header, kind) == HEADER_1 &&
                   offsetof(state_header, endpoint_bytes) == HEADER_2 && offsetof(state_header, frames_bytes) == HEADER_3,
               "the header has no gaps");
_Static_assert(sizeof(lin_greedy) == 40, "the decoder's state has no gaps");

// Of a lane: its rules, to identify them, and its position.
typedef struct state_endpoint {
    double before_s, after_s, longest_s, blank, loud_db;
    double silent_s, spoken_s, length_s, quietest_db, heard;
} state_endpoint;

static const char remedy[] = "use an older state, or start from the beginning of the sound";

static size_t padded(size_t n) { return (n + 7) / 8 * 8; }

static size_t endpoint_bytes(const lin_state *s) { return s->about.resets ? sizeof(state_endpoint) : 0; }

static size_t lane_bytes(const lin_state *s)
{
    return padded(s->sizes.decoder) + padded(s->sizes.image) + padded(s->sizes.frames) + endpoint_bytes(s);
}

static unsigned char *lane_at(const lin_state *s, int lane)
{
    return s->bytes + s->header_bytes + padded(s->sizes.front) + (size_t)lane * lane_bytes(s);
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

lin_status lin_state_begin(lin_state *s, const lin_state_about *about, const lin_state_sizes *sizes, lin_error *err)
{
    s->about = *about;
    s->sizes = *sizes;
    s->header_bytes = sizes->frames ? sizeof(state_header) : HEADER_3;
    lin_status status = reserve(s, s->header_bytes + padded(sizes->front) + (size_t)about->lanes * lane_bytes(s), err);
    if (status == LIN_OK) memset(s->bytes, 0, s->n);
    return status;
}

void *lin_state_front(const lin_state *s) { return s->bytes + s->header_bytes; }

void *lin_state_decoder(const lin_state *s, int lane) { return lane_at(s, lane); }

void *lin_state_image(const lin_state *s, int lane) { return lane_at(s, lane) + padded(s->sizes.decoder); }

void *lin_state_frames(const lin_state *s, int lane)
{
    return lane_at(s, lane) + padded(s->sizes.decoder) + padded(s->sizes.image);
}

void lin_state_put_endpoint(lin_state *s, int lane, const lin_endpoint *e)
{
    const lin_endpoint_options *o = &e->options;
    const state_endpoint put = {.before_s = o->before_s,
                                .after_s = o->after_s,
                                .longest_s = o->longest_s,
                                .blank = o->blank,
                                .loud_db = o->loud_db,
                                .silent_s = e->silent_s,
                                .spoken_s = e->spoken_s,
                                .length_s = e->length_s,
                                .quietest_db = e->quietest_db,
                                .heard = e->heard};
    if (s->about.resets) memcpy(lane_at(s, lane) + lane_bytes(s) - sizeof put, &put, sizeof put);
}

lin_status lin_state_get_endpoint(const lin_state *s, int lane, const lin_reset_options *options, lin_endpoint *e, lin_error *err)
{
    const lin_endpoint_options *o = &options->rules;
    state_endpoint got;
    if (s->about.resets != options->endpoints || (s->about.resets && s->about.resets_from_s != options->from_s)) {
        const char *how = !s->about.resets ? "never" : s->about.resets_from_s > 0 ? "auto" : "endpoint";
        return lin_fail(err, LIN_MISMATCH, "it was saved with --reset %s; use the same options", how);
    }
    if (!s->about.resets) return LIN_OK;
    memcpy(&got, lane_at(s, lane) + lane_bytes(s) - sizeof got, sizeof got);
    if (got.before_s != o->before_s || got.after_s != o->after_s || got.longest_s != o->longest_s || got.blank != o->blank ||
        got.loud_db != o->loud_db)
        return lin_fail(err, LIN_MISMATCH, "it was saved with other endpoint rules; use the same options");
    if (!(got.silent_s >= 0 && got.spoken_s >= 0 && got.length_s >= 0) || !isfinite(got.quietest_db))
        return lin_fail(err, LIN_FORMAT, "the state of an endpoint contradicts itself");
    e->silent_s = got.silent_s;
    e->spoken_s = got.spoken_s;
    e->length_s = got.length_s;
    e->quietest_db = got.quietest_db;
    e->heard = got.heard != 0;
    return LIN_OK;
}

lin_status lin_state_get_decoder(const lin_state *s, int lane, const lin_search *search, void *decoder, lin_error *err)
{
    if (s->about.kind != search->kind) {
        return lin_fail(err, LIN_MISMATCH, "it was saved by %s search, this is %s search; use the same options",
                        lin_search_name(s->about.kind), lin_search_name(search->kind));
    }
    if (s->about.search != search->id || s->sizes.decoder != lin_search_bytes(search)) {
        return lin_fail(err, LIN_MISMATCH, "it was saved by another %s search; use the same options, lexicon and language "
                                           "model", lin_search_name(search->kind));
    }
    lin_status status = lin_search_check(search, lane_at(s, lane), s->sizes.decoder, err);
    if (status != LIN_OK) return status;
    memcpy(decoder, lane_at(s, lane), s->sizes.decoder);
    const lin_greedy *greedy = decoder;
    if (search->kind == LIN_SEARCH_GREEDY && greedy->frame != s->about.rows)
        return lin_fail(err, LIN_FORMAT, "the state of a decoder contradicts itself");
    return LIN_OK;
}

void lin_state_seal(lin_state *s)
{
    const lin_state_about *a = &s->about;
    state_header h = {.version = s->sizes.frames ? LIN_STATE_VERSION : 3,
                      .header_bytes = (uint32_t)s->header_bytes,
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
                      .complete = 1,
                      .front_bytes = s->sizes.front,
                      .image_bytes = s->sizes.image,
                      .kind = (uint32_t)a->kind,
                      .early = a->early,
                      .search = a->search,
                      .decoder_bytes = s->sizes.decoder,
                      .endpoint_bytes = endpoint_bytes(s),
                      .resets_from_s = a->resets_from_s,
                      .frames_bytes = s->sizes.frames};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(s->bytes, &h, s->header_bytes);
    h.checksum = lin_hash(s->bytes, s->n, 0);
    memcpy(s->bytes, &h, s->header_bytes);
}

int lin_state_is(const void *bytes, size_t n) { return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0; }

// The header of any version; fields that earlier ones lack are filled in.
static lin_status read_header(const void *bytes, size_t n, const char *name, state_header *h, lin_error *err)
{
    *h = (state_header){.kind = LIN_SEARCH_GREEDY, .decoder_bytes = sizeof(lin_greedy)};
    if (!lin_state_is(bytes, n)) return lin_fail(err, LIN_FORMAT, "%s is not the state of a stream", name);
    if (n < HEADER_1) return lin_fail(err, LIN_FORMAT, "%s is damaged: it is truncated; %s", name, remedy);
    memcpy(h, bytes, HEADER_1);
    if (h->version < 1 || h->version > LIN_STATE_VERSION)
        return lin_fail(err, LIN_FORMAT, "%s is a state of version %u, this program reads versions 1 to %d", name, h->version,
                        (int)LIN_STATE_VERSION);
    static const size_t header[] = {0, HEADER_1, HEADER_2, HEADER_3, sizeof *h}; // by version
    const size_t n_header = header[h->version];
    if (h->header_bytes != n_header || h->total_bytes != n)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: it has %zu bytes, %llu were written; %s", name, n,
                        (unsigned long long)h->total_bytes, remedy);
    if (n < n_header) return lin_fail(err, LIN_FORMAT, "%s is damaged: it is truncated; %s", name, remedy);
    memcpy(h, bytes, n_header);
    return LIN_OK;
}

static int contradicts(const lin_state *s, const state_header *h, const char *name)
{
    const int64_t longest = INT64_C(1) << 53; // a double represents all integers up to here
    const size_t n = s->n;
    return h->lanes < 1 || h->lanes > LIN_AUDIO_MAX_CHANNELS || h->front_bytes > n || h->image_bytes > n ||
           h->decoder_bytes > n || h->frames_bytes > n || (h->frames_bytes && h->frames_bytes < sizeof(int64_t)) ||
           h->kind >= LIN_SEARCH_KINDS ||
           (h->kind == LIN_SEARCH_GREEDY && h->decoder_bytes != sizeof(lin_greedy)) ||
           s->header_bytes + padded(s->sizes.front) + (size_t)h->lanes * lane_bytes(s) != n ||
           lin_audio_check_format(name, h->rate_hz, h->channels, NULL) != LIN_OK || h->channel < LIN_CHANNEL_EACH ||
           h->channel >= h->channels || h->lanes != (h->channel == LIN_CHANNEL_EACH ? h->channels : 1) || h->samples < 0 ||
           h->samples > longest || h->frames < 0 || h->frames > longest || h->rows < 0 || h->rows > longest ||
           !(h->row_seconds > 0) || !(h->resets_from_s >= 0) ||
           (h->endpoint_bytes && h->endpoint_bytes != sizeof(state_endpoint)) || h->complete != 1;
}

lin_status lin_state_parse(const void *bytes, size_t n, const char *name, lin_state *s, lin_error *err)
{
    state_header h;
    lin_status status = read_header(bytes, n, name, &h, err);
    if (status == LIN_OK) status = reserve(s, n, err);
    if (status != LIN_OK) return status;
    const uint64_t checksum = h.checksum;
    h.checksum = 0;
    memcpy(s->bytes, bytes, n);
    memcpy(s->bytes, &h, h.header_bytes);
    if (lin_hash(s->bytes, n, 0) != checksum)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: its checksum is wrong; %s", name, remedy);
    s->about = (lin_state_about){.model = h.model,
                                 .rate_hz = h.rate_hz,
                                 .channels = h.channels,
                                 .channel = h.channel,
                                 .lanes = h.lanes,
                                 .samples = h.samples,
                                 .frames = h.frames,
                                 .rows = h.rows,
                                 .row_seconds = h.row_seconds,
                                 .kind = (lin_search_kind)h.kind,
                                 .search = h.search,
                                 .early = h.early,
                                 .resets = h.endpoint_bytes != 0,
                                 .resets_from_s = h.resets_from_s};
    s->sizes = (lin_state_sizes){.front = (size_t)h.front_bytes,
                                 .decoder = (size_t)h.decoder_bytes,
                                 .image = (size_t)h.image_bytes,
                                 .frames = (size_t)h.frames_bytes};
    s->header_bytes = h.header_bytes;
    if (contradicts(s, &h, name))
        return lin_fail(err, LIN_FORMAT, "%s is damaged: its parts contradict each other; %s", name, remedy);
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
