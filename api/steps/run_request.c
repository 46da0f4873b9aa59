#include "api/steps/run_request.h"

#include "base/json_node.h"

static int read_number(const struct json_node *const root, const char *const name, bool *const out_has, uint64_t *const out_value,
	struct error *const err)
{
	const struct json_node *const node = json_node_member(root, name);
	*out_has = node != NULL;
	/* The catalog keeps numbers in 63 bits. */
	if (node != NULL && (!json_node_u64(node, out_value) || *out_value > INT64_MAX))
		return error_set(err, ERROR_INVALID, "The member %s must be a whole number from 0 to 9223372036854775807.", name);
	return 0;
}

int run_request_parse(const struct span json, struct run_request *const out, struct error *const err)
{
	*out = (struct run_request){0};
	if (json.len == 0)
		return 0;
	struct json_node *const root = json_node_parse(json, "the request body", err);
	if (root == NULL)
		return -1;
	int result;
	if (!json_node_is_object(root))
		result = error_set(err, ERROR_INVALID, "The request body must be a JSON object.");
	else if (read_number(root, "keep_steps", &out->has_keep_steps, &out->keep_steps, err) != 0)
		result = -1;
	else
		result = read_number(root, "expected_epoch", &out->has_expected_epoch, &out->expected_epoch, err);
	json_node_free(root);
	return result;
}
