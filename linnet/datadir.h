/*
 * datadir.h - lists of recordings: Kaldi-style data directories and plain lists.
 *
 * A data directory holds text files with one utterance per line, its name first:
 *   wav.scp   utt1 audio/utt1.flac       path of the sound, relative to audio_root; commands ("sox ... |") are refused
 *   text      utt1 HOW ARE YOU           the transcript
 *   utt2spk   utt1 alice                 optional; without it every utterance has its own speaker
 * A plain list has lines PATH or PATH<TAB>TRANSCRIPT; an utterance's name is its path without the extension.
 *
 *   lin_datadir_load("corpus/train", NULL, 1, &dir, &err);
 *   for (int i = 0; i < lin_datadir_count(dir); i++) { const lin_utterance *u = lin_datadir_at(dir, i); ... }
 *   lin_datadir_destroy(dir);
 *
 * The order is that of wav.scp or of the list. Errors name file and line: a repeated name, an utterance without sound or (if
 * required) without transcript, control characters, CR LF line ends, NUL bytes, text that is not UTF-8, lines over 65,536 bytes.
 */
#ifndef LIN_LINNET_DATADIR_H
#define LIN_LINNET_DATADIR_H

#include <stddef.h>

#include "base/status.h"

typedef struct lin_utterance {
    const char *id;      /* no white space, at most 255 bytes */
    const char *speaker; /* the same */
    const char *audio;   /* path to open */
    const char *text;    /* words separated by single spaces; NULL if there is no transcript */
    int line;            /* in wav.scp or in the list, from 1 */
} lin_utterance;

typedef struct lin_datadir lin_datadir;

/*
 * path: a directory that contains wav.scp, or a plain list. audio_root: the folder that relative paths start from; NULL: the
 * directory's parent (Kaldi-style corpora name audio files that way), or the folder of the list. need_text: a missing transcript
 * is an error; else the file text may be missing. Audio files are not opened.
 */
lin_status lin_datadir_load(const char *path, const char *audio_root, int need_text, lin_datadir **dir, lin_error *err);

/* A file's contents in memory; bytes NULL: there is no such file. name replaces the path in messages. */
typedef struct lin_datadir_file {
    const char *name;
    const char *bytes;
    size_t n_bytes;
} lin_datadir_file;

lin_status lin_datadir_parse(const lin_datadir_file *wav_scp, const lin_datadir_file *text, const lin_datadir_file *utt2spk,
                             const char *audio_root, int need_text, lin_datadir **dir, lin_error *err);
lin_status lin_datadir_parse_list(const lin_datadir_file *list, const char *audio_root, int need_text, lin_datadir **dir,
                                  lin_error *err);
void lin_datadir_destroy(lin_datadir *dir);

int lin_datadir_count(const lin_datadir *dir);
const lin_utterance *lin_datadir_at(const lin_datadir *dir, int i);

#endif
