#include "api/live/run_element.h"

#include <string.h>

#include "api/auth/authorise.h"
#include "api/exchange/principal.h"
#include "base/clock.h"

static struct span key_of(struct exchange *exchange, const struct run_glance *glance);
static int judge_shared(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	bool *out_reads, struct error *err);
static void print_head(const struct run_glance *glance, struct json_writer *json);
static void print_fleet(const struct run_glance *glance, struct json_writer *json);

int run_rights_judge(struct exchange *exchange, const struct run_glance *glance,
	struct run_rights *out, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	const struct span key = key_of(exchange, glance);
	struct bucket_ref bucket = {glance->run.bucket, glance->bucket};
	*out = (struct run_rights){.fleet = principal_allows(principal, bucket.name, glance->owner,
					   key, PERMISSION_READ),
		.writes = principal_allows(
			principal, bucket.name, glance->owner, key, PERMISSION_WRITE)};
	out->reads = out->fleet;
	if (out->reads || principal->grant_count > 0)
		return 0;
	return judge_shared(exchange, &bucket, key, &out->reads, err);
}

/* What a bucket shares with all is listed only where it shares its list too. */
static int judge_shared(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	bool *out_reads, struct error *err)
{
	int shared = authorise_permits(exchange, bucket, key, PERMISSION_READ, err);
	if (shared == 1)
		shared = authorise_permits(exchange, bucket, key, PERMISSION_LIST, err);
	*out_reads = shared == 1;
	return shared < 0 ? -1 : 0;
}

bool run_rights_are_none(struct exchange *exchange, const struct run_glance *glance)
{
	const struct bucket_ref bucket = {glance->run.bucket, glance->bucket};
	return !authorise_knows(exchange, bucket);
}

void run_element_print(const struct run_glance *glance, const struct run_rights *rights,
	const char *name, struct json_writer *json)
{
	struct run_message run = glance->run;
	ASSERT(rights->reads);
	if (!rights->writes)
		memset(run.settings.webhook, 0, sizeof(run.settings.webhook));
	json_writer_object(json, name);
	run_message_print_members(&run, json);
	print_head(glance, json);
	if (rights->fleet)
		print_fleet(glance, json);
	json_writer_end(json, '}');
}

void run_element_time(struct json_writer *json, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(ms, text);
	json_writer_text(json, name, span_text(text));
}

static struct span key_of(struct exchange *exchange, const struct run_glance *glance)
{
	const struct span run = glance->run.run;
	const char *const key =
		arena_format(exchange->arena, "%.*s/", (int)run.len, (const char *)run.data);
	return span_text(key != NULL ? key : "/");
}

static void print_head(const struct run_glance *glance, struct json_writer *json)
{
	const bool has_head = glance->run.has_head;
	if (has_head)
		run_element_time(json, "head_created", glance->head_created_ms);
	else
		json_writer_null(json, "head_created");
	json_writer_u64(json, "full_bytes", glance->full_bytes);
	if (has_head && glance->has_delta)
		json_writer_u64(json, "head_delta_bytes", glance->delta_bytes);
	else
		json_writer_null(json, "head_delta_bytes");
	if (has_head && glance->verified != STEP_PROOF_NONE)
		json_writer_text(json, "verified", span_text(step_proof_name(glance->verified)));
	else
		json_writer_null(json, "verified");
}

static void print_fleet(const struct run_glance *glance, struct json_writer *json)
{
	json_writer_object(json, "fleet");
	fleet_counts_print(&glance->counts, json);
	json_writer_u64(json, "behind", glance->behind);
	json_writer_u64(json, "ahead", glance->ahead);
	json_writer_u64(json, "lag_steps", glance->lag_steps);
	json_writer_u64(json, "lag_seconds", glance->lag_seconds);
	json_writer_end(json, '}');
}
