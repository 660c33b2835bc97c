// cmd_g2p.c - linnet g2p: letter-to-sound rules learnt from a dictionary, and how good they are.

#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "train/learn/g2p_learn.h"
#include "lexicon/g2p.h"
#include "linnet/wording.h"
#include "train/score/edit.h"

typedef struct g2p_values {
    const char *output, *phones;
    int order, minimum, hold_out, quiet;
    const char *language;
} g2p_values;

static const lin_option options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1, .at = offsetof(g2p_values, output),
     .help = "The rules to write"},
    LIN_LANGUAGE_ROW(g2p_values, language),
    LIN_PHONE_SET_ROW(g2p_values, phones),
    {.name = "order", .letter = 'n', .type = LIN_OPTION_INT, .at = offsetof(g2p_values, order), .text = "5", .min = 1,
     .max = LIN_NGRAM_MAX_ORDER, .help = "Letters in an n-gram"},
    {.name = "min-count", .type = LIN_OPTION_INT, .at = offsetof(g2p_values, minimum), .text = "2", .min = 1, .max = 1000000,
     .help = "Leave out n-grams of three letters and more that occur less often; 1 makes larger and slightly better rules"},
    {.name = "held-out", .type = LIN_OPTION_INT, .at = offsetof(g2p_values, hold_out), .value = "N", .max = 1000000,
     .help = "Hold out every N-th word, and report how many of these the rules pronounce wrongly; 0: none"},
    LIN_QUIET_ROW(offsetof(g2p_values, quiet), "Print no summary"),
    {.type = LIN_OPTION_END},
};

typedef struct test_counts {
    int words, wrong, skipped; // skipped: the rules lack one of their characters
    long phones, errors;
} test_counts;

static lin_status test_word(const lin_dictionary *d, const lin_g2p_rules *rules, const char *word, test_counts *t, lin_error *err)
{
    int labels[LIN_PRONUNCIATION_MAX], n;
    lin_status status = lin_g2p_rules_apply(rules, word, strlen(word), labels, LIN_PRONUNCIATION_MAX, &n, err);
    if (status == LIN_NO_MEMORY) return status;
    if (status != LIN_OK) {
        t->skipped++;
        return LIN_OK;
    }
    int fewest = -1, length = 0;
    const int *known;
    for (int k = 0, m; (m = lin_dictionary_find(d, word, strlen(word), k, &known)) > 0; k++) {
        lin_edit_counts counts;
        LIN_TRY(lin_edit_distance(known, m, labels, n, &counts, err));
        const int errors = counts.sub + counts.del + counts.ins;
        if (fewest < 0 || errors < fewest) fewest = errors, length = m;
    }
    t->words++;
    t->wrong += fewest > 0;
    t->errors += fewest;
    t->phones += length;
    return LIN_OK;
}

static lin_status test(const g2p_values *v, const lin_dictionary *d, const lin_phones *phones, lin_error *err)
{
    lin_g2p_rules *rules;
    test_counts t = {0};
    lin_status status = lin_g2p_rules_open(v->output, phones, &rules, err);
    for (int w = 0; w < lin_dictionary_count(d) && status == LIN_OK; w += v->hold_out) {
        status = test_word(d, rules, lin_dictionary_word(d, w), &t, err);
    }
    lin_g2p_rules_destroy(rules);
    if (status == LIN_OK && t.words) {
        printf("%d words held out: %.2f %% of words wrong, %.2f %% of phones wrong\n", t.words, 100.0 * t.wrong / t.words,
               100.0 * (double)t.errors / (double)t.phones);
    }
    if (status == LIN_OK && t.skipped)
        lin_complain("held-out words that are not counted, because the rules lack one of their characters: %d", t.skipped);
    return status;
}

static int run(lin_parsed *parsed)
{
    const g2p_values *v = parsed->values;
    lin_error err = {0};
    lin_phones *phones = NULL;
    lin_dictionary *dictionary = NULL;
    lin_ngram *lm = NULL;
    lin_g2p_learn_report report = {0};
    lin_g2p_learn_options how = lin_g2p_learn_options_default();
    char path[4096];
    how.order = v->order;
    how.minimum = v->minimum;
    how.hold_out = v->hold_out;
    if (v->hold_out == 1) return lin_misuse(parsed, "--held-out 1 leaves no word to learn from");
    const lin_warnings warnings = lin_complaints(0);
    const double begun = lin_now();
    const char *given = parsed->operands.count ? parsed->operands.items[0] : NULL;
    lin_status status = lin_find_lexicon(NULL, given, path, sizeof path, &err);
    if (status == LIN_OK && !*path) status = lin_fail(&err, LIN_IO, "no lexicon is installed; name a DICT");
    if (status == LIN_OK) status = lin_guard_found(path, v->output, &err);
    if (status == LIN_OK)
        status = v->phones ? lin_wording_phones(v->phones, &phones, &err) : lin_wording_dictionary_phones(path, &phones, &err);
    if (status == LIN_OK) status = lin_dictionary_load(path, phones, &dictionary, &err);
    if (status == LIN_OK) lin_lexicon_tell_skipped(dictionary, &warnings);
    if (status == LIN_OK) status = lin_g2p_learn(dictionary, phones, &how, &lm, &report, &err);
    if (status == LIN_OK) status = lin_ngram_write(lm, v->output, &err);
    if (status == LIN_OK && !v->quiet) {
        lin_complain(
            "%s: %d words, %d pronunciations (%d left out: other characters, or over two phones a letter), %d pairs of a "
            "letter and its phones; %.1f s",
            path, report.words, report.pronunciations, report.left_out, report.pairs, lin_now() - begun);
    }
    lin_ngram_destroy(lm);
    if (status == LIN_OK && v->hold_out) status = test(v, dictionary, phones, &err);
    lin_dictionary_destroy(dictionary);
    lin_phones_destroy(phones);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_g2p = {
    .name = "g2p",
    .operands = "[DICT]",
    .summary = "learn letter-to-sound rules from a dictionary",
    .description =
        "Learns letter-to-sound rules from a dictionary in CMUdict's format, for words that a dictionary lacks: an n-gram model "
        "over pairs of a letter and its phones (Bisani & Ney 2008), in a packed file that linnet ngram info and linnet ngram "
        "arpa also read. Without DICT it learns from the installed lexicon. Letters may be of any script, phones any symbols "
        "(docs/languages.md).\n\n"
        "The installed rules are words.g2p; --g2p of other commands and the environment variable LINNET_G2P name others.",
    .examples = "  linnet g2p my.dict -o my.g2p\n"
                "  linnet g2p --held-out 20 cmudict.dict -o test.g2p",
    .options = options,
    .values_size = sizeof(g2p_values),
    .max_operands = 1,
    .run = run,
};
