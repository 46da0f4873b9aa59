/* The state of a store: whether its catalog is proven, without which nothing is deleted, and
 * whether it accepts changes. Any thread. */
#ifndef STORAGE_PACKS_STORE_HEALTH_H
#define STORAGE_PACKS_STORE_HEALTH_H

#include "base/buffer.h"
#include "base/metrics.h"
#include "base/thread/log.h"

/* The proof of the catalog. Each start begins with UNPROVEN, and a check of the whole catalog leads
 * to one of the others. */
enum store_proof { STORE_UNPROVEN, STORE_PROVEN, STORE_DAMAGED };

struct store_health;
/* Both are borrowed and may be NULL. */
struct store_health *store_health_new(struct log *log, struct metrics *metrics);
void store_health_free(struct store_health *health); /* NULL is fine */

/* `why` is a sentence for people, only for STORE_DAMAGED. */
void store_health_set_proof(struct store_health *health, enum store_proof proof, const char *why);
enum store_proof store_health_proof(struct store_health *health);
/* gc, sweeper, lifecycle and retention ask each time. */
bool store_health_may_delete(struct store_health *health);
/* The same before each deletion: 0, or damaged or read_only with the reason. */
int store_health_check_delete(struct store_health *health, struct error *err);
/* Waits up to `timeout_ms` until the check of the catalog has ended; false when it has not. */
bool store_health_wait(struct store_health *health, int64_t timeout_ms);

/* From now on this process only reads the store. `why` is a sentence. */
void store_health_set_read_only(struct store_health *health, const char *why);
/* So many pack files that the catalog names are absent: `why` is a sentence that names them.
 * Logged. */
void store_health_set_missing(struct store_health *health, size_t count, const char *why);
/* To be called when a write to the data folder failed or succeeded. A file system that accepts no
 * writes makes the store read-only until a write succeeds again. */
void store_health_note_failure(struct store_health *health, const struct error *err);
void store_health_note_success(struct store_health *health);
/* Whether a write should be tried: because writes fail, or because one was asked for. */
bool store_health_wants_try(struct store_health *health);
/* Asks for a try, which follows within a second or two, unless a write succeeded just now. */
void store_health_ask_try(struct store_health *health);
/* How such a try ended: `why` NULL when the catalog took a change. A failure of the disk or of the
 * catalog is told until a write succeeds, and the store goes on trying. */
void store_health_note_try(struct store_health *health, const struct error *why);
/* Whether changes can be made, as far as is known: 0, or read_only or damaged with the reason. */
int store_health_check_write(struct store_health *health, struct error *err);
/* Whether the path of the catalog leads to another file than the one that is open, or to none.
 * Logged when that is new. */
void store_health_set_unnamed(struct store_health *health, bool is_unnamed);
/* Returns 0, or read_only with the reason. Called before content is accepted, and before each
 * commit unless a try is wanted. */
int store_health_may_write(struct store_health *health, struct error *err);

/* Adds "ready", and a line for each fault. */
void store_health_print(struct store_health *health, struct buffer *out);

#endif
