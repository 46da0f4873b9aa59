/* A far place of packs for tests: what is stored lies in a folder and outlives the store; staged
 * files lie in memory and are gone with it, as after a power cut. It can be away, and what is
 * stored can be cold: not near until it is fetched. */
#ifndef TESTS_UNIT_STORAGE_FAR_FIXTURE_H
#define TESTS_UNIT_STORAGE_FAR_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/packs/backend.h"

enum { FAR_BLOCK_BYTES = 64 * 1024 };

struct far_fetch;
struct far_fixture {
	const char *folder;   /* borrowed; made when it is absent */
	_Atomic bool is_away; /* whatever needs the place fails with upstream */
	_Atomic int stored;   /* staged files that were stored */
	_Atomic bool is_cold; /* stored bytes are not near until they are fetched */
	/* fetches end only with far_fixture_let_go; else before they return */
	_Atomic bool holds_back;
	_Atomic int fetches; /* so many began */
	_Atomic int garbled; /* reads give a wrong byte, until so many records were forgotten */
	/* The thread that plays the reactor: nothing that it does may wait for the place, or the
	 * test ends. */
	_Atomic bool has_reactor;
	pthread_t reactor;
	/* of the backend that is open now: */
	pthread_mutex_t mutex;
	struct far_block *blocks; /* near, or failed */
	size_t block_count;
	struct far_fetch *held;
};
/* For store_options: opens the place; `fixture` must outlive the backend. */
struct backend *far_fixture_open(void *fixture, struct error *err);
/* The caller plays the reactor from now on, or does not. */
void far_fixture_play_reactor(struct far_fixture *fixture, bool plays);
/* Ends the fetches that are held back: false when there are none. Any thread. */
bool far_fixture_let_go(struct far_fixture *fixture);
/* Whatever was fetched is far again. */
void far_fixture_cool(struct far_fixture *fixture);

#endif
