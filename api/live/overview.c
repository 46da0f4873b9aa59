/* A helper reads what the store holds. Then, for callers that may not read all runs, the runs that
 * they may read are counted in a walk. */
#include "api/live/handlers.h"

#include "api/exchange/principal.h"
#include "api/exchange/readiness.h"
#include "api/live/run_walk.h"
#include "api/live/server_numbers.h"
#include "api/live/server_warnings.h"
#include "storage/overview/store_glance.h"

enum { BODY_MAX_BYTES = 64 * 1024 };

struct overview {             /* the exchange's state */
	struct run_walk walk; /* first */
	bool is_walking;
	struct store_glance glance;
	uint64_t buckets;
	uint64_t runs;
};

static bool acts_for_account(const struct principal *principal);
static uint64_t count_granted(struct exchange *exchange);
static bool is_named_before(const struct principal *principal, size_t at);
static bool overview_count_run(
	struct run_walk *walk, const struct run_glance *glance, const struct run_rights *rights);
static enum next reply(struct exchange *exchange, const struct overview *overview);
static void print_for_operators(
	struct exchange *exchange, const struct overview *overview, struct json_writer *json);
static void print_disk(struct exchange *exchange, struct json_writer *json);

enum next overview_begin(struct exchange *exchange)
{
	const struct principal *const principal = exchange->principal;
	struct overview *const overview = arena_take(exchange->arena, sizeof(*overview));
	ASSERT(overview != NULL && principal != NULL);
	*overview = (struct overview){.walk = {.show = overview_count_run, .names_only = true}};
	exchange->state = overview;
	const struct span owner =
		acts_for_account(principal) ? principal->namespace : (struct span){NULL, 0};
	return exchange_await(exchange, store_glance_call(exchange->context->store, owner));
}

enum next overview_resume(struct exchange *exchange)
{
	struct overview *const overview = exchange->state;
	struct error err = {0};
	bool failed = false;
	if (!overview->is_walking) {
		if (call_outcome(exchange->call, &err) != 0)
			return exchange_fail(exchange, &err);
		overview->glance = *store_glance_result(exchange->call);
		overview->runs = overview->glance.runs;
		overview->buckets = overview->glance.buckets;
		if (exchange->principal->is_root)
			return reply(exchange, overview);
		if (!acts_for_account(exchange->principal))
			overview->buckets = count_granted(exchange);
		overview->is_walking = true;
		overview->runs = 0;
		return run_walk_begin(exchange, &overview->walk);
	}
	const enum next next = run_walk_go_on(exchange, &overview->walk, &failed);
	return next != NEXT_REPLY || failed ? next : reply(exchange, overview);
}

static bool acts_for_account(const struct principal *principal)
{
	return !principal->is_root && principal->grant_count == 0;
}

/* The buckets that the grants of the key name and that exist. */
static uint64_t count_granted(struct exchange *exchange)
{
	const struct principal *const principal = exchange->principal;
	uint64_t count = 0;
	for (size_t i = 0; i < principal->grant_count; i++) {
		struct bucket bucket;
		struct error ignored = {0};
		count += !is_named_before(principal, i) &&
			bucket_find(exchange->context->store,
				bucket_named(principal->grants[i].bucket), exchange->arena, &bucket,
				&ignored) == 0;
	}
	return count;
}

static bool is_named_before(const struct principal *principal, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (span_equal(principal->grants[i].bucket, principal->grants[at].bucket))
			return true;
	return false;
}

static bool overview_count_run(
	struct run_walk *walk, const struct run_glance *glance, const struct run_rights *rights)
{
	(void)glance;
	(void)rights;
	((struct overview *)walk)->runs++;
	return true;
}

static enum next reply(struct exchange *exchange, const struct overview *overview)
{
	const struct api_context *const context = exchange->context;
	struct buffer body;
	struct json_writer json;
	buffer_init(&body, BODY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "version", span_text(PACKAGE_VERSION));
	run_element_time(&json, "started", store_opened(context->store).wall_ms);
	run_element_time(&json, "time", context->clock->wall_ms(context->clock));
	json_writer_u64(&json, "buckets", overview->buckets);
	json_writer_u64(&json, "runs", overview->runs);
	server_warnings_list(exchange, "warnings", &json);
	if (principal_may_read_metrics(exchange->principal))
		print_for_operators(exchange, overview, &json);
	json_writer_end(&json, '}');
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

static void print_for_operators(
	struct exchange *exchange, const struct overview *overview, struct json_writer *json)
{
	const struct api_context *const context = exchange->context;
	struct server_numbers numbers;
	server_numbers_read(context, &numbers);
	print_disk(exchange, json);
	json_writer_object(json, "stored");
	json_writer_u64(json, "logical_bytes", overview->glance.logical_bytes);
	json_writer_u64(json, "stored_bytes", overview->glance.stored_bytes);
	json_writer_i64(json, "sent_bytes", metrics_get(context->metrics, METRIC_FORM_BYTES_SENT));
	json_writer_i64(json, "full_bytes_sent",
		metrics_get(context->metrics, METRIC_FORM_FULL_BYTES_SENT));
	json_writer_end(json, '}');
	json_writer_object(json, "now");
	server_numbers_print(&numbers, NULL, json);
	json_writer_end(json, '}');
	server_work_print(context, json);
}

static void print_disk(struct exchange *exchange, struct json_writer *json)
{
	const struct api_context *const context = exchange->context;
	json_writer_object(json, "disk");
	json_writer_i64(json, "bytes", metrics_get(context->metrics, METRIC_DISK_BYTES));
	json_writer_i64(json, "free", metrics_get(context->metrics, METRIC_DISK_FREE_BYTES));
	json_writer_i64(json, "reserve", metrics_get(context->metrics, METRIC_DISK_RESERVE_BYTES));
	json_writer_bool(json, "full", readiness_is_full(exchange));
	json_writer_end(json, '}');
}
