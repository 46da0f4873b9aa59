#include "storage/backup/backup_vault.h"

#include <stdio.h>
#include <string.h>

#include "storage/backup/backup_about.h"

static const char MENDS[] = "`deltabucketd backup --verify` writes it again from the manifests";

static int begin_without(struct backup_vault *out, bool had_moments, struct error *err);
static int check_found(
	const struct backup_vault *wanted, const struct backup_vault *found, struct error *err);
static bool is_of(const struct backup_vault *vault, const struct backup_vault *other);
static int refuse_damage(struct error *err);
static int refuse_unproven(
	const struct error *about, const struct error *why, struct error *err);
static int check_same(
	const struct backup_vault *wanted, const struct backup_vault *found, struct error *err);
static int open_sealed(struct backup_vault *vault, const char *name, struct span sealed,
	struct buffer *out, struct error *err);
static bool has_key(const struct backup_vault *vault);

int backup_vault_begin(struct backup_vault *out, struct backup_target *target,
	const uint8_t store[BACKUP_STORE_BYTES], const struct age_recipient *recipient,
	bool had_moments, struct error *err)
{
	struct backup_vault found = {.target = target};
	const struct age_identities *identities = out->identities;
	*out = (struct backup_vault){
		.target = target, .is_sealed = recipient != NULL, .identities = identities};
	memcpy(out->store, store, BACKUP_STORE_BYTES);
	if (recipient != NULL)
		out->recipient = *recipient;
	if (target->ops->pin(target, err) != 0)
		return -1;
	if (backup_about_read(&found, err) == 0)
		return check_found(out, &found, err);
	return err->kind == ERROR_NOT_FOUND ? begin_without(out, had_moments, err)
					    : refuse_damage(err);
}

int backup_vault_renew(const struct backup_vault *vault, struct error *err)
{
	struct backup_target *target = vault->target;
	struct backup_vault found = {.target = target};
	if (target->ops->pin(target, err) != 0)
		return -1;
	return backup_about_read(&found, err) == 0 ? check_found(vault, &found, err)
						   : refuse_damage(err);
}

int backup_vault_find(struct backup_vault *out, struct backup_target *target, struct error *err)
{
	const struct age_identities *identities = out->identities;
	struct backup_vault proven = {.target = target, .identities = identities};
	struct error about = {0};
	struct error why = {0};
	*out = proven;
	const bool is_read = backup_about_read(out, &about) == 0;
	if (!is_read && about.kind != ERROR_NOT_FOUND && about.kind != ERROR_CORRUPT) {
		*err = about;
		return -1;
	}
	const bool is_proven = backup_about_prove(&proven, is_read ? out : NULL, &why) == 0;
	if (is_read && (!is_proven || is_of(out, &proven)))
		return 0;
	if (!is_proven)
		return refuse_unproven(&about, &why, err);
	if (is_read)
		error_set(&about, ERROR_CORRUPT,
			"%s is damaged: it names another store than the manifests do.",
			BACKUP_ABOUT);
	if (about.kind == ERROR_NOT_FOUND)
		error_set(&about, ERROR_NOT_FOUND, "%s is missing.", BACKUP_ABOUT);
	*out = proven;
	out->about = about;
	return 0;
}

int backup_vault_put(
	struct backup_vault *vault, const char *name, struct span bytes, struct error *err)
{
	struct backup_target *target = vault->target;
	struct buffer sealed;
	if (!vault->is_sealed)
		return target->ops->put(target, name, bytes, err);
	buffer_init(&sealed, (size_t)age_sealed_bytes(bytes.len));
	age_seal(&vault->recipient, bytes, &sealed);
	const int result = target->ops->put(target, name, buffer_span(&sealed), err);
	buffer_release(&sealed);
	return result;
}

int backup_vault_get(
	struct backup_vault *vault, const char *name, struct buffer *out, struct error *err)
{
	struct backup_target *target = vault->target;
	struct buffer sealed;
	if (!vault->is_sealed)
		return target->ops->get(target, name, out, err);
	if (vault->identities == NULL)
		return error_set(err, ERROR_DENIED,
			"The backup is encrypted; name the file with its secret key with --identity.");
	buffer_init(&sealed, (size_t)age_sealed_bytes(out->cap));
	int result = target->ops->get(target, name, &sealed, err);
	if (result == 0)
		result = open_sealed(vault, name, buffer_span(&sealed), out, err);
	buffer_release(&sealed);
	return result;
}

int backup_vault_check(const struct backup_vault *vault, struct error *err)
{
	struct backup_vault again = {.target = vault->target};
	struct error why = {0};
	if (backup_about_read(&again, &why) == 0 || why.kind == ERROR_CORRUPT)
		return 0;
	if (why.kind != ERROR_NOT_FOUND || vault->about.kind != ERROR_NOT_FOUND) {
		*err = why;
		return why.kind == ERROR_NOT_FOUND ? refuse_unproven(&why, &why, err) : -1;
	}
	return backup_about_prove(&again, vault, &why) == 0 || why.kind != ERROR_NOT_FOUND
		? 0
		: refuse_unproven(&why, &why, err);
}

uint64_t backup_vault_bytes(const struct backup_vault *vault, uint64_t plain)
{
	return vault->is_sealed ? age_sealed_bytes(plain) : plain;
}

int backup_vault_manifest(struct backup_vault *vault, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	struct buffer text;
	*out = (struct backup_manifest){.count = 0};
	backup_moment_name(moment, name);
	buffer_init(&text, BACKUP_OBJECT_MAX_BYTES);
	int result = backup_vault_get(vault, name, &text, err);
	if (result == 0 && backup_manifest_parse(buffer_span(&text), out, err) != 0)
		result = error_wrap(err, "%s", name);
	if (result == 0 &&
		(backup_moment_compare(moment, &out->moment) != 0 ||
			memcmp(out->store, vault->store, sizeof(out->store)) != 0))
		result = error_set(
			err, ERROR_CORRUPT, "%s is the manifest of another moment.", name);
	buffer_release(&text);
	return result;
}

/* Moments without it are this store's when the manifests say so. */
static int begin_without(struct backup_vault *out, bool had_moments, struct error *err)
{
	struct backup_vault found = {.target = out->target, .identities = out->identities};
	struct error why = {0};
	const bool has_moments = backup_about_prove(&found, NULL, &why) == 0;
	if (has_moments && check_same(out, &found, err) != 0)
		return -1;
	if (!has_moments && why.kind == ERROR_NOT_FOUND && had_moments)
		return error_set(err, ERROR_NOT_FOUND,
			"The backups that were there are gone: the object %s is missing.",
			BACKUP_ABOUT);
	if (!has_moments && why.kind != ERROR_NOT_FOUND)
		return error_set(err, why.kind, "%s is missing, and the moments there cannot be"
			" read (%.200s); with --identity %s.",
			BACKUP_ABOUT, why.text, MENDS);
	return backup_about_put(out, err);
}

static int check_found(
	const struct backup_vault *wanted, const struct backup_vault *found, struct error *err)
{
	struct backup_vault proven = {.target = wanted->target, .identities = wanted->identities};
	struct error ignored;
	if (!is_of(wanted, found) && backup_about_prove(&proven, NULL, &ignored) == 0 &&
		is_of(wanted, &proven))
		return error_set(err, ERROR_CORRUPT,
			"%s is damaged: it names another store than the manifests do; %s.",
			BACKUP_ABOUT, MENDS);
	return check_same(wanted, found, err);
}

static bool is_of(const struct backup_vault *vault, const struct backup_vault *other)
{
	return memcmp(vault->store, other->store, sizeof(vault->store)) == 0;
}

static int refuse_damage(struct error *err)
{
	return err->kind == ERROR_CORRUPT ? error_advise(err, "%s", MENDS)
		: err->kind == ERROR_NOT_FOUND
		? error_set(err, ERROR_NOT_FOUND,
			  "The backups that were there are gone: the object %s is missing.",
			  BACKUP_ABOUT)
		: -1;
}

static int refuse_unproven(
	const struct error *about, const struct error *why, struct error *err)
{
	if (why->kind == ERROR_NOT_FOUND)
		return about->kind == ERROR_NOT_FOUND
			? error_set(err, ERROR_NOT_FOUND,
				  "There is no backup: the object %s is missing.", BACKUP_ABOUT)
			: error_set(err, about->kind, "%s There is no moment either.", about->text);
	return error_set(err, why->kind, "%s is %s, and the manifests do not take its place: %.300s",
		BACKUP_ABOUT, about->kind == ERROR_NOT_FOUND ? "missing" : "damaged", why->text);
}

static int check_same(
	const struct backup_vault *wanted, const struct backup_vault *found, struct error *err)
{
	char recipient[AGE_RECIPIENT_BYTES];
	if (memcmp(wanted->store, found->store, sizeof(wanted->store)) != 0)
		return error_set(err, ERROR_INVALID,
			"The backups there are of another store; use another folder or prefix.");
	if (found->is_sealed)
		age_recipient_print(&found->recipient, recipient);
	if (found->is_sealed &&
		(!wanted->is_sealed ||
			memcmp(wanted->recipient.key, found->recipient.key, AGE_KEY_BYTES) != 0))
		return error_set(err, ERROR_INVALID,
			"The backups there are encrypted to %s; name it with --recipient, or use another"
			" folder or prefix.",
			recipient);
	return found->is_sealed == wanted->is_sealed
		? 0
		: error_set(err, ERROR_INVALID,
			  "The backups there are not encrypted; use another folder or prefix for those"
			  " that are.");
}

static int open_sealed(struct backup_vault *vault, const char *name, struct span sealed,
	struct buffer *out, struct error *err)
{
	if (age_open(vault->identities, sealed, out, err) == 0)
		return 0;
	if (err->kind == ERROR_DENIED && has_key(vault))
		return error_set(err, ERROR_CORRUPT, "%s is damaged: it does not decrypt.", name);
	return error_wrap(err, "%s", name);
}

/* A bit that is flipped where an object says whom it is for makes it one for somebody else. */
static bool has_key(const struct backup_vault *vault)
{
	for (size_t i = 0; i < vault->identities->count; i++) {
		struct age_recipient own;
		age_identity_recipient(vault->identities, i, &own);
		if (memcmp(own.key, vault->recipient.key, AGE_KEY_BYTES) == 0)
			return true;
	}
	return false;
}
