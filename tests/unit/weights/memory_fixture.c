#include "tests/unit/weights/memory_fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { GUARD_BYTES = 33, GUARD = 0xa5 };

void memory_fixture_load(struct memory_fixture *memory, const char *path)
{
	struct error err = {0};
	*memory = (struct memory_fixture){.origin = checkpoint_open(path, &err)};
	ck_assert_msg(memory->origin != NULL, "%s", err.text);
	memory->schema = checkpoint_schema(memory->origin);
	const size_t count = schema_count(memory->schema);
	memory->tensors = memory_new_array(count, sizeof(memory->tensors[0]));
	memory->blocks = memory_new_array(count, sizeof(memory->blocks[0]));
	for (size_t i = 0; i < count; i++) {
		const size_t bytes = (size_t)schema_tensor(memory->schema, i)->bytes;
		memory->blocks[i] = memory_new(bytes + 2 * GUARD_BYTES);
		memset(memory->blocks[i], GUARD, bytes + 2 * GUARD_BYTES);
		memory->tensors[i] = bytes > 0 ? memory->blocks[i] + GUARD_BYTES : NULL;
	}
	memory_fixture_refill(memory);
}

void memory_fixture_release(struct memory_fixture *memory)
{
	for (size_t i = 0; i < schema_count(memory->schema); i++)
		free(memory->blocks[i]);
	free(memory->blocks);
	free(memory->tensors);
	checkpoint_close(memory->origin);
}

void memory_fixture_refill(struct memory_fixture *memory)
{
	for (size_t i = 0; i < schema_count(memory->schema); i++) {
		const struct span from = checkpoint_tensor(memory->origin, i);
		if (from.len > 0)
			memcpy(memory->tensors[i], from.data, from.len);
	}
}

bool memory_fixture_equals(const struct memory_fixture *memory, const struct checkpoint *checkpoint)
{
	bool same = true;
	for (size_t i = 0; i < schema_count(memory->schema); i++) {
		const struct span wanted = checkpoint_tensor(checkpoint, i);
		const uint8_t *const block = memory->blocks[i];
		ck_assert_uint_eq(wanted.len, schema_tensor(memory->schema, i)->bytes);
		for (size_t k = 0; k < GUARD_BYTES; k++)
			ck_assert(
				block[k] == GUARD && block[GUARD_BYTES + wanted.len + k] == GUARD);
		same = same && span_equal(wanted, span_of(block + GUARD_BYTES, wanted.len));
	}
	return same;
}
