// cmd_validate_sounds.c - linnet validate: what is wrong with the sounds, and texts that do not fit them; see cmd_validate.h.

#include <math.h>
#include <string.h>

#include "train/cmd_validate.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/pool.h"

#define SHORTEST_S 0.1     // of a sound that is not empty
#define FAINTEST 0.001F    // peak of a sound that is not silent: -60 dBFS
#define CLIP_LEVEL 0.98F   // samples at least this large
#define CLIP_RUN 3         // in runs of at least so many
#define CLIP_SHARE 0.001   // that are this share of a sound make it clipped
#define FASTEST 25.0       // phones in a second; fast speech has 20

/* ---- sounds ---------------------------------------------------------------------------------------------------------------- */

// At the beginning of the part, by a seek or by reading all before it. What is left of the part, in frames.
static int64_t begin_part(lin_audio *audio, const lin_cut *cut, float *x, int capacity, lin_measured *m)
{
    const lin_audio_format *f = lin_audio_info(audio);
    const int64_t start = (int64_t)(cut->part.start_s * f->rate_hz + 0.5), end = (int64_t)(cut->part.end_s * f->rate_hz + 0.5);
    int n = 1;
    if (start > 0 && lin_audio_seek(audio, start, NULL) != LIN_OK) {
        while (m->status == LIN_OK && n > 0 && lin_audio_position(audio) < start) {
            const int64_t left = start - lin_audio_position(audio);
            m->status = lin_audio_read(audio, x, left < capacity ? (int)left : capacity, &n, &m->error);
        }
    }
    return cut->part.end_s > 0 ? end - start : INT64_MAX;
}

static void measure(const lin_cut *cut, lin_measured *m)
{
    enum { FRAMES = 4096 };
    float *x = lin_alloc((size_t)FRAMES * LIN_AUDIO_MAX_CHANNELS, sizeof *x);
    lin_audio *audio = NULL;
    lin_hasher hash;
    int64_t clipped = 0;
    int n = 1, width = 1, run[LIN_AUDIO_MAX_CHANNELS] = {0};
    lin_hash_begin(&hash, 0);
    m->status = !x ? lin_no_memory(&m->error, "a sound", FRAMES)
                : cut->is_command ? lin_audio_open_command(cut->path, NULL, &audio, &m->error)
                                  : lin_audio_open(cut->path, NULL, &audio, &m->error);
    const int64_t most = m->status == LIN_OK ? begin_part(audio, cut, x, FRAMES, m) : 0;
    while (m->status == LIN_OK && n > 0 && m->frames < most) {
        m->format = *lin_audio_info(audio);
        m->status = lin_audio_read(audio, x, most - m->frames < FRAMES ? (int)(most - m->frames) : FRAMES, &n, &m->error);
        if (m->status != LIN_OK) break;
        const int channels = m->format.channels, only = cut->channel && channels > 1 ? cut->channel - 1 : -1;
        if (only >= channels) {
            m->status = lin_fail(&m->error, LIN_INVALID, "it has no channel %d", cut->channel);
            break;
        }
        width = only < 0 ? channels : 1;
        for (int i = 0; only >= 0 && i < n; i++) x[i] = x[i * channels + only];
        lin_hash_add(&hash, x, (size_t)n * (size_t)width * sizeof *x);
        for (int i = 0; i < n * width; i++) {
            int *of = &run[i % width];
            const float level = fabsf(x[i]);
            m->peak = fmaxf(m->peak, level);
            *of = level >= CLIP_LEVEL ? *of + 1 : 0;
            clipped += *of == CLIP_RUN ? CLIP_RUN : *of > CLIP_RUN;
        }
        m->frames += n;
    }
    if (audio) m->format = *lin_audio_info(audio);
    if (m->frames > 0) m->clipped = (double)clipped / ((double)m->frames * width);
    m->hash = lin_hash_end(&hash);
    lin_audio_close(audio);
    lin_free(x);
}

static void work(void *context, int item, int slot, int thread)
{
    lin_validation *d = context;
    const lin_validated *u = &d->utterances[item];
    lin_measured *m = &d->slots[slot];
    *m = (lin_measured){0};
    const lin_cut *cut = &u->u->cut;
    measure(cut, m);
    if (m->status != LIN_OK || !d->has_model || !u->is_used || m->frames == 0) return;
    lin_alignment *a = &d->alignments[thread];
    const lin_sound sound = {.path = cut->path,
                             .is_command = cut->is_command,
                             .channel = cut->channel ? cut->channel - 1 : LIN_CHANNEL_MIX,
                             .or_only = 1,
                             .part = {cut->part.start_s, cut->part.end_s > 0 ? cut->part.end_s : INFINITY}};
    const lin_aligner_input in = {.id = u->u->id, .sound = &sound, .text = u->u->text, .n_text = strlen(u->u->text)};
    lin_error err;
    const lin_status status = lin_aligner_align(d->aligners[thread], &in, a, &err);
    if (status == LIN_OK) lin_alignment_doubt(a, d->recognizer.row_seconds, sound.part.start_s, m->doubt, sizeof m->doubt);
    else snprintf(m->doubt, sizeof m->doubt, "%.250s", err.message);
}

static lin_status note_rate(lin_validation *d, const lin_measured *m, lin_error *err)
{
    char text[48];
    int index;
    const int before = d->rates.n;
    const int n = snprintf(text, sizeof text, "%d Hz, %d channel%s", m->format.rate_hz, m->format.channels,
                           m->format.channels == 1 ? "" : "s");
    lin_status status = lin_symbols_add(&d->rates, text, (size_t)n, &index, err);
    if (status == LIN_OK)
        status = lin_grow(&d->rate_counts, &d->rates_capacity, (size_t)d->rates.n, sizeof *d->rate_counts, "rates", err);
    if (status != LIN_OK) return status;
    if (d->rates.n > before) d->rate_counts[index] = 0;
    d->rate_counts[index]++;
    return LIN_OK;
}

static lin_status note_same(lin_validation *d, int item, const lin_measured *m, lin_error *err)
{
    char text[40];
    int index;
    const int before = d->sounds.n, n = snprintf(text, sizeof text, "%016llx", (unsigned long long)m->hash);
    const lin_validated *u = &d->utterances[item];
    lin_status status = lin_symbols_add(&d->sounds, text, (size_t)n, &index, err);
    if (status == LIN_OK)
        status = lin_grow(&d->sound_of, &d->sounds_capacity, (size_t)d->sounds.n, sizeof *d->sound_of, "sounds", err);
    if (status != LIN_OK) return status;
    if (d->sounds.n > before) {
        d->sound_of[index] = item;
        return LIN_OK;
    }
    const lin_validated *first = &d->utterances[d->sound_of[index]];
    lin_finding_note(d, LIN_FINDING_SAME_SOUND, u->set, u->u->id, "the samples of %s%s%s",
                     d->n_sets > 1 ? d->sets[first->set].name : "", d->n_sets > 1 ? " " : "", first->u->id);
    return LIN_OK;
}

// What a model puts out for so many seconds: the given one, or one to be trained.
static double steps_of(const lin_validation *d, double seconds)
{
    const lin_model *model = d->has_model ? d->recognizer.model : NULL;
    const lin_features features = model ? model->features : lin_features_default();
    const int stack = d->v->stack ? d->v->stack : model ? model->config.stack : 3;
    const double frames = floor((seconds - features.window_ms / 1000) / (features.hop_ms / 1000)) + 1;
    return ceil(frames / stack);
}

static lin_status take(void *context, int item, int slot, lin_error *err)
{
    lin_validation *d = context;
    const lin_measured *m = &d->slots[slot];
    const lin_validated *u = &d->utterances[item];
    lin_progress_of(&d->progress, (item + 1.0) / d->n, "%d of %d utterances", item + 1, d->n);
    if (lin_interrupted) return lin_fail(err, LIN_STOPPED, "interrupted");
    if (m->status == LIN_NO_MEMORY) return lin_fail_as(err, &m->error);
    if (m->status != LIN_OK) {
        lin_finding_note(d, LIN_FINDING_UNREADABLE, u->set, u->u->id, "%s", m->error.message);
        return LIN_OK;
    }
    const double seconds = (double)m->frames / m->format.rate_hz;
    d->sets[u->set].seconds += seconds;
    if (m->format.incomplete) lin_finding_note(d, LIN_FINDING_INCOMPLETE, u->set, u->u->id, "%s", m->format.warning);
    if (seconds < SHORTEST_S || m->peak < FAINTEST) {
        const double db = 20 * log10((double)m->peak);
        if (m->peak > 0) lin_finding_note(d, LIN_FINDING_EMPTY, u->set, u->u->id, "%.3f s, peak %.1f dBFS", seconds, db);
        else lin_finding_note(d, LIN_FINDING_EMPTY, u->set, u->u->id, "%.3f s of zeros", seconds);
        return note_rate(d, m, err);
    }
    if (m->clipped >= CLIP_SHARE)
        lin_finding_note(d, LIN_FINDING_CLIPPED, u->set, u->u->id, "%.2f %% of its samples", 100 * m->clipped);
    if (u->is_used && (steps_of(d, seconds) < u->needed || u->n_labels > FASTEST * seconds))
        lin_finding_note(d, LIN_FINDING_TOO_SHORT, u->set, u->u->id, "%d phones in %.2f s", u->n_labels, seconds);
    else if (m->doubt[0]) lin_finding_note(d, LIN_FINDING_NO_FIT, u->set, u->u->id, "%s", m->doubt);
    lin_status status = note_rate(d, m, err);
    return status == LIN_OK ? note_same(d, item, m, err) : status;
}

static lin_status make_aligners(lin_validation *d, lin_error *err)
{
    const char *model;
    lin_status status = lin_model_named(&d->v->model, &model, err);
    if (status == LIN_OK) status = lin_open_recognizer(&d->recognizer, model, d->v->model.device, LIN_PRECISION_FP32, err);
    if (status != LIN_OK) return status;
    d->has_model = 1;
    d->lexicon = (lin_spoken_lexicon){.phones = d->recognizer.phones, .dictionary = d->wording.dictionary, // of the same phones
                                      .written = d->wording.written, .g2p = d->v->g2p};
    d->aligners = lin_calloc((size_t)d->n_threads, sizeof *d->aligners);
    d->alignments = lin_calloc((size_t)d->n_threads, sizeof *d->alignments);
    if (!d->aligners || !d->alignments) return lin_no_memory(err, "aligners", 0);
    lin_aligner_options o = lin_aligner_options_default();
    o.follow_sound = 0;
    for (int i = 0; i < d->n_threads && status == LIN_OK; i++)
        status = lin_aligner_create(&d->recognizer, &d->lexicon, &o, &d->aligners[i], err);
    return status;
}

lin_status lin_validation_listen(lin_validation *d, lin_error *err)
{
    d->n_threads = lin_ordered_threads(d->v->jobs, d->n);
    d->slots = lin_calloc((size_t)lin_ordered_slots(d->n_threads), sizeof *d->slots);
    if (!d->slots) return lin_no_memory(err, "sounds", 0);
    lin_status status = d->v->model.model ? make_aligners(d, err) : LIN_OK;
    if (status != LIN_OK) return status;
    lin_progress_begin(&d->progress, d->v->quiet);
    status = lin_ordered_run(&(lin_ordered){d->n, d->n_threads, d, work, take}, err);
    lin_progress_end(&d->progress);
    return status;
}
