// Which of the processor's own instructions the kernels may use, decided when they are compiled: those of the widest registers.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define QUANTGATE_AVX512 1
#define QUANTGATE_AVX2 0
#else
#define QUANTGATE_AVX512 0
#if defined(__AVX2__)
#define QUANTGATE_AVX2 1
#else
#define QUANTGATE_AVX2 0
#endif
#endif

#if QUANTGATE_AVX512 || QUANTGATE_AVX2
// GCC 12's own headers start some intrinsics from a register that is not set, and warn of it where they are inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
#endif

#if QUANTGATE_AVX512 && defined(__AVX512BF16__)
#define QUANTGATE_AVX512_BF16 1
#else
#define QUANTGATE_AVX512_BF16 0
#endif

#if QUANTGATE_AVX512 && defined(__AVX512VNNI__)
#define QUANTGATE_AVX512_VNNI 1
#else
#define QUANTGATE_AVX512_VNNI 0
#endif

// Functions that hold a tile of sums stay inside their caller: as calls of their own they would keep the sums in memory.
#define QUANTGATE_INLINED inline __attribute__((always_inline))
