// cmd_decode.c - linnet decode: matrices of log-probabilities of any acoustic model to phonemes and words.

#include <stdio.h>
#include <string.h>

#include "app/results.h"
#include "app/common.h"
#include "app/shared_options.h"
#include "base/memory.h"
#include "train/lab/npy.h"
#include "decoder/rows.h"
#include "linnet/utterances.h"

typedef struct decode_values {
    lin_decoding_values decoding;
    lin_results_values results;
    const char *phones;
    double row_ms, delay_ms;
    int jobs, quiet, unchecked;
    const char *language;
} decode_values;

static const lin_option options[] = {
    LIN_RESULTS_ROWS(decode_values, results),
    LIN_TEXT_ROWS(decode_values, results),
    LIN_JOBS_ROW(offsetof(decode_values, jobs)),
    LIN_QUIET_ROW(offsetof(decode_values, quiet), "Print no progress and no summary"),
    {.type = LIN_OPTION_HEADING, .help = "Matrices"},
    {.name = "phones", .letter = 'p', .type = LIN_OPTION_FILE, .at = offsetof(decode_values, phones), .value = "SET",
     .help = "Names of the columns, the CTC blank first as <blank>: a file, whose lines begin with a name (Kaldi's phones.txt "
             "too, if the blank is first), or the names themselves with blanks between; if not given, <blank> and CMUdict's 39 "
             "in alphabetical order, as linnet posteriors writes them"},
    {.name = "row-ms", .type = LIN_OPTION_DOUBLE, .at = offsetof(decode_values, row_ms), .text = "30", .min = 0.1,
     .max = 10000, .value = "MS", .help = "Time between two rows; linnet info shows it for a model"},
    {.name = "delay-ms", .type = LIN_OPTION_DOUBLE, .at = offsetof(decode_values, delay_ms), .text = "0", .min = 0, .max = 1000,
     .value = "MS", .help = "Emission delay of the model that made the rows: times are so much earlier; linnet info shows it"},
    {.name = "unchecked", .type = LIN_OPTION_FLAG, .at = offsetof(decode_values, unchecked),
     .help = "Accept rows whose probabilities do not sum to 1: other kinds of scores"},
    LIN_LANGUAGE_ROW(decode_values, language),
    LIN_DECODING_ROWS(decode_values, decoding),
    {.type = LIN_OPTION_END},
};

typedef struct decode_job {
    const decode_values *v;
    lin_phones *phones;
    lin_decoding decoding;
    lin_bulk bulk; // a decoder for each thread, a result in each slot
} decode_job;

/* ---- one matrix, on its own thread ----------------------------------------------------------------------------------------- */

static lin_status check_matrix(const decode_job *job, const float *rows, size_t T, int V, lin_error *err)
{
    const int known = lin_phones_count(job->phones);
    if (V != known) {
        return lin_fail(err, LIN_MISMATCH, "the matrix has %d columns, but there are %d names, including the blank; give the "
                                           "right names with --phones", V, known);
    }
    return job->v->unchecked ? LIN_OK : lin_rows_check(rows, (int64_t)T, V, err);
}

static lin_status decode_file(decode_job *job, const lin_input *input, lin_row_decoder *d, lin_result *result, lin_error *err)
{
    enum { PIECE = 4096 }; // rows between two checks of the interrupt flag
    float *rows;
    size_t T = 0;
    int V;
    lin_status status = lin_npy_read(input->path, &rows, &T, &V, err);
    if (status == LIN_OK) status = check_matrix(job, rows, T, V, err);
    if (status == LIN_OK) status = lin_result_begin(result, input->id, input->speaker, 1, err);
    lin_row_decoder_reset(d, 0);
    for (size_t t = 0; t < T && status == LIN_OK; t += PIECE) {
        if (lin_interrupted) status = lin_fail(err, LIN_STOPPED, "interrupted");
        const size_t n = T - t < PIECE ? T - t : PIECE;
        if (status == LIN_OK) status = lin_row_decoder_push(d, rows + t * (size_t)V, (int)n, err);
    }
    if (status == LIN_OK) status = lin_row_decoder_finish(d, result, err);
    result->seconds = (double)T * (job->v->row_ms / 1000);
    lin_free(rows);
    return status;
}

static lin_status work(void *context, int item, int slot, int thread, lin_error *err)
{
    decode_job *job = context;
    if (lin_interrupted) return lin_fail(err, LIN_STOPPED, "interrupted");
    return decode_file(job, &job->bulk.inputs.items[item], lin_bulk_thread(&job->bulk, thread),
                       lin_bulk_slot(&job->bulk, slot), err);
}

static lin_status take(void *context, int item, int slot, lin_status status, lin_error *err)
{
    decode_job *job = context;
    const lin_result *result = lin_bulk_slot(&job->bulk, slot);
    if (status == LIN_OK) status = lin_results_put(&job->bulk.results, &job->bulk.inputs.items[item], &result, 1, err);
    if (status == LIN_OK) job->bulk.seconds += result->seconds;
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

static lin_status decode(decode_job *job, const lin_list *operands, lin_error *err)
{
    const lin_warnings warnings = lin_complaints(job->v->quiet);
    const decode_values *v = job->v;
    lin_bulk *b = &job->bulk;
    LIN_TRY(lin_inputs_add_paths(&b->inputs, operands, err));
    LIN_TRY(lin_bulk_begin(b, 0, err));
    if (lin_inputs_all_done(&b->inputs)) return LIN_OK;
    if (v->phones && !strchr(v->phones, ' ')) LIN_TRY(lin_phones_load(v->phones, 0, &job->phones, err));
    else LIN_TRY(lin_phones_create(v->phones, &job->phones, err));
    LIN_TRY(lin_decoding_open(&job->decoding, &v->decoding, job->phones, v->row_ms / 1000, v->delay_ms / 1000, &warnings, err));
    LIN_TRY(lin_bulk_threads(b, sizeof(lin_result), sizeof(lin_row_decoder), err));
    for (int i = 0; i < b->n_threads; i++) LIN_TRY(lin_row_decoder_create(lin_bulk_thread(b, i), &job->decoding, err));
    if (v->decoding.words && v->decoding.readable)
        LIN_TRY(lin_results_make_readable(&b->results, job->phones, v->decoding.min_confidence, err));
    LIN_TRY(lin_results_open(&b->results, job->phones, b->inputs.n > 1, err));
    return lin_bulk_run(b, err);
}

static void release(decode_job *job)
{
    lin_bulk *b = &job->bulk;
    for (int i = 0; i < b->n_threads; i++) lin_row_decoder_free(lin_bulk_thread(b, i));
    for (int i = 0; i < b->n_slots; i++) lin_result_free(lin_bulk_slot(b, i));
    lin_bulk_free(b);
    lin_decoding_close(&job->decoding);
    lin_phones_destroy(job->phones);
}

static int run(lin_parsed *parsed)
{
    decode_values *v = parsed->values;
    decode_job job = {.v = v};
    lin_error err = {0};
    job.bulk = (lin_bulk){.noun = "file", .jobs = v->jobs, .quiet = v->quiet, .context = &job, .work = work, .take = take};
    if (parsed->operands.count == 0) return lin_misuse(parsed, "no MATRIX is given");
    if (strcmp(parsed->operands.items[0], "-") == 0) return lin_misuse(parsed, "a MATRIX must be a file, not standard input (-)");
    if (lin_corpus_is_sound(parsed->operands.items[0]))
        return lin_misuse(parsed, "%s is a sound; linnet transcribe reads sound, decode reads matrices of log-probabilities",
                          parsed->operands.items[0]);
    int exit_status = lin_decoding_check(parsed, &v->decoding, 0);
    if (exit_status == LIN_EXIT_OK) exit_status = lin_results_check(&job.bulk.results, parsed, &v->results);
    if (exit_status == LIN_EXIT_OK)
        exit_status = lin_results_check_search(&job.bulk.results, parsed, &v->decoding);
    if (exit_status != LIN_EXIT_OK) return exit_status;
    const lin_status status = decode(&job, &parsed->operands, &err);
    exit_status = lin_bulk_end(&job.bulk, status, &err);
    release(&job);
    return exit_status;
}

const lin_command lin_command_decode = {
    .name = "decode",
    .operands = "MATRIX...",
    .summary = "decode log-probabilities of any acoustic model to phonemes or words",
    .description = "Decodes NumPy matrices with one row per step and one column per output, natural-log probabilities with the "
                   "CTC blank first, such as the output of linnet posteriors or of another acoustic model. Searches and formats "
                   "are those of linnet transcribe.\n\n"
                   "Rows are checked: a matrix with a NaN, or with probabilities that do not sum to 1, is reported with the "
                   "row; the others are decoded, and the exit status is 1.",
    .examples = "  linnet posteriors talk.flac -o talk.npy; linnet decode --words talk.npy\n"
                "  linnet decode --lm phones.arpa --beam 16 -f textgrid --output-dir grids matrices/*.npy\n"
                "  linnet decode --phones phones.txt --row-ms 20 other.npy",
    .options = options,
    .values_size = sizeof(decode_values),
    .max_operands = -1,
    .run = run,
};
