/* Any bytes as a gzip member: what comes out stays below the cap, and a refusal says why. */
#include "base/format/gunzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CAP_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct buffer out;
	buffer_init(&out, CAP_BYTES);
	const int result = gunzip(span_of(data, size), &out, &err);
	ASSERT(out.len <= CAP_BYTES);
	ASSERT((result == 0) == (err.kind == ERROR_NONE));
	buffer_release(&out);
	return 0;
}
