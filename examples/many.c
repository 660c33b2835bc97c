// many.c - a hundred speakers at once, who all say the same: many SOUND.wav (16 kHz, mono, 16 bits)
#include <linnet.h>
#include <stdio.h>

enum { STREAMS = 100, RATE = 16000, MOST = 60 * RATE, PIECE = RATE / 10, HEADER = 44 };

static float samples[MOST];

static size_t read_sound(const char *path)
{
    size_t n = 0;
    unsigned char byte[2];
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, HEADER, SEEK_SET)) return 0;
    for (; n < MOST && fread(byte, 1, 2, file) == 2; n++) samples[n] = (float)(int16_t)(byte[0] | byte[1] << 8) / 32768;
    fclose(file);
    return n;
}

static int fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return 1;
}

int main(int argc, char **argv)
{
    linnet_error err;
    linnet_model *model;
    linnet_engine *engine;
    linnet_engine_options how;
    linnet_stream stream[STREAMS];
    int number[STREAMS];
    const linnet_event *event;
    const size_t n = argc == 2 ? read_sound(argv[1]) : 0;

    if (!n) return fail("usage: many SOUND.wav");
    linnet_engine_options_init(&how, sizeof how);
    how.streams = STREAMS;
    how.queue_s = 60; // sound comes faster here than anyone speaks
    if (linnet_model_load(NULL, NULL, &model, &err) || linnet_engine_create(model, &how, &engine, &err)) return fail(err.message);
    for (int i = 0; i < STREAMS; i++) {
        number[i] = i + 1;
        if (linnet_engine_open(engine, RATE, 1, &number[i], &stream[i], &err)) return fail(err.message);
    }
    for (size_t at = 0; at < n; at += PIECE) // a tenth of a second of everyone
        for (int i = 0; i < STREAMS; i++)
            if (linnet_engine_push(engine, stream[i], samples + at, n - at < PIECE ? n - at : PIECE, &err))
                return fail(err.message);
    for (int i = 0; i < STREAMS; i++) linnet_engine_finish(engine, stream[i], NULL);
    for (int left = STREAMS; left > 0 && (event = linnet_engine_next(engine, 60)) != NULL;) {
        const int who = *(int *)event->user;
        if (event->kind == LINNET_UTTERANCE) printf("%3d: %s\n", who, linnet_result_text(event->utterance->settled));
        if (event->kind == LINNET_FAILED) fprintf(stderr, "%3d: %s\n", who, linnet_status_name(event->status));
        if (event->kind == LINNET_ENDED || event->kind == LINNET_FAILED) left--;
    }
    linnet_engine_destroy(engine);
    linnet_model_destroy(model);
    return 0;
}
