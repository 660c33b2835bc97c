// cmd_align.c - linnet align: when each phoneme and word of a known text was said, and how well.

#include <stdio.h>
#include <string.h>

#include "app/aligner.h"
#include "app/commands.h"
#include "app/common.h"
#include "app/guard.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/textgrid.h"
#include "linnet/ordered.h"

static const lin_option options[] = {
    {.name = "text", .letter = 't', .type = LIN_OPTION_STRING, .at = offsetof(lin_aligner_values, text),
     .help = "What was said, in words"},
    {.name = "text-file", .type = LIN_OPTION_FILE, .at = offsetof(lin_aligner_values, text_file), .help = "A file that holds it"},
    {.name = "phones", .letter = 'p', .type = LIN_OPTION_STRING, .at = offsetof(lin_aligner_values, phones), .value = "TEXT",
     .help = "What was said, in phonemes: \"HH AH L OW\", or in the IPA: \"hʌˈloʊ\""},
    {.name = "data", .type = LIN_OPTION_FOLDER, .at = offsetof(lin_aligner_values, data),
     .help = "All utterances of a Kaldi-style data directory, with their text"},
    {.name = "audio-root", .type = LIN_OPTION_FOLDER, .at = offsetof(lin_aligner_values, audio_root),
     .help = "What the paths in its wav.scp are relative to; if not given, the parent of the data directory"},
    {.name = "lexicon", .letter = 'l', .type = LIN_OPTION_FILE, .at = offsetof(lin_aligner_values, lexicon), .value = "DICT",
     .help = "Pronunciations in CMUdict's format; if not given, $LINNET_LEXICON, else those installed with the program or by "
             "Debian's package pocketsphinx-en-us"},
    {.name = "posteriors", .type = LIN_OPTION_FILE, .at = offsetof(lin_aligner_values, posteriors), .value = "NPY",
     .help = "A matrix of log-probabilities, as linnet posteriors writes it, instead of a sound"},
    {.name = "row-ms", .type = LIN_OPTION_DOUBLE, .at = offsetof(lin_aligner_values, row_ms), .min = 0, .max = 10000, .value = "MS",
     .help = "From one row of that matrix to the next; 0: as the model has it"},
    {.name = "beam", .letter = 'b', .type = LIN_OPTION_DOUBLE, .at = offsetof(lin_aligner_values, beam), .text = "600", .min = 1,
     .max = 1e9, .value = "X", .help = "Paths so much worse than the best, natural logarithm, are dropped; widened where need be"},
    {.name = "stress", .type = LIN_OPTION_FLAG, .at = offsetof(lin_aligner_values, stress),
     .help = "Phonemes with the stress of the pronunciation that the sound chose, where the lexicon has it: AH0, OW1"},
    {.name = "times", .type = LIN_OPTION_CHOICE, .at = offsetof(lin_aligner_values, times), .text = "sound",
     .choices = "sound|path",
     .help = "sound: phonemes end where the sound changes, with silence where it is silent; path: the network's steps that have "
             "the phoneme, as always with --posteriors"},
    LIN_RESULTS_ROWS(lin_aligner_values, results),
    {.name = "jobs", .letter = 'j', .type = LIN_OPTION_INT, .at = offsetof(lin_aligner_values, jobs), .text = "0", .min = 0,
     .max = 1024, .help = "Threads; 0: one per core"},
    {.name = "quiet", .letter = 'q', .type = LIN_OPTION_FLAG, .at = offsetof(lin_aligner_values, quiet),
     .help = "No progress, no summary, no list of words that the lexicon lacks"},
    LIN_MODEL_ROWS(lin_aligner_values, model),
    LIN_INPUT_ROWS(lin_aligner_values, input),
    {.type = LIN_OPTION_END},
};

enum { GUESSES_TOLD = 20 };

static void work(void *context, int item, int slot_number, int thread)
{
    lin_aligner_job *job = context;
    lin_aligner_slot *s = &job->slots[slot_number];
    s->error = (lin_error){0};
    if (job->inputs.items[item].done) return;
    s->warning[0] = 0;
    s->seconds = 0;
    s->incomplete = 0;
    s->n_results = 1;
    s->marks = s->n_bad = 0;
    s->report = (lin_align_report){0};
    lin_buffer_clear(&s->guesses);
    lin_buffer_clear(&s->notes);
    s->status = lin_interrupted ? lin_fail(&s->error, LIN_STOPPED, "interrupted")
                                : lin_aligner_align(&job->aligners[thread], item, s);
}

// ---- results, in order ----------------------------------------------------------------------------------------------------------

// Each word that the lexicon lacks once, and of many only the first.
static lin_status tell_guesses(lin_aligner_job *job, const lin_buffer *guesses, lin_error *err)
{
    lin_lines lines = {0};
    lin_status status = LIN_OK;
    if (job->v->quiet || guesses->n == 0) return LIN_OK;
    lin_lines_begin(&lines, guesses->data, guesses->n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const int before = job->guessed.n;
        int index;
        status = lin_symbols_add(&job->guessed, lines.text, lines.n, &index, err);
        const char *tab = memchr(lines.text, '\t', lines.n);
        if (status != LIN_OK || !tab || job->guessed.n == before || before >= GUESSES_TOLD) continue;
        const int n_word = (int)(tab - lines.text);
        lin_complain("'%.*s' is not in the lexicon; it is taken for %.*s", n_word, lines.text, (int)lines.n - n_word - 1, tab + 1);
    }
    return status;
}

// What a result that is there does not say by itself.
static void tell_doubts(const lin_aligner_job *job, const lin_input *input, const lin_aligner_slot *s)
{
    const lin_align_report *r = &s->report;
    const lin_align_options o = lin_align_options_default();
    if (s->warning[0]) lin_complain_of(input->path, s->warning);
    if (r->widened && !job->v->quiet) {
        lin_complain("%s: the beam was widened %d time%s, up to %g and %d states", input->path, r->widened,
                     r->widened == 1 ? "" : "s", r->beam, r->width);
    }
    if (r->fit < LIN_ALIGN_FIT) {
        lin_complain("%s: the text does not seem to match the sound: its log-probability per phoneme is %.1f relative to the "
                     "best labels; texts that match have above %.0f", input->path, r->fit, LIN_ALIGN_FIT);
    } else if (r->worst_fit < o.mismatch && s->seconds > o.stretch_s) {
        const double at = (double)r->worst_row * job->row_s + job->part.start_s;
        lin_complain("%s: text and sound do not match around %.1f to %.1f s", input->path, at, at + o.stretch_s);
    }
}

static lin_status is_bad(lin_aligner_job *job, const lin_input *input, const lin_error *error)
{
    lin_complain_of(input->path, error->message);
    job->n_failed++;
    return LIN_OK;
}

static void tell_notes(lin_aligner_job *job, const lin_aligner_slot *s)
{
    lin_lines lines = {0};
    lin_lines_begin(&lines, s->notes.data ? s->notes.data : "", s->notes.n);
    while (lin_lines_next(&lines)) lin_complain("%.*s", (int)lines.n, lines.text);
    job->n_bad += s->n_bad;
}

static lin_status put(lin_aligner_job *job, const lin_input *input, const lin_aligner_slot *s, lin_error *err)
{
    enum { MOST = LIN_TEXTGRID_TIERS };
    const lin_result *list[MOST] = {&s->result};
    for (int i = 1; i < s->n_results; i++) list[i] = &s->more[i - 1];
    return lin_results_put(&job->results, input->name, list, s->n_results, err);
}

static lin_status take(void *context, int item, int slot_number, lin_error *err)
{
    lin_aligner_job *job = context;
    lin_aligner_slot *s = &job->slots[slot_number];
    const lin_input *input = &job->inputs.items[item];
    if (input->done) return LIN_OK;
    if (s->status == LIN_STOPPED)
        return lin_fail(err, LIN_STOPPED, "interrupted after %d of %d utterances", job->n_done, job->inputs.n);
    lin_status status = tell_guesses(job, &s->guesses, err);
    if (status != LIN_OK) return status;
    if (job->n_marks == 0) memcpy(job->first_mark, s->first_mark, sizeof job->first_mark);
    job->n_marks += s->marks;
    if (s->status != LIN_OK) return is_bad(job, input, &s->error);
    tell_doubts(job, input, s);
    tell_notes(job, s);
    status = put(job, input, s, err);
    if (status == LIN_INVALID) return is_bad(job, input, err);
    if (status != LIN_OK) return status;
    job->n_done++;
    job->n_incomplete += s->incomplete;
    job->seconds += s->seconds;
    const int n = job->n_done + job->n_failed;
    lin_progress_of(&job->progress, (double)n / job->inputs.n, "%.0f x real time, %d of %d utterances",
                    job->seconds / (lin_now() - job->progress.begun + 1e-9), n, job->inputs.n);
    return LIN_OK;
}

// ---- the whole ------------------------------------------------------------------------------------------------------------------

static lin_status gather_data(lin_aligner_job *job, lin_error *err)
{
    lin_status status = lin_inputs_add_data(&job->inputs, job->v->data, job->v->audio_root, err);
    int texts = 0;
    for (int i = 0; i < job->inputs.n && status == LIN_OK; i++) texts += lin_datadir_at(job->inputs.dir, i)->text != NULL;
    if (status == LIN_OK && !texts)
        return lin_fail(err, LIN_INVALID, "%s says of no utterance what was said; write lines 'ID WORDS' into %s/text",
                        job->v->data, job->v->data);
    return status;
}

static lin_status gather_beside(lin_aligner_job *job, const lin_list *operands, lin_error *err)
{
    lin_status status = lin_corpus_gather(&job->corpus, &job->inputs, operands, job->v->results.output_dir, err);
    if (status != LIN_OK) return status;
    if (!job->inputs.n && operands->count == 1 && !lin_is_folder(operands->items[0])) {
        return lin_fail(err, LIN_INVALID, "%s: nothing says what was said: no text lies beside it (the same name with .lab, .txt "
                        "or .TextGrid), and there is no TEXTFILE, --text, --text-file or --phones", operands->items[0]);
    }
    lin_corpus_report(&job->corpus);
    job->n_failed += job->corpus.without_text;
    if (job->inputs.n) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "%s%s: there is no sound with a text beside it (the same name with .lab, .txt or .TextGrid)",
                    operands->items[0], operands->count > 1 ? " and others" : "");
}

static lin_status gather(lin_aligner_job *job, const lin_parsed *parsed, lin_error *err)
{
    const lin_aligner_values *v = job->v;
    if (v->data) return gather_data(job, err);
    if (job->beside) return gather_beside(job, &parsed->operands, err);
    const char *path = v->posteriors ? v->posteriors : parsed->operands.items[0];
    const char *file = v->text_file ? v->text_file : parsed->operands.count > 1 ? parsed->operands.items[1] : NULL;
    const char *given = v->text ? v->text : v->phones;
    lin_status status = lin_inputs_add_paths(&job->inputs, &(lin_list){&path, 1}, err);
    if (status == LIN_OK && file && lin_corpus_is_textgrid(file)) {
        job->beside = 1;
        return lin_corpus_add_text(&job->corpus, file, err);
    }
    if (status != LIN_OK || !given) return status == LIN_OK ? lin_text_read(file, &job->text, &job->n_text, err) : status;
    job->text = lin_strdup(given);
    job->n_text = strlen(given);
    return job->text ? LIN_OK : lin_no_memory(err, "a text", job->n_text);
}

// Files that must not be written, and that --skip-done compares with the results.
static lin_status note_texts(lin_aligner_job *job, const lin_parsed *parsed, lin_error *err)
{
    const lin_aligner_values *v = job->v;
    const char *file = v->text_file ? v->text_file : parsed->operands.count > 1 ? parsed->operands.items[1] : NULL;
    char path[4096];
    if (v->data) {
        snprintf(path, sizeof path, "%s%s", v->data, lin_is_folder(v->data) ? "/text" : "");
        file = lin_inputs_own(&job->inputs, lin_strdup(path));
        if (!file) return lin_no_memory(err, "the list of files", strlen(path));
    }
    lin_status status = LIN_OK;
    for (int i = 0; i < job->inputs.n && status == LIN_OK; i++) {
        job->inputs.items[i].text = job->beside ? job->corpus.texts[i] : file;
        if (job->beside) status = lin_guard_reads(job->corpus.texts[i], err);
    }
    return status;
}

static lin_status make_threads(lin_aligner_job *job, lin_error *err)
{
    const int cores = lin_ordered_threads(job->v->jobs, 1024), n = lin_ordered_threads(job->v->jobs, job->inputs.n);
    job->n_slots = lin_ordered_slots(n);
    job->slots = lin_calloc((size_t)job->n_slots, sizeof *job->slots);
    job->aligners = lin_calloc((size_t)n, sizeof *job->aligners);
    if (!job->slots || !job->aligners) return lin_no_memory(err, "threads", (size_t)n * sizeof *job->aligners);
    job->n_aligners = n;
    for (int i = 0; i < n; i++) {
        job->aligners[i].job = job;
        if (job->v->posteriors) continue;
        lin_status status = lin_ear_create(&job->recognizer, cores / n > 1 ? cores / n : 1, &job->aligners[i].ear, err);
        if (status == LIN_OK && job->v->times == TIMES_SOUND) {
            const lin_fbank_config *f = &job->recognizer.fbank;
            const lin_boundaries_options o = {f->mel_bins, f->low_hz, f->high_hz > 0 ? f->high_hz : f->sample_hz / 2 + f->high_hz,
                                              f->hop_ms / 1000, f->window_ms / 1000};
            status = lin_boundaries_create(job->recognizer.phones, &o, &job->aligners[i].boundaries, err);
        }
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

static lin_status align(lin_aligner_job *job, lin_error *err)
{
    const lin_aligner_values *v = job->v;
    // A matrix needs of the model only the names of its phones and the length of its steps.
    lin_status status = lin_open_recognizer(&job->recognizer, v->model.model, v->posteriors ? "cpu" : v->model.device,
                                            lin_model_precision(&v->model), err);
    if (status == LIN_OK) job->row_s = v->row_ms > 0 ? v->row_ms / 1000 : job->recognizer.row_seconds;
    if (status == LIN_OK && !v->phones) status = lin_spoken_lexicon_open(&job->lexicon, v->lexicon, job->recognizer.phones,
                                                                            &job->recognizer.warnings, err);
    if (status == LIN_OK && v->stress && job->lexicon.dictionary && !lin_dictionary_has_stress(job->lexicon.dictionary))
        lin_complain("%s has no stress for --stress to keep; CMUdict as its makers publish it has (--lexicon cmudict.dict)",
                     job->lexicon.path);
    if (status == LIN_OK) status = make_threads(job, err);
    if (status == LIN_OK && job->recognizer.model->speaker_norm && !v->posteriors)
        status = lin_speakers_measure(&job->speakers, &job->inputs, &job->recognizer, v->jobs, err);
    const int many = v->data != NULL || job->inputs.n > 1;
    if (status == LIN_OK) status = lin_results_open(&job->results, job->recognizer.phones, many, err);
    if (status != LIN_OK) return status;
    lin_progress_begin(&job->progress, v->quiet);
    status = lin_ordered_run(&(lin_ordered){job->inputs.n, job->n_aligners, job, work, take}, err);
    lin_progress_end(&job->progress);
    if (job->guessed.n > GUESSES_TOLD)
        lin_complain("and %d more words that are not in %s", job->guessed.n - GUESSES_TOLD, job->lexicon.path);
    if (!v->quiet) lin_complain_of_marks(job->n_marks, job->first_mark);
    return lin_results_close(&job->results, status, job->n_failed, err);
}

static void summary(const lin_aligner_job *job)
{
    const double wall = lin_now() - job->progress.begun;
    char note[128];
    lin_inputs_note(&job->inputs, job->n_failed, job->n_incomplete, note, sizeof note);
    lin_complain("%d utterance%s%s, %.1f s of sound in %.2f s: %.0f x real time", job->n_done, job->n_done == 1 ? "" : "s", note,
                 job->seconds, wall, wall > 0 ? job->seconds / wall : 0);
}

static void release(lin_aligner_job *job)
{
    for (int i = 0; i < job->n_aligners; i++) {
        lin_aligner *a = &job->aligners[i];
        lin_ear_destroy(a->ear);
        lin_spoken_free(&a->spoken);
        lin_path_free(&a->path);
        lin_free(a->goodness);
        lin_free(a->stress);
        lin_path_free(&a->whole);
        lin_free(a->rows);
        lin_free(a->frames);
        lin_free(a->spans);
        lin_boundaries_destroy(a->boundaries);
        lin_free(a->segments);
    }
    for (int i = 0; i < job->n_slots && job->slots; i++) {
        lin_result_free(&job->slots[i].result);
        for (int k = 0; k < job->slots[i].more_capacity; k++) lin_result_free(&job->slots[i].more[k]);
        lin_free(job->slots[i].more);
        lin_buffer_free(&job->slots[i].guesses);
        lin_buffer_free(&job->slots[i].notes);
    }
    lin_free(job->aligners);
    lin_free(job->slots);
    lin_free(job->text);
    lin_symbols_free(&job->guessed);
    lin_results_free(&job->results);
    lin_speakers_free(&job->speakers);
    lin_spoken_lexicon_close(&job->lexicon);
    lin_inputs_free(&job->inputs);
    lin_corpus_free(&job->corpus);
    lin_recognizer_close(&job->recognizer);
}

// FILE TEXTFILE, as against two files with their texts beside them.
static int names_a_text(const lin_list *operands)
{
    return operands->count == 2 && !lin_corpus_is_sound(operands->items[1]) && !lin_corpus_is_text(operands->items[0]) &&
           !lin_is_folder(operands->items[0]) && !lin_is_folder(operands->items[1]);
}

// What the table cannot say about how options go together. LIN_EXIT_OK if all is well.
static int check(const lin_parsed *parsed, lin_aligner_job *job)
{
    const lin_aligner_values *v = job->v;
    const int n = parsed->operands.count, given = (v->text != NULL) + (v->text_file != NULL) + (v->phones != NULL);
    lin_error err = {0};
    if ((n > 0) + (v->data != NULL) + (v->posteriors != NULL) != 1)
        return lin_misuse(parsed, "one of FILE, FOLDER, --data and --posteriors says what to align");
    if (v->data && given) return lin_misuse(parsed, "--data reads the text of each utterance from the data directory: not with --text, --text-file or --phones");
    if (given + (n == 2 && names_a_text(&parsed->operands)) > 1 || (given && n > 1) || (v->posteriors && !given))
        return lin_misuse(parsed, "one of TEXTFILE, --text, --text-file and --phones says what was said");
    if (given && n && lin_is_folder(parsed->operands.items[0]))
        return lin_misuse(parsed, "the texts of a folder lie beside its sounds: --text, --text-file and --phones are for one FILE");
    job->beside = n > 0 && !given && !names_a_text(&parsed->operands);
    for (int i = 0; i < n && job->beside; i++) {
        if (!strcmp(parsed->operands.items[i], "-"))
            return lin_misuse(parsed, "nothing lies beside standard input: TEXTFILE, --text, --text-file or --phones says what was "
                                      "said");
    }
    if (v->row_ms > 0 && !v->posteriors) return lin_misuse(parsed, "--row-ms is for --posteriors");
    if (v->lexicon && v->phones) return lin_misuse(parsed, "--phones needs no --lexicon");
    if (lin_input_channel(&v->input, &job->channel, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (lin_input_part(&v->input, &job->part, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (v->posteriors && (v->input.start || v->input.end))
        return lin_misuse(parsed, "--start and --end are of a sound, not of --posteriors");
    if (job->channel == LIN_CHANNEL_EACH) return lin_misuse(parsed, "a text is of one channel: --channel mix or a number");
    job->how = v->results;
    if (!job->how.format && job->how.output_dir) job->how.format = "textgrid"; // text alone would say nothing new of each file
    const int status = lin_results_check(&job->results, parsed, &job->how);
    job->results.how.times = 1;
    job->results.speakers = 1;
    job->results.how.stress = v->stress;
    return status;
}

static int run(lin_parsed *parsed)
{
    lin_aligner_job job = {.v = parsed->values};
    lin_error err = {0};
    const int exit_status = check(parsed, &job);
    if (exit_status != LIN_EXIT_OK) return exit_status;
    lin_status status = gather(&job, parsed, &err);
    if (status == LIN_OK) status = note_texts(&job, parsed, &err);
    if (status == LIN_OK) status = lin_results_fit(&job.results, &job.inputs, 0, &err);
    lin_progress_begin(&job.progress, 1);
    if (status == LIN_OK && !lin_inputs_all_done(&job.inputs)) status = align(&job, &err);
    const int done = status == LIN_OK && !job.v->quiet, failed = job.n_failed + job.n_incomplete + job.n_bad > 0;
    if (done && job.inputs.n) summary(&job);
    release(&job);
    if (status != LIN_OK) return lin_give_up(&err);
    return failed ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

const lin_command lin_command_align = {
    .name = "align",
    .operands = "[FILE TEXTFILE | FILE|FOLDER...]",
    .summary = "when each phoneme and word of a known text was said",
    .description = "Finds the best path of a sound through a text that is known: the times of its phonemes and words, how "
                   "probable each is, and, in json and in csv with --unit both, the goodness of pronunciation of every "
                   "phoneme: the natural logarithm of the probability that it and no other was said there. Of several "
                   "pronunciations in the lexicon the sound chooses one; words that it lacks are pronounced as linnet "
                   "phonemize does.\n\n"
                   "Text is a table here: start and end in seconds, and the word; phonemes with --unit phones, both with --unit "
                   "both.\n\n"
                   "Given a FOLDER, or several files, it looks for the text beside each sound: the same name with .lab, .txt or "
                   ".TextGrid, sought in this order. A folder is read with all folders below it (corpora of the Montreal Forced "
                   "Aligner: speaker/file.wav with speaker/file.lab); with --output-dir results lie in the same folders there, as "
                   "TextGrids where no --format is given. The folder that a sound lies in is its speaker. Sounds without a text "
                   "are named and skipped, and the exit status is then 1.\n\n"
                   "Of a TextGrid every interval with a text is an utterance, which is aligned within its times; tiers that "
                   "overlap in time are speakers, and each speaker has a result.\n\n"
                   "A text that is longer than the sound, or has words without a pronunciation, is an error. A text that does not "
                   "seem to match the sound is aligned with a warning. In a data directory, utterances that fail are named "
                   "and the others are aligned. See docs/alignment.md.",
    .examples = "  linnet align --text \"how are you\" hello.wav\n"
                "  linnet align --text \"how are you\" -f textgrid -o hello.TextGrid hello.wav\n"
                "  linnet align -f json lecture.flac lecture.txt\n"
                "  linnet align corpus --output-dir aligned\n"
                "  linnet align --phones \"HH AH L OW\" -f ctm hello.wav\n"
                "  linnet align --data corpus/dev --output-dir aligned -f textgrid,json",
    .options = options,
    .values_size = sizeof(lin_aligner_values),
    .max_operands = -1,
    .run = run,
};
