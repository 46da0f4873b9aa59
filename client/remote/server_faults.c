#include "client/remote/server_faults.h"

#include "base/format/json_node.h"

void server_faults_of(struct span reply, struct span *out)
{
	struct span ready;
	*out = reply;
	if (!span_split(out, '\n', &ready))
		*out = (struct span){0};
}

bool server_faults_next(struct span *faults, struct span *out_line)
{
	*out_line = (struct span){0};
	while (faults->len > 0 && out_line->len == 0 && span_split(faults, '\n', out_line))
		*out_line = span_trim(*out_line);
	return out_line->len > 0;
}

void server_faults_print(struct span faults, const char *name, struct json_writer *writer)
{
	struct span line;
	json_writer_array(writer, name);
	while (server_faults_next(&faults, &line))
		json_writer_text(writer, NULL, line);
	json_writer_end(writer, ']');
}
