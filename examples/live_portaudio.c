// live_portaudio.c - the microphone to words, until Ctrl-C: live_portaudio
#include <linnet.h>
#include <portaudio.h>
#include <signal.h>
#include <stdio.h>

enum { RATE = 16000, FRAMES = 800 }; // 50 ms at a time

static volatile sig_atomic_t stopped;
static void stop(int signal_number) { (void)signal_number, stopped = 1; }

static void show(linnet_session *session)
{
    const linnet_utterance *u;
    while ((u = linnet_session_next(session)) != NULL) {
        printf("\r\033[K%s", linnet_result_text(u->settled)); // provisional words in grey behind what is settled
        if (u->end == LINNET_GROWS) printf(" \033[90m%s\033[0m", linnet_result_text(u->provisional));
        else printf("\n");
    }
    fflush(stdout);
}

int main(void)
{
    linnet_error err;
    linnet_model *model = NULL;
    linnet_decoder *words = NULL;
    linnet_session *session = NULL;
    linnet_decoder_options decoding;
    linnet_session_options options;
    PaStream *microphone = NULL;
    float samples[FRAMES];

    linnet_decoder_options_init(&decoding, sizeof decoding);
    decoding.words = 1;
    linnet_session_options_init(&options, sizeof options);
    options.rate_hz = RATE;
    if (linnet_model_load(NULL, NULL, &model, &err) || linnet_decoder_create(model, &decoding, &words, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    options.decoder = words;
    if (linnet_session_create(model, &options, &session, &err)) return fprintf(stderr, "%s\n", err.message), 1;
    if (Pa_Initialize() || Pa_OpenDefaultStream(&microphone, 1, 0, paFloat32, RATE, FRAMES, NULL, NULL) ||
        Pa_StartStream(microphone))
        return fprintf(stderr, "there is no microphone\n"), 1;
    signal(SIGINT, stop);
    while (!stopped) {
        Pa_ReadStream(microphone, samples, FRAMES); // an overflow loses sound, and is no reason to stop
        if (linnet_session_push(session, samples, FRAMES, &err)) return fprintf(stderr, "%s\n", err.message), 1;
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
