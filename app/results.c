// results.c - output of results; see results.h.

#include "app/results.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/system.h"
#include "base/textfile.h"
#include "decoder/writers.h"
#include "frontend/audio.h"
#include "linnet/find.h"

enum { LONGEST_PATH = 4096 };

static const double PARAGRAPH_S = 2; // a longer pause ends a paragraph

/* ---- formats --------------------------------------------------------------------------------------------------------------- */

// The nearest format for common other names and extensions.
static const char *nearest_format(const char *name)
{
    static const char *const others[][2] = { // names, each followed by a blank
        {"docx doc odt rtf pdf html md plain kaldi ", "text"},
        {"subrip ass ssa sub sbv ttml subtitles ", "srt"},
        {"webvtt ", "vtt"},
        {"praat eaf ", "textgrid"},
        {"xlsx xls ods tsv ", "csv"},
        {"ndjson xml yaml ", "json"},
        {"sclite ", "trn"},
        {"labels ", "audacity"},
    };
    char lower[32];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof lower; n++) lower[n] = lin_lower(name[n]);
    lower[n] = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (n && !strchr(lower, ' ') && lin_list_has(others[i][0], lower)) return others[i][1];
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
    const lin_writer *itself = v->format ? NULL : lin_writer_find(v->output);
    if (itself && strcmp(itself->name, "text") != 0)
        return lin_misuse(parsed, "--output (-o) names the file; for the format use --format %s", itself->name);
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

// Whether an option was given; under: the one that it is a value of, or "".
static int given(const lin_parsed *parsed, const char *under, const char *name)
{
    if (!parsed || !lin_options_given(parsed, name)) return 0;
    const char *has = parsed->command->options[lin_options_find(parsed->command, name)].under;
    return strcmp(has ? has : "", under) == 0;
}

// Refuses layout options of formats that are not written.
static int check_layout(const lin_results *r, const lin_parsed *parsed, const lin_results_values *v)
{
    const int both = r->how.unit == LIN_UNIT_BOTH;
    const char *unit = !both ? "text ctm trn srt vtt textgrid csv audacity nemo "
                       : lin_options_find(parsed->command, "layout") < 0 ? "text textgrid csv " // of align: a table
                                                                         : "textgrid csv ";
    const struct {
        const char *under, *option, *formats; // formats: each followed by a blank
    } uses[] = {
        {"layout", "paragraphs", "text "}, {"layout", "columns", "text "}, {"layout", "times", "text "},
        {"cues", "width", "srt vtt "},     {"cues", "rows", "srt vtt "},   {"cues", "min", "srt vtt "},
        {"cues", "max", "srt vtt "},       {"cues", "speed", "srt vtt "},  {"cues", "gap", "srt vtt "},
        {"cues", "script", "srt vtt "},    {"cues", "word-times", "vtt "}, {"", "min-confidence", "text json srt vtt "},
        {"", "unit", unit},
    };
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        int used = !given(parsed, uses[i].under, uses[i].option);
        for (int w = 0; w < r->n_writers && !used; w++) used = lin_list_has(uses[i].formats, r->writers[w]->name);
        if (used) continue;
        const char *name = both && !strcmp(uses[i].option, "unit") ? "unit both" : uses[i].option;
        return lin_misuse(parsed, "--%s%s%s has no effect on %s; it is for %.*s", uses[i].under, *uses[i].under ? " " : "", name,
                          v->format ? v->format : r->writers[0]->name, (int)strlen(uses[i].formats) - 1, uses[i].formats);
    }
    return LIN_EXIT_OK;
}

int lin_results_check(lin_results *r, const lin_parsed *parsed, const lin_results_values *v)
{
    *r = (lin_results){.values = v, .part = {0, INFINITY}};
    r->how = (lin_writer_options){.ipa = v->ipa, .word_times = v->word_times, .paragraph_times = v->times, .cues = v->cues};
    r->how.cues.shortest_ms = (int)(v->cue_min_s * 1000);
    r->how.cues.longest_ms = (int)(v->cue_max_s * 1000);
    if (v->cue_min_s > v->cue_max_s)
        return lin_misuse(parsed, "--cues min=%g must not be above max=%g", v->cue_min_s, v->cue_max_s);
    // Text for programs is one line, unless an option divides it; text for people: lin_results_make_readable.
    const int paragraphs = v->paragraphs && (given(parsed, "layout", "paragraphs") || v->times);
    if (paragraphs) r->how.paragraph_s = PARAGRAPH_S;
    if (paragraphs || given(parsed, "layout", "columns")) r->how.columns = v->columns;
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
    if (v->format && by_name && strcmp(by_name->name, "text") != 0 && strcmp(by_name->extension, r->writers[0]->extension) != 0)
        lin_complain("%s gets the format %s, which --format names, not that of its extension", v->output, v->format);
    r->is_laid_out = given(parsed, "layout", "paragraphs") || given(parsed, "layout", "columns") || v->times;
    if (r->is_laid_out && v->ids)
        return lin_misuse(parsed, "--ids and --layout exclude each other: with --ids each file is one line");
    return check_layout(r, parsed, v);
}

int lin_results_check_search(const lin_results *r, const lin_parsed *parsed, const lin_decoding_values *v)
{
    int has_json = 0;
    for (int i = 0; i < r->n_writers; i++) has_json |= strcmp(r->writers[i]->name, "json") == 0;
    if ((v->keywords.count || v->keywords_file) && !has_json)
        return lin_misuse(parsed, "--keyword and --keywords need --format json: only JSON has them");
    if (v->n_best > 1 && !has_json) return lin_misuse(parsed, "--n-best needs --format json: only JSON has alternatives");
    if (r->how.unit == LIN_UNIT_WORDS && !v->words) return lin_misuse(parsed, "--unit words needs --words");
    return LIN_EXIT_OK;
}

lin_status lin_results_make_readable(lin_results *r, const lin_phones *phones, double least, lin_error *err)
{
    int wanted = 0;
    for (int i = 0; i < r->n_writers; i++) wanted |= lin_list_has("text json srt vtt ", r->writers[i]->name);
    if (!wanted || r->how.unit == LIN_UNIT_PHONES || r->punctuation) return LIN_OK;
    r->how.paragraph_s = r->values->paragraphs ? PARAGRAPH_S : 0;
    r->how.columns = r->values->columns;
    LIN_TRY(lin_find_open_punctuation(phones, &r->punctuation, err));
    r->how.readable = r->punctuation;
    r->how.least = least;
    if (r->punctuation) lin_readable_begin(&r->readable, r->punctuation);
    r->readable.paragraph_s = r->how.paragraph_s;
    return LIN_OK;
}

// channel: of one lane; 0: of all lanes
static lin_status name_file(const lin_results *r, const lin_writer *writer, const char *name, int channel,
                            char path[LONGEST_PATH], lin_error *err)
{
    char lane[16] = "";
    if (channel) snprintf(lane, sizeof lane, "-%d", channel);
    const int n = snprintf(path, LONGEST_PATH, "%s/%s%s.%s", r->values->output_dir, name, lane, writer->extension);
    if (n >= 0 && n < LONGEST_PATH && strlen(lin_base_name(path)) <= NAME_MAX) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "the name of the result of %.200s is too long", name);
}

// No result may be an input: a sound, or a text beside it. Those of channels and speakers: own_file.
static lin_status guard(const lin_results *r, const lin_inputs *inputs, lin_error *err)
{
    char path[LONGEST_PATH];
    for (int i = 0; i < inputs->n; i++) {
        if (!inputs->items[i].cut.is_command) LIN_TRY(lin_guard_reads(inputs->items[i].path, err));
    }
    if (r->values->output && strcmp(r->values->output, "-") != 0) LIN_TRY(lin_guard_writes(r->values->output, err));
    for (int i = 0; r->values->output_dir && i < inputs->n; i++) {
        for (int w = 0; w < r->n_writers; w++) {
            LIN_TRY(name_file(r, r->writers[w], inputs->items[i].name, 0, path, err));
            LIN_TRY(lin_guard_writes(path, err));
        }
    }
    return LIN_OK;
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

// 0: unknown, for a command, a pipe or headerless samples.
static int count_channels(const char *path)
{
    struct stat st;
    lin_audio *audio;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || lin_audio_open(path, NULL, &audio, NULL) != LIN_OK) return 0;
    const int n = lin_audio_info(audio)->channels;
    lin_audio_close(audio);
    return n;
}

// Whether a result is done and not claimed by another input; claim: claims it for this one.
static int has(const lin_results *r, const lin_writer *writer, const lin_input *input, int channel, int claim)
{
    char path[LONGEST_PATH];
    if (name_file(r, writer, input->name, channel, path, NULL) != LIN_OK || !is_newer(path, input)) return 0;
    return (claim ? lin_guard_wrote : lin_guard_writes)(path, NULL) == LIN_OK;
}

static int is_done(const lin_results *r, const lin_input *input, int lanes)
{
    if (strcmp(input->path, "-") == 0) return 0;
    if (!r->values->output_dir) return is_newer(r->values->output, input);
    const int n = lanes ? count_channels(input->path) : 1, is_grid = input->text && lin_corpus_is_textgrid(input->text);
    for (int claim = 0; claim < 2; claim++) {
        for (int w = 0; w < r->n_writers; w++) {
            const lin_writer *writer = r->writers[w];
            const int first = n != 1 && writer->holds != LIN_WRITER_MANY;
            if (first > n) return 0;
            for (int channel = first; channel <= (first ? n : 0); channel++) {
                // a TextGrid has one speaker or several
                if (!has(r, writer, input, channel, claim) && !(is_grid && has(r, writer, input, 1, claim))) return 0;
            }
        }
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

// Names the results of these inputs, and with --skip-done marks those that are done. LIN_INVALID, with advice, if two would be
// one file, or if several do not fit into one. lanes: an input may have several results (channels).
static lin_status name_results(const lin_results *r, lin_inputs *inputs, int lanes, lin_error *err)
{
    const lin_writer *w = r->writers[0];
    LIN_TRY(lin_inputs_name_results(inputs, r->values->input_root, err));
    LIN_TRY(guard(r, inputs, err));
    if (r->values->skip_done) mark_done(r, inputs, lanes);
    if (r->values->output_dir) return lin_inputs_check_names(inputs, err);
    if (w->holds != LIN_WRITER_MANY && (inputs->n > 1 || lanes)) {
        return lin_fail(err, LIN_INVALID, "a file of %s holds one %s: use --output-dir%s", w->name,
                        inputs->n > 1 ? "recording" : "channel", inputs->n > 1 ? "" : ", or --speakers for one transcript");
    }
    return LIN_OK;
}

/* ---- one stream ------------------------------------------------------------------------------------------------------------ */

static int is_text(const lin_results *r) { return strcmp(r->writers[0]->name, "text") == 0; }

// Writes the buffered text.
static lin_status send(lin_results *r, lin_error *err)
{
    const lin_status status = lin_buffer_write(&r->text, r->out.file, r->out.path ? r->out.path : "standard output", err);
    lin_buffer_clear(&r->text);
    return status;
}

lin_status lin_results_open(lin_results *r, const lin_phones *phones, int many, lin_error *err)
{
    r->how.phones = phones;
    if (r->punctuation) LIN_TRY(lin_find_speller(phones, &r->speller, err));
    r->how.speller = r->speller;
    r->how.with_id = r->values->ids || (many && !r->values->output_dir);
    int has_phones = !r->how.ipa || !r->how.readable;
    for (int i = 0; i < r->n_writers; i++)
        has_phones |= !lin_list_has("text srt vtt ", r->writers[i]->name) || (is_text(r) && r->how.with_id);
    if (!has_phones)
        return lin_fail(err, LIN_INVALID, "--ipa has no effect on readable text, which has no phonemes; leave out --words, or "
                                          "add --no-readable");
    if (r->how.with_id && r->is_laid_out)
        return lin_fail(err, LIN_INVALID, "the text of several files has a line for each; --layout needs --output-dir");
    if (r->values->output_dir) return lin_make_folders(r->values->output_dir, strlen(r->values->output_dir), err);
    LIN_TRY(lin_output_open(r->values->output, LIN_FILE_KEEP_STALE, &r->out, err));
    r->how.document = &r->document;
    LIN_TRY(lin_writer_begin(r->writers[0], &r->how, &r->text, err));
    return r->text.n ? send(r, err) : LIN_OK;
}

/* ---- a folder -------------------------------------------------------------------------------------------------------------- */

static lin_status own_file(lin_results *r, const lin_writer *writer, const char *name, int channel, lin_error *err)
{
    char path[LONGEST_PATH];
    LIN_TRY(name_file(r, writer, name, channel, path, err));
    if (lin_guard_writes(path, NULL) != LIN_OK)
        return lin_fail(err, LIN_INVALID, "%s is an input or the result of another one; rename one of them, or use an "
                                          "--output-dir for each", path);
    LIN_TRY(lin_make_folders_of(path, err));
    if (!r->is_part) LIN_TRY(lin_output_write(path, LIN_FILE_OF_MANY, &r->text, err));
    if (!r->is_part) return lin_guard_wrote(path, err);
    lin_output out;
    LIN_TRY(lin_output_open(path, 0, &out, err));
    const lin_status status = lin_buffer_write(&r->text, out.file, path, err);
    lin_output_end(&out, status == LIN_OK ? LIN_STOPPED : status, NULL);
    return status;
}

// All results of an input: turns in the order of time, or one behind the other.
static lin_status put_all(lin_results *r, const lin_writer *writer, const lin_writer_options *how, const lin_result *const *list,
                          int n, lin_error *err)
{
    if (!r->by_turns || n < r->by_turns) return lin_write_speakers(writer, list, n, how, &r->text, err);
    return lin_turns_write(&r->turns, writer, list, n, how, &r->text, err);
}

// One file for all lanes of an input, or, if the format holds one only, a file per lane.
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
        if (status == LIN_OK) status = own_file(r, writer, name, n > together ? first + 1 : 0, err);
    }
    lin_buffer_clear(&r->text);
    return status;
}

/* ---- both ------------------------------------------------------------------------------------------------------------------ */

// Reports once that scoring tools cannot tell two results apart.
static lin_status note_id(lin_results *r, const char *id, lin_error *err)
{
    const int before = r->ids.n;
    int index;
    if (!lin_list_has("trn ctm ", r->writers[0]->name)) return LIN_OK;
    LIN_TRY(lin_symbols_add(&r->ids, id, strlen(id), &index, err));
    if (r->ids.n == before && !r->is_twice++)
        lin_complain("two results are called %s; scoring tools will reject them", id);
    return LIN_OK;
}

lin_status lin_results_put(lin_results *r, const lin_input *input, const lin_result *const *list, int n, lin_error *err)
{
    lin_status status = LIN_OK;
    lin_writer_options how = r->how;
    const int whole = r->part.start_s <= 0 && isinf(r->part.end_s); // no --start, no --end
    const lin_part part = whole ? input->cut.part : r->part;
    const char *record = whole ? input->record : NULL;
    const lin_writer_source source = {.record = record,
                                      .names_channel = r->by_channel || (input->cut.channel && !record),
                                      .path = input->path,
                                      .text = whole ? input->said : NULL,
                                      .start_s = part.start_s,
                                      .duration_s = !whole || lin_cut_is_part(&input->cut) ? list[0]->seconds - part.start_s : 0};
    how.source = &source;
    const int turns = r->by_turns && n >= r->by_turns;
    if (turns) status = lin_turns_make(&r->turns, input->id, list, n, err);
    how.with_id |= n > 1 && !(turns && r->turns.n);
    if (r->values->output_dir) {
        for (int w = 0; w < r->n_writers && status == LIN_OK; w++) {
            status = put_in_folder(r, r->writers[w], &how, input->name, list, n, err);
        }
        r->n_put += status == LIN_OK;
        return status;
    }
    const lin_writer_document before = r->document;
    for (int i = 0; i < (turns ? 1 : n) && status == LIN_OK; i++) status = note_id(r, turns ? input->id : list[i]->id, err);
    if (r->speakers && status == LIN_OK) status = put_all(r, r->writers[0], &how, list, n, err);
    for (int i = 0; i < n && status == LIN_OK && !r->speakers; i++)
        status = lin_write(r->writers[0], list[i], &how, &r->text, err);
    r->n_put += status == LIN_OK;
    if (status == LIN_OK) return send(r, err);
    r->document = before;
    lin_buffer_clear(&r->text);
    return status;
}

int lin_results_can_flow(const lin_results *r)
{
    const int can = is_text(r) ? !r->how.with_id : lin_list_has("ctm csv audacity ", r->writers[0]->name);
    return can && !r->values->output_dir;
}

// Readable text lags plain words by a few words: only what is certain is written.
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
    return status == LIN_OK ? send(r, err) : status;
}

lin_status lin_results_flow(lin_results *r, const lin_result *more, lin_error *err)
{
    if (r->how.readable && is_text(r)) return put_readable(r, more, 0, err);
    if (more->n_phones == 0 && more->n_words == 0) return LIN_OK;
    lin_writer_options how = r->how;
    how.layout = &r->layout;
    LIN_TRY(lin_write(r->writers[0], more, &how, &r->text, err));
    if (is_text(r)) r->text.n--; // the line continues
    r->told = 1;
    return send(r, err);
}

lin_status lin_results_flow_end(lin_results *r, const lin_result *rest, lin_error *err)
{
    const int readable = r->how.readable && is_text(r);
    lin_status status = readable ? put_readable(r, rest, 1, err) : lin_results_flow(r, rest, err);
    if (status == LIN_OK && !r->told && !is_text(r)) status = lin_write(r->writers[0], rest, &r->how, &r->text, err);
    if (is_text(r)) lin_buffer_char(&r->text, '\n');
    return status == LIN_OK ? send(r, err) : status;
}

int lin_results_wants_part(lin_results *r, const lin_inputs *inputs)
{
    return r->is_part = r->values->output_dir || (r->out.path && inputs->n == 1);
}

lin_status lin_results_close(lin_results *r, lin_status status, int n_failed, lin_error *err)
{
    if (!r->out.file) return status;
    const int nothing = (r->n_put == 0 && !r->told) || ferror(r->out.file);
    if (nothing && (status == LIN_STOPPED || (status == LIN_OK && n_failed))) {
        if (r->out.path) lin_complain("%s was not written", r->out.path);
        lin_output_end(&r->out, LIN_INVALID, NULL);
        return status;
    }
    return lin_output_end(&r->out, status, err);
}

void lin_results_free(lin_results *r)
{
    lin_buffer_free(&r->text);
    lin_symbols_free(&r->ids);
    lin_readable_free(&r->readable);
    lin_turns_free(&r->turns);
    lin_g2p_rules_destroy(r->speller);
    lin_punctuation_destroy(r->punctuation);
    lin_output_end(&r->out, LIN_INVALID, NULL);
    *r = (lin_results){0};
}

/* ---- turns ----------------------------------------------------------------------------------------------------------------- */

static const double PAUSE_S = 0.5, LONG_PAUSE_S = 2;

// Words, or phones where none were looked for, of one result without a pause between them.
typedef struct piece {
    int of, first, n;
    double start_s, end_s;
} piece;

typedef struct pieces {
    piece *items;
    int n, capacity;
} pieces;

static lin_status add_pieces(pieces *p, const lin_result *r, int of, lin_error *err)
{
    for (int i = 0; i < lin_result_items(r); i++) {
        const lin_item now = lin_result_item(r, i);
        piece *last = p->n ? &p->items[p->n - 1] : NULL;
        if (i && now.start_s - last->end_s < PAUSE_S) {
            last->n++;
            last->end_s = fmax(last->end_s, now.end_s);
            continue;
        }
        LIN_TRY(lin_grow_int(&p->items, &p->capacity, (int64_t)p->n + 1, sizeof *p->items, "turns", err));
        p->items[p->n++] = (piece){of, i, 1, now.start_s, now.end_s};
    }
    return LIN_OK;
}

static int by_time(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    if (x->start_s != y->start_s) return x->start_s < y->start_s ? -1 : 1;
    return x->of != y->of ? (x->of > y->of) - (x->of < y->of) : (x->first > y->first) - (x->first < y->first);
}

// Pieces of one speaker without another speaker between them become one.
static void join(pieces *p)
{
    int kept = 0;
    for (int i = 0; i < p->n; i++) {
        piece *last = kept ? &p->items[kept - 1] : NULL;
        const piece *now = &p->items[i];
        if (last && last->of == now->of && now->start_s - last->end_s < LONG_PAUSE_S) {
            last->n += now->n;
            last->end_s = fmax(last->end_s, now->end_s);
        } else {
            p->items[kept++] = *now;
        }
    }
    p->n = kept;
}

static lin_status add_turn(lin_turns *t, const char *name, const lin_result *from, const piece *p, double until_s, lin_error *err)
{
    char id[512];
    const int before = t->capacity;
    LIN_TRY(lin_grow_int(&t->items, &t->capacity, (int64_t)t->n + 1, sizeof *t->items, "turns", err));
    memset(t->items + before, 0, (size_t)(t->capacity - before) * sizeof *t->items);
    lin_turn *turn = &t->items[t->n];
    snprintf(id, sizeof id, "%.300s-%.100s-%04d", name, from->speaker, t->n + 1);
    lin_make_id(id);
    LIN_TRY(lin_result_begin(&turn->result, id, from->speaker, from->channel, err));
    LIN_TRY(lin_result_append_part(&turn->result, from, p->first, p->n, err));
    if (p->first == 0) LIN_TRY(lin_result_set_voices(&turn->result, from->voices, from->n_voices, from->voice_size, err));
    turn->result.seconds = from->seconds;
    turn->start_s = p->start_s;
    turn->end_s = p->end_s;
    turn->until_s = fmax(until_s, p->end_s);
    t->n++;
    return LIN_OK;
}

lin_status lin_turns_make(lin_turns *t, const char *name, const lin_result *const *results, int n, lin_error *err)
{
    pieces p = {0};
    lin_status status = LIN_OK;
    t->n = 0;
    for (int i = 0; i < n && status == LIN_OK; i++) status = add_pieces(&p, results[i], i, err);
    if (p.n) qsort(p.items, (size_t)p.n, sizeof *p.items, by_time);
    join(&p);
    for (int i = 0; i < p.n && status == LIN_OK; i++)
        status = add_turn(t, name, results[p.items[i].of], &p.items[i], i + 1 < p.n ? p.items[i + 1].start_s : INFINITY, err);
    lin_free(p.items);
    return status;
}

lin_status lin_turns_write(const lin_turns *turns, const lin_writer *writer, const lin_result *const *list, int n,
                           const lin_writer_options *how, lin_buffer *out, lin_error *err)
{
    const int whole = strcmp(writer->name, "textgrid") == 0 || strcmp(writer->name, "rttm") == 0;
    if (!turns->n || whole) return lin_write_speakers(writer, list, n, how, out, err);
    for (int i = 0; i < turns->n; i++) {
        const lin_turn *turn = &turns->items[i];
        lin_writer_options own = *how;
        lin_writer_source source = how->source ? *how->source : (lin_writer_source){0};
        source.record = NULL; // a manifest's line is a whole utterance
        source.text = NULL;
        source.start_s = turn->start_s;
        source.duration_s = turn->end_s - turn->start_s;
        own.source = &source;
        own.with_speaker = 1;
        own.until_s = turn->until_s < turn->result.seconds ? turn->until_s : 0;
        LIN_TRY(lin_write(writer, &turn->result, &own, out, err));
    }
    return LIN_OK;
}

void lin_turns_free(lin_turns *t)
{
    for (int i = 0; i < t->capacity; i++) lin_result_free(&t->items[i].result);
    lin_free(t->items);
    *t = (lin_turns){0};
}

/* ---- speakers -------------------------------------------------------------------------------------------------------------- */

const char *lin_speaker_name(const char *names, int number, const char *other, char *name, size_t capacity)
{
    for (int i = 1; i < number && names; i++) {
        names = strchr(names, ',');
        if (names) names++;
    }
    if (names) names += strspn(names, " ");
    int n = names ? (int)strcspn(names, ",") : 0;
    while (n && names[n - 1] == ' ') n--;
    if (n) snprintf(name, capacity, "%.*s", n, names);
    else snprintf(name, capacity, "%s%d", other, number);
    return name;
}

lin_status lin_part_speakers(const lin_result *all, const char *names, lin_result *speakers, int *n, lin_error *err)
{
    *n = all->n_voices;
    for (int i = 0; i < *n; i++) {
        char name[128];
        lin_speaker_name(names, i + 1, "S", name, sizeof name);
        LIN_TRY(lin_result_begin(&speakers[i], all->id, name, all->channel, err));
        LIN_TRY(lin_result_append_speaker(&speakers[i], all, i + 1, err));
    }
    return LIN_OK;
}

/* ---- many inputs, on several threads --------------------------------------------------------------------------------------- */

struct lin_bulk_outcome {
    lin_status status;
    lin_error error;
};

lin_status lin_bulk_begin(lin_bulk *b, int lanes, lin_error *err)
{
    lin_progress_begin(&b->progress, 1);
    return name_results(&b->results, &b->inputs, lanes, err);
}

// At least as many inputs as threads: each thread takes whole inputs. Fewer: several threads share the work inside an input.
lin_status lin_bulk_threads(lin_bulk *b, size_t slot_bytes, size_t thread_bytes, lin_error *err)
{
    const int cores = lin_ordered_threads(b->jobs, 1024), n = lin_ordered_threads(b->jobs, b->inputs.n);
    b->n_slots = lin_ordered_slots(n);
    b->cores_each = cores / n > 1 ? cores / n : 1;
    b->slot_bytes = slot_bytes;
    b->thread_bytes = thread_bytes;
    b->slots = lin_calloc((size_t)b->n_slots, slot_bytes);
    b->threads = lin_calloc((size_t)n, thread_bytes);
    b->outcomes = lin_calloc((size_t)b->n_slots, sizeof *b->outcomes);
    if (!b->slots) b->n_slots = 0;
    if (b->threads) b->n_threads = n;
    if (!b->slots || !b->threads || !b->outcomes) return lin_no_memory(err, "threads", (size_t)n * thread_bytes);
    return LIN_OK;
}

void *lin_bulk_slot(const lin_bulk *b, int slot) { return b->slots + (size_t)slot * b->slot_bytes; }

void *lin_bulk_thread(const lin_bulk *b, int thread) { return b->threads + (size_t)thread * b->thread_bytes; }

static void work(void *context, int item, int slot, int thread)
{
    const lin_bulk *b = context;
    lin_bulk_outcome *o = &b->outcomes[slot];
    o->error = (lin_error){0};
    if (b->inputs.items[item].done) return;
    o->status = b->work(b->context, item, slot, thread, &o->error);
}

static lin_status is_bad(lin_bulk *b, int item, const lin_error *error)
{
    lin_complain_of_input(&b->inputs.items[item], error->message);
    b->n_failed++;
    return LIN_OK;
}

static lin_status take(void *context, int item, int slot, lin_error *err)
{
    lin_bulk *b = context;
    const lin_bulk_outcome *o = &b->outcomes[slot];
    const int n = b->inputs.n;
    if (b->inputs.items[item].done) return LIN_OK;
    lin_status status = b->take(b->context, item, slot, o->status, err);
    if (o->status == LIN_STOPPED) return lin_fail(err, LIN_STOPPED, "interrupted after %d of %d %ss", b->n_done, n, b->noun);
    if (o->status != LIN_OK) return is_bad(b, item, &o->error);
    if (status == LIN_INVALID) return is_bad(b, item, err);
    if (status != LIN_OK) return status;
    b->n_done++;
    if (!b->own_progress)
        lin_progress_of(&b->progress, (item + 1.0) / n, "%.0f x real time, %d of %d %ss",
                        b->seconds / (lin_now() - b->progress.begun + 1e-9), item + 1, n, b->noun);
    return LIN_OK;
}

lin_status lin_bulk_run(lin_bulk *b, lin_error *err)
{
    lin_progress_begin(&b->progress, b->quiet);
    lin_status status = lin_ordered_run(&(lin_ordered){b->inputs.n, b->n_threads, b, work, take}, err);
    lin_progress_end(&b->progress);
    return lin_results_close(&b->results, status, b->n_failed, err);
}

int lin_bulk_end(const lin_bulk *b, lin_status status, const lin_error *err)
{
    const double wall = lin_now() - b->progress.begun;
    char failed[32] = "", incomplete[32] = "", done[48] = "", speed[64] = ""; // speed: empty if all were skipped
    if (status != LIN_OK) return lin_give_up(err);
    if (b->n_failed) snprintf(failed, sizeof failed, ", %d failed", b->n_failed);
    if (b->n_incomplete) snprintf(incomplete, sizeof incomplete, ", %d incomplete", b->n_incomplete);
    if (b->inputs.n_done) snprintf(done, sizeof done, ", %d skipped (done before)", b->inputs.n_done);
    if (b->seconds > 0 && wall > 0)
        snprintf(speed, sizeof speed, ": real-time factor %.4f, %.0f x real time", wall / b->seconds, b->seconds / wall);
    if (!b->quiet && !(b->inputs.n == 1 && b->n_failed)) {
        lin_complain("%d %s%s%s%s%s, %.1f s of sound in %.2f s%s", b->n_done, b->noun, b->n_done == 1 ? "" : "s", failed,
                     incomplete, done, b->seconds, wall, speed);
    }
    return lin_interrupted ? LIN_EXIT_INTERRUPTED : b->n_failed + b->n_incomplete > 0 ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

void lin_bulk_free(lin_bulk *b)
{
    lin_free(b->outcomes);
    lin_free(b->slots);
    lin_free(b->threads);
    lin_results_free(&b->results);
    lin_inputs_free(&b->inputs);
}
