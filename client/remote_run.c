#include "client/remote_run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/encode.h"
#include "base/json_node.h"

enum {
	TARGET_MAX_BYTES = 4096,
	/* A publish may read objects without a digest, and an anchor's headers, before it commits. */
	PUBLISH_WAIT_MS = 10 * 60 * 1000
};

/* What a target is built in: fixed size, since all of its parts are bounded. */
struct target {
	struct buffer text;
};

static void target_begin(struct target *target, const struct run_name *run)
{
	buffer_init(&target->text, TARGET_MAX_BYTES);
	buffer_add_text(&target->text, run->target);
}

/* Sends and releases the target; the answer's body is in `response`. */
static int target_send(struct target *target, struct remote *remote, const struct http_request *request, struct http_response *response,
	struct error *err)
{
	ASSERT(!buffer_failed(&target->text));
	struct http_request whole = *request;
	whole.target = buffer_text(&target->text);
	const int result = remote_send(remote, &whole, response, err);
	buffer_release(&target->text);
	return result;
}

/* An answer that does not parse is the peer's fault, whatever the parser calls it. */
static int nonsense(struct error *err, const char *what)
{
	err->kind = ERROR_UPSTREAM;
	return error_wrap(err, "the server's %s", what);
}

int remote_run_open(struct remote *remote, const struct run_name *run, const uint64_t *keep_steps, struct arena *arena, struct run_message *out,
	struct error *err)
{
	struct target target;
	target_begin(&target, run);
	char body[64] = "{}";
	if (keep_steps != NULL)
		snprintf(body, sizeof body, "{\"keep_steps\":%" PRIu64 "}", *keep_steps);
	static const char *const HEADERS[] = {"Content-Type: application/json", NULL};
	const struct http_request request = {.method = "POST", .headers = HEADERS, .body = span_text(body)};
	struct http_response response;
	int result = target_send(&target, remote, &request, &response, err);
	if (result == 0 && run_message_parse(buffer_span(&response.body), arena, out, err) != 0)
		result = nonsense(err, "answer to opening the run");
	http_response_release(&response);
	return result;
}

int remote_run_set_keep(struct remote *remote, const struct run_name *run, uint64_t keep_steps, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_add_text(&target.text, "/settings");
	char body[64];
	snprintf(body, sizeof body, "{\"keep_steps\":%" PRIu64 "}", keep_steps);
	static const char *const HEADERS[] = {"Content-Type: application/json", NULL};
	const struct http_request request = {.method = "PUT", .headers = HEADERS, .body = span_text(body)};
	struct http_response response;
	const int result = target_send(&target, remote, &request, &response, err);
	http_response_release(&response);
	return result;
}

int remote_run_find(struct remote *remote, const struct run_name *run, struct arena *arena, struct run_message *out, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	const struct http_request request = {.method = "GET"};
	struct http_response response;
	int result = target_send(&target, remote, &request, &response, err);
	if (result == 0 && run_message_parse(buffer_span(&response.body), arena, out, err) != 0)
		result = nonsense(err, "answer about the run");
	http_response_release(&response);
	return result;
}

int remote_run_publish(struct remote *remote, const struct run_name *run, const struct step_message *step, bool *out_already, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_format(&target.text, "/steps/%" PRIu64, step->step);
	struct buffer body;
	buffer_init(&body, STEP_MESSAGE_MAX_BYTES);
	step_message_print(step, run->run, true, &body);
	struct http_response response = {0};
	int result = -1;
	if (buffer_check(&body, "the step's manifest", err) != 0) {
		buffer_release(&target.text);
		goto out;
	}
	static const char *const HEADERS[] = {"Content-Type: application/json", NULL};
	const struct http_request request = {.method = "PUT", .headers = HEADERS, .body = buffer_span(&body), .wait_ms = PUBLISH_WAIT_MS};
	result = target_send(&target, remote, &request, &response, err);
	*out_already = result == 0 && response.status == 200;
out:
	http_response_release(&response);
	buffer_release(&body);
	return result;
}

static int get_step(struct target *target, struct remote *remote, int64_t wait_ms, struct arena *arena, struct step_message *out, bool *out_found,
	struct error *err)
{
	const struct http_request request = {.method = "GET", .wait_ms = wait_ms};
	struct http_response response;
	int result = target_send(target, remote, &request, &response, err);
	*out_found = result == 0 && response.status != 204;
	if (*out_found && step_message_parse(buffer_span(&response.body), arena, out, err) != 0)
		result = nonsense(err, "manifest");
	http_response_release(&response);
	return result;
}

int remote_run_step(struct remote *remote, const struct run_name *run, uint64_t step, struct arena *arena, struct step_message *out, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_format(&target.text, "/steps/%" PRIu64, step);
	bool found;
	if (get_step(&target, remote, 0, arena, out, &found, err) != 0)
		return -1;
	return found ? 0 : error_set(err, ERROR_NO_STEP, "run %s has no step %" PRIu64, run->text, step);
}

int remote_run_latest(struct remote *remote, const struct run_name *run, const struct remote_run_wait *wait, struct arena *arena,
	struct step_message *out, bool *out_found, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_format(&target.text, "/steps/latest?wait=%" PRIu64, wait->wait_s);
	if (wait->has_after)
		buffer_format(&target.text, "&after=%" PRIu64, wait->after);
	return get_step(&target, remote, (int64_t)wait->wait_s * 1000, arena, out, out_found, err);
}

int remote_run_path(struct remote *remote, const struct run_name *run, const struct remote_run_route *route, struct arena *arena,
	struct path_message *out, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	if (route->has_want)
		buffer_format(&target.text, "/path?want=%" PRIu64, route->want);
	else
		buffer_add_text(&target.text, "/path?want=latest");
	if (route->has_have) {
		char digest[DIGEST128_TEXT_BYTES];
		digest128_format(&route->digest, digest);
		buffer_format(&target.text, "&have=%" PRIu64 "&digest=%s", route->have, digest);
	}
	const struct http_request request = {.method = "GET"};
	struct http_response response;
	int result = target_send(&target, remote, &request, &response, err);
	if (result == 0 && path_message_parse(buffer_span(&response.body), arena, out, err) != 0)
		result = nonsense(err, "path");
	http_response_release(&response);
	return result;
}

/* A page of `member` objects, each in its printed form, for the parser of one. */
typedef int take_item_fn(void *into, size_t index, struct span json, struct arena *arena, struct error *err);

static int read_page(struct span body, const char *member, size_t item_bytes, take_item_fn *take, struct arena *arena, void **out, size_t *out_count,
	bool *out_more, struct error *err)
{
	struct json_node *const root = json_node_parse(body, "the server's page", err);
	if (root == NULL)
		return -1;
	const struct json_node *const list = json_node_member(root, member);
	struct buffer text;
	buffer_init(&text, STEP_MESSAGE_MAX_BYTES);
	int result = -1;
	if (!json_node_is_array(list)) {
		error_set(err, ERROR_UPSTREAM, "the server's page holds no list \"%s\"", member);
		goto out;
	}
	const size_t count = json_node_count(list);
	void *const items = arena_take_array(arena, count + 1, item_bytes);
	if (items == NULL) {
		error_set(err, ERROR_TOO_LARGE, "the server's page is over the memory set aside for it");
		goto out;
	}
	for (size_t i = 0; i < count; i++) {
		buffer_reset(&text);
		json_node_print(json_node_at(list, i), &text);
		if (buffer_check(&text, "an entry of the server's page", err) != 0 || take(items, i, buffer_span(&text), arena, err) != 0)
			goto out;
	}
	*out_more = json_node_member(root, "next") != NULL;
	*out = items;
	*out_count = count;
	result = 0;
out:
	buffer_release(&text);
	json_node_free(root);
	return result;
}

static int take_run(void *into, size_t index, struct span json, struct arena *arena, struct error *err)
{
	return run_message_parse(json, arena, (struct run_message *)into + index, err);
}

static int take_step(void *into, size_t index, struct span json, struct arena *arena, struct error *err)
{
	return step_message_parse(json, arena, (struct step_message *)into + index, err);
}

int remote_run_list(struct remote *remote, struct span bucket, struct span after, struct arena *arena, struct run_message **out, size_t *out_count,
	bool *out_more, struct error *err)
{
	struct target target;
	buffer_init(&target.text, TARGET_MAX_BYTES);
	buffer_add_text(&target.text, "/v1/runs/");
	encode_percent(span_slice(bucket, 0, 255), false, &target.text);
	if (after.len > 0) {
		buffer_add_text(&target.text, "?after=");
		encode_percent(span_slice(after, 0, 255), false, &target.text);
	}
	const struct http_request request = {.method = "GET"};
	struct http_response response;
	void *runs = NULL;
	int result = target_send(&target, remote, &request, &response, err);
	if (result == 0)
		result = read_page(buffer_span(&response.body), "runs", sizeof **out, take_run, arena, &runs, out_count, out_more, err);
	*out = runs;
	http_response_release(&response);
	return result;
}

int remote_run_list_steps(struct remote *remote, const struct run_name *run, uint64_t from, struct arena *arena, struct step_message **out,
	size_t *out_count, bool *out_more, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_format(&target.text, "/steps?from=%" PRIu64, from);
	const struct http_request request = {.method = "GET"};
	struct http_response response;
	void *steps = NULL;
	int result = target_send(&target, remote, &request, &response, err);
	if (result == 0)
		result = read_page(buffer_span(&response.body), "steps", sizeof **out, take_step, arena, &steps, out_count, out_more, err);
	*out = steps;
	http_response_release(&response);
	return result;
}
