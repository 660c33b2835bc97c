// state.c - a saved stream; see state.h.

#include "linnet/state.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "decoder/greedy.h"
#include "frontend/source.h"

typedef struct state_header {
    char magic[8];
    uint64_t version, total_bytes;
    uint64_t checksum; // of all bytes, this one being 0
    lin_state_about about;
    lin_state_sizes sizes;
} state_header;

static const char magic[8] = {'L', 'I', 'N', 'S', 'T', 'A', 'T', 'E'};

_Static_assert(sizeof(state_header) == 32 + 120 + 32 && sizeof(lin_state_lane) == 48, "what is written has no gaps");
_Static_assert(sizeof(lin_greedy) == 40, "the decoder's state has no gaps");

static const char remedy[] = "use an older state, or start from the beginning of the sound";

static size_t padded(uint64_t n) { return (size_t)((n + 7) / 8 * 8); }

static size_t lane_bytes(const lin_state *s)
{
    return sizeof(lin_state_lane) + padded(s->sizes.decoder) + padded(s->sizes.image) + padded(s->sizes.frames);
}

static size_t total_bytes(const lin_state *s)
{
    return sizeof(state_header) + padded(s->sizes.front) + (size_t)s->about.lanes * lane_bytes(s);
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
    LIN_TRY(reserve(s, total_bytes(s), err));
    memset(s->bytes, 0, s->n);
    return LIN_OK;
}

/* ---- parts ----------------------------------------------------------------------------------------------------------------- */

void *lin_state_front(const lin_state *s) { return s->bytes + sizeof(state_header); }

lin_state_lane *lin_state_lane_of(const lin_state *s, int lane)
{
    return (void *)(s->bytes + sizeof(state_header) + padded(s->sizes.front) + (size_t)lane * lane_bytes(s));
}

void *lin_state_decoder(const lin_state *s, int lane) { return lin_state_lane_of(s, lane) + 1; }

void *lin_state_image(const lin_state *s, int lane)
{
    return (unsigned char *)lin_state_decoder(s, lane) + padded(s->sizes.decoder);
}

float *lin_state_frames(const lin_state *s, int lane)
{
    return (void *)((unsigned char *)lin_state_image(s, lane) + padded(s->sizes.image));
}

void lin_state_put_endpoint(lin_state *s, int lane, const lin_endpoint *e)
{
    lin_state_lane *put = lin_state_lane_of(s, lane);
    put->silent_s = e->silent_s;
    put->spoken_s = e->spoken_s;
    put->length_s = e->length_s;
    put->quietest_db = e->quietest_db;
    put->heard = e->heard;
}

lin_status lin_state_get_endpoint(const lin_state *s, int lane, const lin_reset_options *options, lin_endpoint *e, lin_error *err)
{
    const lin_endpoint_options *saved = &s->about.rules, *now = &options->rules;
    const lin_state_lane *got = lin_state_lane_of(s, lane);
    if (s->about.resets != options->endpoints || (s->about.resets && s->about.resets_from_s != options->from_s)) {
        const char *how = !s->about.resets ? "never" : s->about.resets_from_s > 0 ? "auto" : "endpoint";
        return lin_fail(err, LIN_MISMATCH, "it was saved with --reset %s; use the same options", how);
    }
    if (!s->about.resets) return LIN_OK;
    if (saved->before_s != now->before_s || saved->after_s != now->after_s || saved->longest_s != now->longest_s ||
        saved->blank != now->blank || saved->loud_db != now->loud_db)
        return lin_fail(err, LIN_MISMATCH, "it was saved with other endpoint rules; use the same options");
    if (!(got->silent_s >= 0 && got->spoken_s >= 0 && got->length_s >= 0) || !isfinite(got->quietest_db))
        return lin_fail(err, LIN_FORMAT, "the state of an endpoint contradicts itself");
    e->silent_s = got->silent_s;
    e->spoken_s = got->spoken_s;
    e->length_s = got->length_s;
    e->quietest_db = got->quietest_db;
    e->heard = got->heard != 0;
    return LIN_OK;
}

lin_status lin_state_check_model(const lin_state_about *about, const lin_recognizer *r, const char *name, lin_error *err)
{
    if (about->model == r->model->fingerprint) return LIN_OK;
    return lin_fail(err, LIN_MISMATCH, "%s belongs to another model (%016llx); this one is %016llx", name,
                    (unsigned long long)about->model, (unsigned long long)r->model->fingerprint);
}

lin_status lin_state_get_decoder(const lin_state *s, int lane, const lin_search *search, void *decoder, lin_error *err)
{
    const void *from = lin_state_decoder(s, lane);
    const lin_greedy *greedy = decoder;
    if (s->about.kind != (int)search->kind) {
        return lin_fail(err, LIN_MISMATCH, "it was saved by %s search, this is %s search; use the same options",
                        lin_search_name((lin_search_kind)s->about.kind), lin_search_name(search->kind));
    }
    if (s->about.search != search->id || s->sizes.decoder != lin_search_bytes(search)) {
        return lin_fail(err, LIN_MISMATCH, "it was saved by another %s search; use the same options, lexicon and language "
                                           "model", lin_search_name(search->kind));
    }
    LIN_TRY(lin_search_check(search, from, (size_t)s->sizes.decoder, err));
    memcpy(decoder, from, (size_t)s->sizes.decoder);
    if (search->kind == LIN_SEARCH_GREEDY && greedy->frame != s->about.rows)
        return lin_fail(err, LIN_FORMAT, "the state of a decoder contradicts itself");
    return LIN_OK;
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static uint64_t checksum(const lin_state *s, state_header *h)
{
    h->checksum = 0;
    memcpy(s->bytes, h, sizeof *h);
    return lin_hash(s->bytes, s->n, 0);
}

void lin_state_seal(lin_state *s)
{
    state_header h = {.version = LIN_STATE_VERSION, .total_bytes = s->n, .about = s->about, .sizes = s->sizes};
    memcpy(h.magic, magic, sizeof magic);
    h.checksum = checksum(s, &h);
    memcpy(s->bytes, &h, sizeof h);
}

int lin_state_is(const void *bytes, size_t n) { return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0; }

static int contradicts(const lin_state *s, const char *name)
{
    const lin_state_about *a = &s->about;
    const lin_state_sizes *sizes = &s->sizes;
    const int64_t longest = INT64_C(1) << 53; // a double represents all integers up to here
    const uint64_t n = s->n;
    return a->lanes < 1 || a->lanes > LIN_AUDIO_MAX_CHANNELS || sizes->front > n || sizes->image > n || sizes->decoder > n ||
           sizes->frames > n || total_bytes(s) != s->n || a->kind < 0 || a->kind >= LIN_SEARCH_KINDS ||
           (a->kind == LIN_SEARCH_GREEDY && sizes->decoder != sizeof(lin_greedy)) ||
           lin_audio_check_format(name, a->rate_hz, a->channels, NULL) != LIN_OK || a->channel < LIN_CHANNEL_EACH ||
           a->channel >= a->channels || a->lanes != (a->channel == LIN_CHANNEL_EACH ? a->channels : 1) || a->samples < 0 ||
           a->samples > longest || a->frames < 0 || a->frames > longest || a->rows < 0 || a->rows > longest ||
           !(a->row_seconds > 0) || !(a->resets_from_s >= 0);
}

lin_status lin_state_parse(const void *bytes, size_t n, const char *name, lin_state *s, lin_error *err)
{
    state_header h;
    if (!lin_state_is(bytes, n)) return lin_fail(err, LIN_FORMAT, "%s is not the state of a stream", name);
    if (n < sizeof h) return lin_fail(err, LIN_FORMAT, "%s is damaged: it is truncated; %s", name, remedy);
    memcpy(&h, bytes, sizeof h);
    if (h.version != LIN_STATE_VERSION)
        return lin_fail(err, LIN_FORMAT, "%s is a state of version %u, this program reads version %d", name, (unsigned)h.version,
                        (int)LIN_STATE_VERSION);
    if (h.total_bytes != n)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: it has %zu bytes, %llu were written; %s", name, n,
                        (unsigned long long)h.total_bytes, remedy);
    LIN_TRY(reserve(s, n, err));
    memcpy(s->bytes, bytes, n);
    const uint64_t written = h.checksum;
    if (checksum(s, &h) != written)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: its checksum is wrong; %s", name, remedy);
    s->about = h.about;
    s->sizes = h.sizes;
    if (contradicts(s, name))
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
    LIN_TRY(lin_file_map_open(path, &map, err));
    const lin_status status = lin_state_parse(map.bytes, map.size, path, s, err);
    lin_file_map_close(&map);
    return status;
}

void lin_state_free(lin_state *s)
{
    lin_free(s->bytes);
    *s = (lin_state){0};
}
