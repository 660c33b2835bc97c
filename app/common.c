// common.c - what the commands share; see common.h.

#include "app/common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "app/terminal.h"
#include "linnet/find.h"

volatile sig_atomic_t lin_interrupted;

static pthread_mutex_t terminal = PTHREAD_MUTEX_INITIALIZER;
static int line_is_dirty; // the terminal shows a progress line

// The cursor is at the line's first character: if the terminal was made narrower and folded the line, the cursor moved with it.
#define CLEAR_LINE "\r\033[J"

static void clear_line(void)
{
    if (line_is_dirty) fputs(CLEAR_LINE, stderr);
    line_is_dirty = 0;
}

static int in_json;

void lin_complain_in_json(void) { in_json = 1; }

void lin_complaint_begin(lin_buffer *out)
{
    const time_t now = time(NULL);
    struct tm utc;
    char text[32];
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    lin_buffer_json_format(out, "{'time':%s", text);
}

void lin_complaint_end(lin_buffer *out)
{
    lin_buffer_text(out, "}\n");
    if (lin_buffer_status(out, NULL) == LIN_OK) fputs(out->data, stderr);
    lin_buffer_free(out);
}

static void put_json(const char *text)
{
    lin_buffer out = {0};
    lin_complaint_begin(&out);
    lin_buffer_json_format(&out, ",'message':%s", text);
    lin_complaint_end(&out);
}

void lin_complain(const char *fmt, ...)
{
    static char text[8192];
    va_list args;
    va_start(args, fmt);
    pthread_mutex_lock(&terminal);
    clear_line();
    vsnprintf(text, sizeof text, fmt, args);
    lin_one_line(text);
    if (in_json) put_json(text);
    else fprintf(stderr, "linnet: %s\n", text);
    pthread_mutex_unlock(&terminal);
    va_end(args);
}

static void tell(void *context, const char *text)
{
    (void)context;
    lin_complain("%s", text);
}

lin_warnings lin_complaints(int quiet) { return (lin_warnings){.tell = tell, .quiet = quiet}; }

void lin_complain_of(const char *path, const char *message)
{
    char name[4096];
    snprintf(name, sizeof name, "%s", strcmp(path, "-") == 0 ? "standard input" : path);
    lin_one_line(name); // as in the message
    const int is_named = strstr(message, name) != NULL;
    lin_complain("%s%s%s", is_named ? "" : name, is_named ? "" : ": ", message);
}

void lin_complain_of_marks(long n, const char *first)
{
    if (n == 1) lin_complain("the mark %s is not a word and was skipped", first);
    if (n > 1) lin_complain("%ld marks such as %s are not words and were skipped", n, first);
}

int lin_give_up(const lin_error *err)
{
    lin_complain("%s", err->message);
    return err->status == LIN_STOPPED ? LIN_EXIT_INTERRUPTED : LIN_EXIT_FAILED;
}

int lin_misuse(const lin_parsed *parsed, const char *fmt, ...)
{
    va_list args;
    char text[1024];
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    lin_complain("%s: %s", parsed->command->name, text);
    fprintf(stderr, "Try 'linnet %s --help'.\n", parsed->command->name);
    return LIN_EXIT_USAGE;
}

int lin_list_has(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && at[n] == ' ') return 1;
    return 0;
}

int lin_verb_options(const lin_parsed *parsed, const char *verb, const char *names)
{
    const lin_option *options = parsed->command->options;
    for (int i = 0; options[i].type != LIN_OPTION_END; i++) {
        if (options[i].type == LIN_OPTION_HEADING || parsed->from[i] == LIN_FROM_DEFAULT ||
            lin_list_has(names, options[i].name) || !strcmp(options[i].name, "quiet"))
            continue;
        return lin_misuse(parsed, "--%s does not apply to %s", options[i].name, verb);
    }
    return LIN_EXIT_OK;
}

lin_status lin_make_folders(const char *path, size_t n, lin_error *err)
{
    char part[PATH_MAX];
    if (n >= sizeof part) return lin_fail(err, LIN_INVALID, "the name of the folder %.200s... is too long", path);
    memcpy(part, path, n);
    part[n] = 0;
    for (char *slash = strchr(part + (n > 0), '/');; slash = strchr(slash + 1, '/')) {
        if (slash) *slash = 0;
        struct stat st;
        // check first: mkdir in a folder that is not writable fails even if the new one exists
        if (*part && stat(part, &st) != 0 && mkdir(part, 0777) != 0 && errno != EEXIST)
            return lin_fail(err, LIN_IO, "cannot create the folder %.*s: %s", (int)n, path, strerror(errno));
        if (!slash) break;
        *slash = '/';
    }
    if (!n || lin_is_folder(part)) return LIN_OK;
    return lin_fail(err, LIN_IO, "cannot create the folder %s: a file has this name", part);
}

lin_status lin_make_folders_of(const char *file, lin_error *err)
{
    const size_t n = (size_t)(lin_base_name(file) - file);
    return lin_make_folders(file, n > 1 ? n - 1 : n, err);
}

lin_status lin_output_open(const char *path, int flags, lin_output *output, lin_error *err)
{
    *output = (lin_output){.file = stdout};
    if (!path || strcmp(path, "-") == 0) return LIN_OK;
    *output = (lin_output){.path = path};
    LIN_TRY(lin_file_open(path, flags | LIN_FILE_STREAM, &output->writer, err));
    const int fd = fcntl(lin_file_descriptor(output->writer), F_DUPFD_CLOEXEC, 3);
    output->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (output->file) return LIN_OK;
    lin_status status = lin_fail(err, LIN_IO, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return lin_output_end(output, status, NULL);
}

// Flushes all bytes; LIN_IO with the reason on failure. Closes the stream unless it is standard output.
static lin_status close_stream(lin_output *output, lin_error *err)
{
    if (!output->file) return LIN_OK;
    errno = 0;
    int failed = ferror(output->file) | fflush(output->file);
    int reason = errno;
    if (output->path && fclose(output->file) != 0 && !failed) {
        failed = 1;
        reason = errno;
    }
    output->file = NULL;
    if (!failed) return LIN_OK;
    return lin_fail(err, LIN_IO, "cannot write %s: %s%s", output->path ? output->path : "standard output",
                    reason ? strerror(reason) : "an earlier write failed", lin_write_remedy(reason));
}

// Keeps the output so far beside its path, unless it is empty.
static lin_status keep(lin_file_writer *writer, lin_error *err)
{
    char name[PATH_MAX];
    struct stat st;
    if (fstat(lin_file_descriptor(writer), &st) == 0 && st.st_size == 0) {
        lin_file_abort(writer);
        return LIN_OK;
    }
    const lin_status status = lin_file_keep(writer, name, sizeof name, err);
    if (status == LIN_OK && *name) lin_complain("the results so far are in %s", name);
    return status;
}

lin_status lin_output_end(lin_output *output, lin_status status, lin_error *err)
{
    lin_error late = {0};
    const lin_status closed = close_stream(output, &late);
    if (closed != LIN_OK || (status != LIN_OK && status != LIN_STOPPED)) lin_file_abort(output->writer);
    else if (output->writer) (status == LIN_OK ? lin_file_commit : keep)(output->writer, &late);
    output->writer = NULL;
    if (status == LIN_OK && late.status != LIN_OK) return lin_fail_as(err, &late);
    if (status == LIN_STOPPED && late.status != LIN_OK) lin_complain("%s", late.message);
    return status;
}

lin_status lin_output_write(const char *path, int flags, const lin_buffer *buffer, lin_error *err)
{
    lin_output out;
    lin_status status = lin_buffer_status(buffer, err);
    if (status == LIN_OK) status = lin_output_open(path, flags, &out, err);
    if (status != LIN_OK) return status;
    return lin_output_end(&out, lin_buffer_write(buffer, out.file, out.path ? out.path : "standard output", err), err);
}

void lin_progress_begin(lin_progress *progress, int quiet)
{
    const char *term = getenv("TERM");
    progress->shown = !quiet && isatty(2) && !(term && strcmp(term, "dumb") == 0);
    progress->begun = progress->last = lin_now();
}

static void draw(lin_progress *progress, double fraction, const char *fmt, va_list args)
{
    char text[1024] = "";
    struct winsize size = {0};
    const double now = lin_now(), spent = now - progress->begun;
    if (now - progress->last < 0.1) return;
    progress->last = now;
    if (fraction >= 0) snprintf(text, sizeof text, "%.0f %%, ", 100 * (fraction < 1 ? fraction : 1));
    // The time left is known once something has been done.
    if (fraction > 0 && fraction <= 1 && spent > 0.5) {
        const long long left = (long long)(spent * (1 - fraction) / fraction + 0.5);
        char *end = text + strlen(text);
        if (left < 3600) snprintf(end, 48, "%lld:%02lld left, ", left / 60, left % 60);
        else snprintf(end, 48, "%lld:%02lld:%02lld left, ", left / 3600, left / 60 % 60, left % 60);
    }
    vsnprintf(text + strlen(text), sizeof text - strlen(text), fmt, args);
    const int columns = ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    // one write: no moment shows an empty row
    fprintf(stderr, "%s%.*s\r", line_is_dirty ? CLEAR_LINE : "", (int)lin_text_cut(text, columns - 1), text);
    line_is_dirty = 1;
}

void lin_progress_of(lin_progress *progress, double fraction, const char *fmt, ...)
{
    if (!progress->shown) return;
    va_list args;
    va_start(args, fmt);
    pthread_mutex_lock(&terminal);
    draw(progress, fraction, fmt, args);
    pthread_mutex_unlock(&terminal);
    va_end(args);
}

void lin_progress_end(lin_progress *progress)
{
    if (!progress->shown) return;
    pthread_mutex_lock(&terminal);
    clear_line();
    pthread_mutex_unlock(&terminal);
}
