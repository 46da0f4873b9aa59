/* A piece: the bytes [from, to) of a file of the data folder, which is one object of the target. A
 * file is known by its key, KIND/NAME, which stands for the same bytes for ever: a file only grows.
 *
 *     packs/<32 hex digits of the file>                        DIR/packs/xx/<...>.pack
 *     journal/<name>-<checksum of its header>                  DIR/journal/<name>
 *
 * A log that a restored store begins may have the number of one that is lost; its header differs.
 * Pure; any thread. docs/FORMAT.md, "Backups". */
#ifndef STORAGE_BACKUP_BACKUP_PIECE_H
#define STORAGE_BACKUP_BACKUP_PIECE_H

#include "base/digest/blake3_stream.h"
#include "storage/backup/backup_target.h"
#include "storage/packs/segment.h"

enum { BACKUP_KEY_BYTES = 80 };
#define BACKUP_PACKS   "packs"
#define BACKUP_JOURNAL "journal"

struct backup_piece {
	uint64_t from;
	uint64_t to;
	uint8_t digest[BLAKE3_BYTES]; /* of the bytes, as they are in the data folder */
};

void backup_key_of_pack(const struct pack_id *file, char out[BACKUP_KEY_BYTES]);
/* `head` is the header of a log or snapshot. */
void backup_key_of_journal(const char *name, struct span head, char out[BACKUP_KEY_BYTES]);
/* The path in the data folder. False when it is the key of no file. */
bool backup_key_path(const char *key, char out[BACKUP_NAME_BYTES]);

/* The object's name, KEY.FROM-TO, and back; false for other names. The digest is not set. */
void backup_piece_name(
	const char *key, const struct backup_piece *piece, char out[BACKUP_NAME_BYTES]);
bool backup_piece_parse(const char *name, char out_key[BACKUP_KEY_BYTES], struct backup_piece *out);

#endif
