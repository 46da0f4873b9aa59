/* The list grows in the arena by doubling, because room for the most parts that an upload can have
 * takes over 1 MiB. A <Part> is added when it opens; its elements come in any order and are stored
 * when they close. Its number and ETag must be there when it closes itself. */
#include "api/s3/upload/complete_list.h"

#include <string.h>

#include "base/format/xml_reader.h"

enum { DEPTH_ROOT = 1, DEPTH_PART = 2, DEPTH_FIELD = 3 };

struct parse {
	struct arena *arena;
	struct upload_listed_part *parts;
	size_t count;
	size_t capacity;
	bool in_part;
	bool has_number; /* of the open <Part> */
	bool has_etag;
};

static int complete_list_on_open(void *owner, size_t depth, struct span name, struct error *err);
static int malformed(struct error *err);
static int add_part(struct parse *parse, struct error *err);
static int complete_list_on_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static int close_field(struct parse *parse, struct span name, struct span text, struct error *err);
static enum checksum_algorithm find_algorithm(struct span name);
static int take_number(
	struct parse *parse, struct upload_listed_part *part, struct span text, struct error *err);
static void take_etag(struct parse *parse, struct upload_listed_part *part, struct span text);
static int take_checksum(struct upload_listed_part *part, enum checksum_algorithm algorithm,
	struct span text, struct error *err);

int complete_list_parse(struct span xml, struct arena *arena, struct upload_listed_part **out,
	size_t *out_count, struct error *err)
{
	static const struct xml_reader_events events = {
		.open = complete_list_on_open, .close = complete_list_on_close};
	struct parse parse = {.arena = arena};
	if (xml_reader_parse(xml, &events, &parse, err) != 0)
		return -1;
	*out = parse.parts;
	*out_count = parse.count;
	return parse.count > 0 ? 0 : malformed(err);
}

static int complete_list_on_open(void *owner, size_t depth, struct span name, struct error *err)
{
	struct parse *const parse = owner;
	if (depth == DEPTH_ROOT && !span_equal_text(name, "CompleteMultipartUpload"))
		return malformed(err);
	if (depth != DEPTH_PART)
		return 0;
	parse->in_part = span_equal_text(name, "Part");
	return parse->in_part ? add_part(parse, err) : 0;
}

static int malformed(struct error *err)
{
	return error_set(err, ERROR_MALFORMED_XML,
		"The XML you provided was not well-formed or did not validate against our published schema");
}

static int add_part(struct parse *parse, struct error *err)
{
	ASSERT(parse->count <= parse->capacity);
	if (parse->count == UPLOAD_PARTS_MAX)
		return malformed(err);
	if (parse->count == parse->capacity) {
		const size_t capacity = parse->capacity == 0 ? 64 : parse->capacity * 2;
		struct upload_listed_part *const parts =
			arena_take_array(parse->arena, capacity, sizeof(*parts));
		if (parts == NULL)
			return error_set(err, ERROR_NO_MEMORY,
				"The list of parts does not fit the memory of a request.");
		if (parse->count > 0)
			memcpy(parts, parse->parts, parse->count * sizeof(*parts));
		parse->parts = parts;
		parse->capacity = capacity;
	}
	parse->count++;
	parse->has_number = parse->has_etag = false;
	return 0;
}

static int complete_list_on_close(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct parse *const parse = owner;
	if (depth == DEPTH_FIELD && parse->in_part)
		return close_field(parse, name, span_trim(text), err);
	if (depth == DEPTH_PART && parse->in_part && (!parse->has_number || !parse->has_etag))
		return malformed(err);
	return 0;
}

static int close_field(struct parse *parse, struct span name, struct span text, struct error *err)
{
	ASSERT(parse->count > 0);
	struct upload_listed_part *const part = &parse->parts[parse->count - 1];
	const enum checksum_algorithm algorithm = find_algorithm(name);
	if (span_equal_text(name, "PartNumber"))
		return take_number(parse, part, text, err);
	if (span_equal_text(name, "ETag"))
		take_etag(parse, part, text);
	else if (algorithm != CHECKSUM_NONE)
		return take_checksum(part, algorithm, text, err);
	return 0;
}

static enum checksum_algorithm find_algorithm(struct span name)
{
	for (int i = CHECKSUM_NONE + 1; i < CHECKSUM_ALGORITHMS; i++) {
		if (span_equal_text(name, checksum_element((enum checksum_algorithm)i)))
			return (enum checksum_algorithm)i;
	}
	return CHECKSUM_NONE;
}

static int take_number(
	struct parse *parse, struct upload_listed_part *part, struct span text, struct error *err)
{
	const bool is_negative = span_starts(text, span_text("-"));
	const struct span digits = is_negative ? span_slice(text, 1, text.len) : text;
	uint64_t number = 0;
	if (!span_parse_u64(digits, &number))
		return malformed(err);
	if (is_negative || number < 1 || number > UPLOAD_PARTS_MAX)
		return error_set(err, ERROR_INVALID,
			"PartNumber must be an integer between 1 and %d, inclusive",
			UPLOAD_PARTS_MAX);
	part->number = (uint32_t)number;
	parse->has_number = true;
	return 0;
}

/* An ETag that is longer than any part's stays empty, so it matches no part. */
static void take_etag(struct parse *parse, struct upload_listed_part *part, struct span text)
{
	struct span etag = text;
	if (etag.len >= 2 && etag.data[0] == '"' && etag.data[etag.len - 1] == '"')
		etag = span_slice(etag, 1, etag.len - 2);
	parse->has_etag = true;
	if (etag.len > 0 && etag.len < sizeof(part->etag))
		memcpy(part->etag, etag.data, etag.len);
}

/* A part has at most one checksum. An empty element is ignored. */
static int take_checksum(struct upload_listed_part *part, enum checksum_algorithm algorithm,
	struct span text, struct error *err)
{
	if (text.len == 0)
		return 0;
	if (part->checksum.algorithm != CHECKSUM_NONE ||
		!checksum_parse(algorithm, text, &part->checksum))
		return error_set(err, ERROR_INVALID,
			"Invalid Base64 or multiple checksums present in request");
	return 0;
}
