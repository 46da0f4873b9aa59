/* A list of blocks. Each is zeroed when it is made and is never reused, so that allocations are
 * zeroed too. Blocks double up to 1 MiB. The cap counts the bytes that were taken, not the size of
 * the blocks: the memory behind an arena is at most about twice its cap. */
#include "base/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum {
	ALIGNMENT = 16,
	FIRST_BLOCK_BYTES = 4096,
	SHORT_TEXT_BYTES = 256,
	LARGEST_BLOCK_BYTES = 1024 * 1024
};

struct block {
	struct block *older;
	size_t size;
	size_t used;
	_Alignas(ALIGNMENT) uint8_t bytes[];
};

struct arena {
	struct block *newest;
	size_t cap;
	size_t taken;
	size_t next_block_bytes;
	bool overflowed;
};

static void *overflow(struct arena *arena);
static struct block *add_block(struct arena *arena, size_t bytes);

struct arena *arena_new(size_t cap_bytes)
{
	struct arena *const arena = memory_new(sizeof(*arena));
	arena->cap = cap_bytes;
	arena->next_block_bytes = FIRST_BLOCK_BYTES;
	return arena;
}

void arena_free(struct arena *arena)
{
	if (arena == NULL)
		return;
	for (struct block *block = arena->newest; block != NULL;) {
		struct block *const older = block->older;
		free(block);
		block = older;
	}
	free(arena);
}

void *arena_take(struct arena *arena, size_t bytes)
{
	if (bytes > SIZE_MAX / 2)
		return overflow(arena);
	const size_t rounded =
		bytes > 0 ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
	if (arena->taken > arena->cap || rounded > arena->cap - arena->taken)
		return overflow(arena);
	struct block *block = arena->newest;
	if (block == NULL || rounded > block->size - block->used)
		block = add_block(arena, rounded);
	if (block == NULL)
		return overflow(arena);
	ASSERT(rounded <= block->size - block->used);
	void *const taken = block->bytes + block->used;
	block->used += rounded;
	arena->taken += rounded;
	return taken;
}

void *arena_take_array(struct arena *arena, size_t count, size_t bytes)
{
	size_t total = 0;
	return __builtin_mul_overflow(count, bytes, &total) ? overflow(arena)
							    : arena_take(arena, total);
}

char *arena_text(struct arena *arena, struct span text)
{
	ASSERT(text.data != NULL || text.len == 0);
	char *const copy = text.len < SIZE_MAX ? arena_take(arena, text.len + 1) : overflow(arena);
	if (copy != NULL && text.len > 0)
		memcpy(copy, text.data, text.len);
	return copy;
}

struct span arena_copy(struct arena *arena, struct span bytes)
{
	const char *const copy = arena_text(arena, bytes);
	return copy != NULL ? span_of(copy, bytes.len) : span_of(NULL, 0);
}

/* Most texts are short: those are printed only once. */
char *arena_format(struct arena *arena, const char *format, ...)
{
	char printed[SHORT_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	const int len = vsnprintf(printed, sizeof(printed), format, arguments);
	va_end(arguments);
	char *const text = len >= 0 ? arena_take(arena, (size_t)len + 1) : overflow(arena);
	if (text == NULL)
		return NULL;
	if ((size_t)len < sizeof(printed)) {
		memcpy(text, printed, (size_t)len + 1);
		return text;
	}
	va_start(arguments, format);
	vsnprintf(text, (size_t)len + 1, format, arguments);
	va_end(arguments);
	return text;
}

bool arena_overflowed(const struct arena *arena)
{
	return arena->overflowed;
}

static void *overflow(struct arena *arena)
{
	arena->overflowed = true;
	return NULL;
}

static struct block *add_block(struct arena *arena, size_t bytes)
{
	ASSERT(bytes % ALIGNMENT == 0);
	const size_t size = bytes > arena->next_block_bytes ? bytes : arena->next_block_bytes;
	struct block *const block = calloc(1, sizeof(*block) + size);
	if (block == NULL)
		return NULL;
	block->size = size;
	block->older = arena->newest;
	arena->newest = block;
	if (arena->next_block_bytes < LARGEST_BLOCK_BYTES)
		arena->next_block_bytes *= 2;
	return block;
}
