// cmd_align.c - linnet align: the time and the goodness of each phoneme and word of a known text.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/aligner.h"
#include "align/textgrid.h"
#include "app/results.h"
#include "app/common.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "base/memory.h"
#include "train/lab/npy.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "train/learn/pronunciations.h"
#include "linnet/files.h"

typedef struct values {
    lin_model_values model;
    lin_input_values input;
    lin_results_values results;
    lin_data_values data;
    const char *text, *text_file, *phones, *lexicon, *add_lexicon, *g2p, *numbers, *oov, *learn_lexicon, *posteriors;
    double row_ms, beam;
    int times, stress, jobs, quiet;
    const char *language;
} values;

enum { TIMES_SOUND, TIMES_PATH };

static const lin_option options[] = {
    {.name = "text", .letter = 't', .type = LIN_OPTION_STRING, .at = offsetof(values, text),
     .help = "The words that were said"},
    {.name = "text-file", .type = LIN_OPTION_FILE, .at = offsetof(values, text_file), .help = "A file with the words that were "
                                                                                              "said"},
    {.name = "phones", .letter = 'p', .type = LIN_OPTION_STRING, .at = offsetof(values, phones), .value = "TEXT",
     .help = "The phonemes that were said, such as \"HH AH L OW\", or in the IPA \"hʌˈloʊ\""},
    LIN_DATA_ROWS(values, data, "All utterances of a Kaldi-style data directory or of a list (docs/corpora.md), with their text"),
    LIN_DICTIONARY_ROW(values, lexicon),
    LIN_ADD_LEXICON_ROW(values, add_lexicon, ""),
    LIN_G2P_ROW(values, g2p),
    LIN_NUMBERS_ROW(values, numbers),
    {.name = "oov", .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(values, oov),
     .help = "Write all words outside the lexicon to this file, the most frequent first, each with its count, its phonemes and "
             "how they were found"},
    {.name = "learn-lexicon", .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(values, learn_lexicon), .value = "DICT",
     .help = "Write the lexicon to this file with the probability of each pronunciation, counted from the pronunciations that "
             "were said (docs/adapting.md)"},
    {.name = "posteriors", .type = LIN_OPTION_FILE, .at = offsetof(values, posteriors), .value = "NPY",
     .help = "A matrix of log-probabilities, as linnet posteriors writes it, instead of a sound"},
    {.name = "row-ms", .type = LIN_OPTION_DOUBLE, .at = offsetof(values, row_ms), .min = 0, .max = 10000, .value = "MS",
     .help = "Milliseconds between two rows of the matrix; 0: as in the model"},
    {.name = "beam", .letter = 'b', .type = LIN_OPTION_DOUBLE, .at = offsetof(values, beam), .text = "600", .min = 1,
     .max = 1e9, .value = "X",
     .help = "Drop paths that are worse than the best one by more than this, natural logarithm; the beam is widened where "
             "necessary"},
    {.name = "stress", .type = LIN_OPTION_FLAG, .at = offsetof(values, stress),
     .help = "Phonemes with the stress of the pronunciation that fits the sound best, if the lexicon has stress: AH0, OW1"},
    {.name = "times", .type = LIN_OPTION_CHOICE, .at = offsetof(values, times), .text = "sound",
     .choices = "sound|path",
     .help = "sound: boundaries are where the sound changes, and there is silence between words. path: boundaries are at the "
             "steps of the network where the path enters a phoneme, as always with --posteriors"},
    LIN_LANGUAGE_ROW(values, language),
    LIN_RESULTS_ROWS(values, results),
    {.name = "script", .under = "cues", .type = LIN_OPTION_FLAG, .at = offsetof(values, results.cues.script),
     .help = "Each line of the text begins a subtitle"},
    LIN_JOBS_ROW(offsetof(values, jobs)),
    LIN_QUIET_ROW(offsetof(values, quiet), "Print no progress, no summary and no list of words outside the lexicon"),
    LIN_MODEL_ROWS(values, model),
    LIN_OFFLINE_ROW(values, model),
    LIN_CHANNEL_ROWS(values, input),
    LIN_INPUT_ROWS(values, input),
    {.type = LIN_OPTION_END},
};

enum { GUESSES_TOLD = 20 };

// Read by all threads; counts and outputs in it are used only by the thread that takes the results in order.
typedef struct align_job {
    const values *v;
    lin_recognizer recognizer;
    lin_bulk bulk;   // an aligner for each thread, an alignment in each slot
    lin_corpus corpus; // what has no text beside it
    int beside;        // 1: the texts are beside the sounds
    lin_speakers speakers;
    lin_wording lexicon;
    int channel;
    lin_part part; // of --start and --end
    char *text;    // of the one file; NULL: each utterance has its own
    size_t n_text;
    const char *text_name; // its file; NULL: given by an option
    char data_text[4096];  // the file with the texts of --data
    lin_results_values how;
    lin_symbols guessed; // words outside the lexicon; only the first of them are reported
    int *guess_counts;   // [guessed.n]
    int counts_capacity;
    lin_pronunciations heard; // for --learn-lexicon
    int n_bad;           // utterances of TextGrids that could not be aligned
    long n_marks;        // such as [laughs]
    char first_mark[LIN_QUOTE];
} align_job;

/* ---- an item, on any thread ------------------------------------------------------------------------------------------------ */

// The text of an item; own receives it if it must be released.
static lin_status find_text(const align_job *job, int item, lin_aligner_input *in, char **own, lin_error *err)
{
    in->kind = job->v->phones ? LIN_ALIGNER_PHONES : LIN_ALIGNER_WORDS;
    in->text = job->text;
    in->n_text = job->n_text;
    if (job->beside) {
        in->text_name = job->bulk.inputs.items[item].text;
        if (lin_corpus_is_textgrid(in->text_name)) in->grid_of_phones = job->v->phones != NULL, in->kind = LIN_ALIGNER_TEXTGRID;
        LIN_TRY(lin_text_read(in->text_name, own, &in->n_text, err));
        in->text = *own;
        return LIN_OK;
    }
    if (!job->v->data.data) {
        in->text_name = job->text_name;
        return LIN_OK;
    }
    in->text = lin_datadir_at(job->bulk.inputs.dir, item)->text;
    if (!in->text)
        return lin_fail(err, LIN_INVALID, "%s has no line for %s", job->data_text, job->bulk.inputs.items[item].id);
    in->n_text = strlen(in->text);
    return LIN_OK;
}

static lin_status read_matrix(const align_job *job, lin_aligner_input *in, float **own, const char *path, lin_error *err)
{
    int V;
    lin_status status = lin_npy_read(path, own, &in->n_rows, &V, err);
    in->rows = *own;
    if (status != LIN_OK || V == job->recognizer.V) return status;
    return lin_fail(err, LIN_MISMATCH, "%s has %d columns, the model has %d outputs", path, V, job->recognizer.V);
}

static lin_status align_item(align_job *job, int item, lin_aligner *aligner, lin_alignment *alignment, lin_error *err)
{
    const lin_input *input = &job->bulk.inputs.items[item];
    const lin_speaker *speaker = lin_speakers_find(&job->speakers, input->speaker);
    const int channel = input->cut.channel ? input->cut.channel : job->channel >= 0 ? job->channel + 1 : 1;
    lin_aligner_input in = {.id = input->id, .speaker = input->speaker, .channel = channel};
    lin_pcm_format raw;
    lin_sound sound = lin_input_sound(input, lin_input_format(&job->v->input, &raw), job->channel, job->part);
    char *text = NULL;
    float *rows = NULL;
    if (speaker) sound.mean = speaker->mean, sound.istd = speaker->istd;
    if (!job->v->posteriors) in.sound = &sound;
    lin_status status = find_text(job, item, &in, &text, err);
    if (status == LIN_OK && job->v->posteriors) status = read_matrix(job, &in, &rows, input->path, err);
    if (status == LIN_OK) status = lin_aligner_align(aligner, &in, alignment, err);
    lin_free(text);
    lin_free(rows);
    return status;
}

static lin_status work(void *context, int item, int slot, int thread, lin_error *err)
{
    align_job *job = context;
    lin_aligner *const *aligner = lin_bulk_thread(&job->bulk, thread);
    lin_alignment *alignment = lin_bulk_slot(&job->bulk, slot);
    lin_alignment_clear(alignment);
    return lin_interrupted ? lin_fail(err, LIN_STOPPED, "interrupted") : align_item(job, item, *aligner, alignment, err);
}

/* ---- results, in order ----------------------------------------------------------------------------------------------------- */

// Counts the words outside the lexicon, and reports each once, and only the first of many. A line is "word<TAB>phones (how)".
static lin_status tell_guesses(align_job *job, const lin_buffer *guesses, lin_error *err)
{
    lin_lines lines = {0};
    if (guesses->n == 0) return LIN_OK;
    lin_lines_begin(&lines, guesses->data, guesses->n);
    while (lin_lines_next(&lines)) {
        const int before = job->guessed.n;
        int index;
        LIN_TRY(lin_symbols_add(&job->guessed, lines.text, lines.n, &index, err));
        LIN_TRY(lin_grow_int(&job->guess_counts, &job->counts_capacity, job->guessed.n, sizeof *job->guess_counts,
                             "words outside the lexicon", err));
        const char *tab = memchr(lines.text, '\t', lines.n);
        if (!tab) continue;
        if (job->guessed.n > before) job->guess_counts[index] = 0;
        job->guess_counts[index]++;
        if (job->guessed.n == before || before >= GUESSES_TOLD || job->v->quiet) continue;
        const int n_word = (int)(tab - lines.text), n_rest = (int)lines.n - n_word - 1;
        if (n_rest == 6 && memcmp(tab + 1, "(none)", 6) == 0)
            lin_complain("'%.*s' is not in the lexicon, and nothing tells how it is pronounced: it takes the sound between its "
                         "neighbours", n_word, lines.text);
        else lin_complain("'%.*s' is not in the lexicon; it is pronounced %.*s", n_word, lines.text, n_rest, tab + 1);
    }
    return LIN_OK;
}

typedef struct oov_rank {
    int index, count;
} oov_rank;

static int by_count(const void *a, const void *b)
{
    const oov_rank *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : (x->index > y->index) - (x->index < y->index);
}

// As linnet prepare writes them: word, count, method, phones.
static lin_status write_guesses(const align_job *job, lin_error *err)
{
    const int n = job->guessed.n;
    oov_rank *ranks = lin_alloc((size_t)n + 1, sizeof *ranks);
    lin_buffer text = {0};
    if (!ranks) return lin_no_memory(err, "words outside the lexicon", (size_t)n * sizeof *ranks);
    for (int i = 0; i < n; i++) ranks[i] = (oov_rank){i, job->guess_counts[i]};
    if (n) qsort(ranks, (size_t)n, sizeof *ranks, by_count);
    for (int i = 0; i < n; i++) {
        const char *line = lin_symbols_text(&job->guessed, ranks[i].index), *tab = strchr(line, '\t'), *how = strrchr(line, '(');
        const int n_phones = how - tab > 2 ? (int)(how - tab) - 2 : 0;
        lin_buffer_format(&text, "%.*s\t%d\t%.*s\t%.*s\n", (int)(tab - line), line, ranks[i].count, (int)strcspn(how + 1, ")"),
                          how + 1, n_phones, tab + 1);
    }
    lin_free(ranks);
    const lin_status status = lin_output_write(job->v->oov, 0, &text, err);
    lin_buffer_free(&text);
    return status;
}

// Counts the pronunciations of an utterance; not of one whose text does not fit.
static lin_status count_pronunciations(align_job *job, const lin_alignment *a, lin_error *err)
{
    int labels[LIN_PRONUNCIATION_MAX];
    lin_error number; // digits and signs do not count
    for (int i = 0; i < a->n_results && a->report.fit >= LIN_ALIGN_FIT; i++) {
        const lin_result *r = &a->results[i];
        for (int w = 0; w < r->n_words; w++) {
            const char *text = lin_result_word_text(r, w);
            const int first = r->words[w].first_phone, n = r->words[w].n_phones;
            lin_spelling word;
            size_t at = 0;
            if (n > LIN_PRONUNCIATION_MAX || lin_spelling_next(text, strlen(text), &at, &word, &number) != LIN_OK) continue;
            lin_spelling_settle(&word, job->lexicon.dictionary);
            for (int k = 0; k < n; k++) labels[k] = r->phones[first + k].label;
            LIN_TRY(lin_pronunciations_count(&job->heard, word.word, word.n, labels, n, err));
        }
    }
    return LIN_OK;
}

static lin_status write_lexicon(align_job *job, lin_error *err)
{
    const char *path = job->v->learn_lexicon;
    lin_buffer text = {0};
    lin_status status = lin_pronunciations_write(&job->heard, job->lexicon.dictionary, job->recognizer.phones, &text, err);
    if (status == LIN_OK) status = lin_output_write(path, 0, &text, err);
    if (status == LIN_OK && !job->v->quiet)
        lin_complain("%s has probabilities from %ld words that have several pronunciations", path, job->heard.words);
    lin_buffer_free(&text);
    return status;
}

// Reports what the result itself does not show.
static void tell_doubts(const align_job *job, const lin_input *input, const lin_alignment *a)
{
    const lin_align_report *r = &a->report;
    char doubt[256];
    if (a->warning[0]) lin_complain_of_input(input, a->warning);
    if (r->widened && !job->v->quiet) {
        snprintf(doubt, sizeof doubt, "the beam was widened %d time%s, up to %g and %d states", r->widened,
                 r->widened == 1 ? "" : "s", r->beam, r->width);
        lin_complain_of_input(input, doubt);
    }
    lin_alignment_doubt(a, doubt, sizeof doubt);
    if (doubt[0]) lin_complain_of_input(input, doubt);
}

static void tell_notes(align_job *job, const lin_alignment *a)
{
    lin_lines lines = {0};
    lin_lines_begin(&lines, a->notes.data ? a->notes.data : "", a->notes.n);
    while (lin_lines_next(&lines)) lin_complain("%.*s", (int)lines.n, lines.text);
    job->n_bad += a->n_bad;
}

static lin_status take(void *context, int item, int slot, lin_status status, lin_error *err)
{
    align_job *job = context;
    const lin_alignment *a = lin_bulk_slot(&job->bulk, slot);
    const lin_input *input = &job->bulk.inputs.items[item];
    const lin_result *list[LIN_TEXTGRID_TIERS];
    LIN_TRY(tell_guesses(job, &a->guesses, err));
    if (job->n_marks == 0) memcpy(job->first_mark, a->first_mark, sizeof job->first_mark);
    job->n_marks += a->marks;
    if (status != LIN_OK) return status;
    tell_doubts(job, input, a);
    tell_notes(job, a);
    if (job->v->learn_lexicon) LIN_TRY(count_pronunciations(job, a, err));
    for (int i = 0; i < a->n_results; i++) list[i] = &a->results[i];
    LIN_TRY(lin_results_put(&job->bulk.results, input, list, a->n_results, err));
    job->bulk.n_incomplete += a->incomplete;
    job->bulk.seconds += a->seconds;
    return LIN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

static lin_status gather_data(align_job *job, lin_error *err)
{
    const int is_folder = lin_is_folder(job->v->data.data);
    int texts = 0;
    LIN_TRY(lin_inputs_add_data(&job->bulk.inputs, &job->v->data, &job->part, job->channel, err));
    snprintf(job->data_text, sizeof job->data_text, "%s%s", job->v->data.data, is_folder ? "/text" : "");
    for (int i = 0; i < job->bulk.inputs.n; i++) texts += lin_datadir_at(job->bulk.inputs.dir, i)->text != NULL;
    if (texts) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "%s has no text for any utterance%s%s", job->v->data.data,
                    is_folder ? "; write lines 'ID WORDS' into " : "", is_folder ? job->data_text : "");
}

static lin_status gather_beside(align_job *job, const lin_list *operands, lin_error *err)
{
    LIN_TRY(lin_corpus_gather(&job->corpus, &job->bulk.inputs, operands, job->v->results.output_dir, err));
    if (!job->bulk.inputs.n && operands->count == 1 && !lin_is_folder(operands->items[0]))
        return lin_fail(err, LIN_INVALID, "%s has no text: there is none beside it (the same name with .lab, .txt or .TextGrid), "
                                          "and no TEXTFILE, --text, --text-file or --phones is given", operands->items[0]);
    lin_corpus_report(&job->corpus);
    job->bulk.n_failed += job->corpus.without_text;
    if (job->bulk.inputs.n) return LIN_OK;
    return lin_fail(err, LIN_INVALID,
                    "%s%s: there is no sound with a text beside it (the same name with .lab, .txt or .TextGrid)",
                    operands->items[0], operands->count > 1 ? " and others" : "");
}

static lin_status gather(align_job *job, const lin_parsed *parsed, lin_error *err)
{
    const values *v = job->v;
    if (v->data.data) return gather_data(job, err);
    if (job->beside) return gather_beside(job, &parsed->operands, err);
    const char *path = v->posteriors ? v->posteriors : parsed->operands.items[0];
    const char *file = v->text_file ? v->text_file : parsed->operands.count > 1 ? parsed->operands.items[1] : NULL;
    const char *given = v->text ? v->text : v->phones;
    LIN_TRY(lin_inputs_add_paths(&job->bulk.inputs, &(lin_list){&path, 1}, err));
    if (file && lin_corpus_is_textgrid(file)) {
        job->beside = 1;
        job->bulk.inputs.items[0].text = file;
        return LIN_OK;
    }
    job->text_name = file;
    if (!given) return lin_text_read(file, &job->text, &job->n_text, err);
    job->text = lin_strdup(given);
    job->n_text = strlen(given);
    return job->text ? LIN_OK : lin_no_memory(err, "a text", job->n_text);
}

// Files that must not be written, and that --skip-done compares with the results.
static lin_status note_texts(align_job *job, lin_error *err)
{
    const char *file = job->v->data.data ? job->data_text : job->text_name;
    for (int i = 0; i < job->bulk.inputs.n; i++) {
        lin_input *input = &job->bulk.inputs.items[i];
        if (!job->beside) input->text = file;
        else LIN_TRY(lin_guard_reads(input->text, err));
    }
    return LIN_OK;
}

static lin_status make_threads(align_job *job, lin_error *err)
{
    lin_bulk *b = &job->bulk;
    LIN_TRY(lin_bulk_threads(b, sizeof(lin_alignment), sizeof(lin_aligner *), err));
    const lin_aligner_options o = {.beam = job->v->beam,
                                   .row_s = job->v->row_ms / 1000,
                                   .follow_sound = job->v->times == TIMES_SOUND && !job->v->posteriors,
                                   .rows_only = job->v->posteriors != NULL,
                                   .n_threads = b->cores_each};
    for (int i = 0; i < b->n_threads; i++)
        LIN_TRY(lin_aligner_create(&job->recognizer, &job->lexicon, &o, lin_bulk_thread(b, i), err));
    return LIN_OK;
}

static lin_status align_all(align_job *job, lin_error *err)
{
    const values *v = job->v;
    lin_model_values model = v->model;
    if (v->posteriors) model.device = "cpu"; // only the phone names and the step length are used
    const lin_wording_files files = {
        .dictionary = v->lexicon, .added = v->add_lexicon, .g2p = v->g2p, .numbers = v->numbers};
    LIN_TRY(lin_open_recognizer(&job->recognizer, &model, err));
    if (!v->phones)
        LIN_TRY(lin_wording_open_for(&job->lexicon, &files, job->recognizer.phones, "words", ", or give --phones",
                                     &job->recognizer.warnings, err));
    if (v->stress && job->lexicon.dictionary && !lin_dictionary_has_stress(job->lexicon.dictionary))
        lin_complain("%s has no stress, which --stress needs; CMUdict as published has it (--lexicon cmudict.dict)",
                     job->lexicon.path);
    LIN_TRY(make_threads(job, err));
    if (job->recognizer.model->speaker_norm && !v->posteriors)
        LIN_TRY(lin_inputs_measure(&job->bulk.inputs, &job->recognizer, v->jobs, &job->speakers, err));
    const int many = v->data.data != NULL || job->bulk.inputs.n > 1;
    LIN_TRY(lin_results_open(&job->bulk.results, job->recognizer.phones, many, err));
    return lin_bulk_run(&job->bulk, err);
}

static lin_status align(align_job *job, lin_error *err)
{
    const values *v = job->v;
    lin_status status = align_all(job, err);
    if (job->guessed.n > GUESSES_TOLD && !v->quiet)
        lin_complain("and %d more words that are not in %s%s", job->guessed.n - GUESSES_TOLD, job->lexicon.path,
                     v->oov ? "" : "; --oov FILE lists them all");
    if (status == LIN_OK && v->oov) status = write_guesses(job, err);
    if (status == LIN_OK && v->learn_lexicon) status = write_lexicon(job, err);
    if (!v->quiet) lin_complain_of_marks(job->n_marks, job->first_mark);
    return status;
}

static void release(align_job *job)
{
    lin_bulk *b = &job->bulk;
    for (int i = 0; i < b->n_threads; i++) lin_aligner_destroy(*(lin_aligner **)lin_bulk_thread(b, i));
    for (int i = 0; i < b->n_slots; i++) lin_alignment_free(lin_bulk_slot(b, i));
    lin_bulk_free(b);
    lin_free(job->text);
    lin_symbols_free(&job->guessed);
    lin_free(job->guess_counts);
    lin_pronunciations_free(&job->heard);
    lin_speakers_free(&job->speakers);
    lin_wording_close(&job->lexicon);
    lin_corpus_free(&job->corpus);
    lin_recognizer_close(&job->recognizer);
}

// 1 for FILE TEXTFILE, 0 for two sounds with texts beside them.
static int names_a_text(const lin_list *operands)
{
    return operands->count == 2 && !lin_corpus_is_sound(operands->items[1]) && !lin_corpus_is_text(operands->items[0]) &&
           !lin_is_folder(operands->items[0]) && !lin_is_folder(operands->items[1]);
}

// Checks combinations of options that the table cannot check. LIN_EXIT_OK on success.
static int check(const lin_parsed *parsed, align_job *job)
{
    const values *v = job->v;
    const int n = parsed->operands.count, given = (v->text != NULL) + (v->text_file != NULL) + (v->phones != NULL);
    static const char *const of_sound[] = {"start", "end", "channel", "track", "raw"};
    lin_error err = {0};
    if ((n > 0) + (v->data.data != NULL) + (v->posteriors != NULL) != 1)
        return lin_misuse(parsed, "give exactly one of FILE, FOLDER, --data and --posteriors to align");
    if (v->data.data && given) return lin_misuse(parsed, "--data reads the texts from the data directory; it excludes --text, "
                                                    "--text-file and --phones");
    if (given + (n == 2 && names_a_text(&parsed->operands)) > 1 || (given && n > 1) || (v->posteriors && !given))
        return lin_misuse(parsed, "give the text by exactly one of TEXTFILE, --text, --text-file and --phones");
    if (given && n && lin_is_folder(parsed->operands.items[0]))
        return lin_misuse(parsed, "the texts of a folder are beside its sounds; --text, --text-file and --phones are for one "
                                  "FILE");
    job->beside = n > 0 && !given && !names_a_text(&parsed->operands);
    for (int i = 0; i < n && job->beside; i++) {
        if (!strcmp(parsed->operands.items[i], "-"))
            return lin_misuse(parsed, "standard input has no text beside it; give TEXTFILE, --text, --text-file or --phones");
    }
    if (v->row_ms > 0 && !v->posteriors) return lin_misuse(parsed, "--row-ms needs --posteriors");
    if (v->add_lexicon && v->phones) return lin_misuse(parsed, "--phones and --add-lexicon exclude each other");
    if (v->lexicon && v->phones) return lin_misuse(parsed, "--phones and --lexicon exclude each other");
    if (v->oov && v->phones) return lin_misuse(parsed, "--oov lists words: not with --phones");
    if (v->learn_lexicon && v->phones) return lin_misuse(parsed, "--learn-lexicon counts words: not with --phones");
    if ((v->oov || v->learn_lexicon) && v->results.skip_done)
        return lin_misuse(parsed, "--%s counts all that is aligned: not with --skip-done", v->oov ? "oov" : "learn-lexicon");
    if (lin_input_channel(parsed, &v->input, &job->channel, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (lin_input_part(parsed, &v->input, &job->part, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    for (size_t i = 0; i < sizeof of_sound / sizeof *of_sound && v->posteriors; i++)
        if (lin_options_given(parsed, of_sound[i]))
            return lin_misuse(parsed, "--%s applies to a sound, not to --posteriors", of_sound[i]);
    job->how = v->results;
    if (!job->how.format && job->how.output_dir) job->how.format = "textgrid"; // plain text has no times
    const int status = lin_results_check(&job->bulk.results, parsed, &job->how);
    if (status == LIN_EXIT_OK && v->phones && job->bulk.results.how.unit == LIN_UNIT_WORDS)
        return lin_misuse(parsed, "--phones and --unit words exclude each other");
    job->bulk.results.part = job->part;
    job->bulk.results.by_channel = job->channel != LIN_CHANNEL_MIX;
    job->bulk.results.how.times = 1;
    job->bulk.results.speakers = 1;
    job->bulk.results.how.stress = v->stress;
    return status;
}

static int run(lin_parsed *parsed)
{
    const values *v = parsed->values;
    align_job job = {.v = v};
    lin_error err = {0};
    job.bulk = (lin_bulk){.noun = "utterance", .jobs = v->jobs, .quiet = v->quiet, .context = &job, .work = work, .take = take};
    int exit_status = check(parsed, &job);
    if (exit_status != LIN_EXIT_OK) return exit_status;
    lin_status status = gather(&job, parsed, &err);
    if (status == LIN_OK) status = note_texts(&job, &err);
    if (status == LIN_OK) status = lin_bulk_begin(&job.bulk, 0, &err);
    if (status == LIN_OK && !lin_inputs_all_done(&job.bulk.inputs)) status = align(&job, &err);
    exit_status = lin_bulk_end(&job.bulk, status, &err);
    if (exit_status == LIN_EXIT_OK && job.n_bad) exit_status = LIN_EXIT_FAILED;
    release(&job);
    return exit_status;
}

const lin_command lin_command_align = {
    .name = "align",
    .operands = "[FILE TEXTFILE | FILE|FOLDER...]",
    .summary = "find when each phoneme and word of a known text was said",
    .description = "Aligns a known text with its sound. The result has the times and the confidence of each phoneme and word. "
                   "json, and csv with --unit both, also have the goodness of pronunciation of each phoneme, of each word and "
                   "of the whole: the natural logarithm of the probability that this phoneme, or a random phoneme of the word "
                   "or text, was said there. Of several pronunciations in the lexicon the best one for the sound is used; other "
                   "words are pronounced as by linnet phonemize.\n\n"
                   "The format text is a table here: a line has the start and the end in seconds and the word. --unit phones "
                   "writes phonemes in place of words, --unit both writes both.\n\n"
                   "For a FOLDER, or several files, the text of each sound is the file beside it with its name and .lab, .txt "
                   "or .TextGrid (the first of these that exists). A folder is read with all its subfolders (corpora of the "
                   "Montreal Forced Aligner: speaker/file.wav with speaker/file.lab); with --output-dir results keep these "
                   "folders, as TextGrids if no --format is given. The folder of a sound is its speaker. Sounds without a text "
                   "are reported and skipped, and the exit status is 1.\n\n"
                   "In a TextGrid every interval with a text is an utterance and is aligned within its times; tiers that "
                   "overlap in time are different speakers, and each speaker has a result.\n\n"
                   "Numbers, signs and abbreviations are read in all usual ways, and the best one for the sound is used "
                   "(--numbers); the result has them as they are written. Words without a known pronunciation take the sound "
                   "between their neighbours (--oov lists them).\n\n"
                   "A text that is longer than the sound is an error. A text that does not seem to match the sound is aligned "
                   "with a warning. In a data directory, utterances that fail are reported and the others are aligned. See "
                   "docs/alignment.md.",
    .examples = "  linnet align --text \"how are you\" hello.wav\n"
                "  linnet align --text \"how are you\" -f textgrid -o hello.TextGrid hello.wav\n"
                "  linnet align -f json lecture.flac lecture.txt\n"
                "  linnet align corpus --output-dir aligned\n"
                "  linnet align --phones \"HH AH L OW\" -f ctm hello.wav\n"
                "  linnet align --data corpus/dev --output-dir aligned -f textgrid,json",
    .options = options,
    .values_size = sizeof(values),
    .max_operands = -1,
    .run = run,
};
