/* Any bytes as a delta, made into another format over a base that it was not made from, or folded
 * without a base. What is written makes the same tensors of the base as what was read. Bits 1 to 3
 * of the first byte choose the format, bit 4 the fold without a base; fuzz_delta.h has the rest. */
#include "fuzz_delta.h"
#include "weights/delta/delta_source.h"
#include "weights/delta/fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct model_files base_files;

static void release_files(void)
{
	model_files_release(&base_files);
}

/* Digests of what `path` makes of the base; false when it does not read. */
static bool digests_of(const char *path, struct digest128 *out_digests)
{
	struct error err;
	struct delta_reader *const reader = delta_reader_open(path, &err);
	struct tensor_source *const source =
		reader == NULL ? NULL : delta_source_new(reader, base_source, &err);
	const bool ok = source != NULL && tensor_source_digests(source, 1, out_digests, &err) == 0;
	tensor_source_free(source);
	delta_reader_close(reader);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	prepare();
	struct error err;
	if (base_files.files == NULL) {
		ASSERT(model_files_of(&base_files, base, &err) == 0);
		atexit(release_files);
	}
	const char *const path = write_delta(span_of(data, size));
	if (path == NULL)
		return 0;
	char out[2 * PATH_BYTES];
	snprintf(out, sizeof out, "%s/out", folder);
	const char *const twice[] = {path, path};
	const bool plain = (data[0] & 16) != 0;
	const struct fold_params params = {
		.base = plain ? NULL : base_source,
		.base_files = plain ? NULL : &base_files,
		.deltas = twice,
		.count = plain ? 2 : 1,
		.format = (enum delta_format)((data[0] >> 1 & 7) % DELTA_FORMATS),
		.threads = 1,
		.out = out,
	};
	struct delta_stats stats;
	if (fold(&params, &stats, &err) == 0) {
		struct digest128 before[8];
		struct digest128 after[8];
		ASSERT(schema_count(checkpoint_schema(base)) <= 8);
		if (!plain) {
			ASSERT(digests_of(path, before) && digests_of(out, after));
			ASSERT(memcmp(before, after,
				       schema_count(checkpoint_schema(base)) * sizeof before[0]) ==
				0);
		}
		ASSERT(file_remove_tree(file_system(), out, &err) == 0);
	}
	ASSERT(!file_exists(out));
	return 0;
}
