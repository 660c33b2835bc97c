/*
 * terminal.h - a live display at the bottom of a terminal: rows that are drawn again and again, under lines that stay.
 *
 *   lin_terminal_open(1, &terminal, &err);
 *   lin_terminal_draw(terminal, &(lin_terminal_live){"[0:01.2]  ", "DH AH ", "K", "level, latency"});     // as often as it changes
 *   lin_terminal_keep(terminal, "[0:01.2 - 0:02.0]  ", "DH AH K AE T");                                   // a line that stays
 *   while ((key = lin_terminal_key(terminal)) >= 0) ...
 *   lin_terminal_close(terminal);
 *
 * Between two drawings the (hidden) cursor stands at the first character of what is live. So a terminal that is made narrower, and
 * folds the rows, or does not, takes the cursor along; from there everything to the end of the screen is erased and drawn anew.
 * Nothing above is ever touched: that is the terminal's own scrollback. The size is asked for at every drawing.
 * Typed keys are not echoed. Closing shows the cursor, ends the line and gives back the terminal's modes; lin_terminal_rescue does
 * that in a signal handler. Threads: one; one open terminal at a time.
 */
#ifndef LIN_APP_TERMINAL_H
#define LIN_APP_TERMINAL_H

#include "base/buffer.h"
#include "base/status.h"

typedef struct lin_terminal lin_terminal;

/* 1 if there can be a live display on this descriptor: a terminal, and not a dumb one. */
int lin_terminal_can(int fd);

lin_status lin_terminal_open(int fd, lin_terminal **terminal, lin_error *err);

/* Texts are UTF-8 and without control characters, words separated by blanks. */
typedef struct lin_terminal_live {
    const char *head;    /* stands before the first row; the others are indented by its width */
    const char *settled; /* words that will not change */
    const char *open;    /* words that may, drawn faintly */
    const char *status;  /* one row under it, cut where it is too long */
} lin_terminal_live;

/* How wide it is now. */
int lin_terminal_columns(const lin_terminal *terminal);

/* Where the rows are more than the screen's, the last are shown. Unchanged text is not drawn again. */
void lin_terminal_draw(lin_terminal *terminal, const lin_terminal_live *live);

/* Puts a text above the live display for good, wrapped as it is there. */
void lin_terminal_keep(lin_terminal *terminal, const char *head, const char *text);

/* A bar of `width` columns for a level in 0..1, appended to out; with colours where the terminal may have them. */
void lin_terminal_bar(const lin_terminal *terminal, double level, int width, lin_buffer *out);

/* The next key that was pressed, -1 if there is none. Only where the terminal is also standard input. */
int lin_terminal_key(lin_terminal *terminal);

/* For a program that is about to be stopped (Ctrl-Z) and when it goes on. */
void lin_terminal_suspend(lin_terminal *terminal);
void lin_terminal_resume(lin_terminal *terminal);

/* NULL is allowed. */
void lin_terminal_close(lin_terminal *terminal);

/* Leaves the terminal as it was before, from a signal handler of a program that is about to die. */
void lin_terminal_rescue(void);

/* Columns that a UTF-8 text takes: combining marks none, everything else one. */
int lin_text_columns(const char *text, size_t n);

#endif
