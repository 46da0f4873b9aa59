#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "server/configuration.h"
#include "server/data_folder.h"

enum { ARGUMENTS_MAX = 16 };

/* Loads from lists of texts that end with NULL. */
static int load(struct configuration *configuration, const char *const *arguments,
	const char *const *environment, enum configuration_request *request, struct error *err)
{
	char *argument_copies[ARGUMENTS_MAX] = {NULL};
	char *environment_copies[ARGUMENTS_MAX] = {NULL};
	int count = 0;
	for (; arguments[count] != NULL; count++)
		argument_copies[count] = memory_copy_text(arguments[count]);
	for (size_t i = 0; environment[i] != NULL; i++)
		environment_copies[i] = memory_copy_text(environment[i]);
	const int loaded = configuration_load(
		configuration, count, argument_copies, environment_copies, request, err);
	for (size_t i = 0; i < ARGUMENTS_MAX; i++) {
		free(argument_copies[i]);
		free(environment_copies[i]);
	}
	return loaded;
}

static const char *const nothing[] = {NULL};

START_TEST(defaults_stand_when_nothing_is_said)
{
	struct configuration configuration;
	enum configuration_request request;
	struct error err = {0};
	const char *const arguments[] = {"--data", "/x", NULL};
	ck_assert_msg(
		load(&configuration, arguments, nothing, &request, &err) == 0, "%s", err.text);
	ck_assert_int_eq(request, CONFIGURATION_RUN);
	ck_assert_str_eq(configuration.data, "/x");
	ck_assert_uint_eq(configuration.listen.count, 1);
	ck_assert_str_eq(configuration.listen.items[0], "127.0.0.1:9000");
	ck_assert(!configuration.http);
	ck_assert_str_eq(configuration.default_namespace, "main");
	ck_assert_str_eq(configuration.region, "us-east-1");
	ck_assert_uint_eq(configuration.put_max, UINT64_C(5368709120));
	ck_assert_ptr_null(configuration.tls_cert);
	configuration_release(&configuration);
}
END_TEST

START_TEST(flags_win_over_the_environment_and_that_over_the_file)
{
	struct configuration configuration;
	enum configuration_request request;
	struct error err = {0};
	char *const folder = unit_scratch_make();
	char *const path = data_folder_path(folder, "d.ini");
	const char text[] =
		"; a comment\ndata = /from-file\nregion = file\nreactors = 3\nhelpers = 4\nlisten = 127.0.0.1:1, 127.0.0.1:2\n";
	ck_assert_int_eq(file_publish(file_system(), path, span_text(text), 0600, &err), 0);
	const char *const arguments[] = {"--config", path, "--data=/from-flag", "--listen",
		"[::]:9", "--listen=unix:/s", "--log-json", NULL};
	const char *const environment[] = {"DELTABUCKET_REGION=environment",
		"DELTABUCKET_DATA=/from-environment", "DELTABUCKET_LISTEN=127.0.0.1:3",
		"DELTABUCKET_HELPERS=5", "DELTABUCKET_TOKEN=not-a-setting", "OTHER=1", NULL};
	ck_assert_msg(
		load(&configuration, arguments, environment, &request, &err) == 0, "%s", err.text);
	ck_assert_str_eq(configuration.data, "/from-flag");
	ck_assert_str_eq(configuration.region, "environment");
	ck_assert_uint_eq(configuration.reactors, 3);
	ck_assert_uint_eq(configuration.helpers, 5);
	ck_assert_uint_eq(configuration.listen.count, 2);
	ck_assert_str_eq(configuration.listen.items[0], "[::]:9");
	ck_assert_str_eq(configuration.listen.items[1], "unix:/s");
	ck_assert(configuration.log_json);
	configuration_release(&configuration);
	free(path);
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_file_lists_with_commas)
{
	struct configuration configuration;
	enum configuration_request request;
	struct error err = {0};
	const char *const environment[] = {"DELTABUCKET_DATA=/x",
		"DELTABUCKET_LISTEN= 127.0.0.1:1 ,127.0.0.1:2,", "DELTABUCKET_HTTP=yes", NULL};
	ck_assert_msg(
		load(&configuration, nothing, environment, &request, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(configuration.listen.count, 2);
	ck_assert_str_eq(configuration.listen.items[0], "127.0.0.1:1");
	ck_assert_str_eq(configuration.listen.items[1], "127.0.0.1:2");
	ck_assert(configuration.http);
	configuration_release(&configuration);
}
END_TEST

static const struct {
	const char *arguments[6];
	const char *environment[3];
	const char *text;
} refused[] = {
	{{NULL}, {NULL}, "--data"},
	{{"--data", NULL}, {NULL}, "needs a value"},
	{{"--data", "/x", "--nonsense", "1", NULL}, {NULL}, "--nonsense"},
	{{"--data", "/x", "stray", NULL}, {NULL}, "'stray'"},
	{{"--data", "/x", "--sigv2", "no", NULL}, {NULL}, "--sigv2=no"},
	{{"--data", "/x", "--reactors", "many", NULL}, {NULL}, "reactors"},
	{{"--data", "/x", "--reactors", "257", NULL}, {NULL}, "from 0 to 256"},
	{{"--data", "/x", "--reactors", "-1", NULL}, {NULL}, "reactors"},
	{{"--data", "/x", "--idle-timeout", "4", NULL}, {NULL}, "idle_timeout"},
	{{"--data", "/x", NULL}, {"DELTABUCKET_HTTP=maybe", NULL}, "yes or no"},
	{{"--data", "/x", NULL}, {"DELTABUCKET_HELPERS=0", NULL},
		"environment, DELTABUCKET_HELPERS: helpers must be a number"},
	{{"--data", "/x", "--tls-cert", "c", NULL}, {NULL},
		"command line: tls_cert is set and tls_key is not; they must be set together"},
	{{"--data", "/x", NULL}, {"DELTABUCKET_TLS_KEY=k", NULL},
		"environment, DELTABUCKET_TLS_KEY: tls_key is set and tls_cert is not"},
	{{"--data", "/x", "--tls-cert=/x.pem", "--tls-key=/dev/null", NULL}, {NULL},
		"command line: tls_cert must be a file that the server can read, and /x.pem is not: No such file"},
	{{"--data", "/x", "--tls-cert=/dev/null", NULL}, {"DELTABUCKET_TLS_KEY=/x.key", NULL},
		"environment, DELTABUCKET_TLS_KEY: tls_key must be a file that the server can read, and /x.key is not"},
	{{"--data", "/x", "--domain", "-bad-", NULL}, {NULL},
		"command line: domain must be a host name, not '-bad-'"},
	{{"--data", "/x", "--domain", "a..b", NULL}, {NULL}, "domain must be"},
	{{"--data", "/x", "--domain", "a.b.", NULL}, {NULL}, "domain must be"},
	{{"--data", "/x", "--domain", ".a", NULL}, {NULL}, "domain must be"},
	{{"--data", "/x", "--domain", "*.a", NULL}, {NULL}, "domain must be"},
	{{"--data", "/x", "--domain", "10.0.0.1:80", NULL}, {NULL}, "domain must be"},
	{{"--data", "/x", "--tls-name", "a-.b", NULL}, {NULL}, "tls_name must be"},
	{{"--data", "/x", "--tls-name", "10.0.0.1:80", NULL}, {NULL}, "tls_name must be"},
	{{"--data", "/x", "--http", "--tls-cert=c", "--tls-key=k", NULL}, {NULL}, "exclude"},
	{{"--data", "/x", "--listen", "", NULL}, {NULL}, "at least one"},
	{{"--data", "/x", "--listen", "nowhere", NULL}, {NULL}, "'nowhere'"},
	{{"--data", "/x", "--listen=127.0.0.1:0", "--listen=127.0.0.1:65536", NULL}, {NULL},
		"'127.0.0.1:65536'"},
	{{"--data", "/x", NULL}, {"DELTABUCKET_LISTEN=unix:", NULL}, "socket path"},
	{{"--data", "/x", "--config", "/nonexistent/file", NULL}, {NULL}, "/nonexistent/file"},
	{{"--data", "/x", "--after-damage=foo", NULL}, {NULL},
		"command line: after_damage must be refuse, read-only or serve, not 'foo'"},
	{{"--data", "/x", "--after-damage=or", NULL}, {NULL}, "not 'or'"},
	{{"--data", "/x", NULL}, {"DELTABUCKET_LOG_LEVEL=loud", NULL},
		"environment, DELTABUCKET_LOG_LEVEL: log_level must be error, warning, info or debug"},
	{{"--data", "/x", "--etag", "sha", NULL}, {NULL}, "etag must be md5 or fast"},
	{{"--data", "/x", "--region", "", NULL}, {NULL},
		"region must be a word without blanks, not ''"},
	{{"--data", "/x", "--tls-name", "a b", NULL}, {NULL},
		"tls_name must be a host name or an address, not 'a b'"},
	{{"--data", "/x", "--webhook-hosts", "a b", NULL}, {NULL}, "webhook_hosts must be"},
	{{"--data", "/x", "--default-namespace", "A B", NULL}, {NULL},
		"default_namespace must be 1 to 63 of"},
	{{"--data", "/x", "--hub-default-visibility", "", NULL}, {NULL},
		"command line: hub_default_visibility must be private or public"},
};

START_TEST(mistakes_are_named)
{
	struct configuration configuration;
	enum configuration_request request;
	struct error err = {0};
	ck_assert_int_eq(load(&configuration, refused[_i].arguments, refused[_i].environment,
				 &request, &err),
		-1);
	ck_assert_msg(strstr(err.text, refused[_i].text) != NULL, "%s", err.text);
	configuration_release(&configuration);
}
END_TEST

static const struct {
	const char *text;
	const char *says;
} bad_files[] = {
	{"data = /x\n; a comment\nregoin = eu\n",
		"d.ini:3: there is no setting 'regoin'; did you mean region?"},
	{"data = /x\n\nreactors = lots\n", "d.ini:3: reactors must be a number"},
	{"data = /x\nnonsense\n", "d.ini:2: this is neither a setting"},
	{"[gc]\nintervall = 3\n",
		"d.ini:2: there is no setting 'intervall' below [gc]; did you mean interval?"},
	{"data = /x\n[gc\nrate = 3\n", "d.ini:2: "},
	{"data = /x\nlisten = 9000\n", "d.ini:2: listen: the address '9000' is not HOST:PORT"},
	{"data = /x\ntrusted_proxies = 300.1.1.1\n", "d.ini:2: trusted_proxies: "},
	{"data = /x\npublic_url = https://host/path\n",
		"d.ini:2: public_url must be https://HOST[:PORT]"},
	{"data = /x\n\ndata = /y\n", "d.ini:3: data is set twice"},
	{"data = /x\nput_max = 5 apples\n",
		"d.ini:2: put_max must be a number of bytes from 1 to 5497558138880, or with a unit like 5GiB"},
};

START_TEST(headings_and_units_are_understood)
{
	struct configuration configuration;
	enum configuration_request request;
	struct error err = {0};
	char *const folder = unit_scratch_make();
	char *const path = data_folder_path(folder, "d.ini");
	static const char text[] =
		"data = /x\nput_max = 5GiB\n[tls]\nname = a, b\npriorities = P\n[Server]\nidle-timeout = 10min\n"
		"[gc]\ninterval = 1h\ngc_rate = 1GiB/s\nxet_promise = 28d\nbody_memory = 100\n";
	ck_assert_int_eq(file_publish(file_system(), path, span_text(text), 0600, &err), 0);
	const char *const arguments[] = {
		"--config", path, "--connection-memory", "1MiB", "--xet-made-max=1TiB", NULL};
	ck_assert_msg(
		load(&configuration, arguments, nothing, &request, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(configuration.put_max, UINT64_C(5) << 30);
	ck_assert_uint_eq(configuration.tls_name.count, 2);
	ck_assert_str_eq(configuration.tls_priorities, "P");
	ck_assert_uint_eq(configuration.idle_timeout, 600);
	ck_assert_uint_eq(configuration.gc_interval, 3600);
	ck_assert_uint_eq(configuration.gc_rate, 1024);
	ck_assert_uint_eq(configuration.xet_promise, 672);
	ck_assert_uint_eq(configuration.body_memory, 100);
	ck_assert_uint_eq(configuration.connection_memory, 1024);
	ck_assert_uint_eq(configuration.xet_made_max, 1024);
	configuration_release(&configuration);
	free(path);
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_file_with_a_mistake_is_refused_by_name)
{
	struct configuration configuration;
	enum configuration_request request;
	struct error err = {0};
	char *const folder = unit_scratch_make();
	char *const path = data_folder_path(folder, "d.ini");
	ck_assert_int_eq(
		file_publish(file_system(), path, span_text(bad_files[_i].text), 0600, &err), 0);
	const char *const arguments[] = {"--config", path, NULL};
	ck_assert_int_eq(load(&configuration, arguments, nothing, &request, &err), -1);
	ck_assert_msg(
		strstr(err.text, path) != NULL && strstr(err.text, bad_files[_i].says) != NULL,
		"%s", err.text);
	configuration_release(&configuration);
	free(path);
	unit_scratch_remove(folder);
}
END_TEST

static char *log_of_unknown(char *const *environment)
{
	int ends[2];
	char *const text = memory_new(4096);
	ck_assert_int_eq(pipe(ends), 0);
	struct log *const log = log_new(ends[1], LOG_INFO, false, NULL);
	configuration_warn_unknown(environment, log);
	log_free(log);
	close(ends[1]);
	ck_assert_int_ge(read(ends[0], text, 4095), 0);
	close(ends[0]);
	return text;
}

START_TEST(unknown_variables_are_logged_with_the_nearest_setting)
{
	char *const known[] = {"DELTABUCKET_GC_RATE=1", "DELTABUCKET_ENDPOINT=x",
		"DELTABUCKET_ROOT_TOKEN=t", "DELTABUCKET_CONFIG=f", "DELTABUCKET_STEP=1",
		"DELTABUCKET_SERVICE_HOST=h", "DELTABUCKET_PORT_9000_TCP=t", "GC_RAT=1",
		"DELTABUCKET", NULL};
	char *const unknown[] = {
		"DELTABUCKET_GC_RAT=1", "DELTABUCKET_NOTHING_LIKE_IT=secret", NULL};
	char *const none = log_of_unknown(known);
	char *const both = log_of_unknown(unknown);
	ck_assert_str_eq(none, "");
	ck_assert_msg(
		strstr(both,
			"DELTABUCKET_GC_RAT is not a setting of this server; did you mean DELTABUCKET_GC_RATE?") !=
			NULL,
		"%s", both);
	ck_assert_msg(
		strstr(both, "DELTABUCKET_NOTHING_LIKE_IT is not a setting of this server\"") !=
			NULL,
		"%s", both);
	ck_assert_ptr_null(strstr(both, "secret"));
	free(none);
	free(both);
}
END_TEST

static const struct {
	const char *flag;
	enum configuration_request request;
} specials[] = {{"--help", CONFIGURATION_HELP}, {"-h", CONFIGURATION_HELP},
	{"--version", CONFIGURATION_VERSION}, {"--print-config-docs", CONFIGURATION_DOCS},
	{"--print-config", CONFIGURATION_PRINT}, {"--check-config", CONFIGURATION_CHECK}};

START_TEST(questions_need_no_data_folder)
{
	struct configuration configuration;
	enum configuration_request request;
	struct error err = {0};
	const char *const arguments[] = {specials[_i].flag, NULL};
	ck_assert_int_eq(load(&configuration, arguments, nothing, &request, &err), 0);
	ck_assert_int_eq(request, specials[_i].request);
	configuration_release(&configuration);
}
END_TEST

static const char *const names[] = {
#define SETTING(name, TYPE, standard, least, most, unit, help) #name,
#include "server/configuration.def"
#undef SETTING
};

START_TEST(help_and_documentation_name_every_setting)
{
	struct buffer help;
	struct buffer docs;
	char flag[64] = "--";
	buffer_init(&help, 100000);
	buffer_init(&docs, 100000);
	configuration_print_help(&help);
	configuration_print_docs(&docs);
	for (size_t i = 0; names[_i][i] != '\0'; i++)
		flag[i + 2] = names[_i][i] == '_' ? '-' : names[_i][i];
	ck_assert_ptr_nonnull(strstr(buffer_text(&help), flag));
	ck_assert_ptr_nonnull(strstr(buffer_text(&docs), names[_i]));
	ck_assert_ptr_nonnull(strstr(buffer_text(&docs), flag));
	buffer_release(&help);
	buffer_release(&docs);
}
END_TEST

Suite *test_configuration_suite(void);

Suite *test_configuration_suite(void)
{
	Suite *const suite = suite_create("configuration");
	TCase *const tcase = tcase_create("configuration");
	tcase_add_test(tcase, defaults_stand_when_nothing_is_said);
	tcase_add_test(tcase, flags_win_over_the_environment_and_that_over_the_file);
	tcase_add_test(tcase, a_file_lists_with_commas);
	tcase_add_loop_test(tcase, mistakes_are_named, 0, sizeof refused / sizeof refused[0]);
	tcase_add_test(tcase, headings_and_units_are_understood);
	tcase_add_loop_test(tcase, a_file_with_a_mistake_is_refused_by_name, 0,
		sizeof bad_files / sizeof bad_files[0]);
	tcase_add_test(tcase, unknown_variables_are_logged_with_the_nearest_setting);
	tcase_add_loop_test(
		tcase, questions_need_no_data_folder, 0, sizeof specials / sizeof specials[0]);
	tcase_add_loop_test(tcase, help_and_documentation_name_every_setting, 0,
		sizeof names / sizeof names[0]);
	suite_add_tcase(suite, tcase);
	return suite;
}
