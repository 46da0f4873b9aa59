#include "client/follow/chunk_gift.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "wire/replica_message.h"

enum { PATH_MAX_BYTES = 8192 };

static bool give(const struct chunk_gift *gift, const struct replica_want *want, uint8_t *bytes);
static const struct step_file *find_file(
	const struct proven_files *files, const struct replica_want *want);
static bool read_range(const struct chunk_gift *gift, const struct step_file *file,
	const struct replica_want *want, uint8_t *bytes);
static bool is_chunk(const struct replica_want *want, struct span bytes);
static bool send_bytes(
	const struct chunk_gift *gift, const struct replica_want *want, struct span bytes);

size_t chunk_gift_send(const struct chunk_gift *gift, const struct json_node *answer)
{
	struct replica_want wants[REPLICA_WANTS_MAX];
	const size_t count = replica_wants_read(answer, wants);
	size_t given = 0;
	if (count == 0)
		return 0;
	uint8_t *const bytes = memory_new(CHUNK_MAX_BYTES);
	for (size_t i = 0; i < count; i++)
		given += give(gift, &wants[i], bytes);
	free(bytes);
	return given;
}

static bool give(const struct chunk_gift *gift, const struct replica_want *want, uint8_t *bytes)
{
	const struct step_file *const file = find_file(gift->files, want);
	return file != NULL && want->length <= CHUNK_MAX_BYTES &&
		read_range(gift, file, want, bytes) &&
		is_chunk(want, span_of(bytes, (size_t)want->length)) &&
		send_bytes(gift, want, span_of(bytes, (size_t)want->length));
}

static const struct step_file *find_file(
	const struct proven_files *files, const struct replica_want *want)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].size == want->size &&
			digest128_equal(&files->files[i].digest, &want->digest))
			return &files->files[i];
	return NULL;
}

/* The generation may have been removed meanwhile. */
static bool read_range(const struct chunk_gift *gift, const struct step_file *file,
	const struct replica_want *want, uint8_t *bytes)
{
	struct buffer path;
	struct error ignored = {0};
	buffer_init(&path, PATH_MAX_BYTES);
	buffer_format(
		&path, "%s/%.*s", gift->folder, (int)file->path.len, (const char *)file->path.data);
	const int fd = buffer_check(&path, "a path", &ignored) == 0
		? open(buffer_text(&path), O_RDONLY | O_CLOEXEC)
		: -1;
	const struct iovec into = {.iov_base = bytes, .iov_len = (size_t)want->length};
	const bool is_read = fd >= 0 &&
		file_read_at(file_system(), fd, into, (off_t)want->offset, buffer_text(&path),
			&ignored) == 0;
	if (fd >= 0)
		close(fd);
	buffer_release(&path);
	return is_read;
}

static bool is_chunk(const struct replica_want *want, struct span bytes)
{
	const struct chunk_id found = chunk_hash(bytes);
	struct chunk_id wanted;
	return chunk_id_parse(span_text(want->chunk), &wanted) && chunk_id_equal(&found, &wanted);
}

static bool send_bytes(
	const struct chunk_gift *gift, const struct replica_want *want, struct span bytes)
{
	static const char *const headers[] = {"Content-Type: application/octet-stream", NULL};
	char *const target = remote_json_target(gift->run, "chunks", want->chunk);
	const struct http_request request = {
		.method = "PUT", .target = target, .headers = headers, .body = bytes};
	struct http_response response;
	struct error ignored = {0};
	const bool is_taken = remote_send(gift->remote, &request, &response, &ignored) == 0;
	http_response_release(&response);
	free(target);
	return is_taken;
}
