// Softmax attention for AVX-512 (F, BW, DQ, VL): vectors of 16 floats.
#define LIN_SUFFIX avx512
#define LIN_WIDTH 16
#include "paper/cpu/softmax_attention_body.h"
#include "paper/cpu/softmax_naive_body.h"
