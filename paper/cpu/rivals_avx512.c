// The rivals of linear attention, for AVX-512 (F, BW, DQ, VL): vectors of 16 floats.
#define LIN_SUFFIX avx512
#define LIN_WIDTH 16
#include "paper/cpu/lsh_body.h"
#include "paper/cpu/lstm.h"
#include "paper/cpu/mapped_attention.h"
#include "paper/cpu/softmax_attention_body.h"
#include "paper/cpu/softmax_naive_body.h"
