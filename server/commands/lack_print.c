#include "server/commands/lack_print.h"

#include <stdio.h>

void lack_print_lines(const struct backup_lacks *lacks)
{
	for (size_t i = 0; i < lacks->count; i++)
		printf("not whole: %s: %s\n", lacks->items[i].name, lacks->items[i].why);
}

void lack_print_json(const struct backup_lacks *lacks, const char *member, struct json_writer *json)
{
	json_writer_array(json, member);
	for (size_t i = 0; i < lacks->count; i++) {
		json_writer_object(json, NULL);
		json_writer_text(json, "file", span_text(lacks->items[i].name));
		json_writer_text(json, "why", span_text(lacks->items[i].why));
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
}
