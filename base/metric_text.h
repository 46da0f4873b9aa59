/* Prometheus' text format 0.0.4: the lines of one family of series after the other. Names and types
 * are the caller's, and values have the base unit of the name. */
#ifndef BASE_METRIC_TEXT_H
#define BASE_METRIC_TEXT_H

#include "base/buffer.h"

/* The two lines before the series of a family. `help` is one line without backslashes. */
void metric_text_family(struct buffer *out, const char *name, const char *type, const char *help);
/* Adds name="value" to a list of labels. The value may be any UTF-8. */
void metric_text_label(struct buffer *labels, const char *name, struct span value);
/* A series: the name, the labels in braces unless there are none, and the value. */
void metric_text_number(struct buffer *out, const char *name, struct span labels, int64_t value);
/* The same for a value in millionths of the unit. */
void metric_text_millionths(
	struct buffer *out, const char *name, struct span labels, int64_t value);

#endif
