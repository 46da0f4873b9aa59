/* `damage`: what the server knows to be damaged, as a table of keys and steps. With --json it is
 * the server's own object. The command fails while anything is damaged, so that scripts notice. */
#include "base/quantity.h"
#include "client/commands/commands.h"

#include <inttypes.h>

#include "client/remote/remote_json.h"

static int say_damage(struct session *session, const struct json_node *root, struct error *err);
static void say_keys(struct session *session, const struct json_node *root);
static void say_steps(struct session *session, const struct json_node *root);
static void say_parts(struct session *session, const struct json_node *root);
static int say_end(const struct json_node *root, uint64_t chunks, struct error *err);
static void say_rest(struct session *session, const struct json_node *root, const char *list,
	const char *in_all);
static void say_scrub(struct session *session, const struct json_node *scrub);
static struct span text_of(const struct json_node *object, const char *name);
static uint64_t number_of(const struct json_node *object, const char *name);

int command_damage(struct session *session, struct error *err)
{
	struct json_node *root = NULL;
	const struct remote_json_request request = {.method = "GET", .target = "/-/damage"};
	struct remote *const remote = session_connect(session, err);
	if (remote == NULL)
		return -1;
	int result = remote_json_send(remote, &request, &root, err);
	if (result == 0)
		result = say_damage(session, root, err);
	json_node_free(root);
	remote_free(remote);
	return result;
}

static int say_damage(struct session *session, const struct json_node *root, struct error *err)
{
	uint64_t chunks;
	if (!json_node_u64(json_node_member(root, "chunks"), &chunks))
		return error_set(err, ERROR_UPSTREAM,
			"The server's answer does not tell how many chunks are damaged.");
	output_object(&session->output, root);
	say_keys(session, root);
	say_steps(session, root);
	say_parts(session, root);
	say_scrub(session, json_node_member(root, "scrub"));
	return chunks == 0 ? 0 : say_end(root, chunks, err);
}

static void say_keys(struct session *session, const struct json_node *root)
{
	const struct json_node *const keys = json_node_member(root, "keys");
	for (size_t i = 0; i < json_node_count(keys); i++) {
		const struct json_node *const key = json_node_at(keys, i);
		const struct span bucket = text_of(key, "bucket");
		const struct span name = text_of(key, "key");
		const struct span version = text_of(key, "version");
		bool is_current = false;
		json_node_bool(json_node_member(key, "current"), &is_current);
		output_result(&session->output, "key   %.*s/%.*s%s%.*s", (int)bucket.len,
			(const char *)bucket.data, (int)name.len, (const char *)name.data,
			is_current ? "" : "  version ", is_current ? 0 : (int)version.len,
			(const char *)version.data);
	}
	say_rest(session, root, "keys", "keys_in_all");
}

static void say_steps(struct session *session, const struct json_node *root)
{
	const struct json_node *const steps = json_node_member(root, "steps");
	for (size_t i = 0; i < json_node_count(steps); i++) {
		const struct json_node *const step = json_node_at(steps, i);
		const struct span bucket = text_of(step, "bucket");
		const struct span run = text_of(step, "run");
		const struct span form = text_of(step, "form");
		output_result(&session->output, "%-5.*s %.*s/%.*s  step %" PRIu64, (int)form.len,
			(const char *)form.data, (int)bucket.len, (const char *)bucket.data,
			(int)run.len, (const char *)run.data, number_of(step, "step"));
	}
	say_rest(session, root, "steps", "steps_in_all");
}

/* Of uploads that are not complete yet. */
static void say_parts(struct session *session, const struct json_node *root)
{
	const struct json_node *const parts = json_node_member(root, "parts");
	for (size_t i = 0; i < json_node_count(parts); i++) {
		const struct json_node *const part = json_node_at(parts, i);
		const struct span bucket = text_of(part, "bucket");
		const struct span key = text_of(part, "key");
		const struct span upload = text_of(part, "upload");
		output_result(&session->output, "upload %.*s/%.*s  part %" PRIu64 " of %.*s",
			(int)bucket.len, (const char *)bucket.data, (int)key.len,
			(const char *)key.data, number_of(part, "part"), (int)upload.len,
			(const char *)upload.data);
	}
	say_rest(session, root, "parts", "parts_in_all");
}

static int say_end(const struct json_node *root, uint64_t chunks, struct error *err)
{
	const char *const are = chunks == 1 ? "chunk is" : "chunks are";
	const uint64_t users = number_of(root, "keys_in_all") + number_of(root, "steps_in_all") +
		number_of(root, "parts_in_all");
	if (users == 0)
		return error_set(err, ERROR_CORRUPT,
			"%" PRIu64
			" stored %s damaged, and no key, step or upload uses that: gc gives"
			" its space back in time.",
			chunks, are);
	return error_set(err, ERROR_CORRUPT,
		"%" PRIu64
		" stored %s damaged. Send the bytes of what is listed here again, under any key:"
		" this repairs everything that uses them.",
		chunks, are);
}

static void say_rest(
	struct session *session, const struct json_node *root, const char *list, const char *in_all)
{
	const uint64_t listed = json_node_count(json_node_member(root, list));
	const uint64_t count = number_of(root, in_all);
	if (count > listed)
		output_result(&session->output, "and %" PRIu64 " more %s", count - listed, list);
}

static void say_scrub(struct session *session, const struct json_node *scrub)
{
	const struct json_node *const last = json_node_member(scrub, "last");
	const struct json_node *const round = json_node_member(scrub, "round");
	const struct span ended = text_of(last, "ended");
	char bytes[QUANTITY_TEXT_BYTES];
	char all[QUANTITY_TEXT_BYTES];
	quantity_format(number_of(round, "bytes"), bytes);
	quantity_format(number_of(round, "store_bytes"), all);
	if (round != NULL)
		output_result(&session->output, "scrub is at %s of %s", bytes, all);
	if (last == NULL)
		output_result(&session->output, "scrub has not been through yet");
	else
		output_result(&session->output, "scrub was last through at %.*s", (int)ended.len,
			(const char *)ended.data);
}

static struct span text_of(const struct json_node *object, const char *name)
{
	struct span text = {0};
	json_node_text(json_node_member(object, name), &text);
	return text;
}

static uint64_t number_of(const struct json_node *object, const char *name)
{
	uint64_t number = 0;
	json_node_u64(json_node_member(object, name), &number);
	return number;
}
