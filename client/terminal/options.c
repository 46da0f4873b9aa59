/* ROWS is the table of flags. A row says which commands take the flag, where in struct options its
 * value goes and which range it has; so one parser and one help printer serve all commands. A name
 * may have several rows: the command decides which one applies. The parser makes one pass and
 * borrows the words. The config file is read last, because only then is it known what it must
 * supply and whether its endpoint is the one in use. */
#include "client/terminal/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/near_word.h"
#include "base/quantity.h"
#include "client/terminal/profile.h"

enum option_kind {
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_NUMBER,
	OPTION_DURATION,
	OPTION_LIST,
	OPTION_PATHS
};

struct option_row {
	const char *name;
	enum option_kind kind;
	int commands; /* of enum command_bit */
	size_t offset;
	const char *value; /* the name of the value in the help; NULL for OPTION_FLAG */
	uint64_t least, most;
	const char *help;
};

#define AT(member) offsetof(struct options, member)
static const struct option_row ROWS[] = {
	{"--run", OPTION_TEXT, COMMAND_PUBLISH | COMMAND_FOLLOW, AT(run), "BUCKET/RUN", 0, 0,
		"the run"},
	{"--into", OPTION_TEXT, COMMAND_FOLLOW, AT(into), "DIR", 0, 0,
		"folder to keep the weights in; DIR/current is the newest whole checkpoint"},
	{"--into", OPTION_TEXT, COMMAND_DOCTOR, AT(into), "DIR", 0, 0,
		"look at the room in this folder too"},
	{"--state", OPTION_TEXT, COMMAND_DOCTOR, AT(state), "DIR", 0, 0,
		"the folder that publish is given as --state"},
	{"--exec", OPTION_TEXT, COMMAND_FOLLOW, AT(exec), "CMD", 0, 0,
		"shell command to run after each swap"},
	{"--replica", OPTION_TEXT, COMMAND_FOLLOW, AT(replica), "ID", 0, 0,
		"the name of this worker in `replicas` (the host's name and a hash of DIR)"},
	{"--tensors", OPTION_TEXT, COMMAND_FOLLOW, AT(glob), "GLOB", 0, 0,
		"keep only the tensors whose names match, like 'model.layers.[0-9].*'"},
	{"--rank", OPTION_TEXT, COMMAND_FOLLOW, AT(rank), "I/N", 0, 0,
		"keep only the I-th of N shares of the tensors (from 0)"},
	{"--rank", OPTION_TEXT, COMMAND_PUBLISH, AT(rank), "I/N", 0, 0,
		"this is rank I (from 0) of N that publish one step together"},
	{"--epoch", OPTION_NUMBER, COMMAND_PUBLISH, AT(epoch), "N", 0, UINT32_MAX,
		"with --rank: the epoch that rank 0 opened"},
	{"--once", OPTION_FLAG, COMMAND_FOLLOW, AT(once), NULL, 0, 0,
		"download the newest step, then end"},
	{"--once", OPTION_FLAG, COMMAND_WATCH, AT(once), NULL, 0, 0, "print one picture, then end"},
	{"--step", OPTION_NUMBER, COMMAND_PUBLISH, AT(step), "N", 0, UINT32_MAX,
		"refuse unless this is the next step"},
	{"--step", OPTION_NUMBER, COMMAND_FOLLOW, AT(step), "N", 0, UINT32_MAX,
		"download this step, then end"},
	{"--step", OPTION_NUMBER, COMMAND_DIFF | COMMAND_FOLD | COMMAND_TRANSCODE, AT(step), "N", 0,
		UINT32_MAX, "the step number that the delta states"},
	{"--wait", OPTION_DURATION, COMMAND_FOLLOW, AT(wait), "TIME", 0, 86400,
		"with --once: how long to wait for a step to appear (0)"},
	{"--wait", OPTION_DURATION, COMMAND_PUBLISH, AT(wait), "TIME", 0, 86400,
		"with --rank: how long to wait for the other ranks (3600)"},
	{"--poll", OPTION_DURATION, COMMAND_FOLLOW, AT(poll), "TIME", 1, 60,
		"how long one request may wait for a newer step (30s)"},
	{"--poll", OPTION_DURATION, COMMAND_WATCH, AT(poll), "TIME", 1, 60,
		"look again after this time; a new step is seen at once (2s)"},
	{"--volatile", OPTION_FLAG, COMMAND_FOLLOW, AT(is_volatile), NULL, 0, 0,
		"do not sync the weights: faster, but a power cut may leave `current` damaged until follow runs again"},
	{"--keep", OPTION_NUMBER, COMMAND_FOLLOW, AT(keep), "N", 0, 1000,
		"older checkpoints to keep beside the current one (1)"},
	{"--label", OPTION_TEXT, COMMAND_PUBLISH, AT(label), "TEXT", 0, 0,
		"the trainer's own number or name of this step"},
	{"--metadata", OPTION_LIST, COMMAND_PUBLISH, AT(metadata), "KEY=VALUE", 0, 0,
		"an entry for the step's manifest; repeats"},
	{"--anchor", OPTION_TEXT, COMMAND_PUBLISH, AT(anchor), "WHEN", 0, 0,
		"upload a full copy too: auto, always, never, or every N steps (auto)"},
	{"--format", OPTION_TEXT, COMMAND_PUBLISH, AT(format), "FORMAT", 0, 0,
		"format of the delta: ulp-class, slime-xor, slime-overwrite, trl-gap, trl-raw, trl-v1 (ulp-class)"},
	{"--format", OPTION_TEXT, COMMAND_DIFF, AT(format), "FORMAT", 0, 0,
		"format of the delta: ulp-class, slime-xor, slime-overwrite, trl-gap, trl-raw, trl-v1, or full (ulp-class)"},
	{"--base", OPTION_TEXT, COMMAND_FOLD, AT(base), "CHECKPOINT", 0, 0,
		"the base of the first delta; slime-xor and TRL deltas are folded without it"},
	{"--base", OPTION_TEXT, COMMAND_TRANSCODE, AT(base), "CHECKPOINT", 0, 0,
		"the base of the delta"},
	{"--base", OPTION_TEXT, COMMAND_INSPECT, AT(base), "CHECKPOINT", 0, 0,
		"the base of the delta: with --stats, shows how far the changed floats moved"},
	{"--to", OPTION_TEXT, COMMAND_FOLD | COMMAND_TRANSCODE, AT(to), "FORMAT", 0, 0,
		"format of the result: ulp-class, slime-xor, slime-overwrite, trl-gap, trl-raw, trl-v1, or full (ulp-class)"},
	{"--checksum", OPTION_TEXT, COMMAND_DIFF | COMMAND_FOLD | COMMAND_TRANSCODE, AT(checksum),
		"KIND", 0, 0,
		"checksum in the slime formats: xxh3-128, blake3 or adler32 (xxh3-128)"},
	{"--stats", OPTION_FLAG, COMMAND_INSPECT, AT(stats), NULL, 0, 0,
		"show a delta's density, bits per changed element and, with --base, |ulp| steps"},
	{"--state", OPTION_TEXT, COMMAND_PUBLISH, AT(state), "DIR", 0, 0,
		"where publish remembers what it published (a folder per endpoint and run in the user's state folder)"},
	{"--watch", OPTION_TEXT, COMMAND_PUBLISH, AT(watch_folder), "FOLDER", 0, 0,
		"publish each sub-folder that gets the marker, in the order of the numbers that their names end in, until stopped"},
	{"--marker", OPTION_TEXT, COMMAND_PUBLISH, AT(marker), "NAME", 0, 0,
		"with --watch: the file that says a sub-folder is finished (STABLE)"},
	{"--include", OPTION_PATHS, COMMAND_PUBLISH, AT(include), "PATTERN", 0, 0,
		"publish files with this name too: publish leaves out optimizer and other trainer state, and large files that are not .safetensors "
		"('*': leave out nothing); repeats"},
	{"--take-over", OPTION_FLAG, COMMAND_PUBLISH, AT(take_over), NULL, 0, 0,
		"become the run's writer in place of another publisher, which then fails for good"},
	{"--keep-steps", OPTION_NUMBER, COMMAND_PUBLISH, AT(keep_steps), "N", 0, UINT32_MAX,
		"set the run to keep its newest N steps (0: all)"},
	{"--create-bucket", OPTION_FLAG, COMMAND_PUBLISH | COMMAND_PUT | COMMAND_CP | COMMAND_SYNC,
		AT(create_bucket), NULL, 0, 0, "make the bucket if it does not exist"},
	{"--long", OPTION_FLAG, COMMAND_LS, AT(is_long), NULL, 0, 0,
		"show the number of objects and bytes of each bucket; objects are listed with their sizes anyway"},
	{"--recursive", OPTION_FLAG, COMMAND_LS, AT(recursive), NULL, 0, 0,
		"list below folders too; without a bucket: the objects of all buckets"},
	{"--recursive", OPTION_FLAG, COMMAND_RM, AT(recursive), NULL, 0, 0,
		"remove everything below BUCKET/PREFIX/ (BUCKET/: all objects of the bucket)"},
	{"--exist-ok", OPTION_FLAG, COMMAND_MB, AT(exist_ok), NULL, 0, 0,
		"succeed when the bucket already exists"},
	{"--force", OPTION_FLAG, COMMAND_RB, AT(force), NULL, 0, 0,
		"remove the objects in it too; a bucket that holds runs stays"},
	{"--tensors", OPTION_FLAG, COMMAND_INSPECT, AT(tensors), NULL, 0, 0,
		"list every tensor with its digest"},
	{"--delete", OPTION_FLAG, COMMAND_SYNC, AT(delete), NULL, 0, 0,
		"remove from the target the files that the source lacks"},
	{"--dry-run", OPTION_FLAG, COMMAND_SYNC | COMMAND_RM, AT(dry_run), NULL, 0, 0,
		"show what would be done, and do nothing"},
	{"--seed", OPTION_PATHS, COMMAND_GET | COMMAND_CP, AT(seeds), "FILE", 0, 0,
		"a local file that may hold parts of the download; repeats"},
	{"--plain", OPTION_FLAG, COMMAND_PUT | COMMAND_GET | COMMAND_CP | COMMAND_SYNC, AT(plain),
		NULL, 0, 0,
		"move whole files by plain PUT and GET, without reusing parts that the other side has"},
	{"--ttl", OPTION_DURATION, COMMAND_PINS, AT(ttl), "TIME", 1, UINT32_MAX,
		"with add: the pin ends by itself after TIME"},
	{"--watch", OPTION_DURATION, COMMAND_REPLICAS, AT(watch), "TIME", 1, 86400,
		"show it again every TIME, until stopped"},
	{"--name", OPTION_TEXT, COMMAND_KEYS, AT(name), "NAME", 0, 0,
		"with add: the purpose of the key"},
	{"--namespace", OPTION_TEXT, COMMAND_KEYS, AT(namespace), "NS", 0, 0,
		"with add: the account it belongs to"},
	{"--grant", OPTION_LIST, COMMAND_KEYS, AT(grants), "BUCKET[/PREFIX]=read,write,list,admin",
		0, 0,
		"with add: the only thing that the key may do; `metrics`: read /-/metrics; repeats"},
	{"--limit", OPTION_NUMBER, COMMAND_LS, AT(limit), "N", 1, UINT32_MAX,
		"stop after N entries"},
	{"--limit", OPTION_NUMBER, COMMAND_WATCH, AT(limit), "N", 1, UINT32_MAX,
		"with --once: show the worst N workers (20)"},
	{"--limit", OPTION_NUMBER, COMMAND_STEPS, AT(limit), "N", 1, UINT32_MAX,
		"only the newest N steps"},
	{"--threads", OPTION_NUMBER,
		COMMAND_PUBLISH | COMMAND_FOLLOW | COMMAND_DIFF | COMMAND_APPLY | COMMAND_FOLD |
			COMMAND_TRANSCODE | COMMAND_INSPECT,
		AT(threads), "N", 1, 1024, "threads that compute (one per core)"},
	{"--parallel", OPTION_NUMBER,
		COMMAND_PUBLISH | COMMAND_FOLLOW | COMMAND_PUT | COMMAND_GET | COMMAND_CP |
			COMMAND_SYNC,
		AT(parallel), "N", 1, 64, "transfers at a time (4)"},
	{"--retries", OPTION_NUMBER, COMMAND_REMOTE, AT(retries), "N", 0, 1000,
		"further tries after the first one fails (8 for transfers, 3 for listings)"},
	{"--endpoint", OPTION_TEXT, COMMAND_REMOTE, AT(endpoint), "URL", 0, 0,
		"the server, like https://host:9000 (DELTABUCKET_ENDPOINT)"},
	{"--token", OPTION_TEXT, COMMAND_REMOTE, AT(token), "TOKEN", 0, 0,
		"bearer token; others on this machine can see flags, so prefer DELTABUCKET_TOKEN or the config file"},
	{"--ca", OPTION_TEXT, COMMAND_REMOTE, AT(ca), "FILE", 0, 0,
		"PEM file with the server's CA (DELTABUCKET_CA)"},
	{"--profile", OPTION_TEXT, COMMAND_REMOTE, AT(profile), "NAME", 0, 0,
		"the server that `deltabucket login --profile NAME` stored (DELTABUCKET_PROFILE)"},
	{"--profile", OPTION_TEXT, COMMAND_LOGIN | COMMAND_LOGOUT, AT(profile), "NAME", 0, 0,
		"which profile of the config file (default)"},
	{"--fingerprint", OPTION_TEXT, COMMAND_LOGIN, AT(fingerprint), "SHA256", 0, 0,
		"fingerprint of the server's CA, as deltabucketd prints it when it starts"},
	{"--ca", OPTION_TEXT, COMMAND_LOGIN, AT(ca), "FILE", 0, 0,
		"PEM file with the server's CA, instead of fetching it"},
	{"--json", OPTION_FLAG, COMMAND_ALL, AT(json), NULL, 0, 0,
		"one JSON object per line on stdout"},
	{"--quiet", OPTION_FLAG, COMMAND_ALL, AT(quiet), NULL, 0, 0, "only results and failures"},
	{"--help", OPTION_FLAG, COMMAND_ALL, AT(help), NULL, 0, 0, "this text"},
};
#undef AT
enum { ROW_COUNT = sizeof(ROWS) / sizeof(ROWS[0]), ROW_LEFT_BYTES = 80 };

/* Indexes of options.owned. */
enum owned_place { OWNED_ENDPOINT, OWNED_TOKEN, OWNED_CA, OWNED_TRIMMED_ENDPOINT };

static const struct {
	const char *letter;
	const char *name;
} LETTERS[] = {{"-l", "--long"}, {"-r", "--recursive"}, {"-f", "--force"}, {"-q", "--quiet"},
	{"-h", "--help"}};

static struct span flag_name(const char *word);
static const struct option_row *find_row(struct span name, enum command_bit command);
static bool is_named(const struct option_row *row, struct span name);
static const char *letter_of(const struct option_row *row);
static bool is_common(const struct option_row *row);
static int take_flag(struct options *options, enum command_bit command, char *const *words,
	size_t count, size_t *at, struct error *err);
static const struct option_row *joined_row(const char *word, size_t at, enum command_bit command);
static bool is_joined(const char *word, enum command_bit command);
static int take_letters(
	struct options *options, enum command_bit command, const char *word, struct error *err);
static int refuse_flag(struct span name, enum command_bit command, struct error *err);
static int set_value(struct options *options, const struct option_row *row, const char *value,
	struct error *err);
static int set_number(struct option_number *number, const struct option_row *row, const char *value,
	struct error *err);
static int set_duration(struct option_number *number, const struct option_row *row,
	const char *value, struct error *err);
static int add_pair(struct option_list *list, const struct option_row *row, const char *value,
	struct error *err);
static int append(struct option_list *list, const struct option_row *row, const char *value,
	struct error *err);
static int add_path(struct option_list *list, const struct option_row *row, const char *value,
	struct error *err);
static void fill_from_environment(const char **value, const char *variable);
static void fill_from_profile(struct options *options, struct profile *profile);
static bool is_same_endpoint(const char *one, const char *other);
static void fill_from_member(
	struct options *options, const char **value, char **from, enum owned_place place);
static void trim_endpoint(struct options *options);
static void print_rows(
	enum command_bit command, bool common, const char *heading, struct buffer *out);
static size_t left_width(enum command_bit command);
static void print_left(const struct option_row *row, char out[ROW_LEFT_BYTES]);

int options_find_command(char *const *words, size_t count, size_t *out_at, struct error *err)
{
	size_t at = 0;
	for (; at < count && words[at][0] == '-'; at++) {
		const struct span name = flag_name(words[at]);
		/* any command will do that talks to the server: it has all common flags */
		const struct option_row *const row = find_row(name, COMMAND_LS);
		if (row == NULL && is_joined(words[at], COMMAND_VERSION)) /* has no others */
			continue;
		if (row == NULL || !is_common(row))
			return error_set(err, ERROR_INVALID,
				"%.*s stands before the command; only flags that every command has may stand there, "
				"so write it after the command",
				(int)span_slice(name, 0, 100).len, (const char *)name.data);
		if (row->kind != OPTION_FLAG && name.len == strlen(words[at]))
			at++;
	}
	*out_at = at < count ? at : count;
	return 0;
}

int options_parse(struct options *options, enum command_bit command, char *const *words,
	size_t count, struct error *err)
{
	*options = (struct options){0};
	bool flags_ended = false;
	for (size_t at = 0; at < count;) {
		const char *const word = words[at];
		if (!flags_ended && strcmp(word, "--") == 0) {
			flags_ended = true;
			at++;
			continue;
		}
		/* A single '-' is an argument: it means stdin or stdout. */
		if (!flags_ended && word[0] == '-' && word[1] != '\0') {
			if (take_flag(options, command, words, count, &at, err) != 0)
				return -1;
			continue;
		}
		if (options->argument_count == OPTIONS_ARGUMENTS_MAX)
			return error_set(err, ERROR_INVALID, "the command has over %d arguments",
				OPTIONS_ARGUMENTS_MAX);
		options->arguments[options->argument_count++] = word;
		at++;
	}
	return 0;
}

bool options_want_json(char *const *words, size_t count)
{
	for (size_t i = 0; i < count && strcmp(words[i], "--") != 0; i++)
		if (strcmp(words[i], "--json") == 0)
			return true;
	return false;
}

const char *options_profile(const struct options *options)
{
	const char *name = options->profile;
	fill_from_environment(&name, "DELTABUCKET_PROFILE");
	return name;
}

int options_check_endpoint(const char *endpoint, struct error *err)
{
	const bool has_scheme = strstr(endpoint, "://") != NULL;
	if (strncmp(endpoint, "https://", 8) == 0 || strncmp(endpoint, "http://", 7) == 0)
		return 0;
	return error_set(err, ERROR_INVALID,
		"the endpoint %s does not begin with https:// or http://%s%s%s", endpoint,
		has_scheme ? "" : "; did you mean https://", has_scheme ? "" : endpoint,
		has_scheme ? "" : "?");
}

bool options_has_stored_token(const struct options *options)
{
	return options->token != NULL && options->token == options->owned[OWNED_TOKEN];
}

int options_complete(struct options *options, const char *config, struct error *err)
{
	const char *const name = options_profile(options);
	struct profile profile = {0};
	if (name != NULL && profile_check_name(name, err) != 0)
		return -1;
	const int found = config == NULL ? name == NULL : profile_read(config, name, &profile, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return error_set(err, ERROR_INVALID,
			"there is no profile %s in %s; `deltabucket login --profile %s ENDPOINT` makes it",
			name, config != NULL ? config : "a config file", name);
	if (options->profile == NULL) { /* --profile wins over the environment */
		fill_from_environment(&options->endpoint, "DELTABUCKET_ENDPOINT");
		fill_from_environment(&options->token, "DELTABUCKET_TOKEN");
		fill_from_environment(&options->ca, "DELTABUCKET_CA");
	}
	fill_from_profile(options, &profile);
	profile_release(&profile);
	trim_endpoint(options);
	return 0;
}

char *options_config_path(void)
{
	const char *const config_home = getenv("XDG_CONFIG_HOME");
	const char *const home = getenv("HOME");
	const bool has_config_home = config_home != NULL && config_home[0] == '/';
	if (!has_config_home && (home == NULL || home[0] == '\0'))
		return NULL;
	struct buffer path;
	buffer_init(&path, 4096);
	buffer_format(&path, "%s%s/deltabucket/config", has_config_home ? config_home : home,
		has_config_home ? "" : "/.config");
	char *const copy = buffer_failed(&path) ? NULL : memory_copy_text(buffer_text(&path));
	buffer_release(&path);
	return copy;
}

void options_release(struct options *options)
{
	for (size_t i = 0; i < sizeof(options->owned) / sizeof(options->owned[0]); i++)
		free(options->owned[i]);
	*options = (struct options){0};
}

void options_print_help(enum command_bit command, struct buffer *out)
{
	print_rows(command, false, "flags", out);
	print_rows(command, true, "flags of every command", out);
}

static struct span flag_name(const char *word)
{
	const char *const equals = strchr(word, '=');
	return equals == NULL ? span_text(word) : span_of(word, (size_t)(equals - word));
}

/* The row for this command: one name can have different meanings for different commands. */
static const struct option_row *find_row(struct span name, enum command_bit command)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if ((ROWS[i].commands & (int)command) != 0 && is_named(&ROWS[i], name))
			return &ROWS[i];
	return NULL;
}

static bool is_named(const struct option_row *row, struct span name)
{
	const char *const letter = letter_of(row);
	return span_equal_text(name, row->name) ||
		(letter != NULL && span_equal_text(name, letter));
}

/* "-l" for "--long"; NULL when the flag has no letter. */
static const char *letter_of(const struct option_row *row)
{
	for (size_t i = 0; i < sizeof(LETTERS) / sizeof(LETTERS[0]); i++)
		if (strcmp(LETTERS[i].name, row->name) == 0)
			return LETTERS[i].letter;
	return NULL;
}

static bool is_common(const struct option_row *row)
{
	return row->commands == COMMAND_ALL || row->commands == COMMAND_REMOTE;
}

/* Takes one flag and its value, which follows '=' or is the next word; moves *at past both. */
static int take_flag(struct options *options, enum command_bit command, char *const *words,
	size_t count, size_t *at, struct error *err)
{
	ASSERT(*at < count);
	const char *const word = words[(*at)++];
	const char *const equals = strchr(word, '=');
	const struct span name = flag_name(word);
	const struct option_row *const row = find_row(name, command);
	if (row == NULL)
		return take_letters(options, command, word, err);
	if (row->kind == OPTION_FLAG) {
		if (equals != NULL)
			return error_set(err, ERROR_INVALID, "%s takes no value", row->name);
		return set_value(options, row, "", err);
	}
	if (equals == NULL && *at == count)
		return error_set(err, ERROR_INVALID, "%s needs a value: %s %s", row->name,
			row->name, row->value);
	return set_value(options, row, equals != NULL ? equals + 1 : words[(*at)++], err);
}

/* "-lr" is "-l -r": the row of the letter at that place, if it is that of a flag without a value. */
static const struct option_row *joined_row(const char *word, size_t at, enum command_bit command)
{
	const char letter[] = {'-', word[at]};
	const struct option_row *const row = find_row(span_of(letter, sizeof(letter)), command);
	return row != NULL && row->kind == OPTION_FLAG ? row : NULL;
}

static bool is_joined(const char *word, enum command_bit command)
{
	size_t at = 1;
	while (word[at] != '\0' && joined_row(word, at, command) != NULL)
		at++;
	return word[at] == '\0' && at > 2;
}

static int take_letters(
	struct options *options, enum command_bit command, const char *word, struct error *err)
{
	if (!is_joined(word, command))
		return refuse_flag(flag_name(word), command, err);
	for (size_t at = 1; word[at] != '\0'; at++)
		set_value(options, joined_row(word, at, command), "", err);
	return 0;
}

static int refuse_flag(struct span name, enum command_bit command, struct error *err)
{
	const int of_one = COMMAND_PUT | COMMAND_GET | COMMAND_CP;
	const int of_run = COMMAND_WATCH | COMMAND_STEPS | COMMAND_REPLICAS | COMMAND_PINS |
		COMMAND_FLEET | COMMAND_RUNS | COMMAND_STATUS;
	struct near_word near;
	if (((int)command & of_one) != 0 &&
		(span_equal_text(name, "-r") || span_equal_text(name, "--recursive")))
		return error_set(err, ERROR_INVALID,
			"this command takes one file or object; `deltabucket sync` uploads and "
			"downloads folders");
	if (((int)command & of_run) != 0 && span_equal_text(name, "--run"))
		return error_set(err, ERROR_INVALID,
			"this command has no flag --run; write the run without it: BUCKET/RUN");
	char hint[NEAR_WORD_HINT_BYTES];
	near_word_begin(&near, name);
	for (size_t i = 0; i < ROW_COUNT; i++)
		if ((ROWS[i].commands & (int)command) != 0)
			near_word_offer(&near, ROWS[i].name);
	return error_set(err, ERROR_INVALID, "this command has no flag %.*s%s%s",
		(int)span_slice(name, 0, 100).len, (const char *)name.data,
		near_word_hint(&near, hint), near.best == NULL ? "; --help lists its flags" : "");
}

static int set_value(
	struct options *options, const struct option_row *row, const char *value, struct error *err)
{
	void *const member = (char *)options + row->offset;
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)member = true;
		return 0;
	case OPTION_TEXT:
		if (value[0] == '\0')
			return error_set(err, ERROR_INVALID, "%s needs a value", row->name);
		*(const char **)member = value;
		return 0;
	case OPTION_NUMBER:
		return set_number(member, row, value, err);
	case OPTION_DURATION:
		return set_duration(member, row, value, err);
	case OPTION_LIST:
		return add_pair(member, row, value, err);
	case OPTION_PATHS:
		return add_path(member, row, value, err);
	}
	return 0;
}

static int set_number(struct option_number *number, const struct option_row *row, const char *value,
	struct error *err)
{
	uint64_t parsed;
	if (!span_parse_u64(span_text(value), &parsed) || parsed < row->least || parsed > row->most)
		return error_set(err, ERROR_INVALID,
			"%s takes a number from %llu to %llu, not \"%s\"", row->name,
			(unsigned long long)row->least, (unsigned long long)row->most, value);
	*number = (struct option_number){.given = true, .value = parsed};
	return 0;
}

/* A value without a unit is in seconds. */
static int set_duration(struct option_number *number, const struct option_row *row,
	const char *value, struct error *err)
{
	uint64_t seconds;
	if (!quantity_parse(span_text(value), QUANTITY_SECONDS, 1, &seconds) ||
		seconds < row->least || seconds > row->most)
		return error_set(err, ERROR_INVALID,
			"%s takes a time from %llu to %llu seconds, like 30, 30s or 10min, not \"%s\"",
			row->name, (unsigned long long)row->least, (unsigned long long)row->most,
			value);
	*number = (struct option_number){.given = true, .value = seconds};
	return 0;
}

static int add_pair(struct option_list *list, const struct option_row *row, const char *value,
	struct error *err)
{
	ASSERT(row->kind == OPTION_LIST);
	const char *const equals = strchr(value, '=');
	/* the only grant without a bucket */
	const bool is_metrics = strcmp(row->name, "--grant") == 0 && strcmp(value, "metrics") == 0;
	if (!is_metrics && (equals == NULL || equals == value))
		return error_set(err, ERROR_INVALID, "%s takes %s, not \"%s\"", row->name,
			row->value, value);
	return append(list, row, value, err);
}

static int append(struct option_list *list, const struct option_row *row, const char *value,
	struct error *err)
{
	if (list->count == OPTIONS_LIST_MAX)
		return error_set(err, ERROR_INVALID, "%s is given more than %d times", row->name,
			OPTIONS_LIST_MAX);
	list->items[list->count++] = value;
	return 0;
}

static int add_path(struct option_list *list, const struct option_row *row, const char *value,
	struct error *err)
{
	ASSERT(row->kind == OPTION_PATHS);
	if (value[0] == '\0')
		return error_set(err, ERROR_INVALID, "%s needs a value", row->name);
	return append(list, row, value, err);
}

static void fill_from_environment(const char **value, const char *variable)
{
	const char *const given = getenv(variable);
	if (*value == NULL && given != NULL && given[0] != '\0')
		*value = given;
}

/* A stored token is sent only to the server that it was stored for. */
static void fill_from_profile(struct options *options, struct profile *profile)
{
	const bool is_other = options->endpoint != NULL && profile->endpoint != NULL &&
		!is_same_endpoint(options->endpoint, profile->endpoint);
	if (is_other)
		return;
	fill_from_member(options, &options->endpoint, &profile->endpoint, OWNED_ENDPOINT);
	fill_from_member(options, &options->token, &profile->token, OWNED_TOKEN);
	fill_from_member(options, &options->ca, &profile->ca, OWNED_CA);
}

static bool is_same_endpoint(const char *one, const char *other)
{
	size_t lens[2] = {strlen(one), strlen(other)};
	while (lens[0] > 0 && one[lens[0] - 1] == '/')
		lens[0]--;
	while (lens[1] > 0 && other[lens[1] - 1] == '/')
		lens[1]--;
	return lens[0] == lens[1] && memcmp(one, other, lens[0]) == 0;
}

/* Moves a value of the profile into the options where they have none. */
static void fill_from_member(
	struct options *options, const char **value, char **from, enum owned_place place)
{
	if (*value != NULL || *from == NULL)
		return;
	ASSERT(options->owned[place] == NULL);
	options->owned[place] = *from;
	*value = *from;
	*from = NULL;
}

/* https://host/ and https://host are the same server. They must also name the same state folder. */
static void trim_endpoint(struct options *options)
{
	size_t len = options->endpoint == NULL ? 0 : strlen(options->endpoint);
	if (len == 0 || options->endpoint[len - 1] != '/')
		return;
	while (len > 0 && options->endpoint[len - 1] == '/')
		len--;
	ASSERT(options->owned[OWNED_TRIMMED_ENDPOINT] == NULL);
	char *const trimmed = memory_new(len + 1);
	memcpy(trimmed, options->endpoint, len);
	options->owned[OWNED_TRIMMED_ENDPOINT] = trimmed;
	options->endpoint = trimmed;
}

/* Prints the flags that only this command has, or those that it shares with all commands. */
static void print_rows(
	enum command_bit command, bool common, const char *heading, struct buffer *out)
{
	const size_t width = left_width(command);
	char left[ROW_LEFT_BYTES];
	bool begun = false;
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if ((ROWS[i].commands & (int)command) == 0 || is_common(&ROWS[i]) != common)
			continue;
		if (!begun)
			buffer_format(out, "\n%s:\n", heading);
		begun = true;
		print_left(&ROWS[i], left);
		columns_add(out, left, width, ROWS[i].help);
	}
}

static size_t left_width(enum command_bit command)
{
	size_t width = 0;
	char left[ROW_LEFT_BYTES];
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if ((ROWS[i].commands & (int)command) == 0)
			continue;
		print_left(&ROWS[i], left);
		width = columns_widen(width, left);
	}
	return width;
}

/* "--recursive, -r" or "--run BUCKET/RUN". */
static void print_left(const struct option_row *row, char out[ROW_LEFT_BYTES])
{
	const char *const letter = letter_of(row);
	snprintf(out, ROW_LEFT_BYTES, "%s%s%s%s%s", row->name, row->value != NULL ? " " : "",
		row->value != NULL ? row->value : "", letter != NULL ? ", " : "",
		letter != NULL ? letter : "");
}
