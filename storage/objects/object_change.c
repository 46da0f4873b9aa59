#include "storage/objects/object_change.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/committer.h"
#include "storage/objects/object_row.h"

enum { CHANGE_ARENA_BYTES = 256 * 1024 };

struct object_change {
	struct change change; /* first */
	struct arena *arena;  /* the texts below and of `version` */
	struct span bucket;
	int64_t bucket_id;
	struct span key;
	struct version_ref ref;
	bool sets_tags;
	struct span tags;
	bool sets_acl;
	enum canned_acl acl;
	struct version version; /* as committed */
	void (*done)(void *owner);
	void *owner;
};

static int find(struct object_change *change, struct db *db, struct error *err)
{
	struct bucket bucket;
	if (bucket_row_same(db, change->bucket, change->bucket_id, &bucket, err) != 0)
		return -1;
	const int found = version_find_ref(
		db, bucket.id, change->key, &change->ref, change->arena, &change->version, err);
	change->version.in_versioned_bucket = bucket.versioning != BUCKET_UNVERSIONED;
	if (found < 0)
		return -1;
	if (found == 0)
		return change->ref.kind == VERSION_REF_CURRENT
			? object_no_key(change->key, err)
			: object_no_version(change->key, err);
	if (change->version.is_marker)
		return error_set(err, ERROR_METHOD,
			"A delete marker has neither tags nor an access control list.");
	return 0;
}

static int apply(struct change *base, struct db *db, struct error *err)
{
	struct object_change *const change = (struct object_change *)base;
	if (find(change, db, err) != 0)
		return -1;
	if (change->sets_tags)
		change->version.tags = change->tags;
	if (change->sets_acl)
		change->version.acl = change->acl;
	return version_update(db, &change->version, err);
}

/* The texts did not fit: refused in the same place as every other refusal. */
static int apply_too_large(struct change *change, struct db *db, struct error *err)
{
	(void)change;
	(void)db;
	return error_set(err, ERROR_TOO_LARGE, "The key or the tags are too large.");
}

static void committed(struct change *base)
{
	struct object_change *const change = (struct object_change *)base;
	change->done(change->owner);
}

struct object_change *object_change_start(
	struct store *store, const struct object_change_params *params)
{
	struct object_change *const change = memory_new(sizeof(*change));
	change->arena = arena_new(CHANGE_ARENA_BYTES);
	change->bucket = arena_copy(change->arena, params->bucket);
	change->bucket_id = params->bucket_id;
	change->key = arena_copy(change->arena, params->key);
	change->ref = params->ref;
	change->sets_tags = params->sets_tags;
	change->tags = arena_copy(change->arena, params->tags);
	change->sets_acl = params->sets_acl;
	change->acl = params->acl;
	change->done = params->done;
	change->owner = params->owner;
	change->change.apply = arena_overflowed(change->arena) ? apply_too_large : apply;
	change->change.done = committed;
	committer_submit(store_committer(store), &change->change);
	return change;
}

int object_change_outcome(struct object_change *change, struct object *out, struct error *err)
{
	if (change->change.failed) {
		*err = change->change.error;
		return -1;
	}
	return object_of_version(&change->version, change->arena, out, err);
}

void object_change_free(struct object_change *change)
{
	if (change == NULL)
		return;
	arena_free(change->arena);
	free(change);
}
