// aligner.c - one text aligned with one sound; see aligner.h.

#include "align/aligner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "align/aligner_internal.h"
#include "base/memory.h"
#include "base/unicode.h"
#include "decoder/rows.h"

lin_aligner_options lin_aligner_options_default(void)
{
    return (lin_aligner_options){.beam = lin_align_options_default().beam, .follow_sound = 1, .n_threads = 1};
}

lin_status lin_aligner_parse(lin_aligner *a, const char *text, size_t n, lin_error *err)
{
    const size_t mark = lin_text_mark(text, n);
    if (a->is_phones) return lin_spoken_phones(&a->spoken, a->recognizer->phones, text + mark, n - mark, err);
    return lin_spoken_words(&a->spoken, a->lexicon, text + mark, n - mark, err);
}

// An error in a text names the text's file, not the sound's.
static lin_status parse_named(lin_aligner *a, const lin_aligner_input *in, lin_error *err)
{
    lin_status status = lin_aligner_parse(a, in->text, in->n_text, err);
    return status == LIN_OK || !in->text_name ? status : lin_fail_at(err, status, "%.300s", in->text_name);
}

static lin_status take_rows(void *context, int lane, const float *logp, int n, lin_error *err)
{
    (void)lane;
    lin_aligner *a = context;
    if (!a->keeps_rows) return lin_align_push(a->align, logp, n, err);
    const size_t V = (size_t)a->recognizer->V, used = a->n_rows * V, more = (size_t)n * V;
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
    const size_t D = (size_t)a->recognizer->fbank.mel_bins, used = a->n_frames * D, more = (size_t)n * D;
    lin_status status = lin_grow(&a->frames, &a->frames_capacity, used + more, sizeof *a->frames, "frames of a sound", err);
    if (status != LIN_OK) return status;
    memcpy(a->frames + used, fbank, more * sizeof *fbank);
    a->n_frames += (size_t)n;
    return LIN_OK;
}

// Rows, and the frames of the same sound, from the caller.
static lin_status read_arrays(lin_aligner *a, const lin_aligner_input *in, lin_error *err)
{
    enum { MOST = 4096 };
    const int V = a->recognizer->V, D = a->recognizer->fbank.mel_bins;
    lin_status status = LIN_OK;
    for (size_t t = 0; t < in->n_rows && status == LIN_OK; t += MOST) {
        const int n = in->n_rows - t < MOST ? (int)(in->n_rows - t) : MOST;
        status = lin_rows_check(in->rows + t * (size_t)V, n, V, (int64_t)t, err);
        if (status == LIN_OK) status = take_rows(a, 0, in->rows + t * (size_t)V, n, err);
    }
    for (size_t t = 0; t < in->n_frames && a->has_frames && status == LIN_OK; t += MOST) {
        const int n = in->n_frames - t < MOST ? (int)(in->n_frames - t) : MOST;
        status = take_frames(a, 0, in->frames + t * (size_t)D, n, err);
    }
    return status;
}

lin_status lin_aligner_read(lin_aligner *a, const lin_aligner_input *in, lin_alignment *out, lin_error *err)
{
    lin_file_report report = {0};
    a->start_s = in->sound ? in->sound->part.start_s : 0;
    a->end_s = in->sound ? in->sound->part.end_s : 0;
    a->has_frames = a->boundaries && (in->sound || in->frames);
    if (a->has_frames) lin_boundaries_reset(a->boundaries);
    if (!in->sound) {
        out->seconds = (double)in->n_rows * a->row_s;
        return read_arrays(a, in, err);
    }
    if (!a->session) return lin_fail(err, LIN_INVALID, "%s: this aligner takes rows, not sound", in->id);
    const lin_file_sink sink = {.context = a, .rows = take_rows, .frames = a->has_frames ? take_frames : NULL};
    lin_status status = lin_file_session_run(a->session, in->sound, &sink, &report, err);
    memcpy(out->warning, report.warning, sizeof out->warning);
    out->seconds = report.seconds - a->start_s;
    out->incomplete = report.incomplete;
    return status;
}

static const float *row_of(const void *context, int64_t row) { return lin_align_row(context, row); }

// Only the rows of the utterance count: in a TextGrid the last row of one may be the first row of the next.
lin_status lin_aligner_judge(lin_aligner *a, int first, lin_error *err)
{
    // A phone may be up to a quarter of a second away from its place in the path. row_s is not limited.
    const int margin = (int)fmin(ceil(0.25 / a->row_s), 1e6);
    lin_status status = lin_grow_int(&a->goodness, &a->goodness_capacity, (int64_t)first + a->path.n_phones, sizeof *a->goodness,
                                     "goodness of phones", err);
    if (status != LIN_OK) return status;
    return lin_goodness_measure(row_of, a->align, a->recognizer->V, lin_align_rows(a->align), &a->path, margin,
                                a->goodness + first, err);
}

// Each phone from where its sound begins to where it ends.
static lin_status follow_sound(lin_aligner *a, lin_result *result, lin_error *err)
{
    lin_status status = LIN_OK;
    if (!a->has_frames) return LIN_OK;
    if (a->keeps_rows) { // already done for each utterance
        lin_result_set_times(result, a->segments);
        return LIN_OK;
    }
    status = lin_grow_int(&a->segments, &a->segments_capacity, a->path.n_phones, sizeof *a->segments, "segments", err);
    if (status == LIN_OK) status = lin_boundaries_find(a->boundaries, &a->path, a->row_s, result->seconds, a->segments, err);
    if (status == LIN_OK) lin_result_set_times(result, a->segments);
    return status;
}

// Call while the aligner still has the pronunciations that were used.
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
    const lin_result_speller spell = a->is_phones ? NULL : lin_spoken_spell;
    const int first = result->n_phones, first_word = result->n_words;
    lin_status status = lin_result_add_path(result, &a->path, a->row_s, spell, &a->spoken, err);
    if (status == LIN_OK && !a->is_phones) status = lin_spoken_write(&a->spoken, result, first_word, &a->path, err);
    for (int i = 0; i < a->path.n_phones && status == LIN_OK; i++) result->phones[first + i].stress = a->stress[i] + 1;
    return status;
}

// What was said and is not in the text. Phones of the path say how much later than the sound its rows are.
static lin_status add_others(const lin_aligner *a, lin_result *result, lin_error *err)
{
    const double half_s = 0.06; // of a phone
    double late_s = 0;
    lin_status status = LIN_OK;
    for (int i = 0; i < a->path.n_phones && a->has_frames; i++)
        late_s += ((double)(a->path.phones[i].start + a->path.phones[i].end) * a->row_s - a->segments[i].start_s -
                   a->segments[i].end_s) / 2 / a->path.n_phones;
    for (int i = 0, next = 0; i < a->path.n_others && status == LIN_OK; i++) {
        const lin_path_other *o = &a->path.others[i];
        while (next < a->path.n_phones && a->path.phones[next].start < o->end) next++;
        const double last = next ? result->phones[next - 1].end_s : 0;
        const double limit = next < result->n_phones ? result->phones[next].start_s : result->seconds;
        const double start = ((double)o->start + 0.5) * a->row_s - late_s - half_s,
                     end = ((double)o->end - 0.5) * a->row_s - late_s + half_s;
        const double start_s = fmin(fmax(start, last), limit);
        status = lin_result_add_span(result, start_s + a->start_s, fmax(fmin(end, limit), start_s) + a->start_s, "[other speech]",
                                     err);
        result->has_others = 1;
    }
    return status;
}

// Call after all paths of a result were added.
lin_status lin_aligner_finish(lin_aligner *a, const lin_alignment *out, lin_result *result, lin_error *err)
{
    result->seconds = out->seconds;
    for (int i = 0; i < result->n_phones; i++) {
        const int heard = a->goodness[i].heard;
        result->phones[i].goodness = a->goodness[i].score;
        result->phones[i].heard = heard == result->phones[i].label ? 0 : heard ? heard : LIN_RESULT_NOTHING;
    }
    lin_status status = follow_sound(a, result, err);
    if (status == LIN_OK && !a->keeps_rows) status = add_others(a, result, err);
    // Up to here times count from the start of the part.
    lin_result_shift(result, a->start_s);
    result->seconds += a->start_s;
    return status;
}

lin_status lin_aligner_begin(lin_alignment *out, const char *id, const char *speaker, int channel, lin_result **result,
                             lin_error *err)
{
    const int before = out->capacity;
    lin_status status = lin_grow_int(&out->results, &out->capacity, (int64_t)out->n_results + 1, sizeof *out->results, "results",
                                     err);
    if (status != LIN_OK) return status;
    memset(out->results + before, 0, (size_t)(out->capacity - before) * sizeof *out->results);
    *result = &out->results[out->n_results];
    status = lin_result_begin(*result, id, speaker, channel ? channel : 1, err);
    out->n_results += status == LIN_OK;
    return status;
}

void lin_alignment_clear(lin_alignment *out)
{
    out->n_results = out->marks = out->n_bad = out->incomplete = 0;
    out->report = (lin_align_report){0};
    out->seconds = 0;
    out->warning[0] = out->first_mark[0] = 0;
    lin_buffer_clear(&out->guesses);
    lin_buffer_clear(&out->notes);
}

static lin_status align_text(lin_aligner *a, const lin_aligner_input *in, lin_alignment *out, lin_error *err)
{
    lin_result *result = NULL;
    lin_status status = parse_named(a, in, err);
    out->marks = a->spoken.marks;
    memcpy(out->first_mark, a->spoken.first_mark, sizeof out->first_mark);
    if (status == LIN_OK) lin_buffer_bytes(&out->guesses, a->spoken.guesses.data, a->spoken.guesses.n);
    if (status == LIN_OK) status = lin_align_create(a->spoken.graph, &a->options, &a->align, err);
    if (status == LIN_OK) status = lin_aligner_read(a, in, out, err);
    if (status == LIN_OK) status = lin_align_finish(a->align, &a->path, &out->report, err);
    if (status == LIN_OK) status = lin_aligner_begin(out, in->id, in->speaker, in->channel, &result, err);
    if (status == LIN_OK) status = lin_aligner_stress(a, err);
    if (status == LIN_OK) status = lin_aligner_judge(a, 0, err);
    if (status == LIN_OK) status = lin_aligner_add_path(a, result, err);
    if (status == LIN_OK) status = lin_aligner_finish(a, out, result, err);
    if (status == LIN_OK) status = lin_buffer_status(&out->guesses, err);
    lin_align_destroy(a->align);
    a->align = NULL;
    return status;
}

lin_status lin_aligner_align(lin_aligner *a, const lin_aligner_input *in, lin_alignment *out, lin_error *err)
{
    lin_aligner_input input = *in;
    char *own;
    a->is_phones = in->kind == LIN_ALIGNER_PHONES || (in->kind == LIN_ALIGNER_TEXTGRID && in->grid_of_phones);
    a->options.others = in->kind != LIN_ALIGNER_TEXTGRID; // whose utterances have times
    lin_alignment_clear(out);
    // Of a TextGrid in another encoding only the labels that are not ASCII are refused.
    const lin_unicode_rule rule = in->kind == LIN_ALIGNER_TEXTGRID ? LIN_UNICODE_ANY : LIN_UNICODE_ONLY;
    lin_status status = lin_unicode_clean(in->text, in->n_text, in->text_name, rule, &own, &input.text, &input.n_text, err);
    if (status == LIN_OK && in->kind == LIN_ALIGNER_TEXTGRID) status = lin_aligner_grid(a, &input, out, err);
    else if (status == LIN_OK) status = align_text(a, &input, out, err);
    lin_free(own);
    return status;
}

// How much was said that is not in the text, and where the first parts of it are.
static void tell_others(const lin_result *result, char *text, size_t capacity)
{
    enum { TOLD = 3 };
    int used = snprintf(text, capacity, "speech that is not in the text, from");
    for (int i = 0; i < result->n_spans && i < TOLD; i++)
        used += snprintf(text + used, capacity - (size_t)used, "%s %.1f to %.1f s", i ? "," : "", result->spans[i].start_s,
                         result->spans[i].end_s);
    if (result->n_spans > TOLD) snprintf(text + used, capacity - (size_t)used, " and %d times more", result->n_spans - TOLD);
}

void lin_alignment_doubt(const lin_alignment *out, double row_s, double start_s, char *text, size_t capacity)
{
    const lin_align_report *r = &out->report;
    const lin_align_options o = lin_align_options_default();
    text[0] = 0;
    if (r->fit < LIN_ALIGN_FIT) {
        snprintf(text, capacity, "the text does not seem to match the sound: its log-probability per phoneme is %.1f relative to "
                                 "the best labels; texts that match have above %.0f", r->fit, LIN_ALIGN_FIT);
    } else if (r->worst_fit < o.mismatch && out->seconds > o.stretch_s) {
        const double at = (double)r->worst_row * row_s + start_s;
        snprintf(text, capacity, "text and sound do not match around %.1f to %.1f s", at, at + o.stretch_s);
    } else if (out->n_results > 0 && out->results[0].has_others) {
        tell_others(&out->results[0], text, capacity);
    }
}

void lin_alignment_free(lin_alignment *out)
{
    for (int i = 0; i < out->capacity; i++) lin_result_free(&out->results[i]);
    lin_free(out->results);
    lin_buffer_free(&out->guesses);
    lin_buffer_free(&out->notes);
    *out = (lin_alignment){0};
}

lin_status lin_aligner_create(const lin_recognizer *recognizer, const lin_spoken_lexicon *lexicon,
                              const lin_aligner_options *options, lin_aligner **aligner, lin_error *err)
{
    const lin_fbank_config *f = &recognizer->fbank;
    lin_aligner *a = lin_calloc(1, sizeof *a);
    lin_status status = LIN_OK;
    *aligner = NULL;
    if (!a) return lin_no_memory(err, "an aligner", sizeof *a);
    a->recognizer = recognizer;
    a->lexicon = lexicon;
    a->row_s = options->row_s > 0 ? options->row_s : recognizer->row_seconds;
    a->options = lin_align_options_default();
    a->options.beam = options->beam;
    a->options.row_s = a->row_s;
    if (!options->rows_only) status = lin_file_session_create(recognizer, options->n_threads, NULL, &a->session, err);
    if (status == LIN_OK && options->follow_sound) {
        const double high_hz = f->high_hz > 0 ? f->high_hz : f->sample_hz / 2 + f->high_hz;
        const lin_boundaries_options o = {f->mel_bins, f->low_hz, high_hz, f->hop_ms / 1000, f->window_ms / 1000};
        status = lin_boundaries_create(recognizer->phones, &o, &a->boundaries, err);
    }
    if (status == LIN_OK) *aligner = a;
    else lin_aligner_destroy(a);
    return status;
}

void lin_aligner_destroy(lin_aligner *a)
{
    if (!a) return;
    lin_file_session_destroy(a->session);
    lin_spoken_free(&a->spoken);
    lin_path_free(&a->path);
    lin_path_free(&a->whole);
    lin_boundaries_destroy(a->boundaries);
    lin_free(a->goodness);
    lin_free(a->stress);
    lin_free(a->rows);
    lin_free(a->frames);
    lin_free(a->spans);
    lin_free(a->segments);
    lin_free(a);
}
