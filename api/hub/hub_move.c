/* Both names are judged before the change: the caller must own the bucket, and must be allowed to
 * make one of the new name. Ids hold the judgement, so that what was judged is what is renamed. */
#include "api/hub/handlers.h"

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "api/hub/hub_body.h"
#include "api/hub/hub_bucket.h"
#include "api/route/hub_name.h"
#include "storage/upkeep/bucket_rename.h"

struct move {
	struct hub_name from;
	struct hub_name to;
};

static int read_move(struct exchange *exchange, struct move *out, struct error *err);
static int read_members(struct exchange *exchange, const struct json_node *request,
	struct move *out, struct error *err);
static int read_id(struct exchange *exchange, const struct json_node *request, const char *member,
	struct hub_name *out, struct error *err);
static struct span source_name(struct exchange *exchange, const struct hub_name *from);
static int find_source(struct exchange *exchange, struct bucket_ref *bucket, struct error *err);

enum next hub_move_finish(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct error err = {0};
	struct move move;
	struct hub_claim claim;
	if (read_move(exchange, &move, &err) != 0)
		return exchange_fail(exchange, &err);
	struct bucket_ref source = bucket_named(source_name(exchange, &move.from));
	if (find_source(exchange, &source, &err) != 0 ||
		hub_bucket_claim(exchange, move.to.namespace, move.to.name, &claim, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct bucket_rename rename = {
		.from = source, .to = claim.bucket, .account = claim.account};
	return exchange_await(exchange, bucket_rename_call(store, &rename));
}

static int read_move(struct exchange *exchange, struct move *out, struct error *err)
{
	struct json_node *request;
	if (hub_body_parse(exchange, &request, err) != 0)
		return -1;
	const int result = read_members(exchange, request, out, err);
	json_node_free(request);
	return result;
}

static int read_members(struct exchange *exchange, const struct json_node *request,
	struct move *out, struct error *err)
{
	struct span type;
	if (!json_node_text(json_node_member(request, "type"), &type) ||
		!span_equal_text(type, "bucket"))
		return error_set(err, ERROR_NO_BUCKET,
			"Only buckets can be moved here: \"type\" must be \"bucket\".");
	if (read_id(exchange, request, "fromRepo", &out->from, err) != 0 ||
		read_id(exchange, request, "toRepo", &out->to, err) != 0)
		return -1;
	if (arena_overflowed(exchange->arena))
		return error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.");
	return 0;
}

/* Reads "namespace/name"; the result is in the arena. */
static int read_id(struct exchange *exchange, const struct json_node *request, const char *member,
	struct hub_name *out, struct error *err)
{
	struct span text;
	if (!json_node_text(json_node_member(request, member), &text))
		return error_set(err, ERROR_INVALID,
			"The member \"%s\" is missing: it must be a text.", member);
	const ptrdiff_t slash = span_find(text, '/');
	if (slash <= 0 || span_find(span_slice(text, (size_t)slash + 1, text.len), '/') >= 0 ||
		(size_t)slash + 1 == text.len)
		return error_set(err, ERROR_BAD_NAME,
			"The member \"%s\" must have the form namespace/name.", member);
	const struct span copy = arena_copy(exchange->arena, text);
	*out = (struct hub_name){
		span_slice(copy, 0, (size_t)slash), span_slice(copy, (size_t)slash + 1, copy.len)};
	return 0;
}

static struct span source_name(struct exchange *exchange, const struct hub_name *from)
{
	ASSERT(exchange->principal != NULL); /* the route requires a key */
	const struct span namespace = span_equal_text(from->namespace, "me")
		? exchange->principal->namespace
		: from->namespace;
	return hub_name_bucket(
		exchange->arena, exchange->context->default_namespace, namespace, from->name);
}

/* Keeps the id of the bucket that was judged, so that no other bucket of the name is moved. */
static int find_source(struct exchange *exchange, struct bucket_ref *bucket, struct error *err)
{
	static const struct span whole = {NULL, 0};
	struct bucket found;
	if (authorise_owned_key(exchange, bucket, whole, PERMISSION_ADMIN, err) != 0 ||
		bucket_find(exchange->context->store, *bucket, exchange->arena, &found, err) != 0)
		return -1;
	bucket->id = found.id;
	return 0;
}
