// speakers.c - mean and deviation of each speaker's features; see speakers.h.

#include "linnet/speakers.h"

#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "frontend/fbank.h"

typedef struct measurement {
    lin_speakers *speakers;
    const lin_recognizer *recognizer;
    const lin_cut *cuts;
    const char *const *names;
    int n, n_slots;
    lin_moments **norms; // one a speaker
    lin_matrix *frames;  // one a slot
} measurement;

const lin_speaker *lin_speakers_find(const lin_speakers *speakers, const char *name)
{
    for (int i = 0; i < speakers->n && name[0]; i++) {
        if (strcmp(speakers->items[i].name, name) == 0) return &speakers->items[i];
    }
    return NULL;
}

static int is_stopped(const measurement *m) { return m->recognizer->stop && *m->recognizer->stop; }

static void work(void *context, int item, int slot, int thread)
{
    (void)thread;
    measurement *m = context;
    lin_matrix *frames = &m->frames[slot];
    lin_feature_options options = lin_feature_options_default();
    options.fbank = m->recognizer->fbank;
    frames->rows = 0;
    if (!m->names[item][0] || is_stopped(m)) return;
    if (lin_cut_read(&m->cuts[item], NULL, &options, frames, NULL, NULL) != LIN_OK) frames->rows = 0;
}

static lin_status take(void *context, int item, int slot, lin_error *err)
{
    measurement *m = context;
    const lin_speaker *speaker = lin_speakers_find(m->speakers, m->names[item]);
    if (is_stopped(m)) return lin_fail(err, LIN_STOPPED, "interrupted");
    if (speaker) lin_moments_add(m->norms[speaker - m->speakers->items], m->frames[slot].data, (size_t)m->frames[slot].rows);
    return LIN_OK;
}

static lin_status list_speakers(measurement *m, int D, lin_error *err)
{
    lin_speakers *s = m->speakers;
    s->items = lin_calloc((size_t)m->n, sizeof *s->items);
    m->norms = lin_calloc((size_t)m->n, sizeof *m->norms);
    if (!s->items || !m->norms) return lin_no_memory(err, "speakers", (size_t)m->n * sizeof *s->items);
    for (int i = 0; i < m->n; i++) {
        const char *name = m->names[i];
        if (!name[0] || lin_speakers_find(s, name)) continue;
        s->items[s->n].name = name;
        lin_status status = lin_moments_create(D, &m->norms[s->n++], err);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

static lin_status finish(measurement *m, int D, lin_error *err)
{
    for (int i = 0; i < m->speakers->n; i++) {
        lin_speaker *s = &m->speakers->items[i];
        if (lin_moments_count(m->norms[i]) == 0) continue;
        s->mean = lin_calloc(2 * (size_t)D, sizeof *s->mean);
        if (!s->mean) return lin_no_memory(err, "speakers", 2 * (size_t)D * sizeof *s->mean);
        s->istd = s->mean + D;
        lin_status status = lin_moments_finish(m->norms[i], s->mean, s->istd, err);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

lin_status lin_speakers_measure(lin_speakers *speakers, const lin_recognizer *recognizer, const lin_cut *cuts,
                                const char *const *names, int n, int jobs, lin_error *err)
{
    const int threads = lin_ordered_threads(jobs, n), D = recognizer->model->config.mel_bins;
    measurement m = {.speakers = speakers, .recognizer = recognizer, .cuts = cuts, .names = names, .n = n,
                     .n_slots = lin_ordered_slots(threads)};
    m.frames = lin_calloc((size_t)m.n_slots, sizeof *m.frames);
    lin_status status =
        m.frames ? list_speakers(&m, D, err) : lin_no_memory(err, "speakers", (size_t)m.n_slots * sizeof *m.frames);
    if (status == LIN_OK && speakers->n > 0) status = lin_ordered_run(&(lin_ordered){n, threads, &m, work, take}, err);
    if (status == LIN_OK) status = finish(&m, D, err);
    for (int i = 0; i < m.n_slots && m.frames; i++) lin_matrix_free(&m.frames[i]);
    for (int i = 0; i < speakers->n; i++) lin_free(m.norms[i]);
    lin_free(m.frames);
    lin_free(m.norms);
    return status;
}

void lin_speakers_free(lin_speakers *speakers)
{
    for (int i = 0; i < speakers->n; i++) lin_free(speakers->items[i].mean);
    lin_free(speakers->items);
    *speakers = (lin_speakers){0};
}
