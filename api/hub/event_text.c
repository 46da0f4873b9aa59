/* A cursor is its fields in a fixed layout and random bytes, sealed (base/digest/seal.h) and
 * written in base64. */
#include "api/hub/event_text.h"

#include <stdio.h>
#include <string.h>

#include "api/exchange/server_event.h"
#include "base/encode.h"
#include "base/little_endian.h"
#include "base/random.h"

/* life, bucket, number and moment (u64 each, little-endian), and random bytes */
enum { AT_BUCKET = 8, AT_NUMBER = 16, AT_MOMENT = 24, AT_RANDOM = 32, CURSOR_PLAIN_BYTES = 40 };
enum { CURSOR_SEALED_BYTES = CURSOR_PLAIN_BYTES + SEAL_TOKEN_OVERHEAD_BYTES };
_Static_assert(EVENT_CURSOR_BYTES > (CURSOR_SEALED_BYTES + 2) / 3 * 4, "the text must fit");

static const char purpose[] = "event cursor";

static bool is_told(const struct event_change *change);
static void print_change(struct json_writer *json, const struct event_change *change);
static void print_file(struct json_writer *json, const struct tree_entry *file);
static void print_time(struct json_writer *json, const char *name, int64_t ms);

void event_cursor_print(const struct event_cursor *cursor, const uint8_t key[SEAL_KEY_BYTES],
	char out[EVENT_CURSOR_BYTES])
{
	uint8_t plain[CURSOR_PLAIN_BYTES];
	struct buffer sealed;
	struct buffer text;
	buffer_init(&sealed, CURSOR_SEALED_BYTES);
	buffer_init(&text, EVENT_CURSOR_BYTES);
	little_endian_put(plain, cursor->life, 8);
	little_endian_put(plain + AT_BUCKET, (uint64_t)cursor->bucket, 8);
	little_endian_put(plain + AT_NUMBER, cursor->position.number, 8);
	little_endian_put(plain + AT_MOMENT, (uint64_t)cursor->position.moment_ms, 8);
	random_bytes(plain + AT_RANDOM, CURSOR_PLAIN_BYTES - AT_RANDOM);
	seal_token(key, purpose, span_of(plain, sizeof(plain)), &sealed);
	encode_base64_url(buffer_span(&sealed), &text);
	ASSERT(!buffer_failed(&sealed) && !buffer_failed(&text));
	snprintf(out, EVENT_CURSOR_BYTES, "%s", buffer_text(&text));
	buffer_release(&sealed);
	buffer_release(&text);
}

bool event_cursor_parse(
	struct span text, const uint8_t key[SEAL_KEY_BYTES], struct event_cursor *out)
{
	uint8_t sealed[CURSOR_SEALED_BYTES];
	uint8_t plain[CURSOR_PLAIN_BYTES];
	size_t len;
	if (!decode_base64_url(text, sealed, sizeof(sealed), &len) ||
		!seal_token_open(key, purpose, span_of(sealed, len), plain, sizeof(plain), &len) ||
		len != sizeof(plain))
		return false;
	*out = (struct event_cursor){little_endian_get(plain, 8),
		(int64_t)little_endian_get(plain + AT_BUCKET, 8),
		{little_endian_get(plain + AT_NUMBER, 8),
			(int64_t)little_endian_get(plain + AT_MOMENT, 8)}};
	return true;
}

bool event_cursor_is_like(struct span text)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '\0' || strchr(letters, text.data[i]) == NULL)
			return false;
	return text.len > 0 && text.len < EVENT_CURSOR_BYTES;
}

void event_text_changes(
	struct buffer *out, const char *cursor, const struct event_change *changes, size_t count)
{
	struct json_writer json;
	size_t told = 0;
	ASSERT(changes != NULL || count == 0);
	while (told < count && !is_told(&changes[told]))
		told++;
	if (told == count)
		return;
	server_event_begin(out, "changes", &json);
	json_writer_text(&json, "cursor", span_text(cursor));
	json_writer_array(&json, "changes");
	for (size_t i = told; i < count; i++)
		if (is_told(&changes[i]))
			print_change(&json, &changes[i]);
	json_writer_end(&json, ']');
	server_event_end(out, &json);
}

/* A file that did not exist before and does not exist now is not a change. */
static bool is_told(const struct event_change *change)
{
	return change->existed || change->file != NULL;
}

static void print_change(struct json_writer *json, const struct event_change *change)
{
	json_writer_object(json, NULL);
	json_writer_text(json, "path", change->path);
	json_writer_text(json, "op",
		span_text(change->file == NULL    ? "delete"
				: change->existed ? "update"
						  : "add"));
	if (change->file != NULL)
		print_file(json, change->file);
	json_writer_end(json, '}');
}

static void print_file(struct json_writer *json, const struct tree_entry *file)
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

static void print_time(struct json_writer *json, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(ms, text);
	json_writer_text(json, name, span_text(text));
}
