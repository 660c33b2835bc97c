// Every operation but the matrix product, for AVX-512 (F, BW, DQ, VL): vectors of 16 floats.
#define LIN_SUFFIX avx512
#define LIN_WIDTH 16
#include "kernels/cpu/attention.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/ctc.h"
#include "kernels/cpu/denominator.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/softmax.h"
