/* The event log: one line for each event, `time level request-id event key=value...`, or one JSON
 * object per line. Failures are logged once, at the edge that answers for them; lower layers return
 * errors and never log them. Secrets cannot enter: there is no printer for struct secret.
 * Internally locked; any thread. */
#ifndef BASE_THREAD_LOG_H
#define BASE_THREAD_LOG_H

#include "base/clock.h"
#include "base/error.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

struct log;

/* `clock` NULL: the system's. `fd` is borrowed. */
struct log *log_new(int fd, enum log_level level, bool json, const struct clock_source *clock);
void log_free(struct log *log); /* NULL is fine; does not close fd */
/* From now on lines of LOG_INFO and LOG_DEBUG are held back, up to 32 KiB, and leave together: with
 * the next line of a more severe level, and at log_flush, which the owner calls about once a
 * second. A killed process loses the held lines. */
void log_hold(struct log *log);
void log_flush(struct log *log); /* NULL is fine */

/* A key and its value, made by log_text, log_span or log_number. The log escapes the value. */
struct log_field {
	const char *key;
	struct span text;
	int64_t number;
	bool is_number;
};
struct log_field log_text(const char *key, const char *value);
struct log_field log_span(const char *key, struct span value);
struct log_field log_number(const char *key, int64_t value);

/* `request_id` may be NULL. `event` is a constant, "request" or "pack_sealed" for example. */
void log_event(struct log *log, enum log_level level, const char *request_id, const char *event,
	const struct log_field *fields, size_t count);
/* The common case: an event with the fields `error` (the kind) and `message`. */
void log_failure(struct log *log, enum log_level level, const char *request_id, const char *event,
	const struct error *err);
bool log_wants(const struct log *log, enum log_level level);

#endif
