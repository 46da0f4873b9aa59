#include "api/live/live_text.h"

void live_text_begin(struct buffer *out, const char *event, struct json_writer *json)
{
	buffer_format(out, "event: %s\ndata: ", event);
	json_writer_init(json, out);
	json_writer_object(json, NULL);
}

void live_text_end(struct buffer *out, struct json_writer *json)
{
	json_writer_end(json, '}');
	buffer_add_text(out, "\n\n");
}

void live_text_event(struct buffer *out, const char *event, const char *name, struct span value)
{
	struct json_writer json;
	live_text_begin(out, event, &json);
	if (name != NULL)
		json_writer_text(&json, name, value);
	live_text_end(out, &json);
}

void live_text_ping(struct buffer *out)
{
	buffer_add_text(out, ": ping\n\n");
}
