/* A path may name a file of a view that is still to be made. So the request first waits for such
 * views, path by path, and then finds the files (tree_call.h). A path that the caller may not read
 * is treated like one that does not exist. */
#include "api/hub/handlers.h"

#include "api/auth/authorise.h"
#include "api/exchange/json_reply.h"
#include "api/hub/tree_call.h"
#include "api/objects/view_wait.h"

enum {
	PATHS_MAX = 1000,
	VALUES_MAX = 4 * PATHS_MAX,
	REQUEST_MAX_BYTES = 8 * 1024 * 1024,
	STRANGER_MAX_BYTES = 1024 * 1024,
	REPLY_MAX_BYTES = 16 * 1024 * 1024
};

struct paths_info {            /* the exchange's state */
	struct tree_call call; /* first */
	struct tree_find_params params;
	struct anchor_wait view;
	size_t made; /* so many first paths need no view any more */
};

static int paths_info_look(struct exchange *exchange, struct tree *out, struct error *err);
static enum next paths_info_reply(struct exchange *exchange, const struct tree *tree);
static int read_request(struct exchange *exchange, struct tree_find_params *out, struct error *err);
static int choose(struct exchange *exchange, const struct json_node *array,
	struct tree_find_params *out, struct error *err);
static void paths_info_release(struct exchange *exchange);
static enum next find_files(struct exchange *exchange);

enum next paths_info_begin(struct exchange *exchange)
{
	return exchange_accept_small(
		exchange, exchange->principal != NULL ? REQUEST_MAX_BYTES : STRANGER_MAX_BYTES);
}

enum next paths_info_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct paths_info *const state = arena_take(exchange->arena, sizeof(*state));
	if (state == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return exchange_fail(exchange, &err);
	}
	*state = (struct paths_info){.call = {.look = paths_info_look, .reply = paths_info_reply},
		.params = {.bucket = exchange_bucket(exchange)}};
	if (read_request(exchange, &state->params, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	exchange->release = paths_info_release;
	anchor_wait_init(&state->view, exchange);
	return find_files(exchange);
}

enum next paths_info_resume(struct exchange *exchange)
{
	struct paths_info *const state = exchange->state;
	return state->made < state->params.count ? find_files(exchange)
						 : tree_call_resume(exchange, &state->call);
}

static int paths_info_look(struct exchange *exchange, struct tree *out, struct error *err)
{
	const struct paths_info *const state = exchange->state;
	return tree_find(exchange->context->store, &state->params, exchange->arena, out, err);
}

static enum next paths_info_reply(struct exchange *exchange, const struct tree *tree)
{
	struct buffer body;
	struct json_writer json;
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_array(&json, NULL);
	tree_call_print(&json, tree);
	json_writer_end(&json, ']');
	return json_reply(exchange, 200, &body);
}

static int read_request(struct exchange *exchange, struct tree_find_params *out, struct error *err)
{
	struct json_node *const root =
		json_node_parse_within(exchange_body(exchange), VALUES_MAX, "the request", err);
	int result = -1;
	if (root == NULL)
		return -1;
	const struct json_node *const paths = json_node_member(root, "paths");
	if (!json_node_is_array(paths))
		error_set(err, ERROR_INVALID, "The member \"paths\" must be a list of texts.");
	else if (json_node_count(paths) > PATHS_MAX)
		error_set(err, ERROR_INVALID,
			"The request names %zu paths; at most %d are allowed.",
			json_node_count(paths), PATHS_MAX);
	else
		result = choose(exchange, paths, out, err);
	json_node_free(root);
	return result;
}

/* Chooses the paths that the caller may read. */
static int choose(struct exchange *exchange, const struct json_node *array,
	struct tree_find_params *out, struct error *err)
{
	struct bucket_ref bucket = exchange_bucket(exchange);
	const size_t count = json_node_count(array);
	struct span *const paths = arena_take_array(exchange->arena, count + 1, sizeof(*paths));
	const int reads_all =
		authorise_permits(exchange, &bucket, (struct span){NULL, 0}, PERMISSION_READ, err);
	out->paths = paths;
	int reads = reads_all;
	for (size_t i = 0; paths != NULL && reads >= 0 && i < count; i++) {
		struct span path;
		if (!json_node_text(json_node_at(array, i), &path))
			return error_set(err, ERROR_INVALID,
				"The member \"paths\" must be a list of texts.");
		reads = reads_all == 1
			? 1
			: authorise_permits(exchange, &bucket, path, PERMISSION_READ, err);
		if (path.len > 0 && reads == 1)
			paths[out->count++] = arena_copy(exchange->arena, path);
	}
	if (reads < 0)
		return -1;
	return arena_overflowed(exchange->arena)
		? error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.")
		: 0;
}

static void paths_info_release(struct exchange *exchange)
{
	struct paths_info *const state = exchange->state;
	tree_call_release(&state->call);
}

/* Looks for pending views before it looks for files, so that a file made in between is found. */
static enum next find_files(struct exchange *exchange)
{
	struct paths_info *const state = exchange->state;
	struct error err = {0};
	ASSERT(state->made <= state->params.count);
	for (; state->made < state->params.count; state->made++) {
		const int pending = view_wait_look(
			&state->view, state->params.bucket, state->params.paths[state->made], &err);
		if (pending == 1)
			return anchor_wait_for(&state->view);
		if (pending < 0)
			return exchange_fail(exchange, &err);
	}
	return tree_call_run(exchange, &state->call);
}
