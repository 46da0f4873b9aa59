/* A bucket's rules are stored as the XML that cors_rules prints, and are parsed again for each
 * request that has an Origin. A preflight names the method and headers of the request to come. Any
 * other request is matched by its own method, before the caller is identified, so that errors have
 * the headers too. */
#include "api/s3/bucket/bucket_cors.h"

#include "api/exchange/route.h"
#include "api/s3/bucket/bucket_setting.h"
#include "api/s3/bucket/cors_rules.h"
#include "api/s3/bucket/handlers.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/xml_body.h"
#include "base/encode.h"

enum { DOCUMENT_MAX_BYTES = 8 * CORS_BODY_MAX_BYTES, LIST_MAX_BYTES = 8192 };

static enum next refuse(
	struct exchange *exchange, enum error_kind kind, const char *code, const char *message);
static enum next refuse_value(struct exchange *exchange, const char *header, struct span value);
static const char *read_names(struct exchange *exchange, struct span headers, struct span *out_bad);
static int find_rules(struct exchange *exchange, struct bucket_ref bucket, struct cors_rules *out,
	struct error *err);
static void add_headers(
	struct exchange *exchange, const struct cors_rule *rule, struct span origin);
static const char *join(struct exchange *exchange, const struct cors_list *list);
static struct span bucket_of(struct exchange *exchange);
static struct span method_of(struct exchange *exchange);

enum next get_bucket_cors_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct span document;
	if (bucket_setting_find(exchange, BUCKET_CORS, &document, &err) != 0)
		return exchange_fail(exchange, &err);
	if (document.len == 0)
		return s3_error_reply(exchange,
			&(struct s3_error){.kind = ERROR_NOT_FOUND,
				.code = "NoSuchCORSConfiguration",
				.message = "The CORS configuration does not exist"});
	return exchange_reply_body(exchange, 200, "application/xml", document);
}

enum next put_bucket_cors_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct cors_rules rules;
	struct buffer document;
	struct span xml;
	enum next next;
	if (!xml_body_check(exchange, &xml, &next))
		return next;
	if (xml.len > CORS_BODY_MAX_BYTES) {
		error_set(&err, ERROR_MALFORMED_XML,
			"A CORSConfiguration must have at most %d bytes.", CORS_BODY_MAX_BYTES);
		return exchange_fail(exchange, &err);
	}
	if (cors_rules_parse(xml, exchange->arena, &rules, &err) != 0 ||
		cors_rules_check(&rules, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&document, DOCUMENT_MAX_BYTES);
	cors_rules_print(&rules, &document);
	const int printed = buffer_check(&document, "the CORS configuration", &err);
	next = printed == 0
		? bucket_setting_store(exchange, BUCKET_CORS, buffer_span(&document), 200)
		: exchange_fail(exchange, &err);
	buffer_release(&document);
	return next;
}

enum next delete_bucket_cors_begin(struct exchange *exchange)
{
	return bucket_setting_drop(exchange, BUCKET_CORS);
}

enum next preflight_begin(struct exchange *exchange)
{
	const struct span origin = exchange_header(exchange, "origin");
	const struct span method = exchange_header(exchange, "access-control-request-method");
	const struct span headers = exchange_header(exchange, "access-control-request-headers");
	struct cors_rules rules;
	struct span bad = {NULL, 0};
	struct error err = {0};
	if (origin.len == 0)
		return refuse(exchange, ERROR_INVALID, "BadRequest",
			"Insufficient information. Origin request header needed.");
	if (!cors_rules_know_method(method))
		return refuse_value(exchange, "Access-Control-Request-Method",
			method.len > 0 ? method : span_text("null"));
	const char *const names = read_names(exchange, headers, &bad);
	if (names == NULL)
		return refuse_value(exchange, "Access-Control-Request-Headers", bad);
	if (find_rules(exchange, exchange_bucket(exchange), &rules, &err) != 0)
		return exchange_fail(exchange, &err);
	if (rules.count == 0)
		return refuse(exchange, ERROR_DENIED, "AccessForbidden",
			"CORSResponse: CORS is not enabled for this bucket.");
	const struct cors_rule *const rule = cors_rules_match(&rules, origin, method, headers);
	if (rule == NULL)
		return refuse(exchange, ERROR_DENIED, "AccessForbidden",
			"CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / "
			"Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.");
	add_headers(exchange, rule, origin);
	if (names[0] != '\0')
		exchange_add_header(exchange, "Access-Control-Allow-Headers", names);
	return exchange_reply_empty(exchange, 200);
}

void bucket_cors_prepare(struct exchange *exchange)
{
	const struct span origin = exchange_header(exchange, "origin");
	struct cors_rules rules;
	struct error ignored;
	if (origin.len == 0 || exchange->parameter_count == 0 || exchange->method == METHOD_OPTIONS)
		return;
	if (find_rules(exchange, bucket_named(bucket_of(exchange)), &rules, &ignored) != 0)
		return; /* the request itself will fail for the same reason */
	const struct cors_rule *const rule =
		cors_rules_match(&rules, origin, method_of(exchange), (struct span){NULL, 0});
	if (rule != NULL)
		add_headers(exchange, rule, origin);
}

static enum next refuse(
	struct exchange *exchange, enum error_kind kind, const char *code, const char *message)
{
	return s3_error_reply(
		exchange, &(struct s3_error){.kind = kind, .code = code, .message = message});
}

static enum next refuse_value(struct exchange *exchange, const char *header, struct span value)
{
	return refuse(exchange, ERROR_INVALID, "BadRequest",
		arena_format(exchange->arena, "Invalid %s: %.*s", header, (int)value.len,
			value.len > 0 ? (const char *)value.data : ""));
}

/* The names of a list, in its order, separated by ", ". NULL with *out_bad when one of them is not
 * a header name. */
static const char *read_names(struct exchange *exchange, struct span headers, struct span *out_bad)
{
	struct buffer text;
	struct span rest = headers;
	struct span name;
	bool good = true;
	buffer_init(&text, 2 * headers.len + 1);
	while (good && span_split(&rest, ',', &name)) {
		name = span_trim(name);
		if (name.len == 0)
			continue;
		good = cors_rules_is_header_name(name);
		*out_bad = name;
		buffer_add_text(&text, text.len > 0 ? ", " : "");
		buffer_add_span(&text, name);
	}
	const char *const names = good ? arena_text(exchange->arena, buffer_span(&text)) : NULL;
	buffer_release(&text);
	return names;
}

/* Gives a count of 0 when the bucket has no rules. */
static int find_rules(struct exchange *exchange, struct bucket_ref bucket, struct cors_rules *out,
	struct error *err)
{
	struct span document;
	*out = (struct cors_rules){.count = 0};
	if (bucket_document_find(exchange->context->store, bucket, BUCKET_CORS, exchange->arena,
		    &document, err) != 0)
		return -1;
	return document.len == 0 ? 0 : cors_rules_parse(document, exchange->arena, out, err);
}

static void add_headers(struct exchange *exchange, const struct cors_rule *rule, struct span origin)
{
	ASSERT(rule->methods.count > 0);
	const bool open = cors_rule_is_open(rule, origin);
	exchange_add_header(exchange, "Access-Control-Allow-Origin",
		open ? "*" : arena_text(exchange->arena, origin));
	if (!open)
		exchange_add_header(exchange, "Access-Control-Allow-Credentials", "true");
	exchange_add_header(
		exchange, "Access-Control-Allow-Methods", join(exchange, &rule->methods));
	if (rule->exposed.count > 0)
		exchange_add_header(
			exchange, "Access-Control-Expose-Headers", join(exchange, &rule->exposed));
	if (rule->has_max_age)
		exchange_add_header(exchange, "Access-Control-Max-Age",
			arena_format(exchange->arena, "%lld", (long long)rule->max_age_s));
	exchange_add_header(exchange, "Vary",
		"Origin, Access-Control-Request-Headers, Access-Control-Request-Method");
}

static const char *join(struct exchange *exchange, const struct cors_list *list)
{
	struct buffer text;
	buffer_init(&text, LIST_MAX_BYTES);
	for (size_t i = 0; i < list->count; i++) {
		buffer_add_text(&text, i > 0 ? ", " : "");
		buffer_add_span(&text, list->items[i]);
	}
	const char *const joined =
		buffer_failed(&text) ? NULL : arena_text(exchange->arena, buffer_span(&text));
	buffer_release(&text);
	return joined;
}

/* Decodes the bucket's name, because the router decodes parameters only after `prepare`. */
static struct span bucket_of(struct exchange *exchange)
{
	struct buffer decoded;
	buffer_init(&decoded, exchange->parameters[0].len + 1);
	const bool good = decode_percent(exchange->parameters[0], false, &decoded);
	const struct span bucket =
		good ? arena_copy(exchange->arena, buffer_span(&decoded)) : (struct span){NULL, 0};
	buffer_release(&decoded);
	return bucket;
}

/* Access-Control-Request-Method when it was sent, else the request's own method. */
static struct span method_of(struct exchange *exchange)
{
	static const struct {
		enum method method;
		const char *name;
	} names[] = {{METHOD_GET, "GET"}, {METHOD_HEAD, "HEAD"}, {METHOD_PUT, "PUT"},
		{METHOD_POST, "POST"}, {METHOD_DELETE, "DELETE"}};
	const struct span asked = exchange_header(exchange, "access-control-request-method");
	for (size_t i = 0; asked.len == 0 && i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].method == exchange->method)
			return span_text(names[i].name);
	return asked;
}
