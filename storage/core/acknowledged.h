/* The file DIR/acknowledged says how far the store had come when it last told anybody that
 * something is done: two slots of which the newer valid one counts, written in turn after each
 * COMMIT and never synced for its own sake. After a kill it is exact; after a power cut it may say
 * less than was told, and never more. So a catalog that is behind it has lost what was told.
 * docs/FORMAT.md, "Acknowledged". */
#ifndef STORAGE_CORE_ACKNOWLEDGED_H
#define STORAGE_CORE_ACKNOWLEDGED_H

#include "base/file.h"
#include "storage/core/store_row.h"

enum { BOOT_ID_BYTES = 16 };

struct acknowledgement {
	struct store_identity store;
	int64_t change; /* the catalog's number of the last change */
	/* the log that holds it, and how many of its frames were committed then */
	uint64_t log_salt;
	uint32_t log_frames;
	/* of the machine, when it was written; read from a copy of the file: zeros */
	uint8_t boot[BOOT_ID_BYTES];
};

struct acknowledged;
/* Opens or makes the file. *out_last is what it says; its store.life is 0 when it says nothing.
 * unsupported: another version of the program wrote it. */
struct acknowledged *acknowledged_open(const struct file_ops *files, const char *path,
	struct acknowledgement *out_last, struct error *err);
/* The same without a file to write to, as for a store that is only read; absent: it says
 * nothing. */
int acknowledged_read(const char *path, struct acknowledgement *out_last, struct error *err);
/* A file that was made and never written goes. NULL is fine. */
void acknowledged_close(struct acknowledged *acknowledged);
/* `boot` is filled in. A failure costs no more than exactness, and is for the caller to ignore. One
 * thread at a time. */
int acknowledged_note(
	struct acknowledged *acknowledged, const struct acknowledgement *now, struct error *err);
/* What was noted so far, and the file's name, survive a power cut when it returns. */
int acknowledged_sync(struct acknowledged *acknowledged, struct error *err);

/* Whether the machine has not been started since, and the file is not a copy: then what it says is
 * exact. */
bool acknowledged_is_exact(const struct acknowledgement *last);

#endif
