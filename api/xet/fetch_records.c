/* A request names bytes of a shown xorb. They must lie in the spans that the token permits; each
 * range is streamed from the records of its spans, and several ranges make a multipart reply. A URL
 * that has expired, or whose records were moved, gets a 403: it makes clients ask for the
 * reconstruction again, which helps in both cases. */
#include "api/xet/handlers.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/xet/fetch_permit.h"
#include "api/xet/multipart_source.h"
#include "api/xet/xet_range.h"
#include "base/thread/helpers.h"
#include "storage/xet/xet_view.h"
#include "storage/xet/xorb_source.h"

struct fetch { /* in the exchange's arena */
	struct helper_job job;
	struct helper_lane lane;
	struct exchange *exchange;
	struct fetch_token token;
	struct fetch_bytes { /* bytes [from, to) of the shown xorb */
		uint64_t from;
		uint64_t to;
	} ranges[XET_RANGES_MAX];
	size_t range_count;
	bool has_ranges;                             /* the request has a Range header */
	struct body_source *sources[XET_RANGES_MAX]; /* of the ranges; NULL: not open */
	struct error error;                          /* of the helper */
};

/* The index of the span with this byte; span_count when there is none. */
static size_t span_at(const struct fetch_token *token, uint64_t at)
{
	size_t i = 0;
	while (i < token->span_count &&
		at >= (uint64_t)token->spans[i].offset + token->spans[i].length)
		i++;
	return i < token->span_count && at >= token->spans[i].offset ? i : token->span_count;
}

/* The end of the run of spans from `index` on that touch one another. */
static size_t touching_end(const struct fetch_token *token, size_t index)
{
	size_t end = index + 1;
	while (end < token->span_count &&
		token->spans[end].offset ==
			(uint64_t)token->spans[end - 1].offset + token->spans[end - 1].length)
		end++;
	return end;
}

/* Whether the token permits all of these bytes. */
static bool is_permitted(const struct fetch_token *token, const struct fetch_bytes *bytes)
{
	const size_t first = span_at(token, bytes->from);
	if (first == token->span_count)
		return false;
	const struct fetch_span *const last = &token->spans[touching_end(token, first) - 1];
	return bytes->to <= (uint64_t)last->offset + last->length;
}

static int compare_bytes(const void *a, const void *b)
{
	const struct fetch_bytes *const one = a;
	const struct fetch_bytes *const other = b;
	return one->from < other->from ? -1 : one->from > other->from;
}

/* Open and suffix ranges end at the end of the token's last span. */
static int resolve_ranges(
	struct fetch *fetch, const struct xet_range *asked, size_t count, struct error *err)
{
	ASSERT(fetch->token.span_count >= 1 && count <= XET_RANGES_MAX);
	const struct fetch_span *const last = &fetch->token.spans[fetch->token.span_count - 1];
	const uint64_t end = (uint64_t)last->offset + last->length;
	for (size_t i = 0; i < count; i++) {
		struct fetch_bytes *const bytes = &fetch->ranges[i];
		const bool exceeds =
			!asked[i].is_suffix && asked[i].last != UINT64_MAX && asked[i].last >= end;
		if (exceeds || !xet_range_resolve(&asked[i], end, &bytes->from, &bytes->to) ||
			!is_permitted(&fetch->token, bytes))
			return error_set(
				err, ERROR_DENIED, "This URL does not permit these bytes.");
	}
	qsort(fetch->ranges, count, sizeof(fetch->ranges[0]), compare_bytes);
	for (size_t i = 1; i < count; i++)
		if (fetch->ranges[i].from < fetch->ranges[i - 1].to)
			return error_set(err, ERROR_RANGE, "The ranges must not overlap.");
	fetch->range_count = count;
	return 0;
}

static int take_ranges(struct exchange *exchange, struct fetch *fetch, struct error *err)
{
	const struct span header = exchange_header(exchange, "range");
	const struct fetch_token *const token = &fetch->token;
	struct xet_range asked[XET_RANGES_MAX];
	size_t count;
	fetch->has_ranges = header.data != NULL;
	if (!fetch->has_ranges) {
		const size_t end = touching_end(token, 0);
		if (end < token->span_count)
			return error_set(err, ERROR_INVALID,
				"This URL has several ranges: name them in the Range header.");
		fetch->ranges[0] = (struct fetch_bytes){token->spans[0].offset,
			(uint64_t)token->spans[end - 1].offset + token->spans[end - 1].length};
		fetch->range_count = 1;
		return 0;
	}
	if (!xet_range_parse(header, asked, &count))
		return error_set(err, ERROR_RANGE,
			"The Range header must have 1 to %d ranges, such as bytes=0-99.",
			XET_RANGES_MAX);
	return resolve_ranges(fetch, asked, count, err);
}

static struct body_source *open_inline(struct exchange *exchange, const struct fetch_token *token,
	const struct fetch_bytes *bytes, struct error *err)
{
	struct xet_view *const view = xet_view_new(exchange->context->store, err);
	if (view == NULL)
		return NULL;
	struct body_source *const source = xet_view_open_inline(
		view, token->bucket, token->version, bytes->from, bytes->to - bytes->from, err);
	xet_view_free(view);
	return source;
}

/* Damaged chunks are read again, which waits for a network in a far place. */
static int check_damaged(
	struct pack_store *packs, const struct fetch_span *span, bool is_soon, struct error *err)
{
	const struct pack_run run = {
		.pack = span->pack, .first = span->first, .chunks = span->count};
	if (is_soon && pack_store_is_far(packs) && pack_store_is_damaged(packs, &run))
		return error_set(err, ERROR_NOT_READY, "The records must first be read again.");
	return pack_store_check_damaged(packs, &run, err);
}

static struct body_source *open_records(struct exchange *exchange, const struct fetch_token *token,
	const struct fetch_bytes *bytes, bool is_soon, struct error *err)
{
	struct pack_store *const packs = store_packs(exchange->context->store);
	const size_t first = span_at(token, bytes->from);
	struct xorb_run runs[FETCH_SPANS_MAX];
	size_t count = 0;
	ASSERT(first < token->span_count); /* is_permitted */
	for (size_t i = first; i < token->span_count && token->spans[i].offset < bytes->to; i++) {
		const struct fetch_span *const span = &token->spans[i];
		runs[count++] = (struct xorb_run){.pack = span->pack,
			.first = span->first,
			.count = span->count,
			.length = span->length};
		if (check_damaged(packs, span, is_soon, err) != 0)
			return NULL;
	}
	const struct xorb_source_params params = {.runs = runs,
		.count = count,
		.as_stored = token->as_stored,
		.offset = bytes->from - token->spans[first].offset,
		.length = bytes->to - bytes->from,
		.is_soon = is_soon};
	return xorb_source_open(packs, &params, err);
}

/* Opens one permitted range. not_ready: it must be opened by a helper, without `is_soon`. */
static struct body_source *open_range(struct exchange *exchange, const struct fetch_token *token,
	const struct fetch_bytes *bytes, bool is_soon, struct error *err)
{
	struct body_source *const source = token->version != 0
		? open_inline(exchange, token, bytes, err)
		: open_records(exchange, token, bytes, is_soon, err);
	if (source == NULL && err->kind == ERROR_NOT_FOUND)
		fetch_permit_refuse(err); /* the records were moved or deleted meanwhile */
	return source;
}

static int open_all(struct fetch *fetch, bool is_soon, struct error *err)
{
	for (size_t i = 0; i < fetch->range_count; i++) {
		if (fetch->sources[i] == NULL)
			fetch->sources[i] = open_range(
				fetch->exchange, &fetch->token, &fetch->ranges[i], is_soon, err);
		if (fetch->sources[i] == NULL)
			return -1;
	}
	return 0;
}

static void fetch_records_open(struct helper_job *job)
{
	struct fetch *const fetch = (struct fetch *)job;
	(void)open_all(fetch, false, &fetch->error);
	exchange_wake(fetch->exchange); /* from here on the fetch may be gone */
}

static void fetch_records_release(struct exchange *exchange)
{
	struct fetch *const fetch = exchange->state;
	for (size_t i = 0; i < fetch->range_count; i++)
		if (fetch->sources[i] != NULL)
			fetch->sources[i]->close(fetch->sources[i]);
}

/* The URL of one caller is of no use to a shared cache, and ends with its key. */
static const char *cache_control(struct exchange *exchange, const struct fetch_token *token)
{
	const struct api_context *const context = exchange->context;
	const int64_t rest_s = token->expires_s - context->clock->wall_ms(context->clock) / 1000;
	if (!token->is_shared)
		return arena_format(exchange->arena, "private, max-age=%" PRId64, rest_s / 2);
	return arena_format(exchange->arena, "%s, max-age=%" PRId64 ", immutable",
		context->shared_cache ? "public" : "private", rest_s);
}

static void add_headers(struct exchange *exchange, const struct fetch *fetch)
{
	exchange_add_header(exchange, "Cache-Control", cache_control(exchange, &fetch->token));
	exchange_add_header(exchange, "Accept-Ranges", "bytes");
}

static enum next reply_one(struct exchange *exchange, struct fetch *fetch)
{
	const struct fetch_bytes *const bytes = &fetch->ranges[0];
	struct body_source *const source = fetch->sources[0];
	fetch->sources[0] = NULL;
	add_headers(exchange, fetch);
	if (fetch->has_ranges)
		exchange_add_header(exchange, "Content-Range",
			arena_format(exchange->arena, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu32,
				bytes->from, bytes->to - 1, fetch->token.total));
	return exchange_reply_source(exchange, fetch->has_ranges ? 206 : 200,
		"application/octet-stream", source, bytes->to - bytes->from);
}

static enum next reply_several(struct exchange *exchange, struct fetch *fetch)
{
	struct multipart_part parts[XET_RANGES_MAX];
	char boundary[MULTIPART_BOUNDARY_BYTES];
	uint64_t length;
	for (size_t i = 0; i < fetch->range_count; i++) {
		const struct fetch_bytes *const bytes = &fetch->ranges[i];
		parts[i] = (struct multipart_part){bytes->from, bytes->to - 1, fetch->sources[i]};
		fetch->sources[i] = NULL;
	}
	multipart_boundary(boundary);
	struct body_source *const source = multipart_source_open(
		parts, fetch->range_count, fetch->token.total, boundary, &length);
	add_headers(exchange, fetch);
	return exchange_reply_source(exchange, 206,
		arena_format(exchange->arena, "multipart/byteranges; boundary=%s", boundary),
		source, length);
}

static enum next reply(struct exchange *exchange, struct fetch *fetch)
{
	return fetch->range_count == 1 ? reply_one(exchange, fetch)
				       : reply_several(exchange, fetch);
}

static enum next open_on_helper(struct exchange *exchange, struct fetch *fetch)
{
	fetch->job.run = fetch_records_open;
	helpers_submit(store_helpers(exchange->context->store), &fetch->lane, &fetch->job);
	return NEXT_WAIT;
}

enum next fetch_records_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct fetch *const fetch = arena_take(exchange->arena, sizeof(*fetch));
	if (fetch == NULL)
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
	ASSERT(exchange->parameter_count == 1);
	if (fetch == NULL ||
		fetch_permit_judge(exchange, exchange->parameters[0], &fetch->token, &err) != 0 ||
		take_ranges(exchange, fetch, &err) != 0)
		return exchange_fail(exchange, &err);
	fetch->exchange = exchange;
	exchange->state = fetch;
	exchange->release = fetch_records_release;
	if (open_all(fetch, true, &err) == 0)
		return reply(exchange, fetch);
	return err.kind == ERROR_NOT_READY ? open_on_helper(exchange, fetch)
					   : exchange_fail(exchange, &err);
}

enum next fetch_records_resume(struct exchange *exchange)
{
	struct fetch *const fetch = exchange->state;
	return fetch->error.kind == ERROR_NONE ? reply(exchange, fetch)
					       : exchange_fail(exchange, &fetch->error);
}
