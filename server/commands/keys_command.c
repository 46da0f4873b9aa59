/* With a running server each command is a request to its admin routes. Without one it makes the
 * calls that those routes make. Both ways give the same JSON, from which the text is printed. */
#include "server/commands/keys_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/admin/admin_keys.h"
#include "base/encode.h"
#include "base/format/json_node.h"
#include "base/near_word.h"
#include "server/commands/command_words.h"
#include "server/commands/store_command.h"

enum { ANSWER_MAX_BYTES = 32 * 1024 * 1024, COMMAND_ARENA_BYTES = 256 * 1024 * 1024 };

struct keys_options {
	const char *data;
	const char *master_key;
	const char *name;
	const char *namespace;
	struct command_list grants;
	const char *key_id;
	bool json;
};

struct keys_verb {
	const char *name;
	const char *method;
	int (*work)(const struct keys_options *options, struct store *store,
		struct keyring *keyring, struct buffer *out, struct error *err);
	int (*print)(const struct json_node *answer);
};

static const char usage[] =
	"usage: deltabucketd keys add [FLAGS]             make a key; its secret and token are shown only once\n"
	"       deltabucketd keys list [FLAGS]\n"
	"       deltabucketd keys revoke KEY_ID [FLAGS]\n\n"
	"A key without grants may do everything in its account (the namespace); a key with grants may do only\n"
	"what they name. Works with a running server and without one, and takes effect at once.\n\n"
	"examples:\n"
	"  deltabucketd keys add --data ./data --name workers --grant models/policy/=read,list\n"
	"  deltabucketd keys add --data ./data --name trainer --grant models=read,write,list\n"
	"  deltabucketd keys revoke --data ./data KEY_ID\n\n"
	"flags:\n"
	"  --data DIR         the server's data folder (DELTABUCKET_DATA)\n"
	"  --master-key FILE  as for the server (DELTABUCKET_MASTER_KEY)\n"
	"  --json             one JSON object on stdout\n"
	"  --help, -h         this text\n"
	"flags of add:\n"
	"  --name NAME        what the key is for\n"
	"  --namespace NS     the account that it belongs to\n"
	"  --grant BUCKET[/PREFIX]=read,write,list,admin\n"
	"                     what it may do; repeats\n"
	"  --grant metrics    it may read /-/metrics\n";

struct keys_run {
	const struct keys_verb *verb;
	const struct keys_options *options;
};

static const struct keys_verb *parse(
	int count, char **words, struct keys_options *options, bool *out_help, struct error *err);
static const struct keys_verb *check(
	struct keys_options *options, const struct command_list *arguments, struct error *err);
static const struct keys_verb *find_verb(const char *word, struct error *err);
static int check_key(const struct keys_options *options, struct error *err);
static int parse_key(const struct keys_options *options, struct arena *arena,
	struct keyring_new_key *out, struct error *err);
static const char *default_namespace(void);
static int keys_command_add(const struct keys_options *options, struct store *store,
	struct keyring *keyring, struct buffer *out, struct error *err);
static void print_request(const struct keys_options *options, struct buffer *out);
static int print_added(const struct json_node *answer);
static void print_member(const struct json_node *object, const char *label, const char *member);
static void print_grants(const struct json_node *answer);
static int keys_command_list(const struct keys_options *options, struct store *store,
	struct keyring *keyring, struct buffer *out, struct error *err);
static int print_listed(const struct json_node *answer);
static int keys_command_revoke(const struct keys_options *options, struct store *store,
	struct keyring *keyring, struct buffer *out, struct error *err);
static int print_revoked(const struct json_node *answer);
static int run_verb(const struct keys_verb *verb, const struct keys_options *options,
	struct buffer *out, struct error *err);
static int keys_command_work(void *owner, struct store *store, const struct data_folder *folder,
	struct buffer *out, struct error *err);
static int print_answer(const struct keys_verb *verb, const struct keys_options *options,
	const struct buffer *answer);
static void print_revoked_json(const struct keys_options *options);
static void print_warnings(const struct json_node *answer);
static void fail(
	const struct keys_verb *verb, const struct keys_options *options, const struct error *err);

static const struct keys_verb verbs[] = {
	{"add", "POST", keys_command_add, print_added},
	{"list", "GET", keys_command_list, print_listed},
	{"revoke", "DELETE", keys_command_revoke, print_revoked},
};

int keys_command(int argument_count, char **arguments)
{
	struct keys_options options = {0};
	struct error err = {0};
	struct buffer answer;
	bool help = false;
	const struct keys_verb *const verb =
		parse(argument_count, arguments, &options, &help, &err);
	if (verb == NULL)
		return command_words_refuse("keys", usage, help, options.json, &err);
	buffer_init(&answer, ANSWER_MAX_BYTES);
	const int outcome = run_verb(verb, &options, &answer, &err);
	if (outcome == 0)
		print_answer(verb, &options, &answer);
	else
		fail(verb, &options, &err);
	if (answer.data != NULL)
		explicit_bzero(answer.data, answer.len);
	buffer_release(&answer);
	return outcome == 0 ? 0 : COMMAND_FAILED;
}

static const struct keys_verb *parse(
	int count, char **words, struct keys_options *options, bool *out_help, struct error *err)
{
	const struct command_flag flags[] = {
		{.name = "--data", .variable = "DELTABUCKET_DATA", .text = &options->data},
		{.name = "--master-key",
			.variable = "DELTABUCKET_MASTER_KEY",
			.text = &options->master_key},
		{.name = "--name", .text = &options->name},
		{.name = "--namespace", .text = &options->namespace},
		{.name = "--grant", .list = &options->grants},
		{.name = "--json", .switched = &options->json}};
	struct command_given given;
	if (command_words_read(
		    flags, sizeof(flags) / sizeof(flags[0]), count, words, &given, err) != 0)
		return NULL;
	*out_help = given.help;
	return given.help ? NULL : check(options, &given.arguments, err);
}

static const struct keys_verb *check(
	struct keys_options *options, const struct command_list *arguments, struct error *err)
{
	error_set(err, ERROR_INVALID, "name what to do: add, list or revoke");
	const struct keys_verb *const verb =
		arguments->count > 0 ? find_verb(arguments->items[0], err) : NULL;
	if (verb == NULL)
		return NULL;
	const size_t wanted = verb->work == keys_command_revoke ? 2 : 1;
	options->key_id = wanted == 2 && arguments->count == 2 ? arguments->items[1] : NULL;
	if (arguments->count != wanted)
		error_set(err, ERROR_INVALID,
			wanted == 2 ? "name the key: keys %s KEY_ID" : "keys %s takes no argument",
			verb->name);
	else if (command_words_need_data(options->data, err) == 0 &&
		(verb->work != keys_command_add || check_key(options, err) == 0))
		return verb;
	return NULL;
}

static const struct keys_verb *find_verb(const char *word, struct error *err)
{
	struct near_word near;
	char hint[NEAR_WORD_HINT_BYTES];
	near_word_begin(&near, span_text(word));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(word, verbs[i].name) == 0)
			return &verbs[i];
		near_word_offer(&near, verbs[i].name);
	}
	error_set(err, ERROR_INVALID, "there is no command `keys %.60s`%s", word,
		near.best != NULL ? near_word_hint(&near, hint) : "; use add, list or revoke");
	return NULL;
}

/* Judges the words before a store is opened, or made. A running server may know another default
 * namespace, and then judges once more. */
static int check_key(const struct keys_options *options, struct error *err)
{
	struct keyring_new_key key;
	struct arena *const arena = arena_new(COMMAND_ARENA_BYTES);
	const int outcome = parse_key(options, arena, &key, err);
	arena_free(arena);
	return outcome;
}

static int parse_key(const struct keys_options *options, struct arena *arena,
	struct keyring_new_key *out, struct error *err)
{
	struct buffer request;
	buffer_init(&request, ANSWER_MAX_BYTES);
	print_request(options, &request);
	const int outcome =
		admin_keys_parse(buffer_span(&request), default_namespace(), arena, out, err);
	buffer_release(&request);
	return outcome;
}

static const char *default_namespace(void)
{
	const char *const given = getenv("DELTABUCKET_DEFAULT_NAMESPACE");
	return given != NULL ? given : "main";
}

static int keys_command_add(const struct keys_options *options, struct store *store,
	struct keyring *keyring, struct buffer *out, struct error *err)
{
	struct arena *const arena = arena_new(COMMAND_ARENA_BYTES);
	struct admin_made_key made = {.warnings = NULL};
	int outcome = parse_key(options, arena, &made.key, err);
	if (outcome == 0)
		outcome = admin_keys_make(store, keyring, default_namespace(), &made, arena, err);
	if (outcome == 0)
		admin_keys_print_made(&made, out);
	arena_free(arena);
	return outcome;
}

/* The request that makes a key. */
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
	for (size_t i = 0; i < options->grants.count; i++)
		json_writer_text(&json, NULL, span_text(options->grants.items[i]));
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
}

static int print_added(const struct json_node *answer)
{
	print_member(answer, "key id     ", "key_id");
	print_member(answer, "  (AWS_ACCESS_KEY_ID)\nsecret     ", "secret");
	print_member(answer, "  (AWS_SECRET_ACCESS_KEY)\ntoken      ", "token");
	print_member(answer, "  (DELTABUCKET_TOKEN, HF_TOKEN)\nnamespace  ", "namespace");
	print_grants(answer);
	printf("\nSecret and token are shown only once. In brackets: the variables that take them. On another machine: `deltabucket login`.\n");
	return 0;
}

static void print_member(const struct json_node *object, const char *label, const char *member)
{
	struct span text = {NULL, 0};
	json_node_text(json_node_member(object, member), &text);
	printf("%s%.*s", label, (int)text.len, (const char *)text.data);
}

static void print_grants(const struct json_node *answer)
{
	const struct json_node *const grants = json_node_member(answer, "grants");
	for (size_t i = 0; i < json_node_count(grants); i++) {
		struct span grant = {NULL, 0};
		json_node_text(json_node_at(grants, i), &grant);
		printf("\ngrant      %.*s", (int)grant.len, (const char *)grant.data);
	}
}

static int keys_command_list(const struct keys_options *options, struct store *store,
	struct keyring *keyring, struct buffer *out, struct error *err)
{
	(void)options;
	(void)store;
	struct arena *const arena = arena_new(COMMAND_ARENA_BYTES);
	struct key_record *keys = NULL;
	size_t count = 0;
	const int outcome = keyring_list(keyring, arena, &keys, &count, err);
	if (outcome == 0)
		admin_keys_print_list(keys, count, out);
	arena_free(arena);
	return outcome;
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

static int keys_command_revoke(const struct keys_options *options, struct store *store,
	struct keyring *keyring, struct buffer *out, struct error *err)
{
	(void)store;
	(void)out;
	return keyring_revoke(keyring, span_text(options->key_id), err);
}

static int print_revoked(const struct json_node *answer)
{
	(void)answer;
	printf("revoked\n");
	return 0;
}

static int run_verb(const struct keys_verb *verb, const struct keys_options *options,
	struct buffer *out, struct error *err)
{
	ASSERT(verb != NULL);
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
	if (verb->work == keys_command_add)
		print_request(options, &body);
	const struct store_command command = {
		.data = options->data,
		.master_key = options->master_key,
		.makes_store = verb->work == keys_command_add,
		.work = keys_command_work,
		.owner = &run,
		.request = {.method = verb->method,
			.target = buffer_text(&target),
			.body = buffer_span(&body)},
	};
	const int outcome = store_command_run(&command, out, err);
	buffer_release(&body);
	buffer_release(&target);
	return outcome;
}

static int keys_command_work(void *owner, struct store *store, const struct data_folder *folder,
	struct buffer *out, struct error *err)
{
	const struct keys_run *const run = owner;
	struct keyring *const keyring = keyring_open(store, folder->master_key, err);
	const int outcome =
		keyring != NULL ? run->verb->work(run->options, store, keyring, out, err) : -1;
	keyring_close(keyring);
	return outcome;
}

static int print_answer(const struct keys_verb *verb, const struct keys_options *options,
	const struct buffer *answer)
{
	struct error err = {0};
	int outcome = 0;
	struct json_node *const root =
		answer->len > 0 ? json_node_parse(buffer_span(answer), "the answer", &err) : NULL;
	print_warnings(root);
	if (options->json && answer->len > 0)
		printf("%s\n", buffer_text(answer));
	else if (options->json)
		print_revoked_json(options);
	else
		outcome = verb->print(root);
	json_node_free(root);
	return outcome;
}

/* The server's answer to a revocation has no body. */
static void print_revoked_json(const struct keys_options *options)
{
	struct buffer line;
	struct json_writer writer;
	buffer_init(&line, ANSWER_MAX_BYTES);
	json_writer_init(&writer, &line);
	json_writer_object(&writer, NULL);
	json_writer_text(&writer, "revoked", span_text(options->key_id));
	json_writer_end(&writer, '}');
	printf("%s\n", buffer_text(&line));
	buffer_release(&line);
}

/* Prints to stderr, also with --json. */
static void print_warnings(const struct json_node *answer)
{
	const struct json_node *const warnings = json_node_member(answer, "warnings");
	for (size_t i = 0; i < json_node_count(warnings); i++) {
		struct span text = {NULL, 0};
		json_node_text(json_node_at(warnings, i), &text);
		fprintf(stderr, "deltabucketd: %.*s\n", (int)text.len, (const char *)text.data);
	}
}

static void fail(
	const struct keys_verb *verb, const struct keys_options *options, const struct error *err)
{
	char what[32];
	snprintf(what, sizeof(what), "keys %s", verb->name);
	command_words_fail(what, options->json, err);
}
