#include "client/remote/missing_bucket.h"

#include "client/remote/remote_object.h"
#include "wire/bucket_rule.h"

static int refuse_name(struct span name, const char *rule, enum error_kind kind, struct error *err);

int missing_bucket_refuse(struct span name, struct error *err)
{
	const char *const rule = bucket_rule_broken(name);
	if (rule != NULL)
		return refuse_name(name, rule, ERROR_NO_BUCKET, err);
	return error_set(err, ERROR_NO_BUCKET, "there is no bucket %.*s; --create-bucket makes it",
		(int)name.len, (const char *)name.data);
}

int missing_bucket_explain(struct remote *remote, struct span name, struct error *err)
{
	struct error ignored = {0};
	if (err->kind != ERROR_NO_KEY || remote_object_has_bucket(remote, name, &ignored) != 0)
		return -1;
	return error_reword(err, ERROR_NO_BUCKET, "there is no bucket %.*s", (int)name.len,
		(const char *)name.data);
}

int missing_bucket_check(
	struct remote *remote, const struct run_name *run, bool wants_made, struct error *err)
{
	const struct span name = span_text(run->bucket);
	const char *const rule = bucket_rule_broken(name);
	struct run_message found;
	struct error failure = {0};
	if (rule == NULL)
		return 0;
	/* The bucket may exist all the same: Hub clients can make buckets with such names. */
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	const int result = remote_run_find(remote, run, arena, &found, &failure);
	arena_free(arena);
	if (result == 0 || failure.kind == ERROR_NO_RUN)
		return 0;
	if (failure.kind == ERROR_NO_BUCKET)
		return refuse_name(name, rule, wants_made ? ERROR_BAD_NAME : ERROR_NO_BUCKET, err);
	*err = failure;
	return -1;
}

static int refuse_name(struct span name, const char *rule, enum error_kind kind, struct error *err)
{
	return error_set(err, kind,
		"there is no bucket %.*s, and none can be made of this name: it %s", (int)name.len,
		(const char *)name.data, rule);
}
