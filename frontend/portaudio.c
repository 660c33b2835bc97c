#include "frontend/portaudio.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lin_portaudio loaded;
static int is_loaded, n_kept;
static const lin_portaudio *replaced;

/* ---- standard error --------------------------------------------------------------------------------------------------------- */

// Where standard error leads in the meantime: a file in memory, not a pipe, which would be full some day and its writer wait for ever.
// Never closed once it is there: a handler in another thread may be about to write to it.
static int file = -1;
static int before = -1; // the descriptor that standard error was; -1: nothing is caught

// The same for those that can be told: their handlers write to it too. The handlers stay, and at other times swallow what they get.
static atomic_int handlers_write;

static void catch_begin(void)
{
    if (file < 0) file = memfd_create("stderr", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) return;
    // Above the standard descriptors, so that it is not taken for one of them where these are closed.
    before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (before < 0) return;
    if (dup2(file, STDERR_FILENO) < 0) {
        close(before);
        before = -1;
        return;
    }
    atomic_store(&handlers_write, 1);
}

static void catch_end(void)
{
    if (before < 0) return;
    const int error = errno;
    atomic_store(&handlers_write, 0);
    // What stdio holds back would come out after the end. stderr is not buffered unless somebody made it so.
    fflush(stderr);
    while (dup2(before, STDERR_FILENO) < 0 && (errno == EINTR || errno == EBUSY)) continue;
    close(before);
    before = -1;
    errno = error;
}

// How much a line tells somebody who has no microphone: PortAudio's own are places in its source, JACK is missing on most machines.
static int worth(const char *line)
{
    if (strstr(line, "Permission denied") || strstr(line, "resource busy")) return 3;
    if (!*line || strncmp(line, "Expression '", 12) == 0) return 0;
    return strstr(line, "jack") || strstr(line, "Jack") || strstr(line, "JACK") || strstr(line, "server socket") ||
                   strstr(line, "server request channel")
               ? 0
               : 1;
}

void lin_portaudio_noise(char *line, size_t capacity)
{
    char text[8192];
    int best = 1;
    line[0] = 0;
    if (before < 0 || capacity == 0) return;
    const off_t end = lseek(file, 0, SEEK_END);
    const off_t from = end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0;
    const ssize_t n = pread(file, text, sizeof text - 1, from);
    if (n <= 0) return;
    text[n] = 0;
    for (char *rest = text, *one; (one = strsep(&rest, "\n"));) {
        const int value = worth(one);
        if (value < best) continue;
        best = value;
        snprintf(line, capacity, "%s", one);
    }
    // It stands in a message that may go to a terminal.
    for (char *c = line; *c; c++) {
        if ((unsigned char)*c < 32 || *c == 127) *c = ' ';
    }
}

// May be called from the sound system's threads.
static void pass_on(const char *text)
{
    char line[512];
    if (!atomic_load(&handlers_write)) return;
    const int n = snprintf(line, sizeof line, "%s\n", text);
    // A message that is lost here is lost.
    if (write(file, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1) < 0) return;
}

LIN_PRINTF(5, 6) static void on_alsa_error(const char *source, int line, const char *function, int error, const char *fmt, ...)
{
    char text[400];
    va_list args;
    (void)source, (void)line, (void)function;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n >= 0 && n < (int)sizeof text && error) snprintf(text + n, sizeof text - (size_t)n, ": %s", strerror(error));
    pass_on(text);
}

static void on_jack_message(const char *text)
{
    char line[400];
    snprintf(line, sizeof line, "JACK: %s", text);
    pass_on(line);
}

/* ---- the library ------------------------------------------------------------------------------------------------------------ */

// ISO C knows no cast from dlsym's pointer to one to a function, so its bytes are copied.
static int find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

// ALSA and JACK are reached through PortAudio's dependencies: dlsym looks there too.
static void silence(void *library)
{
    int (*alsa)(void (*)(const char *, int, const char *, int, const char *, ...));
    void (*jack)(void (*)(const char *));
    if (find(library, "snd_lib_error_set_handler", &alsa)) alsa(on_alsa_error);
    if (find(library, "jack_set_error_function", &jack)) jack(on_jack_message);
    if (find(library, "jack_set_info_function", &jack)) jack(on_jack_message);
}

static lin_status load(lin_error *err)
{
    const char *named = getenv("LINNET_PORTAUDIO");
    const char *name = named && *named ? named : "libportaudio.so.2";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return lin_fail(err, LIN_UNSUPPORTED, "no microphone without PortAudio: %s; install it (Debian, Ubuntu: apt-get install libportaudio2)",
                        why ? why : name);
    }
    const char *missing = NULL;
#define FIND(member, symbol, result, parameters)                                                                                   \
    if (!missing && !find(library, symbol, &loaded.member)) missing = symbol;
    LIN_PORTAUDIO_FUNCTIONS(FIND)
#undef FIND
    if (missing) {
        dlclose(library);
        return lin_fail(err, LIN_UNSUPPORTED, "%s is not PortAudio 19: it has no %s", name, missing);
    }
    silence(library);
    is_loaded = 1; // for ever: its libraries start threads and leave hooks behind
    return LIN_OK;
}

static const lin_portaudio *functions(void)
{
    return replaced ? replaced : &loaded;
}

lin_status lin_portaudio_enter(const lin_portaudio **pa, lin_error *err)
{
    *pa = NULL;
    pthread_mutex_lock(&lock);
    lin_status status = is_loaded || replaced ? LIN_OK : load(err);
    if (status == LIN_OK) {
        catch_begin();
        // Counted by PortAudio itself: initialised anew, which looks for devices again, only where nobody keeps it.
        const PaError error = functions()->initialize();
        if (error != paNoError) {
            char noise[256];
            lin_portaudio_noise(noise, sizeof noise);
            catch_end();
            status = lin_fail(err, LIN_IO, "the sound system does not start: %s%s%s", functions()->error_text(error),
                              *noise ? ": " : "", noise);
        }
    }
    if (status != LIN_OK) {
        pthread_mutex_unlock(&lock);
        return status;
    }
    *pa = functions();
    return LIN_OK;
}

void lin_portaudio_leave(void)
{
    functions()->terminate();
    catch_end();
    pthread_mutex_unlock(&lock);
}

void lin_portaudio_keep(void)
{
    if (functions()->initialize() == paNoError) n_kept++;
}

void lin_portaudio_release(void)
{
    if (n_kept == 0) return;
    n_kept--;
    functions()->terminate();
}

void lin_portaudio_replace(const lin_portaudio *others)
{
    pthread_mutex_lock(&lock);
    replaced = others;
    pthread_mutex_unlock(&lock);
}
