/*
 * ops_table.h - the table of operations over LIN_REAL, named LIN_OPS. Included by ops.h once per type; see there for conventions.
 */

typedef struct LIN_OPS {
    const char *name; /* "ref", "cpu", "cuda" */

    /* n_threads: 0 for one per core. */
    lin_status (*exec_create)(int n_threads, lin_exec **exec, lin_error *err);
    void (*exec_destroy)(lin_exec *exec);

    /* ---- linear layers: y = x wᵀ + b ---------------------------------------------------------------------------------------- */

    /* Elements of the packed form of a weight matrix w [n, k]; the packed block must be 64-byte aligned. */
    size_t (*weight_size)(int n, int k);
    /* Packs w [n, k] for y [rows, n] = x [rows, k] wᵀ. */
    void (*weight_pack)(lin_exec *exec, LIN_REAL *packed, const LIN_REAL *w, int n, int k);
    /* Packs w [n, k] for dx [rows, k] = dy [rows, n] w: the packed form of wᵀ, weight_size(k, n) elements. Used by
     * linear_forward(dx, dy, packed, NULL, rows, k, n, LIN_LINEAR). */
    void (*weight_pack_transposed)(lin_exec *exec, LIN_REAL *packed, const LIN_REAL *w, int n, int k);
    /* y [rows, n] = act(x [rows, k] wᵀ + bias [n]); bias may be NULL. A row's bits do not depend on the number of rows: the sum over
     * k runs in order, from +0, one fused multiply-add each, the bias added last. */
    void (*linear_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *packed, const LIN_REAL *bias, int rows,
                           int n, int k, lin_activation act);
    /* dw [n, k] += dyᵀ x, db [n] += column sums of dy (db may be NULL); dy [rows, n], x [rows, k]. */
    void (*linear_backward_weight)(lin_exec *exec, LIN_REAL *dw, LIN_REAL *db, const LIN_REAL *dy, const LIN_REAL *x, int rows, int n,
                                   int k);

    /* ---- between the linear layers ------------------------------------------------------------------------------------------ */

    /* y = (x - mean) rstd gamma + beta per row, eps 1e-5, biased variance; stats [rows, 2] receives mean and rstd (may be NULL). */
    void (*layer_norm_forward)(lin_exec *exec, LIN_REAL *y, LIN_REAL *stats, const LIN_REAL *x, const LIN_REAL *gamma,
                               const LIN_REAL *beta, int rows, int C);
    /* dx (written), dgamma [C] +=, dbeta [C] +=. dx may alias dy. */
    void (*layer_norm_backward)(lin_exec *exec, LIN_REAL *dx, LIN_REAL *dgamma, LIN_REAL *dbeta, const LIN_REAL *dy, const LIN_REAL *x,
                                const LIN_REAL *stats, const LIN_REAL *gamma, int rows, int C);
    /* y += x. */
    void (*add)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, size_t count);
    /* y = dropout(x), its own backward too. Element i is kept, and divided by 1-p, if the 16-bit lane i%4 (lowest first) of
     * lin_random_bits(key, i/4) is >= round(p 65536). p = 0 copies. y may alias x. */
    void (*dropout)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, size_t count, double p, uint64_t key);
    /* y = x + dropout(r), the same mask. y may alias x. */
    void (*add_dropout)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *r, size_t count, double p, uint64_t key);
    /* dx = y > 0 ? dy * scale : 0: backward of relu, and of dropout(relu) with y its output and scale = 1/(1-p). dx may alias dy. */
    void (*relu_backward)(lin_exec *exec, LIN_REAL *dx, const LIN_REAL *dy, const LIN_REAL *y, size_t count, double scale);
    /* y [out rows, (stack+ahead) D]: row t of an utterance holds its input frames t stack .. t stack + stack+ahead-1, each
     * (x - mean) istd, a frame beyond the utterance's last replaced by its last. mean, istd [D]; x [in rows, D]. */
    void (*stack_frames)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *mean, const LIN_REAL *istd,
                         const int *in_offsets, const int *out_offsets, int B, int D, int stack, int ahead);
    /* x += sinusoidal positions (Vaswani et al. 2017): for i < C/2, x[t,2i] += sin(a), x[t,2i+1] += cos(a), a = t / 10000^(2i/C),
     * t counted from the start of each utterance. */
    void (*add_sinusoid)(lin_exec *exec, LIN_REAL *x, const int *offsets, int B, int C);

    /* ---- causal depthwise convolution with residual ------------------------------------------------------------------------- */

    /* y[t,c] = x[t,c] + b[c] + sum_{j<K} w[j,c] x[t-K+1+j,c], w [K, C], x before the utterance's start taken from tails[b] [K-1, C] if
     * tails and tails[b] are not NULL, else 0. On return tails[b] holds the last K-1 inputs. Any split of the rows into calls that
     * carry the tail gives the same bits. */
    void (*conv_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *x, const LIN_REAL *w, const LIN_REAL *bias, const int *offsets,
                         int B, int C, int K, LIN_REAL *const *tails);
    /* dx (written), dw [K, C] +=, db [C] +=; no tails. */
    void (*conv_backward)(lin_exec *exec, LIN_REAL *dx, LIN_REAL *dw, LIN_REAL *db, const LIN_REAL *dy, const LIN_REAL *x,
                          const LIN_REAL *w, const int *offsets, int B, int C, int K);

    /* ---- linear attention, φ(x) = elu(x) + 1 (Katharopoulos et al. 2020, eq. 4-12) ------------------------------------------ */

    /* y [rows, H E] from qkv [rows, 3, H, E] (before φ). Per head y_i = φ(q_i)ᵀ S / (φ(q_i)ᵀ z + 1e-6), where S = sum φ(k_j) v_jᵀ and
     * z = sum φ(k_j) run over j <= i of the utterance (causal; a frame sees itself) or over all of it.
     * causal only: states[b], where states and states[b] are not NULL, is [H, E+1, E] (S, then z as row E): read as the sums before
     * the first row, and written as the sums after the last. Any split of the rows into calls gives the same bits. */
    void (*attention_forward)(lin_exec *exec, LIN_REAL *y, const LIN_REAL *qkv, const int *offsets, int B, int H, int E, int causal,
                              LIN_REAL *const *states);
    /* dqkv (written) from dy, qkv and the forward's y. No states. Causal: eq. 13-15 and Algorithm 1. */
    void (*attention_backward)(lin_exec *exec, LIN_REAL *dqkv, const LIN_REAL *dy, const LIN_REAL *qkv, const LIN_REAL *y,
                               const int *offsets, int B, int H, int E, int causal);

    /* ---- outputs and losses ------------------------------------------------------------------------------------------------- */

    /* logp may alias logits. */
    void (*log_softmax)(lin_exec *exec, LIN_REAL *logp, const LIN_REAL *logits, int rows, int V);
    /* CTC (Graves et al. 2006), blank = 0, log domain. logp [rows, V]; labels of utterance b: labels[label_offsets[b] ..]. loss[b]
     * receives -ln p(labels | frames), or -1 where no path exists (too few frames for labels and repeats); then the gradient rows
     * are 0. dlogits [rows, V] (written) = scale * d loss / d logits; NULL for the loss alone. dlogits must not alias logp. */
    void (*ctc)(lin_exec *exec, double *loss, LIN_REAL *dlogits, const LIN_REAL *logp, const int *offsets, const int *labels,
                const int *label_offsets, int B, int V, double scale);

    /* ---- optimiser: tensors laid end to end, tensor i owns elements offsets[i] .. offsets[i+1]-1 ---------------------------- */

    /* norms[i] = sum of squares of tensor i, summed in double. */
    void (*sum_squares)(lin_exec *exec, double *norms, const LIN_REAL *x, const size_t *offsets, int n_tensors);
    /* One step over all tensors; scale[i] multiplies the gradients of tensor i (clipping). Weight decay applies to tensors with
     * decay[i] != 0. */
    void (*adam)(lin_exec *exec, LIN_REAL *p, const LIN_REAL *grad, LIN_REAL *m, LIN_REAL *v, const size_t *offsets,
                 const double *scale, const unsigned char *decay, int n_tensors, const lin_adam_step *step);
} LIN_OPS;
