#include <stdlib.h>

#include "base/memory.h"
#include "storage/bucket_row.h"
#include "storage/committer.h"
#include "storage/object.h"
#include "storage/version.h"

enum { DELETE_ARENA_BYTES = 64 * 1024 };

struct object_delete {
	struct change change; /* first */
	struct arena *arena;  /* the texts below */
	struct span bucket;
	struct span key;
	struct object_conditions conditions;
	void (*done)(void *owner);
	void *owner;
};

static int apply(struct change *const change, struct db *const db, struct error *const err)
{
	struct object_delete *const delete = (struct object_delete *)change;
	int64_t bucket = 0;
	struct version current;
	if (bucket_row_find(db, delete->bucket, &bucket, err) != 0)
		return -1;
	const int found = version_find_current(db, bucket, delete->key, NULL, &current, err);
	if (found != 1)
		return found; /* deleting nothing succeeds, whatever If-Match says */
	return object_conditions_check(&delete->conditions, current.etag, err) != 0 ? -1 : version_retire(db, &current, err);
}

/* The texts did not fit: refused in the same place as every other refusal. */
static int apply_too_large(struct change *const change, struct db *const db, struct error *const err)
{
	(void)change;
	(void)db;
	return error_set(err, ERROR_TOO_LARGE, "The key or the conditions of the deletion are too large.");
}

static void committed(struct change *const change)
{
	struct object_delete *const delete = (struct object_delete *)change;
	delete->done(delete->owner);
}

struct object_delete *object_delete_start(struct store *const store, const struct span bucket, const struct span key,
	const struct object_conditions *const conditions, void (*const done)(void *owner), void *const owner)
{
	struct object_delete *const delete = memory_new(sizeof(*delete));
	delete->arena = arena_new(DELETE_ARENA_BYTES);
	delete->bucket = arena_copy(delete->arena, bucket);
	delete->key = arena_copy(delete->arena, key);
	if (conditions != NULL) {
		delete->conditions.if_match = arena_copy(delete->arena, conditions->if_match);
		delete->conditions.if_none_match = arena_copy(delete->arena, conditions->if_none_match);
	}
	delete->done = done;
	delete->owner = owner;
	delete->change.apply = arena_overflowed(delete->arena) ? apply_too_large : apply;
	delete->change.done = committed;
	committer_submit(store_committer(store), &delete->change);
	return delete;
}

int object_delete_outcome(struct object_delete *const change, struct error *const err)
{
	if (!change->change.failed)
		return 0;
	*err = change->change.error;
	return -1;
}

void object_delete_free(struct object_delete *const change)
{
	if (change == NULL)
		return;
	arena_free(change->arena);
	free(change);
}
