/* lexicon_options.h - the option rows of commands that turn words into phones. */
#ifndef LIN_APP_LEXICON_OPTIONS_H
#define LIN_APP_LEXICON_OPTIONS_H

#include "app/options.h"

/* Of commands that read what is installed of a language; lin_run_command chooses it. */
#define LIN_LANGUAGE_ROW(owner, field)                                                                                           \
    {.name = "language", .type = LIN_OPTION_STRING, .at = offsetof(owner, field), .value = "CODE",                               \
     .help = "The language whose installed files are used where none is named: its code, such as en, or a folder with such "     \
             "files (docs/languages.md); if not given, the one of the model, else en"}

#define LIN_G2P_ROW(owner, field)                                                                                                \
    {.name = "g2p", .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "RULES",                                     \
     .help = "Letter-to-sound rules for words outside the lexicon, made by linnet g2p; if not given, $LINNET_G2P, else "         \
             "those of its language"}

/* Of commands that choose a set. */
#define LIN_PHONE_SET_ROW(owner, field)                                                                                          \
    {.name = "phones", .letter = 'p', .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "SET",                     \
     .help = "The phones: a file with a name on each line, optionally with its IPA or 'silence' or 'noise'; or a model, whose "  \
             "set is used; if not given, those of the lexicon, CMUdict's if it has these"}

/* Of commands that write words as phones. */
#define LIN_DICTIONARY_ROW(owner, field)                                                                                         \
    {.name = "lexicon", .letter = 'l', .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "DICT",                   \
     .help = "Pronunciation dictionary in CMUdict's format; if not given, $LINNET_LEXICON, else the one installed with the "     \
             "program"}

/* more: what else its help says, " ..." or "". */
#define LIN_ADD_LEXICON_ROW(owner, field, more)                                                                                  \
    {.name = "add-lexicon", .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "WORDS",                             \
     .help = "Words that extend the lexicon, in the same format; a word alone in its line gets the pronunciation that rules "    \
             "find" more}

#define LIN_NUMBERS_ROW(owner, field)                                                                                            \
    {.name = "numbers", .type = LIN_OPTION_STRING, .at = offsetof(owner, field), .value = "RULES",                               \
     .help = "How numbers, signs and abbreviations in texts are said: a file, a language (en, de, es), or none; if not given, "  \
             "$LINNET_NUMBERS, else those of the language"}

#endif
