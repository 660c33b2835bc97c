// The rivals of linear attention, for AVX2 with FMA: vectors of 8 floats.
#define LIN_SUFFIX avx2
#define LIN_WIDTH 8
#include "paper/cpu/lsh_body.h"
#include "paper/cpu/lstm.h"
#include "paper/cpu/mapped_attention.h"
#include "paper/cpu/softmax_attention_body.h"
#include "paper/cpu/softmax_naive_body.h"
