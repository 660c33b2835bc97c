// terminal.c - a live display at the bottom of a terminal; see terminal.h.

#include "app/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/memory.h"

enum { LEAST_COLUMNS = 16 };

struct lin_terminal {
    int fd;
    int keys; // typed keys are read, their echo is off
    int utf8, colours;
    int columns, rows;
    lin_buffer drawn, next, out; // the live text on the screen, the next one, the bytes to write
};

// State for the signal handler.
static struct {
    volatile sig_atomic_t fd; // -1: nothing is open
    volatile sig_atomic_t modes;
    struct termios saved;
} rescue = {.fd = -1};

static void write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t written = write(fd, text, n);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd out = {.fd = fd, .events = POLLOUT};
            if (poll(&out, 1, 1000) > 0) continue;
        }
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return; // the terminal is gone; the results go on
        text += written;
        n -= (size_t)written;
    }
}

int lin_terminal_can(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

static int says_utf8(void)
{
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8");
    }
    return 0;
}

static struct winsize size_now(const lin_terminal *t)
{
    struct winsize size;
    memset(&size, 0, sizeof size);
    if (ioctl(t->fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) size = (struct winsize){24, 80, 0, 0};
    if (size.ws_col < LEAST_COLUMNS) size.ws_col = LEAST_COLUMNS;
    if (size.ws_row < 3) size.ws_row = 3;
    return size;
}

static void ask_size(lin_terminal *t)
{
    const struct winsize size = size_now(t);
    t->columns = size.ws_col;
    t->rows = size.ws_row;
}

int lin_terminal_columns(const lin_terminal *t) { return size_now(t).ws_col; }

// The system stops a background program that changes the terminal's modes.
static int in_foreground(int fd)
{
    const pid_t group = tcgetpgrp(fd);
    return group < 0 || group == getpgrp(); // not our controlling terminal
}

static void take_keys(lin_terminal *t)
{
    struct termios modes;
    t->keys = 0;
    if (!isatty(STDIN_FILENO) || !in_foreground(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &rescue.saved) != 0) return;
    modes = rescue.saved;
    modes.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    rescue.modes = 1;
    t->keys = tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0;
}

lin_status lin_terminal_open(int fd, lin_terminal **terminal, lin_error *err)
{
    lin_terminal *t = lin_calloc(1, sizeof *t);
    *terminal = t;
    if (!t) return lin_no_memory(err, "a terminal", sizeof *t);
    const char *no_colour = getenv("NO_COLOR"); // no-color.org
    t->fd = fd;
    t->utf8 = says_utf8();
    t->colours = !(no_colour && *no_colour);
    lin_terminal_resume(t);
    return LIN_OK;
}

void lin_terminal_resume(lin_terminal *t)
{
    take_keys(t);
    rescue.fd = t->fd;
    if (in_foreground(t->fd)) write_all(t->fd, "\033[?25l", 6);
    lin_buffer_clear(&t->drawn);
}

void lin_terminal_rescue(void)
{
    static const char tidy[] = "\r\033[J\033[?25h";
    const int fd = rescue.fd;
    if (fd < 0) return;
    rescue.fd = -1;
    if (rescue.modes) tcsetattr(STDIN_FILENO, TCSANOW, &rescue.saved);
    rescue.modes = 0;
    if (write(fd, tidy, sizeof tidy - 1) < 0) return;
}

void lin_terminal_suspend(lin_terminal *t)
{
    lin_terminal_rescue();
    t->keys = 0;
    lin_buffer_clear(&t->drawn);
}

void lin_terminal_close(lin_terminal *t)
{
    if (!t) return;
    lin_terminal_rescue();
    lin_buffer_free(&t->drawn);
    lin_buffer_free(&t->next);
    lin_buffer_free(&t->out);
    lin_free(t);
}

int lin_terminal_key(lin_terminal *t)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char key;
    if (!t->keys || poll(&in, 1, 0) <= 0) return -1;
    if (read(STDIN_FILENO, &key, 1) == 1) return key;
    t->keys = 0;
    return -1;
}

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

int lin_text_columns(const char *text, size_t n)
{
    int columns = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i], next = i + 1 < n ? (unsigned char)text[i + 1] : 0;
        if (c >> 6 == 2) continue;                             // not the first byte of a character
        if (c == 0xCC || (c == 0xCD && next < 0xB0)) continue; // U+0300 to U+036F: written over the one before
        columns++;
    }
    return columns;
}

size_t lin_text_cut(const char *text, int columns)
{
    size_t n = 0;
    for (int used = 0; text[n];) {
        const char *c = text + n;
        size_t bytes = 1;
        if (*c == '\033') { // an escape sequence takes no column
            bytes = strcspn(c, "m");
            bytes += c[bytes] == 'm';
        } else {
            while (((unsigned char)c[bytes] >> 6) == 2) bytes++;
            used += lin_text_columns(c, bytes);
        }
        if (used > columns) break;
        n += bytes;
    }
    return n;
}

// Rows of words after a head. They are counted first, then written from row `skip` on.
typedef struct layout {
    lin_buffer *out; // NULL: only count
    int width, indent, skip;
    int row, column;
} layout;

static void begin_row(layout *l)
{
    l->row++;
    l->column = l->indent;
    if (!l->out || l->row < l->skip) return;
    if (l->row > l->skip) lin_buffer_text(l->out, "\r\n");
    for (int i = 0; i < l->indent; i++) lin_buffer_char(l->out, ' ');
}

static void put_words(layout *l, const char *text, const char *style)
{
    int styled = 0;
    for (const char *word = text; *word;) {
        if (*word == ' ') {
            word++;
            continue;
        }
        const size_t n = strcspn(word, " ");
        const int columns = lin_text_columns(word, n), gap = l->column > l->indent;
        if (gap && l->column + 1 + columns > l->width) {
            begin_row(l);
        } else if (gap) {
            l->column++;
            if (l->out && l->row >= l->skip) lin_buffer_char(l->out, ' ');
        }
        l->column += columns;
        if (l->out && l->row >= l->skip) {
            if (!styled) lin_buffer_text(l->out, style);
            styled = 1;
            // A word longer than a row becomes '~': if the terminal wrapped it, our count of rows would be wrong.
            if (columns > l->width - l->indent) lin_buffer_char(l->out, '~');
            else lin_buffer_bytes(l->out, word, n);
        }
        word += n;
    }
    if (styled && *style) lin_buffer_text(l->out, "\033[0m");
}

// The rows of head, settled and open words; at most `most`, the last ones. How many were written.
static int put_rows(const lin_terminal *t, lin_buffer *out, const char *head, const char *settled, const char *open, int most)
{
    int width = t->columns - 1, head_columns = lin_text_columns(head, strlen(head)), rows = 0;
    const int fits = head_columns + LEAST_COLUMNS / 2 <= width; // a head that leaves no room is omitted
    for (int pass = 0; pass < 2; pass++) {
        layout l = {.out = pass ? out : NULL, .width = width, .indent = fits ? head_columns : 0};
        l.column = l.indent;
        if (pass) l.skip = rows > most ? rows - most : 0;
        if (pass && l.skip == 0 && l.indent > 0) lin_buffer_format(out, t->colours ? "\033[36m%s\033[0m" : "%s", head);
        put_words(&l, settled, "");
        put_words(&l, open, t->colours ? "\033[2m" : "");
        rows = pass ? l.row + 1 - l.skip : l.row + 1;
    }
    return rows;
}

/* ---- drawing --------------------------------------------------------------------------------------------------------------- */

void lin_terminal_draw(lin_terminal *t, const lin_terminal_live *live)
{
    const int columns = t->columns, rows_before = t->rows;
    if (!in_foreground(t->fd)) return;
    ask_size(t);
    lin_buffer_clear(&t->next);
    int rows = put_rows(t, &t->next, live->head, live->settled, live->open, t->rows - 2);
    lin_buffer_text(&t->next, "\r\n");
    const size_t n_status = lin_text_cut(live->status, t->columns - 1);
    lin_buffer_bytes(&t->next, live->status, n_status);
    if (memchr(live->status, '\033', n_status)) lin_buffer_text(&t->next, "\033[0m");
    const int same = columns == t->columns && rows_before == t->rows && t->drawn.n == t->next.n && t->next.data &&
                     t->drawn.data && memcmp(t->drawn.data, t->next.data, t->next.n) == 0;
    if (same || lin_buffer_status(&t->next, NULL) != LIN_OK) return;
    lin_buffer_clear(&t->out);
    lin_buffer_format(&t->out, "\r\033[J%s\r\033[%dA", t->next.data, rows);
    if (lin_buffer_status(&t->out, NULL) == LIN_OK) write_all(t->fd, t->out.data, t->out.n);
    const lin_buffer swap = t->drawn;
    t->drawn = t->next;
    t->next = swap;
}

void lin_terminal_keep(lin_terminal *t, const char *head, const char *text)
{
    ask_size(t);
    lin_buffer_clear(&t->out);
    if (in_foreground(t->fd)) lin_buffer_text(&t->out, "\r\033[J");
    put_rows(t, &t->out, head, text, "", 1 << 20);
    lin_buffer_text(&t->out, "\r\n");
    if (lin_buffer_status(&t->out, NULL) == LIN_OK) write_all(t->fd, t->out.data, t->out.n);
    lin_buffer_clear(&t->drawn);
}

void lin_terminal_bar(const lin_terminal *t, double level, int width, lin_buffer *out)
{
    const int full = level >= 1 ? width : level > 0 ? (int)(level * width + 0.5) : 0;
    const char *colour = "";
    for (int i = 0; i < width; i++) {
        const char *want = i >= full ? "\033[2m" : i * 10 >= width * 9 ? "\033[31m" : i * 10 >= width * 7 ? "\033[33m"
                           : "\033[32m";
        if (t->colours && strcmp(want, colour) != 0) {
            if (*colour) lin_buffer_text(out, "\033[0m");
            lin_buffer_text(out, want);
            colour = want;
        }
        lin_buffer_text(out, t->utf8 ? (i < full ? "\xE2\x96\xA0" : "\xC2\xB7") : i < full ? "#" : ".");
    }
    if (*colour) lin_buffer_text(out, "\033[0m");
}
