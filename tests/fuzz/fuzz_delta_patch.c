/* Any bytes as a delta that patches tensors in memory, proven first or on the way. Nothing is
 * written outside of the tensors; after a failure they are untouched, unless they are told to be
 * spoiled. fuzz_delta.h says how the bytes are laid out. */
#include "fuzz_delta.h"
#include "weights/delta/delta_patch.h"

enum { TENSORS = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each tensor has memory of its own, so that the sanitizer sees what lies beside it. */
static void fill(uint8_t *tensors[TENSORS])
{
	for (size_t i = 0; i < TENSORS; i++) {
		const struct span from = checkpoint_tensor(base, i);
		tensors[i] = memory_copy(from.data, from.len);
	}
}

static void patch(const char *path, bool proves_first)
{
	struct error err;
	struct delta_stats stats;
	bool spoiled = false;
	bool same = true;
	uint8_t *tensors[TENSORS];
	const struct delta_patch_params params = {
		.schema = checkpoint_schema(base),
		.tensors = tensors,
		.deltas = &path,
		.delta_count = 1,
		.proves_first = proves_first,
		.threads = 1,
	};
	fill(tensors);
	const int result = delta_patch(&params, &stats, &spoiled, &err);
	for (size_t i = 0; i < TENSORS; i++) {
		const struct span was = checkpoint_tensor(base, i);
		same = same && span_equal(was, span_of(tensors[i], was.len));
		free(tensors[i]);
	}
	ASSERT(result == 0 || err.kind != ERROR_NONE);
	ASSERT(result == 0 || same || spoiled);
	ASSERT(!spoiled || (result != 0 && !proves_first));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	prepare();
	ASSERT(schema_count(checkpoint_schema(base)) == TENSORS);
	const char *const path = write_delta(span_of(data, size));
	if (path == NULL)
		return 0;
	patch(path, false);
	patch(path, true);
	return 0;
}
