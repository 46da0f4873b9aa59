/* Every allocation passes through require(), which ends the process when memory is out, so that no
 * caller checks for NULL. Sizes of arrays are multiplied with a check for overflow. */
#include "base/memory.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum { FIRST_CAPACITY = 16 };
enum { UNUSED_BYTES = 16 * 1024 * 1024 /* less is not worth the walk over the heap */ };

static void *require(void *memory, size_t bytes);
static size_t product(size_t count, size_t bytes);
static size_t read_resident(void);

void *memory_new(size_t bytes)
{
	return require(calloc(1, bytes > 0 ? bytes : 1), bytes);
}

void *memory_new_array(size_t count, size_t bytes)
{
	const size_t total = product(count, bytes);
	return require(calloc(1, total), total);
}

void *memory_grow(void *old, size_t count, size_t bytes)
{
	const size_t total = product(count, bytes);
	return require(realloc(old, total), total);
}

void *memory_make_room(void *list, size_t count, size_t *capacity, size_t element_bytes)
{
	ASSERT(count <= *capacity && element_bytes > 0 && (list != NULL || *capacity == 0));
	if (count < *capacity)
		return list;
	*capacity = *capacity == 0 ? FIRST_CAPACITY : 2 * *capacity;
	return memory_grow(list, *capacity, element_bytes);
}

char *memory_copy_text(const char *text)
{
	return text != NULL ? memory_copy(text, strlen(text) + 1) : NULL;
}

void *memory_copy(const void *data, size_t bytes)
{
	void *const copy = memory_new(bytes);
	ASSERT(data != NULL || bytes == 0);
	if (bytes > 0)
		memcpy(copy, data, bytes);
	return copy;
}

/* mallinfo2 counts memory as unused even after it was returned to the system, so only growth of
 * these numbers means that there is something to return. */
void memory_give_back(struct memory_rest *rest)
{
	ASSERT(rest != NULL);
	const size_t resident = read_resident();
	const size_t unused = mallinfo2().fordblks;
	if (unused < rest->unused)
		rest->unused = unused;
	const bool has_grown =
		resident >= rest->resident + UNUSED_BYTES || unused >= rest->unused + UNUSED_BYTES;
	if (unused < UNUSED_BYTES || !has_grown)
		return;
	malloc_trim(0);
	*rest = (struct memory_rest){read_resident(), mallinfo2().fordblks};
}

static void *require(void *memory, size_t bytes)
{
	if (memory != NULL)
		return memory;
	fprintf(stderr, "out of memory: %zu bytes were asked for\n", bytes);
	abort();
}

/* At least one byte, so that NULL always means failure. */
static size_t product(size_t count, size_t bytes)
{
	size_t total = 0;
	if (__builtin_mul_overflow(count, bytes, &total))
		require(NULL, SIZE_MAX);
	return total > 0 ? total : 1;
}

/* The resident bytes of the process; 0 when the system does not say. */
static size_t read_resident(void)
{
	size_t total = 0;
	size_t pages = 0;
	FILE *const file = fopen("/proc/self/statm", "re");
	if (file == NULL)
		return 0;
	const bool is_read = fscanf(file, "%zu %zu", &total, &pages) == 2;
	fclose(file);
	return is_read ? pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
}
