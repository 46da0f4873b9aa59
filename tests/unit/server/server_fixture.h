/* A store, a root key and, on request, a listener on a free port. Shared by tests of the running
 * server. */
#ifndef TESTS_UNIT_SERVER_SERVER_FIXTURE_H
#define TESTS_UNIT_SERVER_SERVER_FIXTURE_H

#include "api/auth/keyring.h"
#include "server/certificate.h"
#include "server/listener.h"
#include "tests/unit/unit.h"

enum { SERVER_FIXTURE_CONNECTIONS = 64 }; /* limit of the listener */

struct server_fixture {
	char *folder;
	struct store *store;
	struct keyring *keyring;
	struct metrics *metrics;
	_Atomic bool stopping;
	struct api_context context;
	char *tls_folder;
	char *control_path;
	struct certificate *certificate;
	struct listener *listener;
	char *endpoint; /* of the TCP address */
};

extern const char server_fixture_token[]; /* of the root key */

void server_fixture_open(struct server_fixture *fixture);
/* The same with packs in a far place (tests/unit/storage/far_fixture.h). */
struct far_fixture;
void server_fixture_open_far(struct server_fixture *fixture, struct far_fixture *far);
/* Listens on TCP and the control socket. */
void server_fixture_listen(struct server_fixture *fixture, bool secure);
/* Wakes long polls, drains and stops, as the daemon does. */
void server_fixture_stop_listening(struct server_fixture *fixture);
void server_fixture_close(struct server_fixture *fixture);

#endif
