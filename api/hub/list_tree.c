#include "api/hub/list_tree.h"

#include <string.h>

#include "api/authorise.h"
#include "api/base_url.h"
#include "api/hub/tree_call.h"
#include "api/json_reply.h"
#include "base/encode.h"

enum { BODY_MAX_BYTES = 48 * 1024 * 1024, LINK_MAX_BYTES = 8 * 1024 };

struct list_tree { /* the exchange's state */
	struct tree_call call; /* first */
	struct tree_params params;
};

static int look(struct exchange *const exchange, struct tree *const out, struct error *const err)
{
	const struct list_tree *const state = exchange->state;
	return tree_list(exchange->context->store, &state->params, exchange->arena, out, err);
}

/* The request once more, with the position of the last entry: 'f' or 'd' and its path. */
static const char *next_link(struct exchange *const exchange, const struct tree_position *const last)
{
	struct buffer link;
	struct span rest = exchange->query;
	struct span pair;
	buffer_init(&link, LINK_MAX_BYTES);
	buffer_format(&link, "<%s", base_url(exchange));
	buffer_add_span(&link, exchange->path);
	buffer_add_byte(&link, '?');
	while (span_split(&rest, '&', &pair)) {
		if (pair.len == 0 || span_starts(pair, span_text("cursor=")))
			continue;
		buffer_add_span(&link, pair);
		buffer_add_byte(&link, '&');
	}
	buffer_add_text(&link, last->is_directory ? "cursor=d" : "cursor=f");
	encode_percent(last->path, false, &link);
	buffer_add_text(&link, ">; rel=\"next\"");
	const char *const text = buffer_failed(&link) ? NULL : arena_text(exchange->arena, buffer_span(&link));
	buffer_release(&link);
	return text;
}

static enum next reply(struct exchange *const exchange, const struct tree *const tree)
{
	struct buffer body;
	struct json_writer json;
	struct error err = {0};
	const char *const link = tree->truncated ? next_link(exchange, &tree->last) : NULL;
	if (tree->truncated && link == NULL) {
		error_set(&err, ERROR_INVALID, "The request's URL is too long to be told where the listing goes on.");
		return exchange_fail(exchange, &err);
	}
	if (link != NULL)
		exchange_add_header(exchange, "Link", link);
	buffer_init(&body, BODY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_array(&json, NULL);
	tree_call_print(&json, tree);
	json_writer_end(&json, ']');
	return json_reply(exchange, 200, &body);
}

static int read_recursive(struct exchange *const exchange, bool *const out, struct error *const err)
{
	struct span value;
	*out = true;
	if (!exchange_query(exchange, "recursive", &value) || span_equal_nocase(value, "true") || span_equal_text(value, "1"))
		return 0;
	*out = false;
	return span_equal_nocase(value, "false") || span_equal_text(value, "0") ? 0
		: error_set(err, ERROR_INVALID, "The parameter recursive is true or false.");
}

static int read_limit(struct exchange *const exchange, size_t *const out, struct error *const err)
{
	struct span value;
	uint64_t limit = TREE_LIMIT;
	if (exchange_query(exchange, "limit", &value) && (!span_parse_u64(value, &limit) || limit == 0))
		return error_set(err, ERROR_INVALID, "The parameter limit is a number from 1 on.");
	*out = limit > TREE_LIMIT_MAX ? TREE_LIMIT_MAX : (size_t)limit;
	return 0;
}

static int read_cursor(struct exchange *const exchange, struct tree_position *const out, struct error *const err)
{
	struct span value;
	if (!exchange_query(exchange, "cursor", &value))
		return 0;
	if (value.len < 2 || value.len > OBJECT_KEY_MAX_BYTES + 1 || (value.data[0] != 'f' && value.data[0] != 'd'))
		return error_set(err, ERROR_INVALID, "The parameter cursor is what a Link header said.");
	*out = (struct tree_position){.path = span_slice(value, 1, value.len), .is_directory = value.data[0] == 'd'};
	return 0;
}

static struct span read_prefix(const struct exchange *const exchange)
{
	struct span prefix = exchange->parameter_count > 1 ? exchange->parameters[1] : (struct span){NULL, 0};
	while (prefix.len > 0 && prefix.data[prefix.len - 1] == '/')
		prefix = span_slice(prefix, 0, prefix.len - 1);
	return prefix;
}

/* Who may list what lies below the prefix may ask for it, without the file of the same name. */
static int authorise_prefix(struct exchange *const exchange, struct tree_params *const params, struct error *const err)
{
	struct error below = {0};
	const struct span prefix = params->prefix;
	if (authorise_key(exchange, params->bucket, prefix, PERMISSION_LIST, err) == 0)
		return 0;
	const char *const folder = arena_format(exchange->arena, "%.*s/", (int)prefix.len, (const char *)prefix.data);
	if (prefix.len == 0 || err->kind != ERROR_DENIED || folder == NULL ||
	    authorise_key(exchange, params->bucket, span_text(folder), PERMISSION_LIST, &below) != 0)
		return -1;
	params->skips_prefix_file = true;
	return 0;
}

static void release(struct exchange *const exchange)
{
	struct list_tree *const state = exchange->state;
	tree_call_release(&state->call);
}

enum next list_tree_begin(struct exchange *const exchange)
{
	struct error err = {0};
	struct list_tree *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL);
	*state = (struct list_tree){.call = {.look = look, .reply = reply},
		.params = {.bucket = exchange->parameters[0], .bucket_id = exchange->bucket_id, .prefix = read_prefix(exchange)}};
	if (read_recursive(exchange, &state->params.recursive, &err) != 0 || read_limit(exchange, &state->params.limit, &err) != 0
		|| read_cursor(exchange, &state->params.after, &err) != 0 || authorise_prefix(exchange, &state->params, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	exchange->release = release;
	return tree_call_run(exchange, &state->call);
}

enum next list_tree_resume(struct exchange *const exchange)
{
	struct list_tree *const state = exchange->state;
	return tree_call_resume(exchange, &state->call);
}
