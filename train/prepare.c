// prepare.c - a data directory becomes a feature cache with labels, by several threads, in order; see prepare.h.

#include "train/prepare.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/ordered.h"
#include "linnet/front.h"
#include "train/batches.h"
#include "train/dataset.h"

// Labels of one utterance, made before any sound is read.
typedef struct labelled {
    int *labels;
    int n;
    int use; // 0: its transcript cannot be used
} labelled;

typedef struct slot {
    lin_status status;
    lin_error error;
    lin_audio_format format; // with the warning about the sound
    lin_matrix frames;
} slot;

// Work items are (utterance, speed) in the order of the file.
typedef struct preparation {
    const lin_prepare_options *o;
    const lin_datadir *dir;
    lin_wording *wording;
    lin_prepare_counts *counts;
    labelled *labels;
    lin_dataset_writer *writer;
    int n_items, n_slots;
    slot *slots;
} preparation;

static int speeds(const preparation *p) { return p->o->n_speeds > 0 ? p->o->n_speeds : 1; }

static double speed_of(const preparation *p, int item) { return p->o->n_speeds > 0 ? p->o->speeds[item % speeds(p)] : 1; }

static void work(void *context, int item, int slot_number, int thread)
{
    preparation *p = context;
    (void)thread;
    slot *s = &p->slots[slot_number];
    const lin_utterance *u = lin_datadir_at(p->dir, item / speeds(p));
    lin_feature_options how = lin_feature_options_default();
    how.fbank = p->o->fbank;
    how.speed = speed_of(p, item);
    s->error = (lin_error){0};
    s->format = (lin_audio_format){0};
    s->frames.rows = 0;
    s->status = LIN_OK;
    if (p->labels[item / speeds(p)].use) {
        s->status = lin_front_read_all(u->audio, NULL, &how, &s->frames, &s->format, &s->error);
    }
}

// Labels of every utterance. A transcript that cannot be pronounced is reported here and its utterance left out.
static lin_status label_all(preparation *p, lin_error *err)
{
    int n = lin_datadir_count(p->dir);
    p->labels = lin_calloc((size_t)n, sizeof *p->labels);
    if (!p->labels) return lin_no_memory(err, "labels", (size_t)n * sizeof *p->labels);
    for (int i = 0; i < n; i++) {
        const lin_utterance *u = lin_datadir_at(p->dir, i);
        if (p->o->no_speech) {
            p->labels[i].use = 1;
            continue;
        }
        const int *labels;
        int count;
        lin_error inner = {0};
        lin_status status = lin_transcriber_line(p->wording->transcriber, u->text, strlen(u->text), &labels, &count, &inner);
        if (status == LIN_NO_MEMORY || status == LIN_UNSUPPORTED) return lin_fail_at(err, lin_fail_as(err, &inner), "%s", u->id);
        if (status != LIN_OK || count == 0) {
            lin_warn(&p->o->warnings, "%s: %s; left out", u->id,
                     status == LIN_OK ? "its transcript is empty" : inner.message);
            p->counts->failed += status != LIN_OK;
            p->counts->left_out += status == LIN_OK;
            continue;
        }
        int *copy = lin_alloc((size_t)count, sizeof *copy);
        if (!copy) return lin_no_memory(err, "labels", (size_t)count * sizeof *copy);
        memcpy(copy, labels, (size_t)count * sizeof *copy);
        p->labels[i] = (labelled){copy, count, 1};
    }
    return LIN_OK;
}

// With too many unknown words the dictionary is hardly one of this language.
static lin_status check_words(const preparation *p, lin_error *err)
{
    const lin_transcriber *t = p->wording->transcriber;
    const long words = lin_transcriber_words(t), unknown = lin_transcriber_unknown_words(t);
    lin_buffer some = {0};
    if (p->o->most_unknown <= 0 || (double)unknown <= p->o->most_unknown * (double)words) return LIN_OK;
    lin_status status = LIN_OK;
    for (int i = 0; i < 3 && i < lin_transcriber_unknown_count(t); i++)
        lin_buffer_format(&some, "%s%s", i ? ", " : "", lin_transcriber_unknown(t, i).word);
    status = lin_buffer_status(&some, err);
    if (status == LIN_OK)
        status =
            lin_fail(err, LIN_MISMATCH,
                     "%s: %ld of %ld words (%.1f %%) are not in the dictionary, among them %s; is it one of this language? "
                     "--lexicon names another, --oov lists the words, --allow-oov takes them as letter-to-sound rules have them",
                     p->o->source, unknown, words, 100.0 * (double)unknown / (double)words, some.data);
    lin_buffer_free(&some);
    return status;
}

// Files that do not exist are reported together: most often all are missing, because the folder of their paths is another one.
static lin_status check_files(preparation *p, lin_error *err)
{
    const int n = lin_datadir_count(p->dir);
    int missing = 0, first = -1;
    for (int i = 0; i < n; i++) {
        if (access(lin_datadir_at(p->dir, i)->audio, F_OK) == 0) continue;
        if (missing++ == 0) first = i;
        p->counts->failed += p->labels[i].use * speeds(p);
        p->labels[i].use = 0;
    }
    if (missing == 0) return LIN_OK;
    static const char hint[] = "--audio-root names the folder that their paths are relative to";
    const lin_utterance *u = lin_datadir_at(p->dir, first);
    if (missing == n)
        return lin_fail(err, LIN_IO, "%s: none of its %d sound files exists, the first is %s; %s", p->o->source, n, u->audio,
                        hint);
    lin_warn(&p->o->warnings, "%s: %d of %d sound files do not exist and are left out, the first is %s (%s); %s", p->o->source,
             missing, n, u->audio, u->id, hint);
    return LIN_OK;
}

static void speed_name(char *out, size_t size, double speed, const char *name)
{
    if (speed > 1 - 1e-9 && speed < 1 + 1e-9) {
        snprintf(out, size, "%s", name);
    } else {
        snprintf(out, size, "sp%g-%s", speed, name);
    }
}

// Writes a finished item to the cache; LIN_OK also if it was reported and left out.
static lin_status write_item(preparation *p, slot *s, int item, lin_error *err)
{
    const lin_utterance *u = lin_datadir_at(p->dir, item / speeds(p));
    const labelled *l = &p->labels[item / speeds(p)];
    char id[512], speaker[512];
    double speed = speed_of(p, item);
    if (!l->use) return LIN_OK;
    speed_name(id, sizeof id, speed, u->id);
    speed_name(speaker, sizeof speaker, speed, u->speaker);
    if (s->status == LIN_NO_MEMORY) {
        *err = s->error;
        return s->status;
    }
    if (s->format.warning[0]) lin_warn(&p->o->warnings, "%s: %s", id, s->format.warning);
    if (s->status != LIN_OK) {
        lin_warn(&p->o->warnings, "%s: %s; left out", id, s->error.message);
        p->counts->failed++;
        return LIN_OK;
    }
    const int stack = p->o->stack > 0 ? p->o->stack : 1;
    const int steps = (s->frames.rows + stack - 1) / stack, needed = lin_ctc_frames_needed(l->labels, l->n);
    if (s->frames.rows < 1 || steps < needed) {
        lin_warn(&p->o->warnings, "%s: %d frames are too few for %d phones (%d steps of %d needed); left out", id, s->frames.rows,
                 l->n, needed, stack);
        p->counts->left_out++;
        return LIN_OK;
    }
    lin_status status = lin_dataset_add(p->writer, id, speaker, s->frames.data, s->frames.rows, l->labels, l->n, err);
    if (status == LIN_INVALID || status == LIN_NUMERIC) {
        lin_warn(&p->o->warnings, "%s: %s; left out", id, err->message);
        p->counts->failed++;
        return LIN_OK;
    }
    if (status != LIN_OK) return status;
    p->counts->added++;
    p->counts->incomplete += s->format.incomplete;
    p->counts->frames += s->frames.rows;
    p->counts->labels += l->n;
    return LIN_OK;
}

static lin_status take(void *context, int item, int slot_number, lin_error *err)
{
    preparation *p = context;
    lin_status status = write_item(p, &p->slots[slot_number], item, err);
    if (status == LIN_OK && p->o->stop && *p->o->stop) status = lin_fail(err, LIN_STOPPED, "interrupted; nothing was written");
    if (p->o->progress) p->o->progress(p->o->context, item + 1, p->n_items, p->counts);
    return status;
}

static lin_status run_threads(preparation *p, lin_error *err)
{
    const int n_threads = lin_ordered_threads(p->o->jobs, p->n_items);
    p->n_slots = lin_ordered_slots(n_threads);
    p->slots = lin_calloc((size_t)p->n_slots, sizeof *p->slots);
    if (!p->slots) return lin_no_memory(err, "threads", (size_t)p->n_slots * sizeof *p->slots);
    return lin_ordered_run(&(lin_ordered){p->n_items, n_threads, p, work, take}, err);
}

static lin_status write_cache(preparation *p, const char *output, lin_error *err)
{
    const lin_features features = lin_fbank_to_model(&p->o->fbank);
    lin_status status = lin_dataset_create(output, p->o->fbank.mel_bins, &features, lin_phones_list(p->wording->phones),
                                           p->o->source, &p->writer, err);
    if (status != LIN_OK) return status;
    status = run_threads(p, err);
    if (status == LIN_OK && p->counts->added == 0)
        status = lin_fail(err, LIN_INVALID, "%s: no utterance is left; no cache was written", p->o->source);
    if (status == LIN_OK) return lin_dataset_finish(p->writer, err);
    lin_dataset_abort(p->writer);
    return status;
}

lin_status lin_prepare(const lin_datadir *dir, lin_wording *wording, const char *output, const lin_prepare_options *options,
                       lin_prepare_counts *counts, lin_error *err)
{
    preparation p = {.o = options, .dir = dir, .wording = wording, .counts = counts};
    *counts = (lin_prepare_counts){0};
    p.n_items = lin_datadir_count(dir) * speeds(&p);
    lin_status status = lin_fbank_check(&options->fbank, err);
    if (status == LIN_OK) status = label_all(&p, err);
    if (status == LIN_OK) status = check_words(&p, err);
    if (status == LIN_OK) status = check_files(&p, err);
    if (status == LIN_OK) status = write_cache(&p, output, err);
    for (int i = 0; i < p.n_slots && p.slots; i++) lin_matrix_free(&p.slots[i].frames);
    for (int i = 0; p.labels && i < lin_datadir_count(dir); i++) lin_free(p.labels[i].labels);
    lin_free(p.slots);
    lin_free(p.labels);
    return status;
}
