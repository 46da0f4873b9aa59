/* Sources are read from the weakest to the strongest: defaults, file, environment, flags. A
 * stronger source replaces the value of a weaker one. The first value of a list from a stronger
 * source replaces the whole list. Each value is checked when it is read, so that an error names its
 * place; rules that concern two settings are checked at the end. For --check-config every fault is
 * noted, with its place, and the reading goes on. */
#include "server/configuration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/near_word.h"
#include "server/configuration_check.h"
#include "server/setting.h"
#include "server/setting_file.h"
#include "server/setting_value.h"

enum { SETTINGS_MAX = 128 };
enum { VALUE_MAX_BYTES = 4096, NEAR_MAX_BYTES = 41, FROM_MAX_BYTES = 128 };
enum { FAULTS_MAX_BYTES = 1024 * 1024 };

struct loading {
	struct configuration *configuration;
	int origin[SETTINGS_MAX];   /* the source of the current value */
	int source;                 /* the source that is being read; rises */
	const char *from;           /* the place that is being read, for messages */
	char *places[SETTINGS_MAX]; /* the `from` of the current value */
	struct error *err;
	struct buffer *faults; /* NULL: the first fault ends the reading */
	bool in_file;
};

static const char PREFIX[] = "DELTABUCKET_";

struct special {
	const char *flag;
	enum configuration_request request;
};
static const struct special specials[] = {{"--help", CONFIGURATION_HELP},
	{"-h", CONFIGURATION_HELP}, {"--version", CONFIGURATION_VERSION},
	{"--print-config-docs", CONFIGURATION_DOCS}, {"--print-config", CONFIGURATION_PRINT},
	{"--check-config", CONFIGURATION_CHECK}};

static bool read_name(const char *variable, struct span *out_name, const char **out_value);
static size_t find_setting(struct span given);
static bool is_setting(const char *name, struct span given);
static char fold(char character);
static bool is_known_otherwise(struct span name);
static void warn_unknown(struct log *log, struct span name);
static void find_near(struct span given, struct near_word *near, char folded[NEAR_MAX_BYTES]);
static void fold_name(struct span given, char folded[NEAR_MAX_BYTES]);
static const char *find_config_file(int count, char *const *arguments, char *const *environment);
static int read_defaults(struct loading *loading);
static int set_value(struct loading *loading, size_t at, const char *value);
static void find_special(
	int count, char *const *arguments, enum configuration_request *out_request);
static bool take_special(const char *argument, enum configuration_request *out_request);
static bool needs_settings(enum configuration_request request);
static int read_asked(struct loading *loading, const char *file, int count, char *const *arguments,
	char *const *environment, enum configuration_request request);
static int read_sources(struct loading *loading, const char *file, int count,
	char *const *arguments, char *const *environment);
static int settle(struct loading *loading, int outcome);
static void configuration_note(void *owner, const struct error *fault);
static int read_file(struct loading *loading, const char *path);
static int configuration_take_line(void *owner, const struct setting_line *line, struct error *err);
static size_t find_below(const char *section, const char *name);
static int refuse_entry(struct loading *loading, const char *section, const char *name);
static void find_near_below(
	const char *heading, const char *name, struct near_word *near, char folded[NEAR_MAX_BYTES]);
static int read_environment(struct loading *loading, char *const *environment);
static int read_flags(struct loading *loading, int count, char *const *arguments);
static int take_flag(struct loading *loading, int count, char *const *arguments, int *at);
static int refuse_word(struct loading *loading, const char *before, const char *argument);
static int refuse_flag(struct loading *loading, struct span name);
static int check(struct loading *loading);
static int check_given(struct loading *loading);
static const char *place_of(const struct loading *loading, const char *name);
static int check_certificate(const struct loading *loading);
static int refuse_half(const struct loading *loading, const char *set, const char *missing);
static int check_file(const struct loading *loading, const char *name, const char *path);

void configuration_warn_unknown(char *const *environment, struct log *log)
{
	struct span name;
	const char *value;
	for (; *environment != NULL; environment++)
		if (read_name(*environment, &name, &value) && find_setting(name) == setting_count &&
			!is_known_otherwise(name))
			warn_unknown(log, name);
}

int configuration_load(struct configuration *configuration, int argument_count,
	char *const *arguments, char *const *environment, enum configuration_request *out_request,
	struct error *err)
{
	ASSERT(setting_count <= SETTINGS_MAX);
	struct loading loading = {.configuration = configuration, .err = err};
	const char *const file = find_config_file(argument_count, arguments, environment);
	memset(configuration, 0, sizeof(*configuration));
	configuration->settings_file = file != NULL ? memory_copy_text(file) : NULL;
	*out_request = CONFIGURATION_RUN;
	int outcome = read_defaults(&loading);
	find_special(argument_count, arguments, out_request);
	if (outcome == 0 && needs_settings(*out_request))
		outcome = read_asked(
			&loading, file, argument_count, arguments, environment, *out_request);
	for (size_t i = 0; i < setting_count; i++)
		free(loading.places[i]);
	return outcome;
}

void configuration_release(struct configuration *configuration)
{
	for (size_t i = 0; i < setting_count; i++)
		setting_value_release(&settings[i], (char *)configuration + settings[i].offset);
	free(configuration->settings_file);
	free(configuration->faults);
	memset(configuration, 0, sizeof(*configuration));
}

/* Gives NAME and value of "DELTABUCKET_NAME=value"; false for other variables. */
static bool read_name(const char *variable, struct span *out_name, const char **out_value)
{
	const char *const equals = strchr(variable, '=');
	if (equals == NULL || strncmp(variable, PREFIX, sizeof(PREFIX) - 1) != 0)
		return false;
	*out_name = span_of(
		variable + sizeof(PREFIX) - 1, (size_t)(equals - variable) - (sizeof(PREFIX) - 1));
	*out_value = equals + 1;
	return true;
}

static size_t find_setting(struct span given)
{
	size_t at = 0;
	while (at < setting_count && !is_setting(settings[at].name, given))
		at++;
	return at;
}

static bool is_setting(const char *name, struct span given)
{
	if (strlen(name) != given.len)
		return false;
	for (size_t i = 0; i < given.len; i++)
		if (fold((char)given.data[i]) != name[i])
			return false;
	return true;
}

/* Flags have '-' for '_', and variables have capitals. */
static char fold(char character)
{
	if (character == '-')
		return '_';
	return character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
}

/* Variables for keys, the client and the commands that the client runs, and those that
 * Kubernetes sets for a service with the name deltabucket. */
static bool is_known_otherwise(struct span name)
{
	static const char *const names[] = {"CONFIG", "ROOT_KEY_ID", "ROOT_SECRET", "ROOT_TOKEN",
		"ENDPOINT", "TOKEN", "CA", "PROFILE", "RUN", "STEP", "LABEL", "DIGEST", "CURRENT",
		"PATH", "PREVIOUS_STEP", "CHANGED", "TENSORS", "PACKS_KEY_ID", "PACKS_SECRET"};
	static const char *const beginnings[] = {"SERVICE_", "PORT"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (span_equal_text(name, names[i]))
			return true;
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (span_starts(name, span_text(beginnings[i])))
			return true;
	return false;
}

static void warn_unknown(struct log *log, struct span name)
{
	struct near_word near;
	struct buffer text;
	char folded[NEAR_MAX_BYTES];
	buffer_init(&text, VALUE_MAX_BYTES);
	find_near(name, &near, folded);
	buffer_format(&text, "%s%.*s is not a setting of this server", PREFIX,
		(int)span_slice(name, 0, 100).len, (const char *)name.data);
	if (near.best != NULL) {
		buffer_format(&text, "; did you mean %s", PREFIX);
		setting_print_upper(near.best, &text);
		buffer_add_byte(&text, '?');
	}
	const struct log_field field = log_span("message", buffer_span(&text));
	log_event(log, LOG_WARNING, NULL, "unknown_variable", &field, 1);
	buffer_release(&text);
}

/* Finds the setting with the most similar name. */
static void find_near(struct span given, struct near_word *near, char folded[NEAR_MAX_BYTES])
{
	fold_name(given, folded);
	near_word_begin(near, span_text(folded));
	for (size_t i = 0; i < setting_count; i++)
		near_word_offer(near, settings[i].name);
}

static void fold_name(struct span given, char folded[NEAR_MAX_BYTES])
{
	const struct span clipped = span_slice(given, 0, NEAR_MAX_BYTES - 1);
	for (size_t i = 0; i < clipped.len; i++)
		folded[i] = fold((char)clipped.data[i]);
	folded[clipped.len] = '\0';
}

static const char *find_config_file(int count, char *const *arguments, char *const *environment)
{
	for (int i = 0; i < count; i++) {
		if (strncmp(arguments[i], "--config=", 9) == 0)
			return arguments[i] + 9;
		if (strcmp(arguments[i], "--config") == 0 && i + 1 < count)
			return arguments[i + 1];
	}
	for (; *environment != NULL; environment++)
		if (strncmp(*environment, "DELTABUCKET_CONFIG=", 19) == 0)
			return *environment + 19;
	return NULL;
}

static int read_defaults(struct loading *loading)
{
	loading->source++;
	loading->from = "default";
	for (size_t i = 0; i < setting_count; i++)
		if (settings[i].standard[0] != '\0' &&
			set_value(loading, i, settings[i].standard) != 0)
			return -1;
	return 0;
}

static int set_value(struct loading *loading, size_t at, const char *value)
{
	ASSERT(at < setting_count);
	const struct setting *const setting = &settings[at];
	void *const field = (char *)loading->configuration + setting->offset;
	if (strlen(value) > VALUE_MAX_BYTES)
		return error_set(loading->err, ERROR_INVALID, "%s: %s is over %d bytes",
			loading->from, setting->name, VALUE_MAX_BYTES);
	if (loading->in_file && setting->type != SETTING_LIST &&
		loading->origin[at] == loading->source)
		return error_set(loading->err, ERROR_INVALID, "%s: %s is set twice", loading->from,
			setting->name);
	if (setting->type == SETTING_LIST && loading->origin[at] != loading->source)
		setting_value_release(setting, field);
	loading->origin[at] = loading->source;
	free(loading->places[at]);
	loading->places[at] = memory_copy_text(loading->from);
	return setting_value_set(setting, field, value, loading->from, loading->err);
}

/* --help counts wherever it stands, else the first. */
static void find_special(int count, char *const *arguments, enum configuration_request *out_request)
{
	enum configuration_request found;
	for (int i = 0; i < count; i++)
		if (take_special(arguments[i], &found) &&
			(found == CONFIGURATION_HELP || *out_request == CONFIGURATION_RUN))
			*out_request = found;
}

static bool take_special(const char *argument, enum configuration_request *out_request)
{
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
		if (strcmp(argument, specials[i].flag) == 0) {
			*out_request = specials[i].request;
			return true;
		}
	return false;
}

static bool needs_settings(enum configuration_request request)
{
	return request == CONFIGURATION_RUN || request == CONFIGURATION_PRINT ||
		request == CONFIGURATION_CHECK;
}

static int read_asked(struct loading *loading, const char *file, int count, char *const *arguments,
	char *const *environment, enum configuration_request request)
{
	struct buffer faults;
	int outcome;
	buffer_init(&faults, FAULTS_MAX_BYTES);
	loading->faults = request == CONFIGURATION_CHECK ? &faults : NULL;
	outcome = read_sources(loading, file, count, arguments, environment);
	if (outcome == 0 && request != CONFIGURATION_PRINT)
		outcome = check(loading);
	if (outcome == 0 && request == CONFIGURATION_CHECK)
		outcome = check_given(loading);
	if (loading->faults != NULL)
		loading->configuration->faults = memory_copy_text(buffer_text(&faults));
	buffer_release(&faults);
	return outcome;
}

static int read_sources(struct loading *loading, const char *file, int count,
	char *const *arguments, char *const *environment)
{
	if (file != NULL && settle(loading, read_file(loading, file)) != 0)
		return -1;
	if (read_environment(loading, environment) != 0)
		return -1;
	return read_flags(loading, count, arguments);
}

/* Notes a failure, if faults are noted, and gives 0 then. */
static int settle(struct loading *loading, int outcome)
{
	if (outcome == 0 || loading->faults == NULL)
		return outcome;
	configuration_note(loading, loading->err);
	*loading->err = (struct error){0};
	return 0;
}

static void configuration_note(void *owner, const struct error *fault)
{
	const struct loading *const loading = owner;
	buffer_format(loading->faults, "%s\n", fault->text);
}

static int read_file(struct loading *loading, const char *path)
{
	const struct setting_taker taker = {.take = configuration_take_line,
		.note = loading->faults != NULL ? configuration_note : NULL,
		.owner = loading};
	loading->source++;
	loading->in_file = true;
	const int outcome = setting_file_read(path, &taker, loading->err);
	loading->in_file = false;
	return outcome;
}

static int configuration_take_line(void *owner, const struct setting_line *line, struct error *err)
{
	struct loading *const loading = owner;
	(void)err; /* the same as loading->err */
	const size_t at = find_below(line->heading, line->name);
	loading->from = line->from;
	if (at == setting_count)
		return refuse_entry(loading, line->heading, line->name);
	return set_value(loading, at, line->value);
}

/* "interval" below [gc] is gc_interval. A full name of a setting means that setting below any
 * heading. */
static size_t find_below(const char *section, const char *name)
{
	struct buffer both;
	const size_t whole = find_setting(span_text(name));
	if (whole < setting_count || section[0] == '\0')
		return whole;
	buffer_init(&both, VALUE_MAX_BYTES);
	buffer_format(&both, "%s_%s", section, name);
	const size_t at = find_setting(buffer_span(&both));
	buffer_release(&both);
	return at;
}

static int refuse_entry(struct loading *loading, const char *section, const char *name)
{
	struct near_word near;
	char hint[NEAR_WORD_HINT_BYTES];
	char folded[NEAR_MAX_BYTES];
	find_near_below(section, name, &near, folded);
	return error_set(loading->err, ERROR_INVALID,
		"%s: there is no setting '%.100s'%s%.100s%s%s", loading->from, name,
		section[0] != '\0' ? " below [" : "", section, section[0] != '\0' ? "]" : "",
		near_word_hint(&near, hint));
}

/* Finds the most similar name that may stand below the heading: a full name, or the rest of a name
 * that begins with the heading. */
static void find_near_below(
	const char *heading, const char *name, struct near_word *near, char folded[NEAR_MAX_BYTES])
{
	char begin[NEAR_MAX_BYTES];
	fold_name(span_text(heading), begin);
	find_near(span_text(name), near, folded);
	const size_t len = strlen(begin);
	for (size_t i = 0; len > 0 && i < setting_count; i++)
		if (strncmp(settings[i].name, begin, len) == 0 && settings[i].name[len] == '_')
			near_word_offer(near, settings[i].name + len + 1);
}

/* Ignores variables that are not settings; configuration_warn_unknown warns about them. */
static int read_environment(struct loading *loading, char *const *environment)
{
	struct span name;
	const char *value;
	char from[FROM_MAX_BYTES];
	loading->source++;
	for (; *environment != NULL; environment++) {
		const size_t at =
			read_name(*environment, &name, &value) ? find_setting(name) : setting_count;
		if (at == setting_count)
			continue;
		snprintf(from, sizeof(from), "environment, %s%.*s", PREFIX, (int)name.len,
			(const char *)name.data);
		loading->from = from;
		if (settle(loading, set_value(loading, at, value)) != 0)
			return -1;
	}
	return 0;
}

static int read_flags(struct loading *loading, int count, char *const *arguments)
{
	enum configuration_request known;
	loading->source++;
	for (int i = 0; i < count; i++)
		if (!take_special(arguments[i], &known) &&
			settle(loading, take_flag(loading, count, arguments, &i)) != 0)
			return -1;
	return 0;
}

/* Takes the flag at arguments[*at], and moves *at to its value if that is a word of its own.
 * Ignores `config`, which was read before all sources. */
static int take_flag(struct loading *loading, int count, char *const *arguments, int *at)
{
	const char *const argument = arguments[*at];
	if (strncmp(argument, "--", 2) != 0)
		return refuse_word(loading, *at > 0 ? arguments[*at - 1] : "", argument);
	const char *const equals = strchr(argument, '=');
	const struct span name = span_of(argument + 2,
		equals != NULL ? (size_t)(equals - argument - 2) : strlen(argument) - 2);
	const bool is_config = span_equal_text(name, "config");
	const size_t found = find_setting(name);
	if (found == setting_count && !is_config)
		return refuse_flag(loading, name);
	const char *value = equals != NULL ? equals + 1 : "yes";
	if (equals == NULL && (is_config || settings[found].type != SETTING_FLAG)) {
		if (++*at >= count)
			return error_set(loading->err, ERROR_INVALID, "--%.*s needs a value",
				(int)name.len, (const char *)name.data);
		value = arguments[*at];
	}
	loading->from = "command line";
	return is_config ? 0 : set_value(loading, found, value);
}

/* A switch has no value in the next word, so `--switch no` is refused with the right form. */
static int refuse_word(struct loading *loading, const char *before, const char *argument)
{
	const size_t at =
		strncmp(before, "--", 2) == 0 ? find_setting(span_text(before + 2)) : setting_count;
	if (at < setting_count && settings[at].type == SETTING_FLAG)
		return error_set(loading->err, ERROR_INVALID,
			"'%s' is neither a flag nor a command; write %s=yes or %s=no", argument,
			before, before);
	enum configuration_request request;
	if (take_special(before, &request) && needs_settings(request))
		return error_set(loading->err, ERROR_INVALID,
			"'%s' is neither a flag nor a command; write %s --config %s", argument,
			before, argument);
	struct near_word near;
	char hint[NEAR_WORD_HINT_BYTES];
	static const char *const commands[] = {"keys", "gc", "scrub", "set-aside", "rebuild",
		"fsck", "backup", "restore", "console", "help", "version"};
	near_word_begin(&near, span_text(argument));
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		near_word_offer(&near, commands[i]);
	return error_set(loading->err, ERROR_INVALID, "'%s' is neither a flag nor a command%s",
		argument,
		near.best != NULL ? near_word_hint(&near, hint) : "; see deltabucketd --help");
}

static int refuse_flag(struct loading *loading, struct span name)
{
	struct near_word near;
	struct buffer flag;
	char folded[NEAR_MAX_BYTES];
	buffer_init(&flag, VALUE_MAX_BYTES);
	find_near(name, &near, folded);
	for (size_t i = 0; near.best != NULL && i < setting_count; i++)
		if (settings[i].name == near.best)
			setting_print_flag(&settings[i], &flag);
	error_set(loading->err, ERROR_INVALID, "there is no flag --%.*s; %s%s%s",
		(int)span_slice(name, 0, 100).len, (const char *)name.data,
		flag.len > 0 ? "did you mean " : "see deltabucketd --help", buffer_text(&flag),
		flag.len > 0 ? "?" : "");
	buffer_release(&flag);
	return -1;
}

static int check(struct loading *loading)
{
	int outcome = 0;
	if (loading->configuration->data == NULL)
		outcome = settle(loading,
			error_set(loading->err, ERROR_INVALID,
				"--data DIR is needed: the folder that holds everything"));
	if (outcome == 0 && loading->configuration->listen.count == 0)
		outcome = settle(loading,
			error_set(loading->err, ERROR_INVALID,
				"%s: listen needs at least one address",
				place_of(loading, "listen")));
	return outcome == 0 ? settle(loading, check_certificate(loading)) : -1;
}

/* What settings name. A start would find the same faults, one by one. */
static int check_given(struct loading *loading)
{
	int outcome = 0;
	for (size_t i = 0; outcome == 0 && i < configuration_check_count; i++) {
		const struct configuration_check *const each = &configuration_checks[i];
		if (each->run(loading->configuration, loading->err) != 0)
			outcome = settle(loading,
				error_wrap(loading->err, "%s: %s", place_of(loading, each->setting),
					each->setting));
	}
	return outcome;
}

static const char *place_of(const struct loading *loading, const char *name)
{
	const size_t at = find_setting(span_text(name));
	ASSERT(at < setting_count);
	return loading->places[at];
}

static int check_certificate(const struct loading *loading)
{
	const char *const cert = loading->configuration->tls_cert;
	const char *const key = loading->configuration->tls_key;
	if (cert == NULL && key == NULL)
		return 0;
	if (cert == NULL || key == NULL)
		return refuse_half(loading, cert != NULL ? "tls_cert" : "tls_key",
			cert != NULL ? "tls_key" : "tls_cert");
	if (loading->configuration->http)
		return error_set(loading->err, ERROR_INVALID,
			"%s: http and tls_cert (%s) exclude each other", place_of(loading, "http"),
			place_of(loading, "tls_cert"));
	if (check_file(loading, "tls_cert", cert) != 0)
		return -1;
	return check_file(loading, "tls_key", key);
}

static int refuse_half(const struct loading *loading, const char *set, const char *missing)
{
	return error_set(loading->err, ERROR_INVALID,
		"%s: %s is set and %s is not; they must be set together", place_of(loading, set),
		set, missing);
}

/* Checked here, because the start would find the fault late and without the place of the
 * setting. */
static int check_file(const struct loading *loading, const char *name, const char *path)
{
	if (access(path, R_OK) == 0)
		return 0;
	error_set_errno(loading->err,
		"%s: %s must be a file that the server can read, and %s is not",
		place_of(loading, name), name, path);
	loading->err->kind = ERROR_INVALID;
	return -1;
}
