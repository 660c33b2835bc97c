// cmd_listen.c - linnet listen: a microphone to phonemes and words, while one speaks.

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "app/inputs.h"
#include "app/live_text.h"
#include "app/terminal.h"
#include "base/memory.h"
#include "frontend/microphone.h"
#include "linnet/stream.h"

typedef struct listen_values {
    const char *microphone, *from, *save, *second_pass;
    lin_model_values model;
    lin_endpoint_values endpoints;
    lin_decoding_values decoding;
    lin_input_values input;
    double buffer_s;
    int paced;
    int json, plain, ipa, stats, quiet;
    const char *language;
} listen_values;

static const lin_option options[] = {
    {.name = "microphone", .letter = 'd', .type = LIN_OPTION_STRING, .at = offsetof(listen_values, microphone),
     .value = "NAME|INDEX", .help = "The microphone, or the source of PulseAudio or PipeWire: its number in linnet devices, or "
                                    "part of its name; if not given, the system's default"},
    LIN_JSON_ROW(offsetof(listen_values, json), "One JSON object per line for every change; see docs/live.md"),
    {.name = "plain", .type = LIN_OPTION_FLAG, .at = offsetof(listen_values, plain),
     .help = "Write a line per utterance even if the output is a terminal"},
    {.name = "ipa", .type = LIN_OPTION_FLAG, .at = offsetof(listen_values, ipa), .help = "Write phonemes in the IPA"},
    {.name = "save", .letter = 's', .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(listen_values, save), .value = "WAV",
     .help = "Save the sound (32-bit floats at the device's rate)"},
    {.name = "stats", .type = LIN_OPTION_FLAG, .at = offsetof(listen_values, stats),
     .help = "Print latencies at the end"},
    LIN_QUIET_ROW(offsetof(listen_values, quiet), "Print only results and errors"),
    LIN_LANGUAGE_ROW(listen_values, language),
    LIN_DECODING_ROWS(listen_values, decoding),
    {.name = "after-keyword", .type = LIN_OPTION_DOUBLE, .at = offsetof(listen_values, decoding.after_keyword_s), .min = 0,
     .max = 86400, .value = "S",
     .help = "Write words or phonemes only for this many seconds after a keyword, and to the end of the utterance"},
    LIN_DIARIZE_ROW(listen_values, decoding, "each utterance that ends is written as the turns",
                    "In dialogues made from read speech, the speaker is wrong for 1 to 4 % of the speech, 14 % with learners, "
                    "and 10 to 21 % if a tenth overlaps"),
    LIN_ENDPOINT_ROWS(listen_values, endpoints,
                      "When the network is reset: at every endpoint, never, or (auto) at every endpoint if the model does not "
                      "forget by itself. The joined lines equal the output of linnet transcribe with endpoint or never; with "
                      "never only for greedy decoding, because a search starts anew with each utterance"),
    LIN_CHANNEL_ROWS(listen_values, input),
    {.name = "buffer", .expert = 1, .type = LIN_OPTION_DOUBLE, .at = offsetof(listen_values, buffer_s), .text = "10",
     .min = 0.05, .max = 600, .value = "S",
     .help = "Seconds of sound to keep while the computer is busy; sound beyond them is dropped and counted"},
    {.name = "from", .type = LIN_OPTION_FILE, .at = offsetof(listen_values, from),
     .help = "Read a sound file in real time instead of a microphone; - reads standard input, WAV and headerless PCM as they "
             "arrive"},
    {.name = "paced", .expert = 1, .type = LIN_OPTION_FLAG, .at = offsetof(listen_values, paced), .text = "yes",
     .help = "Read the file of --from in real time"},
    LIN_PCM_ROWS(listen_values, input,
                 "The file of --from is headerless; without this option, only a pipe or standard input whose bytes match no "
                 "known format is read as such",
                 "Sample rate of the microphone or of headerless sound; if not given, the device's own, or 16000",
                 "Channels of the microphone or of headerless sound; if not given, at most two, or one"),
    {.type = LIN_OPTION_HEADING, .help = "Network"},
    LIN_MODEL_ROW(offsetof(listen_values, model.model)),
    LIN_BEST_ROW(offsetof(listen_values, model.best), "2.4", "--second-pass offline --combine default"),
    LIN_DEREVERB_ROW(offsetof(listen_values, model.dereverb)),
    LIN_SECOND_PASS_ROW(listen_values, second_pass),
    LIN_COMBINE_ROW(listen_values, decoding),
    {.name = "device", .expert = 1, .type = LIN_OPTION_STRING, .at = offsetof(listen_values, model.device), .text = "cpu",
     .value = "auto|cpu|cuda[:N]", .help = "Where the network runs; for one stream a GPU is seldom faster"},
    {.name = "precision", .expert = 1, .type = LIN_OPTION_CHOICE, .at = offsetof(listen_values, model.precision), .text = "auto",
     .choices = "auto|fp32|bf16|int8",
     .help = "Precision of the network's matrix products. auto: int8 on a CPU for a model stored in eight bits, else fp32"},
    {.type = LIN_OPTION_END},
};

typedef struct listening {
    const listen_values *v;
    int channel;
    lin_live_models live;
    lin_watch phrases; // the file of --context, or those of --grammar
    lin_session session;
    lin_result turn;
    lin_microphone *capture;
    lin_recording *recording; // NULL: not saving, or no longer
    lin_terminal *terminal;   // NULL: no display
    int display;              // its descriptor, -1: none
    int lines;                // results go to standard output as lines
    float *samples;
    int block; // frames of sound read at a time
    lin_live_stats stats;
    lin_live_texts texts;
    lin_buffer head, status, out;
    int begun;          // a sample that is not 0 has come
    double captured_at;    // by lin_now(), when the last sample was captured
    double peak, drawn_at, reported_at, silent_since;
    lin_microphone_report reported; // losses that a message has counted
    int save_failed, resumed, finishing;
} listening;

static volatile sig_atomic_t stop_asked;

/* ---- signals --------------------------------------------------------------------------------------------------------------- */

// The first signal requests an orderly end. The second, or one that dumps core, kills; the terminal is restored first.
static void on_end(int number)
{
    if (lin_interrupted || number == SIGQUIT) {
        lin_terminal_rescue();
        signal(number, SIG_DFL);
        raise(number);
    }
    lin_interrupted = number;
}

static void on_stop(int number)
{
    (void)number;
    stop_asked = 1;
}

static void watch_signals(int display)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_end;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    if (display) sigaction(SIGQUIT, &action, NULL);
    action.sa_handler = on_stop;
    if (display) sigaction(SIGTSTP, &action, NULL);
    signal(SIGPIPE, SIG_IGN); // a closed pipe is then an error of writing, reported like a full disk
}

static void stop_now(listening *l)
{
    stop_asked = 0;
    lin_terminal_suspend(l->terminal);
    raise(SIGSTOP);
    lin_terminal_resume(l->terminal);
    l->resumed = 1;
}

/* ---- what is shown --------------------------------------------------------------------------------------------------------- */

static void tell(listening *l, const char *fmt, ...) LIN_PRINTF(2, 3);

// Above the live display, which must not be written into.
static void tell(listening *l, const char *fmt, ...)
{
    char text[sizeof(lin_error) + 64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    lin_one_line(text); // a driver's name is not trusted
    if (l->terminal) lin_terminal_keep(l->terminal, "linnet: ", text);
    else lin_complain("%s", text);
}

static lin_status write_out(listening *l, lin_error *err)
{
    const lin_status status = lin_buffer_write(&l->out, stdout, "standard output", err);
    lin_buffer_clear(&l->out);
    return status;
}

static const lin_microphone_format *format_of(const listening *l) { return lin_microphone_format_of(l->capture); }

static const char *source_of(const listening *l) { return l->v->from ? l->v->from : format_of(l)->device.name; }

// Seconds from the capture of the sound at `at` until now.
static double since(const listening *l, double at) { return lin_now() - (l->captured_at - (l->stats.seconds - at)); }

static void measure(listening *l, const lin_session_view *view)
{
    // At the end of the sound or after a key, results come sooner than usual: they do not count.
    const int natural = !l->finishing && (view->end == LINNET_GROWS || view->end == LINNET_AFTER);
    const int settles = natural && !view->replaced; // a second pass settles everything again, at once
    if (natural && view->revision == 1) lin_lags_add(&l->stats.first, since(l, view->start_s));
    l->stats.phones += view->settled->n_phones - view->old_phones;
    l->stats.words += view->settled->n_words - view->old_words;
    for (int i = view->old_phones; settles && i < view->settled->n_phones; i++)
        lin_lags_add(&l->stats.phone, since(l, view->settled->phones[i].end_s));
    for (int i = view->old_words; settles && i < view->settled->n_words; i++)
        lin_lags_add(&l->stats.word, since(l, view->settled->words[i].end_s));
    if (view->end == LINNET_GROWS) return;
    if (natural) lin_lags_add(&l->stats.final, since(l, view->end_s));
    l->stats.utterances++;
}

// A line for each new keyword; a second pass may change those of the final view.
static void put_keywords(listening *l, const lin_session_view *view)
{
    for (int i = view->old_keywords; i < view->settled->n_keywords; i++) {
        const lin_result_keyword *k = &view->settled->keywords[i];
        lin_buffer_clear(&l->head);
        lin_buffer_format(&l->head, "* %s ", view->settled->text + k->text);
        lin_buffer_fixed(&l->head, (double)k->confidence, 2);
        if (l->lines) lin_buffer_bytes(&l->out, l->head.data, l->head.n);
        if (l->lines) lin_buffer_char(&l->out, '\n');
        if (l->terminal && !l->head.failed) lin_terminal_keep(l->terminal, "", l->head.data);
    }
}

static lin_status put_line(listening *l, const lin_session_view *view, lin_error *err)
{
    const char *line = l->texts.readable.n ? l->texts.readable.data : l->texts.settled.data;
    const int speaker = lin_result_speaker(view->settled, 0);
    lin_buffer_clear(&l->head);
    lin_live_put_head(&l->head, view);
    const size_t from = l->head.n;
    if (speaker) lin_buffer_format(&l->head, "S%d: ", speaker);
    LIN_TRY(lin_buffer_status(&l->head, err));
    if (l->terminal) lin_terminal_keep(l->terminal, l->head.data, line);
    if (!l->lines) return LIN_OK;
    lin_buffer_format(&l->out, "%s%s\n", l->head.data + from, line);
    return LIN_OK;
}

// The lines of an utterance that has ended: one for each turn of a speaker.
static lin_status put_turns(listening *l, const lin_session_view *view, lin_error *err)
{
    const lin_result *all = view->settled;
    const int n = lin_result_items(all);
    lin_session_view turn = *view;
    for (int first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && lin_result_speaker(all, end) == lin_result_speaker(all, first); end++) {
        }
        if (first == 0 && end == n) return put_line(l, view, err);
        LIN_TRY(lin_result_begin(&l->turn, "", NULL, 1, err));
        LIN_TRY(lin_result_append_part(&l->turn, all, first, end - first, err));
        turn.settled = &l->turn;
        turn.start_s = lin_result_item(all, first).start_s;
        turn.end_s = lin_result_item(all, end - 1).end_s;
        LIN_TRY(lin_live_spell(&l->texts, &l->live.words, &turn, 0, err));
        LIN_TRY(put_line(l, &turn, err));
    }
    return LIN_OK;
}

// A view of the utterance: measured, written and shown.
static lin_status show(void *context, const lin_session_view *view, lin_error *err)
{
    listening *l = context;
    const int is_final = view->end != LINNET_GROWS;
    measure(l, view);
    if (!l->v->json && !view->replaced) put_keywords(l, view);
    lin_buffer_clear(&l->head);
    lin_live_put_head(&l->head, view);
    LIN_TRY(lin_live_spell(&l->texts, &l->live.words, view, 0, err));
    LIN_TRY(lin_buffer_status(&l->head, err));
    const int stays = is_final && l->texts.settled.n > 0;
    if (l->v->json) lin_live_put_json(&l->out, &l->live.words, view, &l->texts, since(l, view->end_s), 0);
    if (stays) {
        LIN_TRY(put_turns(l, view, err));
        l->drawn_at = 0;
    }
    if (l->out.n || l->out.failed) LIN_TRY(write_out(l, err));
    if (is_final || l->texts.settled.n + l->texts.open.n == 0) {
        lin_buffer_clear(&l->texts.settled);
        lin_buffer_clear(&l->head);
        lin_buffer_clear(&l->texts.open);
    }
    return LIN_OK;
}

// Keeps the text appended to the status since byte `from` if the row has room for it, else removes it.
static void fit_part(listening *l, size_t from, int *room)
{
    lin_buffer *s = &l->status;
    const int n = s->failed ? 0 : lin_text_columns(s->data + from, s->n - from);
    if (n <= *room) {
        *room -= n;
        return;
    }
    s->n = from;
    s->data[from] = 0;
}

// Appends a part with a number in it, none if digits is below 0, and fits it.
static void put_part(listening *l, const char *before, double value, int digits, const char *behind, int *room)
{
    const size_t from = l->status.n;
    lin_buffer_text(&l->status, before);
    if (digits >= 0) lin_buffer_fixed(&l->status, value, digits);
    lin_buffer_text(&l->status, behind);
    fit_part(l, from, room);
}

// Losses and problems come first: the rest is cut where the row ends.
static void put_status(listening *l)
{
    const double db = l->peak > 0 ? 20 * log10(l->peak) : -99;
    const int columns = lin_terminal_columns(l->terminal), bar = columns < 80 ? columns / 8 + 1 : 20;
    lin_buffer *s = &l->status;
    lin_buffer_clear(s);
    lin_terminal_bar(l->terminal, (db + 60) / 60, bar, s);
    int room = columns - 1 - bar;
    const size_t from = s->n;
    lin_buffer_char(s, ' ');
    const size_t number = s->n;
    lin_buffer_fixed(s, db < -99 ? -99 : db, 0);
    lin_buffer_pad(s, number, 3, 1);
    lin_buffer_text(s, " dB  ");
    lin_live_put_time(s, l->stats.seconds);
    fit_part(l, from, &room);
    if (l->reported.dropped) put_part(l, "  LOST ", (double)l->reported.dropped / l->stats.rate_hz, 2, " s", &room);
    if (l->silent_since > 0 && lin_now() - l->silent_since > 2)
        put_part(l, columns < 60 ? "  only zeros" : "  only zeros: is it muted?", 0, -1, "", &room);
    const lin_lags *latency = l->stats.has_words ? &l->stats.word : &l->stats.phone;
    if (latency->n) put_part(l, "  latency ", lin_lags_quantile(latency, 0.5) * 1e3, 0, " ms", &room);
    put_part(l, room < 40 ? "  Ctrl-C ends" : "  Ctrl-C ends, Enter begins a new line", 0, -1, "", &room);
}

static void draw(listening *l)
{
    const double now = lin_now();
    if (!l->terminal || now - l->drawn_at < 0.05) return;
    l->drawn_at = now;
    put_status(l);
    if (lin_buffer_status(&l->status, NULL) != LIN_OK) return;
    const lin_buffer *settled = &l->texts.settled, *open = &l->texts.open;
    lin_terminal_draw(l->terminal, &(lin_terminal_live){l->head.n ? l->head.data : "", settled->n ? settled->data : "",
                                                        open->n ? open->data : "", l->status.data});
}

// Reports lost sound at once, but at most once a second.
static lin_status tell_losses(listening *l, lin_error *err)
{
    lin_microphone_report report;
    lin_microphone_report_now(l->capture, &report);
    const int64_t dropped = report.dropped - l->reported.dropped, overflows = report.overflows - l->reported.overflows;
    if ((dropped == 0 && overflows == 0) || lin_now() - l->reported_at < 1) return LIN_OK;
    l->reported = report;
    l->reported_at = lin_now();
    if (dropped)
        tell(l, "%.3f s of sound were lost: this computer, or the program that reads the output, is too slow",
             (double)dropped / l->stats.rate_hz);
    if (overflows) tell(l, "the sound system has lost sound %lld time%s", (long long)overflows, overflows == 1 ? "" : "s");
    if (!l->v->json) return LIN_OK;
    lin_live_put_lost(&l->out, &report, l->stats.rate_hz);
    return write_out(l, err);
}

// Watches the files of the grammar that was just read: the set of files it includes may have changed.
static lin_status watch_grammar(listening *l, lin_error *err)
{
    const lin_buffer *files = lin_decoding_grammar_files(&l->live.decoding);
    if (l->phrases.n == 0 || !files) return LIN_OK; // nothing is watched
    LIN_TRY(lin_buffer_status(files, err));
    for (size_t at = 0; at < files->n; at += strlen(files->data + at) + 1)
        LIN_TRY(lin_watch_add(&l->phrases, files->data + at, err));
    return LIN_OK;
}

// Phrases or a grammar that changed apply from here on; if the new file cannot be read, the old ones stay.
static lin_status read_phrases_again(listening *l, lin_error *err)
{
    lin_error why = {0};
    int n;
    const int grammar = l->v->decoding.grammar != NULL;
    if (!lin_watch_changed(&l->phrases, lin_now())) return LIN_OK;
    const int failed = lin_decoding_reread(&l->live.decoding, &n, &why) != LIN_OK;
    LIN_TRY(watch_grammar(l, err));
    if (failed) tell(l, "%s; the previous %s", why.message, grammar ? "grammar remains" : "phrases remain");
    else if (!l->v->quiet)
        tell(l, grammar ? "a grammar of %d word%s in use from now on" : "%d phrase%s in use from now on", n, n == 1 ? "" : "s");
    if (!l->v->json) return LIN_OK;
    lin_live_put_context(&l->out, n, failed ? why.message : "");
    return write_out(l, err);
}

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

// A broken driver may deliver NaN or infinity among good samples.
static void mend(listening *l, float *samples, size_t n)
{
    for (;;) {
        const size_t bad = lin_audio_find_bad(samples, n);
        if (bad == n) return;
        samples[bad] = 0;
        l->stats.bad_samples++;
        samples += bad;
        n -= bad;
    }
}

static double level(const float *samples, size_t n)
{
    float peak = 0;
    for (size_t i = 0; i < n; i++) peak = fabsf(samples[i]) > peak ? fabsf(samples[i]) : peak;
    return (double)peak;
}

// A device that was just opened delivers zeros until it runs: the sound begins with the first sample that is not 0.
static int leading_zeros(listening *l, const float *samples, int n, int channels)
{
    int i = 0;
    if (l->begun || l->v->from) return 0;
    while (i < n * channels && samples[i] == 0) i++;
    l->begun = i < n * channels;
    return i / channels;
}

static void keep(listening *l, const float *samples, int n)
{
    lin_error err = {0};
    if (!l->recording || lin_recording_write(l->recording, samples, n, &err) == LIN_OK) return;
    // Recognition goes on without the recording.
    tell(l, "%s", err.message);
    if (lin_recording_close(l->recording, &err) != LIN_OK) tell(l, "%s", err.message);
    l->recording = NULL;
    l->save_failed = 1;
}

static lin_status take(listening *l, float *samples, int n, lin_error *err)
{
    const int channels = format_of(l)->channels;
    const double begin = lin_now();
    l->captured_at = begin - lin_microphone_age(l->capture);
    mend(l, samples, (size_t)(n * channels));
    const double peak = level(samples, (size_t)(n * channels));
    const double decayed = l->peak * pow(0.1, (double)n / l->stats.rate_hz); // 20 dB a second
    l->peak = peak > decayed ? peak : decayed;
    if (peak > 0) l->silent_since = 0;
    else if (l->silent_since == 0) l->silent_since = begin;
    const int skip = leading_zeros(l, samples, n, channels);
    samples += skip * channels;
    n -= skip;
    if (n == 0) return LIN_OK;
    keep(l, samples, n);
    l->stats.seconds += (double)n / l->stats.rate_hz;
    lin_status status = lin_session_push(&l->session, samples, n, err);
    l->stats.busy_s += lin_now() - begin;
    return status;
}

// Flushes the resampler and the look-ahead, and ends the last utterance.
static lin_status finish(listening *l, lin_error *err)
{
    l->finishing = 1;
    return lin_session_finish(&l->session, err);
}

static lin_status take_keys(listening *l, lin_error *err)
{
    int key;
    while (l->terminal && (key = lin_terminal_key(l->terminal)) >= 0) {
        if (key == '\n' || key == '\r') LIN_TRY(lin_session_end_utterance(&l->session, err));
        if (key == 'q' || key == 4) lin_interrupted = SIGINT;
    }
    return LIN_OK;
}

// Until the sound ends, the microphone is lost or stalled (LIN_IO), or a signal ends it.
static lin_status listen(listening *l, lin_error *err)
{
    int n;
    while (!lin_interrupted && !lin_microphone_ended(l->capture)) {
        if (stop_asked && l->terminal) stop_now(l);
        const lin_status got = lin_microphone_read(l->capture, l->samples, l->block, 50, &n, err);
        if (n > 0) LIN_TRY(take(l, l->samples, n, err));
        // A program that was suspended and resumed has not read its microphone: that is no failure.
        const int excused = l->resumed && got != LIN_OK;
        if (n > 0 || excused) l->resumed = 0;
        if (!excused) LIN_TRY(got);
        LIN_TRY(tell_losses(l, err));
        LIN_TRY(take_keys(l, err));
        LIN_TRY(read_phrases_again(l, err));
        draw(l);
    }
    // Sound captured before the signal.
    lin_microphone_report report;
    lin_microphone_report_now(l->capture, &report);
    for (int64_t left = report.waiting; left > 0; left -= n) {
        const int most = left < l->block ? (int)left : l->block;
        if (lin_microphone_read(l->capture, l->samples, most, 0, &n, NULL) != LIN_OK || n == 0) break;
        LIN_TRY(take(l, l->samples, n, err));
    }
    return LIN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

static lin_status open_capture(listening *l, lin_error *err)
{
    const listen_values *v = l->v;
    lin_microphone_options microphone = lin_microphone_options_default();
    microphone.device = v->microphone;
    microphone.rate_hz = v->input.rate_hz;
    microphone.channels = v->input.channels;
    microphone.interleaved = l->channel >= 0;
    microphone.ring_s = v->buffer_s;
    lin_pcm_format raw;
    microphone.path = v->from;
    microphone.raw = lin_input_format(&v->input, &raw);
    microphone.unpaced = !v->paced;
    LIN_TRY(lin_microphone_open(&microphone, &l->capture, err));
    const lin_audio_format *file = format_of(l)->file;
    if (file && *file->notice) lin_complain("%s", file->notice);
    return LIN_OK;
}

static lin_status open_session(listening *l, lin_error *err)
{
    const listen_values *v = l->v;
    const int rate_hz = format_of(l)->rate_hz, channels = format_of(l)->channels;
    lin_session_options o = lin_session_options_default();
    o.rate_hz = rate_hz;
    o.channels = channels;
    o.channel = l->channel;
    o.ends = lin_endpoint_ends(&v->endpoints, &l->live.recognizer);
    o.decoding = &l->live.decoding;
    o.second = v->second_pass ? &l->live.second : NULL;
    const lin_utterances_sink sink = {.context = l, .show = show};
    const lin_status status = lin_session_open(&l->session, &l->live.recognizer, &o, &sink, err);
    if (status == LIN_INVALID) return lin_fail_at(err, status, "%s", source_of(l)); // it lacks the channel
    if (status != LIN_OK) return status;
    l->stats.rate_hz = rate_hz;
    l->block = rate_hz / 10;
    l->samples = lin_alloc((size_t)(l->block * channels), sizeof *l->samples);
    if (!l->samples) return lin_no_memory(err, "sound", (size_t)(l->block * channels) * sizeof *l->samples);
    return v->save ? lin_recording_create(v->save, rate_hz, channels, &l->recording, err) : LIN_OK;
}

static lin_status open_all(listening *l, lin_error *err)
{
    const listen_values *v = l->v;
    // Watch before reading: a write in between is then seen. Alternatives need one list from beginning to end.
    const char *likely = v->decoding.grammar ? v->decoding.grammar : v->decoding.context;
    if (likely && v->decoding.n_best == 1) LIN_TRY(lin_watch_add(&l->phrases, likely, err));
    LIN_TRY(lin_live_models_open(&l->live, &v->model, v->second_pass, &v->decoding, v->ipa, v->quiet, err));
    LIN_TRY(watch_grammar(l, err));
    l->stats.has_words = v->decoding.words;
    l->stats.construction = lin_session_construction(&l->live.recognizer);
    // Open the microphone last: no sound waits while models are loaded.
    LIN_TRY(open_capture(l, err));
    LIN_TRY(open_session(l, err));
    return l->display >= 0 ? lin_terminal_open(l->display, &l->terminal, err) : LIN_OK;
}

// Prints the source, and how soon results come: phonemes by the model's construction; a search settles when what follows decides.
static lin_status announce(listening *l, lin_error *err)
{
    const int rate_hz = format_of(l)->rate_hz, channels = format_of(l)->channels;
    const char *const source = source_of(l), *const quote = l->v->from ? "" : "\"";
    if (!l->v->quiet) {
        const int greedy = lin_decoding_kind(&l->v->decoding) == LIN_SEARCH_GREEDY;
        tell(l, "listening to %s%.200s%s at %d Hz; a phoneme is %s about %.0f ms after its end%s", quote, source, quote, rate_hz,
             greedy ? "settled" : "shown", (l->stats.construction.total_s + l->live.recognizer.delay_s) * 1e3,
             greedy                   ? ""
             : l->v->decoding.rescore ? " and settled with its utterance"
             : l->v->decoding.words   ? ", a word is settled after about a second"
                                      : " and settled after a second or two");
    }
    if (!l->v->json) return LIN_OK;
    lin_live_put_begin(&l->out, source, &l->live.recognizer, rate_hz, channels);
    return write_out(l, err);
}

// Finishes and reports, whether the sound ended or something failed (status, err).
static int conclude(listening *l, lin_status status, lin_error *err)
{
    // The first failure is reported. What was recognised so far is not lost.
    lin_status next = l->session.r ? finish(l, status == LIN_OK ? err : NULL) : LIN_OK;
    if (status == LIN_OK) status = next;
    if (l->terminal) lin_terminal_close(l->terminal);
    l->terminal = NULL;
    const lin_audio_format *file = format_of(l)->file;
    if (file && *file->warning) lin_complain("%s", file->warning);
    lin_recording *recording = l->recording;
    l->recording = NULL;
    next = lin_recording_close(recording, status == LIN_OK ? err : NULL);
    if (status == LIN_OK) status = next;
    lin_microphone_report_now(l->capture, &l->stats.report);
    if (l->v->json) {
        lin_live_put_end(&l->out, &l->stats, status != LIN_OK ? "failed" : lin_interrupted ? "interrupted" : "ended",
                         status != LIN_OK ? err->message : "");
        next = write_out(l, status == LIN_OK ? err : NULL);
        if (status == LIN_OK) status = next;
    }
    lin_buffer_clear(&l->status);
    const int lossy = l->stats.report.dropped || l->stats.report.overflows || l->stats.bad_samples;
    if (!l->v->quiet || lossy) lin_live_put_summary(&l->status, &l->stats);
    if (l->status.n) lin_complain("%s", l->status.data);
    lin_buffer_clear(&l->status);
    if (l->v->stats) lin_live_put_stats(&l->status, &l->stats);
    if (l->status.n) fputs(l->status.data, stderr);
    if (status != LIN_OK) return lin_give_up(err);
    return l->save_failed || (file && file->incomplete) ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

static void release(listening *l)
{
    lin_terminal_close(l->terminal);
    lin_recording_close(l->recording, NULL);
    lin_microphone_close(l->capture);
    lin_session_close(&l->session);
    lin_result_free(&l->turn);
    lin_live_models_close(&l->live);
    lin_watch_free(&l->phrases);
    lin_free(l->samples);
    lin_live_texts_free(&l->texts);
    lin_buffer_free(&l->head);
    lin_buffer_free(&l->status);
    lin_buffer_free(&l->out);
    lin_free(l);
}

// Combinations of options that the table cannot check. LIN_EXIT_OK on success.
static int check(lin_parsed *parsed, int *channel)
{
    listen_values *v = parsed->values;
    lin_error err = {0};
    if (lin_endpoint_check(&v->endpoints.rules, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (lin_input_channel(parsed, &v->input, channel, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    lin_choose_best(&v->model, &v->decoding, &v->second_pass);
    const int wrong = lin_decoding_check(parsed, &v->decoding, 0);
    if (wrong != LIN_EXIT_OK) return wrong;
    if (v->decoding.combine && !v->second_pass)
        return lin_misuse(parsed, "--combine needs whole utterances: add --second-pass offline");
    if (v->decoding.after_keyword_s > 0 && !v->decoding.keywords.count && !v->decoding.keywords_file)
        return lin_misuse(parsed, "--after-keyword needs --keyword or --keywords");
    if (v->decoding.after_keyword_s > 0 && v->second_pass)
        return lin_misuse(parsed, "--after-keyword and --second-pass exclude each other");
    if (v->decoding.n_best > 1 && !v->json) return lin_misuse(parsed, "--n-best needs --json: only JSON has alternatives");
    if (v->model.device && *v->model.device >= '0' && *v->model.device <= '9')
        return lin_misuse(parsed, "--device %s: --device chooses where the network runs; --microphone %s chooses a microphone",
                          v->model.device, v->model.device);
    if (v->microphone && v->from) return lin_misuse(parsed, "--microphone and --from exclude each other");
    if (v->from && strcmp(v->from, "-") == 0 && isatty(STDIN_FILENO))
        return lin_misuse(parsed, "standard input is a terminal: pipe sound into it");
    if (v->input.raw && !v->from) return lin_misuse(parsed, "--raw describes a file: --from is missing");
    const char *dot = v->save ? strrchr(v->save, '.') : NULL;
    if (dot && !strchr(dot, '/') && strcasecmp(dot, ".wav") != 0)
        return lin_misuse(parsed, "--save %s: the sound is saved as WAV, name it .wav", v->save);
    return LIN_EXIT_OK;
}

static int run(lin_parsed *parsed)
{
    const listen_values *v = parsed->values;
    lin_error err = {0};
    int channel;
    const int misused = check(parsed, &channel);
    if (misused != LIN_EXIT_OK) return misused;
    listening *l = lin_calloc(1, sizeof *l);
    if (!l) {
        lin_no_memory(&err, "listening", sizeof *l);
        return lin_give_up(&err);
    }
    l->v = v;
    l->channel = channel;
    // The display is on standard output if that is a terminal, else on standard error.
    const int on_output = !v->json && lin_terminal_can(STDOUT_FILENO);
    const int on_error = !v->quiet && !isatty(STDOUT_FILENO) && lin_terminal_can(STDERR_FILENO);
    l->display = v->plain ? -1 : on_output ? STDOUT_FILENO : on_error ? STDERR_FILENO : -1;
    l->lines = !v->json && l->display != STDOUT_FILENO;
    watch_signals(l->display >= 0);
    int exit_status;
    lin_status status = open_all(l, &err);
    if (status != LIN_OK) {
        lin_terminal_close(l->terminal);
        l->terminal = NULL;
        exit_status = status == LIN_STOPPED ? LIN_EXIT_OK : lin_give_up(&err); // Ctrl-C before a pipe has brought anything
    } else {
        status = announce(l, &err);
        if (status == LIN_OK) status = listen(l, &err);
        exit_status = conclude(l, status, &err);
    }
    release(l);
    return exit_status;
}

const lin_command lin_command_listen = {
    .name = "listen",
    .operands = "",
    .summary = "convert speech from a microphone to phonemes or words, live",
    .description = "Writes the phonemes, or with --words the words, that are said into a microphone, until Ctrl-C. In a "
                   "terminal the last line shows the current utterance: first the settled part, which never changes, then "
                   "faintly the provisional part; below it the level, the time and the latency. Enter ends an utterance at "
                   "once. If the output is not a terminal, each utterance is a line, written when it has ended; with --json "
                   "every change is a line.\n\n"
                   "An utterance ends after some silence (--silence-after), or when it is very long. The network is then reset, "
                   "unless its model forgets by itself, so that recognition can run for days. The file of --context or "
                   "--grammar is read again whenever it changes, except with --n-best. Dropped sound is counted and reported. "
                   "If the microphone is lost or delivers nothing, the results so far are written, and the exit status is 1; "
                   "after Ctrl-C it is 0.",
    .examples = "  linnet listen\n"
                "  linnet listen --microphone USB --save talk.wav --stats\n"
                "  linnet listen --json | program\n"
                "  linnet listen --words --context names.txt\n"
                "  linnet listen --from talk.flac",
    .options = options,
    .brief = 1,
    .values_size = sizeof(listen_values),
    .run = run,
};
