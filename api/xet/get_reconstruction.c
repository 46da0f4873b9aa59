/* A helper makes the plan and prints the reply, because even a few bytes may lie in very many
 * places. If the plan meets a derived version without a made file, the request waits for that file
 * and then makes the plan again, from a new snapshot:
 *
 *   answer --> helper: get_reconstruction_plan --> conclude --> reply
 *     ^                                               |
 *     +------ the file was made <-- wait <------------+ */
#include "api/xet/handlers.h"

#include <stddef.h>

#include "api/auth/xet_token.h"
#include "api/exchange/base_url.h"
#include "api/exchange/caller.h"
#include "api/exchange/json_reply.h"
#include "api/xet/reconstruction_json.h"
#include "api/xet/xet_lookup.h"
#include "api/xet/xet_range.h"
#include "base/thread/helpers.h"
#include "storage/xet/made_file.h"

enum {
	BATCH_FILES_MAX = 256,
	REPLY_MAX_BYTES = 192 * 1024 * 1024,
	REPLY_SMALL_BYTES = 64 * 1024, /* smaller replies take no share */
	WAITS_MORE_MAX = 3,            /* waits beyond one for each file */
	LIST_MAX_BYTES = 64 * 1024,
	LIST_VALUES_MAX = 1024
};

struct asked_file {
	struct chunk_id file;
	size_t term_end; /* end of its terms in the plan */
	bool found;
};
struct plan_request { /* the exchange's state */
	struct helper_job job;
	struct helper_lane lane;
	struct exchange *exchange;
	const char *base; /* URLs begin with it */
	bool grouped;     /* the second form */
	bool is_batch;
	bool as_stored;
	bool has_range;      /* there is a Range header */
	bool range_is_sound; /* with one range */
	struct xet_range range;
	uint64_t skip;                  /* bytes of the first term to skip; not for a batch */
	struct made_file_request *wait; /* NULL: a helper works, or has worked */
	size_t waits;                   /* how many were begun */
	struct reconstruction plan;
	int64_t version;         /* not 0: the derived version that needs a made file first */
	struct buffer body;      /* of the reply, after the plan */
	struct share_hold share; /* of the bytes of large replies */
	int result;              /* of plan and reply */
	struct error error;
	size_t count;
	struct asked_file files[];
};

static enum next conclude(struct exchange *exchange);
static enum next wait_for_made_file(struct exchange *exchange);
static void get_reconstruction_hang_up(struct exchange *exchange);
static void release_wait(struct plan_request *request);
static enum next answer(struct exchange *exchange);
static void get_reconstruction_plan(struct helper_job *job);
static void make_plan(struct plan_request *request);
static int plan_all(struct plan_request *request, struct error *err);
static int plan_batch(struct plan_request *request, struct xet_view *view, struct error *err);
static bool is_repeated(const struct plan_request *request, size_t index);
static int plan_content(struct plan_request *request, struct xet_view *view,
	const struct xet_content *content, struct reconstruction_bytes *bytes, struct error *err);
static int plan_file(struct plan_request *request, struct xet_view *view, struct error *err);
static int asked_bytes(const struct plan_request *request, uint64_t size,
	struct reconstruction_bytes *out, struct error *err);
static int print_plan(struct plan_request *request, struct error *err);
static void print_terms(
	const struct reconstruction_json *reply, const struct plan_request *request);
static int take_share(struct plan_request *request, struct error *err);
static void get_reconstruction_displace(struct share_hold *share);
static enum next begin_file(struct exchange *exchange, bool grouped);
static struct plan_request *plan_request_new(
	struct exchange *exchange, size_t files, struct error *err);
static void take_headers(struct exchange *exchange, struct plan_request *request);
static void get_reconstruction_release(struct exchange *exchange);
static int parse_batch(struct exchange *exchange, struct plan_request *request, struct error *err);
static int parse_list(
	const struct json_node *root, struct plan_request *request, struct error *err);

enum next get_reconstruction_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct plan_request *const request = exchange->state;
	if (request->wait == NULL)
		return conclude(exchange);
	const int result = made_file_request_outcome(request->wait, &err);
	release_wait(request);
	return result == 0 ? answer(exchange) : exchange_fail(exchange, &err);
}

enum next get_reconstruction_v1_begin(struct exchange *exchange)
{
	return begin_file(exchange, false);
}

enum next get_reconstruction_v2_begin(struct exchange *exchange)
{
	return begin_file(exchange, true);
}

enum next get_reconstruction_batch_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct plan_request *const request = plan_request_new(exchange, BATCH_FILES_MAX, &err);
	if (request == NULL || parse_batch(exchange, request, &err) != 0)
		return exchange_fail(exchange, &err);
	return answer(exchange);
}

enum next get_reconstruction_list_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, LIST_MAX_BYTES);
}

enum next get_reconstruction_list_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct plan_request *const request = plan_request_new(exchange, BATCH_FILES_MAX, &err);
	struct json_node *const root = request == NULL
		? NULL
		: json_node_parse_within(
			  exchange_body(exchange), LIST_VALUES_MAX, "the list of files", &err);
	const int result = root == NULL ? -1 : parse_list(root, request, &err);
	json_node_free(root);
	return result == 0 ? answer(exchange) : exchange_fail(exchange, &err);
}

enum next get_reconstruction_file_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct chunk_id file;
	struct xet_content content;
	struct xet_view *const view = xet_view_new(exchange->context->store, &err);
	const int result =
		view == NULL || xet_lookup_parse(exchange->parameters[0], &file, &err) != 0
		? -1
		: xet_lookup_find(exchange, view, &file, &content, &err);
	xet_view_free(view);
	if (result != 0)
		return exchange_fail(exchange, &err);
	exchange_add_header(exchange, "Cache-Control", "private, no-store");
	const enum next next = exchange_reply_empty(exchange, 200);
	exchange->reply.length = content.size;
	exchange->reply.length_known = true;
	return next;
}

static enum next conclude(struct exchange *exchange)
{
	struct plan_request *const request = exchange->state;
	if (request->result != 0)
		return exchange_fail(exchange, &request->error);
	if (request->version != 0)
		return wait_for_made_file(exchange);
	exchange_add_header(exchange, "Cache-Control", "private, no-store");
	return json_reply(exchange, 200, &request->body);
}

/* When many files are made at once, a made file may be removed before the plan that waits for it.
 * So the number of waits is limited. */
static enum next wait_for_made_file(struct exchange *exchange)
{
	struct plan_request *const request = exchange->state;
	ASSERT(request->wait == NULL && request->version != 0);
	if (request->waits++ == request->count + WAITS_MORE_MAX) {
		struct error err = {0};
		error_set(&err, ERROR_BUSY,
			"There is no room for the records of all derived objects that are asked for. Please try again later.");
		return exchange_fail(exchange, &err);
	}
	request->wait = made_file_request_start(
		exchange->context->store, request->version, exchange_wake_owner, exchange);
	exchange->hang_up = get_reconstruction_hang_up;
	return NEXT_WAIT;
}

/* Only the wait for a made file needs to be ended; the helper's work ends by itself. */
static void get_reconstruction_hang_up(struct exchange *exchange)
{
	struct plan_request *const request = exchange->state;
	if (request->wait != NULL)
		made_file_request_give_up(exchange->context->store, request->wait);
}

static void release_wait(struct plan_request *request)
{
	made_file_request_free(request->wait);
	request->wait = NULL;
}

static enum next answer(struct exchange *exchange)
{
	struct plan_request *const request = exchange->state;
	request->job.run = get_reconstruction_plan;
	helpers_submit(store_helpers(exchange->context->store), &request->lane, &request->job);
	return NEXT_WAIT;
}

static void get_reconstruction_plan(struct helper_job *job)
{
	struct plan_request *const request = (struct plan_request *)job;
	make_plan(request);
	exchange_wake(request->exchange); /* from here on the request may be gone */
}

static void make_plan(struct plan_request *request)
{
	ASSERT(request->wait == NULL && request->body.data == NULL);
	request->version = 0;
	request->result = plan_all(request, &request->error);
	if (request->result == 0 && request->version == 0)
		request->result = print_plan(request, &request->error) == 0
			? take_share(request, &request->error)
			: -1;
	if (request->result != 0)
		buffer_release(&request->body);
	reconstruction_release(&request->plan);
}

/* Makes the whole plan in one snapshot, or sets request->version. */
static int plan_all(struct plan_request *request, struct error *err)
{
	struct store *const store = request->exchange->context->store;
	struct xet_view *const view = xet_view_new(store, err);
	if (view == NULL)
		return -1;
	int result =
		request->is_batch ? plan_batch(request, view, err) : plan_file(request, view, err);
	if (result == 0 && request->version == 0)
		result = reconstruction_place(&request->plan, store, request->as_stored, err);
	xet_view_free(view);
	return result;
}

/* Plans the files that exist; the others are left out. Stops at a derived version without a made
 * file. */
static int plan_batch(struct plan_request *request, struct xet_view *view, struct error *err)
{
	for (size_t i = 0; i < request->count && request->version == 0; i++) {
		struct xet_content content;
		struct error missing = {0};
		struct asked_file *const file = &request->files[i];
		file->found = !is_repeated(request, i) &&
			xet_lookup_find(request->exchange, view, &file->file, &content, &missing) ==
				0;
		if (missing.kind != ERROR_NONE && missing.kind != ERROR_NOT_FOUND) {
			*err = missing;
			return -1;
		}
		struct reconstruction_bytes whole = {.from = 0, .to = content.size};
		if (file->found && plan_content(request, view, &content, &whole, err) != 0)
			return -1;
		file->term_end = request->plan.term_count;
	}
	return 0;
}

/* Whether the batch names the file before `index`, too. */
static bool is_repeated(const struct plan_request *request, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (chunk_id_equal(&request->files[i].file, &request->files[index].file))
			return true;
	return false;
}

static int plan_content(struct plan_request *request, struct xet_view *view,
	const struct xet_content *content, struct reconstruction_bytes *bytes, struct error *err)
{
	if (content->kind == XET_CONTENT_DERIVED) {
		request->version = content->version;
		return 0;
	}
	if (content->is_made)
		made_file_touch(request->exchange->context->store, &content->file);
	return xet_view_load(view, &request->plan, content, bytes, err);
}

static int plan_file(struct plan_request *request, struct xet_view *view, struct error *err)
{
	struct xet_content content;
	struct reconstruction_bytes bytes;
	if (xet_lookup_find(request->exchange, view, &request->files[0].file, &content, err) != 0 ||
		asked_bytes(request, content.size, &bytes, err) != 0 ||
		plan_content(request, view, &content, &bytes, err) != 0)
		return -1;
	request->skip = bytes.skip;
	return 0;
}

/* The bytes that the request asks for. */
static int asked_bytes(const struct plan_request *request, uint64_t size,
	struct reconstruction_bytes *out, struct error *err)
{
	*out = (struct reconstruction_bytes){.from = 0, .to = size};
	if (!request->has_range ||
		(request->range_is_sound &&
			xet_range_resolve(&request->range, size, &out->from, &out->to)))
		return 0;
	return error_set(err, ERROR_RANGE, "The range lies outside the file of %llu bytes.",
		(unsigned long long)size);
}

static int print_plan(struct plan_request *request, struct error *err)
{
	struct json_writer json;
	buffer_init(&request->body, REPLY_MAX_BYTES);
	json_writer_init(&json, &request->body);
	const struct reconstruction_json reply = {.exchange = request->exchange,
		.plan = &request->plan,
		.base = request->base,
		.as_stored = request->as_stored,
		.grouped = request->grouped,
		.json = &json};
	json_writer_object(&json, NULL);
	print_terms(&reply, request);
	const int result = reconstruction_json_ranges(&reply, err);
	json_writer_end(&json, '}');
	return result;
}

static void print_terms(const struct reconstruction_json *reply, const struct plan_request *request)
{
	if (!request->is_batch) {
		json_writer_u64(reply->json, "offset_into_first_range", request->skip);
		reconstruction_json_terms(reply, "terms", 0, reply->plan->term_count);
		return;
	}
	json_writer_object(reply->json, "files");
	for (size_t i = 0; i < request->count; i++) {
		char hash[CHUNK_ID_TEXT_BYTES];
		chunk_id_format(&request->files[i].file, hash);
		if (request->files[i].found)
			reconstruction_json_terms(reply, hash,
				i > 0 ? request->files[i - 1].term_end : 0,
				request->files[i].term_end);
	}
	json_writer_end(reply->json, '}');
}

/* A large reply takes a share of the memory for replies, because it stays there until a client that
 * may be slow has read it. */
static int take_share(struct plan_request *request, struct error *err)
{
	const uint64_t bytes = request->body.capacity;
	struct share_pool *const pool = request->exchange->context->shares.replies;
	if (pool == NULL || bytes <= REPLY_SMALL_BYTES)
		return 0;
	request->share.displace = get_reconstruction_displace;
	if (share_take(pool, &request->share, caller_of(request->exchange), bytes))
		return 0;
	return error_set(err, ERROR_BUSY, "Large answers are still being read. Please try again.");
}

/* Another caller's reply needs the memory. */
static void get_reconstruction_displace(struct share_hold *share)
{
	struct exchange *const exchange =
		((struct plan_request *)((char *)share - offsetof(struct plan_request, share)))
			->exchange;
	exchange->ops->cut(exchange);
}

static enum next begin_file(struct exchange *exchange, bool grouped)
{
	struct error err = {0};
	struct plan_request *const request = plan_request_new(exchange, 1, &err);
	if (request == NULL ||
		xet_lookup_parse(exchange->parameters[0], &request->files[0].file, &err) != 0)
		return exchange_fail(exchange, &err);
	request->grouped = grouped;
	request->count = 1;
	return answer(exchange);
}

static struct plan_request *plan_request_new(
	struct exchange *exchange, size_t files, struct error *err)
{
	struct plan_request *const request =
		arena_take(exchange->arena, sizeof(*request) + files * sizeof(request->files[0]));
	if (request == NULL) {
		error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return NULL;
	}
	request->exchange = exchange;
	take_headers(exchange, request);
	exchange->state = request;
	exchange->release = get_reconstruction_release;
	return request;
}

/* Reads the headers before the helper works, which must not use them. */
static void take_headers(struct exchange *exchange, struct plan_request *request)
{
	const struct span header = exchange_header(exchange, "range");
	struct xet_range ranges[XET_RANGES_MAX];
	size_t count = 0;
	request->base = base_url(exchange);
	request->as_stored =
		span_equal_text(exchange_header(exchange, "x-deltabucket-codecs"), "all");
	request->has_range = header.data != NULL;
	request->range_is_sound = xet_range_parse(header, ranges, &count) && count == 1;
	if (request->range_is_sound)
		request->range = ranges[0];
}

static void get_reconstruction_release(struct exchange *exchange)
{
	struct plan_request *const request = exchange->state;
	release_wait(request);
	buffer_release(&request->body);
	if (exchange->context->shares.replies != NULL)
		share_give(exchange->context->shares.replies, &request->share);
}

static int parse_batch(struct exchange *exchange, struct plan_request *request, struct error *err)
{
	request->is_batch = true;
	/* the router has split the query */
	for (size_t i = 0; i < exchange->query_parameter_count; i++) {
		if (!span_equal_text(exchange->query_parameters[i].name, "file_id"))
			continue;
		if (request->count == BATCH_FILES_MAX)
			return error_set(err, ERROR_INVALID,
				"A request may ask for at most %d files.", BATCH_FILES_MAX);
		if (xet_lookup_parse(exchange->query_parameters[i].value,
			    &request->files[request->count++].file, err) != 0)
			return -1;
	}
	return 0;
}

/* Reads [{"prefix": ..., "hash": ...}, ...], as old documents describe it. */
static int parse_list(const struct json_node *root, struct plan_request *request, struct error *err)
{
	request->is_batch = true;
	if (!json_node_is_array(root) || json_node_count(root) > BATCH_FILES_MAX)
		return error_set(err, ERROR_INVALID, "The body must be a list of at most %d files.",
			BATCH_FILES_MAX);
	for (; request->count < json_node_count(root); request->count++) {
		struct span hash = {NULL, 0};
		(void)json_node_text(
			json_node_member(json_node_at(root, request->count), "hash"), &hash);
		if (xet_lookup_parse(hash, &request->files[request->count].file, err) != 0)
			return -1;
	}
	return 0;
}
