#include "library/sized.h"

#include <stdint.h>
#include <string.h>

enum { SIZE_MAX_BYTES = 4096 }; /* of any struct: more is a size that was never set */

static int read_size(const void *given, const char *name, size_t *out, struct error *err);
static size_t least(size_t a, size_t b);

int sized_take(void *into, size_t known, const void *given, const char *name, struct error *err)
{
	const uint8_t *const bytes = given;
	size_t size = 0;
	if (read_size(given, name, &size, err) != 0)
		return -1;
	for (size_t i = known; i < size; i++)
		if (bytes[i] != 0)
			return error_set(err, ERROR_UNSUPPORTED,
				"struct %s sets members that this version of libdeltabucket, " PACKAGE_VERSION
				", does not know",
				name);
	memcpy(into, given, least(size, known));
	memcpy(into, &known, sizeof(known));
	return 0;
}

int sized_give(void *into, const void *made, size_t known, const char *name, struct error *err)
{
	size_t size = 0;
	if (read_size(into, name, &size, err) != 0)
		return -1;
	memset(into, 0, size);
	memcpy(into, made, least(size, known));
	memcpy(into, &size, sizeof(size));
	return 0;
}

static int read_size(const void *given, const char *name, size_t *out, struct error *err)
{
	memcpy(out, given, sizeof(*out));
	if (*out >= sizeof(*out) && *out <= SIZE_MAX_BYTES)
		return 0;
	return error_set(err, ERROR_INVALID,
		"struct %s has the size %zu; set it with the macro of the same name in capitals",
		name, *out);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}
