/* Each type of line has a table of the members that it reads. A wrong member makes the batch
 * malformed; a source that this server cannot have refuses only its line, with a reason. */
#include "api/hub/batch_lines.h"

#include "api/route/hub_name.h"
#include "base/format/json_node.h"
#include "storage/files/tree_path.h"

enum { CONTENT_TYPE_MAX_BYTES = 255, VALUES_MAX = 100 /* in a line */ };
/* Some clients send seconds. A smaller time is one in seconds: as milliseconds it would be before
 * March 1973. */
#define SECONDS_BELOW INT64_C(100000000000)

struct line_parse {
	const struct json_node *root;
	const char *default_namespace;
	struct span own; /* the caller's namespace */
	struct arena *arena;
	struct batch_line *out;
	struct error *err;
};

typedef int read_member_fn(const struct line_parse *parse);

static bool is_blank(struct span text);
static int parse_line(struct span text, size_t number, struct line_parse parse, struct error *err);
static int read_line(const struct line_parse *parse);
static const struct json_node *member(const struct line_parse *parse, const char *name);
static int read_path(const struct line_parse *parse);
static int bad_member(const struct line_parse *parse, const char *name, const char *rule);
static int read_hash(const struct line_parse *parse);
static int read_time(const struct line_parse *parse);
static int read_size(const struct line_parse *parse);
static int read_content_type(const struct line_parse *parse);
static int read_source(const struct line_parse *parse);
static int refuse_source(const struct line_parse *parse, const char *reason);

static read_member_fn *const added[] = {
	read_path, read_hash, read_time, read_size, read_content_type, NULL};

static read_member_fn *const copied[] = {
	read_path, read_hash, read_time, read_size, read_content_type, read_source, NULL};

static read_member_fn *const deleted[] = {read_path, NULL};

static const struct {
	const char *name;
	enum batch_kind kind;
	read_member_fn *const *members;
} types[] = {{"addFile", BATCH_ADD, added}, {"copyFile", BATCH_COPY, copied},
	{"deleteFile", BATCH_DELETE, deleted}, {"judgeDelete", BATCH_JUDGE_DELETE, deleted}};

int batch_lines_parse(struct span body, const char *default_namespace, struct span own,
	struct arena *arena, struct batch_lines *out, struct error *err)
{
	struct line_parse parse = {
		.default_namespace = default_namespace, .own = own, .arena = arena};
	struct span rest = body;
	struct span text;
	*out = (struct batch_lines){
		.lines = arena_take_array(arena, BATCH_LINES_MAX, sizeof(*out->lines))};
	if (out->lines == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.");
	for (size_t number = 1; span_split(&rest, '\n', &text); number++) {
		if (is_blank(text))
			continue;
		if (out->count == BATCH_LINES_MAX)
			return error_set(err, ERROR_INVALID,
				"The batch has more than %d lines, and nothing was changed.",
				BATCH_LINES_MAX);
		parse.out = &out->lines[out->count];
		if (parse_line(text, number, parse, err) != 0)
			return -1;
		out->count++;
	}
	return 0;
}

static bool is_blank(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] != ' ' && text.data[i] != '\t' && text.data[i] != '\r')
			return false;
	return true;
}

static int parse_line(struct span text, size_t number, struct line_parse parse, struct error *err)
{
	struct error inner = {0};
	ASSERT(parse.out != NULL);
	struct arena *const arena = parse.arena;
	struct json_node *const root = json_node_parse_within(text, VALUES_MAX, "it", &inner);
	parse.root = root;
	parse.err = &inner;
	const int result = root == NULL ? -1 : read_line(&parse);
	json_node_free(root);
	if (result != 0)
		return error_set(err, ERROR_INVALID,
			"Line %zu of the batch is malformed, and nothing was changed: %s", number,
			inner.text);
	return arena_overflowed(arena)
		? error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.")
		: 0;
}

static int read_line(const struct line_parse *parse)
{
	struct span type;
	if (!json_node_is_object(parse->root) || !json_node_text(member(parse, "type"), &type))
		return error_set(parse->err, ERROR_INVALID, "it must be an object with a type.");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!span_equal_text(type, types[i].name))
			continue;
		parse->out->kind = types[i].kind;
		for (read_member_fn *const *read = types[i].members; *read != NULL; read++)
			if ((*read)(parse) != 0)
				return -1;
		return 0;
	}
	return error_set(parse->err, ERROR_INVALID,
		"its type must be addFile, copyFile, deleteFile or judgeDelete.");
}

static const struct json_node *member(const struct line_parse *parse, const char *name)
{
	const struct json_node *const node = json_node_member(parse->root, name);
	return node == NULL || json_node_is_null(node) ? NULL : node;
}

static int read_path(const struct line_parse *parse)
{
	struct span path;
	if (!json_node_text(member(parse, "path"), &path))
		return bad_member(parse, "path", "must be a text");
	parse->out->path = arena_copy(parse->arena, path);
	return tree_path_check(path, parse->err);
}

static int bad_member(const struct line_parse *parse, const char *name, const char *rule)
{
	return error_set(parse->err, ERROR_INVALID, "%s %s.", name, rule);
}

static int read_hash(const struct line_parse *parse)
{
	struct span text;
	return json_node_text(member(parse, "xetHash"), &text) &&
			chunk_id_parse(text, &parse->out->file)
		? 0
		: bad_member(parse, "xetHash", "must be a text of 64 lower-case hex digits");
}

static int read_time(const struct line_parse *parse)
{
	const struct json_node *const node = member(parse, "mtime");
	int64_t time = 0;
	if (node == NULL)
		return 0;
	if (!json_node_i64(node, &time))
		return bad_member(
			parse, "mtime", "must be a whole number of milliseconds since 1970");
	const int64_t least = time < 0 ? 0 : time;
	parse->out->has_mtime = true;
	parse->out->mtime_ms = least < SECONDS_BELOW ? least * 1000 : least;
	return 0;
}

static int read_size(const struct line_parse *parse)
{
	const struct json_node *const node = member(parse, "size");
	parse->out->has_size = node != NULL;
	return node == NULL || json_node_u64(node, &parse->out->size)
		? 0
		: bad_member(parse, "size", "must be a whole number of bytes");
}

static int read_content_type(const struct line_parse *parse)
{
	const struct json_node *const node = member(parse, "contentType");
	struct span text;
	if (node == NULL)
		return 0;
	if (!json_node_text(node, &text) || text.len > CONTENT_TYPE_MAX_BYTES)
		return bad_member(parse, "contentType", "must be a text of up to 255 characters");
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < ' ' || text.data[i] > '~')
			return bad_member(parse, "contentType", "must be printable ASCII");
	parse->out->content_type = arena_copy(parse->arena, text);
	return 0;
}

static int read_source(const struct line_parse *parse)
{
	struct span type;
	struct span id;
	if (!json_node_text(member(parse, "sourceRepoType"), &type))
		return bad_member(parse, "sourceRepoType", "must be a text");
	if (!json_node_text(member(parse, "sourceRepoId"), &id))
		return bad_member(parse, "sourceRepoId", "must be a text");
	if (!span_equal_text(type, "bucket"))
		return refuse_source(parse,
			"Files can be copied only from buckets: this server has no other repositories.");
	const struct span whole = arena_copy(parse->arena, id);
	const ptrdiff_t slash = span_find(whole, '/');
	if (slash <= 0)
		return refuse_source(
			parse, "A bucket to copy from must be named as namespace/name.");
	const struct span named = span_slice(whole, 0, (size_t)slash);
	const struct span namespace =
		span_equal_text(named, "me") && parse->own.len > 0 ? parse->own : named;
	parse->out->source.name = hub_name_bucket(parse->arena, parse->default_namespace, namespace,
		span_slice(whole, (size_t)slash + 1, whole.len));
	return 0;
}

static int refuse_source(const struct line_parse *parse, const char *reason)
{
	parse->out->is_refused = true;
	error_set(&parse->out->error, ERROR_NOT_FOUND, "%s", reason);
	return 0;
}
