// Log-probabilities of sequences of tokens: those of each sequence alone, to the bit; the rows of a tree; what is refused.
#include "model/token_scorer.h"

#include "base/hash.h"
#include "tests/model/token_networks.h"

enum { TOKENS = 30, V = 30, N = 40, LONGEST = 60 };

typedef struct fixture {
    lin_model *model;
    lin_encoder *encoder;
    lin_token_scorer *scorer;
} fixture;

static void make(fixture *f, const lin_config *config, float scale)
{
    *f = (fixture){0};
    make_network(config, scale, &f->model, &f->encoder);
    if (!config->tokens) return;
    OK(lin_token_scorer_create(f->encoder, &f->scorer, &err));
}

static void drop(fixture *f)
{
    lin_token_scorer_destroy(f->scorer);
    lin_encoder_destroy(f->encoder);
    lin_model_destroy(f->model);
}

// Sequences that part from an earlier one at a random place, or are its beginning, or the same.
static void draw(int *tokens, int *offsets, uint64_t seed, int n, int longest)
{
    offsets[0] = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t key = lin_random_key(seed, (uint64_t)i), bits = lin_random_bits(key, 0);
        const int from = i ? (int)(bits % (uint64_t)i) : 0, length = 1 + (int)((bits >> 16) % (uint64_t)longest);
        const int same = i ? (int)((bits >> 32) % (uint64_t)(offsets[from + 1] - offsets[from] + 1)) : 0;
        int *to = tokens + offsets[i];
        for (int t = 0; t < length; t++)
            to[t] = t < same ? tokens[offsets[from] + t] : (int)(lin_random_bits(key, (uint64_t)t + 1) % TOKENS);
        if (i % 3) to[0] = 0; // most begin alike
        offsets[i + 1] = offsets[i] + length;
    }
}

// One after the other, with nothing shared.
static double alone(fixture *f, const int *tokens, int n)
{
    static float features[2 * 4096], logp[V * 4096];
    lin_worker *worker;
    double sum = 0;
    memset(features, 0, sizeof features);
    for (int t = 0; t < n - 1; t++) features[2 * t] = (float)tokens[t];
    OK(lin_worker_create(f->encoder, 1, &worker, &err));
    OK(lin_encoder_run(worker, features, (const int[]){0, n - 1}, 1, logp, &err));
    for (int t = 1; t < n; t++) sum += (double)logp[(t - 1) * V + tokens[t]];
    lin_worker_destroy(worker);
    return sum;
}

START_TEST(each_as_if_it_were_alone)
{
    static int tokens[N * LONGEST], offsets[N + 1];
    const lin_config config = token_config((token_kind)_i, TOKENS, V);
    fixture f;
    if (TEST_LACKS(&config)) return;
    make(&f, &config, 2);
    for (uint64_t seed = 0; seed < 3; seed++) {
        double logp[N];
        draw(tokens, offsets, seed, N, LONGEST);
        OK(lin_token_scorer_run(f.scorer, tokens, offsets, N, logp, &err));
        for (int i = 0; i < N; i++) {
            const double want = alone(&f, tokens + offsets[i], offsets[i + 1] - offsets[i]);
            ck_assert_msg(logp[i] == want, "sequence %d: %.17g, alone %.17g", i, logp[i], want);
        }
    }
    drop(&f);
}
END_TEST

START_TEST(beginnings_in_common)
{
    static const int tokens[] = {0, 5, 6, 7, 0, 0, 5, 6, 8, 0, 0, 5, 9, 0, 0}, offsets[] = {0, 5, 10, 14, 15};
    const lin_config config = token_config(LINEAR, TOKENS, V);
    double logp[4], again;
    fixture f;
    make(&f, &config, 2);
    OK(lin_token_scorer_run(f.scorer, tokens, offsets, 4, logp, &err));
    ck_assert(logp[3] == 0); // nothing is predicted of a single token
    OK(lin_token_scorer_run(f.scorer, tokens + 5, (const int[]){0, 5}, 1, &again, &err));
    ck_assert(again == logp[1]);
    OK(lin_token_scorer_run(f.scorer, tokens, offsets, 0, NULL, &err));
    drop(&f);
}
END_TEST

// Longer than a pass: branches are run in parts.
START_TEST(long_sequences)
{
    enum { LONG = 1700 };
    static int tokens[3 * LONG], offsets[4];
    const lin_config config = token_config(GATED, TOKENS, V);
    double logp[3];
    fixture f;
    make(&f, &config, 2);
    for (int i = 0; i < 3; i++) {
        for (int t = 0; t < LONG; t++)
            tokens[i * LONG + t] = (int)(lin_random_bits(t < 600 * i ? 1 : (uint64_t)i + 2, (uint64_t)t) % TOKENS);
        offsets[i + 1] = (i + 1) * LONG;
    }
    OK(lin_token_scorer_run(f.scorer, tokens, offsets, 3, logp, &err));
    for (int i = 0; i < 3; i++) ck_assert(logp[i] == alone(&f, tokens + i * LONG, LONG));
    drop(&f);
}
END_TEST

START_TEST(what_is_refused)
{
    static const int tokens[] = {0, 5, TOKENS, 3}, offsets[] = {0, 2, 4}, empty[] = {0, 0};
    lin_config config = token_config(LINEAR, TOKENS, V);
    lin_token_scorer *none;
    double logp[2];
    fixture f;
    lin_error err = {0};
    make(&f, &config, 1);
    ck_assert_int_eq(lin_token_scorer_run(f.scorer, tokens, offsets, 2, logp, &err), LIN_INVALID);
    HAS(err.message, "token 0 of sequence 1 is 30");
    ck_assert_int_eq(lin_token_scorer_run(f.scorer, tokens, empty, 1, logp, &err), LIN_INVALID);
    drop(&f);
    config.tokens = 0;
    config.mel_bins = 4;
    make(&f, &config, 1);
    ck_assert_int_eq(lin_token_scorer_create(f.encoder, &none, &err), LIN_UNSUPPORTED);
    ck_assert_ptr_null(none);
    drop(&f);
}
END_TEST

TEST_MAIN("model/token_scorer", TESTS(each_as_if_it_were_alone, 0, TOKEN_KINDS), TEST(beginnings_in_common), TEST(long_sequences),
          TEST(what_is_refused))
