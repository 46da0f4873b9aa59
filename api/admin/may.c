/* The exchange stands for a GET of the asked target while that is judged, by the same code that
 * judges a request for it; then it becomes again what it was, so that the reply has the form of
 * this route. */
#include "api/admin/may.h"

#include <string.h>

#include "api/route/router.h"
#include "api/xet/fetch_permit.h"
#include "base/encode.h"

#define MAY_CACHE_CONTROL "private, max-age=60"

/* What the exchange says of its request and its caller. */
struct seat {
	enum method method;
	struct span target;
	struct span path;
	struct span query;
	struct query_parameter *query_parameters;
	size_t query_parameter_count;
	bool hoists_headers;
	const struct face *face;
	const struct route *route;
	struct span parameters[4];
	size_t parameter_count;
	int allowed_methods;
	struct span resource;
	const struct principal *principal;
	const struct session_record *session;
	const struct xet_token *transfer;
	int64_t bucket_id;
	int64_t judged_version;
};

static int read_target(struct exchange *exchange, struct span *out, struct error *err);
static bool find_path(struct span query, struct span *out_value, struct span *out_rest);
static int judge_target(struct exchange *exchange, struct span target, struct error *err);
static int judge_seated(struct exchange *exchange, struct error *err);
static int may_judge_fetch(struct exchange *exchange, struct error *err);
static struct seat take_seat(const struct exchange *exchange);
static struct seat seat_of(struct span target);
static void sit(struct exchange *exchange, const struct seat *seat);

/* The routes whose replies a cache may keep. `judge`: what the handler judges beside the access
 * that the table of routes names; NULL: nothing. */
static const struct kept_route {
	const char *name;
	int (*judge)(struct exchange *exchange, struct error *err);
} kept_routes[] = {{"StepObject", NULL}, {"FoldObject", NULL}, {"GetStep", NULL},
	{"LatestStep", NULL}, {"StepPath", NULL}, {"FetchRecords", may_judge_fetch}};

enum next may_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct span target = {NULL, 0};
	if (read_target(exchange, &target, &err) != 0 || judge_target(exchange, target, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange_add_header(exchange, "Cache-Control", MAY_CACHE_CONTROL);
	return exchange_reply_empty(exchange, 204);
}

/* A target begins with '/', so a value that does is not encoded, and reaches to the end of the
 * query. */
static int read_target(struct exchange *exchange, struct span *out, struct error *err)
{
	struct span value = {NULL, 0};
	struct span rest = {NULL, 0};
	struct buffer decoded;
	bool is_good = find_path(exchange->query, &value, &rest);
	*out = rest;
	if (is_good && (rest.len == 0 || rest.data[0] != '/')) {
		buffer_init(&decoded, value.len + 1);
		is_good = decode_percent(value, false, &decoded) && decoded.len > 0 &&
			decoded.data[0] == '/' && span_find(buffer_span(&decoded), '\0') < 0;
		*out = arena_copy(exchange->arena, buffer_span(&decoded));
		buffer_release(&decoded);
	}
	return is_good ? 0
		       : error_set(err, ERROR_INVALID,
				 "\"path\" must be a path that begins with '/', with its query.");
}

/* Finds the parameter `path`: its value, and all that follows its '='. */
static bool find_path(struct span query, struct span *out_value, struct span *out_rest)
{
	const struct span name = span_text("path=");
	struct span left = query;
	struct span pair;
	while (left.len > 0 && span_split(&left, '&', &pair)) {
		if (!span_starts(pair, name))
			continue;
		*out_value = span_slice(pair, name.len, pair.len);
		*out_rest = span_slice(query, (size_t)(out_value->data - query.data), query.len);
		return true;
	}
	return false;
}

static int judge_target(struct exchange *exchange, struct span target, struct error *err)
{
	const struct seat own = take_seat(exchange);
	const struct seat asked = seat_of(target);
	sit(exchange, &asked);
	const int outcome = judge_seated(exchange, err);
	sit(exchange, &own);
	return outcome;
}

static int judge_seated(struct exchange *exchange, struct error *err)
{
	enum { COUNT = sizeof(kept_routes) / sizeof(kept_routes[0]) };
	size_t at = 0;
	router_match(exchange);
	const struct route *const route = exchange->route;
	while (at < COUNT && (route == NULL || strcmp(route->name, kept_routes[at].name) != 0))
		at++;
	if (at == COUNT)
		return error_set(err, ERROR_NOT_FOUND,
			"\"path\" must be that of an object of a step or a fold, a manifest, a step path or a fetch URL.");
	if (router_prepare(exchange, err) != 0)
		return -1;
	return kept_routes[at].judge != NULL ? kept_routes[at].judge(exchange, err) : 0;
}

/* Whether the fetch URL is valid now, whatever the bytes. */
static int may_judge_fetch(struct exchange *exchange, struct error *err)
{
	struct fetch_token token;
	ASSERT(exchange->parameter_count == 1);
	return fetch_permit_judge(exchange, exchange->parameters[0], &token, err);
}

static struct seat take_seat(const struct exchange *exchange)
{
	struct seat seat = {.method = exchange->method,
		.target = exchange->target,
		.path = exchange->path,
		.query = exchange->query,
		.query_parameters = exchange->query_parameters,
		.query_parameter_count = exchange->query_parameter_count,
		.hoists_headers = exchange->hoists_headers,
		.face = exchange->face,
		.route = exchange->route,
		.parameter_count = exchange->parameter_count,
		.allowed_methods = exchange->allowed_methods,
		.resource = exchange->resource,
		.principal = exchange->principal,
		.session = exchange->session,
		.transfer = exchange->transfer,
		.bucket_id = exchange->bucket_id,
		.judged_version = exchange->judged_version};
	memcpy(seat.parameters, exchange->parameters, sizeof(seat.parameters));
	return seat;
}

static struct seat seat_of(struct span target)
{
	struct seat seat = {
		.method = METHOD_GET, .target = target, .path = target, .face = &face_steps};
	const ptrdiff_t mark = span_find(target, '?');
	if (mark < 0)
		return seat;
	seat.path = span_slice(target, 0, (size_t)mark);
	seat.query = span_slice(target, (size_t)mark + 1, target.len);
	return seat;
}

static void sit(struct exchange *exchange, const struct seat *seat)
{
	exchange->method = seat->method;
	exchange->target = seat->target;
	exchange->path = seat->path;
	exchange->query = seat->query;
	exchange->query_parameters = seat->query_parameters;
	exchange->query_parameter_count = seat->query_parameter_count;
	exchange->hoists_headers = seat->hoists_headers;
	exchange->face = seat->face;
	exchange->route = seat->route;
	memcpy(exchange->parameters, seat->parameters, sizeof(seat->parameters));
	exchange->parameter_count = seat->parameter_count;
	exchange->allowed_methods = seat->allowed_methods;
	exchange->resource = seat->resource;
	exchange->principal = seat->principal;
	exchange->session = seat->session;
	exchange->transfer = seat->transfer;
	exchange->bucket_id = seat->bucket_id;
	exchange->judged_version = seat->judged_version;
}
