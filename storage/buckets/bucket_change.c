#include "storage/buckets/bucket_change.h"

#include "storage/buckets/bucket_row.h"

enum { CHANGE_ARENA_BYTES = 4 * 1024 * 1024, NAME_MAX_BYTES = 1024 };

struct bucket_change *bucket_change_new(
	struct store *store, const struct call_kind *kind, struct bucket_ref ref)
{
	struct bucket_change *const change =
		call_new(sizeof(*change), kind, store, CHANGE_ARENA_BYTES);
	ref.name = span_slice(ref.name, 0, NAME_MAX_BYTES);
	change->bucket = bucket_ref_copy(ref, change->call.arena);
	return change;
}

int bucket_change_check_free(
	struct bucket_change *change, struct db *db, struct span name, struct error *err)
{
	struct bucket existing;
	struct error found;
	if (bucket_row_read(db, bucket_named(name), change->call.arena, &existing, &found) == 0) {
		const bool own = span_equal(existing.owner, change->account);
		return error_set(err, own ? ERROR_BUCKET_OWNED : ERROR_BUCKET_TAKEN,
			"The bucket '%.*s' exists%s.", (int)name.len, (const char *)name.data,
			own ? " and is yours" : "");
	}
	if (found.kind == ERROR_NO_BUCKET)
		return 0;
	*err = found;
	return -1;
}
