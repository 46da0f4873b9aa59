/* A target whose objects are encrypted to a public key, or are not: its object about/store says
 * whose backups it has and to which key. Whoever has the public key alone can write, and not read.
 * One thread. */
#ifndef STORAGE_BACKUP_BACKUP_VAULT_H
#define STORAGE_BACKUP_BACKUP_VAULT_H

#include "base/digest/age.h"
#include "storage/backup/backup_manifest.h"

struct backup_vault {
	struct backup_target *target;      /* borrowed */
	uint8_t store[BACKUP_STORE_BYTES]; /* the store's id */
	bool is_sealed;
	struct age_recipient recipient; /* with is_sealed */
	/* Set by the caller before the functions below; borrowed; NULL: what is sealed stays so. */
	const struct age_identities *identities;
	/* Set by backup_vault_find: what is wrong with about/store, where the manifests took its
	 * place; kind ERROR_NONE: nothing. */
	struct error about;
};
/* To write the backups of this store. An empty target becomes one of it, unless `had_moments`: then
 * it has lost its backups, and not_found is returned. `recipient` NULL: not encrypted. invalid: it
 * is another store's, or encrypted to another key; corrupt: about/store is damaged. */
int backup_vault_begin(struct backup_vault *out, struct backup_target *target,
	const uint8_t store[BACKUP_STORE_BYTES], const struct age_recipient *recipient,
	bool had_moments, struct error *err);
/* Whether the place is still the one that backup_vault_begin found. Fails as that, and makes
 * nothing. From here on puts fail when another folder takes its place. */
int backup_vault_renew(const struct backup_vault *vault, struct error *err);
/* To read them. Where about/store is missing, damaged, or names another store than the manifests,
 * these count. not_found: no backup is there. */
int backup_vault_find(struct backup_vault *out, struct backup_target *target, struct error *err);

int backup_vault_put(
	struct backup_vault *vault, const char *name, struct span bytes, struct error *err);
/* Appends to `out`. denied: it needs an identity, or another one; corrupt: it does not decrypt. */
int backup_vault_get(
	struct backup_vault *vault, const char *name, struct buffer *out, struct error *err);
/* Whether the place is still there: when a disk goes away, all its objects are missing at once. */
int backup_vault_check(const struct backup_vault *vault, struct error *err);
/* How many bytes an object has that holds this many. */
uint64_t backup_vault_bytes(const struct backup_vault *vault, uint64_t plain);

/* Reads the manifest of a moment. Release `out` in any case. */
int backup_vault_manifest(struct backup_vault *vault, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err);

#endif
