#include "storage/versions/part_ends.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/versions/derived_parts.h"
#include "storage/versions/derived_row.h"

void part_ends_read(struct span parts, struct part_ends *out)
{
	const size_t count = derived_parts_count(parts);
	*out = (struct part_ends){
		.ends = memory_new_array(count + 1, sizeof(*out->ends)), .count = count};
	for (size_t i = 0; i < count; i++) {
		const struct object_part part = derived_parts_entry(parts, i, CHECKSUM_NONE);
		out->ends[i] = part.offset + part.size;
	}
}

int part_ends_load(
	struct db *db, const struct version *version, struct part_ends *out, struct error *err)
{
	struct db_statement *statement = NULL;
	struct span parts;
	if (derived_row_parts(db, version->sequence, version->contents, &parts, &statement, err) !=
		0)
		return -1;
	const bool is_sound = derived_parts_are_sound(parts);
	if (is_sound)
		part_ends_read(parts, out);
	db_reset(statement);
	if (is_sound)
		return 0;
	return error_set(err, ERROR_CORRUPT,
		"%s: the parts of the derived version %lld are damaged.", db_path(db),
		(long long)version->sequence);
}

void part_ends_release(struct part_ends *ends)
{
	free(ends->ends);
	*ends = (struct part_ends){.ends = NULL};
}

uint64_t part_ends_left(struct part_ends *ends, uint64_t at)
{
	ASSERT(ends->next == 0 || ends->ends[ends->next - 1] <= at);
	while (ends->next < ends->count && ends->ends[ends->next] <= at)
		ends->next++;
	return ends->next == ends->count ? UINT64_MAX : ends->ends[ends->next] - at;
}
