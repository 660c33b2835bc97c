/* datadir_internal.h - what datadir.c (Kaldi's files, lists) and manifest.c (JSON lines, tables) share. */
#ifndef LIN_LINNET_DATADIR_INTERNAL_H
#define LIN_LINNET_DATADIR_INTERNAL_H

#include "base/symbols.h"
#include "linnet/datadir.h"

enum { LIN_DATADIR_ID_MAX = 255 };

typedef struct lin_datadir_list {
    int count, room;
    lin_utterance *items;
    lin_symbols names; /* item i has name i */
} lin_datadir_list;

struct lin_datadir {
    lin_datadir_list utterances, recordings; /* recordings: that the utterances are parts of */
    int n_texts, room_texts;
    char **texts; /* the strings that the utterances point to */
};

/* Copies of n bytes that live as long as the list; words: with each run of white space replaced by a single space; path: behind
 * the root, if it is relative. NULL if memory is short. */
const char *lin_datadir_keep(lin_datadir *dir, const char *text, size_t n);
const char *lin_datadir_keep_words(lin_datadir *dir, const char *text, size_t n);
const char *lin_datadir_keep_path(lin_datadir *dir, const char *root, const char *path, size_t n);

/* An utterance whose name is that of its path, without the extension and without characters that CTM and TRN files do not allow;
 * from_ms: of a part, else -1. *of: the new utterance, valid until the next. */
lin_status lin_datadir_add_named(lin_datadir *dir, const char *file, int line, const char *path, size_t n, int64_t from_ms,
                                 lin_cut cut, lin_utterance **of, lin_error *err);
/* One with a name of n bytes. LIN_FORMAT if it is repeated, too long or has white space. */
lin_status lin_datadir_add(lin_datadir *dir, const char *file, int line, const char *id, size_t n, lin_cut cut,
                           lin_utterance **of, lin_error *err);

/* The last step: names become constant, speakers are completed. LIN_FORMAT for an empty list, a missing transcript. On failure
 * the list is destroyed. */
lin_status lin_datadir_finish(lin_datadir *dir, lin_status status, const char *file, int need_text, lin_datadir **out,
                              lin_error *err);

#endif
