# isa.mk - instruction sets of the kernels, by the end of a source's name; included by the Makefile.

# With fused multiply-adds: these instruction sets have them, and -std=c11 alone does not let the compiler form them.
ISA_avx512 := -march=x86-64-v4 -ffp-contract=fast
ISA_avx512bf16 := $(ISA_avx512) -mavx512bf16
ISA_neonbf16 := -march=armv8.2-a+bf16
ISA_avx2 := -mavx2 -mfma -mf16c -ffp-contract=fast
# Eight-bit products have the same bits on every processor, so none fuses. The program's other sources do not, either.
ISA_int8_avx512vnni := -march=x86-64-v4 -mavx512vnni -ffp-contract=off
ISA_int8_avx512 := -march=x86-64-v4 -ffp-contract=off
ISA_int8_avxvnni := -mavx2 -mavxvnni -ffp-contract=off
ISA_int8_avx2 := -mavx2 -ffp-contract=off
ISA_int8_neondot := -march=armv8.2-a+dotprod -ffp-contract=off
ISA_int8_neoni8mm := -march=armv8.2-a+dotprod+i8mm -ffp-contract=off
ISA_int8_portable := -ffp-contract=off
$O/%_avx512.o: ISA := $(ISA_avx512)
$O/%_avx512bf16.o: ISA := $(ISA_avx512bf16)
$O/%_neonbf16.o: ISA := $(ISA_neonbf16)
$O/%_avx2.o: ISA := $(ISA_avx2)
$(foreach i,avx512vnni avx512 avxvnni avx2 neondot neoni8mm portable,$(eval $O/kernels/cpu/linear_int8_$i.o: ISA := $$(ISA_int8_$i)))
# Sources for other machines than this one.
OTHER_ISA := $(if $(filter x86_64,$(ARCH)),,%_avx2.c %_avxvnni.c %_avx512.c %_avx512vnni.c %_avx512bf16.c) \
	$(if $(filter aarch64 arm64,$(ARCH)),,%_neonbf16.c %_neondot.c %_neoni8mm.c)
