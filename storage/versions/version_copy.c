/* The contents are shared before the copy is pushed, because a copy onto its own source may remove
 * the source. A shared derivation waits under a number that no version has, until the copy has its
 * number. */
#include "storage/versions/version_copy.h"

#include "storage/versions/derived_row.h"
#include "storage/versions/part.h"

enum { PARKED_DERIVATION = 0 }; /* the number of no version */

static int load_inline(struct db *db, const struct version *source, struct arena *arena,
	struct span *out, struct error *err)
{
	struct db_statement *statement = NULL;
	struct span bytes;
	if (source->sequence == 0)
		return 0;
	if (part_inline_load(db, source->sequence, source->contents, &bytes, &statement, err) != 0)
		return -1;
	*out = arena_copy(arena, bytes);
	db_reset(statement);
	return arena_overflowed(arena)
		? error_set(err, ERROR_TOO_LARGE, "The source's headers and tags are too large.")
		: 0;
}

int version_copy_push(struct db *db, const struct version_copy_params *params,
	struct version *version, struct arena *arena, struct error *err)
{
	const struct version *const source = params->source;
	const bool is_inline = source->kind == VERSION_INLINE;
	const bool is_derived = source->kind == VERSION_DERIVED;
	struct span bytes = {NULL, 0};
	ASSERT(version->kind == source->kind && version->part_set == source->part_set);
	if (is_inline && load_inline(db, source, arena, &bytes, err) != 0)
		return -1;
	if (is_derived && derived_row_share(db, source->sequence, PARKED_DERIVATION, err) != 0)
		return -1;
	if (!is_inline && !is_derived && part_set_share(db, source->part_set, err) != 0)
		return -1;
	if (version_push(db, params->versioning, params->current, version, err) != 0)
		return -1;
	if (is_derived)
		return derived_row_move(db, PARKED_DERIVATION, version->sequence, err);
	return is_inline ? part_inline_add(db, version->sequence, bytes, err) : 0;
}
