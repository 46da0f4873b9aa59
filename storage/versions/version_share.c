#include "storage/versions/version_share.h"

#include "base/random.h"
#include "storage/versions/derived_row.h"
#include "storage/versions/part.h"

static int copy_inline(struct db *db, const struct version *source, struct arena *arena,
	struct span *out, struct error *err)
{
	struct db_statement *statement = NULL;
	struct span bytes;
	if (part_inline_load(db, source->sequence, source->contents, &bytes, &statement, err) != 0)
		return -1;
	*out = arena_copy(arena, bytes);
	db_reset(statement);
	return arena_overflowed(arena)
		? error_set(err, ERROR_NO_MEMORY, "The memory for a shared version ran out.")
		: 0;
}

int version_share(struct db *db, const struct version_share *share, struct arena *arena,
	struct version *out, struct error *err)
{
	const struct version *const source = share->source;
	const bool is_inline = source->kind == VERSION_INLINE;
	const bool is_derived = source->kind == VERSION_DERIVED;
	struct span bytes = {0};
	ASSERT(source->sequence > 0);
	*out = *source;
	out->bucket = share->bucket;
	out->key = share->key;
	out->modified_ms = share->modified_ms;
	out->tags = (struct span){0};
	out->acl = ACL_PRIVATE;
	out->has_id = false;
	random_bytes(out->id, VERSION_ID_BYTES);
	if (is_inline && copy_inline(db, source, arena, &bytes, err) != 0)
		return -1;
	if (!is_inline && !is_derived && part_set_share(db, source->part_set, err) != 0)
		return -1;
	if (version_add_hidden(db, out, err) != 0)
		return -1;
	if (is_derived)
		return derived_row_share(db, source->sequence, out->sequence, err);
	return is_inline ? part_inline_add(db, out->sequence, bytes, err) : 0;
}
