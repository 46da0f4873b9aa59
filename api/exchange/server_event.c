#include "api/exchange/server_event.h"

void server_event_begin(struct buffer *out, const char *event, struct json_writer *json)
{
	buffer_format(out, "event: %s\ndata: ", event);
	json_writer_init(json, out);
	json_writer_object(json, NULL);
}

void server_event_end(struct buffer *out, struct json_writer *json)
{
	json_writer_end(json, '}');
	buffer_add_text(out, "\n\n");
}

void server_event_print(struct buffer *out, const char *event, const char *name, struct span value)
{
	struct json_writer json;
	server_event_begin(out, event, &json);
	if (name != NULL)
		json_writer_text(&json, name, value);
	server_event_end(out, &json);
}

void server_event_ping(struct buffer *out)
{
	buffer_add_text(out, ": ping\n\n");
}
