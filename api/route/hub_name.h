/* A bucket has one name in the catalog and one on the Hub: main/x is x, ns/x is ns--x ("main"
 * stands for the default namespace). Any thread. */
#ifndef API_ROUTE_HUB_NAME_H
#define API_ROUTE_HUB_NAME_H

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"

/* The catalog's name of NAMESPACE/NAME. "-" as the namespace takes the name as the catalog's own:
 * for clients that know no namespaces. */
struct span hub_name_bucket(struct arena *arena, const char *default_namespace,
	struct span namespace, struct span name);

struct hub_name {
	struct span namespace;
	struct span name;
};
/* The inverse; spans lie in `bucket`, or are `default_namespace`. */
struct hub_name hub_name_of(const char *default_namespace, struct span bucket);
/* The rules for new names: bad_name with the rule that is broken. Words that begin paths of faces
 * are refused in the default namespace alone. */
int hub_name_check(const char *default_namespace, struct hub_name name, struct error *err);

/* What this server says to whom asks for a model, dataset or space. */
#define HUB_NAME_NO_REPOSITORY \
	"This server has buckets alone, no models, datasets or spaces: hf://buckets/NAMESPACE/NAME"
/* Whether a path is where clients of a Hub look for a file of such a repository:
 * [/datasets|/spaces]/NAMESPACE/NAME/resolve/REVISION/FILE. */
bool hub_name_is_resolve(struct span path);

#endif
