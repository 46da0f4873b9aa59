/* What a store may do at present: whether its catalog is proven, without which nothing is deleted;
 * and whether it takes changes. Any thread. */
#ifndef STORAGE_PACKS_STORE_HEALTH_H
#define STORAGE_PACKS_STORE_HEALTH_H

#include "base/buffer.h"
#include "base/metrics.h"
#include "base/thread/log.h"

/* Of the catalog. From UNPROVEN, at each start, a look at all of it leads to one of the others. */
enum store_proof { STORE_UNPROVEN, STORE_PROVEN, STORE_DAMAGED };

struct store_health;
/* both borrowed, may be NULL */
struct store_health *store_health_new(struct log *log, struct metrics *metrics);
void store_health_free(struct store_health *health); /* NULL is fine */

/* `why`: a sentence for people, of STORE_DAMAGED alone. */
void store_health_set_proof(struct store_health *health, enum store_proof proof, const char *why);
enum store_proof store_health_proof(struct store_health *health);
/* gc, sweeper, lifecycle and retention ask each time. */
bool store_health_may_delete(struct store_health *health);
/* The same before each thing that goes: 0, or damaged or read_only with the reason. */
int store_health_check_delete(struct store_health *health, struct error *err);
/* Waits until the look at the catalog has ended one way or the other, `timeout_ms` at most; false
 * when it has not. */
bool store_health_wait(struct store_health *health, int64_t timeout_ms);

/* For the rest of the process: the store is only read, `why`. */
void store_health_set_read_only(struct store_health *health, const char *why);
/* A write to the data folder failed, or went well. A file system that takes no writes makes the
 * store read-only until one goes well again. */
void store_health_note_failure(struct store_health *health, const struct error *err);
void store_health_note_success(struct store_health *health);
/* Whether somebody should try a write: such a failure is in force, or it was asked for. */
bool store_health_wants_try(struct store_health *health);
/* Somebody wants to know: a try follows within a second or two, unless a write went well just
 * now. */
void store_health_ask_try(struct store_health *health);
/* 0, or read_only with the reason: asked before content is taken in, and before each commit unless
 * a try is wanted. */
int store_health_may_write(struct store_health *health, struct error *err);

/* "ready", and a line for each thing that is not as it should be. */
void store_health_print(struct store_health *health, struct buffer *out);

#endif
