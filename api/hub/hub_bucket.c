/* Totals are shown only to callers that may list the whole bucket, because they tell about files
 * that others may not see. The own key's grants are asked first, which costs no read of the
 * catalog. */
#include "api/hub/hub_bucket.h"

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "api/hub/hub_visibility.h"
#include "api/route/hub_name.h"

static void print_time(struct json_writer *json, const char *name, int64_t time_ms);
static void print_updated(struct json_writer *json, const struct hub_bucket *bucket);
static void print_part(
	struct exchange *exchange, int64_t bytes, int64_t all_bytes, struct json_writer *json);

bool hub_bucket_is_listed(const struct exchange *exchange, const struct bucket *bucket)
{
	static const struct span whole = {NULL, 0};
	return principal_allows(
		exchange->principal, bucket->name, bucket->owner, whole, PERMISSION_LIST);
}

int hub_bucket_describe(struct exchange *exchange, const struct bucket *bucket,
	struct hub_bucket *out, struct error *err)
{
	static const struct span whole = {NULL, 0};
	struct bucket_ref ref = bucket_ref_of(bucket);
	struct error ignored = {0};
	*out = (struct hub_bucket){.bucket = *bucket};
	if (bucket_totals_find(exchange->context->store, bucket, 1, &out->totals, err) != 0 ||
		hub_visibility_find(exchange, bucket->id, &out->is_public, err) != 0)
		return -1;
	if (!hub_bucket_is_listed(exchange, bucket) &&
		authorise_key(exchange, &ref, whole, PERMISSION_LIST, &ignored) != 0)
		out->totals = (struct bucket_totals){.updated_ms = out->totals.updated_ms};
	return 0;
}

const char *hub_bucket_id(struct exchange *exchange, struct span bucket)
{
	const struct hub_name name = hub_name_of(exchange->context->default_namespace, bucket);
	return arena_format(exchange->arena, "%.*s/%.*s", (int)name.namespace.len,
		(const char *)name.namespace.data, (int)name.name.len,
		(const char *)name.name.data);
}

void hub_bucket_print(
	struct exchange *exchange, const struct hub_bucket *bucket, struct json_writer *json)
{
	const struct hub_name name =
		hub_name_of(exchange->context->default_namespace, bucket->bucket.name);
	const struct span id = span_text(hub_bucket_id(exchange, bucket->bucket.name));
	json_writer_object(json, NULL);
	json_writer_text(json, "id", id);
	json_writer_text(json, "name", id);
	json_writer_text(json, "author", name.namespace);
	json_writer_bool(json, "private", !bucket->is_public);
	json_writer_text(json, "visibility", span_text(bucket->is_public ? "public" : "private"));
	print_time(json, "createdAt", bucket->bucket.created_ms);
	print_updated(json, bucket);
	json_writer_i64(json, "size", bucket->totals.bytes);
	json_writer_i64(json, "totalFiles", bucket->totals.files);
	json_writer_end(json, '}');
}

void hub_bucket_print_storage(struct exchange *exchange, const struct hub_bucket *bucket,
	int64_t all_bytes, struct json_writer *json)
{
	json_writer_object(json, NULL);
	json_writer_text(json, "id", span_text(hub_bucket_id(exchange, bucket->bucket.name)));
	json_writer_text(json, "type", span_text("bucket"));
	print_updated(json, bucket);
	json_writer_text(json, "visibility", span_text(bucket->is_public ? "public" : "private"));
	json_writer_i64(json, "storage", bucket->totals.bytes);
	if (all_bytes > 0)
		print_part(exchange, bucket->totals.bytes, all_bytes, json);
	json_writer_end(json, '}');
}

int hub_bucket_claim(struct exchange *exchange, struct span namespace, struct span name,
	struct hub_claim *out, struct error *err)
{
	static const struct span nothing = {NULL, 0};
	const struct principal *const principal = exchange->principal;
	ASSERT(principal != NULL);
	const char *const default_namespace = exchange->context->default_namespace;
	const struct span account =
		span_equal_text(namespace, "me") ? principal->namespace : namespace;
	if (!principal->is_root && !span_equal(account, principal->namespace))
		return error_set(err, ERROR_DENIED,
			"You cannot have buckets in the namespace %.*s.",
			(int)span_slice(account, 0, 64).len, (const char *)account.data);
	if (!keyring_is_namespace(account))
		return error_set(err, ERROR_BAD_NAME,
			"'%.*s' is not a valid namespace: it must have 1 to 63 of the characters a-z, 0-9, '.', '_' and '-'.",
			(int)span_slice(account, 0, 64).len, (const char *)account.data);
	if (hub_name_check(default_namespace, (struct hub_name){account, name}, err) != 0)
		return -1;
	*out = (struct hub_claim){
		.bucket = hub_name_bucket(exchange->arena, default_namespace, account, name),
		.account = account};
	if (!principal_allows(principal, out->bucket, nothing, nothing, PERMISSION_ADMIN))
		return error_set(err, ERROR_DENIED,
			"The grants of this key do not allow it to make this bucket.");
	return 0;
}

static void print_time(struct json_writer *json, const char *name, int64_t time_ms)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(time_ms, text);
	json_writer_text(json, name, span_text(text));
}

static void print_updated(struct json_writer *json, const struct hub_bucket *bucket)
{
	const int64_t created_ms = bucket->bucket.created_ms;
	print_time(json, "updatedAt",
		bucket->totals.updated_ms > created_ms ? bucket->totals.updated_ms : created_ms);
}

static void print_part(
	struct exchange *exchange, int64_t bytes, int64_t all_bytes, struct json_writer *json)
{
	ASSERT(all_bytes > 0);
	const int tenths = (int)((double)bytes / (double)all_bytes * 1000 + 0.5);
	json_writer_raw(json, "storagePercent",
		span_text(arena_format(exchange->arena, "%d.%d", tenths / 10, tenths % 10)));
}
