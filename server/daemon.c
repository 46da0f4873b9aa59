/* start() opens everything in order: log, data folder, certificate, store, keyring, sockets, root
 * key, reactors. stop() closes it in the reverse order, and what was not opened is skipped.
 *
 *   start --> serve (a loop over signals, once a second) --TERM, INT--> drain --> stop
 *
 * Draining wakes all long polls, lets the workers give up their waits, and gives running requests
 * drain_timeout seconds. */
#include "server/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "api/auth/guess_limit.h"
#include "api/auth/key_use_writer.h"
#include "api/auth/keyring.h"
#include "api/exchange/body_work.h"
#include "api/exchange/context.h"
#include "api/route/route_metrics.h"
#include "base/digest/digest.h"
#include "base/digest/fingerprint.h"
#include "base/memory.h"
#include "base/thread/step_watch.h"
#include "server/certificate.h"
#include "server/control_socket.h"
#include "server/data_folder.h"
#include "server/folder_modes.h"
#include "server/folder_owner.h"
#include "server/listener.h"
#include "server/listener_socket.h"
#include "server/packs_place.h"
#include "server/root_key.h"
#include "storage/derive/derive_worker.h"
#include "storage/files/file_hash_worker.h"
#include "storage/open/store_open.h"
#include "storage/start/store_start.h"
#include "storage/step_jobs/step_worker.h"
#include "storage/xet/made_file.h"
#include "storage/xet/shard_put.h"

enum {
	NOTICE_MAX_BYTES = 64 * 1024,
	FILES_BESIDE_CONNECTIONS = 1280,
	SCRUB_PERIOD_DAYS = 28,
	SCRUB_FIRST_MS = 10 * 60 * 1000, /* a start has other work for the disk */
	WATCH_SECONDS = 1,
	GIVE_BACK_SECONDS = 15,
	SWEEP_ROUNDS = 10,
	STREAMS_MAX = 1024,
	SAME_SIGNAL_MS = 500,
	REPLIES_MAX_BYTES = 256 * 1024 * 1024,
	BODY_THREADS = 2
};

struct daemon {
	const struct configuration *configuration;
	struct log *log;
	struct metrics *metrics;
	struct data_folder folder;
	char *tls_folder;
	char *endpoint; /* the URL for clients on this machine; NULL: none */
	struct control_place control;
	struct certificate *certificate;
	struct store *store;
	struct keyring *keyring;
	struct key_use_writer *key_uses;
	struct listener *listener;
	struct trusted_proxies *proxies;
	unsigned connections; /* the limit */
	_Atomic bool stopping;
	struct api_context context;
};

static void fill_signals(sigset_t *signals);
static int start(struct daemon *daemon, char *const *environment, struct error *err);
static int open_log(struct daemon *daemon, struct error *err);
static void share_file_limit(struct daemon *daemon);
static int try_addresses(const struct configuration *configuration, struct error *err);
static int open_certificate(struct daemon *daemon, struct error *err);
static int open_store(struct daemon *daemon, struct error *err);
static struct store_options store_options_of(const struct daemon *daemon);
static int read_etag(const char *name, bool *out_fast, struct error *err);
static int read_after_damage(const char *name, enum after_damage *out, struct error *err);
static void derive_key(const struct daemon *daemon, const char *purpose, uint8_t out[SHA256_BYTES]);
static int open_keyring(struct daemon *daemon, struct error *err);
static int bind_listener(struct daemon *daemon, struct error *err);
static void open_shares(struct daemon *daemon);
static struct share_pool *new_pool(const struct daemon *daemon, uint64_t limit, enum metric held,
	enum metric refused, enum metric displaced);
static int show_root_key(struct daemon *daemon, char *const *environment, struct error *err);
static void print_ready(const struct daemon *daemon);
static void print_ca(const struct daemon *daemon);
static void serve(struct daemon *daemon);
static int wait_for_signal(int seconds, long nanoseconds);
static void note_certificate(const struct daemon *daemon);
static void reload_certificate(const struct daemon *daemon);
static void drain(struct daemon *daemon);
static void stop(struct daemon *daemon);
static void close_shares(struct daemon *daemon);

void daemon_block_signals(void)
{
	sigset_t signals;
	fill_signals(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int daemon_run(
	const struct configuration *configuration, char *const *environment, struct error *err)
{
	struct daemon daemon = {.configuration = configuration, .folder = {.lock_fd = -1}};
	const int started = start(&daemon, environment, err);
	if (started == 0) {
		print_ready(&daemon);
		serve(&daemon);
		drain(&daemon);
	}
	stop(&daemon);
	return started;
}

static void fill_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGHUP);
	/* Each signal writes out the log. This one does nothing else. */
	sigaddset(signals, SIGUSR1);
}

static int start(struct daemon *daemon, char *const *environment, struct error *err)
{
	const struct configuration *const configuration = daemon->configuration;
	if (open_log(daemon, err) != 0)
		return -1;
	configuration_warn_unknown(environment, daemon->log);
	share_file_limit(daemon);
	daemon->metrics = metrics_new();
	if (try_addresses(configuration, err) != 0)
		return -1;
	if (data_folder_check_new(configuration->data, configuration->settings_file, err) != 0 ||
		data_folder_open(&daemon->folder, file_system(), configuration->data,
			configuration->master_key, true, err) != 0)
		return -1;
	folder_modes_narrow(daemon->folder.path, daemon->log);
	if (open_certificate(daemon, err) != 0 || open_store(daemon, err) != 0)
		return folder_owner_advise(daemon->folder.path, err);
	if (bind_listener(daemon, err) != 0 || show_root_key(daemon, environment, err) != 0)
		return -1;
	daemon->key_uses = key_use_writer_start(daemon->keyring);
	return listener_serve(daemon->listener, err);
}

static int open_log(struct daemon *daemon, struct error *err)
{
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = {{"error", LOG_ERROR}, {"warning", LOG_WARNING}, {"info", LOG_INFO},
		{"debug", LOG_DEBUG}};
	const char *const name = daemon->configuration->log_level;
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (name != NULL && strcmp(levels[i].name, name) == 0) {
			daemon->log = log_new(STDERR_FILENO, levels[i].level,
				daemon->configuration->log_json, clock_system());
			return 0;
		}
	return error_set(err, ERROR_INVALID, "log_level must be error, warning, info or debug");
}

/* Raises the limit of file descriptors. Connections, packs and databases all need descriptors. If
 * there are too few, the number of connections is lowered, because a server that cannot open a pack
 * can serve no request. */
static void share_file_limit(struct daemon *daemon)
{
	struct rlimit limit;
	const rlim_t wanted = (rlim_t)daemon->configuration->connections + FILES_BESIDE_CONNECTIONS;
	daemon->connections = (unsigned)daemon->configuration->connections;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= wanted)
		return;
	const rlim_t half = limit.rlim_max / 2;
	const rlim_t beside = half < FILES_BESIDE_CONNECTIONS ? half : FILES_BESIDE_CONNECTIONS;
	daemon->connections = (unsigned)(limit.rlim_max - beside);
	const struct log_field fields[] = {log_number("limit", (int64_t)limit.rlim_max),
		log_number("wanted", (int64_t)wanted),
		log_number("connections", daemon->connections)};
	log_event(daemon->log, LOG_WARNING, NULL, "few_file_descriptors", fields, 3);
}

/* At a first start, tries the addresses before the folder is made, so that a failure leaves no
 * folder. */
static int try_addresses(const struct configuration *configuration, struct error *err)
{
	if (file_exists(configuration->data))
		return 0;
	for (size_t i = 0; i < configuration->listen.count; i++)
		if (listener_socket_try(configuration->listen.items[i], err) != 0)
			return -1;
	return 0;
}

static int open_certificate(struct daemon *daemon, struct error *err)
{
	const struct configuration *const configuration = daemon->configuration;
	if (configuration->http)
		return 0;
	daemon->tls_folder = data_folder_path(daemon->folder.path, "tls");
	const struct certificate_options options = {
		.folder = daemon->tls_folder,
		.cert_file = configuration->tls_cert,
		.key_file = configuration->tls_key,
		.domain = configuration->domain,
		.names = configuration->tls_name.items,
		.name_count = configuration->tls_name.count,
		.clock = clock_system(),
	};
	daemon->certificate = certificate_open(&options, err);
	if (daemon->certificate == NULL)
		return -1;
	note_certificate(daemon);
	return 0;
}

static int open_store(struct daemon *daemon, struct error *err)
{
	const struct configuration *const configuration = daemon->configuration;
	struct store_options options = store_options_of(daemon);
	if (read_etag(configuration->etag, &options.fast_etags, err) != 0 ||
		read_after_damage(configuration->after_damage, &options.after_damage, err) != 0)
		return -1;
	struct packs_place place = {.configuration = configuration, .folder = daemon->folder.path};
	options.open_backend = packs_place_is_far(configuration) ? packs_place_open : NULL;
	options.backend_owner = &place;
	derive_key(daemon, "deltabucket webhooks", options.webhooks.key);
	derive_key(daemon, "deltabucket xet answers", options.xet.key);
	daemon->store = store_open(&options, err);
	return daemon->store == NULL ? -1 : open_keyring(daemon, err);
}

/* All but the two that are words, and the keys. Settings are in MiB, hours and seconds. */
static struct store_options store_options_of(const struct daemon *daemon)
{
	const struct configuration *const configuration = daemon->configuration;
	return (struct store_options){
		.folder = daemon->folder.path,
		.metrics = daemon->metrics,
		.log = daemon->log,
		.disk_reserve = configuration->disk_reserve << 20,
		.helper_threads = (unsigned)configuration->helpers,
		.lifecycle_day_ms = (int64_t)configuration->lifecycle_day * 1000,
		.lifecycle_interval_ms = (int64_t)configuration->lifecycle_interval * 1000,
		.gc =
			{
				.interval_s = (unsigned)configuration->gc_interval,
				.bytes_per_second = configuration->gc_rate * 1024 * 1024,
				.live_percent = (unsigned)configuration->gc_live_percent,
				.promise_ms = (int64_t)configuration->gc_promise * 60 * 60 * 1000,
			},
		.scrub =
			{
				.period_ms = (int64_t)SCRUB_PERIOD_DAYS * 24 * 60 * 60 * 1000,
				.first_ms = SCRUB_FIRST_MS,
				.bytes_per_second = configuration->scrub_rate * 1024 * 1024,
			},
		.derive =
			{
				.enabled = configuration->derive,
				.bytes_per_second = configuration->derive_rate * 1024 * 1024,
				.min_bytes = configuration->derive_min * 1024,
			},
		.steps =
			{
				.enabled = configuration->step_work,
				.bytes_per_second = configuration->step_rate * 1024 * 1024,
				.threads = (unsigned)configuration->step_threads,
			},
		.webhooks =
			{
				.hosts = (const char *const *)configuration->webhook_hosts.items,
				.host_count = configuration->webhook_hosts.count,
			},
		.xet =
			{
				.upload_promise_ms =
					(int64_t)configuration->xet_promise * 60 * 60 * 1000,
				.answer_promise_ms =
					(int64_t)configuration->xet_answer_promise * 60 * 60 * 1000,
				.made_max_bytes = configuration->xet_made_max << 30,
			},
	};
}

static int read_etag(const char *name, bool *out_fast, struct error *err)
{
	*out_fast = name != NULL && strcmp(name, "fast") == 0;
	return *out_fast || (name != NULL && strcmp(name, "md5") == 0)
		? 0
		: error_set(err, ERROR_INVALID, "etag must be md5 or fast");
}

static int read_after_damage(const char *name, enum after_damage *out, struct error *err)
{
	static const char *const names[] = {[AFTER_DAMAGE_REFUSE] = "refuse",
		[AFTER_DAMAGE_READ_ONLY] = "read-only",
		[AFTER_DAMAGE_SERVE] = "serve"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (name != NULL && strcmp(name, names[i]) == 0) {
			*out = (enum after_damage)i;
			return 0;
		}
	return error_set(err, ERROR_INVALID, "after_damage must be refuse, read-only or serve");
}

/* Each purpose of signing or sealing has a key of its own, derived from the master key. */
static void derive_key(const struct daemon *daemon, const char *purpose, uint8_t out[SHA256_BYTES])
{
	hmac_sha256(span_of(daemon->folder.master_key, sizeof(daemon->folder.master_key)),
		span_text(purpose), out);
}

static int open_keyring(struct daemon *daemon, struct error *err)
{
	ASSERT(daemon->store != NULL);
	const char *const given = daemon->configuration->master_key;
	daemon->keyring = keyring_open(daemon->store, daemon->folder.master_key, err);
	if (daemon->keyring != NULL || err->kind != ERROR_CORRUPT)
		return daemon->keyring != NULL ? 0 : -1;
	char *const path = given != NULL ? memory_copy_text(given)
					 : data_folder_path(daemon->folder.path, "master.key");
	error_wrap(err, "the master key %s is the wrong one; restore the right one", path);
	free(path);
	return -1;
}

static int bind_listener(struct daemon *daemon, struct error *err)
{
	const struct configuration *const configuration = daemon->configuration;
	ASSERT(daemon->store != NULL && daemon->keyring != NULL);
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	daemon->context = (struct api_context){
		.store = daemon->store,
		.keyring = daemon->keyring,
		.clock = clock_system(),
		.log = daemon->log,
		.metrics = daemon->metrics,
		.route_metrics = route_metrics_new(),
		.region = configuration->region,
		.default_namespace = configuration->default_namespace,
		.domain = configuration->domain,
		.put_max_bytes = configuration->put_max,
		.sigv2 = configuration->sigv2,
		.stopping = &daemon->stopping,
		.ca_pem = daemon->certificate != NULL ? certificate_ca_pem(daemon->certificate)
						      : NULL,
		.public_url = configuration->public_url,
		.shared_urls = configuration->shared_urls,
		.shared_cache = configuration->shared_cache,
		.hub_buckets_public = strcmp(configuration->hub_default_visibility, "public") == 0,
	};
	open_shares(daemon);
	derive_key(daemon, "deltabucket xet tokens", daemon->context.token_key);
	control_place_init(&daemon->control, daemon->folder.path);
	daemon->proxies = trusted_proxies_new(
		configuration->trusted_proxies.items, configuration->trusted_proxies.count, err);
	if (daemon->proxies == NULL)
		return -1;
	const struct listener_options options = {
		.context = &daemon->context,
		.proxies = daemon->proxies,
		.addresses = configuration->listen.items,
		.address_count = configuration->listen.count,
		.control_path = daemon->control.path,
		.secure = !configuration->http,
		.tls_priorities = configuration->tls_priorities,
		.reactors = configuration->reactors > 0 ? (unsigned)configuration->reactors
			: processors > 0                ? (unsigned)processors
							: 1,
		.connections = daemon->connections,
		.connection_memory_bytes = (size_t)configuration->connection_memory * 1024,
		.idle_timeout_s = (unsigned)configuration->idle_timeout,
	};
	daemon->listener = listener_bind(&options, err);
	return daemon->listener != NULL ? 0 : -1;
}

/* A quarter of the connections is left for requests that do not wait. */
static void open_shares(struct daemon *daemon)
{
	daemon->context.shares = (struct api_shares){
		.waits = new_pool(daemon, daemon->connections - daemon->connections / 4,
			METRIC_WAITS, METRIC_WAITS_REFUSED, METRIC_WAITS_DISPLACED),
		.streams = new_pool(daemon, STREAMS_MAX, METRIC_STREAMS, METRIC_STREAMS_REFUSED,
			METRIC_STREAMS_DISPLACED),
		.replies = new_pool(daemon, REPLIES_MAX_BYTES, METRIC_REPLY_BYTES,
			METRIC_REPLIES_REFUSED, METRIC_REPLIES_DISPLACED),
		.bodies = new_pool(daemon, daemon->configuration->body_memory << 20,
			METRIC_BODY_BYTES, METRIC_BODIES_REFUSED, METRIC_BODIES_DISPLACED),
	};
	daemon->context.body_work = body_work_start(BODY_THREADS);
	daemon->context.guesses = guess_limit_new(clock_system());
}

static struct share_pool *new_pool(const struct daemon *daemon, uint64_t limit, enum metric held,
	enum metric refused, enum metric displaced)
{
	const struct share_options options = {.limit = limit,
		.reserve = limit / 16 + 1,
		.strangers = limit / 2,
		.metrics = daemon->metrics,
		.held = held,
		.refused = refused,
		.displaced = displaced};
	return share_pool_new(&options);
}

/* Only after the addresses are bound; otherwise the lines to paste could lead to another program
 * that listens there. */
static int show_root_key(struct daemon *daemon, char *const *environment, struct error *err)
{
	const struct configuration *const configuration = daemon->configuration;
	const struct certificate *const certificate = daemon->certificate;
	ASSERT(daemon->listener != NULL && daemon->keyring != NULL);
	unsigned *const ports = memory_new_array(configuration->listen.count, sizeof(*ports));
	for (size_t i = 0; i < configuration->listen.count; i++)
		ports[i] = listener_port(daemon->listener, i);
	struct start_place place = {.endpoint = start_notice_endpoint(configuration, ports),
		.region = configuration->region,
		.others = start_notice_others(configuration, ports),
		.ca_path = certificate != NULL ? certificate_ca_path(certificate) : NULL,
		.ca_pem = certificate != NULL ? certificate_ca_pem(certificate) : NULL,
		.hidden_in = configuration->show_root_key ? NULL : daemon->folder.path};
	struct buffer notice;
	buffer_init(&notice, NOTICE_MAX_BYTES);
	const int outcome = root_key_prepare(daemon->keyring, configuration->default_namespace,
		environment, &place, &notice, err);
	free(ports);
	daemon->endpoint = place.endpoint;
	daemon->context.endpoint = place.endpoint;
	free(place.others);
	if (outcome == 0 && notice.len > 0) {
		fputs(buffer_text(&notice), stdout);
		fflush(stdout);
	}
	if (notice.data != NULL)
		explicit_bzero(notice.data, notice.len);
	buffer_release(&notice);
	return outcome;
}

static void print_ready(const struct daemon *daemon)
{
	struct buffer endpoints;
	buffer_init(&endpoints, NOTICE_MAX_BYTES);
	listener_print_endpoints(daemon->listener, &endpoints);
	printf("deltabucketd is ready: %s", buffer_text(&endpoints));
	print_ca(daemon);
	printf("\n");
	fflush(stdout);
	const struct log_field field = log_span("endpoints", buffer_span(&endpoints));
	log_event(daemon->log, LOG_INFO, NULL, "ready", &field, 1);
	buffer_release(&endpoints);
}

static void print_ca(const struct daemon *daemon)
{
	struct fingerprint fingerprint;
	char text[FINGERPRINT_TEXT_BYTES];
	const char *const pem =
		daemon->certificate != NULL ? certificate_ca_pem(daemon->certificate) : NULL;
	if (pem == NULL || !fingerprint_of_pem(span_text(pem), &fingerprint))
		return;
	fingerprint_format(&fingerprint, text);
	printf(" with the CA certificate %s (%s)", certificate_ca_path(daemon->certificate), text);
}

static void serve(struct daemon *daemon)
{
	struct memory_rest rest = {0};
	log_hold(daemon->log);
	for (unsigned seconds = 1;; seconds++) {
		const int got = wait_for_signal(WATCH_SECONDS, 0);
		log_flush(daemon->log);
		if (seconds % GIVE_BACK_SECONDS == 0)
			memory_give_back(&rest);
		if (got == SIGTERM || got == SIGINT)
			return;
		if (got == SIGHUP ||
			(daemon->certificate != NULL && certificate_is_due(daemon->certificate)))
			reload_certificate(daemon);
	}
}

/* The signal that came, or 0 after the time. */
static int wait_for_signal(int seconds, long nanoseconds)
{
	sigset_t signals;
	fill_signals(&signals);
	const struct timespec timeout = {.tv_sec = seconds, .tv_nsec = nanoseconds};
	const int got = sigtimedwait(&signals, NULL, &timeout);
	return got < 0 ? 0 : got;
}

static void note_certificate(const struct daemon *daemon)
{
	metrics_set(daemon->metrics, METRIC_CERTIFICATE_ENDS,
		certificate_ends_ms(daemon->certificate) / 1000);
}

static void reload_certificate(const struct daemon *daemon)
{
	struct error err = {0};
	if (daemon->certificate == NULL)
		return;
	if (certificate_reload(daemon->certificate, &err) != 0) {
		log_failure(daemon->log, LOG_ERROR, NULL, "certificate_not_reloaded", &err);
		return;
	}
	note_certificate(daemon);
	const struct log_field field =
		log_number("ends_ms", certificate_ends_ms(daemon->certificate));
	log_event(daemon->log, LOG_INFO, NULL, "certificate_reloaded", &field, 1);
}

/* Long polls are answered at once. Other requests have until the deadline, or until a second
 * signal. A signal within SAME_SIGNAL_MS counts as the same one. */
static void drain(struct daemon *daemon)
{
	ASSERT(daemon->listener != NULL && daemon->store != NULL);
	const int64_t begun_ms = clock_monotonic_ms();
	const int64_t deadline_ms = begun_ms + (int64_t)daemon->configuration->drain_timeout * 1000;
	atomic_store(&daemon->stopping, true);
	listener_quiesce(daemon->listener);
	/* before the watch, so that a woken request does not ask the worker again */
	step_worker_quiesce(store_parts(daemon->store)->step_worker);
	step_watch_wake_all(store_step_watch(daemon->store));
	derive_worker_quiesce(store_parts(daemon->store)->derive_worker);
	file_hash_worker_quiesce(store_parts(daemon->store)->file_hash_worker);
	made_files_quiesce(store_parts(daemon->store)->made_files);
	shard_put_quiesce(daemon->store);
	gc_quiesce(store_parts(daemon->store)->gc);
	scrub_quiesce(store_parts(daemon->store)->scrub);
	const struct log_field field = log_number("requests", listener_active(daemon->listener));
	log_event(daemon->log, LOG_INFO, NULL, "draining", &field, 1);
	for (unsigned round = 0;
		listener_active(daemon->listener) > 0 && clock_monotonic_ms() < deadline_ms;
		round++) {
		const int got = wait_for_signal(0, 20 * 1000 * 1000);
		if ((got == SIGTERM || got == SIGINT) &&
			clock_monotonic_ms() - begun_ms >= SAME_SIGNAL_MS)
			break;
		if (round % SWEEP_ROUNDS == 0)
			listener_sweep(daemon->listener);
		log_flush(daemon->log);
	}
}

static void stop(struct daemon *daemon)
{
	listener_stop(daemon->listener);
	trusted_proxies_free(daemon->proxies);
	close_shares(daemon);
	route_metrics_free(daemon->context.route_metrics);
	key_use_writer_stop(daemon->key_uses);
	keyring_close(daemon->keyring);
	if (daemon->store != NULL)
		store_close(daemon->store);
	if (daemon->listener != NULL)
		log_event(daemon->log, LOG_INFO, NULL, "stopped", NULL, 0);
	certificate_close(daemon->certificate);
	control_place_release(&daemon->control);
	data_folder_close(&daemon->folder);
	metrics_free(daemon->metrics);
	log_free(daemon->log);
	free(daemon->tls_folder);
	free(daemon->endpoint);
}

static void close_shares(struct daemon *daemon)
{
	body_work_stop(daemon->context.body_work);
	guess_limit_free(daemon->context.guesses);
	share_pool_free(daemon->context.shares.waits);
	share_pool_free(daemon->context.shares.streams);
	share_pool_free(daemon->context.shares.replies);
	share_pool_free(daemon->context.shares.bodies);
}
