/* A note goes to the slot that does not have the newest one, so a torn write leaves the note before
 * it readable. A turn that rises by one with each note tells which slot is newer. The file stores
 * the boot id of the machine, and its own inode number, which a copy does not share: these tell
 * whether the newest note can be the last one that was written. */
#include "storage/core/acknowledged.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/xxh3.h"
#include "base/encode.h"
#include "base/little_endian.h"
#include "base/memory.h"

/* Each slot lies in a page of its own, so that a write to one cannot damage the other. */
enum { SLOTS = 2, SLOT_STEP = 4096, SLOT_BYTES = 96, VERSION = 1 };
enum {
	VERSION_AT = 8,
	TURN_AT = 12,
	STORE_AT = 16,
	LIFE_AT = 32,
	CHANGE_AT = 40,
	SALT_AT = 48,
	FRAMES_AT = 56,
	BOOT_AT = 64,
	INODE_AT = 80,
	SUM_AT = 88
};
static const char magic[8] = "DBKTACKN";

struct acknowledged {
	const struct file_ops *files;
	char *path;
	int fd;
	bool is_unused; /* the file is new and has no note yet */
	/* By this process. An earlier one may have been killed after it made the file. */
	bool is_name_synced;
	uint32_t turn; /* of the newest slot */
	uint8_t boot[BOOT_ID_BYTES];
	uint64_t inode;
};

static void read_boot(uint8_t out[BOOT_ID_BYTES]);
static int read_file(
	const char *path, struct acknowledgement *out, uint32_t *out_turn, struct error *err);
static int check_versions(struct span bytes, const char *path, struct error *err);
static const uint8_t *find_slot(struct span bytes, unsigned i);
static bool is_valid(const uint8_t slot[SLOT_BYTES]);
static uint32_t take_newest(struct span bytes, uint64_t inode, struct acknowledgement *out);
static void decode(const uint8_t slot[SLOT_BYTES], uint64_t inode, uint32_t *out_turn,
	struct acknowledgement *out);
static uint64_t inode_of(const char *path);
static void encode(
	const struct acknowledgement *from, uint32_t turn, uint64_t inode, uint8_t out[SLOT_BYTES]);

bool acknowledged_is_exact(const struct acknowledgement *last)
{
	static const uint8_t unknown[BOOT_ID_BYTES];
	uint8_t now[BOOT_ID_BYTES];
	read_boot(now);
	return memcmp(now, unknown, sizeof(now)) != 0 && memcmp(now, last->boot, sizeof(now)) == 0;
}

int acknowledged_read(const char *path, struct acknowledgement *out_last, struct error *err)
{
	uint32_t turn;
	return read_file(path, out_last, &turn, err);
}

struct acknowledged *acknowledged_open(const struct file_ops *files, const char *path,
	struct acknowledgement *out_last, struct error *err)
{
	uint32_t turn;
	bool is_there = file_exists(path);
	if (read_file(path, out_last, &turn, err) != 0)
		return NULL;
	int fd = files->open(files, path, O_RDWR | O_CREAT, 0600);
	if (fd < 0) {
		error_set_errno(err, "cannot open %s", path);
		return NULL;
	}
	struct acknowledged *acknowledged = memory_new(sizeof(*acknowledged));
	*acknowledged = (struct acknowledged){.files = files,
		.path = memory_copy_text(path),
		.fd = fd,
		.is_unused = !is_there,
		.turn = turn,
		.inode = inode_of(path)};
	read_boot(acknowledged->boot);
	return acknowledged;
}

void acknowledged_close(struct acknowledged *acknowledged)
{
	if (acknowledged == NULL)
		return;
	if (acknowledged->is_unused)
		acknowledged->files->unlink(acknowledged->files, acknowledged->path);
	close(acknowledged->fd);
	free(acknowledged->path);
	free(acknowledged);
}

int acknowledged_note(
	struct acknowledged *acknowledged, const struct acknowledgement *now, struct error *err)
{
	uint8_t slot[SLOT_BYTES];
	struct acknowledgement noted = *now;
	uint32_t turn = acknowledged->turn + 1;
	memcpy(noted.boot, acknowledged->boot, sizeof(noted.boot));
	encode(&noted, turn, acknowledged->inode, slot);
	acknowledged->is_unused = false;
	if (file_write_at(acknowledged->files, acknowledged->fd, span_of(slot, sizeof(slot)),
		    (off_t)(turn % SLOTS) * SLOT_STEP, acknowledged->path, err) != 0)
		return -1;
	acknowledged->turn = turn;
	return 0;
}

int acknowledged_sync(struct acknowledged *acknowledged, struct error *err)
{
	if (file_sync(acknowledged->files, acknowledged->fd, acknowledged->path, err) != 0)
		return -1;
	if (!acknowledged->is_name_synced &&
		file_sync_name(acknowledged->files, acknowledged->path, err) != 0)
		return -1;
	acknowledged->is_name_synced = true;
	return 0;
}

/* Zeros where the system has no boot id: then nothing is ever exact. */
static void read_boot(uint8_t out[BOOT_ID_BYTES])
{
	char digits[2 * BOOT_ID_BYTES];
	struct buffer text;
	struct error ignored;
	size_t count = 0;
	buffer_init(&text, 256);
	memset(out, 0, BOOT_ID_BYTES);
	if (file_read_all("/proc/sys/kernel/random/boot_id", &text, &ignored) == 0)
		for (size_t i = 0; i < text.len && count < sizeof(digits); i++)
			if (text.data[i] != '-')
				digits[count++] = (char)text.data[i];
	if (count != sizeof(digits) ||
		!decode_hex(span_of(digits, sizeof(digits)), out, BOOT_ID_BYTES))
		memset(out, 0, BOOT_ID_BYTES);
	buffer_release(&text);
}

static int read_file(
	const char *path, struct acknowledgement *out, uint32_t *out_turn, struct error *err)
{
	struct buffer bytes;
	buffer_init(&bytes, SLOTS * SLOT_STEP);
	int result = file_exists(path) ? file_read_all(path, &bytes, err) : 0;
	if (result == 0)
		result = check_versions(buffer_span(&bytes), path, err);
	if (result == 0)
		*out_turn = take_newest(buffer_span(&bytes), inode_of(path), out);
	buffer_release(&bytes);
	return result;
}

static int check_versions(struct span bytes, const char *path, struct error *err)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		const uint8_t *slot = find_slot(bytes, i);
		uint64_t version = slot != NULL ? little_endian_get(slot + VERSION_AT, 4) : VERSION;
		if (version != VERSION)
			return error_set(err, ERROR_UNSUPPORTED,
				"%s has version %llu, and this program knows version %d. Start the"
				" program that wrote it.",
				path, (unsigned long long)version, VERSION);
	}
	return 0;
}

/* NULL when the slot is absent, torn or damaged. */
static const uint8_t *find_slot(struct span bytes, unsigned i)
{
	ASSERT(i < SLOTS);
	bool is_there = bytes.len >= i * SLOT_STEP + SLOT_BYTES;
	return is_there && is_valid(bytes.data + i * SLOT_STEP) ? bytes.data + i * SLOT_STEP : NULL;
}

static bool is_valid(const uint8_t slot[SLOT_BYTES])
{
	return memcmp(slot, magic, sizeof(magic)) == 0 &&
		little_endian_get(slot + SUM_AT, 8) == xxh3_64(span_of(slot, SUM_AT));
}

/* Takes the slot of the later turn. The two turns differ by one, so their signed difference tells
 * which is later, also when they wrap. */
static uint32_t take_newest(struct span bytes, uint64_t inode, struct acknowledgement *out)
{
	uint32_t newest = 0;
	bool any = false;
	*out = (struct acknowledgement){0};
	for (unsigned i = 0; i < SLOTS; i++) {
		struct acknowledgement found;
		uint32_t turn;
		const uint8_t *slot = find_slot(bytes, i);
		if (slot == NULL)
			continue;
		decode(slot, inode, &turn, &found);
		if (any && (int32_t)(turn - newest) <= 0)
			continue;
		*out = found;
		newest = turn;
		any = true;
	}
	return newest;
}

static void decode(const uint8_t slot[SLOT_BYTES], uint64_t inode, uint32_t *out_turn,
	struct acknowledgement *out)
{
	*out_turn = (uint32_t)little_endian_get(slot + TURN_AT, 4);
	memcpy(out->store.id, slot + STORE_AT, STORE_ID_BYTES);
	out->store.life = little_endian_get(slot + LIFE_AT, 8);
	out->change = (int64_t)little_endian_get(slot + CHANGE_AT, 8);
	out->log_salt = little_endian_get(slot + SALT_AT, 8);
	out->log_frames = (uint32_t)little_endian_get(slot + FRAMES_AT, 4);
	memcpy(out->boot, slot + BOOT_AT, BOOT_ID_BYTES);
	if (little_endian_get(slot + INODE_AT, 8) != inode)
		memset(out->boot, 0, BOOT_ID_BYTES);
}

static uint64_t inode_of(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 ? facts.st_ino : 0;
}

static void encode(
	const struct acknowledgement *from, uint32_t turn, uint64_t inode, uint8_t out[SLOT_BYTES])
{
	memset(out, 0, SLOT_BYTES);
	memcpy(out, magic, sizeof(magic));
	little_endian_put(out + VERSION_AT, VERSION, 4);
	little_endian_put(out + TURN_AT, turn, 4);
	memcpy(out + STORE_AT, from->store.id, STORE_ID_BYTES);
	little_endian_put(out + LIFE_AT, from->store.life, 8);
	little_endian_put(out + CHANGE_AT, (uint64_t)from->change, 8);
	little_endian_put(out + SALT_AT, from->log_salt, 8);
	little_endian_put(out + FRAMES_AT, from->log_frames, 4);
	memcpy(out + BOOT_AT, from->boot, BOOT_ID_BYTES);
	little_endian_put(out + INODE_AT, inode, 8);
	little_endian_put(out + SUM_AT, xxh3_64(span_of(out, SUM_AT)), 8);
}
