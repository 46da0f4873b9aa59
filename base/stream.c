#include "base/stream.h"

int body_source_read_whole(struct body_source *source, uint8_t *into, size_t len, struct error *err)
{
	for (size_t at = 0; at < len;) {
		const ptrdiff_t got = source->read(source, into + at, len - at, err);
		if (got < 0)
			return -1;
		if (got == 0)
			return error_set(err, ERROR_CORRUPT,
				"The bytes of an object ended before its size.");
		ASSERT((size_t)got <= len - at);
		at += (size_t)got;
	}
	return 0;
}
