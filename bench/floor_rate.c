/* What an upload cannot do without, each measured alone: CPU seconds per GB of MD5, BLAKE3 in
 * chunks, boundaries, CRC32, XXH3-64, SHA-256, writing with fdatasync, and libmicrohttpd receiving
 * a body and dropping it. Prints `name value unit`.
 *
 *   floor_rate FOLDER [NAME...]     FOLDER is for the file that is written; NAMEs are those to measure, without any it is all */
#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/digest/checksum.h"
#include "base/digest/digest.h"
#include "base/digest/xxh3.h"
#include "base/memory.h"
#include "base/random.h"
#include "chunker/chunk_hash.h"
#include "chunker/gear.h"

enum {
	BYTES = 256 * 1024 * 1024,
	PIECE_BYTES = 64 * 1024,
	WRITE_BYTES = 8 * 1024 * 1024,
	ROUNDS = 3
};

static uint8_t *content;
static const char *folder;

static double cpu_seconds(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void run_md5(void)
{
	uint8_t out[MD5_BYTES];
	struct md5_stream *const stream = md5_stream_new();
	for (size_t at = 0; at < BYTES; at += PIECE_BYTES)
		md5_stream_add(stream, span_of(content + at, PIECE_BYTES));
	md5_stream_result(stream, out);
	md5_stream_free(stream);
}

static void run_blake3(void)
{
	for (size_t at = 0; at < BYTES; at += PIECE_BYTES)
		(void)chunk_hash(span_of(content + at, PIECE_BYTES));
}

static void run_gear(void)
{
	struct gear gear;
	gear_init(&gear);
	for (size_t at = 0, end; at < BYTES; at += end)
		if ((end = gear_next(&gear, span_of(content + at, BYTES - at))) == 0)
			break;
}

static void run_checksum(enum checksum_algorithm algorithm)
{
	struct checksum out;
	struct checksum_stream *const stream = checksum_stream_new(algorithm);
	for (size_t at = 0; at < BYTES; at += PIECE_BYTES)
		checksum_stream_add(stream, span_of(content + at, PIECE_BYTES));
	checksum_stream_result(stream, &out);
	checksum_stream_free(stream);
}

static void run_crc32(void)
{
	run_checksum(CHECKSUM_CRC32);
}

static void run_sha256(void)
{
	run_checksum(CHECKSUM_SHA256);
}

/* Twice, as a PUT does: the checksum of each stored record, and the object's digest. */
static void run_xxh3(void)
{
	struct xxh3_stream *const stream = xxh3_stream_new();
	for (size_t at = 0; at < BYTES; at += PIECE_BYTES) {
		(void)xxh3_64(span_of(content + at, PIECE_BYTES));
		xxh3_stream_add(stream, span_of(content + at, PIECE_BYTES));
	}
	(void)xxh3_stream_result(stream);
	xxh3_stream_free(stream);
}

static void run_write(void)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/floor", folder);
	const int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	for (size_t at = 0; file >= 0 && at < BYTES; at += WRITE_BYTES)
		if (write(file, content + at, WRITE_BYTES) != WRITE_BYTES || fdatasync(file) != 0)
			exit(1);
	close(file);
	unlink(path);
}

/* The first call of a request takes the headers; each further one gives bytes until none are
 * left. */
static enum MHD_Result drop_body(void *owner, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *bytes, size_t *len, void **state)
{
	static int seen;
	(void)owner, (void)url, (void)method, (void)version, (void)bytes;
	if (*state == NULL) {
		*state = &seen;
		return MHD_YES;
	}
	if (*len > 0) {
		*len = 0;
		return MHD_YES;
	}
	struct MHD_Response *const response =
		MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	const enum MHD_Result queued = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return queued;
}

static void send_body(uint16_t port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int peer = socket(AF_INET, SOCK_STREAM, 0);
	char reply[1024];
	char head[128];
	if (connect(peer, (const struct sockaddr *)&address, sizeof address) != 0)
		_exit(1);
	const int len = snprintf(head, sizeof head,
		"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", BYTES);
	if (send(peer, head, (size_t)len, 0) != len)
		_exit(1);
	for (size_t at = 0; at < BYTES;) {
		const ssize_t sent = send(peer, content + at, BYTES - at, 0);
		if (sent <= 0)
			_exit(1);
		at += (size_t)sent;
	}
	_exit(recv(peer, reply, sizeof reply, 0) > 0 ? 0 : 1);
}

static void run_receive(void)
{
	struct MHD_Daemon *const daemon =
		MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, drop_body, NULL,
			MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)64 * 1024, MHD_OPTION_END);
	const union MHD_DaemonInfo *const info =
		MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
	int status = 0;
	const pid_t child = fork();
	if (child == 0)
		send_body(info->port);
	waitpid(child, &status, 0);
	MHD_stop_daemon(daemon);
	if (status != 0)
		exit(1);
}

static const struct {
	const char *name;
	void (*run)(void);
} floors[] = {
	{"md5", run_md5},
	{"blake3", run_blake3},
	{"gear", run_gear},
	{"crc32", run_crc32},
	{"xxh3", run_xxh3},
	{"sha256", run_sha256},
	{"write_fdatasync", run_write},
	{"microhttpd_receive", run_receive},
};

static bool is_wanted(const char *name, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return count <= 0;
}

int main(int argc, char **argv)
{
	folder = argc > 1 ? argv[1] : ".";
	content = memory_new(BYTES);
	random_bytes(content, BYTES);
	for (size_t i = 0; i < sizeof floors / sizeof floors[0]; i++) {
		if (!is_wanted(floors[i].name, (const char *const *)argv + 2, argc - 2))
			continue;
		double best = 1e9;
		for (int round = 0; round < ROUNDS; round++) {
			const double begun = cpu_seconds();
			floors[i].run();
			const double spent = cpu_seconds() - begun;
			best = spent < best ? spent : best;
		}
		printf("%s %.3f s/GB\n", floors[i].name, best / (BYTES / 1e9));
		fflush(stdout);
	}
	free(content);
	return 0;
}
