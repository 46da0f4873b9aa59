/* Prints the table of settings: as the help text, as a Markdown table, and as a file for
 * --config. */
#include "server/configuration.h"

#include <string.h>

#include "base/columns.h"
#include "server/setting.h"

enum { COMMENT_BYTES = 80 };
enum { HELP_WIDTH = 30, COMMAND_WIDTH = 9, VALUE_MAX_BYTES = 4096, VALUES_MAX_BYTES = 512 * 1024 };

static void print_help_line(const struct setting *setting, struct buffer *out);
static void print_left(const struct setting *setting, struct buffer *out);
static const char *value_name(const struct setting *setting);
static void print_range(const struct setting *setting, struct buffer *out);
static void print_entry(const struct configuration *configuration, const struct setting *setting,
	struct buffer *out);
static void print_quoted(const char *text, struct buffer *out);
static void print_meaning(const struct setting *setting, struct buffer *out);
static void print_comment(const char *text, struct buffer *out);
static void print_value(const struct configuration *configuration, const struct setting *setting,
	struct buffer *out);
static void print_list(const struct configuration_list *list, struct buffer *out);
static const char *standard_of(const struct setting *setting);

void configuration_print_help(struct buffer *out)
{
	buffer_add_text(out,
		"usage: deltabucketd --data DIR [FLAGS]     serve the folder DIR\n"
		"       deltabucketd COMMAND [FLAGS]        one of the commands below\n\n");
	columns_add(out, "keys", COMMAND_WIDTH, "add, list or revoke keys");
	columns_add(out, "gc", COMMAND_WIDTH, "free the space that nothing needs any more");
	columns_add(out, "scrub", COMMAND_WIDTH,
		"verify all stored bytes on the disk, and heal what has another copy");
	columns_add(out, "set-aside", COMMAND_WIDTH,
		"list or drop the files that a start has set aside");
	columns_add(
		out, "fsck", COMMAND_WIDTH, "check the whole store, and repair it without loss");
	columns_add(out, "rebuild", COMMAND_WIDTH, "make a lost catalog again from the journal");
	columns_add(out, "backup", COMMAND_WIDTH, "ship the store to a folder or a bucket");
	columns_add(out, "restore", COMMAND_WIDTH, "make a data folder from a backup");
	columns_add(out, "console", COMMAND_WIDTH, "print a link that signs in to the console");
	columns_add(out, "help", COMMAND_WIDTH,
		"this text; `deltabucketd help COMMAND`: the flags of a command");
	columns_add(out, "version", COMMAND_WIDTH, "print the version");
	buffer_add_text(out,
		"\nexamples:\n"
		"  deltabucketd --data ./data\n"
		"  deltabucketd --data /srv/deltabucket --listen 0.0.0.0:9000 --tls-name bucket.example\n"
		"  deltabucketd --config /etc/deltabucket/deltabucketd.conf\n"
		"  deltabucketd --check-config --config /etc/deltabucket/deltabucketd.conf\n\n"
		"Each setting is a flag, a key in the INI file, or an environment variable DELTABUCKET_NAME. Flags win over\n"
		"the environment, and the environment over the file. Switches are turned off with =no. Sizes and times may\n"
		"have a unit: 5GiB, 10min.\n\nflags:\n");
	columns_add(out, "--config FILE", HELP_WIDTH,
		"INI file with lines name = value, headings, and comments after # or ; "
		"(DELTABUCKET_CONFIG)");
	for (size_t i = 0; i < setting_count; i++)
		print_help_line(&settings[i], out);
	columns_add(out, "--help, -h", HELP_WIDTH, "this text");
	columns_add(out, "--version", HELP_WIDTH, "print the version");
	columns_add(out, "--check-config", HELP_WIDTH,
		"start nothing; name each wrong line and each file that a start would refuse");
	columns_add(out, "--print-config", HELP_WIDTH,
		"the settings as a file for --config, with the meaning of each");
	columns_add(out, "--print-config-docs", HELP_WIDTH, "the settings as a Markdown table");
}

void configuration_print_docs(struct buffer *out)
{
	buffer_add_text(out,
		"| setting | flag | environment | default | values | meaning |\n|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < setting_count; i++) {
		buffer_format(out, "| `%s` | `", settings[i].name);
		setting_print_flag(&settings[i], out);
		buffer_add_text(out, "` | `DELTABUCKET_");
		setting_print_upper(settings[i].name, out);
		const char *const quote = settings[i].standard[0] != '\0' ? "`" : "";
		buffer_format(out, "` | %s%s%s | ", quote, settings[i].standard, quote);
		print_range(&settings[i], out);
		buffer_format(out, " | %s |\n", settings[i].help);
	}
}

void configuration_print_file(const struct configuration *configuration, struct buffer *out)
{
	buffer_add_text(out,
		"# Settings of deltabucketd (deltabucketd.conf(5)).\n"
		"#\n"
		"# A line such as `#name = value` shows a default: take the # away to change it. After a\n"
		"# change, `deltabucketd --check-config --config FILE` names each wrong line. A variable\n"
		"# DELTABUCKET_NAME of the environment wins over the file, and a flag over both.\n");
	for (size_t i = 0; i < setting_count; i++)
		print_entry(configuration, &settings[i], out);
}

static void print_help_line(const struct setting *setting, struct buffer *out)
{
	struct buffer left;
	struct buffer right;
	buffer_init(&left, VALUE_MAX_BYTES);
	buffer_init(&right, VALUE_MAX_BYTES);
	print_left(setting, &left);
	buffer_add_text(&right, setting->help);
	if (setting->type == SETTING_NUMBER) {
		buffer_add_text(&right, " (");
		print_range(setting, &right);
		buffer_add_byte(&right, ')');
	}
	if (setting->standard[0] != '\0')
		buffer_format(&right, "; default %s", setting->standard);
	columns_add(out, buffer_text(&left), HELP_WIDTH, buffer_text(&right));
	buffer_release(&left);
	buffer_release(&right);
}

static void print_left(const struct setting *setting, struct buffer *out)
{
	setting_print_flag(setting, out);
	if (setting->type == SETTING_FLAG)
		buffer_add_text(out, "[=no]");
	else
		buffer_format(out, " %s", value_name(setting));
}

static const char *value_name(const struct setting *setting)
{
	if (setting->type == SETTING_NUMBER)
		return "N";
	return setting->unit[0] != '\0' ? setting->unit : "TEXT";
}

static void print_range(const struct setting *setting, struct buffer *out)
{
	if (setting->type == SETTING_NUMBER)
		buffer_format(out, "%llu to %llu %s", (unsigned long long)setting->least,
			(unsigned long long)setting->most, setting->unit);
	else
		buffer_add_text(out, setting->type == SETTING_FLAG ? "yes or no" : setting->unit);
}

static void print_entry(const struct configuration *configuration, const struct setting *setting,
	struct buffer *out)
{
	struct buffer value;
	buffer_init(&value, VALUES_MAX_BYTES);
	print_value(configuration, setting, &value);
	const char *const text = buffer_text(&value);
	const bool is_standard = strcmp(text, standard_of(setting)) == 0;
	buffer_add_byte(out, '\n');
	print_meaning(setting, out);
	buffer_format(
		out, "%s%s =%s", is_standard ? "#" : "", setting->name, text[0] != '\0' ? " " : "");
	print_quoted(text, out);
	buffer_add_byte(out, '\n');
	buffer_release(&value);
}

/* As setting_file.h reads it: with quotation marks where they are needed, and those of the same
 * kind doubled. */
static void print_quoted(const char *text, struct buffer *out)
{
	const struct span value = span_text(text);
	const bool has_blanks = span_trim(value).len < value.len;
	const char quote = strchr(text, '"') != NULL && strchr(text, '\'') == NULL ? '\'' : '"';
	if (!has_blanks && strpbrk(text, "#;\"'") == NULL) {
		buffer_add_text(out, text);
		return;
	}
	buffer_add_byte(out, (uint8_t)quote);
	for (; *text != '\0'; text++) {
		buffer_add_byte(out, (uint8_t)*text);
		if (*text == quote)
			buffer_add_byte(out, (uint8_t)quote);
	}
	buffer_add_byte(out, (uint8_t)quote);
}

static void print_meaning(const struct setting *setting, struct buffer *out)
{
	struct buffer text;
	buffer_init(&text, VALUE_MAX_BYTES);
	buffer_add_text(&text, setting->help);
	if (setting->type == SETTING_NUMBER || setting->type == SETTING_FLAG) {
		buffer_add_text(&text, " (");
		print_range(setting, &text);
		buffer_add_byte(&text, ')');
	}
	print_comment(buffer_text(&text), out);
	buffer_release(&text);
}

static void print_comment(const char *text, struct buffer *out)
{
	struct span rest = span_text(text);
	struct span word;
	size_t at = 0;
	while (span_split(&rest, ' ', &word)) {
		if (at > 0 && at + 1 + word.len > COMMENT_BYTES) {
			buffer_add_byte(out, '\n');
			at = 0;
		}
		buffer_format(out, "%s%.*s", at == 0 ? "# " : " ", (int)word.len,
			(const char *)word.data);
		at += (at == 0 ? 2 : 1) + word.len;
	}
	buffer_add_byte(out, '\n');
}

/* In the form in which the file has it; a number in the unit of its setting. */
static void print_value(const struct configuration *configuration, const struct setting *setting,
	struct buffer *out)
{
	const void *const field = (const char *)configuration + setting->offset;
	if (setting->type == SETTING_NUMBER)
		buffer_format(out, "%llu", (unsigned long long)*(const uint64_t *)field);
	else if (setting->type == SETTING_FLAG)
		buffer_add_text(out, *(const bool *)field ? "yes" : "no");
	else if (setting->type == SETTING_LIST)
		print_list(field, out);
	else if (*(char *const *)field != NULL)
		buffer_add_text(out, *(char *const *)field);
}

static void print_list(const struct configuration_list *list, struct buffer *out)
{
	for (size_t i = 0; i < list->count; i++)
		buffer_format(out, "%s%s", i > 0 ? ", " : "", list->items[i]);
}

static const char *standard_of(const struct setting *setting)
{
	const bool is_off = setting->type == SETTING_FLAG && setting->standard[0] == '\0';
	return is_off ? "no" : setting->standard;
}
