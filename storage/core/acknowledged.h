/* The file DIR/acknowledged records the last change that the store acknowledged to a client. It has
 * two slots, written in turn after each COMMIT; the newer valid one counts. These writes are not
 * synced. After a kill the file is exact. After a power cut it may record an earlier change, never
 * a later one. So a catalog that is behind the file has lost acknowledged changes. docs/FORMAT.md,
 * "Acknowledged". */
#ifndef STORAGE_CORE_ACKNOWLEDGED_H
#define STORAGE_CORE_ACKNOWLEDGED_H

#include "base/file.h"
#include "storage/core/store_row.h"

enum { BOOT_ID_BYTES = 16 };

struct acknowledgement {
	struct store_identity store;
	int64_t change; /* the number of the last change in the catalog */
	/* the log that has it, and the number of frames that were committed there then */
	uint64_t log_salt;
	uint32_t log_frames;
	/* of the machine when it was written; zeros when the file is a copy */
	uint8_t boot[BOOT_ID_BYTES];
};

struct acknowledged;
/* Opens or makes the file. *out_last gets its content, with store.life 0 when it has none.
 * unsupported: another version of the program wrote it. */
struct acknowledged *acknowledged_open(const struct file_ops *files, const char *path,
	struct acknowledgement *out_last, struct error *err);
/* The same without opening the file for writing, for a store that is only read. An absent file has
 * no content. */
int acknowledged_read(const char *path, struct acknowledgement *out_last, struct error *err);
/* Removes the file if it was made by acknowledged_open and never written. NULL is fine. */
void acknowledged_close(struct acknowledged *acknowledged);
/* Writes `now`, with `boot` filled in; store.life is above 0. A failure only leaves the file behind
 * the catalog, so callers may ignore it. One thread at a time. */
int acknowledged_note(
	struct acknowledged *acknowledged, const struct acknowledgement *now, struct error *err);
/* Makes all notes so far, and the file's name, survive a power cut. */
int acknowledged_sync(struct acknowledged *acknowledged, struct error *err);

/* Whether the content is exact: the machine has not been restarted since it was written, and the
 * file is not a copy. */
bool acknowledged_is_exact(const struct acknowledgement *last);

#endif
