/* A number may have another unit than that of its setting. Texts and the items of lists are checked
 * by setting_rule.h. */
#include "server/setting_value.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/quantity.h"
#include "server/setting_rule.h"

enum { LIST_MAX = 64 };

/* Units of settings whose values may have another unit. */
static const struct scale {
	const char *unit;
	enum quantity_kind kind;
	uint64_t size;
	const char *example;
} scales[] = {
	{"bytes", QUANTITY_BYTES, 1, "5GiB"},
	{"KiB", QUANTITY_BYTES, UINT64_C(1) << 10, "1MiB"},
	{"MiB", QUANTITY_BYTES, UINT64_C(1) << 20, "2GiB"},
	{"MiB/s", QUANTITY_BYTES, UINT64_C(1) << 20, "1GiB/s"},
	{"GiB", QUANTITY_BYTES, UINT64_C(1) << 30, "1TiB"},
	{"seconds", QUANTITY_SECONDS, 1, "30s or 10min"},
	{"hours", QUANTITY_SECONDS, 3600, "7d"},
};

static int set_number(const struct setting *setting, uint64_t *field, const char *value,
	const char *from, struct error *err);
static const struct scale *find_scale(const struct setting *setting);
static bool read_number(const struct scale *scale, const char *value, uint64_t *out);
static int set_flag(const struct setting *setting, bool *field, const char *value, const char *from,
	struct error *err);
static int set_list(const struct setting *setting, struct configuration_list *list,
	const char *value, const char *from, struct error *err);
static int list_add(
	struct configuration_list *list, struct span item, const char *name, struct error *err);
static int check_word(
	const struct setting *setting, const char *value, const char *from, struct error *err);
static int set_text(const struct setting *setting, char **text, const char *value, const char *from,
	struct error *err);

int setting_value_set(const struct setting *setting, void *field, const char *value,
	const char *from, struct error *err)
{
	if (setting->type == SETTING_NUMBER)
		return set_number(setting, field, value, from, err);
	if (setting->type == SETTING_FLAG)
		return set_flag(setting, field, value, from, err);
	if (setting->type == SETTING_LIST)
		return set_list(setting, field, value, from, err);
	return set_text(setting, field, value, from, err);
}

void setting_value_release(const struct setting *setting, void *field)
{
	struct configuration_list *const list = field;
	if (setting->type == SETTING_TEXT) {
		free(*(char **)field);
		*(char **)field = NULL;
	}
	if (setting->type != SETTING_LIST)
		return;
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct configuration_list){NULL, 0};
}

static int set_number(const struct setting *setting, uint64_t *field, const char *value,
	const char *from, struct error *err)
{
	const struct scale *const scale = find_scale(setting);
	uint64_t number;
	ASSERT(setting->least <= setting->most);
	if (!read_number(scale, value, &number) || number < setting->least ||
		number > setting->most)
		return error_set(err, ERROR_INVALID,
			"%s: %s must be a number of %s from %llu to %llu%s%s, not '%s'", from,
			setting->name, setting->unit, (unsigned long long)setting->least,
			(unsigned long long)setting->most,
			scale != NULL ? ", or with a unit like " : "",
			scale != NULL ? scale->example : "", value);
	*field = number;
	return 0;
}

/* NULL: the value is a number without a unit. */
static const struct scale *find_scale(const struct setting *setting)
{
	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++)
		if (strcmp(scales[i].unit, setting->unit) == 0)
			return &scales[i];
	return NULL;
}

/* For a rate, "32MiB/s" is the same as "32MiB". */
static bool read_number(const struct scale *scale, const char *value, uint64_t *out)
{
	struct span text = span_trim(span_text(value));
	if (scale == NULL)
		return span_parse_u64(text, out);
	if (span_ends_text(span_text(scale->unit), "/s") && span_ends_text(text, "/s"))
		text = span_slice(text, 0, text.len - 2);
	return quantity_parse(text, scale->kind, scale->size, out);
}

static int set_flag(const struct setting *setting, bool *field, const char *value, const char *from,
	struct error *err)
{
	static const struct {
		const char *word;
		bool meaning;
	} words[] = {{"1", true}, {"true", true}, {"yes", true}, {"on", true}, {"0", false},
		{"false", false}, {"no", false}, {"off", false}};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (span_equal_nocase(span_text(value), words[i].word)) {
			*field = words[i].meaning;
			return 0;
		}
	return error_set(err, ERROR_INVALID, "%s: %s must be yes or no, not '%s'", from,
		setting->name, value);
}

static int set_list(const struct setting *setting, struct configuration_list *list,
	const char *value, const char *from, struct error *err)
{
	struct span rest = span_text(value);
	struct span item;
	while (span_split(&rest, ',', &item)) {
		item = span_trim(item);
		if (item.len > 0 &&
			(list_add(list, item, setting->name, err) != 0 ||
				check_word(setting, list->items[list->count - 1], from, err) != 0))
			return -1;
	}
	return 0;
}

static int list_add(
	struct configuration_list *list, struct span item, const char *name, struct error *err)
{
	if (list->count == LIST_MAX)
		return error_set(err, ERROR_INVALID, "%s has over %d values", name, LIST_MAX);
	list->items = memory_grow(list->items, list->count + 1, sizeof(*list->items));
	char *const text = memory_new(item.len + 1);
	memcpy(text, item.data, item.len);
	list->items[list->count++] = text;
	return 0;
}

static int check_word(
	const struct setting *setting, const char *value, const char *from, struct error *err)
{
	return setting_rule_check(setting->name, value, err) == 0 ? 0 : error_wrap(err, "%s", from);
}

static int set_text(const struct setting *setting, char **text, const char *value, const char *from,
	struct error *err)
{
	free(*text);
	*text = value[0] == '\0' ? NULL : memory_copy_text(value);
	return check_word(setting, value, from, err);
}
