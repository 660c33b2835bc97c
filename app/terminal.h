/*
 * terminal.h - a live display at the bottom of a terminal: rows that are redrawn, below lines that stay.
 *
 *   lin_terminal_open(1, &terminal, &err);
 *   lin_terminal_draw(terminal, &(lin_terminal_live){"[0:01.2]  ", "DH AH ", "K", "level, latency"});     // after every change
 *   lin_terminal_keep(terminal, "[0:01.2 - 0:02.0]  ", "DH AH K AE T");                                   // a line that stays
 *   while ((key = lin_terminal_key(terminal)) >= 0) ...
 *   lin_terminal_close(terminal);
 *
 * Between two drawings the (hidden) cursor is at the first character of the live rows. If the terminal is made narrower, the
 * cursor moves with that character, whether the terminal folds the rows or not; from there to the end of the screen everything is
 * redrawn. Rows above are never changed: they are the terminal's scrollback. The size is queried at every drawing.
 * Typed keys are not echoed. Closing shows the cursor, ends the line and restores the terminal's modes; lin_terminal_rescue does
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
    const char *head;    /* before the first row; the others are indented by its width */
    const char *settled; /* words that will not change */
    const char *open;    /* words that may, drawn faintly */
    const char *status;  /* one row below, cut if it is too long */
} lin_terminal_live;

/* The present width in columns. */
int lin_terminal_columns(const lin_terminal *terminal);

/* If there are more rows than the screen has, the last are shown. Unchanged text is not redrawn. */
void lin_terminal_draw(lin_terminal *terminal, const lin_terminal_live *live);

/* Writes a permanent text above the live display, wrapped in the same way. */
void lin_terminal_keep(lin_terminal *terminal, const char *head, const char *text);

/* A bar of `width` columns for a level in 0..1, appended to out; with colours if the terminal supports them. */
void lin_terminal_bar(const lin_terminal *terminal, double level, int width, lin_buffer *out);

/* The next key that was pressed, -1 if there is none. Only if the terminal is also standard input. */
int lin_terminal_key(lin_terminal *terminal);

/* Before the program is suspended (Ctrl-Z), and after it is resumed. */
void lin_terminal_suspend(lin_terminal *terminal);
void lin_terminal_resume(lin_terminal *terminal);

/* NULL is allowed. */
void lin_terminal_close(lin_terminal *terminal);

/* Restores the terminal from a signal handler, before the program ends. */
void lin_terminal_rescue(void);

/* Columns of a UTF-8 text: 0 for combining marks, 1 for everything else. */
int lin_text_columns(const char *text, size_t n);
/* The number of bytes in the first `columns` columns of a text; colour sequences ("ESC[...m") take no column and stay whole. */
size_t lin_text_cut(const char *text, int columns);

#endif
