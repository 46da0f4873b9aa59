#include "api/auth/known_buckets.h"

#include "api/auth/keyring.h"

struct listing {
	const struct known_buckets_params *params;
	struct bucket *buckets;
	size_t count;
};

static int find_granted(struct exchange *exchange, struct listing *listing, struct error *err);
static const struct grant *next_grant(
	const struct principal *principal, const struct listing *listing, struct span last);
static bool is_wanted(const struct listing *listing, struct span name);
static bool has_grants(const struct principal *principal);

int known_buckets_list(struct exchange *exchange, const struct known_buckets_params *params,
	struct bucket **out, size_t *out_count, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	const struct span everybody = {0};
	struct listing listing = {.params = params};
	ASSERT(principal != NULL && params->limit > 0);
	if (has_grants(principal)) {
		const int result = find_granted(exchange, &listing, err);
		*out = listing.buckets;
		*out_count = listing.count;
		return result;
	}
	const struct bucket_list_params all = {
		.owner = principal->is_root ? everybody : principal->namespace,
		.prefix = params->prefix,
		.after = params->after,
		.limit = params->limit};
	return bucket_list(exchange->context->store, &all, exchange->arena, out, out_count, err);
}

unsigned known_bucket_permissions(const struct exchange *exchange, const struct bucket *bucket)
{
	const struct principal *const principal = exchange->principal;
	unsigned permissions = 0;
	if (!has_grants(principal))
		return PERMISSION_READ | PERMISSION_LIST | PERMISSION_WRITE | PERMISSION_ADMIN;
	for (size_t i = 0; i < principal->grant_count; i++)
		if (span_equal(principal->grants[i].bucket, bucket->name))
			permissions |= principal->grants[i].permissions;
	return permissions;
}

static int find_granted(struct exchange *exchange, struct listing *listing, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	struct span last = {0};
	listing->buckets = arena_take_array(
		exchange->arena, principal->grant_count, sizeof(*listing->buckets));
	if (listing->buckets == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The key has too many grants for one listing.");
	for (const struct grant *grant = next_grant(principal, listing, last); grant != NULL;
		grant = next_grant(principal, listing, last)) {
		struct error find_err = {0};
		ASSERT(listing->count < principal->grant_count);
		last = grant->bucket;
		if (bucket_find(exchange->context->store, bucket_named(last), exchange->arena,
			    &listing->buckets[listing->count], &find_err) == 0)
			listing->count++;
		else if (find_err.kind != ERROR_NO_BUCKET) {
			*err = find_err;
			return -1;
		}
		if (listing->count == listing->params->limit)
			break;
	}
	return 0;
}

/* The grant with the smallest name above `last`, or NULL. Grants are few and not sorted, and two of
 * them may name the same bucket. */
static const struct grant *next_grant(
	const struct principal *principal, const struct listing *listing, struct span last)
{
	const struct grant *best = NULL;
	for (size_t i = 0; i < principal->grant_count; i++) {
		const struct grant *const grant = &principal->grants[i];
		if (is_wanted(listing, grant->bucket) &&
			(last.len == 0 || span_compare(grant->bucket, last) > 0) &&
			(best == NULL || span_compare(grant->bucket, best->bucket) < 0))
			best = grant;
	}
	return best;
}

static bool is_wanted(const struct listing *listing, struct span name)
{
	const struct known_buckets_params *const params = listing->params;
	return span_starts(name, params->prefix) &&
		(params->after.len == 0 || span_compare(name, params->after) > 0);
}

static bool has_grants(const struct principal *principal)
{
	return principal->grant_count > 0 && !principal->is_root;
}
