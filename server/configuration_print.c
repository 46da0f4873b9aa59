/* Prints the table of settings, as the help text and as a Markdown table. */
#include "server/configuration.h"

#include <string.h>

#include "base/columns.h"
#include "server/setting.h"

enum { HELP_WIDTH = 30, COMMAND_WIDTH = 9, VALUE_MAX_BYTES = 4096 };

static void print_help_line(const struct setting *setting, struct buffer *out);
static void print_left(const struct setting *setting, struct buffer *out);
static const char *value_name(const struct setting *setting);
static void print_range(const struct setting *setting, struct buffer *out);

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
		"  deltabucketd --config /etc/deltabucket.ini\n\n"
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
