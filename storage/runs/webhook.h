/* Webhooks: a run's URL is told of each step that is published and of each whose proof fails. An
 * event is noted in the very change that makes it true; storage/step_jobs/webhook_worker.h sends
 * it. docs/protocol/steps.md, "Webhooks". Internal to storage, but for the secret. */
#ifndef STORAGE_RUNS_WEBHOOK_H
#define STORAGE_RUNS_WEBHOOK_H

#include "storage/core/store.h"
#include "storage/run_tables/run_row.h"

struct webhook_options {
	const char *const *hosts; /* patterns of webhook_url.h; borrowed */
	size_t host_count;        /* 0: no webhooks */
	uint8_t key[32];          /* secrets of runs are worked out from it */
};

enum webhook_kind { WEBHOOK_PUBLISHED, WEBHOOK_STEP_FAILED };
enum { WEBHOOK_SECRET_BYTES = 2 * 32 + 1 };

/* Of a run's settings: empty, or a URL that the operator allows (denied, invalid). */
int webhook_check(const struct store *store, const char *url, struct error *err);
/* Inside a change. Nothing happens where the run has no webhook. */
struct webhook_facts {
	enum webhook_kind kind;
	uint64_t step;
	struct digest128 digest;
	struct span label;
	struct span reason; /* of a failed proof */
};
int webhook_note(struct store *store, struct db *db, const struct run_row *run,
	struct span run_name, const struct webhook_facts *facts, struct error *err);

/* What the run's events are signed with: worked out from the master key, so nothing of it is
 * stored. `row` of the run. */
void webhook_secret(const struct store *store, int64_t run, char out[WEBHOOK_SECRET_BYTES]);

#endif
