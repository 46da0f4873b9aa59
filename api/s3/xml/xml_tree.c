/* Two arrays, indexed by depth, hold the path of open nodes and the last child of each. A new node
 * is linked after the last child of the open node above it, so the tree is built in one pass
 * without recursion. A node above the root makes the root a child like any other. */
#include "api/s3/xml/xml_tree.h"

struct builder {
	struct arena *arena;
	const char *root;                                /* the name that the root must have */
	struct xml_node *open[XML_READER_DEPTH_MAX + 1]; /* [0] is above the root */
	struct xml_node *last[XML_READER_DEPTH_MAX + 1]; /* the last child of each; NULL: none */
};

static int xml_tree_add_node(void *owner, size_t depth, struct span name, struct error *err);
static int xml_tree_set_text(
	void *owner, size_t depth, struct span name, struct span text, struct error *err);
static const struct xml_node *find(const struct xml_node *node, struct span name);
static bool is_named(struct span name, const char *names);

int xml_tree_parse(struct span xml, const char *root, struct arena *arena, struct xml_node **out,
	struct error *err)
{
	static const struct xml_reader_events events = {
		.open = xml_tree_add_node, .close = xml_tree_set_text};
	struct xml_node above = {.name = {NULL, 0}};
	struct builder builder = {.arena = arena, .root = root, .open = {&above}};
	if (xml_reader_parse(xml, &events, &builder, err) != 0)
		return -1;
	ASSERT(above.child != NULL); /* a well-formed document has a root */
	*out = above.child;
	return 0;
}

const struct xml_node *xml_tree_child(const struct xml_node *node, const char *name)
{
	return node == NULL ? NULL : find(node->child, span_text(name));
}

const struct xml_node *xml_tree_again(const struct xml_node *node)
{
	return node == NULL ? NULL : find(node->next, node->name);
}

struct span xml_tree_text(const struct xml_node *node, const char *name)
{
	const struct xml_node *const child = xml_tree_child(node, name);
	return child == NULL ? (struct span){NULL, 0} : child->text;
}

size_t xml_tree_count(const struct xml_node *node, const char *name)
{
	size_t count = 0;
	for (const struct xml_node *child = xml_tree_child(node, name); child != NULL;
		child = xml_tree_again(child))
		count++;
	return count;
}

int xml_tree_check(
	const struct xml_node *node, const char *names, const char *once, struct error *err)
{
	ASSERT(node != NULL && names != NULL);
	for (const struct xml_node *child = node->child; child != NULL; child = child->next) {
		const int len = (int)(child->name.len < 64 ? child->name.len : 64);
		if (!is_named(child->name, names))
			return error_set(err, ERROR_MALFORMED_XML,
				"The element %.*s must not contain an element %.*s.",
				(int)node->name.len, (const char *)node->name.data, len,
				(const char *)child->name.data);
		if (is_named(child->name, once) && xml_tree_again(child) != NULL)
			return error_set(err, ERROR_MALFORMED_XML,
				"The element %.*s must contain at most one element %.*s.",
				(int)node->name.len, (const char *)node->name.data, len,
				(const char *)child->name.data);
	}
	return 0;
}

static int xml_tree_add_node(void *owner, size_t depth, struct span name, struct error *err)
{
	struct builder *const builder = owner;
	ASSERT(depth >= 1 && depth <= XML_READER_DEPTH_MAX);
	ASSERT(builder->open[depth - 1] != NULL);
	struct xml_node *const node = arena_take(builder->arena, sizeof(*node));
	if (depth == 1 && !span_equal_text(name, builder->root))
		return error_set(err, ERROR_MALFORMED_XML, "The root of the body must be %s.",
			builder->root);
	if (node == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The XML body does not fit the memory of a request.");
	node->name = arena_copy(builder->arena, name);
	if (builder->last[depth - 1] == NULL)
		builder->open[depth - 1]->child = node;
	else
		builder->last[depth - 1]->next = node;
	builder->last[depth - 1] = node;
	builder->open[depth] = node;
	builder->last[depth] = NULL;
	return 0;
}

static int xml_tree_set_text(
	void *owner, size_t depth, struct span name, struct span text, struct error *err)
{
	struct builder *const builder = owner;
	struct xml_node *const node = builder->open[depth];
	(void)name;
	ASSERT(node != NULL);
	if (node->child != NULL)
		return 0;
	node->text = arena_copy(builder->arena, text);
	return node->text.len == text.len
		? 0
		: error_set(err, ERROR_NO_MEMORY,
			  "The XML body does not fit the memory of a request.");
}

static const struct xml_node *find(const struct xml_node *node, struct span name)
{
	while (node != NULL && !span_equal(node->name, name))
		node = node->next;
	return node;
}

static bool is_named(struct span name, const char *names)
{
	struct span rest = span_text(names);
	struct span piece;
	while (names != NULL && span_split(&rest, '|', &piece))
		if (span_equal(piece, name))
			return true;
	return false;
}
