/* `keys`: lists, makes and revokes keys on the server's admin face. With --json a key is printed as
 * the server's own object, so that members of newer servers are not lost. */
#include "client/commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "client/remote/remote_json.h"

enum { BODY_MAX_BYTES = 64 * 1024, TARGET_MAX_BYTES = 1024 };

static int command_keys_list(struct session *session, struct remote *remote, struct error *err);
static void say_key(struct session *session, const struct json_node *key);
static struct span text_of(const struct json_node *object, const char *name);
static int command_keys_add(struct session *session, struct remote *remote, struct error *err);
static void print_order(const struct options *options, struct buffer *out);
static void say_warnings(struct session *session, const struct json_node *made);
static int command_keys_revoke(struct session *session, struct remote *remote, struct error *err);

static const struct {
	const char *word; /* NULL: no word is given */
	size_t arguments;
	int (*run)(struct session *session, struct remote *remote, struct error *err);
} WORDS[] = {
	{NULL, 0, command_keys_list}, {"add", 1, command_keys_add}, {"rm", 2, command_keys_revoke}};

int command_keys(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	const char *const word = options->argument_count > 0 ? options->arguments[0] : NULL;
	for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++) {
		const bool same = word == NULL
			? WORDS[i].word == NULL
			: WORDS[i].word != NULL && strcmp(word, WORDS[i].word) == 0;
		if (!same || options->argument_count != WORDS[i].arguments)
			continue;
		struct remote *const remote = session_connect(session, err);
		const int result = remote == NULL ? -1 : WORDS[i].run(session, remote, err);
		remote_free(remote);
		return result;
	}
	return session_usage(session, err,
		"`keys` lists keys; `keys add` makes one; `keys rm KEY_ID` revokes one");
}

static int command_keys_list(struct session *session, struct remote *remote, struct error *err)
{
	struct json_node *root;
	const struct remote_json_request request = {.method = "GET", .target = "/-/keys"};
	if (remote_json_send(remote, &request, &root, err) != 0)
		return -1;
	const struct json_node *const keys = json_node_member(root, "keys");
	for (size_t i = 0; i < json_node_count(keys); i++)
		say_key(session, json_node_at(keys, i));
	json_node_free(root);
	return 0;
}

static void say_key(struct session *session, const struct json_node *key)
{
	const struct span id = text_of(key, "key_id");
	const struct span name = text_of(key, "name");
	const struct span space = text_of(key, "namespace");
	const struct json_node *const grants = json_node_member(key, "grants");
	struct buffer text;
	bool is_damaged = false;
	output_object(&session->output, key);
	json_node_bool(json_node_member(key, "damaged"), &is_damaged);
	buffer_init(&text, BODY_MAX_BYTES);
	if (is_damaged)
		buffer_add_text(&text, "damaged: it opens nothing; remove it");
	for (size_t i = 0; i < json_node_count(grants); i++) {
		struct span grant = {0};
		json_node_text(json_node_at(grants, i), &grant);
		buffer_add_text(&text, i == 0 ? "" : " ");
		buffer_add_span(&text, grant);
	}
	output_result(&session->output, "%-24.*s %-16.*s %-20.*s %s", (int)id.len,
		(const char *)id.data, (int)space.len, (const char *)space.data, (int)name.len,
		(const char *)name.data, buffer_text(&text));
	buffer_release(&text);
}

static struct span text_of(const struct json_node *object, const char *name)
{
	struct span text = {0};
	json_node_text(json_node_member(object, name), &text);
	return text;
}

static int command_keys_add(struct session *session, struct remote *remote, struct error *err)
{
	struct buffer body;
	struct json_node *made = NULL;
	buffer_init(&body, BODY_MAX_BYTES);
	print_order(session->options, &body);
	const struct remote_json_request request = {
		.method = "POST", .target = "/-/keys", .body = buffer_span(&body)};
	int result = buffer_check(&body, "the key's description", err);
	if (result == 0)
		result = remote_json_send(remote, &request, &made, err);
	if (result == 0) {
		const struct span id = text_of(made, "key_id");
		const struct span secret = text_of(made, "secret");
		const struct span token = text_of(made, "token");
		output_object(&session->output, made);
		say_warnings(session, made);
		output_result(&session->output,
			"key id  %.*s  (AWS_ACCESS_KEY_ID)\nsecret  %.*s  (AWS_SECRET_ACCESS_KEY)\n"
			"token   %.*s  (DELTABUCKET_TOKEN, HF_TOKEN)",
			(int)id.len, (const char *)id.data, (int)secret.len,
			(const char *)secret.data, (int)token.len, (const char *)token.data);
		output_say(&session->output,
			"They are shown only this once. In brackets: the variables that take them.");
	}
	json_node_free(made);
	buffer_release(&body);
	return result;
}

static void print_order(const struct options *options, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	if (options->name != NULL)
		json_writer_text(&writer, "name", span_text(options->name));
	if (options->namespace != NULL)
		json_writer_text(&writer, "namespace", span_text(options->namespace));
	if (options->grants.count > 0) {
		json_writer_array(&writer, "grants");
		for (size_t i = 0; i < options->grants.count; i++)
			json_writer_text(&writer, NULL, span_text(options->grants.items[i]));
		json_writer_end(&writer, ']');
	}
	json_writer_end(&writer, '}');
}

static void say_warnings(struct session *session, const struct json_node *made)
{
	const struct json_node *const warnings = json_node_member(made, "warnings");
	for (size_t i = 0; i < json_node_count(warnings); i++) {
		struct span text = {0};
		json_node_text(json_node_at(warnings, i), &text);
		output_note(&session->output, "%.*s", (int)text.len, (const char *)text.data);
	}
}

static int command_keys_revoke(struct session *session, struct remote *remote, struct error *err)
{
	ASSERT(session->options->argument_count == 2);
	const char *const id = session->options->arguments[1];
	struct buffer target;
	buffer_init(&target, TARGET_MAX_BYTES);
	buffer_add_text(&target, "/-/keys/");
	encode_percent(span_slice(span_text(id), 0, 255), false, &target);
	const struct remote_json_request request = {
		.method = "DELETE", .target = buffer_text(&target)};
	const int result = remote_json_send(remote, &request, NULL, err);
	buffer_release(&target);
	if (result != 0)
		return -1;
	struct output_line line;
	output_line_begin(&line, &session->output, "revoked");
	json_writer_text(&line.writer, "key_id", span_text(id));
	output_line_end(&line);
	output_say(&session->output, "revoked %s", id);
	return 0;
}
