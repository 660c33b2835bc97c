// LSH attention for AVX2 with FMA: vectors of 8 floats.
#define LIN_SUFFIX avx2
#define LIN_WIDTH 8
#include "paper/cpu/lsh_body.h"
