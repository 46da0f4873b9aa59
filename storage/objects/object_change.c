#include "storage/objects/object_change.h"

#include "storage/objects/object_row.h"

enum { CHANGE_ARENA_BYTES = 256 * 1024 };

struct object_change { /* its texts are in the call's arena */
	struct call call;
	struct object_change_params params;
	struct version version; /* as committed */
};

static int object_change_apply(struct call *call, struct db *db, struct error *err);
static int change_find(struct object_change *change, struct db *db, struct error *err);

static const struct call_kind change_kind = {
	.stages = {{.apply = object_change_apply}},
	.too_large = "The key or the tags are too large.",
};

struct call *object_change_call(struct store *store, const struct object_change_params *params)
{
	struct object_change *const change =
		call_new(sizeof(*change), &change_kind, store, CHANGE_ARENA_BYTES);
	struct object_ref *const object = &change->params.object;
	change->params = *params;
	object->bucket = bucket_ref_copy(params->object.bucket, change->call.arena);
	object->key = arena_copy(change->call.arena, params->object.key);
	change->params.tags = arena_copy(change->call.arena, params->tags);
	return &change->call;
}

int object_change_result(const struct call *call, struct object *out, struct error *err)
{
	const struct object_change *const change = (const struct object_change *)call;
	return call_outcome(call, err) != 0
		? -1
		: object_of_version(&change->version, call->arena, out, err);
}

static int object_change_apply(struct call *call, struct db *db, struct error *err)
{
	struct object_change *const change = (struct object_change *)call;
	if (change_find(change, db, err) != 0)
		return -1;
	if (change->params.sets_tags)
		change->version.tags = change->params.tags;
	if (change->params.sets_acl)
		change->version.acl = change->params.acl;
	return version_update(db, &change->version, err);
}

static int change_find(struct object_change *change, struct db *db, struct error *err)
{
	if (object_find_row(
		    db, &change->params.object, change->call.arena, &change->version, err) != 0)
		return -1;
	if (change->version.is_marker)
		return error_set(err, ERROR_METHOD,
			"A delete marker has neither tags nor an access control list.");
	return 0;
}
