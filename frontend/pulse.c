// pulse.c - asks a PulseAudio server for its sources; see pulse.h.

#include "frontend/pulse.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/system.h"

// What is used of libpulse's headers, whose structures and numbers are those of libpulse.so.0 for good. Only first fields are
// declared: the library makes these structures.
enum { NO_AUTOSPAWN = 1, READY = 4, FAILED = 5 }; // pa_context_flags_t; pa_context_state_t, above FAILED: terminated
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

#define FUNCTIONS(X)                                                                                                             \
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

typedef struct functions {
#define MEMBER(name, result, parameters) result(*name) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
} functions;

typedef struct question {
    functions pa;
    void *loop, *context;
    int64_t deadline_ns;
    lin_pulse_source *list;
    size_t capacity;
    int n, sources_done, server_done;
    char *system;
    size_t system_size;
    lin_status status;
} question;

// Whether all functions are there. The library stays loaded: ALSA's plugin will use it too.
static int load(functions *pa)
{
    const char *other = getenv("LINNET_PULSE");
    if (other && !*other) return 0;
    void *library = dlopen(other ? other : "libpulse.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    int all = 1;
#define FIND(name, result, parameters)                                                                                           \
    {                                                                                                                            \
        void *at = dlsym(library, "pa_" #name);                                                                                  \
        memcpy(&pa->name, &at, sizeof at);                                                                                       \
        all &= at != NULL;                                                                                                       \
    }
    FUNCTIONS(FIND)
#undef FIND
    return all;
}

static void on_source(void *context, const source_info *info, int last, void *user)
{
    question *q = user;
    (void)context;
    if (last) q->sources_done = 1; // or an error, below 0
    if (last || !info || !info->name || strlen(info->name) >= sizeof q->list->name || q->status != LIN_OK) return;
    q->status = lin_grow(&q->list, &q->capacity, (size_t)q->n + 1, sizeof *q->list, "a list of devices", NULL);
    if (q->status != LIN_OK) return;
    lin_pulse_source *to = &q->list[q->n++];
    snprintf(to->name, sizeof to->name, "%s", info->name);
    snprintf(to->about, sizeof to->about, "%s", info->description ? info->description : "");
    to->rate_hz = (int)info->spec.rate;
    to->channels = info->spec.channels;
}

static void on_server(void *context, const server_info *info, void *user)
{
    question *q = user;
    (void)context;
    const char *name = info && info->server_name ? info->server_name : "";
    snprintf(q->system, q->system_size, "%s", strstr(name, "PipeWire") ? "PipeWire" : "PulseAudio");
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
    if (!load(&q->pa)) return 0;
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

static void ask(question *q)
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

lin_status lin_pulse_list(lin_pulse_source **list, int *n, char *system, size_t capacity, int timeout_ms, lin_error *err)
{
    question q = {.deadline_ns = lin_now_ns() + timeout_ms * (int64_t)1000000, .system = system, .system_size = capacity};
    *list = NULL;
    *n = 0;
    if (begin(&q)) ask(&q);
    end(&q);
    if (q.status != LIN_OK || !(q.sources_done && q.server_done)) {
        lin_free(q.list);
        return q.status == LIN_OK ? LIN_OK : lin_no_memory(err, "a list of devices", sizeof *q.list);
    }
    *list = q.list;
    *n = q.n;
    return LIN_OK;
}

/* ---- one source, while it is recorded -------------------------------------------------------------------------------------- */

struct lin_pulse_watch {
    question q;
    char source[sizeof ((lin_pulse_source *)0)->name];
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
    const functions *pa = &w->q.pa;
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
