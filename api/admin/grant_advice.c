/* Each grant is looked up by its bucket, and gets up to LINES_PER_GRANT sentences: about a
 * corrected name, a bucket that does not exist, and a prefix without a slash at its end. Nothing
 * here refuses a grant, because a bucket may be made after the key. */
#include "api/admin/grant_advice.h"

#include <string.h>

#include "api/exchange/principal.h"
#include "api/route/hub_name.h"
#include "storage/buckets/bucket.h"

enum { LINES_PER_GRANT = 3 };

struct advice {
	struct store *store;
	const char *default_namespace;
	const struct keyring_new_key *key;
	struct arena *arena;
	struct span *lines;
	size_t count;
};

static void settle_spelling(struct advice *advice, struct grant *grant);
static bool is_namespace(const struct advice *advice, struct span name);
static bool exists(const struct advice *advice, struct span bucket);
static void add_line(struct advice *advice, const char *text);
static void judge(struct advice *advice, const struct grant *grant);

void grant_advice_settle(struct store *store, const char *default_namespace,
	struct keyring_new_key *key, struct arena *arena, struct span **out_lines,
	size_t *out_count)
{
	struct grant *const grants = arena_take_array(arena, key->grant_count + 1, sizeof(*grants));
	struct advice advice = {.store = store,
		.default_namespace = default_namespace,
		.key = key,
		.arena = arena,
		.lines = arena_take_array(
			arena, LINES_PER_GRANT * key->grant_count + 1, sizeof(*advice.lines))};
	*out_lines = advice.lines;
	*out_count = 0;
	if (grants == NULL || advice.lines == NULL)
		return;
	for (size_t i = 0; i < key->grant_count; i++) {
		grants[i] = key->grants[i];
		if (principal_is_metrics_grant(&grants[i]))
			continue;
		settle_spelling(&advice, &grants[i]);
		judge(&advice, &grants[i]);
	}
	key->grants = grants;
	*out_count = advice.count;
}

/* Makes main/weights/run the prefix run of the bucket weights. */
static void settle_spelling(struct advice *advice, struct grant *grant)
{
	struct span rest = grant->prefix;
	struct span name;
	if (grant->prefix.len == 0 || !is_namespace(advice, grant->bucket) ||
		exists(advice, grant->bucket) || !span_split(&rest, '/', &name) || name.len == 0)
		return;
	const struct span bucket =
		hub_name_bucket(advice->arena, advice->default_namespace, grant->bucket, name);
	struct error ignored = {0};
	if (bucket.data == NULL ||
		hub_name_check_bucket(advice->default_namespace, bucket, &ignored) != 0)
		return;
	add_line(advice,
		arena_format(advice->arena,
			"%.*s/%.*s is read as the bucket %.*s, by its name on the Hub, because there is no bucket %.*s.",
			(int)grant->bucket.len, (const char *)grant->bucket.data, (int)name.len,
			(const char *)name.data, (int)bucket.len, (const char *)bucket.data,
			(int)grant->bucket.len, (const char *)grant->bucket.data));
	grant->bucket = bucket;
	grant->prefix = rest;
}

static bool is_namespace(const struct advice *advice, struct span name)
{
	return span_equal_text(name, advice->default_namespace) ||
		span_equal_text(name, advice->key->namespace);
}

/* A bucket whose row is damaged counts as existing, so that its name is not reinterpreted. */
static bool exists(const struct advice *advice, struct span bucket)
{
	struct bucket found;
	struct error err = {0};
	return bucket_find(advice->store, bucket_named(bucket), advice->arena, &found, &err) == 0 ||
		err.kind != ERROR_NO_BUCKET;
}

static void add_line(struct advice *advice, const char *text)
{
	ASSERT(advice->count < LINES_PER_GRANT * advice->key->grant_count);
	if (text != NULL)
		advice->lines[advice->count++] = span_text(text);
}

static void judge(struct advice *advice, const struct grant *grant)
{
	const struct span prefix = grant->prefix;
	if (!exists(advice, grant->bucket))
		add_line(advice,
			arena_format(advice->arena,
				"There is no bucket %.*s. The grant takes effect when the bucket is made.",
				(int)grant->bucket.len, (const char *)grant->bucket.data));
	if (prefix.len > 0 && prefix.data[prefix.len - 1] != '/')
		add_line(advice,
			arena_format(advice->arena,
				"%.*s/%.*s covers all keys with this beginning, also %.*s2. With a slash at its end it covers only "
				"keys below %.*s.",
				(int)grant->bucket.len, (const char *)grant->bucket.data,
				(int)prefix.len, (const char *)prefix.data, (int)prefix.len,
				(const char *)prefix.data, (int)prefix.len,
				(const char *)prefix.data));
}
