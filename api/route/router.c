/* Compares the path as sent with the patterns, segment by segment, so that an encoded slash stays
 * inside its segment. Parameters are decoded after the row is found. Each family of paths has its
 * own table. A path of one family never falls through to another: "/v1/nonsense" is not a bucket
 * named "v1". */
#include "api/route/router.h"

#include <string.h>

#include "api/auth/authorise.h"
#include "api/auth/identify.h"
#include "api/auth/keyring.h"
#include "api/exchange/body_work.h"
#include "api/route/audit_rules.h"
#include "api/route/hub_name.h"
#include "base/encode.h"

enum { STATUS_GONE = 499 /* the usual number for a client that did not wait for the reply */ };
enum { PARAMETERS_MAX = 4, ROUTE_MARKER_BYTES = 64, LOG_PATH_BYTES = 512 };

struct family {
	const char *first;  /* path segment; NULL: everything else */
	const char *second; /* the next segment; NULL: any */
	const struct route *routes;
	const struct face *face;
};
static const struct family families[] = {
	{"-", NULL, admin_routes, &face_steps},
	{"console", NULL, console_routes, &face_steps},
	{"v1", "telemetry", xet_routes, &face_xet},
	{"v1", NULL, steps_routes, &face_steps},
	{"hot_load", NULL, hot_load_routes, &face_steps},
	{"api", NULL, hub_routes, &face_hub},
	{"buckets", NULL, hub_routes, &face_hub},
	{"oauth", "device", hub_routes, &face_hub},
	{"xet", NULL, xet_routes, &face_xet},
	{NULL, NULL, s3_routes, &face_s3},
};
static const struct family *const s3_family = &families[sizeof(families) / sizeof(families[0]) - 1];

struct match {
	struct span parameters[PARAMETERS_MAX]; /* still encoded */
	size_t count;
};

static struct span routed_path(struct exchange *exchange, bool *out_virtual);
static struct span without_damage(struct exchange *exchange, struct span path);
static bool means_bucket(struct exchange *exchange, struct span path);
static const struct family *find_family(struct span path, bool is_virtual);
static const struct route *find_route(struct exchange *exchange, const struct route *routes,
	struct span path, struct match *match);
static bool may_match(const struct exchange *exchange, const struct route *route);
static bool match_segments(struct span pattern, struct span path, struct match *match);
static struct span next_segment(struct span *rest);
static bool is_tail(struct span pattern_segment);
static bool match_query(struct exchange *exchange, const char *marker);
static int find_allowed(const struct route *routes, struct span path);
static int check_query(struct exchange *exchange, struct error *err);
static int refuse_unmatched(struct exchange *exchange, struct error *err);
static int decode_parameters(struct exchange *exchange, struct error *err);
static int join_bucket(struct exchange *exchange, struct error *err);
static enum next router_finish_small(struct exchange *exchange);
static enum next audited(struct exchange *exchange, enum next next);
static int judge_again(struct exchange *exchange, struct error *err);

void router_match(struct exchange *exchange)
{
	bool is_virtual;
	struct match match;
	const struct span path = routed_path(exchange, &is_virtual);
	const struct span below = span_slice(path, 1, path.len);
	const struct family *const family =
		means_bucket(exchange, below) ? s3_family : find_family(path, is_virtual);
	exchange->resource = path;
	exchange->face = family->face;
	if (path.len == 0 || path.data[0] != '/')
		return;
	exchange->route = find_route(exchange, family->routes, below, &match);
	if (exchange->route == NULL) {
		exchange->allowed_methods = find_allowed(family->routes, below);
		return;
	}
	exchange->face = exchange->route->face;
	memcpy(exchange->parameters, match.parameters, match.count * sizeof(match.parameters[0]));
	exchange->parameter_count = match.count;
}

int router_prepare(struct exchange *exchange, struct error *err)
{
	if (exchange->route == NULL)
		router_match(exchange);
	if (exchange->face->prepare != NULL)
		exchange->face->prepare(exchange);
	/* This comes first: wrong credentials are reported on every path. */
	if (identify(exchange, err) != 0)
		return -1;
	if (check_query(exchange, err) != 0)
		return -1;
	if (exchange->route == NULL)
		return refuse_unmatched(exchange, err);
	if (decode_parameters(exchange, err) != 0 || join_bucket(exchange, err) != 0)
		return -1;
	if (authorise(exchange, err) != 0)
		return -1;
	if (exchange->face->check != NULL && exchange->face->check(exchange, err) != 0)
		return -1;
	if (arena_overflowed(exchange->arena))
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	return 0;
}

enum next router_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (router_prepare(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return audited(exchange, exchange->route->begin(exchange));
}

enum next router_finish(struct exchange *exchange)
{
	ASSERT(exchange->route != NULL && exchange->route->finish != NULL);
	if (exchange->route->body != BODY_SMALL)
		return exchange->route->finish(exchange);
	return body_work_is_for(exchange) ? body_work_run(exchange, router_finish_small)
					  : router_finish_small(exchange);
}

/* The wait of a read may have lasted a minute and its result is sent only now, so the caller is
 * judged again. A change is not judged again: it was made when the caller was allowed to. */
enum next router_resume(struct exchange *exchange)
{
	struct error err = {0};
	enum next next;
	if (body_work_resume(exchange, &next))
		return next;
	if (atomic_load(&exchange->is_gone))
		return exchange_reply_empty(exchange, STATUS_GONE);
	if (exchange->shared.resume != NULL)
		return exchange->shared.resume(exchange);
	ASSERT(exchange->route != NULL && exchange->route->resume != NULL);
	if ((exchange->method & (METHOD_GET | METHOD_HEAD)) != 0 &&
		judge_again(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return audited(exchange, exchange->route->resume(exchange));
}

bool router_is_of_bucket(struct span path)
{
	struct match match;
	const struct span below = span_slice(path, 1, path.len);
	if (span_find(below, '/') >= 0 && find_family(path, false) != s3_family)
		return false;
	for (const struct route *route = s3_routes; route->pattern != NULL; route++)
		if (route->pattern[1] != '{' &&
			match_segments(span_text(route->pattern + 1), below, &match))
			return false;
	return true;
}

struct span router_log_path(const struct exchange *exchange)
{
	if (exchange->route != NULL && strstr(exchange->route->pattern, "{token}") != NULL)
		return span_text(exchange->route->pattern);
	return span_slice(exchange->path, 0, LOG_PATH_BYTES);
}

/* The path for the routes. On a virtual host it begins with the bucket, taken from Host. */
static struct span routed_path(struct exchange *exchange, bool *out_virtual)
{
	const char *const domain = exchange->context->domain;
	struct span host = exchange_header(exchange, "host");
	const ptrdiff_t colon = span_find(host, ':');
	if (colon >= 0)
		host = span_slice(host, 0, (size_t)colon);
	*out_virtual = false;
	if (domain == NULL || host.len < strlen(domain) + 2)
		return without_damage(exchange, exchange->path);
	const size_t bucket_len = host.len - strlen(domain) - 1;
	if (host.data[bucket_len] != '.' ||
		!span_equal_nocase(span_slice(host, bucket_len + 1, host.len), domain))
		return without_damage(exchange, exchange->path);
	char *const path =
		arena_format(exchange->arena, "/%.*s%.*s", (int)bucket_len, (const char *)host.data,
			(int)exchange->path.len, (const char *)exchange->path.data);
	for (size_t i = 1; path != NULL && i <= bucket_len; i++)
		if (path[i] >= 'A' && path[i] <= 'Z')
			path[i] = (char)(path[i] - 'A' + 'a');
	*out_virtual = path != NULL;
	return path == NULL ? exchange->path : span_text(path);
}

static struct span without_damage(struct exchange *exchange, struct span path)
{
	const struct span mark = span_text(ROUTER_XET_DAMAGE);
	const struct span rest = span_slice(path, mark.len, path.len);
	const ptrdiff_t slash = span_starts(path, mark) ? span_find(rest, '/') : -1;
	if (slash < 0)
		return path;
	const struct span below = span_slice(rest, (size_t)slash, rest.len);
	char *const text =
		arena_format(exchange->arena, "/xet%.*s", (int)below.len, (const char *)below.data);
	return text == NULL ? path : span_text(text);
}

/* A signed request for a single name, as from `aws s3 mb s3://api`, means a bucket. The S3 face
 * then says why no bucket can have that name. No row of the other faces has such a path. */
static bool means_bucket(struct exchange *exchange, struct span path)
{
	const ptrdiff_t slash = span_find(path, '/');
	const bool is_name = path.len > 0 && (slash < 0 || (size_t)slash == path.len - 1);
	return is_name && identify_is_signed(exchange);
}

static const struct family *find_family(struct span path, bool is_virtual)
{
	struct span rest = span_slice(path, 1, path.len);
	struct span first = {NULL, 0};
	struct span second = {NULL, 0};
	span_split(&rest, '/', &first);
	span_split(&rest, '/', &second);
	const struct family *family = families;
	while (family->first != NULL &&
		(is_virtual || !span_equal_text(first, family->first) ||
			(family->second != NULL && !span_equal_text(second, family->second))))
		family++;
	return family;
}

static const struct route *find_route(struct exchange *exchange, const struct route *routes,
	struct span path, struct match *match)
{
	for (const struct route *route = routes; route->pattern != NULL; route++)
		if (may_match(exchange, route) &&
			match_segments(span_text(route->pattern + 1), path, match) &&
			match_query(exchange, route->query))
			return route;
	return NULL;
}

/* A quick test before the path is compared: most rows have other methods, or belong to
 * sub-resources that the query does not name. */
static bool may_match(const struct exchange *exchange, const struct route *route)
{
	return (route->methods & (int)exchange->method) != 0 &&
		(route->query == NULL || exchange->query.len > 0);
}

/* Both come without their leading slash. */
static bool match_segments(struct span pattern, struct span path, struct match *match)
{
	match->count = 0;
	while (pattern.len > 0) {
		const struct span wanted = next_segment(&pattern);
		const bool is_parameter = wanted.data[0] == '{';
		const struct span whole = path;
		const struct span given = next_segment(&path);
		if (given.len == 0 && !is_tail(wanted))
			return false;
		if (!is_parameter && !span_equal(wanted, given))
			return false;
		if (!is_parameter)
			continue;
		ASSERT(match->count < PARAMETERS_MAX);
		match->parameters[match->count++] = is_tail(wanted) ? whole : given;
		if (is_tail(wanted))
			return whole.len > 0;
	}
	return path.len == 0;
}

static struct span next_segment(struct span *rest)
{
	const ptrdiff_t slash = span_find(*rest, '/');
	const size_t len = slash < 0 ? rest->len : (size_t)slash;
	const struct span segment = span_slice(*rest, 0, len);
	*rest = span_slice(*rest, len + 1, rest->len);
	return segment;
}

static bool is_tail(struct span pattern_segment)
{
	return pattern_segment.len > 2 && pattern_segment.data[0] == '{' &&
		pattern_segment.data[pattern_segment.len - 2] == '*';
}

/* The marker "name" must be present; the marker "name=value" must have that value. */
static bool match_query(struct exchange *exchange, const char *marker)
{
	char name[ROUTE_MARKER_BYTES];
	struct span value;
	if (marker == NULL)
		return true;
	if (exchange->query.len == 0)
		return false;
	const char *const equals = strchr(marker, '=');
	if (equals == NULL)
		return exchange_query(exchange, marker, &value);
	const size_t len = (size_t)(equals - marker);
	ASSERT(len < sizeof(name));
	memcpy(name, marker, len);
	name[len] = '\0';
	return exchange_query(exchange, name, &value) && span_equal_text(value, equals + 1);
}

static int find_allowed(const struct route *routes, struct span path)
{
	struct match match;
	int methods = 0;
	for (const struct route *route = routes; route->pattern != NULL; route++)
		if (match_segments(span_text(route->pattern + 1), path, &match))
			methods |= route->methods;
	return methods;
}

/* A parameter that cannot be decoded would count as absent, and "?versionId=%zz" must not become a
 * request for the current version. */
static int check_query(struct exchange *exchange, struct error *err)
{
	return percent_is_valid(exchange->query)
		? 0
		: error_set(err, ERROR_BAD_URI, "The query is not valid percent-encoding.");
}

static int refuse_unmatched(struct exchange *exchange, struct error *err)
{
	static const struct {
		int method;
		const char *name;
	} names[] = {{METHOD_GET, "GET"}, {METHOD_HEAD, "HEAD"}, {METHOD_PUT, "PUT"},
		{METHOD_POST, "POST"}, {METHOD_DELETE, "DELETE"}, {METHOD_OPTIONS, "OPTIONS"}};
	struct buffer allow;
	if (exchange->face->hides)
		return error_set(err, ERROR_NOT_FOUND, "There is nothing at this path.");
	if ((exchange->allowed_methods & (int)exchange->method) != 0)
		return error_set(err, ERROR_UNSUPPORTED,
			"This server does not implement what the query of this request asks for.");
	if (exchange->allowed_methods == 0)
		return error_set(err, ERROR_NOT_FOUND, "There is nothing at this path.");
	buffer_init(&allow, 128);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((exchange->allowed_methods & names[i].method) != 0)
			buffer_format(&allow, "%s%s", allow.len > 0 ? ", " : "", names[i].name);
	exchange_add_header(exchange, "Allow", arena_text(exchange->arena, buffer_span(&allow)));
	buffer_release(&allow);
	return error_set(err, ERROR_METHOD, "The method is not allowed on this path.");
}

static int decode_parameters(struct exchange *exchange, struct error *err)
{
	for (size_t i = 0; i < exchange->parameter_count; i++) {
		const struct span raw = exchange->parameters[i];
		struct buffer decoded;
		buffer_init(&decoded, raw.len + 1);
		const bool good = decode_percent(raw, false, &decoded) &&
			span_is_utf8(buffer_span(&decoded)) &&
			span_find(buffer_span(&decoded), 0) < 0;
		if (good)
			exchange->parameters[i] =
				arena_copy(exchange->arena, buffer_span(&decoded));
		buffer_release(&decoded);
		if (!good)
			return error_set(err, ERROR_BAD_URI,
				"The path %.*s is not percent-encoded UTF-8.",
				(int)(raw.len < 100 ? raw.len : 100), (const char *)raw.data);
	}
	return 0;
}

/* Replaces the parameters {namespace}/{bucket} by the bucket's name in the catalog. The namespace
 * "me" is the caller's own. */
static int join_bucket(struct exchange *exchange, struct error *err)
{
	struct span *const parameters = exchange->parameters;
	ASSERT(exchange->route != NULL);
	if (strstr(exchange->route->pattern, "{namespace}/{bucket}") == NULL)
		return 0;
	const bool is_own = span_equal_text(parameters[0], "me");
	if (is_own && exchange->principal == NULL)
		return error_set(err, ERROR_NO_CREDENTIALS, "This request needs credentials.");
	ASSERT(exchange->parameter_count >= 2);
	const struct span namespace = is_own ? exchange->principal->namespace : parameters[0];
	parameters[0] = hub_name_bucket(
		exchange->arena, exchange->context->default_namespace, namespace, parameters[1]);
	exchange->parameter_count--;
	for (size_t i = 1; i < exchange->parameter_count; i++)
		parameters[i] = parameters[i + 1];
	return 0;
}

/* A small body may have arrived slowly, and its handler acts only now. Meanwhile the key may have
 * been revoked, or the bucket deleted and its name given to another account, so the caller is
 * judged again. A large body does not need this, because its handler opened the target in `begin`.
 * May run on a thread of body_work. */
static enum next router_finish_small(struct exchange *exchange)
{
	struct error err = {0};
	if (judge_again(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	return audited(exchange, exchange->route->finish(exchange));
}

/* The audit trail has what succeeded. */
static enum next audited(struct exchange *exchange, enum next next)
{
	if (next == NEXT_REPLY)
		audit_rules_note(exchange);
	return next;
}

static int judge_again(struct exchange *exchange, struct error *err)
{
	return identify_again(exchange, err) != 0 ? -1 : authorise(exchange, err);
}
