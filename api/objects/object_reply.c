/* A reply is made in three stages: find the version, choose the range by the conditions and
 * headers, and open the bytes. Everything that can fail comes before the first header of the
 * version is added, because headers stay on an error reply. If the version disappears before its
 * bytes are opened, the stages are repeated. Bytes in very many places are opened on a helper, and
 * the bytes of a small body may wait for a network, with the state in exchange->shared. */
#include "api/objects/object_reply.h"

#include <inttypes.h>
#include <string.h>

#include "api/objects/conditional.h"
#include "storage/objects/object_opening.h"

enum {
	SMALL_BYTES = 32 * 1024,
	/* a further try is needed only if the key was overwritten in the microseconds since */
	FIND_TRIES = 4
};

/* S3's type for objects that were stored without one */
static const char default_content_type[] = "binary/octet-stream";

/* The content of the reply. */
struct serving {
	struct object object;
	struct byte_range range;
	struct body_source *source; /* NULL: no bytes */
};

/* exchange->shared.state while a helper opens bytes, or a small body waits. */
struct awaited {
	struct object_reply_params params;
	struct serving serving; /* its source is owned */
	struct object_opening *opening;
	int tries;          /* that ended before this one */
	uint8_t *bytes;     /* of a small body; in the arena */
	size_t have;        /* so many were read */
	struct error error; /* of reading them */
};

static bool look(struct exchange *exchange, struct object_view *view,
	const struct object_reply_params *params, struct serving *serving, enum next *out_next);
static bool choose(struct exchange *exchange, const struct object_reply_params *params,
	struct serving *serving, enum next *out_next);
static enum next reply_precondition(struct exchange *exchange);
static enum next reply_not_modified(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params);
static void add_version_headers(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params);
static const char *find_override(const struct object_reply_params *params, struct span name);
static int choose_range(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params, struct byte_range *out, struct error *err);
static struct byte_range asked_range(struct exchange *exchange, const struct object *object);
static enum next reply_unsatisfiable(struct exchange *exchange, const struct object *object);
static enum next open_on_helper(struct exchange *exchange, const struct object_reply_params *params,
	const struct serving *serving);
static struct awaited *awaited_of(
	struct exchange *exchange, const struct object_reply_params *params);
static enum next fail_memory(struct exchange *exchange);
static enum next start_opening(struct exchange *exchange, struct awaited *awaited,
	enum next (*resume)(struct exchange *exchange));
static struct awaited *awaited_new(
	struct exchange *exchange, const struct object_reply_params *params);
static void object_reply_release(struct exchange *exchange);
static void close_source(struct serving *serving);
static struct body_source *take_opened(struct exchange *exchange, struct error *err);
static enum next object_reply_send_opened(struct exchange *exchange);
static enum next send(struct exchange *exchange, const struct object_reply_params *params,
	struct serving *serving);
static enum next send_with(struct exchange *exchange, const struct object_reply_params *params,
	struct serving *serving, struct span small);
static enum next wait_for_small(struct exchange *exchange, const struct object_reply_params *params,
	struct serving *serving);
static enum next object_reply_read_small(struct exchange *exchange);
static enum next object_reply_fail_opened(struct exchange *exchange);
static int take_small(
	struct exchange *exchange, struct serving *serving, struct span *out, struct error *err);
static enum next fail_small(
	struct exchange *exchange, const struct serving *serving, const struct error *err);
static const char *content_type(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params);
static void add_headers(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params, const struct byte_range *range);
static void add_stored_headers(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params);
static enum next reply_head(
	struct exchange *exchange, int status, const char *type, uint64_t length);

void object_reply_add_identity(struct exchange *exchange, const struct object *object)
{
	char digest[DIGEST128_TEXT_BYTES];
	char hash[CHUNK_ID_TEXT_BYTES];
	exchange_add_header(
		exchange, "ETag", arena_format(exchange->arena, "\"%s\"", object->etag));
	if (object->has_digest) {
		digest128_format(&object->digest, digest);
		exchange_add_header(exchange, "x-deltabucket-digest",
			arena_text(exchange->arena, span_text(digest)));
	}
	if (object->has_file_hash) {
		chunk_id_format(&object->file_hash, hash);
		exchange_add_header(exchange, "x-deltabucket-file-hash",
			arena_text(exchange->arena, span_text(hash)));
	}
	if (object->is_derived)
		exchange_add_header(exchange, "x-deltabucket-derived", "true");
}

enum next object_reply(struct exchange *exchange, const struct object_reply_params *params)
{
	struct error err = {0};
	struct serving serving;
	enum next next;
	ASSERT(params->find != NULL);
	struct object_view *const view = object_view_new(exchange->context->store, &err);
	if (view == NULL)
		return exchange_fail(exchange, &err);
	const bool found = look(exchange, view, params, &serving, &next);
	object_view_free(view); /* before bytes are read, which may wait for the disk */
	return found ? send(exchange, params, &serving) : next;
}

/* Finds the version and opens its bytes; false when the reply is set. */
static bool look(struct exchange *exchange, struct object_view *view,
	const struct object_reply_params *params, struct serving *serving, enum next *out_next)
{
	struct error err = {0};
	for (int try = 0; try < FIND_TRIES; try++) {
		*serving = (struct serving){.source = NULL};
		if (params->find(exchange, view, &serving->object, &err) != 0) {
			*out_next = params->fail != NULL ? params->fail(exchange, &err)
							 : exchange_fail(exchange, &err);
			return false;
		}
		if (!choose(exchange, params, serving, out_next))
			return false;
		if (exchange->method == METHOD_HEAD || serving->range.length == 0)
			return true;
		if (serving->object.sequence == 0 && params->make != NULL) {
			*out_next = params->make(exchange);
			return false;
		}
		serving->source = object_view_open_soon(
			view, &serving->object, serving->range.first, serving->range.length, &err);
		if (serving->source != NULL)
			return true;
		if (err.kind == ERROR_NOT_READY) {
			*out_next = open_on_helper(exchange, params, serving);
			return false;
		}
		if (err.kind != ERROR_NO_KEY || object_view_renew(view, &err) != 0)
			break;
	}
	*out_next = exchange_fail(exchange, &err);
	return false;
}

/* Applies the conditions and chooses the range. False when a reply without bytes is set. */
static bool choose(struct exchange *exchange, const struct object_reply_params *params,
	struct serving *serving, enum next *out_next)
{
	const struct object *const object = &serving->object;
	const struct clock_source *const clock = exchange->context->clock;
	struct conditional conditional;
	struct error err = {0};
	conditional_read(exchange, &conditional);
	const enum conditional_result verdict = conditional_judge(
		&conditional, object->etag, object->modified_ms, clock->wall_ms(clock));
	serving->range = (struct byte_range){.kind = BYTE_RANGE_WHOLE};
	if (verdict == CONDITIONAL_FAILED)
		*out_next = reply_precondition(exchange);
	else if (verdict != CONDITIONAL_GO_ON)
		*out_next = reply_not_modified(exchange, object, params);
	else if (choose_range(exchange, object, params, &serving->range, &err) != 0)
		*out_next = exchange_fail(exchange, &err);
	else if (serving->range.kind == BYTE_RANGE_UNSATISFIABLE)
		*out_next = reply_unsatisfiable(exchange, object);
	else
		return true;
	return false;
}

static enum next reply_precondition(struct exchange *exchange)
{
	struct error err = {0};
	error_set(&err, ERROR_PRECONDITION,
		"At least one of the preconditions you specified did not hold.");
	return exchange_fail(exchange, &err);
}

static enum next reply_not_modified(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params)
{
	static const char *const kept[] = {"cache-control", "expires"};
	add_version_headers(exchange, object, params);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		const char *value = find_override(params, span_text(kept[i]));
		for (size_t k = 0; value == NULL && k < object->header_count; k++) {
			if (span_equal_text(object->headers[k].name, kept[i]))
				value = arena_text(exchange->arena, object->headers[k].value);
		}
		if (value != NULL)
			exchange_add_header(exchange, kept[i], value);
	}
	exchange->reply.length = object->size;
	exchange->reply.length_known = true;
	return exchange_reply_empty(exchange, 304);
}

static void add_version_headers(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params)
{
	char modified[CLOCK_TEXT_BYTES];
	clock_format_http(object->modified_ms, modified);
	object_reply_add_identity(exchange, object);
	if (params->add_identity != NULL)
		params->add_identity(exchange, object);
	exchange_add_header(
		exchange, "Last-Modified", arena_text(exchange->arena, span_text(modified)));
}

static const char *find_override(const struct object_reply_params *params, struct span name)
{
	for (size_t i = 0; i < params->override_count; i++) {
		if (span_equal_text(name, params->overrides[i].name))
			return params->overrides[i].value;
	}
	return NULL;
}

static int choose_range(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params, struct byte_range *out, struct error *err)
{
	const int chosen = params->choose != NULL ? params->choose(exchange, object, out, err) : 0;
	if (chosen == 0)
		*out = asked_range(exchange, object);
	return chosen < 0 ? -1 : 0;
}

static struct byte_range asked_range(struct exchange *exchange, const struct object *object)
{
	struct span header = exchange_header(exchange, "range");
	if (!conditional_range_holds(
		    exchange_header(exchange, "if-range"), object->etag, object->modified_ms))
		header = (struct span){0};
	return byte_range_parse(header, object->size);
}

static enum next reply_unsatisfiable(struct exchange *exchange, const struct object *object)
{
	struct error err = {0};
	exchange_add_header(exchange, "Content-Range",
		arena_format(exchange->arena, "bytes */%" PRIu64, object->size));
	error_set(&err, ERROR_RANGE, "The requested range is not satisfiable.");
	return exchange_fail(exchange, &err);
}

/* Opening bytes in many places takes long and would delay the other exchanges of this reactor. */
static enum next open_on_helper(struct exchange *exchange, const struct object_reply_params *params,
	const struct serving *serving)
{
	struct awaited *const awaited = awaited_of(exchange, params);
	if (awaited == NULL)
		return fail_memory(exchange);
	ASSERT(awaited->opening == NULL);
	awaited->serving = *serving;
	return start_opening(exchange, awaited, object_reply_send_opened);
}

static struct awaited *awaited_of(
	struct exchange *exchange, const struct object_reply_params *params)
{
	return exchange->shared.state != NULL ? exchange->shared.state
					      : awaited_new(exchange, params);
}

static enum next fail_memory(struct exchange *exchange)
{
	struct error err = {0};
	error_set(&err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	return exchange_fail(exchange, &err);
}

static enum next start_opening(struct exchange *exchange, struct awaited *awaited,
	enum next (*resume)(struct exchange *exchange))
{
	const struct byte_range *const range = &awaited->serving.range;
	exchange->shared.resume = resume;
	awaited->opening = object_opening_start(exchange->context->store, &awaited->serving.object,
		range->first, range->length, exchange_wake_owner, exchange);
	return NEXT_WAIT;
}

static struct awaited *awaited_new(
	struct exchange *exchange, const struct object_reply_params *params)
{
	const size_t count = params->override_count;
	struct awaited *const awaited = arena_take(exchange->arena, sizeof(*awaited));
	struct object_reply_override *const overrides =
		arena_take_array(exchange->arena, count + 1, sizeof(*overrides));
	if (awaited == NULL || overrides == NULL)
		return NULL;
	awaited->params = *params;
	if (count > 0)
		memcpy(overrides, params->overrides, count * sizeof(*overrides));
	awaited->params.overrides = overrides;
	exchange->shared.state = awaited;
	exchange->shared.release = object_reply_release;
	return awaited;
}

static void object_reply_release(struct exchange *exchange)
{
	struct awaited *const awaited = exchange->shared.state;
	object_opening_free(awaited->opening);
	awaited->opening = NULL;
	close_source(&awaited->serving);
}

static void close_source(struct serving *serving)
{
	if (serving->source != NULL)
		serving->source->close(serving->source);
	serving->source = NULL;
}

static enum next object_reply_send_opened(struct exchange *exchange)
{
	struct awaited *const awaited = exchange->shared.state;
	struct error err = {0};
	struct serving serving = awaited->serving;
	serving.source = take_opened(exchange, &err);
	if (serving.source != NULL)
		return send(exchange, &awaited->params, &serving);
	if (err.kind == ERROR_NO_KEY && ++awaited->tries < FIND_TRIES)
		return object_reply(exchange, &awaited->params);
	return exchange_fail(exchange, &err);
}

/* Ends the wait for a helper. */
static struct body_source *take_opened(struct exchange *exchange, struct error *err)
{
	struct awaited *const awaited = exchange->shared.state;
	ASSERT(awaited != NULL && awaited->opening != NULL);
	struct body_source *const source = object_opening_take(awaited->opening, err);
	object_opening_free(awaited->opening);
	awaited->opening = NULL;
	exchange->shared.resume = NULL;
	return source;
}

static enum next send(struct exchange *exchange, const struct object_reply_params *params,
	struct serving *serving)
{
	struct error err = {0};
	struct span small = {NULL, 0};
	if (serving->source == NULL || serving->range.length > SMALL_BYTES)
		return send_with(exchange, params, serving, small);
	if (serving->source->let_wait != NULL)
		return wait_for_small(exchange, params, serving);
	return take_small(exchange, serving, &small, &err) == 0
		? send_with(exchange, params, serving, small)
		: fail_small(exchange, serving, &err);
}

/* Sends the head, and the body from `small` when there is no source. */
static enum next send_with(struct exchange *exchange, const struct object_reply_params *params,
	struct serving *serving, struct span small)
{
	const struct byte_range *const range = &serving->range;
	ASSERT(range->kind != BYTE_RANGE_UNSATISFIABLE);
	const int status = range->kind == BYTE_RANGE_PART ? 206 : 200;
	const char *const type = content_type(exchange, &serving->object, params);
	add_headers(exchange, &serving->object, params, range);
	if (serving->source != NULL)
		return exchange_reply_source(
			exchange, status, type, serving->source, range->length);
	if (exchange->method == METHOD_HEAD)
		return reply_head(exchange, status, type, range->length);
	return exchange_reply_body(exchange, status, type, small);
}

/* The same as take_small for a source that may wait. */
static enum next wait_for_small(struct exchange *exchange, const struct object_reply_params *params,
	struct serving *serving)
{
	struct awaited *const awaited = awaited_of(exchange, params);
	uint8_t *const bytes = arena_take(exchange->arena, (size_t)serving->range.length);
	if (awaited == NULL || bytes == NULL) {
		close_source(serving);
		return fail_memory(exchange);
	}
	awaited->serving = *serving;
	awaited->bytes = bytes;
	awaited->have = 0;
	serving->source->let_wait(serving->source, exchange_wake_owner, exchange);
	return object_reply_read_small(exchange);
}

static enum next object_reply_read_small(struct exchange *exchange)
{
	struct awaited *const awaited = exchange->shared.state;
	struct serving *const serving = &awaited->serving;
	const size_t len = (size_t)serving->range.length;
	ptrdiff_t got = 1;
	exchange->shared.resume = NULL;
	while (awaited->have < len && got > 0) {
		got = serving->source->read(serving->source, awaited->bytes + awaited->have,
			len - awaited->have, &awaited->error);
		awaited->have += got > 0 ? (size_t)got : 0;
	}
	if (got == SOURCE_WAIT) {
		exchange->shared.resume = object_reply_read_small;
		return NEXT_WAIT;
	}
	close_source(serving);
	if (awaited->have == len)
		return send_with(exchange, &awaited->params, serving, span_of(awaited->bytes, len));
	if (got == 0)
		error_set(&awaited->error, ERROR_CORRUPT,
			"The bytes of an object ended before its size.");
	if (awaited->error.kind != ERROR_CORRUPT && awaited->error.os_errno == 0)
		return exchange_fail(exchange, &awaited->error);
	/* as fail_small, on a helper */
	return start_opening(exchange, awaited, object_reply_fail_opened);
}

static enum next object_reply_fail_opened(struct exchange *exchange)
{
	const struct awaited *const awaited = exchange->shared.state;
	struct error again = {0};
	struct body_source *const source = take_opened(exchange, &again);
	if (source != NULL)
		source->close(source);
	return exchange_fail(
		exchange, again.kind == ERROR_CONTENT_DAMAGED ? &again : &awaited->error);
}

/* Reads a small body before the head is sent, so that both take one send, and a damaged record
 * gives an error reply and not a broken connection. */
static int take_small(
	struct exchange *exchange, struct serving *serving, struct span *out, struct error *err)
{
	struct body_source *const source = serving->source;
	ASSERT(source != NULL && serving->range.length <= SMALL_BYTES);
	const size_t len = (size_t)serving->range.length;
	uint8_t *const bytes = arena_take(exchange->arena, len);
	const int result = bytes == NULL
		? error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.")
		: body_source_read_whole(source, bytes, len, err);
	source->close(source);
	serving->source = NULL;
	*out = span_of(bytes, len);
	return result;
}

/* A read that met damage has noted it: opened again, the bytes are refused with what mends them. */
static enum next fail_small(
	struct exchange *exchange, const struct serving *serving, const struct error *err)
{
	struct error again = {0};
	struct object_view *const view = object_view_new(exchange->context->store, &again);
	struct body_source *const source = view == NULL
		? NULL
		: object_view_open_told(view, &serving->object, serving->range.first,
			  serving->range.length, &again);
	object_view_free(view);
	if (source != NULL)
		source->close(source);
	return exchange_fail(exchange, again.kind == ERROR_CONTENT_DAMAGED ? &again : err);
}

static const char *content_type(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params)
{
	const char *const overridden = find_override(params, span_text("content-type"));
	if (overridden != NULL)
		return overridden;
	for (size_t i = 0; i < object->header_count; i++) {
		if (span_equal_text(object->headers[i].name, "content-type"))
			return arena_text(exchange->arena, object->headers[i].value);
	}
	return params->default_content_type != NULL ? params->default_content_type
						    : default_content_type;
}

static void add_headers(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params, const struct byte_range *range)
{
	add_version_headers(exchange, object, params);
	exchange_add_header(exchange, "Accept-Ranges", "bytes");
	if (range->kind == BYTE_RANGE_PART) {
		exchange_add_header(exchange, "Content-Range",
			arena_format(exchange->arena, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
				range->first, range->first + range->length - 1, object->size));
	}
	add_stored_headers(exchange, object, params);
	if (params->add_headers != NULL)
		params->add_headers(exchange, object, range);
}

/* Stored headers that no override replaces, then the overrides. */
static void add_stored_headers(struct exchange *exchange, const struct object *object,
	const struct object_reply_params *params)
{
	for (size_t i = 0; i < object->header_count; i++) {
		const struct object_header *const header = &object->headers[i];
		const bool own_place = span_equal_text(header->name, "content-type") ||
			find_override(params, header->name) != NULL;
		if (own_place ||
			(params->hide_user_metadata &&
				span_starts(header->name, span_text("x-amz-"))))
			continue;
		exchange_add_header(exchange, arena_text(exchange->arena, header->name),
			arena_text(exchange->arena, header->value));
	}
	for (size_t i = 0; i < params->override_count; i++) {
		if (!span_equal_text(span_text(params->overrides[i].name), "content-type"))
			exchange_add_header(
				exchange, params->overrides[i].name, params->overrides[i].value);
	}
}

static enum next reply_head(
	struct exchange *exchange, int status, const char *type, uint64_t length)
{
	const enum next next = exchange_reply_empty(exchange, status);
	exchange->reply.content_type = type;
	exchange->reply.length = length;
	exchange->reply.length_known = true;
	return next;
}
