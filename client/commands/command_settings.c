/* `runs settings BUCKET/RUN [KEY=VALUE...]`: shows or changes the settings of a run. Only the
 * server knows which settings there are and which values they take, so that clients need no change
 * for a new one. Here a value only gets its JSON type. */
#include "client/commands/command_settings.h"

#include <stdlib.h>
#include <string.h>

#include "client/remote/remote_json.h"

enum { BODY_MAX_BYTES = 16 * 1024, KEY_MAX_BYTES = 64 };

static int print_changes(struct session *session, struct buffer *out, struct error *err);
static void add_value(struct json_writer *writer, const char *key, struct span value);
static int ask(struct session *session, const struct run_name *run, struct span changes,
	struct error *err);
static void say_settings(struct session *session, const struct json_node *settings);
static bool changes_retention(const struct options *options);

int command_settings(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	struct run_name run;
	struct buffer changes;
	ASSERT(options->argument_count >= 2);
	if (run_name_init(&run, options->arguments[1], err) != 0) {
		session->usage = true;
		return -1;
	}
	buffer_init(&changes, BODY_MAX_BYTES);
	int result = options->argument_count > 2 ? print_changes(session, &changes, err) : 0;
	if (result == 0)
		result = ask(session, &run, buffer_span(&changes), err);
	buffer_release(&changes);
	run_name_release(&run);
	return result;
}

static int print_changes(struct session *session, struct buffer *out, struct error *err)
{
	const struct options *const options = session->options;
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	for (size_t i = 2; i < options->argument_count; i++) {
		const char *const equals = strchr(options->arguments[i], '=');
		char key[KEY_MAX_BYTES];
		const size_t len = equals == NULL ? 0 : (size_t)(equals - options->arguments[i]);
		if (len == 0 || len >= sizeof(key))
			return session_usage(session, err, "a setting is KEY=VALUE, not \"%s\"",
				options->arguments[i]);
		memcpy(key, options->arguments[i], len);
		key[len] = '\0';
		add_value(&writer, key, span_text(equals + 1));
	}
	json_writer_end(&writer, '}');
	return buffer_check(out, "the settings", err);
}

static void add_value(struct json_writer *writer, const char *key, struct span value)
{
	uint64_t number;
	if (span_parse_u64(value, &number))
		json_writer_u64(writer, key, number);
	else if (span_equal_text(value, "true") || span_equal_text(value, "false"))
		json_writer_bool(writer, key, span_equal_text(value, "true"));
	else if (span_equal_text(value, "null"))
		json_writer_null(writer, key);
	else
		json_writer_text(writer, key, value);
}

static int ask(
	struct session *session, const struct run_name *run, struct span changes, struct error *err)
{
	struct remote *const remote = session_connect(session, err);
	if (remote == NULL)
		return -1;
	char *const below = remote_json_target(run, "settings", NULL);
	const struct remote_json_request request = {
		.method = changes.len > 0 ? "PUT" : "GET",
		.target = changes.len > 0 ? below : run->target,
		.body = changes,
	};
	struct json_node *answer = NULL;
	int result = remote_json_send(remote, &request, &answer, err);
	const struct json_node *const settings = json_node_member(answer, "settings");
	if (result == 0 && !json_node_is_object(settings))
		result = error_set(err, ERROR_UPSTREAM, "the server's answer holds no settings");
	if (result == 0)
		say_settings(session, settings);
	if (result == 0 && changes_retention(session->options))
		output_say(&session->output,
			"older steps are removed in the background: within 15 minutes those that "
			"readers may be fetching, later those that are pinned or held");
	json_node_free(answer);
	free(below);
	remote_free(remote);
	return result;
}

static void say_settings(struct session *session, const struct json_node *settings)
{
	void *cursor = NULL;
	struct span name;
	const struct json_node *value;
	output_fn *const tell = session->options->argument_count > 2 ? output_say : output_result;
	output_object(&session->output, settings);
	while (json_node_each(settings, &cursor, &name, &value)) {
		struct buffer text;
		buffer_init(&text, BODY_MAX_BYTES);
		json_node_print(value, &text);
		tell(&session->output, "%.*s = %s", (int)name.len, (const char *)name.data,
			buffer_text(&text));
		buffer_release(&text);
	}
}

static bool changes_retention(const struct options *options)
{
	for (size_t i = 2; i < options->argument_count; i++)
		if (strncmp(options->arguments[i], "keep_steps=", 11) == 0)
			return true;
	return false;
}
