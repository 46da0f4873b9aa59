/* Two states. The proof of the catalog goes from UNPROVEN to PROVEN or DAMAGED. Read-only holds for
 * good, or until a write succeeds again. Both are atomics that are written under the lock, so that
 * asking for them needs none; their texts need the lock. */
#include "storage/packs/store_health.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread/lock.h"

enum { FRESH_MS = 5000 }; /* a write that succeeded within this time needs no new try */

struct store_health {
	struct log *log;
	struct metrics *metrics;
	_Atomic enum store_proof proof; /* written under the lock */
	/* for good, or because writes fail; written under the lock */
	_Atomic bool reads_only;
	_Atomic bool is_asked;      /* a try was asked for */
	_Atomic int64_t written_ms; /* when a write last succeeded, by the monotonic clock */
	struct lock lock;
	struct lock_condition settled;
	bool is_for_good;                      /* guarded by lock */
	char proof_text[ERROR_TEXT_BYTES];     /* guarded by lock */
	char read_only_text[ERROR_TEXT_BYTES]; /* guarded by lock */
	char missing_text[ERROR_TEXT_BYTES];   /* guarded by lock; empty: no pack is missing */
	_Atomic bool is_failing;               /* the last try to write failed */
	_Atomic bool is_unnamed;               /* the catalog has lost its name */
};

static const char unnamed_text[] =
	"catalog.db was deleted or replaced while this server has it open, and everything is"
	" written to the file that is gone. Stop the server, then make the catalog again with"
	" deltabucketd rebuild.";

static void tell(const struct store_health *health, enum log_level level, const char *event,
	const char *text);
static void set_reads_only(struct store_health *health, const char *why, bool is_for_good);

struct store_health *store_health_new(struct log *log, struct metrics *metrics)
{
	struct store_health *health = memory_new(sizeof(*health));
	health->log = log;
	health->metrics = metrics;
	lock_init(&health->lock, LOCK_HEALTH);
	lock_condition_init(&health->settled);
	return health;
}

void store_health_free(struct store_health *health)
{
	if (health == NULL)
		return;
	lock_condition_release(&health->settled);
	lock_release(&health->lock);
	free(health);
}

void store_health_set_proof(struct store_health *health, enum store_proof proof, const char *why)
{
	ASSERT(proof != STORE_DAMAGED || why != NULL);
	lock_enter(&health->lock);
	bool is_new = atomic_load(&health->proof) != proof;
	snprintf(health->proof_text, sizeof(health->proof_text), "%s", why != NULL ? why : "");
	atomic_store(&health->proof, proof);
	/* before anybody can see it */
	metrics_set(health->metrics, METRIC_CATALOG_DAMAGED, proof == STORE_DAMAGED);
	lock_broadcast(&health->settled);
	lock_leave(&health->lock);
	if (is_new && proof == STORE_DAMAGED)
		tell(health, LOG_ERROR, "catalog_damaged", why);
	if (is_new && proof == STORE_PROVEN)
		tell(health, LOG_INFO, "catalog_proven", "");
}

enum store_proof store_health_proof(struct store_health *health)
{
	return atomic_load(&health->proof);
}

bool store_health_may_delete(struct store_health *health)
{
	return atomic_load(&health->proof) == STORE_PROVEN && !atomic_load(&health->reads_only);
}

int store_health_check_delete(struct store_health *health, struct error *err)
{
	if (store_health_may_delete(health))
		return 0;
	if (store_health_may_write(health, err) != 0)
		return -1;
	return error_set(err, ERROR_DAMAGED,
		"The catalog is damaged or still being checked. Nothing is deleted until it is found sound"
		" (docs/OPERATIONS.md, \"A damaged catalog\").");
}

bool store_health_wait(struct store_health *health, int64_t timeout_ms)
{
	lock_enter(&health->lock);
	bool in_time = true;
	while (in_time && atomic_load(&health->proof) == STORE_UNPROVEN)
		in_time = lock_wait_for(&health->lock, &health->settled, timeout_ms);
	bool is_known = atomic_load(&health->proof) != STORE_UNPROVEN;
	lock_leave(&health->lock);
	return is_known;
}

void store_health_set_read_only(struct store_health *health, const char *why)
{
	set_reads_only(health, why, true);
}

void store_health_set_missing(struct store_health *health, size_t count, const char *why)
{
	lock_enter(&health->lock);
	snprintf(health->missing_text, sizeof(health->missing_text), "%s", why);
	lock_leave(&health->lock);
	metrics_set(health->metrics, METRIC_PACKS_MISSING, (int64_t)count);
	tell(health, LOG_ERROR, "packs_missing", why);
}

/* The flags of a mount cannot be trusted: after an error ext4 may refuse writes and still be shown
 * as writable. */
void store_health_note_failure(struct store_health *health, const struct error *err)
{
	if (err->kind != ERROR_READ_ONLY || err->os_errno != EROFS)
		return;
	if (!atomic_load(&health->reads_only))
		log_failure(health->log, LOG_ERROR, NULL, "write_refused", err);
	set_reads_only(health, "the file system of the data folder takes no writes.", false);
}

void store_health_ask_try(struct store_health *health)
{
	if (clock_monotonic_ms() - atomic_load(&health->written_ms) > FRESH_MS)
		atomic_store(&health->is_asked, true);
}

void store_health_note_success(struct store_health *health)
{
	atomic_store(&health->written_ms, clock_monotonic_ms());
	atomic_store(&health->is_asked, false);
	if (atomic_exchange(&health->is_failing, false))
		metrics_set(health->metrics, METRIC_WRITES_FAIL, 0);
	if (!atomic_load(&health->reads_only))
		return;
	lock_enter(&health->lock);
	bool ends = atomic_load(&health->reads_only) && !health->is_for_good;
	if (ends)
		atomic_store(&health->reads_only, false);
	lock_leave(&health->lock);
	if (!ends)
		return;
	metrics_set(health->metrics, METRIC_READ_ONLY, 0);
	tell(health, LOG_INFO, "read_only_ended", "");
}

bool store_health_wants_try(struct store_health *health)
{
	if (!atomic_load(&health->reads_only) && !atomic_load(&health->is_asked) &&
		!atomic_load(&health->is_failing))
		return false;
	lock_enter(&health->lock);
	bool wants = !health->is_for_good;
	lock_leave(&health->lock);
	return wants;
}

void store_health_note_try(struct store_health *health, const struct error *why)
{
	static const bool tells[] = {
		[ERROR_IO] = true, [ERROR_DAMAGED] = true, [ERROR_CORRUPT] = true};
	atomic_store(&health->is_asked, false);
	if (why == NULL)
		store_health_note_success(health);
	else if (why->kind < sizeof(tells) / sizeof(tells[0]) && tells[why->kind] &&
		!atomic_exchange(&health->is_failing, true)) {
		metrics_set(health->metrics, METRIC_WRITES_FAIL, 1);
		log_failure(health->log, LOG_ERROR, NULL, "writes_fail", why);
	}
}

/* Anybody may be told, so the reason stays in the log. */
int store_health_check_write(struct store_health *health, struct error *err)
{
	if (store_health_may_write(health, err) != 0)
		return -1;
	return atomic_load(&health->is_failing)
		? error_set(err, ERROR_DAMAGED,
			  "No change can be written to the catalog (writes_fail in the log).")
		: 0;
}

void store_health_set_unnamed(struct store_health *health, bool is_unnamed)
{
	metrics_set(health->metrics, METRIC_CATALOG_LOST, is_unnamed);
	if (!atomic_exchange(&health->is_unnamed, is_unnamed) && is_unnamed)
		tell(health, LOG_ERROR, "catalog_unnamed", unnamed_text);
}

int store_health_may_write(struct store_health *health, struct error *err)
{
	if (health == NULL || !atomic_load(&health->reads_only))
		return 0;
	lock_enter(&health->lock);
	bool refuses = atomic_load(&health->reads_only);
	if (refuses)
		error_set(err, ERROR_READ_ONLY, "The store is read-only at present: %s",
			health->read_only_text);
	lock_leave(&health->lock);
	return refuses ? -1 : 0;
}

void store_health_print(struct store_health *health, struct buffer *out)
{
	lock_enter(&health->lock);
	buffer_add_text(out, "ready\n");
	if (atomic_load(&health->reads_only))
		buffer_format(out, "read-only: %s\n", health->read_only_text);
	if (atomic_load(&health->is_failing))
		buffer_add_text(out,
			"writes fail: no change can be written to the catalog (writes_fail in the"
			" log).\n");
	if (atomic_load(&health->is_unnamed))
		buffer_format(out, "catalog lost: %s\n", unnamed_text);
	if (atomic_load(&health->proof) == STORE_DAMAGED)
		buffer_format(out, "damaged: %s\n", health->proof_text);
	if (health->missing_text[0] != '\0')
		buffer_format(out, "packs missing: %s\n", health->missing_text);
	lock_leave(&health->lock);
}

static void tell(const struct store_health *health, enum log_level level, const char *event,
	const char *text)
{
	const struct log_field field = log_text("message", text);
	log_event(health->log, level, NULL, event, &field, text[0] != '\0');
}

static void set_reads_only(struct store_health *health, const char *why, bool is_for_good)
{
	ASSERT(why != NULL);
	lock_enter(&health->lock);
	bool is_new = !atomic_load(&health->reads_only);
	if (is_new || is_for_good)
		snprintf(health->read_only_text, sizeof(health->read_only_text), "%s", why);
	health->is_for_good |= is_for_good;
	atomic_store(&health->reads_only, true);
	lock_leave(&health->lock);
	metrics_set(health->metrics, METRIC_READ_ONLY, 1);
	if (is_new)
		tell(health, LOG_ERROR, "read_only", why);
}
