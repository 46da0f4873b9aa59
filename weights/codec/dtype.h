/* The safetensors element types. */
#ifndef WEIGHTS_CODEC_DTYPE_H
#define WEIGHTS_CODEC_DTYPE_H

#include "base/span.h"

/* In descending order of alignment, the order in which the reference writer sorts tensors. */
enum dtype {
	DTYPE_U64,
	DTYPE_I64,
	DTYPE_F64,
	DTYPE_C64,
	DTYPE_F32,
	DTYPE_U32,
	DTYPE_I32,
	DTYPE_BF16,
	DTYPE_F16,
	DTYPE_U16,
	DTYPE_I16,
	DTYPE_F8_E5M2FNUZ,
	DTYPE_F8_E4M3FNUZ,
	DTYPE_F8_E8M0,
	DTYPE_F8_E4M3,
	DTYPE_F8_E5M2,
	DTYPE_I8,
	DTYPE_U8,
	DTYPE_F6_E3M2,
	DTYPE_F6_E2M3,
	DTYPE_F4,
	DTYPE_BOOL,
	DTYPE_COUNT
};

const char *dtype_name(enum dtype dtype);
unsigned dtype_bits(enum dtype dtype);
bool dtype_parse(struct span name, enum dtype *out_dtype);

#endif
