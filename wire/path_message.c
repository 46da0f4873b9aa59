/* A path is read link by link and then walked once. A reader relies on the walk: after a good
 * parse it can apply the links as they stand, without a check of its own. */
#include "wire/step_message_internal.h"

static int parse_path(const struct json_node *root, struct arena *arena, struct path_message *out,
	struct error *err);
static int parse_links(const struct json_node *root, struct arena *arena, struct path_message *out,
	struct error *err);
static int parse_link(const struct json_node *node, struct arena *arena, struct path_link *out,
	struct error *err);
static int parse_from(const struct json_node *node, struct path_link *link, struct error *err);
static int check_walk(const struct path_message *path, struct error *err);
static void print_link(struct json_writer *writer, const struct path_link *link);

int path_message_parse(
	struct span json, struct arena *arena, struct path_message *out, struct error *err)
{
	struct path_message path = {0};
	struct json_node *const root = json_node_parse(json, "the path", err);
	if (root == NULL)
		return -1;
	const int result = parse_path(root, arena, &path, err);
	json_node_free(root);
	if (result != 0)
		return error_wrap(err, "the path is refused");
	*out = path;
	return 0;
}

void path_message_print(const struct path_message *path, struct buffer *out)
{
	struct json_writer writer;
	ASSERT(path->links != NULL || path->link_count == 0);
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	if (path->from_nothing)
		json_writer_null(&writer, "from");
	else
		json_writer_u64(&writer, "from", path->from_step);
	json_writer_u64(&writer, "to", path->to_step);
	json_writer_u64(&writer, "bytes", path->bytes);
	json_writer_array(&writer, "links");
	for (size_t i = 0; i < path->link_count; i++)
		print_link(&writer, &path->links[i]);
	json_writer_end(&writer, ']');
	json_writer_end(&writer, '}');
}

static int parse_path(const struct json_node *root, struct arena *arena, struct path_message *out,
	struct error *err)
{
	out->from_nothing = message_absent(root, "from");
	if (!out->from_nothing && message_u64(root, "from", &out->from_step, err) != 0)
		return -1;
	if (message_u64(root, "to", &out->to_step, err) != 0 ||
		message_u64(root, "bytes", &out->bytes, err) != 0)
		return -1;
	return parse_links(root, arena, out, err) == 0 ? check_walk(out, err) : -1;
}

static int parse_links(const struct json_node *root, struct arena *arena, struct path_message *out,
	struct error *err)
{
	const struct json_node *list;
	if (message_array(root, "links", STEP_LINKS_MAX, &list, err) != 0)
		return -1;
	out->link_count = json_node_count(list);
	out->links = arena_take_array(arena, out->link_count, sizeof(*out->links));
	if (out->links == NULL)
		return message_too_large_for_arena(err);
	for (size_t i = 0; i < out->link_count; i++)
		if (parse_link(json_node_at(list, i), arena, &out->links[i], err) != 0)
			return error_wrap(err, "links[%zu]", i);
	return 0;
}

static int parse_link(
	const struct json_node *node, struct arena *arena, struct path_link *out, struct error *err)
{
	if (message_u64(node, "step", &out->step, err) != 0 ||
		message_digest(node, "digest", &out->digest, err) != 0)
		return -1;
	if (message_form(json_node_member(node, "form"), arena, &out->form, err) != 0)
		return error_wrap(err, "form");
	if (parse_from(node, out, err) != 0)
		return -1;
	return message_files(node, "files", arena, &out->files, &out->file_count, err);
}

/* Reads the step that a delta starts from. A delta without "from" starts from the step before its
 * own. */
static int parse_from(const struct json_node *node, struct path_link *link, struct error *err)
{
	link->from = 0;
	if (link->form.kind != STEP_DELTA)
		return 0;
	if (link->step == 0)
		return error_set(err, ERROR_INVALID, "step 0 cannot have a delta.");
	link->from = link->step - 1;
	if (message_absent(node, "from"))
		return 0;
	if (message_u64(node, "from", &link->from, err) != 0)
		return -1;
	if (link->from < link->step)
		return 0;
	return error_set(err, ERROR_INVALID, "\"from\" is %llu and must be below step %llu.",
		(unsigned long long)link->from, (unsigned long long)link->step);
}

/* The links must start from the reader's step or from an anchor, miss no step and end at `to`. */
static int check_walk(const struct path_message *path, struct error *err)
{
	uint64_t at = path->from_step;
	bool anywhere = path->from_nothing;
	for (size_t i = 0; i < path->link_count; i++) {
		const struct path_link *const link = &path->links[i];
		const bool is_anchor = link->form.kind == STEP_ANCHOR;
		if (is_anchor && i > 0)
			return error_set(err, ERROR_INVALID,
				"links[%zu] is an anchor; only the first link may be one.", i);
		if (!is_anchor && (anywhere || link->from != at))
			return error_set(err, ERROR_INVALID,
				"links[%zu] is the delta from step %llu to %llu,"
				" which does not continue the links before it.",
				i, (unsigned long long)link->from, (unsigned long long)link->step);
		at = link->step;
		anywhere = false;
	}
	if (anywhere || at != path->to_step)
		return error_set(err, ERROR_INVALID, "the links do not lead to step %llu.",
			(unsigned long long)path->to_step);
	return 0;
}

static void print_link(struct json_writer *writer, const struct path_link *link)
{
	json_writer_object(writer, NULL);
	json_writer_u64(writer, "step", link->step);
	if (link->form.kind == STEP_DELTA)
		json_writer_u64(writer, "from", link->from);
	message_print_digest(writer, "digest", &link->digest);
	message_print_form(writer, "form", &link->form);
	message_print_files(writer, "files", link->files, link->file_count);
	json_writer_end(writer, '}');
}
