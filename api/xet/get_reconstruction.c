#include "api/xet/get_reconstruction.h"

#include "api/base_url.h"
#include "api/json_reply.h"
#include "api/xet/reconstruction_json.h"
#include "api/xet/xet_lookup.h"
#include "api/xet/xet_range.h"

enum { BATCH_FILES_MAX = 256, REPLY_MAX_BYTES = 192 * 1024 * 1024 };

static bool wants_as_stored(struct exchange *const exchange)
{
	return span_equal_text(exchange_header(exchange, "x-deltabucket-codecs"), "all");
}

/* Bytes [*out_from, *out_to) of the file are asked for. */
static int asked_range(struct exchange *const exchange, const uint64_t size, uint64_t *const out_from, uint64_t *const out_to,
	struct error *const err)
{
	const struct span header = exchange_header(exchange, "range");
	struct xet_range ranges[XET_RANGES_MAX];
	size_t count;
	*out_from = 0;
	*out_to = size;
	if (header.data == NULL)
		return 0;
	if (!xet_range_parse(header, ranges, &count) || count != 1 || !xet_range_resolve(&ranges[0], size, out_from, out_to))
		return error_set(err, ERROR_RANGE, "the range lies outside the file of %llu bytes", (unsigned long long)size);
	return 0;
}

static enum next reply_json(struct exchange *const exchange, struct buffer *const body)
{
	exchange_add_header(exchange, "Cache-Control", "private, no-store");
	return json_reply(exchange, 200, body);
}

static int print_file(const struct reconstruction_json *const reply, const uint64_t skip, struct error *const err)
{
	json_writer_object(reply->json, NULL);
	json_writer_u64(reply->json, "offset_into_first_range", skip);
	reconstruction_json_terms(reply, "terms", 0, reply->plan->term_count);
	const int result = reconstruction_json_ranges(reply, err);
	json_writer_end(reply->json, '}');
	return result;
}

/* The plan of the range that is asked for, in one snapshot. */
static int plan_file(struct exchange *const exchange, struct xet_view *const view, struct reconstruction *const plan, uint64_t *const out_skip,
	struct error *const err)
{
	struct chunk_id file;
	struct xet_content content;
	uint64_t from;
	uint64_t to;
	if (xet_lookup_parse(exchange->parameters[0], &file, err) != 0 || xet_lookup_find(exchange, view, &file, &content, err) != 0 ||
	    asked_range(exchange, content.size, &from, &to, err) != 0)
		return -1;
	if (xet_view_load(view, plan, &content, from, to, out_skip, err) != 0)
		return -1;
	return reconstruction_place(plan, exchange->context->store, wants_as_stored(exchange), err);
}

static enum next reply_file(struct exchange *const exchange, const bool grouped)
{
	struct error err = {0};
	struct reconstruction plan = {0};
	struct buffer body;
	struct json_writer json;
	uint64_t skip = 0;
	struct xet_view *const view = xet_view_new(exchange->context->store, &err);
	int result = view == NULL ? -1 : plan_file(exchange, view, &plan, &skip, &err);
	xet_view_free(view);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	const struct reconstruction_json reply = {.exchange = exchange, .plan = &plan, .base = base_url(exchange),
		.as_stored = wants_as_stored(exchange), .grouped = grouped, .json = &json};
	if (result == 0)
		result = print_file(&reply, skip, &err);
	reconstruction_release(&plan);
	const enum next next = result == 0 ? reply_json(exchange, &body) : exchange_fail(exchange, &err);
	buffer_release(&body);
	return next;
}

enum next get_reconstruction_v1_begin(struct exchange *const exchange)
{
	return reply_file(exchange, false);
}

enum next get_reconstruction_v2_begin(struct exchange *const exchange)
{
	return reply_file(exchange, true);
}

/* The files of a batch, and which terms of the plan are theirs. */
struct batch {
	struct chunk_id files[BATCH_FILES_MAX];
	size_t ends[BATCH_FILES_MAX]; /* in terms */
	bool found[BATCH_FILES_MAX];
	size_t count;
};

static int parse_batch(struct exchange *const exchange, struct batch *const batch, struct error *const err)
{
	struct span ignored;
	exchange_query(exchange, "file_id", &ignored); /* takes the query apart */
	for (size_t i = 0; i < exchange->query_parameter_count; i++) {
		if (!span_equal_text(exchange->query_parameters[i].name, "file_id"))
			continue;
		if (batch->count == BATCH_FILES_MAX)
			return error_set(err, ERROR_INVALID, "at most %d files can be asked for at once", BATCH_FILES_MAX);
		if (xet_lookup_parse(exchange->query_parameters[i].value, &batch->files[batch->count++], err) != 0)
			return -1;
	}
	return 0;
}

static bool stands_before(const struct batch *const batch, const size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (chunk_id_equal(&batch->files[i], &batch->files[index]))
			return true;
	return false;
}

/* What is unknown is left out. */
static int plan_batch(struct exchange *const exchange, struct xet_view *const view, struct batch *const batch, struct reconstruction *const plan,
	struct error *const err)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct xet_content content;
		struct error missing = {0};
		uint64_t skip;
		batch->found[i] = !stands_before(batch, i) && xet_lookup_find(exchange, view, &batch->files[i], &content, &missing) == 0;
		if (missing.kind != ERROR_NONE && missing.kind != ERROR_NOT_FOUND) {
			*err = missing;
			return -1;
		}
		if (batch->found[i] && xet_view_load(view, plan, &content, 0, content.size, &skip, err) != 0)
			return -1;
		batch->ends[i] = plan->term_count;
	}
	return reconstruction_place(plan, exchange->context->store, wants_as_stored(exchange), err);
}

static int print_batch(const struct reconstruction_json *const reply, const struct batch *const batch, struct error *const err)
{
	json_writer_object(reply->json, NULL);
	json_writer_object(reply->json, "files");
	for (size_t i = 0; i < batch->count; i++) {
		char hash[CHUNK_ID_TEXT_BYTES];
		chunk_id_format(&batch->files[i], hash);
		if (batch->found[i])
			reconstruction_json_terms(reply, hash, i > 0 ? batch->ends[i - 1] : 0, batch->ends[i]);
	}
	json_writer_end(reply->json, '}');
	const int result = reconstruction_json_ranges(reply, err);
	json_writer_end(reply->json, '}');
	return result;
}

enum next get_reconstruction_batch_begin(struct exchange *const exchange)
{
	struct error err = {0};
	struct reconstruction plan = {0};
	struct buffer body;
	struct json_writer json;
	struct batch *const batch = arena_take(exchange->arena, sizeof(*batch));
	ASSERT(batch != NULL); /* the first of the request's memory */
	struct xet_view *const view = xet_view_new(exchange->context->store, &err);
	int result = view == NULL || parse_batch(exchange, batch, &err) != 0 ? -1 : plan_batch(exchange, view, batch, &plan, &err);
	xet_view_free(view);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	const struct reconstruction_json reply = {.exchange = exchange, .plan = &plan, .base = base_url(exchange),
		.as_stored = wants_as_stored(exchange), .json = &json};
	if (result == 0)
		result = print_batch(&reply, batch, &err);
	reconstruction_release(&plan);
	const enum next next = result == 0 ? reply_json(exchange, &body) : exchange_fail(exchange, &err);
	buffer_release(&body);
	return next;
}

enum next get_reconstruction_file_begin(struct exchange *const exchange)
{
	struct error err = {0};
	struct chunk_id file;
	struct xet_content content;
	struct xet_view *const view = xet_view_new(exchange->context->store, &err);
	const int result = view == NULL || xet_lookup_parse(exchange->parameters[0], &file, &err) != 0 ? -1
		: xet_lookup_find(exchange, view, &file, &content, &err);
	xet_view_free(view);
	if (result != 0)
		return exchange_fail(exchange, &err);
	exchange_add_header(exchange, "Cache-Control", "private, no-store");
	const enum next next = exchange_reply_empty(exchange, 200);
	exchange->reply.length = content.size;
	exchange->reply.length_known = true;
	return next;
}
