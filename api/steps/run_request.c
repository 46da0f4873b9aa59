#include "api/steps/run_request.h"

#include "base/format/json_node.h"

static int read_request(const struct json_node *root, struct arena *arena, struct run_request *out,
	struct error *err);
static int read_number(const struct json_node *root, const char *name, bool *out_has,
	uint64_t *out_value, struct error *err);
static int read_fork(const struct json_node *root, struct arena *arena, struct run_request *out,
	struct error *err);

int run_request_parse(
	struct span json, struct arena *arena, struct run_request *out, struct error *err)
{
	*out = (struct run_request){0};
	if (json.len == 0)
		return 0;
	struct json_node *const root = json_node_parse(json, "The request body", err);
	if (root == NULL)
		return -1;
	const int result = read_request(root, arena, out, err);
	json_node_free(root);
	return result;
}

static int read_request(const struct json_node *root, struct arena *arena, struct run_request *out,
	struct error *err)
{
	if (!json_node_is_object(root))
		return error_set(err, ERROR_INVALID, "The request body must be a JSON object.");
	if (read_number(root, "keep_steps", &out->has_keep_steps, &out->keep_steps, err) != 0)
		return -1;
	if (read_number(root, "expected_epoch", &out->has_expected_epoch, &out->expected_epoch,
		    err) != 0)
		return -1;
	return read_fork(root, arena, out, err);
}

static int read_number(const struct json_node *root, const char *name, bool *out_has,
	uint64_t *out_value, struct error *err)
{
	const struct json_node *const node = json_node_member(root, name);
	*out_has = node != NULL;
	/* The catalog has 63 bits for numbers. */
	if (node != NULL && (!json_node_u64(node, out_value) || *out_value > INT64_MAX))
		return error_set(err, ERROR_INVALID,
			"The member %s must be a whole number from 0 to 9223372036854775807.",
			name);
	return 0;
}

static int read_fork(const struct json_node *root, struct arena *arena, struct run_request *out,
	struct error *err)
{
	const struct json_node *const fork = json_node_member(root, "fork");
	struct span run;
	bool has_step;
	out->has_fork = fork != NULL;
	if (fork == NULL)
		return 0;
	if (!json_node_text(json_node_member(fork, "run"), &run))
		return error_set(err, ERROR_INVALID,
			"The member fork must be an object with the text run and the number step.");
	out->fork_run = arena_copy(arena, run);
	if (read_number(fork, "step", &has_step, &out->fork_step, err) != 0)
		return -1;
	return has_step
		? 0
		: error_set(err, ERROR_INVALID,
			  "The member fork must have the number step, the step to begin at.");
}
