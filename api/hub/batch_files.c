/* The whole body is read and judged before anything is done. A malformed line refuses the batch. A
 * line that the caller may not write fails alone, but a caller that may write none of the lines is
 * refused as a whole. The rest is one call (storage/files/batch.h), which asks back what the caller
 * may read. */
#include "api/hub/handlers.h"

#include "api/auth/authorise.h"
#include "api/auth/keyring.h"
#include "api/exchange/json_reply.h"
#include "api/hub/batch_lines.h"
#include "api/hub/source_access.h"
#include "base/format/json_node.h"

enum {
	REQUEST_MAX_BYTES = 8 * 1024 * 1024,
	STRANGER_MAX_BYTES = 64 * 1024,
	REPLY_MAX_BYTES = 16 * 1024 * 1024,
	UNPROCESSABLE = 422
};

struct batch_files { /* the exchange's state */
	struct batch_lines body;
	struct source_access *access;
};

static int prepare(struct exchange *exchange, struct batch_files *state, struct error *err);
static struct span account_of(const struct exchange *exchange);
static int authorise_lines(struct exchange *exchange, struct batch_lines *body, struct error *err);
static enum next reply(struct exchange *exchange, const struct batch_lines *lines);
static size_t count_failed(const struct batch_lines *body, const struct batch_line **out_first);
static void print_failed(struct json_writer *json, const struct batch_lines *body);
static void print_error(struct exchange *exchange, struct json_writer *json,
	const struct batch_lines *body, size_t failed, const struct batch_line *first);
static int batch_files_may_read(
	void *owner, struct bucket_ref bucket, struct span key, bool is_current, struct error *err);

/* Callers without a key get little memory, because their number is unlimited. */
enum next batch_files_begin(struct exchange *exchange)
{
	return exchange_accept_small(
		exchange, exchange->principal != NULL ? REQUEST_MAX_BYTES : STRANGER_MAX_BYTES);
}

enum next batch_files_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct batch_files *const state = arena_take(exchange->arena, sizeof(*state));
	if (state == NULL)
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
	if (state == NULL || prepare(exchange, state, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	if (state->body.count == 0)
		return reply(exchange, &state->body);
	const struct batch_params params = {
		.bucket = exchange_bucket(exchange),
		.account = account_of(exchange),
		.lines = state->body.lines,
		.count = state->body.count,
		.may_read = batch_files_may_read,
		.owner = exchange,
	};
	return exchange_await(exchange, batch_call(exchange->context->store, &params));
}

enum next batch_files_resume(struct exchange *exchange)
{
	const struct batch_files *const state = exchange->state;
	struct error err = {0};
	ASSERT(exchange->call != NULL);
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, &state->body);
}

static int prepare(struct exchange *exchange, struct batch_files *state, struct error *err)
{
	if (batch_lines_parse(exchange_body(exchange), exchange->context->default_namespace,
		    account_of(exchange), exchange->arena, &state->body, err) != 0 ||
		authorise_lines(exchange, &state->body, err) != 0)
		return -1;
	state->access = source_access_new(exchange, &state->body, err);
	return state->access != NULL ? 0 : -1;
}

static struct span account_of(const struct exchange *exchange)
{
	return exchange->principal != NULL ? exchange->principal->namespace
					   : (struct span){NULL, 0};
}

/* Refuses the lines that the caller may not write. -1: these are all lines, or the store failed. */
static int authorise_lines(struct exchange *exchange, struct batch_lines *body, struct error *err)
{
	static const struct span whole = {NULL, 0};
	struct bucket_ref bucket = exchange_bucket(exchange);
	size_t refused = 0;
	struct error denied = {0};
	if (authorise_key(exchange, &bucket, whole, PERMISSION_WRITE, &denied) == 0 &&
		authorise_key(exchange, &bucket, whole, PERMISSION_DELETE, &denied) == 0)
		return 0;
	for (size_t i = 0; i < body->count; i++) {
		struct batch_line *const line = &body->lines[i];
		const unsigned permission =
			batch_deletes(line->kind) ? PERMISSION_DELETE : PERMISSION_WRITE;
		if (authorise_key(exchange, &bucket, line->path, permission, &denied) == 0)
			continue;
		if (!authorise_is_refusal(denied.kind)) {
			*err = denied;
			return -1;
		}
		line->is_refused = true;
		line->error = denied;
		refused++;
	}
	if (refused > 0 && refused == body->count)
		*err = denied;
	return refused > 0 && refused == body->count ? -1 : 0;
}

static enum next reply(struct exchange *exchange, const struct batch_lines *lines)
{
	struct buffer body;
	struct json_writer json;
	const struct batch_line *first;
	const size_t failed = count_failed(lines, &first);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_bool(&json, "success", failed == 0);
	json_writer_u64(&json, "processed", lines->count);
	json_writer_u64(&json, "succeeded", lines->count - failed);
	print_failed(&json, lines);
	if (failed > 0)
		print_error(exchange, &json, lines, failed, first);
	json_writer_end(&json, '}');
	return json_reply(exchange, failed == 0 ? 200 : UNPROCESSABLE, &body);
}

static size_t count_failed(const struct batch_lines *body, const struct batch_line **out_first)
{
	size_t failed = 0;
	*out_first = NULL;
	for (size_t i = 0; i < body->count; i++) {
		if (body->lines[i].error.kind == ERROR_NONE)
			continue;
		if (failed++ == 0)
			*out_first = &body->lines[i];
	}
	return failed;
}

static void print_failed(struct json_writer *json, const struct batch_lines *body)
{
	json_writer_array(json, "failed");
	for (size_t i = 0; i < body->count; i++) {
		const struct batch_line *const line = &body->lines[i];
		if (line->error.kind == ERROR_NONE)
			continue;
		json_writer_object(json, NULL);
		json_writer_text(json, "path", line->path);
		json_writer_text(json, "code", span_text(error_kind_name(line->error.kind)));
		json_writer_text(json, "error", span_text(line->error.text));
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
}

/* Prints `error`, which clients show that do not know `failed`. */
static void print_error(struct exchange *exchange, struct json_writer *json,
	const struct batch_lines *body, size_t failed, const struct batch_line *first)
{
	ASSERT(first != NULL);
	const char *const text = arena_format(exchange->arena, "%zu of %zu lines failed. %.*s: %s",
		failed, body->count, (int)first->path.len, (const char *)first->path.data,
		first->error.text);
	json_writer_text(json, "error", span_text(text));
}

static int batch_files_may_read(
	void *owner, struct bucket_ref bucket, struct span key, bool is_current, struct error *err)
{
	struct exchange *const exchange = owner;
	const struct batch_files *const state = exchange->state;
	ASSERT(state->access != NULL);
	return source_access_allows(state->access, bucket, key, is_current, err);
}
