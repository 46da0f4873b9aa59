/* A load for the S3 face: so many connections, each a thread that sends one signed request after
 * another. Prints one line of JSON. The bodies are new random bytes each time, so that no chunk of
 * them is in the store yet.
 *
 *   s3_load PORT WORKLOAD CONNECTIONS COUNT BYTES KEYS
 *
 * WORKLOAD: fill (PUT of keys 0..KEYS-1), put and get (random keys), mixed (75 % GET, 15 % PUT, 10
 * % DELETE), all presigned with SigV4; parts-unsigned, parts-signed (UploadPart in aws-chunked
 * framing with a CRC32 trailer, as SDKs send it over TLS and without). The key is the root key of
 * the environment, the bucket "bench"; parts go to the upload of DELTABUCKET_BENCH_UPLOAD. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/digest/checksum.h"
#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"

enum { TEXT_MAX = 4096, READ_BYTES = 256 * 1024, FRAME_BYTES = 64 * 1024, CONNECTIONS_MAX = 1024 };

static const char region[] = "us-east-1";

struct load {
	uint16_t port;
	const char *workload;
	const char *key_id;
	const char *upload;
	char host[64];
	char day[9];
	char date[CLOCK_TEXT_BYTES];
	uint8_t signing_key[SHA256_BYTES];
	unsigned connections;
	uint64_t count;
	size_t bytes;
	uint64_t keys;
	atomic_uint_fast64_t next;
	atomic_uint_fast64_t errors;
};
struct worker {
	struct load *load;
	pthread_t thread;
	int socket;
	uint64_t seed;
	uint8_t *body;
	struct buffer frames;
	uint8_t *into;
	float *latencies_ms;
	size_t latency_count;
};

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void refill(struct worker *worker)
{
	uint64_t *const words = (uint64_t *)(void *)worker->body;
	for (size_t i = 0; i < worker->load->bytes / 8; i++)
		words[i] = random_next(&worker->seed);
}

static void hex_sha256(struct span bytes, char out[2 * SHA256_BYTES + 1])
{
	uint8_t hash[SHA256_BYTES];
	sha256(bytes, hash);
	encode_hex(span_of(hash, sizeof hash), out);
}

static void make_signing_key(struct load *load, const char *secret)
{
	char start[256];
	const char *const links[] = {load->day, region, "s3", "aws4_request"};
	snprintf(start, sizeof start, "AWS4%s", secret);
	hmac_sha256(span_text(start), span_text(links[0]), load->signing_key);
	for (size_t i = 1; i < 4; i++) {
		uint8_t next[SHA256_BYTES];
		hmac_sha256(span_of(load->signing_key, SHA256_BYTES), span_text(links[i]), next);
		memcpy(load->signing_key, next, SHA256_BYTES);
	}
}

/* The hex signature over "kind \n date \n scope \n rest". */
static void sign(
	const struct load *load, const char *kind, const char *rest, char out[2 * SHA256_BYTES + 1])
{
	char text[TEXT_MAX];
	uint8_t mac[SHA256_BYTES];
	snprintf(text, sizeof text, "%s\n%s\n%s/%s/s3/aws4_request\n%s", kind, load->date,
		load->day, region, rest);
	hmac_sha256(span_of(load->signing_key, SHA256_BYTES), span_text(text), mac);
	encode_hex(span_of(mac, sizeof mac), out);
}

static void presign(
	const struct load *load, const char *method, const char *path, char out[TEXT_MAX])
{
	char query[1024];
	char canonical[TEXT_MAX];
	char hash[2 * SHA256_BYTES + 1];
	char signature[2 * SHA256_BYTES + 1];
	snprintf(query, sizeof query,
		"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=%s%%2F%s%%2F%s%%2Fs3%%2Faws4_request&X-Amz-Date=%s"
		"&X-Amz-Expires=3600&X-Amz-SignedHeaders=host",
		load->key_id, load->day, region, load->date);
	snprintf(canonical, sizeof canonical, "%s\n%s\n%s\nhost:%s\n\nhost\nUNSIGNED-PAYLOAD",
		method, path, query, load->host);
	hex_sha256(span_text(canonical), hash);
	sign(load, "AWS4-HMAC-SHA256", hash, signature);
	snprintf(out, TEXT_MAX, "%s?%s&X-Amz-Signature=%s", path, query, signature);
}

static void open_socket(struct worker *worker)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(worker->load->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int on = 1;
	worker->socket = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(worker->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(worker->socket, (const struct sockaddr *)&address, sizeof address) != 0) {
		perror("connect");
		exit(1);
	}
}

static bool send_all(struct worker *worker, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	while (len > 0) {
		const ssize_t sent = send(worker->socket, at, len, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		at += sent;
		len -= (size_t)sent;
	}
	return true;
}

/* Reads one reply; gives its status, 0 when the connection broke. */
static int read_reply(struct worker *worker)
{
	size_t have = 0;
	char *end = NULL;
	while (end == NULL) {
		const ssize_t got = recv(worker->socket, worker->into + have, READ_BYTES - have, 0);
		if (got <= 0)
			return 0;
		have += (size_t)got;
		end = memmem(worker->into, have, "\r\n\r\n", 4);
	}
	const size_t head = (size_t)((uint8_t *)end - worker->into) + 4;
	*end = '\0';
	const char *const text = (const char *)worker->into;
	const int status = (int)strtol(text + 9, NULL, 10);
	const char *const length = strcasestr(text, "\ncontent-length:");
	uint64_t left = length == NULL ? 0 : strtoull(length + 16, NULL, 10);
	if (status == 204)
		left = 0;
	if (status >= 400)
		fprintf(stderr, "%.*s\n", (int)(have - head), (const char *)worker->into + head);
	for (left -= have - head < left ? have - head : left; left > 0;) {
		const ssize_t got = recv(
			worker->socket, worker->into, left < READ_BYTES ? left : READ_BYTES, 0);
		if (got <= 0)
			return 0;
		left -= (uint64_t)got;
	}
	return status;
}

static bool request(struct worker *worker, const char *method, uint64_t key, const char *head_rest,
	struct span body)
{
	char path[64];
	char target[TEXT_MAX];
	char head[2 * TEXT_MAX];
	snprintf(path, sizeof path, "/bench/%02x/%" PRIu64, (unsigned)(key % 256), key);
	presign(worker->load, method, path, target);
	const int len = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: %s\r\n%s", method,
		target, worker->load->host, head_rest);
	memcpy(head + len, "\r\n", 3);
	if (body.len + (size_t)len + 2 < sizeof head) { /* one segment */
		memcpy(head + len + 2, body.data, body.len);
		if (!send_all(worker, head, (size_t)len + 2 + body.len))
			return false;
	} else if (!send_all(worker, head, (size_t)len + 2) ||
		!send_all(worker, body.data, body.len)) {
		return false;
	}
	const int status = read_reply(worker);
	return status == 200 || status == 204 ||
		(status == 404 && strcmp(worker->load->workload, "mixed") == 0);
}

static bool put_object(struct worker *worker, uint64_t key)
{
	char head[64];
	refill(worker);
	snprintf(head, sizeof head, "Content-Length: %zu\r\n", worker->load->bytes);
	return request(worker, "PUT", key, head, span_of(worker->body, worker->load->bytes));
}

/* The part's bytes in aws-chunked frames, signed or not, with a CRC32 trailer. */
static void frame(struct worker *worker, bool is_signed, const char *seed)
{
	static const char empty[] =
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
	const struct load *const load = worker->load;
	struct checksum crc;
	char previous[2 * SHA256_BYTES + 1];
	char hash[2 * SHA256_BYTES + 1];
	char rest[512];
	char trailer[CHECKSUM_TEXT_BYTES + 64];
	char text[CHECKSUM_TEXT_BYTES];
	memcpy(previous, seed, sizeof previous);
	buffer_reset(&worker->frames);
	for (size_t at = 0;; at += FRAME_BYTES) {
		const struct span piece = span_slice(span_of(worker->body, load->bytes),
			at < load->bytes ? at : load->bytes, FRAME_BYTES);
		if (is_signed) {
			hex_sha256(piece, hash);
			snprintf(rest, sizeof rest, "%s\n%s\n%s", previous, empty, hash);
			sign(load, "AWS4-HMAC-SHA256-PAYLOAD", rest, previous);
			buffer_format(
				&worker->frames, "%zx;chunk-signature=%s\r\n", piece.len, previous);
		} else {
			buffer_format(&worker->frames, "%zx\r\n", piece.len);
		}
		if (piece.len == 0)
			break;
		buffer_add_span(&worker->frames, piece);
		buffer_add_text(&worker->frames, "\r\n");
	}
	checksum_of(CHECKSUM_CRC32, span_of(worker->body, load->bytes), &crc);
	checksum_format(&crc, 0, text);
	snprintf(trailer, sizeof trailer, "x-amz-checksum-crc32:%s\n", text);
	buffer_format(&worker->frames, "x-amz-checksum-crc32:%s\r\n", text);
	if (is_signed) {
		hex_sha256(span_text(trailer), hash);
		snprintf(rest, sizeof rest, "%s\n%s", previous, hash);
		sign(load, "AWS4-HMAC-SHA256-TRAILER", rest, previous);
		buffer_format(&worker->frames, "x-amz-trailer-signature:%s\r\n", previous);
	}
	buffer_add_text(&worker->frames, "\r\n");
}

static bool upload_part(struct worker *worker, uint64_t number)
{
	const struct load *const load = worker->load;
	const bool is_signed = strcmp(load->workload, "parts-signed") == 0;
	const char *const keyword = is_signed ? "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
					      : "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
	static const char names[] =
		"content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-trailer";
	char canonical[TEXT_MAX];
	char hash[2 * SHA256_BYTES + 1];
	char seed[2 * SHA256_BYTES + 1];
	char head[TEXT_MAX];
	refill(worker);
	snprintf(canonical, sizeof canonical,
		"PUT\n/bench/parts\npartNumber=%" PRIu64
		"&uploadId=%s\ncontent-encoding:aws-chunked\nhost:%s\n"
		"x-amz-content-sha256:%s\nx-amz-date:%s\nx-amz-decoded-content-length:%zu\nx-amz-trailer:x-amz-checksum-crc32\n\n%s\n%s",
		number + 1, load->upload, load->host, keyword, load->date, load->bytes, names,
		keyword);
	hex_sha256(span_text(canonical), hash);
	sign(load, "AWS4-HMAC-SHA256", hash, seed);
	frame(worker, is_signed, seed);
	snprintf(head, sizeof head,
		"PUT /bench/parts?partNumber=%" PRIu64
		"&uploadId=%s HTTP/1.1\r\nHost: %s\r\nContent-Encoding: aws-chunked\r\n"
		"x-amz-content-sha256: %s\r\nx-amz-date: %s\r\nx-amz-decoded-content-length: %zu\r\nx-amz-trailer: x-amz-checksum-crc32\r\n"
		"Authorization: AWS4-HMAC-SHA256 Credential=%s/%s/%s/s3/aws4_request, SignedHeaders=%s, Signature=%s\r\nContent-Length: %zu\r\n\r\n",
		number + 1, load->upload, load->host, keyword, load->date, load->bytes,
		load->key_id, load->day, region, names, seed, worker->frames.len);
	return send_all(worker, head, strlen(head)) &&
		send_all(worker, worker->frames.data, worker->frames.len) &&
		read_reply(worker) == 200;
}

static bool get_object(struct worker *worker, uint64_t key)
{
	return request(worker, "GET", key, "", span_of(NULL, 0));
}

static bool fill_object(struct worker *worker, uint64_t turn)
{
	return put_object(worker, turn);
}

static bool put_random(struct worker *worker, uint64_t turn)
{
	(void)turn;
	return put_object(worker, random_next(&worker->seed) % worker->load->keys);
}

static bool get_random(struct worker *worker, uint64_t turn)
{
	(void)turn;
	return get_object(worker, random_next(&worker->seed) % worker->load->keys);
}

static bool mixed(struct worker *worker, uint64_t turn)
{
	const uint64_t dice = random_next(&worker->seed) % 100;
	if (dice < 75)
		return get_random(worker, turn);
	if (dice < 90)
		return put_random(worker, turn);
	return request(worker, "DELETE", random_next(&worker->seed) % worker->load->keys, "",
		span_of(NULL, 0));
}

static const struct {
	const char *name;
	bool (*run)(struct worker *worker, uint64_t turn);
} workloads[] = {
	{"fill", fill_object},
	{"put", put_random},
	{"get", get_random},
	{"mixed", mixed},
	{"parts-unsigned", upload_part},
	{"parts-signed", upload_part},
};

static void *work(void *argument)
{
	struct worker *const worker = argument;
	struct load *const load = worker->load;
	size_t i = 0;
	while (strcmp(workloads[i].name, load->workload) != 0)
		i++;
	open_socket(worker);
	for (uint64_t turn; (turn = atomic_fetch_add(&load->next, 1)) < load->count;) {
		const double begun = now_s();
		if (!workloads[i].run(worker, turn)) {
			atomic_fetch_add(&load->errors, 1);
			close(worker->socket);
			open_socket(worker);
		}
		worker->latencies_ms[worker->latency_count++] = (float)((now_s() - begun) * 1e3);
	}
	close(worker->socket);
	return NULL;
}

static int compare_floats(const void *a, const void *b)
{
	const float left = *(const float *)a;
	const float right = *(const float *)b;
	return (left > right) - (left < right);
}

static void report(const struct load *load, struct worker *workers, double spent)
{
	float *const all = memory_new_array(load->count, sizeof *all);
	size_t count = 0;
	for (unsigned i = 0; i < load->connections; i++) {
		memcpy(all + count, workers[i].latencies_ms,
			workers[i].latency_count * sizeof *all);
		count += workers[i].latency_count;
	}
	qsort(all, count, sizeof *all, compare_floats);
	printf("{\"operations\": %zu, \"errors\": %" PRIu64
	       ", \"seconds\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
		count, (uint64_t)atomic_load(&load->errors), spent, (double)all[count / 2],
		(double)all[count * 99 / 100]);
	free(all);
}

static bool is_workload(const char *name)
{
	for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++)
		if (strcmp(workloads[i].name, name) == 0)
			return true;
	return false;
}

static void prepare(struct load *load, char **argv)
{
	const char *const secret = getenv("DELTABUCKET_ROOT_SECRET");
	load->port = (uint16_t)strtoul(argv[1], NULL, 10);
	load->workload = argv[2];
	load->connections = (unsigned)strtoul(argv[3], NULL, 10);
	load->count = strtoull(argv[4], NULL, 10);
	load->bytes = strtoull(argv[5], NULL, 10);
	load->keys = strtoull(argv[6], NULL, 10);
	load->key_id = getenv("DELTABUCKET_ROOT_KEY_ID");
	load->upload = getenv("DELTABUCKET_BENCH_UPLOAD");
	snprintf(load->host, sizeof load->host, "127.0.0.1:%u", load->port);
	clock_format_amz(clock_system()->wall_ms(clock_system()), load->date);
	memcpy(load->day, load->date, 8);
	make_signing_key(load, secret == NULL ? "" : secret);
}

int main(int argc, char **argv)
{
	static struct load load;
	if (argc != 7 || !is_workload(argv[2]) || getenv("DELTABUCKET_ROOT_KEY_ID") == NULL ||
		strtoul(argv[3], NULL, 10) > CONNECTIONS_MAX) {
		fprintf(stderr, "usage: s3_load PORT WORKLOAD CONNECTIONS COUNT BYTES KEYS\n");
		return 2;
	}
	prepare(&load, argv);
	struct worker *const workers = memory_new_array(load.connections, sizeof *workers);
	const double begun = now_s();
	for (unsigned i = 0; i < load.connections; i++) {
		workers[i] = (struct worker){.load = &load,
			.body = memory_new(load.bytes + 8),
			.into = memory_new(READ_BYTES + 1),
			.latencies_ms = memory_new_array(load.count + 1, sizeof(float))};
		buffer_init(&workers[i].frames, load.bytes + load.bytes / 64 + TEXT_MAX);
		random_bytes(&workers[i].seed, sizeof workers[i].seed);
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (unsigned i = 0; i < load.connections; i++)
		pthread_join(workers[i].thread, NULL);
	report(&load, workers, now_s() - begun);
	return atomic_load(&load.errors) == 0 ? 0 : 1;
}
