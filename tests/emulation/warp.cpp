// Collectives of a warp, the tensor cores' product, and asynchronous copies.
#include "tests/emulation/internal.h"

#include <limits.h>

#include <vector>

// ---- shuffles and votes -----------------------------------------------------------------------------------------------------

struct shuffle {
    uint64_t word, result;
    emulated_source source;
    int operand, width;
};

static int source_lane(const shuffle *s, int lane)
{
    const int first = lane & ~(s->width - 1), last = first + s->width - 1;
    int from = lane;
    switch (s->source) {
    case EMULATED_FROM_LANE: return first | (s->operand & (s->width - 1));
    case EMULATED_FROM_UP: from = lane - s->operand; break;
    case EMULATED_FROM_DOWN: from = lane + s->operand; break;
    case EMULATED_FROM_XOR: from = lane ^ s->operand; break;
    }
    return from < first || from > last ? lane : from;
}

static void complete_shuffle(void *const *arguments, unsigned lanes)
{
    for (unsigned left = lanes; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        shuffle *s = (shuffle *)arguments[lane];
        const int from = source_lane(s, lane);
        if (!(lanes >> from & 1))
            emulated_fail("lane %d shuffles from lane %d, which does not take part (lanes %08x)", lane, from, lanes);
        s->result = ((const shuffle *)arguments[from])->word;
    }
}

uint64_t emulated_shuffle(unsigned mask, uint64_t word, emulated_source source, int operand, int width, const char *file, int line)
{
    if (width < 1 || width > EMULATED_WARP || (width & (width - 1)))
        emulated_fail("%s:%d: a shuffle of width %d", file, line, width);
    shuffle s = {word, 0, source, operand, width};
    emulated_collective(mask, &s, complete_shuffle, "a shuffle", file, line);
    return s.result;
}

struct vote {
    int predicate;
    unsigned result;
};

static void complete_vote(void *const *arguments, unsigned lanes)
{
    unsigned result = 0;
    for (unsigned left = lanes; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (((const vote *)arguments[lane])->predicate) result |= 1u << lane;
    }
    for (unsigned left = lanes; left; left &= left - 1) ((vote *)arguments[__builtin_ctz(left)])->result = result;
}

unsigned emulated_ballot(unsigned mask, int predicate, const char *what, const char *file, int line)
{
    vote v = {predicate, 0};
    emulated_collective(mask, &v, complete_vote, what, file, line);
    return v.result;
}

struct reduction {
    int value, result;
};

static void complete_max(void *const *arguments, unsigned lanes)
{
    int most = INT_MIN;
    for (unsigned left = lanes; left; left &= left - 1)
        most = max(most, ((const reduction *)arguments[__builtin_ctz(left)])->value);
    for (unsigned left = lanes; left; left &= left - 1) ((reduction *)arguments[__builtin_ctz(left)])->result = most;
}

int emulated_reduce_max(unsigned mask, int value, const char *file, int line)
{
    reduction r = {value, 0};
    emulated_collective(mask, &r, complete_max, "a reduction", file, line);
    return r.result;
}

// ---- the tensor cores: m16n8k8, tf32 ----------------------------------------------------------------------------------------

float emulated_tf32(float x)
{
    uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7f800000u) == 0x7f800000u) return x;
    return __uint_as_float((bits + 0x1000u) & ~0x1fffu);
}

struct product {
    float *c;
    const float *a, *b;
};

// An operand with more bits than tf32: the device would truncate them, which would give a bias. NaNs keep theirs.
static double operand(float x, const char *which, int lane)
{
    if ((__float_as_uint(x) & 0x1fffu) && x == x)
        emulated_fail("lane %d: operand %s of a tf32 product was not rounded: %.9g", lane, which, (double)x);
    return (double)x;
}

// Tests under sanitizers would spend most of their time here, in code that has no memory accesses to check.
__attribute__((no_sanitize("address"), no_sanitize("undefined"))) static void add_product(double (&C)[16][8], const double (&A)[16][8],
                                                                                          const double (&B)[8][8])
{
    for (int m = 0; m < 16; m++)
        for (int k = 0; k < 8; k++)
            for (int n = 0; n < 8; n++) C[m][n] += A[m][k] * B[k][n];
}

static void complete_product(void *const *arguments, unsigned lanes)
{
    if (lanes != 0xffffffffu) emulated_fail("a product of fragments takes all 32 lanes, here %08x", lanes);
    double A[16][8], B[8][8], C[16][8];
    for (int lane = 0; lane < EMULATED_WARP; lane++) {
        const product *p = (const product *)arguments[lane];
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++) {
            A[g + 8 * (i & 1)][t + 4 * (i >> 1)] = operand(p->a[i], "a", lane);
            C[g + 8 * (i >> 1)][2 * t + (i & 1)] = (double)p->c[i];
        }
        for (int i = 0; i < 2; i++) B[t + 4 * i][g] = operand(p->b[i], "b", lane);
    }
    add_product(C, A, B);
    emulated_traffic_operations(2.0 * 16 * 8 * 8, "tf32");
    for (int lane = 0; lane < EMULATED_WARP; lane++) {
        const product *p = (const product *)arguments[lane];
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++) p->c[i] = (float)C[g + 8 * (i >> 1)][2 * t + (i & 1)];
    }
}

void emulated_mma_tf32(float (&c)[4], const float (&a)[4], const float (&b)[2], const char *file, int line)
{
    product p = {c, a, b};
    emulated_collective(0xffffffffu, &p, complete_product, "a product of fragments", file, line);
}

// ---- asynchronous copies ----------------------------------------------------------------------------------------------------

struct copy {
    unsigned char *to;
    const unsigned char *from;
    int bytes;
    unsigned group;
};

struct copies {
    std::vector<copy> list; // from `done` on they are pending
    size_t done;
    unsigned groups; // committed
};

static copies of_thread[EMULATED_MOST_THREADS];

void emulated_copy_reset(int thread)
{
    copies *c = &of_thread[thread];
    if (c->groups == 0 && c->list.empty()) return;
    c->list.clear();
    c->done = 0;
    c->groups = 0;
}

void emulated_copy_async(void *shared, const void *global, int bytes, const char *file, int line)
{
    if (emulated_together()) emulated_fail("asynchronous copies at %s:%d: not emulated where blocks run together", file, line);
    const size_t n = (size_t)bytes;
    size_t left;
    if (bytes != 4 && bytes != 8 && bytes != 16) emulated_fail("%s:%d: an asynchronous copy of %d bytes", file, line, bytes);
    if (!emulated_in_shared(shared, n))
        emulated_fail("%s:%d: an asynchronous copy to an address outside shared memory", file, line);
    if (emulated_where(global, &left) == EMULATED_PAGEABLE || left < n) {
        emulated_fail("%s:%d: an asynchronous copy of %d bytes from %p, not memory of the device", file, line, bytes, global);
    }
    if (((uintptr_t)shared | (uintptr_t)global) & (n - 1))
        emulated_fail("%s:%d: a copy of %d bytes that is not aligned to its size", file, line, bytes);
    copies *c = &of_thread[emulated_thread_number()];
    memset(shared, EMULATED_POISON, n);
    c->list.push_back({(unsigned char *)shared, (const unsigned char *)global, bytes, c->groups});
}

void emulated_copy_commit(void) { of_thread[emulated_thread_number()].groups++; }

void emulated_copy_wait(int groups_left)
{
    copies *c = &of_thread[emulated_thread_number()];
    const unsigned upto = c->groups > (unsigned)groups_left ? c->groups - (unsigned)groups_left : 0;
    for (; c->done < c->list.size() && c->list[c->done].group < upto; c->done++) {
        const copy *one = &c->list[c->done];
        memcpy(one->to, one->from, (size_t)one->bytes);
    }
    if (c->done == c->list.size()) {
        c->list.clear();
        c->done = 0;
    }
}
