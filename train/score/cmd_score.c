// cmd_score.c - linnet score: error rates of a result file against a reference.

#include <string.h>

#include "app/common.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "base/textfile.h"
#include "base/hash.h"
#include "linnet/find.h"
#include "linnet/wording.h"
#include "train/score/score.h"
#include "train/score/score_compare.h"
#include "train/score/score_report.h"

typedef struct score_values {
    const char *name, *output, *html, *map, *glm, *utt2spk, *against, *phones, *language, *format;
    int ipa, json, utterances, align, confusions, case_sensitive, normalize, unit, bootstrap;
} score_values;

#define AT(field) .at = offsetof(score_values, field)
#define FORMATS "auto|trn|kaldi|ctm|json|stm"
static const lin_option options[] = {
    {.type = LIN_OPTION_HEADING, .help = "Comparison"},
    {.name = "unit", .type = LIN_OPTION_CHOICE, AT(unit), .text = "auto", .choices = "auto|phones|words",
     .help = "What to score. auto scores the phones of JSON objects, and the tokens that other formats have. The rate is called "
             "PER or WER by this option; with auto, by the reference's tokens"},
    {.name = "ipa", .type = LIN_OPTION_FLAG, AT(ipa),
     .help = "Count a phone in the IPA and its name in CMUdict as equal, on both sides, and ignore stress (docs/formats.md)"},
    LIN_LANGUAGE_ROW(score_values, language),
    {.name = "phones", .letter = 'p', .type = LIN_OPTION_FILE, AT(phones), .value = "SET",
     .help = "The phones of another language, whose case then matters: a model, or a file with a name on each line; for --ipa, "
             "and to tell phones from words; if not given, the phones of the language"},
    {.name = "map", .type = LIN_OPTION_FILE, AT(map),
     .help = "Phones that count as equal, on both sides: a line 'ax ah' replaces ax by ah, a line 'q' deletes q. A file, or one "
             "of the language, such as timit-61-39.map"},
    {.name = "glm", .type = LIN_OPTION_FILE, AT(glm),
     .help = "Words that count as equal: contractions, spellings, compounds; NIST's global map, lines 'colour => color' or "
             "\"it's => { it's / it is }\", applied to both sides: a file, or one of the language, as words.glm "
             "(docs/scoring.md)"},
    {.name = "case", .type = LIN_OPTION_FLAG, AT(case_sensitive),
     .help = "Distinguish upper and lower case, as sclite -s"},
    {.name = "normalize", .type = LIN_OPTION_FLAG, AT(normalize),
     .help = "Compare words without case and punctuation, with numbers and signs in words, on both sides (docs/scoring.md)"},
    {.name = "format", .letter = 'f', .type = LIN_OPTION_STRING, AT(format), .value = "REF[,HYP]", .choices = FORMATS,
     .help = "Formats of REF, and of HYP and HYP2; auto, also if not given: by the extension, else by the first line. One of "
             FORMATS},
    {.name = "utt2spk", .type = LIN_OPTION_FILE, AT(utt2spk),
     .help = "Speakers: lines 'utterance speaker'; if not given, the utterance's name determines the speaker"},
    {.type = LIN_OPTION_HEADING, .help = "Confidence in the result"},
    {.name = "against", .type = LIN_OPTION_FILE, AT(against), .value = "HYP2",
     .help = "Result of another system on the same reference, to compare with HYP: difference, interval, probability of "
             "improvement, matched-pairs test"},
    {.name = "bootstrap", .type = LIN_OPTION_INT, AT(bootstrap), .text = "1000", .max = LIN_BOOTSTRAP_MAX,
     .help = "Number of resamples for the confidence intervals; 0: no intervals"},
    {.type = LIN_OPTION_HEADING, .help = "Output"},
    {.name = "name", .type = LIN_OPTION_STRING, AT(name),
     .help = "Name of the rate; if not given, PER or WER by the tokens, ER if they do not show which"},
    {.name = "utterances", .type = LIN_OPTION_FLAG, AT(utterances), .help = "Print the counts of every utterance too"},
    {.name = "align", .type = LIN_OPTION_FLAG, AT(align),
     .help = "Print the alignment of every utterance, as sclite -o pralign does"},
    {.name = "confusions", .type = LIN_OPTION_INT, AT(confusions), .text = "0", .max = 1000000,
     .help = "Print the N most frequent substitutions, deletions, insertions and confused pairs"},
    {.name = "json", .type = LIN_OPTION_FLAG, AT(json), .help = "Write one JSON object instead of tables"},
    {.name = "html", .type = LIN_OPTION_FILE, .writes = 1, AT(html),
     .help = "Also write a page with the confusion matrix, speakers and worst utterances to this file"},
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, AT(output),
     .help = "Output file; if not given, standard output"},
    {.type = LIN_OPTION_END},
};

enum { UNIT_AUTO, UNIT_PHONES, UNIT_WORDS };

static lin_status write_reports(const score_values *v, const lin_score_report *report, lin_error *err)
{
    lin_buffer buffer = {0};
    lin_status status = v->json ? lin_score_json(report, &buffer, err) : lin_score_text(report, &buffer, err);
    if (status == LIN_OK) status = lin_output_write(v->output, 0, &buffer, err);
    lin_buffer_clear(&buffer);
    if (status == LIN_OK && v->html) status = lin_score_html(report, &buffer, err);
    if (status == LIN_OK && v->html) status = lin_output_write(v->html, 0, &buffer, err);
    lin_buffer_free(&buffer);
    return status;
}

// A map by its path, or its name in the folder of the language; NULL: none.
static lin_status find_map(const score_values *v, const lin_phones *phones, const char **map, char *path, size_t capacity,
                           lin_error *err)
{
    static const char *const none[] = {NULL};
    if (!*map) return LIN_OK;
    lin_status status = lin_find_named(phones, *map, NULL, none, path, capacity, err);
    *map = path;
    if (status == LIN_OK) status = lin_guard_found(path, v->output, err);
    return status == LIN_OK ? lin_guard_writes(v->html, err) : status;
}

// Computes intervals and the comparison with another system, and writes the report.
static lin_status report_on(const score_values *v, const lin_list *files, const char *measure, const lin_score *score,
                            const lin_score *other, int keep_case, lin_error *err)
{
    const lin_bootstrap_options how = {.resamples = v->bootstrap, .seed = 1, .random = lin_random_below};
    lin_score_intervals intervals = {0};
    lin_score_comparison comparison;
    lin_score_report report = {
        .score = score,
        .measure = measure,
        .ref_name = lin_base_name(files->items[0]),
        .hyp_name = lin_base_name(files->items[1]),
        .keep_case = keep_case,
        .utterances = v->utterances,
        .alignments = v->align,
        .confusions = v->confusions,
    };
    lin_status status = LIN_OK;
    if (v->bootstrap) {
        status = lin_score_bootstrap(score, &how, v->json || v->html, &intervals, err);
        report.intervals = &intervals;
    }
    if (status == LIN_OK && other) {
        status = lin_score_compare(score, other, &how, &comparison, err);
        report.comparison = &comparison;
        report.other_name = lin_base_name(v->against);
    }
    if (status == LIN_OK) status = write_reports(v, &report, err);
    lin_score_intervals_free(&intervals);
    return status;
}

// "go," and "\"go", but not "mr.", "a." and what has no letter.
static int has_punctuation(const char *word)
{
    const size_t n = strlen(word);
    const char *c = word;
    while (*c && !lin_is_letter(*c) && (unsigned char)*c < 0x80) c++;
    return *c && (*word == '"' || strchr(",?!;:\"", word[n - 1]) || (n > 3 && word[n - 1] == '.'));
}

// Marks that count as a part of their word are hardly meant.
static void mention_punctuation(const lin_score *score, const char *measure)
{
    for (int t = 0; t < score->tokens.n && strcmp(measure, "PER") != 0; t++) {
        const char *word = lin_score_token(score, t);
        if (!score->by_token[t].n_ref || !has_punctuation(word)) continue;
        lin_complain("the reference has punctuation, which counts as a part of its words ('%.40s'); --normalize compares words "
                     "without it", word);
        return;
    }
}

// REF[,HYP] of --format; 0: it is none.
static int read_formats(const char *text, lin_score_options *how)
{
    static const char *const names[] = {"auto", "trn", "kaldi", "ctm", "json", "stm"}; // in the order of lin_trn_format
    lin_trn_format *to[] = {&how->read.format, &how->hyp_format};
    for (size_t i = 0; i < 2 && *text; i++) {
        const size_t n = strcspn(text, ",");
        size_t f = 0;
        while (f < 6 && (strlen(names[f]) != n || memcmp(names[f], text, n) != 0)) f++;
        if (f == 6) return 0;
        *to[i] = (lin_trn_format)f;
        text += n + (text[n] == ',' && i == 0);
    }
    return !*text;
}

static int run(lin_parsed *parsed)
{
    const score_values *v = parsed->values;
    const lin_list *files = &parsed->operands;
    lin_score_options how = {
        .read = {.case_sensitive = v->case_sensitive,
                 .normalize = v->normalize,
                 .unit = v->unit == UNIT_WORDS || v->normalize ? LIN_TRN_WORDS : LIN_TRN_PHONES},
        .utt2spk_path = v->utt2spk,
        .glm_path = v->glm,
    };
    lin_error err = {0};
    lin_phone_map *map = NULL;
    lin_phones *phones = NULL;
    lin_written *written = NULL;
    lin_score *score = NULL, *other = NULL;
    char map_path[4096], glm_path[4096];
    const char *measure = v->name, *map_name = v->map;
    if (v->format && !read_formats(v->format, &how))
        return lin_misuse(parsed, "--format is REF or REF,HYP, each one of " FORMATS ", not '%.60s'", v->format);
    if (v->ipa && v->unit == UNIT_WORDS) return lin_misuse(parsed, "--ipa compares phones: it excludes --unit words");
    if (v->normalize && (v->ipa || v->map || v->case_sensitive || v->unit == UNIT_PHONES))
        return lin_misuse(parsed, "--normalize compares words: it excludes --case, --ipa, --map and --unit phones");
    if (v->against && !v->bootstrap) return lin_misuse(parsed, "--against needs resamples: --bootstrap must not be 0");
    lin_status status = v->phones     ? lin_wording_phones(v->phones, &phones, &err)
                        : v->language ? lin_wording_chosen_phones(&phones, &err)
                                      : lin_phones_create(NULL, &phones, &err);
    if (status == LIN_OK) status = find_map(v, phones, &map_name, map_path, sizeof map_path, &err);
    if (status == LIN_OK) status = find_map(v, phones, &how.glm_path, glm_path, sizeof glm_path, &err);
    if (status == LIN_OK && map_name) status = lin_phone_map_load(map_name, v->case_sensitive, &map, &err);
    if (status == LIN_OK && lin_phones_is_own(phones) && v->unit != UNIT_WORDS) how.read.case_sensitive = 1;
    if (status == LIN_OK && v->normalize) status = lin_find_open_numbers(phones, NULL, NULL, &written, &err);
    how.read.map = map;
    how.read.written = written;
    how.read.phones = v->ipa ? phones : NULL;
    if (status == LIN_OK) status = lin_score_files(files->items[0], files->items[1], &how, &score, &err);
    if (status == LIN_OK && v->against) status = lin_score_files(files->items[0], v->against, &how, &other, &err);
    if (!measure && (v->unit != UNIT_AUTO || v->normalize)) measure = v->unit == UNIT_PHONES ? "PER" : "WER";
    if (!measure && status == LIN_OK) measure = lin_score_measure(score, phones);
    if (status == LIN_OK) status = report_on(v, files, measure, score, other, how.read.case_sensitive, &err);
    if (status == LIN_OK && !v->normalize) mention_punctuation(score, measure);
    lin_score_destroy(score);
    lin_score_destroy(other);
    lin_written_destroy(written);
    lin_phone_map_destroy(map);
    lin_phones_destroy(phones);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_score = {
    .name = "score",
    .operands = "REF HYP",
    .summary = "compute phoneme or word error rates of a result",
    .description =
        "Counts substitutions, deletions and insertions per speaker and overall, with sclite's alignment; times are ignored. REF "
        "and HYP are NIST TRN, Kaldi text, CTM or JSON lines with equal utterances. A speaker is the part of an utterance's "
        "name before the first '-', or else the first '_', unless --utt2spk is given. REF may be a NIST STM: HYP is then a CTM, "
        "whose words are scored within the times of its lines.\n\n"
        "Confidence intervals are computed by drawing utterances, and whole speakers, with replacement. See docs/scoring.md.",
    .examples = "  linnet score test.ref.trn test.hyp.trn\n"
                "  linnet score --unit words meeting.stm meeting.ctm\n"
                "  linnet score --normalize --glm words.glm REF HYP\n"
                "  linnet score --confusions 10 --html report.html test.ref.trn test.hyp.jsonl\n"
                "  linnet score test.ref.trn new.trn --against old.trn",
    .options = options,
    .values_size = sizeof(score_values),
    .min_operands = 2,
    .max_operands = 2,
    .run = run,
};
