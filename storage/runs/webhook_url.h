/* URLs of webhooks, and which hosts they may name. A run's writer sets the URL and the server calls
 * it, so the operator says where it may call: otherwise a run's key could reach what only the
 * server can. Pure; any thread. */
#ifndef STORAGE_RUNS_WEBHOOK_URL_H
#define STORAGE_RUNS_WEBHOOK_URL_H

#include "base/error.h"
#include "base/span.h"

struct webhook_url {
	struct span endpoint;  /* "https://host:port" */
	struct span authority; /* "host:port" */
	struct span target;    /* "/path?query"; empty: "/" */
};
/* invalid unless it is http:// or https:// with a host, without credentials, fragments, spaces and
 * control characters. */
int webhook_url_parse(struct span text, struct webhook_url *out, struct error *err);
/* Whether one of the patterns allows it: "host", "host:port", ".domain", "*". Case does not
 * count. */
bool webhook_url_allowed(const struct webhook_url *url, const char *const *patterns, size_t count);

#endif
