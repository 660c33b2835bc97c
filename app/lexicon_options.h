/* lexicon_options.h - the option rows of commands that turn words into phones. */
#ifndef LIN_APP_LEXICON_OPTIONS_H
#define LIN_APP_LEXICON_OPTIONS_H

#include "app/options.h"

#define LIN_G2P_ROW(owner, field)                                                                                                \
    {.name = "g2p", .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "RULES",                                     \
     .help = "Letter-to-sound rules for words outside the lexicon, made by linnet g2p; if not given, $LINNET_G2P, else "         \
             "those of English for its phones"}

/* Of commands that choose a set. */
#define LIN_PHONE_SET_ROW(owner, field)                                                                                          \
    {.name = "phones", .letter = 'p', .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "SET",                     \
     .help = "The phones: a file with a name on each line, optionally with its IPA or 'silence' or 'noise'; or a model, whose "  \
             "set is used; if not given, those of the lexicon, CMUdict's if it has these"}

#endif
