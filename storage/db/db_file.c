/* Three kinds of files pass here. For the database file and its log, a db_file stands in front of
 * SQLite's own file and checks what goes through. All other files are opened as they are.
 *
 * A db_place has what all connections to one database share: whether its pages carry checksums, and
 * what its log holds. Places are found by path and live as long as a file of theirs is open.
 *
 * SQLite itself reads a page only under a lock that keeps checkpoints from writing that page, so a
 * mended page may be written back to where it was read. */
#include "storage/db/db_file.h"

#include <endian.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "storage/db/log_sums.h"
#include "storage/db/page_mender.h"

const char db_file_vfs[] = "deltabucket";

enum {
	HEADER_BYTES = 100, /* of the database file; SQLite reads it alone */
	/* the part of the header that tells of changes; SQLite reads it alone too */
	COUNTER_BYTES = 16,
	COUNTER_AT = 24,
	RESERVED_AT = 20, /* in the header: bytes of each page that SQLite leaves alone */
	PAGES_AT = 28,    /* in the header: pages of the file, big-endian */
	LOG_HEADER_BYTES = 32,
	FRAME_HEADER_BYTES = 24,
	FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES,
	SALT_AT = 8 /* in a frame's header: 8 bytes */
};
/* An extended code, because after the plain code SQLite refuses all further writes of the
 * transaction. Codes of SQLITE_IOERR end the transaction, whatever the statement. */
enum { PAGE_DAMAGED = SQLITE_CORRUPT | (255 << 8) };
/* SQLite may read parts of pages past its cache where a file has this characteristic. Older headers
 * lack the name. */
#ifdef SQLITE_IOCAP_SUBPAGE_READ
enum { READS_PARTS = SQLITE_IOCAP_SUBPAGE_READ };
#else
enum { READS_PARTS = 0x8000 };
#endif

struct db_place {
	struct db_place *next;
	char *path;
	unsigned users;
	_Atomic bool is_summed;
	/* pages that the file has, as far as was seen: none of them can lie after its end */
	_Atomic uint64_t pages;
	_Atomic uint64_t damage;
	_Atomic uint64_t mended;
	struct page_mender mender;
	struct log_sums *log;
};
struct db_file {
	sqlite3_file base; /* must be first */
	struct db_place *place;
	struct db_file *main;      /* of a log, its database file; otherwise itself */
	struct db_trouble trouble; /* these three are used in `main` alone, for both files */
	uint64_t written_salt;
	bool is_ending;
	bool is_log;
	bool overlooks;
	bool only_looks; /* mends pages for its reader alone */
	sqlite3_file *real;
};

static struct {
	pthread_once_t once;
	struct lock lock;
	struct db_place *first; /* guarded by lock */
	sqlite3_vfs vfs;
	sqlite3_vfs *real;
} files = {.once = PTHREAD_ONCE_INIT};

static const sqlite3_io_methods methods;

static struct db_place *place_take(const char *path)
{
	lock_enter(&files.lock);
	struct db_place *place = files.first;
	while (place != NULL && strcmp(place->path, path) != 0)
		place = place->next;
	if (place == NULL) {
		place = memory_new(sizeof(*place));
		*place = (struct db_place){.next = files.first, .path = memory_copy_text(path)};
		place->log = log_sums_new();
		files.first = place;
	}
	place->users++;
	lock_leave(&files.lock);
	return place;
}

static void place_give(struct db_place *place)
{
	lock_enter(&files.lock);
	ASSERT(place->users > 0);
	bool is_last = --place->users == 0;
	struct db_place **link = &files.first;
	while (is_last && *link != place)
		link = &(*link)->next;
	if (is_last)
		*link = place->next;
	lock_leave(&files.lock);
	if (!is_last)
		return;
	log_sums_free(place->log);
	free(place->path);
	free(place);
}

static bool is_system(enum db_trouble_kind kind)
{
	return kind == DB_TROUBLE_READ || kind == DB_TROUBLE_WRITE;
}

static int note(struct db_file *file, enum db_trouble_kind kind, sqlite3_int64 offset, int result)
{
	bool in_pages = !file->is_log && kind != DB_TROUBLE_WRITE;
	if (kind != DB_TROUBLE_WRITE)
		atomic_fetch_add(&file->place->damage, 1);
	if (kind == DB_TROUBLE_WRITE || file->main->trouble.kind != DB_TROUBLE_WRITE)
		file->main->trouble = (struct db_trouble){
			.kind = kind,
			.page = in_pages ? (uint32_t)(offset / PAGE_BYTES) + 1 : 0,
			.os_errno = is_system(kind) ? errno : 0,
		};
	return result;
}

/* After a failure of the system SQLite takes the transaction back by itself. */
static int note_damage(struct db_file *file, enum db_trouble_kind kind, sqlite3_int64 offset)
{
	bool ends = file->main->is_ending || is_system(file->main->trouble.kind);
	return note(file, kind, offset, ends ? SQLITE_IOERR_DATA : PAGE_DAMAGED);
}

static bool is_page(const struct db_file *file, int len, sqlite3_int64 offset)
{
	return !file->is_log && len == PAGE_BYTES && offset % PAGE_BYTES == 0;
}

/* Whether this is the place of a frame's page in the log. */
static bool is_frame_page(const struct db_file *file, int len, sqlite3_int64 offset)
{
	return file->is_log && len == PAGE_BYTES && offset > LOG_HEADER_BYTES &&
		(offset - LOG_HEADER_BYTES) % FRAME_BYTES == FRAME_HEADER_BYTES;
}

static bool is_frame_header(int len, sqlite3_int64 offset)
{
	return len == FRAME_HEADER_BYTES && offset >= LOG_HEADER_BYTES &&
		(offset - LOG_HEADER_BYTES) % FRAME_BYTES == 0;
}

static uint64_t frame_at(sqlite3_int64 offset)
{
	ASSERT(offset >= LOG_HEADER_BYTES);
	return (uint64_t)(offset - LOG_HEADER_BYTES) / FRAME_BYTES;
}

static bool is_frame(const struct db_file *file, int len, sqlite3_int64 offset)
{
	return file->is_log && len == FRAME_BYTES && (offset - LOG_HEADER_BYTES) % FRAME_BYTES == 0;
}

static int check_page(struct db_file *file, uint8_t *page, sqlite3_int64 offset)
{
	ASSERT(offset % PAGE_BYTES == 0);
	uint32_t number = (uint32_t)(offset / PAGE_BYTES) + 1;
	if (page_sum_matches(page, number))
		return SQLITE_OK;
	if (page_mender_mend(&file->place->mender, page, number) != PAGE_MENDED)
		return note_damage(file, DB_TROUBLE_PAGE, offset);
	atomic_fetch_add(&file->place->mended, 1);
	/* if the write fails, the page is mended again at the next read */
	if (!file->only_looks)
		(void)file->real->pMethods->xWrite(file->real, page, PAGE_BYTES, offset);
	return SQLITE_OK;
}

/* SQLite takes bytes after the file's end for zeros, and asks for them while it makes new pages. */
static int check_short(struct db_file *file, sqlite3_int64 offset)
{
	if ((uint64_t)offset / PAGE_BYTES >= atomic_load(&file->place->pages))
		return SQLITE_IOERR_SHORT_READ;
	return note_damage(file, DB_TROUBLE_SHORT, offset);
}

static int overlook(uint8_t *bytes, int len, int result)
{
	if (result != SQLITE_OK && result != SQLITE_IOERR_SHORT_READ)
		memset(bytes, 0, (size_t)len);
	return SQLITE_OK;
}

/* Recovery reads each frame whole, and takes only frames that prove themselves. */
static void learn_log(struct db_file *file, const uint8_t *bytes, int len, sqlite3_int64 offset)
{
	if (is_frame(file, len, offset))
		log_sums_note(file->place->log, frame_at(offset), bytes + FRAME_HEADER_BYTES);
}

static int check_read(
	struct db_file *file, uint8_t *bytes, int len, sqlite3_int64 offset, int result)
{
	if (file->overlooks && is_page(file, len, offset))
		return overlook(bytes, len, result);
	if (result != SQLITE_OK && result != SQLITE_IOERR_SHORT_READ)
		return note(file, DB_TROUBLE_READ, offset, SQLITE_IOERR_READ);
	if (file->is_log && result == SQLITE_OK)
		learn_log(file, bytes, len, offset);
	if (is_frame_page(file, len, offset) &&
		!log_sums_match(file->place->log, frame_at(offset), bytes))
		return note_damage(file, DB_TROUBLE_LOG, offset);
	if (!is_page(file, len, offset) || !atomic_load(&file->place->is_summed))
		return result;
	return result == SQLITE_OK ? check_page(file, bytes, offset) : check_short(file, offset);
}

static int read_whole(struct db_file *file, void *into, int len, sqlite3_int64 offset)
{
	errno = 0;
	int result = file->real->pMethods->xRead(file->real, into, len, offset);
	return check_read(file, into, len, offset, result);
}

/* True when the read is for a part of a page whose checksum must be checked: SQLite may read pages
 * of large rows without their ends. It reads the header alone before it knows the size of pages. */
static bool is_part(const struct db_file *file, int len, sqlite3_int64 offset)
{
	bool is_header = (offset == 0 && len == HEADER_BYTES) ||
		(offset == COUNTER_AT && len == COUNTER_BYTES);
	return !file->is_log && !is_header && !is_page(file, len, offset) &&
		atomic_load(&file->place->is_summed);
}

static int read_part(struct db_file *file, uint8_t *into, int len, sqlite3_int64 offset)
{
	uint8_t page[PAGE_BYTES] = {0};
	sqlite3_int64 within = offset % PAGE_BYTES;
	if (within + len > PAGE_BYTES) /* pages of another size: the file's header is damaged */
		return note_damage(file, DB_TROUBLE_PAGE, 0);
	int result = read_whole(file, page, PAGE_BYTES, offset - within);
	memcpy(into, page + within, (size_t)len);
	return result;
}

static int db_file_read(sqlite3_file *base, void *into, int len, sqlite3_int64 offset)
{
	struct db_file *file = (struct db_file *)base;
	return is_part(file, len, offset) ? read_part(file, into, len, offset)
					  : read_whole(file, into, len, offset);
}

/* Writes a copy of the page with its checksum, because `page` itself belongs to SQLite. */
static int write_page(struct db_file *file, const uint8_t *page, sqlite3_int64 offset)
{
	uint8_t summed[PAGE_BYTES];
	ASSERT(offset % PAGE_BYTES == 0);
	if (offset == 0 && page[RESERVED_AT] == PAGE_SUM_BYTES)
		atomic_store(&file->place->is_summed, true);
	if ((uint64_t)offset / PAGE_BYTES >= atomic_load(&file->place->pages))
		atomic_store(&file->place->pages, (uint64_t)offset / PAGE_BYTES + 1);
	if (!atomic_load(&file->place->is_summed))
		return file->real->pMethods->xWrite(file->real, page, PAGE_BYTES, offset);
	memcpy(summed, page, PAGE_BYTES);
	page_sum_put(summed, (uint32_t)(offset / PAGE_BYTES) + 1);
	return file->real->pMethods->xWrite(file->real, summed, PAGE_BYTES, offset);
}

static void note_log_write(
	struct db_file *file, const uint8_t *bytes, int len, sqlite3_int64 offset)
{
	if (is_frame_page(file, len, offset)) {
		log_sums_note(file->place->log, frame_at(offset), bytes);
	} else if (is_frame_header(len, offset)) {
		memcpy(&file->main->written_salt, bytes + SALT_AT,
			sizeof(file->main->written_salt));
	} else if (offset >= LOG_HEADER_BYTES) {
		uint64_t last = frame_at(offset + len - 1);
		for (uint64_t frame = frame_at(offset); frame <= last; frame++)
			log_sums_forget(file->place->log, frame);
	}
}

static int db_file_write(sqlite3_file *base, const void *from, int len, sqlite3_int64 offset)
{
	struct db_file *file = (struct db_file *)base;
	errno = 0;
	if (file->is_log)
		note_log_write(file, from, len, offset);
	int result = is_page(file, len, offset)
		? write_page(file, from, offset)
		: file->real->pMethods->xWrite(file->real, from, len, offset);
	return result == SQLITE_OK ? SQLITE_OK : note(file, DB_TROUBLE_WRITE, offset, result);
}

static int db_file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct db_file *file = (struct db_file *)base;
	errno = 0;
	int result = file->real->pMethods->xTruncate(file->real, size);
	if (!file->is_log)
		atomic_store(&file->place->pages, (uint64_t)size / PAGE_BYTES);
	return result == SQLITE_OK ? SQLITE_OK : note(file, DB_TROUBLE_WRITE, 0, result);
}

static int db_file_sync(sqlite3_file *base, int flags)
{
	struct db_file *file = (struct db_file *)base;
	errno = 0;
	int result = file->real->pMethods->xSync(file->real, flags);
	return result == SQLITE_OK ? SQLITE_OK : note(file, DB_TROUBLE_WRITE, 0, result);
}

static int db_file_close(sqlite3_file *base)
{
	struct db_file *file = (struct db_file *)base;
	int result = file->real->pMethods->xClose(file->real);
	place_give(file->place);
	return result;
}

/* The operations below only pass through. */
static int db_file_size(sqlite3_file *base, sqlite3_int64 *size)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xFileSize(file->real, size);
}

static int db_file_lock(sqlite3_file *base, int level)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xLock(file->real, level);
}

static int db_file_unlock(sqlite3_file *base, int level)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xUnlock(file->real, level);
}

static int db_file_check_lock(sqlite3_file *base, int *held)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xCheckReservedLock(file->real, held);
}

static int db_file_control(sqlite3_file *base, int operation, void *argument)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xFileControl(file->real, operation, argument);
}

static int db_file_sector_size(sqlite3_file *base)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xSectorSize(file->real);
}

static int db_file_characteristics(sqlite3_file *base)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xDeviceCharacteristics(file->real) & ~READS_PARTS;
}

static int db_file_shared_map(
	sqlite3_file *base, int page, int size, int extend, void volatile **out)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xShmMap(file->real, page, size, extend, out);
}

static int db_file_shared_lock(sqlite3_file *base, int offset, int count, int flags)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xShmLock(file->real, offset, count, flags);
}

static void db_file_shared_barrier(sqlite3_file *base)
{
	struct db_file *file = (struct db_file *)base;
	file->real->pMethods->xShmBarrier(file->real);
}

static int db_file_shared_unmap(sqlite3_file *base, int delete_flag)
{
	struct db_file *file = (struct db_file *)base;
	return file->real->pMethods->xShmUnmap(file->real, delete_flag);
}

/* Version 2: the file is never mapped into memory, which would bypass this layer. */
static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = db_file_close,
	.xRead = db_file_read,
	.xWrite = db_file_write,
	.xTruncate = db_file_truncate,
	.xSync = db_file_sync,
	.xFileSize = db_file_size,
	.xLock = db_file_lock,
	.xUnlock = db_file_unlock,
	.xCheckReservedLock = db_file_check_lock,
	.xFileControl = db_file_control,
	.xSectorSize = db_file_sector_size,
	.xDeviceCharacteristics = db_file_characteristics,
	.xShmMap = db_file_shared_map,
	.xShmLock = db_file_shared_lock,
	.xShmBarrier = db_file_shared_barrier,
	.xShmUnmap = db_file_shared_unmap,
};

static uint64_t pages_of(const uint8_t header[HEADER_BYTES])
{
	uint32_t pages;
	memcpy(&pages, header + PAGES_AT, sizeof(pages));
	return be32toh(pages);
}

/* A file has checksums if its first page matches its own, and also if its header says so or cannot
 * be right otherwise: then that page is damaged, and reading it reports that. */
static void look_at_first_page(struct db_file *file)
{
	uint8_t page[PAGE_BYTES];
	if (file->real->pMethods->xRead(file->real, page, PAGE_BYTES, 0) != SQLITE_OK)
		return;
	bool is_summed = page[RESERVED_AT] == PAGE_SUM_BYTES || page_sum_matches(page, 1);
	if (!is_summed && page_mender_mend(&file->place->mender, page, 1) == PAGE_MENDED)
		is_summed = page[RESERVED_AT] == PAGE_SUM_BYTES;
	if (!is_summed)
		return;
	atomic_store(&file->place->is_summed, true);
	if (check_page(file, page, 0) == SQLITE_OK)
		atomic_store(&file->place->pages, pages_of(page));
}

static int open_ours(sqlite3_file *base, const char *name, int flags, int *out_flags)
{
	struct db_file *file = (struct db_file *)base;
	*file = (struct db_file){
		.real = (sqlite3_file *)(file + 1), .is_log = (flags & SQLITE_OPEN_WAL) != 0};
	int result = files.real->xOpen(files.real, name, file->real, flags, out_flags);
	if (result != SQLITE_OK)
		return result;
	file->place = place_take(sqlite3_filename_database(name));
	file->main = file->is_log ? (struct db_file *)sqlite3_database_file_object(name) : file;
	base->pMethods = &methods;
	if (!file->is_log && !atomic_load(&file->place->is_summed))
		look_at_first_page(file);
	return SQLITE_OK;
}

static int db_file_vfs_open(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out_flags)
{
	(void)vfs;
	base->pMethods = NULL;
	if (name != NULL && (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) != 0)
		return open_ours(base, name, flags, out_flags);
	return files.real->xOpen(files.real, name, base, flags, out_flags);
}

static void db_file_register_once(void)
{
	lock_init(&files.lock, LOCK_DB_PLACES);
	files.real = sqlite3_vfs_find(NULL);
	ASSERT(files.real != NULL);
	/* everything but opening is SQLite's own, and does not depend on the vfs it is called
	 * with */
	files.vfs = *files.real;
	files.vfs.zName = db_file_vfs;
	files.vfs.pNext = NULL;
	files.vfs.szOsFile = (int)sizeof(struct db_file) + files.real->szOsFile;
	files.vfs.xOpen = db_file_vfs_open;
	int result = sqlite3_vfs_register(&files.vfs, 0);
	ASSERT(result == SQLITE_OK);
}

void db_file_register(void)
{
	pthread_once(&files.once, db_file_register_once);
}

/* The connection's database file; NULL while it has none of this layer. */
static struct db_file *file_of(sqlite3 *handle)
{
	sqlite3_file *file = NULL;
	int result = sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	if (result != SQLITE_OK || file == NULL || file->pMethods != &methods)
		return NULL;
	return (struct db_file *)file;
}

struct db_trouble db_file_take_trouble(sqlite3 *handle)
{
	struct db_file *file = file_of(handle);
	struct db_trouble trouble = {0};
	if (file == NULL)
		return trouble;
	trouble = file->trouble;
	file->trouble = (struct db_trouble){0};
	return trouble;
}

void db_file_set_ending(sqlite3 *handle, bool is_ending)
{
	struct db_file *file = file_of(handle);
	if (file == NULL)
		return;
	file->is_ending = is_ending;
	file->trouble = (struct db_trouble){0};
}

void db_file_overlook(sqlite3 *handle, bool overlooks)
{
	struct db_file *file = file_of(handle);
	if (file != NULL)
		file->overlooks = overlooks;
}

void db_file_only_look(sqlite3 *handle)
{
	struct db_file *file = file_of(handle);
	if (file != NULL)
		file->only_looks = true;
}

uint64_t db_file_damage(sqlite3 *handle)
{
	struct db_file *file = file_of(handle);
	return file == NULL ? 0 : atomic_load(&file->place->damage);
}

uint64_t db_file_mended(sqlite3 *handle)
{
	struct db_file *file = file_of(handle);
	return file == NULL ? 0 : atomic_load(&file->place->mended);
}

bool db_file_probe(sqlite3 *handle, int *out_os_errno, bool *out_has_name)
{
	static const char magic[16] = "SQLite format 3";
	char head[sizeof(magic)] = "";
	int has_moved = 0;
	struct db_file *file = file_of(handle);
	*out_os_errno = 0;
	*out_has_name = true;
	if (file == NULL)
		return true;
	(void)sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
	*out_has_name = has_moved == 0;
	errno = 0;
	const int result = file->real->pMethods->xRead(file->real, head, sizeof(head), 0);
	if (result != SQLITE_OK && result != SQLITE_IOERR_SHORT_READ)
		*out_os_errno = errno != 0 ? errno : EIO;
	return result == SQLITE_OK && memcmp(head, magic, sizeof(magic)) == 0;
}

bool db_file_is_summed(sqlite3 *handle)
{
	struct db_file *file = file_of(handle);
	return file != NULL && atomic_load(&file->place->is_summed);
}

uint64_t db_file_written_salt(sqlite3 *handle)
{
	struct db_file *file = file_of(handle);
	return file == NULL ? 0 : file->written_salt;
}
