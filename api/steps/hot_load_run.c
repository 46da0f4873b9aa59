#include "api/steps/hot_load_run.h"

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "storage/runs/hot_load.h"

static int find_granted(struct exchange *exchange, struct hot_load_run *found, unsigned permission,
	struct error *err);
static int find(struct exchange *exchange, struct hot_load_run *found,
	const struct deployment_place *among, unsigned permission, struct error *err);
static int judge(struct exchange *exchange, struct hot_load_run *found, unsigned permission,
	struct error *err);
static int find_own(struct exchange *exchange, struct hot_load_run *found, unsigned permission,
	struct error *err);

struct hot_load_run *hot_load_run_find(
	struct exchange *exchange, unsigned permission, struct error *err)
{
	struct hot_load_run *const found = arena_take(exchange->arena, sizeof(*found));
	ASSERT(exchange->principal != NULL);
	if (found == NULL) {
		error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
		return NULL;
	}
	found->deployment = exchange_header(exchange, "fireworks-deployment");
	if (found->deployment.len == 0) {
		error_set(err, ERROR_INVALID,
			"The header fireworks-deployment is missing; it must name the deployment of a run.");
		return NULL;
	}
	const bool has_grants = exchange->principal->grant_count > 0;
	return (has_grants ? find_granted : find_own)(exchange, found, permission, err) == 0 ? found
											     : NULL;
}

/* A key with grants searches the buckets that they name, which may belong to another account, and
 * takes the first run that it has access to. */
static int find_granted(struct exchange *exchange, struct hot_load_run *found, unsigned permission,
	struct error *err)
{
	const struct principal *const principal = exchange->principal;
	struct error failure = {0};
	for (size_t i = 0; i < principal->grant_count; i++) {
		const struct deployment_place among = {.bucket = principal->grants[i].bucket};
		struct error one = {0};
		if (find(exchange, found, &among, permission, &one) == 0)
			return 0;
		if (failure.kind == ERROR_NONE || one.kind != ERROR_NO_RUN)
			failure = one;
		if (one.kind != ERROR_NO_RUN && one.kind != ERROR_DENIED)
			break;
	}
	*err = failure;
	return -1;
}

static int find(struct exchange *exchange, struct hot_load_run *found,
	const struct deployment_place *among, unsigned permission, struct error *err)
{
	if (hot_load_find(exchange->context->store, found->deployment, among, exchange->arena,
		    &found->run, err) != 0)
		return -1;
	return judge(exchange, found, permission, err);
}

/* A refusal names neither bucket nor run, because the caller may know only the deployment. */
static int judge(struct exchange *exchange, struct hot_load_run *found, unsigned permission,
	struct error *err)
{
	struct run_ref *const run = &found->run;
	const char *const key = arena_format(
		exchange->arena, "%.*s/", (int)run->name.len, (const char *)run->name.data);
	if (key == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	if (authorise_owned_key(exchange, &run->bucket, span_text(key), permission, err) == 0)
		return 0;
	if (!authorise_is_refusal(err->kind))
		return -1;
	return error_set(err, ERROR_DENIED, "Your key may not %s the run of the deployment '%.*s'.",
		permission == PERMISSION_WRITE ? "write to" : "read",
		(int)span_slice(found->deployment, 0, RUN_DEPLOYMENT_MAX_BYTES).len,
		(const char *)found->deployment.data);
}

static int find_own(struct exchange *exchange, struct hot_load_run *found, unsigned permission,
	struct error *err)
{
	const struct deployment_place among = {.account = exchange->principal->namespace};
	return find(exchange, found, &among, permission, err);
}
