// [slow] linnet listen in a terminal: a pseudo-terminal and a simulated screen. Tested: the display, resizing, keys, signals, and
// the state of the terminal afterwards. The sound comes from a file in real time.
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#include "base/system.h"
#include "tests/support.h"

enum { MOST_ROWS = 40, MOST_COLUMNS = 120 };

static char sound[128], once[128], linnet[PATH_MAX];

/* ---- a terminal ------------------------------------------------------------------------------------------------------------ */

// A character is a byte: the environment says that the terminal has no UTF-8. A narrower window cuts lines that are too long and
// does not fold them, as in xterm.
typedef struct screen {
    char cells[MOST_ROWS][MOST_COLUMNS + 1];
    int rows, columns, row, column;
    int hidden, unknown; // hidden: the cursor; unknown: unsupported sequences seen
    int state, numbers[4], n_numbers;
    char history[65536]; // rows that scrolled away
    int is_faint;
    char faint[65536], bright[65536]; // all characters drawn with this attribute
} screen;

static void clear_cells(screen *s, int row, int from)
{
    memset(s->cells[row] + from, ' ', (size_t)(MOST_COLUMNS - from));
    s->cells[row][MOST_COLUMNS] = 0;
}

static void new_line(screen *s)
{
    if (s->row + 1 < s->rows) {
        s->row++;
        return;
    }
    const size_t used = strlen(s->history);
    int n = s->columns;
    while (n > 0 && s->cells[0][n - 1] == ' ') n--;
    snprintf(s->history + used, sizeof s->history - used, "%.*s\n", n, s->cells[0]);
    memmove(s->cells[0], s->cells[1], (size_t)(s->rows - 1) * sizeof s->cells[0]);
    clear_cells(s, s->rows - 1, 0);
}

static void control(screen *s, char final, int private)
{
    const int n = s->n_numbers && s->numbers[0] ? s->numbers[0] : 1, first = s->n_numbers ? s->numbers[0] : 0;
    if (private && first == 25 && (final == 'l' || final == 'h')) {
        s->hidden = final == 'l';
    } else if (final == 'A' && !private) {
        s->row = s->row > n ? s->row - n : 0;
    } else if (final == 'J' && first == 0 && !private) {
        clear_cells(s, s->row, s->column);
        for (int r = s->row + 1; r < s->rows; r++) clear_cells(s, r, 0);
    } else if (final == 'm' && !private) {
        s->is_faint = first == 2;
    } else {
        s->unknown++;
    }
}

static void put(screen *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (s->state == 1) {
            s->state = c == '[' ? 2 : 0;
            if (c != '[') s->unknown++;
            s->n_numbers = 0;
        } else if (s->state >= 2) {
            if (c == '?') s->state = 3;
            else if (c >= '0' && c <= '9') {
                if (!s->n_numbers) s->numbers[s->n_numbers++] = 0;
                s->numbers[0] = 10 * s->numbers[0] + c - '0';
            } else {
                control(s, c, s->state == 3);
                s->state = 0;
            }
        } else if (c == 27) {
            s->state = 1;
        } else if (c == '\r') {
            s->column = 0;
        } else if (c == '\n') {
            new_line(s);
        } else if ((unsigned char)c < 32) {
            s->unknown++;
        } else {
            if (s->column == s->columns) {
                s->column = 0;
                new_line(s);
            }
            s->cells[s->row][s->column++] = c;
            char *drawn = s->is_faint ? s->faint : s->bright;
            const size_t used = strlen(drawn);
            if (used + 1 < sizeof s->faint) drawn[used] = c;
        }
    }
}

// All rows of history and screen, without trailing blanks.
static const char *text_of(const screen *s)
{
    static char text[sizeof s->history + sizeof s->cells];
    char *at = text + sprintf(text, "%s", s->history);
    for (int r = 0; r < s->rows; r++) {
        int n = s->columns;
        while (n > 0 && s->cells[r][n - 1] == ' ') n--;
        at += sprintf(at, "%.*s\n", n, s->cells[r]);
    }
    return text;
}

/* ---- the program in it ----------------------------------------------------------------------------------------------------- */

typedef struct session {
    screen screen;
    int master, slave; // the slave stays open: its modes can be read after the program has ended
    pid_t pid;
    int status, ended, stopped;
    struct termios before;
} session;

static void resize(session *s, int rows, int columns)
{
    const struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    s->screen.rows = rows;
    s->screen.columns = columns;
    if (s->screen.row >= rows) s->screen.row = rows - 1;
    if (s->screen.column > columns) s->screen.column = columns;
    for (int r = 0; r < MOST_ROWS; r++) clear_cells(&s->screen, r, r < rows ? columns : 0);
    ck_assert_int_eq(ioctl(s->master, TIOCSWINSZ, &size), 0);
}

// output: the file that standard output goes to; NULL: the terminal.
static void start(session *s, int rows, int columns, const char *term, const char *output, char *const arguments[])
{
    memset(s, 0, sizeof *s);
    s->master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_int_ge(s->master, 0);
    ck_assert_int_eq(grantpt(s->master), 0);
    ck_assert_int_eq(unlockpt(s->master), 0);
    s->slave = open(ptsname(s->master), O_RDWR | O_NOCTTY);
    ck_assert_int_ge(s->slave, 0);
    ck_assert_int_eq(tcgetattr(s->slave, &s->before), 0);
    for (int r = 0; r < MOST_ROWS; r++) clear_cells(&s->screen, r, 0);
    resize(s, rows, columns);
    s->pid = fork();
    ck_assert_int_ge(s->pid, 0);
    if (s->pid > 0) return;
    setsid();
    if (ioctl(s->slave, TIOCSCTTY, 0) != 0) _exit(99);
    const int out = output ? open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600) : s->slave;
    dup2(s->slave, 0);
    dup2(out, 1);
    dup2(s->slave, 2);
    setenv("TERM", term, 1);
    setenv("LC_ALL", "C", 1);
    unsetenv("NO_COLOR");
    execv(linnet, arguments);
    _exit(98);
}

// Reads a piece of what the program writes; 0 if nothing comes within so many milliseconds.
static int read_some(session *s, int patience_ms)
{
    struct pollfd in = {.fd = s->master, .events = POLLIN};
    char bytes[4096];
    if (poll(&in, 1, patience_ms) <= 0) return 0;
    const ssize_t n = read(s->master, bytes, sizeof bytes);
    if (n > 0) put(&s->screen, bytes, (size_t)n);
    return n > 0;
}

// Reads what the program writes, for this long or until it ends.
static void watch(session *s, double seconds)
{
    const double until = lin_now() + seconds;
    while (!s->ended && lin_now() < until) {
        if (read_some(s, 20)) continue;
        int status;
        const pid_t pid = waitpid(s->pid, &status, WNOHANG | WUNTRACED);
        if (pid != s->pid) continue;
        s->stopped = WIFSTOPPED(status);
        s->ended = !s->stopped;
        s->status = status;
        if (s->stopped) return;
    }
    while (s->ended && read_some(s, 0)) continue; // what it wrote between the last look and its end
}

static int shows(session *s, const char *part) { return strstr(text_of(&s->screen), part) != NULL; }

// The machine may be busy: what must come is awaited for this long, never for an interval that a quiet machine would need.
#define PATIENCE 60.0

static void wait_for(session *s, const char *part)
{
    const double until = lin_now() + PATIENCE;
    while (!shows(s, part) && !s->ended && lin_now() < until) watch(s, 0.05);
    ck_assert_msg(shows(s, part), "\"%s\" is not on the screen:\n%s", part, text_of(&s->screen));
}

static void type(session *s, const char *keys) { ck_assert_int_eq((int)write(s->master, keys, strlen(keys)), (int)strlen(keys)); }

static void same_modes(const session *s)
{
    struct termios after;
    ck_assert_int_eq(tcgetattr(s->slave, &after), 0);
    ck_assert_uint_eq(after.c_lflag, s->before.c_lflag);
    ck_assert_uint_eq(after.c_iflag, s->before.c_iflag);
    ck_assert_uint_eq(after.c_oflag, s->before.c_oflag);
    ck_assert_mem_eq(after.c_cc, s->before.c_cc, sizeof after.c_cc);
}

// The terminal modes are restored, and the last line is complete.
static void left_tidy(session *s)
{
    ck_assert_msg(s->ended, "it has not ended; the screen:\n%s", text_of(&s->screen));
    same_modes(s);
    ck_assert_int_eq(s->screen.hidden, 0);
    ck_assert_int_eq(s->screen.column, 0);
    ck_assert_int_eq(s->screen.unknown, 0);
    for (int c = 0; c < s->screen.columns; c++) ck_assert_int_eq(s->screen.cells[s->screen.row][c], ' ');
    close(s->master);
    close(s->slave);
}

static void ended_with(session *s, int status)
{
    watch(s, PATIENCE);
    left_tidy(s);
    ck_assert_msg(WIFEXITED(s->status) && WEXITSTATUS(s->status) == status, "status 0x%x; the screen:\n%s", (unsigned)s->status,
                  text_of(&s->screen));
}

/* ---- the expected display -------------------------------------------------------------------------------------------------- */

// The words after the head "[from - to]  " of the last line that has one, joined over the rows indented like it.
static const char *words_of(const char *text, int *is_final)
{
    static char words[4096];
    const char *head = NULL;
    for (const char *c = text; (c = strstr(c, "[0:")); c++) head = c;
    words[0] = 0;
    if (!head) return words;
    const int indent = (int)(strchr(head, ']') + 3 - head);
    *is_final = strncmp(strchr(head, ']') - 2, "  ", 2) != 0;
    const char *line = head;
    for (int i = 0; line && *line; i++) {
        if (i > 0 && strspn(line, " ") != (size_t)indent) break;
        const size_t n = strcspn(line, "\n");
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%.*s", i ? " " : "", (int)(n - (size_t)indent),
                 line + indent);
        line += n + 1;
    }
    return words;
}

static int heads(const char *text)
{
    int n = 0;
    for (const char *c = text; (c = strstr(c, "[0:")); c++) n++;
    return n;
}

static const char *lines_with(const char *options, const char *path)
{
    static char text[4096];
    char command[PATH_MAX + 1024];
    snprintf(command, sizeof command,
             "\"$LINNET_TESTED\" listen -q --silence-after 0.4 --no-paced %s --raw --from \"$SOUND_TESTED\"", options);
    setenv("LINNET_TESTED", linnet, 1);
    setenv("SOUND_TESTED", path, 1);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    ck_assert_int_eq(pclose(f), 0);
    text[n] = 0;
    ck_assert_uint_gt(n, 8);
    return text;
}

static const char *lines_of(const char *path) { return lines_with("", path); }

static char *const ordinary[] = {"linnet", "listen", "--silence-after", "0.4", "--raw", "--from", sound, NULL};

static void setup(void)
{
    const char *given = getenv("LINNET");
    char command[PATH_MAX + 512], tool[PATH_MAX + 32];
    ck_assert_ptr_nonnull(realpath(given ? given : "build/release/linnet", linnet));
    snprintf(tool, sizeof tool, "%.*s/tests/app/sound", (int)(strrchr(linnet, '/') - linnet), linnet);
    snprintf(sound, sizeof sound, "%s", test_path("sound.raw"));
    snprintf(once, sizeof once, "%s", test_path("once.raw"));
    // 1.5 s of sound, of speech if there is some, and 0.9 s of silence: an utterance with an endpoint; then a second one.
    snprintf(command, sizeof command,
             "cd \"$FOLDER\" && if [ -f \"$SPEECH\" ]; then tail -c +45 \"$SPEECH\" | head -c 48000 > a.raw; "
             "else \"$TOOL\" a.raw seconds=1.5 seed=5 format=raw; fi && head -c 28800 /dev/zero > z && cat a.raw z > once.raw && "
             "cat once.raw once.raw > sound.raw");
    setenv("SPEECH", "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav", 1);
    setenv("FOLDER", test_path(""), 1);
    setenv("TOOL", tool, 1);
    ck_assert_int_eq(system(command), 0);
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

static session s;

// Waits until the words shown are final.
static void wait_until_final(void)
{
    int is_final = 0;
    const double until = lin_now() + PATIENCE;
    while (!is_final && !s.ended && lin_now() < until) {
        watch(&s, 0.05);
        words_of(text_of(&s.screen), &is_final);
    }
    ck_assert_msg(is_final, "no final words on the screen:\n%s", text_of(&s.screen));
}

START_TEST(grows_settles_and_stays)
{
    char half[4096], want[4096];
    int is_final;
    struct termios during;
    snprintf(want, sizeof want, "%s", lines_of(sound));
    *strchr(want, '\n') = 0;
    start(&s, 12, 36, "xterm", NULL, ordinary); // two rows of words
    wait_for(&s, "[0:00.");
    wait_for(&s, " dB ");
    ck_assert_int_eq(s.screen.hidden, 1);
    ck_assert_int_eq(tcgetattr(s.slave, &during), 0);
    ck_assert_int_eq((int)(during.c_lflag & (ECHO | ICANON)), 0);
    type(&s, "xyzzy"); // not echoed
    for (const double until = lin_now() + PATIENCE; lin_now() < until && !s.ended;) {
        watch(&s, 0.05);
        if (strchr(words_of(text_of(&s.screen), &is_final), ' ')) break;
    }
    // The final line begins with the words shown now, except the last word, which may be unfinished.
    snprintf(half, sizeof half, "%s", words_of(text_of(&s.screen), &is_final));
    ck_assert_int_eq(is_final, 0);
    ck_assert_ptr_nonnull(strrchr(half, ' '));
    *strrchr(half, ' ') = 0;
    ck_assert_msg(strncmp(half, want, strlen(half)) == 0, "\"%s\" does not begin \"%s\"", half, want);
    wait_until_final();
    ck_assert_str_eq(words_of(text_of(&s.screen), &is_final), want);
    wait_for(&s, "dB");
    ck_assert_int_eq(heads(text_of(&s.screen)), 1); // and no provisional line remains
    ck_assert(!shows(&s, "xyz"));
    type(&s, "\003");
    ended_with(&s, 0);
    ck_assert(shows(&s, "1 utterance,"));
    ck_assert(!shows(&s, "Ctrl-C"));
}
END_TEST

START_TEST(resized)
{
    char want[4096];
    int is_final = 0;
    snprintf(want, sizeof want, "%s", lines_of(sound));
    *strchr(want, '\n') = 0;
    // the end of the utterance comes after the last resize
    char *fifo = (char *)test_path("fifo");
    char *const from_pipe[] = {"linnet", "listen", "--silence-after", "0.4", "--raw", "--from", fifo, NULL};
    static char bytes[48000 + 28800];
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    const int pipe = open(fifo, O_RDWR);
    ck_assert_int_ge(pipe, 0);
    ck_assert_uint_eq(test_read_file(once, bytes, sizeof bytes), sizeof bytes);
    ck_assert_int_eq(write(pipe, bytes, 32000), 32000); // a second
    start(&s, 24, 100, "xterm", NULL, from_pipe);
    wait_for(&s, "[0:00.");
    watch(&s, 0.3);
    resize(&s, 24, 30);
    watch(&s, 0.3);
    resize(&s, 5, 40); // fewer rows than the utterance will need
    watch(&s, 0.3);
    resize(&s, 2, 5); // too small to show anything in
    watch(&s, 0.3);
    resize(&s, 20, 36);
    ck_assert_int_eq(write(pipe, bytes + 32000, sizeof bytes - 32000), (int)sizeof bytes - 32000);
    wait_until_final();
    // The last line is complete and within the width, and nothing of the narrower displays remains below it.
    ck_assert_msg(strcmp(words_of(text_of(&s.screen), &is_final), want) == 0, "wanted \"%s\" on this screen:\n%s", want,
                  text_of(&s.screen));
    wait_for(&s, "dB  0:0");
    type(&s, "q");
    ended_with(&s, 0);
    close(pipe);
}
END_TEST

// Fewer rows than the utterance needs: only its last rows are shown while it runs; at its end it is written completely, once.
START_TEST(small_screen)
{
    char *const arguments[] = {"linnet", "listen", "--silence-after", "0.4", "--raw", "--from", once, NULL};
    char got[4096], want[4096];
    int is_final;
    snprintf(want, sizeof want, "%s", lines_of(once));
    start(&s, 3, 29, "xterm", NULL, arguments);
    wait_for(&s, "[0:00.");
    // Its beginning is not displayed and not in the history.
    for (const double until = lin_now() + 20; heads(text_of(&s.screen)) && !s.ended && lin_now() < until;) watch(&s, 0.02);
    ck_assert_msg(!s.ended && heads(text_of(&s.screen)) == 0, "%s", text_of(&s.screen));
    ended_with(&s, 0); // the end of the file is reached
    ck_assert_int_eq(heads(text_of(&s.screen)), 1);
    snprintf(got, sizeof got, "%s", words_of(text_of(&s.screen), &is_final));
    ck_assert_int_eq(is_final, 1);
    ck_assert_msg(strncmp(want, got, 12) == 0, "%s", got);
}
END_TEST

START_TEST(ends_in_the_middle)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    char want[4096];
    int is_final;
    snprintf(want, sizeof want, "%s", lines_of(sound));
    start(&s, 12, 80, "xterm", NULL, ordinary);
    wait_for(&s, "[0:00.");
    watch(&s, 0.5);
    ck_assert_int_eq(kill(s.pid, signals[_i]), 0);
    ended_with(&s, 0);
    // The words so far are shown with their end time. The last phone was decided without look-ahead.
    char got[4096];
    snprintf(got, sizeof got, "%s", words_of(text_of(&s.screen), &is_final));
    ck_assert_int_eq(is_final, 1);
    ck_assert_uint_gt(strlen(got), 3);
    for (int i = 0; i < 3; i++) {
        if (strrchr(got, ' ')) *strrchr(got, ' ') = 0;
    }
    ck_assert_msg(strncmp(got, want, strlen(got)) == 0, "\"%s\" does not begin \"%s\"", got, want);
}
END_TEST

START_TEST(killed_it_leaves_the_terminal_tidy)
{
    start(&s, 12, 80, "xterm", NULL, ordinary);
    wait_for(&s, "[0:00.");
    type(&s, "\034"); // Ctrl-backslash
    watch(&s, PATIENCE);
    left_tidy(&s);
    ck_assert(WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGQUIT);
}
END_TEST

START_TEST(stopped_and_continued)
{
    start(&s, 12, 80, "xterm", NULL, ordinary);
    wait_for(&s, "[0:00.");
    type(&s, "\032"); // Ctrl-Z
    watch(&s, PATIENCE);
    ck_assert_int_eq(s.stopped, 1);
    same_modes(&s);
    watch(&s, 0.1);
    ck_assert_int_eq(s.screen.hidden, 0);
    ck_assert(!shows(&s, "Ctrl-C"));
    s.stopped = 0;
    kill(s.pid, SIGCONT);
    wait_for(&s, "Ctrl-C");
    ck_assert_int_eq(s.screen.hidden, 1);
    ck_assert(shows(&s, "[0:00."));
    type(&s, "\003");
    ended_with(&s, 0);
}
END_TEST

START_TEST(enter_ends_an_utterance)
{
    start(&s, 12, 80, "xterm", NULL, ordinary);
    wait_for(&s, "latency ");
    ck_assert_msg(shows(&s, "##") && shows(&s, " dB  0:0"), "%s", text_of(&s.screen));
    const char *latency = strstr(text_of(&s.screen), "latency ");
    ck_assert_int_ge(atoi(latency + 8), 165);
    type(&s, "\n");
    wait_until_final();
    type(&s, "\004");
    ended_with(&s, 0);
}
END_TEST

// Is the row under the words within this width, and does it hold this part whole?
static int status_fits(int width, const char *end)
{
    char line[256];
    const char *row = strstr(text_of(&s.screen), " dB");
    const size_t n = row ? strcspn(row, "\n") : sizeof line;
    if (n >= (size_t)width) return 0;
    snprintf(line, sizeof line, "%.*s", (int)n, row);
    return strstr(line, end) && (!strstr(line, "Ctrl-") || strstr(line, "Ctrl-C"));
}

// The row under the words holds as many parts as fit; no part is cut.
START_TEST(the_status_line_fits)
{
    const int widths[] = {40, 80, 119, 24};
    const char *const ends[] = {"ms", "Ctrl-C ends", "Enter begins a new line", "dB"};
    start(&s, 12, 100, "xterm", NULL, ordinary);
    wait_for(&s, "latency ");
    for (int i = 0; i < 4; i++) {
        resize(&s, 12, widths[i]);
        for (const double until = lin_now() + PATIENCE; lin_now() < until && !s.ended && !status_fits(widths[i], ends[i]);)
            watch(&s, 0.05);
        ck_assert_msg(status_fits(widths[i], ends[i]), "%d columns:\n%s", widths[i], text_of(&s.screen));
    }
    type(&s, "q");
    ended_with(&s, 0);
}
END_TEST

// linnet transcribe: one row of progress with percent and time left, never folded, removed at the end; if the result goes to the
// terminal there is no progress row.
START_TEST(progress_fits)
{
    char *path = (char *)test_path("a-recording-with-a-very-long-name-that-does-not-fit.raw");
    char *output = (char *)test_path("out.txt");
    char *const arguments[] = {"linnet", "transcribe", "-j", "1", "--words", "--no-lm", "--beam", "2000", "--tune",
                               "beam-score=18", "--raw",  path,         "-o", output, NULL};
    const int widths[] = {40, 80, 119, 17};
    setenv("RECORDING", path, 1);
    // so long that no machine is done before the first line of progress; the test interrupts it
    ck_assert_int_eq(system("cd \"$FOLDER\" && for i in $(seq 200); do cat once.raw; done > \"$RECORDING\""), 0);
    start(&s, 12, 100, "xterm", NULL, arguments);
    wait_for(&s, " left, ");
    for (int i = 0; i < 4 && !s.ended; i++) {
        while (read_some(&s, 0)) continue; // what was drawn for the width before
        resize(&s, 12, widths[i]);
        // A look can fall between the removal of a row and the next one: four looks must show the row, none may show two.
        int seen = 0;
        for (const double until = lin_now() + PATIENCE; seen < 4 && lin_now() < until && !s.ended;) {
            watch(&s, 0.05);
            const char *text = text_of(&s.screen), *row = strstr(text, " %, ");
            ck_assert_msg(!row || strstr(row + 1, " %, ") == NULL, "%d columns, two rows:\n%s", widths[i], text);
            seen += row != NULL;
        }
        ck_assert_msg(seen == 4 || s.ended, "%d columns:\n%s", widths[i], text_of(&s.screen));
    }
    kill(s.pid, SIGINT);
    watch(&s, PATIENCE);
    ck_assert(s.ended);
    ck_assert_msg(!shows(&s, " %, "), "%s", text_of(&s.screen));
    left_tidy(&s);
}
END_TEST

START_TEST(a_result_flows_on_the_terminal)
{
    char *const arguments[] = {"linnet", "transcribe", "-j", "1", "--raw", once, NULL};
    start(&s, 24, 100, "xterm", NULL, arguments);
    watch(&s, PATIENCE);
    ck_assert_msg(shows(&s, "1 file, 2.4 s of sound"), "%s", text_of(&s.screen));
    ck_assert_ptr_null(strstr(text_of(&s.screen), " %"));
    left_tidy(&s);
}
END_TEST

// Standard output is a file: the lines go to the file, the display to the terminal.
START_TEST(output_elsewhere)
{
    char *const arguments[] = {"linnet", "listen", "--silence-after", "0.4", "--raw", "--from", once, NULL};
    const char *path = test_path("out");
    char got[4096] = "", want[4096];
    snprintf(want, sizeof want, "%s", lines_of(once));
    start(&s, 12, 80, "xterm", path, arguments);
    wait_for(&s, "[0:00.");
    wait_for(&s, "Ctrl-C");
    ended_with(&s, 0); // the end of the file is reached
    got[test_read_file(path, got, sizeof got - 1)] = 0;
    ck_assert_str_eq(got, want);
    ck_assert(shows(&s, "1 utterance,"));
}
END_TEST

// Words of three phones each: settled words in normal type, provisional ones faint, an unfinished word with its mark.
START_TEST(words)
{
    static char options[512], want[4096], got[4096];
    char phones[4096], *rest = phones, name[] = "waaa";
    int is_final = 0, n = 0;
    char *dict = (char *)test_path("dict"), *arpa = (char *)test_path("arpa");
    snprintf(phones, sizeof phones, "%s", lines_of(once));
    FILE *d = fopen(dict, "w"), *a = fopen(arpa, "w");
    ck_assert(d && a);
    for (char *phone; (phone = strtok_r(rest, " \n", &rest)) != NULL; n++) {
        name[3] = (char)('a' + n / 3);
        if (n % 3 == 0) fprintf(d, "%s%s", n ? "\n" : "", name);
        fprintf(d, " %s", phone);
    }
    fprintf(d, "\n");
    fclose(d);
    fprintf(a, "\\data\\\nngram 1=%d\n\n\\1-grams:\n-99 <s>\n-1 </s>\n", (n + 2) / 3 + 2);
    for (int i = 0; i < (n + 2) / 3; i++) fprintf(a, "-1 waa%c\n", 'a' + i);
    fprintf(a, "\n\\end\\\n");
    fclose(a);
    snprintf(options, sizeof options,
             "--words --no-readable --tune lm-weight=0.3,bonus=2 --lexicon \"$FOLDER/dict\" --lm \"$FOLDER/arpa\"");
    char *const arguments[] = {"linnet", "listen", "--words", "--no-readable", "--tune", "lm-weight=0.3,bonus=2", "--lexicon",
                               dict, "--lm", arpa, "--silence-after", "0.4", "--raw", "--from", once, NULL};
    snprintf(want, sizeof want, "%s", lines_with(options, once));
    HAS(want, "waaa waab");
    *strchr(want, '\n') = 0;
    start(&s, 12, 80, "xterm", NULL, arguments);
    wait_for(&s, "[0:00.");
    ended_with(&s, 0);
    snprintf(got, sizeof got, "%s", words_of(text_of(&s.screen), &is_final));
    ck_assert_int_eq(is_final, 1);
    ck_assert_str_eq(got, want);
    ck_assert(shows(&s, " words"));
    HAS(s.screen.faint, "-]");
    ck_assert_ptr_null(strstr(s.screen.bright, "-]"));
    HAS(s.screen.bright, "waaa");
}
END_TEST

// No escape sequences on a terminal that does not support them, or if they are switched off.
START_TEST(plain)
{
    char *const arguments[] = {
        "linnet", "listen", "-q", "--silence-after", "0.4", "--no-paced", _i ? "--plain" : "--quiet", "--raw",
        "--from", sound,    NULL};
    char want[4096];
    snprintf(want, sizeof want, "%s", lines_of(sound));
    start(&s, 12, 80, _i ? "xterm" : "dumb", NULL, arguments);
    watch(&s, PATIENCE);
    ck_assert(s.ended);
    const char *got = text_of(&s.screen);
    ck_assert_msg(strncmp(got, want, strlen(want)) == 0, "%s", got);
    ck_assert_int_eq(s.screen.hidden, 0);
    left_tidy(&s);
}
END_TEST

int main(void)
{
    const test_entry tests[] = {TEST(grows_settles_and_stays), TEST(resized), TEST(small_screen), TESTS(ends_in_the_middle, 0, 3),
                                TEST(killed_it_leaves_the_terminal_tidy), TEST(stopped_and_continued),
                                TEST(enter_ends_an_utterance), TEST(the_status_line_fits), TEST(progress_fits),
                                TEST(a_result_flows_on_the_terminal), TEST(output_elsewhere), TEST(words), TESTS(plain, 0, 2)};
    const int probe = posix_openpt(O_RDWR | O_NOCTTY);
    if (probe < 0 || !ptsname(probe)) { // a root file system without /dev/pts
        printf("skipped: there are no pseudo-terminals here\n");
        return 0;
    }
    close(probe);
    return test_all("app/listen in a terminal", setup, NULL, NULL, NULL, tests, sizeof tests / sizeof *tests);
}
