#include "client/remote/remote_json.h"

#include "base/encode.h"
#include "base/memory.h"

enum { TARGET_MAX_BYTES = 16 * 1024 };

int remote_json_send(struct remote *remote, const struct remote_json_request *request,
	struct json_node **out, struct error *err)
{
	static const char *const HEADERS[] = {"Content-Type: application/json", NULL};
	const struct http_request http = {
		.method = request->method,
		.target = request->target,
		.headers = request->body.len > 0 ? HEADERS : NULL,
		.body = request->body,
	};
	struct http_response response;
	int result = remote_send(remote, &http, &response, err);
	if (out != NULL)
		*out = NULL;
	if (result == 0 && out != NULL && buffer_span(&response.body).len > 0) {
		*out = remote_json_parse(buffer_span(&response.body), "the server's answer", err);
		result = *out != NULL ? 0 : -1;
	}
	http_response_release(&response);
	return result;
}

struct json_node *remote_json_parse(struct span answer, const char *what, struct error *err)
{
	struct json_node *const root = json_node_parse(answer, what, err);
	if (root == NULL)
		err->kind = ERROR_UPSTREAM;
	return root;
}

char *remote_json_target(const struct run_name *run, const char *below, const char *name)
{
	struct buffer target;
	buffer_init(&target, TARGET_MAX_BYTES);
	buffer_format(&target, "%s/%s", run->target, below);
	if (name != NULL) {
		buffer_add_byte(&target, '/');
		encode_percent(span_slice(span_text(name), 0, 1024), false, &target);
	}
	char *const text = memory_copy_text(buffer_text(&target));
	buffer_release(&target);
	return text;
}
