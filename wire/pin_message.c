/* One function reads a pin and one prints it; the list of pins uses the same two. Requests have
 * only some of the members, and answers have all. */
#include "wire/pin_message.h"

#include "wire/replica_message.h"
#include "wire/step_message_internal.h"

enum { TTL_MAX_S = 100 * 365 * 24 * 60 * 60ll };

static int read_pin(const struct json_node *object, struct arena *arena, struct pin_message *out,
	struct error *err);
static void print_pin(const struct pin_message *pin, struct json_writer *writer);
static int read_list(const struct json_node *root, struct arena *arena, struct pin_message **out,
	size_t *out_count, struct error *err);

int pin_message_parse(
	struct span json, struct arena *arena, struct pin_message *out, struct error *err)
{
	struct json_node *const root = json_node_parse(json, "The pin", err);
	if (root == NULL)
		return -1;
	const int result = read_pin(root, arena, out, err);
	json_node_free(root);
	return result == 0 ? 0 : error_wrap(err, "The pin is refused");
}

void pin_message_print(const struct pin_message *pin, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	print_pin(pin, &writer);
}

int pin_list_parse(struct span json, struct arena *arena, struct pin_message **out,
	size_t *out_count, struct error *err)
{
	struct json_node *const root = json_node_parse(json, "the list of pins", err);
	if (root == NULL)
		return -1;
	const int result = read_list(root, arena, out, out_count, err);
	json_node_free(root);
	return result == 0 ? 0 : error_wrap(err, "the list of pins is refused");
}

void pin_list_print(const struct pin_message *pins, size_t count, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_array(&writer, "pins");
	for (size_t i = 0; i < count; i++)
		print_pin(&pins[i], &writer);
	json_writer_end(&writer, ']');
	json_writer_end(&writer, '}');
}

static int read_pin(const struct json_node *object, struct arena *arena, struct pin_message *out,
	struct error *err)
{
	*out = (struct pin_message){.step = 0};
	if (!json_node_is_object(object))
		return error_set(err, ERROR_INVALID, "it must be a JSON object.");
	if (message_u64(object, "step", &out->step, err) != 0)
		return -1;
	if (!message_absent(object, "ttl_s") && message_u64(object, "ttl_s", &out->ttl_s, err) != 0)
		return -1;
	if (out->ttl_s > (uint64_t)TTL_MAX_S)
		return error_set(err, ERROR_INVALID, "\"ttl_s\" must be at most a hundred years.");
	if (message_optional_text(object, "name", REPLICA_ID_MAX_BYTES, arena, &out->name, err) !=
		0)
		return -1;
	if (message_time(object, "created", &out->created_ms, err) != 0)
		return -1;
	return message_time(object, "expires", &out->expires_ms, err);
}

static void print_pin(const struct pin_message *pin, struct json_writer *writer)
{
	json_writer_object(writer, NULL);
	json_writer_text(writer, "name", pin->name);
	json_writer_u64(writer, "step", pin->step);
	message_print_time(writer, "created", pin->created_ms);
	if (pin->expires_ms != 0)
		message_print_time(writer, "expires", pin->expires_ms);
	else
		json_writer_null(writer, "expires");
	json_writer_end(writer, '}');
}

static int read_list(const struct json_node *root, struct arena *arena, struct pin_message **out,
	size_t *out_count, struct error *err)
{
	const struct json_node *list;
	if (message_array(root, "pins", PINS_OF_RUN_MAX, &list, err) != 0)
		return -1;
	*out_count = json_node_count(list);
	*out = arena_take_array(arena, *out_count + 1, sizeof(**out));
	if (*out == NULL)
		return message_too_large_for_arena(err);
	for (size_t i = 0; i < *out_count; i++)
		if (read_pin(json_node_at(list, i), arena, &(*out)[i], err) != 0)
			return error_wrap(err, "pins[%zu]", i);
	return 0;
}
