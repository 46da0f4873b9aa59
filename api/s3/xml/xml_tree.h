/* A small XML body as a tree in an arena, for settings whose elements come in any order. It is read
 * with xml_reader and has its caps. Attributes are ignored. Any thread. */
#ifndef API_S3_XML_XML_TREE_H
#define API_S3_XML_XML_TREE_H

#include "base/format/xml_reader.h"
#include "base/arena.h"

struct xml_node {
	struct span name;
	struct span text;       /* character data of an element without children */
	struct xml_node *child; /* first */
	struct xml_node *next;  /* sibling */
};

/* malformed_xml when the body is not a document with this root, no_memory when the arena is
 * full. */
int xml_tree_parse(struct span xml, const char *root, struct arena *arena, struct xml_node **out,
	struct error *err);
/* The first child with this name, and the next sibling with the name of `node`. NULL when there is
 * none or `node` is NULL. */
const struct xml_node *xml_tree_child(const struct xml_node *node, const char *name);
const struct xml_node *xml_tree_again(const struct xml_node *node);
/* The text of the first child with this name; {NULL, 0} when there is none. */
struct span xml_tree_text(const struct xml_node *node, const char *name);
size_t xml_tree_count(const struct xml_node *node, const char *name);
/* malformed_xml unless every child has one of `names` (separated by '|'), and each name in `once`
 * occurs at most once. `once` may be NULL. */
int xml_tree_check(
	const struct xml_node *node, const char *names, const char *once, struct error *err);

#endif
