/* The header of the library once more, compiled inline for AVX2. */
#include "base/digest/xxh3_wide.h"

#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#pragma GCC target("avx2")
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"

_Static_assert(XXH_VECTOR == XXH_AVX2, "32 bytes at a time");

bool xxh3_wide_works(void)
{
	return __builtin_cpu_supports("avx2");
}

uint64_t xxh3_wide_64(struct span bytes)
{
	return XXH3_64bits(bytes.data, bytes.len);
}

void xxh3_wide_update(void *state, struct span bytes)
{
	const XXH_errorcode code = XXH3_128bits_update(state, bytes.data, bytes.len);
	ASSERT(code == XXH_OK);
}
#else
#include "base/error.h"

bool xxh3_wide_works(void)
{
	return false;
}

uint64_t xxh3_wide_64(struct span bytes)
{
	(void)bytes;
	ASSERT(xxh3_wide_works());
	return 0;
}

void xxh3_wide_update(void *state, struct span bytes)
{
	(void)state;
	(void)bytes;
	ASSERT(xxh3_wide_works());
}
#endif
