/* The catalog as a database: counts and sums of the tables, indexes against tables, the use of
 * pages. */
#include "storage/fsck/fsck_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "storage/db/db_check.h"

struct catalog_look {
	struct fsck *fsck;
	struct error *err;
	int result;
};

static void fsck_take_db_finding(void *owner, const struct db_finding *finding);
static bool fsck_goes_on(void *owner);
static int tell_mended(struct fsck *fsck, struct error *err);

int fsck_catalog(struct fsck *fsck, struct error *err)
{
	struct catalog_look look = {.fsck = fsck, .err = err};
	struct error why = {0};
	const struct db_check check = {
		.found = fsck_take_db_finding, .goes_on = fsck_goes_on, .owner = &look};
	if (db_check(fsck->db, &check, &why) != 0 && look.result == 0) {
		*err = why;
		return -1;
	}
	return look.result != 0 ? -1 : tell_mended(fsck, err);
}

/* Tells it without what it touches: a damaged catalog cannot say that. */
static void fsck_take_db_finding(void *owner, const struct db_finding *finding)
{
	static const enum finding_kind kinds[] = {[DB_FINDING_TABLE] = FINDING_TABLE,
		[DB_FINDING_INDEX] = FINDING_INDEX,
		[DB_FINDING_STRUCTURE] = FINDING_STRUCTURE};
	struct catalog_look *look = owner;
	char subject[FINDING_SUBJECT_BYTES];
	if (finding->index != NULL)
		snprintf(subject, sizeof(subject), "index %s", finding->index);
	else if (finding->table[0] != '\0')
		snprintf(subject, sizeof(subject), "table %s", finding->table);
	else
		snprintf(subject, sizeof(subject), "catalog.db");
	look->fsck->has_bad_table |= finding->kind == DB_FINDING_TABLE;
	if (look->result == 0)
		look->result = fsck_tell(
			look->fsck, kinds[finding->kind], subject, finding->detail, look->err);
}

static bool fsck_goes_on(void *owner)
{
	return ((struct catalog_look *)owner)->result == 0;
}

static int tell_mended(struct fsck *fsck, struct error *err)
{
	char text[ERROR_TEXT_BYTES];
	const uint64_t mended = db_mended(fsck->db);
	if (mended == 0)
		return 0;
	snprintf(text, sizeof(text), "One flipped bit was put right in reading, %" PRIu64 " times.",
		mended);
	return fsck_tell(fsck, FINDING_PAGES, "catalog.db", text, err);
}
