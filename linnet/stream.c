// stream.c - one stream: sound in, results out; see stream.h.

#include "linnet/stream.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "decoder/search.h"

// Rows where the network may have to begin anew: those behind an endpoint are computed in vain. Several threads share them in
// chunks, two each.
enum { RESET_ROWS = 64, RESET_ROWS_EACH = 48 };

lin_session_options lin_session_options_default(void)
{
    return (lin_session_options){.channel = LIN_CHANNEL_MIX,
                                 .ends = {.endpoints = 1, .resets = 1, .rules = lin_endpoint_default()},
                                 .threads = 1};
}

lin_session_delay lin_session_construction(const lin_recognizer *r)
{
    const double hop_s = r->model->features.hop_ms * 1e-3, window_s = r->model->features.window_ms * 1e-3;
    lin_session_delay d = {.step_s = r->model->config.stack * hop_s,
                           .ahead_s = r->model->config.ahead * hop_s,
                           .window_s = window_s > hop_s ? window_s - hop_s : 0};
    d.total_s = d.step_s + d.ahead_s + d.window_s;
    return d;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

// Bytes of so many units; of these and of the loudness of their rows, which lies behind them.
static size_t units_bytes(const lin_session *s, int units)
{
    return ((size_t)units * (size_t)s->width * sizeof *s->units + 7) / 8 * 8;
}

static size_t block_bytes(const lin_session *s, int units)
{
    return units_bytes(s, units) + (size_t)(units / s->per_row + 1) * sizeof *s->db;
}

static lin_status reserve(lin_session *s, int units, lin_error *err)
{
    if (units <= s->capacity) return LIN_OK;
    unsigned char *block = lin_resize(s->units, block_bytes(s, units), 1);
    if (!block) return lin_no_memory(err, "a stream", block_bytes(s, units));
    s->units = (float *)(void *)block;
    s->db = (double *)(void *)(block + units_bytes(s, units));
    s->capacity = units;
    return LIN_OK;
}

// Units to reserve: those of rows that wait for look-ahead, and of two ticks.
static int usual_units(const lin_session *s)
{
    const lin_config *c = &s->r->model->config;
    return (c->stack + c->ahead + 2) * (s->hop ? s->hop : 1) + 2 * s->most;
}

lin_status lin_session_tune(lin_session *s, int rate_hz, int saves, lin_error *err)
{
    lin_feature_options o = lin_feature_options_default();
    o.fbank = s->r->fbank;
    o.channel = s->options.channel;
    o.sound = s->hop > 0;
    o.beside = s->options.beside;
    lin_extractor_destroy(s->features);
    s->features = NULL;
    s->options.rate_hz = rate_hz;
    s->options.saves = saves;
    if (o.channel == LIN_CHANNEL_EACH) return lin_fail(err, LIN_INVALID, "a session has one channel: a mix or one of them");
    LIN_TRY(lin_extractor_create(rate_hz, s->options.channels, &o, &s->features, err));
    if (saves) LIN_TRY(lin_extractor_keep_past(s->features, err));
    s->piece = (int)ceil(lin_streams_longest(s->network) * o.fbank.hop_ms * 1e-3 * rate_hz);
    // What one push can give at once: a resampler may release up to a second.
    const int burst = lin_extractor_most_out(s->features, s->piece + (rate_hz == o.fbank.sample_hz ? 0 : rate_hz));
    const int window = s->hop ? lin_mel_samples(&o.fbank, o.fbank.window_ms) : 0;
    return reserve(s, usual_units(s) + window + burst, err);
}

static lin_status open_parts(lin_session *s, const lin_utterances_sink *sink, lin_error *err)
{
    const lin_session_options *o = &s->options;
    const lin_recognizer *r = s->r;
    if (o->second && !o->pass) LIN_TRY(lin_second_pass_create(r, o->second, o->decoding, o->threads, &s->pass, err));
    else s->pass = o->pass;
    const lin_utterances_options how = {.decoding = o->decoding, .ends = o->ends, .second = s->pass};
    LIN_TRY(lin_utterances_open(&s->utterances, r, &how, sink, err));
    if (!o->rate_hz && !r->streams) return LIN_OK;
    const lin_streams_options one = {
        .capacity = 1, .search = o->decoding && o->decoding->language, .exact = 1, .threads = o->threads};
    if (o->network) s->network = o->network;
    else LIN_TRY(lin_streams_create(r->encoder, &one, &s->network, err));
    s->hop = lin_streams_hop(s->network);
    s->width = s->hop ? 1 : r->fbank.mel_bins;
    s->per_row = r->model->config.stack * (s->hop ? s->hop : 1);
    s->most = lin_streams_longest(s->network) * (s->hop ? s->hop : 1);
    LIN_TRY(o->rate_hz ? lin_session_tune(s, o->rate_hz, o->saves, err) : reserve(s, usual_units(s), err));
    lin_session_begin(s, NULL);
    return LIN_OK;
}

lin_status lin_session_open(lin_session *s, const lin_recognizer *recognizer, const lin_session_options *options,
                            const lin_utterances_sink *sink, lin_error *err)
{
    *s = (lin_session){.r = recognizer, .options = *options};
    const lin_status status = open_parts(s, sink, err);
    if (status != LIN_OK) lin_session_close(s);
    return status;
}

void lin_session_close(lin_session *s)
{
    lin_utterances_close(&s->utterances);
    if (!s->options.network) lin_streams_destroy(s->network);
    if (!s->options.pass) lin_second_pass_destroy(s->pass);
    lin_extractor_destroy(s->features);
    lin_free(s->units);
    *s = (lin_session){.r = NULL};
}

size_t lin_session_bytes(const lin_session *s)
{
    const size_t front = s->features && !s->hop ? lin_extractor_state_bytes(s->features) : 0; // most of its memory is its state
    return block_bytes(s, s->capacity) + lin_utterances_bytes(&s->utterances) + front;
}

void lin_session_begin(lin_session *s, lin_result *whole)
{
    s->samples = s->row = 0;
    s->n = s->fed = s->finished = 0;
    lin_utterances_begin(&s->utterances, whole);
    if (s->network) lin_streams_reset(s->network, s->options.slot, NULL);
}

lin_status lin_session_reset(lin_session *s, lin_error *err)
{
    lin_session_begin(s, NULL);
    return lin_extractor_reset(s->features, err);
}

double lin_session_seconds(const lin_session *s) { return (double)s->samples / s->options.rate_hz; }

/* ---- units in -------------------------------------------------------------------------------------------------------------- */

static float *unit(const lin_session *s, int i) { return s->units + (size_t)i * (size_t)s->width; }

lin_status lin_session_hear(lin_session *s, const float *samples, int n, int *taken, lin_error *err)
{
    for (*taken = 0; *taken < n && lin_session_unfed(s) < s->most;) {
        const int room = s->capacity - s->n;
        int piece = n - *taken < s->piece ? n - *taken : s->piece, given;
        while (piece && lin_extractor_most_out(s->features, piece) > room) piece /= 2;
        if (!piece) break; // until rows are out
        const float *next = samples + (size_t)*taken * (size_t)s->options.channels;
        LIN_TRY(lin_extractor_push(s->features, next, piece, unit(s, s->n), room, &given, err));
        s->n += given;
        *taken += piece;
        s->samples += piece;
    }
    return LIN_OK;
}

lin_status lin_session_hear_end(lin_session *s, lin_error *err)
{
    const int room = s->capacity - s->n;
    int given;
    if (lin_extractor_most_out(s->features, 0) > room) return LIN_OK;
    LIN_TRY(lin_extractor_finish(s->features, unit(s, s->n), room, &given, err));
    s->finished = 1;
    s->n += given;
    return LIN_OK;
}

/* ---- rows out -------------------------------------------------------------------------------------------------------------- */

const float *lin_session_next(lin_session *s, int *n)
{
    const float *next = unit(s, s->fed);
    *n = lin_session_unfed(s) < s->most ? lin_session_unfed(s) : s->most;
    s->fed += *n;
    return next;
}

// Loudness of the rows to come, in dB of the energies of their frames (natural logarithms), or of samples the mean squares
// between two frames; not of a last row that lacks frames. The rules of endpoints compare a stream only with itself.
static void measure(lin_session *s, int rows)
{
    const int stack = s->r->model->config.stack, step = s->hop ? s->hop : 1;
    const int tail = s->hop ? lin_mel_samples(&s->r->fbank, s->r->fbank.window_ms) - s->hop : 0; // of a window, beyond its hop
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int f = i * stack; f < (i + 1) * stack && (f + 1) * step <= s->n; f++) {
            const float *x = unit(s, f * step);
            double squares = 0;
            for (int k = 0; k < step && s->hop; k++) squares += (double)x[k] * (double)x[k];
            for (int d = 0; d < s->width && !s->hop; d++) sum += exp((double)x[d]);
            sum += squares / step;
        }
        s->db[i] = (i + 1) * s->per_row + tail <= s->n ? 10 * log10(fmax(sum, 1e-12)) : NAN;
    }
}

// The units of rows that were taken go; after a reset the rest is new to the network.
static void drop(lin_session *s, int rows, int reset)
{
    const int all = rows * s->per_row, taken = all < s->n ? all : s->n;
    memmove(s->units, unit(s, taken), (size_t)(s->n - taken) * (size_t)s->width * sizeof *s->units);
    s->row += rows;
    s->n -= taken;
    s->fed = reset ? 0 : s->fed - taken;
    if (reset) lin_streams_reset(s->network, s->options.slot, NULL);
}

lin_status lin_session_take(lin_session *s, const float *logp, int rows, int *taken, lin_error *err)
{
    lin_utterances *u = &s->utterances;
    const int loudness = u->options.ends.endpoints;
    int reset;
    *taken = 0;
    if (rows == 0) return LIN_OK;
    if (loudness) measure(s, rows);
    if (!s->hop) lin_utterances_give_frames(u, s->units, s->n);
    const lin_status status = lin_utterances_push(u, logp, rows, loudness ? s->db : NULL, taken, &reset, err);
    drop(s, *taken, reset);
    return status;
}

lin_status lin_session_add(lin_session *s, const lin_phone *phones, int n, int rows, lin_error *err)
{
    LIN_TRY(lin_utterances_add(&s->utterances, phones, n, rows, err));
    drop(s, rows, 0);
    return LIN_OK;
}

lin_status lin_session_cut(lin_session *s, lin_error *err)
{
    LIN_TRY(lin_utterances_end(&s->utterances, err));
    if (s->options.ends.resets) drop(s, 0, 1);
    return LIN_OK;
}

/* ---- the network, a batch of one ------------------------------------------------------------------------------------------- */

// Units to give to the network next.
static int piece(const lin_session *s)
{
    const int threads = lin_streams_threads(s->network), rows = threads > 1 ? threads * RESET_ROWS_EACH : RESET_ROWS;
    const int most = lin_utterances_may_reset(&s->utterances, s->capacity / s->per_row + 1) ? rows * s->per_row : s->most;
    const int n = lin_session_unfed(s) < s->most ? lin_session_unfed(s) : s->most;
    return n < most ? n : most;
}

// Gives the network what it has not been given, as often as it is reset on the way; last: and what waits for look-ahead. Rows
// after a reset were computed with the state before it: they are computed again.
static lin_status advance(lin_session *s, int last, lin_error *err)
{
    while (lin_session_unfed(s) || (last && s->n > 0)) {
        const int n = piece(s);
        const unsigned char ends = last && n == lin_session_unfed(s);
        const lin_tick tick = {.n = 1, .slots = &s->options.slot, .counts = &n, .last = &ends, .input = unit(s, s->fed)};
        lin_tick_results results;
        int taken;
        LIN_TRY(lin_streams_tick(s->network, &tick, &results, err));
        s->fed += n;
        LIN_TRY(lin_session_take(s, results.logp, results.offsets[1], &taken, err));
    }
    return LIN_OK;
}

static lin_status check_open(const lin_session *s, int n, lin_error *err)
{
    if (n < 0) return lin_fail(err, LIN_INVALID, "%d samples cannot be pushed", n);
    return s->finished ? lin_fail(err, LIN_INVALID, "the session is finished; reset it first") : LIN_OK;
}

lin_status lin_session_push(lin_session *s, const float *samples, int n, lin_error *err)
{
    LIN_TRY(check_open(s, n, err));
    LIN_TRY(lin_audio_check_samples(samples, n, s->options.channels, err));
    for (int done = 0, taken; done < n; done += taken) {
        LIN_TRY(lin_session_hear(s, samples + (size_t)done * (size_t)s->options.channels, n - done, &taken, err));
        LIN_TRY(advance(s, 0, err));
    }
    return lin_utterances_show(&s->utterances, err);
}

lin_status lin_session_end_utterance(lin_session *s, lin_error *err)
{
    LIN_TRY(check_open(s, 0, err));
    LIN_TRY(advance(s, 0, err)); // what a state was loaded with
    LIN_TRY(lin_session_cut(s, err));
    return advance(s, 0, err);
}

lin_status lin_session_finish(lin_session *s, lin_error *err)
{
    LIN_TRY(check_open(s, 0, err));
    LIN_TRY(advance(s, 0, err));
    LIN_TRY(lin_session_hear_end(s, err));
    if (lin_session_unfed(s)) {
        LIN_TRY(advance(s, 0, err));
        LIN_TRY(lin_utterances_show(&s->utterances, err));
    }
    LIN_TRY(advance(s, 1, err));
    return lin_utterances_finish(&s->utterances, err);
}

lin_status lin_session_feed(lin_session *s, const float *frames, int n, int last, lin_error *err)
{
    for (int done = 0, some; done < n; done += some) {
        some = n - done < s->capacity - s->n ? n - done : s->capacity - s->n;
        memcpy(unit(s, s->n), frames + (size_t)done * (size_t)s->width, (size_t)some * (size_t)s->width * sizeof *frames);
        s->n += some;
        if (!last || done + some < n) LIN_TRY(advance(s, 0, err));
    }
    return LIN_OK;
}

lin_status lin_session_feed_end(lin_session *s, lin_error *err) { return advance(s, 1, err); }

/* ---- the bytes of a saved stream ------------------------------------------------------------------------------------------- */

typedef struct state_header {
    char magic[8];
    uint64_t version, total_bytes;
    uint64_t checksum; // of all bytes, this one being 0
    lin_state_about about;
    lin_state_sizes sizes;
} state_header;

static const char magic[8] = {'L', 'I', 'N', 'S', 'T', 'A', 'T', 'E'};

_Static_assert(sizeof(state_header) == 32 + 80 + 40 && sizeof(lin_state_lane) == 96, "what is written has no gaps");
_Static_assert(sizeof(lin_greedy) == 40, "the decoder's state has no gaps");

static const char remedy[] = "use an older state, or start from the beginning of the sound";

static size_t padded(uint64_t n) { return (size_t)((n + 7) / 8 * 8); }

static size_t lane_bytes(const lin_state *s)
{
    const lin_state_sizes *sizes = &s->sizes;
    return sizeof(lin_state_lane) + padded(sizes->decoder) + padded(sizes->image) + padded(sizes->frames) +
           padded(sizes->speakers);
}

static size_t total_bytes(const lin_state *s)
{
    return sizeof(state_header) + padded(s->sizes.front) + (size_t)s->about.lanes * lane_bytes(s);
}

static lin_status reserve_bytes(lin_state *s, size_t n, lin_error *err)
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
    LIN_TRY(reserve_bytes(s, total_bytes(s), err));
    memset(s->bytes, 0, s->n);
    return LIN_OK;
}

/* ---- its parts ------------------------------------------------------------------------------------------------------------- */

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

float *lin_state_speakers(const lin_state *s, int lane)
{
    return (void *)((unsigned char *)lin_state_frames(s, lane) + padded(s->sizes.frames));
}

lin_status lin_state_get_endpoint(const lin_state *s, int lane, const lin_reset_options *options, lin_endpoint *e, lin_error *err)
{
    const lin_endpoint *saved = &lin_state_lane_of(s, lane)->endpoint;
    if (s->about.resets != options->endpoints || (s->about.resets && s->about.resets_from_s != options->from_s)) {
        const char *how = !s->about.resets ? "never" : s->about.resets_from_s > 0 ? "auto" : "endpoint";
        return lin_fail(err, LIN_MISMATCH, "it was saved with --reset %s; use the same options", how);
    }
    if (!s->about.resets) return LIN_OK;
    if (memcmp(&saved->options, &options->rules, sizeof options->rules) != 0)
        return lin_fail(err, LIN_MISMATCH, "it was saved with other endpoint rules; use the same options");
    if (!(saved->silent_s >= 0 && saved->spoken_s >= 0 && saved->length_s >= 0 && saved->quietest_db > -INFINITY) ||
        saved->row_s != e->row_s)
        return lin_fail(err, LIN_FORMAT, "the state of an endpoint contradicts itself");
    *e = *saved;
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

/* ---- its bytes ------------------------------------------------------------------------------------------------------------- */

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
           sizes->frames > n || sizes->speakers > n || total_bytes(s) != s->n || a->kind < 0 || a->kind >= LIN_SEARCH_KINDS ||
           (a->kind == LIN_SEARCH_GREEDY && sizes->decoder < sizeof(lin_greedy)) ||
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
    LIN_TRY(reserve_bytes(s, n, err));
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

/* ---- saved, loaded, forked ------------------------------------------------------------------------------------------------- */

// The front end's part is that of a source (frontend/source.h) of which all frames were read: how many wait, and were given.
typedef struct front_counts {
    int64_t waiting, given;
} front_counts;

lin_state_about lin_session_about(const lin_session *s)
{
    const lin_search *search = &s->utterances.decoder.decoding->search;
    return (lin_state_about){.model = s->r->model->fingerprint,
                             .frames = s->row * s->per_row + s->fed,
                             .rows = s->row,
                             .row_seconds = s->r->row_seconds,
                             .kind = (int32_t)search->kind,
                             .search = search->id};
}

lin_state_sizes lin_session_sizes(const lin_session *s)
{
    const lin_utterances *u = &s->utterances;
    const size_t frames = lin_utterances_has_frames(u) ? (size_t)u->frames.rows * (size_t)s->width : 0;
    return (lin_state_sizes){.decoder = lin_search_bytes(&u->decoder.decoding->search),
                             .image = lin_streams_image_bytes(s->network, s->options.slot),
                             .frames = frames * sizeof *u->frames.data,
                             .speakers = lin_diarizer_count(&u->who) * sizeof(float)};
}

lin_status lin_session_save_lane(lin_session *s, lin_state *state, int i, lin_error *err)
{
    const lin_utterances *u = &s->utterances;
    lin_state_lane *lane = lin_state_lane_of(state, i);
    lane->first_row = lin_utterances_has_frames(u) ? u->first_row : -1;
    lane->early = u->decoder.early;
    lane->found = lin_utterances_found(u);
    if (state->sizes.frames) memcpy(lin_state_frames(state, i), u->frames.data, (size_t)state->sizes.frames);
    lin_diarizer_save(&u->who, lin_state_speakers(state, i));
    memcpy(lin_state_decoder(state, i), u->decoder.state, (size_t)state->sizes.decoder);
    lane->endpoint = u->at.endpoint;
    if (lin_streams_image_bytes(s->network, s->options.slot) != state->sizes.image)
        return lin_fail(err, LIN_UNSUPPORTED, "channels of this model that were reset at different times cannot be saved");
    return lin_streams_save(s->network, s->options.slot, lin_state_image(state, i), err);
}

// The frames that wait in the network belong to rows that are not out yet: they are the units that it has been given.
static lin_status load_network(lin_session *s, const lin_state *state, int i, lin_error *err)
{
    const lin_state_about *about = &state->about;
    const lin_stream_image *image = lin_state_image(state, i);
    const int stack = s->r->model->config.stack;
    LIN_TRY(lin_streams_load(s->network, s->options.slot, image, (size_t)state->sizes.image, err));
    const int64_t before = about->frames - image->frames_in; // the last reset, a whole number of rows
    if (before < 0 || before % stack || about->rows * stack + image->waiting != about->frames || (before && !about->resets))
        return lin_fail(err, LIN_FORMAT, "its parts contradict each other");
    s->n = s->fed = image->waiting;
    s->row = about->rows;
    memcpy(s->units, lin_streams_image_frames(s->network, image), (size_t)s->n * (size_t)s->width * sizeof *s->units);
    return LIN_OK;
}

lin_status lin_session_load_lane(lin_session *s, const lin_state *state, int i, const lin_reset_options *ends, lin_error *err)
{
    const lin_state_lane *lane = lin_state_lane_of(state, i);
    lin_row_decoder *d = &s->utterances.decoder;
    lin_endpoint endpoint = s->utterances.at.endpoint;
    LIN_TRY(lin_state_get_decoder(state, i, &d->decoding->search, d->state, err));
    if (ends) LIN_TRY(lin_state_get_endpoint(state, i, ends, &endpoint, err));
    LIN_TRY(load_network(s, state, i, err));
    if (s->utterances.who.voice)
        LIN_TRY(lin_diarizer_load(&s->utterances.who, lin_state_speakers(state, i),
                                  (size_t)state->sizes.speakers / sizeof(float), err));
    return lin_utterances_go_on(&s->utterances, state->about.rows, lane->early != 0, lane->found != 0, &endpoint,
                                lin_state_frames(state, i), (size_t)state->sizes.frames, lane->first_row, err);
}

// A state says from when on endpoints reset the network: never, if they do not.
static double resets_from(const lin_session *s) { return s->options.ends.resets ? 0 : INFINITY; }

static lin_status save(lin_session *s, lin_state *state, lin_error *err)
{
    if (!s->options.saves) return lin_fail(err, LIN_INVALID, "this session cannot be saved: set can_save when it is created");
    if (s->finished) return lin_fail(err, LIN_INVALID, "a finished session cannot be saved");
    const int waiting = lin_session_unfed(s); // frames that the network is given later
    const size_t frames = (size_t)waiting * (size_t)s->width * sizeof *s->units;
    lin_state_about about = lin_session_about(s);
    lin_state_sizes sizes = lin_session_sizes(s);
    about.rate_hz = s->options.rate_hz;
    about.channels = s->options.channels;
    about.channel = s->options.channel;
    about.lanes = 1;
    about.samples = s->samples;
    about.resets = 1;
    about.resets_from_s = resets_from(s);
    sizes.front = sizeof(front_counts) + frames + lin_extractor_state_bytes(s->features);
    LIN_TRY(lin_state_begin(state, &about, &sizes, err));
    const front_counts counts = {waiting, about.frames};
    unsigned char *front = lin_state_front(state);
    memcpy(front, &counts, sizeof counts);
    memcpy(front + sizeof counts, unit(s, s->fed), frames);
    LIN_TRY(lin_extractor_save(s->features, front + sizeof counts + frames, err));
    return lin_session_save_lane(s, state, 0, err);
}

// Alternatives are found when the whole utterance has ended. A state lacks what they need of its beginning.
static lin_status check_alternatives(const lin_session *s, const char *what, lin_error *err)
{
    if (!s->options.decoding || s->options.decoding->n_best <= 1) return LIN_OK;
    return lin_fail(err, LIN_UNSUPPORTED, "alternatives cover a whole utterance: a session with them cannot be %s", what);
}

lin_status lin_session_save(lin_session *s, lin_state *state, lin_error *err)
{
    LIN_TRY(check_alternatives(s, "saved", err));
    return save(s, state, err);
}

lin_status lin_session_check_state(const lin_session *s, const lin_state_about *about, lin_error *err)
{
    LIN_TRY(lin_state_check_model(about, s->r, "the state", err));
    if (about->rate_hz != s->options.rate_hz || about->channel != s->options.channel || about->lanes != 1 ||
        (about->channel != LIN_CHANNEL_MIX && about->channels != s->options.channels))
        return lin_fail(err, LIN_MISMATCH,
                        "the state is of other sound: %d Hz, %d channels; the session is of %d Hz, %d channels",
                        about->rate_hz, about->channels, s->options.rate_hz, s->options.channels);
    return LIN_OK;
}

static lin_status load(lin_session *s, const lin_state *state, lin_error *err)
{
    const lin_state_about *about = &state->about;
    const lin_reset_options how = {.endpoints = 1, .rules = s->options.ends.rules, .resets = 1, .from_s = resets_from(s)};
    const unsigned char *front = lin_state_front(state);
    const size_t n = (size_t)state->sizes.front, frame = (size_t)s->width * sizeof(float);
    front_counts counts = {-1, -1};
    LIN_TRY(lin_session_check_state(s, about, err));
    if (n >= sizeof counts) memcpy(&counts, front, sizeof counts);
    if (counts.waiting < 0 || counts.given < 0 || counts.waiting > INT32_MAX / 2 ||
        (uint64_t)counts.waiting > (n - sizeof counts) / frame)
        return lin_fail(err, LIN_FORMAT, "the state of the front end is truncated");
    const size_t used = sizeof counts + (size_t)counts.waiting * frame;
    LIN_TRY(lin_extractor_load(s->features, front + used, n - used, err));
    LIN_TRY(lin_session_load_lane(s, state, 0, about->resets || s->options.ends.resets ? &how : NULL, err));
    s->samples = about->samples;
    LIN_TRY(reserve(s, s->n + (int)counts.waiting + s->most, err));
    memcpy(unit(s, s->n), front + sizeof counts, (size_t)counts.waiting * frame);
    s->n += (int)counts.waiting;
    return LIN_OK;
}

lin_status lin_session_load(lin_session *s, const lin_state *state, lin_error *err)
{
    lin_status status = lin_session_reset(s, err);
    if (status == LIN_OK) status = check_alternatives(s, "loaded", err);
    if (status == LIN_OK) status = load(s, state, err);
    if (status != LIN_OK) lin_session_reset(s, NULL);
    return status;
}

lin_status lin_session_fork(lin_session *s, const lin_utterances_sink *sink, lin_session *copy, lin_error *err)
{
    lin_state state = {0};
    lin_session_options options = s->options;
    options.network = NULL;
    options.slot = 0;
    options.pass = NULL;
    *copy = (lin_session){.r = NULL};
    lin_status status = save(s, &state, err);
    if (status == LIN_OK) status = lin_session_open(copy, s->r, &options, sink, err);
    if (status == LIN_OK) status = load(copy, &state, err);
    if (status == LIN_OK) status = lin_utterances_copy(&copy->utterances, &s->utterances, err); // what was shown, too
    lin_state_free(&state);
    if (status != LIN_OK) lin_session_close(copy);
    return status;
}

void lin_session_decode_by(lin_session *s, const lin_decoding *decoding)
{
    s->options.decoding = decoding;
    s->utterances.decoder.decoding = decoding;
}
