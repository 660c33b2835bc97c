// file.c - a sound file to words with times: file SOUND
#include <linnet.h>
#include <stdio.h>

static void print_words(const linnet_result *result)
{
    for (int i = 0; i < linnet_result_words(result); i++) {
        const linnet_word *w = linnet_result_word(result, i);
        printf("%8.2f %8.2f  %3.0f %%  %s\n", w->start_s, w->end_s, 100 * (double)w->confidence, w->text);
    }
}

int main(int argc, char **argv)
{
    linnet_error err;
    linnet_model *model = NULL;
    linnet_decoder *words = NULL;
    linnet_result *result = NULL;
    linnet_decoder_options options;

    if (argc != 2) {
        fprintf(stderr, "usage: %s SOUND\n", argv[0]);
        return 2;
    }
    linnet_decoder_options_init(&options, sizeof options);
    options.words = 1;
    if (linnet_model_load(NULL, NULL, &model, &err) || linnet_decoder_create(model, &options, &words, &err) ||
        linnet_decode_file(model, argv[1], words, &result, &err)) {
        fprintf(stderr, "%s\n", err.message);
    } else {
        printf("%s\n", linnet_result_text(result));
        print_words(result);
        if (*linnet_result_describe(result)->warning) fprintf(stderr, "%s\n", linnet_result_describe(result)->warning);
    }
    linnet_result_destroy(result);
    linnet_decoder_destroy(words);
    linnet_model_destroy(model);
    return result == NULL;
}
