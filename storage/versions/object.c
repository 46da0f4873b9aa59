#include "storage/versions/object.h"

#include <string.h>

#include "base/encode.h"

static const char *const storage_classes[STORAGE_CLASSES] = {"STANDARD", "REDUCED_REDUNDANCY",
	"STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER", "DEEP_ARCHIVE", "GLACIER_IR",
	"OUTPOSTS", "SNOW", "EXPRESS_ONEZONE"};

enum { FOREIGN_MIN_BYTES = 20, FOREIGN_MAX_BYTES = 64 };

static bool is_foreign_id(struct span text);
static bool is_url_safe(uint8_t byte);

const char *storage_class_name(enum storage_class class)
{
	return (unsigned)class < STORAGE_CLASSES ? storage_classes[class]
						 : storage_classes[STORAGE_STANDARD];
}

bool storage_class_parse(struct span name, enum storage_class *out)
{
	for (unsigned i = 0; i < STORAGE_CLASSES; i++)
		if (span_equal_text(name, storage_classes[i])) {
			*out = (enum storage_class)i;
			return true;
		}
	return false;
}

bool version_ref_parse(struct span text, struct version_ref *out)
{
	*out = (struct version_ref){.kind = VERSION_REF_NULL};
	if (span_equal_text(text, "null"))
		return true;
	out->kind = VERSION_REF_ID;
	if (decode_hex(text, out->id, sizeof(out->id)))
		return true;
	*out = (struct version_ref){.kind = VERSION_REF_FOREIGN};
	return is_foreign_id(text);
}

void object_version_text(const struct object *object, char out[VERSION_TEXT_BYTES])
{
	if (object->has_id)
		encode_hex(span_of(object->version, VERSION_ID_BYTES), out);
	else
		memcpy(out, "null", sizeof("null"));
}

/* AWS and others give out ids of 20 to 64 characters that a URL need not escape. */
static bool is_foreign_id(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_url_safe(text.data[i]))
			return false;
	return text.len >= FOREIGN_MIN_BYTES && text.len <= FOREIGN_MAX_BYTES;
}

static bool is_url_safe(uint8_t byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' ||
		byte == '~';
}
