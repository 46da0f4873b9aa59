/* The elements of an <Object> come in any order, so each is stored into the open entry when it
 * closes, by a table of element names. Entries that cannot be done keep their own error and the
 * others are deleted; a malformed document refuses the whole request. */
#include "api/s3/object/delete_list.h"

#include "api/s3/xml/xml_controls.h"
#include "base/format/xml_reader.h"
#include "base/clock.h"
#include "storage/objects/object_delete.h"

struct reading {
	struct arena *arena;
	struct delete_list *list;
	struct xml_controls controls; /* of the document */
	bool in_object;
	bool has_key; /* of the open <Object> */
};

static const char no_room[] = "The list of objects does not fit the memory of a request.";
static const char key_fault[] = "An Object must have one Key, which must not be empty.";

static int delete_list_on_open(void *owner, size_t depth, struct span name, struct error *err);
static int delete_list_on_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static int close_field(
	struct reading *reading, struct span name, struct span text, struct error *err);
static int delete_list_take_key(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err);
static int delete_list_take_version(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err);
static int delete_list_take_etag(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err);
static int delete_list_take_size(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err);
static int delete_list_take_time(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err);

static const struct {
	const char *name;
	int (*take)(struct reading *reading, struct delete_entry *entry, struct span text,
		struct error *err);
} fields[] = {
	{"Key", delete_list_take_key},
	{"VersionId", delete_list_take_version},
	{"ETag", delete_list_take_etag},
	{"Size", delete_list_take_size},
	{"LastModifiedTime", delete_list_take_time},
};

int delete_list_read(
	struct span xml, struct arena *arena, struct delete_list *out, struct error *err)
{
	static const struct xml_reader_events events = {
		.open = delete_list_on_open, .close = delete_list_on_close};
	struct reading reading = {.arena = arena, .list = out};
	*out = (struct delete_list){0};
	out->entries = arena_take_array(arena, OBJECT_DELETE_MAX, sizeof(*out->entries));
	if (out->entries == NULL)
		return error_set(err, ERROR_NO_MEMORY, no_room);
	if (xml_controls_hide(xml, arena, &reading.controls, err) != 0 ||
		xml_reader_parse(reading.controls.xml, &events, &reading, err) != 0)
		return -1;
	return out->count > 0 ? 0
			      : error_set(err, ERROR_MALFORMED_XML,
					"The XML you provided must name at least one object.");
}

static int delete_list_on_open(void *owner, size_t depth, struct span name, struct error *err)
{
	struct reading *const reading = owner;
	if (depth == 1 && !span_equal_text(name, "Delete"))
		return error_set(err, ERROR_MALFORMED_XML,
			"The XML you provided must be a Delete document.");
	if (depth != 2)
		return 0;
	reading->in_object = span_equal_text(name, "Object");
	reading->has_key = false;
	if (reading->in_object && reading->list->count == OBJECT_DELETE_MAX)
		return error_set(err, ERROR_MALFORMED_XML,
			"The XML you provided must name at most %d objects.", OBJECT_DELETE_MAX);
	return 0;
}

static int delete_list_on_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct reading *const reading = owner;
	if (depth == 3 && reading->in_object)
		return close_field(reading, name, text, err);
	if (depth != 2)
		return 0;
	if (span_equal_text(name, "Quiet"))
		reading->list->is_quiet = span_equal_nocase(span_trim(text), "true");
	if (!reading->in_object)
		return 0;
	if (!reading->has_key)
		return error_set(err, ERROR_MALFORMED_XML, key_fault);
	reading->list->count++;
	return 0;
}

static int close_field(
	struct reading *reading, struct span name, struct span text, struct error *err)
{
	ASSERT(reading->list->count < OBJECT_DELETE_MAX);
	struct delete_entry *const entry = &reading->list->entries[reading->list->count];
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!span_equal_text(name, fields[i].name))
			continue;
		const struct span copy =
			xml_controls_show(&reading->controls, text, reading->arena);
		if (copy.data == NULL)
			return error_set(err, ERROR_NO_MEMORY, no_room);
		return fields[i].take(reading, entry, copy, err);
	}
	return 0;
}

static int delete_list_take_key(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err)
{
	if (text.len == 0 || reading->has_key)
		return error_set(err, ERROR_MALFORMED_XML, key_fault);
	reading->has_key = true;
	entry->item.key = text;
	if (text.len > OBJECT_KEY_MAX_BYTES)
		error_set(&entry->item.error, ERROR_KEY_TOO_LONG,
			"Your key is too long: over %d bytes.", OBJECT_KEY_MAX_BYTES);
	return 0;
}

static int delete_list_take_version(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err)
{
	(void)reading;
	(void)err;
	if (text.len == 0)
		return 0;
	entry->version = text;
	if (!version_ref_parse(text, &entry->item.ref) && entry->item.error.kind == ERROR_NONE)
		error_set(&entry->item.error, ERROR_INVALID, "Invalid version id specified");
	return 0;
}

static int delete_list_take_etag(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err)
{
	(void)reading;
	(void)err;
	entry->item.conditions.if_match = text;
	return 0;
}

static int delete_list_take_size(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err)
{
	(void)reading;
	entry->item.conditions.has_size = true;
	return span_parse_u64(span_trim(text), &entry->item.conditions.size)
		? 0
		: error_set(err, ERROR_MALFORMED_XML,
			  "The Size of an Object must be a number of bytes.");
}

static int delete_list_take_time(
	struct reading *reading, struct delete_entry *entry, struct span text, struct error *err)
{
	(void)reading;
	entry->item.conditions.has_modified = true;
	return clock_parse_http(span_trim(text), &entry->item.conditions.modified_ms)
		? 0
		: error_set(err, ERROR_MALFORMED_XML,
			  "The LastModifiedTime of an Object must be an HTTP date or an ISO 8601 time.");
}
