// aligner.c - one utterance aligned; see aligner.h.

#include "app/aligner.h"

#include <math.h>
#include <string.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/textfile.h"
#include "decoder/rows.h"

lin_status lin_aligner_text(lin_aligner *a, const char *text, size_t n, lin_error *err)
{
    const lin_aligner_job *job = a->job;
    if (n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) text += 3, n -= 3; // a byte order mark
    if (job->v->phones) return lin_spoken_phones(&a->spoken, job->recognizer.phones, text, n, err);
    return lin_spoken_words(&a->spoken, &job->lexicon, text, n, err);
}

// What is wrong with a text is said with the text's name, not the sound's.
static lin_status read_text_beside(lin_aligner *a, const char *path, lin_error *err)
{
    char *text;
    size_t n;
    lin_error why = {0};
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status != LIN_OK) return status;
    status = lin_aligner_text(a, text, n, &why);
    if (status != LIN_OK) lin_fail(err, status, "%.300s: %s", path, why.message);
    lin_free(text);
    return status;
}

static lin_status read_text(lin_aligner *a, int item, lin_error *err)
{
    const lin_aligner_job *job = a->job;
    const char *text = job->text;
    size_t n = job->n_text;
    if (job->beside) return read_text_beside(a, job->corpus.texts[item], err);
    if (job->v->data) {
        text = lin_datadir_at(job->inputs.dir, item)->text;
        if (!text)
            return lin_fail(err, LIN_INVALID, "%s/text has no line for %s", job->v->data, job->inputs.items[item].id);
        n = strlen(text);
    }
    return lin_aligner_text(a, text, n, err);
}

static lin_status take_rows(void *context, int lane, const float *logp, int n, lin_error *err)
{
    (void)lane;
    lin_aligner *a = context;
    if (!a->keeps_rows) return lin_align_push(a->align, logp, n, err);
    const size_t V = (size_t)a->job->recognizer.V, used = a->n_rows * V, more = (size_t)n * V;
    lin_status status = lin_grow(&a->rows, &a->rows_capacity, used + more, sizeof *a->rows, "rows of a sound", err);
    if (status != LIN_OK) return status;
    memcpy(a->rows + used, logp, more * sizeof *logp);
    a->n_rows += (size_t)n;
    return LIN_OK;
}

static lin_status take_frames(void *context, int lane, const float *fbank, int n, lin_error *err)
{
    (void)lane;
    lin_aligner *a = context;
    if (!a->keeps_rows) return lin_boundaries_push(a->boundaries, fbank, n, err);
    const size_t D = (size_t)a->job->recognizer.fbank.mel_bins, used = a->n_frames * D, more = (size_t)n * D;
    lin_status status = lin_grow(&a->frames, &a->frames_capacity, used + more, sizeof *a->frames, "frames of a sound", err);
    if (status != LIN_OK) return status;
    memcpy(a->frames + used, fbank, more * sizeof *fbank);
    a->n_frames += (size_t)n;
    return LIN_OK;
}

static lin_status read_matrix(lin_aligner *a, const char *path, double *seconds, lin_error *err)
{
    enum { ROWS = 4096 };
    float *rows;
    size_t T;
    int V;
    lin_status status = lin_npy_read(path, &rows, &T, &V, err);
    if (status != LIN_OK) return status;
    if (V != a->job->recognizer.V) {
        status = lin_fail(err, LIN_MISMATCH, "%s has %d columns, the model has %d outputs", path, V, a->job->recognizer.V);
    }
    for (size_t t = 0; t < T && status == LIN_OK; t += ROWS) {
        const int n = T - t < ROWS ? (int)(T - t) : ROWS;
        status = lin_rows_check(rows + t * (size_t)V, n, V, (int64_t)t, err);
        if (status == LIN_OK) status = take_rows(a, 0, rows + t * (size_t)V, n, err);
    }
    *seconds = (double)T * a->job->row_s;
    lin_free(rows);
    return status;
}

lin_status lin_aligner_hear(lin_aligner *a, const lin_input *input, lin_aligner_slot *s)
{
    const lin_aligner_job *job = a->job;
    if (job->v->posteriors) return read_matrix(a, input->path, &s->seconds, &s->error);
    lin_pcm_format raw;
    lin_heard heard = {0};
    lin_sound sound = {.path = input->path, .raw = lin_input_format(&job->v->input, &raw), .channel = job->channel,
                       .part = job->part};
    const lin_speaker *speaker = lin_speakers_find(&job->speakers, input->speaker);
    if (speaker) sound.mean = speaker->mean, sound.istd = speaker->istd;
    const lin_sink sink = {.context = a, .rows = take_rows, .frames = a->boundaries ? take_frames : NULL};
    if (a->boundaries) lin_boundaries_reset(a->boundaries);
    lin_status status = lin_ear_hear(a->ear, &sound, &sink, &heard, &s->error);
    memcpy(s->warning, heard.warning, sizeof s->warning);
    s->seconds = heard.seconds - job->part.start_s;
    s->incomplete = heard.incomplete;
    return status;
}

static const float *row_of(const void *context, int64_t row)
{
    const lin_aligner *a = context;
    return a->keeps_rows ? a->rows + (size_t)row * (size_t)a->job->recognizer.V : lin_align_row(a->align, row);
}

// A phone may lie a quarter of a second beside where the path has it, and be what it should be.
static lin_status judge(lin_aligner *a, lin_result *result, lin_error *err)
{
    const int n = a->path.n_phones, margin = (int)fmin(ceil(0.25 / a->job->row_s), 1e6); // --row-ms may be any number
    lin_status status = lin_grow_int(&a->goodness, &a->goodness_capacity, n, sizeof *a->goodness, "goodness of phones", err);
    if (status != LIN_OK) return status;
    const int64_t rows = a->keeps_rows ? (int64_t)a->n_rows : lin_align_rows(a->align);
    status = lin_goodness_measure(row_of, a, a->job->recognizer.V, rows, &a->path, margin, a->goodness, err);
    for (int i = 0; i < n && status == LIN_OK; i++) {
        const int heard = a->goodness[i].heard;
        result->phones[i].goodness = a->goodness[i].score;
        result->phones[i].heard = heard == result->phones[i].label ? 0 : heard ? heard : LIN_RESULT_NOTHING;
    }
    return status;
}

// Each phone from where its sound begins to where it ends.
static lin_status follow_sound(lin_aligner *a, lin_result *result, lin_error *err)
{
    lin_status status = LIN_OK;
    if (!a->boundaries) return LIN_OK;
    if (a->keeps_rows) { // done of each utterance
        lin_result_set_times(result, a->segments);
        return LIN_OK;
    }
    status = lin_grow_int(&a->segments, &a->segments_capacity, a->path.n_phones, sizeof *a->segments, "segments", err);
    if (status == LIN_OK) status = lin_boundaries_find(a->boundaries, &a->path, a->job->row_s, result->seconds, a->segments, err);
    if (status == LIN_OK) lin_result_set_times(result, a->segments);
    return status;
}

// While the aligner still knows which pronunciations were chosen.
lin_status lin_aligner_stress(lin_aligner *a, lin_error *err)
{
    const lin_align_graph *graph = a->spoken.graph;
    lin_status status = lin_grow_int(&a->stress, &a->stress_capacity, a->path.n_phones, 1, "stress", err);
    if (status != LIN_OK) return status;
    for (int slot = 0, p = 0, w = 0; slot < graph->n_slots; slot++) {
        const signed char *stress = lin_spoken_stress(&a->spoken, slot, lin_align_chosen(a->align, slot));
        const int n = graph->slots[slot].is_word ? a->path.words[w++].n_phones : 1;
        for (int i = 0; i < n && p < a->path.n_phones; i++) a->stress[p++] = stress ? stress[i] : -1;
    }
    return LIN_OK;
}

lin_status lin_aligner_add_path(lin_aligner *a, lin_result *result, lin_error *err)
{
    const lin_result_speller spell = a->job->v->phones ? NULL : lin_spoken_spell;
    const int first = result->n_phones;
    lin_status status = lin_result_add_path(result, &a->path, a->job->row_s, spell, &a->spoken, err);
    for (int i = 0; i < a->path.n_phones && status == LIN_OK; i++) result->phones[first + i].stress = a->stress[i] + 1;
    return status;
}

// What is done with a path that was added to a result.
lin_status lin_aligner_finish(lin_aligner *a, lin_aligner_slot *s, lin_result *result)
{
    result->seconds = s->seconds;
    lin_status status = judge(a, result, &s->error);
    if (status == LIN_OK) status = follow_sound(a, result, &s->error);
    // Up to here times are those of the part that was heard.
    lin_result_shift(result, a->job->part.start_s);
    result->seconds += a->job->part.start_s;
    return status;
}

lin_status lin_aligner_align(lin_aligner *a, int item, lin_aligner_slot *s)
{
    const lin_aligner_job *job = a->job;
    const lin_input *input = &job->inputs.items[item];
    const int channel = job->channel >= 0 ? job->channel + 1 : 1;
    lin_align_options o = lin_align_options_default();
    o.beam = job->v->beam;
    o.row_s = job->row_s;
    if (job->beside && lin_corpus_is_textgrid(job->corpus.texts[item]))
        return lin_aligner_grid(a, input, job->corpus.texts[item], &o, s);
    lin_status status = read_text(a, item, &s->error);
    s->marks = a->spoken.marks;
    memcpy(s->first_mark, a->spoken.first_mark, sizeof s->first_mark);
    if (status == LIN_OK) lin_buffer_bytes(&s->guesses, a->spoken.guesses.data, a->spoken.guesses.n);
    if (status == LIN_OK) status = lin_align_create(a->spoken.graph, &o, &a->align, &s->error);
    if (status == LIN_OK) status = lin_aligner_hear(a, input, s);
    if (status == LIN_OK) status = lin_align_finish(a->align, &a->path, &s->report, &s->error);
    if (status == LIN_OK) status = lin_result_begin(&s->result, input->id, input->speaker, channel, &s->error);
    if (status == LIN_OK) status = lin_aligner_stress(a, &s->error);
    if (status == LIN_OK) status = lin_aligner_add_path(a, &s->result, &s->error);
    if (status == LIN_OK) status = lin_aligner_finish(a, s, &s->result);
    if (status == LIN_OK) status = lin_buffer_status(&s->guesses, &s->error);
    lin_align_destroy(a->align);
    a->align = NULL;
    return status;
}
