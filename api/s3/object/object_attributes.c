/* The header x-amz-object-attributes chooses which elements the reply has; each is a bit. Parts are
 * read only when ObjectParts is one of them. */
#include "api/s3/object/handlers.h"

#include "api/s3/object/object_request.h"
#include "api/s3/request/checksum_xml.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "storage/objects/object_part.h"

enum { PARTS_MAX = 1000, REPLY_MAX_BYTES = 1024 * 1024 };

enum attribute { /* what x-amz-object-attributes may name */
	ATTRIBUTE_ETAG = 1,
	ATTRIBUTE_CHECKSUM = 2,
	ATTRIBUTE_OBJECT_PARTS = 4,
	ATTRIBUTE_STORAGE_CLASS = 8,
	ATTRIBUTE_OBJECT_SIZE = 16
};
static const struct {
	const char *name;
	enum attribute attribute;
} attributes[] = {{"ETag", ATTRIBUTE_ETAG}, {"Checksum", ATTRIBUTE_CHECKSUM},
	{"ObjectParts", ATTRIBUTE_OBJECT_PARTS}, {"StorageClass", ATTRIBUTE_STORAGE_CLASS},
	{"ObjectSize", ATTRIBUTE_OBJECT_SIZE}};

struct attributes_request {
	struct object_ref object;
	unsigned attributes; /* of enum attribute, or'ed */
	uint64_t max_parts;
	uint64_t after; /* x-amz-part-number-marker */
};

static bool read_asked(
	struct exchange *exchange, struct attributes_request *asked, enum next *out_next);
static bool read_attributes(
	struct exchange *exchange, struct attributes_request *asked, enum next *out_next);
static unsigned attribute_of(struct span name);
static bool read_number(
	struct exchange *exchange, const char *header, uint64_t *out, enum next *out_next);
static int find(struct exchange *exchange, const struct attributes_request *asked,
	struct object *object, struct object_parts *found, struct error *err);
static void write_attributes(struct xml_writer *xml, const struct attributes_request *asked,
	const struct object *object, const struct object_parts *found);
static void write_parts(struct xml_writer *xml, const struct attributes_request *asked,
	const struct object *object, const struct object_parts *found);

enum next object_attributes_begin(struct exchange *exchange)
{
	struct attributes_request asked;
	struct object object;
	struct object_parts found = {0};
	struct error err = {0};
	struct buffer body;
	struct xml_writer xml;
	char modified[CLOCK_TEXT_BYTES];
	enum next next;
	if (!read_asked(exchange, &asked, &next))
		return next;
	if (find(exchange, &asked, &object, &found, &err) != 0)
		return object_request_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "GetObjectAttributesResponse", true);
	write_attributes(&xml, &asked, &object, &found);
	xml_writer_end(&xml);
	clock_format_http(object.modified_ms, modified);
	exchange_add_header(
		exchange, "Last-Modified", arena_text(exchange->arena, span_text(modified)));
	object_request_add_version(exchange, &object);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

static bool read_asked(
	struct exchange *exchange, struct attributes_request *asked, enum next *out_next)
{
	*asked = (struct attributes_request){.max_parts = PARTS_MAX};
	if (!read_attributes(exchange, asked, out_next) ||
		!object_request_ref(exchange, &asked->object, out_next) ||
		!read_number(exchange, "x-amz-max-parts", &asked->max_parts, out_next) ||
		!read_number(exchange, "x-amz-part-number-marker", &asked->after, out_next))
		return false;
	if (asked->max_parts > PARTS_MAX)
		asked->max_parts = PARTS_MAX;
	return true;
}

static bool read_attributes(
	struct exchange *exchange, struct attributes_request *asked, enum next *out_next)
{
	static const char header[] = "x-amz-object-attributes";
	struct span rest = exchange_header(exchange, header);
	struct span piece;
	while (span_split(&rest, ',', &piece)) {
		const struct span name = span_trim(piece);
		const unsigned attribute = attribute_of(name);
		asked->attributes |= attribute;
		if (attribute == 0 && name.len > 0) {
			*out_next = s3_error_argument(
				exchange, header, name, "Invalid attribute name specified.");
			return false;
		}
	}
	if (asked->attributes != 0)
		return true;
	*out_next = s3_error_reply(exchange,
		&(struct s3_error){.kind = ERROR_INVALID_REQUEST,
			.message =
				"The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty"});
	return false;
}

static unsigned attribute_of(struct span name)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		if (span_equal_text(name, attributes[i].name))
			return attributes[i].attribute;
	}
	return 0;
}

static bool read_number(
	struct exchange *exchange, const char *header, uint64_t *out, enum next *out_next)
{
	const struct span value = span_trim(exchange_header(exchange, header));
	if (value.len == 0 || (span_parse_u64(value, out) && *out <= INT32_MAX))
		return true;
	*out_next = s3_error_argument(
		exchange, header, value, "The value must be a number from 0 to 2147483647.");
	return false;
}

static int find(struct exchange *exchange, const struct attributes_request *asked,
	struct object *object, struct object_parts *found, struct error *err)
{
	const bool wants_parts =
		(asked->attributes & ATTRIBUTE_OBJECT_PARTS) != 0 && asked->max_parts > 0;
	if (s3_request_check_owner(exchange, err) != 0 ||
		object_request_find(exchange, &asked->object, object, err) != 0)
		return -1;
	if (!wants_parts || object->part_count == 0)
		return 0;
	ASSERT(asked->after <= INT32_MAX);
	const struct object_parts_range range = {
		.after = (uint32_t)asked->after, .limit = asked->max_parts};
	return object_list_parts(
		exchange->context->store, object, range, exchange->arena, found, err);
}

static void write_attributes(struct xml_writer *xml, const struct attributes_request *asked,
	const struct object *object, const struct object_parts *found)
{
	if ((asked->attributes & ATTRIBUTE_ETAG) != 0)
		xml_writer_text(xml, "ETag", span_text(object->etag));
	if ((asked->attributes & ATTRIBUTE_CHECKSUM) != 0 &&
		object->checksum.algorithm != CHECKSUM_NONE) {
		xml_writer_open(xml, "Checksum");
		checksum_xml_value(xml, &object->checksum, object->part_count);
		checksum_xml_type(xml, &object->checksum);
		xml_writer_close(xml);
	}
	if ((asked->attributes & ATTRIBUTE_OBJECT_PARTS) != 0 && object->part_count > 0)
		write_parts(xml, asked, object, found);
	if ((asked->attributes & ATTRIBUTE_STORAGE_CLASS) != 0)
		xml_writer_text(
			xml, "StorageClass", span_text(storage_class_name(object->storage_class)));
	if ((asked->attributes & ATTRIBUTE_OBJECT_SIZE) != 0)
		xml_writer_u64(xml, "ObjectSize", object->size);
}

/* Only parts that have a checksum of their own get a <Part>. */
static void write_parts(struct xml_writer *xml, const struct attributes_request *asked,
	const struct object *object, const struct object_parts *found)
{
	ASSERT(found->count <= asked->max_parts && asked->max_parts <= PARTS_MAX);
	xml_writer_open(xml, "ObjectParts");
	xml_writer_u64(xml, "PartsCount", object->part_count);
	xml_writer_u64(xml, "PartNumberMarker", asked->after);
	xml_writer_u64(xml, "NextPartNumberMarker",
		found->count > 0 ? found->parts[found->count - 1].number : asked->after);
	xml_writer_u64(xml, "MaxParts", asked->max_parts);
	xml_writer_bool(xml, "IsTruncated", found->truncated);
	for (size_t i = 0; i < found->count; i++) {
		const struct object_part *const part = &found->parts[i];
		if (part->checksum.algorithm == CHECKSUM_NONE)
			continue;
		xml_writer_open(xml, "Part");
		checksum_xml_value(xml, &part->checksum, 0);
		xml_writer_u64(xml, "PartNumber", part->number);
		xml_writer_u64(xml, "Size", part->size);
		xml_writer_close(xml);
	}
	xml_writer_close(xml);
}
