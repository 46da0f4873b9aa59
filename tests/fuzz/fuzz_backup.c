/* What a place of backups may hold: the first byte chooses between a manifest, whose digest is put
 * right first unless the second byte is odd, the name of a piece, the name of a moment, and a file
 * of age. What is accepted is printed as it was read, and leads to no path outside of a data
 * folder. */
#include <string.h>

#include "base/digest/age.h"
#include "base/encode.h"
#include "storage/backup/backup_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CAP_BYTES = 16 * 1024 * 1024 };

static void check_path(const char *key)
{
	char path[BACKUP_NAME_BYTES];
	ASSERT(backup_key_path(key, path));
	ASSERT(strstr(path, "..") == NULL && path[0] != '/');
	ASSERT(strncmp(path, "packs/", 6) == 0 || strncmp(path, "journal/", 8) == 0);
}

static void check_manifest(struct span text)
{
	struct backup_manifest manifest;
	struct backup_manifest again;
	struct buffer printed;
	struct buffer reprinted;
	struct error err = {0};
	if (backup_manifest_parse(text, &manifest, &err) == 0) {
		buffer_init(&printed, CAP_BYTES);
		buffer_init(&reprinted, CAP_BYTES);
		for (size_t i = 0; i < manifest.count; i++) {
			check_path(manifest.files[i].key);
			ASSERT(backup_file_covered(&manifest.files[i]) <= manifest.files[i].length);
		}
		backup_manifest_print(&manifest, &printed);
		ASSERT(backup_manifest_parse(buffer_span(&printed), &again, &err) == 0);
		backup_manifest_print(&again, &reprinted);
		ASSERT(span_equal(buffer_span(&printed), buffer_span(&reprinted)));
		backup_manifest_release(&again);
		buffer_release(&printed);
		buffer_release(&reprinted);
	} else {
		ASSERT(err.kind == ERROR_CORRUPT || err.kind == ERROR_UNSUPPORTED);
	}
	backup_manifest_release(&manifest);
}

static void fuzz_manifest(struct span text, bool is_right)
{
	struct buffer whole;
	uint8_t digest[BLAKE3_BYTES];
	char digits[2 * BLAKE3_BYTES + 1];
	buffer_init(&whole, CAP_BYTES);
	buffer_add_span(&whole, text);
	if (is_right) {
		blake3(NULL, text, digest);
		encode_hex(span_of(digest, sizeof(digest)), digits);
		buffer_format(&whole, "end %s\n", digits);
	}
	check_manifest(buffer_span(&whole));
	buffer_release(&whole);
}

static void fuzz_piece(struct span text, bool is_right)
{
	char name[BACKUP_NAME_BYTES] = "";
	char again[BACKUP_NAME_BYTES];
	char key[BACKUP_KEY_BYTES];
	struct backup_piece piece;
	(void)is_right;
	if (text.len >= sizeof(name))
		return;
	if (text.len > 0)
		memcpy(name, text.data, text.len);
	if (!backup_piece_parse(name, key, &piece))
		return;
	check_path(key);
	backup_piece_name(key, &piece, again);
	ASSERT(strcmp(name, again) == 0);
}

static void fuzz_moment(struct span text, bool is_right)
{
	char again[BACKUP_MOMENT_BYTES];
	struct backup_moment moment;
	(void)is_right;
	if (!backup_moment_parse(text, &moment))
		return;
	backup_moment_print(&moment, again);
	ASSERT(span_equal_text(text, again));
}

static void fuzz_age(struct span text, bool is_right)
{
	struct age_identities identities = {.count = 1};
	struct buffer opened;
	struct error err = {0};
	(void)is_right;
	buffer_init(&opened, CAP_BYTES);
	ASSERT(age_open(&identities, text, &opened, &err) != 0);
	ASSERT(opened.len == 0);
	ASSERT(err.kind == ERROR_CORRUPT || err.kind == ERROR_DENIED);
	buffer_release(&opened);
	(void)age_identities_parse(text, &identities, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const kinds[])(struct span text, bool is_right) = {
		fuzz_manifest, fuzz_piece, fuzz_moment, fuzz_age};
	if (size < 2)
		return 0;
	kinds[data[0] % 4](span_of(data + 2, size - 2), data[1] % 2 == 0);
	return 0;
}
