// level.c - the instruction set in use: what the processor has, and what LINNET_ISA or a test chose; see cpu.h.

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

static const char *const isa_names[] = {"portable", "avx2", "avx512"};

static atomic_int level = -1; // a lin_isa, or -1 before the first use

lin_isa lin_cpu_best_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return LIN_ISA_PORTABLE;
    // The extensions that -march=x86-64-v4 lets the compiler use beyond AVX2 and FMA.
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("bmi2")) {
        return LIN_ISA_AVX512;
    }
    return LIN_ISA_AVX2;
#else
    return LIN_ISA_PORTABLE;
#endif
}

lin_status lin_cpu_parse_level(const char *isa, lin_isa *out, lin_error *err)
{
    lin_isa best = lin_cpu_best_level();
    *out = best;
    if (!isa || !*isa) return LIN_OK;
    for (int i = LIN_ISA_PORTABLE; i <= LIN_ISA_AVX512; i++) {
        if (strcmp(isa, isa_names[i]) != 0) continue;
        if (i > (int)best) {
            return lin_fail(err, LIN_UNSUPPORTED, "this machine lacks %s; its best instruction set is %s", isa, isa_names[best]);
        }
        *out = (lin_isa)i;
        return LIN_OK;
    }
    return lin_fail(err, LIN_INVALID, "unknown instruction set \"%s\"; use avx512, avx2 or portable", isa);
}

lin_isa lin_cpu_level(void)
{
    int now = atomic_load_explicit(&level, memory_order_relaxed);
    if (now >= 0) return (lin_isa)now;
    lin_isa first; // with a bad LINNET_ISA the best one is used here, and exec_create reports the error
    lin_cpu_parse_level(getenv("LINNET_ISA"), &first, NULL);
    atomic_store(&level, (int)first);
    return first;
}

lin_status lin_cpu_select(const char *isa, lin_error *err)
{
    lin_isa chosen;
    lin_status status = lin_cpu_parse_level(isa, &chosen, err);
    if (status == LIN_OK) atomic_store(&level, (int)chosen);
    return status;
}

const char *lin_cpu_isa(void) { return isa_names[lin_cpu_level()]; }
