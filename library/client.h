/* What a struct deltabucket_client is made of. All but the spares stays as deltabucket_client_new
 * made it. */
#ifndef LIBRARY_CLIENT_H
#define LIBRARY_CLIENT_H

#include "library/deltabucket.h"

struct deltabucket_client {
	char *endpoint;
	char *token; /* NULL: none, as with ca */
	char *ca;
	struct spare_clients *spares; /* connections between calls */
	unsigned retries;             /* tries after the first */
	unsigned parallel;            /* transfers at a time; 0: the default */
	unsigned threads;             /* that compute; 0: one per core */
};

#endif
