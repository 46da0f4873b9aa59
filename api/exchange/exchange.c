/* The part that all transports share: reading the query, accepting a body, building the reply.
 * Nothing here knows HTTP connections: the transport looks at exchange->sink and exchange->reply
 * after each step. Each part is made on demand: the query is parsed when the first parameter is
 * asked for, and the list of reply headers grows by doubling inside the arena. */
#include "api/exchange/exchange.h"

#include <stddef.h>
#include <string.h>

#include "api/exchange/body_filter.h"
#include "api/exchange/body_work.h"
#include "api/exchange/caller.h"
#include "api/exchange/long_wait.h"
#include "api/exchange/payload.h"
#include "base/encode.h"
#include "base/memory.h"

enum { HEADER_VALUE_MAX_BYTES = 8192, FIRST_HEADERS = 16 };

typedef bool equal_fn(struct span a, const char *text);

/* Collects a small body outside the arena, so that a body that arrives in many small pieces does
 * not leave a copy in the arena each time its buffer grows. */
struct small_sink {
	struct body_sink sink;
	struct exchange *exchange;
};

static void read_query(struct exchange *exchange);
static bool decode_component(struct exchange *exchange, struct span text, struct span *out);
static bool is_plain(struct span text);
static bool find_query(
	struct exchange *exchange, const char *name, equal_fn *equal, struct span *out_value);
static bool is_hoisted(struct span name);
static bool declared_length(const struct exchange *exchange, uint64_t *out);
static int check_length(const struct exchange *exchange, uint64_t length, struct error *err);
static enum next take_body(struct exchange *exchange, struct body_sink *sink);
static enum sink_result exchange_small_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static int take_share(struct exchange *exchange, size_t bytes, struct error *err);
static int exchange_small_finish(struct body_sink *sink, struct error *err);
static void exchange_small_abort(struct body_sink *sink);
static void drop_small_body(struct exchange *exchange);
static void exchange_displace_body(struct share_hold *hold);
static bool grow_headers(struct exchange *exchange);
static void start_reply(struct exchange *exchange, int status);
static int failure_status(
	const struct exchange *exchange, const struct error *err, const struct error_row *row);
static enum log_level failure_level(const struct error *err);
static void write_error(
	struct exchange *exchange, const struct error *err, const struct error_row *row);

struct bucket_ref exchange_bucket(const struct exchange *exchange)
{
	return (struct bucket_ref){.name = exchange->parameters[0], .id = exchange->bucket_id};
}

enum next exchange_await(struct exchange *exchange, struct call *call)
{
	ASSERT(call != NULL);
	if (exchange->call != call)
		exchange_drop_call(exchange);
	exchange->call = call;
	call_start(call, exchange_wake_owner, exchange);
	return NEXT_WAIT;
}

void exchange_drop_call(struct exchange *exchange)
{
	call_free(exchange->call);
	exchange->call = NULL;
}

const struct query_parameter *exchange_query_parameters(
	struct exchange *exchange, size_t *out_count)
{
	if (exchange->query_parameters == NULL && exchange->query.len > 0)
		read_query(exchange);
	*out_count = exchange->query_parameter_count;
	return exchange->query_parameters;
}

bool exchange_query(struct exchange *exchange, const char *name, struct span *out_value)
{
	return find_query(exchange, name, span_equal_text, out_value);
}

bool exchange_query_nocase(struct exchange *exchange, const char *name, struct span *out_value)
{
	return find_query(exchange, name, span_equal_nocase, out_value);
}

struct span exchange_header(struct exchange *exchange, const char *name)
{
	struct span value = exchange->ops->header(exchange, name);
	if (value.data == NULL && exchange->hoists_headers && is_hoisted(span_text(name)))
		exchange_query_nocase(exchange, name, &value);
	return value;
}

void exchange_each_header(struct exchange *exchange,
	void (*take)(void *taker, struct span name, struct span value), void *taker)
{
	exchange->ops->each_header(exchange, take, taker);
	for (size_t i = 0; exchange->hoists_headers && i < exchange->query_parameter_count; i++) {
		const struct query_parameter *const parameter = &exchange->query_parameters[i];
		char *const name = arena_text(exchange->arena, parameter->name);
		struct span value;
		if (name != NULL && is_hoisted(parameter->name) &&
			exchange->ops->header(exchange, name).data == NULL &&
			decode_component(exchange, parameter->value, &value))
			take(taker, parameter->name, value);
	}
}

enum next exchange_accept(struct exchange *exchange, struct body_sink *sink)
{
	struct error err = {0};
	uint64_t length;
	ASSERT(sink != NULL);
	if (!declared_length(exchange, &length) || check_length(exchange, length, &err) == 0)
		return take_body(exchange, sink);
	sink->abort(sink);
	return exchange_fail(exchange, &err);
}

enum next exchange_accept_small(struct exchange *exchange, size_t cap_bytes)
{
	struct error err = {0};
	if (exchange->has_length && exchange->length > cap_bytes) {
		error_set(&err, ERROR_TOO_LARGE,
			"The declared body has %llu bytes, which is over the limit of %zu bytes.",
			(unsigned long long)exchange->length, cap_bytes);
		return exchange_fail(exchange, &err);
	}
	struct small_sink *const small = arena_take(exchange->arena, sizeof(*small));
	if (small == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The memory of a request ran out.");
		return exchange_fail(exchange, &err);
	}
	small->sink = (struct body_sink){
		exchange_small_write, exchange_small_finish, exchange_small_abort};
	small->exchange = exchange;
	buffer_init(&exchange->small_body, cap_bytes);
	exchange->body_hold.displace = exchange_displace_body;
	return take_body(exchange, &small->sink);
}

struct span exchange_body(const struct exchange *exchange)
{
	return buffer_span(&exchange->small_body);
}

void exchange_add_header(struct exchange *exchange, const char *name, const char *value)
{
	struct reply *const reply = &exchange->reply;
	if (value == NULL || strlen(value) > HEADER_VALUE_MAX_BYTES)
		return;
	if (reply->header_count == reply->header_capacity && !grow_headers(exchange))
		return;
	reply->headers[reply->header_count].name = name;
	reply->headers[reply->header_count].value = value;
	reply->header_count++;
}

bool exchange_has_reply_header(const struct exchange *exchange, const char *name)
{
	for (size_t i = 0; i < exchange->reply.header_count; i++)
		if (strcmp(exchange->reply.headers[i].name, name) == 0)
			return true;
	return false;
}

enum next exchange_reply_empty(struct exchange *exchange, int status)
{
	start_reply(exchange, status);
	return NEXT_REPLY;
}

enum next exchange_reply_body(
	struct exchange *exchange, int status, const char *content_type, struct span body)
{
	start_reply(exchange, status);
	exchange->reply.content_type = content_type;
	exchange->reply.body = body;
	return NEXT_REPLY;
}

enum next exchange_reply_buffer(
	struct exchange *exchange, int status, const char *content_type, struct buffer *body)
{
	struct error err = {0};
	if (buffer_check(body, "the reply", &err) != 0) {
		buffer_release(body);
		error_set(&err, ERROR_NO_MEMORY, "The reply does not fit the memory of a request.");
		return exchange_fail(exchange, &err);
	}
	buffer_release(&exchange->reply.bytes);
	exchange->reply.bytes = *body;
	*body = (struct buffer){0};
	return exchange_reply_body(
		exchange, status, content_type, buffer_span(&exchange->reply.bytes));
}

enum next exchange_reply_source(struct exchange *exchange, int status, const char *content_type,
	struct body_source *source, uint64_t length)
{
	ASSERT(source != NULL);
	start_reply(exchange, status);
	exchange->reply.content_type = content_type;
	exchange->reply.source = source;
	exchange->reply.length = length;
	exchange->reply.length_known = true;
	exchange->reply.may_wait = source->let_wait != NULL;
	if (exchange->reply.may_wait)
		source->let_wait(source, exchange_wake_owner, exchange);
	return NEXT_REPLY;
}

enum next exchange_reply_stream(
	struct exchange *exchange, int status, const char *content_type, struct body_source *source)
{
	ASSERT(source != NULL && exchange->method != METHOD_HEAD);
	start_reply(exchange, status);
	exchange->reply.content_type = content_type;
	exchange->reply.source = source;
	exchange->reply.is_endless = true;
	exchange->reply.may_wait = true;
	return NEXT_REPLY;
}

unsigned exchange_pause_seconds(const struct exchange *exchange)
{
	return 2 + (unsigned char)exchange->request_id[0] % 4;
}

enum next exchange_fail(struct exchange *exchange, const struct error *err)
{
	const struct error_row *const row = error_map_find(err->kind);
	const int status = failure_status(exchange, err, row);
	start_reply(exchange, status);
	exchange->reply.length_known = false;
	if (status == 401)
		exchange_add_header(exchange, "WWW-Authenticate", "Bearer");
	if (row->json_status >= 500 && exchange->context->log != NULL)
		log_failure(exchange->context->log, failure_level(err), exchange->request_id,
			"request_failed", err);
	write_error(exchange, err, row);
	if ((err->kind == ERROR_BUSY || err->kind == ERROR_UPSTREAM) &&
		!exchange_has_reply_header(exchange, "Retry-After"))
		exchange_add_header(exchange, "Retry-After",
			arena_format(exchange->arena, "%u", exchange_pause_seconds(exchange)));
	exchange->reply.status = status;
	return NEXT_REPLY;
}

enum next exchange_fail_body(struct exchange *exchange, const struct error *err)
{
	return err->kind == ERROR_NONE && exchange->reply.status != 0
		? NEXT_REPLY
		: exchange_fail(exchange, err);
}

void exchange_error_field(struct exchange *exchange, const char *name, struct span value)
{
	if (exchange->error_field_count == EXCHANGE_ERROR_FIELDS_MAX ||
		value.len > EXCHANGE_ERROR_FIELD_MAX_BYTES)
		return;
	const struct span copy = arena_copy(exchange->arena, value);
	exchange->error_fields[exchange->error_field_count++] = (struct error_field){name, copy};
}

void exchange_error_bytes(struct exchange *exchange, const char *name, struct span value)
{
	struct buffer text;
	buffer_init(&text, EXCHANGE_ERROR_FIELD_MAX_BYTES);
	for (size_t i = 0; i < value.len && !buffer_failed(&text); i++)
		buffer_format(&text, "%s%02x", i > 0 ? " " : "", value.data[i]);
	if (!buffer_failed(&text))
		exchange_error_field(exchange, name, buffer_span(&text));
	buffer_release(&text);
}

void exchange_error_number(struct exchange *exchange, const char *name, uint64_t value)
{
	exchange_error_field(exchange, name,
		span_text(arena_format(exchange->arena, "%llu", (unsigned long long)value)));
}

void exchange_release(struct exchange *exchange)
{
	if (exchange->shared.release != NULL)
		exchange->shared.release(exchange);
	if (exchange->release != NULL)
		exchange->release(exchange);
	exchange_drop_call(exchange);
	long_wait_leave(exchange->wait);
	drop_small_body(exchange);
}

/* While `finish` runs on another thread, the handler's fields belong to that thread. */
void exchange_hang_up(struct exchange *exchange)
{
	if (exchange->body_job != NULL && !body_job_is_over(exchange->body_job))
		return;
	if (exchange->hang_up == NULL)
		return;
	atomic_store(&exchange->is_gone, true);
	exchange->hang_up(exchange);
}

/* While `finish` runs on another thread, wakes for the handler wait for its end (body_work.h). */
void exchange_wake(struct exchange *exchange)
{
	if (exchange->body_job == NULL || !body_job_keeps_wake(exchange->body_job))
		exchange->ops->wake(exchange);
}

void exchange_wake_owner(void *exchange)
{
	exchange_wake(exchange);
}

/* Parses the query once, because the router asks for many names. */
static void read_query(struct exchange *exchange)
{
	struct span rest = exchange->query;
	struct span pair;
	size_t most = 1;
	for (size_t i = 0; i < rest.len; i++)
		most += rest.data[i] == '&';
	exchange->query_parameters =
		arena_take_array(exchange->arena, most, sizeof(*exchange->query_parameters));
	while (exchange->query_parameters != NULL && span_split(&rest, '&', &pair)) {
		const ptrdiff_t equals = span_find(pair, '=');
		struct query_parameter *const out =
			&exchange->query_parameters[exchange->query_parameter_count];
		out->name = equals < 0 ? pair : span_slice(pair, 0, (size_t)equals);
		out->value = equals < 0 ? span_slice(pair, pair.len, 0)
					: span_slice(pair, (size_t)equals + 1, pair.len);
		if (pair.len > 0 && decode_component(exchange, out->name, &out->name))
			exchange->query_parameter_count++;
	}
}

static bool decode_component(struct exchange *exchange, struct span text, struct span *out)
{
	struct buffer decoded;
	if (is_plain(text)) {
		*out = text;
		return true;
	}
	buffer_init(&decoded, text.len + 1);
	const bool good = decode_percent(text, true, &decoded) && !buffer_failed(&decoded);
	if (good)
		*out = arena_copy(exchange->arena, buffer_span(&decoded));
	buffer_release(&decoded);
	return good;
}

static bool is_plain(struct span text)
{
	return span_find(text, '%') < 0 && span_find(text, '+') < 0;
}

static bool find_query(
	struct exchange *exchange, const char *name, equal_fn *equal, struct span *out_value)
{
	size_t count;
	const struct query_parameter *const parameters =
		exchange_query_parameters(exchange, &count);
	for (size_t i = 0; i < count; i++)
		if (equal(parameters[i].name, name))
			return decode_component(exchange, parameters[i].value, out_value);
	return false;
}

/* Whether a parameter of a presigned query stands for a header. The parameters of the signature do
 * not. Checksums do not either: a client that presigns a PUT has no body yet, and some clients send
 * the checksum of an empty body. The name of an algorithm is not a checksum. */
static bool is_hoisted(struct span name)
{
	static const char *const not_hoisted[] = {"x-amz-algorithm", "x-amz-checksum-",
		"x-amz-content-sha256", "x-amz-credential", "x-amz-date", "x-amz-expires",
		"x-amz-sdk-", "x-amz-security-token", "x-amz-signature", "x-amz-signedheaders",
		"x-amz-trailer"};
	if (!span_equal_nocase(span_slice(name, 0, 6), "x-amz-"))
		return false;
	if (span_equal_nocase(name, "x-amz-checksum-algorithm") ||
		span_equal_nocase(name, "x-amz-checksum-type"))
		return true;
	for (size_t i = 0; i < sizeof(not_hoisted) / sizeof(not_hoisted[0]); i++)
		if (span_equal_nocase(span_slice(name, 0, strlen(not_hoisted[i])), not_hoisted[i]))
			return false;
	return true;
}

/* The length of the content without framing. A request that has not passed identify (in tests of
 * handlers) has only its Content-Length. */
static bool declared_length(const struct exchange *exchange, uint64_t *out)
{
	*out = exchange->has_body_length ? exchange->body_length : exchange->length;
	return exchange->has_body_length || (exchange->has_length && !payload_is_chunked(exchange));
}

/* Whether the server accepts content of this length. */
static int check_length(const struct exchange *exchange, uint64_t length, struct error *err)
{
	const uint64_t cap = exchange->context->put_max_bytes;
	if (length <= cap)
		return store_check_room(exchange->context->store, length, err);
	return error_set(err, ERROR_TOO_LARGE,
		"The declared body has %llu bytes, which is over the limit of %llu bytes.",
		(unsigned long long)length, (unsigned long long)cap);
}

static enum next take_body(struct exchange *exchange, struct body_sink *sink)
{
	ASSERT(exchange->sink == NULL);
	exchange->sink = body_filter_new(exchange, sink);
	return NEXT_BODY;
}

static enum sink_result exchange_small_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct exchange *const exchange = ((struct small_sink *)sink)->exchange;
	if (take_share(exchange, bytes.len, err) != 0)
		return SINK_FAILED;
	buffer_add_span(&exchange->small_body, bytes);
	return buffer_check(&exchange->small_body, "the request body", err) == 0 ? SINK_TAKEN
										 : SINK_FAILED;
}

static int take_share(struct exchange *exchange, size_t bytes, struct error *err)
{
	struct share_pool *const pool = exchange->context->shares.bodies;
	if (pool == NULL || share_take(pool, &exchange->body_hold, caller_of(exchange), bytes))
		return 0;
	return error_set(err, ERROR_BUSY,
		"The server's memory for request bodies is full, and this caller has its share of it. Try again.");
}

static int exchange_small_finish(struct body_sink *sink, struct error *err)
{
	(void)sink, (void)err;
	return 0;
}

static void exchange_small_abort(struct body_sink *sink)
{
	drop_small_body(((struct small_sink *)sink)->exchange);
}

static void drop_small_body(struct exchange *exchange)
{
	buffer_release(&exchange->small_body);
	if (exchange->context->shares.bodies != NULL)
		share_give(exchange->context->shares.bodies, &exchange->body_hold);
}

static void exchange_displace_body(struct share_hold *hold)
{
	struct exchange *const exchange =
		(struct exchange *)((char *)hold - offsetof(struct exchange, body_hold));
	exchange->ops->cut(exchange);
}

static bool grow_headers(struct exchange *exchange)
{
	struct reply *const reply = &exchange->reply;
	const size_t doubled =
		reply->header_capacity > 0 ? 2 * reply->header_capacity : FIRST_HEADERS;
	const size_t capacity =
		doubled < EXCHANGE_REPLY_HEADERS_MAX ? doubled : EXCHANGE_REPLY_HEADERS_MAX;
	ASSERT(reply->header_count <= EXCHANGE_REPLY_HEADERS_MAX);
	if (capacity == reply->header_count)
		return false;
	struct reply_header *const headers =
		arena_take_array(exchange->arena, capacity, sizeof(*headers));
	if (headers == NULL)
		return false;
	if (reply->header_count > 0)
		memcpy(headers, reply->headers, reply->header_count * sizeof(*headers));
	reply->headers = headers;
	reply->header_capacity = capacity;
	return true;
}

/* Begins the reply. A failure may replace a reply that was prepared but not sent. */
static void start_reply(struct exchange *exchange, int status)
{
	struct reply *const reply = &exchange->reply;
	ASSERT(status >= 200 && status < 600);
	if (reply->source != NULL)
		reply->source->close(reply->source);
	reply->source = NULL;
	reply->is_endless = false;
	reply->may_wait = false;
	reply->status = status;
	reply->content_type = NULL;
	reply->body = (struct span){NULL, 0};
}

/* While the server stops, `busy` does not get busy_status, because coming back later does not help:
 * the caller then meets another server or none. */
static int failure_status(
	const struct exchange *exchange, const struct error *err, const struct error_row *row)
{
	const _Atomic bool *const stopping = exchange->context->stopping;
	if (exchange->face == &face_s3)
		return row->status;
	if (err->kind == ERROR_BUSY && exchange->face->busy_status != 0 &&
		(stopping == NULL || !*stopping))
		return exchange->face->busy_status;
	return err->kind == ERROR_NO_SPACE && exchange->face->full_status != 0
		? exchange->face->full_status
		: row->json_status;
}

/* Being busy and lacking a feature are not faults of the server, and requests of callers must not
 * fill its log with errors. */
static enum log_level failure_level(const struct error *err)
{
	return err->kind == ERROR_BUSY || err->kind == ERROR_UNSUPPORTED ? LOG_INFO : LOG_ERROR;
}

/* Callers without a key must not learn how full the disk is. */
static void write_error(
	struct exchange *exchange, const struct error *err, const struct error_row *row)
{
	static const struct error full = {.kind = ERROR_NO_SPACE};
	const bool hides_room = err->kind == ERROR_NO_SPACE && exchange->principal == NULL;
	exchange->face->write_error(exchange, hides_room ? &full : err, row);
}
