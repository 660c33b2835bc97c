/*
 * shared_options.h - the option rows that several commands share, what their values mean, and the checks that no table makes.
 *
 *   typedef struct values { lin_decoding_values decoding; lin_input_values input; ... } values;
 *   static const lin_option options[] = {LIN_DECODING_ROWS(values, decoding), LIN_INPUT_ROWS(values, input), ...};
 *
 *   exit_status = lin_decoding_check(parsed, &values->decoding, 0);
 *   lin_decoding_open(&decoding, &values->decoding, ...);                      // linnet/decoding.h
 */
#ifndef LIN_APP_SHARED_OPTIONS_H
#define LIN_APP_SHARED_OPTIONS_H

#include "app/live_text.h"
#include "app/options.h"
#include "base/status.h"
#include "decoder/endpoint.h"
#include "kernels/ops.h"
#include "linnet/decoding.h"
#include "linnet/diarizer.h"
#include "linnet/recognizer.h"

/* ---- the model ------------------------------------------------------------------------------------------------------------- */

typedef struct lin_model_values {
    const char *model, *device;
    int offline;   /* of LIN_OFFLINE_ROW */
    int best;      /* of LIN_BEST_ROW */
    int precision; /* index of --precision's choices; see lin_model_precision */
    int dereverb;  /* of LIN_DEREVERB_ROW; for lin_recognizer.fbank */
} lin_model_values;

enum { LIN_MODEL_AUTO, LIN_MODEL_FP32, LIN_MODEL_BF16, LIN_MODEL_INT8 }; /* the choices of --precision */

static inline lin_precision lin_model_precision(const lin_model_values *values)
{
    static const lin_precision of[] = {LIN_PRECISION_AUTO, LIN_PRECISION_FP32, LIN_PRECISION_BF16, LIN_PRECISION_INT8};
    return of[values->precision];
}

#define LIN_DEVICE_ROW(at_value)                                                                                                 \
    {.name = "device", .expert = 1, .type = LIN_OPTION_STRING, .at = at_value, .text = "auto", .value = "auto|cpu|cuda[:N]",     \
     .help = "Where the network runs; auto is a GPU if there is one"}

#define LIN_MODEL_ROW(at_value)                                                                                                  \
    {.name = "model", .letter = 'm', .type = LIN_OPTION_FILE, .at = at_value, .choices = "default|offline|small",                \
     .help = "The model: a file, or the name of an installed one. default and small recognise while sound arrives; small has "   \
             "half the parameters. offline reads whole utterances and makes fewer errors. If not given, $LINNET_MODEL, else "    \
             "default"}

#define LIN_MODEL_ROWS(owner, field)                                                                                             \
    LIN_MODEL_ROW(offsetof(owner, field.model)),                                                                                 \
    LIN_DEVICE_ROW(offsetof(owner, field.device)),                                                                               \
    {.name = "precision", .expert = 1, .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.precision), .text = "auto",        \
     .choices = "auto|fp32|bf16|int8",                                                                                           \
     .help = "Precision of the network's matrix products. bf16 halves the memory for weights and is nearly twice as fast, on a " \
             "GPU and on CPUs with AVX512-BF16 or BF16 of arm64. int8 computes with eight bits (linnet quantise), and all CPUs " \
             "give equal products. auto is int8 on a CPU for a model that is stored in eight bits, tf32 for many live streams "  \
             "on a GPU, and else fp32"}

/* Of commands whose model is an operand, a network of tokens. */
#define LIN_NETWORK_ROWS(owner, field)                                                                                           \
    LIN_DEVICE_ROW(offsetof(owner, field.device)),                                                                               \
    {.name = "precision", .expert = 1, .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.precision), .text = "auto",        \
     .choices = "auto|fp32|bf16", .help = "Precision of the network's matrix products; auto: fp32"}

#define LIN_OFFLINE_ROW(owner, field)                                                                                            \
    {.name = "offline", .expert = 1, .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.offline),                              \
     .help = "Use the installed model that reads whole utterances. It makes fewer errors, and results come at the end. The "     \
             "same as --model offline"}

#define LIN_DEREVERB_ROW(at_value)                                                                                               \
    {.name = "dereverb", .expert = 1, .type = LIN_OPTION_FLAG, .at = at_value, .text = "yes",                                    \
     .help = "Take the echo of a room out of the sound, where there is one. It costs a stream 131 KB, and in a room a "          \
             "millisecond for each second of sound"}

/* Of commands that recognise live streams. */
#define LIN_SECOND_PASS_ROW(owner, field)                                                                                        \
    {.name = "second-pass", .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "MODEL",                             \
     .choices = "offline|default|small", .expert = 1,                                                                            \
     .help = "Decode each finished utterance again with this model, such as offline, the installed model that reads whole "      \
             "utterances. The final result has fewer errors and comes a little later"}

/* Of commands that can decode whole utterances, in the values of decoding. */
#define LIN_COMBINE_ROW(owner, field)                                                                                            \
    {.name = "combine", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.combine), .value = "MODEL",                         \
     .choices = "default|offline|small", .expert = 1,                                                                            \
     .help = "This model, such as default, scores the sound of the best hypotheses too: a twentieth fewer word errors. It "      \
             "needs whole utterances, which a model that cannot stream or a second pass decodes"}

/* times: its cost in processor time. as: the options that it stands for. */
#define LIN_BEST_ROW(at_value, times, as)                                                                                        \
    {.name = "best", .type = LIN_OPTION_FLAG, .at = at_value,                                                                    \
     .help = "Fewest errors: a quarter fewer word errors, for " times " times the processor time. Final results come at the "    \
             "end of an utterance. Stands for " as ", and with --words for --rescore words"}

/* If --best was given, sets the options that it stands for and that were not given: the model, or with live streams (second_pass
 * not NULL) the second pass. */
void lin_choose_best(lin_model_values *model, lin_decoding_values *decoding, const char **second_pass);

/* The model that --model or --offline names, on --device in --precision, with this program's warnings and its interrupt flag.
 * LIN_INVALID if both names are given. Else as lin_recognizer_open. */
lin_status lin_open_recognizer(lin_recognizer *recognizer, const lin_model_values *values, lin_error *err);
/* The same for another model, beside it. */
lin_status lin_open_another(lin_recognizer *recognizer, const char *name, const lin_model_values *values, lin_error *err);

/* What live streams are recognised with, and how their results are written; zeroed before. */
typedef struct lin_live_models {
    lin_recognizer recognizer, second, combined; /* second, combined: of --second-pass and --combine */
    lin_decoding decoding;
    lin_punctuation *punctuation; /* of readable text; NULL: plain words */
    lin_g2p_rules *speller;       /* of words outside the lexicon in it; NULL: none */
    lin_writer_options words; /* for app/live_text.h */
} lin_live_models;

/* second_pass: NULL, none. What was opened is closed by lin_live_models_close, also on failure. */
lin_status lin_live_models_open(lin_live_models *models, const lin_model_values *values, const char *second_pass,
                                const lin_decoding_values *decoding, int ipa, int quiet, lin_error *err);
void lin_live_models_close(lin_live_models *models);

/* ---- pronunciations -------------------------------------------------------------------------------------------------------- */

/* Of commands that read the installed files of a language; lin_run_command chooses it. */
#define LIN_LANGUAGE_ROW(owner, field)                                                                                           \
    {.name = "language", .type = LIN_OPTION_STRING, .at = offsetof(owner, field), .value = "CODE",                               \
     .help = "The language whose files are used where no other file is named: its code, such as en, or a folder of such files "  \
             "(docs/languages.md); if not given, the model's language, else en"}

#define LIN_G2P_ROW(owner, field)                                                                                                \
    {.name = "g2p", .expert = 1, .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "RULES",                        \
     .help = "Letter-to-sound rules for words outside the lexicon, made by linnet g2p; if not given, $LINNET_G2P, else "         \
             "the rules of the language"}

/* Of commands that choose a set. */
#define LIN_PHONE_SET_ROW(owner, field)                                                                                          \
    {.name = "phones", .letter = 'p', .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "SET",                     \
     .help = "The phones: a file with a name on each line, optionally with its IPA or 'silence' or 'noise'; or a model, whose "  \
             "set is used; if not given, the phones of the lexicon"}

/* Of commands that turn words into phones. */
#define LIN_DICTIONARY_ROW(owner, field)                                                                                         \
    {.name = "lexicon", .letter = 'l', .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "DICT", .expert = 1,      \
     .help = "Pronunciations in CMUdict's format, with probabilities or without (docs/formats.md); if not given, "               \
             "$LINNET_LEXICON, else the lexicon of the program or of Debian's package pocketsphinx-en-us"}

/* more: the rest of its help, " ..." or "". */
#define LIN_ADD_LEXICON_ROW(owner, field, more)                                                                                  \
    {.name = "add-lexicon", .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "WORDS",                             \
     .help = "Words that extend the lexicon, in its format; a word alone on its line is pronounced by the rules" more}

#define LIN_NUMBERS_ROW(owner, field)                                                                                            \
    {.name = "numbers", .type = LIN_OPTION_STRING, .at = offsetof(owner, field), .value = "RULES",                               \
     .help = "How numbers, signs and abbreviations in texts are said: a file, a language (en, de, es), or none; if not given, "  \
             "$LINNET_NUMBERS, else the rules of the language"}

/* ---- decoding -------------------------------------------------------------------------------------------------------------- */

#define LIN_DECODING_ROWS(owner, field) LIN_DECODING_ROWS_WITH(owner, field, NULL)

/* words_default: "yes" for commands that recognise words by default. */
#define LIN_DECODING_ROWS_WITH(owner, field, words_default)                                                                      \
    {.type = LIN_OPTION_HEADING, .help = "Decoding"},                                                                            \
    {.name = "words", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.words), .text = words_default,                        \
     .help = "Recognise words with a lexicon and a language model. A word outside the lexicon is written as its phonemes in "    \
             "brackets, in readable text as the letter-to-sound rules spell it"},                                                \
    {.name = "readable", .expert = 1, .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.readable), .text = "yes",             \
     .help = "Write words as readable text, with digits, capitals and punctuation (docs/readable.md), in srt, vtt, text "        \
             "without ids, and in a field of json. Other formats have plain words. --no-readable writes plain words "            \
             "everywhere"},                                                                                                      \
    {.name = "min-confidence", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.min_confidence), .text = "0", .min = 0,    \
     .expert = 1, .max = 1, .value = "P",                                                                                        \
     .help = "Write [...] in readable text for words whose confidence is below P. With --grammar, a sentence below P is not "    \
             "found, and P is 0.25 if not given"},                                                                               \
    LIN_DICTIONARY_ROW(owner, field.lexicon),                                                                                    \
    LIN_ADD_LEXICON_ROW(owner, field.add_lexicon,                                                                                \
                        ". The language model scores those that it lacks as its <unk>"),                                         \
    LIN_G2P_ROW(owner, field.g2p),                                                                                               \
    {.name = "lm", .expert = 1, .type = LIN_OPTION_FILE, .at = offsetof(owner, field.lm),                                        \
     .help = "Language model, of phonemes or with --words of words: ARPA, plain or gzip, or packed by linnet ngram; a file, "    \
             "or the name of an installed one, such as phones.lm. If not given, with --words, $LINNET_LM, else the installed "   \
             "one of words"},                                                                                                    \
    {.name = "no-lm", .expert = 1, .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.no_lm),                                  \
     .help = "Words without a language model, even if one is installed"},                                                        \
    LIN_SETTING_ROW("tune", "lm-weight", DOUBLE, offsetof(owner, field.lm_weight), NULL, 0, 100, "W",                            \
        "Weight of the language model; if not given, 0.7, with --words 0.85"),                                                   \
    LIN_SETTING_ROW("tune", "bonus", DOUBLE, offsetof(owner, field.bonus), NULL, -100, 100, "X",                                 \
        "Bonus for every phoneme or word, natural logarithm: larger values make results longer; if not given, 0, with --lm "     \
        "2, with --words -1"),                                                                                                   \
    {.name = "beam", .letter = 'b', .type = LIN_OPTION_INT, .at = offsetof(owner, field.beam), .min = 0, .max = LIN_WORDS_MAX,   \
     .expert = 1,                                                                                                                \
     .help = "Number of hypotheses that the search keeps. 0 is greedy decoding, which takes the best label of each step; it is " \
             "fastest, and the default without words, language model, phrases and alternatives. With one of these the default "  \
             "is 16, with --words 512, or 1024 for whole utterances (a model that cannot stream, a second pass)"},               \
    LIN_SETTING_ROW("tune", "beam-score", DOUBLE, offsetof(owner, field.beam_score), NULL, 0, 600, "X",                          \
        "Drop hypotheses that are worse than the best by more than this, natural logarithm; 0 drops none. If not given, 12, "    \
        "with --words 13, or 14 for whole utterances"),                                                                          \
    LIN_SETTING_ROW("tune", "beam-labels", INT, offsetof(owner, field.beam_labels), NULL, 0, 65536, NULL,                        \
        "Number of labels followed per step, the most probable ones; 0: all; if not given, 20, with --words 0"),                 \
    LIN_SETTING_ROW("tune", "skip-blank", DOUBLE, offsetof(owner, field.skip_blank), NULL, 0, 1, "P",                            \
        "Skip steps whose blank has at least this probability; 0: none; if not given, 0.999, with --words 0.9999"),              \
    LIN_SETTING_ROW("tune", "blank-penalty", DOUBLE, offsetof(owner, field.blank_penalty), NULL, -100, 100, "X",                 \
        "With --words, subtract this from the natural logarithm of each step's blank; a larger value finds more words. If "      \
        "not given, 1.5"),                                                                                                       \
    LIN_SETTING_ROW("tune", "settle", DOUBLE, offsetof(owner, field.settle), NULL, 0, 600, "X",                                  \
        "With --words, a word is settled when all hypotheses within this distance of the best one have it, natural "             \
        "logarithm. The distance falls to 0 within 3 s after a word. 0 waits for all hypotheses, however long. If not given, "   \
        "7"),                                                                                                                    \
    LIN_SETTING_ROW("tune", "show", DOUBLE, offsetof(owner, field.show), NULL, 0, 1, "P",                                        \
        "With --words, live text has phonemes in place of words that are not settled, from the first word whose confidence "     \
        "is below this. 0 shows all words. If not given, 0.45"),                                                                 \
    LIN_SETTING_ROW("tune", "unknown", DOUBLE, offsetof(owner, field.unknown), NULL, -1000, 0, "X",                              \
        "Penalty of a word outside the lexicon, natural logarithm, below 0; if not given, -6"),                                  \
    {.name = "no-unknown", .expert = 1, .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.no_unknown),                        \
     .help = "Only words of the lexicon"},                                                                                       \
    {.name = "all-words", .under = "tune", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.all_words),                      \
     .help = "Add the words of the lexicon that the language model lacks; it treats them as <unk>"},                             \
    {.name = "tune", .expert = 1, .type = LIN_OPTION_SETTINGS,                                                                   \
     .help = "Parameters of the search and of the ends of utterances, for experts"},                                             \
    {.name = "n-best", .letter = 'n', .type = LIN_OPTION_INT, .at = offsetof(owner, field.n_best), .text = "1", .min = 1,        \
     .expert = 1, .max = LIN_BEAM_MAX, .help = "Number of alternatives of each result, best first, in json"},                    \
    {.name = "rescore", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.rescore), .value = "MODEL",                         \
     .choices = "words", .expert = 1,                                                                                            \
     .help = "When an utterance ends, score its best hypotheses again with this network of tokens (docs/lm.md); words is the "   \
             "installed one. Results are then settled only when their utterance ends"},                                          \
    LIN_SETTING_ROW("tune", "rescore-n", INT, offsetof(owner, field.rescore_n), "20", 2, LIN_WORDS_NBEST_MAX, NULL,              \
        "Number of hypotheses that --rescore and --combine compare"),                                                            \
    LIN_SETTING_ROW("tune", "rescore-weight", DOUBLE, offsetof(owner, field.rescore_weight), "0.5", 0, 1, "W",                   \
        "Weight of the network of --rescore in the language model; --lm has the rest. 0 switches --rescore off"),                \
    LIN_SETTING_ROW("tune", "combine-weight", DOUBLE, offsetof(owner, field.combine_weight), "0.5", 0, 1, "W",                   \
        "Weight of the model of --combine in the score of the sound; --model has the rest. 0 switches --combine off"),           \
    {.name = "context", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.context), .value = "LIST",                          \
     .help = "File of likely phrases, one per line, each optionally with its own bonus after a tab"},                            \
    {.name = "phrase", .type = LIN_OPTION_FILES, .at = offsetof(owner, field.phrases), .value = "TEXT",                          \
     .help = "A likely phrase; may be repeated"},                                                                                \
    {.name = "keyword", .type = LIN_OPTION_FILES, .at = offsetof(owner, field.keywords), .value = "TEXT[=CONFIDENCE]",           \
     .help = "Report this keyword, such as \"hey linnet\", wherever it is said, also without --words. JSON has the keywords; "   \
             "listen also writes a line for each. It is reported from this confidence on; if none is given, from one that "      \
             "depends on its number of phonemes. May be repeated"},                                                              \
    {.name = "keywords", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.keywords_file), .value = "LIST", .expert = 1,      \
     .help = "File of keywords, one per line"},                                                                                  \
    {.name = "grammar", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.grammar), .value = "FILE",                          \
     .help = "The sentences that can be said, one per line or as JSGF, and no others (docs/commands.md); implies --words"},      \
    LIN_SETTING_ROW("tune", "context-bonus", DOUBLE, offsetof(owner, field.context_bonus), "4", -LIN_CONTEXT_BONUS_MAX,          \
        LIN_CONTEXT_BONUS_MAX, "X",                                                                                              \
        "Bonus of a phrase without its own, natural logarithm; below 0: unlikely")

/* result: what the command writes, as part of a sentence; rates: a sentence on errors. */
#define LIN_DIARIZE_ROW(owner, field, result, rates)                                                                             \
    {.name = "diarize", .type = LIN_OPTION_INT, .at = offsetof(owner, field.speakers), .min = 1, .max = LIN_SPEAKERS_MOST,       \
     .value = "N", .bare = "-1", /* LIN_SPEAKERS_UNKNOWN */                                                                      \
     .help = "Tell apart who speaks: " result " of the speakers S1, S2, ... N: how many they are, if that is known. " rates      \
             " (docs/speakers.md)"}

/* Checks combinations that the table cannot check: an exit status, LIN_EXIT_OK on success. phrases_come: clients may send
 * phrases, so their options are allowed without --context and --phrase. */
int lin_decoding_check(const lin_parsed *parsed, lin_decoding_values *values, int phrases_come);

/* ---- the ends of utterances ------------------------------------------------------------------------------------------------ */

typedef struct lin_endpoint_values {
    lin_endpoint_options rules;
    int reset; /* of --reset's choices, in the order below */
} lin_endpoint_values;

enum { LIN_RESET_AUTO, LIN_RESET_ENDPOINT, LIN_RESET_NEVER };

/* Whether endpoints of a live stream reset the network. */
static inline lin_reset_options lin_endpoint_ends(const lin_endpoint_values *values, const lin_recognizer *recognizer)
{
    const int resets = values->reset == LIN_RESET_AUTO ? !recognizer->forgets : values->reset == LIN_RESET_ENDPOINT;
    return (lin_reset_options){.endpoints = 1, .rules = values->rules, .resets = resets};
}

#define LIN_ENDPOINT_ROWS(owner, field, reset_help)                                                                              \
    {.type = LIN_OPTION_HEADING, .help = "Endpoints"},                                                                           \
    {.name = "silence-after", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.after_s), .text = "0.8",              \
     .max = 86400, .value = "S", .help = "Seconds of silence after speech that end an utterance; 0: never"},                     \
    LIN_SETTING_ROW("tune", "silence-before", DOUBLE, offsetof(owner, field.rules.before_s), "5", 0, 86400, "S",                 \
        "Seconds of silence that end an utterance without speech; 0: never"),                                                    \
    LIN_SETTING_ROW("tune", "longest", DOUBLE, offsetof(owner, field.rules.longest_s), "30", 0, 86400, "S",                      \
        "Seconds after which an utterance ends in any case; 0: never"),                                                          \
    LIN_SETTING_ROW("tune", "blank", DOUBLE, offsetof(owner, field.rules.blank), "0.8", 0, 1, "P",                               \
        "A step with at least this probability of blank is silence"),                                                            \
    LIN_SETTING_ROW("tune", "loud", DOUBLE, offsetof(owner, field.rules.loud_db), "20", 0, 200, "DB",                            \
        "Silence that is this much louder than the quietest recent sound counts half; 0: loudness is ignored"),                  \
    {.name = "reset", .expert = 1, .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.reset), .text = "auto",                \
     .choices = "auto|endpoint|never", .help = reset_help}

/* ---- what the sound is ----------------------------------------------------------------------------------------------------- */

typedef struct lin_input_values {
    int raw, rate_hz, channels, encoding;
    const char *channel, *track, *start, *end;
} lin_input_values;

/* Headerless sound. */
#define LIN_PCM_ROWS(owner, field, of_raw, of_rate, of_channels)                                                                 \
    {.name = "raw", .expert = 1, .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.raw), .help = of_raw},                     \
    {.name = "rate", .expert = 1, .type = LIN_OPTION_INT, .at = offsetof(owner, field.rate_hz), .min = LIN_AUDIO_MIN_HZ,         \
     .max = LIN_AUDIO_MAX_HZ, .value = "HZ", .help = of_rate},                                                                   \
    {.name = "channels", .expert = 1, .type = LIN_OPTION_INT, .at = offsetof(owner, field.channels), .min = 1,                   \
     .max = LIN_AUDIO_MAX_CHANNELS, .help = of_channels},                                                                        \
    {.name = "encoding", .expert = 1, .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.encoding), .text = "s16le",         \
     .choices = "s16le|s24le|s32le|f32le|u8|mulaw|alaw", .help = "Samples of headerless PCM"}

/* Which channels of a sound, as first rows: any or all, or one. */
#define LIN_CHANNELS_ROWS(owner, field)                                                                                          \
    {.type = LIN_OPTION_HEADING, .help = "Sound"},                                                                               \
    {.name = "channel", .letter = 'c', .type = LIN_OPTION_STRING, .at = offsetof(owner, field.channel), .text = "mix",           \
     .value = "mix|each|N",                                                                                                      \
     .help = "Channels to process: mix, the mean of all; each, all of them separately; or N, the N-th, counted from 1"}
#define LIN_CHANNEL_ROWS(owner, field)                                                                                           \
    {.type = LIN_OPTION_HEADING, .help = "Sound"},                                                                               \
    {.name = "channel", .letter = 'c', .type = LIN_OPTION_STRING, .at = offsetof(owner, field.channel), .text = "mix",           \
     .value = "mix|N", .help = "Channel to process: mix, the mean of all, or N, the N-th, counted from 1"}

/* Which part of a sound. */
#define LIN_PART_ROWS(owner, field)                                                                                              \
    {.name = "start", .type = LIN_OPTION_STRING, .at = offsetof(owner, field.start), .value = "TIME",                            \
     .help = "Start of the part to process (90, 1:30, 1:23:40.5, 250ms); times in results remain those of the file"},            \
    {.name = "end", .type = LIN_OPTION_STRING, .at = offsetof(owner, field.end), .value = "TIME",                                \
     .help = "End of the part; if not given, the end of the sound"}

/* Beside it, what the sound is. */
#define LIN_INPUT_ROWS(owner, field)                                                                                             \
    LIN_PART_ROWS(owner, field),                                                                                                 \
    {.name = "track", .expert = 1, .type = LIN_OPTION_STRING, .at = offsetof(owner, field.track), .value = "N|LANGUAGE",         \
     .help = "Sound track of a video or other file with several: the N-th, or the first of a language, such as deu; if not "     \
             "given, the default one"},                                                                                          \
    LIN_PCM_ROWS(owner, field,                                                                                                   \
                 "The input is headerless PCM; without it, only a pipe or standard input (-) whose bytes match no known "        \
                 "format is read as such, with a message",                                                                       \
                 "Sample rate of headerless PCM; if not given, 16000",                                                           \
                 "Channels of headerless PCM, interleaved; if not given, 1")

/* The channel: LIN_CHANNEL_MIX, LIN_CHANNEL_EACH with LIN_CHANNELS_ROWS, or 0, 1, ... LIN_INVALID for other words. */
lin_status lin_input_channel(const lin_parsed *parsed, const lin_input_values *values, int *channel, lin_error *err);

/* The part of each file to read; sets the track for the whole process. LIN_INVALID for bad values, and for a description of
 * headerless samples if every operand is a regular file, whose header describes it. */
lin_status lin_input_part(const lin_parsed *parsed, const lin_input_values *values, lin_part *part, lin_error *err);

/* The description of headerless samples for lin_audio_open, stored in `storage`. */
const lin_pcm_format *lin_input_format(const lin_input_values *values, lin_pcm_format *storage);

/* ---- the filterbank -------------------------------------------------------------------------------------------------------- */

/* field: a lin_fbank_config. */
#define LIN_FBANK_ROWS(owner, field)                                                                                             \
    {.type = LIN_OPTION_HEADING, .help = "Filterbank"},                                                                          \
    {.name = "fbank", .type = LIN_OPTION_SETTINGS, .help = "Parameters of the filterbank"},                                      \
    LIN_SETTING_ROW("fbank", "sample-hz", INT, offsetof(owner, field.sample_hz), "16000", 4000, 192000, "HZ",                    \
        "Sample rate that the sound is resampled to"),                                                                           \
    LIN_SETTING_ROW("fbank", "mel-bins", INT, offsetof(owner, field.mel_bins), "40", 1, 512, NULL,                               \
        "Number of mel bands"),                                                                                                  \
    LIN_SETTING_ROW("fbank", "window-ms", DOUBLE, offsetof(owner, field.window_ms), "25", 1, 1000, "MS", "Length of a window"),  \
    LIN_SETTING_ROW("fbank", "hop-ms", DOUBLE, offsetof(owner, field.hop_ms), "10", 1, 1000, "MS",                               \
        "Distance between two windows"),                                                                                         \
    LIN_SETTING_ROW("fbank", "low-hz", DOUBLE, offsetof(owner, field.low_hz), "20", 0, 96000, "HZ",                              \
        "Lower edge of the lowest triangle"),                                                                                    \
    LIN_SETTING_ROW("fbank", "high-hz", DOUBLE, offsetof(owner, field.high_hz), "0", -96000, 96000, "HZ",                        \
        "Upper edge of the highest triangle; 0 or less is added to half the sample rate"),                                       \
    LIN_SETTING_ROW("fbank", "preemphasis", DOUBLE, offsetof(owner, field.preemphasis), "0.97", 0, 1, NULL,                      \
        "Coefficient of the pre-emphasis"),                                                                                      \
    {.name = "dereverb", .under = "fbank", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.dereverb),                       \
     .help = "Take the echo of a room out of the spectrum, as all commands do that recognise speech"}

#endif
