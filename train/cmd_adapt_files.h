/* cmd_adapt_files.h - the files that linnet adapt makes for the commands it runs: data directories, texts, words. */
#ifndef LIN_TRAIN_CMD_ADAPT_FILES_H
#define LIN_TRAIN_CMD_ADAPT_FILES_H

#include "base/status.h"
#include "train/holdout.h"

typedef struct lin_adapt_data {
    lin_holdout holdout;
    long held_words;
    int left_out; /* utterances whose text cannot be read as words; why: the first of them */
    char why[512];
} lin_adapt_data;

/*
 * Divides a data directory into folder/train and folder/heldout, Kaldi-style, with whole paths of sounds and texts as words in
 * small letters; and writes the texts of heldout to folder/heldout.txt and folder/heldout.trn. LIN_INVALID if too few utterances
 * have a text.
 */
lin_status lin_adapt_write_data(const char *path, const char *audio_root, const lin_holdout_options *options, const char *folder,
                                lin_adapt_data *data, lin_error *err);

/* LIN_INVALID if a data directory has an utterance of the same name as one in folder/heldout: it is probably the same. */
lin_status lin_adapt_check_kept(const char *path, const char *folder, lin_error *err);

/* A text, one sentence a line, as words in small letters, for linnet ngram count; lines that cannot be read so are left out and
 * counted. LIN_FORMAT if none is left. */
lin_status lin_adapt_write_text(const char *path, const char *to, long *left_out, lin_error *err);

/* The words that extend the lexicon: the lines of the files `lists` [n_lists] (NULL among them: none), then the words of
 * `unknown`, a list of linnet phonemize --oov (NULL: none), with their phones. n_unknown: those of the list. */
lin_status lin_adapt_write_words(const char *const *lists, int n_lists, const char *unknown, const char *to, long *n_unknown,
                                 lin_error *err);

int lin_adapt_is_packed(const char *path); /* 1: it begins as a gzip file */

lin_status lin_adapt_copy(const char *from, const char *to, lin_error *err);

#endif
