#include "weights/codec/dtype.h"

#include "base/error.h"

struct dtype_row {
	const char *name;
	unsigned bits;
};

static const struct dtype_row dtype_rows[DTYPE_COUNT] = {
	[DTYPE_U64] = {"U64", 64},
	[DTYPE_I64] = {"I64", 64},
	[DTYPE_F64] = {"F64", 64},
	[DTYPE_C64] = {"C64", 64},
	[DTYPE_F32] = {"F32", 32},
	[DTYPE_U32] = {"U32", 32},
	[DTYPE_I32] = {"I32", 32},
	[DTYPE_BF16] = {"BF16", 16},
	[DTYPE_F16] = {"F16", 16},
	[DTYPE_U16] = {"U16", 16},
	[DTYPE_I16] = {"I16", 16},
	[DTYPE_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
	[DTYPE_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
	[DTYPE_F8_E8M0] = {"F8_E8M0", 8},
	[DTYPE_F8_E4M3] = {"F8_E4M3", 8},
	[DTYPE_F8_E5M2] = {"F8_E5M2", 8},
	[DTYPE_I8] = {"I8", 8},
	[DTYPE_U8] = {"U8", 8},
	[DTYPE_F6_E3M2] = {"F6_E3M2", 6},
	[DTYPE_F6_E2M3] = {"F6_E2M3", 6},
	[DTYPE_F4] = {"F4", 4},
	[DTYPE_BOOL] = {"BOOL", 8},
};

const char *dtype_name(enum dtype dtype)
{
	ASSERT((unsigned)dtype < DTYPE_COUNT);
	return dtype_rows[dtype].name;
}

unsigned dtype_bits(enum dtype dtype)
{
	ASSERT((unsigned)dtype < DTYPE_COUNT);
	return dtype_rows[dtype].bits;
}

bool dtype_parse(struct span name, enum dtype *out_dtype)
{
	for (unsigned i = 0; i < DTYPE_COUNT; i++) {
		if (span_equal_text(name, dtype_rows[i].name)) {
			*out_dtype = (enum dtype)i;
			return true;
		}
	}
	return false;
}
