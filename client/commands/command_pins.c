/* `pins`: lists the pins of a run, adds one or removes one. The words after BUCKET/RUN select a row
 * of the table WORDS. With --json a pin is printed as the server's own object. */
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/remote/remote_json.h"
#include "wire/pin_message.h"

enum { ARENA_BYTES = 4 * 1024 * 1024 };

struct pins {
	struct session *session;
	struct remote *remote;
	struct run_name run;
};

static int command_pins_list(struct pins *pins, struct error *err);
static void say_pin(struct session *session, const struct pin_message *pin);
static int command_pins_add(struct pins *pins, struct error *err);
static int command_pins_remove(struct pins *pins, struct error *err);

static const struct {
	const char *word; /* NULL: no word is given */
	size_t arguments;
	int (*run)(struct pins *pins, struct error *err);
} WORDS[] = {
	{NULL, 1, command_pins_list}, {"add", 4, command_pins_add}, {"rm", 3, command_pins_remove}};

int command_pins(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	const char *const word = options->argument_count > 1 ? options->arguments[1] : NULL;
	struct pins pins = {.session = session};
	ASSERT(options->argument_count > 0);
	for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++) {
		const bool same = word == NULL
			? WORDS[i].word == NULL
			: WORDS[i].word != NULL && strcmp(word, WORDS[i].word) == 0;
		if (!same || options->argument_count != WORDS[i].arguments)
			continue;
		if (run_name_init(&pins.run, options->arguments[0], err) != 0) {
			session->usage = true;
			return -1;
		}
		pins.remote = session_connect(session, err);
		const int result = pins.remote == NULL ? -1 : WORDS[i].run(&pins, err);
		remote_free(pins.remote);
		run_name_release(&pins.run);
		return result;
	}
	return session_usage(session, err,
		"`pins BUCKET/RUN` lists pins; `pins BUCKET/RUN add NAME STEP` adds one; "
		"`pins BUCKET/RUN rm NAME` removes one");
}

static int command_pins_list(struct pins *pins, struct error *err)
{
	struct json_node *root = NULL;
	struct pin_message *entries = NULL;
	size_t count = 0;
	struct buffer text;
	struct arena *const arena = arena_new(ARENA_BYTES);
	char *const target = remote_json_target(&pins->run, "pins", NULL);
	const struct remote_json_request request = {.method = "GET", .target = target};
	buffer_init(&text, ARENA_BYTES);
	int result = remote_json_send(pins->remote, &request, &root, err);
	if (result == 0) {
		json_node_print(root, &text);
		result = pin_list_parse(buffer_span(&text), arena, &entries, &count, err);
		if (result != 0)
			err->kind = ERROR_UPSTREAM;
	}
	for (size_t i = 0; i < count && result == 0; i++) {
		output_object(
			&pins->session->output, json_node_at(json_node_member(root, "pins"), i));
		say_pin(pins->session, &entries[i]);
	}
	buffer_release(&text);
	json_node_free(root);
	arena_free(arena);
	free(target);
	return result;
}

static void say_pin(struct session *session, const struct pin_message *pin)
{
	char created[CLOCK_TEXT_BYTES];
	char expires[CLOCK_TEXT_BYTES + 8] = "";
	clock_format_iso(pin->created_ms, created);
	if (pin->expires_ms != 0) {
		memcpy(expires, "until ", sizeof("until "));
		clock_format_iso(pin->expires_ms, expires + strlen(expires));
	}
	output_result(&session->output, "%-32.*s  step %-8" PRIu64 "  %s  %s", (int)pin->name.len,
		(const char *)pin->name.data, pin->step, created, expires);
}

static int command_pins_add(struct pins *pins, struct error *err)
{
	const struct options *const options = pins->session->options;
	uint64_t step;
	ASSERT(options->argument_count == 4);
	if (!span_parse_u64(span_text(options->arguments[3]), &step))
		return session_usage(pins->session, err, "\"%s\" is not the number of a step",
			options->arguments[3]);
	struct json_node *made = NULL;
	struct buffer body;
	struct json_writer writer;
	buffer_init(&body, PIN_MESSAGE_MAX_BYTES);
	json_writer_init(&writer, &body);
	json_writer_object(&writer, NULL);
	json_writer_u64(&writer, "step", step);
	if (options->ttl.given)
		json_writer_u64(&writer, "ttl_s", options->ttl.value);
	json_writer_end(&writer, '}');
	char *const target = remote_json_target(&pins->run, "pins", options->arguments[2]);
	const struct remote_json_request request = {
		.method = "PUT", .target = target, .body = buffer_span(&body)};
	const int result = remote_json_send(pins->remote, &request, &made, err);
	if (result == 0) {
		output_object(&pins->session->output, made);
		output_say(&pins->session->output, "step %" PRIu64 " of %s is kept as %s", step,
			pins->run.text, options->arguments[2]);
	}
	json_node_free(made);
	buffer_release(&body);
	free(target);
	return result;
}

static int command_pins_remove(struct pins *pins, struct error *err)
{
	ASSERT(pins->session->options->argument_count == 3);
	const char *const name = pins->session->options->arguments[2];
	char *const target = remote_json_target(&pins->run, "pins", name);
	const struct remote_json_request request = {.method = "DELETE", .target = target};
	const int result = remote_json_send(pins->remote, &request, NULL, err);
	free(target);
	if (result != 0)
		return -1;
	struct output_line line;
	output_line_begin(&line, &pins->session->output, "unpinned");
	json_writer_text(&line.writer, "name", span_text(name));
	output_line_end(&line);
	output_say(&pins->session->output, "%s is not a pin any more", name);
	return 0;
}
