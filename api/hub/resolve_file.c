/* The request may have to wait twice before it can reply: for a view that is still to be made, and
 * for the Xet hash of the file, which is its entity tag. After each wait it looks again. While the
 * file is overwritten again and again, the number of looks is limited. */
#include "api/hub/handlers.h"

#include <inttypes.h>

#include "api/exchange/base_url.h"
#include "api/exchange/json_reply.h"
#include "api/objects/object_reply.h"
#include "api/objects/view_wait.h"
#include "api/route/hub_name.h"
#include "base/encode.h"
#include "base/format/json_node.h"
#include "storage/files/file_hash.h"
#include "storage/objects/object_read.h"

enum { LOOKS_MAX = 4, INFO_MAX_BYTES = 8 * 1024, DISPOSITION_MAX_BYTES = 8 * 1024 };

static const char info_type[] = "application/vnd.xet-fileinfo+json";

struct resolve_file { /* the exchange's state */
	struct file_hash_wait *wait;
	struct anchor_wait view;
	unsigned looks;
};

struct xet_urls { /* absolute, because clients pass them on as they are */
	const char *refresh;
	const char *reconstruction;
};

static void resolve_file_release(struct exchange *exchange);
static enum next look(struct exchange *exchange);
static int find_or_pending(struct exchange *exchange, struct object *out, struct error *err);
static int find_now(struct exchange *exchange, struct object *out, struct error *err);
static struct object_ref ref_of(const struct exchange *exchange);
static enum next reply(struct exchange *exchange, struct object *object);
static const char *disposition(struct exchange *exchange);
static struct span base_name(struct span path);
static int resolve_file_find(
	struct exchange *exchange, struct object_view *view, struct object *out, struct error *err);
static int hide_encoding(struct exchange *exchange, struct object *object, struct error *err);
static void resolve_file_add_identity(struct exchange *exchange, const struct object *object);
static struct xet_urls make_urls(struct exchange *exchange, const char *hash);
static bool wants_info(struct exchange *exchange);
static enum next reply_info(struct exchange *exchange, struct object *object);
static void resolve_file_hang_up(struct exchange *exchange);

enum next resolve_file_begin(struct exchange *exchange)
{
	struct resolve_file *const state = arena_take(exchange->arena, sizeof(*state));
	struct error err = {0};
	ASSERT(exchange->parameter_count == 2);
	if (state == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return exchange_fail(exchange, &err);
	}
	exchange->state = state;
	exchange->release = resolve_file_release;
	anchor_wait_init(&state->view, exchange);
	return look(exchange);
}

enum next resolve_file_resume(struct exchange *exchange)
{
	const struct resolve_file *const state = exchange->state;
	struct error err = {0};
	if (state->wait == NULL)
		return look(exchange); /* a view was made */
	const int outcome = file_hash_outcome(state->wait, &err);
	resolve_file_release(exchange);
	return outcome == 0 ? look(exchange) : exchange_fail(exchange, &err);
}

static void resolve_file_release(struct exchange *exchange)
{
	struct resolve_file *const state = exchange->state;
	file_hash_free(state->wait);
	state->wait = NULL;
}

static enum next look(struct exchange *exchange)
{
	struct resolve_file *const state = exchange->state;
	struct object object;
	struct error err = {0};
	if (find_or_pending(exchange, &object, &err) != 0)
		return err.kind == ERROR_NOT_READY ? anchor_wait_for(&state->view)
						   : exchange_fail(exchange, &err);
	if (object.has_file_hash)
		return reply(exchange, &object);
	if (++state->looks == LOOKS_MAX) {
		error_set(&err, ERROR_BUSY,
			"The file is overwritten faster than its hash can be computed. Please try again.");
		return exchange_fail(exchange, &err);
	}
	ASSERT(state->wait == NULL);
	state->wait = file_hash_start(
		exchange->context->store, &object.sequence, 1, exchange_wake_owner, exchange);
	exchange->hang_up = resolve_file_hang_up;
	return NEXT_WAIT;
}

/* Finds the file; not_ready when it belongs to a view that is still to be made. */
static int find_or_pending(struct exchange *exchange, struct object *out, struct error *err)
{
	struct resolve_file *const state = exchange->state;
	const int found = find_now(exchange, out, err);
	if (found == 0 || err->kind != ERROR_NO_KEY)
		return found;
	const int pending = view_wait_look(
		&state->view, exchange_bucket(exchange), exchange->parameters[1], err);
	if (pending == 1)
		return error_set(err, ERROR_NOT_READY, "The view is still being made.");
	return pending == 0 && state->view.anchor.is_view ? find_now(exchange, out, err) : -1;
}

static int find_now(struct exchange *exchange, struct object *out, struct error *err)
{
	const struct object_ref ref = ref_of(exchange);
	return object_find(exchange->context->store, &ref, exchange->arena, out, err);
}

static struct object_ref ref_of(const struct exchange *exchange)
{
	return (struct object_ref){.bucket = exchange_bucket(exchange),
		.key = exchange->parameters[1],
		.judged_version = exchange->judged_version};
}

static enum next reply(struct exchange *exchange, struct object *object)
{
	const struct object_reply_override override = {
		.name = "content-disposition", .value = disposition(exchange)};
	const struct object_reply_params params = {
		.find = resolve_file_find,
		.add_identity = resolve_file_add_identity,
		.overrides = &override,
		.override_count = override.value != NULL,
		.default_content_type = "application/octet-stream",
		.hide_user_metadata = true,
	};
	return wants_info(exchange) ? reply_info(exchange, object)
				    : object_reply(exchange, &params);
}

/* Gives the name twice: as it is, and in ASCII for clients that do not know the other form. */
static const char *disposition(struct exchange *exchange)
{
	const struct span name = base_name(exchange->parameters[1]);
	struct buffer text;
	buffer_init(&text, DISPOSITION_MAX_BYTES);
	buffer_add_text(&text, "inline; filename*=UTF-8''");
	encode_percent(name, false, &text);
	buffer_add_text(&text, "; filename=\"");
	for (size_t i = 0; i < name.len; i++) {
		const uint8_t byte = name.data[i];
		const bool is_plain = byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
		buffer_add_byte(&text, is_plain ? byte : '_');
	}
	buffer_add_text(&text, "\";");
	const char *const copy =
		buffer_failed(&text) ? NULL : arena_text(exchange->arena, buffer_span(&text));
	buffer_release(&text);
	return copy;
}

static struct span base_name(struct span path)
{
	struct span rest = path;
	for (ptrdiff_t slash = span_find(rest, '/'); slash >= 0; slash = span_find(rest, '/'))
		rest = span_slice(rest, (size_t)slash + 1, rest.len);
	return rest;
}

/* Finds the file, with its Xet hash as the entity tag. */
static int resolve_file_find(
	struct exchange *exchange, struct object_view *view, struct object *out, struct error *err)
{
	const struct object_ref ref = ref_of(exchange);
	if (object_view_find(view, &ref, exchange->arena, out, err) != 0)
		return -1;
	if (!out->has_file_hash)
		return error_set(err, ERROR_BUSY,
			"The file was overwritten a moment ago. Please try again.");
	chunk_id_format(&out->file_hash, out->etag);
	return hide_encoding(exchange, out, err);
}

/* Hides the stored Content-Encoding: a client that decodes the bytes would not get the size that it
 * was told. */
static int hide_encoding(struct exchange *exchange, struct object *object, struct error *err)
{
	struct object_header *const kept =
		arena_take_array(exchange->arena, object->header_count + 1, sizeof(*kept));
	size_t count = 0;
	if (kept == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.");
	for (size_t i = 0; i < object->header_count; i++)
		if (!span_equal_text(object->headers[i].name, "content-encoding"))
			kept[count++] = object->headers[i];
	object->headers = kept;
	object->header_count = count;
	return 0;
}

static void resolve_file_add_identity(struct exchange *exchange, const struct object *object)
{
	const char *const hash = arena_text(exchange->arena, span_text(object->etag));
	const struct xet_urls urls = make_urls(exchange, object->etag);
	exchange_add_header(exchange, "X-Xet-Hash", hash);
	exchange_add_header(
		exchange, "X-Linked-Size", arena_format(exchange->arena, "%" PRIu64, object->size));
	exchange_add_header(
		exchange, "X-Linked-Etag", arena_format(exchange->arena, "\"%s\"", object->etag));
	exchange_add_header(exchange, "X-Xet-Refresh-Route", urls.refresh);
	exchange_add_header(exchange, "Link",
		arena_format(exchange->arena,
			"<%s>; rel=\"xet-auth\", <%s>; rel=\"xet-reconstruction-info\"",
			urls.refresh, urls.reconstruction));
}

static struct xet_urls make_urls(struct exchange *exchange, const char *hash)
{
	const char *const base = base_url(exchange);
	const struct hub_name name =
		hub_name_of(exchange->context->default_namespace, exchange->parameters[0]);
	return (struct xet_urls){
		.refresh = arena_format(exchange->arena, "%s/api/buckets/%.*s/%.*s/xet-read-token",
			base, (int)name.namespace.len, (const char *)name.namespace.data,
			(int)name.name.len, (const char *)name.name.data),
		.reconstruction =
			arena_format(exchange->arena, "%s/xet/v1/reconstructions/%s", base, hash),
	};
}

static bool wants_info(struct exchange *exchange)
{
	struct span rest = exchange_header(exchange, "accept");
	struct span piece;
	while (exchange->method == METHOD_GET && span_split(&rest, ',', &piece))
		if (span_starts(span_trim(piece), span_text(info_type)))
			return true;
	return false;
}

/* Replies to clients that ask for the facts instead of the bytes. They read only the headers. */
static enum next reply_info(struct exchange *exchange, struct object *object)
{
	struct buffer body;
	struct json_writer json;
	chunk_id_format(&object->file_hash, object->etag);
	const struct xet_urls urls = make_urls(exchange, object->etag);
	buffer_init(&body, INFO_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "hash", span_text(object->etag));
	json_writer_u64(&json, "size", object->size);
	json_writer_text(&json, "refreshUrl", span_text(urls.refresh));
	json_writer_text(&json, "reconstructionUrl", span_text(urls.reconstruction));
	json_writer_end(&json, '}');
	exchange_add_header(
		exchange, "ETag", arena_format(exchange->arena, "\"%s\"", object->etag));
	resolve_file_add_identity(exchange, object);
	return exchange_reply_buffer(exchange, 200, info_type, &body);
}

static void resolve_file_hang_up(struct exchange *exchange)
{
	struct resolve_file *const state = exchange->state;
	if (state->wait != NULL)
		file_hash_give_up(state->wait);
}
