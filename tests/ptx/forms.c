// The instructions that the machine knows: a table of whole opcodes, those that nvcc makes of the kernels, with their operands;
// and the arithmetic of 32 lanes. Loads, stores and asynchronous copies are in memory.c, collectives in run.c.
#include "tests/ptx/internal.h"

#include <math.h>
#include <string.h>

/* ---- results --------------------------------------------------------------------------------------------------------------- */

void ptx_put(ptx_warp *w, const ptx_operand *o, const void *values, uint32_t mask)
{
    if (o->width == 0) return;
    unsigned char *to = ptx_at(w, o);
    w->written[o->slot] |= mask;
    if (mask == UINT32_MAX) {
        memcpy(to, values, LANES * (size_t)o->width);
        return;
    }
    const unsigned char *from = values;
    for (uint32_t left = mask; left; left &= left - 1) {
        const size_t l = (size_t)__builtin_ctz(left) * o->width;
        memcpy(to + l, from + l, o->width);
    }
}

void ptx_put_predicate(ptx_warp *w, const ptx_operand *o, uint32_t values, uint32_t mask)
{
    if (o->width == 0) return;
    uint32_t *to = ptx_at(w, o);
    *to = (*to & ~mask) | (values & mask);
    w->written[o->slot] |= mask;
}

uint32_t ptx_predicate(const ptx_warp *w, const ptx_operand *o)
{
    const uint32_t p = *(const uint32_t *)ptx_at(w, o);
    return o->negated ? ~p : p;
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------------------ */

#define STEP(name) static void name(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
#define UNARY(name, T, R, expression) \
    STEP(name) \
    { \
        const T *const xs = ptx_at(w, &i->o[1]); \
        R r[LANES]; \
        EACH_LANE(l) { const T x = xs[l]; r[l] = (R)(expression); } \
        ptx_put(w, &i->o[0], r, mask); \
    }
#define BINARY(name, T, U, R, expression) \
    STEP(name) \
    { \
        const T *const xs = ptx_at(w, &i->o[1]); \
        const U *const ys = ptx_at(w, &i->o[2]); \
        R r[LANES]; \
        EACH_LANE(l) { const T x = xs[l]; const U y = ys[l]; r[l] = (R)(expression); } \
        ptx_put(w, &i->o[0], r, mask); \
    }
#define TERNARY(name, T, U, R, expression) \
    STEP(name) \
    { \
        const T *const xs = ptx_at(w, &i->o[1]), *const ys = ptx_at(w, &i->o[2]); \
        const U *const zs = ptx_at(w, &i->o[3]); \
        R r[LANES]; \
        EACH_LANE(l) { const T x = xs[l], y = ys[l]; const U z = zs[l]; r[l] = (R)(expression); } \
        ptx_put(w, &i->o[0], r, mask); \
    }
#define COMPARE(name, T, expression) \
    STEP(name) \
    { \
        const T *const xs = ptx_at(w, &i->o[1]), *const ys = ptx_at(w, &i->o[2]); \
        uint32_t r = 0; \
        EACH_LANE(l) { const T x = xs[l], y = ys[l]; r |= (uint32_t)(expression) << l; } \
        ptx_put_predicate(w, &i->o[0], r, mask); \
    }
#define PREDICATE(name, expression) \
    STEP(name) \
    { \
        const uint32_t x = ptx_predicate(w, &i->o[1]), y = i->n > 2 ? ptx_predicate(w, &i->o[2]) : 0; \
        (void)y; \
        ptx_put_predicate(w, &i->o[0], expression, mask); \
    }

// A register that nothing has written may be moved: at the end of a branch the compiler moves what only the other branch has set.
#define MOVES(name, expression) \
    void name(ptx_warp *w, const ptx_instruction *i, uint32_t mask) \
    { \
        const ptx_operand *to = &i->o[0], *from = &i->o[1]; \
        const uint32_t unwritten = mask & ~w->written[from->slot]; \
        expression; \
        w->written[to->slot] &= ~unwritten; \
    }
MOVES(ptx_move, ptx_put(w, to, ptx_at(w, from), mask))
MOVES(ptx_move_predicate, ptx_put_predicate(w, to, ptx_predicate(w, from), mask))
PREDICATE(not_p, ~x)
PREDICATE(and_p, x & y)
PREDICATE(or_p, x | y)
PREDICATE(xor_p, x ^ y)

UNARY(not4, uint32_t, uint32_t, ~x)
UNARY(not8, uint64_t, uint64_t, ~x)
BINARY(and2, uint16_t, uint16_t, uint16_t, x & y)
BINARY(and4, uint32_t, uint32_t, uint32_t, x & y)
BINARY(and8, uint64_t, uint64_t, uint64_t, x & y)
BINARY(or4, uint32_t, uint32_t, uint32_t, x | y)
BINARY(or8, uint64_t, uint64_t, uint64_t, x | y)
BINARY(xor4, uint32_t, uint32_t, uint32_t, x ^ y)
BINARY(xor8, uint64_t, uint64_t, uint64_t, x ^ y)
BINARY(shl4, uint32_t, uint32_t, uint32_t, y < 32 ? x << y : 0)
BINARY(shl8, uint64_t, uint32_t, uint64_t, y < 64 ? x << y : 0)
BINARY(shr_u4, uint32_t, uint32_t, uint32_t, y < 32 ? x >> y : 0)
BINARY(shr_u8, uint64_t, uint32_t, uint64_t, y < 64 ? x >> y : 0)
BINARY(shr_s4, int32_t, uint32_t, int32_t, x >> (y < 32 ? y : 31))
BINARY(shr_s8, int64_t, uint32_t, int64_t, x >> (y < 64 ? y : 63))
UNARY(popc4, uint32_t, uint32_t, __builtin_popcount(x))
UNARY(shift_to_top, uint32_t, uint32_t, x ? (uint32_t)__builtin_clz(x) : UINT32_MAX) // bfind.shiftamt
STEP(reverse4)
{
    const uint32_t *xs = ptx_at(w, &i->o[1]);
    uint32_t r[LANES];
    EACH_LANE(l)
    {
        r[l] = 0;
        for (int b = 0; b < 32; b++) r[l] |= (xs[l] >> b & 1u) << (31 - b);
    }
    ptx_put(w, &i->o[0], r, mask);
}
STEP(insert4)
{
    const uint32_t *xs = ptx_at(w, &i->o[1]), *ys = ptx_at(w, &i->o[2]), *from = ptx_at(w, &i->o[3]), *n = ptx_at(w, &i->o[4]);
    uint32_t r[LANES];
    EACH_LANE(l)
    {
        const uint32_t at = from[l] & 0xFF, bits = n[l] & 0xFF;
        const uint32_t field = at > 31 ? 0 : (bits > 31 ? UINT32_MAX : (1u << bits) - 1) << at;
        r[l] = (ys[l] & ~field) | (at > 31 ? 0 : (xs[l] << at) & field);
    }
    ptx_put(w, &i->o[0], r, mask);
}

BINARY(add4, uint32_t, uint32_t, uint32_t, x + y)
BINARY(add8, uint64_t, uint64_t, uint64_t, x + y)
BINARY(sub4, uint32_t, uint32_t, uint32_t, x - y)
BINARY(sub8, uint64_t, uint64_t, uint64_t, x - y)
UNARY(neg4, uint32_t, uint32_t, 0u - x)
UNARY(neg8, uint64_t, uint64_t, 0u - x)
BINARY(mul4, uint32_t, uint32_t, uint32_t, x *y)
BINARY(mul8, uint64_t, uint64_t, uint64_t, x *y)
BINARY(mul_wide_u2, uint16_t, uint16_t, uint32_t, (uint32_t)x *y)
BINARY(mul_wide_u4, uint32_t, uint32_t, uint64_t, (uint64_t)x *y)
BINARY(mul_wide_s4, int32_t, int32_t, int64_t, (int64_t)x *y)
BINARY(mul_high_u4, uint32_t, uint32_t, uint32_t, (uint64_t)x *y >> 32)
TERNARY(mad4, uint32_t, uint32_t, uint32_t, x *y + z)
// What a division by zero gives is not defined, and is not computed.
BINARY(div_u4, uint32_t, uint32_t, uint32_t, y ? x / y : UINT32_MAX)
BINARY(div_u8, uint64_t, uint64_t, uint64_t, y ? x / y : UINT64_MAX)
BINARY(div_s4, int32_t, int32_t, uint32_t, y == 0 ? UINT32_MAX : y == -1 ? 0u - (uint32_t)x : (uint32_t)(x / y))
BINARY(div_s8, int64_t, int64_t, uint64_t, y == 0 ? UINT64_MAX : y == -1 ? 0u - (uint64_t)x : (uint64_t)(x / y))
BINARY(rem_u4, uint32_t, uint32_t, uint32_t, y ? x % y : x)
BINARY(rem_u8, uint64_t, uint64_t, uint64_t, y ? x % y : x)
BINARY(rem_s4, int32_t, int32_t, int32_t, y == 0 || y == -1 ? 0 : x % y)
BINARY(min_s4, int32_t, int32_t, int32_t, x < y ? x : y)
BINARY(min_u8, uint64_t, uint64_t, uint64_t, x < y ? x : y)
BINARY(max_s4, int32_t, int32_t, int32_t, x > y ? x : y)
BINARY(max_u4, uint32_t, uint32_t, uint32_t, x > y ? x : y)
BINARY(max_u8, uint64_t, uint64_t, uint64_t, x > y ? x : y)

BINARY(add_f4, float, float, float, x + y)
BINARY(sub_f4, float, float, float, x - y)
BINARY(mul_f4, float, float, float, x *y)
BINARY(div_f4, float, float, float, x / y)
BINARY(min_f4, float, float, float, x != x || y < x ? y : x)
BINARY(max_f4, float, float, float, x != x || y > x ? y : x)
BINARY(sign_f4, float, float, float, copysignf(y, x))
UNARY(neg_f4, uint32_t, uint32_t, x ^ 0x80000000u)
UNARY(abs_f4, uint32_t, uint32_t, x & 0x7FFFFFFFu)
UNARY(sqrt_f4, float, float, sqrtf(x))
UNARY(rcp_f4, float, float, 1 / x)
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
__attribute__((target("avx2,fma"))) TERNARY(fma_f4_fast, float, float, float, __builtin_fmaf(x, y, z))
#endif
TERNARY(fma_f4, float, float, float, fmaf(x, y, z))
BINARY(add_f8, double, double, double, x + y)
BINARY(sub_f8, double, double, double, x - y)
BINARY(mul_f8, double, double, double, x *y)
BINARY(div_f8, double, double, double, x / y)
BINARY(min_f8, double, double, double, x != x || y < x ? y : x)
BINARY(max_f8, double, double, double, x != x || y > x ? y : x)
UNARY(neg_f8, uint64_t, uint64_t, x ^ (uint64_t)1 << 63)
UNARY(abs_f8, uint64_t, uint64_t, x & ~((uint64_t)1 << 63))
UNARY(sqrt_f8, double, double, sqrt(x))
UNARY(rcp_f8, double, double, 1 / x)
TERNARY(fma_f8, double, double, double, fma(x, y, z))

static float flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static float toward_zero(double x)
{
    const float r = (float)x;
    return fabs((double)r) > fabs(x) ? nextafterf(r, 0) : r;
}
static float downward(double x)
{
    const float r = (float)x;
    return (double)r > x ? nextafterf(r, -INFINITY) : r;
}
// rcp.approx.ftz.f64: the upper half of the result, the lower is 0.
static double coarse_reciprocal(double x)
{
    double r = fabs(x) < 0x1p-1022 ? copysign(INFINITY, x) : 1 / x;
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    bits &= 0xFFFFFFFF00000000u;
    memcpy(&r, &bits, sizeof bits);
    return r;
}
BINARY(add_rz_f4, float, float, float, toward_zero((double)x + (double)y))
TERNARY(fma_rm_f4, float, float, float, downward((double)x * (double)y + (double)z))
UNARY(ex2_f4, float, float, exp2f(x))
UNARY(ex2_ftz_f4, float, float, flush(exp2f(flush(x))))
UNARY(rcp_ftz_f4, float, float, flush(1 / flush(x)))
UNARY(rcp_coarse_f8, double, double, coarse_reciprocal(x))

/* ---- conversions ----------------------------------------------------------------------------------------------------------- */

static int32_t to_s4(double x) { return x != x ? 0 : x >= 0x1p31 ? INT32_MAX : x < -0x1p31 ? INT32_MIN : (int32_t)x; }
static int64_t to_s8(double x) { return x != x ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : (int64_t)x; }
static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static uint16_t to_bf16(float x)
{
    const uint32_t bits = bits_of(x);
    return x != x ? 0x7FFF : (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
UNARY(sign_extend, int32_t, int64_t, x)
UNARY(zero_extend, uint32_t, uint64_t, x)
UNARY(low4, uint64_t, uint32_t, x)
UNARY(low2, uint32_t, uint16_t, x)
UNARY(low2_of_8, uint64_t, uint16_t, x)
UNARY(f8_of_f4, float, double, x)
UNARY(f4_of_f8, double, float, x)
UNARY(f4_of_s4, int32_t, float, x)
UNARY(f4_of_u4, uint32_t, float, x)
UNARY(f4_of_u2, uint16_t, float, x)
UNARY(f8_of_s4, int32_t, double, x)
UNARY(f8_of_s8, int64_t, double, x)
UNARY(f8_of_u8, uint64_t, double, x)
UNARY(round_f4, float, float, rintf(x))
UNARY(floor_f4, float, float, floorf(x))
UNARY(trunc_f4, float, float, truncf(x))
UNARY(round_f8, double, double, rint(x))
UNARY(trunc_f8, double, double, trunc(x))
UNARY(saturate_f4, float, float, x != x || x < 0 ? 0 : x > 1 ? 1 : x)
UNARY(s4_of_f4, float, int32_t, to_s4((double)truncf(x)))
UNARY(s8_of_f8, double, int64_t, to_s8(trunc(x)))
static float of_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float r;
    memcpy(&r, &bits, sizeof r);
    return r;
}
UNARY(f4_of_bf16, uint16_t, float, of_bf16(x))
UNARY(bf16_of_f4, float, uint16_t, to_bf16(x))
UNARY(tf32_of_f4, uint32_t, uint32_t, (x & 0x7F800000u) == 0x7F800000u ? x : (x + 0x1000u) & ~0x1FFFu)
// ptxas makes three instructions of it: a comparison, an add (where fp32 is), a mask.
STEP(round_to_tf32)
{
    if (ptx_machine.counts) ptx_machine.counts->instructions[PTX_INTEGER] += 2;
    tf32_of_f4(w, i, mask);
}

UNARY(of_shared, uint64_t, uint64_t, x | PTX_SHARED_WINDOW)

/* ---- selection and comparisons --------------------------------------------------------------------------------------------- */

#define SELECT(name, T) \
    STEP(name) \
    { \
        const T *const xs = ptx_at(w, &i->o[1]), *const ys = ptx_at(w, &i->o[2]); \
        const uint32_t p = ptx_predicate(w, &i->o[3]); \
        T r[LANES]; \
        EACH_LANE(l) r[l] = p >> l & 1 ? xs[l] : ys[l]; \
        ptx_put(w, &i->o[0], r, mask); \
    }
SELECT(select2, uint16_t)
SELECT(select4, uint32_t)
SELECT(select8, uint64_t)

#define COMPARISONS(t, T) \
    COMPARE(eq_##t, T, x == y) COMPARE(ne_##t, T, x < y || x > y) COMPARE(lt_##t, T, x < y) COMPARE(le_##t, T, x <= y) \
    COMPARE(gt_##t, T, x > y) COMPARE(ge_##t, T, x >= y)
#define UNORDERED(t, T) \
    COMPARE(ltu_##t, T, !(x >= y)) COMPARE(leu_##t, T, !(x > y)) COMPARE(gtu_##t, T, !(x <= y)) COMPARE(geu_##t, T, !(x < y)) \
    COMPARE(equ_##t, T, !(x < y || x > y)) COMPARE(neu_##t, T, x != y) COMPARE(num_##t, T, x == x && y == y) \
    COMPARE(nan_##t, T, x != x || y != y)
COMPARISONS(u2, uint16_t)
COMPARISONS(s2, int16_t)
COMPARISONS(u4, uint32_t)
COMPARISONS(s4, int32_t)
COMPARISONS(u8, uint64_t)
COMPARISONS(s8, int64_t)
COMPARISONS(f4, float)
COMPARISONS(f8, double)
UNORDERED(f4, float)
UNORDERED(f8, double)

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

#define INTEGER PTX_INTEGER, KIND_PLAIN
#define FLOAT PTX_FLOAT, KIND_PLAIN
#define DOUBLE PTX_DOUBLE, KIND_PLAIN
#define SPECIAL PTX_SPECIAL, KIND_PLAIN
#define MOVE PTX_MOVE, KIND_PLAIN
#define ORDERED_FORMS(t, suffix, w, ...) \
    {"setp.eq." suffix, "p" w w, eq_##t, __VA_ARGS__}, {"setp.ne." suffix, "p" w w, ne_##t, __VA_ARGS__}, \
    {"setp.lt." suffix, "p" w w, lt_##t, __VA_ARGS__}, {"setp.le." suffix, "p" w w, le_##t, __VA_ARGS__}, \
    {"setp.gt." suffix, "p" w w, gt_##t, __VA_ARGS__}, {"setp.ge." suffix, "p" w w, ge_##t, __VA_ARGS__}
#define FLOAT_FORMS(t, suffix, w, ...) \
    ORDERED_FORMS(t, suffix, w, __VA_ARGS__), \
    {"setp.ltu." suffix, "p" w w, ltu_##t, __VA_ARGS__}, {"setp.leu." suffix, "p" w w, leu_##t, __VA_ARGS__}, \
    {"setp.gtu." suffix, "p" w w, gtu_##t, __VA_ARGS__}, {"setp.geu." suffix, "p" w w, geu_##t, __VA_ARGS__}, \
    {"setp.equ." suffix, "p" w w, equ_##t, __VA_ARGS__}, {"setp.neu." suffix, "p" w w, neu_##t, __VA_ARGS__}, \
    {"setp.num." suffix, "p" w w, num_##t, __VA_ARGS__}, {"setp.nan." suffix, "p" w w, nan_##t, __VA_ARGS__}

static const ptx_form forms[] = {
    {"mov.u16", "22", ptx_move, MOVE}, {"mov.b32 mov.u32 mov.f32", "44", ptx_move, MOVE},
    {"mov.b64 mov.u64 mov.f64", "88", ptx_move, MOVE}, {"mov.pred", "pp", ptx_move_predicate, MOVE},
    {"not.pred", "pp", not_p, INTEGER}, {"and.pred", "ppp", and_p, INTEGER}, {"or.pred", "ppp", or_p, INTEGER},
    {"xor.pred", "ppp", xor_p, INTEGER}, {"not.b32", "44", not4, INTEGER}, {"not.b64", "88", not8, INTEGER},
    {"and.b16", "222", and2, INTEGER}, {"and.b32", "444", and4, INTEGER}, {"and.b64", "888", and8, INTEGER},
    {"or.b32", "444", or4, INTEGER}, {"or.b64", "888", or8, INTEGER}, {"xor.b32", "444", xor4, INTEGER},
    {"xor.b64", "888", xor8, INTEGER}, {"shl.b32", "444", shl4, INTEGER}, {"shl.b64", "884", shl8, INTEGER},
    {"shr.u32", "444", shr_u4, INTEGER}, {"shr.u64", "884", shr_u8, INTEGER}, {"shr.s32", "444", shr_s4, INTEGER},
    {"shr.s64", "884", shr_s8, INTEGER}, {"popc.b32", "44", popc4, INTEGER}, {"bfind.shiftamt.u32", "44", shift_to_top, INTEGER},
    {"brev.b32", "44", reverse4, INTEGER}, {"bfi.b32", "44444", insert4, INTEGER}, {"add.s32", "444", add4, INTEGER},
    {"add.s64 add.u64", "888", add8, INTEGER}, {"sub.s32", "444", sub4, INTEGER}, {"sub.s64", "888", sub8, INTEGER},
    {"neg.s32", "44", neg4, INTEGER}, {"neg.s64", "88", neg8, INTEGER}, {"mul.lo.s32", "444", mul4, INTEGER},
    {"mul.lo.s64", "888", mul8, INTEGER}, {"mul.wide.u16", "422", mul_wide_u2, INTEGER},
    {"mul.wide.u32", "844", mul_wide_u4, INTEGER}, {"mul.wide.s32", "844", mul_wide_s4, INTEGER},
    {"mul.hi.u32", "444", mul_high_u4, INTEGER}, {"mad.lo.s32", "4444", mad4, INTEGER}, {"div.u32", "444", div_u4, INTEGER},
    {"div.u64", "888", div_u8, INTEGER}, {"div.s32", "444", div_s4, INTEGER}, {"div.s64", "888", div_s8, INTEGER},
    {"rem.u32", "444", rem_u4, INTEGER}, {"rem.u64", "888", rem_u8, INTEGER}, {"rem.s32", "444", rem_s4, INTEGER},
    {"min.s32", "444", min_s4, INTEGER}, {"min.u64", "888", min_u8, INTEGER}, {"max.s32", "444", max_s4, INTEGER},
    {"max.u32", "444", max_u4, INTEGER}, {"max.u64", "888", max_u8, INTEGER}, {"add.f32 add.rn.f32", "444", add_f4, FLOAT},
    {"add.rz.f32", "444", add_rz_f4, FLOAT}, {"sub.f32", "444", sub_f4, FLOAT}, {"mul.f32 mul.rn.f32", "444", mul_f4, FLOAT},
    {"fma.rn.f32", "4444", fma_f4, FLOAT}, {"fma.rm.f32", "4444", fma_rm_f4, FLOAT}, {"div.rn.f32", "444", div_f4, FLOAT},
    {"min.f32", "444", min_f4, FLOAT}, {"max.f32", "444", max_f4, FLOAT}, {"neg.f32", "44", neg_f4, FLOAT},
    {"abs.f32", "44", abs_f4, FLOAT}, {"copysign.f32", "444", sign_f4, INTEGER}, {"sqrt.rn.f32", "44", sqrt_f4, SPECIAL},
    {"rcp.rn.f32", "44", rcp_f4, SPECIAL}, {"rcp.approx.ftz.f32", "44", rcp_ftz_f4, SPECIAL},
    {"ex2.approx.f32", "44", ex2_f4, SPECIAL}, {"ex2.approx.ftz.f32", "44", ex2_ftz_f4, SPECIAL},
    {"add.f64 add.rn.f64", "888", add_f8, DOUBLE}, {"sub.f64", "888", sub_f8, DOUBLE},
    {"mul.f64 mul.rn.f64", "888", mul_f8, DOUBLE}, {"fma.rn.f64", "8888", fma_f8, DOUBLE}, {"div.rn.f64", "888", div_f8, DOUBLE},
    {"min.f64", "888", min_f8, DOUBLE}, {"max.f64", "888", max_f8, DOUBLE}, {"neg.f64", "88", neg_f8, DOUBLE},
    {"abs.f64", "88", abs_f8, DOUBLE}, {"sqrt.rn.f64", "88", sqrt_f8, DOUBLE}, {"rcp.rn.f64", "88", rcp_f8, DOUBLE},
    {"rcp.approx.ftz.f64", "88", rcp_coarse_f8, DOUBLE}, {"cvt.s64.s32", "84", sign_extend, INTEGER},
    {"cvt.u64.u32", "84", zero_extend, INTEGER}, {"cvt.u32.u64", "48", low4, INTEGER}, {"cvt.u16.u32", "24", low2, INTEGER},
    {"cvt.u16.u64", "28", low2_of_8, INTEGER},
    {"cvt.f64.f32", "84", f8_of_f4, SPECIAL}, {"cvt.rn.f32.f64", "48", f4_of_f8, SPECIAL},
    {"cvt.rn.f32.s32", "44", f4_of_s4, SPECIAL}, {"cvt.rn.f32.u32", "44", f4_of_u4, SPECIAL},
    {"cvt.rn.f32.u16", "42", f4_of_u2, SPECIAL}, {"cvt.rn.f64.s32", "84", f8_of_s4, SPECIAL},
    {"cvt.rn.f64.s64", "88", f8_of_s8, SPECIAL}, {"cvt.rn.f64.u64", "88", f8_of_u8, SPECIAL},
    {"cvt.rni.f32.f32", "44", round_f4, SPECIAL}, {"cvt.rmi.f32.f32", "44", floor_f4, SPECIAL},
    {"cvt.rzi.f32.f32", "44", trunc_f4, SPECIAL}, {"cvt.rni.f64.f64", "88", round_f8, SPECIAL},
    {"cvt.rzi.f64.f64", "88", trunc_f8, SPECIAL}, {"cvt.sat.f32.f32", "44", saturate_f4, FLOAT},
    {"cvt.rzi.s32.f32", "44", s4_of_f4, SPECIAL}, {"cvt.rzi.s64.f64", "88", s8_of_f8, SPECIAL},
    {"cvt.rn.bf16.f32", "24", bf16_of_f4, SPECIAL}, {"cvt.f32.bf16", "42", f4_of_bf16, SPECIAL},
    {"cvt.rna.tf32.f32", "44", round_to_tf32, FLOAT}, {"cvta.to.global.u64", "88", ptx_move, MOVE},
    {"cvta.shared.u64", "88", of_shared, MOVE}, {"selp.u16", "222p", select2, INTEGER},
    {"selp.b32 selp.u32 selp.f32", "444p", select4, INTEGER}, {"selp.b64 selp.f64", "888p", select8, INTEGER},
    ORDERED_FORMS(u2, "u16", "2", INTEGER),
    ORDERED_FORMS(u2, "b16", "2", INTEGER),
    ORDERED_FORMS(s2, "s16", "2", INTEGER),
    ORDERED_FORMS(u4, "u32", "4", INTEGER),
    ORDERED_FORMS(u4, "b32", "4", INTEGER),
    ORDERED_FORMS(s4, "s32", "4", INTEGER),
    ORDERED_FORMS(u8, "u64", "8", INTEGER),
    ORDERED_FORMS(u8, "b64", "8", INTEGER),
    ORDERED_FORMS(s8, "s64", "8", INTEGER),
    FLOAT_FORMS(f4, "f32", "4", FLOAT),
    FLOAT_FORMS(f8, "f64", "8", DOUBLE),
    {"bra bra.uni", "", NULL, PTX_CONTROL, KIND_BRANCH}, {"ret", "", NULL, PTX_CONTROL, KIND_RETURN},
    {"bar.sync", "4", NULL, PTX_SYNC, KIND_BARRIER}, {"bar.red.or.pred", "p4p", NULL, PTX_SYNC, KIND_BARRIER_OR},
    {"bar.warp.sync", "4", ptx_sync_warp, PTX_SYNC, KIND_COLLECTIVE},
    {"shfl.sync.bfly.b32 shfl.sync.up.b32 shfl.sync.down.b32 shfl.sync.idx.b32", "44444", ptx_shuffle, PTX_WARP, KIND_COLLECTIVE},
    {"vote.sync.any.pred vote.sync.all.pred", "pp4", ptx_vote, PTX_WARP, KIND_COLLECTIVE},
    {"vote.sync.ballot.b32", "4p4", ptx_ballot, PTX_WARP, KIND_COLLECTIVE},
    {"redux.sync.max.s32", "444", ptx_reduce_max, PTX_WARP, KIND_COLLECTIVE},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "44444444444444", ptx_product, PTX_TENSOR, KIND_COLLECTIVE},
    {"cp.async.ca.shared.global cp.async.cg.shared.global", NULL, ptx_copy_async, PTX_GLOBAL, KIND_PLAIN},
    {"cp.async.commit_group", "", ptx_copy_commit, PTX_SYNC, KIND_PLAIN},
    {"cp.async.wait_group", "4", ptx_copy_wait, PTX_SYNC, KIND_PLAIN},
    {"red.release.gpu.global.add.u32", NULL, ptx_add_global, PTX_GLOBAL, KIND_PLAIN},
    {"prefetch.global.L2", NULL, NULL, PTX_OTHER, KIND_NOTHING},
};

const ptx_form *ptx_form_of(const char *opcode, size_t length)
{
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        for (const char *at = forms[f].name; *at;) {
            const size_t n = strcspn(at, " ");
            if (n == length && memcmp(at, opcode, n) == 0) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
                static const ptx_form fast = {"fma.rn.f32", "4444", fma_f4_fast, FLOAT};
                if (forms[f].run == fma_f4 && __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) return &fast;
#endif
                return &forms[f];
            }
            at += n;
            at += *at == ' ';
        }
    }
    return NULL;
}
