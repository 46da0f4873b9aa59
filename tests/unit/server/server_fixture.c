#include "tests/unit/server/server_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread/step_watch.h"
#include "server/data_folder.h"
#include "storage/open/store_open.h"
#include "tests/unit/catalog_seed.h"
#include "tests/unit/storage/far_fixture.h"

const char server_fixture_token[] = "root-token-of-the-tests";

static void open_in(struct server_fixture *fixture, struct far_fixture *far);

void server_fixture_open(struct server_fixture *fixture)
{
	open_in(fixture, NULL);
}

void server_fixture_open_far(struct server_fixture *fixture, struct far_fixture *far)
{
	open_in(fixture, far);
}

static void open_in(struct server_fixture *fixture, struct far_fixture *far)
{
	static const uint8_t master_key[32] = {5};
	struct error err = {0};
	*fixture = (struct server_fixture){.folder = unit_scratch_make(), .metrics = metrics_new()};
	catalog_seed(fixture->folder);
	const struct store_options options = {.folder = fixture->folder,
		.metrics = fixture->metrics,
		.open_backend = far != NULL ? far_fixture_open : NULL,
		.backend_owner = far};
	fixture->store = store_open(&options, &err);
	ck_assert_msg(fixture->store != NULL, "%s", err.text);
	fixture->keyring = keyring_open(fixture->store, master_key, &err);
	ck_assert_msg(fixture->keyring != NULL, "%s", err.text);
	fixture->context = (struct api_context){.store = fixture->store,
		.keyring = fixture->keyring,
		.clock = clock_system(),
		.metrics = fixture->metrics,
		.region = "us-east-1",
		.default_namespace = "main",
		.put_max_bytes = (uint64_t)5 << 30,
		.stopping = &fixture->stopping};
}

static void add_root(struct server_fixture *fixture)
{
	struct error err = {0};
	struct keyring_made_key made;
	struct arena *const arena = arena_new(1024 * 1024);
	const struct keyring_new_key root = {
		.namespace = "main", .is_root = true, .token = server_fixture_token};
	ck_assert_msg(
		keyring_add(fixture->keyring, &root, arena, &made, &err) == 0, "%s", err.text);
	arena_free(arena);
}

static void open_certificate(struct server_fixture *fixture)
{
	struct error err = {0};
	fixture->tls_folder = data_folder_path(fixture->folder, "tls");
	const struct certificate_options options = {
		.folder = fixture->tls_folder, .clock = clock_system()};
	fixture->certificate = certificate_open(&options, &err);
	ck_assert_msg(fixture->certificate != NULL, "%s", err.text);
}

void server_fixture_listen(struct server_fixture *fixture, bool secure)
{
	static char *addresses[] = {"127.0.0.1:0"};
	struct error err = {0};
	struct buffer endpoint;
	add_root(fixture);
	if (secure)
		open_certificate(fixture);
	fixture->control_path = data_folder_path(fixture->folder, "control.sock");
	const struct listener_options options = {.context = &fixture->context,
		.addresses = addresses,
		.address_count = 1,
		.control_path = fixture->control_path,
		.secure = secure,
		.tls_priorities = "NORMAL",
		.reactors = 2,
		.connections = SERVER_FIXTURE_CONNECTIONS,
		.connection_memory_bytes = 64 * 1024,
		.idle_timeout_s = 60};
	fixture->listener = listener_bind(&options, &err);
	ck_assert_msg(fixture->listener != NULL && listener_serve(fixture->listener, &err) == 0,
		"%s", err.text);
	buffer_init(&endpoint, 1000);
	listener_print_endpoints(fixture->listener, &endpoint);
	fixture->endpoint = memory_copy_text(buffer_text(&endpoint));
	buffer_release(&endpoint);
}

static void drain(struct listener *listener)
{
	for (int i = 0; i < 500 && listener_active(listener) > 0; i++) {
		listener_sweep(listener);
		nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
	}
}

void server_fixture_stop_listening(struct server_fixture *fixture)
{
	fixture->stopping = true;
	if (fixture->listener != NULL)
		listener_quiesce(fixture->listener);
	step_watch_wake_all(store_step_watch(fixture->store));
	if (fixture->listener != NULL)
		drain(fixture->listener);
	listener_stop(fixture->listener);
	fixture->listener = NULL;
}

void server_fixture_close(struct server_fixture *fixture)
{
	server_fixture_stop_listening(fixture);
	keyring_close(fixture->keyring);
	store_close(fixture->store);
	certificate_close(fixture->certificate);
	metrics_free(fixture->metrics);
	free(fixture->tls_folder);
	free(fixture->control_path);
	free(fixture->endpoint);
	unit_scratch_remove(fixture->folder);
}
