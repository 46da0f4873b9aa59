#include "base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNUSED_BYTES = 16 * 1024 * 1024 /* so much more of it is worth the walk */ };

static void *require(void *const memory, const size_t bytes)
{
	if (memory != NULL)
		return memory;
	fprintf(stderr, "out of memory: %zu bytes were asked for\n", bytes);
	abort();
}

/* At least one byte, so that NULL always means failure. */
static size_t product(const size_t count, const size_t bytes)
{
	size_t total = 0;
	if (__builtin_mul_overflow(count, bytes, &total))
		require(NULL, SIZE_MAX);
	return total > 0 ? total : 1;
}

void *memory_new(const size_t bytes)
{
	return require(calloc(1, bytes > 0 ? bytes : 1), bytes);
}

void *memory_new_array(const size_t count, const size_t bytes)
{
	const size_t total = product(count, bytes);
	return require(calloc(1, total), total);
}

void *memory_grow(void *const old, const size_t count, const size_t bytes)
{
	const size_t total = product(count, bytes);
	return require(realloc(old, total), total);
}

char *memory_copy_text(const char *const text)
{
	return text != NULL ? memory_copy(text, strlen(text) + 1) : NULL;
}

void *memory_copy(const void *const data, const size_t bytes)
{
	void *const copy = memory_new(bytes);
	if (bytes > 0)
		memcpy(copy, data, bytes);
	return copy;
}

void memory_give_back(size_t *const unused)
{
	const size_t now = mallinfo2().fordblks;
	if (now > *unused + UNUSED_BYTES)
		malloc_trim(0);
	if (now > *unused + UNUSED_BYTES || now < *unused)
		*unused = now; /* what was given back counts as unused still */
}
