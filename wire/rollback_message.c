#include "wire/rollback_message.h"

#include "wire/step_message_internal.h"

int rollback_message_parse(struct span json, struct rollback_message *out, struct error *err)
{
	struct json_node *const root = json_node_parse(json, "The rollback", err);
	if (root == NULL)
		return -1;
	*out = (struct rollback_message){.is_on = true};
	const int result = message_u64(root, "step", &out->step, err);
	json_node_free(root);
	return result == 0 ? 0 : error_wrap(err, "The rollback is refused");
}

int rollback_message_read(
	const struct json_node *answer, struct rollback_message *out, struct error *err)
{
	const struct json_node *const member = json_node_member(answer, "rollback");
	*out = (struct rollback_message){.is_on = !message_absent(answer, "rollback")};
	if (!out->is_on)
		return 0;
	return message_u64(member, "step", &out->step, err) != 0
		? -1
		: message_time(member, "created", &out->created_ms, err);
}

void rollback_message_print(const struct rollback_message *rollback, struct json_writer *writer)
{
	if (!rollback->is_on)
		return;
	json_writer_object(writer, "rollback");
	json_writer_u64(writer, "step", rollback->step);
	message_print_time(writer, "created", rollback->created_ms);
	json_writer_end(writer, '}');
}
