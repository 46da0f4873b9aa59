/* Any bytes as JSON: every node is visited through each reader, and what parses must print, and the
 * print parse to the same print. */
#include "base/format/json_node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEPTH_MAX = 64, PRINT_BYTES = 64 * 1024 * 1024 };

/* A node is of one type at most, and its number reads alike both ways. */
static void check_value(const struct json_node *node)
{
	struct span text;
	uint64_t whole = 0;
	int64_t number = 0;
	bool truth;
	const bool is_number = json_node_i64(node, &number);
	ASSERT(json_node_is_object(node) + json_node_is_array(node) + json_node_text(node, &text) +
			json_node_is_null(node) + json_node_bool(node, &truth) + is_number <=
		1);
	ASSERT(json_node_u64(node, &whole) == (is_number && number >= 0));
	ASSERT(whole == 0 || (int64_t)whole == number);
}

/* A document nests DEPTH_MAX levels at most, so this may call itself. */
static void visit(const struct json_node *node, unsigned depth)
{
	void *cursor = NULL;
	struct span name;
	const struct json_node *value;
	size_t members = 0;
	ASSERT(node != NULL && depth <= DEPTH_MAX);
	check_value(node);
	for (size_t i = 0; json_node_is_array(node) && i < json_node_count(node); i++)
		visit(json_node_at(node, i), depth + 1);
	ASSERT(json_node_at(node, json_node_count(node)) == NULL);
	while (json_node_is_object(node) && json_node_each(node, &cursor, &name, &value)) {
		ASSERT(json_node_member(node, (const char *)name.data) == value);
		visit(value, depth + 1);
		members++;
	}
	ASSERT(!json_node_is_object(node) || members == json_node_count(node));
}

static void print_twice(const struct json_node *root)
{
	struct error err = {0};
	struct buffer once;
	struct buffer twice;
	buffer_init(&once, PRINT_BYTES);
	buffer_init(&twice, PRINT_BYTES);
	json_node_print(root, &once);
	struct json_node *const again = json_node_parse(buffer_span(&once), "the print", &err);
	ASSERT(again != NULL);
	json_node_print(again, &twice);
	ASSERT(span_equal(buffer_span(&once), buffer_span(&twice)));
	json_node_free(again);
	buffer_release(&once);
	buffer_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct json_node *const root = json_node_parse(span_of(data, size), "the input", &err);
	ASSERT((root == NULL) == (err.kind == ERROR_INVALID));
	if (root == NULL)
		return 0;
	visit(root, 0);
	print_twice(root);
	json_node_free(root);
	return 0;
}
