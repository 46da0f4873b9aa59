#include "storage/start/lost_changes.h"

#include <inttypes.h>
#include <stdio.h>

#include "storage/journal/journal_history.h"
#include "storage/journal/snapshot.h"

enum { PATH_BYTES = 4096 };

static int64_t find_lead(const struct journal_history *history);
static void write_remedy(struct lost_changes *lost);

void lost_changes_look(const char *folder, int64_t kept, struct lost_changes *out)
{
	char path[PATH_BYTES];
	struct error ignored;
	*out = (struct lost_changes){.folder = folder, .kept = kept, .lead = -1};
	snprintf(path, sizeof(path), "%s/journal", folder);
	struct journal_history *history = journal_history_read(path, &ignored);
	if (history != NULL)
		out->lead = find_lead(history);
	journal_history_free(history);
	write_remedy(out);
}

bool lost_changes_come_back(const struct lost_changes *lost)
{
	return lost->lead > lost->kept;
}

int lost_changes_refuse(
	const struct lost_changes *lost, const struct error *why, struct error *err)
{
	return error_set(err, why->kind,
		"%s The journal leads to change %" PRId64
		": deltabucketd rebuild --replace makes a catalog with all up to there (--dry-run"
		" shows what it has). To go on without it, move %s/journal away first.",
		why->text, lost->lead, lost->folder);
}

/* The first way whose snapshot is sound is the one that a rebuild takes. */
static int64_t find_lead(const struct journal_history *history)
{
	for (size_t i = 0; i < journal_history_snapshots(history); i++) {
		struct journal_way way;
		struct error ignored;
		uint64_t sums;
		journal_history_way(history, i, &way);
		if (snapshot_read(way.snapshot, &sums, NULL, NULL, &ignored) == 0)
			return way.end.change;
	}
	return -1;
}

static void write_remedy(struct lost_changes *lost)
{
	if (lost_changes_come_back(lost))
		snprintf(lost->remedy, sizeof(lost->remedy),
			" Make the catalog again from the journal, which leads to change %" PRId64
			", with deltabucketd rebuild --replace; or put the newest one back, with its"
			" -wal file; or read what this one knows with --after-damage read-only.",
			lost->lead);
	else
		snprintf(lost->remedy, sizeof(lost->remedy),
			" Put the newest catalog back, with its -wal file; or read what this one knows"
			" with --after-damage read-only.");
}
