// results.c - output of results; see results.h.

#include "app/results.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/corpus.h"
#include "app/guard.h"
#include "app/mirror.h"
#include "base/textfile.h"
#include "decoder/writers_tokens.h"
#include "linnet/find.h"
#include "base/system.h"
#include "frontend/audio.h"

enum { LONGEST_PATH = 4096 };

/* ---- formats --------------------------------------------------------------------------------------------------------------- */

// The nearest format for common other names and extensions.
static const char *nearest_format(const char *name)
{
    static const char *const others[][2] = {
        {"docx", "text"},   {"doc", "text"},       {"odt", "text"},       {"rtf", "text"},
        {"pdf", "text"},     {"html", "text"},   {"md", "text"},        {"plain", "text"},     {"kaldi", "text"},
        {"subrip", "srt"},   {"ass", "srt"},     {"ssa", "srt"},        {"sub", "srt"},        {"sbv", "srt"},
        {"ttml", "srt"},     {"webvtt", "vtt"},  {"subtitles", "srt"},  {"praat", "textgrid"}, {"eaf", "textgrid"},
        {"xlsx", "csv"},     {"xls", "csv"},     {"ods", "csv"},        {"tsv", "csv"},        {"ndjson", "json"},
        {"xml", "json"},     {"yaml", "json"},   {"sclite", "trn"},     {"labels", "audacity"},
    };
    char lower[32];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof lower; n++) lower[n] = lin_lower(name[n]);
    lower[n] = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(lower, others[i][0]) == 0) return others[i][1];
    }
    for (int i = 0; n > 2 && lin_writer_at(i); i++) {
        const lin_writer *w = lin_writer_at(i);
        if (lin_edit_cost(lower, w->name) <= 1 || lin_edit_cost(lower, w->extension) == 1) return w->name;
    }
    return NULL;
}

static int unknown_format(const lin_parsed *parsed, const char *name, size_t n)
{
    char known[256] = "", given[41];
    for (int i = 0; lin_writer_at(i); i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? "|" : "", lin_writer_at(i)->name);
    }
    snprintf(given, sizeof given, "%.*s", (int)n, name);
    const char *near = nearest_format(given);
    const char *before = near ? "; did you mean " : "", *after = near ? "?" : "";
    return lin_misuse(parsed, "--format must be one of %s, not '%s'%s%s%s", known, given, before, near ? near : "", after);
}

// Refuses an extension that no format has and that suggests another format.
static int check_extension(const lin_parsed *parsed, const lin_results_values *v)
{
    const char *base = lin_base_name(v->output), *dot = strrchr(base, '.');
    if (!dot || dot == base) return LIN_EXIT_OK;
    if (lin_corpus_is_sound(v->output))
        return lin_misuse(parsed, "--output %s has the extension of a sound file, but results are text; use .txt, .json, ...",
                          v->output);
    const char *near = v->format ? NULL : nearest_format(dot + 1);
    if (!near) return LIN_EXIT_OK;
    return lin_misuse(parsed, "no format has the extension %s; did you mean %s? Then use --format %s, or --output %.*s.%s", dot,
                      near, near, (int)(dot - v->output), v->output, lin_writer_find(near)->extension);
}

// Names between commas; one given twice counts once.
static int choose_formats(lin_results *r, const lin_parsed *parsed, const char *names)
{
    for (const char *at = names;; at++) {
        const size_t n = strcspn(at, ",");
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        const lin_writer *w = lin_writer_find(name);
        if (!w) return unknown_format(parsed, at, n);
        int there = 0;
        for (int i = 0; i < r->n_writers; i++) there |= r->writers[i] == w;
        if (!there && r->n_writers < LIN_RESULTS_FORMATS) r->writers[r->n_writers++] = w;
        at += n;
        if (!*at) return LIN_EXIT_OK;
    }
}

int lin_results_check(lin_results *r, const lin_parsed *parsed, const lin_results_values *v)
{
    *r = (lin_results){.values = v};
    r->how = (lin_writer_options){.ipa = v->ipa, .word_times = v->word_times, .columns = v->columns};
    r->how.cues = (lin_cue_options){.width = v->cue_width,
                                    .rows = v->cue_rows,
                                    .shortest_ms = (int)(v->cue_min_s * 1000),
                                    .longest_ms = (int)(v->cue_max_s * 1000),
                                    .speed = v->cue_speed,
                                    .gap_ms = v->cue_gap_ms,
                                    .script = v->cue_script};
    if (v->cue_min_s > v->cue_max_s) return lin_misuse(parsed, "--cues min=%g is above max=%g", v->cue_min_s, v->cue_max_s);
    if (v->paragraphs) r->how.paragraph_s = 2;
    if (v->paragraphs && !v->columns) r->how.columns = 100;
    static const lin_writer_unit units[] = {LIN_UNIT_AUTO, LIN_UNIT_PHONES, LIN_UNIT_WORDS, LIN_UNIT_BOTH};
    r->how.unit = units[v->unit];
    if (v->output && v->output_dir) return lin_misuse(parsed, "--output and --output-dir exclude each other");
    if (v->input_root && !v->output_dir) return lin_misuse(parsed, "--input-root needs --output-dir");
    if (v->skip_done && !v->output_dir && (!v->output || strcmp(v->output, "-") == 0))
        return lin_misuse(parsed, "--skip-done needs --output-dir or --output");
    const lin_writer *by_name = v->output ? lin_writer_for_file(v->output) : NULL;
    const int wrong = v->output && !by_name ? check_extension(parsed, v) : LIN_EXIT_OK;
    if (wrong != LIN_EXIT_OK) return wrong;
    const int status = choose_formats(r, parsed, v->format ? v->format : by_name ? by_name->name : "text");
    if (status != LIN_EXIT_OK) return status;
    if (r->n_writers > 1 && !v->output_dir)
        return lin_misuse(parsed, "several formats (%s) need --output-dir", v->format);
    return LIN_EXIT_OK;
}

int lin_results_check_search(const lin_results *r, const lin_parsed *parsed, int words, int n_best)
{
    int has_json = 0;
    for (int i = 0; i < r->n_writers; i++) has_json |= strcmp(r->writers[i]->name, "json") == 0;
    if (n_best > 1 && !has_json) return lin_misuse(parsed, "--n-best needs --format json: only JSON has alternatives");
    if (r->how.unit == LIN_UNIT_WORDS && !words) return lin_misuse(parsed, "--unit words is for --words");
    return LIN_EXIT_OK;
}

lin_status lin_results_make_readable(lin_results *r, const lin_phones *phones, double least, lin_error *err)
{
    int wanted = 0;
    for (int i = 0; i < r->n_writers; i++) {
        const char *name = r->writers[i]->name;
        wanted |= strcmp(name, "text") == 0 || strcmp(name, "json") == 0 || strcmp(name, "srt") == 0 || strcmp(name, "vtt") == 0;
    }
    if (!wanted || r->how.unit == LIN_UNIT_PHONES || r->punctuation) return LIN_OK;
    lin_status status = lin_find_open_punctuation(phones, &r->punctuation, err);
    r->how.readable = r->punctuation;
    r->how.least = least;
    if (r->punctuation) lin_readable_begin(&r->readable, r->punctuation);
    r->readable.paragraph_s = r->how.paragraph_s;
    return status;
}

// channel: of one lane of several; 0: of all
static lin_status name_file(const lin_results *r, const lin_writer *writer, const char *name, int channel,
                            char path[LONGEST_PATH], lin_error *err)
{
    char lane[16] = "";
    if (channel) snprintf(lane, sizeof lane, "-%d", channel);
    const int n = snprintf(path, LONGEST_PATH, "%s/%s%s.%s", r->values->output_dir, name, lane, writer->extension);
    if (n >= 0 && n < LONGEST_PATH) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "the name of the result of %.200s is too long", name);
}

// No result may be an input: a sound, or a text beside it.
static lin_status guard(const lin_results *r, const lin_inputs *inputs, int lanes, lin_error *err)
{
    char path[LONGEST_PATH];
    lin_status status = LIN_OK;
    for (int i = 0; i < inputs->n && status == LIN_OK; i++) {
        if (!inputs->items[i].cut.is_command) status = lin_guard_reads(inputs->items[i].path, err);
    }
    if (status == LIN_OK && r->values->output && strcmp(r->values->output, "-") != 0)
        status = lin_guard_writes(r->values->output, err);
    for (int i = 0; r->values->output_dir && i < inputs->n; i++) {
        for (int w = 0; w < r->n_writers; w++) {
            const int last = lanes && r->writers[w]->holds != LIN_WRITER_MANY ? LIN_AUDIO_MAX_CHANNELS : 0;
            for (int channel = 0; channel <= last && status == LIN_OK; channel++) {
                status = name_file(r, r->writers[w], inputs->items[i].name, channel, path, err);
                if (status == LIN_OK) status = lin_guard_writes(path, err);
            }
        }
    }
    return status;
}

// A result that is not older than its input. An empty one may be left by a power failure.
static int is_newer(const char *path, const lin_input *input)
{
    struct stat st, from;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) return 0;
    for (int i = 0; i < 2; i++) {
        const char *source = i ? input->text : input->path;
        if (!source || (!i && input->cut.is_command)) continue;
        if (stat(source, &from) != 0 || st.st_mtim.tv_sec < from.st_mtim.tv_sec) return 0;
        if (st.st_mtim.tv_sec == from.st_mtim.tv_sec && st.st_mtim.tv_nsec < from.st_mtim.tv_nsec) return 0;
    }
    return 1;
}

static int is_done(const lin_results *r, const lin_input *input, int lanes)
{
    char path[LONGEST_PATH];
    if (strcmp(input->path, "-") == 0) return 0;
    if (!r->values->output_dir) return is_newer(r->values->output, input);
    for (int w = 0; w < r->n_writers; w++) {
        const int last = (lanes || r->speakers) && r->writers[w]->holds != LIN_WRITER_MANY;
        int there = 0;
        for (int channel = 0; channel <= last; channel++) {
            there |= name_file(r, r->writers[w], input->name, channel, path, NULL) == LIN_OK && is_newer(path, input);
        }
        if (!there) return 0;
    }
    return 1;
}

// One stream is done completely or not at all.
static void mark_done(const lin_results *r, lin_inputs *inputs, int lanes)
{
    inputs->n_done = 0;
    for (int i = 0; i < inputs->n; i++) inputs->n_done += inputs->items[i].done = is_done(r, &inputs->items[i], lanes);
    if (r->values->output_dir || inputs->n_done == inputs->n) return;
    for (int i = 0; i < inputs->n; i++) inputs->items[i].done = 0;
    inputs->n_done = 0;
}

lin_status lin_results_fit(const lin_results *r, lin_inputs *inputs, int lanes, lin_error *err)
{
    const lin_writer *w = r->writers[0];
    lin_status status = lin_mirror_names(inputs, r->values->input_root, err);
    if (status == LIN_OK) status = guard(r, inputs, lanes, err);
    if (status == LIN_OK && r->values->skip_done) mark_done(r, inputs, lanes);
    if (status != LIN_OK || r->values->output_dir) return status == LIN_OK ? lin_mirror_check(inputs, err) : status;
    if (w->holds != LIN_WRITER_MANY && (inputs->n > 1 || lanes)) {
        return lin_fail(err, LIN_INVALID, "a file of %s holds one %s: use --output-dir%s", w->name,
                        inputs->n > 1 ? "recording" : "channel", inputs->n > 1 ? "" : ", or --speakers for one transcript");
    }
    const char *twice = lin_inputs_twice(inputs);
    if (twice && (strcmp(w->name, "trn") == 0 || strcmp(w->name, "ctm") == 0)) {
        lin_complain("two files are called %s; scoring tools will not take their results", twice);
    }
    return LIN_OK;
}

/* ---- one stream ------------------------------------------------------------------------------------------------------------ */

static const char *out_name(const lin_results *r) { return r->out.path ? r->out.path : "standard output"; }

// Writes the buffered text, at once if it may be watched.
static lin_status send(lin_results *r, int at_once, lin_error *err)
{
    lin_status status = lin_buffer_status(&r->text, err);
    if (status == LIN_OK) status = lin_buffer_write(&r->text, r->out.file, out_name(r), err);
    if (status == LIN_OK && (at_once || !r->out.path)) fflush(r->out.file);
    lin_buffer_clear(&r->text);
    return status;
}

lin_status lin_results_open(lin_results *r, const lin_phones *phones, int many, lin_error *err)
{
    r->how.phones = phones;
    if (r->punctuation) r->how.speller = r->speller = lin_find_speller(phones);
    r->how.with_id = r->values->ids || (many && !r->values->output_dir);
    if (r->values->output_dir) return lin_make_folders(r->values->output_dir, strlen(r->values->output_dir), err);
    lin_status status = lin_output_open(r->values->output, LIN_FILE_KEEP_STALE, &r->out, err);
    if (status != LIN_OK) return status;
    r->how.document = &r->document;
    status = lin_writer_begin(r->writers[0], &r->how, &r->text, err);
    return status == LIN_OK && r->text.n ? send(r, 0, err) : status;
}

/* ---- a folder -------------------------------------------------------------------------------------------------------------- */

static lin_status own_file(lin_results *r, const lin_writer *writer, const char *name, int channel, lin_error *err)
{
    char path[LONGEST_PATH];
    lin_status status = name_file(r, writer, name, channel, path, err);
    if (status == LIN_OK && channel) status = lin_guard_writes(path, err); // of speakers found while aligning
    if (status == LIN_OK) status = lin_mirror_folder(path, err);
    if (status != LIN_OK) return status;
    if (!r->is_part) return lin_output_write(path, LIN_FILE_OF_MANY, &r->text, err);
    lin_output out;
    status = lin_output_open(path, 0, &out, err);
    if (status == LIN_OK) status = lin_buffer_write(&r->text, out.file, path, err);
    if (status == LIN_OK) lin_output_keep(&out);
    else lin_output_abort(&out);
    return status;
}

// One file for all lanes of an input, or, if the format holds one only, a file per lane.
// All results of an input: turns in the order of time, or one behind the other.
static lin_status put_all(lin_results *r, const lin_writer *writer, const lin_writer_options *how, const lin_result *const *list,
                          int n, lin_error *err)
{
    lin_status status = LIN_OK;
    if (!r->by_turns || n < 2 || !r->turns.n || strcmp(writer->name, "textgrid") == 0)
        return lin_write_speakers(writer, list, n, how, &r->text, err);
    for (int i = 0; i < r->turns.n && status == LIN_OK; i++) {
        const lin_turn *turn = &r->turns.items[i];
        lin_writer_options own = *how;
        lin_writer_source source = how->source ? *how->source : (lin_writer_source){0};
        source.record = NULL; // of which one utterance is one line
        source.text = NULL;
        source.start_s = turn->start_s;
        source.duration_s = turn->end_s - turn->start_s;
        own.source = &source;
        own.with_speaker = 1;
        own.with_id = r->how.with_id;
        own.until_s = turn->until_s < turn->result.seconds ? turn->until_s : 0;
        status = writer->write(&turn->result, &own, &r->text, err);
    }
    return status;
}

static lin_status put_in_folder(lin_results *r, const lin_writer *writer, const lin_writer_options *how, const char *name,
                                const lin_result *const *list, int n, lin_error *err)
{
    const int can = writer->holds == LIN_WRITER_MANY || r->by_turns || (r->speakers && lin_writer_holds_speakers(writer));
    const int together = can ? n : 1;
    lin_status status = LIN_OK;
    // the first lane last: if its file exists, all do (is_done)
    for (int first = n - together; first >= 0 && status == LIN_OK; first -= together) {
        lin_writer_document document = {0};
        lin_writer_options own = *how;
        own.document = &document;
        lin_buffer_clear(&r->text);
        status = lin_writer_begin(writer, &own, &r->text, err);
        if (status == LIN_OK) status = put_all(r, writer, &own, list + first, together, err);
        if (status == LIN_OK) status = own_file(r, writer, name, n > together ? list[first]->channel : 0, err);
    }
    lin_buffer_clear(&r->text);
    return status;
}

/* ---- both ------ ----------------------------------------------------------------------------------------------------------- */

lin_status lin_results_put(lin_results *r, const lin_input *input, const lin_result *const *list, int n, lin_error *err)
{
    lin_status status = LIN_OK;
    lin_writer_options how = r->how;
    const lin_part *part = &input->cut.part;
    const lin_writer_source source = {input->record, input->path, input->said, part->start_s,
                                      part->end_s > 0 ? part->end_s - part->start_s : 0};
    how.source = &source;
    how.with_id |= n > 1;
    if (r->by_turns && n > 1) status = lin_turns_make(&r->turns, input->id, list, n, err);
    if (r->values->output_dir) {
        for (int w = 0; w < r->n_writers && status == LIN_OK; w++) {
            status = put_in_folder(r, r->writers[w], &how, input->name, list, n, err);
        }
        r->n_put += status == LIN_OK;
        return status;
    }
    const lin_writer_document before = r->document;
    if (r->speakers && status == LIN_OK) status = put_all(r, r->writers[0], &how, list, n, err);
    for (int i = 0; i < n && status == LIN_OK && !r->speakers; i++) status = r->writers[0]->write(list[i], &how, &r->text, err);
    r->n_put += status == LIN_OK;
    if (status == LIN_OK) return send(r, 0, err);
    r->document = before;
    lin_buffer_clear(&r->text);
    return status;
}

static int is_text(const lin_results *r) { return strcmp(r->writers[0]->name, "text") == 0; }

int lin_results_can_flow(const lin_results *r)
{
    static const char *const by_line[] = {"ctm", "csv", "audacity"};
    int can = is_text(r) && !r->how.with_id;
    for (int i = 0; i < 3; i++) can |= strcmp(r->writers[0]->name, by_line[i]) == 0;
    return can && !r->values->output_dir;
}

// Readable text comes a few words later than plain words: what is certain is written.
static lin_status put_readable(lin_results *r, const lin_result *more, int is_end, lin_error *err)
{
    lin_status status = LIN_OK;
    const lin_tokens t = lin_tokens_only(more, &r->how, 1);
    for (int i = 0; i < t.n && status == LIN_OK; i++) status = lin_token_push_readable(&t, i, &r->readable, err);
    if (status == LIN_OK && is_end) status = lin_readable_finish(&r->readable, err);
    for (int i = 0; i < r->readable.n && status == LIN_OK; i++) {
        const lin_readable_token *token = &r->readable.tokens[i];
        const size_t from = lin_begin_text_token(&r->how, &r->layout, token->start_s, &r->text);
        lin_buffer_text(&r->text, lin_readable_token_text(&r->readable, i));
        lin_end_text_token(&r->how, &r->layout, from, token->end_s, &r->text);
        r->told = 1;
    }
    lin_readable_clear(&r->readable);
    return status == LIN_OK ? send(r, 1, err) : status;
}

lin_status lin_results_flow(lin_results *r, const lin_result *more, lin_error *err)
{
    if (r->how.readable && is_text(r)) return put_readable(r, more, 0, err);
    if (more->n_phones == 0 && more->n_words == 0) return LIN_OK;
    lin_writer_options how = r->how;
    how.layout = &r->layout;
    lin_status status = r->writers[0]->write(more, &how, &r->text, err);
    if (status != LIN_OK) return status;
    if (is_text(r)) r->text.n--; // the line continues
    r->told = 1;
    return send(r, 1, err);
}

lin_status lin_results_flow_end(lin_results *r, const lin_result *rest, lin_error *err)
{
    const int readable = r->how.readable && is_text(r);
    lin_status status = readable ? put_readable(r, rest, 1, err) : lin_results_flow(r, rest, err);
    if (status == LIN_OK && !r->told && !is_text(r)) status = r->writers[0]->write(rest, &r->how, &r->text, err);
    if (is_text(r)) lin_buffer_char(&r->text, '\n');
    return status == LIN_OK ? send(r, 1, err) : status;
}

int lin_results_wants_part(lin_results *r, const lin_inputs *inputs)
{
    const int wanted = r->values->output_dir || (r->out.path && inputs->n == 1);
    r->is_part = wanted;
    return wanted;
}

lin_status lin_results_close(lin_results *r, lin_status status, int n_failed, lin_error *err)
{
    const int nothing = r->n_put == 0 && !r->told;
    if (!r->out.file) return status;
    if (nothing && (status == LIN_STOPPED || (status == LIN_OK && n_failed))) {
        if (r->out.path) lin_complain("%s was not written", r->out.path);
        lin_output_abort(&r->out);
        return status;
    }
    return lin_output_end(&r->out, status, err);
}

void lin_results_free(lin_results *r)
{
    lin_buffer_free(&r->text);
    lin_readable_free(&r->readable);
    lin_turns_free(&r->turns);
    lin_g2p_rules_destroy(r->speller);
    lin_punctuation_destroy(r->punctuation);
    lin_output_abort(&r->out);
    *r = (lin_results){0};
}
