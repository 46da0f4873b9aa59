/* The name of a bucket in the catalog and its name on the Hub face. With "main" as the default
 * namespace, main/x is x in the catalog and ns/x is ns--x. Any thread. */
#ifndef API_ROUTE_HUB_NAME_H
#define API_ROUTE_HUB_NAME_H

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"

/* The name in the catalog of NAMESPACE/NAME, or {NULL, 0} when the arena is full. With "-" as the
 * namespace, NAME is the name in the catalog already, for clients that know no namespaces. */
struct span hub_name_bucket(struct arena *arena, const char *default_namespace,
	struct span namespace, struct span name);

struct hub_name {
	struct span namespace;
	struct span name;
};
/* The inverse. The spans point into `bucket` and `default_namespace`. */
struct hub_name hub_name_of(const char *default_namespace, struct span bucket);
/* Checks the rules for new names; fails with bad_name and the broken rule. Words that begin paths
 * of faces are reserved only in the default namespace. */
int hub_name_check(const char *default_namespace, struct hub_name name, struct error *err);
/* Checks whether a bucket of the catalog can have this name, by either face; the same failure. */
int hub_name_check_bucket(const char *default_namespace, struct span bucket, struct error *err);

/* The message for a request for a model, dataset or space. It has no full stop, because
 * huggingface_hub adds one of its own. */
#define HUB_NAME_NO_REPOSITORY \
	"This server has no models, datasets or spaces, only buckets: hf://buckets/NAMESPACE/NAME"
/* Whether the path is that of a file in such a repository:
 * [/datasets|/spaces]/NAMESPACE/NAME/resolve/REVISION/FILE. */
bool hub_name_is_resolve(struct span path);

#endif
