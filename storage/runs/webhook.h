/* Webhooks: the URL of a run gets an event for each step that is published and for each step whose
 * proof fails. The change that makes an event true also notes it;
 * storage/step_jobs/webhook_worker.h sends it. docs/protocol/steps.md, "Webhooks". Internal to
 * storage, except for the options. */
#ifndef STORAGE_RUNS_WEBHOOK_H
#define STORAGE_RUNS_WEBHOOK_H

#include "storage/core/store.h"
#include "storage/run_tables/run_row.h"

struct webhook_options {
	const char *const *hosts; /* patterns of webhook_url.h; borrowed */
	size_t host_count;        /* 0: no webhooks */
	uint8_t key[32]; /* derived from the master key; secrets of runs are derived from it */
};

enum webhook_kind { WEBHOOK_PUBLISHED, WEBHOOK_STEP_FAILED };
enum { WEBHOOK_SECRET_BYTES = 2 * 32 + 1 };

/* Checks the setting of a run: it is empty or a URL that the operator allows. Fails with denied or
 * invalid. */
int webhook_check(const struct store *store, const char *url, struct error *err);
/* Inside a change. Does nothing when the run has no webhook. */
struct webhook_facts {
	enum webhook_kind kind;
	uint64_t step;
	struct digest128 digest;
	struct span label;
	struct span reason; /* of a failed proof */
};
int webhook_note(struct store *store, struct db *db, const struct run_row *run,
	struct span run_name, const struct webhook_facts *facts, struct error *err);

/* The secret that signs the run's events: hex, NUL-terminated. It is derived from the master key,
 * so it is not stored. `run` is the id of the run's row. */
void webhook_secret(const struct store *store, int64_t run, char out[WEBHOOK_SECRET_BYTES]);

#endif
