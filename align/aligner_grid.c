// aligner_grid.c - the utterances of a TextGrid, each aligned within its times; see aligner.h.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "align/aligner_internal.h"
#include "align/textgrid.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/transcript.h"

static void count_marks(lin_alignment *out, int n, const char *first, size_t n_first)
{
    if (n && out->marks == 0) lin_quote(out->first_mark, first, n_first);
    out->marks += n;
}

// Appends the path of an utterance that begins at a row.
static lin_status append_path(lin_aligner *a, int64_t row, lin_error *err)
{
    lin_path *from = &a->path, *to = &a->whole;
    lin_status status = lin_path_reserve(to, from->n_phones, from->n_words, err);
    if (status != LIN_OK) return status;
    for (int i = 0; i < from->n_phones; i++) {
        from->phones[i].start += row;
        from->phones[i].end += row;
        to->phones[to->n_phones + i] = from->phones[i];
    }
    for (int i = 0; i < from->n_words; i++) {
        from->words[i].start += row;
        from->words[i].end += row;
        to->words[to->n_words + i] = from->words[i];
        to->words[to->n_words + i].first_phone += to->n_phones;
    }
    to->n_phones += from->n_phones;
    to->n_words += from->n_words;
    return LIN_OK;
}

// [laughs] alone is not an utterance.
static int has_words(const char *text, lin_alignment *out)
{
    lin_spelling word;
    lin_error err;
    size_t at = 0;
    if (lin_spelling_next(text, strlen(text), &at, &word, &err) != LIN_OK || word.n) return 1;
    count_marks(out, word.marks, text + word.mark, word.n_mark);
    return 0;
}

// The boundaries of an utterance, from its own sound only, so that speech around it is not taken for a part of it. Call before
// its path is appended; rows and segments count from its first row.
static lin_status look_again(lin_aligner *a, int64_t from, int64_t to, lin_error *err)
{
    const lin_fbank_config *f = &a->recognizer->fbank;
    const double row_s = a->row_s, hop_s = f->hop_ms / 1000;
    const int first = a->whole.n_phones, n = a->path.n_phones;
    const size_t last = (size_t)fmin(round((double)to * row_s / hop_s), (double)a->n_frames);
    const size_t begin = (size_t)fmin(round((double)from * row_s / hop_s), (double)last);
    if (!a->has_frames) return LIN_OK;
    lin_boundaries_reset(a->boundaries);
    lin_status status =
        lin_grow_int(&a->segments, &a->segments_capacity, (int64_t)first + n, sizeof *a->segments, "segments", err);
    for (size_t at = begin; at < last && status == LIN_OK;) {
        const size_t more = last - at < 4096 ? last - at : 4096;
        status = lin_boundaries_push(a->boundaries, a->frames + at * (size_t)f->mel_bins, (int)more, err);
        at += more;
    }
    if (status == LIN_OK) {
        status = lin_boundaries_find(a->boundaries, &a->path, row_s, (double)(to - from) * row_s, a->segments + first, err);
    }
    for (int i = first; i < first + n && status == LIN_OK; i++) {
        a->segments[i].start_s += (double)from * row_s;
        a->segments[i].end_s += (double)from * row_s;
    }
    return status;
}

static void shift_path(lin_path *path, int64_t rows)
{
    for (int i = 0; i < path->n_phones; i++) path->phones[i].start += rows, path->phones[i].end += rows;
    for (int i = 0; i < path->n_words; i++) path->words[i].start += rows, path->words[i].end += rows;
}

enum { FEW_PHONES = 10 };

// Keeps the worst report. How well a text fits is known of utterances; of single words, as in the TextGrid of an aligner, some
// always fit badly: they are judged together.
static void take_report(lin_aligner *a, const lin_align_report *report, int n_phones, lin_alignment *out)
{
    if (n_phones < FEW_PHONES) {
        if (!a->few_phones || report->fit < a->few.fit) a->few = *report;
        a->few_fit += report->fit * n_phones;
        a->few_phones += n_phones;
    } else if (!a->n_judged++ || report->fit < out->report.fit) {
        out->report = *report;
    }
}

static void report_few(lin_aligner *a, lin_alignment *out)
{
    if (!a->few_phones) return;
    a->few.fit = a->few_fit / a->few_phones;
    a->few.worst_fit = 0;
    if (!a->n_judged || a->few.fit < out->report.fit) out->report = a->few;
}

static lin_status align_interval(lin_aligner *a, const lin_textgrid_interval *v, const char *text, lin_alignment *out,
                                 lin_result *result, lin_error *err)
{
    lin_align_report report;
    // Rows and frames count from the start of the part. The network marks a phone some time after it was said: where times are
    // those of the sound, its rows are those of the utterance that much later, with one more before them.
    const double last = (double)a->n_rows, part_s = a->start_s, late_s = a->has_frames ? a->recognizer->delay_s : 0;
    const double early_s = fmax(late_s - a->row_s, 0);
    const int64_t first = (int64_t)fmin(fmax(floor((v->start_s - part_s) / a->row_s), 0), last);
    const int64_t from = (int64_t)fmin(fmax(floor((v->start_s - part_s + early_s) / a->row_s), (double)first), last);
    const int64_t to = (int64_t)fmax(fmin(ceil((v->end_s - part_s + late_s) / a->row_s), last), (double)from);
    lin_status status = lin_aligner_parse(a, text, strlen(text), err);
    count_marks(out, a->spoken.marks, a->spoken.first_mark, strlen(a->spoken.first_mark));
    if (status != LIN_OK) return status;
    lin_buffer_bytes(&out->guesses, a->spoken.guesses.data, a->spoken.guesses.n);
    status = lin_align_create(a->spoken.graph, &a->options, &a->align, err);
    for (int64_t t = from; t < to && status == LIN_OK;) {
        const int n = to - t < 4096 ? (int)(to - t) : 4096;
        status = lin_align_push(a->align, a->rows + (size_t)t * (size_t)a->recognizer->V, n, err);
        t += n;
    }
    if (status == LIN_OK) status = lin_align_finish(a->align, &a->path, &report, err);
    if (status == LIN_OK) status = lin_aligner_stress(a, err);
    if (status == LIN_OK) status = lin_aligner_judge(a, a->whole.n_phones, err);
    if (status == LIN_OK) take_report(a, &report, a->path.n_phones, out);
    shift_path(&a->path, from - first);
    if (status == LIN_OK) status = look_again(a, first, to, err);
    lin_align_destroy(a->align);
    a->align = NULL;
    if (status == LIN_OK)
        status = lin_grow_int(&a->spans, &a->spans_capacity, (int64_t)a->n_spans + 1, sizeof *a->spans, "utterances", err);
    if (status != LIN_OK) return status;
    a->spans[a->n_spans++] = (lin_aligner_span){v->start_s, v->end_s, a->whole.n_phones, a->whole.n_words};
    status = append_path(a, first, err);
    return status == LIN_OK ? lin_aligner_add_path(a, result, err) : status;
}

static void keep_within(double *start_s, double *end_s, const lin_aligner_span *v)
{
    *start_s = fmin(fmax(*start_s, v->start_s), v->end_s);
    *end_s = fmin(fmax(*end_s, v->start_s), v->end_s);
}

// Limits times from rows or boundaries to those of the utterance.
static void keep_within_spans(const lin_aligner *a, lin_result *r)
{
    for (int i = 0; i < a->n_spans; i++) {
        const lin_aligner_span *v = &a->spans[i], *after = i + 1 < a->n_spans ? v + 1 : NULL;
        for (int p = v->first_phone; p < (after ? after->first_phone : r->n_phones); p++)
            keep_within(&r->phones[p].start_s, &r->phones[p].end_s, v);
        for (int w = v->first_word; w < (after ? after->first_word : r->n_words); w++)
            keep_within(&r->words[w].start_s, &r->words[w].end_s, v);
    }
}

static lin_status align_tier(lin_aligner *a, const lin_textgrid *grid, const lin_tier *tier, const char *name,
                             lin_alignment *out, lin_result *result, lin_error *err)
{
    lin_status status = LIN_OK;
    lin_path_clear(&a->whole);
    a->n_spans = 0;
    for (int i = 0; i < tier->n && status == LIN_OK; i++) {
        const lin_textgrid_interval *v = &grid->intervals[tier->first + i];
        const char *text = lin_textgrid_text(grid, v->text);
        lin_error why = {0};
        if (v->start_s < a->start_s || (a->end_s > 0 && v->end_s > a->end_s) || !has_words(text, out)) continue;
        const lin_status done = align_interval(a, v, text, out, result, &why);
        if (done == LIN_NO_MEMORY) status = lin_fail_as(err, &why);
        if (done == LIN_OK || done == LIN_NO_MEMORY) continue;
        out->n_bad++;
        lin_buffer_text(&out->notes, name);
        lin_buffer_text(&out->notes, ": ");
        lin_buffer_fixed(&out->notes, v->start_s, 3);
        lin_buffer_text(&out->notes, " to ");
        lin_buffer_fixed(&out->notes, v->end_s, 3);
        lin_buffer_text(&out->notes, " s: ");
        lin_buffer_text(&out->notes, why.message);
        lin_buffer_char(&out->notes, '\n');
    }
    result->has_words = !a->is_phones;
    const lin_path one = a->path; // the rest is done with the path of all
    a->path = a->whole;
    a->whole = one;
    return status;
}

// A result for each speaker.
static lin_status begin_speaker(lin_alignment *out, const lin_aligner_input *in, const char *tier, int channel,
                                lin_result **result, lin_error *err)
{
    lin_buffer id = {0};
    lin_buffer_text(&id, in->id);
    if (tier) lin_buffer_char(&id, '-');
    for (const char *c = tier; c && *c; c++) {
        lin_buffer_char(&id, (unsigned char)*c <= ' ' || *c == 127 || *c == '(' || *c == ')' || *c == '/' ? '_' : *c);
    }
    lin_status status = lin_buffer_status(&id, err);
    if (status == LIN_OK) status = lin_aligner_begin(out, id.data, tier ? tier : in->speaker, channel, result, err);
    lin_buffer_free(&id);
    return status;
}

static int ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && !strcmp(text + n - k, end);
}

// Aligners name their tiers "words" and "phones", or "anna - words" and "anna - phones".
static int is_of_phones(const char *tier) { return !strcmp(tier, "phones") || ends_with(tier, " - phones"); }
static int is_of_words(const char *tier) { return !strcmp(tier, "words") || ends_with(tier, " - words"); }

static void name_speaker(char *name, size_t capacity, const char *tier)
{
    size_t n = strlen(tier);
    if (ends_with(tier, " - words")) n -= strlen(" - words");
    else if (ends_with(tier, " - phones")) n -= strlen(" - phones");
    else if (ends_with(tier, " - utterances")) n -= strlen(" - utterances");
    snprintf(name, capacity, "%.*s", n > capacity ? (int)capacity : (int)n, tier);
}

// The utterances themselves, those too that could not be aligned; not where each of them is a word or phone of another aligner.
static lin_status keep_utterances(const lin_aligner *a, const lin_textgrid *grid, const lin_tier *tier, lin_result *result,
                                  lin_error *err)
{
    const char *name = lin_textgrid_text(grid, tier->name);
    lin_status status = LIN_OK;
    for (int i = 0; i < tier->n && status == LIN_OK && !is_of_words(name) && !is_of_phones(name); i++) {
        const lin_textgrid_interval *v = &grid->intervals[tier->first + i];
        const char *text = lin_textgrid_text(grid, v->text);
        if (v->start_s < a->start_s || (a->end_s > 0 && v->end_s > a->end_s) || !text[strspn(text, " ")]) continue;
        status = lin_result_add_span(result, v->start_s, v->end_s, text, err);
    }
    return status;
}

static lin_status align_tiers(lin_aligner *a, const lin_aligner_input *in, const char *path, lin_textgrid *grid,
                              lin_alignment *out, lin_error *err)
{
    const int n = lin_textgrid_choose(grid);
    if (n == 0) return lin_fail(err, LIN_INVALID, "%s: no interval has a text", path);
    lin_status status = lin_aligner_read(a, in, out, err);
    for (int t = 0; t < grid->n_tiers && status == LIN_OK; t++) {
        const lin_tier *tier = &grid->tiers[t];
        char name[128];
        name_speaker(name, sizeof name, lin_textgrid_text(grid, tier->name));
        lin_result *result;
        if (!tier->chosen) continue;
        a->is_phones = in->grid_of_phones || is_of_phones(lin_textgrid_text(grid, tier->name));
        // Each speaker has a channel number.
        status = begin_speaker(out, in, n > 1 ? name : NULL, n > 1 ? out->n_results + 1 : in->channel, &result, err);
        if (status == LIN_OK) status = align_tier(a, grid, tier, path, out, result, err);
        if (status == LIN_OK) status = lin_aligner_finish(a, out, result, err);
        if (status == LIN_OK) keep_within_spans(a, result);
        if (status == LIN_OK) status = keep_utterances(a, grid, tier, result, err);
    }
    return status;
}

lin_status lin_aligner_grid(lin_aligner *a, const lin_aligner_input *in, lin_alignment *out, lin_error *err)
{
    const char *name = in->text_name ? in->text_name : "a TextGrid";
    lin_textgrid grid;
    lin_status status = lin_textgrid_parse(in->text, in->n_text, name, &grid, err);
    a->keeps_rows = 1;
    a->n_rows = a->n_frames = 0;
    a->n_judged = a->few_phones = 0;
    a->few_fit = 0;
    if (status == LIN_OK) status = align_tiers(a, in, name, &grid, out, err);
    if (status == LIN_OK) report_few(a, out);
    a->keeps_rows = 0;
    if (status == LIN_OK) status = lin_buffer_status(&out->guesses, err);
    if (status == LIN_OK) status = lin_buffer_status(&out->notes, err);
    lin_textgrid_free(&grid);
    return status;
}
