/* A choice goes over the schema's tensors, which come in byte order of their names. Shares are cut
 * by bytes rather than by number: ranks hold about as much, whatever sizes the tensors have. */
#include "client/local/subset.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { NAME_MAX_BYTES = 4096 };

static bool matches(const char *globs, struct span name);
static bool is_in_share(
	const struct subset *subset, uint64_t before, uint64_t bytes, uint64_t total);

bool subset_parse_rank(const char *text, uint64_t *out_rank, uint64_t *out_ranks)
{
	struct span rest = span_text(text);
	struct span rank;
	return span_find(rest, '/') > 0 && span_split(&rest, '/', &rank) &&
		span_parse_u64(rank, out_rank) && span_parse_u64(rest, out_ranks) &&
		*out_ranks <= SUBSET_RANKS_MAX && *out_rank < *out_ranks;
}

int subset_init(struct subset *subset, const char *glob, const char *rank, struct error *err)
{
	uint64_t number = 0;
	uint64_t ranks = 0;
	*subset = (struct subset){0};
	if (glob != NULL && rank != NULL)
		return error_set(err, ERROR_INVALID, "give either --tensors or --rank");
	if (rank != NULL && !subset_parse_rank(rank, &number, &ranks))
		return error_set(
			err, ERROR_INVALID, "--rank takes I/N, like 0/8 to 7/8, not \"%s\"", rank);
	if (glob != NULL)
		subset_init_tensors(subset, glob);
	if (rank != NULL)
		subset_init_rank(subset, number, ranks);
	return 0;
}

void subset_init_tensors(struct subset *subset, const char *glob)
{
	*subset = (struct subset){.text = memory_copy_text(glob), .glob = glob};
}

void subset_init_rank(struct subset *subset, uint64_t rank, uint64_t ranks)
{
	char text[64];
	ASSERT(rank < ranks && ranks <= SUBSET_RANKS_MAX);
	snprintf(text, sizeof(text), "rank %" PRIu64 "/%" PRIu64, rank, ranks);
	*subset = (struct subset){.text = memory_copy_text(text), .rank = rank, .ranks = ranks};
}

void subset_release(struct subset *subset)
{
	free(subset->text);
	*subset = (struct subset){0};
}

bool *subset_select(const struct subset *subset, const struct schema *schema, struct error *err)
{
	const size_t count = schema_count(schema);
	const uint64_t total = schema_bytes(schema);
	bool *const chosen = memory_new_array(count + 1, sizeof(*chosen));
	uint64_t before = 0;
	size_t taken = 0;
	for (size_t i = 0; i < count; i++) {
		const struct schema_tensor *const tensor = schema_tensor(schema, i);
		chosen[i] = subset->text == NULL ||
			(subset->glob != NULL ? matches(subset->glob, tensor->name)
					      : is_in_share(subset, before, tensor->bytes, total));
		before += tensor->bytes;
		taken += chosen[i] ? 1 : 0;
	}
	if (taken > 0)
		return chosen;
	error_set(err, ERROR_NOT_FOUND, "no tensor of this model belongs to \"%s\"", subset->text);
	free(chosen);
	return NULL;
}

static bool matches(const char *globs, struct span name)
{
	char text[NAME_MAX_BYTES + 1];
	char glob[NAME_MAX_BYTES + 1];
	struct span rest = span_text(globs);
	struct span one;
	if (name.len > NAME_MAX_BYTES)
		return false;
	memcpy(text, name.data, name.len);
	text[name.len] = '\0';
	while (span_split(&rest, ',', &one)) {
		if (one.len == 0 || one.len > NAME_MAX_BYTES)
			continue;
		memcpy(glob, one.data, one.len);
		glob[one.len] = '\0';
		if (fnmatch(glob, text, 0) == 0)
			return true;
	}
	return false;
}

/* A tensor belongs to the share that its middle byte lies in. */
static bool is_in_share(
	const struct subset *subset, uint64_t before, uint64_t bytes, uint64_t total)
{
	ASSERT(subset->rank < subset->ranks);
	const double middle =
		((double)before + (double)bytes / 2) / (total > 0 ? (double)total : 1);
	const uint64_t share = (uint64_t)(middle * (double)subset->ranks);
	return (share < subset->ranks ? share : subset->ranks - 1) == subset->rank;
}
