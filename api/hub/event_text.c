#include "api/hub/event_text.h"

#include <stdio.h>

#include "base/json_node.h"

enum { EVENT_MAX_BYTES = 4 * 1024 * 1024, HEX = 16 };

void event_cursor_print(const struct event_cursor *const cursor, char out[EVENT_CURSOR_BYTES])
{
	snprintf(out, EVENT_CURSOR_BYTES, "%llx-%llx-%llx-%llx", (unsigned long long)cursor->life, (unsigned long long)cursor->bucket,
		(unsigned long long)cursor->position.number, (unsigned long long)cursor->position.moment_ms);
}

static bool read_hex(const struct span text, uint64_t *const out)
{
	*out = 0;
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t digit = text.data[i];
		const bool is_letter = digit >= 'a' && digit <= 'f';
		if (!is_letter && (digit < '0' || digit > '9'))
			return false;
		*out = *out * HEX + (uint64_t)(is_letter ? digit - 'a' + 10 : digit - '0');
	}
	return text.len > 0 && text.len <= HEX;
}

bool event_cursor_parse(const struct span text, struct event_cursor *const out)
{
	uint64_t numbers[4];
	struct span rest = text;
	struct span piece;
	size_t count = 0;
	while (count < 4 && span_split(&rest, '-', &piece) && read_hex(piece, &numbers[count]))
		count++;
	if (count < 4 || rest.len > 0)
		return false;
	*out = (struct event_cursor){numbers[0], (int64_t)numbers[1], {numbers[2], (int64_t)numbers[3]}};
	return true;
}

void event_text_init(struct buffer *const out)
{
	buffer_init(out, EVENT_MAX_BYTES);
}

static void print_time(struct json_writer *const json, const char *const name, const int64_t ms)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(ms, text);
	json_writer_text(json, name, span_text(text));
}

static void print_file(struct json_writer *const json, const struct tree_entry *const file)
{
	char hash[CHUNK_ID_TEXT_BYTES];
	json_writer_u64(json, "size", file->size);
	if (file->has_file_hash) {
		chunk_id_format(&file->file_hash, hash);
		json_writer_text(json, "xetHash", span_text(hash));
	}
	print_time(json, "uploadedAt", file->uploaded_ms);
	print_time(json, "mtime", file->mtime_ms);
}

static bool is_told(const struct event_change *const change)
{
	return change->existed || change->file != NULL;
}

static void print_change(struct json_writer *const json, const struct event_change *const change)
{
	json_writer_object(json, NULL);
	json_writer_text(json, "path", change->path);
	json_writer_text(json, "op", span_text(change->file == NULL ? "delete" : change->existed ? "update" : "add"));
	if (change->file != NULL)
		print_file(json, change->file);
	json_writer_end(json, '}');
}

static void begin(struct buffer *const out, const char *const event, struct json_writer *const json)
{
	buffer_format(out, "event: %s\ndata: ", event);
	json_writer_init(json, out);
	json_writer_object(json, NULL);
}

static void end(struct buffer *const out, struct json_writer *const json)
{
	json_writer_end(json, '}');
	buffer_add_text(out, "\n\n");
}

void event_text_changes(struct buffer *const out, const char *const cursor, const struct event_change *const changes, const size_t count)
{
	struct json_writer json;
	size_t told = 0;
	while (told < count && !is_told(&changes[told]))
		told++;
	if (told == count)
		return;
	begin(out, "changes", &json);
	json_writer_text(&json, "cursor", span_text(cursor));
	json_writer_array(&json, "changes");
	for (size_t i = told; i < count; i++)
		if (is_told(&changes[i]))
			print_change(&json, &changes[i]);
	json_writer_end(&json, ']');
	end(out, &json);
}

void event_text_simple(struct buffer *const out, const char *const event, const char *const member, const char *const value)
{
	struct json_writer json;
	begin(out, event, &json);
	json_writer_text(&json, member, span_text(value));
	end(out, &json);
}

void event_text_ping(struct buffer *const out)
{
	buffer_add_text(out, ": ping\n\n");
}
