// serve_files.c - uploads to linnet serve: their bodies, the queue of the workers, and their answers; see serve.h.
//
// A body is kept in memory until it is complete; its size is bounded by its stated length, or as it arrives. Then a worker writes
// the sound to an unnamed file, because audio libraries need a file, and a child process (frontend/processes.h) decodes it.

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "app/results.h"
#include "base/file.h"
#include "base/memory.h"
#include "decoder/writers.h"
#include "frontend/audio.h"
#include "linnet/diarizer.h"
#include "linnet/files.h"
#include "serve/serve.h"

/* ---- what is asked for ----------------------------------------------------------------------------------------------------- */

typedef struct request {
    const lin_form_part *file, *text, *phones;
    char format[32];
    int segments, words, streams;
    lin_buffer likely; // phrases, each with its NUL: those of `phrases`, then those of the prompt
    int n_phrases, n_prompt; // n_prompt: keywords too
    const char *hints; // the fields that the n_prompt came from
} request;

// The lines of all fields `phrases`.
static int take_phrases(const lin_job *job, const lin_form *form, lin_buffer *out)
{
    const lin_form_part *part;
    int n = 0;
    for (int i = 0; (part = lin_call_part(job->call, form, "phrases", i)) != NULL; i++) {
        for (size_t at = 0; at < part->n;) {
            const char *line = part->data + at, *end = memchr(line, '\n', part->n - at);
            size_t length = end ? (size_t)(end - line) : part->n - at;
            at += length + 1;
            if (length && line[length - 1] == '\r') length--;
            if (!length || memchr(line, 0, length)) continue;
            lin_buffer_bytes(out, line, length);
            lin_buffer_char(out, 0);
            n++;
        }
    }
    return n;
}

static lin_status check_language(const lin_job *job, const lin_form *form, lin_error *err)
{
    char asked[32];
    const char *language = job->serve->language;
    const lin_form_part *part;
    lin_call_value(job->call, form, "language", asked, sizeof asked);
    int fits = lin_language_is(asked, language);
    for (int i = 0; (part = lin_call_part(job->call, form, "languages", i)) != NULL; i++) { // one of them is enough
        if (i == 0) fits = 0;
        snprintf(asked, sizeof asked, "%.*s", part->n < sizeof asked ? (int)part->n : (int)sizeof asked - 1, part->data);
        fits |= lin_language_is(asked, language);
    }
    for (char *c = asked; *c; c++) *c = *c > 32 && *c < 127 ? *c : '?';
    if (fits) return LIN_OK;
    return lin_fail(err, LIN_UNSUPPORTED,
                    "the model's language is %s (%s), not %s: leave language out, or start a server with a model "
                    "of that language",
                    language, lin_language_name(language), asked);
}

static void ignore(lin_job *job, const char *fields)
{
    if (job->ignored.n) lin_buffer_text(&job->ignored, ", ");
    lin_buffer_text(&job->ignored, fields);
}

static lin_status read_request(lin_job *job, const lin_form *form, request *r, lin_error *err)
{
    const lin_form_part *prompt = lin_call_part(job->call, form, "prompt", 0), *part;
    lin_status status = lin_call_check(job->call, form, &job->ignored, err);
    if (status == LIN_OK) status = check_language(job, form, err);
    if (status != LIN_OK) return status;
    r->file = lin_call_part(job->call, form, "file", 0);
    r->text = lin_call_part(job->call, form, "text", 0);
    r->phones = lin_call_part(job->call, form, "phones", 0);
    lin_call_value(job->call, form, "response_format", r->format, sizeof r->format);
    if (job->call->kind == LIN_CALL_ALIGN) {
        if (!r->text != !r->phones) return LIN_OK;
        return lin_fail(err, LIN_INVALID, "give the text by one of the fields text and phones");
    }
    if (lin_call_flag(job->call, form, "translate"))
        return lin_fail(err, LIN_INVALID, "this server does not translate; leave translate out");
    r->streams = lin_call_flag(job->call, form, "stream");
    if (r->streams && strcmp(r->format, "json") != 0 && strcmp(r->format, "text") != 0)
        return lin_fail(err, LIN_INVALID, "stream needs the response_format json or text");
    r->n_phrases = take_phrases(job, form, &r->likely);
    if (r->n_phrases > LIN_MESSAGE_MOST_PHRASES || r->likely.n > LIN_MESSAGE_BYTES)
        return lin_fail(err, LIN_INVALID, "phrases must have at most %d lines and %d bytes", (int)LIN_MESSAGE_MOST_PHRASES,
                        (int)LIN_MESSAGE_BYTES);
    if (prompt) r->n_prompt = lin_prompt_phrases(prompt->data, prompt->n, &r->likely);
    r->hints = !prompt ? "keywords" : lin_call_part(job->call, form, "keywords", 0) ? "prompt, keywords" : "prompt";
    for (int i = 0; (part = lin_call_part(job->call, form, "keywords", i)) != NULL; i++)
        r->n_prompt += lin_prompt_phrases(part->data, part->n, &r->likely);
    if (r->n_prompt > LIN_MESSAGE_MOST_PHRASES) {
        r->n_prompt = LIN_MESSAGE_MOST_PHRASES;
        ignore(job, "keywords");
    }
    for (int i = 0; (part = lin_call_part(job->call, form, "timestamp_granularities", i)) != NULL; i++) {
        r->segments |= lin_form_is(part, "segment");
        r->words |= lin_form_is(part, "word");
    }
    if ((r->segments || r->words) && strcmp(r->format, "verbose_json") != 0)
        ignore(job, "timestamp_granularities");
    if (!r->words || job->call->kind == LIN_CALL_INFERENCE) r->segments = 1;
    return lin_buffer_status(&r->likely, err);
}

static lin_status write_sound(lin_job *job, const lin_form_part *file, lin_error *err)
{
    const char *folder;
    job->sound = lin_file_open_unnamed(&folder);
    int error = job->sound < 0 ? errno : 0;
    for (size_t at = 0; !error && at < file->n;) {
        const ssize_t n = write(job->sound, file->data + at, file->n - at);
        if (n > 0) at += (size_t)n;
        else if (n == 0 || errno != EINTR) error = n == 0 ? ENOSPC : errno;
    }
    // The name to reopen it; on Linux this begins at its start.
#ifdef __APPLE__
    lseek(job->sound, 0, SEEK_SET);
    snprintf(job->path, sizeof job->path, "/dev/fd/%d", job->sound);
#else
    snprintf(job->path, sizeof job->path, "/proc/self/fd/%d", job->sound);
#endif
    if (!error) return LIN_OK;
    job->status = 507;
    return lin_fail(err, LIN_IO, "the sound cannot be kept: %s", strerror(error));
}

/* ---- answers --------------------------------------------------------------------------------------------------------------- */

static const char *type_of(const char *format)
{
    if (strstr(format, "json")) return "application/json";
    return !strcmp(format, "vtt") ? "text/vtt; charset=utf-8" : "text/plain; charset=utf-8";
}

// The list "words" of the items first .. first + n - 1; inside: as in a segment of whisper.cpp's server.
static void put_words(lin_buffer *out, const lin_writer_options *words, const lin_result *r, int first, int n, int inside)
{
    lin_buffer text = {0};
    lin_buffer_json_format(out, ",'words':[");
    for (int i = first; i < first + n; i++) {
        const lin_item item = lin_result_item(r, i);
        lin_buffer_clear(&text);
        lin_result_item_text(&text, words, r, i);
        if (i > first) lin_buffer_char(out, ',');
        lin_buffer_json_format(out, "{'word':%s,'start':%.3f,'end':%.3f", lin_text_of(&text), item.start_s, item.end_s);
        if (inside) lin_buffer_json_format(out, ",'t_dtw':-1,'probability':%.4f", item.confidence);
        lin_buffer_char(out, '}');
    }
    lin_buffer_char(out, ']');
    lin_scratch_free(&text, out);
}

static lin_status put_segment(lin_buffer *out, const lin_writer_options *words, const lin_result *r, int number, int first, int n,
                              const lin_verbose *how, lin_error *err)
{
    lin_result part = *r; // points into the words and phones of r
    lin_buffer text = {0};
    double sum = 0;
    if (r->has_words) {
        part.words += first;
        part.n_words = n;
    } else {
        part.phones += first;
        part.n_phones = n;
    }
    lin_status status = lin_live_put_readable(&text, words, &part, err);
    for (int i = first; i < first + n; i++) sum += log(fmax(lin_result_item(r, i).confidence, 1e-6));
    if (number) lin_buffer_char(out, ',');
    lin_buffer_json_format(out, "{'id':%d,'seek':0,'start':%.3f,'end':%.3f,'text':%s,'tokens':[],'temperature':0.0,"
                                "'avg_logprob':%.4f,'compression_ratio':1.0,'no_speech_prob':0.0",
                           number, lin_result_item(r, first).start_s, lin_result_item(r, first + n - 1).end_s, lin_text_of(&text),
                           sum / n);
    lin_put_speaker(lin_result_speaker(r, first), out);
    if (how->items_inside) put_words(out, words, r, first, n, 1);
    lin_buffer_char(out, '}');
    lin_scratch_free(&text, out);
    return status;
}

lin_status lin_openai_put_verbose(lin_buffer *out, const lin_writer_options *words, const lin_result *r, const lin_verbose *how,
                                  lin_error *err)
{
    const int n = lin_result_items(r);
    lin_status status = LIN_OK;
    lin_buffer_json_format(out, "{'task':'transcribe','language':%s,'duration':%.3f,'text':%s", how->language, r->seconds,
                           how->text);
    if (how->items) put_words(out, words, r, 0, n, 0);
    if (how->segments) {
        lin_buffer_json_format(out, ",'segments':[");
        for (int first = 0, number = 0, end; first < n && status == LIN_OK; first = end) {
            end = lin_result_segment_end(r, first);
            status = put_segment(out, words, r, number++, first, end - first, how, err);
        }
        lin_buffer_char(out, ']');
    }
    lin_buffer_char(out, '}');
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

// As linnet transcribe --diarize writes it.
static lin_status put_turns(const lin_writer *writer, const lin_result *result, const lin_writer_options *how, lin_buffer *out,
                            lin_error *err)
{
    lin_result speakers[LIN_SPEAKERS_MOST] = {0};
    const lin_result *list[LIN_SPEAKERS_MOST];
    lin_turns turns = {0};
    int n = 0;
    for (int i = 0; i < LIN_SPEAKERS_MOST; i++) list[i] = &speakers[i];
    lin_status status = lin_part_speakers(result, NULL, speakers, &n, err);
    if (status == LIN_OK) status = lin_turns_make(&turns, result->id, list, n, err);
    if (status == LIN_OK) status = lin_turns_write(&turns, writer, list, n, how, out, err);
    lin_turns_free(&turns);
    for (int i = 0; i < LIN_SPEAKERS_MOST; i++) lin_result_free(&speakers[i]);
    return status;
}

static lin_status put_transcript(lin_serve *s, lin_job *job, const request *r, const lin_result *result, lin_error *err)
{
    lin_buffer text = {0}, *out = &job->answer;
    const int verbose = !strcmp(r->format, "verbose_json"), plain = !strcmp(r->format, "json");
    job->answer_type = type_of(r->format);
    lin_status status = lin_live_put_readable(&text, &s->live.words, result, err);
    if (status == LIN_OK && plain) {
        if (job->call->kind == LIN_CALL_INFERENCE) lin_buffer_char(&text, '\n'); // as whisper.cpp ends each segment
        lin_buffer_json_format(out, "{'text':%s}", lin_text_of(&text));
    } else if (status == LIN_OK && verbose) {
        const lin_verbose how = {.language = lin_language_name(s->language), .text = lin_text_of(&text),
                                 .segments = r->segments, .items = r->words,
                                 .items_inside = job->call->kind == LIN_CALL_INFERENCE};
        status = lin_openai_put_verbose(out, &s->live.words, result, &how, err);
    } else if (status == LIN_OK) {
        const int full = !strcmp(r->format, "full_json");
        lin_writer_document document;
        const lin_writer *writer = lin_writer_find(full ? "json" : r->format);
        lin_writer_options o = s->live.words;
        o.document = &document;
        status = lin_writer_begin(writer, &o, out, err);
        if (status == LIN_OK && !full && result->n_voices) status = put_turns(writer, result, &o, out, err);
        else if (status == LIN_OK) status = lin_write(writer, result, &o, out, err);
    }
    lin_buffer_free(&text);
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

// Adds a member to a JSON object.
static void add_warning(lin_buffer *out, const char *warning)
{
    if (!*warning) return;
    while (out->n && out->data[out->n - 1] != '}') out->n--;
    if (out->n) out->n--;
    lin_buffer_json_format(out, ",'warning':%s}\n", warning);
}

// For answers without a place for a warning, it goes into a header: some hundred ASCII characters at most.
static void keep_warning(lin_job *job, const char *warning)
{
    enum { MOST = 400 };
    lin_buffer_clear(&job->warning);
    for (const char *c = warning; *c && job->warning.n < MOST; c++)
        lin_buffer_char(&job->warning, *c >= 32 && *c < 127 ? *c : '?');
}

static lin_status put_alignment(lin_serve *s, lin_job *job, const request *r, const lin_alignment *a, lin_error *err)
{
    const int json = strstr(r->format, "json") != NULL;
    const lin_writer *writer = lin_writer_find(json ? "json" : r->format);
    const lin_writer_options o = {.phones = s->live.words.phones, .ipa = s->live.words.ipa, .times = 1};
    char doubt[256];
    lin_buffer *out = &job->answer;
    lin_status status = lin_write_speakers(writer, &(const lin_result *){&a->results[0]}, 1, &o, out, err);
    job->answer_type = type_of(r->format);
    lin_alignment_doubt(a, doubt, sizeof doubt);
    if (status == LIN_OK && json) add_warning(out, a->warning[0] ? a->warning : doubt);
    keep_warning(job, a->warning[0] ? a->warning : doubt);
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

// Answers must not show the names of the server's files.
static void hide_path(char *message, const char *path)
{
    static const char name[] = "the file";
    const size_t n = strlen(path);
    for (char *at; n >= sizeof name - 1 && (at = strstr(message, path)) != NULL;) {
        memcpy(at, name, sizeof name - 1);
        memmove(at + sizeof name - 1, at + n, strlen(at + n) + 1);
    }
}

/* ---- workers --------------------------------------------------------------------------------------------------------------- */

// What one worker keeps for all its jobs.
typedef struct lin_work {
    lin_serve *serve;
    lin_file_worker *session;
    lin_aligner *aligner;
    lin_result result;
    lin_alignment alignment;
    lin_job *job;
    // of text that is sent as it settles
    lin_settling settling;
    lin_buffer piece;
} lin_work;

static lin_status begin_result(void *context, int lanes, lin_error *err)
{
    lin_work *w = context;
    (void)lanes; // one: all channels are mixed
    return lin_result_begin(&w->result, "sound", NULL, 1, err);
}

static int stops(void *context, double seconds, double duration)
{
    const lin_work *w = context;
    (void)duration; // from the container, which may be wrong
    w->job->seconds = seconds;
    return atomic_load(&w->job->gone) || lin_serve_hurry || seconds > w->serve->v->max_sound_s || lin_now() > w->job->until;
}

/* ---- text that is sent as it settles --------------------------------------------------------------------------------------- */

static void put_event(lin_work *w, const char *type, const char *key, const char *text, const char *warning)
{
    lin_buffer_json_format(&w->piece, "data: {'type':%s,%s:%s", type, key, text);
    if (*warning) lin_buffer_json_format(&w->piece, ",'warning':%s", warning);
    lin_buffer_text(&w->piece, "}\n\n");
}

// Sends newly settled text; at the end the whole text.
static lin_status send_text(lin_work *w, const lin_result *more, int is_end, const char *warning, lin_error *err)
{
    const size_t before = w->settling.text.n;
    LIN_TRY(lin_settling_add(&w->settling, &w->serve->live.words, more, is_end, err));
    if (w->settling.text.n > before) put_event(w, "transcript.text.delta", "delta", w->settling.text.data + before, "");
    if (is_end) put_event(w, "transcript.text.done", "text", lin_text_of(&w->settling.text), warning);
    return w->piece.n || w->piece.failed ? lin_job_put(w->job, &w->piece, err) : LIN_OK;
}

static lin_status send_settled(void *context, int lane, lin_result *result, lin_error *err)
{
    (void)lane;
    return send_text(context, result, 0, "", err);
}

/* ---- transcription --------------------------------------------------------------------------------------------------------- */

static lin_status open_session(const lin_serve *s, const lin_decoding *decoding, lin_file_worker **session, lin_error *err)
{
    const lin_utterances_options how = {.decoding = decoding,
                                        .ends = lin_reset_auto(&s->live.recognizer, &s->v->endpoints.rules)};
    return lin_file_worker_create(&s->live.recognizer, 1, &how, session, err);
}

static lin_status transcribe(lin_work *w, lin_job *job, const request *r, lin_error *err)
{
    lin_serve *s = w->serve;
    lin_phrases phrases = {0};
    lin_decoding own = s->live.decoding;
    lin_file_worker *session = NULL;
    int used = 0, left_out = 0;
    lin_status status = LIN_OK;
    if (r->n_phrases + r->n_prompt)
        status = lin_serve_phrases(s, lin_text_of(&r->likely), r->n_phrases, r->n_prompt, &phrases, &used, &left_out, err);
    if (left_out) ignore(job, r->hints);
    const int has_phrases = phrases.phones || phrases.words, differs = r->streams && (own.n_best > 1 || own.voice),
              is_own = has_phrases || differs;
    if (has_phrases) lin_phrases_use(&phrases, &own);
    if (r->streams) own.n_best = 1, own.voice = NULL; // streamed text has neither alternatives nor speakers
    if (status == LIN_OK && is_own) status = open_session(s, &own, &session, err);
    else if (status == LIN_OK && !w->session) status = open_session(s, &s->live.decoding, &w->session, err);
    lin_file_report report = {0};
    const lin_sound sound = {.path = job->path, .channel = LIN_CHANNEL_MIX, .results = &w->result};
    const lin_file_sink sink = {.context = w,
                                .begin = begin_result,
                                .progress = stops,
                                .settled = r->streams ? send_settled : NULL};
    lin_buffer_clear(&w->piece);
    lin_settling_begin(&w->settling, &s->live.words);
    if (status == LIN_OK) status = lin_file_worker_run(is_own ? session : w->session, &sound, &sink, &report, err);
    lin_file_worker_destroy(session);
    lin_phrases_free(&phrases);
    job->seconds = report.seconds;
    hide_path(report.warning, job->path);
    if (status == LIN_OK && r->streams) return send_text(w, &w->result, 1, report.warning, err);
    if (status == LIN_OK) status = put_transcript(s, job, r, &w->result, err);
    if (status != LIN_OK) return status;
    if (strstr(r->format, "json")) add_warning(&job->answer, report.warning);
    keep_warning(job, report.warning);
    return LIN_OK;
}

/* ---- alignment ------------------------------------------------------------------------------------------------------------- */

static lin_status open_lexicon(lin_serve *s, lin_error *err)
{
    const lin_wording_files files = {
        .dictionary = s->v->decoding.lexicon, .added = s->v->decoding.add_lexicon, .g2p = s->v->decoding.g2p};
    lin_status status = LIN_OK;
    pthread_mutex_lock(&s->workers.lock);
    if (!s->has_lexicon)
        status = lin_wording_open_for(&s->lexicon, &files, s->live.recognizer.phones, "words", "",
                                      &s->live.recognizer.warnings, err);
    s->has_lexicon |= status == LIN_OK;
    pthread_mutex_unlock(&s->workers.lock);
    return status;
}

static lin_status align(lin_work *w, lin_job *job, const request *r, lin_error *err)
{
    lin_serve *s = w->serve;
    lin_status status = LIN_OK;
    if (!w->aligner) {
        lin_aligner_options o = lin_aligner_options_default();
        o.n_threads = 1;
        status = open_lexicon(s, err);
        if (status == LIN_OK) status = lin_aligner_create(&s->live.recognizer, &s->lexicon, &o, &w->aligner, err);
    }
    const lin_sound sound = {.path = job->path, .channel = LIN_CHANNEL_MIX, .part = {0, s->v->max_sound_s + 1}};
    const lin_form_part *text = r->text ? r->text : r->phones;
    const lin_aligner_input in = {.id = "sound", .sound = &sound, .text = text->data, .n_text = text->n,
                                  .kind = r->text ? LIN_ALIGNER_WORDS : LIN_ALIGNER_PHONES};
    lin_alignment_clear(&w->alignment);
    if (status == LIN_OK) status = lin_aligner_align(w->aligner, &in, &w->alignment, err);
    job->seconds = w->alignment.seconds;
    if (status == LIN_OK && job->seconds > s->v->max_sound_s) status = lin_fail(err, LIN_STOPPED, "the sound is too long");
    hide_path(w->alignment.warning, job->path);
    return status == LIN_OK ? put_alignment(s, job, r, &w->alignment, err) : status;
}

static int http_status(lin_status status)
{
    switch (status) {
    case LIN_INVALID:
    case LIN_IO:
    case LIN_FORMAT:
    case LIN_MISMATCH:
    case LIN_UNSUPPORTED:
    case LIN_NUMERIC: return 400; // the sound or the text
    case LIN_STOPPED: return 503;
    default: return 500;
    }
}

// Says which limit stopped the work on an upload.
static lin_status explain_stop(const lin_serve_values *v, lin_job *job, lin_error *err)
{
    const int too_long = job->seconds > v->max_sound_s, too_slow = lin_now() > job->until;
    if (lin_serve_hurry) return lin_fail(err, LIN_STOPPED, "the server is stopping");
    if (!too_long && !too_slow) return LIN_STOPPED;
    job->status = 413;
    if (too_long) return lin_fail(err, LIN_STOPPED, "the sound is longer than %d s", v->max_sound_s);
    return lin_fail(err, LIN_STOPPED, "the sound takes more than %d s of work", v->max_work_s);
}

/* ---- a job ----------------------------------------------------------------------------------------------------------------- */

static void put_error(lin_work *w, lin_job *job, const char *message)
{
    lin_buffer_clear(&job->answer);
    snprintf(job->cause, sizeof job->cause, "%.*s", (int)sizeof job->cause - 1, message);
    if (job->n_pieces) { // the answer has begun
        lin_buffer_clear(&w->piece);
        lin_buffer_text(&w->piece, "event: error\ndata: ");
        lin_openai_put_error(&w->piece, job->status, message);
        lin_buffer_text(&w->piece, "\n\n");
        lin_job_put(job, &w->piece, NULL); // on failure the answer lacks transcript.text.done
    } else if (job->call->kind == LIN_CALL_INFERENCE) {
        lin_buffer_json_format(&job->answer, "{'error':%s}", message);
    } else {
        lin_openai_put_error(&job->answer, job->status, message);
    }
    job->answer_type = "application/json";
}

// Fills status and answer.
static void work_on(lin_work *w, lin_job *job)
{
    lin_form form;
    request r = {0};
    lin_error err = {0};
    w->job = job;
    job->status = 0;
    job->until = lin_now() + w->serve->v->max_work_s;
    lin_audio_stop_at(job->until);
    job->sound = -1;
    lin_status status = lin_buffer_status(&job->body, &err);
    if (status == LIN_OK) status = lin_form_parse(job->type, lin_text_of(&job->body), job->body.n, &form, &err);
    if (status == LIN_OK) status = read_request(job, &form, &r, &err);
    if (status == LIN_OK) status = write_sound(job, r.file, &err);
    if (status == LIN_OK) status = job->call->kind == LIN_CALL_ALIGN ? align(w, job, &r, &err) : transcribe(w, job, &r, &err);
    lin_audio_stop_at(0);
    if (status == LIN_STOPPED) status = explain_stop(w->serve->v, job, &err);
    if (job->sound >= 0) close(job->sound);
    lin_buffer_free(&r.likely);
    if (status == LIN_OK) {
        job->status = 200;
        return;
    }
    if (!job->status) job->status = http_status(status);
    hide_path(err.message, job->path);
    put_error(w, job, err.message);
}

static void free_work(lin_work *w)
{
    lin_file_worker_destroy(w->session);
    lin_aligner_destroy(w->aligner);
    lin_result_free(&w->result);
    lin_alignment_free(&w->alignment);
    lin_settling_free(&w->settling);
    lin_buffer_free(&w->piece);
}

/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum { BODY_S = 30, BODY_BYTES_A_SECOND = 20000 };

static void free_job(lin_job *job)
{
    lin_buffer *const buffers[] = {&job->body, &job->answer, &job->ignored, &job->warning, &job->pieces, &job->sending};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) lin_buffer_free(buffers[i]);
    lin_free(job);
}

lin_status lin_job_put(lin_job *job, lin_buffer *piece, lin_error *err)
{
    pthread_mutex_lock(&job->serve->workers.lock);
    lin_status status = lin_buffer_status(piece, err);
    if (status == LIN_OK) {
        lin_buffer_bytes(&job->pieces, lin_text_of(piece), piece->n);
        status = lin_buffer_status(&job->pieces, err);
        job->pieces.failed = 0; // send what is there; the worker ends the answer
    }
    job->n_pieces += status == LIN_OK;
    if (!atomic_load(&job->gone)) lin_serve_touch(job->client);
    pthread_mutex_unlock(&job->serve->workers.lock);
    lin_buffer_clear(piece);
    return status;
}

static void count(lin_serve_counts *counts, const lin_job *job)
{
    if (job->status == 200) {
        counts->files++;
        counts->file_ms += (long long)(job->seconds * 1000 + 0.5);
    } else {
        counts->failed++;
        counts->too_large += job->status == 413;
    }
}

void *lin_files_work(void *serve)
{
    lin_serve *s = serve;
    lin_work w = {.serve = s};
    lin_job *job;
    while ((job = (lin_job *)(void *)lin_workers_take(&s->workers)) != NULL) {
        if (!atomic_load(&job->gone)) work_on(&w, job);
        lin_buffer_free(&job->body);
        count(&s->counts, job);
        pthread_mutex_lock(&s->workers.lock);
        job->done = 1;
        // A client is freed only after lin_files_leave, which takes this lock; a job whose client is gone belongs to the worker.
        const int gone = atomic_load(&job->gone);
        if (!gone) lin_serve_touch(job->client);
        pthread_mutex_unlock(&s->workers.lock);
        if (gone) free_job(job);
    }
    free_work(&w);
    return NULL;
}

/* ---- the server's thread --------------------------------------------------------------------------------------------------- */

static lin_job *turn_away(lin_client *c, atomic_llong *count, int status, const char *message)
{
    if (!c->serve->asked) lin_serve_log_end(c, status, message);
    lin_serve_refuse(c->serve, c->peer, count, status, message);
    return NULL;
}

lin_job *lin_files_begin(lin_client *c, const lin_web_request *r, const lin_call *call)
{
    lin_serve *s = c->serve;
    const long long most = (long long)s->v->max_upload_mb << 20;
    const int is_chunked = strcasecmp(r->encoding, "chunked") == 0;
    if (s->draining) return turn_away(c, NULL, 503, "the server is stopping");
    if (*r->encoding && !is_chunked) return turn_away(c, NULL, 501, "the Transfer-Encoding of a body can be chunked only");
    if (is_chunked && r->length >= 0)
        return turn_away(c, NULL, 400, "a body has one of Content-Length and Transfer-Encoding");
    if (r->length == LIN_WEB_BAD_LENGTH) return turn_away(c, NULL, 400, "Content-Length is not a number");
    if (!is_chunked && r->length < 0)
        return turn_away(c, NULL, 411, "a body needs Content-Length or Transfer-Encoding: chunked");
    if (r->length > most) return turn_away(c, &s->counts.too_large, 413, s->too_large);
    if (s->n_jobs >= s->v->max_files) return turn_away(c, &s->counts.refused_files, 429, "too many uploads at once");
    lin_job *job = lin_calloc(1, sizeof *job);
    if (!job) return turn_away(c, NULL, 503, "out of memory");
    job->serve = s;
    job->client = c;
    job->call = call;
    job->is_chunked = is_chunked;
    job->body_until = lin_now() + BODY_S + (is_chunked ? 0 : (double)r->length / BODY_BYTES_A_SECOND);
    snprintf(job->type, sizeof job->type, "%s", r->type);
    s->n_jobs++;
    return job;
}

// Refuses a job that no worker has taken yet.
static void give_up(lin_client *c, atomic_llong *count, int status, const char *message)
{
    lin_job *job = c->job;
    c->job = NULL;
    c->serve->n_jobs--;
    free_job(job);
    turn_away(c, count, status, message);
}

// The body is complete.
static void queue_job(lin_client *c)
{
    lin_serve *s = c->serve;
    c->job->posted = 1;
    if (lin_workers_give(&s->workers, &c->job->task, s, NULL) != LIN_OK) give_up(c, NULL, 503, "out of memory");
}

static void keep(lin_job *job, const char *bytes, size_t n)
{
    const size_t most = (size_t)job->serve->v->max_upload_mb << 20;
    if (job->body.n + n <= most) lin_buffer_bytes(&job->body, bytes, n);
    else job->too_large = 1;
}

// A chunked body gets as much time per byte as one of known length.
static void keep_chunks(lin_client *c, const char *bytes, size_t n)
{
    lin_job *job = c->job;
    const char *data;
    for (size_t at = 0, n_data; at < n && job->chunks.state < LIN_CHUNKED_DONE; keep(job, data, n_data))
        at += lin_chunked_take(&job->chunks, bytes + at, n - at, &data, &n_data);
    job->body_until += (double)n / BODY_BYTES_A_SECOND;
    if (job->too_large) {
        give_up(c, &c->serve->counts.too_large, 413, c->serve->too_large);
    } else if (job->chunks.state == LIN_CHUNKED_BAD) {
        give_up(c, NULL, 400, "the chunks of the body are damaged");
    } else if (job->chunks.state == LIN_CHUNKED_DONE) {
        c->serve->transport->expect(c->peer, 0);
        queue_job(c);
    }
}

void lin_files_data(lin_client *c, const char *bytes, size_t n)
{
    lin_job *job = c->job;
    if (!job || job->posted) return;
    if (job->is_chunked) keep_chunks(c, bytes, n);
    else keep(job, bytes, n);
}

// For a chunked body this means that the network takes no more of it: it is too large.
void lin_files_complete(lin_client *c)
{
    if (!c->job || c->job->posted) return;
    if (c->job->is_chunked) give_up(c, &c->serve->counts.too_large, 413, c->serve->too_large);
    else queue_job(c);
}

void lin_files_expect(lin_client *c, double now)
{
    lin_job *job = c->job;
    if (!job || job->posted) return;
    if (now <= job->body_until) {
        c->serve->transport->expect(c->peer, (int)(job->body_until - now) + BODY_S);
        return;
    }
    give_up(c, NULL, 408, "the body did not come in time");
}

void lin_files_drain(lin_client *c)
{
    if (c->job && !c->job->posted) give_up(c, NULL, 503, "the server is stopping");
}

// The head of an answer, with its body if that is whole.
static void reply(lin_client *c, const lin_job *job)
{
    lin_web_header headers[2];
    lin_web_reply r = {.status = job->begun ? 200 : job->status, .headers = headers};
    if (job->ignored.n) headers[r.n_headers++] = (lin_web_header){"linnet-ignored", job->ignored.data};
    if (job->warning.n && !job->begun) headers[r.n_headers++] = (lin_web_header){"linnet-warning", job->warning.data};
    if (job->begun) {
        r.type = "text/event-stream";
        r.goes_on = 1;
    } else {
        r.type = job->answer_type;
        r.body = lin_text_of(&job->answer);
        r.n = job->answer.n;
    }
    lin_serve_reply(c->serve, c->peer, &r);
}

void lin_files_go_on(lin_client *c)
{
    lin_job *job = c->job;
    if (!job) return;
    pthread_mutex_lock(&c->serve->workers.lock);
    const int done = job->done, waits = job->pieces.n > 0;
    pthread_mutex_unlock(&c->serve->workers.lock);
    if (waits && !job->begun) {
        job->begun = 1;
        reply(c, job);
    }
    if (done) {
        c->sound_s = job->seconds;
        lin_serve_log_end(c, job->status, job->status == 200 ? "ended" : job->cause);
    }
    if (job->begun) { // it is freed when the client is gone
        c->serve->transport->want(c->peer);
        if (done) c->serve->transport->end(c->peer, 0, "");
    } else if (done) {
        reply(c, job);
        c->job = NULL;
        c->serve->n_jobs--;
        free_job(job);
    }
}

int lin_files_next(lin_client *c, lin_web_message *m)
{
    lin_job *job = c->job;
    if (!job || !job->begun) return 0;
    lin_buffer_clear(&job->sending);
    pthread_mutex_lock(&c->serve->workers.lock);
    const lin_buffer now = job->pieces;
    job->pieces = job->sending;
    job->sending = now;
    pthread_mutex_unlock(&c->serve->workers.lock);
    *m = (lin_web_message){.data = now.data, .n = now.n};
    return now.n > 0;
}

void lin_files_leave(lin_client *c)
{
    lin_job *job = c->job;
    if (!job) return;
    c->job = NULL;
    pthread_mutex_lock(&c->serve->workers.lock);
    atomic_store(&job->gone, 1);
    const int free_now = !job->posted || job->done;
    job->client = NULL;
    pthread_mutex_unlock(&c->serve->workers.lock);
    c->serve->n_jobs--;
    if (free_now) free_job(job);
}
