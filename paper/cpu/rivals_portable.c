// The rivals of linear attention, for any machine: vectors of 4 floats.
#define LIN_SUFFIX portable
#define LIN_WIDTH 4
#include "paper/cpu/lsh_body.h"
#include "paper/cpu/lstm.h"
#include "paper/cpu/mapped_attention.h"
#include "paper/cpu/softmax_attention_body.h"
#include "paper/cpu/softmax_naive_body.h"
