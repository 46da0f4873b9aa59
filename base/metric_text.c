#include "base/metric_text.h"

#include <inttypes.h>

enum { MILLION = 1000000 };

static void begin_series(struct buffer *out, const char *name, struct span labels);

void metric_text_family(struct buffer *out, const char *name, const char *type, const char *help)
{
	buffer_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metric_text_label(struct buffer *labels, const char *name, struct span value)
{
	if (labels->len > 0)
		buffer_add_byte(labels, ',');
	buffer_add_text(labels, name);
	buffer_add_text(labels, "=\"");
	for (size_t i = 0; i < value.len; i++) {
		const uint8_t byte = value.data[i];
		if (byte == '\n')
			buffer_add_text(labels, "\\n");
		else if (byte == '"' || byte == '\\')
			buffer_format(labels, "\\%c", byte);
		else
			buffer_add_byte(labels, byte);
	}
	buffer_add_byte(labels, '"');
}

void metric_text_number(struct buffer *out, const char *name, struct span labels, int64_t value)
{
	begin_series(out, name, labels);
	buffer_add_number(out, value);
	buffer_add_byte(out, '\n');
}

void metric_text_millionths(struct buffer *out, const char *name, struct span labels, int64_t value)
{
	ASSERT(value >= 0);
	begin_series(out, name, labels);
	buffer_format(out, "%" PRId64 ".%06" PRId64 "\n", value / MILLION, value % MILLION);
}

static void begin_series(struct buffer *out, const char *name, struct span labels)
{
	buffer_add_text(out, name);
	if (labels.len > 0) {
		buffer_add_byte(out, '{');
		buffer_add_span(out, labels);
		buffer_add_byte(out, '}');
	}
	buffer_add_byte(out, ' ');
}
