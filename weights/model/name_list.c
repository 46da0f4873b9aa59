#include "weights/model/name_list.h"

#include <stdlib.h>

#include "weights/model/json_scan.h"

static bool scan_names(struct json_scan *scan, struct name_list *list);
static int name_list_order(const void *left, const void *right);

int name_list_parse(struct name_list *list, struct span text, const char *what, struct error *err)
{
	buffer_init(&list->strings, text.len + 1);
	/* a name takes at least three bytes of JSON */
	buffer_init(&list->names, (text.len / 2 + 1) * sizeof(struct span));
	if (text.data == NULL)
		return 0;
	struct json_scan scan;
	json_scan_init(&scan, text);
	if (!span_is_utf8(text) || buffer_reserve(&list->strings, text.len) == NULL ||
		!scan_names(&scan, list))
		return error_set(err, ERROR_INVALID, "%s is not a list of names", what);
	if (name_list_count(list) > 0)
		qsort(list->names.data, name_list_count(list), sizeof(struct span),
			name_list_order);
	return 0;
}

void name_list_release(struct name_list *list)
{
	buffer_release(&list->strings);
	buffer_release(&list->names);
}

size_t name_list_count(const struct name_list *list)
{
	return list->names.len / sizeof(struct span);
}

struct span name_list_at(const struct name_list *list, size_t index)
{
	ASSERT(index < name_list_count(list));
	return ((const struct span *)list->names.data)[index];
}

bool name_list_has(const struct name_list *list, struct span name)
{
	return name_list_count(list) > 0 &&
		bsearch(&name, list->names.data, name_list_count(list), sizeof(struct span),
			name_list_order) != NULL;
}

static bool scan_names(struct json_scan *scan, struct name_list *list)
{
	bool first = true;
	if (!json_scan_expect(scan, '['))
		return false;
	while (json_scan_next(scan, ']', &first)) {
		struct span name;
		if (!json_scan_string(scan, &list->strings, &name))
			return false;
		buffer_add(&list->names, &name, sizeof(name));
	}
	return json_scan_done(scan) && !buffer_failed(&list->names);
}

static int name_list_order(const void *left, const void *right)
{
	return span_compare(*(const struct span *)left, *(const struct span *)right);
}
