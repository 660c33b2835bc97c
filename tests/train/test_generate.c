// Sequences drawn from networks of tokens: the same with a state and without, in any batch, and with the right frequencies.
#include "train/generate.h"

#include "base/hash.h"
#include "tests/model/token_networks.h"

enum { TOKENS = 300, V = 11, LENGTH = 70, N = 5 };

typedef struct fixture {
    lin_model *model;
    lin_encoder *encoder;
} fixture;

// The kinds of token_networks.h, and a mixture of densities.
enum { MIXTURE = TOKEN_KINDS, KINDS };

static lin_config config_of(int kind)
{
    lin_config c = token_config(kind == MIXTURE ? LINEAR : (token_kind)kind, TOKENS, V);
    if (kind == MIXTURE) c.mixture = 3, c.outputs = 9;
    return c;
}

static fixture make(lin_config config)
{
    fixture f = {0};
    make_network(&config, 2, &f.model, &f.encoder);
    return f;
}

static void drop(fixture *f)
{
    lin_encoder_destroy(f->encoder);
    lin_model_destroy(f->model);
}

static void generate(fixture *f, lin_generate_options o, int *tokens, int n, int given, int until)
{
    lin_generator *g;
    OK(lin_generator_create(f->encoder, &o, n, LENGTH, &g, &err));
    OK(lin_generator_run(g, tokens, given, until, &err));
    lin_generator_destroy(g);
}

static void give(int *tokens, int n, int first)
{
    memset(tokens, -1, (size_t)(n * LENGTH) * sizeof *tokens);
    for (int i = 0; i < n; i++)
        for (int t = 0; t < 3; t++) tokens[i * LENGTH + t] = ((first + i) * 97 + t * 41) % TOKENS;
}

START_TEST(a_state_any_batch_and_all_again_give_the_same)
{
    const lin_config config = config_of(_i);
    static int want[N * LENGTH], got[N * LENGTH];
    if (TEST_LACKS(&config)) return;
    fixture f = make(config);
    lin_generate_options o = {.seed = 3, .threads = 1};
    give(want, N, 0);
    generate(&f, o, want, N, 3, LENGTH);
    int differ = 0;
    for (int i = 3; i < LENGTH; i++) {
        ck_assert(want[i] >= 0 && want[i] < lin_config_symbols(&config));
        differ += want[i] != want[LENGTH + i];
    }
    ck_assert_int_gt(differ, LENGTH / 4);

    o.again = 1;
    o.threads = 2;
    give(got, N, 0);
    generate(&f, o, got, N, 3, LENGTH);
    ck_assert_mem_eq(got, want, sizeof want);

    o.again = 0;
    for (int i = 0; i < N; i++) { // one by one, with the numbers that they had
        o.first = (uint64_t)i;
        give(got, 1, i);
        generate(&f, o, got, 1, 3, LENGTH);
        ck_assert_mem_eq(got, want + i * LENGTH, LENGTH * sizeof *want);
    }
    // in two runs, of which the second goes on; and a run that begins anew
    lin_generator *g;
    o.first = 0;
    give(got, N, 0);
    OK(lin_generator_create(f.encoder, &o, N, LENGTH, &g, &err));
    OK(lin_generator_run(g, got, 3, 30, &err));
    OK(lin_generator_run(g, got, 30, LENGTH, &err));
    ck_assert_mem_eq(got, want, sizeof want);
    OK(lin_generator_run(g, got, 40, LENGTH, &err));
    ck_assert_mem_eq(got, want, sizeof want);
    lin_generator_destroy(g);
    drop(&f);
}
END_TEST

// PyTorch in double drew the same from the same uniform numbers, computing everything again for each token.
START_TEST(the_tokens_of_pytorch)
{
    char folder[64];
    int drawn[GOLDEN_DRAWN + 1], got[3 * LENGTH] = {0};
    golden_case g;
    snprintf(folder, sizeof folder, "network/%s", golden_names[_i]);
    golden_open(&g, folder, golden_drawn_key, drawn);
    if (TEST_LACKS(&g.config)) return;
    golden_load(&g);
    fixture f = make(g.config);
    lin_encoder_destroy(f.encoder);
    memcpy(f.model->values, g.values, g.params.n_elements * sizeof *g.values);
    lin_model_seal(f.model);
    OK(lin_encoder_create(f.model, lin_ops_cpu(), &f.encoder, NULL));
    for (int i = 0; i < 3; i++) got[i * LENGTH] = drawn[0];
    for (int again = 0; again < 2; again++) {
        memset(got + 2 * LENGTH + 1, -1, GOLDEN_DRAWN * sizeof *got);
        generate(&f, (lin_generate_options){.seed = 11, .threads = 1, .again = again}, got, 3, 1,
                 GOLDEN_DRAWN + 1);
        for (int t = 0; t <= GOLDEN_DRAWN; t++)
            ck_assert_msg(got[2 * LENGTH + t] == drawn[t], "%s: token %d is %d, PyTorch's is %d", folder, t, got[2 * LENGTH + t],
                          drawn[t]);
    }
    drop(&f);
    golden_close(&g);
}
END_TEST

// -2 ln of the likelihood ratio of counts against probabilities: about chi squared, with as many degrees as there are values.
static double distance(const int *counts, const double *p, int n, int total)
{
    double g = 0;
    for (int v = 0; v < n; v++)
        if (counts[v]) g += 2 * counts[v] * log(counts[v] / (p[v] * total));
    return g;
}

// 20,000 sequences with the same beginning: their next tokens have the frequencies that the network gives.
START_TEST(tokens_have_their_frequencies)
{
    enum { MANY = 20000 };
    const lin_config config = config_of(_i ? MIXTURE : LINEAR);
    if (TEST_LACKS(&config)) return;
    fixture f = make(config);
    lin_worker *worker;
    lin_generator *g;
    const int given[3] = {7, 260, 41}, n = lin_config_symbols(&config);
    const float x[6] = {7, 0, 4, 256, 41, 0};
    float out[3 * 16];
    int counts[LIN_LEVELS] = {0};
    double p[LIN_LEVELS];
    OK(lin_worker_create(f.encoder, 1, &worker, &err));
    OK(lin_encoder_run(worker, x, (const int[]){0, 3}, 1, out, &err));
    const float *last = out + 2 * config.outputs;
    for (int v = 0; v < n; v++) {
        p[v] = _i ? 0 : exp((double)last[v]);
        for (int m = 0; m < config.mixture; m++) { // the textbook form
            double prior = 0;
            for (int k = 0; k < config.mixture; k++) prior += exp((double)(last[k] - last[m]));
            const double s = exp(-fmax((double)last[2 * config.mixture + m], -7)),
                         c = v / 127.5 - 1 - (double)last[config.mixture + m],
                         above = v == 255 ? 1 : 1 / (1 + exp(-s * (c + 1.0 / 255))),
                         below = v == 0 ? 0 : 1 / (1 + exp(-s * (c - 1.0 / 255)));
            p[v] += (above - below) / prior;
        }
    }
    const lin_generate_options o = {.seed = 11, .threads = 1};
    int *tokens = malloc(MANY * 4 * sizeof *tokens);
    for (int i = 0; i < MANY; i++) memcpy(tokens + 4 * i, given, sizeof given);
    OK(lin_generator_create(f.encoder, &o, MANY, 4, &g, &err));
    OK(lin_generator_run(g, tokens, 3, 4, &err));
    for (int i = 0; i < MANY; i++) counts[tokens[4 * i + 3]]++;
    const double d = distance(counts, p, n, MANY);
    ck_assert_msg(d < n + 5 * sqrt(2.0 * n), "distance %g for %d values", d, n); // within five deviations
    lin_generator_destroy(g);
    free(tokens);
    lin_worker_destroy(worker);
    drop(&f);
}
END_TEST

static int stop_at_9(void *context, int done)
{
    (void)context;
    return done == 9;
}

START_TEST(misuse_is_answered)
{
    lin_generator *g;
    lin_generate_options o = {.threads = 1};
    int tokens[2 * 20] = {0};
    lin_config c = config_of(LINEAR);
    fixture f = make(c);
    FAILS(lin_generator_create(f.encoder, &o, 0, 20, &g, &err), LIN_INVALID, "");
    FAILS(lin_generator_create(f.encoder, &o, 2, 1, &g, &err), LIN_INVALID, "");
    o.stop = stop_at_9;
    OK(lin_generator_create(f.encoder, &o, 2, 20, &g, &err));
    FAILS(lin_generator_run(g, tokens, 0, 20, &err), LIN_INVALID, "");
    FAILS(lin_generator_run(g, tokens, 2, 21, &err), LIN_INVALID, "");
    tokens[21] = TOKENS;
    FAILS(lin_generator_run(g, tokens, 2, 20, &err), LIN_INVALID, "");
    tokens[21] = 0;
    FAILS(lin_generator_run(g, tokens, 2, 20, &err), LIN_STOPPED, "");
    lin_generator_destroy(g);
    drop(&f);
    c.causal = 0;
    f = make(c);
    FAILS(lin_generator_create(f.encoder, &o, 2, 20, &g, &err), LIN_UNSUPPORTED, "");
    drop(&f);
    c.causal = 1;
    c.tokens = 4; // fewer than there are outputs
    f = make(c);
    FAILS(lin_generator_create(f.encoder, &o, 2, 20, &g, &err), LIN_UNSUPPORTED, "");
    drop(&f);
}
END_TEST

TEST_MAIN("model/generate", TESTS(a_state_any_batch_and_all_again_give_the_same, 0, KINDS),
          TESTS(the_tokens_of_pytorch, GOLDEN_TOKENS, GOLDEN_CASES), TESTS(tokens_have_their_frequencies, 0, 2),
          TEST(misuse_is_answered))
