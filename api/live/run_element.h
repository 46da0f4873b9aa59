/* One run as overviews show it: an element of GET /v1/runs and the event `run`. */
#ifndef API_LIVE_RUN_ELEMENT_H
#define API_LIVE_RUN_ELEMENT_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"
#include "storage/overview/run_glance.h"

/* A printed element is smaller, whatever the run's settings. */
enum { RUN_ELEMENT_MAX_BYTES = 64 * 1024 };

/* What the caller may know of a run. */
struct run_rights {
	bool reads;  /* the run: read on BUCKET/RUN/, also through grants of the bucket */
	bool fleet;  /* its replicas: the same, but not through grants of the bucket */
	bool writes; /* so that the webhook is shown */
};
/* 0, or -1 when the judgement failed. Asks the catalog only about buckets of other accounts. */
int run_rights_judge(struct exchange *exchange, const struct run_glance *glance,
	struct run_rights *out, struct error *err);
/* Whether the caller may read no run of the bucket. False when that is not known. */
bool run_rights_are_none(struct exchange *exchange, const struct run_glance *glance);

/* The caller may read the run. `name` is NULL inside arrays. */
void run_element_print(const struct run_glance *glance, const struct run_rights *rights,
	const char *name, struct json_writer *json);
void run_element_time(struct json_writer *json, const char *name, int64_t ms);

#endif
