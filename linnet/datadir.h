/*
 * datadir.h - lists of recordings: Kaldi-style data directories, plain lists, and manifests as other toolkits write them.
 *
 * A data directory holds text files with one utterance per line, its name first:
 *   wav.scp   utt1 audio/utt1.flac       path of the sound, relative to audio_root; or a command that writes it, "sox ... |"
 *   text      utt1 HOW ARE YOU           the transcript
 *   utt2spk   utt1 alice                 optional; without it every utterance has its own speaker
 *   segments  utt1 call7 3.20 5.75       optional; then wav.scp is of recordings, and these are parts of them, in seconds; an
 *                                        end of -1 is that of the recording; a fifth word is the channel, counted from 0
 *   reco2file_and_channel  call7 sw7 A   optional; the channel of a recording (or, without segments, utterance): A, B, or 1, 2
 * A plain list has lines PATH or PATH<TAB>TRANSCRIPT; an utterance's name is its path without the extension.
 * A list that begins with '{' has JSON lines, and one whose first line names columns "path" and "sentence" is a table:
 *   {"audio_filepath": "a.wav", "text": "how are you", "duration": 2.5}        NeMo; the scripts around Whisper
 *   {"audio_filepath": "call.wav", "offset": 3.2, "duration": 2.5, ...}        a part of a recording
 *   {"audio": {"path": "a.wav"}, "sentence": "how are you"}                    data sets of Hugging Face
 *   {"type": "MonoCut", "id": ..., "recording": {...}, "supervisions": [...]}  Lhotse's cuts: an utterance for each supervision
 *   client_id<TAB>path<TAB>sentence ...                                        Common Voice: a table whose first line names the
 *                                                                              columns
 *
 * Keys of an object, the first that is there: the sound audio_filepath, audio_path, audio_file, file_name, path, wav, audio; the
 * text text, sentence, transcription, transcript; the name id, utt_id, key, else the path as in a plain list, with the offset in
 * milliseconds; the speaker speaker, speaker_id, client_id. Other keys are kept in lin_utterance.record and mean nothing here.
 *
 *   lin_datadir_options options = {.need_text = 1};
 *   lin_datadir_load("corpus/train", &options, &dir, &err);
 *   for (int i = 0; i < lin_datadir_count(dir); i++) { const lin_utterance *u = lin_datadir_at(dir, i); ... }
 *   lin_datadir_destroy(dir);
 *
 * The order is that of segments, else of wav.scp, or of the list. Errors name file and line: a repeated name, an utterance
 * without sound or (if required) without transcript, control characters, NUL bytes, text that is not UTF-8, lines over 65,536
 * bytes; what is not JSON, an invalid time, a cut of several recordings or without one. A command is an error unless the
 * options allow them.
 */
#ifndef LIN_LINNET_DATADIR_H
#define LIN_LINNET_DATADIR_H

#include <stddef.h>

#include "base/status.h"
#include "linnet/recognizer.h"

typedef struct lin_utterance {
    const char *id;      /* no white space, at most 255 bytes */
    const char *speaker; /* the same */
    lin_cut cut;       /* its sound */
    const char *text;    /* words separated by single spaces; NULL if there is no transcript */
    const char *record;  /* its line in a manifest, a JSON object; NULL if it comes from elsewhere or shares the line */
    int line;            /* in segments, wav.scp or in the list, from 1 */
} lin_utterance;

typedef struct lin_datadir lin_datadir;

typedef struct lin_datadir_options {
    const char *audio_root; /* the folder that relative paths start from; NULL: the directory's parent (Kaldi-style corpora name
                               audio files that way), or the folder of the list */
    int need_text;          /* a missing transcript is an error; else the file text may be missing */
    int allow_commands;     /* sound may come from commands */
} lin_datadir_options;

/* path: a directory that contains wav.scp, or a list. Audio files are not opened. */
lin_status lin_datadir_load(const char *path, const lin_datadir_options *options, lin_datadir **dir, lin_error *err);

/* A file's contents in memory; bytes NULL: there is no such file. name replaces the path in messages. */
typedef struct lin_datadir_file {
    const char *name;
    const char *bytes;
    size_t n_bytes;
} lin_datadir_file;

/* The files of a directory, each by its number. */
enum { LIN_DATADIR_WAV, LIN_DATADIR_TEXT, LIN_DATADIR_SPEAKERS, LIN_DATADIR_SEGMENTS, LIN_DATADIR_CHANNELS, LIN_DATADIR_FILES };
extern const char *const lin_datadir_names[LIN_DATADIR_FILES]; /* "wav.scp", ... */

lin_status lin_datadir_parse(const lin_datadir_file files[LIN_DATADIR_FILES], const lin_datadir_options *options,
                             lin_datadir **dir, lin_error *err);
lin_status lin_datadir_parse_list(const lin_datadir_file *list, const lin_datadir_options *options, lin_datadir **dir,
                                  lin_error *err);
void lin_datadir_destroy(lin_datadir *dir);

int lin_datadir_count(const lin_datadir *dir);
const lin_utterance *lin_datadir_at(const lin_datadir *dir, int i);
/* Whether any utterance is a part of its sound. */
int lin_datadir_has_parts(const lin_datadir *dir);

#endif
