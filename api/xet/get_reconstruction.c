/* A file that a derived version holds is made into records first: then the request waits, and looks
 * again. Plan and reply are a helper's work: however few bytes are asked for, they may lie in very
 * many places. */
#include "api/xet/get_reconstruction.h"

#include <stddef.h>

#include "api/auth/xet_token.h"
#include "api/exchange/base_url.h"
#include "api/exchange/caller.h"
#include "api/exchange/json_reply.h"
#include "api/xet/reconstruction_json.h"
#include "api/xet/xet_lookup.h"
#include "api/xet/xet_range.h"
#include "base/thread/helpers.h"
#include "storage/xet/xet_make.h"

enum {
	BATCH_FILES_MAX = 256,
	REPLY_MAX_BYTES = 192 * 1024 * 1024,
	REPLY_SMALL_BYTES = 64 * 1024, /* counts nothing */
	MAKES_MORE_MAX = 3,
	LIST_MAX_BYTES = 64 * 1024,
	LIST_VALUES_MAX = 1024
};

struct asked_file {
	struct chunk_id file;
	size_t term_end; /* its terms end here */
	bool found;
};
/* The exchange's state. */
struct asking {
	struct helper_job job;
	struct helper_lane lane;
	struct exchange *exchange;
	const char *base; /* of URLs */
	bool grouped;     /* the second form */
	bool is_batch;
	bool as_stored;
	bool has_range;      /* a Range header is there, and */
	bool range_is_sound; /* can be understood */
	struct xet_range range;
	uint64_t skip;         /* into the first term; not of a batch */
	struct xet_make *make; /* under way, or done; NULL: a helper has made the plan */
	size_t makes;          /* so many were begun */
	struct reconstruction plan;
	int64_t version;        /* not 0: this one is to be made first */
	struct buffer body;     /* of the reply, once there is a plan */
	struct share_hold hold; /* of the bytes of large replies */
	int result;             /* of both */
	struct error error;
	size_t count;
	struct asked_file files[];
};

static enum next conclude(struct exchange *exchange);
static enum next wait_for_make(struct exchange *exchange);
static void hang_up(struct exchange *exchange);
static void release_make(struct asking *asking);
static enum next answer(struct exchange *exchange);
static void reconstruction_run_plan(struct helper_job *job);
static void make_plan(struct asking *asking);
static int plan_all(struct asking *asking, struct error *err);
static int plan_batch(struct asking *asking, struct xet_view *view, struct error *err);
static bool stands_before(const struct asking *asking, size_t index);
static int plan_content(struct asking *asking, struct xet_view *view,
	const struct xet_content *content, uint64_t from, uint64_t to, uint64_t *out_skip,
	struct error *err);
static int plan_file(struct asking *asking, struct xet_view *view, struct error *err);
static int asked_range(const struct asking *asking, uint64_t size, uint64_t *out_from,
	uint64_t *out_to, struct error *err);
static int print_plan(struct asking *asking, struct error *err);
static void print_terms(const struct reconstruction_json *reply, const struct asking *asking);
static int hold_body(struct asking *asking, struct error *err);
static void reconstruction_displace(struct share_hold *hold);
static enum next begin_file(struct exchange *exchange, bool grouped);
static struct asking *asking_new(struct exchange *exchange, size_t files, struct error *err);
static void take_headers(struct exchange *exchange, struct asking *asking);
static void release(struct exchange *exchange);
static int parse_batch(struct exchange *exchange, struct asking *asking, struct error *err);
static int parse_list(const struct json_node *root, struct asking *asking, struct error *err);

enum next get_reconstruction_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct asking *const asking = exchange->state;
	if (asking->make == NULL)
		return conclude(exchange);
	const int result = xet_make_outcome(asking->make, &err);
	release_make(asking);
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
	struct asking *const asking = asking_new(exchange, BATCH_FILES_MAX, &err);
	if (asking == NULL || parse_batch(exchange, asking, &err) != 0)
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
	struct asking *const asking = asking_new(exchange, BATCH_FILES_MAX, &err);
	struct json_node *const root = asking == NULL
		? NULL
		: json_node_parse_within(
			  exchange_body(exchange), LIST_VALUES_MAX, "the list of files", &err);
	const int result = root == NULL ? -1 : parse_list(root, asking, &err);
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
	struct asking *const asking = exchange->state;
	if (asking->result != 0)
		return exchange_fail(exchange, &asking->error);
	if (asking->version != 0)
		return wait_for_make(exchange);
	exchange_add_header(exchange, "Cache-Control", "private, no-store");
	return json_reply(exchange, 200, &asking->body);
}

/* What was made may go again before it is looked at, when much is asked for at once: not for
 * ever. */
static enum next wait_for_make(struct exchange *exchange)
{
	struct asking *const asking = exchange->state;
	if (asking->makes++ == asking->count + MAKES_MORE_MAX) {
		struct error err = {0};
		error_set(&err, ERROR_BUSY,
			"more derived objects are asked for than there is room for their records: try again later");
		return exchange_fail(exchange, &err);
	}
	asking->make = xet_make_start(
		exchange->context->store, asking->version, exchange_wake_owner, exchange);
	exchange->hang_up = hang_up;
	return NEXT_WAIT;
}

/* A plan that a helper makes ends by itself. */
static void hang_up(struct exchange *exchange)
{
	struct asking *const asking = exchange->state;
	if (asking->make != NULL)
		xet_make_give_up(exchange->context->store, asking->make);
}

static void release_make(struct asking *asking)
{
	if (asking->make != NULL)
		xet_make_free(asking->make);
	asking->make = NULL;
}

static enum next answer(struct exchange *exchange)
{
	struct asking *const asking = exchange->state;
	asking->job.run = reconstruction_run_plan;
	helpers_submit(store_helpers(exchange->context->store), &asking->lane, &asking->job);
	return NEXT_WAIT;
}

static void reconstruction_run_plan(struct helper_job *job)
{
	struct asking *const asking = (struct asking *)job;
	make_plan(asking);
	exchange_wake(asking->exchange); /* nothing of it may be touched from here on */
}

static void make_plan(struct asking *asking)
{
	asking->version = 0;
	asking->result = plan_all(asking, &asking->error);
	if (asking->result == 0 && asking->version == 0)
		asking->result = print_plan(asking, &asking->error) == 0
			? hold_body(asking, &asking->error)
			: -1;
	if (asking->result != 0)
		buffer_release(&asking->body);
	reconstruction_release(&asking->plan);
}

/* The whole plan, in one snapshot; or the version that is to be made. */
static int plan_all(struct asking *asking, struct error *err)
{
	struct store *const store = asking->exchange->context->store;
	struct xet_view *const view = xet_view_new(store, err);
	if (view == NULL)
		return -1;
	int result =
		asking->is_batch ? plan_batch(asking, view, err) : plan_file(asking, view, err);
	if (result == 0 && asking->version == 0)
		result = reconstruction_place(&asking->plan, store, asking->as_stored, err);
	xet_view_free(view);
	return result;
}

/* What is unknown is left out. */
static int plan_batch(struct asking *asking, struct xet_view *view, struct error *err)
{
	for (size_t i = 0; i < asking->count && asking->version == 0; i++) {
		struct xet_content content;
		struct error missing = {0};
		uint64_t skip;
		struct asked_file *const file = &asking->files[i];
		file->found = !stands_before(asking, i) &&
			xet_lookup_find(asking->exchange, view, &file->file, &content, &missing) ==
				0;
		if (missing.kind != ERROR_NONE && missing.kind != ERROR_NOT_FOUND) {
			*err = missing;
			return -1;
		}
		if (file->found &&
			plan_content(asking, view, &content, 0, content.size, &skip, err) != 0)
			return -1;
		file->term_end = asking->plan.term_count;
	}
	return 0;
}

static bool stands_before(const struct asking *asking, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (chunk_id_equal(&asking->files[i].file, &asking->files[index].file))
			return true;
	return false;
}

static int plan_content(struct asking *asking, struct xet_view *view,
	const struct xet_content *content, uint64_t from, uint64_t to, uint64_t *out_skip,
	struct error *err)
{
	if (content->kind == XET_CONTENT_DERIVED) {
		asking->version = content->version;
		return 0;
	}
	if (content->is_made)
		xet_make_touch(asking->exchange->context->store, &content->file);
	return xet_view_load(view, &asking->plan, content, from, to, out_skip, err);
}

static int plan_file(struct asking *asking, struct xet_view *view, struct error *err)
{
	struct xet_content content;
	uint64_t from;
	uint64_t to;
	if (xet_lookup_find(asking->exchange, view, &asking->files[0].file, &content, err) != 0 ||
		asked_range(asking, content.size, &from, &to, err) != 0)
		return -1;
	return plan_content(asking, view, &content, from, to, &asking->skip, err);
}

/* Bytes [*out_from, *out_to) of the file are asked for. */
static int asked_range(const struct asking *asking, uint64_t size, uint64_t *out_from,
	uint64_t *out_to, struct error *err)
{
	*out_from = 0;
	*out_to = size;
	if (!asking->has_range ||
		(asking->range_is_sound &&
			xet_range_resolve(&asking->range, size, out_from, out_to)))
		return 0;
	return error_set(err, ERROR_RANGE, "the range lies outside the file of %llu bytes",
		(unsigned long long)size);
}

static int print_plan(struct asking *asking, struct error *err)
{
	struct json_writer json;
	buffer_init(&asking->body, REPLY_MAX_BYTES);
	json_writer_init(&json, &asking->body);
	const struct reconstruction_json reply = {.exchange = asking->exchange,
		.plan = &asking->plan,
		.base = asking->base,
		.as_stored = asking->as_stored,
		.grouped = asking->grouped,
		.json = &json};
	json_writer_object(&json, NULL);
	print_terms(&reply, asking);
	const int result = reconstruction_json_ranges(&reply, err);
	json_writer_end(&json, '}');
	return result;
}

static void print_terms(const struct reconstruction_json *reply, const struct asking *asking)
{
	if (!asking->is_batch) {
		json_writer_u64(reply->json, "offset_into_first_range", asking->skip);
		reconstruction_json_terms(reply, "terms", 0, reply->plan->term_count);
		return;
	}
	json_writer_object(reply->json, "files");
	for (size_t i = 0; i < asking->count; i++) {
		char hash[CHUNK_ID_TEXT_BYTES];
		chunk_id_format(&asking->files[i].file, hash);
		if (asking->files[i].found)
			reconstruction_json_terms(reply, hash,
				i > 0 ? asking->files[i - 1].term_end : 0,
				asking->files[i].term_end);
	}
	json_writer_end(reply->json, '}');
}

/* It stays in memory for as long as the client takes to read it. */
static int hold_body(struct asking *asking, struct error *err)
{
	const uint64_t bytes = asking->body.capacity;
	struct share_pool *const pool = asking->exchange->context->shares.replies;
	if (pool == NULL || bytes <= REPLY_SMALL_BYTES)
		return 0;
	asking->hold.displace = reconstruction_displace;
	if (share_take(pool, &asking->hold, caller_of(asking->exchange), bytes))
		return 0;
	return error_set(err, ERROR_BUSY, "Large answers are still being read. Please try again.");
}

/* The memory is needed for another's reply. */
static void reconstruction_displace(struct share_hold *hold)
{
	struct exchange *const exchange =
		((struct asking *)((char *)hold - offsetof(struct asking, hold)))->exchange;
	exchange->ops->cut(exchange);
}

static enum next begin_file(struct exchange *exchange, bool grouped)
{
	struct error err = {0};
	struct asking *const asking = asking_new(exchange, 1, &err);
	if (asking == NULL ||
		xet_lookup_parse(exchange->parameters[0], &asking->files[0].file, &err) != 0)
		return exchange_fail(exchange, &err);
	asking->grouped = grouped;
	asking->count = 1;
	return answer(exchange);
}

static struct asking *asking_new(struct exchange *exchange, size_t files, struct error *err)
{
	struct asking *const asking =
		arena_take(exchange->arena, sizeof(*asking) + files * sizeof(asking->files[0]));
	if (asking == NULL) {
		error_set(err, ERROR_NO_MEMORY, "the memory of a request ran out");
		return NULL;
	}
	asking->exchange = exchange;
	take_headers(exchange, asking);
	exchange->state = asking;
	exchange->release = release;
	return asking;
}

/* What of the request's headers counts; a helper does not look at them. */
static void take_headers(struct exchange *exchange, struct asking *asking)
{
	const struct span header = exchange_header(exchange, "range");
	struct xet_range ranges[XET_RANGES_MAX];
	size_t count = 0;
	asking->base = base_url(exchange);
	asking->as_stored =
		span_equal_text(exchange_header(exchange, "x-deltabucket-codecs"), "all");
	asking->has_range = header.data != NULL;
	asking->range_is_sound = xet_range_parse(header, ranges, &count) && count == 1;
	if (asking->range_is_sound)
		asking->range = ranges[0];
}

static void release(struct exchange *exchange)
{
	struct asking *const asking = exchange->state;
	release_make(asking);
	buffer_release(&asking->body);
	if (exchange->context->shares.replies != NULL)
		share_give(exchange->context->shares.replies, &asking->hold);
}

static int parse_batch(struct exchange *exchange, struct asking *asking, struct error *err)
{
	asking->is_batch = true;
	/* the router has taken the query apart */
	for (size_t i = 0; i < exchange->query_parameter_count; i++) {
		if (!span_equal_text(exchange->query_parameters[i].name, "file_id"))
			continue;
		if (asking->count == BATCH_FILES_MAX)
			return error_set(err, ERROR_INVALID,
				"at most %d files can be asked for at once", BATCH_FILES_MAX);
		if (xet_lookup_parse(exchange->query_parameters[i].value,
			    &asking->files[asking->count++].file, err) != 0)
			return -1;
	}
	return 0;
}

/* [{"prefix": ..., "hash": ...}, ...], as old documents have it. */
static int parse_list(const struct json_node *root, struct asking *asking, struct error *err)
{
	asking->is_batch = true;
	if (!json_node_is_array(root) || json_node_count(root) > BATCH_FILES_MAX)
		return error_set(err, ERROR_INVALID, "a list of at most %d files is wanted",
			BATCH_FILES_MAX);
	for (; asking->count < json_node_count(root); asking->count++) {
		struct span hash = {NULL, 0};
		(void)json_node_text(
			json_node_member(json_node_at(root, asking->count), "hash"), &hash);
		if (xet_lookup_parse(hash, &asking->files[asking->count].file, err) != 0)
			return -1;
	}
	return 0;
}
