#include "api/admin/admin_page.h"

#include "base/format/json_node.h"

void admin_page_print_time(struct json_writer *json, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_BYTES];
	if (ms == 0) {
		json_writer_null(json, name);
		return;
	}
	clock_format_iso(ms, text);
	json_writer_text(json, name, span_text(text));
}
