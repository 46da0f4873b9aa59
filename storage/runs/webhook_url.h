/* URLs of webhooks, and the hosts that they may name. A run's writer sets the URL and the server
 * calls it, so the operator decides which hosts the server may call. Otherwise the key of a run
 * could reach hosts that only the server can reach. Pure; any thread. */
#ifndef STORAGE_RUNS_WEBHOOK_URL_H
#define STORAGE_RUNS_WEBHOOK_URL_H

#include "base/error.h"
#include "base/span.h"

struct webhook_url {
	struct span endpoint;  /* "https://host:port" */
	struct span authority; /* "host:port" */
	struct span target;    /* "/path?query"; empty: "/" */
};
/* invalid unless the text is an http:// or https:// URL with a host and without credentials,
 * fragment, spaces and control characters. */
int webhook_url_parse(struct span text, struct webhook_url *out, struct error *err);
/* Whether one of the patterns allows the parsed URL: "host", "host:port", ".domain" or "*". Case
 * does not count. */
bool webhook_url_allowed(const struct webhook_url *url, const char *const *patterns, size_t count);

#endif
