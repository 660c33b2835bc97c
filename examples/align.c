// align.c - when each phoneme of a known text was said, and how well: align SOUND "TEXT"
#include <linnet.h>
#include <stdio.h>

static void print_phones(const linnet_result *result)
{
    for (int w = 0; w < linnet_result_words(result); w++) {
        const linnet_word *word = linnet_result_word(result, w);
        printf("%8.2f %8.2f  %s\n", word->start_s, word->end_s, word->text);
        for (int i = 0; i < word->n_phones; i++) {
            const linnet_phone *p = linnet_result_phone(result, word->first_phone + i);
            const double goodness = p->goodness > -0.05f ? 0 : (double)p->goodness; /* not -0.0 */
            printf("%8.2f %8.2f      %-3s %s  goodness %5.1f", p->start_s, p->end_s, p->name, p->ipa, goodness);
            printf(p->said ? ", said: %s\n" : "\n", p->said && *p->said ? p->said : "nothing");
        }
    }
}

int main(int argc, char **argv)
{
    linnet_error err;
    linnet_model *model = NULL;
    linnet_aligner *aligner = NULL;
    linnet_result *result = NULL;
    linnet_sound sound;

    if (argc != 3) {
        fprintf(stderr, "usage: %s SOUND \"TEXT\"\n", argv[0]);
        return 2;
    }
    linnet_sound_init(&sound, sizeof sound);
    sound.path = argv[1];
    if (linnet_model_load(NULL, NULL, &model, &err) || linnet_aligner_create(model, NULL, &aligner, &err) ||
        linnet_align(aligner, &sound, argv[2], &result, &err)) {
        fprintf(stderr, "%s\n", err.message);
    } else {
        print_phones(result);
        if (*linnet_result_describe(result)->warning) fprintf(stderr, "%s\n", linnet_result_describe(result)->warning);
    }
    linnet_result_destroy(result);
    linnet_aligner_destroy(aligner);
    linnet_model_destroy(model);
    return result == NULL;
}
