/*
 * keyword_list.h - keywords as text, with the pronunciations of the lexicon or by rule.
 *
 * Pipeline: options, a file -> [this] -> decoder/keywords.
 * A keyword is one or several words: "hey linnet", or "hey linnet=0.3" with a threshold (decoder/keywords.h). A file has one in
 * each line; lines that begin with # are comments.
 */
#ifndef LIN_LINNET_KEYWORD_LIST_H
#define LIN_LINNET_KEYWORD_LIST_H

#include "decoder/keywords.h"
#include "linnet/decoding.h"

/* Those of values->keywords and values->keywords_file; NULL if there are none. Opens the lexicon that a search for words would
 * use. LIN_IO, LIN_FORMAT and LIN_INVALID name the file, the line and the keyword. */
lin_status lin_keywords_open(const lin_decoding_values *values, const lin_phones *phones, double row_seconds,
                             const lin_warnings *warnings, lin_keywords **keywords, lin_error *err);

#endif
