#include "wire/run_settings_message.h"

#include <stddef.h>
#include <string.h>

enum setting_type { SETTING_NUMBER, SETTING_BOOL };

struct setting {
	const char *name;
	enum setting_type type;
	size_t offset;       /* in struct run_settings */
	uint64_t fallback;   /* of a new run */
	uint64_t least, most; /* of a number */
};

static const struct setting settings_table[] = {
	{"keep_steps", SETTING_NUMBER, offsetof(struct run_settings, keep_steps), RUN_KEEP_STEPS_DEFAULT, 0, INT64_MAX},
	{"lease_s", SETTING_NUMBER, offsetof(struct run_settings, lease_s), RUN_LEASE_S_DEFAULT, 10, 24 * 60 * 60},
	{"verify", SETTING_BOOL, offsetof(struct run_settings, verify), true, 0, 0},
};
enum { SETTING_COUNT = sizeof(settings_table) / sizeof(settings_table[0]) };

static void *field(struct run_settings *const settings, const struct setting *const setting)
{
	return (char *)settings + setting->offset;
}

struct run_settings run_settings_default(void)
{
	struct run_settings settings;
	memset(&settings, 0, sizeof(settings));
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		if (settings_table[i].type == SETTING_NUMBER)
			*(uint64_t *)field(&settings, &settings_table[i]) = settings_table[i].fallback;
		else
			*(bool *)field(&settings, &settings_table[i]) = settings_table[i].fallback != 0;
	}
	return settings;
}

static int merge_number(const struct setting *const setting, const struct json_node *const value, uint64_t *const out, struct error *const err)
{
	uint64_t number;
	if (!json_node_u64(value, &number) || number < setting->least || number > setting->most)
		return error_set(err, ERROR_INVALID, "The setting \"%s\" must be a whole number from %llu to %llu.", setting->name,
			(unsigned long long)setting->least, (unsigned long long)setting->most);
	*out = number;
	return 0;
}

static int merge_bool(const struct setting *const setting, const struct json_node *const value, bool *const out, struct error *const err)
{
	if (!json_node_bool(value, out))
		return error_set(err, ERROR_INVALID, "The setting \"%s\" must be true or false.", setting->name);
	return 0;
}

static const struct setting *find(const struct span name)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (span_equal_text(name, settings_table[i].name))
			return &settings_table[i];
	return NULL;
}

static int refuse(const struct span name, struct error *const err)
{
	struct buffer names;
	buffer_init(&names, RUN_SETTINGS_MAX_BYTES);
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		buffer_add_text(&names, i == 0 ? "" : i + 1 < SETTING_COUNT ? ", " : " and ");
		buffer_add_text(&names, settings_table[i].name);
	}
	error_set(err, ERROR_INVALID, "A run has no setting \"%.*s\"; there are %s.", (int)span_slice(name, 0, 80).len,
		(const char *)name.data, buffer_text(&names));
	buffer_release(&names);
	return -1;
}

int run_settings_merge(struct run_settings *const settings, const struct json_node *const object, const bool strict, struct error *const err)
{
	struct span name;
	const struct json_node *value;
	if (!json_node_is_object(object))
		return error_set(err, ERROR_INVALID, "The settings of a run must be a JSON object.");
	for (void *cursor = NULL; json_node_each(object, &cursor, &name, &value);) {
		const struct setting *const setting = find(name);
		int result = 0;
		if (setting == NULL)
			result = strict ? refuse(name, err) : 0;
		else if (setting->type == SETTING_NUMBER)
			result = merge_number(setting, value, field(settings, setting), err);
		else
			result = merge_bool(setting, value, field(settings, setting), err);
		if (result != 0)
			return -1;
	}
	return 0;
}

int run_settings_parse(struct run_settings *const settings, const struct span json, const bool strict, struct error *const err)
{
	struct json_node *const root = json_node_parse(json, "the settings of the run", err);
	if (root == NULL)
		return -1;
	const int result = run_settings_merge(settings, root, strict, err);
	json_node_free(root);
	return result;
}

void run_settings_print(const struct run_settings *const settings, const char *const name, struct json_writer *const writer)
{
	json_writer_object(writer, name);
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const char *const at = (const char *)settings + settings_table[i].offset;
		if (settings_table[i].type == SETTING_NUMBER)
			json_writer_u64(writer, settings_table[i].name, *(const uint64_t *)at);
		else
			json_writer_bool(writer, settings_table[i].name, *(const bool *)at);
	}
	json_writer_end(writer, '}');
}
