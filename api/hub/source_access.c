#include "api/hub/source_access.h"

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "storage/buckets/bucket_grant.h"

/* Questions to the store for one batch. Not more, because other changes wait for them. */
enum { QUESTIONS_MAX = 2000 };

struct source {
	struct bucket_ref bucket;
	bool is_known;       /* false: the caller may do nothing in it, so read nothing */
	bool is_open;        /* the caller may read all keys */
	bool opens_versions; /* the caller may read all older versions */
};
struct source_access {
	struct exchange *exchange;
	struct source *sources;
	size_t count;
	size_t questions;
};

static int add(struct source_access *access, struct bucket_ref *bucket, struct error *err);
static const struct source *find(const struct source_access *access, struct span bucket);
static int opens(const struct source_access *access, struct bucket_ref *bucket, struct span key,
	bool is_current, struct error *err);

struct source_access *source_access_new(
	struct exchange *exchange, const struct batch_lines *lines, struct error *err)
{
	struct source_access *const access = arena_take(exchange->arena, sizeof(*access));
	struct source *const sources =
		arena_take_array(exchange->arena, lines->count + 1, sizeof(*sources));
	if (access == NULL || sources == NULL) {
		error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return NULL;
	}
	*access = (struct source_access){
		.exchange = exchange, .sources = sources, .questions = QUESTIONS_MAX};
	ASSERT(lines->count <= BATCH_LINES_MAX);
	struct bucket_ref own = exchange_bucket(exchange);
	int result = add(access, &own, err);
	for (size_t i = 0; result == 0 && i < lines->count; i++)
		result = add(access, &lines->lines[i].source, err);
	return result == 0 ? access : NULL;
}

int source_access_allows(struct source_access *access, struct bucket_ref bucket, struct span key,
	bool is_current, struct error *err)
{
	static const struct span nobody = {(const uint8_t *)"", 0};
	const struct source *const source = find(access, bucket.name);
	const struct principal *const principal = access->exchange->principal;
	if (source == NULL || !source->is_known)
		return 0;
	if (is_current ? source->is_open : source->opens_versions)
		return 1;
	if (principal != NULL && principal->grant_count > 0)
		return principal_allows(principal, bucket.name, nobody, key, PERMISSION_READ);
	if (access->questions == 0)
		return 0;
	access->questions--;
	return opens(access, &bucket, key, is_current, err);
}

/* Adds the bucket unless it is there. Gives *bucket the id of the bucket that was judged, the same
 * for all lines that name it. */
static int add(struct source_access *access, struct bucket_ref *bucket, struct error *err)
{
	static const struct span whole = {NULL, 0};
	const struct source *const before = find(access, bucket->name);
	if (before != NULL)
		*bucket = before->bucket;
	if (bucket->name.len == 0 || before != NULL)
		return 0;
	const int open = opens(access, bucket, whole, true, err);
	const int versions = open < 0 ? -1 : opens(access, bucket, whole, false, err);
	access->sources[access->count++] = (struct source){.bucket = *bucket,
		.is_known = open == 1 || authorise_knows(access->exchange, *bucket),
		.is_open = open == 1,
		.opens_versions = versions == 1};
	return versions < 0 ? -1 : 0;
}

static const struct source *find(const struct source_access *access, struct span bucket)
{
	for (size_t i = 0; i < access->count; i++)
		if (span_equal(access->sources[i].bucket.name, bucket))
			return &access->sources[i];
	return NULL;
}

static int opens(const struct source_access *access, struct bucket_ref *bucket, struct span key,
	bool is_current, struct error *err)
{
	const unsigned permission =
		is_current ? PERMISSION_READ : PERMISSION_READ | PERMISSION_VERSIONS;
	return authorise_permits(access->exchange, bucket, key, permission, err);
}
