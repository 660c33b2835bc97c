// live_portaudio.c - the microphone to words, until Ctrl-C: live_portaudio
#include <linnet.h>
#include <portaudio.h>
#include <signal.h>
#include <stdio.h>

enum { RATE = 16000, FRAMES = 800 }; // 50 ms at a time

static volatile sig_atomic_t stopped;
static void stop(int signal_number) { stopped = signal_number; }

static int fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return 1;
}

static void show(linnet_session *session)
{
    for (const linnet_utterance *u; (u = linnet_session_next(session)) != NULL;) {
        printf("\r\033[K%s", linnet_result_text(u->settled)); // then what may still change, in grey
        printf(u->end == LINNET_GROWS ? " \033[90m%s\033[0m" : "%s\n", linnet_result_text(u->provisional));
    }
    fflush(stdout);
}

int main(void)
{
    linnet_error err;
    linnet_model *model;
    linnet_decoder *words;
    linnet_decoder_options how;
    linnet_session *session;
    linnet_session_options options;
    PaStream *mic;
    float samples[FRAMES];

    linnet_decoder_options_init(&how, sizeof how);
    how.words = 1;
    linnet_session_options_init(&options, sizeof options);
    if (linnet_model_load(NULL, NULL, &model, &err) || linnet_decoder_create(model, &how, &words, &err)) return fail(err.message);
    options.rate_hz = RATE;
    options.decoder = words;
    if (linnet_session_create(model, &options, &session, &err)) return fail(err.message);
    if (Pa_Initialize() || Pa_OpenDefaultStream(&mic, 1, 0, paFloat32, RATE, FRAMES, NULL, NULL) || Pa_StartStream(mic))
        return fail("there is no microphone");
    signal(SIGINT, stop);
    while (!stopped) {
        Pa_ReadStream(mic, samples, FRAMES); // an overflow loses sound, and is no reason to stop
        if (linnet_session_push(session, samples, FRAMES, &err)) return fail(err.message);
        show(session);
    }
    linnet_session_finish(session, NULL);
    show(session);
    Pa_Terminate();
    linnet_session_destroy(session);
    linnet_decoder_destroy(words);
    linnet_model_destroy(model);
    return 0;
}
