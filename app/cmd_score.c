// cmd_score.c - linnet score: error rates of a result file against a reference.

#include <string.h>

#include "app/commands.h"
#include "app/common.h"
#include "decoder/score.h"

typedef struct score_values {
    const char *name, *output;
    int json, utterances, case_sensitive, ref_format, hyp_format;
} score_values;

static const lin_option options[] = {
    {.name = "name", .type = LIN_OPTION_STRING, .at = offsetof(score_values, name), .text = "PER",
     .help = "What the rate is called: PER for phonemes, WER for words"},
    {.name = "json", .type = LIN_OPTION_FLAG, .at = offsetof(score_values, json),
     .help = "Write one JSON object instead of a table"},
    {.name = "utterances", .type = LIN_OPTION_FLAG, .at = offsetof(score_values, utterances),
     .help = "With --json: the counts of every utterance as well"},
    {.name = "case", .type = LIN_OPTION_FLAG, .at = offsetof(score_values, case_sensitive),
     .help = "Upper and lower case letters are different, as for sclite -s"},
    {.name = "ref-format", .type = LIN_OPTION_CHOICE, .at = offsetof(score_values, ref_format), .text = "auto",
     .choices = "auto|trn|kaldi|ctm", .help = "Format of REF; auto: by its extension, else by its first line"},
    {.name = "hyp-format", .type = LIN_OPTION_CHOICE, .at = offsetof(score_values, hyp_format), .text = "auto",
     .choices = "auto|trn|kaldi|ctm", .help = "Format of HYP"},
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .at = offsetof(score_values, output),
     .help = "Where to write; standard output if not given"},
    {.type = LIN_OPTION_END},
};

static const lin_trn_format formats[] = {LIN_TRN_AUTO, LIN_TRN_TRN, LIN_TRN_KALDI, LIN_TRN_CTM};

static int run(lin_parsed *parsed)
{
    const score_values *v = parsed->values;
    lin_score_options how = {formats[v->ref_format], formats[v->hyp_format], v->case_sensitive};
    lin_error err = {0};
    lin_score *score;
    if (lin_score_files(parsed->operands.items[0], parsed->operands.items[1], &how, &score, &err) != LIN_OK)
        return lin_give_up(&err);
    lin_buffer buffer = {0};
    if (v->json) {
        lin_score_json(score, v->name, v->utterances, &buffer);
    } else {
        lin_score_text(score, v->name, &buffer);
    }
    lin_output out;
    lin_status status = lin_buffer_status(&buffer, &err);
    if (status == LIN_OK) status = lin_output_open(v->output, &out, &err);
    if (status == LIN_OK) {
        status = lin_buffer_write(&buffer, out.file, out.path ? out.path : "standard output", &err);
        lin_status closed = lin_output_close(&out, status == LIN_OK ? &err : NULL);
        if (status == LIN_OK) status = closed;
    }
    lin_buffer_free(&buffer);
    lin_score_destroy(score);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_score = {
    .name = "score",
    .operands = "REF HYP",
    .summary = "phoneme or word error rates of a result against a reference",
    .description = "Counts substitutions, deletions and insertions per speaker and overall, with sclite's alignment. REF and HYP "
                   "are NIST TRN, Kaldi text or CTM files with the same utterances. A speaker is the part of an utterance's name "
                   "before the first '-', or else the first '_'.",
    .examples = "  linnet score test.ref.trn test.hyp.trn",
    .options = options,
    .values_size = sizeof(score_values),
    .min_operands = 2,
    .max_operands = 2,
    .run = run,
};
