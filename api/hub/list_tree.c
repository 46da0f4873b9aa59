/* The first page waits for views that are still to be made, because HfFileSystem finds a file by
 * listing its folder. Then a page is listed in one snapshot (tree_call.h waits for missing hashes).
 * Its cursor is the position of its last entry, not a number of entries, so the next page is right
 * even if files change meanwhile. */
#include "api/hub/list_tree.h"

#include "api/auth/authorise.h"
#include "api/exchange/json_reply.h"
#include "api/hub/hub_page.h"
#include "api/hub/tree_call.h"
#include "api/objects/view_wait.h"

enum { BODY_MAX_BYTES = 48 * 1024 * 1024 };

struct list_tree {             /* the exchange's state */
	struct tree_call call; /* first */
	struct tree_params params;
	struct view_wait_list views;
	bool waits_for_views;
};

static struct span read_prefix(const struct exchange *exchange);
static int find_views(struct exchange *exchange, struct list_tree *state, struct error *err);
static bool shows(const struct tree_params *params, struct span key);
static size_t count_folders(struct span path);
static enum next list_views_first(struct exchange *exchange, struct list_tree *state);
static int list_tree_look(struct exchange *exchange, struct tree *out, struct error *err);
static enum next list_tree_reply(struct exchange *exchange, const struct tree *tree);
static int add_link(struct exchange *exchange, const struct tree_position *last, struct error *err);
static int read_recursive(struct exchange *exchange, bool *out, struct error *err);
static int read_limit(struct exchange *exchange, size_t *out, struct error *err);
static int read_cursor(struct exchange *exchange, struct tree_position *out, struct error *err);
static void list_tree_release(struct exchange *exchange);

int list_tree_place(struct exchange *exchange, struct tree_params *out, struct error *err)
{
	struct error below = {0};
	const struct span prefix = read_prefix(exchange);
	out->bucket = exchange_bucket(exchange);
	out->prefix = prefix;
	out->skips_prefix_file = false;
	if (authorise_key(exchange, &out->bucket, prefix, PERMISSION_LIST, err) == 0)
		return 0;
	const char *const folder =
		arena_format(exchange->arena, "%.*s/", (int)prefix.len, (const char *)prefix.data);
	if (prefix.len == 0 || err->kind != ERROR_DENIED || folder == NULL ||
		authorise_key(exchange, &out->bucket, span_text(folder), PERMISSION_LIST, &below) !=
			0)
		return -1;
	out->skips_prefix_file = true;
	return 0;
}

enum next list_tree_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct list_tree *const state = arena_take(exchange->arena, sizeof(*state));
	if (state == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return exchange_fail(exchange, &err);
	}
	*state = (struct list_tree){.call = {.look = list_tree_look, .reply = list_tree_reply}};
	if (read_recursive(exchange, &state->params.recursive, &err) != 0 ||
		read_limit(exchange, &state->params.limit, &err) != 0 ||
		read_cursor(exchange, &state->params.after, &err) != 0 ||
		list_tree_place(exchange, &state->params, &err) != 0 ||
		find_views(exchange, state, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	exchange->release = list_tree_release;
	return list_views_first(exchange, state);
}

enum next list_tree_resume(struct exchange *exchange)
{
	struct list_tree *const state = exchange->state;
	struct error err = {0};
	if (!state->waits_for_views)
		return tree_call_resume(exchange, &state->call);
	/* The caller may have lost the permission meanwhile. */
	return list_tree_place(exchange, &state->params, &err) == 0
		? list_views_first(exchange, state)
		: exchange_fail(exchange, &err);
}

static struct span read_prefix(const struct exchange *exchange)
{
	struct span prefix =
		exchange->parameter_count > 1 ? exchange->parameters[1] : (struct span){NULL, 0};
	while (prefix.len > 0 && prefix.data[prefix.len - 1] == '/')
		prefix = span_slice(prefix, 0, prefix.len - 1);
	return prefix;
}

/* Finds the views that the listing would show. The first page has waited for the later ones. */
static int find_views(struct exchange *exchange, struct list_tree *state, struct error *err)
{
	struct view_wait_list *const views = &state->views;
	const struct tree_params *const params = &state->params;
	size_t kept = 0;
	if (params->after.path.len > 0)
		return 0;
	if (view_wait_list_begin(views, exchange, params->bucket, params->prefix, err) != 0)
		return -1;
	for (size_t i = 0; i < views->count; i++)
		if (shows(params, views->keys[i]))
			views->keys[kept++] = views->keys[i];
	views->count = kept;
	return 0;
}

/* A listing of one level shows files, and the folder of files one level below. What lies deeper
 * does not change it: the folder of its run is there. */
static bool shows(const struct tree_params *params, struct span key)
{
	const size_t len = params->prefix.len;
	if (key.len <= len) /* the prefix itself, or a version folder around it */
		return key.len < len || !params->skips_prefix_file;
	if (len > 0 && key.data[len] != '/')
		return false;
	return params->recursive ||
		count_folders(span_slice(key, len > 0 ? len + 1 : 0, key.len)) <= 1;
}

/* Around what is named; a '/' at the end counts as a part of the name. */
static size_t count_folders(struct span path)
{
	size_t count = 0;
	for (size_t i = 0; i + 1 < path.len; i++)
		count += path.data[i] == '/';
	return count;
}

static enum next list_views_first(struct exchange *exchange, struct list_tree *state)
{
	struct error err = {0};
	const int outcome = view_wait_list_next(&state->views, &err);
	state->waits_for_views = outcome == 1;
	if (outcome < 0)
		return exchange_fail(exchange, &err);
	return outcome == 1 ? NEXT_WAIT : tree_call_run(exchange, &state->call);
}

static int list_tree_look(struct exchange *exchange, struct tree *out, struct error *err)
{
	const struct list_tree *const state = exchange->state;
	return tree_list(exchange->context->store, &state->params, exchange->arena, out, err);
}

static enum next list_tree_reply(struct exchange *exchange, const struct tree *tree)
{
	struct buffer body;
	struct json_writer json;
	struct error err = {0};
	const struct list_tree *const state = exchange->state;
	if ((tree->truncated && add_link(exchange, &tree->last, &err) != 0) ||
		view_wait_tell(exchange, state->params.bucket, state->params.prefix, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, BODY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_array(&json, NULL);
	tree_call_print(&json, tree);
	json_writer_end(&json, ']');
	return json_reply(exchange, 200, &body);
}

/* A cursor is 'f' for a file or 'd' for a directory, and the path. */
static int add_link(struct exchange *exchange, const struct tree_position *last, struct error *err)
{
	const char *const cursor = arena_format(exchange->arena, "%c%.*s",
		last->is_directory ? 'd' : 'f', (int)last->path.len, (const char *)last->path.data);
	if (cursor == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.");
	return hub_page_link(exchange, span_text(cursor), err);
}

static int read_recursive(struct exchange *exchange, bool *out, struct error *err)
{
	struct span value;
	*out = true;
	if (!exchange_query(exchange, "recursive", &value) || span_equal_nocase(value, "true") ||
		span_equal_text(value, "1"))
		return 0;
	*out = false;
	return span_equal_nocase(value, "false") || span_equal_text(value, "0")
		? 0
		: error_set(err, ERROR_INVALID, "The parameter recursive must be true or false.");
}

static int read_limit(struct exchange *exchange, size_t *out, struct error *err)
{
	uint64_t limit;
	if (hub_page_limit(exchange, TREE_LIMIT, TREE_LIMIT_MAX, &limit, err) != 0)
		return -1;
	*out = (size_t)limit;
	return 0;
}

static int read_cursor(struct exchange *exchange, struct tree_position *out, struct error *err)
{
	struct span value;
	if (!exchange_query(exchange, "cursor", &value))
		return 0;
	if (value.len < 2 || value.len > OBJECT_KEY_MAX_BYTES + 1 ||
		(value.data[0] != 'f' && value.data[0] != 'd'))
		return error_set(err, ERROR_INVALID,
			"The parameter cursor must be a value from a Link header.");
	*out = (struct tree_position){
		.path = span_slice(value, 1, value.len), .is_directory = value.data[0] == 'd'};
	return 0;
}

static void list_tree_release(struct exchange *exchange)
{
	struct list_tree *const state = exchange->state;
	tree_call_release(&state->call);
}
