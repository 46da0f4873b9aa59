/* A folder is asked for each second, a bucket each 15 seconds: so a standby folder is behind by a
 * second and a round, and a bucket by 15 seconds and a round. */
#include "server/commands/backup_follow.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/commands/backup_report.h"
#include "server/commands/stop_signals.h"
#include "storage/backup/backup_source.h"

/* Without a change, too, what is missing at the place is noticed. */
enum { NEAR_MS = 1000, FAR_MS = 15 * 1000, PRUNE_MS = 60 * 1000, IDLE_MS = 10 * 60 * 1000 };

struct following {
	const struct backup_params *params;
	struct backup *backup;
	bool json;
	struct backup_moment last; /* that the place has */
	bool has_last;
	int64_t prune_due_ms;
	int64_t round_due_ms;           /* though nothing has changed */
	char told[ERROR_TEXT_BYTES];    /* the failure that was told last; "": none */
	char reader[BACKUP_NAME_BYTES]; /* the restore that was told last; "": none */
};

static bool has_changed(const struct following *following);
static int follow_round(struct following *following, struct error *err);
static int prune(struct following *following, struct backup_pruned *out, struct error *err);
static void tell_reader(struct following *following, const struct backup_pruned *pruned);
static void tell(struct following *following, const struct error *err);

int backup_follow(const struct backup_params *params, bool json, struct error *err)
{
	struct following following = {.params = params, .json = json};
	following.backup = backup_open(params, err);
	if (following.backup == NULL)
		return -1;
	while (!stop_signals_came()) {
		struct error failure = {0};
		if (has_changed(&following) && follow_round(&following, &failure) != 0)
			tell(&following, &failure);
		stop_signals_sleep(backup_is_far(following.backup) ? FAR_MS : NEAR_MS);
	}
	backup_close(following.backup);
	return 0;
}

/* A catalog that cannot be read now is left to the round, which tells why. */
static bool has_changed(const struct following *following)
{
	struct backup_moment now;
	uint8_t store[BACKUP_STORE_BYTES];
	struct error ignored;
	if (!following->has_last || clock_monotonic_ms() >= following->round_due_ms)
		return true;
	return !backup_source_is_read_only(following->params->folder) &&
		(backup_source_peek(following->params->folder, &now, store, &ignored) != 0 ||
			now.life != following->last.life || now.change != following->last.change);
}

static int follow_round(struct following *following, struct error *err)
{
	struct backup_report report;
	struct backup_pruned pruned;
	if (backup_round(following->backup, &report, err) != 0)
		return -1;
	following->last = report.moment;
	following->has_last = true;
	following->round_due_ms = clock_monotonic_ms() + IDLE_MS;
	following->told[0] = '\0';
	const int result = prune(following, &pruned, err);
	tell_reader(following, &pruned);
	if (report.is_new || report.pieces > 0)
		backup_report_print(&report, result == 0 ? &pruned : NULL, following->json);
	return result;
}

static int prune(struct following *following, struct backup_pruned *out, struct error *err)
{
	const int64_t now = clock_monotonic_ms();
	if (now < following->prune_due_ms)
		return backup_thin(following->backup, out, err);
	following->prune_due_ms = now + PRUNE_MS;
	return backup_prune(following->backup, out, err);
}

/* Once for each. */
static void tell_reader(struct following *following, const struct backup_pruned *pruned)
{
	if (pruned->reader[0] != '\0' && strcmp(pruned->reader, following->reader) != 0)
		backup_report_tell_reader(pruned);
	snprintf(following->reader, sizeof(following->reader), "%s", pruned->reader);
}

/* Once, as long as it is the same. */
static void tell(struct following *following, const struct error *err)
{
	if (stop_signals_came() || strcmp(following->told, err->text) == 0)
		return;
	snprintf(following->told, sizeof(following->told), "%s", err->text);
	fprintf(stderr, "deltabucketd: backup: %s\n", err->text);
}
