// cmd_transcribe.c - linnet transcribe: sound files to phonemes or words, many at once, results in order.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/results.h"
#include "app/common.h"
#include "app/shared_options.h"
#include "app/inputs.h"
#include "linnet/files.h"
#include "linnet/leakage.h"

typedef struct transcribe_values {
    lin_model_values model;
    lin_input_values input;
    lin_decoding_values decoding;
    lin_endpoint_values endpoints;
    lin_results_values results;
    lin_data_values data;
    const char *files_from, *speakers;
    const char *save_state, *load_state;
    int jobs, quiet;
    const char *language;
} transcribe_values;

static const lin_option options[] = {
    LIN_RESULTS_ROWS(transcribe_values, results),
    LIN_TEXT_ROWS(transcribe_values, results),
    {.name = "files-from", .expert = 1, .type = LIN_OPTION_FILE, .at = offsetof(transcribe_values, files_from), .value = "LIST",
     .help = "Also the files named in LIST, one per line"},
    LIN_DATA_ROWS(transcribe_values, data, "Also the utterances of a Kaldi-style data directory or of a list (docs/corpora.md)"),
    LIN_JOBS_ROW(offsetof(transcribe_values, jobs)),
    LIN_QUIET_ROW(offsetof(transcribe_values, quiet), "Print no progress and no summary"),
    LIN_MODEL_ROWS(transcribe_values, model),
    LIN_BEST_ROW(offsetof(transcribe_values, model.best), "1.3 to 1.8", "--offline --combine default"),
    LIN_DEREVERB_ROW(offsetof(transcribe_values, model.dereverb)),
    LIN_OFFLINE_ROW(transcribe_values, model),
    LIN_COMBINE_ROW(transcribe_values, decoding),
    LIN_LANGUAGE_ROW(transcribe_values, language),
    LIN_DECODING_ROWS(transcribe_values, decoding),
    LIN_ENDPOINT_ROWS(transcribe_values, endpoints,
                      "When the network and the search are reset: at every endpoint, never, or (auto) from the first endpoint "
                      "after a minute of sound on; then auto resets the network only if its model does not forget by itself"),
    LIN_CHANNELS_ROWS(transcribe_values, input),
    LIN_INPUT_ROWS(transcribe_values, input),
    LIN_DIARIZE_ROW(transcribe_values, decoding, "the result is one transcript, the turns",
                    "In dialogues made from read speech, the speaker is wrong for 1.5 to 2.5 % of the speech, 12 % with "
                    "learners, and 8 to 21 % if a tenth overlaps"),
    {.name = "speakers", .type = LIN_OPTION_STRING, .at = offsetof(transcribe_values, speakers), .value = "NAME,NAME...",
     .help = "Names of the speakers. With --channel each: the first is on channel 1; the result is one transcript, the turns of "
             "all speakers in the order of time. With --diarize: in the order in which they are first heard"},
    {.type = LIN_OPTION_HEADING, .help = "Saved streams (docs/streams.md)"},
    {.name = "save-state", .expert = 1, .type = LIN_OPTION_FILE, .writes = 1, .updates = "load-state",
     .at = offsetof(transcribe_values, save_state), .value = "STATE",
     .help = "Save the stream in STATE: FILE is a part of a longer sound, and the results that are settled are written"},
    {.name = "load-state", .expert = 1, .type = LIN_OPTION_FILE, .at = offsetof(transcribe_values, load_state), .value = "STATE",
     .help = "Resume the stream that was saved in STATE: FILE is the next part of its sound. Without FILE the rest of the "
             "results is written"},
    {.type = LIN_OPTION_END},
};

typedef struct transcribe_job transcribe_job;

typedef struct transcribe_slot {
    lin_file_report report;
    double start_s; // of the part
    lin_result result[LIN_AUDIO_MAX_CHANNELS]; // of each lane
    lin_leakage_found leakage[LIN_AUDIO_MAX_CHANNELS]; // likewise
    lin_result speakers[LIN_SPEAKERS_MOST]; // of --diarize: the result of each
    int n_speakers;
} transcribe_slot;

// What a thread keeps while it works on a file.
typedef struct worker {
    transcribe_job *job;
    lin_file_worker *session;
    const lin_input *input;
    transcribe_slot *slot;
    lin_state *saved; // the stream as it was left
    lin_leakage leakage;
    double begun_s;   // of this file, for the progress line
} worker;

struct transcribe_job {
    const transcribe_values *v;
    lin_recognizer recognizer, combined; // combined: of --combine
    lin_decoding decoding;
    lin_bulk bulk; // a worker for each thread
    lin_speakers speakers; // none unless the model is normalised by speaker
    int channel;
    lin_reset_options ends;
    int flows; // settled results are written at once and not kept: a stream may run for days
    int shows_flow; // to the terminal itself: no progress line in between
    lin_state from;      // of --load-state; empty: a new stream
    int only_end;        // of that stream: no sound is given
    lin_part part;       // of --start and --end
};

/* ---- one file, on a thread of its own -------------------------------------------------------------------------------------- */

// Writes what has settled, of a single input.
static lin_status flow(void *context, int lane, lin_result *result, lin_error *err)
{
    const worker *l = context;
    (void)lane;
    return lin_results_flow(&l->job->bulk.results, result, err);
}

static int count_names(const char *names)
{
    int n = names != NULL;
    for (; names && *names; names++) n += *names == ',';
    return n;
}

// Whether two speakers would have one name, in `twice`: of those in the list, or one of them and a speaker without a name.
static int has_twice(const char *names, const char *other, char twice[128])
{
    char name[128];
    for (int i = 1; i <= count_names(names); i++) {
        lin_speaker_name(names, i, other, twice, 128);
        for (int k = i + 1; k <= LIN_AUDIO_MAX_CHANNELS; k++)
            if (strcmp(lin_speaker_name(names, k, other, name, sizeof name), twice) == 0) return 1;
    }
    return 0;
}

static lin_status begin_lanes(void *context, int lanes, lin_error *err)
{
    const worker *l = context;
    lin_status status = LIN_OK;
    const char *names = l->job->v->decoding.speakers ? NULL : l->job->v->speakers; // of channels
    const int named = count_names(names);
    if (named > lanes)
        return lin_fail(err, LIN_INVALID, "--speakers has %d names, but the sound has %d channel%s; each name is for a channel",
                        named, lanes, lanes == 1 ? "" : "s");
    for (int i = 0; i < lanes && status == LIN_OK; i++) {
        char id[512], lane[16] = "", name[128];
        const int one = l->input->cut.channel, channel = one ? one : l->job->channel >= 0 ? l->job->channel + 1 : i + 1;
        // Two lanes of one file are two utterances wherever a name must be unique.
        if (lanes > 1) snprintf(lane, sizeof lane, "-%d", channel);
        snprintf(id, sizeof id, "%.400s%s", l->input->id, lane);
        const char *speaker = names ? lin_speaker_name(names, channel, "channel ", name, sizeof name) : l->input->speaker;
        status = lin_result_begin(&l->slot->result[i], id, speaker, channel, err);
    }
    return status;
}

static void keep_stream(void *context, lin_state *state)
{
    worker *l = context;
    l->saved = state;
}

static lin_status measure_channels(void *context, const lin_audio_format *format, double at_s, const float *sound, int n,
                                   lin_error *err)
{
    worker *l = context;
    return format->channels > 1 ? lin_leakage_push(&l->leakage, format, at_s, sound, n, err) : LIN_OK;
}

static int show_progress(void *context, double seconds, double duration)
{
    worker *l = context;
    transcribe_job *job = l->job;
    if (job->bulk.inputs.n > 1 || job->shows_flow) return 0;
    const double speed = seconds / (lin_now() - l->begun_s + 1e-9);
    lin_progress *progress = &job->bulk.progress;
    if (duration > 0) lin_progress_of(progress, seconds / duration, "%.0f x real time, %s", speed, l->input->id);
    else lin_progress_of(progress, -1, "%.0f s, %.0f x real time, %s", seconds, speed, l->input->id);
    return 0;
}

static lin_status work(void *context, int item, int slot, int thread, lin_error *err)
{
    transcribe_job *job = context;
    worker *l = lin_bulk_thread(&job->bulk, thread);
    transcribe_slot *s = lin_bulk_slot(&job->bulk, slot);
    lin_pcm_format raw;
    l->input = &job->bulk.inputs.items[item];
    l->slot = s;
    l->begun_s = lin_now();
    lin_sound sound = lin_input_sound(l->input, lin_input_format(&job->v->input, &raw), job->channel, job->part);
    sound.results = s->result;
    s->start_s = sound.part.start_s;
    const lin_speaker *speaker = lin_speakers_find(&job->speakers, l->input->speaker);
    if (speaker) sound.mean = speaker->mean, sound.istd = speaker->istd;
    if (job->from.bytes) {
        sound.from = &job->from;
        sound.from_name = job->v->load_state;
        if (job->only_end) sound.path = NULL;
    }
    sound.leave_open = job->v->save_state != NULL;
    const lin_file_sink sink = {.context = l, .begin = begin_lanes, .settled = job->flows ? flow : NULL, .saved = keep_stream,
                                .progress = show_progress, .sound = job->channel == LIN_CHANNEL_EACH ? measure_channels : NULL};
    l->saved = NULL;
    s->report = (lin_file_report){0};
    lin_status status = lin_interrupted ? lin_fail(err, LIN_STOPPED, "interrupted") : LIN_OK;
    if (status == LIN_OK) status = lin_file_worker_run(l->session, &sound, &sink, &s->report, err);
    for (int i = 0; i < s->report.lanes; i++) {
        lin_result *r = &s->result[i];
        r->has_words = job->v->decoding.words; // also of a piece without any
        if (sound.from || sound.leave_open) r->score = r->acoustic = r->language = 0; // its utterances may be incomplete
    }
    if (s->report.has_results) {
        const lin_status found = lin_leakage_find(&l->leakage, s->result, s->report.lanes, job->v->speakers != NULL, s->leakage,
                                                  status == LIN_OK ? err : NULL);
        if (status == LIN_OK) status = found;
    }
    lin_leakage_free(&l->leakage);
    if (status == LIN_OK)
        status = lin_part_speakers(&s->result[0], job->v->speakers, s->speakers, &s->n_speakers, err);
    return status;
}

/* ---- results, in order ----------------------------------------------------------------------------------------------------- */

static lin_status write_results(transcribe_job *job, const lin_input *input, const transcribe_slot *s, lin_error *err)
{
    const lin_result *list[LIN_AUDIO_MAX_CHANNELS];
    if (job->flows) return lin_results_flow_end(&job->bulk.results, &s->result[0], err);
    for (int i = 0; i < s->n_speakers; i++) list[i] = &s->speakers[i];
    if (s->n_speakers) return lin_results_put(&job->bulk.results, input, list, s->n_speakers, err);
    for (int i = 0; i < s->report.lanes; i++) list[i] = &s->result[i];
    return lin_results_put(&job->bulk.results, input, list, s->report.lanes, err);
}

static void tell_of_leakage(const transcribe_job *job, const lin_input *input, const transcribe_slot *s)
{
    for (int i = 0; i < s->report.lanes; i++) {
        const lin_leakage_found *f = &s->leakage[i];
        char text[256], how_many[64] = "all";
        if (f->n < f->of) snprintf(how_many, sizeof how_many, "%d of %d", f->n, f->of);
        snprintf(text, sizeof text, "%s %s of channel %d are those of channel %d, which is heard in it%s", how_many,
                 s->result[i].has_words ? "words" : "phonemes", i + 1, f->from + 1,
                 job->v->speakers ? ": they are written once" : "; --speakers writes them once");
        if (f->n) lin_complain_of_input(input, text);
    }
}

static lin_status take(void *context, int item, int slot, lin_status status, lin_error *err)
{
    transcribe_job *job = context;
    lin_bulk *b = &job->bulk;
    const transcribe_slot *s = lin_bulk_slot(b, slot);
    const lin_input *input = &b->inputs.items[item];
    const int wants_part = status == LIN_STOPPED && s->report.has_results && lin_results_wants_part(&b->results, &b->inputs);
    if (wants_part || (status != LIN_OK && b->results.told)) write_results(job, input, s, NULL); // also ends a line of text
    if (status != LIN_OK) return status;
    status = write_results(job, input, s, err); // first, which also ends a line of text
    if (s->report.warning[0]) lin_complain_of_input(input, s->report.warning);
    tell_of_leakage(job, input, s);
    if (status != LIN_OK) return status;
    b->n_incomplete += s->report.incomplete;
    b->seconds += s->report.seconds - s->start_s;
    return LIN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

static lin_status gather(transcribe_job *job, const lin_list *operands, lin_error *err)
{
    const transcribe_values *v = job->v;
    // Without new sound, the end of a saved stream is named after its file.
    const lin_list itself = {(const char *[]){v->load_state}, 1};
    LIN_TRY(lin_inputs_add_paths(&job->bulk.inputs, job->only_end ? &itself : operands, err));
    if (v->files_from) LIN_TRY(lin_inputs_add_list(&job->bulk.inputs, v->files_from, err));
    if (v->data.data) LIN_TRY(lin_inputs_add_data(&job->bulk.inputs, &v->data, &job->part, job->channel, err));
    return LIN_OK;
}

static lin_status make_threads(transcribe_job *job, lin_error *err)
{
    const lin_utterances_options how = {.decoding = &job->decoding, .ends = job->ends};
    lin_bulk *b = &job->bulk;
    lin_status status = lin_bulk_threads(b, sizeof(transcribe_slot), sizeof(worker), err);
    for (int i = 0; i < b->n_threads && status == LIN_OK; i++) {
        worker *l = lin_bulk_thread(b, i);
        l->job = job;
        status = lin_file_worker_create(&job->recognizer, b->cores_each, &how, &l->session, err);
    }
    return status;
}

static lin_status transcribe(transcribe_job *job, lin_error *err)
{
    const lin_warnings warnings = lin_complaints(job->v->quiet);
    const transcribe_values *v = job->v;
    LIN_TRY(lin_open_recognizer(&job->recognizer, &v->model, err));
    if (v->decoding.combine && job->recognizer.streams)
        return lin_fail(err, LIN_INVALID,
                        "--best and --combine need whole utterances; use --offline, without --model");
    if (v->decoding.combine) LIN_TRY(lin_open_another(&job->combined, v->decoding.combine, &v->model, err));
    job->recognizer.fbank.dereverb = v->model.dereverb;
    const lin_endpoint_values *e = &v->endpoints;
    if (e->reset == LIN_RESET_ENDPOINT) job->ends = (lin_reset_options){.endpoints = 1, .rules = e->rules, .resets = 1};
    if (e->reset == LIN_RESET_AUTO) job->ends = lin_reset_auto(&job->recognizer, &e->rules);
    if (v->load_state) LIN_TRY(lin_state_read(v->load_state, &job->from, err));
    LIN_TRY(make_threads(job, err));
    if (job->recognizer.model->speaker_norm)
        LIN_TRY(lin_inputs_measure(&job->bulk.inputs, &job->recognizer, v->jobs, &job->speakers, err));
    LIN_TRY(lin_decoding_open_for(&job->recognizer, &v->decoding, &warnings, &job->decoding, err));
    if (v->decoding.combine) job->decoding.combined = &job->combined;
    if (v->decoding.words && v->decoding.readable)
        LIN_TRY(lin_results_make_readable(&job->bulk.results, job->recognizer.phones, v->decoding.min_confidence, err));
    const int many = job->bulk.inputs.n > 1 || v->data.data;
    LIN_TRY(lin_results_open(&job->bulk.results, job->recognizer.phones, many, err));
    // Results of a single input need not wait for others: they are written as they settle.
    const int to_file = v->results.output && strcmp(v->results.output, "-") != 0;
    const int live = job->bulk.inputs.n == 1 && strcmp(job->bulk.inputs.items[0].path, "-") == 0;
    job->flows = job->bulk.inputs.n == 1 && (live || !to_file) && job->channel != LIN_CHANNEL_EACH && v->decoding.n_best == 1 &&
                 !v->decoding.speakers && lin_results_can_flow(&job->bulk.results);
    job->shows_flow = job->flows && !to_file && isatty(1);
    job->bulk.own_progress = job->bulk.inputs.n == 1;
    const lin_status status = lin_bulk_run(&job->bulk, err);
    // The stream continues where the result ends: it is saved after that is written.
    if (status != LIN_OK || !v->save_state || job->bulk.n_done == 0) return status;
    return lin_state_write(((const worker *)lin_bulk_thread(&job->bulk, 0))->saved, v->save_state, err);
}

static void release(transcribe_job *job)
{
    lin_bulk *b = &job->bulk;
    for (int i = 0; i < b->n_threads; i++) lin_file_worker_destroy(((worker *)lin_bulk_thread(b, i))->session);
    for (int i = 0; i < b->n_slots; i++) {
        transcribe_slot *s = lin_bulk_slot(b, i);
        for (int l = 0; l < LIN_AUDIO_MAX_CHANNELS; l++) lin_result_free(&s->result[l]);
        for (int l = 0; l < LIN_SPEAKERS_MOST; l++) lin_result_free(&s->speakers[l]);
    }
    lin_bulk_free(b);
    lin_state_free(&job->from);
    lin_speakers_free(&job->speakers);
    lin_decoding_close(&job->decoding);
    lin_recognizer_close(&job->recognizer);
    lin_recognizer_close(&job->combined);
}

// Options about saved streams.
static int check_streams(lin_parsed *parsed, transcribe_job *job)
{
    const transcribe_values *v = parsed->values;
    lin_error err = {0};
    const int sources = parsed->operands.count + (v->files_from || v->data.data ? 2 : 0); // 2: as good as several
    job->only_end = v->load_state && sources == 0;
    if ((v->save_state || v->load_state) && sources > 1)
        return lin_misuse(parsed, "--save-state and --load-state are for one FILE");
    if (v->decoding.n_best > 1 && (v->save_state || v->load_state))
        return lin_misuse(parsed, "--n-best needs a whole FILE: not with --save-state or --load-state");
    if (job->only_end && v->save_state) return lin_misuse(parsed, "--save-state needs a FILE");
    if ((v->input.start || v->input.end) && (v->save_state || v->load_state))
        return lin_misuse(parsed, "--start and --end exclude --save-state and --load-state");
    if (lin_input_part(parsed, &v->input, &job->part, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    return LIN_EXIT_OK;
}

// Combinations of options that the table cannot check. LIN_EXIT_OK on success.
static int check(lin_parsed *parsed, transcribe_job *job)
{
    transcribe_values *v = parsed->values;
    lin_error err = {0};
    const int streams = check_streams(parsed, job);
    if (streams != LIN_EXIT_OK) return streams;
    if (parsed->operands.count == 0 && !v->files_from && !v->data.data && !v->load_state)
        return lin_misuse(parsed, "no FILE is given");
    if (lin_input_channel(parsed, &v->input, &job->channel, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    char twice[128];
    int stdins = 0;
    for (int i = 0; i < parsed->operands.count; i++) stdins += strcmp(parsed->operands.items[i], "-") == 0;
    stdins += v->files_from && strcmp(v->files_from, "-") == 0;
    if (stdins > 1) return lin_misuse(parsed, "standard input (-) can be read only once");
    if (lin_endpoint_check(&v->endpoints.rules, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    lin_choose_best(&v->model, &v->decoding, NULL);
    int wrong = lin_decoding_check(parsed, &v->decoding, 0);
    if (wrong == LIN_EXIT_OK) wrong = lin_results_check(&job->bulk.results, parsed, &v->results);
    if (wrong != LIN_EXIT_OK) return wrong;
    const int named = count_names(v->speakers), speakers = v->decoding.speakers, diarizes = speakers != 0;
    if (diarizes && job->channel == LIN_CHANNEL_EACH) return lin_misuse(parsed, "--diarize is for one channel, or the mix");
    if (diarizes && (v->save_state || v->load_state))
        return lin_misuse(parsed, "--diarize needs a whole FILE: not with --save-state or --load-state");
    if (v->speakers && job->channel != LIN_CHANNEL_EACH && !diarizes)
        return lin_misuse(parsed, "--speakers needs --channel each or --diarize");
    if (speakers > 0 && named > speakers)
        return lin_misuse(parsed, "--speakers has %d names, but --diarize=%d; each name is for a speaker", named, speakers);
    if (has_twice(v->speakers, diarizes ? "S" : "channel ", twice))
        return lin_misuse(parsed, "--speakers: two speakers would be called %s; give each another name", twice);
    if (v->speakers && v->decoding.n_best > 1) return lin_misuse(parsed, "--speakers and --n-best exclude each other");
    job->bulk.results.part = job->part;
    job->bulk.results.by_channel = job->channel != LIN_CHANNEL_MIX;
    job->bulk.results.by_turns = diarizes ? 1 : v->speakers ? 2 : 0;
    job->bulk.results.speakers = v->speakers || diarizes;
    return lin_results_check_search(&job->bulk.results, parsed, &v->decoding);
}

static int run(lin_parsed *parsed)
{
    const transcribe_values *v = parsed->values;
    transcribe_job job = {.v = v};
    lin_error err = {0};
    job.bulk = (lin_bulk){.noun = "file", .jobs = v->jobs, .quiet = v->quiet, .context = &job, .work = work, .take = take};
    int exit_status = check(parsed, &job);
    if (exit_status != LIN_EXIT_OK) return exit_status;
    lin_status status = gather(&job, &parsed->operands, &err);
    if (status == LIN_OK) status = lin_bulk_begin(&job.bulk, job.channel == LIN_CHANNEL_EACH && !v->speakers, &err);
    if (status == LIN_OK && !lin_inputs_all_done(&job.bulk.inputs)) status = transcribe(&job, &err);
    exit_status = lin_bulk_end(&job.bulk, status, &err);
    release(&job);
    return exit_status;
}

const lin_command lin_command_transcribe = {
    .name = "transcribe",
    .operands = "FILE...",
    .summary = "convert sound files to phonemes or words, many at once",
    .description = "Writes the phonemes, or with --words the words, of each sound file (WAV, FLAC, Ogg Vorbis, Opus, MP3, NIST "
                   "SPHERE and all other formats of libsndfile; with ffmpeg installed also m4a, mp4, webm, mkv and more). Files "
                   "are processed in parallel, and results keep the order of the files. FILE may be - for standard input. The "
                   "results of a single FILE are written to standard output as soon as they are settled, as text, CTM, CSV or "
                   "labels. Sound that is longer than a minute is divided at its pauses (--reset). See docs/decoding.md.\n\n"
                   "A file that cannot be read is reported, the others are transcribed, and the exit status is 1. Incomplete "
                   "sound is transcribed up to its end, and the exit status is 1. Memory does not grow with the length of the "
                   "sound.\n\n"
                   "A stream can be saved and resumed, on another machine too. Joined results equal the result of the uncut "
                   "sound.",
    .examples = "  linnet transcribe talk.flac\n"
                "  linnet transcribe --words talk.flac\n"
                "  linnet transcribe --lm phones.lm talk.flac\n"
                "  linnet transcribe --words -f srt,textgrid --output-dir out recordings/*.wav\n"
                "  linnet transcribe -f json --output-dir phones recordings/*.wav\n"
                "  arecord -f S16_LE -r 16000 -t raw | linnet transcribe -\n"
                "  linnet transcribe --save-state s.bin monday.wav; linnet transcribe --load-state s.bin tuesday.wav",
    .options = options,
    .brief = 1,
    .values_size = sizeof(transcribe_values),
    .max_operands = -1,
    .run = run,
};
