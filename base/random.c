#include "base/random.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

#include "base/error.h"

void random_bytes(void *out, size_t len)
{
	uint8_t *const bytes = out;
	for (size_t done = 0; done < len;) {
		const ssize_t got = getrandom(bytes + done, len - done, 0);
		ASSERT(got > 0 || errno == EINTR);
		done += got > 0 ? (size_t)got : 0;
	}
}
