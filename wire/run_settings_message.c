/* One row of settings_table for each setting; its type chooses how the value is merged and printed.
 * A new setting is a row and a member of struct run_settings, and nothing else here. */
#include "wire/run_settings_message.h"

#include <stddef.h>
#include <string.h>

enum setting_type { SETTING_NUMBER, SETTING_BOOL, SETTING_WORD, SETTING_TEXT, SETTING_TYPES };

struct setting {
	const char *name;
	enum setting_type type;
	size_t offset;             /* in struct run_settings */
	uint64_t fallback;         /* value in a new run; for a word, its place in `words` */
	uint64_t least, most;      /* bounds of a number; for a text, `most` is its bytes */
	const char *const *words;  /* the words of a word, by value; NULL behind the last */
	const char *fallback_text; /* value of a text in a new run */
};

/* ADOPT_HOT_LOAD has the word of ADOPT_NONE. That one comes first, so nobody can set the other. */
static const char *const adopt_words[] = {[ADOPT_NONE] = "",
	[ADOPT_TRL] = "trl",
	[ADOPT_SLIME] = "slime",
	[ADOPT_STITCH] = "stitch",
	[ADOPT_HOT_LOAD] = "",
	[ADOPT_MODELEXPRESS] = "modelexpress",
	[ADOPT_SKYRL] = "skyrl",
	[ADOPT_PULSE] = "pulse",
	NULL};

#define AT(member) offsetof(struct run_settings, member)
static const struct setting settings_table[] = {
	{"keep_steps", SETTING_NUMBER, AT(keep_steps), RUN_KEEP_STEPS_DEFAULT, 0, INT64_MAX, NULL,
		NULL},
	{"lease_s", SETTING_NUMBER, AT(lease_s), RUN_LEASE_S_DEFAULT, 10, 24 * 60 * 60, NULL, NULL},
	{"verify", SETTING_BOOL, AT(verify), true, 0, 0, NULL, NULL},
	{"view_trl", SETTING_BOOL, AT(view_trl), false, 0, 0, NULL, NULL},
	{"view_slime", SETTING_BOOL, AT(view_slime), false, 0, 0, NULL, NULL},
	{"adopt", SETTING_WORD, AT(adopt), ADOPT_NONE, 0, 0, adopt_words, NULL},
	{"adopt_prefix", SETTING_TEXT, AT(adopt_prefix), 0, 0, RUN_PREFIX_MAX_BYTES, NULL,
		"{run}/"},
	{"hot_load", SETTING_TEXT, AT(hot_load), 0, 0, RUN_DEPLOYMENT_MAX_BYTES, NULL, ""},
	{"hot_load_prefix", SETTING_TEXT, AT(hot_load_prefix), 0, 0, RUN_PREFIX_MAX_BYTES, NULL,
		"{run}/"},
	{"webhook", SETTING_TEXT, AT(webhook), 0, 0, RUN_WEBHOOK_MAX_BYTES, NULL, ""},
};
#undef AT
enum { SETTING_COUNT = sizeof(settings_table) / sizeof(settings_table[0]) };

typedef int merge_function(
	const struct setting *setting, const struct json_node *value, void *out, struct error *err);

static void *field(struct run_settings *settings, const struct setting *setting);
static const struct setting *find(struct span name);
static int refuse_unknown(struct span name, struct error *err);
static int merge_number(
	const struct setting *setting, const struct json_node *value, void *out, struct error *err);
static int merge_bool(
	const struct setting *setting, const struct json_node *value, void *out, struct error *err);
static int merge_word(
	const struct setting *setting, const struct json_node *value, void *out, struct error *err);
static int merge_text(
	const struct setting *setting, const struct json_node *value, void *out, struct error *err);
static void print_setting(
	const struct setting *setting, const void *at, struct json_writer *writer);
static const char *word_of(const struct setting *setting, uint64_t place);

static merge_function *const merge_by_type[SETTING_TYPES] = {
	merge_number, merge_bool, merge_word, merge_text};

struct run_settings run_settings_default(void)
{
	struct run_settings settings;
	memset(&settings, 0, sizeof(settings));
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *const setting = &settings_table[i];
		if (setting->type == SETTING_TEXT)
			memcpy(field(&settings, setting), setting->fallback_text,
				strlen(setting->fallback_text));
		else if (setting->type == SETTING_BOOL)
			*(bool *)field(&settings, setting) = setting->fallback != 0;
		else
			*(uint64_t *)field(&settings, setting) = setting->fallback;
	}
	return settings;
}

int run_settings_merge(struct run_settings *settings, const struct json_node *object, bool strict,
	struct error *err)
{
	struct span name;
	const struct json_node *value;
	if (!json_node_is_object(object))
		return error_set(
			err, ERROR_INVALID, "The settings of a run must be a JSON object.");
	for (void *cursor = NULL; json_node_each(object, &cursor, &name, &value);) {
		const struct setting *const setting = find(name);
		if (setting == NULL && strict)
			return refuse_unknown(name, err);
		if (setting != NULL &&
			merge_by_type[setting->type](
				setting, value, field(settings, setting), err) != 0)
			return -1;
	}
	return 0;
}

int run_settings_parse(
	struct run_settings *settings, struct span json, bool strict, struct error *err)
{
	struct json_node *const root = json_node_parse(json, "the settings of the run", err);
	if (root == NULL)
		return -1;
	const int result = run_settings_merge(settings, root, strict, err);
	json_node_free(root);
	return result;
}

void run_settings_print(
	const struct run_settings *settings, const char *name, struct json_writer *writer)
{
	json_writer_object(writer, name);
	for (size_t i = 0; i < SETTING_COUNT; i++)
		print_setting(&settings_table[i], (const char *)settings + settings_table[i].offset,
			writer);
	json_writer_end(writer, '}');
}

size_t run_settings_prefix(
	const char *setting, struct span run, char out[RUN_PREFIX_MAX_BYTES + RUN_PREFIX_MAX_BYTES])
{
	static const char mark[] = "{run}";
	const char *const at = strstr(setting, mark);
	const size_t before = at != NULL ? (size_t)(at - setting) : strlen(setting);
	size_t len = before;
	ASSERT(strlen(setting) <= RUN_PREFIX_MAX_BYTES);
	memcpy(out, setting, before);
	if (at != NULL) {
		const char *const rest = at + strlen(mark);
		/* the name may come from a request that nobody has checked */
		const struct span name = span_slice(run, 0, RUN_PREFIX_MAX_BYTES);
		memcpy(out + len, name.data, name.len);
		len += name.len;
		memcpy(out + len, rest, strlen(rest));
		len += strlen(rest);
	}
	return len;
}

static void *field(struct run_settings *settings, const struct setting *setting)
{
	return (char *)settings + setting->offset;
}

static const struct setting *find(struct span name)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (span_equal_text(name, settings_table[i].name))
			return &settings_table[i];
	return NULL;
}

static int refuse_unknown(struct span name, struct error *err)
{
	struct buffer names;
	buffer_init(&names, RUN_SETTINGS_MAX_BYTES);
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		buffer_add_text(&names, i == 0 ? "" : i + 1 < SETTING_COUNT ? ", " : " and ");
		buffer_add_text(&names, settings_table[i].name);
	}
	error_set(err, ERROR_INVALID, "A run has no setting \"%.*s\"; its settings are %s.",
		(int)span_slice(name, 0, 80).len, (const char *)name.data, buffer_text(&names));
	buffer_release(&names);
	return -1;
}

static int merge_number(
	const struct setting *setting, const struct json_node *value, void *out, struct error *err)
{
	uint64_t number;
	if (!json_node_u64(value, &number) || number < setting->least || number > setting->most)
		return error_set(err, ERROR_INVALID,
			"The setting \"%s\" must be a whole number from %llu to %llu.",
			setting->name, (unsigned long long)setting->least,
			(unsigned long long)setting->most);
	*(uint64_t *)out = number;
	return 0;
}

static int merge_bool(
	const struct setting *setting, const struct json_node *value, void *out, struct error *err)
{
	if (!json_node_bool(value, out))
		return error_set(err, ERROR_INVALID, "The setting \"%s\" must be true or false.",
			setting->name);
	return 0;
}

static int merge_word(
	const struct setting *setting, const struct json_node *value, void *out, struct error *err)
{
	struct span text = {0};
	const bool is_text = json_node_text(value, &text);
	for (size_t i = 0; is_text && setting->words[i] != NULL; i++) {
		if (span_equal_text(text, setting->words[i])) {
			*(uint64_t *)out = i;
			return 0;
		}
	}
	struct buffer words;
	buffer_init(&words, RUN_SETTINGS_MAX_BYTES);
	for (size_t i = 0; setting->words[i] != NULL; i++) {
		if (i > 0 && setting->words[i][0] == '\0')
			continue;
		buffer_add_text(&words, i == 0 ? "\"" : ", \"");
		buffer_add_text(&words, setting->words[i]);
		buffer_add_text(&words, "\"");
	}
	error_set(err, ERROR_INVALID, "The setting \"%s\" must be one of %s.", setting->name,
		buffer_text(&words));
	buffer_release(&words);
	return -1;
}

static int merge_text(
	const struct setting *setting, const struct json_node *value, void *out, struct error *err)
{
	struct span text = {0};
	bool is_good = json_node_text(value, &text) && text.len <= setting->most;
	for (size_t i = 0; is_good && i < text.len; i++)
		is_good = text.data[i] >= ' ' && text.data[i] != 0x7f;
	if (!is_good)
		return error_set(err, ERROR_INVALID,
			"The setting \"%s\" must be a text of at most %llu bytes"
			" without control characters.",
			setting->name, (unsigned long long)setting->most);
	ASSERT(text.len <= setting->most);
	memset(out, 0, setting->most + 1);
	if (text.len > 0)
		memcpy(out, text.data, text.len);
	return 0;
}

static void print_setting(const struct setting *setting, const void *at, struct json_writer *writer)
{
	switch (setting->type) {
	case SETTING_BOOL:
		json_writer_bool(writer, setting->name, *(const bool *)at);
		break;
	case SETTING_WORD:
		json_writer_text(
			writer, setting->name, span_text(word_of(setting, *(const uint64_t *)at)));
		break;
	case SETTING_TEXT:
		json_writer_text(writer, setting->name, span_text(at));
		break;
	default:
		json_writer_u64(writer, setting->name, *(const uint64_t *)at);
		break;
	}
}

static const char *word_of(const struct setting *setting, uint64_t place)
{
	for (uint64_t i = 0; i <= place; i++)
		ASSERT(setting->words[i] != NULL);
	return setting->words[place];
}
