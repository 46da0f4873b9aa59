#include "client/doctor/settings_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/near_word.h"
#include "client/terminal/profile.h"

static const char NAME[] = "settings";
static const char PREFIX[] = "DELTABUCKET_";

/* What the command line, the Python package and the plug-ins read. */
static const char *const VARIABLES[] = {"DELTABUCKET_ENDPOINT", "DELTABUCKET_TOKEN",
	"DELTABUCKET_CA", "DELTABUCKET_PROFILE", "DELTABUCKET_RUN", "DELTABUCKET_INTO",
	"DELTABUCKET_PAUSE", "DELTABUCKET_MAX_LAG", "DELTABUCKET_LIBRARY"};
enum { VARIABLE_COUNT = sizeof(VARIABLES) / sizeof(VARIABLES[0]) };

static void say_sources(
	struct checkup *checkup, const struct options *given, const struct options *options);
static const char *source_of(
	const struct options *options, const char *given, const char *variable);
static void check_file(struct checkup *checkup, const struct options *options, const char *config);
static void check_exposed(
	struct checkup *checkup, const struct options *options, const char *config);
static void check_overridden(
	struct checkup *checkup, const struct options *options, const char *config);
static bool check_endpoint(struct checkup *checkup, const struct options *options);
static void check_variables(struct checkup *checkup);
static void check_variable(struct checkup *checkup, struct span name);

bool settings_check(struct checkup *checkup, struct options *options)
{
	const struct options given = *options;
	struct error err = {0};
	char *const config = options_config_path();
	bool is_complete = options_complete(options, config, &err) == 0;
	if (!is_complete)
		checkup_fail(
			checkup, NAME, "`deltabucket login ENDPOINT` writes the config file", &err);
	if (is_complete)
		is_complete = check_endpoint(checkup, options);
	if (is_complete) {
		say_sources(checkup, &given, options);
		check_file(checkup, options, config);
	}
	check_variables(checkup);
	free(config);
	return is_complete;
}

/* `given` are the options before they were completed. */
static void say_sources(
	struct checkup *checkup, const struct options *given, const struct options *options)
{
	const char *const token = source_of(options, given->token, VARIABLES[1]);
	const char *const ca = source_of(options, given->ca, VARIABLES[2]);
	checkup_ok(checkup, NAME, "endpoint from %s, %s%s, %s%s",
		source_of(options, given->endpoint, VARIABLES[0]),
		options->token != NULL ? "token from " : "no token is set",
		options->token != NULL ? token : "",
		options->ca != NULL ? "CA from " : "no CA is set", options->ca != NULL ? ca : "");
}

/* Where a value that is set comes from; `given` is the flag's. */
static const char *source_of(const struct options *options, const char *given, const char *variable)
{
	if (given != NULL)
		return "a flag";
	const char *const set = options->profile == NULL ? getenv(variable) : NULL;
	return set != NULL && set[0] != '\0' ? variable : "the config file";
}

static void check_file(struct checkup *checkup, const struct options *options, const char *config)
{
	const char *const profile = options_profile(options);
	if (config == NULL || access(config, F_OK) != 0) {
		checkup_ok(checkup, "config file", "%s%s",
			config != NULL ? config : "no home folder to keep one in",
			config != NULL ? " does not exist, and need not" : "");
		return;
	}
	checkup_ok(checkup, "config file", "%s, profile %s", config,
		profile != NULL ? profile : "default");
	check_exposed(checkup, options, config);
	check_overridden(checkup, options, config);
}

static void check_exposed(
	struct checkup *checkup, const struct options *options, const char *config)
{
	char advice[512];
	if (!options_has_stored_token(options) || !profile_is_exposed(config))
		return;
	snprintf(advice, sizeof(advice), "chmod 600 %s", config);
	checkup_warn(checkup, "config file", advice,
		"users other than its owner may read the token in it");
}

/* A stored token is for the stored endpoint alone. */
static void check_overridden(
	struct checkup *checkup, const struct options *options, const char *config)
{
	struct profile profile = {0};
	struct error ignored = {0};
	const char *const name = options_profile(options);
	if (profile_read(config, name, &profile, &ignored) == 1 && profile.endpoint != NULL &&
		profile.token != NULL && options->token == NULL)
		checkup_warn(checkup, "config file",
			"unset DELTABUCKET_ENDPOINT, or set DELTABUCKET_TOKEN too",
			"its token is for %s and is not sent to %s", profile.endpoint,
			options->endpoint);
	profile_release(&profile);
}

static bool check_endpoint(struct checkup *checkup, const struct options *options)
{
	struct error err = {0};
	const char *const endpoint = options->endpoint;
	if (endpoint == NULL)
		error_set(&err, ERROR_INVALID, "no server is set");
	else
		options_check_endpoint(endpoint, &err);
	if (err.kind == ERROR_NONE)
		return true;
	checkup_fail(checkup, NAME,
		"`deltabucket login https://HOST:9000` stores it; or set DELTABUCKET_ENDPOINT, or give --endpoint",
		&err);
	return false;
}

static void check_variables(struct checkup *checkup)
{
	for (char **entry = environ; *entry != NULL; entry++) {
		const char *const equals = strchr(*entry, '=');
		if (strncmp(*entry, PREFIX, sizeof(PREFIX) - 1) == 0 && equals != NULL)
			check_variable(checkup, span_of(*entry, (size_t)(equals - *entry)));
	}
}

/* Names that are far from all of these may be the server's, or anybody's. */
static void check_variable(struct checkup *checkup, struct span name)
{
	struct near_word near;
	near_word_begin(&near, span_slice(name, sizeof(PREFIX) - 1, name.len));
	for (size_t i = 0; i < VARIABLE_COUNT; i++) {
		if (span_equal_text(name, VARIABLES[i]))
			return;
		near_word_offer(&near, VARIABLES[i] + sizeof(PREFIX) - 1);
	}
	if (near.best != NULL)
		checkup_warn(checkup, "environment", NULL, "nothing reads %.*s; did you mean %s%s?",
			(int)name.len, (const char *)name.data, PREFIX, near.best);
}
