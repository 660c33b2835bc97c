/*
 * linnet.h - speech recognition for programs: sound in, phonemes and words out, while the speaker is still talking.
 *
 *   #include <linnet.h>
 *   #include <stdio.h>
 *
 *   int main(int argc, char **argv)
 *   {
 *       linnet_error err;
 *       linnet_model *model = NULL;
 *       linnet_decoder *words = NULL;
 *       linnet_result *result = NULL;
 *       linnet_decoder_options options;
 *       linnet_decoder_options_init(&options, sizeof options);
 *       options.words = 1;
 *       if (argc < 2) return 2;
 *       if (linnet_model_load(NULL, NULL, &model, &err) || linnet_decoder_create(model, &options, &words, &err) ||
 *           linnet_decode_file(model, argv[1], words, &result, &err))
 *           fprintf(stderr, "%s\n", err.message);
 *       else
 *           printf("%s\n", linnet_result_text(result));
 *       linnet_result_destroy(result);
 *       linnet_decoder_destroy(words);
 *       linnet_model_destroy(model);
 *       return result == NULL;
 *   }
 *
 *   cc example.c $(pkg-config --cflags --libs linnet)
 *
 * Objects
 *   linnet_model     a trained network: immutable, one for all threads
 *   linnet_decoder   how its output becomes phonemes or words (language model, lexicon): immutable, one for all threads
 *   linnet_session   one stream of live sound: results while it goes on
 *   linnet_engine    many streams on all cores, or on a GPU
 *   linnet_aligner   when each phoneme and word of a known text was said, and how well
 *   linnet_result    what was recognised
 *
 * Conventions, for all functions that do not say otherwise
 *   Errors    A function that can fail returns a linnet_status, 0 (LINNET_OK) on success, and fills *err with one sentence;
 *             err may be NULL. On failure an object that would have been created is NULL. The library never prints and never
 *             exits; what is not an error goes to linnet_model_options.warning. Any call can return LINNET_NO_MEMORY.
 *   NULL      An object that is NULL is LINNET_INVALID where a status is returned; linnet_session_next and linnet_engine_next
 *             give NULL for it. Functions that describe an object need one, and places for results must be there.
 *   Owners    What a create, load, decode, align or fork function gives belongs to the caller, who destroys it. Destroy
 *             functions accept NULL. Objects may be destroyed in any order: a decoder, session, engine, aligner or result
 *             keeps the model and decoder that it needs. Text and paths that are passed in are copied.
 *   Threads   Models, decoders and aligners may be used by any number of threads at once. Sessions and results belong to one
 *             thread at a time. Engine functions may be called from any thread.
 *   fork      Where no other thread was in a call, a process that was forked may use its copies of all objects but engines: every
 *             call of those is LINNET_INVALID, linnet_engine_next gives NULL, and linnet_engine_destroy returns and leaves the
 *             memory. Objects on a GPU belong to the process that created them.
 *   Options   A struct that begins with `size` is filled with defaults by its _init function, which is given sizeof the struct;
 *             then change what you like. Where options may be NULL, the defaults apply. Structs grow at their end in later
 *             versions: programs compiled with this header run with later libraries of the same LINNET_ABI.
 *   Sound     Float samples, full scale is -1 to 1, channels interleaved: [n, channels]. n counts frames: one sample of every
 *             channel. Rates from 4 to 192 kHz, 1 to 64 channels; it is resampled to the model's rate.
 *   Times     Seconds from the beginning of the sound.
 *   Text      UTF-8.
 */
#ifndef LINNET_H
#define LINNET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LINNET_VERSION_MAJOR 0
#define LINNET_VERSION_MINOR 3
#define LINNET_VERSION_PATCH 0
#define LINNET_VERSION "0.3.0"
/* Of the shared library: liblinnet.so.1. Rises when programs must be compiled again. */
#define LINNET_ABI 1

#if defined(__GNUC__)
#define LINNET_API __attribute__((visibility("default")))
#else
#define LINNET_API
#endif

/* Version of the library that runs, "0.3.0"; LINNET_VERSION is that of the header. */
LINNET_API const char *linnet_version(void);

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

typedef enum linnet_status {
    LINNET_OK = 0,
    LINNET_INVALID = 1,     /* an argument or option is out of range */
    LINNET_TOO_SMALL = 2,   /* something of a fixed size is full: a queue, the places of an engine */
    LINNET_NO_MEMORY = 3,
    LINNET_IO = 4,          /* the system refused: open, read, write */
    LINNET_FORMAT = 5,      /* bytes are not what their format demands */
    LINNET_MISMATCH = 6,    /* two valid things do not fit each other: the saved state of another model */
    LINNET_UNSUPPORTED = 7, /* valid, but not in this build, on this machine, or with this model */
    LINNET_NUMERIC = 8,     /* NaN or infinity where a number was needed */
    LINNET_STOPPED = 9      /* a callback asked to stop */
} linnet_status;

typedef struct linnet_error {
    linnet_status status;
    char message[1024]; /* one sentence: what, where, what to do; no line end. After success the contents mean nothing */
} linnet_error;

/* Short English name: "ok", "invalid", "io", ... Never NULL. */
LINNET_API const char *linnet_status_name(linnet_status status);

/* Releases text and arrays where the function that returned them says so. NULL is allowed. */
LINNET_API void linnet_free(void *block);

/*
 * A folder in which the files that come with the library are looked for before all other places, those of a language in a
 * folder of its code: en/default.safetensors (the model), en/words.dict.gz, en/words.lm, and others (docs/languages.md). For
 * programs and packages that bring their own. It is copied and holds for the whole process; NULL: none again. Call it before all
 * others: not while another thread uses the library.
 * LINNET_INVALID: the path is too long.
 */
LINNET_API linnet_status linnet_set_data_folder(const char *folder, linnet_error *err);

/*
 * The language whose installed files, the model too, are used where none is named: the code of an installed one, "en", or a
 * folder with such files; for the whole process. NULL, the default: the model of English, and otherwise the language of each
 * model. Call it when linnet_set_data_folder may be called. LINNET_INVALID: there is no such language.
 */
LINNET_API linnet_status linnet_set_language(const char *language, linnet_error *err);

/* ---- models ---------------------------------------------------------------------------------------------------------------- */

typedef struct linnet_model linnet_model;

typedef enum linnet_precision {
    LINNET_FP32 = 0,
    LINNET_TF32 = 1, /* of a GPU's matrix products; a CPU computes in fp32 */
    LINNET_BF16 = 2,
    LINNET_INT8 = 3, /* eight bits, on a CPU, whichever it is: the same products on all of them; "auto" takes the CPU */
    LINNET_AUTO = 4  /* LINNET_INT8 on a CPU for a model that is stored in eight bits (linnet quantise), else LINNET_FP32 */
} linnet_precision;

typedef struct linnet_model_options {
    size_t size;
    const char *device;         /* "auto" (a GPU if it can be used), "cpu" (default), "cuda", "cuda:1" */
    linnet_precision precision; /* default LINNET_AUTO */
    /* One sentence without a line end, valid during the call, about something that is not an error: a lexicon line that was
     * left out, a file that breaks off. Called by any thread that uses the model. NULL (default): warnings are discarded. */
    void (*warning)(void *context, const char *text);
    void *warning_context;
} linnet_model_options;

LINNET_API void linnet_model_options_init(linnet_model_options *options, size_t size);

/*
 * Loads a model file. path may be the name of an installed model: "default" (streams), or "offline" (whole utterances only, more
 * accurate). NULL: $LINNET_MODEL, else "default".
 * LINNET_IO: there is no such file; LINNET_FORMAT: it is no model or is damaged; LINNET_UNSUPPORTED: the device cannot be used.
 */
LINNET_API linnet_status linnet_model_load(const char *path, const linnet_model_options *options, linnet_model **model,
                                           linnet_error *err);

/* The same from n bytes in memory, which may be freed afterwards. */
LINNET_API linnet_status linnet_model_load_memory(const void *bytes, size_t n, const linnet_model_options *options,
                                                  linnet_model **model, linnet_error *err);

LINNET_API void linnet_model_destroy(linnet_model *model);

typedef struct linnet_model_info {
    const char *name, *license; /* "" where the file does not say */
    const char *provenance;     /* JSON text: how it was trained; "" where the file does not say */
    int sample_hz;              /* the rate that sound is resampled to */
    int n_features;             /* D: log-mel bins of a frame */
    double frame_s;             /* seconds from one feature frame to the next: 0.01 */
    double row_s;               /* seconds from one row of outputs to the next: 0.03 */
    double delay_s;             /* from the end of a phoneme until its rows are known, by the construction of the model */
    int n_labels;               /* V: outputs, the CTC blank with index 0 among them */
    const char *const *phones;  /* [V] names by label: "<blank>", "AA", ... */
    const char *const *ipa;     /* [V] the same in the International Phonetic Alphabet where that is known */
    int streams;                /* 1: can run while sound comes (sessions, engines); 0: whole utterances only */
    uint64_t fingerprint;       /* of all that changes results; saved states carry it */
    const char *language;       /* a code, "en"; "" where the file does not say: then lexica and the like are to be named */
} linnet_model_info;

/* Belongs to the model. */
LINNET_API const linnet_model_info *linnet_model_describe(const linnet_model *model);

/* ---- decoders -------------------------------------------------------------------------------------------------------------- */

typedef struct linnet_decoder linnet_decoder;

/* A word or several that are likely now, and by how much: natural logarithm, 4 is usual, below 0 makes it unlikely. */
typedef struct linnet_phrase {
    const char *text;
    double bonus;
} linnet_phrase;

/* A number that is NAN, and a beam of 0, have the default of the kind of search: greedy, phonemes with a beam, or words. */
typedef struct linnet_decoder_options {
    size_t size;
    int words;           /* 1: words by a lexicon and a language model; 0 (default): phonemes */
    int beam;            /* hypotheses that are followed. 0 (default): words 512, of whole utterances (a model that cannot
                            stream, second_pass) 1024; phonemes with a language model, phrases or n_best 16, else the best label
                            of each row (greedy), which is fastest */
    int n_best;          /* alternatives in final results, 1 (default) to 256; of phonemes to 1024 */
    const char *lexicon; /* pronunciations in CMUdict's format, plain or gzip. NULL: $LINNET_LEXICON, else the installed one */
    const char *lm;      /* language model of words or, where words is 0, of phonemes: ARPA, plain or gzip, or packed by `linnet
                            ngram`; a path, or the name of an installed one such as "phones.lm". NULL: with words $LINNET_LM, else
                            the installed one; without words none */
    int no_lm;           /* 1: words without a language model */
    int all_words;       /* 1: words of the lexicon that the language model lacks can be found too */
    int no_unknown;      /* 1: only words of the lexicon; 0 (default): speech outside it becomes words made of phonemes */
    double unknown;      /* natural logarithm, at most 0, for a word outside the lexicon; NAN (default): -6 */
    double lm_weight;    /* of the language model against the sound; NAN (default): 0.85 for words, 0.7 for phonemes */
    double bonus;        /* natural logarithm, for every word or phoneme; NAN (default): -1 for words, 2 with an lm of
                            phonemes, else 0 */
    double beam_score;   /* hypotheses worse than the best by more than this are dropped; NAN (default): 12, words 13 */
    const linnet_phrase *phrases; /* [n_phrases] for all sessions that set none of their own */
    int n_phrases;
    double blank_penalty; /* of words: taken from the natural logarithm of each row's blank; NAN (default): 1.5 */
    double settle; /* of words: a hypothesis that is worse than the best by more than this, natural logarithm, does not keep words
                      unsettled; it falls to 0 within 3 s after a word. NAN (default): 7; 0: all hypotheses do, for any time */
    const char *add_lexicon; /* words that extend the lexicon, in the same format; a word alone in its line is pronounced by
                                rules. They can be found though the language model lacks them. NULL (default): none */
    double show; /* of words: provisional words from the first one of less confidence on are shown by their phonemes, as one word
                    that is not complete. NAN (default): 0.45; 0: none */
    const char *rescore; /* a network of tokens (`linnet lm`), of words or of phonemes, that scores the best hypotheses of an
                            utterance again when it ends: they settle only then. NULL (default): none */
    int rescore_n;         /* so many hypotheses, 2 to 256; 20 (default) */
    double rescore_weight; /* of the network in the language model's score, 0 (none) to 1; 0.5 (default) */
    const char *g2p; /* letter-to-sound rules (`linnet g2p`) for words of add_lexicon and of phrases without a pronunciation. NULL
                        (default): $LINNET_G2P, else those of the language */
    linnet_model *combine; /* the best hypotheses (rescore_n) of each utterance that is heard whole (a model that cannot stream,
                              second_pass) are judged by the sound of this model too; kept. LINNET_MISMATCH, where they are heard,
                              unless its features (but the hop), phones and frames of a step are those of the model whose sound
                              it is. NULL (default): none */
    double combine_weight; /* of it in the score of the sound, 0 (none) to 1; 0.5 (default) */
    int best; /* 1: fewest errors, for about twice the time, by the installed models: rescore is "words" where words is 1, combine
                 the model "default", and second_pass of sessions and engines "offline"; what is named here or there stays. Sounds
                 that are there as a whole: load the model "offline". LINNET_IO: one of them is missing. 0 (default) */
    const char *const *keywords; /* [n_keywords] "hey linnet", or "hey linnet=0.3" with the least confidence: looked for in all
                                    speech, beside what else is decoded, words or not (linnet_result_keyword) */
    int n_keywords;              /* 0 (default) to 10000 */
} linnet_decoder_options;

LINNET_API void linnet_decoder_options_init(linnet_decoder_options *options, size_t size);

/*
 * Opens the lexicon and the language model. One decoder serves any number of sessions, engines and files of this model.
 * LINNET_IO, LINNET_FORMAT, LINNET_MISMATCH name the file, the line and what to do.
 */
LINNET_API linnet_status linnet_decoder_create(linnet_model *model, const linnet_decoder_options *options,
                                               linnet_decoder **decoder, linnet_error *err);
LINNET_API void linnet_decoder_destroy(linnet_decoder *decoder);

/* "greedy", "beam" or "words". */
LINNET_API const char *linnet_decoder_kind(const linnet_decoder *decoder);

/* Words in the lexicon that can be found; 0 for decoders of phonemes. */
LINNET_API int linnet_decoder_vocabulary(const linnet_decoder *decoder);

/* ---- results --------------------------------------------------------------------------------------------------------------- */

typedef struct linnet_result linnet_result;

typedef struct linnet_phone {
    int label;         /* 1 .. V-1 */
    const char *name;  /* "AH" */
    const char *ipa;   /* "ʌ" */
    float confidence;  /* 0..1: geometric mean of the network's probabilities for it */
    double start_s, end_s;
    int stress;        /* 0, 1 or 2 as in CMUdict; -1: unknown */
    float goodness;    /* of aligned results: goodness of pronunciation, natural logarithm, 0 at best, below -3: something
                          else was said. NAN in other results */
    const char *said;  /* of aligned results: the phoneme that was said instead by the network's judgement, "" if none was said;
                          NULL: the phoneme itself, or not measured */
} linnet_phone;

typedef struct linnet_word {
    const char *text; /* of a word outside the lexicon: its phonemes in small letters, "[hh_ah_l_ow]" */
    int known;        /* 1: in the lexicon, or in a phrase or text that was given */
    int first_phone, n_phones; /* its phonemes among those of the result */
    float confidence; /* 0..1 */
    double start_s, end_s;
    float goodness;   /* of aligned results: ln of the mean of exp(goodness) of its phonemes, the probability that one picked
                         among them was said. 0: all were said, -0.7: half of them. NAN in other results */
} linnet_word;

typedef struct linnet_result_info {
    double seconds;      /* of sound */
    double score;        /* natural logarithm, of all that the search weighs; 0 where it gives none, as the next two */
    double acoustic;     /* of it, the sound's part */
    double language;     /* of it, the language model's part before its weight */
    int has_words;       /* words were looked for; there may still be none */
    int channels;        /* of the file, or 0 where the result is not of a file */
    int incomplete;      /* of a file: sound is missing, it breaks off or is damaged */
    const char *warning; /* of a file: a sentence about what was wrong with it, or "" */
    double fit;          /* of an aligned result: how well the text fits, mean logarithm per phoneme against the best labels;
                            below -4 it is probably another text. NAN in other results */
    double goodness;     /* of an aligned result: that of all phonemes together, as linnet_word.goodness. NAN in other results */
} linnet_result_info;

/* A keyword that was found. In a session, the settled result has it within a row of its end. */
typedef struct linnet_keyword {
    const char *text; /* as it was given */
    float confidence; /* 0..1: by its phonemes, against the most probable ones */
    double start_s, end_s;
} linnet_keyword;

/* Numbers of phonemes, words, keywords, alternatives. Alternatives: the best first, which is the result itself once more. */
LINNET_API int linnet_result_phones(const linnet_result *result);
LINNET_API int linnet_result_words(const linnet_result *result);
LINNET_API int linnet_result_keywords(const linnet_result *result);
LINNET_API int linnet_result_alternatives(const linnet_result *result);

/* Number i, from 0; NULL out of range. They belong to the result. */
LINNET_API const linnet_phone *linnet_result_phone(const linnet_result *result, int i);
LINNET_API const linnet_word *linnet_result_word(const linnet_result *result, int i);
LINNET_API const linnet_keyword *linnet_result_keyword(const linnet_result *result, int i);
LINNET_API const linnet_result *linnet_result_alternative(const linnet_result *result, int i);
LINNET_API const linnet_result_info *linnet_result_describe(const linnet_result *result);

/* The words, where they were looked for, else the phonemes, with blanks between them. Belongs to the result. "" if memory is
 * exhausted. */
LINNET_API const char *linnet_result_text(linnet_result *result);

/* The same as readable text: numbers as digits, capitals, full stops, commas and question marks, by words and pauses; words
 * outside the lexicon spelled by their sound, or "[...]". Of phonemes, and where the library's file words.punctuation is not
 * installed, the same as linnet_result_text. Belongs to the result. "" if memory is exhausted. */
LINNET_API const char *linnet_result_readable(linnet_result *result);

/* A copy that lives on when what gave the result goes on, as a session does. */
LINNET_API linnet_status linnet_result_copy(const linnet_result *result, linnet_result **copy, linnet_error *err);
LINNET_API void linnet_result_destroy(linnet_result *result);

typedef struct linnet_format_options {
    size_t size;
    const char *id;      /* of the utterance, default "sound"; several formats need one */
    const char *speaker; /* default "": unknown */
    int channel;         /* from 1 (default), for formats that name it */
    int with_id;         /* text: the id first */
    int times;           /* text: a line for each phoneme or word with its times */
    int ipa;             /* 1: phonemes in IPA */
    int stress;          /* 1: with stress where it is known: AH0 */
    int word_times;      /* vtt: the time of every word */
    int phones, words;   /* both 0 (default): words where there are any, else phonemes; 1: that unit, or both */
    int readable;        /* 1: text without id and times, srt, vtt: words as linnet_result_readable; json: with that field */
} linnet_format_options;

LINNET_API void linnet_format_options_init(linnet_format_options *options, size_t size);

/*
 * A result as one whole file of a format: "text", "json", "ctm", "trn", "srt", "vtt", "textgrid", "csv", "audacity",
 * "nemo".
 *   text  UTF-8 with a NUL behind its *length bytes; release it with linnet_free. length may be NULL
 * LINNET_INVALID: no such format, or a result that it cannot hold (words where none were looked for).
 */
LINNET_API linnet_status linnet_result_format(const linnet_result *result, const char *format,
                                              const linnet_format_options *options, char **text, size_t *length,
                                              linnet_error *err);

/* Names of the formats: index 0, 1, ...; NULL behind the last. */
LINNET_API const char *linnet_format_name(int index);

/* ---- whole sounds ---------------------------------------------------------------------------------------------------------- */

enum { LINNET_MIX = -1 }; /* the mean of all channels */

/* A sound that is all there: a file, or samples in memory. */
typedef struct linnet_sound {
    size_t size;
    const char *path;     /* a file: WAV, FLAC, Ogg, Opus, MP3, SPHERE and more; with ffmpeg installed, whatever that reads; "-":
                             standard input */
    const float *samples; /* path NULL: [n_samples, channels], not copied */
    size_t n_samples;
    int rate_hz, channels; /* of samples; default 16000, 1 */
    int channel;           /* LINNET_MIX (default), or 0, 1, ...: one channel */
    double start_s, end_s; /* only this part: default 0 and INFINITY. Times in results stay those of the sound;
                              the running level of a model begins with the part */
    int threads;           /* that work together on this sound: default 1; 0: one per core */
    /* Called now and then with the seconds processed and in all (-1: unknown). Not 0: the call ends with LINNET_STOPPED. NULL
     * (default): not. */
    int (*progress)(void *context, double seconds, double duration);
    void *context;
    int search;            /* of linnet_posteriors, 1: rows for a decoder with words or a language model, of a network that has an
                              output for these; default 0: those of phonemes alone */
} linnet_sound;

LINNET_API void linnet_sound_init(linnet_sound *sound, size_t size);

/*
 * Recognises a whole sound. decoder NULL: phonemes, greedy. A model that streams needs constant memory, and from the first
 * endpoint after a minute on the search begins anew at endpoints and, unless the model forgets by itself, so does the network, as
 * in `linnet transcribe`.
 * LINNET_IO, LINNET_FORMAT, LINNET_UNSUPPORTED: the file cannot be read; LINNET_NUMERIC: a sample is NaN or infinite.
 */
LINNET_API linnet_status linnet_decode(linnet_model *model, const linnet_sound *sound, linnet_decoder *decoder,
                                       linnet_result **result, linnet_error *err);

/* The same for a file with all defaults. */
LINNET_API linnet_status linnet_decode_file(linnet_model *model, const char *path, linnet_decoder *decoder,
                                            linnet_result **result, linnet_error *err);

/*
 * The network's input and output as arrays.
 *   features    [n, D] log-mel energies (natural logarithm), not normalised, a frame every frame_s
 *   posteriors  [n, V] natural-log probabilities, blank first, a row every row_s
 * Release *rows with linnet_free; *n may be 0. Nothing is reset at endpoints here. Row i is at i row_s; results give times that
 * are earlier by the emission delay in the model's file.
 */
LINNET_API linnet_status linnet_features(linnet_model *model, const linnet_sound *sound, float **rows, size_t *n,
                                         linnet_error *err);
LINNET_API linnet_status linnet_posteriors(linnet_model *model, const linnet_sound *sound, float **rows, size_t *n,
                                           linnet_error *err);

/* Decodes rows [n, V] of natural-log probabilities, of this or another network with the model's labels. LINNET_NUMERIC names
 * the row that is not one. */
LINNET_API linnet_status linnet_decode_rows(linnet_model *model, const float *rows, size_t n, linnet_decoder *decoder,
                                            linnet_result **result, linnet_error *err);

/* ---- sessions: live sound -------------------------------------------------------------------------------------------------- */

typedef struct linnet_session linnet_session;

typedef struct linnet_session_options {
    size_t size;
    int rate_hz, channels;        /* of the sound; default: the model's rate, 1 */
    int channel;                  /* LINNET_MIX (default), or one of them */
    linnet_decoder *decoder;      /* NULL (default): phonemes, greedy */
    int endpoints;                /* 1 (default): utterances end by the rules below; 0: only by linnet_session_end_utterance */
    double silence_before_s;      /* after so much silence in which nothing was said: default 5; 0: never, as the next two */
    double silence_after_s;       /* after so much silence that follows speech: default 0.8 */
    double longest_s;             /* after so long: default 30 */
    int reset_at_endpoints;       /* 1: the network forgets the past at each endpoint; 0: it goes on with it; -1 (default): 0 for
                                     a model that forgets by itself, else 1 */
    int can_save;                 /* 1: linnet_session_save and _fork will be called: keeps what a resampler needs for it, and
                                     creation takes up to a second where rate_hz is not the model's */
    linnet_model *second_pass;    /* recognises each utterance once more when it has ended, such as the model "offline", which
                                     makes fewer errors; kept. Its result is the final form, which then need not begin with what
                                     had settled. LINNET_MISMATCH unless its features (but the hop), phones and frames of a
                                     step are the model's. NULL (default): none */
} linnet_session_options;

LINNET_API void linnet_session_options_init(linnet_session_options *options, size_t size);

/* LINNET_UNSUPPORTED for a model that needs whole utterances (linnet_model_info.streams). */
LINNET_API linnet_status linnet_session_create(linnet_model *model, const linnet_session_options *options,
                                               linnet_session **session, linnet_error *err);
LINNET_API void linnet_session_destroy(linnet_session *session);

/*
 * Takes in n frames of sound, in pieces of any size: results do not depend on the cuts. Once the longest utterance has been
 * seen, nothing is allocated.
 * LINNET_NUMERIC, and nothing is taken in, if a sample is NaN or infinite; LINNET_INVALID after linnet_session_finish.
 */
LINNET_API linnet_status linnet_session_push(linnet_session *session, const float *samples, size_t n, linnet_error *err);

/* The same with 16-bit samples. */
LINNET_API linnet_status linnet_session_push_int16(linnet_session *session, const int16_t *samples, size_t n, linnet_error *err);

typedef enum linnet_end {
    LINNET_GROWS = 0,   /* the utterance has not ended */
    LINNET_BEFORE = 1,  /* by silence_before_s */
    LINNET_AFTER = 2,   /* by silence_after_s */
    LINNET_LONGEST = 3, /* by longest_s */
    LINNET_ASKED = 4,   /* by linnet_session_end_utterance */
    LINNET_FINISHED = 5 /* the sound has ended */
} linnet_end;

/* An utterance as it stands. */
typedef struct linnet_utterance {
    int number;                 /* 1, 2, ... of the session. Utterances in which nothing was said have none */
    linnet_end end;             /* not LINNET_GROWS: this is its final form */
    linnet_result *settled;     /* what never changes: it only grows until the utterance has ended. The final form with
                                   second_pass is another one, of the whole utterance */
    linnet_result *provisional; /* the best hypothesis for what follows, which may change (words by linnet_decoder_options.show);
                                   empty in the final form */
    int incomplete;             /* the last provisional word goes on: only its first phonemes are known */
    double start_s, end_s;      /* of its first and last phoneme, provisional ones included */
    double processed_s;         /* the sound up to here has been judged */
} linnet_utterance;

/*
 * What has changed since the last call: utterances that ended, one per call and in order, then the present one. NULL: nothing
 * more has changed. Utterances that are not asked for are kept: if you want only final results, skip those whose end is
 * LINNET_GROWS. Belongs to the session; valid until the session is used again.
 */
LINNET_API const linnet_utterance *linnet_session_next(linnet_session *session);

/* Ends the present utterance, as a push-to-talk button does. */
LINNET_API linnet_status linnet_session_end_utterance(linnet_session *session, linnet_error *err);

/* The sound has ended: what waited for more is judged, the last utterance ends. Then linnet_session_next, reset or destroy. */
LINNET_API linnet_status linnet_session_finish(linnet_session *session, linnet_error *err);

/* A new sound: as newly created, without the cost. Results that were not asked for are dropped. */
LINNET_API linnet_status linnet_session_reset(linnet_session *session, linnet_error *err);

/*
 * Phrases [n] instead of those of the decoder, from the next sound on and for this session alone; what is settled stays. n = 0:
 * none. Reads the lexicon: not for every piece of sound. LINNET_UNSUPPORTED for greedy decoders, which do not use phrases
 * (give the decoder a beam), and with n_best over 1. On failure the old ones stay.
 */
LINNET_API linnet_status linnet_session_set_phrases(linnet_session *session, const linnet_phrase *phrases, int n,
                                                    linnet_error *err);

/*
 * A session as bytes, from which linnet_session_load goes on with the same bits, here or on another machine. They are also what
 * `linnet transcribe --load-state` reads. Results are not in them: after loading, utterances count from 1, and the first one
 * begins with what settles from then on.
 *   bytes  release with linnet_free
 * LINNET_INVALID: without can_save, or after linnet_session_finish; LINNET_UNSUPPORTED: with n_best over 1, or the resampler
 * has no exact state for these two rates.
 */
LINNET_API linnet_status linnet_session_save(linnet_session *session, void **bytes, size_t *n, linnet_error *err);

/* Into a session created with the same model and options, which drops what it had; phrases are those of the session.
 * LINNET_MISMATCH: saved with others; LINNET_FORMAT: damaged. On failure the session is as newly created. */
LINNET_API linnet_status linnet_session_load(linnet_session *session, const void *bytes, size_t n, linnet_error *err);

/* A second session that goes on from the same point, with the present utterance. As linnet_session_save fails. */
LINNET_API linnet_status linnet_session_fork(linnet_session *session, linnet_session **copy, linnet_error *err);

/* ---- engines: many streams at once ----------------------------------------------------------------------------------------- */

/*
 * An engine runs many live streams on all cores, or on a GPU: what is ready of all streams moves through the network
 * together. Each stream gives the results of a session with the same options. All functions may be called from any thread.
 */
typedef struct linnet_engine linnet_engine;
typedef uint64_t linnet_stream; /* one stream of an engine, from open to close; never 0, never used twice */

typedef enum linnet_event_kind {
    LINNET_UTTERANCE = 1, /* `utterance` has changed or ended */
    LINNET_LOST = 2,      /* at time_s, `lost` frames of sound did not fit the queue; later times do not count them */
    LINNET_ENDED = 3,     /* all before linnet_engine_finish is processed: time_s of sound. The last event of the stream */
    LINNET_FAILED = 4     /* `status`; the stream gives nothing more before linnet_engine_reset */
} linnet_event_kind;

typedef struct linnet_event {
    linnet_event_kind kind;
    linnet_stream stream;
    void *user;                        /* as given to linnet_engine_open */
    const linnet_utterance *utterance; /* NULL unless LINNET_UTTERANCE */
    double time_s;                     /* seconds of the stream's sound */
    int64_t lost;
    linnet_status status;
} linnet_event;

typedef struct linnet_engine_options {
    size_t size;
    int streams;             /* at most, default 64; their memory is taken at creation */
    int threads;             /* default 0: one per core */
    linnet_decoder *decoder; /* as in linnet_session_options, as the next five */
    int endpoints;
    double silence_before_s, silence_after_s, longest_s;
    int reset_at_endpoints;
    int growing;             /* 1: events for utterances that still grow too; 0 (default): only for those that ended */
    double queue_s;          /* default 1: seconds of sound that may wait in each stream, 0.5 to 60 */
    /* Events of a stream, in order, on a thread of the engine. It must return soon, and may call every function of the engine
     * but linnet_engine_destroy. What the event points to is valid during the call. NULL (default): linnet_engine_next. */
    void (*event)(void *context, const linnet_event *event);
    void *context;
    int exact;               /* 1: on a GPU, matrix products in the model's precision; 0 (default): of an fp32 model in tf32 */
    linnet_model *second_pass; /* as in linnet_session_options; streams of the same thread wait meanwhile */
} linnet_engine_options;

LINNET_API void linnet_engine_options_init(linnet_engine_options *options, size_t size);

/* LINNET_UNSUPPORTED for a model that needs whole utterances. */
LINNET_API linnet_status linnet_engine_create(linnet_model *model, const linnet_engine_options *options, linnet_engine **engine,
                                              linnet_error *err);

/* Waits for the threads of the engine; no other call may be in progress. */
LINNET_API void linnet_engine_destroy(linnet_engine *engine);

/* A new stream of sound at rate_hz with `channels` that are mixed. LINNET_TOO_SMALL: all places are taken. */
LINNET_API linnet_status linnet_engine_open(linnet_engine *engine, int rate_hz, int channels, void *user, linnet_stream *stream,
                                            linnet_error *err);

/* Takes in n frames of sound, which are copied; does not wait for the network. LINNET_TOO_SMALL: they do not fit the queue,
 * none is taken, and they count as lost. LINNET_NUMERIC, LINNET_INVALID: as linnet_session_push; also for a stream that is
 * not open. */
LINNET_API linnet_status linnet_engine_push(linnet_engine *engine, linnet_stream stream, const float *samples, size_t n,
                                            linnet_error *err);

/* How many frames of sound fit the stream's queue now: for callers that can wait instead of losing sound.
 * LINNET_INVALID as linnet_engine_push. */
LINNET_API linnet_status linnet_engine_room(linnet_engine *engine, linnet_stream stream, size_t *n, linnet_error *err);

/* The sound has ended: LINNET_ENDED comes when all of it is processed. */
LINNET_API linnet_status linnet_engine_finish(linnet_engine *engine, linnet_stream stream, linnet_error *err);

/* As newly opened: sound and events that wait are dropped. */
LINNET_API linnet_status linnet_engine_reset(linnet_engine *engine, linnet_stream stream, linnet_error *err);

/* Gives the place back; no event comes afterwards. A stream that is not open is ignored. */
LINNET_API void linnet_engine_close(linnet_engine *engine, linnet_stream stream);

/*
 * The next event of any stream, where options.event is NULL; waits for it at most wait_s seconds, and returns NULL if there
 * is none. Valid until the next call; one thread at a time. Events wait until they are asked for; of an utterance that grows
 * only the latest.
 */
LINNET_API const linnet_event *linnet_engine_next(linnet_engine *engine, double wait_s);

typedef struct linnet_engine_stats {
    size_t size;            /* sizeof this struct, set by the caller */
    int open, streams;      /* streams open, places */
    size_t stream_bytes;    /* memory of one stream */
    double lag_p50_ms, lag_p95_ms, lag_p99_ms; /* from the push that completed a row's sound to the row's results */
    int64_t lost;           /* frames of sound that did not fit */
    int64_t missed;         /* events that were dropped because memory was exhausted */
} linnet_engine_stats;

/* Since creation. LINNET_INVALID: size is not set. */
LINNET_API linnet_status linnet_engine_measure(linnet_engine *engine, linnet_engine_stats *stats, linnet_error *err);

/* ---- alignment of a known text --------------------------------------------------------------------------------------------- */

typedef struct linnet_aligner linnet_aligner;

typedef struct linnet_aligner_options {
    size_t size;
    int phonemes;        /* 1: texts are phonemes, "HH AH L OW" or in IPA; 0 (default): words */
    const char *lexicon; /* as in linnet_decoder_options; words that it lacks are pronounced by rules, with a warning */
    int follow_sound;    /* 1 (default): phonemes end where the sound changes; 0: at the network's rows */
    double beam;         /* default 600: paths worse than the best by more than this, natural logarithm, are dropped */
    const char *add_lexicon; /* as in linnet_decoder_options */
    const char *g2p; /* rules for words that the lexicon lacks; NULL as in linnet_decoder_options */
} linnet_aligner_options;

LINNET_API void linnet_aligner_options_init(linnet_aligner_options *options, size_t size);

/* Opens the lexicon. LINNET_IO: there is none. */
LINNET_API linnet_status linnet_aligner_create(linnet_model *model, const linnet_aligner_options *options,
                                               linnet_aligner **aligner, linnet_error *err);
LINNET_API void linnet_aligner_destroy(linnet_aligner *aligner);

/*
 * When each phoneme and word of a text was said in a sound, and how well: goodness of the result, of each linnet_word and
 * linnet_phone, and linnet_phone.said. Memory grows with the sound. A text that fits badly is
 * aligned: linnet_result_info.fit and warning say so.
 *   text  UTF-8 with a NUL at its end
 * Numbers, signs and abbreviations are read in all usual ways of the language, and the one that fits the sound is used
 * ($LINNET_NUMBERS names other rules; without any they are refused).
 * LINNET_INVALID: no words, or signs that are none; LINNET_MISMATCH: the text cannot be that of the sound, it is longer.
 */
LINNET_API linnet_status linnet_align(linnet_aligner *aligner, const linnet_sound *sound, const char *text,
                                      linnet_result **result, linnet_error *err);

#ifdef __cplusplus
}
#endif

#endif
