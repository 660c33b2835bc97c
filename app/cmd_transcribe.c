// cmd_transcribe.c - linnet transcribe: sound files to phonemes, many at once, results in order.

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/commands.h"
#include "app/common.h"
#include "app/inputs.h"
#include "app/model_options.h"
#include "app/ordered.h"
#include "app/recognize.h"
#include "app/snapshots.h"
#include "app/spans.h"
#include "app/speakers.h"
#include "decoder/greedy.h"
#include "decoder/writers.h"
#include "kernels/memory.h"

typedef struct transcribe_values {
    lin_model_values model;
    lin_input_values input;
    const char *output, *output_dir, *files_from, *data, *audio_root;
    const char *save_state, *load_state, *snapshots, *from_snapshot, *start, *end;
    int format, jobs, ids, ipa, quiet;
} transcribe_values;

static const char *const format_names[] = {"text", "json", "ctm", "trn"};

static const lin_option options[] = {
    {.name = "format", .letter = 'f', .type = LIN_OPTION_CHOICE, .at = offsetof(transcribe_values, format), .text = "text",
     .choices = "text|json|ctm|trn", .help = "text: phonemes; json: a line per file with times and confidences; ctm, trn: NIST's. "
                                             "If not given, the extension of --output decides"},
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .at = offsetof(transcribe_values, output),
     .help = "Where to write; standard output if not given"},
    {.name = "output-dir", .type = LIN_OPTION_FOLDER, .at = offsetof(transcribe_values, output_dir),
     .help = "A file for each input in this folder, which is made if it does not exist"},
    {.name = "files-from", .type = LIN_OPTION_FILE, .at = offsetof(transcribe_values, files_from), .value = "LIST",
     .help = "Also the files named in LIST, one a line"},
    {.name = "data", .type = LIN_OPTION_FOLDER, .at = offsetof(transcribe_values, data),
     .help = "Also the utterances of a Kaldi-style data directory"},
    {.name = "audio-root", .type = LIN_OPTION_FOLDER, .at = offsetof(transcribe_values, audio_root),
     .help = "What the paths in its wav.scp are relative to; if not given, the parent of the data directory"},
    {.name = "ids", .type = LIN_OPTION_FLAG, .at = offsetof(transcribe_values, ids),
     .help = "Begin lines of text with the file's name also where there is only one"},
    {.name = "ipa", .type = LIN_OPTION_FLAG, .at = offsetof(transcribe_values, ipa), .help = "Phonemes in the letters of the IPA"},
    {.name = "jobs", .letter = 'j', .type = LIN_OPTION_INT, .at = offsetof(transcribe_values, jobs), .text = "0", .min = 0,
     .max = 1024,
     .help = "Threads; 0: one per core"},
    {.name = "quiet", .letter = 'q', .type = LIN_OPTION_FLAG, .at = offsetof(transcribe_values, quiet),
     .help = "No progress, no summary"},
    LIN_MODEL_ROWS(transcribe_values, model),
    LIN_INPUT_ROWS(transcribe_values, input),
    {.type = LIN_OPTION_HEADING, .help = "Streams that are put away (docs/streams.md)"},
    {.name = "save-state", .type = LIN_OPTION_FILE, .at = offsetof(transcribe_values, save_state), .value = "STATE",
     .help = "FILE is not the whole sound: write what is certain, and put the stream away in STATE"},
    {.name = "load-state", .type = LIN_OPTION_FILE, .at = offsetof(transcribe_values, load_state), .value = "STATE",
     .help = "Go on with that stream as if it had never stopped; FILE is what comes next, without FILE only its end is written"},
    {.name = "snapshots", .type = LIN_OPTION_STRING, .at = offsetof(transcribe_values, snapshots), .value = "PERIOD",
     .help = "Put the stream away every PERIOD (10s, 1m) of sound, in an index beside the output: its name and .snapshots"},
    {.name = "from-snapshot", .type = LIN_OPTION_FILE, .at = offsetof(transcribe_values, from_snapshot), .value = "INDEX",
     .help = "Only the part of FILE from --start to --end, as it was when INDEX was made"},
    {.name = "start", .type = LIN_OPTION_STRING, .at = offsetof(transcribe_values, start), .value = "TIME",
     .help = "Phonemes that begin at this time (90, 1:30, 1:23:40.5) or later"},
    {.name = "end", .type = LIN_OPTION_STRING, .at = offsetof(transcribe_values, end), .value = "TIME",
     .help = "And before this one; if not given, to the end"},
    {.type = LIN_OPTION_END},
};

typedef struct transcribe_job transcribe_job;

// What a thread keeps while it hears one file: a decoder and a result per lane.
typedef struct listener {
    transcribe_job *job;
    lin_ear *ear;
    lin_greedy greedy[LIN_AUDIO_MAX_CHANNELS];
    lin_result result[LIN_AUDIO_MAX_CHANNELS];
    lin_greedy_phone *phones;
    int capacity;
    const lin_input *input;
    FILE *live; // phones go here at once, and are not kept
    int told;             // there are some
    lin_buffer line;
    lin_state *put_away;          // the stream as it was left
    lin_snapshots_writer *index;  // NULL: none is asked for
    double begun_s; // of this file, for the progress line
} listener;

typedef struct transcribe_slot {
    lin_status status;
    lin_error error;
    lin_heard heard;
    lin_buffer text;
} transcribe_slot;

struct transcribe_job {
    const transcribe_values *v;
    lin_recognizer recognizer;
    lin_inputs inputs;
    lin_speakers speakers; // none unless the model is normalised by speaker
    int channel, with_id;
    const lin_writer *writer;
    lin_output out;
    listener *listeners;
    int n_listeners;
    transcribe_slot *slots;
    int n_slots;
    lin_state from;      // to go on with; empty: a new stream
    const char *from_name;
    int only_end;        // of that stream: no sound is given
    double period_s, start_s, end_s; // of --snapshots, --start, --end; 0, 0, and infinity where not given
    lin_progress progress;
    int n_done, n_failed;
    double seconds;
};

// ---- one file, on a thread of its own -------------------------------------------------------------------------------------------

static lin_status begin_lanes(void *context, int lanes, lin_error *err)
{
    listener *l = context;
    for (int i = 0; i < lanes; i++) {
        char id[512];
        int channel = l->job->channel >= 0 ? l->job->channel + 1 : i + 1;
        // Two lanes of one file are two utterances wherever a name must be unique.
        if (lanes > 1) {
            snprintf(id, sizeof id, "%.400s-%d", l->input->id, channel);
        } else {
            snprintf(id, sizeof id, "%.400s", l->input->id);
        }
        lin_greedy_reset(&l->greedy[i], l->job->recognizer.V, 0, 0);
        lin_status status = lin_result_begin(&l->result[i], id, l->input->speaker, channel, err);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

// Phones that are certain. Where they are shown at once they are not kept: a stream may run for days.
static lin_status add_phones(listener *l, int lane, const lin_greedy_phone *phones, int n, lin_error *err)
{
    lin_result *r = &l->result[lane];
    const lin_writer_options how = {.phones = l->job->recognizer.phones, .ipa = l->job->v->ipa};
    lin_status status = lin_result_add(r, phones, n, l->job->recognizer.row_seconds, err);
    if (status != LIN_OK || !l->live || n == 0) return status;
    lin_buffer_clear(&l->line);
    if (l->told && l->job->v->format == 0) lin_buffer_char(&l->line, ' ');
    status = l->job->writer->write(r, &how, &l->line, err);
    if (l->job->v->format == 0 && l->line.n) l->line.n--; // the line goes on
    r->n_phones = 0;
    l->told = 1;
    const char *path = l->job->out.path;
    if (status == LIN_OK) status = lin_buffer_write(&l->line, l->live, path ? path : "standard output", err);
    fflush(l->live);
    return status;
}

// A time as it is printed, to a millisecond, is that of its phone: half of one decides for it.
#define HALF_MS 0.0005

// Those that begin within what was asked for.
static int keep_part(const transcribe_job *job, lin_greedy_phone *phones, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const double start_s = (double)phones[i].start * job->recognizer.row_seconds + HALF_MS;
        if (start_s >= job->start_s && start_s < job->end_s) phones[kept++] = phones[i];
    }
    return kept;
}

// All runs that can still come begin at the end of what was asked for, or later.
static int enough(void *context)
{
    const listener *l = context;
    for (int i = 0; i < l->job->from.about.lanes || i < 1; i++) {
        if ((double)l->greedy[i].start * l->job->recognizer.row_seconds + HALF_MS < l->job->end_s) return 0;
    }
    return 1;
}

static lin_greedy *decoder(void *context, int lane) { return &((listener *)context)->greedy[lane]; }

static lin_status keep_stream(void *context, lin_state *state, int end, lin_error *err)
{
    listener *l = context;
    if (!end) return lin_snapshots_add(l->index, state, err);
    l->put_away = state;
    return LIN_OK;
}

static lin_status take_rows(void *context, int lane, const float *logp, int n, lin_error *err)
{
    listener *l = context;
    if (n > l->capacity) {
        lin_free(l->phones);
        l->capacity = 0;
        l->phones = lin_alloc((size_t)n, sizeof *l->phones);
        if (!l->phones) return lin_no_memory(err, "phones", (size_t)n * sizeof *l->phones);
        l->capacity = n;
    }
    int n_phones;
    lin_status status = lin_greedy_push(&l->greedy[lane], logp, n, l->phones, l->capacity, &n_phones, err);
    n_phones = keep_part(l->job, l->phones, n_phones);
    return status == LIN_OK ? add_phones(l, lane, l->phones, n_phones, err) : status;
}

static void show_progress(void *context, double seconds, double duration)
{
    listener *l = context;
    transcribe_job *job = l->job;
    if (job->inputs.n > 1) return;
    if (duration > 0) {
        lin_progress_show(&job->progress, "%s: %.0f of %.0f s, %.0f x real time", l->input->id, seconds, duration,
                          seconds / (lin_now() - l->begun_s + 1e-9));
    } else if (!l->live) {
        lin_progress_show(&job->progress, "%s: %.0f s", l->input->id, seconds);
    }
}

static lin_status write_lanes(listener *l, const lin_heard *heard, lin_buffer *out, lin_error *err)
{
    lin_writer_options how = {.phones = l->job->recognizer.phones, .ipa = l->job->v->ipa};
    how.with_id = l->job->with_id || heard->lanes > 1;
    for (int i = 0; i < heard->lanes; i++) {
        lin_greedy_phone last;
        int n_last = 0;
        if (!l->put_away) lin_greedy_finish(&l->greedy[i], &last, &n_last);
        n_last = keep_part(l->job, &last, n_last);
        lin_status status = add_phones(l, i, &last, n_last, err);
        if (status != LIN_OK) return status;
        l->result[i].seconds = heard->seconds < l->job->end_s ? heard->seconds : l->job->end_s;
        if (!l->live || (!l->told && l->job->v->format)) status = l->job->writer->write(&l->result[i], &how, out, err);
        if (status != LIN_OK) return status;
    }
    if (l->live && l->job->v->format == 0) lin_buffer_char(out, '\n');
    return LIN_OK;
}

// Beside the result: its name and .snapshots. A result on standard output is called as its sound.
static lin_status begin_index(listener *l, lin_error *err)
{
    const transcribe_values *v = l->job->v;
    const int own = v->output_dir != NULL || !v->output || strcmp(v->output, "-") == 0;
    char path[4096];
    int n;
    const char *folder = v->output_dir ? v->output_dir : "", *id = l->input->id;
    if (own && strchr(id, '/')) return lin_fail(err, LIN_INVALID, "%s cannot be a file's name; use --output", id);
    if (own) {
        n = snprintf(path, sizeof path, "%s%s%s.snapshots", folder, *folder ? "/" : "", id);
    } else {
        n = snprintf(path, sizeof path, "%s.snapshots", v->output);
    }
    if (n < 0 || (size_t)n >= sizeof path) return lin_fail(err, LIN_INVALID, "the name of the snapshots of %s is too long", id);
    return lin_snapshots_create(path, l->job->period_s, &l->index, err);
}

static void work(void *context, int item, int slot_number, int thread)
{
    transcribe_job *job = context;
    listener *l = &job->listeners[thread];
    transcribe_slot *s = &job->slots[slot_number];
    lin_pcm_format raw;
    l->input = &job->inputs.items[item];
    l->begun_s = lin_now();
    lin_sound sound = {.path = l->input->path,
                       .raw = lin_input_format(&job->v->input, l->input->path, &raw),
                       .channel = job->channel};
    const lin_speaker *speaker = lin_speakers_find(&job->speakers, l->input->speaker);
    if (speaker) sound.mean = speaker->mean, sound.istd = speaker->istd;
    if (job->from.bytes || job->v->from_snapshot) {
        sound.from = job->from.bytes ? &job->from : NULL;
        sound.from_name = job->from_name;
        sound.within = job->v->from_snapshot != NULL;
        if (job->only_end) sound.path = NULL;
    }
    sound.leave_open = job->v->save_state != NULL;
    sound.mark_s = job->period_s;
    lin_sink sink = {.context = l, .begin = begin_lanes, .rows = take_rows, .progress = show_progress, .decoder = decoder,
                     .mark = keep_stream, .enough = job->v->end ? enough : NULL};
    l->put_away = NULL;
    s->error = (lin_error){0};
    s->heard = (lin_heard){0};
    lin_buffer_clear(&s->text);
    s->status = lin_interrupted ? lin_fail(&s->error, LIN_STOPPED, "interrupted") : LIN_OK;
    if (s->status == LIN_OK && job->period_s > 0) s->status = begin_index(l, &s->error);
    if (s->status == LIN_OK) s->status = lin_ear_hear(l->ear, &sound, &sink, &s->heard, &s->error);
    if (s->status == LIN_OK) s->status = write_lanes(l, &s->heard, &s->text, &s->error);
    if (s->status == LIN_OK && l->index) {
        s->status = lin_snapshots_commit(l->index, &s->error);
    } else {
        lin_snapshots_abort(l->index);
    }
    l->index = NULL;
    if (s->status == LIN_OK) s->status = lin_buffer_status(&s->text, &s->error);
}

// ---- results, in order ----------------------------------------------------------------------------------------------------------

static lin_status write_own_file(transcribe_job *job, const lin_input *input, const lin_buffer *text, lin_error *err)
{
    char path[4096];
    lin_output out;
    if (strchr(input->id, '/')) return lin_fail(err, LIN_INVALID, "%s cannot be a file's name; use --output", input->id);
    int n = snprintf(path, sizeof path, "%s/%s.%s", job->v->output_dir, input->id, job->writer->extension);
    if (n < 0 || (size_t)n >= sizeof path) return lin_fail(err, LIN_INVALID, "the name of the result of %s is too long", input->id);
    lin_status status = lin_output_open(path, &out, err);
    if (status != LIN_OK) return status;
    status = lin_buffer_write(text, out.file, path, err);
    lin_status closed = lin_output_close(&out, status == LIN_OK ? err : NULL);
    return status == LIN_OK ? closed : status;
}

static lin_status save_stream(transcribe_job *job, lin_error *err)
{
    if (job->out.file && fflush(job->out.file) != 0)
        return lin_fail(err, LIN_IO, "cannot write %s: %s", job->out.path ? job->out.path : "standard output", strerror(errno));
    return lin_state_write(job->listeners[0].put_away, job->v->save_state, err);
}

static lin_status take(void *context, int item, int slot_number, lin_error *err)
{
    transcribe_job *job = context;
    transcribe_slot *s = &job->slots[slot_number];
    const lin_input *input = &job->inputs.items[item];
    if (s->status == LIN_STOPPED) return lin_fail(err, LIN_STOPPED, "interrupted after %d of %d files", job->n_done, job->inputs.n);
    if (s->status != LIN_OK) {
        int is_named = strstr(s->error.message, input->path) != NULL;
        lin_complain("%s%s%s", is_named ? "" : input->path, is_named ? "" : ": ", s->error.message);
        job->n_failed++;
        return LIN_OK;
    }
    if (s->heard.warning[0]) lin_complain("%s", s->heard.warning);
    lin_status status;
    if (job->v->output_dir) {
        status = write_own_file(job, input, &s->text, err);
    } else {
        status = lin_buffer_write(&s->text, job->out.file, job->out.path ? job->out.path : "standard output", err);
        if (status == LIN_OK && !job->out.path) fflush(job->out.file);
    }
    // The stream goes on where the result ends: it is put away when that is written.
    if (status == LIN_OK && job->v->save_state) status = save_stream(job, err);
    if (status != LIN_OK) return status;
    job->n_done++;
    job->seconds += s->heard.seconds;
    lin_progress_show(&job->progress, "%d of %d files, %.0f s of sound, %.0f x real time", job->n_done + job->n_failed,
                      job->inputs.n, job->seconds, job->seconds / (lin_now() - job->progress.begun + 1e-9));
    return LIN_OK;
}

// ---- the whole ------------------------------------------------------------------------------------------------------------------

static lin_status gather(transcribe_job *job, const lin_list *operands, lin_error *err)
{
    const transcribe_values *v = job->v;
    // A stream of which only the end is wanted is called as its state.
    const lin_list itself = {(const char *[]){v->load_state}, 1};
    lin_status status = lin_inputs_add_paths(&job->inputs, job->only_end ? &itself : operands, err);
    if (status == LIN_OK && v->files_from) status = lin_inputs_add_list(&job->inputs, v->files_from, err);
    if (status == LIN_OK && v->data) status = lin_inputs_add_data(&job->inputs, v->data, v->audio_root, err);
    return status;
}

// More files than threads: a thread for each file. Fewer: several threads share the work inside a file.
static lin_status make_threads(transcribe_job *job, lin_error *err)
{
    int cores = lin_ordered_threads(job->v->jobs, 1024), n = lin_ordered_threads(job->v->jobs, job->inputs.n);
    job->n_slots = lin_ordered_slots(n);
    job->slots = lin_calloc((size_t)job->n_slots, sizeof *job->slots);
    job->listeners = lin_calloc((size_t)n, sizeof *job->listeners);
    if (!job->slots || !job->listeners) return lin_no_memory(err, "threads", (size_t)n * sizeof *job->listeners);
    job->n_listeners = n;
    for (int i = 0; i < n; i++) {
        job->listeners[i].job = job;
        lin_status status = lin_ear_create(&job->recognizer, cores / n > 1 ? cores / n : 1, &job->listeners[i].ear, err);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

static lin_status make_folder(const char *path, lin_error *err)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return LIN_OK;
    return lin_fail(err, LIN_IO, "cannot make the folder %s: %s", path, strerror(errno));
}

// The stream to go on with, if one is.
static lin_status find_stream(transcribe_job *job, lin_error *err)
{
    const transcribe_values *v = job->v;
    job->from_name = v->load_state ? v->load_state : v->from_snapshot;
    if (v->load_state) return lin_state_read(v->load_state, &job->from, err);
    if (!v->from_snapshot) return LIN_OK;
    lin_snapshots snapshots;
    lin_status status = lin_snapshots_open(v->from_snapshot, &snapshots, err);
    if (status != LIN_OK) return status;
    const int i = lin_snapshots_before(&snapshots, job->start_s - HALF_MS);
    if (snapshots.n > 0 && snapshots.model != job->recognizer.model->fingerprint) {
        status = lin_fail(err, LIN_MISMATCH, "%s belongs to another model (%016llx); this one is %016llx", v->from_snapshot,
                          (unsigned long long)snapshots.model, (unsigned long long)job->recognizer.model->fingerprint);
    } else if (i >= 0) {
        status = lin_snapshots_get(&snapshots, i, &job->from, err);
    }
    lin_snapshots_close(&snapshots);
    return status;
}

static lin_status transcribe(transcribe_job *job, lin_error *err)
{
    const transcribe_values *v = job->v;
    lin_status status = lin_recognizer_open(&job->recognizer, v->model.model, v->model.device,
                                            lin_model_precision(&v->model), err);
    if (status == LIN_OK) status = find_stream(job, err);
    if (status == LIN_OK) status = make_threads(job, err);
    if (status == LIN_OK && job->recognizer.model->speaker_norm)
        status = lin_speakers_measure(&job->speakers, &job->inputs, &job->recognizer, v->jobs, err);
    if (status == LIN_OK && v->output_dir) status = make_folder(v->output_dir, err);
    if (status == LIN_OK && !v->output_dir) status = lin_output_open(v->output, &job->out, err);
    if (status != LIN_OK) return status;
    // One live input as text or CTM, whose lines need not wait for others, is shown phone by phone.
    int is_live = job->inputs.n == 1 && strcmp(job->inputs.items[0].path, "-") == 0 && job->channel != LIN_CHANNEL_EACH &&
                  ((v->format == 0 && !job->with_id) || strcmp(job->writer->name, "ctm") == 0) && !v->output_dir;
    if (is_live) job->listeners[0].live = job->out.file;
    lin_progress_begin(&job->progress, v->quiet);
    status = lin_ordered_run(&(lin_ordered){job->inputs.n, job->n_listeners, job, work, take}, err);
    lin_progress_end(&job->progress);
    if (!v->output_dir) {
        lin_status closed = lin_output_close(&job->out, status == LIN_OK ? err : NULL);
        if (status == LIN_OK) status = closed;
    }
    return status;
}

static void summary(const transcribe_job *job)
{
    double wall = lin_now() - job->progress.begun;
    char failed[64] = "";
    if (job->n_failed) snprintf(failed, sizeof failed, ", %d failed", job->n_failed);
    lin_complain("%d file%s%s, %.1f s of sound in %.2f s: real-time factor %.4f, %.0f x real time", job->n_done,
                 job->n_done == 1 ? "" : "s", failed, job->seconds, wall, job->seconds > 0 ? wall / job->seconds : 0,
                 wall > 0 ? job->seconds / wall : 0);
}

static void release(transcribe_job *job)
{
    for (int i = 0; i < job->n_listeners; i++) {
        lin_ear_destroy(job->listeners[i].ear);
        for (int l = 0; l < LIN_AUDIO_MAX_CHANNELS; l++) lin_result_free(&job->listeners[i].result[l]);
        lin_free(job->listeners[i].phones);
        lin_buffer_free(&job->listeners[i].line);
    }
    for (int i = 0; i < job->n_slots && job->slots; i++) lin_buffer_free(&job->slots[i].text);
    lin_free(job->listeners);
    lin_free(job->slots);
    lin_state_free(&job->from);
    lin_speakers_free(&job->speakers);
    lin_inputs_free(&job->inputs);
    lin_recognizer_close(&job->recognizer);
}

// The same for those about streams that are put away.
static int check_streams(lin_parsed *parsed, transcribe_job *job)
{
    const transcribe_values *v = parsed->values;
    lin_error err = {0};
    const int sources = parsed->operands.count + (v->files_from || v->data ? 2 : 0); // 2: as good as several
    job->only_end = v->load_state && sources == 0;
    job->end_s = INFINITY;
    if ((v->save_state || v->load_state || v->from_snapshot) && sources > 1)
        return lin_misuse(parsed, "--save-state, --load-state and --from-snapshot are for one FILE");
    if (v->from_snapshot && (v->load_state || v->save_state || v->snapshots))
        return lin_misuse(parsed, "--from-snapshot decodes a part again: nothing is put away or taken up with it");
    if (v->load_state && v->snapshots) return lin_misuse(parsed, "--snapshots are of a whole FILE: not with --load-state");
    if (v->snapshots && sources > 1 && !v->output_dir)
        return lin_misuse(parsed, "--snapshots of several files need --output-dir, where each has its own");
    if (job->only_end && v->save_state) return lin_misuse(parsed, "--save-state needs a FILE");
    if (!v->from_snapshot && (v->start || v->end)) return lin_misuse(parsed, "--start and --end are for --from-snapshot");
    if ((v->snapshots && lin_span_parse("snapshots", v->snapshots, &job->period_s, &err) != LIN_OK) ||
        (v->start && lin_span_parse("start", v->start, &job->start_s, &err) != LIN_OK) ||
        (v->end && lin_span_parse("end", v->end, &job->end_s, &err) != LIN_OK))
        return lin_misuse(parsed, "%s", err.message);
    if (v->snapshots && !(job->period_s >= 0.1 && job->period_s <= 86400))
        return lin_misuse(parsed, "--snapshots must be between 0.1 s and a day, not '%s'", v->snapshots);
    if (job->end_s <= job->start_s) return lin_misuse(parsed, "--end must be after --start");
    return LIN_EXIT_OK;
}

// What the table cannot say about how options go together. LIN_EXIT_OK if all is well.
static int check(lin_parsed *parsed, transcribe_job *job)
{
    transcribe_values *v = parsed->values;
    lin_error err = {0};
    const int streams = check_streams(parsed, job);
    if (streams != LIN_EXIT_OK) return streams;
    if (parsed->operands.count == 0 && !v->files_from && !v->data && !v->load_state) return lin_misuse(parsed, "no FILE is given");
    if (v->output && v->output_dir) return lin_misuse(parsed, "--output and --output-dir exclude each other");
    if (lin_input_channel(&v->input, &job->channel, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    int stdins = 0;
    for (int i = 0; i < parsed->operands.count; i++) stdins += strcmp(parsed->operands.items[i], "-") == 0;
    stdins += v->files_from && strcmp(v->files_from, "-") == 0;
    if (stdins > 1) return lin_misuse(parsed, "standard input (-) can be read only once");
    int row = lin_options_find(parsed->command, "format");
    if (parsed->from[row] == LIN_FROM_DEFAULT && v->output) {
        const lin_writer *by_name = lin_writer_for_file(v->output);
        for (int i = 0; by_name && i < 4; i++) {
            if (strcmp(by_name->name, format_names[i]) == 0) v->format = i;
        }
    }
    job->writer = lin_writer_find(format_names[v->format]);
    return LIN_EXIT_OK;
}

static int run(lin_parsed *parsed)
{
    transcribe_job job = {.v = parsed->values};
    lin_error err = {0};
    int exit_status = check(parsed, &job);
    if (exit_status != LIN_EXIT_OK) return exit_status;
    lin_status status = gather(&job, &parsed->operands, &err);
    const char *twice = status == LIN_OK ? lin_inputs_twice(&job.inputs) : NULL;
    if (twice && job.v->output_dir) {
        lin_complain("two files are called %s: their results would be one in %s", twice, job.v->output_dir);
        release(&job);
        return LIN_EXIT_FAILED;
    }
    if (twice && (strcmp(job.writer->name, "trn") == 0 || strcmp(job.writer->name, "ctm") == 0)) {
        lin_complain("two files are called %s; scoring tools will not take their results", twice);
    }
    job.with_id = job.v->ids || job.inputs.n > 1 || job.v->data != NULL;
    if (status == LIN_OK) status = transcribe(&job, &err);
    if (status != LIN_OK) exit_status = lin_give_up(&err);
    if (status == LIN_OK && job.n_failed) exit_status = LIN_EXIT_FAILED;
    if (status == LIN_OK && !job.v->quiet) summary(&job);
    release(&job);
    return lin_interrupted ? LIN_EXIT_INTERRUPTED : exit_status;
}

const lin_command lin_command_transcribe = {
    .name = "transcribe",
    .operands = "FILE...",
    .summary = "sound files to phonemes, many at once",
    .description = "Writes the phonemes of each sound file (WAV, FLAC, Ogg Vorbis, Opus, MP3 and what else libsndfile reads), in "
                   "the order given, however many are done at once. FILE may be - for headerless PCM on standard input; its "
                   "phonemes appear while the sound comes, as text or CTM.\n\n"
                   "A file that cannot be read is reported, the others are done, and the exit status is 1. Memory does not grow "
                   "with the length of the sound.\n\n"
                   "A stream can be put away and taken up again, on another machine too: the phonemes are those of a sound that "
                   "was never cut. From an index of snapshots any part of a long recording is decoded again as it was.",
    .examples = "  linnet transcribe talk.flac\n"
                "  linnet transcribe -f json --output-dir phones recordings/*.wav\n"
                "  arecord -f S16_LE -r 16000 -t raw | linnet transcribe -\n"
                "  linnet transcribe --save-state s.bin monday.wav; linnet transcribe --load-state s.bin tuesday.wav\n"
                "  linnet transcribe --snapshots 10s -o day.ctm day.flac\n"
                "  linnet transcribe --from-snapshot day.ctm.snapshots --start 1:23:40 --end 1:24:10 day.flac",
    .options = options,
    .values_size = sizeof(transcribe_values),
    .max_operands = -1,
    .run = run,
};
