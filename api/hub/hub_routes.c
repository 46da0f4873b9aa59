/* What huggingface_hub and its relatives ask of the Hub. {namespace}/{bucket} names a bucket: handlers find its name in the catalog as parameter 0,
 * and what the pattern names behind it from 1 on. */
#include "api/router.h"

const struct route hub_routes[] = {
	{.pattern = NULL},
};
