/* The request first waits without a reply (shard_lines_resume). A shard that ends before the first
 * line is due gets a status, or one line. Otherwise the reply becomes a stream (shard_lines_read):
 * a line of progress whenever one is due, and a last line with the result. The status is sent by
 * then, so that a later failure can only be told in that line. */
#include "api/xet/shard_lines.h"

#include <string.h>

#include "base/format/json_node.h"

enum { LINE_MAX_BYTES = 4096, LINE_MS = 10 * 1000 };

static void set_due(struct shard_lines *lines);
static int64_t now_ms(const struct shard_lines *lines);
static void wait_on(struct shard_lines *lines);
static enum next reply_at_once(struct shard_lines *lines);
static bool is_stopping(const struct exchange *exchange);
static void print_result(struct shard_lines *lines);
static void begin_line(struct shard_lines *lines, struct json_writer *json, const char *type);
static void end_line(struct shard_lines *lines, struct json_writer *json);
static void print_failure(struct shard_lines *lines, const struct error *err);
static enum next begin_stream(struct shard_lines *lines);
static ptrdiff_t shard_lines_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err);
static void print_end(struct shard_lines *lines);
static void print_progress(struct shard_lines *lines);
static ptrdiff_t give(struct shard_lines *lines, uint8_t *into, size_t capacity);
static void shard_lines_close(struct body_source *source);

enum next shard_lines_begin(struct shard_lines *lines)
{
	set_due(lines);
	wait_on(lines);
	return NEXT_WAIT;
}

/* While the server stops no stream begins, so that the reply can still be a status. */
enum next shard_lines_resume(struct shard_lines *lines)
{
	if (shard_wait_is_done(lines->wait))
		return reply_at_once(lines);
	if (now_ms(lines) >= lines->due_ms && !is_stopping(lines->exchange))
		return begin_stream(lines);
	wait_on(lines);
	return NEXT_WAIT;
}

static void set_due(struct shard_lines *lines)
{
	const int64_t given_ms = lines->exchange->context->shard_line_ms;
	lines->due_ms = now_ms(lines) + (given_ms > 0 ? given_ms : LINE_MS);
}

static int64_t now_ms(const struct shard_lines *lines)
{
	const struct clock_source *const clock = lines->exchange->context->clock;
	return clock->monotonic_ms(clock);
}

/* Waits until a line is due or the shard is done. */
static void wait_on(struct shard_lines *lines)
{
	const int64_t left_ms = lines->due_ms - now_ms(lines);
	shard_wait_for(lines->wait, left_ms > 0 ? left_ms : 1);
}

/* A failure of the server keeps its status and is logged, and so does a server that stops; clients
 * then try again too. Other failures are told in a line. */
static enum next reply_at_once(struct shard_lines *lines)
{
	struct exchange *const exchange = lines->exchange;
	struct error err = {0};
	const int result = shard_wait_outcome(lines->wait, &err);
	const bool is_told = err.kind == ERROR_INVALID || err.kind == ERROR_TOO_LARGE ||
		(err.kind == ERROR_BUSY && !is_stopping(exchange));
	if (result != 0 && !is_told)
		return exchange_fail(exchange, &err);
	if (result == 0)
		print_result(lines);
	else
		print_failure(lines, &err);
	exchange_add_header(exchange, "Cache-Control", "no-cache");
	return exchange_reply_buffer(exchange, 200, "application/x-ndjson", &lines->line);
}

static bool is_stopping(const struct exchange *exchange)
{
	const _Atomic bool *const stopping = exchange->context->stopping;
	return stopping != NULL && *stopping;
}

static void print_result(struct shard_lines *lines)
{
	struct json_writer json;
	begin_line(lines, &json, "result");
	end_line(lines, &json);
}

static void begin_line(struct shard_lines *lines, struct json_writer *json, const char *type)
{
	lines->sent = 0;
	buffer_init(&lines->line, LINE_MAX_BYTES);
	json_writer_init(json, &lines->line);
	json_writer_object(json, NULL);
	json_writer_text(json, "type", span_text(type));
}

static void end_line(struct shard_lines *lines, struct json_writer *json)
{
	json_writer_end(json, '}');
	buffer_add_byte(&lines->line, '\n');
}

/* `retryable` makes the client send the whole shard again. A full disk is not worth that. */
static void print_failure(struct shard_lines *lines, const struct error *err)
{
	struct json_writer json;
	const struct error_row *const row = error_map_find(err->kind);
	begin_line(lines, &json, "error");
	json_writer_text(&json, "message", span_text(error_map_text(err, row)));
	json_writer_bool(
		&json, "retryable", row->json_status >= 500 && err->kind != ERROR_NO_SPACE);
	end_line(lines, &json);
}

static enum next begin_stream(struct shard_lines *lines)
{
	struct exchange *const exchange = lines->exchange;
	lines->source = (struct body_source){.read = shard_lines_read, .close = shard_lines_close};
	exchange_add_header(exchange, "Cache-Control", "no-cache");
	exchange_add_header(exchange, "X-Accel-Buffering", "no");
	return exchange_reply_stream(exchange, 200, "application/x-ndjson", &lines->source);
}

static ptrdiff_t shard_lines_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	struct shard_lines *const lines = (struct shard_lines *)source;
	if (lines->line.len == 0) {
		if (lines->is_over)
			return 0;
		if (shard_wait_is_done(lines->wait)) {
			print_end(lines);
		} else if (now_ms(lines) >= lines->due_ms) {
			print_progress(lines);
			set_due(lines);
		} else {
			wait_on(lines);
			return SOURCE_WAIT;
		}
	}
	return buffer_failed(&lines->line)
		? error_set(err, ERROR_NO_MEMORY, "A line does not fit its buffer.")
		: give(lines, into, capacity);
}

/* Prints the last line. The status is sent already, so a failure is logged here. */
static void print_end(struct shard_lines *lines)
{
	const struct exchange *const exchange = lines->exchange;
	struct error err = {0};
	lines->is_over = true;
	if (shard_wait_outcome(lines->wait, &err) == 0) {
		print_result(lines);
		return;
	}
	if (error_map_find(err.kind)->json_status >= 500 && exchange->context->log != NULL)
		log_failure(exchange->context->log, LOG_ERROR, exchange->request_id,
			"request_failed", &err);
	print_failure(lines, &err);
}

/* Clients show `verified` as a percentage of `total`. */
static void print_progress(struct shard_lines *lines)
{
	struct json_writer json;
	struct shard_progress progress;
	shard_put_progress(shard_wait_put(lines->wait), &progress);
	begin_line(lines, &json, progress.is_checked ? "committing" : "validating");
	if (progress.is_checked) {
		json_writer_text(&json, "stage", span_text("syncing"));
	} else {
		json_writer_u64(&json, "verified", progress.verified);
		json_writer_u64(&json, "total", progress.total);
	}
	end_line(lines, &json);
}

static ptrdiff_t give(struct shard_lines *lines, uint8_t *into, size_t capacity)
{
	ASSERT(lines->sent <= lines->line.len);
	const size_t left = lines->line.len - lines->sent;
	const size_t len = left < capacity ? left : capacity;
	memcpy(into, lines->line.data + lines->sent, len);
	lines->sent += len;
	if (lines->sent == lines->line.len)
		buffer_release(&lines->line);
	return (ptrdiff_t)len;
}

static void shard_lines_close(struct body_source *source)
{
	buffer_release(&((struct shard_lines *)source)->line);
}
