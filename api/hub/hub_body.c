#include "api/hub/hub_body.h"

enum next hub_body_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, HUB_BODY_MAX_BYTES);
}

int hub_body_parse(struct exchange *exchange, struct json_node **out, struct error *err)
{
	const struct span body = exchange_body(exchange);
	*out = NULL;
	if (body.len == 0)
		return 0;
	struct json_node *const root = json_node_parse(body, "the request body", err);
	if (root == NULL)
		return -1;
	if (!json_node_is_object(root)) {
		json_node_free(root);
		return error_set(err, ERROR_INVALID, "The request body must be a JSON object.");
	}
	*out = root;
	return 0;
}
