#include <string.h>

#include "storage/buckets/bucket.h"
#include "wire/bucket_rule.h"

static bool has_foreign_namespace(struct span name, struct span namespace);

bool bucket_name_is_reserved(struct span name)
{
	return bucket_rule_is_reserved(name);
}

bool bucket_name_is_possible(struct span name)
{
	return bucket_rule_broken(name) == NULL;
}

int bucket_check_name(struct span name, struct span namespace, struct error *err)
{
	const int shown = (int)(name.len > 100 ? 100 : name.len);
	const char *const rule = bucket_rule_broken(name);
	if (rule != NULL)
		return error_set(err, ERROR_BAD_NAME, "The bucket name '%.*s' %s.", shown,
			(const char *)name.data, rule);
	if (has_foreign_namespace(name, namespace))
		return error_set(err, ERROR_BAD_NAME,
			"The text before '--' in the bucket name '%.*s' must be the namespace '%.*s'.",
			shown, (const char *)name.data, (int)namespace.len,
			(const char *)namespace.data);
	return 0;
}

/* The text before the first "--" is the namespace under which Hub clients see the bucket. */
static bool has_foreign_namespace(struct span name, struct span namespace)
{
	const uint8_t *const dashes = memmem(name.data, name.len, "--", 2);
	return dashes != NULL &&
		!span_equal(span_of(name.data, (size_t)(dashes - name.data)), namespace);
}
