/* Repairs what fsck found, as far as that can be done without loss: derived data is made again,
 * counts are counted again, files are brought back or set aside, damaged chunks are mended from
 * other copies. Nothing that may be sound is removed. The caller holds DIR/lock, and checks again
 * afterwards: that check is the proof. One thread. */
#ifndef STORAGE_FSCK_FSCK_REPAIR_H
#define STORAGE_FSCK_FSCK_REPAIR_H

#include "base/file.h"
#include "base/thread/log.h"
#include "storage/backup/backup_vault.h"
#include "storage/fsck/finding.h"

struct fsck_repair;
/* `log` is borrowed and may be NULL: the start of the store that a repair needs writes there. */
struct fsck_repair *fsck_repair_new(
	const char *folder, const struct file_ops *files, struct log *log);
void fsck_repair_free(struct fsck_repair *repair); /* NULL is fine */
/* Pack files that are damaged or missing are fetched from this backup; borrowed. */
void fsck_repair_use(struct fsck_repair *repair, struct backup_vault *vault);
/* Notes what the repair must do; copies what it needs. */
void fsck_repair_add(struct fsck_repair *repair, const struct finding *finding);
/* Gives each finding for which a pack would be fetched from the backup, by its subject, and whether
 * the backup has it; a pack is given once. Changes and fetches nothing. Fails when the backup
 * cannot be read. */
typedef void fsck_repair_return_fn(void *owner, const char *subject, bool has);
int fsck_repair_preview(struct fsck_repair *repair, fsck_repair_return_fn *take, void *owner,
	struct error *err);
/* Does all of it. A repair of one thing that fails is logged and does not keep the others from
 * being done. Fails when the backup cannot be read or the store cannot be opened, and when its
 * catalog is not sound after the start: then the rest is left as it is. */
int fsck_repair_run(struct fsck_repair *repair, struct error *err);

#endif
