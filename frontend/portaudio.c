// portaudio.c - the thread that calls PortAudio, and time limits on it; the sources of a PulseAudio server; see portaudio.h.

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

#include "base/memory.h"
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

// How much a line helps a user without a microphone: PortAudio's own lines name places in its source; most machines have no JACK.
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

// PortAudio ends the program by an assertion where ALSA's configuration has no devices.
static int lacks_alsa_configuration(void *library)
{
    int (*update)(void), (*search)(void *, const char *, void **);
    void **top, *node;
    return lin_system_symbol(library, "snd_config_update", &update) && lin_system_symbol(library, "snd_config", &top) &&
           lin_system_symbol(library, "snd_config_search", &search) && (update() < 0 || search(*top, "pcm", &node) < 0);
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
    if (lacks_alsa_configuration(library))
        return lin_fail(err, LIN_IO, "no microphone: the configuration of ALSA cannot be read");
    is_loaded = 1; // never unloaded: its libraries start threads and leave hooks
    return LIN_OK;
}

void lin_portaudio_replace(const lin_portaudio *others) { replaced = others; }

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
    LIN_TRY(is_loaded || replaced ? LIN_OK : load(err));
    *pa = replaced ? replaced : &loaded;
    const PaError error = (*pa)->initialize();
    if (error == paNoError) return LIN_OK;
    char noise[256];
    const char *text = (*pa)->error_text(error);
    const PaHostErrorInfo *host = error == paUnanticipatedHostError ? (*pa)->host_error() : NULL;
    lin_portaudio_noise(noise, sizeof noise);
    if (host && host->errorText && *host->errorText) snprintf(noise, sizeof noise, "%s", host->errorText);
    *pa = NULL;
    return lin_fail(err, LIN_IO, "no microphone: the sound system cannot be initialised: %s%s%s", text, *noise ? ": " : "",
                    noise);
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
    if (status == LIN_OK && sound.state == LEFT)
        status = lin_fail(err, LIN_IO,
                          "the sound system still does not respond; restart the sound server (PipeWire, "
                          "PulseAudio, JACK)");
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

/* ---- sources of a sound server --------------------------------------------------------------------------------------------- */

// What is used of libpulse's headers, whose structures and numbers are those of libpulse.so.0 for good. Only first fields are
// declared: the library makes these structures.
enum { NO_AUTOSPAWN = 1, READY = 4, FAILED = 5 };              // pa_context_flags_t; pa_context_state_t, above FAILED: terminated
enum { OF_SOURCES = 2, CHANGE = 0x3f, SOURCE_REMOVED = 0x21 }; // pa_subscription_mask_t, pa_subscription_event_type_t
enum { TURN_MS = 60000 };

typedef struct sample_spec {
    int format;
    uint32_t rate;
    uint8_t channels;
} sample_spec;

typedef struct source_info {
    const char *name;
    uint32_t index;
    const char *description;
    sample_spec spec;
} source_info;

typedef struct server_info {
    const char *user_name, *host_name, *server_version, *server_name; // "pulseaudio", "PulseAudio (on PipeWire 0.3.65)"
} server_info;

typedef void (*source_callback)(void *context, const source_info *info, int last, void *user);
typedef void (*server_callback)(void *context, const server_info *info, void *user);
typedef void (*change_callback)(void *context, int event, uint32_t index, void *user);

#define PULSE_FUNCTIONS(X)                                                                                                       \
    X(mainloop_new, void *, (void))                                                                                              \
    X(mainloop_get_api, void *, (void *loop))                                                                                    \
    X(mainloop_prepare, int, (void *loop, int timeout_us))                                                                       \
    X(mainloop_poll, int, (void *loop))                                                                                          \
    X(mainloop_dispatch, int, (void *loop))                                                                                      \
    X(mainloop_free, void, (void *loop))                                                                                         \
    X(mainloop_wakeup, void, (void *loop))                                                                                       \
    X(context_new, void *, (void *api, const char *name))                                                                        \
    X(context_connect, int, (void *context, const char *server, int flags, const void *spawn))                                   \
    X(context_get_state, int, (const void *context))                                                                             \
    X(context_disconnect, void, (void *context))                                                                                 \
    X(context_unref, void, (void *context))                                                                                      \
    X(context_get_source_info_list, void *, (void *context, source_callback seen, void *user))                                   \
    X(context_get_server_info, void *, (void *context, server_callback seen, void *user))                                        \
    X(context_set_subscribe_callback, void, (void *context, change_callback seen, void *user))                                   \
    X(context_subscribe, void *, (void *context, int mask, void *done, void *user))                                              \
    X(operation_unref, void, (void *operation))

typedef struct pulse_functions {
#define MEMBER(name, result, parameters) result(*name) parameters;
    PULSE_FUNCTIONS(MEMBER)
#undef MEMBER
} pulse_functions;

typedef struct question {
    pulse_functions pa;
    void *loop, *context;
    int64_t deadline_ns;
    lin_microphone_info *list; // [n]
    size_t capacity;
    int n, sources_done, server_done;
    const char *system;
    lin_status status;
} question;

// Whether all functions are there. The library stays loaded: ALSA's plugin will use it too.
static int load_pulse(pulse_functions *pa)
{
    const char *other = getenv("LINNET_PULSE");
    if (other && !*other) return 0;
    void *library = dlopen(other ? other : "libpulse.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    int all = 1;
#define FIND(name, result, parameters) all &= lin_system_symbol(library, "pa_" #name, &pa->name);
    PULSE_FUNCTIONS(FIND)
#undef FIND
    return all;
}

static void on_source(void *context, const source_info *info, int last, void *user)
{
    question *q = user;
    (void)context;
    if (last) q->sources_done = 1; // or an error, below 0
    if (last || !info || !info->name || strlen(info->name) >= sizeof q->list->source || q->status != LIN_OK) return;
    q->status = lin_grow(&q->list, &q->capacity, (size_t)q->n + 1, sizeof *q->list, "a list of devices", NULL);
    if (q->status != LIN_OK) return;
    lin_microphone_info *to = &q->list[q->n++];
    *to = (lin_microphone_info){.rate_hz = (int)info->spec.rate, .channels = info->spec.channels};
    const char *about = info->description ? info->description : "";
    snprintf(to->source, sizeof to->source, "%s", info->name);
    snprintf(to->name, sizeof to->name, *about ? "%.127s (%s)" : "%s%s", about, info->name);
}

static void on_server(void *context, const server_info *info, void *user)
{
    question *q = user;
    (void)context;
    const char *name = info && info->server_name ? info->server_name : "";
    q->system = strstr(name, "PipeWire") ? "PipeWire" : "PulseAudio";
    q->server_done = 1;
}

// Waits for an event of the server, but not beyond the deadline.
static int turn(const question *q)
{
    const int64_t left = q->deadline_ns - lin_now_ns();
    const int most = left / 1000000 < TURN_MS ? (int)(left / 1000) : TURN_MS * 1000;
    return left > 0 && q->pa.mainloop_prepare(q->loop, most) >= 0 && q->pa.mainloop_poll(q->loop) >= 0 &&
           q->pa.mainloop_dispatch(q->loop) >= 0 && q->pa.context_get_state(q->context) < FAILED;
}

static int begin(question *q)
{
    if (!load_pulse(&q->pa)) return 0;
    q->loop = q->pa.mainloop_new();
    q->context = q->loop ? q->pa.context_new(q->pa.mainloop_get_api(q->loop), "linnet") : NULL;
    return q->context != NULL;
}

static void end(question *q)
{
    if (q->context) {
        q->pa.context_disconnect(q->context);
        q->pa.context_unref(q->context);
    }
    if (q->loop) q->pa.mainloop_free(q->loop);
}

static void ask_server(question *q)
{
    if (q->pa.context_connect(q->context, NULL, NO_AUTOSPAWN, NULL) < 0) return;
    while (q->pa.context_get_state(q->context) != READY)
        if (!turn(q)) return;
    void *waits[] = {q->pa.context_get_server_info(q->context, on_server, q),
                     q->pa.context_get_source_info_list(q->context, on_source, q)};
    while (!(q->sources_done && q->server_done) && turn(q)) continue;
    for (int i = 0; i < 2; i++)
        if (waits[i]) q->pa.operation_unref(waits[i]);
}

lin_status lin_pulse_list(lin_microphone_info **list, int *n, int index, int through, int timeout_ms, lin_error *err)
{
    question q = {.deadline_ns = lin_now_ns() + timeout_ms * (int64_t)1000000, .list = *list, .capacity = (size_t)*n, .n = *n};
    if (begin(&q)) ask_server(&q);
    end(&q);
    *list = q.list;
    if (q.status != LIN_OK) return lin_no_memory(err, "a list of devices", sizeof *q.list);
    if (!(q.sources_done && q.server_done)) return LIN_OK;
    for (int i = *n; i < q.n; i++) {
        q.list[i].index = index + i - *n;
        q.list[i].through = through;
        snprintf(q.list[i].system, sizeof q.list[i].system, "%s", q.system);
    }
    *n = q.n;
    return LIN_OK;
}

/* ---- one source, while it is recorded -------------------------------------------------------------------------------------- */

struct lin_pulse_watch {
    question q;
    char source[sizeof((lin_microphone_info *)0)->source];
    uint32_t index;
    int is_listed, is_gone;
    void (*gone)(void *user);
    void *user;
    atomic_int stop;
    pthread_t thread;
};

static void on_listed(void *context, const source_info *info, int last, void *user)
{
    lin_pulse_watch *w = user;
    (void)context;
    if (info && !last && info->name && strcmp(info->name, w->source) == 0) {
        w->index = info->index;
        w->is_listed = 1;
    }
    w->is_gone |= last > 0 && !w->is_listed;
}

static void on_change(void *context, int event, uint32_t index, void *user)
{
    lin_pulse_watch *w = user;
    (void)context;
    w->is_gone |= (event & CHANGE) == SOURCE_REMOVED && w->is_listed && index == w->index;
}

static int goes_on(lin_pulse_watch *w) { return !atomic_load(&w->stop) && turn(&w->q); }

// Until it is stopped, the source is gone, or the server is.
static void *watch(void *context)
{
    lin_pulse_watch *w = context;
    const pulse_functions *pa = &w->q.pa;
    if (pa->context_connect(w->q.context, NULL, NO_AUTOSPAWN, NULL) < 0) return NULL;
    while (pa->context_get_state(w->q.context) != READY)
        if (!goes_on(w)) return NULL;
    pa->context_set_subscribe_callback(w->q.context, on_change, w);
    // The server answers in this order: what is removed after the list is reported.
    void *waits[] = {pa->context_subscribe(w->q.context, OF_SOURCES, NULL, NULL),
                     pa->context_get_source_info_list(w->q.context, on_listed, w)};
    while (!w->is_gone && goes_on(w)) continue;
    for (int i = 0; i < 2; i++)
        if (waits[i]) pa->operation_unref(waits[i]);
    if (w->is_gone) w->gone(w->user);
    return NULL;
}

lin_pulse_watch *lin_pulse_watch_start(const char *source, void (*gone)(void *user), void *user)
{
    lin_pulse_watch *w = lin_calloc(1, sizeof *w);
    if (!w) return NULL;
    w->q.deadline_ns = INT64_MAX;
    w->gone = gone;
    w->user = user;
    snprintf(w->source, sizeof w->source, "%s", source);
    if (begin(&w->q) && pthread_create(&w->thread, NULL, watch, w) == 0) return w;
    end(&w->q);
    lin_free(w);
    return NULL;
}

void lin_pulse_watch_stop(lin_pulse_watch *w)
{
    if (!w) return;
    atomic_store(&w->stop, 1);
    w->q.pa.mainloop_wakeup(w->q.loop);
    pthread_join(w->thread, NULL);
    end(&w->q);
    lin_free(w);
}
