/* GET and POST /-/backup-holds, DELETE /-/backup-holds/{id}, only for root: what a backup keeps gc
 * from removing while it runs. docs/protocol/admin.md, "AddBackupHold". `deltabucketd backup` uses
 * them over DIR/control.sock. A hold is written to the disk, so the work is done by a helper. */
#ifndef API_ADMIN_ADMIN_BACKUP_H
#define API_ADMIN_ADMIN_BACKUP_H

#include "api/exchange/exchange.h"

enum next admin_backup_list_begin(struct exchange *exchange);
enum next admin_backup_hold_begin(struct exchange *exchange);
enum next admin_backup_hold_finish(struct exchange *exchange);
enum next admin_backup_hold_resume(struct exchange *exchange);
enum next admin_backup_end_begin(struct exchange *exchange);
enum next admin_backup_end_resume(struct exchange *exchange);

#endif
