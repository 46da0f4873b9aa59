/* Parsed JSON, and JSON being written, over jansson (its one home). A parsed document is read-only
 * and freed at its root. Duplicate keys, trailing bytes and depth over 64 are refused. Any thread;
 * a document by one thread at a time. */
#ifndef BASE_FORMAT_JSON_NODE_H
#define BASE_FORMAT_JSON_NODE_H

#include "base/buffer.h"

struct json_node; /* borrowed from its document, except the root */

/* Returns NULL with invalid and the line and column of the fault. `what` names the text in the
 * message. Free the result with json_node_free. */
struct json_node *json_node_parse(struct span text, const char *what, struct error *err);
/* The same for text from a stranger: also invalid when it has more than about `values_max` values.
 * A value takes far more memory than its text. */
struct json_node *json_node_parse_within(
	struct span text, size_t values_max, const char *what, struct error *err);
void json_node_free(struct json_node *root); /* NULL is fine */
/* Overwrites all texts of the document, for secrets; they keep their lengths. NULL is fine. */
void json_node_wipe(struct json_node *root);

bool json_node_is_object(const struct json_node *node);
bool json_node_is_array(const struct json_node *node);
bool json_node_is_text(const struct json_node *node);
bool json_node_is_null(const struct json_node *node);
/* The number of members or elements; 0 for other nodes and NULL. */
size_t json_node_count(const struct json_node *node);
/* NULL when absent. */
const struct json_node *json_node_at(const struct json_node *array, size_t index);
/* NULL when absent. */
const struct json_node *json_node_member(const struct json_node *object, const char *name);
/* Walks an object in the order of its text; false at the end. *cursor is NULL at first. */
bool json_node_each(const struct json_node *object, void **cursor, struct span *out_name,
	const struct json_node **out_value);
/* Typed reads: false when the node is absent (NULL), of another type, or out of range. */
/* The text is borrowed and may hold NULs. */
bool json_node_text(const struct json_node *node, struct span *out_text);
/* Accepts an integer as written, never a float. */
bool json_node_u64(const struct json_node *node, uint64_t *out_value);
bool json_node_i64(const struct json_node *node, int64_t *out_value);
bool json_node_bool(const struct json_node *node, bool *out_value);
/* Appends compact text, with the members in the order of the document. */
void json_node_print(const struct json_node *node, struct buffer *out);

/* Writing goes straight into a buffer, with commas and escapes. At most 64 levels. `name` is NULL
 * inside arrays and at the root. */
struct json_writer {
	struct buffer *out;
	int depth;
	uint64_t has_member; /* a bit for each level */
};
void json_writer_init(struct json_writer *writer, struct buffer *out);
void json_writer_object(struct json_writer *writer, const char *name);
void json_writer_array(struct json_writer *writer, const char *name);
void json_writer_end(struct json_writer *writer, char bracket); /* '}' or ']' */
void json_writer_text(struct json_writer *writer, const char *name, struct span text);
void json_writer_u64(struct json_writer *writer, const char *name, uint64_t value);
void json_writer_i64(struct json_writer *writer, const char *name, int64_t value);
void json_writer_bool(struct json_writer *writer, const char *name, bool value);
void json_writer_null(struct json_writer *writer, const char *name);
/* `json` is valid JSON already. */
void json_writer_raw(struct json_writer *writer, const char *name, struct span json);

#endif
