// portaudio.c - the thread that calls PortAudio, and time limits on it; see portaudio.h.

#include "frontend/portaudio.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "base/system.h"

/* ---- standard error, on the thread of the sound system --------------------------------------------------------------------- */

static int is_private; // this thread has its own table of descriptors
static int file = -1;  // in memory; a pipe could fill up and block its writer
static int nowhere = -1;
static int before = -1; // a copy of the original standard error; -1: nothing is captured

// ALSA and JACK accept error handlers. The handlers stay installed, and discard messages while nothing is captured.
static atomic_int is_caught;

static void own_descriptors(void)
{
#ifdef __linux__ // elsewhere the libraries may print
    is_private = unshare(CLONE_FILES) == 0;
#ifdef SYS_close_range
    // Do not keep descriptors open that the rest of the program closes.
    if (is_private) syscall(SYS_close_range, 3, ~0u, 0);
#endif
    file = memfd_create("stderr", MFD_CLOEXEC);
#endif
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (is_private && nowhere >= 0) dup2(nowhere, STDERR_FILENO);
}

static void catch_begin(void)
{
    if (file < 0 || ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) return;
    // Above the standard descriptors, so that it does not replace one that is closed.
    before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (before < 0) return;
    if (dup2(file, STDERR_FILENO) < 0) {
        close(before);
        before = -1;
        return;
    }
    atomic_store(&is_caught, 1);
}

static void catch_end(void)
{
    if (before < 0) return;
    atomic_store(&is_caught, 0);
    while (dup2(before, STDERR_FILENO) < 0 && (errno == EINTR || errno == EBUSY)) continue;
    close(before);
    before = -1;
}

// How much a line helps a user without a microphone: PortAudio's own lines are places in its source; most machines have no JACK.
static int informative(const char *line)
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
        const int value = informative(one);
        if (value < best) continue;
        best = value;
        snprintf(line, capacity, "%s", one);
    }
    // The message may be printed on a terminal.
    for (char *c = line; *c; c++) {
        if ((unsigned char)*c < 32 || *c == 127) *c = ' ';
    }
}

// May be called from the threads of the sound system.
static void pass_on(const char *text)
{
    char line[512];
    if (!atomic_load(&is_caught)) return;
    const int n = snprintf(line, sizeof line, "%s\n", text);
    // A failed write only loses the message.
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

/* ---- the library ----------------------------------------------------------------------------------------------------------- */

// ALSA and JACK are dependencies of PortAudio: dlsym searches them too.
static void silence(void *library)
{
    int (*alsa)(void (*)(const char *, int, const char *, int, const char *, ...));
    void (*jack)(void (*)(const char *));
    if (lin_system_symbol(library, "snd_lib_error_set_handler", &alsa)) alsa(on_alsa_error);
    if (lin_system_symbol(library, "jack_set_error_function", &jack)) jack(on_jack_message);
    if (lin_system_symbol(library, "jack_set_info_function", &jack)) jack(on_jack_message);
}

static lin_portaudio loaded;
static int is_loaded;
static const lin_portaudio *replaced;

static lin_status load(lin_error *err)
{
    const char *named = getenv("LINNET_PORTAUDIO");
    const char *name = named && *named ? named : "libportaudio.so.2";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return lin_fail(err, LIN_UNSUPPORTED,
                        "no microphone without PortAudio: %s; install it (Debian, Ubuntu: apt-get install "
                        "libportaudio2)",
                        why ? why : name);
    }
    const char *missing = NULL;
#define FIND(member, symbol, result, parameters)                                                                                 \
    if (!missing && !lin_system_symbol(library, symbol, &loaded.member)) missing = symbol;
    LIN_PORTAUDIO_FUNCTIONS(FIND)
#undef FIND
    if (missing) {
        dlclose(library);
        return lin_fail(err, LIN_UNSUPPORTED, "%s is not PortAudio 19: it has no %s", name, missing);
    }
    silence(library);
    is_loaded = 1; // never unloaded: its libraries start threads and leave hooks
    return LIN_OK;
}

void lin_portaudio_replace(const lin_portaudio *others) { replaced = others; }

// PortAudio counts its initialisations: only the first searches for devices, only the last termination closes everything.
void lin_portaudio_keep(const lin_portaudio *pa) { pa->initialize(); }

void lin_portaudio_release(const lin_portaudio *pa) { pa->terminate(); }

/* ---- the thread of the sound system ---------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t turn; // held by the caller whose request runs
    pthread_mutex_t lock; // of the following
    pthread_cond_t asked, answered;
    int runs; // the thread exists
    enum { IDLE, ASKED, ANSWERED, LEFT } state;
    lin_portaudio_work work;
    void (*undo)(const lin_portaudio *pa, void *context, lin_status status);
    void *context;
    lin_status status;
    lin_error err;
} sound = {.turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .asked = PTHREAD_COND_INITIALIZER};

static lin_status initialize(const lin_portaudio **pa, lin_error *err)
{
    lin_status status = is_loaded || replaced ? LIN_OK : load(err);
    if (status != LIN_OK) return status;
    *pa = replaced ? replaced : &loaded;
    const PaError error = (*pa)->initialize();
    if (error == paNoError) return LIN_OK;
    char noise[256];
    const char *text = (*pa)->error_text(error);
    lin_portaudio_noise(noise, sizeof noise);
    *pa = NULL;
    return lin_fail(err, LIN_IO, "cannot initialise the sound system: %s%s%s", text, *noise ? ": " : "", noise);
}

static void serve(void)
{
    const lin_portaudio *pa = NULL;
    lin_error err = {0};
    catch_begin();
    lin_status status = initialize(&pa, &err);
    if (status == LIN_OK) status = sound.work(pa, sound.context, &err);
    if (pa) pa->terminate();
    catch_end();
    pthread_mutex_lock(&sound.lock);
    const int left = sound.state == LEFT;
    if (!left) {
        sound.status = status;
        sound.err = err;
        sound.state = ANSWERED;
        pthread_cond_signal(&sound.answered);
    }
    pthread_mutex_unlock(&sound.lock);
    if (!left) return;
    catch_begin();
    if (sound.undo) sound.undo(pa, sound.context, status);
    catch_end();
    pthread_mutex_lock(&sound.lock);
    sound.state = IDLE;
    pthread_mutex_unlock(&sound.lock);
}

static void *sound_main(void *unused)
{
    own_descriptors();
    pthread_mutex_lock(&sound.lock);
    for (;;) {
        while (sound.state != ASKED) pthread_cond_wait(&sound.asked, &sound.lock);
        pthread_mutex_unlock(&sound.lock);
        serve();
        pthread_mutex_lock(&sound.lock);
    }
    return unused;
}

// With all signals blocked, also in the threads of the sound system: the program handles them, and they must end a reader's wait.
static lin_status start_thread(lin_error *err)
{
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t all, old;
    lin_condition_init(&sound.answered);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = pthread_create(&thread, &detached, sound_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&detached);
    if (error) return lin_fail(err, LIN_IO, "cannot start a thread for the sound system: %s", strerror(error));
    sound.runs = 1;
    return LIN_OK;
}

// With the lock held. The previous request may still be running.
static lin_status ask(int timeout_ms, int *hangs, lin_error *err)
{
    const int64_t until = lin_now_ns() + (int64_t)timeout_ms * 1000000;
    sound.state = ASKED;
    pthread_cond_signal(&sound.asked);
    while (sound.state == ASKED) {
        if (lin_condition_wait_until(&sound.answered, &sound.lock, until) != ETIMEDOUT || sound.state != ASKED) continue;
        sound.state = LEFT;
        *hangs = 1;
        return lin_fail(err, LIN_IO,
                        "the sound system has not responded for %g s; restart the sound server (PipeWire, PulseAudio, "
                        "JACK)",
                        timeout_ms * 1e-3);
    }
    sound.state = IDLE;
    if (sound.status == LIN_OK) return LIN_OK;
    return lin_fail(err, sound.status, "%s", sound.err.message);
}

lin_status lin_portaudio_run(lin_portaudio_work work, void (*undo)(const lin_portaudio *pa, void *context, lin_status status),
                             void *context, int timeout_ms, int *hangs, lin_error *err)
{
    *hangs = 0;
    pthread_mutex_lock(&sound.turn);
    pthread_mutex_lock(&sound.lock);
    lin_status status = sound.runs ? LIN_OK : start_thread(err);
    if (status == LIN_OK && sound.state == LEFT) {
        status = lin_fail(err, LIN_IO,
                          "the sound system still does not respond; restart the sound server (PipeWire, "
                          "PulseAudio, JACK)");
    }
    if (status == LIN_OK) {
        sound.work = work;
        sound.undo = undo;
        sound.context = context;
        status = ask(timeout_ms, hangs, err);
    }
    pthread_mutex_unlock(&sound.lock);
    pthread_mutex_unlock(&sound.turn);
    return status;
}
