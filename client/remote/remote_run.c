/* Each call builds a target, sends it, and hands the body to a parser of wire/. target_send also
 * releases the target, so that a call has one object to release: the response. A body that the
 * parser refuses is the server's fault: its error becomes upstream. Pages of runs and of steps
 * differ only in their member and in the parser of an entry, which a table names. */
#include "client/remote/remote_run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/encode.h"
#include "base/format/json_node.h"
#include "client/remote/remote_json.h"

enum {
	TARGET_MAX_BYTES = 4096,
	LATEST_WAIT_MAX_S = 60,
	/* Before it commits a step, the server may read objects that have no digest, and the
	 * headers of an anchor. */
	PUBLISH_WAIT_MS = 10 * 60 * 1000
};

/* A request target that is being built. It always fits, because all of its parts are bounded. */
struct target {
	struct buffer text;
};

/* A kind of page: the member that has the list, the size of a parsed entry, and its parser, which
 * reads the entry's printed form. */
struct page_kind {
	const char *member;
	size_t item_bytes;
	int (*parse)(void *item, struct span json, struct arena *arena, struct error *err);
};

static void target_begin(struct target *target, const struct run_name *run);
static int ask_run(struct target *target, struct remote *remote, const struct http_request *request,
	struct arena *arena, struct run_message *out, struct error *err);
static int target_send(struct target *target, struct remote *remote,
	const struct http_request *request, struct http_response *response, struct error *err);
static int refuse_answer(struct error *err, const char *what);
static void read_published(const struct http_response *response, struct remote_run_published *out);
static int require_step(int found, const struct run_name *run, uint64_t step, struct error *err);
static int get_step(struct target *target, struct remote *remote, int64_t wait_ms,
	struct arena *arena, struct step_message *out, struct error *err);
static int get_page(struct target *target, struct remote *remote, const struct page_kind *kind,
	struct arena *arena, struct remote_run_page *out, struct error *err);
static void *read_items(const struct page_kind *kind, const struct json_node *list,
	struct arena *arena, struct error *err);
static int parse_run(void *item, struct span json, struct arena *arena, struct error *err);
static int parse_step(void *item, struct span json, struct arena *arena, struct error *err);

static const char *const JSON_HEADERS[] = {"Content-Type: application/json", NULL};

static const struct page_kind PAGE_OF_RUNS = {"runs", sizeof(struct run_message), parse_run};

static const struct page_kind PAGE_OF_STEPS = {"steps", sizeof(struct step_message), parse_step};

int remote_run_open(struct remote *remote, const struct run_name *run, const uint64_t *keep_steps,
	struct arena *arena, struct run_message *out, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	char body[64] = "{}";
	if (keep_steps != NULL)
		snprintf(body, sizeof(body), "{\"keep_steps\":%" PRIu64 "}", *keep_steps);
	const struct http_request request = {
		.method = "POST", .headers = JSON_HEADERS, .body = span_text(body)};
	return ask_run(&target, remote, &request, arena, out, err);
}

int remote_run_set_keep(
	struct remote *remote, const struct run_name *run, uint64_t keep_steps, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_add_text(&target.text, "/settings");
	char body[64];
	snprintf(body, sizeof(body), "{\"keep_steps\":%" PRIu64 "}", keep_steps);
	const struct http_request request = {
		.method = "PUT", .headers = JSON_HEADERS, .body = span_text(body)};
	struct http_response response;
	const int result = target_send(&target, remote, &request, &response, err);
	http_response_release(&response);
	return result;
}

int remote_run_find(struct remote *remote, const struct run_name *run, struct arena *arena,
	struct run_message *out, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	const struct http_request request = {.method = "GET"};
	return ask_run(&target, remote, &request, arena, out, err);
}

int remote_run_rollback(struct remote *remote, const struct run_name *run, const uint64_t *step,
	struct arena *arena, struct run_message *out, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_add_text(&target.text, "/rollback");
	char body[64] = "";
	if (step != NULL)
		snprintf(body, sizeof(body), "{\"step\":%" PRIu64 "}", *step);
	const struct http_request request = {.method = step != NULL ? "PUT" : "DELETE",
		.headers = step != NULL ? JSON_HEADERS : NULL,
		.body = span_text(body)};
	return ask_run(&target, remote, &request, arena, out, err);
}

/* Reads the webhook, which only writers may read. */
int remote_run_may_write(struct remote *remote, const struct run_name *run, struct error *err)
{
	struct target target;
	struct error failure = {0};
	target_begin(&target, run);
	buffer_add_text(&target.text, "/webhook");
	const struct http_request request = {.method = "GET"};
	struct http_response response;
	const int result = target_send(&target, remote, &request, &response, &failure);
	http_response_release(&response);
	if (result == 0 || (failure.kind != ERROR_DENIED && failure.kind != ERROR_NO_CREDENTIALS))
		return 0; /* the next request reports any other failure */
	*err = failure;
	return -1;
}

int remote_run_publish(struct remote *remote, const struct run_name *run,
	const struct step_message *step, struct remote_run_published *out, struct error *err)
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
	const struct http_request request = {.method = "PUT",
		.headers = JSON_HEADERS,
		.body = buffer_span(&body),
		.wait_ms = PUBLISH_WAIT_MS};
	result = target_send(&target, remote, &request, &response, err);
	if (result == 0)
		read_published(&response, out);
out:
	http_response_release(&response);
	buffer_release(&body);
	return result;
}

int remote_run_step(struct remote *remote, const struct run_name *run, uint64_t step,
	struct arena *arena, struct step_message *out, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_format(&target.text, "/steps/%" PRIu64, step);
	return require_step(get_step(&target, remote, 0, arena, out, err), run, step, err);
}

int remote_run_step_tensors(struct remote *remote, const struct run_name *run, uint64_t step,
	struct arena *arena, struct step_message *out, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_format(&target.text, "/steps/%" PRIu64 "?tensors=true", step);
	return require_step(get_step(&target, remote, 0, arena, out, err), run, step, err);
}

int remote_run_latest(struct remote *remote, const struct run_name *run,
	const struct remote_run_wait *wait, struct arena *arena, struct step_message *out,
	struct error *err)
{
	struct target target;
	ASSERT(wait->wait_s <= LATEST_WAIT_MAX_S);
	target_begin(&target, run);
	buffer_format(&target.text, "/steps/latest?wait=%" PRIu64, wait->wait_s);
	if (wait->has_after)
		buffer_format(&target.text, "&after=%" PRIu64, wait->after);
	if (wait->of_head)
		buffer_add_text(&target.text, "&head=true");
	return get_step(&target, remote, (int64_t)wait->wait_s * 1000, arena, out, err);
}

int remote_run_path(struct remote *remote, const struct run_name *run,
	const struct remote_run_route *route, struct arena *arena, struct path_message *out,
	struct error *err)
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
	if (route->wait_s > 0)
		buffer_format(&target.text, "&wait=%" PRIu64, route->wait_s);
	const struct http_request request = {
		.method = "GET", .wait_ms = (int64_t)route->wait_s * 1000};
	struct http_response response;
	int result = target_send(&target, remote, &request, &response, err);
	if (result == 0 && path_message_parse(buffer_span(&response.body), arena, out, err) != 0)
		result = refuse_answer(err, "path");
	http_response_release(&response);
	return result;
}

int remote_run_list(struct remote *remote, struct span bucket, struct span after,
	struct arena *arena, struct remote_run_page *out, struct error *err)
{
	struct target target;
	buffer_init(&target.text, TARGET_MAX_BYTES);
	buffer_add_text(&target.text, "/v1/runs/");
	encode_percent(span_slice(bucket, 0, 255), false, &target.text);
	if (after.len > 0) {
		buffer_add_text(&target.text, "?after=");
		encode_percent(span_slice(after, 0, 255), false, &target.text);
	}
	return get_page(&target, remote, &PAGE_OF_RUNS, arena, out, err);
}

int remote_run_list_steps(struct remote *remote, const struct run_name *run, uint64_t from,
	struct arena *arena, struct remote_run_page *out, struct error *err)
{
	struct target target;
	target_begin(&target, run);
	buffer_format(&target.text, "/steps?from=%" PRIu64, from);
	return get_page(&target, remote, &PAGE_OF_STEPS, arena, out, err);
}

/* An id has no byte that a query must escape. */
int remote_run_list_replicas(struct remote *remote, const struct run_name *run, struct arena *arena,
	struct remote_run_replicas *page, struct error *err)
{
	struct target target;
	struct http_response response;
	const struct http_request request = {.method = "GET"};
	const struct span after = page->after;
	page->answer = NULL;
	target_begin(&target, run);
	buffer_format(&target.text, "/replicas?limit=%zu%s%.*s", page->limit,
		after.len > 0 ? "&after=" : "", (int)after.len, (const char *)after.data);
	int result = target_send(&target, remote, &request, &response, err);
	if (result == 0) {
		page->answer =
			remote_json_parse(buffer_span(&response.body), "the list of replicas", err);
		result = page->answer == NULL
			? -1
			: replica_list_message_read(page->answer, arena, &page->list, err);
		if (result != 0)
			err->kind = ERROR_UPSTREAM;
	}
	http_response_release(&response);
	return result;
}

void remote_run_replicas_release(struct remote_run_replicas *page)
{
	json_node_free(page->answer);
}

static void target_begin(struct target *target, const struct run_name *run)
{
	buffer_init(&target->text, TARGET_MAX_BYTES);
	buffer_add_text(&target->text, run->target);
}

/* Sends a request that a run answers. */
static int ask_run(struct target *target, struct remote *remote, const struct http_request *request,
	struct arena *arena, struct run_message *out, struct error *err)
{
	struct http_response response;
	int result = target_send(target, remote, request, &response, err);
	if (result == 0 && run_message_parse(buffer_span(&response.body), arena, out, err) != 0)
		result = refuse_answer(err, "answer about the run");
	http_response_release(&response);
	return result;
}

/* Sends the request and releases the target. */
static int target_send(struct target *target, struct remote *remote,
	const struct http_request *request, struct http_response *response, struct error *err)
{
	ASSERT(!buffer_failed(&target->text));
	struct http_request whole = *request;
	whole.target = buffer_text(&target->text);
	const int result = remote_send(remote, &whole, response, err);
	buffer_release(&target->text);
	return result;
}

/* An answer that cannot be parsed is the server's fault, whatever kind the parser gives it. */
static int refuse_answer(struct error *err, const char *what)
{
	err->kind = ERROR_UPSTREAM;
	return error_wrap(err, "the server's %s", what);
}

/* The status says that the step is published. The body is only a hint, and one that cannot be read
 * is ignored. */
static void read_published(const struct http_response *response, struct remote_run_published *out)
{
	struct error ignored = {0};
	struct json_node *const root =
		json_node_parse(buffer_span(&response->body), "the server's answer", &ignored);
	*out = (struct remote_run_published){.already = response->status == 200};
	json_node_bool(json_node_member(root, "anchor_due"), &out->anchor_due);
	if (rollback_message_read(root, &out->rollback, &ignored) != 0)
		out->rollback.is_on = false;
	json_node_free(root);
}

/* Turns the result of get_step into 0, or -1 with no_step when there is no such step. */
static int require_step(int found, const struct run_name *run, uint64_t step, struct error *err)
{
	if (found == 0)
		return error_set(
			err, ERROR_NO_STEP, "run %s has no step %" PRIu64, run->text, step);
	return found > 0 ? 0 : -1;
}

/* 1 with the step, 0 when the server answers that there is none. */
static int get_step(struct target *target, struct remote *remote, int64_t wait_ms,
	struct arena *arena, struct step_message *out, struct error *err)
{
	const struct http_request request = {.method = "GET", .wait_ms = wait_ms};
	struct http_response response;
	int result = target_send(target, remote, &request, &response, err);
	if (result == 0 && response.status != 204)
		result = step_message_parse(buffer_span(&response.body), arena, out, err) == 0
			? 1
			: refuse_answer(err, "manifest");
	http_response_release(&response);
	return result;
}

static int get_page(struct target *target, struct remote *remote, const struct page_kind *kind,
	struct arena *arena, struct remote_run_page *out, struct error *err)
{
	const struct http_request request = {.method = "GET"};
	struct http_response response;
	struct json_node *root = NULL;
	void *items = NULL;
	if (target_send(target, remote, &request, &response, err) != 0)
		goto out;
	root = remote_json_parse(buffer_span(&response.body), "the server's page", err);
	if (root == NULL)
		goto out;
	const struct json_node *const list = json_node_member(root, kind->member);
	if (!json_node_is_array(list))
		error_set(
			err, ERROR_UPSTREAM, "the server's page has no list \"%s\"", kind->member);
	else
		items = read_items(kind, list, arena, err);
	*out = (struct remote_run_page){
		.count = json_node_count(list), .more = json_node_member(root, "next") != NULL};
	if (kind == &PAGE_OF_RUNS)
		out->runs = items;
	else
		out->steps = items;
out:
	json_node_free(root);
	http_response_release(&response);
	return items != NULL ? 0 : -1;
}

/* The parsed entries of `list`, in the arena; NULL with the error set. */
static void *read_items(const struct page_kind *kind, const struct json_node *list,
	struct arena *arena, struct error *err)
{
	const size_t count = json_node_count(list);
	uint8_t *const items = arena_take_array(arena, count + 1, kind->item_bytes);
	struct buffer text;
	buffer_init(&text, STEP_MESSAGE_MAX_BYTES);
	int result = items != NULL
		? 0
		: error_set(err, ERROR_TOO_LARGE,
			  "the server's page needs more memory than is set aside for it");
	for (size_t i = 0; i < count && result == 0; i++) {
		buffer_reset(&text);
		json_node_print(json_node_at(list, i), &text);
		result = buffer_check(&text, "an entry of the server's page", err);
		if (result == 0)
			result = kind->parse(items + i * kind->item_bytes, buffer_span(&text),
					 arena, err) == 0
				? 0
				: refuse_answer(err, "page");
	}
	buffer_release(&text);
	return result == 0 ? items : NULL;
}

static int parse_run(void *item, struct span json, struct arena *arena, struct error *err)
{
	return run_message_parse(json, arena, item, err);
}

static int parse_step(void *item, struct span json, struct arena *arena, struct error *err)
{
	return step_message_parse(json, arena, item, err);
}
