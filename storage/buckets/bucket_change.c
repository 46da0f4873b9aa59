#include "storage/buckets/bucket_change.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/buckets/bucket_row.h"

enum { CHANGE_ARENA_BYTES = 4 * 1024 * 1024 };

static void bucket_change_done(struct change *base)
{
	struct bucket_change *const change = (struct bucket_change *)base;
	if (!base->failed && change->settle != NULL)
		change->settle(change);
	change->done(change->owner);
}

struct bucket_change *bucket_change_new(
	struct store *store, struct span name, void (*done)(void *owner), void *owner)
{
	struct bucket_change *const change = memory_new(sizeof(*change));
	change->store = store;
	change->arena = arena_new(CHANGE_ARENA_BYTES);
	change->name = arena_copy(change->arena, span_slice(name, 0, 1024));
	change->done = done;
	change->owner = owner;
	change->change.done = bucket_change_done;
	return change;
}

void bucket_change_submit(struct bucket_change *change,
	int (*apply)(struct change *change, struct db *db, struct error *err))
{
	change->change.apply = apply;
	committer_submit(store_committer(change->store), &change->change);
}

int bucket_change_outcome(struct bucket_change *change, struct error *err)
{
	if (!change->change.failed)
		return 0;
	*err = change->change.error;
	return -1;
}

void bucket_change_free(struct bucket_change *change)
{
	if (change == NULL)
		return;
	arena_free(change->arena);
	free(change);
}

int bucket_change_check_free(
	struct bucket_change *change, struct db *db, struct span name, struct error *err)
{
	struct bucket existing;
	struct error found;
	if (bucket_row_read(db, name, change->arena, &existing, &found) == 0) {
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
