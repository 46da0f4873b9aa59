/* An event's body is made when the event becomes true, so that it says how things stood then,
 * however late it is sent. A run's secret is derived from its id and a key of the server: no secret
 * lies in the catalog. */
#include "storage/runs/webhook.h"

#include <stdio.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/format/json_node.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/store.h"
#include "storage/run_tables/webhook_row.h"
#include "storage/runs/webhook_url.h"

enum { BODY_MAX_BYTES = 16 * 1024, NAME_ARENA_BYTES = 4096 };

static const char *const kind_names[] = {
	[WEBHOOK_PUBLISHED] = "published", [WEBHOOK_STEP_FAILED] = "step_failed"};

static int find_name(struct db *db, const struct run_row *run, struct span run_name,
	struct arena *arena, const char **out, struct error *err);
static void print(
	const struct webhook_facts *facts, const char *run, int64_t now_ms, struct buffer *out);

int webhook_check(const struct store *store, const char *url, struct error *err)
{
	const struct webhook_options *const options = store_parts(store)->webhooks;
	struct webhook_url parsed;
	if (url[0] == '\0')
		return 0;
	if (webhook_url_parse(span_text(url), &parsed, err) != 0)
		return -1;
	if (webhook_url_allowed(&parsed, options->hosts, options->host_count))
		return 0;
	return error_set(err, ERROR_DENIED,
		"The server's option webhook_hosts does not name '%.*s'.",
		(int)parsed.authority.len, (const char *)parsed.authority.data);
}

int webhook_note(struct store *store, struct db *db, const struct run_row *run,
	struct span run_name, const struct webhook_facts *facts, struct error *err)
{
	const int64_t now_ms = store_now_ms(store);
	const char *name = NULL;
	uint64_t dropped = 0;
	struct buffer body;
	if (run->settings.webhook[0] == '\0')
		return 0;
	struct arena *const arena = arena_new(NAME_ARENA_BYTES);
	buffer_init(&body, BODY_MAX_BYTES);
	int result = find_name(db, run, run_name, arena, &name, err);
	if (result == 0) {
		print(facts, name, now_ms, &body);
		result = buffer_check(&body, "an event", err);
	}
	if (result == 0)
		result = webhook_row_add(db, run->id, buffer_span(&body), now_ms, &dropped, err);
	if (result == 0 && dropped > 0)
		metrics_add(store_metrics(store), METRIC_WEBHOOKS_DROPPED, (int64_t)dropped);
	buffer_release(&body);
	arena_free(arena);
	return result;
}

void webhook_secret(const struct store *store, int64_t run, char out[WEBHOOK_SECRET_BYTES])
{
	const struct webhook_options *const options = store_parts(store)->webhooks;
	uint8_t digest[SHA256_BYTES];
	char text[64];
	const int len =
		snprintf(text, sizeof(text), "deltabucket webhook of run %lld", (long long)run);
	ASSERT(len > 0 && (size_t)len < sizeof(text));
	hmac_sha256(
		span_of(options->key, sizeof(options->key)), span_of(text, (size_t)len), digest);
	encode_hex(span_of(digest, sizeof(digest)), out);
}

static int find_name(struct db *db, const struct run_row *run, struct span run_name,
	struct arena *arena, const char **out, struct error *err)
{
	struct span bucket;
	ASSERT(run_name.len > 0);
	const int found = bucket_row_name(db, run->bucket, arena, &bucket, err);
	if (found != 1)
		return found < 0 ? -1
				 : error_set(err, ERROR_DAMAGED,
					   "The bucket of a run is not in the catalog.");
	*out = arena_format(arena, "%.*s/%.*s", (int)bucket.len, (const char *)bucket.data,
		(int)run_name.len, (const char *)run_name.data);
	return *out == NULL ? error_set(err, ERROR_NO_MEMORY, "The memory for an event ran out.")
			    : 0;
}

static void print(
	const struct webhook_facts *facts, const char *run, int64_t now_ms, struct buffer *out)
{
	char digest[DIGEST128_TEXT_BYTES];
	struct json_writer writer;
	ASSERT((size_t)facts->kind < sizeof(kind_names) / sizeof(kind_names[0]));
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_text(&writer, "event", span_text(kind_names[facts->kind]));
	json_writer_text(&writer, "run", span_text(run));
	json_writer_u64(&writer, "step", facts->step);
	digest128_format(&facts->digest, digest);
	json_writer_text(&writer, "digest", span_text(digest));
	json_writer_text(&writer, "label", facts->label);
	if (facts->kind == WEBHOOK_STEP_FAILED)
		json_writer_text(&writer, "reason", facts->reason);
	json_writer_i64(&writer, "time_ms", now_ms);
	json_writer_end(&writer, '}');
}
