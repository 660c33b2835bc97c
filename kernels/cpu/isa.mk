# isa.mk - instruction sets of the kernels; included by the Makefile.
#
# x.o of one of these sources is x.c for any machine, with the part that is compiled once; x@SET.o is its other part for an instruction
# set (kernels/cpu/cpu.h).

BY_ISA := $(addprefix kernels/cpu/,attention conv ctc elementwise frames linear norm optimizer softmax) \
	$(if $(NO_PAPER),,$(addprefix paper/cpu/,lsh lstm mapped_attention softmax_attention))
BY_ISA_x86_64 := $(foreach i,avx2 avx512,$(BY_ISA:=@$i)) kernels/cpu/linear_bf16@avx512bf16 \
	$(addprefix kernels/cpu/linear_int8@,avx2 avxvnni avx512 avx512vnni)
BY_ISA_aarch64 := kernels/cpu/linear_bf16@neonbf16 kernels/cpu/linear_int8@neondot kernels/cpu/linear_int8_neoni8mm@neoni8mm
BY_ISA_arm64 := $(BY_ISA_aarch64)
ISA_OBJ := $(BY_ISA_$(ARCH):%=$O/%.o)
ONLY_BY_ISA := kernels/cpu/linear_int8_neoni8mm.c

# With fused multiply-adds: these instruction sets have them, and -std=c11 alone does not let the compiler form them.
ISA_avx2 := -DLIN_WIDTH=8 -mavx2 -mfma -mf16c -ffp-contract=fast
ISA_avxvnni := -DLIN_WIDTH=8 -mavx2 -mfma -mavxvnni -DLIN_PER_WORD=4
ISA_avx512 := -DLIN_WIDTH=16 -march=x86-64-v4 -ffp-contract=fast
ISA_avx512vnni := -DLIN_WIDTH=16 -march=x86-64-v4 -mavx512vnni -DLIN_PER_WORD=4
ISA_avx512bf16 := $(ISA_avx512) -mavx512bf16
ISA_neonbf16 := -DLIN_WIDTH=4 -march=armv8.2-a+bf16
ISA_neondot := -DLIN_WIDTH=4 -march=armv8.2-a+dotprod -DLIN_PER_WORD=4
ISA_neoni8mm := -DLIN_WIDTH=4 -march=armv8.2-a+dotprod+i8mm
ISA_SETS := avx2 avxvnni avx512 avx512vnni avx512bf16 neonbf16 neondot neoni8mm
# Eight-bit products have the same bits on every processor, so none fuses. The program's other sources do not, either.
$O/kernels/cpu/linear_int8%: EXACT := -ffp-contract=off

define isa_rule
$O/%@$1.o: %.c $B/flags
	$$(call compile,CC   ,$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(WERROR) -DLIN_SUFFIX=$1 $$(ISA_$1) $$(EXACT) $$(PLAIN) $$(PKG_CFLAGS))
endef
