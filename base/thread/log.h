/* The event log: one line per event, `time level request-id event key=value...` or one JSON object
 * per line. Failures are logged once, at the edge that answers for them; lower layers return errors
 * and never log them. Secrets have no way in: there is no printer for struct secret. Internally
 * locked; any thread. */
#ifndef BASE_THREAD_LOG_H
#define BASE_THREAD_LOG_H

#include "base/clock.h"
#include "base/error.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

struct log;

/* clock NULL: the system's. */
struct log *log_new(int fd, enum log_level level, bool json, const struct clock_source *clock);
void log_free(struct log *log); /* NULL is fine; the fd stays the caller's */
/* From now on lines of LOG_INFO and LOG_DEBUG are held back, 32 KiB of them at most, and leave
 * together: with the next line of another level, and when somebody calls log_flush, which the owner
 * does every second or so. A process that is killed loses what was held. */
void log_hold(struct log *log);
void log_flush(struct log *log); /* NULL is fine */

/* One key and its value; the value is escaped. Build with log_text, log_number. */
struct log_field {
	const char *key;
	struct span text;
	int64_t number;
	bool is_number;
};
struct log_field log_text(const char *key, const char *value);
struct log_field log_span(const char *key, struct span value);
struct log_field log_number(const char *key, int64_t value);

/* `request_id` may be NULL. `event` is a constant like "request" or "pack_sealed". */
void log_event(struct log *log, enum log_level level, const char *request_id, const char *event,
	const struct log_field *fields, size_t count);
/* The common case: event with error_kind and message. */
void log_failure(struct log *log, enum log_level level, const char *request_id, const char *event,
	const struct error *err);
bool log_wants(const struct log *log, enum log_level level);

#endif
