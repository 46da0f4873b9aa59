/* Each command is a request to the admin routes when a server holds the data folder, and the same calls beneath those routes when none
 * does. Both ways end in the same JSON, from which the text for people is printed. */
#include "server/keys_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/admin/admin_keys.h"
#include "base/encode.h"
#include "base/json_node.h"
#include "base/memory.h"
#include "server/store_command.h"

enum { ARGUMENT_GRANTS_MAX = 256, ANSWER_MAX_BYTES = 32 * 1024 * 1024, COMMAND_ARENA_BYTES = 256 * 1024 * 1024 };
enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct keys_options {
	const char *verb;
	const char *data;
	const char *master_key;
	const char *name;
	const char *namespace;
	const char *grants[ARGUMENT_GRANTS_MAX];
	size_t grant_count;
	const char *key_id;
	bool json;
};

struct keys_verb {
	const char *name;
	const char *method;
	int (*work)(const struct keys_options *options, struct keyring *keyring, struct buffer *out, struct error *err);
	int (*print)(const struct json_node *answer);
};

static const char usage[] =
	"deltabucketd keys add --data DIR [--name N] [--namespace NS] [--grant BUCKET[/PREFIX]=read,write,list,admin]... [--json]\n"
	"deltabucketd keys list --data DIR [--json]\n"
	"deltabucketd keys revoke --data DIR KEY_ID [--json]\n\n"
	"Works beside a running server and without one; --master-key FILE as for the server. Takes effect at once.\n"
	"A key without grants acts for its whole account (the namespace); a key with grants may do what they name and nothing else.\n";

/* The request that makes a key, and what admin_keys_parse reads without a server. */
static void print_request(const struct keys_options *options, struct buffer *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_writer_object(&json, NULL);
	if (options->name != NULL)
		json_writer_text(&json, "name", span_text(options->name));
	if (options->namespace != NULL)
		json_writer_text(&json, "namespace", span_text(options->namespace));
	json_writer_array(&json, "grants");
	for (size_t i = 0; i < options->grant_count; i++)
		json_writer_text(&json, NULL, span_text(options->grants[i]));
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
}

static int work_add(const struct keys_options *options, struct keyring *keyring, struct buffer *out, struct error *err)
{
	const char *const standard = getenv("DELTABUCKET_DEFAULT_NAMESPACE");
	struct arena *const arena = arena_new(COMMAND_ARENA_BYTES);
	struct keyring_new_key key;
	struct keyring_made_key made;
	struct buffer request;
	buffer_init(&request, ANSWER_MAX_BYTES);
	print_request(options, &request);
	int outcome = admin_keys_parse(buffer_span(&request), standard != NULL ? standard : "main", arena, &key, err);
	if (outcome == 0)
		outcome = keyring_add(keyring, &key, arena, &made, err);
	if (outcome == 0)
		admin_keys_print_made(&made, out);
	buffer_release(&request);
	arena_free(arena);
	return outcome;
}

static int work_list(const struct keys_options *options, struct keyring *keyring, struct buffer *out, struct error *err)
{
	(void)options;
	struct arena *const arena = arena_new(COMMAND_ARENA_BYTES);
	struct key_record *keys = NULL;
	size_t count = 0;
	const int outcome = keyring_list(keyring, arena, &keys, &count, err);
	if (outcome == 0)
		admin_keys_print_list(keys, count, out);
	arena_free(arena);
	return outcome;
}

static int work_revoke(const struct keys_options *options, struct keyring *keyring, struct buffer *out, struct error *err)
{
	(void)out;
	return keyring_revoke(keyring, span_text(options->key_id), err);
}

static void print_member(const struct json_node *object, const char *label, const char *member)
{
	struct span text = {NULL, 0};
	json_node_text(json_node_member(object, member), &text);
	printf("%s%.*s", label, (int)text.len, (const char *)text.data);
}

static int print_added(const struct json_node *answer)
{
	print_member(answer, "key id     ", "key_id");
	print_member(answer, "\nsecret     ", "secret");
	print_member(answer, "\ntoken      ", "token");
	print_member(answer, "\nnamespace  ", "namespace");
	printf("\nSecret and token are shown this once.\n");
	return 0;
}

static int print_listed(const struct json_node *answer)
{
	const struct json_node *const keys = json_node_member(answer, "keys");
	for (size_t i = 0; i < json_node_count(keys); i++) {
		const struct json_node *const key = json_node_at(keys, i);
		const struct json_node *const grants = json_node_member(key, "grants");
		bool is_root = false;
		bool is_damaged = false;
		json_node_bool(json_node_member(key, "root"), &is_root);
		json_node_bool(json_node_member(key, "damaged"), &is_damaged);
		print_member(key, "", "key_id");
		print_member(key, "  ", "namespace");
		print_member(key, "  ", "created");
		print_member(key, is_root ? "  root  " : "  ", "name");
		for (size_t j = 0; j < json_node_count(grants); j++) {
			struct span grant = {NULL, 0};
			json_node_text(json_node_at(grants, j), &grant);
			printf("  %.*s", (int)grant.len, (const char *)grant.data);
		}
		printf(is_damaged ? "  damaged: it opens nothing; revoke it\n" : "\n");
	}
	return 0;
}

static int print_revoked(const struct json_node *answer)
{
	(void)answer;
	printf("revoked\n");
	return 0;
}

static const struct keys_verb verbs[] = {
	{"add", "POST", work_add, print_added},
	{"list", "GET", work_list, print_listed},
	{"revoke", "DELETE", work_revoke, print_revoked},
};

struct keys_run {
	const struct keys_verb *verb;
	const struct keys_options *options;
};

static int work_alone(void *owner, struct store *store, const struct data_folder *folder, struct buffer *out, struct error *err)
{
	const struct keys_run *const run = owner;
	struct keyring *const keyring = keyring_open(store, folder->master_key, err);
	const int outcome = keyring != NULL ? run->verb->work(run->options, keyring, out, err) : -1;
	keyring_close(keyring);
	return outcome;
}

static int run_verb(const struct keys_verb *verb, const struct keys_options *options, struct buffer *out, struct error *err)
{
	struct keys_run run = {verb, options};
	struct buffer target;
	struct buffer body;
	buffer_init(&target, 4096);
	buffer_init(&body, ANSWER_MAX_BYTES);
	buffer_add_text(&target, "/-/keys");
	if (options->key_id != NULL) {
		buffer_add_byte(&target, '/');
		encode_percent(span_text(options->key_id), false, &target);
	}
	if (verb->work == work_add)
		print_request(options, &body);
	const struct store_command command = {
		.data = options->data, .master_key = options->master_key, .work = work_alone, .owner = &run,
		.request = {.method = verb->method, .target = buffer_text(&target), .body = buffer_span(&body)},
	};
	const int outcome = store_command_run(&command, out, err);
	buffer_release(&body);
	buffer_release(&target);
	return outcome;
}

static int print_answer(const struct keys_verb *verb, const struct keys_options *options, const struct buffer *answer)
{
	struct error err = {0};
	if (options->json) {
		printf("%s\n", answer->len > 0 ? buffer_text(answer) : "{}");
		return 0;
	}
	struct json_node *const root = answer->len > 0 ? json_node_parse(buffer_span(answer), "the answer", &err) : NULL;
	const int outcome = verb->print(root);
	json_node_free(root);
	return outcome;
}

/* Where a flag's value goes; NULL for flags that repeat or take none. */
static const char **find_field(struct keys_options *options, const char *flag)
{
	const struct { const char *flag; const char **field; } fields[] = {{"--data", &options->data}, {"--master-key", &options->master_key},
		{"--name", &options->name}, {"--namespace", &options->namespace}};
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		if (strcmp(flag, fields[i].flag) == 0)
			return fields[i].field;
	if (strcmp(flag, "--grant") == 0 && options->grant_count < ARGUMENT_GRANTS_MAX)
		return &options->grants[options->grant_count++];
	return NULL;
}

static bool parse(int count, char **arguments, struct keys_options *options)
{
	options->data = getenv("DELTABUCKET_DATA");
	options->master_key = getenv("DELTABUCKET_MASTER_KEY");
	for (int i = 0; i < count; i++) {
		char *const equals = strncmp(arguments[i], "--", 2) == 0 ? strchr(arguments[i], '=') : NULL;
		if (equals != NULL)
			*equals = '\0';
		const char **const field = find_field(options, arguments[i]);
		if (field != NULL && equals == NULL && i + 1 >= count)
			return false;
		if (field != NULL)
			*field = equals != NULL ? equals + 1 : arguments[++i];
		else if (strcmp(arguments[i], "--json") == 0)
			options->json = true;
		else if (arguments[i][0] != '-' && options->verb == NULL)
			options->verb = arguments[i];
		else if (arguments[i][0] != '-' && options->key_id == NULL)
			options->key_id = arguments[i];
		else
			return false;
	}
	return options->verb != NULL && options->data != NULL;
}

static const struct keys_verb *find_verb(const struct keys_options *options)
{
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		if (strcmp(options->verb, verbs[i].name) == 0)
			return (verbs[i].work == work_revoke) == (options->key_id != NULL) ? &verbs[i] : NULL;
	return NULL;
}

int keys_command(int argument_count, char **arguments)
{
	struct keys_options options = {0};
	struct error err = {0};
	struct buffer answer;
	if (argument_count > 0 && (strcmp(arguments[0], "--help") == 0 || strcmp(arguments[0], "-h") == 0)) {
		fputs(usage, stdout);
		return 0;
	}
	const struct keys_verb *const verb = parse(argument_count, arguments, &options) ? find_verb(&options) : NULL;
	if (verb == NULL) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	buffer_init(&answer, ANSWER_MAX_BYTES);
	const int outcome = run_verb(verb, &options, &answer, &err);
	if (outcome == 0)
		print_answer(verb, &options, &answer);
	else
		fprintf(stderr, "deltabucketd: keys %s: %s\n", verb->name, err.text);
	if (answer.data != NULL)
		explicit_bzero(answer.data, answer.len);
	buffer_release(&answer);
	return outcome == 0 ? 0 : EXIT_FAILED;
}
