/*
 * options_value.h - inside options*.c: sets one value of a table from its text.
 */
#ifndef LIN_APP_OPTIONS_VALUE_H
#define LIN_APP_OPTIONS_VALUE_H

#include "app/options.h"

/* label: the option as the user wrote it, for messages. Does nothing if the value has a source of higher precedence. */
lin_status lin_option_set(lin_parsed *p, int row, const char *label, const char *text, int from, lin_error *err);

#endif
