/* The keys form an immutable set. A change loads a new set and swaps the pointer under the lock.
 * Lookups copy their result into the request's arena under the lock, so the old set can be freed as
 * soon as it is replaced. Tokens are found by their SHA-256: an attacker who measures the time of a
 * comparison learns only about a hash that cannot be chosen. */
#include "api/auth/keyring.h"

#include <stdlib.h>
#include <string.h>

#include "api/auth/signing_key.h"
#include "base/digest/digest.h"
#include "base/digest/seal.h"
#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread/lock.h"
#include "storage/buckets/key_use.h"

enum { KEYRING_MAX_BYTES = 256 * 1024 * 1024, TEXT_MAX_BYTES = 128 };
enum { KEY_ID_CHARACTERS = 20, SECRET_CHARACTERS = 40, TOKEN_CHARACTERS = 43 };

struct key_entry {
	struct principal principal;
	struct span name;
	struct span secret;
	struct span token_hash;
	int64_t used_ms;    /* the last use; 0: none is known */
	int64_t written_ms; /* the last use that is written down */
};
struct key_set {
	struct arena *arena;
	struct key_entry *by_id;           /* sorted by key id */
	const struct key_entry **by_token; /* sorted by token hash */
	size_t count;
	struct signing_key_cache signing_keys;
};

struct keyring {
	struct store *store;
	uint8_t master_key[SEAL_KEY_BYTES];
	struct lock lock; /* guards `set` and its signing keys */
	struct key_set *set;
	struct helper_lane lane;
	struct keyring_made_key unstored_root; /* owns its texts; id NULL: none */
};

static void take_uses(struct key_set *fresh, const struct key_set *old);
static void read_uses(struct keyring *keyring);
static void log_uses(const struct keyring *keyring, const struct error *err);
static size_t copy_uses(struct keyring *keyring, struct arena *arena, struct key_use **out);
static void set_written(struct keyring *keyring, const struct key_use *uses, size_t count);
static struct key_set *key_set_load(const struct keyring *keyring, struct error *err);
static int fill_set(const struct keyring *keyring, struct key_set *set,
	const struct key_record *records, size_t count, struct error *err);
static int add_entries(const struct keyring *keyring, struct key_set *set,
	const struct key_record *records, size_t count, struct error *err);
static bool is_replaced(const struct keyring *keyring, const struct key_record *record);
static void log_damaged(
	const struct keyring *keyring, const struct key_record *record, const char *what);
static int unseal(const struct keyring *keyring, const struct key_record *record,
	struct arena *arena, struct span *out, struct error *err);
static void add_entry(struct key_set *set, const struct key_record *record, struct span secret);
static void add_unstored_root(const struct keyring *keyring, struct key_set *set);
static int compare_ids(const void *left, const void *right);
static int compare_tokens(const void *left, const void *right);
static void key_set_free(struct key_set *set);
static void drop_text(const char *text);
static const struct principal *copy_principal(const struct principal *from, struct arena *arena);
static struct key_entry *find_entry(const struct key_set *set, struct span key_id);
static bool is_plain(const char *text);
static bool is_printable(const char *text);
static int make_texts(const struct keyring_new_key *params, struct arena *arena,
	struct keyring_made_key *out, struct error *err);
static char *random_text(
	struct arena *arena, const char *prefix, size_t characters, const char symbols[32]);

struct keyring *keyring_open(struct store *store, const uint8_t master_key[32], struct error *err)
{
	ASSERT(store != NULL);
	struct keyring *const keyring = memory_new(sizeof(*keyring));
	keyring->store = store;
	memcpy(keyring->master_key, master_key, sizeof(keyring->master_key));
	lock_init(&keyring->lock, LOCK_KEYRING);
	keyring->set = key_set_load(keyring, err);
	if (keyring->set != NULL) {
		read_uses(keyring);
		return keyring;
	}
	keyring_close(keyring);
	return NULL;
}

void keyring_close(struct keyring *keyring)
{
	if (keyring == NULL)
		return;
	key_set_free(keyring->set);
	drop_text(keyring->unstored_root.id);
	drop_text(keyring->unstored_root.secret);
	drop_text(keyring->unstored_root.token);
	drop_text(keyring->unstored_root.namespace);
	lock_release(&keyring->lock);
	explicit_bzero(keyring->master_key, sizeof(keyring->master_key));
	free(keyring);
}

int keyring_reload(struct keyring *keyring, struct error *err)
{
	struct key_set *const fresh = key_set_load(keyring, err);
	if (fresh == NULL)
		return -1;
	lock_enter(&keyring->lock);
	struct key_set *const old = keyring->set;
	ASSERT(old != NULL);
	take_uses(fresh, old);
	keyring->set = fresh;
	lock_leave(&keyring->lock);
	key_set_free(old);
	return 0;
}

struct helper_lane *keyring_lane(struct keyring *keyring)
{
	return &keyring->lane;
}

const struct principal *keyring_find_token(
	struct keyring *keyring, struct span token, struct arena *arena)
{
	uint8_t hash[SHA256_BYTES];
	const struct principal *found = NULL;
	sha256(token, hash);
	const struct key_entry wanted = {.token_hash = span_of(hash, sizeof(hash))};
	const struct key_entry *const wanted_place = &wanted;
	lock_enter(&keyring->lock);
	const struct key_set *const set = keyring->set;
	const struct key_entry *const *const entry = bsearch(
		&wanted_place, set->by_token, set->count, sizeof(*set->by_token), compare_tokens);
	if (entry != NULL && span_equal_secret((*entry)->token_hash, wanted.token_hash))
		found = copy_principal(&(*entry)->principal, arena);
	lock_leave(&keyring->lock);
	return found;
}

const struct principal *keyring_find_id(
	struct keyring *keyring, struct span key_id, struct arena *arena, struct span *out_secret)
{
	const struct principal *found = NULL;
	lock_enter(&keyring->lock);
	const struct key_entry *const entry = find_entry(keyring->set, key_id);
	if (entry != NULL) {
		*out_secret = arena_copy(arena, entry->secret);
		found = copy_principal(&entry->principal, arena);
	}
	lock_leave(&keyring->lock);
	return found;
}

const struct principal *keyring_find_caller(
	struct keyring *keyring, struct span key_id, struct arena *arena)
{
	lock_enter(&keyring->lock);
	const struct key_entry *const entry = find_entry(keyring->set, key_id);
	const struct principal *const found =
		entry != NULL ? copy_principal(&entry->principal, arena) : NULL;
	lock_leave(&keyring->lock);
	return found;
}

struct span keyring_find_name(struct keyring *keyring, struct span key_id, struct arena *arena)
{
	lock_enter(&keyring->lock);
	const struct key_entry *const entry = find_entry(keyring->set, key_id);
	const struct span name =
		entry != NULL ? arena_copy(arena, entry->name) : (struct span){NULL, 0};
	lock_leave(&keyring->lock);
	return name;
}

struct span keyring_find_root(struct keyring *keyring, struct arena *arena)
{
	struct span found = {NULL, 0};
	lock_enter(&keyring->lock);
	const struct key_set *const set = keyring->set;
	for (size_t i = 0; i < set->count && found.len == 0; i++)
		if (set->by_id[i].principal.is_root)
			found = arena_copy(arena, set->by_id[i].principal.key_id);
	lock_leave(&keyring->lock);
	return found;
}

const struct principal *keyring_find_signing_key(struct keyring *keyring, struct span key_id,
	struct span date, struct span region, struct arena *arena, uint8_t out_key[SHA256_BYTES])
{
	const struct principal *found = NULL;
	lock_enter(&keyring->lock);
	struct key_set *const set = keyring->set;
	const struct key_entry *const entry = find_entry(set, key_id);
	if (entry != NULL) {
		signing_key_find(&set->signing_keys, (size_t)(entry - set->by_id) + 1,
			entry->secret, date, region, out_key);
		found = copy_principal(&entry->principal, arena);
	}
	lock_leave(&keyring->lock);
	return found;
}

void keyring_note_use(struct keyring *keyring, struct span key_id)
{
	const int64_t now_ms = store_now_ms(keyring->store);
	lock_enter(&keyring->lock);
	struct key_entry *const entry = find_entry(keyring->set, key_id);
	if (entry != NULL)
		entry->used_ms = now_ms;
	lock_leave(&keyring->lock);
}

void keyring_write_uses(struct keyring *keyring)
{
	struct arena *const arena = arena_new(KEYRING_MAX_BYTES);
	struct key_use *uses = NULL;
	struct error err = {0};
	const size_t count = copy_uses(keyring, arena, &uses);
	if (count > 0 && key_use_write(keyring->store, uses, count, &err) == 0)
		set_written(keyring, uses, count);
	else if (count > 0)
		log_uses(keyring, &err);
	arena_free(arena);
}

bool keyring_is_namespace(struct span text)
{
	if (text.len == 0 || text.len > 63 || text.data[0] == '-' ||
		text.data[text.len - 1] == '-' || memmem(text.data, text.len, "--", 2) != NULL)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '\0' ||
			strchr("abcdefghijklmnopqrstuvwxyz0123456789-._", text.data[i]) == NULL)
			return false;
	return true;
}

int keyring_check_texts(const char *id, const char *secret, const char *token, struct error *err)
{
	if (id != NULL && !is_plain(id))
		return error_set(err, ERROR_INVALID,
			"a key id is 1 to %d printable characters without space, comma and slash",
			TEXT_MAX_BYTES);
	if ((secret != NULL && !is_printable(secret)) || (token != NULL && !is_printable(token)))
		return error_set(err, ERROR_INVALID,
			"secret and token are 1 to %d printable characters without space",
			TEXT_MAX_BYTES);
	return 0;
}

int keyring_add(struct keyring *keyring, const struct keyring_new_key *params, struct arena *arena,
	struct keyring_made_key *out, struct error *err)
{
	struct keyring_made_key made;
	ASSERT(params->namespace != NULL);
	if (make_texts(params, arena, &made, err) != 0)
		return -1;
	*out = made;
	uint8_t token_hash[SHA256_BYTES];
	struct buffer sealed;
	sha256(span_text(made.token), token_hash);
	buffer_init(&sealed, TEXT_MAX_BYTES + SEAL_OVERHEAD_BYTES);
	seal(keyring->master_key, span_text(made.secret), &sealed);
	const struct key_record record = {
		.id = span_text(made.id),
		.name = span_text(params->name),
		.namespace = span_text(made.namespace),
		.sealed_secret = buffer_span(&sealed),
		.token_hash = span_of(token_hash, sizeof(token_hash)),
		.is_root = params->is_root,
		.created_ms = store_now_ms(keyring->store),
		.grants = params->grants,
		.grant_count = params->grant_count,
	};
	int outcome = account_add_key(keyring->store, &record, err);
	buffer_release(&sealed);
	return outcome == 0 ? keyring_reload(keyring, err) : -1;
}

int keyring_set_unstored_root(
	struct keyring *keyring, const struct keyring_made_key *root, struct error *err)
{
	ASSERT(keyring->unstored_root.id == NULL && root->id != NULL);
	keyring->unstored_root = (struct keyring_made_key){.id = memory_copy_text(root->id),
		.secret = memory_copy_text(root->secret),
		.token = memory_copy_text(root->token),
		.namespace = memory_copy_text(root->namespace)};
	return keyring_reload(keyring, err);
}

int keyring_revoke(struct keyring *keyring, struct span key_id, struct error *err)
{
	if (account_revoke_key(keyring->store, key_id, err) != 0)
		return -1;
	return keyring_reload(keyring, err);
}

/* A stored key that could not be loaded counts as damaged too. */
int keyring_list(struct keyring *keyring, struct arena *arena, struct key_record **out_keys,
	size_t *out_count, struct error *err)
{
	if (account_list_keys(keyring->store, arena, out_keys, out_count, err) != 0)
		return -1;
	lock_enter(&keyring->lock);
	for (size_t i = 0; i < *out_count; i++) {
		struct key_record *const record = &(*out_keys)[i];
		const struct key_entry *const entry = find_entry(keyring->set, record->id);
		record->is_damaged = record->is_damaged || entry == NULL;
		record->used_ms = entry != NULL ? entry->used_ms : 0;
	}
	lock_leave(&keyring->lock);
	return 0;
}

static void take_uses(struct key_set *fresh, const struct key_set *old)
{
	for (size_t i = 0; i < fresh->count; i++) {
		const struct key_entry *const before =
			find_entry(old, fresh->by_id[i].principal.key_id);
		if (before == NULL)
			continue;
		fresh->by_id[i].used_ms = before->used_ms;
		fresh->by_id[i].written_ms = before->written_ms;
	}
}

/* Without them keys open what they open. */
static void read_uses(struct keyring *keyring)
{
	struct arena *const arena = arena_new(KEYRING_MAX_BYTES);
	struct key_use *uses = NULL;
	struct error err = {0};
	size_t count = 0;
	if (key_use_list(keyring->store, arena, &uses, &count, &err) != 0)
		log_uses(keyring, &err);
	set_written(keyring, uses, count);
	arena_free(arena);
}

static void log_uses(const struct keyring *keyring, const struct error *err)
{
	if (err->kind != ERROR_READ_ONLY)
		log_failure(store_log(keyring->store), LOG_WARNING, NULL, "key_uses", err);
}

/* Those that were not written down yet. */
static size_t copy_uses(struct keyring *keyring, struct arena *arena, struct key_use **out)
{
	size_t count = 0;
	lock_enter(&keyring->lock);
	const struct key_set *const set = keyring->set;
	*out = arena_take_array(arena, set->count + 1, sizeof(**out));
	for (size_t i = 0; *out != NULL && i < set->count; i++) {
		const struct key_entry *const entry = &set->by_id[i];
		if (entry->used_ms > entry->written_ms)
			(*out)[count++] = (struct key_use){
				arena_copy(arena, entry->principal.key_id), entry->used_ms};
	}
	lock_leave(&keyring->lock);
	return arena_overflowed(arena) ? 0 : count;
}

static void set_written(struct keyring *keyring, const struct key_use *uses, size_t count)
{
	lock_enter(&keyring->lock);
	for (size_t i = 0; i < count; i++) {
		struct key_entry *const entry = find_entry(keyring->set, uses[i].key_id);
		if (entry == NULL)
			continue;
		entry->written_ms = uses[i].used_ms;
		if (entry->used_ms < uses[i].used_ms)
			entry->used_ms = uses[i].used_ms;
	}
	lock_leave(&keyring->lock);
}

static struct key_set *key_set_load(const struct keyring *keyring, struct error *err)
{
	struct key_set *const set = memory_new(sizeof(*set));
	struct key_record *records = NULL;
	size_t count = 0;
	set->arena = arena_new(KEYRING_MAX_BYTES);
	if (account_list_keys(keyring->store, set->arena, &records, &count, err) == 0 &&
		fill_set(keyring, set, records, count, err) == 0)
		return set;
	key_set_free(set);
	return NULL;
}

static int fill_set(const struct keyring *keyring, struct key_set *set,
	const struct key_record *records, size_t count, struct error *err)
{
	/* one more for an unstored root key */
	set->by_id = arena_take_array(set->arena, count + 1, sizeof(*set->by_id));
	set->by_token = arena_take_array(set->arena, count + 1, sizeof(*set->by_token));
	if (set->by_id == NULL || set->by_token == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"%zu keys do not fit the memory of the keyring", count);
	if (add_entries(keyring, set, records, count, err) != 0)
		return -1;
	ASSERT(set->count <= count + 1);
	qsort(set->by_id, set->count, sizeof(*set->by_id), compare_ids);
	for (size_t i = 0; i < set->count; i++)
		set->by_token[i] = &set->by_id[i];
	qsort(set->by_token, set->count, sizeof(*set->by_token), compare_tokens);
	return 0;
}

/* A damaged key is left out and does not prevent the use of the others. If no key can be unsealed,
 * the master key is wrong. */
static int add_entries(const struct keyring *keyring, struct key_set *set,
	const struct key_record *records, size_t count, struct error *err)
{
	struct error failed = {0};
	for (size_t i = 0; i < count; i++) {
		struct span secret;
		if (is_replaced(keyring, &records[i]))
			continue;
		if (records[i].is_damaged)
			log_damaged(keyring, &records[i],
				"the checksum of its row is wrong; revoke it");
		else if (unseal(keyring, &records[i], set->arena, &secret, &failed) == 0)
			add_entry(set, &records[i], secret);
		else
			log_damaged(keyring, &records[i], failed.text);
	}
	if (set->count == 0 && failed.kind != 0)
		return error_set(err, ERROR_CORRUPT,
			"it opens none of the store's keys: they were sealed with another master key,"
			" or the file has changed");
	if (keyring->unstored_root.id != NULL)
		add_unstored_root(keyring, set);
	return 0;
}

static bool is_replaced(const struct keyring *keyring, const struct key_record *record)
{
	const char *id = keyring->unstored_root.id;
	return id != NULL && (record->is_root || span_equal_text(record->id, id));
}

static void log_damaged(
	const struct keyring *keyring, const struct key_record *record, const char *what)
{
	const struct log_field fields[] = {log_span("key", record->id), log_text("detail", what)};
	log_event(store_log(keyring->store), LOG_ERROR, NULL, "key_damaged", fields,
		sizeof(fields) / sizeof(*fields));
}

static int unseal(const struct keyring *keyring, const struct key_record *record,
	struct arena *arena, struct span *out, struct error *err)
{
	struct buffer plain;
	buffer_init(&plain, TEXT_MAX_BYTES);
	const int opened = seal_open(keyring->master_key, record->sealed_secret, &plain, err);
	if (opened == 0)
		*out = arena_copy(arena, buffer_span(&plain));
	else
		error_wrap(err, "cannot unseal the secret of key %.*s", (int)record->id.len,
			(const char *)record->id.data);
	if (plain.data != NULL)
		explicit_bzero(plain.data, plain.len);
	buffer_release(&plain);
	return opened;
}

static void add_entry(struct key_set *set, const struct key_record *record, struct span secret)
{
	set->by_id[set->count++] = (struct key_entry){
		.principal = {record->id, record->namespace, record->is_root, record->grants,
			record->grant_count},
		.name = record->name,
		.secret = secret,
		.token_hash = record->token_hash,
	};
}

static void add_unstored_root(const struct keyring *keyring, struct key_set *set)
{
	const struct keyring_made_key *root = &keyring->unstored_root;
	uint8_t hash[SHA256_BYTES];
	sha256(span_text(root->token), hash);
	const struct key_record record = {.id = span_text(root->id),
		.namespace = span_text(root->namespace),
		.is_root = true,
		.token_hash = arena_copy(set->arena, span_of(hash, sizeof(hash)))};
	add_entry(set, &record, arena_copy(set->arena, span_text(root->secret)));
}

static int compare_ids(const void *left, const void *right)
{
	const struct key_entry *const a = left;
	const struct key_entry *const b = right;
	return span_compare(a->principal.key_id, b->principal.key_id);
}

static int compare_tokens(const void *left, const void *right)
{
	const struct key_entry *const *const a = left;
	const struct key_entry *const *const b = right;
	return span_compare((*a)->token_hash, (*b)->token_hash);
}

static void key_set_free(struct key_set *set)
{
	if (set == NULL)
		return;
	for (size_t i = 0; i < set->count; i++)
		explicit_bzero(
			(void *)(uintptr_t)set->by_id[i].secret.data, set->by_id[i].secret.len);
	signing_key_wipe(&set->signing_keys);
	arena_free(set->arena);
	free(set);
}

static void drop_text(const char *text)
{
	if (text != NULL)
		explicit_bzero((void *)(uintptr_t)text, strlen(text));
	free((void *)(uintptr_t)text);
}

/* NULL when the arena is full; the request is then refused. */
static const struct principal *copy_principal(const struct principal *from, struct arena *arena)
{
	struct principal *const to = arena_take(arena, sizeof(*to));
	struct grant *const grants =
		arena_take_array(arena, from->grant_count + 1, sizeof(*grants));
	if (to == NULL || grants == NULL)
		return NULL;
	for (size_t i = 0; i < from->grant_count; i++) {
		const struct grant *const grant = &from->grants[i];
		grants[i] = (struct grant){arena_copy(arena, grant->bucket),
			arena_copy(arena, grant->prefix), grant->permissions};
	}
	*to = (struct principal){arena_copy(arena, from->key_id),
		arena_copy(arena, from->namespace), from->is_root, grants, from->grant_count};
	return arena_overflowed(arena) ? NULL : to;
}

static struct key_entry *find_entry(const struct key_set *set, struct span key_id)
{
	const struct key_entry wanted = {.principal = {.key_id = key_id}};
	ASSERT(set != NULL);
	return bsearch(&wanted, set->by_id, set->count, sizeof(*set->by_id), compare_ids);
}

static bool is_plain(const char *text)
{
	size_t len = 0;
	for (; text[len] != '\0'; len++)
		if (text[len] <= ' ' || text[len] > '~' || text[len] == '/' || text[len] == ',')
			return false;
	return len > 0 && len <= TEXT_MAX_BYTES;
}

/* Secrets may have any printable character. Only ids are parts of a credential scope, where '/' and
 * ',' are separators. */
static bool is_printable(const char *text)
{
	size_t len = 0;
	for (; text[len] != '\0'; len++)
		if (text[len] <= ' ' || text[len] > '~')
			return false;
	return len > 0 && len <= TEXT_MAX_BYTES;
}

static int make_texts(const struct keyring_new_key *params, struct arena *arena,
	struct keyring_made_key *out, struct error *err)
{
	static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	*out = (struct keyring_made_key){
		.id = params->id != NULL ? params->id
					 : random_text(arena, "DB", KEY_ID_CHARACTERS, capitals),
		.secret = params->secret != NULL
			? params->secret
			: random_text(arena, "", SECRET_CHARACTERS, letters),
		.token = params->token != NULL
			? params->token
			: random_text(arena, "db_", TOKEN_CHARACTERS, letters),
		.namespace = params->namespace,
	};
	if (out->id == NULL || out->secret == NULL || out->token == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	if (keyring_check_texts(out->id, out->secret, out->token, err) != 0)
		return -1;
	if (!keyring_is_namespace(span_text(out->namespace)))
		return error_set(err, ERROR_INVALID,
			"The namespace '%.63s' must be 1 to 63 of a-z 0-9 . _ -, without --, and must not begin or end with -.",
			out->namespace);
	return 0;
}

/* There are 32 symbols, so that the low 5 bits of a random byte choose one without bias. A secret
 * and a token have 200 random bits. */
static char *random_text(
	struct arena *arena, const char *prefix, size_t characters, const char symbols[32])
{
	uint8_t bytes[TEXT_MAX_BYTES];
	const size_t prefix_len = strlen(prefix);
	ASSERT(prefix_len <= characters && characters <= sizeof(bytes));
	random_bytes(bytes, characters);
	char *const text = arena_take(arena, characters + 1);
	if (text == NULL)
		return NULL;
	memcpy(text, prefix, prefix_len);
	for (size_t i = prefix_len; i < characters; i++)
		text[i] = symbols[bytes[i] & 31];
	explicit_bzero(bytes, sizeof(bytes));
	return text;
}
