/* The URLs of the objects of steps and folds, as manifests and paths give them. Storage writes them
 * relative to the run. Here they get the content in their query, `?v=DIGEST`, so that caches never
 * mix two runs of one name, and with the setting shared_urls a signature (api/auth/shared_url.h).
 * docs/protocol/steps.md, "URLs of objects". */
#ifndef API_STEPS_STEP_URL_H
#define API_STEPS_STEP_URL_H

#include "api/exchange/exchange.h"
#include "storage/runs/run.h"
#include "wire/step_message.h"

/* Completes the URLs of a reply, on whatever thread makes it; texts lie in the arena of the
 * request. Fails with no_memory, and as bucket_find. */
int step_url_complete_step(struct exchange *exchange, struct step_message *step, struct error *err);
int step_url_complete_path(struct exchange *exchange, struct path_message *path, struct error *err);

/* Whether the object is the one of the request's `v`, if it has one. Fails with no_key, whose reply
 * no cache keeps: readers then ask for their path again. An object that is not made yet and has no
 * digest passes. */
int step_url_check(struct exchange *exchange, const struct object *object, struct error *err);
/* The Cache-Control of a reply with the object's bytes; static or in the arena. */
const char *step_url_cache_control(struct exchange *exchange);

#endif
