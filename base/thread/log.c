/* A line is built in a buffer of its own and leaves whole in one write, so that lines of threads
 * and processes do not mix. A server must not stop because its log cannot be written, so failures
 * of writes are ignored. */
#include "base/thread/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format/json_node.h"
#include "base/memory.h"
#include "base/thread/lock.h"

enum {
	LINE_MAX_BYTES = 64 * 1024,
	VALUE_MAX_BYTES = 4096,
	USUAL_LINE_BYTES = 512,
	HELD_MAX_BYTES = 32 * 1024
};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

struct log {
	struct lock lock;   /* guards the order of writes, and `held` */
	struct buffer held; /* lines that wait */
	bool holds;
	int fd;
	enum log_level level;
	bool json;
	const struct clock_source *clock;
};

struct event {
	const char *time;
	const char *level;
	const char *request_id;
	const char *name;
	const struct log_field *fields;
	size_t count;
};

static void write_held(struct log *log);
static void print_line(const struct log *log, const struct event *event, struct buffer *out);
static void print_json(const struct event *event, struct buffer *out);
static struct span clipped(struct span value);
static void print_text(const struct event *event, struct buffer *out);
static void print_value(struct span value, struct buffer *out);
static bool is_bare(struct span value);
static void write_line(struct log *log, enum log_level level, struct span line);

struct log *log_new(int fd, enum log_level level, bool json, const struct clock_source *clock)
{
	struct log *const log = memory_new(sizeof(*log));
	lock_init(&log->lock, LOCK_LOG);
	buffer_init(&log->held, HELD_MAX_BYTES + LINE_MAX_BYTES);
	log->fd = fd;
	log->level = level;
	log->json = json;
	log->clock = clock != NULL ? clock : clock_system();
	return log;
}

void log_free(struct log *log)
{
	if (log == NULL)
		return;
	log_flush(log);
	buffer_release(&log->held);
	lock_release(&log->lock);
	free(log);
}

void log_hold(struct log *log)
{
	lock_enter(&log->lock);
	log->holds = true;
	lock_leave(&log->lock);
}

void log_flush(struct log *log)
{
	if (log == NULL)
		return;
	lock_enter(&log->lock);
	write_held(log);
	lock_leave(&log->lock);
}

struct log_field log_text(const char *key, const char *value)
{
	return log_span(key, span_text(value));
}

struct log_field log_span(const char *key, struct span value)
{
	return (struct log_field){.key = key, .text = value};
}

struct log_field log_number(const char *key, int64_t value)
{
	return (struct log_field){.key = key, .number = value, .is_number = true};
}

bool log_wants(const struct log *log, enum log_level level)
{
	return log != NULL && level <= log->level;
}

void log_event(struct log *log, enum log_level level, const char *request_id, const char *event,
	const struct log_field *fields, size_t count)
{
	char time[CLOCK_TEXT_BYTES];
	struct buffer line;
	ASSERT(event != NULL && (fields != NULL || count == 0));
	if (!log_wants(log, level))
		return;
	clock_format_iso(log->clock->wall_ms(log->clock), time);
	struct event whole = {time, level_names[level], request_id, event, fields, count};
	buffer_init(&line, LINE_MAX_BYTES);
	buffer_reserve(&line, USUAL_LINE_BYTES);
	print_line(log, &whole, &line);
	if (buffer_failed(&line)) {
		const struct log_field note = log_text("truncated", "the line was too long");
		whole.fields = &note;
		whole.count = 1;
		print_line(log, &whole, &line);
	}
	write_line(log, level, buffer_span(&line));
	buffer_release(&line);
}

void log_failure(struct log *log, enum log_level level, const char *request_id, const char *event,
	const struct error *err)
{
	const struct log_field fields[] = {
		log_text("error", error_kind_name(err->kind)), log_text("message", err->text)};
	log_event(log, level, request_id, event, fields, sizeof(fields) / sizeof(fields[0]));
}

/* Writes all held lines, also when a signal cuts a write short. */
static void write_held(struct log *log)
{
	lock_assert_held(&log->lock);
	struct span rest = buffer_span(&log->held);
	while (rest.len > 0) {
		const ssize_t written = write(log->fd, rest.data, rest.len);
		if (written < 0 && errno != EINTR)
			break;
		rest = span_slice(rest, written > 0 ? (size_t)written : 0, rest.len);
	}
	buffer_reset(&log->held);
}

static void print_line(const struct log *log, const struct event *event, struct buffer *out)
{
	buffer_reset(out);
	if (log->json)
		print_json(event, out);
	else
		print_text(event, out);
	buffer_add_byte(out, '\n');
}

static void print_json(const struct event *event, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_text(&writer, "time", span_text(event->time));
	json_writer_text(&writer, "level", span_text(event->level));
	if (event->request_id != NULL)
		json_writer_text(&writer, "request_id", clipped(span_text(event->request_id)));
	json_writer_text(&writer, "event", span_text(event->name));
	for (size_t i = 0; i < event->count; i++) {
		const struct log_field *const field = &event->fields[i];
		if (field->is_number)
			json_writer_i64(&writer, field->key, field->number);
		else
			json_writer_text(&writer, field->key, clipped(field->text));
	}
	json_writer_end(&writer, '}');
}

static struct span clipped(struct span value)
{
	return span_slice(value, 0, VALUE_MAX_BYTES);
}

static void print_text(const struct event *event, struct buffer *out)
{
	buffer_add_text(out, event->time);
	buffer_add_byte(out, ' ');
	buffer_add_text(out, event->level);
	buffer_add_byte(out, ' ');
	print_value(clipped(span_text(event->request_id != NULL ? event->request_id : "-")), out);
	buffer_add_byte(out, ' ');
	buffer_add_text(out, event->name);
	for (size_t i = 0; i < event->count; i++) {
		const struct log_field *const field = &event->fields[i];
		buffer_add_byte(out, ' ');
		buffer_add_text(out, field->key);
		buffer_add_byte(out, '=');
		if (field->is_number)
			buffer_add_number(out, field->number);
		else
			print_value(clipped(field->text), out);
	}
}

/* Quotes and escapes a value that a reader could take for more than one, or that could move the
 * cursor of a terminal. */
static void print_value(struct span value, struct buffer *out)
{
	if (is_bare(value)) {
		buffer_add_span(out, value);
		return;
	}
	buffer_add_byte(out, '"');
	for (size_t at = 0; at < value.len;) {
		const size_t len = span_utf8_length(span_slice(value, at, 4));
		const uint8_t byte = value.data[at];
		const bool c1_control = len == 2 && byte == 0xc2 && value.data[at + 1] < 0xa0;
		if (byte == '"' || byte == '\\')
			buffer_format(out, "\\%c", byte);
		else if (len == 0 || byte < ' ' || byte == 0x7f || c1_control)
			buffer_format(out, "\\x%02x", byte);
		else
			buffer_add(out, value.data + at, len);
		at += len == 0 || c1_control ? 1 : len;
	}
	buffer_add_byte(out, '"');
}

static bool is_bare(struct span value)
{
	for (size_t i = 0; i < value.len; i++) {
		const uint8_t byte = value.data[i];
		if (byte <= ' ' || byte >= 0x7f || byte == '"' || byte == '\\' || byte == '=')
			return false;
	}
	return value.len > 0;
}

static void write_line(struct log *log, enum log_level level, struct span line)
{
	lock_enter(&log->lock);
	buffer_add_span(&log->held, line);
	if (!log->holds || level < LOG_INFO || log->held.len >= HELD_MAX_BYTES)
		write_held(log);
	lock_leave(&log->lock);
}
