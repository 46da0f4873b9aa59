/* Backs up the store of a data folder to a place: a first round ships everything, later ones what
 * is new. Each round that finds a change makes a moment, from which all of the store can be
 * restored. It reads the folder beside the server. One thread.
 *
 * A round holds the packs (backup_holds.h), reads the catalog, ships pieces, ends the hold, and
 * only then writes the manifest. So an interrupted round leaves pieces and no moment, the next one
 * goes on with them, and a moment never names what was removed while it was made. */
#ifndef STORAGE_BACKUP_BACKUP_H
#define STORAGE_BACKUP_BACKUP_H

#include "storage/backup/backup_lack.h"
#include "storage/backup/backup_notes.h"
#include "storage/backup/backup_vault.h"
#include "storage/packs/backup_holds.h"

struct backup;

struct backup_holder { /* of the server that has the store, or of the store itself */
	/* As backup_holds_take and backup_holds_end. */
	int (*take)(void *owner, const char *name, uint8_t out_id[BACKUP_HOLD_ID_BYTES],
		struct error *err);
	int (*end)(void *owner, const uint8_t id[BACKUP_HOLD_ID_BYTES], struct error *err);
	void *owner;
};

struct backup_params {
	const char *folder; /* the data folder; borrowed like all below */
	const char *place;  /* backup_target.h */
	const struct file_ops *files;
	const struct age_recipient *recipient;   /* NULL: not encrypted */
	const struct age_identities *identities; /* NULL: none; only pruning may need them */
	struct backup_holder holder;
	/* Asked between two pieces: false ends the round with busy. */
	bool (*goes_on)(void *owner);
	void *owner;
	void (*tell)(void *owner, const struct error *err); /* as in backup_target; NULL: not */
	uint64_t keep; /* moments that pruning leaves; 0: all */
	/* Pruning leaves one moment, the newest, of each such time; 0: all. */
	int64_t spacing_ms;
};

struct backup_report {
	struct backup_moment moment; /* the newest one of the place */
	bool is_new;                 /* this round made it */
	uint64_t files;
	uint64_t bytes;   /* of these files */
	uint64_t pieces;  /* that this round shipped */
	uint64_t shipped; /* their bytes */
	/* pieces that older moments need, and neither the place nor the store has any more; told
	 * when the place was listed */
	uint64_t missing;
	/* why nothing can be noted (backup_notes.h); "": it can. Valid until backup_close. */
	const char *unnoted;
	/* files of the moment that could not be read whole, and packs in it that describe
	 * themselves wrongly or have damaged chunks. Valid until the next round or backup_close. */
	const struct backup_lacks *lacks;
};
struct backup_pruned {
	uint64_t moments;
	uint64_t pieces;
	uint64_t bytes;
	uint64_t left; /* moments, afterwards */
	/* the object of a restore under way (backup_reader.h), for which all that was left stays;
	 * "": none */
	char reader[BACKUP_NAME_BYTES];
};

/* busy: another backup of the folder to that place is under way. */
struct backup *backup_open(const struct backup_params *params, struct error *err);
void backup_close(struct backup *backup); /* NULL is fine */

/* Whether the place is a service, which should not be asked each second. */
bool backup_is_far(const struct backup *backup);

/* Whether the newest moment of the place is the store as it lies there, and no acknowledged change
 * is missing in it. For a store that nobody has open. */
bool backup_is_current(struct backup *backup);
/* Looks at about/store first, and now and then lists what is there: what is missing is shipped
 * again. not_found: the place has lost its backups, or is not there; nothing is written then. */
int backup_round(struct backup *backup, struct backup_report *out, struct error *err);
/* Removes the moments beyond `keep` and `spacing_ms`; none when both are 0, and while somebody
 * restores from the place. After a round. */
int backup_thin(struct backup *backup, struct backup_pruned *out, struct error *err);
/* The same, and then the pieces that no moment names any more: those that this run has put, and
 * those that are so old that no run under way can have put them. When the manifest of one moment
 * that stays cannot be read, nothing is removed. */
int backup_prune(struct backup *backup, struct backup_pruned *out, struct error *err);

#endif
