// LSH attention for AVX-512 (F, BW, DQ, VL): vectors of 16 floats.
#define LIN_SUFFIX avx512
#define LIN_WIDTH 16
#include "paper/cpu/lsh_body.h"
