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
 *   linnet_decoder   turns a model's output into phonemes or words (language model, lexicon): immutable, one for all threads
 *   linnet_session   one stream of live sound: results while the sound comes
 *   linnet_engine    many streams on all cores, or on a GPU
 *   linnet_aligner   finds when each phoneme and word of a known text was said, and how well
 *   linnet_result    what was recognised
 *
 * Conventions, for all functions that do not say otherwise
 *   Errors    A function that can fail returns a linnet_status, 0 (LINNET_OK) on success, and fills *err with one sentence;
 *             err may be NULL. A message may name an option of the program: --add-lexicon is the field add_lexicon. After a
 *             failed create or load call the object is NULL. The library never prints and never exits; warnings go to
 *             linnet_model_options.warning. Any call can return LINNET_NO_MEMORY.
 *   NULL      For a NULL object, functions with a status return LINNET_INVALID; linnet_session_next and linnet_engine_next
 *             return NULL. Functions that describe an object need an object. Pointers for results must not be NULL.
 *   Owners    The caller destroys the objects of create, load, decode, align and fork functions. Destroy functions accept
 *             NULL. Objects may be destroyed in any order: a decoder, session, engine, aligner or result keeps the model and
 *             decoder that it needs. The library copies text and paths that are passed in.
 *   Threads   Models, decoders and aligners may be used by any number of threads at once. Sessions and results belong to one
 *             thread at a time. Engine functions may be called from any thread.
 *   fork      If no other thread was in a call, a forked process may use its copies of all objects but engines. For an engine
 *             every call returns LINNET_INVALID, linnet_engine_next returns NULL, and linnet_engine_destroy frees no memory.
 *             Objects on a GPU belong to the process that created them.
 *   Options   Fill a struct that begins with `size` by its _init function, which takes sizeof the struct; then change fields.
 *             NULL options, where allowed, mean the defaults. Structs grow at their end in later versions: programs compiled
 *             with this header run with later libraries of an equal LINNET_ABI.
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
/* The version of the shared library's interface, liblinnet.so.1. It rises when programs must be compiled again. */
#define LINNET_ABI 1

#if defined(__GNUC__)
#define LINNET_API __attribute__((visibility("default")))
#else
#define LINNET_API
#endif

/* Version of the running library, "0.3.0"; LINNET_VERSION is the header's. */
LINNET_API const char *linnet_version(void);

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

typedef enum linnet_status {
    LINNET_OK = 0,
    LINNET_INVALID = 1,     /* an argument or option is out of range */
    LINNET_TOO_SMALL = 2,   /* a queue, or the number of streams of an engine, is full */
    LINNET_NO_MEMORY = 3,
    LINNET_IO = 4,          /* the system refused: open, read, write */
    LINNET_FORMAT = 5,      /* a file or block of bytes is damaged or of another format */
    LINNET_MISMATCH = 6,    /* two valid objects do not fit each other: the saved state of another model */
    LINNET_UNSUPPORTED = 7, /* valid, but not in this build, on this machine, or with this model */
    LINNET_NUMERIC = 8,     /* NaN or infinity where a number was needed */
    LINNET_STOPPED = 9      /* a callback asked to stop */
} linnet_status;

typedef struct linnet_error {
    linnet_status status;
    char message[1024]; /* one sentence: what, where, what to do; no line end. Undefined after success */
} linnet_error;

/* Short English name: "ok", "invalid", "io", ... Never NULL. */
LINNET_API const char *linnet_status_name(linnet_status status);

/* Releases text and arrays of functions that say so. NULL is allowed. */
LINNET_API void linnet_free(void *block);

/*
 * Sets a folder that is searched first for the library's files, with one folder for each language code: en/default.safetensors
 * (the model), en/words.dict.gz, en/words.lm, and others (docs/languages.md). It is for programs and packages that bring their
 * own files. It holds for the whole process; NULL unsets it. Call it before all other functions, while no other thread uses
 * the library.
 * LINNET_INVALID: the path is too long.
 */
LINNET_API linnet_status linnet_set_data_folder(const char *folder, linnet_error *err);

/*
 * Sets the language, for the whole process: "en", the code of an installed language, or a folder with the files of one. Its
 * files, the model too, are used wherever no other file is named. NULL, the default: the English model, and each model's
 * language for the other files. Call it when linnet_set_data_folder may be called.
 * LINNET_INVALID: there is no such language.
 */
LINNET_API linnet_status linnet_set_language(const char *language, linnet_error *err);

/* ---- models ---------------------------------------------------------------------------------------------------------------- */

typedef struct linnet_model linnet_model;

typedef enum linnet_precision {
    LINNET_FP32 = 0,
    LINNET_TF32 = 1, /* matrix products of a GPU in tf32; a CPU computes in fp32 */
    LINNET_BF16 = 2,
    LINNET_INT8 = 3, /* products of eight bits, equal on every CPU; device "auto" is the CPU then */
    LINNET_AUTO = 4  /* LINNET_INT8 on a CPU for a model that is stored in eight bits (linnet quantise), else LINNET_FP32 */
} linnet_precision;

typedef struct linnet_model_options {
    size_t size;
    const char *device;         /* "auto" (a GPU if it can be used), "cpu" (default), "cuda", "cuda:1" */
    linnet_precision precision; /* default LINNET_AUTO */
    /* Called with a warning, such as a lexicon line that was left out or, where there is no result to say so, a file that
     * breaks off: one sentence without a line end, valid during the call. Any thread that uses the model may call it. NULL
     * (default): warnings are discarded. */
    void (*warning)(void *context, const char *text);
    void *warning_context;
    /* 1 (default): take the echo of a room out of the sound, where there is one (Nakatani et al. 2010). 0: do not, which saves a
     * session or a stream of an engine 131 KB. A saved state is loaded by a model of the same choice. */
    int dereverb;
} linnet_model_options;

LINNET_API void linnet_model_options_init(linnet_model_options *options, size_t size);

/*
 * Loads a model file. path may be the name of an installed model: "default" (streams), "small" (streams, half the parameters) or
 * "offline" (whole utterances only, more accurate). NULL: $LINNET_MODEL, else "default".
 * LINNET_IO: there is no such file; LINNET_FORMAT: it is no model or is damaged; LINNET_UNSUPPORTED: the device cannot be used.
 */
LINNET_API linnet_status linnet_model_load(const char *path, const linnet_model_options *options, linnet_model **model,
                                           linnet_error *err);

/* Loads a model from n bytes in memory, which may be freed afterwards. */
LINNET_API linnet_status linnet_model_load_memory(const void *bytes, size_t n, const linnet_model_options *options,
                                                  linnet_model **model, linnet_error *err);

LINNET_API void linnet_model_destroy(linnet_model *model);

typedef struct linnet_model_info {
    const char *name, *license; /* "" if the file has none */
    const char *provenance;     /* JSON text: how the model was trained; "" if the file has none */
    int sample_hz;              /* sound is resampled to this rate */
    int n_features;             /* D: log-mel bins of a frame */
    double frame_s;             /* seconds from one feature frame to the next: 0.01 */
    double row_s;               /* seconds from one row of outputs to the next: 0.03 */
    double delay_s;             /* from the end of a phoneme to its last row, by the construction of the model */
    int n_labels;               /* V: outputs, the CTC blank with index 0 among them */
    const char *const *phones;  /* [V] names by label: "<blank>", "AA", ... */
    const char *const *ipa;     /* [V] symbols in the International Phonetic Alphabet; the name if unknown */
    int streams;                /* 1: can run while sound comes (sessions, engines); 0: whole utterances only */
    uint64_t fingerprint;       /* hash of all that changes results; saved states carry it */
    const char *language;       /* a code, "en"; "" if the file has none: then name lexicon and language model yourself */
} linnet_model_info;

/* Belongs to the model. */
LINNET_API const linnet_model_info *linnet_model_describe(const linnet_model *model);

/* ---- decoders -------------------------------------------------------------------------------------------------------------- */

typedef struct linnet_decoder linnet_decoder;

/* One or more words that are likely, or unlikely, in this sound. */
typedef struct linnet_phrase {
    const char *text;
    double bonus; /* natural logarithm: 4 is usual, below 0 makes the phrase unlikely */
} linnet_phrase;

/* NAN, and a beam of 0, mean the default of the search: greedy, phonemes with a beam, or words. Fields that the search has no
 * use for, such as a lexicon where words is 0, are ignored. */
typedef struct linnet_decoder_options {
    size_t size;
    int words;           /* 1: words by a lexicon and a language model; 0 (default): phonemes */
    int beam;            /* number of hypotheses. 0 (default): 512 for words, 1024 for words of whole utterances (a model that
                            cannot stream, second_pass); 16 for phonemes with a language model, phrases or n_best; else greedy
                            decoding, the best label of each row, which is fastest */
    int n_best;          /* alternatives in final results: 1 (default) to 256, for phonemes to 1024 */
    const char *lexicon; /* pronunciations in CMUdict's format, plain or gzip. NULL: $LINNET_LEXICON, else the installed one */
    const char *lm;      /* language model of words or, where words is 0, of phonemes: ARPA, plain or gzip, or packed by `linnet
                            ngram`; a path, or the name of an installed one such as "phones.lm". NULL: with words $LINNET_LM, else
                            the installed one; without words none */
    int no_lm;           /* 1: words without a language model */
    int all_words;       /* 1: also words of the lexicon that the language model lacks */
    int no_unknown;      /* 1: only words of the lexicon; 0 (default): other speech becomes words made of phonemes */
    double unknown;      /* penalty of a word outside the lexicon: natural logarithm, at most 0; NAN (default): -6 */
    double lm_weight;    /* weight of the language model; NAN (default): 0.85 for words, 0.7 for phonemes */
    double bonus;        /* added for every word or phoneme, natural logarithm; NAN (default): -1 for words, 2 with an lm of
                            phonemes, else 0 */
    double beam_score;   /* hypotheses worse than the best by more than this are dropped; NAN (default): 12, words 13, or 14 for
                            words of whole utterances */
    const linnet_phrase *phrases; /* [n_phrases], for all sessions that set no phrases themselves */
    int n_phrases;
    double blank_penalty; /* words only: taken from the natural logarithm of each row's blank; NAN (default): 1.5 */
    double settle; /* words only: a hypothesis that is worse than the best by more than this, natural logarithm, does not keep
                      words unsettled. The limit falls to 0 within 3 s after a word. NAN (default): 7; 0: no limit */
    const char *add_lexicon; /* a lexicon file whose words extend the lexicon; a word alone in its line is pronounced by rules.
                                They can be found though the language model lacks them. NULL (default): none */
    double show; /* words only: provisional words, from the first one of less confidence on, are shown by their phonemes as one
                    incomplete word. NAN (default): 0.45; 0: none */
    const char *rescore; /* a network of tokens (`linnet lm`), of words or of phonemes, that scores the best hypotheses of an
                            utterance again when it ends. Results settle only then. NULL (default): none */
    int rescore_n;         /* number of these hypotheses, 2 to 256; 20 (default) */
    double rescore_weight; /* share of the network in the language model's score, 0 (none) to 1; 0.5 (default) */
    const char *g2p; /* letter-to-sound rules (`linnet g2p`) for words of add_lexicon and phrases without a pronunciation. NULL
                        (default): $LINNET_G2P, else the rules of the language */
    linnet_model *combine; /* a second model whose sound also scores the best hypotheses (rescore_n) of each whole utterance (of
                              a model that cannot stream, or second_pass); the decoder keeps it. Decoding returns LINNET_MISMATCH
                              unless both models have equal features (the hop may differ), phones and frames per step.
                              NULL (default): none */
    double combine_weight; /* weight of that model in the score of the sound, 0 (none) to 1; 0.5 (default) */
    int best; /* 1: fewest errors, for 1.3 to 2.4 times the time, by the installed models: rescore "words" (if words is 1),
                 combine "default", and second_pass "offline" of sessions and engines. Values that you set stay. For whole sounds
                 load the model "offline". LINNET_IO: one of the models is missing. 0 (default): not */
    const char *const *keywords; /* [n_keywords] "hey linnet", or "hey linnet=0.3" with the least confidence: found in all speech,
                                    whatever else is decoded (linnet_result_keyword) */
    int n_keywords;              /* 0 (default) to 10000 */
    const char *grammar; /* the sentences that can be said, and no others: a file (docs/commands.md), or, if it has a line feed,
                            such a text. Implies words; takes no phrases, lm, rescore, combine or best. NULL (default): none */
    double grammar_confidence; /* a sentence of less is none, 0 to 1; NAN (default): 0.25 */
    int speakers; /* who speaks is told apart (docs/speakers.md): 1 to 10 speakers, of whole sounds exactly so many, of sessions
                     and engines at most; -1: their number is not known; 0 (default): nobody is told apart. In sessions and
                     engines phones get their speakers when the utterance ends. The phones of alternatives have none.
                     LINNET_IO: the file of voices is not installed */
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
    float confidence;  /* 0..1: geometric mean of the network's probabilities of this phone */
    double start_s, end_s;
    int stress;        /* 0, 1 or 2 as in CMUdict; -1: unknown */
    float goodness;    /* aligned results: goodness of pronunciation, natural logarithm, at most 0; below -3 another phoneme
                          was probably said. NAN in other results */
    const char *said;  /* aligned results: the phoneme that was said instead, "" if none was said; NULL: this phoneme, or not
                          measured */
    int speaker;       /* as linnet_word.speaker */
} linnet_phone;

typedef struct linnet_word {
    const char *text; /* the word; outside the lexicon its phonemes in small letters, "[hh_ah_l_ow]" */
    int known;        /* 1: the word is in the lexicon, or in a given phrase or text */
    int first_phone, n_phones; /* its phonemes are number first_phone to first_phone + n_phones - 1 of the result */
    float confidence; /* 0..1 */
    double start_s, end_s;
    float goodness;   /* aligned results: ln of the mean of exp(goodness) of its phonemes. 0: all were said; -0.7: half of them.
                         NAN in other results */
    int speaker;      /* 1, 2, ...; 0: not known (linnet_decoder_options.speakers) */
} linnet_word;

typedef struct linnet_result_info {
    double seconds;      /* of sound */
    double score;        /* total of the search, natural logarithm; 0 if the search has no scores, as the next two */
    double acoustic;     /* the sound's part of the score */
    double language;     /* the language model's part of the score, before its weight */
    int has_words;       /* 1: the decoder was one of words, even if it found none */
    int channels;        /* of the sound of linnet_decode; 0 in other results */
    int incomplete;      /* 1: the file breaks off or is damaged */
    const char *warning; /* a sentence about what is wrong with the file, or "" */
    double fit;          /* aligned results: how well the text fits, mean logarithm per phoneme against the best labels; below -4
                            it is probably another text. NAN in other results */
    double goodness;     /* aligned results: goodness of all phonemes together, as linnet_word.goodness. NAN in other results */
} linnet_result_info;

/* A keyword that was found. In a session, the settled result has it within a row of its end. */
typedef struct linnet_keyword {
    const char *text; /* as given in the options */
    float confidence; /* 0..1: by its phonemes, against the most probable ones */
    double start_s, end_s;
} linnet_keyword;

/* Numbers of phonemes, words, keywords, alternatives. The best alternative is the first; it equals the result. */
LINNET_API int linnet_result_phones(const linnet_result *result);
LINNET_API int linnet_result_words(const linnet_result *result);
LINNET_API int linnet_result_keywords(const linnet_result *result);
LINNET_API int linnet_result_alternatives(const linnet_result *result);

/* Phoneme, word or alternative number i, from 0; NULL out of range. It belongs to the result. */
LINNET_API const linnet_phone *linnet_result_phone(const linnet_result *result, int i);
LINNET_API const linnet_word *linnet_result_word(const linnet_result *result, int i);
LINNET_API const linnet_keyword *linnet_result_keyword(const linnet_result *result, int i);
LINNET_API linnet_result *linnet_result_alternative(const linnet_result *result, int i);
LINNET_API const linnet_result_info *linnet_result_describe(const linnet_result *result);

/*
 * The voice of speaker 1, 2, ... of a result as *n numbers, a vector of length 1; NULL if there is no such speaker. It belongs to
 * the result. Two vectors are of one voice rather than of two if their product is high. They are no proof of who somebody is: see
 * docs/speakers.md for what they must not be used for.
 */
LINNET_API const float *linnet_result_voice(const linnet_result *result, int speaker, int *n);

/* The words of a decoder of words, else the phonemes, separated by spaces. Belongs to the result. "" if memory is exhausted. */
LINNET_API const char *linnet_result_text(linnet_result *result);

/* Words as readable text: numbers as digits, capitals, full stops, commas and question marks, by words and pauses; words
 * outside the lexicon spelled by their sound, or "[...]". For phonemes, and without the installed file words.punctuation, it
 * equals linnet_result_text. Belongs to the result. "" if memory is exhausted. */
LINNET_API const char *linnet_result_readable(linnet_result *result);

/* A copy that stays valid when the session or engine that gave the result is used again. */
LINNET_API linnet_status linnet_result_copy(const linnet_result *result, linnet_result **copy, linnet_error *err);
LINNET_API void linnet_result_destroy(linnet_result *result);

typedef struct linnet_format_options {
    size_t size;
    const char *id;      /* id of the utterance, default "sound"; several formats need one */
    const char *speaker; /* default "": unknown */
    int channel;         /* from 1 (default), for formats that name it */
    int with_id;         /* text: the id first */
    int times;           /* text: a line for each phoneme or word with its times */
    int ipa;             /* 1: phonemes in IPA */
    int stress;          /* 1: with stress where it is known: AH0 */
    int word_times;      /* vtt: the time of every word */
    int phones, words;   /* both 0 (default): words if there are any, else phonemes; 1: this unit, or both */
    int readable;        /* 1: words as linnet_result_readable in srt, vtt and text without id and times; a field in json */
} linnet_format_options;

LINNET_API void linnet_format_options_init(linnet_format_options *options, size_t size);

/*
 * A result as one whole file of a format: "text", "json", "ctm", "trn", "srt", "vtt", "textgrid", "csv", "audacity",
 * "nemo", "rttm".
 *   text  UTF-8 with a NUL behind its *length bytes; release it with linnet_free. length may be NULL
 * LINNET_INVALID: no such format, or a result that it cannot hold (words of a decoder of phonemes).
 */
LINNET_API linnet_status linnet_result_format(const linnet_result *result, const char *format,
                                              const linnet_format_options *options, char **text, size_t *length,
                                              linnet_error *err);

/* Names of the formats: index 0, 1, ...; NULL behind the last. */
LINNET_API const char *linnet_format_name(int index);

/* ---- whole sounds ---------------------------------------------------------------------------------------------------------- */

enum { LINNET_MIX = -1 }; /* the mean of all channels */

/* A complete sound: a file, or samples in memory. */
typedef struct linnet_sound {
    size_t size;
    const char *path;     /* a file: WAV, FLAC, Ogg, Opus, MP3, SPHERE and more, with ffmpeg installed all of its formats; "-":
                             standard input */
    const float *samples; /* path NULL: [n_samples, channels], not copied */
    size_t n_samples;
    int rate_hz, channels; /* of samples; default 16000, 1 */
    int channel;           /* LINNET_MIX (default), or 0, 1, ...: one channel */
    double start_s, end_s; /* only this part: default 0 and INFINITY. Times in results stay those of the whole sound; a model's
                              running level begins with the part */
    int threads;           /* threads for this sound: default 1; 0: one per core */
    /* Called now and then with the seconds processed and the duration (-1: unknown). If it returns other than 0, the call ends
     * with LINNET_STOPPED. NULL (default): no calls. */
    int (*progress)(void *context, double seconds, double duration);
    void *context;
    int search;            /* linnet_posteriors only. 1: rows for a decoder with words or a language model, if the network has
                              an output for them; default 0: rows for phonemes alone */
} linnet_sound;

LINNET_API void linnet_sound_init(linnet_sound *sound, size_t size);

/*
 * Recognises a whole sound. decoder NULL: phonemes, greedy. A model that streams needs constant memory. As in `linnet
 * transcribe`, from the first endpoint after a minute on the search begins anew at endpoints, and so does the network of a
 * model without decays.
 * LINNET_IO, LINNET_FORMAT, LINNET_UNSUPPORTED: the file cannot be read; LINNET_NUMERIC: a sample is NaN or infinite.
 */
LINNET_API linnet_status linnet_decode(linnet_model *model, const linnet_sound *sound, linnet_decoder *decoder,
                                       linnet_result **result, linnet_error *err);

/* Recognises a whole file with the defaults of linnet_sound. */
LINNET_API linnet_status linnet_decode_file(linnet_model *model, const char *path, linnet_decoder *decoder,
                                            linnet_result **result, linnet_error *err);

/*
 * The network's input and output as arrays.
 *   features    [n, D] log-mel energies (natural logarithm), not normalised, a frame every frame_s
 *   posteriors  [n, V] natural-log probabilities, blank first, a row every row_s
 * Release *rows with linnet_free; *n may be 0. Nothing is reset at endpoints. Row i is at time i * row_s; times in results are
 * earlier by the model's emission delay.
 */
LINNET_API linnet_status linnet_features(linnet_model *model, const linnet_sound *sound, float **rows, size_t *n,
                                         linnet_error *err);
LINNET_API linnet_status linnet_posteriors(linnet_model *model, const linnet_sound *sound, float **rows, size_t *n,
                                           linnet_error *err);

/* Decodes rows [n, V] of natural-log probabilities, of this or another network with the model's labels. LINNET_NUMERIC names
 * the first row that is none. */
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
    double silence_before_s;      /* ends an utterance after this much silence without speech: default 5; 0: never */
    double silence_after_s;       /* ends an utterance after this much silence behind speech: default 0.8; 0: never */
    double longest_s;             /* longest utterance: default 30; 0: no limit */
    int reset_at_endpoints;       /* 1: the network is reset at each endpoint; 0: never; -1 (default): 0 for a model with decays,
                                     else 1 */
    int can_save;                 /* 1: linnet_session_save and _fork will be called. Creation takes up to a second if rate_hz is
                                     not the model's */
    linnet_model *second_pass;    /* decodes each finished utterance again, such as the model "offline", which makes fewer
                                     errors; the session keeps it. Its result is the final form, which may differ from settled
                                     text. LINNET_MISMATCH unless both models have equal features (the hop may differ), level,
                                     phones and frames per step. NULL (default): none */
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

/* linnet_session_push with 16-bit samples. */
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
    int number;                 /* 1, 2, ... in the session. One that ends without a phoneme has no final form: what was shown of
                                   it is followed by an empty form, and the next utterance has its number */
    linnet_end end;             /* not LINNET_GROWS: this is the final form */
    linnet_result *settled;     /* the part that never changes; it grows until the utterance ends. With second_pass the final
                                   form has the second model's result instead */
    linnet_result *provisional; /* the best hypothesis for the rest, which may change (see linnet_decoder_options.show); empty in
                                   the final form */
    int incomplete;             /* 1: only the first phonemes of the last provisional word are known */
    double start_s, end_s;      /* times of the first and last phoneme, provisional phonemes included */
    double processed_s;         /* sound up to this time has been decoded */
} linnet_utterance;

/*
 * The changes since the last call: utterances that ended, one per call and in order, then the current one. NULL: nothing more
 * has changed. Utterances wait until you ask for them. For final results only, skip utterances whose end is LINNET_GROWS.
 * Belongs to the session; valid until the session is used again.
 */
LINNET_API const linnet_utterance *linnet_session_next(linnet_session *session);

/* Ends the current utterance, as a push-to-talk button does. */
LINNET_API linnet_status linnet_session_end_utterance(linnet_session *session, linnet_error *err);

/* Ends the sound: the rest is decoded and the last utterance ends. Call linnet_session_next, reset or destroy next. */
LINNET_API linnet_status linnet_session_finish(linnet_session *session, linnet_error *err);

/* Begins a new sound: the session is as newly created, without the cost. Waiting results are dropped. */
LINNET_API linnet_status linnet_session_reset(linnet_session *session, linnet_error *err);

/*
 * Replaces the decoder's phrases by phrases [n], for this session and its later sound; settled results stay. n = 0: none. It
 * reads the lexicon, so do not call it for every piece of sound. LINNET_UNSUPPORTED: a greedy decoder, which does not use phrases
 * (give the decoder a beam), or n_best over 1. On failure the old phrases stay.
 */
LINNET_API linnet_status linnet_session_set_phrases(linnet_session *session, const linnet_phrase *phrases, int n,
                                                    linnet_error *err);

/*
 * Saves a session as bytes, which linnet_session_load and `linnet transcribe --load-state` resume with equal results, here or on
 * another machine. They contain no results: after loading, utterances count from 1, and the first one begins with what settles
 * from then on. Of an utterance that was in progress only that gets speakers, and only its voices are learnt (docs/speakers.md).
 *   bytes  release with linnet_free
 * LINNET_INVALID: without can_save, or after linnet_session_finish; LINNET_UNSUPPORTED: with n_best over 1, or the resampler
 * has no exact state for these two rates.
 */
LINNET_API linnet_status linnet_session_save(linnet_session *session, void **bytes, size_t *n, linnet_error *err);

/* Loads saved bytes into a session with the model and options of the saved one. The session drops its sound and results, and
 * keeps its phrases. LINNET_MISMATCH: another model or other options; LINNET_FORMAT: damaged bytes. On failure the session is
 * as newly created. */
LINNET_API linnet_status linnet_session_load(linnet_session *session, const void *bytes, size_t n, linnet_error *err);

/* A second session that continues from the current point, with the current utterance. It fails as linnet_session_save, but not
 * with n_best over 1. */
LINNET_API linnet_status linnet_session_fork(linnet_session *session, linnet_session **copy, linnet_error *err);

/* ---- engines: many streams at once ----------------------------------------------------------------------------------------- */

/*
 * An engine runs many live streams on all cores, or on a GPU: all streams that have sound move through the network together.
 * Each stream gives the results of a session with these options. All functions may be called from any thread.
 */
typedef struct linnet_engine linnet_engine;
typedef uint64_t linnet_stream; /* one stream of an engine, from open to close; never 0, never used twice */

typedef enum linnet_event_kind {
    LINNET_UTTERANCE = 1, /* `utterance` has changed or ended */
    LINNET_LOST = 2,      /* at time_s, `lost` frames of sound did not fit the queue; later times do not count them */
    LINNET_ENDED = 3,     /* all sound before linnet_engine_finish is processed, time_s of it. The stream's last event */
    LINNET_FAILED = 4     /* `status` says why; no more events before linnet_engine_reset */
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
    int streams;             /* largest number of streams, default 64; their memory is taken at creation */
    int threads;             /* default 0: one per core */
    linnet_decoder *decoder; /* as in linnet_session_options, as the next five */
    int endpoints;
    double silence_before_s, silence_after_s, longest_s;
    int reset_at_endpoints;
    int growing;             /* 1: events also for growing utterances; 0 (default): only for finished ones */
    double queue_s;          /* default 1: seconds of sound that may wait in each stream, 0.5 to 60 */
    /* Called with the events of a stream, in order, on a thread of the engine. It must return soon, and may call every function
     * of the engine but linnet_engine_destroy. The event and its utterance are valid during the call. NULL (default): use
     * linnet_engine_next. */
    void (*event)(void *context, const linnet_event *event);
    void *context;
    int exact;               /* on a GPU: 1: matrix products in the model's precision; 0 (default): tf32 for an fp32 model */
    linnet_model *second_pass; /* as in linnet_session_options; other streams of this thread wait while it runs */
} linnet_engine_options;

LINNET_API void linnet_engine_options_init(linnet_engine_options *options, size_t size);

/* LINNET_UNSUPPORTED for a model that needs whole utterances. */
LINNET_API linnet_status linnet_engine_create(linnet_model *model, const linnet_engine_options *options, linnet_engine **engine,
                                              linnet_error *err);

/* Waits for the threads of the engine; no other call may be in progress. */
LINNET_API void linnet_engine_destroy(linnet_engine *engine);

/* Opens a stream of sound at rate_hz with `channels` channels, which are mixed. LINNET_TOO_SMALL: all streams are open. */
LINNET_API linnet_status linnet_engine_open(linnet_engine *engine, int rate_hz, int channels, void *user, linnet_stream *stream,
                                            linnet_error *err);

/* Copies n frames of sound into the stream's queue; does not wait for the network. LINNET_TOO_SMALL: they do not fit the queue,
 * none is taken, and they count as lost. LINNET_NUMERIC, LINNET_INVALID: as linnet_session_push, and LINNET_INVALID if the
 * stream is not open. */
LINNET_API linnet_status linnet_engine_push(linnet_engine *engine, linnet_stream stream, const float *samples, size_t n,
                                            linnet_error *err);

/* Number of frames of sound that fit the stream's queue now, for callers that can wait instead of losing sound.
 * LINNET_INVALID: as linnet_engine_push. */
LINNET_API linnet_status linnet_engine_room(linnet_engine *engine, linnet_stream stream, size_t *n, linnet_error *err);

/* Ends the stream's sound; the event LINNET_ENDED follows when all of it is processed. */
LINNET_API linnet_status linnet_engine_finish(linnet_engine *engine, linnet_stream stream, linnet_error *err);

/* Makes the stream as newly opened: waiting sound and events are dropped. */
LINNET_API linnet_status linnet_engine_reset(linnet_engine *engine, linnet_stream stream, linnet_error *err);

/* Closes the stream; no event follows. A stream that is not open is ignored. */
LINNET_API void linnet_engine_close(linnet_engine *engine, linnet_stream stream);

/*
 * The next event of any stream, if options.event is NULL. Waits at most wait_s seconds, then returns NULL. Valid until the next
 * call; one thread at a time. Events wait until you ask for them; of a growing utterance only the latest waits.
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

/* Measurements since creation. LINNET_INVALID: size is not set. */
LINNET_API linnet_status linnet_engine_measure(linnet_engine *engine, linnet_engine_stats *stats, linnet_error *err);

/* ---- alignment of a known text --------------------------------------------------------------------------------------------- */

typedef struct linnet_aligner linnet_aligner;

typedef struct linnet_aligner_options {
    size_t size;
    int phonemes;        /* 1: texts are phonemes, "HH AH L OW" or in IPA; 0 (default): words */
    const char *lexicon; /* as in linnet_decoder_options; other words are pronounced by rules, with a warning */
    int follow_sound;    /* 1 (default): phonemes end where the sound changes; 0: they end at the network's rows */
    double beam;         /* default 600: paths worse than the best by more than this, natural logarithm, are dropped */
    const char *add_lexicon; /* as in linnet_decoder_options */
    const char *g2p; /* as in linnet_decoder_options, for words outside the lexicon */
} linnet_aligner_options;

LINNET_API void linnet_aligner_options_init(linnet_aligner_options *options, size_t size);

/* Opens the lexicon. LINNET_IO: there is none. */
LINNET_API linnet_status linnet_aligner_create(linnet_model *model, const linnet_aligner_options *options,
                                               linnet_aligner **aligner, linnet_error *err);
LINNET_API void linnet_aligner_destroy(linnet_aligner *aligner);

/*
 * Finds when each phoneme and word of a text was said in a sound, and how well: goodness of the result, of each linnet_word and
 * linnet_phone, and linnet_phone.said. Memory grows with the sound. A text that fits badly is aligned too;
 * linnet_result_info.fit and warning say so.
 *   text  UTF-8 with a NUL at its end
 * Numbers, signs and abbreviations are read in all usual ways of the language, and the sound chooses. $LINNET_NUMBERS names
 * other rules; without rules they are refused.
 * LINNET_INVALID: no words; LINNET_FORMAT: signs that no rule reads; LINNET_MISMATCH: the text is too long for the sound.
 */
LINNET_API linnet_status linnet_align(linnet_aligner *aligner, const linnet_sound *sound, const char *text,
                                      linnet_result **result, linnet_error *err);

#ifdef __cplusplus
}
#endif

#endif
